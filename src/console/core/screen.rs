//! Screens, and everything that the core asks of them. A screen sees its own state and a [`Context`], nothing else.

use super::command::{self, CommandId, CommandScope};
use super::context::{Context, Lack};
use super::list_cursor::ListCursor;
use super::menu::{MenuChoice, Prompt, Purpose};
use super::message::Ticket;
use super::proposal::Proposal;
use super::request::Reply;
pub use super::screen_kind::ScreenKind;
use crate::change::operation::Operation;
use crate::console::view::Canvas;
use crate::memory::kept::KeptPlace;
use crate::memory::{Entity, Row};

/// Selection at the place from which a screen was opened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScreenOrigin {
    /// Kind and id of the selected row.
    pub selected: Option<(Entity, String)>,
    /// The selected row, as far as it is known.
    pub row: Option<Row>,
    /// The person that it is, or belongs to.
    pub person: Option<String>,
}

impl ScreenOrigin {
    /// The id of the selected row, when it is of that kind; else what the row names in that column.
    #[must_use]
    pub fn id_of(&self, entity: Entity, column: &str) -> Option<String> {
        let own = self.selected.as_ref().filter(|(found, id)| *found == entity && !id.is_empty());
        let named = || self.row.as_ref().and_then(|row| row.text(column)).map(str::to_owned);
        own.map(|(_, id)| id.clone()).or_else(named).filter(|id| !id.is_empty())
    }
}

/// Verdict on a line: its meaning or what is wrong with it, and what may replace it.
pub type Judged = (Result<String, String>, Vec<String>);

/// Title of a screen, the command that leads to it, and the commands that are its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScreenFace {
    /// Title of the screen in the breadcrumbs.
    pub title: &'static str,
    /// The command that leads to such a screen.
    pub leads_here: CommandId,
    /// The commands that exist there only.
    pub scope: CommandScope,
}

impl ScreenFace {
    /// A screen of its own kind.
    #[must_use]
    pub fn own(title: &'static str, kind: ScreenKind, scope: CommandScope) -> Self {
        ScreenFace { title, leads_here: CommandId::Panel(kind), scope }
    }

    /// A screen without commands of its own.
    #[must_use]
    pub fn shared(title: &'static str, leads_here: CommandId) -> Self {
        ScreenFace { title, leads_here, scope: CommandScope::Everywhere }
    }
}

/// A screen.
pub trait Screen: std::any::Any {
    /// Returns the title of the screen, the command that leads to it, and the commands that are its own.
    fn face(&self) -> ScreenFace;

    /// Returns the title of the screen in the breadcrumbs.
    fn title(&self, _cx: &Context) -> String {
        self.face().title.to_owned()
    }

    /// The command that leads to such a screen.
    fn leads_here(&self) -> CommandId {
        self.face().leads_here
    }

    /// The commands that exist here only.
    fn scope(&self) -> CommandScope {
        self.face().scope
    }

    /// Commands shown in the footer, the most useful first.
    fn hints(&self) -> Vec<CommandId> {
        use CommandId::{Close, Focus, Palette, Refresh, ScrollDetail};
        let pane = self.has_panes().then_some(Focus);
        command::hinted(self.scope()).chain(pane).chain([Close, Palette, ScrollDetail(true), Refresh]).collect()
    }

