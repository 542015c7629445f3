//! Changes many rows with few statements, each row only if it still has the expected values.

use super::dialect::quote;
use super::fetched::{FetchedValue, Param, RawRow};
use super::shape::{self, TableShape};
use super::stored::{Revision, RowRevisions, spell};
use super::{Store, StoreError};
use crate::layout::Engine;

/// Values per SQLite statement; the limit is 32,766.
const VALUES: usize = 10_000;
/// Rows per PostgreSQL statement, which gets one array per column.
const ROWS: usize = 5_000;

/// The statements of the change, each with its values.
pub fn statements(shape: &TableShape, revise: &RowRevisions, now: &str) -> impl Iterator<Item = (String, Vec<Param>)> {
    let engine = shape.engine;
    let statement = move |rows: &[Revision]| {
        let mut params = Vec::new();
        let values = values(engine, revise, rows, &mut params);
        let mut sets: Vec<String> = (0..revise.columns.len())
            .map(|i| format!("{} = {}", quote(&revise.columns[i]), typed(shape, &revise.columns[i], 'a', i)))
            .collect();
        for (column, spelling) in &revise.touch {
            let value = spell(*spelling, now);
            let declared = shape.column(column).map_or("", |c| c.declared.as_str());
            let mark = shape::placeholder(engine, params.len() + 1, &value, declared);
            params.push(value);
            sets.push(format!("{} = {mark}", quote(column)));
        }
        let table = shape::qualified(&revise.table);
        let condition = condition(shape, revise);
        let sql = match engine {
            Engine::Sqlite => format!("{values} UPDATE {table} AS t SET {} FROM v WHERE {condition}", sets.join(", ")),
            Engine::Postgres => {
                format!("UPDATE {table} AS t SET {} FROM {values} WHERE {condition}", sets.join(", "))
            }
        };
        (sql, params)
    };
    chunks(engine, revise).map(statement)
}

fn chunks(engine: Engine, revise: &RowRevisions) -> std::slice::Chunks<'_, Revision> {
    let rows = match engine {
        Engine::Sqlite => VALUES / (revise.key.len() + 2 * revise.columns.len()).max(1),
        Engine::Postgres => ROWS,
    };
    revise.rows.chunks(rows.max(1))
}

/// The rows as a table `v` with columns k0…, b0… and a0….
fn values(engine: Engine, revise: &RowRevisions, rows: &[Revision], params: &mut Vec<Param>) -> String {
    let numbered = |letter: char, count: usize| (0..count).map(move |i| format!("{letter}{i}"));
    let names: Vec<String> = numbered('k', revise.key.len())
        .chain(numbered('b', revise.columns.len()))
        .chain(numbered('a', revise.columns.len()))
        .collect();
    match engine {
        Engine::Sqlite => {
            let mut row = |Revision(key, before, after): &Revision| {
                let mut text = String::with_capacity(names.len() * 8);
                for value in key.iter().chain(before).chain(after) {
                    text.push(if text.is_empty() { '(' } else { ',' });
                    params.push(value.clone());
                    text.push_str(&shape::placeholder(engine, params.len(), value, ""));
                }
                text.push(')');
                text
            };
            let rows: Vec<String> = rows.iter().map(&mut row).collect();
            format!("WITH v({}) AS (VALUES {})", names.join(","), rows.join(","))
        }
        Engine::Postgres => {
            let column = |at: usize| {
                let value = |row: &Revision| row.0.iter().chain(&row.1).chain(&row.2).nth(at).cloned();
                array(rows.iter().map(|row| value(row).unwrap_or(FetchedValue::Null)))
            };
            let marks: Vec<String> = (0..names.len())
                .map(|at| {
                    params.push(column(at));
                    format!("${}::text[]", params.len())
                })
                .collect();
            format!("unnest({}) AS v({})", marks.join(", "), names.join(", "))
        }
    }
}

/// A value of `v` in the column's type, since PostgreSQL gets texts.
fn typed(shape: &TableShape, column: &str, letter: char, at: usize) -> String {
    let declared = shape.column(column).map_or("text", |c| c.declared.as_str());
    match shape.engine {
        Engine::Sqlite => format!("v.{letter}{at}"),
        Engine::Postgres => format!("v.{letter}{at}::{}", shape::cast(declared)),
    }
}

