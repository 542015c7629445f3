//! Executes a plan: checks everything it read again under lock, then writes data and audit entry in one transaction.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::anchor;
use super::audit::{self, NewEntry};
use super::draft::writable;
use super::operation::Operation;
use super::plan::{Change, Plan, Receipt, canonical, canonical_list};
use super::read_back::ReadBack;
use super::remove::RowKeys;
use super::undo::refused_later;
use super::waiting::WaitingTries;
use super::{ChangeError, FailedTransaction, new_id, now};
use crate::layout::Engine;
use crate::memory::{agreeing, time};
use crate::store::fetched::FetchedValue;
use crate::store::own::OwnTables;
use crate::store::row_number::HIDDEN;
use crate::store::search_index::LaggingIndex;
use crate::store::stored::{Cell, Image, Mutation, ReadState, RowWatch, StateReading, StoredRows, TableName};
use crate::store::write::{WriteError, WriteTransaction};
use crate::store::{Store, StoreError};

/// Author of a change, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Author {
    /// Name of the operator.
    pub actor: String,
    /// Free-text reason, stored among the private values.
    pub reason: Option<String>,
    /// Ticket that requests it.
    pub ticket: Option<String>,
}

/// Inverse of one mutation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InverseMutation {
    /// The change that restores.
    pub mutation: Mutation,
    /// State of the rows after the change, which an undo checks. A revision contains this itself, row by row.
    pub expect: ReadState,
    /// Columns that were set to the time of the change, or by a trigger, with what was written: not restored when they have moved
    /// on.
    pub stamps: Vec<(String, FetchedValue)>,
}

/// Changes stored in the trail to undo an entry.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct KeptUndo {
    /// Changes that restore the previous state, in order.
    pub inverses: Vec<InverseMutation>,
    /// Rows that the undo writes to the memory's own trail.
    pub trail: Vec<Mutation>,
    /// Rows that the undo of the undo writes there.
    pub again: Vec<Mutation>,
}

impl KeptUndo {
    /// Every stored change, to rows and to the memory's own trail.
    pub fn mutations(&self) -> impl Iterator<Item = &Mutation> {
        self.inverses.iter().map(|inverse| &inverse.mutation).chain(&self.trail).chain(&self.again)
    }

    /// Whether some of its changes affect rows for which `about` is true.
    pub fn touches(&self, about: impl Fn(&StoredRows) -> bool) -> bool {
        self.inverses.iter().any(|inverse| inverse.mutation.rows().is_some_and(|rows| about(&rows)))
    }
}

/// Applies a plan.
///
/// # Errors
/// [`ChangeError::Conflict`] if rows it read have changed, [`ChangeError::Refused`] if it is for another database or
/// nothing can be written. Nothing was written then.
pub async fn apply(store: &Store, plan: &Plan, author: &Author) -> Result<Receipt, ChangeError> {
    if let Some(rules) = &plan.rules {
        keep_rules(store, plan, rules, author).await?;
    }
    apply_within(store, plan, author, &mut WaitingTries::begin()).await
}

/// Fails if the plan's rules no longer select its rows: rows that were to stay may be gone.
async fn keep_rules(store: &Store, plan: &Plan, rules: &Operation, author: &Author) -> Result<(), ChangeError> {
    let changed = |plan: &Plan| RowKeys::of(plan.mutations.iter().filter_map(Mutation::rows).map(Cow::Owned));
    let planned = changed(plan);
    let again = Box::pin(super::plan(store, rules, author)).await.map(|now| changed(&now).lack(&planned));
    if matches!(again, Ok(None)) {
        return Ok(());
    }
    // A hold or a use since then is reported as the cause.
    keep_held(store, plan).await?;
    keep_used(store, plan).await?;
    match again? {
        None => Ok(()),
        Some((table, rows)) => Err(ChangeError::Conflict {
            message: "the same rules now select other rows than when the plan was made".to_owned(),
            rows: vec![agreeing(
                rows,
                &format!("{{#}} {{row|rows}} of {} would stay or change differently", table.title()),
            )],
        }),
    }
}

