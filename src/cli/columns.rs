//! Columns that the tables of entities show, and the form of their values there: data.

use std::collections::BTreeSet;

use chrono::{DateTime, FixedOffset, Local};
use serde_json::Value;

use super::output;
use super::table::{CellShape, NOTHING, PrintedColumn};
use crate::console::core::columns::{document_name, json_name};
use crate::memory::json::{JsonPart, LONG};
use crate::memory::{Entity, Row, ValueKind};
use crate::ui::text::SafeText;

/// Letters of a free text that a terminal's table reads and shows at most.
const PREVIEW: usize = 400;
/// The same where the table goes elsewhere.
const WHOLE: usize = 4_000;

/// Letters that a table reads of each text: megabytes need not be read for it.
pub fn preview() -> usize {
    output::width().map_or(WHOLE, |_| PREVIEW)
}

/// Says that texts were cut, where nothing else does: a table with a width speaks for itself.
pub fn report_cut_texts<'t>(mut texts: impl Iterator<Item = &'t str>) {
    if output::width().is_none() && texts.any(|text| text.chars().nth(WHOLE - 1).is_some()) {
        output::tell(&format!("long texts are cut after {WHOLE} characters; --format json shows everything"));
    }
}

/// Canonical column, its heading, its shape, and its rank: see [`PrintedColumn`].
type Shown = (&'static str, &'static str, CellShape, u8);

