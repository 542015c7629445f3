//! The only type for text that may be drawn or printed: whatever was stored, the result is visible and harmless.
//!
//! Control characters, bidirectional controls, zero-width and tag characters, private use and the like become visible
//! *marks* (`␛`, `⟨202E⟩`); excessive combining marks are cut; tabs become spaces. Text is measured, cut and padded by
//! grapheme in terminal columns, by the same measure as in the screen buffer.

use std::{borrow::Cow, cell::RefCell, fmt, ops::Range, rc::Rc};

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{
    clean::{CleanPieces, PieceKind},
    glyphs::Glyph,
};

mod wrap;

pub use wrap::WrappedRows;

/// Default ellipsis of cut text.
pub const ELLIPSIS: char = '…';

/// Most bytes of raw text read for each column that [`SafeText::limited`] may fill.
const BYTES_PER_COLUMN: usize = 64;

/// Text that is safe to draw: free of control, bidi, zero-width, tag and private-use characters.
///
/// Created from raw text only by cleaning; cutting, padding and joining keep it safe. One value is one line. Its width
/// is in terminal columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SafeText {
    text: String,
    width: usize,
    /// Byte ranges of `text` that replace something that could not be shown unchanged; in order, without overlaps.
    marks: Vec<Range<usize>>,
}

/// Returns the replacement of a raw text; `None` if it may be shown unchanged.
pub type Hiding = Rc<dyn Fn(&str) -> Option<String>>;

thread_local! {
    static HIDING: RefCell<Option<Hiding>> = const { RefCell::new(None) };
}

/// Calls `draw` with `hiding` active: every raw text that becomes a [`SafeText`] meanwhile passes it first. There is no
/// other way onto the screen for any text: a cell, a message or an error.
pub fn hiding<R>(hiding: Option<Hiding>, draw: impl FnOnce() -> R) -> R {
    struct Restored(Option<Hiding>);
    impl Drop for Restored {
        fn drop(&mut self) {
            HIDING.set(self.0.take());
        }
    }
    let _restored = Restored(HIDING.replace(hiding));
    draw()
}

/// Raw text after hiding.
fn shown(raw: &str) -> Cow<'_, str> {
    let hiding = HIDING.with_borrow(Clone::clone);
    match hiding.and_then(|hide| hide(raw)) {
        Some(other) => Cow::Owned(other),
        None => Cow::Borrowed(raw),
    }
}

/// Alignment of a text in a wider field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// At the left, blanks follow.
    #[default]
    Left,
    /// At the right, blanks precede.
    Right,
    /// Centred; an odd blank goes to the right.
    Center,
}

/// The three styles a text is drawn with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paint {
    /// The text itself.
    pub base: Style,
    /// Patched over `base` for a mark.
    pub mark: Style,
    /// Patched over `base` for a match of a search.
    pub hit: Style,
}

impl Paint {
    /// One style for everything: marks and matches look like the text.
    pub fn plain(base: Style) -> Self {
        Self { base, mark: Style::new(), hit: Style::new() }
    }
}

impl SafeText {
    /// Cleans all of `raw` into one line; line breaks are shown as `↵`. Cost: linear in `raw`.
    pub fn new(raw: &str) -> Self {
        let raw = shown(raw);
        if is_plain_ascii(&raw) {
            return Self { width: raw.len(), text: raw.into_owned(), marks: Vec::new() };
        }
        let mut out = Self::default();
        let mut pieces = CleanPieces::new(&raw);
        while let Some(piece) = pieces.next_at(out.width) {
            if piece.kind == PieceKind::Break {
                out.push("↵", 1, true);
            } else {
                out.push(&piece.text, piece.width, piece.kind == PieceKind::Mark);
            }
        }
        out
    }

    /// Cleans as much of `raw` as fills `width` columns, with an ellipsis if something is left over. The cost is
    /// bounded by `width`, however long `raw` is.
    pub fn limited(raw: &str, width: usize) -> Self {
        let bytes = width.saturating_add(4).saturating_mul(BYTES_PER_COLUMN);
        let is_cut = bytes < raw.len();
        let head = shown(&raw[..raw.floor_char_boundary(bytes)]);
        let mut out = Self::default();
        let mut pieces = CleanPieces::new(&head);
        while out.width <= width {
            let Some(piece) = pieces.next_at(out.width) else { break };
            if piece.kind == PieceKind::Break {
                out.push("↵", 1, true);
            } else {
                out.push(&piece.text, piece.width, piece.kind == PieceKind::Mark);
            }
        }
        if is_cut && out.width <= width && width > 0 {
            // Unread text follows.
            let (at, column) = out.boundary(|_, end| end < width);
            out.split_off(at, column);
            out.push(ELLIPSIS.encode_utf8(&mut [0; 4]), 1, false);
        }
        out.cut(width)
    }

