//! Episodes as findings look at them, in as few bytes as will do: there may be millions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::short;
use crate::memory::packed::column::{BitList, Column, NumberColumn};
use crate::memory::packed::ids::IdList;
use crate::memory::{Row, time};

/// No moment.
pub(super) const NEVER: i64 = i64::MIN;

/// No episode.
const NOWHERE: u32 = u32::MAX;

/// Kinds of rows that an episode names, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedKind {
    Executions,
    Canvas,
    Feedback,
}

impl NamedKind {
    /// Returns what stands for a row of this kind among those that episodes name.
    fn of(self, hash: u64) -> u64 {
        (self as u64) << CUT_BITS | hash
    }
}

/// Bits that are kept of what stands for an id that an episode names: it is looked for in that episode, or among the few
/// rows that no episode's link met.
const CUT_BITS: u32 = 46;

/// Cuts what stands for an id to the bits that are kept of named ones.
pub(super) fn cut(key: u64) -> u64 {
    key >> (u64::BITS - CUT_BITS)
}

/// An episode as it is taken.
#[derive(Debug)]
pub(super) struct EpisodeMark {
    /// Stands for its session; 0 when it has none.
    pub session: u64,
    /// Microseconds since 1970; [`NEVER`] where none is known.
    started: i64,
    /// The same.
    ended: i64,
    /// Stored score of its feedback; not a number where none is stored.
    score: f64,
    /// Numbers of the names of its agent and its user; 0 when it has none.
    pub agent: u32,
    pub user: u32,
    /// Stored number of its canvas events.
    count: i32,
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
    pub fn new(row: &Row, session: u64, flags: &[(MarkFlag, bool)]) -> Self {
        let set = |flags: u8, (flag, holds): &(MarkFlag, bool)| if *holds { flags | *flag as u8 } else { flags };
        EpisodeMark {
            session,
            started: moment(row, "started_at"),
            ended: moment(row, "ended_at"),
            score: row.number("feedback_score").unwrap_or(f64::NAN),
            agent: 0,
            user: 0,
            // No number of rows is that of one that is out of range.
            count: i32::try_from(row.get("canvas_action_count").as_i64().unwrap_or_default()).unwrap_or(i32::MIN),
            flags: flags.iter().fold(0, set),
        }
    }
}

/// Scores of an episode's feedback: the stored one, and what feedback comes to that names the episode and is named by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct EpisodeScore {
    place: u32,
    /// Number of scores in the sum.
    pub scored: u32,
    pub sum: f64,
    /// Not a number where none is stored.
    pub stored: f64,
}

/// Episodes by their place, and what they name. First they are taken; after [`EpisodeMarks::index`] they are found by id.
#[derive(Debug, Default)]
pub(super) struct EpisodeMarks {
    ids: IdList,
    flags: Column<u8>,
    sessions: Column<u64>,
    spans: SpanList,
    agents: NumberColumn,
    users: NumberColumn,
    /// Stored numbers of canvas events that are not those of the list, by place.
    counts: Vec<(u32, i32)>,
    /// Scores of episodes that have one or name feedback, by place.
    scores: Vec<EpisodeScore>,
    /// End position of what each episode names among all that is named.
    ends: Column<u32>,
    /// Executions, canvas events and feedback that episodes name: of each episode in order and once.
    named: Column<[u8; 6]>,
    /// Numbers of agents and users.
    names: HashMap<u64, u32>,
    index: PlaceIndex,
    /// Rows that more than one episode may name, in order.
    shared: Vec<u64>,
    /// A bit for each that is named: it was met, and names the episode too.
    met: BitList,
}

impl EpisodeMarks {
    /// Takes an episode with the rows that it names.
    pub fn add(&mut self, id: &str, mark: &EpisodeMark, named: impl Iterator<Item = (NamedKind, u64)>) {
        let place = self.len() as u32;
        let mut named: Vec<u64> = named.map(|(kind, key)| kind.of(cut(key))).collect();
        named.sort_unstable();
        named.dedup();
        let names = |kind: NamedKind| named.iter().filter(|named| **named >> CUT_BITS == kind as u64).count();
        let applies = |flag: MarkFlag| mark.flags & flag as u8 != 0;
        if applies(MarkFlag::Counted) && mark.count != names(NamedKind::Canvas) as i32 {
            self.counts.push((place, mark.count));
        }
        if applies(MarkFlag::Scored) && (!mark.score.is_nan() || names(NamedKind::Feedback) > 0) {
            self.scores.push(EpisodeScore { place, scored: 0, sum: 0.0, stored: mark.score });
        }
        for named in named {
            let [bytes @ .., _, _] = named.to_le_bytes();
            self.named.push(bytes);
        }
        self.ends.push(self.named.len() as u32);
        self.ids.push(id);
        self.flags.push(mark.flags);
        self.sessions.push(mark.session);
        self.spans.push(mark.started, mark.ended);
        self.agents.push(mark.agent);
        self.users.push(mark.user);
    }

