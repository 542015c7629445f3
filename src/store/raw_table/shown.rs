//! Raw values as users and programs see them: JSON decoded, vectors and blobs summarised by type and first bytes.

use serde_json::{Value, json};

use crate::memory::json::{JsonPart, is_kept_as_text, keeps_digits};
use crate::memory::mask::Mask;
use crate::memory::vector::read_floats;
use crate::store::container::{self, Layer, Limits};
use crate::store::fetched::FetchedValue;

/// Bytes of a blob that are read to say what it is.
pub(super) const BLOB_READ: usize = 64 << 10;
/// Numbers from which on a list of nothing but numbers is shown by its beginning.
const LONG_VECTOR: usize = 16;
/// Numbers that are shown of a vector.
const VECTOR_BEGIN: usize = 8;
/// Bytes that are shown of a blob.
const BLOB_BEGIN: usize = 16;
/// Letters of texts that are shown of a blob.
const BLOB_TEXT: usize = 400;

/// A raw value as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum ShownRaw {
    /// A value, JSON decoded.
    Value(Value),
    /// The text of a long JSON document.
    Document(String),
}

impl ShownRaw {
    /// The value as JSON has it.
    #[must_use]
    pub fn part(&self) -> JsonPart<'_> {
        match self {
            ShownRaw::Value(value) => JsonPart::Value(value),
            ShownRaw::Document(text) => JsonPart::Document(text),
        }
    }

    /// Hides what it holds: nothing is known of its column, which may be personal.
    pub fn mask(&mut self, mask: &Mask) {
        let mut masked = match std::mem::replace(self, ShownRaw::Value(Value::Null)) {
            ShownRaw::Value(value) => value,
            ShownRaw::Document(text) => Value::String(text),
        };
        mask.unknown(&mut masked);
        *self = ShownRaw::Value(masked);
    }

    /// The value in a line: texts as they are, everything else as JSON.
    #[must_use]
    pub fn line(&self) -> String {
        let value = match self {
            ShownRaw::Value(value) => value,
            ShownRaw::Document(text) => return text.clone(),
        };
        match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Object(object) if object.contains_key("bytes") => {
                let word = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
                let begins = object.get("text").or(object.get("begins")).cloned().unwrap_or_default();
                let begins = begins.as_str().map_or_else(|| begins.to_string(), str::to_owned);
                format!("{} bytes, {}: {begins}", object["bytes"], word("holds"))
            }
            other => other.to_string(),
        }
    }
}

/// A stored value as it is shown; `bytes` is the size of a blob of which only the beginning was read.
pub(super) fn shown(raw: FetchedValue, bytes: Option<usize>, declared: &str) -> ShownRaw {
    ShownRaw::Value(match raw {
        FetchedValue::Text(text) if is_kept_as_text(&text) => match long_vector(&text) {
            Some(vector) => vector,
            None => return ShownRaw::Document(text),
        },
        FetchedValue::Null => Value::Null,
        FetchedValue::Integer(number) if declared == "boolean" => Value::Bool(number != 0),
        FetchedValue::Integer(number) => Value::from(number),
        FetchedValue::Real(number) => {
            serde_json::Number::from_f64(number).map_or(json!(number.to_string()), Value::Number)
        }
        FetchedValue::Text(text) => decoded(&text).unwrap_or(Value::String(text)),
        FetchedValue::BadText(stored) => json!({
            "bytes": stored.len(),
            "holds": "text that is not UTF-8",
            "begins": hex::encode(&stored[..stored.len().min(BLOB_BEGIN)]),
        }),
        FetchedValue::Bytes(stored) => blob(&stored, bytes.unwrap_or(stored.len())),
    })
}

/// The JSON that a text is, when it is an object or a list. One with a number of more digits than are kept stays a text.
fn decoded(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    match vector_of(&value) {
        Some(numbers) => Some(vector(&numbers)),
        None => keeps_digits(text).then_some(value),
    }
}

/// The numbers of a long list of nothing but numbers.
fn vector_of(value: &Value) -> Option<Vec<f64>> {
    let items = value.as_array().filter(|items| items.len() > LONG_VECTOR)?;
    items.iter().map(Value::as_f64).collect()
}

/// As [`vector_of`], of a list of which no value is made.
fn long_vector(text: &str) -> Option<Value> {
    serde_json::from_str::<Vec<f64>>(text).ok().map(|numbers| vector(&numbers))
}

fn vector(numbers: &[f64]) -> Value {
    let begins: Vec<f64> = numbers.iter().take(VECTOR_BEGIN).copied().collect();
    json!({ "dimensions": numbers.len(), "begins": begins })
}

fn blob(stored: &[u8], bytes: usize) -> Value {
    let whole = stored.len() == bytes;
    if let Some(value) = std::str::from_utf8(stored).ok().filter(|_| whole).and_then(decoded) {
        return value;
    }
    if let Some(numbers) = floats(stored).filter(|_| whole) {
        // By their shortest text: as 64-bit numbers they would show digits that nobody stored.
        let begins: Vec<f64> = numbers.iter().take(VECTOR_BEGIN).filter_map(|x| x.to_string().parse().ok()).collect();
        return json!({ "bytes": bytes, "holds": "a vector", "dimensions": numbers.len(), "begins": begins });
    }
    let (holds, text) = contents(stored);
    let begins = hex::encode(&stored[..stored.len().min(BLOB_BEGIN)]);
    if text.is_empty() {
        json!({ "bytes": bytes, "holds": holds, "begins": begins })
    } else {
        json!({ "bytes": bytes, "holds": holds, "begins": begins, "text": text })
    }
}

/// The numbers of a blob that is a list of 32-bit floats, little end first: at least four, each of a size that
/// embeddings have, and not all zero.
fn floats(stored: &[u8]) -> Option<Vec<f32>> {
    let mut numbers = Vec::new();
    if stored.len() < 16 || !read_floats(stored, &mut numbers) {
        return None;
    }
    let fits = |x: &f32| *x == 0.0 || (x.is_finite() && (1e-9..1e4).contains(&x.abs()));
    (numbers.iter().all(fits) && numbers.iter().any(|x| *x != 0.0)).then_some(numbers)
}

/// The outermost encoding of a blob and the beginning of the texts in it.
fn contents(stored: &[u8]) -> (&'static str, String) {
    let (mut outermost, mut text) = (None, String::new());
    let mut look = |leaf: &container::Leaf<'_>| {
        outermost = outermost.or_else(|| leaf.layers.first().copied());
        if text.chars().count() < BLOB_TEXT && leaf.kind == container::LeafKind::Text {
            if !text.is_empty() {
                text.push_str(" · ");
            }
            text.extend(leaf.text.chars().take(BLOB_TEXT));
        }
    };
    container::read(&FetchedValue::Bytes(stored.to_vec()), Limits { unpacked: 1 << 20, depth: 8 }, &mut look);
    let text = text.chars().take(BLOB_TEXT).collect();
    match (outermost, std::str::from_utf8(stored)) {
        (None | Some(Layer::Binary), Ok(plain)) => ("text", plain.chars().take(BLOB_TEXT).collect()),
        (Some(layer), _) => (layer.name(), text),
        (None, Err(_)) => (Layer::Binary.name(), text),
    }
}
