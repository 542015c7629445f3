//! The receipt of an erasure: what was done and found, without contents; and the result of a later check.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mention::Mentions;
use super::verdict::{PurgeStatus, Remain};
use crate::change::plan::{Change, Counts, digest_of};

/// Decision about the person's account with the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccountFate {
    /// The account stays and is disclosed.
    #[default]
    Keep,
    /// The account is erased.
    Erase,
}

impl AccountFate {
    /// `Erase` or `Keep`.
    pub fn of(erase: bool) -> Self {
        if erase { AccountFate::Erase } else { AccountFate::Keep }
    }
}

/// Handles found before the deletion: only for these does a later search without hits mean something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ControlFound {
    /// Number of handles that were found.
    pub found: usize,
    /// Number of handles that were searched for.
    pub of: usize,
}

/// Values that name the person or refer to deleted rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ValueHits {
    /// Number of values.
    pub hits: usize,
    /// Number of these that were left by choice.
    pub left: usize,
    /// Values of the kept account.
    pub account: usize,
}

/// Entries of search indexes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IndexHits {
    /// Number of index entries.
    pub hits: u64,
    /// Old vectors whose nearest neighbours were queried.
    pub neighbours_of: usize,
}

/// A file with hits in its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileHits {
    /// Name of the file, or its position if the name contains a handle.
    pub path: String,
    /// Number of hits in the file.
    pub hits: u64,
}

/// Hits in the bytes of the database's files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ByteHits {
    /// Hits in all files.
    pub hits: u64,
    /// The files.
    pub files: Vec<FileHits>,
    /// Hits in bytes that remaining rows explain.
    pub left: u64,
    /// Whether the bytes were searched.
    pub checked: bool,
    /// Reason why the bytes were not checked.
    pub reason: Option<String>,
}

/// Searches after an erasure, with their findings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PurgeVerification {
    /// Handles that were found before the erasure.
    pub control: ControlFound,
    /// Hits in values.
    pub logical: ValueHits,
    /// Hits in search indexes.
    pub index: IndexHits,
    /// Hits in the files.
    pub bytes: ByteHits,
}

/// Decisions made when an erasure was resumed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Redecision {
    /// Decision for all certain mentions.
    pub mentions: Option<Mentions>,
    /// Number of mentions decided one by one, by decision.
    pub each: BTreeMap<String, usize>,
    /// Time of the decisions.
    pub at: String,
    /// Person who made the decisions.
    pub actor: String,
}

/// Receipt of a person's erasure.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PurgeReceipt {
    /// Identity of the receipt.
    pub receipt_id: String,
    /// The plan.
    pub plan_id: String,
    /// `purge`.
    pub operation: String,
    /// Final status.
    pub status: PurgeStatus,
    /// Rows by table.
    pub counts: Counts,
    /// Always empty: contents are not stored.
    pub changes: Vec<Change>,
    /// Total number of rows that changed or were deleted.
    pub changes_total: usize,
    /// Further effects of the erasure.
    pub effects: Vec<String>,
    /// Facts to know about the erasure.
    pub disclosures: Vec<String>,
    /// Reasons why the erasure is incomplete.
    pub incomplete: Vec<String>,
    /// Data that is left, or was not checked.
    pub findings: Vec<Remain>,
    /// Searches after the erasure, with their findings.
    pub verification: PurgeVerification,
    /// Duration of each phase, in seconds.
    pub phases_seconds: BTreeMap<String, f64>,
    /// The session.
    pub session: String,
    /// The database.
    pub database_id: String,
    /// Decision about mentions.
    pub mentions: Mentions,
    /// Decision about the account.
    pub account: AccountFate,
    /// Time when the erasure began.
    pub started_at: String,
    /// Time when the erasure ended.
    pub applied_at: String,
    /// Person who carried out the erasure.
    pub actor: String,
    /// Ticket that requested the erasure.
    pub ticket: Option<String>,
    /// HMACs of the person's handles, by which a later check finds them.
    pub handles_hmac: Vec<String>,
    /// Number of deleted rows.
    pub rows_erased: usize,
    /// Reason why the erasure cannot be undone.
    pub undo_reason: String,
    /// Decisions made when the erasure was resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions_on_resume: Vec<Redecision>,
    /// SHA-256 of the bundle that was exported first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export_sha256: Option<String>,
    /// Notes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// SHA-256 of all fields above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt_sha256: Option<String>,
    /// Number of the receipt's entry in the audit trail, which contains the hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_seq: Option<i64>,
    /// File with the receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
    /// Reason why no anchor of the receipt could be stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor_problem: Option<String>,
}

/// Fields of a receipt that its hash does not cover: they are known only once the trail has the hash.
pub const BESIDE_THE_HASH: [&str; 4] = ["receipt_sha256", "audit_seq", "kept_in", "anchor_problem"];

impl PurgeReceipt {
    /// Computes the hash of everything known before the entry in the trail.
    pub fn seal(&mut self) {
        (self.receipt_sha256, self.audit_seq, self.kept_in, self.anchor_problem) = (None, None, None, None);
        self.receipt_sha256 = Some(digest_of(self));
    }
}

/// Result of checking the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrailFound {
    /// Number of entries.
    pub entries: usize,
    /// Number of faults; with any, the check has no result.
    pub faults: usize,
}

/// Values found by a later check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ValuesFound {
    /// Values and structure names that contain a handle.
    pub hits: usize,
    /// Rows that belong to the person, as the layout says.
    pub owned: usize,
    /// Number of values by table and column; structure names by their object.
    pub places: BTreeMap<String, usize>,
}

/// Findings of a later check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecheckFound {
    /// Hits in values.
    pub logical: ValuesFound,
}

/// Result of a later check of a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PurgeRecheck {
    /// The receipt.
    pub receipt_id: String,
    /// `purge verify`.
    pub operation: &'static str,
    /// Status now.
    pub status: PurgeStatus,
    /// Result of comparing the receipt with the trail.
    pub receipt: &'static str,
    /// The trail.
    pub audit: TrailFound,
    /// Findings of the check.
    pub verification: RecheckFound,
    /// Facts to know about the result.
    pub disclosures: Vec<String>,
    /// Reasons why the status is `incomplete`.
    #[serde(skip)]
    pub incomplete: Vec<String>,
    /// Time of the check.
    pub checked_at: String,
}
