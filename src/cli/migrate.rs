//! `migrate`: pending migrations with their statements, those applied with other statements, and applying them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::doing::{By, author, standing};
use super::{CommandFailure, Format, Session, output};
use crate::change::anchor;
use crate::change::migrate::{self, MigrationChoice, MigrationOutcome, MigrationState};
use crate::change::plan::migration::PendingMigration;
use crate::ground::{database_url, private_file};
use crate::memory::agreeing;
use crate::store::Target;
use crate::ui::text::SafeText;

/// Choice of migrations, and whether to apply them.
#[derive(Debug, Clone, Args)]
pub struct MigrateArgs {
    /// Apply them.
    #[arg(long)]
    pub apply: bool,
    /// Only up to this number.
    #[arg(long, value_name = "N")]
    pub to: Option<i64>,
    /// Apply this optional one too, by name. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub optional: Vec<String>,
    #[command(flatten)]
    pub by: By,
}

/// Shows the migrations of the database, after applying the requested ones. The native layout can be applied to a file
/// that does not exist yet.
///
/// # Errors
/// As [`migrate::apply_chosen`]; code 6 when it was applied and not every row can be read.
pub(super) async fn run(session: &Session<'_>, args: &MigrateArgs) -> Result<(), CommandFailure> {
    let made = if args.apply { new_file(session)? } else { None };
    let migrated = migrated(session, args).await;
    if let Some(path) = made.filter(|_| migrated.is_err())
        && fs::metadata(&path).is_ok_and(|about| about.len() == 0)
    {
        _ = fs::remove_file(path);
    }
    migrated
}

/// Creates the named file if it does not exist and only the native layout is named with it: an empty file is an empty
/// database.
fn new_file(session: &Session<'_>) -> Result<Option<PathBuf>, CommandFailure> {
    let Some((Target::File(path), options)) = session.target(None)? else { return Ok(None) };
    let is_clear = database_url::file(&path.to_string_lossy(), Path::new("")).is_ok();
    if options.layouts != ["mnemoscope"] || path.exists() || !is_clear {
        return Ok(None);
    }
    match private_file::create(&path, b"") {
        Ok(()) => Ok(Some(path)),
        Err(error) => Err(CommandFailure::failed(format!("{}: no new database can be made: {error}", path.display()))),
    }
}

async fn migrated(session: &Session<'_>, args: &MigrateArgs) -> Result<(), CommandFailure> {
    let (apply, author) = (args.apply, author(&args.by));
    let choice = MigrationChoice { to: args.to, optional: args.optional.clone() };
    let mut store = session.store().await?;
    let (mut outcome, mut anchored) = (None, None);
    if apply {
        outcome = Some(migrate::apply_chosen(&store, &author, &choice).await?);
        // The database is recognized again: a palace has its companion now, a layout another variant.
        store = session.store().await?;
        anchored = anchor::missed(&store).await;
    }
    let mut state = migrate::state(&store).await?;
    if !apply {
        migrate::narrow(&store, &mut state, &choice)?;
    }
    for stopped in state.optional.iter().filter(|o| o.migration.goes_on_at.is_some()) {
        output::afterwards(format!(
            "{} was started and is not complete: `{}` resumes it, and `migrate --apply` without its name leaves it \
             unchanged",
            stopped.migration.name,
            store.invocation().line(migrate::applying(Some(&stopped.option)))
        ));
    }
    let applied = outcome.as_ref().map(|outcome| outcome.applied.join(", ")).filter(|applied| !applied.is_empty());
    let stands = applied.map(|applied| format!("{applied}: applied, and kept"));
    print(session, &state, outcome.as_ref(), anchored).map_err(|failure| standing(failure, stands))?;
    match state.refused {
        // A plan tells the remedy for a store outside the search path; only applying is refused.
        Some(why) if store.left_out().is_some() => output::afterwards(why),
        Some(why) => return Err(CommandFailure::refused(why)),
        None => {}
    }
    Ok(())
}

/// Prints the state, the applied migrations, and the reason if no anchor could be stored.
fn print(
    session: &Session<'_>,
    state: &MigrationState,
    outcome: Option<&MigrationOutcome>,
    anchored: Option<String>,
) -> Result<(), CommandFailure> {
    if session.format() == Format::Table {
        return output::piped(|out| {
            if let Some(outcome) = outcome {
                outcome_text(out, outcome)?;
            }
            if let Some(words) = &anchored {
                writeln!(out, "! {}", SafeText::new(words))?;
            }
            told(out, state)
        });
    }
    let mut shown = json!(state);
    if let Some(words) = anchored {
        shown["anchor_problem"] = json!(words);
    }
    if let Some(outcome) = outcome {
        shown["applied_now"] = json!(outcome.applied);
        shown["verification"] = json!({ "verified": outcome.verified, "readable": outcome.readable });
    }
    output::shape(session.format(), &shown)
}

fn outcome_text(out: &mut dyn Write, outcome: &MigrationOutcome) -> std::io::Result<()> {
    for name in &outcome.applied {
        writeln!(out, "applied {name}")?;
    }
    let (before, read) = outcome.readable.iter().fold((0, 0), |(b, r), one| (b + one.before, r + one.read));
    if !outcome.readable.is_empty() {
        let verdict = if outcome.verified { "verified" } else { "NOT verified" };
        let rows = agreeing(read, "{#} {row|rows} can be read");
        writeln!(out, "{verdict}: {rows}; before, there were {before}")?;
    }
    Ok(())
}

fn told(out: &mut dyn Write, state: &MigrationState) -> std::io::Result<()> {
    for drift in &state.drift {
        writeln!(out, "! {}: {}", SafeText::new(&drift.name), drift.message)?;
        for line in drift.diff.lines() {
            writeln!(out, "  {}", SafeText::new(line))?;
        }
    }
    for migration in &state.pending {
        migration_text(out, "pending", migration)?;
    }
    for offered in state.optional.iter().filter(|o| !o.applied) {
        writeln!(out, "optional {} (--optional {})", offered.migration.name, offered.option)?;
        writeln!(out, "  effect: {}", offered.migration.effect)?;
        writeln!(out, "  lock risk: {}", offered.migration.lock_risk)?;
    }
    for foreign in &state.foreign {
        writeln!(out, "the system's own list, not changed: {}", SafeText::new(&foreign.table))?;
        for row in &foreign.rows {
            let cells: Vec<String> =
                row.iter().map(|c| SafeText::new(c.as_deref().unwrap_or("-")).to_string()).collect();
            writeln!(out, "  {}", cells.join("  "))?;
        }
    }
    if state.pending.is_empty() {
        writeln!(out, "nothing is pending")?;
    }
    Ok(())
}

fn migration_text(out: &mut dyn Write, what: &str, migration: &PendingMigration) -> std::io::Result<()> {
    writeln!(out, "{what} {} (number {})", migration.name, migration.version)?;
    writeln!(out, "  effect: {}", migration.effect)?;
    writeln!(out, "  lock risk: {}", migration.lock_risk)?;
    if let Some(step) = &migration.goes_on_at {
        writeln!(out, "  was stopped: resumes at \"{step}\"")?;
    }
    writeln!(out, "\n{}", migration.sql)
}
