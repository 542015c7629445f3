//! The backfills: what each does, and how it is made for a database. A file each.

mod canvas_links;
mod sources;

use super::Job;
use crate::change::ChangeError;
use crate::store::Store;

/// A backfill that can be named.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Name on the command line.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
    make: fn(&Store) -> Result<Box<dyn Job>, ChangeError>,
}

/// Every backfill, in the order in which they are best run.
pub const ALL: &[Kind] = &[Kind {
    name: "canvas-links",
    help: "links episodes to the canvas events of their session: list, count and back-link",
    make: canvas_links::make,
}];

impl Kind {
    /// The backfill of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Kind> {
        ALL.iter().find(|kind| kind.name == name)
    }

    /// The backfill for a database.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] where the database has no place for its result, with the reason.
    pub fn job(&self, store: &Store) -> Result<Box<dyn Job>, ChangeError> {
        (self.make)(store)
    }
}
