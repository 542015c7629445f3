//! Planning and applying for the core: full plans are kept here until they are applied or dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::erase::Erasures;
use crate::change::plan::past::{AsOf, Moment};
use crate::change::plan::trail::{AuditVerdict, ListedEntry};
use crate::change::plan::{Change, ChangeDanger, Plan};
use crate::change::{self, Author, ChangeError, Operation, anchor, as_of, audit, migrate, what_if};
use crate::console::core::{AppliedPlan, Proposal, Refusal, RequestFailure, Ticket};
use crate::console::overlays::unlock::WriteState;
use crate::console::screens::receipts::ENTRIES;
use crate::job::backfill::BackfillArguments;
use crate::memory::{Entity, Row, agreeing};
use crate::recall::what_if::WhatIf;
use crate::store::Store;

/// Plans waiting for confirmation, by the number of the request that made them.
#[derive(Clone, Default)]
pub struct Plans(Arc<Mutex<HashMap<Ticket, (Proposal, Plan)>>>, BackfillArguments);

impl Plans {
    /// Creates an empty collection, with the arguments for backfills.
    pub fn new(given: BackfillArguments) -> Self {
        Plans(Arc::default(), given)
    }

    pub fn given(&self) -> &BackfillArguments {
        &self.1
    }

    fn keep(&self, ticket: Ticket, proposal: Proposal, plan: Plan) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(ticket, (proposal, plan));
    }

    fn kept(&self, ticket: Ticket) -> Option<Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&ticket).map(|(_, plan)| plan.clone())
    }

    pub fn take(&self, ticket: Ticket) -> Option<(Proposal, Plan)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&ticket)
    }
}

/// Plans an operation to show its effect; the plan is not kept.
pub async fn preview(store: &Store, operation: &Operation, author: &Author) -> Result<Box<Plan>, RequestFailure> {
    let planned = change::plan(store, operation, author).await;
    planned.map(Box::new).map_err(|error| failure(&operation.title(), &error))
}

/// Compares recall before and after a kept plan; calls `told` after each situation with the number so far.
pub async fn what_if(
    store: &Store,
    (plans, erasures): (&Plans, &Erasures),
    planned: Ticket,
    kept: &[what_if::KeptQuestion],
    patient: bool,
    told: &(dyn Fn(usize) + Send + Sync),
) -> Result<Box<WhatIf>, RequestFailure> {
    let budget = if patient { what_if::PATIENCE } else { what_if::BUDGET };
    let found = match (plans.kept(planned), erasures.kept(planned)) {
        (Some(plan), _) => what_if::of_plan(store, &plan, kept, budget, told).await,
        (None, Some(plan)) => what_if::of_purge(store, &plan, kept, budget, told).await,
        (None, None) => {
            return Err(RequestFailure::new("Recall was not checked", "the plan is gone", "ask for it again"));
        }
    };
    found.map(Box::new).map_err(|error| failure_of("Recall was not checked", &error))
}

/// The database as of a moment, with a description of that; `None` for now.
pub async fn look_back(store: &Store, moment: Option<Moment>) -> Result<Option<(Store, AsOf)>, RequestFailure> {
    let Some(moment) = moment else { return Ok(None) };
    let found = as_of::view(store, &moment).await;
    found.map(Some).map_err(|error| failure_of("The past could not be read", &error))
}

/// Plans a proposal, keeps the plan, and returns it for display. Of several changes, those with nothing to do are left
/// out: `told` gets their positions.
pub async fn plan(
    store: &Store,
    plans: &Plans,
    ticket: Ticket,
    mut proposal: Proposal,
    author: &Author,
    told: impl Fn(Vec<usize>),
) -> Result<Box<Plan>, Refusal> {
    let wished = proposal.wished();
    let planned = match &proposal {
        Proposal::Changes(changes) => plan_each(store, changes, author).await,
        Proposal::Backfill { name, .. } => {
            let planned = super::job::plan(store, name, plans.given()).await;
            planned.map(|plan| (plan, Vec::new())).map_err(|error| (proposal.title(), error))
        }
    };
    match planned {
        Ok((plan, idle)) => {
            let mut shown = Box::new(plan.clone());
            if !idle.is_empty() {
                proposal.leave_out(&idle);
                let words = "{#} more already {has|have} the value and {stays|stay} unchanged";
                shown.disclosures.insert(0, agreeing(idle.len() as u64, words));
                shown.danger = shown.danger.max(ChangeDanger::Guarded);
                told(idle);
            }
            plans.keep(ticket, proposal, plan);
            Ok(shown)
        }
        Err((title, error)) => Err(refusal(store, &title, &wished, error).await),
    }
}

