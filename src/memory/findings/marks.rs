//! Compact records of episodes for findings: there may be millions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

use crate::memory::digest::digest;
use crate::memory::packed::column::{BitList, NumberColumn, PagedColumn};
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::packed::records::RecordSorter;
use crate::memory::packed::space::MakeSpace;
use crate::memory::session_links::user_of;
use crate::memory::{Row, time};

/// Marks a missing time.
pub(super) const NEVER: i64 = i64::MIN;

/// Bytes of episodes in memory: about 150,000 of them.
const HELD: usize = 8 << 20;

/// Most bytes of the in-memory index of episodes by id: a million of them.
const INDEXED: usize = 16 << 20;

/// Bytes of links of one kind in memory.
pub(super) const LINKED: usize = 4 << 20;

/// Kinds of rows that an episode names, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedKind {
    Executions,
    Canvas,
    Feedback,
}

impl NamedKind {
    /// Key of a row of this kind among the named rows.
    fn of(self, hash: u64) -> u64 {
        (self as u64) << CUT_BITS | hash
    }
}

/// Bits kept of a named row's key: it is only compared within an episode, or with the few rows that no episode's link
/// matched.
const CUT_BITS: u32 = 46;

/// Shortens a key to these bits.
pub(super) fn cut(key: u64) -> u64 {
    key >> (u64::BITS - CUT_BITS)
}

/// An episode as it is added.
#[derive(Debug)]
pub(super) struct EpisodeMark {
    /// Digest of its session; 0 if it has none.
    pub session: u64,
    /// Stands for its user; 0 when it has none.
    user: u64,
    /// Microseconds since 1970; [`NEVER`] where none is known.
    started: i64,
    /// End, likewise.
    ended: i64,
    /// Stored score of its feedback; NaN if none is stored.
    score: f64,
    /// Digest of its parent's id; 0 if it has none.
    pub parent: u64,
    /// Number of its agent; 0 if it has none.
    pub agent: u32,
    /// Stored number of its canvas events.
    count: i32,
    /// Set flags: bits of [`MarkFlag`].
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
    /// The list of feedback can be filled, or what it lacks be added.
    OpenFeedback = 8,
    /// It has a column for the number of its canvas events, and their list is readable.
    Counted = 16,
    /// The same for the score of its feedback.
    Scored = 32,
    /// Canvas events have back-links to it.
    CanvasBack = 64,
    /// One of its lists cannot be read completely, or it names rows elsewhere too: no backfill fixes that.
    Beyond = 128,
}

impl EpisodeMark {
    /// Builds the mark from an episode's row; sets the `flags` paired with true.
    pub fn new(row: &Row, session: u64, flags: &[(MarkFlag, bool)]) -> Self {
        let set = |flags: u8, (flag, holds): &(MarkFlag, bool)| if *holds { flags | *flag as u8 } else { flags };
        EpisodeMark {
            session,
            user: user_of(row),
            started: moment(row, "started_at"),
            ended: moment(row, "ended_at"),
            score: row.number("feedback_score").unwrap_or(f64::NAN),
            parent: row.text("parent_id").filter(|id| !id.is_empty()).map_or(0, digest),
            agent: 0,
            // An out-of-range count equals no number of rows.
            count: i32::try_from(row.get("canvas_action_count").as_i64().unwrap_or_default()).unwrap_or(i32::MIN),
            flags: flags.iter().fold(0, set),
        }
    }
}

/// Episodes by index, with the rows they name. After adding all, [`EpisodeMarks::index`] makes them searchable by id.
#[derive(Debug)]
pub(super) struct EpisodeMarks {
    pages: PageStore,
    ids: IdList,
    flags: PagedColumn<u8>,
    sessions: PagedColumn<u64>,
    users: PagedColumn<u64>,
    parents: PagedColumn<u64>,
    spans: SpanList,
    agents: NumberColumn,
    /// Stored numbers of canvas events that differ from the list's, by index.
    counts: Vec<(u32, i32)>,
    /// Stored scores of feedback; NaN if none is stored, or there is no column for one.
    scores: PagedColumn<f64>,
    /// End position of each episode's rows in `named`.
    ends: PagedColumn<u32>,
    /// Executions, canvas events and feedback that episodes name: sorted and without repeats per episode.
    named: PagedColumn<[u8; 6]>,
    /// Numbers of agents.
    names: HashMap<u64, u32>,
    /// Digests of the ids, with the indexes.
    keys: RecordSorter<2>,
    index: IdTable<2>,
    /// All named rows.
    all_named: RecordSorter<1>,
    /// Rows named by several episodes, sorted.
    shared: Vec<u64>,
    /// One bit per named row: whether it was found, and names the episode too.
    met: BitList,
    /// Scores of found feedback, by the index of its episode.
    met_scores: RecordSorter<3>,
    /// Their sum and number, by index.
    sums: IdTable<3>,
}

