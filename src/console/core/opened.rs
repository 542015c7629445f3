//! What was opened, and how the user wants to see it.

use std::collections::BTreeSet;

use super::key_map::KeyMap;
use super::zone::ShownZone;
use crate::memory::Entity;
use crate::memory::findings::EarlierLook;
use crate::memory::invocation::Invocation;
use crate::memory::query::Capability;

/// What was opened, known before anything is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenedDatabase {
    /// Path or URL, without a password.
    pub location: String,
    /// How it is named on a command line.
    pub invocation: Invocation,
    /// Names of the layouts with their variants.
    pub layouts: Vec<String>,
    /// What can be shown and done.
    pub capabilities: Vec<Capability>,
    /// Name of the profile that it was opened by.
    pub profile: Option<String>,
    /// Others depend on it: every change asks for one step more care.
    pub production: bool,
    /// When somebody looked at it here last, canonical; none at the first time.
    pub looked: Option<String>,
    /// What the last full look for findings came to; none where there was none.
    pub found_before: Option<EarlierLook>,
    /// Columns that the layouts never fill: there is no room to waste on them.
    pub unfilled: BTreeSet<(Entity, &'static str)>,
}

/// What the user chose.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsoleSettings {
    /// Name of the theme.
    pub theme: String,
    /// Names of the themes that the user made.
    pub own_themes: Vec<String>,
    /// Which keys give which command.
    pub keys: KeyMap,
    /// It was chosen here, and is kept.
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
