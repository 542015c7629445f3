//! Every row of an entity in one read, in no order: for figures over a whole memory, where pages would cost too much.

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

/// Takes each row with its source, until it breaks off.
type TakeSourced<'t> = dyn FnMut(Option<&BoundSource>, Row) -> ControlFlow<()> + Send + 't;

/// Rows that one statement reads where writers wait for its end.
const PART: usize = 1_000;

/// A statement that reads rows of a source, and its conditions: who reads more rows than fit them loses only time.
pub(super) struct Scan {
    bare: SelectStatement,
    all: SelectStatement,
    /// The statement with one of the conditions only, for each of them.
    conditions: Vec<SelectStatement>,
}

impl Scan {
    /// A scan without conditions.
    pub(super) fn new(bare: SelectStatement) -> Self {
        Scan { all: bare.clone(), bare, conditions: Vec::new() }
    }

    /// Adds what a condition adds to a statement.
    pub(super) fn narrow(&mut self, add: impl Fn(&mut SelectStatement)) {
        let mut alone = self.bare.clone();
        add(&mut alone);
        add(&mut self.all);
        self.conditions.push(alone);
    }
}

impl RowWalks<'_> {
    /// Hands every row of a query's entity, filters and columns to `each`, in no order, until it breaks off. Limit,
    /// order, start and canvas filter of the query do not matter.
    ///
    /// # Errors
    /// An entity that the database does not hold, or the engine's refusal.
    pub async fn each_row(
        self,
        query: &Query,
        mut each: impl FnMut(Row) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        self.each_of_sources(query, &mut |_, row| each(row)).await
    }

    /// The same, each row with its source; of rows that a derivation completes the source is told where there is one.
    ///
    /// # Errors
    /// As [`RowWalks::each_row`].
    pub async fn each_sourced(
        self,
        query: &Query,
        mut each: impl FnMut(Option<&BoundSource>, Row) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        self.each_of_sources(query, &mut each).await
    }

    async fn each_of_sources(self, query: &Query, each: &mut TakeSourced<'_>) -> Result<(), StoreError> {
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

    /// Hands what `read` makes of each row that a scan of a source gives to `each`, until it breaks off. Where writers
    /// wait for the end of a statement, it is run in parts, or with one of its conditions only: `each` decides what fits.
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
            // Each part would go through all of what the index leads to.
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

    /// Whether SQLite takes an index for a statement.
    async fn has_index(self, statement: &SelectStatement) -> Result<bool, StoreError> {
        Ok(self.store.steps(statement).await?.iter().any(|step| step.starts_with("SEARCH t ")))
    }

    /// The one among statements of one condition for which an index leads to no more rows than one part has. Looks at few
    /// more than those.
    async fn short_condition(self, conditions: Vec<SelectStatement>) -> Result<Option<SelectStatement>, StoreError> {
        for alone in conditions {
            if self.has_index(&alone).await? && self.is_short(&alone).await? {
                return Ok(Some(alone));
            }
        }
        Ok(None)
    }

    /// Whether a statement gives no more rows than one part has.
    async fn is_short(self, statement: &SelectStatement) -> Result<bool, StoreError> {
        let sql = format!("SELECT count(*) FROM ({} LIMIT {})", statement.sql, PART + 1);
        let count = self.store.fetch(&SelectStatement { sql, ..statement.clone() }).await?;
        Ok(count.first().is_some_and(|row| number(row, 0) <= PART as i64))
    }

    /// The last row number of the first part of a source that is read in parts. Tells how many rows are to be read.
    async fn first_end(self, source: &BoundSource) -> Result<Option<i64>, StoreError> {
        tally::expect(self.about(source).await?);
        let in_parts = self.is_numbered(source) && !self.store.ahead().is_view() && self.writers_wait().await?;
        // Without row numbers, as tables without rowid are, it is read at once.
        Ok(if in_parts { self.part_end(source, "").await.unwrap_or(None) } else { None })
    }

    /// Tells that every row of the database is about to be read once, as far as entities hold them.
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

    /// About how many rows a source has, without counting them; 0 where that is not known, or nobody would be told.
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
            // Without row numbers, as tables without rowid are.
            Err(_) => 0,
        })
    }

    /// Whether nobody can write while a statement reads: so it is in SQLite's rollback journals.
    async fn writers_wait(self) -> Result<bool, StoreError> {
        if self.store.engine() == Engine::Postgres {
            return Ok(false);
        }
        let mode = self.store.fetch_text("PRAGMA journal_mode").await?;
        Ok(!matches!(mode.first().and_then(|row| row.first()), Some(FetchedValue::Text(mode)) if mode == "wal"))
    }

    /// A number that is another one when someone else has written; none when the engine does not say.
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

    /// Whether the rows of a source have numbers of SQLite's.
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
