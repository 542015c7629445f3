//! JSON Schemas of what commands print: one for each entity, made from its canonical columns, and those of whole answers,
//! which are in `assets/schemas/outputs.json`.

use serde_json::{Map, Value, json};

use super::entity::{Column, Entity, ValueKind};
use crate::ground::assets;

/// Version of all schemas: it grows when a key goes or means something else, not when one is added.
pub const VERSION: u32 = 1;

/// Names that [`schema`] knows: answers first, then entities.
#[must_use]
pub fn names() -> Vec<String> {
    let document = document();
    let outputs = document["outputs"].as_object().into_iter().flat_map(Map::keys).cloned();
    outputs.chain(Entity::ALL.iter().map(|entity| entity.name().to_owned())).collect()
}

/// Returns a short title for the output or entity of that name.
#[must_use]
pub fn title(name: &str) -> Option<String> {
    match document()["outputs"][name]["title"].as_str() {
        Some(title) => Some(title.to_owned()),
        None => Entity::parse(name).map(|entity| format!("A row of {}", entity.title())),
    }
}

/// The schema of that name; a plural and a hyphen are taken too. None for an unknown one.
#[must_use]
pub fn schema(name: &str) -> Option<Value> {
    let document = document();
    let plain = name.replace('-', "_");
    let (name, body) = match document["outputs"].get(&plain) {
        Some(output) => (plain, output.clone()),
        None => Entity::parse(name).map(|entity| (entity.name().to_owned(), row(entity)))?,
    };
    let mut object = Map::new();
    object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    object.insert("$id".to_owned(), json!(format!("urn:mnemoscope:schema:{VERSION}:{name}")));
    object.insert("version".to_owned(), json!(VERSION));
    object.extend(body.as_object().cloned().unwrap_or_default());
    let mut parts = Map::new();
    gather(&Value::Object(object.clone()), &document["$defs"], &mut parts);
    if !parts.is_empty() {
        object.insert("$defs".to_owned(), Value::Object(parts));
    }
    Some(Value::Object(object))
}

/// Answers of commands, and the parts that they share.
fn document() -> Value {
    serde_json::from_str(assets::text("schemas/outputs.json")).unwrap_or_default()
}

/// Adds the parts that a schema refers to, and those that they refer to.
fn gather(schema: &Value, shared: &Value, parts: &mut Map<String, Value>) {
    match schema {
        Value::Object(object) => {
            if let Some(name) = object.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/$defs/"))
                && !parts.contains_key(name)
            {
                let part = shared.get(name).cloned().or_else(|| Entity::parse(name).map(row)).unwrap_or_default();
                parts.insert(name.to_owned(), part.clone());
                gather(&part, shared, parts);
            }
            object.values().for_each(|value| gather(value, shared, parts));
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, shared, parts)),
        _ => {}
    }
}

/// The schema of an entity's rows: every canonical column is there, null when nothing is stored.
fn row(entity: Entity) -> Value {
    let columns = entity.columns();
    let mut properties: Map<String, Value> = columns.iter().map(|c| (c.name.to_owned(), column(c))).collect();
    properties.insert("problems".to_owned(), json!({ "type": "array", "items": { "$ref": "#/$defs/problem" } }));
    json!({
        "title": format!("A row of {}", entity.title()),
        "type": "object",
        "properties": properties,
        "required": columns.iter().map(|c| c.name).collect::<Vec<_>>(),
    })
}

fn column(column: &Column) -> Value {
    let mut schema = match column.kind {
        ValueKind::Text => json!({ "type": ["string", "null"] }),
        ValueKind::Integer => json!({ "type": ["integer", "null"] }),
        ValueKind::Real => json!({ "type": ["number", "null"] }),
        ValueKind::Boolean => json!({ "type": ["boolean", "null"] }),
        ValueKind::Time => json!({ "type": ["string", "null"], "format": "date-time" }),
        ValueKind::List => json!({ "type": ["array", "null"], "items": { "type": "string" } }),
        ValueKind::Json => json!({}),
    };
    if let Some(unit) = column.unit() {
        schema["description"] = json!(unit);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_schema_whose_parts_are_all_there() {
        for name in names() {
            let schema = schema(&name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(schema["$id"], format!("urn:mnemoscope:schema:{VERSION}:{name}"));
            assert!(title(&name).is_some_and(|title| !title.is_empty()), "{name}");
            let parts = schema["$defs"].as_object().cloned().unwrap_or_default();
            assert!(parts.values().all(Value::is_object), "{name}: {parts:?}");
        }
        assert!(schema("episodes").is_some() && schema("episode-context").is_some());
        assert_eq!(schema("nonsense"), None);
    }
}
