//! Hashes of texts that lose words, in columns that no layout declares as hashes.

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

use super::effects::{KeptRow, KeptRows};
use super::graph::Graph;
use super::keys::spelled;
use crate::change::ChangeError;
use crate::layout::write::CopyForm;
use crate::store::fetched::{FetchedValue, RawRow};
use crate::store::snapshot::{Snapshot, WantedRows};
use crate::store::stored::TableName;

/// Rows per read. If no row of the first read contains hexadecimal digits of a hash, the table is taken to have none.
const AT_ONCE: usize = 400;
/// Digits of a hash.
const DIGITS: RangeInclusive<usize> = 16..=64;
/// Longest text, in bytes, that may be hashed together with another one.
const SHORT: usize = 200;

/// Passes on the column of each hash of a text that loses words, alone or joined with another text of its row. Columns
/// in `known` are skipped.
///
/// # Errors
/// The engine's refusal.
pub async fn each(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    updates: &KeptRows,
    known: &HashSet<(TableName, String)>,
    mut each: impl FnMut(String) + Send,
) -> Result<(), ChangeError> {
    let losing = updates.rows.iter().filter(|(_, (_, row))| row.loses);
    let tables: BTreeSet<&TableName> = losing.clone().map(|((table, _), _)| table).collect();
    for table in tables {
        let catalog = snapshot.store.catalog().exactly(&table.schema, &table.name);
        let (Some(by), Some(catalog)) = (graph.relations.keys.get(table).filter(|by| !by.is_empty()), catalog) else {
            continue;
        };
        let is_text = |declared: &str| declared.is_empty() || ["char", "text"].iter().any(|t| declared.contains(t));
        let texts = catalog.columns.iter().filter(|c| !c.denied && is_text(&c.declared)).map(|c| &c.name);
        let columns: Vec<String> = by.iter().chain(texts.filter(|name| !by.contains(*name))).cloned().collect();
        let wanted = WantedRows { table, columns: &columns, when: None, subject: &[] };
        let keys: Vec<&Vec<FetchedValue>> =
            losing.clone().filter(|((of, _), _)| of == table).map(|(_, (key, _))| key).collect();
        for some in keys.chunks(AT_ONCE) {
            let some: Vec<Vec<FetchedValue>> = some.iter().map(|key| (*key).clone()).collect();
            let mut has_digits = false;
            let look = |row: RawRow| {
                let (key, values) = row.split_at(by.len().min(row.len()));
                let Some((_, update)) = updates.rows.get(&(table.clone(), spelled(key))) else { return };
                let texts: Vec<(&str, &str)> = columns[by.len()..].iter().zip(values).filter_map(text_of).collect();
                let (digits, texts): (Vec<_>, Vec<_>) = texts.into_iter().partition(|(_, text)| are_digits(text));
                let is_known = |name: &str| known.contains(&(table.clone(), name.to_owned()));
                has_digits |= !digits.is_empty();
                for name in hashes(&digits, &texts, update).into_iter().filter(|name| !is_known(name)) {
                    each(format!("{}.{name}", table.title()));
                }
            };
            match snapshot.each_of_keys(wanted, by, &some, look).await {
                Err(error) if error.is_denied() => break,
                read => read?,
            }
            if !has_digits {
                break;
            }
        }
    }
    Ok(())
}

fn text_of<'r>((name, raw): (&'r String, &'r FetchedValue)) -> Option<(&'r str, &'r str)> {
    if let FetchedValue::Text(text) = raw { Some((name.as_str(), text.as_str())) } else { None }
}

fn are_digits(text: &str) -> bool {
    DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The columns of digits that stay unchanged and are the hash of a text that changes.
fn hashes<'r>(digits: &[(&'r str, &'r str)], texts: &[(&'r str, &'r str)], update: &KeptRow) -> BTreeSet<&'r str> {
    let changes = |name: &str| update.set.iter().any(|update| &*update.column == name);
    let stay: Vec<_> = digits.iter().filter(|(name, _)| !changes(name)).collect();
    let mut found = BTreeSet::new();
    for (_, text) in texts.iter().filter(|(name, _)| !stay.is_empty() && changes(name)) {
        let is_beside = |other: &str| text.len().max(other.len()) <= SHORT && other != *text;
        let beside = texts.iter().filter(|(_, other)| is_beside(other)).flat_map(|(_, other)| {
            [format!("{text}{other}"), format!("{other}{text}"), format!("{text}\0{other}"), format!("{other}\0{text}")]
        });
        for hashed in std::iter::once((*text).to_owned()).chain(beside) {
            for (_, form) in CopyForm::WORDS.iter().filter(|(_, form)| form.is_digest()) {
                let made = form.of(&hashed);
                found.extend(stay.iter().filter(|(_, held)| held.eq_ignore_ascii_case(&made)).map(|(name, _)| *name));
            }
        }
    }
    found
}
