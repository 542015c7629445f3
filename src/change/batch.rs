//! Many new rows in one plan: what is there already is left alone, the rest goes in with few statements.

use std::collections::HashSet;

use serde_json::Value;

use super::ChangeError;
use super::draft::Draft;
use super::feedback::{addable, writable};
use crate::layout::{BoundOrigin, BoundSource, Fill};
use crate::memory::{Entity, Row, json};
use crate::store::encode::{Given, plain_column, table_of};
use crate::store::session::Raw;
use crate::store::stored::{Image, Rows};
use crate::store::{Store, StoreError};

/// A row to be added.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRow {
    /// Its canonical values.
    pub row: Row,
    /// Columns that take the time of the change.
    pub now: Vec<&'static str>,
    /// Where it stands in the file that it comes from, from 1; 0 without one.
    pub place: usize,
}

impl NewRow {
    /// A row with some columns set.
    #[must_use]
    pub fn new<const N: usize>(entity: Entity, values: [(&str, Value); N]) -> Self {
        let mut row = Row::empty(entity);
        values.into_iter().for_each(|(column, value)| row.set(column, value));
        NewRow { row, now: Vec::new(), place: 0 }
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
    add_beside(draft, entity, rows, None).await
}

/// As [`add`], with the stored row that the new ones hang on, from which the layout may take columns.
///
/// # Errors
/// As [`add`].
pub async fn add_beside(
    draft: &mut Draft<'_>,
    entity: Entity,
    rows: &[NewRow],
    owner: Option<&Image>,
) -> Result<Tally, ChangeError> {
    if rows.is_empty() {
        return Ok(Tally::default());
    }
    let store = draft.store;
    let source = target(store, entity)?;
    addable(source)?;
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
    let used: Vec<&str> = entity.columns().iter().map(|c| c.name).filter(used).collect();
    let (columns, lost): (Vec<&str>, Vec<&str>) = used.into_iter().partition(|c| has_place(source, c));
    let lost: Vec<&str> = lost
        .into_iter()
        .filter(|c| !DERIVED.contains(c))
        .filter(|c| fresh.iter().any(|r| !r.row.get(c).is_null() && !is_kept(source, &r.row, c)))
        .collect();
    if !lost.is_empty() {
        let table = table_of(source).title();
        draft.disclosures.push(format!("{table} has no place for `{}`: left out", lost.join("`, `")));
    }
    let values: Vec<Vec<Given>> = fresh.iter().map(|new| given(new, &columns)).collect();
    let insertion = store.insertions(source, &columns, &values, owner).await?;
    fresh.iter().for_each(|r| draft.adds(&r.row));
    draft.push(insertion);
    Ok(tally)
}

/// The rows of one entity that the database cannot store, each with where it stands and why.
///
/// # Errors
/// As [`add`].
pub async fn unfit(store: &Store, entity: Entity, rows: &[&NewRow]) -> Result<Vec<(usize, String)>, ChangeError> {
    let source = target(store, entity)?;
    addable(source)?;
    let mut unfit = Vec::new();
    for new in rows {
        let used = |c: &&str| has_place(source, c) && (new.now.contains(c) || !new.row.get(c).is_null());
        let columns: Vec<&str> = entity.columns().iter().map(|c| c.name).filter(used).collect();
        match store.insertions(source, &columns, &[given(new, &columns)], None).await {
            Ok(_) => {}
            Err(StoreError::CannotHold(why)) => unfit.push((new.place, why)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(unfit)
}

fn given(new: &NewRow, columns: &[&str]) -> Vec<Given> {
    let value = |c: &&str| if new.now.contains(c) { Given::Now } else { Given::Is(new.row.get(c).clone()) };
    columns.iter().map(value).collect()
}

/// Columns that follow from others wherever they are not stored.
const DERIVED: &[&str] = &["score", "counts", "source", "has_vector", "episodes", "cases", "feedback"];

/// The source that new rows of an entity go to.
///
/// # Errors
/// [`ChangeError::Refused`] where none is kept.
pub fn target(store: &Store, entity: Entity) -> Result<&BoundSource, ChangeError> {
    let sources = store.sources_of(entity)?;
    let source = sources.iter().copied().find(|s| writable(s).is_ok()).or(sources.first().copied());
    source.ok_or_else(|| ChangeError::Refused(format!("no {} is kept here", entity.title())))
}

/// Whether a source stores a canonical column, as it is or in a column of its own words.
#[must_use]
pub fn has_place(source: &BoundSource, name: &str) -> bool {
    let by_word = |fill: &Fill| matches!(fill, Fill::Word { column, .. } if column == name);
    plain_column(source, name).is_some()
        || source.write.as_ref().is_some_and(|w| w.insert.iter().any(|(_, fill)| by_word(fill)))
}

/// Whether a value is stored, in its own column, by a word, or as a part of another value that is stored.
#[must_use]
pub fn is_kept(source: &BoundSource, row: &Row, column: &str) -> bool {
    if plain_column(source, column).is_some() {
        return true;
    }
    let fills = source.write.as_ref().map(|w| w.insert.as_slice()).unwrap_or_default();
    let by_word = |fill: &Fill| match fill {
        Fill::Word { column: by, words } => by == column && words.iter().any(|(w, _)| row.text(column) == Some(w)),
        _ => false,
    };
    if has_place(source, column) {
        return fills.iter().any(|(_, fill)| by_word(fill));
    }
    source.column(column).iter().any(|way| match (&way.origin, &way.path) {
        (BoundOrigin::Value(value), _) => value == row.get(column),
        // Of the row that this one hangs on, such as a case's bank: it says whose it is.
        (BoundOrigin::Column { alias, .. }, _) if alias != "t" => true,
        (BoundOrigin::Column { name, .. }, Some(path)) => row.entity.columns().iter().any(|whole| {
            plain_column(source, whole.name).is_some_and(|(stored, _)| stored == name)
                && json::path(row.get(whole.name), path).is_some_and(|part| part == *row.get(column))
        }),
        _ => false,
    })
}

fn text(image: &Image, column: &str) -> String {
    match image.get(column) {
        Some(Raw::Text(text)) => text.clone(),
        _ => String::new(),
    }
}
