//! Erasing a person as plain data: how it shall be done, what it would do, and what it came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Counts;
pub use crate::memory::mention::Certainty;

/// What happens to mentions of the person in other people's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mentions {
    /// They stay and are disclosed.
    #[default]
    Leave,
    /// The words are taken out, the rows stay.
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

/// How a person shall be erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureChoice {
    /// What happens to mentions.
    pub mentions: Mentions,
    /// What happens to one mention, by its id, or to those in one column, by `table.column`.
    pub each: BTreeMap<String, Mentions>,
    /// The account with the application goes too.
    pub account: bool,
    /// PostgreSQL: tables may be locked while they are rewritten.
    pub full: bool,
    /// The person's data is written to a folder first.
    pub export: bool,
}

impl ErasureChoice {
    /// What is done about a mention: what cannot be done is left.
    #[must_use]
    pub fn decision(&self, mention: &ShownMention) -> Mentions {
        let own = self.each.get(&mention.id).or_else(|| self.each.get(&mention.place)).copied();
        let asked = own.unwrap_or(if mention.doubt.is_none() { self.mentions } else { Mentions::Leave });
        if mention.options.contains(&asked) { asked } else { Mentions::Leave }
    }
}

impl Default for ErasureChoice {
    fn default() -> Self {
        ErasureChoice { mentions: Mentions::Leave, each: BTreeMap::new(), account: false, full: false, export: false }
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
    /// Why it is not looked for in texts.
    pub unsearched: Option<String>,
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
    /// Why it is only possible that the person is meant; none where it is certain.
    pub doubt: Option<String>,
    /// The text around it, with the handle masked.
    pub sample: String,
    /// What can be done about it.
    pub options: Vec<Mentions>,
    /// Why not all can.
    pub refused: Option<String>,
}

/// An erasure that has not ended verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedErasure {
    /// The person, as given when it began.
    pub given: String,
    /// When it began.
    pub started_at: String,
}

/// What erasing would do.
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
    /// What goes, as a tree.
    pub tree: Vec<Branch>,
    /// Rows by table.
    pub counts: Counts,
    /// Other people's values that mention the person, by table and column.
    pub mentions: Vec<(String, usize)>,
    /// Mentions one by one, as many as are kept.
    pub named: Vec<ShownMention>,
    /// What else comes of it.
    pub effects: Vec<String>,
    /// What remains, and what cannot be told.
    pub disclosures: Vec<String>,
    /// Why nothing may be erased: a hold, or a database that takes no changes.
    pub refused: Option<String>,
    /// A legal hold stands on the person.
    pub held: bool,
    /// Old pages go only when tables are rewritten under lock.
    pub locks: bool,
    /// An earlier run has not ended verified: this one resumes it.
    pub unfinished: bool,
    /// How that run is done, where it was begun here.
    pub began: Option<ErasureChoice>,
}

/// Something that was looked for after an erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureCheck {
    /// What was looked for.
    pub name: String,
    /// What was found, in words.
    pub found: String,
    /// It is as it should be; none where it could not be checked.
    pub good: Option<bool>,
}

/// What erasing came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ErasureOutcome {
    /// `verified`, `verified with disclosures` or `incomplete`.
    pub status: String,
    /// Rows by table.
    pub counts: Counts,
    /// What was looked for and found.
    pub verification: Vec<ErasureCheck>,
    /// Why it is incomplete.
    pub incomplete: Vec<String>,
    /// Disclosures.
    pub disclosures: Vec<String>,
    /// Where the receipt is kept.
    pub kept_in: String,
    /// Number of its entry in the audit trail.
    pub audit_seq: i64,
}
