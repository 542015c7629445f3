//! Live tail of rows that others write while a list is open: they are counted, never shown unasked, or followed.

use std::collections::BTreeSet;

use super::columns::read_columns;
use super::ticket::Ticket;
use super::window::RowKey;
use crate::memory::query::Query;
use crate::memory::{Entity, Row};

/// Rows that are counted as new; there may be more.
pub const COUNTED: usize = 100;

/// Rows written since a list was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveTail {
    /// The list is being watched.
    pub watching: Option<Ticket>,
    /// Rows that came since the list was read; more than [`COUNTED`] are not counted.
    pub fresh: usize,
    /// The list holds rows that came since those of the whole database were counted.
    pub grown: bool,
    /// The list follows what comes.
    pub follows: bool,
    /// Keys of the newest rows when the list was read.
    known: Option<BTreeSet<RowKey>>,
}

impl LiveTail {
    /// The question that is asked again and again: the newest rows of those that a list shows.
    #[must_use]
    pub fn query(of: Query) -> Query {
        let entity = of.entity;
        let mut columns: Vec<&'static str> = read_columns(entity);
        columns.retain(|column| is_key(entity, column));
        // Texts are not cut: a key that is cut is another one.
        Query { order: None, limit: COUNTED + 1, columns: Some(columns), preview: None, ..of }
    }

    /// The list is read again: nothing is new then.
    pub fn read_again(&mut self) {
        self.grown |= self.fresh > 0;
        (self.fresh, self.known) = (0, None);
    }

    /// Stops following: new rows are only counted from now on.
    pub fn pause(&mut self) {
        self.follows = false;
    }

    /// Ends the watch, and returns its request.
    pub fn release(&mut self) -> Option<Ticket> {
        self.watching.take()
    }

    /// Counts what is new among the newest rows; `held` are the newest that the list shows, where it shows those.
    pub fn count(&mut self, newest: &[Row], held: &[RowKey]) {
        let first = || newest.iter().map(RowKey::of).collect();
        let known =
            self.known.get_or_insert_with(|| if held.is_empty() { first() } else { held.iter().cloned().collect() });
        let is_known = |row: &Row| known.contains(&RowKey::of(row));
        self.fresh = newest.iter().position(is_known).unwrap_or(newest.len());
    }
}

/// Whether a column tells rows apart or orders them.
fn is_key(entity: Entity, column: &str) -> bool {
    matches!(column, "id" | "source") || column == entity.time_column() || entity == Entity::MemoryLink
}
