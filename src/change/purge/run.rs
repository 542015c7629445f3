//! A whole erasure: plan, session, batches, physical pass, verification, receipt; and resuming one that stopped.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::iter;
use std::slice;
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::batches::{self, RunTurn};
use super::copied::CopiedTexts;
use super::decide::{self, NewDecisions};
use super::desk::{Desk, Hold, KeptSession, PurgeRequest, SessionStage};
use super::disclose::STANDING;
use super::id_set::IdSet;
use super::plan::{PurgeOptions, PurgePlan, told_silent};
use super::planned_owners;
use super::planning;
use super::prove::{self, Proof};
use super::receipt::{AccountFate, PurgeReceipt, Redecision};
use super::receipt_names::TellingNames;
use super::remains;
use super::search::KeptSearch;
use super::subject::{self, PersonHandle, is_many};
use super::taken::{GoingRows, room};
use super::verdict::{self, PurgeStatus};
use crate::change::anchor::AnchorSpot;
use crate::change::draft::writable;
use crate::change::plan::{Counts, digest_of};
use crate::change::suppress::hmac;
use crate::change::{Author, ChangeError, apply, audit, new_id, now};
use crate::ground::unfinished::UnfinishedChange;
use crate::memory::mention::binary_forms;
use crate::memory::{agreeing, json};
use crate::store::Store;
use crate::store::erasing::PurgeSession;
use crate::store::fetched::FetchedValue;
use crate::store::own::OwnTables;
use crate::store::row_list::row_digest;
use crate::store::stored::{StoredRows, TableName};

/// Operation name in a plan to erase a person.
const OPERATION: &str = "purge";

/// Seconds by which two people's clocks may differ.
const CLOCKS_DIFFER: f64 = 300.0;

/// Seconds that a stored plan is valid (7 days).
const PLAN_LASTS: f64 = 7.0 * 86_400.0;

/// Most rounds in which a run deletes data written during the deletion: agents may write without end.
const ROUNDS: usize = 3;

/// Erases a person. Returns the receipt, whose status is `verified`, `verified with disclosures` or `incomplete`.
///
/// # Errors
/// As planning; [`ChangeError::Refused`] for a person under a legal hold, without our tables, or while an earlier
/// erasure of the person is unfinished; [`ChangeError::Conflict`] if rows changed meanwhile: resuming plans the rest
/// again. With `resume`, an unfinished erasure continues with its own options, apart from new decisions.
pub async fn run(
    store: &Store,
    given: &str,
    options: &PurgeOptions,
    resume: Option<&NewDecisions>,
    desk: &Desk<'_>,
    export_sha256: Option<String>,
) -> Result<PurgeReceipt, ChangeError> {
    as_planned(store, given, options, resume, desk, export_sha256, None).await
}

/// Erases a person by a stored plan, if the database has not changed.
///
/// # Errors
/// As [`run`]; [`ChangeError::Conflict`] if planning now gives another plan, or the stored one is too old.
pub async fn run_kept(store: &Store, kept: &KeptPlan, desk: &Desk<'_>) -> Result<PurgeReceipt, ChangeError> {
    let own = ready(store).await?;
    let age = kept.check(&own, store.location())?;
    if age > PLAN_LASTS {
        let message = format!("the plan of {} is too old: a plan to erase a person lasts a week", kept.created_at);
        return Err(ChangeError::Conflict { message, rows: Vec::new() });
    }
    let author = Author {
        reason: desk.author.reason.clone().or_else(|| kept.reason.clone()),
        ticket: desk.author.ticket.clone().or_else(|| kept.ticket.clone()),
        ..desk.author.clone()
    };
    let desk = &Desk { folder: desk.folder.clone(), author: &author, ..*desk };
    as_planned(store, &kept.given, &kept.options, None, desk, None, Some(&kept.plan_id)).await
}

async fn as_planned(
    store: &Store,
    given: &str,
    options: &PurgeOptions,
    resume: Option<&NewDecisions>,
    desk: &Desk<'_>,
    export_sha256: Option<String>,
    plan_id: Option<&str>,
) -> Result<PurgeReceipt, ChangeError> {
    subject::check(given)?;
    planning::owners(store)?;
    let own = ready(store).await?;
    desk.make_receipts()?;
    desk.tidy();
    let here = AnchorSpot::of(store).await?.0;
    match (unfinished(store, given, desk).await?, resume) {
        (Some(session), Some(decisions)) => go_on(store, &own, (given, options), desk, &session, decisions).await,
        (Some(_), None) => Err(ChangeError::Refused(resume_first(given))),
        (None, Some(decisions)) => {
            again(store, &own, asked(&own, here, given, options, export_sha256), desk, decisions).await
        }
        (None, None) => {
            let asked = asked(&own, here, given, options, export_sha256);
            let hold = held(desk, &asked.session)?;
            begin(store, &own, desk, asked, plan_id, hold).await
        }
    }
}

