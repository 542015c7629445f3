//! Erasing a person for the console: planning it, and applying it with its key and folder.

use std::sync::{Arc, Mutex, PoisonError};

use super::change::failure_of;
use crate::change::plan::erasure::{ErasureChoice, ErasureOutcome, Preview, UnfinishedErasure};
use crate::change::purge::{
    self, Desk, KeptSearch, KeptSession, NewDecisions, Progress, PurgeOptions, PurgePlan, Sink,
};
use crate::change::{Author, ChangeError, anchor, suppress};
use crate::config;
use crate::console::core::{RequestFailure, Ticket};
use crate::store::Store;

fn options(choice: &ErasureChoice) -> PurgeOptions {
    let ErasureChoice { mentions, each, account, full, .. } = choice.clone();
    PurgeOptions { mentions, each, account, full, ..PurgeOptions::default() }
}

/// The last plan of an erasure, kept while it is shown. It only serves for display: erasing makes a new plan.
#[derive(Clone, Default)]
pub struct Erasures {
    plan: Arc<Mutex<Option<Kept>>>,
    search: Arc<Mutex<Option<LastSearch>>>,
}

/// Result of the last search for a person. Repeating the same choices requests a new search.
struct LastSearch {
    database: String,
    given: String,
    choice: ErasureChoice,
    found: KeptSearch,
}

/// A plan with the number of the request that made it.
type Kept = (Ticket, Arc<PurgePlan>);

impl Erasures {
    fn keep(&self, ticket: Ticket, plan: PurgePlan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Some((ticket, Arc::new(plan)));
    }

    /// The plan of this number, if it is still kept.
    pub fn kept(&self, ticket: Ticket) -> Option<Arc<PurgePlan>> {
        let kept = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|(number, _)| *number == ticket).map(|(_, plan)| Arc::clone(plan))
    }

    /// Returns the findings about a person from a plan of the same database with other choices.
    fn found_before(&self, store: &Store, given: &str, choice: &ErasureChoice) -> KeptSearch {
        let last = self.search.lock().unwrap_or_else(PoisonError::into_inner).take();
        let same =
            |last: &LastSearch| last.database == store.location() && last.given == given && last.choice != *choice;
        last.filter(same).map(|last| last.found).unwrap_or_default()
    }

    fn keep_found(&self, store: &Store, given: &str, choice: &ErasureChoice, found: KeptSearch) {
        let (database, given, choice) = (store.location().to_owned(), given.to_owned(), choice.clone());
        *self.search.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(LastSearch { database, given, choice, found });
    }

    pub fn forget(&self, ticket: Ticket) {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner).take_if(|(number, _)| *number == ticket);
    }
}

/// Stored erasure sessions of this database that have not ended verified.
async fn kept(store: &Store) -> Result<Vec<KeptSession>, ChangeError> {
    let own = store.records().own().await?.filter(|own| own.unread.is_none() && store.records().can_erase());
    let key = config::erasure_key(false).ok().flatten();
    let (Some(folder), Some(key), Some(own)) = (config::state_folder(), key, own) else { return Ok(Vec::new()) };
    Ok(Desk::all_kept(&folder, &key).into_iter().filter(|kept| kept.database_id == own.database_id).collect())
}

/// Erasures that have not ended verified, to be resumed.
pub async fn unfinished(store: &Store) -> Vec<UnfinishedErasure> {
    let kept = kept(store).await.unwrap_or_default().into_iter();
    kept.map(|kept| UnfinishedErasure { given: kept.subject.given, started_at: kept.started_at }).collect()
}

/// The erasure session of this person that has not ended verified, if any.
async fn begun(store: &Store, given: &str) -> Result<Option<KeptSession>, ChangeError> {
    let Some(key) = config::erasure_key(false).ok().flatten() else { return Ok(None) };
    let Some(session) = store.records().purge_of(&suppress::hmac(&key, given)).await? else { return Ok(None) };
    let is_open = matches!(session.status.as_str(), "running" | "incomplete");
    Ok(kept(store).await?.into_iter().find(|kept| is_open && kept.session == session.id))
}

