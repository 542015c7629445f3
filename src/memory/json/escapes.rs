//! Resolves JSON escapes for ordinary letters in the text of a document.

/// Replaces escapes for ordinary letters in a JSON document, as PostgreSQL writes `jsonb`; `None` if there are none.
/// Quotes, backslashes and control characters stay escaped.
pub fn spelled_out(text: &str) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[', '"']) {
        return None;
    }
    let (mut out, mut rest) = (String::new(), text);
    let mut is_new = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = if let Some((letter, length)) = letter(escape) {
            is_new = true;
            out.push(letter);
            length
        } else {
            let length = escape.chars().take(2).map(char::len_utf8).sum();
            out.push_str(&escape[..length]);
            length
        };
        rest = &escape[length..];
    }
    out.push_str(rest);
    is_new.then_some(out)
}

/// The letter of the escape at the start of a text, and the escape's length; `None` if it must stay.
fn letter(escape: &str) -> Option<(char, usize)> {
    if escape.starts_with("\\/") {
        return Some(('/', 2));
    }
    let unit = |at: usize| {
        let digits = escape.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| are_digits)
    };
    let first = unit(0)?;
    let (letter, length) = match char::from_u32(first) {
        Some(letter) => (letter, 6),
        None => (pair(first, unit(6)?)?, 12),
    };
    Some((letter, length)).filter(|_| letter >= ' ' && !matches!(letter, '"' | '\\'))
}

/// The character of a UTF-16 surrogate pair; `None` if they are not a pair.
pub fn pair(first: u32, second: u32) -> Option<char> {
    let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    char::decode_utf16(units).next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::spelled_out;

    #[test]
    fn letters_take_the_place_of_their_escapes_and_the_text_stays_json() {
        for (text, expected) in [
            (r#"{"a": "Jo\u00e3o \ud83d\ude00 \u0041\/b"}"#, r#"{"a": "João 😀 A/b"}"#),
            (r#"["\\u00e3 \u0022 \u005c \u0007 \ud83d \u00"]"#, r#"["\\u00e3 \u0022 \u005c \u0007 \ud83d \u00"]"#),
            (r"Jo\u00e3o", r"Jo\u00e3o"),
        ] {
            assert_eq!(spelled_out(text).as_deref().unwrap_or(text), expected);
        }
    }
}
