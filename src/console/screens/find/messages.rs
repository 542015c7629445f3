//! Rows that hold words.

use crate::memory::Row;
use crate::memory::search::SearchHit;

/// Rows of one kind that hold what is looked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundRows {
    /// The rows, only their texts read, each with where it has the words.
    pub rows: Vec<(Row, SearchHit)>,
    /// Cursor for the next page; none at the end.
    pub next: Option<String>,
}
