//! Erasing a person as plain data: options, expected effects, and result.

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
    /// The rows are deleted.
    Delete,
}

impl Mentions {
    /// All decisions.
    pub const ALL: [Mentions; 3] = [Mentions::Leave, Mentions::Redact, Mentions::Delete];

    /// Parses a decision's word on the command line.
    pub fn of_word(word: &str) -> Option<Mentions> {
        Mentions::ALL.into_iter().find(|decision| decision.word() == word)
    }

    /// The next choice; after the last one, the first.
    pub fn next(self) -> Mentions {
        match self {
            Mentions::Leave => Mentions::Redact,
            Mentions::Redact => Mentions::Delete,
            Mentions::Delete => Mentions::Leave,
        }
    }

    /// The word on the command line.
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
    /// Whether the person's account with the application is erased too.
    pub account: bool,
    /// PostgreSQL: tables may be locked while they are rewritten.
    pub full: bool,
    /// The person's data is written to a folder first.
    pub export: bool,
}

impl ErasureChoice {
    /// Returns the decision about a mention: it is left when the requested decision cannot be carried out.
    pub fn decision(&self, mention: &ShownMention) -> Mentions {
        let own = self.each.get(&mention.id).or_else(|| self.each.get(&mention.place)).copied();
        let asked = own.unwrap_or(if mention.doubt.is_none() { self.mentions } else { Mentions::Leave });
        if mention.options.contains(&asked) { asked } else { Mentions::Leave }
    }
}

/// A table in the tree of deletions, below the table whose rows lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Steps from the person.
    pub depth: usize,
    /// Table, for people.
    pub table: String,
    /// Number of rows to delete.
    pub rows: usize,
}

/// One handle of the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureHandle {
    /// Kind.
    pub kind: String,
    /// Value.
    pub value: String,
    /// Reason why texts are not searched for the handle.
    pub unsearched: Option<String>,
}

/// Text around a name in a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MentionWords {
    /// Text before the name.
    pub before: String,
    /// The name as written; empty if only the masked text is known.
    pub name: String,
    /// Text after the name.
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
    /// Reason why the mention is uncertain; `None` if it is certain.
    pub doubt: Option<String>,
    /// Title of its row; empty if it has none.
    pub title: String,
    /// Id of the row's owner; empty if the row itself does not say.
    pub owner: String,
    /// Text around the name.
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
    /// All handles of the person.
    pub known: Vec<ErasureHandle>,
    /// Other people with the same name: id and name.
    pub near: Vec<(String, String)>,
    /// Rows to delete, as a tree of tables.
    pub tree: Vec<Branch>,
    /// Rows by table.
    pub counts: Counts,
    /// Number of rows deleted because they mention the person or depend on such a row; they are other people's.
    pub gone_for_mentions: usize,
    /// Other people's values that mention the person, by table and column.
    pub mentions: Vec<(String, usize)>,
    /// Mentions one by one, up to the limit.
    pub named: Vec<ShownMention>,
    /// Further effects of the erasure.
    pub effects: Vec<String>,
    /// Data that remains, and facts that cannot be determined.
    pub disclosures: Vec<String>,
    /// Reason why nothing may be erased: a hold, or a database that is not writable.
    pub refused: Option<String>,
    /// Whether the person is under a legal hold.
    pub held: bool,
    /// Whether old pages can only be removed by rewriting tables under lock.
    pub locks: bool,
    /// Whether an earlier run is unfinished, which this one resumes.
    pub unfinished: bool,
    /// Choices of that run, if it was begun here.
    pub began: Option<ErasureChoice>,
}

/// Check that was made after an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureCheck {
    /// Name of the check.
    pub name: String,
    /// Finding of the check, as text.
    pub found: String,
    /// Whether the finding is as expected; `None` if it could not be checked.
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
    /// Location of the stored receipt.
    pub kept_in: String,
    /// Folder of the bundle exported by this run; `None` if it exported nothing.
    pub exported_to: Option<String>,
    /// Number of its entry in the audit trail.
    pub audit_seq: i64,
}
