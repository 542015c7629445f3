//! Backfills from the command line: lists, plans, runs, pauses, resumes and cancels them.

use std::io::Write as _;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::doing::{By, author, mask_changes, standing};
use super::{CommandFailure, Format, Session, output, progress};
use crate::change::anchor;
use crate::job::backfill::{self, ALL, BackfillArguments, BackfillKind};
use crate::job::plan::{JobBeat, JobMove, JobProgress, JobSettings, JobState, JobWish};
use crate::job::{self, JobEntry, record};
use crate::memory::agreeing;
use crate::memory::nearest::unknown;
use crate::store::Store;
use crate::ui::text::SafeText;

/// Time that `pause` and `cancel` wait for the runner to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// Choice of a backfill, and options for running it.
#[derive(Debug, Clone, Args)]
pub struct Backfill {
    /// Name of a backfill; or pause, resume or cancel, and a name [default: list all].
    #[arg(value_name = "NAME", num_args = 0..=2)]
    words: Vec<String>,
    /// Apply the plan and print the receipt; without this the plan is printed and nothing is written.
    #[arg(long)]
    apply: bool,
    /// Rows of each batch [default: chosen by how long batches take].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: Option<u32>,
    /// Maximum number of rows per second: `500` or `500/s`.
    #[arg(long, value_name = "N/s", value_parser = rate)]
    rate: Option<f64>,
    /// `utility`: derive signals from feedback for episodes that have none.
    #[arg(long)]
    from_feedback: bool,
    #[command(flatten)]
    by: By,
}

fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    let rate = number.parse::<f64>().ok().filter(|r| r.is_finite() && *r > 0.0);
    rate.ok_or_else(|| format!("`{text}` is not a rate: give a number of rows a second, such as 500/s"))
}

impl Backfill {
    /// Whether one is planned, done or told something, and not all listed.
    pub fn names_one(&self) -> bool {
        !self.words.is_empty()
    }
}

pub async fn run(session: &Session<'_>, asked: &Backfill) -> Result<(), CommandFailure> {
    let words: Vec<&str> = asked.words.iter().map(String::as_str).collect();
    check_options(&words, asked)?;
    let settings = JobSettings { batch: asked.batch.map(|n| n as usize), rate: asked.rate, told: Value::Null };
    match words[..] {
        [] => list(session, given(session, asked)).await,
        ["pause", name] => tell(session, kind(name)?, JobMove::AskPause).await,
        ["cancel", name] => tell(session, kind(name)?, JobMove::AskCancel).await,
        ["resume", name] => carry_out(session, kind(name)?, asked, settings, JobEntry::Resume).await,
        ["pause" | "cancel" | "resume"] => {
            Err(CommandFailure::usage(format!("name the backfill: `backfill {} NAME`", words[0])))
        }
        [name] if asked.apply => carry_out(session, kind(name)?, asked, settings, JobEntry::Begin).await,
        [name] => plan(session, kind(name)?, given(session, asked)).await,
        _ => Err(CommandFailure::usage(
            "one backfill at a time: `backfill NAME`, or `backfill pause|resume|cancel NAME`",
        )),
    }
}

/// Refuses options that would mean nothing.
fn check_options(words: &[&str], asked: &Backfill) -> Result<(), CommandFailure> {
    let is_told = matches!(words, ["pause" | "cancel", _]);
    if (is_told || words.is_empty()) && (asked.apply || asked.batch.is_some() || asked.rate.is_some()) {
        let words = "--apply, --batch and --rate are for a run: `backfill NAME --apply`, or `backfill resume NAME`";
        return Err(CommandFailure::usage(words));
    }
    if asked.from_feedback && words != ["utility"] {
        return Err(CommandFailure::usage(
            "--from-feedback is for `backfill utility`; a run continues as it was started",
        ));
    }
    Ok(())
}

/// Collects the arguments of backfills from the command line and the profile.
fn given(session: &Session<'_>, asked: &Backfill) -> BackfillArguments {
    let endpoint = session.endpoint(None);
    BackfillArguments { from_feedback: asked.from_feedback, ..BackfillArguments::with(endpoint) }
}

fn kind(name: &str) -> Result<&'static BackfillKind, CommandFailure> {
    BackfillKind::named(name)
        .ok_or_else(|| CommandFailure::usage(unknown("backfill", name, ALL.iter().map(|k| k.name))))
}

async fn list(session: &Session<'_>, given: BackfillArguments) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let runs: Vec<JobProgress> = store.records().jobs().await?.iter().map(record::progress).collect();
    let offers = backfill::offers(&store, &given).await?;
    let values = || offers.iter().map(|offer| json!(offer)).collect::<Vec<Value>>();
    match session.format() {
        Format::Table => {}
        Format::Csv => return output::csv_table(&values()),
        Format::Json | Format::Jsonl => {
            return output::shape(session.format(), &json!({ "backfills": values(), "runs": runs }));
        }
    }
    output::piped(|out| {
        for offer in &offers {
            let first = match (offer.available, offer.looks_at) {
                (true, Some(rows)) => agreeing(rows, "{#} {row|rows} to process"),
                (true, None) => "to process".to_owned(),
                _ => format!("not available: {}", SafeText::new(offer.reason.as_deref().unwrap_or_default())),
            };
            writeln!(out, "{:<22} {}", SafeText::new(&offer.name).to_string(), SafeText::new(&offer.does))?;
            writeln!(out, "{:<22} {first}", "")?;
            if let Some(run) = &offer.run {
                writeln!(out, "{:<22} {}", "", run_words(&store, run))?;
            }
        }
        Ok(())
    })
}

