//! A long sheet of lines and charts, of which a window is shown.

use ratatui::{buffer::Buffer, layout::Rect};

use super::Drawn;
use crate::ui::{Look, NamedValue, SafeText, Section, StyleRole, TextLine, key_values, look as lay, table};

type Draw<'a> = Box<dyn Fn(Rect, &mut Buffer, &Look) + 'a>;

enum SheetPiece<'a> {
    Line(TextLine),
    Chart(u16, Draw<'a>),
}

/// Pieces below each other.
pub struct Sheet<'a> {
    pieces: Vec<SheetPiece<'a>>,
    width: usize,
    look: &'a Look,
}

impl<'a> Sheet<'a> {
    /// Creates an empty sheet of this many columns.
    pub fn new(width: usize, look: &'a Look) -> Self {
        Sheet { pieces: Vec::new(), width, look }
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn look(&self) -> &'a Look {
        self.look
    }

    pub fn line(&mut self, line: TextLine) {
        self.pieces.push(SheetPiece::Line(line));
    }

    pub fn lines(&mut self, lines: impl IntoIterator<Item = TextLine>) {
        self.pieces.extend(lines.into_iter().map(SheetPiece::Line));
    }

    /// A heading with a blank line above, unless it is the first.
    pub fn section(&mut self, title: &str) {
        if !self.pieces.is_empty() {
            self.line(TextLine::default());
        }
        self.line(Section::new(title).line(self.width, self.look));
    }

    /// A text, wrapped.
    pub fn text(&mut self, text: &str, role: StyleRole) {
        let text = SafeText::limited(text, 600);
        let rows: Vec<TextLine> = text.wrap(self.width.max(8)).map(|part| TextLine::of(part, role)).collect();
        self.lines(rows);
    }

    pub fn pairs(&mut self, pairs: &[NamedValue]) {
        let lines = key_values(pairs, self.width, self.look);
        self.lines(lines);
    }

    /// Adds a chart of this many rows.
    pub fn chart(&mut self, height: u16, draw: impl Fn(Rect, &mut Buffer, &Look) + 'a) {
        self.pieces.push(SheetPiece::Chart(height, Box::new(draw)));
    }

    fn height(&self) -> usize {
        let of = |piece: &SheetPiece<'_>| match piece {
            SheetPiece::Line(_) => 1,
            SheetPiece::Chart(height, _) => usize::from(*height),
        };
        self.pieces.iter().map(of).sum()
    }

    /// Draws the window that begins `scroll` rows below the top, with a scrollbar beside it if not everything fits, and
    /// records the scroll range; `reads` if the sheet has the focus.
    pub fn show(&self, area: Rect, scroll: usize, reads: bool, buf: &mut Buffer, drawn: &mut Drawn) {
        let (height, rows) = (self.height(), usize::from(area.height));
        let above = scroll.min(height.saturating_sub(rows));
        self.render(area, buf, above);
        drawn.measures.detail_rows = rows;
        drawn.measures.detail_lines = height;
        if reads {
            // A page is the height of the focused pane.
            drawn.measures.list_rows = rows;
        }
        if height > rows {
            let bar = Rect { x: area.right() + 1, width: 1, ..area };
            table::scrollbar(above as u64, rows as u64, height as u64, bar, buf, self.look);
        }
    }

    /// Draws the window that begins `above` rows below the top.
    fn render(&self, area: Rect, buf: &mut Buffer, above: usize) {
        let mut top = 0_usize;
        for piece in &self.pieces {
            let height = match piece {
                SheetPiece::Line(line) => {
                    if let Some(y) = visible(top, above, area) {
                        line.render(lay::row(area, y), buf, self.look);
                    }
                    1
                }
                SheetPiece::Chart(height, draw) => {
                    self.chart_part(*height, draw, top, above, area, buf);
                    usize::from(*height)
                }
            };
            top += height;
        }
    }

    /// A chart is drawn whole off screen, and the visible part is copied.
    fn chart_part(&self, height: u16, draw: &Draw<'_>, top: usize, above: usize, area: Rect, buf: &mut Buffer) {
        let whole = Rect::new(0, 0, area.width, height);
        let mut beside = Buffer::empty(whole);
        draw(whole, &mut beside, self.look);
        for line in 0..height {
            let Some(y) = visible(top + usize::from(line), above, area) else { continue };
            for x in 0..area.width {
                if let (Some(from), Some(to)) = (beside.cell((x, line)), buf.cell_mut((area.x + x, area.y + y))) {
                    *to = from.clone();
                }
            }
        }
    }
}

/// The row of the window for a row of the sheet.
fn visible(row: usize, above: usize, area: Rect) -> Option<u16> {
    row.checked_sub(above).filter(|y| *y < usize::from(area.height)).map(|y| y as u16)
}
