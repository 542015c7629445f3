//! Holds and lists of erased people that exist by the trail's entries but whose rows are missing.

use std::collections::{BTreeMap, HashSet};

use super::{AuditFault, EntryFacts, fault};
use crate::change::ChangeError;
use crate::change::plan::Change;
use crate::store::own::{STRIDE, TrailEntry};
use crate::store::{Store, StoreError};

/// Action of the entry that begins an erasure.
const BEGIN: &str = "purge.begin";

/// People with a hold by the trail's entries but without its row: each with the number of the entry. A redacted entry
/// names nobody.
///
/// # Errors
/// The engine's refusal.
pub async fn holds(store: &Store) -> Result<BTreeMap<String, i64>, StoreError> {
    let records = store.records();
    let mut placed = BTreeMap::new();
    if !records.can_erase() {
        return Ok(placed);
    }
    for value in records.private_about("memory_holds", "changes").await? {
        let changes: Vec<Change> = serde_json::from_str(&value.value).unwrap_or_default();
        for change in changes {
            if change.after["held"] == true {
                placed.insert(change.id, value.seq);
            } else {
                placed.remove(&change.id);
            }
        }
    }
    if !placed.is_empty() {
        let held = records.held().await?;
        placed.retain(|id, _| !held.contains(id));
    }
    Ok(placed)
}

/// Numbers of the entries that began erasures without any listed handle left.
async fn lists(store: &Store) -> Result<Vec<i64>, StoreError> {
    let records = store.records();
    if !records.can_erase() {
        return Ok(Vec::new());
    }
    let (mut begun, mut after) = (Vec::new(), None);
    loop {
        let entries = records.trail_of(BEGIN, after, STRIDE).await?;
        let began = |entry: &TrailEntry| EntryFacts::parse(&entry.public).listed.map(|session| (entry.seq, session));
        begun.extend(entries.iter().filter_map(began));
        after = next(&entries);
        if after.is_none() {
            break;
        }
    }
    let listed: HashSet<String> = if begun.is_empty() { HashSet::new() } else { records.listed_sessions().await? };
    Ok(begun.into_iter().filter(|(_, session)| !listed.contains(session)).map(|(seq, _)| seq).collect())
}

/// The number after which to read the next entries; `None` after the last.
fn next(entries: &[TrailEntry]) -> Option<i64> {
    entries.last().filter(|_| entries.len() == STRIDE).map(|last| last.seq)
}

/// Faults for missing rows that entries require, as far as our role may read.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn faults(store: &Store) -> Result<Vec<AuditFault>, ChangeError> {
    let may = |error: StoreError| if error.is_denied() { Ok(Vec::new()) } else { Err(error) };
    let hold = |seq: i64| {
        let words = format!(
            "the hold that entry {seq} placed is missing, and no entry records why: place it again with `hold`"
        );
        fault("lost_hold", seq, words)
    };
    let list = |seq: i64| {
        let words = format!(
            "the list of handles that entry {seq} wrote is missing: the return of its person can no longer be \
             detected"
        );
        fault("lost_list", seq, words)
    };
    let holds = holds(store).await.map(|lost| lost.into_values().collect()).or_else(may)?;
    let lists = lists(store).await.or_else(may)?;
    Ok(holds.into_iter().map(hold).chain(lists.into_iter().map(list)).collect())
}
