//! Columns in the list of an entity: how they are shown, and which are dropped first.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::memory::{Column, Entity, Row, ValueKind, json};
use crate::ui::text::ELLIPSIS;

/// Style in which the values of a column are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueStyle {
    /// As text.
    Text,
    /// An id: its beginning is enough.
    Id,
    /// Date and time of day.
    Time,
    /// A word for a status or an outcome.
    State,
    /// A number in -1..1, signed.
    Score,
    /// A number in 0..1, with a small bar.
    Share,
    /// A whole number.
    Count,
    /// A number.
    Number,
    /// Yes or no.
    Flag,
    /// A list of words.
    Words,
    /// JSON, on one line.
    Json,
}

/// A column of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListColumn {
    /// Canonical column.
    pub column: &'static str,
    /// Title of the column.
    pub title: &'static str,
    /// Style in which its values are shown.
    pub show: ValueStyle,
    /// Columns of the terminal it needs.
    pub min: u16,
    /// Greatest width; 0 takes the rest of the line.
    pub max: u16,
    /// 0 is always shown; the column with the greatest number is dropped first.
    pub priority: u8,
}

/// Columns of a list, each by the fields of [`ListColumn`] in their order.
macro_rules! columns {
    ($(($column:literal, $title:literal, $show:ident, $min:literal, $max:literal, $priority:literal)),* $(,)?) => {
        &[$(ListColumn {
            column: $column, title: $title, show: ValueStyle::$show, min: $min, max: $max, priority: $priority,
        }),*]
    };
}

/// The columns of an entity's list, from left to right.
pub fn list_columns(entity: Entity) -> &'static [ListColumn] {
    match entity {
        Entity::Episode => columns![
            ("started_at", "started", Time, 11, 16, 0),
            ("title", "title", Text, 14, 0, 0),
            ("outcome", "outcome", State, 9, 9, 1),
            ("feedback_score", "fb", Score, 5, 5, 2),
            ("utility", "utility", Share, 8, 8, 3),
            ("agent_id", "agent", Id, 8, 16, 4),
            ("canvas_action_count", "canvas", Count, 6, 6, 5),
            ("user_id", "user", Id, 8, 14, 6),
            ("topic", "topic", Text, 8, 14, 7),
            ("status", "status", State, 10, 10, 8),
        ],
        Entity::Memory => columns![
            ("created_at", "created", Time, 11, 16, 2),
            ("kind", "kind", Text, 6, 14, 1),
            ("title", "title", Text, 12, 26, 1),
            ("text", "text", Text, 14, 0, 0),
            ("collection", "collection", Id, 8, 20, 5),
            ("user_id", "user", Id, 8, 14, 6),
            ("uses", "uses", Count, 5, 6, 3),
            ("utility", "utility", Share, 8, 8, 4),
        ],
        Entity::Case => columns![
            ("created_at", "created", Time, 11, 16, 0),
            ("prompt", "prompt", Json, 14, 0, 0),
            ("outcome", "outcome", State, 9, 9, 1),
            ("reward", "reward", Share, 8, 8, 1),
            ("user_id", "user", Id, 8, 14, 4),
            ("agent_id", "agent", Id, 8, 14, 3),
            ("has_vector", "vector", Flag, 6, 6, 5),
            ("quarantined", "quarantined", Flag, 11, 11, 6),
            ("tags", "tags", Words, 8, 16, 7),
        ],
        Entity::Policy => columns![
            ("trained_at", "trained", Time, 11, 16, 0),
            ("profile_id", "profile", Id, 8, 20, 2),
            ("version", "version", Count, 7, 7, 0),
            ("status", "status", State, 9, 9, 1),
            ("metrics", "metrics", Json, 14, 0, 0),
        ],
        Entity::CanvasEvent => columns![
            ("created_at", "at", Time, 11, 16, 0),
            ("canvas_type", "canvas", Text, 8, 14, 0),
            ("action", "action", State, 8, 12, 0),
            ("component_type", "component", Text, 8, 14, 2),
            ("component_name", "name", Text, 8, 0, 3),
            ("user_id", "user", Id, 8, 14, 4),
            ("episode_id", "episode", Id, 8, 20, 1),
            ("agent_id", "agent", Id, 8, 14, 5),
        ],
        Entity::Feedback => columns![
            ("created_at", "at", Time, 11, 16, 0),
            ("kind", "kind", State, 9, 13, 0),
            ("score", "score", Score, 5, 5, 1),
            ("rating", "rating", Count, 6, 6, 7),
            ("correction", "correction", Text, 12, 0, 0),
            ("user_id", "user", Id, 8, 14, 4),
            ("agent_id", "agent", Id, 8, 14, 5),
            ("episode_id", "episode", Id, 8, 32, 2),
            ("source", "source", Text, 8, 16, 6),
        ],
        Entity::UtilityEvent => columns![
            ("created_at", "at", Time, 11, 16, 0),
            ("signal", "signal", State, 9, 11, 0),
            ("delta", "delta", Score, 6, 6, 2),
            ("before", "before", Share, 8, 8, 3),
            ("after", "after", Share, 8, 8, 1),
            ("reason", "reason", Text, 10, 0, 0),
            ("actor", "actor", Id, 8, 14, 5),
            ("episode_id", "episode", Id, 8, 20, 4),
        ],
        Entity::Subject => columns![
            ("id", "subject", Id, 16, 24, 0),
            ("name", "name", Text, 16, 0, 1),
            ("episodes", "episodes", Count, 8, 8, 0),
            ("cases", "cases", Count, 6, 6, 2),
            ("feedback", "feedback", Count, 8, 8, 3),
            ("last_seen", "last seen", Time, 11, 16, 1),
            ("handles", "handles", Words, 24, 32, 4),
        ],
        Entity::Agent => columns![
            ("id", "agent", Id, 12, 24, 0),
            ("name", "name", Text, 10, 0, 0),
            ("status", "status", State, 9, 12, 2),
            ("episodes", "episodes", Count, 8, 8, 1),
            ("last_seen", "last seen", Time, 11, 16, 1),
        ],
        Entity::WorkflowEvent => columns![
            ("created_at", "at", Time, 11, 16, 0),
            ("kind", "kind", Text, 14, 22, 0),
            ("run_id", "run", Id, 8, 20, 2),
            ("sequence", "no.", Count, 5, 6, 1),
            ("data", "data", Json, 10, 0, 0),
        ],
        Entity::Access => columns![
            ("created_at", "at", Time, 11, 16, 0),
            ("kind", "kind", Text, 8, 12, 1),
            ("query", "query", Text, 12, 0, 0),
            ("agent_id", "agent", Id, 8, 14, 2),
            ("user_id", "user", Id, 8, 14, 4),
            ("latency_ms", "ms", Number, 7, 8, 3),
            ("tokens", "tokens", Count, 6, 7, 5),
        ],
        Entity::AuditEntry => columns![
            ("created_at", "at", Time, 11, 16, 0),
            ("action", "action", Text, 10, 22, 0),
            ("actor", "actor", Id, 8, 16, 1),
            ("source", "source", Text, 8, 20, 3),
            ("agent_id", "agent", Id, 8, 14, 4),
            ("payload", "payload", Json, 14, 0, 0),
        ],
        Entity::Profile => columns![
            ("id", "profile", Id, 12, 0, 0),
            ("user_id", "user", Id, 8, 20, 0),
            ("agent_id", "agent", Id, 8, 20, 0),
            ("window_size", "window", Count, 6, 7, 1),
            ("created_at", "created", Time, 11, 16, 2),
            ("updated_at", "updated", Time, 11, 16, 3),
        ],
        Entity::Segment => columns![
            ("created_at", "at", Time, 11, 16, 1),
            ("sequence", "no.", Count, 4, 5, 0),
            ("kind", "kind", Text, 8, 14, 0),
            ("content", "content", Text, 14, 0, 0),
            ("episode_id", "episode", Id, 8, 20, 2),
        ],
        Entity::MemoryLink => columns![
            ("episode_id", "episode", Id, 12, 0, 0),
            ("memory_id", "memory", Id, 12, 0, 0),
            ("kind", "kind", Text, 7, 10, 1),
            ("rank", "rank", Count, 5, 5, 1),
        ],
    }
}