    /// Word in the footer for a command that does something of its own here.
    fn hint_word(&self, _id: CommandId) -> Option<&'static str> {
        None
    }

    /// Whether a pane can have the whole screen.
    fn zooms(&self) -> bool {
        self.lists().is_some()
    }

    /// The selected row, as far as it is known.
    fn row(&self) -> Option<&Row> {
        None
    }

    /// Kind and id of the selected row.
    fn selected(&self) -> Option<(Entity, &str)> {
        self.row().map(|row| (row.entity, row.id()))
    }

    /// The person that everything here is about, if it is about one.
    fn person(&self) -> Option<&str> {
        None
    }

    /// The words of the command line that shows the same, quoted where they need it.
    fn twin(&self, cx: &Context) -> Vec<String>;

    /// Takes over what was selected where it was opened from; whether that led here.
    fn enter(&mut self, _origin: &ScreenOrigin, _cx: &mut Context) -> bool {
        false
    }

    /// Whether opening it from itself is another place, and not this one again.
    fn opens_again(&self, _origin: &ScreenOrigin, _cx: &Context) -> bool {
        false
    }

    /// Takes over what was selected when it is opened from itself.
    fn enter_again(&mut self, _origin: &ScreenOrigin, _cx: &mut Context) {}

    /// Takes over what an earlier screen of the kind knows; `here` when it is the one that was shown just now. False when
    /// one before that may know it instead.
    fn inherit(&mut self, _earlier: &Self, _here: bool) -> bool
    where
        Self: Sized,
    {
        true
    }

    /// Asks for what is missing. Called after every message: asks nothing twice.
    fn settle(&mut self, cx: &mut Context);

    /// Takes a reply that it waits for.
    fn reply(&mut self, _ticket: Ticket, _reply: Reply, _cx: &mut Context) {}

    /// A time that it waited for is over.
    fn elapsed(&mut self, _ticket: Ticket, _cx: &mut Context) {}

    /// Whether a command can be given here and now.
    ///
    /// # Errors
    /// Why not, and what would help.
    fn can(&self, id: CommandId, _cx: &Context) -> Result<(), Lack> {
        if id == CommandId::Follow { Err(("no row is loaded".to_owned(), None)) } else { Ok(()) }
    }

    /// Carries out a command of its own.
    fn command(&mut self, _id: CommandId, _cx: &mut Context) {}

    /// Opens what is selected.
    fn open(&mut self, _cx: &mut Context) {}

    /// Steps out of something within the screen; whether there was anything.
    fn close(&mut self, _cx: &mut Context) -> bool {
        false
    }

    /// The place in the list, and how many entries this has, where moving in it does no more than that.
    fn cursor(&mut self) -> Option<(&mut ListCursor, usize)> {
        None
    }

    /// Moves the selection, or scrolls what has the keys.
    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        if let Some((cursor, _)) = self.cursor() {
            let position = cursor.selected.saturating_add_signed(by);
            self.select(position);
        }
    }

    /// Scrolls the details, where there are any.
    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        if let Some((cursor, _)) = self.cursor() {
            cursor.scroll = cursor.scroll.saturating_add_signed(by).min(cx.last_line());
        }
    }

    /// Scrolls the list without moving the selection, where it can.
    fn scroll_list(&mut self, by: isize, cx: &mut Context) {
        self.move_by(by, cx);
    }

    /// Goes to the first entry, or to the last.
    fn go_to_end(&mut self, last: bool, cx: &mut Context) {
        self.move_by(if last { isize::MAX } else { isize::MIN }, cx);
    }

    /// Rows of a screenful.
    fn page(&self, cx: &Context) -> usize {
        cx.measures.list_rows
    }

    /// Selects the entry at a position.
    fn select(&mut self, position: usize) {
        if let Some((cursor, entries)) = self.cursor() {
            cursor.select(position, entries);
        }
    }

    /// Whether the entry at a position is selected, so that a click opens it.
    fn is_at(&self, _position: usize) -> bool {
        false
    }

    /// Goes to a moment of the story that is shown.
    fn go_to_moment(&mut self, _moment: usize) {}

    /// Orders the list by a column.
    fn sort_by(&mut self, _column: &'static str, _cx: &mut Context) {}

    /// Goes some tabs further.
    fn turn_tab(&mut self, _by: isize) {}

    /// Shows a tab.
    fn show_tab(&mut self, _tab: usize) {}

    /// The selected row, once it was read as a whole: what a list holds is cut short.
    fn whole_row(&self) -> Option<&Row> {
        self.row()
    }

    /// Rows of that kind that belong to the selected one.
    fn context_rows(&self, _entity: Entity) -> &[Row] {
        &[]
    }

    /// The text that is copied here, where it is not that of a row.
    fn copies(&self) -> Option<String> {
        None
    }

    /// Ids of marked rows of that kind.
    fn marked(&self, _entity: Entity) -> Vec<String> {
        Vec::new()
    }

    /// Whether a command is about the row whose details are read, whatever is marked in the list.
    fn means_open_row(&self) -> bool {
        false
    }

    /// Marked rows that are not in the list as far as anybody can see.
    fn unseen_marks(&self) -> usize {
        0
    }

    /// The marked rows, as far as they are held.
    fn marked_rows(&self) -> Vec<Row> {
        Vec::new()
    }

    /// The place, to be kept; none when its name says it all, or it cannot be kept.
    fn kept(&self) -> Option<KeptPlace> {
        None
    }

    /// Whether what is shown has a tab of that title.
    fn has_tab(&self, _title: &str) -> bool {
        false
    }

    /// Shows the tab of that title; whether there is one.
    fn show_named_tab(&mut self, _title: &str) -> bool {
        false
    }

    /// Whether there is a second pane, and not only one.
    fn has_panes(&self) -> bool {
        false
    }

    /// Moves the focus to the details, or to the list.
    fn focus(&mut self, _detail: bool) {}

    /// Moves the focus to the other pane.
    fn other_pane(&mut self, _cx: &Context) {}

    /// Handles having been drawn: how much there is to scroll is known now.
    fn drawn(&mut self, _cx: &Context) {}

    /// Takes a line that was written.
    fn written(&mut self, _purpose: Purpose, _text: &str, _cx: &mut Context) {}

    /// A line that is being written stands still, and can be taken: it is tried, and taken back if it is closed.
    fn tried(&mut self, _purpose: Purpose, _text: &str, _cx: &mut Context) {}

    /// Handles a request for completions at the cursor of a line.
    fn completes(&mut self, _purpose: Purpose, _before_cursor: &str, _cx: &mut Context) {}

    /// Says of a line what it means, where that is for this screen to say.
    fn judge(&self, _prompt: &Prompt, _cx: &Context) -> Option<Judged> {
        None
    }

    /// Takes what was chosen from a menu.
    fn chosen(&mut self, _choice: MenuChoice, _cx: &mut Context) {}

    /// Suggests the operation that a change is about when this is selected, unless it is about the row itself.
    fn suggests(&self) -> Option<Operation> {
        None
    }

    /// Returns the reason that the plan of a change begins with, as written here before.
    fn reason(&self) -> Option<&str> {
        None
    }

    /// A form on this feedback row was planned.
    fn edited(&mut self, _id: &str) {}

    /// A change was made, perhaps one that was asked for here, with the number of its audit entry.
    fn changed(&mut self, _operation: &Operation, _seq: Option<i64>) {}

    /// An operation was carried out, at least in part.
    fn carried_out(&mut self, _proposal: &Proposal) {}

    /// Handles the refusal of a change that was requested here.
    fn refused(&mut self) {}

    /// The last question was answered with a yes, and perhaps with a reason.
    fn confirmed(&mut self, _reason: Option<String>, _cx: &mut Context) {}

    /// A job of this console, or one asked from here, began, stopped or was asked to stop.
    fn job_moved(&mut self) {}

    /// Prepares for being left: others may write meanwhile.
    fn left(&mut self, cx: &mut Context) {
        self.others_wrote(cx);
    }

    /// Returns the reason why the screen cannot be left: something runs here that must not be interrupted unasked.
    fn busy(&self) -> Option<&'static str> {
        None
    }

    /// Gives up every request that the screen waits for, and returns them. It waits for none afterwards, and asks
    /// again.
    fn release(&mut self) -> Vec<Ticket>;

    /// Marks what was read as out of date: it is read again, and the selection stays.
    fn forget(&mut self);

    /// Reads again what is shown.
    fn refresh(&mut self, cx: &mut Context) {
        let waited = self.release();
        cx.cancel(waited);
        self.forget();
    }

    /// The kind of rows that it lists, with marks, filters and an order.
    fn lists(&self) -> Option<Entity> {
        None
    }

    /// Whether it says what others write meanwhile, and can follow it.
    fn is_live(&self) -> bool {
        self.lists().is_some()
    }

    /// Whether what others write makes it old, and it does not watch that itself.
    fn may_age(&self) -> bool {
        true
    }

    /// Others wrote: reads again what is shown, where that is soon done. Whether it does.
    fn others_wrote(&mut self, _cx: &mut Context) -> bool {
        false
    }

    /// Rows that came since it was read, as far as it is watched.
    fn news(&self) -> usize {
        0
    }

    /// Whether it shows the database as it was, when one looks at the past; else it shows it as it is.
    fn shows_past(&self) -> bool {
        self.lists().is_some()
    }

    /// The moment that a look at the past would begin with here: an age, a time, or the number of a change.
    fn moment(&self) -> Option<String> {
        None
    }

    /// Whether it shows what is wrong or suspicious: that is looked for as long as someone sees it.
    fn shows_findings(&self) -> bool {
        false
    }

    /// Whether it is reading something that comes before the state of the database.
    fn is_reading(&self) -> bool {
        false
    }

    /// Whether what it shows is about to be replaced by what is being read.
    fn awaits_rows(&self) -> bool {
        self.is_reading()
    }

    /// Whether rows are on their way among which another one will be selected: keys wait for them.
    fn awaits_jump(&self) -> bool {
        false
    }

    /// Draws it.
    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>);
}
