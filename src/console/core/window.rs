//! The loaded part of a long list: some pages around the selected row, which is found again by its key.

use std::collections::{HashMap, VecDeque};

use crate::memory::query::{Page, PageStart};
use crate::memory::{Entity, Row};

/// Rows in a page of a list.
pub const PAGE_ROWS: usize = 100;
/// Most pages held.
const PAGES: usize = 5;
/// The next page is requested when fewer rows than this are left before the edge.
const MARGIN: usize = 60;

/// A page to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedPage {
    /// The first page replaces all rows held; its first row is selected.
    First,
    /// The first page in another order replaces all rows held. The selected row stays selected if it is on that page,
    /// else the first one is.
    Sorted,
    /// The last page replaces all rows held; its last row is selected.
    Last,
    /// This many rows from there replace all rows held; the selected row stays selected.
    Again(PageStart, usize),
    /// The same after the rows were dropped.
    Restored(PageStart, usize),
    /// The page after the last one held.
    Below(String),
    /// The page before the first one held.
    Above(String),
}

impl WantedPage {
    /// Returns the start of the page, and its maximum number of rows.
    pub fn start(&self) -> (PageStart, usize) {
        match self {
            WantedPage::First | WantedPage::Sorted => (PageStart::First, PAGE_ROWS),
            WantedPage::Last => (PageStart::Last, PAGE_ROWS),
            WantedPage::Again(start, rows) | WantedPage::Restored(start, rows) => (start.clone(), *rows),
            WantedPage::Below(cursor) => (PageStart::After(cursor.clone()), PAGE_ROWS),
            WantedPage::Above(cursor) => (PageStart::Before(cursor.clone()), PAGE_ROWS),
        }
    }

    /// Whether another row than the selected one may become it.
    pub fn jumps(&self) -> bool {
        !matches!(self, WantedPage::Again(..) | WantedPage::Below(_) | WantedPage::Above(_))
    }

    /// Whether the page replaces all rows held.
    pub fn replaces(&self) -> bool {
        !matches!(self, WantedPage::Below(_) | WantedPage::Above(_))
    }
}

#[derive(Debug, Clone, PartialEq)]
struct HeldPages {
    start: PageStart,
    page: Page,
}

/// Pages around the selected row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageWindow {
    pages: VecDeque<HeldPages>,
    /// Position of the selected row among those held.
    selected: usize,
    /// Position of the first row on screen.
    top: usize,
    /// Rows of the list above those held, if known.
    above: Option<usize>,
    /// Rows of the list below those held, if known.
    below: Option<usize>,
    /// Counts the pages received.
    received: u64,
    /// A page was received.
    filled: bool,
    /// The window before its rows were dropped, to find the place again.
    dropped: Option<Box<PageWindow>>,
}

/// Result for the selected row after the rows on screen were read again while others wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// It is still selected.
    Same,
    /// It is no longer in the list; its neighbour is selected.
    Gone,
    /// Too many rows came before it: nothing was taken.
    Elsewhere,
}

/// Key of a row in a list: its id, and more if ids may repeat or be missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    id: String,
    beside: Vec<String>,
}

impl RowKey {
    /// The key of a row.
    pub fn of(row: &Row) -> Self {
        let text = |column: &&str| row.text(column).map_or_else(|| row.get(column).to_string(), str::to_owned);
        let texts = |columns: &[&str]| columns.iter().map(text).collect();
        let beside = match row.entity {
            Entity::Feedback | Entity::AuditEntry => texts(&["source"]),
            Entity::MemoryLink => texts(&["episode_id", "memory_id", "kind", "rank"]),
            _ => Vec::new(),
        };
        RowKey { id: row.id().to_owned(), beside }
    }

    /// The key of a row identified by its id alone.
    pub fn of_id(id: &str) -> Self {
        RowKey { id: id.to_owned(), beside: Vec::new() }
    }

    /// The row's id; empty if there is none.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it is the id alone.
    pub fn is_id(&self) -> bool {
        self.beside.is_empty()
    }

    /// Iterates over the texts of the key, to replace names in them.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        std::iter::once(&mut self.id).chain(&mut self.beside)
    }
}

/// Whether a page begins at its start, rather than ending there.
fn forward(start: &PageStart) -> bool {
    matches!(start, PageStart::First | PageStart::After(_))
}

