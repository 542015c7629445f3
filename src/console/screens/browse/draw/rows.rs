//! The details of rows other than episodes: the important values of each kind, then all others.

use serde_json::Value;

use crate::console::core::columns::title_column;
use crate::console::core::{Destination, Related, row_name};
use crate::console::screens::browse::detail::Detail;
use crate::console::view::{DocumentWriter, words};
use crate::memory::{Entity, Row, ValueKind};
use crate::ui::chart::{self, DivergingBar, DivergingBars};
use crate::ui::{Look, NamedValue, SafeText, StyleRole, TextLine};

/// Columns with long texts, shown below the others.
fn long_columns(entity: Entity) -> &'static [&'static str] {
    match entity {
        Entity::Segment => &["content"],
        Entity::CanvasEvent | Entity::Memory => &["text", "metadata"],
        Entity::Feedback => &["correction"],
        Entity::UtilityEvent => &["reason"],
        Entity::Case => &["prompt", "plan", "traces"],
        Entity::Policy => &["weights", "metrics"],
        Entity::WorkflowEvent => &["data"],
        Entity::Access => &["query"],
        Entity::AuditEntry => &["payload"],
        _ => &[],
    }
}

/// Writes the important values of a row.
pub fn overview(writer: &mut DocumentWriter<'_>, row: &Row) {
    writer.hanging(TextLine::default(), &SafeText::limited(&writer.names.of_row(row), 400), StyleRole::Heading);
    writer.blank();
    head(writer, row);
    let long = long_columns(row.entity);
    let short = row.entity.columns().iter().map(|c| c.name).filter(|name| !long.contains(name));
    let hold = (row.entity == Entity::Subject).then(|| NamedValue::line("legal hold", writer.hold(row.id())));
    let values = short.map(|name| NamedValue::line(label(name), writer.value(row, name)));
    let pairs: Vec<NamedValue> = hold.into_iter().chain(values).collect();
    writer.pairs(&pairs);
    for name in long {
        long_value(writer, row, name);
    }
    writer.problems(row);
}

/// A column's name for people.
pub fn label(column: &str) -> String {
    column.replace('_', " ")
}

/// Small charts for numbers that say little by themselves.
fn head(writer: &mut DocumentWriter<'_>, row: &Row) {
    let look = writer.look;
    match row.entity {
        Entity::Case => {
            if let Some(reward) = row.number("reward") {
                let mut line = TextLine::of("reward   ", StyleRole::Label);
                line.append(chart::meter(reward, 24, StyleRole::Accent, look));
                line.push(format!("  {reward:.2}"), StyleRole::Text);
                writer.line(line);
                writer.blank();
            }
        }
        Entity::Feedback => {
            let kind = row.text("kind").unwrap_or_default();
            let bar = DivergingBar {
                label: SafeText::limited(kind, 16),
                value: row.number("score"),
                note: if row.number("score").is_none() { "not scored".into() } else { SafeText::default() },
            };
            for line in (DivergingBars { bars: &[bar] }).lines(writer.width, look) {
                writer.line(line);
            }
            writer.blank();
        }
        Entity::UtilityEvent => {
            if let (Some(before), Some(after)) = (row.number("before"), row.number("after")) {
                let mut line = TextLine::of("utility  ", StyleRole::Label);
                line.append(chart::meter(before, 12, StyleRole::Muted, look));
                line.push(format!(" {before:.2} "), StyleRole::Muted);
                line.push(look.arrow(), StyleRole::Muted);
                line.push(" ", StyleRole::Text);
                line.append(chart::meter(after, 12, StyleRole::Accent, look));
                line.push(format!(" {after:.2}"), StyleRole::Text);
                writer.line(line);
                writer.blank();
            }
        }
        Entity::Policy => weights(writer, row.get("weights")),
        _ => {}
    }
}

