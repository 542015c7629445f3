//! `copy`: the rows of any database whose layout is known, put into one of the native layout, and compared afterwards.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::Utc;
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::context::Session;
use super::doing::{By, author};
use super::failure::CommandFailure;
use super::look::write_export;
use super::output;
use super::part_totals::PartTotals;
use crate::change::import::{self, ImportPart, ImportProgress, ORDER};
use crate::change::operation::ImportFormat;
use crate::change::{self, batch};
use crate::memory::filter::{Filter, alternatives};
use crate::memory::query::{PageStart, Query};
use crate::memory::text_check::{self, TextOddities};
use crate::memory::{Entity, Row};
use crate::memory::{agreeing, thousands};
use crate::store::Store;

/// Rows read at a time.
const STRIDE: usize = 500;
/// Bytes of lines that one change puts in.
const PART_BYTES: usize = 8 << 20;
/// Ids that the comparison names.
const NAMED: usize = 10;
/// Columns that follow from others, or name a table.
const DERIVED: &[&str] =
    &["score", "counts", "source", "has_vector", "episodes", "cases", "feedback", "last_seen", "k"];

/// From where, and where to.
#[derive(Debug, Clone, Args)]
pub struct CopyArgs {
    /// Database to copy from, of any layout.
    #[arg(long, value_name = "DATABASE")]
    pub from: String,
    /// Database to copy into, of the native layout, as `demo` and `migrate --layout mnemoscope` create it.
    #[arg(long, value_name = "DATABASE")]
    pub to: String,
    /// Condition, as in `list`, on every kind of row that has its column; what depends on an episode follows it.
    #[arg(long = "where", value_name = "EXPR")]
    pub filters: Vec<String>,
    /// Apply the plan and print the receipt; without this the plan is printed and nothing is written.
    #[arg(long)]
    pub apply: bool,
    /// Author of the change, and the reason.
    #[command(flatten)]
    pub by: By,
}

/// Totals over the parts of a copy.
#[derive(Default)]
struct Copied {
    totals: PartTotals,
    rows: BTreeMap<&'static str, usize>,
}

/// Copies, or says what it would copy.
///
/// # Errors
/// Code 5 where the target is not of the native layout, code 6 where rows are not there afterwards.
pub(super) async fn run(session: &Session<'_>, asked: &CopyArgs) -> Result<(), CommandFailure> {
    if session.database.is_some() {
        return Err(CommandFailure::usage("`copy` names its databases by --from and --to: leave -d out"));
    }
    let source = opened(session, &asked.from, session.global.layout.clone(), false).await?;
    let target = opened(session, &asked.to, Vec::new(), true).await?;
    if !target.recognised().layouts.iter().any(|layout| layout.name == "mnemoscope") {
        return Err(CommandFailure::refused(format!(
            "{} is not of the native layout: make such a database with `mnemoscope -d NEW --layout mnemoscope migrate --apply`",
            target.location()
        )));
    }
    if source.place() == target.place() {
        return Err(CommandFailure::usage("--from and --to are the same database"));
    }
    let mut copy = Copy { source: &source, asked, episodes: None };
    let mut copied = Copied::default();
    let (mut text, mut line, progress) = (Vec::new(), 1, ImportProgress::default());
    for entity in ORDER.iter().copied().filter(|entity| source.sources_of(*entity).is_ok()) {
        let mut query = copy.query(entity)?;
        loop {
            let page = source.page(&query).await?;
            let rows = copy.chosen(entity, page.rows);
            *copied.rows.entry(entity.name()).or_default() += rows.len();
            let surplus = source.shapes().surplus(entity, &rows).await?;
            write_export(&mut text, &rows, &surplus, entity)?;
            if text.len() >= PART_BYTES {
                line =
                    put_in(&target, asked, CopyPart { text: &mut text, line, is_last: false }, &progress, &mut copied)
                        .await?;
            }
            match page.next {
                Some(next) => query.start = PageStart::After(next),
                None => break,
            }
        }
    }
    put_in(&target, asked, CopyPart { text: &mut text, line, is_last: true }, &progress, &mut copied).await?;
    let mut shown = json!({
        "operation": "copy",
        "status": if !asked.apply { "planned" } else if copied.totals.counts.is_empty() { "nothing to do" } else { "applied" },
        "from": source.location(),
        "to": target.location(),
        "rows": copied.rows,
        "counts": copied.totals.counts,
        "disclosures": copied.totals.disclosures(),
    });
    if !asked.apply {
        return output::value(session.format(), &shown);
    }
    let (compared, missing, different) = copy.compared(&target).await?;
    shown["receipts"] = json!(copied.totals.receipts);
    shown["compared"] = compared;
    output::value(session.format(), &shown)?;
    if missing == 0 && different == 0 {
        return Ok(());
    }
    Err(CommandFailure::incomplete(agreeing(
        missing as u64,
        &format!(
            "{{#}} {{row of the source is|rows of the source are}} not in the target, {} differ there: see `compared`",
            thousands(different)
        ),
    )))
}

