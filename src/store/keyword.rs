//! All rows that a recall may choose from: rows that pass the filters and, for a query by words on a layout with a
//! full-text index, contain one of the words.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use super::codec;
use super::fetched::FetchedValue;
use super::scan::Scan;
use super::select::{Projection, SelectStatement, narrow};
use super::{Store, StoreError};
use crate::layout::{BoundSource, Engine};
use crate::memory::filter::Filter;
use crate::memory::query::Query;
use crate::memory::search::Search;
use crate::memory::{Entity, Row};

/// Most rows that a preview caches per question.
const KEPT_AHEAD: usize = 10_000;

impl Store {
    /// Whether this database has a full-text index for the entity.
    pub fn has_word_index(&self, entity: Entity) -> bool {
        self.recognised().sources.iter().any(|s| s.entity == entity && s.search.is_some())
    }

    /// All rows of an entity that pass the filters, unordered. [`Store::each_candidate`] does the same without holding
    /// them.
    ///
    /// # Errors
    /// As [`Store::each_candidate`].
    pub async fn candidates(
        &self,
        entity: Entity,
        filters: &[Filter],
        columns: &[&'static str],
        words: &[String],
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        self.each_candidate(entity, filters, columns, words, |row| rows.push(row)).await?;
        Ok(rows)
    }

    /// Passes each row of an entity that passes the filters to `each`, unordered. Only `columns` are read, with the id
    /// and the columns that the filters need. If `words` are given and the layout has a full-text index, rows without
    /// any of them are left out; without such an index no row is left out for its words.
    ///
    /// # Errors
    /// [`StoreError::Missing`] for an entity that the database does not hold, or the engine's refusal.
    pub async fn each_candidate(
        &self,
        entity: Entity,
        filters: &[Filter],
        columns: &[&'static str],
        words: &[String],
        mut each: impl FnMut(Row) + Send,
    ) -> Result<(), StoreError> {
        let key = format!("{entity} {filters:?} {columns:?} {words:?}");
        if let Some(known) = self.ahead().known_candidates(&key) {
            known.iter().cloned().for_each(each);
            return Ok(());
        }
        let mut kept = self.ahead().is_view().then(Vec::new);
        let mut give = |row: Row| {
            if let Some(rows) = kept.as_mut().filter(|rows| rows.len() < KEPT_AHEAD) {
                rows.push(row.clone());
            }
            each(row);
        };
        let mut wanted: Vec<&str> = columns.to_vec();
        wanted.push("id");
        wanted.extend(filters.iter().flat_map(Filter::columns));
        let derived = |source: &&BoundSource| source.derive.is_some() && wanted.iter().any(|c| source.derives(c));
        let sources = self.sources_of(entity)?;
        if sources.iter().any(derived) {
            // Rows that are completed from events come in pages.
            let columns = Some(columns.to_vec());
            let query = Query { filters: filters.to_vec(), columns, ..Query::new(entity) };
            let give = |row| {
                give(row);
                ControlFlow::Continue(())
            };
            self.walks().each_row(&query, give).await?;
        } else {
            for source in sources {
                let projection = Projection::new(self.engine(), source, Some(&wanted), None);
                let mut scan = Scan::new(projection.select(source, &[]));
                for filter in filters {
                    scan.narrow(|statement| narrow(source, filter, statement));
                }
                scan.narrow(|statement| ask_for(source, words, statement));
                let read = codec::decoder(source.clone(), projection);
                let mut take = |row: Row| {
                    if filters.iter().all(|f| f.matches(&row)) {
                        give(row);
                    }
                    ControlFlow::Continue(())
                };
                let _ = self.walks().scan_parts(source, scan, read, &mut take).await?;
            }
        }
        if let Some(rows) = kept.filter(|rows| rows.len() < KEPT_AHEAD) {
            self.ahead().keep_candidates(key, rows);
        }
        Ok(())
    }
}

/// Adds the layout's own condition for any of the words.
fn ask_for(source: &BoundSource, words: &[String], statement: &mut SelectStatement) {
    if let Some(condition) = by_index(source, words, [" | ", " OR "], statement) {
        let _ = write!(statement.sql, " AND {condition}");
    }
}

/// The layout's condition for all words of a search; `None` if it has no full-text index, or the search has no words
/// for one.
pub(super) fn index_condition(
    source: &BoundSource,
    search: &Search,
    statement: &mut SelectStatement,
) -> Option<String> {
    by_index(source, &search.words(), [" & ", " AND "], statement)
}

/// The layout's condition for words, combined in the syntax of the engine.
fn by_index(
    source: &BoundSource,
    words: &[String],
    [postgres, sqlite]: [&str; 2],
    statement: &mut SelectStatement,
) -> Option<String> {
    let engine = statement.engine;
    let search = source.search.as_ref().filter(|_| !words.is_empty())?;
    let asked: Vec<String> = match engine {
        Engine::Postgres => words.iter().map(|w| format!("'{}'", w.replace('\'', "''").replace('\\', ""))).collect(),
        Engine::Sqlite => words.iter().map(|w| format!("\"{}\"", w.replace('"', ""))).collect(),
    };
    let joined = asked.join(if engine == Engine::Postgres { postgres } else { sqlite });
    let mark = statement.bind(FetchedValue::Text(joined), "text");
    Some(format!("({})", search.replace("$words", &mark)))
}
