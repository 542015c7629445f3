//! What was opened, and how the user wants to see it.

use std::collections::BTreeSet;

use crate::memory::Entity;
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
    /// Columns that the layouts never fill: there is no room to waste on them.
    pub unfilled: BTreeSet<(Entity, &'static str)>,
}

/// What the user chose.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsoleSettings {
    /// Name of the theme.
    pub theme: String,
    /// The mouse is ours.
    pub mouse: bool,
    /// Long texts in details are wrapped.
    pub wrap: bool,
    /// Bytes of vectors that are kept between recalls.
    pub vector_bytes: usize,
}
