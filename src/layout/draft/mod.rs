//! Drafts a layout for a database that nobody described: guesses from names, declared types, keys and sampled values.
//!
//! Rules go by general evidence, never by the name of a product. Nothing here reads a database: it is given [`SampledTable`]s.

mod document;
mod evidence;
mod names;
mod owner;
mod source;
mod text;

use super::Engine;

pub use text::draft;

/// Bytes of a value that are sampled.
pub const CUT: usize = 65_536;

/// A sampled value as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Sample {
    /// SQL NULL.
    Null,
    /// A whole number, or a truth value.
    Integer(i64),
    /// A number.
    Real(f64),
    /// Text, perhaps cut off at its end.
    Text(String),
    /// Bytes that are not text, perhaps cut off at their end.
    Bytes(Vec<u8>),
}

/// A column with some of its values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampledColumn {
    /// Name as stored.
    pub name: String,
    /// Declared type in lower case.
    pub declared: String,
    /// Values, one for each sampled row.
    pub values: Vec<Sample>,
}

/// A column that names a row of another table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledReference {
    /// The column.
    pub column: String,
    /// The other table, as a layout names it.
    pub table: String,
    /// Column of the other table.
    pub to: String,
}

/// A table with some of its rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampledTable {
    /// Name as a layout names it: with its schema where the table is not found without that.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<SampledColumn>,
    /// Columns of the primary key, in order.
    pub key: Vec<String>,
    /// SQL for the hidden row number, where rows have one.
    pub row_number: Option<String>,
    /// Declared foreign keys.
    pub references: Vec<SampledReference>,
    /// Rows that were sampled.
    pub rows: usize,
}

/// The SQL that a draft may need, in the words of one engine.
pub trait DraftSql {
    /// The engine.
    fn engine(&self) -> Engine;
    /// A column of the alias `t`.
    fn column(&self, name: &str) -> String;
    /// Several columns of the alias `t` as one text: a JSON list.
    fn tuple(&self, columns: &[String]) -> String;
    /// A table's name and a column of the alias `t` as one text: a JSON list.
    fn tagged(&self, table: &str, column: &str) -> String;
    /// Texts of several columns of the alias `t`, with a blank between them.
    fn joined(&self, columns: &[String]) -> String;
    /// Seconds since 1970 out of a column that holds time-ordered UUIDs of version 6 or 7.
    fn uuid_time(&self, column: &str, version: u8) -> String;
    /// The key of the row of another table that a column of the alias `t` names by something else.
    fn key_of(&self, reference: &SampledReference, key: &str) -> String;
    /// Text after FROM: the distinct values of a column under the name `id`.
    fn distinct(&self, table: &str, column: &str) -> String;
}

/// Certainty of a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sure {
    Low,
    Medium,
    High,
}

impl Sure {
    fn word(self) -> &'static str {
        match self {
            Sure::Low => "low",
            Sure::Medium => "medium",
            Sure::High => "high",
        }
    }
}

/// A layout's name out of where the database is: the last part of it, in small letters.
#[must_use]
pub fn name_of(location: &str) -> String {
    let last =
        location.split('?').next().unwrap_or(location).trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
    let letters: String =
        stem.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    format!("{}-draft", letters.trim_matches('-')).trim_start_matches('-').to_owned()
}
