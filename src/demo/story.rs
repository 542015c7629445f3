//! Generator of the story: episodes in time order, each depending on earlier ones.

use std::collections::{BTreeMap, VecDeque};

use super::awkward::{self, AwkwardContext};
use super::bank::DemoBanks;
use super::calendar::{Calendar, DAY, HOUR, MINUTE, SECOND, month, stamp};
use super::chance::{Chance, mix};
use super::ids::Ids;
use super::moment::{EpisodeEnd, EpisodeFacts};
use super::phrase::StoryWords;
use super::rows::{ACCESS, AGENTS, DemoRow, EPISODE_VECTORS, LINKS, SUBJECTS, list};
use super::scene::{self, EpisodeFate, Scene};
use super::shelf::MemoryShelf;
use super::topics::TOPICS;
use super::world::{self, DemoPerson, MOST_PEOPLE};
use super::{DemoOptions, canvas, log, reaction, segments, vectors};

/// Most episodes in one digest.
const DIGESTED: usize = 40;

/// Additions to the title of a story that continues.
const PHASES: &[&str] =
    &["second look", "the day after", "narrowed down", "a fix to try", "checked over night", "one question left"];

/// Stories that are always told: position of the topic, share of all episodes before its beginning, number of episodes,
/// hours from one to the next.
const SURE: [(usize, f64, u32, (i64, i64)); 2] = [
    // A month-end close that drags on for weeks.
    (15, 0.06, 26, (20, 60)),
    // A memory leak that is hunted for three days.
    (6, 0.55, 7, (3, 12)),
];

/// A story that continues.
#[derive(Debug, Clone)]
struct Thread {
    story: u64,
    topic: usize,
    person: usize,
    words: StoryWords,
    title: String,
    session: String,
    step: u32,
    left: u32,
    parent: Option<String>,
    /// Hours until it continues.
    gap: (i64, i64),
}

/// Position of an episode in the story.
#[derive(Debug, Clone, Copy)]
struct Cue {
    number: u64,
    started: i64,
    /// Number of the trick that makes the episode awkward, if any.
    trick: Option<u64>,
    /// The agent of the digest, if the episode is one.
    digest: Option<usize>,
}

#[derive(Debug)]
pub struct StoryTeller {
    seed: u64,
    episodes: u64,
    /// Number of the newest episodes that have vectors.
    vectors: u64,
    anchor: i64,
    calendar: Calendar,
    people: Vec<DemoPerson>,
    ids: Ids,
    shelf: MemoryShelf,
    bank: DemoBanks,
    /// Stories that continue, by when.
    pending: BTreeMap<(i64, u64), Thread>,
    stories: u64,
    /// Number of [`SURE`] stories begun.
    sure: usize,
    /// Newest episodes of each topic.
    recent: Vec<VecDeque<String>>,
    /// Newest episode of each agent, with its time.
    latest: Vec<(String, i64)>,
    /// Episodes of each agent that wait for its next digest.
    digested: Vec<Vec<String>>,
    other_canvas: String,
}

impl StoryTeller {
    pub fn new(options: &DemoOptions) -> StoryTeller {
        let DemoOptions { episodes, vectors, seed, .. } = *options;
        let anchor = options.anchor.timestamp_micros();
        let calendar = Calendar::new(anchor);
        let people: Vec<DemoPerson> =
            (0..(episodes / 500).clamp(40, MOST_PEOPLE)).map(|number| world::person(number, seed)).collect();
        let owned = share_of_first(DemoBanks::owners(people.len()), people.len());
        StoryTeller {
            seed,
            episodes,
            vectors,
            anchor,
            shelf: MemoryShelf::new(seed, calendar.start(), episodes),
            bank: DemoBanks::new(seed, episodes, owned),
            calendar,
            people,
            ids: Ids::new(seed),
            pending: BTreeMap::new(),
            stories: 0,
            sure: 0,
            recent: vec![VecDeque::new(); TOPICS.len()],
            latest: vec![(String::new(), 0); world::AGENTS.len()],
            digested: vec![Vec::new(); world::AGENTS.len()],
            other_canvas: String::new(),
        }
    }