/// The columns of an entity's table, from left to right: what a next command takes first, the widest text last.
pub fn shown(entity: Entity) -> &'static [Shown] {
    use CellShape::{Number, Text, Word};
    match entity {
        Entity::Agent => &[
            ("id", "Agent", Word, 0),
            ("name", "Name", Text, 1),
            ("status", "Status", Word, 3),
            ("episodes", "Episodes", Number, 2),
            ("last_seen", "Last seen", Word, 1),
        ],
        Entity::Subject => &[
            ("id", "Subject", Word, 0),
            ("name", "Name", Text, 1),
            ("episodes", "Episodes", Number, 2),
            ("cases", "Cases", Number, 3),
            ("feedback", "Feedback", Number, 4),
            ("last_seen", "Last seen", Word, 1),
        ],
        Entity::Episode => &[
            ("id", "Episode", Word, 0),
            ("started_at", "Started", Word, 1),
            ("outcome", "Outcome", Word, 2),
            ("feedback_score", "Feedback", Number, 3),
            ("utility", "Utility", Number, 4),
            ("status", "Status", Word, 5),
            ("agent_id", "Agent", Word, 6),
            ("title", "Title", Text, 0),
        ],
        Entity::Segment => &[
            ("id", "Segment", Word, 0),
            ("episode_id", "Episode", Word, 2),
            ("sequence", "No.", Number, 1),
            ("kind", "Kind", Word, 3),
            ("created_at", "Created", Word, 4),
            ("content", "Content", Text, 0),
        ],
        Entity::CanvasEvent => &[
            ("id", "Event", Word, 0),
            ("created_at", "Created", Word, 2),
            ("canvas_type", "Canvas", Word, 1),
            ("action", "Action", Word, 1),
            ("episode_id", "Episode", Word, 3),
            ("component_type", "Component", Word, 5),
            ("component_name", "Name", Text, 4),
        ],
        Entity::Feedback => &[
            ("id", "Feedback", Word, 0),
            ("created_at", "Created", Word, 3),
            ("episode_id", "Episode", Word, 1),
            ("kind", "Kind", Word, 2),
            ("rating", "Rating", Number, 5),
            ("score", "Score", Number, 4),
            ("correction", "Correction", Text, 0),
        ],
        Entity::UtilityEvent => &[
            ("id", "Event", Word, 0),
            ("created_at", "Created", Word, 3),
            ("episode_id", "Episode", Word, 2),
            ("signal", "Signal", Word, 1),
            ("before", "Before", Number, 6),
            ("after", "After", Number, 5),
            ("reason", "Reason", Text, 4),
        ],
        Entity::Memory => &[
            ("id", "Memory", Word, 0),
            ("created_at", "Created", Word, 3),
            ("user_id", "User", Word, 4),
            ("kind", "Kind", Word, 2),
            ("title", "Title", Text, 1),
            ("text", "Text", Text, 0),
        ],
        Entity::MemoryLink => &[
            ("episode_id", "Episode", Word, 0),
            ("memory_id", "Memory", Word, 0),
            ("kind", "Kind", Word, 1),
            ("rank", "Rank", Number, 2),
        ],
        Entity::Profile => &[
            ("id", "Profile", Word, 0),
            ("user_id", "User", Word, 1),
            ("agent_id", "Agent", Word, 1),
            ("window_size", "Window", Number, 2),
            ("updated_at", "Updated", Word, 3),
        ],
        Entity::Case => &[
            ("id", "Case", Word, 0),
            ("created_at", "Created", Word, 2),
            ("outcome", "Outcome", Word, 3),
            ("reward", "Reward", Number, 1),
            ("user_id", "User", Word, 4),
            ("agent_id", "Agent", Word, 5),
            ("has_vector", "Vector", Word, 6),
            ("prompt", "Prompt", Text, 0),
        ],
        Entity::Policy => &[
            ("id", "Policy", Word, 0),
            ("trained_at", "Trained", Word, 2),
            ("profile_id", "Profile", Word, 3),
            ("version", "Version", Number, 1),
            ("status", "Status", Word, 1),
            ("metrics", "Metrics", Text, 4),
        ],
        Entity::WorkflowEvent => &[
            ("id", "Event", Word, 0),
            ("created_at", "Created", Word, 2),
            ("run_id", "Run", Word, 4),
            ("sequence", "No.", Number, 5),
            ("kind", "Kind", Word, 1),
            ("data", "Data", Text, 3),
        ],
        Entity::Access => &[
            ("id", "Access", Word, 0),
            ("created_at", "Created", Word, 1),
            ("kind", "Kind", Word, 2),
            ("agent_id", "Agent", Word, 3),
            ("latency_ms", "Milliseconds", Number, 4),
            ("query", "Query", Text, 0),
        ],
        Entity::AuditEntry => &[
            ("id", "Audit entry", Word, 0),
            ("created_at", "Created", Word, 1),
            ("actor", "Actor", Word, 3),
            ("action", "Action", Word, 2),
            ("source", "Source", Word, 5),
            ("payload", "Payload", Text, 4),
        ],
    }
}

/// The canonical columns that an entity's table reads.
pub fn read(entity: Entity) -> Vec<&'static str> {
    shown(entity).iter().map(|(column, ..)| *column).collect()
}

/// The columns and cells of an entity's table, and the offsets from UTC of the times in it where they differ.
pub fn table(
    entity: Entity,
    rows: &[Row],
    width: Option<usize>,
) -> (Vec<PrintedColumn>, Vec<Vec<SafeText>>, Option<String>) {
    let kind = |column: &str| entity.column(column).map_or(ValueKind::Text, |found| found.kind);
    let mut columns: Vec<PrintedColumn> = Vec::new();
    for (_, title, shape, rank) in shown(entity) {
        columns.push(PrintedColumn::new(title, *shape, *rank));
    }
    let offsets: BTreeSet<i32> = rows
        .iter()
        .flat_map(|row| shown(entity).iter().map(move |(column, ..)| (*column, row)))
        .filter(|(column, _)| kind(column) == ValueKind::Time)
        .filter_map(|(column, row)| Some(local(row.get(column).as_str()?)?.offset().local_minus_utc()))
        .collect();
    // The zone is said once, by the time that is dropped last.
    let first = (0..columns.len()).filter(|at| kind(shown(entity)[*at].0) == ValueKind::Time);
    if let Some(at) = first.min_by_key(|at| columns[*at].rank).filter(|_| !offsets.is_empty()) {
        columns[at].unit = Some(zone(&offsets));
    }
    let cells = rows
        .iter()
        .map(|row| shown(entity).iter().map(|(column, ..)| cell_of(row, column, kind(column), width)).collect())
        .collect();
    (columns, cells, (offsets.len() > 1).then(|| spelled(&offsets)))
}