    /// Number of a name, from 1.
    pub fn number(&mut self, name: &str) -> u32 {
        let next = self.names.len() as u32 + 1;
        *self.names.entry(short(name)).or_insert(next)
    }

    /// All episodes have been taken. Of an id that comes twice the last one is found.
    pub fn index(&mut self) {
        self.names = HashMap::new();
        self.index = PlaceIndex::new(&self.ids);
        self.shared = self.shared();
        self.met = BitList::new(self.named.len());
    }

    /// Nobody asks for agents any more.
    pub fn forget_agents(&mut self) {
        self.agents = NumberColumn::default();
    }

    /// Nobody asks for users any more.
    pub fn forget_users(&mut self) {
        self.users = NumberColumn::default();
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The id of an episode.
    pub fn id(&self, place: usize) -> Option<Cow<'_, str>> {
        self.ids.get(place)
    }

    /// Returns what stands for the id of an episode.
    pub fn key(&self, place: usize) -> u64 {
        self.ids.key(place)
    }

    /// The place of the episode that a hash stands for.
    pub fn place(&self, key: u64) -> Option<usize> {
        self.index.find(&self.ids, key)
    }

    /// Whether something is so of an episode.
    pub fn is(&self, place: usize, flag: MarkFlag) -> bool {
        self.flags.get(place).is_some_and(|flags| flags & flag as u8 != 0)
    }

    /// Returns what stands for an episode's session; 0 when it has none.
    pub fn session(&self, place: usize) -> u64 {
        self.sessions.get(place).unwrap_or_default()
    }

    /// Start of an episode in microseconds since 1970; [`NEVER`] where none is known.
    pub fn started(&self, place: usize) -> i64 {
        self.spans.started(place)
    }

    /// End of an episode, likewise.
    pub fn ended(&self, place: usize) -> i64 {
        self.spans.ended(place)
    }

    /// Number of an agent's name; 0 when the episode has none.
    pub fn agent(&self, place: usize) -> u32 {
        self.agents.get(place).unwrap_or_default()
    }

    /// Number of a user's name; 0 when the episode has none.
    pub fn user(&self, place: usize) -> u32 {
        self.users.get(place).unwrap_or_default()
    }

    /// Stored number of an episode's canvas events.
    pub fn count(&self, place: usize) -> i32 {
        match self.counts.binary_search_by_key(&place, |(of, _)| *of as usize) {
            Ok(at) => self.counts.get(at).map_or(0, |(_, count)| *count),
            Err(_) => self.range(place, NamedKind::Canvas).len() as i32,
        }
    }

    /// Scores of an episode's feedback; none where it neither has a score nor names feedback.
    pub fn score(&self, place: usize) -> Option<&EpisodeScore> {
        let at = self.scores.binary_search_by_key(&place, |score| score.place as usize).ok()?;
        self.scores.get(at)
    }

    /// Adds to the scores of an episode that names feedback.
    pub fn add_score(&mut self, place: usize, score: f64) {
        let at = self.scores.binary_search_by_key(&place, |score| score.place as usize);
        if let Some(of) = at.ok().and_then(|at| self.scores.get_mut(at)) {
            of.sum += score;
            of.scored += 1;
        }
    }

    /// Returns the range, among all that is named, of the rows of one kind that an episode names.
    fn range(&self, place: usize, kind: NamedKind) -> Range<usize> {
        let end = |place: usize| self.ends.get(place).map_or(0, |end| end as usize);
        let all = place.checked_sub(1).map_or(0, end)..end(place);
        let start = self.first_from(all.clone(), kind.of(0));
        start..self.first_from(start..all.end, (kind as u64 + 1) << CUT_BITS)
    }

