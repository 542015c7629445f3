//! Samples every table of a database for drafting a layout: first and last rows, key, and references.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::dialect::{PgType, quote};
use super::fetched::{FetchedValue, RawRow, row_size};
use super::proof::tables::{self, SearchedKind, SearchedTable, UnsearchedReason};
use super::stored::TableName;
use super::{RawTables, StoreError};
use crate::layout::Engine;
use crate::layout::draft::{CUT, DraftSql, Sample, SampledColumn, SampledReference, SampledTable};

/// Rows from each end of a table.
const ROWS: usize = 200;
/// Most bytes of one table's sample.
const BYTES: usize = 16 << 20;

impl RawTables<'_> {
    /// Every stored table with some of its rows, without parts of search indexes, partitions, and tables that our role
    /// may not read. Reads at most [`CUT`] bytes per value and 400 rows per table.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn sampled_tables(self) -> Result<Vec<SampledTable>, StoreError> {
        let mut references = self.declared_references().await?;
        let mut sampled = Vec::new();
        let tables = tables::read(self.store).await?;
        // The shadow tables of virtual tables, even if the module is not in this program.
        let virtuals = tables.iter().filter(|t| t.kind == SearchedKind::Unread(UnsearchedReason::Virtual));
        let shadows: Vec<String> = virtuals.map(|t| format!("{}_", t.name.name)).collect();
        for table in tables {
            let stored = matches!(table.kind, SearchedKind::Stored | SearchedKind::Parent) && !table.partition;
            let is_ours =
                !table.name.name.starts_with("sqlite_") && !shadows.iter().any(|s| table.name.name.starts_with(s));
            if !stored || !is_ours {
                continue;
            }
            let Some(title) = self.title_of(&table.name) else { continue };
            let rows = self.sample(&table).await?;
            sampled.push(SampledTable {
                references: references.remove(&table.name).unwrap_or_default(),
                columns: columns(&table, &rows),
                row_number: table.row_number.map(|name| format!("t.{name}")),
                rows: rows.len(),
                key: table.key,
                name: title,
            });
        }
        Ok(sampled)
    }

    /// A readable table's name in the form of a layout.
    fn title_of(self, name: &TableName) -> Option<String> {
        let known = self.store.catalog().exactly(&name.schema, &name.name)?;
        (!known.denied && known.columns.iter().all(|c| !c.denied)).then(|| known.title())
    }

    async fn declared_references(self) -> Result<HashMap<TableName, Vec<SampledReference>>, StoreError> {
        let mut found: HashMap<TableName, Vec<SampledReference>> = HashMap::new();
        for key in self.store.shapes().foreign_keys().await? {
            let Some(table) = self.title_of(&key.to) else { continue };
            let one = |(column, to)| SampledReference { column, table: table.clone(), to };
            found.entry(key.from).or_default().extend(key.columns.into_iter().zip(key.to_columns).map(one));
        }
        Ok(found)
    }

    /// The first and the last rows by key, or any rows if there is no key.
    async fn sample(self, table: &SearchedTable) -> Result<Vec<RawRow>, StoreError> {
        let columns: Vec<String> =
            table.columns.iter().map(|c| projected(self.store.engine(), &c.name, &c.declared)).collect();
        let columns = if columns.is_empty() { "1".to_owned() } else { columns.join(", ") };
        let from = format!("{}.{}", quote(&table.name.schema), quote(&table.name.name));
        let keys: Vec<String> = match (table.row_number, &table.key[..]) {
            (Some(number), _) => vec![number.to_owned()],
            (None, key) => key.iter().map(|k| quote(k)).collect(),
        };
        let ordered = |direction: &str| {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key} {direction}")).collect();
            if keys.is_empty() { String::new() } else { format!(" ORDER BY {}", keys.join(", ")) }
        };
        let mut rows: Vec<RawRow> = Vec::new();
        let mut bytes = 0;
        for direction in ["ASC", "DESC"].into_iter().take(if keys.is_empty() { 1 } else { 2 }) {
            let sql = format!("SELECT {columns} FROM {from}{} LIMIT {ROWS}", ordered(direction));
            let first = rows.len();
            self.store
                .sessions
                .scan(&sql, &[], |row| {
                    bytes += row_size(&row);
                    if first == 0 || !rows[..first].contains(&row) {
                        rows.push(row);
                    }
                    if bytes > BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                })
                .await?;
            if rows.len() < ROWS || bytes > BYTES {
                break;
            }
        }
        Ok(rows)
    }
}

