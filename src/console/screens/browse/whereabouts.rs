//! Whereabouts of a person: rows by table, dependent changes, and mentions by others. This reads every table, so it is
//! requested only while shown.

use super::detail::{Detail, DetailTab};
use crate::change::plan::erasure::Preview;
use crate::console::core::{Context, Fetched, Request, RequestFailure};

/// Known facts about where a person occurs in the database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Whereabouts {
    /// Result of the search.
    pub found: Fetched<Box<Preview>>,
    /// The table being read, and the number of values read.
    pub looking: Option<(String, u64)>,
}

impl Detail {
    /// Whether the search must be started.
    fn wants_whereabouts(&self) -> bool {
        let is_shown = self.current_tab() == DetailTab::Where && self.row().is_some();
        is_shown && self.whereabouts.found.is_wanted() && !self.id().is_empty()
    }

    /// Starts the search if it is to be shown, and stops it otherwise.
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
