//! Whether a database can be written, and what it lacks for that.

/// A migration that is still to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingStep {
    /// Its name.
    pub name: String,
    /// What will be run.
    pub sql: String,
    /// What it locks, and for how long.
    pub lock_risk: String,
    /// What it makes possible.
    pub effect: String,
}

/// Whether and how the database can be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteState {
    /// Why it cannot be written whatever is done.
    pub blocked: Option<String>,
    /// It has an audit trail: changes can be made.
    pub audited: bool,
    /// Migrations that are still to be applied, in order.
    pub pending: Vec<PendingStep>,
}
