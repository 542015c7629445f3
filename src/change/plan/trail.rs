//! The audit trail as plain data: entries for lists, the public facts of entries that undo, views of the past and
//! erasure use, and the verdict on the whole.

use serde::Serialize;
use serde_json::Value;

use super::{Change, Counts};

/// An entry of the audit trail, with its remaining private values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ListedEntry {
    /// Number, from 1.
    pub seq: i64,
    /// Time, in the canonical spelling.
    pub at: String,
    /// Author.
    pub actor: String,
    /// Action, such as `feedback.edit`.
    pub action: String,
    /// Non-personal facts, as JSON.
    pub public: Value,
    /// The same facts, parsed.
    #[serde(skip)]
    pub facts: EntryFacts,
    /// The author's reason; `None` if there is none or it was redacted.
    pub reason: Option<String>,
    /// Rows before and after; `None` if they were not stored or were redacted.
    pub changes: Option<Vec<Change>>,
    /// Hash of the entry, in hexadecimal digits.
    pub hash: String,
}

impl ListedEntry {
    /// The remaining rows before and after.
    pub fn rows(&self) -> &[Change] {
        self.changes.as_deref().unwrap_or_default()
    }
}

/// Public facts of an entry. A missing or malformed fact is `None` or empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EntryFacts {
    /// Rows by table and verb.
    pub counts: Option<Counts>,
    /// Number of changed rows; more than are stored for a large change.
    pub changes_total: Option<usize>,
    /// Ticket that requested the change.
    pub ticket: Option<String>,
    /// Reason why the entry cannot be undone; `None` if it can.
    pub undo_reason: Option<String>,
    /// Number of the entry that this one undoes.
    pub undo_of: Option<i64>,
    /// Private values that the entry redacts: number of their entry, and field.
    pub redacts: Vec<(i64, String)>,
    /// SHA-256 of the receipt of an erasure, in hexadecimal digits.
    pub receipt_sha256: Option<String>,
    /// Erasure that the entry begins, if it lists handles that reveal the person's return.
    pub listed: Option<String>,
    /// Names of the migrations that were applied.
    pub migrations: Vec<String>,
}

impl EntryFacts {
    /// Reads the facts of an entry.
    pub fn of(public: &Value) -> Self {
        let text = |key: &str| public[key].as_str().map(str::to_owned);
        EntryFacts {
            counts: serde_json::from_value(public["counts"].clone()).ok(),
            changes_total: public["changes_total"].as_u64().and_then(|total| usize::try_from(total).ok()),
            ticket: text("ticket"),
            undo_reason: text("undo_reason"),
            undo_of: public["undo_of"].as_i64(),
            redacts: serde_json::from_value(public["redacts"].clone()).unwrap_or_default(),
            receipt_sha256: text("receipt_sha256"),
            listed: text("session").filter(|_| public["handles_suppressed"].as_u64() > Some(0)),
            migrations: serde_json::from_value(public["migrations"].clone()).unwrap_or_default(),
        }
    }

    /// The same from stored JSON text; no facts if it is not JSON.
    pub fn parse(public: &str) -> Self {
        serde_json::from_str(public).map(|public: Value| EntryFacts::of(&public)).unwrap_or_default()
    }
}

/// A fault of a trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditFault {
    /// Short stable identifier.
    pub kind: &'static str,
    /// Number of the first affected entry.
    pub seq: i64,
    /// Sentence for people.
    pub message: String,
}

/// Result of verifying a trail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditVerdict {
    /// Whether there are no faults.
    pub ok: bool,
    /// Entries.
    pub entries: usize,
    /// The database.
    pub database_id: String,
    /// Number of the last entry, according to the head.
    pub head: Option<i64>,
    /// Number of the latest anchor that was compared.
    pub anchored: Option<i64>,
    /// Number of redacted private values, according to entries.
    pub redacted: usize,
    /// Faults that were found.
    pub faults: Vec<AuditFault>,
    /// Limits of the verification.
    pub notes: Vec<String>,
}
