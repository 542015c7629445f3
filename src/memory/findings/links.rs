//! Findings about episodes: links to canvas events and feedback, stored numbers, chains, bursts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use super::marks::{EpisodeMark, EpisodeMarks, LINKED, MarkFlag, NEVER, NamedKind, cut, moment};
use super::{FindingTally, bank};
use crate::memory::chain::{self, ChainMember, LinkFault};
use crate::memory::digest::digest;
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::records::{Record, RecordSorter, RecordStream, SortedRecords, ordered, unordered};
use crate::memory::packed::space::MakeSpace;
use crate::memory::session_links::{CanvasEventTime, EpisodeSpan, SessionSpans};
use crate::memory::{Row, time};

/// Rows that an episode names, in its lists and elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedLinks<'e> {
    /// Canvas events.
    pub canvas: Vec<Cow<'e, str>>,
    /// Feedback.
    pub feedback: Vec<Cow<'e, str>>,
    /// Rows of canvas events point back to their episode.
    pub canvas_back: bool,
    /// The number of its canvas events is stored.
    pub counted: bool,
    /// The score of its feedback is stored.
    pub scored: bool,
    /// True for the list of canvas events and that of feedback when it can be filled: what nobody may write is
    /// nothing to fix.
    pub fillable: [bool; 2],
}

/// The episode that something names as its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedEpisode {
    /// No episode is named.
    None,
    /// The one at this place.
    At(u32),
    /// One that is not there.
    Unknown,
}

/// Feedback that its episode does not name, or that others may name too, by what it hangs on.
#[derive(Debug)]
struct LinkedFeedback {
    key: u64,
    execution: u64,
    names: NamedEpisode,
    at: i64,
    /// Not a number where it has none that counts.
    score: f64,
}

/// An event that may still be linked: it names an episode whose list is there to be filled, or none.
#[derive(Debug)]
struct LooseEvent {
    session: u64,
    key: u64,
    at: i64,
    names: NamedEpisode,
}

/// Episodes with what hangs on them, as far as findings need it. Episodes come first; [`LinkedEpisodes::chains`] ends
/// them. What an episode names, and names it too, leaves no more than a bit.
#[derive(Debug)]
pub struct LinkedEpisodes {
    marks: EpisodeMarks,
    /// Episodes by user, session and start, with what stands for their id.
    begun: RecordSorter<4>,
    /// Sessions with an episode whose list of canvas events can be filled; known once all episodes are.
    open: RecordSorter<1>,
    open_sessions: IdTable<1>,
    /// Other canvas events with the episode that each points back to, 0 for none.
    events: RecordSorter<2>,
    /// The same, by what is kept of their ids where episodes name them.
    events_by_name: IdTable<3>,
    loose: Vec<LooseEvent>,
    said: Vec<LinkedFeedback>,
    orphans: FindingTally,
    missing_memories: FindingTally,
    most: usize,
    space: MakeSpace,
}

/// Kinds that links and stored numbers tell of.
const KINDS: &[&str] = &[
    "dangling_id",
    "repeated_id",
    "wrong_back_link",
    "one_way_link",
    "count_differs",
    "aggregate_differs",
    "not_linked",
    "feedback_not_linked",
];

