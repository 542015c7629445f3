//! Searches every stored value of an SQLite file for handles, whether the layout knows it or not: row by row, in bounded
//! memory. Each text, key and number is checked here, because the engine cannot look into encodings.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::bytes::{ByteSearch, NeedleContexts};
use super::needles::{NeedleContext, Needles};
use super::tables::{self, SearchedKind, SearchedTable, is_engines_own};
use super::words::{HandleWords, WordCount};
use crate::layout::Engine;
use crate::memory::sieve::WordSieve;
use crate::store::container;
use crate::store::dialect::quote;
use crate::store::fetched::{FetchedValue, Param, RawRow, number, text};
use crate::store::shape::qualified;
use crate::store::side_by_side::RowBatch;
use crate::store::stored::TableName;
use crate::store::{ProofReader, StoreError};

/// Rows per SQLite read; others can write between two reads.
const ROWS: usize = 5_000;

/// A match of a handle in a stored value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSighting {
    /// Table.
    pub table: TableName,
    /// Column.
    pub column: String,
    /// Number of the handle.
    pub handle: usize,
    /// Number of places in the value.
    pub count: u64,
    /// True when the handle is the whole value.
    pub entire: bool,
}

struct SearchRun<'a> {
    watch: &'a ValueWatch,
    /// Receives the contexts of needles in values.
    contexts: &'a mut NeedleContexts,
    each: &'a mut (dyn FnMut(StoredSighting) + Send),
}

/// A value with a match.
struct SearchedValue {
    /// Number of its column.
    at: usize,
    found: WatchedValue,
}

/// Handles and needles to search for in values.
#[derive(Debug)]
pub struct ValueWatch {
    words: HandleWords,
    search: ByteSearch,
    /// Finds where a match may begin; `None` if a part is very short.
    sieve: Option<WordSieve>,
    /// Whether some handle is an integer.
    numbers: bool,
    /// Text encoding of the files.
    stored: TextForm,
}

/// Text encoding of a database's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextForm {
    /// UTF-8.
    #[default]
    Utf8,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
}

impl TextForm {
    /// A text in the encoding of the files; `None` if that is UTF-8.
    fn bytes(self, text: &str) -> Option<Vec<u8>> {
        match self {
            TextForm::Utf8 => None,
            TextForm::Utf16Le => Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            TextForm::Utf16Be => Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        }
    }
}

/// Matches of a watch in a value.
#[derive(Debug, PartialEq)]
pub struct WatchedValue {
    /// Handles, by their numbers.
    pub seen: BTreeMap<usize, WordCount>,
    /// Places of needles in the value's bytes.
    pub contexts: Vec<NeedleContext>,
}

impl ValueWatch {
    /// Prepares a search for handles in all encodings, and for handles and stored vectors in bytes.
    pub fn new(handles: &[String], vectors: &[Vec<u8>]) -> Self {
        let needles = Needles::new(handles, vectors, true);
        let words = HandleWords::new(handles);
        let search = ByteSearch::new(needles, Vec::new());
        let sieve =
            WordSieve::new(|each| search.needles().iter().map(|n| n.bytes).chain(words.sought()).for_each(each));
        let numbers = handles.iter().any(|handle| handle.parse::<i64>().is_ok());
        ValueWatch { words, search, sieve, numbers, stored: TextForm::Utf8 }
    }

    /// Sets the text encoding of the files.
    pub fn stored_as(self, stored: TextForm) -> Self {
        ValueWatch { stored, ..self }
    }

    /// The needles.
    pub fn needles(&self) -> &ByteSearch {
        &self.search
    }

    fn may_hold(&self, text: &str) -> bool {
        let may_be_in = self.sieve.as_ref().is_none_or(|sieve| sieve.may_be_in(text));
        may_be_in && (self.words.is_in(text) || self.search.is_in(text))
    }

    /// Places of needles in a text as encoded in the files.
    pub fn contexts(&self, text: &str) -> Vec<NeedleContext> {
        let mut contexts = self.search.contexts(text.as_bytes());
        contexts.extend(self.wide_contexts(text));
        contexts
    }

