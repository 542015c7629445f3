//! Deletes in batches. Each batch is one transaction: deleted rows, changes in other rows, the progress, and the audit
//! entry.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::decide::NewDecisions;
use super::desk::{Desk, KeptSession};
use super::effects::{ColumnUpdate, digest};
use super::graph::OwnedRows;
use super::matcher::Matcher;
use super::plan::{AlteredRow, BATCH, PurgePlan};
use super::planned_mentions::PlannedMentions;
use super::planned_owners::PlannedOwners;
use super::row_ids::RowIds;
use super::taken::GoingRows;
use crate::change::anchor;
use crate::change::audit::{self, NewEntry};
use crate::change::plan::Counts;
use crate::change::suppress::hmac;
use crate::change::waiting::WaitingTries;
use crate::change::{ChangeError, FailedTransaction, new_id, now};
use crate::layout::Engine;
use crate::memory::agreeing;
use crate::store::encode::constant;
use crate::store::erasing::{PurgeSession, SHARED, UNDER};
use crate::store::fetched::{FetchedValue, RawRow};
use crate::store::own::OwnTables;
use crate::store::stored::{Cell, Mutation, StoredRows, TableName};
use crate::store::write::{RowUpdate, WriteError, WriteTransaction};
use crate::store::{Store, StoreError};

