//! Ids of rows that go, ready to be found in texts: many thousands of them in one pass, at a cost that does not grow with
//! their number.

use std::collections::{HashMap, HashSet};

use crate::memory::mention;
use crate::memory::sieve::WordSieve;

/// Ids shorter than that are not looked for in texts: they would be found everywhere. By so many first bytes a place of a
/// text is told to be worth a look.
pub(super) const ID_LENGTH: usize = 8;

/// Ids to look for, in any case of ASCII letters.
#[derive(Debug)]
pub(super) struct RowIds {
    /// Lengths of the ids that begin with a prefix, longest first.
    lengths: HashMap<[u8; ID_LENGTH], Vec<usize>>,
    /// The ids in small letters.
    ids: HashSet<Box<[u8]>>,
    /// Tells where they may begin; none where there are none.
    sieve: Option<WordSieve>,
}

impl RowIds {
    /// Takes the ids; those below [`ID_LENGTH`] bytes are left out.
    pub fn new(ids: impl IntoIterator<Item = String>) -> Self {
        let ids: HashSet<Box<[u8]>> =
            ids.into_iter().map(|id| id.to_ascii_lowercase().into_bytes().into_boxed_slice()).collect();
        let mut lengths: HashMap<[u8; ID_LENGTH], Vec<usize>> = HashMap::new();
        for id in &ids {
            let Some(prefix) = first(id) else { continue };
            let known = lengths.entry(prefix).or_default();
            if !known.contains(&id.len()) {
                known.push(id.len());
            }
        }
        lengths.values_mut().for_each(|lengths| lengths.sort_unstable_by(|a, b| b.cmp(a)));
        let told: Vec<&[u8]> = ids.iter().map(AsRef::as_ref).filter(|id: &&[u8]| id.len() >= ID_LENGTH).collect();
        let sieve = WordSieve::new(&told).filter(|_| !told.is_empty());
        RowIds { lengths, ids, sieve }
    }

    /// Finds the ids that stand in a text as words of their own, in order; of several that overlap the first, of those
    /// that begin at one place the longest. Each is its first byte and the byte after its last.
    pub fn find(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        let Some(sieve) = &self.sieve else { return found };
        let mut from = 0;
        while let Some(at) = sieve.next(text, from) {
            let length = self.longest(text, at);
            found.extend(length.map(|length| (at, at + length)));
            from = at + length.unwrap_or(1);
        }
        found
    }

    /// Returns the length of the longest id that is a word of its own at a place.
    fn longest(&self, text: &[u8], at: usize) -> Option<usize> {
        let first = first(&text[at..])?;
        let is_id = |length: usize| {
            let id = text.get(at..at + length)?;
            let known = self.ids.contains(id.to_ascii_lowercase().as_slice());
            (known && mention::begins(text, at) && mention::ends(text, at + length)).then_some(length)
        };
        self.lengths.get(&first.map(|byte| byte.to_ascii_lowercase()))?.iter().find_map(|length| is_id(*length))
    }
}

fn first(id: &[u8]) -> Option<[u8; ID_LENGTH]> {
    id.get(..ID_LENGTH)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ids: &[&str], text: &str) -> Vec<String> {
        let ids = RowIds::new(ids.iter().map(|id| (*id).to_owned()));
        ids.find(text.as_bytes()).into_iter().map(|(start, end)| text[start..end].to_owned()).collect()
    }

    #[test]
    fn ids_are_found_where_they_are_words_of_their_own() {
        let ids =
            ["Episode-1", "episode-12", "1f0c9d2e-77aa-4b6e-9c10-0aa1b2c3d4e5", "行記録一二三", "[\"ann\",\"s-1\"]"];
        for (text, expected) in [
            ("see EPISODE-1, episode-12.", vec!["EPISODE-1", "episode-12"]),
            ("episode-13 xepisode-1 episode-1x", vec![]),
            (r"a\nepisode-1 %20episode-12 \u00e9episode-1", vec!["episode-1", "episode-12", "episode-1"]),
            ("x_episode-1 episode-1_x", vec![]),
            ("{\"id\":\"1f0c9d2e-77aa-4b6e-9c10-0aa1b2c3d4e5\"}", vec!["1f0c9d2e-77aa-4b6e-9c10-0aa1b2c3d4e5"]),
            ("abc行記録一二三", vec!["行記録一二三"]),
            ("row [\"ann\",\"s-1\"]", vec!["[\"ann\",\"s-1\"]"]),
            ("episode", vec![]),
        ] {
            assert_eq!(found(&ids, text), expected, "{text}");
        }
    }

    #[test]
    fn of_ids_that_overlap_the_first_and_longest_counts() {
        let ids = ["run-0001", "run-0001/step-02", "step-02/part-3"];
        assert_eq!(found(&ids, "run-0001/step-02/part-3"), ["run-0001/step-02"]);
        assert_eq!(found(&ids, "run-0001/step-0 step-02/part-3"), ["run-0001", "step-02/part-3"]);
        assert_eq!(found(&[], "run-0001"), Vec::<String>::new());
    }
}
