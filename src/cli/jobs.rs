//! `jobs run`: what is due without anybody at a console, for cron and systemd; and figures for a monitor.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::context::Session;
use super::doing::{By, author};
use super::failure::CommandFailure;
use super::{output, retain};
use crate::change::findings::{FindingNews, FindingRequest, look};
use crate::change::operation::TRAINING_SEED;
use crate::change::{self, ChangeError, Operation, anchor};
use crate::config::mutes;
use crate::ground::private_file;
use crate::job::backfill::{BackfillArguments, BackfillKind};
use crate::job::plan::{JobProgress, JobSettings, JobState, JobWish};
use crate::job::{self, JobEntry, record};
use crate::lab::judge::{self, EvaluationRequest};
use crate::lab::silent;
use crate::memory::findings::{Finding, Severity};
use crate::recall::judge::ranked::K;
use crate::store::Store;
use crate::store::jobs::JobRow;

/// Times that everything is looked at again until nothing is due.
const ROUNDS: usize = 1_000;

/// Time between two looks whether a runner gave a sign of life.
const PAUSE: Duration = Duration::from_millis(200);

/// Actions on jobs.
#[derive(Debug, Clone, Subcommand)]
pub enum JobsCommand {
    /// Resume jobs whose runner is gone, apply retention.toml if there is one, look for findings.
    Run(JobsRun),
}

/// Options for running jobs.
#[derive(Debug, Clone, Args)]
pub struct JobsRun {
    /// Continue until nothing is due; a job whose runner fell silent is waited for, 15 s at most.
    #[arg(long)]
    pub until_idle: bool,
    /// File of retention rules [default: retention.toml in this folder, or beside the settings file].
    #[arg(long, value_name = "FILE")]
    pub retention: Option<PathBuf>,
    /// Write figures in Prometheus' text format, for node_exporter's textfile collector.
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Author of the changes, and the reason.
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

/// Runs what is due.
///
/// # Errors
/// Code 6 where something that is due could not be done; else what the database says.
pub(super) async fn run(session: &Session<'_>, command: &JobsCommand) -> Result<(), CommandFailure> {
    let JobsCommand::Run(asked) = command;
    let store = session.store().await?;
    record::ready(&store).await?;
    let mut done = JobsDone::default();
    for _ in 0..if asked.until_idle { ROUNDS } else { 1 } {
        let resumed = resume(session, &store, asked, &mut done).await?;
        let retained = keep(&store, asked, &mut done).await?;
        let busy = resumed || retained || asked.until_idle && left_alone(&store).await?;
        if !busy {
            break;
        }
    }
    let found = findings(&store, asked).await?;
    let written = match &asked.metrics {
        Some(file) => write_metrics(&store, &found, file).await,
        None => Ok(()),
    };
    let mut by_severity: BTreeMap<String, u64> = BTreeMap::new();
    for finding in &found {
        *by_severity.entry(word(finding.severity).to_owned()).or_default() += finding.count;
    }
    let shown = json!({
        "jobs": done.jobs, "retention": done.retention, "findings": by_severity, "problems": done.problems,
    });
    output::value(session.format(), &shown)?;
    written?;
    if done.problems.is_empty() { Ok(()) } else { Err(CommandFailure::incomplete(done.problems.join("; "))) }
}

/// Resumes the jobs that should run and whose runner is gone; whether there was one.
async fn resume(
    session: &Session<'_>,
    store: &Store,
    asked: &JobsRun,
    done: &mut JobsDone,
) -> Result<bool, CommandFailure> {
    let runs: Vec<JobProgress> = store.records().jobs().await?.iter().map(record::progress).collect();
    let mut any = false;
    for run in runs.iter().filter(|run| run.state.is_active() && !run.alive) {
        let Some(kind) = BackfillKind::named(&run.name) else { continue };
        let given = BackfillArguments::with(session.endpoint(None)).as_begun(store, kind.name).await?;
        let job = kind.job_as(store, &given)?;
        let (_wish, heard) = watch::channel(JobWish::GoOn);
        let settings = JobSettings { batch: None, rate: None, told: Value::Null };
        match job::run(store, &*job, &author(&asked.by), &settings, JobEntry::Resume, heard, &mut |_| {}).await {
            Ok(outcome) => {
                any = true;
                done.jobs.push(json!(outcome.receipt()));
            }
            Err(error) => problem(done, format!("job {}: {error}", run.name)),
        }
    }
    Ok(any)
}

/// Waits until each runner gives a sign of life, or a job is held for it no more; whether there is such a job.
async fn left_alone(store: &Store) -> Result<bool, CommandFailure> {
    let mut held = active(store).await?;
    held.retain(record::alive);
    while !held.is_empty() {
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

async fn active(store: &Store) -> Result<Vec<JobRow>, CommandFailure> {
    let mut rows = store.records().jobs().await?;
    rows.retain(|row| JobState::parse(&row.state).is_some_and(JobState::is_active));
    Ok(rows)
}

/// Notes something that could not be done, once.
fn problem(done: &mut JobsDone, words: String) {
    if !done.problems.contains(&words) {
        done.problems.push(words);
    }
}

/// Applies the retention rules; whether any row went.
async fn keep(store: &Store, asked: &JobsRun, done: &mut JobsDone) -> Result<bool, CommandFailure> {
    let Some(file) = asked.retention.clone().or_else(retain::usual) else { return Ok(false) };
    let operation = Operation::Retain { file: file.display().to_string(), rules: retain::read(&file)? };
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
        Err(error) => Err(error.into()),
    }
}

async fn findings(store: &Store, asked: &JobsRun) -> Result<Vec<Finding>, CommandFailure> {
    let mut found = Vec::new();
    let rules = asked.retention.clone().or_else(retain::usual);
    let retention = rules.map(|file| retain::read(&file)).transpose()?;
    let wanted =
        FindingRequest { examples: 1, muted: mutes::muted(store.location()), retention, ..FindingRequest::default() };
    let mut told = |news: FindingNews| {
        if let FindingNews::Found(finding) = news {
            found.push(finding);
        }
        ControlFlow::Continue(())
    };
    look(store, &wanted, &mut told).await?;
    Ok(found)
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
    }
}

/// Figures in Prometheus' text format.
#[derive(Default)]
struct Metrics {
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
        let labels: Vec<String> = labels.iter().map(label).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.text, "mnemoscope_{name}{labels} {value}");
    }
}

