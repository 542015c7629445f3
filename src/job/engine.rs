//! Runs a job: batch after batch, each with its checkpoint in one transaction, until it is done or asked to stop.

use std::borrow::Cow;
use std::future::Future;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::first_changes::FirstChanges;
use super::look::{add_facts, look};
use super::outcome::JobOutcome;
use super::pace::{Pace, Sizing, rest};
use super::plan::{BadRow, JobBeat, JobCheck, JobMove, JobSettings, JobState, JobWish, undo_reason};
use super::record::{self, HeldJob, JobEntry, LostHold, PATIENCE, RunOpening};
use super::{BatchAsk, Job, JobBatch, backfill, drift};
use crate::change::anchor;
use crate::change::apply::apply_batch;
use crate::change::plan::{Counts, SHOWN};
use crate::change::waiting::PERSON;
use crate::change::{Author, Change, ChangeError, FailedTransaction, now, suppress};
use crate::layout::Engine;
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::write::WriteError;

/// Interval at which an idle runner sends a heartbeat, and checks for stop requests.
const HEARTBEAT: Duration = Duration::from_millis(900);
/// Longest continuous wait of a runner for others before it gives up; finished batches stay, and it can be resumed.
const ENDURANCE: Duration = PERSON;
/// Longest time that a runner tries to write down why it broke off.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Interval at which the database is checked for load.
const PULSE: Duration = Duration::from_secs(2);
/// Seconds that a replica may lag.
const LAG: f64 = 10.0;
/// Longest wait for a replica that does not catch up, such as a deliberately delayed one.
const LAG_WAIT: Duration = Duration::from_mins(1);
/// Most attempts to plan a batch again because rows changed meanwhile.
const PLANNED_AT_MOST: u32 = 8;
/// Rows that may be set aside in any case; beyond that, one in a hundred.
const SET_ASIDE: u64 = 100;
/// Sum of the changes that could not be written: the rows still need them.
const REFUSED: &str = "refused";
/// Most further passes of a job for rows added meanwhile.
const PASSES: u32 = 2;

/// Runs a job until it is done, told to stop, or fails. `wish` stops it from this process; others do so through the
/// database. `each` receives its progress.
///
/// # Errors
/// [`ChangeError::Refused`] if jobs cannot run here, [`ChangeError::Conflict`] if someone else runs it or the database
/// structure changed, [`ChangeError::Paused`] if someone took it over; otherwise the reason why it failed. Finished
/// batches stay, and the job can be resumed.
pub async fn run(
    store: &Store,
    job: &dyn Job,
    author: &Author,
    settings: &JobSettings,
    entry: JobEntry,
    wish: watch::Receiver<JobWish>,
    each: &mut (dyn FnMut(JobBeat) + Send),
) -> Result<JobOutcome, ChangeError> {
    record::ready(store).await?;
    let opening = RunOpening {
        name: job.name().to_owned(),
        settings: JobSettings { told: job.told(), ..settings.clone() },
        relies_on: drift::columns(store, &job.relies_on(store)).await?,
        total: job.total(store).await?,
        place: json!({ "at": job.begin() }),
    };
    let held = record::hold(store, author, &opening, entry).await?;
    let settings = held.settings();
    if held.resumed {
        each(JobBeat::Said(agreeing(held.row.batches, "resumed after {#} {batch|batches}")));
    }
    let mut runner = Runner {
        store,
        job,
        author,
        sizing: Sizing::new(settings.batch, settings.rate),
        rate: settings.rate,
        pace: Pace::default(),
        held,
        wish,
        each,
        operation: String::new(),
        changes: FirstChanges::default(),
        written: Vec::new(),
        checks: Vec::new(),
        last_batch: 0,
        pulse: None,
        lags_on: false,
        narrowed: None,
        // SQLite has one writer: agents, and pause requests, can write only while a batch is planned.
        plans_ahead: job.plans_ahead() && settings.rate.is_none() && store.engine() == Engine::Postgres,
        ahead: None,
    };
    let ended = runner.work().await;
    match ended {
        Ok(()) => runner.outcome().await,
        Err(Stop::Taken) => Err(taken_over(job)),
        // After a long silence the connection is closed. If the job is no longer ours, that is reported instead of the
        // error.
        Err(Stop::Failed(error)) => Err(if runner.failed(&error).await { error } else { taken_over(job) }),
    }
}

