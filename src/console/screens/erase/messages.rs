//! What a key chooses while a person is erased.

use crate::change::plan::erasure::Mentions;

/// What is chosen by a key here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EraseChoice {
    /// The next step.
    Next,
    /// The step before.
    Before,
    /// What happens to mentions.
    Mentions,
    /// Whether the account goes.
    Account,
    /// Whether the person's data is written to a folder first.
    Export,
    /// Whether tables may be rewritten under lock.
    Full,
    /// What happens to the selected mention, or to all in its column.
    Decide(Mentions, bool),
    /// A longer look at how recall would change.
    Longer,
    /// Somebody else.
    Other,
}
