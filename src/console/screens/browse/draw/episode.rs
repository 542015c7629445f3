//! The tabs of an episode: situation and lifecycle, chain, segments, canvas, feedback, utility, memories, events.

use serde_json::Value;

use crate::console::core::{Destination, Related, row_name};
use crate::console::screens::browse::detail::DetailTab;
use crate::console::screens::browse::draw::chain;
use crate::console::screens::browse::draw::rows::{label, long_value, row_line};
use crate::console::screens::browse::draw::utility;
use crate::console::screens::browse::follow::{linked_entity, others};
use crate::console::view::document::value_line;
use crate::console::view::{DocumentWriter, words};
use crate::memory::query::EpisodeContext;
use crate::memory::story::ACTIONS;
use crate::memory::{Entity, Row, feedback, score, time};
use crate::ui::chart::{self, DivergingBar, DivergingBars};
use crate::ui::{NamedValue, SafeText, StyleRole, TextLine, figures};

pub fn tab(writer: &mut DocumentWriter<'_>, context: &EpisodeContext, related: &[Related], tab: DetailTab) {
    match tab {
        DetailTab::Overview => overview(writer, context, related),
        DetailTab::Chain => chain::write(writer, context),
        DetailTab::Segments => {
            let piece = |writer: &mut DocumentWriter<'_>, row: &Row| {
                writer.blank();
                segment(writer, row);
            };
            rows_of(writer, context, (Entity::Segment, &context.segments), "This episode has no segments.", piece);
        }
        DetailTab::Canvas => {
            findings(writer, context, &["canvas"]);
            let none = "No canvas event belongs to this episode.";
            rows_of(writer, context, (Entity::CanvasEvent, &context.canvas), none, canvas_event);
        }
        DetailTab::Feedback => feedback_tab(writer, context),
        DetailTab::Utility => utility::write(writer, context),
        DetailTab::Memories => memories(writer, context),
        DetailTab::Events => {
            let none = "No event log belongs to this episode.";
            rows_of(writer, context, (Entity::WorkflowEvent, &context.events), none, event);
        }
        DetailTab::Accesses => {
            let none = "No recall of this episode was recorded.";
            rows_of(writer, context, (Entity::Access, &context.accesses), none, row_line);
        }
        DetailTab::Story | DetailTab::Where | DetailTab::Related | DetailTab::Raw => {}
    }
}

/// Writes the context as JSON.
pub fn raw(writer: &mut DocumentWriter<'_>, context: &EpisodeContext) {
    for entity in context.more.keys() {
        more(writer, context, *entity);
    }
    writer.json(&context.to_json(), true);
}

