//! Finds a person's handles, and the ids of deleted rows, in stored values, through every encoding around them.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use aho_corasick::AhoCorasick;
use uuid::Uuid;

use super::column_words::leaf_place;
use super::hit::{ByteFind, Hit};
use super::id_set::LostIds;
use super::key_parts;
use super::row_ids::{ID_LENGTH, RowIds};
use super::scrub;
use super::subject::PersonHandle;
use crate::change::ChangeError;
use crate::memory::mention::{Certainty, HandleShape, MentionFinder, MentionSpan, MentionText, SoughtHandle};
use crate::memory::sieve::WordSieve;
use crate::store::container::{self, Change, Contents, Layer, Leaf, LeafKind, Limits, Rewritten, Visitor};
use crate::store::fetched::FetchedValue;
use crate::store::proof::needles::base64;

/// Digits from which a number is distinctive.
const LONG_NUMBER: usize = 12;
/// Characters from which an id is not a word.
const LONG: usize = 16;
/// Changes between letters and digits that make a word unlikely to be written by a person.
const TURNS: usize = 3;
/// Text that replaces a handle.
const MARK: &str = "[erased]";
/// Digits from which a word is not a field name.
const FIELD_DIGITS: usize = 4;
/// Certainty of a handle in a key that nothing marks as a person.
const A_FIELD: Certainty = Certainty::Possible("may be the name of a field");
/// Certainty of a handle in the name of a class.
const A_CLASS: Certainty = Certainty::Possible("the name of a class");
/// Characters around a mention that a sample shows.
const AROUND: usize = 24;

/// A match of a handle in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueSighting {
    /// Number of the handle.
    pub handle: usize,
    /// Certainty that the handle means the person.
    pub certainty: Certainty,
    /// It is in a key of a document.
    pub in_key: bool,
}

/// Mentions of the person in a value.
#[derive(Debug, Default)]
pub struct ValueLook {
    /// Every place.
    pub sightings: Vec<ValueSighting>,
    /// The text around the first match, with every handle masked.
    pub sample: String,
    /// The value is a handle and nothing else.
    pub whole: bool,
    /// An encoding around one of the matches that can be searched but not rewritten.
    pub fixed: Option<Layer>,
    /// Places of deleted rows' ids within encodings, which the value's raw bytes do not show.
    pub rows: usize,
    /// Kind of contents found in the value.
    pub contents: Contents,
    /// The value is known to be a text without encodings.
    pub bare: bool,
    /// A text in it contains the encoded form of a handle too short to be decoded.
    pub hides: bool,
}

impl ValueLook {
    /// Counts the certain places, or the uncertain ones.
    pub fn count(&self, certain: bool) -> usize {
        self.sightings.iter().filter(|s| s.certainty.is_certain() == certain).count()
    }

    /// Whether a certain place, or an uncertain one, is outside the keys of documents.
    pub fn is_in_text(&self, certain: bool) -> bool {
        self.sightings.iter().any(|s| s.certainty.is_certain() == certain && !s.in_key)
    }

    /// Returns the certainty for the value: certain if any place is, otherwise the first place's reason for doubt.
    pub fn certainty(&self) -> Certainty {
        let mut all = self.sightings.iter().map(|s| s.certainty);
        all.clone().find(|c| c.is_certain()).or_else(|| all.next()).unwrap_or(Certainty::Certain)
    }
}

/// Matcher for the handles of a person and the ids of deleted rows.
#[derive(Debug)]
pub struct Matcher {
    finder: MentionFinder,
    /// For each handle, whether documents may have a field of that name.
    fields: Vec<bool>,
    rows: RowIds,
    short: Option<ShortForms>,
}

/// Lengths, in bytes, of handles whose encoded form is too short to be decoded: in base64, and in hexadecimal.
const SHORT: (RangeInclusive<usize>, RangeInclusive<usize>) = (5..=11, 5..=7);
/// Letters from which such a form is unlikely by chance.
const FORM: usize = 6;

/// Most handles whose encoded forms are searched for.
const SHORT_HANDLES: usize = 1_000;

