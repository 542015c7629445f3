//! The people of a database, with all of their names and handles: the texts that masking must hide.

use std::collections::BTreeSet;

use crate::memory::Entity;
use crate::memory::query::{PageStart, Query};
use crate::store::{Store, StoreError};

/// Most handles read: further people are masked in their rows only.
const MOST: usize = 100_000;

/// Ids, names and other handles of the people that the database lists; if no layout lists people, the owners of rows.
///
/// # Errors
/// The engine's refusal.
pub async fn handles(store: &Store) -> Result<Vec<String>, StoreError> {
    let mut handles = Vec::new();
    if store.sources_of(Entity::Subject).is_err() {
        return owners(store).await;
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

/// Collects the owners named in the first rows of each entity.
async fn owners(store: &Store) -> Result<Vec<String>, StoreError> {
    let mut owners = BTreeSet::new();
    for entity in Entity::ALL.iter().copied().filter(|entity| entity.column("user_id").is_some()) {
        let Ok(sources) = store.sources_of(entity) else { continue };
        if sources.iter().all(|source| source.column("user_id").is_empty()) {
            continue;
        }
        let mut query = Query { columns: Some(vec!["user_id"]), limit: 2_000, ..Query::new(entity) };
        let mut read = 0;
        while read < MOST {
            let page = store.page(&query).await?;
            read += page.rows.len();
            owners.extend(page.rows.iter().filter_map(|row| row.text("user_id").map(str::to_owned)));
            match page.next {
                Some(next) => query.start = PageStart::After(next),
                None => break,
            }
        }
    }
    Ok(owners.into_iter().collect())
}