/// Faults of links, of counts and of chains, by kind.
pub type Faults = Vec<(&'static str, FindingTally)>;

impl LinkedEpisodes {
    /// An empty story whose findings name at most `most` examples. It goes on in such a space where it does not fit in memory.
    #[must_use]
    pub fn new(most: usize, space: MakeSpace) -> Self {
        LinkedEpisodes {
            marks: EpisodeMarks::new(space),
            begun: RecordSorter::new(space).within(LINKED),
            open: RecordSorter::new(space).within(LINKED),
            open_sessions: IdTable::default(),
            events: RecordSorter::new(space).within(LINKED),
            events_by_name: IdTable::default(),
            loose: Vec::new(),
            said: Vec::new(),
            orphans: FindingTally::default(),
            missing_memories: FindingTally::default(),
            most,
            space,
        }
    }

    /// The same, with so many bytes in memory.
    #[cfg(test)]
    fn within(self, bytes: usize) -> Self {
        let (begun, open, events) = (self.begun.within(bytes), self.open.within(bytes), self.events.within(bytes));
        LinkedEpisodes { marks: EpisodeMarks::within(bytes, self.space), begun, open, events, ..self }
    }

    /// Takes an episode with what it names.
    pub fn episode(&mut self, row: &Row, named: &NamedLinks<'_>) {
        let session = row.text("session_id").filter(|s| !s.is_empty()).map_or(0, digest);
        let readable = row.is_readable("canvas_ids");
        let (listed, feedback_listed) = (row.list("canvas_ids"), row.list("feedback_ids"));
        let open = named.fillable[0] && session != 0 && listed.is_empty() && readable;
        let feedback_readable = row.is_readable("feedback_ids");
        if open {
            self.open.add([session]);
        }
        let flags = [
            (MarkFlag::HasList, readable && !row.get("canvas_ids").is_null()),
            (MarkFlag::Repeats, repeats(&listed) || repeats(&feedback_listed)),
            (MarkFlag::Open, open),
            (MarkFlag::OpenFeedback, named.fillable[1] && feedback_readable && feedback_listed.is_empty()),
            (
                MarkFlag::Counted,
                named.counted && readable && (row.is_readable("metadata") || !row.get("metadata").is_null()),
            ),
            (MarkFlag::Scored, named.scored && feedback_readable),
            (MarkFlag::CanvasBack, named.canvas_back),
        ];
        let mut mark = EpisodeMark::new(row, session, &flags);
        mark.agent = row.text("agent_id").map_or(0, |name| self.marks.number(name));
        let user = row.text("user_id").filter(|user| !user.is_empty()).map_or(0, digest);
        let started = moment(row, "started_at");
        if (user, session) != (0, 0) && started != NEVER {
            self.begun.add([user, session, ordered(started), digest(row.id())]);
        }
        let executions = row.list("execution_ids").into_iter().map(|id| (NamedKind::Executions, digest(id)));
        let canvas = named.canvas.iter().map(|id| (NamedKind::Canvas, digest(id)));
        let feedback = named.feedback.iter().map(|id| (NamedKind::Feedback, digest(id)));
        self.marks.add(row.id(), &mark, executions.chain(canvas).chain(feedback));
    }

    /// The place of an episode by its id; none when there is no such episode.
    #[must_use]
    pub fn place(&self, id: &str) -> Option<usize> {
        self.marks.place(digest(id))
    }

    /// The id of an episode by its place among those that were taken.
    #[must_use]
    pub fn id(&self, place: usize) -> Option<Cow<'_, str>> {
        self.marks.id(place)
    }

    fn named_by(&self, row: &Row) -> NamedEpisode {
        match row.text("episode_id") {
            None => NamedEpisode::None,
            Some(id) => self.place(id).map_or(NamedEpisode::Unknown, |place| NamedEpisode::At(place as u32)),
        }
    }

    /// Takes a canvas event.
    pub fn canvas(&mut self, row: &Row) {
        let (key, names) = (digest(row.id()), self.named_by(row));
        let session = row.text("session_id").map_or(0, digest);
        if self.open_sessions.find(session).is_some() && self.may_be_linked(session, names) {
            self.loose.push(LooseEvent { session, key, at: moment(row, "created_at"), names });
        }
        if let NamedEpisode::At(place) = names
            && let Some(hash) = self.marks.only_named(place as usize, NamedKind::Canvas, key)
        {
            self.marks.meet(hash);
            return;
        }
        self.events.add([key, row.text("episode_id").map_or(0, digest)]);
    }

    fn may_be_linked(&self, session: u64, names: NamedEpisode) -> bool {
        match names {
            NamedEpisode::None => true,
            NamedEpisode::Unknown => false,
            NamedEpisode::At(place) => {
                let place = place as usize;
                self.marks.session(place) == session && self.marks.is(place, MarkFlag::Open)
            }
        }
    }

    /// Takes feedback.
    pub fn feedback(&mut self, row: &Row) {
        let (key, names) = (digest(row.id()), self.named_by(row));
        let execution = row.text("execution_id").filter(|e| !e.is_empty()).map_or(0, digest);
        let counts = row.get("counts").as_bool().unwrap_or(true);
        let score = row.number("score").filter(|_| counts).unwrap_or(f64::NAN);
        if let NamedEpisode::At(place) = names
            && let place = place as usize
            && let Some(hash) = self.marks.only_named(place, NamedKind::Feedback, key)
            && (execution == 0 || self.marks.names(place, NamedKind::Executions, execution))
        {
            if self.marks.meet(hash) && !score.is_nan() {
                self.marks.add_score(place, score);
            }
            return;
        }
        self.said.push(LinkedFeedback { key, execution, names, at: moment(row, "created_at"), score });
    }

    /// Takes a segment.
    pub fn segment(&mut self, row: &Row) {
        if row.text("episode_id").is_some_and(|id| self.place(id).is_none()) {
            self.orphans.add(row.id(), self.most);
        }
    }

    /// Takes a link to a memory that is not there.
    pub fn memory_is_missing(&mut self, episode: &str) {
        self.missing_memories.add(episode, self.most);
    }

    /// Chains and bursts: what episodes alone tell. All of them have been taken.
    ///
    /// # Errors
    /// What did not fit in memory could not be kept in a file.
    pub fn chains(&mut self) -> io::Result<Faults> {
        self.marks.index()?;
        self.open_sessions = IdTable::of(self.open.take(), |_, _| {})?;
        let mut found = self.chain_faults();
        self.marks.forget_agents();
        found.push(("write_burst", self.bursts()?));
        self.marks.check()?;
        Ok(found)
    }

    fn chain_faults(&self) -> Faults {
        let parent_of = |place: usize| self.marks.place(self.marks.parent(place)?);
        let circles = chain::circles(self.marks.len(), parent_of);
        // In a circle some parent is always younger: that is no finding of its own.
        let circling: HashSet<usize> = circles.iter().flatten().copied().collect();
        let (mut missing, mut foreign, mut younger) = (Vec::new(), Vec::new(), Vec::new());
        for place in 0..self.marks.len() {
            let Some(parent) = self.marks.parent(place) else { continue };
            let Some(child) = self.member(place) else { continue };
            let mother = self.marks.place(parent).and_then(|parent| self.member(parent));
            for fault in chain::faults(seen(&child), mother.as_ref().map(seen)) {
                match fault {
                    LinkFault::MissingParent => missing.push(child.0.to_string()),
                    LinkFault::ForeignParent => foreign.push(child.0.to_string()),
                    LinkFault::YoungerParent if !circling.contains(&place) => younger.push(child.0.to_string()),
                    LinkFault::YoungerParent | LinkFault::SelfParent => {}
                }
            }
        }
        let first = |circle: &Vec<usize>| circle.iter().filter_map(|place| self.id(*place)).min().map(Cow::into_owned);
        let cycles = circles.iter().filter_map(first).collect();
        let ids = |mut ids: Vec<String>| {
            ids.sort_unstable();
            FindingTally::of(ids, self.most)
        };
        vec![
            ("chain_cycle", ids(cycles)),
            ("missing_parent", ids(missing)),
            ("cross_agent_parent", ids(foreign)),
            ("parent_younger", ids(younger)),
        ]
    }

    /// An episode as a member of a chain: id, agent, when it started.
    fn member(&self, place: usize) -> Option<(Cow<'_, str>, Option<String>, Option<String>)> {
        let agent = Some(self.marks.agent(place)).filter(|agent| *agent > 0).map(|agent| agent.to_string());
        Some((self.id(place)?, agent, spelled(self.marks.started(place))))
    }

    /// Episodes of one person and session that began within a minute; those of whoever began first are told first.
    fn bursts(&mut self) -> io::Result<FindingTally> {
        let sorted = self.begun.take().sorted()?;
        let mut stream = sorted.stream()?;
        let mut found = FirstBursts { most: self.most, ..FirstBursts::default() };
        let (mut last, mut first) = (None, 0);
        let mut near: Vec<(i64, u64)> = Vec::new();
        while let Some([user, session, at, key]) = stream.next()? {
            let (of, at) = (Some((user, session)), unordered(at));
            if last != of {
                found.add(first, &near);
                near.clear();
                (last, first) = (of, at);
            } else if near.last().is_some_and(|(before, _)| at.saturating_sub(*before) > bank::BURST_MICROS) {
                found.add(first, &near);
                near.clear();
            }
            near.push((at, key));
        }
        found.add(first, &near);
        let mut tally = FindingTally::default();
        for keys in found.close() {
            let ids = keys.iter().filter_map(|key| Some(self.id(self.marks.place(*key)?)?.into_owned()));
            tally.group(ids.collect(), self.most);
        }
        tally.count = found.count;
        Ok(tally)
    }

    /// Links and stored numbers; asked when everything has been taken.
    ///
    /// # Errors
    /// What did not fit in memory could not be kept in a file.
    pub fn links(&mut self) -> io::Result<Faults> {
        self.marks.sum_up()?;
        let back_canvas = self.back_canvas()?;
        let mut back_canvas = PlaceStream::of(back_canvas.stream()?)?;
        // Of an id that comes twice any row holds.
        self.said.sort_by_key(|said| said.key);
        self.said.dedup_by_key(|said| said.key);
        let back = |said: &LinkedFeedback| match said.names {
            NamedEpisode::At(place) => Some((place, said.key)),
            NamedEpisode::None | NamedEpisode::Unknown => None,
        };
        let mut back_said: Vec<(u32, u64)> = self.said.iter().filter_map(back).collect();
        back_said.sort_unstable();
        let open = self.linkable();
        let unsaid = self.sayable();
        // In an order that is the same each time.
        let mut found: BTreeMap<&'static str, FindingTally> =
            KINDS.iter().map(|kind| (*kind, FindingTally::default())).collect();
        for place in 0..self.marks.len() {
            let mut faults = self.faults(place, back_canvas.at(place)?, of(&back_said, place));
            faults.extend(open.contains(&place).then_some("not_linked"));
            faults.extend(unsaid.contains(&place).then_some("feedback_not_linked"));
            if faults.is_empty() {
                continue;
            }
            let id = self.id(place).unwrap_or_default();
            faults.into_iter().for_each(|kind| found.entry(kind).or_default().add(&id, self.most));
        }
        let mut found: Faults = found.into_iter().collect();
        found.push(("orphan_segment", self.orphans.clone()));
        found.push(("missing_memory", self.missing_memories.clone()));
        self.open_sessions.check()?;
        self.events_by_name.check()?;
        self.marks.check()?;
        Ok(found)
    }

    /// The events that no episode's link met, by the place of the episode that they point back to. From here on they are
    /// found by their ids.
    fn back_canvas(&mut self) -> io::Result<SortedRecords<2>> {
        let sorted = self.events.take().sorted()?;
        let (mut back, mut by_name) = (RecordSorter::new(self.space), RecordSorter::new(self.space));
        let mut stream = sorted.stream()?;
        // Of an id that comes twice any row holds.
        let mut last = None;
        while let Some([key, episode]) = stream.next()? {
            if last.replace(key) != Some(key) {
                by_name.add([cut(key), key, episode]);
                if let Some(place) = self.marks.place(episode) {
                    back.add([place as u64, key]);
                }
            }
        }
        self.events_by_name = IdTable::of(by_name, |_, _| {})?;
        back.sorted()
    }

    /// The episode that a canvas event points back to, 0 for none; none when there is no such event.
    fn event(&self, named: u64) -> Option<u64> {
        self.events_by_name.find(named).map(|[_, _, episode]| episode)
    }

    fn said(&self, named: u64) -> Option<&LinkedFeedback> {
        self.said.binary_search_by_key(&named, |said| cut(said.key)).ok().and_then(|at| self.said.get(at))
    }

    fn faults(&self, place: usize, back_canvas: &[u64], back_said: &[(u32, u64)]) -> Vec<&'static str> {
        let is = |flag| self.marks.is(place, flag);
        let (mut linked, mut dangling, mut wrong, mut no_back) = (0, false, false, false);
        for (named, met) in self.marks.named(place, NamedKind::Canvas) {
            let episode = if met { None } else { self.event(named) };
            linked += i32::from(met || episode.is_some());
            dangling |= !met && episode.is_none();
            no_back |= episode == Some(0);
            wrong |= episode.is_some_and(|episode| episode != 0 && episode != self.marks.key(place));
        }
        let named = |key: u64| self.marks.names(place, NamedKind::Canvas, key);
        let further = back_canvas.iter().filter(|key| !named(**key)).count();
        let not_named = is(MarkFlag::HasList) && further > 0;
        let count = is(MarkFlag::Counted) && self.marks.count(place) != linked + further as i32;
        let unmet = self.marks.named(place, NamedKind::Feedback).filter(|(_, met)| !met).map(|(named, _)| named);
        let rows = sorted(unmet.chain(back_said.iter().map(|(_, key)| cut(*key))));
        let told: Vec<&LinkedFeedback> = rows.iter().filter_map(|named| self.said(*named)).collect();
        // What points back is there.
        dangling |= told.len() < rows.len();
        let (mut sum, mut n) = self.marks.met_scores(place);
        for score in told.iter().map(|said| said.score).filter(|score| !score.is_nan()) {
            (sum, n) = (sum + score, n + 1);
        }
        let mean = (n > 0).then(|| sum / f64::from(n));
        let same = match (self.marks.stored_score(place), mean) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-6,
            (None, None) => true,
            _ => false,
        };
        let back = is(MarkFlag::CanvasBack);
        let faults = [
            (dangling, "dangling_id"),
            (is(MarkFlag::Repeats), "repeated_id"),
            (back && wrong, "wrong_back_link"),
            (back && no_back || not_named, "one_way_link"),
            (count, "count_differs"),
            (is(MarkFlag::Scored) && !same, "aggregate_differs"),
        ];
        faults.into_iter().filter_map(|(holds, kind)| holds.then_some(kind)).collect()
    }

    /// Episodes to which a canvas event of their session belongs that is not linked to any.
    fn linkable(&mut self) -> HashSet<usize> {
        if self.loose.is_empty() {
            return HashSet::new();
        }
        self.loose.sort_unstable_by_key(|event| event.session);
        let asked: HashSet<u64> = self.loose.iter().map(|event| event.session).collect();
        let mut by_session: HashMap<u64, Vec<usize>> = HashMap::new();
        for place in (0..self.marks.len()).filter(|place| asked.contains(&self.marks.session(*place))) {
            by_session.entry(self.marks.session(place)).or_default().push(place);
        }
        let is_open = |place: usize| self.marks.is(place, MarkFlag::Open);
        let mut linkable = HashSet::new();
        for events in self.loose.chunk_by(|a, b| a.session == b.session) {
            let Some(places) = events.first().and_then(|event| by_session.get(&event.session)) else { continue };
            let listed = |place: &usize| self.marks.named(*place, NamedKind::Canvas).map(|(named, _)| named);
            let lists: HashSet<u64> = places.iter().filter(|place| !is_open(**place)).flat_map(listed).collect();
            let unlisted = events.iter().filter(|event| !lists.contains(&cut(event.key)));
            let owners = self.owners(places, unlisted.map(|event| (event.at, event.names)));
            linkable.extend(owners.into_iter().filter(|place| is_open(*place)));
        }
        linkable
    }

    /// Episodes to which feedback on their execution belongs that none of that execution lists.
    fn sayable(&self) -> HashSet<usize> {
        let mut by_execution: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut asked: HashMap<u64, Vec<&LinkedFeedback>> = HashMap::new();
        for said in self.said.iter().filter(|said| said.execution != 0) {
            asked.entry(cut(said.execution)).or_default().push(said);
        }
        let places = if asked.is_empty() { 0..0 } else { 0..self.marks.len() };
        for place in places {
            let executions = self.marks.named(place, NamedKind::Executions).map(|(execution, _)| execution);
            for execution in executions.filter(|execution| asked.contains_key(execution)) {
                by_execution.entry(execution).or_default().push(place);
            }
        }
        let is_open = |place: usize| self.marks.is(place, MarkFlag::OpenFeedback);
        let mut sayable = HashSet::new();
        for (execution, places) in &by_execution {
            let listed = |place: &usize| self.marks.named(*place, NamedKind::Feedback).map(|(named, _)| named);
            let lists: HashSet<u64> = places.iter().flat_map(listed).collect();
            let said = asked.get(execution).into_iter().flatten().filter(|said| !lists.contains(&cut(said.key)));
            let owners = self.owners(places, said.map(|said| (said.at, said.names)));
            sayable.extend(owners.into_iter().filter(|place| is_open(*place)));
        }
        sayable
    }

    /// The episodes among some to which what happened at these moments, naming these episodes, belongs.
    fn owners(&self, places: &[usize], moments: impl Iterator<Item = (i64, NamedEpisode)>) -> Vec<usize> {
        let times = |place: usize| [self.marks.started(place), self.marks.ended(place)].map(spelled);
        let marks: Vec<(Cow<'_, str>, [Option<String>; 2])> =
            places.iter().filter_map(|place| Some((self.id(*place)?, times(*place)))).collect();
        let spans: Vec<EpisodeSpan<'_>> = marks
            .iter()
            .map(|(id, [started, ended])| EpisodeSpan { id, started: started.as_deref(), ended: ended.as_deref() })
            .collect();
        let spans = SessionSpans::new(&spans);
        let owner = |(at, names): (i64, NamedEpisode)| match names {
            NamedEpisode::At(place) => Some(place as usize).filter(|place| places.contains(place)),
            NamedEpisode::Unknown => None,
            NamedEpisode::None => {
                let at = spelled(at);
                let event = CanvasEventTime { at: at.as_deref(), names: None };
                spans.owner(event).and_then(|i| places.get(i)).copied()
            }
        };
        moments.filter_map(owner).collect()
    }
}

