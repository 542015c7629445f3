//! Shapes of the JSON values in a column: the paths to texts, numbers and lists, with their frequency.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::memory::time;

/// Most paths kept for a column.
const PATHS: usize = 200;
/// Most levels examined.
const LEVELS: usize = 6;
/// Most elements of a list examined.
const ELEMENTS: usize = 4;
/// Greatest length of a text, in characters, for statistics.
const LETTERS: usize = 400;

/// Statistics of one path in a column's documents. Steps are separated by dots; `[]` is any element of a list, `*` any
/// key of an object whose keys are ids.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Leaf {
    /// Documents with a text there.
    pub texts: usize,
    /// Documents with any value there.
    pub rows: usize,
    /// Letters of the texts, long ones cut off.
    pub letters: usize,
    /// Texts that contain a blank.
    pub blanks: usize,
    /// Texts that are times.
    pub times: usize,
    /// Number of the last document with a value there, from 1.
    last_row: usize,
}

/// Statistics of the documents sampled from a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampledDocument {
    /// Leaves by path.
    pub leaves: BTreeMap<String, Leaf>,
    /// Documents that are lists of texts only.
    pub text_lists: usize,
    /// Documents that are objects.
    pub objects: usize,
    rows: usize,
}

impl SampledDocument {
    /// Adds a document to the statistics.
    pub fn add(&mut self, value: &Value) {
        self.rows += 1;
        self.objects += usize::from(value.is_object());
        let only_texts = |list: &Vec<Value>| list.iter().all(Value::is_string);
        self.text_lists += usize::from(value.as_array().is_some_and(only_texts));
        self.walk(String::new(), value, LEVELS);
    }

    fn walk(&mut self, path: String, value: &Value, levels: usize) {
        let join = |step: &str| if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") };
        match value {
            Value::Object(object) if levels > 0 => {
                for (key, value) in object {
                    let step = if is_id(key) || key.contains('.') { "*" } else { key };
                    self.walk(join(step), value, levels - 1);
                }
            }
            Value::Array(elements) if levels > 0 => {
                for element in elements.iter().take(ELEMENTS) {
                    self.walk(format!("{path}[]"), element, levels - 1);
                }
            }
            Value::Null => {}
            other => self.leaf(path, other),
        }
    }

    fn leaf(&mut self, path: String, value: &Value) {
        if self.leaves.len() >= PATHS && !self.leaves.contains_key(&path) {
            return;
        }
        let leaf = self.leaves.entry(path).or_default();
        let fresh = leaf.last_row != self.rows;
        leaf.rows += usize::from(fresh);
        leaf.last_row = self.rows;
        // Numbers and versions written as texts do not count.
        let words = value.as_str().filter(|text| text.chars().any(char::is_alphabetic) || is_time(text));
        if let (Some(text), true) = (words, fresh) {
            leaf.texts += 1;
            leaf.letters += text.chars().take(LETTERS).count();
            leaf.blanks += usize::from(text.trim().contains(' '));
            leaf.times += usize::from(is_time(text));
        }
    }
}

/// A path in the syntax of layouts, with the first element for any; `None` if a step is an id.
pub fn usable(path: &str) -> Option<String> {
    let plain = path.replace("[]", ".0");
    let plain = plain.strip_prefix('.').unwrap_or(&plain);
    (!plain.split('.').any(|step| step == "*")).then(|| plain.to_owned())
}

/// The same with every element of a list.
pub fn every(path: &str) -> Option<String> {
    usable(path).map(|_| path.replace("[]", ".*").trim_start_matches('.').to_owned())
}

/// Whether a text is a time: at least a full date, year first.
pub fn is_time(text: &str) -> bool {
    text.len() >= 10
        && text.is_ascii()
        && text.bytes().take(4).all(|b| b.is_ascii_digit())
        && time::canonical(text).is_some()
}

/// Whether a key looks like an id rather than a name.
fn is_id(key: &str) -> bool {
    let digits = key.chars().filter(char::is_ascii_digit).count();
    (key.len() >= 12 && digits >= 3) || (!key.is_empty() && digits == key.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_name_lists_and_leave_ids_out() {
        let mut document = SampledDocument::default();
        document
            .add(&json!({ "parts": [{ "text": "one two" }, { "text": "three" }], "by": { "4f1c22d0a9b31e77": 1 } }));
        let paths: Vec<&str> = document.leaves.keys().map(String::as_str).collect();
        assert_eq!(paths, ["by.*", "parts[].text"]);
        assert_eq!(document.leaves["parts[].text"].texts, 1);
        assert_eq!(usable("parts[].text").as_deref(), Some("parts.0.text"));
        assert_eq!(usable("by.*"), None);
    }
}
