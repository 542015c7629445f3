//! Moments in lanes on one axis of time: one lane for each source, and a cursor through the moments.

use ratatui::{buffer::Buffer, layout::Rect};

use super::scale::Scale;
use super::small::{eighth, share};
use crate::ui::{
    glyphs::Glyph,
    look::{Look, right_of, row},
    text::{Align, SafeText},
    theme::StyleRole,
};

/// Columns for a folded pause: its edges and its name.
const FOLD: usize = 10;

/// Columns of a stretch with a single moment: room for its time.
const STRETCH: usize = 6;

/// A moment in a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneMark {
    /// Time of the mark.
    pub at: f64,
    /// Glyph to draw.
    pub glyph: Glyph,
    /// Meaning of the mark, which determines its style.
    pub role: StyleRole,
    /// Text after the glyph, drawn if there is room.
    pub label: SafeText,
    /// Index of the moment among all moments.
    pub moment: usize,
}

/// A value from 0 to 1 that changes in steps.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneLevel {
    /// Before the first change.
    pub start: f64,
    /// Changes as (time, new value), in order.
    pub steps: Vec<(f64, f64)>,
}

impl LaneLevel {
    /// The value at a time.
    pub fn at(&self, time: f64) -> f64 {
        self.steps.iter().take_while(|(at, _)| *at <= time).last().map_or(self.start, |(_, value)| *value)
    }
}

/// A lane.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartLane {
    /// Before it.
    pub label: SafeText,
    /// In order.
    pub marks: Vec<LaneMark>,
    /// From when to when something was there.
    pub spans: Vec<(f64, f64)>,
    /// A value below the marks.
    pub level: Option<LaneLevel>,
}

/// The lanes with their axis.
pub struct LaneChart<'a> {
    /// From top to bottom.
    pub lanes: &'a [ChartLane],
    /// Every moment, in order, and the ends of the axis if those are further out.
    pub moments: &'a [f64],
    /// The axis is one of time: pauses are folded, and times are above it.
    pub is_time: bool,
    /// The moment that the cursor is on.
    pub selected: Option<f64>,
    /// The day of a time and its time of day.
    pub tick: &'a dyn Fn(f64) -> (SafeText, SafeText),
    /// A pause of this many seconds in a word.
    pub pause: &'a dyn Fn(f64) -> SafeText,
}

impl LaneChart<'_> {
    /// Columns before the lanes.
    fn names(&self) -> u16 {
        self.lanes.iter().map(|lane| lane.label.width()).max().unwrap_or(0) as u16 + 2
    }

    /// The scale for a chart of this many columns.
    pub fn scale(&self, width: u16) -> Scale {
        let room = usize::from(width.saturating_sub(self.names()));
        Scale::folding(self.moments, room, if self.is_time { (FOLD, STRETCH) } else { (0, 2) })
    }

    /// Seconds per column; `None` if there is only one moment.
    pub fn seconds_a_column(&self, width: u16) -> Option<f64> {
        let scale = self.scale(width);
        let widest = scale.stretches().iter().max_by_key(|stretch| stretch.width)?;
        (widest.to > widest.from && widest.width > 1).then(|| (widest.to - widest.from) / (widest.width - 1) as f64)
    }

    /// Draws a ruler and the lanes below it; returns the column of each moment.
    pub fn render(&self, area: Rect, buf: &mut Buffer, look: &Look) -> Vec<(usize, Rect)> {
        let area = area.intersection(buf.area);
        let scale = self.scale(area.width);
        let plot = right_of(area, self.names());
        if area.height < 2 || plot.is_empty() || scale.stretches().is_empty() {
            return Vec::new();
        }
        let cursor = self.selected.map(|at| scale.column(at) as u16);
        self.render_ruler(&scale, row(plot, 0), cursor, buf, look);
        let mut places = Vec::new();
        for (index, lane) in self.lanes.iter().enumerate().take(usize::from(area.height - 1)) {
            let line = row(plot, index as u16 + 1);
            let name = Rect { width: self.names() - 1, ..row(area, index as u16 + 1) };
            let role = if lane.marks.is_empty() { StyleRole::Muted } else { StyleRole::Label };
            look.text(name, buf, &lane.label, role);
            if let Some(level) = &lane.level {
                render_level(level, &scale, line, buf, look);
            }
            for fold in self.folds(&scale) {
                for x in [fold.0, fold.1.saturating_sub(1)] {
                    look.glyph(line.x + x as u16, line.y, buf, look.glyphs.dotted, StyleRole::Track);
                }
            }
            if let Some(x) = cursor.filter(|x| *x < line.width) {
                look.glyph(line.x + x, line.y, buf, look.glyphs.vertical, StyleRole::Accent);
            }
            places.extend(render_marks(lane, &scale, line, self.selected, buf, look));
        }
        places
    }

    /// First column, and the column after the last, of each folded pause.
    fn folds(&self, scale: &Scale) -> Vec<(usize, usize)> {
        let pairs = scale.stretches().windows(2).filter(|_| self.is_time);
        pairs.map(|pair| (pair[0].column + pair[0].width, pair[1].column)).collect()
    }

    /// Times above the stretches, and between them how long the folded pauses are.
    fn render_ruler(&self, scale: &Scale, line: Rect, cursor: Option<u16>, buf: &mut Buffer, look: &Look) {
        if self.is_time {
            self.render_times(scale, line, buf, look);
        } else {
            look.text(line, buf, &"in order, not to scale".into(), StyleRole::Muted);
        }
        let is_free = |x: u16| buf.cell((line.x + x, line.y)).is_some_and(|cell| cell.symbol() == " ");
        if let Some(x) = cursor.filter(|x| *x < line.width && is_free(*x)) {
            look.glyph(line.x + x, line.y, buf, look.glyphs.down, StyleRole::Accent);
        }
    }

    fn render_times(&self, scale: &Scale, line: Rect, buf: &mut Buffer, look: &Look) {
        let stretches = scale.stretches();
        let mut day = SafeText::default();
        for stretch in stretches {
            let place = Rect { width: (stretch.width as u16).min(line.width), ..right_of(line, stretch.column as u16) };
            let begins = self.label(stretch.from, &day, stretch.width);
            let used = look.text(place, buf, &begins, StyleRole::Muted);
            (day, _) = (self.tick)(stretch.from);
            let room = stretch.width.saturating_sub(usize::from(used) + 2);
            let ends = self.label(stretch.to, &day, room);
            if stretch.to > stretch.from && !ends.is_empty() {
                let place = right_of(place, (stretch.width - ends.width()) as u16);
                look.text(place, buf, &ends, StyleRole::Muted);
                (day, _) = (self.tick)(stretch.to);
            }
        }
        for (pair, (from, to)) in stretches.windows(2).zip(self.folds(scale)) {
            let name = (self.pause)(pair[1].from - pair[0].to).pad(to - from, Align::Center);
            let place = Rect { width: (to - from) as u16, ..right_of(line, from as u16) };
            look.text(place, buf, &name, StyleRole::Label);
            look.glyph(place.x, place.y, buf, look.glyphs.dotted, StyleRole::Track);
            look.glyph(place.right().saturating_sub(1), place.y, buf, look.glyphs.dotted, StyleRole::Track);
        }
    }

    /// A time in at most this many columns: with its day if that differs from `day`.
    fn label(&self, at: f64, day: &SafeText, room: usize) -> SafeText {
        let (of, clock) = (self.tick)(at);
        let whole = SafeText::join(&[of.clone(), clock.clone()], " ");
        let wanted = if of == *day { vec![clock] } else { vec![whole, of] };
        wanted.into_iter().find(|label| label.width() <= room).unwrap_or_default()
    }
}

