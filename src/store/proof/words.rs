//! Finds handles in one stored value: in any case and either Unicode form, escaped by JSON or a URL, behind base64 or
//! hexadecimal digits, inside compressed bytes; as words of their own, and told apart from longer words around them.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;

use aho_corasick::{AhoCorasick, MatchKind};
use flate2::read::{GzDecoder, ZlibDecoder};
use unicode_normalization::UnicodeNormalization as _;

use super::needles::{Form, Needles};
use super::spelling::{begins, ends, spellings as every_spelling};
use crate::memory::json;
use crate::store::session::Raw;

/// Bytes that a compressed value may inflate to.
const INFLATE_LIMIT: u64 = 64 << 20;
/// Characters below which a handle counts only where it is the whole value or stands in quotes.
const WORD: usize = 4;
/// Bytes of base64 and the like below which a match may be chance.
const ENCODED: usize = 10;
/// Paths within JSON that are told at most.
const PATHS: usize = 8;

/// How often one handle stands in a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// As a word of its own, or encoded.
    pub whole: u64,
    /// Within a longer word.
    pub inside: u64,
    /// Its last bytes without the rest of it.
    pub tails: u64,
    /// It is the value.
    pub entire: bool,
}

impl Seen {
    fn is_nothing(self) -> bool {
        self == Seen::default()
    }
}

/// What a value holds.
#[derive(Debug, Default)]
pub struct Look {
    /// By the number of the handle.
    pub seen: BTreeMap<usize, Seen>,
    /// The value was compressed.
    pub compressed: bool,
    /// Why it could not be read to the end.
    pub unread: Option<&'static str>,
}

#[derive(Debug, Clone, Copy)]
struct Word {
    handle: usize,
    mail: bool,
    tail: bool,
}

/// Handles that are ready to be looked for.
#[derive(Debug)]
pub struct Words {
    plain: AhoCorasick,
    meant: Vec<Word>,
    encoded: AhoCorasick,
    behind: Vec<usize>,
    entire: HashMap<String, Vec<usize>>,
    /// What every value that holds a handle holds too, in small letters; none when that cannot be said.
    patterns: Option<Vec<String>>,
}