    /// The episode of this number (0 first, each once, in order) with all dependent rows.
    pub fn scene(&mut self, number: u64) -> Scene {
        let mut chance = Chance::new(self.seed, "story", number);
        let started = self.calendar.moment((number as f64 + chance.unit()) / self.episodes.max(1) as f64);
        let started = if number + 1 == self.episodes { started.max(self.calendar.last()) } else { started };
        let trick = trick_at(number, self.episodes);
        let digest = self.digest_at(number).filter(|_| trick.is_none());
        let cue = Cue { number, started, trick, digest };
        let everybody = self.people.len();
        let mut thread = match (trick, digest) {
            // Awkward episodes have cases too, which only some people have.
            (Some(_), _) => {
                let topic = any_topic(&mut chance);
                self.new_thread(started, topic, DemoBanks::owners(everybody), Some(1), &mut chance)
            }
            (None, Some(agent)) => self.digest_thread(agent, started, &mut chance),
            (None, None) => self.next_thread(cue, &mut chance),
        };
        let person = self.people[thread.person].clone();
        let scene = self.tell(cue, &thread, &person, &mut chance);
        if trick.is_none() && digest.is_none() {
            thread.parent = Some(scene.episode.text("id").to_owned());
            self.go_on(thread, started, &mut chance);
        }
        scene
    }

    /// The rows that follow after all episodes.
    pub fn ending(&mut self) -> Vec<DemoRow> {
        let mut rows = self.bank.rows(&self.people, self.anchor, &mut self.ids);
        rows.extend(self.shelf.rows(&self.people));
        let start = self.calendar.start();
        for (agent, (_, seen)) in world::AGENTS.iter().zip(&self.latest) {
            rows.push(
                DemoRow::new(&AGENTS)
                    .with("id", agent.id)
                    .with("name", agent.name)
                    .with("status", agent.status)
                    .with("created_at", stamp(start - 40 * DAY))
                    .with("last_seen", (*seen > 0).then(|| stamp(*seen))),
            );
        }
        for (number, person) in self.people.iter().enumerate() {
            rows.push(
                DemoRow::new(&SUBJECTS)
                    .with("id", &person.id)
                    .with("name", &person.name)
                    .with("handles", list(&[&person.mail, &person.phone]))
                    .with("created_at", stamp(start - 30 * DAY + number as i64 * HOUR)),
            );
        }
        rows
    }

    /// Continues a due story, or begins a new one.
    fn next_thread(&mut self, cue: Cue, chance: &mut Chance) -> Thread {
        let due = self.pending.first_key_value().map(|(key, _)| *key).filter(|(due, _)| *due <= cue.started);
        if let Some(thread) = due.and_then(|key| self.pending.remove(&key)) {
            return thread;
        }
        let people = self.people.len();
        match SURE.get(self.sure) {
            Some(&(topic, begins, left, gap)) if cue.number as f64 >= begins * self.episodes as f64 => {
                self.sure += 1;
                let thread = self.new_thread(cue.started, topic, people, Some(left), chance);
                Thread { gap, ..thread }
            }
            _ => {
                let topic = any_topic(chance);
                self.new_thread(cue.started, topic, people, None, chance)
            }
        }
    }

    /// A story for one of the first `people`, with this many episodes, or as many as usual for its topic.
    fn new_thread(&mut self, now: i64, topic: usize, people: usize, left: Option<u32>, chance: &mut Chance) -> Thread {
        let person = skewed(people, chance.unit());
        self.stories += 1;
        let words = self.words(topic, person, now, chance);
        Thread {
            story: self.stories,
            topic,
            person,
            title: words.say(&TOPICS[topic].titles, chance),
            words,
            session: self.ids.next("sess"),
            step: 0,
            left: left.unwrap_or_else(|| 1 + chance.weighted(&TOPICS[topic].length) as u32),
            parent: None,
            gap: (4, 40),
        }
    }

