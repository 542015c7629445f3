//! A value outside a person's own rows that names the person: its id, the possible treatments, and the decision.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::effects::digest;
pub use crate::change::plan::erasure::{Certainty, Mentions};
use crate::change::plan::erasure::{MentionWords, ShownMention};
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::row_number::is_numbered;
use crate::store::stored::TableName;

/// Hexadecimal digits of an id.
const DIGITS: usize = 10;

/// Reason for leaving a mention in a table outside the layout.
pub(super) const OUTSIDE: &str = "the table is outside the layout and is never written";

/// Reasons why decisions about a mention cannot be carried out; leaving it is always possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MentionRefusals {
    /// Reason why the words cannot be removed.
    pub redact: Option<&'static str>,
    /// Reason why the row cannot be deleted.
    pub delete: Option<&'static str>,
}

impl MentionRefusals {
    /// Creates refusals of both decisions, for one reason.
    pub fn both(reason: &'static str) -> Self {
        MentionRefusals { redact: Some(reason), delete: Some(reason) }
    }

    /// Returns the reason why a decision cannot be carried out.
    pub fn of(&self, decision: Mentions) -> Option<&'static str> {
        match decision {
            Mentions::Leave => None,
            Mentions::Redact => self.redact,
            Mentions::Delete => self.delete,
        }
    }

    /// Returns the decisions that can be carried out.
    pub fn options(&self) -> Vec<Mentions> {
        Mentions::ALL.into_iter().filter(|decision| self.of(*decision).is_none()).collect()
    }
}

/// A value outside the person's own rows that names the person.
#[derive(Debug, Clone, PartialEq)]
pub struct Mention {
    /// Id, stable as long as the row keeps its key.
    pub id: String,
    /// Table.
    pub table: TableName,
    /// Key of the row.
    pub key: Vec<FetchedValue>,
    /// Column.
    pub column: String,
    /// Certainty that the person is meant: certain if any place is.
    pub certainty: Certainty,
    /// Number of uncertain places.
    pub possible: usize,
    /// Kinds of the handles found.
    pub kinds: Vec<String>,
    /// Number of places where the person is mentioned.
    pub hits: usize,
    /// The text around the first place, with the handle masked.
    pub sample: String,
    /// Decisions about the mention that cannot be carried out, with the reasons.
    pub refusals: MentionRefusals,
    /// Decision about the mention.
    pub decision: Mentions,
    /// True when the requested decision is carried out; false when it is impossible and the mention is left.
    pub chosen: bool,
}

impl Mention {
    /// Table and column, for people.
    pub fn place(&self) -> String {
        format!("{}.{}", self.table.title(), self.column)
    }

    /// Returns the reason why the mention is uncertain; `None` if it is certain.
    pub fn reason(&self) -> Option<&'static str> {
        match self.certainty {
            Certainty::Certain => None,
            Certainty::Possible(reason) => Some(reason),
        }
    }

    /// The key as people read it.
    pub fn key_text(&self) -> String {
        self.key.iter().filter_map(as_text).collect::<Vec<_>>().join(" ")
    }

    /// Returns the reason why not every decision about the mention can be carried out.
    pub fn refusal(&self) -> Option<&'static str> {
        self.refusals.redact.or(self.refusals.delete)
    }

    /// The mention for the console.
    pub fn shown(&self) -> ShownMention {
        ShownMention {
            id: self.id.clone(),
            place: self.place(),
            key: self.key_text(),
            doubt: self.reason().map(str::to_owned),
            title: String::new(),
            owner: String::new(),
            words: MentionWords { before: self.sample.clone(), ..MentionWords::default() },
            options: self.refusals.options(),
            refused: self.refusal().map(str::to_owned),
        }
    }

    /// The shape that commands print.
    pub fn printed(&self) -> PrintedMention {
        PrintedMention {
            id: self.id.clone(),
            table: self.table.title(),
            column: self.column.clone(),
            key: self.key_text(),
            certainty: self.certainty.word(),
            reason: self.reason(),
            kinds: self.kinds.clone(),
            hits: self.hits,
            possible: self.possible,
            sample: self.sample.clone(),
            options: self.refusals.options(),
            decision: self.decision,
            refused: self.refusal(),
        }
    }
}

/// A mention in the shape that commands print.
#[derive(Debug, Clone, Serialize)]
pub struct PrintedMention {
    id: String,
    /// Name of the table.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Key of the row, its parts separated by spaces.
    pub key: String,
    certainty: &'static str,
    reason: Option<&'static str>,
    kinds: Vec<String>,
    hits: usize,
    possible: usize,
    /// Text around the first hit, with the handle masked.
    pub sample: String,
    options: Vec<Mentions>,
    decision: Mentions,
    refused: Option<&'static str>,
}

