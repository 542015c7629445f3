//! Checks of what a person gives for a row, the same for `record` and `edit`: the words that status and outcome take, the
//! columns that nobody sets by hand, and those that a new row needs.

use serde_json::Value;

use super::ChangeError;
use super::batch::has_place;
use super::import::bank;
use super::operation::set_by;
use crate::layout::BoundSource;
use crate::memory::nearest::unknown;
use crate::memory::{Entity, Row, vocabulary};
use crate::store::Store;

/// The least and the greatest value of figures that a new row may bring.
const BOUNDS: [(&str, f64, f64); 2] = [("utility", 0.0, 1.0), ("feedback_score", -1.0, 1.0)];

/// Refuses a column that is not set by hand.
///
/// # Errors
/// [`ChangeError::Refused`] with what sets it.
pub(super) fn check_by_hand(entity: Entity, column: &str) -> Result<(), ChangeError> {
    match set_by(entity, column) {
        Some(why) => Err(ChangeError::Refused(format!("`{column}` of {} is not set by hand: {why}", entity.title()))),
        None => Ok(()),
    }
}

/// Checks the word of a status or an outcome: a canonical one, or one that the layout maps its stored words to.
///
/// # Errors
/// [`ChangeError::Usage`] with the words that there are.
pub(super) fn check_word(source: &BoundSource, row: &Row, column: &str) -> Result<(), ChangeError> {
    let takes = matches!((row.entity, column), (Entity::Episode, "status" | "outcome") | (Entity::Case, "outcome"));
    let (Some(words), Some(word)) = (vocabulary::of_episode(column).filter(|_| takes), row.text(column)) else {
        return Ok(());
    };
    let mapped = source.column(column).iter().flat_map(|way| &way.map).map(|(_, to)| to.as_str());
    let mut known: Vec<&str> = words.canonical_words().collect();
    for word in mapped.filter(|to| !to.is_empty()) {
        if !known.contains(&word) {
            known.push(word);
        }
    }
    if known.contains(&word) {
        return Ok(());
    }
    Err(ChangeError::Usage(unknown(&format!("{column} of {}", named(row.entity)), word, known)))
}

/// Checks a new row as it was given, before anything is added to it.
///
/// # Errors
/// [`ChangeError::Usage`] for a figure out of its bounds, for a word that is none, or where what the row needs is not given.
pub(super) fn check_new(source: &BoundSource, row: &Row) -> Result<(), ChangeError> {
    let entity = row.entity;
    for (column, least, most) in BOUNDS.into_iter().filter(|(column, ..)| entity.column(column).is_some()) {
        if row.number(column).is_some_and(|given| !(least..=most).contains(&given)) {
            return Err(ChangeError::Usage(format!("`{column}` of {} is from {least} to {most}", named(entity))));
        }
    }
    for column in ["status", "outcome"] {
        check_word(source, row, column)?;
    }
    for any in needed(entity) {
        let places: Vec<&str> = any.iter().copied().filter(|column| has_place(source, column)).collect();
        if !places.is_empty() && any.iter().all(|column| says_nothing(row.get(column))) {
            let columns = places.join("`, `");
            let one_of = if places.len() > 1 { "one of " } else { "" };
            return Err(ChangeError::Usage(format!("{} needs {one_of}`{columns}`", named(entity))));
        }
    }
    Ok(())
}

/// Refuses a bank of a user and an agent that have another one.
///
/// # Errors
/// [`ChangeError::Refused`] with the bank that is there.
pub(super) async fn check_only_bank(store: &Store, row: &Row) -> Result<(), ChangeError> {
    match bank(store, row.text("user_id"), row.text("agent_id")).await? {
        Some(other) if other.id() != row.id() => Err(ChangeError::Refused(format!(
            "the bank of this user and agent is there already: `{}`; a user and an agent have one",
            other.id()
        ))),
        _ => Ok(()),
    }
}

/// Columns without which a new row would say nothing: of each group one at least.
fn needed(entity: Entity) -> &'static [&'static [&'static str]] {
    match entity {
        Entity::Agent | Entity::Subject => &[&["id", "name"]],
        Entity::Segment => &[&["episode_id"], &["content", "source_id"]],
        Entity::CanvasEvent => &[&["canvas_id", "canvas_type", "component_type", "component_name", "action"]],
        Entity::Memory => &[&["text", "title", "metadata"]],
        Entity::MemoryLink => &[&["episode_id"], &["memory_id"]],
        Entity::Profile => &[&["user_id"], &["agent_id"]],
        Entity::WorkflowEvent => &[&["run_id"], &["kind"]],
        Entity::Access => &[&["query", "ids"]],
        // An episode and a case are checked where they are recorded; the others are not recorded as rows.
        Entity::Episode
        | Entity::Case
        | Entity::Feedback
        | Entity::UtilityEvent
        | Entity::Policy
        | Entity::AuditEntry => &[],
    }
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Name of an entity's row after its article.
fn named(entity: Entity) -> String {
    let title = entity.title();
    let article = if title.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {title}")
}
