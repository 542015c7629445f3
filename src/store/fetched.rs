//! Values as an engine returned them, before a layout interprets them.

use std::borrow::Cow;

use serde_json::Value;

use super::container;
use crate::memory::json;

/// A value as it came out of a database.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum FetchedValue {
    /// SQL NULL.
    #[default]
    Null,
    /// Text that is valid UTF-8.
    Text(String),
    /// Text that is not valid UTF-8, as bytes.
    BadText(Vec<u8>),
    /// A blob or bytea.
    Bytes(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Real(f64),
}

impl FetchedValue {
    /// The bytes of a text or a blob; `None` for other values.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            FetchedValue::Text(text) => Some(text.as_bytes()),
            FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => Some(bytes),
            FetchedValue::Null | FetchedValue::Integer(_) | FetchedValue::Real(_) => None,
        }
    }

    /// The digits of an integer; of a real only if it represents them exactly.
    pub fn whole_number(&self) -> Option<String> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self {
            FetchedValue::Integer(number) => Some(number.to_string()),
            FetchedValue::Real(number) if number.fract() == 0.0 && number.abs() < EXACT => Some(format!("{number:.0}")),
            _ => None,
        }
    }

    /// Bytes of a text or a blob; 8 for anything else.
    pub fn size(&self) -> usize {
        match self {
            FetchedValue::Text(text) => text.len(),
            FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => bytes.len(),
            FetchedValue::Null | FetchedValue::Integer(_) | FetchedValue::Real(_) => 8,
        }
    }
}

/// The values that an SQLite column may hold for what reads as the same text: any column keeps a blob as a blob, and
/// one without an affinity keeps numbers and texts apart.
pub fn alike(declared: &str, value: &FetchedValue) -> Vec<FetchedValue> {
    let text = match value {
        FetchedValue::Text(text) => text.clone(),
        FetchedValue::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap_or_default(),
        FetchedValue::Integer(number) => number.to_string(),
        FetchedValue::Real(number) => number.to_string(),
        FetchedValue::Null | FetchedValue::BadText(_) => String::new(),
    };
    if text.is_empty() {
        return vec![value.clone()];
    }
    let bytes = FetchedValue::Bytes(text.clone().into_bytes());
    if affinity(declared).is_some() {
        // Texts and numbers are compared in the column's stored form.
        let own = if matches!(value, FetchedValue::Bytes(_)) { FetchedValue::Text(text) } else { value.clone() };
        return vec![own, bytes];
    }
    let number = number_of(&text);
    [FetchedValue::Text(text), bytes].into_iter().chain(number).collect()
}

/// The number that reads as a text; equal whether stored as an integer or a real.
pub fn number_of(text: &str) -> Option<FetchedValue> {
    let integer = text.parse::<i64>().ok().filter(|number| number.to_string() == text).map(FetchedValue::Integer);
    let real = || text.parse::<f64>().ok().filter(|number| number.to_string() == text).map(FetchedValue::Real);
    integer.or_else(real)
}

/// The affinity by which an SQLite column of a declared type stores and compares texts and numbers; `None` if it stores
/// values unchanged. Source: <https://www.sqlite.org/datatype3.html#determination_of_column_affinity>.
pub fn affinity(declared: &str) -> Option<&'static str> {
    let declared = declared.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    if has(&["int"]) {
        Some("INTEGER")
    } else if has(&["char", "clob", "text"]) {
        Some("TEXT")
    } else if declared.is_empty() || has(&["blob"]) {
        None
    } else {
        Some(if has(&["real", "floa", "doub"]) { "REAL" } else { "NUMERIC" })
    }
}

/// Whether a cast to an affinity gives the same value as storing it in the column.
pub fn keeps(affinity: &str, value: &FetchedValue) -> bool {
    match value {
        FetchedValue::Null => true,
        FetchedValue::Text(_) | FetchedValue::BadText(_) => affinity == "TEXT",
        FetchedValue::Integer(_) => affinity != "TEXT",
        FetchedValue::Real(_) => matches!(affinity, "REAL" | "NUMERIC"),
        FetchedValue::Bytes(_) => false,
    }
}

