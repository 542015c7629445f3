//! The tabs of an episode: situation and lifecycle, chain, segments, canvas, feedback, utility, memories, events.

use serde_json::Value;

use super::document::{Writer, value_line};
use super::rows::{label, long_value, row_line};
use super::words;
use crate::app::Destination;
use crate::app::detail::Tab;
use crate::app::follow::{linked_entity, row_name};
use crate::app::message::Related;
use crate::memory::query::EpisodeContext;
use crate::memory::utility::{self, Signal};
use crate::memory::{Entity, Row, feedback, time};
use crate::ui::chart::{self, DivergingBar, DivergingBars, LineChart, Point, Timeline, TimelineRow};
use crate::ui::{Look, Pair, Role, SafeText, TextLine, figures};

/// Writes a tab of an episode.
pub fn tab(writer: &mut Writer<'_>, context: &EpisodeContext, related: &[Related], tab: Tab) {
    match tab {
        Tab::Overview => overview(writer, context, related),
        Tab::Chain => chain(writer, context),
        Tab::Segments => segments(writer, context),
        Tab::Canvas => canvas(writer, context),
        Tab::Feedback => feedback_tab(writer, context),
        Tab::Utility => utility_tab(writer, context),
        Tab::Memories => memories(writer, context),
        Tab::Events => events(writer, context),
        Tab::Accesses => listed(writer, &context.accesses, "No recall of this episode was recorded."),
        Tab::Related | Tab::Raw => {}
    }
}

fn findings(writer: &mut Writer<'_>, context: &EpisodeContext, kinds: &[&str]) {
    let wanted = |kind: &str| kinds.is_empty() || kinds.iter().any(|k| kind.contains(k));
    for finding in context.findings.iter().filter(|f| wanted(&f.kind)) {
        let line = TextLine::default().with_glyph(writer.look.glyphs.info, Role::Warn).with(" ", Role::Text);
        writer.hanging(line, &SafeText::limited(&finding.message, 600), Role::Text);
        if !finding.ids.is_empty() {
            let ids: Vec<SafeText> = finding.ids.iter().take(20).map(|id| SafeText::limited(id, 60)).collect();
            writer.hanging(TextLine::of("  ", Role::Text), &SafeText::join(&ids, ", "), Role::Muted);
        }
    }
}

fn pair(row: &Row, column: &str, look: &Look) -> Pair {
    Pair::line(label(column), value_line(row, column, look))
}

fn overview(writer: &mut Writer<'_>, context: &EpisodeContext, related: &[Related]) {
    let (row, look) = (&context.episode, writer.look);
    writer.hanging(TextLine::default(), &SafeText::limited(&row_name(row), 400), Role::Heading);
    let mut line = TextLine::default();
    for word in ["outcome", "status"].iter().filter_map(|column| row.text(column)) {
        line.append(words::state(word, look));
        line.push("   ", Role::Text);
    }
    if let Some(score) = row.number("feedback_score") {
        line.push("feedback ", Role::Label);
        line.append(words::score(score));
        line.push("   ", Role::Text);
    }
    if let Some(utility) = row.number("utility") {
        line.push("utility ", Role::Label);
        line.append(chart::meter(utility, 6, Role::Accent, look));
        line.push(format!(" {utility:.2}"), Role::Text);
    }
    writer.line(line);
    if let Some(summary) = row.text("summary").filter(|s| !s.trim().is_empty() && *s != row_name(row)) {
        writer.blank();
        writer.long(summary, 0, Role::Text);
    }
    if !context.findings.is_empty() {
        writer.section("findings", Some(context.findings.len()));
        findings(writer, context, &[]);
    }
    situation(writer, row);
    who(writer, context);
    lifecycle(writer, context);
    consolidation(writer, context, related);
    for column in ["observation", "thoughts", "result", "insight", "detail", "key_decisions"] {
        long_value(writer, row, column);
    }
    actions(writer, row);
    writer.section("more", None);
    let more = ["id", "tags", "participants", "tools_used", "entities", "execution_ids", "canvas_ids", "feedback_ids"];
    let pairs: Vec<Pair> = more.iter().map(|column| pair(row, column, look)).collect();
    writer.pairs(&pairs);
    long_value(writer, row, "metadata");
    writer.problems(row);
}

