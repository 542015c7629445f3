//! Whether a database can be written, and what it lacks for that.

use crate::change::plan::migration::PendingMigration;

/// Whether and how the database can be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteState {
    /// Reason why the database cannot be written, whatever is done.
    pub blocked: Option<String>,
    /// Step that would help where it is blocked, if one is known.
    pub remedy: Option<String>,
    /// True when the database has an audit trail: changes can be made.
    pub audited: bool,
    /// Migrations that are still to be applied, in order.
    pub pending: Vec<PendingMigration>,
}
