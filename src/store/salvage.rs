//! Reading past damaged pages: a private database with all rows of an SQLite file that can still be read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode, Statement, params_from_iter};

use super::dialect::quote;
use super::row_number::free_name;
use crate::memory::UnreadRows;

/// Times that rows are searched in a table without finding one, at most: beyond the end of a file there are none.
const TRIES: usize = 4_000;

/// The table that describes the others.
pub(super) const SCHEMA: &str = "sqlite_schema";

/// Copies what can be read of a database into a new file, with its indexes and views. Returns the rows that are
/// missing, by table.
///
/// # Errors
/// SQLite's refusal for another reason than a damaged page.
pub(super) fn salvage(from: &Path, to: &Path) -> Result<Vec<UnreadRows>, rusqlite::Error> {
    // A connection that met a damaged page may not write any more: each file has its own.
    let (source, link) = (Connection::open(from)?, Connection::open(to)?);
    // With a schema that may be written SQLite reads also a file that ends too early.
    source.execute_batch("PRAGMA writable_schema = ON")?;
    let encoding: String = source.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    link.execute_batch(&format!(
        "PRAGMA encoding = '{encoding}'; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; \
         PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; PRAGMA writable_schema = ON"
    ))?;
    link.execute_batch("BEGIN")?;
    let (objects, are_all) = objects(&source)?;
    let (tables, others): (Vec<_>, Vec<_>) = objects.iter().partition(|object| object.is_plain_table());
    let mut unread = Vec::new();
    if !are_all {
        unread.push(UnreadRows { table: SCHEMA.to_owned(), rows: None });
    }
    for table in tables {
        link.execute_batch(&table.sql)?;
        unread.extend(DamagedTable::of(&source, &link, &table.name)?.copy()?);
    }
    for object in others {
        if object.kind == "table" {
            // What a virtual table holds is in plain tables, which are there already.
            let add =
                "INSERT INTO main.sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ('table', $1, $1, 0, $2)";
            link.execute(add, [&object.name, &object.sql])?;
        } else if link.execute_batch(&object.sql).is_err() {
            tracing::debug!(kind = %object.kind, "left out of what is read");
        }
    }
    link.execute_batch("PRAGMA writable_schema = OFF; COMMIT")?;
    Ok(unread)
}

/// A table, index, view or trigger.
struct SchemaObject {
    kind: String,
    name: String,
    sql: String,
}

impl SchemaObject {
    fn is_plain_table(&self) -> bool {
        let mut words = self.sql.split_whitespace().map(str::to_ascii_uppercase);
        words.next().is_some_and(|word| word == "CREATE") && words.next().is_some_and(|word| word == "TABLE")
    }
}

/// The objects of a database, tables and indexes first, and whether these are all.
fn objects(source: &Connection) -> Result<(Vec<SchemaObject>, bool), rusqlite::Error> {
    let sql =
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = source.prepare(sql)?;
    let (mut rows, mut found) = (statement.query([])?, Vec::new());
    let are_all = loop {
        match rows.next() {
            Ok(Some(row)) => found.push(SchemaObject { kind: row.get(0)?, name: row.get(1)?, sql: row.get(2)? }),
            Ok(None) => break true,
            Err(error) if is_damage(&error) => break false,
            Err(error) => return Err(error),
        }
    };
    found.sort_by_key(|object| (object.kind == "trigger", object.kind == "view"));
    Ok((found, are_all))
}

/// A table of which a page may be damaged.
struct DamagedTable<'l> {
    source: &'l Connection,
    link: &'l Connection,
    name: &'l str,
    /// Columns that are copied, the row number first where rows have one: quoted and joined.
    columns: String,
    count: usize,
    /// Name of the row number.
    number: Option<&'static str>,
    /// Quoted columns by which the rows are in order; empty where they have none.
    order: Vec<String>,
}

/// Direction in which rows are read.
#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

impl<'l> DamagedTable<'l> {
    fn of(source: &'l Connection, link: &'l Connection, name: &'l str) -> Result<Self, rusqlite::Error> {
        let names = |sql: &str| -> Result<Vec<String>, rusqlite::Error> {
            link.prepare(sql)?.query_map([name], |row| row.get(0))?.collect()
        };
        let all = names("SELECT name FROM pragma_table_xinfo($1, 'main')")?;
        let mut columns = names("SELECT name FROM pragma_table_xinfo($1, 'main') WHERE hidden = 0")?;
        let key = names("SELECT name FROM pragma_table_xinfo($1, 'main') WHERE pk > 0 ORDER BY pk")?;
        let has_number = names("SELECT name FROM pragma_table_list WHERE schema = 'main' AND name = $1 AND wr = 0")?;
        let number = free_name(&all.iter().collect::<Vec<_>>()).filter(|_| !has_number.is_empty());
        columns.iter_mut().for_each(|column| *column = quote(column));
        columns.splice(0..0, number.map(str::to_owned));
        let order = match number {
            Some(number) => vec![number.to_owned()],
            None if has_number.is_empty() => key.iter().map(|column| quote(column)).collect(),
            None => Vec::new(),
        };
        Ok(DamagedTable { source, link, name, count: columns.len(), columns: columns.join(", "), number, order })
    }