/// Short handles in base64 and hexadecimal.
#[derive(Debug)]
struct ShortForms {
    words: AhoCorasick,
    sieve: Option<WordSieve>,
}

impl ShortForms {
    /// The encoded forms of some handles; `None` if none of them is short.
    fn of(handles: &[&PersonHandle]) -> Result<Option<Self>, ChangeError> {
        let told = |h: &&&PersonHandle| {
            h.unsearched.is_none() && h.common.is_none() && !matches!(&*h.kind, "session" | "profile")
        };
        let spelled =
            handles.iter().filter(told).take(SHORT_HANDLES).flat_map(|h| [h.value.clone(), h.value.to_lowercase()]);
        let mut forms: BTreeSet<String> = BTreeSet::new();
        for text in spelled {
            if SHORT.0.contains(&text.len()) {
                forms.extend(base64(text.as_bytes()).into_iter().filter(|form| form.len() >= FORM));
            }
            if SHORT.1.contains(&text.len()) {
                forms.extend([hex::encode(&text), hex::encode_upper(&text)]);
            }
        }
        if forms.is_empty() {
            return Ok(None);
        }
        let words = AhoCorasick::new(&forms).map_err(|error| ChangeError::Failed(error.to_string()))?;
        let sieve = WordSieve::new(|each| forms.iter().for_each(|form| each(form.as_bytes())));
        Ok(Some(ShortForms { words, sieve }))
    }

    fn are_in(&self, text: &str) -> bool {
        self.sieve.as_ref().is_none_or(|sieve| sieve.may_be_in(text)) && self.words.is_match(text)
    }
}