/// Merges several plans for display: their joint effect, and the positions of those with nothing to do if others have
/// something. Each is planned again when it is applied.
async fn plan_each(
    store: &Store,
    each: &[Operation],
    author: &Author,
) -> Result<(Plan, Vec<usize>), (String, ChangeError)> {
    let (mut whole, mut empty, mut idle) = (None, None, Vec::new());
    for (position, operation) in each.iter().enumerate() {
        let plan = change::plan(store, operation, author).await.map_err(|error| (operation.title(), error))?;
        if plan.is_empty() && plan.counts.is_empty() {
            idle.push(position);
            empty = empty.or(Some(plan));
            continue;
        }
        whole = Some(match whole {
            None => plan,
            Some(whole) => joined(whole, plan),
        });
    }
    let Some(mut whole) = whole else {
        let nothing = || ("Nothing".to_owned(), ChangeError::Usage("nothing was asked for".to_owned()));
        return empty.map(|plan| (plan, Vec::new())).ok_or_else(nothing);
    };
    let changing = each.len() - idle.len();
    if changing > 1 {
        whole.danger = whole.danger.max(ChangeDanger::Guarded);
        let words = format!(
            "these are {changing} changes, each planned again in turn, with its own audit entry: if one is refused, \
             those before it stay and can be undone one by one"
        );
        whole.disclosures.insert(0, words);
    }
    Ok((whole, idle))
}

fn joined(mut whole: Plan, next: Plan) -> Plan {
    for (table, verbs) in next.counts {
        let counts = whole.counts.entry(table).or_default();
        for (verb, rows) in verbs {
            *counts.entry(verb).or_default() += rows;
        }
    }
    whole.changes.extend(next.changes);
    whole.changes_total += next.changes_total;
    whole.danger = whole.danger.max(next.danger);
    let new =
        |known: &[String], words: Vec<String>| words.into_iter().filter(|w| !known.contains(w)).collect::<Vec<_>>();
    let (effects, disclosures) = (new(&whole.effects, next.effects), new(&whole.disclosures, next.disclosures));
    whole.effects.extend(effects);
    whole.disclosures.extend(disclosures);
    whole.mutations.extend(next.mutations);
    whole.undo_reason = whole.undo_reason.or(next.undo_reason);
    whole
}

/// Applies a kept plan, and stores an anchor of the trail outside the database at once, as a session may end abruptly.
pub async fn apply(store: &Store, kept: Option<(Proposal, Plan)>, author: &Author) -> AppliedPlan {
    let mut applied = carry_out(store, kept, author).await;
    if let Some((_, last)) = applied.receipts.last_mut() {
        last.disclosures.extend(anchor::missed(store).await);
    }
    applied
}

/// Applies a kept plan. Several changes are planned and applied one after the other, up to the first refusal.
async fn carry_out(store: &Store, kept: Option<(Proposal, Plan)>, author: &Author) -> AppliedPlan {
    let Some((proposal, plan)) = kept else {
        let failure = RequestFailure::new("The change was not made", "its plan is gone", "ask for it again");
        return AppliedPlan { receipts: Vec::new(), refusal: Some(Refusal::Failed(failure)) };
    };
    let each = proposal.changes();
    if each.len() <= 1 {
        return match change::apply(store, &plan, author).await {
            Ok(receipt) => AppliedPlan { receipts: vec![(0, receipt)], refusal: None },
            Err(error) => {
                let refusal = refusal(store, &proposal.title(), &plan.changes, error).await;
                AppliedPlan { receipts: Vec::new(), refusal: Some(refusal) }
            }
        };
    }
    let mut applied = AppliedPlan::default();
    for (position, single) in each.iter().enumerate() {
        match change::plan_and_apply(store, author, || change::plan(store, single, author)).await {
            Ok((_, receipt)) => applied.receipts.push((position, receipt)),
            Err(error) => {
                applied.refusal = Some(refusal(store, &single.title(), &[], error).await);
                break;
            }
        }
    }
    applied
}

/// Explains to users why a change was not made; if rows have changed, includes their current state.
async fn refusal(store: &Store, title: &str, changes: &[Change], error: ChangeError) -> Refusal {
    match error {
        ChangeError::Conflict { message, rows } => {
            Refusal::Conflict { message, rows, now: rows_now(store, changes).await }
        }
        error => Refusal::Failed(failure(title, &error)),
    }
}

