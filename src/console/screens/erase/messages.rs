//! Choices that a key makes while a person is erased.

use crate::change::plan::erasure::Mentions;

/// A choice made by a key on the screen that erases a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EraseChoice {
    /// The next step.
    Next,
    /// The step before.
    Before,
    /// Choose what happens to mentions.
    Mentions,
    /// Whether the account goes.
    Account,
    /// Whether the person's data is written to a folder first.
    Export,
    /// Whether tables may be rewritten under lock.
    Full,
    /// Decide what happens to the selected mention, or, when true, to all in its column.
    Decide(Mentions, bool),
    /// A longer look at how recall would change.
    Longer,
    /// Name another person.
    Other,
}

impl EraseChoice {
    /// Whether it changes what an erasure does: one that has begun keeps what was chosen then.
    #[must_use]
    pub fn changes_the_erasure(self) -> bool {
        use EraseChoice::{Account, Decide, Export, Full, Mentions};
        matches!(self, Mentions | Account | Export | Full | Decide(..))
    }
}
