//! Requests that can be made of a job.

/// A request made of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobAsk {
    /// To be planned, and started or resumed after a yes.
    Start,
    /// To pause.
    Pause,
    /// To end.
    Cancel,
}
