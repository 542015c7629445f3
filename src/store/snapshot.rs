//! One read-only transaction over several reads: all of them see the database at the same moment.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use chrono::{NaiveDate, NaiveTime};
use serde::de::IgnoredAny;

use super::batch::{BatchTaker, TakeEach};
use super::dialect::{PgType, quote};
use super::fetched::{FetchedValue, Param, RawRow, alike, integer, text};
use super::row_number::{free_name_sql, is_numbered};
use super::server::{Isolation, ServerLink};
use super::session::Opener;
use super::shape::{self, Comparison, TableShape, VALUES};
use super::side_by_side::RowBatch;
use super::sql_names::{self, ReadTable, SqlName};
use super::sqlite_reader::SqliteReader;
use super::stored::{Image, RowWatch, StoredRows, TableName};
use super::stripes::{self, StripedStatement};
use super::{Store, StoreError};
use crate::layout::erase::BoundValue;
use crate::layout::{CatalogTable, Engine};
use crate::memory::json;

/// Composite keys per condition: SQLite limits expression depth to 1,000.
const KEYS: usize = 200;

/// Tables that we may not read: querying them would end the transaction.
const DENIED: &str = "SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'm', 'f', 'v') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
     AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))";

enum SnapshotLink {
    /// Several connections with the same snapshot.
    Sqlite(Vec<SqliteReader>),
    Postgres(ServerLink),
}

/// An open read-only transaction. It ends when dropped.
pub struct Snapshot<'s> {
    /// The database.
    pub store: &'s Store,
    link: SnapshotLink,
    /// Tables that cannot be read; reads of them find nothing.
    denied: HashSet<TableName>,
    /// Rows that conditions do not see.
    left_out: Vec<(StoredRows, Arc<TableShape>)>,
}

impl std::fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

/// Selection of rows of a table.
#[derive(Debug, Clone, Copy)]
pub struct WantedRows<'a> {
    /// Table.
    pub table: &'a TableName,
    /// Columns to read, in order.
    pub columns: &'a [String],
    /// Further condition over the alias `t`; `$subject` stands for `subject`. It does not see rows of
    /// [`Snapshot::leave_out`].
    pub when: Option<&'a str>,
    /// The person's ids.
    pub subject: &'a [String],
}

impl Store {
    /// Begins a read-only transaction on a separate connection.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn snapshot(&self) -> Result<Snapshot<'_>, StoreError> {
        self.sessions.check_place()?;
        let link = match self.sessions.opener() {
            Opener::Sqlite(file) => SnapshotLink::Sqlite(stripes::readers(file).await?),
            Opener::Postgres(server) => {
                // A role may have two connections, and reads use the other one.
                self.end_writer();
                let mut link = self.link(server).await?;
                link.begin_reading(Isolation::Snapshot).await?;
                SnapshotLink::Postgres(link)
            }
        };
        let mut snapshot = Snapshot { store: self, link, denied: HashSet::new(), left_out: Vec::new() };
        if self.engine() == Engine::Postgres {
            let rows = snapshot.fetch(DENIED, &[]).await?;
            let unlogged = self.catalog.tables.iter().filter(|table| table.unlogged);
            let unlogged = unlogged.map(|table| TableName::new(&table.schema, &table.name));
            let denied = rows.iter().map(|row| TableName::new(text(row, 0), text(row, 1)));
            snapshot.denied = denied.chain(unlogged).collect();
        }
        Ok(snapshot)
    }
}

