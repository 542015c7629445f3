//! Pages of raw rows: by the table's key if it has one, otherwise by position.

use serde::{Deserialize, Serialize};

use super::RawTable;
use super::shown::{BLOB_READ, ShownRaw, shown};
use crate::layout::{CatalogColumn, Engine};
use crate::memory::filter::{Expression, Operator, check_joined};
use crate::memory::nearest::nearest;
use crate::store::dialect::{PgType, beginning, beginning_postgres, quote};
use crate::store::fetched::{FetchedValue, Param, RawRow};
use crate::store::order::{place_of, place_text};
use crate::store::select::SelectStatement;
use crate::store::shape;
use crate::store::{RawTables, StoreError};

/// Most rows of a page.
const LIMIT: usize = 10_000;

/// Selection of rows of a raw table, and their order.
#[derive(Debug, Clone)]
pub struct RawQuery {
    /// The table.
    pub table: RawTable,
    filters: Vec<RawFilter>,
    order: Option<RawOrder>,
    /// Most rows of the page.
    pub limit: usize,
    /// Bytes of values after which a page ends early; `None` for no such limit.
    pub bytes: Option<usize>,
    /// Cursor from the previous page.
    pub after: Option<String>,
    /// Letters to read of each text; `None` for all.
    pub preview: Option<usize>,
}

/// A page of raw rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawPage {
    /// Rows, each with a value for each column of the table.
    pub rows: Vec<Vec<ShownRaw>>,
    /// Cursor for the next page; `None` on the last one.
    pub next: Option<String>,
}

#[derive(Debug, Clone)]
struct RawFilter {
    column: CatalogColumn,
    op: Operator,
    value: Option<String>,
}

#[derive(Debug, Clone)]
struct RawOrder {
    column: CatalogColumn,
    descending: bool,
}

/// The position at which a page ended.
#[derive(Serialize, Deserialize)]
struct PageEnd {
    /// The list it belongs to.
    list: String,
    /// Value of the column that orders the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ordered: Option<FetchedValue>,
    /// The row's key; empty if rows have none.
    key: Vec<FetchedValue>,
    /// Number of rows before it.
    rows: u64,
}

impl RawQuery {
    /// Whether conditions narrow the rows.
    pub fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Parses conditions `column OP value` and an order `column[:asc|:desc]` on a table's columns.
    ///
    /// # Errors
    /// The error in them, as text.
    pub fn parse(table: RawTable, filters: &[String], order: Option<&str>) -> Result<Self, String> {
        let filters = filters.iter().map(|text| RawFilter::parse(&table, text)).collect::<Result<_, _>>()?;
        let order = order.map(|text| RawOrder::parse(&table, text)).transpose()?;
        Ok(RawQuery {
            table,
            filters,
            order,
            limit: crate::memory::query::PAGE,
            bytes: None,
            after: None,
            preview: None,
        })
    }

    /// Identifies the list, so that a cursor of another one is detected.
    fn list(&self) -> String {
        let order = self.order.as_ref().map(|o| format!("{} {}", o.column.name, o.descending)).unwrap_or_default();
        format!("{} {} {order}", self.table.name.schema, self.table.name.name)
    }

    fn place(&self) -> Result<Option<PageEnd>, StoreError> {
        let Some(text) = &self.after else { return Ok(None) };
        let place: PageEnd = place_of(text).ok_or(StoreError::Cursor)?;
        if place.list == self.list() { Ok(Some(place)) } else { Err(StoreError::Cursor) }
    }

    fn is_descending(&self) -> bool {
        self.order.as_ref().is_some_and(|o| o.descending)
    }
}

fn column<'t>(table: &'t RawTable, name: &str) -> Result<&'t CatalogColumn, String> {
    table.column(name).ok_or_else(|| {
        let names = || table.columns.iter().map(|c| c.name.as_str());
        let hint = nearest(name, names()).map_or_else(|| ".".to_owned(), |near| format!("; did you mean `{near}`?"));
        format!(
            "{} has no column `{name}`{hint} Its columns are: {}",
            table.title,
            names().collect::<Vec<_>>().join(" ")
        )
    })
}

