//! Stored values, rows and changes as plain data: the contents of plans and undos, and the input of hashes.

use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::fetched::FetchedValue;
use super::row_number::{is_numbered, is_row_number};
use crate::layout::TimeSpelling;
use crate::layout::erase::TableKey;

/// Bytes counted per row in addition to its values.
pub const ROW: usize = 100;

/// Rows per read, if they may be large.
const PART: usize = 20;

/// A table: schema (PostgreSQL) or attached name (SQLite), and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TableName {
    /// Schema.
    pub schema: String,
    /// Name as stored.
    pub name: String,
}

impl TableName {
    /// A table by schema and name.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        TableName { schema: schema.into(), name: name.into() }
    }

    /// A table as a layout names it.
    pub fn of((schema, name): &TableKey) -> Self {
        TableName::new(schema.as_str(), name.as_str())
    }

    /// Name for people: without default schemas.
    pub fn title(&self) -> String {
        match self.schema.as_str() {
            "main" | "public" => self.name.clone(),
            schema => format!("{schema}.{}", self.name),
        }
    }
}

/// Rows of a table whose columns `by` equal one of `keys`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRows {
    /// The table.
    pub table: TableName,
    /// Columns that are compared.
    pub by: Vec<String>,
    /// Values of these columns, one list per row or group of rows.
    pub keys: Vec<Vec<FetchedValue>>,
}

impl StoredRows {
    /// The rows with a value in a column.
    pub fn with(table: &TableName, column: &str, value: FetchedValue) -> Self {
        StoredRows { table: table.clone(), by: vec![column.to_owned()], keys: vec![vec![value]] }
    }

    /// Whether some of them are identified only by row number, which the engine may reuse.
    pub fn are_by_number(&self) -> bool {
        let is_by_number = |key: &Vec<FetchedValue>| {
            let columns = key.split_last().map_or(&[][..], |(_, columns)| columns);
            columns.is_empty() || columns.contains(&FetchedValue::Null)
        };
        is_numbered(&self.by) && self.keys.iter().any(is_by_number)
    }

    /// The rows in chunks that are small enough to read at once.
    pub fn parts(&self) -> impl Iterator<Item = StoredRows> {
        self.in_parts(PART)
    }

    /// The rows in chunks of `rows`.
    pub fn in_parts(&self, rows: usize) -> impl Iterator<Item = StoredRows> {
        self.keys.chunks(rows).map(|keys| StoredRows { keys: keys.to_vec(), ..self.without_keys() })
    }

    /// The same table and columns, without keys.
    pub fn without_keys(&self) -> Self {
        StoredRows { table: self.table.clone(), by: self.by.clone(), keys: Vec::new() }
    }

    /// Size of the keys in bytes, with an overhead per row.
    pub fn size(&self) -> usize {
        let values = self.keys.iter().map(|key| ROW + key.iter().map(FetchedValue::size).sum::<usize>());
        values.sum()
    }
}

/// One stored row, column by column; on SQLite with its hidden row number, if it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Image(pub Vec<(Arc<str>, FetchedValue)>);

impl Image {
    /// Value of a column; none when the row has no such column.
    pub fn get(&self, column: &str) -> Option<&FetchedValue> {
        self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(column)).map(|(_, value)| value)
    }

    /// Size of its values in bytes, with their containers.
    pub fn size(&self) -> usize {
        size_of_val(self.0.as_slice()) + self.0.iter().map(|(_, value)| value.size()).sum::<usize>()
    }

    /// The input for the row's hash: everything but the row number, which nobody relies on.
    fn canonical(&self, columns: &[String]) -> String {
        let counts = |name: &str| !is_row_number(name) && (columns.is_empty() || columns.iter().any(|c| c == name));
        let values: Vec<Value> =
            self.0.iter().filter(|(name, _)| counts(name)).map(|(name, value)| json!([&**name, value])).collect();
        Value::from(values).to_string()
    }
}

/// Prefix of the hash over rows that were hashed one by one. Older hashes in trails were made of whole rows.
const BY_ROW: &str = "rows:";

/// Computes the state of rows one by one.
#[derive(Debug)]
pub struct StateReading {
    columns: Vec<String>,
    by_row: bool,
    /// Their hashes, or whole rows.
    rows: Vec<Box<[u8]>>,
}

impl StateReading {
    /// Starts with no rows; hashes these columns, or all if none is named.
    pub fn of(columns: Vec<String>) -> Self {
        StateReading { columns, by_row: true, rows: Vec::new() }
    }

    /// Starts with no rows, for comparison with a state.
    pub fn like(state: &ReadState) -> Self {
        StateReading { by_row: state.hash.starts_with(BY_ROW), ..StateReading::of(state.columns.clone()) }
    }

