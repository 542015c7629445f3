//! The facts of one episode, from which all dependent rows are generated.

use super::chance::Chance;
use super::ids::Ids;
use super::phrase::StoryWords;
use super::topics::Topic;
use super::world::{AGENTS, DemoAgent, DemoPerson};

/// Ending of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpisodeEnd {
    /// The goal was reached.
    Success,
    /// The goal was reached in part.
    Partial,
    /// The goal was not reached.
    Failure,
    /// Episode that was stopped.
    Aborted,
    /// The episode has not ended.
    Ongoing,
    /// The outcome was not recorded.
    Unknown,
}

impl EpisodeEnd {
    /// The stored word.
    #[must_use]
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
    #[must_use]
    pub fn success(self) -> Option<bool> {
        match self {
            EpisodeEnd::Success => Some(true),
            EpisodeEnd::Failure | EpisodeEnd::Aborted => Some(false),
            EpisodeEnd::Partial | EpisodeEnd::Ongoing | EpisodeEnd::Unknown => None,
        }
    }

    /// Whether people are likely to be content.
    #[must_use]
    pub fn pleases(self) -> bool {
        matches!(self, EpisodeEnd::Success | EpisodeEnd::Unknown)
    }
}

/// The facts of one episode. Times are microseconds since 1970.
#[derive(Debug)]
pub struct EpisodeFacts<'a> {
    /// Seed of the world.
    pub seed: u64,
    /// Number of the episode.
    pub number: u64,
    /// Id of the episode.
    pub id: String,
    /// Number of the story that it belongs to.
    pub story: u64,
    /// Topic of the episode.
    pub topic: &'static Topic,
    /// Position of the topic.
    pub topic_number: usize,
    /// Person that the episode is for.
    pub person: &'a DemoPerson,
    /// The words of its story.
    pub words: &'a StoryWords,
    /// Title of the episode.
    pub title: String,
    /// Session of the episode.
    pub session: String,
    /// Executions of the episode; the first is the run of its workflow.
    pub executions: Vec<String>,
    /// Start of the episode.
    pub started: i64,
    /// End of the episode; for an ongoing one, its future end.
    pub ended: i64,
    /// The end of the story: nothing is later.
    pub anchor: i64,
    /// Ending of the episode.
    pub outcome: EpisodeEnd,
    /// Whether it becomes an awkward row: it gets at least one of each dependent row.
    pub rich: bool,
}

impl EpisodeFacts<'_> {
    /// Returns the agent of the episode.
    #[must_use]
    pub fn agent(&self) -> &'static DemoAgent {
        &AGENTS[self.topic.agent]
    }

    /// The run of its workflow.
    #[must_use]
    pub fn run(&self) -> &str {
        self.executions.first().map_or("", String::as_str)
    }

    /// The moment at which `share` (0..=1) of it is over.
    #[must_use]
    pub fn within(&self, share: f64) -> i64 {
        self.started + ((self.ended - self.started) as f64 * share) as i64
    }

    /// Random numbers for one part of it, so that the parts are independent.
    #[must_use]
    pub fn chance(&self, part: &str) -> Chance {
        Chance::new(self.seed, part, self.number)
    }
}

/// The next id of each kind.
#[derive(Debug)]
pub struct IdCounters {
    /// Episodes, by number.
    pub episode: Ids,
    /// Sessions.
    pub session: Ids,
    /// Executions.
    pub execution: Ids,
    /// Segments.
    pub segment: Ids,
    /// Messages, which only segments refer to.
    pub message: Ids,
    /// Canvases.
    pub canvas: Ids,
    /// Canvas events.
    pub canvas_event: Ids,
    /// Feedback.
    pub feedback: Ids,
    /// Utility events.
    pub utility: Ids,
    /// Workflow events.
    pub event: Ids,
    /// Accesses.
    pub access: Ids,
    /// Cases.
    pub case: Ids,
    /// Profiles.
    pub profile: Ids,
    /// Policies.
    pub policy: Ids,
    /// Audit entries.
    pub audit: Ids,
}

impl IdCounters {
    /// All at their beginning.
    #[must_use]
    pub fn new(seed: u64) -> IdCounters {
        let ids = |prefix| Ids::new(prefix, seed);
        IdCounters {
            episode: ids("ep"),
            session: ids("sess"),
            execution: ids("run"),
            segment: ids("seg"),
            message: ids("msg"),
            canvas: ids("canvas"),
            canvas_event: ids("cv"),
            feedback: ids("fb"),
            utility: ids("ut"),
            event: ids("ev"),
            access: ids("acc"),
            case: ids("case"),
            profile: ids("bank"),
            policy: ids("pol"),
            audit: ids("aud"),
        }
    }
}
