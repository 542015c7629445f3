//! Walks over the rows of a source for jobs: by key from the end of the last batch, or by values of a column. Returns
//! canonical values together with the stored ones, which a change compares.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use serde::Serialize;

use super::codec;
use super::dialect::{self, PgType, quote};
use super::encode::{plain_column, table_of};
use super::fetched::FetchedValue;
use super::select::{Projection, SelectStatement, from_clause, is_uuid};
use super::{RowWalks, StoreError, shape};
use crate::layout::{BoundSource, Engine, StoredAs};
use crate::memory::Row;
use crate::memory::query::PART;

/// A condition on a canonical column read from one stored column. It only narrows: the resulting rows must be checked
/// by their canonical values.
#[derive(Debug, Clone, PartialEq)]
pub enum NarrowCondition<'a> {
    /// The column has a value.
    Present(&'a str),
    /// The column has no value.
    Absent(&'a str),
    /// No value, or a text short enough to be an empty list.
    Short(&'a str),
    /// One of these texts.
    OneOf(&'a str, &'a [String]),
    /// A list with one of these texts.
    Names(&'a str, &'a [String]),
}

/// Most characters of an empty list with whitespace.
const SHORT: usize = 16;

/// Selection of rows, and of the columns to read from them.
#[derive(Debug, Clone)]
pub struct RowWalk<'a> {
    /// Source of the rows.
    pub source: &'a BoundSource,
    /// Canonical columns to read.
    pub columns: &'a [&'a str],
    /// Stored columns to read unchanged.
    pub stored: &'a [String],
    /// Conditions that narrow the rows.
    pub narrow: Vec<NarrowCondition<'a>>,
}

/// A row of a walk.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkedRow {
    /// Canonical values of the requested columns.
    pub row: Row,
    /// The stored id.
    pub key: FetchedValue,
    /// The requested stored columns.
    pub stored: Vec<FetchedValue>,
}

/// Rows of a walk, read together.
#[derive(Debug, Default)]
pub struct WalkedPart {
    /// The rows, by id.
    pub rows: Vec<WalkedRow>,
    /// Whether more rows may follow.
    pub is_full: bool,
}

