//! Resolves escapes within texts, and maps ranges of the resolved text back to stored bytes.

use std::borrow::Cow;
use std::ops::Range;

use html_escape::NAMED_ENTITIES;

use super::Edit;
use crate::memory::json;

/// A text with its escapes resolved.
#[derive(Debug)]
pub(super) struct EscapedReading {
    /// The text.
    pub text: String,
    marks: Vec<EscapeMark>,
}

/// One escape. A text of megabytes may have one at every other letter, so offsets are 32-bit: no engine stores a value
/// of 4 GiB.
#[derive(Debug)]
struct EscapeMark {
    text_start: u32,
    stored_start: u32,
    text_length: u8,
    stored_length: u8,
    notation: EscapeNotation,
}

impl EscapeMark {
    /// `None` beyond 4 GiB.
    fn new(text: Range<usize>, stored: Range<usize>, notation: EscapeNotation) -> Option<Self> {
        Some(EscapeMark {
            text_start: u32::try_from(text.start).ok()?,
            stored_start: u32::try_from(stored.start).ok()?,
            text_length: u8::try_from(text.len()).ok()?,
            stored_length: u8::try_from(stored.len()).ok()?,
            notation,
        })
    }

    fn text(&self) -> Range<usize> {
        let start = self.text_start as usize;
        start..start + usize::from(self.text_length)
    }

    fn stored(&self) -> Range<usize> {
        let start = self.stored_start as usize;
        start..start + usize::from(self.stored_length)
    }
}

/// Notation for a character that cannot be written as itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeNotation {
    /// `%40`, and `+` for a blank.
    Percent,
    /// `&amp;`, `&#64;`, `&#x40;`.
    Entity,
    /// `\u0040`, `\"`.
    Backslash,
}

impl EscapedReading {
    /// Resolves the escapes of a text: of URLs, of HTML, and those of programming languages with one meaning everywhere
    /// (`\u0040`, `\"`). Within quoted strings of a document in the text also `
    /// ` and the like, which may be part of a path elsewhere. `None` if there are no escapes.
    pub fn of(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if !bytes.iter().any(|b| matches!(b, b'%' | b'&' | b'\\' | b'+')) {
            return None;
        }
        let mut marks = Vec::new();
        let mut in_query = false;
        let quoted = if bytes.contains(&b'\\') { quoted_strings(bytes) } else { Vec::new() };
        let mut strings = quoted.iter().peekable();
        Self::build(
            text,
            |at| match bytes[at] {
                b'%' => percent(text, at).map(|(c, end)| (c, end, EscapeNotation::Percent)),
                b'&' => entity(text, at).map(|(c, end)| (c, end, EscapeNotation::Entity)),
                b'\\' => {
                    while strings.next_if(|string| string.end <= at).is_some() {}
                    let is_quoted = strings.peek().is_some_and(|string| string.contains(&at));
                    backslash(bytes, at, is_quoted).map(|(c, end)| (c, end, EscapeNotation::Backslash))
                }
                b'+' if in_query => Some((' ', at + 1, EscapeNotation::Percent)),
                byte => {
                    in_query = byte == b'=' || in_query && !byte.is_ascii_whitespace();
                    None
                }
            },
            &mut marks,
        )
        .map(|text| EscapedReading { text, marks })
    }

    /// Resolves the escapes of a string literal, given without its quotes. `None` if there are none.
    pub fn of_literal(inner: &str) -> Option<Self> {
        if !inner.contains('\\') {
            return None;
        }
        let bytes = inner.as_bytes();
        let mut marks = Vec::new();
        let escape = |at| match bytes[at] {
            b'\\' => backslash(bytes, at, true).map(|(c, end)| (c, end, EscapeNotation::Backslash)),
            _ => None,
        };
        Self::build(inner, escape, &mut marks).map(|text| EscapedReading { text, marks })
    }

    /// Copies the text; `escape` returns the character of an escape and its end.
    fn build(
        text: &str,
        mut escape: impl FnMut(usize) -> Option<(char, usize, EscapeNotation)>,
        marks: &mut Vec<EscapeMark>,
    ) -> Option<String> {
        let mut out = String::new();
        let (mut copied, mut at) = (0, 0);
        while at < text.len() {
            let Some((c, end, notation)) = escape(at) else {
                at += 1;
                continue;
            };
            if out.capacity() == 0 {
                out.reserve(text.len());
            }
            out.push_str(&text[copied..at]);
            let start = out.len();
            out.push(c);
            marks.extend(EscapeMark::new(start..out.len(), at..end, notation));
            (copied, at) = (end, end);
        }
        if marks.is_empty() {
            return None;
        }
        out.push_str(&text[copied..]);
        Some(out)
    }

