//! The first of very many things, which come in any order.

use std::collections::BinaryHeap;

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

    /// Takes what is here, and leaves nothing.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let none = FirstOf::new(self.most);
        std::mem::replace(self, none)
    }

    /// Number of things that came.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those that were kept, in order.
    #[must_use]
    pub fn in_order(self) -> Vec<T> {
        self.held.into_sorted_vec()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_are_those_of_a_full_sort(all in prop::collection::vec(0u8..20, 0..60), most in 0usize..9) {
            let mut first = FirstOf::new(most);
            all.iter().for_each(|thing| first.add(*thing));
            let mut sorted = all.clone();
            sorted.sort_unstable();
            sorted.truncate(most);
            prop_assert_eq!(first.count(), all.len() as u64);
            prop_assert_eq!(first.in_order(), sorted);
        }
    }
}
