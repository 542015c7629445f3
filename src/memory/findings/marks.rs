//! Episodes as findings look at them, in as few bytes as will do: there may be millions.

use std::collections::HashMap;

use crate::memory::{Row, time};

/// No moment.
pub(super) const NEVER: i64 = i64::MIN;

/// No episode.
const NOWHERE: u32 = u32::MAX;

/// Kinds of hashes that an episode names, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedKind {
    Executions,
    Canvas,
    Feedback,
}

/// An episode.
#[derive(Debug)]
pub(super) struct EpisodeMark {
    /// Stands for its id.
    pub key: u64,
    /// Stands for its session; 0 when it has none.
    pub session: u64,
    /// Microseconds since 1970; [`NEVER`] where none is known.
    pub started: i64,
    /// The same.
    pub ended: i64,
    /// Stored score of its feedback; not a number where none is stored.
    pub score: f64,
    /// End positions of the episode's executions, canvas events and feedback among all hashes, each after the one
    /// before.
    ends: [u32; 3],
    /// Numbers of the names of its agent and its user; 0 when it has none.
    pub agent: u32,
    pub user: u32,
    /// Stored number of its canvas events.
    pub count: i32,
    /// Flags that apply: bits of [`MarkFlag`].
    flags: u8,
}

/// A flag of an episode.
#[derive(Debug, Clone, Copy)]
pub(super) enum MarkFlag {
    /// The episode has a readable list of canvas events.
    HasList = 1,
    /// The episode names a row more than once.
    Repeats = 2,
    /// The list of canvas events can be filled.
    Open = 4,
    /// The list of feedback can be filled.
    OpenFeedback = 8,
    /// There is a place for the number of its canvas events, and their list can be read.
    Counted = 16,
    /// The same of the score of its feedback.
    Scored = 32,
    /// Canvas events point back to it.
    CanvasBack = 64,
}

impl EpisodeMark {
    /// Builds the mark from an episode's row; of `flags`, those paired with true are set.
    pub fn new(row: &Row, key: u64, session: u64, flags: &[(MarkFlag, bool)]) -> Self {
        let set = |flags: u8, (flag, holds): &(MarkFlag, bool)| if *holds { flags | *flag as u8 } else { flags };
        EpisodeMark {
            key,
            session,
            started: moment(row, "started_at"),
            ended: moment(row, "ended_at"),
            score: row.number("feedback_score").unwrap_or(f64::NAN),
            ends: [0; 3],
            agent: 0,
            user: 0,
            // No number of rows is that of one that is out of range.
            count: i32::try_from(row.get("canvas_action_count").as_i64().unwrap_or_default()).unwrap_or(i32::MIN),
            flags: flags.iter().fold(0, set),
        }
    }

    /// Whether something is so of it.
    pub fn is(&self, flag: MarkFlag) -> bool {
        self.flags & flag as u8 != 0
    }
}

/// Episodes by their place, and what they name. First they are taken; after [`EpisodeMarks::index`] they are found by id.
#[derive(Debug, Default)]
pub(super) struct EpisodeMarks {
    marks: Vec<EpisodeMark>,
    ids: IdList,
    /// Executions, canvas events and feedback that episodes name.
    hashes: Vec<u64>,
    /// Numbers of agents and users.
    names: HashMap<String, u32>,
    index: PlaceIndex,
    /// Hashes that more than one episode may name, in order.
    shared: Vec<u64>,
    /// A bit for each hash: what it stands for was met, and names the episode too.
    met: BitList,
}

impl EpisodeMarks {
    /// Takes an episode; `named` are its executions, canvas events and feedback, each in order and once.
    pub fn add(&mut self, id: &str, mut mark: EpisodeMark, named: [Vec<u64>; 3]) {
        mark.ends = named.map(|hashes| {
            self.hashes.extend(hashes);
            self.hashes.len() as u32
        });
        self.ids.push(id);
        self.marks.push(mark);
    }

    /// Number of a name, from 1.
    pub fn number(&mut self, name: &str) -> u32 {
        let next = self.names.len() as u32 + 1;
        match self.names.get(name) {
            Some(number) => *number,
            None => *self.names.entry(name.to_owned()).or_insert(next),
        }
    }

    /// All episodes have been taken. Of an id that comes twice the last one is found.
    pub fn index(&mut self) {
        self.index = PlaceIndex::new(&self.marks);
        self.shared = shared(&self.hashes);
        self.met = BitList::new(self.hashes.len());
    }

    pub fn len(&self) -> usize {
        self.marks.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &EpisodeMark)> {
        self.marks.iter().enumerate()
    }

    pub fn get(&self, place: usize) -> Option<&EpisodeMark> {
        self.marks.get(place)
    }

    /// The id of an episode.
    pub fn id(&self, place: usize) -> Option<&str> {
        self.ids.get(place)
    }

    /// The place of the episode that a hash stands for.
    pub fn place(&self, key: u64) -> Option<usize> {
        self.index.find(&self.marks, key)
    }

    /// Returns the range, among all hashes, of the rows of one kind that an episode names.
    fn range(&self, place: usize, kind: NamedKind) -> std::ops::Range<usize> {
        let end = |place: usize, kind: usize| self.marks.get(place).map_or(0, |mark| mark.ends[kind] as usize);
        let start = match (kind, place.checked_sub(1)) {
            (NamedKind::Canvas | NamedKind::Feedback, _) => end(place, kind as usize - 1),
            (NamedKind::Executions, Some(before)) => end(before, NamedKind::Feedback as usize),
            (NamedKind::Executions, None) => 0,
        };
        start..end(place, kind as usize)
    }