impl Matcher {
    /// Builds a matcher for handles and row ids. Words in `others` that contain a handle are skipped.
    ///
    /// # Errors
    /// More words than can be searched for at once.
    pub(super) fn new<'h>(
        handles: impl IntoIterator<Item = &'h PersonHandle>,
        rows: RowIds,
        others: &[String],
    ) -> Result<Self, ChangeError> {
        let handles: Vec<&PersonHandle> = handles.into_iter().collect();
        let short = ShortForms::of(&handles)?;
        let fields = handles.iter().map(|handle| may_be_field(&handle.value)).collect();
        let finder = MentionFinder::new(handles.into_iter().map(sought), others).map_err(ChangeError::Failed)?;
        Ok(Matcher { finder, fields, rows, short })
    }

    /// Whether a text contains a short handle in base64 or hexadecimal.
    fn may_hide(&self, text: &str) -> bool {
        self.short.as_ref().is_some_and(|short| short.are_in(text))
    }

    /// Searches a stored value of a column for handles.
    pub fn look(&self, raw: &FetchedValue, column: MentionText) -> ValueLook {
        let mut look = ValueLook::default();
        if let FetchedValue::Text(text) = raw
            && !self.finder.may_be_in(text)
            && container::is_bare(text)
        {
            look.bare = true;
            look.hides = self.may_hide(text);
            return look;
        }
        if let FetchedValue::Integer(number) = raw
            && !self.finder.may_be_number(*number)
        {
            return look;
        }
        let contents = container::read(raw, Limits::default(), &mut |leaf: &Leaf<'_>| {
            look.hides |= self.may_hide(leaf.text);
            if is_hidden(leaf) {
                look.rows += self.new_rows(leaf).count();
            }
            let spans = self.leaf(leaf, column);
            if spans.is_empty() {
                return;
            }
            look.whole = leaf.layers.is_empty()
                && matches!(&spans[..], [span] if (span.start, span.end) == (0, leaf.text.len()));
            if look.sightings.is_empty() {
                look.sample = sample(leaf.text, &spans);
            }
            if look.fixed.is_none() {
                look.fixed = leaf.layers.iter().copied().find(|layer| !layer.rewrites());
            }
            let in_key = is_key(leaf);
            let sighting =
                |span: &MentionSpan| ValueSighting { handle: span.handle, certainty: span.certainty, in_key };
            look.sightings.extend(spans.iter().map(sighting));
        });
        look.contents = contents;
        look.whole &= look.sightings.len() == 1;
        look
    }

    /// Replaces each wanted handle, and each text in `named`, by a mark, within the value's encodings.
    pub fn redacted(
        &self,
        raw: &FetchedValue,
        column: MentionText,
        named: impl Fn(&Leaf<'_>) -> bool,
        wanted: impl Fn(Certainty) -> bool,
    ) -> Rewritten<FetchedValue> {
        let mut change = |leaf: &Leaf<'_>| -> Vec<Change> {
            if !is_key(leaf) && named(leaf) {
                return vec![Change::whole(leaf, mark(leaf.text.len()))];
            }
            let spans = self.leaf(leaf, column).into_iter().filter(|span| wanted(span.certainty));
            spans.map(|span| Change { range: span.start..span.end, text: mark(span.end - span.start) }).collect()
        };
        container::rewrite(raw, Limits::default(), &mut change).0
    }

    /// Removes ids of deleted rows from the value, within its encodings: lists lose elements, elsewhere a mark replaces
    /// the id.
    pub fn loosened(&self, raw: &FetchedValue, ids: &LostIds) -> Rewritten<FetchedValue> {
        container::rewrite(raw, Limits::default(), &mut Loosening { matcher: self, ids }).0
    }

    fn new_rows(&self, leaf: &Leaf<'_>) -> impl Iterator<Item = Hit> {
        self.rows(leaf.text.as_bytes()).into_iter().filter(|hit| leaf.is_new(hit.start..hit.end))
    }

    /// Whether a text outside any value certainly names the person.
    pub fn names(&self, text: &str) -> bool {
        self.finder.find(text, MentionText::default()).iter().any(|span| span.certainty.is_certain())
    }

    fn leaf(&self, leaf: &Leaf<'_>, column: MentionText) -> Vec<MentionSpan> {
        let number = leaf.kind == LeafKind::Number || column.number;
        let place = if leaf.layers.is_empty() { column } else { MentionText::ANY };
        let mut spans = self.finder.find(leaf.text, MentionText { number, ..place });
        if spans.is_empty() {
            return spans;
        }
        if !leaf.layers.is_empty() {
            let place = leaf_place(leaf, column);
            spans = self.finder.find(leaf.text, place);
            let tells = |handle: usize| place.keys || self.fields.get(handle) == Some(&false);
            let doubt = match leaf.kind {
                LeafKind::Class => Some(A_CLASS),
                LeafKind::Key => Some(A_FIELD),
                LeafKind::Text | LeafKind::Number => None,
            };
            for span in spans.iter_mut().filter(|span| span.certainty.is_certain()) {
                let doubt = doubt.filter(|doubt| *doubt == A_CLASS || !tells(span.handle));
                span.certainty = doubt.unwrap_or(span.certainty);
            }
        }
        spans.retain(|span| leaf.is_new(span.start..span.end));
        if leaf.layers.last() == Some(&Layer::Escapes) {
            for span in &mut spans {
                if leaf.is_percent(span.start..span.end) && !is_in_url(leaf.text, span) {
                    span.certainty = Certainty::Possible("only when percent-decoded");
                }
            }
        }
        spans
    }

    /// Finds handles and ids of deleted rows in a plain text that is not a document, such as a key.
    pub fn find(&self, text: &str) -> Vec<Hit> {
        let spans = self.finder.find(text, MentionText::default());
        let hit = |span: &MentionSpan| Hit {
            what: ByteFind::Handle(span.handle),
            start: span.start,
            end: span.end,
            certainty: span.certainty,
        };
        let mut hits: Vec<Hit> = spans.iter().map(hit).collect();
        let is_free = |row: &Hit| !spans.iter().any(|span| span.start < row.end && row.start < span.end);
        hits.extend(self.rows(text.as_bytes()).into_iter().filter(is_free));
        hits.sort_by_key(|hit| hit.start);
        hits
    }

    /// Finds the person in a text of an id column: as a whole, as a part of it, or in an encoding as `look` found it. A
    /// match in an encoding has no part that could be renamed.
    pub fn look_at_key(&self, look: ValueLook, text: &str, column: &str, place: MentionText) -> (ValueLook, Vec<Hit>) {
        if self.finder.find(text, MentionText::default()).is_empty() {
            return (look, Vec::new());
        }
        let mut hits = key_parts::parts(text.as_bytes(), self.find(text));
        hits.retain(|hit| matches!(hit.what, ByteFind::Handle(_)));
        if hits.is_empty() {
            return (look, hits);
        }
        let whole = self.whole(text, place).is_some();
        let certainty = self.key_certainty(text, column, place, &hits);
        let handle = |hit: &Hit| match hit.what {
            ByteFind::Handle(handle) => Some(ValueSighting { handle, certainty, in_key: false }),
            ByteFind::Row => None,
        };
        let span = |hit: &Hit| MentionSpan { handle: 0, start: hit.start, end: hit.end, certainty };
        let spans: Vec<MentionSpan> = hits.iter().map(span).collect();
        let look = ValueLook {
            sightings: hits.iter().filter_map(handle).collect(),
            sample: sample(text, &spans),
            whole,
            ..ValueLook::default()
        };
        (look, hits)
    }

    /// Rates how certain it is that a key means the person, as a whole or by its parts.
    pub fn key_certainty(&self, text: &str, column: &str, place: MentionText, hits: &[Hit]) -> Certainty {
        let parts = || key_parts::certainty(column, text.as_bytes(), hits);
        self.whole(text, place).map_or_else(parts, |span| span.certainty)
    }

    /// The only mention in a text, if it is the entire text.
    fn whole(&self, text: &str, place: MentionText) -> Option<MentionSpan> {
        let found = self.finder.find(text, place);
        matches!(&found[..], [span] if (span.start, span.end) == (0, text.len())).then(|| found[0])
    }

    /// Finds ids of deleted rows in bytes. If several begin at one place, the longest counts.
    pub fn rows(&self, text: &[u8]) -> Vec<Hit> {
        let row = |(start, end)| Hit { what: ByteFind::Row, start, end, certainty: Certainty::Certain };
        self.rows.find(text).into_iter().map(row).collect()
    }
}

