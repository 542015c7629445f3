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
