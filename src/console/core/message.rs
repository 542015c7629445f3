//! Messages that reach the core, and effects that it asks for: all of it plain data.

use chrono::{DateTime, Utc};

use super::command::CommandId;
use super::condition::Conditions;
use super::key::Key;
use super::opened::{Arrival, OpenBeside};
use super::request::{Reply, Request};
use super::screen_kind::ScreenKind;
pub use super::ticket::{RequestFailure, Ticket};
use crate::job::plan::JobWish;
use crate::memory::Entity;

/// Target of a click: the thing that a place on the screen represents.
#[derive(Debug, Clone, PartialEq)]
pub enum ClickTarget {
    /// The row of the list at that position among those held.
    ListRow(usize),
    /// A column's title.
    ListHead(&'static str),
    /// The list elsewhere.
    List,
    /// A tab of the detail.
    Tab(usize),
    /// The detail elsewhere.
    Detail,
    /// A moment of a story, by its position.
    Moment(usize),
    /// A link to a destination.
    Link(Destination),
    /// An entry of the home screen.
    HomeEntry(usize),
    /// An entry of a screen of its own kind, by its position.
    PanelRow(usize),
    /// An entry of an open menu, counted in those that match.
    MenuItem(usize),
    /// A key hint.
    Command(CommandId),
    /// A step of the way here: this many steps back.
    Crumb(usize),
    /// The button that leaves everything as it is.
    Cancel,
    /// Inside of an overlay, with no further meaning.
    Overlay,
}

/// Destination of a link.
#[derive(Debug, Clone, PartialEq)]
pub enum Destination {
    /// The first screen.
    Home,
    /// One row with everything about it.
    Row(Entity, String),
    /// One row with everything about it, the tab of that title shown.
    Tab(Entity, String, &'static str),
    /// The rows of an entity.
    List(Entity, Conditions),
    /// A screen of its own kind.
    Panel(ScreenKind),
    /// Erasing a person.
    Erase(String),
    /// A finding: its kind, and the entity that it is of.
    Finding(&'static str, Option<&'static str>),
    /// Two rows of a kind, compared.
    Compare(Entity, Box<[String; 2]>),
    /// Words that are looked for in all texts.
    Find(String),
}

impl Destination {
    /// The kind of rows that it shows, where it shows rows.
    #[must_use]
    pub fn entity(&self) -> Option<Entity> {
        match self {
            Destination::Row(entity, _)
            | Destination::Tab(entity, ..)
            | Destination::List(entity, _)
            | Destination::Compare(entity, _) => Some(*entity),
            _ => None,
        }
    }
}

/// Sizes of what was drawn, which decide how far things scroll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measures {
    /// Rows of the list that fit.
    pub list_rows: usize,
    /// Lines of the detail that fit.
    pub detail_rows: usize,
    /// Lines of the detail in all.
    pub detail_lines: usize,
    /// Lines of the overlay that fit.
    pub overlay_rows: usize,
    /// Lines of the overlay in all.
    pub overlay_lines: usize,
    /// Gate whose dialog was drawn with its question and its keys, where one was.
    pub gate: Option<Ticket>,
    /// Entries of the home screen.
    pub home_entries: usize,
    /// Lines of the detail that hold what is sought there.
    pub sought_count: usize,
    /// The one of them that was gone to, counted from 1; 0 when there is none.
    pub sought_line: usize,
    /// The line that tells of the moment of the story that the cursor is on, counted from 1; 0 when there is none.
    pub moment_line: usize,
}

/// Fate of a text that was open in the user's editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditorEnd {
    /// It was a copy, which is gone.
    Read,
    /// It was a copy; what was saved in it is gone.
    Changed,
    /// It is kept in that file.
    Kept(String),
}

/// An event that reaches the core.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Names of the people in the database: hidden from now on while values are masked.
    People(Vec<String>),
    /// A reply to a request.
    Reply(Ticket, Reply),
    /// The console begins, at that time.
    Start(DateTime<Utc>),
    /// A key was pressed.
    Key(Key),
    /// A key is still held down and repeats itself: it moves and types, and never changes anything.
    Held(Key),
    /// The terminal says when keys are released: a held key will come as [`Message::Held`].
    Releases,
    /// A text was pasted.
    Paste(String),
    /// A click; `twice` when it follows another one at the same place.
    Click(ClickTarget, bool),
    /// The wheel was turned over something: up or down.
    Wheel(ClickTarget, bool),
    /// The terminal has this many columns and rows.
    Resize(u16, u16),
    /// The current time.
    Tick(DateTime<Utc>),
    /// The time asked for with [`Effect::After`] is over.
    Elapsed(Ticket),
    /// This was drawn.
    Drawn(Measures),
    /// A text was handed to the clipboard: what, and in how many bytes.
    Copied(Result<String, RequestFailure>),
    /// The editor was closed.
    Viewed(Result<EditorEnd, RequestFailure>),
    /// A failure outside of the core.
    Failed(RequestFailure),
    /// The other open databases.
    Beside(Vec<OpenBeside>),
    /// Another database was left for this one.
    Arrived(Box<Arrival>),
}

/// Step that shows, opens or closes a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchStep {
    /// Show the one that was opened just now.
    Opened,
    /// The same, in the place of the one that is shown, which is closed.
    Replace,
    /// Show the one of that number.
    To(u64),
    /// Close the one of that number, which is not shown.
    Close(u64),
    /// Close the one that is shown, and show the one before it.
    Leave,
}

/// An effect to be carried out outside of the core.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Load the names of the people in the database, to hide them.
    LoadPeople,
    /// Make a request that is answered with [`Message::Reply`] under the same number.
    Ask(Ticket, Request),
    /// Tell the job that runs under that number to stop.
    WishJob(Ticket, JobWish),
    /// Print these lines when the terminal has been given back.
    Tell(Vec<String>),
    /// Nobody waits for this any more: stop it, and forget a plan that is kept under it.
    Cancel(Ticket),
    /// Send [`Message::Elapsed`] after that many milliseconds.
    After(Ticket, u64),
    /// Put a text on the clipboard; the first is what it is, for people.
    Copy(String, String),
    /// Show a copy of a text in the user's editor; the first is the ending of its file's name.
    View(&'static str, String),
    /// Open a text in the user's editor, and keep its file; the first is the ending of its name.
    Edit(&'static str, String),
    /// Name the window.
    SetTitle(String),
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Show another of the databases that are open, or close one.
    Switch(SwitchStep),
    /// Draw everything afresh.
    Redraw,
    /// Stop until the shell continues us.
    Suspend,
    /// End.
    Quit,
}