/// Writes each row of an entity, or the sentence `none`, and that there are more.
fn rows_of(
    writer: &mut DocumentWriter<'_>,
    context: &EpisodeContext,
    (entity, rows): (Entity, &[Row]),
    none: &str,
    write: impl Fn(&mut DocumentWriter<'_>, &Row),
) {
    if rows.is_empty() {
        writer.text(none, StyleRole::Muted);
    }
    rows.iter().for_each(|row| write(writer, row));
    more(writer, context, entity);
}

/// Writes the number of further rows of an entity, as a link to all of them.
pub fn more(writer: &mut DocumentWriter<'_>, context: &EpisodeContext, entity: Entity) {
    let (Some(count), Some(list)) = (context.more.get(&entity), others(context, entity)) else { return };
    writer.blank();
    and_more(writer, *count, list);
}

/// Writes that a list continues.
pub fn and_more(writer: &mut DocumentWriter<'_>, count: usize, list: Destination) {
    let words = format!("and {} more: f or a click leads to all of them", figures::count(count as u64).as_str());
    writer.text(words, StyleRole::Link);
    writer.link(list);
}

fn findings(writer: &mut DocumentWriter<'_>, context: &EpisodeContext, kinds: &[&str]) {
    let wanted = |kind: &str| kinds.is_empty() || kinds.iter().any(|k| kind.contains(k));
    for finding in context.findings.iter().filter(|f| wanted(&f.kind)) {
        let line = TextLine::default().with_glyph(writer.look.glyphs.info, StyleRole::Warn).with(" ", StyleRole::Text);
        writer.hanging(line, &SafeText::limited(&finding.message, 600), StyleRole::Text);
        if !finding.ids.is_empty() {
            let ids: Vec<SafeText> = finding.ids.iter().take(20).map(|id| SafeText::limited(id, 60)).collect();
            writer.hanging(TextLine::of("  ", StyleRole::Text), &SafeText::join(&ids, ", "), StyleRole::Muted);
        }
    }
}

fn pair(writer: &DocumentWriter<'_>, row: &Row, column: &str) -> NamedValue {
    NamedValue::line(label(column), writer.value(row, column))
}

fn overview(writer: &mut DocumentWriter<'_>, context: &EpisodeContext, related: &[Related]) {
    let (row, look) = (&context.episode, writer.look);
    writer.hanging(TextLine::default(), &SafeText::limited(&row_name(row), 400), StyleRole::Heading);
    let mut line = TextLine::default();
    for word in ["outcome", "status"].iter().filter_map(|column| row.text(column)) {
        line.append(words::state(word, look));
        line.push("   ", StyleRole::Text);
    }
    if let Some(score) = row.number("feedback_score") {
        line.push("feedback ", StyleRole::Label);
        line.append(words::score(score));
        line.push("   ", StyleRole::Text);
    }
    if let Some(utility) = row.number("utility") {
        line.push("utility ", StyleRole::Label);
        line.append(chart::meter(utility, 6, StyleRole::Accent, look));
        line.push(format!(" {utility:.2}"), StyleRole::Text);
    }
    if !line.runs.is_empty() {
        writer.line(line);
    }
    if let Some(summary) = row.text("summary").filter(|s| !s.trim().is_empty() && *s != row_name(row)) {
        writer.blank();
        writer.long(summary, 0, StyleRole::Text);
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
    let pairs: Vec<NamedValue> = more.iter().map(|column| pair(writer, row, column)).collect();
    writer.pairs(&pairs);
    long_value(writer, row, "metadata");
    writer.problems(row);
}

/// Time of day and day of the week from the context, else from the start time; then the active elements.
fn situation(writer: &mut DocumentWriter<'_>, row: &Row) {
    let context = row.get("context");
    let derived = row.text("started_at").and_then(time::day_part);
    let part = |name: &str, derived: Option<&str>| {
        let said = context.get(name).filter(|value| !value.is_null());
        match (said, derived) {
            (Some(value), _) => TextLine::of(words::one_line(value, 200), StyleRole::Text),
            (None, Some(word)) => TextLine::of(SafeText::new(word), StyleRole::Text)
                .with("  from the time it started, UTC", StyleRole::Muted),
            (None, None) => TextLine::default(),
        }
    };
    let listed = |name: &str| match context.get(name) {
        None | Some(Value::Null) => TextLine::default(),
        Some(Value::Array(items)) => {
            let texts: Vec<SafeText> = items.iter().take(50).map(|item| words::one_line(item, 200)).collect();
            TextLine::of(SafeText::join(&texts, ", "), StyleRole::Text)
        }
        Some(other) => TextLine::of(words::one_line(other, 1_000), StyleRole::Text),
    };
    writer.section("situation", None);
    let pairs = [
        pair(writer, row, "started_at"),
        NamedValue::line("time of day", part("time_of_day", derived.map(|(part, _)| part))),
        NamedValue::line("day of week", part("day_of_week", derived.map(|(_, day)| day))),
        NamedValue::line("active preferences", listed("active_preferences")),
        NamedValue::line("active patterns", listed("active_patterns")),
        pair(writer, row, "domain"),
        pair(writer, row, "topic"),
    ];
    writer.pairs(&pairs);
}

fn who(writer: &mut DocumentWriter<'_>, context: &EpisodeContext) {
    let row = &context.episode;
    writer.section("who and where", None);
    let pairs: Vec<NamedValue> =
        ["agent_id", "user_id", "session_id", "workflow_name"].iter().map(|column| pair(writer, row, column)).collect();
    writer.pairs(&pairs);
}

fn lifecycle(writer: &mut DocumentWriter<'_>, context: &EpisodeContext) {
    let (row, look) = (&context.episode, writer.look);
    writer.section("lifecycle", None);
    let mut pairs = vec![pair(writer, row, "ended_at")];
    let lasted = row.number("duration_seconds").map(figures::duration);
    pairs.push(NamedValue::line("duration", TextLine::of(lasted.unwrap_or_default(), StyleRole::Text)));
    let raw = |name: &str| row.get("metadata").get(name).and_then(Value::as_str).map(str::to_owned);
    for (column, stored) in [("status", raw("raw_status")), ("outcome", raw("raw_outcome"))] {
        let mut value = value_line(row, column, look);
        if let Some(stored) = stored {
            value.push(SafeText::join(&["  stored as ".into(), SafeText::limited(&stored, 60)], ""), StyleRole::Muted);
        }
        pairs.push(NamedValue::line(label(column), value));
    }
    for column in ["maturity", "importance", "decay_score", "access_count", "archived_at"] {
        pairs.push(pair(writer, row, column));
    }
    for column in ["intervention_count", "constitutional_score", "confidence"] {
        pairs.push(pair(writer, row, column));
    }
    writer.pairs(&pairs);
}

/// Writes the episode that this one was merged into, and those merged into it.
fn consolidation(writer: &mut DocumentWriter<'_>, context: &EpisodeContext, related: &[Related]) {
    let into = context.episode.text("consolidated_into");
    let from: Vec<&Related> = related.iter().filter(|group| !group.rows.is_empty()).collect();
    if into.is_none() && from.is_empty() {
        return;
    }
    writer.section("consolidation", None);
    if let Some(into) = into {
        let line = TextLine::of("into  ", StyleRole::Label).with(SafeText::limited(into, 80), StyleRole::Link);
        writer.line(line);
        writer.link(Destination::Row(Entity::Episode, into.to_owned()));
    }
    for group in from {
        writer.text(SafeText::new(&group.title), StyleRole::Label);
        for row in &group.rows {
            row_line(writer, row);
        }
        if group.more {
            writer.text("there are more; f leads to all of them", StyleRole::Muted);
        }
    }
}

fn actions(writer: &mut DocumentWriter<'_>, row: &Row) {
    let Value::Array(actions) = row.get("actions") else { return };
    if actions.is_empty() {
        return;
    }
    writer.section("actions", Some(actions.len()));
    for taken in actions.iter().take(ACTIONS) {
        action(writer, taken);
    }
    if let Some(rest) = actions.len().checked_sub(ACTIONS).filter(|rest| *rest > 0) {
        let words = format!("and {} more: `show episode` prints them all", figures::count(rest as u64).as_str());
        writer.text(words, StyleRole::Muted);
    }
}

/// A line that begins with a time, if there is one.
fn timed(at: Option<&str>) -> TextLine {
    let mut line = TextLine::default();
    if let Some(at) = at {
        line.push(words::time(at, true), StyleRole::Muted);
        line.push_blanks(2);
    }
    line
}

pub fn action(writer: &mut DocumentWriter<'_>, action: &Value) {
    let text = |name: &str| action.get(name).and_then(Value::as_str);
    let mut line = timed(text("at"));
    line.append(words::state(text("status").unwrap_or("unknown"), writer.look));
    line.push_apart(SafeText::limited(text("step_name").unwrap_or("unnamed step"), 80), StyleRole::Text);
    if let Some(error) = text("error") {
        line.push_apart(SafeText::limited(error, 300), StyleRole::Bad);
    } else if let Some(result) = action.get("result").filter(|r| !r.is_null()) {
        line.push_apart(words::one_line(result, 300), StyleRole::Muted);
    }
    writer.line(line);
}

pub fn segment(writer: &mut DocumentWriter<'_>, segment: &Row) {
    let mut line = timed(segment.text("created_at"));
    line.push(SafeText::limited(segment.text("kind").unwrap_or("segment"), 40), StyleRole::Accent);
    if let Some(source) = segment.text("source_type") {
        line.push("  from ", StyleRole::Muted);
        line.push(SafeText::limited(&source.replace('_', " "), 40), StyleRole::Muted);
    }
    writer.line(line);
    writer.link(Destination::Row(Entity::Segment, segment.id().to_owned()));
    writer.long(segment.text("content").unwrap_or_default(), 2, StyleRole::Text);
    writer.problems(segment);
}

pub fn canvas_event(writer: &mut DocumentWriter<'_>, event: &Row) {
    let mut line = timed(event.text("created_at"));
    line.append(words::state(event.text("action").unwrap_or("unknown"), writer.look));
    let what: Vec<SafeText> = ["canvas_type", "component_type", "component_name"]
        .iter()
        .filter_map(|column| event.text(column))
        .map(|text| SafeText::limited(text, 60))
        .collect();
    line.push_apart(SafeText::join(&what, " / "), StyleRole::Text);
    writer.line(line);
    writer.link(Destination::Row(Entity::CanvasEvent, event.id().to_owned()));
    if !matches!(event.get("metadata"), Value::Null) {
        let text = words::one_line(event.get("metadata"), writer.width.saturating_sub(4) * 2);
        writer.hanging(TextLine::of("    ", StyleRole::Text), &text, StyleRole::Muted);
    }
    writer.problems(event);
}

fn feedback_tab(writer: &mut DocumentWriter<'_>, context: &EpisodeContext) {
    let look = writer.look;
    findings(writer, context, &["feedback"]);
    if context.feedback.is_empty() {
        writer.text("Nobody gave feedback on this episode.", StyleRole::Muted);
        return;
    }
    let counted = context.feedback.iter().filter(|row| row.get("counts") == &Value::Bool(true));
    let aggregate = feedback::aggregate(counted.filter_map(|row| row.number("score")));
    let stored = context.episode.number("feedback_score");
    let mut bars = vec![DivergingBar {
        label: if context.more.contains_key(&Entity::Feedback) { "of the first" } else { "all that counts" }.into(),
        value: aggregate,
        note: match (aggregate, stored) {
            (Some(a), Some(b)) if !score::is_same(a, b) => format!("stored: {b:+.2}").into(),
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
        feedback_row(writer, row);
    }
    more(writer, context, Entity::Feedback);
}

pub fn feedback_row(writer: &mut DocumentWriter<'_>, row: &Row) {
    row_line(writer, row);
    let pairs = [pair(writer, row, "user_id"), pair(writer, row, "source")];
    writer.pairs(&pairs);
    if let Some(text) = row.text("correction") {
        writer.long(text, 2, StyleRole::Text);
    }
    writer.problems(row);
}

fn memories(writer: &mut DocumentWriter<'_>, context: &EpisodeContext) {
    if context.links.is_empty() {
        writer.text("No retrieved memory is recorded for this episode.", StyleRole::Muted);
    }
    for link in &context.links {
        writer.blank();
        let id = link.text("memory_id").unwrap_or_default();
        let memory = context.memories.iter().find(|memory| memory.id() == id);
        let mut line = TextLine::default();
        if let Some(rank) = words::number(link.get("rank")) {
            line.push(SafeText::join(&["rank ".into(), rank], ""), StyleRole::Muted);
            line.push("  ", StyleRole::Text);
        }
        line.push(SafeText::limited(link.text("kind").unwrap_or("memory"), 20), StyleRole::Accent);
        line.push("  ", StyleRole::Text);
        let name = memory.map_or_else(|| id.to_owned(), row_name);
        line.push(SafeText::limited(&name, 160), StyleRole::Link);
        writer.line(line);
        writer.link(Destination::Row(linked_entity(link), id.to_owned()));
        match memory {
            Some(memory) => writer.long(memory.text("text").unwrap_or_default(), 2, StyleRole::Text),
            None if linked_entity(link) == Entity::Case => {}
            None => writer.text("  it is not among the memories here", StyleRole::Muted),
        }
    }
    more(writer, context, Entity::MemoryLink);
}

pub fn event(writer: &mut DocumentWriter<'_>, event: &Row) {
    let mut line = timed(event.text("created_at"));
    let kind = event.text("kind").unwrap_or("event");
    let role = if kind.ends_with("failed") {
        StyleRole::Bad
    } else if kind.ends_with("completed") {
        StyleRole::Good
    } else {
        StyleRole::Accent
    };
    line.push(SafeText::limited(kind, 40), role);
    line.push_apart(words::one_line(event.get("data"), writer.width), StyleRole::Muted);
    writer.line(line);
    writer.link(Destination::Row(Entity::WorkflowEvent, event.id().to_owned()));
}
