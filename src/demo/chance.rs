//! Reproducible random numbers: `SplitMix64` (Steele, Lea, Flood 2014), so that a seed gives one story on every machine
//! and with every version of the libraries.

/// A stream of numbers that its seeds decide.
#[derive(Debug, Clone)]
pub struct Chance(u64);

/// Hashes a number so that every bit affects every bit of the result.
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

pub fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |h, b| mix(h ^ u64::from(b)))
}

impl Chance {
    /// The stream for one item (`number`) of one kind (`sort`) in the world of `seed`.
    pub fn new(seed: u64, sort: &str, number: u64) -> Chance {
        Chance(mix(mix(seed) ^ mix(hash(sort)).rotate_left(17) ^ mix(number).rotate_left(41)))
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        number
    }

    /// An integer in 0..`bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A whole number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(0) as u64) as i64
    }

    /// A number of 0.0..1.0.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True in `share` (0..=1) of all cases.
    pub fn is(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// One of the items.
    ///
    /// # Panics
    /// The slice is empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// A random position with probabilities proportional to the weights; the last one if all are 0.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit() * weights.iter().sum::<f64>();
        for (position, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return position;
            }
        }
        weights.len().saturating_sub(1)
    }

    /// Up to `count` of the items, each once, in their order.
    pub fn some<'a, T>(&mut self, items: &'a [T], count: usize) -> Vec<&'a T> {
        let mut wanted = count.min(items.len());
        let mut left = items.len();
        let mut chosen = Vec::with_capacity(wanted);
        for item in items {
            if self.below(left as u64) < wanted as u64 {
                chosen.push(item);
                wanted -= 1;
            }
            left -= 1;
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_seed_gives_the_known_stream() {
        // First outputs of SplitMix64 for the seed 0, as published with xoshiro.
        let mut chance = Chance(0);
        assert_eq!([chance.next(), chance.next()], [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4]);
    }

    #[test]
    fn some_keeps_order_and_count() {
        let mut chance = Chance::new(1, "test", 2);
        for count in 0..7 {
            let chosen = chance.some(&[1, 2, 3, 4, 5], count);
            assert_eq!(chosen.len(), count.min(5));
            assert!(chosen.is_sorted());
        }
    }
}
