//! The opened database, and the user's settings for the display.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::key_map::KeyMap;
use super::zone::ShownZone;
use crate::memory::Entity;
use crate::memory::findings::EarlierLook;
use crate::memory::invocation::Invocation;
use crate::memory::query::Capability;

/// Facts about the opened database that are known before anything is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenedDatabase {
    /// Path or URL, without a password.
    pub location: String,
    /// The location as it is kept, spelled alike however the database was named: an absolute path, or the URL.
    pub place: String,
    /// Database as it is named on a command line.
    pub invocation: Invocation,
    /// Names of the layouts with their variants.
    pub layouts: Vec<String>,
    /// Capabilities of the database: what can be shown and done.
    pub capabilities: Vec<Capability>,
    /// Reason why it cannot be written, whatever is done; `None` when it can be.
    pub blocked: Option<String>,
    /// Name of the profile that it was opened by.
    pub profile: Option<String>,
    /// Others depend on it: every change asks for one step more care.
    pub production: bool,
    /// Time when someone last looked at it here, canonical; `None` the first time.
    pub looked: Option<String>,
    /// Result of the last full look for findings; `None` when there was none.
    pub found_before: Option<EarlierLook>,
    /// Columns that the layouts never fill: there is no room to waste on them.
    pub unfilled: BTreeSet<(Entity, &'static str)>,
    /// Columns that no change can set: what they show is made of other values, or only read.
    pub fixed: BTreeSet<(Entity, &'static str)>,
}

/// A database that is open in this session next to the one that is shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenBeside {
    /// Changes may be made there.
    pub unlocked: bool,
    /// Number in this session, in the order of opening.
    pub id: u64,
    /// Time of the last showing: the larger, the later.
    pub shown: u64,
    /// Short name.
    pub name: String,
    /// Path or URL, without a password.
    pub location: String,
    /// The location as it is kept, spelled alike however the database was named.
    pub place: String,
    /// Production: others depend on it.
    pub production: bool,
    /// Rows that came since its list was read.
    pub news: usize,
    /// Work that closing it would break off.
    pub under_way: Option<String>,
    /// Command lines that resume the jobs that run in it.
    pub resumes: Vec<String>,
}

/// Choices that hold in every database of a session, carried from the one that was shown to the one that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The user's settings.
    pub settings: ConsoleSettings,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// The time.
    pub now: DateTime<Utc>,
    /// Steps by which lists were made larger.
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
    /// Names of the themes that the user made.
    pub own_themes: Vec<String>,
    /// Map from keys to commands.
    pub keys: KeyMap,
    /// True when the theme was chosen here, and is saved.
    pub theme_chosen: bool,
    /// The mouse is ours.
    pub mouse: bool,
    /// Long texts in details are wrapped.
    pub wrap: bool,
    /// Bytes of vectors that are kept between recalls.
    pub vector_bytes: usize,
    /// The time zone of all times that are shown.
    pub zone: ShownZone,
}