/// A value bound to a placeholder. PostgreSQL always gets text or bytes, with a cast in the statement.
pub type Param = FetchedValue;

/// One row in the order of the projection.
pub type RawRow = Vec<FetchedValue>;

/// Approximate bytes of each parsed JSON value.
const MADE: usize = 64;

/// Approximate bytes of a row once parsed: short JSON becomes values, about one per comma.
pub(super) fn read_size(row: &[FetchedValue]) -> usize {
    let made = |value: &FetchedValue| match value.bytes() {
        Some(text) if text.len() < json::LONG && matches!(text, [b'{' | b'[', ..]) => {
            MADE * memchr::memchr_iter(b',', text).count()
        }
        _ => 0,
    };
    row.iter().map(|value| value.size() + made(value)).sum()
}

/// Bytes of the values of a row, as [`FetchedValue::size`] counts them.
pub(super) fn row_size(row: &[FetchedValue]) -> usize {
    row.iter().map(FetchedValue::size).sum()
}

/// A value of a row as text; empty if there is none.
pub fn text(row: &[FetchedValue], at: usize) -> String {
    match row.get(at) {
        Some(FetchedValue::Text(text)) => text.clone(),
        Some(FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(FetchedValue::Integer(i)) => i.to_string(),
        Some(FetchedValue::Real(x)) => x.to_string(),
        Some(FetchedValue::Null) | None => String::new(),
    }
}

/// A value as the text that JSON would hold; `None` for anything but a text or an integer.
pub fn as_text(raw: &FetchedValue) -> Option<String> {
    match raw {
        FetchedValue::Text(text) => Some(text.clone()),
        FetchedValue::Integer(i) => Some(i.to_string()),
        _ => None,
    }
}

/// The displayed id of a row with a composite key; `None` if a part is neither a text nor an integer.
pub fn composite_id<'v>(parts: impl Iterator<Item = Option<&'v FetchedValue>>) -> Option<String> {
    let part = |raw: Option<&FetchedValue>| match raw? {
        FetchedValue::Text(text) => Some(Value::from(text.as_str())),
        FetchedValue::Integer(number) => Some(Value::from(*number)),
        _ => None,
    };
    Some(Value::from(parts.map(part).collect::<Option<Vec<_>>>()?).to_string())
}

/// A value of a row as an integer, if it is one or spells one.
pub fn integer(row: &[FetchedValue], at: usize) -> Option<i64> {
    match row.get(at)? {
        FetchedValue::Integer(i) => Some(*i),
        FetchedValue::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// A value of a row as an integer; 0 if it is not one.
pub fn number(row: &[FetchedValue], at: usize) -> i64 {
    integer(row, at).unwrap_or_default()
}

/// The displayed id of a row with a composite key, the same for both engines.
pub(super) fn key_text(stored: &str) -> String {
    serde_json::from_str::<Value>(stored).map_or_else(|_| stored.to_owned(), |key| key.to_string())
}

/// The JSON text of a stored value: direct, from a blob, or decompressed.
pub(super) fn json_text(raw: &FetchedValue) -> Result<Cow<'_, str>, String> {
    match raw {
        FetchedValue::Null => Ok(Cow::Borrowed("null")),
        FetchedValue::Text(text) => Ok(Cow::Borrowed(text)),
        FetchedValue::Integer(i) => Ok(Cow::Owned(i.to_string())),
        FetchedValue::Real(x) => Ok(Cow::Owned(x.to_string())),
        FetchedValue::BadText(_) => Err("is not valid UTF-8".to_owned()),
        FetchedValue::Bytes(bytes) => match container::unpacked(bytes) {
            Some(Err(why)) => Err(why.to_owned()),
            Some(Ok((_, text))) => String::from_utf8(text)
                .map(Cow::Owned)
                .map_err(|_| "decompresses to bytes that are not text".to_owned()),
            None => std::str::from_utf8(bytes)
                .map(Cow::Borrowed)
                .map_err(|_| "bytes that are neither zlib nor JSON".to_owned()),
        },
    }
}
