//! The opened database, and the user's settings for the display.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::key_map::KeyMap;
use super::zone::ShownZone;
use crate::memory::findings::EarlierLook;
use crate::memory::invocation::Invocation;
use crate::memory::query::Capability;
use crate::memory::{Entity, UnreadRows};

/// Facts about the open database that are known before anything is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenedDatabase {
    /// Path or URL, without a password.
    pub location: String,
    /// The location in normal form, as saved: an absolute path, or the URL.
    pub place: String,
    /// The database as named on a command line.
    pub invocation: Invocation,
    /// Names of the layouts with their variants.
    pub layouts: Vec<String>,
    /// Capabilities of the database: what can be shown and done.
    pub capabilities: Vec<Capability>,
    /// Reason why it can never be written; `None` if it can.
    pub blocked: Option<String>,
    /// Name of the profile that it was opened by.
    pub profile: Option<String>,
    /// Whether others depend on it: every change needs one step more care.
    pub production: bool,
    /// Time of the last visit from here, canonical; `None` the first time.
    pub looked: Option<String>,
    /// Result of the last full look for findings; `None` if there was none.
    pub found_before: Option<EarlierLook>,
    /// Rows that are missing in the private copy of a damaged database, by table, the most first; `None` if the database
    /// itself is shown.
    pub unread: Option<Vec<UnreadRows>>,
    /// Tables of each entity, as counts of rows name them.
    pub tables: BTreeSet<(Entity, String)>,
    /// Columns that the layouts never fill, which are not shown.
    pub unfilled: BTreeSet<(Entity, &'static str)>,
    /// Columns that no change can set: their values are derived or read-only.
    pub fixed: BTreeSet<(Entity, &'static str)>,
}

/// A database open in this session but not shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenBeside {
    /// Whether changes are allowed in it.
    pub unlocked: bool,
    /// Number in this session, in the order of opening.
    pub id: u64,
    /// Time of the last showing: the larger, the later.
    pub shown: u64,
    /// Short name.
    pub name: String,
    /// Path or URL, without a password.
    pub location: String,
    /// The location in normal form, as saved.
    pub place: String,
    /// Whether it is a production database, which others depend on.
    pub production: bool,
    /// Rows added since its list was read.
    pub news: usize,
    /// Work that closing it would break off.
    pub under_way: Option<String>,
    /// Command lines that resume the jobs that run in it.
    pub resumes: Vec<String>,
}

/// Choices that hold for all databases of a session, passed on when another one is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The user's settings.
    pub settings: ConsoleSettings,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The time.
    pub now: DateTime<Utc>,
    /// Steps by which lists were enlarged.
    pub pane_steps: i16,
    /// Columns that were chosen for lists.
    pub columns: BTreeMap<Entity, Vec<&'static str>>,
    /// Personal values are masked: they stay so.
    pub masked: bool,
    /// Message about the switch.
    pub said: Option<String>,
}

/// The user's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsoleSettings {
    /// Name of the theme.
    pub theme: String,
    /// Names of the user's own themes.
    pub own_themes: Vec<String>,
    /// Map from keys to commands.
    pub keys: KeyMap,
    /// True when the theme was chosen here, and is saved.
    pub theme_chosen: bool,
    /// The mouse is ours.
    pub mouse: bool,
    /// Long texts in details are wrapped.
    pub wrap: bool,
    /// Most bytes of vectors cached between recalls.
    pub vector_bytes: usize,
    /// The time zone in which times are shown.
    pub zone: ShownZone,
}
