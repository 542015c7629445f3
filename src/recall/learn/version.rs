//! A policy version as plain data: its weights, or the reason why they cannot be used, and the state of its training
//! data.

use serde::Serialize;

use crate::memory::Row;
use crate::recall::policy::Policy;

/// A stored policy version, with its role for readers.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The stored row.
    pub row: Row,
    /// Weights of the version, or the reason why they cannot be used.
    pub policy: Result<Policy, String>,
    /// Whether readers use it: the highest active version of its bank.
    pub in_use: bool,
    /// Number of the version's training cases that are deleted.
    pub purged: PurgedCases,
}

/// Number of a policy's training cases that have been deleted since.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PurgedCases {
    /// Cases that it was trained on; `None` if not recorded.
    pub cases: Option<usize>,
    /// Number of these that are deleted.
    pub gone: Option<usize>,
    /// Their share; `None` if not recorded.
    pub share: Option<f64>,
    /// Reason why it is unknown.
    pub reason: Option<&'static str>,
}
