//! One receipt over several databases.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use super::{FleetEntry, FleetErasure, NOT_FOUND};
use crate::change::plan::{Change, Counts, digest_of};
use crate::change::purge::receipt::{FileHits, PurgeReceipt};
use crate::change::purge::verdict::PurgeStatus;
use crate::change::{Author, new_id, now};

/// Operation name in a receipt over several databases.
pub(super) const OPERATION: &str = "purge fleet";

/// Number of hits of one kind, before or after the erasure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetHits {
    /// Number of hits.
    pub hits: u64,
}

/// Handles found before the erasure, over all databases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetControl {
    /// Number of handles that were found.
    pub found: usize,
    /// Number of handles that were searched for.
    pub of: usize,
}

/// Hits in the bytes of files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetBytes {
    /// Hits in all files.
    pub hits: u64,
    /// The files.
    pub files: Vec<FileHits>,
}

/// Findings of the verification, summed over the databases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetVerification {
    /// Handles that were found before the erasure.
    pub control: FleetControl,
    /// Hits in values.
    pub logical: FleetHits,
    /// Hits in search indexes.
    pub index: FleetHits,
    /// Hits in files.
    pub bytes: FleetBytes,
}

impl FleetVerification {
    fn add(&mut self, receipt: &PurgeReceipt) {
        let found = &receipt.verification;
        self.control.found += found.control.found;
        self.control.of += found.control.of;
        self.logical.hits += found.logical.hits as u64;
        self.index.hits += found.index.hits;
        self.bytes.hits += found.bytes.hits;
        self.bytes.files.extend(found.bytes.files.iter().cloned());
    }
}

/// One receipt over all databases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetReceipt {
    /// Identity of the receipt.
    pub receipt_id: String,
    /// `purge fleet`.
    pub operation: &'static str,
    /// The worst status of all databases.
    pub status: PurgeStatus,
    /// The fleet file.
    pub fleet: String,
    /// SHA-256 over the plans of all databases.
    pub plan_id: String,
    /// Rows by database and table.
    pub counts: Counts,
    /// Always empty: contents are not stored.
    pub changes: Vec<Change>,
    /// Total number of rows that changed or were deleted.
    pub changes_total: usize,
    /// Further effects of the erasure, by database.
    pub effects: Vec<String>,
    /// Facts to know about the erasure, by database.
    pub disclosures: Vec<String>,
    /// Findings of the verification.
    pub verification: FleetVerification,
    /// Databases that did not reach their intended status.
    pub incomplete: Vec<String>,
    /// Result of each database.
    pub databases: Vec<FleetEntry>,
    /// Time when the erasure was carried out.
    pub applied_at: String,
    /// Always null: each database has its own trail with an entry.
    pub audit_seq: Option<i64>,
    /// Person who carried out the erasure.
    pub actor: String,
    /// Ticket that requested the erasure.
    pub ticket: Option<String>,
    /// Reason why the erasure cannot be undone.
    pub undo_reason: &'static str,
    /// File with the receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
}

/// The overall status.
pub(super) fn overall(entries: &[FleetEntry], missing: &[String]) -> PurgeStatus {
    let disclosed = entries.iter().any(FleetEntry::discloses);
    match (missing.is_empty(), disclosed) {
        (false, _) => PurgeStatus::Incomplete,
        (true, true) => PurgeStatus::Disclosed,
        (true, false) => PurgeStatus::Verified,
    }
}

/// Rows by database and table.
pub fn add_counts(counts: &mut Counts, label: &str, of_one: &Counts) {
    counts.extend(of_one.iter().map(|(table, count)| (format!("{label}/{table}"), count.clone())));
}

impl FleetReceipt {
    /// Builds one receipt for all databases.
    pub fn new(erasure: &FleetErasure<'_>, databases: Vec<FleetEntry>, author: &Author) -> Self {
        let incomplete: Vec<String> = databases.iter().filter_map(FleetEntry::problem).collect();
        let status = overall(&databases, &incomplete);
        let mut whole = FleetReceipt {
            receipt_id: new_id(),
            operation: OPERATION,
            status,
            fleet: erasure.file.display().to_string(),
            plan_id: String::new(),
            counts: Counts::new(),
            changes: Vec::new(),
            changes_total: 0,
            effects: Vec::new(),
            disclosures: Vec::new(),
            verification: FleetVerification::default(),
            incomplete,
            databases: Vec::new(),
            applied_at: now(),
            audit_seq: None,
            actor: author.actor.clone(),
            ticket: author.ticket.clone(),
            undo_reason: "an erasure cannot be undone",
            kept_in: None,
        };
        let mut plans = BTreeMap::new();
        for FleetEntry { label, status, error, unchecked, receipt, .. } in &databases {
            let labelled = |words: &String| format!("{label}: {words}");
            let of_absent = error.iter().filter(|_| status == NOT_FOUND).chain(unchecked);
            whole.disclosures.extend(of_absent.map(labelled));
            if let Some(receipt) = receipt {
                plans.insert(label, &receipt.plan_id);
                add_counts(&mut whole.counts, label, &receipt.counts);
                whole.changes_total += receipt.changes_total;
                whole.effects.extend(receipt.effects.iter().map(labelled));
                whole.disclosures.extend(receipt.disclosures.iter().map(labelled));
                whole.verification.add(receipt);
            }
        }
        whole.plan_id = digest_of(&json!(plans));
        FleetReceipt { databases, ..whole }
    }
}
