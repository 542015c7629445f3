//! Sums shown by their parts: stacked horizontal bars with a legend.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::ui::{
    glyphs::Glyph,
    line::TextLine,
    look::{Look, below, row},
    text::{Align, SafeText},
    theme::StyleRole,
};

/// A sum and its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackedBar {
    /// Before the bar.
    pub label: SafeText,
    /// The parts, in the order of the legend. Negative ones are drawn to the left of zero.
    pub parts: Vec<f64>,
    /// The sum in words, after the bar.
    pub total: SafeText,
}

/// Sums below each other, all on one scale.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedBars<'a> {
    /// From top to bottom.
    pub bars: &'a [StackedBar],
    /// Names and roles of the parts, in their order.
    pub legend: &'a [(SafeText, StyleRole)],
    /// The bar the cursor is on.
    pub selected: Option<usize>,
}

impl StackedBars<'_> {
    /// The legend, in rows of `width` columns.
    pub fn legend_lines(&self, width: usize, look: &Look) -> Vec<TextLine> {
        let mut lines: Vec<TextLine> = Vec::new();
        for (index, (name, role)) in self.legend.iter().enumerate() {
            let mut entry = TextLine::default().with_glyph(key_glyph(index, look), *role);
            entry.push_blanks(1);
            entry.push(name.clone(), StyleRole::Muted);
            match lines.last_mut() {
                Some(last) if last.width() + 3 + entry.width() <= width => {
                    last.push_blanks(3);
                    last.append(entry);
                }
                _ => lines.push(entry),
            }
        }
        lines
    }

    fn label_width(&self, width: usize) -> usize {
        self.bars.iter().map(|bar| bar.label.width()).max().unwrap_or(0).min(width / 3)
    }

    /// The bars as lines of `width` columns.
    pub fn lines(&self, width: usize, look: &Look) -> Vec<TextLine> {
        let label = self.label_width(width);
        let total = self.bars.iter().map(|bar| bar.total.width()).max().unwrap_or(0).min(width / 4);
        let gaps = if label > 0 { 2 } else { 0 } + if total > 0 { 2 } else { 0 };
        let room = width.saturating_sub(label + total + gaps);
        let sum = |bar: &StackedBar, sign: f64| -> f64 {
            let parts = bar.parts.iter().map(|part| part * sign);
            parts.filter(|part| part.is_finite() && *part > 0.0).sum()
        };
        let most = self.bars.iter().map(|bar| sum(bar, 1.0)).fold(0.0, f64::max);
        let least = self.bars.iter().map(|bar| sum(bar, -1.0)).fold(0.0, f64::max);
        let scale = if most + least > 0.0 { room as f64 / (most + least) } else { 0.0 };
        let zero = (least * scale).round() as usize;
        let draw = |bar: &StackedBar| {
            let mut line = TextLine::default();
            if label > 0 {
                line.push(look.pad(&bar.label, label, Align::Left), StyleRole::Text);
                line.push_blanks(2);
            }
            let role =
                |index: usize| self.legend.get(index).map_or_else(|| StyleRole::series(index), |(_, role)| *role);
            line.append(stacked(&bar.parts, &[], &role, scale, zero, room, look));
            if total > 0 {
                line.push_blanks(2);
                line.push(look.pad(&bar.total, total, Align::Right), StyleRole::Text);
            }
            line
        };
        self.bars.iter().map(draw).collect()
    }

    /// Draws the bars that fit and, if there is room below them, the legend.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        let lines = self.lines(usize::from(area.width), look);
        for (index, line) in lines.iter().enumerate().take(usize::from(area.height)) {
            let place = row(area, index as u16);
            line.render(place, buf, look);
            if self.selected == Some(index) {
                // Only the label: the colours of the bar mean something.
                let label = self.label_width(usize::from(area.width)) as u16;
                look.select(Rect { width: label, ..place }, buf, StyleRole::Selection);
            }
        }
        let rest = below(area, (lines.len() + 1).min(usize::from(u16::MAX)) as u16);
        for (index, line) in self.legend_lines(usize::from(area.width), look).iter().enumerate() {
            line.render(row(rest, index.min(usize::from(u16::MAX)) as u16), buf, look);
        }
    }
}

/// Parts of a sum on one line of `width` columns; `least`, the lowest sum of negative parts, determines the position of
/// zero. Each part begins with its letter, so that it is distinguished without colours. `most` and `least` are those of
/// all sums in the group.
pub fn lettered(parts: &[f64], letters: &[char], (least, most): (f64, f64), width: usize, look: &Look) -> TextLine {
    let span = most + least;
    let scale = if span.is_finite() && span > 0.0 { width as f64 / span } else { 0.0 };
    stacked(parts, letters, &StyleRole::series, scale, (least * scale).round() as usize, width, look)
}

/// The parts, each from the end of the last one, on `room` columns with zero at column `zero`.
fn stacked(
    parts: &[f64],
    letters: &[char],
    role: &dyn Fn(usize) -> StyleRole,
    scale: f64,
    zero: usize,
    room: usize,
    look: &Look,
) -> TextLine {
    let mut columns: Vec<Option<usize>> = vec![None; room];
    for sign in [1.0, -1.0] {
        let mut reached: f64 = 0.0;
        for (index, part) in parts.iter().enumerate() {
            let length = part * sign * scale;
            if !(length.is_finite() && length > 0.0) {
                continue;
            }
            let (from, to) = (reached, reached + length);
            reached = to;
            for column in from.round() as usize..to.round() as usize {
                let at = if sign > 0.0 { Some(zero + column) } else { zero.checked_sub(column + 1) };
                if let Some(cell) = at.and_then(|at| columns.get_mut(at)) {
                    *cell = Some(index);
                }
            }
        }
    }
    let mut line = TextLine::default();
    for run in columns.chunk_by(|a, b| a == b) {
        let Some(Some(index)) = run.first() else {
            line.push_blanks(run.len());
            continue;
        };
        let letter = letters.get(*index);
        if let Some(letter) = letter {
            line.push(letter.to_string(), role(*index));
        }
        let rest = run.len() - usize::from(letter.is_some());
        line.push_glyphs(fill_glyph(*index, look), rest, role(*index));
    }
    line
}

/// Returns the glyph that fills a part: without colours, the pattern distinguishes the parts.
fn fill_glyph(index: usize, look: &Look) -> Glyph {
    let patterns = &look.glyphs.fills;
    if needs_patterns(look) { patterns[index % patterns.len()] } else { look.glyphs.slab }
}

fn key_glyph(index: usize, look: &Look) -> Glyph {
    if needs_patterns(look) { fill_glyph(index, look) } else { look.glyphs.cell }
}

/// Whether colours may be missing, so that the parts differ by their pattern.
fn needs_patterns(look: &Look) -> bool {
    look.theme.is_mono() || look.glyphs.is_ascii()
}
