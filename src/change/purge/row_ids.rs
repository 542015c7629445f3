//! Finds ids of deleted rows in texts: many thousands in one pass, at a cost that does not grow with their number.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::id_set::IdSet;
use crate::memory::mention;
use crate::memory::sieve::WordSieve;

/// Shortest id to search for in texts; shorter ones would be found everywhere.
pub(super) const ID_LENGTH: usize = 8;

/// Ids to search for, by their exact spelling.
#[derive(Debug, Default)]
pub(super) struct RowIds(Option<SoughtIds>);

#[derive(Debug)]
struct SoughtIds {
    ids: Arc<IdSet>,
    /// Their lengths, longest first.
    lengths: Vec<usize>,
    /// Finds where they may begin.
    sieve: WordSieve,
}

impl RowIds {
    /// Takes the ids, all of which are recognizable in any text.
    pub fn new(ids: &Arc<IdSet>) -> Self {
        let lengths: BTreeSet<usize> = ids.iter().map(|id| id.len()).collect();
        if lengths.is_empty() {
            return RowIds(None);
        }
        let sieve = WordSieve::new(|each| ids.iter().for_each(|id| each(id.as_bytes())));
        let lengths = lengths.into_iter().rev().collect();
        RowIds(sieve.map(|sieve| SoughtIds { ids: ids.clone(), lengths, sieve }))
    }

    /// Finds the ids that are whole words in a text, in order. Of overlapping ids the first counts, of ids with the
    /// same start the longest. Returns the start and the end (exclusive) of each.
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
    /// Returns the length of the longest id that is a whole word at a place.
    fn longest(&self, text: &[u8], at: usize) -> Option<usize> {
        if !mention::begins(text, at) {
            return None;
        }
        let is_id = |length: &usize| {
            let end = at + length;
            let id = text.get(at..end).filter(|_| mention::ends(text, end)).and_then(|id| std::str::from_utf8(id).ok());
            id.is_some_and(|id| self.ids.contains(id))
        };
        self.lengths.iter().copied().find(|length| is_id(length))
    }
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
            ("see EPISODE-1, Episode-1, episode-12, episode-1.", vec!["Episode-1", "episode-12"]),
            ("Episode-13 xEpisode-1 Episode-1x", vec![]),
            (r"a\nEpisode-1 %20episode-12 \u00e9Episode-1", vec!["Episode-1", "episode-12", "Episode-1"]),
            ("x_Episode-1 Episode-1_x", vec![]),
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