    fn words(&self, topic: usize, person: usize, now: i64, chance: &mut Chance) -> StoryWords {
        let user = &self.people[person];
        let colleagues: Vec<&DemoPerson> =
            self.people.iter().take(200).filter(|p| p.organisation == user.organisation && p.id != user.id).collect();
        let colleague = if colleagues.is_empty() { user } else { chance.pick(&colleagues) };
        StoryWords::new(chance, &TOPICS[topic], user, colleague, month(now))
    }

    /// The agent whose digest has this number; there is one per week and agent.
    fn digest_at(&self, number: u64) -> Option<usize> {
        let agents = world::AGENTS.len() as u64;
        let period = self.digest_period();
        (number % period == period / 2).then(|| (number / period % agents) as usize)
    }

    fn digest_period(&self) -> u64 {
        (self.episodes / (17 * world::AGENTS.len() as u64)).max(20)
    }

    /// Number of the agent's next digest after this episode, if the story gets that far.
    fn next_digest(&self, agent: usize, number: u64) -> Option<u64> {
        let (agents, period) = (world::AGENTS.len() as u64, self.digest_period());
        let round = number / period;
        let ahead = (agent as u64 + agents - round % agents) % agents;
        let digest = |round: u64| round * period + period / 2;
        let next = if digest(round + ahead) > number { round + ahead } else { round + ahead + agents };
        Some(digest(next)).filter(|n| *n < self.episodes && trick_at(*n, self.episodes).is_none())
    }

    fn digest_thread(&mut self, agent: usize, now: i64, chance: &mut Chance) -> Thread {
        let own: Vec<usize> = (0..TOPICS.len()).filter(|t| TOPICS[*t].agent == agent).collect();
        let mut thread = self.new_thread(now, *chance.pick(&own), self.people.len(), Some(1), chance);
        thread.title = format!("Weekly digest: {}", TOPICS[thread.topic].name);
        thread
    }

    /// Plans the next episode of the thread.
    fn go_on(&mut self, mut thread: Thread, now: i64, chance: &mut Chance) {
        thread.left = thread.left.saturating_sub(1);
        if thread.left == 0 {
            return;
        }
        thread.step += 1;
        let branches = if thread.left > 1 && chance.is(0.15) { 2 } else { 1 };
        for branch in 0..branches {
            let mut next = thread.clone();
            if branch > 0 {
                next.left = 1;
            }
            let due = now + 150 * MINUTE + chance.between(next.gap.0, next.gap.1) * HOUR;
            self.pending.insert((due, mix(next.story) ^ branch), next);
        }
    }

