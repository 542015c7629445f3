//! Findings about episodes: links to canvas events and feedback, stored numbers, chains, bursts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::io;

use super::bursts::bursts;
use super::marks::{EpisodeMark, EpisodeMarks, LINKED, MarkFlag, NEVER, NamedKind, cut, moment};
use super::tally::FindingTally;
use crate::memory::chain::{self, ChainMember, LinkFault};
use crate::memory::digest::digest;
use crate::memory::first_of::FirstOf;
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::records::{Record, RecordSorter, RecordStream, SortedRecords, ordered, unordered};
use crate::memory::packed::space::MakeSpace;
use crate::memory::session_links::{CanvasEventTime, EpisodeSpan, SessionSpans, user_of};
use crate::memory::{Row, score, time};

/// Rows that an episode names, in its lists and elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedLinks<'e> {
    /// Canvas events.
    pub canvas: Vec<Cow<'e, str>>,
    /// Feedback.
    pub feedback: Vec<Cow<'e, str>>,
    /// Whether canvas events have a back-link to their episode.
    pub canvas_back: bool,
    /// Whether the number of its canvas events is stored.
    pub counted: bool,
    /// Whether the score of its feedback is stored.
    pub scored: bool,
    /// For the list of canvas events and that of feedback: whether it can be filled. A list that nobody may write needs
    /// no fix.
    pub fillable: [bool; 2],
}

/// The episode that a row names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NamedEpisode {
    /// No episode is named.
    None,
    /// The episode with this index.
    At(u32),
    /// A missing episode.
    Unknown,
}

impl NamedEpisode {
    /// Encodes it in a record.
    fn number(self) -> u64 {
        match self {
            NamedEpisode::None => 0,
            NamedEpisode::Unknown => 1,
            NamedEpisode::At(place) => u64::from(place) + 2,
        }
    }

    /// Decodes it from a record.
    fn of(number: u64) -> Self {
        match number {
            0 => NamedEpisode::None,
            1 => NamedEpisode::Unknown,
            at => NamedEpisode::At((at - 2) as u32),
        }
    }
}

/// Episodes with the rows that depend on them, as far as findings need them. Add episodes first, then call
/// [`LinkedEpisodes::chains`]. A link stated on both sides needs only a bit.
#[derive(Debug)]
pub struct LinkedEpisodes {
    marks: EpisodeMarks,
    /// Episodes by user and agent, and by user and session, each by start, with what stands for their id.
    begun: [RecordSorter<4>; 2],
    /// Sessions with an episode whose list of canvas events can be filled; known once all episodes are.
    open: RecordSorter<1>,
    open_sessions: IdTable<1>,
    /// Other canvas events with the episode of their back-link, 0 for none.
    events: RecordSorter<2>,
    /// The same, by shortened id digest, if episodes name them.
    events_by_name: IdTable<3>,
    /// Those of them that the list of an episode names, though they do not point back to it.
    claimed: IdTable<1>,
    /// Events that may still be linked, by session: what is kept of the id, time, the episode that each names, whose list is
    /// there to be filled, and user.
    loose: RecordSorter<5>,
    /// Feedback that its episode does not name, or that others may name too: id, execution, named episode, time, score, which
    /// is not a number where it has none that counts, and user.
    said: RecordSorter<6>,
    /// Scores of the same, by what is kept of its ids where episodes name it.
    said_by_name: IdTable<2>,
    orphans: FindingTally,
    missing_memories: FindingTally,
    most: usize,
    space: MakeSpace,
}

/// Kinds of findings about links and stored numbers.
const KINDS: &[&str] = &[
    "dangling_id", "repeated_id", "wrong_back_link", "one_way_link", "count_differs", "aggregate_differs",
    "not_linked", "feedback_not_linked",
];

/// Kinds that are fixed in lists.
const IN_LISTS: [&str; 2] = ["dangling_id", "repeated_id"];

