//! What happens to a list while it is looked at: rows that others write are counted, never shown unasked, or followed.

use std::collections::BTreeSet;

use super::ListScreen;
use crate::console::core::columns::read_columns;
use crate::console::core::context::Context;
use crate::console::core::message::Ticket;
use crate::console::core::request::Request;
use crate::console::core::window::{WantedPage, row_key};
use crate::memory::query::Query;
use crate::memory::{Entity, Row};

/// Rows that are counted as new; there may be more.
pub const COUNTED: usize = 100;

/// What was written since a list was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LiveTail {
    /// The list is being watched.
    pub watching: Option<Ticket>,
    /// Rows that came since the list was read; more than [`COUNTED`] are not counted.
    pub fresh: usize,
    /// The list follows what comes.
    pub follows: bool,
    /// Keys of the newest rows when the list was read.
    known: Option<BTreeSet<String>>,
}

impl LiveTail {
    /// The question that is asked again and again: the newest rows of those that a list shows.
    #[must_use]
    pub fn query(of: Query) -> Query {
        const PREVIEW: usize = 8;
        let entity = of.entity;
        let mut columns: Vec<&'static str> = read_columns(entity);
        columns.retain(|column| is_key(entity, column));
        Query { order: None, limit: COUNTED + 1, columns: Some(columns), preview: Some(PREVIEW), ..of }
    }

    /// The list is read again: nothing is new then.
    pub fn read_again(&mut self) {
        (self.fresh, self.known) = (0, None);
    }

    /// What comes is only counted from now on.
    pub fn pause(&mut self) {
        self.follows = false;
    }

    /// It is watched no more.
    pub fn release(&mut self) -> Option<Ticket> {
        self.watching.take()
    }

    /// Counts what is new among the newest rows; `held` are the newest that the list shows, where it shows those.
    pub fn count(&mut self, newest: &[Row], held: &[String]) {
        let first = || newest.iter().map(row_key).collect();
        let known =
            self.known.get_or_insert_with(|| if held.is_empty() { first() } else { held.iter().cloned().collect() });
        let is_known = |row: &Row| known.contains(&row_key(row));
        self.fresh = newest.iter().position(is_known).unwrap_or(newest.len());
    }
}

/// Whether a column tells rows apart or orders them.
fn is_key(entity: Entity, column: &str) -> bool {
    matches!(column, "id" | "source") || column == entity.time_column() || entity == Entity::MemoryLink
}

impl ListScreen {
    /// The list is watched as long as it is looked at.
    pub(super) fn watch(&mut self, cx: &mut Context) {
        if self.live.watching.is_none() && self.window.is_filled() && self.pending.is_none() && self.failure.is_none() {
            let query = LiveTail::query(self.query(&WantedPage::First));
            self.live.watching = Some(cx.ask(Request::Watch(Box::new(query))));
        }
    }

    /// The newest rows are these now.
    pub(super) fn take_news(&mut self, newest: &[Row], cx: &mut Context) {
        let shows_newest = self.order.is_none() && self.window.number() == Some(self.window.selected() + 1);
        let held: Vec<String> =
            if shows_newest { self.window.rows().take(COUNTED).map(row_key).collect() } else { Vec::new() };
        if self.pending.as_ref().is_none_or(|(_, want)| !want.replaces()) {
            self.live.count(newest, &held);
        }
        if self.live.follows && self.live.fresh > 0 {
            self.ask(WantedPage::First, cx);
        }
    }

    /// Follows what comes, from the newest row on, or pauses that.
    pub(super) fn toggle_tail(&mut self, cx: &mut Context) {
        self.live.follows = !self.live.follows;
        if self.live.follows {
            self.order = None;
            self.ask(WantedPage::First, cx);
        }
    }
}
