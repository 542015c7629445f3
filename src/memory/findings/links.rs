//! What is odd about episodes: links to canvas events and feedback, stored numbers, chains, bursts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{FindingTally, bank, short};
use crate::memory::chain::{self, ChainMember, LinkFault};
use crate::memory::session_links::{CanvasEventTime, EpisodeSpan, SessionSpans};
use crate::memory::{Row, feedback, time};

/// What an episode names, in its lists and elsewhere.
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
    /// Its lists of canvas events and of feedback can be filled: what nobody may write is nothing to fix.
    pub fillable: [bool; 2],
}

/// An episode, in as few bytes as will do: there may be millions.
#[derive(Debug)]
struct EpisodeMark {
    id: Box<str>,
    session: u64,
    /// Microseconds since 1970; [`NEVER`] where none is known.
    started: i64,
    ended: i64,
    /// Number of its agent's name.
    agent: u32,
    /// Where its executions, canvas events and feedback end among all hashes, each after the one before.
    ends: [u32; 3],
    has_list: bool,
    repeats: bool,
    /// Its list of canvas events is there to be filled.
    open: bool,
    /// Its list of feedback is there to be filled.
    open_feedback: bool,
    /// There is a place for the number of its canvas events, and their list can be read.
    counted: bool,
    count: i64,
    /// The same of the score of its feedback.
    scored: bool,
    /// Not a number where none is stored.
    score: f64,
    canvas_back: bool,
}

/// Kinds of hashes that an episode names, in their order.
const EXECUTIONS: usize = 0;
const CANVAS: usize = 1;
const FEEDBACK: usize = 2;

/// No moment.
const NEVER: i64 = i64::MIN;

/// Feedback, by what it hangs on.
#[derive(Debug)]
struct LinkedFeedback {
    key: u64,
    episode: u64,
    execution: u64,
    /// What it names as its episode, and when it was: only of what names an execution.
    names: Option<Box<str>>,
    at: i64,
    /// Not a number where it has none.
    score: f64,
    counts: bool,
}

/// An event that may still be linked: when it was and what it names.
type Loose = (i64, Option<Box<str>>, u64);

/// Episodes with what hangs on them, as far as findings need it. Episodes come first; [`LinkedEpisodes::chains`] ends them.
#[derive(Debug, Default)]
pub struct LinkedEpisodes {
    marks: Vec<EpisodeMark>,
    /// Executions, canvas events and feedback that episodes name.
    hashes: Vec<u64>,
    agents: HashMap<String, u32>,
    /// Place of an episode by its hash, in order of the hashes.
    places: Vec<(u64, u32)>,
    /// Episodes with the parent that they name.
    parents: Vec<(u32, u64)>,
    open_sessions: HashSet<u64>,
    /// Canvas events with the episode that each points back to.
    events: Vec<(u64, u64)>,
    loose: HashMap<u64, Vec<Loose>>,
    said: Vec<LinkedFeedback>,
    orphans: FindingTally,
    /// When episodes of one person and session began.
    times: Vec<(u64, i64, u64)>,
    missing_memories: FindingTally,
    most: usize,
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
    /// An empty story whose findings name at most `most` examples.
    #[must_use]
    pub fn new(most: usize) -> Self {
        LinkedEpisodes { most, ..LinkedEpisodes::default() }
    }