/// Part of a batch.
#[derive(Debug)]
enum BatchStep<'p> {
    Nameless,
    Update(&'p AlteredRow),
    /// All of the person's rows in a table that has no key.
    Owned(&'p OwnedRows),
    /// Keys that are renamed, with every reference to them.
    Rename(Vec<&'p AlteredRow>),
    /// A range of the rows, by number.
    Delete(&'p GoingRows, Range<usize>),
    /// All rows of tables that refer to each other.
    Circle(Vec<&'p GoingRows>),
}

/// Runs a transaction, and retries while others hold locks, for as long as a person waits. `failed` turns the last
/// refusal, with the time spent waiting, into an error.
macro_rules! attempt {
    ($store:expr, $at:ident, $failed:expr, |$writer:ident| $body:expr) => {{
        let mut waiting = WaitingTries::begin();
        loop {
            let $at = now();
            let patience = waiting.patience();
            let outcome: Result<_, FailedTransaction> = async {
                let mut $writer = $store.write_within(&$at, patience).await?;
                $writer.overwrite_deleted($store.engine()).await?;
                let done: Result<_, FailedTransaction> = $body.await;
                match done {
                    Ok(value) => {
                        $writer.commit().await?;
                        Ok(value)
                    }
                    Err(error) => {
                        $writer.rollback().await;
                        Err(error)
                    }
                }
            }
            .await;
            match outcome {
                Ok(value) => break Ok(value),
                Err(FailedTransaction::Write(error @ WriteError::Busy(_))) => {
                    if !waiting.again().await {
                        break Err($failed(&waiting.gave_up(&error)));
                    }
                }
                Err(FailedTransaction::Write(WriteError::Missed { table, expected, hit })) => {
                    let words = format!("{table}: {{#}} of {expected} rows {{was|were}} there");
                    break Err(paused(&agreeing(hit, &words)));
                }
                Err(FailedTransaction::Write(error)) => break Err($failed(&ended(error))),
                Err(FailedTransaction::Change(error)) => break Err(error),
            }
        }
    }};
}

fn paused(why: &str) -> ChangeError {
    ChangeError::Paused(format!("{why}: the purge is paused; --resume plans the rest again"))
}

/// Converts the error of a transaction that was not committed. It does not mention earlier transactions.
fn ended(error: WriteError) -> ChangeError {
    match error {
        WriteError::Store(error) if error.is_lost() => ChangeError::Failed(format!("the connection was lost: {error}")),
        WriteError::Displaced(words) => ChangeError::Refused(words),
        WriteError::Rejected(_) => {
            ChangeError::Refused(format!("{error} (--mentions leave leaves other people's rows as they are)"))
        }
        WriteError::Store(StoreError::Denied { reason, remedy }) => ChangeError::Refused(format!("{reason}; {remedy}")),
        error => error.into(),
    }
}

/// Adds that the erasure has begun, and that its finished batches stay.
fn stopped(error: &ChangeError) -> ChangeError {
    retold(
        error,
        format!("{error}. The purge is paused, and what its earlier batches did stays: --resume plans the rest again"),
    )
}

/// Adds that nothing was written, unless the outcome is uncertain.
fn not_begun(error: &ChangeError) -> ChangeError {
    let is_known = !matches!(error, ChangeError::Uncertain(_));
    retold(error, format!("{error}{}", if is_known { "; nothing was written" } else { "" }))
}

/// Replaces the text of an error and keeps its exit code.
fn retold(error: &ChangeError, words: String) -> ChangeError {
    match error {
        ChangeError::Refused(_) | ChangeError::Store(StoreError::Denied { .. }) => ChangeError::Refused(words),
        ChangeError::Uncertain(_) => ChangeError::Uncertain(words),
        _ => ChangeError::Failed(words),
    }
}

/// Error for rows that are unchanged since they were read, but that the database refuses to delete or change.
fn held_back(what: &str) -> ChangeError {
    let message = format!(
        "{what}: a trigger, a rule or a policy (row-level security) of the database prevents the change. The purge is \
         paused; drop or disable it for this erasure, or use a role that it lets through, then --resume"
    );
    ChangeError::Paused(message)
}

/// Explains why rows failed to change although the transaction read them as the plan did.
fn unchanged(error: WriteError) -> FailedTransaction {
    match error {
        WriteError::Missed { table, expected, hit } => held_back(&format!(
            "{table}: {hit} of {expected} rows changed, although they still exist as they were read"
        ))
        .into(),
        error => error.into(),
    }
}

/// The turn of a run in its session: the time of the last batch. If two runs know the same turn, the first one to
/// commit a batch takes it, and the other can write nothing more.
#[derive(Debug)]
pub struct RunTurn(String);

/// Writes the session and the suppression list.
///
/// # Errors
/// [`ChangeError::Refused`] if another erasure of the person has begun meanwhile; otherwise as any change.
pub async fn begin(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    kept: &KeptSession,
) -> Result<RunTurn, ChangeError> {
    attempt!(store, at, not_begun, |writer| async {
        // Every session locks the head of the trail first, so two erasures of one person run one after the other.
        writer.images(&StoredRows::with(&own.table("memory_audit_head"), "id", writer.number(1))).await?;
        let alone = kept.subject.handles.iter().filter(|h| kept.subject.is_alone(h)).map(|h| &h.value);
        for handle in alone.chain(&kept.subject.ids) {
            if writer.open_purge_of(&hmac(&desk.key, handle)).await?.is_some() {
                return Err(ChangeError::Refused(
                    "another purge of this person has started since; when it has stopped, --resume continues it"
                        .to_owned(),
                )
                .into());
            }
        }
        let texts = [
            ("id", kept.session.clone()),
            ("plan_id", kept.plan_id.clone()),
            ("status", "running".to_owned()),
            ("counts", "{}".to_owned()),
            ("actor", desk.author.actor.clone()),
            ("created_at", at.clone()),
            ("updated_at", at.clone()),
        ];
        let mut columns: Vec<String> = texts.iter().map(|(c, _)| (*c).to_owned()).collect();
        let mut row: Vec<Cell> = texts.into_iter().map(|(_, t)| Cell::Is(FetchedValue::Text(t))).collect();
        for (column, number) in [("position", 0), ("batches", 0)] {
            columns.push(column.to_owned());
            row.push(Cell::Is(writer.number(number)));
        }
        if let Some(ticket) = &desk.author.ticket {
            columns.push("ticket".to_owned());
            row.push(Cell::Is(FetchedValue::Text(ticket.clone())));
        }
        let key = vec!["id".to_owned()];
        writer.run(&Mutation::Insert { table: own.table("memory_purges"), key, columns, rows: vec![row] }).await?;
        suppress(&mut writer, desk, kept, &at).await?;
        let mut public = facts(desk, kept);
        public.insert(
            "handles_suppressed".to_owned(),
            Value::from(kept.subject.handles.iter().filter(|h| kept.subject.is_alone(h)).count()),
        );
        enter(&mut writer, own, desk, &at, "purge.begin", public).await?;
        refuse_held(&mut writer, store, kept).await?;
        Ok(RunTurn(at.clone()))
    })
}

/// Adds the handles of the person to the suppression list.
async fn suppress(
    writer: &mut WriteTransaction<'_>,
    desk: &Desk<'_>,
    kept: &KeptSession,
    at: &str,
) -> Result<(), WriteError> {
    for handle in &kept.subject.handles {
        let kind = if kept.subject.is_alone(handle) { &*handle.kind } else { SHARED };
        writer.suppress(&hmac(&desk.key, &handle.value), &kept.session, kind, at).await?;
    }
    writer.suppress(&hmac(&desk.key, &kept.session), &kept.session, UNDER, at).await
}

/// Refuses to continue if the person has been put under a legal hold. Placing a hold takes the lock on the head of the
/// trail too, so a hold is either visible here or waits.
async fn refuse_held(
    writer: &mut WriteTransaction<'_>,
    store: &Store,
    kept: &KeptSession,
) -> Result<(), FailedTransaction> {
    let handles: Vec<&str> = kept.subject.handles.iter().map(|handle| handle.value.as_str()).collect();
    Ok(super::run::refuse_held(store, &writer.holds().await?, &handles)?)
}

/// Takes the session over from a run that stopped, and records the decisions that have changed.
///
/// # Errors
/// [`ChangeError::Conflict`] if another run has taken it over first; otherwise as any change.
pub async fn take_over(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    kept: &KeptSession,
    session: &PurgeSession,
    decisions: &NewDecisions,
) -> Result<RunTurn, ChangeError> {
    let turn = RunTurn(session.updated_at.clone());
    attempt!(store, at, stopped, |writer| async {
        let set = vec![
            ("status".to_owned(), Cell::Is(FetchedValue::Text("running".to_owned()))),
            ("updated_at".to_owned(), Cell::Is(FetchedValue::Text(at.clone()))),
        ];
        move_on(&mut writer, own, &session.id, &turn, set).await?;
        if kept.is_anew {
            suppress(&mut writer, desk, kept, &at).await?;
        }
        if kept.is_anew || !decisions.is_empty() {
            let mut public = facts(desk, kept);
            public.insert("decisions".to_owned(), json!({ "mentions": decisions.all, "each": decisions.tally() }));
            enter(&mut writer, own, desk, &at, "purge.resume", public).await?;
        }
        refuse_held(&mut writer, store, kept).await?;
        Ok(RunTurn(at.clone()))
    })
}

/// Updates the session's row, unless another run has done so since this run's last turn.
async fn move_on(
    writer: &mut WriteTransaction<'_>,
    own: &OwnTables,
    session: &str,
    turn: &RunTurn,
    set: Vec<(String, Cell)>,
) -> Result<(), FailedTransaction> {
    let text = |t: &str| FetchedValue::Text(t.to_owned());
    let key = vec![("id".to_owned(), text(session)), ("updated_at".to_owned(), text(&turn.0))];
    match writer.run(&Mutation::Update { table: own.table("memory_purges"), key, set }).await {
        Err(WriteError::Missed { .. }) => Err(paused("another run has taken over this session").into()),
        done => Ok(done?),
    }
}

fn facts(desk: &Desk<'_>, kept: &KeptSession) -> Map<String, Value> {
    let mut public = Map::new();
    public.insert("session".to_owned(), Value::from(kept.session.clone()));
    public.insert("plan_id".to_owned(), Value::from(kept.plan_id.clone()));
    public.insert("schema".to_owned(), Value::from(audit::SCHEMA));
    public.insert("undo_reason".to_owned(), Value::from("an erasure cannot be undone"));
    if let Some(ticket) = &desk.author.ticket {
        public.extend([audit::told_ticket(ticket)]);
    }
    public
}

async fn enter(
    writer: &mut WriteTransaction<'_>,
    own: &OwnTables,
    desk: &Desk<'_>,
    at: &str,
    action: &str,
    mut public: Map<String, Value>,
) -> Result<i64, FailedTransaction> {
    public.insert("operation".to_owned(), Value::from(action));
    let reason = desk.author.reason.as_ref().filter(|_| action != "purge.batch");
    let entry = NewEntry {
        at: at.to_owned(),
        actor: desk.author.actor.clone(),
        action: action.to_owned(),
        public: Value::Object(public),
        private: reason.map(|reason| audit::told_reason(reason)).into_iter().collect(),
    };
    audit::append(writer, own, entry).await
}

/// Deletes what a plan says, batch by batch. Returns the total counts, including those of the session's earlier runs.
///
/// # Errors
/// [`ChangeError::Conflict`] if the database has changed: the session can be resumed.
pub async fn run(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    kept: &KeptSession,
    plan: &PurgePlan,
    so_far: Counts,
    turn: &mut RunTurn,
) -> Result<Counts, ChangeError> {
    let batches = batches(plan);
    let leaving = Leaving::of(kept, plan)?;
    let mut counts = so_far;
    let all = batches.len();
    for (position, steps) in batches.iter().enumerate() {
        (desk.progress)("deleting", (position * plan.options.batch) as u64);
        let mut after = counts.clone();
        steps.iter().for_each(|step| count(&mut after, plan, step));
        let reached: Result<(i64, RunTurn), ChangeError> = attempt!(store, at, stopped, |writer| async {
            for step in steps {
                make(&mut writer, store, &leaving, step).await?;
            }
            let set = progress(&writer, &at, position + 1, all, &after);
            move_on(&mut writer, own, &kept.session, turn, set).await?;
            let mut public = facts(desk, kept);
            let mut here = Counts::new();
            steps.iter().for_each(|step| count(&mut here, plan, step));
            public.insert("counts".to_owned(), json!(here));
            public.insert("batch".to_owned(), json!([position + 1, all]));
            let seq = enter(&mut writer, own, desk, &at, "purge.batch", public).await?;
            let held = refuse_held(&mut writer, store, kept).await;
            held.map_err(|error| match error {
                FailedTransaction::Change(held) => stopped(&held).into(),
                error @ FailedTransaction::Write(_) => error,
            })?;
            Ok((seq, RunTurn(at.clone())))
        });
        let (seq, next) = reached?;
        *turn = next;
        anchor::after(store, seq).await;
        counts = after;
    }
    if !plan.redacts.is_empty() {
        attempt!(store, at, stopped, |writer| async {
            let public = facts(desk, kept);
            let redacts = Vec::from_iter(plan.redacts.clone());
            audit::redact(&mut writer, own, &at, &desk.author.actor, &redacts, &public).await?;
            Ok(())
        })?;
    }
    Ok(counts)
}

/// Records the receipt's hash and the outcome. Returns the number of the audit entry.
///
/// # Errors
/// As any change.
#[allow(clippy::too_many_arguments, reason = "what one entry says")]
pub async fn end(
    store: &Store,
    own: &OwnTables,
    desk: &Desk<'_>,
    kept: &KeptSession,
    status: &str,
    counts: &Counts,
    receipt_hash: &str,
    turn: &RunTurn,
) -> Result<i64, ChangeError> {
    attempt!(store, at, stopped, |writer| async {
        let text = |t: &str| Cell::Is(FetchedValue::Text(t.to_owned()));
        let set = vec![
            ("status".to_owned(), text(status)),
            ("updated_at".to_owned(), text(&at)),
            ("receipt_hash".to_owned(), text(receipt_hash)),
        ];
        move_on(&mut writer, own, &kept.session, turn, set).await?;
        let mut public = facts(desk, kept);
        public.insert("status".to_owned(), Value::from(status));
        public.insert("counts".to_owned(), json!(counts));
        public.insert("receipt_sha256".to_owned(), Value::from(receipt_hash));
        enter(&mut writer, own, desk, &at, "purge", public).await
    })
}

/// Returns the columns of a session's row that record its progress.
fn progress(
    writer: &WriteTransaction<'_>,
    at: &str,
    position: usize,
    batches: usize,
    counts: &Counts,
) -> Vec<(String, Cell)> {
    let text = |t: String| Cell::Is(FetchedValue::Text(t));
    vec![
        ("status".to_owned(), text("running".to_owned())),
        ("position".to_owned(), Cell::Is(writer.number(position as i64))),
        ("batches".to_owned(), Cell::Is(writer.number(batches as i64))),
        ("counts".to_owned(), text(json!(counts).to_string())),
        ("updated_at".to_owned(), text(at.to_owned())),
    ]
}

/// Rows deleted for their contents, with their dependents, that still fit in one batch whatever batch size is asked
/// for: if one of them stays, all must stay.
const WHOLE: usize = 4 * BATCH;

/// Orders the steps: first rows without a key, and rows whose own key refers to a renamed key; then rows that stay and
/// change, so that nothing refers to a deleted row; then the deletions, referring rows first; last, rows deleted for
/// their contents.
fn batches<'p>(plan: &'p PurgePlan) -> Vec<Vec<BatchStep<'p>>> {
    let size = plan.options.batch.max(1);
    let mut batches: Vec<Vec<BatchStep<'p>>> = Vec::new();
    let mut room = 0;
    // `whole` is the number of rows that must be in the same batch.
    let mut push = |step: BatchStep<'p>, rows: usize, whole: usize| {
        if batches.is_empty() || whole > room {
            batches.push(Vec::new());
            room = size.max(whole);
        }
        room = room.saturating_sub(rows);
        if let Some(last) = batches.last_mut() {
            last.push(step);
        }
    };
    if plan.nameless.is_some() {
        push(BatchStep::Nameless, 1, 1);
    }
    for owned in &plan.owned {
        push(BatchStep::Owned(owned), owned.count, owned.count);
    }
    let circle_of = |table: &TableName| plan.circles.iter().find(|circle| circle.contains(table));
    let (first, rest): (Vec<&GoingRows>, Vec<&GoingRows>) =
        plan.deletes.iter().partition(|rows| plan.first.contains(&rows.table) && circle_of(&rows.table).is_none());
    let parts = |rows: &'p GoingRows, some: Range<usize>| {
        let end = some.end;
        let part = move |from: usize| from..end.min(from + size);
        some.step_by(size).map(part).map(move |part| (BatchStep::Delete(rows, part.clone()), part.len()))
    };
    for rows in first {
        parts(rows, 0..rows.len()).for_each(|(step, rows)| push(step, rows, rows));
    }
    let (renamed, others): (Vec<&AlteredRow>, Vec<&AlteredRow>) =
        plan.updates.iter().partition(|row| row.update.renames());
    if !renamed.is_empty() {
        let rows = renamed.len();
        push(BatchStep::Rename(renamed), rows, rows);
    }
    for row in others {
        push(BatchStep::Update(row), 1, 1);
    }
    let mut last: Vec<(BatchStep<'p>, usize)> = Vec::new();
    for rows in rest {
        if let Some(circle) = circle_of(&rows.table) {
            let all: Vec<&GoingRows> = plan.deletes.iter().filter(|rows| circle.contains(&rows.table)).collect();
            // Placed at the first table of the circle.
            if all.first().is_some_and(|first| first.table == rows.table) {
                let count = all.iter().map(|rows| rows.len()).sum();
                let waits = all.iter().any(|rows| rows.own() < rows.len()) || !plan.own_first && !last.is_empty();
                if waits {
                    last.push((BatchStep::Circle(all), count));
                } else {
                    push(BatchStep::Circle(all), count, count);
                }
            }
            continue;
        }
        let own = parts(rows, 0..rows.own());
        if plan.own_first || last.is_empty() {
            own.for_each(|(step, rows)| push(step, rows, rows));
        } else {
            last.extend(own);
        }
        last.extend(parts(rows, rows.own()..rows.len()));
    }
    let mut left: usize = last.iter().map(|(_, rows)| rows).sum();
    let is_whole = left <= WHOLE;
    for (step, rows) in last {
        push(step, rows, if is_whole { left } else { rows });
        left -= rows;
    }
    batches
}

fn count(counts: &mut Counts, plan: &PurgePlan, step: &BatchStep<'_>) {
    let mut add = |table: &TableName, verb: &str, rows: usize| {
        *counts.entry(table.title()).or_default().entry(verb.to_owned()).or_default() += rows;
    };
    let mut alter = |row: &AlteredRow| {
        add(&row.table, "update", 1);
        row.update.along.iter().for_each(|rows| add(&rows.table, "delete", rows.keys.len()));
    };
    match step {
        BatchStep::Nameless => plan.nameless.iter().for_each(|account| add(&account.table, "insert", 1)),
        BatchStep::Update(row) => alter(row),
        BatchStep::Owned(owned) => add(&owned.rows.table, "delete", owned.count),
        BatchStep::Rename(rows) => rows.iter().for_each(|row| alter(row)),
        BatchStep::Delete(rows, part) => add(&rows.table, "delete", part.len()),
        BatchStep::Circle(all) => all.iter().for_each(|rows| add(&rows.table, "delete", rows.len())),
    }
}

async fn make(
    writer: &mut WriteTransaction<'_>,
    store: &Store,
    leaving: &Leaving<'_>,
    step: &BatchStep<'_>,
) -> Result<(), FailedTransaction> {
    let Leaving { kept, plan, .. } = *leaving;
    match step {
        BatchStep::Nameless => {
            let Some(account) = &plan.nameless else { return Ok(()) };
            let mut columns = vec![account.id.clone()];
            let mut row = vec![Cell::Is(FetchedValue::Text(kept.pseudonym.clone()))];
            for (column, value) in &account.columns {
                let raw = match constant(store.engine(), value) {
                    FetchedValue::Text(text) => FetchedValue::Text(text.replace("{}", &kept.pseudonym)),
                    other => other,
                };
                columns.push(column.clone());
                row.push(Cell::Is(raw));
            }
            let key = vec![account.id.clone()];
            writer.run(&Mutation::Insert { table: account.table.clone(), key, columns, rows: vec![row] }).await?;
        }
        BatchStep::Update(row) => {
            let RowUpdate { table, key, set } = checked(writer, kept, row).await?;
            take_along(writer, row).await?;
            writer.run(&Mutation::Update { table, key, set }).await.map_err(unchanged)?;
        }
        BatchStep::Rename(rows) => rename(writer, kept, plan, rows).await?,
        BatchStep::Owned(owned) => {
            let deleted = writer.delete_all(&owned.rows, owned.count).await;
            seen_gone(writer, std::slice::from_ref(&owned.rows), deleted).await?;
        }
        BatchStep::Delete(rows, part) => {
            let some = stored(rows, part.clone())?;
            let mut staying = StayingRows::default();
            let deleted =
                writer.delete_seen(&some, &leaving.seen(&some), |row| staying.look(leaving, &some, &row)).await;
            seen_gone(writer, std::slice::from_ref(&some), deleted).await?;
            staying.refuse(&some.table)?;
        }
        BatchStep::Circle(all) => {
            let all = all.iter().map(|rows| stored(rows, 0..rows.len())).collect::<Result<Vec<_>, _>>()?;
            let mut staying = vec![StayingRows::default(); all.len()];
            let take = |at: usize, row: RawRow| staying[at].look(leaving, &all[at], &row);
            let columns: Vec<Vec<String>> = all.iter().map(|rows| leaving.seen(rows)).collect();
            let deleted = writer.delete_together(&all, &columns, take).await;
            seen_gone(writer, &all, deleted).await?;
            all.iter().zip(staying).try_for_each(|(rows, staying)| staying.refuse(&rows.table))?;
        }
    }
    Ok(())
}

/// A plan while it is carried out: each row is checked as it is deleted.
struct Leaving<'p> {
    kept: &'p KeptSession,
    plan: &'p PurgePlan,
    /// Finds the person in rows deleted for their contents; `None` if there are no such rows.
    matcher: Option<Matcher>,
}

