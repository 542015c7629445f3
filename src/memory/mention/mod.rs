//! Mentions of a person in plain text: one set of rules for planning an erasure, for the removal, and for the search
//! afterwards.
//!
//! The text must be plain: escapes of JSON, URLs and HTML, compression and other containers are already decoded. It is
//! compared without case, width, composition and invisible characters (soft hyphens, zero-width characters); all kinds
//! of apostrophes, of hyphens and of blanks (including line breaks) are equal. Diacritics distinguish names.
//!
//! The adjacent characters decide. Words end by UAX 29, at every punctuation mark except `_`, and between two scripts
//! (`mail@x에게`); Chinese, Japanese, Thai, Lao, Khmer and Burmese have no word ends.
//!
//! | next to it | id | e-mail | name of several words | name of one word | phone |
//! |---|---|---|---|---|---|
//! | nothing of the same word | certain | certain | certain | certain | certain |
//! | `_` | possible | possible | possible | possible | possible |
//! | a digit | possible; after a digit another number: none | possible | possible | possible | none |
//! | a letter | possible where it is long and mixed (`xuser-ana`), else another word: none | possible | possible | none; possible in Korean | possible |
//! | `.` `-` `+` before, after a letter or digit | certain | possible | `-`: possible | possible | certain |
//! | `.` or `-` behind, before a letter or digit | certain | possible | `-`: possible | possible | none after `.` |
//! | `@` behind, before a letter or digit | possible | certain | certain | possible | certain |
//! | `\n` and the like, not as JSON | possible | possible | possible | possible | certain |
//!
//! Further:
//! - A name is certain also as `Last, First`. Possible are: the other order without a comma, initials (`D. O'Malley`,
//!   `Dmitri O.`), a middle name more or less, parts run together or joined by `_ . - +`, no apostrophe or hyphen,
//!   other marks or markup between the parts (`Dmitri</b> <b>O'Malley`). A part of a name alone is not a mention.
//! - An apostrophe may be written as in SQL or a shell: `O''Malley`, `O'\\''Malley`.
//! - A name under five letters is possible, and certain as the whole value of a column of names.
//! - An id that is short, a number, or a usual word of this database ([`SoughtHandle::common`]) is possible, and
//!   certain as the whole value where nothing but ids of people stands. Within a time, a date or a longer number it is
//!   not a mention.
//! - An id that is a UUID is also found in the other forms of its bytes: digits without hyphens, base64.
//! - What is within a handle that someone else is known by is that person's.
//! - A handle that someone else is known by too is possible wherever it stands. Ids are distinguished by their
//!   spelling: one that another equals but for blanks at its ends is possible in a text.

mod beside;
mod binary;
mod fold;
mod long;
mod name;
mod phone;

use std::collections::{BTreeMap, HashMap, HashSet};

use aho_corasick::{AhoCorasick, MatchKind};
use serde::Serialize;

use beside::{BesidePlace, beside};
pub use beside::{begins, ends};
pub use binary::{binary_forms, bytes_of_id};
pub use fold::folded;
use fold::{TracedText, fold, is_gap};
use long::LongWords;
pub use phone::Phone;

use super::sieve::WordSieve;

/// Letters below which a name is never certain.
const NAME_LETTERS: usize = 5;
/// Characters from which a mixed id is distinctive even with letters next to it.
const STURDY: usize = 8;
/// Most letters of a word between the first and the last name.
const MIDDLE: usize = 24;
/// Most bytes of punctuation and markup between the parts of a name.
const BETWEEN: usize = 64;

/// Certainty that a place means the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The place means the person.
    Certain,
    /// The place may mean the person, with the reason for doubt in a few words.
    Possible(&'static str),
}

impl Certainty {
    /// The word used in plans.
    pub fn word(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Possible(_) => "possible",
        }
    }

    /// Whether it is certain.
    pub fn is_certain(self) -> bool {
        self == Certainty::Certain
    }

    /// The less certain of two.
    fn and(self, other: Certainty) -> Certainty {
        if self.is_certain() { other } else { self }
    }
}

