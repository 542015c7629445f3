//! Rows that nobody can read any more, because a page of the database is damaged.

use super::agreeing;

/// Rows of a table that are on damaged pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadRows {
    /// Name of the table.
    pub table: String,
    /// Number of the rows; `None` if no index tells it.
    pub rows: Option<u64>,
}

impl UnreadRows {
    /// Says it to people.
    pub fn told(&self) -> String {
        let rows = self.rows.map_or_else(|| "some rows".to_owned(), |rows| agreeing(rows, "{#} {row|rows}"));
        format!("{rows} of {} cannot be read", self.table)
    }
}
