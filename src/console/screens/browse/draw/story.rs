//! The story of an episode: its chain, its events in lanes on a common time axis, and a description of every moment
//! below.

use ratatui::layout::Rect;
use serde_json::Value;

use crate::console::core::{ClickTarget, Destination, row_name};
use crate::console::screens::browse::detail::{Detail, DetailTab};
use crate::console::screens::browse::draw::{episode, rows, utility};
use crate::console::view::{Canvas, DocumentWriter, words};
use crate::memory::query::EpisodeContext;
use crate::memory::story::{self, Moment, MomentSource, Story, StoryLane};
use crate::memory::utility::UtilityReplay;
use crate::memory::{Entity, Row, time};
use crate::ui::chart::{ChartLane, LaneChart, LaneLevel, LaneMark};
use crate::ui::look::{below, right_of, row};
use crate::ui::{Glyph, Look, SafeText, StyleRole, TextLine, figures};

/// Rows reserved for the description of a moment.
const WORDS: u16 = 4;

fn seconds(row: &Row, column: &str) -> Option<f64> {
    row.text(column).and_then(time::epoch_micros).map(|micros| micros as f64 / 1e6)
}

/// Draws chain and lanes; returns the rows that they took.
pub fn draw(detail: &Detail, context: &EpisodeContext, canvas: &mut Canvas<'_>, area: Rect) -> u16 {
    let (story, look) = (&detail.story, canvas.look);
    let mut used = chain(context, canvas, row(area, 0));
    if story.moments.is_empty() {
        return used;
    }
    let lanes = lanes(story, detail.moment, context, look);
    let fits = area.height.saturating_sub(used + 2 + WORDS);
    // If there is little room, empty lanes are dropped.
    let shown: Vec<ChartLane> = if lanes.len() > usize::from(fits) {
        lanes.into_iter().filter(|lane| !lane.marks.is_empty()).take(usize::from(fits).max(1)).collect()
    } else {
        lanes
    };
    let axis = axis(story, context);
    let chart = LaneChart {
        lanes: &shown,
        moments: &axis,
        is_time: story.even.is_none(),
        selected: story.moments.get(detail.moment).map(|moment| moment.at),
        tick: &|at| tick(at, &axis),
        pause: &figures::duration,
    };
    let picture = Rect { height: (shown.len() as u16 + 1).min(area.height - used), ..below(area, used) };
    for (moment, place) in chart.render(picture, canvas.buf, look) {
        canvas.drawn.hits.add(place, ClickTarget::Moment(moment));
    }
    used += picture.height;
    let line = row(area, used);
    line_of_scale(detail, context, chart.seconds_a_column(area.width)).render(line, canvas.buf, look);
    used + 1
}

/// The moments, extended by the start and the end of the episode.
fn axis(story: &Story, context: &EpisodeContext) -> Vec<f64> {
    let mut axis: Vec<f64> = story.moments.iter().map(|moment| moment.at).collect();
    if story.even.is_none() {
        axis.extend(["started_at", "ended_at"].iter().filter_map(|column| seconds(&context.episode, column)));
        axis.sort_by(f64::total_cmp);
    }
    axis
}

/// Day and time of day, with seconds if the story is short.
fn tick(at: f64, axis: &[f64]) -> (SafeText, SafeText) {
    const SHORT: f64 = 600.0;
    let text = time::from_epoch_real(at).unwrap_or_default();
    let whole = words::time(&text, axis.last().zip(axis.first()).is_some_and(|(last, first)| last - first < SHORT));
    let part = |range: std::ops::Range<usize>| SafeText::new(whole.as_str().get(range).unwrap_or_default());
    (part(5..10), part(11..whole.as_str().len().max(11)))
}

