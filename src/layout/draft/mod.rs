//! Drafts a layout for an unknown database by guessing from names, declared types, keys and sampled values.
//!
//! The rules use general evidence, never the name of a product. Nothing here reads a database: the input is
//! [`SampledTable`]s.

mod document;
mod evidence;
mod names;
mod owner;
mod source;
mod text;

use super::Engine;

pub use text::draft;

/// Most bytes sampled of a value.
pub const CUT: usize = 65_536;

/// A sampled value as stored.
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
    /// Bytes that are not text, perhaps truncated.
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
    /// Name as in a layout: with its schema if the table is not found without.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<SampledColumn>,
    /// Columns of the primary key, in order.
    pub key: Vec<String>,
    /// SQL for the hidden row number, if rows have one.
    pub row_number: Option<String>,
    /// Declared foreign keys.
    pub references: Vec<SampledReference>,
    /// Rows that were sampled.
    pub rows: usize,
}

/// SQL fragments for a draft, in one engine's dialect.
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
    /// Seconds since 1970 from a column with time-ordered UUIDs of version 6 or 7.
    fn uuid_time(&self, column: &str, version: u8) -> String;
    /// The key of a row of another table that a column of the alias `t` refers to by another column.
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

/// A name for a layout: the last part of the database's location, in lower case.
pub fn name_of(location: &str) -> String {
    let last =
        location.split('?').next().unwrap_or(location).trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = last.rsplit_once('.').map_or(last, |(stem, _)| stem);
    let letters: String =
        stem.chars().map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    format!("{}-draft", letters.trim_matches('-')).trim_start_matches('-').to_owned()
}
