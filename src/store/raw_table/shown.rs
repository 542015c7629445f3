//! Raw values for users and programs: JSON parsed, vectors and blobs summarised by type and first bytes.

use serde_json::{Value, json};

use crate::memory::json::{JsonPart, is_kept_as_text, keeps_digits};
use crate::memory::mask::Mask;
use crate::memory::vector::read_floats;
use crate::store::container::{self, Layer, Limits};
use crate::store::fetched::FetchedValue;

/// Bytes of a blob read to describe it.
pub(super) const BLOB_READ: usize = 64 << 10;
/// Numbers from which a list of only numbers is shown abbreviated.
const LONG_VECTOR: usize = 16;
/// Numbers shown of a vector.
const VECTOR_BEGIN: usize = 8;
/// Bytes shown of a blob.
const BLOB_BEGIN: usize = 16;
/// Letters shown of the texts in a blob.
const BLOB_TEXT: usize = 400;

/// A raw value in displayed form.
#[derive(Debug, Clone, PartialEq)]
pub enum ShownRaw {
    /// A value, with JSON parsed.
    Value(Value),
    /// The text of a long JSON document.
    Document(String),
}

impl ShownRaw {
    /// The value as JSON has it.
    pub fn part(&self) -> JsonPart<'_> {
        match self {
            ShownRaw::Value(value) => JsonPart::Value(value),
            ShownRaw::Document(text) => JsonPart::Document(text),
        }
    }

    /// Hides the contents: an unknown column may be personal.
    pub fn mask(&mut self, mask: &Mask) {
        let mut masked = match std::mem::replace(self, ShownRaw::Value(Value::Null)) {
            ShownRaw::Value(value) => value,
            ShownRaw::Document(text) => Value::String(text),
        };
        mask.unknown(&mut masked);
        *self = ShownRaw::Value(masked);
    }

    /// The value on one line: texts unchanged, everything else as JSON.
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

/// The displayed form of a stored value; `bytes` is the size of a blob of which only the beginning was read.
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

/// The JSON of a text that is an object or a list. With a number of too many digits it stays a text.
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

/// The numbers of a long list of only numbers.
fn vector_of(value: &Value) -> Option<Vec<f64>> {
    let items = value.as_array().filter(|items| items.len() > LONG_VECTOR)?;
    items.iter().map(Value::as_f64).collect()
}

/// As [`vector_of`], for the text of a list, without parsing all of it.
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
        // By their shortest text: as 64-bit numbers they would show digits that were never stored.
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

/// The numbers of a blob that is a list of little-endian 32-bit floats: at least four, each in the range of embeddings,
/// and not all zero.
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
