//! The row of a job in the database: its runner, its transitions, and its checkpoints.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::plan::{BadRow, JobMove, JobProgress, JobSettings, JobState};
use crate::change::audit::without;
use crate::change::waiting::WaitingTries;
use crate::change::{Author, ChangeError, new_id, now};
use crate::layout::Engine;
use crate::memory::invocation::Invocation;
use crate::memory::time;
use crate::store::Store;
use crate::store::fetched::FetchedValue;
use crate::store::jobs::{self, JobRow};
use crate::store::own::OwnTables;
use crate::store::stored::{Cell, Mutation};
use crate::store::write::{WriteError, WriteTransaction};

/// Longest silence before a runner counts as dead.
pub const LEASE: Duration = Duration::from_secs(15);

/// Longest wait of a job for others before it yields.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// Our tables, if jobs can run here.
///
/// # Errors
/// [`ChangeError::Refused`] with the command that would help.
pub async fn ready(store: &Store) -> Result<OwnTables, ChangeError> {
    if let Some(reason) = store.why_not_writable() {
        return Err(ChangeError::Refused(format!("{} cannot be written: {reason}", store.location())));
    }
    let own = store.records().own().await?.map(OwnTables::read).transpose()?;
    if let Some(own) = own.as_ref().filter(|own| own.has_jobs()) {
        return Ok(own.clone());
    }
    Err(without(store, own.as_ref(), "has no tables for jobs yet").await)
}

/// Identity of this process's runner: host, process id, and start time of the process.
pub fn this_runner() -> String {
    let id = std::process::id();
    json!({ "host": host(), "process": id, "began": began(id) }).to_string()
}

fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|t| t.trim().to_owned()).filter(|t| !t.is_empty());
    let named = || std::env::var("HOSTNAME").ok().filter(|h| !h.is_empty());
    read("/proc/sys/kernel/hostname").or_else(named).unwrap_or_else(|| "this host".to_owned())
}

/// Reads the start time of a process, in kernel ticks; `None` if there is no such process, or the system does not say.
fn began(process: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it, in parentheses, may contain spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    // A zombie process.
    fields.next().filter(|state| *state != "Z")?;
    fields.nth(18).map(str::to_owned)
}

/// The runner for people.
fn runner_title(owner: &str) -> String {
    let owner: Value = serde_json::from_str(owner).unwrap_or_default();
    format!("process {} on {}", owner["process"], owner["host"].as_str().unwrap_or("?"))
}

/// Whether the runner of a job is alive. One on this machine is dead as soon as its process is gone, any other when its
/// lease has expired.
pub fn alive(row: &JobRow) -> bool {
    let Some(owner) = &row.owner else { return false };
    let silent = match (row.heartbeat_at.as_deref().and_then(time::epoch_micros), time::epoch_micros(&now())) {
        (Some(then), Some(now)) => now.saturating_sub(then),
        _ => i64::MAX,
    };
    if silent > LEASE.as_micros() as i64 {
        return false;
    }
    let owner: Value = serde_json::from_str(owner).unwrap_or_default();
    let here = owner["host"].as_str() == Some(host().as_str());
    let (Some(process), Some(then)) = (owner["process"].as_u64(), owner["began"].as_str()) else { return true };
    !here || began(process as u32).as_deref() == Some(then)
}

/// Returns the progress of a stored job. Values that only its runner knows (rate, time left) are not in it.
pub fn progress(row: &JobRow) -> JobProgress {
    let count = |n: i64| n.max(0) as u64;
    JobProgress {
        id: row.id.clone(),
        name: row.name.clone(),
        state: JobState::parse(&row.state).unwrap_or(JobState::Failed),
        total: row.total.map(count),
        seen: count(row.seen),
        changed: count(row.changed),
        quarantined: count(row.quarantined),
        batches: count(row.batches),
        batch: 0,
        rate: None,
        eta_seconds: None,
        throttle: row.throttle.clone(),
        owner: row.owner.as_deref().map(runner_title),
        alive: alive(row),
        problem: row.problem.clone(),
        updated_at: row.updated_at.clone(),
    }
}

/// A job held by this process.
#[derive(Debug, Clone)]
pub struct HeldJob {
    /// Our tables.
    pub own: OwnTables,
    /// The row as this runner last wrote it.
    pub row: JobRow,
    /// True when the run existed before and is resumed.
    pub resumed: bool,
}

/// Data to open a new run with.
#[derive(Debug, Clone)]
pub struct RunOpening {
    /// Name of the job.
    pub name: String,
    /// Settings of the run.
    pub settings: JobSettings,
    /// The columns it relies on.
    pub relies_on: Value,
    /// Rows to process.
    pub total: Option<u64>,
    /// Start of the first batch, under `at`.
    pub place: Value,
}