async fn opened(
    session: &Session<'_>,
    database: &str,
    layouts: Vec<String>,
    changes: bool,
) -> Result<Store, CommandFailure> {
    let mut global = session.global.clone();
    global.layout = layouts;
    global.profile = None;
    Session {
        global: &global,
        commands: session.commands,
        database: Some(database),
        config: session.config,
        changes,
        looks: false,
    }
    .store()
    .await
}

/// Lines that go into the target together.
struct CopyPart<'t> {
    /// The lines; taken out.
    text: &'t mut Vec<u8>,
    /// The number of the first, from 1.
    line: usize,
    /// No part comes after it.
    is_last: bool,
}

/// Puts lines into the target, or plans it; the number of the next line.
async fn put_in(
    target: &Store,
    asked: &CopyArgs,
    part: CopyPart<'_>,
    progress: &ImportProgress,
    copied: &mut Copied,
) -> Result<usize, CommandFailure> {
    let CopyPart { text, line, is_last } = part;
    let text = String::from_utf8(std::mem::take(text)).map_err(|e| CommandFailure::failed(e.to_string()))?;
    if text.is_empty() && !progress.waits() {
        return Ok(line);
    }
    let next = line + text.lines().count();
    let plan = || {
        let part = ImportPart { text: &text, first_line: line, progress, is_last };
        import::plan_part(target, ImportFormat::Jsonl, &asked.from, part, true)
    };
    let planned = if asked.apply {
        let (planned, receipt) = change::plan_and_apply(target, &author(&asked.by), plan).await?;
        copied.totals.add_receipt(&receipt, target).await;
        planned
    } else {
        plan().await?
    };
    progress.advance();
    copied.totals.add(&planned);
    Ok(next)
}

/// A copy under way.
struct Copy<'a> {
    source: &'a Store,
    asked: &'a CopyArgs,
    /// Episodes that are copied, where a condition chooses some.
    episodes: Option<HashSet<String>>,
}

impl Copy<'_> {
    /// The question for an entity's rows: the conditions whose column it has.
    fn query(&self, entity: Entity) -> Result<Query, CommandFailure> {
        let mut query = Query { limit: STRIDE, ..Query::new(entity) }.in_parts();
        for text in &self.asked.filters {
            if Entity::ALL.iter().any(|entity| alternatives(*entity, text).len() > 1) {
                // Kinds of rows lack columns: of an `or` between two, one would be left out without a word.
                return Err(CommandFailure::usage(format!(
                    "--where: `{text}`: copy knows no `or`; copy once for each"
                )));
            }
            let name = text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            let known = Entity::ALL.iter().any(|other| other.column(name).is_some());
            if entity.column(name).is_some() || !known {
                let filter = Filter::parse(entity, text, Utc::now());
                query.filters.push(filter.map_err(|e| CommandFailure::usage(format!("--where: {e}")))?);
            }
        }
        Ok(query)
    }

    /// The rows of a page that are copied: what hangs on an episode goes with it.
    fn chosen(&mut self, entity: Entity, mut rows: Vec<Row>) -> Vec<Row> {
        if self.asked.filters.is_empty() {
            return rows;
        }
        if entity == Entity::Episode {
            self.episodes.get_or_insert_default().extend(rows.iter().map(|row| row.id().to_owned()));
        } else if let Some(episodes) = &self.episodes {
            rows.retain(|row| row.text("episode_id").is_none_or(|id| episodes.contains(id)));
        }
        rows
    }

    /// Every row of the source beside that of the target; how many are not there, and how many differ.
    async fn compared(&mut self, target: &Store) -> Result<(Value, usize, usize), CommandFailure> {
        let (mut shown, mut missing, mut different) = (json!({}), 0, 0);
        self.episodes = None;
        for entity in ORDER.iter().copied().filter(|entity| self.source.sources_of(*entity).is_ok()) {
            let mut query = self.query(entity)?;
            let mut seen = Seen::default();
            loop {
                let page = self.source.page(&query).await?;
                let rows = self.chosen(entity, page.rows);
                seen.compare(target, entity, &rows).await?;
                seen.compare_vectors([self.source, target], entity, &rows).await?;
                match page.next {
                    Some(next) => query.start = PageStart::After(next),
                    None => break,
                }
            }
            missing += seen.missing.len();
            different += seen.different + seen.vectors.different;
            shown[entity.name()] = json!({
                "source": seen.source,
                "equal": seen.equal,
                "different": seen.different,
                "missing": seen.missing.len(),
                "columns": seen.columns,
                "left_out": seen.left_out,
                "vectors": seen.vectors,
                "examples": seen.missing.iter().take(NAMED).collect::<Vec<_>>(),
            });
        }
        Ok((shown, missing, different))
    }
}