/// Faults of links, of counts and of chains, by kind.
pub type Faults = Vec<(&'static str, FindingTally)>;

impl LinkedEpisodes {
    /// Creates an empty collection whose findings name at most `most` examples. Data that does not fit in memory goes
    /// to `space`.
    pub fn new(most: usize, space: MakeSpace) -> Self {
        LinkedEpisodes {
            marks: EpisodeMarks::new(space),
            begun: [(); 2].map(|()| RecordSorter::new(space).within(LINKED)),
            open: RecordSorter::new(space).within(LINKED),
            open_sessions: IdTable::default(),
            events: RecordSorter::new(space).within(LINKED),
            events_by_name: IdTable::default(),
            claimed: IdTable::default(),
            loose: RecordSorter::new(space).within(LINKED),
            said: RecordSorter::new(space).within(LINKED),
            said_by_name: IdTable::default(),
            orphans: FindingTally::default(),
            missing_memories: FindingTally::default(),
            most,
            space,
        }
    }

    /// Sets the memory limit.
    #[cfg(test)]
    fn within(self, bytes: usize) -> Self {
        let begun = self.begun.map(|begun| begun.within(bytes));
        let (open, events) = (self.open.within(bytes), self.events.within(bytes));
        let (loose, said) = (self.loose.within(bytes), self.said.within(bytes));
        LinkedEpisodes { marks: EpisodeMarks::within(bytes, self.space), begun, open, events, loose, said, ..self }
    }

    /// Adds an episode with the rows it names.
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
            (MarkFlag::OpenFeedback, named.fillable[1] && feedback_readable),
            (
                MarkFlag::Counted,
                named.counted && readable && (row.is_readable("metadata") || !row.get("metadata").is_null()),
            ),
            (MarkFlag::Scored, named.scored && feedback_readable),
            (MarkFlag::CanvasBack, named.canvas_back),
            (MarkFlag::Beyond, !(readable && feedback_readable) || names_more(named, &listed, &feedback_listed)),
        ];
        let mut mark = EpisodeMark::new(row, session, &flags);
        mark.agent = row.text("agent_id").map_or(0, |name| self.marks.number(name));
        let user = user_of(row);
        let started = moment(row, "started_at");
        let agent = row.text("agent_id").filter(|agent| !agent.is_empty()).map_or(0, digest);
        let owners = [(user != 0 && agent != 0, agent), ((user, session) != (0, 0), session)];
        for (begun, (is_known, other)) in self.begun.iter_mut().zip(owners) {
            if is_known && started != NEVER {
                begun.add([user, other, ordered(started), digest(row.id())]);
            }
        }
        let executions = row.list("execution_ids").into_iter().map(|id| (NamedKind::Executions, digest(id)));
        let canvas = named.canvas.iter().map(|id| (NamedKind::Canvas, digest(id)));
        let feedback = named.feedback.iter().map(|id| (NamedKind::Feedback, digest(id)));
        self.marks.add(row.id(), &mark, executions.chain(canvas).chain(feedback));
    }

    /// The index of an episode by its id; `None` if there is no such episode.
    pub fn place(&self, id: &str) -> Option<usize> {
        self.marks.place(digest(id))
    }

    /// The id of an episode by its index.
    pub fn id(&self, place: usize) -> Option<Cow<'_, str>> {
        self.marks.id(place)
    }

    fn named_by(&self, row: &Row) -> NamedEpisode {
        match row.text("episode_id") {
            None => NamedEpisode::None,
            Some(id) => self.place(id).map_or(NamedEpisode::Unknown, |place| NamedEpisode::At(place as u32)),
        }
    }

    /// Adds a canvas event.
    pub fn canvas(&mut self, row: &Row) {
        let (key, names) = (digest(row.id()), self.named_by(row));
        let session = row.text("session_id").map_or(0, digest);
        if self.open_sessions.find(session).is_some() && self.may_be_linked(session, names) {
            let at = ordered(moment(row, "created_at"));
            self.loose.add([session, cut(key), at, names.number(), user_of(row)]);
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

    /// Adds feedback.
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
        let at = ordered(moment(row, "created_at"));
        self.said.add([key, execution, names.number(), at, score.to_bits(), user_of(row)]);
    }

    /// Adds a segment.
    pub fn segment(&mut self, row: &Row) {
        if row.text("episode_id").is_some_and(|id| self.place(id).is_none()) {
            self.orphans.add(row.id(), self.most);
        }
    }

    /// Adds a link to a missing memory.
    pub fn memory_is_missing(&mut self, episode: &str) {
        self.missing_memories.add(episode, self.most);
    }

    /// Findings from episodes alone, chains and bursts. All episodes have been added.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn chains(&mut self) -> io::Result<Faults> {
        self.marks.index()?;
        self.open_sessions = IdTable::of(self.open.take(), |_, _| {})?;
        let mut found = self.chain_faults();
        self.marks.forget_agents();
        let begun = self.begun.each_mut().map(RecordSorter::take);
        let id = |key| Some(self.id(self.marks.place(key)?)?.into_owned());
        found.push(("write_burst", bursts(begun, self.space, self.most, id)?));
        self.marks.check()?;
        Ok(found)
    }

    fn chain_faults(&self) -> Faults {
        let parent_of = |place: usize| self.marks.place(self.marks.parent(place)?);
        let circles = chain::circles(self.marks.len(), parent_of);
        // In a cycle some parent is always younger, so that is not reported separately.
        let circling: HashSet<usize> = circles.iter().flatten().copied().collect();
        let none = || FirstOf::new(self.most);
        let (mut cycles, mut missing, mut foreign, mut younger) = (none(), none(), none(), none());
        for place in 0..self.marks.len() {
            let Some(parent) = self.marks.parent(place) else { continue };
            let Some(child) = self.member(place) else { continue };
            let mother = self.marks.place(parent).and_then(|parent| self.member(parent));
            for fault in chain::faults(seen(&child), mother.as_ref().map(seen)) {
                match fault {
                    LinkFault::MissingParent => missing.add(child.0.to_string()),
                    LinkFault::ForeignParent => foreign.add(child.0.to_string()),
                    LinkFault::YoungerParent if !circling.contains(&place) => younger.add(child.0.to_string()),
                    LinkFault::YoungerParent | LinkFault::SelfParent => {}
                }
            }
        }
        let first = |circle: &Vec<usize>| circle.iter().filter_map(|place| self.id(*place)).min().map(Cow::into_owned);
        circles.iter().filter_map(first).for_each(|id| cycles.add(id));
        vec![
            ("chain_cycle", FindingTally::of_first(cycles, Some)),
            ("missing_parent", FindingTally::of_first(missing, Some)),
            ("cross_agent_parent", FindingTally::of_first(foreign, Some)),
            ("parent_younger", FindingTally::of_first(younger, Some)),
        ]
    }

    /// An episode as a member of a chain: id, agent, when it started.
    fn member(&self, place: usize) -> Option<(Cow<'_, str>, Option<String>, Option<String>)> {
        let agent = Some(self.marks.agent(place)).filter(|agent| *agent > 0).map(|agent| agent.to_string());
        Some((self.id(place)?, agent, spelled(self.marks.started(place))))
    }

    /// Findings about links and stored numbers, after everything has been added.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn links(&mut self) -> io::Result<Faults> {
        self.marks.sum_up()?;
        let back_canvas = self.back_canvas()?;
        let mut back_canvas = PlaceStream::of(back_canvas.stream()?)?;
        let (back_said, by_execution) = self.back_feedback()?;
        let mut back_said = PlaceStream::of(back_said.stream()?)?;
        let (open, unsaid) = (self.linkable()?, self.sayable(&by_execution)?);
        let (mut open, mut unsaid) = (PlaceStream::of(open.stream()?)?, PlaceStream::of(unsaid.stream()?)?);
        // In a deterministic order.
        let mut found: BTreeMap<&'static str, FindingTally> =
            KINDS.iter().map(|kind| (*kind, FindingTally::default())).collect();
        let mut corrected = false;
        for place in 0..self.marks.len() {
            let mut faults = self.faults(place, back_canvas.at(place)?, back_said.at(place)?);
            faults.extend((!open.at(place)?.is_empty()).then_some("not_linked"));
            faults.extend((!unsaid.at(place)?.is_empty()).then_some("feedback_not_linked"));
            if faults.is_empty() {
                continue;
            }
            let id = self.id(place).unwrap_or_default();
            corrected |= !self.marks.is(place, MarkFlag::Beyond) && faults.iter().any(|kind| IN_LISTS.contains(kind));
            faults.into_iter().for_each(|kind| found.entry(kind).or_default().add(&id, self.most));
        }
        for kind in IN_LISTS {
            found.entry(kind).or_default().by_hand = !corrected;
        }
        let mut found: Faults = found.into_iter().collect();
        found.push(("orphan_segment", self.orphans.clone()));
        found.push(("missing_memory", self.missing_memories.clone()));
        self.open_sessions.check()?;
        self.events_by_name.check()?;
        self.claimed.check()?;
        self.said_by_name.check()?;
        self.marks.check()?;
        Ok(found)
    }

    /// The events that no episode's link matched, by the index of the episode of their back-link. Afterwards they are
    /// found by id.
    fn back_canvas(&mut self) -> io::Result<SortedRecords<2>> {
        let sorted = self.events.take().sorted()?;
        let (mut back, mut by_name) = (RecordSorter::new(self.space), RecordSorter::new(self.space));
        let mut stream = sorted.stream()?;
        // If an id is repeated, any of its rows counts.
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
        self.claimed = self.claims()?;
        back.sorted()
    }

    /// The events that an episode names, though they do not point back to it. An episode whose list is still to be filled
    /// claims none.
    fn claims(&self) -> io::Result<IdTable<1>> {
        let mut claimed = RecordSorter::new(self.space).within(LINKED);
        for place in (0..self.marks.len()).filter(|place| !self.marks.is(*place, MarkFlag::Open)) {
            let unmet = self.marks.named(place, NamedKind::Canvas).filter(|(_, met)| !met).map(|(named, _)| named);
            unmet.filter(|named| self.event(*named).is_some()).for_each(|named| claimed.add([named]));
        }
        IdTable::of(claimed, |_, _| {})
    }

    /// The episode of a canvas event's back-link, 0 for none; `None` if there is no such event.
    fn event(&self, named: u64) -> Option<u64> {
        self.events_by_name.find(named).map(|[_, _, episode]| episode)
    }

    /// The feedback that no episode's link met: by the place of the episode that it points back to, with its score, and by
    /// its execution, with id, named episode and time. From here on it is found by its ids.
    fn back_feedback(&mut self) -> io::Result<(SortedRecords<3>, SortedRecords<5>)> {
        let sorted = self.said.take().sorted()?;
        let mut back = RecordSorter::new(self.space).within(LINKED);
        let mut by_execution = RecordSorter::new(self.space).within(LINKED);
        let mut by_name = RecordSorter::new(self.space).within(LINKED);
        let mut stream = sorted.stream()?;
        while let Some(key) = stream.group() {
            // If an id is repeated, its most complete row counts.
            let mut last = None;
            while let Some(record) = stream.next_of(key)? {
                last = Some(record);
            }
            let Some([_, execution, names, at, score, user]) = last else { continue };
            by_name.add([cut(key), score]);
            if let NamedEpisode::At(place) = NamedEpisode::of(names) {
                back.add([u64::from(place), cut(key), score]);
            }
            if execution != 0 {
                by_execution.add([cut(execution), cut(key), at, names, user]);
            }
        }
        self.said_by_name = IdTable::of(by_name, |_, _| {})?;
        Ok((back.sorted()?, by_execution.sorted()?))
    }

    /// The score of feedback that no episode's link matched; `None` if there is no such feedback.
    fn said(&self, named: u64) -> Option<f64> {
        self.said_by_name.find(named).map(|[_, score]| f64::from_bits(score))
    }

    fn faults(&self, place: usize, back_canvas: &[Record<2>], back_said: &[Record<3>]) -> Vec<&'static str> {
        let is = |flag| self.marks.is(place, flag);
        let (mut linked, mut dangling, mut wrong, mut no_back) = (0, false, false, false);
        for (named, met) in self.marks.named(place, NamedKind::Canvas) {
            let episode = if met { None } else { self.event(named) };
            linked += i32::from(met || episode.is_some());
            dangling |= !met && episode.is_none();
            // If several episodes name it, its owner is unknown.
            let belongs = !self.marks.is_shared(NamedKind::Canvas, named);
            no_back |= episode == Some(0) && belongs;
            wrong |=
                episode.is_some_and(|episode| if episode == 0 { !belongs } else { episode != self.marks.key(place) });
        }
        let named = |key: u64| self.marks.names(place, NamedKind::Canvas, key);
        let further: Vec<u64> = back_canvas.iter().map(|[_, key]| *key).filter(|key| !named(*key)).collect();
        // The back-link of an event that another episode lists is in doubt: it may count or not.
        let doubtful = further.iter().filter(|key| self.claimed.find(cut(**key)).is_some()).count();
        let not_named = is(MarkFlag::HasList) && further.len() > doubtful;
        let most = linked + further.len() as i32;
        let count = is(MarkFlag::Counted) && ![most, most - doubtful as i32].contains(&self.marks.count(place));
        let unmet = self.marks.named(place, NamedKind::Feedback).filter(|(_, met)| !met).map(|(named, _)| named);
        // Rows with a back-link exist.
        let points_back = |named: &u64| back_said.binary_search_by_key(named, |[_, key, _]| *key).is_ok();
        let mut scores: Vec<f64> = back_said.iter().map(|[.., score]| f64::from_bits(*score)).collect();
        for named in unmet.filter(|named| !points_back(named)) {
            match self.said(named) {
                Some(score) => scores.push(score),
                None => dangling = true,
            }
        }
        let (mut sum, mut n) = self.marks.met_scores(place);
        for score in scores.into_iter().filter(|score| !score.is_nan()) {
            (sum, n) = (sum + score, n + 1);
        }
        let mean = (n > 0).then(|| sum / f64::from(n));
        let same = score::is_same_or_unknown(self.marks.stored_score(place), mean);
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

    /// Episodes with an unlinked canvas event of their session, by index.
    fn linkable(&mut self) -> io::Result<SortedRecords<1>> {
        let loose = self.loose.take().sorted()?;
        let mut by_session = RecordSorter::new(self.space).within(LINKED);
        if !loose.is_empty() {
            let sessions = (0..self.marks.len()).map(|place| (self.marks.session(place), place));
            let some = sessions.filter(|(session, _)| *session != 0);
            some.for_each(|(session, place)| by_session.add([session, place as u64]));
        }
        let is_open = |place: usize| self.marks.is(place, MarkFlag::Open);
        let mut linkable = RecordSorter::new(self.space).within(LINKED);
        each_match(&loose, &by_session.sorted()?, |events, places| {
            let unlisted = events.iter().filter(|[_, named, ..]| self.claimed.find(*named).is_none());
            let owners = self.owners(NamedKind::Canvas, places, unlisted);
            owners.into_iter().filter(|place| is_open(*place)).for_each(|place| linkable.add([place as u64]));
        })?;
        linkable.sorted()
    }

    /// Episodes to which feedback on their execution belongs that none of that execution lists, by place.
    fn sayable(&self, by_execution: &SortedRecords<5>) -> io::Result<SortedRecords<1>> {
        let mut executions = RecordSorter::new(self.space).within(LINKED);
        let places = if by_execution.is_empty() { 0..0 } else { 0..self.marks.len() };
        for place in places {
            let named = self.marks.named(place, NamedKind::Executions);
            named.for_each(|(execution, _)| executions.add([execution, place as u64]));
        }
        let is_open = |place: usize| self.marks.is(place, MarkFlag::OpenFeedback);
        let mut sayable = RecordSorter::new(self.space).within(LINKED);
        each_match(by_execution, &executions.sorted()?, |said, places| {
            let named = |place: &usize| self.marks.named(*place, NamedKind::Feedback).map(|(named, _)| named);
            let lists: HashSet<u64> = places.iter().flat_map(named).collect();
            let unlisted = said.iter().filter(|[_, named, ..]| !lists.contains(named));
            let owners = self.owners(NamedKind::Feedback, places, unlisted);
            owners.into_iter().filter(|place| is_open(*place)).for_each(|place| sayable.add([place as u64]));
        })?;
        sayable.sorted()
    }

    /// The episodes among some, in order, to which some rows belong.
    fn owners<'r>(&self, kind: NamedKind, places: &[usize], rows: impl Iterator<Item = &'r Record<5>>) -> Vec<usize> {
        let times = |place: usize| [self.marks.started(place), self.marks.ended(place)].map(spelled);
        let marks: Vec<(Cow<'_, str>, u64, [Option<String>; 2])> = places
            .iter()
            .filter_map(|place| Some((self.id(*place)?, self.marks.user(*place), times(*place))))
            .collect();
        let spans: Vec<EpisodeSpan<'_>> = marks
            .iter()
            .map(|(id, user, [started, ended])| {
                let (started, ended) = (started.as_deref(), ended.as_deref());
                EpisodeSpan { id, user: *user, started, ended }
            })
            .collect();
        let spans = SessionSpans::new(&spans);
        let owner = |[.., at, names, user]: &Record<5>| match NamedEpisode::of(*names) {
            NamedEpisode::At(place) => Some(place as usize).filter(|place| places.binary_search(place).is_ok()),
            NamedEpisode::Unknown => None,
            NamedEpisode::None => {
                let at = spelled(unordered(*at));
                let event = CanvasEventTime { at: at.as_deref(), names: None, user: *user };
                let owner = if kind == NamedKind::Feedback { spans.feedback_owner(event) } else { spans.owner(event) };
                owner.and_then(|i| places.get(i)).copied()
            }
        };
        rows.filter_map(owner).collect()
    }
}

