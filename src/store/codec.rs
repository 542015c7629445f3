//! Converts stored values to canonical ones, as their column requires. An unreadable value becomes a problem of the
//! row, never an error of the page.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::fetched::{FetchedValue, RawRow, as_text, json_text, key_text};
use super::select::{Projection, Slot, SlotTarget};
use super::within;
use crate::layout::{BoundColumn, BoundOrigin, BoundSource, Inside, StoredAs};
use crate::memory::row::Unparsed;
use crate::memory::{Entity, Problem, Row, ValueKind, agreeing, feedback, json, time};

/// Most characters of a stored value that a problem quotes.
const RAW_LIMIT: usize = 65_536;
/// Bytes from which a compressed value may contain a long document.
const PACKED: usize = 4 << 10;

/// Decodes the raw rows of a source by its projection.
pub fn decoder(source: BoundSource, projection: Projection) -> impl Fn(RawRow) -> Row + Send + Sync + 'static {
    move |mut raw| decode(&source, &projection, &mut raw)
}

/// Decodes one raw row by the projection of its source. Texts that stay unchanged are moved out of it.
pub fn decode(source: &BoundSource, projection: &Projection, raw: &mut RawRow) -> Row {
    let mut row = Row::empty(source.entity);
    let (mut raw_status, mut raw_outcome) = (None, None);
    for slot in &projection.slots {
        match slot.target {
            SlotTarget::RawStatus => raw_status = raw_status.or_else(|| stored_word(slot, raw)),
            SlotTarget::RawOutcome => raw_outcome = raw_outcome.or_else(|| stored_word(slot, raw)),
            // If a column has several readings, the first one that says something counts, with its stored word.
            SlotTarget::Column(i) if says_nothing(&row.values[i]) => {
                if let Some(text) = moved(projection, slot, row.entity.columns()[i].kind, raw) {
                    row.values[i] = Value::String(text);
                    continue;
                }
                match kept_text(projection, slot, row.entity.columns()[i].kind, raw) {
                    Some(text) => {
                        row.values[i] = Value::String(text);
                        row.unparsed.push(Unparsed::new(i));
                    }
                    None => fill(&mut row, i, slot, raw),
                }
                if slot.column.is_mapped() {
                    match source.entity.columns()[i].name {
                        "status" => raw_status = stored_word(slot, raw),
                        "outcome" => raw_outcome = stored_word(slot, raw),
                        _ => {}
                    }
                }
            }
            SlotTarget::Column(_) => {}
        }
    }
    empty_lists(&mut row, projection);
    match source.entity {
        Entity::Episode => keep_raw_words(&mut row, raw_status, raw_outcome),
        Entity::Feedback => score(&mut row, source),
        _ => {}
    }
    row
}

/// Whether a value leaves the decision to the next reading of its column: NULL, an empty list, or an empty text.
pub(super) fn says_nothing(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value.as_str().is_some_and(str::is_empty)
}

/// Moves out a stored text that is canonical as it is; `None` if it is not, or if another slot reads it too.
fn moved(projection: &Projection, slot: &Slot, kind: ValueKind, raw: &mut RawRow) -> Option<String> {
    let column = &slot.column;
    let at = slot.at.filter(|at| kind == ValueKind::Text && !slot.shows_json && !projection.is_shared(*at))?;
    let stays = column.inside.is_whole() && column.stored != StoredAs::One && !column.is_mapped();
    if !stays || matches!(column.origin, BoundOrigin::Key { .. }) {
        return None;
    }
    match raw.get_mut(at) {
        Some(FetchedValue::Text(text)) => Some(std::mem::take(text)),
        _ => None,
    }
}

