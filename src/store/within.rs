//! Values within stored values: reads at a layout's `decode`, `path`, `by` and `part`, and writes a new value there in
//! the same encodings.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::container::{self, Change, Decoded, Layer, Leaf, LeafKind, Limits, Rewritten};
use super::fetched::{FetchedValue, json_text};
use crate::layout::{Codec, Inside, TextPart};
use crate::memory::json;

/// The value at that place, with its problems; several parts of a text become a list, one part a text.
pub(super) fn found(raw: &FetchedValue, inside: &Inside) -> (Option<Value>, Vec<String>) {
    let (found, problems) = match at_path(raw, inside) {
        Ok(found) => found,
        Err(problem) => return (None, vec![problem]),
    };
    let Some(found) = found.filter(|value| !value.is_null()) else { return (None, problems) };
    let found = match &found {
        Value::String(text) if inside.by.is_some() => {
            let parts = parts(text, inside).into_iter();
            if inside.part == TextPart::Any { Some(parts.collect()) } else { parts.map(Value::from).next() }
        }
        _ => Some(found),
    };
    (found, Vec::new())
}

/// The values of the parts of a text.
fn parts(text: &str, inside: &Inside) -> Vec<String> {
    let is_escaped = matches!(inside.part, TextPart::After(_));
    let value = move |part: &str| {
        if is_escaped { percent_decode_str(part).decode_utf8_lossy().into_owned() } else { part.to_owned() }
    };
    inside.parts(text).into_iter().map(value).collect()
}

/// The value at the path after decoding, or all of it; with the problems if there is none.
fn at_path(raw: &FetchedValue, inside: &Inside) -> Result<(Option<Value>, Vec<String>), String> {
    if *raw == FetchedValue::Null {
        return Ok((None, Vec::new()));
    }
    let raw = if inside.decode.is_empty() {
        Cow::Borrowed(raw)
    } else {
        match container::decoded(raw, &inside.decode)? {
            None => return Ok((None, Vec::new())),
            Some(Decoded::Document(value)) => {
                return Ok((json::path(&value, inside.path.as_deref().unwrap_or_default()), Vec::new()));
            }
            Some(Decoded::Bytes(bytes)) => Cow::Owned(FetchedValue::Bytes(bytes)),
        }
    };
    if let Some(path) = &inside.path {
        return Ok(json::path_in(&json_text(&raw)?, path));
    }
    let whole = match &*raw {
        FetchedValue::Null => Value::Null,
        FetchedValue::Text(text) => Value::from(text.as_str()),
        FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => Value::from(String::from_utf8_lossy(bytes)),
        FetchedValue::Integer(number) => Value::from(*number),
        FetchedValue::Real(number) => Value::from(*number),
    };
    Ok((Some(whole), Vec::new()))
}

/// The texts at that place: one, or the items of a list, and of each the parts.
fn texts(raw: &FetchedValue, inside: &Inside) -> Vec<String> {
    match at_path(raw, inside) {
        Ok((Some(Value::String(text)), _)) => parts(&text, inside),
        Ok((Some(Value::Number(number)), _)) => vec![number.to_string()],
        Ok((Some(Value::Array(items)), _)) => {
            items.into_iter().filter_map(item_text).flat_map(|text| parts(&text, inside)).collect()
        }
        _ => Vec::new(),
    }
}

/// The texts and numbers of a stored value that a rule matches. A path alone leads through every encoding in the value.
pub fn texts_of(raw: &FetchedValue, inside: &Inside) -> Vec<String> {
    match &inside.path {
        Some(path) if is_path_alone(inside) => texts_at(raw, path),
        _ => texts(raw, inside),
    }
}

/// Whether a rule has a path into a value but no encodings.
pub fn is_path_alone(inside: &Inside) -> bool {
    inside.path.is_some() && inside.decode.is_empty() && inside.by.is_none()
}

/// The texts and numbers at a path of a stored value: one, or the items of a list. JSON is parsed directly; if nothing
/// is found there, all encodings of the value are decoded.
fn texts_at(raw: &FetchedValue, path: &str) -> Vec<String> {
    let document = container::readable(raw).filter(|text| text.trim_start().starts_with(['{', '[']));
    match document.and_then(|text| json::path_in(&text, path).0) {
        Some(Value::String(text)) if !text.starts_with(['{', '[']) => vec![text],
        Some(Value::Number(number)) => vec![number.to_string()],
        Some(Value::Array(items)) => items.into_iter().filter_map(item_text).collect(),
        _ => encoded_at(raw, path),
    }
}

