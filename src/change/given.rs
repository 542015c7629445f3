//! Checks the values that a person gives for a row, for both `record` and `edit`: valid words for status and outcome,
//! no columns that are set automatically, and no row without content.

use super::ChangeError;
use super::batch::has_place;
use super::import::bank;
use super::operation::set_by;
use crate::layout::BoundSource;
use crate::memory::nearest::unknown;
use crate::memory::{Entity, Row, json, vocabulary};
use crate::store::Store;

/// The least and the greatest value of figures.
const BOUNDS: [(&str, f64, f64); 2] = [("utility", 0.0, 1.0), ("feedback_score", -1.0, 1.0)];

/// Refuses a column that is set automatically.
///
/// # Errors
/// [`ChangeError::Refused`] with what sets it.
pub(super) fn check_by_hand(entity: Entity, column: &str) -> Result<(), ChangeError> {
    match set_by(entity, column) {
        Some(why) => Err(ChangeError::Refused(format!("`{column}` of {} is not set by hand: {why}", entity.title()))),
        None => Ok(()),
    }
}

/// Checks the word of a status or an outcome: a canonical one, or one to which the layout maps its stored words.
///
/// # Errors
/// [`ChangeError::Usage`] with the valid words.
fn check_word(source: &BoundSource, row: &Row, column: &str) -> Result<(), ChangeError> {
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

/// Checks a row as given, before anything is added to it: all of a new one, or the differences to the row `before`. A
/// value that was empty before may stay empty.
///
/// # Errors
/// [`ChangeError::Usage`] for a number out of range, an invalid word, or a missing required value.
pub(super) fn check(source: &BoundSource, before: Option<&Row>, row: &Row) -> Result<(), ChangeError> {
    let entity = row.entity;
    let differs = |column: &str| before.is_none_or(|old| !row.json(column).is_same(old.json(column)));
    for (column, least, most) in BOUNDS.into_iter().filter(|(column, ..)| differs(column)) {
        if row.number(column).is_some_and(|given| !(least..=most).contains(&given)) {
            return Err(ChangeError::Usage(format!("`{column}` of {} must be from {least} to {most}", named(entity))));
        }
    }
    for column in ["status", "outcome"].into_iter().filter(|column| differs(column)) {
        check_word(source, row, column)?;
    }
    // A curated episode of a workflow is an event of an existing run: nothing else of it is stored.
    let is_event = source.write.as_ref().is_some_and(|write| write.event.is_some());
    for any in needed(entity).iter().filter(|_| !is_event) {
        let is_empty = |row: &Row| any.iter().all(|column| json::is_blank(row.get(column)));
        let places: Vec<&str> = any.iter().copied().filter(|column| has_place(source, column)).collect();
        if !places.is_empty() && is_empty(row) && !before.is_some_and(is_empty) {
            let columns = places.join("`, `");
            let one_of = if places.len() > 1 { "one of " } else { "" };
            return Err(ChangeError::Usage(format!("{} needs {one_of}`{columns}`", named(entity))));
        }
    }
    Ok(())
}

/// Refuses a new bank for a user and an agent that have one already.
///
/// # Errors
/// [`ChangeError::Refused`] with the existing bank.
pub(super) async fn check_only_bank(store: &Store, row: &Row) -> Result<(), ChangeError> {
    match bank(store, row.text("user_id"), row.text("agent_id")).await? {
        Some(other) if other.id() != row.id() => Err(ChangeError::Refused(format!(
            "the bank of this user and agent already exists: `{}`; a user and an agent have one bank",
            other.id()
        ))),
        _ => Ok(()),
    }
}

/// Columns of which a row needs at least one per group, to have any content.
fn needed(entity: Entity) -> &'static [&'static [&'static str]] {
    match entity {
        Entity::Agent | Entity::Subject => &[&["id", "name"]],
        Entity::Episode => &[&["title", "summary", "detail", "observation"], &["started_at"]],
        Entity::Segment => &[&["episode_id"], &["content", "source_id"]],
        Entity::CanvasEvent => &[&["canvas_id", "canvas_type", "component_type", "component_name", "action"]],
        Entity::Memory => &[&["text", "title", "metadata"]],
        Entity::MemoryLink => &[&["episode_id"], &["memory_id"]],
        Entity::Profile => &[&["user_id"], &["agent_id"]],
        Entity::Case => &[&["prompt"]],
        Entity::WorkflowEvent => &[&["run_id"], &["kind"]],
        Entity::Access => &[&["query", "ids"]],
        // They are not recorded as rows.
        Entity::Feedback | Entity::UtilityEvent | Entity::Policy | Entity::AuditEntry => &[],
    }
}

/// Name of an entity's row after its article.
fn named(entity: Entity) -> String {
    let title = entity.title();
    let article = if title.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {title}")
}