/// As [`unparsed`], moved out of the raw row, so that a long text exists once; copied if another slot reads it too.
fn kept_text(projection: &Projection, slot: &Slot, kind: ValueKind, raw: &mut RawRow) -> Option<String> {
    let made = match unparsed(projection, slot, kind, raw)? {
        Cow::Owned(text) => Some(text),
        Cow::Borrowed(text) if slot.at.is_some_and(|at| projection.is_shared(at)) => return Some(text.to_owned()),
        Cow::Borrowed(_) => None,
    };
    let stored = slot.at.filter(|at| !projection.is_shared(*at)).and_then(|at| raw.get_mut(at)).map(std::mem::take);
    made.or_else(|| match stored? {
        FetchedValue::Text(text) => Some(text),
        FetchedValue::Bytes(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    })
}

/// The text of a list or JSON value that need not be parsed, or of a long JSON value.
fn unparsed<'a>(projection: &Projection, slot: &Slot, kind: ValueKind, raw: &'a RawRow) -> Option<Cow<'a, str>> {
    let stored = slot.at.and_then(|at| raw.get(at))?;
    if !matches!(kind, ValueKind::Json | ValueKind::List) || !slot.column.inside.is_whole() {
        return None;
    }
    let text = match stored {
        FetchedValue::Text(text) => Cow::from(text),
        // JSON as bytes, or compressed bytes long enough to hold a long document.
        FetchedValue::Bytes(bytes) if matches!(bytes[..], [b'{' | b'[', ..]) || bytes.len() > PACKED => {
            json_text(stored).ok()?
        }
        _ => return None,
    };
    let is_short = || projection.unparsed && text.starts_with(['{', '[']) && json::is_plain(&text);
    let is_kept = match (slot.column.stored, kind) {
        (StoredAs::One, _) => false,
        (_, ValueKind::List) => projection.unparsed && json::is_plain_list(&text),
        (StoredAs::Nested, ValueKind::Json) => {
            return json::nested_text(&text).map(Cow::from);
        }
        (_, ValueKind::Json) => is_short() || json::is_kept_as_text(&text),
        _ => false,
    };
    is_kept.then_some(text)
}

fn fill(row: &mut Row, i: usize, slot: &Slot, raw: &RawRow) {
    let column = &row.entity.columns()[i];
    let (value, problems, stored) = match (&slot.column.origin, slot.at.and_then(|at| raw.get(at))) {
        (BoundOrigin::Value(value), _) => (value.clone(), Vec::new(), &FetchedValue::Null),
        (_, Some(stored)) => {
            let (value, problems) = value(column.kind, &slot.column, stored);
            (value, problems, stored)
        }
        (_, None) => (Value::Null, Vec::new(), &FetchedValue::Null),
    };
    let letters = value.as_str().filter(|_| slot.shows_json).and_then(json::spelled_out);
    row.values[i] = letters.map_or(value, Value::String);
    for problem in problems {
        let problem = Problem { column: column.name.to_owned(), problem, raw: quoted(stored) };
        // Several readings may lead into one broken value.
        if !row.problems.contains(&problem) {
            row.problems.push(problem);
        }
    }
}

/// Sets list columns that the layout maps to an empty list if they are NULL.
fn empty_lists(row: &mut Row, projection: &Projection) {
    for slot in &projection.slots {
        if let SlotTarget::Column(i) = slot.target
            && row.entity.columns()[i].kind == ValueKind::List
            && row.values[i].is_null()
        {
            row.values[i] = Value::Array(Vec::new());
        }
    }
}