    /// Takes an episode with what it names.
    pub fn episode(&mut self, row: &Row, named: &NamedLinks<'_>) {
        let key = short(row.id());
        let place = self.marks.len() as u32;
        let session = row.text("session_id").filter(|s| !s.is_empty()).map_or(0, short);
        if let Some(parent) = row.text("parent_id") {
            self.parents.push((place, short(parent)));
        }
        let agent = row.text("agent_id").map_or(0, |name| self.agent(name));
        let readable = row.is_readable("canvas_ids");
        let listed = row.list("canvas_ids");
        let open = named.fillable[0] && session != 0 && listed.is_empty() && readable;
        if open {
            self.open_sessions.insert(session);
        }
        let user = row.text("user_id").unwrap_or_default();
        if (session != 0 || !user.is_empty())
            && let Some(at) = row.text("started_at").and_then(time::epoch_micros)
        {
            let by = format!("{user}\n{}", row.text("session_id").unwrap_or_default());
            self.times.push((short(&by), at, key));
        }
        let distinct = |ids: &[&str]| ids.iter().collect::<HashSet<_>>().len() == ids.len();
        let executions = sorted(row.list("execution_ids").into_iter().map(short));
        let canvas = sorted(named.canvas.iter().map(|id| short(id)));
        let feedback = sorted(named.feedback.iter().map(|id| short(id)));
        let ends = [executions, canvas, feedback].map(|hashes| {
            self.hashes.extend(hashes);
            self.hashes.len() as u32
        });
        self.places.push((key, place));
        self.marks.push(EpisodeMark {
            id: row.id().into(),
            session,
            started: moment(row, "started_at"),
            ended: moment(row, "ended_at"),
            agent,
            ends,
            has_list: readable && !row.get("canvas_ids").is_null(),
            repeats: !distinct(&listed) || !distinct(&row.list("feedback_ids")),
            open,
            open_feedback: named.fillable[1] && row.is_readable("feedback_ids") && row.list("feedback_ids").is_empty(),
            counted: named.counted && readable && (row.is_readable("metadata") || !row.get("metadata").is_null()),
            count: row.get("canvas_action_count").as_i64().unwrap_or_default(),
            scored: named.scored && row.is_readable("feedback_ids"),
            score: row.number("feedback_score").unwrap_or(f64::NAN),
            canvas_back: named.canvas_back,
        });
    }

    /// Number of an agent's name, from 1.
    fn agent(&mut self, name: &str) -> u32 {
        let next = self.agents.len() as u32 + 1;
        match self.agents.get(name) {
            Some(number) => *number,
            None => *self.agents.entry(name.to_owned()).or_insert(next),
        }
    }

    fn place(&self, key: u64) -> Option<usize> {
        let at = self.places.binary_search_by_key(&key, |(known, _)| *known).ok()?;
        self.places.get(at).map(|(_, place)| *place as usize)
    }

    /// What an episode names: executions, canvas events or feedback.
    fn hashes(&self, place: usize, kind: usize) -> &[u64] {
        let end = |place: usize, kind: usize| self.marks.get(place).map_or(0, |mark| mark.ends[kind] as usize);
        let start = match (kind, place.checked_sub(1)) {
            (1.., _) => end(place, kind - 1),
            (0, Some(before)) => end(before, FEEDBACK),
            (0, None) => 0,
        };
        self.hashes.get(start..end(place, kind)).unwrap_or_default()
    }

    /// Takes a canvas event.
    pub fn canvas(&mut self, row: &Row) {
        let session = row.text("session_id").map_or(0, short);
        let key = short(row.id());
        if self.open_sessions.contains(&session) {
            let event = (moment(row, "created_at"), row.text("episode_id").map(Box::from), key);
            self.loose.entry(session).or_default().push(event);
        }
        self.events.push((key, row.text("episode_id").map_or(0, short)));
    }

    /// Takes feedback.
    pub fn feedback(&mut self, row: &Row) {
        let execution = row.text("execution_id").filter(|e| !e.is_empty()).map_or(0, short);
        self.said.push(LinkedFeedback {
            key: short(row.id()),
            episode: row.text("episode_id").map_or(0, short),
            execution,
            names: row.text("episode_id").filter(|_| execution != 0).map(Box::from),
            at: moment(row, "created_at"),
            score: row.number("score").unwrap_or(f64::NAN),
            counts: row.get("counts").as_bool().unwrap_or(true),
        });
    }

