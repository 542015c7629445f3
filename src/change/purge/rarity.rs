//! Frequency of a person's ids in this database: `success` or `2026` as an id is also an everyday word there, and its
//! occurrence in a text does not certainly mean the person.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};

use super::column_words::{NamingColumns, leaf_place, place_of};
use super::graph::Graph;
use super::search::hash_handles;
use super::subject::PersonHandle;
use super::taken::TakenRows;
use crate::change::ChangeError;
use crate::memory::agreeing;
use crate::memory::mention::{HandleShape, MentionFinder, MentionText, SoughtHandle, is_plain};
use crate::store::container::{self, Leaf, LeafKind, Limits};
use crate::store::fetched::{FetchedValue, RawRow};
use crate::store::own;
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Characters of a word or number that are too few to tell it from others, however rare it is here.
const SHORT: usize = 8;
/// Digits from which a number is nobody else's.
const TELLING_DIGITS: usize = 10;
/// Values that are an id and not about people, from which an id with a mark in it is one of a few fixed words.
const FIXED: u64 = 3;
/// Texts of other people that may hold a word before it is a usual one: at least that many, and one in that many.
const USUAL: (u64, u64) = (5, 200);

/// Counts of one handle outside the person's rows.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    /// Values that are the handle, where nobody is named.
    whole: u64,
    /// Texts that hold it.
    texts: u64,
}

/// Says of each handle that its looks do not tell whether it is a usual word here: by its looks alone where it is short.
/// `kept` is what a search before came to, and what this one does.
///
/// # Errors
/// The engine's refusal.
pub async fn measure(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    handles: &mut [PersonHandle],
    others: &[String],
    naming: &NamingColumns,
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
    let (counts, texts) = counted(snapshot, graph, &finder, doubtful.len(), naming).await?;
    for (i, count) in doubtful.into_iter().zip(counts) {
        let least = if is_plain(&handles[i].value) { 1 } else { FIXED };
        handles[i].common = match count {
            Count { whole, .. } if whole >= least => {
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

/// Whether texts may hold a handle as a word of theirs.
fn may_be_word(handle: &PersonHandle) -> bool {
    let is_name = HandleShape::of(&handle.kind, &handle.value) == HandleShape::Name;
    is_plain(&handle.value) || is_name && is_one_word(&handle.value)
}

/// A name such as `Mei-Ling`, by which others may be called too.
fn is_one_word(name: &str) -> bool {
    name.trim().chars().all(|c| c.is_alphabetic() || matches!(c, '-' | '\'' | '’'))
}

fn sought(handle: &PersonHandle) -> SoughtHandle {
    SoughtHandle { value: handle.value.clone(), shape: HandleShape::of(&handle.kind, &handle.value), common: false }
}

/// Explains why a handle cannot be distinguished from words and numbers, whatever this database holds.
#[must_use]
pub fn by_looks(kind: &str, value: &str) -> Option<&'static str> {
    let value = value.trim();
    let letters = value.chars().count();
    match HandleShape::of(kind, value) {
        HandleShape::Id | HandleShape::Session | HandleShape::Profile if is_plain(value) && letters < SHORT => {
            Some("it is a short word or number")
        }
        _ => None,
    }
}

/// Whether it depends on the database if a handle is a usual word.
fn is_doubtful(handle: &PersonHandle) -> bool {
    let searched = handle.unsearched.is_none() && handle.common.is_none();
    let fixed = |c: char| c.is_alphabetic() || matches!(c, '_' | '-' | ' ');
    searched
        && handle.value.bytes().filter(u8::is_ascii_digit).count() < TELLING_DIGITS
        && match HandleShape::of(&handle.kind, &handle.value) {
            HandleShape::Id => is_plain(&handle.value) || handle.value.chars().all(fixed),
            HandleShape::Name => may_be_word(handle),
            _ => false,
        }
}

/// Reads every text outside the person's rows. How often each handle is there, and how many texts there are.
async fn counted(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    finder: &MentionFinder,
    handles: usize,
    naming: &NamingColumns,
) -> Result<(Vec<Count>, u64), ChangeError> {
    let (mut counts, texts) = (vec![Count::default(); handles], AtomicU64::new(0));
    let own = snapshot.store.records().own().await?.map(|own| own.schema);
    let ours = |table: &TableName| own.as_ref() == Some(&table.schema) && own::TABLES.contains(&table.name.as_str());
    for table in graph.relations.tables.iter().filter(|table| !ours(table)) {
        let key = graph.relations.keys.get(table).cloned().unwrap_or_default();
        let shape = snapshot.store.shapes().shape(table).await?;
        let columns: Vec<String> = shape.columns.iter().map(|c| c.name.clone()).collect();
        let about: Vec<MentionText> = columns.iter().map(|column| place_of(table, column, naming)).collect();
        let read: Vec<String> = key.iter().chain(&columns).cloned().collect();
        let wanted = WantedRows { table, columns: &read, when: None, subject: &[] };
        let going: Vec<&TakenRows> = graph.taken_through(table).collect();
        let look = |row: &RawRow| {
            let (key, values) = row.split_at(key.len());
            if going.iter().any(|taken| taken.has(key)) {
                return None;
            }
            let mut seen = SeenTexts::default();
            for (raw, about) in values.iter().zip(&about).filter(|(raw, _)| !matches!(raw, FetchedValue::Bytes(_))) {
                count(finder, raw, *about, &mut seen);
            }
            texts.fetch_add(seen.texts, Ordering::Relaxed);
            (!seen.handles.is_empty()).then_some(seen.handles)
        };
        let take = |_, handles: Vec<(usize, bool)>| {
            for (handle, is_whole) in handles {
                let Some(count) = counts.get_mut(handle) else { continue };
                *(if is_whole { &mut count.whole } else { &mut count.texts }) += 1;
            }
        };
        snapshot.stream_looked(wanted, look, take).await?;
    }
    Ok((counts, texts.into_inner()))
}

/// Contents of a row outside the person's rows.
#[derive(Debug, Default)]
struct SeenTexts {
    /// Texts of more than one word.
    texts: u64,
    /// Handles, by their numbers; and whether the handle is all there is and nobody is named there.
    handles: Vec<(usize, bool)>,
}

fn count(finder: &MentionFinder, raw: &FetchedValue, about: MentionText, seen: &mut SeenTexts) {
    container::read(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
        if leaf.kind == LeafKind::Key {
            return;
        }
        seen.texts += u64::from(leaf.text.contains(' '));
        let spans = finder.find(leaf.text, MentionText { number: leaf.kind == LeafKind::Number, ..MentionText::ANY });
        if spans.is_empty() {
            return;
        }
        let place = leaf_place(leaf, about);
        let mut counted = HashSet::new();
        for span in spans {
            if leaf.text.trim() == &leaf.text[span.start..span.end] {
                if !(place.people || place.names) {
                    seen.handles.push((span.handle, true));
                }
            } else if counted.insert(span.handle) {
                seen.handles.push((span.handle, false));
            }
        }
    });
}
