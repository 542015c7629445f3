//! Needles to look for among bytes: each handle and each vector in every encoding in which a file may hold it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::spelling::{forms, json_escapes, percent_escapes};
use crate::memory::word_index::WordList;

/// Bytes of a needle at least: four are found by chance once in 4 GB of noise, and far more often in text.
pub const SHORTEST: usize = 5;
/// Bytes at the end of a handle that are looked for by themselves: what an index of words leaves when it shares their
/// beginnings.
pub const TAIL: usize = 8;
/// Numbers of a vector in one needle. A vector is longer than a page and never lies in one piece.
const RUN: usize = 8;
/// Bytes of a stored vector in one needle.
const PIECE: usize = 32;
/// Needles that are taken out of one vector at most.
const RUNS: usize = 6;

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeedleForm {
    /// UTF-8, as given.
    Utf8,
    /// UTF-8, composed (NFC), where that differs.
    Nfc,
    /// UTF-8, decomposed (NFD), where that differs.
    Nfd,
    /// UTF-8 in small letters, where that differs.
    Lower,
    /// UTF-8 in capital letters, where that differs.
    Upper,
    /// As JSON escapes it, where that differs; also JSON within JSON.
    Json,
    /// As a URL escapes it, where that differs.
    Percent,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
    /// Base64 at one of the three places at which it may be in what is encoded; both alphabets.
    Base64,
    /// Hexadecimal digits in small letters.
    HexLower,
    /// Hexadecimal digits in capitals.
    HexUpper,
    /// The last eight bytes.
    Tail,
    /// A run of a vector's float32 numbers, little-endian.
    Vector,
}

impl NeedleForm {
    /// Whether it is an encoding of which a part may stand within a text.
    #[must_use]
    pub fn is_encoded(self) -> bool {
        use NeedleForm::{Base64, HexLower, HexUpper, Utf16Be, Utf16Le};
        matches!(self, Base64 | HexLower | HexUpper | Utf16Le | Utf16Be)
    }
}

/// One thing to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needle<'a> {
    /// Number of the handle; vectors count on after the handles.
    pub handle: usize,
    /// Encoding.
    pub form: NeedleForm,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Surroundings of a needle in a value that stays: the same bytes in a file are taken for that value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NeedleContext {
    /// Place of the needle among all.
    pub needle: usize,
    /// The bytes before it, as far as the value goes.
    pub before: Vec<u8>,
    /// The bytes behind it.
    pub after: Vec<u8>,
}

/// Needle that is not looked for, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unusable {
    /// Number of the handle.
    pub handle: usize,
    /// Encoding; none for all of them.
    pub form: Option<NeedleForm>,
    /// Reason why it is not looked for.
    pub reason: String,
}

/// Everything that is looked for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Needles {
    /// Handles and vectors.
    pub handles: usize,
    /// The bytes of each needle; no two of one handle are the same.
    pub(super) words: WordList,
    /// The handle and the encoding of each.
    meant: Vec<(u32, NeedleForm)>,
    /// Handles or encodings whose needles would prove nothing.
    pub unusable: Vec<Unusable>,
    /// Places that values which stay account for.
    #[serde(default)]
    pub known: Vec<NeedleContext>,
}

impl Needles {
    /// Every encoding of some handles and vectors. Handles are numbered as given, from 0; vectors after them.
    #[must_use]
    pub fn new(handles: &[String], vectors: &[Vec<f32>]) -> Self {
        let mut all = Needles { handles: handles.len() + vectors.len(), ..Needles::default() };
        let mut tails = BTreeSet::new();
        for (number, handle) in handles.iter().enumerate() {
            all.add_handle(number, handle, &mut tails);
        }
        for (number, vector) in vectors.iter().enumerate() {
            all.add_vector(handles.len() + number, vector);
        }
        all
    }