/// Time of day and day of the week as the context says, else as the beginning tells; what was active then.
fn situation(writer: &mut Writer<'_>, row: &Row) {
    let context = row.get("context");
    let derived = row.text("started_at").and_then(time::day_part);
    let part = |name: &str, derived: Option<&str>| {
        let said = context.get(name).filter(|value| !value.is_null());
        match (said, derived) {
            (Some(value), _) => TextLine::of(words::one_line(value, 200), Role::Text),
            (None, Some(word)) => {
                TextLine::of(SafeText::new(word), Role::Text).with("  from the time it started, UTC", Role::Muted)
            }
            (None, None) => TextLine::default(),
        }
    };
    let listed = |name: &str| match context.get(name) {
        None | Some(Value::Null) => TextLine::default(),
        Some(Value::Array(items)) => {
            let texts: Vec<SafeText> = items.iter().take(50).map(|item| words::one_line(item, 200)).collect();
            TextLine::of(SafeText::join(&texts, ", "), Role::Text)
        }
        Some(other) => TextLine::of(words::one_line(other, 1_000), Role::Text),
    };
    writer.section("situation", None);
    let look = writer.look;
    let pairs = [
        pair(row, "started_at", look),
        Pair::line("time of day", part("time_of_day", derived.map(|(part, _)| part))),
        Pair::line("day of week", part("day_of_week", derived.map(|(_, day)| day))),
        Pair::line("active preferences", listed("active_preferences")),
        Pair::line("active patterns", listed("active_patterns")),
        pair(row, "domain", look),
        pair(row, "topic", look),
    ];
    writer.pairs(&pairs);
}

fn who(writer: &mut Writer<'_>, context: &EpisodeContext) {
    let (row, look) = (&context.episode, writer.look);
    writer.section("who and where", None);
    let pairs: Vec<Pair> =
        ["agent_id", "user_id", "session_id", "workflow_name"].iter().map(|column| pair(row, column, look)).collect();
    writer.pairs(&pairs);
}

fn lifecycle(writer: &mut Writer<'_>, context: &EpisodeContext) {
    let (row, look) = (&context.episode, writer.look);
    writer.section("lifecycle", None);
    let mut pairs = vec![pair(row, "ended_at", look)];
    let lasted = row.number("duration_seconds").map(figures::duration);
    pairs.push(Pair::line("duration", TextLine::of(lasted.unwrap_or_default(), Role::Text)));
    let raw = |name: &str| row.get("metadata").get(name).and_then(Value::as_str).map(str::to_owned);
    for (column, stored) in [("status", raw("raw_status")), ("outcome", raw("raw_outcome"))] {
        let mut value = value_line(row, column, look);
        if let Some(stored) = stored {
            value.push(SafeText::join(&["  stored as ".into(), SafeText::limited(&stored, 60)], ""), Role::Muted);
        }
        pairs.push(Pair::line(label(column), value));
    }
    for column in ["maturity", "importance", "decay_score", "access_count", "archived_at"] {
        pairs.push(pair(row, column, look));
    }
    for column in ["intervention_count", "constitutional_score", "confidence"] {
        pairs.push(pair(row, column, look));
    }
    writer.pairs(&pairs);
}

/// What this episode was merged into, and which were merged into it.
fn consolidation(writer: &mut Writer<'_>, context: &EpisodeContext, related: &[Related]) {
    let into = context.episode.text("consolidated_into");
    let from: Vec<&Related> = related.iter().filter(|group| !group.rows.is_empty()).collect();
    if into.is_none() && from.is_empty() {
        return;
    }
    writer.section("consolidation", None);
    if let Some(into) = into {
        let line = TextLine::of("into  ", Role::Label).with(SafeText::limited(into, 80), Role::Link);
        writer.line(line);
        writer.link(Destination::Row(Entity::Episode, into.to_owned()));
    }
    for group in from {
        writer.text(SafeText::new(&group.title), Role::Label);
        for row in &group.rows {
            row_line(writer, row);
        }
        if group.more {
            writer.text("there are more; f leads to all of them", Role::Muted);
        }
    }
}

fn actions(writer: &mut Writer<'_>, row: &Row) {
    let Value::Array(actions) = row.get("actions") else { return };
    if actions.is_empty() {
        return;
    }
    writer.section("actions", Some(actions.len()));
    for action in actions {
        let text = |name: &str| action.get(name).and_then(Value::as_str);
        let mut line = TextLine::default();
        if let Some(at) = text("at") {
            line.push(words::time(at, true), Role::Muted);
            line.push("  ", Role::Text);
        }
        line.append(words::state(text("status").unwrap_or("unknown"), writer.look));
        line.push("  ", Role::Text);
        line.push(SafeText::limited(text("step_name").unwrap_or("unnamed step"), 80), Role::Text);
        if let Some(error) = text("error") {
            line.push("  ", Role::Text);
            line.push(SafeText::limited(error, 300), Role::Bad);
        } else if let Some(result) = action.get("result").filter(|r| !r.is_null()) {
            line.push("  ", Role::Text);
            line.push(words::one_line(result, 300), Role::Muted);
        }
        writer.line(line);
    }
}

