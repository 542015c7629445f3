//! Lists of rows with the details of one: reading, sorting, filtering and drawing.

mod card;
mod counted;
pub mod detail;
pub(in crate::console) mod draw;
pub mod follow;
mod listing;
mod live;
pub mod whereabouts;

use std::collections::BTreeSet;

pub use card::CardScreen;
pub use counted::CountedRows;

use crate::console::core::columns::read_columns;
use crate::console::core::command::ChainStep;
use crate::console::core::condition::{KnownValues, canvas_text};
use crate::console::core::twin::words;
use crate::console::core::window::{PAGE_ROWS, WantedPage};
use crate::console::core::{
    CommandAsk, CommandId, Conditions, Context, Judged, Lack, LiveTail, MenuChoice, PageWindow, Prompt, Proposal,
    Purpose, Renewal, Reply, Request, RequestFailure, RowKey, Screen, ScreenFace, ScreenKind, Ticket, ToastTone,
};
use crate::console::view::Canvas;
use crate::memory::kept::KeptPlace;
use crate::memory::query::{Order, Page, Query};
use crate::memory::{Entity, Row};
use detail::{Detail, DetailTab, tabs};
use draw::MeasuredColumns;

/// Milliseconds that the cursor rests on a row before its details are read, if others are being read.
const REST: u64 = 60;
/// Characters of a text that a list reads.
pub const PREVIEW: usize = 200;

/// Focused pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrowsePane {
    /// The list.
    List,
    /// The details.
    Detail,
}

/// A list with the details of its selected row.
#[derive(Debug, Clone, PartialEq)]
pub struct ListScreen {
    /// Entity of the listed rows.
    pub entity: Entity,
    /// Conditions that select the rows.
    pub conditions: Conditions,
    /// Order; `None` is newest first.
    pub order: Option<Order>,
    /// The rows held.
    pub window: PageWindow,
    /// Keys of the marked rows.
    pub marks: BTreeSet<RowKey>,
    /// Focused pane.
    pub pane: BrowsePane,
    /// Whether the focused pane takes the whole screen.
    pub zoomed: bool,
    /// The details.
    pub detail: Detail,
    /// The pending page.
    pub pending: Option<(Ticket, WantedPage)>,
    /// The moment of resting on a row before its details are read.
    pub resting: Option<Ticket>,
    /// Reason why the list could not be read.
    pub failure: Option<RequestFailure>,
    /// The page that could not be read, which is tried again.
    pub(in crate::console) failed: Option<WantedPage>,
    /// Rows written since the list was read, and whether the list follows them.
    pub live: LiveTail,
    /// Rereading of the rows on screen after others wrote, and the page read.
    pub(in crate::console) renewal: (Renewal, WantedPage),
    /// Check after writes by others whether the marked rows still exist.
    pub(in crate::console) marks_renewal: Renewal,
    /// The newly selected row, while the details still show the deleted one.
    pub(in crate::console) parted: Option<RowKey>,
    /// Count of the rows that the filter leaves.
    pub counted: CountedRows,
    /// Values that complete a filter, by column, as far as they were read.
    pub(in crate::console) values: KnownValues,
    /// Those of a column are being read.
    pub(in crate::console) pending_values: Option<(Ticket, &'static str)>,
    /// Additional columns that are read because they were chosen.
    pub(in crate::console) more: Vec<&'static str>,
    /// Measured width of the values in each column.
    pub(in crate::console) widths: MeasuredColumns,
    /// Most lines that details have had in the current tab, so that their height does not change with every row.
    pub(in crate::console) tallest: usize,
}

impl ListScreen {
    /// Creates a list.
    pub fn new(entity: Entity, conditions: Conditions) -> Self {
        ListScreen {
            entity,
            conditions,
            order: None,
            window: PageWindow::default(),
            marks: BTreeSet::new(),
            pane: BrowsePane::List,
            zoomed: false,
            detail: Detail::new(entity),
            pending: None,
            resting: None,
            failure: None,
            failed: None,
            live: LiveTail::default(),
            renewal: (Renewal::default(), WantedPage::First),
            marks_renewal: Renewal::default(),
            parted: None,
            counted: CountedRows::default(),
            values: KnownValues::new(),
            pending_values: None,
            more: Vec::new(),
            widths: MeasuredColumns::default(),
            tallest: 0,
        }
    }