/// Removes ids of deleted rows from a value.
struct Loosening<'a> {
    matcher: &'a Matcher,
    ids: &'a LostIds,
}

impl Visitor for Loosening<'_> {
    fn document(&mut self, text: &str) -> Option<String> {
        scrub::without(text.as_bytes(), self.ids, &[]).and_then(|left| String::from_utf8(left).ok())
    }

    fn leaf(&mut self, leaf: &Leaf<'_>) -> Vec<Change> {
        let rows = self.matcher.new_rows(leaf);
        rows.map(|hit| Change { range: hit.start..hit.end, text: mark(hit.end - hit.start) }).collect()
    }
}

/// Whether a text is inside more than JSON and one compressed stream, so that searching the bytes does not find it.
fn is_hidden(leaf: &Leaf<'_>) -> bool {
    let inner = match leaf.layers {
        [Layer::Zlib | Layer::Gzip | Layer::Zstd, inner @ ..] => inner,
        all => all,
    };
    inner.iter().any(|layer| *layer != Layer::Json)
}

/// Returns the search terms of a handle.
fn sought(handle: &PersonHandle) -> SoughtHandle {
    SoughtHandle {
        value: handle.value.clone(),
        shape: HandleShape::of(&handle.kind, &handle.value),
        common: handle.common.is_some(),
    }
}

/// Whether a text is a key or another name in a document, rather than contents.
fn is_key(leaf: &Leaf<'_>) -> bool {
    matches!(leaf.kind, LeafKind::Key | LeafKind::Class)
}

/// Whether a document may have a field of that name: `created_at` may be one, `joao-silva` and `4f00-a` may not.
pub(super) fn may_be_field(value: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    value.trim().chars().all(is_part) && value.bytes().filter(u8::is_ascii_digit).count() < FIELD_DIGITS
}

