//! JSON that is kept and written as its text: no value of it is made, which would take twenty times the room.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::plain::keeps_digits;

/// Bytes of a JSON text from which on no value is made of it.
const LONG: usize = 1 << 20;

/// A part of a row as JSON has it.
#[derive(Debug, Clone, Copy)]
pub enum JsonPart<'a> {
    /// A value.
    Value(&'a Value),
    /// The text of an object or a list for which [`is_kept_as_text`] holds.
    Document(&'a str),
}

impl JsonPart<'_> {
    /// A value of it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            JsonPart::Value(value) => (*value).clone(),
            JsonPart::Document(text) => super::read(text).value,
        }
    }
}

impl<'a> From<&'a Value> for JsonPart<'a> {
    fn from(value: &'a Value) -> Self {
        JsonPart::Value(value)
    }
}

/// The part as JSON on one line.
impl fmt::Display for JsonPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonPart::Value(value) => value.fmt(f),
            JsonPart::Document(_) => f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?),
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

/// Whether a text is a long object or list in strict JSON, which is written again without the loss of a digit.
#[must_use]
pub fn is_kept_as_text(text: &str) -> bool {
    let is_container = || text.trim_start().starts_with(['{', '[']);
    if text.len() < LONG || !is_container() || !keeps_digits(text) {
        return false;
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let written = serde_transcode::transcode(&mut reader, &mut serde_json::Serializer::new(std::io::sink()));
    written.is_ok() && reader.end().is_ok()
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
}
