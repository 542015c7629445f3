//! JSON stored and written as text: parsing it into a value would take twenty times the memory.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::members::members;
use super::plain::keeps_digits;

/// Bytes from which a JSON text is not parsed into a value.
pub const LONG: usize = 64 << 10;

/// A part of a row as JSON.
#[derive(Debug, Clone, Copy)]
pub enum JsonPart<'a> {
    /// A value.
    Value(&'a Value),
    /// The text of an object or a list for which [`is_kept_as_text`] holds.
    Document(&'a str),
}

impl JsonPart<'_> {
    /// Converts it to a value.
    pub fn to_value(&self) -> Value {
        match self {
            JsonPart::Value(value) => (*value).clone(),
            JsonPart::Document(text) => super::read(text).value,
        }
    }

    /// Whether both have the same value.
    pub fn is_same(self, other: JsonPart<'_>) -> bool {
        match (self, other) {
            (JsonPart::Value(first), JsonPart::Value(second)) => first == second,
            (first, second) => is_same(&first.text(), &second.text()),
        }
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, JsonPart::Value(Value::Null))
    }

    /// The JSON text, with whitespace unchanged.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            JsonPart::Value(value) => Cow::Owned(value.to_string()),
            JsonPart::Document(text) => Cow::Borrowed(text),
        }
    }
}

impl JsonPart<'_> {
    /// The part as single-line JSON, in one allocation.
    ///
    /// # Errors
    /// The document is not valid JSON.
    pub fn written(self) -> serde_json::Result<String> {
        let JsonPart::Document(document) = self else { return serde_json::to_string(&self) };
        let mut text = Vec::with_capacity(document.len());
        self.serialize(&mut serde_json::Serializer::new(&mut text))?;
        Ok(String::from_utf8(text).unwrap_or_default())
    }
}

impl<'a> From<&'a Value> for JsonPart<'a> {
    fn from(value: &'a Value) -> Self {
        JsonPart::Value(value)
    }
}

/// The part as single-line JSON.
impl fmt::Display for JsonPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonPart::Value(value) => value.fmt(f),
            JsonPart::Document(_) => f.write_str(&self.written().map_err(|_| fmt::Error)?),
        }
    }
}

impl Serialize for JsonPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            JsonPart::Value(value) => value.serialize(serializer),
            JsonPart::Document(text) => {
                serde_transcode::transcode(&mut serde_json::Deserializer::from_str(text), serializer)
            }
        }
    }
}

/// Whether a text is a long object or list in strict JSON, which can be rewritten without losing a digit.
pub fn is_kept_as_text(text: &str) -> bool {
    let is_container = || text.trim_start().starts_with(['{', '[']);
    if text.len() < LONG || !is_container() || !keeps_digits(text) {
        return false;
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let written = serde_transcode::transcode(&mut reader, &mut serde_json::Serializer::new(std::io::sink()));
    written.is_ok() && reader.end().is_ok()
}

/// Bytes of strict JSON up to which values are parsed for comparison.
const SHORT: usize = 4 << 10;

/// Whether two texts of strict JSON have the same value: the order of members does not matter, and of repeated keys the
/// last one counts.
pub fn is_same(first: &str, second: &str) -> bool {
    let texts = [first.trim(), second.trim()];
    let [first, second] = texts;
    if first == second {
        return true;
    }
    let value = |text| serde_json::from_str::<Value>(text).ok();
    match texts.map(|text| text.as_bytes().first()) {
        _ if first.len().max(second.len()) <= SHORT => value(first) == value(second),
        [Some(b'{'), Some(b'{')] => {
            let (first, second) = (last_members(first), last_members(second));
            first.len() == second.len() && first.iter().zip(&second).all(|(a, b)| a.0 == b.0 && is_same(a.1, b.1))
        }
        [Some(b'['), Some(b'[')] => {
            let [first, second] = texts.map(|text| serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default());
            first.len() == second.len() && first.iter().zip(&second).all(|(a, b)| is_same(a.get(), b.get()))
        }
        [Some(b'{' | b'['), _] | [_, Some(b'{' | b'[')] => false,
        _ => value(first) == value(second),
    }
}

/// The members of an object by their keys, without earlier repeats.
fn last_members(text: &str) -> Vec<(String, &str)> {
    let all = members(text).unwrap_or_default().into_iter();
    let mut all: Vec<(String, &str)> = all.rev().map(|(key, value)| (key, value.get())).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all.dedup_by(|later, first| later.0 == first.0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_document_is_written_as_its_value_would_be() {
        let line = r#"{"a": [1, -2.5e3, true, null], "b": "x\n\ud83d\ude00 é", "c": {}}"#;
        let text = format!("[{line}{}]", format!(",\n {line}").repeat(20_000));
        assert!(is_kept_as_text(&text));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&JsonPart::Document(&text)).unwrap(), value.to_string());
        assert_eq!(
            serde_json::to_string_pretty(&JsonPart::Document(&text)).unwrap(),
            serde_json::to_string_pretty(&value).unwrap()
        );
    }

    #[test]
    fn what_would_be_bent_and_what_is_short_is_not_kept_as_text() {
        let long = |part: &str| format!("[{part}{}]", ",1".repeat(LONG));
        assert!(is_kept_as_text(&long("1")));
        for part in ["123456789012345678901", "NaN", "1e999", "\"\\ud800\"", "\"\u{1}\"", "", "[".repeat(200).as_str()]
        {
            assert!(!is_kept_as_text(&long(part)), "{part}");
        }
        assert!(!is_kept_as_text("[1]"));
    }

    #[test]
    fn texts_are_the_same_where_their_values_are() {
        let filler = "x".repeat(SHORT);
        let long = |rest: &str| format!("{{\"filler\": [\"{filler}\", {{\"f\": \"{filler}\"}}], {rest}}}");
        let texts = [
            r#""a": 1, "b": [1, 2.0]"#,
            r#""b":[1,2.0],"a":1"#,
            r#""a": 7, "b": [1, 2.0], "a": 1"#,
            r#""a": 1, "b": [2.0, 1]"#,
            r#""a": 1"#,
            r#""a": 1, "b": {"filler": 1}"#,
            r#""a": 1.0, "b": [1, 2.0]"#,
            r#""\u0061": 1, "b": [1, 2e0]"#,
        ]
        .map(long);
        let mut given: Vec<&str> = texts.iter().map(String::as_str).collect();
        let list = format!("[{}]", texts[0]);
        let quoted = Value::from(texts[0].as_str()).to_string();
        given.extend([list.as_str(), quoted.as_str(), "null", "{}"]);
        for a in &given {
            for b in &given {
                let [first, second] = [a, b].map(|text| serde_json::from_str::<Value>(text).unwrap());
                assert_eq!(is_same(a, b), first == second, "{a} {b}");
            }
        }
    }
}