impl RawFilter {
    fn parse(table: &RawTable, text: &str) -> Result<Self, String> {
        let known = |name: &str| table.column(name).is_some();
        check_joined(text, &["and", "&&", "or"], known).map_err(|e| format!("--where: {e}"))?;
        let expression = Expression::parse(text).map_err(|e| format!("--where: {e}"))?;
        if expression.op == Operator::Has {
            return Err("--where: `has` searches lists, which raw tables do not recognise; use ~ for part of the text"
                .to_owned());
        }
        let value = (!expression.asks_presence()).then(|| expression.value.clone());
        Ok(RawFilter { column: column(table, expression.name)?.clone(), op: expression.op, value })
    }

    fn sql(&self, engine: Engine, params: &mut Vec<Param>) -> String {
        let bare = of(&self.column.name);
        let Some(value) = &self.value else {
            return format!("{bare} IS {}NULL", if self.op == Operator::Equal { "" } else { "NOT " });
        };
        if self.op == Operator::Contains {
            params.push(FetchedValue::Text(value.to_lowercase()));
            let mark = params.len();
            return match engine {
                Engine::Sqlite => format!("instr(lower(CAST({bare} AS TEXT)), ${mark}) > 0"),
                Engine::Postgres => format!("strpos(lower({bare}::text) COLLATE \"C\", ${mark}::text) > 0"),
            };
        }
        let sign = self.op.sign();
        match engine {
            Engine::Sqlite => {
                // A column without an affinity compares a number only with numbers.
                let number =
                    value.parse().map(FetchedValue::Integer).or_else(|_| value.parse().map(FetchedValue::Real));
                let typeless = self.column.declared.is_empty() || self.column.declared.contains("blob");
                params.push(number.ok().filter(|_| typeless).unwrap_or_else(|| FetchedValue::Text(value.clone())));
                format!("{bare} {sign} ${}", params.len())
            }
            Engine::Postgres => {
                params.push(FetchedValue::Text(value.clone()));
                let mark = params.len();
                let holds = if compares_as_text(&self.column.declared) {
                    format!("{bare}::text {sign} ${mark}::text")
                } else {
                    format!("{bare} {sign} ${mark}::text::{}", self.column.declared)
                };
                // A text that the database's encoding cannot represent arrives as NULL.
                if self.op == Operator::NotEqual { format!("coalesce({holds}, {bare} IS NOT NULL)") } else { holds }
            }
        }
    }
}

/// PostgreSQL types without an order, or with an unexpected one.
fn compares_as_text(declared: &str) -> bool {
    let plain = ["json", "jsonb", "xml", "point", "hstore", "tsvector"];
    plain.contains(&declared) || declared.ends_with("[]") || declared.starts_with("vector")
}

impl RawOrder {
    fn parse(table: &RawTable, text: &str) -> Result<Self, String> {
        let (name, direction) = text.rsplit_once(':').unwrap_or((text, "asc"));
        let descending = match direction {
            "asc" => false,
            "desc" => true,
            _ => return Err(format!("--order: `{direction}` is not a direction; write {name}:asc or {name}:desc")),
        };
        let column = column(table, name).map_err(|e| format!("--order: {e}"))?;
        Ok(RawOrder { column: column.clone(), descending })
    }

    /// The expression to order by, if the type has an order.
    fn sql(&self, engine: Engine) -> String {
        let bare = of(&self.column.name);
        let text = engine == Engine::Postgres && compares_as_text(&self.column.declared);
        if text { format!("{bare}::text") } else { bare }
    }
}

/// A column of the table, rather than a result column of the same name.
fn of(column: &str) -> String {
    format!("t.{}", quote(column))
}

/// Returns what identifies the rows of a table: expressions, and the type that each value is cast to.
fn key(engine: Engine, table: &RawTable) -> Vec<(String, String)> {
    if let Some(name) = table.row_number {
        return vec![(format!("t.{name}"), String::new())];
    }
    let declared = |name: &str| table.column(name).map(|c| c.declared.clone()).unwrap_or_default();
    let mut key: Vec<(String, String)> = table.key.iter().map(|name| (of(name), declared(name))).collect();
    if engine == Engine::Postgres {
        if table.has_heirs {
            key.push(("t.tableoid".to_owned(), "oid".to_owned()));
        }
        if table.has_heirs || key.is_empty() && table.kind == "table" {
            key.push(("t.ctid".to_owned(), "tid".to_owned()));
        }
    }
    key
}

