//! What studies of the memory ask for, and what they get.

use crate::memory::Row;
use crate::recall::judge::report::Evaluation;
use crate::recall::learn::measured::MeasuredAssessment;
use crate::recall::learn::version::Version;
use crate::recall::understand::report::{Graduation, Insights};

/// What is studied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StudyKind {
    /// What agents do and how ready they are.
    Agents,
    /// Versions of retrieval policies.
    Policies,
    /// How good recall is.
    Recall,
}

/// A question to the memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum StudyQuestion {
    /// Which agents there are.
    Agents,
    /// What an agent does, and how ready it is.
    Agent(String),
    /// What all agents do.
    Everyone,
    /// Which policies there are.
    Policies,
    /// How good a policy is on what its bank recalled.
    Policy(String),
    /// How good recall is.
    Recall,
}

/// What the memory answers.
#[derive(Debug, Clone, PartialEq)]
pub enum StudyAnswer {
    /// The agents.
    Agents(Vec<Row>),
    /// Of an agent, or of all together, what they do; of an agent how ready it is, or why that is not known.
    Agent(Box<Insights>, Option<Box<Result<Graduation, String>>>),
    /// The versions.
    Policies(Vec<Version>),
    /// How good a version is.
    Policy(Box<MeasuredAssessment>),
    /// How good recall is.
    Recall(Box<Evaluation>),
}
