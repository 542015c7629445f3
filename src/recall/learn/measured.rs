//! What was measured of a policy, on what, as plain data.

use serde::Serialize;

use super::assess::Assessment;
use super::metrics::Metrics;
use super::version::PurgedCases;

/// An assessment with what was assessed, on what.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredAssessment {
    /// The policy; none for several, or for none.
    pub policy: Option<String>,
    /// Its version.
    pub version: Option<i64>,
    /// Its bank.
    pub profile_id: Option<String>,
    /// What was assessed, for people.
    pub what: String,
    /// Where the pairs come from.
    pub pairs: String,
    /// The numbers.
    #[serde(flatten)]
    pub assessment: Assessment,
    /// On all pairs, where the numbers are of the held-out ones only.
    pub all_pairs: Option<Metrics>,
    /// What became of the cases that it was trained on.
    pub purged: Option<PurgedCases>,
    /// What should be known, for people.
    pub notes: Vec<String>,
}