    /// Takes a segment.
    pub fn segment(&mut self, row: &Row) {
        if row.text("episode_id").is_some_and(|id| self.place(short(id)).is_none()) {
            self.orphans.add(row.id(), self.most);
        }
    }

    /// Takes a link to a memory that is not there.
    pub fn memory_is_missing(&mut self, episode: &str) {
        self.missing_memories.add(episode, self.most);
    }

    /// Chains and bursts: what episodes alone tell. All of them have been taken.
    #[must_use]
    pub fn chains(&mut self) -> Faults {
        // Of an id that comes twice the last row holds.
        self.places.sort_unstable_by_key(|(key, place)| (*key, std::cmp::Reverse(*place)));
        self.places.dedup_by_key(|(key, _)| *key);
        let parents = std::mem::take(&mut self.parents);
        let mut parent_of = vec![None; self.marks.len()];
        for (place, parent) in &parents {
            parent_of[*place as usize] = self.place(*parent);
        }
        let circles = chain::circles(&parent_of);
        // In a circle some parent is always younger: that is no finding of its own.
        let circling: HashSet<usize> = circles.iter().flatten().copied().collect();
        let (mut missing, mut foreign, mut younger) = (Vec::new(), Vec::new(), Vec::new());
        for (place, _) in &parents {
            let place = *place as usize;
            let Some(child) = self.member(place) else { continue };
            let mother = parent_of.get(place).copied().flatten().and_then(|parent| self.member(parent));
            for fault in chain::faults(seen(&child), mother.as_ref().map(seen)) {
                match fault {
                    LinkFault::MissingParent => missing.push(child.0.to_owned()),
                    LinkFault::ForeignParent => foreign.push(child.0.to_owned()),
                    LinkFault::YoungerParent if !circling.contains(&place) => younger.push(child.0.to_owned()),
                    LinkFault::YoungerParent | LinkFault::SelfParent => {}
                }
            }
        }
        let first = |circle: &Vec<usize>| circle.iter().filter_map(|place| self.id(*place)).min().map(str::to_owned);
        let cycles = circles.iter().filter_map(first).collect();
        let ids = |mut ids: Vec<String>| {
            ids.sort_unstable();
            FindingTally::of(ids, self.most)
        };
        let chains = [
            ("chain_cycle", ids(cycles)),
            ("missing_parent", ids(missing)),
            ("cross_agent_parent", ids(foreign)),
            ("parent_younger", ids(younger)),
        ];
        chains.into_iter().chain([("write_burst", self.bursts())]).collect()
    }

    /// The id of an episode by its place among those that were taken.
    #[must_use]
    pub fn id(&self, place: usize) -> Option<&str> {
        self.marks.get(place).map(|mark| &*mark.id)
    }

    /// An episode as a member of a chain: id, agent, when it started.
    fn member(&self, place: usize) -> Option<(&str, Option<String>, Option<String>)> {
        let mark = self.marks.get(place)?;
        let agent = (mark.agent > 0).then(|| mark.agent.to_string());
        Some((&mark.id, agent, spelled(mark.started)))
    }

    fn bursts(&mut self) -> FindingTally {
        let mut tally = FindingTally::default();
        let mut times = std::mem::take(&mut self.times);
        times.sort_unstable();
        let mut groups: Vec<&[(u64, i64, u64)]> = times.chunk_by(|a, b| a.0 == b.0).collect();
        groups.sort_by_key(|group| group.first().map(|(_, at, _)| *at));
        for group in groups {
            let group: Vec<(i64, u64)> = group.iter().map(|(_, at, key)| (*at, *key)).collect();
            for burst in bank::bursts(&group) {
                let ids = burst.iter().filter_map(|key| Some(self.id(self.place(*key)?)?.to_owned()));
                tally.group(ids.collect(), self.most);
            }
        }
        tally
    }

