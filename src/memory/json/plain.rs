//! Fast check that a JSON text is strict, for readers that do not need its value.

use serde::de::IgnoredAny;

use super::MAX_DEPTH;

/// Digits that every 64-bit integer can have.
const DIGITS: usize = 18;
/// Digits that every double preserves.
const DOUBLE_DIGITS: usize = 17;

/// Whether a text is certainly strict JSON, so that [`super::read`] reports no problem, and its strings have no
/// escapes. May return false for such a text; allocates nothing.
pub fn is_plain(text: &str) -> bool {
    // Without an early exit, many bytes are processed in one step.
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

/// Whether more than that many digits are consecutive: they then cover one of the sampled positions.
fn has_digits_in_row(text: &[u8], most: usize) -> bool {
    let digits = |bytes: &mut dyn Iterator<Item = &u8>| bytes.take_while(|byte| byte.is_ascii_digit()).count();
    let mut places = (most..text.len()).step_by(most + 1).filter(|at| text[*at].is_ascii_digit());
    places.any(|at| digits(&mut text[..at].iter().rev()) + digits(&mut text[at..].iter()) > most)
}

/// Whether a text is a list of strings in strict JSON without escapes, so that [`super::read_texts`] reports no
/// problem.
pub fn is_plain_list(text: &str) -> bool {
    serde_json::from_str::<Vec<&str>>(text).is_ok()
}

/// Whether every number of a JSON text keeps its digits when parsed: a double keeps 17, a 64-bit integer all.
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

/// Whether every number in JSON without strings keeps its digits when parsed.
fn keeps_digits_outside(text: &str) -> bool {
    // Of more digits than a double keeps, half are on one side of the point.
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

/// Returns the text after a string whose opening quotation mark has been read; empty if it is not closed.
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
