//! Reads every row of an entity at once, unordered: for statistics over a whole memory, where paging would cost too
//! much.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::batch::{ReadRow, TakeEach};
use super::dialect::quote;
use super::encode::plain_column;
use super::fetched::{FetchedValue, RawRow, number};
use super::select::{Projection, SelectStatement, from_clause, narrow};
use super::{RowWalks, StoreError, codec, tally};
use crate::layout::{BoundFrom, BoundSource, Engine};
use crate::memory::filter::Filter;
use crate::memory::query::{PageStart, Query};
use crate::memory::{Entity, Row};

/// Rows per statement, if writers wait for its end.
const PART: usize = 1_000;

/// A statement that reads rows of a source, and its conditions. They only save time: the receiver may get more rows
/// than match.
pub(super) struct Scan {
    bare: SelectStatement,
    all: SelectStatement,
    /// The statement with a single condition, for each of them.
    conditions: Vec<SelectStatement>,
}

impl Scan {
    /// A scan without conditions.
    pub(super) fn new(bare: SelectStatement) -> Self {
        Scan { all: bare.clone(), bare, conditions: Vec::new() }
    }

    /// Adds a condition to the statements.
    pub(super) fn narrow(&mut self, add: impl Fn(&mut SelectStatement)) {
        let mut alone = self.bare.clone();
        add(&mut alone);
        add(&mut self.all);
        self.conditions.push(alone);
    }
}

