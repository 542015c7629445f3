//! Holds out pairs by query, and resamples queries, deterministically from a seed.

use std::collections::BTreeMap;

/// Number of parts that queries are divided into; one of them is held out.
pub const PARTS: u64 = 5;

/// A small random number generator (`SplitMix64`): the same seed gives the same numbers everywhere.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// A number below `n`; 0 when `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.draw()) * n as u128) >> 64) as usize
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The part, below [`PARTS`], of each query: an even share of the queries of each kind, in an order from the seed.
/// `labels` says for each query whether it has negative and positive pairs. If two queries have each, both the first
/// part and the others have both.
pub fn parts(labels: &[[bool; 2]], seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut groups: BTreeMap<[bool; 2], Vec<usize>> = BTreeMap::new();
    for (query, kind) in labels.iter().enumerate() {
        groups.entry(*kind).or_default().push(query);
    }
    let mut parts = vec![0; labels.len()];
    for (kind, queries) in &mut groups {
        // The only query with both kinds is worth more to those that learn.
        let first = usize::from(*kind == [true, true] && queries.len() == 1);
        for i in (1..queries.len()).rev() {
            queries.swap(i, random.below(i + 1));
        }
        for (place, query) in queries.iter().enumerate() {
            parts[*query] = (first + place) as u64 % PARTS;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_the_same_for_the_same_seed() {
        let kinds: Vec<[bool; 2]> = (0..103).map(|query| [query < 3, query >= 3]).collect();
        let found = parts(&kinds, 7);
        assert_eq!(found, parts(&kinds, 7));
        assert_ne!(found, parts(&kinds, 8));
        assert!(found[..3].contains(&0) && found[3..].contains(&0));
        for part in 0..PARTS {
            let size = found.iter().filter(|p| **p == part).count();
            assert!((20..=22).contains(&size));
        }
        assert_eq!(parts(&[], 1), Vec::<u64>::new());
    }
}