fn item_text(item: Value) -> Option<String> {
    match item {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn encoded_at(raw: &FetchedValue, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    container::read(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
        if leaf.kind != LeafKind::Key && leaf.layers.last() != Some(&Layer::Escapes) && stands_at(&leaf.path(), path) {
            found.push(leaf.text.to_owned());
        }
    });
    found
}

/// Whether a place in a value matches a path, or is an element of the list there.
pub fn stands_at(place: &str, path: &str) -> bool {
    let element =
        if path.is_empty() { Some(place) } else { place.strip_prefix(path).and_then(|p| p.strip_prefix('.')) };
    place == path || element.is_some_and(|step| !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()))
}

/// Replaces the value at that place; all other bytes stay.
///
/// # Errors
/// The reason why it cannot be written there, for people.
pub fn replaced(raw: &FetchedValue, inside: &Inside, value: &Value) -> Result<FetchedValue, String> {
    let value = match &inside.by {
        Some(by) => Cow::Owned(rejoined(raw, inside, by, value)?),
        None => Cow::Borrowed(value),
    };
    if inside.decode.is_empty() && inside.path.is_none() {
        return match (&*value, raw) {
            (Value::String(text), FetchedValue::Bytes(_)) => Ok(FetchedValue::Bytes(text.clone().into_bytes())),
            (Value::String(text), _) => Ok(FetchedValue::Text(text.clone())),
            (other, _) => Err(format!("takes a text, not {other}")),
        };
    }
    if let Value::String(text) = &*value
        && let Some(new) = texts_replaced(raw, inside.path.as_deref().unwrap_or_default(), text)?
    {
        return Ok(new);
    }
    if let Some(codec) = inside.decode.iter().find(|codec| **codec != Codec::Json) {
        return Err(format!("is stored as {}, where only existing texts can be changed", codec.name()));
    }
    let text = json_text(raw)?;
    let problems = json::read(&text).problems;
    if !problems.is_empty() {
        return Err(format!("holds invalid JSON: {}", problems.join("; ")));
    }
    let new = json::put(&text, inside.path.as_deref().unwrap_or_default(), &value)?;
    Ok(match raw {
        FetchedValue::Bytes(bytes) if std::str::from_utf8(bytes).is_ok() => FetchedValue::Bytes(new.into_bytes()),
        FetchedValue::Bytes(_) => {
            return Err("is compressed, and only existing texts in it can be changed".to_owned());
        }
        _ => FetchedValue::Text(new),
    })
}

/// Changes the text at a path of the value, within its encodings; `None` if there is no such text. If the path matches
/// several, each gets its part of the new text.
fn texts_replaced(raw: &FetchedValue, path: &str, text: &str) -> Result<Option<FetchedValue>, String> {
    let is_meant = |leaf: &Leaf<'_>| {
        let reread = leaf.layers.last() == Some(&Layer::Escapes);
        leaf.kind == LeafKind::Text && !reread && !leaf.layers.is_empty() && leads_to(path, &leaf.path())
    };
    let mut old: Vec<String> = Vec::new();
    let mut collect = |leaf: &Leaf<'_>| {
        if is_meant(leaf) {
            old.push(leaf.text.to_owned());
        }
        Vec::new()
    };
    container::rewrite(raw, Limits::default(), &mut collect);
    if old.is_empty() || old.len() > 1 && !path.split('.').any(|step| step == EVERY) {
        return Ok(None);
    }
    let mut texts = spread(&old, text)?.into_iter();
    let mut change = |leaf: &Leaf<'_>| {
        let text = if is_meant(leaf) { texts.next().flatten() } else { None };
        text.map(|text| Change::whole(leaf, text)).into_iter().collect()
    };
    match container::rewrite(raw, Limits::default(), &mut change).0 {
        Rewritten::New(new) => Ok(Some(new)),
        Rewritten::Unchanged => Ok(Some(raw.clone())),
        Rewritten::Cannot(layer) => Err(format!("is stored as {}, which is read-only", layer.name())),
    }
}

