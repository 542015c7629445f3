//! JSON that is safe for a terminal and stays JSON: characters that it would obey, hide or stack become escapes.

use unicode_width::UnicodeWidthChar as _;

use super::SafeText;

/// Most zero-width characters on one base character.
const PILE: usize = 3;

/// Equivalent JSON text that is harmless: outside of strings JSON needs no escapes, and in strings an escape means the
/// character.
pub fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut piled = 0;
    for c in json.chars() {
        piled = if c.width() == Some(0) { piled + 1 } else { 0 };
        let is_plain = c == '\n' || matches!(c, ' '..='~');
        if is_plain || (piled <= PILE && is_harmless(c)) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// Whether a character may follow a letter unescaped.
fn is_harmless(c: char) -> bool {
    !SafeText::new(&format!("a{c}")).has_marks()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn hidden_characters_are_escaped_and_json_means_the_same() {
        let pile = format!("e{}", "\u{301}".repeat(9));
        let value =
            json!({"a\u{202e}": ["x\u{9b}31m\u{7f}é\u{e0041}\u{200b}", pile, "தொகை e\u{301} 日本", "\u{1b}[2J\n\t"]});
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = escaped(&text);
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
            let harm = ['\u{202e}', '\u{9b}', '\u{7f}', '\u{e0041}', '\u{200b}', '\u{1b}', '\t'];
            assert!(!shown.contains(harm), "{shown}");
            assert!(shown.contains("தொகை e\u{301} 日本") && shown.contains('é'), "{shown}");
            assert!(!shown.contains(&"\u{301}".repeat(4)), "{shown}");
        }
    }
}
