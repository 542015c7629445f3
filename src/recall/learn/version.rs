//! A policy version as plain data: its weights or why they cannot be used, and what became of what it was trained on.

use serde::Serialize;

use crate::memory::Row;
use crate::recall::policy::Policy;

/// A policy version as it is stored, with what it is to readers.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The stored row.
    pub row: Row,
    /// Its weights, or why they cannot be used.
    pub policy: Result<Policy, String>,
    /// Readers take it: the highest active version of its bank.
    pub in_use: bool,
    /// What became of the cases it was trained on.
    pub purged: PurgedCases,
}

/// How many of the cases that a policy was trained on are gone since.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PurgedCases {
    /// Cases that it was trained on; none when that was not recorded.
    pub cases: Option<usize>,
    /// Of these, those that are gone.
    pub gone: Option<usize>,
    /// Their share; none when not recorded.
    pub share: Option<f64>,
    /// Why nothing is known.
    pub reason: Option<&'static str>,
}
