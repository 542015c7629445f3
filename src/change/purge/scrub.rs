//! Takes words out of stored values and leaves every other character as its writer spelled it: texts, JSON, lists,
//! arrays, packed bytes.

use std::collections::{HashMap, HashSet};
use std::io::{Read as _, Write as _};

use serde_json::value::RawValue;

use super::matcher::Hit;
use crate::store::session::Raw;

/// Bytes that a packed value may inflate to.
const INFLATE_LIMIT: u64 = 64 << 20;

/// What stands where a handle stood.
const MARK: &str = "[erased]";

/// How a readable value was stored.
fn is_packed(raw: &Raw) -> bool {
    matches!(raw, Raw::Bytes(bytes) if bytes.first() == Some(&0x78))
}

/// The text of a stored value: as it is, out of bytes, or inflated; none for numbers and for bytes that are no text.
#[must_use]
pub fn readable(raw: &Raw) -> Option<String> {
    match raw {
        Raw::Text(text) => Some(text.clone()),
        Raw::BadText(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Raw::Bytes(bytes) if is_packed(raw) => {
            let mut text = Vec::new();
            flate2::read::ZlibDecoder::new(&bytes[..]).take(INFLATE_LIMIT).read_to_end(&mut text).ok()?;
            String::from_utf8(text).ok()
        }
        Raw::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
        Raw::Null | Raw::Integer(_) | Raw::Real(_) => None,
    }
}

/// A text stored as the value was that it comes from.
#[must_use]
pub fn stored_as(raw: &Raw, text: String) -> Raw {
    match raw {
        Raw::Bytes(_) if is_packed(raw) => {
            let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            match packed.write_all(text.as_bytes()).and_then(|()| packed.finish()) {
                Ok(bytes) => Raw::Bytes(bytes),
                Err(_) => Raw::Null,
            }
        }
        Raw::Bytes(_) => Raw::Bytes(text.into_bytes()),
        _ => Raw::Text(text),
    }
}

/// The text with a mark where each hit stands; never longer than it was.
#[must_use]
pub fn redacted(text: &str, hits: &[Hit]) -> String {
    let edits = hits.iter().map(|hit| (hit.start, hit.end, mark(hit.end - hit.start))).collect();
    edited(text, edits)
}

fn mark(length: usize) -> String {
    if length >= MARK.len() { MARK.to_owned() } else { "*".repeat(length) }
}

/// The text with parts replaced: first byte, byte after the last, what comes there.
fn edited(text: &str, mut edits: Vec<(usize, usize, String)>) -> String {
    edits.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (start, end, new) in edits {
        if start < at {
            continue;
        }
        out.push_str(text.get(at..start).unwrap_or_default());
        out.push_str(&new);
        at = end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// The text without references to rows that go: elements of lists, objects in lists that the id names, values of
/// objects. None when it names none.
#[must_use]
pub fn without(text: &str, ids: &HashSet<String>, hits: &[Hit]) -> Option<String> {
    let mut edits = Vec::new();
    if let Ok(value) = serde_json::from_str::<&RawValue>(text.trim()) {
        walk(value, text.as_ptr() as usize, ids, &mut edits);
    }
    // What a strict reading does not reach: JSON within strings, and JSON that is none.
    let quoted = |hit: &Hit| -> (usize, usize) {
        let bytes = text.as_bytes();
        let before = |n: usize| hit.start.checked_sub(n).and_then(|i| bytes.get(i)).copied();
        let after = |n: usize| bytes.get(hit.end + n).copied();
        match (before(1), after(0)) {
            (Some(b'"'), Some(b'\\')) if before(2) == Some(b'\\') && after(1) == Some(b'"') => {
                (hit.start - 2, hit.end + 2)
            }
            (Some(open @ (b'"' | b'\'')), Some(close)) if open == close => (hit.start - 1, hit.end + 1),
            _ => (hit.start, hit.end),
        }
    };
    for hit in hits {
        if !edits.iter().any(|(start, end, _)| *start <= hit.start && hit.end <= *end) {
            let (start, end) = quoted(hit);
            let new = if start == hit.start { mark(end - start) } else { "null".to_owned() };
            edits.push((start, end, new));
        }
    }
    (!edits.is_empty()).then(|| edited(text, edits))
}

fn walk(value: &RawValue, base: usize, ids: &HashSet<String>, edits: &mut Vec<(usize, usize, String)>) {
    let text = value.get();
    if text.starts_with('[') {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) else { return };
        let place = |item: &RawValue| (item.get().as_ptr() as usize - base, item.get().len());
        let gone: Vec<bool> = items.iter().map(|item| names(item, ids)).collect();
        let mut kept_before = false;
        for (i, item) in items.iter().enumerate() {
            let (start, length) = place(item);
            if !gone[i] {
                kept_before = true;
                walk(item, base, ids, edits);
                continue;
            }
            // With the comma before it where something is kept before, else with the one after it.
            let from = match i.checked_sub(1).and_then(|b| items.get(b)) {
                Some(before) if kept_before => {
                    let (before, length) = place(before);
                    before + length
                }
                _ => start,
            };
            let to = match items.get(i + 1) {
                Some(after) if !kept_before => place(after).0,
                _ => start + length,
            };
            edits.push((from, to, String::new()));
        }
    } else if text.starts_with('{') {
        let Ok(members) = serde_json::from_str::<HashMap<String, &RawValue>>(text) else { return };
        for member in members.values() {
            if is_id(member, ids) {
                let start = member.get().as_ptr() as usize - base;
                edits.push((start, start + member.get().len(), "null".to_owned()));
            } else {
                walk(member, base, ids, edits);
            }
        }
    }
}

fn is_id(value: &RawValue, ids: &HashSet<String>) -> bool {
    value.get().starts_with('"') && serde_json::from_str::<String>(value.get()).is_ok_and(|text| ids.contains(&text))
}

/// Whether an element of a list is the id of a row that goes, or an object about one.
fn names(value: &RawValue, ids: &HashSet<String>) -> bool {
    if value.get().starts_with('{') {
        let members = serde_json::from_str::<HashMap<String, &RawValue>>(value.get());
        return members.is_ok_and(|m| m.get("id").is_some_and(|id| is_id(id, ids)));
    }
    is_id(value, ids)
}

/// An array of PostgreSQL in its text form, without elements that are among the ids; none when there are none.
#[must_use]
pub fn array_without(text: &str, ids: &HashSet<String>) -> Option<String> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let items = array_items(inner);
    let kept: Vec<&str> = items.iter().filter(|(_, value)| !ids.contains(value)).map(|(raw, _)| *raw).collect();
    (kept.len() < items.len()).then(|| format!("{{{}}}", kept.join(",")))
}

/// The elements of an array's text: as written, and as meant.
fn array_items(inner: &str) -> Vec<(&str, String)> {
    let mut items = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    let mut value = String::new();
    for (i, c) in inner.char_indices() {
        match c {
            _ if escaped => {
                escaped = false;
                value.push(c);
            }
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ',' if !quoted => {
                items.push((&inner[start..i], std::mem::take(&mut value)));
                start = i + 1;
            }
            c => value.push(c),
        }
    }
    if !inner.is_empty() {
        items.push((&inner[start..], value));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(text: &str) -> Option<String> {
        let ids = HashSet::from(["gone-0001".to_owned(), "gone-0002".to_owned()]);
        without(text, &ids, &[])
    }

    #[test]
    fn references_go_and_everything_else_stays_as_it_was_spelled() {
        for (before, after) in [
            (r#"["gone-0001"]"#, Some("[]")),
            (r#"["a",  "gone-0001", "b"]"#, Some(r#"["a", "b"]"#)),
            (r#"["gone-0001", "gone-0002", "b"]"#, Some(r#"["b"]"#)),
            (r#"["a", "gone-0001", "gone-0002"]"#, Some(r#"["a"]"#)),
            (
                r#"{"steps": [{"id": "gone-0001", "x": 1}, {"ids": ["gone-0002"]}]}"#,
                Some(r#"{"steps": [{"ids": []}]}"#),
            ),
            (r#"{"caseId": "gone-0001", "n": 1.10}"#, Some(r#"{"caseId": null, "n": 1.10}"#)),
            (r#"{"a": "b"}"#, None),
        ] {
            assert_eq!(gone(before).as_deref(), after, "{before}");
        }
    }

    #[test]
    fn arrays_lose_elements_in_their_own_spelling() {
        let ids = HashSet::from(["a b".to_owned()]);
        assert_eq!(array_without(r#"{"a b",c,"d\"e"}"#, &ids).as_deref(), Some(r#"{c,"d\"e"}"#));
        assert_eq!(array_without("{c}", &ids), None);
    }
}
