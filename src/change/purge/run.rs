//! A whole erasure: plan, session, batches, physical pass, verification, receipt; and going on with one that stopped.

use std::collections::BTreeMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::batches;
use super::desk::{Desk, Kept};
use super::disclose::STANDING;
use super::mention;
use super::plan::{self, Options, PurgePlan};
use super::prove::{self, Proof};
use super::subject;
use crate::change::draft::writable;
use crate::change::plan::{Counts, canonical};
use crate::change::suppress::hmac;
use crate::change::{ChangeError, new_id, now};
use crate::store::Store;
use crate::store::erasing::PurgeSession;
use crate::store::own::Own;
use crate::store::stored::TableName;

/// Seconds that a kept plan lasts.
const PLAN_LASTS: f64 = 7.0 * 86_400.0;

/// Erases a person. Gives the receipt; its status is `verified`, `verified with disclosures` or `incomplete`.
///
/// # Errors
/// As planning; [`ChangeError::Refused`] for a person under a legal hold, without our tables, or while an earlier erasure
/// of the person is unfinished; [`ChangeError::Conflict`] when rows moved: `resume` goes on then.
pub async fn run(
    store: &Store,
    given: &str,
    options: &Options,
    resume: bool,
    desk: &Desk<'_>,
    export_sha256: Option<String>,
) -> Result<Value, ChangeError> {
    as_planned(store, given, options, resume, desk, export_sha256, None).await
}

/// Erases a person as a kept plan says, if the world has not moved.
///
/// # Errors
/// As [`run`]; [`ChangeError::Conflict`] when planning now gives another plan, or the kept one is too old.
pub async fn run_kept(store: &Store, kept: &KeptPlan, desk: &Desk<'_>) -> Result<Value, ChangeError> {
    let conflict = |message: String| Err(ChangeError::Conflict { message, rows: Vec::new() });
    let own = ready(store).await?;
    if kept.database_id.as_ref().is_some_and(|id| *id != own.database_id) {
        return Err(ChangeError::Refused(format!("the plan is for another database than {}", store.location())));
    }
    let age = crate::memory::time::seconds_between(&kept.created_at, &now()).unwrap_or(f64::MAX);
    if age > PLAN_LASTS {
        return conflict(format!("the plan of {} is too old: a plan to erase a person lasts a week", kept.created_at));
    }
    as_planned(store, &kept.given, &kept.options, false, desk, None, Some(&kept.plan_id)).await
}

async fn as_planned(
    store: &Store,
    given: &str,
    options: &Options,
    resume: bool,
    desk: &Desk<'_>,
    export_sha256: Option<String>,
    plan_id: Option<&str>,
) -> Result<Value, ChangeError> {
    subject::check(given)?;
    plan::owners(store)?;
    let own = ready(store).await?;
    let earlier = store.purge_of(&hmac(&desk.key, given)).await?;
    let unfinished = earlier.filter(|s| matches!(s.status.as_str(), "running" | "incomplete"));
    match (unfinished, resume) {
        (Some(session), true) => go_on(store, &own, given, desk, session).await,
        (Some(_), false) => Err(ChangeError::Refused(format!(
            "an earlier purge of `{given}` has not ended verified: go on with it by --resume"
        ))),
        (None, true) => match plan::plan(store, given, options, desk.progress).await {
            // Killed before anything was written.
            Ok(plan) => start(store, &own, desk, plan, Instant::now(), export_sha256).await,
            Err(ChangeError::NotFound(words)) => {
                Err(ChangeError::NotFound(format!("no unfinished purge is about `{given}`; {words}")))
            }
            Err(error) => Err(error),
        },
        (None, false) => {
            let began = Instant::now();
            let plan = plan::plan_any(store, given, options, desk.progress).await?;
            // Before the decisions: a mention that is not there any more is a world that moved.
            if plan_id.is_some_and(|id| id != plan.plan_id) {
                return Err(ChangeError::Conflict {
                    message: "what belongs to the person, or names the person, is not what the plan read".to_owned(),
                    rows: Vec::new(),
                });
            }
            mention::check(&plan)?;
            start(store, &own, desk, plan, began, export_sha256).await
        }
    }
}

