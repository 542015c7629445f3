//! `policy list`, `train`, `activate` and `evaluate`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use super::columns::{cell, zone_of};
use super::document::RowsDocument;
use super::doing::{Doing, PLAN_BYTES, carry_out};
use super::input::read_input;
use super::table::{CellShape, PrintedColumn};
use super::{CommandFailure, Format, Session, output};
use crate::change::Operation;
use crate::change::operation::PairsFile;
use crate::lab::assess;
use crate::lab::silent;
use crate::lab::training::{self, VersionReader};
use crate::memory::{Entity, ValueKind, agreeing};
use crate::recall::learn::measured::MeasuredAssessment;
use crate::recall::learn::version::Version;
use crate::ui::text::SafeText;

/// Commands on retrieval policies that change something.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List versions with their weights, metrics and which one is in use.
    List {
        /// This bank only.
        #[arg(long, value_name = "ID")]
        bank: Option<String>,
    },
    /// Train a new version of a bank's policy; it is stored with the status `training` and never used on its own.
    #[command(after_help = PAIRS)]
    Train {
        /// The bank's id (`list profile`).
        bank: String,
        /// Pairs to learn from; `-` reads standard input [default: what the bank's own cases recalled].
        #[arg(long, value_name = "FILE")]
        pairs: Option<PathBuf>,
        /// Seed of the split into training and held-out queries: the same seed gives the same weights.
        #[arg(long, default_value_t = crate::change::operation::TRAINING_SEED)]
        seed: u64,
        #[command(flatten)]
        doing: Doing,
    },
    /// Activate a version; the others stay.
    Activate {
        /// The version's id.
        id: String,
        #[command(flatten)]
        doing: Doing,
    },
    /// Measure a version on pairs: AUC, Brier score, calibration, loss, with intervals by drawing queries again.
    #[command(after_help = PAIRS)]
    Evaluate {
        /// The version's id. Without one: the versions in use on the banks' own pairs; on given pairs, the quality of a
        /// policy trained on them.
        id: Option<String>,
        /// Pairs to measure by; `-` reads standard input [default: what the banks' own cases recalled].
        #[arg(long, value_name = "FILE")]
        pairs: Option<PathBuf>,
        /// Seed of splits and intervals.
        #[arg(long, default_value_t = crate::change::operation::TRAINING_SEED)]
        seed: u64,
    },
}

const PAIRS: &str = "A file of pairs holds JSON lines with `query`, `case` and `truth_label` (or `label`: true, false, \
1, 0), and, where known, `case_label` (positive, negative), `reward` and `plan`. Pairs that nothing can be learned \
from (none, or all of one kind) are refused with exit code 5; a line that is not a pair, with exit code 2.";

pub async fn run(session: &Session<'_>, command: &PolicyCommand) -> Result<(), CommandFailure> {
    match command {
        PolicyCommand::List { bank } => list(session, bank.as_deref()).await,
        PolicyCommand::Train { bank, pairs, seed, doing } => {
            let pairs = pairs.as_deref().map(read_pairs).transpose()?;
            let operation = Operation::TrainPolicy { bank: bank.clone(), pairs, seed: *seed };
            carry_out(session, &session.store().await?, doing, &operation).await
        }
        PolicyCommand::Activate { id, doing } => {
            let operation = Operation::ActivatePolicy { id: id.clone() };
            carry_out(session, &session.store().await?, doing, &operation).await
        }
        PolicyCommand::Evaluate { id, pairs, seed } => {
            let given = pairs.as_deref().map(read_pairs).transpose()?;
            let given = given.map(|file| training::from_file(&file.name, &file.text)).transpose()?;
            let store = session.store().await?;
            let measured = assess::measure(&store, id.as_deref(), given, *seed, &silent).await?;
            match session.format() {
                Format::Table => output::piped(|out| print(out, &measured)),
                _ => output::shape(session.format(), &json!(measured)),
            }
        }
    }
}

fn read_pairs(file: &Path) -> Result<PairsFile, CommandFailure> {
    Ok(PairsFile { name: file.display().to_string(), text: read_input(file, PLAN_BYTES)? })
}

async fn list(session: &Session<'_>, bank: Option<&str>) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let mut reader = VersionReader::open(&store, bank, &silent).await?;
    let mut some = reader.next().await?;
    if let Some(bank) = bank.filter(|_| some.is_none())
        && store.row(Entity::Profile, bank).await?.is_none()
    {
        return Err(CommandFailure::not_found(format!("there is no profile `{bank}` in {}", store.location())));
    }
    if reader.left > 0 {
        let words = "{#} more {version is|versions are} not listed: `policy list BANK` lists those of one bank";
        output::tell(&agreeing(reader.left as usize, words));
    }
    match session.format() {
        Format::Table => {
            let (mut rows, mut trained) = (Vec::new(), Vec::new());
            while let Some(versions) = some {
                rows.extend(versions.iter().map(as_cells));
                trained.extend(versions.iter().filter_map(|v| v.row.text("trained_at").map(str::to_owned)));
                some = reader.next().await?;
            }
            output::piped(|out| print_versions(out, &rows, zone_of(trained.iter().map(String::as_str))))
        }
        Format::Jsonl => {
            let print = |versions: Vec<Version>| {
                let mut rows = versions.into_iter().map(as_json);
                output::piped_open(|out| rows.try_for_each(|row| output::json_line(out, &row)))
            };
            while let Some(versions) = some {
                some = if print(versions)? { reader.next().await? } else { None };
            }
            Ok(())
        }
        Format::Csv => {
            let mut rows = Vec::new();
            while let Some(versions) = some {
                rows.extend(versions.into_iter().map(as_json));
                some = reader.next().await?;
            }
            output::csv_table(&rows)
        }
        Format::Json => {
            let mut rows = RowsDocument::begin();
            while let Some(versions) = some {
                let is_read = rows.rows(versions.into_iter().map(as_json))?;
                some = if is_read { reader.next().await? } else { None };
            }
            rows.end(&Value::Null)
        }
    }
}

