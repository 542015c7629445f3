//! `evaluate`: the quality of recall, and its effect on a memory.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::doing::PLAN_BYTES;
use super::input::read_input;
use super::policy::with_interval;
use super::table::{CellShape, PrintedColumn};
use super::{CommandFailure, Format, Session, output};
use crate::lab::judge::{self, EvaluationRequest};
use crate::lab::silent;
use crate::memory::nearest::unknown;
use crate::memory::{Entity, agreeing};
use crate::recall::judge::file;
use crate::recall::judge::latency::LatencyTimes;
use crate::recall::judge::ranked::MeanEstimate;
use crate::recall::judge::report::Evaluation;
use crate::recall::judge::spread::RecallSpread;
use crate::recall::rank::Ranking;
use crate::ui::text::SafeText;

/// Options of an evaluation: what is judged, and by what.
#[derive(Debug, Clone, Args)]
pub struct EvaluateArgs {
    /// Judged queries; `-` reads standard input [default: stored outcomes].
    #[arg(long, value_name = "FILE")]
    pub judged: Option<PathBuf>,
    /// case, episode or memory [default: found out].
    #[arg(long, value_name = "ENTITY")]
    pub of: Option<String>,
    /// Ranking to judge [default: `cases` for cases, `boosted` for episodes and memories].
    #[arg(long, value_enum)]
    pub ranking: Option<Ranking>,
    /// Rank cases by this policy; `none` ranks by similarity alone [default: the policies in use in the banks].
    #[arg(long, value_name = "ID")]
    pub policy: Option<String>,
    /// Rows that count.
    #[arg(short, value_name = "N", default_value_t = crate::recall::judge::ranked::K)]
    pub k: usize,
    /// Seed of samples, nonsense queries and intervals.
    #[arg(long, default_value_t = crate::change::operation::TRAINING_SEED)]
    pub seed: u64,
}

pub async fn run(session: &Session<'_>, args: &EvaluateArgs) -> Result<(), CommandFailure> {
    let EvaluateArgs { k, seed, .. } = *args;
    if k == 0 {
        return Err(CommandFailure::usage("-k 0 recalls nothing: give 1 or more"));
    }
    let kind = match args.of.as_deref().map(|name| (name, Entity::parse(name))) {
        None => None,
        Some((_, Some(kind @ (Entity::Case | Entity::Episode | Entity::Memory)))) => Some(kind),
        Some((name, _)) => {
            return Err(CommandFailure::usage(unknown(
                "entity whose recall is judged",
                name,
                ["case", "episode", "memory"],
            )));
        }
    };
    let queries = |path: &Path| {
        let text = read_input(path, PLAN_BYTES)?;
        let shown = path.display();
        file::parse(&text).map_err(|why| CommandFailure::usage(format!("{shown}: {why}")))
    };
    let judged = args.judged.as_deref().map(queries).transpose()?;
    let store = session.store().await?;
    let ask = EvaluationRequest { kind, ranking: args.ranking, policy: args.policy.clone(), k, seed, judged };
    let found = judge::evaluate(&store, &ask, &silent).await?;
    match session.format() {
        Format::Table => output::piped(|out| print(out, &found)),
        _ => output::shape(session.format(), &json!(found)),
    }
}