fn rows_of(pages: &[(&HeldPages, bool)]) -> usize {
    pages.iter().map(|(held, _)| held.page.rows.len()).sum()
}

impl PageWindow {
    /// Rows held.
    pub fn len(&self) -> usize {
        self.pages.iter().map(|held| held.page.rows.len()).sum()
    }

    /// Whether no row is held.
    pub fn is_empty(&self) -> bool {
        self.pages.iter().all(|held| held.page.rows.is_empty())
    }

    /// Whether a page was ever received.
    pub fn is_filled(&self) -> bool {
        self.filled
    }

    /// Number of pages received so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The rows held, in order.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.pages.iter().flat_map(|held| &held.page.rows)
    }

    /// Position of the selected row among those held.
    pub fn selected(&self) -> usize {
        self.selected
    }

    /// Position of the first row on screen among those held.
    pub fn top(&self) -> usize {
        self.top
    }

    /// The selected row.
    pub fn current(&self) -> Option<&Row> {
        self.rows().nth(self.selected)
    }

    /// Number of the selected row in the whole list, from 1, if known.
    pub fn number(&self) -> Option<usize> {
        (!self.is_empty()).then_some(())?;
        self.above.map(|above| above + self.selected + 1)
    }

    /// Rows from the selected one to the end of the list, if known.
    pub fn to_end(&self) -> Option<usize> {
        (!self.is_empty()).then_some(())?;
        self.below.map(|below| below + self.len() - self.selected - 1)
    }

    /// Rows of the whole list, if known.
    pub fn total(&self) -> Option<usize> {
        Some(self.above? + self.len() + self.below?)
    }

    /// Whether the last row held is the last of the list.
    pub fn is_at_end(&self) -> bool {
        self.pages.back().is_none_or(|held| held.page.next.is_none())
    }

    /// Drops the rows. They are read again at the same place.
    pub fn clear(&mut self) {
        let held = std::mem::take(self);
        self.dropped = if held.filled { Some(Box::new(held)) } else { held.dropped };
    }

    /// Takes the requested page. False if the selected row is gone.
    pub fn receive(&mut self, want: &WantedPage, page: Page) -> bool {
        let before = self.current().map(RowKey::of);
        let dropped = self.dropped.take();
        match want {
            WantedPage::First | WantedPage::Last | WantedPage::Sorted => self.jump(want, page),
            WantedPage::Again(start, _) => self.replace(start, page),
            WantedPage::Restored(start, _) => {
                *self = dropped.map(|held| *held).unwrap_or_default();
                self.replace(start, page);
            }
            WantedPage::Below(cursor) => self.append(cursor, page),
            WantedPage::Above(cursor) => self.prepend(cursor, page),
        }
        self.filled = true;
        self.received += 1;
        let after = self.current().map(RowKey::of);
        matches!(want, WantedPage::First | WantedPage::Last) || before.is_none() || before == after
    }

    fn jump(&mut self, want: &WantedPage, page: Page) {
        self.above = page.previous.is_none().then_some(0);
        self.below = page.next.is_none().then_some(0);
        let line = self.selected.saturating_sub(self.top);
        let place = |key: RowKey| page.rows.iter().position(|row| RowKey::of(row) == key);
        let found = self.current().map(RowKey::of).filter(|_| *want == WantedPage::Sorted).and_then(place);
        let end = if *want == WantedPage::Last { page.rows.len().saturating_sub(1) } else { 0 };
        self.selected = found.unwrap_or(end);
        self.top = found.map_or(end, |found| found.saturating_sub(line));
        self.pages = VecDeque::from([HeldPages { start: want.start().0, page }]);
    }

    fn replace(&mut self, start: &PageStart, page: Page) {
        let key = self.current().map(RowKey::of);
        let line = self.selected.saturating_sub(self.top);
        let before = self.held_before(start);
        // A page that ends at its start is counted from there, any other from its first row.
        let skipped =
            before.map(|(first, end)| if forward(start) { first } else { end.saturating_sub(page.rows.len()) });
        let above = self.above.zip(skipped).map(|(above, skipped)| above + skipped);
        let row = self.selected.saturating_sub(skipped.unwrap_or(0));
        self.above = if page.previous.is_none() { Some(0) } else { above };
        self.below = page.next.is_none().then_some(0);
        let found = key.and_then(|key| page.rows.iter().position(|row| RowKey::of(row) == key));
        self.selected = found.unwrap_or(row.min(page.rows.len().saturating_sub(1)));
        self.top = self.selected.saturating_sub(line);
        self.pages = VecDeque::from([HeldPages { start: start.clone(), page }]);
    }

    /// Returns the page that rereads the rows on screen while others write: as [`PageWindow::again`], plus the `fresh`
    /// rows before them, of which at most `counted` are counted.
    pub fn renewal(&self, lines: usize, fresh: usize, counted: usize) -> WantedPage {
        let ends = self.pages.back().map(|held| held.page.next.clone());
        match self.again(self.len() + lines) {
            WantedPage::Again(PageStart::First, rows) if fresh > counted => {
                let start = ends.flatten().map_or(PageStart::Last, PageStart::Before);
                WantedPage::Again(start, rows)
            }
            WantedPage::Again(PageStart::First, rows) => WantedPage::Again(PageStart::First, rows + fresh),
            want => want,
        }
    }

    /// Whether rereading the rows on screen begins there.
    pub fn starts_at(&self, start: &PageStart, lines: usize) -> bool {
        match start {
            PageStart::Before(_) | PageStart::Last => true,
            start => self.again(self.len() + lines).start().0 == *start,
        }
    }

    /// Takes rows that were read again while others wrote. If `leaves_new`, those before the first row held are left
    /// out.
    pub fn renew(&mut self, start: &PageStart, mut page: Page, leaves_new: bool) -> Renewed {
        let held: HashMap<RowKey, usize> = self.rows().map(RowKey::of).zip(0..).collect();
        let place = |row: &Row| held.get(&RowKey::of(row)).copied();
        let known = page.rows.iter().position(|row| place(row).is_some());
        if known.is_none() && page.next.is_some() && !held.is_empty() {
            return Renewed::Elsewhere;
        }
        if leaves_new && self.above == Some(0) && !matches!(start, PageStart::After(_)) {
            page.rows.drain(..known.unwrap_or(page.rows.len()));
            let begins = *start == PageStart::First || page.rows.first().and_then(place) == Some(0);
            page.previous.take_if(|_| begins);
        }
        let current = self.current().map(RowKey::of);
        let found = page.rows.iter().position(|row| current.as_ref() == Some(&RowKey::of(row)));
        let next = page.rows.iter().position(|row| place(row).is_some_and(|place| place > self.selected));
        if current.is_some() && found.is_none() && next.is_none() && page.next.is_some() {
            return Renewed::Elsewhere;
        }
        let line = self.selected.saturating_sub(self.top);
        let skipped = page.rows.iter().enumerate().find_map(|(at, row)| Some(place(row)?.saturating_sub(at)));
        let above = self.above.map(|above| above + skipped.unwrap_or(0));
        self.above = if page.previous.is_none() { Some(0) } else { above };
        self.below = page.next.is_none().then_some(0);
        self.selected = found.or(next).unwrap_or(page.rows.len().saturating_sub(1));
        self.top = self.selected.saturating_sub(line);
        let start = if page.previous.is_none() { PageStart::First } else { start.clone() };
        self.pages = VecDeque::from([HeldPages { start, page }]);
        self.received += 1;
        if found.is_some() || current.is_none() { Renewed::Same } else { Renewed::Gone }
    }

    /// Positions of the first row of the page that was read from there, and of the row after its last one.
    fn held_before(&self, start: &PageStart) -> Option<(usize, usize)> {
        let mut first = 0;
        for held in &self.pages {
            let end = first + held.page.rows.len();
            if held.start == *start {
                return Some((first, end));
            }
            first = end;
        }
        None
    }

    fn append(&mut self, cursor: &str, page: Page) {
        if self.pages.back().and_then(|held| held.page.next.as_deref()) != Some(cursor) {
            return;
        }
        self.below = page.next.is_none().then_some(0);
        self.pages.push_back(HeldPages { start: PageStart::After(cursor.to_owned()), page });
        while self.pages.len() > PAGES {
            let Some(dropped) = self.pages.pop_front() else { break };
            let rows = dropped.page.rows.len();
            self.selected = self.selected.saturating_sub(rows);
            self.top = self.top.saturating_sub(rows);
            self.above = self.above.map(|above| above + rows);
        }
    }

    fn prepend(&mut self, cursor: &str, page: Page) {
        if self.pages.front().and_then(|held| held.page.previous.as_deref()) != Some(cursor) {
            return;
        }
        let rows = page.rows.len();
        self.above = match page.previous {
            None => Some(0),
            Some(_) => self.above.and_then(|above| above.checked_sub(rows)),
        };
        self.selected += rows;
        self.top += rows;
        self.pages.push_front(HeldPages { start: PageStart::Before(cursor.to_owned()), page });
        while self.pages.len() > PAGES {
            let Some(dropped) = self.pages.pop_back() else { break };
            self.below = self.below.map(|below| below + dropped.page.rows.len());
        }
    }

    /// The page to read now, if any.
    pub fn wants(&self) -> Option<WantedPage> {
        if !self.filled {
            return Some(self.dropped.as_ref().map_or(WantedPage::First, |held| held.restoring()));
        }
        let next = self.pages.back().and_then(|held| held.page.next.clone());
        let previous = self.pages.front().and_then(|held| held.page.previous.clone());
        let (near_end, near_begin) = (self.len() - self.selected.min(self.len()) <= MARGIN, self.selected < MARGIN);
        match (next, previous) {
            (Some(cursor), _) if near_end => Some(WantedPage::Below(cursor)),
            (_, Some(cursor)) if near_begin => Some(WantedPage::Above(cursor)),
            _ => None,
        }
    }

    /// Returns the page that reads the place again after the rows were dropped.
    fn restoring(&self) -> WantedPage {
        let (start, rows) = self.again(1).start();
        WantedPage::Restored(start, rows)
    }

    /// Returns the page that rereads the `lines` rows on screen, in whole pages.
    pub fn again(&self, lines: usize) -> WantedPage {
        let top = self.top.min(self.selected);
        let bottom = (self.top + lines).max(self.selected + 1);
        let mut first = 0;
        let mut seen: Vec<(&HeldPages, bool)> = Vec::new();
        for held in &self.pages {
            let end = first + held.page.rows.len();
            if end > top && first < bottom {
                seen.push((held, (first..end).contains(&self.selected)));
            }
            first = end;
        }
        let ahead = seen.iter().filter(|(held, _)| forward(&held.start)).count();
        let (start, rows) = match (seen.first(), seen.last()) {
            (Some((begin, _)), _) if ahead == seen.len() => (begin.start.clone(), rows_of(&seen)),
            (_, Some((end, _))) if ahead == 0 => (end.start.clone(), rows_of(&seen)),
            // Pages read in both directions have no common beginning: the selected row's page is enough.
            _ => match seen.iter().find(|(_, selected)| *selected) {
                Some((held, _)) => (held.start.clone(), held.page.rows.len()),
                None => (PageStart::First, PAGE_ROWS),
            },
        };
        WantedPage::Again(start, rows.clamp(PAGE_ROWS, PAGES * PAGE_ROWS))
    }

    /// Moves the selection by some rows within the rows held.
    pub fn move_by(&mut self, rows: isize) {
        self.select(self.selected.saturating_add_signed(rows));
    }

    /// Selects the row at a position, or the last one.
    pub fn select(&mut self, position: usize) {
        self.selected = position.min(self.len().saturating_sub(1));
    }

    /// Selects the first row of the list. Returns the page to read for that.
    pub fn first(&mut self) -> Option<WantedPage> {
        self.select(0);
        let elsewhere = self.pages.front().is_none_or(|held| held.page.previous.is_some());
        elsewhere.then_some(WantedPage::First)
    }

    /// Selects the last row of the list. Returns the page to read for that.
    pub fn last(&mut self) -> Option<WantedPage> {
        self.select(usize::MAX);
        let elsewhere = self.pages.back().is_none_or(|held| held.page.next.is_some());
        elsewhere.then_some(WantedPage::Last)
    }

    /// Scrolls so that the selected row is among the `lines` on screen, without blank lines.
    pub fn scroll_into(&mut self, lines: usize) {
        let lines = lines.max(1);
        self.top = self.top.clamp((self.selected + 1).saturating_sub(lines), self.selected);
        self.top = self.top.min(self.len().saturating_sub(lines));
    }

    /// Scrolls by rows without more of a change of the selection than keeping it on screen.
    pub fn scroll_by(&mut self, rows: isize, lines: usize) {
        let lines = lines.max(1);
        self.top = self.top.saturating_add_signed(rows).min(self.len().saturating_sub(lines));
        self.select(self.selected.clamp(self.top, self.top + lines - 1));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A list of `total` episodes, numbered from 0, that answers like a database.
    struct List(Vec<usize>);

    impl List {
        fn answer(&self, want: &WantedPage) -> Page {
            let (start, limit) = want.start();
            let at = |cursor: &str| {
                let number: usize = cursor.parse().unwrap();
                self.0.partition_point(|n| *n < number)
            };
            let (from, to) = match &start {
                PageStart::First => (0, limit),
                PageStart::Last => (self.0.len().saturating_sub(limit), self.0.len()),
                PageStart::After(cursor) => {
                    let number: usize = cursor.parse().unwrap();
                    let from = self.0.partition_point(|n| *n <= number);
                    (from, from + limit)
                }
                PageStart::Before(cursor) => (at(cursor).saturating_sub(limit), at(cursor)),
            };
            let to = to.min(self.0.len());
            let numbers = &self.0[from.min(to)..to];
            let rows = numbers.iter().map(|n| Row::with(Entity::Episode, [("id", json!(n.to_string()))]));
            Page {
                rows: rows.collect(),
                next: numbers.last().filter(|_| to < self.0.len()).map(usize::to_string),
                previous: numbers.first().filter(|_| from > 0).map(usize::to_string),
            }
        }

        fn settle(&self, window: &mut PageWindow) {
            for _ in 0..20 {
                let Some(want) = window.wants() else { return };
                window.receive(&want, self.answer(&want));
            }
            panic!("it never has enough");
        }
    }

    fn list(total: usize) -> List {
        List((0..total).collect())
    }

    fn id(window: &PageWindow) -> usize {
        window.current().unwrap().id().parse().unwrap()
    }

    #[test]
    fn a_long_walk_holds_few_rows_and_counts_right() {
        let (list, mut window) = (list(100_000), PageWindow::default());
        list.settle(&mut window);
        for step in 1..3_000 {
            window.move_by(33);
            list.settle(&mut window);
            assert_eq!((id(&window), window.number()), (33 * step, Some(33 * step + 1)));
            assert!(window.len() <= PAGES * PAGE_ROWS);
        }
        for step in 1..3_000 {
            window.move_by(-33);
            list.settle(&mut window);
            assert_eq!(id(&window), 33 * (2_999 - step));
        }
    }

    #[test]
    fn the_end_is_counted_from_the_end() {
        let (list, mut window) = (list(1_234), PageWindow::default());
        list.settle(&mut window);
        let want = window.last().unwrap();
        assert!(window.receive(&want, list.answer(&want)));
        list.settle(&mut window);
        assert_eq!((id(&window), window.number(), window.to_end()), (1_233, None, Some(0)));
        window.move_by(-20);
        assert_eq!(window.to_end(), Some(20));
        let want = window.first().unwrap();
        window.receive(&want, list.answer(&want));
        assert_eq!((id(&window), window.number()), (0, Some(1)));
    }

    #[test]
    fn a_short_list_knows_its_length() {
        let (list, mut window) = (list(130), PageWindow::default());
        list.settle(&mut window);
        window.move_by(80);
        list.settle(&mut window);
        assert_eq!(window.total(), Some(130));
        assert!(window.first().is_none() && window.last().is_none());
    }

    #[test]
    fn after_a_refresh_the_same_row_is_selected() {
        let (mut list, mut window) = (list(900), PageWindow::default());
        list.settle(&mut window);
        window.move_by(45);
        window.scroll_into(30);
        let line = window.selected() - window.top();
        list.0.retain(|n| !(10..20).contains(n));
        let want = window.again(30);
        assert!(window.receive(&want, list.answer(&want)));
        assert_eq!((id(&window), window.number()), (45, Some(36)));
        assert_eq!(window.selected() - window.top(), line);
    }

    #[test]
    fn dropped_rows_are_read_again_at_the_same_place() {
        for moved in [0, 45, 380] {
            let (list, mut window) = (list(900), PageWindow::default());
            list.settle(&mut window);
            for _ in 0..moved {
                window.move_by(1);
                list.settle(&mut window);
            }
            window.scroll_into(30);
            let line = window.selected() - window.top();
            window.clear();
            window.clear();
            assert!(window.is_empty() && window.current().is_none());
            list.settle(&mut window);
            assert_eq!((id(&window), window.number()), (moved, Some(moved + 1)));
            assert_eq!(window.selected() - window.top(), line);
        }
    }

    #[test]
    fn a_vanished_row_is_told_and_its_neighbour_selected() {
        let (mut list, mut window) = (list(900), PageWindow::default());
        list.settle(&mut window);
        window.move_by(45);
        list.0.retain(|n| *n != 45);
        let want = window.again(30);
        assert!(!window.receive(&want, list.answer(&want)));
        assert_eq!(id(&window), 46);
    }

    #[test]
    fn rows_that_others_write_and_delete_leave_the_selected_row_where_it_is() {
        for new in [0, 3, 150] {
            let (mut list, mut window) = (List((1_000..1_900).collect()), PageWindow::default());
            list.settle(&mut window);
            window.move_by(45);
            window.scroll_into(30);
            let line = window.selected() - window.top();
            list.0.retain(|n| !(1_010..1_020).contains(n));
            list.0.splice(..0, 0..new);
            let want = window.renewal(30, new.min(101), 100);
            assert_eq!(window.renew(&want.start().0, list.answer(&want), true), Renewed::Same);
            assert_eq!((id(&window), window.number(), window.selected() - window.top()), (1_045, Some(36), line));
            assert_eq!(window.rows().next().map(|row| row.id().to_owned()), Some("1000".to_owned()), "{new}");
            list.0.retain(|n| *n != 1_045);
            let want = window.renewal(30, new.min(101), 100);
            assert_eq!(window.renew(&want.start().0, list.answer(&want), true), Renewed::Gone);
            assert_eq!((id(&window), window.number()), (1_046, Some(36)));
        }
    }

    #[test]
    fn what_is_read_again_far_from_the_selected_row_changes_nothing() {
        let (mut list, mut window) = (List((1_000..1_900).collect()), PageWindow::default());
        list.settle(&mut window);
        let (want, before) = (window.renewal(30, 0, 100), window.clone());
        list.0.splice(..0, 0..500);
        assert_eq!(window.renew(&want.start().0, list.answer(&want), true), Renewed::Elsewhere);
        assert_eq!(window, before);
    }

    #[test]
    fn an_emptied_list_is_empty() {
        let (mut list, mut window) = (list(10), PageWindow::default());
        list.settle(&mut window);
        list.0.clear();
        let want = window.again(30);
        window.receive(&want, list.answer(&want));
        assert!(window.is_empty() && window.current().is_none() && window.wants().is_none());
        assert_eq!((window.number(), window.total()), (None, Some(0)));
    }

    #[test]
    fn an_answer_to_a_place_left_behind_changes_nothing() {
        let (list, mut window) = (list(900), PageWindow::default());
        list.settle(&mut window);
        let (mut before, want) = (window.clone(), WantedPage::Below("77".to_owned()));
        window.receive(&want, Page::default());
        before.received += 1;
        assert_eq!(window, before);
    }

    proptest! {
        #[test]
        fn any_walk_shows_the_row_that_was_walked_to(total in 0_usize..1_500, steps in prop::collection::vec((0_usize..5, 1_isize..90), 0..60)) {
            let (list, mut window) = (list(total), PageWindow::default());
            list.settle(&mut window);
            let mut expected = 0_usize;
            for (kind, rows) in steps {
                let want = match kind {
                    0 => { window.move_by(rows); None }
                    1 => { window.move_by(-rows); None }
                    2 => window.first(),
                    3 => window.last(),
                    _ => Some(window.again(40)),
                };
                if let Some(want) = want {
                    window.receive(&want, list.answer(&want));
                }
                if total == 0 {
                    prop_assert!(window.current().is_none());
                    continue;
                }
                expected = match kind {
                    // A step does not go beyond the rows held.
                    0 | 1 => { let now = id(&window); prop_assert!(now.abs_diff(expected) <= rows as usize); now }
                    2 => 0,
                    3 => total - 1,
                    _ => expected,
                };
                prop_assert_eq!(id(&window), expected);
                list.settle(&mut window);
                window.scroll_into(40);
                prop_assert_eq!(id(&window), expected);
                prop_assert!(window.number().is_none_or(|n| n == expected + 1));
                prop_assert!(window.to_end().is_none_or(|n| n == total - 1 - expected));
                prop_assert!(window.top() <= window.selected() && window.selected() < window.top() + 40);
            }
        }
    }
}
