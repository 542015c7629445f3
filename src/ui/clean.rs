//! Splits raw text lazily into harmless pieces: characters that a terminal would obey, hide or stack become visible
//! marks.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns from one tab stop to the next.
const TAB_STOP: usize = 4;

/// Combining marks drawn on one base character; the rest of a pile is counted in a mark.
const COMBINING_LIMIT: usize = 3;

/// Limit on the look-ahead for a grapheme cluster, in bytes: longer ones exist only to do harm.
const CLUSTER_LIMIT: usize = 128;

/// Most tag characters spelled out in their mark.
const TAGS_SHOWN: usize = 64;

/// Suffix that makes a digit a keycap: emoji presentation and the enclosing key.
const KEYCAP: &str = "\u{fe0f}\u{20e3}";

/// Kind of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Text as it was stored.
    Text,
    /// A visible replacement for something that must not be drawn.
    Mark,
    /// The end of a line.
    Break,
}

/// A unit of clean text that is never split.
#[derive(Clone, Debug)]
pub(super) struct CleanPiece<'a> {
    pub text: Cow<'a, str>,
    /// In terminal columns.
    pub width: usize,
    pub kind: PieceKind,
}

/// Effect of a character on a terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Plain,
    Break,
    Tab,
    /// C0, DEL, C1.
    Control,
    /// Is drawn on the character before it.
    Combining,
    /// Variation selectors.
    Selector,
    /// U+E0020..U+E007F: invisible ASCII.
    Tag,
    /// Half of a flag.
    Flag,
    /// Zero width joiner.
    Joiner,
    /// Skin tones: some terminals merge them with the pictograph before, others draw them beside it.
    Modifier,
    /// Bidi controls, zero-width and other invisible characters, private use, noncharacters.
    Hidden,
}

/// Iterator over the pieces of a raw text. Reads only as far as requested.
#[derive(Clone, Debug)]
pub(super) struct CleanPieces<'a> {
    rest: &'a str,
    /// The base character of the last piece, if that was text.
    base: Option<char>,
    /// The last piece was cut short at more combining marks than are drawn.
    piled: bool,
}

impl<'a> CleanPieces<'a> {
    pub fn new(raw: &'a str) -> Self {
        Self { rest: raw, base: None, piled: false }
    }