/// Whether the id of a row is recognizable in any text: not a word, a time or a number that may mean something else.
pub fn tells(id: &str) -> bool {
    let digits = id.bytes().filter(u8::is_ascii_digit).count();
    let mixed = digits > 0 && digits < id.len();
    !is_measure(id) && (id.len() >= ID_LENGTH && (mixed || digits >= LONG_NUMBER) || id.len() >= LONG)
}

/// Whether a text is a date, a time, an address or another number with punctuation, whatever it identifies.
pub fn is_measure(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || !c.is_alphanumeric() || matches!(c, 'T' | 'Z' | 't' | 'z');
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    // A UUID may contain no letters by chance.
    digits > 0 && digits < text.len() && text.chars().all(is_part) && Uuid::try_parse(text).is_err()
}

/// Whether a text is random and so unique: a UUID, or mixed letters and digits.
pub fn is_random(text: &str) -> bool {
    let mut runs = text.split(|c: char| !c.is_ascii_alphanumeric());
    Uuid::try_parse(text).is_ok() || runs.any(|run| run.len() >= ID_LENGTH && turns(run) >= TURNS)
}

/// Number of changes between letters and digits in a word.
pub(super) fn turns(word: &str) -> usize {
    let kinds: Vec<bool> = word.bytes().map(|byte| byte.is_ascii_digit()).collect();
    kinds.windows(2).filter(|two| two[0] != two[1]).count()
}

/// Whether a place is in something like a URL, where `%` begins an escape.
fn is_in_url(text: &str, span: &MentionSpan) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '`');
    let from = text[..span.start].rfind(ends).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
    let to = text[span.end..].find(ends).map_or(text.len(), |at| span.end + at);
    let token = &text[from..to];
    token.contains("://") || token.contains('=') || token.starts_with(['/', '?', '#']) || token.starts_with("mailto:")
}

/// Returns the replacement for a handle of this length; never longer than the handle.
pub fn mark(length: usize) -> String {
    if length >= MARK.len() { MARK.to_owned() } else { "*".repeat(length) }
}