impl RowWalks<'_> {
    /// Reads the next rows by id, at most `limit`, and fewer if they are large.
    ///
    /// # Errors
    /// [`StoreError::Unordered`] if the id is not one plain column of a table, or the engine's refusal.
    pub async fn walk(
        self,
        walk: &RowWalk<'_>,
        after: Option<&FetchedValue>,
        limit: usize,
    ) -> Result<WalkedPart, StoreError> {
        let (id, declared) = key_of(walk.source)?;
        let (mut statement, projection) = self.walking(walk, id);
        if let Some(after) = after {
            let mark = shape::placeholder(self.store.engine(), statement.params.len() + 1, after, declared);
            statement.params.push(after.clone());
            let _ = write!(statement.sql, " AND t.{} > {mark}", quote(id));
        } else {
            let _ = write!(statement.sql, " AND t.{} IS NOT NULL", quote(id));
        }
        let _ = write!(statement.sql, " ORDER BY t.{} LIMIT {limit}", quote(id));
        let (raws, is_broken_off) = self.store.fetch_within(&statement, PART).await?;
        let rows: Vec<WalkedRow> = raws.into_iter().map(|raw| found(walk, &projection, raw)).collect();
        let is_full = is_broken_off || rows.len() == limit;
        Ok(WalkedPart { rows, is_full })
    }

    /// All rows that pass the conditions, unordered.
    ///
    /// # Errors
    /// As [`RowWalks::walk`].
    pub async fn walk_all(self, walk: &RowWalk<'_>) -> Result<Vec<WalkedRow>, StoreError> {
        let (id, _) = key_of(walk.source)?;
        let (statement, projection) = self.walking(walk, id);
        let rows = self.store.fetch(&statement).await?;
        Ok(rows.into_iter().map(|raw| found(walk, &projection, raw)).collect())
    }

    /// Passes each of these rows to `each` as it comes, unordered.
    ///
    /// # Errors
    /// As [`RowWalks::walk`].
    pub async fn walk_each(self, walk: &RowWalk<'_>, mut each: impl FnMut(WalkedRow) + Send) -> Result<(), StoreError> {
        let each = |found| {
            each(found);
            ControlFlow::Continue(())
        };
        self.walk_until(walk, each).await
    }

    /// As [`RowWalks::walk_each`], until `each` breaks.
    ///
    /// # Errors
    /// As [`RowWalks::walk`].
    pub async fn walk_until(
        self,
        walk: &RowWalk<'_>,
        mut each: impl FnMut(WalkedRow) -> ControlFlow<()> + Send,
    ) -> Result<(), StoreError> {
        let (id, _) = key_of(walk.source)?;
        let (statement, projection) = self.walking(walk, id);
        self.store.scan(&statement, |raw| each(found(walk, &projection, raw))).await
    }

    /// Counts the rows that meet the conditions.
    ///
    /// # Errors
    /// As [`RowWalks::walk`].
    pub async fn walk_count(self, walk: &RowWalk<'_>) -> Result<u64, StoreError> {
        let keep = walk.source.keep.as_deref().unwrap_or("1 = 1");
        let sql = format!("SELECT count(*) FROM {} WHERE {keep}", from_clause(walk.source));
        let mut statement = SelectStatement::new(self.store.engine(), sql);
        self.narrow_walk(walk, &mut statement);
        match self.store.fetch(&statement).await?.first().and_then(|row| row.first()) {
            Some(FetchedValue::Integer(count)) => Ok((*count).max(0) as u64),
            _ => Ok(0),
        }
    }

    /// Counts the rows of several walks together.
    ///
    /// # Errors
    /// As [`RowWalks::walk`].
    pub async fn walk_count_all<'w>(
        self,
        walks: impl IntoIterator<Item = RowWalk<'w>> + Send,
    ) -> Result<u64, StoreError> {
        let mut total = 0;
        for walk in walks.into_iter().collect::<Vec<_>>() {
            total += self.walk_count(&walk).await?;
        }
        Ok(total)
    }

    /// The values, as texts, that several rows have in a column.
    ///
    /// # Errors
    /// As [`RowWalks::walk`].
    pub async fn walk_shared(self, walk: &RowWalk<'_>, column: &str) -> Result<Vec<String>, StoreError> {
        let Some((name, _)) = plain_column(walk.source, column) else { return Ok(Vec::new()) };
        let bare = format!("t.{}", quote(name));
        let read = if self.store.engine() == Engine::Postgres { format!("{bare}::text") } else { bare.clone() };
        let keep = walk.source.keep.as_deref().unwrap_or("1 = 1");
        let sql = format!("SELECT {read} FROM {} WHERE {keep}", from_clause(walk.source));
        let mut statement = SelectStatement::new(self.store.engine(), sql);
        self.narrow_walk(walk, &mut statement);
        let _ = write!(statement.sql, " GROUP BY {bare} HAVING count(*) > 1");
        let rows = self.store.fetch(&statement).await?;
        Ok(rows.into_iter().filter_map(text_of).collect())
    }

    /// Reads the next distinct texts of a column, in order, at most `limit`.
    ///
    /// # Errors
    /// The engine's refusal. Empty for a column that is not plain.
    pub async fn values(
        self,
        source: &BoundSource,
        column: &str,
        after: Option<&FetchedValue>,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let Some((name, way)) = plain_column(source, column) else { return Ok(Vec::new()) };
        let (bare, declared) = (format!("t.{}", quote(name)), dialect::declared(&way.origin));
        let keep = source.keep.as_deref().unwrap_or("1 = 1");
        let sql = format!("SELECT {bare} FROM {} WHERE {keep} AND {bare} IS NOT NULL", from_clause(source));
        let mut statement = SelectStatement::new(self.store.engine(), sql);
        if let Some(after) = after {
            let mark = shape::placeholder(self.store.engine(), 1, after, declared);
            statement.params.push(after.clone());
            let _ = write!(statement.sql, " AND {bare} > {mark}");
        }
        let _ = write!(statement.sql, " GROUP BY {bare} ORDER BY {bare} LIMIT {limit}");
        Ok(self.store.fetch(&statement).await?.into_iter().filter_map(text_of).collect())
    }

    /// Counts the distinct values of a column.
    ///
    /// # Errors
    /// As [`RowWalks::values`].
    pub async fn value_count(self, source: &BoundSource, column: &str) -> Result<u64, StoreError> {
        let Some((name, _)) = plain_column(source, column) else { return Ok(0) };
        let keep = source.keep.as_deref().unwrap_or("1 = 1");
        let sql = format!("SELECT count(DISTINCT t.{}) FROM {} WHERE {keep}", quote(name), from_clause(source));
        match self.store.fetch_text(&sql).await?.first().and_then(|row| row.first()) {
            Some(FetchedValue::Integer(count)) => Ok((*count).max(0) as u64),
            _ => Ok(0),
        }
    }

    fn walking(self, walk: &RowWalk<'_>, id: &str) -> (SelectStatement, Projection) {
        let engine = self.store.engine();
        let projection = Projection::new(engine, walk.source, Some(walk.columns), None);
        let reads = |name: &str| stored_read(engine, walk.source, name);
        let keys: Vec<String> = std::iter::once(id).chain(walk.stored.iter().map(String::as_str)).map(reads).collect();
        let mut statement = projection.select(walk.source, &keys);
        self.narrow_walk(walk, &mut statement);
        (statement, projection)
    }

    fn narrow_walk(self, walk: &RowWalk<'_>, statement: &mut SelectStatement) {
        for narrow in &walk.narrow {
            if let Some(condition) = self.condition(walk.source, narrow, statement) {
                let _ = write!(statement.sql, " AND {condition}");
            }
        }
    }

    fn condition(
        self,
        source: &BoundSource,
        narrow: &NarrowCondition<'_>,
        statement: &mut SelectStatement,
    ) -> Option<String> {
        let engine = self.store.engine();
        let column = match narrow {
            NarrowCondition::Present(c)
            | NarrowCondition::Absent(c)
            | NarrowCondition::Short(c)
            | NarrowCondition::OneOf(c, _)
            | NarrowCondition::Names(c, _) => c,
        };
        // A value with several readings is judged by the readings.
        let [way] = source.column(column) else { return None };
        let (name, _) = plain_column(source, column)?;
        let (bare, declared) = (format!("t.{}", quote(name)), dialect::declared(&way.origin));
        let one = way.stored == StoredAs::One;
        Some(match narrow {
            NarrowCondition::Names(_, values) if !one => return holds_one(declared, &bare, values, statement),
            NarrowCondition::Present(_) => format!("{bare} IS NOT NULL"),
            NarrowCondition::Absent(_) => format!("{bare} IS NULL"),
            NarrowCondition::Short(_) if engine == Engine::Sqlite => {
                format!("({bare} IS NULL OR length(CAST({bare} AS TEXT)) < {SHORT})")
            }
            NarrowCondition::Short(_) => format!("({bare} IS NULL OR length({bare}::text) < {SHORT})"),
            NarrowCondition::OneOf(_, values) | NarrowCondition::Names(_, values) => {
                let values: Vec<&String> = match (engine, PgType::of(declared)) {
                    (Engine::Postgres, PgType::Uuid) => values.iter().filter(|v| is_uuid(v)).collect(),
                    _ => values.iter().collect(),
                };
                statement.params.push(FetchedValue::Text(json_text(&values)));
                let at = statement.params.len();
                match engine {
                    Engine::Sqlite => format!("{bare} IN (SELECT value FROM json_each(${at}))"),
                    Engine::Postgres => {
                        let cast = shape::cast(declared);
                        format!("{bare} IN (SELECT value::{cast} FROM jsonb_array_elements_text(${at}::jsonb))")
                    }
                }
            }
        })
    }
}

