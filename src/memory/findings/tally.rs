//! A count with its first examples.

use crate::memory::first_of::FirstOf;

/// Ids of groups that are kept at most, and of one group.
pub(super) const GROUPED: usize = 1_000;

/// Count of occurrences, with the first ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindingTally {
    /// Number of occurrences.
    pub count: u64,
    /// The first ids, at most as many as [`FindingTally::add`] was told.
    pub examples: Vec<String>,
    /// The first of several groups, where rows are found in groups: its ids, of bursts the first 1,000.
    pub together: Vec<String>,
    /// The rows of that group say the same, word for word.
    pub is_same: bool,
    /// No command fixes any of them: they are for people to look at.
    pub by_hand: bool,
    /// True when it is unknown which row of the first group is newer.
    pub undated: bool,
}

impl FindingTally {
    /// One more; its id is kept while fewer than `most` are.
    pub fn add(&mut self, id: &str, most: usize) {
        self.count += 1;
        if self.examples.len() < most {
            self.examples.push(id.to_owned());
        }
    }

    /// One more group of ids, and whether the age of one of them is unknown. The ids of the first `most` groups are kept: who
    /// looks into one needs more than one.
    pub fn group(&mut self, ids: Vec<String>, undated: bool, most: usize) {
        self.count += 1;
        if self.together.is_empty() {
            self.together.clone_from(&ids);
            self.undated = undated;
        }
        if self.count <= most as u64 && self.examples.len() < GROUPED {
            self.examples.extend(ids);
        }
    }

    /// A tally of things of which the first are known, with their ids.
    pub fn of_first<T: Ord>(found: FirstOf<T>, id: impl Fn(T) -> Option<String>) -> Self {
        let count = found.count();
        FindingTally {
            count,
            examples: found.in_order().into_iter().filter_map(id).collect(),
            ..FindingTally::default()
        }
    }

    /// A tally of these.
    #[must_use]
    pub fn of(ids: impl IntoIterator<Item = impl AsRef<str>>, most: usize) -> Self {
        let mut tally = FindingTally::default();
        ids.into_iter().for_each(|id| tally.add(id.as_ref(), most));
        tally
    }
}