/// Divides a new text over places with the `old` ones; `None` for a place that stays. Empty places stay empty. Old
/// texts at the beginning and the end of the new one stay; each place between them gets a line, or a single place all
/// of it.
fn spread<'t>(old: &[String], text: &'t str) -> Result<Vec<Option<&'t str>>, String> {
    let mut new = vec![None; old.len()];
    let mut places: Vec<usize> = (0..old.len()).filter(|at| !old[*at].is_empty()).collect();
    if places.is_empty() {
        places.push(0);
    }
    let (all, mut left, mut rest) = (places.len(), &places[..], text);
    while let [first, behind @ ..] = left
        && !behind.is_empty()
        && let Some(after) = rest.strip_prefix(old[*first].as_str()).and_then(|rest| rest.strip_prefix('\n'))
    {
        (left, rest) = (behind, after);
    }
    while let [before @ .., last] = left
        && !before.is_empty()
        && let Some(ahead) = rest.strip_suffix(old[*last].as_str()).and_then(|rest| rest.strip_suffix('\n'))
    {
        (left, rest) = (before, ahead);
    }
    let lines: Vec<&str> = if left.len() == 1 { vec![rest] } else { rest.split('\n').collect() };
    if lines.len() != left.len() {
        return Err(format!("holds {all} texts: give {all} lines, one for each, or change the whole document"));
    }
    for (at, line) in left.iter().zip(lines) {
        new[*at] = Some(line);
    }
    Ok(new)
}

/// The path step for every element of a list.
pub(super) const EVERY: &str = "*";

/// Whether a path, possibly with steps for every element, matches a place.
fn leads_to(path: &str, place: &str) -> bool {
    let is_step = |(step, at): (&str, &str)| step == at || step == EVERY && at.bytes().all(|b| b.is_ascii_digit());
    path.split('.').count() == place.split('.').count() && path.split('.').zip(place.split('.')).all(is_step)
}

