//! Distinguishes text from bytes: UTF-8, UTF-16, single-byte letters, and letters between other bytes.

use std::ops::Range;

use uuid::Uuid;

/// Fewest consecutive letters that count as text between other bytes.
const RUN: usize = 4;

/// Control characters not found in text.
fn is_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B)
}

/// Whether a text has no control characters except line breaks and the like.
pub(super) fn is_clean(text: &str) -> bool {
    !text.bytes().any(is_control)
}

/// Byte order of UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitOrder {
    Little,
    Big,
}

/// Most blocks of 256 characters in a UTF-16 text without a byte order mark.
const BLOCKS: usize = 4;

/// Decodes bytes that are UTF-16: with a byte order mark, or mostly ASCII letters with a zero byte each, or letters of
/// few blocks with ASCII characters between them.
pub(super) fn utf16(bytes: &[u8]) -> Option<(UnitOrder, String)> {
    if bytes.len() < 4 || bytes.len() % 2 == 1 {
        return None;
    }
    let upper = |odd: usize| bytes.iter().skip(odd).step_by(2).copied();
    let zeros = |odd: usize| upper(odd).filter(|b| *b == 0).count();
    let most = |odd: usize| zeros(odd) * 8 > bytes.len() * 3 && zeros(1 - odd) == 0;
    let order = match bytes {
        [0xFF, 0xFE, ..] => Some(UnitOrder::Little),
        [0xFE, 0xFF, ..] => Some(UnitOrder::Big),
        _ if most(1) => Some(UnitOrder::Little),
        _ if most(0) => Some(UnitOrder::Big),
        _ => None,
    };
    if let Some(order) = order {
        let text = from_utf16(bytes, order)?;
        return is_clean(&text).then_some((order, text));
    }
    let few = |odd: usize| bytes.len() >= 16 && zeros(odd) > 0 && different(upper(odd)) <= BLOCKS;
    let candidates = [(UnitOrder::Little, 1), (UnitOrder::Big, 0)].into_iter().filter(|(_, odd)| few(*odd));
    let mut read = candidates.filter_map(|(order, _)| Some((order, from_utf16(bytes, order)?)));
    read.find(|(_, text)| is_clean(text) && is_prose(text))
}

/// Counts the distinct bytes.
fn different(bytes: impl Iterator<Item = u8>) -> usize {
    let mut seen = [false; 256];
    bytes.filter(|byte| !std::mem::replace(&mut seen[usize::from(*byte)], true)).count()
}

fn from_utf16(bytes: &[u8], order: UnitOrder) -> Option<String> {
    let unit = |pair: &[u8]| match (order, pair) {
        (UnitOrder::Little, [a, b]) => u16::from_le_bytes([*a, *b]),
        (_, [a, b]) => u16::from_be_bytes([*a, *b]),
        _ => 0,
    };
    char::decode_utf16(bytes.chunks_exact(2).map(unit)).collect::<Result<_, _>>().ok()
}

/// Whether a text is mostly letters, digits and blanks.
fn is_prose(text: &str) -> bool {
    let plain = |c: &char| c.is_alphanumeric() || c.is_whitespace() || c.is_ascii_punctuation();
    text.chars().filter(plain).count() * 4 >= text.chars().count() * 3
}

/// A text in UTF-16.
pub(super) fn to_utf16(text: &str, order: UnitOrder) -> Vec<u8> {
    let bytes = |unit: u16| match order {
        UnitOrder::Little => unit.to_le_bytes(),
        UnitOrder::Big => unit.to_be_bytes(),
    };
    text.encode_utf16().flat_map(bytes).collect()
}

/// Decodes bytes as one letter each.
pub(super) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|b| char::from(*b)).collect()
}

/// Encodes a text with one byte per letter; other letters become question marks.
pub(super) fn to_latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

/// The bytes of a UUID; for other texts, of the nil UUID.
pub(super) fn to_uuid(text: &str) -> Vec<u8> {
    Uuid::try_parse(text).unwrap_or_default().into_bytes().to_vec()
}

/// Whether bytes that are not UTF-8 are single-byte letters: no control characters, no UTF-8 beyond ASCII, and mostly
/// ASCII letters.
pub(super) fn is_latin1(bytes: &[u8]) -> bool {
    let plain = bytes.iter().filter(|b| b.is_ascii_alphanumeric() || **b == b' ').count();
    let control = |b: &u8| is_control(*b) || (0x7F..0xA0).contains(b) && !(0x91..0x98).contains(b);
    plain * 2 > bytes.len() && !bytes.iter().any(control) && bytes.utf8_chunks().all(|chunk| chunk.valid().is_ascii())
}

