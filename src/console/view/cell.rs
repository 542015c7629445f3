//! A value in a cell of a list.

use serde_json::Value;

use crate::console::core::NameBook;
use crate::console::core::columns::{ListColumn, ValueStyle, json_name, stand_in, title_column};
use crate::console::view::words;
use crate::memory::{Entity, Row};
use crate::ui::{Look, SafeText, StyleRole, TextLine, chart};

/// Columns of a date with the time of day.
const FULL_TIME: usize = 16;
/// Columns of a small bar.
const BAR: usize = 3;

/// Greatest width measured.
const WIDEST: usize = 200;

/// Returns the number of terminal columns needed for the whole value; 0 if there is none.
pub fn width(row: &Row, column: &ListColumn, names: &NameBook) -> usize {
    let value = row.get(column.column);
    let text = |value: &Value| words::one_line(value, WIDEST).width();
    let sign = if row.problems.iter().any(|problem| problem.column == column.column) { 2 } else { 0 };
    let width = match (value, column.show) {
        _ if is_untitled(row, column) => stand_in(row).map_or(0, |name| SafeText::limited(&name, WIDEST).width()),
        (Value::Null, _) => 0,
        (Value::String(_), ValueStyle::Time) => FULL_TIME,
        (Value::String(_), ValueStyle::State) if is_feedback(row, column) => {
            2 + text(value) + if row.get("rating").is_i64() { 2 } else { 0 }
        }
        (Value::String(_), ValueStyle::State) => 2 + text(value),
        (Value::Number(_), ValueStyle::Score) => value.as_f64().map_or(0, |score| words::score(score).width()),
        (Value::Number(_), ValueStyle::Share) => BAR + 5,
        (Value::Bool(yes), ValueStyle::Flag) => {
            if *yes {
                5
            } else {
                2
            }
        }
        (_, ValueStyle::Count | ValueStyle::Number) => words::number(value).map_or_else(|| text(value), |n| n.width()),
        (_, ValueStyle::Json) => json_line(value, WIDEST).width(),
        (_, ValueStyle::Words) => word_list(value, WIDEST).width(),
        (_, ValueStyle::Id) => match names.named_by(row, column.column) {
            Some(name) => SafeText::limited(name, WIDEST).width(),
            None => text(value),
        },
        _ => text(value),
    };
    sign + width
}

/// The value of a row in a column of `room` columns: a foreign key is shown by its name.
pub fn cell(row: &Row, column: &ListColumn, room: usize, names: &NameBook, look: &Look) -> TextLine {
    let value = row.get(column.column);
    let name = names.named_by(row, column.column).filter(|_| column.show == ValueStyle::Id);
    let line = match value {
        _ if is_untitled(row, column) => stand_in(row)
            .map_or_else(|| absent(look), |name| TextLine::of(SafeText::limited(&name, room), StyleRole::Muted)),
        Value::Null => absent(look),
        _ if name.is_some() => TextLine::of(in_room(name.unwrap_or_default(), column.column, room), StyleRole::Text),
        Value::String(_) if is_feedback(row, column) => words::feedback(row, look),
        value => shown(value, column.show, room, look),
    };
    if row.problems.iter().any(|problem| problem.column == column.column) {
        let mut marked =
            TextLine::default().with_glyph(look.glyphs.warning, StyleRole::Warn).with(" ", StyleRole::Text);
        marked.append(line);
        return marked;
    }
    line
}

/// Mark before the first value of a person under a legal hold, whose erasure would be refused.
pub fn hold_mark(row: &Row, names: &NameBook, look: &Look) -> Option<TextLine> {
    let held = is_held(row, names);
    held.then(|| TextLine::default().with_glyph(look.glyphs.warning, StyleRole::Warn).with(" held  ", StyleRole::Warn))
}

/// Columns of that mark; 0 if there is none.
pub fn hold_width(row: &Row, names: &NameBook) -> usize {
    if is_held(row, names) { "! held  ".len() } else { 0 }
}