fn seconds(row: &Row, column: &str) -> Option<f64> {
    row.text(column).and_then(time::epoch_micros).map(|micros| micros as f64 / 1e6)
}

/// The way from the root, this episode, its children: a tree on a time line.
fn chain(writer: &mut Writer<'_>, context: &EpisodeContext) {
    let (chain, look) = (&context.chain, writer.look);
    let g = look.glyphs;
    if chain.cycle {
        writer.line(
            TextLine::default().with_glyph(g.warning, Role::Warn).with(
                " The parents run in a circle: the first row below is a parent of itself in the end.",
                Role::Text,
            ),
        );
    }
    if let Some(missing) = &chain.missing_parent {
        let line = TextLine::default().with_glyph(g.warning, Role::Warn).with(" The parent ", Role::Text);
        writer.line(line.with(SafeText::limited(missing, 80), Role::Warn).with(" is not there.", Role::Text));
    }
    let own = context.episode.id();
    let mut rows = Vec::new();
    let mut ids = Vec::new();
    for (depth, id) in chain.ids.iter().enumerate() {
        rows.push(chain_row(context, id, vec![false; depth], *id == own, look));
        ids.push(id.clone());
    }
    let depth = chain.ids.len().saturating_sub(1);
    for (index, id) in chain.children.iter().enumerate() {
        let mut levels = vec![false; depth];
        levels.push(index + 1 < chain.children.len());
        rows.push(chain_row(context, id, levels, false, look));
        ids.push(id.clone());
    }
    if rows.len() <= 1 {
        writer.text("This episode has no parent and no children.", Role::Muted);
        return;
    }
    writer.blank();
    let tick = |at: f64| {
        let text = time::from_epoch_real(at).unwrap_or_default();
        words::short_time(&text)
    };
    let timeline = Timeline { rows: &rows, first: 0, selected: None, tick: &tick };
    let has_ruler = u16::from(writer.width >= 48 && rows.len() >= 2);
    let height = (rows.len() as u16).min(2_000) + has_ruler;
    writer.picture(height, |area, buf| timeline.render(area, buf, look));
    writer.link_rows(&ids, rows.len());
    writer.blank();
    writer.text("f goes to one of them, and so does a click", Role::Muted);
}

fn chain_row(context: &EpisodeContext, id: &str, levels: Vec<bool>, own: bool, look: &Look) -> TimelineRow {
    let row = context.relatives.get(id);
    let mut label = TextLine::default();
    if own {
        label.push_glyphs(look.glyphs.diamond, 1, Role::Accent);
        label.push(" ", Role::Text);
    }
    let name = row.map_or_else(|| id.to_owned(), row_name);
    label.push(SafeText::limited(&name, 60), if own { Role::Heading } else { Role::Text });
    let outcome = row.and_then(|row| row.text("outcome")).unwrap_or_default();
    let role = words::state_role(outcome);
    TimelineRow {
        levels,
        label,
        from: row.and_then(|row| seconds(row, "started_at")),
        to: row.and_then(|row| seconds(row, "ended_at").or_else(|| seconds(row, "started_at"))),
        role: if role == Role::Muted { Role::Accent } else { role },
    }
}

fn segments(writer: &mut Writer<'_>, context: &EpisodeContext) {
    if context.segments.is_empty() {
        writer.text("This episode has no segments.", Role::Muted);
    }
    for segment in &context.segments {
        writer.blank();
        let mut line = TextLine::default();
        if let Some(number) = words::number(segment.get("sequence")) {
            line.push(number, Role::Muted);
            line.push("  ", Role::Text);
        }
        line.push(SafeText::limited(segment.text("kind").unwrap_or("segment"), 40), Role::Accent);
        if let Some(at) = segment.text("created_at") {
            line.push("  ", Role::Text);
            line.push(words::time(at, true), Role::Muted);
        }
        if let Some(source) = segment.text("source_type") {
            line.push("  ", Role::Text);
            line.push(SafeText::limited(source, 40), Role::Muted);
        }
        writer.line(line);
        writer.link(Destination::Row(Entity::Segment, segment.id().to_owned()));
        writer.long(segment.text("content").unwrap_or_default(), 2, Role::Text);
        writer.problems(segment);
    }
}