/// As [`apply`], with the remaining time for waiting for others.
pub(super) async fn apply_within(
    store: &Store,
    plan: &Plan,
    author: &Author,
    waiting: &mut WaitingTries,
) -> Result<Receipt, ChangeError> {
    if plan.digest() != plan.plan_id {
        return Err(ChangeError::Usage("the plan was changed after it was made; make a new one".to_owned()));
    }
    let own = writable(store).await?;
    if own.database_id != plan.database_id {
        return Err(ChangeError::Refused(format!(
            "the plan is for the database {}, and this is {}",
            plan.database_id, own.database_id
        )));
    }
    let mut receipt = receipt(plan);
    if plan.is_empty() {
        return Ok(receipt);
    }
    let unknown = super::suppress::check(store, plan).await?;
    refuse_unseen(store, plan).await?;
    // During an open transaction this would need a third connection, which not every pooler has.
    if store.engine() == Engine::Postgres {
        keep_named(store, plan).await?;
    }
    let later = refused_later(store, plan).await?;
    loop {
        receipt.applied_at = now();
        receipt.disclosures.clone_from(&plan.disclosures);
        receipt.disclosures.extend(unknown.clone().filter(|words| !plan.disclosures.contains(words)));
        let patience = waiting.patience();
        let attempt = async {
            let mut writer = store.write_within(&receipt.applied_at, patience).await?;
            let outcome = within(&mut writer, &own, plan, author, &mut receipt).await;
            finish(writer, outcome).await
        };
        if let Some(seq) = settle(store, attempt.await, &receipt.receipt_id, waiting).await? {
            anchor::after(store, seq).await;
            return Ok(done(store, plan, receipt, seq, later));
        }
    }
}

/// Plans and applies while the rows of an earlier plan are locked, so that nobody can interfere again. Sets `is_final`
/// if a write then hits other rows than expected, since a retry would too.
///
/// # Errors
/// As planning and [`apply`].
pub(super) async fn plan_under_lock<F, P>(
    store: &Store,
    author: &Author,
    earlier: &Plan,
    plan: &mut F,
    waiting: &mut WaitingTries,
    is_final: &mut bool,
) -> Result<(Plan, Receipt), ChangeError>
where
    F: FnMut() -> P,
    P: Future<Output = Result<Plan, ChangeError>>,
{
    let own = writable(store).await?;
    loop {
        let at = now();
        let (mut planned, mut later) = (None, None);
        let mut receipt_id = String::new();
        let patience = waiting.patience();
        let attempt = async {
            let mut writer = store.write_within(&at, patience).await?;
            let outcome = async {
                for watch in earlier.watches.iter().filter(|watch| !watch.is_of_number()) {
                    writer.is_state(&watch.rows, &watch.state).await?;
                }
                let plan = plan().await?;
                let unknown = super::suppress::check(store, &plan).await?;
                refuse_unseen(store, &plan).await?;
                later = refused_later(store, &plan).await?;
                let mut receipt = receipt(&plan);
                receipt.disclosures.extend(unknown);
                receipt.applied_at.clone_from(&at);
                receipt_id.clone_from(&receipt.receipt_id);
                let (plan, receipt) = planned.insert((plan, receipt));
                if plan.is_empty() { Ok(0) } else { within(&mut writer, &own, plan, author, receipt).await }
            };
            let outcome = outcome.await;
            finish(writer, outcome).await
        };
        let outcome = attempt.await;
        *is_final =
            matches!(&outcome, Err(FailedAttempt::Transaction(FailedTransaction::Write(WriteError::Missed { .. }))));
        match (settle(store, outcome, &receipt_id, waiting).await?, planned) {
            (Some(_), Some((plan, receipt))) if plan.is_empty() => return Ok((plan, receipt)),
            (Some(seq), Some((plan, receipt))) => {
                anchor::after(store, seq).await;
                let receipt = done(store, &plan, receipt, seq, later);
                return Ok((plan, receipt));
            }
            _ => {}
        }
    }
}

/// Commits a success, or rolls back.
async fn finish(writer: WriteTransaction<'_>, outcome: Result<i64, FailedTransaction>) -> Result<i64, FailedAttempt> {
    match outcome {
        Ok(seq) => match writer.commit().await {
            Ok(()) => Ok(seq),
            Err(error @ WriteError::Unknown(_)) => Err(FailedAttempt::Unknown(seq, error)),
            Err(error) => Err(error.into()),
        },
        Err(error) => {
            writer.rollback().await;
            Err(error.into())
        }
    }
}

