//! `audit`: the trail listed, verified, anchored, and a replaced database accepted.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use serde_json::{Value, json};

use super::columns::{cell, zone_of};
use super::document::RowsDocument;
use super::doing::By;
use super::doing::author;
use super::input::read_input;
use super::look::TABLE;
use super::options::{Format, at_least_one};
use super::table::{CellShape, PrintedColumn};
use super::{CommandFailure, Session, output};
use crate::change::anchor;
use crate::change::audit::{self, Anchor};
use crate::change::plan::Counts;
use crate::change::plan::trail::ListedEntry;
use crate::ground::private_file;
use crate::memory::{ValueKind, thousands};
use crate::store::Store;
use crate::ui::text::SafeText;

/// Commands on the audit trail.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first.
    List {
        /// Maximum number of entries.
        #[arg(long, default_value_t = 50, value_parser = at_least_one())]
        limit: usize,
        /// Only entries before this number.
        #[arg(long, value_name = "SEQ")]
        before: Option<i64>,
    },
    /// Check the whole chain, and that it still holds what the anchors in the state folder recorded.
    Verify {
        /// File that `audit anchor` wrote, to check as well.
        #[arg(long, value_name = "FILE")]
        anchor: Option<PathBuf>,
    },
    /// Record the last hash of the chain in a file outside the database.
    Anchor {
        /// The file; a line is added.
        file: PathBuf,
    },
    /// Accept that the database was replaced, restored or copied on purpose: anchors that do not fit end, and stay on record.
    Accept {
        /// Reason why this is a different database now; stored with the anchors that end and in the trail.
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Name for the audit trail [default: MNEMOSCOPE_ACTOR or the login name].
        #[arg(long, value_name = "NAME")]
        actor: Option<String>,
    },
}

/// Bytes that a file of anchors may have.
const ANCHOR_BYTES: u64 = 64 << 20;

pub async fn run(session: &Session<'_>, command: &AuditCommand) -> Result<(), CommandFailure> {
    if session.format() == Format::Csv && !matches!(command, AuditCommand::List { .. }) {
        return Err(output::no_table());
    }
    match command {
        AuditCommand::List { limit, before } => list(session, *limit, *before).await,
        AuditCommand::Verify { anchor } => verify(session, anchor.as_deref()).await,
        AuditCommand::Anchor { file } => write_anchor(session, file).await,
        AuditCommand::Accept { reason, actor } => accept(session, reason, actor.clone()).await,
    }
}

/// Entries that are read and printed at once: what one changed may be much.
const PAGE: usize = 100;

async fn list(session: &Session<'_>, limit: usize, before: Option<i64>) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let mut reader = EntryReader { session, store, before, left: limit };
    match session.format() {
        Format::Json => {
            let mut document = RowsDocument::begin();
            while let Some(rows) = reader.next().await? {
                if !document.rows(&rows)? {
                    break;
                }
            }
            document.end(&AfterEntries { next: reader.before.filter(|seq| *seq > 1) })
        }
        Format::Jsonl => {
            let print = |rows: &[ListedEntry]| {
                output::piped_open(|out| rows.iter().try_for_each(|row| output::json_line(out, row)))
            };
            while let Some(rows) = reader.next().await? {
                if !print(&rows)? {
                    break;
                }
            }
            reader.report_older();
            Ok(())
        }
        Format::Csv => {
            let mut header = Some(COLUMNS);
            while let Some(rows) = reader.next().await? {
                let rows = rows.iter().map(|row| json!(row));
                let fields = rows.map(|row| COLUMNS.map(|column| output::csv_field(&row[column])));
                if !output::piped_open(|out| output::csv(out, header.take(), fields))? {
                    break;
                }
            }
            reader.report_older();
            Ok(())
        }
        Format::Table => {
            let (mut cells, mut times) = (Vec::new(), Vec::new());
            reader.left = limit.min(TABLE);
            while let Some(rows) = reader.next().await? {
                cells.extend(rows.iter().map(as_cells));
                times.extend(rows.into_iter().map(|row| row.at));
            }
            let columns = [
                PrintedColumn::new("Entry", CellShape::Number, 0),
                PrintedColumn::new("Written", CellShape::Word, 0).with(zone_of(times.iter().map(String::as_str))),
                PrintedColumn::new("Action", CellShape::Word, 1),
                PrintedColumn::new("Actor", CellShape::Word, 2),
                PrintedColumn::new("Reason", CellShape::Text, 3),
                PrintedColumn::new("Rows", CellShape::Text, 4),
            ];
            output::piped(|out| output::table(out, &columns, &cells))?;
            if limit > TABLE && cells.len() == TABLE {
                output::tell(&format!(
                    "a table ends with {} rows: --format csv or jsonl prints more",
                    thousands(TABLE)
                ));
            } else {
                reader.report_older();
            }
            Ok(())
        }
    }
}

