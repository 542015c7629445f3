//! Rules for writing a change back into a source: the `[ENTITY.write]` part of a layout file.

use md5::Md5;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{CatalogTable, Inside};

/// Rules for writing the rows of a source. A source without them is only read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Write {
    /// Reason why the source is read-only, for users; `None` if it can be written.
    pub refuse: Option<String>,
    /// Feedback kinds that can be stored; `None` for all.
    pub kinds: Option<Vec<String>>,
    /// Stored columns that a new row needs and no canonical column fills.
    pub insert: Vec<(String, Fill)>,
    /// Stored columns that are set to the time of every change of the row.
    pub touch: Vec<String>,
    /// Additional places where values of canonical columns are stored.
    pub copies: Vec<StoredCopy>,
    /// Effect of removing a row.
    pub remove: Removal,
    /// Spelling of times in text columns.
    pub times: TimeSpelling,
    /// Whether the store's own reader needs a vector in every row: an edit keeps that of the earlier text.
    pub keeps_vector: bool,
    /// Whether the engine numbers the rows; otherwise a new row gets a UUID.
    pub numbered: bool,
    /// Episodes: a new one is no row of its own; it is appended to its run's event log as an event of this kind.
    pub event: Option<String>,
    /// Audit trails: operation of ours to the action that the trail knows.
    pub actions: Vec<(String, String)>,
}

impl Write {
    /// Limits the rules to the columns of a table: if it has no column for the mark, nothing can be removed.
    pub(super) fn of_table(mut self, table: &CatalogTable) -> Self {
        if let Removal::Mark(marks) = &self.remove
            && let Some((column, _)) = marks.iter().find(|(column, _)| table.column(column).is_none())
        {
            let words = format!("{} has no column `{column}` that marks a row as removed", table.title());
            self.remove = Removal::Refuse(words);
        }
        self
    }
}

/// A copy of canonical columns that must be edited with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCopy {
    /// The canonical columns: of several, the copy is a digest of all that they store.
    pub of: Vec<String>,
    /// The stored column with the copy.
    pub column: String,
    /// Place of the copy within that column's value.
    pub inside: Inside,
    /// Form of the copy.
    pub form: CopyForm,
}

/// Format of a copy of a text or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyForm {
    /// The text.
    #[default]
    Same,
    /// The text in small letters.
    Lower,
    /// MD5 digest of the text, as hexadecimal digits.
    Md5,
    /// SHA-256 digest of the text, as hexadecimal digits.
    Sha256,
    /// The same of the lower-cased text reduced to the letters a to z and digits.
    Sha256Letters,
    /// The same of the lower-cased text without surrounding white space.
    Sha256Trimmed,
    /// The first 16 digits of the SHA-256 digest.
    Sha256Short,
    /// The time in another spelling.
    Time(TimeSpelling),
}

impl CopyForm {
    /// The words of layout files.
    pub const WORDS: &'static [(&'static str, CopyForm)] = &[
        ("same", CopyForm::Same),
        ("lower", CopyForm::Lower),
        ("md5", CopyForm::Md5),
        ("sha256", CopyForm::Sha256),
        ("sha256-letters", CopyForm::Sha256Letters),
        ("sha256-trimmed", CopyForm::Sha256Trimmed),
        ("sha256-16", CopyForm::Sha256Short),
        ("iso-seconds", CopyForm::Time(TimeSpelling::Seconds)),
        ("iso-millis", CopyForm::Time(TimeSpelling::Millis)),
    ];

    /// Whether the copy does not show the text.
    pub fn is_digest(self) -> bool {
        !matches!(self, CopyForm::Same | CopyForm::Lower | CopyForm::Time(_))
    }

    /// The spelling of a time; `None` for a copy of a text.
    pub fn spelling(self) -> Option<TimeSpelling> {
        if let CopyForm::Time(spelling) = self { Some(spelling) } else { None }
    }

    /// The copy of a text.
    pub fn of(self, text: &str) -> String {
        match self {
            CopyForm::Same | CopyForm::Time(_) => text.to_owned(),
            CopyForm::Lower => text.to_lowercase(),
            CopyForm::Md5 => hex::encode(Md5::digest(text.as_bytes())),
            CopyForm::Sha256 => hex::encode(Sha256::digest(text.as_bytes())),
            CopyForm::Sha256Letters => {
                let mut plain = text.to_lowercase();
                plain.retain(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit());
                CopyForm::Sha256.of(&plain)
            }
            CopyForm::Sha256Trimmed => CopyForm::Sha256.of(&text.trim().to_lowercase()),
            CopyForm::Sha256Short => {
                let mut digits = CopyForm::Sha256.of(text);
                digits.truncate(16);
                digits
            }
        }
    }
}

/// Effect of removing a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Removal {
    /// The stored row is deleted.
    #[default]
    Delete,
    /// The row belongs to another entity: these stored columns are cleared; if none are named, all those that only this
    /// entity reads.
    Empty(Vec<String>),
    /// The row is kept and marked: stored columns with their new values; without a value, the time of the change.
    Mark(Vec<(String, Option<Value>)>),
    /// Refusal: the row cannot be removed, for this reason.
    Refuse(String),
}

/// Source of a column's value in a new row.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    /// A constant for every row.
    Value(Value),
    /// This stored column of the row on which the new one depends: the episode of a feedback; for an episode its
    /// parent, else the agent's latest one.
    Owner(String),
    /// A value determined by a canonical column that has no stored column of its own.
    Word {
        /// The canonical column.
        column: String,
        /// Words of the canonical column, each with its stored value.
        words: Vec<(String, Value)>,
    },
}

/// Spelling of times written to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeSpelling {
    /// `2026-02-04T10:00:00.000000Z`
    #[default]
    Canonical,
    /// `2026-02-04 10:00:00.000000`, in UTC.
    Naive,
    /// `2026-02-04T10:00:00.000000+00:00`
    Offset,
    /// `2026-02-04T10:00:00Z`
    Seconds,
    /// `2026-02-04T10:00:00.000Z`
    Millis,
    /// Seconds since 1970, whole.
    Epoch,
    /// Seconds since 1970 with a fraction.
    EpochReal,
    /// Milliseconds since 1970.
    EpochMillis,
}
