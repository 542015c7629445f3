//! `layouts`: lists the known ones, shows one, and checks a new file against a database.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use super::columns::cell;
use super::input::read_input;
use super::look::entity;
use super::table::{self, CellShape};
use super::{CommandFailure, Format, Session, output};
use crate::ground::input_file::SETTINGS_BYTES;
use crate::ground::private_file;
use crate::layout::{LayoutError, builtin, draft, parse};
use crate::memory::entity::{Column, Personal};
use crate::memory::nearest::unknown;
use crate::memory::{ValueKind, agreeing};
use crate::store::{OpenError, OpenOptions};
use crate::ui::text::SafeText;

/// Actions on layouts.
#[derive(Debug, Subcommand)]
pub enum LayoutCommand {
    /// Print a shipped layout file.
    Show {
        /// Name of the layout.
        name: String,
    },
    /// Draft a layout for the database: guessed from names, types, keys and sampled rows, each guess with its reason.
    Draft {
        /// New file for it [default: standard output].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print the canonical columns of an entity: what layouts map stored columns to.
    Columns {
        /// The entity, as in `list`.
        entity: String,
    },
    /// Try a layout file on the database given with -d: read every row, follow links, and erase a person on a private
    /// copy of an SQLite database.
    Test {
        /// The file.
        file: PathBuf,
    },
    /// Check a layout file, against the database given with -d if any.
    Check {
        /// The file.
        file: PathBuf,
    },
}

/// Runs `layouts` and its subcommands.
pub async fn run(session: &Session<'_>, command: Option<&LayoutCommand>) -> Result<(), CommandFailure> {
    match command {
        None => list(session),
        Some(LayoutCommand::Show { name }) => show(name),
        Some(LayoutCommand::Columns { entity }) => columns(session, entity),
        Some(LayoutCommand::Draft { out }) => draft(session, out.as_deref()).await,
        Some(LayoutCommand::Test { file }) => super::layout_test::run(session, &file.display().to_string()).await,
        Some(LayoutCommand::Check { file }) => check(session, &file.display().to_string()).await,
    }
}

fn list(session: &Session<'_>) -> Result<(), CommandFailure> {
    let layouts = builtin::all().map_err(OpenError::Layout)?;
    let rows: Vec<Value> = layouts
        .iter()
        .map(|l| {
            let engines: Vec<_> = l.engines.iter().map(|e| e.name()).collect();
            let mut entities: Vec<_> = l.sources.iter().map(|s| s.entity.name()).collect();
            entities.dedup();
            json!({ "name": l.name, "title": l.title, "engines": engines, "entities": entities })
        })
        .collect();
    output::rows(session.format(), &rows, &rows, |out| {
        let cells: Vec<_> = rows
            .iter()
            .map(|r| ["name", "engines", "title"].map(|k| cell(ValueKind::Text, &r[k], output::width())).to_vec())
            .collect();
        let titles = [("Layout", CellShape::Word), ("Engines", CellShape::Word), ("What", CellShape::Text)];
        output::table(out, &table::columns(&titles), &cells)
    })
}

fn show(name: &str) -> Result<(), CommandFailure> {
    let texts = builtin::texts();
    let Some((_, text)) = texts.iter().find(|(n, _)| *n == name) else {
        return Err(CommandFailure::not_found(unknown("layout", name, texts.iter().map(|(n, _)| *n))));
    };
    output::piped(|out| out.write_all(text.as_bytes()))
}

/// The canonical columns of an entity.
fn columns(session: &Session<'_>, name: &str) -> Result<(), CommandFailure> {
    let entity = entity(name)?;
    let row = |column: &Column| {
        let example: Value = serde_json::from_str(column.example()).unwrap_or_default();
        let personal = match column.personal {
            Personal::No => Value::Null,
            Personal::Identity => Value::from("names a person"),
            Personal::Content => Value::from("may describe a person"),
        };
        json!({ "entity": entity.name(), "column": column.name, "type": column.kind.title(), "unit": column.unit(),
            "personal": personal, "example": example })
    };
    let rows: Vec<Value> = entity.columns().iter().map(row).collect();
    output::rows(session.format(), &rows, &rows, |out| {
        let shown = |row: &Value| {
            let texts = ["column", "type", "unit"].map(|key| cell(ValueKind::Text, &row[key], output::width()));
            let example = cell(ValueKind::Json, &row["example"], output::width());
            texts.into_iter().chain([example]).collect::<Vec<_>>()
        };
        let titles = [
            ("Column", CellShape::Word),
            ("Type", CellShape::Word),
            ("Unit", CellShape::Text),
            ("Example", CellShape::Text),
        ];
        output::table(out, &table::columns(&titles), &rows.iter().map(shown).collect::<Vec<_>>())
    })
}

/// Drafts a layout for the database, on standard output or into a new file.
async fn draft(session: &Session<'_>, out: Option<&Path>) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let tables = store.raw().sampled_tables().await?;
    let name = draft::name_of(store.location());
    let text = draft::draft(&name, &format!("Drafted from {}", store.location()), &tables, &store.engine())
        .map_err(CommandFailure::failed)?;
    let Some(file) = out else { return output::piped(|out| out.write_all(text.as_bytes())) };
    private_file::create(file, text.as_bytes()).map_err(|e| {
        CommandFailure::failed(format!("{}: {e}; name a new file in an existing folder", file.display()))
    })?;
    output::afterwards(format!("the draft is in {}", file.display()));
    Ok(())
}

/// Checks a file on its own and, when a database is named, against that.
async fn check(session: &Session<'_>, file: &str) -> Result<(), CommandFailure> {
    let text = read_input(Path::new(file), SETTINGS_BYTES)?;
    let mut against = None;
    let errors = match parse(file, &text) {
        Err(errors) => errors,
        Ok(_) => match session.target(None)? {
            None => Vec::new(),
            Some((target, options)) => {
                against = Some(target.shown());
                let options = OpenOptions { layouts: vec![file.to_owned()], ..options };
                let store = session.opened(&target, options).await?;
                Session::tell_damage(&store);
                store.schema().check_layout(file).await?
            }
        },
    };
    report(session, file, against.as_deref(), &errors)
}

fn report(
    session: &Session<'_>,
    file: &str,
    against: Option<&str>,
    errors: &[LayoutError],
) -> Result<(), CommandFailure> {
    if session.format() == Format::Table {
        output::piped(|out| {
            for error in errors {
                writeln!(out, "{}", SafeText::new(&error.to_string()))?;
            }
            if errors.is_empty() {
                let words = match against {
                    Some(location) => format!("{file} is valid and fits {location}"),
                    None => format!("{file} is valid; name a database with -d to check it against that"),
                };
                writeln!(out, "{}", SafeText::new(&words))?;
            }
            Ok(())
        })?;
    } else {
        let errors: Vec<Value> = errors
            .iter()
            .map(|e| json!({ "file": e.file, "line": e.line, "key": e.key, "message": e.message }))
            .collect();
        output::json(&json!({ "file": file, "database": against, "ok": errors.is_empty(), "errors": errors }))?;
    }
    match errors.len() {
        0 => Ok(()),
        n => Err(CommandFailure::failed(format!("{file}: {}", agreeing(n, "{#} {error|errors}")))),
    }
}
