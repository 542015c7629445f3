//! Comparison of the rows in the source of a copy with those in the target.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::failure::CommandFailure;
use super::Pages;
use super::chosen::Chosen;
use crate::change::batch;
use crate::change::import::prompt_hash;
use crate::memory::text_check::{self, TextOddities};
use crate::memory::{Entity, Row};
use crate::recall::keyword;
use crate::store::Store;

/// Ids that the comparison names.
const NAMED: usize = 10;
/// Columns that are derived from others, or name a table.
const DERIVED: &[&str] = &["counts", "source", "has_vector", "episodes", "cases", "feedback", "last_seen", "k"];

/// Compares every copied row with that of the target. Returns the report, the number of missing rows, and the number of
/// different ones.
pub(super) async fn compared(
    source: &Store,
    target: &Store,
    chosen: &mut Chosen<'_>,
) -> Result<(Value, usize, usize), CommandFailure> {
    let (mut shown, mut missing, mut different) = (Map::new(), 0, 0);
    for entity in chosen.order().into_iter().filter(|entity| source.sources_of(*entity).is_ok()) {
        let mut pages = Pages::of(source, chosen.query(entity)?);
        let mut seen = Seen::default();
        while let Some(mut rows) = pages.next().await? {
            chosen.keep(entity, &mut rows)?;
            seen.compare(target, entity, &mut rows).await?;
            seen.compare_vectors([source, target], entity, &rows).await?;
        }
        missing += seen.missing;
        different += seen.different + seen.vectors.different;
        shown.insert(entity.name().to_owned(), seen.shown());
    }
    Ok((Value::Object(shown), missing, different))
}

/// Results of comparing source and target.
#[derive(Default)]
struct Seen {
    source: usize,
    equal: usize,
    different: usize,
    missing: usize,
    /// Columns that differ, and in how many rows.
    columns: BTreeMap<&'static str, usize>,
    /// Columns that the target does not have, or whose value could not be read, and the number of source rows with a
    /// value there.
    left_out: BTreeMap<&'static str, usize>,
    /// Columns from which secrets and hidden characters were removed, and in how many rows.
    cleaned: BTreeMap<&'static str, usize>,
    /// Columns that are never empty in the target, and the number of source rows without a value there.
    filled: BTreeMap<&'static str, usize>,
    vectors: SeenVectors,
    /// The first missing rows, and the first different ones.
    examples: [Vec<String>; 2],
}

#[derive(Default, Serialize)]
struct SeenVectors {
    /// Rows of the source with one.
    source: usize,
    /// Rows whose vectors are equal.
    equal: usize,
    /// Rows whose vector differs in the target, or is missing there.
    different: usize,
    /// Rows whose vector the target cannot store.
    left_out: usize,
}

impl Seen {
    fn shown(&self) -> Value {
        json!({
            "source": self.source,
            "equal": self.equal,
            "different": self.different,
            "missing": self.missing,
            "columns": self.columns,
            "left_out": self.left_out,
            "cleaned": self.cleaned,
            "filled": self.filled,
            "vectors": self.vectors,
            "examples": self.examples.iter().flatten().take(NAMED).collect::<Vec<_>>(),
        })
    }

    fn name(&mut self, place: usize, row: String) {
        let examples = &mut self.examples[place];
        if examples.len() < NAMED && !examples.contains(&row) {
            examples.push(row);
        }
    }