impl<'p> Leaving<'p> {
    fn of(kept: &'p KeptSession, plan: &'p PurgePlan) -> Result<Self, ChangeError> {
        let matcher = || Matcher::new(kept.subject.searched(), RowIds::default(), &kept.subject.others);
        let matcher = if plan.telling.is_empty() { None } else { Some(matcher()?) };
        Ok(Leaving { kept, plan, matcher })
    }

    /// Columns to check when rows are deleted: the key, the owners, and the contents they are deleted for. Empty if the
    /// table has no owner and no row is deleted for its contents.
    fn seen(&self, rows: &StoredRows) -> Vec<String> {
        let owners = self.plan.owners.get(&rows.table).into_iter().flat_map(PlannedOwners::columns);
        let telling = self.plan.telling.get(&rows.table).into_iter().flat_map(PlannedMentions::columns);
        let mut columns: Vec<String> = owners.chain(telling).cloned().collect();
        if !columns.is_empty() {
            columns.splice(0..0, rows.by.iter().cloned());
        }
        columns
    }
}

/// Rows of a table that the plan deletes but that have changed since it was made.
#[derive(Debug, Clone, Copy, Default)]
struct StayingRows {
    /// Rows that have another owner now.
    handed_on: usize,
    /// Rows to be deleted for their contents that no longer name the person.
    taken_back: usize,
}

