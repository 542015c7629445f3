//! A table that draws exactly the rows it is given: paging, sorting and the meaning of the cursor are up to the caller.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    card::Card,
    figures,
    line::TextLine,
    look::{Look, below, right_of, row},
    text::{Align, SafeText},
    theme::StyleRole,
};

/// Blank columns between two columns.
const GAP: u16 = 2;

/// Width of a column, in terminal columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// So wide, or as wide as the widest number shown.
    Fixed(u16),
    /// Always so wide: longer numbers are cut too.
    Exact(u16),
    /// At least `min`; the remaining room is shared by `weight`.
    Grow {
        /// The least that makes sense.
        min: u16,
        /// The share of the remaining room.
        weight: u16,
    },
}

impl Width {
    fn least(self) -> u16 {
        match self {
            Self::Fixed(width) | Self::Exact(width) => width,
            Self::Grow { min, .. } => min,
        }
    }

    fn weight(self) -> u32 {
        match self {
            Self::Fixed(_) | Self::Exact(_) => 0,
            Self::Grow { weight, .. } => u32::from(weight),
        }
    }
}

/// The order of a column's values, down the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortMark {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Heading of the column.
    pub title: SafeText,
    /// Width of the column.
    pub width: Width,
    /// Alignment of its cells.
    pub align: Align,
    /// 0 is never dropped; on a narrow screen the column with the highest number is dropped first.
    pub priority: u8,
    /// Set if the rows are sorted by this column.
    pub sort: Option<SortMark>,
}

impl TableColumn {
    /// Creates a left-aligned column that is never dropped, without a sort mark.
    pub fn new(title: impl Into<SafeText>, width: Width) -> Self {
        Self { title: title.into(), width, align: Align::Left, priority: 0, sort: None }
    }

    /// Aligns the cells right, for numbers.
    pub fn right(mut self) -> Self {
        self.align = Align::Right;
        self
    }

    /// Sets the priority.
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the sort mark.
    pub fn sorted(mut self, sort: Option<SortMark>) -> Self {
        self.sort = sort;
        self
    }
}

/// A row: a cell for every column, including dropped ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableRow {
    /// In the order of the columns.
    pub cells: Vec<TextLine>,
    /// Marked for batch work.
    pub marked: bool,
    /// Out of date, drawn dimmed.
    pub stale: bool,
}

/// Number of all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Total {
    /// Not counted.
    #[default]
    Unknown,
    /// An estimate.
    About(u64),
    /// Counted.
    Exact(u64),
}

/// Position of the given rows among all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The number of the first given row, from 0, if known.
    pub first: Option<u64>,
    /// Number of all rows.
    pub total: Total,
    /// Whether there are rows before the first given one.
    pub above: bool,
    /// Whether there are rows after the last given one.
    pub below: bool,
}

impl Extent {
    /// The position in words for `shown` rows: `51–100 of ~12,400`, `50 of 50`, `1–50 +`.
    pub fn label(&self, shown: usize, look: &Look) -> SafeText {
        let g = look.glyphs;
        let range = match (self.first, shown) {
            (_, 0) => figures::count(0),
            (None, _) => figures::count(shown as u64),
            (Some(first), _) => {
                let ends = [first + 1, first + shown as u64].map(figures::count);
                let (from, to) = (&ends[0], &ends[1]);
                SafeText::join(&[from.clone(), SafeText::glyphs(g.range, 1), to.clone()], "")
            }
        };
        match self.total {
            Total::Exact(total) => SafeText::join(&[range, figures::count(total)], " of "),
            Total::About(total) => {
                SafeText::join(&[range, " of ".into(), SafeText::glyphs(g.about, 1), figures::count(total)], "")
            }
            Total::Unknown if self.below => SafeText::join(&[range, "+".into()], " "),
            Total::Unknown => range,
        }
    }
}

/// Content below the headings.
#[derive(Clone, Copy, Debug)]
pub enum TableBody<'a> {
    /// The rows of the window, the first one at the top.
    Rows(&'a [TableRow]),
    /// A message in their place: empty, loading, failed.
    Card(&'a Card),
}

/// A table with its current state.
#[derive(Clone, Copy, Debug)]
pub struct TableView<'a> {
    /// All columns, including those for which there may be no room.
    pub columns: &'a [TableColumn],
    /// Content below the headings.
    pub body: TableBody<'a>,
    /// The row the cursor is on, counted in the rows given.
    pub selected: Option<usize>,
    /// Whether the table has the focus.
    pub focused: bool,
    /// Whether there is a column for marks.
    pub marks: bool,
    /// Position of the given rows among all rows.
    pub extent: Extent,
}

