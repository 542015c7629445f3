//! Reads stored JSON leniently, without ever failing a row: every repair is reported as a problem.

mod document;
mod escapes;
mod members;
mod nested;
mod place;
mod plain;
mod reader;
mod texts;

use serde_json::{Map, Value};

use super::agreeing;
pub use document::{JsonPart, LONG, is_kept_as_text};
pub use escapes::{pair, spelled_out};
pub use members::{member_text, members, put, remade};
pub use nested::{nested, nested_text};
pub use place::path_in;
pub use plain::{is_plain, is_plain_list, keeps_digits};
use reader::{WideNumber, read_with};
pub use texts::{JsonText, each_text};

/// Member that names the type of a typed value.
pub const TYPE: &str = "__type__";

/// Levels of arrays and objects that become values; deeper parts stay text.
pub const MAX_DEPTH: usize = 128;

/// Result of reading a JSON text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JsonReading {
    /// The value; null if nothing was readable (`problems` then says why).
    pub value: Value,
    /// Deviations from strict JSON, for users, with byte offsets from 0; empty for strict JSON.
    pub problems: Vec<String>,
    /// Message about a key that an object has twice: strict JSON allows it, but one value is lost.
    pub repeated: Option<String>,
}

/// Ids read from an id list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListReading {
    /// The strings of the list, in order, with duplicates.
    pub items: Vec<String>,
    /// Reasons why ids of the list are missing here; empty for a valid list.
    pub problems: Vec<String>,
}

/// Ids read from an id list, each as a JSON string.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextsReading {
    /// The strings of the list, in order, with duplicates.
    pub items: Vec<Value>,
    /// Reasons why ids of the list are missing here; empty for a valid list.
    pub problems: Vec<String>,
}

impl From<TextsReading> for ListReading {
    fn from(TextsReading { items, problems }: TextsReading) -> Self {
        let text = |item| match item {
            Value::String(text) => Some(text),
            _ => None,
        };
        ListReading { items: items.into_iter().filter_map(text).collect(), problems }
    }
}

/// Reads one JSON text.
///
/// Accepted although not strict: `NaN`, `Infinity` and `-Infinity` (null), lone surrogates (U+FFFD), control characters
/// in strings (kept), integers beyond 64 bits and reals beyond the range of a double (a string of their digits),
/// nesting beyond [`MAX_DEPTH`] (a string with the raw text of the deeper part). Not accepted: an empty or truncated
/// text, or anything after the value. If a key is repeated, its last value counts, as everywhere.
///
/// Takes time in proportion to the text, and a bounded stack whatever the nesting.
pub fn read(text: &str) -> JsonReading {
    read_with(text, WideNumber::Digits)
}

/// Parses JSON that is to be stored: numbers keep their spelling; if a key is repeated, its last value counts.
///
/// # Errors
/// The reason why it cannot be stored unchanged, or not be parsed.
pub fn exactly(text: &str) -> Result<Value, String> {
    let JsonReading { value, problems, .. } = read(text);
    problems.into_iter().next().map_or(Ok(value), Err)
}

/// Reads a stored id list: SQL NULL (`None`), the JSON text `null` and `[]` are empty lists. A scalar, an object, a
/// Python repr, an empty text or invalid JSON gives no ids and a problem; so does each element that is not a string,
/// while the others are kept.
pub fn read_list(text: Option<&str>) -> ListReading {
    text.map(|text| read_texts(text).into()).unwrap_or_default()
}

/// As [`read_list`], with the texts as JSON strings.
pub fn read_texts(text: &str) -> TextsReading {
    texts_of(text, texts_from)
}

/// As [`read_texts`], for a list in which integers are ids: each as its digits.
pub fn read_ids(text: &str) -> TextsReading {
    texts_of(text, ids_from)
}

fn texts_of(text: &str, from: impl Fn(Value) -> TextsReading) -> TextsReading {
    let JsonReading { value, problems, .. } = read_with(text, WideNumber::Null);
    if value.is_null() {
        return TextsReading { items: Vec::new(), problems };
    }
    let mut texts = from(value);
    texts.problems.splice(0..0, problems);
    texts
}