impl StayingRows {
    fn look(&mut self, leaving: &Leaving<'_>, rows: &StoredRows, row: &[FetchedValue]) {
        let (key, values) = row.split_at(rows.by.len().min(row.len()));
        let owners = leaving.plan.owners.get(&rows.table);
        let (owned, told) = values.split_at(owners.map_or(0, |there| there.columns().count()).min(values.len()));
        let is_handed_on = owners.is_some_and(|there| there.is_handed_on(key, owned, &leaving.kept.subject.ids));
        let telling = leaving.plan.telling.get(&rows.table).zip(leaving.matcher.as_ref());
        let is_taken_back = telling.is_some_and(|(there, matcher)| {
            there.is_taken_back(key, told, |raw, about| matcher.look(raw, about).is_in_text(true))
        });
        self.handed_on += usize::from(is_handed_on);
        self.taken_back += usize::from(is_taken_back);
    }

    fn refuse(self, table: &TableName) -> Result<(), ChangeError> {
        let (rows, why) = match self {
            StayingRows { handed_on: 0, taken_back: 0 } => return Ok(()),
            StayingRows { handed_on: 0, taken_back } => (taken_back, "no longer {names|name} the person"),
            StayingRows { handed_on, .. } => (handed_on, "{was|were} given to someone else meanwhile"),
        };
        Err(paused(&agreeing(rows, &format!("{}: {{#}} {{row|rows}} to be deleted {why}", table.title()))))
    }
}

