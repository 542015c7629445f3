//! What is odd about episodes: links to canvas events and feedback, stored numbers, chains, bursts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{FindingTally, bank, short};
use crate::memory::chain::{self, ChainMember, LinkFault, ParentLinks};
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

#[derive(Debug)]
struct EpisodeMark {
    id: String,
    session: u64,
    started: Option<String>,
    ended: Option<String>,
    executions: Vec<u64>,
    canvas: Vec<u64>,
    feedback: Vec<u64>,
    has_list: bool,
    repeats: bool,
    /// Its list of canvas events is there to be filled.
    open: bool,
    /// Its list of feedback is there to be filled.
    open_feedback: bool,
    /// There is a place for the number of its canvas events, and their list can be read.
    counted: bool,
    count: Option<i64>,
    /// The same of the score of its feedback.
    scored: bool,
    score: Option<f64>,
    canvas_back: bool,
}

#[derive(Debug)]
struct LinkedEvent {
    episode: u64,
    session: u64,
}

#[derive(Debug)]
struct LinkedFeedback {
    episode: u64,
    execution: u64,
    /// What it names as its episode, and when it was: only of what names an execution.
    names: Option<String>,
    at: Option<String>,
    score: Option<f64>,
    counts: bool,
}

/// An event that may still be linked: when it was and what it names.
type Loose = (Option<String>, Option<String>, u64);