fn asked(
    own: &OwnTables,
    here: AnchorSpot,
    given: &str,
    options: &PurgeOptions,
    export_sha256: Option<String>,
) -> PurgeRequest {
    PurgeRequest {
        session: new_id(),
        database_id: own.database_id.clone(),
        given: given.to_owned(),
        options: options.clone(),
        export_sha256,
        started_at: now(),
        spot: here,
    }
}

/// Resumes if the database has no open session: a run killed before it wrote, with its own options, or one killed
/// between its last entry and its receipt.
async fn again(
    store: &Store,
    own: &OwnTables,
    new: PurgeRequest,
    desk: &Desk<'_>,
    decisions: &NewDecisions,
) -> Result<PurgeReceipt, ChangeError> {
    let given = &new.given;
    let stages = desk.stages(&own.database_id, &new.spot);
    for stage in stages.into_iter().rev().filter(|stage| stage.is_about(&desk.key, given)) {
        let hold = held(desk, stage.session())?;
        match (store.records().purge_session(stage.session()).await?, stage) {
            (None, stage) => {
                let mut asked = stage.asked();
                asked.options = asked.options.resumed(&new.options, decisions);
                return begin(store, own, desk, asked, None, hold).await;
            }
            (Some(session), SessionStage::Planned(kept)) => return deliver(store, desk, &kept, &session).await,
            (Some(_), SessionStage::Asked(_)) => {}
        }
    }
    // Without choices from the operator, nothing begins.
    if new.options.are_chosen() {
        let hold = held(desk, &new.session)?;
        return begin(store, own, desk, new, None, hold).await;
    }
    match planning::plan(store, given, &new.options, desk.progress).await {
        Err(ChangeError::NotFound(words)) => {
            Err(ChangeError::NotFound(format!("there is no unfinished purge of `{given}`; {words}")))
        }
        Err(error) => Err(error),
        Ok(_) => Err(ChangeError::NotFound(format!(
            "there is no unfinished purge of `{given}`: nothing was written. Start one with --apply and your choices"
        ))),
    }
}

/// Returns the first of some handles that has an unfinished erasure here: it was requested or has begun, and has no
/// final receipt.
///
/// # Errors
/// The engine's refusal.
pub async fn begun<'h>(
    store: &Store,
    handles: impl Iterator<Item = &'h str>,
    desk: &Desk<'_>,
) -> Result<Option<String>, ChangeError> {
    let Some(own) = store.records().own().await?.filter(|_| store.records().can_erase()) else { return Ok(None) };
    let stages = desk.stages(&own.database_id, &AnchorSpot::of(store).await?.0);
    for handle in handles {
        let session = store.records().purge_of(&hmac(&desk.key, handle)).await?;
        if session.is_some_and(|session| session.is_open())
            || stages.iter().any(|stage| stage.is_about(&desk.key, handle))
        {
            return Ok(Some(handle.to_owned()));
        }
    }
    Ok(None)
}

/// Delivers the receipt of a run that ended but was killed before it returned it.
async fn deliver(
    store: &Store,
    desk: &Desk<'_>,
    kept: &KeptSession,
    session: &PurgeSession,
) -> Result<PurgeReceipt, ChangeError> {
    let receipt = kept.receipt.clone().filter(|receipt| receipt.receipt_sha256.as_ref() == Some(&session.receipt_hash));
    let Some(mut receipt) = receipt else {
        desk.forget(&kept.session);
        return Err(ChangeError::NotFound(format!("the purge ended {}; its receipt is not here", session.status)));
    };
    if let Some(seq) = store.records().receipt_entry(&session.receipt_hash).await? {
        receipt.audit_seq = Some(seq);
    }
    handed_over(desk, &AnchorSpot::of(store).await?.0, kept, receipt)
}

/// Removes earlier requests for the same person that wrote nothing, unless a process works on them. By now a commit
/// pending when its connection was lost has either arrived or failed.
async fn forget_asked(store: &Store, kept: &KeptSession, desk: &Desk<'_>) -> Result<(), ChangeError> {
    let others = desk.stages(&kept.database_id, &kept.spot).into_iter();
    let others = others.filter(|stage| stage.session() != kept.session);
    for stage in others.filter(|stage| stage.is_about(&desk.key, &kept.subject.given)) {
        if store.records().purge_session(stage.session()).await?.is_none_or(|session| !session.is_open())
            && let Some(_hold) = desk.hold(stage.session())?
        {
            desk.forget(stage.session());
        }
    }
    Ok(())
}