/// Kind of a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HandleShape {
    /// An id, a login.
    Id,
    /// An e-mail address.
    Mail,
    /// A name.
    Name,
    /// A telephone number.
    Phone,
    /// The id of a conversation.
    Session,
    /// The id of a profile.
    Profile,
}

impl HandleShape {
    /// Whether it identifies rows of the person, rather than the person.
    fn is_of_rows(self) -> bool {
        matches!(self, HandleShape::Session | HandleShape::Profile)
    }

    /// The shape of a handle of a kind: `name`, `e-mail`, `phone`, `id`, or one that does not tell.
    pub fn of(kind: &str, value: &str) -> HandleShape {
        let plain = folded(value.trim());
        match kind {
            "name" => HandleShape::Name,
            "id" => HandleShape::Id,
            "session" => HandleShape::Session,
            "profile" => HandleShape::Profile,
            _ if plain.contains('@') && !plain.contains(' ') => HandleShape::Mail,
            _ if Phone::new(&plain).is_some() => HandleShape::Phone,
            _ if name::is_name(&plain) => HandleShape::Name,
            _ => HandleShape::Id,
        }
    }
}

/// One thing to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoughtHandle {
    /// Id, name, address or number by which the person is known.
    pub value: String,
    /// Kind of the handle.
    pub shape: HandleShape,
    /// Whether the handle is a common word or number in this database, or too short: see [`is_plain`].
    pub common: bool,
}

/// Context of a text: what its column, or the last key of its path, is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MentionText {
    /// The column, or the last key of the path, is about people.
    pub people: bool,
    /// True when the place is about names of people.
    pub names: bool,
    /// True when the place holds ids of conversations.
    pub sessions: bool,
    /// True when the place holds ids of profiles.
    pub profiles: bool,
    /// Whether such ids are the only content, by the whole name of the place or by the layout: an id that is a common
    /// word here means the person only there.
    pub exact: bool,
    /// Whether the keys of an object here are ids or names of people.
    pub keys: bool,
    /// True when the value is a number, not a text.
    pub number: bool,
}

impl MentionText {
    /// Context in which every kind of handle is searched for.
    pub const ANY: MentionText = MentionText {
        people: true,
        names: true,
        sessions: true,
        profiles: true,
        exact: true,
        keys: true,
        number: false,
    };

    /// Whether handles of a shape are expected here.
    pub fn holds(self, shape: HandleShape) -> bool {
        match shape {
            HandleShape::Session => self.sessions,
            HandleShape::Profile => self.profiles,
            HandleShape::Name => self.names || self.people,
            HandleShape::Id | HandleShape::Mail | HandleShape::Phone => self.people,
        }
    }
}

/// A place where someone may be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MentionSpan {
    /// Number of the handle, as given.
    pub handle: usize,
    /// First byte.
    pub start: usize,
    /// Byte after the last one.
    pub end: usize,
    /// Certainty that the span means the person.
    pub certainty: Certainty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HandleMeans {
    /// A handle in one of its written forms.
    Handle { handle: usize, certainty: Certainty, capital: bool, looks: WordLooks },
    /// The first part of a name, which the other part may follow; after a first name, also with a further word between
    /// them.
    Parted { handle: usize, other: String, is_first: bool, looks: WordLooks },
    /// Another person's handle; `exactly` distinguishes it if the person's own differs only in case or surrounding
    /// blanks.
    Other { exactly: Option<ExactSpelling> },
}

/// Spelling of another person's id that nearly equals the person's own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ExactSpelling {
    /// The id, as a whole text.
    whole: String,
    /// The id within a text; `None` if the person's own looks the same there.
    part: Option<String>,
}

/// A handle, as it was given.
#[derive(Debug, Clone, Copy)]
struct KnownHandle {
    shape: HandleShape,
    /// Certainty of the handle within a text.
    told: Certainty,
    /// Whether someone else has it too.
    is_shared: bool,
}

/// Properties of a word's letters, computed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WordLooks {
    /// Only letters.
    letters_only: bool,
    /// Only digits.
    digits_only: bool,
    /// Only Korean letters.
    korean: bool,
    /// A single word, as in names.
    one: bool,
    /// Enough letters for a name to be certain.
    enough: bool,
    /// Enough characters for a mixed id to be distinctive.
    sturdy: bool,
}

