//! Our own export: one canonical row a line, tagged with its entity.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::batch::{self, NewRow};
use super::super::record::canonical_row;
use super::{ImportContents, check_text, prompt_hash};
use crate::layout::BoundSource;
use crate::memory::json::{JsonPart, is_kept_as_text};
use crate::memory::text_check::{TextOddities, check, check_document};
use crate::memory::{Entity, Row, ValueKind, json};
use crate::memory::{agreeing, counted};
use crate::recall::keyword;
use crate::store::Store;
use crate::store::embedding::VectorShelf;
use crate::store::encode::{key_columns, own_column, plain_column, table_of, told_by};
use crate::store::fetched::FetchedValue;
use crate::store::stored::Image;
use crate::store::surplus::Surplus;

/// Reads a file, or a part of one whose first line has that number.
pub fn read(store: &Store, text: &str, first_line: usize) -> ImportContents {
    let mut contents = ImportContents::default();
    let mut elsewhere: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
    let (mut without_vector, mut cleaned_vectors) = (0, 0);
    let mut unread: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        contents.place = number + first_line;
        match row(&mut contents, line) {
            Err(why) => contents.is_bad(why),
            Ok(LineRow { mut new, odd, cleaned }) => {
                if let Some(why) = left_out(store, &new) {
                    *elsewhere.entry((new.row.entity.name(), why)).or_default() += 1;
                    continue;
                }
                without_vector += usize::from(lacks_vector(&new));
                cleaned_vectors += usize::from(follow_texts(store, &mut new, &cleaned));
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
            "{value|values} cannot be read: {it is|they are} left out, or {is|are} exported as far as possible";
        agreeing(n, &format!("{{#}} {entity} `{column}` {cannot}"))
    }));
    contents.notes.extend(counted(
        without_vector,
        "{#} {row had|rows had} a vector that the file does not contain: {it is|they are} imported without it",
    ));
    contents.notes.extend(counted(
        cleaned_vectors,
        "{#} {vector is|vectors are} of {a text|texts} that a secret was removed from: the {row is|rows are} \
             imported without it",
    ));
    contents
}

