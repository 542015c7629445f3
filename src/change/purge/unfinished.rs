//! Erasures that began here and have not ended verified, as the database and the state folder know them.

use std::path::Path;

use super::desk;
use super::planning::erased_as;
use super::subject::PurgeSubject;
use crate::change::ChangeError;
use crate::change::anchor::AnchorSpot;
use crate::store::Store;

/// People whose erasure here has not ended verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnfinishedPurges {
    /// The people, as given when it began.
    pub given: Vec<String>,
    /// Ids of the sessions that do not say whom they are about: their files are not in the state folder.
    pub unnamed: Vec<String>,
}

/// Returns the erasures of this database that have not ended verified. `state` is the folder with their sessions.
///
/// # Errors
/// The engine's refusal.
pub async fn unfinished_purges(store: &Store, state: Option<&Path>) -> Result<UnfinishedPurges, ChangeError> {
    let records = store.records();
    let mut found = UnfinishedPurges::default();
    let Some(own) = records.own().await?.filter(|own| own.unread.is_none() && records.can_erase()) else {
        return Ok(found);
    };
    let stages = match (state, records.secret()) {
        (Some(state), Some(key)) => desk::stages_of(state, key, &own.database_id, &AnchorSpot::of(store).await?.0),
        _ => Vec::new(),
    };
    let mut open: Vec<String> = records.open_purges().await?.into_iter().map(|purge| purge.id).collect();
    for stage in stages {
        // A session that the database does not know wrote nothing, or what it wrote was restored away.
        let is_over = records.purge_session(stage.session()).await?.is_some_and(|purge| !purge.is_open());
        open.retain(|session| session != stage.session());
        if !is_over {
            found.given.push(stage.asked().given);
        }
    }
    found.given.sort();
    found.given.dedup();
    found.unnamed = open;
    Ok(found)
}

/// Whether an erasure of a person has not ended verified; `false` if our role may not read that.
///
/// # Errors
/// The engine's refusal.
pub async fn is_unfinished(store: &Store, given: &str, subject: Option<&PurgeSubject>) -> Result<bool, ChangeError> {
    let known = subject.into_iter().flat_map(|subject| subject.ids.iter().map(String::as_str));
    for handle in known.chain([given]) {
        let session = match erased_as(store, handle).await {
            Err(ChangeError::Store(error)) if error.is_denied() => return Ok(false),
            session => session?,
        };
        if session.is_some_and(|session| session.is_open()) {
            return Ok(true);
        }
    }
    Ok(false)
}
