//! Finds memories that say the same, and contradicting facts. For any number of memories, they are sorted outside of
//! memory, and those of one person, agent and collection are compared.

use std::io;

use super::FindingTally;
use super::facts::Facts;
use super::marks::LINKED;
use crate::memory::digest::{Digest, digest, wide_digest};
use crate::memory::packed::column::PagedColumn;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::packed::records::{Record, RecordSorter, RecordStream, SortedRecords, in_order, ordered, unordered};
use crate::memory::packed::space::MakeSpace;
use crate::memory::{Row, time};

/// Most memories of one person, agent and collection that are compared: the work grows with their square.
const COMPARED: usize = 2_000;
/// Most words of a text that are compared.
const WORDS: usize = 200;
/// Fewest words of a text that can be a reworded copy of another one.
const FEW: usize = 4;
/// Share of common words from which two texts say the same.
const SHARED: f64 = 0.9;

/// Status words of a memory that is no longer in use.
pub const OUT_OF_USE: [&str; 5] = ["superseded", "deleted", "expired", "merged", "archived"];

/// Numbers of a group.
pub(super) const GROUP: usize = 5;
/// Numbers of a text: its group and its index as sort key, its time, its digest, and the start of its words, with their
/// number in the last byte.
const TEXT: usize = GROUP + 4;

/// The group of a row: persons are ordered by the first 16 bytes of their ids, and groups of one person by the first 8
/// of their names. Two groups are never equal.
pub(super) fn group(row: &Row, names: &[&str]) -> [u64; GROUP] {
    let person = row.text("user_id").unwrap_or_default();
    let [first, rest, _] = in_order(person);
    let [name, ..] = in_order(names.first().copied().unwrap_or_default());
    let [one, other] = wide_digest(&format!("{person:?}{names:?}"));
    [first, rest, name, one, other]
}

/// A memory in use, neither superseded nor deleted.
#[derive(Debug)]
pub struct StandingMemory {
    /// Id.
    pub id: String,
    /// Digest of its words and symbols in order, without case and punctuation.
    pub text: Digest,
    created: Option<i64>,
    /// Digests of its words, sorted.
    words: Vec<u32>,
}

/// Memories by owner and collection, and the facts among them.
#[derive(Debug)]
pub struct StandingMemories {
    pages: PageStore,
    ids: IdList,
    words: PagedColumn<u32>,
    texts: RecordSorter<TEXT>,
    facts: Facts,
}

impl StandingMemories {
    /// Creates an empty collection. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        StandingMemories::within(LINKED, space)
    }

    /// As [`StandingMemories::new`], with a memory limit for each kind of record.
    fn within(bytes: usize, space: MakeSpace) -> Self {
        let pages = PageStore::new(bytes, space);
        StandingMemories {
            ids: IdList::paged(&pages),
            words: PagedColumn::new(&pages),
            texts: RecordSorter::new(space).within(bytes),
            facts: Facts::new(RecordSorter::new(space).within(bytes)),
            pages,
        }
    }

    /// Adds a memory; a superseded one is ignored.
    pub fn add(&mut self, row: &Row) {
        let is_gone = row.text("status").is_some_and(|status| OUT_OF_USE.contains(&status));
        if is_gone || row.within("metadata", "superseded_by").is_some_and(|by| by.is_string()) {
            return;
        }
        let created = row.text("created_at").and_then(time::epoch_micros);
        let place = self.ids.len() as u64;
        if self.facts.add(row, created, place) || self.text(row, created, place) {
            self.ids.push(row.id());
        }
    }

    /// Adds the text of a memory; returns whether it has any.
    fn text(&mut self, row: &Row, created: Option<i64>, place: u64) -> bool {
        let text = row.text("text").unwrap_or_default().to_lowercase();
        let words = words(&text);
        if words.is_empty() {
            return false;
        }
        let mut held: Vec<u32> = words.iter().take(WORDS).map(|word| (digest(word) >> 32) as u32).collect();
        held.sort_unstable();
        held.dedup();
        let [person, rest, name, one, other] =
            group(row, &["collection", "agent_id"].map(|column| row.text(column).unwrap_or_default()));
        let begin = (self.words.len() << 8 | held.len()) as u64;
        self.texts.add([
            person,
            rest,
            name,
            one,
            other,
            place,
            created.map_or(0, ordered),
            digest(&words.join(" ")),
            begin,
        ]);
        held.into_iter().for_each(|word| self.words.push(word));
        true
    }

    /// Pairs of facts with the same subject and predicate but another object that hold at the same time, the older one
    /// first. All memories have been added.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn contradictions(&mut self, most: usize) -> io::Result<FindingTally> {
        let mut tally = FindingTally::default();
        let id = |place: u64| self.ids.get(place as usize).unwrap_or_default().into_owned();
        self.facts.take().contradictions(|pair| tally.group(pair.map(id).to_vec(), false, most))?;
        self.pages.check()?;
        Ok(tally)
    }

    /// The memories that are not facts, group by group.
    ///
    /// # Errors
    /// As [`StandingMemories::contradictions`].
    pub fn into_groups(self) -> io::Result<MemoryGroups> {
        Ok(MemoryGroups { sorted: self.texts.sorted()?, ids: self.ids, words: self.words, pages: self.pages })
    }
}