/// Adds figures of the health of recall, as `evaluate` tells them; none where there is nothing to judge it by.
async fn add_recall(metrics: &mut Metrics, store: &Store) {
    let asked = EvaluationRequest::stored(K, TRAINING_SEED);
    let Ok(found) = judge::evaluate(store, &asked, &silent).await else { return };
    let stored = found.stored.as_ref();
    let self_retrieval = |by: &str| found.self_retrieval.iter().find(|back| back.by == by).and_then(|back| back.share);
    let slowest = || stored?.trail.stages.first()?.p95_ms;
    let figures = [
        ("recall_rows", "Rows that can be recalled.", Some(found.rows as f64)),
        ("recall_rows_with_vector", "Rows among these with a vector.", Some(found.with_vector as f64)),
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
        ("recall_self_text", "Share of rows that their own text brings back.", self_retrieval("text")),
        ("recall_self_vector", "Share of rows that their own vector brings back.", self_retrieval("vector")),
        ("recall_stale_share", "Share of what is recalled that is older than 90 days.", found.spread.stale_share),
        ("recall_bad_share", "Share of what is recalled and known that is bad.", found.spread.bad_share),
        (
            "recall_empty_share",
            "Share of recorded recalls that gave nothing.",
            stored.and_then(|s| s.trail.empty_share),
        ),
        ("recall_p95_milliseconds", "19 of 20 recorded retrievals are faster.", slowest()),
    ];
    for (name, help, value) in figures {
        if let Some(value) = value {
            metrics.head(name, help);
            metrics.figure(name, &[("kind", found.kind)], value);
        }
    }
}

/// Writes figures: findings by severity and kind, rows, jobs, recall, the trail. Whoever reads the file meanwhile sees the old one or
/// the new one; others may read it, as a collector does.
async fn write_metrics(store: &Store, found: &[Finding], file: &Path) -> Result<(), CommandFailure> {
    let mut metrics = Metrics::default();
    metrics.head("findings", "Findings by severity.");
    for severity in [Severity::High, Severity::Medium, Severity::Low] {
        let count: u64 = found.iter().filter(|finding| finding.severity == severity).map(|finding| finding.count).sum();
        metrics.figure("findings", &[("severity", word(severity))], count as f64);
    }
    metrics.head("findings_of_kind", "Findings by kind.");
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    found.iter().for_each(|finding| *kinds.entry(finding.kind).or_default() += finding.count);
    kinds.iter().for_each(|(kind, count)| metrics.figure("findings_of_kind", &[("kind", kind)], *count as f64));
    metrics.head("rows", "Rows of an entity; about, for large tables.");
    for layout in store.report().status().await?.layouts {
        for (entity, status) in &layout.entities {
            if let Some(count) = status.count {
                metrics.figure("rows", &[("layout", &layout.name), ("entity", entity)], count as f64);
            }
        }
    }
    metrics.head("job_rows_seen", "Rows that the latest run of a job has looked at.");
    let runs: Vec<JobProgress> = store.records().jobs().await?.iter().map(record::progress).collect();
    let mut latest: BTreeMap<&str, &JobProgress> = BTreeMap::new();
    runs.iter().rev().for_each(|run| {
        latest.insert(&run.name, run);
    });
    for run in latest.values() {
        metrics.figure("job_rows_seen", &[("job", &run.name), ("state", run.state.word())], run.seen as f64);
    }
    metrics.head("job_rows_expected", "Rows that the latest run of a job has to look at.");
    for run in latest.values() {
        run.total
            .into_iter()
            .for_each(|total| metrics.figure("job_rows_expected", &[("job", &run.name)], total as f64));
    }
    add_recall(&mut metrics, store).await;
    metrics.head("trail_ok", "Whether the audit trail is what was written and fits its anchors; absent without one.");
    if let Ok(verdict) = anchor::verify(store, &[]).await {
        metrics.figure("trail_ok", &[], f64::from(u8::from(verdict.ok)));
        metrics.head("trail_entries", "Entries of the audit trail.");
        metrics.figure("trail_entries", &[], verdict.entries as f64);
    }
    metrics.head("last_run_timestamp_seconds", "When these figures were made.");
    metrics.figure("last_run_timestamp_seconds", &[], chrono::Utc::now().timestamp() as f64);
    let failed = |e: std::io::Error| {
        CommandFailure::failed(format!("{}: the figures could not be written: {e}", file.display()))
    };
    private_file::replace(file, metrics.text.as_bytes()).map_err(failed)?;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o644)).map_err(failed)
}
