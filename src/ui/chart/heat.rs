//! A calendar of activity: one column per week, one row per weekday, brighter for more.

use ratatui::{buffer::Buffer, layout::Rect};

use super::small::sparkline;
use crate::ui::{
    glyphs::Glyph,
    line::TextLine,
    look::{Look, below, right_of, row},
    text::SafeText,
    theme::StyleRole,
};

const WEEK: usize = 7;

/// Columns for the names of the weekdays.
const NAMES: u16 = 4;

/// Columns for a week.
const CELL: u16 = 2;

/// Calendar with the number of events on each day.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CalendarHeat<'a> {
    /// A count a day, without holes. The first is a Monday; the last is the newest.
    pub days: &'a [u64],
    /// Number of first days with unknown values: they stay empty.
    pub unknown: usize,
    /// Labels above the weeks: (number of the week from 0, text), in order. Usually months.
    pub labels: &'a [(usize, SafeText)],
}

impl CalendarHeat<'_> {
    /// Draws as many of the newest weeks as fit; below 7 rows a line with one bar a week.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        if area.is_empty() || self.days.is_empty() {
            return;
        }
        if usize::from(area.height) < WEEK {
            self.weekly(usize::from(area.width), look).render(area, buf, look);
            return;
        }
        let has_labels = usize::from(area.height) > WEEK;
        let has_legend = usize::from(area.height) > WEEK + 1;
        let grid = below(right_of(area, NAMES), u16::from(has_labels));
        let weeks = self.days.len().div_ceil(WEEK);
        let first = weeks.saturating_sub(usize::from(grid.width / CELL));
        if has_labels {
            self.render_labels(Rect { height: 1, y: area.y, ..grid }, first, buf, look);
        }
        for (day, name) in ["Mon", "", "Wed", "", "Fri", "", "Sun"].into_iter().enumerate() {
            let line = Rect { x: area.x, width: NAMES.min(area.width), ..row(grid, day as u16) };
            TextLine::of(name, StyleRole::Muted).render(line, buf, look);
        }
        let max = self.days.iter().skip(first * WEEK).copied().max().unwrap_or(0);
        for (index, count) in self.days.iter().enumerate().skip(self.unknown.max(first * WEEK)) {
            let (week, day) = ((index / WEEK - first) as u16, (index % WEEK) as u16);
            let (glyph, role) = level_glyph(level(*count, max), look);
            look.glyph(grid.x + week * CELL, grid.y + day, buf, glyph, role);
        }
        if has_legend {
            legend(look).render(Rect { x: grid.x, width: grid.width, ..row(area, WEEK as u16 + 1) }, buf, look);
        }
    }

    fn render_labels(&self, line: Rect, first: usize, buf: &mut Buffer, look: &Look) {
        let column = |week: usize| (week - first).saturating_mul(usize::from(CELL));
        let shown: Vec<&(usize, SafeText)> = self.labels.iter().filter(|(week, _)| *week >= first).collect();
        for (at, (week, label)) in shown.iter().enumerate() {
            let end = column(*week) + label.width();
            // Of two labels that are too close, the later one has more weeks.
            let is_free = shown.get(at + 1).is_none_or(|(next, _)| end < column(*next));
            if is_free && end <= usize::from(line.width) {
                look.text(right_of(line, column(*week) as u16), buf, label, StyleRole::Muted);
            }
        }
    }

    /// One bar for each of the newest weeks.
    fn weekly(&self, width: usize, look: &Look) -> TextLine {
        let sums: Vec<Option<f64>> =
            self.days.chunks(WEEK).map(|week| Some(week.iter().map(|count| *count as f64).sum())).collect();
        let newest = &sums[sums.len().saturating_sub(width)..];
        let max = newest.iter().flatten().copied().fold(0.0, f64::max);
        sparkline(newest, max, width, StyleRole::Heat3, look)
    }
}

/// From 0 (nothing) to 4 (most), on a square-root scale so that quiet days are distinguished too.
fn level(count: u64, max: u64) -> usize {
    if count == 0 {
        return 0;
    }
    ((count as f64 / max.max(1) as f64).sqrt() * 4.0).ceil().clamp(1.0, 4.0) as usize
}

fn level_glyph(level: usize, look: &Look) -> (Glyph, StyleRole) {
    let role = StyleRole::heat(level);
    let differs_by_colour = look.theme.has_shades() && !look.glyphs.is_ascii();
    match level {
        0 => (look.glyphs.separator, role),
        _ if differs_by_colour => (look.glyphs.cell, role),
        _ => (look.glyphs.shades[level], role),
    }
}

fn legend(look: &Look) -> TextLine {
    let mut line = TextLine::of("less ", StyleRole::Muted);
    for level in 0..=4 {
        let (glyph, role) = level_glyph(level, look);
        line.push_glyphs(glyph, 1, role);
        line.push_blanks(1);
    }
    line.with("more", StyleRole::Muted)
}