    /// The order in use.
    pub fn order_used(&self) -> Order {
        let newest = Order { column: self.entity.time_column(), descending: true };
        self.order.clone().unwrap_or(newest)
    }

    /// The rows that the list shows, as a question for its page.
    pub fn query(&self, want: &WantedPage) -> Query {
        let (start, limit) = want.start();
        Query {
            filters: self.conditions.filters.clone(),
            canvas: self.conditions.canvas.clone(),
            order: self.order.clone(),
            limit,
            start,
            columns: Some(read_columns(self.entity).into_iter().chain(self.more.iter().copied()).collect()),
            preview: Some(PREVIEW),
            ..Query::new(self.entity)
        }
    }

    /// Whether the shown rows are about to be replaced.
    pub fn is_stale(&self) -> bool {
        self.pending.as_ref().is_some_and(|(_, want)| want.replaces()) || self.failure.is_some()
    }

    /// Drops the rows, to read them again.
    pub fn restart(&mut self) {
        self.window.clear();
        self.widths.doubt();
        (self.failure, self.failed) = (None, None);
    }

    /// Requests a page in place of the pending one.
    fn ask(&mut self, want: WantedPage, cx: &mut Context) {
        cx.cancel(self.pending.take().map(|(ticket, _)| ticket));
        cx.cancel(self.renewal.0.release());
        (self.failure, self.failed) = (None, None);
        if want.replaces() {
            self.live.read_again();
            cx.cancel(self.counted.doubt());
        }
        let query = self.query(&want);
        self.pending = Some((cx.ask(Request::LoadPage(Box::new(query))), want));
    }

    fn ask_detail(&mut self, cx: &mut Context) {
        self.detail.ask(self.window.current(), cx);
    }

    /// The details follow the selected row.
    fn follow_selection(&mut self, cx: &mut Context) {
        let key = self.window.current().map(RowKey::of);
        self.parted.take_if(|parted| self.pane == BrowsePane::List || key.as_ref() != Some(parted));
        if self.detail.key == key || self.parted.is_some() {
            return;
        }
        // While others are being read, the cursor rests for a moment first.
        let busy = self.detail.pending.is_some() || self.resting.is_some();
        cx.cancel(self.resting.take());
        cx.cancel(self.detail.release());
        self.detail.key = key;
        self.detail.failure = None;
        self.detail.gone = false;
        self.detail.version += 1;
        if self.detail.key.is_none() {
            self.detail.forget();
        } else if busy {
            self.resting = Some(cx.wait(REST));
        } else {
            self.ask_detail(cx);
        }
    }

    fn take_page(&mut self, result: Result<Page, RequestFailure>, cx: &mut Context) {
        let Some((_, want)) = self.pending.take() else { return };
        match result {
            Ok(page) => {
                cx.read_names(&page.rows);
                let is_there = self.window.receive(&want, page);
                if self.live.follows && want.replaces() {
                    self.window.select(0);
                // A change just made here explains it.
                } else if !is_there && cx.toast.as_ref().is_none_or(|toast| toast.tone != ToastTone::Good) {
                    cx.say(ToastTone::Info, gone_words(&want));
                }
            }
            Err(failure) => {
                self.live.awaits(Some(&failure), cx);
                (self.failure, self.failed) = (Some(failure.clone()), Some(want));
                if !self.window.is_empty() {
                    cx.fail(failure);
                }
            }
        }
    }

    /// Stops reading a page without which nothing can be shown. False if there was none.
    fn stop(&mut self, cx: &mut Context) -> bool {
        if self.pending.as_ref().is_none_or(|(_, want)| !want.replaces()) {
            return false;
        }
        let waited = self.release();
        cx.cancel(waited);
        self.unwant();
        self.failure = Some(RequestFailure::bare("Reading was stopped", "what is shown may be out of date"));
        cx.say(ToastTone::Info, "stopped");
        true
    }

