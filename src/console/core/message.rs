//! Messages to the core and effects it requests, as plain data.

use chrono::{DateTime, Utc};

use super::command::CommandId;
use super::condition::Conditions;
use super::key::Key;
use super::opened::{Arrival, OpenBeside, OpenedDatabase};
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
    /// The button that changes nothing.
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
    /// A row with all its details, at the tab with this title.
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
    /// The search for these words in all texts.
    Find(String),
}

impl Destination {
    /// The entity whose rows it shows.
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

/// Sizes of the drawn parts, which decide how far things scroll.
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
    /// Gate whose dialog was drawn with its question and its keys.
    pub gate: Option<Ticket>,
    /// Entries of the home screen.
    pub home_entries: usize,
    /// Lines of the details that contain the searched words.
    pub sought_count: usize,
    /// The current one of these lines, counted from 1; 0 if there is none.
    pub sought_line: usize,
    /// The line of the selected moment in the story, counted from 1; 0 if there is none.
    pub moment_line: usize,
}

/// Fate of a text that was open in the user's editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditorEnd {
    /// It was an unchanged copy, now deleted.
    Read,
    /// It was a copy; the changes saved in it are lost.
    Changed,
    /// It is kept in this file.
    Kept(String),
}

/// An event that reaches the core.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Names of the people in the database, hidden from now on while values are masked.
    People(Vec<String>),
    /// A reply to a request.
    Reply(Ticket, Reply),
    /// The console begins, at that time.
    Start(DateTime<Utc>),
    /// A key was pressed.
    Key(Key),
    /// A key is still held down and repeats itself: it moves and types, and never changes anything.
    Held(Key),
    /// The terminal reports key releases: a held key will come as [`Message::Held`].
    Releases,
    /// A text was pasted.
    Paste(String),
    /// A click; the flag is true for a double click.
    Click(ClickTarget, bool),
    /// The wheel was turned over a target: up or down.
    Wheel(ClickTarget, bool),
    /// The terminal was resized to this many columns and rows.
    Resize(u16, u16),
    /// The current time.
    Tick(DateTime<Utc>),
    /// A timer set with [`Effect::After`] elapsed.
    Elapsed(Ticket),
    /// This was drawn.
    Drawn(Measures),
    /// A text was passed to the clipboard: its description with its size in bytes.
    Copied(Result<String, RequestFailure>),
    /// The editor was closed.
    Viewed(Result<EditorEnd, RequestFailure>),
    /// The database has a damaged page: what can be read is being copied, or is read from now on.
    Damaged(Option<Box<OpenedDatabase>>),
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
    /// Show the database that was just opened.
    Opened,
    /// The same, and close the current one.
    Replace,
    /// Show the database with this number.
    To(u64),
    /// Close the database of this number, which is not shown.
    Close(u64),
    /// Close the current database, and show the previous one.
    Leave,
}

/// An effect to be carried out outside of the core.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Load the names of the people in the database, to hide them.
    LoadPeople,
    /// Make a request, answered by [`Message::Reply`] under the same number.
    Ask(Ticket, Request),
    /// Ask the job that runs under this number to stop.
    WishJob(Ticket, JobWish),
    /// Print these lines after the terminal has been restored.
    Tell(Vec<String>),
    /// Stop a request that is no longer awaited, and drop the plan kept under its number.
    Cancel(Ticket),
    /// Send [`Message::Elapsed`] after that many milliseconds.
    After(Ticket, u64),
    /// Copy a text to the clipboard; the first string describes it for people.
    Copy(String, String),
    /// Show a copy of a text in the user's editor; the first is the ending of its file's name.
    View(&'static str, String),
    /// Open a text in the user's editor, and keep its file; the first string is the file extension.
    Edit(&'static str, String),
    /// Name the window.
    SetTitle(String),
    /// Capture the mouse, or release it to the terminal.
    Mouse(bool),
    /// Show another open database, or close one.
    Switch(SwitchStep),
    /// Draw everything afresh.
    Redraw,
    /// Stop until the shell continues us.
    Suspend,
    /// End.
    Quit,
}
