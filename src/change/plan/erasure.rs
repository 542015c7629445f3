//! Erasing a person as plain data: how it shall be done, what it would do, and what it came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Counts;
pub use crate::memory::mention::Certainty;

/// Decision about mentions of the person in other people's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mentions {
    /// They stay and are disclosed.
    #[default]
    Leave,
    /// The words are removed, the rows stay.
    Redact,
    /// The rows go.
    Delete,
}

impl Mentions {
    /// All of them.
    pub const ALL: [Mentions; 3] = [Mentions::Leave, Mentions::Redact, Mentions::Delete];

    /// The one that a word of the command line means.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Mentions> {
        Mentions::ALL.into_iter().find(|decision| decision.word() == word)
    }

    /// The one after this one, and after the last the first.
    #[must_use]
    pub fn next(self) -> Mentions {
        match self {
            Mentions::Leave => Mentions::Redact,
            Mentions::Redact => Mentions::Delete,
            Mentions::Delete => Mentions::Leave,
        }
    }

    /// The word of the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Mentions::Leave => "leave",
            Mentions::Redact => "redact",
            Mentions::Delete => "delete",
        }
    }
}

/// Choices for the erasure of a person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErasureChoice {
    /// Decision about mentions.
    pub mentions: Mentions,
    /// Decisions about one mention, by its id, or about those in one column, by `table.column`.
    pub each: BTreeMap<String, Mentions>,
    /// The account with the application goes too.
    pub account: bool,
    /// PostgreSQL: tables may be locked while they are rewritten.
    pub full: bool,
    /// The person's data is written to a folder first.
    pub export: bool,
}

impl ErasureChoice {
    /// Returns the decision about a mention: it is left when the requested decision cannot be carried out.
    #[must_use]
    pub fn decision(&self, mention: &ShownMention) -> Mentions {
        let own = self.each.get(&mention.id).or_else(|| self.each.get(&mention.place)).copied();
        let asked = own.unwrap_or(if mention.doubt.is_none() { self.mentions } else { Mentions::Leave });
        if mention.options.contains(&asked) { asked } else { Mentions::Leave }
    }
}

/// A table in the tree of what goes: below the one whose rows lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Steps from the person.
    pub depth: usize,
    /// Table, for people.
    pub table: String,
    /// Rows that go.
    pub rows: usize,
}

/// One thing by which the person is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureHandle {
    /// Kind.
    pub kind: String,
    /// Value.
    pub value: String,
    /// Reason why texts are not searched for the handle.
    pub unsearched: Option<String>,
}

/// Words of a value around a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MentionWords {
    /// Words before the name.
    pub before: String,
    /// The name as it is there; empty when only the text with the name masked is known.
    pub name: String,
    /// Words after the name.
    pub after: String,
}

/// A mention as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownMention {
    /// Id.
    pub id: String,
    /// Table and column.
    pub place: String,
    /// Key of its row.
    pub key: String,
    /// Reason why it is only possible that the person is meant; `None` when it is certain.
    pub doubt: Option<String>,
    /// Title of its row; empty when it has none.
    pub title: String,
    /// Id of the person whom the row belongs to; empty when the row does not say so itself.
    pub owner: String,
    /// Words of the value around the name.
    pub words: MentionWords,
    /// Decisions about the mention that can be carried out.
    pub options: Vec<Mentions>,
    /// Reason why not every decision can be carried out.
    pub refused: Option<String>,
}

/// An erasure that has not ended verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedErasure {
    /// The person, as given when it began.
    pub given: String,
    /// Time when the erasure began.
    pub started_at: String,
}

/// Preview of an erasure: what it would do.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// Id of the plan.
    pub plan_id: String,
    /// The person's id.
    pub id: String,
    /// Everything by which the person is known.
    pub known: Vec<ErasureHandle>,
    /// Others of the same name: id and name.
    pub near: Vec<(String, String)>,
    /// Rows that go, as a tree of tables.
    pub tree: Vec<Branch>,
    /// Rows by table.
    pub counts: Counts,
    /// Number of rows, of those that go, that mention the person or depend on such a row: they are other people's.
    pub gone_for_mentions: usize,
    /// Other people's values that mention the person, by table and column.
    pub mentions: Vec<(String, usize)>,
    /// Mentions one by one, as many as are kept.
    pub named: Vec<ShownMention>,
    /// Further effects of the erasure.
    pub effects: Vec<String>,
    /// Data that remains, and facts that cannot be determined.
    pub disclosures: Vec<String>,
    /// Reason why nothing may be erased: a hold, or a database that takes no changes.
    pub refused: Option<String>,
    /// A legal hold stands on the person.
    pub held: bool,
    /// Old pages go only when tables are rewritten under lock.
    pub locks: bool,
    /// An earlier run has not ended verified: this one resumes it.
    pub unfinished: bool,
    /// Choices of that run, if it was begun here.
    pub began: Option<ErasureChoice>,
}

/// Check that was made after an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureCheck {
    /// Name of what was searched for.
    pub name: String,
    /// Finding of the check, in words.
    pub found: String,
    /// True when the finding is as it should be; `None` when it could not be checked.
    pub good: Option<bool>,
}

/// Outcome of an erasure.
#[derive(Debug, Clone, PartialEq)]
pub struct ErasureOutcome {
    /// `verified`, `verified with disclosures` or `incomplete`.
    pub status: String,
    /// Rows by table.
    pub counts: Counts,
    /// Searches after the erasure, with their findings.
    pub verification: Vec<ErasureCheck>,
    /// Reasons why the erasure is incomplete.
    pub incomplete: Vec<String>,
    /// Disclosures.
    pub disclosures: Vec<String>,
    /// Place where the receipt is kept.
    pub kept_in: String,
    /// Folder of the bundle that was exported before; none when this run exported nothing.
    pub exported_to: Option<String>,
    /// Number of its entry in the audit trail.
    pub audit_seq: i64,
}