/// Records by index, for indexes in order.
struct PlaceStream<'r, const N: usize> {
    records: RecordStream<'r, N>,
    next: Option<Record<N>>,
    here: Vec<Record<N>>,
}

impl<'r, const N: usize> PlaceStream<'r, N> {
    fn of(mut records: RecordStream<'r, N>) -> io::Result<Self> {
        let next = records.next()?;
        Ok(PlaceStream { records, next, here: Vec::new() })
    }

    /// Reads the records of an index; indexes must ascend.
    fn at(&mut self, place: usize) -> io::Result<&[Record<N>]> {
        self.here.clear();
        while let Some(record) = self.next.filter(|record| record[0] as usize <= place) {
            self.here.push(record);
            self.next = self.records.next()?;
        }
        Ok(&self.here)
    }
}

/// Passes on the rows and the indexes with the same first number.
fn each_match<const N: usize>(
    rows: &SortedRecords<N>,
    places: &SortedRecords<2>,
    mut each: impl FnMut(&[Record<N>], &[usize]),
) -> io::Result<()> {
    let (mut rows, mut places) = (rows.stream()?, places.stream()?);
    let (mut some, mut here) = (Vec::new(), Vec::new());
    while let (Some(of), Some(at)) = (rows.group(), places.group()) {
        some.clear();
        here.clear();
        if of <= at {
            while let Some(record) = rows.next_of(of)? {
                some.extend((of == at).then_some(record));
            }
        }
        if at <= of {
            while let Some([_, place]) = places.next_of(at)? {
                here.extend((of == at).then_some(place as usize));
            }
        }
        if of == at {
            each(&some, &here);
        }
    }
    Ok(())
}

