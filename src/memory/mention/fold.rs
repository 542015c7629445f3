//! Reduces a text to what identifies a name: without case, width and composition of letters, kinds of apostrophes and
//! blanks, and invisible marks. Every position maps back to the original.

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// A changed text, and the origin of its bytes.
#[derive(Debug, Default)]
pub struct TracedText {
    /// The text.
    pub text: String,
    /// Corresponding positions of the text and the original, in order; between two of them both advance alike, or the
    /// piece was replaced as a whole.
    marks: Vec<(usize, usize)>,
    /// Length of the original in bytes.
    source: usize,
}

impl TracedText {
    /// Creates an empty text with the capacity of the original.
    pub fn with_room(bytes: usize) -> Self {
        TracedText { text: String::with_capacity(bytes), marks: Vec::new(), source: 0 }
    }

    /// Adds ASCII letters one to one, in lower case and with one kind of apostrophe.
    pub fn keep(&mut self, piece: &str) {
        let here = self.text.len();
        if piece.contains('`') {
            self.text.push_str(&piece.replace('`', "'"));
        } else {
            self.text.push_str(piece);
        }
        self.text[here..].make_ascii_lowercase();
        self.source += piece.len();
    }

    /// Adds a letter unchanged.
    fn pass(&mut self, letter: &str) {
        self.text.push_str(letter);
        self.source += letter.len();
    }

    /// Adds the replacement of some bytes of the original.
    pub fn put(&mut self, piece: &str, source: usize) {
        self.mark();
        self.text.push_str(piece);
        self.source += source;
        self.mark();
    }

    fn mark(&mut self) {
        let here = (self.text.len(), self.source);
        if self.marks.last() != Some(&here) {
            self.marks.push(here);
        }
    }

    /// Maps the start of a span to the original: after anything left out there.
    pub fn start(&self, at: usize) -> usize {
        let next = self.marks.partition_point(|(here, _)| *here <= at);
        self.along(next, at).unwrap_or(at)
    }

    /// Maps the end of a span to the original: before anything left out there.
    pub fn end(&self, at: usize) -> usize {
        let next = self.marks.partition_point(|(here, _)| *here < at);
        if let Some((here, source)) = self.marks.get(next)
            && *here == at
        {
            return *source;
        }
        // Within a replaced piece: its end.
        match (next.checked_sub(1).and_then(|i| self.marks.get(i)), self.marks.get(next)) {
            (Some(before), Some(after)) if after.0 - before.0 != after.1 - before.1 => after.1,
            _ => self.along(next, at).unwrap_or(at),
        }
    }

    fn along(&self, next: usize, at: usize) -> Option<usize> {
        let (here, source) = *self.marks.get(next.checked_sub(1)?)?;
        match self.marks.get(next) {
            Some(after) if after.0 - here != after.1 - source => Some(source),
            _ => Some(source + (at - here)),
        }
    }
}

/// The folded text, for comparison.
pub fn folded(text: &str) -> String {
    fold(text).text
}

/// The folded text, with positions in the original.
pub fn fold(text: &str) -> TracedText {
    let mut out = TracedText::with_room(text.len());
    let mut rest = text;
    let mut buffer = String::new();
    while let Some(first) = rest.chars().next() {
        let plain = plain_words(rest.as_bytes());
        if plain > 0 {
            out.keep(&rest[..plain]);
            rest = &rest[plain..];
            continue;
        }
        if is_blank(first) {
            let run = blanks(rest);
            if run == 1 && first == ' ' {
                out.keep(" ");
            } else {
                out.put(" ", run);
            }
            rest = &rest[run..];
            continue;
        }
        // A letter with its combining marks.
        let piece = cluster(rest);
        buffer.clear();
        let seen = piece.chars().filter(|c| !is_unseen(*c)).map(plain_mark);
        let small = seen.nfkc().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
        buffer.extend(small.nfkc().filter(|c| !is_unseen(*c)));
        // The lower case of the Turkish capital dotted I.
        if buffer == "i\u{307}" {
            buffer.pop();
        }
        // Unchanged, as most letters of most scripts, so no position is recorded.
        if buffer == piece && piece.chars().nth(1).is_none() {
            out.pass(piece);
        } else {
            out.put(&buffer, piece.len());
        }
        rest = &rest[piece.len()..];
    }
    out
}

/// Counts the leading ASCII letters that are not combined with anything, with single spaces between them: nothing after
/// them may combine with the last one, or with its space.
fn plain_words(text: &[u8]) -> usize {
    // As `char::is_whitespace`, which includes the vertical tab.
    let blank = |byte: &u8| matches!(byte, b'\t'..=b'\r' | b' ');
    let mut is_behind_blank = false;
    let joined = text.iter().enumerate().position(|(at, byte)| {
        let is_blank = blank(byte);
        let ends = || text.get(at + 1).is_none_or(|next| next.is_ascii() && !blank(next));
        let is_alone = !is_blank || *byte == b' ' && !is_behind_blank && ends();
        is_behind_blank = is_blank;
        !byte.is_ascii() || !is_alone
    });
    let end = joined.unwrap_or(text.len());
    if text.get(end).is_none_or(u8::is_ascii) { end } else { end.saturating_sub(1) }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{2800}' || c == '\u{3164}'
}

