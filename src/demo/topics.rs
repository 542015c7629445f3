//! Topics of the demo's agents: the words of their episodes, with slots in braces (see [`super::phrase`]).

use std::sync::LazyLock;

use serde::Deserialize;

use crate::ground::assets;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CanvasShow {
    /// A table; people close it at once.
    Sheet,
    /// A line chart; people look at it.
    Line,
    /// A bar chart; people look at it.
    Bar,
    /// A text to read.
    Doc,
    Mail,
    Form,
    Shell,
    /// A change of code.
    Diff,
    /// A plan of several agents' steps.
    Board,
    /// A user's own component.
    Custom,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicStep {
    /// Name, as in the event log.
    pub name: &'static str,
    pub result: &'static str,
    /// Error message of the step when it fails.
    pub error: &'static str,
}

/// Subject that an agent keeps working on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// Name, as in `topic`.
    pub name: &'static str,
    /// Position of its agent in [`super::world::AGENTS`].
    pub agent: usize,
    pub workflow: &'static str,
    /// Letters before the numbers that it deals with.
    pub reference: &'static str,
    pub titles: Vec<&'static str>,
    pub situations: Vec<&'static str>,
    /// Considerations of the agent.
    pub thoughts: Vec<&'static str>,
    /// Summaries of episodes that end well.
    pub successes: Vec<&'static str>,
    /// Summaries of episodes that end badly or half-way.
    pub failures: Vec<&'static str>,
    pub insights: Vec<&'static str>,
    pub decisions: Vec<&'static str>,
    /// Questions of people.
    pub asks: Vec<&'static str>,
    pub answers: Vec<&'static str>,
    pub corrections: Vec<&'static str>,
    pub facts: Vec<&'static str>,
    pub steps: Vec<TopicStep>,
    /// Tools besides the steps' own.
    pub tools: Vec<&'static str>,
    pub tags: Vec<&'static str>,
    pub shows: Vec<CanvasShow>,
    /// Weights of the number of episodes in a story: one, two, three, ….
    pub length: Vec<f64>,
}

/// All topics, in the order of the file: a story names them by their position.
pub static TOPICS: LazyLock<Vec<Topic>> =
    LazyLock::new(|| serde_json::from_str(assets::text("demo/topics.json")).unwrap_or_default());
