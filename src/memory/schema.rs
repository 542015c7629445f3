//! JSON Schemas of command output: one for each entity, built from its canonical columns, and those of whole results,
//! which `assets/schemas/outputs.json` abbreviates.
//!
//! In the abbreviated form, an object lists its keys; `?` after a key marks it as optional. A list describes its items.
//! A text is a type, a part or an entity by its name, `any`, `=word` for that word, or `a|b` for one of several; `[x]`
//! is an array of x, `{x}` an object with any keys and values x, `x?` may be null, and ` -- ` begins a description. In
//! an object, `$title` and `$description` are texts, `$null` allows null, `$all` names parts whose keys it includes,
//! `$more` describes further keys, `$items` makes it an array of such objects, and `$raw` is a complete schema. `shown`
//! lists the keys that `show` adds to the columns of a row.

use serde_json::{Map, Value, json};

use super::entity::{Column, Entity, ValueKind};
use crate::ground::assets;

/// Version of all schemas: increased when a key is removed or changes its meaning, not when one is added.
pub const VERSION: u32 = 1;

/// Names that [`schema`] accepts: outputs first, then entities.
pub fn names() -> Vec<String> {
    let document = document();
    let outputs = document["outputs"].as_object().into_iter().flat_map(Map::keys).cloned();
    outputs.chain(Entity::ALL.iter().map(|entity| entity.name().to_owned())).collect()
}

/// Returns a short title for the output or entity of that name.
pub fn title(name: &str) -> Option<String> {
    schema(name)?["title"].as_str().map(str::to_owned)
}

/// The schema of that name; also accepts a plural and a hyphen. `None` for an unknown one.
pub fn schema(name: &str) -> Option<Value> {
    let document = document();
    let plain = name.replace('-', "_");
    let (name, body) = match &document["outputs"][&plain] {
        Value::Null => Entity::parse(name).map(|entity| (entity.name().to_owned(), row(entity)))?,
        Value::String(part) => (plain, expanded(&document["parts"][part])),
        output => (plain, expanded(output)),
    };
    let mut object = Map::new();
    object.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    object.insert("$id".to_owned(), json!(format!("urn:mnemoscope:schema:{VERSION}:{name}")));
    object.insert("version".to_owned(), json!(VERSION));
    object.insert("title".to_owned(), body["title"].clone());
    object.extend(body.as_object().cloned().unwrap_or_default());
    let mut parts = Map::new();
    gather(&Value::Object(object.clone()), &document["parts"], &mut parts);
    if !parts.is_empty() {
        object.insert("$defs".to_owned(), Value::Object(parts));
    }
    Some(Value::Object(object))
}

/// Abbreviated schemas of command output, and their shared parts.
fn document() -> Value {
    serde_json::from_str(assets::text("schemas/outputs.json")).unwrap_or_default()
}

/// Expands an abbreviated schema.
fn expanded(short: &Value) -> Value {
    match short {
        Value::String(words) => {
            let (kind, description) = words.split_once(" -- ").unwrap_or((words, ""));
            let mut schema = named(kind);
            if !description.is_empty() {
                schema["description"] = json!(description);
            }
            schema
        }
        Value::Array(items) => json!({ "type": "array", "items": items.first().map(expanded) }),
        Value::Object(members) => object(members),
        other => other.clone(),
    }
}

fn named(kind: &str) -> Value {
    let within = |open: char, close: char| kind.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)).map(named);
    if let Some(kind) = kind.strip_suffix('?') {
        or_null(named(kind))
    } else if let Some(items) = within('[', ']') {
        json!({ "type": "array", "items": items })
    } else if let Some(values) = within('{', '}') {
        json!({ "type": "object", "additionalProperties": values })
    } else if let Some(word) = kind.strip_prefix('=') {
        json!({ "const": word })
    } else if kind.contains('|') {
        json!({ "enum": kind.split('|').collect::<Vec<_>>() })
    } else {
        match kind {
            "any" => json!({}),
            "string" | "integer" | "number" | "boolean" | "null" => json!({ "type": kind }),
            part => reference(part),
        }
    }
}

