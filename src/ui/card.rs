//! A card: a short message in the middle of an empty area, for missing data, loading, failures, and hints.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    chrome::{KeyHint, hint_line},
    glyphs::{Glyph, Glyphs},
    line::TextLine,
    look::{Look, right_of, row},
    text::SafeText,
    theme::StyleRole,
};

/// Greatest width of a card in columns: longer lines are tiring to read.
const WIDEST: u16 = 68;

/// The kind of a message: shown by a glyph and a colour, never by colour alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CardTone {
    /// Nothing special.
    #[default]
    Plain,
    /// Worth knowing.
    Info,
    /// Went well.
    Good,
    /// Needs attention.
    Warn,
    /// Went wrong.
    Bad,
}

impl CardTone {
    /// The role that colours this tone.
    pub fn role(self) -> StyleRole {
        match self {
            Self::Plain => StyleRole::Muted,
            Self::Info => StyleRole::Info,
            Self::Good => StyleRole::Good,
            Self::Warn => StyleRole::Warn,
            Self::Bad => StyleRole::Bad,
        }
    }

    /// The glyph that shows this tone.
    pub fn glyph(self, glyphs: &Glyphs) -> Glyph {
        match self {
            Self::Plain => glyphs.ring,
            Self::Info => glyphs.info,
            Self::Good => glyphs.check,
            Self::Warn => glyphs.warning,
            Self::Bad => glyphs.cross,
        }
    }
}

/// A title, some lines, and the available keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// The kind of message.
    pub tone: CardTone,
    /// Subject of the card, in a few words.
    pub title: SafeText,
    /// The details; each is wrapped.
    pub lines: Vec<SafeText>,
    /// Hints about the keys that may be pressed.
    pub hints: Vec<KeyHint>,
}

impl Card {
    /// A card with a title.
    pub fn new(tone: CardTone, title: impl Into<SafeText>) -> Self {
        Self { tone, title: title.into(), ..Self::default() }
    }

    /// The card with another line of details.
    pub fn line(mut self, line: impl Into<SafeText>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// The card with something that may be pressed.
    pub fn hint(mut self, hint: KeyHint) -> Self {
        self.hints.push(hint);
        self
    }

    /// Number of rows at this width, including title and hints.
    pub fn height(&self, width: u16, look: &Look) -> u16 {
        let details = self.details(width, look).len();
        let hints = if self.hints.is_empty() { 0 } else { 2 };
        let blank = usize::from(details > 0);
        (1 + blank + details + hints).min(usize::from(u16::MAX)) as u16
    }

    fn details(&self, width: u16, look: &Look) -> Vec<SafeText> {
        let wrapped = |line| look.spelled(line).wrap(text_width(width)).collect::<Vec<_>>();
        self.lines.iter().flat_map(wrapped).collect()
    }

    /// Draws the card in the middle of `area`. If it does not fit, blank rows are dropped first, then details; the
    /// title and the hints stay.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let width = area.width.min(WIDEST);
        let text_width = text_width(area.width);
        let details = self.details(area.width, look);
        let is_roomy = self.height(area.width, look) <= area.height;
        let mut lines = vec![
            TextLine::default()
                .with_glyph(self.tone.glyph(look.glyphs), self.tone.role())
                .with(" ", StyleRole::Text)
                .with(
                    self.title.clone(),
                    if self.tone == CardTone::Plain { StyleRole::Muted } else { StyleRole::Heading },
                ),
        ];
        let hints = hint_line(&self.hints, text_width);
        let reserved = 1 + usize::from(!self.hints.is_empty());
        if is_roomy && !details.is_empty() {
            lines.push(TextLine::default());
        }
        let room = usize::from(area.height).saturating_sub(reserved);
        for detail in details.into_iter().take(room) {
            let mut line = TextLine::default();
            line.push_blanks(2);
            lines.push(line.with(detail, StyleRole::Text));
        }
        if !self.hints.is_empty() {
            if is_roomy {
                lines.push(TextLine::default());
            }
            let mut line = TextLine::default();
            line.push_blanks(2);
            line.append(hints);
            lines.push(line);
        }
        let widest = lines.iter().map(TextLine::width).max().unwrap_or(0).min(usize::from(width)) as u16;
        // Slightly above the middle looks centred.
        let top = area.height.saturating_sub(lines.len() as u16) * 2 / 5;
        let left = (area.width - widest) / 2;
        for (index, line) in lines.iter().enumerate() {
            line.render(right_of(row(area, top.saturating_add(index as u16)), left), buf, look);
        }
    }
}

/// Columns for a card's details: its width without the indent.
fn text_width(width: u16) -> usize {
    usize::from(width.min(WIDEST).saturating_sub(2))
}
