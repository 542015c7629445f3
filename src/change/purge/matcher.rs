//! Finds a person's handles, and the ids of rows that go, in any text: many words in one pass, at word boundaries, in
//! the spellings that stored text has.

use aho_corasick::{AhoCorasick, MatchKind};
use unicode_normalization::UnicodeNormalization as _;

use super::subject::Handle;
use crate::change::ChangeError;

/// Ids shorter than that are not looked for in texts: they would be found everywhere.
pub const ID_LENGTH: usize = 8;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The handle of that number.
    Handle(usize),
    /// The id of a row that goes.
    Row,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// What stands there.
    pub what: What,
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
}

/// Many words to look for.
#[derive(Debug)]
pub struct Matcher {
    words: AhoCorasick,
    what: Vec<What>,
    mail: Vec<bool>,
}

impl Matcher {
    /// Looks for handles and for ids of rows.
    ///
    /// # Errors
    /// More words than can be looked for at once.
    pub fn new<'h>(
        handles: impl IntoIterator<Item = &'h Handle>,
        ids: impl IntoIterator<Item = String>,
    ) -> Result<Self, ChangeError> {
        let (mut patterns, mut what, mut mail) = (Vec::new(), Vec::new(), Vec::new());
        for (i, handle) in handles.into_iter().enumerate() {
            for spelling in spellings(&handle.value) {
                patterns.push(spelling);
                what.push(What::Handle(i));
                mail.push(handle.value.contains('@'));
            }
        }
        for id in ids.into_iter().filter(|id| id.len() >= ID_LENGTH) {
            patterns.push(id);
            what.push(What::Row);
            mail.push(false);
        }
        let words = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .build(&patterns)
            .map_err(|e| ChangeError::Failed(format!("too much to look for at once: {e}")))?;
        Ok(Matcher { words, what, mail })
    }

    /// Every place where a word stands, in order; of several that begin at one place the longest.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        for found in self.words.find_overlapping_iter(text) {
            let i = found.pattern().as_usize();
            let (start, end) = (found.start(), found.end());
            if begins(text, start) && ends(text, end, self.mail[i]) {
                hits.push(Hit { what: self.what[i], start, end });
            }
        }
        hits.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end), h.what == What::Row));
        hits.dedup_by(|later, earlier| later.start < earlier.end);
        hits
    }
}

/// The spellings in which a handle stands in stored text: as it is, composed and decomposed, in small letters, and each
/// of these as JSON and URLs escape it.
#[must_use]
pub fn spellings(value: &str) -> Vec<String> {
    let composed: String = value.nfc().collect();
    let decomposed: String = value.nfd().collect();
    let mut all =
        vec![value.to_owned(), composed.clone(), decomposed, composed.to_lowercase(), composed.to_uppercase()];
    let plain = all.clone();
    all.extend(plain.iter().map(|text| escaped(text)));
    all.extend(plain.iter().map(|text| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()));
    let digits: String = value.chars().filter(char::is_ascii_digit).collect();
    if digits.len() >= 7
        && value.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | ' ' | '(' | ')' | '.' | '/'))
    {
        all.push(format!("+{digits}"));
        all.push(digits);
    }
    all.retain(|text| !text.is_empty());
    all.sort_unstable();
    all.dedup();
    all
}

/// A text within JSON of nothing but ASCII.
fn escaped(text: &str) -> String {
    let mut units = [0; 2];
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_ascii() && !c.is_ascii_control() => out.push(c),
            c => c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    out
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether a word can begin there: not within another one. An escape before it (`\n`) is none.
fn begins(text: &[u8], start: usize) -> bool {
    let Some(before) = start.checked_sub(1).and_then(|i| text.get(i)).copied() else { return true };
    if !text.get(start).copied().is_some_and(is_word) || !is_word(before) {
        return true;
    }
    let slash = |back: usize| start.checked_sub(back).and_then(|i| text.get(i)) == Some(&b'\\');
    if matches!(before, b'n' | b't' | b'r' | b'b' | b'f') && slash(2) {
        return true;
    }
    slash(6) && start.checked_sub(5).and_then(|i| text.get(i)) == Some(&b'u')
}

/// Whether a word can end there. An address goes on after a dot or a dash with a letter.
fn ends(text: &[u8], end: usize, mail: bool) -> bool {
    let Some(after) = text.get(end).copied() else { return true };
    let last = end.checked_sub(1).and_then(|i| text.get(i)).copied();
    if last.is_some_and(is_word) && is_word(after) {
        return false;
    }
    let next = text.get(end + 1).copied();
    !(mail && matches!(after, b'.' | b'-') && next.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, text: &str) -> usize {
        let handle = Handle { kind: "x".into(), value: value.into(), source: String::new(), unsearched: None };
        Matcher::new([&handle], []).unwrap().find(text.as_bytes()).len()
    }

    #[test]
    fn a_handle_is_found_in_every_spelling_and_only_as_a_whole() {
        for (value, text, expected) in [
            ("ann@x.org", "to ann@x.org, please", 1),
            ("ann@x.org", "to ANN@X.ORG.", 1),
            ("ann@x.org", "joann@x.org", 0),
            ("ann@x.org", "ann@x.org.uk", 0),
            ("ann@x.org", r#"{"a":"one\nann@x.org"}"#, 1),
            ("user-1", "user-11 user-1", 1),
            ("Zoë Núñez", "Zoe\u{308} Nu\u{301}n\u{303}ez", 1),
            ("Zoë", r#""Zo\u00eb""#, 1),
            ("auth0|ab12", "auth0%7Cab12", 1),
            ("+49 30 9155101", "call +49309155101", 1),
        ] {
            assert_eq!(found(value, text), expected, "{value} in {text}");
        }
    }
}
