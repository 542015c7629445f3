//! A row in canonical form: values in order, and problems with unreadable ones.

use std::sync::OnceLock;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::entity::Entity;
use super::json::{self, JsonPart};

/// A stored value that its column could not read.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// Canonical column.
    pub column: String,
    /// Description of the problem, for users.
    pub problem: String,
    /// The stored text; bytes that are not text in hexadecimal.
    pub raw: String,
}

/// One row of an entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Entity of the row.
    pub entity: Entity,
    /// One value for each of [`Entity::columns`], in that order; absent ones are null.
    pub values: Vec<Value>,
    /// Problems of unreadable values; empty if there are none.
    pub problems: Vec<Problem>,
    /// Values stored as the text of a JSON object or list.
    pub unparsed: Vec<Unparsed>,
}

/// A JSON object or list kept as text in a row, and parsed on demand.
#[derive(Debug, Clone)]
pub struct Unparsed {
    pub(super) at: usize,
    value: OnceLock<Value>,
}

impl Unparsed {
    /// Marks the value at a position of the row.
    pub fn new(at: usize) -> Self {
        Unparsed { at, value: OnceLock::new() }
    }
}

/// Equal whether parsed or not.
impl PartialEq for Unparsed {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Row {
    /// Creates a row of nulls.
    pub fn empty(entity: Entity) -> Self {
        let values = entity.columns().iter().map(|_| Value::Null).collect();
        Row { entity, values, problems: Vec::new(), unparsed: Vec::new() }
    }

    /// Creates a row with some columns set.
    pub fn with<'c>(entity: Entity, values: impl IntoIterator<Item = (&'c str, Value)>) -> Self {
        let mut row = Row::empty(entity);
        values.into_iter().for_each(|(column, value)| row.set(column, value));
        row
    }

    /// Value of a canonical column; null if the entity has no such column.
    pub fn get(&self, column: &str) -> &Value {
        let Some(at) = self.entity.position(column) else { return &Value::Null };
        let unparsed = self.unparsed.iter().find(|unparsed| unparsed.at == at);
        unparsed.map_or(&self.values[at], |it| it.value.get_or_init(|| self.part(at).to_value()))
    }

    /// The value at a position, as JSON.
    pub fn part(&self, at: usize) -> JsonPart<'_> {
        match &self.values[at] {
            Value::String(text) if self.unparsed.iter().any(|it| it.at == at) => JsonPart::Document(text),
            value => JsonPart::Value(value),
        }
    }

    /// Value of a canonical column as JSON; null if the entity has no such column.
    pub fn json(&self, column: &str) -> JsonPart<'_> {
        self.entity.position(column).map_or(JsonPart::Value(&Value::Null), |at| self.part(at))
    }

    /// Finds the value at a path of a canonical column, as [`json::path`] does.
    pub fn within(&self, column: &str, path: &str) -> Option<Value> {
        match self.part(self.entity.position(column)?) {
            JsonPart::Document(text) => json::path_in(text, path).0,
            JsonPart::Value(value) => json::path(value, path),
        }
    }

    /// Text of a canonical column, if it is text.
    pub fn text(&self, column: &str) -> Option<&str> {
        self.get(column).as_str()
    }

    /// Number in a canonical column, if it is one.
    pub fn number(&self, column: &str) -> Option<f64> {
        self.get(column).as_f64()
    }

    /// Whether the stored value of a canonical column has no problem.
    pub fn is_readable(&self, column: &str) -> bool {
        !self.problems.iter().any(|p| p.column == column)
    }

    /// The strings of a list column; empty if it has none.
    pub fn list(&self, column: &str) -> Vec<&str> {
        self.get(column).as_array().map(|a| a.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }

    /// Sets a canonical column; ignores unknown names.
    pub fn set(&mut self, column: &str, value: Value) {
        if let Some(i) = self.entity.position(column) {
            self.values[i] = value;
            self.unparsed.retain(|it| it.at != i);
        }
    }

    /// Sets a canonical column to the text of a JSON object or list, which is parsed on demand.
    pub fn set_text(&mut self, column: &str, text: Value) {
        self.set(column, text);
        self.unparsed.extend(self.entity.position(column).map(Unparsed::new));
    }

    /// Moves the value of a canonical column out of the row; null if the entity has no such column.
    pub fn take(&mut self, column: &str) -> Value {
        let Some(at) = self.entity.position(column) else { return Value::Null };
        let read = match self.part(at) {
            JsonPart::Document(_) => Some(self.part(at).to_value()),
            JsonPart::Value(_) => None,
        };
        self.unparsed.retain(|it| it.at != at);
        let stored = std::mem::take(&mut self.values[at]);
        read.unwrap_or(stored)
    }

    /// Moves the text of a JSON object or list out of the row; `None` for other values.
    pub fn take_text(&mut self, column: &str) -> Option<String> {
        let at = self.entity.position(column)?;
        self.unparsed.iter().position(|it| it.at == at).map(|it| self.unparsed.remove(it))?;
        match std::mem::take(&mut self.values[at]) {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The row's id; empty for an entity without ids.
    pub fn id(&self) -> &str {
        self.text("id").unwrap_or_default()
    }

    /// Whether the row of a person has more than an id: a name or handles.
    pub fn is_known_person(&self) -> bool {
        self.text("name").is_some() || !self.list("handles").is_empty()
    }

    /// Adds the members of [`Row::to_json`] to an object.
    ///
    /// # Errors
    /// The serializer's error.
    pub fn entries<S: SerializeMap>(&self, object: &mut S) -> Result<(), S::Error> {
        for (at, column) in self.entity.columns().iter().enumerate() {
            object.serialize_entry(column.name, &self.part(at))?;
        }
        if self.problems.is_empty() { Ok(()) } else { object.serialize_entry("problems", &self.problems) }
    }

    /// The row as a JSON object: canonical columns in order, then `problems` if there are any.
    pub fn to_json(&self) -> Value {
        self.clone().into_json()
    }

    /// As [`Row::to_json`], without copying the values.
    pub fn into_json(mut self) -> Value {
        let mut object = Map::new();
        for column in self.entity.columns() {
            object.insert(column.name.to_owned(), self.take(column.name));
        }
        if !self.problems.is_empty() {
            object.insert("problems".to_owned(), serde_json::json!(self.problems));
        }
        Value::Object(object)
    }
}

/// As [`Row::to_json`], without copying the values.
impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.values.len() + usize::from(!self.problems.is_empty())))?;
        self.entries(&mut object)?;
        object.end()
    }
}
