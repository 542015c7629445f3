//! The rows of a table to delete, in few bytes: their keys as hashes, and the values read, outside of memory if they do
//! not fit.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::sealed::sealed_scratch;
use crate::memory::json;
use crate::memory::packed::digest_set::DigestSet;
use crate::memory::packed::pages::PageStore;
use crate::store::fetched::{FetchedValue, RawRow};
use crate::store::row_list::{RowList, row_digest};
use crate::store::stored::{StoredRows, TableName};

/// Bytes of rows and ids that stay in memory; for their hashes twice as much.
const ROOM: usize = 4 << 20;

/// Rows looked up in another table at a time.
pub const AT_ONCE: usize = 5_000;

/// Storage for the rows and ids to delete, and their hashes.
pub(super) fn room() -> PageStore {
    PageStore::new(ROOM, sealed_scratch)
}

/// The rows of one table to delete.
#[derive(Debug)]
pub struct TakenRows {
    /// Columns that identify its rows.
    pub key: Vec<String>,
    /// Columns read of each row: the key, then columns that others refer to.
    pub columns: Vec<String>,
    rows: RowList,
    /// Hashes of the keys.
    known: DigestSet,
    /// Number of rows found by a column that names the person and nobody else.
    named: usize,
}

impl TakenRows {
    /// Creates an empty list.
    pub(crate) fn new(key: Vec<String>, columns: Vec<String>, pages: &PageStore) -> Self {
        TakenRows { key, columns, rows: RowList::new(pages), known: DigestSet::new(pages), named: 0 }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows of a range, in order of insertion.
    pub fn rows(&self, range: Range<usize>) -> impl Iterator<Item = RawRow> + '_ {
        self.rows.rows(range)
    }

    /// The keys of a range.
    pub fn keys(&self, range: Range<usize>) -> impl Iterator<Item = Vec<FetchedValue>> + '_ {
        keys_of(&self.rows, self.key.len(), range)
    }

    /// Whether the row with that key is deleted.
    pub fn has(&self, key: &[FetchedValue]) -> bool {
        !self.is_empty() && self.known.contains(row_digest(key))
    }

    /// The index of a column in each row.
    pub fn place(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|known| known == column)
    }

    /// The values of a column in a range, with lists split into elements. A key column is never split.
    pub fn values(&self, column: &str, range: Range<usize>) -> impl Iterator<Item = FetchedValue> + '_ {
        let is_key = self.key.iter().any(|key| key == column);
        let at = self.place(column);
        let range = if at.is_some() { range } else { 0..0 };
        let value = move |mut row: RawRow| (at? < row.len()).then(|| row.swap_remove(at.unwrap_or_default()));
        self.rows(range).filter_map(value).flat_map(move |raw| listed(raw, is_key))
    }

    /// The sums of all hashes, which identify the set of rows.
    pub fn sums(&self) -> [u64; 2] {
        self.known.sums()
    }

    /// Adds a row, unless it is already present.
    pub fn add(&mut self, row: &[FetchedValue]) {
        if self.known.insert(row_digest(&row[..self.key.len().min(row.len())])) {
            self.rows.push(row);
        }
    }

    /// Adds a row found by an owner column; `is_alone` if the person is its only owner.
    pub(super) fn add_owned(&mut self, row: &[FetchedValue], is_alone: bool) {
        let before = self.len();
        self.add(row);
        self.named += usize::from(is_alone && self.len() > before);
    }

    /// Whether all rows were found by a column that names the person and nobody else.
    pub(super) fn are_named(&self) -> bool {
        self.named == self.len()
    }

    /// The rows, reduced to their keys.
    pub fn going(&self, table: TableName) -> GoingRows {
        GoingRows { table, by: self.key.clone(), own: usize::MAX, rows: self.rows.clone() }
    }
}

pub(super) fn listed(raw: FetchedValue, is_key: bool) -> Vec<FetchedValue> {
    let items = match &raw {
        FetchedValue::Null => return Vec::new(),
        FetchedValue::Text(text) if !is_key => json::listed(text),
        _ => None,
    };
    items.map_or_else(|| vec![raw], |items| items.into_iter().map(FetchedValue::Text).collect())
}

