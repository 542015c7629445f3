//! Questions to recall that the operator kept under names: one readable file of the user's own, never the database.

use std::path::PathBuf;

use super::book::Book;
use crate::recall::inquiry::SavedQuestion;

const BOOK: Book =
    Book { name: "queries", heading: "# Questions that were kept in mnemoscope; their texts may be personal." };

/// Returns the path of the kept questions: `queries.toml` in the state folder.
#[must_use]
pub fn path() -> Option<PathBuf> {
    BOOK.path()
}

/// The questions kept for a database, which is named by its path or its URL without a password; by name.
///
/// # Errors
/// What is wrong with the file, with its name.
pub fn load(database: &str) -> anyhow::Result<Vec<SavedQuestion>> {
    BOOK.load(database)
}

/// Keeps a question, in the place of one with the same name; all that are kept then.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn save(database: &str, saved: &SavedQuestion) -> anyhow::Result<Vec<SavedQuestion>> {
    BOOK.change(database, |kept: &mut Vec<SavedQuestion>| {
        kept.retain(|other| other.name != saved.name);
        kept.push(saved.clone());
        kept.sort_by(|a, b| a.name.cmp(&b.name));
    })
}

/// Forgets the question of that name; all that are kept then.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn forget(database: &str, name: &str) -> anyhow::Result<Vec<SavedQuestion>> {
    BOOK.change(database, |kept: &mut Vec<SavedQuestion>| kept.retain(|other| other.name != name))
}

/// Forgets the questions that name a person by one of some handles.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn forget_person(database: &str, handles: &[(&str, bool)]) -> anyhow::Result<()> {
    BOOK.forget_person::<SavedQuestion>(database, handles)
}