/// Drops everything computed from texts from which a secret was removed: the hash is recomputed, a vector or copies are
/// not imported. Returns whether there was a vector.
fn follow_texts(store: &Store, new: &mut NewRow, cleaned: &[&'static str]) -> bool {
    let (entity, source) = (new.row.entity, batch::place(store, new).ok());
    if cleaned.contains(&"prompt") && new.row.text("message_hash").is_some() {
        let hash = prompt_hash(new.row.get("prompt"));
        new.row.set("message_hash", Value::from(hash));
    }
    let Some(surplus) = new.surplus.as_mut().filter(|_| !cleaned.is_empty()) else { return false };
    let hash = source.and_then(|source| plain_column(source, "message_hash")).map(|(name, _)| name);
    let copies = source.and_then(|source| source.write.as_ref()).map(|write| &write.copies);
    let stale = copies.into_iter().flatten().filter(|copy| copy.of.iter().any(|of| cleaned.contains(&&**of)));
    let mut stale: Vec<&str> = stale.map(|copy| copy.column.as_str()).chain(hash).collect();
    let has_vector =
        surplus.has_vector() && keyword::text_columns(entity).iter().any(|column| cleaned.contains(column));
    let shelf = source.filter(|_| has_vector).and_then(|source| VectorShelf::of(source).ok());
    stale.extend(shelf.iter().filter(|shelf| shelf.key.is_none()).map(|shelf| shelf.column.as_str()));
    for columns in [&mut surplus.hidden, &mut surplus.spelled] {
        columns.retain(|(name, _)| !stale.contains(&&**name));
    }
    if has_vector {
        surplus.vector = None;
        surplus.beside = None;
    }
    has_vector
}

/// The entity named in a line.
pub fn entity(line: &str) -> Option<Entity> {
    #[derive(Deserialize)]
    struct Tagged<'l> {
        #[serde(borrow)]
        entity: Cow<'l, str>,
    }
    Entity::parse(&serde_json::from_str::<Tagged<'_>>(line).ok()?.entity)
}

/// Whether a row had a vector by its own account that the file does not contain.
fn lacks_vector(new: &NewRow) -> bool {
    let brought = new.surplus.as_ref().is_some_and(Surplus::has_vector);
    new.row.entity.column("has_vector").is_some() && new.row.get("has_vector") == &Value::Bool(true) && !brought
}

/// Whether the stored value behind a canonical column is imported unchanged.
fn comes_as_stored(store: &Store, new: &NewRow, column: &str) -> bool {
    let Ok(source) = batch::place(store, new) else { return false };
    let Some((name, _)) = plain_column(source, column) else { return false };
    new.surplus.as_ref().is_some_and(|surplus| surplus.spelled.iter().any(|(stored, _)| stored == name))
}

/// Whether a stored value reads as the canonical values of its row, as far as it determines them, without the stored
/// words of status and outcome shown in the metadata.
fn reads_as(source: &BoundSource, row: &Row, name: &str, raw: &FetchedValue) -> bool {
    let stored = Image(vec![(name.into(), raw.clone())]);
    let first = |column: &str| source.column(column).first().and_then(own_column) == Some(name);
    let nothing = |value: &Value| {
        value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value.as_str().is_some_and(str::is_empty)
    };
    // A long document is compared in parsed form.
    let is_long_same = |column: &str| match (row.json(column), raw) {
        (given @ JsonPart::Document(_), FetchedValue::Text(text)) => given.is_same(JsonPart::Document(text)),
        _ => false,
    };
    let is_same = |column: &str| {
        if is_long_same(column) {
            return true;
        }
        let told = told_by(source, &[column], &stored);
        let (told, given) = (told.get(column), row.get(column));
        let letters = || told.as_str().and_then(json::spelled_out);
        told == given
            || told.is_number() && told.as_f64() == given.as_f64()
            || nothing(told) && (nothing(given) || source.column(column).len() > 1)
            || letters().is_some_and(|letters| given.as_str() == Some(&*letters))
            || row.entity == Entity::Episode
                && column == "metadata"
                && without_raw_words(told) == without_raw_words(given)
    };
    let mut columns = row.entity.columns().iter().map(|column| column.name);
    columns.all(|column| !first(column) || is_same(column))
}

/// The metadata of an episode without the stored words of its status and outcome; null if nothing else is in it.
fn without_raw_words(metadata: &Value) -> Value {
    let Value::Object(object) = metadata else { return metadata.clone() };
    let mut object = object.clone();
    object.retain(|key, _| key != "raw_status" && key != "raw_outcome");
    match object.len() {
        0 => Value::Null,
        1 if object.contains_key("value") => object.remove("value").unwrap_or_default(),
        _ => Value::Object(object),
    }
}

/// Reduces the stored values of a row written by another engine or read by another layout to those without a canonical
/// reading: a column of the same name may mean something else here. Stored values never contradict the line.
fn fitting(store: &Store, mut new: NewRow) -> NewRow {
    let target = batch::place(store, &new).ok();
    let NewRow { row, surplus: Some(surplus), .. } = &mut new else { return new };
    let same_layout = |layout: &String| target.is_none_or(|source| source.layout == *layout);
    let foreign = !surplus.layout.as_ref().is_none_or(same_layout);
    if foreign || surplus.engine.as_deref() != Some(store.engine().name()) {
        surplus.spelled.clear();
        surplus.beside = None;
    }
    let is_here = |source: &&BoundSource| foreign || surplus.table.as_deref() == Some(&table_of(source).title());
    if let Some(source) = target.filter(is_here) {
        surplus.spelled.retain(|(name, raw)| reads_as(source, row, name, raw));
        let mapped = |name: &str| {
            source.entity.columns().iter().any(|c| plain_column(source, c.name).is_some_and(|(n, _)| n == name))
        };
        surplus.hidden.retain(|(name, _)| !mapped(name));
    }
    new
}

/// Returns the reason why a row cannot be imported by its id. A person who is only named by other rows has no row,
/// unless they have a name or handles.
fn left_out(store: &Store, new: &NewRow) -> Option<String> {
    let entity = new.row.entity;
    let follows = "{it is|they are} derived from other rows, or written by agents only";
    if entity == Entity::AuditEntry
        || entity == Entity::Subject
            && new.surplus.as_ref().is_none_or(|s| s.table.is_none())
            && !new.row.is_known_person()
    {
        return Some(follows.to_owned());
    }
    let key = if entity.column("id").is_some() { "id" } else { "episode_id" };
    let Ok(place) = batch::place(store, new) else {
        let withheld = store.recognised().withheld.iter().find(|part| part.entity == entity && part.column.is_none());
        return Some(withheld.map_or(follows.to_owned(), |part| format!("{}; {}", part.reason, part.remedy)));
    };
    if place.is_writable() && (plain_column(place, key).is_some() || key_columns(place, key).is_some()) {
        return None;
    }
    Some(place.write.as_ref().and_then(|write| write.refuse.as_deref()).unwrap_or(follows).to_owned())
}

/// Stored texts are checked for secrets like all others: a value with a secret is replaced by its canonical one.
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

/// Parses the data of an exported line beyond the canonical values of its row.
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
        #[serde(default)]
        shown: Vec<String>,
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
        shown: stored.shown,
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

/// The columns that an export marks as unreadable.
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
    /// Columns whose stored values were unreadable when they were exported.
    odd: BTreeSet<String>,
}

