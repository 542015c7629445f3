//! Many new rows in one plan: what is there already is left alone, the rest goes in with few statements.

use std::collections::HashSet;

use serde_json::Value;

use super::ChangeError;
use super::draft::Draft;
use super::feedback::writable;
use crate::memory::{Entity, Row};
use crate::store::encode::{Given, plain_column, table_of};
use crate::store::session::Raw;
use crate::store::stored::{Image, Rows};

/// A row to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRow {
    /// Its canonical values.
    pub row: Row,
    /// Columns that take the time of the change.
    pub now: Vec<&'static str>,
}

impl NewRow {
    /// A row with some columns set.
    #[must_use]
    pub fn new<const N: usize>(entity: Entity, values: [(&str, Value); N]) -> Self {
        let mut row = Row::empty(entity);
        values.into_iter().for_each(|(column, value)| row.set(column, value));
        NewRow { row, now: Vec::new() }
    }

    /// The row with a column that takes the time of the change.
    #[must_use]
    pub fn at_once(mut self, column: &'static str) -> Self {
        self.now.push(column);
        self
    }
}

/// How many rows of what were added and were there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// New ones.
    pub added: usize,
    /// Rows whose key is there already; they stay as they are.
    pub present: usize,
}

/// Adds rows of one entity to a plan. Rows whose key is there, or stands twice among them, are left out.
///
/// # Errors
/// [`ChangeError::Refused`] where the entity cannot be written.
pub async fn add(draft: &mut Draft<'_>, entity: Entity, rows: &[NewRow]) -> Result<Tally, ChangeError> {
    if rows.is_empty() {
        return Ok(Tally::default());
    }
    let store = draft.store;
    let sources = store.sources_of(entity)?;
    let source = sources.iter().copied().find(|s| writable(s).is_ok()).or(sources.first().copied());
    let source = source.ok_or_else(|| ChangeError::Refused(format!("no {} is kept here", entity.title())))?;
    writable(source)?;
    let key: &[&str] = if entity.column("id").is_some() { &["id"] } else { &["episode_id", "memory_id"] };
    let stored_key: Vec<String> =
        key.iter().filter_map(|c| plain_column(source, c)).map(|(name, _)| name.to_owned()).collect();
    let key_of =
        |row: &Row| -> Vec<String> { key.iter().map(|c| row.text(c).unwrap_or_default().to_owned()).collect() };
    let mut seen: HashSet<Vec<String>> = HashSet::new();
    let keys = rows.iter().map(|r| key_of(&r.row).into_iter().map(Raw::Text).collect()).collect();
    for image in store.images(&Rows { table: table_of(source), by: stored_key.clone(), keys }).await? {
        seen.insert(stored_key.iter().map(|name| text(&image, name)).collect());
    }
    let fresh: Vec<&NewRow> = rows.iter().filter(|r| seen.insert(key_of(&r.row))).collect();
    let tally = Tally { added: fresh.len(), present: rows.len() - fresh.len() };
    if fresh.is_empty() {
        return Ok(tally);
    }
    let used = |c: &&str| fresh.iter().any(|r| r.now.contains(c) || !r.row.get(c).is_null());
    let columns: Vec<&str> =
        entity.columns().iter().map(|c| c.name).filter(|c| plain_column(source, c).is_some()).filter(used).collect();
    let given = |new: &&NewRow| -> Vec<Given> {
        columns
            .iter()
            .map(|c| if new.now.contains(c) { Given::Now } else { Given::Is(new.row.get(c).clone()) })
            .collect()
    };
    let values: Vec<Vec<Given>> = fresh.iter().map(given).collect();
    let insertion = store.insertions(source, &columns, &values, None).await?;
    fresh.iter().for_each(|r| draft.adds(&r.row));
    draft.push(insertion);
    Ok(tally)
}

fn text(image: &Image, column: &str) -> String {
    match image.get(column) {
        Some(Raw::Text(text)) => text.clone(),
        _ => String::new(),
    }
}