    /// Adds a handle's encodings. A tail that several handles have, such as the end of one host's addresses, is looked for
    /// once: it tells no more of one than of another, and thousands of the same would take quadratic room.
    fn add_handle(&mut self, handle: usize, text: &str, known_tails: &mut BTreeSet<Vec<u8>>) {
        if text.len() < SHORTEST {
            self.unusable.push(Unusable { handle, form: None, reason: "too short to tell among bytes".to_owned() });
            return;
        }
        if plain_word(text) {
            let reason = "too common to tell among bytes: a word or number that others use too".to_owned();
            self.unusable.push(Unusable { handle, form: None, reason });
            return;
        }
        let mut seen = BTreeSet::new();
        for (form, bytes) in encodings(text) {
            if bytes.len() >= SHORTEST && seen.insert(bytes.clone()) {
                self.push(handle, form, &bytes);
            }
        }
        let tails: BTreeSet<Vec<u8>> =
            [text.to_owned(), text.to_lowercase()].iter().filter_map(|text| tail(text)).collect();
        for bytes in tails {
            if seen.insert(bytes.clone()) && known_tails.insert(bytes.clone()) {
                self.push(handle, NeedleForm::Tail, &bytes);
            }
        }
    }

    fn add_vector(&mut self, handle: usize, vector: &[f32]) {
        let runs: BTreeSet<Vec<u8>> = runs(vector).collect();
        if runs.is_empty() {
            let reason = "a vector without a run of numbers that differ: too common to tell".to_owned();
            self.unusable.push(Unusable { handle, form: Some(NeedleForm::Vector), reason });
        }
        runs.iter().for_each(|bytes| self.push(handle, NeedleForm::Vector, bytes));
    }

    /// Adds a vector as it is stored, in whatever form: pieces spread over its length. It counts after everything that is
    /// there already.
    pub fn add_stored(&mut self, bytes: &[u8]) {
        let handle = self.handles;
        self.handles += 1;
        let all: Vec<&[u8]> = bytes.chunks_exact(PIECE).collect();
        let step = all.len().div_ceil(RUNS).max(1);
        let telling = |piece: &&[u8]| piece.iter().collect::<BTreeSet<_>>().len() > PIECE / 4;
        let pieces: BTreeSet<&[u8]> = all.into_iter().step_by(step).filter(telling).collect();
        if pieces.is_empty() {
            let reason = "a vector without a run of numbers that differ: too common to tell".to_owned();
            self.unusable.push(Unusable { handle, form: Some(NeedleForm::Vector), reason });
        }
        pieces.into_iter().for_each(|bytes| self.push(handle, NeedleForm::Vector, bytes));
    }

    fn push(&mut self, handle: usize, form: NeedleForm, bytes: &[u8]) {
        self.words.push(bytes);
        self.meant.push((handle as u32, form));
    }

    /// The needles in order, by which they are numbered.
    pub fn iter(&self) -> impl Iterator<Item = Needle<'_>> {
        let meant = self.meant.iter().zip(self.words.iter());
        meant.map(|((handle, form), bytes)| Needle { handle: *handle as usize, form: *form, bytes })
    }

    /// The needle of a number.
    #[must_use]
    pub fn needle(&self, number: usize) -> Option<Needle<'_>> {
        let (handle, form) = *self.meant.get(number)?;
        Some(Needle { handle: handle as usize, form, bytes: self.words.word(number) })
    }

    /// These without the needles of a form. What is known of the others stays known.
    #[must_use]
    pub fn without(&self, form: NeedleForm) -> Self {
        let (handles, unusable) = (self.handles, self.unusable.clone());
        let mut left = Needles { handles, unusable, ..Needles::default() };
        let mut numbers = Vec::with_capacity(self.meant.len());
        for needle in self.iter() {
            numbers.push((needle.form != form).then_some(left.meant.len()));
            if needle.form != form {
                left.push(needle.handle, needle.form, needle.bytes);
            }
        }
        let moved = |context: &NeedleContext| {
            let needle = numbers.get(context.needle).copied().flatten()?;
            Some(NeedleContext { needle, ..context.clone() })
        };
        left.known = self.known.iter().filter_map(moved).collect();
        left
    }

    /// Forms that are looked for, by handle.
    #[must_use]
    pub fn forms(&self) -> BTreeMap<usize, BTreeSet<NeedleForm>> {
        let mut forms: BTreeMap<usize, BTreeSet<NeedleForm>> = BTreeMap::new();
        for needle in self.iter() {
            forms.entry(needle.handle).or_default().insert(needle.form);
        }
        forms
    }
}

