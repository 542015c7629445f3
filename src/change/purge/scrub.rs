//! Removes words from stored values, and leaves every other character as written: texts, JSON, lists, arrays,
//! compressed bytes.

use serde_json::value::RawValue;

use super::hit::Hit;
use super::id_set::LostIds;
use super::matcher::{mark, tells};
use crate::memory::json::{self, MAX_DEPTH};
use crate::store::container::{self, Layer};
use crate::store::fetched::FetchedValue;

/// Stores new bytes in the same form as the original value.
///
/// # Errors
/// The bytes cannot be compressed.
pub fn stored_as(raw: &FetchedValue, wrapping: Option<Layer>, bytes: Vec<u8>) -> std::io::Result<FetchedValue> {
    Ok(match (raw, wrapping) {
        (FetchedValue::Bytes(_), None) => FetchedValue::Bytes(bytes),
        (FetchedValue::Bytes(old), Some(layer)) => FetchedValue::Bytes(container::pack(layer, &bytes, old)?),
        _ => match String::from_utf8(bytes) {
            Ok(text) => FetchedValue::Text(text),
            Err(bad) => FetchedValue::BadText(bad.into_bytes()),
        },
    })
}

/// Finds the start and end of the JSON number that a hit is, or is part of; `None` if the hit is within a string.
fn number_around(bytes: &[u8], hit: &Hit) -> Option<(usize, usize)> {
    let numeral = |b: &u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E');
    if !bytes.get(hit.start..hit.end)?.iter().all(numeral) {
        return None;
    }
    let start = bytes[..hit.start].iter().rposition(|b| !numeral(b)).map_or(0, |at| at + 1);
    let end = bytes[hit.end..].iter().position(|b| !numeral(b)).map_or(bytes.len(), |at| hit.end + at);
    let before = bytes[..start].iter().rfind(|b| !b.is_ascii_whitespace());
    let after = bytes[end..].iter().find(|b| !b.is_ascii_whitespace());
    let bare = matches!(before, Some(b':' | b',' | b'[')) && matches!(after, Some(b',' | b']' | b'}'));
    bare.then_some((start, end))
}

/// Edits of a document: start, end (exclusive), replacement.
type Edits = Vec<(usize, usize, Vec<u8>)>;

/// Applies edits to bytes.
fn edited(bytes: &[u8], mut edits: Edits) -> Vec<u8> {
    edits.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for (start, end, new) in edits {
        if start < at {
            continue;
        }
        out.extend_from_slice(bytes.get(at..start).unwrap_or_default());
        out.extend_from_slice(&new);
        at = end;
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    out
}

/// Removes references to deleted rows from a text: elements of lists, objects in lists whose id matches, values of
/// objects, and members stored under the id. Returns `None` if there are none.
pub fn without(bytes: &[u8], ids: &LostIds, hits: &[Hit]) -> Option<Vec<u8>> {
    let mut edits = Vec::new();
    let text = std::str::from_utf8(bytes);
    if let Ok(text) = text
        && let Ok(value) = serde_json::from_str::<&RawValue>(text.trim())
    {
        let key = |key: &str| ids.told().contains(key) || tells(key) && ids.contains(key);
        let (element, member) = (|item: &RawValue| names(item, ids), |member: &RawValue| is_id(member, ids));
        let gone = Going { list: &|_| true, element: &element, member: &member, key: &key };
        walk(value, text.as_ptr() as usize, (0, true), &gone, &mut edits);
    }
    // Covers what the strict parser does not reach: JSON within strings, very deeply nested JSON, and invalid JSON.
    let quoted = |hit: &Hit| -> (usize, usize) {
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
        if edits.iter().any(|(start, end, _)| *start <= hit.start && hit.end <= *end) {
            continue;
        }
        if text.is_err() {
            // Binary documents store lengths before the texts, so the length stays.
            edits.push((hit.start, hit.end, vec![b'*'; hit.end - hit.start]));
            continue;
        }
        let (start, end) = number_around(bytes, hit).unwrap_or_else(|| quoted(hit));
        let bare = start == hit.start && end == hit.end && number_around(bytes, hit).is_none();
        if bare || is_key(&bytes[end..]) {
            edits.push((hit.start, hit.end, mark(hit.end - hit.start).into_bytes()));
        } else {
            edits.push((start, end, b"null".to_vec()));
        }
    }
    (!edits.is_empty()).then(|| edited(bytes, edits))
}

/// Whether the bytes before these end a JSON object's key; a key cannot be `null`.
fn is_key(after: &[u8]) -> bool {
    after.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':')
}

/// Parts to remove from a document.
struct Going<'a> {
    /// Keys of objects whose lists lose elements.
    list: &'a dyn Fn(&str) -> bool,
    /// Elements of lists.
    element: &'a dyn Fn(&RawValue) -> bool,
    /// Values of objects, which become null.
    member: &'a dyn Fn(&RawValue) -> bool,
    /// Keys of objects, removed with their values.
    key: &'a dyn Fn(&str) -> bool,
}

