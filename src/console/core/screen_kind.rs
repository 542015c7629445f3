//! The list of screens of their own kind.

/// Screens of their own kind, besides home, lists and single rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScreenKind {
    /// The changes made here.
    Receipts,
    /// Wrong or suspicious things.
    Findings,
    /// Migrations that the database lacks.
    Migrations,
    /// Agents at work.
    Agents,
    /// Learned policies.
    Policies,
    /// Quality of recall.
    Evaluation,
    /// Feedback that needs a look.
    Inbox,
    /// Long changes in batches.
    Jobs,
    /// Cases that rules remove from banks.
    Prune,
    /// Ranking of a situation, to explain why something is remembered.
    Recall,
    /// A person is erased.
    Erase,
    /// A topic in order of time.
    Replay,
    /// Whether the audit trail is whole.
    Trail,
    /// The raw tables.
    Tables,
}