/// A range of the rows to delete, with their keys.
fn stored(rows: &GoingRows, part: Range<usize>) -> Result<StoredRows, ChangeError> {
    let some = rows.stored(part.clone());
    if some.keys.len() < part.len() {
        let words = "the keys of rows to be deleted cannot be read from the scratch file: the purge is paused; \
                     --resume plans the rest again";
        return Err(ChangeError::Failed(words.to_owned()));
    }
    Ok(some)
}

/// Fails if deleted rows still exist because the database kept them.
async fn seen_gone(
    writer: &mut WriteTransaction<'_>,
    rows: &[StoredRows],
    deleted: Result<(), WriteError>,
) -> Result<(), FailedTransaction> {
    if let Err(WriteError::Missed { table, expected, .. }) = &deleted {
        let mut there = 0;
        for rows in rows.iter().filter(|rows| rows.table.title() == *table) {
            there += writer.remaining(rows).await?;
        }
        if there > 0 {
            let words = format!("{table}: {{#}} of {expected} rows still {{exists|exist}} after they were deleted");
            return Err(held_back(&agreeing(there, &words)).into());
        }
    }
    match deleted {
        // Rows behind a rule (CREATE RULE) cannot be checked as they are deleted; the engine refuses the statement.
        Err(error) if error.is_of_a_rule() => {
            let titles: Vec<String> = rows.iter().map(|rows| rows.table.title()).collect();
            Err(held_back(&titles.join(", ")).into())
        }
        deleted => Ok(deleted?),
    }
}

