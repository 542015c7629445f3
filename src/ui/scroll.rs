//! A window onto a long list of lines.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    line::TextLine,
    look::{Look, row},
    table::scrollbar,
    theme::StyleRole,
};

/// Lines of which only the window was built.
#[derive(Clone, Copy, Debug)]
pub struct LineWindow<'a> {
    /// Lines in the window, the first one at the top.
    pub lines: &'a [TextLine],
    /// The number of the first one among all, from 0.
    pub first: usize,
    /// Number of all lines.
    pub total: usize,
    /// The line the cursor is on, counted in the lines given; its sign is in the column before the area.
    pub selected: Option<usize>,
}

impl<'a> LineWindow<'a> {
    /// A view of all lines from line `first` on.
    pub fn scrolled(all: &'a [TextLine], first: usize) -> Self {
        let first = first.min(all.len());
        Self { lines: &all[first..], first, total: all.len(), selected: None }
    }

    /// Draws the window; the last column is a scrollbar if not everything fits.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        let shown = self.lines.len().min(usize::from(area.height));
        let has_scrollbar = self.first > 0 || self.first + shown < self.total;
        let inside = Rect { width: area.width.saturating_sub(u16::from(has_scrollbar) * 2), ..area };
        for (index, line) in self.lines.iter().enumerate().take(shown) {
            let place = row(inside, index as u16);
            line.render(place, buf, look);
            if self.selected == Some(index) {
                look.select(place, buf, StyleRole::Selection);
                if let Some(x) = place.x.checked_sub(1) {
                    look.glyph(x, place.y, buf, look.glyphs.cursor, StyleRole::Accent);
                }
            }
        }
        if has_scrollbar {
            scrollbar(self.first as u64, shown as u64, self.total as u64, area, buf, look);
        }
    }
}
