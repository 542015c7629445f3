//! State that the console saves between sessions: filters, appearance, and the number of findings, so that the next run
//! can mark new ones. It is in the state folder, never in a database.

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
const ERASURES: Book = Book {
    name: "erasures",
    heading: "# Marks of erasures, for consoles of mnemoscope that are open; they name nobody.",
};
const LOOKS: Book = Book { name: "console", heading: "# How mnemoscope's console looked when it was last closed." };
const FINDINGS: Book =
    Book { name: "looks", heading: "# How many findings of each kind mnemoscope's console last showed." };

/// The name of the place that was left last.
pub const LAST: &str = "where I was last";
/// Most filters saved for a database.
const FILTERS_KEPT: usize = 100;

/// Looks of the console.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ConsoleLooks {
    /// Name of the chosen theme, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<String>,
    /// Number of steps by which lists were enlarged (or shrunk, if negative).
    pub pane_steps: i16,
    /// Columns that were chosen for a list, by the entity's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<Entity, Vec<String>>,
}

/// Saved filters of a database, newest last; empty if they cannot be read.
pub fn filters(database: &str) -> Vec<WrittenFilter> {
    FILTERS.load(database).unwrap_or_default()
}

/// Saves the filters of a session at its end, merged with the changes of others since the session `found` them: filters
/// they removed stay removed, and their new ones are kept. Nothing is saved if another process erased a person since
/// then. A failure is ignored: the next session then lacks the filters.
pub fn keep_filters(database: &str, found: &FoundFilters, written: &[WrittenFilter]) {
    if written == found.filters {
        return;
    }
    let _ = FILTERS.change(database, |kept: &mut Vec<WrittenFilter>| {
        if found.erasure(database) == ErasureSince::ByOthers {
            return;
        }
        let stays = |filter: &&WrittenFilter| kept.contains(filter) || !found.filters.contains(filter);
        let own: Vec<WrittenFilter> = written.iter().filter(stays).cloned().collect();
        kept.retain(|filter| !own.contains(filter));
        kept.extend(own);
        kept.drain(..kept.len().saturating_sub(FILTERS_KEPT));
    });
}

/// The filters that a session finds, and the mark of the last erasure.
#[derive(Debug, Default)]
pub struct FoundFilters {
    /// The filters.
    pub filters: Vec<WrittenFilter>,
    mark: Option<ErasureMark>,
}

/// Whether a person was erased from a database since a session began, as far as this state folder knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureSince {
    /// No erasure.
    None,
    /// An erasure by this process.
    ByUs,
    /// An erasure by another process.
    ByOthers,
}

impl FoundFilters {
    /// Loads them.
    pub fn load(database: &str) -> Self {
        FoundFilters { mark: ERASURES.only(database), filters: filters(database) }
    }

    /// Result of the check whether a person was erased since.
    pub fn erasure(&self, database: &str) -> ErasureSince {
        match ERASURES.only::<ErasureMark>(database) {
            mark if mark == self.mark => ErasureSince::None,
            Some(mark) if mark.process == std::process::id() => ErasureSince::ByUs,
            _ => ErasureSince::ByOthers,
        }
    }
}

/// Mark of an erasure, by which consoles that were open meanwhile notice it. It names nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ErasureMark {
    process: u32,
    number: u32,
}

/// Loads the looks of the console.
pub fn looks() -> ConsoleLooks {
    LOOKS.only("").unwrap_or_default()
}

/// Saves the looks of the console.
pub fn keep_looks(looks: &ConsoleLooks) {
    LOOKS.keep_only("", looks);
}

/// The last full look for findings; `None` if there was none, or if it cannot be read.
pub fn last_findings(database: &str) -> Option<EarlierLook> {
    FINDINGS.only(database)
}

/// Saves a look for findings in place of the last one. A failure is ignored: the next look then shows less.
pub fn keep_findings(database: &str, look: &EarlierLook) {
    FINDINGS.keep_only(database, look);
}

/// Deletes the state kept outside of a database that may name an erased person: all filters, the last place, and those
/// saved places, questions and mutes that name them by one of some handles.
///
/// # Errors
/// A message that a file is damaged or cannot be written.
pub fn forget_kept(database: &str, handles: &[(&str, bool)]) -> Result<(), String> {
    // This comes first, so that a console that ends meanwhile writes nothing afterwards.
    let mark = ErasureMark { process: std::process::id(), number: rand::random() };
    let marked = ERASURES.change(database, |kept: &mut Vec<ErasureMark>| *kept = vec![mark]).map(drop);
    let has_last = KeptPlace::load(database).is_ok_and(|places| places.iter().any(|place| place.name == LAST));
    let last = if has_last { KeptPlace::forget(database, LAST).map(drop) } else { Ok(()) };
    let none = |kept: &mut Vec<WrittenFilter>| kept.clear();
    let filters = if filters(database).is_empty() { Ok(()) } else { FILTERS.change(database, none).map(drop) };
    // A damaged file does not prevent the deletion in the others.
    let done = [
        marked,
        filters,
        last,
        KeptPlace::forget_person(database, handles),
        SavedQuestion::forget_person(database, handles),
        Mute::forget_person(database, handles),
    ];
    done.into_iter().collect::<anyhow::Result<()>>().map_err(|why| format!("{why:#}"))
}
