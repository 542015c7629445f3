//! Base64 and hexadecimal words within texts.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::Layer;

/// Shortest word that counts as an encoding, in letters.
pub(super) const SHORTEST: usize = 16;
/// Letters from which a base64 word without text is reported.
const BLOB: usize = 256;
/// Letters on a line of multi-line base64.
const LINE: usize = 60;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true)
    .with_encode_padding(false);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// A part of a text that may be encoded.
#[derive(Debug)]
pub(super) struct EncodedWord {
    pub layer: Layer,
    /// The letters of the word in the text, without padding.
    pub range: Range<usize>,
    /// Decoded bytes.
    pub inner: Vec<u8>,
    form: WordForm,
    /// Number of `=` after it.
    padding: usize,
    /// Whether it has padding where needed.
    padded: bool,
}

#[derive(Debug, Clone, Copy)]
enum WordForm {
    Lower,
    Upper,
    Standard,
    UrlSafe,
    /// Standard, in lines of that many letters, separated by one byte or two.
    Lines(usize, bool),
}

pub(super) const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

impl EncodedWord {
    /// Whether it is too long to be an ordinary word, whatever it encodes.
    pub fn is_blob(&self, text: &str) -> bool {
        let letters = text[self.range.clone()].as_bytes();
        let mixed = [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit]
            .iter()
            .all(|kind| letters.iter().any(kind));
        self.layer == Layer::Base64 && letters.len() >= BLOB && mixed
    }

    /// Encodes other bytes in the same form; returns the range of text that they replace.
    pub fn encoded(&self, inner: &[u8]) -> (Range<usize>, Vec<u8>) {
        let whole = self.range.start..self.range.end + self.padding;
        let padded = |mut text: String| {
            if self.padded {
                text.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4));
            }
            text
        };
        let text = match self.form {
            WordForm::Lower => hex::encode(inner),
            WordForm::Upper => hex::encode_upper(inner),
            WordForm::UrlSafe => padded(URL_SAFE.encode(inner)),
            WordForm::Standard => padded(STANDARD.encode(inner)),
            WordForm::Lines(length, wide) => {
                let mut text = STANDARD.encode(inner);
                text.extend(std::iter::repeat_n('=', (4 - text.len() % 4) % 4));
                let lines: Vec<&str> =
                    text.as_bytes().chunks(length).filter_map(|line| std::str::from_utf8(line).ok()).collect();
                lines.join(if wide { "\r\n" } else { "\n" })
            }
        };
        (whole, text.into_bytes())
    }
}

/// Every word of a text that may be encoded; parts of a word if it is not as a whole. `holds` tells whether decoded
/// bytes mean something.
pub(super) fn words<'a>(text: &'a str, holds: impl Fn(&[u8]) -> bool + 'a) -> impl Iterator<Item = EncodedWord> + 'a {
    runs(text).flat_map(move |(range, padding)| {
        let whole = decoded(text, range.clone(), padding).filter(|word| holds(&word.inner) || word.is_blob(text));
        match whole {
            Some(word) => vec![word],
            None => parts(text, range).filter_map(|part| decoded(text, part, 0)).filter(|w| holds(&w.inner)).collect(),
        }
    })
}

/// Long enough runs of letters, with the number of `=` after them.
fn runs(text: &str) -> impl Iterator<Item = (Range<usize>, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            if !is_letter(bytes[at]) {
                at += 1;
                continue;
            }
            let start = at;
            let mut line = at;
            while at < bytes.len() && is_letter(bytes[at]) {
                at += 1;
                let skip = break_after(&bytes[at..]);
                let continues = || bytes.get(at + skip).is_some_and(|b| is_letter(*b));
                if skip > 0 && at - line >= LINE && (at - line).is_multiple_of(4) && continues() {
                    at += skip;
                    line = at;
                }
            }
            let padding = bytes[at..].iter().take(2).take_while(|b| **b == b'=').count();
            if at - start >= SHORTEST {
                return Some((start..at, padding));
            }
        }
        None
    })
}

fn break_after(rest: &[u8]) -> usize {
    match rest {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] => 1,
        _ => 0,
    }
}

/// Parts of a word between punctuation that is also in the base64 alphabet.
fn parts(text: &str, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let start = range.start;
    let run = &text[range];
    let parts = run.split(|c: char| !c.is_ascii_alphanumeric()).filter(move |part| part.len() < run.len());
    let place = move |part: &str| start + (part.as_ptr() as usize - run.as_ptr() as usize);
    parts.filter(|part| part.len() >= SHORTEST).map(move |part| place(part)..place(part) + part.len())
}

fn decoded(text: &str, range: Range<usize>, padding: usize) -> Option<EncodedWord> {
    let run = &text[range.clone()];
    if padding == 0
        && let Some(word) = hexadecimal(run, &range)
    {
        return Some(word);
    }
    let line = run.find(['\r', '\n']);
    let letters: Cow<'_, str> = match line {
        Some(_) => Cow::Owned(run.replace(['\r', '\n'], "")),
        None => Cow::Borrowed(run),
    };
    let url_safe = letters.contains(['-', '_']);
    if letters.len() % 4 == 1 || url_safe && letters.contains(['+', '/']) {
        return None;
    }
    let engine = if url_safe { &URL_SAFE } else { &STANDARD };
    if letters.len() < BLOB {
        // Most long words are not encoded, which their beginning shows without allocation.
        let mut start = [0; 12];
        engine.decode_slice(&letters.as_bytes()[..SHORTEST], &mut start).ok()?;
        if !may_mean(&start) {
            return None;
        }
    }
    let inner = engine.decode(letters.as_bytes()).ok()?;
    let form = match line {
        Some(length) => WordForm::Lines(length, run.contains('\r')),
        None if url_safe => WordForm::UrlSafe,
        None => WordForm::Standard,
    };
    // A word that needs no padding does not show the habit; URL-safe writers mostly omit it.
    let padded = padding > 0 || !url_safe && letters.len().is_multiple_of(4);
    Some(EncodedWord { layer: Layer::Base64, inner, form, padding, padded, range })
}

fn hexadecimal(run: &str, range: &Range<usize>) -> Option<EncodedWord> {
    let prefix = if run.starts_with("0x") { 2 } else { usize::from(run.starts_with('x')) };
    let digits = &run[prefix..];
    if digits.len() < SHORTEST || digits.len() % 2 == 1 {
        return None;
    }
    let start = hex::decode(digits.get(..SHORTEST)?).ok()?;
    if !may_mean(&start) && digits.len() < BLOB {
        return None;
    }
    let inner = hex::decode(digits).ok()?;
    let form = if digits.contains(|c: char| c.is_ascii_uppercase()) { WordForm::Upper } else { WordForm::Lower };
    Some(EncodedWord {
        layer: Layer::Hex,
        range: range.start + prefix..range.end,
        inner,
        form,
        padding: 0,
        padded: false,
    })
}

/// Whether bytes may be the beginning of a text or of a known format, by a quick check.
fn may_mean(start: &[u8]) -> bool {
    let text = || {
        let clean = |b: &u8| *b >= b' ' || matches!(b, b'\t' | b'\n' | b'\r');
        let cut = std::str::from_utf8(start).map_or_else(|e| e.error_len().is_none(), |_| true);
        cut && start.iter().all(clean)
    };
    // Two-byte letters: an ASCII character among them has a zero byte.
    let wide = || start.contains(&0) || matches!(start, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]);
    let format = || super::packed::header(start).is_some() || super::piece::may_begin(start);
    text() || format() || wide()
}