impl Snapshot<'_> {
    fn engine(&self) -> Engine {
        self.store.engine()
    }

    pub(super) async fn fetch(&mut self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, StoreError> {
        let mut rows = Vec::new();
        self.each(sql, params, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })
        .await?;
        Ok(rows)
    }

    async fn each(&mut self, sql: &str, params: &[Param], each: &mut TakeEach<'_, RawRow>) -> Result<(), StoreError> {
        tracing::debug!(%sql, "snapshot");
        let mut taker = BatchTaker::rows(each).tallied();
        let _ = match &mut self.link {
            SnapshotLink::Sqlite(readers) => {
                let reader = readers.first_mut().ok_or(sqlx::Error::WorkerCrashed)?;
                reader.batches(sql, params, &mut taker).await?
            }
            SnapshotLink::Postgres(link) => link.batches(sql, params, &mut taker).await?,
        };
        Ok(())
    }

    /// The tables that conditions read.
    pub fn tables_read<'w>(&self, conditions: impl Iterator<Item = &'w str>) -> BTreeSet<TableName> {
        conditions.flat_map(|when| self.reads(when)).map(|(_, table)| name_of(table)).collect()
    }

    /// The places where a condition reads a table, with the table.
    fn reads(&self, when: &str) -> Vec<(ReadTable, &CatalogTable)> {
        let table = |read: ReadTable| self.store.catalog().table(&read.table).map(|table| (read, table));
        sql_names::reads(when, false).into_iter().filter_map(table).collect()
    }

    /// Makes later conditions ignore these rows, and only these. Returns whether there are more than before.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn leave_out(&mut self, rows: Vec<StoredRows>) -> Result<bool, StoreError> {
        let before: usize = self.left_out.iter().map(|(rows, _)| rows.keys.len()).sum();
        let now: usize = rows.iter().map(|rows| rows.keys.len()).sum();
        self.left_out.clear();
        for rows in rows {
            let shape = self.store.shapes().shape(&rows.table).await?;
            self.left_out.push((rows, shape));
        }
        Ok(now > before)
    }

    /// A condition in which each table with ignored rows is replaced by a query of the others.
    fn seeing(&self, when: &str, params: &mut Vec<Param>) -> String {
        let (mut seeing, names) = (when.to_owned(), sql_names::names(when));
        let reads = if self.left_out.is_empty() { Vec::new() } else { self.reads(when) };
        for (read, table) in reads.into_iter().rev() {
            let name = name_of(table);
            let Some((rows, shape)) = self.left_out.iter().find(|(rows, _)| rows.table == name) else { continue };
            // A subquery has no row numbers and no schema.
            let is_shown = |name: &SqlName| match &name.parts[..] {
                [alias, column] => *alias != read.alias || table.readable(column).is_some(),
                parts => parts.len() < 3,
            };
            if !names.iter().all(is_shown) {
                continue;
            }
            let columns: Vec<String> = table.columns.iter().filter(|c| !c.denied).map(|c| quote(&c.name)).collect();
            let found = shape::listed_condition(shape, rows, params);
            let alias = if read.renamed { String::new() } else { format!(" AS {}", quote(&read.alias)) };
            let others = format!(
                "(SELECT {} FROM {} WHERE ({found}) IS NOT TRUE){alias}",
                columns.join(", "),
                shape::qualified(&name)
            );
            seeing.replace_range(read.place.0..read.place.1, &others);
        }
        seeing
    }

    /// A condition with its subject inserted.
    fn condition(&self, wanted: &WantedRows<'_>, params: &mut Vec<Param>) -> String {
        let Some(when) = wanted.when else { return String::new() };
        let when = self.seeing(when, params);
        if !when.contains("$subject") {
            return format!(" AND ({when})");
        }
        let marks: Vec<String> = wanted
            .subject
            .iter()
            .map(|id| {
                params.push(FetchedValue::Text(id.clone()));
                format!("${}", params.len())
            })
            .collect();
        // PostgreSQL does not allow an empty list.
        let marks = if marks.is_empty() { "SELECT NULL WHERE 1 = 0".to_owned() } else { marks.join(", ") };
        format!(" AND ({})", when.replace("$subject", &marks))
    }

    /// The stored columns of a table in this snapshot.
    ///
    /// # Errors
    /// [`StoreError::NoTable`] if it does not exist, or the engine's refusal.
    pub async fn shape(&mut self, table: &TableName) -> Result<Arc<TableShape>, StoreError> {
        let (sql, params) = shape::question(self.engine(), table);
        let rows = self.fetch(&sql, &params).await?;
        self.store.shapes.keep(self.engine(), table, &rows).ok_or_else(|| StoreError::NoTable(table.title()))
    }

    /// Complete stored rows of a table.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn images(&mut self, shape: &TableShape, rows: &StoredRows) -> Result<Vec<Image>, StoreError> {
        let mut answers = Vec::new();
        for (sql, params) in shape::image_statements(shape, rows, false) {
            answers.extend(self.fetch(&sql, &params).await?);
        }
        Ok(shape::images(shape, answers))
    }

    /// The rows whose column is one of some values.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn select(
        &mut self,
        wanted: WantedRows<'_>,
        by: &str,
        values: &[FetchedValue],
    ) -> Result<Vec<RawRow>, StoreError> {
        let keys: Vec<Vec<FetchedValue>> = values.iter().map(|value| vec![value.clone()]).collect();
        self.select_keys(wanted, &[by.to_owned()], &keys).await
    }

    /// The rows whose columns equal one of some keys; NULL equals nothing.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn select_keys(
        &mut self,
        wanted: WantedRows<'_>,
        by: &[String],
        keys: &[Vec<FetchedValue>],
    ) -> Result<Vec<RawRow>, StoreError> {
        let mut rows = Vec::new();
        self.each_of_keys(wanted, by, keys, |row| rows.push(row)).await?;
        Ok(rows)
    }

    /// Passes on the rows whose columns equal one of some keys; NULL equals nothing.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn each_of_keys(
        &mut self,
        wanted: WantedRows<'_>,
        by: &[String],
        keys: &[Vec<FetchedValue>],
        take: impl FnMut(RawRow) + Send,
    ) -> Result<(), StoreError> {
        self.each_first(wanted, (by, &[]), keys, None, take).await
    }

    /// As [`Snapshot::each_of_keys`], each column compared by `compared` if set.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn each_compared(
        &mut self,
        wanted: WantedRows<'_>,
        (by, compared): (&[String], &[Option<Comparison>]),
        keys: &[Vec<FetchedValue>],
        take: impl FnMut(RawRow) + Send,
    ) -> Result<(), StoreError> {
        self.each_first(wanted, (by, compared), keys, None, take).await
    }

    /// Whether a row has NULL in one of some columns.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) async fn holds_null(&mut self, table: &TableName, columns: &[String]) -> Result<bool, StoreError> {
        let empty: Vec<String> = columns.iter().map(|column| format!("{} IS NULL", quote(column))).collect();
        let sql = format!("SELECT 1 FROM {} WHERE {} LIMIT 1", shape::qualified(table), empty.join(" OR "));
        Ok(!self.fetch(&sql, &[]).await?.is_empty())
    }

    /// Whether a row that meets the condition has a value in the only wanted column.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn holds(&mut self, wanted: WantedRows<'_>, value: FetchedValue) -> Result<bool, StoreError> {
        let mut is_there = false;
        self.each_first(wanted, (wanted.columns, &[]), &[vec![value]], Some(1), |_| is_there = true).await?;
        Ok(is_there)
    }

    /// Whether a row that meets the condition has a key in some columns. A table that may not be read is an error.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn holds_key(
        &mut self,
        wanted: WantedRows<'_>,
        by: &[String],
        key: Vec<FetchedValue>,
    ) -> Result<bool, StoreError> {
        let shape = self.store.shapes().shape(wanted.table).await?;
        let declared = |name: &String| shape.shown(name).map_or("", |column| column.compared.as_str());
        let (keys, compared) = match self.engine() {
            Engine::Sqlite => (fitting(&shape, by, &[key]), Vec::new()),
            // A value that the column's type cannot represent is compared as text.
            Engine::Postgres => {
                let way = |(name, value)| (!fits(declared(name), value)).then(Comparison::of_texts);
                let compared = by.iter().zip(&key).map(way).collect();
                (vec![key], compared)
            }
        };
        let mut is_there = false;
        self.each_found(wanted, (by, &compared), &keys, Some(1), |_| is_there = true).await?;
        Ok(is_there)
    }

    /// As [`Snapshot::each_of_keys`], with a limit of rows per statement.
    async fn each_first(
        &mut self,
        wanted: WantedRows<'_>,
        (by, compared): (&[String], &[Option<Comparison>]),
        keys: &[Vec<FetchedValue>],
        most: Option<usize>,
        take: impl FnMut(RawRow) + Send,
    ) -> Result<(), StoreError> {
        if self.denied.contains(wanted.table) {
            return Ok(());
        }
        let shape = self.store.shapes().shape(wanted.table).await?;
        let fitting = fitting(&shape, by, keys);
        self.each_found(wanted, (by, compared), &fitting, most, take).await
    }

    /// The same for keys that the columns can contain, also for a table that may not be read.
    async fn each_found(
        &mut self,
        wanted: WantedRows<'_>,
        (by, compared): (&[String], &[Option<Comparison>]),
        keys: &[Vec<FetchedValue>],
        most: Option<usize>,
        mut take: impl FnMut(RawRow) + Send,
    ) -> Result<(), StoreError> {
        let shape = self.store.shapes().shape(wanted.table).await?;
        let limit = most.map_or_else(String::new, |most| format!(" LIMIT {most}"));
        for chunk in keys.chunks(if by.len() == 1 { VALUES } else { KEYS }) {
            let mut params = Vec::new();
            let found = shape::compared_condition(&shape, by, compared, chunk, &mut params);
            let condition = self.condition(&wanted, &mut params);
            let sql = format!(
                "SELECT {} FROM {} t WHERE {found}{condition}{limit}",
                shape::projection(&shape, wanted.columns),
                shape::qualified(wanted.table)
            );
            self.each(&sql, &params, &mut |row| {
                take(row);
                ControlFlow::Continue(())
            })
            .await?;
        }
        Ok(())
    }

    /// Counts rows, to detect later additions; `None` if there can be none, or their table may not be read.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn number(&mut self, mut rows: StoredRows) -> Result<Option<RowWatch>, StoreError> {
        if self.denied.contains(&rows.table) {
            return Ok(None);
        }
        let shape = self.store.shapes().shape(&rows.table).await?;
        rows.keys = fitting(&shape, &rows.by, &rows.keys);
        if rows.keys.is_empty() {
            return Ok(None);
        }
        let mut count = 0;
        for (sql, params) in shape::count_statements(&shape, &rows) {
            count += self.fetch(&sql, &params).await?.first().and_then(|row| integer(row, 0)).unwrap_or_default();
        }
        Ok(Some(RowWatch::of_number(rows, count as usize)))
    }

    /// Passes each row of a table to `each`.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn stream(
        &mut self,
        wanted: WantedRows<'_>,
        mut each: impl FnMut(RawRow) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        self.selected("SELECT", wanted, &mut each).await
    }

    /// Passes each row of a table to `each`, once per distinct combination of the wanted columns.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn distinct(
        &mut self,
        wanted: WantedRows<'_>,
        mut each: impl FnMut(RawRow) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        self.selected("SELECT DISTINCT", wanted, &mut each).await
    }

    async fn selected(
        &mut self,
        select: &str,
        wanted: WantedRows<'_>,
        each: &mut TakeEach<'_, RawRow>,
    ) -> Result<(), StoreError> {
        if self.denied.contains(wanted.table) {
            return Ok(());
        }
        let shape = self.store.shapes().shape(wanted.table).await?;
        let mut params = Vec::new();
        let condition = self.condition(&wanted, &mut params);
        let sql = format!(
            "{select} {} FROM {} t WHERE true{condition}",
            shape::projection(&shape, wanted.columns),
            shape::qualified(wanted.table)
        );
        self.each(&sql, &params, each).await
    }

    /// Applies `look` to each row of a table, to several in parallel, and passes those with a result to `take` in
    /// order.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn stream_looked<T: Send>(
        &mut self,
        wanted: WantedRows<'_>,
        look: impl Fn(&RawRow) -> Option<T> + Send + Sync,
        mut take: impl FnMut(RawRow, T) + Send,
    ) -> Result<(), StoreError> {
        if let Some(number) = self.row_number(&wanted).await? {
            return self.stripes(&wanted, &number, look, take).await;
        }
        let mut batch = RowBatch::new(look);
        let mut held = |row: RawRow, found: Option<T>| {
            if let Some(found) = found {
                take(row, found);
            }
            ControlFlow::Continue(())
        };
        self.stream(wanted, |row| batch.add(row, &mut held)).await?;
        let _ = batch.hand_on(held);
        Ok(())
    }

    /// A free name of the row numbers of an SQLite table; `None` if there are no numbers, or if only some rows are
    /// wanted.
    async fn row_number(&mut self, wanted: &WantedRows<'_>) -> Result<Option<String>, StoreError> {
        if self.engine() == Engine::Postgres || wanted.when.is_some() {
            return Ok(None);
        }
        let sql = format!(
            "SELECT {} FROM pragma_table_list WHERE schema = $1 AND name = $2 AND type IN ('table', 'shadow') AND NOT wr",
            free_name_sql("$2", "$1")
        );
        let named = [&wanted.table.schema, &wanted.table.name].map(|name| FetchedValue::Text(name.clone()));
        Ok(self.fetch(&sql, &named).await?.first().map(|row| text(row, 0)).filter(|name| !name.is_empty()))
    }

    async fn stripes<T: Send>(
        &mut self,
        wanted: &WantedRows<'_>,
        number: &str,
        look: impl Fn(&RawRow) -> Option<T> + Send + Sync,
        take: impl FnMut(RawRow, T) + Send,
    ) -> Result<(), StoreError> {
        let from = shape::qualified(wanted.table);
        let ends = format!("SELECT (SELECT min({number}) FROM {from}), (SELECT max({number}) FROM {from})");
        let ends = self.fetch(&ends, &[]).await?;
        let Some(numbers) = ends.first().and_then(|row| Some((integer(row, 0)?, integer(row, 1)?))) else {
            return Ok(());
        };
        let shape = self.store.shapes().shape(wanted.table).await?;
        let columns = shape::projection(&shape, wanted.columns);
        let sql = format!(
            "SELECT t.{number}, {columns} FROM {from} t WHERE t.{number} BETWEEN $1 AND $2 ORDER BY t.{number}"
        );
        tracing::debug!(%sql, "snapshot");
        let SnapshotLink::Sqlite(readers) = &mut self.link else { return Err(sqlx::Error::WorkerCrashed.into()) };
        StripedStatement { sql: &sql, numbers }.read(readers, look, take).await?;
        Ok(())
    }

    /// Distinct pairs of an id and a handle in a table: those equal to a text in any case, those of some ids, or all up
    /// to a limit.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn handles(
        &mut self,
        table: &TableName,
        id: &str,
        value: &BoundValue,
        wanted: &HandlesWanted<'_>,
    ) -> Result<Vec<(String, String)>, StoreError> {
        if self.denied.contains(table) {
            return Ok(Vec::new());
        }
        let mut params = Vec::new();
        let text = |sql: &str| match self.engine() {
            Engine::Sqlite => format!("CAST({sql} AS TEXT)"),
            Engine::Postgres => format!("({sql})::text"),
        };
        let expression = match value {
            BoundValue::Column(column) => text(&format!("t.{}", quote(column))),
            BoundValue::Sql(sql) => text(sql),
        };
        let id = text(&format!("t.{}", quote(id)));
        let condition = match wanted {
            HandlesWanted::Like(value) => {
                params.push(FetchedValue::Text((*value).to_owned()));
                // In a list of handles, it is one of the elements.
                params.push(FetchedValue::Text(format!("%\"{}\"%", value.replace(['%', '_'], "_"))));
                // PostgreSQL supports this comparison only for some collations.
                let bytes = if self.engine() == Engine::Postgres { " COLLATE \"C\"" } else { "" };
                format!("lower({expression}) = lower($1) OR {expression}{bytes} LIKE $2")
            }
            HandlesWanted::Of(ids) => format!("{id} IN ({})", marks(ids, &mut params)),
            HandlesWanted::Shared { values: [], .. } => return Ok(Vec::new()),
            HandlesWanted::Holding { words: [], whole, .. } if whole.is_empty() => return Ok(Vec::new()),
            HandlesWanted::Shared { values, ids } => {
                let values = &values[..values.len().min(VALUES)];
                let values = marks(values, &mut params);
                format!("{expression} IN ({values}) AND {id} NOT IN ({})", marks(ids, &mut params))
            }
            HandlesWanted::Holding { .. } | HandlesWanted::Some(_) => "true".to_owned(),
        };
        let (limit, filter) = match wanted {
            HandlesWanted::Some(most) => (*most, None),
            HandlesWanted::Holding { words, whole, ids } => (HANDLES, Some(HoldingFilter::new(words, whole, ids)?)),
            _ => (HANDLES, None),
        };
        let asked = if filter.is_some() { String::new() } else { format!(" LIMIT {limit}") };
        let sql = format!(
            "SELECT DISTINCT {id}, {expression} FROM {} t WHERE ({condition}) AND {id} IS NOT NULL AND {expression} IS NOT \
             NULL{asked}",
            shape::qualified(table)
        );
        let mut pairs = Vec::new();
        self.each(&sql, &params, &mut |row| {
            if let Ok([FetchedValue::Text(id), FetchedValue::Text(value)]) = <[FetchedValue; 2]>::try_from(row)
                && pairs.len() < limit
                && filter.as_ref().is_none_or(|filter| filter.lets_through(&id, &value))
            {
                pairs.push((id, value));
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok(pairs)
    }

    /// Counts the rows of a table with NULL in all of some columns; 0 for a table that may not be read.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn count_empty(&mut self, table: &TableName, columns: &[&str]) -> Result<usize, StoreError> {
        if self.denied.contains(table) {
            return Ok(0);
        }
        let empty: Vec<String> = columns.iter().map(|column| format!("{} IS NULL", quote(column))).collect();
        let sql = format!("SELECT count(*) FROM {} WHERE {}", shape::qualified(table), empty.join(" AND "));
        let rows = self.fetch(&sql, &[]).await?;
        Ok(rows.first().and_then(|row| integer(row, 0)).unwrap_or_default() as usize)
    }
}

fn name_of(table: &CatalogTable) -> TableName {
    TableName::new(&*table.schema, &*table.name)
}

/// Selects other people's ids and handles that contain one of some words, or equal one of some texts, in any case.
/// Searches all words at once.
struct HoldingFilter<'a> {
    words: AhoCorasick,
    whole: &'a HashSet<String>,
    ids: HashSet<&'a str>,
}

