//! Quick check that a JSON text is strict, for readers that need no value of it.

use serde::de::IgnoredAny;

use super::MAX_DEPTH;

/// Digits that every integer of 64 bits may have.
const DIGITS: usize = 18;
/// Digits that every double keeps.
const DOUBLE_DIGITS: usize = 17;

/// Whether a text is strict JSON for certain, so that [`super::read`] has no problem with it, and holds its strings as
/// they are, without an escape. May say no of a text that is; keeps nothing.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    // Without an end before that of the text, many bytes are looked at in one step.
    let (mut before, mut opened, mut odd) = (0_u8, 0, false);
    for byte in text.bytes() {
        // A number with an exponent may be out of range.
        odd |= byte == b'\\' || before.is_ascii_digit() && matches!(byte, b'e' | b'E');
        opened += usize::from(matches!(byte, b'[' | b'{'));
        before = byte;
    }
    !odd && opened <= MAX_DEPTH
        && !has_digits_in_row(text.as_bytes(), DIGITS)
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether more than so many digits are in a row: that many cover one of the places that are looked at.
fn has_digits_in_row(text: &[u8], most: usize) -> bool {
    let digits = |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|byte| byte.is_ascii_digit()).count();
    let mut places = (most..text.len()).step_by(most + 1).filter(|at| text[*at].is_ascii_digit());
    places.any(|at| digits(&mut text[..at].iter().rev()) + digits(&mut text[at..].iter()) > most)
}

/// Whether a text is a list of strings, in strict JSON and without an escape, so that [`super::read_texts`] has no problem
/// with it.
#[must_use]
pub fn is_plain_list(text: &str) -> bool {
    serde_json::from_str::<Vec<&str>>(text).is_ok()
}

/// Whether every number of a JSON text is read as it is written: a double keeps 17 digits, an integer of 64 bits all.
#[must_use]
pub fn keeps_digits(text: &str) -> bool {
    let mut rest = text;
    while let Some((outside, quoted)) = rest.split_once('"') {
        if !keeps_digits_outside(outside) {
            return false;
        }
        rest = after_string(quoted);
    }
    keeps_digits_outside(rest)
}

/// Whether every number of a piece of JSON without strings is read as it is written.
fn keeps_digits_outside(text: &str) -> bool {
    // Of the digits that a double does not keep, half stand on one side of the point.
    if !has_digits_in_row(text.as_bytes(), DOUBLE_DIGITS / 2) {
        return true;
    }
    let mut numbers = text.split(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E')));
    numbers.all(|number| {
        let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
        digits <= DOUBLE_DIGITS || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
    })
}

/// Returns what follows a string of which the opening quotation mark is read; nothing where it has no end.
fn after_string(text: &str) -> &str {
    let closes = |at: usize| text.as_bytes()[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0;
    let mut quotes = text.match_indices('"').map(|(at, _)| at);
    quotes.find(|at| closes(*at)).map_or("", |at| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_kept_or_its_text_stays() {
        for kept in [
            "[1.5e300, 0.30000000000000004]",
            "[18446744073709551615]",
            "{\"a\": \"12345678901234567890.5\\\" 12345678901234567890.5\"}",
        ] {
            assert!(keeps_digits(kept), "{kept}");
        }
        for wide in [
            "[123456789012345678901]",
            "{\"a\": \"x\", \"n\": 0.1234567890123456789}",
            "[\"\\\\\", 12345678901234567.25]",
        ] {
            assert!(!keeps_digits(wide), "{wide}");
        }
    }
}
