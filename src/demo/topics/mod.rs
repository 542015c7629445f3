//! What the agents of the demo work on: the words of their episodes, with slots in braces (see [`super::phrase`]).

mod data;
mod engineering;
mod finance;
mod research;
mod support;
mod travel;

/// A kind of canvas with what is shown on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CanvasShow {
    /// A table; people close it at once.
    Sheet,
    /// A line chart; people look at it.
    Line,
    /// A bar chart; people look at it.
    Bar,
    /// A text to read.
    Doc,
    /// A mail to approve.
    Mail,
    /// A form to fill.
    Form,
    /// A shell.
    Shell,
    /// A change of code.
    Diff,
    /// A plan of several agents' steps.
    Board,
    /// A component that a user made.
    Custom,
}

/// One step of a topic's workflow.
#[derive(Debug)]
pub struct TopicStep {
    /// Name, as in the event log.
    pub name: &'static str,
    /// What it gives.
    pub result: &'static str,
    /// What it says when it fails.
    pub error: &'static str,
}

/// What an agent keeps working on.
#[derive(Debug)]
pub struct Topic {
    /// Name, as in `topic`.
    pub name: &'static str,
    /// Position of its agent in [`super::world::AGENTS`].
    pub agent: usize,
    /// Workflow that does it.
    pub workflow: &'static str,
    /// Letters before the numbers that it deals with.
    pub reference: &'static str,
    /// Titles of episodes.
    pub titles: &'static [&'static str],
    /// Situations that episodes start from.
    pub situations: &'static [&'static str],
    /// What the agent considers.
    pub thoughts: &'static [&'static str],
    /// How it ends well.
    pub successes: &'static [&'static str],
    /// How it ends badly or half-way.
    pub failures: &'static [&'static str],
    /// What was learned.
    pub insights: &'static [&'static str],
    /// What was decided.
    pub decisions: &'static [&'static str],
    /// What people ask.
    pub asks: &'static [&'static str],
    /// What the agent answers.
    pub answers: &'static [&'static str],
    /// What people correct.
    pub corrections: &'static [&'static str],
    /// Facts that are kept in memories.
    pub facts: &'static [&'static str],
    /// Steps of the workflow.
    pub steps: &'static [TopicStep],
    /// Tools besides the steps' own.
    pub tools: &'static [&'static str],
    /// Tags.
    pub tags: &'static [&'static str],
    /// What is shown.
    pub shows: &'static [CanvasShow],
    /// How many episodes a story has, as weights of one, two, three, ….
    pub length: &'static [f64],
}

/// All topics.
pub const TOPICS: &[&Topic] = &[
    &support::DELIVERIES,
    &support::INVOICES,
    &support::DEVICES,
    &data::DUPLICATES,
    &data::LOADS,
    &data::DASHBOARD,
    &engineering::LEAK,
    &engineering::NOTES,
    &engineering::FLAKES,
    &travel::REBOOKING,
    &travel::HOTELS,
    &travel::EXPENSES,
    &research::PRICING,
    &research::PAPERS,
    &research::SURVEY,
    &finance::CLOSE,
    &finance::REMINDERS,
    &finance::TAXES,
];