    /// Whether a range of the text contains or touches a resolved escape.
    pub fn is_new(&self, range: &Range<usize>) -> bool {
        let first = self.marks.partition_point(|mark| mark.text().end < range.start);
        self.marks.get(first).is_some_and(|mark| mark.text().start <= range.end)
    }

    /// Whether a range of the text contains or touches a percent escape.
    pub fn is_percent(&self, range: &Range<usize>) -> bool {
        let first = self.marks.partition_point(|mark| mark.text().end < range.start);
        let mut touching = self.marks[first..].iter().take_while(|mark| mark.text().start <= range.end);
        touching.any(|mark| mark.notation == EscapeNotation::Percent)
    }

    /// Whether an escape is directly before or after a range of the stored text, and none within.
    pub fn is_beside(&self, range: &Range<usize>) -> bool {
        let first = self.marks.partition_point(|mark| mark.stored().end < range.start);
        let mut beside = false;
        for mark in self.marks[first..].iter().take_while(|mark| mark.stored().start <= range.end) {
            if mark.stored().end > range.start && mark.stored().start < range.end {
                return false;
            }
            beside = true;
        }
        beside
    }

    /// The stored bytes of a range of the text.
    fn stored(&self, range: &Range<usize>) -> Range<usize> {
        let after = self.marks.partition_point(|mark| mark.text().end <= range.start);
        let start = match (self.marks.get(after), after.checked_sub(1).map(|i| &self.marks[i])) {
            (Some(mark), _) if mark.text().start <= range.start => mark.stored().start,
            (_, Some(before)) => before.stored().end + (range.start - before.text().end),
            (_, None) => range.start,
        };
        if range.is_empty() {
            return start..start;
        }
        let before = self.marks.partition_point(|mark| mark.text().start < range.end);
        let end = match before.checked_sub(1).map(|i| &self.marks[i]) {
            Some(mark) if mark.text().end >= range.end => mark.stored().end,
            Some(mark) => mark.stored().end + (range.end - mark.text().end),
            None => range.end,
        };
        start..end
    }

    /// Converts an edit of the text to one of the stored bytes, with the same kind of escapes.
    pub fn carried_back(&self, edit: &Edit) -> Edit {
        let near = self.marks.partition_point(|mark| mark.text().end < edit.range.start);
        let notation =
            self.marks.get(near).or(self.marks.last()).map_or(EscapeNotation::Backslash, |mark| mark.notation);
        Edit { range: self.stored(&edit.range), bytes: escaped(&edit.bytes, notation) }
    }
}

/// The bytes of a text, with all special characters of the notation escaped.
pub(super) fn escaped(bytes: &[u8], notation: EscapeNotation) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for byte in bytes {
        let escape: Cow<'static, str> = match (notation, byte) {
            (EscapeNotation::Percent, b) if b.is_ascii_alphanumeric() || b"-_.~*".contains(b) => Cow::Borrowed(""),
            (EscapeNotation::Percent, b) => Cow::Owned(format!("%{b:02X}")),
            (EscapeNotation::Entity, b'&') => Cow::Borrowed("&amp;"),
            (EscapeNotation::Entity, b'<') => Cow::Borrowed("&lt;"),
            (EscapeNotation::Entity, b'>') => Cow::Borrowed("&gt;"),
            (EscapeNotation::Entity, b'"') => Cow::Borrowed("&quot;"),
            (EscapeNotation::Entity, b'\'') => Cow::Borrowed("&#39;"),
            (EscapeNotation::Backslash, b'"') => Cow::Borrowed("\\\""),
            (EscapeNotation::Backslash, b'\'') => Cow::Borrowed("\\u0027"),
            (EscapeNotation::Backslash, b'\\') => Cow::Borrowed("\\\\"),
            (EscapeNotation::Backslash, b'\n') => Cow::Borrowed("\\n"),
            (EscapeNotation::Backslash, b'\r') => Cow::Borrowed("\\r"),
            (EscapeNotation::Backslash, b'\t') => Cow::Borrowed("\\t"),
            (EscapeNotation::Backslash, b) if *b < b' ' => Cow::Owned(format!("\\u{b:04x}")),
            _ => Cow::Borrowed(""),
        };
        if escape.is_empty() { out.push(*byte) } else { out.extend_from_slice(escape.as_bytes()) }
    }
    out
}

/// Decodes a character from escaped UTF-8 bytes, each written as the prefix and two hexadecimal digits.
fn escaped_byte_char(bytes: &[u8], at: usize, prefix: &[u8]) -> Option<(char, usize)> {
    let width = prefix.len() + 2;
    let byte = |n: usize| {
        let part = bytes.get(at + n * width..at + (n + 1) * width)?;
        u8::try_from(hexadecimal(part.strip_prefix(prefix)?)?).ok()
    };
    let first = byte(0)?;
    let length = match first {
        0..0x80 => 1,
        0xC2..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0..0xF5 => 4,
        _ => return None,
    };
    let mut buffer = [first, 0, 0, 0];
    for (n, place) in buffer.iter_mut().enumerate().take(length).skip(1) {
        *place = byte(n)?;
    }
    let c = std::str::from_utf8(&buffer[..length]).ok()?.chars().next()?;
    Some((c, at + length * width))
}