/// The first bursts, and how many there are.
#[derive(Default)]
struct FirstBursts {
    /// Bursts that are wanted.
    most: usize,
    count: u64,
    /// Time at which whoever wrote them began to write, number of the burst, and hashes of the ids of its rows.
    held: Vec<(i64, u64, Vec<u64>)>,
}

impl FirstBursts {
    /// Takes rows of one person and session that are near each other in time; `first` is the time of the first row of all.
    fn add(&mut self, first: i64, near: &[(i64, u64)]) {
        if near.len() < bank::BURST {
            return;
        }
        for burst in bank::bursts(near) {
            self.count += 1;
            self.held.push((first, self.count, burst));
        }
        if self.held.len() > self.most.saturating_mul(2).saturating_add(64) {
            self.keep_first();
        }
    }

    fn keep_first(&mut self) {
        self.held.sort_unstable_by_key(|(first, number, _)| (*first, *number));
        self.held.truncate(self.most.max(1));
    }

    fn close(&mut self) -> impl Iterator<Item = &[u64]> {
        self.keep_first();
        self.held.iter().map(|(.., keys)| keys.as_slice())
    }
}

/// Values of places, for places in order.
struct PlaceStream<'r> {
    records: RecordStream<'r, 2>,
    next: Option<Record<2>>,
    here: Vec<u64>,
}