/// The text around the first place, with every handle masked.
fn sample(text: &str, spans: &[MentionSpan]) -> String {
    let Some(first) = spans.first() else { return String::new() };
    let before = &text[..first.start];
    let from = before.char_indices().rev().take(AROUND).last().map_or(first.start, |(at, _)| at);
    let mut out = before[from..].to_owned();
    let mut at = first.start;
    for span in spans.iter().take_while(|span| span.start <= first.end + AROUND * 2) {
        out.push_str(&text[at..span.start]);
        out.push_str("[…]");
        at = span.end;
    }
    out.extend(text[at..].chars().take(AROUND));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(kind: &str, value: &str) -> PersonHandle {
        PersonHandle { kind: kind.into(), value: value.into(), source: "".into(), unsearched: None, common: None }
    }

    fn redacted(kind: &str, value: &str, text: &str) -> String {
        let matcher = Matcher::new([&handle(kind, value)], RowIds::default(), &[]).unwrap();
        match matcher.redacted(
            &FetchedValue::Text(text.to_owned()),
            MentionText::default(),
            |_| false,
            Certainty::is_certain,
        ) {
            Rewritten::New(FetchedValue::Text(text)) => text,
            _ => text.to_owned(),
        }
    }

    #[test]
    fn a_handle_is_taken_out_of_every_encoding_and_only_where_it_is_certain() {
        for (kind, value, text, expected) in [
            ("e-mail", "ann@x.org", r#"{"a":"one\nann@x.org"}"#, r#"{"a":"one\n[erased]"}"#),
            (
                "e-mail",
                "ann@x.org",
                r#"{"a":"\u0061\u006e\u006e\u0040\u0078\u002e\u006f\u0072\u0067"}"#,
                r#"{"a":"[erased]"}"#,
            ),
            ("id", "o'hara|\"x", r#"{"a":"{\"b\":\"o'hara|\\\"x\"}"}"#, r#"{"a":"{\"b\":\"[erased]\"}"}"#),
            ("id", "auth0|ab12", "?u=auth0%7Cab12", "?u=%5Berased%5D"),
            ("id", "auth0|ab12", "auth0%7Cab12", "auth0%7Cab12"),
            ("id", "a%b.c", "a%25b.c", "a%25b.c"),
            ("id", "anya.k", r"C:\home\tanya.k", r"C:\home\tanya.k"),
            ("id", "anya.k", r"[INFO] C:\home\tanya.k", r"[INFO] C:\home\tanya.k"),
            ("id", "anya.k", r#""C:\home\tanya.k" is the path"#, r#""C:\home\tanya.k" is the path"#),
            ("id", "anya.k", r#"{"n":1} in C:\home\tanya.k"#, r#"{"n":1} in C:\home\tanya.k"#),
            ("id", "anya.k", r#"got [{"a":"x\tanya.k"}] back"#, r#"got [{"a":"x\t******"}] back"#),
            ("id", "anya.k", r#"{"a":"x\tanya.k"#, r#"{"a":"x\t******"#),
            ("name", "Ann Smith", "m=Ann+Smith&n=Ann%20Smith", "m=%5Berased%5D&n=%5Berased%5D"),
            ("name", "Zoë Reed", r#"{"a":"Zo\u00eb\nReed"}"#, r#"{"a":"[erased]"}"#),
            ("name", "Dmitri O'Malley", "Dmitri&nbsp;O&#39;Malley", "[erased]"),
            ("id", "user-ana", "user_user-ana", "user_user-ana"),
            ("e-mail", "ann@x.org", r#"{"ann@x.org":{"n":1.10}}"#, r#"{"[erased]":{"n":1.10}}"#),
            ("id", "created_at", r#"{"created_at":1,"by":"created_at"}"#, r#"{"created_at":1,"by":"[erased]"}"#),
            ("id", "anasilva", r#"{"anasilva":1,"user":{"anasilva":2}}"#, r#"{"anasilva":1,"user":{"anasilva":2}}"#),
            ("id", "anasilva", r#"{"users":{"anasilva":1}}"#, r#"{"users":{"[erased]":1}}"#),
            ("id", "anasilva", r#"{"users":[{"anasilva":1}]}"#, r#"{"users":[{"anasilva":1}]}"#),
            ("id", "ana-silva", r#"{"votes":{"ana-silva":1}}"#, r#"{"votes":{"[erased]":1}}"#),
        ] {
            assert_eq!(redacted(kind, value, text), expected, "{value} in {text}");
        }
    }

    #[test]
    fn a_number_is_the_persons_where_its_key_is_about_people() {
        let text = r#"{"user_id": 4711, "n": 4711, "at": "2026-02-17T12:47:11", "user_ids": [4711, 2]}"#;
        let expected = r#"{"user_id": null, "n": 4711, "at": "2026-02-17T12:47:11", "user_ids": [null, 2]}"#;
        assert_eq!(redacted("id", "4711", text), expected);
    }

    #[test]
    fn ids_of_rows_are_told_from_words() {
        assert!(tells("case-0001") && tells("0b6f0bd2-5b1e-4c4a-9d0e-000000000001") && tells("123456789012"));
        assert!(tells("00000000-0000-4000-8000-000000000001"));
        assert!(!tells("preferences") && !tells("20260217") && !tells("ep-1"));
        for measure in ["2026-03-10", "2026-03-10T08:33:59Z", "20260310T0833", "192.168.10.20", "+4915112345"] {
            assert!(!tells(measure), "{measure}");
        }
    }

    #[test]
    fn ids_made_by_chance_are_told_from_names_of_things() {
        for (id, random) in [
            ("0b6f0bd2-5b1e-4c4a-9d0e-000000000001", true),
            ("case_aqckt3m9x2", true),
            ("gpt-4o-mini", false),
            ("text-embedding-3-small", false),
            ("case-0001", false),
            ("20260310", false),
        ] {
            assert_eq!(is_random(id), random, "{id}");
        }
    }
}
