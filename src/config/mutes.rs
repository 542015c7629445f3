//! Findings that the operator has muted, with the reasons: kept in the state folder, never in the database.

use super::book::Book;
use crate::memory::findings::{Mute, Muted};

const BOOK: Book =
    Book { name: "mutes", heading: "# Findings that were muted in mnemoscope; `findings unmute` ends a line." };

/// Loads the mutes of a database, in order of their names.
///
/// # Errors
/// What is wrong with the file, with its name.
pub fn load(database: &str) -> anyhow::Result<Vec<Mute>> {
    BOOK.load(database)
}

/// The same, to look by. A file that cannot be read mutes nothing.
#[must_use]
pub fn muted(database: &str) -> Muted {
    Muted::of(&load(database).unwrap_or_default())
}

/// Mutes a kind or a row, in the place of an earlier word on it; all that is muted then.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn add(database: &str, mute: &Mute) -> anyhow::Result<Vec<Mute>> {
    BOOK.change(database, |kept: &mut Vec<Mute>| {
        kept.retain(|other| other.what != mute.what);
        kept.push(mute.clone());
        kept.sort_by(|a, b| a.what.cmp(&b.what));
    })
}

/// Ends what is muted under a name; all that is muted then.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn end(database: &str, what: &str) -> anyhow::Result<Vec<Mute>> {
    BOOK.change(database, |kept: &mut Vec<Mute>| kept.retain(|other| other.what != what))
}

/// Forgets the mutes that name a person by one of some handles.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn forget_person(database: &str, handles: &[(&str, bool)]) -> anyhow::Result<()> {
    BOOK.forget_person::<Mute>(database, handles)
}
