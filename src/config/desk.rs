//! Settings that the console keeps from one session to the next: filters, appearance, and the number of findings, so
//! that the next run can name new ones. All of it in the state folder, never in a database.

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

/// Keeps the filters that a session has at its end. Of those that it had `found`, others may have removed some
/// meanwhile, and they may have written some of their own: both stays so. Nothing is kept where a person was erased by
/// another process since then. Where it cannot be kept, the next session does not offer them.
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
    #[must_use]
    pub fn load(database: &str) -> Self {
        FoundFilters { mark: ERASURES.only(database), filters: filters(database) }
    }

    /// Whether a person was erased since.
    #[must_use]
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

/// Forgets what is kept outside of a database and may name a person who was erased: every filter, the place that was
/// left last, and saved places, questions and mutes that name them by one of some handles.
///
/// # Errors
/// In words, that a file is damaged or cannot be written.
pub fn forget_kept(database: &str, handles: &[(&str, bool)]) -> Result<(), String> {
    // First: a console that ends meanwhile writes nothing afterwards.
    let mark = ErasureMark { process: std::process::id(), number: rand::random() };
    let marked = ERASURES.change(database, |kept: &mut Vec<ErasureMark>| *kept = vec![mark]).map(drop);
    let has_last = KeptPlace::load(database).is_ok_and(|places| places.iter().any(|place| place.name == LAST));
    let last = if has_last { KeptPlace::forget(database, LAST).map(drop) } else { Ok(()) };
    let none = |kept: &mut Vec<WrittenFilter>| kept.clear();
    let filters = if filters(database).is_empty() { Ok(()) } else { FILTERS.change(database, none).map(drop) };
    // One file that is damaged keeps none of the others from it.
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
