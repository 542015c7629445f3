//! A policy version as plain data: its weights, or the reason why they cannot be used, and the state of its training
//! data.

use serde::Serialize;

use crate::memory::Row;
use crate::recall::policy::Policy;

/// A policy version as it is stored, with what it is to readers.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The stored row.
    pub row: Row,
    /// Weights of the version, or the reason why they cannot be used.
    pub policy: Result<Policy, String>,
    /// Readers take it: the highest active version of its bank.
    pub in_use: bool,
    /// Count of the version's training cases that are gone.
    pub purged: PurgedCases,
}

/// Count of the cases that a policy was trained on and that are gone since.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PurgedCases {
    /// Cases that it was trained on; none when that was not recorded.
    pub cases: Option<usize>,
    /// Cases among these that are gone.
    pub gone: Option<usize>,
    /// Their share; none when not recorded.
    pub share: Option<f64>,
    /// Reason why nothing is known.
    pub reason: Option<&'static str>,
}