impl EpisodeMarks {
    /// Creates an empty collection. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        EpisodeMarks::within(HELD, space)
    }

    /// As [`EpisodeMarks::new`], with a memory limit.
    pub fn within(bytes: usize, space: MakeSpace) -> Self {
        let pages = PageStore::new(bytes, space);
        EpisodeMarks {
            ids: IdList::paged(&pages),
            flags: PagedColumn::new(&pages),
            sessions: PagedColumn::new(&pages),
            users: PagedColumn::new(&pages),
            parents: PagedColumn::new(&pages),
            spans: SpanList::new(&pages),
            agents: NumberColumn::default(),
            counts: Vec::new(),
            scores: PagedColumn::new(&pages),
            ends: PagedColumn::new(&pages),
            named: PagedColumn::new(&pages),
            names: HashMap::new(),
            keys: RecordSorter::new(space).within(INDEXED),
            index: IdTable::default(),
            all_named: RecordSorter::new(space).within(LINKED),
            shared: Vec::new(),
            met: BitList::default(),
            met_scores: RecordSorter::new(space).within(LINKED),
            sums: IdTable::default(),
            pages,
        }
    }

    /// Adds an episode with the rows it names.
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
        self.scores.push(if applies(MarkFlag::Scored) { mark.score } else { f64::NAN });
        for named in named {
            let [bytes @ .., _, _] = named.to_le_bytes();
            self.named.push(bytes);
            self.all_named.add([named]);
        }
        self.ends.push(self.named.len() as u32);
        self.ids.push(id);
        self.keys.add([digest(id), u64::from(place)]);
        self.flags.push(mark.flags);
        self.sessions.push(mark.session);
        self.users.push(mark.user);
        self.parents.push(mark.parent);
        self.spans.push(mark.started, mark.ended);
        self.agents.push(mark.agent);
    }

    /// Number of a name, from 1.
    pub fn number(&mut self, name: &str) -> u32 {
        let next = self.names.len() as u32 + 1;
        *self.names.entry(digest(name)).or_insert(next)
    }

    /// Finishes adding episodes. If an id is repeated, the last one is found.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written.
    pub fn index(&mut self) -> io::Result<()> {
        self.names = HashMap::new();
        self.index = IdTable::of(self.keys.take(), |first, next| *first = *next)?;
        self.shared = shared(self.all_named.take())?;
        self.met = BitList::new(self.named.len());
        self.check()
    }

    /// Finishes adding the rows that depend on episodes.
    ///
    /// # Errors
    /// As [`EpisodeMarks::index`].
    pub fn sum_up(&mut self) -> io::Result<()> {
        self.sums = IdTable::of(self.met_scores.take(), |[_, sum, n], [_, score, more]| {
            *sum = (f64::from_bits(*sum) + f64::from_bits(*score)).to_bits();
            *n += more;
        })?;
        Ok(())
    }

    /// Checks whether everything could be written and read.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.pages.check()?;
        self.index.check()?;
        self.sums.check()
    }

    /// Frees the names of agents, which are no longer needed.
    pub fn forget_agents(&mut self) {
        self.agents = NumberColumn::default();
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The id of an episode.
    pub fn id(&self, place: usize) -> Option<Cow<'_, str>> {
        self.ids.get(place)
    }

    /// Digest of an episode's id.
    pub fn key(&self, place: usize) -> u64 {
        self.ids.key(place)
    }

    /// The index of the episode with a digest.
    pub fn place(&self, key: u64) -> Option<usize> {
        self.index.find(key).map(|[_, place]| place as usize)
    }

    /// Digest of an episode's parent; `None` if it names none.
    pub fn parent(&self, place: usize) -> Option<u64> {
        self.parents.get(place).filter(|parent| *parent != 0)
    }

    /// Whether an episode has a flag.
    pub fn is(&self, place: usize, flag: MarkFlag) -> bool {
        self.flags.get(place).is_some_and(|flags| flags & flag as u8 != 0)
    }

    /// Digest of an episode's session; 0 if it has none.
    pub fn session(&self, place: usize) -> u64 {
        self.sessions.get(place).unwrap_or_default()
    }

    /// Returns what stands for an episode's user; 0 when it has none.
    pub fn user(&self, place: usize) -> u64 {
        self.users.get(place).unwrap_or_default()
    }

    /// Start of an episode in microseconds since 1970; [`NEVER`] where none is known.
    pub fn started(&self, place: usize) -> i64 {
        self.spans.started(place)
    }

    /// End of an episode, likewise.
    pub fn ended(&self, place: usize) -> i64 {
        self.spans.ended(place)
    }

    /// Number of an agent's name; 0 if the episode has none.
    pub fn agent(&self, place: usize) -> u32 {
        self.agents.get(place).unwrap_or_default()
    }

    /// Stored number of an episode's canvas events.
    pub fn count(&self, place: usize) -> i32 {
        match self.counts.binary_search_by_key(&place, |(of, _)| *of as usize) {
            Ok(at) => self.counts.get(at).map_or(0, |(_, count)| *count),
            Err(_) => self.range(place, NamedKind::Canvas).len() as i32,
        }
    }

    /// Stored score of an episode's feedback, if there is one.
    pub fn stored_score(&self, place: usize) -> Option<f64> {
        self.scores.get(place).filter(|score| !score.is_nan())
    }

    /// Sum and number of the scores of an episode's found feedback, after [`EpisodeMarks::sum_up`].
    pub fn met_scores(&self, place: usize) -> (f64, u32) {
        self.sums.find(place as u64).map_or((0.0, 0), |[_, sum, n]| (f64::from_bits(sum), n as u32))
    }

    /// Adds a score of feedback that an episode names.
    pub fn add_score(&mut self, place: usize, score: f64) {
        self.met_scores.add([place as u64, score.to_bits(), 1]);
    }

    /// Range in `named` of an episode's rows of one kind.
    fn range(&self, place: usize, kind: NamedKind) -> Range<usize> {
        let end = |place: usize| self.ends.get(place).map_or(0, |end| end as usize);
        let all = place.checked_sub(1).map_or(0, end)..end(place);
        let start = self.first_from(all.clone(), kind.of(0));
        start..self.first_from(start..all.end, (kind as u64 + 1) << CUT_BITS)
    }

    /// First position in a sorted range with a value not less than this.
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

    /// The rows of one kind that an episode names, sorted and shortened, each with whether it was found.
    pub fn named(&self, place: usize, kind: NamedKind) -> impl Iterator<Item = (u64, bool)> {
        self.range(place, kind).map(|at| (self.named_at(at) & ((1 << CUT_BITS) - 1), self.met.get(at)))
    }

    /// Position in `named` of a row that only this episode names.
    pub fn only_named(&self, place: usize, kind: NamedKind, key: u64) -> Option<NamedPlace> {
        let at = self.find_named(place, kind, key)?;
        (!self.is_shared(kind, cut(key))).then_some(NamedPlace(at))
    }

    /// Whether several episodes name a row, given by its shortened key.
    pub fn is_shared(&self, kind: NamedKind, named: u64) -> bool {
        self.shared.binary_search(&kind.of(named)).is_ok()
    }

    /// Marks a named row as found; returns whether it was not before.
    pub fn meet(&mut self, named: NamedPlace) -> bool {
        self.met.set(named.0)
    }
}