fn print_versions(out: &mut dyn Write, rows: &[Vec<SafeText>], zone: Option<String>) -> io::Result<()> {
    let columns = [
        PrintedColumn::new("Policy", CellShape::Word, 0),
        PrintedColumn::new("Bank", CellShape::Word, 1),
        PrintedColumn::new("Version", CellShape::Number, 2),
        PrintedColumn::new("Status", CellShape::Word, 1),
        PrintedColumn::new("Used", CellShape::Word, 3),
        PrintedColumn::new("AUC", CellShape::Number, 2),
        PrintedColumn::new("Trained", CellShape::Word, 4).with(zone),
        PrintedColumn::new("Cases gone", CellShape::Number, 5),
        PrintedColumn::new("Weights", CellShape::Text, 6),
    ];
    output::table(out, &columns, rows)
}

fn as_json(version: Version) -> Value {
    let mut row = version.row.into_json();
    row["in_use"] = json!(version.in_use);
    row["weights_problem"] = json!(version.policy.err());
    row["purged"] = json!(version.purged);
    row
}

fn as_cells(version: &Version) -> Vec<SafeText> {
    let row = &version.row;
    let text = |column: &str| SafeText::new(row.text(column).unwrap_or("·"));
    let auc = row.get("metrics").get("auc").and_then(Value::as_f64);
    let share = version.purged.share.map_or("·".to_owned(), |s| format!("{:.0} %", s * 100.0));
    let weights = match &version.policy {
        Ok(policy) => policy.weights.map(|w| format!("{w:.2}")).join(" "),
        Err(why) => why.clone(),
    };
    let plain = |column: &str| cell(ValueKind::Text, row.get(column), None);
    vec![
        text("id"),
        text("profile_id"),
        plain("version"),
        text("status"),
        SafeText::new(if version.in_use { "in use" } else { "" }),
        SafeText::new(&auc.map_or("·".to_owned(), |x| format!("{x:.3}"))),
        cell(ValueKind::Time, row.get("trained_at"), None),
        SafeText::new(&share),
        SafeText::new(&weights),
    ]
}

fn print(out: &mut dyn Write, measured: &MeasuredAssessment) -> io::Result<()> {
    let found = &measured.assessment;
    writeln!(out, "{}", measured.what)?;
    writeln!(out, "on {}", SafeText::new(&measured.pairs))?;
    let (pairs, queries) = (agreeing(found.n, "{#} {pair|pairs}"), agreeing(found.queries, "{#} {query|queries}"));
    writeln!(out, "{pairs}, {} positive, {queries}", found.positives)?;
    for note in &measured.notes {
        writeln!(out, "note: {}", SafeText::new(note))?;
    }
    let (m, i) = (&found.metrics, &found.interval);
    writeln!(out)?;
    for (name, value, interval) in [
        ("AUC", m.auc, i.auc),
        ("Brier", m.brier, i.brier),
        ("calibration error", m.ece, i.ece),
        ("loss", m.loss, i.loss),
    ] {
        writeln!(out, "{name:<18} {}", with_interval(value, interval))?;
    }
    writeln!(out, "\n{}: {}", found.verdict, found.advice)?;
    writeln!(out, "\neach feature alone")?;
    for single in &found.features {
        let auc = match single.auc {
            Some(_) => with_interval(single.auc, single.interval),
            None => "the same in all pairs".to_owned(),
        };
        let weight = single.weight.map(|w| format!("  weight {w:+.3}")).unwrap_or_default();
        writeln!(out, "  {:<14} {auc}{weight}", single.name)?;
    }
    writeln!(out, "\ncalibration: predicted and observed")?;
    for bin in found.calibration.iter().filter(|b| b.n > 0) {
        let number = |x: Option<f64>| x.map_or("·".to_owned(), |x| format!("{x:.3}"));
        let (predicted, observed) = (number(bin.predicted), number(bin.observed));
        writeln!(out, "  {:.1}-{:.1}  {predicted}  {observed}  n {}", bin.from, bin.to, bin.n)?;
    }
    Ok(())
}

pub(super) fn with_interval(value: Option<f64>, interval: Option<[f64; 2]>) -> String {
    let value = value.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
    let interval = interval.map(|[low, high]| format!("  ({low:.3} to {high:.3})")).unwrap_or_default();
    format!("{value}{interval}")
}
