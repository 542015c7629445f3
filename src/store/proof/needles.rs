//! Needles to search for in bytes: each handle and each vector in every encoding that a file may contain.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::spelling::{forms, json_escapes, percent_escapes};
use crate::memory::mention::bytes_of_id;
use crate::memory::word_index::WordList;

/// Shortest needle in bytes: four occur by chance once in 4 GB of noise, and far more often in text.
pub const SHORTEST: usize = 5;
/// Bytes at the end of a handle that are also searched for: the part that a full-text index stores if it shares
/// prefixes.
pub const TAIL: usize = 8;
/// Bytes of a stored vector per needle.
const PIECE: usize = 32;
/// Most needles taken from one vector.
const PIECES: usize = 6;

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeedleForm {
    /// UTF-8, as given.
    Utf8,
    /// UTF-8, composed (NFC), if different.
    Nfc,
    /// UTF-8, decomposed (NFD), if different.
    Nfd,
    /// UTF-8 in lower case, if different.
    Lower,
    /// UTF-8 in upper case, if different.
    Upper,
    /// Escaped as in JSON, if different; also JSON within JSON.
    Json,
    /// Escaped as in a URL, if different.
    Percent,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-16, big-endian.
    Utf16Be,
    /// Base64 at one of three possible offsets; both alphabets.
    Base64,
    /// Hexadecimal in lower case.
    HexLower,
    /// Hexadecimal in upper case.
    HexUpper,
    /// The last eight bytes.
    Tail,
    /// A piece of a stored vector.
    Vector,
}

impl NeedleForm {
    /// Whether it is an encoding of which a text may contain a part.
    pub fn is_encoded(self) -> bool {
        use NeedleForm::{Base64, HexLower, HexUpper, Utf16Be, Utf16Le};
        matches!(self, Base64 | HexLower | HexUpper | Utf16Le | Utf16Be)
    }
}

/// One byte string to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needle<'a> {
    /// Number of the handle; vectors are numbered after the handles.
    pub handle: usize,
    /// Encoding.
    pub form: NeedleForm,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Context of a needle in a value that stays: the same bytes in a file are attributed to that value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NeedleContext {
    /// Number of the needle.
    pub needle: usize,
    /// The bytes before it, as far as the value goes.
    pub before: Vec<u8>,
    /// The bytes after it.
    pub after: Vec<u8>,
}

/// Handles and vectors to search for in the bytes of files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SoughtBytes {
    /// Handles.
    pub handles: Vec<String>,
    /// Vectors in stored form.
    pub vectors: Vec<Vec<u8>>,
    /// Whether the ends of handles are searched for too.
    pub tails: bool,
    /// Places explained by values that stay.
    pub known: Vec<NeedleContext>,
}

impl SoughtBytes {
    /// Creates a search for handles and their ends.
    pub fn of(handles: &[String]) -> Self {
        SoughtBytes { handles: handles.to_vec(), tails: true, ..SoughtBytes::default() }
    }

    /// The needles of all of it.
    pub fn needles(&self) -> Needles {
        Needles::new(&self.handles, &self.vectors, self.tails)
    }
}

/// Every encoding of some handles and vectors. Needles that would prove nothing are left out.
#[derive(Debug, Clone, Default)]
pub struct Needles {
    /// The bytes of each needle, without repeats for one handle.
    pub(super) words: WordList,
    /// The handle and the encoding of each.
    meant: Vec<(u32, NeedleForm)>,
}

impl Needles {
    /// Builds the needles of handles, numbered as given from 0, and of stored vectors, numbered after them. Needles
    /// have the same numbers with and without tails.
    pub fn new(handles: &[String], vectors: &[Vec<u8>], tails: bool) -> Self {
        let mut all = Needles::default();
        let telling = || handles.iter().enumerate().filter(|(_, text)| text.len() >= SHORTEST && !plain_word(text));
        for (number, handle) in telling() {
            all.add_handle(number, handle);
        }
        for (number, vector) in (handles.len()..).zip(vectors) {
            all.add_vector(number, vector);
        }
        let mut known_tails = BTreeSet::new();
        for (number, handle) in telling().filter(|_| tails) {
            all.add_tails(number, handle, &mut known_tails);
        }
        all
    }

    fn add_handle(&mut self, handle: usize, text: &str) {
        let mut seen = BTreeSet::new();
        for (form, bytes) in encodings(text) {
            if bytes.len() >= SHORTEST && seen.insert(bytes.clone()) {
                self.push(handle, form, &bytes);
            }
        }
    }

    /// Adds the end of a handle. An end that several handles share, such as a mail domain, is searched for only once,
    /// since it does not distinguish them.
    fn add_tails(&mut self, handle: usize, text: &str, known: &mut BTreeSet<Vec<u8>>) {
        for bytes in [text.to_owned(), text.to_lowercase()].iter().filter_map(|text| tail(text)) {
            if known.insert(bytes.clone()) {
                self.push(handle, NeedleForm::Tail, &bytes);
            }
        }
    }

