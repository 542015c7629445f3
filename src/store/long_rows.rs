//! Tables whose rows are long: of these SQLite's thread may read only a few rows ahead of whoever takes them.

use super::dialect::{quote, table};
use super::fetched::FetchedValue;
use super::session::ReadAhead;
use super::{Store, StoreError};
use crate::layout::{BoundFrom, BoundSource, CatalogTable, Engine};

/// Rows for which a sample would take longer than it saves.
const FEW: usize = 64;
/// Rows that are looked at, spread evenly over the row numbers.
const SAMPLED: usize = 32;
/// Bytes from which a row is long: those that are read far ahead take half the memory that a command may take, together.
const LONG: i64 = 256 << 10;
/// Columns that are counted, at most: SQLite adds up no more than 1,000.
const COLUMNS: usize = 500;

impl Store {
    /// Decides how far ahead so many rows of a source may be read. What is neither a table nor the list in one may be long.
    pub(super) async fn ahead_in(&self, source: &BoundSource, rows: usize) -> ReadAhead {
        match &source.from {
            BoundFrom::Table(schema, name) | BoundFrom::Each { table: (schema, name), .. } => {
                self.ahead_in_table(schema, name, rows).await
            }
            BoundFrom::Query(_) => ReadAhead::Near,
        }
    }

    /// Decides how far ahead so many rows of a table may be read: a sample tells, once. SQLite looks at the lengths alone.
    pub(super) async fn ahead_in_table(&self, schema: &str, name: &str, rows: usize) -> ReadAhead {
        if self.engine() == Engine::Postgres {
            return ReadAhead::Far;
        }
        if rows <= FEW {
            return ReadAhead::Near;
        }
        let is_it = |t: &&CatalogTable| t.schema.eq_ignore_ascii_case(schema) && t.name.eq_ignore_ascii_case(name);
        let Some(known) = self.catalog.tables.iter().find(is_it) else { return ReadAhead::Near };
        let place = (known.schema.clone(), known.name.clone());
        if let Some(ahead) = self.sessions.ahead_known(&place) {
            return ahead;
        }
        let longest = match self.longest(&spread(known)).await {
            Ok(Some(bytes)) => Ok(Some(bytes)),
            // Without row numbers it is sampled at its beginning.
            Ok(None) | Err(_) => self.longest(&beginning(known)).await,
        };
        let is_short = longest.is_ok_and(|bytes| bytes.unwrap_or(0) < LONG);
        let ahead = if is_short { ReadAhead::Far } else { ReadAhead::Near };
        self.sessions.know_ahead(place, ahead);
        ahead
    }

    async fn longest(&self, sql: &str) -> Result<Option<i64>, StoreError> {
        match self.sessions.fetch(sql, &[]).await?.first().and_then(|row| row.first()) {
            Some(FetchedValue::Integer(bytes)) => Ok(Some(*bytes)),
            _ => Ok(None),
        }
    }
}

/// The bytes of a row, as an expression.
fn bytes(known: &CatalogTable) -> String {
    let of = |name: &str| format!("ifnull(octet_length(t.{}), 0)", quote(name));
    let columns: Vec<String> = known.columns.iter().take(COLUMNS).map(|column| of(&column.name)).collect();
    if columns.is_empty() { "0".to_owned() } else { columns.join(" + ") }
}

fn spread(known: &CatalogTable) -> String {
    let (from, bytes) = (table(&known.schema, &known.name), bytes(known));
    let end = |which: &str| format!("(SELECT {which}(t.rowid) FROM {from} AS t)");
    format!(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {SAMPLED}), \
         ends(low, high) AS MATERIALIZED (SELECT {}, {}) \
         SELECT max((SELECT {bytes} FROM {from} AS t WHERE t.rowid >= CAST(low + (high * 1.0 - low) * i / {SAMPLED} AS INTEGER) \
         ORDER BY t.rowid LIMIT 1)) FROM n, ends",
        end("min"),
        end("max")
    )
}

fn beginning(known: &CatalogTable) -> String {
    let (from, bytes) = (table(&known.schema, &known.name), bytes(known));
    format!("SELECT max(size) FROM (SELECT {bytes} AS size FROM {from} AS t LIMIT {SAMPLED})")
}
