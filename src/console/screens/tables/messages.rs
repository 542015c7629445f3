//! Raw tables, with or without a layout.

use serde_json::Value;

/// A table or view.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableEntry {
    /// Name of the table, with the schema if it is not found without.
    pub name: String,
    /// Table, view, virtual table and the like.
    pub kind: String,
    /// Number of rows; `None` if they cannot be counted.
    pub rows: Option<u64>,
    /// Reason why they were not counted.
    pub rows_reason: Option<String>,
    /// The number is the engine's estimate.
    pub about: bool,
    /// Columns of the primary key.
    pub key: Vec<String>,
    /// Columns with their types.
    pub columns: Vec<(String, String)>,
    /// Entities that a layout reads from the table.
    pub entities: Vec<String>,
    /// Reason why its rows cannot be read.
    pub unread: Option<String>,
}

/// Rows of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TablePage {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, a value for each column.
    pub rows: Vec<Vec<Value>>,
    /// Cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}