/// Whether an episode names rows outside its lists.
fn names_more(named: &NamedLinks<'_>, canvas: &[&str], feedback: &[&str]) -> bool {
    let more = |named: &[Cow<'_, str>], listed: &[&str]| {
        let listed: HashSet<&str> = listed.iter().copied().collect();
        named.iter().any(|id| !listed.contains(id.as_ref()))
    };
    more(&named.canvas, canvas) || more(&named.feedback, feedback)
}

/// Whether a list has repeats.
fn repeats(ids: &[&str]) -> bool {
    ids.len() > 1 && ids.iter().collect::<HashSet<_>>().len() < ids.len()
}

/// A time in the canonical spelling; `None` for [`NEVER`].
fn spelled(moment: i64) -> Option<String> {
    (moment != NEVER).then(|| time::from_epoch(moment, time::EpochUnit::Microseconds)).flatten()
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

    /// An episode: its id, the canvas events and feedback it names, its count and score.
    type Told<'t> = (&'t str, &'t [&'t str], &'t [&'t str], i64, Option<f64>);

    /// Memory limits: none, so that everything is in files, or enough.
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
    fn an_event_that_an_episode_lists_is_no_link_that_another_one_lacks() {
        for room in ROOM {
            let mut story = story(
                room,
                &[("a", &["c1", "c2"], &[], 2, None), ("b", &["c3"], &[], 2, None), ("c", &[], &[], 0, None)],
            );
            event(&mut story, "c1", Some("b"), "session of a");
            // Its session is that of an episode whose list is open, and another episode lists it.
            event(&mut story, "c2", None, "session of c");
            event(&mut story, "c3", Some("b"), "session of b");
            let found = story.links().unwrap();
            assert_eq!(told(&story, &found), ["one_way_link a", "wrong_back_link a"]);
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
                ("blank", "a", Some(""), 2),
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
