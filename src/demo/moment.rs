//! The facts of one episode, from which all dependent rows are generated.

use super::chance::Chance;
use super::phrase::StoryWords;
use super::topics::Topic;
use super::world::{AGENTS, DemoAgent, DemoPerson};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpisodeEnd {
    Success,
    /// The goal was reached in part.
    Partial,
    Failure,
    Aborted,
    Ongoing,
    /// The outcome was not recorded.
    Unknown,
}

impl EpisodeEnd {
    /// The stored word.
    pub fn word(self) -> &'static str {
        match self {
            EpisodeEnd::Success => "success",
            EpisodeEnd::Partial => "partial",
            EpisodeEnd::Failure => "failure",
            EpisodeEnd::Aborted => "aborted",
            EpisodeEnd::Ongoing => "ongoing",
            EpisodeEnd::Unknown => "unknown",
        }
    }

    /// Whether it succeeded, if known.
    pub fn success(self) -> Option<bool> {
        match self {
            EpisodeEnd::Success => Some(true),
            EpisodeEnd::Failure | EpisodeEnd::Aborted => Some(false),
            EpisodeEnd::Partial | EpisodeEnd::Ongoing | EpisodeEnd::Unknown => None,
        }
    }

    /// Whether people are likely to be content.
    pub fn pleases(self) -> bool {
        matches!(self, EpisodeEnd::Success | EpisodeEnd::Unknown)
    }
}

/// The facts of one episode. Times are microseconds since 1970.
#[derive(Debug)]
pub struct EpisodeFacts<'a> {
    pub seed: u64,
    pub number: u64,
    pub id: String,
    /// Number of the story that it belongs to.
    pub story: u64,
    pub topic: &'static Topic,
    pub topic_number: usize,
    pub person: &'a DemoPerson,
    pub words: &'a StoryWords,
    pub title: String,
    pub session: String,
    /// Executions of the episode; the first is the run of its workflow.
    pub executions: Vec<String>,
    pub started: i64,
    /// End of the episode; for an ongoing one, its future end.
    pub ended: i64,
    /// The end of the story: nothing is later.
    pub anchor: i64,
    pub outcome: EpisodeEnd,
    /// Whether it becomes an awkward row: it gets at least one of each dependent row.
    pub rich: bool,
}

impl EpisodeFacts<'_> {
    pub fn agent(&self) -> &'static DemoAgent {
        &AGENTS[self.topic.agent]
    }

    pub fn run(&self) -> &str {
        self.executions.first().map_or("", String::as_str)
    }

    /// The moment at which `share` (0..=1) of it is over.
    pub fn within(&self, share: f64) -> i64 {
        self.started + ((self.ended - self.started) as f64 * share) as i64
    }

    /// Random numbers for one part of it, so that the parts are independent.
    pub fn chance(&self, part: &str) -> Chance {
        Chance::new(self.seed, part, self.number)
    }
}
