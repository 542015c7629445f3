//! Searches all texts of a database for words, page by page: entity after entity, newest first.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::order::{place_of, place_text};
use super::{Store, StoreError};
use crate::memory::query::{PageStart, Query};
use crate::memory::search::{Search, SearchHit};
use crate::memory::{Entity, Row};

/// Characters kept of the texts of a found row.
const BEGINNING: usize = 200;

/// A page of matching rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundPage {
    /// The rows, with only the beginnings of their texts, and where each matches.
    pub rows: Vec<(Row, SearchHit)>,
    /// Cursor for the next page; `None` at the end.
    pub next: Option<String>,
}

/// Position between two pages of one search.
#[derive(Debug, Serialize, Deserialize)]
struct Place {
    /// Digest of the search: a cursor of another search is refused.
    asked: String,
    /// Index of the entity.
    entity: usize,
    /// Cursor among its rows; `None` before the first.
    after: Option<String>,
}

impl Store {
    /// Finds the next rows of some entities whose texts match, at most `limit`, after the page whose `next` is `after`.
    /// Includes rows found only by the layout's full-text index.
    ///
    /// # Errors
    /// [`StoreError::Missing`] for an entity that the database does not hold, [`StoreError::Cursor`] for a cursor of
    /// another search, or the engine's refusal.
    pub async fn find(
        &self,
        search: &Search,
        entities: &[Entity],
        limit: usize,
        after: Option<&str>,
    ) -> Result<FoundPage, StoreError> {
        let asked = digest(search, entities);
        let mut place = match after {
            None => Place { asked: asked.clone(), entity: 0, after: None },
            Some(text) => {
                place_of::<Place>(text.trim()).filter(|place| place.asked == asked).ok_or(StoreError::Cursor)?
            }
        };
        let mut found = FoundPage::default();
        while let Some(entity) = entities.get(place.entity).copied() {
            let room = limit.saturating_sub(found.rows.len());
            if room == 0 {
                found.next = Some(place_text(&place));
                return Ok(found);
            }
            let query = Query {
                search: Some(search.clone()),
                columns: Some(Vec::new()),
                limit: room,
                start: place.after.take().map_or(PageStart::First, PageStart::After),
                ..Query::new(entity).in_parts()
            };
            let page = self.page(&query).await?;
            let hits = page.rows.into_iter().filter_map(|row| Some((search.hit_by_index(&row)?, row)));
            found.rows.extend(hits.map(|(hit, row)| (beginning(row), hit)));
            place.after = page.next;
            if place.after.is_none() {
                place.entity += 1;
            }
        }
        Ok(found)
    }
}

/// Cuts the texts of a row to their beginnings; the id stays whole.
fn beginning(mut row: Row) -> Row {
    let of_id = row.entity.columns().iter().map(|column| column.name != "id");
    for (value, _) in row.values.iter_mut().zip(of_id).filter(|(_, is_other)| *is_other) {
        match value {
            Value::String(text) => {
                if let Some((end, _)) = text.char_indices().nth(BEGINNING) {
                    *text = text[..end].to_owned();
                }
            }
            Value::Array(_) | Value::Object(_) => *value = Value::Null,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    row
}

/// Digest of a search, which does not reveal it.
fn digest(search: &Search, entities: &[Entity]) -> String {
    let mut hasher = Sha256::new();
    for part in entities.iter().map(|e| e.name()).chain(search.terms().iter().map(String::as_str)) {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex::encode(&hasher.finalize()[..8])
}