impl<'r> PlaceStream<'r> {
    fn of(mut records: RecordStream<'r, 2>) -> io::Result<Self> {
        let next = records.next()?;
        Ok(PlaceStream { records, next, here: Vec::new() })
    }

    /// Reads the values of a place; each place comes after those before it.
    fn at(&mut self, place: usize) -> io::Result<&[u64]> {
        self.here.clear();
        while let Some([_, key]) = self.next.filter(|[of, _]| *of as usize <= place) {
            self.here.push(key);
            self.next = self.records.next()?;
        }
        Ok(&self.here)
    }
}

/// Whether something is in a list more than once.
fn repeats(ids: &[&str]) -> bool {
    ids.len() > 1 && ids.iter().collect::<HashSet<_>>().len() < ids.len()
}

/// Selects the pairs of one episode from sorted pairs.
fn of(pairs: &[(u32, u64)], place: usize) -> &[(u32, u64)] {
    let start = pairs.partition_point(|(of, _)| (*of as usize) < place);
    let end = pairs.partition_point(|(of, _)| (*of as usize) <= place);
    pairs.get(start..end).unwrap_or_default()
}

/// A moment in the canonical spelling; none for [`NEVER`].
fn spelled(moment: i64) -> Option<String> {
    (moment != NEVER).then(|| time::from_epoch(moment, time::EpochUnit::Microseconds)).flatten()
}

