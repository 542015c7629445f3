//! Requests of a replay, and their answers.

use crate::memory::Row;
use crate::recall::parents::Suggestion;

/// Subject of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplaySubject {
    /// Episodes of a topic.
    Topic(String),
    /// The chain of an episode, and others of its topic and agent.
    Episode(String),
}

/// An episode in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayStep {
    /// The episode.
    pub row: Row,
    /// Relevance to the topic, in 0..1; `None` when only its chain brings the episode in.
    pub relevance: Option<f64>,
    /// Parents that it may have, most alike first; empty when it has one.
    pub parents: Vec<Suggestion>,
}

/// A topic as it happened.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplayedTopic {
    /// The words that were looked for.
    pub topic: String,
    /// The episodes by start time.
    pub steps: Vec<ReplayStep>,
    /// Whether `vector` or `keyword` decided what belongs to it.
    pub used: String,
    /// Episodes that were looked at.
    pub candidates: usize,
    /// Episodes of the chain that are not among them: those farthest up, and later children.
    pub more: usize,
}