    /// Adds a row.
    pub fn add(&mut self, image: &Image) {
        let row = image.canonical(&self.columns).into_bytes();
        self.rows.push(if self.by_row { Sha256::digest(&row).as_slice().into() } else { row.into() });
    }

    /// The state of all rows added.
    pub fn close(mut self) -> ReadState {
        self.rows.sort_unstable();
        let mut hasher = Sha256::new();
        for row in &self.rows {
            hasher.update((row.len() as u64).to_be_bytes());
            hasher.update(row);
        }
        let begins = if self.by_row { BY_ROW } else { "" };
        let hash = format!("{begins}{}", hex::encode(hasher.finalize()));
        ReadState { count: self.rows.len(), columns: self.columns, hash }
    }
}

/// State of some rows when they were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadState {
    /// Number of rows.
    pub count: usize,
    /// Columns included in the hash; empty for all.
    pub columns: Vec<String>,
    /// SHA-256, in hexadecimal, over the rows in any order, in the form of [`StateReading`].
    pub hash: String,
}

impl ReadState {
    /// Computes the state of rows for some columns, or all if none is named.
    pub fn of(images: &[Image], columns: Vec<String>) -> Self {
        let mut reading = StateReading::of(columns);
        images.iter().for_each(|image| reading.add(image));
        reading.close()
    }

    /// Whether rows are in this state.
    pub fn holds(&self, images: &[Image]) -> bool {
        let mut reading = StateReading::like(self);
        images.iter().for_each(|image| reading.add(image));
        self.count == images.len() && self.hash == reading.close().hash
    }
}

/// Rows that a plan relies on, with their state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowWatch {
    /// Rows that are watched.
    pub rows: StoredRows,
    /// State of the rows when they were read.
    pub state: ReadState,
}

impl RowWatch {
    /// Watches only the number of rows.
    pub fn of_number(rows: StoredRows, count: usize) -> Self {
        RowWatch { state: ReadState { count, columns: rows.by.clone(), hash: String::new() }, rows }
    }

    /// Whether only the number of rows matters.
    pub fn is_of_number(&self) -> bool {
        self.state.hash.is_empty()
    }
}

/// A canonical time in a database's spelling.
pub fn spell(spelling: TimeSpelling, canonical: &str) -> FetchedValue {
    let micros = || crate::memory::time::epoch_micros(canonical).unwrap_or_default();
    match spelling {
        TimeSpelling::Canonical => FetchedValue::Text(canonical.to_owned()),
        TimeSpelling::Naive => FetchedValue::Text(canonical.replace('T', " ").replace('Z', "")),
        TimeSpelling::Offset => FetchedValue::Text(canonical.replace('Z', "+00:00")),
        TimeSpelling::Seconds => FetchedValue::Text(cut(canonical, 19)),
        TimeSpelling::Millis => FetchedValue::Text(cut(canonical, 23)),
        TimeSpelling::Epoch => FetchedValue::Integer(micros().div_euclid(1_000_000)),
        TimeSpelling::EpochReal => FetchedValue::Real(micros() as f64 / 1e6),
        TimeSpelling::EpochMillis => FetchedValue::Integer(micros().div_euclid(1_000)),
    }
}

/// The first letters of a canonical time.
fn cut(canonical: &str, letters: usize) -> String {
    canonical.get(..letters).map_or_else(|| canonical.to_owned(), |time| format!("{time}Z"))
}

/// A value to be written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// This value.
    Is(FetchedValue),
    /// The time at which the change is applied.
    Now(TimeSpelling),
}

impl Cell {
    /// Size of the value in bytes.
    pub fn size(&self) -> usize {
        if let Cell::Is(value) = self { value.size() } else { 0 }
    }

    /// The value at a time in the canonical spelling.
    pub fn at(&self, now: &str) -> FetchedValue {
        match self {
            Cell::Is(raw) => raw.clone(),
            Cell::Now(spelling) => spell(*spelling, now),
        }
    }
}

impl From<FetchedValue> for Cell {
    fn from(raw: FetchedValue) -> Self {
        Cell::Is(raw)
    }
}

/// One change of stored rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mutation {
    /// New rows.
    Insert {
        /// Table that gets the rows.
        table: TableName,
        /// Columns that identify the rows; empty if the engine numbers them.
        key: Vec<String>,
        /// Columns to set.
        columns: Vec<String>,
        /// Their values, row after row.
        rows: Vec<Vec<Cell>>,
    },
    /// Columns of one row.
    Update {
        /// Table of the row.
        table: TableName,
        /// Columns and values that identify the row.
        key: Vec<(String, FetchedValue)>,
        /// Columns and their new values.
        set: Vec<(String, Cell)>,
    },
    /// Rows to delete, each of which must exist.
    Delete(StoredRows),
    /// The same columns of many rows, each row only if it still has its old values.
    Revise(RowRevisions),
}