/// Finds the quoted strings of JSON within other text: from a bracket followed by a quotation mark to the closing
/// bracket, or to the end if it was cut off.
fn quoted_strings(bytes: &[u8]) -> Vec<Range<usize>> {
    let begins = |rest: &[u8]| {
        let mut first = rest.iter().take(DOCUMENT).skip_while(|b| b.is_ascii_whitespace() || matches!(b, b'[' | b'{'));
        matches!(first.next(), Some(b'"' | b'\''))
    };
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    let mut open: Option<(usize, u8)> = None;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, open) {
            (b'\\', Some(_)) => at += 1,
            (mark, Some((start, quote))) if *mark == quote => {
                found.push(start..at);
                open = None;
            }
            (mark @ (b'"' | b'\''), None) if depth > 0 => open = Some((at + 1, *mark)),
            (b'{' | b'[', None) if depth > 0 || begins(&bytes[at..]) => depth += 1,
            (b'}' | b']', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    found.extend(open.map(|(start, _)| start..bytes.len()));
    found
}

/// Bytes within which a document has its first quotation mark.
const DOCUMENT: usize = 32;
/// Letters of the longest HTML entity name.
const ENTITY: usize = 31;

/// Decodes a URL escape at an offset; returns the character and the end of the escape.
pub(super) fn percent(text: &str, at: usize) -> Option<(char, usize)> {
    escaped_byte_char(text.as_bytes(), at, b"%")
}

/// Decodes an HTML escape at an offset; returns the character and the end of the escape.
pub(super) fn entity(text: &str, at: usize) -> Option<(char, usize)> {
    let rest = text.as_bytes().get(at + 1..)?;
    let length = rest.iter().take(ENTITY + 1).position(|b| *b == b';')?;
    let name = text.get(at + 1..at + 1 + length)?;
    let c = numeric_entity(name).or_else(|| named_entity(name))?;
    Some((c, at + 1 + length + 1))
}

/// The character of an HTML entity name.
fn named_entity(name: &str) -> Option<char> {
    let at = NAMED_ENTITIES.binary_search_by(|(known, _)| (*known).cmp(name.as_bytes())).ok()?;
    let mut letters = NAMED_ENTITIES[at].1.chars();
    letters.next().filter(|_| letters.next().is_none())
}

fn numeric_entity(name: &str) -> Option<char> {
    let number = name.strip_prefix('#')?;
    let number = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => number.parse(),
    };
    char::from_u32(number.ok()?)
}

fn backslash(bytes: &[u8], at: usize, is_quoted: bool) -> Option<(char, usize)> {
    let c = match bytes.get(at + 1)? {
        b'u' if bytes.get(at + 2) == Some(&b'{') => {
            let digits = bytes.get(at + 3..)?;
            let length = digits.iter().take(7).position(|b| *b == b'}')?;
            return Some((char::from_u32(hexadecimal(&digits[..length])?)?, at + 4 + length));
        }
        b'u' => return unicode(bytes, at),
        b'U' => {
            let digits = bytes.get(at + 2..at + 10)?.strip_prefix(b"00")?;
            return Some((char::from_u32(hexadecimal(digits)?)?, at + 10));
        }
        b'x' => {
            let latin = || Some((char::from(u8::try_from(hexadecimal(bytes.get(at + 2..at + 4)?)?).ok()?), at + 4));
            return escaped_byte_char(bytes, at, b"\\x").or_else(latin);
        }
        mark @ (b'"' | b'\'' | b'/' | b'\\') => char::from(*mark),
        b'n' if is_quoted => '\n',
        b'r' if is_quoted => '\r',
        b't' if is_quoted => '\t',
        b'b' if is_quoted => '\u{8}',
        b'f' if is_quoted => '\u{c}',
        _ => return None,
    };
    Some((c, at + 2))
}

/// Decodes `\uXXXX`, or a surrogate pair; a lone surrogate becomes U+FFFD.
fn unicode(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = |at: usize| hexadecimal(bytes.get(at..at + 6)?.strip_prefix(b"\\u")?);
    let first = unit(at)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, at + 6));
    }
    let pair = unit(at + 6).and_then(|second| json::pair(first, second));
    Some(pair.map_or((char::REPLACEMENT_CHARACTER, at + 6), |c| (c, at + 12)))
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || digits.len() > 6 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}
