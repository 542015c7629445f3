//! Entries of our own audit trail, as they are read.

use crate::change::plan::{Change, Counts};

/// Entries that are read at a time.
pub const ENTRIES: usize = 50;

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiptEntry {
    /// Number of the entry.
    pub seq: i64,
    /// Time of the change.
    pub at: String,
    /// Name of whoever made the change.
    pub actor: String,
    /// Action, such as `feedback.edit`.
    pub action: String,
    /// Reason for the change, in free words.
    pub reason: Option<String>,
    /// The ticket that asked for it.
    pub ticket: Option<String>,
    /// Rows by table and verb.
    pub counts: Counts,
    /// Rows before and after, as far as they were kept.
    pub changes: Vec<Change>,
    /// Number of those rows, more than were kept of a long change; none when the entry does not say.
    pub changes_total: Option<usize>,
    /// Reason why the change cannot be undone; `None` when it can.
    pub undo_reason: Option<String>,
    /// The entry that it takes back.
    pub undo_of: Option<i64>,
    /// Names of the migrations that were applied.
    pub migrations: Vec<String>,
}
