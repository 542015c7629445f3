//! Questions that the study screens ask the memory, and their answers.

use crate::memory::Row;
use crate::recall::judge::report::Evaluation;
use crate::recall::learn::measured::MeasuredAssessment;
use crate::recall::learn::version::Version;
use crate::recall::understand::report::{Graduation, Insights};

/// Subject of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StudyKind {
    /// Behaviour and readiness of agents.
    Agents,
    /// Versions of retrieval policies.
    Policies,
    /// Quality of recall.
    Recall,
}

/// A question to the memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum StudyQuestion {
    /// The list of agents.
    Agents,
    /// Behaviour and readiness of one agent.
    Agent(String),
    /// Behaviour of all agents together.
    Everyone,
    /// The list of policies.
    Policies,
    /// Quality of a policy, measured on the recalls of its bank.
    Policy(String),
    /// Quality of recall.
    Recall,
}

/// Answer of the memory to a study question.
#[derive(Debug, Clone, PartialEq)]
pub enum StudyAnswer {
    /// The agents.
    Agents(Vec<Row>),
    /// Behaviour of one agent, or of all; for one agent also its readiness, or the reason why that is unknown.
    Agent(Box<Insights>, Option<Box<Result<Graduation, String>>>),
    /// The first versions, and the number of the others.
    Policies(Vec<Version>, u64),
    /// Quality of a version.
    Policy(Box<MeasuredAssessment>),
    /// Quality of recall.
    Recall(Box<Evaluation>),
}
