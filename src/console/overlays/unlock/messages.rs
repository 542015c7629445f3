//! Whether a database can be written, and what it lacks for that.

/// A migration that is still to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingStep {
    /// Name of the migration.
    pub name: String,
    /// SQL that will be run.
    pub sql: String,
    /// Description of the locks that it takes, and for how long.
    pub lock_risk: String,
    /// Description of what it makes possible.
    pub effect: String,
}

/// Whether and how the database can be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteState {
    /// Reason why the database cannot be written, whatever is done.
    pub blocked: Option<String>,
    /// True when the database has an audit trail: changes can be made.
    pub audited: bool,
    /// Migrations that are still to be applied, in order.
    pub pending: Vec<PendingStep>,
}
