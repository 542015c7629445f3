//! Whereabouts of a person: rows by table, what else would change with them, who else names them. Every table is read
//! for it, so it is requested only while it is looked at, and stopped when nobody looks any more.

use super::detail::{Detail, DetailTab};
use crate::change::plan::erasure::Preview;
use crate::console::core::context::Context;
use crate::console::core::message::{RequestFailure, Ticket};
use crate::console::core::request::Request;

/// Known facts about where a person is in the database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Whereabouts {
    /// Result of the search.
    pub found: Option<Box<Preview>>,
    /// Pending request of the search.
    pub pending: Option<Ticket>,
    /// The table that is read, and how many values were.
    pub looking: Option<(String, u64)>,
    /// Reason why the whereabouts are unknown.
    pub failure: Option<RequestFailure>,
}

impl Detail {
    /// Whether where the person is has to be looked for.
    fn wants_whereabouts(&self) -> bool {
        let known = &self.whereabouts;
        let is_new = known.found.is_none() && known.pending.is_none() && known.failure.is_none();
        self.current_tab() == DetailTab::Where && self.row().is_some() && is_new && !self.id().is_empty()
    }

    /// Looks for where the person is when somebody wants to see it, and stops when nobody does.
    pub fn settle_whereabouts(&mut self, cx: &mut Context) {
        let leaves = self.current_tab() != DetailTab::Where || self.row().is_none();
        cx.cancel(self.whereabouts.pending.take_if(|_| leaves));
        if self.wants_whereabouts() {
            self.whereabouts.pending = Some(cx.ask(Request::LoadWhereabouts(self.id().to_owned())));
            self.version += 1;
        }
    }

    pub(super) fn looking_in(&mut self, table: String, values: u64) {
        self.whereabouts.looking = Some((table, values));
        self.version += 1;
    }

    pub(super) fn take_whereabouts(&mut self, result: Result<Box<Preview>, RequestFailure>) {
        (self.whereabouts.pending, self.whereabouts.looking) = (None, None);
        self.version += 1;
        match result {
            Ok(found) => self.whereabouts.found = Some(found),
            Err(failure) => self.whereabouts.failure = Some(failure),
        }
    }
}
