//! Searches every stored value of every table for handles, whether the layout knows it or not: row by row, in bounded
//! memory. Each text, key and number is checked here, because a server cannot look into encodings.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;

use super::bytes::{ByteSearch, NeedleContexts};
use super::needles::{NeedleContext, Needles};
use super::tables::{self, ColumnContent, SearchedColumn, SearchedKind, SearchedTable, is_engines_own};
use super::words::{HandleWords, WordCount, WordLook};
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
/// Rows between two progress reports.
const REPORT: u64 = 2_000;

/// A match of a handle in a stored value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredSighting {
    /// Table.
    pub table: TableName,
    /// Column.
    pub column: String,
    /// Columns and values of the key; the row's number or location if there is none.
    pub key: Vec<(String, FetchedValue)>,
    /// Number of the handle.
    pub handle: usize,
    /// Number of places in the value.
    pub count: u64,
    /// True when the handle is the whole value.
    pub entire: bool,
    /// First few paths within JSON.
    pub paths: Vec<String>,
    /// Whether the value was compressed.
    pub compressed: bool,
    /// Whether the table belongs to a search index or to the engine's statistics.
    pub index: bool,
}

/// Progress of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchProgress {
    /// The table that is being read.
    pub table: String,
    /// Number of that table, from 1.
    pub at: usize,
    /// Number of tables in all.
    pub of: usize,
    /// Rows searched so far, in all tables.
    pub rows: u64,
}

/// Findings of the search in one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableSearch {
    /// Table, for people.
    pub table: String,
    /// Number of rows searched.
    pub rows: u64,
    /// Number of places.
    pub hits: u64,
}

/// Findings of a search through stored values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ValueSearch {
    /// Searched tables.
    pub tables: Vec<TableSearch>,
    /// Tables not searched, each with the reason.
    pub unread: Vec<(String, String)>,
    /// Columns with undecoded parts, the reason, and their number.
    pub opaque: Vec<(String, String, u64)>,
    /// Number of places of each handle, by its number.
    pub hits: Vec<u64>,
    /// Number of places of each handle within longer words: while there are any, its bytes alone prove nothing.
    pub inside: Vec<u64>,
    /// Number of places with the end of each handle but not the rest: likewise for its end.
    pub tails: Vec<u64>,
    /// Duration in milliseconds.
    pub ms: u64,
}

impl ValueSearch {
    /// Places of all handles.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.hits.iter().sum()
    }
}

struct SearchRun<'a> {
    watch: &'a ValueWatch,
    /// Receives the contexts of needles in values.
    contexts: &'a mut NeedleContexts,
    found: ValueSearch,
    each: &'a mut (dyn FnMut(StoredSighting) -> ControlFlow<()> + Send),
    progress: &'a mut (dyn FnMut(&SearchProgress) + Send),
    rows: u64,
    stopped: bool,
}

/// A value with a match.
struct SearchedValue {
    /// Number of its column.
    at: usize,
    look: WordLook,
    contexts: Vec<NeedleContext>,
}

/// Handles and needles to search for in values.
#[derive(Debug)]
pub struct ValueWatch {
    words: HandleWords,
    search: ByteSearch,
    handles: usize,
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
#[derive(Debug)]
pub struct WatchedValue {
    /// Handles, by their numbers.
    pub seen: BTreeMap<usize, WordCount>,
    /// Places of needles in the value's bytes.
    pub contexts: Vec<NeedleContext>,
}

impl ValueWatch {
    /// Prepares a search for handles in all encodings, and for handles and stored vectors in bytes.
    #[must_use]
    pub fn new(handles: &[String], vectors: &[Vec<u8>]) -> Self {
        let needles = Needles::new(handles, vectors, true);
        let words = HandleWords::new(handles, &needles);
        let search = ByteSearch::new(needles, Vec::new());
        let sieve =
            WordSieve::new(|each| search.needles().iter().map(|n| n.bytes).chain(words.sought()).for_each(each));
        let (numbers, stored) = (!words.numbers().is_empty(), TextForm::Utf8);
        ValueWatch { numbers, handles: handles.len(), words, search, sieve, stored }
    }

    /// Sets the text encoding of the files.
    #[must_use]
    pub fn stored_as(self, stored: TextForm) -> Self {
        ValueWatch { stored, ..self }
    }

    /// The needles.
    #[must_use]
    pub fn needles(&self) -> &ByteSearch {
        &self.search
    }