/// A single word of a few letters, or a short number, is found in every text.
fn plain_word(text: &str) -> bool {
    let letters = text.len() < 7 && text.chars().all(char::is_alphabetic);
    let digits = text.len() < 7 && text.chars().all(|c| c.is_ascii_digit());
    letters || digits
}

/// The last bytes of a handle, from the start of a character on; none when the handle is hardly longer.
fn tail(text: &str) -> Option<Vec<u8>> {
    let from = text.len().checked_sub(TAIL).filter(|from| *from > 0 && text.is_char_boundary(*from))?;
    Some(text.as_bytes()[from..].to_vec())
}

/// The spellings of a text, then the encodings of each. The same bytes may come up more than once.
fn encodings(text: &str) -> Vec<(NeedleForm, Vec<u8>)> {
    let forms = forms(text);
    let told = |form: &str| match form {
        form if form == text => NeedleForm::Utf8,
        form if form == text.nfc().collect::<String>() => NeedleForm::Nfc,
        form if form == text.nfd().collect::<String>() => NeedleForm::Nfd,
        form if form == form.to_lowercase() => NeedleForm::Lower,
        _ => NeedleForm::Upper,
    };
    let mut all: Vec<(NeedleForm, Vec<u8>)> = forms.iter().map(|form| (told(form), form.as_bytes().to_vec())).collect();
    all.sort_unstable();
    for text in &forms {
        all.extend(json_escapes(text).into_iter().map(|escaped| (NeedleForm::Json, escaped.into_bytes())));
    }
    for text in &forms {
        all.extend(percent_escapes(text).into_iter().map(|escaped| (NeedleForm::Percent, escaped.into_bytes())));
        let units = || text.encode_utf16();
        all.push((NeedleForm::Utf16Le, units().flat_map(u16::to_le_bytes).collect()));
        all.push((NeedleForm::Utf16Be, units().flat_map(u16::to_be_bytes).collect()));
        all.extend(base64(text.as_bytes()).into_iter().map(|encoded| (NeedleForm::Base64, encoded.into_bytes())));
        all.push((NeedleForm::HexLower, hex::encode(text).into_bytes()));
        all.push((NeedleForm::HexUpper, hex::encode_upper(text).into_bytes()));
    }
    all
}

/// Returns the part of a text's base64 form that is the same whatever is before and after it: one for each of the
/// three places at which it may begin within a group of three bytes, in both alphabets.
#[must_use]
pub fn base64(bytes: &[u8]) -> Vec<String> {
    let mut all = BTreeSet::new();
    for before in 0..3_usize {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
        // Six bits a digit: those that bytes before or behind have a part in are left out.
        let first = (before * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            all.extend(encoded.get(first..last).map(str::to_owned));
        }
    }
    all.into_iter().collect()
}