/// Builds the line with the current position and the time span of one lane column.
fn line_of_scale(detail: &Detail, context: &EpisodeContext, column: Option<f64>) -> TextLine {
    let story = &detail.story;
    let mut line = TextLine::of(format!("{} of {}", detail.moment + 1, story.moments.len()), StyleRole::Label);
    let scale = match (story.even, column) {
        (Some(why), _) => format!("   evenly spaced: {why}"),
        (None, Some(seconds)) => format!("   one column is {}", figures::duration(seconds).as_str()),
        (None, None) => String::new(),
    };
    line.push(scale, StyleRole::Muted);
    if story.even.is_none() && story.untimed() > 0 {
        line.push(format!("   {} without a time follow the entry before them", story.untimed()), StyleRole::Warn);
    }
    let others = Story::untold(context);
    if others > 0 {
        line.push(format!("   without {} more", figures::count(others as u64).as_str()), StyleRole::Warn);
    }
    line
}

/// The chain on one line, the episode itself always in sight; each episode is a target.
fn chain(context: &EpisodeContext, canvas: &mut Canvas<'_>, line: Rect) -> u16 {
    /// Columns of a title.
    const LEAST: usize = 12;
    const MOST: usize = 80;
    /// Columns of the label.
    const LABEL: usize = 7;
    let chain = &context.chain;
    let position = chain.ids.iter().position(|id| id == context.episode.id()).unwrap_or(0);
    if chain.ids.len() + chain.children.len() <= 1 {
        return 0;
    }
    let look = canvas.look;
    let room = usize::from(line.width).saturating_sub(LABEL + 2);
    let pieces = links(context, position, LEAST, look);
    // As many as fit, from the episode itself outwards: first those before it.
    let (mut first, mut last) = (position, position);
    let mut used = pieces[position].0.width();
    loop {
        let left = first.checked_sub(1).filter(|at| used + pieces[*at].0.width() <= room);
        let right = Some(last + 1).filter(|at| *at < pieces.len() && used + pieces[*at].0.width() <= room);
        let next = if position - first <= last - position { left.or(right) } else { right.or(left) };
        let Some(next) = next else { break };
        used += pieces[next].0.width();
        (first, last) = (first.min(next), last.max(next));
    }
    // Then their titles as far as there is room.
    let titles: Vec<usize> = (LEAST..=MOST).collect();
    let fits = |title: &usize| {
        let pieces = links(context, position, *title, look);
        pieces[first..=last].iter().map(|(piece, _)| piece.width()).sum::<usize>() <= room
    };
    let longest = titles[titles.partition_point(fits).saturating_sub(1)];
    let pieces = links(context, position, longest, look);
    let mut place = right_of(line, TextLine::of("chain  ", StyleRole::Label).render(line, canvas.buf, look));
    let dots = |hidden: bool| {
        TextLine::of(if hidden { SafeText::glyphs(look.glyphs.gap, 1) } else { " ".into() }, StyleRole::Muted)
    };
    place = right_of(place, dots(first > 0).render(place, canvas.buf, look));
    for (piece, id) in &pieces[first..=last] {
        let width = piece.render(place, canvas.buf, look);
        if let Some(id) = id {
            let to = Destination::Tab(Entity::Episode, (*id).to_owned(), DetailTab::Story.title());
            canvas.drawn.hits.add(Rect { width, ..place }, ClickTarget::Link(to));
        }
        place = right_of(place, width);
    }
    dots(last + 1 < pieces.len()).render(place, canvas.buf, look);
    1
}

/// The episodes of the chain with their titles; of several with the same parent, only the first one.
fn links<'c>(context: &'c EpisodeContext, own: usize, title: usize, look: &Look) -> Vec<(TextLine, Option<&'c str>)> {
    let chain = &context.chain;
    let mut pieces: Vec<(TextLine, Option<&str>)> = Vec::new();
    let mut before: Option<&Row> = None;
    for (index, id) in chain.ids.iter().enumerate() {
        let piece = link(context, before, (id, index == own), title, look);
        pieces.push((piece, (index != own).then_some(id.as_str())));
        before = context.relative(id);
    }
    let mut next: Vec<&str> = chain.children.iter().map(String::as_str).collect();
    while let [child, others @ ..] = &next[..] {
        let mut piece = link(context, before, (child, false), title, look);
        if !others.is_empty() {
            piece.push(format!(" and {} more", others.len()), StyleRole::Muted);
        }
        pieces.push((piece, Some(*child)));
        before = context.relative(child);
        next = context.followers(child).into_iter().map(Row::id).collect();
        next.retain(|id| !pieces.iter().any(|(_, known)| *known == Some(*id)));
    }
    pieces
}

