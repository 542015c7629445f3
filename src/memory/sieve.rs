//! Finds positions in a text where one of very many words may begin, without checking every byte.

use std::collections::HashSet;

/// Bytes of a text compared at once, and least length of a word.
const GRAM: usize = 4;
/// Bytes in which four windows of the shortest words begin.
const BLOCK: usize = 2 * GRAM - 1;
/// Most leading bytes that distinguish a word from others.
const BEGIN: usize = 8;
/// Table entries per four-byte sequence of the words, so that others are rarely mistaken for them; within these two
/// limits.
const ENTRIES: usize = 16;
const FEWEST: usize = 1 << 12;
const MOST: usize = 1 << 20;
/// Entries per word in the table of first bytes.
const BEGINS: usize = 4;
/// Most first bytes of words that are used: a step of that many fits in a byte.
const WINDOW: usize = 255;

/// Words of four bytes or more, in any case of ASCII letters. After Wu and Manber, A fast algorithm for multi-pattern
/// searching (1994): the longer the shortest word is, the more bytes of a text are skipped.
#[derive(Debug)]
pub struct WordSieve {
    /// Bytes of the shortest word before its last four, limited to the first [`WINDOW`] bytes.
    window: usize,
    /// For each hash of the four bytes at the end of a window, how far the window can safely move ahead.
    ahead: Box<[u8]>,
    /// Bits of a hash that are not part of an index in `ahead`.
    shift: u32,
    /// For each hash of a word's first bytes, one bit: whether a word may begin with them.
    begins: Box<[u64]>,
    /// Mask of these bytes: eight, or as many as the shortest word has.
    begin: u64,
}

impl WordSieve {
    /// Takes the words that `words` passes on each time it is called; `None` if one of them is too short.
    pub fn new(words: impl Fn(&mut dyn FnMut(&[u8]))) -> Option<Self> {
        let (mut shortest, mut count) = (WINDOW, 0);
        words(&mut |word| (shortest, count) = (shortest.min(word.len()), count + 1));
        if shortest < GRAM {
            return None;
        }
        let window = shortest - GRAM;
        let mut different: HashSet<[u8; GRAM]> = HashSet::new();
        words(&mut |word| {
            if different.len() * ENTRIES < MOST {
                different.extend(word[..shortest].array_windows::<GRAM>());
            }
        });
        let entries = (different.len() * ENTRIES).next_power_of_two().clamp(FEWEST, MOST);
        let ahead = vec![window as u8 + 1; entries].into_boxed_slice();
        let begins = (count * BEGINS).next_power_of_two().clamp(FEWEST, 4 * MOST);
        let begins = vec![0; begins / u64::BITS as usize].into_boxed_slice();
        let begin = u64::MAX >> (u8::BITS as usize * BEGIN.saturating_sub(shortest));
        let mut sieve = WordSieve { window, ahead, shift: u32::BITS - entries.ilog2(), begins, begin };
        words(&mut |word| {
            let (at, bit) = sieve.begin_of(word);
            sieve.begins[at] |= bit;
            for (n, gram) in word[..shortest].array_windows().enumerate() {
                let known = &mut sieve.ahead[place(*gram, sieve.shift)];
                *known = (*known).min((window - n) as u8);
            }
        });
        Some(sieve)
    }

    /// Whether a text may contain a word. False is certain.
    pub fn may_be_in(&self, text: &str) -> bool {
        self.next(text.as_bytes(), 0).is_some()
    }

    /// The first position from `at` on at which a word may begin; `None` is certain.
    pub fn next(&self, text: &[u8], mut at: usize) -> Option<usize> {
        let most = self.window + 1;
        loop {
            let ends = text.get(at + self.window..)?;
            // Checks several windows at once, since usually none of them contains part of a word.
            if self.is_free(ends, most) {
                at += 4 * most;
                continue;
            }
            ends.get(..GRAM)?;
            match self.ahead_of(ends, 0) {
                0 if self.may_begin(text.get(at..)?) => return Some(at),
                ahead => at += usize::from(ahead.max(1)),
            }
        }
    }

