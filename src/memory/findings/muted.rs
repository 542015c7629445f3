//! Findings muted by the operator: whole kinds, or single rows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::FindingTally;

/// A muted kind of finding or row, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mute {
    /// A kind of finding, or the id of a row.
    pub what: String,
    /// Reason for muting it.
    pub reason: String,
    /// Actor who muted it.
    pub actor: String,
    /// Time of muting, in the canonical spelling.
    pub at: String,
}

/// Muted kinds and rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Muted {
    names: BTreeSet<String>,
}

impl Muted {
    /// Collects the mutes of a list.
    pub fn of(mutes: &[Mute]) -> Self {
        Muted { names: mutes.iter().map(|mute| mute.what.clone()).collect() }
    }

    /// Whether a kind is muted as a whole.
    pub fn kind(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Number of examples to read so that enough are left without muted rows.
    pub fn examples(&self, asked: usize) -> usize {
        asked + self.names.len()
    }

    /// Removes muted rows from the examples of a tally, down to the requested number. Muted rows beyond the examples
    /// are still counted, so there may be more findings than examples.
    pub fn without(&self, mut tally: FindingTally, asked: usize) -> FindingTally {
        let before = tally.examples.len();
        tally.examples.retain(|id| !self.names.contains(id));
        tally.count = tally.count.saturating_sub((before - tally.examples.len()) as u64);
        if tally.together.is_empty() {
            tally.examples.truncate(asked);
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn muted_rows_are_neither_counted_nor_shown() {
        let mute =
            |what: &str| Mute { what: what.to_owned(), reason: String::new(), actor: String::new(), at: String::new() };
        let muted = Muted::of(&[mute("b"), mute("secret")]);
        assert!(muted.kind("secret") && !muted.kind("b2"));
        let left = muted.without(FindingTally::of(["a", "b", "c", "d"], muted.examples(2)), 2);
        assert_eq!((left.count, left.examples), (3, vec!["a".to_owned(), "c".to_owned()]));
        assert_eq!(muted.without(FindingTally::of(["b"], 3), 1).count, 0);
    }
}