    fn wide_contexts(&self, text: &str) -> Vec<NeedleContext> {
        self.stored.bytes(text).map(|bytes| self.search.contexts(&bytes)).unwrap_or_default()
    }

    /// Searches a value for handles, and its bytes for needles; `None` if nothing is found.
    fn look(&self, value: &FetchedValue) -> Option<WatchedValue> {
        let mut contexts = value.bytes().map(|bytes| self.search.contexts(bytes)).unwrap_or_default();
        let needles = contexts.iter().filter_map(|context| self.search.needles().needle(context.needle));
        let seen = self.words.look(value, needles);
        if let FetchedValue::Text(text) = value {
            contexts.extend(self.wide_contexts(text));
        }
        (!seen.is_empty() || !contexts.is_empty()).then_some(WatchedValue { seen, contexts })
    }

    /// Looks at the columns of a row, after its number.
    fn row(&self, row: &RawRow) -> Vec<SearchedValue> {
        let looked = |(at, value)| Some(SearchedValue { at, found: self.look(value)? });
        row.iter().skip(1).enumerate().filter_map(looked).collect()
    }

    /// Searches a value; `None` if nothing is found. `is_bare` if it is known to be a text without encodings
    /// ([`container::is_bare`]).
    pub fn seen(&self, value: &FetchedValue, is_bare: bool) -> Option<WatchedValue> {
        let is_nothing = match value {
            FetchedValue::Text(text) => {
                !self.may_hold(text) && !self.words.may_be_folded_in(text) && (is_bare || container::is_bare(text))
            }
            FetchedValue::Integer(_) => !self.numbers,
            FetchedValue::Null | FetchedValue::Real(_) => true,
            FetchedValue::Bytes(_) | FetchedValue::BadText(_) => false,
        };
        if is_nothing { None } else { self.look(value) }
    }
}

impl ProofReader<'_> {
    /// The text encoding of the files. Irrelevant for a server, whose files are not read.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn text_form(self) -> Result<TextForm, StoreError> {
        if self.store.engine() != Engine::Sqlite {
            return Ok(TextForm::Utf8);
        }
        let rows = self.store.fetch_text("SELECT encoding FROM pragma_encoding").await?;
        Ok(match rows.first().map(|row| text(row, 0)).as_deref() {
            Some("UTF-16le") => TextForm::Utf16Le,
            Some("UTF-16be") => TextForm::Utf16Be,
            _ => TextForm::Utf8,
        })
    }

    /// Searches every table of SQLite; without `all`, only its internal ones: the structure, statistics and counters,
    /// which are not relations. `contexts` gets the contexts of needles, `each` every value with a handle.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn search_values(
        self,
        watch: &ValueWatch,
        all: bool,
        contexts: &mut NeedleContexts,
        mut each: impl FnMut(StoredSighting) + Send,
    ) -> Result<(), StoreError> {
        let mut run = SearchRun { watch, contexts, each: &mut each };
        let tables = tables::read(self.store).await?;
        // The content of a virtual table is in its shadow tables.
        let is_searched = |table: &&SearchedTable| {
            !matches!(table.kind, SearchedKind::Unread(_)) && (all || is_engines_own(&table.name))
        };
        for table in tables.iter().filter(is_searched) {
            self.search_table(table, &mut run).await?;
        }
        Ok(())
    }

    async fn search_table(self, table: &SearchedTable, run: &mut SearchRun<'_>) -> Result<(), StoreError> {
        let names: Vec<String> = table.columns.iter().map(|column| quote(&column.name)).collect();
        let (names, from) = (names.join(", "), qualified(&table.name));
        let Some(number) = table.row_number else {
            let sql = format!("SELECT 0, {names} FROM {from}");
            return self.search_rows((&sql, &[]), table, run).await.map(drop);
        };
        let sql = format!("SELECT {number}, {names} FROM {from} WHERE {number} >= $1 ORDER BY {number} LIMIT {ROWS}");
        let mut after = FetchedValue::Integer(i64::MIN);
        loop {
            let (count, last) = self.search_rows((&sql, &[after]), table, run).await?;
            match last.and_then(|last| last.checked_add(1)) {
                Some(next) if count == ROWS => after = FetchedValue::Integer(next),
                _ => return Ok(()),
            }
        }
    }

    /// Searches the rows of a statement; returns their number and the first value of the last one.
    async fn search_rows(
        self,
        (sql, params): (&str, &[Param]),
        table: &SearchedTable,
        run: &mut SearchRun<'_>,
    ) -> Result<(usize, Option<i64>), StoreError> {
        tracing::debug!(%sql, "search");
        let (mut count, mut last) = (0, None);
        let watch = run.watch;
        let mut batch = RowBatch::new(|row: &RawRow| watch.row(row));
        let mut take = |_: RawRow, looked: Vec<SearchedValue>| {
            looked.into_iter().for_each(|value| run.take(table, value));
            ControlFlow::Continue(())
        };
        let each = |row: RawRow| {
            (count, last) = (count + 1, Some(number(&row, 0)));
            batch.add(row, &mut take)
        };
        self.store.sessions.scan(sql, params, each).await?;
        let _ = batch.hand_on(take);
        Ok((count, last))
    }
}