impl TableView<'_> {
    /// Computes the number of rows that fit into an area.
    pub fn capacity(area: Rect) -> usize {
        usize::from(area.height.saturating_sub(HEADER))
    }

    /// The row under a position, counted in the rows given.
    pub fn row_at(&self, area: Rect, x: u16, y: u16) -> Option<usize> {
        let rows = below(area, HEADER);
        let TableBody::Rows(given) = self.body else { return None };
        let index = usize::from(y.checked_sub(rows.y)?);
        (rows.contains((x, y).into()) && index < given.len()).then_some(index)
    }

    /// The column whose heading is at a position.
    pub fn column_at(&self, area: Rect, x: u16, y: u16) -> Option<usize> {
        let over = |place: &ColumnPlace| x >= place.x && x < place.x + place.width;
        let found = self.places(area).into_iter().find(over)?;
        row(area, 0).contains((x, y).into()).then_some(found.column)
    }

    /// Draws the table: one row of headings, then the body.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        if area.is_empty() {
            return;
        }
        let places = self.places(area);
        self.render_header(area, buf, look, &places);
        let body = below(area, HEADER);
        match self.body {
            TableBody::Card(card) => card.render(body, buf, look),
            TableBody::Rows(rows) => {
                for (index, table_row) in rows.iter().enumerate().take(usize::from(body.height)) {
                    let line = row(body, index as u16);
                    self.render_row(table_row, self.selected == Some(index), line, buf, look, &places);
                }
                self.render_scrollbar(rows.len(), body, buf, look);
            }
        }
    }

    fn render_header(&self, area: Rect, buf: &mut Buffer, look: &Look, places: &[ColumnPlace]) {
        for place in places {
            let column = &self.columns[place.column];
            let (role, glyph) = match column.sort {
                None => (StyleRole::Header, None),
                Some(SortMark::Ascending) => (StyleRole::Accent, Some(look.glyphs.up)),
                Some(SortMark::Descending) => (StyleRole::Accent, Some(look.glyphs.down)),
            };
            let room = usize::from(place.width).saturating_sub(if glyph.is_some() { 2 } else { 0 });
            let mut line = TextLine::of(look.fit(&column.title, room), role);
            if let Some(glyph) = glyph {
                line.push_blanks(1);
                line.push_glyphs(glyph, 1, role);
            }
            aligned(&line, column.align, place.of(row(area, 0)), buf, look);
        }
    }

    fn render_row(
        &self,
        given: &TableRow,
        selected: bool,
        line: Rect,
        buf: &mut Buffer,
        look: &Look,
        at: &[ColumnPlace],
    ) {
        for place in at {
            if let (Some(cell), Some(column)) = (given.cells.get(place.column), self.columns.get(place.column)) {
                if look.spoken && is_blank(cell) {
                    aligned(&none(place.width), column.align, place.of(line), buf, look);
                } else {
                    aligned(cell, column.align, place.of(line), buf, look);
                }
            }
        }
        if given.stale {
            buf.set_style(line, look.style(StyleRole::Stale));
        }
        if self.marks && given.marked {
            look.fill(
                Rect { width: line.width.min(2) / 2, ..right_of(line, 1) },
                buf,
                look.glyphs.marked,
                StyleRole::Accent,
            );
        }
        if selected {
            let role = if self.focused { StyleRole::Selection } else { StyleRole::SelectionIdle };
            look.glyph(line.x, line.y, buf, look.glyphs.cursor, StyleRole::Accent);
            look.select(line, buf, role);
        }
    }

    /// A thumb if the position is known, else arrows if there is more.
    fn render_scrollbar(&self, shown: usize, body: Rect, buf: &mut Buffer, look: &Look) {
        if !(self.extent.above || self.extent.below) || body.is_empty() {
            return;
        }
        let (g, x) = (look.glyphs, body.right() - 1);
        let total = match self.extent.total {
            Total::Exact(total) | Total::About(total) => Some(total),
            Total::Unknown => None,
        };
        if let (Some(first), Some(total)) = (self.extent.first, total) {
            scrollbar(first, shown as u64, total, body, buf, look);
            return;
        }
        if self.extent.above {
            look.glyph(x, body.y, buf, g.arrow_up, StyleRole::Muted);
        }
        if self.extent.below {
            Look::clear(Rect { x, y: body.bottom() - 1, width: 1, height: 1 }, buf);
            look.glyph(x, body.bottom() - 1, buf, g.arrow_down, StyleRole::Muted);
        }
    }

    fn gutter(&self) -> u16 {
        if self.marks { 3 } else { 2 }
    }

    /// Lays out the columns that fit.
    fn places(&self, area: Rect) -> Vec<ColumnPlace> {
        let inside = right_of(area, self.gutter());
        // The last two columns are for a blank and the scrollbar.
        let room = inside.width.saturating_sub(2);
        let mut kept: Vec<usize> = (0..self.columns.len()).collect();
        while kept.len() > 1 && self.least_width(&kept) > u32::from(room) {
            // The least important one is dropped; among equals, the last one.
            let Some(dropped) = (0..kept.len()).max_by_key(|at| (self.columns[kept[*at]].priority, *at)) else { break };
            if self.columns[kept[dropped]].priority == 0 {
                break;
            }
            kept.remove(dropped);
        }
        let mut left_over = u32::from(room).saturating_sub(self.least_width(&kept));
        let mut weights: u32 = kept.iter().map(|index| self.columns[*index].width.weight()).sum();
        let mut x = inside.x;
        let mut places = Vec::new();
        for column in kept {
            let width = self.columns[column].width;
            let share = (left_over * width.weight()).checked_div(weights).unwrap_or(0);
            (left_over, weights) = (left_over - share, weights - width.weight());
            let left = (inside.x + room).saturating_sub(x);
            let width = self.least(column).saturating_add(share as u16).min(left);
            if width == 0 {
                break;
            }
            places.push(ColumnPlace { column, x, width });
            x += width + GAP;
        }
        places
    }

    /// The least width of a column: right-aligned numbers are not cut, unless its width is exact.
    fn least(&self, column: usize) -> u16 {
        let of = &self.columns[column];
        let widest = match (self.body, of.width) {
            (_, Width::Exact(_)) => 0,
            (TableBody::Rows(rows), _) if of.align == Align::Right => {
                rows.iter().filter_map(|row| row.cells.get(column)).map(TextLine::width).max().unwrap_or(0)
            }
            _ => 0,
        };
        of.width.least().max(u16::try_from(widest).unwrap_or(u16::MAX))
    }

    fn least_width(&self, kept: &[usize]) -> u32 {
        let columns: u32 = kept.iter().map(|index| u32::from(self.least(*index))).sum();
        columns + u32::from(GAP) * (kept.len() as u32).saturating_sub(1)
    }
}

