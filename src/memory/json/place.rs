//! Finds the value at a path of a JSON text, reading no more than needed.

use serde_json::Value;
use serde_json::value::RawValue;

use super::{JsonReading, flat, members, read};

/// The value at a path of a JSON text, as [`super::path`] finds it in the parsed text; if the text has no value at all,
/// with its problems.
pub fn path_in(text: &str, path: &str) -> (Option<Value>, Vec<String>) {
    if let Ok(found) = serde_json::from_str(text).and_then(|value| strictly(value, path)) {
        return (found, Vec::new());
    }
    let JsonReading { value, problems, .. } = read(text);
    let problems = if value.is_null() { problems } else { Vec::new() };
    (super::path(&value, path), problems)
}

/// As [`path_in`], for strict JSON.
fn strictly(value: &RawValue, path: &str) -> serde_json::Result<Option<Value>> {
    let text = value.get();
    if path.is_empty() {
        return Ok(Some(read(text).value));
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    match text.as_bytes().first() {
        Some(b'{') => {
            let found = members(text).into_iter().flatten().rfind(|(key, _)| key == step);
            found.map_or(Ok(None), |(_, value)| strictly(value, rest))
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text)?;
            if step == "*" {
                let found = elements.iter().filter_map(|element| strictly(element, rest).transpose());
                return found.collect::<Result<Vec<_>, _>>().map(|found| flat(found, rest));
            }
            let element = step.parse::<usize>().ok().and_then(|at| elements.get(at));
            element.map_or(Ok(None), |element| strictly(element, rest))
        }
        Some(b'"') => {
            let inner: String = serde_json::from_str(text)?;
            Ok(if inner.trim_start().starts_with(['{', '[']) { path_in(&inner, path).0 } else { None })
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_text_gives_what_its_value_gives(
            text in r#"[\[{]("[ab]":|[\[\]{},"ab01 ]|"[ab]"|\\ud83d|null|"\{\\"a\\":\[1,2\]\}"){0,16}[\]}]"#,
            path in r"(a|b|0|1|\*)(\.(a|b|0|\*)){0,2}|",
        ) {
            prop_assert_eq!(path_in(&text, &path).0, super::super::path(&read(&text).value, &path));
        }
    }

    #[test]
    fn what_is_on_the_way_is_found_and_what_is_beside_it_may_be_odd() {
        let text =
            r#"{"a": 1, "runs": [{"id": "x", "n": 123456789012345678901234567890}, {"id": "y"}], "a": "{\"b\":[7]}"}"#;
        for (path, expected) in [("a.b.0", "7"), ("runs.*.id", "[\"x\",\"y\"]"), ("runs.1.id", "\"y\"")] {
            assert_eq!(path_in(text, path).0.map(|found| found.to_string()).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(path_in(text, "runs.2"), (None, Vec::new()));
        assert_eq!(path_in(r#"{"a": NaN, "b": 2}"#, "b").0, Some(Value::from(2)));
        assert!(path_in("{\"a\":", "a").1[0].contains("ends"));
    }
}