    fn may_hold(&self, text: &str) -> bool {
        let may_be_in = self.sieve.as_ref().is_none_or(|sieve| sieve.may_be_in(text));
        may_be_in && (self.words.is_in(text) || self.search.is_in(text))
    }

    /// Places of needles in a text as encoded in the files.
    #[must_use]
    pub fn contexts(&self, text: &str) -> Vec<NeedleContext> {
        let mut contexts = self.search.contexts(text.as_bytes());
        contexts.extend(self.wide_contexts(text));
        contexts
    }

    fn wide_contexts(&self, text: &str) -> Vec<NeedleContext> {
        self.stored.bytes(text).map(|bytes| self.search.contexts(&bytes)).unwrap_or_default()
    }

    /// Searches a value for handles, and its bytes for needles.
    pub(super) fn look(&self, value: &FetchedValue) -> (WordLook, Vec<NeedleContext>) {
        let mut contexts = value.bytes().map(|bytes| self.search.contexts(bytes)).unwrap_or_default();
        let needles = contexts.iter().filter_map(|context| self.search.needles().needle(context.needle));
        let look = self.words.look(value, needles);
        if let FetchedValue::Text(text) = value {
            contexts.extend(self.wide_contexts(text));
        }
        (look, contexts)
    }

    /// Looks at a row of a table: its columns.
    fn row(&self, table: &SearchedTable, row: &RawRow) -> Vec<SearchedValue> {
        let values = row.iter().skip(first(table)).take(table.columns.len()).enumerate();
        let looked = |(at, value): (usize, &FetchedValue)| {
            let (look, contexts) = self.look(value);
            let nothing = look.seen.is_empty() && look.opaque.is_empty() && contexts.is_empty();
            (!nothing).then_some(SearchedValue { at, look, contexts })
        };
        values.filter_map(looked).collect()
    }

