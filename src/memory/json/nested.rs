//! JSON strings inside JSON, parsed in one level of an object.

use std::fmt::Write as _;

use serde_json::Value;

use super::{LONG, each_text, is_kept_as_text, members, unwrap_json_string};

/// Parses values that are JSON strings, in one level of the object.
pub fn nested(value: Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(object.into_iter().map(|(k, v)| (k, unwrap_json_string(v))).collect()),
        other => unwrap_json_string(other),
    }
}

/// As [`nested`], for a long document kept as text; `None` if it is not kept as text, or may contain a pickle.
pub fn nested_text(text: &str) -> Option<String> {
    if text.len() < LONG || text.contains("pickle") {
        return None;
    }
    let Some(members) = members(text) else { return is_kept_as_text(text).then(|| text.to_owned()) };
    let mut whole = String::with_capacity(text.len());
    for (key, value) in members {
        let before = if whole.is_empty() { '{' } else { ',' };
        _ = write!(whole, "{before}{}:", Value::from(key));
        let quoted = value.get();
        // A string may be as long as the whole document: it is converted while reading.
        let is_read =
            quoted.starts_with('"') && each_text(quoted, &mut |inner| unquote(inner.text(), &mut whole)).is_ok();
        if !is_read {
            whole.push_str(quoted);
        }
    }
    whole.push('}');
    is_kept_as_text(&whole).then_some(whole)
}

/// Writes a string as the JSON it contains, or as a string.
fn unquote(inner: &str, whole: &mut String) {
    if is_kept_as_text(inner) {
        whole.push_str(inner);
    } else {
        _ = write!(whole, "{}", unwrap_json_string(Value::from(inner)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn a_long_text_is_read_through_as_its_value_is() {
        let long = format!("[{}1]", "{\"a\": \"b\"}, ".repeat(100_000));
        let quoted = Value::from(long.as_str()).to_string();
        for text in [
            format!("{{\"args\": {quoted}, \"n\": 1, \"short\": \"{{\\\"x\\\": [NaN]}}\", \"said\": \"{{words\"}}"),
            format!("{{\"said\": {long}, \"inner\": \"[1, 2]\"}}"),
            long,
        ] {
            let expected = nested(read(&text).value);
            assert_eq!(nested_text(&text).map(|text| read(&text).value), Some(expected));
        }
        assert_eq!(nested_text("{\"__type__\": \"pickle\"}"), None);
    }
}
