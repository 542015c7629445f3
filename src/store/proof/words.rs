//! Finds handles in one stored value, in any encoding, case and Unicode form, as whole words, distinguished from longer
//! words around them.

use std::collections::{BTreeMap, HashMap, HashSet};

use unicode_normalization::UnicodeNormalization as _;

use super::needles::{Needle, NeedleForm, Needles};
use super::spelling::forms;
use crate::memory::mention::{begins, ends};
use crate::memory::word_index::{WordIndex, WordList};
use crate::store::container::{self, Contents, Leaf, LeafKind, Limits, Opaque};
use crate::store::fetched::FetchedValue;

/// Characters below which a handle only counts as a whole text.
const WORD: usize = 4;
/// Bytes of an encoded match below which it may be chance.
const ENCODED: usize = 10;
/// Longest text compared as a whole, in letters.
const ENTIRE: usize = 1_024;
/// Most paths reported per value.
const PATHS: usize = 8;

/// Number of matches of one handle in a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WordCount {
    /// As a whole word, or encoded.
    pub whole: u64,
    /// Within a longer word.
    pub inside: u64,
    /// With its end but not the rest.
    pub tails: u64,
    /// True when the handle is the whole value.
    pub entire: bool,
}

impl WordCount {
    fn is_nothing(self) -> bool {
        self == WordCount::default()
    }
}

/// Matches of handles in a value.
#[derive(Debug, Default)]
pub struct WordLook {
    /// By the number of the handle.
    pub seen: BTreeMap<usize, WordCount>,
    /// Whether the value was compressed.
    pub compressed: bool,
    /// The first few undecoded parts.
    pub opaque: Vec<Opaque>,
}