fn canvas(writer: &mut Writer<'_>, context: &EpisodeContext) {
    findings(writer, context, &["canvas"]);
    if context.canvas.is_empty() {
        writer.text("No canvas event belongs to this episode.", Role::Muted);
    }
    for event in &context.canvas {
        let mut line = TextLine::default();
        if let Some(at) = event.text("created_at") {
            line.push(words::time(at, true), Role::Muted);
            line.push("  ", Role::Text);
        }
        line.append(words::state(event.text("action").unwrap_or("unknown"), writer.look));
        let what: Vec<SafeText> = ["canvas_type", "component_type", "component_name"]
            .iter()
            .filter_map(|column| event.text(column))
            .map(|text| SafeText::limited(text, 60))
            .collect();
        line.push("  ", Role::Text);
        line.push(SafeText::join(&what, " / "), Role::Text);
        writer.line(line);
        writer.link(Destination::Row(Entity::CanvasEvent, event.id().to_owned()));
        if !matches!(event.get("metadata"), Value::Null) {
            let text = words::one_line(event.get("metadata"), writer.width.saturating_sub(4) * 2);
            writer.hanging(TextLine::of("    ", Role::Text), &text, Role::Muted);
        }
        writer.problems(event);
    }
}

fn feedback_tab(writer: &mut Writer<'_>, context: &EpisodeContext) {
    let look = writer.look;
    findings(writer, context, &["feedback"]);
    if context.feedback.is_empty() {
        writer.text("Nobody gave feedback on this episode.", Role::Muted);
        return;
    }
    let counted = context.feedback.iter().filter(|row| row.get("counts") == &Value::Bool(true));
    let aggregate = feedback::aggregate(counted.filter_map(|row| row.number("score")));
    let stored = context.episode.number("feedback_score");
    let mut bars = vec![DivergingBar {
        label: "all that counts".into(),
        value: aggregate,
        note: match (aggregate, stored) {
            (Some(a), Some(b)) if (a - b).abs() > 1e-9 => format!("stored: {b:+.2}").into(),
            (None, Some(b)) => format!("stored: {b:+.2}").into(),
            _ => SafeText::default(),
        },
    }];
    bars.extend(context.feedback.iter().map(|row| {
        let kind = row.text("kind").unwrap_or("feedback");
        let rating = row.get("rating").as_i64().map(|n| format!(" {n}")).unwrap_or_default();
        DivergingBar {
            label: SafeText::limited(&format!("{kind}{rating}"), 20),
            value: row.number("score"),
            note: match (row.number("score"), row.get("counts")) {
                (None, _) => "not scored".into(),
                (_, Value::Bool(false)) => "does not count".into(),
                _ => SafeText::default(),
            },
        }
    }));
    for line in (DivergingBars { bars: &bars }).lines(writer.width, look) {
        writer.line(line);
    }
    for row in &context.feedback {
        writer.blank();
        row_line(writer, row);
        let pairs = [pair(row, "user_id", look), pair(row, "source", look)];
        writer.pairs(&pairs);
        if let Some(text) = row.text("correction") {
            writer.long(text, 2, Role::Text);
        }
        writer.problems(row);
    }
}

