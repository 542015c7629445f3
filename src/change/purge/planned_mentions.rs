//! Mentions that cause other people's rows to be deleted, as a plan recorded them: a row that no longer names the
//! person stays.

use super::effects::{ValueDigest, digest};
use crate::memory::mention::MentionText;
use crate::memory::packed::digest_set::DigestSet;
use crate::memory::packed::pages::PageStore;
use crate::store::fetched::FetchedValue;
use crate::store::row_list::row_digest;

/// A value that causes its row to be deleted.
#[derive(Debug)]
pub struct TellingValue {
    /// Column.
    pub column: String,
    /// Kind of content that the column holds.
    pub about: MentionText,
    /// Digest of the value when the plan was made.
    pub was: ValueDigest,
}

/// Mentions that cause rows of a table to be deleted, as they were when the plan was made.
#[derive(Debug)]
pub struct PlannedMentions {
    /// Columns with such mentions.
    columns: Vec<(String, MentionText)>,
    /// Hashes of the keys of these rows.
    rows: DigestSet,
    /// Hashes of their keys with a column's number and its value.
    values: DigestSet,
}

impl PlannedMentions {
    /// Creates an empty list.
    pub(super) fn new(pages: &PageStore) -> Self {
        PlannedMentions { columns: Vec::new(), rows: DigestSet::new(pages), values: DigestSet::new(pages) }
    }

    /// Adds a value of a row.
    pub(super) fn add(&mut self, key: &[FetchedValue], value: TellingValue) {
        let TellingValue { column, about, was } = value;
        let at = self.columns.iter().position(|(known, _)| *known == column).unwrap_or_else(|| {
            self.columns.push((column, about));
            self.columns.len() - 1
        });
        self.rows.insert(row_digest(key));
        self.values.insert(value_digest(key, at, was));
    }

    /// Columns that named the person.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().map(|(column, _)| column)
    }

    /// Whether a row to be deleted for its contents no longer names the person: its values in these columns have
    /// changed, and `names` is false for all of them.
    pub fn is_taken_back(
        &self,
        key: &[FetchedValue],
        values: &[FetchedValue],
        names: impl Fn(&FetchedValue, MentionText) -> bool,
    ) -> bool {
        let tells = |(at, ((_, about), raw)): (usize, (&(String, MentionText), &FetchedValue))| {
            self.values.contains(value_digest(key, at, digest(raw))) || names(raw, *about)
        };
        self.rows.contains(row_digest(key)) && !self.columns.iter().zip(values).enumerate().any(tells)
    }
}

fn value_digest(key: &[FetchedValue], at: usize, was: ValueDigest) -> [u64; 2] {
    let value = [FetchedValue::Integer(at as i64), FetchedValue::Bytes(was.to_vec())];
    row_digest(&[key, &value].concat())
}