/// The strings of a stored value if its text is a list; `None` for other texts, such as a single id.
pub fn listed(text: &str) -> Option<Vec<String>> {
    let begins = text.trim_start().starts_with('[');
    let read = begins.then(|| read_with(text, WideNumber::Null).value).filter(Value::is_array)?;
    Some(list_from(read).items)
}

/// Applies the rules of [`read_list`] to a parsed value.
pub fn list_from(value: Value) -> ListReading {
    texts_from(value).into()
}

/// As [`list_from`], with the texts as JSON strings, which are moved: a list may have a million.
pub fn texts_from(value: Value) -> TextsReading {
    let mut items = match value {
        Value::Null => return TextsReading::default(),
        Value::Array(elements) => elements,
        other => {
            let problem = format!("not a list but {}: it names nothing", kind_name(&other));
            return TextsReading { items: Vec::new(), problems: vec![problem] };
        }
    };
    let all = items.len();
    let strange = items.iter().position(|e| !e.is_string()).map(|at| (at, kind_name(&items[at])));
    items.retain(Value::is_string);
    let problems = strange.map(|(position, kind)| {
        let words =
            format!("{{#}} of {all} elements {{is not a string|are not strings}}, first {kind} at position {position}");
        agreeing(all - items.len(), &words)
    });
    TextsReading { items, problems: problems.into_iter().collect() }
}

/// As [`texts_from`], for a list in which integers are ids: each as its digits.
pub fn ids_from(value: Value) -> TextsReading {
    let id = |item| match item {
        Value::Number(number) if number.is_i64() => Value::from(number.to_string()),
        other => other,
    };
    texts_from(match value {
        Value::Array(items) => items.into_iter().map(id).collect(),
        other => other,
    })
}

/// Whether a value says nothing: null, a blank text, an empty list or object.
pub fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Parses a JSON string whose text is itself a JSON object or array; other values are returned unchanged.
pub fn unwrap_json_string(value: Value) -> Value {
    match container_in(&value) {
        Some(inner) => inner,
        None => value,
    }
}

/// Steps through objects by key, arrays by index (from 0) and JSON strings that hold JSON objects or arrays.
///
/// Steps are separated by dots: `a.b.0.c`; the empty path is the value itself.
pub fn path(value: &Value, path: &str) -> Option<Value> {
    if path.is_empty() {
        return Some(value.clone());
    }
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    match value {
        Value::Array(elements) if step == "*" => {
            flat(elements.iter().filter_map(|element| self::path(element, rest)).collect(), rest)
        }
        Value::Object(object) => self::path(object.get(step)?, rest),
        Value::Array(elements) => self::path(elements.get(step.parse::<usize>().ok()?)?, rest),
        Value::String(_) => self::path(&container_in(value)?, path),
        _ => None,
    }
}

/// Collects the values that `*` finds in the elements of a list; `rest` is the path within each.
fn flat(found: Vec<Value>, rest: &str) -> Option<Value> {
    // Elements of nested lists are flattened.
    let is_flat = rest.split('.').any(|step| step == "*");
    let all: Vec<Value> = found
        .into_iter()
        .filter(|found| !found.is_null())
        .flat_map(|found| match found {
            Value::Array(inner) if is_flat => inner,
            one => vec![one],
        })
        .collect();
    (!all.is_empty()).then_some(Value::Array(all))
}

/// Replaces typed values (`{"__type__":"decimal","value":"0.1"}`) by their contents, at every depth.
///
/// Decimals, dates, times, time spans (seconds), enumerations and sets become their inner value, exceptions their class
/// and message, bytes and pickles a marker with their size. Unknown types are unchanged.
pub fn plain(value: &Value) -> Value {
    replace_typed(value.clone(), &|name, object| match name {
        "decimal" | "datetime" | "date" | "timedelta" | "enum" => object.get("value").cloned(),
        "set" => object.get("value").map(plain),
        "bytes" => Some(Value::String(format!("<{} bytes>", encoded_bytes(object)?))),
        "exception" => {
            let part = |key| object.get(key).and_then(Value::as_str);
            Some(Value::String(format!("{}: {}", part("class")?, part("message")?)))
        }
        _ => pickle_marker(name, object),
    })
}

