//! Ids of the demo: short, unique, and rising with time as those of real writers mostly do.

use std::collections::BTreeMap;

use super::chance::{hash, mix};

/// Crockford's base 32, which leaves out easily confused characters.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Ids of all kinds of items. Those of one kind begin with the same prefix and an underscore.
#[derive(Debug)]
pub struct Ids {
    seed: u64,
    /// Number of the next item by prefix.
    next: BTreeMap<&'static str, u64>,
}

impl Ids {
    pub fn new(seed: u64) -> Ids {
        Ids { seed, next: BTreeMap::new() }
    }

    /// The id of an item by its number (below 2^29): eight digits, the last two of which cannot be guessed from
    /// neighbours.
    pub fn at(&self, prefix: &'static str, number: u64) -> String {
        let key = mix(self.seed ^ hash(prefix));
        let serial = (key & 0x1FFF_FFFF) + number;
        let code = serial << 10 | mix(key ^ number) & 0x3FF;
        let mut id = String::with_capacity(prefix.len() + 9);
        id.push_str(prefix);
        id.push('_');
        for digit in (0..8).rev() {
            id.push(char::from(DIGITS[(code >> (digit * 5) & 31) as usize]));
        }
        id
    }

    /// The next id of a kind.
    pub fn next(&mut self, prefix: &'static str) -> String {
        let number = self.next.entry(prefix).or_default();
        *number += 1;
        let number = *number - 1;
        self.at(prefix, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_and_have_one_length() {
        let ids = Ids::new(7);
        let all: Vec<String> = (0..5_000).map(|n| ids.at("ep", n)).collect();
        assert!(all.is_sorted_by(|a, b| a < b));
        assert!(all.iter().all(|id| id.len() == "ep_".len() + 8));
    }
}
