//! Live tail of rows that others write while a list is open: they are counted, never shown unasked, or followed.

use std::collections::BTreeSet;

use super::columns::read_columns;
use super::context::Context;
use super::ticket::{RequestFailure, Ticket};
use super::window::RowKey;
use crate::memory::query::{Page, Query};
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
    /// True when something was heard of the newest rows since they are watched: more of it is news.
    heard: bool,
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

    /// A page without the rows that came before those that are held: new ones are counted, not shown unasked.
    #[must_use]
    pub fn without_new(mut page: Page, held: &[Row]) -> Page {
        let held: BTreeSet<RowKey> = held.iter().map(RowKey::of).collect();
        let known = page.rows.iter().position(|row| held.contains(&RowKey::of(row)));
        page.rows.drain(..known.unwrap_or(0));
        page
    }

    /// Begins the watch again after a failure that passes: the first that it tells is that the database answers.
    pub fn awaits(&mut self, failure: Option<&RequestFailure>, cx: &mut Context) {
        if failure.is_some_and(|failure| failure.passes) {
            cx.cancel(self.release());
        }
    }

    /// Ends the watch, and returns its request.
    pub fn release(&mut self) -> Option<Ticket> {
        self.heard = false;
        self.watching.take()
    }

    /// Whether this is not the first that is heard since the rows are watched.
    pub fn hears_more(&mut self) -> bool {
        std::mem::replace(&mut self.heard, true)
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

/// Reading of something again when others wrote: once at a time, and once more when they wrote meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Renewal {
    pending: Option<Ticket>,
    due: bool,
}

impl Renewal {
    /// Others wrote; whether it is to be read again now.
    pub fn is_wanted(&mut self) -> bool {
        self.due = self.pending.is_some();
        !self.due
    }

    /// It is being read again.
    pub fn begin(&mut self, ticket: Ticket) {
        self.pending = Some(ticket);
    }

    /// Whether a reply is the one that is waited for.
    pub fn end(&mut self, ticket: Ticket) -> bool {
        self.pending.take_if(|pending| *pending == ticket).is_some()
    }

    /// Whether others wrote while it was read: it is to be read once more.
    pub fn is_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// Gives it up, and returns its request.
    pub fn release(&mut self) -> Option<Ticket> {
        self.due = false;
        self.pending.take()
    }
}

/// Watch over a place that does not list rows: whether others wrote since it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlaceWatch {
    /// Number of the place.
    pub place: u64,
    /// It is being watched.
    pub watching: Option<Ticket>,
    /// The first that is heard is not news.
    heard: bool,
    /// Others wrote since the place was read.
    pub is_aged: bool,
}

impl PlaceWatch {
    /// Whether what was heard under this number means that others wrote meanwhile.
    pub fn hears(&mut self, ticket: Ticket) -> bool {
        self.watching == Some(ticket) && std::mem::replace(&mut self.heard, true)
    }
}

/// Whether a column distinguishes rows or orders them.
fn is_key(entity: Entity, column: &str) -> bool {
    matches!(column, "id" | "source") || column == entity.time_column() || entity == Entity::MemoryLink
}