impl WordLooks {
    fn of(word: &str) -> Self {
        WordLooks {
            letters_only: word.chars().all(char::is_alphabetic),
            digits_only: word.chars().all(char::is_numeric),
            korean: word.chars().all(|c| ('\u{ac00}'..='\u{d7a3}').contains(&c)),
            one: !word.contains([' ', '.', ',', '_', '-', '+']),
            enough: word.chars().filter(|c| c.is_alphabetic()).count() >= NAME_LETTERS,
            sturdy: word.chars().count() >= STURDY,
        }
    }
}

/// Digits from which an equal number may be an id anywhere: counts and measurements hardly have so many.
pub const MANY_DIGITS: usize = 9;
/// Digits beyond which an equal number is the id or telephone number: times in seconds have as many.
const TELLING_DIGITS: usize = 10;

/// A number without zero decimals.
fn whole_number(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, decimals)) if decimals.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
}

/// Handles prepared for a search.
#[derive(Debug)]
pub struct MentionFinder {
    handles: Vec<KnownHandle>,
    phones: Vec<(usize, Phone)>,
    /// Handles that are integers.
    numbers: HashMap<String, usize>,
    /// Words, with the meaning of each.
    words: AhoCorasick,
    means: Vec<HandleMeans>,
    /// Ids of conversations and banks, which may be very many, with the numbers of their handles.
    long: LongWords,
    /// Every ASCII text with one of the words contains one of these.
    first: AhoCorasick,
    /// Cheap filter for texts with none of these; `None` if one of them is very short.
    sieve: Option<WordSieve>,
    /// Finds digits of a text that may belong to a telephone number.
    digits: Option<WordSieve>,
}