    /// Copies the rows; gives what is missing.
    fn copy(&self) -> Result<Option<UnreadRows>, rusqlite::Error> {
        let (last, is_whole) = self.run(&mut self.reader(Direction::Up, "")?, None)?;
        if is_whole {
            return Ok(None);
        }
        match self.number {
            Some(number) => self.copy_by_number(number, last)?,
            // Only rows with an order have another end.
            None if self.order.is_empty() => {}
            None => drop(self.run(&mut self.reader(Direction::Down, "")?, None)?),
        }
        let read: i64 =
            self.link.query_row(&format!("SELECT count(*) FROM main.{}", quote(self.name)), [], |row| row.get(0))?;
        let rows = self.counted()?.and_then(|all| u64::try_from(all - read).ok());
        // A page may hold no row.
        Ok((rows != Some(0)).then(|| UnreadRows { table: self.name.to_owned(), rows }))
    }

    /// Copies rows by their numbers after the last one before the damage: up to the damage from both sides, then within the
    /// rest, which is halved until it is read or one row alone.
    fn copy_by_number(&self, number: &str, last: Option<i64>) -> Result<(), rusqlite::Error> {
        let within = format!(" WHERE {number} BETWEEN $1 AND $2");
        let (mut up, mut down) = (self.reader(Direction::Up, &within)?, self.reader(Direction::Down, &within)?);
        let width = |low: i64, high: i64| i128::from(high) - i128::from(low);
        // The narrowest first: the others may be wide and empty.
        let mut ranges = BinaryHeap::new();
        let begin = match last {
            Some(last) => vec![(last.saturating_add(1), i64::MAX)],
            None => vec![(i64::MIN, 0), (1, i64::MAX)],
        };
        ranges.extend(begin.into_iter().map(|(low, high)| (Reverse(width(low, high)), low, high)));
        let mut tries = 0;
        while tries < TRIES
            && let Some((_, low, high)) = ranges.pop()
        {
            tries += 1;
            let (last, is_whole) = self.run(&mut up, Some((low, high)))?;
            let low = last.map_or(Some(low), |last| last.checked_add(1)).filter(|low| !is_whole && *low <= high);
            let Some(low) = low else { continue };
            let (first, is_whole) = self.run(&mut down, Some((low, high)))?;
            if last.or(first).is_some() {
                tries = 0;
            }
            let high = first.map_or(Some(high), |first| first.checked_sub(1)).filter(|high| !is_whole && low < *high);
            if let Some(high) = high {
                let middle = (low >> 1) + (high >> 1) + (low & high & 1);
                ranges.push((Reverse(width(low, middle)), low, middle));
                ranges.push((Reverse(width(middle + 1, high)), middle + 1, high));
            }
        }
        Ok(())
    }

    fn reader(&self, direction: Direction, within: &str) -> Result<Statement<'l>, rusqlite::Error> {
        let sign = if matches!(direction, Direction::Up) { "ASC" } else { "DESC" };
        let order: Vec<String> = self.order.iter().map(|column| format!("{column} {sign}")).collect();
        let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
        self.source.prepare(&format!("SELECT {} FROM {}{within}{order}", self.columns, quote(self.name)))
    }

    /// Copies rows as they are read, up to the first damage. The number of the last one, and whether there was no damage.
    fn run(
        &self,
        reader: &mut Statement<'_>,
        range: Option<(i64, i64)>,
    ) -> Result<(Option<i64>, bool), rusqlite::Error> {
        let marks: Vec<String> = (1..=self.count).map(|at| format!("${at}")).collect();
        let add =
            format!("INSERT OR IGNORE INTO main.{} ({}) VALUES ({})", quote(self.name), self.columns, marks.join(", "));
        let mut add = self.link.prepare_cached(&add)?;
        let mut rows = reader.query(params_from_iter(range.into_iter().flat_map(|(low, high)| [low, high])))?;
        let mut last = None;
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok((last, true)),
                Err(error) if is_damage(&error) => return Ok((last, false)),
                Err(error) => return Err(error),
            };
            let values: Vec<ToSqlOutput<'_>> =
                (0..self.count).map(|at| row.get_ref(at).map(ToSqlOutput::Borrowed)).collect::<Result<_, _>>()?;
            add.execute(params_from_iter(values))?;
            if self.number.is_some() {
                last = Some(row.get(0)?);
            }
        }
    }

    /// The number of the rows that an index knows.
    fn counted(&self) -> Result<Option<i64>, rusqlite::Error> {
        let sql = "SELECT name FROM pragma_index_list($1) WHERE partial = 0";
        let indexes: Vec<String> =
            self.source.prepare(sql)?.query_map([self.name], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let count = |index: &String| {
            let sql = format!("SELECT count(*) FROM {} INDEXED BY {}", quote(self.name), quote(index));
            self.source.query_row(&sql, [], |row| row.get(0)).ok()
        };
        Ok(indexes.iter().find_map(count))
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Names the file that takes what can be read of another.
pub(super) fn beside(damaged: &Path) -> PathBuf {
    damaged.with_extension("read.db")
}