/// Way to enter a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEntry {
    /// Start it; an unfinished run is resumed unless it is paused.
    Begin,
    /// To resume an unfinished run.
    Resume,
}

/// Takes a job: an unfinished run is resumed, otherwise a new one begins. The previous runner is refused from then on.
///
/// # Errors
/// [`ChangeError::Conflict`] if someone else works on it, [`ChangeError::NotFound`] if there is nothing to resume.
pub async fn hold(
    store: &Store,
    author: &Author,
    opening: &RunOpening,
    entry: JobEntry,
) -> Result<HeldJob, ChangeError> {
    let own = ready(store).await?;
    let name = &opening.name;
    let mut tries = 0;
    let mut waiting = WaitingTries::begin();
    loop {
        let at = now();
        let patience = waiting.patience().min(PATIENCE);
        let attempt = async {
            let mut writer = store.write_within(&at, patience).await?;
            let open = writer.open_job(&own, name).await?;
            let held = match taken(open, opening, author, &at, entry, store.invocation()) {
                Ok(held) => held,
                Err(error) => {
                    writer.rollback().await;
                    return Ok(Err(error));
                }
            };
            let (row, resumed) = held;
            let mutation = if resumed { update(&writer, &own, &row) } else { insert(&writer, &own, &row) };
            committed(writer, &mutation).await.map(|()| Ok(HeldJob { own: own.clone(), row, resumed }))
        };
        match attempt.await {
            Ok(outcome) => return outcome,
            Err(error @ WriteError::Busy(_)) => waiting.again_after(&error).await?,
            // Someone else inserted it at the same time.
            Err(WriteError::Rejected(_)) if tries < 3 => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes a change and commits it, or rolls everything back.
async fn committed(mut writer: WriteTransaction<'_>, mutation: &Mutation) -> Result<(), WriteError> {
    if let Err(error) = writer.run(mutation).await {
        writer.rollback().await;
        return Err(error);
    }
    writer.commit().await
}

/// The row as this runner takes it, and whether it existed.
fn taken(
    open: Option<JobRow>,
    opening: &RunOpening,
    author: &Author,
    at: &str,
    entry: JobEntry,
    invocation: &Invocation,
) -> Result<(JobRow, bool), ChangeError> {
    let name = &opening.name;
    let Some(mut row) = open else {
        if entry == JobEntry::Resume {
            return Err(ChangeError::NotFound(format!(
                "there is no unfinished run of {name}; `{}` starts one",
                invocation.line(["backfill", name, "--apply"])
            )));
        }
        return Ok((begun(opening, author, at), false));
    };
    let next = next_state(&row, name, entry, invocation)?;
    if next == JobState::Running {
        check_unmoved(&row, opening, invocation)?;
    }
    move_to(&mut row, next, at);
    row.token = row.token.wrapping_add(1);
    row.owner = Some(this_runner());
    row.heartbeat_at = Some(at.to_owned());
    row.problem = None;
    row.throttle = None;
    row.actor.clone_from(&author.actor);
    if author.ticket.is_some() {
        row.ticket.clone_from(&author.ticket);
    }
    let mut settings: JobSettings = serde_json::from_str(&row.settings).unwrap_or_default();
    settings.batch = opening.settings.batch.or(settings.batch);
    settings.rate = opening.settings.rate.or(settings.rate);
    row.settings = settings.to_json().to_string();
    Ok((row, true))
}

/// The row of a run that begins.
fn begun(opening: &RunOpening, author: &Author, at: &str) -> JobRow {
    JobRow {
        id: new_id(),
        name: opening.name.clone(),
        state: JobState::Running.word().to_owned(),
        token: 1,
        owner: Some(this_runner()),
        heartbeat_at: Some(at.to_owned()),
        settings: opening.settings.to_json().to_string(),
        relies_on: opening.relies_on.to_string(),
        place: opening.place.to_string(),
        total: opening.total.map(|t| t as i64),
        counts: "{}".to_owned(),
        actor: author.actor.clone(),
        ticket: author.ticket.clone(),
        created_at: at.to_owned(),
        updated_at: at.to_owned(),
        ..JobRow::default()
    }
}

/// The state of a run when it is taken.
///
/// # Errors
/// Someone runs it, it is paused and must not be resumed, or it has ended.
fn next_state(row: &JobRow, name: &str, entry: JobEntry, invocation: &Invocation) -> Result<JobState, ChangeError> {
    let state = JobState::parse(&row.state).unwrap_or(JobState::Failed);
    let conflict = |message: String| ChangeError::Conflict { message, rows: Vec::new() };
    if state.is_active() && alive(row) {
        let by = row.owner.as_deref().map(runner_title).unwrap_or_default();
        return Err(conflict(format!(
            "{name} is already running, started by {by}: `{}` shows its progress",
            invocation.line(["backfill"])
        )));
    }
    if state == JobState::Paused && entry == JobEntry::Begin {
        return Err(conflict(format!(
            "{name} was paused: `{}` resumes it, `{}` ends it",
            invocation.line(["backfill", "resume", name]),
            invocation.line(["backfill", "cancel", name])
        )));
    }
    let by = if state.is_active() { JobMove::TakeOver } else { JobMove::Start };
    state.after(by).ok_or_else(|| conflict(format!("{name} is {} and cannot be resumed", state.word())))
}

/// Refuses to resume a run if the tables it relies on have changed.
fn check_unmoved(row: &JobRow, opening: &RunOpening, invocation: &Invocation) -> Result<(), ChangeError> {
    let then: Value = serde_json::from_str(&row.relies_on).unwrap_or_default();
    let differences = super::drift::differences(&then, &opening.relies_on);
    if differences.is_empty() {
        return Ok(());
    }
    let name = &opening.name;
    Err(ChangeError::Conflict {
        message: format!(
            "the database has changed since {name} was started: it cannot be resumed from its checkpoint. `{}` ends \
             it, then start it again",
            invocation.line(["backfill", "cancel", name])
        ),
        rows: differences,
    })
}

fn move_to(row: &mut JobRow, state: JobState, at: &str) {
    state.word().clone_into(&mut row.state);
    at.clone_into(&mut row.updated_at);
    row.ended_at = state.is_over().then(|| at.to_owned());
    if !state.is_active() {
        row.owner = None;
    }
}

impl HeldJob {
    /// Returns the state of the job.
    pub fn state(&self) -> JobState {
        JobState::parse(&self.row.state).unwrap_or(JobState::Failed)
    }

    /// Returns the settings of the run.
    pub fn settings(&self) -> JobSettings {
        serde_json::from_str(&self.row.settings).unwrap_or_default()
    }

    /// Returns the stored position: where the next batch begins (`at`), or that there is none (`end`), and the sums so
    /// far (`sums`).
    pub fn place(&self) -> Value {
        serde_json::from_str(&self.row.place).unwrap_or_default()
    }

    /// Returns the facts of its batches so far, added up.
    pub fn sums(&self) -> Map<String, Value> {
        self.place()["sums"].as_object().cloned().unwrap_or_default()
    }

    /// Locks the job's row in a transaction and checks that this runner still holds it: with another token, the
    /// transaction must not commit. Returns the state, which others may have changed to request a pause.
    ///
    /// # Errors
    /// [`LostHold::Taken`] if someone else holds it now.
    pub async fn fence(&self, writer: &mut WriteTransaction<'_>) -> Result<JobState, LostHold> {
        let row = writer.job_by_id(&self.own, &self.row.id).await?;
        let Some(row) = row.filter(|r| r.token == self.row.token && r.ended_at.is_none()) else {
            return Err(LostHold::Taken);
        };
        Ok(JobState::parse(&row.state).unwrap_or(JobState::Failed))
    }

    /// Writes the current row, within a transaction that was fenced.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn write(&self, writer: &mut WriteTransaction<'_>) -> Result<(), WriteError> {
        let mutation = update(writer, &self.own, &self.row);
        writer.run(&mutation).await
    }

    /// Notes a move of the job in its row.
    pub fn moved(&mut self, state: JobState, by: JobMove, at: &str) {
        move_to(&mut self.row, state.after(by).unwrap_or(state), at);
    }

    /// Writes the rows that a batch could not process, within its transaction.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn set_aside(
        &mut self,
        writer: &mut WriteTransaction<'_>,
        bad: &[BadRow],
        at: &str,
    ) -> Result<(), WriteError> {
        if bad.is_empty() {
            return Ok(());
        }
        let first = self.row.quarantined;
        let texts = |b: &BadRow| [b.entity.clone(), b.id.clone(), b.problem.clone(), at.to_owned()];
        let rows = bad.iter().enumerate().map(|(i, b)| {
            let keys =
                [Cell::Is(FetchedValue::Text(self.row.id.clone())), Cell::Is(writer.number(first + 1 + i as i64))];
            keys.into_iter().chain(texts(b).map(|t| Cell::Is(FetchedValue::Text(t)))).collect()
        });
        let columns = ["job_id", "number", "entity", "row_id", "problem", "at"].map(str::to_owned).to_vec();
        let table = jobs::quarantine(&self.own);
        let mutation = Mutation::Insert { table, key: Vec::new(), columns, rows: rows.collect() };
        self.row.quarantined = self.row.quarantined.saturating_add(bad.len() as i64);
        writer.run(&mutation).await
    }
}

/// Reason why a runner must stop at once.
#[derive(Debug)]
pub enum LostHold {
    /// Another runner holds the job now.
    Taken,
    /// The engine refused.
    Write(WriteError),
}

impl From<WriteError> for LostHold {
    fn from(error: WriteError) -> Self {
        LostHold::Write(error)
    }
}

/// Asks to pause or cancel a job, wherever it runs. A job without a runner changes its state at once.
///
/// # Errors
/// [`ChangeError::NotFound`] if there is no unfinished run, [`ChangeError::Conflict`] if the transition is not
/// possible.
pub async fn ask(store: &Store, name: &str, by: JobMove) -> Result<JobRow, ChangeError> {
    let own = ready(store).await?;
    let mut waiting = WaitingTries::begin();
    loop {
        let at = now();
        let patience = waiting.patience().min(PATIENCE);
        let attempt = async {
            let mut writer = store.write_within(&at, patience).await?;
            let open = writer.open_job(&own, name).await?;
            let Some(mut row) = open else {
                writer.rollback().await;
                return Ok(Err(ChangeError::NotFound(format!("there is no unfinished run of {name}"))));
            };
            let mut state = JobState::parse(&row.state).unwrap_or(JobState::Failed);
            let Some(next) = state.after(by) else {
                writer.rollback().await;
                // Asking twice is not an error.
                let asked = matches!((state, by), (JobState::Pausing | JobState::Paused, JobMove::AskPause))
                    || matches!((state, by), (JobState::Cancelling, JobMove::AskCancel));
                let message = format!("{name} is {}: it cannot do that now", state.word());
                return Ok(if asked { Ok(row) } else { Err(ChangeError::Conflict { message, rows: Vec::new() }) });
            };
            state = next;
            if state.is_active() && !alive(&row) {
                state = state.after(JobMove::Stop).unwrap_or(state);
                // A runner that comes back is refused.
                row.token = row.token.wrapping_add(1);
            }
            move_to(&mut row, state, &at);
            let mutation = update(&writer, &own, &row);
            committed(writer, &mutation).await.map(|()| Ok(row))
        };
        match attempt.await {
            Ok(outcome) => return outcome,
            Err(error @ WriteError::Busy(_)) => waiting.again_after(&error).await?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Columns to write, with their values.
fn cells(engine: Engine, row: &JobRow) -> Vec<(String, Cell)> {
    let text = |t: &str| FetchedValue::Text(t.to_owned());
    let maybe = |t: &Option<String>| t.as_deref().map_or(FetchedValue::Null, text);
    let number = |n: i64| match engine {
        Engine::Sqlite => FetchedValue::Integer(n),
        Engine::Postgres => FetchedValue::Text(n.to_string()),
    };
    let perhaps = |n: Option<i64>| n.map_or(FetchedValue::Null, number);
    let values = [
        ("name", text(&row.name)),
        ("state", text(&row.state)),
        ("token", number(row.token)),
        ("owner", maybe(&row.owner)),
        ("heartbeat_at", maybe(&row.heartbeat_at)),
        ("settings", text(&row.settings)),
        ("relies_on", text(&row.relies_on)),
        ("place", text(&row.place)),
        ("total", perhaps(row.total)),
        ("seen", number(row.seen)),
        ("changed", number(row.changed)),
        ("quarantined", number(row.quarantined)),
        ("batches", number(row.batches)),
        ("counts", text(&row.counts)),
        ("throttle", maybe(&row.throttle)),
        ("first_seq", perhaps(row.first_seq)),
        ("last_seq", perhaps(row.last_seq)),
        ("verification", maybe(&row.verification)),
        ("problem", maybe(&row.problem)),
        ("actor", text(&row.actor)),
        ("ticket", maybe(&row.ticket)),
        ("created_at", text(&row.created_at)),
        ("updated_at", text(&row.updated_at)),
        ("ended_at", maybe(&row.ended_at)),
    ];
    values.into_iter().map(|(name, value)| (name.to_owned(), Cell::Is(value))).collect()
}

fn insert(writer: &WriteTransaction<'_>, own: &OwnTables, row: &JobRow) -> Mutation {
    let (mut columns, mut values): (Vec<String>, Vec<Cell>) = cells(writer.engine(), row).into_iter().unzip();
    columns.push("id".to_owned());
    values.push(Cell::Is(FetchedValue::Text(row.id.clone())));
    Mutation::Insert { table: jobs::table(own), key: vec!["id".to_owned()], columns, rows: vec![values] }
}

fn update(writer: &WriteTransaction<'_>, own: &OwnTables, row: &JobRow) -> Mutation {
    let key = vec![("id".to_owned(), FetchedValue::Text(row.id.clone()))];
    Mutation::Update { table: jobs::table(own), key, set: cells(writer.engine(), row) }
}