    /// Cleans `raw` into one text per line. Cost: linear in `raw`; [`SafeText::rows`] is the lazy form.
    pub fn block(raw: &str) -> Vec<Self> {
        raw.split('\n').map(Self::new).collect()
    }

    /// The lines of `raw`, wrapped at words to `width` columns, built on demand: to draw a window of a long text,
    /// `skip` to its first row and `take` its height. No rows at width 0.
    pub fn rows(raw: &str, width: usize) -> WrappedRows<'_> {
        WrappedRows::of_raw(raw, width)
    }

    /// This text wrapped at words to `width` columns. No rows at width 0.
    pub fn wrap(&self, width: usize) -> WrappedRows<'_> {
        WrappedRows::of_clean(self, width)
    }

    /// The text cut after each blank.
    pub fn words(&self) -> Vec<Self> {
        let mut words = vec![Self::default()];
        for (at, cluster) in self.text.grapheme_indices(true) {
            if let Some(word) = words.last_mut() {
                word.push(cluster, cluster.width(), is_inside(&self.marks, at));
            }
            if cluster == " " {
                words.push(Self::default());
            }
        }
        words
    }

    /// `count` times a glyph of the program's own.
    pub fn glyphs(glyph: Glyph, count: usize) -> Self {
        std::iter::repeat_n(glyph, count).collect()
    }

    /// The text, free of anything dangerous.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Width in terminal columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether some of the raw text was replaced by marks.
    pub fn has_marks(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Cuts to at most `width` columns; a longer text ends with `…`.
    pub fn cut(&self, width: usize) -> Self {
        self.cut_with(width, ELLIPSIS)
    }

    /// Cuts to at most `width` columns; a longer text ends with `ellipsis`, which must be one column wide.
    pub fn cut_with(&self, width: usize, ellipsis: char) -> Self {
        if self.width <= width {
            return self.clone();
        }
        if width == 0 {
            return Self::default();
        }
        let (at, column) = self.boundary(|_, end| end < width);
        let marks = self.marks.iter().take_while(|mark| mark.start < at);
        let mut out = Self {
            text: self.text[..at].to_owned(),
            width: column,
            marks: marks.map(|mark| mark.start..mark.end.min(at)).collect(),
        };
        out.push(ellipsis.encode_utf8(&mut [0; 4]), 1, false);
        out
    }

    /// Keeps at most the last `width` columns; a longer text begins with `…`. For paths, whose end is the most telling.
    pub fn cut_start(&self, width: usize) -> Self {
        if self.width <= width {
            return self.clone();
        }
        if width == 0 {
            return Self::default();
        }
        let mut out = Self::default();
        out.push(ELLIPSIS.encode_utf8(&mut [0; 4]), 1, false);
        let dropped = self.width - (width - 1);
        let (at, column) = self.boundary(|start, _| start < dropped);
        out.append(&self.clone().split_off(at, column));
        out
    }

    /// The `width` columns from column `start` on, without an ellipsis; a wide character cut in two becomes a blank.
    pub fn columns(&self, start: usize, width: usize) -> Self {
        let end = start.saturating_add(width);
        let mut out = Self::default();
        let mut at = 0;
        for (offset, cluster) in self.text.grapheme_indices(true) {
            let wide = cluster.width();
            let (from, to) = (at, at + wide);
            at = to;
            if to <= start {
                continue;
            }
            if from >= end {
                break;
            }
            if from < start || to > end {
                let visible = to.min(end) - from.max(start);
                out.push(&" ".repeat(visible), visible, false);
            } else {
                out.push(cluster, wide, is_inside(&self.marks, offset));
            }
        }
        out
    }

    /// Cuts or pads to exactly `width` columns.
    pub fn pad(&self, width: usize, align: Align) -> Self {
        let cut = self.cut(width);
        let room = width - cut.width;
        let left = match align {
            Align::Left => 0,
            Align::Right => room,
            Align::Center => room / 2,
        };
        let mut out = Self::default();
        out.push(&" ".repeat(left), left, false);
        out.append(&cut);
        out.push(&" ".repeat(room - left), room - left, false);
        out
    }

    /// The texts one after the other, with `between` in between.
    pub fn join(parts: &[Self], between: &str) -> Self {
        let between = Self::new(between);
        let mut out = Self::default();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                out.append(&between);
            }
            out.append(part);
        }
        out
    }

    /// Adds `more` at the end.
    pub fn append(&mut self, more: &Self) {
        let at = self.text.len();
        self.text.push_str(&more.text);
        self.width += more.width;
        for mark in &more.marks {
            self.add_mark(mark.start + at..mark.end + at);
        }
    }

    /// Replaces marks, ellipsis and joiners by their ASCII spelling (`␛` becomes `^[`). Stored letters are kept.
    pub fn with_ascii_marks(&self) -> Self {
        let mut out = Self::default();
        let mut at = 0;
        for mark in &self.marks {
            out.push_clean(&self.text[at..mark.start], false);
            for c in self.text[mark.clone()].chars() {
                out.push_clean(&ascii_mark(c), true);
            }
            at = mark.end;
        }
        out.push_clean(&self.text[at..], false);
        out
    }

    /// Byte ranges of `needle` in this text, regardless of case; for [`SafeText::spans`]. Ranges are in order and do
    /// not overlap.
    pub fn find(&self, needle: &str) -> Vec<Range<usize>> {
        let needle: Vec<char> = needle.chars().flat_map(char::to_lowercase).collect();
        let mut found: Vec<Range<usize>> = Vec::new();
        if needle.is_empty() {
            return found;
        }
        for (start, _) in self.text.char_indices() {
            if found.last().is_some_and(|last| start < last.end) {
                continue;
            }
            if let Some(length) = matched_length(&self.text[start..], &needle) {
                found.push(start..start + length);
            }
        }
        found
    }

    /// The text in one style.
    pub fn span(&self, style: Style) -> Span<'static> {
        Span::styled(self.text.clone(), style)
    }

    /// The text in spans: base, marks and `hits` (byte ranges in order, as returned by [`SafeText::find`]; ranges
    /// beyond the text are ignored).
    pub fn spans(&self, paint: &Paint, hits: &[Range<usize>]) -> Vec<Span<'static>> {
        let mut cuts = vec![0, self.text.len()];
        for range in self.marks.iter().chain(hits) {
            cuts.extend([range.start, range.end].map(|at| self.text.floor_char_boundary(at)));
        }
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2)
            .map(|pair| {
                let mut style = paint.base;
                if is_inside(&self.marks, pair[0]) {
                    style = style.patch(paint.mark);
                }
                if is_inside(hits, pair[0]) {
                    style = style.patch(paint.hit);
                }
                Span::styled(self.text[pair[0]..pair[1]].to_owned(), style)
            })
            .collect()
    }

    /// The text as a line of [`SafeText::spans`].
    pub fn line(&self, paint: &Paint, hits: &[Range<usize>]) -> Line<'static> {
        Line::from(self.spans(paint, hits))
    }

    /// Draws the text at the top left of `area`, in its first row only, cut to its width. Returns the columns used.
    pub fn draw(&self, area: Rect, buf: &mut Buffer, paint: &Paint, hits: &[Range<usize>]) -> u16 {
        let area = area.intersection(buf.area);
        if area.is_empty() {
            return 0;
        }
        let room = usize::from(area.width);
        let cut;
        let shown = if self.width > room {
            cut = self.cut(room);
            &cut
        } else {
            self
        };
        let mut x = area.x;
        if shown.marks.is_empty() && hits.is_empty() {
            x = buf.set_stringn(x, area.y, &shown.text, room, paint.base).0;
        } else {
            for span in shown.spans(paint, hits) {
                x = buf.set_stringn(x, area.y, &span.content, usize::from(area.right() - x), span.style).0;
            }
        }
        x - area.x
    }

    /// Returns the indivisible unit at a byte, a grapheme cluster or a mark in brackets; true for a mark.
    fn unit(&self, at: usize) -> Option<(&str, bool)> {
        let rest = &self.text[at..];
        let cluster = rest.graphemes(true).next()?;
        let is_mark = is_inside(&self.marks, at);
        let end = match cluster {
            "⟨" => '⟩',
            "<" => '>',
            _ => return Some((cluster, is_mark)),
        };
        let whole = rest.find(end).filter(|_| is_mark).map(|last| &rest[..last + end.len_utf8()]);
        Some((whole.unwrap_or(cluster), is_mark))
    }

    /// Byte and column after the grapheme clusters whose start and end columns are `wanted`.
    fn boundary(&self, wanted: impl Fn(usize, usize) -> bool) -> (usize, usize) {
        let mut reached = (0, 0);
        for (offset, cluster) in self.text.grapheme_indices(true) {
            let end = reached.1 + cluster.width();
            if !wanted(reached.1, end) {
                break;
            }
            reached = (offset + cluster.len(), end);
        }
        reached
    }

    /// Adds clean text of known width.
    fn push(&mut self, clean: &str, width: usize, mark: bool) {
        let start = self.text.len();
        self.text.push_str(clean);
        self.width += width;
        if mark && !clean.is_empty() {
            self.add_mark(start..self.text.len());
        }
    }

    fn push_clean(&mut self, clean: &str, mark: bool) {
        let width = clean.graphemes(true).map(UnicodeWidthStr::width).sum();
        self.push(clean, width, mark);
    }

    fn add_mark(&mut self, range: Range<usize>) {
        match self.marks.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.marks.push(range),
        }
    }

    /// Removes blanks at the end.
    fn trim_end(&mut self) {
        let kept = self.text.trim_end_matches(' ').len();
        self.width -= self.text.len() - kept;
        self.text.truncate(kept);
    }

    /// Splits off the text from byte `at` (the beginning of a unit, at column `column`) on.
    fn split_off(&mut self, at: usize, column: usize) -> Self {
        let text = self.text.split_off(at);
        let mut tail = Self { text, width: self.width - column, marks: Vec::new() };
        self.width = column;
        for mark in std::mem::take(&mut self.marks) {
            if mark.start < at {
                self.marks.push(mark.start..mark.end.min(at));
            }
            if mark.end > at {
                tail.marks.push(mark.start.saturating_sub(at)..mark.end - at);
            }
        }
        tail
    }
}

