//! Whether a database can be written, and what is missing for that.

use crate::change::plan::migration::PendingMigration;

/// Whether and how the database can be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WriteState {
    /// Reason why the database can never be written.
    pub blocked: Option<String>,
    /// Remedy if it is blocked and one is known.
    pub remedy: Option<String>,
    /// Whether the database has an audit trail, so that changes can be made.
    pub audited: bool,
    /// Pending migrations, in order.
    pub pending: Vec<PendingMigration>,
}