    /// The next piece, to be drawn at `column` (a tab's width depends on it).
    pub fn next_at(&mut self, column: usize) -> Option<CleanPiece<'a>> {
        loop {
            let first = self.rest.chars().next()?;
            if is_lone_ascii(self.rest.as_bytes()) {
                return Some(self.text(1, Some(first), 1));
            }
            return Some(match classify(first) {
                Class::Plain => self.cluster(first),
                Class::Break => {
                    self.take(1);
                    CleanPiece { text: Cow::Borrowed(""), width: 0, kind: PieceKind::Break }
                }
                Class::Tab => {
                    self.take(1);
                    let width = TAB_STOP - column % TAB_STOP;
                    CleanPiece { text: Cow::Borrowed(&"    "[..width]), width, kind: PieceKind::Text }
                }
                Class::Control => {
                    self.take(first.len_utf8());
                    mark(control_picture(first))
                }
                Class::Selector => {
                    let run = self.run(|c| classify(c) == Class::Selector);
                    if run == 1 && self.chooses_presentation(first) {
                        self.rest = &self.rest[first.len_utf8()..];
                        continue;
                    }
                    self.take_chars(run);
                    mark(code_mark(first, run))
                }
                Class::Tag => self.tags(),
                Class::Flag => self.flag(),
                Class::Joiner if self.joins_pictographs() => {
                    self.take(first.len_utf8());
                    mark("‿".to_owned())
                }
                Class::Modifier => match self.base {
                    Some(base) if is_pictograph(base) => {
                        self.base = None;
                        mark("‿".to_owned())
                    }
                    _ => self.text(first.len_utf8(), Some(first), 2),
                },
                Class::Combining => self.combining(),
                Class::Joiner | Class::Hidden => {
                    let run = self.run(|c| c == first);
                    self.take_chars(run);
                    mark(code_mark(first, run))
                }
            });
        }
    }

    /// Consumes `bytes`, which cannot be the base of following combining marks.
    fn take(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
        self.base = None;
        self.piled = false;
    }

    fn take_chars(&mut self, count: usize) {
        let bytes = self.rest.chars().take(count).map(char::len_utf8).sum();
        self.take(bytes);
    }

    /// Consumes `bytes` as text of `width` columns.
    fn text(&mut self, bytes: usize, base: Option<char>, width: usize) -> CleanPiece<'a> {
        let text = &self.rest[..bytes];
        self.take(bytes);
        self.base = base;
        CleanPiece { text: Cow::Borrowed(text), width, kind: PieceKind::Text }
    }

    /// Counts the `wanted` characters from here on, up to the first other one.
    fn run(&self, wanted: impl Fn(char) -> bool) -> usize {
        self.rest.chars().take_while(|&c| wanted(c)).count()
    }

    /// A base character with its combining marks.
    fn cluster(&mut self, first: char) -> CleanPiece<'a> {
        let ahead = &self.rest[..self.rest.floor_char_boundary(CLUSTER_LIMIT)];
        let cluster = ahead.graphemes(true).next().unwrap_or(ahead);
        let (mut end, mut combining, mut base, mut piled) = (0, 0, first, false);
        for (at, c) in cluster.char_indices() {
            match classify(c) {
                Class::Plain => (combining, base) = (0, c),
                Class::Combining if combining < COMBINING_LIMIT => combining += 1,
                class => {
                    piled = class == Class::Combining;
                    break;
                }
            }
            end = at + c.len_utf8();
        }
        piled |= end == ahead.len() && end < self.rest.len();
        if is_keycap(first) && end == 1 && self.rest[end..].starts_with(KEYCAP) {
            let keycap = format!("{first}\u{20e3}");
            self.take(end + KEYCAP.len());
            return CleanPiece { width: keycap.width(), text: Cow::Owned(keycap), kind: PieceKind::Text };
        }
        let width = self.rest[..end].width();
        let piece = self.text(end, Some(base), width);
        self.piled = piled;
        piece
    }

    /// Combining marks without a base, or too many of them.
    fn combining(&mut self) -> CleanPiece<'a> {
        let run = self.run(|c| classify(c) == Class::Combining);
        if self.piled {
            self.take_chars(run);
            return mark(format!("⟨+{run}⟩"));
        }
        let held: String = std::iter::once('◌').chain(self.rest.chars().take(run.min(COMBINING_LIMIT))).collect();
        if held.graphemes(true).count() > 1 {
            let first = self.rest.chars().next().unwrap_or_default();
            let run = self.run(|c| c == first);
            self.take_chars(run);
            return mark(code_mark(first, run));
        }
        self.take_chars(run.min(COMBINING_LIMIT));
        self.piled = run > COMBINING_LIMIT;
        mark(held)
    }

    /// Invisible ASCII (tag characters), made readable.
    fn tags(&mut self) -> CleanPiece<'a> {
        let run = self.run(|c| classify(c) == Class::Tag);
        let spelled = self.rest.chars().take(run.min(TAGS_SHOWN)).map(|c| match c as u32 - 0xe0000 {
            code @ 0x20..=0x7e => char::from(code as u8),
            _ => '.',
        });
        let mut text: String = "⟨tag:".to_owned();
        text.extend(spelled);
        if run > TAGS_SHOWN {
            text.push('×');
            text.push_str(&run.to_string());
        }
        text.push('⟩');
        self.take_chars(run);
        mark(text)
    }

    /// The letters of a flag: terminals disagree on whether two of them are one picture, and on its width.
    fn flag(&mut self) -> CleanPiece<'a> {
        let halves = self.run(|c| classify(c) == Class::Flag).min(2);
        let letters = self.rest.chars().take(halves).map(|c| char::from(b'A' + (c as u32 - 0x1f1e6) as u8));
        let text = format!("⟨flag:{}⟩", letters.collect::<String>());
        self.take_chars(halves);
        mark(text)
    }

    /// Whether the single selector here only chooses the presentation of the pictograph before it. It is dropped then,
    /// so that all terminals agree on the width.
    fn chooses_presentation(&self, selector: char) -> bool {
        matches!(selector, '\u{fe0e}' | '\u{fe0f}') && self.base.is_some_and(is_pictograph)
    }

    /// Whether the joiner here makes one picture of two. It is shown as a tie: terminals disagree on the width of the
    /// joined picture, and a joiner must not be invisible.
    fn joins_pictographs(&self) -> bool {
        let next = self.rest.chars().nth(1);
        self.base.is_some_and(is_pictograph) && next.is_some_and(is_pictograph)
    }
}