/// A plan in a file: enough to make it again and to see whether it is the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptPlan {
    /// `purge`.
    pub operation: String,
    /// Id of the plan.
    pub plan_id: String,
    /// Database that it is for, where it has an identity.
    pub database_id: Option<String>,
    /// The subject as it was given.
    pub given: String,
    /// How.
    pub options: Options,
    /// When it was made.
    pub created_at: String,
}

/// Our tables, with those of erasures.
///
/// # Errors
/// [`ChangeError::Refused`] with the command that adds them.
pub async fn ready(store: &Store) -> Result<Own, ChangeError> {
    let own = writable(store).await?;
    if store.can_erase() {
        return Ok(own);
    }
    let place = store.location();
    Err(ChangeError::Refused(format!(
        "{place} has no tables for erasures yet; `mnemoscope -d {place} migrate --apply` adds them"
    )))
}

/// Refuses a person under a legal hold.
///
/// # Errors
/// [`ChangeError::Refused`].
pub async fn check_hold(store: &Store, subject: &subject::Subject) -> Result<(), ChangeError> {
    let holds = store.holds().await?;
    let held = |id: &str| subject.handles.iter().any(|h| h.value.eq_ignore_ascii_case(id));
    match holds.iter().find(|(id, _)| held(id)) {
        None => Ok(()),
        Some((id, reason)) => {
            let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            Err(ChangeError::Refused(format!(
                "`{id}` is under a legal hold{why}: nothing is erased while it stands; `unhold` takes it away"
            )))
        }
    }
}

async fn start(
    store: &Store,
    own: &Own,
    desk: &Desk<'_>,
    plan: PurgePlan,
    began: Instant,
    export_sha256: Option<String>,
) -> Result<Value, ChangeError> {
    check_hold(store, &plan.subject).await?;
    let planning = began.elapsed().as_secs_f64();
    let found = plan.control.iter().filter(|(_, hits)| *hits > 0).count();
    let mut ids: Vec<String> = plan.ids.iter().cloned().collect();
    ids.sort_unstable();
    let mut kept = Kept {
        session: new_id(),
        database_id: own.database_id.clone(),
        subject: plan.subject.clone(),
        options: plan.options.clone(),
        plan_id: plan.plan_id.clone(),
        planned: plan.counts.clone(),
        control: (found, plan.control.len()),
        deletes: plan.deletes.clone(),
        ids,
        pseudonym: batches::pseudonym(),
        effects: plan.effects.clone(),
        particular: plan.particular.clone(),
        notes: plan.notes.clone(),
        broken_before: BTreeMap::new(),
        touched: touched(&plan, own),
        bytes_before: None,
        vectors: Vec::new(),
        phases: BTreeMap::from([("plan".to_owned(), planning)]),
        export_sha256,
        started_at: now(),
    };
    let began = Instant::now();
    prove::before(store, desk, &mut kept).await?;
    kept.phases.insert("control".to_owned(), began.elapsed().as_secs_f64());
    desk.keep(&kept)?;
    if let Err(error) = batches::begin(store, own, desk, &kept).await {
        // Nothing was written: nothing is to be gone on with.
        desk.forget(&kept.session);
        return Err(error);
    }
    delete(store, own, desk, kept, &plan, Counts::new()).await
}

