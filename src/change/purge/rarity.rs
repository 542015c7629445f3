//! Frequency of a person's ids in this database: an id such as `success` or `2026` is also a common word, whose
//! occurrence in a text does not certainly mean the person.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::column_words::{leaf_place, place_of};
use super::graph::Graph;
use super::matcher::{is_measure, may_be_field};
use super::scan_findings::{IdWord, ScanFindings};
use super::search::{KnownTables, hash_handles};
use super::subject::PersonHandle;
use super::taken::TakenRows;
use crate::change::ChangeError;
use crate::memory::agreeing;
use crate::memory::digest::wide_digest;
use crate::memory::mention::{HandleShape, MentionFinder, MentionText, SoughtHandle, is_plain};
use crate::store::container::{self, Leaf, LeafKind, Limits};
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::snapshot::{Snapshot, WantedRows};

/// Length, in characters, up to which a word or number is never distinctive, however rare it is here.
const SHORT: usize = 8;
/// Characters from which the name of a conversation is distinctive.
const LONG: usize = 12;
/// Digits from which a number is distinctive.
const TELLING_DIGITS: usize = 10;
/// Values of a column not about people that equal an id, from which it is one of a few fixed words: at least 3, and at
/// least 1 in 20.
const FIXED: (u64, u64) = (3, 20);
/// Values of a column below which it cannot tell that its words are fixed.
const TELLING_VALUES: u64 = 20;
/// Most different values of a column of fixed words, and how often each occurs there at least, on average.
const FIXED_WORDS: (usize, u64) = (12, 3);
/// The same for documents, in which people may be tags.
const FIXED_WITHIN: (u64, u64) = (3, 4);
/// Documents of a column with such a key, from which it is one of their fields: at least 3, and more than half.
const FIELDS: u64 = 3;
/// Other people's texts with a word that make it a common one: at least 5, and at least 1 in 200.
const USUAL: (u64, u64) = (5, 200);

/// Counts of one handle outside the person's rows.
#[derive(Debug, Clone, Default)]
struct Count {
    /// Values equal to the handle, in columns not about people.
    whole: u64,
    /// Texts that contain it.
    texts: u64,
    /// The column in which it is one of a few fixed words, as text.
    fixed: Option<String>,
    /// The documents with a field of this name, as text.
    field: Option<String>,
}

/// Determines for each handle whether it is a common word here, unless its form already tells. Short handles are judged
/// by their form alone. `kept` holds the result of an earlier search, and receives this one.
///
/// # Errors
/// The engine's refusal.
pub async fn measure(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    handles: &mut [PersonHandle],
    others: &[String],
    known: &KnownTables,
    kept: &mut Option<(String, Vec<Option<String>>)>,
) -> Result<(), ChangeError> {
    for handle in handles.iter_mut().filter(|handle| handle.common.is_none()) {
        handle.common = by_looks(&handle.kind, &handle.value).map(str::to_owned);
    }
    let doubtful: Vec<usize> = (0..handles.len()).filter(|i| is_doubtful(&handles[*i])).collect();
    if doubtful.is_empty() {
        return Ok(());
    }
    let mut hash = Sha256::new();
    hash_handles(&mut hash, &*handles, others);
    graph.hash_rows(&mut hash);
    let about = hex::encode(hash.finalize());
    if let Some((_, usual)) = kept.as_ref().filter(|(of, _)| *of == about) {
        for (handle, usual) in handles.iter_mut().zip(usual) {
            handle.common.clone_from(usual);
        }
        return Ok(());
    }
    let finder =
        MentionFinder::new(doubtful.iter().map(|i| sought(&handles[*i])), others).map_err(ChangeError::Failed)?;
    let (counts, texts) = counted(snapshot, graph, &finder, doubtful.len(), known).await?;
    for (i, count) in doubtful.into_iter().zip(counts) {
        handles[i].common = match count {
            Count { field: Some(words), .. } if may_be_field(&handles[i].value) => Some(words),
            Count { fixed: Some(words), .. } => Some(words),
            Count { whole, .. } if whole > 0 && is_plain(&handles[i].value) => {
                Some(agreeing(whole, "{#} {value that names nobody is|values that name nobody are} this word"))
            }
            Count { texts: held, .. } if may_be_word(&handles[i]) && held > USUAL.0 && held > texts / USUAL.1 => {
                Some(format!("{held} of {texts} texts hold this word"))
            }
            _ => None,
        };
    }
    *kept = Some((about, handles.iter().map(|handle| handle.common.clone()).collect()));
    Ok(())
}

