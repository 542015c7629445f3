//! Very many long words, such as the ids of a person's conversations: they are found in a folded text at a cost that does not
//! grow with their number, and take few bytes each.

use crate::memory::digest::digest;
use crate::memory::sieve::WordSieve;

/// Bytes from which a word is long: its longest part has so many.
const LONG: usize = 8;
/// Places of the table for each word.
const PLACES: usize = 2;

/// Words of ASCII, each with a number.
#[derive(Debug, Default)]
pub struct LongWords {
    text: String,
    /// The end of each word in the text, and its number.
    words: Vec<(u32, u32)>,
    sought: Option<SoughtWords>,
}

#[derive(Debug)]
struct SoughtWords {
    /// One more than the position of a word, by its hash; 0 where nothing is.
    places: Vec<u32>,
    /// The lengths of words.
    lengths: Vec<usize>,
    /// Tells where they may begin.
    sieve: WordSieve,
    /// Tells which text as it is written may hold the longest part of one of them.
    parts: WordSieve,
}

/// The longest part of a word between marks for which others may stand in a text.
#[must_use]
pub fn longest_part(word: &str) -> Option<&str> {
    word.split([' ', '\'', '-', '+']).max_by_key(|part| part.len())
}

/// Whether a word can be among them.
#[must_use]
pub fn is_long(word: &str) -> bool {
    word.is_ascii() && !word.contains('\'') && longest_part(word).is_some_and(|part| part.len() >= LONG)
}

impl LongWords {
    /// Takes a word for which [`is_long`] holds.
    pub fn push(&mut self, word: &str, number: usize) {
        self.text.push_str(word);
        self.words.push((self.text.len() as u32, number as u32));
    }

    fn word(&self, at: usize) -> Option<(&str, usize)> {
        let (end, number) = *self.words.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.words[before].0);
        Some((self.text.get(start as usize..end as usize)?, number as usize))
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        (0..self.words.len()).filter_map(|at| self.word(at)).map(|(word, _)| word)
    }

    /// Prepares to look for them; no more come.
    #[must_use]
    pub fn ready(mut self) -> Self {
        self.text.shrink_to_fit();
        self.words.shrink_to_fit();
        let sieve = WordSieve::new(|each| self.all().for_each(|word| each(word.as_bytes())));
        let parts = |each: &mut dyn FnMut(&[u8])| {
            self.all().filter_map(longest_part).for_each(|part| each(part.as_bytes()));
        };
        let Some((sieve, parts)) = sieve.zip(WordSieve::new(parts)).filter(|_| !self.words.is_empty()) else {
            return self;
        };
        let mut lengths: Vec<usize> = self.all().map(str::len).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut places = vec![0; (self.words.len() * PLACES).next_power_of_two()];
        for (at, word) in (1..).zip(self.all()) {
            let mut place = digest(word) as usize & (places.len() - 1);
            while places[place] > 0 {
                place = (place + 1) & (places.len() - 1);
            }
            places[place] = at;
        }
        self.sought = Some(SoughtWords { places, lengths, sieve, parts });
        self
    }

    /// Whether a text of ASCII may hold one of them. False is certain.
    #[must_use]
    pub fn may_be_in(&self, text: &str) -> bool {
        self.sought.as_ref().is_some_and(|sought| sought.parts.may_be_in(text))
    }

    /// Hands on the start, the end, and the number of each word in a folded text.
    pub fn find(&self, text: &str, mut found: impl FnMut(usize, usize, usize)) {
        let Some(sought) = &self.sought else { return };
        let mut from = 0;
        while let Some(at) = sought.sieve.next(text.as_bytes(), from) {
            for length in &sought.lengths {
                let Some(part) = text.get(at..at + length) else { continue };
                self.each_of(sought, part, |number| found(at, at + length, number));
            }
            from = at + 1;
        }
    }

    fn each_of(&self, sought: &SoughtWords, word: &str, mut found: impl FnMut(usize)) {
        let mut place = digest(word) as usize & (sought.places.len() - 1);
        while let Some(at) = sought.places.get(place).and_then(|at| at.checked_sub(1)) {
            if let Some((_, number)) = self.word(at as usize).filter(|(known, _)| *known == word) {
                found(number);
            }
            place = (place + 1) & (sought.places.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use aho_corasick::{AhoCorasick, MatchKind};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_place_of_each_word_is_found(
            words in prop::collection::vec("[ab1]{8,10}|[ab]{8}-[ab]", 0..9), text in "[abé1-]{0,60}"
        ) {
            let mut long = LongWords::default();
            words.iter().enumerate().for_each(|(n, word)| long.push(word, n));
            let long = long.ready();
            let mut found = Vec::new();
            long.find(&text, |start, end, number| found.push((start, end, number)));
            found.sort_unstable();
            let automaton = AhoCorasick::builder().match_kind(MatchKind::Standard).build(&words).unwrap();
            let mut expected: Vec<_> = automaton
                .find_overlapping_iter(&text)
                .map(|hit| (hit.start(), hit.end(), hit.pattern().as_usize()))
                .collect();
            expected.sort_unstable();
            prop_assert!(expected.is_empty() || !text.is_ascii() || long.may_be_in(&text.to_uppercase()));
            prop_assert_eq!(found, expected);
        }
    }
}