/// Bytes checked at once for digits.
const PART: usize = 32;
impl MentionFinder {
    /// Searches for handles, numbered as given. Matches within handles of `others` belong to them.
    ///
    /// # Errors
    /// More handles than can be searched for at once.
    pub fn new(handles: impl IntoIterator<Item = SoughtHandle>, others: &[String]) -> Result<Self, String> {
        let (mut words, mut means): (Vec<String>, Vec<HandleMeans>) = (Vec::new(), Vec::new());
        let mut add = |text: String, meaning: HandleMeans| {
            words.push(text);
            means.push(meaning);
        };
        let others: Vec<(&str, String)> =
            others.iter().map(|other| (other.as_str(), folded(other).trim().to_owned())).collect();
        let mut theirs: HashMap<&str, Vec<&str>> = HashMap::new();
        for (other, plain) in &others {
            theirs.entry(plain).or_default().push(other);
        }
        let (mut known, mut phones, mut long) = (Vec::new(), Vec::new(), LongWords::default());
        let (mut mine, mut shared, mut numbers) = (HashMap::new(), HashSet::new(), HashMap::new());
        for (i, sought) in handles.into_iter().enumerate() {
            let plain = folded(&sought.value).trim().to_owned();
            let alike = theirs.get(plain.as_str()).map(Vec::as_slice).unwrap_or_default();
            let is_shared = match sought.shape {
                HandleShape::Id | HandleShape::Session | HandleShape::Profile => alike.contains(&&*sought.value),
                HandleShape::Mail | HandleShape::Name | HandleShape::Phone => !alike.is_empty(),
            };
            let told = match () {
                () if alike.iter().any(|other| is_shared || other.trim() == sought.value.trim()) => OF_OTHERS_TOO,
                () if sought.common => A_COMMON_WORD,
                () => Certainty::Certain,
            };
            known.push(KnownHandle { shape: sought.shape, told, is_shared });
            if plain.is_empty() {
                continue;
            }
            if plain.parse::<i64>().is_ok_and(|number| number.to_string() == plain) {
                numbers.insert(plain.clone(), i);
            }
            if sought.shape == HandleShape::Phone {
                phones.extend(Phone::new(&plain).map(|phone| (i, phone)));
            }
            if is_shared {
                shared.insert(plain.clone());
            }
            if !alike.is_empty() {
                mine.insert(plain.clone(), sought.value.trim().to_owned());
            }
            let written = match sought.shape {
                HandleShape::Name => name::written(&plain),
                _ => name::written(&plain).into_iter().take(1).collect(),
            };
            if sought.shape == HandleShape::Id {
                let forms: HashSet<String> = binary_forms(&sought.value).iter().map(|form| folded(form)).collect();
                for form in forms.into_iter().filter(|form| *form != plain) {
                    let looks = WordLooks::of(&form);
                    add(form, HandleMeans::Handle { handle: i, certainty: Certainty::Certain, capital: false, looks });
                }
            }
            if matches!(sought.shape, HandleShape::Session | HandleShape::Profile) && long::is_long(&plain) {
                long.push(&plain, i);
                continue;
            }
            for way in written {
                let looks = WordLooks::of(&way.text);
                for text in name::quoted(way.text) {
                    let (certainty, capital) = (way.certainty, way.capital);
                    add(text, HandleMeans::Handle { handle: i, certainty, capital, looks });
                }
            }
            if let Some((first, last)) = name::ends_of(&plain).filter(|_| sought.shape == HandleShape::Name) {
                let looks = WordLooks::of(&plain);
                for (word, other, is_first) in [(&first, &last, true), (&last, &first, false)] {
                    add(word.clone(), HandleMeans::Parted { handle: i, other: other.clone(), is_first, looks });
                }
            }
        }
        for (other, plain) in others.iter().filter(|(_, plain)| !plain.is_empty() && !shared.contains(plain)) {
            let exactly = mine.get(plain).map(|own| ExactSpelling {
                whole: (*other).to_owned(),
                part: Some(other.trim().to_owned()).filter(|part| part != own),
            });
            for text in name::quoted(plain.clone()) {
                add(text, HandleMeans::Other { exactly: exactly.clone() });
            }
        }
        let first: HashSet<&str> = words
            .iter()
            .zip(&means)
            .filter(|(_, meaning)| !matches!(meaning, HandleMeans::Other { .. }))
            .filter_map(|(word, _)| long::longest_part(word))
            .filter(|part| part.is_ascii())
            .collect();
        let sieve = WordSieve::new(|each| first.iter().for_each(|part| each(part.as_bytes())));
        let too_many = |error: aho_corasick::BuildError| format!("too much to look for at once: {error}");
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::Standard);
        Ok(MentionFinder {
            words: builder.build(&words).map_err(too_many)?,
            first: builder.ascii_case_insensitive(true).build(first).map_err(too_many)?,
            sieve,
            digits: WordSieve::new(|each| phones.iter().flat_map(|(_, phone)| phone.rows()).for_each(each)),
            handles: known,
            phones,
            numbers,
            means,
            long: long.ready(),
        })
    }

    /// Every place where the person is or may be named, in order and without overlaps.
    pub fn find(&self, text: &str, place: MentionText) -> Vec<MentionSpan> {
        if place.number {
            return self.number(text, place);
        }
        if !self.may_be_in(text) {
            return Vec::new();
        }
        let mut found = FoundMention::default();
        self.plain(text, place, &mut found);
        found.told()
    }

    /// Whether a text, or a part of it, may name the person. False is certain; cheap.
    pub fn may_be_in(&self, text: &str) -> bool {
        if text.is_ascii() {
            let may_be_word = self.sieve.as_ref().is_none_or(|sieve| sieve.may_be_in(text));
            return may_be_word && self.first.is_match(text) || self.long.may_be_in(text) || self.may_call(text);
        }
        let plain = folded(text);
        self.words.is_match(&plain) || self.long.may_be_in(&plain) || self.may_call(&plain)
    }

    /// Whether an ASCII or folded text may contain one of the telephone numbers.
    fn may_call(&self, text: &str) -> bool {
        if self.phones.is_empty() {
            return false;
        }
        let count = text.bytes().filter(u8::is_ascii_digit).count();
        if count < Phone::SHORTEST {
            return false;
        }
        let mut digits = Vec::with_capacity(count);
        for part in text.as_bytes().chunks(PART) {
            // Branch-free, because most parts contain no digit.
            if part.iter().fold(false, |any, byte| any | byte.is_ascii_digit()) {
                digits.extend(part.iter().filter(|byte| byte.is_ascii_digit()));
            }
        }
        self.digits.as_ref().is_none_or(|sieve| sieve.next(&digits, 0).is_some())
    }

    /// Whether an integer may be a handle. False is certain.
    pub fn may_be_number(&self, number: i64) -> bool {
        let is_long = || number.unsigned_abs().checked_ilog10().is_some_and(|log| log as usize + 1 >= Phone::SHORTEST);
        !self.numbers.is_empty() || !self.phones.is_empty() && is_long()
    }

    /// A number means the person in columns about people; an id or a telephone number of many digits, everywhere.
    fn number(&self, text: &str, place: MentionText) -> Vec<MentionSpan> {
        let span = |handle, certainty| MentionSpan { handle, start: 0, end: text.len(), certainty };
        let text = whole_number(text);
        let certainty = if place.people || text.len() > TELLING_DIGITS { Certainty::Certain } else { A_NUMBER };
        let of_others = |handle: usize| if self.handles[handle].is_shared { OF_OTHERS_TOO } else { Certainty::Certain };
        let tells = |known: KnownHandle| place.holds(known.shape) && (place.exact || known.told.is_certain());
        if let Some(handle) = self.numbers.get(text) {
            let known = self.handles[*handle];
            if tells(known) {
                return vec![span(*handle, of_others(*handle))];
            }
            if text.len() >= MANY_DIGITS && known.shape == HandleShape::Id && known.told.is_certain() {
                return vec![span(*handle, certainty)];
            }
        }
        let whole = |phone: &Phone| phone.find(text).iter().any(|(start, end, _)| (*start, *end) == (0, text.len()));
        let called = self.phones.iter().find(|(_, phone)| whole(phone));
        called.map(|(handle, _)| span(*handle, certainty.and(of_others(*handle)))).into_iter().collect()
    }

    /// Finds mentions in an unescaped text, and adds them to `found`.
    fn plain(&self, text: &str, place: MentionText, found: &mut FoundMention) {
        let trace = fold(text);
        let near = FoldedText { text, trace: &trace };
        for hit in self.words.find_overlapping_iter(&trace.text) {
            let (start, end) = (hit.start(), hit.end());
            match &self.means[hit.pattern().as_usize()] {
                HandleMeans::Handle { handle, certainty, capital, looks } => {
                    let told = self.judge(*handle, *looks, &near, (start, end), place);
                    let span = near.span(start, end);
                    let small = text[span.0..].chars().next().is_some_and(char::is_lowercase);
                    if let Some(told) = told.filter(|_| !*capital || !small) {
                        found.spans.push(MentionSpan {
                            handle: *handle,
                            start: span.0,
                            end: span.1,
                            certainty: certainty.and(told),
                        });
                    }
                }
                HandleMeans::Parted { handle, other, is_first, looks } => {
                    let Some(behind) = trace.text.get(end..) else { continue };
                    let middle = middle(behind, other).filter(|_| *is_first).map(|length| (length, MIDDLE_NAME));
                    let parted = middle.or_else(|| Some((across(behind, other)?, MARKS_BETWEEN)));
                    if let Some((end, certainty)) = parted.map(|(length, certainty)| (end + length, certainty))
                        && let Some(told) = self.judge(*handle, *looks, &near, (start, end), place)
                    {
                        let (start, end) = near.span(start, end);
                        found.spans.push(MentionSpan { handle: *handle, start, end, certainty: certainty.and(told) });
                    }
                }
                HandleMeans::Other { exactly } => {
                    let span = near.span(start, end);
                    let is_it = |exactly: &ExactSpelling| {
                        text == exactly.whole || exactly.part.as_deref() == text.get(span.0..span.1)
                    };
                    let theirs = exactly.as_ref().is_none_or(is_it);
                    if theirs && near.before(start) != BesidePlace::Letter && near.behind(end) != BesidePlace::Letter {
                        found.others.push(span);
                    }
                }
            }
        }
        self.long.find(&trace.text, |start, end, handle| {
            let looks = WordLooks::of(&trace.text[start..end]);
            if let Some(certainty) = self.judge(handle, looks, &near, (start, end), place) {
                let (start, end) = near.span(start, end);
                found.spans.push(MentionSpan { handle, start, end, certainty });
            }
        });
        for (handle, phone) in &self.phones {
            for (start, end, joined) in phone.find(&trace.text) {
                let certainty = if joined { WITH_LETTERS } else { self.handles[*handle].told };
                let (start, end) = near.span(start, end);
                found.spans.push(MentionSpan { handle: *handle, start, end, certainty });
            }
        }
    }

    /// Rates how certain it is that a handle at a place of a folded text means the person; `None` if it does not.
    fn judge(
        &self,
        handle: usize,
        looks: WordLooks,
        near: &FoldedText<'_>,
        (start, end): (usize, usize),
        place: MentionText,
    ) -> Option<Certainty> {
        let KnownHandle { shape, told: in_text, is_shared } = *self.handles.get(handle)?;
        let name = shape == HandleShape::Name;
        let whole = near.is_whole(start, end);
        // In an owner column, that id is a person, not a conversation or bank.
        if whole && place.people && place.exact && !place.holds(shape) && shape.is_of_rows() {
            return None;
        }
        let tells = name || place.exact || in_text != A_COMMON_WORD;
        if whole && place.holds(shape) && tells && !is_shared {
            return Some(Certainty::Certain);
        }
        let told = if whole { Certainty::Certain } else { near.judge(shape, looks, start, end)? };
        Some(told.and(match () {
            () if !in_text.is_certain() => in_text,
            () if name && !looks.enough => A_SHORT_NAME,
            () => Certainty::Certain,
        }))
    }
}

