//! Finds handles in one stored value, in any encoding, case and Unicode form, as whole words, distinguished from longer
//! words around them.

use std::collections::{BTreeMap, HashMap, HashSet};

use unicode_normalization::UnicodeNormalization as _;

use super::needles::Needle;
use super::spelling::forms;
use crate::memory::mention::{begins, ends};
use crate::memory::word_index::{WordIndex, WordList};
use crate::store::container::{self, Leaf, LeafKind, Limits};
use crate::store::fetched::FetchedValue;

/// Characters below which a handle only counts as a whole text.
const WORD: usize = 4;
/// Bytes of an encoded match below which it may be chance.
const ENCODED: usize = 10;
/// Longest text compared as a whole, in letters.
const ENTIRE: usize = 1_024;

/// Number of matches of one handle in a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WordCount {
    /// As a whole word, or encoded.
    pub whole: u64,
    /// True when the handle is the whole value.
    pub entire: bool,
}

#[derive(Debug, Clone, Copy)]
struct HandleWord {
    handle: usize,
    mail: bool,
}

/// Handles prepared for a search.
#[derive(Debug)]
pub struct HandleWords {
    plain: WordList,
    index: WordIndex,
    meant: Vec<HandleWord>,
    entire: HashMap<String, Vec<usize>>,
    /// Whether some handle is too short to search for as a word.
    short: bool,
    /// Lengths in bytes of the texts in `entire`.
    lengths: HashSet<usize>,
}

impl HandleWords {
    /// Prepares a search for handles, numbered as given.
    pub fn new(handles: &[String]) -> Self {
        let (mut plain, mut meant) = (WordList::default(), Vec::new());
        let mut entire: HashMap<String, Vec<usize>> = HashMap::new();
        let mut short = false;
        for (handle, text) in handles.iter().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            entire.entry(fold(text)).or_default().push(handle);
            let spellings = spellings(text);
            short |= spellings.is_empty();
            for spelling in spellings {
                plain.push(spelling.as_bytes());
                meant.push(HandleWord { handle, mail: text.contains('@') });
            }
        }
        let lengths = entire.keys().map(String::len).collect();
        HandleWords { index: WordIndex::new(&plain), plain, meant, entire, short, lengths }
    }

    /// Bytes that every text with a handle as a word contains, apart from letters beyond ASCII.
    pub fn sought(&self) -> impl Iterator<Item = &[u8]> {
        self.plain.iter()
    }

    /// Whether a text contains a handle literally, in any case of ASCII letters.
    pub fn is_in(&self, text: &str) -> bool {
        self.index.is_in(&self.plain, text.as_bytes())
    }

    /// Whether a text must be searched in any case: handles are too short to search for as words, or have letters
    /// beyond ASCII with several spellings.
    pub fn may_be_folded_in(&self, text: &str) -> bool {
        self.short || !text.is_ascii() && self.is_in(&fold(text))
    }

    /// Whether a text may contain a handle, literally or within an encoding. Cheap if false.
    fn may_be_read_in(&self, text: &str) -> bool {
        self.is_in(text) || !container::is_bare(text) || self.may_be_folded_in(text)
    }

    /// Searches a stored value, in whose bytes these needles were found. Returns the handles in it, by number.
    pub fn look<'a>(
        &self,
        value: &FetchedValue,
        needles: impl Iterator<Item = Needle<'a>>,
    ) -> BTreeMap<usize, WordCount> {
        let mut all = BTreeMap::new();
        if !matches!(value, FetchedValue::Text(text) if !self.may_be_read_in(text)) {
            container::read(value, Limits::default(), &mut |leaf: &Leaf<'_>| self.leaf(leaf, &mut all));
        }
        if matches!(value, FetchedValue::Text(_)) {
            // Encoded words that are too short, or cut, to be decoded.
            for needle in needles.filter(|needle| needle.form.is_encoded() && needle.bytes.len() >= ENCODED) {
                let seen: &mut WordCount = all.entry(needle.handle).or_default();
                seen.whole = seen.whole.max(1);
            }
        }
        all
    }

    /// Whether a text may be a handle as a whole; an ASCII text must have the length of one.
    fn may_be_entire(&self, text: &str) -> bool {
        text.len() <= ENTIRE && (!text.is_ascii() || self.lengths.contains(&text.len()))
    }

    /// Counts the matches in one decoded text.
    fn leaf(&self, leaf: &Leaf<'_>, all: &mut BTreeMap<usize, WordCount>) {
        let entire = |text: &str| self.entire.get(text).into_iter().flatten();
        if leaf.kind == LeafKind::Number {
            for handle in entire(leaf.text) {
                let seen = all.entry(*handle).or_default();
                seen.whole += 1;
                seen.entire |= leaf.layers.is_empty();
            }
            return;
        }
        let mut here: BTreeMap<usize, WordCount> = BTreeMap::new();
        self.count(leaf.text, &|range| leaf.is_new(range), &mut here);
        if !leaf.text.is_ascii() {
            // Letters beyond ASCII in another case or form match in the folded text; the higher count is used.
            let mut folded = BTreeMap::new();
            self.count(&fold(leaf.text), &|_| true, &mut folded);
            for (handle, seen) in folded {
                let known: &mut WordCount = here.entry(handle).or_default();
                known.whole = known.whole.max(seen.whole);
            }
        }
        if self.may_be_entire(leaf.text) {
            for handle in entire(&fold(leaf.text)) {
                let seen = here.entry(*handle).or_default();
                (seen.entire, seen.whole) = (leaf.layers.is_empty(), seen.whole.max(1));
            }
        }
        for (handle, seen) in here {
            let sum = all.entry(handle).or_default();
            sum.whole += seen.whole;
            sum.entire |= seen.entire;
        }
    }

    /// Counts whole words. Spellings of one handle may overlap: a place counts once.
    fn count(&self, text: &str, is_new: &dyn Fn(std::ops::Range<usize>) -> bool, all: &mut BTreeMap<usize, WordCount>) {
        let bytes = text.as_bytes();
        let mut until: HashMap<usize, usize> = HashMap::new();
        for (number, place) in self.index.places(&self.plain, bytes).filter(|(_, place)| is_new(place.clone())) {
            let Some(word) = self.meant.get(number).copied() else { continue };
            let last = until.entry(word.handle).or_insert(0);
            if place.start < *last {
                continue;
            }
            *last = place.end;
            if begins(bytes, place.start) && ends(bytes, place.end) && !(word.mail && continues(bytes, place.end)) {
                all.entry(word.handle).or_default().whole += 1;
            }
        }
    }
}

