//! Keeps the first of very many rows while they pass: memory depends on the number wanted, not on the total. The kept
//! rows are those that a sort of all rows would put first.

use std::collections::HashMap;

use serde_json::Value;

use super::keyword::{HeldWords, WordFinder, WordTally};
use super::rank::{self, RankedRow};
use crate::memory::Row;

/// Most rows held in addition to the wanted ones: about 60 MB of whole episodes.
const HELD: usize = 16_384;

/// Most surplus rows of a group before it is pruned.
const SLACK: usize = 4_096;

/// Bytes of texts in held rows after which unneeded ones are dropped.
const BYTES: usize = 32 << 20;

/// Provisional share of the asked words, while the true one is unknown.
const SOME: f64 = 0.5;

/// Likeness of a row to the question, as far as known while rows are read.
#[derive(Debug, Clone, PartialEq)]
pub enum FoundLikeness {
    /// The cosine; `None` for a row without a vector, or without a comparison.
    Cosine(Option<f64>),
    /// The asked words in the row. Their weights are known only at the end, so the first rows of each set of words are
    /// kept until then.
    Words {
        /// The words.
        held: HeldWords,
        /// Number for everything else that decides the row's place together with its words: rows with different numbers
        /// are kept separately.
        apart: u64,
    },
}

/// Scores a row; returns `None` for a row that is not a candidate. Among rows with the same words the order must not
/// depend on the words' weights.
pub type Placing<'a> = dyn Fn(Row, Option<f64>) -> Option<RankedRow> + Sync + 'a;

/// The first rows by score, ties newer first, then by id.
pub struct Shortlist<'a> {
    place: &'a Placing<'a>,
    room: usize,
    asked: Option<&'a WordFinder>,
    /// Weights of the words, from an earlier pass over the same rows.
    known: Option<WordTally>,
    tally: WordTally,
    /// Rows by their words and number; `None` for rows with a final score.
    groups: HashMap<Option<(HeldWords, u64)>, KeptRows>,
    kept: usize,
    /// Bytes of texts in the kept rows, and the limit after which some are dropped.
    bytes: usize,
    full: usize,
    by_likeness: bool,
    totals: Option<Vec<f64>>,
    placed: usize,
    overflown: bool,
}

/// Result of a pass over the rows.
pub enum ShortlistEnd {
    /// The first rows.
    Rows(FirstRows),
    /// There are too many different sets of words to keep rows of each: another pass is needed, with
    /// [`Shortlist::again`].
    Again(WordTally),
}

/// The first rows in order.
pub struct FirstRows {
    /// The first rows, up to the limit.
    pub rows: Vec<RankedRow>,
    /// Most similar of the further rows, by score; empty unless requested.
    pub alike: Vec<RankedRow>,
    /// Whether there are no other rows.
    pub all: bool,
}

impl<'a> Shortlist<'a> {
    /// Keeps `room` rows. `asked` finds the words of rows given by words.
    pub fn new(room: usize, asked: Option<&'a WordFinder>, place: &'a Placing<'a>) -> Self {
        Shortlist {
            place,
            room,
            asked,
            known: None,
            tally: WordTally::default(),
            groups: HashMap::new(),
            kept: 0,
            bytes: 0,
            full: BYTES,
            by_likeness: false,
            totals: None,
            placed: 0,
            overflown: false,
        }
    }

    /// Prepares a further pass over the same rows, with known weights of the words.
    pub fn again(mut self, known: Option<WordTally>) -> Self {
        self.known = known;
        self
    }

    /// Also keeps the most similar rows, and computes each row's share by softmax over all scores.
    pub fn with_shares(mut self) -> Self {
        (self.by_likeness, self.totals) = (true, Some(Vec::new()));
        self
    }

