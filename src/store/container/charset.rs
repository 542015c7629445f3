//! Bytes told apart from text: UTF-8, UTF-16, a byte a letter, and letters between other bytes.

use std::ops::Range;

use uuid::Uuid;

/// Letters in a row that are taken for a text between other bytes.
const RUN: usize = 4;

/// Control characters that texts hold; all others tell of bytes.
fn is_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B)
}

/// Whether text holds no control characters but those of lines.
pub(super) fn is_clean(text: &str) -> bool {
    !text.bytes().any(is_control)
}

/// The order of bytes in UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitOrder {
    Little,
    Big,
}

/// The text of bytes that are UTF-16: they begin with its mark, or most are letters of ASCII with a zero each.
pub(super) fn utf16(bytes: &[u8]) -> Option<(UnitOrder, String)> {
    if bytes.len() < 4 || bytes.len() % 2 == 1 {
        return None;
    }
    let zeros = |odd: usize| bytes.iter().skip(odd).step_by(2).filter(|b| **b == 0).count();
    let most = |odd: usize| zeros(odd) * 8 > bytes.len() * 3 && zeros(1 - odd) == 0;
    let order = match bytes {
        [0xFF, 0xFE, ..] => UnitOrder::Little,
        [0xFE, 0xFF, ..] => UnitOrder::Big,
        _ if most(1) => UnitOrder::Little,
        _ if most(0) => UnitOrder::Big,
        _ => return None,
    };
    let unit = |pair: &[u8]| match (order, pair) {
        (UnitOrder::Little, [a, b]) => u16::from_le_bytes([*a, *b]),
        (_, [a, b]) => u16::from_be_bytes([*a, *b]),
        _ => 0,
    };
    let text: String = char::decode_utf16(bytes.chunks_exact(2).map(unit)).collect::<Result<_, _>>().ok()?;
    is_clean(&text).then_some((order, text))
}

/// A text in UTF-16.
pub(super) fn to_utf16(text: &str, order: UnitOrder) -> Vec<u8> {
    let bytes = |unit: u16| match order {
        UnitOrder::Little => unit.to_le_bytes(),
        UnitOrder::Big => unit.to_be_bytes(),
    };
    text.encode_utf16().flat_map(bytes).collect()
}

/// The text of bytes that are a letter each.
pub(super) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

/// Bytes of a text with a letter each; other letters become question marks.
pub(super) fn to_latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

/// The bytes of a UUID; of any other text the UUID of zeros.
pub(super) fn to_uuid(text: &str) -> Vec<u8> {
    Uuid::try_parse(text).unwrap_or_default().into_bytes().to_vec()
}

/// Whether bytes that are no UTF-8 read as letters of one byte each: no control characters, nothing that is UTF-8 beyond
/// ASCII, and letters of ASCII for the most part.
pub(super) fn is_latin1(bytes: &[u8]) -> bool {
    let plain = bytes.iter().filter(|b| b.is_ascii_alphanumeric() || **b == b' ').count();
    let control = |b: &u8| is_control(*b) || (0x7F..0xA0).contains(b) && !(0x91..0x98).contains(b);
    plain * 2 > bytes.len() && !bytes.iter().any(control) && bytes.utf8_chunks().all(|chunk| chunk.valid().is_ascii())
}

/// Whether bytes are UTF-8 but for a few, and nothing in them tells of another format.
pub(super) fn is_damaged_text(bytes: &[u8]) -> bool {
    let bad: usize = bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    bad * 10 <= bytes.len().max(10) && !bytes.iter().any(|b| is_control(*b))
}

/// Where valid UTF-8 without control characters stands in bytes, where it is long enough to be a text.
pub(super) fn runs(bytes: &[u8], shortest: usize) -> impl Iterator<Item = (Range<usize>, &str)> {
    let mut start = 0;
    bytes.utf8_chunks().flat_map(move |chunk| {
        let (text, from) = (chunk.valid(), start);
        start += text.len() + chunk.invalid().len();
        text.split(|c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r')).filter_map(move |run| {
            let at = from + (run.as_ptr() as usize - text.as_ptr() as usize);
            (run.len() >= shortest).then_some((at..at + run.len(), run))
        })
    })
}

/// As [`runs`], of four bytes and more.
pub(super) fn letters(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, &str)> {
    runs(bytes, RUN)
}
