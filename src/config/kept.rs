//! Named records that the operator keeps about a database: places, questions to recall, muted findings. Each kind has
//! one readable file of the user's own, never the database.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::book::Book;
use crate::memory::findings::{Mute, Muted};
use crate::memory::kept::KeptPlace;
use crate::recall::inquiry::SavedQuestion;

/// Record with a name that is unique among its kind within a database, which is named by its path or its URL without a
/// password.
pub trait Kept: DeserializeOwned + Serialize + Clone {
    /// File of the kind.
    const BOOK: Book;

    /// Returns the record's name.
    fn name(&self) -> &str;

    /// Loads the records of a database, by name.
    ///
    /// # Errors
    /// The error in the file, with its name.
    fn load(database: &str) -> anyhow::Result<Vec<Self>> {
        Self::BOOK.load(database)
    }

    /// Saves the record in place of one with the same name. Returns all records.
    ///
    /// # Errors
    /// The file is damaged or cannot be written.
    fn keep(&self, database: &str) -> anyhow::Result<Vec<Self>> {
        Self::BOOK.change(database, |kept: &mut Vec<Self>| {
            kept.retain(|other| other.name() != self.name());
            kept.push(self.clone());
            kept.sort_by(|a, b| a.name().cmp(b.name()));
        })
    }

    /// Deletes the record of this name. Returns the others.
    ///
    /// # Errors
    /// The file is damaged or cannot be written.
    fn forget(database: &str, name: &str) -> anyhow::Result<Vec<Self>> {
        Self::BOOK.change(database, |kept: &mut Vec<Self>| kept.retain(|other| other.name() != name))
    }

    /// Deletes the records that name a person by one of some handles. Each handle comes with whether it counts within a
    /// longer text.
    ///
    /// # Errors
    /// The file is damaged or cannot be written.
    fn forget_person(database: &str, handles: &[(&str, bool)]) -> anyhow::Result<()> {
        Self::BOOK.forget_person::<Self>(database, handles)
    }
}

/// The muted findings of a database. An unreadable file mutes nothing.
pub fn muted(database: &str) -> Muted {
    Muted::of(&Mute::load(database).unwrap_or_default())
}

impl Kept for KeptPlace {
    const BOOK: Book = Book {
        name: "places",
        heading: "# Places that were kept in mnemoscope's console; their filters may be personal.",
    };

    fn name(&self) -> &str {
        &self.name
    }
}

impl Kept for SavedQuestion {
    const BOOK: Book =
        Book { name: "queries", heading: "# Questions that were kept in mnemoscope; their texts may be personal." };

    fn name(&self) -> &str {
        &self.name
    }
}

impl Kept for Mute {
    const BOOK: Book =
        Book { name: "mutes", heading: "# Findings that were muted in mnemoscope; `findings unmute` ends a line." };

    fn name(&self) -> &str {
        &self.what
    }
}
