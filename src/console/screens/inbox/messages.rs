//! Verdicts on feedback.

/// What was said of a feedback row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InboxVerdict {
    /// It is right: its episode is told so.
    Right,
    /// Thumbs the other way round.
    Flipped,
    /// Another rating.
    Rated(u8),
    /// It says something else.
    Edited,
    /// It is gone.
    Removed,
    /// Not now; only this session knows.
    Later,
}

impl InboxVerdict {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            InboxVerdict::Right => "right",
            InboxVerdict::Flipped => "flipped",
            InboxVerdict::Rated(_) => "rated",
            InboxVerdict::Edited => "edited",
            InboxVerdict::Removed => "removed",
            InboxVerdict::Later => "later",
        }
    }
}
