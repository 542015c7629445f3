//! Very many words, searched at a cost that hardly grows with their number; each takes its length and eight bytes.

use std::ops::Range;

use super::sieve::WordSieve;

/// Words, numbered as they were added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WordList {
    /// The bytes of all words, one after the other.
    bytes: Vec<u8>,
    /// The end of each word in `bytes`.
    ends: Vec<u32>,
}

impl WordList {
    /// Adds a word.
    pub fn push(&mut self, word: &[u8]) {
        self.bytes.extend_from_slice(word);
        self.ends.push(self.bytes.len() as u32);
    }

    /// Frees unused space.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// The bytes of a word; empty for an invalid number.
    pub fn word(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or_default());
        let end = self.ends.get(number).copied().unwrap_or(start);
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// All words, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|number| self.word(number))
    }
}

/// Search order of the words of a list.
#[derive(Debug)]
pub struct WordIndex {
    /// Finds where words may begin; `None` if one of them is very short.
    sieve: Option<WordSieve>,
    /// The numbers of the words, ordered by their bytes in ASCII lower case, then as they are.
    order: Box<[u32]>,
    /// Length of the shortest word in bytes.
    shortest: usize,
}

impl WordIndex {
    /// Sorts the words of a list, to which none may be added later.
    pub fn new(list: &WordList) -> Self {
        let word = |number: &u32| small(list.word(*number as usize));
        let mut order: Box<[u32]> = (0..list.ends.len() as u32).collect();
        order.sort_unstable_by(|a, b| word(a).cmp(word(b)).then(a.cmp(b)));
        let shortest = list.iter().map(<[u8]>::len).min().unwrap_or(0);
        WordIndex { sieve: WordSieve::new(|each| list.iter().for_each(each)), order, shortest }
    }

    /// Whether some bytes contain a word, in any case of ASCII letters.
    pub fn is_in(&self, list: &WordList, bytes: &[u8]) -> bool {
        self.places(list, bytes).next().is_some()
    }

    /// Every match of a word in some bytes, in any case of ASCII letters, with the word's number; ordered by start,
    /// then length.
    pub fn places<'a>(
        &'a self,
        list: &'a WordList,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        let mut from = 0;
        let begins = std::iter::from_fn(move || {
            let at = match &self.sieve {
                Some(sieve) => sieve.next(bytes, from)?,
                None => Some(from).filter(|from| *from < bytes.len())?,
            };
            from = at + 1;
            Some(at)
        });
        begins.flat_map(move |at| self.at(list, bytes, at))
    }

    /// The words that share the text's bytes at a position, up to the length of the shortest word; usually none.
    fn beginning(&self, list: &WordList, text: &[u8]) -> &[u32] {
        let Some(begin) = text.get(..self.shortest) else { return &[] };
        let word = |number: &u32| small(&list.word(*number as usize)[..self.shortest]);
        let left = &self.order[self.order.partition_point(|number| word(number).lt(small(begin)))..];
        match left.first() {
            Some(first) if word(first).eq(small(begin)) => {
                &left[..left.partition_point(|number| word(number).eq(small(begin)))]
            }
            _ => &[],
        }
    }

    /// The words at a position: with each further byte, those that match remain.
    fn at<'a>(
        &'a self,
        list: &'a WordList,
        bytes: &'a [u8],
        at: usize,
    ) -> impl Iterator<Item = (usize, Range<usize>)> + 'a {
        let (mut left, mut length) = (self.beginning(list, &bytes[at..]), self.shortest);
        std::iter::from_fn(move || {
            loop {
                let (first, others) = left.split_first()?;
                if list.word(*first as usize).len() == length {
                    left = others;
                    return Some((*first as usize, at..at + length));
                }
                let next = bytes.get(at + length)?.to_ascii_lowercase();
                let byte = |number: &u32| list.word(*number as usize)[length].to_ascii_lowercase();
                left = &left[left.partition_point(|number| byte(number) < next)..];
                left = &left[..left.partition_point(|number| byte(number) == next)];
                length += 1;
            }
        })
    }
}

/// Bytes in small letters of ASCII.
fn small(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().map(u8::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use aho_corasick::{AhoCorasick, MatchKind};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_place_of_each_word_is_found(
            words in prop::collection::vec("[a-cA-C0é]{4,12}|[abA]{2,5}", 0..9), text in "[a-cA-C0é]{0,60}"
        ) {
            let words: Vec<String> = words.into_iter().collect();
            let mut list = WordList::default();
            words.iter().for_each(|word| list.push(word.as_bytes()));
            let index = WordIndex::new(&list);
            let mut found: Vec<_> = index.places(&list, text.as_bytes()).map(|(n, place)| (place.start, place.end, n)).collect();
            prop_assert!(found.is_sorted_by_key(|(start, end, _)| (*start, *end)));
            found.sort_unstable();
            let mut builder = AhoCorasick::builder();
            let automaton = builder.match_kind(MatchKind::Standard).ascii_case_insensitive(true).build(&words).unwrap();
            let hits = automaton.find_overlapping_iter(&text);
            let mut expected: Vec<_> = hits.map(|hit| (hit.start(), hit.end(), hit.pattern().as_usize())).collect();
            expected.sort_unstable();
            prop_assert_eq!(index.is_in(&list, text.as_bytes()), !expected.is_empty());
            prop_assert_eq!(found, expected);
        }
    }
}
