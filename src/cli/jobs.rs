//! `jobs run`: runs due work without a console, for cron and systemd; and writes metrics for a monitor.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::backfill::stop_on_signals;
use super::doing::{By, author, mask_changes};
use super::{CommandFailure, Session, output, retain};
use crate::change::findings::{FindingNews, FindingRequest, look};
use crate::change::operation::TRAINING_SEED;
use crate::change::{self, ChangeError, Operation, anchor};
use crate::config;
use crate::ground::private_file;
use crate::job::backfill::{BackfillArguments, BackfillKind};
use crate::job::plan::{JobCheck, JobProgress, JobSettings, JobState, JobWish};
use crate::job::{self, JobEntry, record};
use crate::lab::judge::{self, EvaluationRequest};
use crate::lab::silent;
use crate::memory::findings::{Finding, Severity};
use crate::memory::retention::RetentionRules;
use crate::recall::judge::ranked::K;
use crate::store::jobs::JobRow;
use crate::store::{Store, StoreError};

/// Most rounds until nothing is due.
const ROUNDS: usize = 1_000;

/// Time between two checks for a sign of life from a runner.
const PAUSE: Duration = Duration::from_millis(200);

/// Actions on jobs.
#[derive(Debug, Clone, Subcommand)]
pub enum JobsCommand {
    /// Resume jobs whose runner has stopped, apply retention.toml if there is one, look for findings.
    Run(JobsRun),
}

/// Options for running jobs.
#[derive(Debug, Clone, Args)]
pub struct JobsRun {
    /// Continue until nothing is due; waits at most 15 s for a job whose runner is silent.
    #[arg(long)]
    pub until_idle: bool,
    /// File of retention rules [default: retention.toml in this folder, or next to the settings file].
    #[arg(long, value_name = "FILE")]
    pub retention: Option<PathBuf>,
    /// Write figures in Prometheus' text format, for node_exporter's textfile collector.
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    #[command(flatten)]
    pub by: By,
}

/// Jobs and retention that were carried out, and the problems met.
#[derive(Default)]
struct JobsDone {
    jobs: Vec<Value>,
    retention: Vec<Value>,
    problems: Vec<String>,
}

/// Rules of retention, and the file that they are in.
type Rules = (PathBuf, RetentionRules);

/// Runs everything that is due. All inputs are read before anything is done; later failures are reported beside the
/// answer.
///
/// # Errors
/// Code 6 if something due could not be done; else an error in the database, the rules, or the metrics file.
pub(super) async fn run(session: &Session<'_>, command: &JobsCommand) -> Result<(), CommandFailure> {
    let JobsCommand::Run(asked) = command;
    if asked.metrics.as_deref() == Some(Path::new("-")) {
        return Err(CommandFailure::usage("--metrics needs a file: the answer of `jobs run` is on standard output"));
    }
    let rules = match asked.retention.clone().or_else(retain::usual) {
        Some(file) => Some((file.clone(), retain::read(&file)?)),
        None => None,
    };
    if let Some(file) = &asked.metrics {
        private_file::check_room(file).map_err(|error| unwritten(file, &error))?;
    }
    let store = session.store().await?;
    record::ready(&store).await?;
    let mut done = JobsDone::default();
    let (wish, heard) = watch::channel(JobWish::GoOn);
    let listening = tokio::spawn(stop_on_signals(wish, JobWish::Leave));
    for _ in 0..if asked.until_idle { ROUNDS } else { 1 } {
        match round(session, &store, asked, rules.as_ref(), (&heard, &mut done)).await {
            Ok(true) if is_stopped(&heard) => break,
            Ok(true) => {}
            Ok(false) => break,
            Err(failure) => {
                problem(&mut done, failure.message);
                break;
            }
        }
    }
    let mut found = Vec::new();
    let looked = findings(&store, rules.as_ref(), &heard, &mut found).await;
    // A partial result is not a valid figure.
    let is_whole = looked.is_ok() && !is_stopped(&heard);
    if let Err(failure) = looked {
        problem(&mut done, format!("findings: {}", failure.message));
    }
    if is_stopped(&heard) {
        problem(&mut done, "stopped by a signal: what is left is still due".to_owned());
    }
    listening.abort();
    if let Some(file) = &asked.metrics
        && let Err(failure) = write_metrics(&store, is_whole.then_some(&found[..]), &done, &heard, file).await
    {
        problem(&mut done, failure.message);
    }
    let mut by_severity: BTreeMap<String, u64> = BTreeMap::new();
    for finding in &found {
        *by_severity.entry(finding.severity.word().to_owned()).or_default() += finding.count;
    }
    let shown = json!({
        "jobs": done.jobs, "retention": done.retention, "findings": by_severity, "problems": done.problems,
    });
    output::shape(session.format(), &shown)?;
    if done.problems.is_empty() { Ok(()) } else { Err(CommandFailure::incomplete(done.problems.join("; "))) }
}