    /// Offers a row.
    pub fn offer(&mut self, row: Row, found: FoundLikeness) {
        let (likeness, key) = match found {
            FoundLikeness::Cosine(cosine) => (cosine, None),
            FoundLikeness::Words { held, apart } => {
                if let Some(asked) = self.asked {
                    self.tally.add(asked, &held);
                }
                match &self.known {
                    Some(known) => (Some(known.share(&held)), None),
                    None => (Some(if held.iter().any(|bits| *bits > 0) { SOME } else { 0.0 }), Some((held, apart))),
                }
            }
        };
        let Some(ranked) = (self.place)(row, likeness) else { return };
        self.placed += 1;
        if let Some(totals) = &mut self.totals {
            totals.push(ranked.score.total);
        }
        if self.overflown {
            return;
        }
        let crowd = self.crowd();
        let group = self.groups.entry(key).or_default();
        if !self.by_likeness && group.floor.is_some_and(|floor| ranked.score.total < floor - rank::TIE) {
            return;
        }
        self.bytes += text_bytes(&ranked.row);
        group.rows.push(ranked);
        self.kept += 1;
        if group.rows.len() > crowd {
            self.kept -= group.prune(self.room, self.by_likeness);
        }
        if self.kept > HELD.saturating_add(crowd) || self.bytes > self.full {
            self.make_room();
        }
    }

    /// Rows of a group after which unneeded ones are dropped.
    fn crowd(&self) -> usize {
        let needed = if self.by_likeness { self.room.saturating_mul(2) } else { self.room };
        needed.saturating_add(self.room.saturating_mul(3).clamp(48, SLACK))
    }

    /// Drops unneeded rows; if that leaves too many, gives up until the words' weights are known.
    fn make_room(&mut self) {
        for group in self.groups.values_mut() {
            self.kept -= group.prune(self.room, self.by_likeness);
        }
        self.bytes = self.groups.values().flat_map(|group| &group.rows).map(|ranked| text_bytes(&ranked.row)).sum();
        if self.groups.len() > 1 && (self.kept > HELD / 2 || self.bytes > BYTES / 2) {
            self.overflown = true;
            self.groups.clear();
            (self.kept, self.bytes) = (0, 0);
        }
        // The wanted rows alone may exceed the limit.
        self.full = BYTES.max(self.bytes + BYTES / 2);
    }

    /// The first rows; or another pass is needed because there were too many sets of words.
    pub fn close(self) -> ShortlistEnd {
        if self.overflown {
            return ShortlistEnd::Again(self.tally);
        }
        let (tally, place) = (self.tally, self.place);
        let mut rows = Vec::new();
        for (words, mut group) in self.groups {
            group.prune(self.room, self.by_likeness);
            match words {
                None => rows.append(&mut group.rows),
                Some((held, _)) => {
                    let share = tally.share(&held);
                    rows.extend(group.rows.into_iter().filter_map(|ranked| place(ranked.row, Some(share))));
                }
            }
        }
        let mut first = KeptRows { rows, floor: None };
        first.prune(self.room, self.by_likeness);
        let mut rows = first.rows;
        if let Some(mut totals) = self.totals {
            totals.sort_by(|a, b| b.total_cmp(a));
            rank::softmax_of(&mut rows, &totals);
        }
        let alike = rows.split_off(rows.len().min(self.room));
        let all = self.placed <= rows.len();
        ShortlistEnd::Rows(FirstRows { rows, alike, all })
    }
}

/// Bytes of the texts in a row, those within lists and objects left out.
fn text_bytes(row: &Row) -> usize {
    row.values.iter().filter_map(Value::as_str).map(str::len).sum()
}

/// The first rows of a group, unsorted between two prunings.
#[derive(Default)]
struct KeptRows {
    rows: Vec<RankedRow>,
    /// Score below which a row is out.
    floor: Option<f64>,
}