impl SearchRun<'_> {
    /// Records the matches in a value.
    fn take(&mut self, table: &SearchedTable, SearchedValue { at, found }: SearchedValue) {
        self.contexts.add(found.contexts);
        for (handle, WordCount { whole: count, entire }) in found.seen {
            (self.each)(StoredSighting {
                table: table.name.clone(),
                column: table.columns[at].name.clone(),
                handle,
                count,
                entire,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::needles::NeedleForm;
    use super::*;

    #[test]
    fn a_text_accounts_for_its_bytes_in_the_form_of_the_files() {
        let handle = "ann.lee@x.example".to_owned();
        for (stored, wide) in [
            (TextForm::Utf8, None),
            (TextForm::Utf16Le, Some(NeedleForm::Utf16Le)),
            (TextForm::Utf16Be, Some(NeedleForm::Utf16Be)),
        ] {
            let watch = ValueWatch::new(std::slice::from_ref(&handle), &[]).stored_as(stored);
            let seen = watch.seen(&FetchedValue::Text(format!("ask {handle} again")), false).expect("it is there");
            assert_eq!(seen.seen.get(&0).map(|seen| seen.whole), Some(1));
            let form = |context: &NeedleContext| watch.needles().needles().needle(context.needle).map(|n| n.form);
            let forms: Vec<NeedleForm> = seen.contexts.iter().filter_map(form).collect();
            assert!(forms.contains(&NeedleForm::Utf8));
            // Single-byte letters match in either byte order, one byte apart.
            assert_eq!(forms.iter().any(|form| form.is_encoded()), wide.is_some());
            assert!(wide.is_none_or(|wide| forms.contains(&wide)));
        }
    }

    proptest! {
        #[test]
        fn a_watch_sees_what_a_search_of_its_own_sees(
            before in "[ -~é]{0,20}",
            handle in prop::sample::select(vec!["ann.lee@x.example", "Zoë Núñez", "auth0|7f3a9b2c", "4711"]),
            spelled in 0..8_usize,
            after in "[ -~é]{0,20}",
        ) {
            let watch = ValueWatch::new(&[handle.to_owned()], &[]);
            let spelled = match spelled {
                0 => String::new(),
                1 => handle.to_uppercase(),
                2 => hex::encode(handle),
                3 => super::super::needles::base64(handle.as_bytes()).swap_remove(0),
                4 => handle.bytes().fold(String::new(), |text, byte| text + &format!("\\u{byte:04x}")),
                5 => handle.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02X}")),
                6 => handle[handle.len().saturating_sub(8)..].to_owned(),
                _ => handle.to_owned(),
            };
            for value in [
                FetchedValue::Text(format!("{before}{spelled}{after}")),
                FetchedValue::Text(spelled.clone()),
                FetchedValue::Bytes(format!("{before}{spelled}{after}").into_bytes()),
                FetchedValue::Integer(4_711),
            ] {
                let seen = watch.seen(&value, false);
                prop_assert_eq!(seen, watch.look(&value), "{:?}", value);
            }
        }
    }
}