/// Runs of a vector spread over its length, as bytes; without those that repeat a few numbers.
fn runs(vector: &[f32]) -> impl Iterator<Item = Vec<u8>> {
    let all: Vec<&[f32]> = vector.chunks_exact(RUN.min(vector.len().max(1))).collect();
    let step = all.len().div_ceil(RUNS).max(1);
    let telling =
        |run: &&[f32]| run.len() >= 2 && run.iter().map(|x| x.to_bits()).collect::<BTreeSet<_>>().len() * 2 > run.len();
    let bytes = |run: &[f32]| run.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let chosen: Vec<Vec<u8>> = all.into_iter().step_by(step).filter(telling).map(bytes).collect();
    chosen.into_iter()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(form: NeedleForm, text: &str) -> Vec<Vec<u8>> {
        let needles = Needles::new(&[text.to_owned()], &[]);
        needles.iter().filter(|n| n.form == form).map(|n| n.bytes.to_vec()).collect()
    }

    #[test]
    fn each_encoding_is_there_once() {
        let text = "Zoë.Núñez@x.example/\"a\"";
        assert!(bytes(NeedleForm::Utf8, text).contains(&text.as_bytes().to_vec()));
        assert!(bytes(NeedleForm::Lower, text).contains(&"zoë.núñez@x.example/\"a\"".as_bytes().to_vec()));
        assert!(bytes(NeedleForm::Nfd, text)[0].windows(3).any(|w| w == "e\u{308}".as_bytes()));
        let json = bytes(NeedleForm::Json, text);
        for spelled in [
            "Zoë.Núñez@x.example/\\\"a\\\"",
            "Zo\\u00eb.N\\u00fa\\u00f1ez@x.example/\\\"a\\\"",
            "Zo\\u00EB.N\\u00FA\\u00F1ez@x.example\\/\\\"a\\\"",
            "Zo\\\\u00eb.N\\\\u00fa\\\\u00f1ez@x.example/\\\\\\\"a\\\\\\\"",
        ] {
            assert!(json.contains(&spelled.as_bytes().to_vec()), "{spelled}");
        }
        let needles = Needles::new(&[text.to_owned()], &[]);
        let distinct: BTreeSet<&[u8]> = needles.iter().map(|n| n.bytes).collect();
        assert_eq!(distinct.len(), needles.iter().count());
    }

    #[test]
    fn what_is_too_short_or_too_common_is_said_and_not_used() {
        let handles = ["ann", "Maria", "4711", "user-1", "maria.lopez@x.example"].map(str::to_owned);
        let needles = Needles::new(&handles, &[vec![0.0; 64], vec![0.1, 0.2, 0.3]]);
        let unused: Vec<usize> = needles.unusable.iter().map(|u| u.handle).collect();
        assert_eq!(unused, [0, 1, 2, 5]);
        let used: Vec<usize> = needles.forms().into_keys().collect();
        assert_eq!(used, [3, 4, 6]);
    }

    #[test]
    fn a_tail_that_many_handles_share_is_looked_for_once() {
        let handles: Vec<String> = (0..300).map(|n| format!("alias{n}@host{n}.example")).collect();
        let needles = Needles::new(&handles, &[]);
        assert_eq!(needles.iter().filter(|n| n.form == NeedleForm::Tail && n.bytes == b".example").count(), 1);
        assert!((0..300).all(|number| needles.iter().any(|n| n.handle == number && n.form == NeedleForm::Utf8)));
    }

    #[test]
    fn what_is_known_of_needles_stays_theirs_when_others_are_left_out() {
        let mut needles = Needles::new(&["maria.lopez@x.example", "bob.smith@y.test"].map(str::to_owned), &[]);
        assert_eq!(bytes(NeedleForm::Tail, "maria.lopez@x.example"), [b".example"]);
        let known = |needle: usize| NeedleContext { needle, before: vec![needle as u8], after: Vec::new() };
        needles.known = (0..needles.iter().count()).map(known).collect();
        let left = needles.without(NeedleForm::Tail);
        assert!(!left.forms()[&0].contains(&NeedleForm::Tail));
        assert!(left.known.len() < needles.known.len() && left.known.len() == left.iter().count());
        for context in &left.known {
            assert_eq!(left.needle(context.needle), needles.needle(usize::from(context.before[0])));
        }
    }

    proptest! {
        #[test]
        fn base64_is_found_wherever_the_text_stands(
            before in prop::collection::vec(any::<u8>(), 0..7),
            text in "[a-zé@.|]{5,30}",
            after in prop::collection::vec(any::<u8>(), 0..7),
        ) {
            let whole: Vec<u8> = [before, text.as_bytes().to_vec(), after].concat();
            for encoded in [STANDARD_NO_PAD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                let found = base64(text.as_bytes()).iter().any(|needle| encoded.contains(needle.as_str()));
                prop_assert!(found, "{encoded}");
            }
        }

        #[test]
        fn json_of_a_text_holds_it_in_one_of_the_escapes(text in "[^\u{7f}-\u{9f}\u{8}\u{c}]{5,20}") {
            let within = |json: &str| json_escapes(&text).iter().any(|e| json.contains(e.as_str()));
            let once = serde_json::to_string(&serde_json::json!({ "a": text })).unwrap();
            prop_assert!(within(&once), "{once}");
            let twice = serde_json::to_string(&once).unwrap();
            prop_assert!(within(&twice), "{twice}");
        }

        #[test]
        fn a_vector_is_found_by_its_runs(vector in prop::collection::vec(-1.0_f32..1.0, 2..2_000)) {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            let needles = Needles::new(&[], &[vector]);
            for needle in needles.iter() {
                prop_assert!(bytes.windows(needle.bytes.len()).any(|w| w == needle.bytes));
            }
            prop_assert!(needles.iter().next().is_some());
        }
    }
}
