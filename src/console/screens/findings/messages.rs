//! News of a look through the database.

use crate::memory::findings::{Finding, NotApplicable};

/// News of a look through the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookNews {
    /// A finding.
    Found(Box<Finding>),
    /// A kind that does not apply here.
    NotApplicable(NotApplicable),
    /// Rows read so far, and the entity of the last ones.
    Read(u64, &'static str),
    /// Kinds that were left for a longer look.
    Left(Vec<&'static str>),
    /// The look is complete.
    Done,
}
