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
    /// Relevance to the topic, in 0..1; `None` if only its chain adds the episode.
    pub relevance: Option<f64>,
    /// Possible parents, most similar first; empty if it has one.
    pub parents: Vec<Suggestion>,
}

/// A topic in order of time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReplayedTopic {
    /// The searched words.
    pub topic: String,
    /// The episodes by start time.
    pub steps: Vec<ReplayStep>,
    /// Method that selected the episodes: `vector` or `keyword`.
    pub used: String,
    /// Number of episodes considered.
    pub candidates: usize,
    /// Number of episodes of the chain that are left out: the most distant ancestors, and later children.
    pub more: usize,
}
