//! Our own export: one canonical row a line, tagged with its entity.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::batch::NewRow;
use super::super::record::canonical_row;
use super::Contents;
use crate::memory::{Entity, json};
use crate::store::Store;
use crate::store::encode::plain_column;

/// Reads a file.
#[must_use]
pub fn read(store: &Store, text: &str) -> Contents {
    let mut contents = Contents::default();
    let mut elsewhere: BTreeMap<&'static str, usize> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        contents.place = number + 1;
        match row(&mut contents, line) {
            Err(why) => contents.is_bad(why),
            Ok(new) if kept(store, new.row.entity) => contents.add(new),
            Ok(new) => *elsewhere.entry(new.row.entity.name()).or_default() += 1,
        }
    }
    let lines = elsewhere.into_iter().map(|(entity, n)| {
        format!("{n} {entity} rows are left out: they follow from other rows or are written by agents alone")
    });
    contents.notes.extend(lines);
    contents
}

/// Whether rows of an entity can be put in by their id.
fn kept(store: &Store, entity: Entity) -> bool {
    let key = if entity.column("id").is_some() { "id" } else { "episode_id" };
    entity != Entity::AuditEntry
        && store
            .recognised()
            .sources
            .iter()
            .any(|s| s.entity == entity && s.write.is_some() && plain_column(s, key).is_some())
}

/// The object of a line, each value read by itself: one may nest as deep as a stored value can, and the line is a level
/// more.
fn object(line: &str) -> Result<Map<String, Value>, String> {
    let parts: BTreeMap<String, &RawValue> =
        serde_json::from_str(line).map_err(|e| format!("not a JSON object: {e}"))?;
    let mut object = Map::new();
    for (name, part) in parts {
        let reading = json::read(part.get());
        if let Some(problem) = reading.problems.into_iter().next() {
            return Err(format!("`{name}`: {problem}"));
        }
        object.insert(name, reading.value);
    }
    Ok(object)
}

fn row(contents: &mut Contents, line: &str) -> Result<NewRow, String> {
    let mut object = object(line)?;
    let name = object.get("entity").and_then(Value::as_str).ok_or("it does not say its `entity`")?;
    let entity = Entity::parse(name).ok_or_else(|| format!("unknown entity `{name}`"))?;
    object.remove("entity");
    object.remove("problems");
    let row = canonical_row(entity, &object, &mut contents.found)?;
    let key = if entity.column("id").is_some() { "id" } else { "memory_id" };
    if row.text(key).is_none_or(|id| id.trim().is_empty()) {
        return Err(format!("it has no {key}"));
    }
    Ok(NewRow { row, now: Vec::new(), place: 0 })
}