/// The contents of a line, each value read on its own: one may nest as deep as a stored value can, and the line is a
/// level more.
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

/// Puts the long documents into their row. One with a secret becomes a value without it, as does one in a column that
/// may not hold a document.
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

/// The row of a line.
struct LineRow {
    new: NewRow,
    /// Columns whose stored values were unreadable.
    odd: BTreeSet<String>,
    /// Columns from which a secret was removed.
    cleaned: Vec<&'static str>,
}

/// Reads the row of a line.
fn row(contents: &mut ImportContents, line: &str) -> Result<LineRow, String> {
    check_text(line)?;
    let LineContents { mut object, documents, surplus, odd } = contents_of(line)?;
    let name = object.get("entity").and_then(Value::as_str).ok_or("it has no `entity`")?;
    let entity = Entity::parse(name).ok_or_else(|| format!("unknown entity `{name}`"))?;
    object.remove("entity");
    let mut found = TextOddities::default();
    let mut row = canonical_row(entity, &object, &mut found)?;
    let long: Vec<String> = documents.iter().map(|(name, _)| name.clone()).collect();
    put_documents(&mut row, documents, &mut found)?;
    let differs = |column: &&'static str| match object.get(*column) {
        _ if long.iter().any(|name| name == column) => !matches!(row.json(column), JsonPart::Document(_)),
        given => given.is_some_and(|given| row.get(column) != given),
    };
    let words = entity.columns().iter().filter(|column| column.holds_words()).map(|column| column.name);
    let cleaned = words.filter(|_| !found.secrets.is_empty()).filter(differs).collect();
    contents.found.add(&found);
    let key = if entity.column("id").is_some() { "id" } else { "memory_id" };
    if row.text(key).is_none_or(|id| id.trim().is_empty()) {
        return Err(format!("it has no {key}"));
    }
    // In a line with every column, null means that nothing is stored.
    let is_whole = entity.columns().iter().all(|column| object.contains_key(column.name));
    let surplus = surplus.or_else(|| is_whole.then(Surplus::default));
    let surplus = surplus.map(|surplus| without_secrets(surplus, &mut contents.found));
    Ok(LineRow { new: NewRow { surplus, ..NewRow::from(row) }, odd, cleaned })
}
