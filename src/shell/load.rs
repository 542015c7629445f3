//! Reading from the store for the core.

use std::collections::{HashMap, HashSet};

use crate::console::core::names::name_columns;
use crate::console::core::request::RowCount;
use crate::console::core::{Content, Related, Relation, RequestFailure, RowKey};
use crate::console::screens::find::messages::FoundRows;
use crate::lab::LabError;
use crate::memory::query::{PAGE, Page, PageStart, Query, StoreStatus};
use crate::memory::search::Search;
use crate::memory::{Entity, Row};
use crate::store::{EngineFault, Store, StoreError};

pub fn failure(what: &str, error: &StoreError) -> RequestFailure {
    let remedy = match error {
        StoreError::Missing { remedy, .. } => remedy.clone(),
        StoreError::Denied { remedy, .. } => Some(remedy.clone()),
        StoreError::Unordered(_) => Some("sort by another column".to_owned()),
        StoreError::Cursor
        | StoreError::Ambiguous(..)
        | StoreError::CannotHold(_)
        | StoreError::NoTable(_)
        | StoreError::Scratch(_) => None,
        StoreError::Engine(_) if error.is_lost() => Some("it is read again automatically once it answers".to_owned()),
        StoreError::Engine(_) => match error.fault() {
            Some(EngineFault::Locked) => {
                Some("another process holds it locked; it is read again automatically once that ends".to_owned())
            }
            Some(EngineFault::Changed) => {
                Some("its tables were changed since it was opened: ctrl-o and its path open it again".to_owned())
            }
            Some(fault @ (EngineFault::Damaged | EngineFault::DamagedOnServer | EngineFault::Raised)) => {
                fault.lasting_remedy().map(str::to_owned)
            }
            Some(EngineFault::Full) => Some("free space on the disk that holds the database, then press r".to_owned()),
            Some(EngineFault::Stopped) => Some("narrow the filter or change the order".to_owned()),
            None => None,
        },
    };
    RequestFailure {
        remedy,
        passes: error.is_lost() || error.fault() == Some(EngineFault::Locked),
        is_damage: error.fault() == Some(EngineFault::Damaged),
        // The message of an engine names its code.
        ..RequestFailure::bare(what, error.to_string())
    }
}

/// A failure of a rule of recall, or of the store beneath it, for people.
pub fn failure_of_lab(what: &str, error: &LabError) -> RequestFailure {
    match error {
        LabError::Store(error) => failure(what, error),
        other => RequestFailure::bare(what, other.to_string()),
    }
}

pub async fn status(store: &Store) -> Result<Box<StoreStatus>, RequestFailure> {
    store.report().status().await.map(Box::new).map_err(|e| failure("The state of the database could not be read", &e))
}

pub async fn page(store: &Store, query: &Query) -> Result<Page, RequestFailure> {
    store.page(query).await.map_err(|e| failure("The list could not be read", &e))
}

/// Counts the rows of a list page by page, up to a number that is reached quickly.
pub async fn count(store: &Store, query: &Query) -> Result<RowCount, RequestFailure> {
    const COUNTED: u64 = 20_000;
    const STRIDE: usize = 5_000;
    let mut query = Query { limit: STRIDE, start: PageStart::First, columns: Some(Vec::new()), ..query.clone() };
    let mut rows = 0;
    loop {
        let found = page(store, &query).await?;
        rows += found.rows.len() as u64;
        match found.next {
            Some(_) if rows >= COUNTED => return Ok(RowCount { rows, more: true }),
            Some(next) => query.start = PageStart::After(next),
            None => return Ok(RowCount { rows, more: false }),
        }
    }
}

/// The short values of a column in the newest rows of an entity, most frequent first.
pub async fn values(store: &Store, entity: Entity, column: &'static str) -> Result<Vec<String>, RequestFailure> {
    const NEWEST: usize = 1_000;
    const OFFERED: usize = 200;
    const LONGEST: usize = 200;
    let found = page(store, &Query { limit: NEWEST, columns: Some(vec![column]), ..Query::new(entity) }).await?;
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in &found.rows {
        let list = row.list(column).into_iter().map(str::to_owned);
        let truth = row.get(column).as_bool().map(|truth| truth.to_string());
        for value in list
            .chain(row.text(column).map(str::to_owned))
            .chain(truth)
            .filter(|value| (1..=LONGEST).contains(&value.len()))
        {
            *counts.entry(value).or_default() += 1;
        }
    }
    let mut values: Vec<(String, usize)> = counts.into_iter().collect();
    values.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
    Ok(values.into_iter().map(|(value, _)| value).take(OFFERED).collect())
}

/// A row with everything about it.
pub async fn detail(store: &Store, entity: Entity, key: &RowKey) -> Result<Option<Content>, RequestFailure> {
    let failed = |e: StoreError| failure(&format!("The {} could not be read", entity.title()), &e);
    let id = key.id();
    if entity == Entity::Episode {
        let context = store.contexts().episode(id).await.map_err(failed)?;
        return Ok(context.map(|context| Content::Episode(Box::new(context))));
    }
    let row = if key.is_id() {
        store.row(entity, id).await.map_err(failed)?
    } else {
        let rows = store.related(entity, "id", &[id.to_owned()]).await.map_err(failed)?;
        rows.into_iter().find(|row| RowKey::of(row) == *key)
    };
    Ok(row.map(|row| Content::Row(Box::new(row))))
}

/// Referenced rows, with their names.
pub async fn names(store: &Store, wanted: Vec<(Entity, Vec<String>)>) -> Result<Vec<Row>, RequestFailure> {
    let mut named = Vec::new();
    for (entity, ids) in wanted {
        let rows = store.related_columns(entity, "id", &ids, Some(name_columns(entity))).await;
        named.extend(rows.map_err(|e| failure("Names could not be read", &e))?);
    }
    Ok(named)
}

/// Ids of the people under a legal hold.
pub async fn holds(store: &Store) -> Result<Vec<String>, RequestFailure> {
    let holds = store.records().holds().await.map_err(|e| failure("Legal holds could not be read", &e))?;
    Ok(holds.into_iter().map(|(person, _)| person).collect())
}

/// A page of the rows of an entity that match a search.
pub async fn found(
    store: &Store,
    search: &Search,
    entity: Entity,
    after: Option<String>,
) -> Result<FoundRows, RequestFailure> {
    let page = store.find(search, &[entity], PAGE, after.as_deref()).await;
    let page = page.map_err(|e| failure(&format!("{} could not be searched", entity.plural()), &e))?;
    Ok(FoundRows { rows: page.rows, next: page.next })
}

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