/// Rows of a table to delete, in order: each row's first values are its key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GoingRows {
    /// Table.
    pub table: TableName,
    /// Columns of the key.
    pub by: Vec<String>,
    /// Number of leading rows that belong to the person. The rows after them are deleted for their contents or depend
    /// on such rows, and are searched for again when the erasure is resumed.
    #[serde(default = "all")]
    own: usize,
    #[serde(skip, default = "no_rows")]
    rows: RowList,
}

fn all() -> usize {
    usize::MAX
}

fn no_rows() -> RowList {
    RowList::new(&room())
}

impl GoingRows {
    /// Creates an empty list.
    pub(crate) fn new(table: TableName, by: Vec<String>, pages: &PageStore) -> Self {
        GoingRows { table, by, own: usize::MAX, rows: RowList::new(pages) }
    }

    /// Sets the number of leading rows that belong to the person.
    pub(super) fn with_own(self, own: usize) -> Self {
        GoingRows { own, ..self }
    }

    /// Creates an empty list of the same kind.
    pub(super) fn emptied(&self, pages: &PageStore) -> Self {
        GoingRows::new(self.table.clone(), self.by.clone(), pages).with_own(self.own)
    }

    /// The rows without those in a set of key hashes.
    pub(super) fn without(&self, some: &HashSet<[u64; 2]>) -> Self {
        let (mut left, mut own) = (self.emptied(&room()), 0);
        for (number, key) in self.all_keys().enumerate().filter(|(_, key)| !some.contains(&row_digest(key))) {
            own += usize::from(number < self.own);
            left.push(&key);
        }
        left.with_own(own)
    }

    /// Adds the rows of another list that are not present yet. They are searched for again when the erasure is resumed.
    pub(super) fn extend(&mut self, others: &GoingRows) {
        let mut there = DigestSet::new(&room());
        for key in self.all_keys() {
            there.insert(row_digest(&key));
        }
        self.own = self.own.min(self.len());
        others.all_keys().filter(|key| there.insert(row_digest(key))).for_each(|key| self.push(&key));
    }

    /// Adds a row by its key.
    pub fn push(&mut self, key: &[FetchedValue]) {
        self.rows.push(key);
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The keys of a range.
    pub fn keys(&self, range: Range<usize>) -> impl Iterator<Item = Vec<FetchedValue>> + '_ {
        keys_of(&self.rows, self.by.len(), range)
    }

    /// All keys.
    pub fn all_keys(&self) -> impl Iterator<Item = Vec<FetchedValue>> + '_ {
        self.keys(0..self.len())
    }

    /// Checks whether all keys could be written and read.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.rows.check()
    }

    /// The rows of a range for a statement, with all their keys in memory.
    pub fn stored(&self, range: Range<usize>) -> StoredRows {
        StoredRows { table: self.table.clone(), by: self.by.clone(), keys: self.keys(range).collect() }
    }

    /// Number of leading rows that belong to the person.
    pub fn own(&self) -> usize {
        self.own.min(self.len())
    }

    /// The rows that do not belong to the person, in chunks.
    pub fn chosen_parts(&self) -> impl Iterator<Item = StoredRows> + '_ {
        ranges(self.own()..self.len()).map(|range| self.stored(range))
    }

    /// The rows, in chunks to look up together.
    pub fn parts(&self) -> impl Iterator<Item = StoredRows> + '_ {
        ranges(0..self.len()).map(|range| self.stored(range))
    }
}

/// The first values of some rows, as many as the key has.
fn keys_of(rows: &RowList, length: usize, range: Range<usize>) -> impl Iterator<Item = Vec<FetchedValue>> + '_ {
    rows.rows(range).map(move |mut row| {
        row.truncate(length);
        row
    })
}

/// Splits a range into chunks of [`AT_ONCE`].
pub fn ranges(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(AT_ONCE).map(move |from| from..range.end.min(from + AT_ONCE))
}
