//! One side of a change: the row before or after, in canonical columns. A long JSON document in it stays its text.

use std::ops::{Deref, DerefMut};

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::memory::json::{JsonPart, exactly, is_kept_as_text, members};
use crate::memory::{Entity, Row};

/// Columns of a row by name, or null if there is no row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChangeSide {
    fields: Value,
    /// Columns that hold the text of a JSON document instead of its value.
    documents: Vec<String>,
}

impl ChangeSide {
    /// Some columns of a row.
    pub fn of(row: &Row, columns: impl Iterator<Item = &'static str>) -> Self {
        let mut side = ChangeSide { fields: Value::Null, documents: Vec::new() };
        let mut fields = Map::new();
        for column in columns {
            let value = match row.json(column) {
                JsonPart::Value(value) => value.clone(),
                JsonPart::Document(text) => {
                    side.documents.push(column.to_owned());
                    Value::from(text)
                }
            };
            fields.insert(column.to_owned(), value);
        }
        side.fields = Value::Object(fields);
        side
    }

    /// Masks the values. `masked` masks a row of the entity.
    pub fn mask(&mut self, entity: Entity, mut masked: impl FnMut(&mut Row)) {
        let Value::Object(fields) = &mut self.fields else { return };
        let mut row = Row::with(entity, fields.iter().map(|(column, value)| (column.as_str(), value.clone())));
        masked(&mut row);
        fields.iter_mut().for_each(|(column, value)| *value = row.get(column).clone());
        self.documents.clear();
    }
}

/// A whole row, with its problems.
impl From<&Row> for ChangeSide {
    fn from(row: &Row) -> Self {
        let mut side = ChangeSide::of(row, row.entity.columns().iter().map(|column| column.name));
        if !row.problems.is_empty() {
            side["problems"] = json!(row.problems);
        }
        side
    }
}

/// The same, without copying the values.
impl From<Row> for ChangeSide {
    fn from(mut row: Row) -> Self {
        let mut side = ChangeSide { fields: Value::Object(Map::new()), documents: Vec::new() };
        for column in row.entity.columns() {
            let document = row.take_text(column.name);
            side.documents.extend(document.is_some().then(|| column.name.to_owned()));
            side[column.name] = document.map_or_else(|| row.take(column.name), Value::from);
        }
        if !row.problems.is_empty() {
            side["problems"] = json!(row.problems);
        }
        side
    }
}

impl From<Value> for ChangeSide {
    fn from(fields: Value) -> Self {
        ChangeSide { fields, documents: Vec::new() }
    }
}

impl Deref for ChangeSide {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.fields
    }
}

impl DerefMut for ChangeSide {
    fn deref_mut(&mut self) -> &mut Value {
        &mut self.fields
    }
}

impl<'de> Deserialize<'de> for ChangeSide {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let Some(members) = members(text.get()) else {
            return serde_json::from_str::<Value>(text.get()).map(ChangeSide::from).map_err(D::Error::custom);
        };
        let (mut fields, mut documents) = (Map::new(), Vec::new());
        for (name, value) in members {
            let value = if is_kept_as_text(value.get()) {
                documents.push(name.clone());
                Value::from(value.get())
            } else {
                // Deeply nested JSON is parsed by our own parser.
                serde_json::from_str(value.get()).or_else(|_| exactly(value.get())).map_err(D::Error::custom)?
            };
            fields.insert(name, value);
        }
        Ok(ChangeSide { fields: Value::Object(fields), documents })
    }
}

impl Serialize for ChangeSide {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = &self.fields else { return self.fields.serialize(serializer) };
        let mut object = serializer.serialize_map(Some(fields.len()))?;
        for (name, value) in fields {
            let part = match value {
                Value::String(text) if self.documents.contains(name) => JsonPart::Document(text),
                value => JsonPart::Value(value),
            };
            object.serialize_entry(name, &part)?;
        }
        object.end()
    }
}
