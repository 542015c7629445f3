//! Our own export: one canonical row a line, tagged with its entity.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::batch::{self, NewRow};
use super::super::record::canonical_row;
use super::{ImportContents, check_text};
use crate::memory::agreeing;
use crate::memory::json::{JsonPart, is_kept_as_text};
use crate::memory::text_check::{TextOddities, check, check_document};
use crate::memory::{Entity, Row, ValueKind, json};
use crate::store::Store;
use crate::store::encode::plain_column;
use crate::store::fetched::FetchedValue;
use crate::store::surplus::Surplus;

/// Reads a file, or the part of one that begins with that line.
#[must_use]
pub fn read(store: &Store, text: &str, first_line: usize) -> ImportContents {
    let mut contents = ImportContents::default();
    let mut elsewhere: BTreeMap<(&'static str, &str), usize> = BTreeMap::new();
    let mut without_vector = 0;
    let mut unread: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        contents.place = number + first_line;
        match row(&mut contents, line) {
            Err(why) => contents.is_bad(why),
            Ok((new, odd)) => {
                if let Some(why) = left_out(store, &new) {
                    *elsewhere.entry((new.row.entity.name(), why)).or_default() += 1;
                    continue;
                }
                without_vector += usize::from(lacks_vector(&new));
                let new = fitting(store, new);
                for column in odd.into_iter().filter(|column| !comes_as_stored(store, &new, column)) {
                    *unread.entry((new.row.entity.title(), column)).or_default() += 1;
                }
                contents.add(new);
            }
        }
    }
    contents.notes.extend(
        elsewhere
            .into_iter()
            .map(|((entity, why), n)| agreeing(n, &format!("{{#}} {entity} {{row is|rows are}} left out: {why}"))),
    );
    contents.notes.extend(unread.into_iter().map(|((entity, column), n)| {
        let cannot =
            "{value|values} cannot be read: {it is|they are} left out, or {comes|come} as far as {it|they} can";
        agreeing(n, &format!("{{#}} {entity} `{column}` {cannot}"))
    }));
    if without_vector > 0 {
        contents.notes.push(agreeing(
            without_vector,
            "{#} {row had|rows had} a vector that the file does not hold: {it comes|they come} without",
        ));
    }
    contents
}

/// The entity that a line says it is of.
pub fn entity(line: &str) -> Option<Entity> {
    #[derive(Deserialize)]
    struct Tagged<'l> {
        #[serde(borrow)]
        entity: Cow<'l, str>,
    }
    Entity::parse(&serde_json::from_str::<Tagged<'_>>(line).ok()?.entity)
}

/// Whether a row says that it had a vector, and the file does not bring it.
fn lacks_vector(new: &NewRow) -> bool {
    let brought = new.surplus.as_ref().is_some_and(Surplus::has_vector);
    new.row.entity.column("has_vector").is_some() && new.row.get("has_vector") == &Value::Bool(true) && !brought
}

/// Whether the stored value behind a canonical column comes along as it is.
fn comes_as_stored(store: &Store, new: &NewRow, column: &str) -> bool {
    let Ok(source) = batch::target(store, new.row.entity) else { return false };
    let Some((name, _)) = plain_column(source, column) else { return false };
    new.surplus.as_ref().is_some_and(|surplus| surplus.spelled.iter().any(|(stored, _)| stored == name))
}

/// A row whose stored values an engine of another kind wrote, or that another layout read, brings those only that it can
/// read in no other way: a column of the same name may hold something else here.
fn fitting(store: &Store, mut new: NewRow) -> NewRow {
    let Some(surplus) = new.surplus.as_mut() else { return new };
    let target = batch::target(store, new.row.entity).ok();
    let same_layout = |layout: &String| target.is_none_or(|source| source.layout == *layout);
    let foreign = !surplus.layout.as_ref().is_none_or(same_layout);
    if foreign || surplus.engine.as_deref() != Some(store.engine().name()) {
        surplus.spelled.clear();
        surplus.beside = None;
    }
    if let Some(source) = target.filter(|_| foreign) {
        let mapped = |name: &str| {
            source.entity.columns().iter().any(|c| plain_column(source, c.name).is_some_and(|(n, _)| n == name))
        };
        surplus.hidden.retain(|(name, _)| !mapped(name));
    }
    new
}

/// Returns the reason why a row cannot be imported by its id. A person who is only named by other rows has no row of
/// their own, unless these tell a name or handles.
fn left_out<'s>(store: &'s Store, new: &NewRow) -> Option<&'s str> {
    let entity = new.row.entity;
    let follows = "they follow from other rows or are written by agents alone";
    if entity == Entity::AuditEntry
        || entity == Entity::Subject
            && new.surplus.as_ref().is_none_or(|s| s.table.is_none())
            && !new.row.is_known_person()
    {
        return Some(follows);
    }
    let key = if entity.column("id").is_some() { "id" } else { "episode_id" };
    let sources = || store.recognised().sources.iter().filter(|s| s.entity == entity);
    if sources().any(|s| s.is_writable() && plain_column(s, key).is_some()) {
        return None;
    }
    Some(sources().find_map(|s| s.write.as_ref()?.refuse.as_deref()).unwrap_or(follows))
}

/// Stored texts pass the check for secrets like all others: one that holds a secret is left to the canonical value.
fn without_secrets(mut surplus: Surplus, found: &mut TextOddities) -> Surplus {
    surplus.spelled.retain(|(_, raw)| !matches!(raw, FetchedValue::Text(text) if check(text).0 != *text));
    for (_, raw) in &mut surplus.hidden {
        if let FetchedValue::Text(text) = raw {
            let (clean, secrets) = check(text);
            found.add(&secrets);
            *text = clean;
        }
    }
    surplus
}