/// Whether texts may contain a handle as an ordinary word.
fn may_be_word(handle: &PersonHandle) -> bool {
    match HandleShape::of(&handle.kind, &handle.value) {
        HandleShape::Session | HandleShape::Profile => true,
        HandleShape::Name => is_plain(&handle.value) || is_one_word(&handle.value),
        _ => is_plain(&handle.value),
    }
}

/// Whether a name is one word, such as `Mei-Ling`, which others may also have.
fn is_one_word(name: &str) -> bool {
    name.trim().chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '\'' | '’'))
}

fn sought(handle: &PersonHandle) -> SoughtHandle {
    SoughtHandle { value: handle.value.clone(), shape: HandleShape::of(&handle.kind, &handle.value), common: false }
}

/// Returns the reason why a handle cannot be distinguished from words and numbers in any database.
pub fn by_looks(kind: &str, value: &str) -> Option<&'static str> {
    let value = value.trim();
    let letters = value.chars().count();
    match HandleShape::of(kind, value) {
        HandleShape::Id | HandleShape::Session | HandleShape::Profile if is_plain(value) && letters < SHORT => {
            Some("it is a short word or number")
        }
        HandleShape::Session | HandleShape::Profile if is_measure(value) => Some("it is a date, a time or a number"),
        HandleShape::Session | HandleShape::Profile if is_plain(value) && letters < LONG => {
            Some("it is a word or a number")
        }
        _ => None,
    }
}

/// Ids of deleted rows that occur as words in other texts.
pub fn usual_ids(found: &ScanFindings) -> BTreeSet<String> {
    let is_usual = |word: &IdWord| word.whole >= FIXED.0 || word.texts > USUAL.0 && word.texts > found.values / USUAL.1;
    found.id_words.iter().filter(|(_, word)| is_usual(word)).map(|(id, _)| id.clone()).collect()
}

/// Whether only the database can tell if a handle is a common word.
fn is_doubtful(handle: &PersonHandle) -> bool {
    let searched = handle.unsearched.is_none() && handle.common.is_none();
    let fixed = |c: char| c.is_alphabetic() || matches!(c, '_' | '-' | ' ');
    searched
        && handle.value.bytes().filter(u8::is_ascii_digit).count() < TELLING_DIGITS
        && match HandleShape::of(&handle.kind, &handle.value) {
            HandleShape::Id | HandleShape::Session | HandleShape::Profile => {
                is_plain(&handle.value) || handle.value.chars().all(fixed)
            }
            HandleShape::Name => may_be_word(handle),
            _ => false,
        }
}

/// Reads every text outside the person's rows. Returns the counts of each handle, and the number of texts.
async fn counted(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    finder: &MentionFinder,
    handles: usize,
    known: &KnownTables,
) -> Result<(Vec<Count>, u64), ChangeError> {
    let (mut counts, texts) = (vec![Count::default(); handles], AtomicU64::new(0));
    for table in graph.relations.tables.iter().filter(|table| !known.is_ours(table)) {
        let key = graph.relations.keys.get(table).cloned().unwrap_or_default();
        let shape = snapshot.store.shapes().shape(table).await?;
        let columns: Vec<String> = shape.columns.iter().map(|c| c.name.clone()).collect();
        // Bytes of indexes and vectors contain no words.
        let is_index = known.indexes.contains(table);
        let is_bare = |column: &String| is_index || known.vectors.contains(&(table.clone(), column.clone()));
        let about: Vec<(MentionText, bool)> =
            columns.iter().map(|column| (place_of(table, column, &known.naming), is_bare(column))).collect();
        let read: Vec<String> = key.iter().chain(&columns).cloned().collect();
        let wanted = WantedRows { table, columns: &read, when: None, subject: &[] };
        let going: Vec<&TakenRows> = graph.taken_through(table).collect();
        let zeros = || columns.iter().map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let (documents, held) = (zeros(), zeros());
        let words: Vec<ColumnWords> = columns.iter().map(|_| ColumnWords::default()).collect();
        let look = |row: &RawRow| {
            let (key, values) = row.split_at(key.len());
            if going.iter().any(|taken| taken.has(key)) {
                return None;
            }
            let mut seen = SeenTexts::default();
            for (column, (raw, (about, bare))) in values.iter().zip(&about).enumerate() {
                if *bare && matches!(raw, FetchedValue::Bytes(_)) {
                    continue;
                }
                held[column].fetch_add(u64::from(!matches!(raw, FetchedValue::Null)), Ordering::Relaxed);
                words[column].add(raw);
                if count(finder, raw, *about, column, &mut seen) {
                    documents[column].fetch_add(1, Ordering::Relaxed);
                }
            }
            texts.fetch_add(seen.texts, Ordering::Relaxed);
            (!seen.handles.is_empty()).then_some(seen.handles)
        };
        let mut keys: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut wholes: BTreeMap<(usize, usize, bool), u64> = BTreeMap::new();
        let take = |_, handles: HashMap<(usize, SeenAs), u64>| {
            for ((handle, seen), times) in handles {
                let Some(count) = counts.get_mut(handle) else { continue };
                match seen {
                    SeenAs::Whole { column, within } => {
                        count.whole += times;
                        *wholes.entry((handle, column, within)).or_default() += 1;
                    }
                    SeenAs::Part => count.texts += times,
                    SeenAs::Key(column) => *keys.entry((handle, column)).or_default() += 1,
                }
            }
        };
        snapshot.stream_looked(wanted, look, take).await?;
        let place = |column: usize| format!("{}.{}", table.title(), columns[column]);
        for ((handle, column, within), times) in wholes {
            let (least, share) = if within { FIXED_WITHIN } else { FIXED };
            let all = held[column].load(Ordering::Relaxed);
            let is_told = all >= TELLING_VALUES && (within || words[column].are_fixed(all));
            if is_told && times >= least && times > all / share {
                counts[handle].fixed =
                    Some(format!("{times} of {all} values in {} hold this word alone", place(column)));
            }
        }
        for ((handle, column), times) in keys {
            let all = documents[column].load(Ordering::Relaxed);
            if times >= FIELDS && times > all / 2 {
                let place = place(column);
                counts[handle].field = Some(format!("{times} of {all} documents in {place} have a field of this name"));
            }
        }
    }
    Ok((counts, texts.into_inner()))
}