/// Returns the number of the entry of an attempt; `None` if nothing was written and it must be tried again.
async fn settle(
    store: &Store,
    outcome: Result<i64, FailedAttempt>,
    receipt_id: &str,
    waiting: &mut WaitingTries,
) -> Result<Option<i64>, ChangeError> {
    match outcome {
        Ok(seq) => Ok(Some(seq)),
        Err(FailedAttempt::Transaction(FailedTransaction::Write(error @ WriteError::Busy(_)))) => {
            waiting.again_after(&error).await.map(|()| None)
        }
        // The cause may be a write of another process: then the rows that the plan relies on have changed.
        Err(FailedAttempt::Transaction(FailedTransaction::Write(WriteError::Rejected(_))))
            if waiting.is_first() && waiting.again().await =>
        {
            Ok(None)
        }
        // Data lost by a failing disk shows when the database is opened again, not now.
        Err(FailedAttempt::Unknown(_, cause)) if cause.is_of_disk() => Err(uncertain(store, &cause, "", receipt_id)),
        // The connection was lost during the commit: the trail tells whether it was written. Never repeated blindly.
        Err(FailedAttempt::Unknown(seq, cause)) => match committed(store, seq, receipt_id).await {
            Ok(true) => Ok(Some(seq)),
            Ok(false) if waiting.again().await => Ok(None),
            Ok(false) => Err(cause.into()),
            Err(error) => Err(uncertain(store, &cause, &format!(" ({error})"), receipt_id)),
        },
        Err(FailedAttempt::Transaction(failed)) => Err(failed.into()),
    }
}

fn uncertain(store: &Store, cause: &WriteError, why: &str, receipt_id: &str) -> ChangeError {
    ChangeError::Uncertain(format!(
        "{cause}, and it is unknown whether the change was made{why}. Before you repeat it, look for the receipt \
         {receipt_id} with `{}`: if it is listed, the change was made",
        store.invocation().line(["audit", "list"])
    ))
}

fn receipt(plan: &Plan) -> Receipt {
    let nothing = plan.is_empty();
    Receipt {
        receipt_id: new_id(),
        plan_id: plan.plan_id.clone(),
        operation: plan.operation.clone(),
        status: if nothing { "nothing to do" } else { "applied" }.to_owned(),
        counts: plan.counts.clone(),
        changes: if nothing { plan.changes.clone() } else { Vec::new() },
        changes_total: plan.changes_total,
        effects: plan.effects.clone(),
        disclosures: plan.disclosures.clone(),
        applied_at: now(),
        audit_seq: None,
        undo: None,
        undo_reason: nothing.then(|| "nothing was changed".to_owned()),
    }
}

/// The changes of a plan with the time of the change filled in, also for new rows.
fn stamped(plan: &Plan, at: &str) -> impl Iterator<Item = Change> {
    plan.changes.iter().cloned().map(move |mut change| {
        let created = change.after.get_mut("created_at").filter(|created| created.is_null());
        if let Some(created) = created.filter(|_| change.before.is_null()) {
            *created = Value::from(at);
        }
        change
    })
}

/// The receipt of a change. `later` is the reason why an undo would be refused now; the entry does not store it, since
/// the undo may become possible again.
fn done(store: &Store, plan: &Plan, mut receipt: Receipt, seq: i64, later: Option<String>) -> Receipt {
    receipt.changes = stamped(plan, &receipt.applied_at).collect();
    receipt.audit_seq = Some(seq);
    receipt.undo_reason = plan.undo_reason.clone().or(later);
    if receipt.undo_reason.is_none() {
        receipt.undo = Some(store.invocation().line(["undo", &seq.to_string(), "--apply"]));
    }
    receipt
}

/// Reason why an attempt did not certainly succeed.
enum FailedAttempt {
    Transaction(FailedTransaction),
    /// The commit of that entry may have succeeded.
    Unknown(i64, WriteError),
}

impl<E> From<E> for FailedAttempt
where
    FailedTransaction: From<E>,
{
    fn from(error: E) -> Self {
        FailedAttempt::Transaction(error.into())
    }
}

/// Applies the changes of a batch and appends their entry, within a transaction that the job begins and commits.
/// Returns the number of the entry; `None` if there is nothing to change.
///
/// # Errors
/// As [`apply`]; the caller must then roll back.
pub async fn apply_batch(
    writer: &mut WriteTransaction<'_>,
    own: &OwnTables,
    plan: &Plan,
    author: &Author,
    at: &str,
) -> Result<Option<i64>, FailedTransaction> {
    if plan.is_empty() {
        return Ok(None);
    }
    let mut receipt = receipt(plan);
    receipt.applied_at = at.to_owned();
    within(writer, own, plan, author, &mut receipt).await.map(Some)
}

