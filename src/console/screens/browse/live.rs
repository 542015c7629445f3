//! A list while it is looked at: rows that others write are counted, never shown unasked, or followed.

use super::ListScreen;
use crate::console::core::context::Context;
use crate::console::core::live::{COUNTED, LiveTail};
use crate::console::core::request::Request;
use crate::console::core::window::{RowKey, WantedPage};
use crate::memory::Row;

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
        let held: Vec<RowKey> =
            if shows_newest { self.window.rows().take(COUNTED).map(RowKey::of).collect() } else { Vec::new() };
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