const A_NUMBER: Certainty = Certainty::Possible("the same number");
/// Certainty of an id that is short, a number or a common word.
pub const A_COMMON_WORD: Certainty = Certainty::Possible("a common word here");
const OF_OTHERS_TOO: Certainty = Certainty::Possible("other people have it too");
const A_SHORT_NAME: Certainty = Certainty::Possible("a short name");
const WITH_LETTERS: Certainty = Certainty::Possible("with letters next to it");
const LONGER_ADDRESS: Certainty = Certainty::Possible("part of a longer address");
const LONGER_NAME: Certainty = Certainty::Possible("part of a longer name");
const MIDDLE_NAME: Certainty = Certainty::Possible("with a middle name");
const MARKS_BETWEEN: Certainty = Certainty::Possible("with marks between its parts");

/// A folded text, with its surroundings.
struct FoldedText<'a> {
    text: &'a str,
    trace: &'a TracedText,
}

impl FoldedText<'_> {
    /// The position in the original text.
    fn span(&self, start: usize, end: usize) -> (usize, usize) {
        let (mut start, mut end) = (self.trace.start(start), self.trace.end(end).min(self.text.len()));
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        (start.min(end), end)
    }

    /// Whether only blanks are around a place.
    fn is_whole(&self, start: usize, end: usize) -> bool {
        let text = &self.trace.text;
        let blank = |at: &str| at.is_empty() || at == " ";
        blank(&text[..start]) && blank(&text[end..])
    }

    fn letters_before(&self, at: usize) -> impl Iterator<Item = char> {
        self.trace.text[..at].chars().rev()
    }

    fn letters_behind(&self, at: usize) -> impl Iterator<Item = char> {
        self.trace.text[at..].chars()
    }

    fn before(&self, start: usize) -> BesidePlace {
        let inner = self.letters_behind(start).next().unwrap_or(' ');
        let at = self.trace.start(start);
        let gap = self.text.get(..at).and_then(|text| text.chars().next_back()).is_some_and(is_gap);
        if gap { BesidePlace::Free } else { beside(self.letters_before(start).next(), inner, true) }
    }

    fn behind(&self, end: usize) -> BesidePlace {
        let inner = self.letters_before(end).next().unwrap_or(' ');
        let at = self.trace.end(end);
        let gap = self.text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(is_gap);
        if gap { BesidePlace::Free } else { beside(self.letters_behind(end).next(), inner, false) }
    }

    /// Whether one of some marks is before a place, preceded by a letter or digit, so that a word continues there.
    fn continues_before(&self, start: usize, marks: &str) -> bool {
        let mut letters = self.letters_before(start);
        letters.next().is_some_and(|c| marks.contains(c)) && letters.next().is_some_and(char::is_alphanumeric)
    }

    fn continues_behind(&self, end: usize, marks: &str, by: impl Fn(char) -> bool) -> bool {
        let mut letters = self.letters_behind(end);
        letters.next().is_some_and(|c| marks.contains(c)) && letters.next().is_some_and(by)
    }

    /// Whether the mark at a place is a dash between words, and not a hyphen within one.
    fn is_dash(&self, at: usize) -> bool {
        let at = self.trace.start(at);
        self.text.get(at..).and_then(|rest| rest.chars().next()).is_some_and(|c| ('\u{2012}'..='\u{2015}').contains(&c))
    }

    fn judge(&self, shape: HandleShape, looks: WordLooks, start: usize, end: usize) -> Option<Certainty> {
        let (before, behind) = (self.before(start), self.behind(end));
        let letter = before == BesidePlace::Letter || behind == BesidePlace::Letter;
        if letter && before == BesidePlace::Letter && behind != BesidePlace::Letter && self.escape_before(start) {
            return Some(Certainty::Possible("after what may be an escape"));
        }
        let told = match shape {
            HandleShape::Id | HandleShape::Session | HandleShape::Profile => {
                self.id(looks, (start, before), (end, behind), letter)?
            }
            HandleShape::Mail => self.mail(start, end, letter),
            HandleShape::Name => self.name(looks, start, end, letter)?,
            HandleShape::Phone => {
                let digit = before == BesidePlace::Digit || behind == BesidePlace::Digit;
                if digit { None } else { Some(if letter { WITH_LETTERS } else { Certainty::Certain }) }?
            }
        };
        Some(told.and(match (before, behind) {
            (BesidePlace::Joined, _) | (_, BesidePlace::Joined) => Certainty::Possible("next to `_`"),
            (BesidePlace::Digit, _) | (_, BesidePlace::Digit) => Certainty::Possible("next to a digit"),
            _ => Certainty::Certain,
        }))
    }

    fn id(
        &self,
        looks: WordLooks,
        (start, before): (usize, BesidePlace),
        (end, behind): (usize, BesidePlace),
        letter: bool,
    ) -> Option<Certainty> {
        let digit = |c: Option<char>| c.is_some_and(char::is_numeric);
        let another_number = before == BesidePlace::Digit && digit(self.letters_behind(start).next())
            || behind == BesidePlace::Digit && digit(self.letters_before(end).next());
        if another_number || looks.digits_only && self.within_number(start, end) {
            return None;
        }
        let plain = looks.letters_only;
        if letter {
            return (looks.korean || !plain && looks.sturdy).then_some(WITH_LETTERS);
        }
        let mail = self.continues_behind(end, "@", char::is_alphanumeric);
        let host = plain && self.continues_before(start, "@");
        Some(if mail || host { LONGER_ADDRESS } else { Certainty::Certain })
    }

    fn mail(&self, start: usize, end: usize, letter: bool) -> Certainty {
        let behind = self.continues_behind(end, ".-", char::is_alphanumeric);
        let longer = behind && !self.starts_sentence(end) && !self.is_dash(end);
        if letter || longer || self.continues_before(start, ".-+") { LONGER_ADDRESS } else { Certainty::Certain }
    }

    fn name(&self, looks: WordLooks, start: usize, end: usize, letter: bool) -> Option<Certainty> {
        let one = looks.one;
        if letter {
            return (!one || looks.korean).then_some(WITH_LETTERS);
        }
        let marks = if one { "-'.@" } else { "-'" };
        let before = self.continues_before(start, marks) && !self.is_dash(start.saturating_sub(1));
        // The `'s` of `Ann's` does not belong to the name.
        let marks = if one { "-.@" } else { "-" };
        let behind = self.continues_behind(end, marks, char::is_alphanumeric) && !self.is_dash(end);
        let sentence = one && self.starts_sentence(end);
        Some(if before || behind && !sentence { LONGER_NAME } else { Certainty::Certain })
    }

    /// Whether a dot and a capital letter follow a place: a missing space.
    fn starts_sentence(&self, end: usize) -> bool {
        let mut behind = self.text.get(self.trace.end(end)..).unwrap_or_default().chars();
        behind.next() == Some('.') && behind.next().is_some_and(char::is_uppercase)
    }

    /// Whether a mark and a further digit are adjacent: a time, a date, a version, a fraction.
    fn within_number(&self, start: usize, end: usize) -> bool {
        let digit = |c: char| c.is_numeric();
        let mut before = self.letters_before(start);
        let mark = |c: char| ":.-/,+".contains(c);
        before.next().is_some_and(mark) && before.next().is_some_and(digit)
            || self.continues_behind(end, ":.-/,+", digit)
    }

    /// Whether the letter before a place may be the end of an unresolved escape: `
    /// `, `\u00e9`, `%20`.
    fn escape_before(&self, start: usize) -> bool {
        let before = &self.trace.text.as_bytes()[..start];
        let hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
        match before {
            [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
            [.., b'%', a, b] if hex(&[*a, *b]) => true,
            [.., b'\\', b'u', a, b, c, d] => hex(&[*a, *b, *c, *d]),
            _ => false,
        }
    }
}

