//! Ids of the demo: short, unique, and rising with time as those of real writers mostly do.

use super::chance::{hash, mix};

/// Crockford's base 32, which leaves out easily confused characters.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Ids of one kind of item.
#[derive(Debug)]
pub struct Ids {
    prefix: &'static str,
    key: u64,
    next: u64,
}

impl Ids {
    /// Ids that begin with `prefix` and an underscore.
    #[must_use]
    pub fn new(prefix: &'static str, seed: u64) -> Ids {
        Ids { prefix, key: mix(seed ^ hash(prefix)), next: 0 }
    }

    /// The id of an item by its number (below 2^29): eight digits, the last two of which cannot be guessed from
    /// neighbours.
    #[must_use]
    pub fn at(&self, number: u64) -> String {
        let serial = (self.key & 0x1FFF_FFFF) + number;
        let code = serial << 10 | mix(self.key ^ number) & 0x3FF;
        let mut id = String::with_capacity(self.prefix.len() + 9);
        id.push_str(self.prefix);
        id.push('_');
        for digit in (0..8).rev() {
            id.push(char::from(DIGITS[(code >> (digit * 5) & 31) as usize]));
        }
        id
    }

    /// The next id.
    pub fn next(&mut self) -> String {
        let id = self.at(self.next);
        self.next += 1;
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_and_have_one_length() {
        let ids = Ids::new("ep", 7);
        let all: Vec<String> = (0..5_000).map(|n| ids.at(n)).collect();
        assert!(all.is_sorted_by(|a, b| a < b));
        assert!(all.iter().all(|id| id.len() == "ep_".len() + 8));
    }
}
