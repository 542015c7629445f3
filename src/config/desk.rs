//! Settings that the console keeps from one session to the next: filters that were written, its looks, and how many
//! findings there were, so that the next look can name what is new. All of it in the state folder, never in a database.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::book::Book;
use super::kept::Kept as _;
use crate::memory::Entity;
use crate::memory::findings::{EarlierLook, Mute};
use crate::memory::kept::{KeptPlace, WrittenFilter};
use crate::recall::inquiry::SavedQuestion;

const FILTERS: Book =
    Book { name: "filters", heading: "# Filters that were written in mnemoscope's console; they may be personal." };
const LOOKS: Book = Book { name: "console", heading: "# How mnemoscope's console looked when it was left." };
const FINDINGS: Book =
    Book { name: "looks", heading: "# How many findings of each kind the last look of mnemoscope's console had." };

/// The name of the place that was left last.
pub const LAST: &str = "where I was last";
/// Filters kept for a database.
const FILTERS_KEPT: usize = 100;

/// Looks of the console.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsoleLooks {
    /// Name of the theme that was chosen; none when none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// By how many steps lists were made larger, or smaller.
    pub pane_steps: i16,
    /// Columns that were chosen for a list, by the entity's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<Entity, Vec<String>>,
}

/// Filters that were written for a database, the newest last; none when they cannot be read.
#[must_use]
pub fn filters(database: &str) -> Vec<WrittenFilter> {
    FILTERS.load(database).unwrap_or_default()
}

/// Keeps the filters that were written. Where that cannot be kept, the next session does not offer them.
pub fn keep_filters(database: &str, written: &[WrittenFilter]) {
    let newest = written.len().saturating_sub(FILTERS_KEPT);
    let _ = FILTERS.change(database, |kept: &mut Vec<WrittenFilter>| *kept = written[newest..].to_vec());
}

/// Loads the looks that the console had when it was left.
#[must_use]
pub fn looks() -> ConsoleLooks {
    LOOKS.only("").unwrap_or_default()
}

/// Keeps how it looks.
pub fn keep_looks(looks: &ConsoleLooks) {
    LOOKS.keep_only("", looks);
}

/// The last full look for findings; none when there was none, or where it cannot be read.
#[must_use]
pub fn last_findings(database: &str) -> Option<EarlierLook> {
    FINDINGS.only(database)
}

/// Keeps a look for findings in the place of the one before. Where that cannot be kept, the next look says less.
pub fn keep_findings(database: &str, look: &EarlierLook) {
    FINDINGS.keep_only(database, look);
}

/// Forgets what is kept outside of a database and may name a person who was erased: every filter, the place that was left
/// last, and kept places, questions and mutes that name them by one of some handles.
///
/// # Errors
/// In words, that a file is damaged or cannot be written.
pub fn forget_kept(database: &str, handles: &[(&str, bool)]) -> Result<(), String> {
    let has_last = KeptPlace::load(database).is_ok_and(|places| places.iter().any(|place| place.name == LAST));
    let last = if has_last { KeptPlace::forget(database, LAST).map(drop) } else { Ok(()) };
    let none = |kept: &mut Vec<WrittenFilter>| kept.clear();
    let filters = if filters(database).is_empty() { Ok(()) } else { FILTERS.change(database, none).map(drop) };
    // One file that is damaged keeps none of the others from it.
    let done = [
        filters,
        last,
        KeptPlace::forget_person(database, handles),
        SavedQuestion::forget_person(database, handles),
        Mute::forget_person(database, handles),
    ];
    done.into_iter().collect::<anyhow::Result<()>>().map_err(|why| format!("{why:#}"))
}