/// The cell of a column. Of a long JSON document as much is taken as of a text.
fn cell_of(row: &Row, column: &str, kind: ValueKind, width: Option<usize>) -> SafeText {
    match row.json(column) {
        JsonPart::Document(document) if document.len() >= LONG => {
            SafeText::limited(document_name(document).as_deref().unwrap_or(document), preview())
        }
        _ => cell(kind, row.get(column), width),
    }
}

/// A value in a table's cell: times local and to the minute, numbers to three places, JSON by what it says.
pub fn cell(kind: ValueKind, value: &Value, width: Option<usize>) -> SafeText {
    let text = |text: &str| width.map_or_else(|| SafeText::new(text), |_| SafeText::limited(text, PREVIEW));
    match value {
        Value::Null => SafeText::new(NOTHING),
        Value::String(time) if kind == ValueKind::Time => SafeText::new(&short(time)),
        Value::String(words) => text(words),
        Value::Number(n) => match n.as_f64() {
            Some(x) if !n.is_i64() && !n.is_u64() => SafeText::new(&format!("{x:.3}")),
            _ => SafeText::new(&n.to_string()),
        },
        Value::Bool(truth) => SafeText::new(if *truth { "yes" } else { "no" }),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            text(&items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "))
        }
        other => json_name(other).map_or_else(|| text(&other.to_string()), text),
    }
}

/// A canonical time as people read it here: `2026-02-04 11:00`. What is not a time stays as it is.
pub fn short(time: &str) -> String {
    local(time).map_or_else(|| time.to_owned(), |moment| moment.format("%Y-%m-%d %H:%M").to_string())
}

/// The zone of times on screen, as a heading says it: `UTC`, `+01:00`, or `local` where they have several.
pub fn zone_of<'t>(times: impl IntoIterator<Item = &'t str>) -> Option<String> {
    let offsets: BTreeSet<i32> =
        times.into_iter().filter_map(|time| Some(local(time)?.offset().local_minus_utc())).collect();
    (!offsets.is_empty()).then(|| zone(&offsets))
}

fn local(time: &str) -> Option<DateTime<Local>> {
    Some(DateTime::parse_from_rfc3339(time).ok()?.with_timezone(&Local))
}

fn zone(offsets: &BTreeSet<i32>) -> String {
    if offsets.len() == 1 { spelled(offsets) } else { "local".to_owned() }
}

/// Offsets in seconds as `UTC`, `+01:00`, or several of those.
fn spelled(offsets: &BTreeSet<i32>) -> String {
    let word = |seconds: &i32| match FixedOffset::east_opt(*seconds) {
        Some(offset) if *seconds != 0 => offset.to_string(),
        _ => "UTC".to_owned(),
    };
    offsets.iter().map(word).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_begins_with_an_id_and_names_columns_that_exist() {
        for entity in Entity::ALL {
            let shown = shown(*entity);
            assert!(shown.iter().all(|(column, ..)| entity.column(column).is_some()), "{entity}");
            assert!(shown[0].0.ends_with("id") && shown[0].2 == CellShape::Word && shown[0].3 == 0, "{entity}");
        }
    }

    #[test]
    fn zones_are_spelled_as_people_know_them() {
        assert_eq!(spelled(&BTreeSet::from([0])), "UTC");
        assert_eq!(spelled(&BTreeSet::from([3_600, 7_200])), "+01:00 and +02:00");
        assert_eq!(zone(&BTreeSet::from([3_600, 7_200])), "local");
        assert_eq!(short("no time"), "no time");
    }
}
