//! A line of runs with different roles, from which tables, lists and small charts are built.

use std::borrow::Cow;
use std::ops::Range;

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    glyphs::Glyph,
    look::{Look, right_of, row},
    text::{ELLIPSIS, SafeText},
    theme::StyleRole,
};

/// Text of one role.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextRun {
    /// Text to draw.
    pub text: SafeText,
    /// Meaning of the text, which determines its style.
    pub role: StyleRole,
    /// Ranges of the text that match a search, as returned by [`SafeText::find`].
    pub hits: Vec<Range<usize>>,
}

/// Runs one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextLine {
    /// In the order they are drawn.
    pub runs: Vec<TextRun>,
}

impl TextLine {
    /// Creates a line with one run.
    pub fn of(text: impl Into<SafeText>, role: StyleRole) -> Self {
        Self::default().with(text, role)
    }

    /// The line with another run at its end.
    pub fn with(mut self, text: impl Into<SafeText>, role: StyleRole) -> Self {
        self.push(text, role);
        self
    }

    /// The line with a glyph at its end.
    pub fn with_glyph(mut self, glyph: Glyph, role: StyleRole) -> Self {
        self.push_glyphs(glyph, 1, role);
        self
    }

    /// Adds a run.
    pub fn push(&mut self, text: impl Into<SafeText>, role: StyleRole) {
        let text = text.into();
        if !text.is_empty() {
            self.runs.push(TextRun { text, role, hits: Vec::new() });
        }
    }

    /// Adds a run after two blanks.
    pub fn push_apart(&mut self, text: impl Into<SafeText>, role: StyleRole) {
        self.push_blanks(2);
        self.push(text, role);
    }

    /// Adds `count` times a glyph.
    pub fn push_glyphs(&mut self, glyph: Glyph, count: usize, role: StyleRole) {
        self.push(SafeText::glyphs(glyph, count), role);
    }

    /// Adds blanks.
    pub fn push_blanks(&mut self, count: usize) {
        self.push(" ".repeat(count), StyleRole::Text);
    }

    /// Adds the runs of another line.
    pub fn append(&mut self, more: Self) {
        self.runs.extend(more.runs);
    }

    /// Marks all occurrences of `needle` in the line, regardless of case.
    pub fn with_hits(mut self, needle: &str) -> Self {
        for run in &mut self.runs {
            run.hits = run.text.find(needle);
        }
        self
    }

    /// Width in columns.
    pub fn width(&self) -> usize {
        self.runs.iter().map(|run| run.text.width()).sum()
    }

    /// Wraps the line to rows of `width` columns: runs stay whole if they fit into a row, else they are wrapped at
    /// words.
    pub fn flow(&self, width: usize, look: &Look) -> Vec<Self> {
        let mut rows = vec![Self::default()];
        let mut used = 0;
        for run in &self.runs {
            let mut text = look.spelled(&run.text);
            if used > 0 && used + text.width() > width {
                rows.push(Self::default());
                used = 0;
                // The blanks before a run are dropped when it starts a new row.
                let blanks = text.as_str().bytes().take_while(|byte| *byte == b' ').count();
                text = Cow::Owned(text.columns(blanks, text.width()));
            }
            for (index, part) in text.wrap(width).enumerate() {
                if index > 0 {
                    rows.push(Self::default());
                }
                used = if index > 0 { part.width() } else { used + part.width() };
                if let Some(last) = rows.last_mut() {
                    last.push(part, run.role);
                }
            }
        }
        rows
    }

    /// Wraps the line to rows of `width` columns at any word.
    pub fn flow_words(&self, width: usize, look: &Look) -> Vec<Self> {
        let mut words = Self::default();
        for run in &self.runs {
            for word in look.spelled(&run.text).words() {
                words.push(word, run.role);
            }
        }
        words.flow(width, look)
    }

    /// Draws the line in the first row of `area`, cut with an ellipsis if it is longer. Returns the columns used.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> u16 {
        let mut rest = row(area, 0);
        let mut left = self.width();
        let mut ends_cut = false;
        for run in &self.runs {
            let room = usize::from(rest.width);
            let more_follows = left > run.text.width();
            left -= run.text.width();
            let is_last_that_fits = more_follows && run.text.width() + 1 > room;
            let text = if is_last_that_fits { cut_short(&run.text, room, look) } else { look.fit(&run.text, room) };
            let is_cut = text.as_str() != look.spelled(&run.text).as_str();
            // A single sign marks the omission, wherever the cut is.
            let is_sign_alone = is_cut && text.as_str().chars().eq([look.glyphs.ellipsis.get()]);
            if is_sign_alone && std::mem::take(&mut ends_cut) {
                break;
            }
            ends_cut = text.as_str().ends_with([look.glyphs.ellipsis.get(), ELLIPSIS]);
            let hits = hits_within(&run.hits, run.text.as_str(), text.as_str());
            rest = right_of(rest, text.draw(rest, buf, &look.paint(run.role), &hits));
            if is_cut {
                break;
            }
        }
        area.width - rest.width
    }
}

/// The matches in a text that are visible in `shown`, a cut of it.
fn hits_within(hits: &[Range<usize>], text: &str, shown: &str) -> Vec<Range<usize>> {
    if hits.is_empty() {
        return Vec::new();
    }
    let same = text.bytes().zip(shown.bytes()).take_while(|(a, b)| a == b).count();
    let same = shown.floor_char_boundary(same);
    hits.iter().filter(|hit| hit.start < same).map(|hit| hit.start..hit.end.min(same)).collect()
}

/// Cuts to at most `room` columns with an ellipsis, even if the text would just fit, because more would follow.
fn cut_short(text: &SafeText, room: usize, look: &Look) -> SafeText {
    if text.width() > room {
        return look.fit(text, room);
    }
    let Some(kept) = room.checked_sub(1) else { return SafeText::default() };
    let mut cut = look.spelled(text).columns(0, kept);
    cut.append(&SafeText::glyphs(look.glyphs.ellipsis, 1));
    cut
}