    /// Forgets a wanted row that was not read; it is wanted again on return.
    fn unwant(&mut self) {
        if self.detail.row().is_none() {
            self.detail.key = None;
        }
    }
}

/// Explains why another row is selected than before a page was read.
fn gone_words(want: &WantedPage) -> String {
    match want {
        WantedPage::Sorted => format!("the selected row is not among the first {PAGE_ROWS} in this order"),
        _ => "the selected row is no longer in the list".to_owned(),
    }
}

/// Returns the command for which rows of an entity are looked up most often.
fn task_of(entity: Entity) -> Option<CommandId> {
    match entity {
        Entity::Episode | Entity::Memory | Entity::Case | Entity::Access => Some(CommandId::Panel(ScreenKind::Recall)),
        Entity::Feedback => Some(CommandId::Change(CommandAsk::EditFeedback)),
        Entity::Subject => Some(CommandId::Erase),
        _ => None,
    }
}

impl Screen for ListScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::shared("", CommandId::List(self.entity))
    }

    fn title(&self, cx: &Context) -> String {
        if self.conditions.is_empty() {
            return self.entity.plural().to_owned();
        }
        format!("{} where {}", self.entity.plural(), listing::told(cx, &self.conditions))
    }

    fn hints(&self) -> Vec<CommandId> {
        use CommandId::{
            Close, CopyId, Export, Filter, Focus, Follow, Mark, Open, Palette, Relative, Sort, TabRight, Tail, Zoom,
        };
        match self.pane {
            BrowsePane::List => {
                let rest = [Sort, Follow, TabRight, Palette, Tail, Mark, Export, CopyId, Zoom];
                [Open, Filter].into_iter().chain(task_of(self.entity)).chain(rest).collect()
            }
            BrowsePane::Detail if self.detail.current_tab() == DetailTab::Story => {
                vec![Open, TabRight, Relative(ChainStep::Parent), Relative(ChainStep::Children), Follow, Close, Palette]
            }
            BrowsePane::Detail => {
                let rest = [Follow, Close, Palette, CopyId, Focus, Zoom];
                [TabRight].into_iter().chain(task_of(self.entity)).chain(rest).collect()
            }
        }
    }

    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        match id {
            CommandId::Panel(ScreenKind::Recall) => Some("why recalled"),
            CommandId::Erase => Some("erase"),
            CommandId::Tail if self.live.follows => Some("pause"),
            CommandId::Change(CommandAsk::EditFeedback) => Some("correct it"),
            _ => None,
        }
    }

    fn row(&self) -> Option<&Row> {
        self.detail.row().or_else(|| self.window.current().filter(|_| self.parted.is_none()))
    }

    fn selected(&self) -> Option<(Entity, &str)> {
        match &self.parted {
            // The shown row is meant, not the one that replaced it.
            Some(_) => Some((self.entity, self.detail.id())),
            None => self.window.current().map(|row| (self.entity, row.id())),
        }
    }

    fn twin(&self, cx: &Context) -> Vec<String> {
        /// Most rows that the command lists on its own.
        const LISTED: usize = 50;
        if self.pane == BrowsePane::Detail {
            return self.detail.twin();
        }
        let mut line = words(["list", self.entity.name()]);
        let shown = self.marked_ones().unwrap_or_else(|| cx.masking.shown(&self.conditions));
        for filter in &shown.filters {
            line.extend(words(["--where", &filter.to_string()]));
        }
        if let Some(canvas) = &shown.canvas {
            line.extend(words(["--canvas", &canvas_text(canvas)]));
        }
        if let Some(order) = &self.order {
            let direction = if order.descending { "desc" } else { "asc" };
            line.extend(["--order".to_owned(), format!("{}:{direction}", order.column)]);
        }
        if self.marks.len() > LISTED {
            line.extend(["--limit".to_owned(), self.marks.len().to_string()]);
        }
        line
    }

    /// On return from another list, the whole list gets back its marks and its order.
    fn inherit(&mut self, earlier: &Self, _here: bool) -> bool {
        if self.entity != earlier.entity {
            return false;
        }
        if self.conditions.is_empty() {
            self.marks.clone_from(&earlier.marks);
            self.order.clone_from(&earlier.order);
        }
        true
    }

    fn settle(&mut self, cx: &mut Context) {
        self.read_chosen(cx);
        self.window.scroll_into(cx.measures.list_rows);
        if self.pending.is_none()
            && self.failure.is_none()
            && let Some(want) = self.window.wants()
        {
            self.ask(want, cx);
        }
        self.follow_selection(cx);
        self.detail.settle_whereabouts(cx);
        self.count(cx);
        self.watch(cx);
        // Rows that are about to be replaced are not measured again.
        if self.window.is_empty() || self.pending.as_ref().is_none_or(|(_, want)| !want.replaces()) {
            self.widths.measure(self.entity, &self.window, self.zoomed, cx);
        }
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Counted(result) => self.counted.take(ticket, result),
            Reply::Values(result) => self.take_values(ticket, result),
            Reply::Page(result) if self.renewal.0.end(ticket) => self.take_renewed(result, cx),
            Reply::Related(result) if self.marks_renewal.end(ticket) => self.take_marked(result, cx),
            Reply::Page(result) => self.take_page(result, cx),
            Reply::News(rows) => self.take_news(&rows, cx),
            other => {
                self.detail.take(ticket, other, cx);
                self.live.awaits(self.detail.failure.as_ref(), cx);
            }
        }
    }

    fn elapsed(&mut self, ticket: Ticket, cx: &mut Context) {
        if self.resting.take_if(|resting| *resting == ticket).is_some() {
            self.ask_detail(cx);
        }
    }

    fn can(&self, id: CommandId, cx: &Context) -> Result<(), Lack> {
        let no = |reason: &str| Err((reason.to_owned(), None));
        match id {
            CommandId::Relative(_) if self.entity != Entity::Episode => no("only where an episode is shown"),
            CommandId::TabRight | CommandId::TabLeft if self.pane == BrowsePane::List && draw::is_alone(self, cx) => {
                no("the details are not shown; enter opens them")
            }
            CommandId::Follow if self.detail.row().is_none() => no("no row is loaded"),
            CommandId::ClearFilter if self.conditions.is_empty() => no("there is no filter"),
            CommandId::Unmark if self.marks.is_empty() => no("nothing is marked"),
            CommandId::Export if cx.exporting.is_some() => no("an export is still running"),
            CommandId::CopyCommand if self.pane == BrowsePane::List => {
                self.can_name_marks().map_err(|reason| (reason.to_owned(), None))
            }
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::Filter if self.pane == BrowsePane::Detail => self.detail.seek(true, cx),
            CommandId::Filter => self.open_filter(cx),
            CommandId::Seek(onward) => self.detail.seek(onward, cx),
            CommandId::Relative(step) => self.detail.relative(step, cx),
            CommandId::ClearFilter => self.narrow(Conditions::default(), cx),
            CommandId::Columns => self.name_columns(cx),
            CommandId::Sort => self.offer_orders(cx),
            CommandId::SortLeft => self.sort_beside(-1, cx),
            CommandId::SortRight => self.sort_beside(1, cx),
            CommandId::Reverse => self.reverse(cx),
            CommandId::Mark => self.mark(),
            CommandId::Unmark => self.marks.clear(),
            CommandId::Tail => self.toggle_tail(cx),
            CommandId::Export => self.name_export(cx),
            CommandId::Follow => follow::offer(&self.detail, cx),
            CommandId::Zoom => self.zoomed = !self.zoomed,
            _ => {}
        }
    }

    fn open(&mut self, cx: &mut Context) {
        match self.pane {
            BrowsePane::Detail => self.detail.open(cx),
            BrowsePane::List if self.window.current().is_some() => self.pane = BrowsePane::Detail,
            BrowsePane::List => {}
        }
    }

    fn close(&mut self, cx: &mut Context) -> bool {
        if self.stop(cx) || self.detail.end_seeking() {
        } else if self.zoomed {
            self.zoomed = false;
        } else if self.pane == BrowsePane::Detail {
            self.pane = BrowsePane::List;
        } else {
            return false;
        }
        true
    }

    fn move_by(&mut self, by: isize, cx: &mut Context) {
        match self.pane {
            BrowsePane::Detail => self.detail.move_by(by, cx),
            BrowsePane::List => {
                self.live.pause();
                self.failed.take_if(|want| want.jumps());
                self.window.move_by(by);
            }
        }
    }

    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        self.detail.scroll_by(by, cx);
    }

    fn go_to_moment(&mut self, moment: usize) {
        self.pane = BrowsePane::Detail;
        self.detail.to(moment);
    }

    fn scroll_list(&mut self, by: isize, cx: &mut Context) {
        self.window.scroll_by(by, cx.measures.list_rows);
    }

    fn go_to_end(&mut self, last: bool, cx: &mut Context) {
        if self.pane == BrowsePane::Detail {
            self.detail.move_by(if last { isize::MAX } else { isize::MIN }, cx);
        } else if let Some(want) = if last { self.window.last() } else { self.window.first() } {
            self.ask(want, cx);
        }
    }

    fn page(&self, cx: &Context) -> usize {
        if self.pane == BrowsePane::Detail { cx.measures.detail_rows } else { cx.measures.list_rows }
    }

    fn select(&mut self, position: usize) {
        self.pane = BrowsePane::List;
        self.live.pause();
        self.failed.take_if(|want| want.jumps());
        self.window.select(position);
    }

    fn sort_by(&mut self, column: &'static str, cx: &mut Context) {
        self.order_by(column, cx);
    }

    fn has_panes(&self) -> bool {
        true
    }

    fn focus(&mut self, detail: bool) {
        self.pane = if detail { BrowsePane::Detail } else { BrowsePane::List };
    }

    fn other_pane(&mut self, _cx: &Context) {
        self.focus(self.pane == BrowsePane::List);
    }

    fn turn_tab(&mut self, by: isize) {
        self.detail.turn(by);
        self.tallest = 0;
    }

    fn show_tab(&mut self, tab: usize) {
        self.detail.show_tab(tab);
        self.tallest = 0;
    }

    fn whole_row(&self) -> Option<&Row> {
        self.detail.row()
    }

    fn context_rows(&self, entity: Entity) -> &[Row] {
        self.detail.context_rows(entity)
    }

    fn marked(&self, entity: Entity) -> Vec<String> {
        if self.entity != entity {
            return Vec::new();
        }
        let ids = self.marks.iter().map(|key| key.id().to_owned());
        ids.filter(|id| !id.is_empty()).collect()
    }

    fn means_open_row(&self) -> bool {
        self.pane == BrowsePane::Detail
    }

    /// A list without a filter contains all marked rows; of a filtered one, only the loaded rows are known.
    fn unseen_marks(&self) -> usize {
        if self.conditions.is_empty() {
            return 0;
        }
        let held = self.window.rows().filter(|row| self.marks.contains(&RowKey::of(row))).count();
        self.marks.len().saturating_sub(held)
    }

    fn marked_rows(&self) -> Vec<Row> {
        self.window.rows().filter(|row| self.marks.contains(&RowKey::of(row))).cloned().collect()
    }

    fn kept(&self) -> Option<KeptPlace> {
        let direction = |order: &Order| if order.descending { "desc" } else { "asc" };
        Some(KeptPlace {
            entity: Some(self.entity),
            filter: Some(self.conditions.line()).filter(|line| !line.is_empty()),
            order: self.order.as_ref().map(|order| format!("{}:{}", order.column, direction(order))),
            ..KeptPlace::default()
        })
    }

    fn has_details(&self) -> bool {
        true
    }

    fn has_tab(&self, title: &str) -> bool {
        tabs(self.entity).iter().any(|tab| tab.title() == title)
    }

    fn show_named_tab(&mut self, title: &str) -> bool {
        let shown = self.detail.show_named_tab(title);
        self.tallest = 0;
        shown
    }

    fn drawn(&mut self, cx: &Context) {
        self.detail.drawn(cx);
        self.tallest = self.tallest.max(cx.measures.detail_lines);
    }

    fn tried(&mut self, purpose: Purpose, text: &str, cx: &mut Context) {
        if purpose == Purpose::Filter {
            self.filter(text, cx);
        }
    }

    fn completes(&mut self, purpose: Purpose, before_cursor: &str, cx: &mut Context) {
        if purpose == Purpose::Filter {
            self.read_values(before_cursor, cx);
        }
    }

    fn written(&mut self, purpose: Purpose, text: &str, cx: &mut Context) {
        match purpose {
            Purpose::Filter => self.filter(text, cx),
            Purpose::Columns => self.choose_columns(text, cx),
            Purpose::Within => {
                self.detail.seek_words(text, cx);
                // If there is no room beside the list, the details are shown instead.
                if !text.is_empty() && self.window.current().is_some() && draw::is_alone(self, cx) {
                    self.pane = BrowsePane::Detail;
                }
            }
            Purpose::Export => self.export(text, cx),
            _ => {}
        }
    }

    fn judge(&self, prompt: &Prompt, cx: &Context) -> Option<Judged> {
        self.judge_line(prompt, cx)
    }

    fn chosen(&mut self, choice: MenuChoice, cx: &mut Context) {
        if let MenuChoice::Sort(column) = choice {
            self.order_by(column, cx);
        }
    }

    /// Clears the marks after a proposal for the marked rows was carried out; for some of them there may have been
    /// nothing to do.
    fn carried_out(&mut self, proposal: &Proposal) {
        let rows = proposal.rows_of(self.entity);
        if self.means_open_row() {
            self.marks.retain(|key| !rows.contains(&key.id()));
        } else if !rows.is_empty() && rows.iter().all(|id| self.marks.iter().any(|key| key.id() == *id)) {
            self.marks.clear();
        }
    }

    fn left(&mut self, _cx: &mut Context) {
        self.unwant();
    }

    fn release(&mut self) -> Vec<Ticket> {
        let page = self.pending.take().map(|(ticket, _)| ticket);
        let values = self.pending_values.take().map(|(ticket, _)| ticket);
        let counting = self.counted.doubt();
        let page = page.into_iter().chain(values).chain(counting);
        let renewals = self.renewal.0.release().into_iter().chain(self.marks_renewal.release());
        page.chain(self.resting.take())
            .chain(renewals)
            .chain(self.live.release())
            .chain(self.detail.release())
            .collect()
    }

    fn forget(&mut self) {
        self.restart();
        self.detail.forget();
    }

    /// Reads the page that could not be read, else the rows on screen; the selection and the old rows stay until then.
    fn refresh(&mut self, cx: &mut Context) {
        let want = self.failed.take().unwrap_or_else(|| self.window.again(cx.measures.list_rows));
        self.ask(want, cx);
        self.widths.doubt();
        self.live.grown = false;
        if self.detail.key.is_some() {
            self.ask_detail(cx);
        }
    }

    fn lists(&self) -> Option<Entity> {
        Some(self.entity)
    }

    fn may_age(&self) -> bool {
        false
    }

    fn news(&self) -> usize {
        self.live.fresh
    }

    fn is_reading(&self) -> bool {
        self.pending.is_some() || self.failure.is_some()
    }

    fn awaits_rows(&self) -> bool {
        self.pending.is_some() && self.failure.is_none()
    }

    fn awaits_jump(&self) -> bool {
        self.pending.as_ref().is_some_and(|(_, want)| want.jumps())
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw_list(self, cx, canvas);
    }
}