/// A column of an entity as a list can show it, whether it does so on its own or not.
pub fn any_column(entity: Entity, name: &str) -> Option<&'static ListColumn> {
    let more = || MORE.iter().find(|(of, spec)| *of == entity && spec.column == name).map(|(_, spec)| spec);
    list_columns(entity).iter().find(|spec| spec.column == name).or_else(more)
}

/// The columns that no list shows on its own.
static MORE: LazyLock<Vec<(Entity, ListColumn)>> = LazyLock::new(|| {
    let all = Entity::ALL.iter().flat_map(|entity| entity.columns().iter().map(move |column| (*entity, column)));
    let more = all.filter(|(entity, column)| !list_columns(*entity).iter().any(|spec| spec.column == column.name));
    let spec = |(entity, of): (Entity, &Column)| {
        let (show, min, max) = match of.kind {
            ValueKind::Text if of.name == "id" || of.name.ends_with("_id") => (ValueStyle::Id, 8, 20),
            ValueKind::Text => (ValueStyle::Text, 8, 0),
            ValueKind::Integer => (ValueStyle::Count, 6, 8),
            ValueKind::Real => (ValueStyle::Number, 6, 8),
            ValueKind::Boolean => (ValueStyle::Flag, 4, 6),
            ValueKind::Time => (ValueStyle::Time, 11, 16),
            ValueKind::Json => (ValueStyle::Json, 8, 0),
            ValueKind::List => (ValueStyle::Words, 8, 0),
        };
        (entity, ListColumn { column: of.name, title: of.name, show, min, max, priority: 1 })
    };
    more.map(spec).collect()
});