/// Returns the expression that reads a column.
fn cell(engine: Engine, column: &CatalogColumn, preview: Option<usize>) -> String {
    let bare = of(&column.name);
    if engine == Engine::Sqlite {
        let other = preview.map_or_else(|| bare.clone(), |n| beginning(&bare, n));
        return format!(
            "CASE WHEN typeof({bare}) = 'blob' AND length({bare}) > {BLOB_READ} THEN substr({bare}, 1, {BLOB_READ}) ELSE {other} END"
        );
    }
    match PgType::of(&column.declared) {
        PgType::Bytes => format!("substring({bare} FROM 1 FOR {BLOB_READ})"),
        PgType::Integer | PgType::Boolean => bare,
        PgType::Number if column.declared == "double precision" => bare,
        PgType::Array => format!("array_to_json({bare})::text"),
        PgType::Text => match preview {
            Some(n) => beginning_postgres(&bare, n),
            None => format!("{bare}::text"),
        },
        _ => format!("{bare}::text"),
    }
}

/// Most arguments of an SQLite function call.
const ARGUMENTS: usize = 100;

/// Returns the expression for the byte lengths of a row's blobs, as one JSON text of lists, since an engine supports
/// hardly more result columns than table columns.
fn sizes(engine: Engine, columns: &[CatalogColumn]) -> String {
    let size = |column: &CatalogColumn| {
        let bare = of(&column.name);
        match engine {
            Engine::Sqlite => format!("CASE typeof({bare}) WHEN 'blob' THEN length({bare}) END"),
            Engine::Postgres if PgType::of(&column.declared) == PgType::Bytes => format!("octet_length({bare})"),
            Engine::Postgres => "NULL".to_owned(),
        }
    };
    let lists = columns.chunks(ARGUMENTS).map(|part| {
        let sizes = part.iter().map(size).collect::<Vec<_>>().join(", ");
        match engine {
            Engine::Sqlite => format!("json_array({sizes})"),
            Engine::Postgres => format!("to_json(ARRAY[{sizes}]::bigint[])"),
        }
    });
    let lists = lists.collect::<Vec<_>>().join(", ");
    match engine {
        Engine::Sqlite => format!("json_array({lists})"),
        Engine::Postgres => format!("json_build_array({lists})::text"),
    }
}

fn statement(engine: Engine, query: &RawQuery, place: Option<&PageEnd>) -> SelectStatement {
    let table = &query.table;
    let keys = key(engine, table);
    let mut params = Vec::new();
    let mut wanted: Vec<String> = keys.iter().map(|(sql, _)| as_stored(engine, sql)).collect();
    wanted.extend(query.order.as_ref().map(|order| as_stored(engine, &order.sql(engine))));
    wanted.push(sizes(engine, &table.columns));
    wanted.extend(table.columns.iter().map(|c| cell(engine, c, query.preview)));
    let mut conditions: Vec<String> = query.filters.iter().map(|f| f.sql(engine, &mut params)).collect();
    if let Some(place) = place.filter(|_| !keys.is_empty()) {
        conditions.push(beyond(engine, query, &keys, place, &mut params));
    }
    let direction = if query.is_descending() { "DESC" } else { "ASC" };
    let mut order: Vec<String> = Vec::new();
    if let Some(by) = &query.order {
        let nulls = match (engine, by.column.not_null, by.descending) {
            (Engine::Sqlite, ..) | (_, true, _) => "",
            (_, _, false) => " NULLS FIRST",
            (_, _, true) => " NULLS LAST",
        };
        order.push(format!("{} {direction}{nulls}", by.sql(engine)));
    }
    order.extend(keys.iter().map(|(sql, _)| format!("{sql} {direction}")));
    let from = format!("{}.{} AS t", quote(&table.name.schema), quote(&table.name.name));
    let mut sql = format!("SELECT {} FROM {from}", wanted.join(", "));
    if !conditions.is_empty() {
        sql.push_str(&format!(" WHERE {}", conditions.join(" AND ")));
    }
    if !order.is_empty() {
        sql.push_str(&format!(" ORDER BY {}", order.join(", ")));
    }
    sql.push_str(&format!(" LIMIT {}", query.limit + 1));
    if let Some(place) = place.filter(|_| keys.is_empty()) {
        sql.push_str(&format!(" OFFSET {}", place.rows));
    }
    SelectStatement { engine, sql, params }
}