    /// Links and stored numbers; asked when everything has been taken.
    #[must_use]
    pub fn links(&mut self) -> Faults {
        // Of an id that comes twice any row holds.
        self.events.sort_unstable();
        self.events.dedup_by_key(|(key, _)| *key);
        self.said.sort_by_key(|said| said.key);
        self.said.dedup_by_key(|said| said.key);
        let mut back_canvas: Vec<(u32, u64)> =
            self.events.iter().filter_map(|(key, episode)| Some((self.place(*episode)? as u32, *key))).collect();
        back_canvas.sort_unstable();
        let mut back_said: Vec<(u32, u64)> =
            self.said.iter().filter_map(|said| Some((self.place(said.episode)? as u32, said.key))).collect();
        back_said.sort_unstable();
        let open = self.linkable();
        let unsaid = self.sayable();
        // In an order that is the same each time.
        let mut found: BTreeMap<&'static str, FindingTally> =
            KINDS.iter().map(|kind| (*kind, FindingTally::default())).collect();
        for (place, mark) in self.marks.iter().enumerate() {
            let mut faults = self.faults(place, mark, of(&back_canvas, place), of(&back_said, place));
            faults.extend(open.contains(&place).then_some("not_linked"));
            faults.extend(unsaid.contains(&place).then_some("feedback_not_linked"));
            faults.into_iter().for_each(|kind| found.entry(kind).or_default().add(&mark.id, self.most));
        }
        let mut found: Faults = found.into_iter().collect();
        found.push(("orphan_segment", self.orphans.clone()));
        found.push(("missing_memory", self.missing_memories.clone()));
        found
    }

    /// The episode that a canvas event points back to, 0 for none; none when there is no such event.
    fn event(&self, key: u64) -> Option<u64> {
        let at = self.events.binary_search_by_key(&key, |(known, _)| *known).ok()?;
        self.events.get(at).map(|(_, episode)| *episode)
    }

    fn said(&self, key: u64) -> Option<&LinkedFeedback> {
        self.said.binary_search_by_key(&key, |said| said.key).ok().and_then(|at| self.said.get(at))
    }