async fn within(
    writer: &mut WriteTransaction<'_>,
    own: &OwnTables,
    plan: &Plan,
    author: &Author,
    receipt: &mut Receipt,
) -> Result<i64, FailedTransaction> {
    // From here on SQLite excludes other writers.
    if writer.engine() == Engine::Sqlite {
        keep_held(writer.store(), plan).await?;
        keep_used(writer.store(), plan).await?;
    }
    keep_columns(writer, plan).await?;
    let before = check(writer, plan).await?;
    if writer.engine() == Engine::Postgres {
        // Someone changing columns holds a table lock, for which our row locks have waited.
        keep_columns(writer, plan).await?;
    } else {
        keep_named(writer.store(), plan).await?;
    }
    let lagging = writer.lagging_indexes(&plan.mutations).await?;
    let mut read_back = ReadBack::of(plan);
    for mutation in &plan.mutations {
        writer.run(mutation).await?;
        read_back.look(writer, mutation).await?;
    }
    for mutation in &plan.trail {
        writer.run(mutation).await?;
    }
    if writer.settle().await? {
        read_back = ReadBack::of(plan);
        for mutation in &plan.mutations {
            read_back.look(writer, mutation).await?;
        }
    }
    receipt.disclosures.extend(read_back.sentences());
    for index in &lagging {
        let is_made_again = writer.make_again(index).await?;
        receipt.disclosures.push(index_note(index, is_made_again));
    }
    let undo = if plan.undo_reason.is_none() { Some(kept_undo(writer, plan, before).await?) } else { None };
    let seq = audit::append(writer, own, entry(plan, author, receipt, undo)).await?;
    // From here on other writers wait for the head of the trail, or are done. Others still see the rows.
    if writer.engine() == Engine::Postgres {
        keep_held(writer.store(), plan).await?;
        keep_used(writer.store(), plan).await?;
        keep_absent(writer.store(), plan).await?;
    }
    Ok(seq)
}

/// Note about a full-text index that no trigger keeps in step with the change.
fn index_note(lagging: &LaggingIndex, is_made_again: bool) -> String {
    let LaggingIndex { index, table, .. } = lagging;
    let (index, table) = (index.title(), table.title());
    if is_made_again {
        return format!(
            "the search index {index} was rebuilt: no trigger of {table} keeps it in step with this change"
        );
    }
    format!(
        "the search index {index} may still find the earlier words of {table}, and not the new ones: no trigger keeps it in \
         step with this change, and it was not rebuilt, because it does not hold every row of {table} or cannot be opened here"
    )
}

/// Fails if a table's columns have changed since its rows were read: the undo would lack some.
async fn keep_columns(writer: &mut WriteTransaction<'_>, plan: &Plan) -> Result<(), FailedTransaction> {
    let tables: BTreeSet<&TableName> = plan.mutations.iter().map(Mutation::table).collect();
    let mut moved = Vec::new();
    for table in tables {
        if !writer.is_as_known(table).await? {
            moved.push(format!("{}: its columns were changed", table.title()));
        }
    }
    if moved.is_empty() { Ok(()) } else { Err(conflict(moved).into()) }
}

/// Fails if someone has created rows that the plan requires to be absent: missing rows cannot be locked.
async fn keep_absent(store: &Store, plan: &Plan) -> Result<(), ChangeError> {
    let mut moved = Vec::new();
    for rows in plan.watches.iter().filter(|w| w.is_of_number() && w.state.count == 0).map(|watch| &watch.rows) {
        let count = store.shapes().state_of(rows, rows.by.clone()).await?.count;
        if count > 0 {
            moved.push(describe(rows, 0, count));
        }
    }
    if moved.is_empty() { Ok(()) } else { Err(conflict(moved)) }
}

fn conflict(rows: Vec<String>) -> ChangeError {
    ChangeError::Conflict { message: "something that this plan relies on was changed".to_owned(), rows }
}

