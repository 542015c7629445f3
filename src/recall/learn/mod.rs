//! Learns which cases to recall: pairs of a query and a case with a label, named features, a logistic policy, and its
//! quality on held-out pairs.

pub mod assess;
pub mod logistic;
pub mod measured;
pub mod metrics;
pub mod pairs;
pub mod split;
pub mod version;

use super::policy::FEATURES;

/// Reason why nothing can be learned or measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LearnError {
    /// There are no pairs.
    #[error("there are no pairs of a query and a case to learn from")]
    Empty,
    /// All labels are the same.
    #[error("all {n} pairs are {label}: a policy needs pairs of both kinds to distinguish them")]
    OneClass {
        /// Pairs.
        n: usize,
        /// `positive` or `negative`.
        label: &'static str,
    },
    /// Only one query: nothing can be held out.
    #[error("all {0} pairs are from one query: none can be held out for measuring, so nothing is trained")]
    OneQuery(usize),
}

/// A pair of a query and a case, as numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingExample {
    /// Number of the query: pairs of one query stay together.
    pub query: usize,
    /// Features in 0..1, in the order of [`FEATURES`]; 0 for an unknown one.
    pub features: [f64; FEATURES.len()],
    /// Whether recalling the case went well.
    pub label: bool,
}

/// Checks that there are pairs of both labels.
///
/// # Errors
/// [`LearnError::Empty`], [`LearnError::OneClass`].
pub fn check(examples: &[TrainingExample]) -> Result<(), LearnError> {
    let positives = examples.iter().filter(|e| e.label).count();
    match (examples.len(), positives) {
        (0, _) => Err(LearnError::Empty),
        (n, 0) => Err(LearnError::OneClass { n, label: "negative" }),
        (n, p) if n == p => Err(LearnError::OneClass { n, label: "positive" }),
        _ => Ok(()),
    }
}
