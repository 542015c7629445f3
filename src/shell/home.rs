//! Pending work for the first screen, and the time of the last visit.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::load;
use crate::change::audit;
use crate::config;
use crate::console::core::RequestFailure;
use crate::console::screens::home::messages::{WaitingFeedback, WaitingWork};
use crate::console::screens::inbox::{feedback_query, signals_query, untold, worth_a_look};
use crate::ground::{input_file, private_file};
use crate::job::plan::{JobProgress, JobState};
use crate::job::record;
use crate::memory::{Entity, Row};
use crate::store::{Store, Target};

/// Most bytes of the file with the times of last visits.
const MOST: u64 = 1 << 20;
/// Most databases in it.
const DATABASES: usize = 500;

pub async fn work(store: &Store) -> Result<Box<WaitingWork>, RequestFailure> {
    let failed = |e: crate::store::StoreError| load::failure("What waits could not be read", &e);
    let runs = store.records().jobs().await.map_err(failed)?;
    let is_open = |run: &JobProgress| !matches!(run.state, JobState::Succeeded | JobState::Cancelled);
    let newest = audit::latest(store, None, 1).await.ok().and_then(|entries| entries.into_iter().next());
    Ok(Box::new(WaitingWork {
        feedback: feedback(store).await?,
        jobs: runs.iter().map(record::progress).filter(is_open).collect(),
        holds: store.records().holds().await.map_err(failed)?.len(),
        trail: newest.map(|entry| (entry.seq, entry.at)),
    }))
}

/// Feedback that needs a look: the contents of the inbox.
async fn feedback(store: &Store) -> Result<Option<WaitingFeedback>, RequestFailure> {
    if store.sources_of(Entity::Feedback).is_err() {
        return Ok(None);
    }
    let page = load::page(store, &feedback_query()).await?;
    let found: Vec<Row> = page.rows.into_iter().filter(|row| worth_a_look(row).is_some()).collect();
    let signals = match store.sources_of(Entity::UtilityEvent) {
        Ok(_) if !found.is_empty() => load::page(store, &signals_query()).await?.rows,
        _ => Vec::new(),
    };
    let waiting: Vec<&Row> = untold(&found, &signals).collect();
    let oldest = waiting.iter().filter_map(|row| row.text("created_at")).min().map(str::to_owned);
    Ok(Some(WaitingFeedback { count: waiting.len(), more: page.next.is_some(), oldest }))
}

fn path() -> Option<PathBuf> {
    config::state_folder().map(|folder| folder.join("looked.json"))
}

/// Reads the times of the last visits, canonical, by the location of the database. Entries of earlier versions with
/// relative paths are left out.
pub fn kept() -> BTreeMap<String, String> {
    let bytes = path().and_then(|path| input_file::read(&path, MOST).ok()).unwrap_or_default();
    let written: BTreeMap<String, String> = serde_json::from_slice(&bytes).unwrap_or_default();
    let is_anywhere = |location: &str| match Target::parse(location) {
        Target::File(path) => path.is_absolute(),
        Target::Postgres(_) => true,
    };
    let mut kept = BTreeMap::new();
    for (location, at) in written.into_iter().filter(|(location, _)| is_anywhere(location)) {
        let latest: &mut String = kept.entry(config::place_of(&location)).or_default();
        *latest = at.max(std::mem::take(latest));
    }
    kept
}

/// Returns the time of the last visit to this database, canonical.
pub fn looked(store: &Store) -> Option<String> {
    kept().remove(&config::place_of(store.location()))
}

/// Saves the time of this visit. If that fails, the next visit shows less.
pub fn keep_looked(location: &str, now: &str) {
    let mut looked = kept();
    looked.insert(config::place_of(location), now.to_owned());
    while looked.len() > DATABASES {
        let Some(oldest) = looked.iter().min_by_key(|(_, at)| *at).map(|(location, _)| location.clone()) else { break };
        looked.remove(&oldest);
    }
    let Some(path) = path() else { return };
    let text = serde_json::to_string_pretty(&looked).unwrap_or_default();
    if path.parent().is_some_and(|folder| private_file::folder(folder).is_ok()) {
        let _ = private_file::replace(&path, text.as_bytes());
    }
}