/// Reads entries, the newest first, a page at a time.
struct EntryReader<'s> {
    session: &'s Session<'s>,
    store: Store,
    /// Only entries before this number are read next.
    before: Option<i64>,
    left: usize,
}

impl EntryReader<'_> {
    /// Says on standard error that older entries follow, and how to see them.
    fn report_older(&self) {
        if let Some(before) = self.before.filter(|seq| self.left == 0 && *seq > 1) {
            output::tell(&format!("older entries follow: --before {before}, or a higher --limit"));
        }
    }

    async fn next(&mut self) -> Result<Option<Vec<ListedEntry>>, CommandFailure> {
        if self.left == 0 || self.before.is_some_and(|before| before <= 1) {
            return Ok(None);
        }
        let most = self.left.min(PAGE);
        let mut rows = match audit::latest(&self.store, self.before, most).await {
            Ok(rows) => rows,
            Err(error) => {
                self.store = self.session.past(error.into()).await?;
                audit::latest(&self.store, self.before, most).await?
            }
        };
        self.left -= most;
        // If entries are missing, those before them are read next.
        let missing = || self.before.map(|before| before.saturating_sub(most as i64));
        self.before = rows.last().map(|row| row.seq).or_else(missing);
        if self.before.is_none() {
            self.left = 0;
        }
        if self.session.mask().is_some() {
            rows.iter_mut().for_each(|row| (row.changes, row.reason) = (None, None));
        }
        Ok(Some(rows))
    }
}

/// The members of a JSON document that follow its entries.
#[derive(Serialize)]
struct AfterEntries {
    next: Option<i64>,
}

const COLUMNS: [&str; 8] = ["seq", "at", "actor", "action", "public", "reason", "changes", "hash"];

fn as_cells(row: &ListedEntry) -> Vec<SafeText> {
    let width = output::width();
    let shown = |kind: ValueKind, value: Value| cell(kind, &value, width);
    vec![
        SafeText::from(row.seq.to_string()),
        shown(ValueKind::Time, json!(row.at)),
        shown(ValueKind::Text, json!(row.action)),
        shown(ValueKind::Text, json!(row.actor)),
        shown(ValueKind::Text, json!(row.reason)),
        SafeText::new(&row.facts.counts.as_ref().map(counts).unwrap_or_default()),
    ]
}

/// `episodes: update 1, insert 2; cases: insert 1`.
fn counts(counts: &Counts) -> String {
    let tables = counts.iter().map(|(table, done)| {
        let done: Vec<String> = done.iter().map(|(verb, rows)| format!("{verb} {rows}")).collect();
        format!("{table}: {}", done.join(", "))
    });
    tables.collect::<Vec<_>>().join("; ")
}

fn read_anchors(file: &Path) -> Result<Vec<Anchor>, CommandFailure> {
    let text = read_input(file, ANCHOR_BYTES)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let anchors: Vec<Anchor> = lines
        .map(|(number, line)| {
            serde_json::from_str(line).map_err(|e| {
                CommandFailure::usage(format!("{}:{}: this is not an anchor: {e}", file.display(), number + 1))
            })
        })
        .collect::<Result<_, _>>()?;
    if anchors.is_empty() {
        return Err(CommandFailure::usage(format!("{} holds no anchor", file.display())));
    }
    Ok(anchors)
}

async fn verify(session: &Session<'_>, anchor: Option<&Path>) -> Result<(), CommandFailure> {
    let anchors = anchor.map(read_anchors).transpose()?.unwrap_or_default();
    let store = session.store().await?;
    let verdict = anchor::verify(&store, &anchors).await?;
    let printed = output::shape(session.format(), &json!(verdict));
    let Some(first) = verdict.faults.first() else { return printed };
    let more = match verdict.faults.len() {
        1 => String::new(),
        all => format!(" ({all} faults in all)"),
    };
    // A broken trail is identified by its code also where the answer could not be printed.
    let unprinted = printed.err().map(|error| format!("; {}", error.message)).unwrap_or_default();
    Err(CommandFailure::new(7, format!("the audit trail is broken: {}{more}{unprinted}", first.message)))
}

async fn accept(session: &Session<'_>, reason: &str, actor: Option<String>) -> Result<(), CommandFailure> {
    let by = By { reason: Some(reason.to_owned()), ticket: None, actor };
    let store = session.store().await?;
    let acceptance = anchor::accept(&store, &author(&by)).await?;
    output::shape(session.format(), &json!(acceptance))
}

async fn write_anchor(session: &Session<'_>, file: &Path) -> Result<(), CommandFailure> {
    let store = session.store().await?;
    let anchor = audit::anchor(&store).await?;
    private_file::append(file, &json!(anchor).to_string())
        .map_err(|e| CommandFailure::failed(format!("{}: the anchor could not be written: {e}", file.display())))?;
    output::shape(session.format(), &json!(anchor))
}