/// Columns that a list must read: those shown and those that distinguish its rows.
pub fn read_columns(entity: Entity) -> Vec<&'static str> {
    let mut columns: Vec<&'static str> = list_columns(entity).iter().map(|c| c.column).collect();
    let keys: &[&'static str] = match entity {
        Entity::Feedback | Entity::AuditEntry => &["id", "source"],
        Entity::MemoryLink => &[],
        _ => &["id"],
    };
    let more = keys.iter().chain(naming_columns(entity));
    columns.extend(more.filter(|name| !list_columns(entity).iter().any(|c| c.column == **name)));
    columns
}

/// The column that a plain search matches, and that serves as a row's name.
pub fn title_column(entity: Entity) -> &'static str {
    naming_columns(entity)[0]
}

/// The columns that name a row: the title, and its substitutes.
pub fn naming_columns(entity: Entity) -> &'static [&'static str] {
    match entity {
        Entity::Agent | Entity::Subject => &["name"],
        Entity::Episode => &["title", "summary", "topic"],
        Entity::Memory => &["title", "text"],
        Entity::Segment => &["content"],
        Entity::CanvasEvent => &["component_name", "canvas_type"],
        Entity::Feedback => &["correction", "kind"],
        Entity::UtilityEvent => &["reason", "signal"],
        Entity::MemoryLink => &["memory_id"],
        Entity::Profile => &["agent_id"],
        Entity::Case => &["prompt"],
        Entity::Policy => &["status"],
        Entity::WorkflowEvent => &["kind"],
        Entity::Access => &["query"],
        Entity::AuditEntry => &["action"],
    }
}

/// JSON fields that usually hold the most telling text.
const TELLING: [&str; 8] = ["message", "prompt", "text", "content", "query", "goal", "summary", "title"];

/// As [`json_name`], for a JSON document given as text.
pub fn document_name(document: &str) -> Option<String> {
    json::member_text(&json::members(document)?, &TELLING)
}

/// Describes a JSON value in a few words: the text itself, or its most telling field.
pub fn json_name(value: &serde_json::Value) -> Option<&str> {
    match value {
        serde_json::Value::String(text) => Some(text),
        serde_json::Value::Object(fields) => {
            TELLING.iter().find_map(|name| fields.get(*name).and_then(serde_json::Value::as_str))
        }
        _ => None,
    }
}

/// Short name of a row: its title, a substitute for it, or its id.
pub fn row_name(row: &Row) -> String {
    row_title(row).unwrap_or_else(|| row.id().to_owned())
}

/// Substitute for a missing title, unless a column that is always shown has it.
pub fn stand_in(row: &Row) -> Option<String> {
    let named = naming_columns(row.entity).iter().find_map(|name| Some((*name, named_by(row, name)?)));
    let (column, name) = named.unwrap_or_else(|| ("id", row.id().to_owned()));
    (!is_always_shown(row.entity, column)).then_some(name)
}

/// Whether the title column is needed even if no row has a title, as no other column distinguishes the rows.
pub fn stands_in(entity: Entity) -> bool {
    !naming_columns(entity)[1..].iter().chain(&["id"]).any(|column| is_always_shown(entity, column))
}

fn is_always_shown(entity: Entity, column: &str) -> bool {
    list_columns(entity).iter().any(|c| c.column == column && c.priority == 0)
}

/// Describes a row by one of its columns in a few words; `None` if the column is empty.
fn named_by(row: &Row, column: &str) -> Option<String> {
    const LONGEST: usize = 160;
    let value = row.get(column);
    let text = json_name(value).map(Cow::Borrowed).or_else(|| (!value.is_null()).then(|| value.to_string().into()))?;
    (!text.trim().is_empty()).then(|| match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}{ELLIPSIS}", &text[..end]),
        None => text.into_owned(),
    })
}

/// The title of a row, or its substitute.
pub fn row_title(row: &Row) -> Option<String> {
    if let (Entity::Feedback, None, Some(kind), Some(rating)) =
        (row.entity, row.text("correction"), row.text("kind"), row.get("rating").as_i64())
    {
        return Some(format!("{kind} {rating}"));
    }
    if let (Entity::Policy, Some(version)) = (row.entity, row.get("version").as_i64()) {
        return Some(format!("version {version} of {}", row.text("profile_id").unwrap_or("no profile")));
    }
    naming_columns(row.entity).iter().find_map(|name| named_by(row, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_names_columns_that_exist_and_has_room_on_the_smallest_screen() {
        for entity in Entity::ALL {
            let columns = list_columns(*entity);
            assert!(columns.iter().all(|c| entity.column(c.column).is_some()), "{entity}");
            assert!(entity.column(title_column(*entity)).is_some(), "{entity}");
            let always: u16 = columns.iter().filter(|c| c.priority == 0).map(|c| c.min + 1).sum();
            assert!((12..=38).contains(&always), "{entity}: {always}");
            assert!(columns.iter().filter(|c| c.max == 0).count() >= 1, "{entity} leaves room unused");
        }
    }

    #[test]
    fn what_tells_rows_apart_is_read() {
        for entity in Entity::ALL {
            let read = read_columns(*entity);
            assert!(read.contains(&"id") || *entity == Entity::MemoryLink);
            assert!(read.iter().enumerate().all(|(i, c)| !read[..i].contains(c)), "{entity} reads a column twice");
        }
    }
}
