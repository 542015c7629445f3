//! Charts on one line, for table cells and lists.

use crate::ui::{line::TextLine, look::Look, text::SafeText, theme::StyleRole};

/// The values as small bars, the newest at the right; `None` leaves a gap. Values run from 0 to `max`; if there are
/// more values than columns, neighbours are averaged.
pub fn sparkline(values: &[Option<f64>], max: f64, width: usize, role: StyleRole, look: &Look) -> TextLine {
    let columns = width.min(values.len());
    let mut line = TextLine::default();
    for column in 0..columns {
        let (from, to) = (column * values.len() / columns, (column + 1) * values.len() / columns);
        let known: Vec<f64> = values[from..to].iter().flatten().copied().filter(|value| value.is_finite()).collect();
        if known.is_empty() {
            line.push_glyphs(look.glyphs.separator, 1, StyleRole::Muted);
            continue;
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        line.push_glyphs(look.glyphs.rising[eighth(share(mean, max), mean > 0.0).max(1)], 1, role);
    }
    line
}

/// The buckets of a histogram as one line of bars, each `columns` wide. Empty buckets stay visible as a track.
pub fn bucket_line(buckets: &[u64], columns: usize, role: StyleRole, look: &Look) -> TextLine {
    let max = buckets.iter().copied().max().unwrap_or(0) as f64;
    let mut line = TextLine::default();
    for count in buckets {
        if *count == 0 {
            line.push_glyphs(look.glyphs.separator, columns, StyleRole::Muted);
        } else {
            line.push_glyphs(look.glyphs.rising[eighth(share(*count as f64, max), true)], columns, role);
        }
    }
    line
}

/// A bar for a value from 0 to 1 on a track of `width` columns. Any value above 0 shows, only 1 fills the track.
pub fn meter(value: f64, width: usize, role: StyleRole, look: &Look) -> TextLine {
    let filled = filled_columns(value, width);
    let mut line = TextLine::default();
    line.push_glyphs(look.glyphs.bar, filled, role);
    line.push_glyphs(look.glyphs.track, width - filled, StyleRole::Track);
    line
}

/// A bar from the middle: to the left for -1..0, to the right for 0..1.
pub fn diverging(value: f64, width: usize, look: &Look) -> TextLine {
    let Some(half) = width.checked_sub(1).map(|sides| sides / 2) else { return TextLine::default() };
    let value = if value.is_finite() { value.clamp(-1.0, 1.0) } else { 0.0 };
    let filled = filled_columns(value.abs(), half);
    let (left, right) = if value < 0.0 { (filled, 0) } else { (0, filled) };
    let g = look.glyphs;
    let mut line = TextLine::default();
    line.push_glyphs(g.track, half - left, StyleRole::Track);
    line.push_glyphs(g.bar, left, StyleRole::Bad);
    line.push_glyphs(g.vertical, 1, StyleRole::Muted);
    line.push_glyphs(g.bar, right, StyleRole::Good);
    line.push_glyphs(g.track, half - right, StyleRole::Track);
    line
}

/// Progress: a label, a bar, a percentage, a note.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gauge {
    /// Before the bar.
    pub label: SafeText,
    /// Progress, from 0 to 1; an unknown one draws an empty track.
    pub ratio: Option<f64>,
    /// After the percentage: remaining time, rate.
    pub note: SafeText,
    /// The bar's role.
    pub role: StyleRole,
}

impl Gauge {
    /// The gauge in a line of `width` columns. The bar gets the room left by the words, at least 8 columns; the note is
    /// dropped first.
    pub fn line(&self, width: usize, look: &Look) -> TextLine {
        let percent = self.ratio.map_or_else(
            || SafeText::new("  ?%"),
            |ratio| {
                let share = share(ratio, 1.0) * 100.0;
                // 100% means done, so values are never rounded up to it.
                SafeText::new(&format!("{:>3.0}%", if share < 100.0 { share.floor() } else { share }))
            },
        );
        let mut line = TextLine::of(self.label.clone(), StyleRole::Text);
        if !self.label.is_empty() {
            line.push_blanks(2);
        }
        let words = line.width() + 1 + percent.width();
        let note = if self.note.is_empty() { 0 } else { self.note.width() + 2 };
        let shows_note = note > 0 && width >= words + note + 8;
        let bar = width.saturating_sub(words + if shows_note { note } else { 0 });
        line.append(meter(self.ratio.unwrap_or(0.0), bar, self.role, look));
        line.push_blanks(1);
        line.push(percent, StyleRole::Text);
        if shows_note {
            line.push_blanks(2);
            line.push(self.note.clone(), StyleRole::Muted);
        }
        line
    }
}

/// `value` as a share of `max`, from 0 to 1; 0 for NaN.
pub(super) fn share(value: f64, max: f64) -> f64 {
    let share = value / max;
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

/// A share in eighths; at least one if the value is not zero.
pub(super) fn eighth(share: f64, is_some: bool) -> usize {
    ((share * 8.0).round() as usize).clamp(usize::from(is_some), 8)
}

fn filled_columns(value: f64, width: usize) -> usize {
    let value = share(value, 1.0);
    let filled = (value * width as f64).round() as usize;
    let least = usize::from(value > 0.0).min(width);
    let most = if value < 1.0 { width.saturating_sub(1).max(least) } else { width };
    filled.clamp(least, most)
}
