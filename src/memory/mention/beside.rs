//! Characters directly next to a place in a text: whether the place ends a word, or is part of a longer one.

use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_segmentation::UnicodeSegmentation as _;

/// Kind of character next to a place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BesidePlace {
    /// Nothing that would make a longer word: a blank, punctuation, a letter of another script, a letter of a script
    /// without spaces.
    Free,
    /// `_`, which joins words.
    Joined,
    /// A digit.
    Digit,
    /// A letter of the same script.
    Letter,
}

/// Classifies the character next to a place. `inner` is the adjacent letter of the place; `outer` is outside, and
/// precedes it if `before`.
pub fn beside(outer: Option<char>, inner: char, before: bool) -> BesidePlace {
    let Some(outer) = outer else { return BesidePlace::Free };
    if matches!(outer, '_' | '\u{203f}' | '\u{2040}' | '\u{2054}') {
        return BesidePlace::Joined;
    }
    let mark = is_combining_mark(outer);
    if !outer.is_alphanumeric() && !mark {
        return BesidePlace::Free;
    }
    if mark && !before {
        return BesidePlace::Letter;
    }
    let pair: String = if before { [outer, inner].iter().collect() } else { [inner, outer].iter().collect() };
    // UAX 29: Chinese, Japanese, Thai, Lao, Khmer and Burmese letters are separate words.
    if inner.is_alphanumeric() && pair.split_word_bounds().count() > 1 {
        return BesidePlace::Free;
    }
    if outer.is_numeric() {
        return BesidePlace::Digit;
    }
    let (inside, outside) = (inner.script(), outer.script());
    let shared = |script| matches!(script, Script::Common | Script::Inherited | Script::Unknown);
    // Korean particles after a Latin name, Russian endings after an address.
    let apart = inner.is_alphabetic() && inside != outside && !shared(inside) && !shared(outside);
    if apart { BesidePlace::Free } else { BesidePlace::Letter }
}

/// Whether a word can begin at a place of a text: nothing before it makes a longer one. An escape before it (`
/// `, `\u00e9`, `%20`) does not count. Invalid UTF-8 forms no words.
pub fn begins(text: &[u8], start: usize) -> bool {
    let Some((_, inner)) = around(text, start) else { return true };
    if beside(around(text, start).and_then(|(outer, _)| outer), inner, true) == BesidePlace::Free {
        return true;
    }
    let before = |back: usize| start.checked_sub(back).and_then(|i| text.get(i)).copied();
    let letter = before(1).is_some_and(|b| matches!(b, b'n' | b't' | b'r' | b'b' | b'f')) && before(2) == Some(b'\\');
    let coded = before(6) == Some(b'\\') && before(5) == Some(b'u');
    let digit = |back: usize| before(back).is_some_and(|b| b.is_ascii_hexdigit());
    letter || coded || before(3) == Some(b'%') && digit(2) && digit(1)
}

/// Whether a word can end at a place of a text: nothing after it makes a longer one.
pub fn ends(text: &[u8], end: usize) -> bool {
    let inner = last_char(&text[..end.min(text.len())]);
    let outer = first_char(text.get(end..).unwrap_or_default());
    inner.is_none_or(|inner| beside(outer, inner, false) == BesidePlace::Free)
}

/// The characters before and after a place; `None` if nothing readable follows it.
fn around(text: &[u8], at: usize) -> Option<(Option<char>, char)> {
    Some((last_char(text.get(..at)?), first_char(text.get(at..)?)?))
}

/// Most bytes of a character.
const CHAR: usize = 4;

fn first_char(text: &[u8]) -> Option<char> {
    text[..text.len().min(CHAR)].utf8_chunks().next()?.valid().chars().next()
}

fn last_char(text: &[u8]) -> Option<char> {
    let tail = &text[text.len().saturating_sub(CHAR)..];
    let chunk = tail.utf8_chunks().last().filter(|chunk| chunk.invalid().is_empty())?;
    chunk.valid().chars().next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_among_bytes_is_told_by_the_same_rule() {
        for (text, whole) in [
            ("mail@x", true),
            ("“mail@x”", true),
            ("«mail@x»", true),
            ("\u{a0}mail@x\u{a0}", true),
            ("请联系mail@x谢谢", true),
            ("😀mail@x😀", true),
            ("\\nmail@x", true),
            ("%20mail@x", true),
            ("émail@x", false),
            ("_mail@x", false),
            ("1mail@x", false),
            ("mail@x2", false),
            ("mail@xé", false),
        ] {
            let at = text.find("mail@x").unwrap();
            let bytes = text.as_bytes();
            assert_eq!(begins(bytes, at) && ends(bytes, at + 6), whole, "{text}");
        }
        assert!(begins(b"\xffmail@x", 1) && ends(b"mail@x\xff", 6));
    }

    #[test]
    fn words_end_where_unicode_says() {
        for (inner, outer, expected) in [
            ('g', None, BesidePlace::Free),
            ('g', Some('”'), BesidePlace::Free),
            ('g', Some('»'), BesidePlace::Free),
            ('g', Some('😀'), BesidePlace::Free),
            ('g', Some('谢'), BesidePlace::Free),
            ('谢', Some('请'), BesidePlace::Free),
            ('g', Some('ก'), BesidePlace::Free),
            ('ก', Some('ข'), BesidePlace::Free),
            ('ກ', Some('ຂ'), BesidePlace::Free),
            ('ក', Some('ខ'), BesidePlace::Free),
            ('က', Some('ခ'), BesidePlace::Free),
            ('g', Some('에'), BesidePlace::Free),
            ('g', Some('ж'), BesidePlace::Free),
            ('수', Some('는'), BesidePlace::Letter),
            ('g', Some('ë'), BesidePlace::Letter),
            ('g', Some('_'), BesidePlace::Joined),
            ('g', Some('2'), BesidePlace::Digit),
            ('1', Some('2'), BesidePlace::Digit),
            ('1', Some('a'), BesidePlace::Letter),
        ] {
            assert_eq!(beside(outer, inner, false), expected, "{inner} {outer:?}");
            assert_eq!(beside(outer, inner, true), expected, "{outer:?} {inner}");
        }
    }
}
