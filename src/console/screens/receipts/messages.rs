//! Entries of our own audit trail, as they are read.

use crate::change::plan::Change;
use serde_json::Value;

/// Entries that are read at a time.
pub const ENTRIES: usize = 50;

/// An entry of the audit trail.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceiptEntry {
    /// Its number.
    pub seq: i64,
    /// When.
    pub at: String,
    /// Who.
    pub actor: String,
    /// What, such as `feedback.edit`.
    pub action: String,
    /// Why, in free words.
    pub reason: Option<String>,
    /// The ticket that asked for it.
    pub ticket: Option<String>,
    /// Rows by table and verb.
    pub counts: Value,
    /// Rows before and after, as far as they were kept.
    pub changes: Vec<Change>,
    /// Why it cannot be undone; none when it can.
    pub undo_reason: Option<String>,
    /// The entry that it takes back.
    pub undo_of: Option<i64>,
}