impl Words {
    /// Prepares to look for handles, which are numbered as given.
    ///
    /// # Errors
    /// More than can be looked for at once.
    pub fn new(handles: &[String]) -> Result<Self, String> {
        let (mut plain, mut words) = (Vec::new(), Vec::new());
        let mut entire: HashMap<String, Vec<usize>> = HashMap::new();
        for (handle, text) in handles.iter().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            entire.entry(fold(text)).or_default().push(handle);
            for spelling in spellings(text) {
                plain.push(spelling);
                words.push(Word { handle, mail: text.contains('@'), tail: false });
            }
        }
        let (mut codes, mut behind) = (Vec::new(), Vec::new());
        let needles = Needles::new(handles, &[]);
        for needle in needles.needles {
            match needle.form {
                Form::Base64 | Form::HexLower | Form::HexUpper | Form::Utf16Le | Form::Utf16Be
                    if needle.bytes.len() >= ENCODED =>
                {
                    codes.push(needle.bytes);
                    behind.push(needle.handle);
                }
                Form::Tail => {
                    if let Ok(text) = String::from_utf8(needle.bytes) {
                        plain.push(text);
                        words.push(Word { handle: needle.handle, mail: false, tail: true });
                    }
                }
                _ => {}
            }
        }
        let too_many = |error: aho_corasick::BuildError| format!("too much to look for at once: {error}");
        let patterns = handles.iter().all(|h| h.is_ascii() && !h.contains('\0')).then(|| {
            let words = plain.iter().zip(&words).filter(|(_, word)| !word.tail).map(|(text, _)| text.to_lowercase());
            let codes = codes.iter().filter_map(|code| String::from_utf8(code.clone()).ok());
            let short = handles.iter().filter(|h| h.len() < WORD && !h.is_empty()).map(|h| h.to_lowercase());
            let mut all: Vec<String> = words.chain(codes.map(|code| code.to_lowercase())).chain(short).collect();
            all.retain(|text| !text.contains('\0'));
            all.sort_unstable();
            all.dedup();
            all
        });
        let builder = || {
            let mut builder = AhoCorasick::builder();
            builder.match_kind(MatchKind::Standard);
            builder
        };
        Ok(Words {
            plain: builder().ascii_case_insensitive(true).build(&plain).map_err(too_many)?,
            meant: words,
            encoded: builder().build(&codes).map_err(too_many)?,
            behind,
            entire,
            patterns,
        })
    }

    /// What to ask a server for: every value that holds a handle holds one of these in small letters. None when no such
    /// list can be made.
    #[must_use]
    pub fn patterns(&self) -> Option<&[String]> {
        self.patterns.as_deref()
    }

    /// Handles that are whole numbers, for columns of numbers.
    #[must_use]
    pub fn numbers(&self) -> Vec<&str> {
        let number = |text: &&String| text.parse::<i64>().is_ok_and(|n| n.to_string() == **text);
        self.entire.keys().filter(number).map(String::as_str).collect()
    }

    /// Looks at a stored value.
    #[must_use]
    pub fn look(&self, value: &Raw) -> Look {
        let mut look = Look::default();
        match value {
            Raw::Null | Raw::Real(_) => {}
            Raw::Integer(number) => self.compare(&number.to_string(), &mut look),
            Raw::Text(text) => self.text(text, &mut look),
            Raw::BadText(bytes) => self.bytes(bytes, &mut look),
            Raw::Bytes(bytes) => match inflate(bytes) {
                Some(Ok(inner)) => {
                    look.compressed = true;
                    match String::from_utf8(inner) {
                        Ok(text) => self.text(&text, &mut look),
                        Err(inner) => self.bytes(inner.as_bytes(), &mut look),
                    }
                }
                Some(Err(reason)) => {
                    look.unread = Some(reason);
                    self.bytes(bytes, &mut look);
                }
                None => self.bytes(bytes, &mut look),
            },
        }
        look.seen.retain(|_, seen| !seen.is_nothing());
        look
    }

    fn compare(&self, text: &str, look: &mut Look) {
        for handle in self.entire.get(text).into_iter().flatten() {
            *look.seen.entry(*handle).or_default() = Seen { whole: 1, entire: true, ..Seen::default() };
        }
    }

    fn text(&self, text: &str, look: &mut Look) {
        self.count(text.as_bytes(), look);
        if !text.is_ascii() || text.contains("\\u") {
            // Letters beyond ASCII in another case or form are found in the folded text; one count or the other holds.
            let mut folded = Look::default();
            self.count(fold(&unescaped(text)).as_bytes(), &mut folded);
            for (handle, seen) in folded.seen {
                let known = look.seen.entry(handle).or_default();
                known.whole = known.whole.max(seen.whole);
                known.inside = known.inside.max(seen.inside);
                known.tails = known.tails.max(seen.tails);
            }
        }
        self.encodings(text.as_bytes(), look);
        if text.len() <= 1_024 {
            for handle in self.entire.get(&fold(text)).into_iter().flatten() {
                let seen = look.seen.entry(*handle).or_default();
                (seen.entire, seen.whole, seen.inside) = (true, seen.whole.max(1), 0);
            }
        }
    }

    fn bytes(&self, bytes: &[u8], look: &mut Look) {
        self.count(bytes, look);
        self.encodings(bytes, look);
    }

    /// Counts words of their own and parts of longer ones. Spellings of one handle may overlap: a place counts once.
    fn count(&self, text: &[u8], look: &mut Look) {
        let mut until: HashMap<usize, usize> = HashMap::new();
        let mut tails: Vec<(usize, usize)> = Vec::new();
        let mut ended: Vec<(usize, usize)> = Vec::new();
        for hit in self.plain.find_overlapping_iter(text) {
            let Some(word) = self.meant.get(hit.pattern().as_usize()).copied() else { continue };
            if word.tail {
                tails.push((word.handle, hit.end()));
                continue;
            }
            ended.push((word.handle, hit.end()));
            let last = until.entry(word.handle).or_insert(0);
            if hit.start() < *last {
                continue;
            }
            *last = hit.end();
            let seen = look.seen.entry(word.handle).or_default();
            if begins(text, hit.start()) && ends(text, hit.end(), word.mail) {
                seen.whole += 1;
            } else {
                seen.inside += 1;
            }
        }
        tails.sort_unstable();
        tails.dedup();
        for (handle, end) in tails {
            if !ended.contains(&(handle, end)) {
                look.seen.entry(handle).or_default().tails += 1;
            }
        }
    }

    fn encodings(&self, bytes: &[u8], look: &mut Look) {
        let mut until: HashMap<usize, usize> = HashMap::new();
        for hit in self.encoded.find_overlapping_iter(bytes) {
            let Some(handle) = self.behind.get(hit.pattern().as_usize()) else { continue };
            let last = until.entry(*handle).or_insert(0);
            if hit.start() >= *last {
                *last = hit.end();
                look.seen.entry(*handle).or_default().whole += 1;
            }
        }
    }

    /// Where in a JSON value a handle stands: paths such as `payload.users.0`, the first few. A key that holds it is
    /// given as its own path.
    #[must_use]
    pub fn paths(&self, value: &Raw, handle: usize) -> Vec<String> {
        let text = match value {
            Raw::Text(text) => Cow::Borrowed(text.as_str()),
            Raw::Bytes(bytes) => match inflate(bytes) {
                Some(Ok(inner)) => Cow::Owned(String::from_utf8_lossy(&inner).into_owned()),
                _ => String::from_utf8_lossy(bytes),
            },
            _ => return Vec::new(),
        };
        if !text.trim_start().starts_with(['{', '[']) {
            return Vec::new();
        }
        let mut paths = Vec::new();
        self.walk(&json::read(&text).value, handle, &mut String::new(), &mut paths);
        paths
    }

    fn walk(&self, value: &serde_json::Value, handle: usize, path: &mut String, paths: &mut Vec<String>) {
        use serde_json::Value;
        if paths.len() >= PATHS {
            return;
        }
        let holds = |text: &str| self.look(&Raw::Text(text.to_owned())).seen.get(&handle).is_some_and(|s| s.whole > 0);
        let depth = path.len();
        let mut step = |part: &str, inner: &Value, paths: &mut Vec<String>| {
            if depth > 0 {
                path.push('.');
            }
            path.push_str(part);
            if inner.is_null() {
                paths.push(path.clone());
            } else {
                self.walk(inner, handle, path, paths);
            }
            path.truncate(depth);
        };
        match value {
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate().filter(|(_, item)| !item.is_null()) {
                    step(&i.to_string(), item, paths);
                }
            }
            Value::Object(object) => {
                for (key, item) in object {
                    if holds(key) {
                        step(key, &Value::Null, paths);
                    }
                    if !item.is_null() {
                        step(key, item, paths);
                    }
                }
            }
            Value::String(text) if holds(text) => paths.push(path.clone()),
            Value::Number(number) if holds(&number.to_string()) => paths.push(path.clone()),
            _ => {}
        }
    }
}