impl KeptRows {
    /// Keeps the first `room` rows, and as many of the most similar others; returns how many were dropped.
    fn prune(&mut self, room: usize, by_likeness: bool) -> usize {
        let before = self.rows.len();
        rank::sort(&mut self.rows);
        if before > room {
            let mut others = self.rows.split_off(room);
            if by_likeness {
                others.retain(|row| row.likeness.is_some());
                others.sort_by(|a, b| b.likeness.unwrap_or(0.0).total_cmp(&a.likeness.unwrap_or(0.0)));
                others.truncate(room);
                rank::sort(&mut others);
                self.rows.append(&mut others);
            }
        }
        self.floor = self.rows.get(room.wrapping_sub(1)).map(|last| last.score.total);
        before - self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::memory::Entity;
    use crate::recall::among::{self, RankingInput};
    use crate::recall::features::words;

    fn row(id: usize, day: u8, count: u8) -> Row {
        let mut row = Row::empty(Entity::Episode);
        row.set("id", json!(format!("{id:04}")));
        row.set("started_at", json!(format!("2026-01-{:02}T00:00:00.000000Z", day % 28 + 1)));
        row.set("canvas_action_count", json!(count));
        row
    }

    fn ids(rows: &[RankedRow]) -> Vec<(String, f64)> {
        rows.iter().map(|r| (r.row.id().to_owned(), r.score.total)).collect()
    }

    fn listed(
        texts: &[(String, u8, u8)],
        room: usize,
        asked: &BTreeSet<String>,
        place: &Placing<'_>,
        long: usize,
    ) -> Vec<(String, f64)> {
        let finder = WordFinder::new(asked);
        let mut known = None;
        loop {
            let mut list = Shortlist::new(room, Some(&finder), place).again(known);
            for (id, (text, day, count)) in texts.iter().enumerate() {
                let found = FoundLikeness::Words { held: finder.held(text), apart: 0 };
                let mut row = row(id, *day, *count);
                row.set("detail", json!("x".repeat(long)));
                list.offer(row, found);
                let wanted = (room + 1) * (long + 1_000);
                assert!(list.bytes <= BYTES.max(wanted + BYTES / 2), "{} bytes are held", list.bytes);
            }
            match list.close() {
                ShortlistEnd::Rows(found) => return ids(&found.rows),
                ShortlistEnd::Again(tally) => known = Some(tally),
            }
        }
    }

    /// Ranks all rows at once, for comparison.
    fn ranked(texts: &[(String, u8, u8)], asked: &BTreeSet<String>, way: &RankingInput<'_, Row>) -> Vec<(String, f64)> {
        let told: Vec<BTreeSet<String>> = texts.iter().map(|(text, ..)| words(text)).collect();
        let shares = super::super::keyword::shares_told(asked, &told.iter().collect::<Vec<_>>());
        let rows = texts.iter().enumerate().map(|(id, (_, day, count))| row(id, *day, *count));
        ids(&among::ranked(rows.zip(shares.into_iter().map(Some)), way))
    }

    proptest! {
        #[test]
        fn the_first_rows_are_those_of_a_full_sort(
            texts in prop::collection::vec(("[abc ]{0,6}", 0u8..6, 0u8..2), 1..90), room in 1usize..9
        ) {
            let asked = words("a b c");
            let boosted = RankingInput::Boosted { asked: true, name: "keywords", at: "2026-02-04T10:00:00.000000Z" };
            for way in [&boosted, &RankingInput::Likeness { name: "keywords" }] {
                let place = |row: Row, likeness: Option<f64>| among::placed(row, likeness, way);
                let mut all = ranked(&texts, &asked, way);
                all.truncate(room);
                prop_assert_eq!(listed(&texts, room, &asked, &place, 0), all);
            }
        }
    }

    #[test]
    fn rows_of_very_many_sets_of_words_go_by_twice() {
        let letters: Vec<String> = (0..16).map(|n| format!("w{n}")).collect();
        let asked: BTreeSet<String> = letters.iter().cloned().collect();
        let texts: Vec<(String, u8, u8)> = (0..20_000_usize)
            .map(|n| {
                let held = letters.iter().enumerate().filter(|(bit, _)| n >> bit & 1 == 1);
                let text = held.map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(" ");
                (text, (n % 28) as u8, 0)
            })
            .collect();
        let way = RankingInput::Boosted { asked: true, name: "keywords", at: "2026-02-04T10:00:00.000000Z" };
        let place = |row: Row, likeness: Option<f64>| among::placed(row, likeness, &way);
        let mut all = ranked(&texts, &asked, &way);
        all.truncate(5);
        assert_eq!(listed(&texts, 5, &asked, &place, 0), all);
    }

    #[test]
    fn long_rows_go_by_twice_rather_than_being_held() {
        let asked = words("a b c d");
        let text = |n: usize| ["a", "b", "c", "d", "a b", "c d", "a c d"][n % 7].to_owned();
        let texts: Vec<(String, u8, u8)> = (0..300).map(|n| (text(n), (n % 28) as u8, 0)).collect();
        let way = RankingInput::Boosted { asked: true, name: "keywords", at: "2026-02-04T10:00:00.000000Z" };
        let place = |row: Row, likeness: Option<f64>| among::placed(row, likeness, &way);
        for room in [3, 100] {
            let mut all = ranked(&texts, &asked, &way);
            all.truncate(room);
            assert_eq!(listed(&texts, room, &asked, &place, 1 << 20), all, "{room}");
        }
    }
}