/// Replaces Python pickles, which are programs and never loaded, by a marker with their size, at every depth; the rest
/// is unchanged.
pub fn without_pickles(value: Value) -> Value {
    replace_typed(value, &pickle_marker)
}

fn pickle_marker(name: &str, object: &Map<String, Value>) -> Option<Value> {
    name.contains("pickle").then(|| match encoded_bytes(object) {
        Some(bytes) => Value::String(format!("<pickle, {bytes} bytes, not loaded>")),
        None => Value::String("<pickle, not loaded>".to_owned()),
    })
}

/// Function that returns the replacement for a typed value, given the name of its type and its object; `None` to keep
/// it.
type Replacement = dyn Fn(&str, &Map<String, Value>) -> Option<Value>;

/// Rebuilds a value; `replacement` may replace an object that names its type.
fn replace_typed(value: Value, replacement: &Replacement) -> Value {
    match value {
        Value::Array(elements) => elements.into_iter().map(|e| replace_typed(e, replacement)).collect(),
        Value::Object(object) => {
            let typed = object.get(TYPE).and_then(Value::as_str).and_then(|name| replacement(name, &object));
            typed.unwrap_or_else(|| object.into_iter().map(|(k, v)| (k, replace_typed(v, replacement))).collect())
        }
        scalar => scalar,
    }
}

/// Computes the number of bytes that a typed value's base64 text encodes.
fn encoded_bytes(object: &Map<String, Value>) -> Option<usize> {
    let encoded = object.get("value")?.as_str()?;
    Some(encoded.trim_end_matches('=').len() * 3 / 4)
}

