//! Findings about episodes: links to canvas events and feedback, stored numbers, chains, bursts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::marks::{EpisodeMark, EpisodeMarks, MarkFlag, NEVER, NamedKind, cut, moment};
use super::{FindingTally, bank, short};
use crate::memory::chain::{self, ChainMember, LinkFault};
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
#[derive(Debug, Default)]
pub struct LinkedEpisodes {
    marks: EpisodeMarks,
    /// Episodes with the parent that they name.
    parents: Vec<(u32, u64)>,
    open_sessions: HashSet<u64>,
    /// Other canvas events with the episode that each points back to.
    events: Vec<(u64, u64)>,
    loose: Vec<LooseEvent>,
    said: Vec<LinkedFeedback>,
    orphans: FindingTally,
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
        let session = row.text("session_id").filter(|s| !s.is_empty()).map_or(0, short);
        if let Some(parent) = row.text("parent_id") {
            self.parents.push((self.marks.len() as u32, short(parent)));
        }
        let readable = row.is_readable("canvas_ids");
        let (listed, feedback_listed) = (row.list("canvas_ids"), row.list("feedback_ids"));
        let open = named.fillable[0] && session != 0 && listed.is_empty() && readable;
        if open {
            self.open_sessions.insert(session);
        }
        let feedback_readable = row.is_readable("feedback_ids");
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
        mark.user = row.text("user_id").filter(|user| !user.is_empty()).map_or(0, |name| self.marks.number(name));
        let executions = row.list("execution_ids").into_iter().map(|id| (NamedKind::Executions, short(id)));
        let canvas = named.canvas.iter().map(|id| (NamedKind::Canvas, short(id)));
        let feedback = named.feedback.iter().map(|id| (NamedKind::Feedback, short(id)));
        self.marks.add(row.id(), &mark, executions.chain(canvas).chain(feedback));
    }

    /// The place of an episode by its id; none when there is no such episode.
    #[must_use]
    pub fn place(&self, id: &str) -> Option<usize> {
        self.marks.place(short(id))
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
        let (key, names) = (short(row.id()), self.named_by(row));
        let session = row.text("session_id").map_or(0, short);
        if self.open_sessions.contains(&session) && self.may_be_linked(session, names) {
            self.loose.push(LooseEvent { session, key, at: moment(row, "created_at"), names });
        }
        if let NamedEpisode::At(place) = names
            && let Some(hash) = self.marks.only_named(place as usize, NamedKind::Canvas, key)
        {
            self.marks.meet(hash);
            return;
        }
        self.events.push((key, row.text("episode_id").map_or(0, short)));
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
        let (key, names) = (short(row.id()), self.named_by(row));
        let execution = row.text("execution_id").filter(|e| !e.is_empty()).map_or(0, short);
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
    #[must_use]
    pub fn chains(&mut self) -> Faults {
        self.marks.index();
        let mut found = self.chain_faults();
        self.parents = Vec::new();
        self.marks.forget_agents();
        found.push(("write_burst", self.bursts()));
        self.marks.forget_users();
        found
    }

    fn chain_faults(&self) -> Faults {
        // In the order of their places.
        let child = |at: usize| self.parents.get(at).map(|(child, _)| *child as usize);
        let parent_of = |at: usize| {
            let mother = self.marks.place(self.parents.get(at)?.1)?;
            self.parents.binary_search_by_key(&mother, |(child, _)| *child as usize).ok()
        };
        // Only what has a parent is in a circle.
        let circles: Vec<Vec<usize>> = chain::circles(self.parents.len(), parent_of);
        let circles: Vec<Vec<usize>> =
            circles.into_iter().map(|circle| circle.into_iter().filter_map(child).collect()).collect();
        // In a circle some parent is always younger: that is no finding of its own.
        let circling: HashSet<usize> = circles.iter().flatten().copied().collect();
        let (mut missing, mut foreign, mut younger) = (Vec::new(), Vec::new(), Vec::new());
        for (place, parent) in &self.parents {
            let place = *place as usize;
            let Some(child) = self.member(place) else { continue };
            let mother = self.marks.place(*parent).and_then(|parent| self.member(parent));
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

    /// Episodes of one person and session that began within a minute.
    fn bursts(&self) -> FindingTally {
        let mut tally = FindingTally::default();
        let of = |place: &u32| (self.marks.user(*place as usize), self.marks.session(*place as usize));
        let at = |place: &u32| self.marks.started(*place as usize);
        let told = |place: &u32| of(place) != (0, 0) && at(place) != NEVER;
        let mut places: Vec<u32> = (0..self.marks.len() as u32).filter(told).collect();
        places.sort_unstable_by_key(|place| (of(place), at(place)));
        let mut groups: Vec<&[u32]> =
            places.chunk_by(|a, b| of(a) == of(b)).filter(|group| group.len() >= bank::BURST).collect();
        groups.sort_by_key(|group| group.first().map(at));
        for group in groups {
            let group: Vec<(i64, u64)> =
                group.iter().map(|place| (at(place), self.marks.key(*place as usize))).collect();
            for burst in bank::bursts(&group) {
                let ids = burst.iter().filter_map(|key| Some(self.id(self.marks.place(*key)?)?.into_owned()));
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
            self.events.iter().filter_map(|(key, episode)| Some((self.marks.place(*episode)? as u32, *key))).collect();
        back_canvas.sort_unstable();
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
            let mut faults = self.faults(place, of(&back_canvas, place), of(&back_said, place));
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
        found
    }

    /// The episode that a canvas event points back to, 0 for none; none when there is no such event.
    fn event(&self, named: u64) -> Option<u64> {
        let at = self.events.binary_search_by_key(&named, |(known, _)| cut(*known)).ok()?;
        self.events.get(at).map(|(_, episode)| *episode)
    }

    fn said(&self, named: u64) -> Option<&LinkedFeedback> {
        self.said.binary_search_by_key(&named, |said| cut(said.key)).ok().and_then(|at| self.said.get(at))
    }

    fn faults(&self, place: usize, back_canvas: &[(u32, u64)], back_said: &[(u32, u64)]) -> Vec<&'static str> {
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
        let further = back_canvas.iter().filter(|(_, key)| !named(*key)).count();
        let not_named = is(MarkFlag::HasList) && further > 0;
        let count = is(MarkFlag::Counted) && self.marks.count(place) != linked + further as i32;
        let unmet = self.marks.named(place, NamedKind::Feedback).filter(|(_, met)| !met).map(|(named, _)| named);
        let rows = sorted(unmet.chain(back_said.iter().map(|(_, key)| cut(*key))));
        let told: Vec<&LinkedFeedback> = rows.iter().filter_map(|named| self.said(*named)).collect();
        // What points back is there.
        dangling |= told.len() < rows.len();
        let score = self.marks.score(place);
        let (mut sum, mut n) = score.map_or((0.0, 0), |score| (score.sum, score.scored));
        for score in told.iter().map(|said| said.score).filter(|score| !score.is_nan()) {
            (sum, n) = (sum + score, n + 1);
        }
        let mean = (n > 0).then(|| sum / f64::from(n));
        let same = match (score.map(|score| score.stored).filter(|score| !score.is_nan()), mean) {
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
        for place in 0..self.marks.len() {
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

    fn told(story: &LinkedEpisodes, faults: &Faults) -> Vec<String> {
        assert!(story.id(0).is_some());
        let told = faults.iter().filter(|(_, tally)| tally.count > 0);
        told.map(|(kind, tally)| format!("{kind} {}", tally.examples.join(" "))).collect()
    }

    /// An episode: its id, canvas events and feedback that it names, its count and score.
    type Told<'t> = (&'t str, &'t [&'t str], &'t [&'t str], i64, Option<f64>);

    fn story(episodes: &[Told<'_>]) -> LinkedEpisodes {
        let mut story = LinkedEpisodes::new(5);
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
        let chains = story.chains();
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
        let mut story = story(&[("a", &["c1", "c2"], &["f1", "f2"], 2, Some(0.5)), ("b", &[], &[], 0, None)]);
        for id in ["c1", "c2"] {
            event(&mut story, id, Some("a"), "session of a");
        }
        said(&mut story, "f1", Some("a"), "run of a", 1.0);
        said(&mut story, "f2", Some("a"), "", 0.0);
        let found = story.links();
        assert_eq!(told(&story, &found), Vec::<String>::new());
    }

    #[test]
    fn what_two_episodes_name_belongs_to_the_one_that_it_names() {
        let mut story = story(&[("a", &["c1"], &["f1"], 1, Some(1.0)), ("b", &["c1"], &["f1"], 1, Some(0.0))]);
        event(&mut story, "c1", Some("a"), "session of a");
        said(&mut story, "f1", Some("a"), "run of a", 1.0);
        let found = story.links();
        assert_eq!(told(&story, &found), ["aggregate_differs b", "wrong_back_link b"]);
    }

    #[test]
    fn links_that_lead_one_way_or_nowhere_are_told() {
        let mut story = story(&[
            ("a", &["c1", "gone"], &["nowhere"], 1, None),
            ("b", &[], &[], 0, None),
            ("c", &["c3"], &[], 1, Some(-1.0)),
        ]);
        event(&mut story, "c1", None, "session of a");
        event(&mut story, "c2", Some("b"), "session of b");
        event(&mut story, "c3", Some("c"), "session of c");
        event(&mut story, "c4", None, "session of b");
        said(&mut story, "f2", None, "run of b", 1.0);
        said(&mut story, "f3", Some("c"), "run of c", -1.0);
        let found = story.links();
        assert_eq!(
            told(&story, &found),
            ["count_differs b", "dangling_id a", "feedback_not_linked b c", "not_linked b", "one_way_link a b",]
        );
    }
}