/// An episode of the chain: how long after the one before, how it went, its title.
fn link(
    context: &EpisodeContext,
    before: Option<&Row>,
    (id, own): (&str, bool),
    title: usize,
    look: &Look,
) -> TextLine {
    let (g, row) = (look.glyphs, context.relative(id));
    let mut line = TextLine::default();
    if let Some(before) = before {
        let at = |row: &Row| seconds(row, "started_at");
        let pause = row.and_then(at).zip(at(before)).map(|(at, before)| figures::duration(at - before));
        line.push_blanks(1);
        line.push_glyphs(g.horizontal, 2, StyleRole::Border);
        line.push(pause.unwrap_or_default(), StyleRole::Muted);
        line.push_glyphs(g.horizontal, 2, StyleRole::Border);
        line.push_blanks(1);
    }
    let role = words::state_role(row.and_then(|row| row.text("outcome")).unwrap_or_default());
    line.push_glyphs(if own { g.diamond } else { g.dot }, 1, role);
    let name = row.map_or_else(|| id.to_owned(), row_name);
    let name = words::told_apart(&name, before.map(row_name).as_deref(), title, look);
    line.push_blanks(1);
    line.push(name, if own { StyleRole::Heading } else { StyleRole::Link });
    line
}

fn lanes(story: &Story, cursor: usize, context: &EpisodeContext, look: &Look) -> Vec<ChartLane> {
    let replay = story::signals(context);
    let level = level(story, context, &replay);
    let at = story.moments.get(cursor).map_or(f64::NEG_INFINITY, |moment| moment.at);
    let lane = |lane: StoryLane| {
        let level = level.as_ref().filter(|_| lane == StoryLane::Utility);
        let value = level.map(|level| format!(" {:.2}", level.at(at))).unwrap_or_default();
        let of = |(_, moment): &(usize, &Moment)| moment.lane == lane;
        let marks = story.moments.iter().enumerate().filter(of).map(|(index, moment)| {
            let (glyph, role, label) = sign(moment, context, &replay, look);
            LaneMark { at: moment.at, glyph, role, label, moment: index }
        });
        ChartLane {
            label: format!("{}{value}", lane.title()).into(),
            marks: marks.collect(),
            spans: if lane == StoryLane::Canvas { open_canvases(story, context) } else { Vec::new() },
            level: level.cloned(),
        }
    };
    let mut lanes: Vec<ChartLane> = StoryLane::ALL.into_iter().map(lane).collect();
    // Most episodes were never recalled: an empty lane for that is dropped.
    if lanes.last().is_some_and(|recalled| recalled.marks.is_empty()) {
        lanes.pop();
    }
    lanes
}

/// From when to when each canvas was there: from its first event to its last.
fn open_canvases(story: &Story, context: &EpisodeContext) -> Vec<(f64, f64)> {
    let mut spans: Vec<(&str, f64, f64)> = Vec::new();
    for moment in &story.moments {
        let row = moment.source.row(context).filter(|row| row.entity == Entity::CanvasEvent);
        let Some(id) = row.and_then(|row| row.text("canvas_id")) else { continue };
        match spans.iter_mut().find(|(known, ..)| *known == id) {
            Some((.., to)) => *to = moment.at,
            None => spans.push((id, moment.at, moment.at)),
        }
    }
    spans.into_iter().map(|(_, from, to)| (from, to)).collect()
}

/// The utility between the signals; `None` if unknown.
fn level(story: &Story, context: &EpisodeContext, replay: &UtilityReplay) -> Option<LaneLevel> {
    let steps = story.moments.iter().filter_map(|moment| match moment.source {
        MomentSource::Signal(at) => Some((moment.at, replay.steps.get(at)?.after)),
        _ => None,
    });
    let steps: Vec<(f64, f64)> = steps.collect();
    let start = if steps.is_empty() { context.episode.number("utility") } else { Some(replay.start) };
    Some(LaneLevel { start: start?, steps })
}