/// The object or array within a JSON string.
fn container_in(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let inner = read(text).value;
    (inner.is_object() || inner.is_array()).then_some(inner)
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "a null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn value_and_problem(text: &str) -> (Value, String) {
        let reading = read(text);
        (reading.value, reading.problems.join("; "))
    }

    #[test]
    fn a_list_is_told_from_a_text_that_only_begins_as_one() {
        let texts = |items: &[&str]| Some(items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        assert_eq!(listed(r#" ["a", 5, "b"]"#), texts(&["a", "b"]));
        assert_eq!(listed("[]"), texts(&[]));
        for text in ["[Bob]", "[\"a\"", "a", "\"a\"", "null", ""] {
            assert_eq!(listed(text), None, "{text}");
        }
    }

    #[test]
    fn strict_json_has_no_problems() {
        let text =
            r#" {"a":[1,-2.5e3,true,false,null,"\u00e9\n\ud83d\ude00"],"b":{},"c":[],"d":18446744073709551615} "#;
        assert_eq!(read(text), JsonReading { value: serde_json::from_str(text).unwrap(), ..JsonReading::default() });
    }

    #[test]
    fn a_key_that_stands_twice_is_told_and_the_last_value_holds() {
        let reading = read(r#"{"a":1,"b":{"c":[],"c":1},"a":2,"a":3}"#);
        assert_eq!((reading.value, reading.problems.len()), (json!({"a": 3, "b": {"c": 1}}), 0));
        let words = "key that stands in its object already, the last value is read, 3 times, first at byte 19";
        assert_eq!(reading.repeated.as_deref(), Some(words));
        assert_eq!(read(r#"[{"a":1},{"a":2}]"#).repeated, None);
    }

    #[test]
    fn numbers_that_are_none_become_null() {
        let (value, problem) = value_and_problem("[NaN, Infinity, -Infinity, NaN]");
        assert_eq!(value, json!([null, null, null, null]));
        assert_eq!(
            problem,
            "NaN read as null, 2 times, first at byte 1; Infinity read as null at byte 6; \
             -Infinity read as null at byte 16"
        );
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        let (value, problem) = value_and_problem(r#"["a\ud800b","\udc00","\ud800\u0041","\ud800\ud83d\ude00"]"#);
        assert_eq!(value, json!(["a\u{fffd}b", "\u{fffd}", "\u{fffd}A", "\u{fffd}😀"]));
        assert_eq!(problem, "lone surrogate read as U+FFFD, 4 times, first at byte 3");
    }

    #[test]
    fn wide_numbers_keep_their_digits() {
        let text =
            "[9223372036854775807,-9223372036854775808,-9223372036854775809,123456789012345678901234567890,1e999]";
        let (value, problem) = value_and_problem(text);
        assert_eq!(
            value,
            json!([i64::MAX, i64::MIN, "-9223372036854775809", "123456789012345678901234567890", "1e999"])
        );
        assert_eq!(problem, "integer beyond 64 bits, 2 times, first at byte 42; number out of range at byte 94");
    }

    #[test]
    fn deep_nesting_stays_text_beyond_the_limit() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(read(&nested(MAX_DEPTH)).problems, Vec::<String>::new());
        for levels in [MAX_DEPTH + 1, 1_000_000] {
            let (mut value, problem) = value_and_problem(&nested(levels));
            for _ in 0..MAX_DEPTH {
                value = value[0].take();
            }
            assert_eq!(value, json!(nested(levels - MAX_DEPTH)));
            assert_eq!(problem, "nesting beyond 128 levels kept as text at byte 128");
        }
        let tricky = format!("{}{}{}", "[".repeat(128), r#"{"a]\"}":[]}"#, "]".repeat(128));
        assert_eq!(value_and_problem(&tricky).1, "nesting beyond 128 levels kept as text at byte 128");
        for endless in ["[".repeat(1_000_000), "{\"a\":".repeat(300_000)] {
            let (value, problem) = value_and_problem(&endless);
            assert!(value.is_null() && problem.contains("ends early"), "{problem}");
        }
    }

    #[test]
    fn what_is_no_json_is_null_with_its_place() {
        for (text, expected) in [
            ("", "the text is empty at byte 0"),
            ("  ", "the text is empty at byte 2"),
            ("[1,2", "the text ends early at byte 4"),
            ("{\"a\":\"b", "the text ends early at byte 7"),
            ("{} x", "there is data after the value at byte 3"),
            ("['a']", "a value is missing at byte 1 (looks like Python)"),
            ("{'a': 1}", "a quoted key is missing at byte 1 (looks like Python)"),
            ("{\"a\": None}", "a value is missing at byte 6 (looks like Python)"),
            ("abc", "a value is missing at byte 0"),
            ("[1,]", "a value is missing at byte 3"),
            ("01", "a number starts with a zero at byte 0"),
            ("\"\\x\"", "an unknown escape at byte 2"),
            ("\"\\u12\"", "four hexadecimal digits are missing at byte 3"),
            ("-", "the text ends early at byte 1"),
        ] {
            assert_eq!(value_and_problem(text), (Value::Null, format!("not JSON: {expected}")), "{text:?}");
        }
    }

    #[test]
    fn raw_control_characters_are_kept() {
        let (value, problem) = value_and_problem("\"a\u{0}\nb\"");
        assert_eq!(value, json!("a\u{0}\nb"));
        assert_eq!(problem, "control character in a string, 2 times, first at byte 2");
    }

    #[test]
    fn a_list_names_its_strings_only() {
        let names = |text: Option<&str>| read_list(text);
        for empty in [None, Some("null"), Some("[]"), Some(" [ ] ")] {
            assert_eq!(names(empty), ListReading::default(), "{empty:?}");
        }
        assert_eq!(names(Some(r#"["a","b","a"]"#)).items, ["a", "b", "a"]);
        for bad in ["", "\"a\"", "5", "{\"a\":1}", "['a']", "[\"a\"", "NaN", "true", "99999999999999999999"] {
            let list = names(Some(bad));
            assert!(list.items.is_empty() && list.problems.len() == 1, "{bad:?}: {list:?}");
        }
        let mixed = names(Some(r#"["a", 5, null, "b", ["c"]]"#));
        assert_eq!(mixed.items, ["a", "b"]);
        assert_eq!(mixed.problems, ["3 of 5 elements are not strings, first a number at position 1"]);
        let ids = read_ids(r#"["a", 5, -7, 1.5, null]"#);
        assert_eq!(json!(ids.items), json!(["a", "5", "-7"]));
        assert_eq!(ids.problems, ["2 of 5 elements are not strings, first a number at position 3"]);
        let wide = names(Some("[99999999999999999999, \"a\"]"));
        assert_eq!((wide.items, wide.problems.len()), (vec!["a".to_owned()], 2));
    }

    #[test]
    fn json_inside_strings_is_read_through() {
        assert_eq!(unwrap_json_string(json!("{\"a\":1}")), json!({"a": 1}));
        assert_eq!(unwrap_json_string(json!(" [1]")), json!([1]));
        for same in [json!("5"), json!("text"), json!("[broken"), json!({"a": "[1]"}), json!(null)] {
            assert_eq!(unwrap_json_string(same.clone()), same);
        }
        let value = json!({"a": "{\"b\": [\"{\\\"c\\\": 7}\"]}", "d": [1, 2]});
        assert_eq!(path(&value, "a.b.0.c"), Some(json!(7)));
        assert_eq!(path(&value, "d.1"), Some(json!(2)));
        assert_eq!(path(&value, ""), Some(value.clone()));
        for nowhere in ["x", "d.2", "d.x", "a.b.0.c.d", "d.-1"] {
            assert_eq!(path(&value, nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn typed_values_are_shown_plain() {
        let typed = |name: &str, value: Value| json!({"__type__": name, "value": value});
        let value = json!({
            "cost": typed("decimal", json!("0.0021")), "at": [typed("datetime", json!("2026-10-20T07:19:48+00:00"))],
            "eta": typed("date", json!("2026-12-08")), "receipt": typed("bytes", json!("iVBORw0K")),
            "model": typed("cloudpickle", json!("gASVBQAAAA==")), "other": typed("quaternion", json!([1])),
            "error": {"__type__": "exception", "class": "ValueError", "message": "no", "args": []},
        });
        assert_eq!(
            plain(&value),
            json!({
                "cost": "0.0021", "at": ["2026-10-20T07:19:48+00:00"], "eta": "2026-12-08", "receipt": "<6 bytes>",
                "model": "<pickle, 7 bytes, not loaded>", "other": typed("quaternion", json!([1])),
                "error": "ValueError: no",
            })
        );
        let mut kept = value.clone();
        kept["model"] = json!("<pickle, 7 bytes, not loaded>");
        assert_eq!(without_pickles(value), kept);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e300..1e300).prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_back_what_was_written(value in any_json()) {
            prop_assert_eq!(read(&value.to_string()), JsonReading { value: value.clone(), ..JsonReading::default() });
            prop_assert_eq!(read(&format!("{value:#}")), JsonReading { value, ..JsonReading::default() });
        }

        #[test]
        fn accepts_what_a_strict_reader_accepts(text in r#"[\[\]{}",:0-9eE.+\- \\untrfalse]{0,12}"#) {
            let strict = serde_json::from_str::<Value>(&text);
            let ours = read(&text);
            prop_assert_eq!(strict.is_ok(), ours.problems.is_empty(), "{:?}: {:?}", strict, ours);
        }

        #[test]
        fn what_is_plain_has_no_problems(text in r#"[\[\]{}",:0-9eE.+\- \\untrfalse]{0,24}|\[[0-9]{15,22}\]|"[a-z\\u0-9]{0,9}""#) {
            prop_assert!(!is_plain(&text) || read(&text).problems.is_empty(), "{:?}", text);
        }

        #[test]
        fn a_plain_list_has_no_problems(text in r#"\[( ?"[a-zé ]{0,3}" ?,?| ?[0-9tn\\"]?){0,4}\]|"a"|null|\{\}"#) {
            let texts = read_texts(&text);
            prop_assert!(!is_plain_list(&text) || texts.problems.is_empty() && json!(texts.items) == read(&text).value);
        }

        #[test]
        fn any_text_is_survived(text in any::<String>()) {
            let reading = read(&text);
            prop_assert!(!reading.value.is_null() || !reading.problems.is_empty() || text.trim() == "null");
        }
    }
}