    /// Adds pieces of a vector, spread over its length: a vector longer than a page is never stored in one piece.
    fn add_vector(&mut self, handle: usize, bytes: &[u8]) {
        let all: Vec<&[u8]> = bytes.chunks_exact(PIECE).collect();
        let step = all.len().div_ceil(PIECES).max(1);
        let telling = |piece: &&[u8]| piece.iter().collect::<BTreeSet<_>>().len() > PIECE / 4;
        let pieces: BTreeSet<&[u8]> = all.into_iter().step_by(step).filter(telling).collect();
        pieces.into_iter().for_each(|bytes| self.push(handle, NeedleForm::Vector, bytes));
    }

    fn push(&mut self, handle: usize, form: NeedleForm, bytes: &[u8]) {
        self.words.push(bytes);
        self.meant.push((handle as u32, form));
    }

    /// The needles, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = Needle<'_>> {
        let meant = self.meant.iter().zip(self.words.iter());
        meant.map(|((handle, form), bytes)| Needle { handle: *handle as usize, form: *form, bytes })
    }

    /// The needle with a number.
    pub fn needle(&self, number: usize) -> Option<Needle<'_>> {
        let (handle, form) = *self.meant.get(number)?;
        Some(Needle { handle: handle as usize, form, bytes: self.words.word(number) })
    }

    /// Encodings searched for, by handle.
    pub fn forms(&self) -> BTreeMap<usize, BTreeSet<NeedleForm>> {
        let mut forms: BTreeMap<usize, BTreeSet<NeedleForm>> = BTreeMap::new();
        for needle in self.iter() {
            forms.entry(needle.handle).or_default().insert(needle.form);
        }
        forms
    }
}

/// Whether a text is a single short word, or a short number, which every text may contain.
fn plain_word(text: &str) -> bool {
    let letters = text.len() < 7 && text.chars().all(char::is_alphabetic);
    let digits = text.len() < 7 && text.chars().all(|c| c.is_ascii_digit());
    letters || digits
}

/// The last bytes of a handle, from a character boundary on; `None` if the handle is hardly longer.
fn tail(text: &str) -> Option<Vec<u8>> {
    let from = text.len().checked_sub(TAIL).filter(|from| *from > 0 && text.is_char_boundary(*from))?;
    Some(text.as_bytes()[from..].to_vec())
}

/// The spellings of a text, then the encodings of each. The same bytes may be repeated.
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
    if let Some(id) = bytes_of_id(text) {
        all.extend(base64(&id).into_iter().map(|encoded| (NeedleForm::Base64, encoded.into_bytes())));
        all.push((NeedleForm::HexLower, hex::encode(id).into_bytes()));
        all.push((NeedleForm::HexUpper, hex::encode_upper(id).into_bytes()));
    }
    all
}

/// Returns the part of a text's base64 form that does not depend on its neighbours: one for each of the three possible
/// offsets within a group of three bytes, in both alphabets.
pub fn base64(bytes: &[u8]) -> Vec<String> {
    let mut all = BTreeSet::new();
    for before in 0..3_usize {
        let padded: Vec<u8> = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect();
        // Six bits per digit: digits that depend on bytes before or after are left out.
        let first = (before * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            all.extend(encoded.get(first..last).map(str::to_owned));
        }
    }
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(form: NeedleForm, text: &str) -> Vec<Vec<u8>> {
        let needles = Needles::new(&[text.to_owned()], &[], true);
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
        let needles = Needles::new(&[text.to_owned()], &[], true);
        let distinct: BTreeSet<&[u8]> = needles.iter().map(|n| n.bytes).collect();
        assert_eq!(distinct.len(), needles.iter().count());
    }

    #[test]
    fn what_is_too_short_or_too_common_is_not_used() {
        let handles = ["ann", "Maria", "4711", "user-1", "maria.lopez@x.example"].map(str::to_owned);
        let numbers: Vec<u8> = (0..64_u8).collect();
        let needles = Needles::new(&handles, &[vec![0; 256], numbers], true);
        let used: Vec<usize> = needles.forms().into_keys().collect();
        assert_eq!(used, [3, 4, 6]);
    }

    #[test]
    fn a_tail_that_many_handles_share_is_looked_for_once() {
        let handles: Vec<String> = (0..300).map(|n| format!("alias{n}@host{n}.example")).collect();
        let needles = Needles::new(&handles, &[], true);
        assert_eq!(needles.iter().filter(|n| n.form == NeedleForm::Tail && n.bytes == b".example").count(), 1);
        assert!((0..300).all(|number| needles.iter().any(|n| n.handle == number && n.form == NeedleForm::Utf8)));
    }

    #[test]
    fn needles_have_the_same_numbers_without_tails() {
        let handles = ["maria.lopez@x.example", "bob.smith@y.test"].map(str::to_owned);
        let vectors = [(0..64_u8).collect::<Vec<u8>>()];
        let [all, without] = [true, false].map(|tails| Needles::new(&handles, &vectors, tails));
        assert!(all.forms()[&0].contains(&NeedleForm::Tail) && !without.forms()[&0].contains(&NeedleForm::Tail));
        assert!(without.iter().eq(all.iter().take(without.iter().count())));
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
        fn a_vector_is_found_by_its_pieces(vector in prop::collection::vec(-1.0_f32..1.0, 16..2_000)) {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            let needles = Needles::new(&[], std::slice::from_ref(&bytes), true);
            for needle in needles.iter() {
                prop_assert!(bytes.windows(needle.bytes.len()).any(|w| w == needle.bytes));
            }
            prop_assert!(needles.iter().next().is_some());
        }
    }
}