/// Locks a session for this process.
fn held(desk: &Desk<'_>, session: &str) -> Result<Hold, ChangeError> {
    desk.hold(session)?.ok_or_else(|| {
        ChangeError::Refused(
            "another process is erasing this person now: let it finish; if it stops, --resume continues it".to_owned(),
        )
    })
}

/// Begins a requested erasure; its choices are stored first. The session is locked for this process.
async fn begin(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    asked: PurgeRequest,
    plan_id: Option<&str>,
    _hold: Hold,
) -> Result<PurgeReceipt, ChangeError> {
    desk.keep_asked(&asked)?;
    let session = asked.session.clone();
    match prepare(store, own, desk, asked, plan_id, None).await {
        Ok((kept, plan, turn)) => {
            forget_asked(store, &kept, desk).await?;
            delete(store, own, desk, kept, plan, Counts::new(), turn).await
        }
        // The session file is kept in case the commit arrives after all.
        Err(ChangeError::Uncertain(words)) => {
            Err(ChangeError::Uncertain(format!("{words}. The purge may have started: --resume continues or starts it")))
        }
        Err(error) => {
            if store.records().purge_session(&session).await.is_ok_and(|begun| begun.is_none()) {
                desk.forget(&session);
            }
            Err(error)
        }
    }
}

/// A plan in a file: enough to compute it again and to compare the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptPlan {
    /// `purge`.
    pub operation: String,
    /// Id of the plan.
    pub plan_id: String,
    /// Database that the plan is for; a plan without one is refused.
    pub database_id: Option<String>,
    /// The subject as it was given.
    pub given: String,
    /// Options of the erasure.
    pub options: PurgeOptions,
    /// Time when the plan was made.
    pub created_at: String,
    /// Reason in free words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Ticket that requests it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// SHA-256 of all of the above, in hexadecimal.
    pub sha256: String,
}

impl KeptPlan {
    /// Creates the stored form of a plan.
    pub fn new(plan: &PurgePlan, own: &OwnTables, given: &str, options: PurgeOptions, author: &Author) -> Self {
        let mut kept = KeptPlan {
            operation: OPERATION.to_owned(),
            plan_id: plan.plan_id.clone(),
            database_id: Some(own.database_id.clone()),
            given: given.to_owned(),
            options,
            created_at: plan.created_at.clone(),
            reason: author.reason.clone(),
            ticket: author.ticket.clone(),
            sha256: String::new(),
        };
        kept.sha256 = kept.digest();
        kept
    }

    /// Reads a stored plan; `None` if the file holds a plan of another kind.
    ///
    /// # Errors
    /// [`ChangeError::Usage`] if a field has an invalid value.
    pub fn from_file(text: &str) -> Option<Result<KeptPlan, ChangeError>> {
        json::members(text)?.iter().find(|(name, _)| name == "given")?;
        let bad = |e| ChangeError::Usage(format!("this is not a plan to erase a person written by --plan-out: {e}"));
        Some(serde_json::from_str(text).map_err(bad))
    }

    fn digest(&self) -> String {
        let bare = KeptPlan { sha256: String::new(), ..self.clone() };
        digest_of(&bare)
    }

    /// Checks that the plan is for this database, and returns its age in seconds.
    fn check(&self, own: &OwnTables, location: &str) -> Result<f64, ChangeError> {
        let refused = |words: String| Err(ChangeError::Refused(format!("{words}; make a new one")));
        if self.operation != OPERATION {
            return refused(format!("the plan calls itself `{}` but is a plan to erase a person", self.operation));
        }
        match &self.database_id {
            Some(id) if *id == own.database_id => {}
            Some(_) => return refused(format!("the plan is for another database than {location}")),
            None => return refused("the plan does not say which database it is for".to_owned()),
        }
        let Some(age) = crate::memory::time::seconds_between(&self.created_at, &now()) else {
            return refused(format!("the plan has an unreadable time: `{}`", self.created_at));
        };
        if age < -CLOCKS_DIFFER {
            return refused(format!("the plan was made in the future, at {}", self.created_at));
        }
        if self.digest() != self.sha256 {
            return Err(ChangeError::Usage("the plan was changed after it was made; make a new one".to_owned()));
        }
        Ok(age)
    }
}