/// A JSON document without the texts that are gone, in the lists under keys that are `listed`, all else as it stands; none when
/// there are none, or the document nests deeper than [`MAX_DEPTH`].
pub fn lists_without(text: &str, listed: &dyn Fn(&str) -> bool, is_gone: &dyn Fn(&str) -> bool) -> Option<String> {
    let value = serde_json::from_str::<&RawValue>(text.trim()).ok()?;
    let is_text = |item: &RawValue| item.get().starts_with('"');
    let element =
        |item: &RawValue| is_text(item) && serde_json::from_str::<String>(item.get()).is_ok_and(|text| is_gone(&text));
    let mut edits = Vec::new();
    let going = Going { list: listed, element: &element, member: &|_| false, key: &|_| false };
    let is_whole = walk(value, text.as_ptr() as usize, (0, false), &going, &mut edits);
    if !is_whole || edits.is_empty() {
        return None;
    }
    String::from_utf8(edited(text.as_bytes(), edits)).ok()
}

/// Removes integers from a JSON list if they are ids of deleted rows; the rest stays as written. Returns `None` if
/// there are none.
pub fn numbers_without(list: &str, is_gone: &dyn Fn(&str) -> bool) -> Option<String> {
    let items = serde_json::from_str::<Vec<&RawValue>>(list).ok()?;
    let element = |item: &RawValue| item.get().parse::<i64>().is_ok_and(|number| is_gone(&number.to_string()));
    let going = Going { list: &|_| true, element: &element, member: &|_| false, key: &|_| false };
    let mut edits = Vec::new();
    walk_list(&items, list.as_ptr() as usize, (MAX_DEPTH - 1, true), &going, &mut edits);
    if edits.is_empty() {
        return None;
    }
    String::from_utf8(edited(list.as_bytes(), edits)).ok()
}

/// Depth of a value, and whether its lists lose elements.
type Level = (usize, bool);

/// Collects what goes of a value, and says whether all of it was looked at: what nests deeper than [`MAX_DEPTH`] is not.
fn walk(value: &RawValue, base: usize, level: Level, going: &Going<'_>, edits: &mut Edits) -> bool {
    let text = value.get();
    let mut is_whole = true;
    if level.0 == MAX_DEPTH {
        is_whole = !text.starts_with(['[', '{']);
    } else if text.starts_with('[') {
        let items = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
        is_whole = walk_list(&items, base, level, going, edits);
    } else if text.starts_with('{') {
        is_whole = walk_object(text, base, level.0, going, edits);
    }
    is_whole
}

fn walk_object(text: &str, base: usize, depth: usize, going: &Going<'_>, edits: &mut Edits) -> bool {
    let begin = text.as_ptr() as usize - base;
    let mut is_whole = true;
    // The byte after the brace or the last value, and whether a remaining member comes before it.
    let (mut at, mut kept_before) = (begin + 1, false);
    for (key, member) in json::members(text).unwrap_or_default() {
        let start = member.get().as_ptr() as usize - base;
        let mut end = start + member.get().len();
        if (going.key)(&key) {
            // Removes the comma before it if something remains before it, otherwise the comma after it.
            if !kept_before {
                let rest = &text[end - begin..];
                end += rest
                    .find(|c: char| !c.is_ascii_whitespace())
                    .filter(|i| rest[*i..].starts_with(','))
                    .map_or(0, |i| i + 1);
            }
            edits.push((at, end, Vec::new()));
        } else {
            kept_before = true;
            if (going.member)(member) {
                edits.push((start, end, b"null".to_vec()));
            } else {
                is_whole &= walk(member, base, (depth + 1, (going.list)(&key)), going, edits);
            }
        }
        at = end;
    }
    is_whole
}

fn walk_list(items: &[&RawValue], base: usize, level: Level, going: &Going<'_>, edits: &mut Edits) -> bool {
    let (depth, is_listed) = level;
    let mut is_whole = true;
    let place = |item: &RawValue| (item.get().as_ptr() as usize - base, item.get().len());
    let mut kept_before = false;
    for (i, item) in items.iter().enumerate() {
        let (start, length) = place(item);
        if !is_listed || !(going.element)(item) {
            kept_before = true;
            is_whole &= walk(item, base, (depth + 1, is_listed), going, edits);
            continue;
        }
        // Removes the comma before it if something remains before it, otherwise the comma after it.
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
        edits.push((from, to, Vec::new()));
    }
    is_whole
}

fn is_id(value: &RawValue, ids: &LostIds) -> bool {
    value.get().starts_with('"') && serde_json::from_str::<String>(value.get()).is_ok_and(|text| ids.contains(&text))
}

/// Whether an element of a list is the id of a deleted row, or an object about one.
fn names(value: &RawValue, ids: &LostIds) -> bool {
    if value.get().starts_with('{') {
        let members = json::members(value.get()).unwrap_or_default();
        return members.iter().any(|(key, id)| key == "id" && is_id(id, ids));
    }
    is_id(value, ids)
}