/// Rows deleted or changed by cascade with those of a plan that we may not see completely: no plan counts them, and no
/// undo restores them.
async fn unseen(store: &Store, plan: &Plan) -> Result<Option<(TableName, String)>, StoreError> {
    let deleted = plan.mutations.iter().filter(|mutation| matches!(mutation, Mutation::Delete(_)));
    unseen_with(store, deleted.map(Mutation::table).collect()).await
}

/// The first table whose rows are deleted or changed by cascade and that we may not see completely, with a message.
pub(super) async fn unseen_with(
    store: &Store,
    tables: BTreeSet<&TableName>,
) -> Result<Option<(TableName, String)>, StoreError> {
    for table in tables {
        if let Some(unseen) = store.shapes().unseen_dependent(table).await? {
            let words = along(&unseen, table);
            return Ok(Some((unseen, words)));
        }
    }
    Ok(None)
}

/// Adds to a plan that it affects unseen rows by cascade, unless it says so already.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn report_unseen(store: &Store, mut plan: Plan) -> Result<Plan, ChangeError> {
    if let Some((table, words)) = unseen(store, &plan).await?
        && !plan.disclosures.iter().any(|told| told.contains(&table.title()))
    {
        plan.disclosures.push(format!(
            "{words}, and your role may not see all of them: they are not counted, so this cannot be \
             applied"
        ));
        plan.plan_id = plan.digest();
    }
    Ok(plan)
}

/// Adds to a plan that our role may not write its changes, and the remedy.
///
/// # Errors
/// The engine's refusal.
pub async fn report_refused(store: &Store, mut plan: Plan) -> Result<Plan, ChangeError> {
    if let Some(StoreError::Denied { reason, remedy }) = store.records().refused(&plan.counts).await? {
        plan.disclosures.push(format!("{reason}, so this cannot be applied; what helps: {remedy}"));
        plan.plan_id = plan.digest();
    }
    Ok(plan)
}

/// Marks a plan that deletes rows of inheriting tables as irreversible: an undo would lack the columns of their own
/// tables.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn report_inheriting_rows(store: &Store, mut plan: Plan) -> Result<Plan, ChangeError> {
    if plan.undo_reason.is_some() {
        return Ok(plan);
    }
    let is_delete = |mutation: &&Mutation| matches!(mutation, Mutation::Delete(_));
    let deletes: Vec<&Mutation> = plan.mutations.iter().filter(is_delete).collect();
    let tables: BTreeSet<&TableName> = deletes.iter().map(|mutation| mutation.table()).collect();
    let (mut count, mut of) = (0, String::new());
    for table in tables {
        if count > 0 || !store.shapes().has_heirs(table).await? {
            continue;
        }
        for mutation in &deletes {
            if mutation.table() == table
                && let Some(rows) = mutation.rows()
            {
                count += store.shapes().in_heirs(&rows).await?;
            }
        }
        of = table.title();
    }
    if count > 0 {
        let what = format!(
            "{{#}} {{row|rows}} of {of} {{is|are}} in a table that inherits from it: an undo would put {{it|them}} \
             into {of}, without {{its|their}} additional columns"
        );
        plan.undo_reason = Some(agreeing(count, &what));
        plan.plan_id = plan.digest();
    }
    Ok(plan)
}

/// Refuses to delete unseen rows by cascade.
async fn refuse_unseen(store: &Store, plan: &Plan) -> Result<(), ChangeError> {
    match unseen(store, plan).await? {
        None => Ok(()),
        Some((table, words)) => Err(not_seen(&table, &words)),
    }
}

/// The error for unseen rows of a table that a cascade would affect, given the message.
pub(super) fn not_seen(table: &TableName, words: &str) -> ChangeError {
    ChangeError::Refused(format!(
        "{words}, and your role may not see all of them: no plan counts them, and no undo restores them. Ask for \
         SELECT on {}, and for a role that row-level security hides none of its rows from",
        table.title()
    ))
}

/// Sentence that rows of one table are deleted or changed with those of another.
pub(super) fn along(unseen: &TableName, table: &TableName) -> String {
    format!("rows of {} are deleted or changed with rows of {}", unseen.title(), table.title())
}

/// Fails if a hold was placed on the owner of a deleted row since the plan was made.
async fn keep_held(store: &Store, plan: &Plan) -> Result<(), ChangeError> {
    match super::held::taken_from(store, plan).await? {
        None => Ok(()),
        Some(row) => Err(ChangeError::Conflict {
            message: format!("{row} to a person under a legal hold since the plan was made"),
            rows: Vec::new(),
        }),
    }
}