#[derive(Debug, Clone, Copy)]
struct HandleWord {
    handle: usize,
    mail: bool,
    tail: bool,
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
    /// Prepares a search for handles, numbered as given, which are also among these needles.
    #[must_use]
    pub fn new(handles: &[String], needles: &Needles) -> Self {
        let (mut plain, mut meant) = (WordList::default(), Vec::new());
        let mut entire: HashMap<String, Vec<usize>> = HashMap::new();
        let mut short = false;
        for (handle, text) in handles.iter().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
            entire.entry(fold(text)).or_default().push(handle);
            let spellings = spellings(text);
            short |= spellings.is_empty();
            for spelling in spellings {
                plain.push(spelling.as_bytes());
                meant.push(HandleWord { handle, mail: text.contains('@'), tail: false });
            }
        }
        for needle in needles.iter().filter(|needle| needle.form == NeedleForm::Tail) {
            plain.push(needle.bytes);
            meant.push(HandleWord { handle: needle.handle, mail: false, tail: true });
        }
        let lengths = entire.keys().map(String::len).collect();
        HandleWords { index: WordIndex::new(&plain), plain, meant, entire, short, lengths }
    }

    /// Handles that are integers, for numeric columns.
    #[must_use]
    pub fn numbers(&self) -> Vec<&str> {
        let number = |text: &&String| text.parse::<i64>().is_ok_and(|n| n.to_string() == **text);
        self.entire.keys().filter(number).map(String::as_str).collect()
    }

    /// Bytes that every text with a handle as a word contains, apart from letters beyond ASCII.
    pub fn sought(&self) -> impl Iterator<Item = &[u8]> {
        self.plain.iter()
    }

    /// Whether a text contains a handle literally, in any case of ASCII letters.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        self.index.is_in(&self.plain, text.as_bytes())
    }

    /// Whether a text must be searched in any case: handles are too short to search for as words, or have letters
    /// beyond ASCII with several spellings.
    #[must_use]
    pub fn may_be_folded_in(&self, text: &str) -> bool {
        self.short || !text.is_ascii() && self.is_in(&fold(text))
    }

    /// Whether a text may contain a handle, literally or within an encoding. Cheap if false.
    fn may_be_read_in(&self, text: &str) -> bool {
        self.is_in(text) || !container::is_bare(text) || self.may_be_folded_in(text)
    }

    /// Searches a stored value, in whose bytes these needles were found.
    #[must_use]
    pub fn look<'a>(&self, value: &FetchedValue, needles: impl Iterator<Item = Needle<'a>>) -> WordLook {
        let mut look = WordLook::default();
        let contents = match value {
            FetchedValue::Text(text) if !self.may_be_read_in(text) => Contents::default(),
            _ => container::read(value, Limits::default(), &mut |leaf: &Leaf<'_>| self.leaf(leaf, &mut look.seen)),
        };
        if matches!(value, FetchedValue::Text(_)) {
            // Encoded words that are too short, or cut, to be decoded.
            for needle in needles.filter(|needle| needle.form.is_encoded() && needle.bytes.len() >= ENCODED) {
                let seen = look.seen.entry(needle.handle).or_default();
                seen.whole = seen.whole.max(1);
            }
        }
        look.seen.retain(|_, seen| !seen.is_nothing());
        WordLook { compressed: contents.compressed, opaque: contents.opaque, ..look }
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
                known.inside = known.inside.max(seen.inside);
                known.tails = known.tails.max(seen.tails);
            }
        }
        if self.may_be_entire(leaf.text) {
            for handle in entire(&fold(leaf.text)) {
                let seen = here.entry(*handle).or_default();
                (seen.entire, seen.whole, seen.inside) = (leaf.layers.is_empty(), seen.whole.max(1), 0);
            }
        }
        for (handle, seen) in here {
            let sum = all.entry(handle).or_default();
            sum.whole += seen.whole;
            sum.inside += seen.inside;
            sum.tails += seen.tails;
            sum.entire |= seen.entire;
        }
    }

    /// Counts whole words, and parts of longer ones. Spellings of one handle may overlap: a place counts once.
    fn count(&self, text: &str, is_new: &dyn Fn(std::ops::Range<usize>) -> bool, all: &mut BTreeMap<usize, WordCount>) {
        let bytes = text.as_bytes();
        let mut until: HashMap<usize, usize> = HashMap::new();
        let mut tails: Vec<(usize, usize)> = Vec::new();
        let mut ended: HashSet<(usize, usize)> = HashSet::new();
        for (number, place) in self.index.places(&self.plain, bytes).filter(|(_, place)| is_new(place.clone())) {
            let Some(word) = self.meant.get(number).copied() else { continue };
            if word.tail {
                tails.push((word.handle, place.end));
                continue;
            }
            ended.insert((word.handle, place.end));
            let last = until.entry(word.handle).or_insert(0);
            if place.start < *last {
                continue;
            }
            *last = place.end;
            let seen = all.entry(word.handle).or_default();
            if begins(bytes, place.start) && ends(bytes, place.end) && !(word.mail && continues(bytes, place.end)) {
                seen.whole += 1;
            } else {
                seen.inside += 1;
            }
        }
        tails.sort_unstable();
        tails.dedup();
        for (handle, end) in tails {
            if !ended.contains(&(handle, end)) {
                all.entry(handle).or_default().tails += 1;
            }
        }
    }

    /// Finds a handle in a value: returns the first few paths, such as `payload.users.0`. A key that contains it is
    /// reported by its own path.
    #[must_use]
    pub fn paths(&self, value: &FetchedValue, handle: usize) -> Vec<String> {
        let mut paths = Vec::new();
        container::read(value, Limits::default(), &mut |leaf: &Leaf<'_>| {
            if leaf.layers.is_empty() || paths.len() >= PATHS {
                return;
            }
            let mut seen = BTreeMap::new();
            self.leaf(leaf, &mut seen);
            let path = seen.get(&handle).is_some_and(|seen| seen.whole > 0).then(|| leaf.path());
            paths.extend(path.filter(|path| !path.is_empty() && !paths.contains(path)));
        });
        paths
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

    fn owned(handles: &[&str]) -> Vec<String> {
        handles.iter().map(|&handle| handle.to_owned()).collect()
    }

    fn words(handles: &[&str]) -> HandleWords {
        HandleWords::new(&owned(handles), &Needles::default())
    }

    fn look(handles: &[&str], value: &FetchedValue) -> WordLook {
        ValueWatch::new(&owned(handles), &[]).look(value).0
    }

    fn seen(handle: &str, value: &FetchedValue) -> WordCount {
        look(&[handle], value).seen.get(&0).copied().unwrap_or_default()
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
        let looked = look(&["ann@x.org"], &value);
        assert!(looked.compressed && looked.seen[&0].whole == 1);
        assert_eq!(words(&["ann@x.org"]).paths(&value, 0), ["who.mail"]);
        let broken = FetchedValue::Bytes([&[0x78, 0x9c][..], &[0xff; 30]].concat());
        assert_eq!(look(&["ann@x.org"], &broken).opaque.len(), 1);
    }

    #[test]
    fn paths_name_keys_lists_and_numbers() {
        let words = words(&["user-1", "4711"]);
        let value = FetchedValue::Text(r#"{"a":[{"b":"user-1"},"x user-1 y"],"user-1":{"n":4711}}"#.to_owned());
        assert_eq!(words.paths(&value, 0), ["a.0.b", "a.1", "user-1"]);
        assert_eq!(words.paths(&value, 1), ["user-1.n"]);
    }

    #[test]
    fn what_others_share_is_told_apart() {
        let text = FetchedValue::Text("bob@initech.example maria.lopez@x.example user-12".to_owned());
        let mail = seen("maria.lopez@x.example", &text);
        assert_eq!((mail.whole, mail.tails), (1, 1));
        let id = seen("user-1", &text);
        assert_eq!((id.whole, id.inside), (0, 1));
    }
}
