//! Very many long words, such as the ids of a person's conversations, found in a folded text at a cost that does not
//! grow with their number, in few bytes each.

use crate::memory::sieve::WordSieve;
use crate::memory::word_index::{WordIndex, WordList};

/// Bytes of a word's longest part from which it is long.
const LONG: usize = 8;

/// Words of ASCII, each with a number.
#[derive(Debug, Default)]
pub struct LongWords {
    words: WordList,
    numbers: Vec<u32>,
    sought: Option<SoughtWords>,
}

#[derive(Debug)]
struct SoughtWords {
    index: WordIndex,
    /// Finds texts that may contain the longest part of one of them.
    parts: WordSieve,
}

/// The longest part of a word between punctuation with variants.
pub fn longest_part(word: &str) -> Option<&str> {
    word.split([' ', '\'', '-', '+']).max_by_key(|part| part.len())
}

/// Whether a word can be added.
pub fn is_long(word: &str) -> bool {
    word.is_ascii() && !word.contains('\'') && longest_part(word).is_some_and(|part| part.len() >= LONG)
}

impl LongWords {
    /// Adds a word for which [`is_long`] holds.
    pub fn push(&mut self, word: &str, number: usize) {
        self.words.push(word.as_bytes());
        self.numbers.push(number as u32);
    }

    /// Prepares the search after all words are added.
    pub fn ready(mut self) -> Self {
        self.words.shrink_to_fit();
        self.numbers.shrink_to_fit();
        let texts = || self.words.iter().filter_map(|word| str::from_utf8(word).ok());
        let parts = WordSieve::new(|each| texts().filter_map(longest_part).for_each(|part| each(part.as_bytes())));
        self.sought = parts
            .filter(|_| !self.numbers.is_empty())
            .map(|parts| SoughtWords { index: WordIndex::new(&self.words), parts });
        self
    }

    /// Whether an ASCII text may contain one of them. False is certain.
    pub fn may_be_in(&self, text: &str) -> bool {
        self.sought.as_ref().is_some_and(|sought| sought.parts.may_be_in(text))
    }

    /// Passes on the start, the end, and the number of each word in a folded text.
    pub fn find(&self, text: &str, mut found: impl FnMut(usize, usize, usize)) {
        let Some(sought) = &self.sought else { return };
        for (word, place) in sought.index.places(&self.words, text.as_bytes()) {
            found(place.start, place.end, self.numbers[word] as usize);
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
