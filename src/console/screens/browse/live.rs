//! A list while it is shown: rows changed or deleted by others are updated; new rows are counted, and shown only on
//! request or when following.

use super::{BrowsePane, ListScreen};
use crate::console::core::context::{Context, ToastTone};
use crate::console::core::live::{COUNTED, LiveTail};
use crate::console::core::message::RequestFailure;
use crate::console::core::request::{Related, Relation, Request};
use crate::console::core::window::{PAGE_ROWS, Renewed, RowKey, WantedPage};
use crate::memory::query::{Page, PageStart};
use crate::memory::{Row, agreeing};

/// Most marked rows that are checked for still existing.
const MARKS: usize = 500;

impl ListScreen {
    /// Watches the list while it is shown.
    pub(super) fn watch(&mut self, cx: &mut Context) {
        if self.live.watching.is_none() && self.pending.is_none() {
            let query = LiveTail::query(self.query(&WantedPage::First));
            self.live.watching = Some(cx.ask(Request::Watch(Box::new(query))));
        }
    }

    /// Handles that others wrote, or that the database is readable again, with the current newest rows.
    pub(super) fn take_news(&mut self, newest: &[Row], cx: &mut Context) {
        let shows_newest = self.order.is_none() && self.window.number() == Some(self.window.selected() + 1);
        let held: Vec<RowKey> =
            if shows_newest { self.window.rows().take(COUNTED).map(RowKey::of).collect() } else { Vec::new() };
        let is_replaced = self.pending.as_ref().is_some_and(|(_, want)| want.replaces());
        if !is_replaced {
            self.live.count(newest, &held);
        }
        if self.live.follows && self.live.fresh > 0 {
            // If the user moves before it arrives, the row moved to stays selected.
            self.ask(WantedPage::Again(PageStart::First, PAGE_ROWS), cx);
        } else if !is_replaced {
            self.renew(cx);
        }
        self.counted.recount();
        self.renew_marks(cx);
        self.detail.renew(cx);
        if self.live.hears_more() {
            cx.renew_status();
        }
    }

    /// Reads the rows on screen again; the old ones are shown until then.
    fn renew(&mut self, cx: &mut Context) {
        if self.window.is_filled() && self.failure.is_none() && self.renewal.0.is_wanted() {
            let want = self.window.renewal(cx.measures.list_rows, self.live.fresh, COUNTED);
            let ticket = cx.renew(Request::LoadPage(Box::new(self.query(&want))));
            self.renewal.0.begin(ticket);
            self.renewal.1 = want;
        }
    }

    /// Takes the reread rows on screen. Nothing changes after a failure, or if the list was moved meanwhile.
    pub(super) fn take_renewed(&mut self, result: Result<Page, RequestFailure>, cx: &mut Context) {
        let start = self.renewal.1.start().0;
        let is_here = self.pending.is_none() && self.window.starts_at(&start, cx.measures.list_rows);
        if let (Ok(page), true) = (result, is_here) {
            cx.read_names(&page.rows);
            let current = self.window.current().map(RowKey::of);
            let renewed = self.window.renew(&start, page, self.order.is_none() && !self.live.follows);
            if let (Renewed::Gone, Some(key)) = (renewed, current) {
                self.part(&key, cx);
            }
        }
        if self.renewal.0.is_due() || !is_here {
            self.renew(cx);
        }
    }

    /// Handles that the selected row is gone from the list: details being read continue to show it, with a note.
    fn part(&mut self, gone: &RowKey, cx: &mut Context) {
        if self.pane == BrowsePane::Detail {
            self.parted = self.window.current().map(RowKey::of);
        }
        cx.say(ToastTone::Info, format!("{} {} is no longer in the list", self.entity.title(), gone.id()));
    }

    /// Checks which of the marked rows still exist.
    fn renew_marks(&mut self, cx: &mut Context) {
        if !self.marks.is_empty() && self.marks_renewal.is_wanted() {
            let ids: Vec<String> = self.marks.iter().take(MARKS).map(|key| key.id().to_owned()).collect();
            let ticket = cx.renew(Request::LoadRelated(vec![(String::new(), Relation::Ids(self.entity, ids))]));
            self.marks_renewal.begin(ticket);
        }
    }

    /// Drops the marks of deleted rows.
    pub(super) fn take_marked(&mut self, result: Result<Vec<Related>, RequestFailure>, cx: &mut Context) {
        let before = self.marks.len();
        for group in result.into_iter().flatten() {
            self.marks.retain(|key| !group.dangling.iter().any(|id| id == key.id()));
        }
        // The message about an own change, which can be undone, is kept.
        let is_told = cx.toast.as_ref().is_some_and(|toast| toast.hint.is_some());
        if self.marks.len() < before && !is_told {
            let gone = before - self.marks.len();
            cx.say(ToastTone::Warn, agreeing(gone as u64, "{#} marked {row is|rows are} gone, and no longer marked"));
        }
        if self.marks_renewal.is_due() {
            self.renew_marks(cx);
        }
    }

    /// Follows new rows from the newest one on, or pauses that.
    pub(super) fn toggle_tail(&mut self, cx: &mut Context) {
        self.live.follows = !self.live.follows;
        if self.live.follows {
            self.order = None;
            self.list_again(WantedPage::First, cx);
        }
    }
}