/// The value as bars that keep their height until the next change.
fn render_level(level: &LaneLevel, scale: &Scale, line: Rect, buf: &mut Buffer, look: &Look) {
    let mut value = level.start;
    let mut steps = level.steps.iter().map(|(at, value)| (scale.column(*at), *value)).peekable();
    for x in 0..line.width {
        while let Some((_, after)) = steps.next_if(|(column, _)| *column <= usize::from(x)) {
            value = after;
        }
        let glyph = look.glyphs.rising[eighth(share(value, 1.0), value > 0.0)];
        look.glyph(line.x + x, line.y, buf, glyph, StyleRole::Series1);
    }
}

fn render_marks(
    lane: &ChartLane,
    scale: &Scale,
    line: Rect,
    selected: Option<f64>,
    buf: &mut Buffer,
    look: &Look,
) -> Vec<(usize, Rect)> {
    for (from, to) in &lane.spans {
        let (from, to) = (scale.column(*from) as u16, scale.column(*to) as u16);
        let span = Rect { width: (to.saturating_sub(from) + 1).min(line.width), ..right_of(line, from) };
        look.fill(span.intersection(line), buf, look.glyphs.horizontal, StyleRole::Border);
    }
    let mut places = Vec::new();
    let mut marks = lane.marks.iter().peekable();
    while let Some(first) = marks.next() {
        let column = scale.column(first.at);
        let mut here = vec![first];
        while let Some(mark) = marks.next_if(|mark| scale.column(mark.at) == column) {
            here.push(mark);
        }
        let x = line.x + column as u16;
        let place = Rect { x, width: 1, ..line };
        // The selected mark represents those in the same column, else the last one.
        let shown = here.iter().find(|mark| Some(mark.at) == selected).or(here.last()).copied().unwrap_or(first);
        match here.len() {
            1 => look.glyph(x, line.y, buf, shown.glyph, shown.role),
            several => {
                let digit = if several > 9 { "+".to_owned() } else { several.to_string() };
                look.text(place, buf, &digit.into(), shown.role);
            }
        }
        if here.iter().any(|mark| Some(mark.at) == selected) {
            look.select(place, buf, StyleRole::Selection);
        }
        places.push((shown.moment, place));
        let next = marks.peek().map_or(usize::from(line.width), |mark| scale.column(mark.at));
        render_label(shown, (column, next), scale, line, buf, look);
    }
    places
}

/// The label after a mark, within its stretch, as far as the next mark.
fn render_label(
    mark: &LaneMark,
    (column, next): (usize, usize),
    scale: &Scale,
    line: Rect,
    buf: &mut Buffer,
    look: &Look,
) {
    const LEAST: usize = 4;
    let is_last = scale.stretches().last().is_some_and(|stretch| mark.at >= stretch.from);
    let stretch = scale.stretches().iter().rfind(|stretch| stretch.from <= mark.at);
    let end = stretch.filter(|_| !is_last).map_or(usize::from(line.width), |stretch| stretch.column + stretch.width);
    let room = next.min(end).saturating_sub(column + 3);
    let label = look.fit(&mark.label, room);
    if label.width() >= LEAST.min(mark.label.width()) && !label.is_empty() {
        let place = Rect { width: label.width() as u16 + 2, ..right_of(line, column as u16 + 1) };
        let label = SafeText::join(&[" ".into(), label, " ".into()], "");
        // The span below it leaves no colour.
        Look::clear(place.intersection(line), buf);
        look.text(place, buf, &label, StyleRole::Text);
    }
}