/// Deletes the rows that go when a row changes.
async fn take_along(writer: &mut WriteTransaction<'_>, row: &AlteredRow) -> Result<(), FailedTransaction> {
    for rows in &row.update.along {
        let deleted = writer.delete_seen(rows, &[], |_| ()).await;
        seen_gone(writer, std::slice::from_ref(rows), deleted).await?;
    }
    Ok(())
}

/// Rows that one statement may rename.
const TOGETHER: usize = 2_000;

/// Renames keys and the references to them. PostgreSQL checks foreign keys after each statement, so there rows that
/// refer to each other, and rows deleted later that refer to them, change in one statement.
async fn rename(
    writer: &mut WriteTransaction<'_>,
    kept: &KeptSession,
    plan: &PurgePlan,
    rows: &[&AlteredRow],
) -> Result<(), FailedTransaction> {
    let mut together = Vec::new();
    for row in rows {
        let update = checked(writer, kept, row).await?;
        take_along(writer, row).await?;
        if writer.engine() == Engine::Postgres && plan.linked.contains(&row.table) {
            together.push(update);
            continue;
        }
        let RowUpdate { table, key, set } = update;
        writer.run(&Mutation::Update { table, key, set }).await.map_err(unchanged)?;
    }
    if writer.engine() == Engine::Postgres {
        for row in &plan.along {
            together.push(checked(writer, kept, row).await?);
        }
    }
    if together.len() > TOGETHER {
        return Err(ChangeError::Refused(format!(
            "{} rows would get another key at once, and PostgreSQL takes {TOGETHER}: decide on fewer of them by --mention, \
             or delete them",
            together.len()
        ))
        .into());
    }
    writer.together(&together).await.map_err(unchanged)
}