    fn tell(&mut self, cue: Cue, thread: &Thread, person: &DemoPerson, chance: &mut Chance) -> Scene {
        let Cue { number, started, trick, digest } = cue;
        let topic = &TOPICS[thread.topic];
        let rich = trick.is_some();
        let long = if thread.left > 1 || thread.step > 0 { 2 } else { 1 };
        let ended = started + chance.between(2, 45) * long * MINUTE + chance.between(0, 60 * SECOND);
        let misled = if rich || chance.is(0.55) {
            let count = 1 + chance.below(3) as usize;
            self.shelf.retrieve(thread.topic, started, count, chance)
        } else {
            Vec::new()
        };
        let misleading = misled.first().is_some_and(|memory| self.shelf.misleads(*memory));
        let runs = 1 + usize::from(chance.is(0.25));
        let moment = EpisodeFacts {
            seed: self.seed,
            number,
            id: self.ids.at("ep", number),
            story: thread.story,
            topic,
            topic_number: thread.topic,
            person,
            words: &thread.words,
            title: title(thread, digest),
            session: if thread.step == 0 || chance.is(0.2) { thread.session.clone() } else { self.ids.next("sess") },
            executions: (0..runs).map(|_| self.ids.next("run")).collect(),
            started,
            ended,
            anchor: self.anchor,
            outcome: if ended > self.anchor { EpisodeEnd::Ongoing } else { outcome(thread, misleading, chance) },
            rich,
        };
        let canvas = canvas::events(&moment, &mut self.ids);
        let (feedback, score) = reaction::feedback(&moment, &mut self.ids);
        let (signals, utility) = reaction::signals(&moment, &mut self.ids);
        let sources = digest.map(|agent| std::mem::take(&mut self.digested[agent])).unwrap_or_default();
        let fate = EpisodeFate {
            parent: thread.parent.clone(),
            step: thread.step,
            consolidated_into: self.consolidate(&moment, digest.is_some() || rich, chance),
            sources,
            score,
            utility,
            log: (rich || chance.is(0.15)).then(|| log::write(&moment, &mut self.ids)),
        };
        let mut others = self.links(&moment, thread.person, &misled, fate.utility, chance);
        others.extend(self.access(&moment, thread.person, chance));
        others.extend(self.bank.retain(&moment, thread.person, fate.score, &mut self.ids));
        if number.saturating_add(self.vectors) >= self.episodes {
            let vector = vectors::vector(self.seed, topic.agent, thread.topic, thread.story, number);
            others.push(DemoRow::new(&EPISODE_VECTORS).with("episode_id", &moment.id).with("embedding", vector));
        }
        let mut scene = Scene {
            episode: scene::episode(&moment, &fate),
            segments: segments::write(&moment, &canvas, &mut self.ids),
            canvas,
            feedback,
            signals,
            events: fate.log.map(|log| log.rows).unwrap_or_default(),
            others,
        };
        scene.list_links();
        if let Some(trick) = trick {
            awkward::apply(trick, &mut scene, &self.around(&moment, trick));
        } else {
            self.remember(&moment, &scene);
        }
        scene
    }

    /// The digest that includes the episode, if any.
    fn consolidate(&mut self, moment: &EpisodeFacts<'_>, stays: bool, chance: &mut Chance) -> Option<String> {
        let agent = moment.topic.agent;
        let open = self.digested[agent].len() < DIGESTED && moment.outcome != EpisodeEnd::Ongoing;
        if stays || !open || !chance.is(0.08) {
            return None;
        }
        let digest = self.next_digest(agent, moment.number)?;
        self.digested[agent].push(moment.id.clone());
        Some(self.ids.at("ep", digest))
    }

    fn links(
        &mut self,
        moment: &EpisodeFacts<'_>,
        person: usize,
        memories: &[usize],
        utility: f64,
        chance: &mut Chance,
    ) -> Vec<DemoRow> {
        let link = |memory: String, kind: &'static str, rank: usize| {
            DemoRow::new(&LINKS)
                .with("episode_id", &moment.id)
                .with("memory_id", memory)
                .with("kind", kind)
                .with("rank", rank as i64 + 1)
        };
        let mut rows = Vec::new();
        for (rank, memory) in memories.iter().enumerate() {
            self.shelf.used(*memory, utility);
            rows.push(link(self.shelf.id(*memory), MemoryShelf::kind(*memory), rank));
        }
        if chance.is(0.12)
            && let Some(case) = self.bank.recent(person, moment.topic.agent).pop()
        {
            rows.push(link(case, "case", memories.len()));
        }
        rows
    }

    /// Generates the access by which the agent recalled something before the episode began; `None` if there is none.
    fn access(&mut self, moment: &EpisodeFacts<'_>, person: usize, chance: &mut Chance) -> Option<DemoRow> {
        if !moment.rich && !chance.is(0.2) {
            return None;
        }
        let kind = *chance.pick(&["boosted", "boosted", "proven", "similar", "cases"]);
        let found: Vec<String> = if kind == "cases" {
            self.bank.recent(person, moment.topic.agent).into_iter().rev().take(4).collect()
        } else {
            self.recent[moment.topic_number].iter().rev().take(4).cloned().collect()
        };
        let policy = (kind == "cases" && chance.is(0.4)).then(|| chance.between(1, 3));
        Some(
            DemoRow::new(&ACCESS)
                .with("id", self.ids.next("acc"))
                .with("agent_id", moment.agent().id)
                .with("user_id", &moment.person.id)
                .with("query", &moment.title)
                .with("ids", list(&found))
                .with("kind", kind)
                .with("latency_ms", chance.between(300, 140_000) as f64 / 1_000.0)
                .with("policy_version", policy)
                .with("tokens", found.len() as i64 * chance.between(90, 260))
                .with("created_at", stamp(moment.started)),
        )
    }

    fn around(&self, moment: &EpisodeFacts<'_>, trick: u64) -> AwkwardContext {
        let odd = |trick: u64| self.ids.at("ep", number_of_trick(trick, self.episodes));
        let others = (moment.topic.agent + 1) % world::AGENTS.len();
        AwkwardContext {
            id: moment.id.clone(),
            times: (moment.started, moment.ended),
            before: odd(trick.saturating_sub(1)),
            after: odd(trick + 1),
            later: self.ids.at("ep", moment.number + 1),
            other_agents: self.latest[others].0.clone(),
            other_canvas: self.other_canvas.clone(),
        }
    }

    fn remember(&mut self, moment: &EpisodeFacts<'_>, scene: &Scene) {
        let recent = &mut self.recent[moment.topic_number];
        recent.push_back(moment.id.clone());
        if recent.len() > 8 {
            recent.pop_front();
        }
        self.latest[moment.topic.agent] = (moment.id.clone(), moment.started);
        if let Some(event) = scene.canvas.first() {
            event.text("id").clone_into(&mut self.other_canvas);
        }
    }
}