/// Tables whose rows go or change, our own among them.
fn touched(plan: &PurgePlan, own: &Own) -> Vec<TableName> {
    let mut tables: Vec<TableName> = plan.deletes.iter().map(|rows| rows.table.clone()).collect();
    tables.extend(plan.updates.iter().map(|row| row.table.clone()));
    tables.extend((!plan.redacts.is_empty()).then(|| own.table("memory_audit_private")));
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// Goes on with a session: what is left is found anew, so that it does not matter where it stopped.
async fn go_on(
    store: &Store,
    own: &Own,
    given: &str,
    desk: &Desk<'_>,
    session: PurgeSession,
) -> Result<Value, ChangeError> {
    let Some(kept) = desk.kept(&session.id).filter(|k| k.database_id == own.database_id) else {
        return Err(ChangeError::Failed(format!(
            "the purge of `{given}` was begun elsewhere: what is needed to go on is not in {}",
            desk.folder.display()
        )));
    };
    check_hold(store, &kept.subject).await?;
    let so_far: Counts = serde_json::from_str(&session.counts).unwrap_or_default();
    let mut snapshot = store.snapshot().await?;
    let plan = plan::rest(&mut snapshot, kept.subject.clone(), &kept.options, &kept.deletes, desk.progress).await?;
    drop(snapshot);
    delete(store, own, desk, kept, &plan, so_far).await
}

async fn delete(
    store: &Store,
    own: &Own,
    desk: &Desk<'_>,
    mut kept: Kept,
    plan: &PurgePlan,
    so_far: Counts,
) -> Result<Value, ChangeError> {
    let began = Instant::now();
    let counts = batches::run(store, own, desk, &kept, plan, so_far).await?;
    *kept.phases.entry("delete".to_owned()).or_default() += began.elapsed().as_secs_f64();
    let proof = prove::after(store, desk, &mut kept).await?;
    let status = proof.status(&kept);
    finish(store, own, desk, &kept, counts, proof, status).await
}

async fn finish(
    store: &Store,
    own: &Own,
    desk: &Desk<'_>,
    kept: &Kept,
    counts: Counts,
    proof: Proof,
    status: &'static str,
) -> Result<Value, ChangeError> {
    let receipt_id = new_id();
    let mut disclosures: Vec<String> = proof.incomplete.clone();
    disclosures.extend(kept.particular.iter().chain(&proof.particular).chain(&kept.notes).chain(&proof.notes).cloned());
    disclosures.extend(STANDING.iter().map(|words| format!("{words} (as of {})", &now()[..10])));
    let mut hmacs: Vec<String> =
        kept.subject.handles.iter().filter(|h| kept.subject.is_alone(h)).map(|h| hmac(&desk.key, &h.value)).collect();
    hmacs.sort_unstable();
    let mut receipt = json!({
        "receipt_id": receipt_id,
        "plan_id": kept.plan_id,
        "operation": "purge",
        "status": status,
        "counts": counts,
        "changes": [],
        "changes_total": counts.values().flat_map(|v| v.values()).sum::<usize>(),
        "effects": kept.effects,
        "disclosures": disclosures,
        "incomplete": proof.incomplete,
        "verification": proof.to_json(kept),
        "phases_seconds": kept.phases,
        "session": kept.session,
        "database_id": kept.database_id,
        "mentions": kept.options.mentions,
        "account": if kept.options.account { "erase" } else { "keep" },
        "started_at": kept.started_at,
        "applied_at": now(),
        "actor": desk.author.actor,
        "ticket": desk.author.ticket,
        "handles_hmac": hmacs,
        "rows_erased": kept.deletes.iter().map(|rows| rows.keys.len()).sum::<usize>(),
        "undo_reason": "an erasure is not undone",
    });
    if let Some(sha256) = &kept.export_sha256 {
        receipt["export_sha256"] = Value::from(sha256.clone());
    }
    if counts != kept.planned && status != "incomplete" {
        receipt["notes"] =
            json!(["rows were written or changed by others meanwhile: what was done is more or less than the plan"]);
    }
    let hash = hex::encode(Sha256::digest(canonical(&receipt).as_bytes()));
    receipt["receipt_sha256"] = Value::from(hash.clone());
    let seq = batches::end(store, own, desk, kept, status, &counts, &hash).await?;
    receipt["audit_seq"] = Value::from(seq);
    let file = desk.keep_receipt(&receipt_id, &receipt)?;
    receipt["kept_in"] = Value::from(file.display().to_string());
    if status == "incomplete" {
        desk.keep(kept)?;
    } else {
        desk.forget(&kept.session);
    }
    Ok(receipt)
}