/// Returns our tables, if those for erasures exist.
///
/// # Errors
/// [`ChangeError::Refused`] with the command that adds them.
pub async fn ready(store: &Store) -> Result<OwnTables, ChangeError> {
    let own = writable(store).await?;
    if store.records().can_erase() {
        return Ok(own);
    }
    Err(ChangeError::Refused(format!(
        "{} has no tables for erasures yet; `{}` adds them",
        store.location(),
        store.invocation().line(["migrate", "--apply"])
    )))
}

/// Returns our tables, if our role may also write the tables of a plan.
///
/// # Errors
/// As [`ready`]; [`StoreError::Denied`](crate::store::StoreError::Denied) with the GRANT that helps;
/// [`ChangeError::Refused`] if the database would delete rows by cascade that our role does not see.
pub async fn ready_for(store: &Store, plan: &PurgePlan) -> Result<OwnTables, ChangeError> {
    let own = ready(store).await?;
    check_rights(store, plan).await?;
    Ok(own)
}

/// Refuses tables that our role may not write, and rows that the database would delete by cascade unseen.
async fn check_rights(store: &Store, plan: &PurgePlan) -> Result<(), ChangeError> {
    store.records().check_rights(&plan.counts).await?;
    match apply::unseen_with(store, plan.losing()).await? {
        None => Ok(()),
        Some((table, words)) => Err(apply::not_seen(&table, &words)),
    }
}

/// Returns the person's earlier erasure, by a handle, if it has not ended verified.
///
/// # Errors
/// The engine's refusal.
pub async fn unfinished(store: &Store, given: &str, desk: &Desk<'_>) -> Result<Option<PurgeSession>, ChangeError> {
    Ok(store.records().purge_of(&hmac(&desk.key, given)).await?.filter(PurgeSession::is_open))
}

/// Message that refuses an erasure while an earlier one is unfinished.
pub fn resume_first(given: &str) -> String {
    format!("an earlier purge of `{given}` did not end as verified: resume it with --resume")
}

/// Refuses a reason or a ticket that names the person, because both are stored.
fn check_author(subject: &subject::PurgeSubject, author: &Author) -> Result<(), ChangeError> {
    let said = [&author.reason, &author.ticket].map(|said| said.as_deref().unwrap_or_default().to_lowercase());
    let names = |handle: &subject::PersonHandle| said.iter().any(|said| said.contains(&handle.value.to_lowercase()));
    if subject.searched().filter(|handle| handle.common.is_none()).any(names) {
        return Err(ChangeError::Usage(
            "--reason or --ticket names the person, and both are stored: use other words".to_owned(),
        ));
    }
    Ok(())
}

/// Refuses a person under a legal hold.
///
/// # Errors
/// [`ChangeError::Refused`].
pub async fn check_hold(store: &Store, subject: &subject::PurgeSubject) -> Result<(), ChangeError> {
    check_held(store, subject.handles.iter().map(|handle| handle.value.as_str())).await
}

/// Refuses a person of whom any handle is under a legal hold.
///
/// # Errors
/// [`ChangeError::Refused`].
pub async fn check_held<'h>(store: &Store, handles: impl Iterator<Item = &'h str>) -> Result<(), ChangeError> {
    let handles: Vec<&str> = handles.collect();
    refuse_held(store, &store.records().holds().await?, &handles)?;
    let lost = match audit::lost::holds(store).await {
        Err(error) if error.is_denied() => return Ok(()),
        lost => lost?,
    };
    match lost.iter().find(|(id, _)| handles.iter().any(|handle| handle.eq_ignore_ascii_case(id))) {
        None => Ok(()),
        Some((id, seq)) => Err(ChangeError::Refused(format!(
            "`{id}` is under a legal hold: entry {seq} of the audit trail placed it, and no entry removed it, but its \
             row is missing. `{}` places it again; then `unhold` can remove it",
            store.invocation().about(&["hold"], &[id], &["--apply"])
        ))),
    }
}

/// Refuses a person of whom any handle is in a list of active holds.
///
/// # Errors
/// [`ChangeError::Refused`].
pub fn refuse_held(store: &Store, holds: &[(String, String)], handles: &[&str]) -> Result<(), ChangeError> {
    let held = |id: &str| handles.iter().any(|handle| handle.eq_ignore_ascii_case(id));
    match holds.iter().find(|(id, _)| held(id)) {
        None => Ok(()),
        Some((id, reason)) => {
            let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            Err(ChangeError::Refused(format!(
                "`{id}` is under a legal hold{why}: nothing is erased while the hold exists; `{}` removes it",
                store.invocation().about(&["unhold"], &[id], &["--apply"])
            )))
        }
    }
}