/// Changes the same columns in many rows. Every row must still have its old values: a row that does not is left
/// unchanged, and the change as a whole then counts as missed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RowRevisions {
    /// Table of the rows.
    pub table: TableName,
    /// Columns that identify a row.
    pub key: Vec<String>,
    /// Columns that change.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Revision>,
    /// Columns that get the time of the change; neither compared nor restored.
    pub touch: Vec<(String, TimeSpelling)>,
}

/// One row of a [`RowRevisions`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Revision(
    /// Values that identify it.
    pub Vec<FetchedValue>,
    /// Values of the columns before the change.
    pub Vec<FetchedValue>,
    /// Values of the columns after the change.
    pub Vec<FetchedValue>,
);

impl RowRevisions {
    /// The inverse change.
    pub fn inverse(&self) -> RowRevisions {
        let rows =
            self.rows.iter().map(|Revision(key, before, after)| Revision(key.clone(), after.clone(), before.clone()));
        RowRevisions { rows: rows.collect(), ..self.clone_without_rows() }
    }

    /// The same without any rows.
    pub fn clone_without_rows(&self) -> RowRevisions {
        RowRevisions {
            table: self.table.clone(),
            key: self.key.clone(),
            columns: self.columns.clone(),
            rows: Vec::new(),
            touch: self.touch.clone(),
        }
    }
}

impl Mutation {
    /// The table that is changed.
    pub fn table(&self) -> &TableName {
        match self {
            Mutation::Insert { table, .. } | Mutation::Update { table, .. } => table,
            Mutation::Delete(rows) => &rows.table,
            Mutation::Revise(revise) => &revise.table,
        }
    }

    /// `insert`, `update` or `delete`, and the number of rows.
    pub fn count(&self) -> (&'static str, usize) {
        match self {
            Mutation::Insert { rows, .. } => ("insert", rows.len()),
            Mutation::Update { .. } => ("update", 1),
            Mutation::Delete(rows) => ("delete", rows.keys.len()),
            Mutation::Revise(revise) => ("update", revise.rows.len()),
        }
    }

    /// Size of its values in bytes, with an overhead per row.
    pub fn size(&self) -> usize {
        let values = |values: &Vec<FetchedValue>| values.iter().map(FetchedValue::size).sum::<usize>();
        match self {
            Mutation::Insert { rows, .. } => {
                rows.iter().map(|row| ROW + row.iter().map(Cell::size).sum::<usize>()).sum()
            }
            Mutation::Update { key, set, .. } => {
                let key: usize = key.iter().map(|(_, value)| value.size()).sum();
                ROW + key + set.iter().map(|(_, new)| new.size()).sum::<usize>()
            }
            Mutation::Delete(rows) => rows.size(),
            Mutation::Revise(RowRevisions { rows, .. }) => {
                rows.iter().map(|Revision(key, was, new)| ROW + values(key) + values(was) + values(new)).sum()
            }
        }
    }

    /// The rows it affects, by their keys; `None` for rows that the engine numbers.
    pub fn rows(&self) -> Option<StoredRows> {
        match self {
            Mutation::Delete(rows) => Some(rows.clone()),
            Mutation::Revise(RowRevisions { table, key, rows, .. }) => {
                let keys = rows.iter().map(|row| row.0.clone()).collect();
                Some(StoredRows { table: table.clone(), by: key.clone(), keys })
            }
            Mutation::Update { table, key, .. } => {
                let (by, values) = key.iter().cloned().unzip();
                Some(StoredRows { table: table.clone(), by, keys: vec![values] })
            }
            Mutation::Insert { table, key, columns, rows } => {
                let places: Vec<usize> =
                    key.iter().map(|k| columns.iter().position(|c| c == k)).collect::<Option<_>>()?;
                let keys = rows
                    .iter()
                    .map(|row| places.iter().map(|i| row.get(*i).map(|c| c.at(""))).collect::<Option<Vec<_>>>())
                    .collect::<Option<Vec<_>>>()?;
                (!key.is_empty()).then(|| StoredRows { table: table.clone(), by: key.clone(), keys })
            }
        }
    }

    /// Whether the change itself compares every row with its old values, so that the rows need no other watch.
    pub fn watches_itself(&self) -> bool {
        matches!(self, Mutation::Revise(_))
    }
}