impl<'a> HoldingFilter<'a> {
    fn new(words: &[String], whole: &'a HashSet<String>, ids: &'a [String]) -> Result<Self, StoreError> {
        let words = AhoCorasick::new(words.iter().map(|word| word.to_lowercase()));
        let words = words.map_err(|error| sqlx::Error::InvalidArgument(error.to_string()))?;
        Ok(HoldingFilter { words, whole, ids: ids.iter().map(String::as_str).collect() })
    }

    fn lets_through(&self, id: &str, value: &str) -> bool {
        let fits = |text: &str| {
            let small = text.to_lowercase();
            self.words.is_match(&small) || self.whole.contains(&small)
        };
        let is_listed = || json::listed(value).is_some_and(|values| values.iter().any(|value| fits(value)));
        !self.ids.contains(id) && (fits(id) || fits(value) || !self.whole.is_empty() && is_listed())
    }
}

/// Placeholders for texts, which are bound.
fn marks(texts: &[String], params: &mut Vec<Param>) -> String {
    let mut mark = |text: &String| {
        params.push(FetchedValue::Text(text.clone()));
        format!("${}", params.len())
    };
    texts.iter().map(&mut mark).collect::<Vec<_>>().join(", ")
}

/// Most handles read of one place.
pub const HANDLES: usize = 100_000;