fn utility_tab(writer: &mut Writer<'_>, context: &EpisodeContext) {
    let look = writer.look;
    let g = look.glyphs;
    let stored = context.episode.number("utility");
    if context.utility.is_empty() {
        match stored {
            Some(utility) => {
                let mut line = TextLine::of("utility  ", Role::Label);
                line.append(chart::meter(utility, 24, Role::Accent, look));
                line.push(format!("  {utility:.2}"), Role::Text);
                writer.line(line);
                writer.text("No signal is recorded that moved it.", Role::Muted);
            }
            None => writer.text("This episode has no utility and no signals.", Role::Muted),
        }
        return;
    }
    let start = context.utility.first().and_then(|row| row.number("before")).unwrap_or(utility::START);
    let words_of = context.utility.iter().map(|row| row.text("signal").unwrap_or_default());
    let replay = utility::replay(start, words_of);
    let mut points = vec![Point { value: Some(start), mark: None }];
    points.extend(context.utility.iter().zip(&replay.steps).map(|(row, step)| Point {
        value: row.number("after").or(Some(step.after)),
        mark: Some(match step.signal {
            Some(Signal::Confirmed) => (g.check, Role::Good),
            Some(Signal::Corrected) => (g.edit, Role::Warn),
            Some(Signal::Rejected) => (g.cross, Role::Bad),
            Some(Signal::Undone) => (g.undo, Role::Bad),
            Some(Signal::Ignored) => (g.ring, Role::Muted),
            None => (g.warning, Role::Warn),
        }),
    }));
    let at = |row: Option<&Row>| row.and_then(|r| r.text("created_at")).map(words::short_time).unwrap_or_default();
    let ends = (at(context.utility.first()), at(context.utility.last()));
    let chart = LineChart { ends, ..LineChart::new(&points) };
    writer.picture(10, |area, buf| chart.render(area, buf, look));
    writer.blank();
    let replayed = replay.utility();
    let mut line = TextLine::of("replayed ", Role::Label).with(format!("{replayed:.2}"), Role::Text);
    if let Some(stored) = stored {
        line.push("   stored ", Role::Label);
        let agrees = (stored - replayed).abs() < 0.005;
        line.push(format!("{stored:.2}"), if agrees { Role::Text } else { Role::Warn });
    }
    writer.line(line);
    writer.blank();
    for (row, step) in context.utility.iter().zip(&replay.steps) {
        let mut line = TextLine::default();
        if let Some(at) = row.text("created_at") {
            line.push(words::time(at, true), Role::Muted);
            line.push("  ", Role::Text);
        }
        line.append(words::state(row.text("signal").unwrap_or("unknown"), look));
        line.push(format!("  {:.2} ", step.before), Role::Muted);
        line.push_glyphs(g.arrow_right, 1, Role::Muted);
        line.push(format!(" {:.2}", step.after), Role::Text);
        if let Some(reason) = row.text("reason") {
            line.push("  ", Role::Text);
            line.push(SafeText::limited(reason, 200), Role::Text);
        }
        writer.line(line);
        writer.link(Destination::Row(Entity::UtilityEvent, row.id().to_owned()));
    }
}

fn memories(writer: &mut Writer<'_>, context: &EpisodeContext) {
    if context.links.is_empty() {
        writer.text("No memory that this episode retrieved is recorded.", Role::Muted);
    }
    for link in &context.links {
        writer.blank();
        let id = link.text("memory_id").unwrap_or_default();
        let memory = context.memories.iter().find(|memory| memory.id() == id);
        let mut line = TextLine::default();
        if let Some(rank) = words::number(link.get("rank")) {
            line.push(SafeText::join(&["rank ".into(), rank], ""), Role::Muted);
            line.push("  ", Role::Text);
        }
        line.push(SafeText::limited(link.text("kind").unwrap_or("memory"), 20), Role::Accent);
        line.push("  ", Role::Text);
        let name = memory.map_or_else(|| id.to_owned(), row_name);
        line.push(SafeText::limited(&name, 160), Role::Link);
        writer.line(line);
        writer.link(Destination::Row(linked_entity(link), id.to_owned()));
        match memory {
            Some(memory) => writer.long(memory.text("text").unwrap_or_default(), 2, Role::Text),
            None if linked_entity(link) == Entity::Case => {}
            None => writer.text("  it is not among the memories here", Role::Muted),
        }
    }
}

fn events(writer: &mut Writer<'_>, context: &EpisodeContext) {
    if context.events.is_empty() {
        writer.text("No event log belongs to this episode.", Role::Muted);
    }
    for event in &context.events {
        let mut line = TextLine::default();
        if let Some(at) = event.text("created_at") {
            line.push(words::time(at, true), Role::Muted);
            line.push("  ", Role::Text);
        }
        let kind = event.text("kind").unwrap_or("event");
        let role = if kind.ends_with("failed") {
            Role::Bad
        } else if kind.ends_with("completed") {
            Role::Good
        } else {
            Role::Accent
        };
        line.push(SafeText::limited(kind, 40), role);
        line.push("  ", Role::Text);
        line.push(words::one_line(event.get("data"), writer.width), Role::Muted);
        writer.line(line);
        writer.link(Destination::Row(Entity::WorkflowEvent, event.id().to_owned()));
    }
}

fn listed(writer: &mut Writer<'_>, rows: &[Row], none: &str) {
    if rows.is_empty() {
        writer.text(none, Role::Muted);
    }
    for row in rows {
        row_line(writer, row);
    }
}