/// Episodes with what hangs on them, as far as findings need it. Episodes come first.
#[derive(Debug, Default)]
pub struct LinkedEpisodes {
    marks: Vec<EpisodeMark>,
    places: HashMap<u64, usize>,
    parents: Vec<(String, String)>,
    members: HashMap<u64, (Option<String>, Option<String>)>,
    open_sessions: HashSet<u64>,
    events: HashMap<u64, LinkedEvent>,
    loose: HashMap<u64, Vec<Loose>>,
    said: HashMap<u64, LinkedFeedback>,
    orphans: FindingTally,
    times: HashMap<u64, Vec<(i64, u64)>>,
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
        let text = |column: &str| row.text(column).map(str::to_owned);
        let session = row.text("session_id").filter(|s| !s.is_empty()).map_or(0, short);
        if let Some(parent) = row.text("parent_id") {
            self.parents.push((row.id().to_owned(), parent.to_owned()));
        }
        self.members.insert(key, (text("agent_id"), text("started_at")));
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
            self.times.entry(short(&by)).or_default().push((at, key));
        }
        let distinct = |ids: &[&str]| ids.iter().collect::<HashSet<_>>().len() == ids.len();
        let executions = sorted(row.list("execution_ids").into_iter().map(short));
        self.places.insert(key, self.marks.len());
        self.marks.push(EpisodeMark {
            id: row.id().to_owned(),
            session,
            started: text("started_at"),
            ended: text("ended_at"),
            executions,
            canvas: sorted(named.canvas.iter().map(|id| short(id))),
            feedback: sorted(named.feedback.iter().map(|id| short(id))),
            has_list: readable && !row.get("canvas_ids").is_null(),
            repeats: !distinct(&listed) || !distinct(&row.list("feedback_ids")),
            open,
            open_feedback: named.fillable[1] && row.is_readable("feedback_ids") && row.list("feedback_ids").is_empty(),
            counted: named.counted && readable && (row.is_readable("metadata") || !row.get("metadata").is_null()),
            count: row.get("canvas_action_count").as_i64(),
            scored: named.scored && row.is_readable("feedback_ids"),
            score: row.number("feedback_score"),
            canvas_back: named.canvas_back,
        });
    }

    /// Takes a canvas event.
    pub fn canvas(&mut self, row: &Row) {
        let session = row.text("session_id").map_or(0, short);
        let key = short(row.id());
        if self.open_sessions.contains(&session) {
            let text = |column: &str| row.text(column).map(str::to_owned);
            self.loose.entry(session).or_default().push((text("created_at"), text("episode_id"), key));
        }
        self.events.insert(key, LinkedEvent { episode: row.text("episode_id").map_or(0, short), session });
    }

    /// Takes feedback.
    pub fn feedback(&mut self, row: &Row) {
        let execution = row.text("execution_id").filter(|e| !e.is_empty()).map_or(0, short);
        let text = |column: &str| row.text(column).filter(|_| execution != 0).map(str::to_owned);
        let said = LinkedFeedback {
            episode: row.text("episode_id").map_or(0, short),
            execution,
            names: text("episode_id"),
            at: text("created_at"),
            score: row.number("score"),
            counts: row.get("counts").as_bool().unwrap_or(true),
        };
        self.said.insert(short(row.id()), said);
    }

    /// Takes a segment.
    pub fn segment(&mut self, row: &Row) {
        if row.text("episode_id").is_some_and(|id| !self.places.contains_key(&short(id))) {
            self.orphans.add(row.id(), self.most);
        }
    }

    /// Takes a link to a memory that is not there.
    pub fn memory_is_missing(&mut self, episode: &str) {
        self.missing_memories.add(episode, self.most);
    }

    /// Chains and bursts: what episodes alone tell.
    #[must_use]
    pub fn chains(&self) -> Faults {
        let ids = |mut ids: Vec<String>| {
            ids.sort_unstable();
            FindingTally::of(ids, self.most)
        };
        let links = ParentLinks::new(self.parents.iter().map(|(id, parent)| (id.clone(), Some(parent.clone()))));
        let circles = links.cycles();
        // In a circle some parent is always younger: that is no finding of its own.
        let circling: HashSet<&str> = circles.iter().flatten().map(String::as_str).collect();
        let member =
            |id: &str| self.members.get(&short(id)).map(|(agent, at)| (id.to_owned(), agent.clone(), at.clone()));
        let (mut missing, mut foreign, mut younger) = (Vec::new(), Vec::new(), Vec::new());
        for (id, parent) in &self.parents {
            let Some(child) = member(id) else { continue };
            let mother = member(parent);
            let faults = chain::faults(seen(&child), mother.as_ref().map(seen));
            for fault in faults {
                match fault {
                    LinkFault::MissingParent => missing.push(id.clone()),
                    LinkFault::ForeignParent => foreign.push(id.clone()),
                    LinkFault::YoungerParent if !circling.contains(id.as_str()) => younger.push(id.clone()),
                    LinkFault::YoungerParent | LinkFault::SelfParent => {}
                }
            }
        }
        let cycles = circles.iter().filter_map(|circle| circle.iter().min().cloned()).collect();
        vec![
            ("chain_cycle", ids(cycles)),
            ("missing_parent", ids(missing)),
            ("cross_agent_parent", ids(foreign)),
            ("parent_younger", ids(younger)),
            ("write_burst", self.bursts()),
        ]
    }

    fn bursts(&self) -> FindingTally {
        let mut tally = FindingTally::default();
        let mut times: Vec<&Vec<(i64, u64)>> = self.times.values().collect();
        times.sort_by_key(|t| t.iter().map(|(at, _)| *at).min());
        for burst in times.into_iter().flat_map(|t| bank::bursts(t)) {
            let ids = burst.iter().filter_map(|key| Some(self.marks[*self.places.get(key)?].id.clone()));
            tally.group(ids.collect(), self.most);
        }
        tally
    }

    /// Links and stored numbers; asked when everything has been taken.
    #[must_use]
    pub fn links(&self) -> Faults {
        let mut extra_canvas: HashMap<usize, Vec<u64>> = HashMap::new();
        for (key, event) in &self.events {
            if let Some(place) = self.places.get(&event.episode) {
                extra_canvas.entry(*place).or_default().push(*key);
            }
        }
        let mut extra_feedback: HashMap<usize, Vec<u64>> = HashMap::new();
        for (key, said) in &self.said {
            if let Some(place) = self.places.get(&said.episode) {
                extra_feedback.entry(*place).or_default().push(*key);
            }
        }
        let open = self.linkable();
        let unsaid = self.sayable();
        let none = Vec::new();
        // In an order that is the same each time.
        let mut found: BTreeMap<&'static str, FindingTally> =
            KINDS.iter().map(|kind| (*kind, FindingTally::default())).collect();
        for (place, mark) in self.marks.iter().enumerate() {
            let canvas = extra_canvas.get(&place).unwrap_or(&none);
            let said = extra_feedback.get(&place).unwrap_or(&none);
            let mut faults = self.faults(mark, canvas, said);
            faults.extend(open.contains(&place).then_some("not_linked"));
            faults.extend(unsaid.contains(&place).then_some("feedback_not_linked"));
            faults.into_iter().for_each(|kind| found.entry(kind).or_default().add(&mark.id, self.most));
        }
        let mut found: Faults = found.into_iter().collect();
        found.push(("orphan_segment", self.orphans.clone()));
        found.push(("missing_memory", self.missing_memories.clone()));
        found
    }

    fn faults(&self, mark: &EpisodeMark, back_canvas: &[u64], back_said: &[u64]) -> Vec<&'static str> {
        let own = short(&mark.id);
        let events: Vec<(u64, &LinkedEvent)> =
            mark.canvas.iter().filter_map(|k| Some((*k, self.events.get(k)?))).collect();
        let dangling = events.len() < mark.canvas.len() || mark.feedback.iter().any(|k| !self.said.contains_key(k));
        let elsewhere = |episode: u64| episode != 0 && episode != own;
        let wrong = mark.canvas_back && events.iter().any(|(_, e)| elsewhere(e.episode));
        let no_back = mark.canvas_back && events.iter().any(|(_, e)| e.episode == 0);
        let further = back_canvas.iter().filter(|k| mark.canvas.binary_search(k).is_err()).count();
        let not_named = mark.has_list && further > 0;
        let linked = (events.len() + further) as i64;
        let count = mark.counted && mark.count.unwrap_or_default() != linked;
        let rows: HashSet<u64> = mark.feedback.iter().chain(back_said).copied().collect();
        let rows: Vec<&LinkedFeedback> = rows.iter().filter_map(|k| self.said.get(k)).collect();
        let mean = feedback::aggregate(rows.iter().filter(|s| s.counts).filter_map(|s| s.score));
        let same = match (mark.score, mean) {
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
            let spans = self.spans(places);
            let lists: HashSet<u64> = places
                .iter()
                .filter(|p| !self.marks[**p].open)
                .flat_map(|p| self.marks[*p].canvas.iter().copied())
                .collect();
            for (at, names, key) in events.iter().filter(|(_, _, key)| !lists.contains(key)) {
                debug_assert!(self.events.get(key).is_some_and(|e| e.session == *session));
                let moment = CanvasEventTime { at: at.as_deref(), names: names.as_deref() };
                let place = spans.owner(moment).and_then(|i| places.get(i));
                linkable.extend(place.filter(|p| self.marks[**p].open));
            }
        }
        linkable
    }

    /// Episodes to which feedback on their execution belongs that none of that execution lists.
    fn sayable(&self) -> HashSet<usize> {
        let mut by_execution: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut asked: HashMap<u64, Vec<(&u64, &LinkedFeedback)>> = HashMap::new();
        for (key, said) in self.said.iter().filter(|(_, said)| said.execution != 0) {
            asked.entry(said.execution).or_default().push((key, said));
        }
        for (place, mark) in self.marks.iter().enumerate() {
            for execution in mark.executions.iter().filter(|e| asked.contains_key(e)) {
                by_execution.entry(*execution).or_default().push(place);
            }
        }
        let mut sayable = HashSet::new();
        for (execution, places) in &by_execution {
            let spans = self.spans(places);
            let listed: HashSet<&u64> = places.iter().flat_map(|p| &self.marks[*p].feedback).collect();
            for (_, said) in asked.get(execution).into_iter().flatten().filter(|(key, _)| !listed.contains(key)) {
                let moment = CanvasEventTime { at: said.at.as_deref(), names: said.names.as_deref() };
                let place = spans.owner(moment).and_then(|i| places.get(i));
                sayable.extend(place.filter(|p| self.marks[**p].open_feedback));
            }
        }
        sayable
    }

    fn spans(&self, places: &[usize]) -> SessionSpans<'_> {
        SessionSpans::new(&places.iter().map(|p| span(&self.marks[*p])).collect::<Vec<_>>())
    }
}

/// Hashes in order, once each.
fn sorted(hashes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut hashes: Vec<u64> = hashes.collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn span(mark: &EpisodeMark) -> EpisodeSpan<'_> {
    EpisodeSpan { id: &mark.id, started: mark.started.as_deref(), ended: mark.ended.as_deref() }
}

fn seen(member: &(String, Option<String>, Option<String>)) -> ChainMember<'_> {
    ChainMember { id: &member.0, agent_id: member.1.as_deref(), started_at: member.2.as_deref() }
}
