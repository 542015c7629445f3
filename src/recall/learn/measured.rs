//! Measurements of a policy, and the pairs they were made on, as plain data.

use serde::Serialize;

use super::assess::Assessment;
use super::metrics::Metrics;
use super::version::PurgedCases;

/// An assessment with its policy and data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredAssessment {
    /// The policy; `None` for several, or for none.
    pub policy: Option<String>,
    /// Version of the policy.
    pub version: Option<i64>,
    /// Bank of the policy.
    pub profile_id: Option<String>,
    /// Subject of the assessment, for users.
    pub what: String,
    /// Origin of the pairs.
    pub pairs: String,
    /// The numbers.
    #[serde(flatten)]
    pub assessment: Assessment,
    /// Metrics on all pairs, if the others are on held-out ones only.
    pub all_pairs: Option<Metrics>,
    /// Number of the policy's training cases that are deleted.
    pub purged: Option<PurgedCases>,
    /// Notes for users about the assessment.
    pub notes: Vec<String>,
}
