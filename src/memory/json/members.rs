//! The members of an object as written: including repeated keys, and numbers that no type can represent.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::memory::id_list::respelled;

/// Keys and values of a JSON object in order, each value as its text; `None` if the text is not an object.
pub fn members(text: &str) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str::<Members<'_>>(text).ok().map(|members| members.0)
}

/// The text of the first of some names whose member is a string; of repeated names the last member counts.
pub fn member_text(members: &[(String, &RawValue)], names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| {
        let (_, value) = members.iter().rfind(|(key, _)| key == name)?;
        serde_json::from_str(value.get()).ok()
    })
}

/// A member of an object, as written.
struct Placed<'t> {
    key: String,
    /// Key and value.
    whole: &'t str,
    value: &'t str,
}

fn placed(text: &str) -> Option<Vec<Placed<'_>>> {
    let mut end = 0;
    let place = |(key, value): (String, &RawValue)| {
        let value: &str = value.get();
        let begin = end + text[end..].find('"')?;
        end = place_of(text, value) + value.len();
        Some(Placed { key, whole: &text[begin..end], value: &text[end - value.len()..end] })
    };
    members(text)?.into_iter().map(place).collect()
}

/// The byte offset of a part in its text.
fn place_of(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}

fn member(key: &str, value: &Value) -> String {
    format!("{}:{value}", Value::from(key))
}

/// Updates the text of an object; `was` and `becomes` are its parsed values. Unchanged members keep their spelling.
/// `None` if the text is not a strict JSON object.
pub fn remade(text: &str, was: &Value, becomes: &Value) -> Option<String> {
    let (there, becomes) = (placed(text)?, becomes.as_object()?);
    let stays = |key: &str| was.get(key) == becomes.get(key);
    let spelled = |(at, found): (usize, &Placed<'_>)| {
        if stays(&found.key) {
            return Some(found.whole.to_owned());
        }
        let is_last = !there[at + 1..].iter().any(|later| later.key == found.key);
        becomes.get(&found.key).filter(|_| is_last).map(|value| member(&found.key, value))
    };
    let kept: Vec<Option<String>> = there.iter().enumerate().map(spelled).collect();
    let items: Vec<&str> = there.iter().map(|found| found.whole).collect();
    let is_new = |key: &str| !stays(key) && !there.iter().any(|found| found.key == key);
    let more = becomes.iter().filter(|(key, _)| is_new(key)).map(|(key, value)| member(key, value));
    Some(respelled(text, &items, &kept, more))
}

/// Sets a value at a path of a strict JSON document; the last step may be a new member. The rest stays as written.
///
/// # Errors
/// The step that does not exist, as text.
pub fn put(text: &str, path: &str, value: &Value) -> Result<String, String> {
    if path.is_empty() {
        return Ok(value.to_string());
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let missing = || format!("has no `{step}`");
    let inner = if let Some(there) = placed(text) {
        match there.iter().rfind(|found| found.key == step) {
            Some(found) => found.value,
            None if rest.is_empty() => {
                let items: Vec<&str> = there.iter().map(|found| found.whole).collect();
                let kept: Vec<Option<&str>> = items.iter().copied().map(Some).collect();
                return Ok(respelled(text, &items, &kept, [member(step, value)]));
            }
            None => return Err(missing()),
        }
    } else {
        let items = serde_json::from_str::<Vec<&RawValue>>(text).map_err(|_| missing())?;
        step.parse::<usize>().ok().and_then(|at| items.get(at).copied()).ok_or_else(missing)?.get()
    };
    let begin = place_of(text, inner);
    Ok(format!("{}{}{}", &text[..begin], put(inner, rest, value)?, &text[begin + inner.len()..]))
}

struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'de: 't, 't> Deserialize<'de> for Members<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Collect).map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_and_long_numbers_stay_as_they_stand() {
        let found = members(r#"{"a": 1e400, "b": [1], "a": 123456789012345678901234567890}"#).unwrap();
        let texts: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.get())).collect();
        assert_eq!(texts, [("a", "1e400"), ("b", "[1]"), ("a", "123456789012345678901234567890")]);
        assert!(members("[1]").is_none());
    }
    #[test]
    fn one_member_changes_and_the_others_stay_as_they_are_written() {
        let text = r#" {"n": 1234567890123456789.0123456789, "z" : 1.50, "by":"a", "i":123456789012345678901}"#;
        let was = crate::memory::json::read(text).value;
        let mut becomes = was.clone();
        becomes["by"] = Value::from("b");
        becomes["new"] = Value::from("c");
        becomes.as_object_mut().unwrap().shift_remove("n");
        let expected = r#" {"z" : 1.50, "by":"b", "i":123456789012345678901, "new":"c"}"#;
        assert_eq!(remade(text, &was, &becomes).as_deref(), Some(expected));
        assert_eq!(remade("{}", &Value::Null, &becomes["none"]), None);
        assert_eq!(remade("{ }", &Value::Null, &serde_json::json!({"a": 1})).as_deref(), Some(r#"{"a":1 }"#));
        let text = r#"{"a": [0.10, {"b": 1e2}], "c": 1.0}"#;
        assert_eq!(put(text, "a.1.b", &Value::from(7)).as_deref(), Ok(r#"{"a": [0.10, {"b": 7}], "c": 1.0}"#));
        assert_eq!(put(text, "a.1.d", &Value::Null).as_deref(), Ok(r#"{"a": [0.10, {"b": 1e2,"d":null}], "c": 1.0}"#));
        assert!(put(text, "x.y", &Value::Null).is_err() && put(text, "a.2", &Value::Null).is_err());
    }
}