/// Position of a topic, as often as its agent is busy.
fn any_topic(chance: &mut Chance) -> usize {
    let weights: Vec<f64> = TOPICS.iter().map(|topic| world::AGENTS[topic.agent].weight).collect();
    chance.weighted(&weights)
}

fn title(thread: &Thread, digest: Option<usize>) -> String {
    if thread.step == 0 || digest.is_some() {
        return thread.title.clone();
    }
    let phase = if thread.left == 1 { "closed" } else { PHASES[(thread.step as usize - 1) % PHASES.len()] };
    format!("{}: {phase}", thread.title)
}

fn outcome(thread: &Thread, misleading: bool, chance: &mut Chance) -> EpisodeEnd {
    let weights = match (misleading, thread.left > 1) {
        (true, _) => [0.2, 0.25, 0.35, 0.15, 0.05],
        (false, true) => [0.25, 0.5, 0.2, 0.03, 0.02],
        (false, false) => [0.74, 0.1, 0.08, 0.05, 0.03],
    };
    [EpisodeEnd::Success, EpisodeEnd::Partial, EpisodeEnd::Failure, EpisodeEnd::Aborted, EpisodeEnd::Unknown]
        [chance.weighted(&weights)]
}

/// A position in 0..`count` for a number in 0.0..1.0; the first positions cover more of the range than the last.
fn skewed(count: usize, unit: f64) -> usize {
    ((count as f64 * unit * unit.sqrt()) as usize).min(count.saturating_sub(1))
}

/// The share of all [`skewed`] positions of `count` that are among the first `some`, computed on a fine grid.
fn share_of_first(some: usize, count: usize) -> f64 {
    let grid = 4_096;
    (0..grid).filter(|i| skewed(count, f64::from(*i) / f64::from(grid)) < some).count() as f64 / f64::from(grid)
}

/// The number of the episode that a trick is applied to: spread over the story, unless that is too short.
fn number_of_trick(trick: u64, episodes: u64) -> u64 {
    let tricks = awkward::count();
    if episodes < 2 * tricks { trick } else { (2 * trick + 1) * episodes / (2 * tricks) }
}

/// Returns the trick that is applied to the episode of this number, if any.
fn trick_at(number: u64, episodes: u64) -> Option<u64> {
    let tricks = awkward::count();
    if episodes < 2 * tricks {
        return (number < tricks).then_some(number);
    }
    let near = number * tricks / episodes;
    (near.saturating_sub(1)..=near + 1).find(|trick| *trick < tricks && number_of_trick(*trick, episodes) == number)
}
