//! A count with its first examples.

use std::collections::BinaryHeap;

/// Ids of groups that are kept at most.
const GROUPED: usize = 1_000;

/// Count of occurrences, with the first ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindingTally {
    /// Number of occurrences.
    pub count: u64,
    /// The first ids, at most as many as [`FindingTally::add`] was told.
    pub examples: Vec<String>,
    /// The first of several groups, where rows are found in groups: all of its ids.
    pub together: Vec<String>,
}

impl FindingTally {
    /// One more; its id is kept while fewer than `most` are.
    pub fn add(&mut self, id: &str, most: usize) {
        self.count += 1;
        if self.examples.len() < most {
            self.examples.push(id.to_owned());
        }
    }

    /// One more group of ids. Every id of the first `most` groups is kept: who looks into one needs all of it.
    pub fn group(&mut self, ids: Vec<String>, most: usize) {
        self.count += 1;
        if self.together.is_empty() {
            self.together.clone_from(&ids);
        }
        if self.count <= most as u64 && self.examples.len() < GROUPED {
            self.examples.extend(ids);
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

/// The first of things that come in any order, and how many there are.
#[derive(Debug)]
pub struct FirstOf<T> {
    most: usize,
    count: u64,
    held: BinaryHeap<T>,
}

impl<T: Ord> FirstOf<T> {
    /// None yet; at most `most` are kept.
    #[must_use]
    pub fn new(most: usize) -> Self {
        FirstOf { most, count: 0, held: BinaryHeap::new() }
    }

    /// One more.
    pub fn add(&mut self, thing: T) {
        self.count += 1;
        if self.held.len() < self.most {
            self.held.push(thing);
        } else if let Some(mut last) = self.held.peek_mut()
            && thing < *last
        {
            *last = thing;
        }
    }

    /// The count, and the ids of the first.
    pub fn tally_by(self, id: impl Fn(T) -> Option<String>) -> FindingTally {
        let examples = self.held.into_sorted_vec().into_iter().filter_map(id).collect();
        FindingTally { count: self.count, examples, together: Vec::new() }
    }
}

impl FirstOf<String> {
    /// The count, and the first ids.
    #[must_use]
    pub fn tally(self) -> FindingTally {
        self.tally_by(Some)
    }
}
