//! Result of the last full look for findings, by database: kept in the state folder, so that the next look can name
//! what is new.

use super::book::Book;
use crate::memory::findings::EarlierLook;

const BOOK: Book =
    Book { name: "looks", heading: "# How many findings of each kind the last look of mnemoscope's console had." };

/// The last full look at a database; none when there was none, or where it cannot be read.
#[must_use]
pub fn last(database: &str) -> Option<EarlierLook> {
    BOOK.only(database)
}

/// Keeps a look in the place of the one before. Where that cannot be kept, the next look says less.
pub fn keep(database: &str, look: &EarlierLook) {
    BOOK.keep_only(database, look);
}
