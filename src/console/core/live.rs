//! Live tail of rows that others write while a list is open. New rows are counted, and shown only on request.

use std::collections::BTreeSet;

use super::columns::read_columns;
use super::context::Context;
use super::ticket::{RequestFailure, Ticket};
use super::window::RowKey;
use crate::memory::query::{Page, Query};
use crate::memory::{Entity, Row};

/// Most rows counted as new; there may be more.
pub const COUNTED: usize = 100;

/// Rows written since a list was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveTail {
    /// The list is being watched.
    pub watching: Option<Ticket>,
    /// Rows added since the list was read; counted up to [`COUNTED`].
    pub fresh: usize,
    /// Whether the list holds rows added since the rows of the whole database were counted.
    pub grown: bool,
    /// Whether the list follows new rows.
    pub follows: bool,
    /// Whether a first report on the newest rows arrived: later ones are news.
    heard: bool,
    /// Keys of the newest rows when the list was read.
    known: Option<BTreeSet<RowKey>>,
}

impl LiveTail {
    /// The repeated query: the newest rows of a list's selection.
    pub fn query(of: Query) -> Query {
        let entity = of.entity;
        let mut columns: Vec<&'static str> = read_columns(entity);
        columns.retain(|column| is_key(entity, column));
        // Texts are not cut: a cut key is a different key.
        Query { order: None, limit: COUNTED + 1, columns: Some(columns), preview: None, ..of }
    }

    /// Handles that the list is read again: nothing is new then.
    pub fn read_again(&mut self) {
        self.grown |= self.fresh > 0;
        (self.fresh, self.known) = (0, None);
    }

    /// Stops following: new rows are only counted from now on.
    pub fn pause(&mut self) {
        self.follows = false;
    }

    /// Removes the new rows from a page: those before the rows held. They are counted, not shown.
    pub fn without_new(mut page: Page, held: &[Row]) -> Page {
        let held: BTreeSet<RowKey> = held.iter().map(RowKey::of).collect();
        let known = page.rows.iter().position(|row| held.contains(&RowKey::of(row)));
        page.rows.drain(..known.unwrap_or(0));
        page
    }

    /// Handles a temporary failure: the database cannot be read until a new watch reports.
    pub fn awaits(&mut self, failure: Option<&RequestFailure>, cx: &mut Context) {
        // The past is not watched.
        if let Some(failure) = failure.filter(|failure| failure.passes && cx.past.is_none()) {
            cx.unread = Some(failure.message.clone());
            cx.cancel(self.release());
        }
    }

    /// Ends the watch and returns its request.
    pub fn release(&mut self) -> Option<Ticket> {
        self.heard = false;
        self.watching.take()
    }

    /// Whether this report is not the first since the watch began.
    pub fn hears_more(&mut self) -> bool {
        std::mem::replace(&mut self.heard, true)
    }

    /// Counts the new rows among the newest; `held` are the newest rows of the list, if it shows those.
    pub fn count(&mut self, newest: &[Row], held: &[RowKey]) {
        let first = || newest.iter().map(RowKey::of).collect();
        let known =
            self.known.get_or_insert_with(|| if held.is_empty() { first() } else { held.iter().cloned().collect() });
        let is_known = |row: &Row| known.contains(&RowKey::of(row));
        self.fresh = newest.iter().position(is_known).unwrap_or(newest.len());
    }
}

/// Rereading after others wrote: one request at a time, and one more if they wrote meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Renewal {
    pending: Option<Ticket>,
    due: bool,
}

impl Renewal {
    /// Handles that others wrote. True if it should be read again now.
    pub fn is_wanted(&mut self) -> bool {
        self.due = self.pending.is_some();
        !self.due
    }

    /// Handles that rereading has begun.
    pub fn begin(&mut self, ticket: Ticket) {
        self.pending = Some(ticket);
    }

    /// Whether a reply is the awaited one.
    pub fn end(&mut self, ticket: Ticket) -> bool {
        self.pending.take_if(|pending| *pending == ticket).is_some()
    }

    /// Whether others wrote while it was read, so that it must be read once more.
    pub fn is_due(&mut self) -> bool {
        std::mem::take(&mut self.due)
    }

    /// Gives up rereading and returns its request.
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
    /// Whether the first report arrived; it is not news.
    heard: bool,
    /// Whether others wrote since the place was read.
    pub is_aged: bool,
}

impl PlaceWatch {
    /// Whether a report under this number means that others wrote meanwhile.
    pub fn hears(&mut self, ticket: Ticket) -> bool {
        self.watching == Some(ticket) && std::mem::replace(&mut self.heard, true)
    }
}

/// Whether a column distinguishes rows or orders them.
fn is_key(entity: Entity, column: &str) -> bool {
    matches!(column, "id" | "source") || column == entity.time_column() || entity == Entity::MemoryLink
}