fn columns(table: &SearchedTable, rows: &[RawRow]) -> Vec<SampledColumn> {
    let value = |row: &RawRow, at: usize| match row.get(at) {
        None | Some(FetchedValue::Null) => Sample::Null,
        Some(FetchedValue::Text(text)) => Sample::Text(text.clone()),
        Some(FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes)) => Sample::Bytes(bytes.clone()),
        Some(FetchedValue::Integer(i)) => Sample::Integer(*i),
        Some(FetchedValue::Real(x)) => Sample::Real(*x),
    };
    let column = |(at, column): (usize, &tables::SearchedColumn)| SampledColumn {
        name: column.name.clone(),
        declared: column.declared.clone(),
        values: rows.iter().map(|row| value(row, at)).collect(),
    };
    table.columns.iter().enumerate().map(column).collect()
}

fn projected(engine: Engine, name: &str, declared: &str) -> String {
    let name = quote(name);
    if engine == Engine::Sqlite {
        return format!("CASE WHEN typeof({name}) IN ('text', 'blob') THEN substr({name}, 1, {CUT}) ELSE {name} END");
    }
    match PgType::of(declared) {
        PgType::Bytes => format!("substring({name} FROM 1 FOR {CUT})"),
        PgType::Integer | PgType::Boolean => name,
        PgType::Number => format!("({name})::float8"),
        // The type says enough.
        _ if declared.contains("vector") => "NULL::text".to_owned(),
        _ => format!("left(({name})::text, {CUT})"),
    }
}

/// A table of a layout, quoted.
fn table(title: &str) -> String {
    title.split('.').map(quote).collect::<Vec<_>>().join(".")
}

/// The SQL of a JSON list, as text.
fn json_list(engine: Engine, items: &[String]) -> String {
    match engine {
        Engine::Sqlite => format!("json_array({})", items.join(", ")),
        Engine::Postgres => format!("json_build_array({})::text", items.join(", ")),
    }
}

impl DraftSql for Engine {
    fn engine(&self) -> Engine {
        *self
    }

    fn column(&self, name: &str) -> String {
        format!("t.{}", quote(name))
    }

    fn tuple(&self, columns: &[String]) -> String {
        let columns: Vec<String> = columns.iter().map(|c| self.column(c)).collect();
        json_list(*self, &columns)
    }

    fn tagged(&self, table: &str, column: &str) -> String {
        json_list(*self, &[format!("'{}'", table.replace('\'', "''")), self.column(column)])
    }

    fn joined(&self, columns: &[String]) -> String {
        columns.iter().map(|column| self.column(column)).collect::<Vec<_>>().join(" || ' ' || ")
    }

    fn uuid_time(&self, column: &str, version: u8) -> String {
        let column = format!("t.{}", quote(column));
        // Version 6 counts tenths of microseconds from 1582, interrupted by the version digit; version 7 counts
        // milliseconds from 1970.
        let (digits, count, seconds) = if version == 6 {
            ("substr(h, 1, 8) || substr(h, 10, 4) || substr(h, 16, 3)", 15, "(v - 122192928000000000) / 1e7")
        } else {
            ("substr(h, 1, 8) || substr(h, 10, 4)", 12, "v / 1e3")
        };
        match self {
            Engine::Sqlite => format!(
                "(WITH RECURSIVE u(h) AS (SELECT lower({column})), d(i, v) AS (SELECT 0, 0 UNION ALL SELECT i + 1, \
                 v * 16 + instr('0123456789abcdef', substr({digits}, i + 1, 1)) - 1 FROM d, u WHERE i < {count}) \
                 SELECT {seconds} FROM d WHERE i = {count})"
            ),
            Engine::Postgres => format!(
                "(SELECT to_timestamp({seconds}) FROM (SELECT ('x' || lpad({digits}, 16, '0'))::bit(64)::bigint AS v \
                 FROM (SELECT {column}::text AS h) u) d)"
            ),
        }
    }

    fn key_of(&self, reference: &SampledReference, key: &str) -> String {
        let (from, key) = (table(&reference.table), quote(key));
        let (to, column) = (quote(&reference.to), quote(&reference.column));
        format!("(SELECT k.{key} FROM {from} k WHERE k.{to} = t.{column} LIMIT 1)")
    }

    fn distinct(&self, name: &str, column: &str) -> String {
        let (from, column) = (table(name), quote(column));
        let text = if *self == Engine::Postgres { "::text" } else { "" };
        format!("(SELECT DISTINCT s.{column}{text} AS id FROM {from} s WHERE s.{column} IS NOT NULL) t")
    }
}