/// Selection of handles.
#[derive(Debug, Clone, Copy)]
pub enum HandlesWanted<'a> {
    /// Handles equal to a text, in any case.
    Like(&'a str),
    /// Handles of some people.
    Of(&'a [String]),
    /// Other people's handles that are among some values.
    Shared {
        /// The values.
        values: &'a [String],
        /// Ids of people who may own them too.
        ids: &'a [String],
    },
    /// Other people's handles that contain one of some words or equal one of some texts, or whose id does.
    Holding {
        /// The words, with ASCII letters in lower case.
        words: &'a [String],
        /// The texts, in lower case.
        whole: &'a HashSet<String>,
        /// Ids of people whose handles are excluded.
        ids: &'a [String],
    },
    /// Any handles, up to a limit.
    Some(usize),
}

/// The keys that the columns can contain. For a single SQLite column, with all values that read the same.
fn fitting(shape: &TableShape, by: &[String], keys: &[Vec<FetchedValue>]) -> Vec<Vec<FetchedValue>> {
    let engine = shape.engine;
    if let (Engine::Sqlite, [column]) = (engine, by)
        && let Some(column) = shape.shown(column)
    {
        let alike = |value: &FetchedValue| alike(&column.declared, value).into_iter().map(|value| vec![value]);
        return keys.iter().flatten().flat_map(alike).collect();
    }
    let declared = |name: &String| shape.shown(name).map_or(String::new(), |c| c.compared.clone());
    let types: Vec<String> = by.iter().map(declared).collect();
    let fitting = |key: &&Vec<FetchedValue>| {
        key.iter().zip(&types).all(|(value, declared)| match engine {
            Engine::Sqlite => by.len() == 1 || is_numbered(by) || !matches!(value, FetchedValue::Null),
            Engine::Postgres => fits(declared, value),
        })
    };
    keys.iter().filter(fitting).cloned().collect()
}

/// Whether a value can be in a PostgreSQL column: otherwise querying for it is an error. A value read from such a
/// column always can.
fn fits(declared: &str, value: &FetchedValue) -> bool {
    let FetchedValue::Text(text) = value else { return !matches!(value, FetchedValue::Null) };
    match PgType::of(declared) {
        PgType::Uuid => super::select::is_uuid(text),
        PgType::Integer => text.parse::<i64>().is_ok(),
        PgType::Number => text.parse::<f64>().is_ok(),
        PgType::Text => true,
        PgType::Timestamptz | PgType::Timestamp => is_moment(text),
        PgType::Boolean => matches!(text.as_str(), "true" | "false"),
        // Values of `json` have no equality.
        PgType::Json => declared == "jsonb" && serde_json::from_str::<IgnoredAny>(text).is_ok(),
        PgType::Array => is_plain_array(text, declared),
        PgType::Place => declared == "oid" && text.parse::<u32>().is_ok(),
        PgType::Bytes => false,
    }
}

/// Whether a text is a date, or a date and a time, in PostgreSQL's format.
fn is_moment(text: &str) -> bool {
    let (date, time) = text.split_once(' ').map_or((text, None), |(date, time)| (date, Some(time)));
    let clock = |time: &str| {
        let end = time.find(['+', '-']).unwrap_or(time.len());
        let is_offset = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | ':');
        NaiveTime::parse_from_str(&time[..end], "%H:%M:%S%.f").is_ok() && time[end..].chars().all(is_offset)
    };
    NaiveDate::parse_from_str(date, "%Y-%m-%d").is_ok() && time.is_none_or(clock)
}

/// Whether a text is a one-dimensional array whose items need no quotes: numbers, or words.
fn is_plain_array(text: &str, declared: &str) -> bool {
    let Some(items) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else { return false };
    let declared = declared.trim_end_matches("[]");
    let is_plain = |item: &str| !item.is_empty() && item.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    items.is_empty()
        || items.split(',').all(|item| is_plain(item) && fits(declared, &FetchedValue::Text(item.to_owned())))
}
