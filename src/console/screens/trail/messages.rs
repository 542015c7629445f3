//! Verdict on the audit trail, as verifying found it.

/// One thing that is wrong with the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailFault {
    /// Short stable word.
    pub kind: String,
    /// Number of the entry where it starts.
    pub seq: i64,
    /// A sentence for people.
    pub message: String,
}

/// Result of verifying the trail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrailVerdict {
    /// Entries that were walked.
    pub entries: usize,
    /// The database that the trail belongs to.
    pub database_id: String,
    /// Number of the last entry, as the head of the chain says.
    pub head: Option<i64>,
    /// Number of the latest anchor that was compared; none when no anchor is kept.
    pub anchored: Option<i64>,
    /// Private values that were redacted, as entries say.
    pub redacted: usize,
    /// Faults, by the entry where each starts; empty when the chain is whole.
    pub faults: Vec<TrailFault>,
    /// Notes on what verifying cannot detect.
    pub notes: Vec<String>,
}
