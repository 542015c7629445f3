//! Row counts without waiting: exact if counting is fast, otherwise from the engine's statistics, otherwise none, with
//! the reason.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Store;
use super::dialect::quote;
use super::fetched::FetchedValue;
use super::select::from_clause;
use crate::layout::recognise::BoundFrom;
use crate::layout::{BoundSource, CatalogTable, Engine};
use crate::memory::Entity;
use crate::memory::query::CountKind;

/// Rows up to which a PostgreSQL table is counted; beyond that its statistics are used. SQLite statistics below this
/// are ignored as outdated if counting the table takes long.
const COUNTED: i64 = 100_000;

/// Reason for an unknown number if only some rows of a large table count.
const ELSE: &str = "the table is large, and an estimate of it says nothing about the rows that match";

/// Time limits of one count, and of all counts together.
const EACH: Duration = Duration::from_millis(500);
const TOGETHER: Duration = Duration::from_secs(3);

/// A number of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The number; `None` if unknown.
    pub rows: Option<i64>,
    /// Source of the number: counted or estimated.
    pub kind: CountKind,
    /// Reason why the number is unknown.
    pub reason: Option<String>,
}

impl Counted {
    fn unknown(reason: impl Into<String>) -> Self {
        Counted { rows: None, kind: CountKind::About, reason: Some(reason.into()) }
    }
}

/// The counts of one answer, with a common time limit.
pub(super) struct Counting<'s> {
    store: &'s Store,
    ends: Instant,
    /// Tables counted already.
    tables: HashMap<(String, String), Counted>,
}

impl<'s> Counting<'s> {
    pub(super) fn new(store: &'s Store) -> Self {
        Counting { store, ends: Instant::now() + TOGETHER, tables: HashMap::new() }
    }

    /// Counts the rows of a source, without bookkeeping rows.
    pub(super) async fn source(&mut self, source: &BoundSource) -> Counted {
        let (schema, name) = &source.table;
        let table = self.store.catalog().exactly(schema, name);
        if let (Some(table), BoundFrom::Table(..), None) = (table, &source.from, &source.keep) {
            return self.table(table).await;
        }
        // An estimate for the base table says nothing about a query on it, about some of its rows, or about elements
        // within them.
        let all = matches!(&source.from, BoundFrom::Table(..)) && source.keep.is_none();
        let grouped = matches!(&source.from, BoundFrom::Query(_));
        let alike = all || grouped && matches!(source.entity, Entity::Memory | Entity::Case);
        let keep = source.keep.as_deref().unwrap_or("1 = 1");
        let sql = format!("SELECT count(*) FROM {} WHERE {keep}", from_clause(source));
        let large = table.and_then(|table| table.estimate).is_some_and(|rows| rows > COUNTED);
        if large && grouped && !alike {
            return Counted::unknown(ELSE);
        }
        self.count(&sql, table, alike).await
    }

    /// Rows of a table.
    pub(super) async fn table(&mut self, table: &CatalogTable) -> Counted {
        let key = (table.schema.clone(), table.name.clone());
        if let Some(counted) = self.tables.get(&key) {
            return counted.clone();
        }
        let sql = format!("SELECT count(*) FROM {}.{}", quote(&table.schema), quote(&table.name));
        let counted = self.count(&sql, Some(table), true).await;
        self.tables.insert(key, counted.clone());
        counted
    }

    /// Counts the rows of a statement; `alike` says whether the table's own number may be used.
    async fn count(&self, sql: &str, table: Option<&CatalogTable>, alike: bool) -> Counted {
        let large = table.filter(|_| alike).and_then(|table| table.estimate).filter(|rows| *rows > COUNTED);
        if large.is_some() {
            return Counted { rows: large, kind: CountKind::About, reason: None };
        }
        let left = EACH.min(self.ends.saturating_duration_since(Instant::now()));
        // Dropping the future also cancels the statement on the server.
        match tokio::time::timeout(left, self.store.fetch_text(sql)).await {
            Ok(Ok(rows)) => Counted { rows: integer(&rows), kind: CountKind::Exact, reason: None },
            Ok(Err(error)) => Counted::unknown(format!("counting failed: {error}")),
            Err(_) if !alike => Counted::unknown(ELSE),
            Err(_) => match self.statistics(table).await {
                Some(rows) => Counted { rows: Some(rows), kind: CountKind::About, reason: None },
                None => Counted::unknown(
                    "counting takes too long, and the database has no statistics for the table: run `ANALYZE`",
                ),
            },
        }
    }

    /// Reads the row count that `ANALYZE` recorded for a large SQLite table; PostgreSQL's statistics come with the
    /// catalog.
    async fn statistics(&self, table: Option<&CatalogTable>) -> Option<i64> {
        let table = table.filter(|_| self.store.engine() == Engine::Sqlite)?;
        let sql = format!(
            "SELECT max(CAST(stat AS INTEGER)) FROM {}.sqlite_stat1 WHERE tbl = '{}' COLLATE NOCASE",
            quote(&table.schema),
            table.name.replace('\'', "''")
        );
        integer(&self.store.fetch_text(&sql).await.ok()?).filter(|rows| *rows > COUNTED)
    }
}

fn integer(rows: &[Vec<FetchedValue>]) -> Option<i64> {
    match rows.first().and_then(|row| row.first()) {
        Some(FetchedValue::Integer(i)) => Some(*i),
        _ => None,
    }
}
