//! Keeps the first of very many items, which come in any order.

use std::collections::BinaryHeap;

/// The smallest items of a sequence in any order, and their total number.
#[derive(Debug)]
pub struct FirstOf<T> {
    most: usize,
    count: u64,
    held: BinaryHeap<T>,
}

impl<T: Ord> FirstOf<T> {
    /// Creates an empty collection that keeps at most `most`.
    pub fn new(most: usize) -> Self {
        FirstOf { most, count: 0, held: BinaryHeap::new() }
    }

    /// Adds an item.
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

    /// Takes the content, leaving it empty.
    pub fn take(&mut self) -> Self {
        let none = FirstOf::new(self.most);
        std::mem::replace(self, none)
    }

    /// Total number of items.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The kept items, in order.
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
