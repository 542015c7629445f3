//! Ids of rows that go, ready to be found in texts: many thousands of them in one pass, at a cost that does not grow with
//! their number.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::id_set::IdSet;
use super::matcher::tells;
use crate::memory::mention;
use crate::memory::sieve::WordSieve;

/// Ids shorter than that are not looked for in texts: they would be found everywhere.
pub(super) const ID_LENGTH: usize = 8;

/// Entries for each id by which first bytes of a text are told from those of ids.
const BEGINS: usize = 4;

/// Ids to look for, in any case of ASCII letters.
#[derive(Debug, Default)]
pub(super) struct RowIds(Option<SoughtIds>);

#[derive(Debug)]
struct SoughtIds {
    ids: Arc<IdSet>,
    /// Their lengths, longest first.
    lengths: Vec<usize>,
    /// Tells where they may begin.
    sieve: WordSieve,
    /// For each hash of first bytes whether an id may begin so.
    begins: Box<[bool]>,
}

impl RowIds {
    /// Takes the ids; those that cannot be told in any text are left out.
    pub fn new(ids: &Arc<IdSet>) -> Self {
        let lengths: BTreeSet<usize> = ids.iter().filter(|id| tells(id)).map(|id| id.len()).collect();
        if lengths.is_empty() {
            return RowIds(None);
        }
        let told = || ids.iter().filter(|id| tells(id));
        let sieve = WordSieve::new(|each| told().for_each(|id| each(id.as_bytes())));
        let entries = (ids.len() * BEGINS).next_power_of_two();
        let mut begins = vec![false; entries].into_boxed_slice();
        told().filter_map(|id| begin(id.as_bytes(), entries)).for_each(|at| begins[at] = true);
        let lengths = lengths.into_iter().rev().collect();
        RowIds(sieve.map(|sieve| SoughtIds { ids: ids.clone(), lengths, sieve, begins }))
    }

    /// Finds the ids that stand in a text as words of their own, in order; of several that overlap the first, of those
    /// that begin at one place the longest. Each is its first byte and the byte after its last.
    pub fn find(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        let Some(sought) = &self.0 else { return found };
        let mut from = 0;
        while let Some(at) = sought.sieve.next(text, from) {
            let length = sought.longest(text, at);
            found.extend(length.map(|length| (at, at + length)));
            from = at + length.unwrap_or(1);
        }
        found
    }
}

impl SoughtIds {
    /// Returns the length of the longest id that is a word of its own at a place.
    fn longest(&self, text: &[u8], at: usize) -> Option<usize> {
        let may_begin = self.begins[begin(&text[at..], self.begins.len())?];
        if !may_begin || !mention::begins(text, at) {
            return None;
        }
        let is_id = |length: &usize| {
            let end = at + length;
            let id = text.get(at..end).filter(|_| mention::ends(text, end)).and_then(|id| std::str::from_utf8(id).ok());
            id.is_some_and(|id| tells(id) && self.ids.contains_in_any_case(id))
        };
        self.lengths.iter().copied().find(|length| is_id(length))
    }
}

/// Place of the first bytes of an id in a table of so many entries, a power of two: the same for letters in either case.
fn begin(id: &[u8], entries: usize) -> Option<usize> {
    let small = u64::from_le_bytes(*id.first_chunk()?) | u64::from_le_bytes([b' '; ID_LENGTH]);
    // Fibonacci hashing, as in the sieve.
    Some((small.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (entries - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::packed::pages::PageStore;
    use crate::memory::packed::space::tests::space;

    fn found(ids: &[&str], text: &str) -> Vec<String> {
        let mut set = IdSet::new(&PageStore::new(0, space));
        ids.iter().for_each(|id| set.insert(id));
        let ids = RowIds::new(&Arc::new(set));
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
