//! Holding pairs out by query, and drawing queries anew: by a seed alone, so that the same call gives the same answer.

/// Parts that queries fall into; one of them is held out.
pub const PARTS: u64 = 5;

/// A small generator of random numbers (`SplitMix64`): the same seed gives the same numbers everywhere.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator.
    #[must_use]
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

/// The part, below [`PARTS`], that each of `queries` queries falls into: an even share each, in an order by the seed.
#[must_use]
pub fn parts(queries: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut parts: Vec<u64> = (0..queries as u64).map(|q| q % PARTS).collect();
    for i in (1..queries).rev() {
        parts.swap(i, random.below(i + 1));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_even_and_the_same_for_the_same_seed() {
        let found = parts(103, 7);
        assert_eq!(found, parts(103, 7));
        assert_ne!(found, parts(103, 8));
        for part in 0..PARTS {
            let size = found.iter().filter(|p| **p == part).count();
            assert!((20..=21).contains(&size));
        }
        assert_eq!(parts(0, 1), Vec::<u64>::new());
    }
}
