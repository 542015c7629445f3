//! Settings that the console keeps from one session to the next: named places, filters that were written, its looks.
//! All of it in the state folder, never in a database.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::book::Book;
use crate::memory::Entity;
use crate::memory::kept::{KeptPlace, WrittenFilter};

const PLACES: Book =
    Book { name: "places", heading: "# Places that were kept in mnemoscope's console; their filters may be personal." };
const FILTERS: Book =
    Book { name: "filters", heading: "# Filters that were written in mnemoscope's console; they may be personal." };
const LOOKS: Book = Book { name: "console", heading: "# How mnemoscope's console looked when it was left." };

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

/// The places kept for a database, by name.
///
/// # Errors
/// What is wrong with the file, with its name.
pub fn places(database: &str) -> anyhow::Result<Vec<KeptPlace>> {
    PLACES.load(database)
}

/// Keeps a place, instead of one with the same name; all that are kept then.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn keep_place(database: &str, place: &KeptPlace) -> anyhow::Result<Vec<KeptPlace>> {
    PLACES.change(database, |kept: &mut Vec<KeptPlace>| {
        kept.retain(|other| other.name != place.name);
        kept.push(place.clone());
        kept.sort_by(|a, b| a.name.cmp(&b.name));
    })
}

/// Forgets the place of that name; all that are kept then.
///
/// # Errors
/// The file is damaged or cannot be written.
pub fn forget_place(database: &str, name: &str) -> anyhow::Result<Vec<KeptPlace>> {
    PLACES.change(database, |kept: &mut Vec<KeptPlace>| kept.retain(|other| other.name != name))
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

/// Forgets what may name a person who was erased: every filter, the place that was left last, and kept places that name
/// them as `given`. Where that cannot be written, the reason.
///
/// # Errors
/// A file is damaged or cannot be written.
pub fn forget_person(database: &str, given: &str) -> anyhow::Result<()> {
    if !filters(database).is_empty() {
        FILTERS.change(database, |kept: &mut Vec<WrittenFilter>| kept.clear())?;
    }
    let names = |text: Option<&String>| text.is_some_and(|text| text.to_lowercase().contains(&given.to_lowercase()));
    let is_about = |place: &KeptPlace| {
        place.name == LAST || [Some(&place.name), place.id.as_ref(), place.filter.as_ref()].into_iter().any(names)
    };
    if places(database)?.iter().any(is_about) {
        PLACES.change(database, |kept: &mut Vec<KeptPlace>| kept.retain(|place| !is_about(place)))?;
    }
    Ok(())
}
