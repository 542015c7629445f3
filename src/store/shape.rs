//! The columns of a table with their types, as writing and before-images need them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::dialect::{PgType, quote};
use super::fetched::{self, FetchedValue, Param, RawRow, row_size};
use super::row_number::{free_name_sql, has_key_index, hidden, is_numbered};
use super::stored::{Image, ROW, ReadState, StateReading, StoredRows, TableName};
use super::{ShapeReader, StoreError};
use crate::layout::Engine;

/// Keys per statement.
const KEYS: usize = 400;

/// Values per list in a condition, below the limits of both engines.
pub(super) const VALUES: usize = 8_000;

/// A stored column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeColumn {
    /// Name as stored.
    pub name: String,
    /// Type in the engine's spelling.
    pub declared: String,
    /// Underlying type: a domain's base type if the domain has no constraints, otherwise the type itself.
    pub base: String,
    /// Underlying type, with or without domain constraints: values are compared by it.
    pub compared: String,
    /// Whether a new row must set it: it is NOT NULL and has no default.
    pub required: bool,
    /// Whether PostgreSQL generates its number (GENERATED ALWAYS), so that a statement must override that to set one.
    pub numbered: bool,
}

impl ShapeColumn {
    /// Whether values that differ only in case are equal.
    pub fn folds_case(&self) -> bool {
        self.base == "uuid" || self.is_citext()
    }

    /// Whether it holds numbers or booleans in PostgreSQL.
    pub fn counts(&self) -> bool {
        matches!(PgType::of(&self.compared), PgType::Integer | PgType::Number | PgType::Boolean)
    }

    /// Whether it holds case-insensitive text.
    pub fn is_citext(&self) -> bool {
        self.base.rsplit('.').next() == Some("citext")
    }
}

/// PostgreSQL's sequence for the rows of a table; 0 if there is none, or none that we may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowNumbering {
    /// The greatest number it has given.
    pub last: i64,
    /// The greatest number that a new row may have: the sequence is advanced to it.
    pub most: i64,
}

/// The columns of a table, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableShape {
    /// Engine of the table.
    pub engine: Engine,
    /// The stored columns.
    pub columns: Vec<ShapeColumn>,
    /// Generated columns, which cannot be written.
    pub generated: Vec<ShapeColumn>,
    /// SQLite: the name for the hidden row number; `None` if a column is the number, or all its names are taken.
    pub row_number: Option<Arc<str>>,
}

impl TableShape {
    /// The stored column with this name.
    pub fn column(&self, name: &str) -> Option<&ShapeColumn> {
        self.columns.iter().find(|c| c.name.eq_ignore_ascii_case(name))
    }

    /// The column with this name, stored or generated.
    pub fn shown(&self, name: &str) -> Option<&ShapeColumn> {
        self.column(name).or_else(|| self.generated.iter().find(|c| c.name.eq_ignore_ascii_case(name)))
    }

    /// The shape with only some columns and those that identify rows; with all columns if none is named.
    pub fn narrowed(&self, columns: &[String], by: &[String]) -> TableShape {
        let wanted = |name: &str| columns.is_empty() || columns.iter().chain(by).any(|column| column == name);
        TableShape {
            engine: self.engine,
            columns: self.columns.iter().filter(|c| wanted(&c.name)).cloned().collect(),
            generated: self.generated.clone(),
            row_number: self.row_number.clone().filter(|number| wanted(number)),
        }
    }

    /// Whether another shape has the same columns of the same types.
    pub fn has_columns_of(&self, other: &TableShape) -> bool {
        let columns = |shape: &TableShape| -> Vec<(String, String)> {
            shape.columns.iter().chain(&shape.generated).map(|c| (c.name.clone(), c.declared.clone())).collect()
        };
        columns(self) == columns(other)
    }

    fn names(&self) -> Vec<Arc<str>> {
        self.row_number.iter().cloned().chain(self.columns.iter().map(|c| c.name.as_str().into())).collect()
    }
}