/// Fails if a row deleted as unused was used since the plan was made.
async fn keep_used(store: &Store, plan: &Plan) -> Result<(), ChangeError> {
    match super::retain::used_since(store, plan).await? {
        None => Ok(()),
        Some(row) => Err(ChangeError::Conflict {
            message: "a row to be deleted as unused was used after the plan was made".to_owned(),
            rows: vec![row],
        }),
    }
}

/// Fails if a list names a deleted row and did not when the plan was made, since it would not be updated.
async fn keep_named(store: &Store, plan: &Plan) -> Result<(), ChangeError> {
    match super::remove::named_since(store, plan).await? {
        None => Ok(()),
        Some(row) => Err(ChangeError::Conflict {
            message: "another row has referred to a row to be deleted since the plan was made".to_owned(),
            rows: vec![row],
        }),
    }
}

/// The JSON of a plan's [`KeptUndo`], given the previous rows. These may be very many, so it is written while reading.
async fn kept_undo(
    writer: &mut WriteTransaction<'_>,
    plan: &Plan,
    before: HashMap<String, Vec<Image>>,
) -> Result<String, FailedTransaction> {
    let mut text = format!("{{\"again\":{},\"inverses\":[", canonical(&plan.trail));
    let mut is_first = true;
    let set = set_columns(plan);
    for mutation in plan.mutations.iter().rev() {
        let Some(inverse) = inverse(writer, &set, mutation, &before).await? else { continue };
        if !std::mem::take(&mut is_first) {
            text.push(',');
        }
        let inverse = serde_json::to_string(&inverse);
        text +=
            &inverse.map_err(|error| ChangeError::Failed(format!("what an undo needs cannot be stored: {error}")))?;
    }
    text.push_str(&format!("],\"trail\":{}}}", canonical(&plan.undo_trail)));
    Ok(text)
}

/// Reads the plan's rows again under lock, and compares. Returns the previous rows by their query, if an undo needs
/// them.
async fn check(
    writer: &mut WriteTransaction<'_>,
    plan: &Plan,
) -> Result<HashMap<String, Vec<Image>>, FailedTransaction> {
    let mut before = HashMap::new();
    let mut moved = Vec::new();
    let restored = restored(plan);
    let (numbers, states): (Vec<&RowWatch>, Vec<_>) = plan.watches.iter().partition(|watch| watch.is_of_number());
    for watch in states {
        let key = key_of(&watch.rows);
        let (same, count) = if restored.contains(&key) {
            let images = writer.images(&watch.rows).await?;
            let state = (watch.state.holds(&images), images.len());
            before.insert(key, images);
            state
        } else {
            writer.is_state(&watch.rows, &watch.state).await?
        };
        // Who may not change a row cannot lock it either.
        let expected = watch.state.count;
        if count < expected && writer.engine() == Engine::Postgres && writer.remaining(&watch.rows).await? == expected {
            let table = watch.rows.table.title();
            return Err(WriteError::Missed { table, expected, hit: count as u64 }.into());
        }
        if !same {
            moved.push(describe(&watch.rows, expected, count));
        }
    }
    // Counted after the others are locked: while waiting, rows may have been added.
    for watch in numbers {
        let count = writer.remaining(&watch.rows).await?;
        if count != watch.state.count {
            moved.push(describe(&watch.rows, watch.state.count, count));
        }
    }
    if moved.is_empty() {
        return Ok(before);
    }
    Err(conflict(moved).into())
}

/// Keys of the rows that an undo of the plan would bring back.
fn restored(plan: &Plan) -> HashSet<String> {
    if plan.undo_reason.is_some() {
        return HashSet::new();
    }
    let changed =
        plan.mutations.iter().filter(|mutation| !matches!(mutation, Mutation::Insert { .. } | Mutation::Revise(_)));
    let parts = |rows: StoredRows| rows.parts().map(|part| key_of(&part)).chain([key_of(&rows)]).collect::<Vec<_>>();
    changed.filter_map(Mutation::rows).flat_map(parts).collect()
}

pub(super) fn key_of(rows: &StoredRows) -> String {
    json!(rows).to_string()
}