fn run_words(store: &Store, run: &JobProgress) -> String {
    let mut words =
        format!("{}: {} processed, {} changed, {} set aside", run.state.word(), run.seen, run.changed, run.quarantined);
    if let Some(problem) = &run.problem {
        words.push_str(&format!("; {}", SafeText::new(problem)));
    }
    let is_working = matches!(run.state, JobState::Running | JobState::Pausing | JobState::Cancelling);
    if is_working && !run.alive {
        let resume = store.invocation().line(["backfill", "resume", &run.name]);
        words.push_str(&format!("; its runner has stopped: `{resume}` resumes it"));
    }
    words
}

async fn plan(session: &Session<'_>, kind: &BackfillKind, given: BackfillArguments) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let job = kind.job_as(&store, &given)?;
    let mut plan = job::look(&store, &*job).await?;
    mask_changes(session, &mut plan.changes);
    let undo = match &plan.undo_reason {
        Some(reason) => format!("cannot be undone: {reason}"),
        None => format!(
            "undo each batch with `{}`, the last one first; the receipt names them",
            store.invocation().line(["undo", "SEQ", "--apply"])
        ),
    };
    let more = [("looked_at", plan.facts["seen"].take()), ("undo", Value::from(undo))];
    let mut shown = plan.into_shown();
    shown.more.extend(more.map(|(name, value)| (name.to_owned(), value)));
    output::shape(session.format(), &shown)?;
    output::tell_planned();
    Ok(())
}

async fn carry_out(
    session: &Session<'_>,
    kind: &BackfillKind,
    asked: &Backfill,
    settings: JobSettings,
    entry: JobEntry,
) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    record::ready(&store).await?;
    let given = given(session, asked).as_begun(&store, kind.name).await?;
    let job = kind.job_as(&store, &given)?;
    let author = author(&asked.by);
    let (wish, heard) = watch::channel(JobWish::GoOn);
    let listening = tokio::spawn(stop_on_signals(wish, JobWish::Pause));
    let mut line = ProgressLine::new(session);
    let mut each = |beat: JobBeat| match beat {
        JobBeat::Progress(progress) => line.say(&words(&progress)),
        JobBeat::Said(said) => line.keep(&said),
    };
    let outcome = job::run(&store, &*job, &author, &settings, entry, heard, &mut each).await;
    listening.abort();
    line.clear();
    let outcome = outcome?;
    let mut receipt = outcome.receipt();
    receipt.anchor_problem = anchor::missed(&store).await;
    mask_changes(session, &mut receipt.receipt.changes);
    let stands = format!("what the backfill did is kept, and `{}` shows it", store.invocation().line(["backfill"]));
    output::shape(session.format(), &receipt).map_err(|failure| standing(failure, Some(stands)))?;
    outcome.shortfall().map_or(Ok(()), |message| Err(CommandFailure::incomplete(message)))
}

/// A job told to stop by a signal does so behind the last batch that it wrote, as wished; a second signal ends the program
/// at once.
pub(super) async fn stop_on_signals(wish: watch::Sender<JobWish>, as_wished: JobWish) {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut int), Ok(mut term), Ok(mut hup)] = kinds.map(signal) else { return };
    for told in 0.. {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
        if told > 0 {
            std::process::exit(130);
        }
        let _ = wish.send(as_wished);
    }
}

fn words(progress: &JobProgress) -> String {
    let mut words = format!("{} {}", progress.name, progress.state.word());
    match (progress.part(), progress.total) {
        (Some(part), Some(total)) => words.push_str(&format!(" {:3.0} % {} of {total}", part * 100.0, progress.seen)),
        _ => words.push_str(&format!(" {}", progress.seen)),
    }
    words.push_str(&format!(", {} changed", progress.changed));
    if let Some(rate) = progress.rate {
        words.push_str(&format!(", {rate:.0}/s"));
    }
    if let Some(eta) = progress.eta_seconds {
        words.push_str(&format!(", {eta:.0} s left"));
    }
    if let Some(why) = &progress.throttle {
        words.push_str(&format!(" ({why})"));
    }
    words
}

/// Progress on standard error: one line that is written over on a terminal, nothing elsewhere.
struct ProgressLine {
    shown: bool,
    width: usize,
    last: Option<Instant>,
}

impl ProgressLine {
    fn new(session: &Session<'_>) -> Self {
        // It says more than the rows that are read.
        progress::end();
        ProgressLine { shown: session.shows_progress(), width: 0, last: None }
    }

    fn say(&mut self, words: &str) {
        if !self.shown || self.last.is_some_and(|then| then.elapsed() < Duration::from_millis(80)) {
            return;
        }
        self.last = Some(Instant::now());
        let words: String = SafeText::new(words).to_string().chars().take(100).collect();
        let width = words.chars().count();
        let _ = write!(std::io::stderr(), "\r{words:<0$}", self.width);
        self.width = width;
    }

    fn keep(&mut self, words: &str) {
        if self.shown {
            self.clear();
            let _ = writeln!(std::io::stderr(), "{}", SafeText::new(words));
        }
    }

    fn clear(&mut self) {
        if self.shown && self.width > 0 {
            let _ = write!(std::io::stderr(), "\r{:1$}\r", "", self.width);
            self.width = 0;
        }
    }
}

/// Asks a running backfill to stop and waits until it has.
async fn tell(session: &Session<'_>, kind: &BackfillKind, by: JobMove) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let asked = job::ask(&store, kind.name, by).await?;
    let started = Instant::now();
    let mut progress = record::progress(&asked);
    while progress.state.is_active() && progress.alive && started.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let Some(row) = store.records().jobs().await?.into_iter().find(|j| j.id == asked.id) else { break };
        progress = record::progress(&row);
    }
    output::shape(session.format(), &json!({ "job": progress }))
}