/// Memories grouped by person, agent and collection.
pub struct MemoryGroups {
    sorted: SortedRecords<TEXT>,
    ids: IdList,
    words: PagedColumn<u32>,
    pages: PageStore,
}

impl MemoryGroups {
    /// Reads one group after the other.
    ///
    /// # Errors
    /// Data that did not fit in memory cannot be read.
    pub fn stream(&self) -> io::Result<GroupStream<'_>> {
        Ok(GroupStream { groups: self, records: self.sorted.stream()? })
    }

    fn memory(&self, [.., place, created, text, begin]: &Record<TEXT>) -> StandingMemory {
        let (from, count) = ((begin >> 8) as usize, (begin & 0xff) as usize);
        let words = (from..from + count).filter_map(|at| self.words.get(at)).collect();
        let id = self.ids.get(*place as usize).unwrap_or_default().into_owned();
        let created = Some(*created).filter(|created| *created != 0).map(unordered);
        StandingMemory { id, text: *text, created, words }
    }
}

/// One group after the other.
pub struct GroupStream<'g> {
    groups: &'g MemoryGroups,
    records: RecordStream<'g, TEXT>,
}

impl GroupStream<'_> {
    /// The next groups, up to a total number of memories; empty at the end.
    ///
    /// # Errors
    /// As [`MemoryGroups::stream`].
    pub fn some(&mut self, memories: usize) -> io::Result<Vec<Vec<StandingMemory>>> {
        let (mut some, mut count) = (Vec::new(), 0);
        while count < memories
            && let Some(group) = self.next()?
        {
            count += group.len();
            some.push(group);
        }
        Ok(some)
    }

    /// The memories of the next person and collection, in order of insertion. Skips single ones, and groups too large
    /// to compare.
    fn next(&mut self) -> io::Result<Option<Vec<StandingMemory>>> {
        while let Some(first) = self.records.next()? {
            let (mut group, mut count) = (vec![first], 1);
            while self.records.peek().is_some_and(|next| next[..GROUP] == first[..GROUP]) {
                count += 1;
                group.extend(self.records.next()?.filter(|_| count <= COMPARED));
            }
            if (2..=COMPARED).contains(&count) {
                let memories = group.iter().map(|record| self.groups.memory(record)).collect();
                self.groups.pages.check()?;
                return Ok(Some(memories));
            }
        }
        Ok(None)
    }
}

/// Groups of memories that say the same, each with its oldest first and its newest last. `near` tells whether the
/// meanings of two, by index, are near; if it does not know, their words decide.
pub fn copies(
    memories: &[StandingMemory],
    near: impl Fn(usize, usize) -> Option<bool>,
    most: usize,
    tally: &mut FindingTally,
) {
    let mut order: Vec<usize> = (0..memories.len()).collect();
    order.sort_by_key(|at| (memories[*at].created, &memories[*at].id));
    let mut taken = vec![false; memories.len()];
    for (place, first) in order.iter().enumerate() {
        if taken[*first] {
            continue;
        }
        let same = |other: &&usize| {
            let (a, b) = (&memories[*first], &memories[**other]);
            !taken[**other]
                && (a.text == b.text || near(*first, **other).unwrap_or_else(|| share(&a.words, &b.words) >= SHARED))
        };
        let group: Vec<usize> = order[place + 1..].iter().filter(same).copied().collect();
        if !group.is_empty() {
            group.iter().for_each(|at| taken[*at] = true);
            let all = || std::iter::once(first).chain(&group).map(|at| &memories[*at]);
            let undated = all().any(|memory| memory.created.is_none());
            if tally.together.is_empty() {
                tally.is_same = all().all(|memory| memory.text == memories[*first].text);
            }
            tally.group(all().map(|memory| memory.id.clone()).collect(), undated, most);
        }
    }
}

/// The words of a text, and each symbol as a word: a sign, a currency or an emoji may distinguish two texts.
fn words(text: &str) -> Vec<&str> {
    let is_word = |part: &&str| part.chars().any(|c| !c.is_whitespace() && !is_punctuation(c));
    text.split_inclusive(|c: char| !c.is_alphanumeric())
        .flat_map(|part| {
            let end =
                part.char_indices().next_back().filter(|(_, c)| !c.is_alphanumeric()).map_or(part.len(), |(at, _)| at);
            <[&str; 2]>::from(part.split_at(end))
        })
        .filter(is_word)
        .collect()
}

/// Whether a character only separates words.
fn is_punctuation(c: char) -> bool {
    ".,;:!?\"'`()[]{}<>_*#|/\\…“”„‘’«»–—¿¡、。".contains(c)
}