/// Bytes from the end of a first name to the end of the last one, with one further word between them.
fn middle(behind: &str, last: &str) -> Option<usize> {
    let (word, rest) = behind.strip_prefix(' ')?.split_once(' ')?;
    let name = word.strip_suffix('.').unwrap_or(word).trim_matches(['"', '\'', '(', ')', '\u{201c}', '\u{201d}']);
    let fits = !name.is_empty()
        && name.chars().count() <= MIDDLE
        && name.chars().all(|c| c.is_alphabetic() || c == '\'' || c == '-');
    (fits && name != "and" && rest.starts_with(last)).then(|| 2 + word.len() + last.len())
}

/// Bytes from the end of one part of a name to the end of the other, with only punctuation, markup and escaped blanks
/// between them.
fn across(behind: &str, other: &str) -> Option<usize> {
    let mut at = 0;
    while at <= BETWEEN {
        let rest = behind.get(at..)?;
        if at > 0 && rest.starts_with(other) {
            return Some(at + other.len());
        }
        let tag = || rest[1..].find(['<', '>']).filter(|end| rest[1 + end..].starts_with('>'));
        at += match rest.chars().next()? {
            '<' => tag().map_or(1, |end| end + 2),
            '\\' if rest[1..].starts_with(['n', 'r', 't']) => 2,
            mark if !mark.is_alphanumeric() => mark.len_utf8(),
            _ => return None,
        };
    }
    None
}