/// Plans an erasure and keeps the plan under this ticket; `told` gets the progress.
pub async fn plan(
    store: &Store,
    erasures: &Erasures,
    ticket: Ticket,
    given: &str,
    choice: &ErasureChoice,
    told: &(dyn Fn(&str, u64) + Sync),
) -> Result<Box<Preview>, RequestFailure> {
    let planned = async {
        let begun = if store.records().can_erase() { begun(store, given).await? } else { None };
        let mut found = erasures.found_before(store, given, choice);
        let plan = purge::plan_any(store, given, &options(choice), &mut found, told).await;
        erasures.keep_found(store, given, choice, found);
        let plan = match (plan, begun) {
            // The person is no longer found, but the erasure is not verified yet.
            (Err(ChangeError::NotFound(_)), Some(kept)) => return purge::begun(store, &kept).await,
            (plan, begun) => (plan?, begun),
        };
        let preview = purge::preview(store, &plan.0).await?;
        erasures.keep(ticket, plan.0);
        let began = plan.1.map(|kept| kept.choice());
        Ok(Preview { unfinished: preview.unfinished || began.is_some(), began, ..preview })
    };
    planned.await.map(Box::new).map_err(|error| match error {
        ChangeError::NotFound(words) => {
            RequestFailure::new("No person is known by that name", words, "name the person differently: /")
        }
        error => failure_of("The erasure was not planned", &error),
    })
}

/// Finds all data about a person, including their account in the application; keeps no plan.
pub async fn whereabouts(
    store: &Store,
    given: &str,
    told: &(dyn Fn(&str, u64) + Sync),
) -> Result<Box<Preview>, RequestFailure> {
    let found = async {
        let all = PurgeOptions { account: true, ..PurgeOptions::default() };
        purge::preview(store, &purge::plan(store, given, &all, told).await?).await
    };
    found.await.map(Box::new).map_err(|error| failure_of("Could not find out where the person is", &error))
}

/// The key of the suppression list and the folder for sessions and receipts.
pub fn desk<'a>(author: &'a Author, progress: Progress<'a>) -> Result<Desk<'a>, ChangeError> {
    let kept = |e: &dyn std::fmt::Display| {
        ChangeError::Refused(format!("the key of the suppression list cannot be kept: {e}"))
    };
    let key = config::erasure_key(true).map_err(|e| kept(&e))?.ok_or_else(|| kept(&"it was not made"))?;
    let folder = config::state_folder().ok_or_else(|| kept(&"there is no state folder: set MNEMOSCOPE_STATE"))?;
    Ok(Desk { folder, key, author, progress, forget_kept: &config::desk::forget_kept })
}

/// Erases a person; `told` gets the progress.
pub async fn run(
    store: &Store,
    given: &str,
    choice: &ErasureChoice,
    resume: bool,
    author: &Author,
    told: &(dyn Fn(&str, u64) + Sync),
) -> Result<Box<ErasureOutcome>, RequestFailure> {
    let mut bundle = None;
    let done = async {
        let desk = desk(author, told)?;
        let exported = if choice.export && !resume {
            let to = desk.folder.join("bundles").join(crate::change::new_id());
            let (_, sha256) = purge::bundle(store, given, &PurgeOptions::default(), Sink::Folder(&to)).await?;
            bundle = Some(to.display().to_string());
            Some(sha256)
        } else {
            None
        };
        // A run is resumed here with its original choices.
        let as_asked = resume.then(NewDecisions::default);
        let mut receipt = purge::run(store, given, &options(choice), as_asked.as_ref(), &desk, exported).await?;
        // The erasure is done even if its anchor cannot be stored.
        receipt.anchor_problem = anchor::missed(store).await;
        Ok(purge::outcome(receipt))
    };
    match done.await {
        Ok(outcome) => Ok(Box::new(ErasureOutcome { exported_to: bundle, ..outcome })),
        Err(error) => {
            let mut failed = failure_of("The person was not erased", &error);
            if let Some(bundle) = bundle {
                failed.message.push_str(&format!("; the export was written to {bundle}"));
            }
            Err(failed)
        }
    }
}
