//! A count with its first examples.

use crate::memory::first_of::FirstOf;

/// Most groups with ids, and most ids of one group.
pub(super) const GROUPED: usize = 1_000;

/// Count of occurrences, with the first ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindingTally {
    /// Number of occurrences.
    pub count: u64,
    /// The first ids, at most as many as requested in [`FindingTally::add`].
    pub examples: Vec<String>,
    /// Ids of the first group, if rows are found in groups; for bursts the first 1,000.
    pub together: Vec<String>,
    /// Whether the rows of the group have the same words.
    pub is_same: bool,
    /// Whether no command fixes any of them, so that people must look at them.
    pub by_hand: bool,
    /// Whether it is unknown which row of the first group is newer.
    pub undated: bool,
}

impl FindingTally {
    /// Counts one; its id is kept while there are fewer than `most`.
    pub fn add(&mut self, id: &str, most: usize) {
        self.count += 1;
        if self.examples.len() < most {
            self.examples.push(id.to_owned());
        }
    }

    /// Counts a group of ids, and whether the age of one of them is unknown. The ids of the first `most` groups are
    /// kept, since examining a group takes more than one.
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

    /// Converts the first items, with a function for their ids.
    pub fn of_first<T: Ord>(found: FirstOf<T>, id: impl Fn(T) -> Option<String>) -> Self {
        let count = found.count();
        FindingTally {
            count,
            examples: found.in_order().into_iter().filter_map(id).collect(),
            ..FindingTally::default()
        }
    }

    /// Counts these ids.
    pub fn of(ids: impl IntoIterator<Item = impl AsRef<str>>, most: usize) -> Self {
        let mut tally = FindingTally::default();
        ids.into_iter().for_each(|id| tally.add(id.as_ref(), most));
        tally
    }
}