impl Serialize for FetchedValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, value) = match self {
            FetchedValue::Null => return serializer.serialize_unit(),
            FetchedValue::Text(text) => return serializer.serialize_str(text),
            FetchedValue::BadText(bytes) => ("text_bytes", Value::from(hex::encode(bytes))),
            FetchedValue::Bytes(bytes) => ("bytes", Value::from(hex::encode(bytes))),
            FetchedValue::Integer(i) => ("integer", Value::from(*i)),
            // As text, which converts back to the same bits.
            FetchedValue::Real(x) => ("real", Value::from(x.to_string())),
        };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(kind, &value)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for FetchedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let unknown = || D::Error::custom("a stored value is null, a text, or one of integer, real, bytes, text_bytes");
        let object = match &value {
            Value::Null => return Ok(FetchedValue::Null),
            Value::String(text) => return Ok(FetchedValue::Text(text.clone())),
            Value::Object(object) => object,
            _ => return Err(unknown()),
        };
        let (kind, held) = object.iter().next().filter(|_| object.len() == 1).ok_or_else(unknown)?;
        let bytes = || held.as_str().and_then(|text| hex::decode(text).ok());
        match kind.as_str() {
            "integer" => held.as_i64().map(FetchedValue::Integer),
            "real" => held.as_str().and_then(|text| text.parse().ok()).map(FetchedValue::Real),
            "bytes" => bytes().map(FetchedValue::Bytes),
            "text_bytes" => bytes().map(FetchedValue::BadText),
            _ => None,
        }
        .ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::row_number::hidden;

    fn any_raw() -> impl Strategy<Value = FetchedValue> {
        prop_oneof![
            Just(FetchedValue::Null),
            any::<String>().prop_map(FetchedValue::Text),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(FetchedValue::Bytes),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(FetchedValue::BadText),
            any::<i64>().prop_map(FetchedValue::Integer),
            any::<f64>().prop_filter("SQLite stores no NaN", |x| !x.is_nan()).prop_map(FetchedValue::Real),
        ]
    }

    proptest! {
        #[test]
        fn stored_values_survive_json(raw in any_raw()) {
            let text = serde_json::to_string(&raw).unwrap();
            let back: FetchedValue = serde_json::from_str(&text).unwrap();
            // The texts distinguish 0 from -0, which compare as equal.
            prop_assert_eq!(serde_json::to_string(&back).unwrap(), text);
            prop_assert_eq!(&raw, &back);
        }

        #[test]
        fn a_state_knows_no_order_but_every_value(a in any_raw(), b in any_raw()) {
            let image = |raw: &FetchedValue| Image(vec![("c".into(), raw.clone())]);
            let (one, two) = (image(&a), image(&b));
            prop_assert!(state(&[one.clone(), two.clone()]).holds(&[two.clone(), one.clone()]));
            let same = serde_json::to_string(&a).unwrap() == serde_json::to_string(&b).unwrap();
            prop_assert_eq!(state(&[one]).holds(&[two]), same);
        }
    }

    #[test]
    fn an_epoch_keeps_its_fraction_and_is_not_rounded_up_before_1970() {
        let time = "1969-12-31T23:59:59.500000Z";
        assert_eq!(spell(TimeSpelling::Epoch, time), FetchedValue::Integer(-1));
        assert_eq!(spell(TimeSpelling::EpochReal, time), FetchedValue::Real(-0.5));
        assert_eq!(spell(TimeSpelling::EpochMillis, time), FetchedValue::Integer(-500));
    }

    fn state(images: &[Image]) -> ReadState {
        ReadState::of(images, Vec::new())
    }

    #[test]
    fn a_state_of_whole_rows_is_understood() {
        let row = |n| Image(vec![("id".into(), FetchedValue::Integer(n))]);
        let text = |n: i64| json!([["id", FetchedValue::Integer(n)]]).to_string();
        let mut hasher = Sha256::new();
        [1, 2].map(text).iter().for_each(|row| {
            hasher.update((row.len() as u64).to_be_bytes());
            hasher.update(row);
        });
        let kept = ReadState { count: 2, columns: Vec::new(), hash: hex::encode(hasher.finalize()) };
        assert!(kept.holds(&[row(2), row(1)]));
        assert!(!kept.holds(&[row(2), row(3)]));
    }

    #[test]
    fn the_row_number_is_no_part_of_a_state() {
        let image =
            |n| Image(vec![(hidden("rowid").into(), FetchedValue::Integer(n)), ("id".into(), FetchedValue::Null)]);
        assert!(state(&[image(1)]).holds(&[image(2)]));
    }
}