/// Does everything that is due now. True if more may be due.
async fn round(
    session: &Session<'_>,
    store: &Store,
    asked: &JobsRun,
    rules: Option<&Rules>,
    (heard, done): (&watch::Receiver<JobWish>, &mut JobsDone),
) -> Result<bool, CommandFailure> {
    let resumed = resume(session, store, asked, (heard, done)).await?;
    let retained = match rules {
        Some(rules) if !is_stopped(heard) => keep(store, asked, rules, done).await?,
        _ => false,
    };
    Ok(resumed || retained || asked.until_idle && !is_stopped(heard) && left_alone(store, heard).await?)
}

fn is_stopped(heard: &watch::Receiver<JobWish>) -> bool {
    *heard.borrow() != JobWish::GoOn
}

/// Resumes the jobs that should run and that no runner works on; whether there was one.
async fn resume(
    session: &Session<'_>,
    store: &Store,
    asked: &JobsRun,
    (heard, done): (&watch::Receiver<JobWish>, &mut JobsDone),
) -> Result<bool, CommandFailure> {
    let runs: Vec<JobProgress> = store.records().jobs().await?.iter().map(record::progress).collect();
    let mut any = false;
    for run in runs.iter().filter(|run| is_due(run)) {
        if is_stopped(heard) {
            return Ok(true);
        }
        let Some(kind) = BackfillKind::named(&run.name) else {
            problem(done, format!("job {}: this version does not know it", run.name));
            continue;
        };
        let given = BackfillArguments::with(session.endpoint(None)).as_begun(store, kind.name).await;
        let job = match given.and_then(|given| kind.job_as(store, &given)) {
            Ok(job) => job,
            Err(error) => {
                problem(done, format!("job {}: {error}", run.name));
                continue;
            }
        };
        let settings = JobSettings { batch: None, rate: None, told: Value::Null };
        match job::run(store, &*job, &author(&asked.by), &settings, JobEntry::Resume, heard.clone(), &mut |_| {}).await
        {
            Ok(outcome) => {
                any = true;
                let missed = anchor::missed(store).await;
                let problems = outcome.shortfall().into_iter().chain(missed);
                problems.for_each(|words| problem(done, words));
                let mut receipt = outcome.receipt();
                mask_changes(session, &mut receipt.receipt.changes);
                done.jobs.push(json!(receipt));
            }
            // Another run was faster and has the job.
            Err(ChangeError::Conflict { .. } | ChangeError::Paused(_)) if is_held(store, &run.name).await? => {}
            Err(error) => problem(done, format!("job {}: {error}", run.name)),
        }
    }
    Ok(any)
}

/// Whether a job should run and has no runner.
fn is_due(run: &JobProgress) -> bool {
    run.state == JobState::Queued || run.state.is_active() && !run.alive
}