impl fmt::Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for SafeText {
    fn from(raw: &str) -> Self {
        Self::new(raw)
    }
}

impl From<String> for SafeText {
    fn from(raw: String) -> Self {
        if is_plain_ascii(&raw) {
            return Self { width: raw.len(), text: raw, marks: Vec::new() };
        }
        Self::new(&raw)
    }
}

impl FromIterator<Glyph> for SafeText {
    fn from_iter<I: IntoIterator<Item = Glyph>>(glyphs: I) -> Self {
        let text: String = glyphs.into_iter().map(Glyph::get).collect();
        Self { width: text.chars().count(), text, marks: Vec::new() }
    }
}

/// Whether `at` is in one of the `ranges`, which are in order and do not overlap.
fn is_inside(ranges: &[Range<usize>], at: usize) -> bool {
    let candidate = ranges.partition_point(|range| range.end <= at);
    ranges.get(candidate).is_some_and(|range| range.contains(&at))
}

/// Whether `text` is entirely printable ASCII: safe unchanged, one column per byte.
fn is_plain_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, 0x20..=0x7e))
}

/// Returns the number of bytes at the beginning of `text` that match `needle` (lower case); `None` if they do not
/// match.
fn matched_length(text: &str, needle: &[char]) -> Option<usize> {
    let mut wanted = needle.iter();
    let mut next = wanted.next();
    for (offset, c) in text.char_indices() {
        if next.is_none() {
            return Some(offset);
        }
        for lower in c.to_lowercase() {
            if next != Some(&lower) {
                return None;
            }
            next = wanted.next();
        }
    }
    next.is_none().then_some(text.len())
}

/// The ASCII spelling of a character in a mark.
fn ascii_mark(c: char) -> Cow<'static, str> {
    match c {
        '␀'..='␟' => Cow::Owned(format!("^{}", char::from((c as u32 - 0x2400 + 0x40) as u8))),
        '␡' => Cow::Borrowed("^?"),
        '↵' => Cow::Borrowed("\\n"),
        '⟨' => Cow::Borrowed("<"),
        '⟩' => Cow::Borrowed(">"),
        '×' => Cow::Borrowed("x"),
        '‿' => Cow::Borrowed("+"),
        other => Cow::Owned(other.to_string()),
    }
}
