//! Every row of an entity in one read, in no order: for figures over a whole memory, where pages would cost too much.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::codec;
use super::derive;
use super::select::{Projection, Statement, from_clause, narrow};
use super::session::Raw;
use super::{Store, StoreError};
use crate::layout::{BoundFrom, BoundSource, Engine};
use crate::memory::query::{Query, Start};
use crate::memory::{Entity, Row};

/// Rows read at a time where a derivation completes them.
const STRIDE: usize = 500;

/// Rows that one statement reads where writers wait for its end.
const PART: usize = 10_000;

/// How far a source has been read.
struct Parts<'s> {
    source: &'s BoundSource,
    /// Number of the last row that was read.
    after: Option<i64>,
    /// All of it is read by one statement.
    whole: bool,
    /// A statement was given.
    begun: bool,
}

impl Store {
    /// Hands every row of a query's entity, filters and columns to `each`, in no order, until it breaks off. Limit,
    /// order, start and canvas filter of the query do not matter.
    ///
    /// # Errors
    /// An entity that the database does not hold, or the engine's refusal.
    pub async fn each_row(
        &self,
        query: &Query,
        mut each: impl FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let wanted: Option<Vec<&str>> = query.columns.as_ref().map(|columns| {
            let mut wanted = columns.clone();
            wanted.push("id");
            wanted.extend(query.filters.iter().map(|f| f.column));
            wanted
        });
        let sources = self.sources_of(query.entity)?;
        let derived = query.entity == Entity::Episode
            && wanted.as_ref().is_none_or(|w| w.iter().any(|c| derive::COLUMNS.contains(c)));
        if derived && sources.iter().any(|s| s.derive.is_some()) {
            return self.each_paged(query, each).await;
        }
        for source in sources {
            let mut projection = Projection::new(self.engine(), source, wanted.as_deref(), query.preview);
            projection.unparsed = query.unparsed;
            let mut statement = projection.select(source, &[]);
            for filter in &query.filters {
                narrow(self.engine(), source, filter, &mut statement);
            }
            let mut flow = ControlFlow::Continue(());
            let whole = !(self.is_numbered(source) && self.writers_wait().await?);
            let mut parts = Parts { source, after: None, whole, begun: false };
            let (decoded, projection) = (Arc::new(source.clone()), Arc::new(projection));
            while let Some(part) = self.next_part(&mut parts, &statement).await? {
                let (decoded, projection) = (Arc::clone(&decoded), Arc::clone(&projection));
                let read = move |raw| codec::decode(&decoded, &projection, &raw);
                self.scan_ahead(&part, read, |row| {
                    if query.filters.iter().all(|f| f.matches(&row)) {
                        flow = each(row);
                    }
                    flow
                })
                .await?;
                if flow.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Whether nobody can write while a statement reads: so it is in SQLite's rollback journals.
    async fn writers_wait(&self) -> Result<bool, StoreError> {
        if self.engine() == Engine::Postgres {
            return Ok(false);
        }
        let mode = self.fetch_text("PRAGMA journal_mode").await?;
        Ok(!matches!(mode.first().and_then(|row| row.first()), Some(Raw::Text(mode)) if mode == "wal"))
    }

    /// The statement that reads the next part of a source: all of it, or so many rows that a writer hardly waits.
    async fn next_part(&self, parts: &mut Parts<'_>, all: &Statement) -> Result<Option<Statement>, StoreError> {
        let behind = parts.after.map_or(String::new(), |after| format!(" AND t.rowid > {after}"));
        let end = if parts.whole { Ok(None) } else { self.part_end(parts.source, &behind).await };
        let end = match end {
            // Without row numbers, as those without rowid are, it is read at once.
            Err(_) if parts.after.is_none() => None,
            end => end?,
        };
        let begun = std::mem::replace(&mut parts.begun, true);
        let Some(end) = end else {
            parts.whole = true;
            return Ok((!begun).then(|| all.clone()));
        };
        parts.after = Some(end);
        let mut part = all.clone();
        let _ = write!(part.sql, "{behind} AND t.rowid <= {end}");
        Ok(Some(part))
    }

    async fn part_end(&self, source: &BoundSource, behind: &str) -> Result<Option<i64>, StoreError> {
        let sql = format!(
            "SELECT max(n) FROM (SELECT t.rowid AS n FROM {} WHERE 1 = 1{behind} ORDER BY n LIMIT {PART})",
            from_clause(source)
        );
        match self.fetch_text(&sql).await?.first().and_then(|row| row.first()) {
            Some(Raw::Integer(end)) => Ok(Some(*end)),
            _ => Ok(None),
        }
    }

    /// Whether the rows of a source have numbers of SQLite's.
    fn is_numbered(&self, source: &BoundSource) -> bool {
        let BoundFrom::Table(_, name) = &source.from else { return false };
        let table = self.catalog.table(name);
        table.is_some_and(|t| !t.columns.iter().any(|column| column.name.eq_ignore_ascii_case("rowid")))
    }

    async fn each_paged(&self, query: &Query, mut each: impl FnMut(Row) -> ControlFlow<()>) -> Result<(), StoreError> {
        let mut query = Query { limit: STRIDE, start: Start::First, order: None, canvas: None, ..query.clone() };
        loop {
            let page = self.page(&query).await?;
            for row in page.rows {
                if each(row).is_break() {
                    return Ok(());
                }
            }
            match page.next {
                Some(next) => query.start = Start::After(next),
                None => return Ok(()),
            }
        }
    }
}
