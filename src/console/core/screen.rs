//! Screens, and their interface to the core. A screen sees only its own state and a [`Context`].

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
    /// The selected row, if known.
    pub row: Option<Row>,
    /// The person that it is, or belongs to.
    pub person: Option<String>,
}

impl ScreenOrigin {
    /// The id of the selected row if it is of this entity, else the value of the column.
    pub fn id_of(&self, entity: Entity, column: &str) -> Option<String> {
        let own = self.selected.as_ref().filter(|(found, id)| *found == entity && !id.is_empty());
        let named = || self.row.as_ref().and_then(|row| row.text(column)).map(str::to_owned);
        own.map(|(_, id)| id.clone()).or_else(named).filter(|id| !id.is_empty())
    }
}

/// Verdict on a line: its meaning or its error, and suggested replacements.
pub type Judged = (Result<String, String>, Vec<String>);

/// Title of a screen, the command that leads to it, and its own commands.
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
    pub fn own(title: &'static str, kind: ScreenKind, scope: CommandScope) -> Self {
        ScreenFace { title, leads_here: CommandId::Panel(kind), scope }
    }

    /// A screen without commands of its own.
    pub fn shared(title: &'static str, leads_here: CommandId) -> Self {
        ScreenFace { title, leads_here, scope: CommandScope::Everywhere }
    }
}

/// A screen.
pub trait Screen: std::any::Any {
    /// Returns the title, the command that leads here, and the screen's own commands.
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