/// Waits until each runner gives a sign of life, or its hold on a job expires. True if there is such a job.
async fn left_alone(store: &Store, heard: &watch::Receiver<JobWish>) -> Result<bool, CommandFailure> {
    let mut held = active(store).await?;
    held.retain(record::alive);
    while !held.is_empty() && !is_stopped(heard) {
        tokio::time::sleep(PAUSE).await;
        let rows = active(store).await?;
        let same = |row: &JobRow| rows.iter().find(|now| now.id == row.id && now.heartbeat_at == row.heartbeat_at);
        held.retain(|row| same(row).is_some());
        if held.iter().filter_map(same).any(|row| !record::alive(row)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a runner with a sign of life has the job, or has finished it.
async fn is_held(store: &Store, name: &str) -> Result<bool, CommandFailure> {
    let rows = store.records().jobs().await?;
    let latest = rows.iter().find(|row| row.name == name).map(record::progress);
    Ok(latest.is_some_and(|run| run.alive || run.state == JobState::Succeeded))
}

async fn active(store: &Store) -> Result<Vec<JobRow>, CommandFailure> {
    let mut rows = store.records().jobs().await?;
    rows.retain(|row| JobState::parse(&row.state).is_some_and(JobState::is_active));
    Ok(rows)
}

/// Adds a problem, once.
fn problem(done: &mut JobsDone, words: String) {
    if !done.problems.contains(&words) {
        done.problems.push(words);
    }
}

/// Applies the retention rules; whether any row went.
async fn keep(
    store: &Store,
    asked: &JobsRun,
    (file, rules): &Rules,
    done: &mut JobsDone,
) -> Result<bool, CommandFailure> {
    let operation = Operation::Retain { file: file.display().to_string(), rules: rules.clone() };
    let author = author(&asked.by);
    let plan = || change::plan(store, &operation, &author);
    match change::plan_and_apply(store, &author, plan).await {
        Ok((planned, receipt)) => {
            let missed = anchor::missed(store).await;
            missed.into_iter().for_each(|words| problem(done, words));
            if planned.is_empty() {
                return Ok(false);
            }
            done.retention.push(json!({
                "receipt_id": receipt.receipt_id, "counts": receipt.counts, "audit_seq": receipt.audit_seq,
                "undo": receipt.undo, "disclosures": receipt.disclosures,
            }));
            Ok(true)
        }
        Err(ChangeError::Refused(why)) => {
            problem(done, format!("retention: {why}"));
            Ok(false)
        }
        Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => {
            problem(done, format!("retention: {reason}; {remedy}"));
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

async fn findings(
    store: &Store,
    rules: Option<&Rules>,
    heard: &watch::Receiver<JobWish>,
    found: &mut Vec<Finding>,
) -> Result<(), CommandFailure> {
    let retention = rules.map(|(_, rules)| rules.clone());
    // An unreadable file mutes nothing.
    let muted = config::muted(store.location());
    let wanted =
        FindingRequest { examples: 1, muted, retention, state: config::state_folder(), ..FindingRequest::default() };
    let mut told = |news: FindingNews| {
        if let FindingNews::Found(finding) = news {
            found.push(finding);
        }
        if is_stopped(heard) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    look(store, &wanted, &mut told).await?;
    Ok(())
}

/// Metrics in Prometheus' text format. Each names its database: a collector merges equal series.
struct Metrics {
    database: String,
    text: String,
}

impl Metrics {
    fn head(&mut self, name: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP mnemoscope_{name} {help}\n# TYPE mnemoscope_{name} gauge");
    }

    fn figure(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let label = |(name, value): &(&str, &str)| {
            format!("{name}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
        };
        let database = ("database", self.database.as_str());
        let labels: Vec<String> = std::iter::once(&database).chain(labels).map(label).collect();
        let _ = writeln!(self.text, "mnemoscope_{name}{{{}}} {value}", labels.join(","));
    }
}

/// Adds metrics of recall, as computed by `evaluate`; none if there is nothing to judge it by.
async fn add_recall(metrics: &mut Metrics, store: &Store) {
    let asked = EvaluationRequest::stored(K, TRAINING_SEED);
    let Ok(found) = judge::evaluate(store, &asked, &silent).await else { return };
    let stored = found.stored.as_ref();
    let self_retrieval = |by: &str| found.self_retrieval.iter().find(|back| back.by == by).and_then(|back| back.share);
    let slowest = || stored?.trail.stages.first()?.p95_ms;
    // Recorded recalls are of all kinds together.
    let recorded = [
        (
            "recall_empty_share",
            "Share of recorded recalls that returned nothing.",
            stored.and_then(|s| s.trail.empty_share),
        ),
        ("recall_p95_milliseconds", "19 of 20 recorded retrievals are faster.", slowest()),
    ];
    let judged = [
        ("recall_rows", "Rows that can be recalled.", Some(found.rows as f64)),
        ("recall_rows_with_vector", "Rows that can be recalled and have a vector.", Some(found.with_vector as f64)),
        (
            "recall_hit_rate",
            "Share of judged queries with a relevant row among the first.",
            found.quality.hit_rate.value,
        ),
        (
            "recall_ndcg",
            "Discounted gain of the first rows, as a share of the best order's.",
            found.quality.ndcg_at_k.value,
        ),
        ("recall_mrr", "Mean reciprocal rank of the first relevant row.", found.quality.mrr.value),
        ("recall_self_text", "Share of rows found by their own text.", self_retrieval("text")),
        ("recall_self_vector", "Share of rows found by their own vector.", self_retrieval("vector")),
        ("recall_stale_share", "Share of what is recalled that is older than 90 days.", found.spread.stale_share),
        ("recall_bad_share", "Share of what is recalled and known that is bad.", found.spread.bad_share),
    ];
    let kind = [("kind", found.kind)];
    let judged = judged.into_iter().map(|figure| (figure, &kind[..]));
    for ((name, help, value), labels) in judged.chain(recorded.into_iter().map(|figure| (figure, &[][..]))) {
        if let Some(value) = value {
            metrics.head(name, help);
            metrics.figure(name, labels, value);
        }
    }
}

/// Metric of a job's latest run; `None` if the run does not report it.
type JobFigure<'a> = &'a dyn Fn(&JobProgress, &JobRow) -> Option<u64>;

/// Adds the work of each job's latest run, and the result of its last check.
fn add_jobs(metrics: &mut Metrics, rows: &[JobRow]) {
    let mut latest: BTreeMap<&str, &JobRow> = BTreeMap::new();
    rows.iter().rev().for_each(|row| {
        latest.insert(&row.name, row);
    });
    let runs: Vec<(JobProgress, &JobRow)> = latest.values().map(|row| (record::progress(row), *row)).collect();
    let failed = |row: &JobRow| {
        let checks: Vec<JobCheck> = row.verification.as_deref().and_then(|text| serde_json::from_str(text).ok())?;
        Some(checks.iter().filter(|check| !check.ok).count() as u64)
    };
    let figures: [(&str, &str, JobFigure<'_>); 5] = [
        ("job_rows_seen", "Rows that the latest run of a job has processed.", &|run, _| Some(run.seen)),
        ("job_rows_expected", "Rows that the latest run of a job has to process.", &|run, _| run.total),
        ("job_rows_changed", "Rows that the latest run of a job has changed.", &|run, _| Some(run.changed)),
        ("job_rows_set_aside", "Rows that the latest run of a job could not handle.", &|run, _| Some(run.quarantined)),
        ("job_checks_failed", "Checks of the result that failed after the latest run of a job.", &|_, row| failed(row)),
    ];
    for (name, help, figure) in figures {
        metrics.head(name, help);
        for (run, row) in &runs {
            let labels = [("job", run.name.as_str()), ("state", run.state.word())];
            figure(run, row).into_iter().for_each(|value| metrics.figure(name, &labels, value as f64));
        }
    }
}

fn add_findings(metrics: &mut Metrics, found: &[Finding]) {
    metrics.head("findings", "Findings by severity.");
    for severity in [Severity::High, Severity::Medium, Severity::Low] {
        let count: u64 = found.iter().filter(|finding| finding.severity == severity).map(|finding| finding.count).sum();
        metrics.figure("findings", &[("severity", severity.word())], count as f64);
    }
    metrics.head("findings_of_kind", "Findings by kind.");
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    found.iter().for_each(|finding| *kinds.entry(finding.kind).or_default() += finding.count);
    kinds.iter().for_each(|(kind, count)| metrics.figure("findings_of_kind", &[("kind", kind)], *count as f64));
}

fn unwritten(file: &Path, error: &std::io::Error) -> CommandFailure {
    CommandFailure::failed(format!("{}: the figures could not be written: {error}", file.display()))
}

/// Writes metrics: problems of this run, findings by severity and kind, rows, jobs, recall, the trail. Concurrent
/// readers see the old file or the new one; others may read it, as collectors do.
async fn write_metrics(
    store: &Store,
    found: Option<&[Finding]>,
    done: &JobsDone,
    heard: &watch::Receiver<JobWish>,
    file: &Path,
) -> Result<(), CommandFailure> {
    let mut metrics = Metrics { database: store.place().to_owned(), text: String::new() };
    metrics.head("problems", "What the latest run could not do.");
    metrics.figure("problems", &[], done.problems.len() as f64);
    found.into_iter().for_each(|found| add_findings(&mut metrics, found));
    metrics.head("rows", "Rows of an entity; about, for large tables.");
    for layout in store.report().status().await?.layouts {
        for (entity, status) in &layout.entities {
            if let Some(count) = status.count {
                metrics.figure("rows", &[("layout", &layout.name), ("entity", entity)], count as f64);
            }
        }
    }
    add_jobs(&mut metrics, &store.records().jobs().await?);
    // A user who stopped the run does not wait until all rows are read.
    if !is_stopped(heard) {
        add_recall(&mut metrics, store).await;
    }
    metrics.head("trail_ok", "Whether the audit trail is unchanged and matches its anchors; absent without a trail.");
    if let Ok(verdict) = anchor::verify(store, &[]).await {
        metrics.figure("trail_ok", &[], f64::from(u8::from(verdict.ok)));
        metrics.head("trail_entries", "Entries of the audit trail.");
        metrics.figure("trail_entries", &[], verdict.entries as f64);
    }
    metrics.head("last_run_timestamp_seconds", "When these figures were made.");
    metrics.figure("last_run_timestamp_seconds", &[], chrono::Utc::now().timestamp() as f64);
    private_file::publish(file, metrics.text.as_bytes()).map_err(|error| unwritten(file, &error))
}
