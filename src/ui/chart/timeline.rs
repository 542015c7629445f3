//! A tree of spans on a time line: guides and labels at the left, a bar for each at the right.

use ratatui::{buffer::Buffer, layout::Rect};

use super::scale::{Scale, TimeStretch};
use crate::ui::{
    line::TextLine,
    look::{Look, below, right_of, row},
    text::SafeText,
    theme::StyleRole,
};

/// A row of the tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimelineRow {
    /// For each level above this one, from the outermost in: whether it has more rows further down. Empty for a root;
    /// the last entry is the row's own level.
    pub levels: Vec<bool>,
    /// Text after the guides.
    pub label: TextLine,
    /// Start of the span, in seconds; `None` draws no bar.
    pub from: Option<f64>,
    /// End of the span, in seconds; `None` while it is ongoing.
    pub to: Option<f64>,
    /// The bar's role.
    pub role: StyleRole,
}

/// The tree with its current state.
pub struct Timeline<'a> {
    /// Every row; the scale covers them all, so that it does not change while scrolling.
    pub rows: &'a [TimelineRow],
    /// The first row drawn.
    pub first: usize,
    /// The row the cursor is on.
    pub selected: Option<usize>,
    /// A time in words, as short as possible.
    pub tick: &'a dyn Fn(f64) -> SafeText,
}

impl Timeline<'_> {
    /// Draws a ruler and the rows below it. Below 48 columns the tree alone.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) {
        let area = area.intersection(buf.area);
        if area.is_empty() {
            return;
        }
        let labels = self.label_width(area.width, look);
        let has_bars = area.width >= 48;
        let bars = right_of(area, if has_bars { labels + 2 } else { area.width });
        let has_ruler = has_bars && area.height >= 3;
        let now = self.rows.iter().filter_map(|row| row.to.or(row.from)).fold(f64::NEG_INFINITY, f64::max);
        let spans: Vec<(f64, f64)> =
            self.rows.iter().filter_map(|row| Some((row.from?, row.to.unwrap_or(now)))).collect();
        let scale = Scale::new(&spans, usize::from(bars.width));
        if has_ruler {
            self.render_ruler(&scale, row(bars, 0), buf, look);
        }
        let body = below(area, u16::from(has_ruler));
        for (index, given) in self.rows.iter().enumerate().skip(self.first).take(usize::from(body.height)) {
            let line = row(body, (index - self.first) as u16);
            let mut label = guides(&given.levels, look);
            label.append(given.label.clone());
            label.render(if has_bars { Rect { width: labels, ..line } } else { line }, buf, look);
            if has_bars {
                render_bar(given, &scale, now, Rect { y: line.y, height: 1, ..bars }, buf, look);
            }
            if self.selected == Some(index) {
                look.select(line, buf, StyleRole::Selection);
            }
        }
    }

    /// Columns of guides and labels: as many as needed, at most somewhat less than half.
    fn label_width(&self, width: u16, look: &Look) -> u16 {
        let widest = self.rows.iter().map(|row| guides(&row.levels, look).width() + row.label.width()).max();
        widest.unwrap_or(0).min(Self::label_room(usize::from(width))) as u16
    }

    /// Most columns of guides and labels for a width: all of them if there are no bars.
    pub fn label_room(width: usize) -> usize {
        if width < 48 { width } else { width * 9 / 20 }
    }

    /// The time at the beginning of each stretch, as far as there is room, and a sign where time is compressed.
    fn render_ruler(&self, scale: &Scale, line: Rect, buf: &mut Buffer, look: &Look) {
        let stretches = scale.stretches();
        let mut free = 0;
        for (index, stretch) in stretches.iter().enumerate() {
            let next = stretches.get(index + 1).map_or(usize::from(line.width), |next| next.column);
            let label = (self.tick)(stretch.from);
            let fits = |label: &SafeText| stretch.column >= free && stretch.column + label.width() <= next.max(free);
            // If there is no room for the time of day, the day is shown.
            let day = || SafeText::new(label.as_str().split(' ').next().unwrap_or_default());
            if let Some(label) = Some(label.clone()).filter(fits).or_else(|| Some(day()).filter(fits)) {
                look.text(right_of(line, stretch.column as u16), buf, &label, StyleRole::Muted);
                free = stretch.column + label.width() + 1;
            }
            if index + 1 < stretches.len() {
                let middle = gap_column(stretch, &stretches[index + 1]);
                look.glyph(line.x + middle as u16, line.y, buf, look.glyphs.gap, StyleRole::Muted);
            }
        }
        if let Some(last) = stretches.last() {
            let label = (self.tick)(last.to);
            let at = usize::from(line.width).saturating_sub(label.width());
            if at > free && last.to > last.from {
                look.text(right_of(line, at as u16), buf, &label, StyleRole::Muted);
            }
        }
    }
}

/// The guides of a tree row: `│  ├─ `. See [`TimelineRow::levels`].
pub fn guides(levels: &[bool], look: &Look) -> TextLine {
    let g = look.glyphs;
    let mut line = TextLine::default();
    let Some((own, above)) = levels.split_last() else { return line };
    for has_more in above {
        if *has_more {
            line.push_glyphs(g.vertical, 1, StyleRole::Muted);
            line.push_blanks(2);
        } else {
            line.push_blanks(3);
        }
    }
    line.push_glyphs(if *own { g.branch } else { g.last_branch }, 1, StyleRole::Muted);
    line.push_glyphs(g.horizontal, 1, StyleRole::Muted);
    line.push_blanks(1);
    line
}

/// The column in the middle of the squeezed time between two stretches.
fn gap_column(before: &TimeStretch, after: &TimeStretch) -> usize {
    usize::midpoint(before.column + before.width, after.column)
}

fn render_bar(given: &TimelineRow, scale: &Scale, now: f64, line: Rect, buf: &mut Buffer, look: &Look) {
    let g = look.glyphs;
    for pair in scale.stretches().windows(2) {
        look.glyph(line.x + gap_column(&pair[0], &pair[1]) as u16, line.y, buf, g.dotted, StyleRole::Track);
    }
    let Some(from) = given.from else { return };
    let (start, end) = (scale.column(from) as u16, scale.column(given.to.unwrap_or(now)) as u16);
    let bar =
        Rect { width: (end.saturating_sub(start) + 1).min(line.width.saturating_sub(start)), ..right_of(line, start) };
    if bar.width > 1 {
        look.fill(bar, buf, g.bar, given.role);
    } else {
        look.fill(bar, buf, g.dot, given.role);
    }
    if given.to.is_none() && !bar.is_empty() {
        look.glyph(bar.right() - 1, bar.y, buf, g.arrow_right, given.role);
    }
}
