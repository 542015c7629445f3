//! The memories that episodes retrieve: facts in drawers and closets, a few of which are misleading.

use std::collections::VecDeque;

use serde_json::json;

use super::calendar::{DAY, LENGTH, month, stamp};
use super::chance::{Chance, mix};
use super::ids::Ids;
use super::phrase::StoryWords;
use super::rows::{DemoRow, MEMORIES, MEMORY_VECTORS, list};
use super::topics::TOPICS;
use super::vectors;
use super::world::{AGENTS, DemoPerson};

/// Number of the latest episodes that decide a memory's utility.
const LATEST: usize = 20;

/// Time between the first stored memories and the start of the story, in microseconds.
const BEFORE: i64 = 30 * DAY;

const HALLS: &[&str] = &["facts", "preferences", "events", "advice"];

#[derive(Debug, Clone, Default)]
struct ShelfUse {
    times: i64,
    latest: VecDeque<f64>,
}

/// All memories, in order of topic and, within it, of time.
#[derive(Debug)]
pub struct MemoryShelf {
    seed: u64,
    start: i64,
    per_topic: usize,
    ids: Ids,
    uses: Vec<ShelfUse>,
}

impl MemoryShelf {
    /// Creates the memories of a story of this many episodes that begins at `start`.
    pub fn new(seed: u64, start: i64, episodes: u64) -> MemoryShelf {
        let per_topic = (episodes / 80).clamp(8, 1_000) as usize;
        MemoryShelf {
            seed,
            start: start - BEFORE,
            per_topic,
            ids: Ids::new(seed),
            uses: vec![ShelfUse::default(); per_topic * TOPICS.len()],
        }
    }

    /// Kind of a memory: one in seven is a closet.
    pub fn kind(number: usize) -> &'static str {
        if number.is_multiple_of(7) { "closet" } else { "drawer" }
    }

    pub fn id(&self, number: usize) -> String {
        self.ids.at(Self::kind(number), number as u64)
    }

    /// Whether episodes that rely on the memory tend to fail.
    pub fn misleads(&self, number: usize) -> bool {
        mix(self.seed ^ number as u64).is_multiple_of(11)
    }

    fn stored_at(&self, position: usize) -> i64 {
        let span = (LENGTH * DAY + BEFORE) as f64;
        self.start + (span * (position as f64 + 0.5) / (self.per_topic as f64 + 1.0)) as i64
    }

    /// Numbers of a topic's memories that an episode at this moment retrieves, best first; old ones are the most
    /// frequent.
    pub fn retrieve(&self, topic: usize, moment: i64, count: usize, chance: &mut Chance) -> Vec<usize> {
        let known = (0..self.per_topic).take_while(|p| self.stored_at(*p) < moment).count();
        let mut found = Vec::with_capacity(count);
        for _ in 0..count {
            let number = topic * self.per_topic + (known as f64 * chance.unit() * chance.unit()) as usize;
            if known > 0 && !found.contains(&number) {
                found.push(number);
            }
        }
        found
    }

    /// Records that an episode used the memory, with the episode's utility.
    pub fn used(&mut self, number: usize, utility: f64) {
        if let Some(memory) = self.uses.get_mut(number) {
            memory.times += 1;
            memory.latest.push_back(utility);
            if memory.latest.len() > LATEST {
                memory.latest.pop_front();
            }
        }
    }

    /// The rows of all memories, each with its vector.
    pub fn rows<'a>(&'a self, people: &'a [DemoPerson]) -> impl Iterator<Item = DemoRow> + 'a {
        (0..self.uses.len()).flat_map(|number| [self.row(number, people), self.vector(number)])
    }

    fn vector(&self, number: usize) -> DemoRow {
        let topic = number / self.per_topic;
        // No story has such a number: a memory is near all stories of its topic.
        let own = u64::MAX - number as u64;
        let vector = vectors::vector(self.seed, TOPICS[topic].agent, topic, own, own);
        DemoRow::new(&MEMORY_VECTORS).with("memory_id", self.id(number)).with("embedding", vector)
    }

    fn row(&self, number: usize, people: &[DemoPerson]) -> DemoRow {
        let topic = &TOPICS[number / self.per_topic];
        let at = self.stored_at(number % self.per_topic);
        let mut chance = Chance::new(self.seed, "memory", number as u64);
        let (author, colleague) = (chance.pick(people), chance.pick(people));
        let words = StoryWords::new(&mut chance, topic, author, colleague, month(at));
        let kind = Self::kind(number);
        let fact = words.say(&topic.facts, &mut chance);
        let (title, text) = if kind == "closet" {
            let more = [words.say(&topic.facts, &mut chance), words.say(&topic.insights, &mut chance)];
            (format!("{}: what we know", topic.name), format!("{fact}\n{}\n{}", more[0], more[1]))
        } else {
            (format!("{} / {}", topic.name, words.word("customer")), fact)
        };
        let hall = *chance.pick(HALLS);
        let metadata = json!({
            "wing": AGENTS[topic.agent].domain, "room": topic.name, "hall": hall,
            "source_file": format!("{}-{}.md", topic.workflow, chance.between(10, 99)), "added_by": author.id,
        });
        let used = &self.uses[number];
        let mean = used.latest.iter().sum::<f64>() / used.latest.len() as f64;
        DemoRow::new(&MEMORIES)
            .with("id", self.id(number))
            .with("kind", kind)
            .with("collection", if kind == "closet" { "mempalace_closets" } else { "mempalace_drawers" })
            .with("title", title)
            .with("text", text)
            // A preference is one person's; the rest is everybody's.
            .with("user_id", (hall == "preferences").then(|| author.id.clone()))
            .with("agent_id", AGENTS[topic.agent].id)
            .with("tags", list(&[topic.workflow, hall]))
            .with("status", "active")
            .with("importance", 0.1 * (1 + mix(self.seed.wrapping_add(number as u64)) % 9) as f64)
            .with("metadata", metadata)
            .with("created_at", stamp(at))
            .with("updated_at", stamp(at))
            .with("uses", used.times)
            .with("utility", (!used.latest.is_empty()).then_some(mean))
    }
}
