//! Quick check that a JSON text is strict, for readers that need no value of it.

use serde::de::IgnoredAny;

use super::MAX_DEPTH;

/// Digits that every integer of 64 bits may have.
const DIGITS: usize = 18;

/// Whether a text is strict JSON for certain, so that [`super::read`] has no problem with it, and holds its strings as
/// they are, without an escape. May say no of a text that is; says so in one pass, and keeps nothing.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let (mut digits, mut opened) = (0, 0);
    for byte in text.bytes() {
        match byte {
            b'\\' => return false,
            b'0'..=b'9' => digits += 1,
            // A number with an exponent may be out of range.
            b'e' | b'E' if digits > 0 => return false,
            b'[' | b'{' => {
                opened += 1;
                digits = 0;
            }
            _ => digits = 0,
        }
        if digits > DIGITS || opened > MAX_DEPTH {
            return false;
        }
    }
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether every number of a JSON text is read as it is written: a double keeps 17 digits, an integer of 64 bits all.
#[must_use]
pub fn keeps_digits(text: &str) -> bool {
    let (mut quoted, mut escaped) = (false, false);
    let mut numbers = text.split(|c: char| {
        let inside = quoted;
        quoted ^= c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        inside || !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E'))
    });
    numbers.all(|number| {
        let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
        digits <= 17 || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
    })
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