/// Hashes in order, once each.
fn sorted(hashes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut hashes: Vec<u64> = hashes.collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn seen<'m>(member: &'m (Cow<'_, str>, Option<String>, Option<String>)) -> ChainMember<'m> {
    ChainMember { id: &member.0, agent_id: member.1.as_deref(), started_at: member.2.as_deref() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::row;
    use super::*;
    use crate::memory::Entity;
    use crate::memory::packed::space::tests::space;

    fn told(story: &LinkedEpisodes, faults: &Faults) -> Vec<String> {
        assert!(story.id(0).is_some());
        let told = faults.iter().filter(|(_, tally)| tally.count > 0);
        told.map(|(kind, tally)| format!("{kind} {}", tally.examples.join(" "))).collect()
    }

    /// An episode: its id, canvas events and feedback that it names, its count and score.
    type Told<'t> = (&'t str, &'t [&'t str], &'t [&'t str], i64, Option<f64>);

    /// Bytes that may be held in memory: none, so that everything is in files, or enough.
    const ROOM: [usize; 2] = [0, 1 << 20];

    fn story(room: usize, episodes: &[Told<'_>]) -> LinkedEpisodes {
        let mut story = LinkedEpisodes::new(5, space).within(room);
        for (id, canvas, feedback, count, score) in episodes {
            let row = row(
                Entity::Episode,
                &[
                    ("id", json!(id)),
                    ("session_id", json!(format!("session of {id}"))),
                    ("execution_ids", json!([format!("run of {id}")])),
                    ("canvas_ids", json!(canvas)),
                    ("feedback_ids", json!(feedback)),
                    ("canvas_action_count", json!(count)),
                    ("feedback_score", json!(score)),
                ],
            );
            let named = NamedLinks {
                canvas: canvas.iter().map(|id| Cow::Borrowed(*id)).collect(),
                feedback: feedback.iter().map(|id| Cow::Borrowed(*id)).collect(),
                canvas_back: true,
                counted: true,
                scored: true,
                fillable: [true, true],
            };
            story.episode(&row, &named);
        }
        let chains = story.chains().unwrap();
        assert_eq!(told(&story, &chains), Vec::<String>::new());
        story
    }

    fn event(story: &mut LinkedEpisodes, id: &str, episode: Option<&str>, session: &str) {
        let values = [("id", json!(id)), ("episode_id", json!(episode)), ("session_id", json!(session))];
        story.canvas(&row(Entity::CanvasEvent, &values));
    }

    fn said(story: &mut LinkedEpisodes, id: &str, episode: Option<&str>, run: &str, score: f64) {
        let values = [
            ("id", json!(id)),
            ("episode_id", json!(episode)),
            ("execution_id", json!(run)),
            ("score", json!(score)),
            ("counts", json!(true)),
        ];
        story.feedback(&row(Entity::Feedback, &values));
    }

    #[test]
    fn what_is_linked_both_ways_is_no_finding() {
        for room in ROOM {
            let mut story = story(room, &[("a", &["c1", "c2"], &["f1", "f2"], 2, Some(0.5)), ("b", &[], &[], 0, None)]);
            for id in ["c1", "c2"] {
                event(&mut story, id, Some("a"), "session of a");
            }
            said(&mut story, "f1", Some("a"), "run of a", 1.0);
            said(&mut story, "f2", Some("a"), "", 0.0);
            let found = story.links().unwrap();
            assert_eq!(told(&story, &found), Vec::<String>::new());
        }
    }

    #[test]
    fn what_two_episodes_name_belongs_to_the_one_that_it_names() {
        for room in ROOM {
            let mut story =
                story(room, &[("a", &["c1"], &["f1"], 1, Some(1.0)), ("b", &["c1"], &["f1"], 1, Some(0.0))]);
            event(&mut story, "c1", Some("a"), "session of a");
            said(&mut story, "f1", Some("a"), "run of a", 1.0);
            let found = story.links().unwrap();
            assert_eq!(told(&story, &found), ["aggregate_differs b", "wrong_back_link b"]);
        }
    }

    #[test]
    fn links_that_lead_one_way_or_nowhere_are_told() {
        for room in ROOM {
            let mut story = story(
                room,
                &[
                    ("a", &["c1", "gone"], &["nowhere"], 1, None),
                    ("b", &[], &[], 0, None),
                    ("c", &["c3"], &[], 1, Some(-1.0)),
                ],
            );
            event(&mut story, "c1", None, "session of a");
            event(&mut story, "c2", Some("b"), "session of b");
            event(&mut story, "c3", Some("c"), "session of c");
            event(&mut story, "c4", None, "session of b");
            said(&mut story, "f2", None, "run of b", 1.0);
            said(&mut story, "f3", Some("c"), "run of c", -1.0);
            let found = story.links().unwrap();
            assert_eq!(
                told(&story, &found),
                ["count_differs b", "dangling_id a", "feedback_not_linked b c", "not_linked b", "one_way_link a b",]
            );
        }
    }

    #[test]
    fn bursts_of_whoever_began_first_are_told_first() {
        for room in ROOM {
            let mut story = LinkedEpisodes::new(2, space).within(room);
            for (user, day) in [("late", 3), ("early", 1), ("middle", 2), ("slow", 4)] {
                for n in 0..12 {
                    let minute = if user == "slow" { n } else { n / 6 * 30 };
                    let row = row(
                        Entity::Episode,
                        &[
                            ("id", json!(format!("{user} {n:02}"))),
                            ("user_id", json!(user)),
                            ("started_at", json!(format!("2026-01-0{day}T00:{minute:02}:{:02}.000000Z", n % 6))),
                        ],
                    );
                    story.episode(&row, &NamedLinks::default());
                }
            }
            let found = story.chains().unwrap();
            let bursts = found.iter().find(|(kind, _)| *kind == "write_burst").map(|(_, tally)| tally).unwrap();
            assert_eq!((bursts.count, bursts.examples.len()), (6, 12));
            assert_eq!((bursts.examples[0].as_str(), bursts.examples[6].as_str()), ("early 00", "early 06"));
        }
    }

    #[test]
    fn faults_of_chains_are_told_wherever_episodes_are() {
        for room in ROOM {
            let mut story = LinkedEpisodes::new(5, space).within(room);
            for (id, agent, parent, day) in [
                ("root", "a", None, 2),
                ("foreign", "b", Some("root"), 3),
                ("orphan", "a", Some("nobody"), 3),
                ("younger", "a", Some("root"), 1),
                ("one", "a", Some("other"), 1),
                ("other", "a", Some("one"), 2),
                ("fine", "a", Some("root"), 4),
            ] {
                let started = format!("2026-01-0{day}T00:00:00.000000Z");
                let row = row(
                    Entity::Episode,
                    &[
                        ("id", json!(id)),
                        ("agent_id", json!(agent)),
                        ("parent_id", json!(parent)),
                        ("started_at", json!(started)),
                    ],
                );
                story.episode(&row, &NamedLinks::default());
            }
            let found = story.chains().unwrap();
            assert_eq!(
                told(&story, &found),
                ["chain_cycle one", "missing_parent orphan", "cross_agent_parent foreign", "parent_younger younger"]
            );
        }
    }
}