/// Plans, searches before the deletion, and writes the session to the database, or takes over a session whose file is
/// lost.
async fn prepare(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    asked: PurgeRequest,
    plan_id: Option<&str>,
    lost: Option<(&PurgeSession, &NewDecisions)>,
) -> Result<(KeptSession, PurgePlan, RunTurn), ChangeError> {
    let began = Instant::now();
    let mut search = KeptSearch::default();
    let planned = planning::plan_any(store, &asked.given, &asked.options, &mut search, desk.progress).await;
    let mut plan = match (planned, lost) {
        // The rows that identified the person are deleted already.
        (Err(ChangeError::NotFound(_)), Some(_)) => {
            let subject = subject::by_words(&asked.given, &asked.options.aliases)?;
            let also = (&[][..], &mut search);
            planning::rest(&mut store.snapshot().await?, subject, &asked.options, also, desk.progress).await?
        }
        (planned, _) => planned?,
    };
    if plan.is_unowned {
        return Err(ChangeError::Refused(planning::UNOWNED.to_owned()));
    }
    // Checked before the decisions: if a mention no longer exists, the database has changed.
    if plan_id.is_some_and(|id| id != plan.plan_id) {
        return Err(ChangeError::Conflict {
            message: "the rows that belong to or name the person differ from those that the plan read".to_owned(),
            rows: Vec::new(),
        });
    }
    decide::check(&plan)?;
    subject::refuse_long(&plan.subject)?;
    check_hold(store, &plan.subject).await?;
    check_rights(store, &plan).await?;
    check_author(&plan.subject, desk.author)?;
    let planning = began.elapsed().as_secs_f64();
    let found = plan.control.iter().filter(|(_, hits)| *hits > 0).count();
    let mut kept = KeptSession {
        session: asked.session,
        database_id: asked.database_id,
        // From here on the person is in the session only.
        subject: std::mem::take(&mut plan.subject),
        options: asked.options,
        plan_id: plan.plan_id.clone(),
        planned: lost.map_or_else(|| plan.counts.clone(), |(session, _)| sum(&counts_of(session), &plan.counts)),
        control: (found, plan.control.len()),
        deletes: plan.deletes.clone(),
        ids: plan.ids.clone(),
        pseudonym: batches::pseudonym(),
        effects: plan.effects.clone(),
        particular: plan.particular.clone(),
        shared: plan.shared.clone(),
        old_hashes: plan.old.hashes.clone(),
        old_vectors: plan.old.vectors.clone(),
        left: plan.tally.iter().map(|(place, tally)| (place.clone(), tally.left_together())).collect(),
        left_references: plan.left_references.clone(),
        notes: plan.notes.clone(),
        silent: plan.silent.clone(),
        broken_before: BTreeMap::new(),
        touched: touched(&plan, own),
        named_in: plan.mentions.iter().map(|m| m.table.clone()).collect::<BTreeSet<_>>().into_iter().collect(),
        side_indexes: Vec::new(),
        bytes_before: None,
        vectors: Vec::new(),
        copied: CopiedTexts::default(),
        phases: BTreeMap::from([("plan".to_owned(), planning)]),
        export_sha256: asked.export_sha256,
        started_at: asked.started_at,
        spot: asked.spot,
        redecided: Vec::new(),
        is_anew: lost.is_some(),
        receipt: None,
    };
    kept.options.each.extend(decide::moved(&plan, &kept.pseudonym));
    let began = Instant::now();
    kept.copied = CopiedTexts::before(&mut store.snapshot().await?, &plan).await?;
    prove::before(store, desk, &mut kept).await?;
    kept.phases.insert("control".to_owned(), began.elapsed().as_secs_f64());
    desk.keep(&kept)?;
    let turn = match lost {
        None => batches::begin(store, own, desk, &kept).await?,
        Some((session, decisions)) => batches::take_over(store, own, desk, &kept, session, decisions).await?,
    };
    Ok((kept, plan, turn))
}