/// Describes to users which rows have changed.
pub(super) fn describe(rows: &StoredRows, then: usize, now: usize) -> String {
    let value = |raw: &FetchedValue| match raw {
        FetchedValue::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap_or_else(|_| json!(raw).to_string()),
        _ => match json!(raw) {
            Value::String(text) => text,
            other => other.to_string(),
        },
    };
    let key = |key: &Vec<FetchedValue>| {
        let part = |(column, v): (&String, _)| format!("{} = {}", column.trim_start_matches(HIDDEN), value(v));
        let parts: Vec<String> = rows.by.iter().zip(key).map(part).collect();
        parts.join(" and ")
    };
    // One key may be there in several forms that read alike.
    let mut keys: Vec<String> = rows.keys.iter().map(key).collect();
    keys.dedup();
    let more = keys.len().saturating_sub(3);
    keys.truncate(3);
    keys.extend((more > 0).then(|| format!("{more} more")));
    let what = match (then, now) {
        (0, _) => "is there now".to_owned(),
        (_, 0) => "is gone".to_owned(),
        (then, now) if then != now => agreeing(then, &format!("was {{#}} {{row|rows}}, is {now}")),
        _ => "has other values".to_owned(),
    };
    format!("{} where {}: {what}", rows.table.title(), keys.join("; "))
}

/// Rows whose state is read at a time.
const PART: usize = 400;

async fn inverse(
    writer: &mut WriteTransaction<'_>,
    set_columns: &HashSet<(&TableName, String)>,
    mutation: &Mutation,
    before: &HashMap<String, Vec<Image>>,
) -> Result<Option<InverseMutation>, FailedTransaction> {
    let Some(rows) = mutation.rows() else { return Ok(None) };
    let was = || match before.get(&key_of(&rows)) {
        Some(images) => images.iter().collect(),
        None => rows.parts().filter_map(|part| before.get(&key_of(&part))).flatten().collect::<Vec<&Image>>(),
    };
    let (mut columns, mut stamps) = (Vec::new(), Vec::new());
    let mutation = match mutation {
        Mutation::Revise(revise) => {
            let expect = ReadState { count: revise.rows.len(), columns: revise.columns.clone(), hash: String::new() };
            return Ok(Some(InverseMutation { mutation: Mutation::Revise(revise.inverse()), expect, stamps }));
        }
        Mutation::Insert { .. } => Mutation::Delete(rows.clone()),
        Mutation::Update { table, key, set } => {
            let (was, after) = (was(), writer.images(&rows).await?);
            let old = |name: &String| was.first().and_then(|i| i.get(name)).cloned().unwrap_or(FetchedValue::Null);
            for (name, cell) in set {
                match (cell, after.first().and_then(|i| i.get(name))) {
                    (Cell::Now(_), Some(written)) => stamps.push((name.clone(), written.clone())),
                    _ => columns.push(name.clone()),
                }
            }
            let mut set: Vec<_> = set.iter().map(|(name, _)| (name.clone(), Cell::Is(old(name)))).collect();
            for (name, was, is) in set_along(set_columns, table, was.first().copied(), after.first()) {
                set.push((name.clone(), Cell::Is(was)));
                stamps.push((name, is));
            }
            Mutation::Update { table: table.clone(), key: key.clone(), set }
        }
        Mutation::Delete(rows) => {
            let was = was();
            let columns: Vec<String> =
                was.first().map(|i| i.0.iter().map(|(name, _)| name.to_string()).collect()).unwrap_or_default();
            let values = |image: &Image| image.0.iter().map(|(_, raw)| Cell::Is(raw.clone())).collect();
            let images = was.into_iter().map(values).collect();
            Mutation::Insert { table: rows.table.clone(), key: rows.by.clone(), columns, rows: images }
        }
    };
    if matches!(mutation, Mutation::Update { .. }) && rows.are_by_number() {
        // Another row may get the number: all columns together identify the row.
        columns.clear();
    }
    if matches!(mutation, Mutation::Delete(_)) {
        // By name, because an undo does not cover columns added later.
        columns.extend(writer.shape(&rows.table).await?.columns.iter().map(|column| column.name.clone()));
    }
    let mut state = StateReading::of(columns);
    for part in rows.in_parts(PART) {
        writer.images(&part).await?.iter().for_each(|image| state.add(image));
    }
    Ok(Some(InverseMutation { mutation, expect: state.close(), stamps }))
}