impl PrintedMention {
    /// The mention on one line: id, decision, text around it, doubts and refusals.
    pub fn line(&self) -> String {
        let doubt = self.reason.map(|reason| format!(" (possible: {reason})"));
        let refused = self.refused.map(|refused| format!(" ({refused})"));
        let [doubt, refused] = [doubt, refused].map(Option::unwrap_or_default);
        format!("{} {:6} {}{doubt}{refused}", self.id, self.decision.word(), self.sample)
    }
}

/// Computes the id of a mention: a hash of table, key and column. For rows without a key of their own, or with a NULL
/// in it, the value replaces the key, since the engine may renumber such rows.
pub fn id(table: &TableName, by: &[String], key: &[FetchedValue], column: &str, value: &FetchedValue) -> String {
    let own = &key[..key.len() - usize::from(is_numbered(by))];
    let is_told = !own.is_empty() && (own.len() == by.len() || !own.contains(&FetchedValue::Null));
    let row = if is_told { serde_json::to_string(own).unwrap_or_default() } else { hex::encode(digest(value)) };
    let hash = Sha256::digest(json!([table.title(), column, row]).to_string().as_bytes());
    format!("m_{}", &hex::encode(hash)[..DIGITS])
}

/// Decisions about mentions: by mention id, by `table.column`, or for all certain mentions.
#[derive(Debug, Clone, Copy)]
pub struct Decisions<'a> {
    /// For all certain mentions.
    pub all: Mentions,
    /// By mention id, or by `table.column`.
    pub each: &'a BTreeMap<String, Mentions>,
}

impl Decisions<'_> {
    /// Returns the requested decision. An uncertain mention is left unless it, or its column, was decided individually.
    pub fn of(&self, id: &str, place: &str, certainty: Certainty) -> Mentions {
        let own = self.each.get(id).or_else(|| self.each.get(place)).copied();
        own.unwrap_or(if certainty == Certainty::Certain { self.all } else { Mentions::Leave })
    }

    /// Whether rows may be deleted for their contents.
    pub fn delete_any(&self) -> bool {
        self.all == Mentions::Delete || self.each.values().any(|decision| *decision == Mentions::Delete)
    }

    /// Returns the name of the decision that applies to a mention.
    pub fn named(&self, id: &str, place: &str) -> Option<&str> {
        [id, place].into_iter().find_map(|name| self.each.get_key_value(name)).map(|(name, _)| name.as_str())
    }
}

/// Matches between the decisions of a plan and the mentions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Met {
    /// Ids and columns that were found.
    pub names: BTreeSet<String>,
    /// Decisions about one mention that cannot be carried out, by its id.
    pub refused: BTreeMap<String, RefusedDecision>,
}

/// A decision about a mention, the reason why it cannot be carried out, and the decisions that can.
pub type RefusedDecision = (Mentions, &'static str, Vec<Mentions>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::row_number::hidden;

    #[test]
    fn one_mention_is_decided_before_its_place_and_that_before_all() {
        let each = BTreeMap::from([("m_1".to_owned(), Mentions::Leave), ("t.c".to_owned(), Mentions::Delete)]);
        let decisions = Decisions { all: Mentions::Redact, each: &each };
        let possible = Certainty::Possible("next to `_`");
        assert_eq!(decisions.of("m_1", "t.c", Certainty::Certain), Mentions::Leave);
        assert_eq!(decisions.of("m_2", "t.c", possible), Mentions::Delete);
        assert_eq!(decisions.of("m_2", "t.d", Certainty::Certain), Mentions::Redact);
        assert_eq!(decisions.of("m_2", "t.d", possible), Mentions::Leave);
    }

    #[test]
    fn an_id_holds_as_long_as_the_row_has_its_key() {
        let table = TableName::new("main".to_owned(), "notes".to_owned());
        let of = |by: &str, key: i64, text: &str| {
            id(&table, &[by.to_owned()], &[FetchedValue::Integer(key)], "note", &FetchedValue::Text(text.to_owned()))
        };
        assert_eq!(of("id", 1, "a"), of("id", 1, "b"));
        assert_ne!(of("id", 1, "a"), of("id", 2, "a"));
        let number = hidden("rowid");
        assert_eq!(of(&number, 1, "a"), of(&number, 2, "a"));
    }
}