    /// Returns the hashes of the rows of one kind that an episode names, in order.
    pub fn named(&self, place: usize, kind: NamedKind) -> &[u64] {
        self.hashes.get(self.range(place, kind)).unwrap_or_default()
    }

    /// The same, each with whether it was met.
    pub fn named_met(&self, place: usize, kind: NamedKind) -> impl Iterator<Item = (u64, bool)> {
        let range = self.range(place, kind);
        self.named(place, kind).iter().copied().zip(range.map(|at| self.met.get(at)))
    }

    /// Finds the place of a hash that this episode names and no other one does.
    pub fn only_named(&self, place: usize, kind: NamedKind, hash: u64) -> Option<HashPlace> {
        let at = self.named(place, kind).binary_search(&hash).ok()?;
        let alone = self.shared.binary_search(&hash).is_err();
        alone.then(|| HashPlace(self.range(place, kind).start + at))
    }

    /// Marks a hash as met; whether it was not.
    pub fn meet(&mut self, hash: HashPlace) -> bool {
        self.met.set(hash.0)
    }
}

/// Place of a hash among all hashes.
#[derive(Debug, Clone, Copy)]
pub(super) struct HashPlace(usize);

/// Texts one after the other: each takes its letters and four bytes.
#[derive(Debug, Default)]
struct IdList {
    text: String,
    ends: Vec<u32>,
}

impl IdList {
    fn push(&mut self, id: &str) {
        // Ids of 4 GB are not told, only counted.
        if u32::try_from(self.text.len() + id.len()).is_ok() {
            self.text.push_str(id);
        }
        self.ends.push(self.text.len() as u32);
    }

    fn get(&self, place: usize) -> Option<&str> {
        let end = *self.ends.get(place)? as usize;
        let start = place.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |start| *start as usize);
        self.text.get(start..end)
    }
}

/// Finds episodes by what stands for their id: a table of places, looked through from where the hash points to.
#[derive(Debug, Default)]
struct PlaceIndex(Vec<u32>);

impl PlaceIndex {
    fn new(marks: &[EpisodeMark]) -> Self {
        let mut index = PlaceIndex(vec![NOWHERE; (marks.len() * 3 / 2 + 1).next_power_of_two()]);
        for (place, mark) in marks.iter().enumerate() {
            let at = index.slot(marks, mark.key);
            if let Some(slot) = index.0.get_mut(at) {
                *slot = place as u32;
            }
        }
        index
    }

    /// The slot of a hash, or the free one where it belongs. There are always free ones.
    fn slot(&self, marks: &[EpisodeMark], key: u64) -> usize {
        let mask = self.0.len() - 1;
        // The lowest bit of each hash is the same.
        let mut at = (key >> 1) as usize & mask;
        while self.0.get(at).and_then(|place| marks.get(*place as usize)).is_some_and(|mark| mark.key != key) {
            at = (at + 1) & mask;
        }
        at
    }

    fn find(&self, marks: &[EpisodeMark], key: u64) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let place = *self.0.get(self.slot(marks, key))?;
        (place != NOWHERE).then_some(place as usize)
    }
}

/// One bit each.
#[derive(Debug, Default)]
struct BitList(Vec<u64>);

impl BitList {
    fn new(bits: usize) -> Self {
        BitList(vec![0; bits.div_ceil(64)])
    }

    fn get(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
    }

    /// Sets a bit; whether it was not set.
    fn set(&mut self, at: usize) -> bool {
        let was = self.get(at);
        if let Some(bits) = self.0.get_mut(at / 64) {
            *bits |= 1 << (at % 64);
        }
        !was
    }
}

/// Hashes that come more than once, in order, and a few others: each sets a bit of far more than there are hashes, and
/// those that find it set are told.
fn shared(hashes: &[u64]) -> Vec<u64> {
    let bits = (hashes.len() * 16).next_power_of_two();
    let mut seen = BitList::new(bits);
    let mut shared: Vec<u64> =
        hashes.iter().copied().filter(|hash| !seen.set((hash >> 1) as usize & (bits - 1))).collect();
    shared.sort_unstable();
    shared.dedup();
    shared
}

/// A moment of a row, in microseconds since 1970.
pub(super) fn moment(row: &Row, column: &str) -> i64 {
    row.text(column).and_then(time::epoch_micros).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Entity;
    use crate::memory::findings::short;

    #[test]
    fn episodes_are_found_by_id_and_of_one_that_comes_twice_the_last() {
        let mut marks = EpisodeMarks::default();
        assert_eq!(marks.place(short("a")), None);
        let row = Row::empty(Entity::Episode);
        let ids: Vec<String> = (0..500).map(|n| format!("e{}", n % 400)).collect();
        for (place, id) in ids.iter().enumerate() {
            let own = short(&format!("c{place}"));
            let named = [Vec::new(), vec![own], vec![short("everybody's")]];
            marks.add(id, EpisodeMark::new(&row, short(id), 0, &[]), named);
        }
        marks.index();
        assert_eq!((marks.place(short("e7")), marks.place(short("e399"))), (Some(407), Some(399)));
        assert_eq!((marks.id(407), marks.place(short("e400"))), (Some("e7"), None));
        assert!(marks.only_named(3, NamedKind::Feedback, short("everybody's")).is_none(), "others name it too");
        assert!(marks.only_named(3, NamedKind::Canvas, short("c4")).is_none());
        let own = (0..500).filter_map(|n| marks.only_named(n, NamedKind::Canvas, short(&format!("c{n}"))));
        let own: Vec<HashPlace> = own.collect();
        assert!(own.len() > 400, "{}", own.len());
        let [first, second] = own[..2] else { unreachable!() };
        assert!(marks.meet(first) && !marks.meet(first) && marks.meet(second));
    }
}