/// Keeps the stored words for status and outcome in the metadata if they differ from the canonical ones.
fn keep_raw_words(row: &mut Row, raw_status: Option<String>, raw_outcome: Option<String>) {
    for (column, key, word) in [("status", "raw_status", raw_status), ("outcome", "raw_outcome", raw_outcome)] {
        let Some(word) = word.filter(|w| !w.is_empty() && row.text(column) != Some(w)) else { continue };
        let Some(at) = row.entity.position("metadata") else { continue };
        let mut object = match row.part(at).to_value() {
            Value::Object(object) => object,
            Value::Null => Map::new(),
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        object.insert(key.to_owned(), Value::from(word));
        row.set("metadata", Value::Object(object));
    }
}

/// Completes a feedback row: its source, its score by kind, and whether it counts in the aggregate.
pub fn score(row: &mut Row, source: &BoundSource) {
    row.set("source", Value::from(source.label.clone()));
    if source.column("score").is_empty() {
        let score = row.text("kind").and_then(|kind| feedback::score(kind, row.get("rating").as_i64()));
        row.set("score", score.map_or(Value::Null, Value::from));
    }
    if source.column("counts").is_empty() {
        row.set("counts", Value::from(!row.get("score").is_null()));
    }
}

fn stored_word(slot: &Slot, raw: &RawRow) -> Option<String> {
    let stored = raw.get(slot.at?)?;
    if !slot.column.inside.is_whole() {
        return within::found(stored, &slot.column.inside).0.as_ref().and_then(word);
    }
    as_text(stored)
}

/// Converts a stored value, and returns the problem with it, if any.
pub(super) fn value(kind: ValueKind, column: &BoundColumn, raw: &FetchedValue) -> (Value, Vec<String>) {
    if *raw == FetchedValue::Null {
        return (Value::Null, Vec::new());
    }
    let (mut value, problems) = match (column.inside.is_whole(), column.stored) {
        (false, stored) => inside(kind, &column.inside, stored, raw),
        (true, StoredAs::One) => match text(raw) {
            (Value::Null, problems) => (Value::Null, problems),
            (one, problems) => (Value::Array(vec![one]), problems),
        },
        (true, _) if matches!(column.origin, BoundOrigin::Key { .. }) => match raw {
            FetchedValue::Text(key) => (Value::from(key_text(key)), Vec::new()),
            _ => (Value::Null, Vec::new()),
        },
        (true, stored) => by_kind(kind, stored, raw),
    };
    if column.is_mapped()
        && let Some(word) = word(&value)
        && let Some(to) = column.canonical(&word)
    {
        // A word mapped to an empty one means nothing.
        value = if to.is_empty() { Value::Null } else { Value::from(to) };
    }
    (value, problems)
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

/// Converts a value within a stored one. Only problems of this value are reported: the column itself, if mapped,
/// reports its own.
fn inside(kind: ValueKind, place: &Inside, stored: StoredAs, raw: &FetchedValue) -> (Value, Vec<String>) {
    let (found, problems) = within::found(raw, place);
    let Some(found) = found else { return (Value::Null, problems) };
    let every = place.path.as_deref().is_some_and(|path| path.split('.').any(|step| step == "*"));
    match (kind, found) {
        (ValueKind::Text, Value::Array(items)) if every => {
            let texts = items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            (Value::from(texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")), Vec::new())
        }
        (ValueKind::Json, found) => (found, Vec::new()),
        (ValueKind::List, found) => {
            let list = if stored == StoredAs::Numbers { json::ids_from(found) } else { json::texts_from(found) };
            (Value::Array(list.items), list.problems)
        }
        (_, Value::String(text)) => by_kind(kind, StoredAs::Plain, &FetchedValue::Text(text)),
        (_, Value::Bool(b)) => by_kind(kind, StoredAs::Plain, &FetchedValue::Text(b.to_string())),
        (_, Value::Number(n)) => match (n.as_i64(), n.as_f64()) {
            (Some(i), _) => by_kind(kind, stored, &FetchedValue::Integer(i)),
            (None, Some(x)) => by_kind(kind, stored, &FetchedValue::Real(x)),
            (None, None) => (Value::Null, vec![format!("{n} is not a number that can be stored")]),
        },
        (ValueKind::Text, found) => (Value::from(found.to_string()), Vec::new()),
        (_, found) => (Value::Null, vec![format!("{found} is not {}", name(kind))]),
    }
}

fn by_kind(kind: ValueKind, stored: StoredAs, raw: &FetchedValue) -> (Value, Vec<String>) {
    match kind {
        ValueKind::Text => text(raw),
        ValueKind::Integer => integer(raw),
        ValueKind::Real => real(raw),
        ValueKind::Boolean => boolean(raw),
        ValueKind::Time => moment(stored, raw),
        ValueKind::Json => document(stored, raw),
        ValueKind::List => list(stored, raw),
    }
}

/// Whether a stored value of a column gives a canonical one.
pub(super) fn is_read(source: &BoundSource, column: &str, raw: &FetchedValue) -> bool {
    let kind = source.entity.column(column).map(|column| column.kind);
    let reads = |kind| source.column(column).iter().any(|way| by_kind(kind, way.stored, raw).1.is_empty());
    kind.is_some_and(reads)
}

fn text(raw: &FetchedValue) -> (Value, Vec<String>) {
    match raw {
        FetchedValue::Null => (Value::Null, Vec::new()),
        FetchedValue::Text(text) => (Value::from(text.clone()), Vec::new()),
        FetchedValue::BadText(bytes) => {
            (Value::from(String::from_utf8_lossy(bytes).into_owned()), vec!["is not valid UTF-8".to_owned()])
        }
        FetchedValue::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => (Value::from(text), Vec::new()),
            Err(_) => (Value::Null, vec![agreeing(bytes.len(), "{#} {byte that is|bytes that are} not text")]),
        },
        FetchedValue::Integer(i) => (Value::from(i.to_string()), Vec::new()),
        FetchedValue::Real(x) => (Value::from(x.to_string()), Vec::new()),
    }
}

fn integer(raw: &FetchedValue) -> (Value, Vec<String>) {
    match raw {
        FetchedValue::Integer(i) => (Value::from(*i), Vec::new()),
        FetchedValue::Real(x) if x.fract() == 0.0 && x.abs() < 9.0e15 => (Value::from(*x as i64), Vec::new()),
        FetchedValue::Text(text) if text.trim().parse::<i64>().is_ok() => {
            (text.trim().parse::<i64>().map_or(Value::Null, Value::from), Vec::new())
        }
        _ => (Value::Null, vec!["is not a whole number".to_owned()]),
    }
}

fn real(raw: &FetchedValue) -> (Value, Vec<String>) {
    let number = match raw {
        FetchedValue::Integer(i) => Some(*i as f64),
        FetchedValue::Real(x) => Some(*x),
        FetchedValue::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    match number.filter(|x: &f64| x.is_finite()) {
        Some(x) => (Value::from(x), Vec::new()),
        None => (Value::Null, vec!["is not a finite number".to_owned()]),
    }
}

fn boolean(raw: &FetchedValue) -> (Value, Vec<String>) {
    let known = match raw {
        FetchedValue::Integer(0) => Some(false),
        FetchedValue::Integer(1) => Some(true),
        FetchedValue::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "1" | "yes" => Some(true),
            "false" | "f" | "0" | "no" => Some(false),
            _ => None,
        },
        _ => None,
    };
    match known {
        Some(b) => (Value::from(b), Vec::new()),
        None => (Value::Null, vec!["is neither true nor false".to_owned()]),
    }
}

fn moment(stored: StoredAs, raw: &FetchedValue) -> (Value, Vec<String>) {
    let number = match raw {
        FetchedValue::Integer(i) => Some(*i as f64),
        FetchedValue::Real(x) => Some(*x),
        _ => None,
    };
    let read = match (stored, number, raw) {
        (StoredAs::Epoch, Some(seconds), _) => time::from_epoch_real(seconds),
        (StoredAs::EpochMillis, Some(millis), _) => time::from_epoch_real(millis / 1000.0),
        (_, _, FetchedValue::Text(text)) => time::canonical(text),
        _ => None,
    };
    match read {
        Some(time) => (Value::from(time), Vec::new()),
        None => (Value::Null, vec!["is not a time".to_owned()]),
    }
}

fn document(stored: StoredAs, raw: &FetchedValue) -> (Value, Vec<String>) {
    let text = match (raw, json_text(raw)) {
        (FetchedValue::Integer(i), _) => return (Value::from(*i), Vec::new()),
        (FetchedValue::Real(x), _) => return (Value::from(*x), Vec::new()),
        (_, Ok(text)) => text,
        (_, Err(problem)) => return (Value::Null, vec![problem]),
    };
    let reading = json::read(&text);
    let value = match stored {
        StoredAs::Nested => json::without_pickles(json::nested(reading.value)),
        _ => reading.value,
    };
    (value, reading.problems.into_iter().chain(reading.repeated).collect())
}

fn list(stored: StoredAs, raw: &FetchedValue) -> (Value, Vec<String>) {
    match json_text(raw) {
        Ok(text) => {
            let list = if stored == StoredAs::Numbers { json::read_ids(&text) } else { json::read_texts(&text) };
            (Value::Array(list.items), list.problems)
        }
        Err(problem) => (Value::Null, vec![problem]),
    }
}

/// The stored value, as quoted in a problem.
fn quoted(raw: &FetchedValue) -> String {
    let whole = match raw {
        FetchedValue::Null => return String::new(),
        FetchedValue::Text(text) => text.clone(),
        FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => {
            format!("x'{}'", hex::encode(&bytes[..bytes.len().min(RAW_LIMIT)]))
        }
        FetchedValue::Integer(i) => i.to_string(),
        FetchedValue::Real(x) => x.to_string(),
    };
    match whole.char_indices().nth(RAW_LIMIT) {
        Some((end, _)) => format!("{}… ({} bytes in all)", &whole[..end], whole.len()),
        None => whole,
    }
}

fn name(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text => "a text",
        ValueKind::Integer => "a whole number",
        ValueKind::Real => "a number",
        ValueKind::Boolean => "true or false",
        ValueKind::Time => "a time",
        ValueKind::Json => "JSON",
        ValueKind::List => "a list",
    }
}