fn reference(part: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{part}") })
}

fn or_null(mut schema: Value) -> Value {
    match schema.get_mut("type") {
        Some(kind) => *kind = json!([kind, "null"]),
        None => schema = json!({ "anyOf": [schema, { "type": "null" }] }),
    }
    schema
}

fn object(members: &Map<String, Value>) -> Value {
    if let Some(raw) = members.get("$raw") {
        return raw.clone();
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, short) in members.iter().filter(|(name, _)| !name.starts_with('$')) {
        let optional = name.strip_suffix('?');
        required.extend(optional.is_none().then_some(name));
        properties.insert(optional.unwrap_or(name).to_owned(), expanded(short));
    }
    let mut schema = match members.get("$items") {
        Some(items) => json!({ "type": "array", "items": expanded(items) }),
        None => json!({ "type": "object", "properties": properties, "required": required }),
    };
    for (key, short) in members {
        match key.as_str() {
            "$title" => schema["title"] = short.clone(),
            "$description" => schema["description"] = short.clone(),
            "$null" => schema = or_null(schema),
            "$more" => schema["additionalProperties"] = expanded(short),
            "$all" => {
                let parts = short.as_array().into_iter().flatten().filter_map(Value::as_str);
                schema["allOf"] = parts.map(reference).collect();
            }
            _ => {}
        }
    }
    schema
}

/// Adds the parts that a schema refers to, directly or through others.
fn gather(schema: &Value, shared: &Value, parts: &mut Map<String, Value>) {
    match schema {
        Value::Object(object) => {
            if let Some(name) = object.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/$defs/"))
                && !parts.contains_key(name)
            {
                let part = shared.get(name).map(expanded).or_else(|| Entity::parse(name).map(row)).unwrap_or_default();
                parts.insert(name.to_owned(), part.clone());
                gather(&part, shared, parts);
            }
            object.values().for_each(|value| gather(value, shared, parts));
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, shared, parts)),
        _ => {}
    }
}

/// The schema of an entity's rows: every canonical column is present, null if nothing is stored. `show` adds further keys.
fn row(entity: Entity) -> Value {
    let columns = entity.columns();
    let mut properties: Map<String, Value> = columns.iter().map(|c| (c.name.to_owned(), column(c))).collect();
    properties.insert("problems".to_owned(), json!({ "type": "array", "items": { "$ref": "#/$defs/problem" } }));
    properties.insert("as_of".to_owned(), reference("as_of"));
    let shown = expanded(&document()["shown"][entity.name()]);
    properties.extend(shown["properties"].as_object().cloned().unwrap_or_default());
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

    /// Lists the arrays and objects of a schema without a description of their contents.
    fn open(schema: &Value) -> Vec<&Value> {
        let is =
            |kind: &str| schema["type"] == kind || schema["type"].as_array().is_some_and(|k| k.contains(&json!(kind)));
        let says = |keys: &[&str]| keys.iter().any(|key| schema.get(key).is_some());
        let is_open = is("array") && !says(&["items", "prefixItems"])
            || is("object") && !says(&["properties", "additionalProperties"]);
        let inner: Vec<&Value> = match schema {
            Value::Object(object) => object.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        is_open.then_some(schema).into_iter().chain(inner.into_iter().flat_map(open)).collect()
    }

    #[test]
    fn every_name_has_a_schema_whose_parts_are_all_there() {
        for name in names() {
            let schema = schema(&name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(schema["$id"], format!("urn:mnemoscope:schema:{VERSION}:{name}"));
            assert!(title(&name).is_some_and(|title| !title.is_empty()), "{name}");
            let parts = schema["$defs"].as_object().cloned().unwrap_or_default();
            assert!(parts.values().all(Value::is_object), "{name}: {parts:?}");
            assert_eq!(open(&schema), Vec::<&Value>::new(), "{name} says nothing about what these hold");
        }
        assert_eq!(open(&json!({"type": ["array", "null"], "a": {"type": "object"}})).len(), 2);
        assert!(schema("episodes").is_some() && schema("episode-context").is_some());
        assert_eq!(schema("nonsense"), None);
    }
}
