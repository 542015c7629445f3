//! Verdicts on feedback.

/// A verdict on a feedback row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InboxVerdict {
    /// The feedback is right: its episode gets a corresponding signal.
    Right,
    /// Thumbs the other way round.
    Flipped,
    /// Another rating.
    Rated(u8),
    /// The feedback is edited.
    Edited,
    /// The feedback is removed.
    Removed,
    /// Postponed; only this session knows.
    Later,
}

impl InboxVerdict {
    /// The word for it.
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
