//! Reading from the store for the core.

use std::collections::HashSet;

use crate::console::core::RequestFailure;
use crate::console::core::names::name_columns;
use crate::console::core::request::{Content, Related, Relation};
use crate::console::core::window::row_key;
use crate::memory::query::{Page, Query, StoreStatus};
use crate::memory::{Entity, Row};
use crate::store::{Store, StoreError};

/// A failure of the store for people.
pub fn failure(what: &str, error: &StoreError) -> RequestFailure {
    let (code, remedy) = match error {
        StoreError::Missing { remedy, .. } => (None, remedy.clone()),
        StoreError::Denied { remedy, .. } => (None, Some(remedy.clone())),
        StoreError::Cursor => (None, Some("r reads again".to_owned())),
        StoreError::Unordered(_) => (None, Some("sort by another column".to_owned())),
        StoreError::Ambiguous(..) | StoreError::CannotHold(_) | StoreError::NoTable(_) => (None, None),
        StoreError::Engine(error) => {
            let code = error.as_database_error().and_then(|e| e.code().map(std::borrow::Cow::into_owned));
            (code, Some("r tries again; a narrower filter or another order may be quicker".to_owned()))
        }
    };
    RequestFailure { what: what.to_owned(), message: error.to_string(), code, remedy }
}

/// The state of the database.
pub async fn status(store: &Store) -> Result<Box<StoreStatus>, RequestFailure> {
    store.report().status().await.map(Box::new).map_err(|e| failure("The state of the database could not be read", &e))
}

/// A page of a list.
pub async fn page(store: &Store, query: &Query) -> Result<Page, RequestFailure> {
    store.page(query).await.map_err(|e| failure("The list could not be read", &e))
}

/// A row with everything about it.
pub async fn detail(store: &Store, entity: Entity, id: &str, key: &str) -> Result<Option<Content>, RequestFailure> {
    let failed = |e: StoreError| failure(&format!("The {} could not be read", entity.title()), &e);
    if entity == Entity::Episode {
        let context = store.contexts().episode(id).await.map_err(failed)?;
        return Ok(context.map(|context| Content::Episode(Box::new(context))));
    }
    let row = if key == id {
        store.row(entity, id).await.map_err(failed)?
    } else {
        let rows = store.related(entity, "id", &[id.to_owned()]).await.map_err(failed)?;
        rows.into_iter().find(|row| row_key(row) == key)
    };
    Ok(row.map(|row| Content::Row(Box::new(row))))
}

/// Rows that others refer to, with what names them.
pub async fn names(store: &Store, wanted: Vec<(Entity, Vec<String>)>) -> Result<Vec<Row>, RequestFailure> {
    let mut named = Vec::new();
    for (entity, ids) in wanted {
        let rows = store.related_columns(entity, "id", &ids, Some(name_columns(entity))).await;
        named.extend(rows.map_err(|e| failure("Names could not be read", &e))?);
    }
    Ok(named)
}

/// Rows related to one.
pub async fn related(store: &Store, relations: Vec<(String, Relation)>) -> Result<Vec<Related>, RequestFailure> {
    let failed = |e: StoreError| failure("Related rows could not be read", &e);
    let mut groups = Vec::new();
    for (title, relation) in relations {
        groups.push(match relation {
            Relation::Ids(entity, ids) => {
                let rows = store.related(entity, "id", &ids).await.map_err(failed)?;
                by_ids(title, rows, &ids)
            }
            Relation::List(query) => {
                let page = store.page(&query).await.map_err(failed)?;
                Related { title, rows: page.rows, more: page.next.is_some(), dangling: Vec::new() }
            }
        });
    }
    Ok(groups)
}

fn by_ids(title: String, rows: Vec<Row>, ids: &[String]) -> Related {
    let found: HashSet<&str> = rows.iter().map(Row::id).collect();
    let dangling = ids.iter().filter(|id| !found.contains(id.as_str())).cloned().collect();
    Related { title, rows, more: false, dangling }
}
