//! The utility of an episode: a line with the signals that moved it.

use crate::console::core::Destination;
use crate::console::screens::browse::draw::episode;
use crate::console::view::{DocumentWriter, words};
use crate::memory::query::EpisodeContext;
use crate::memory::utility::{Signal, UtilityStep};
use crate::memory::{Entity, Row, story};
use crate::ui::chart::{self, LineChart, LinePoint};
use crate::ui::glyphs::Glyph;
use crate::ui::{Look, SafeText, StyleRole, TextLine};

/// Difference of utilities that floating point makes.
const SAME: f64 = 1e-9;

/// Change of the utility by a signal, and the end of the scale that limited it: `-0.20`, `-0.10 of -0.30, held at 0`.
pub fn moved(step: &UtilityStep) -> String {
    let by = step.after - step.before;
    match step.signal.map(Signal::delta).filter(|delta| (delta - by).abs() > SAME) {
        Some(delta) => format!("{by:+.2} of {delta:+.2}, held at {:.0}", step.after),
        None => format!("{by:+.2}"),
    }
}

pub fn mark(step: &UtilityStep, look: &Look) -> (Glyph, StyleRole) {
    let g = look.glyphs;
    match step.signal {
        Some(Signal::Confirmed) => (g.check, StyleRole::Good),
        Some(Signal::Corrected) => (g.edit, StyleRole::Warn),
        Some(Signal::Rejected) => (g.cross, StyleRole::Bad),
        Some(Signal::Undone) => (g.undo, StyleRole::Bad),
        Some(Signal::Ignored) => (g.ring, StyleRole::Muted),
        None => (g.warning, StyleRole::Warn),
    }
}

/// Writes the signal with the greatest effect.
fn largest(writer: &mut DocumentWriter<'_>, context: &EpisodeContext, steps: &[UtilityStep]) {
    let by = |step: &UtilityStep| (step.after - step.before).abs();
    let most = context.utility.iter().zip(steps).max_by(|(_, a), (_, b)| by(a).total_cmp(&by(b)));
    if let Some((row, step)) = most.filter(|(_, step)| by(step) > SAME) {
        let mut line = TextLine::of("largest  ", StyleRole::Label);
        line.append(words::state(row.text("signal").unwrap_or("unknown"), writer.look));
        line.push(format!("  {}", moved(step)), StyleRole::Text);
        if let Some(at) = row.text("created_at") {
            line.push_apart(words::time(at, true), StyleRole::Muted);
        }
        writer.line(line);
        writer.link(Destination::Row(Entity::UtilityEvent, row.id().to_owned()));
    }
}

/// Writes the line and the signals below it.
pub fn write(writer: &mut DocumentWriter<'_>, context: &EpisodeContext) {
    let look = writer.look;
    let stored = context.episode.number("utility");
    if context.utility.is_empty() {
        match stored {
            Some(utility) => {
                let mut line = TextLine::of("utility  ", StyleRole::Label);
                line.append(chart::meter(utility, 24, StyleRole::Accent, look));
                line.push(format!("  {utility:.2}"), StyleRole::Text);
                writer.line(line);
                writer.text("No signal is recorded that moved it.", StyleRole::Muted);
            }
            None => writer.text("This episode has no utility and no signals.", StyleRole::Muted),
        }
        return;
    }
    let replay = story::signals(context);
    let mut points = vec![LinePoint { value: Some(replay.start), mark: None }];
    points.extend(context.utility.iter().zip(&replay.steps).map(|(row, step)| LinePoint {
        value: row.number("after").or(Some(step.after)),
        mark: Some(mark(step, look)),
    }));
    let at = |row: Option<&Row>| row.and_then(|r| r.text("created_at")).map(words::short_time).unwrap_or_default();
    let ends = (at(context.utility.first()), at(context.utility.last()));
    let chart = LineChart { ends, is_stepped: true, ..LineChart::new(&points) };
    writer.picture(10, |area, buf| chart.render(area, buf, look));
    writer.text("utility, 0 to 1; the signals at equal distances, not to scale", StyleRole::Muted);
    writer.blank();
    let replayed = replay.utility();
    let is_whole = !context.more.contains_key(&Entity::UtilityEvent);
    let title = if is_whole { "replayed " } else { "after the first signals " };
    let mut line = TextLine::of(title, StyleRole::Label).with(format!("{replayed:.2}"), StyleRole::Text);
    if let Some(stored) = stored {
        line.push("   stored ", StyleRole::Label);
        let agrees = !is_whole || (stored - replayed).abs() < 0.005;
        line.push(format!("{stored:.2}"), if agrees { StyleRole::Text } else { StyleRole::Warn });
    }
    writer.line(line);
    largest(writer, context, &replay.steps);
    writer.blank();
    for (row, step) in context.utility.iter().zip(&replay.steps) {
        signal(writer, row, step);
    }
    episode::more(writer, context, Entity::UtilityEvent);
}

/// A signal and how it moved the utility.
pub fn signal(writer: &mut DocumentWriter<'_>, row: &Row, step: &UtilityStep) {
    let look = writer.look;
    let mut line = TextLine::default();
    if let Some(at) = row.text("created_at") {
        line.push(words::time(at, true), StyleRole::Muted);
        line.push("  ", StyleRole::Text);
    }
    line.append(words::state(row.text("signal").unwrap_or("unknown"), look));
    line.push("  ", StyleRole::Text);
    let arrow = look.arrow();
    let reason = SafeText::limited(row.text("reason").unwrap_or_default(), 200);
    let from = format!("{:.2} ", step.before).into();
    let to = format!(" {:.2}  {}  ", step.after, moved(step)).into();
    writer.hanging(line, &SafeText::join(&[from, arrow, to, reason], ""), StyleRole::Text);
    writer.link(Destination::Row(Entity::UtilityEvent, row.id().to_owned()));
}