    /// Whether four consecutive windows end without part of a word; false if fewer are left.
    fn is_free(&self, ends: &[u8], most: usize) -> bool {
        if most == 1 {
            let Some(block) = ends.first_chunk::<BLOCK>() else { return false };
            let ahead = block.array_windows().map(|gram| self.ahead[place(*gram, self.shift)]);
            return ahead.fold(0, |least, ahead| least | (ahead ^ 1)) == 0;
        }
        let is_free = |n: usize| usize::from(self.ahead_of(ends, n * most)) == most;
        ends.len() >= 3 * most + GRAM && is_free(0) & is_free(1) & is_free(2) & is_free(3)
    }

    fn may_begin(&self, word: &[u8]) -> bool {
        let (at, bit) = self.begin_of(word);
        self.begins[at] & bit > 0
    }

    /// Index of a word's first bytes in `begins`, and its bit there; ignores case.
    fn begin_of(&self, word: &[u8]) -> (usize, u64) {
        let first = word.first_chunk().copied().unwrap_or_else(|| {
            let mut first = [0; BEGIN];
            first.iter_mut().zip(word).for_each(|(to, byte)| *to = *byte);
            first
        });
        let small = (u64::from_le_bytes(first) | u64::from_le_bytes([b' '; BEGIN])) & self.begin;
        let hash = (small.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        let place = hash & (self.begins.len() * u64::BITS as usize - 1);
        (place / u64::BITS as usize, 1 << (place % u64::BITS as usize))
    }

    fn ahead_of(&self, ends: &[u8], at: usize) -> u8 {
        let gram = ends.get(at..).and_then(|rest| rest.first_chunk::<GRAM>());
        gram.map_or(0, |gram| self.ahead[place(*gram, self.shift)])
    }
}

/// Index of four bytes in a table, from the upper bits of their hash that `shift` leaves; ignores case.
fn place(gram: [u8; GRAM], shift: u32) -> usize {
    let small = u32::from_le_bytes(gram) | u32::from_le_bytes([b' '; GRAM]);
    // Fibonacci hashing: the upper bits of a product depend on all bits of the factor.
    (small.wrapping_mul(0x9E37_79B1) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_place_of_a_word_is_missed(
            words in prop::collection::vec("[a-cA-C0-1é_]{4,12}", 0..6), text in "[a-cA-C0-1é_]{0,60}"
        ) {
            let sieve = WordSieve::new(|each| words.iter().for_each(|word| each(word.as_bytes()))).unwrap();
            let small = text.to_ascii_lowercase();
            let begins = |at: &usize| words.iter().any(|word| small.as_bytes()[*at..].starts_with(word.to_ascii_lowercase().as_bytes()));
            let (mut told, mut at) = (Vec::new(), 0);
            while let Some(place) = sieve.next(text.as_bytes(), at) {
                told.push(place);
                at = place + 1;
            }
            for at in (0..text.len()).filter(begins) {
                prop_assert!(told.contains(&at), "{at} of {text}");
            }
        }
    }

    #[test]
    fn most_of_a_text_is_passed_over() {
        let words: Vec<String> = (0..5_000).map(|n| format!("ep_{n:08x}")).collect();
        let sieve = WordSieve::new(|each| words.iter().for_each(|word| each(word.as_bytes()))).unwrap();
        let text = "The invoice was sent twice, and the second one was refused by the bank. ".repeat(20);
        let text = format!("{text}ep_00000a1f");
        let told: Vec<usize> =
            std::iter::successors(sieve.next(text.as_bytes(), 0), |at| sieve.next(text.as_bytes(), at + 1)).collect();
        assert_eq!(told.last(), Some(&(text.len() - 11)));
        assert!(told.len() < text.len() / 10, "{} of {}", told.len(), text.len());
        assert!(WordSieve::new(|each| each(b"ann")).is_none());
    }
}