/// Results of comparing source and target.
#[derive(Default)]
struct Seen {
    source: usize,
    equal: usize,
    different: usize,
    missing: Vec<String>,
    /// Columns that differ, and in how many rows.
    columns: BTreeMap<&'static str, usize>,
    /// Columns that the target has no place for, and how many rows of the source have a value there.
    left_out: BTreeMap<&'static str, usize>,
    vectors: SeenVectors,
}

/// Results of comparing vectors.
#[derive(Default, Serialize)]
struct SeenVectors {
    /// Rows of the source with one.
    source: usize,
    /// Rows with the same numbers in the target.
    equal: usize,
    /// Rows with other numbers, or none.
    different: usize,
    /// Rows whose vector the target has no place for.
    left_out: usize,
}

impl Seen {
    async fn compare(&mut self, target: &Store, entity: Entity, rows: &[Row]) -> Result<(), CommandFailure> {
        let key = |row: &Row| match entity {
            Entity::MemoryLink => format!("{} {}", row.get("episode_id"), row.get("memory_id")),
            _ => row.id().to_owned(),
        };
        let column = if entity == Entity::MemoryLink { "episode_id" } else { "id" };
        let ids: Vec<String> = rows.iter().filter_map(|row| row.text(column)).map(str::to_owned).collect();
        let there: HashMap<String, Row> =
            target.related(entity, column, &ids).await?.into_iter().map(|row| (key(&row), row)).collect();
        let place = batch::target(target, entity)?;
        for row in rows {
            self.source += 1;
            let Some(copy) = there.get(&key(row)) else {
                self.missing.push(key(row));
                continue;
            };
            let differs = |name: &&'static str| !DERIVED.contains(name) && !is_same(row.get(name), copy.get(name));
            let differing = entity.columns().iter().map(|c| c.name).filter(differs);
            let (columns, homeless): (Vec<_>, Vec<_>) = differing.partition(|name| batch::is_kept(place, row, name));
            homeless.into_iter().for_each(|name| *self.left_out.entry(name).or_default() += 1);
            if columns.is_empty() {
                self.equal += 1;
            } else {
                self.different += 1;
            }
            columns.into_iter().for_each(|name| *self.columns.entry(name).or_default() += 1);
        }
        Ok(())
    }

    /// Vectors of finite numbers have to be the same to the bit.
    async fn compare_vectors(
        &mut self,
        [source, target]: [&Store; 2],
        entity: Entity,
        rows: &[Row],
    ) -> Result<(), CommandFailure> {
        if !source.embeddings().has_vectors(entity) {
            return Ok(());
        }
        let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
        let stored = source.embeddings().vectors(entity, &ids).await?;
        let finite = stored.iter().filter(|(_, numbers)| numbers.iter().all(|x| x.is_finite()));
        let copied = if target.embeddings().has_vectors(entity) {
            Some(target.embeddings().vectors(entity, &ids).await?)
        } else {
            None
        };
        for (id, numbers) in finite {
            self.vectors.source += 1;
            match copied.as_ref().map(|copied| copied.get(id) == Some(numbers)) {
                None => self.vectors.left_out += 1,
                Some(true) => self.vectors.equal += 1,
                Some(false) => self.vectors.different += 1,
            }
        }
        Ok(())
    }
}

/// Whether the copy of a value says the same: a list of nothing is none, and secrets are not copied.
fn is_same(original: &Value, copy: &Value) -> bool {
    let nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    original == copy
        || nothing(original) && nothing(copy)
        || text_check::check_value(original, &mut TextOddities::default()) == *copy
}