impl RowWalks<'_> {
    /// Passes every row of a query's entity, filters and columns to `each`, unordered, until it breaks. Ignores the
    /// query's limit, order, start and canvas filter.
    ///
    /// # Errors
    /// An entity that the database does not hold, or the engine's refusal.
    pub async fn each_row(
        self,
        query: &Query,
        mut each: impl FnMut(Row) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        self.each_sourced(query, |_, row| each(row)).await
    }

    /// The same, each row with its source; a derived row has its source if there is one.
    ///
    /// # Errors
    /// As [`RowWalks::each_row`].
    pub async fn each_sourced(
        self,
        query: &Query,
        mut each: impl FnMut(Option<&BoundSource>, Row) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        let wanted: Option<Vec<&str>> = query.columns.as_ref().map(|columns| {
            let mut wanted = columns.clone();
            wanted.push("id");
            wanted.extend(query.filters.iter().flat_map(Filter::columns));
            wanted
        });
        let sources = self.store.sources_of(query.entity)?;
        let derived = |source: &&BoundSource| {
            query.entity == Entity::Episode
                && source.derive.is_some()
                && wanted.as_ref().is_none_or(|w| w.iter().any(|c| source.derives(c)))
        };
        if sources.iter().any(derived) {
            let only = if let [source] = &sources[..] { Some(*source) } else { None };
            return self.each_paged(query, &mut |row| each(only, row)).await;
        }
        for source in sources {
            let mut projection = Projection::new(self.store.engine(), source, wanted.as_deref(), query.preview);
            projection.unparsed = query.unparsed;
            let mut scan = Scan::new(projection.select(source, &[]));
            for filter in &query.filters {
                scan.narrow(|statement| narrow(source, filter, statement));
            }
            if let Some((column, _)) = query.absent.and_then(|column| plain_column(source, column)) {
                scan.narrow(|statement| {
                    let _ = write!(statement.sql, " AND t.{} IS NULL", quote(column));
                });
            }
            let read = codec::decoder(source.clone(), projection);
            let fits = |row: &Row| query.filters.iter().all(|f| f.matches(row));
            let mut fitting = |row| if fits(&row) { each(Some(source), row) } else { ControlFlow::Continue(()) };
            if self.scan_parts(source, scan, read, &mut fitting).await?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Converts each row of a scan with `read` and passes it to `each`, until it breaks. If writers wait for the end of
    /// a statement, it runs in parts, or with only one of its conditions: `each` must filter.
    pub(super) async fn scan_parts<R: Send + 'static>(
        self,
        source: &BoundSource,
        scan: Scan,
        read: impl Fn(RawRow) -> R + Send + Sync + 'static,
        each: &mut TakeEach<'_, R>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let mut end = Box::pin(self.first_end(source)).await?;
        let Scan { mut all, conditions, .. } = scan;
        if end.is_some() && Box::pin(self.has_index(&all)).await? {
            // Each part would read everything that the index finds.
            if let Some(alone) = Box::pin(self.short_condition(conditions)).await? {
                (all, end) = (alone, None);
            } else {
                let from = from_clause(source);
                all.sql = all.sql.replacen(&from, &format!("{from} NOT INDEXED"), 1);
            }
        }
        let (read, mut behind): (ReadRow<R>, _) = (Arc::new(read), String::new());
        let mut flow = ControlFlow::Continue(());
        loop {
            let mut part = all.clone();
            if let Some(last) = end {
                let _ = write!(part.sql, "{behind} AND t.rowid <= {last}");
            }
            let mut take = |made| {
                flow = each(made);
                flow
            };
            self.store.scan_ahead(&part, &read, &mut take).await?;
            let Some(last) = end.filter(|_| flow.is_continue()) else { return Ok(flow) };
            behind = format!(" AND t.rowid > {last}");
            end = Box::pin(self.part_end(source, &behind)).await?;
            if end.is_none() {
                return Ok(flow);
            }
        }
    }

    /// Whether SQLite uses an index for a statement.
    async fn has_index(self, statement: &SelectStatement) -> Result<bool, StoreError> {
        Ok(self.store.steps(statement).await?.iter().any(|step| step.starts_with("SEARCH t ")))
    }

    /// The statement, among those with one condition, for which an index finds at most one part of rows. Reads few more
    /// than those.
    async fn short_condition(self, conditions: Vec<SelectStatement>) -> Result<Option<SelectStatement>, StoreError> {
        for alone in conditions {
            if self.has_index(&alone).await? && self.is_short(&alone).await? {
                return Ok(Some(alone));
            }
        }
        Ok(None)
    }

    /// Whether a statement returns at most one part of rows.
    async fn is_short(self, statement: &SelectStatement) -> Result<bool, StoreError> {
        let sql = format!("SELECT count(*) FROM ({} LIMIT {})", statement.sql, PART + 1);
        let count = self.store.fetch(&SelectStatement { sql, ..statement.clone() }).await?;
        Ok(count.first().is_some_and(|row| number(row, 0) <= PART as i64))
    }

    /// The last row number of the first part, if a source is read in parts. Reports the number of rows to be read.
    async fn first_end(self, source: &BoundSource) -> Result<Option<i64>, StoreError> {
        tally::expect(self.about(source).await?);
        let in_parts = self.is_numbered(source) && !self.store.ahead().is_view() && self.writers_wait().await?;
        // A table without row numbers (WITHOUT ROWID) is read at once.
        Ok(if in_parts { self.part_end(source, "").await.unwrap_or(None) } else { None })
    }

    /// Announces, for the progress report, that every row of all entities is about to be read once.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn expect_all(self) -> Result<(), StoreError> {
        let (mut tables, mut rows) = (HashSet::new(), 0);
        for source in &self.store.recognised().sources {
            if tables.insert(&source.table) {
                rows += self.about(source).await?;
            }
        }
        tally::expect_whole(rows);
        Ok(())
    }

    /// Approximate number of rows of a source, without counting; 0 if unknown, or if no progress is reported.
    async fn about(self, source: &BoundSource) -> Result<u64, StoreError> {
        if !tally::is_told() || !matches!(source.from, BoundFrom::Table(..)) {
            return Ok(0);
        }
        if self.store.engine() == Engine::Postgres || !self.is_numbered(source) {
            let table = self.store.catalog().exactly(&source.table.0, &source.table.1);
            return Ok(table.and_then(|table| table.estimate).and_then(|rows| u64::try_from(rows).ok()).unwrap_or(0));
        }
        let numbers = format!("SELECT max(t.rowid) FROM {}", from_clause(source));
        Ok(match self.store.fetch_text(&numbers).await {
            Ok(rows) => rows.first().map_or(0, |row| number(row, 0)).try_into().unwrap_or(0),
            // A table without row numbers (WITHOUT ROWID).
            Err(_) => 0,
        })
    }

    /// Whether nobody can write while a statement reads, as in SQLite's rollback journal modes.
    async fn writers_wait(self) -> Result<bool, StoreError> {
        if self.store.engine() == Engine::Postgres {
            return Ok(false);
        }
        let mode = self.store.fetch_text("PRAGMA journal_mode").await?;
        Ok(!matches!(mode.first().and_then(|row| row.first()), Some(FetchedValue::Text(mode)) if mode == "wal"))
    }

    /// A number that changes when someone else writes; `None` if the engine does not report it.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn version_of_data(self) -> Result<Option<i64>, StoreError> {
        if self.store.engine() == Engine::Postgres {
            return Ok(None);
        }
        let version = self.store.fetch_text("PRAGMA data_version").await?;
        Ok(version.first().and_then(|row| row.first()).and_then(|raw| match raw {
            FetchedValue::Integer(version) => Some(*version),
            _ => None,
        }))
    }

    async fn part_end(self, source: &BoundSource, behind: &str) -> Result<Option<i64>, StoreError> {
        let sql = format!(
            "SELECT max(n) FROM (SELECT t.rowid AS n FROM {} WHERE 1 = 1{behind} ORDER BY n LIMIT {PART})",
            from_clause(source)
        );
        match self.store.fetch_text(&sql).await?.first().and_then(|row| row.first()) {
            Some(FetchedValue::Integer(end)) => Ok(Some(*end)),
            _ => Ok(None),
        }
    }

    /// Whether the rows of a source have SQLite row numbers.
    fn is_numbered(self, source: &BoundSource) -> bool {
        let BoundFrom::Table(_, name) = &source.from else { return false };
        let table = self.store.catalog.table(name);
        table.is_some_and(|t| !t.columns.iter().any(|column| column.name.eq_ignore_ascii_case("rowid")))
    }

    async fn each_paged(self, query: &Query, each: &mut TakeEach<'_, Row>) -> Result<(), StoreError> {
        let mut query = Query { start: PageStart::First, order: None, canvas: None, ..query.clone() }.in_parts();
        loop {
            let page = self.store.page(&query).await?;
            for row in page.rows {
                if each(row).is_break() {
                    return Ok(());
                }
            }
            match page.next {
                Some(next) => query.start = PageStart::After(next),
                None => return Ok(()),
            }
        }
    }
}
