//! The people of a database, by all that they are called: what a veil has to hide.

use crate::memory::Entity;
use crate::memory::query::{PageStart, Query};
use crate::store::{Store, StoreError};

/// Handles that are read at most: further people are masked in their rows only.
const MOST: usize = 100_000;

/// Ids, names and other handles of the people that the database says it is about; none where no layout says that.
///
/// # Errors
/// The engine's refusal.
pub async fn handles(store: &Store) -> Result<Vec<String>, StoreError> {
    let mut handles = Vec::new();
    if store.sources_of(Entity::Subject).is_err() {
        return Ok(handles);
    }
    let columns = ["id", "name", "handles"];
    let mut query = Query { columns: Some(columns.to_vec()), limit: 500, ..Query::new(Entity::Subject) };
    while handles.len() < MOST {
        let page = store.page(&query).await?;
        for row in &page.rows {
            handles.extend([row.text("id"), row.text("name")].into_iter().flatten().map(str::to_owned));
            handles.extend(row.list("handles").into_iter().map(str::to_owned));
        }
        match page.next {
            Some(next) => query.start = PageStart::After(next),
            None => break,
        }
    }
    Ok(handles)
}
