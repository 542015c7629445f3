//! Work that waits for someone in the opened database.

use crate::job::plan::JobProgress;

/// Work that waits for someone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WaitingWork {
    /// Feedback that needs a look; none when no feedback is kept.
    pub feedback: Option<WaitingFeedback>,
    /// Jobs that began and did not end.
    pub jobs: Vec<JobProgress>,
    /// Persons that nobody can erase.
    pub holds: usize,
    /// Number and time of the newest entry of our audit trail; none when it has none.
    pub trail: Option<(i64, String)>,
}

/// Feedback that needs a look.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WaitingFeedback {
    /// Number of feedback rows that need a look.
    pub count: usize,
    /// There is older feedback that was not looked through.
    pub more: bool,
    /// Time when the oldest of them was given, canonical.
    pub oldest: Option<String>,
}