/// Bytes of the leading blanks, and of invisible characters between them.
fn blanks(text: &str) -> usize {
    let mut until = 0;
    for (at, c) in text.char_indices() {
        if is_blank(c) {
            until = at + c.len_utf8();
        } else if !is_unseen(c) {
            break;
        }
    }
    until
}

/// The first letter with its combining marks and invisible characters.
fn cluster(text: &str) -> &str {
    let mut letters = text.char_indices();
    let Some((_, first)) = letters.next() else { return text };
    let hangul = matches!(first, '\u{1100}'..='\u{115f}');
    let joined =
        |c: char| is_combining_mark(c) || is_unseen(c) && !is_gap(c) || hangul && matches!(c, '\u{1160}'..='\u{11ff}');
    let end = letters.find(|(_, c)| !joined(*c)).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// Whether a character is invisible in a text: soft hyphens, joiners, direction marks, variation selectors.
fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character is invisible and yet separates words: a zero-width space, a byte order mark, direction marks;
/// not a soft hyphen or a joiner, which occur within words.
pub fn is_gap(c: char) -> bool {
    is_unseen(c) && !matches!(c, '\u{ad}' | '\u{34f}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Unifies apostrophes, hyphens and digits.
fn plain_mark(c: char) -> char {
    const ZEROS: &[char] = &['\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{e50}', '\u{ed0}', '\u{1040}', '\u{17e0}'];
    match c {
        '\u{2018}'
        | '\u{2019}'
        | '\u{201b}'
        | '\u{2032}'
        | '\u{2035}'
        | '\u{b4}'
        | '\u{2b9}'..='\u{2bd}'
        | '\u{2c8}'
        | '\u{2bf}'
        | '\u{2be}'
        | '\u{ff07}'
        | '\u{ff40}'
        | '\u{a78c}'
        | '\u{55a}'
        | '\u{5f3}' => '\'',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{2043}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' | '\u{5be}' => '-',
        c => {
            let zero =
                ZEROS.iter().find(|zero| (**zero..=char::from_u32(**zero as u32 + 9).unwrap_or(**zero)).contains(&c));
            zero.and_then(|zero| char::from_digit(c as u32 - *zero as u32, 10)).unwrap_or(c)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_same_are_the_same() {
        for (text, plain) in [
            ("Dmitri  O\u{2019}Malley", "dmitri o'malley"),
            ("Dmitri\u{a0}\r\n\tO`MALLEY", "dmitri o'malley"),
            ("Dmi\u{ad}tri\u{200b} \u{200b}O\u{2bc}Malley", "dmitri o'malley"),
            (
                "\u{ff24}\u{ff4d}\u{ff49}\u{ff54}\u{ff52}\u{ff49}\u{3000}\u{ff2f}\u{ff07}\u{ff2d}alley",
                "dmitri o'malley",
            ),
            ("Zoe\u{308} NU\u{301}N\u{303}EZ", "zoë núñez"),
            ("DM\u{130}TR\u{130} DMI\u{307}TRI", "dmitri dmitri"),
            ("STRASSE Stra\u{df}e", "strasse strasse"),
            ("\u{1112}\u{1161}\u{11ab}", "\u{d55c}"),
            ("\u{660}\u{661}-\u{6f2}\u{2011}3", "01-2-3"),
        ] {
            assert_eq!(folded(text), plain, "{text:?}");
        }
        assert_ne!(folded("Zoe"), folded("Zoë"), "a diacritic tells names apart");
    }

    #[test]
    fn every_place_leads_back() {
        let text = "\u{feff}a  b\u{200b}Zoe\u{308}\u{ad} fi\u{fb01} x \u{65e5}\u{672c} \u{dc} \u{fc}";
        let fold = fold(text);
        assert_eq!(fold.text, "a bzoë fifi x \u{65e5}\u{672c} \u{fc} \u{fc}");
        let back = |word: &str| {
            let at = fold.text.find(word).unwrap();
            &text[fold.start(at)..fold.end(at + word.len())]
        };
        assert_eq!(back("a b"), "a  b");
        assert_eq!(back("zoë"), "Zoe\u{308}\u{ad}");
        assert_eq!(back("x"), "x");
        assert_eq!(back("ifi"), "i\u{fb01}");
        assert_eq!(back("\u{672c} \u{fc}"), "\u{672c} \u{dc}");
        assert_eq!(back("\u{fc} \u{fc}"), "\u{dc} \u{fc}");
    }
}