/// Whether an address continues after a place: with a dot or a dash and a letter or digit.
fn continues(text: &[u8], end: usize) -> bool {
    let host = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    matches!(text.get(end), Some(b'.' | b'-')) && text.get(end + 1).is_some_and(host)
}

/// The spellings to search for as words; empty for a short handle, which must be a whole text.
fn spellings(text: &str) -> Vec<String> {
    if text.chars().count() < WORD {
        return Vec::new();
    }
    let mut all = forms(text);
    all.push(fold(text));
    all.sort_unstable();
    all.dedup();
    all
}

/// A text in lower case, composed: equal for all spellings.
fn fold(text: &str) -> String {
    if text.is_ascii() { text.to_ascii_lowercase() } else { text.nfc().collect::<String>().to_lowercase() }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::store::proof::values::ValueWatch;

    fn seen(handle: &str, value: &FetchedValue) -> WordCount {
        let found = ValueWatch::new(&[handle.to_owned()], &[]).seen(value, false);
        found.and_then(|found| found.seen.get(&0).copied()).unwrap_or_default()
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
            assert_eq!(seen(handle, &FetchedValue::Text(text.to_owned())).whole, whole, "{handle} in {text}");
        }
    }

    #[test]
    fn numbers_are_compared_as_a_whole() {
        assert!(seen("4711", &FetchedValue::Integer(4711)).entire);
        assert_eq!(seen("4711", &FetchedValue::Integer(14711)), WordCount::default());
    }

    #[test]
    fn compressed_bytes_are_read() {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(br#"{"who":{"mail":"ann@x.org"}}"#).unwrap();
        let value = FetchedValue::Bytes(encoder.finish().unwrap());
        assert_eq!(seen("ann@x.org", &value).whole, 1);
    }

    #[test]
    fn keys_lists_and_numbers_within_documents_are_read() {
        let value = FetchedValue::Text(r#"{"a":[{"b":"user-1"},"x user-1 y"],"user-1":{"n":4711}}"#.to_owned());
        assert_eq!(["user-1", "4711"].map(|handle| seen(handle, &value).whole), [3, 1]);
    }

    #[test]
    fn what_others_share_is_told_apart() {
        let text = FetchedValue::Text("bob@x.example maria.lopez@x.example user-12".to_owned());
        assert_eq!(["maria.lopez@x.example", "user-1"].map(|handle| seen(handle, &text).whole), [1, 0]);
    }
}