/// Most keys bound one by one, if the engine supports a list parameter.
const FEW: usize = 16;

/// Cache of shapes.
#[derive(Debug, Default)]
pub struct TableShapes(Mutex<HashMap<TableName, Arc<TableShape>>>);

impl TableShapes {
    /// A cached shape.
    pub fn known(&self, table: &TableName) -> Option<Arc<TableShape>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(table).cloned()
    }

    /// Parses the answer to [`question`] and caches the shape; `None` if there is no such table.
    pub fn keep(&self, engine: Engine, table: &TableName, rows: &[RawRow]) -> Option<Arc<TableShape>> {
        let text = |raw: Option<&FetchedValue>| match raw {
            Some(FetchedValue::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let flag = |raw: Option<&FetchedValue>| raw == Some(&FetchedValue::Integer(1));
        let column = |row: &RawRow| ShapeColumn {
            name: text(row.first()),
            declared: text(row.get(1)),
            base: text(row.get(5).or(row.get(1))),
            compared: text(row.get(6).or(row.get(1))),
            required: flag(row.get(2)),
            numbered: flag(row.get(7)),
        };
        let (generated, stored): (Vec<_>, Vec<_>) = rows.iter().partition(|row| flag(row.get(4)));
        let [columns, generated] = [stored, generated].map(|rows| rows.into_iter().map(column).collect::<Vec<_>>());
        let row_number = rows.first().map(|row| text(row.get(3))).filter(|name| !name.is_empty());
        let row_number = row_number.map(|name| hidden(&name).into());
        let shape = Arc::new(TableShape { engine, columns, generated, row_number });
        if shape.columns.is_empty() {
            return None;
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(table.clone(), Arc::clone(&shape));
        Some(shape)
    }
}

/// The statement that describes a table: name, type, required, name of the hidden row number, generated, underlying
/// types (for domains without constraints, and for all domains), and whether PostgreSQL numbers it.
pub fn question(engine: Engine, table: &TableName) -> (String, Vec<Param>) {
    let has_index = has_key_index("$1", "$2");
    let sql = match engine {
        // A key that is the row number itself is an ordinary column.
        Engine::Sqlite => format!(
            "SELECT c.name, c.type, c.\"notnull\" AND c.dflt_value IS NULL AND (c.pk = 0 OR {has_index}), \
             CASE WHEN NOT l.wr AND l.type = 'table' AND ({has_index} OR NOT EXISTS \
               (SELECT 1 FROM pragma_table_xinfo($1, $2) o WHERE o.pk > 0)) THEN {} END, c.hidden > 1 \
             FROM pragma_table_xinfo($1, $2) c JOIN pragma_table_list l ON l.name = $1 AND l.schema = $2 \
             WHERE c.hidden <> 1 ORDER BY c.cid",
            free_name_sql("$1", "$2")
        ),
        Engine::Postgres => "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), \
             a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', NULL::text, a.attgenerated <> '', \
             CASE WHEN y.typtype <> 'd' THEN format_type(a.atttypid, a.atttypmod) ELSE \
             coalesce((WITH RECURSIVE made_of (type, modifier, ruled) AS ( \
               SELECT a.atttypid, a.atttypmod, false UNION ALL \
               SELECT t.typbasetype, t.typtypmod, m.ruled OR EXISTS \
                 (SELECT 1 FROM pg_constraint r WHERE r.contypid = t.oid AND r.contype = 'c') \
               FROM made_of m JOIN pg_type t ON t.oid = m.type WHERE t.typtype = 'd') \
               SELECT format_type(m.type, m.modifier) FROM made_of m JOIN pg_type t ON t.oid = m.type \
               WHERE t.typtype <> 'd' AND NOT m.ruled), format_type(a.atttypid, a.atttypmod)) END, \
             CASE WHEN y.typtype <> 'd' THEN format_type(a.atttypid, a.atttypmod) ELSE \
             (WITH RECURSIVE made_of (type, modifier) AS (SELECT a.atttypid, a.atttypmod UNION ALL \
               SELECT t.typbasetype, t.typtypmod FROM made_of m JOIN pg_type t ON t.oid = m.type WHERE t.typtype = 'd') \
               SELECT format_type(m.type, m.modifier) FROM made_of m JOIN pg_type t ON t.oid = m.type WHERE t.typtype <> 'd') END, \
             a.attidentity = 'a' \
             FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = $1 AND c.relname = $2 AND a.attnum > 0 AND NOT a.attisdropped \
             ORDER BY a.attnum"
            .to_owned(),
    };
    let (schema, name) = (FetchedValue::Text(table.schema.clone()), FetchedValue::Text(table.name.clone()));
    match engine {
        Engine::Sqlite => (sql, vec![name, schema]),
        Engine::Postgres => (sql, vec![schema, name]),
    }
}

/// The type that a bound text is cast to for a column: without a length, since a cast would truncate silently while an
/// assignment fails.
pub fn cast(declared: &str) -> String {
    let lower = declared.to_ascii_lowercase();
    // A list of texts is not text, and a bare `character` has length 1.
    match (lower.starts_with("character"), lower.ends_with("[]")) {
        (true, true) if lower.starts_with("character varying") => return "character varying[]".to_owned(),
        (true, true) => return "bpchar[]".to_owned(),
        (true, false) => return "text".to_owned(),
        (false, _) => {}
    }
    // A bare `bit` has length 1.
    if lower == "bit" || lower.starts_with("bit(") || lower.starts_with("bit[") {
        return format!("bit varying{}", if lower.ends_with("[]") { "[]" } else { "" });
    }
    match (declared.find('('), declared.find(')')) {
        (Some(open), Some(close)) if open < close => format!("{}{}", &declared[..open], &declared[close + 1..]),
        _ => declared.to_owned(),
    }
}

/// The placeholder of a value for a column.
pub fn placeholder(engine: Engine, number: usize, value: &FetchedValue, declared: &str) -> String {
    match (engine, value) {
        (Engine::Sqlite, FetchedValue::BadText(_)) => format!("CAST(${number} AS TEXT)"),
        (Engine::Sqlite, _) => format!("${number}"),
        (Engine::Postgres, _) => format!("${number}::{}", cast(declared)),
    }
}

/// Tables whose rows are deleted or changed with those of another table, of its partitions, or of inheriting tables,
/// and whether we may not read them completely. Rows of a partition are read through the partitioned table.
const DEPENDENTS_POSTGRES: &str = "WITH RECURSIVE going (oid) AS ( \
       SELECT t.oid FROM pg_class t JOIN pg_namespace s ON s.oid = t.relnamespace WHERE s.nspname = $1 AND t.relname = $2 \
       UNION SELECT i.inhrelid FROM pg_inherits i JOIN going g ON g.oid = i.inhparent) \
     SELECT DISTINCT n.nspname::text, c.relname::text, \
     (NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')))::int::bigint \
     FROM pg_constraint k JOIN going g ON g.oid = k.confrelid JOIN pg_class p ON p.oid = k.conrelid \
     JOIN pg_class c ON c.oid = CASE WHEN p.relispartition THEN pg_partition_root(p.oid) ELSE p.oid END \
     JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE k.contype = 'f' AND k.confdeltype IN ('c', 'n', 'd') ORDER BY 1, 2";

/// Whether other tables inherit from an unpartitioned one.
const HEIRS: &str = "SELECT 1 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname = $1 AND c.relname = $2 LIMIT 1";

/// SQL for the oid of a PostgreSQL table.
pub(super) fn table_number(table: &TableName) -> String {
    format!("'{}'::regclass", qualified(table).replace('\'', "''"))
}

/// The greatest number that a column's sequence has given, and the one up to which we may advance it.
const NUMBERING: &str = "SELECT CASE WHEN has_sequence_privilege(s.id, 'USAGE, SELECT') THEN pg_sequence_last_value(s.id::regclass) END, \
     CASE WHEN has_sequence_privilege(s.id, 'UPDATE') AND has_sequence_privilege(s.id, 'USAGE, SELECT') THEN q.seqmax END \
     FROM (SELECT pg_get_serial_sequence($1, $2)::regclass::oid AS id) s \
     LEFT JOIN pg_sequence q ON q.seqrelid = s.id AND q.seqincrement > 0";

/// `schema.table`, quoted.
pub fn qualified(table: &TableName) -> String {
    format!("{}.{}", quote(&table.schema), quote(&table.name))
}

/// A comparison of values that differs from the column's type and collation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// PostgreSQL type for the comparison.
    pub kind: Option<String>,
    /// Collation, quoted.
    pub collation: Option<String>,
}

impl Comparison {
    /// Compares values as PostgreSQL text, whatever the column's type.
    pub fn of_texts() -> Self {
        Comparison { kind: Some("text".to_owned()), collation: None }
    }

    fn of(&self, column: &str) -> String {
        let kind = self.kind.as_ref().map_or_else(String::new, |kind| format!("::{kind}"));
        let collation = self.collation.as_ref().map_or_else(String::new, |name| format!(" COLLATE {name}"));
        format!("{}{kind}{collation}", quote(column))
    }
}

/// The condition that finds some keys; its values are appended to `params`.
pub fn key_condition(shape: &TableShape, by: &[String], keys: &[Vec<FetchedValue>], params: &mut Vec<Param>) -> String {
    compared_condition(shape, by, &[], keys, params)
}

/// The condition that finds some keys, each column compared by `compared` if set.
pub fn compared_condition(
    shape: &TableShape,
    by: &[String],
    compared: &[Option<Comparison>],
    keys: &[Vec<FetchedValue>],
    params: &mut Vec<Param>,
) -> String {
    let engine = shape.engine;
    let way = |at: usize| compared.get(at).and_then(Option::as_ref);
    let columns: Vec<String> =
        by.iter().enumerate().map(|(at, name)| way(at).map_or_else(|| quote(name), |way| way.of(name))).collect();
    if let (Engine::Sqlite, [column], Some(list)) = (engine, &columns[..], listed(keys)) {
        params.push(FetchedValue::Text(list));
        // `+`: removes the affinity, so that the column's type decides the comparison, as with bound values.
        return format!("{column} IN (SELECT +value FROM json_each(${}))", params.len());
    }
    let own = |name: &String| shape.shown(name).map_or(String::new(), |column| column.compared.clone());
    let kind = |(at, name)| way(at).and_then(|way| way.kind.clone()).unwrap_or_else(|| own(name));
    let kinds: Vec<String> = by.iter().enumerate().map(kind).collect();
    let mut mark = |at: usize, value: &FetchedValue| {
        params.push(value.clone());
        placeholder(engine, params.len(), value, &kinds[at])
    };
    if let [column] = &columns[..] {
        let marks: Vec<String> = keys.iter().filter_map(|key| key.first()).map(|value| mark(0, value)).collect();
        return format!("{column} IN ({})", marks.join(", "));
    }
    let one = |key: &Vec<FetchedValue>, mark: &mut dyn FnMut(usize, &FetchedValue) -> String| {
        let part = |(at, (column, value)): (usize, (&String, &FetchedValue))| match value {
            // The row number identifies the row.
            FetchedValue::Null if is_numbered(by) => format!("{column} IS NULL"),
            value => format!("{column} = {}", mark(at, value)),
        };
        let parts: Vec<String> = columns.iter().zip(key).enumerate().map(part).collect();
        format!("({})", parts.join(" AND "))
    };
    let keys: Vec<String> = keys.iter().map(|key| one(key, &mut mark)).collect();
    format!("({})", keys.join(" OR "))
}

/// The condition that finds any number of keys by one parameter, a JSON list. On SQLite this does not find blobs.
pub fn listed_condition(shape: &TableShape, rows: &StoredRows, params: &mut Vec<Param>) -> String {
    let engine = shape.engine;
    let text = |value: &FetchedValue| match (engine, value) {
        (_, FetchedValue::Text(text)) => Value::from(text.as_str()),
        (Engine::Sqlite, FetchedValue::Integer(number)) => Value::from(*number),
        (Engine::Postgres, FetchedValue::Integer(number)) => Value::from(number.to_string()),
        (_, FetchedValue::Real(number)) => Value::from(number.to_string()),
        (_, FetchedValue::Bytes(bytes)) => Value::from(format!("\\x{}", hex::encode(bytes))),
        (_, FetchedValue::Null | FetchedValue::BadText(_)) => Value::Null,
    };
    let mut list = String::from("[");
    for (at, key) in rows.keys.iter().enumerate() {
        list.push_str(if at > 0 { "," } else { "" });
        list.push_str(&Value::from(key.iter().map(text).collect::<Vec<_>>()).to_string());
    }
    list.push(']');
    params.push(FetchedValue::Text(list));
    let own = |name: &String| shape.shown(name).map_or("text", |column| &column.compared);
    let value = |(at, name)| match engine {
        Engine::Sqlite => format!("k.value ->> {at}"),
        Engine::Postgres => format!("(k.key->>{at})::{}", cast(own(name))),
    };
    let values: Vec<String> = rows.by.iter().enumerate().map(value).collect();
    let columns: Vec<String> = rows.by.iter().map(|name| quote(name)).collect();
    let list = match engine {
        Engine::Sqlite => format!("json_each(${}) k", params.len()),
        Engine::Postgres => format!("json_array_elements(${}::json) k(key)", params.len()),
    };
    format!("({}) IN (SELECT {} FROM {list})", columns.join(", "), values.join(", "))
}

/// The first values of many keys as a JSON list, since SQLite's time per parameter grows with their number. `None` if
/// there are few, or if JSON cannot represent one.
fn listed(keys: &[Vec<FetchedValue>]) -> Option<String> {
    if keys.len() <= FEW {
        return None;
    }
    let json = |key: &Vec<FetchedValue>| match key.first()? {
        FetchedValue::Integer(number) => Some(Value::from(*number)),
        FetchedValue::Text(text) if !text.contains('\0') => Some(Value::from(text.as_str())),
        _ => None,
    };
    let list: Vec<Value> = keys.iter().map(json).collect::<Option<_>>()?;
    Some(Value::from(list).to_string())
}

/// Columns of a table, as SQL for fetching, in the order of `columns`.
pub fn projection(shape: &TableShape, columns: &[String]) -> String {
    let one = |name: &String| match (shape.engine, shape.shown(name)) {
        (Engine::Postgres, Some(column)) if column.declared == "bytea" => quote(name),
        (Engine::Postgres, _) => format!("{}::text", quote(name)),
        (Engine::Sqlite, _) => quote(name),
    };
    columns.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The statements that read complete stored rows.
pub fn image_statements(shape: &TableShape, rows: &StoredRows, lock: bool) -> Vec<(String, Vec<Param>)> {
    let engine = shape.engine;
    let columns: Vec<String> = shape
        .names()
        .iter()
        .map(|name| match (engine, shape.column(name)) {
            (Engine::Postgres, Some(column)) if column.declared == "bytea" => {
                format!("'\\x' || encode({}, 'hex')", quote(name))
            }
            (Engine::Postgres, _) => format!("{}::text", quote(name)),
            (Engine::Sqlite, _) => quote(name),
        })
        .collect();
    // Locks are taken in key order, so that two writers cannot deadlock.
    let order: Vec<String> = rows.by.iter().map(|name| quote(name)).collect();
    let lock = if lock && engine == Engine::Postgres {
        format!(" ORDER BY {} FOR UPDATE", order.join(", "))
    } else {
        String::new()
    };
    let statement = |keys: &[Vec<FetchedValue>]| {
        let mut params = Vec::new();
        let condition = key_condition(shape, &rows.by, keys, &mut params);
        (format!("SELECT {} FROM {} WHERE {condition}{lock}", columns.join(", "), qualified(&rows.table)), params)
    };
    rows.keys.chunks(KEYS).map(statement).collect()
}

/// The statements that count rows, without a lock.
pub fn count_statements(shape: &TableShape, rows: &StoredRows) -> Vec<(String, Vec<Param>)> {
    let statement = |keys: &[Vec<FetchedValue>]| {
        let mut params = Vec::new();
        let condition = key_condition(shape, &rows.by, keys, &mut params);
        (format!("SELECT count(*) FROM {} WHERE {condition}", qualified(&rows.table)), params)
    };
    rows.keys.chunks(if rows.by.len() == 1 { VALUES } else { KEYS }).map(statement).collect()
}

/// Converts answers to rows.
pub fn images(shape: &TableShape, answers: Vec<RawRow>) -> Vec<Image> {
    let names = shape.names();
    answers.into_iter().map(|row| image(&names, row)).collect()
}

fn image(names: &[Arc<str>], row: RawRow) -> Image {
    Image(names.iter().cloned().zip(row).collect())
}

/// Adds answers to a state one by one.
pub fn state_taker<'r>(shape: &TableShape, into: &'r mut StateReading) -> impl FnMut(RawRow) + use<'r> {
    let names = shape.names();
    move |row| into.add(&image(&names, row))
}