/// A key in the form of a cursor: PostgreSQL's as text, which converts back to the same value.
fn as_stored(engine: Engine, sql: &str) -> String {
    if engine == Engine::Postgres { format!("({sql})::text") } else { sql.to_owned() }
}

/// The rows after a position: by the ordering column first, then by the key.
fn beyond(
    engine: Engine,
    query: &RawQuery,
    keys: &[(String, String)],
    place: &PageEnd,
    params: &mut Vec<Param>,
) -> String {
    let sign = if query.is_descending() { "<" } else { ">" };
    let mut mark = |value: &FetchedValue, declared: &str| {
        params.push(value.clone());
        match engine {
            Engine::Sqlite => shape::placeholder(engine, params.len(), value, declared),
            Engine::Postgres => format!("${}::text::{declared}", params.len()),
        }
    };
    let names: Vec<&str> = keys.iter().map(|(sql, _)| sql.as_str()).collect();
    let values: Vec<String> = keys.iter().zip(&place.key).map(|((_, declared), value)| mark(value, declared)).collect();
    let by_key = format!("({}) {sign} ({})", names.join(", "), values.join(", "));
    let Some(order) = &query.order else { return by_key };
    let bare = order.sql(engine);
    match place.ordered.as_ref().unwrap_or(&FetchedValue::Null) {
        FetchedValue::Null if order.descending => format!("({bare} IS NULL AND {by_key})"),
        FetchedValue::Null => format!("({bare} IS NOT NULL OR {by_key})"),
        value => {
            let declared = if compares_as_text(&order.column.declared) { "text" } else { &order.column.declared };
            let value = mark(value, declared);
            let nulls = if order.descending { format!(" OR {bare} IS NULL") } else { String::new() };
            format!("({bare} {sign} {value} OR ({bare} = {value} AND {by_key}){nulls})")
        }
    }
}

impl RawTables<'_> {
    /// Reads a page of raw rows. A table without a key is read by position: rows added or deleted meanwhile shift the
    /// pages.
    ///
    /// # Errors
    /// [`StoreError::Cursor`] for a cursor of another list, or the engine's refusal.
    pub async fn raw_page(self, query: &RawQuery) -> Result<RawPage, StoreError> {
        let query = &RawQuery { limit: query.limit.clamp(1, LIMIT), ..query.clone() };
        let place = query.place()?;
        let keys = key(self.store.engine(), &query.table).len();
        if place.as_ref().is_some_and(|place| place.key.len() != keys) {
            return Err(StoreError::Cursor);
        }
        let statement = statement(self.store.engine(), query, place.as_ref());
        tracing::debug!(sql = %statement.sql, "raw page");
        let bytes = query.bytes.unwrap_or(usize::MAX);
        let (mut found, is_cut) = self.store.sessions.fetch_within(&statement.sql, &statement.params, bytes).await?;
        let more = is_cut || found.len() > query.limit;
        found.truncate(query.limit);
        let taken = found.len() as u64;
        let next = found.last().filter(|_| more).map(|last| {
            let ordered = query.order.as_ref().and_then(|_| last.get(keys).cloned());
            let before = place.as_ref().map_or(0, |place| place.rows);
            let key = last[..keys].to_vec();
            let place = PageEnd { list: query.list(), ordered, key, rows: before.saturating_add(taken) };
            place_text(&place)
        });
        let begin = keys + usize::from(query.order.is_some());
        let rows = found.into_iter().map(|row| cells(&query.table, row, begin)).collect();
        Ok(RawPage { rows, next })
    }
}

fn cells(table: &RawTable, row: RawRow, begin: usize) -> Vec<ShownRaw> {
    let mut values = row.into_iter().skip(begin);
    let sizes: Vec<Vec<Option<usize>>> = match values.next() {
        Some(FetchedValue::Text(lists)) => serde_json::from_str(&lists).unwrap_or_default(),
        _ => Vec::new(),
    };
    let sizes = sizes.into_iter().flatten().chain(std::iter::repeat(None));
    let shown = |(column, bytes): (&CatalogColumn, _)| {
        shown(values.next().unwrap_or(FetchedValue::Null), bytes, &column.declared)
    };
    table.columns.iter().zip(sizes).map(shown).collect()
}