/// Learned weights as bars around zero, on one scale.
fn weights(writer: &mut DocumentWriter<'_>, weights: &Value) {
    let Value::Object(fields) = weights else { return };
    let numbers: Vec<(&String, f64)> = fields.iter().filter_map(|(name, w)| Some((name, w.as_f64()?))).collect();
    let most = numbers.iter().map(|(_, weight)| weight.abs()).fold(0.0, f64::max);
    if most <= 0.0 {
        return;
    }
    let bars: Vec<DivergingBar> = numbers
        .iter()
        .map(|(name, weight)| DivergingBar {
            label: SafeText::limited(name, 24),
            value: Some(weight / most),
            note: format!("{weight:+.3}").into(),
        })
        .collect();
    writer.text("weights, next to the greatest", StyleRole::Label);
    for line in (DivergingBars { bars: &bars }).lines(writer.width, writer.look) {
        writer.line(line);
    }
    writer.blank();
}

/// A long value under a heading; an empty one is left out.
pub fn long_value(writer: &mut DocumentWriter<'_>, row: &Row, column: &str) {
    let value = row.get(column);
    let is_json = row.entity.column(column).is_some_and(|c| c.kind == ValueKind::Json);
    match value {
        Value::Null => {}
        Value::String(text) if text.trim().is_empty() => {}
        Value::String(text) => {
            writer.section(&label(column), None);
            writer.long(text, 0, StyleRole::Text);
        }
        value if is_json && !is_empty(value) => {
            writer.section(&label(column), None);
            writer.json(value, false);
        }
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

pub fn related(writer: &mut DocumentWriter<'_>, detail: &Detail) {
    let holds = |group: &&Related| !group.rows.is_empty() || !group.dangling.is_empty();
    let mut groups = detail.related.iter().filter(holds).peekable();
    if groups.peek().is_none() {
        let text = if detail.pending_related.is_some() { "reading" } else { "Nothing is related to this row." };
        writer.text(text, StyleRole::Muted);
        return;
    }
    for group in groups {
        writer.section(&group.title, Some(group.rows.len()));
        for row in &group.rows {
            row_line(writer, row);
        }
        if group.more {
            writer.text("there are more; f leads to all of them", StyleRole::Muted);
        }
        for id in &group.dangling {
            let line = TextLine::default().with_glyph(writer.look.glyphs.warning, StyleRole::Warn);
            let line = line.with(" names ", StyleRole::Text).with(SafeText::limited(id, 60), StyleRole::Warn);
            writer.line(line.with(", which is missing", StyleRole::Text));
        }
    }
}

/// A row on one line, as a link to it.
pub fn row_line(writer: &mut DocumentWriter<'_>, row: &Row) {
    let look = writer.look;
    let mut line = TextLine::default();
    if let Some(at) = row.text(row.entity.time_column()).filter(|_| row.entity != Entity::MemoryLink) {
        line.push(words::time(at, false), StyleRole::Muted);
        line.push("  ", StyleRole::Text);
    }
    line.append(brief(row, look));
    if !row.problems.is_empty() {
        line.push(" ", StyleRole::Text);
        line.push_glyphs(look.glyphs.warning, 1, StyleRole::Warn);
    }
    writer.line(line);
    match row.entity {
        Entity::MemoryLink => {
            if let Some(episode) = row.text("episode_id") {
                writer.link(Destination::Row(Entity::Episode, episode.to_owned()));
            }
        }
        _ if row.id().is_empty() => {}
        _ => writer.link(Destination::Row(row.entity, row.id().to_owned())),
    }
}

/// The most telling words of a row.
fn brief(row: &Row, look: &Look) -> TextLine {
    let mut line = TextLine::default();
    let state = ["outcome", "signal", "action", "kind"].iter().find_map(|column| row.text(column));
    if let Some(word) = state {
        line.append(words::state(word, look));
        line.push("  ", StyleRole::Text);
    }
    if let Some(reward) = row.number("reward") {
        line.append(chart::meter(reward, 5, StyleRole::Accent, look));
        line.push(format!(" {reward:.2}  "), StyleRole::Text);
    }
    if row.entity == Entity::MemoryLink {
        return line.with(SafeText::limited(row.text("episode_id").unwrap_or_default(), 80), StyleRole::Link);
    }
    let name = row_name(row);
    // A row without words is named by its kind, which is already shown.
    if state.is_some_and(|word| word == name) {
        return line;
    }
    let role = if row.get(title_column(row.entity)).is_null() { StyleRole::Muted } else { StyleRole::Text };
    line.with(SafeText::limited(&name, 160), role)
}