fn mark<'a>(text: String) -> CleanPiece<'a> {
    let width = text.graphemes(true).map(UnicodeWidthStr::width).sum();
    CleanPiece { text: Cow::Owned(text), width, kind: PieceKind::Mark }
}

/// `⟨202E⟩`, or `⟨200B×12⟩` for a run.
fn code_mark(c: char, run: usize) -> String {
    let code = c as u32;
    if run == 1 { format!("⟨{code:04X}⟩") } else { format!("⟨{code:04X}×{run}⟩") }
}

fn control_picture(c: char) -> String {
    match c as u32 {
        code @ 0..=0x1f => char::from_u32(0x2400 + code).map_or_else(|| code_mark(c, 1), String::from),
        0x7f => "␡".to_owned(),
        code => format!("⟨{code:02X}⟩"),
    }
}

/// Printable ASCII that cannot be combined, because ASCII or the end follows.
fn is_lone_ascii(bytes: &[u8]) -> bool {
    matches!(bytes, [0x20..=0x7e] | [0x20..=0x7e, 0..=0x7f, ..])
}

fn is_keycap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

/// Characters with an emoji form; slightly more than the standard's list, which does no harm.
fn is_pictograph(c: char) -> bool {
    matches!(c as u32, 0xa9 | 0xae | 0x203c | 0x2049 | 0x2122 | 0x2139 | 0x2190..=0x2bff
        | 0x3030 | 0x303d | 0x3297 | 0x3299 | 0x1f000..=0x1faff)
}

fn classify(c: char) -> Class {
    match c as u32 {
        0x0a => Class::Break,
        0x09 => Class::Tab,
        0..=0x1f | 0x7f..=0x9f => Class::Control,
        0x20..=0x7e => Class::Plain,
        0xfe00..=0xfe0f | 0xe0100..=0xe01ef => Class::Selector,
        0xe0020..=0xe007f => Class::Tag,
        0x200d => Class::Joiner,
        0x1f1e6..=0x1f1ff => Class::Flag,
        0x1f3fb..=0x1f3ff => Class::Modifier,
        _ if is_hidden(c) => Class::Hidden,
        _ if c.width() == Some(0) => Class::Combining,
        _ => Class::Plain,
    }
}

/// Characters that are invisible, or that terminals draw differently.
fn is_hidden(c: char) -> bool {
    let code = c as u32;
    let invisible = matches!(code,
        0xad | 0x34f | 0x61c | 0x115f | 0x1160 | 0x17b4 | 0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
        | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
        | 0x13430..=0x1345f | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff);
    let private = matches!(code, 0xe000..=0xf8ff | 0xf_0000..=0x10_ffff);
    let noncharacter = code & 0xfffe == 0xfffe || matches!(code, 0xfdd0..=0xfdef);
    invisible || private || noncharacter
}