/// The spellings that are looked for as words. A short handle must stand in quotes.
fn spellings(text: &str) -> Vec<String> {
    let mut all = every_spelling(text);
    all.push(fold(text));
    if text.chars().count() < WORD {
        all = all.iter().map(|text| format!("\"{text}\"")).collect();
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// A text in small letters, composed: equal for spellings of the same.
fn fold(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.nfc().collect::<String>().to_lowercase() }
}

/// A text with `\uXXXX` resolved; other escapes stay.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        out.push_str(&rest[..at]);
        let mut units = Vec::new();
        let mut end = at;
        while let Some(unit) = rest.get(end..).filter(|r| r.starts_with("\\u")).and_then(|r| r.get(2..6))
            && let Ok(unit) = u16::from_str_radix(unit, 16)
        {
            units.push(unit);
            end += 6;
        }
        if units.is_empty() {
            out.push_str("\\u");
            end = at + 2;
        }
        out.push_str(&String::from_utf16_lossy(&units));
        rest = &rest[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Bytes behind zlib or gzip; none when they are neither.
fn inflate(bytes: &[u8]) -> Option<Result<Vec<u8>, &'static str>> {
    let reader: Box<dyn Read + '_> = match bytes {
        // The header of zlib is a multiple of 31; text that begins with x seldom is.
        [0x78, flags, ..] if (0x7800 + u16::from(*flags)).is_multiple_of(31) => Box::new(ZlibDecoder::new(bytes)),
        [0x1f, 0x8b, ..] => Box::new(GzDecoder::new(bytes)),
        _ => return None,
    };
    let mut inner = Vec::new();
    match reader.take(INFLATE_LIMIT + 1).read_to_end(&mut inner) {
        Ok(_) if inner.len() as u64 > INFLATE_LIMIT => Some(Err("inflates to more than 64 MB and was not read")),
        Ok(_) => Some(Ok(inner)),
        Err(_) => Some(Err("cannot be inflated")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn seen(handle: &str, value: &Raw) -> Seen {
        let words = Words::new(&[handle.to_owned()]).unwrap();
        words.look(value).seen.get(&0).copied().unwrap_or_default()
    }

    #[test]
    fn a_handle_is_found_in_every_spelling_and_only_as_a_whole() {
        for (handle, text, whole) in [
            ("ann@x.org", "to ann@x.org, please, or ANN@X.ORG.", 2),
            ("ann@x.org", "joann@x.org and ann@x.org.uk", 0),
            ("ann@x.org", r#"{"a":"one\nann@x.org"}"#, 1),
            ("user-1", "user-11 user-1", 1),
            ("Zoë Núñez", "Zoe\u{308} Nu\u{301}n\u{303}ez", 1),
            ("Zoë Núñez", "ZOË NÚÑEZ", 1),
            ("Zoë Núñez", r#""Zo\u00EB N\u00fa\u00F1ez""#, 1),
            ("auth0|ab12", "auth0%7Cab12", 1),
            ("auth0|ab12cd34", "token YXV0aDB8YWIxMmNkMzQ= here", 1),
            ("auth0|ab12cd34", "61757468307c6162313263643334", 1),
            ("bo", "bobo bo", 0),
            ("bo", r#"["bo","al"]"#, 1),
            ("bo", "bo", 1),
        ] {
            assert_eq!(seen(handle, &Raw::Text(text.to_owned())).whole, whole, "{handle} in {text}");
        }
    }

    #[test]
    fn numbers_are_compared_as_a_whole() {
        assert!(seen("4711", &Raw::Integer(4711)).entire);
        assert_eq!(seen("4711", &Raw::Integer(14711)), Seen::default());
    }

    #[test]
    fn compressed_bytes_are_read() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(br#"{"who":{"mail":"ann@x.org"}}"#).unwrap();
        let value = Raw::Bytes(encoder.finish().unwrap());
        let words = Words::new(&["ann@x.org".to_owned()]).unwrap();
        let look = words.look(&value);
        assert!(look.compressed && look.seen[&0].whole == 1);
        assert_eq!(words.paths(&value, 0), ["who.mail"]);
        let broken = Raw::Bytes(vec![0x78, 0x9c, 1, 2, 3]);
        assert_eq!(words.look(&broken).unread, Some("cannot be inflated"));
    }

    #[test]
    fn paths_name_keys_lists_and_numbers() {
        let words = Words::new(&["user-1".to_owned(), "4711".to_owned()]).unwrap();
        let value = Raw::Text(r#"{"a":[{"b":"user-1"},"x user-1 y"],"user-1":{"n":4711}}"#.to_owned());
        assert_eq!(words.paths(&value, 0), ["a.0.b", "a.1", "user-1"]);
        assert_eq!(words.paths(&value, 1), ["user-1.n"]);
    }

    #[test]
    fn what_others_share_is_told_apart() {
        let text = Raw::Text("bob@initech.example maria.lopez@x.example user-12".to_owned());
        let mail = seen("maria.lopez@x.example", &text);
        assert_eq!((mail.whole, mail.tails), (1, 1));
        let id = seen("user-1", &text);
        assert_eq!((id.whole, id.inside), (0, 1));
    }
}
