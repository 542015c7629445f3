//! Request numbers and request failures.

/// Number of a request. A reply to a request that is no longer pending is ignored.
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
    /// Suggested remedy.
    pub remedy: Option<String>,
    /// It passes on its own: a lock, a connection that was lost.
    pub passes: bool,
    /// A page of the database is damaged: what can be read is in a private copy.
    pub is_damage: bool,
}

/// Code for something that does not exist yet.
const ABSENT: &str = "absent";
/// Code for a refusal: the same request would be refused again.
const REFUSED: &str = "refused";

impl RequestFailure {
    /// Whether it is not an error: the thing requested does not exist yet, and the remedy adds it.
    pub fn is_absence(&self) -> bool {
        self.code.as_deref() == Some(ABSENT)
    }

    /// Whether a retry is pointless.
    pub fn is_final(&self) -> bool {
        self.is_absence() || self.code.as_deref() == Some(REFUSED)
    }

    /// The same as a refusal, so that a retry is pointless.
    pub fn as_refusal(self) -> Self {
        RequestFailure { code: Some(REFUSED.to_owned()), ..self }
    }

    /// A failure because something does not exist yet; the remedy adds it.
    pub fn absent(what: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        RequestFailure { code: Some(ABSENT.to_owned()), ..Self::new(what, message, remedy) }
    }

    /// Whether both have the same cause, whatever was requested.
    pub fn has_cause_of(&self, other: &RequestFailure) -> bool {
        (&self.message, &self.code) == (&other.message, &other.code)
    }

    /// A failure without a code and without a remedy other than to try again.
    pub fn bare(what: impl Into<String>, message: impl Into<String>) -> Self {
        RequestFailure { remedy: None, ..Self::new(what, message, "") }
    }

    /// A failure without a code.
    pub fn new(what: impl Into<String>, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (what, message, remedy) = (what.into(), message.into(), Some(remedy.into()));
        RequestFailure { what, message, code: None, remedy, passes: false, is_damage: false }
    }
}
