//! Choices that a key makes while a person is erased.

use crate::change::plan::erasure::Mentions;

/// A choice made by a key on the erasure screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EraseChoice {
    /// The next step.
    Next,
    /// The step before.
    Before,
    /// Choose what happens to mentions.
    Mentions,
    /// Whether the account is deleted.
    Account,
    /// Whether the person's data is written to a folder first.
    Export,
    /// Whether tables may be rewritten under lock.
    Full,
    /// Decide about the selected mention, or if true about all in its column.
    Decide(Mentions, bool),
    /// A longer preview of recall.
    Longer,
    /// Name another person.
    Other,
}

impl EraseChoice {
    /// Whether it changes the effect of an erasure: one that has begun keeps its choices.
    pub fn changes_the_erasure(self) -> bool {
        use EraseChoice::{Account, Decide, Export, Full, Mentions};
        matches!(self, Mentions | Account | Export | Full | Decide(..))
    }
}