/// Texts as a JSON list, which cannot fail.
fn json_text(texts: &[impl Serialize]) -> String {
    serde_json::to_string(texts).unwrap_or_default()
}

fn text_of(row: Vec<FetchedValue>) -> Option<String> {
    match row.into_iter().next() {
        Some(FetchedValue::Text(text)) => Some(text),
        Some(FetchedValue::Integer(i)) => Some(i.to_string()),
        _ => None,
    }
}

/// The condition that a stored list contains one of some texts; values that are not JSON lists pass if the engine would
/// fail on them.
fn holds_one(declared: &str, bare: &str, values: &[String], statement: &mut SelectStatement) -> Option<String> {
    let text = json_text(values);
    let mark = format!("${}", statement.params.len() + 1);
    let condition = match (statement.engine, PgType::of(declared)) {
        (Engine::Sqlite, _) => format!(
            "CASE WHEN json_valid({bare}) THEN EXISTS (SELECT 1 FROM json_each({bare}) l WHERE CAST(l.value AS TEXT) IN \
             (SELECT value FROM json_each({mark}))) ELSE 1 END"
        ),
        (_, PgType::Json) => format!(
            "CASE WHEN jsonb_typeof({bare}::jsonb) = 'array' THEN \
             ARRAY(SELECT jsonb_array_elements_text({bare}::jsonb)) && \
             ARRAY(SELECT jsonb_array_elements_text({mark}::jsonb)) ELSE false END"
        ),
        (_, PgType::Array) => {
            format!("{bare}::text[] && ARRAY(SELECT jsonb_array_elements_text({mark}::jsonb))")
        }
        _ => return None,
    };
    statement.params.push(FetchedValue::Text(text));
    Some(condition)
}