/// The columns that a plan sets in rows that are there, in lower case.
fn set_columns(plan: &Plan) -> HashSet<(&TableName, String)> {
    let mut columns = HashSet::new();
    for mutation in &plan.mutations {
        match mutation {
            Mutation::Update { table, set, .. } => {
                columns.extend(set.iter().map(|(name, _)| (table, name.to_lowercase())));
            }
            Mutation::Revise(revise) => {
                let names = revise.columns.iter().chain(revise.touch.iter().map(|(name, _)| name));
                columns.extend(names.map(|name| (&revise.table, name.to_lowercase())));
            }
            Mutation::Insert { .. } | Mutation::Delete(_) => {}
        }
    }
    columns
}

/// The times of a row that the plan does not set and that are others now: triggers set them along. With what was there, and what
/// is. Other values that a trigger sets follow from rows, as a count does, and its own run at an undo takes them back.
fn set_along(
    set: &HashSet<(&TableName, String)>,
    table: &TableName,
    was: Option<&Image>,
    is: Option<&Image>,
) -> Vec<(String, FetchedValue, FetchedValue)> {
    let is_time = |raw: &FetchedValue| matches!(raw, FetchedValue::Text(text) if time::canonical(text).is_some());
    let (Some(was), Some(is)) = (was, is) else { return Vec::new() };
    let changed = was.0.iter().filter_map(|(name, was)| {
        let along = |is: &&FetchedValue| *is != was && is_time(is) && !set.contains(&(table, name.to_lowercase()));
        let is = is.get(name).filter(along)?;
        Some((name.to_string(), was.clone(), is.clone()))
    });
    changed.collect()
}

fn entry(plan: &Plan, author: &Author, receipt: &Receipt, undo: Option<String>) -> NewEntry {
    let mut public = plan.facts.as_object().cloned().unwrap_or_default();
    public.insert("operation".to_owned(), Value::from(plan.operation.clone()));
    public.insert("changes_total".to_owned(), json!(plan.changes_total));
    public.insert("counts".to_owned(), json!(plan.counts));
    public.insert("plan_id".to_owned(), Value::from(plan.plan_id.clone()));
    public.insert("receipt_id".to_owned(), Value::from(receipt.receipt_id.clone()));
    public.insert("schema".to_owned(), Value::from(audit::SCHEMA));
    if let Some(ticket) = author.ticket.as_ref().or(plan.ticket.as_ref()) {
        public.extend([audit::told_ticket(ticket)]);
    }
    if let Some(reason) = &plan.undo_reason {
        public.insert("undo_reason".to_owned(), Value::from(reason.clone()));
    }
    let mut private = BTreeMap::from([("changes".to_owned(), canonical_list(stamped(plan, &receipt.applied_at)))]);
    private.extend(undo.map(|undo| ("undo".to_owned(), undo)));
    private.extend(author.reason.as_ref().or(plan.reason.as_ref()).map(|reason| audit::told_reason(reason)));
    NewEntry {
        at: receipt.applied_at.clone(),
        actor: author.actor.clone(),
        action: plan.operation.clone(),
        public: Value::Object(public),
        private,
    }
}

/// Whether the entry with that number belongs to this receipt. Locks the head first, which waits for a pending COMMIT
/// that holds it.
async fn committed(store: &Store, seq: i64, receipt_id: &str) -> Result<bool, ChangeError> {
    let own = writable(store).await?;
    let mut waiting = WaitingTries::begin();
    loop {
        match under_head(store, &own, waiting.patience()).await {
            Err(error @ WriteError::Busy(_)) => waiting.again_after(&error).await?,
            Err(error) => return Err(error.into()),
            Ok(writer) => {
                let entry = store.records().trail(seq - 1, 1).await;
                writer.rollback().await;
                let public = entry?.first().and_then(|e| serde_json::from_str::<Value>(&e.public).ok());
                return Ok(public.is_some_and(|p| p["receipt_id"] == receipt_id));
            }
        }
    }
}

/// A transaction that locks the head of the trail.
async fn under_head<'s>(
    store: &'s Store,
    own: &OwnTables,
    patience: Duration,
) -> Result<WriteTransaction<'s>, WriteError> {
    let mut writer = store.write_within(&now(), patience).await?;
    let head = StoredRows::with(&own.table("memory_audit_head"), "id", writer.number(1));
    match writer.images(&head).await {
        Ok(_) => Ok(writer),
        Err(error) => {
            writer.rollback().await;
            Err(error)
        }
    }
}