/// The rows named more than once, sorted.
fn shared(all_named: RecordSorter<1>) -> io::Result<Vec<u64>> {
    let (sorted, mut shared, mut last) = (all_named.sorted()?, Vec::new(), None);
    let mut stream = sorted.stream()?;
    while let Some([named]) = stream.next()? {
        if last.replace(named) == Some(named) && shared.last() != Some(&named) {
            shared.push(named);
        }
    }
    Ok(shared)
}

/// Position of a row in `named`.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedPlace(usize);

/// Starts and ends; most ends are within about an hour and take four bytes.
#[derive(Debug)]
struct SpanList {
    started: PagedColumn<i64>,
    /// Microseconds from start to end, or [`SpanList::FAR`].
    lasted: PagedColumn<u32>,
    /// Other ends, by index; [`NEVER`] is left out.
    far: Vec<(u32, i64)>,
}

impl SpanList {
    const FAR: u32 = u32::MAX;

    fn new(pages: &PageStore) -> Self {
        SpanList { started: PagedColumn::new(pages), lasted: PagedColumn::new(pages), far: Vec::new() }
    }

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

/// A time of a row, in microseconds since 1970.
pub(super) fn moment(row: &Row, column: &str) -> i64 {
    row.text(column).and_then(time::epoch_micros).unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::row;
    use super::*;
    use crate::memory::Entity;
    use crate::memory::packed::space::tests::space;

    #[test]
    fn episodes_are_found_by_id_and_of_one_that_comes_twice_the_last() {
        let mut marks = EpisodeMarks::new(space);
        assert_eq!(marks.place(digest("a")), None);
        let row = Row::empty(Entity::Episode);
        let ids: Vec<String> = (0..500).map(|n| format!("e{}", n % 400)).collect();
        for (place, id) in ids.iter().enumerate() {
            let own = digest(&format!("c{place}"));
            let named = [(NamedKind::Canvas, own), (NamedKind::Feedback, digest("everybody's"))];
            marks.add(id, &EpisodeMark::new(&row, 0, &[]), named.into_iter());
        }
        marks.index().unwrap();
        assert_eq!((marks.place(digest("e7")), marks.place(digest("e399"))), (Some(407), Some(399)));
        assert_eq!((marks.id(407).as_deref(), marks.place(digest("e400"))), (Some("e7"), None));
        assert!(marks.only_named(3, NamedKind::Feedback, digest("everybody's")).is_none(), "others name it too");
        assert!(marks.names(3, NamedKind::Feedback, digest("everybody's")));
        assert!(marks.only_named(3, NamedKind::Canvas, digest("c4")).is_none());
        let own = (0..500).filter_map(|n| marks.only_named(n, NamedKind::Canvas, digest(&format!("c{n}"))));
        let own: Vec<NamedPlace> = own.collect();
        assert!(own.len() > 400, "{}", own.len());
        let [first, second] = own[..2] else { unreachable!() };
        assert!(marks.meet(first) && !marks.meet(first) && marks.meet(second));
    }

    #[test]
    fn episodes_in_a_file_are_what_they_were() {
        let mut marks = EpisodeMarks::within(0, space);
        let count = 66_000;
        let at = |n: usize| time::from_epoch(n as i64, time::EpochUnit::Seconds);
        for n in 0..count {
            let values = [("started_at", json!(at(n))), ("ended_at", json!(at(2 * n))), ("feedback_score", json!(n))];
            let mut mark = EpisodeMark::new(&row(Entity::Episode, &values), n as u64, &[(MarkFlag::Scored, true)]);
            mark.parent = digest(&format!("e{}", n + 1));
            let named =
                [(NamedKind::Canvas, digest(&format!("c{n}"))), (NamedKind::Feedback, digest(&format!("f{n}")))];
            marks.add(&format!("e{n}"), &mark, named.into_iter());
        }
        marks.index().unwrap();
        for n in (0..count).step_by(997) {
            let place = marks.place(digest(&format!("e{n}"))).unwrap();
            assert_eq!((place, marks.id(place).as_deref()), (n, Some(format!("e{n}").as_str())));
            assert_eq!((marks.session(place), marks.parent(place)), (n as u64, Some(digest(&format!("e{}", n + 1)))));
            assert_eq!((marks.started(place), marks.ended(place)), (n as i64 * 1_000_000, 2 * n as i64 * 1_000_000));
            assert!(marks.is(place, MarkFlag::Scored) && !marks.is(place, MarkFlag::Open));
            assert_eq!((marks.stored_score(place), marks.count(place)), (Some(n as f64), 1));
            let named = marks.only_named(place, NamedKind::Canvas, digest(&format!("c{n}"))).unwrap();
            assert!(marks.meet(named) && !marks.meet(named));
            marks.add_score(place, 1.0);
            marks.add_score(place, 0.5);
        }
        marks.sum_up().unwrap();
        assert_eq!((marks.met_scores(997), marks.met_scores(998)), ((1.5, 2), (0.0, 0)));
        marks.check().unwrap();
    }

    #[test]
    fn what_is_left_out_of_the_usual_is_kept_beside_it() {
        let mut marks = EpisodeMarks::new(space);
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
            let named = [(NamedKind::Canvas, digest("a")), (NamedKind::Executions, digest("a"))];
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
