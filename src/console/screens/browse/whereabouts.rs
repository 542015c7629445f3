//! Whereabouts of a person: rows by table, what else would change with them, who else names them. Every table is read
//! for it, so it is requested only while it is looked at, and stopped when nobody looks any more.

use super::detail::{Detail, DetailTab};
use crate::change::plan::erasure::Preview;
use crate::console::core::context::Context;
use crate::console::core::fetched::Fetched;
use crate::console::core::message::RequestFailure;
use crate::console::core::request::Request;

/// Known facts about where a person is in the database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Whereabouts {
    /// Result of the search.
    pub found: Fetched<Box<Preview>>,
    /// The table that is read, and how many values were.
    pub looking: Option<(String, u64)>,
}

impl Detail {
    /// Whether where the person is has to be looked for.
    fn wants_whereabouts(&self) -> bool {
        let is_shown = self.current_tab() == DetailTab::Where && self.row().is_some();
        is_shown && self.whereabouts.found.is_wanted() && !self.id().is_empty()
    }

    /// Looks for where the person is when someone wants to see it, and stops when nobody does.
    pub fn settle_whereabouts(&mut self, cx: &mut Context) {
        let leaves = self.current_tab() != DetailTab::Where || self.row().is_none();
        cx.cancel(self.whereabouts.found.pending.take_if(|_| leaves));
        if self.wants_whereabouts() {
            self.whereabouts.found.pending = Some(cx.ask(Request::LoadWhereabouts(self.id().to_owned())));
            self.version += 1;
        }
    }

    pub(super) fn looking_in(&mut self, table: String, values: u64) {
        self.whereabouts.looking = Some((table, values));
        self.version += 1;
    }

    pub(super) fn take_whereabouts(&mut self, result: Result<Box<Preview>, RequestFailure>) {
        self.whereabouts.looking = None;
        self.whereabouts.found.take(result);
        self.version += 1;
    }
}
