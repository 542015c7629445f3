//! A later check of every database of a fleet: by its receipt, or otherwise by the HMACs of all receipts.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::receipt::{OPERATION, overall};
use super::session::FleetPlace;
use super::{Fleet, FleetEntry, FleetMember, NOT_FOUND, UNREACHABLE};
use crate::change::purge::desk::Desk;
use crate::change::purge::receipt::{PurgeReceipt, RecheckFound};
use crate::change::purge::recheck::{ENDED_INCOMPLETE, look, recheck};
use crate::change::purge::verdict::PurgeStatus;
use crate::change::{ChangeError, now};
use crate::memory::agreeing;
use crate::store::Store;

/// Result of a later check of every database that a receipt names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetRecheck {
    /// The receipt.
    pub receipt_id: String,
    /// `purge verify`.
    pub operation: &'static str,
    /// The worst status of all databases.
    pub status: PurgeStatus,
    /// Each database.
    pub databases: Vec<FleetEntry>,
    /// Time of the check.
    pub checked_at: String,
    /// Databases that did not pass, and why.
    pub incomplete: Vec<String>,
}

/// Fields of a fleet receipt that a later check needs.
#[derive(Deserialize, Default)]
#[serde(default)]
struct KeptFleet {
    receipt_id: String,
    operation: String,
    status: PurgeStatus,
    databases: Vec<KeptEntry>,
}

impl KeptFleet {
    /// HMACs by which the person is known in any of the databases.
    fn handles(&self) -> HashSet<String> {
        let receipts = self.databases.iter().filter_map(|erased| erased.receipt.as_ref());
        receipts.flat_map(|receipt| &receipt.handles_hmac).cloned().collect()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KeptEntry {
    label: String,
    location: Option<String>,
    status: String,
    error: Option<String>,
    receipt: Option<PurgeReceipt>,
}

impl KeptEntry {
    fn place(&self) -> FleetPlace {
        let database_id = self.receipt.as_ref().map(|receipt| receipt.database_id.clone());
        FleetPlace { label: self.label.clone(), location: self.location.clone(), database_id }
    }

    /// Whether the receipt lists texts with a handle in a database that does not know the person.
    fn has_left_texts(&self) -> bool {
        self.status == NOT_FOUND && self.error.is_some()
    }
}

/// Checks every database that a receipt or the fleet file names; `text` is the receipt's.
///
/// # Errors
/// [`ChangeError::Usage`] for a text that is not a fleet receipt.
pub async fn recheck_fleet(
    fleet: &Fleet,
    named: &str,
    text: &str,
    desk: &Desk<'_>,
) -> Result<FleetRecheck, ChangeError> {
    let kept: KeptFleet =
        serde_json::from_str(text).map_err(|error| ChangeError::Usage(format!("{named} is not a receipt: {error}")))?;
    if kept.operation != OPERATION {
        return Err(ChangeError::Usage(format!("{named} is not a receipt of a purge with --fleet")));
    }
    let handles = kept.handles();
    let mut erased: Vec<(FleetPlace, &KeptEntry)> = kept.databases.iter().map(|one| (one.place(), one)).collect();
    let mut databases = Vec::new();
    for member in &fleet.members {
        let store = fleet.open(member).await;
        let place = FleetPlace::of(member, store.as_ref().ok()).await;
        let is_it = |(known, _): &(FleetPlace, &KeptEntry)| known.is(&place);
        let at = erased.iter().position(|one| is_it(one) && one.0.label == place.label);
        let at = at.or_else(|| erased.iter().position(is_it));
        let known = at.map(|at| erased.remove(at).1);
        databases.push(match store {
            Ok(store) => recheck_one((member, &store), known, &handles, desk).await,
            Err(words) => member.failed(UNREACHABLE, words),
        });
    }
    for (place, _) in erased {
        databases.push(FleetEntry::unnamed(&place));
    }
    let mut incomplete: Vec<String> = databases.iter().filter_map(FleetEntry::problem).collect();
    if kept.status == PurgeStatus::Incomplete {
        incomplete.push(ENDED_INCOMPLETE.to_owned());
    }
    let status = overall(&databases, &incomplete).max(kept.status);
    let (operation, checked_at) = ("purge verify", now());
    Ok(FleetRecheck { receipt_id: kept.receipt_id, operation, status, databases, checked_at, incomplete })
}

async fn recheck_one(
    (member, store): (&FleetMember, &Store),
    known: Option<&KeptEntry>,
    handles: &HashSet<String>,
    desk: &Desk<'_>,
) -> FleetEntry {
    let looked = match known.and_then(|erased| erased.receipt.as_ref()) {
        Some(receipt) => recheck(store, &receipt.receipt_id, desk)
            .await
            .map(|answer| FleetEntry { answer: Some(answer.clone()), ..member.entry(answer.status.word()) }),
        None => look_without_receipt(member, store, known.is_some_and(KeptEntry::has_left_texts), handles, desk).await,
    };
    looked.unwrap_or_else(|error| member.refused(&error))
}

/// Searches for the person by the handles of other databases, if no receipt covers this one.
async fn look_without_receipt(
    member: &FleetMember,
    store: &Store,
    has_left_texts: bool,
    handles: &HashSet<String>,
    desk: &Desk<'_>,
) -> Result<FleetEntry, ChangeError> {
    if handles.is_empty() {
        return Ok(
            member.failed("not verified", "the receipt has no handles to search for, and none from this database")
        );
    }
    for handle in handles.iter().filter(|_| store.records().can_erase()) {
        if store.records().purge_of(handle).await?.is_some_and(|session| session.is_open()) {
            let words = "a purge of the person started there and did not end as verified: resume it";
            return Ok(member.failed(PurgeStatus::Incomplete.word(), words));
        }
    }
    let (found, unread) = look(store, handles, desk).await?;
    let hits = found.hits;
    let problem = if hits > 0 && (found.owned > 0 || !has_left_texts) {
        let words = "the receipt has none from this database, in which {#} {value names|values name} the person";
        Some(agreeing(hits, words))
    } else {
        (!unread.is_empty()).then(|| unread.join("; "))
    };
    let left = (hits > 0).then(|| agreeing(hits, "{#} {value names|values name} the person, as the receipt says"));
    let entry = match problem {
        Some(words) => member.failed(PurgeStatus::Incomplete.word(), words),
        None => FleetEntry { error: left, ..member.entry(NOT_FOUND) },
    };
    Ok(FleetEntry { found: Some(RecheckFound { logical: found }), ..entry })
}
