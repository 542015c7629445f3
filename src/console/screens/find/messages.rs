//! Rows that match a search.

use crate::memory::Row;
use crate::memory::search::SearchHit;

/// Rows of one entity that match a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundRows {
    /// The rows with only their texts read, each with its matches.
    pub rows: Vec<(Row, SearchHit)>,
    /// Cursor for the next page; `None` at the end.
    pub next: Option<String>,
}
