//! A migration that can be applied: plain data.

use serde::Serialize;

/// A step of a migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepState {
    /// Name.
    pub name: String,
    /// SQL that the step runs.
    pub sql: String,
    /// Whether the objects of the step exist.
    pub done: bool,
}

/// A migration that can be applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PendingMigration {
    /// Number, for `--to`.
    pub version: i64,
    /// Name.
    pub name: String,
    /// SQL that will be run.
    pub sql: String,
    /// Locks that the migration takes, and for how long.
    pub lock_risk: String,
    /// Effect of the migration: what it enables.
    pub effect: String,
    /// Steps of the migration, if it has several.
    pub steps: Vec<StepState>,
    /// The next step, if it was begun and interrupted.
    pub goes_on_at: Option<String>,
}
