//! Texts of deleted rows that triggers and rules of the database may copy elsewhere during the deletion.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use aho_corasick::AhoCorasick;
use serde::{Deserialize, Serialize};

use super::effects::ColumnUpdate;
use super::plan::PurgePlan;
use super::prove::Proof;
use super::taken::{GoingRows, room};
use super::verdict::RemainKind;
use crate::change::ChangeError;
use crate::layout::Engine;
use crate::memory::agreeing;
use crate::memory::name_words::is_word_in;
use crate::memory::packed::digest_set::DigestSet;
use crate::store::fetched::{FetchedValue, RawRow};
use crate::store::own;
use crate::store::relations::{Relations, TableTrigger};
use crate::store::row_list::row_digest;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::{StoredRows, TableName};

/// Most rows of a table that give pieces.
const ROWS: usize = 500;
/// Letters that a piece needs to be distinctive.
const LETTERS: usize = 12;
/// Longest piece, in characters.
const LONGEST: usize = 40;
/// Most pieces to look for.
const PIECES: usize = 20_000;

/// Pieces of deleted texts, and the places where the database itself may write copies of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CopiedTexts {
    /// Active triggers and rules, each with its table.
    triggers: Vec<String>,
    /// Tables that they may write to.
    tables: Vec<WrittenTable>,
    /// The pieces; none of them occurs in a remaining row of these tables.
    pieces: BTreeSet<String>,
}

/// A table that a trigger may write to.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct WrittenTable {
    table: TableName,
    /// Number of rows that stay, before any was added; `None` if no row is added.
    rows: Option<usize>,
}

impl CopiedTexts {
    /// Collects the pieces before anything is deleted.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn before(snapshot: &mut Snapshot<'_>, plan: &PurgePlan) -> Result<Self, ChangeError> {
        let all = snapshot.triggers().await?;
        let running: Vec<&TableTrigger> = plan.running(&all).collect();
        if running.is_empty() {
            return Ok(CopiedTexts::default());
        }
        let relations = snapshot.relations().await?;
        let mut copied = CopiedTexts {
            triggers: running.iter().map(|trigger| format!("{} of {}", trigger.name, trigger.table.title())).collect(),
            tables: written(snapshot, &relations, &running, &all).await?,
            pieces: BTreeSet::new(),
        };
        if !copied.tables.is_empty() {
            copied.pieces = pieces(snapshot, &relations, plan).await?;
            copied.look_around(snapshot, &relations, plan).await?;
        }
        Ok(copied)
    }

    /// Counts the rows that stay, and drops the pieces that occur in them.
    async fn look_around(
        &mut self,
        snapshot: &mut Snapshot<'_>,
        relations: &Relations,
        plan: &PurgePlan,
    ) -> Result<(), ChangeError> {
        let pieces = Vec::from_iter(std::mem::take(&mut self.pieces));
        let finder = finder(&pieces)?;
        let mut others = BTreeSet::new();
        for WrittenTable { table, rows } in &mut self.tables {
            let (by, going) = going(plan, table);
            let key = by.len();
            let columns = [by, texts(snapshot, relations, table).await?].concat();
            let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
            let stay = AtomicUsize::new(0);
            let look = |row: &RawRow| {
                let (key, texts) = row.split_at(key.min(row.len()));
                if !key.is_empty() && going.contains(row_digest(key)) {
                    return None;
                }
                stay.fetch_add(1, Ordering::Relaxed);
                let bytes = texts.iter().filter_map(FetchedValue::bytes);
                let found =
                    bytes.flat_map(|bytes| finder.find_overlapping_iter(bytes)).map(|at| at.pattern().as_usize());
                Some(found.collect::<Vec<usize>>()).filter(|found| !found.is_empty())
            };
            snapshot.stream_looked(wanted, look, |_, found| others.extend(found)).await?;
            *rows = rows.map(|_| stay.into_inner());
        }
        let own = pieces.into_iter().enumerate().filter(|(number, _)| !others.contains(number));
        self.pieces = own.map(|(_, piece)| piece).collect();
        Ok(())
    }

    /// Looks for copies after the deletion.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn after(&self, snapshot: &mut Snapshot<'_>, proof: &mut Proof) -> Result<(), ChangeError> {
        if self.tables.is_empty() {
            return Ok(());
        }
        let relations = snapshot.relations().await?;
        let finder = finder(&Vec::from_iter(&self.pieces))?;
        let by = self.triggers.join(", ");
        for WrittenTable { table, rows } in self.tables.iter().filter(|there| relations.tables.contains(&there.table)) {
            let columns = texts(snapshot, &relations, table).await?;
            let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
            let there = AtomicUsize::new(0);
            let look = |row: &RawRow| {
                there.fetch_add(1, Ordering::Relaxed);
                let holds = |raw: &FetchedValue| raw.bytes().is_some_and(|bytes| finder.is_match(bytes));
                let held: Vec<usize> = row.iter().enumerate().filter(|(_, raw)| holds(raw)).map(|(at, _)| at).collect();
                Some(held).filter(|held| !held.is_empty())
            };
            let mut copies = vec![0_usize; columns.len()];
            snapshot.stream_looked(wanted, look, |_, held| held.into_iter().for_each(|at| copies[at] += 1)).await?;
            let title = table.title();
            for (column, copies) in columns.iter().zip(&copies).filter(|(_, copies)| **copies > 0) {
                let what = "{value holds|values hold} texts of rows that are gone, copied while they went";
                let remedy = "delete or change {that value|those values}, and resume";
                let words = format!("{title}.{column}: {{#}} {what} (by the {by}): {remedy}");
                proof.find(RemainKind::Copied, agreeing(*copies, &words));
            }
            let added = rows.map_or(0, |rows| there.into_inner().saturating_sub(rows));
            if added > 0 && copies.iter().all(|copies| *copies == 0) {
                let what = "{row was|rows were} added meanwhile";
                let may = "{it|they} may repeat in other words what rows that are gone said";
                let words = format!("{title}: {{#}} {what}, by the {by} or by others: {may}");
                proof.find(RemainKind::Opaque, agreeing(added, &words));
            }
        }
        Ok(())
    }
}