/// Whether a handle looks like an ordinary word or number, or is short.
pub fn is_plain(value: &str) -> bool {
    let plain = folded(value);
    let short = plain.chars().count() < 6;
    short || plain.chars().all(char::is_alphabetic) || plain.chars().all(|c| !c.is_alphabetic())
}

/// Matches before other people's are removed.
#[derive(Debug, Default)]
struct FoundMention {
    spans: Vec<MentionSpan>,
    others: Vec<(usize, usize)>,
}

impl FoundMention {
    /// Removes matches within other people's handles, and overlaps: certain before possible, earlier before later,
    /// longer before shorter.
    fn told(self) -> Vec<MentionSpan> {
        let FoundMention { mut spans, mut others } = self;
        others.sort_unstable();
        // The furthest end of all that begin up to a place.
        let mut furthest = 0;
        for other in &mut others {
            furthest = furthest.max(other.1);
            other.1 = furthest;
        }
        spans.retain(|span| {
            let next = others.partition_point(|(start, _)| *start <= span.start);
            next.checked_sub(1).is_none_or(|at| others[at].1 < span.end)
        });
        spans.sort_by_key(|span| (!span.certainty.is_certain(), span.start, std::cmp::Reverse(span.end)));
        let mut told: BTreeMap<usize, MentionSpan> = BTreeMap::new();
        for span in spans {
            let before = told.range(..span.end).next_back().is_some_and(|(_, other)| other.end > span.start);
            if !before {
                told.insert(span.start, span);
            }
        }
        told.into_values().collect()
    }
}

#[cfg(test)]
mod tests;