impl ShapeReader<'_> {
    /// The stored columns of a table.
    ///
    /// # Errors
    /// [`StoreError::NoTable`] if it does not exist, or the engine's refusal.
    pub async fn shape(self, table: &TableName) -> Result<Arc<TableShape>, StoreError> {
        match self.store.shapes.known(table) {
            Some(shape) => Ok(shape),
            None => self.shape_now(table).await,
        }
    }

    /// The stored columns of a table, read again without the cache.
    ///
    /// # Errors
    /// As [`ShapeReader::shape`].
    pub async fn shape_now(self, table: &TableName) -> Result<Arc<TableShape>, StoreError> {
        let (sql, params) = question(self.store.engine(), table);
        let rows = self.store.sessions.fetch(&sql, &params).await?;
        self.store.shapes.keep(self.store.engine(), table, &rows).ok_or_else(|| StoreError::NoTable(table.title()))
    }

    /// A table whose rows the database deletes or changes with those of this one, and that we may not read completely,
    /// or in which row-level security may hide rows; always `None` for SQLite.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn unseen_dependent(self, table: &TableName) -> Result<Option<TableName>, StoreError> {
        if self.store.engine() == Engine::Sqlite {
            return Ok(None);
        }
        let params = [FetchedValue::Text(table.schema.clone()), FetchedValue::Text(table.name.clone())];
        let rows = self.store.sessions.fetch(DEPENDENTS_POSTGRES, &params).await?;
        let mut dependents = rows.iter().map(|row| (TableName::new(fetched::text(row, 0), fetched::text(row, 1)), row));
        let hides = |table: &TableName| {
            self.store.catalog.exactly(&table.schema, &table.name).is_some_and(|table| table.hides_rows)
        };
        let unseen = dependents.find(|(table, row)| hides(table) || row.get(2) == Some(&FetchedValue::Integer(1)));
        Ok(unseen.map(|(table, _)| table))
    }

    /// Reads the state of PostgreSQL's sequence for a column.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn numbering(self, table: &TableName, column: &str) -> Result<RowNumbering, StoreError> {
        let params = [FetchedValue::Text(qualified(table)), FetchedValue::Text(column.to_owned())];
        let rows = self.store.sessions.fetch(NUMBERING, &params).await?;
        let number = |at| rows.first().and_then(|row| fetched::integer(row, at)).unwrap_or_default();
        Ok(RowNumbering { last: number(0), most: number(1).max(number(0)) })
    }

    /// Whether other tables inherit from an unpartitioned table; false for SQLite.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn has_heirs(self, table: &TableName) -> Result<bool, StoreError> {
        let params = [&table.schema, &table.name].map(|name| FetchedValue::Text(name.clone()));
        let is_server = self.store.engine() == Engine::Postgres;
        Ok(is_server && !self.store.sessions.fetch(HEIRS, &params).await?.is_empty())
    }

    /// Number of stored PostgreSQL rows that are in an inheriting table.
    ///
    /// # Errors
    /// As [`ShapeReader::shape`].
    pub async fn in_heirs(self, rows: &StoredRows) -> Result<usize, StoreError> {
        let shape = self.shape(&rows.table).await?;
        let mut count = 0;
        for (sql, params) in count_statements(&shape, rows) {
            let sql = format!("{sql} AND tableoid <> {}", table_number(&rows.table));
            let found = self.store.sessions.fetch(&sql, &params).await?;
            count += found.first().map_or(0, |row| fetched::number(row, 0) as usize);
        }
        Ok(count)
    }

    /// Reads some columns of stored rows, and their key columns, without a lock.
    ///
    /// # Errors
    /// As [`ShapeReader::shape`].
    pub async fn images_of(self, rows: &StoredRows, columns: &[String]) -> Result<Vec<Image>, StoreError> {
        let shape = self.shape(&rows.table).await?.narrowed(columns, &rows.by);
        let mut answers = Vec::new();
        for (sql, params) in image_statements(&shape, rows, false) {
            answers.extend(self.store.sessions.fetch(&sql, &params).await?);
        }
        Ok(images(&shape, answers))
    }

    /// The current state of stored rows, without a lock, for some columns, or all if none is named.
    ///
    /// # Errors
    /// As [`ShapeReader::shape`].
    pub async fn state_of(self, rows: &StoredRows, columns: Vec<String>) -> Result<ReadState, StoreError> {
        let shape = self.shape(&rows.table).await?.narrowed(&columns, &rows.by);
        let mut state = StateReading::of(columns);
        for (sql, params) in image_statements(&shape, rows, false) {
            let mut take = state_taker(&shape, &mut state);
            let each = |row| {
                take(row);
                ControlFlow::Continue(())
            };
            self.store.sessions.scan(&sql, &params, each).await?;
        }
        Ok(state.close())
    }

    /// As [`ShapeReader::images_of`]; returns no rows if they exceed some bytes.
    ///
    /// # Errors
    /// As [`ShapeReader::shape`].
    pub async fn images_within(
        self,
        rows: &StoredRows,
        columns: &[String],
        most: usize,
    ) -> Result<(Vec<Image>, bool), StoreError> {
        let shape = self.shape(&rows.table).await?.narrowed(columns, &rows.by);
        let (mut found, mut bytes) = (Vec::new(), 0);
        for (sql, params) in image_statements(&shape, rows, false) {
            let take = |row: RawRow| {
                bytes += ROW + row_size(&row);
                found.push(row);
                if bytes > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            self.store.sessions.scan(&sql, &params, take).await?;
            if bytes > most {
                return Ok((Vec::new(), true));
            }
        }
        Ok((images(&shape, found), false))
    }

    /// Reads complete stored rows, without a lock.
    ///
    /// # Errors
    /// As [`ShapeReader::shape`].
    pub async fn images(self, rows: &StoredRows) -> Result<Vec<Image>, StoreError> {
        self.images_of(rows, &[]).await
    }
}

#[cfg(test)]
mod tests {
    use super::cast;

    #[test]
    fn a_cast_cuts_nothing() {
        for (declared, expected) in [
            ("bit(4)", "bit varying"),
            ("bit", "bit varying"),
            ("bit(4)[]", "bit varying[]"),
            ("bit varying(9)", "bit varying"),
            ("character(20)", "text"),
            ("character varying(3)[]", "character varying[]"),
            ("numeric(4,3)", "numeric"),
            ("timestamp(3) with time zone", "timestamp with time zone"),
            ("interval(2)", "interval"),
            ("bigint[]", "bigint[]"),
        ] {
            assert_eq!(cast(declared), expected, "{declared}");
        }
    }
}