    /// Searches a value; `None` if nothing is found. `is_bare` if it is known to be a text without encodings
    /// ([`container::is_bare`]).
    #[must_use]
    pub fn seen(&self, value: &FetchedValue, is_bare: bool) -> Option<WatchedValue> {
        let is_nothing = match value {
            FetchedValue::Text(text) => {
                !self.may_hold(text) && !self.words.may_be_folded_in(text) && (is_bare || container::is_bare(text))
            }
            FetchedValue::Integer(_) => !self.numbers,
            FetchedValue::Null | FetchedValue::Real(_) => true,
            FetchedValue::Bytes(_) | FetchedValue::BadText(_) => false,
        };
        if is_nothing {
            return None;
        }
        let (WordLook { seen, .. }, contexts) = self.look(value);
        (!seen.is_empty() || !contexts.is_empty()).then_some(WatchedValue { seen, contexts })
    }
}

/// Number of a row's leading values before those of its columns: its location, its key.
fn first(table: &SearchedTable) -> usize {
    1 + table.key.len()
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

    /// Searches every table. `contexts` gets the contexts of needles, `each` every value with a handle, and may break;
    /// `progress` is called now and then.
    ///
    /// # Errors
    /// The engine's refusal; a table that may not be read is not an error, but listed as not searched.
    pub async fn search_values(
        self,
        watch: &ValueWatch,
        contexts: &mut NeedleContexts,
        each: impl FnMut(StoredSighting) -> ControlFlow<()> + Send,
        progress: impl FnMut(&SearchProgress) + Send,
    ) -> Result<ValueSearch, StoreError> {
        self.search_tables(watch, contexts, each, progress, |_| true).await
    }

    /// Searches SQLite's internal tables, as [`ProofReader::search_values`] does: the structure, statistics and
    /// counters, which are not relations.
    ///
    /// # Errors
    /// As [`ProofReader::search_values`].
    pub async fn search_own_tables(
        self,
        watch: &ValueWatch,
        contexts: &mut NeedleContexts,
        each: impl FnMut(StoredSighting) -> ControlFlow<()> + Send,
    ) -> Result<ValueSearch, StoreError> {
        self.search_tables(watch, contexts, each, |_| {}, is_engines_own).await
    }

    async fn search_tables(
        self,
        watch: &ValueWatch,
        contexts: &mut NeedleContexts,
        mut each: impl FnMut(StoredSighting) -> ControlFlow<()> + Send,
        mut progress: impl FnMut(&SearchProgress) + Send,
        wanted: impl Fn(&TableName) -> bool,
    ) -> Result<ValueSearch, StoreError> {
        let began = Instant::now();
        let empty = vec![0; watch.handles];
        let found = ValueSearch { hits: empty.clone(), inside: empty.clone(), tails: empty, ..ValueSearch::default() };
        let (each, progress) = (&mut each, &mut progress);
        let mut run = SearchRun { watch, contexts, found, each, progress, rows: 0, stopped: false };
        let mut tables = tables::read(self.store).await?;
        tables.retain(|table| wanted(&table.name));
        for (at, table) in tables.iter().enumerate() {
            let place = SearchProgress { table: table.name.title(), at: at + 1, of: tables.len(), rows: run.rows };
            (run.progress)(&place);
            self.search_table((table, &place), &mut run).await?;
            if run.stopped {
                break;
            }
        }
        run.found.ms = began.elapsed().as_millis() as u64;
        Ok(run.found)
    }

    async fn search_table(
        self,
        (table, place): (&SearchedTable, &SearchProgress),
        run: &mut SearchRun<'_>,
    ) -> Result<(), StoreError> {
        if let SearchedKind::Unread(reason) = table.kind {
            run.found.unread.push((table.name.title(), reason.words().to_owned()));
            return Ok(());
        }
        if table.kind == SearchedKind::Parent {
            return Ok(());
        }
        if table.hidden {
            let reason = "policies may hide rows of it from your role".to_owned();
            run.found.unread.push((table.name.title(), reason));
        }
        run.found.tables.push(TableSearch { table: table.name.title(), rows: 0, hits: 0 });
        let outcome = match self.store.engine() {
            Engine::Sqlite => self.search_sqlite((table, place), run).await,
            Engine::Postgres => self.search_postgres((table, place), run).await,
        };
        match outcome {
            Err(error) if error.is_denied() => {
                run.found.unread.push((table.name.title(), error.to_string()));
                Ok(())
            }
            outcome => outcome,
        }
    }

    async fn search_sqlite(
        self,
        (table, place): (&SearchedTable, &SearchProgress),
        run: &mut SearchRun<'_>,
    ) -> Result<(), StoreError> {
        let mut names: Vec<String> = table.key.iter().map(|k| quote(k)).collect();
        names.extend(table.columns.iter().map(|c| quote(&c.name)));
        let from = qualified(&table.name);
        let Some(number_column) = table.row_number else {
            let sql = format!("SELECT 0, {} FROM {from}", names.join(", "));
            return self.search_rows((&sql, &[]), (table, place), run).await.map(drop);
        };
        let mut after = FetchedValue::Integer(i64::MIN);
        loop {
            let sql = format!(
                "SELECT {number_column}, {} FROM {from} WHERE {number_column} >= $1 ORDER BY {number_column} LIMIT {ROWS}",
                names.join(", ")
            );
            let (count, last) = self.search_rows((&sql, &[after]), (table, place), run).await?;
            match last.and_then(|last| last.checked_add(1)) {
                Some(next) if count == ROWS && !run.stopped => after = FetchedValue::Integer(next),
                _ => return Ok(()),
            }
        }
    }

    async fn search_postgres(
        self,
        (table, place): (&SearchedTable, &SearchProgress),
        run: &mut SearchRun<'_>,
    ) -> Result<(), StoreError> {
        let mut params = Vec::new();
        let numbers = run.watch.words.numbers();
        let searched = |c: &&SearchedColumn| {
            c.holds == ColumnContent::Words || c.holds != ColumnContent::Neither && !numbers.is_empty()
        };
        let columns: Vec<SearchedColumn> = table.columns.iter().filter(searched).cloned().collect();
        if columns.is_empty() {
            return Ok(());
        }
        let condition = condition(&numbers, &columns, &mut params);
        let mut names: Vec<String> = table.key.iter().map(|k| format!("{}::text", quote(k))).collect();
        names
            .extend(columns.iter().map(|c| format!("{}::{}", quote(&c.name), if c.binary { "bytea" } else { "text" })));
        let sql = format!("SELECT ctid::text, {} FROM ONLY {}{condition}", names.join(", "), qualified(&table.name));
        let narrowed = SearchedTable { columns, ..table.clone() };
        self.search_rows((&sql, &params), (&narrowed, place), run).await.map(drop)
    }

    /// Searches the rows of a statement; returns their number and the first value of the last one.
    async fn search_rows(
        self,
        (sql, params): (&str, &[Param]),
        (table, place): (&SearchedTable, &SearchProgress),
        run: &mut SearchRun<'_>,
    ) -> Result<(usize, Option<i64>), StoreError> {
        tracing::debug!(%sql, "search");
        let (mut count, mut last) = (0, None);
        let watch = run.watch;
        let mut batch = RowBatch::new(|row: &RawRow| watch.row(table, row));
        let mut take = |row: RawRow, looked| run.row(table, place, &row, looked);
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
    /// Records the matches in a row.
    fn row(
        &mut self,
        table: &SearchedTable,
        place: &SearchProgress,
        row: &RawRow,
        looked: Vec<SearchedValue>,
    ) -> ControlFlow<()> {
        self.rows += 1;
        if let Some(search) = self.found.tables.last_mut() {
            search.rows += 1;
        }
        if self.rows.is_multiple_of(REPORT) {
            (self.progress)(&SearchProgress { rows: self.rows, ..place.clone() });
        }
        for SearchedValue { at, look, contexts } in looked {
            let (column, value) = (&table.columns[at], &row[first(table) + at]);
            self.contexts.add(contexts);
            for part in &look.opaque {
                self.note_opaque(table, column, part.why);
            }
            for (handle, seen) in &look.seen {
                let sighting = self.sighting(table, column, row, value, *handle, *seen, look.compressed);
                if let Some(sighting) = sighting
                    && (self.each)(sighting).is_break()
                {
                    self.stopped = true;
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    #[allow(clippy::too_many_arguments, reason = "one value and where it stands")]
    fn sighting(
        &mut self,
        table: &SearchedTable,
        column: &SearchedColumn,
        row: &RawRow,
        value: &FetchedValue,
        handle: usize,
        seen: WordCount,
        compressed: bool,
    ) -> Option<StoredSighting> {
        let add = |counts: &mut Vec<u64>, count: u64| {
            if let Some(sum) = counts.get_mut(handle) {
                *sum += count;
            }
        };
        add(&mut self.found.hits, seen.whole);
        add(&mut self.found.inside, seen.inside);
        add(&mut self.found.tails, seen.tails);
        if seen.whole == 0 {
            return None;
        }
        if let Some(search) = self.found.tables.last_mut() {
            search.hits += seen.whole;
        }
        let key = if table.key.is_empty() {
            let place = table.row_number.unwrap_or("ctid");
            row.first().map(|value| (place.to_owned(), value.clone())).into_iter().collect()
        } else {
            table.key.iter().cloned().zip(row.iter().skip(1).cloned()).collect()
        };
        Some(StoredSighting {
            table: table.name.clone(),
            column: column.name.clone(),
            key,
            handle,
            count: seen.whole,
            entire: seen.entire,
            paths: if seen.entire { Vec::new() } else { self.watch.words.paths(value, handle) },
            compressed,
            index: table.kind == SearchedKind::Index,
        })
    }

    fn note_opaque(&mut self, table: &SearchedTable, column: &SearchedColumn, why: &str) {
        let place = format!("{}.{}", table.name.title(), column.name);
        match self.found.opaque.iter_mut().find(|(known, reason, _)| *known == place && reason == why) {
            Some((.., count)) => *count += 1,
            None => self.found.opaque.push((place, why.to_owned(), 1)),
        }
    }
}

/// Builds a condition that lets a server skip rows if all columns hold numbers, since only some numbers are searched
/// for; empty otherwise.
fn condition(numbers: &[&str], columns: &[SearchedColumn], params: &mut Vec<Param>) -> String {
    if columns.iter().any(|column| column.binary || column.holds != ColumnContent::Number) {
        return String::new();
    }
    params.push(FetchedValue::Text(array(numbers.iter().copied())));
    let one = |column: &SearchedColumn| format!("{}::text = ANY ($1::text[])", quote(&column.name));
    format!(" WHERE {}", columns.iter().map(one).collect::<Vec<_>>().join(" OR "))
}

/// A PostgreSQL array in text form.
fn array<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> =
        items.map(|item| format!("\"{}\"", item.replace('\\', "\\\\").replace('"', "\\\""))).collect();
    format!("{{{}}}", quoted.join(","))
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
                let (WordLook { seen: words, .. }, contexts) = watch.look(&value);
                prop_assert_eq!(seen.is_none(), words.is_empty() && contexts.is_empty(), "{:?}", value);
                if let Some(seen) = seen {
                    prop_assert_eq!((seen.seen, seen.contexts), (words, contexts));
                }
            }
        }
    }
}