    /// Word in the footer for a command with a special effect here.
    fn hint_word(&self, _id: CommandId) -> Option<&'static str> {
        None
    }

    /// Whether a pane can take the whole screen.
    fn zooms(&self) -> bool {
        self.lists().is_some()
    }

    /// The selected row, if known.
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

    /// Words of the command line that shows the same and changes nothing, quoted for a shell.
    fn twin(&self, cx: &Context) -> Vec<String>;

    /// Takes over the selection of the place from which it was opened. True if that led here.
    fn enter(&mut self, _origin: &ScreenOrigin, _cx: &mut Context) -> bool {
        false
    }

    /// Whether opening it from itself leads to another place.
    fn opens_again(&self, _origin: &ScreenOrigin, _cx: &Context) -> bool {
        false
    }

    /// Takes over the selection when it is opened from itself.
    fn enter_again(&mut self, _origin: &ScreenOrigin, _cx: &mut Context) {}

    /// Takes over the state of an earlier screen of this kind; `here` if it was the last one shown. False if an even
    /// earlier one should be asked.
    fn inherit(&mut self, _earlier: &Self, _here: bool) -> bool
    where
        Self: Sized,
    {
        true
    }

    /// Requests missing data. Called after every message; nothing is requested twice.
    fn settle(&mut self, cx: &mut Context);

    /// Takes a reply to its own request.
    fn reply(&mut self, _ticket: Ticket, _reply: Reply, _cx: &mut Context) {}

    /// Handles that its timer elapsed.
    fn elapsed(&mut self, _ticket: Ticket, _cx: &mut Context) {}

    /// Checks that a command is possible here and now.
    ///
    /// # Errors
    /// The reason why not, with a remedy.
    fn can(&self, _id: CommandId, _cx: &Context) -> Result<(), Lack> {
        Ok(())
    }

    /// Carries out a command of its own.
    fn command(&mut self, _id: CommandId, _cx: &mut Context) {}

    /// Opens the selected entry.
    fn open(&mut self, _cx: &mut Context) {}

    /// Steps out of something within the screen; whether there was anything.
    fn close(&mut self, _cx: &mut Context) -> bool {
        false
    }

    /// The cursor in the list and the number of entries, if moving does nothing else.
    fn cursor(&mut self) -> Option<(&mut ListCursor, usize)> {
        None
    }

    /// Moves the selection, or scrolls the focused pane.
    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        if let Some((cursor, _)) = self.cursor() {
            let position = cursor.selected.saturating_add_signed(by);
            self.select(position);
        }
    }

    /// Scrolls the details, if any.
    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        if let Some((cursor, _)) = self.cursor() {
            cursor.scroll = cursor.scroll.saturating_add_signed(by).min(cx.last_line());
        }
    }

    /// Scrolls the list without moving the selection, if possible.
    fn scroll_list(&mut self, by: isize, cx: &mut Context) {
        self.move_by(by, cx);
    }

    /// Goes to the first or last entry.
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

    /// Goes to a moment of the story.
    fn go_to_moment(&mut self, _moment: usize) {}

    /// Orders the list by a column.
    fn sort_by(&mut self, _column: &'static str, _cx: &mut Context) {}

    /// Turns by a number of tabs.
    fn turn_tab(&mut self, _by: isize) {}

    /// Shows a tab.
    fn show_tab(&mut self, _tab: usize) {}

    /// The selected row if it was read as a whole: rows in lists are cut short.
    fn whole_row(&self) -> Option<&Row> {
        self.row()
    }

    /// Rows of this entity that belong to the selected one.
    fn context_rows(&self, _entity: Entity) -> &[Row] {
        &[]
    }

    /// The text to copy, if it is not that of a row.
    fn copies(&self) -> Option<String> {
        None
    }

    /// Ids of marked rows of this entity.
    fn marked(&self, _entity: Entity) -> Vec<String> {
        Vec::new()
    }

    /// Whether a command applies to the row whose details are read, even if rows in the list are marked.
    fn means_open_row(&self) -> bool {
        false
    }

    /// Number of marked rows that are not visible in the list.
    fn unseen_marks(&self) -> usize {
        0
    }

    /// The marked rows, as far as they are held.
    fn marked_rows(&self) -> Vec<Row> {
        Vec::new()
    }

    /// The place to save; `None` if its name says everything, or if it cannot be saved.
    fn kept(&self) -> Option<KeptPlace> {
        None
    }

    /// Whether it shows the details of a row: what they lead to is followed, and their text is searched and wrapped.
    fn has_details(&self) -> bool {
        false
    }

    /// Whether there are tabs to turn.
    fn has_tabs(&self, _cx: &Context) -> bool {
        self.has_details()
    }

    /// Whether there is a tab of this title.
    fn has_tab(&self, _title: &str) -> bool {
        false
    }

    /// Shows the tab of this title. False if there is none.
    fn show_named_tab(&mut self, _title: &str) -> bool {
        false
    }

    /// Whether there is a second pane.
    fn has_panes(&self) -> bool {
        false
    }

    /// Moves the focus to the details, or to the list.
    fn focus(&mut self, _detail: bool) {}

    /// Moves the focus to the other pane.
    fn other_pane(&mut self, _cx: &Context) {}

    /// Handles that it was drawn: the scroll ranges are known now.
    fn drawn(&mut self, _cx: &Context) {}

    /// Takes a written line.
    fn written(&mut self, _purpose: Purpose, _text: &str, _cx: &mut Context) {}

    /// Applies a line provisionally while it is being written; this is reverted if the line is closed.
    fn tried(&mut self, _purpose: Purpose, _text: &str, _cx: &mut Context) {}

    /// Handles a request for completions at the cursor of a line.
    fn completes(&mut self, _purpose: Purpose, _before_cursor: &str, _cx: &mut Context) {}

    /// Judges a line if that is up to this screen.
    fn judge(&self, _prompt: &Prompt, _cx: &Context) -> Option<Judged> {
        None
    }

    /// Takes a choice from a menu.
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

    /// Handles a change, requested here or elsewhere, with the number of its audit entry.
    fn changed(&mut self, _operation: &Operation, _seq: Option<i64>) {}

    /// Handles that an operation was carried out, at least in part.
    fn carried_out(&mut self, _proposal: &Proposal) {}

    /// Handles the refusal of a change that was requested here.
    fn refused(&mut self) {}

    /// The last question was answered with a yes, and perhaps with a reason.
    fn confirmed(&mut self, _reason: Option<String>, _cx: &mut Context) {}

    /// Handles that a job of this console, or one controlled from it, began, stopped or was asked to stop.
    fn job_moved(&mut self) {}

    /// Handles leaving the screen: others may write meanwhile.
    fn left(&mut self, cx: &mut Context) {
        self.others_wrote(cx);
    }

    /// Returns the reason why the screen cannot be left: something runs here that must not be interrupted unasked.
    fn busy(&self) -> Option<&'static str> {
        None
    }

    /// Gives up all pending requests and returns them. Their data is requested again later.
    fn release(&mut self) -> Vec<Ticket>;

    /// Marks all data as out of date: it is read again, and the selection is kept.
    fn forget(&mut self);

    /// Reads the shown data again.
    fn refresh(&mut self, cx: &mut Context) {
        let waited = self.release();
        cx.cancel(waited);
        self.forget();
    }

    /// The kind of rows that it lists, with marks, filters and an order.
    fn lists(&self) -> Option<Entity> {
        None
    }

    /// Whether it reports new rows and can follow them.
    fn is_live(&self) -> bool {
        self.lists().is_some()
    }

    /// Whether writes by others make it out of date, and it does not watch for them itself.
    fn may_age(&self) -> bool {
        true
    }

    /// Handles that others wrote: reads the data again if that is quick. True if it does.
    fn others_wrote(&mut self, _cx: &mut Context) -> bool {
        false
    }

    /// Number of rows added since it was read, if watched.
    fn news(&self) -> usize {
        0
    }

    /// Whether it shows the past while one looks at the past, rather than the present.
    fn shows_past(&self) -> bool {
        self.lists().is_some()
    }

    /// The default moment for looking at the past here: an age, a time, or the number of a change.
    fn moment(&self) -> Option<String> {
        None
    }

    /// Whether it shows findings: the look for them runs while they are seen.
    fn shows_findings(&self) -> bool {
        false
    }

    /// Whether it is reading something more urgent than the state of the database.
    fn is_reading(&self) -> bool {
        false
    }

    /// Whether the shown rows are about to be replaced.
    fn awaits_rows(&self) -> bool {
        self.is_reading()
    }

    /// Whether rows are awaited that change the selection: keys wait for them.
    fn awaits_jump(&self) -> bool {
        false
    }

    /// Draws it.
    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>);
}