/// Parses the data that an exported line holds beside the canonical values of its row.
fn surplus(stored: &str, vector: Option<Vec<f32>>) -> Result<Surplus, String> {
    #[derive(Deserialize)]
    struct BesideValues {
        table: String,
        columns: BTreeMap<String, FetchedValue>,
    }
    #[derive(Deserialize)]
    struct StoredBeside {
        engine: String,
        layout: Option<String>,
        table: String,
        hidden: BTreeMap<String, FetchedValue>,
        spelled: BTreeMap<String, FetchedValue>,
        beside: Option<BesideValues>,
    }
    let stored: StoredBeside = serde_json::from_str(stored).map_err(|e| format!("`stored`: {e}"))?;
    let beside = stored.beside.map(|beside| (beside.table, beside.columns.into_iter().collect()));
    Ok(Surplus {
        vector,
        engine: Some(stored.engine),
        layout: stored.layout,
        table: Some(stored.table),
        hidden: stored.hidden.into_iter().collect(),
        spelled: stored.spelled.into_iter().collect(),
        beside,
    })
}

/// A vector, each number read as the 32-bit float that it was.
fn vector(text: &str) -> Result<Vec<f32>, String> {
    let numbers: Vec<&RawValue> = serde_json::from_str(text).map_err(|e| format!("`vector`: {e}"))?;
    let read = |number: &&RawValue| number.get().parse::<f32>().ok().filter(|x| x.is_finite());
    numbers.iter().map(read).collect::<Option<_>>().ok_or_else(|| "`vector` must be a list of numbers".to_owned())
}

/// The columns of which an export says that their values could not be read.
fn unread(problems: &str) -> BTreeSet<String> {
    #[derive(Deserialize)]
    struct UnreadValue {
        column: String,
    }
    let values: Vec<UnreadValue> = serde_json::from_str(problems).unwrap_or_default();
    values.into_iter().map(|value| value.column).collect()
}

/// Contents of a line.
#[derive(Default)]
struct LineContents<'l> {
    /// Values by their columns, null in place of a long document.
    object: Map<String, Value>,
    /// The texts of long documents by their columns.
    documents: Vec<(String, &'l str)>,
    surplus: Option<Surplus>,
    /// Columns whose stored values could not be read when they were exported.
    odd: BTreeSet<String>,
}

/// The contents of a line, each value read by itself: one may nest as deep as a stored value can, and the line is a level
/// more.
fn contents_of(line: &str) -> Result<LineContents<'_>, String> {
    let mut parts: BTreeMap<String, &RawValue> =
        serde_json::from_str(line).map_err(|e| format!("not a JSON object: {e}"))?;
    let odd = parts.remove("problems").map(|part| unread(part.get())).unwrap_or_default();
    let vector = parts.remove("vector").map(|part| vector(part.get())).transpose()?;
    let surplus = match (parts.remove("stored"), vector) {
        (Some(stored), vector) => Some(surplus(stored.get(), vector)?),
        (None, Some(vector)) => Some(Surplus { vector: Some(vector), ..Surplus::default() }),
        (None, None) => None,
    };
    let mut line = LineContents { surplus, odd, ..LineContents::default() };
    for (name, part) in parts {
        let value = if is_kept_as_text(part.get()) {
            line.documents.push((name.clone(), part.get()));
            Value::Null
        } else {
            json::exactly(part.get()).map_err(|problem| format!("`{name}`: {problem}"))?
        };
        line.object.insert(name, value);
    }
    Ok(line)
}

/// Puts the long documents into their row. One that holds a secret becomes a value without it, and so does one in a column
/// that may be none.
fn put_documents(row: &mut Row, documents: Vec<(String, &str)>, found: &mut TextOddities) -> Result<(), String> {
    for (name, text) in documents {
        let column = row.entity.column(&name).filter(|column| column.kind == ValueKind::Json);
        if column.is_some_and(|column| !column.holds_words() || check_document(text, found)) {
            row.set_text(&name, Value::from(JsonPart::Document(text).to_string()));
        } else {
            let value = json::exactly(text).map_err(|problem| format!("`{name}`: {problem}"))?;
            let mut alone = canonical_row(row.entity, &Map::from_iter([(name.clone(), value)]), found)?;
            row.set(&name, alone.take(&name));
        }
    }
    Ok(())
}

/// The row of a line, and the columns whose stored values could not be read.
fn row(contents: &mut ImportContents, line: &str) -> Result<(NewRow, BTreeSet<String>), String> {
    check_text(line)?;
    let LineContents { mut object, documents, surplus, odd } = contents_of(line)?;
    let name = object.get("entity").and_then(Value::as_str).ok_or("it does not say its `entity`")?;
    let entity = Entity::parse(name).ok_or_else(|| format!("unknown entity `{name}`"))?;
    object.remove("entity");
    let mut row = canonical_row(entity, &object, &mut contents.found)?;
    put_documents(&mut row, documents, &mut contents.found)?;
    let key = if entity.column("id").is_some() { "id" } else { "memory_id" };
    if row.text(key).is_none_or(|id| id.trim().is_empty()) {
        return Err(format!("it has no {key}"));
    }
    // A line that says every column says of those that are null that nothing is there.
    let is_whole = entity.columns().iter().all(|column| object.contains_key(column.name));
    let surplus = surplus.or_else(|| is_whole.then(Surplus::default));
    let surplus = surplus.map(|surplus| without_secrets(surplus, &mut contents.found));
    Ok((NewRow { surplus, ..NewRow::from(row) }, odd))
}