/// Tables that triggers may write to: those they name, and those that the triggers of these tables name. On PostgreSQL,
/// where functions may call others and build statements, every table. Tables that the layout declares as kept in step
/// are not included.
async fn written(
    snapshot: &mut Snapshot<'_>,
    relations: &Relations,
    running: &[&TableTrigger],
    all: &[TableTrigger],
) -> Result<Vec<WrittenTable>, ChangeError> {
    let store = snapshot.store;
    let indexes = store.proof().index_tables().await?;
    let follows = &store.recognised().erasure.follows;
    let is_apart = |table: &TableName| {
        let follows = follows.iter().any(|known| TableName::of(known) == *table);
        follows || indexes.contains(table) || own::TABLES.contains(&table.name.as_str())
    };
    let postgres = store.engine() == Engine::Postgres;
    let tables: BTreeSet<&TableName> =
        relations.tables.iter().chain(all.iter().map(|trigger| &trigger.table)).collect();
    let tables: BTreeSet<&TableName> = tables.into_iter().filter(|table| !is_apart(table)).collect();
    let (mut named, mut added) = (BTreeSet::new(), BTreeSet::new());
    let mut waiting = running.to_vec();
    while let Some(trigger) = waiting.pop() {
        let text = trigger.text.to_lowercase();
        // SQLite's text begins with the table of the trigger.
        let text = if postgres { &*text } else { text.split_once("begin").map_or(&*text, |(_, body)| body) };
        for table in &tables {
            let name = table.name.to_lowercase();
            if is_word_in(text, &name, is_of_name) && named.insert(*table) {
                waiting.extend(all.iter().filter(|other| other.table == **table));
            }
            let is_put_together = postgres && text.contains("execute");
            if is_put_together || text.split("into").skip(1).any(|rest| begins_with(rest, &name)) {
                added.insert(*table);
            }
        }
    }
    let mut written = Vec::new();
    let named = if postgres { tables } else { named };
    for table in named.into_iter().filter(|table| relations.tables.contains(table)) {
        if !texts(snapshot, relations, table).await?.is_empty() {
            written.push(WrittenTable { table: table.clone(), rows: added.contains(table).then_some(0) });
        }
    }
    Ok(written)
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether the text after INTO begins with a table's name, quoted or not, with or without its schema.
fn begins_with(rest: &str, name: &str) -> bool {
    let rest = rest.trim_start_matches(|c| !is_of_name(c));
    let schema = rest.split_once('.').filter(|(schema, _)| schema.chars().all(|c| is_of_name(c) || c == '"'));
    let within = schema.map(|(_, rest)| rest.trim_start_matches(|c| !is_of_name(c)));
    let is_it = |rest: &str| rest.strip_prefix(name).is_some_and(|after| !after.starts_with(is_of_name));
    is_it(rest) || within.is_some_and(is_it)
}

/// Columns of a table that may hold texts.
async fn texts(
    snapshot: &mut Snapshot<'_>,
    relations: &Relations,
    table: &TableName,
) -> Result<Vec<String>, ChangeError> {
    let shape = snapshot.shape(table).await?;
    let columns = shape.columns.iter().map(|column| &column.name);
    Ok(columns.filter(|column| relations.holds_words(table, column)).cloned().collect())
}

/// The key columns and the keys of a table's deleted rows.
fn going(plan: &PurgePlan, table: &TableName) -> (Vec<String>, DigestSet) {
    let mut known = DigestSet::new(&room());
    if let Some(rows) = plan.deletes.iter().find(|rows| rows.table == *table) {
        for key in rows.all_keys() {
            known.insert(row_digest(&key));
        }
        return (rows.by.clone(), known);
    }
    let owned = plan.owned.iter().map(|owned| &owned.rows).find(|rows| rows.table == *table);
    for key in owned.iter().flat_map(|rows| &rows.keys) {
        known.insert(row_digest(key));
    }
    (owned.map(|rows| rows.by.clone()).unwrap_or_default(), known)
}

/// Pieces of the texts of deleted rows, and of columns that are emptied.
async fn pieces(
    snapshot: &mut Snapshot<'_>,
    relations: &Relations,
    plan: &PurgePlan,
) -> Result<BTreeSet<String>, ChangeError> {
    let sample = |rows: &GoingRows| {
        let keys = rows.all_keys().step_by(rows.len().div_ceil(ROWS).max(1)).collect();
        StoredRows { table: rows.table.clone(), by: rows.by.clone(), keys }
    };
    let owned = plan.owned.iter().map(|owned| owned.rows.clone());
    let mut sampled: Vec<(StoredRows, Vec<String>)> = Vec::new();
    for rows in plan.deletes.iter().map(sample).chain(owned) {
        let columns = texts(snapshot, relations, &rows.table).await?;
        sampled.push((rows, columns));
    }
    for row in plan.updates.iter().take(ROWS) {
        let is_emptied = |update: &&ColumnUpdate| match update.new.known() {
            Some(FetchedValue::Text(new)) => new.is_empty(),
            new => new == Some(FetchedValue::Null),
        };
        let emptied = row.update.set.iter().filter(is_emptied).map(|update| update.column.to_string());
        sampled.push((row.stored(), emptied.collect()));
    }
    sampled.retain(|(_, columns)| !columns.is_empty());
    let mut pieces = BTreeSet::new();
    for (rows, columns) in sampled {
        let wanted = WantedRows { table: &rows.table, columns: &columns, when: None, subject: &[] };
        let mut left = ROWS;
        let take = |row: RawRow| {
            if left > 0 && pieces.len() < PIECES {
                left -= 1;
                pieces.extend(row.iter().filter_map(piece));
            }
        };
        snapshot.each_of_keys(wanted, &rows.by, &rows.keys, take).await?;
    }
    Ok(pieces)
}

/// The longest piece of a text that is spelled the same in JSON and within other texts, if it is distinctive.
fn piece(value: &FetchedValue) -> Option<String> {
    let FetchedValue::Text(text) = value else { return None };
    let is_plain = |c: char| c.is_alphanumeric() || " ,.:;!?-".contains(c);
    let longest = text.split(|c| !is_plain(c)).max_by_key(|piece| piece.len())?;
    let piece: String = longest.trim().chars().take(LONGEST).collect();
    let letters = piece.chars().filter(|c| c.is_alphabetic());
    let is_text = piece.contains(' ') || letters.clone().any(|c| !c.is_ascii());
    (is_text && letters.count() >= LETTERS).then_some(piece)
}

/// Finds pieces in any case of ASCII letters.
fn finder<P: AsRef<[u8]>>(pieces: &[P]) -> Result<AhoCorasick, ChangeError> {
    let built = AhoCorasick::builder().ascii_case_insensitive(true).build(pieces);
    built.map_err(|error| ChangeError::Failed(format!("texts of rows that go cannot be looked for: {error}")))
}