fn taken_over(job: &dyn Job) -> ChangeError {
    ChangeError::Paused(format!(
        "another runner has taken over {}: this one has stopped, and what it wrote is kept",
        job.name()
    ))
}

/// Reason why a runner stops early.
enum Stop {
    /// Another runner holds the job.
    Taken,
    /// The job failed.
    Failed(ChangeError),
}

impl<E> From<E> for Stop
where
    ChangeError: From<E>,
{
    fn from(error: E) -> Self {
        Stop::Failed(ChangeError::from(error))
    }
}

/// Result of writing a batch.
enum BatchOutcome {
    /// The batch is written.
    Done,
    /// Another writer was in the way.
    Busy(String),
    /// Rows have changed: plan it again.
    Moved(ChangeError),
    /// The database does not accept a value.
    Rejected(String),
    /// It was told to stop meanwhile: nothing of the batch is written.
    Stopped,
}

struct Runner<'a> {
    store: &'a Store,
    job: &'a dyn Job,
    author: &'a Author,
    held: HeldJob,
    sizing: Sizing,
    rate: Option<f64>,
    pace: Pace,
    wish: watch::Receiver<JobWish>,
    each: &'a mut (dyn FnMut(JobBeat) + Send),
    operation: String,
    changes: FirstChanges,
    /// Audit entries that this runner wrote.
    written: Vec<i64>,
    checks: Vec<JobCheck>,
    last_batch: usize,
    pulse: Option<Instant>,
    /// A replica was waited for without success.
    lags_on: bool,
    /// Rows of the next batches while a row is searched that cannot be written.
    narrowed: Option<usize>,
    /// Batches are planned while the one before is being written.
    plans_ahead: bool,
    /// The batch that was planned so, and the place it begins at.
    ahead: Option<(Value, JobBatch)>,
}