/// Rows of the headings.
const HEADER: u16 = 1;

/// Position of a column on the screen.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ColumnPlace {
    column: usize,
    x: u16,
    width: u16,
}

impl ColumnPlace {
    fn of(&self, line: Rect) -> Rect {
        Rect { x: self.x, width: self.width, ..line }
    }
}

/// Whether a cell is empty, or holds the dot for a missing value.
fn is_blank(cell: &TextLine) -> bool {
    cell.runs.iter().all(|run| run.text.as_str().chars().all(|c| matches!(c, ' ' | '·')))
}

/// The words for an empty cell, in `width` columns.
fn none(width: u16) -> TextLine {
    TextLine::of(if width < 4 { "-" } else { "none" }, StyleRole::Muted)
}

fn aligned(line: &TextLine, align: Align, place: Rect, buf: &mut Buffer, look: &Look) {
    let room = place.width.saturating_sub(line.width().min(usize::from(u16::MAX)) as u16);
    let left = match align {
        Align::Left => 0,
        Align::Center => room / 2,
        Align::Right => room,
    };
    line.render(right_of(place, left), buf, look);
}

/// Draws a scrollbar in the last column of `area`: `shown` rows from `first` on, out of `total`.
pub fn scrollbar(first: u64, shown: u64, total: u64, area: Rect, buf: &mut Buffer, look: &Look) {
    if area.is_empty() {
        return;
    }
    let x = area.right() - 1;
    let (from, height) = thumb(first, shown, total, area.height);
    // The ground of a selected row would swallow it.
    Look::clear(Rect { x, width: 1, ..area }, buf);
    look.fill(Rect { x, width: 1, ..area }, buf, look.glyphs.rail, StyleRole::Track);
    look.fill(Rect { x, y: area.y + from, width: 1, height }, buf, look.glyphs.thumb, StyleRole::Muted);
}

/// Computes the start and length of a scrollbar's thumb, in rows of `height`. It touches an end only at that end.
fn thumb(first: u64, shown: u64, total: u64, height: u16) -> (u16, u16) {
    let total = total.max(first + shown).max(1) as f64;
    let rows = f64::from(height);
    let length = (shown as f64 / total * rows).round().clamp(1.0, rows);
    let mut from = (first as f64 / total * rows).round().min(rows - length);
    let is_at_end = first + shown >= total as u64;
    if first > 0 && from < 1.0 && rows > length {
        from = 1.0;
    }
    if is_at_end {
        from = rows - length;
    } else if from + length >= rows && from > 1.0 {
        from -= 1.0;
    }
    (from as u16, length as u16)
}
