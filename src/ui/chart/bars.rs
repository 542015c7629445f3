//! Bars: vertical for counts in buckets; horizontal for values around zero.

use ratatui::{buffer::Buffer, layout::Rect};

use super::small::{bucket_line, diverging, eighth, share};
use crate::ui::{
    figures,
    line::TextLine,
    look::{Look, right_of, row},
    text::{Align, SafeText},
    theme::StyleRole,
};

/// Counts of values in a row of equal buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram<'a> {
    /// The counts, in order.
    pub buckets: &'a [u64],
    /// The lower end of the first bucket and the upper end of the last.
    pub ends: (SafeText, SafeText),
    /// The bars' role.
    pub role: StyleRole,
}

impl<'a> Histogram<'a> {
    /// Buckets of values from 0 to 1.
    pub fn new(buckets: &'a [u64]) -> Self {
        Self { buckets, ends: ("0".into(), "1".into()), role: StyleRole::Series1 }
    }

    /// Draws the histogram: bars with their counts above and the ends below; on one or two rows only the bars.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        let count = self.buckets.len() as u16;
        if area.is_empty() || count == 0 {
            return;
        }
        let step = (area.width / count).clamp(1, 9);
        let width = if step > 2 { step - 1 } else { step };
        if area.height == 1 {
            bucket_line(self.buckets, usize::from(step), self.role, look).render(area, buf, look);
            return;
        }
        let used = Rect { width: (step * count).min(area.width), ..area };
        let has_ends = area.height >= 3;
        let widest = self.buckets.iter().map(|bucket| figures::short_count(*bucket).width()).max().unwrap_or(0);
        let has_counts = area.height >= 4 && widest < usize::from(step);
        let bars = area.height - u16::from(has_ends) - u16::from(has_counts);
        let max = self.buckets.iter().copied().max().unwrap_or(0) as f64;
        for (index, bucket) in self.buckets.iter().enumerate() {
            let x = index as u16 * step;
            if x >= used.width {
                break;
            }
            let place = Rect { width: width.min(used.width - x), ..right_of(used, x) };
            let height = share(*bucket as f64, max) * f64::from(bars);
            let bar = Rect { y: area.y + u16::from(has_counts), height: bars, ..place };
            self.render_bar(height, *bucket > 0, bar, buf, look);
            if has_counts {
                let label = figures::short_count(*bucket).pad(usize::from(step), Align::Center);
                let top = bars - (height.ceil() as u16).clamp(1, bars);
                look.text(row(Rect { height: area.height, width: step, ..place }, top), buf, &label, StyleRole::Muted);
            }
        }
        if has_ends {
            let line = row(used, area.height - 1);
            let last = self.ends.1.width() as u16;
            look.text(line, buf, &self.ends.0, StyleRole::Muted);
            look.text(right_of(line, line.width.saturating_sub(last)), buf, &self.ends.1, StyleRole::Muted);
        }
    }

    /// A standing bar, `height` rows high, from the bottom of `place` upwards.
    fn render_bar(&self, height: f64, is_some: bool, place: Rect, buf: &mut Buffer, look: &Look) {
        for from_bottom in 0..place.height {
            let fill = (height - f64::from(from_bottom)).clamp(0.0, 1.0);
            let line = row(place, place.height - 1 - from_bottom);
            let eighths = eighth(fill, is_some && from_bottom == 0);
            if eighths > 0 {
                look.fill(line, buf, look.glyphs.rising[eighths], self.role);
            } else if from_bottom == 0 {
                look.fill(line, buf, look.glyphs.separator, StyleRole::Track);
            }
        }
    }
}

/// Least useful width of a diverging bar, in columns.
const SHORTEST: usize = 5;

/// A value around zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DivergingBar {
    /// Before the bar.
    pub label: SafeText,
    /// From -1 to 1; `None` draws an empty track.
    pub value: Option<f64>,
    /// After the value.
    pub note: SafeText,
}

/// Values from -1 to +1 below each other, around one common middle.
#[derive(Clone, Debug, PartialEq)]
pub struct DivergingBars<'a> {
    /// From top to bottom.
    pub bars: &'a [DivergingBar],
}

impl DivergingBars<'_> {
    /// The bars as lines of `width` columns: label, bar, sign and value, note.
    pub fn lines(&self, width: usize, look: &Look) -> Vec<TextLine> {
        let widest =
            |of: fn(&DivergingBar) -> &SafeText| self.bars.iter().map(|bar| of(bar).width()).max().unwrap_or(0);
        let (label, note) = (widest(|bar| &bar.label), widest(|bar| &bar.note).min(width / 3));
        // The value is always shown; bar and note are dropped if there is little room.
        let label = label.min(if width < 24 { width.saturating_sub(10) } else { width / 3 });
        let words = label + 2 + 8 + if note > 0 { note + 1 } else { 0 };
        let track = width.saturating_sub(words).min(41);
        let track = if track < SHORTEST { 0 } else { track };
        self.bars.iter().map(|bar| bar.line(label, track, look)).collect()
    }

    /// Draws the bars that fit.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        for (index, line) in self.lines(usize::from(area.width), look).iter().enumerate() {
            line.render(row(area, index.min(usize::from(u16::MAX)) as u16), buf, look);
        }
    }
}

impl DivergingBar {
    fn line(&self, label: usize, track: usize, look: &Look) -> TextLine {
        let mut line = TextLine::default();
        if label > 0 {
            line.push(look.pad(&self.label, label, Align::Left), StyleRole::Text);
            line.push_blanks(2);
        }
        if track > 0 {
            line.append(diverging(self.value.unwrap_or(0.0), track, look));
            line.push_blanks(1);
        }
        let g = look.glyphs;
        let (glyph, role) = match self.value {
            Some(value) if value > 0.0 => (g.up, StyleRole::Good),
            Some(value) if value < 0.0 => (g.down, StyleRole::Bad),
            _ => (g.separator, StyleRole::Muted),
        };
        line.push_glyphs(glyph, 1, role);
        line.push_blanks(1);
        match self.value {
            Some(value) => line.push(format!("{value:>+5.2}"), StyleRole::Text),
            None => line.push(SafeText::glyphs(g.none, 1).pad(5, Align::Right), StyleRole::Muted),
        }
        if !self.note.is_empty() {
            line.push_blanks(1);
            line.push(self.note.clone(), StyleRole::Muted);
        }
        line
    }
}
