//! Statistics of the memories that episodes used: number of uses, and mean utility of the episodes, where the layout
//! stores that with the memory.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::batch::NewRow;
use super::draft::Draft;
use super::feedback::writable;
use super::{ChangeError, batch};
use crate::layout::BoundSource;
use crate::memory::{Entity, Row, utility};
use crate::store::Store;
use crate::store::encode::{GivenValue, LocatedRow, plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::StoredRows;

/// Differences of utilities that come of adding in another order.
const ROUNDING: f64 = 1e-9;

/// Brings the memories that an episode used in line with its new utility; `episode` is the row as it will be, `linked` the
/// memories that the same plan links to it. Nothing where memories are not stored with a utility or a number of uses.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn follow(draft: &mut Draft<'_>, episode: &Row, linked: &[String]) -> Result<(), ChangeError> {
    let store = draft.store;
    let Ok(sources) = store.sources_of(Entity::Memory) else { return Ok(()) };
    let keeping: Vec<&BoundSource> = sources.into_iter().filter(|s| keeps(s)).collect();
    if keeping.is_empty() {
        return Ok(());
    }
    let used = links(draft, "episode_id", episode.id()).await?;
    let mut memories: BTreeSet<String> = used.iter().filter_map(|l| l.text("memory_id").map(str::to_owned)).collect();
    memories.extend(linked.iter().cloned());
    for memory in memories {
        // A link may lead nowhere, or into a memory that is only read here, such as a palace.
        for source in &keeping {
            if let Some(found) = draft.seek_in(source, &memory).await? {
                settle(draft, &found, episode).await?;
            }
        }
    }
    Ok(())
}

fn keeps(source: &BoundSource) -> bool {
    let stored = |column: &&str| plain_column(source, column).is_some();
    writable(source).is_ok() && ["utility", "uses"].iter().any(stored)
}

/// The links with a value in a column, read after they were noted down.
async fn links(draft: &mut Draft<'_>, column: &str, value: &str) -> Result<Vec<Row>, ChangeError> {
    let store = draft.store;
    let Ok(sources) = store.sources_of(Entity::MemoryLink) else { return Ok(Vec::new()) };
    for source in sources {
        if let Some((name, way)) = plain_column(source, column)
            && store.encoder().can_be(way, value)
        {
            draft.watch(StoredRows::with(&table_of(source), name, FetchedValue::Text(value.to_owned()))).await?;
        }
    }
    Ok(store.related(Entity::MemoryLink, column, &[value.to_owned()]).await?)
}

/// The utility of a memory that these episodes used, one of them as it will be.
async fn utility_of(
    store: &Store,
    users: &BTreeSet<String>,
    changed: Option<&Row>,
) -> Result<Option<f64>, ChangeError> {
    let others: Vec<String> = users.iter().filter(|id| changed.is_none_or(|row| row.id() != *id)).cloned().collect();
    let columns = ["id", "started_at", "utility"];
    let mut rows: BTreeMap<(String, String), f64> = BTreeMap::new();
    let read = store.related_columns(Entity::Episode, "id", &others, Some(&columns)).await?;
    for row in read.iter().chain(changed) {
        let started = row.text("started_at").unwrap_or_default().to_owned();
        rows.extend(row.number("utility").map(|utility| ((started, row.id().to_owned()), utility)));
    }
    Ok(utility::of_memory(rows.into_values().rev()))
}

/// The links of memories that become one: those that it lacks are added. What it is used by then, as its columns say it.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn gather(
    draft: &mut Draft<'_>,
    kept: &LocatedRow<'_>,
    copies: &[LocatedRow<'_>],
) -> Result<Vec<(&'static str, Value)>, ChangeError> {
    let store = draft.store;
    if store.sources_of(Entity::MemoryLink).is_err() {
        let own = |found: &LocatedRow<'_>| found.row.get("uses").as_i64();
        let sum: Option<i64> = copies.iter().chain([kept]).filter_map(own).reduce(i64::saturating_add);
        return Ok(sum.map(|sum| ("uses", Value::from(sum))).into_iter().collect());
    }
    let mut users: BTreeSet<String> = BTreeSet::new();
    for link in links(draft, "memory_id", kept.row.id()).await? {
        users.extend(link.text("episode_id").map(str::to_owned));
    }
    let mut new = Vec::new();
    for copy in copies {
        for mut link in links(draft, "memory_id", copy.row.id()).await? {
            if link.text("episode_id").is_some_and(|episode| users.insert(episode.to_owned())) {
                link.set("memory_id", Value::from(kept.row.id()));
                new.push(NewRow::from(link));
            }
        }
    }
    batch::add(draft, Entity::MemoryLink, new).await?;
    let utility = utility_of(store, &users, None).await?;
    Ok(vec![("uses", Value::from(users.len() as u64)), ("utility", utility.map_or(Value::Null, Value::from))])
}

/// Sets uses and utility of one memory where they differ from what its episodes give.
async fn settle(draft: &mut Draft<'_>, memory: &LocatedRow<'_>, episode: &Row) -> Result<(), ChangeError> {
    let store = draft.store;
    let links = links(draft, "memory_id", memory.row.id()).await?;
    let mut users: BTreeSet<String> = links.iter().filter_map(|l| l.text("episode_id").map(str::to_owned)).collect();
    users.insert(episode.id().to_owned());
    let utility = utility_of(store, &users, Some(episode)).await?;
    let mut shown = memory.row.clone();
    let mut values: Vec<(&str, GivenValue)> = Vec::new();
    let stored = memory.row.number("utility");
    let moved = match (stored, utility) {
        (Some(a), Some(b)) => (a - b).abs() > ROUNDING,
        (a, b) => a != b,
    };
    if moved && plain_column(memory.source, "utility").is_some() {
        values.push(("utility", GivenValue::Is(utility.map_or(Value::Null, Value::from))));
        let word = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
        draft.effects.push(format!(
            "memory {}: its utility goes from {} to {}, the mean of the latest {} of {} episodes that used it",
            memory.row.id(),
            word(stored),
            word(utility),
            users.len().min(utility::LATEST),
            users.len()
        ));
    }
    let uses = users.len() as i64;
    if memory.row.get("uses").as_i64() != Some(uses) && plain_column(memory.source, "uses").is_some() {
        values.push(("uses", GivenValue::from(uses)));
        let before = memory.row.get("uses").as_i64().map_or("unknown".to_owned(), |n| n.to_string());
        draft.effects.push(format!("memory {}: its uses go from {before} to {uses}", memory.row.id()));
    }
    for (column, value) in &values {
        if let GivenValue::Is(value) = value {
            shown.set(column, value.clone());
        }
    }
    if values.is_empty() {
        return Ok(());
    }
    let shape = store.shapes().shape(&memory.table()).await?;
    let update = memory.update(store.engine(), &shape, &values).map_err(ChangeError::Refused)?;
    draft.alters(&memory.row, &shown);
    draft.push(update);
    Ok(())
}