/// Replaces a part of a text; without a part, the list replaces all parts.
fn rejoined(raw: &FetchedValue, inside: &Inside, by: &str, value: &Value) -> Result<Value, String> {
    let items: Vec<&str> = match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::Null => Vec::new(),
        other => return Err(format!("takes texts, not {other}")),
    };
    if let Some(item) = items.iter().find(|item| item.contains(by)) {
        return Err(format!("cannot hold `{item}`, because `{by}` separates its parts"));
    }
    if items.contains(&"") {
        return Err("cannot hold an empty part".to_owned());
    }
    if inside.part == TextPart::Any {
        return Ok(Value::from(items.join(by)));
    }
    let whole = Inside { by: None, ..inside.clone() };
    let Some(Value::String(old)) = found(raw, &whole).0 else { return Err("has no such part".to_owned()) };
    let parts = inside.parts(&old);
    let Some(part) = parts.first() else { return Err("has no such part".to_owned()) };
    let start = part.as_ptr() as usize - old.as_ptr() as usize;
    let (before, behind) = (&old[..start], &old[start + part.len()..]);
    match (&inside.part, &items[..]) {
        (_, [new]) => Ok(Value::from(format!("{before}{new}{behind}"))),
        // A part selected by its prefix must not leave another such part elsewhere.
        (TextPart::After(_), []) => {
            let others =
                [before.rsplit_once(by).map(|(others, _)| others), behind.split_once(by).map(|(_, others)| others)];
            Ok(Value::from(others.into_iter().flatten().collect::<Vec<_>>().join(by)))
        }
        _ => Err("has a part that cannot be empty".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inside(decode: &[Codec], path: Option<&str>, by: Option<&str>, part: TextPart) -> Inside {
        Inside {
            decode: decode.to_vec(),
            path: path.map(str::to_owned),
            by: by.map(str::to_owned),
            part,
            ..Inside::default()
        }
    }

    #[test]
    fn a_path_leads_through_every_element() {
        let raw = FetchedValue::Text(r#"{"content":{"parts":[{"text":"a"},{"x":1},{"text":"b"}]}}"#.into());
        assert_eq!(found(&raw, &Inside::at("content.parts.*.text")).0, Some(json!(["a", "b"])));
        assert_eq!(found(&raw, &Inside::at("content.parts.*.none")).0, None);
    }

    #[test]
    fn a_new_text_leaves_every_other_byte() {
        let raw = FetchedValue::Text(r#"{"a": 1.50,  "text": "Gr\u00f6\u00dfe", "b": [ ]}"#.into());
        let new = replaced(&raw, &Inside::at("text"), &json!("é\"")).expect("it can be inserted there");
        assert_eq!(new, FetchedValue::Text(r#"{"a": 1.50,  "text": "é\"", "b": [ ]}"#.into()));
        let bytes = FetchedValue::Bytes(br#"{"text":"old"}"#.to_vec());
        assert_eq!(
            replaced(&bytes, &Inside::at("text"), &json!("new")),
            Ok(FetchedValue::Bytes(br#"{"text":"new"}"#.to_vec()))
        );
        let quoted = FetchedValue::Text(r#""old""#.into());
        let whole = inside(&[Codec::Json], None, None, TextPart::Any);
        assert_eq!(replaced(&quoted, &whole, &json!("new")), Ok(FetchedValue::Text(r#""new""#.into())));
        assert_eq!(found(&quoted, &whole).0, Some(json!("old")));
    }

    #[test]
    fn a_text_of_several_places_goes_back_line_by_line_or_where_it_differs() {
        let raw = FetchedValue::Text(r#"{"parts":[{"text":"a"},{"x":1},{"text":"b"}],"n": 1.0}"#.into());
        let every = Inside::at("parts.*.text");
        let both = replaced(&raw, &every, &json!("c\nd")).expect("two lines");
        assert_eq!(both, FetchedValue::Text(r#"{"parts":[{"text":"c"},{"x":1},{"text":"d"}],"n": 1.0}"#.into()));
        assert!(replaced(&raw, &every, &json!("all of it")).is_err_and(|why| why.contains("give 2 lines")));
        let longer = replaced(&raw, &every, &json!("a\nb\nc")).expect("the first stays");
        assert_eq!(longer, FetchedValue::Text(r#"{"parts":[{"text":"a"},{"x":1},{"text":"b\nc"}],"n": 1.0}"#.into()));
        let other = |old: &[&str], new| spread(&old.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), new);
        assert_eq!(other(&["a\nb", "", "c"], "a\nB\nc"), Ok(vec![Some("a\nB"), None, None]));
        assert_eq!(other(&["", ""], "a"), Ok(vec![Some("a"), None]));
        assert_eq!(other(&["a"], "b\nc"), Ok(vec![Some("b\nc")]));
        assert!(other(&["a", "b"], "a").is_err());
        assert!(replaced(&raw, &Inside::at("parts.*.none"), &json!("x")).is_err());
    }

    #[test]
    fn what_is_no_text_is_put_into_json_and_nothing_else() {
        let raw = FetchedValue::Text(r#"{"tags":["a"], "x": 1.50,"n":null}"#.into());
        let new = replaced(&raw, &Inside::at("tags"), &json!(["b", "c"]));
        assert_eq!(new, Ok(FetchedValue::Text(r#"{"tags":["b","c"], "x": 1.50,"n":null}"#.into())));
        assert_eq!(
            replaced(&raw, &Inside::at("n"), &json!("x")),
            Ok(FetchedValue::Text(r#"{"tags":["a"], "x": 1.50,"n":"x"}"#.into()))
        );
        let packed = inside(&[Codec::Msgpack], Some("n"), None, TextPart::Any);
        assert!(replaced(&FetchedValue::Bytes(vec![0x81, 0xA1, b'n', 0xC0]), &packed, &json!(7)).is_err());
        let pickle = FetchedValue::Bytes(b"\x80\x04}\x8c\x01n\x8c\x03olds.".to_vec());
        let pickled = inside(&[Codec::Pickle], Some("n"), None, TextPart::Any);
        assert_eq!(found(&pickle, &pickled).0, Some(json!("old")));
        assert!(replaced(&pickle, &pickled, &json!("new")).is_err());
    }

    #[test]
    fn parts_are_read_and_written() {
        let scope = FetchedValue::Text("agent_id=a&user_id=ann%26co".into());
        let user = inside(&[], None, Some("&"), TextPart::After("user_id=".into()));
        assert_eq!(found(&scope, &user).0, Some(json!("ann&co")));
        let tags = inside(&[], None, Some(","), TextPart::Any);
        assert_eq!(texts(&FetchedValue::Text("a,b".into()), &tags), ["a", "b"]);
        assert_eq!(
            replaced(&FetchedValue::Text("a,b".into()), &tags, &json!(["c", "d"])),
            Ok(FetchedValue::Text("c,d".into()))
        );
        assert!(replaced(&FetchedValue::Text("a".into()), &tags, &json!(["c,d"])).is_err());
        assert!(replaced(&FetchedValue::Text("a".into()), &tags, &json!(["c", ""])).is_err());
        let nobody = |text: &str| replaced(&FetchedValue::Text(text.into()), &user, &Value::Null);
        assert_eq!(nobody("a=1&user_id=ann&b=2"), Ok(FetchedValue::Text("a=1&b=2".into())));
        assert_eq!(nobody("user_id=ann"), Ok(FetchedValue::Text(String::new())));
        let second = inside(&[], None, Some("."), TextPart::At(1));
        assert_eq!(
            replaced(&FetchedValue::Text("m.ann.s".into()), &second, &json!("bob")),
            Ok(FetchedValue::Text("m.bob.s".into()))
        );
    }
}