/// Returns the update of a row that stays, if the row is still as the plan read it.
async fn checked(
    writer: &mut WriteTransaction<'_>,
    kept: &KeptSession,
    row: &AlteredRow,
) -> Result<RowUpdate, FailedTransaction> {
    let rows = row.stored();
    let images = writer.images(&rows).await?;
    let same = images.first().is_some_and(|image| {
        row.update.set.iter().all(|u| image.get(&u.column).is_some_and(|raw| digest(raw) == u.was))
    });
    // A role that may not change a row cannot lock it either.
    if images.is_empty() && writer.remaining(&rows).await? > 0 {
        return Err(held_back(&format!("{}: an existing row cannot be changed", row.table.title())).into());
    }
    if !same || images.len() != 1 {
        return Err(paused(&format!("a row of {} was changed in the meantime", row.table.title())).into());
    }
    let cell = |update: &ColumnUpdate| {
        let value = update.new.value(&kept.pseudonym)?;
        Ok((update.column.to_string(), Cell::Is(value)))
    };
    let set = row.update.set.iter().map(cell).collect::<Result<_, ChangeError>>()?;
    Ok(RowUpdate { table: row.table.clone(), key: row.key.clone(), set })
}

/// A random name for the erased person, the same within one erasure. It is a UUID, which id columns accept.
pub fn pseudonym() -> String {
    new_id()
}