fn print(out: &mut dyn Write, found: &Evaluation) -> io::Result<()> {
    let rows = format!("{{#}} {} {{row|rows}}, {} with a vector", found.kind, found.with_vector);
    writeln!(out, "{}", agreeing(found.rows, &rows))?;
    writeln!(out, "ranking: {}: {}", found.ranking, found.formula)?;
    if let Some(policy) = &found.policy {
        writeln!(out, "policy: {}", SafeText::new(policy))?;
    }
    writeln!(out, "judged by {}", found.judged_by)?;
    for note in &found.notes {
        writeln!(out, "note: {}", SafeText::new(note))?;
    }
    let quality = &found.quality;
    let queries = agreeing(quality.n, "{#} {query|queries}");
    let more = agreeing(quality.without_relevant, "{#} more {has|have} nothing relevant");
    writeln!(out, "\n{queries} ({more})")?;
    let k = quality.k;
    for (name, value) in quality.named() {
        writeln!(out, "  {name:<14} {}", estimate(value))?;
    }
    for at in &quality.sweep {
        let (hit, precision, ndcg) = (at.hit_rate, at.precision, at.ndcg);
        writeln!(out, "  K {:<2}  hit rate {hit:.3}  precision {precision:.3}  nDCG {ndcg:.3}", at.k)?;
    }
    writeln!(out, "\ncontrols")?;
    for back in &found.self_retrieval {
        writeln!(out, "  queried with its own {}: {} of {} come back", back.by, back.found, back.n)?;
    }
    for control in &found.negative_controls {
        let highest = control.highest.unwrap_or_default();
        let (by, n, answered, threshold) = (control.by, control.n, control.answered, control.threshold);
        writeln!(out, "  nonsense by {by}: {answered} of {n} above {threshold:.2}, highest {highest:.3}")?;
    }
    print_spread(out, "rankings here", &found.spread)?;
    let tokens = &found.tokens;
    let number = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.0}"));
    let (mean, whole) = (number(tokens.mean), number(tokens.whole));
    let (n, over, budget) = (tokens.n, tokens.over_budget, tokens.budget);
    writeln!(out, "  tokens a recall {mean} (whole {whole}; {over} of {n} cut to {budget}; rough: 4 characters each)")?;
    let Some(stored) = &found.stored else { return Ok(()) };
    print_spread(out, "recalls as they happened", &stored.spread)?;
    writeln!(out, "  hit rate {}", estimate(&stored.hit_rate))?;
    writeln!(out, "  precision@{k} {}", estimate(&stored.precision_at_k))?;
    let trail = &stored.trail;
    let number = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.1}"));
    writeln!(out, "  tokens a recall {} (n {}), rows {}", number(trail.tokens), trail.tokens_n, number(trail.rows))?;
    writeln!(out, "\nlatency, ms")?;
    let row = |times: &LatencyTimes| {
        let cells = [
            times.name.clone(),
            times.n.to_string(),
            number(times.mean_ms),
            number(times.p50_ms),
            number(times.p95_ms),
        ];
        cells.iter().map(|c| SafeText::new(c)).collect::<Vec<_>>()
    };
    let rows: Vec<_> = trail.stages.iter().chain(&trail.kinds).map(row).collect();
    let first = PrintedColumn::new("Stage or kind", CellShape::Text, 0);
    let numbers = ["N", "Mean", "P50", "P95"].map(|title| PrintedColumn::new(title, CellShape::Number, 0));
    let columns: Vec<PrintedColumn> = std::iter::once(first).chain(numbers).collect();
    output::table(out, &columns, &rows)
}

fn estimate(value: &MeanEstimate) -> String {
    format!("{}  n {}", with_interval(value.value, value.interval), value.n)
}

fn print_spread(out: &mut dyn Write, title: &str, spread: &RecallSpread) -> io::Result<()> {
    let share = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{:.1} %", x * 100.0));
    let (queries, places) =
        (agreeing(spread.queries, "{#} {query|queries}"), agreeing(spread.places, "{#} {place|places}"));
    writeln!(out, "\n{title}: {queries}, {places}")?;
    writeln!(out, "  coverage {} ({} of {})", share(spread.coverage), spread.recalled, spread.candidates)?;
    let (top, even) = (share(spread.top_1_percent_share), share(spread.top_1_percent_even));
    writeln!(out, "  the most recalled 1 % take {top} of the places ({even} would be even)")?;
    if let Some((id, times)) = &spread.most_recalled {
        writeln!(out, "  most recalled: {} in {times}", SafeText::new(id))?;
    }
    writeln!(out, "  pairs that say the same {} (n {})", share(spread.redundancy), spread.pairs)?;
    let age = spread.age_days.map_or("unknown".to_owned(), |d| format!("{d:.1} days"));
    writeln!(out, "  mean age {age}, older than 90 days {}", share(spread.stale_share))?;
    writeln!(out, "  with bad feedback or reward {} (n {})", share(spread.bad_share), spread.bad_n)
}
