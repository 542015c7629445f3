//! Reports on agents: insights and graduation as plain data.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::WeightedMean;
use super::canvas::{Engagement, Observation};
use super::forgetting::Curve;
use super::graduation::{CodedReadiness, DocumentedReadiness};
use super::quality::{Interventions, Periods};
use super::usefulness::JudgedMemories;

/// Insights from the memory into canvases, into its age and into its uses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Insights {
    /// The agent; `None` for all of them.
    pub agent: Option<String>,
    /// The rules behind the words.
    pub rules: Vec<InsightRule>,
    /// Canvas types by word: `closes_quickly`, `engages`, `submits`.
    pub user_interaction_patterns: Vec<CanvasPattern>,
    /// By canvas type.
    pub types: Vec<Engagement>,
    /// By canvas and component type.
    pub components: Vec<Engagement>,
    /// Observations with their rewards.
    pub observations: Vec<Observation>,
    /// Number of canvas events read.
    pub canvas_events: usize,
    /// Number of feedback rows read.
    pub feedback_rows: usize,
    /// The forgetting curve; `None` without episodes.
    pub forgetting: Option<Curve>,
    /// Memories that mislead and that help; `None` if the uses of memories are not recorded.
    pub memories: Option<JudgedMemories>,
    /// Missing parts, and the reasons.
    pub notes: Vec<String>,
}

/// A rule by its name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsightRule {
    /// The word it decides.
    pub name: String,
    /// The rule, for people.
    pub rule: String,
}

/// Canvas types with the same word.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CanvasPattern {
    /// The word.
    pub pattern: &'static str,
    /// Canvas types, sorted.
    pub canvas_types: Vec<String>,
}

/// Whether an agent is ready for more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Graduation {
    /// The agent.
    pub agent: String,
    /// Name of the agent, when one is known.
    pub name: Option<String>,
    /// Status of the agent, as stored.
    pub status: Option<String>,
    /// Number of the agent's episodes.
    pub episodes: usize,
    /// Number of episodes by outcome word; those without one are under the empty word.
    pub outcomes: BTreeMap<String, usize>,
    /// Quality = 0.4 task completion + 0.3 canvas success + 0.2 feedback quality + 0.1 consistency.
    pub quality: WeightedMean,
    /// Canvas success of the last 30 days and of the 30 before.
    pub canvas_periods: Periods,
    /// Corrections per episode, by source.
    pub interventions: Interventions,
    /// Readiness by the documented formula.
    pub documented: DocumentedReadiness,
    /// Readiness by the formula in the system's own code; `None` for systems without one.
    pub coded: Option<CodedReadiness>,
    /// Reason why there is no coded readiness; `None` if there is one.
    pub coded_reason: Option<&'static str>,
}

/// Insights as JSON, the patterns as an object of lists.
pub fn insights_json(insights: &Insights) -> Value {
    let mut value = serde_json::to_value(insights).unwrap_or_default();
    value["rules"] = insights.rules.iter().map(|r| (r.name.clone(), Value::from(r.rule.clone()))).collect();
    let pattern = |p: &CanvasPattern| (p.pattern.to_owned(), Value::from(p.canvas_types.clone()));
    value["user_interaction_patterns"] = insights.user_interaction_patterns.iter().map(pattern).collect();
    value
}
