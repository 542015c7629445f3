//! Work that waits for someone in the opened database.

use crate::job::plan::JobProgress;

/// Work that waits for someone.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WaitingWork {
    /// Feedback that needs a look; `None` if the database has no feedback.
    pub feedback: Option<WaitingFeedback>,
    /// Jobs that began and did not end.
    pub jobs: Vec<JobProgress>,
    /// Number of people who cannot be erased because of a legal hold.
    pub holds: usize,
    /// Number and time of the newest entry of our audit trail; `None` if it is empty.
    pub trail: Option<(i64, String)>,
}

/// Feedback that needs a look.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WaitingFeedback {
    /// Number of feedback rows that need a look.
    pub count: usize,
    /// Whether there is older feedback that was not checked.
    pub more: bool,
    /// Time of the oldest of them, canonical.
    pub oldest: Option<String>,
}