    /// Compares rows, and keeps those that exist.
    async fn compare(&mut self, target: &Store, entity: Entity, rows: &mut Vec<Row>) -> Result<(), CommandFailure> {
        let key = |row: &Row| match entity {
            Entity::MemoryLink => format!("{} {}", row.get("episode_id"), row.get("memory_id")),
            _ => row.id().to_owned(),
        };
        let column = if entity == Entity::MemoryLink { "episode_id" } else { "id" };
        let ids: Vec<String> = rows.iter().filter_map(|row| row.text(column)).map(str::to_owned).collect();
        let there: HashMap<String, Row> =
            target.related(entity, column, &ids).await?.into_iter().map(|row| (key(&row), row)).collect();
        let place = batch::target(target, entity)?;
        let never_empty = batch::never_empty(target, place);
        let add = |to: &mut BTreeMap<&'static str, usize>, names: Vec<&'static str>| {
            names.into_iter().for_each(|name| *to.entry(name).or_default() += 1);
        };
        self.source += rows.len();
        rows.retain(|row| {
            let is_there = there.contains_key(&key(row));
            if !is_there {
                self.missing += 1;
                self.name(0, key(row));
            }
            is_there
        });
        for row in rows {
            let Some(copy) = there.get(&key(row)) else { continue };
            let compared = || entity.columns().iter().map(|c| c.name).filter(|name| !DERIVED.contains(name));
            let is_unread = |row: &Row, name: &str| row.problems.iter().any(|problem| problem.column == name);
            let unread: Vec<_> = compared().filter(|name| is_unread(row, name) && !is_unread(copy, name)).collect();
            let differing = compared().filter(|name| !is_same(row.get(name), copy.get(name)));
            let (cleaned, differing): (Vec<_>, Vec<_>) =
                differing.partition(|name| is_cleaned(row.get(name), copy.get(name)) || is_hash_again(row, copy, name));
            add(&mut self.cleaned, cleaned);
            let differing = differing.into_iter();
            let (columns, homeless): (Vec<_>, Vec<_>) = differing.partition(|name| batch::is_kept(place, row, name));
            let is_filled = |name: &&'static str| row.get(name).is_null() && never_empty.contains(name);
            let (filled, columns): (Vec<_>, Vec<_>) = columns.into_iter().partition(is_filled);
            if columns.is_empty() {
                self.equal += 1;
            } else {
                self.different += 1;
                self.name(1, key(row));
            }
            let homeless = homeless.into_iter().filter(|name| !row.get(name).is_null() && !unread.contains(name));
            add(&mut self.left_out, homeless.chain(unread.iter().copied()).collect());
            add(&mut self.filled, filled);
            add(&mut self.columns, columns);
        }
        Ok(())
    }

    /// Compares vectors; those of finite numbers must be equal bit by bit.
    async fn compare_vectors(
        &mut self,
        [source, target]: [&Store; 2],
        entity: Entity,
        rows: &[Row],
    ) -> Result<(), CommandFailure> {
        if !source.embeddings().has_vectors(entity) {
            return Ok(());
        }
        let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
        let stored = source.embeddings().vectors(entity, &ids).await?;
        let copied = if target.embeddings().has_vectors(entity) {
            Some(target.embeddings().vectors(entity, &ids).await?)
        } else {
            None
        };
        // The vector of a text with a secret is not copied.
        let loses = |row: &Row| keyword::text_columns(entity).iter().any(|column| holds_secret(row.get(column)));
        let is_of_cleaned = |id: &str| rows.iter().any(|row| row.id() == id && loses(row));
        for id in &ids {
            let Some(numbers) = stored.get(id).filter(|numbers| numbers.iter().all(|x| x.is_finite())) else {
                continue;
            };
            self.vectors.source += 1;
            match copied.as_ref().map(|copied| copied.get(id) == Some(numbers)) {
                Some(false) if is_of_cleaned(id) => self.vectors.left_out += 1,
                None => self.vectors.left_out += 1,
                Some(true) => self.vectors.equal += 1,
                Some(false) => {
                    self.vectors.different += 1;
                    self.name(1, id.clone());
                }
            }
        }
        Ok(())
    }
}

/// Whether the copy of a value is equivalent: an empty list equals none.
fn is_same(original: &Value, copy: &Value) -> bool {
    let nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    original == copy || nothing(original) && nothing(copy)
}

/// Whether a column of a copied case is the new hash of its prompt, from which secrets were removed.
fn is_hash_again(original: &Row, copy: &Row, name: &str) -> bool {
    name == "message_hash"
        && holds_secret(original.get("prompt"))
        && copy.text(name) == Some(&prompt_hash(copy.get("prompt")))
}

fn holds_secret(value: &Value) -> bool {
    let mut found = TextOddities::default();
    let _ = text_check::check_value(value, &mut found);
    !found.secrets.is_empty()
}

/// Whether the copy is the value without its secrets, which are not copied.
fn is_cleaned(original: &Value, copy: &Value) -> bool {
    text_check::check_value(original, &mut TextOddities::default()) == *copy
}