/// The stored column of the id, with its declared type.
fn key_of(source: &BoundSource) -> Result<(&str, &str), StoreError> {
    let unordered = || StoreError::Unordered(source.label.clone());
    let (name, way) = plain_column(source, "id").ok_or_else(unordered)?;
    Ok((name, dialect::declared(&way.origin)))
}

/// A stored column, in the form of images.
fn stored_read(engine: Engine, source: &BoundSource, name: &str) -> String {
    let bare = format!("t.{}", quote(name));
    let is_bytes = || {
        let named = |way: &&crate::layout::BoundColumn| matches!(&way.origin, crate::layout::BoundOrigin::Column { name: n, .. } if n == name);
        let way = source.columns.iter().flatten().find(named);
        way.is_some_and(|way| dialect::declared(&way.origin) == "bytea")
    };
    match engine {
        Engine::Sqlite => bare,
        Engine::Postgres if is_bytes() => format!("'\\x' || encode({bare}, 'hex')"),
        Engine::Postgres => format!("{bare}::text"),
    }
}

fn found(walk: &RowWalk<'_>, projection: &Projection, mut raw: Vec<FetchedValue>) -> WalkedRow {
    let row = codec::decode(walk.source, projection, &mut raw);
    let mut own = raw.split_off(projection.len().min(raw.len())).into_iter();
    let key = own.next().unwrap_or(FetchedValue::Null);
    WalkedRow { row, key, stored: own.collect() }
}

/// The table and the stored column of a source's id.
///
/// # Errors
/// [`StoreError::Unordered`] if the id is not one plain column of a table.
pub fn keyed(source: &BoundSource) -> Result<(super::stored::TableName, String), StoreError> {
    Ok((table_of(source), key_of(source)?.0.to_owned()))
}
