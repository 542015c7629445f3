//! What stands directly beside a place in a text: the end of a word, or something that makes a longer one.

use unicode_normalization::char::is_combining_mark;
use unicode_script::{Script, UnicodeScript as _};
use unicode_segmentation::UnicodeSegmentation as _;

/// What stands beside a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing that would make a longer word: a blank, a mark, a letter of another script, a letter of a script that
    /// puts no blanks between words.
    Free,
    /// `_`, which joins words.
    Joined,
    /// A digit.
    Digit,
    /// A letter of the same script.
    Letter,
}

/// What a letter beside a place means. `inner` is the letter of the place next to it; `outer` stands outside, and comes
/// first when `before`.
#[must_use]
pub fn beside(outer: Option<char>, inner: char, before: bool) -> Beside {
    let Some(outer) = outer else { return Beside::Free };
    if matches!(outer, '_' | '\u{203f}' | '\u{2040}' | '\u{2054}') {
        return Beside::Joined;
    }
    let mark = is_combining_mark(outer);
    if !outer.is_alphanumeric() && !mark {
        return Beside::Free;
    }
    if mark && !before {
        return Beside::Letter;
    }
    let pair: String = if before { [outer, inner].iter().collect() } else { [inner, outer].iter().collect() };
    // UAX 29: Chinese, Japanese, Thai, Lao, Khmer and Burmese letters are words of their own there.
    if inner.is_alphanumeric() && pair.split_word_bounds().count() > 1 {
        return Beside::Free;
    }
    if outer.is_numeric() {
        return Beside::Digit;
    }
    let (inside, outside) = (inner.script(), outer.script());
    let shared = |script| matches!(script, Script::Common | Script::Inherited | Script::Unknown);
    // Korean particles after a Latin name, Russian endings after an address.
    let apart = inner.is_alphabetic() && inside != outside && !shared(inside) && !shared(outside);
    if apart { Beside::Free } else { Beside::Letter }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_where_unicode_says() {
        for (inner, outer, expected) in [
            ('g', None, Beside::Free),
            ('g', Some('”'), Beside::Free),
            ('g', Some('»'), Beside::Free),
            ('g', Some('😀'), Beside::Free),
            ('g', Some('谢'), Beside::Free),
            ('谢', Some('请'), Beside::Free),
            ('g', Some('ก'), Beside::Free),
            ('ก', Some('ข'), Beside::Free),
            ('ກ', Some('ຂ'), Beside::Free),
            ('ក', Some('ខ'), Beside::Free),
            ('က', Some('ခ'), Beside::Free),
            ('g', Some('에'), Beside::Free),
            ('g', Some('ж'), Beside::Free),
            ('수', Some('는'), Beside::Letter),
            ('g', Some('ë'), Beside::Letter),
            ('g', Some('_'), Beside::Joined),
            ('g', Some('2'), Beside::Digit),
            ('1', Some('2'), Beside::Digit),
            ('1', Some('a'), Beside::Letter),
        ] {
            assert_eq!(beside(outer, inner, false), expected, "{inner} {outer:?}");
            assert_eq!(beside(outer, inner, true), expected, "{outer:?} {inner}");
        }
    }
}