/// Tables with deleted or changed rows, including our own.
fn touched(plan: &PurgePlan, own: &OwnTables) -> Vec<TableName> {
    let mut tables: Vec<TableName> = plan.deletes.iter().map(|rows| rows.table.clone()).collect();
    tables.extend(plan.owned.iter().map(|owned| owned.rows.table.clone()));
    tables.extend(plan.updates.iter().map(|row| row.table.clone()));
    tables.extend(plan.along_rows().map(|rows| rows.table.clone()));
    tables.extend((!plan.redacts.is_empty()).then(|| own.table("memory_audit_private")));
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// Adds new decisions to a session: mentions that they leave count as left by choice, deletions join the rest.
fn decide(kept: &mut KeptSession, plan: &PurgePlan, desk: &Desk<'_>, decisions: &NewDecisions) {
    for (place, tally) in plan.tally.iter().filter(|(place, _)| decisions.covers(place)) {
        kept.left.insert(place.clone(), tally.left_together());
    }
    kept.options.each.extend(decide::moved(plan, &kept.pseudonym));
    for (kept, words) in [(&mut kept.old_hashes, &plan.old.hashes), (&mut kept.old_vectors, &plan.old.vectors)] {
        let new: Vec<String> = words.iter().filter(|words| !kept.contains(words)).cloned().collect();
        kept.extend(new);
    }
    let (at, actor) = (now(), desk.author.actor.clone());
    kept.redecided.push(Redecision { mentions: decisions.all, each: decisions.tally(), at, actor });
}

/// Adds the deletions of a new plan to a session, and notes the rows `chosen` for their contents by an earlier plan
/// that now stay. `some_went`: some rows of the earlier plan are deleted already.
fn take_in(kept: &mut KeptSession, plan: &PurgePlan, own: &OwnTables, chosen: &[GoingRows], some_went: bool) {
    for rows in &plan.deletes {
        match kept.deletes.iter_mut().find(|known| known.table == rows.table && known.by == rows.by) {
            Some(known) => known.extend(rows),
            None => kept.deletes.push(rows.clone()),
        }
    }
    let mut ids = IdSet::new(&room());
    kept.ids.iter().chain(plan.ids.iter()).for_each(|id| ids.insert(&id));
    kept.ids = Arc::new(ids);
    let tables: BTreeSet<TableName> = kept.touched.drain(..).chain(touched(plan, own)).collect();
    kept.touched = tables.into_iter().collect();
    for there in chosen {
        let going = plan.deletes.iter().filter(|rows| rows.table == there.table).flat_map(GoingRows::all_keys);
        let going: HashSet<[u64; 2]> = going.map(|key| row_digest(&key)).collect();
        let stay = there.without(&going).len();
        let what = "{#} {row|rows} that {was|were} to be deleted because of what others wrote {stays|stay}: {it no \
                    longer names|they no longer name} the person, or {it was|they were} decided otherwise";
        let hung = if some_went { "; rows that depended on {it|them} may have been deleted before" } else { "" };
        kept.notes.extend((stay > 0).then(|| agreeing(stay, &format!("{}: {what}{hung}", there.table.title()))));
    }
}

/// Refuses options that reach further than the unfinished erasure: its person and its scope are fixed.
fn check_reach(kept: &KeptSession, options: &PurgeOptions) -> Result<(), ChangeError> {
    let knows = |alias: &&String| {
        let mut handles = kept.subject.handles.iter().map(|handle| &handle.value);
        kept.options.aliases.contains(alias) || handles.any(|known| known.eq_ignore_ascii_case(alias))
    };
    let further = options.aliases.iter().find(|alias| !knows(alias)).map(|alias| format!("--alias {alias}"));
    let account = (options.account && !kept.options.account).then(|| "--account erase".to_owned());
    further.or(account).map_or(Ok(()), |option| {
        Err(ChangeError::Usage(format!(
            "the unfinished purge was started without {option}: resume it without it, then purge again with it"
        )))
    })
}

/// The error if the session's file is not here, and its choices were not repeated.
fn begun_elsewhere(given: &str, desk: &Desk<'_>) -> ChangeError {
    ChangeError::Refused(format!(
        "the purge of `{given}` was started elsewhere, and what is needed to continue is not in {}: resume it there. \
         If that is lost, repeat its choices with --resume, and name each handle of the person with --alias: some of \
         them were in rows that are gone",
        desk.folder.display()
    ))
}

/// Resumes a session. It searches for what is left, so it does not matter where the earlier run stopped. If the
/// session's file is lost, the operator repeats the choices and it is planned again.
async fn go_on(
    store: &Store,
    own: &OwnTables,
    (given, options): (&str, &PurgeOptions),
    desk: &Desk<'_>,
    session: &PurgeSession,
    decisions: &NewDecisions,
) -> Result<PurgeReceipt, ChangeError> {
    let _hold = held(desk, &session.id)?;
    let so_far = counts_of(session);
    let Some(mut kept) = desk.kept(&session.id)?.filter(|k| k.database_id == own.database_id) else {
        if !options.are_chosen() {
            return Err(begun_elsewhere(given, desk));
        }
        let here = AnchorSpot::of(store).await?.0;
        let asked = PurgeRequest { session: session.id.clone(), ..asked(own, here, given, options, None) };
        let (kept, plan, turn) = prepare(store, own, desk, asked, None, Some((session, decisions))).await?;
        return delete(store, own, desk, kept, plan, so_far, turn).await;
    };
    check_reach(&kept, options)?;
    check_author(&kept.subject, desk.author)?;
    check_hold(store, &kept.subject).await?;
    let before = kept.options.each.clone();
    kept.options = kept.options.resumed(options, decisions);
    let plan = plan_rest(store, own, desk, &mut kept).await?;
    if !decisions.is_empty() {
        decisions.check(&plan, &before)?;
        decide(&mut kept, &plan, desk, decisions);
        kept.planned = sum(&so_far, &plan.counts);
    }
    desk.keep(&kept)?;
    // Fails if another run has committed a batch since the plan was made.
    let turn = batches::take_over(store, own, desk, &kept, session, decisions).await?;
    delete(store, own, desk, kept, plan, so_far, turn).await
}

/// Plans the rest of a session, and adds the deletions of this plan to it.
async fn plan_rest(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    kept: &mut KeptSession,
) -> Result<PurgePlan, ChangeError> {
    let mut snapshot = store.snapshot().await?;
    let planned: usize = kept.deletes.iter().map(|rows| rows.len() - rows.own()).sum();
    let going = (&mut kept.deletes[..], &mut kept.ids);
    let person = (&*kept.subject.ids, kept.options.account);
    let chosen = planned_owners::drop_moved(&mut snapshot, going, person).await?;
    let also = (&kept.deletes[..], &mut KeptSearch::default());
    let mut plan = planning::rest(&mut snapshot, kept.subject.clone(), &kept.options, also, desk.progress).await?;
    drop(snapshot);
    check_rights(store, &plan).await?;
    let there: usize = chosen.iter().map(GoingRows::len).sum();
    take_in(kept, &plan, own, &chosen, there < planned);
    if let Some(account) = &plan.nameless {
        // The first run may have created it for pseudonyms of later batches.
        let made = StoredRows::with(&account.table, &account.id, FetchedValue::Text(kept.pseudonym.clone()));
        if !store.shapes().images(&made).await?.is_empty() {
            plan.nameless = None;
        }
    }
    Ok(plan)
}

/// Rows that a session has changed, by table.
fn counts_of(session: &PurgeSession) -> Counts {
    serde_json::from_str(&session.counts).unwrap_or_default()
}

/// Adds the counts of two runs.
fn sum(one: &Counts, other: &Counts) -> Counts {
    let mut sum = one.clone();
    for (table, verbs) in other {
        for (verb, rows) in verbs {
            *sum.entry(table.clone()).or_default().entry(verb.clone()).or_default() += rows;
        }
    }
    sum
}

async fn delete(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    mut kept: KeptSession,
    plan: PurgePlan,
    so_far: Counts,
    mut turn: RunTurn,
) -> Result<PurgeReceipt, ChangeError> {
    let _unfinished = UnfinishedChange::new(
        "the purge is paused, and what it did stays; repeat the command with --resume to \
         continue",
    );
    let here = AnchorSpot::of(store).await?.0;
    let mut counts = so_far;
    let mut proof = erase(store, own, desk, &mut kept, (plan, &mut counts), &mut turn).await?;
    for _ in 0..ROUNDS {
        if !proof.is_late() {
            break;
        }
        let plan = plan_rest(store, own, desk, &mut kept).await.map_err(|error| unproved(&error))?;
        if plan.is_empty() && plan.redacts.is_empty() {
            break;
        }
        desk.keep(&kept).map_err(|error| unproved(&error))?;
        proof = erase(store, own, desk, &mut kept, (plan, &mut counts), &mut turn).await?;
    }
    let alone = kept.subject.handles.iter().filter(|handle| kept.subject.is_alone(handle));
    let alone = alone.map(|handle| (&*handle.value, handle.common.is_none()));
    let ids = kept.subject.ids.iter().chain([&kept.subject.given]).map(|id| (&**id, false));
    let handles: Vec<(&str, bool)> = alone.chain(ids).collect();
    if let Err(why) = (desk.forget_kept)(store.location(), &handles) {
        proof.notes.push(format!("what the console keeps about this database may name the person: {why}"));
    }
    // If the process died between the entry in the trail and the file, the receipt would be lost.
    let names = TellingNames::of(store, &kept.subject).await.map_err(|error| unproved(&error))?;
    kept.receipt = Some(receipt(desk, &kept, &counts, &proof, &names));
    desk.keep(&kept).map_err(|error| unproved(&error))?;
    let mut receipt = kept.receipt.take().unwrap_or_default();
    let hash = receipt.receipt_sha256.as_deref().unwrap_or_default();
    let seq = batches::end(store, own, desk, &kept, receipt.status.word(), &counts, hash, &turn).await?;
    receipt.audit_seq = Some(seq);
    handed_over(desk, &here, &kept, receipt)
}

/// Deletes the rows of a plan, adds their counts, and searches for what is left.
async fn erase(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    kept: &mut KeptSession,
    (plan, counts): (PurgePlan, &mut Counts),
    turn: &mut RunTurn,
) -> Result<Proof, ChangeError> {
    let began = Instant::now();
    *counts = batches::run(store, own, desk, kept, &plan, std::mem::take(counts), turn).await?;
    drop(plan);
    *kept.phases.entry("delete".to_owned()).or_default() += began.elapsed().as_secs_f64();
    prove::after(store, desk, kept).await.map_err(|error| unproved(&error))
}

/// Adds to an error that the rows are deleted but this was not verified.
fn unproved(error: &ChangeError) -> ChangeError {
    ChangeError::Failed(format!(
        "{error}: the rows are deleted, and the purge is paused before the verification; --resume continues"
    ))
}

/// Stores a receipt in the folder of receipts, and removes the session if it ended verified. A session that began at
/// another location stays, since that location still needs it: this database is a copy.
fn handed_over(
    desk: &Desk<'_>,
    here: &AnchorSpot,
    kept: &KeptSession,
    mut receipt: PurgeReceipt,
) -> Result<PurgeReceipt, ChangeError> {
    receipt.kept_in = Some(desk.keep_receipt(&receipt.receipt_id, receipt.status, &receipt)?);
    let is_needed = !kept.spot.is(here) && kept.spot.stands();
    if receipt.status != PurgeStatus::Incomplete && !is_needed {
        desk.forget(&kept.session);
    }
    desk.tidy();
    Ok(receipt)
}

/// Builds the receipt, with its hash and without the fields known only after the entry in the trail. It names nobody.
fn receipt(desk: &Desk<'_>, kept: &KeptSession, counts: &Counts, proof: &Proof, names: &TellingNames) -> PurgeReceipt {
    let status = verdict::status(&proof.findings);
    let mut disclosures: Vec<String> = proof.findings.iter().map(|finding| finding.what.clone()).collect();
    // The final search may contradict the plan.
    let still = |table: &String| !proof.places.iter().any(|place| remains::is_of(place, slice::from_ref(table)));
    let silent = kept.silent.iter().filter(|(table, _)| still(table)).map(told_silent);
    disclosures.extend(kept.notes.iter().cloned().chain(silent).chain(proof.notes.iter().cloned()));
    disclosures.extend(STANDING.iter().map(|words| format!("{words} (as of {})", &now()[..10])));
    let alone = kept.subject.handles.iter().filter(|h| kept.subject.is_alone(h));
    let forms = |h: &PersonHandle| if is_many(&h.kind) { Vec::new() } else { binary_forms(&h.value) };
    let spelled = alone.flat_map(|h| iter::once(h.value.clone()).chain(forms(h)));
    let mut handles_hmac: Vec<String> = spelled.map(|word| hmac(&desk.key, &word)).collect();
    handles_hmac.sort_unstable();
    handles_hmac.dedup();
    let moved = "other processes wrote or changed rows in the meantime: the result differs from the plan";
    let has_moved = *counts != kept.planned && status != PurgeStatus::Incomplete;
    let mut receipt = PurgeReceipt {
        receipt_id: new_id(),
        plan_id: kept.plan_id.clone(),
        operation: OPERATION.to_owned(),
        status,
        counts: counts.clone(),
        changes_total: counts.values().flat_map(|v| v.values()).sum(),
        effects: kept.effects.clone(),
        disclosures,
        incomplete: proof.incomplete(),
        findings: proof.findings.clone(),
        verification: proof.verification(kept),
        phases_seconds: kept.phases.clone(),
        session: kept.session.clone(),
        database_id: kept.database_id.clone(),
        mentions: kept.options.mentions,
        account: AccountFate::of(kept.options.account),
        started_at: kept.started_at.clone(),
        applied_at: now(),
        actor: desk.author.actor.clone(),
        ticket: desk.author.ticket.clone(),
        handles_hmac,
        rows_erased: counts.values().filter_map(|verbs| verbs.get("delete")).sum(),
        undo_reason: "an erasure cannot be undone".to_owned(),
        decisions_on_resume: kept.redecided.clone(),
        export_sha256: kept.export_sha256.clone(),
        notes: if has_moved { vec![moved.to_owned()] } else { Vec::new() },
        ..PurgeReceipt::default()
    };
    names.leave(&mut receipt);
    receipt.seal();
    receipt
}
