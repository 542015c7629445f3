//! The number of a request, and what may go wrong with it.

/// Number of a request. A reply with a number that nobody waits for any more changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticket(pub u64);

/// A failed request, described for users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFailure {
    /// Action that was tried.
    pub what: String,
    /// Message of the engine or the system.
    pub message: String,
    /// SQLSTATE, or the path it is about.
    pub code: Option<String>,
    /// Remedy: what to do about it.
    pub remedy: Option<String>,
    /// It passes on its own: a lock, a connection that was lost.
    pub passes: bool,
}

/// Code of what does not exist yet.
const ABSENT: &str = "absent";
/// Code of what is refused for what was asked: the same would be refused again.
const REFUSED: &str = "refused";

impl RequestFailure {
    /// Whether nothing went wrong: what was asked for does not exist yet, and the remedy adds it.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        self.code.as_deref() == Some(ABSENT)
    }

    /// Whether reading or asking again does not help.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.is_absence() || self.code.as_deref() == Some(REFUSED)
    }

    /// The same as a refusal: asking again does not help.
    #[must_use]
    pub fn as_refusal(self) -> Self {
        RequestFailure { code: Some(REFUSED.to_owned()), ..self }
    }

    /// Says that what was asked for does not exist yet; the remedy adds it.
    #[must_use]
    pub fn absent(what: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        RequestFailure { code: Some(ABSENT.to_owned()), ..Self::new(what, message, remedy) }
    }

    /// Whether both failed for the same reason, whatever was tried.
    #[must_use]
    pub fn has_cause_of(&self, other: &RequestFailure) -> bool {
        (&self.message, &self.code) == (&other.message, &other.code)
    }

    /// A failure without a code.
    #[must_use]
    pub fn new(what: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (what, message, remedy) = (what.into(), message.into(), Some(remedy.into()));
        RequestFailure { what, message, code: None, remedy, passes: false }
    }
}