impl Runner<'_> {
    async fn work(&mut self) -> Result<(), Stop> {
        self.tell(None);
        let mut passes = 0;
        loop {
            self.all_batches().await?;
            if self.held.state() != JobState::Running {
                return Ok(());
            }
            self.tell(Some("checks the result".to_owned()));
            let left = if self.job.is_planned_again() { self.left().await? } else { Some(0) };
            let Some(left) = left else { return self.stop_here().await };
            if left == 0 || passes == PASSES {
                return self.finish(left).await;
            }
            passes += 1;
            (self.each)(JobBeat::Said(agreeing(
                left,
                "{#} {row was|rows were} added in the meantime or skipped: running again",
            )));
            let mut sums = self.held.sums();
            // They are counted again.
            backfill::LEFT_OUT.iter().chain([&REFUSED]).for_each(|why| drop(sums.remove(*why)));
            self.held.row.place = json!({ "at": self.job.begin(), "sums": sums }).to_string();
        }
    }

    /// Runs batches until the end, or until asked to stop; the state says which.
    async fn all_batches(&mut self) -> Result<(), Stop> {
        loop {
            let place = self.held.place();
            if place["end"] == json!(true) {
                return Ok(());
            }
            if self.asked_here() {
                self.stop_here().await?;
                return Ok(());
            }
            self.spare().await?;
            let started = Instant::now();
            let Some(seen) = self.one_batch(&place["at"]).await? else {
                return self.stop_here().await;
            };
            let took = started.elapsed();
            if self.held.state() != JobState::Running {
                self.tell(None);
                return Ok(());
            }
            self.wait(rest(seen, self.rate, took), self.rate.map(|r| format!("limited to {r} rows a second"))).await;
            self.pace.took(seen, started.elapsed());
            self.tell(None);
        }
    }

    /// Plans and applies one batch, with retries; returns the number of rows processed, `None` if told to stop before
    /// anything was written.
    async fn one_batch(&mut self, place: &Value) -> Result<Option<usize>, Stop> {
        let mut planned = 0;
        let mut waited = Duration::ZERO;
        loop {
            let started = Instant::now();
            let size = self.narrowed.unwrap_or_else(|| self.sizing.size());
            let Some(mut batch) = self.planned(place, size).await? else { return Ok(None) };
            batch.plan.undo_reason = batch.plan.undo_reason.or_else(|| self.undo_reason());
            let began = Instant::now();
            match self.apply_and_plan_ahead(&batch).await? {
                BatchOutcome::Done => {
                    if waited.is_zero() && self.narrowed.is_none() {
                        self.sizing.took(batch.seen, started.elapsed());
                    }
                    self.narrowed = self.narrowed.map(|n| n * 2).filter(|n| *n < self.sizing.size());
                    return Ok(Some(batch.seen));
                }
                BatchOutcome::Busy(why) => {
                    self.sizing.in_the_way();
                    if waited > ENDURANCE {
                        return Err(self.gave_up(&why));
                    }
                    let pause = Duration::from_millis(100);
                    self.wait(pause, Some("waits for another writer".to_owned())).await;
                    waited += began.elapsed();
                    if self.asked_here() {
                        return Ok(None);
                    }
                }
                BatchOutcome::Moved(error) => {
                    planned += 1;
                    if planned == PLANNED_AT_MOST && size == 1 {
                        self.skip(&batch, "something keeps changing it").await?;
                        return Ok(Some(batch.seen));
                    }
                    if planned == PLANNED_AT_MOST {
                        self.narrowed = Some(size / 4).map(|n| n.max(1));
                        planned = 0;
                        (self.each)(JobBeat::Said(format!("rows keep changing: {error}")));
                    }
                }
                BatchOutcome::Rejected(why) if size == 1 => {
                    (self.each)(JobBeat::Said(format!("a row is set aside: {why}")));
                    self.skip(&batch, "the database does not accept the new value").await?;
                    return Ok(Some(batch.seen));
                }
                BatchOutcome::Rejected(_) => self.narrowed = Some((size.min(batch.seen) / 4).max(1)),
                BatchOutcome::Stopped => return Ok(None),
            }
        }
    }

    /// The batch at a position: planned ahead, or planned now. `None` if told to stop meanwhile.
    async fn planned(&mut self, place: &Value, size: usize) -> Result<Option<JobBatch>, Stop> {
        match self.ahead.take() {
            Some((at, batch)) if at == *place && self.narrowed.is_none() => return Ok(Some(batch)),
            _ => {}
        }
        let own = self.held.own.clone();
        let planning = self.job.batch(BatchAsk { store: self.store, own: Some(&own), place, size, dry: false });
        self.beating(planning).await
    }

    /// Writes a batch, and plans the next one in parallel if allowed. If that plan fails, it is made again in its turn.
    async fn apply_and_plan_ahead(&mut self, batch: &JobBatch) -> Result<BatchOutcome, Stop> {
        let Some(place) = batch.next.as_ref().filter(|_| self.plans_ahead && self.narrowed.is_none()) else {
            return self.apply(batch).await;
        };
        let (store, job, own, size) = (self.store, self.job, self.held.own.clone(), self.sizing.size());
        let planning = job.batch(BatchAsk { store, own: Some(&own), place, size, dry: false });
        let mut wish = self.wish.clone();
        let planning = async {
            tokio::select! {
                planned = planning => planned.ok(),
                () = asked_to_stop(&mut wish) => None,
            }
        };
        let (applied, planned) = tokio::join!(self.apply(batch), planning);
        self.ahead = planned.map(|batch| (place.clone(), batch));
        let applied = applied?;
        if !matches!(applied, BatchOutcome::Done) {
            self.ahead = None;
        }
        Ok(applied)
    }

    /// Quarantines the rows of a batch that change together, and continues after them.
    async fn skip(&mut self, batch: &JobBatch, problem: &str) -> Result<(), Stop> {
        let mut without = batch.clone();
        without.plan.mutations.clear();
        without.plan.trail.clear();
        without.plan.changes_total = 0;
        without.plan.counts.clear();
        without.plan.facts = json!({ REFUSED: batch.plan.changes_total });
        let aside = |change: Change| BadRow { entity: change.entity, id: change.id, problem: problem.to_owned() };
        without.bad.extend(std::mem::take(&mut without.plan.changes).into_iter().map(aside));
        let began = Instant::now();
        loop {
            match self.apply(&without).await? {
                BatchOutcome::Done | BatchOutcome::Stopped => return Ok(()),
                BatchOutcome::Busy(why) if began.elapsed() > ENDURANCE => return Err(self.gave_up(&why)),
                BatchOutcome::Busy(_) => self.wait(Duration::from_millis(100), None).await,
                BatchOutcome::Moved(error) => return Err(Stop::Failed(error)),
                BatchOutcome::Rejected(why) => return Err(Stop::Failed(ChangeError::Failed(why))),
            }
        }
    }

    /// Writes a batch, its entry and the checkpoint in one transaction.
    async fn apply(&mut self, batch: &JobBatch) -> Result<BatchOutcome, Stop> {
        let at = now();
        let mut writer = match self.store.write_within(&at, PATIENCE).await {
            Ok(writer) => writer,
            Err(error @ WriteError::Busy(_)) => return Ok(BatchOutcome::Busy(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let mut next = self.held.clone();
        let mut wish = self.wish.clone();
        let outcome = async {
            writer.ends_when_silent().await.map_err(|e| Inside::Failed(e.into()))?;
            let state = next.fence(&mut writer).await.map_err(|lost| match lost {
                LostHold::Taken => Inside::Taken,
                LostHold::Write(error) => Inside::Failed(FailedTransaction::Write(error)),
            })?;
            // A person erased since the batch was planned must not come back.
            suppress::check(self.store, &batch.plan).await.map_err(|e| Inside::Failed(e.into()))?;
            let seq = tokio::select! {
                biased;
                applied = apply_batch(&mut writer, &next.own, &batch.plan, self.author, &at) => {
                    applied.map_err(Inside::Failed)?
                }
                () = asked_to_stop(&mut wish) => return Err(Inside::Stopped),
            };
            next.set_aside(&mut writer, &batch.bad, &at).await.map_err(|e| Inside::Failed(e.into()))?;
            note(&mut next, batch, seq, &at);
            let asked = if *self.wish.borrow() == JobWish::Cancel { JobState::Cancelling } else { state };
            if asked == JobState::Pausing || asked == JobState::Cancelling || is_told(&self.wish) {
                next.moved(asked, stop_move(&self.wish), &at);
            }
            next.write(&mut writer).await.map_err(|e| Inside::Failed(e.into()))
        };
        match outcome.await {
            Ok(()) => match writer.commit().await {
                Ok(()) => {}
                Err(WriteError::Unknown(error)) => {
                    // The connection was lost during the commit: the checkpoint tells whether it was written.
                    let stored = self.store.records().job(&self.held.row.name).await?;
                    if stored.is_none_or(|row| row.batches != next.row.batches || row.token != next.row.token) {
                        return Ok(BatchOutcome::Busy(error.to_string()));
                    }
                }
                Err(error @ WriteError::Busy(_)) => return Ok(BatchOutcome::Busy(error.to_string())),
                Err(error) => return Err(error.into()),
            },
            Err(inside) => {
                writer.rollback().await;
                return inside.sorted();
            }
        }
        let before = self.held.row.last_seq;
        self.held = next;
        if let Some(seq) = self.held.row.last_seq.filter(|seq| Some(*seq) != before) {
            self.written.push(seq);
            anchor::after(self.store, seq).await;
        }
        self.last_batch = batch.seen;
        self.operation.clone_from(&batch.plan.operation);
        self.changes.take(batch.plan.changes.iter().map(Cow::Borrowed));
        let (aside, seen) = (self.held.row.quarantined.max(0) as u64, self.held.row.seen.max(0) as u64);
        if aside > SET_ASIDE.max(seen / 100) {
            return Err(Stop::Failed(ChangeError::Failed(format!(
                "{aside} of {seen} rows could not be handled: something is wrong beyond single rows. List them with \
                 `{}`; resuming continues after them",
                self.store.invocation().line(["backfill"])
            ))));
        }
        Ok(BatchOutcome::Done)
    }

    /// Waits for others if the database is under load.
    async fn spare(&mut self) -> Result<(), Stop> {
        if self.pulse.is_some_and(|then| then.elapsed() < PULSE) {
            return Ok(());
        }
        let mut lagging: Option<(f64, Instant)> = None;
        loop {
            self.pulse = Some(Instant::now());
            // If our role may not see the load, nothing is known, which is no reason to stop.
            let Ok(strain) = self.store.records().strain().await else { return Ok(()) };
            let why = match (strain.replica_lag, strain.waiting) {
                (Some(lag), _) if lag > LAG && !self.lags_on => {
                    if lagging.is_none() {
                        (self.each)(JobBeat::Said(format!("a replica lags {lag:.0} s behind: waiting for it")));
                    }
                    let (first, since) = *lagging.get_or_insert((lag, Instant::now()));
                    if since.elapsed() > LAG_WAIT && lag >= first {
                        self.lags_on = true;
                        let words = "the replica does not catch up during the wait: no longer waiting for it";
                        (self.each)(JobBeat::Said(words.to_owned()));
                        return Ok(());
                    }
                    format!("a replica lags {lag:.0} s behind")
                }
                (_, waiting) if waiting > 0 => {
                    self.wait(
                        Duration::from_millis(200),
                        Some(agreeing(waiting, "{#} {session waits|sessions wait} for locks")),
                    )
                    .await;
                    return Ok(());
                }
                _ => return Ok(()),
            };
            self.wait(Duration::from_millis(500), Some(why)).await;
            self.beat().await?;
            if self.asked_here() || self.held.state() != JobState::Running {
                return Ok(());
            }
        }
    }

    /// Waits for a future that writes nothing, with heartbeats meanwhile; `None` if told to stop before its end.
    async fn beating<T>(&mut self, work: impl Future<Output = Result<T, ChangeError>>) -> Result<Option<T>, Stop> {
        tokio::pin!(work);
        let mut wish = self.wish.clone();
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done.map(Some).map_err(Stop::Failed),
                () = asked_to_stop(&mut wish) => return Ok(None),
                () = tokio::time::sleep(HEARTBEAT) => {}
            }
            // The work continues meanwhile: in SQLite's rollback journal modes, the heartbeat is only written when the
            // work's current read ends.
            let mut done = None;
            {
                let beat = self.beat();
                tokio::pin!(beat);
                loop {
                    tokio::select! {
                        biased;
                        ended = &mut work, if done.is_none() => done = Some(ended),
                        beaten = &mut beat => break beaten?,
                    }
                }
            }
            if let Some(done) = done {
                return done.map(Some).map_err(Stop::Failed);
            }
            if self.held.state() != JobState::Running {
                return Ok(None);
            }
        }
    }

    /// Sends a heartbeat, and notices stop requests.
    async fn beat(&mut self) -> Result<(), Stop> {
        let at = now();
        let mut writer = match self.store.write_within(&at, PATIENCE).await {
            Ok(writer) => writer,
            Err(WriteError::Busy(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut next = self.held.clone();
        let state = match next.fence(&mut writer).await {
            Ok(state) => state,
            Err(LostHold::Taken) => {
                writer.rollback().await;
                return Err(Stop::Taken);
            }
            Err(LostHold::Write(_)) => {
                writer.rollback().await;
                return Ok(());
            }
        };
        state.word().clone_into(&mut next.row.state);
        next.row.heartbeat_at = Some(at);
        if next.write(&mut writer).await.is_err() {
            writer.rollback().await;
            return Ok(());
        }
        match writer.commit().await {
            Ok(()) => self.held = next,
            // Someone is still reading: the next heartbeat suffices.
            Err(WriteError::Busy(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Waits, unless told to stop meanwhile.
    async fn wait(&mut self, pause: Duration, why: Option<String>) {
        if pause.is_zero() || self.asked_here() {
            return;
        }
        self.tell(why);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = changed(&mut self.wish) => {}
        }
    }

    fn gave_up(&self, why: &str) -> Stop {
        let seconds = ENDURANCE.as_secs();
        let resume = self.store.invocation().line(["backfill", "resume", self.job.name()]);
        let words = format!(
            "blocked by another process for {seconds} s: {why}. What was done stays; `{resume}` continues when it has \
             finished"
        );
        Stop::Failed(ChangeError::Failed(words))
    }

    fn asked_here(&self) -> bool {
        is_told(&self.wish)
    }

    /// Stops between two batches, as this process was told.
    async fn stop_here(&mut self) -> Result<(), Stop> {
        let (cancel, by) = (*self.wish.borrow() == JobWish::Cancel, stop_move(&self.wish));
        self.settle(|held, state, at| {
            let from = if cancel { JobState::Cancelling } else { state };
            held.moved(from, by, at);
        })
        .await
    }

    /// Writes the row after a change, with retries.
    async fn settle(&mut self, change: impl Fn(&mut HeldJob, JobState, &str)) -> Result<(), Stop> {
        self.settle_within(ENDURANCE, change).await
    }

    async fn settle_within(
        &mut self,
        endurance: Duration,
        change: impl Fn(&mut HeldJob, JobState, &str),
    ) -> Result<(), Stop> {
        let began = Instant::now();
        loop {
            let at = now();
            let attempt = async {
                let mut writer = self.store.write_within(&at, PATIENCE).await?;
                let mut next = self.held.clone();
                let state = match next.fence(&mut writer).await {
                    Ok(state) => state,
                    Err(lost) => {
                        writer.rollback().await;
                        return Err(lost);
                    }
                };
                change(&mut next, state, &at);
                if let Err(error) = next.write(&mut writer).await {
                    writer.rollback().await;
                    return Err(error.into());
                }
                writer.commit().await?;
                Ok(next)
            };
            match attempt.await {
                Ok(next) => {
                    self.held = next;
                    self.tell(None);
                    return Ok(());
                }
                Err(LostHold::Taken) => return Err(Stop::Taken),
                Err(LostHold::Write(WriteError::Busy(_))) if began.elapsed() < endurance => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(LostHold::Write(error)) => return Err(error.into()),
            }
        }
    }

    /// Changes that could not be written.
    fn refused(&self) -> u64 {
        self.held.sums().get(REFUSED).and_then(Value::as_u64).unwrap_or_default()
    }

    /// Number of rows that still need the job, without quarantined ones; `None` if told to stop meanwhile.
    async fn left(&mut self) -> Result<Option<u64>, Stop> {
        let (store, job) = (self.store, self.job);
        let plan = self.beating(async { look(store, job).await }).await?;
        Ok(plan.map(|plan| (plan.changes_total as u64).saturating_sub(self.refused())))
    }

    /// Returns the reason why entries of this run cannot be undone; `None` if they can.
    fn undo_reason(&self) -> Option<String> {
        undo_reason(self.job.undo_reason(), self.held.row.total.and_then(|total| u64::try_from(total).ok()))
    }

    async fn finish(&mut self, left: u64) -> Result<(), Stop> {
        let (store, job) = (self.store, self.job);
        let Some(found) = self.beating(job.verify(store)).await? else { return self.stop_here().await };
        let mut checks = Vec::new();
        let refused = self.refused();
        if job.is_planned_again() || refused > 0 {
            let words = match (left, refused) {
                (0, 0) if found.is_empty() => "none".to_owned(),
                (0, 0) => "none that this job writes".to_owned(),
                (_, 0) => format!("{left}: they changed again in the meantime"),
                (0, _) => format!("{refused}: they could not be written, and are set aside"),
                _ => format!("{left}, which changed again in the meantime, and {refused}, which could not be written"),
            };
            let ok = left == 0 && refused == 0;
            checks.push(JobCheck { what: "rows that still need it".to_owned(), ok, found: words });
        }
        checks.extend(found);
        let verification = json!(checks).to_string();
        self.checks = checks;
        self.settle(move |held, state, at| {
            held.row.verification = Some(verification.clone());
            held.moved(state, JobMove::Finish, at);
        })
        .await
    }

    /// Records the failure; if even that fails, the lease expires. Returns false if someone else holds the job by now,
    /// so that it has not failed.
    async fn failed(&mut self, error: &ChangeError) -> bool {
        let words = error.to_string();
        let settled = self
            .settle_within(LAST_WORDS, move |held, state, at| {
                held.moved(state, JobMove::Fail, at);
                held.row.problem = Some(words.clone());
            })
            .await;
        !matches!(settled, Err(Stop::Taken))
    }

    fn tell(&mut self, throttle: Option<String>) {
        let mut progress = record::progress(&self.held.row);
        progress.batch = self.last_batch;
        progress.rate = self.pace.rate();
        let left = progress.total.map(|total| total.saturating_sub(progress.seen));
        progress.eta_seconds = left.and_then(|left| self.pace.eta(left));
        progress.throttle = throttle;
        (self.each)(JobBeat::Progress(Box::new(progress)));
    }

    async fn outcome(self) -> Result<JobOutcome, ChangeError> {
        let row = &self.held.row;
        let entries = row.first_seq.zip(row.last_seq);
        let (own_entries, undo_reason) = match (self.undo_reason(), entries) {
            (None, Some((first, last))) => match self.store.records().entries_alike(first, last).await {
                Ok(own) => (own, None),
                Err(error) => (Vec::new(), Some(format!("its audit entries cannot be listed: {error}"))),
            },
            (reason, _) => (Vec::new(), reason),
        };
        let mut effects = self.job.effects();
        effects.extend(self.job.summed(&self.held.sums()));
        Ok(JobOutcome {
            operation: if self.operation.is_empty() { self.job.name().to_owned() } else { self.operation },
            progress: record::progress(row),
            counts: serde_json::from_str(&row.counts).unwrap_or_default(),
            changes: self.changes.changes,
            effects,
            disclosures: self.job.disclosures().into_iter().chain(suppress::unknown(self.store).await?).collect(),
            checks: self.checks,
            set_aside: self.store.records().job_quarantine(&self.held.own, &row.id, SHOWN).await?,
            entries,
            own_entries,
            written: self.written,
            invocation: self.store.invocation().clone(),
            undo_reason,
        })
    }
}

fn is_told(wish: &watch::Receiver<JobWish>) -> bool {
    *wish.borrow() != JobWish::GoOn
}

fn stop_move(wish: &watch::Receiver<JobWish>) -> JobMove {
    if *wish.borrow() == JobWish::Leave { JobMove::Leave } else { JobMove::Stop }
}

/// Completes when the job is told to stop; never if nobody can tell it any more.
async fn asked_to_stop(wish: &mut watch::Receiver<JobWish>) {
    if wish.wait_for(|wish| *wish != JobWish::GoOn).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Completes when the wish changes; never if nobody can change it any more, so that only time ends a wait.
async fn changed(wish: &mut watch::Receiver<JobWish>) {
    if wish.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Adds a batch to the checkpoint.
fn note(held: &mut HeldJob, batch: &JobBatch, seq: Option<i64>, at: &str) {
    let mut sums = held.sums();
    add_facts(&mut sums, &batch.plan.facts);
    let row = &mut held.row;
    row.place = match &batch.next {
        Some(next) => json!({ "at": next, "sums": sums }).to_string(),
        None => json!({ "end": true, "sums": sums }).to_string(),
    };
    row.seen = row.seen.saturating_add(batch.seen as i64);
    row.changed = row.changed.saturating_add(batch.plan.changes_total as i64);
    row.batches = row.batches.saturating_add(1);
    row.heartbeat_at = Some(at.to_owned());
    at.clone_into(&mut row.updated_at);
    row.first_seq = row.first_seq.or(seq);
    row.last_seq = seq.or(row.last_seq);
    let mut counts: Counts = serde_json::from_str(&row.counts).unwrap_or_default();
    for (table, verbs) in &batch.plan.counts {
        for (verb, rows) in verbs {
            let sum = counts.entry(table.clone()).or_default().entry(verb.clone()).or_default();
            *sum = sum.saturating_add(*rows);
        }
    }
    row.counts = json!(counts).to_string();
}

/// Error inside a batch's transaction.
enum Inside {
    Taken,
    Stopped,
    Failed(FailedTransaction),
}

impl Inside {
    fn sorted(self) -> Result<BatchOutcome, Stop> {
        match self {
            Inside::Taken => Err(Stop::Taken),
            Inside::Stopped => Ok(BatchOutcome::Stopped),
            Inside::Failed(FailedTransaction::Write(error @ WriteError::Busy(_))) => {
                Ok(BatchOutcome::Busy(error.to_string()))
            }
            Inside::Failed(FailedTransaction::Write(error @ WriteError::Missed { .. })) => {
                Ok(BatchOutcome::Moved(error.into()))
            }
            Inside::Failed(FailedTransaction::Write(WriteError::Rejected(why))) => Ok(BatchOutcome::Rejected(why)),
            Inside::Failed(FailedTransaction::Change(
                error @ (ChangeError::Conflict { .. } | ChangeError::Refused(_)),
            )) => Ok(BatchOutcome::Moved(error)),
            Inside::Failed(failed) => Err(failed.into()),
        }
    }
}