    /// The first place of a range in order from which on nothing is smaller than this.
    fn first_from(&self, range: Range<usize>, named: u64) -> usize {
        let (mut start, mut end) = (range.start, range.end);
        while start < end {
            let middle = start + (end - start) / 2;
            if self.named_at(middle) < named {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        start
    }

    fn named_at(&self, at: usize) -> u64 {
        let mut named = [0; 8];
        if let (Some(bytes), Some(kept)) = (self.named.get(at), named.first_chunk_mut()) {
            *kept = bytes;
        }
        u64::from_le_bytes(named)
    }

    fn find_named(&self, place: usize, kind: NamedKind, key: u64) -> Option<usize> {
        let named = kind.of(cut(key));
        let range = self.range(place, kind);
        let at = self.first_from(range.clone(), named);
        (at < range.end && self.named_at(at) == named).then_some(at)
    }

    /// Whether an episode names a row.
    pub fn names(&self, place: usize, kind: NamedKind, key: u64) -> bool {
        self.find_named(place, kind, key).is_some()
    }

    /// Hands out the rows of one kind that an episode names, in order and cut, each with whether it was met.
    pub fn named(&self, place: usize, kind: NamedKind) -> impl Iterator<Item = (u64, bool)> {
        self.range(place, kind).map(|at| (self.named_at(at) & ((1 << CUT_BITS) - 1), self.met.get(at)))
    }

    /// Finds the place of a row that this episode names and no other one does.
    pub fn only_named(&self, place: usize, kind: NamedKind, key: u64) -> Option<NamedPlace> {
        let at = self.find_named(place, kind, key)?;
        self.shared.binary_search(&kind.of(cut(key))).is_err().then_some(NamedPlace(at))
    }

    /// Marks a named row as met; whether it was not.
    pub fn meet(&mut self, named: NamedPlace) -> bool {
        self.met.set(named.0)
    }

    /// Returns the rows that are named more than once, in order, and a few others: each sets a bit of far more than there
    /// are, and those that find it set are told. It takes passes, each of which needs a part of the bits.
    fn shared(&self) -> Vec<u64> {
        let bits = (self.named.len() * 16 / PASSES as usize).next_power_of_two();
        let mut shared = Vec::new();
        for pass in 0..PASSES {
            let mut seen = BitList::new(bits);
            let of_pass = (0..self.named.len()).map(|at| self.named_at(at)).filter(|named| named % PASSES == pass);
            shared.extend(of_pass.filter(|named| !seen.set((named / PASSES) as usize & (bits - 1))));
        }
        shared.sort_unstable();
        shared.dedup();
        shared
    }
}

/// Passes in which named rows are compared with one another.
const PASSES: u64 = 8;

/// Place of a row among all that is named.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedPlace(usize);

/// Starts and ends; most ends come within the hour and take four bytes.
#[derive(Debug, Default)]
struct SpanList {
    started: Column<i64>,
    /// Microseconds from start to end, or [`SpanList::FAR`].
    lasted: Column<u32>,
    /// Other ends, by place; [`NEVER`] is left out.
    far: Vec<(u32, i64)>,
}

impl SpanList {
    const FAR: u32 = u32::MAX;

    fn push(&mut self, started: i64, ended: i64) {
        let lasted = ended.checked_sub(started).and_then(|lasted| u32::try_from(lasted).ok());
        let lasted = lasted.filter(|lasted| *lasted != Self::FAR && ended != NEVER).unwrap_or(Self::FAR);
        if lasted == Self::FAR && ended != NEVER {
            self.far.push((self.started.len() as u32, ended));
        }
        self.started.push(started);
        self.lasted.push(lasted);
    }

    fn started(&self, place: usize) -> i64 {
        self.started.get(place).unwrap_or(NEVER)
    }

    fn ended(&self, place: usize) -> i64 {
        if let Some(lasted) = self.lasted.get(place).filter(|lasted| *lasted != Self::FAR) {
            return self.started(place) + i64::from(lasted);
        }
        let at = self.far.binary_search_by_key(&place, |(of, _)| *of as usize);
        at.ok().and_then(|at| self.far.get(at)).map_or(NEVER, |(_, ended)| *ended)
    }
}

/// Finds episodes by what stands for their id: a table of places, looked through from where the hash points to.
#[derive(Debug, Default)]
struct PlaceIndex(Vec<u32>);

impl PlaceIndex {
    fn new(ids: &IdList) -> Self {
        let mut index = PlaceIndex(vec![NOWHERE; ids.len() * 4 / 3 + 1]);
        for place in 0..ids.len() {
            let at = index.slot(ids, ids.key(place));
            if let Some(slot) = index.0.get_mut(at) {
                *slot = place as u32;
            }
        }
        index
    }

    /// The slot of a hash, or the free one where it belongs. There are always free ones.
    fn slot(&self, ids: &IdList, key: u64) -> usize {
        let taken = |at: usize| self.0.get(at).filter(|place| **place != NOWHERE);
        let mut at = ((u128::from(key) * self.0.len() as u128) >> u64::BITS) as usize;
        while taken(at).is_some_and(|place| ids.key(*place as usize) != key) {
            at = if at + 1 == self.0.len() { 0 } else { at + 1 };
        }
        at
    }

    fn find(&self, ids: &IdList, key: u64) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let place = *self.0.get(self.slot(ids, key))?;
        (place != NOWHERE).then_some(place as usize)
    }
}

/// A moment of a row, in microseconds since 1970.
pub(super) fn moment(row: &Row, column: &str) -> i64 {
    row.text(column).and_then(time::epoch_micros).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::row;
    use super::*;
    use crate::memory::Entity;

    #[test]
    fn episodes_are_found_by_id_and_of_one_that_comes_twice_the_last() {
        let mut marks = EpisodeMarks::default();
        assert_eq!(marks.place(short("a")), None);
        let row = Row::empty(Entity::Episode);
        let ids: Vec<String> = (0..500).map(|n| format!("e{}", n % 400)).collect();
        for (place, id) in ids.iter().enumerate() {
            let own = short(&format!("c{place}"));
            let named = [(NamedKind::Canvas, own), (NamedKind::Feedback, short("everybody's"))];
            marks.add(id, &EpisodeMark::new(&row, 0, &[]), named.into_iter());
        }
        marks.index();
        assert_eq!((marks.place(short("e7")), marks.place(short("e399"))), (Some(407), Some(399)));
        assert_eq!((marks.id(407).as_deref(), marks.place(short("e400"))), (Some("e7"), None));
        assert!(marks.only_named(3, NamedKind::Feedback, short("everybody's")).is_none(), "others name it too");
        assert!(marks.names(3, NamedKind::Feedback, short("everybody's")));
        assert!(marks.only_named(3, NamedKind::Canvas, short("c4")).is_none());
        let own = (0..500).filter_map(|n| marks.only_named(n, NamedKind::Canvas, short(&format!("c{n}"))));
        let own: Vec<NamedPlace> = own.collect();
        assert!(own.len() > 400, "{}", own.len());
        let [first, second] = own[..2] else { unreachable!() };
        assert!(marks.meet(first) && !marks.meet(first) && marks.meet(second));
    }

    #[test]
    fn what_is_left_out_of_the_usual_is_kept_beside_it() {
        let mut marks = EpisodeMarks::default();
        let times = [
            ("2026-01-01T00:00:00.000000Z", Some("2026-01-01T00:00:01.000000Z")),
            ("2026-01-01T00:00:00.000000Z", Some("2026-03-01T00:00:00.000000Z")),
            ("2026-01-02T00:00:00.000000Z", Some("2026-01-01T00:00:00.000000Z")),
            ("2026-01-01T00:00:00.000000Z", None),
        ];
        for (n, (started, ended)) in times.iter().enumerate() {
            let row = row(
                Entity::Episode,
                &[("started_at", json!(started)), ("ended_at", json!(ended)), ("canvas_action_count", json!(n))],
            );
            let named = [(NamedKind::Canvas, short("a")), (NamedKind::Executions, short("a"))];
            marks.add(&n.to_string(), &EpisodeMark::new(&row, 0, &[(MarkFlag::Counted, true)]), named.into_iter());
        }
        for (place, (started, ended)) in times.iter().enumerate() {
            let micros = |time: &str| time::epoch_micros(time).unwrap();
            assert_eq!(marks.started(place), micros(started));
            assert_eq!(marks.ended(place), ended.map_or(NEVER, micros));
            assert_eq!(marks.count(place), place as i32);
            assert_eq!(marks.named(place, NamedKind::Feedback).count(), 0);
        }
    }
}
