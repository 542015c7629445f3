//! Shared drawing tools: a theme, a set of glyphs, and the few strokes that make up all pictures.

use std::borrow::Cow;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::{
    glyphs::{Glyph, Glyphs},
    text::{Align, Paint, SafeText},
    theme::{StyleRole, Theme},
};

/// The theme and the glyphs in use; handed to everything that draws.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// The styles, for the terminal's depth already.
    pub theme: Theme,
    /// Unicode or ASCII.
    pub glyphs: &'static Glyphs,
    /// Whether the drawing is output as lines: empty cells must say so, and each line holds one thing.
    pub spoken: bool,
}

impl Look {
    /// Creates a look of a theme and glyphs.
    pub fn new(theme: Theme, glyphs: &'static Glyphs) -> Self {
        Self { theme, glyphs, spoken: false }
    }

    /// Whether parts are drawn side by side: if there are `least` columns, and never for output as lines.
    pub fn is_beside(&self, width: u16, least: u16) -> bool {
        !self.spoken && width >= least
    }

    /// The style of a role.
    pub fn style(&self, role: StyleRole) -> Style {
        self.theme.style(role)
    }

    /// The styles to draw a text of this role with: its own, and those of marks and hits.
    pub fn paint(&self, role: StyleRole) -> Paint {
        let base = match role {
            StyleRole::Selection | StyleRole::SelectionIdle => self.with_ink(self.style(role)),
            _ => self.style(role),
        };
        Paint { base, mark: self.style(StyleRole::Mark), hit: self.style(StyleRole::Hit) }
    }

    /// A text in the spelling of this look's glyphs: with ASCII glyphs its marks are ASCII too. For wrapping; text
    /// drawn in one piece is converted when drawn.
    pub fn spelled<'t>(&self, text: &'t SafeText) -> Cow<'t, SafeText> {
        if self.glyphs.is_ascii() && text.has_marks() {
            Cow::Owned(text.with_ascii_marks())
        } else {
            Cow::Borrowed(text)
        }
    }

    /// A text cut to `width` columns, in the spelling and with the ellipsis of this look's glyphs.
    pub fn fit(&self, text: &SafeText, width: usize) -> SafeText {
        let ellipsis = self.glyphs.ellipsis.get();
        // Cut first: the text may be much longer than the part that needs conversion.
        let cut = text.cut_with(width, ellipsis);
        self.spelled(&cut).cut_with(width, ellipsis)
    }

    /// A text of exactly `width` columns: cut as in [`Look::fit`], or padded with blanks.
    pub fn pad(&self, text: &SafeText, width: usize, align: Align) -> SafeText {
        self.fit(text, width).pad(width, align)
    }

    /// The arrow from one thing to another.
    pub fn arrow(&self) -> SafeText {
        if self.glyphs.is_ascii() { "->".into() } else { SafeText::glyphs(self.glyphs.arrow_right, 1) }
    }

    /// Draws a text in the first row of `area`; returns the columns used.
    pub fn text(&self, area: Rect, buf: &mut Buffer, text: &SafeText, role: StyleRole) -> u16 {
        self.fit(text, usize::from(area.width)).draw(area, buf, &self.paint(role), &[])
    }

    /// Draws one glyph; outside of the buffer it is left out.
    pub fn glyph(&self, x: u16, y: u16, buf: &mut Buffer, glyph: Glyph, role: StyleRole) {
        if let Some(cell) = buf.cell_mut((x, y)) {
            cell.set_char(glyph.get()).set_style(self.style(role));
        }
    }

    /// Draws a selection over an area: text without a colour of its own, and stale text, gets a colour that is readable
    /// on the selection's background; bars keep their colours if the selection would remove these.
    pub fn select(&self, area: Rect, buf: &mut Buffer, role: StyleRole) {
        let style = self.style(role);
        let hides_colours = style.fg.is_some() || style.add_modifier.contains(Modifier::REVERSED);
        // Muted text would hardly be readable on the background.
        let quiet = [StyleRole::Stale, StyleRole::Muted].map(|role| self.style(role).fg);
        for position in area.intersection(buf.area).positions() {
            let cell = &mut buf[position];
            if hides_colours && is_bar(cell) && cell.fg != Color::Reset {
                continue;
            }
            let is_bare = cell.fg == Color::Reset || quiet.contains(&Some(cell.fg));
            cell.set_style(if is_bare { self.with_ink(style) } else { style });
            if is_bare {
                cell.modifier.remove(Modifier::ITALIC);
            }
        }
    }

    /// A style with the text colour of a selection, if it has a background and no text colour.
    fn with_ink(&self, style: Style) -> Style {
        let has_ground = style.bg.is_some_and(|ground| ground != Color::Reset);
        match self.style(StyleRole::OnSelection).fg {
            Some(ink) if has_ground && style.fg.is_none() => style.fg(ink),
            _ => style,
        }
    }

    /// Fills an area with one glyph.
    pub fn fill(&self, area: Rect, buf: &mut Buffer, glyph: Glyph, role: StyleRole) {
        for position in area.intersection(buf.area).positions() {
            self.glyph(position.x, position.y, buf, glyph, role);
        }
    }

    /// Empties an area: blanks in the terminal's own colours.
    pub fn clear(area: Rect, buf: &mut Buffer) {
        for position in area.intersection(buf.area).positions() {
            buf[position].reset();
        }
    }
}

/// Whether a cell holds a part of a bar, rather than the mark of the selected row.
fn is_bar(cell: &Cell) -> bool {
    cell.symbol().starts_with(|sign| matches!(sign, '\u{2580}'..='\u{259f}') && sign != '▌')
}

/// Row `index` of an area; empty if it does not exist.
pub fn row(area: Rect, index: u16) -> Rect {
    if index < area.height {
        Rect { y: area.y.saturating_add(index), height: 1, ..area }
    } else {
        Rect { height: 0, ..area }
    }
}

/// Returns the part of an area that remains without a column at each side.
pub fn padded(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
}

/// Divides an area into the `width` columns at its left and the rest.
pub fn side_by_side(area: Rect, width: u16) -> (Rect, Rect) {
    (Rect { width, ..area }, right_of(area, width))
}

/// Divides an area into the `height` rows at its top and the rest.
pub fn stacked(area: Rect, height: u16) -> (Rect, Rect) {
    (Rect { height, ..area }, below(area, height))
}

/// Returns the part of an area that remains without the `columns` at its left.
pub fn right_of(area: Rect, columns: u16) -> Rect {
    let taken = columns.min(area.width);
    Rect { x: area.x.saturating_add(taken), width: area.width - taken, ..area }
}

/// Returns the part of an area that remains without the `rows` at its top.
pub fn below(area: Rect, rows: u16) -> Rect {
    let taken = rows.min(area.height);
    Rect { y: area.y.saturating_add(taken), height: area.height - taken, ..area }
}
