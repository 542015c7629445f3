//! Points on a square from 0 to 1 with its diagonal: predictions against outcomes.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::ui::{
    line::TextLine,
    look::{Look, right_of, row},
    text::{Align, SafeText},
    theme::StyleRole,
};

/// Columns for the labels of the upright axis, the axis included.
const AXIS: u16 = 5;

/// A point, and how much it weighs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Dot {
    /// From left (0) to right (1).
    pub x: f64,
    /// From bottom (0) to top (1).
    pub y: f64,
    /// Share of the total weight, from 0 to 1: the heaviest are filled.
    pub share: f64,
}

/// Points over the diagonal of equal values.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter<'a> {
    /// The points.
    pub dots: &'a [Dot],
    /// Below the axis.
    pub label: SafeText,
}

impl Scatter<'_> {
    /// Draws the points.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        if area.width < AXIS + 4 || area.height < 4 {
            return;
        }
        let plot = Rect { height: area.height - 1, ..right_of(area, AXIS) };
        let last = plot.height - 1;
        for y in 0..plot.height {
            let value = (y == 0).then_some(1.0).or((y == last).then_some(0.0)).or((y * 2 == last).then_some(0.5));
            let axis = if value.is_some() { look.glyphs.tick } else { look.glyphs.vertical };
            look.glyph(plot.x - 1, plot.y + y, buf, axis, StyleRole::Border);
            if let Some(value) = value {
                let label = TextLine::of(format!("{value:>4.1}"), StyleRole::Muted);
                label.render(Rect { width: AXIS - 1, ..row(area, y) }, buf, look);
            }
        }
        let at = |x: f64, y: f64| {
            let column = (x.clamp(0.0, 1.0) * f64::from(plot.width - 1)).round() as u16;
            let line = ((1.0 - y.clamp(0.0, 1.0)) * f64::from(last)).round() as u16;
            (plot.x + column, plot.y + line)
        };
        for column in 0..plot.width {
            let share = f64::from(column) / f64::from((plot.width - 1).max(1));
            let (x, y) = at(share, share);
            look.glyph(x, y, buf, look.glyphs.separator, StyleRole::Track);
        }
        for dot in self.dots.iter().filter(|dot| dot.x.is_finite() && dot.y.is_finite()) {
            let (x, y) = at(dot.x, dot.y);
            let glyph = if dot.share >= 0.1 { look.glyphs.dot } else { look.glyphs.ring };
            look.glyph(x, y, buf, glyph, StyleRole::Series1);
        }
        let below = Rect { y: plot.bottom(), height: 1, ..plot };
        let label = look.fit(&self.label, usize::from(below.width.saturating_sub(8)));
        let ends = TextLine::of("0", StyleRole::Muted)
            .with(label.pad(usize::from(below.width.saturating_sub(2)), Align::Center), StyleRole::Muted)
            .with("1", StyleRole::Muted);
        ends.render(below, buf, look);
    }
}
