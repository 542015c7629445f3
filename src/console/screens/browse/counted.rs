//! Number of rows that match a filter, counted in the background, and values that complete a filter, read on demand.

use super::ListScreen;
use crate::console::core::condition::{CANVAS, wanted_values};
use crate::console::core::request::RowCount;
use crate::console::core::window::WantedPage;
use crate::console::core::{Context, Request, RequestFailure, Ticket};
use crate::memory::{Entity, Personal};

/// Number of rows that a filter leaves.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CountedRows {
    /// The number; `None` until known.
    pub count: Option<RowCount>,
    pending: Option<Ticket>,
    /// True when the rows were counted, or that was tried.
    asked: bool,
}

impl CountedRows {
    /// Marks the number as out of date, as the list is read again. Returns the request to give up.
    pub fn doubt(&mut self) -> Option<Ticket> {
        self.count = None;
        self.asked = false;
        self.pending.take()
    }

    /// Counts the rows again after others wrote. The old number is kept until then.
    pub fn recount(&mut self) {
        self.asked = false;
    }

    /// Takes the number, if it is the awaited one.
    pub fn take(&mut self, ticket: Ticket, result: Result<RowCount, RequestFailure>) {
        if self.pending.take_if(|pending| *pending == ticket).is_some() {
            // A list that cannot be counted is shown all the same.
            self.count = result.ok();
        }
    }
}

impl ListScreen {
    /// Counts the matching rows, unless the list shows all rows or they are counted.
    pub(super) fn count(&mut self, cx: &mut Context) {
        let is_shown = self.window.is_filled() && self.pending.is_none() && self.failure.is_none();
        if is_shown
            && !self.counted.asked
            && self.counted.pending.is_none()
            && !self.conditions.is_empty()
            && self.window.total().is_none()
        {
            self.counted.asked = true;
            let count = Request::Count(Box::new(self.query(&WantedPage::First)));
            let again = self.counted.count.is_some();
            self.counted.pending = Some(if again { cx.renew(count) } else { cx.ask(count) });
        }
    }

    /// Reads completions for the written text, unless known. Names of people are not read while masked.
    pub(super) fn read_values(&mut self, before_cursor: &str, cx: &mut Context) {
        let Some(wanted) = wanted_values(self.entity, before_cursor) else { return };
        if self.values.contains_key(wanted) || self.pending_values.as_ref().is_some_and(|(_, of)| *of == wanted) {
            return;
        }
        let (entity, column) = match wanted {
            wanted if wanted == CANVAS.0 => (Entity::CanvasEvent, "canvas_type"),
            wanted if wanted == CANVAS.1 => (Entity::CanvasEvent, "action"),
            column => (self.entity, column),
        };
        let is_personal = entity.column(column).is_some_and(|column| column.personal != Personal::No);
        if cx.holds(entity).is_ok() && !(is_personal && cx.masking.is_on()) {
            cx.cancel(self.pending_values.take().map(|(ticket, _)| ticket));
            self.pending_values = Some((cx.ask(Request::LoadValues(entity, column)), wanted));
        }
    }

    /// Takes the values of a column, most frequent first.
    pub(super) fn take_values(&mut self, ticket: Ticket, result: Result<Vec<String>, RequestFailure>) {
        if let Some((_, column)) = self.pending_values.take_if(|(pending, _)| *pending == ticket) {
            self.values.insert(column, result.unwrap_or_default());
        }
    }
}