/// The share of common words of two texts; 0 if one is too short to tell.
fn share(a: &[u32], b: &[u32]) -> f64 {
    if a.len().min(b.len()) < FEW {
        return 0.0;
    }
    let both = a.iter().filter(|word| b.binary_search(word).is_ok()).count();
    both as f64 / (a.len() + b.len() - both) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::memory::Entity;
    use crate::memory::packed::space::tests::space;

    fn memory(id: &str, user: &str, day: u8, text: &str, metadata: Value) -> Row {
        let mut row = Row::empty(Entity::Memory);
        let created = format!("2026-02-{day:02}T00:00:00.000000Z");
        for (column, value) in [("id", id), ("user_id", user), ("text", text), ("created_at", &created)] {
            row.set(column, Value::from(value));
        }
        row.set("metadata", metadata);
        row
    }

    /// The ids of the first group of copies, with the number of groups; `near` as in [`copies`].
    fn copied(all: StandingMemories, near: Option<bool>) -> FindingTally {
        let mut tally = FindingTally::default();
        let groups = all.into_groups().unwrap();
        let mut stream = groups.stream().unwrap();
        for group in stream.some(usize::MAX).unwrap() {
            copies(&group, |_, _| near, 9, &mut tally);
        }
        tally
    }

    #[test]
    fn facts_contradict_where_they_hold_at_the_same_time() {
        let mut all = StandingMemories::within(1, space);
        let fact = |object: &str, from: Option<&str>, to: Option<&str>| json!({"subject": "Ada", "predicate": "lives in", "object": object, "valid_from": from, "valid_to": to});
        let begin = [
            memory("a", "u", 1, "", fact("Bonn", Some("2024-01-01"), Some("2025-01-01"))),
            memory("b", "u", 2, "", fact("Leipzig", Some("2025-01-01"), None)),
        ];
        begin.iter().for_each(|row| all.add(row));
        assert_eq!(all.contradictions(9).unwrap().count, 0);
        let mut gone = memory("e", "u", 4, "", fact("Ulm", None, None));
        gone.set("status", Value::from("superseded"));
        let rest = [
            memory("c", "u", 3, "", fact("Dresden", Some("2026-01-01"), None)),
            memory("d", "v", 3, "", fact("Kiel", None, None)),
            gone,
        ];
        rest.iter().chain(&begin).for_each(|row| all.add(row));
        let found = all.contradictions(9).unwrap();
        assert_eq!((found.count, found.together), (1, vec!["b".to_owned(), "c".to_owned()]));
    }

    #[test]
    fn a_fact_is_compared_with_the_latest_before_it() {
        let mut all = StandingMemories::within(1 << 10, space);
        let fact = |object: &str| json!({"subject": "Ada", "predicate": "likes", "object": object});
        all.add(&memory("a", "u", 1, "", fact("tea")));
        (0..2_005).for_each(|n| all.add(&memory(&format!("b{n:04}"), "u", 2, "", fact("coffee"))));
        let found = all.contradictions(1).unwrap();
        assert_eq!((found.count, found.together), (2_000, vec!["a".to_owned(), "b0000".to_owned()]));
    }

    proptest! {
        #[test]
        fn groups_are_of_one_person_and_collection_in_order(
            all in prop::collection::vec(("[ab\",]{0,2}", "[ab\",]{0,2}"), 0..60), held in 1usize..4_000
        ) {
            let mut standing = StandingMemories::within(held, space);
            let mut wanted: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
            for (n, (user, collection)) in all.iter().enumerate() {
                let mut row = memory(&n.to_string(), user, 1, &format!("says {n}"), Value::Null);
                row.set("collection", Value::from(collection.as_str()));
                standing.add(&row);
                wanted.entry((user, collection)).or_default().push(n.to_string());
            }
            wanted.retain(|_, ids| ids.len() > 1);
            let groups = standing.into_groups().unwrap();
            let mut stream = groups.stream().unwrap();
            let groups = stream.some(usize::MAX).unwrap();
            let found: Vec<Vec<String>> = groups.into_iter().map(|group| group.into_iter().map(|one| one.id).collect()).collect();
            prop_assert_eq!(found, wanted.into_values().collect::<Vec<_>>());
        }
    }

    #[test]
    fn copies_are_grouped_by_person_with_the_oldest_first() {
        let all = || {
            let mut all = StandingMemories::within(1, space);
            for (id, user, day, text) in [
                ("b", "u", 2, "ADA likes: green tea, in the morning"),
                ("a", "u", 1, "Ada likes green tea in the morning."),
                ("c", "u", 3, "Ada likes black coffee at night"),
                ("d", "v", 1, "Ada likes green tea in the morning"),
            ] {
                all.add(&memory(id, user, day, text, Value::Null));
            }
            all
        };
        let found = copied(all(), None);
        assert_eq!((found.count, found.together), (1, vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(copied(all(), Some(true)).together, ["a", "b", "c"]);
    }
}