/// The name behind a foreign key, in `room` columns. For a bank the agent is kept and the person is cut: a person has
/// several banks.
fn in_room(name: &str, column: &str, room: usize) -> SafeText {
    const BETWEEN: &str = " / ";
    const PERSON: usize = 4;
    let left = room.saturating_sub(BETWEEN.len() + PERSON);
    let is_cut = SafeText::limited(name, WIDEST).width() > room;
    match name.rsplit_once(" with ") {
        Some((person, agent)) if column == "profile_id" && is_cut && left >= PERSON => {
            let agent = SafeText::limited(agent, left);
            let person = SafeText::limited(person, room.saturating_sub(BETWEEN.len() + agent.width()));
            SafeText::join(&[person, agent], BETWEEN)
        }
        _ => SafeText::limited(name, room),
    }
}

/// Word before the text of a case that is held back from recall.
pub const QUARANTINED: &str = "quarantined  ";

/// Whether a row is a case that is held back from recall.
pub fn is_quarantined(row: &Row) -> bool {
    row.entity == Entity::Case && row.get("quarantined").as_bool() == Some(true)
}

fn is_held(row: &Row, names: &NameBook) -> bool {
    row.entity == Entity::Subject && names.is_held(row.id()) == Some(true)
}

fn is_feedback(row: &Row, column: &ListColumn) -> bool {
    row.entity == Entity::Feedback && column.column == "kind"
}

/// Whether a row has no title, so that a substitute is shown in that column.
pub fn is_untitled(row: &Row, column: &ListColumn) -> bool {
    let is_blank = |value: &Value| value.as_str().map_or(value.is_null(), |text| text.trim().is_empty());
    column.column == title_column(row.entity) && is_blank(row.get(column.column))
}

fn absent(look: &Look) -> TextLine {
    TextLine::default().with_glyph(look.glyphs.separator, StyleRole::Muted)
}

fn shown(value: &Value, show: ValueStyle, room: usize, look: &Look) -> TextLine {
    let text = || TextLine::of(words::one_line(value, room), StyleRole::Text);
    match show {
        ValueStyle::Text => text(),
        ValueStyle::Id => TextLine::of(words::one_line(value, room), StyleRole::Muted),
        ValueStyle::Json => TextLine::of(json_line(value, room), StyleRole::Text),
        ValueStyle::Time => match value.as_str() {
            Some(at) if room >= FULL_TIME => TextLine::of(words::time(at, false), StyleRole::Muted),
            Some(at) => TextLine::of(words::short_time(at), StyleRole::Muted),
            None => text(),
        },
        ValueStyle::State => value.as_str().map_or_else(text, |word| words::state(word, look)),
        ValueStyle::Score => value.as_f64().map_or_else(text, words::score),
        ValueStyle::Share => value.as_f64().map_or_else(text, |share| {
            let mut line = chart::meter(share, BAR, StyleRole::Accent, look);
            line.push(format!(" {share:.2}"), StyleRole::Text);
            line
        }),
        ValueStyle::Count | ValueStyle::Number => {
            words::number(value).map_or_else(text, |n| TextLine::of(n, StyleRole::Text))
        }
        ValueStyle::Flag => match value.as_bool() {
            Some(true) => {
                TextLine::default().with_glyph(look.glyphs.check, StyleRole::Good).with(" yes", StyleRole::Text)
            }
            Some(false) => TextLine::of("no", StyleRole::Muted),
            None => text(),
        },
        ValueStyle::Words => TextLine::of(word_list(value, room), StyleRole::Muted),
    }
}

/// JSON by its most telling field if there is one, else as JSON.
fn json_line(value: &Value, room: usize) -> SafeText {
    json_name(value).map_or_else(|| words::one_line(value, room), |name| SafeText::limited(name, room))
}

fn word_list(value: &Value, room: usize) -> SafeText {
    match value {
        Value::Array(items) => {
            let texts = items.iter().take(20).map(|item| words::one_line(item, room)).collect::<Vec<_>>();
            SafeText::join(&texts, ", ")
        }
        _ => words::one_line(value, room),
    }
}