/// Removes elements from a PostgreSQL array in text form; `None` if none matches.
pub fn array_without(text: &str, goes: impl Fn(&str) -> bool) -> Option<String> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    let items = array_items(inner);
    let kept: Vec<&str> = items.iter().filter(|(_, value)| !goes(value)).map(|(raw, _)| *raw).collect();
    (kept.len() < items.len()).then(|| format!("{{{}}}", kept.join(",")))
}

/// The elements of an array's text: as written, and unescaped.
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
    use std::sync::Arc;

    use super::super::hit::ByteFind;
    use super::super::id_set::IdSet;
    use super::super::taken::room;
    use super::*;
    use crate::memory::mention::Certainty;

    fn lost(ids: &[&str]) -> LostIds {
        let mut own = IdSet::new(&room());
        ids.iter().for_each(|id| own.insert(id));
        LostIds::new(&Arc::new(IdSet::new(&room())), own)
    }

    fn gone(text: &str) -> Option<String> {
        let ids = lost(&["gone-0001", "gone-0002"]);
        without(text.as_bytes(), &ids, &[]).map(|bytes| String::from_utf8(bytes).unwrap())
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
            (r#"{"gone-0001": {"n": 1}, "a": "b"}"#, Some(r#"{ "a": "b"}"#)),
            (r#"{"gone-0001": 1, "gone-0002" : 2}"#, Some("{}")),
            (r#"{"gone-0001": 1, "gone-0002": 2 , "a": 3}"#, Some(r#"{ "a": 3}"#)),
            (r#"[{"a": 1, "gone-0001": 2, "b": 3, "gone-0002": 4}]"#, Some(r#"[{"a": 1, "b": 3}]"#)),
            (r#"{"a": "b"}"#, None),
        ] {
            assert_eq!(gone(before).as_deref(), after, "{before}");
        }
    }

    #[test]
    fn a_document_of_any_depth_is_looked_at_in_bounded_depth() {
        let nested = |depth: usize| format!("{}\"gone-0001\"{}", "[".repeat(depth), "]".repeat(depth));
        let is_gone = |id: &str| id == "gone-0001";
        let (shallow, deep) = (nested(MAX_DEPTH), nested(100_000));
        assert_eq!(gone(&shallow), Some(shallow.replace("\"gone-0001\"", "")));
        let (listed, ids) = (|key: &str| key == "ids", format!("{{\"ids\":{}}}", nested(MAX_DEPTH - 1)));
        assert_eq!(lists_without(&ids, &listed, &is_gone), gone(&ids));
        assert_eq!(lists_without(&ids.replace("ids", "tools"), &listed, &is_gone), None);
        // Deeper down only what was found by its letters is removed, and a plan says that it cannot rewrite.
        assert_eq!(gone(&deep), None);
        let start = deep.find("gone").unwrap();
        let hit = Hit { what: ByteFind::Row, start, end: start + 9, certainty: Certainty::Certain };
        let left = without(deep.as_bytes(), &lost(&["gone-0001"]), &[hit]).unwrap();
        assert_eq!(String::from_utf8(left).unwrap(), deep.replace("\"gone-0001\"", "null"));
        assert_eq!(lists_without(&format!("{{\"ids\":{deep}}}"), &listed, &is_gone), None);
    }

    #[test]
    fn what_is_found_by_its_letters_alone_stays_a_key() {
        let lenient = r#"{'gone-0001': 1, "n": NaN, "at": 'gone-0001'}"#;
        let starts = lenient.match_indices("gone").map(|(start, _)| start);
        let hits: Vec<Hit> = starts
            .map(|start| Hit { what: ByteFind::Row, start, end: start + 9, certainty: Certainty::Certain })
            .collect();
        let left = without(lenient.as_bytes(), &lost(&["gone-0001"]), &hits).unwrap();
        assert_eq!(String::from_utf8(left).unwrap(), r#"{'[erased]': 1, "n": NaN, "at": null}"#);
    }

    #[test]
    fn a_binary_document_keeps_its_lengths() {
        let document = b"\x92\xA9gone-0001\xA1x";
        let hit = Hit { what: ByteFind::Row, start: 2, end: 11, certainty: Certainty::Certain };
        let left = without(document, &lost(&[]), &[hit]);
        assert_eq!(left.as_deref(), Some(&b"\x92\xA9*********\xA1x"[..]));
    }

    #[test]
    fn a_list_loses_the_numbers_that_are_ids() {
        let is_gone = |id: &str| id == "100";
        for (before, after) in [
            ("[100, 102]", Some("[102]")),
            ("[1, 100,  102]", Some("[1,  102]")),
            ("[100]", Some("[]")),
            (r#"["100", 1.0e2, [100]]"#, None),
            (r#"{"n": 100}"#, None),
        ] {
            assert_eq!(numbers_without(before, &is_gone).as_deref(), after, "{before}");
        }
    }

    #[test]
    fn arrays_lose_elements_in_their_own_spelling() {
        let ids = |id: &str| id == "a b";
        assert_eq!(array_without(r#"{"a b",c,"d\"e"}"#, ids).as_deref(), Some(r#"{c,"d\"e"}"#));
        assert_eq!(array_without("{c}", ids), None);
    }
}