async fn rows_now(store: &Store, changes: &[Change]) -> Vec<Option<Row>> {
    const LOOKED_AT: usize = 20;
    let mut rows = Vec::new();
    for change in changes.iter().take(LOOKED_AT) {
        let row = match Entity::parse(&change.entity) {
            Some(entity) => store.row(entity, &change.id).await.ok().flatten(),
            None => None,
        };
        rows.push(row);
    }
    rows
}

/// A refusal of the change with this title, for people. A long title is cut at its end.
pub fn failure(title: &str, error: &ChangeError) -> RequestFailure {
    failure_of(&format!("Not done: {title}"), error)
}

/// A refusal for people; `what` is a sentence that names the failed action.
pub fn failure_of(what: &str, error: &ChangeError) -> RequestFailure {
    let remedy = match error {
        ChangeError::Store(error) => return super::load::failure(what, error),
        ChangeError::Usage(_) => "nothing was written; correct it and try again",
        // The card offers to read again.
        ChangeError::NotFound(_) => "",
        ChangeError::Conflict { .. } => "r reads again; then decide again",
        error if lacks_trail(error) => return no_trail("No audit trail yet"),
        ChangeError::Refused(_) => "nothing was written",
        ChangeError::Broken(_) => "check the trail with: audit verify",
        ChangeError::Failed(_) => "try again",
        ChangeError::Paused(_) => "resume it",
        ChangeError::Uncertain(_) => "check whether it was written before you repeat it",
    };
    let message = error.to_string();
    // The message may contain the remedy already.
    let remedy = Some(remedy.to_owned()).filter(|remedy| !message.to_lowercase().contains(remedy.as_str()));
    let failure = RequestFailure { remedy, ..RequestFailure::bare(what, message) };
    if matches!(error, ChangeError::Usage(_) | ChangeError::Refused(_)) { failure.as_refusal() } else { failure }
}

fn lacks_trail(error: &ChangeError) -> bool {
    matches!(error, ChangeError::Refused(reason) if reason.contains(audit::NO_TRAIL))
}

fn no_trail(what: impl Into<String>) -> RequestFailure {
    RequestFailure::absent(
        what,
        "This database has no audit trail yet. Every change made with this program is recorded there, so nothing can \
         be changed before it exists.",
        "U shows the tables that it needs, asks, and adds them.",
    )
}

/// Checks whether and how the database can be written.
pub async fn writable(store: &Store) -> Result<WriteState, RequestFailure> {
    if let Some(reason) = store.why_not_writable() {
        return Ok(WriteState { blocked: Some(reason.to_owned()), ..WriteState::default() });
    }
    let failed = |e: ChangeError| failure_of("The state of the database could not be read", &e);
    let state = migrate::state(store).await.map_err(failed)?;
    let audited = !state.applied.is_empty();
    if audited && let Some((reason, remedy)) = store.report().trail_refused().await.map_err(|e| failed(e.into()))? {
        return Ok(WriteState { blocked: Some(reason), remedy: Some(remedy), ..WriteState::default() });
    }
    Ok(WriteState { audited, pending: state.pending, ..WriteState::default() })
}

/// Applies the pending migrations, including the optional ones of these names, and returns the names of those applied.
pub async fn migrate(store: &Store, author: &Author, optional: Vec<String>) -> Result<Vec<String>, RequestFailure> {
    let choice = migrate::MigrationChoice { to: None, optional };
    let outcome = migrate::apply_chosen(store, author, &choice).await;
    Ok(outcome.map_err(|e| failure_of("The migrations were not all applied", &e))?.applied)
}

/// Verifies our audit trail against the stored anchors; `told` gets the number of entries read.
pub async fn verify_trail(store: &Store, told: &(dyn Fn(usize) + Sync)) -> Result<Box<AuditVerdict>, RequestFailure> {
    let walked = anchor::walk(store, &[], told).await;
    walked.map(Box::new).map_err(|e| failure_of("The audit trail could not be checked", &e))
}

/// Entries of our trail, newest first.
pub async fn trail(store: &Store, before: Option<i64>) -> Result<Vec<ListedEntry>, RequestFailure> {
    let failed = |e: ChangeError| match e {
        e if lacks_trail(&e) => no_trail("No changes yet"),
        e => failure_of("The list of changes could not be read", &e),
    };
    audit::latest(store, before, ENTRIES).await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_is_not_said_twice() {
        let remedy = |words: &str| failure("Edit", &ChangeError::Failed(words.to_owned())).remedy;
        assert_eq!(remedy("it gave up after 12 s. Try again when it has finished"), None);
        assert_eq!(remedy("the disk failed").as_deref(), Some("try again"));
    }
}