    fn faults(
        &self,
        place: usize,
        mark: &EpisodeMark,
        back_canvas: &[(u32, u64)],
        back_said: &[(u32, u64)],
    ) -> Vec<&'static str> {
        let own = short(&mark.id);
        let (canvas, feedback) = (self.hashes(place, CANVAS), self.hashes(place, FEEDBACK));
        let events: Vec<u64> = canvas.iter().filter_map(|key| self.event(*key)).collect();
        let dangling = events.len() < canvas.len() || feedback.iter().any(|key| self.said(*key).is_none());
        let elsewhere = |episode: u64| episode != 0 && episode != own;
        let wrong = mark.canvas_back && events.iter().any(|episode| elsewhere(*episode));
        let no_back = mark.canvas_back && events.contains(&0);
        let further = back_canvas.iter().filter(|(_, key)| canvas.binary_search(key).is_err()).count();
        let not_named = mark.has_list && further > 0;
        let linked = (events.len() + further) as i64;
        let count = mark.counted && mark.count != linked;
        let rows = sorted(feedback.iter().copied().chain(back_said.iter().map(|(_, key)| *key)));
        let scores = rows.iter().filter_map(|key| self.said(*key)).filter(|said| said.counts).map(|said| said.score);
        let mean = feedback::aggregate(scores.filter(|score| !score.is_nan()));
        let same = match (Some(mark.score).filter(|score| !score.is_nan()), mean) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-6,
            (None, None) => true,
            _ => false,
        };
        let faults = [
            (dangling, "dangling_id"),
            (mark.repeats, "repeated_id"),
            (wrong, "wrong_back_link"),
            (no_back || not_named, "one_way_link"),
            (count, "count_differs"),
            (mark.scored && !same, "aggregate_differs"),
        ];
        faults.into_iter().filter_map(|(holds, kind)| holds.then_some(kind)).collect()
    }

    /// Episodes to which a canvas event of their session belongs that is not linked to any.
    fn linkable(&self) -> HashSet<usize> {
        let mut by_session: HashMap<u64, Vec<usize>> = HashMap::new();
        for (place, mark) in self.marks.iter().enumerate().filter(|(_, m)| self.open_sessions.contains(&m.session)) {
            by_session.entry(mark.session).or_default().push(place);
        }
        let mut linkable = HashSet::new();
        for (session, places) in &by_session {
            let Some(events) = self.loose.get(session) else { continue };
            let listed = |place: &usize| self.hashes(*place, CANVAS).iter().copied();
            let lists: HashSet<u64> = places.iter().filter(|p| !self.marks[**p].open).flat_map(listed).collect();
            let unlisted = events.iter().filter(|(_, _, key)| !lists.contains(key));
            let owners = self.owners(places, unlisted.map(|(at, names, _)| (*at, names.as_deref())));
            linkable.extend(owners.into_iter().filter(|place| self.marks[*place].open));
        }
        linkable
    }

    /// Episodes to which feedback on their execution belongs that none of that execution lists.
    fn sayable(&self) -> HashSet<usize> {
        let mut by_execution: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut asked: HashMap<u64, Vec<&LinkedFeedback>> = HashMap::new();
        for said in self.said.iter().filter(|said| said.execution != 0) {
            asked.entry(said.execution).or_default().push(said);
        }
        for place in 0..self.marks.len() {
            for execution in self.hashes(place, EXECUTIONS).iter().filter(|e| asked.contains_key(e)) {
                by_execution.entry(*execution).or_default().push(place);
            }
        }
        let mut sayable = HashSet::new();
        for (execution, places) in &by_execution {
            let listed: HashSet<u64> =
                places.iter().flat_map(|place| self.hashes(*place, FEEDBACK).iter().copied()).collect();
            let said = asked.get(execution).into_iter().flatten().filter(|said| !listed.contains(&said.key));
            let owners = self.owners(places, said.map(|said| (said.at, said.names.as_deref())));
            sayable.extend(owners.into_iter().filter(|place| self.marks[*place].open_feedback));
        }
        sayable
    }

    /// The episodes among some to which what happened at these moments, naming these episodes, belongs.
    fn owners<'e>(&self, places: &[usize], moments: impl Iterator<Item = (i64, Option<&'e str>)>) -> Vec<usize> {
        let marks: Vec<&EpisodeMark> = places.iter().filter_map(|place| self.marks.get(*place)).collect();
        let times: Vec<[Option<String>; 2]> =
            marks.iter().map(|mark| [spelled(mark.started), spelled(mark.ended)]).collect();
        let spans: Vec<EpisodeSpan<'_>> = marks
            .iter()
            .zip(&times)
            .map(|(mark, [started, ended])| EpisodeSpan {
                id: &mark.id,
                started: started.as_deref(),
                ended: ended.as_deref(),
            })
            .collect();
        let spans = SessionSpans::new(&spans);
        let owner = |(at, names): (i64, Option<&str>)| {
            let at = spelled(at);
            spans.owner(CanvasEventTime { at: at.as_deref(), names }).and_then(|i| places.get(i)).copied()
        };
        moments.filter_map(owner).collect()
    }
}

/// What of pairs, in order, belongs to an episode.
fn of(pairs: &[(u32, u64)], place: usize) -> &[(u32, u64)] {
    let start = pairs.partition_point(|(of, _)| (*of as usize) < place);
    let end = pairs.partition_point(|(of, _)| (*of as usize) <= place);
    pairs.get(start..end).unwrap_or_default()
}

/// A moment of a row, in microseconds since 1970.
fn moment(row: &Row, column: &str) -> i64 {
    row.text(column).and_then(time::epoch_micros).unwrap_or(NEVER)
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

fn seen<'m>(member: &'m (&str, Option<String>, Option<String>)) -> ChainMember<'m> {
    ChainMember { id: member.0, agent_id: member.1.as_deref(), started_at: member.2.as_deref() }
}