/// Whether bytes are UTF-8 except for a few, without signs of another format.
pub(super) fn is_damaged_text(bytes: &[u8]) -> bool {
    let bad = || bytes.utf8_chunks().map(|chunk| chunk.invalid().len()).sum::<usize>();
    !bytes.iter().any(|b| is_control(*b)) && bad() * 10 <= bytes.len().max(10)
}

/// Finds the runs of valid UTF-8 without control characters in bytes that are long enough to be a text.
pub(super) fn runs(bytes: &[u8], shortest: usize) -> impl Iterator<Item = (Range<usize>, &str)> {
    // No multi-byte letter continues after an ASCII control character, so most binary data is split by these before any
    // decoding.
    let parts = bytes.split(|b| is_parting(char::from(*b)) && b.is_ascii()).filter(move |part| part.len() >= shortest);
    let texts = parts.flat_map(|part| part.utf8_chunks().map(|chunk| chunk.valid()));
    let pieces = texts.flat_map(|text| text.split(is_parting)).filter(move |run| run.len() >= shortest);
    pieces.map(|run| {
        let at = run.as_ptr() as usize - bytes.as_ptr() as usize;
        (at..at + run.len(), run)
    })
}

/// Whether a control character separates texts.
fn is_parting(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r')
}

/// Number of passes that [`wide`] makes over its bytes.
pub(super) const WIDE_READINGS: usize = 12;

/// Whether bytes may contain letters of two or four bytes each: four consecutive ones from one of the first blocks, or
/// two of four bytes.
pub(super) fn may_be_wide(bytes: &[u8]) -> bool {
    bytes.contains(&0)
        && bytes.windows(8).any(|w| {
            let one_block =
                w[1] <= 0x0E && [w[3], w[5], w[7]] == [w[1]; 3] && [w[0], w[2], w[4], w[6]].iter().all(|b| *b != 0);
            let long = [w[2], w[3], w[6], w[7]] == [0; 4] && (w[0], w[1]) != (0, 0) && (w[4], w[5]) != (0, 0);
            one_block || long
        })
}

/// Finds texts in UTF-16 and UTF-32 of either byte order at any offset: runs of letters, digits, blanks and ASCII.
pub(super) fn wide(bytes: &[u8], each: &mut dyn FnMut(&str)) {
    for (width, offset) in [(2, 0), (2, 1), (4, 0), (4, 1), (4, 2), (4, 3)] {
        for order in [UnitOrder::Little, UnitOrder::Big] {
            let mut run = String::new();
            let mut end = |run: &mut String| {
                if run.len() >= RUN {
                    each(run);
                }
                run.clear();
            };
            for unit in bytes.get(offset..).unwrap_or_default().chunks_exact(width) {
                let number = unit.iter().enumerate().fold(0_u32, |number, (at, byte)| {
                    let place = if order == UnitOrder::Little { at } else { width - 1 - at };
                    number | u32::from(*byte) << (8 * place)
                });
                match char::from_u32(number).filter(|c| c.is_alphanumeric() || !c.is_ascii_control() && *c < '\u{3000}')
                {
                    Some(c) => run.push(c),
                    None => end(&mut run),
                }
            }
            end(&mut run);
        }
    }
}

/// As [`runs`], for runs of at least four bytes.
pub(super) fn letters(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, &str)> {
    runs(bytes, RUN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_few_blocks_are_read_in_either_order_and_numbers_are_none() {
        for text in ["Ｄｍｉｔｒｉ Ｏ＇Ｍａｌｌｅｙ rest", "“Дмитрий Иванов” of 2026", "Ελένη Παππά, Αθήνα"]
        {
            for order in [UnitOrder::Little, UnitOrder::Big] {
                assert_eq!(utf16(&to_utf16(text, order)), Some((order, text.to_owned())));
            }
        }
        let vector: Vec<u8> = (0..32).flat_map(|n| (n as f32 * 0.037 - 0.5).to_le_bytes()).collect();
        let samples: Vec<u8> = (-40_i16..40).flat_map(i16::to_le_bytes).collect();
        assert!(utf16(&vector).is_none() && utf16(&samples).is_none());
    }
}
