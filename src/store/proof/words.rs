//! Finds handles in one stored value, through every encoding around its texts, by the rules of [`crate::memory::mention`];
//! and tells them apart from longer words that hold the same letters.

use std::collections::{BTreeMap, HashSet};

use aho_corasick::{AhoCorasick, MatchKind};

use super::needles::{Form, Needles};
use crate::memory::mention::{Finder, Place, Shape, Sought, folded};
use crate::store::container::{self, Layer, Leaf, LeafKind, Limits};
use crate::store::session::Raw;

/// Characters below which a handle counts only where it is the whole of a text.
const WORD: usize = 4;
/// Paths within JSON that are told at most.
const PATHS: usize = 8;

/// How often one handle stands in a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// It means the person for sure.
    pub whole: u64,
    /// Within a longer word, or in another way that leaves a doubt.
    pub inside: u64,
    /// Its last bytes without the rest of it.
    pub tails: u64,
    /// It is the value.
    pub entire: bool,
}

/// What a value holds.
#[derive(Debug, Default)]
pub struct Look {
    /// By the number of the handle.
    pub seen: BTreeMap<usize, Seen>,
    /// Some of the value was compressed.
    pub compressed: bool,
    /// Why it could not be read to the end.
    pub unread: Option<&'static str>,
}

/// Handles that are ready to be looked for.
#[derive(Debug)]
pub struct Words {
    finder: Finder,
    /// The letters of each handle and its last bytes, wherever they stand.
    plain: AhoCorasick,
    /// Which handle each of these is of, and whether it is its last bytes.
    meant: Vec<(usize, bool)>,
    numbers: HashSet<String>,
}

impl Words {
    /// Prepares to look for handles, which are numbered as given.
    ///
    /// # Errors
    /// More than can be looked for at once.
    pub fn new(handles: &[String]) -> Result<Self, String> {
        let sought = |value: &String| Sought {
            value: value.clone(),
            shape: Shape::of("", value),
            common: value.trim().chars().count() < WORD,
        };
        let sought: Vec<Sought> = handles.iter().map(sought).collect();
        let (mut plain, mut meant) = (Vec::new(), Vec::new());
        for (handle, text) in handles.iter().enumerate().filter(|(_, text)| text.trim().chars().count() >= WORD) {
            plain.push(folded(text.trim()));
            meant.push((handle, false));
        }
        let tails = Needles::new(handles, &[]).needles.into_iter().filter(|needle| needle.form == Form::Tail);
        for needle in tails {
            let Ok(text) = String::from_utf8(needle.bytes) else { continue };
            plain.push(folded(&text));
            meant.push((needle.handle, true));
        }
        let number = |text: &&String| text.parse::<i64>().is_ok_and(|n| n.to_string() == **text);
        let mut builder = AhoCorasick::builder();
        let plain = builder.match_kind(MatchKind::Standard).build(&plain);
        Ok(Words {
            finder: Finder::new(&sought, &[])?,
            plain: plain.map_err(|error| format!("too much to look for at once: {error}"))?,
            meant,
            numbers: handles.iter().filter(number).cloned().collect(),
        })
    }

    /// Whether a handle is a whole number, so that columns of numbers may hold it.
    #[must_use]
    pub fn has_numbers(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Looks at a stored value.
    #[must_use]
    pub fn look(&self, value: &Raw) -> Look {
        let mut look = Look::default();
        let contents = container::read(value, Limits::default(), &mut |leaf: &Leaf<'_>| self.leaf(leaf, &mut look));
        look.compressed = contents.compressed;
        look.unread = contents.opaque.first().filter(|_| contents.compressed).map(|part| part.why);
        look.seen.retain(|_, seen| *seen != Seen::default());
        look
    }

    fn leaf(&self, leaf: &Leaf<'_>, look: &mut Look) {
        let place = Place { number: leaf.kind == LeafKind::Number, ..Place::ANY };
        let mut spans = self.finder.find(leaf.text, place);
        spans.retain(|span| leaf.is_new(span.start..span.end));
        for span in &spans {
            let seen = look.seen.entry(span.handle).or_default();
            *(if span.certainty.is_certain() { &mut seen.whole } else { &mut seen.inside }) += 1;
            seen.entire |= leaf.layers.is_empty() && (span.start, span.end) == (0, leaf.text.len());
        }
        if leaf.kind == LeafKind::Number || leaf.layers.last() == Some(&Layer::Escapes) {
            return;
        }
        let told = |handle: usize| spans.iter().filter(|span| span.handle == handle).count() as u64;
        let mut inside: BTreeMap<usize, (u64, usize)> = BTreeMap::new();
        let (mut ended, mut tails) = (HashSet::new(), HashSet::new());
        for hit in self.plain.find_overlapping_iter(&folded(leaf.text)) {
            let (handle, tail) = self.meant[hit.pattern().as_usize()];
            if tail {
                tails.insert((handle, hit.end()));
                continue;
            }
            ended.insert((handle, hit.end()));
            let (count, until) = inside.entry(handle).or_default();
            if hit.start() >= *until {
                (*count, *until) = (*count + 1, hit.end());
            }
        }
        for (handle, (count, _)) in inside {
            look.seen.entry(handle).or_default().inside += count.saturating_sub(told(handle));
        }
        for (handle, _) in tails.difference(&ended) {
            look.seen.entry(*handle).or_default().tails += 1;
        }
    }

    /// Where in a JSON value a handle stands: paths such as `payload.users.0`, the first few. A key that holds it is
    /// given as its own path.
    #[must_use]
    pub fn paths(&self, value: &Raw, handle: usize) -> Vec<String> {
        let mut paths = Vec::new();
        container::read(value, Limits::default(), &mut |leaf: &Leaf<'_>| {
            if paths.len() >= PATHS || !leaf.layers.contains(&Layer::Json) {
                return;
            }
            let place = Place { number: leaf.kind == LeafKind::Number, ..Place::ANY };
            let spans = self.finder.find(leaf.text, place).into_iter();
            let mut new = spans.filter(|span| leaf.is_new(span.start..span.end));
            if new.any(|span| span.handle == handle && span.certainty.is_certain()) {
                paths.push(leaf.path());
            }
        });
        paths
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
            ("auth0|ab12", "?u=auth0%7Cab12", 1),
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
        assert!(words.look(&broken).unread.is_some());
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
