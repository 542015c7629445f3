//! Raw values as users and programs see them: JSON decoded, vectors and blobs by what they hold and how they begin.

use serde_json::{Value, json};

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
pub struct ShownRaw(pub Value);

impl ShownRaw {
    /// The value in a line: texts as they are, everything else as JSON.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.0 {
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
    ShownRaw(match raw {
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

/// Whether every number of a JSON text is read as it is written: a double keeps 17 digits, an integer of 64 bits all.
fn keeps_digits(text: &str) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    let mut numbers = text.split(|c: char| {
        let inside = quoted;
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        inside || !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E'))
    });
    numbers.all(|number| {
        let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
        digits <= 17 || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
    })
}

/// The numbers of a long list of nothing but numbers.
fn vector_of(value: &Value) -> Option<Vec<f64>> {
    let items = value.as_array().filter(|items| items.len() > LONG_VECTOR)?;
    items.iter().map(Value::as_f64).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_kept_or_its_text_stays() {
        for kept in [
            "[1.5e300, 0.30000000000000004]",
            "[18446744073709551615]",
            "{\"a\": \"12345678901234567890.5\\\" 12345678901234567890.5\"}",
        ] {
            assert!(keeps_digits(kept), "{kept}");
        }
        for wide in [
            "[123456789012345678901]",
            "{\"a\": \"x\", \"n\": 0.1234567890123456789}",
            "[\"\\\\\", 12345678901234567.25]",
        ] {
            assert!(!keeps_digits(wide), "{wide}");
        }
    }
}