/// The sign of a moment, its meaning, and a word or two.
fn sign(
    moment: &Moment,
    context: &EpisodeContext,
    replay: &UtilityReplay,
    look: &Look,
) -> (Glyph, StyleRole, SafeText) {
    let g = look.glyphs;
    let row = moment.source.row(context);
    let text = |column: &str| row.and_then(|row| row.text(column)).unwrap_or_default();
    let stated = |word: &str, label: &str| {
        let role = words::state_role(word);
        let glyph = match role {
            StyleRole::Good => g.check,
            StyleRole::Bad => g.cross,
            _ => g.dot,
        };
        (glyph, if role == StyleRole::Muted { StyleRole::Accent } else { role }, SafeText::limited(label, 80))
    };
    match moment.source {
        MomentSource::Segment(_) => (g.dot, StyleRole::Accent, SafeText::limited(said_by(row), 160)),
        MomentSource::Event(_) => stated(text("kind").rsplit('.').next().unwrap_or_default(), text("kind")),
        MomentSource::Action(at) => {
            let action = context.episode.get("actions").get(at).unwrap_or(&Value::Null);
            let field = |name: &str| action.get(name).and_then(Value::as_str).unwrap_or_default();
            stated(field("status"), field("step_name"))
        }
        MomentSource::Canvas(_) => {
            let what = if text("action") == "present" { text("canvas_type") } else { text("action") };
            stated(text("action"), what)
        }
        MomentSource::Feedback(_) => stated(text("kind"), text("kind")),
        MomentSource::Signal(at) => match replay.steps.get(at) {
            Some(step) => {
                let (glyph, role) = utility::mark(step, look);
                (glyph, role, SafeText::default())
            }
            None => (g.warning, StyleRole::Warn, SafeText::default()),
        },
        MomentSource::Access(_) => (g.ring, StyleRole::Muted, SafeText::limited(text("kind"), 20)),
    }
}

/// The first words of a segment.
fn said_by(row: Option<&Row>) -> &str {
    let text = row.and_then(|row| row.text("content")).unwrap_or_default();
    text.lines().next().unwrap_or_default()
}

/// Writes a description of every moment, one below the other.
pub fn write(writer: &mut DocumentWriter<'_>, story: &Story, context: &EpisodeContext) {
    if story.moments.is_empty() {
        writer.text("Nothing in this episode has a time: it has no segments, events or signals.", StyleRole::Muted);
    }
    let replay = story::signals(context);
    let mut before: Option<&Moment> = None;
    for moment in &story.moments {
        pause(writer, before.filter(|_| story.even.is_none()), moment);
        writer.stop();
        words_of(writer, moment, context, &replay);
        before = Some(moment);
    }
}

/// Writes the time since the previous moment if it is notable; else a blank line.
fn pause(writer: &mut DocumentWriter<'_>, before: Option<&Moment>, moment: &Moment) {
    const HOUR: f64 = 3_600.0;
    match before.map(|before| moment.at - before.at).filter(|pause| *pause >= HOUR) {
        Some(pause) => {
            let later = format!("{} later", figures::duration(pause).as_str());
            writer.section(&later, None);
        }
        None => writer.blank(),
    }
}

fn words_of(writer: &mut DocumentWriter<'_>, moment: &Moment, context: &EpisodeContext, replay: &UtilityReplay) {
    if let MomentSource::Action(at) = moment.source {
        return episode::action(writer, context.episode.get("actions").get(at).unwrap_or(&Value::Null));
    }
    let Some(row) = moment.source.row(context) else { return };
    match moment.source {
        MomentSource::Segment(_) => episode::segment(writer, row),
        MomentSource::Event(_) => episode::event(writer, row),
        MomentSource::Canvas(_) => episode::canvas_event(writer, row),
        MomentSource::Feedback(_) => episode::feedback_row(writer, row),
        MomentSource::Signal(at) => {
            if let Some(step) = replay.steps.get(at) {
                utility::signal(writer, row, step);
            }
        }
        MomentSource::Access(_) | MomentSource::Action(_) => rows::row_line(writer, row),
    }
}
