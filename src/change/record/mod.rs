//! Records one curated row from JSON, as an agent would have: duplicates refused, the reward by its rule.

mod any;
mod case;
mod episode;
mod event;
mod memories;
mod parent;
mod vector;
pub(super) mod vectors;

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::draft::{Draft, check_id};
use super::plan::Plan;
use super::{ChangeError, batch, given, new_id};
use crate::layout::BoundSource;
use crate::memory::nearest::nearest;
use crate::memory::text_check::{self, TextOddities};
use crate::memory::{Entity, Row, ValueKind, json, time};
use crate::store::Store;
use crate::store::encode::table_of;

/// Plans one new row from its JSON.
///
/// # Errors
/// As [`episode`] and [`case`]; [`ChangeError::Refused`] for rows that are not recorded individually.
pub async fn plan(store: &Store, entity: Entity, text: &str) -> Result<Plan, ChangeError> {
    match entity {
        Entity::Episode => episode(store, text).await,
        Entity::Case => case(store, text).await,
        other => any::any(store, other, text).await,
    }
}

pub use case::case;
pub use episode::episode;

/// Converts a JSON object to a canonical row, with every value checked by its column; texts are checked for secrets.
///
/// # Errors
/// An unknown column with the nearest known one, or a value of the wrong kind.
pub fn canonical_row(entity: Entity, object: &Map<String, Value>, found: &mut TextOddities) -> Result<Row, String> {
    let mut row = Row::empty(entity);
    for (name, value) in object {
        let Some(column) = entity.column(name) else {
            let near = nearest(name, entity.columns().iter().map(|c| c.name));
            let hint = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            return Err(format!("{} has no column `{name}`{hint}", entity.title()));
        };
        let wrong = |what: &str| format!("`{name}` must be {what}");
        let given = |value: Option<Value>, what| value.map(Cow::Owned).ok_or_else(|| wrong(what));
        let value = match (column.kind, value) {
            (_, Value::Null) | (ValueKind::Text, Value::String(_)) | (ValueKind::Json, _) => Cow::Borrowed(value),
            (ValueKind::List, Value::Array(items)) if items.iter().all(Value::is_string) => Cow::Borrowed(value),
            (ValueKind::Text, _) => return Err(wrong("a text")),
            (ValueKind::Integer, value) => given(value.as_i64().map(Value::from), "a whole number")?,
            (ValueKind::Real, value) => given(value.as_f64().map(Value::from), "a number")?,
            (ValueKind::Boolean, value) => given(value.as_bool().map(Value::from), "true or false")?,
            (ValueKind::Time, value) => {
                let moment = value.as_str().and_then(time::canonical);
                given(moment.map(Value::from), "a time such as 2026-02-04T10:00:00Z")?
            }
            (ValueKind::List, _) => return Err(wrong("a list of texts")),
        };
        let checked = if column.holds_words() { text_check::check_value(&value, found) } else { value.into_owned() };
        row.set(name, checked);
    }
    Ok(row)
}

/// Parses a JSON object.
fn object(text: &str) -> Result<Map<String, Value>, ChangeError> {
    let value: &RawValue =
        serde_json::from_str(text).map_err(|e| ChangeError::Usage(format!("this is not JSON: {e}")))?;
    match json::exactly(value.get())
        .map_err(|problem| ChangeError::Usage(format!("this JSON cannot be stored as it is: {problem}")))?
    {
        Value::Object(object) => Ok(object),
        _ => Err(ChangeError::Usage("one JSON object is expected".to_owned())),
    }
}

/// Converts an object to a canonical row with an id, checked, and without secrets, which are counted.
fn read(entity: Entity, object: &Map<String, Value>, draft: &mut Draft<'_>) -> Result<Row, ChangeError> {
    let mut found = TextOddities::default();
    let mut row = canonical_row(entity, object, &mut found).map_err(ChangeError::Usage)?;
    draft.disclosures.extend(found.sentences());
    given::check(batch::target(draft.store, entity)?, None, &row)?;
    match row.text("id") {
        Some(id) => check_id(entity, id)?,
        None => row.set("id", Value::from(new_id())),
    }
    Ok(row)
}

async fn refuse_known_id(draft: &mut Draft<'_>, row: &Row) -> Result<(), ChangeError> {
    match draft.store.encoder().locate(row.entity, row.id()).await? {
        None => Ok(()),
        Some(_) => Err(ChangeError::Refused(format!("there is a {} `{}` already", row.entity.title(), row.id()))),
    }
}

/// Refuses values that a source cannot store: nothing is dropped silently. `settled` are columns handled elsewhere.
fn refuse_what_has_no_place(source: &BoundSource, row: &Row, settled: &[&str]) -> Result<(), ChangeError> {
    let nothing = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    let columns = row.entity.columns().iter().map(|c| c.name).filter(|c| !settled.contains(c));
    let lost: Vec<&str> = columns.filter(|c| !nothing(row.get(c)) && !batch::is_kept(source, row, c)).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(ChangeError::Refused(format!(
        "{} has no place for `{}`: leave it out, because nothing is dropped silently",
        table_of(source).title(),
        lost.join("`, `")
    )))
}