/// The condition that finds a row by its key, with the expected values.
fn condition(shape: &TableShape, revise: &RowRevisions) -> String {
    let keys = (0..revise.key.len())
        .map(|i| format!("t.{} = {}", quote(&revise.key[i]), typed(shape, &revise.key[i], 'k', i)));
    let same = (0..revise.columns.len()).map(|i| {
        let (name, column) = (&revise.columns[i], quote(&revise.columns[i]));
        let value = typed(shape, name, 'b', i);
        match shape.engine {
            Engine::Sqlite => format!("t.{column} IS {value}"),
            // Compared as texts, because json has no equality operator.
            Engine::Postgres => format!("t.{column}::text IS NOT DISTINCT FROM ({value})::text"),
        }
    });
    keys.chain(same).collect::<Vec<_>>().join(" AND ")
}

/// A PostgreSQL array as text. A text that is not UTF-8 stays as it is.
fn array(values: impl Iterator<Item = FetchedValue>) -> FetchedValue {
    let mut text = b"{".to_vec();
    for (i, value) in values.enumerate() {
        if i > 0 {
            text.push(b',');
        }
        let value = match value {
            FetchedValue::Null => {
                text.extend_from_slice(b"NULL");
                continue;
            }
            FetchedValue::Text(value) => value.into_bytes(),
            FetchedValue::Integer(value) => value.to_string().into_bytes(),
            FetchedValue::Real(value) => value.to_string().into_bytes(),
            FetchedValue::BadText(bytes) => bytes,
            FetchedValue::Bytes(bytes) => format!("\\x{}", hex::encode(bytes)).into_bytes(),
        };
        text.push(b'"');
        for byte in value {
            if matches!(byte, b'"' | b'\\') {
                text.push(b'\\');
            }
            text.push(byte);
        }
        text.push(b'"');
    }
    text.push(b'}');
    String::from_utf8(text).map_or_else(|bad| FetchedValue::BadText(bad.into_bytes()), FetchedValue::Text)
}

/// For the rest of a transaction: rows are found through the index of their key. Otherwise PostgreSQL reads the whole
/// table for each batch, which takes twice as long.
const BY_INDEX: &str =
    "SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_seqscan = off";

impl Store {
    /// The settings for finding rows by the index of their key; `None` if they are not needed, or there is no such
    /// index.
    pub(super) fn by_index(&self, revise: &RowRevisions) -> Option<&'static str> {
        let named = |t: &&crate::layout::CatalogTable| t.schema == revise.table.schema && t.name == revise.table.name;
        let table = self.catalog().tables.iter().find(named).filter(|_| self.engine() == Engine::Postgres)?;
        let key = revise.key.first()?;
        table.indexed.iter().any(|column| column.eq_ignore_ascii_case(key)).then_some(BY_INDEX)
    }

    /// The rows of a change that still have the expected values, by their keys.
    ///
    /// # Errors
    /// [`StoreError::NoTable`] if the table does not exist, or the engine's refusal.
    pub async fn still(&self, revise: &RowRevisions) -> Result<Vec<Vec<FetchedValue>>, StoreError> {
        let engine = self.engine();
        let shape = self.shapes().shape(&revise.table).await?;
        let mut keys: Vec<Vec<FetchedValue>> = Vec::new();
        let names: Vec<String> = (0..revise.key.len()).map(|i| format!("v.k{i}")).collect();
        for rows in chunks(engine, revise) {
            let mut params = Vec::new();
            let values = values(engine, revise, rows, &mut params);
            let (table, condition) = (shape::qualified(&revise.table), condition(&shape, revise));
            let names = names.join(", ");
            let sql = match engine {
                Engine::Sqlite => format!("{values} SELECT {names} FROM v, {table} AS t WHERE {condition}"),
                Engine::Postgres => format!("SELECT {names} FROM {values}, {table} AS t WHERE {condition}"),
            };
            let found: Vec<RawRow> = self.sessions.fetch(&sql, &params).await?;
            keys.extend(found);
        }
        Ok(keys)
    }
}
