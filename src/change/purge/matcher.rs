//! Finds a person's handles, and the ids of rows that go, in any text: many words in one pass, at word boundaries, in
//! the spellings that stored text has.

use std::collections::HashSet;

use aho_corasick::{AhoCorasick, MatchKind};

use super::subject::Handle;
use crate::change::ChangeError;
use crate::memory::mention::Phone;
use crate::store::proof::needles::{Form, Needles};
use crate::store::proof::spelling::{begins, ends, json_escapes, percent_escapes, spellings};

/// Ids shorter than that are not looked for in texts: they would be found everywhere.
pub const ID_LENGTH: usize = 8;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The handle of that number.
    Handle(usize),
    /// The id of a row that goes.
    Row,
    /// What another person is known by.
    Other,
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
    /// It stands in an encoding; what may be put there, over and over, so that the encoding still is one.
    pub fill: Option<&'static [u8]>,
}

/// Bytes of an encoded handle below which a match may be chance.
const ENCODED: usize = 10;

/// Many words to look for.
#[derive(Debug)]
pub struct Matcher {
    words: AhoCorasick,
    patterns: Vec<String>,
    what: Vec<What>,
    mail: Vec<bool>,
    encoded: AhoCorasick,
    behind: Vec<(usize, &'static [u8])>,
    phones: Vec<(usize, Phone)>,
}

impl Matcher {
    /// Looks for handles and for ids of rows. What holds a handle and is one of `others` is left alone.
    ///
    /// # Errors
    /// More words than can be looked for at once.
    pub fn new<'h>(
        handles: impl IntoIterator<Item = &'h Handle>,
        ids: impl IntoIterator<Item = String>,
        others: &[String],
    ) -> Result<Self, ChangeError> {
        let (mut patterns, mut what, mut mail) = (Vec::new(), Vec::new(), Vec::new());
        let (mut codes, mut behind, mut phones) = (Vec::new(), Vec::new(), Vec::new());
        for (i, handle) in handles.into_iter().enumerate() {
            // There may be very many conversations and banks, and their ids have no spellings.
            let many = matches!(handle.kind.as_str(), "session" | "profile");
            let spelled = if many { vec![handle.value.clone()] } else { spellings(&handle.value) };
            for spelling in spelled {
                patterns.push(spelling);
                what.push(What::Handle(i));
                mail.push(handle.value.contains('@'));
            }
            if handle.kind == "phone" {
                phones.extend(Phone::new(&handle.value).map(|phone| (i, phone)));
            }
            if !many {
                let needles = Needles::new(std::slice::from_ref(&handle.value), &[]);
                for needle in needles.needles.into_iter().filter(|n| n.bytes.len() >= ENCODED) {
                    let Some(fill) = fill(needle.form) else { continue };
                    codes.push(needle.bytes);
                    behind.push((i, fill));
                }
            }
        }
        for id in ids.into_iter().filter(|id| id.len() >= ID_LENGTH) {
            patterns.push(id);
            what.push(What::Row);
            mail.push(false);
        }
        for other in others {
            // In its own case: in another one it may be the person's.
            let escaped = json_escapes(other).into_iter().chain(percent_escapes(other)).chain([other.clone()]);
            for spelling in escaped {
                patterns.push(spelling);
                what.push(What::Other);
                mail.push(other.contains('@'));
            }
        }
        let too_many = |e| ChangeError::Failed(format!("too much to look for at once: {e}"));
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::Standard);
        let encoded = builder.build(&codes).map_err(too_many)?;
        let words = builder.ascii_case_insensitive(true).build(&patterns).map_err(too_many)?;
        Ok(Matcher { words, patterns, what, mail, encoded, behind, phones })
    }

    /// Every place where a word stands, in order; of several that begin at one place the longest.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        let mut exact: HashSet<(usize, usize)> = HashSet::new();
        for found in self.words.find_overlapping_iter(text) {
            let i = found.pattern().as_usize();
            let (start, end) = (found.start(), found.end());
            if begins(text, start) && ends(text, end, self.mail[i]) {
                hits.push(Hit { what: self.what[i], start, end, fill: None });
                if self.what[i] == What::Other && text.get(start..end) == Some(self.patterns[i].as_bytes()) {
                    exact.insert((start, end));
                }
            }
        }
        if !self.behind.is_empty() {
            hits.extend(self.encoded.find_overlapping_iter(text).map(|found| {
                let (handle, fill) = self.behind[found.pattern().as_usize()];
                Hit { what: What::Handle(handle), start: found.start(), end: found.end(), fill: Some(fill) }
            }));
        }
        for (handle, phone) in &self.phones {
            let found = phone.find(std::str::from_utf8(text).unwrap_or_default()).into_iter();
            hits.extend(found.map(|(start, end, _)| Hit { what: What::Handle(*handle), start, end, fill: None }));
        }
        let rank = |hit: &Hit| match hit.what {
            What::Other if exact.contains(&(hit.start, hit.end)) => 0,
            What::Handle(_) => 1,
            What::Row => 2,
            What::Other => 3,
        };
        hits.sort_by_key(|h| (h.start, std::cmp::Reverse(h.end), rank(h)));
        hits.dedup_by(|later, earlier| later.start < earlier.end);
        hits.retain(|hit| hit.what != What::Other);
        hits
    }
}

/// What an encoding may be filled with; none for what is no encoding of a kind that has to stay one.
fn fill(form: Form) -> Option<&'static [u8]> {
    match form {
        Form::Base64 => Some(b"A"),
        Form::HexLower | Form::HexUpper => Some(b"2a"),
        Form::Utf16Le => Some(b"*\0"),
        Form::Utf16Be => Some(b"\0*"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, text: &str) -> usize {
        let kind = if value.starts_with('+') { "phone" } else { "x" };
        let handle = Handle { kind: kind.into(), value: value.into(), source: String::new(), unsearched: None };
        Matcher::new([&handle], [], &[]).unwrap().find(text.as_bytes()).len()
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
            ("50%", "50%0 50%_x 50%", 1),
            ("Zoë Núñez", "Zoe\u{308} Nu\u{301}n\u{303}ez", 1),
            ("Zoë", r#""Zo\u00eb""#, 1),
            ("auth0|ab12", "auth0%7Cab12", 1),
            ("+49 30 9155101", "call +49309155101", 1),
            ("+49 30 9155101", "call 030/9155101 or 0049 (0)30 9155 101", 2),
            ("ann@x.org", r#"{"a":"\u0061\u006e\u006e\u0040\u0078\u002e\u006f\u0072\u0067"}"#, 1),
            ("o'hara+1@x.org", r#"{"a":"o\u0027hara\u002B1@x.org"}"#, 1),
            ("o'hara|\"x", r#"{"a":"{\"b\":\"o'hara|\\\"x\"}"}"#, 1),
            ("ann@example.org", "YSBhbm5AZXhhbXBsZS5vcmcgYg== 616e6e406578616d706c652e6f7267", 2),
            ("Ann Smith", "m=Ann+Smith&n=Ann%20Smith", 2),
        ] {
            assert_eq!(found(value, text), expected, "{value} in {text}");
        }
    }
}
