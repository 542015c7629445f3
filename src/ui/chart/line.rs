//! A line over a sequence of events, drawn in Braille dots, with marks on it.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::ui::{
    glyphs::Glyph,
    line::TextLine,
    look::{Look, right_of, row},
    text::SafeText,
    theme::StyleRole,
};

/// Columns for the labels of the value axis, the axis included.
const AXIS: u16 = 5;

/// One event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinePoint {
    /// The value after the event; `None` leaves a gap in the line.
    pub value: Option<f64>,
    /// Glyph drawn on the line here, with its role.
    pub mark: Option<(Glyph, StyleRole)>,
}

/// A line chart. The events are at equal distances.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart<'a> {
    /// The events in order.
    pub points: &'a [LinePoint],
    /// The least and the greatest value of the axis.
    pub range: (f64, f64),
    /// Below the first event and below the last.
    pub ends: (SafeText, SafeText),
    /// The event the cursor is on.
    pub selected: Option<usize>,
    /// The line's role.
    pub role: StyleRole,
    /// Whether a value stays until the next event and changes there in a step; else a straight line connects them.
    pub is_stepped: bool,
}

impl<'a> LineChart<'a> {
    /// A chart of values from 0 to 1.
    pub fn new(points: &'a [LinePoint]) -> Self {
        let ends = (SafeText::default(), SafeText::default());
        Self { points, range: (0.0, 1.0), ends, selected: None, role: StyleRole::Series1, is_stepped: false }
    }

    /// Draws the chart. Labels are dropped first if there is little room.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        if area.is_empty() {
            return;
        }
        let has_axis = area.width >= 24 && area.height >= 3;
        let has_ends = area.height >= 4 && !(self.ends.0.is_empty() && self.ends.1.is_empty());
        let mut plot = if has_axis { right_of(area, AXIS) } else { area };
        plot.height -= u16::from(has_ends);
        if has_axis {
            self.render_axis(Rect { width: AXIS, ..plot }, area.x, buf, look);
        }
        if has_ends {
            let line = Rect { y: plot.bottom(), height: 1, ..plot };
            let last = look.fit(&self.ends.1, usize::from(line.width));
            let room = line.width - last.width() as u16;
            look.text(right_of(line, room), buf, &last, StyleRole::Muted);
            look.text(Rect { width: room.saturating_sub(2), ..line }, buf, &self.ends.0, StyleRole::Muted);
        }
        self.render_plot(plot, buf, look);
    }

    fn render_axis(&self, area: Rect, x: u16, buf: &mut Buffer, look: &Look) {
        let area = Rect { x, ..area };
        let (low, high) = self.range;
        let last = area.height - 1;
        for y in 0..area.height {
            let value = match y {
                0 => Some(high),
                y if y == last => Some(low),
                y if area.height >= 5 && y * 2 == last => Some(f64::midpoint(low, high)),
                _ => None,
            };
            let axis = if value.is_some() { look.glyphs.tick } else { look.glyphs.vertical };
            look.glyph(area.right() - 1, area.y + y, buf, axis, StyleRole::Border);
            if let Some(value) = value {
                let label = TextLine::of(format!("{value:>4.1}"), StyleRole::Muted);
                label.render(Rect { width: AXIS - 1, ..row(area, y) }, buf, look);
            }
        }
    }

    fn render_plot(&self, plot: Rect, buf: &mut Buffer, look: &Look) {
        if plot.is_empty() {
            return;
        }
        let middle = plot.height / 2;
        if plot.height >= 5 && plot.height % 2 == 1 {
            look.fill(row(plot, middle), buf, look.glyphs.dashed, StyleRole::Track);
        }
        if let Some(x) = self.selected.and_then(|index| self.dot_column(index, plot)) {
            let column = Rect { x: plot.x + x / 2, width: 1, ..plot };
            look.fill(column, buf, look.glyphs.dotted, StyleRole::Accent);
        }
        for (index, bits) in self.dots(plot).into_iter().enumerate().filter(|(_, bits)| *bits != 0) {
            let (x, y) = (index as u16 % plot.width, index as u16 / plot.width);
            look.glyph(plot.x + x, plot.y + y, buf, look.glyphs.dots(bits), self.role);
        }
        for (index, point) in self.points.iter().enumerate() {
            if let (Some((glyph, role)), Some(value), Some(x)) = (point.mark, point.value, self.dot_column(index, plot))
            {
                let y = self.dot_row(value, plot);
                look.glyph(plot.x + x / 2, plot.y + y / 4, buf, glyph, role);
            }
        }
    }

    /// The dots of the line, a byte a cell.
    fn dots(&self, plot: Rect) -> Vec<u8> {
        let mut cells = vec![0u8; usize::from(plot.width) * usize::from(plot.height)];
        let mut set = |x: u16, y: u16| {
            let cell = usize::from(y / 4) * usize::from(plot.width) + usize::from(x / 2);
            if let Some(bits) = cells.get_mut(cell) {
                *bits |= 1 << (4 * (x % 2) + y % 4);
            }
        };
        let mut before: Option<(u16, u16)> = None;
        for (index, point) in self.points.iter().enumerate() {
            let (Some(value), Some(x)) = (point.value.filter(|value| value.is_finite()), self.dot_column(index, plot))
            else {
                before = None;
                continue;
            };
            let here = (x, self.dot_row(value, plot));
            let from = before.unwrap_or(here);
            let corner = if self.is_stepped { (here.0, from.1) } else { from };
            segment(from, corner, &mut set);
            segment(corner, here, &mut set);
            before = Some(here);
        }
        cells
    }

    /// The column, in dots, of an event.
    fn dot_column(&self, index: usize, plot: Rect) -> Option<u16> {
        let last = self.points.len().checked_sub(1).filter(|last| index <= *last)?;
        let width = usize::from(plot.width) * 2 - 1;
        Some((index * width).checked_div(last).unwrap_or(0) as u16)
    }

    /// The row, in dots from the top, of a value.
    fn dot_row(&self, value: f64, plot: Rect) -> u16 {
        let (low, high) = self.range;
        let share = super::small::share(value - low, high - low);
        let last = f64::from(plot.height * 4 - 1);
        ((1.0 - share) * last).round() as u16
    }
}

/// Sets the dots of a straight line, including its ends, without gaps.
fn segment(from: (u16, u16), to: (u16, u16), set: &mut impl FnMut(u16, u16)) {
    let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1));
    let between = |a: u16, b: u16, step: u16| {
        let share = f64::from(step) / f64::from(steps.max(1));
        (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u16
    };
    for step in 0..=steps {
        set(between(from.0, to.0, step), between(from.1, to.1, step));
    }
}