/// The different values of a column, until they are too many to be fixed words.
#[derive(Debug, Default)]
struct ColumnWords {
    too_many: AtomicBool,
    words: Mutex<HashSet<[u64; 2]>>,
}

impl ColumnWords {
    fn add(&self, raw: &FetchedValue) {
        if self.too_many.load(Ordering::Relaxed) || matches!(raw, FetchedValue::Null) {
            return;
        }
        let Some(text) = as_text(raw) else { return self.too_many.store(true, Ordering::Relaxed) };
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.insert(wide_digest(&text));
        self.too_many.store(words.len() > FIXED_WORDS.0, Ordering::Relaxed);
    }

    /// Whether so many values are a few words only.
    fn are_fixed(&self, values: u64) -> bool {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
        !self.too_many.load(Ordering::Relaxed) && words * FIXED_WORDS.1 <= values
    }
}

/// Ways in which a handle occurs in a text outside the person's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SeenAs {
    /// As the entire value of this column, which is not about people; `within` a document.
    Whole { column: usize, within: bool },
    /// As part of a longer text.
    Part,
    /// As a key of a document in this column, where keys are not marked as people.
    Key(usize),
}

/// Contents of a row outside the person's rows.
#[derive(Debug, Default)]
struct SeenTexts {
    /// Texts of more than one word.
    texts: u64,
    /// Occurrences of handles, by their numbers and the kind of occurrence.
    handles: HashMap<(usize, SeenAs), u64>,
}

/// Counts the contents of a value of this column. Returns whether it is a document with keys.
fn count(finder: &MentionFinder, raw: &FetchedValue, about: MentionText, column: usize, seen: &mut SeenTexts) -> bool {
    let mut has_keys = false;
    container::read(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
        let is_key = leaf.kind == LeafKind::Key;
        has_keys |= is_key;
        if leaf.kind == LeafKind::Class {
            return;
        }
        seen.texts += u64::from(!is_key && leaf.text.contains(' '));
        let spans = finder.find(leaf.text, MentionText { number: leaf.kind == LeafKind::Number, ..MentionText::ANY });
        if spans.is_empty() {
            return;
        }
        let place = leaf_place(leaf, about);
        let mut counted = HashSet::new();
        for span in spans {
            let is_whole = leaf.text.trim() == &leaf.text[span.start..span.end];
            let seen_as = match (is_key, is_whole) {
                (true, true) if !place.keys => SeenAs::Key(column),
                (false, true) if !(place.people || place.names || place.sessions || place.profiles) => {
                    SeenAs::Whole { column, within: !leaf.layers.is_empty() }
                }
                (false, false) if counted.insert(span.handle) => SeenAs::Part,
                _ => continue,
            };
            *seen.handles.entry((span.handle, seen_as)).or_default() += 1;
        }
    });
    has_keys
}
