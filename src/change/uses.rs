//! Statistics of the memories that episodes used: number of uses, and mean utility of the episodes, if the layout
//! stores them with the memory.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use serde_json::Value;

use super::batch::NewRow;
use super::draft::Draft;
use super::feedback::writable;
use super::remove::CHANGING;
use super::{ChangeError, batch};
use crate::layout::BoundSource;
use crate::memory::{Entity, Row, agreeing, score, thousands, utility};
use crate::store::Store;
use crate::store::encode::{GivenValue, LocatedRow, plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::StoredRows;

/// Episodes per query by id.
const ASKED: usize = 500;

/// Updates the memories that an episode used for its new utility; `episode` is the row after the change, `linked` are
/// memories that the same plan links to it. Does nothing if memories are not stored with a utility or a number of uses.
///
/// # Errors
/// The engine's refusal, or more memories than one change can hold.
pub(super) async fn follow(draft: &mut Draft<'_>, episode: &Row, linked: &[String]) -> Result<(), ChangeError> {
    let store = draft.store;
    let Ok(sources) = store.sources_of(Entity::Memory) else { return Ok(()) };
    let keeping: Vec<&BoundSource> = sources.into_iter().filter(|s| keeps(s)).collect();
    if keeping.is_empty() {
        return Ok(());
    }
    let mut memories: BTreeSet<String> = ends(draft, "episode_id", episode.id(), "memory_id").await?;
    memories.extend(linked.iter().cloned());
    if memories.len() > CHANGING {
        return Err(ChangeError::Refused(format!(
            "episode {} used {} memories: one change can hold at most {}",
            episode.id(),
            thousands(memories.len()),
            thousands(CHANGING)
        )));
    }
    if let Some(reason) = unseen(store).filter(|_| !memories.is_empty()) {
        draft.disclosures.push(format!("memories that the episode used keep their utility and uses: {reason}"));
        return Ok(());
    }
    for memory in memories {
        // A link may dangle, or lead to a read-only memory, such as that of a palace.
        for source in &keeping {
            if let Some(found) = draft.seek_in(source, &memory).await? {
                settle(draft, &found, episode).await?;
            }
        }
    }
    Ok(())
}

/// Reason why the uses of a memory may not all be seen.
fn unseen(store: &Store) -> Option<String> {
    [Entity::MemoryLink, Entity::Episode].into_iter().find_map(|entity| store.report().unseen(entity))
}

fn keeps(source: &BoundSource) -> bool {
    let stored = |column: &&str| plain_column(source, column).is_some();
    writable(source).is_ok() && ["utility", "uses"].iter().any(stored)
}

/// Collects the other ends of the links with a value in a column: a memory may have very many.
async fn ends(draft: &mut Draft<'_>, column: &str, value: &str, end: &str) -> Result<BTreeSet<String>, ChangeError> {
    let mut ends = BTreeSet::new();
    let take = |link: Row| {
        ends.extend(link.text(end).map(str::to_owned));
        ControlFlow::Continue(())
    };
    links(draft, column, value, &[column, end], take).await?;
    Ok(ends)
}

/// Passes on the links with a value in a column, which are watched first, until it breaks.
async fn links(
    draft: &mut Draft<'_>,
    column: &str,
    value: &str,
    wanted: &[&str],
    mut each: impl FnMut(Row) -> ControlFlow<()> + Send,
) -> Result<(), ChangeError> {
    let store = draft.store;
    let Ok(sources) = store.sources_of(Entity::MemoryLink) else { return Ok(()) };
    for source in sources {
        if let Some((name, way)) = plain_column(source, column)
            && store.encoder().can_be(way, value)
        {
            draft.watch(StoredRows::with(&table_of(source), name, FetchedValue::Text(value.to_owned()))).await?;
        }
    }
    Ok(store.each_related(Entity::MemoryLink, column, &[value], wanted, |link, _| each(link)).await?)
}

/// The utility of a memory that these episodes used, one of them in its new state.
async fn utility_of(
    store: &Store,
    users: &BTreeSet<String>,
    changed: Option<&Row>,
) -> Result<Option<f64>, ChangeError> {
    let others: Vec<&str> =
        users.iter().map(String::as_str).filter(|id| changed.is_none_or(|row| row.id() != *id)).collect();
    // Newest first: start, utility and id.
    let mut latest: Vec<(String, f64, String)> = Vec::new();
    let mut take = |row: &Row| {
        if latest.iter().any(|(_, _, known)| known == row.id()) {
            return;
        }
        let started = row.text("started_at").unwrap_or_default().to_owned();
        latest.push((started, utility::of_use(row.number("utility")), row.id().to_owned()));
        latest.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        latest.truncate(utility::LATEST);
    };
    changed.into_iter().for_each(&mut take);
    let columns = ["id", "started_at", "utility"];
    for others in others.chunks(ASKED) {
        let take = |row: Row, _| {
            take(&row);
            ControlFlow::Continue(())
        };
        store.each_related(Entity::Episode, "id", others, &columns, take).await?;
    }
    Ok(utility::of_memory(latest.into_iter().map(|(_, utility, _)| utility)))
}

/// Combines the links of merged memories: adds those that the remaining one lacks, and sets its usage columns. More
/// links than one change can hold fill the plan.
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
    if let Some(reason) = unseen(store) {
        return Err(ChangeError::Refused(format!(
            "your role may not see links to the copies, and they would lead nowhere: {reason}. Merge them with a role \
             that sees every row"
        )));
    }
    let mut users: BTreeSet<String> = ends(draft, "memory_id", kept.row.id(), "episode_id").await?;
    let mut new = Vec::new();
    let all: Vec<&str> = Entity::MemoryLink.columns().iter().map(|column| column.name).collect();
    for copy in copies {
        let take = |mut link: Row| {
            if link.text("episode_id").is_some_and(|episode| users.insert(episode.to_owned())) {
                link.set("memory_id", Value::from(kept.row.id()));
                new.push(link);
            }
            if new.len() > CHANGING { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        links(draft, "memory_id", copy.row.id(), &all, take).await?;
    }
    if new.len() > CHANGING {
        draft.overfill();
        return Ok(Vec::new());
    }
    new.sort_by(|a, b| a.text("episode_id").cmp(&b.text("episode_id")));
    let new: Vec<NewRow> = new.into_iter().map(NewRow::from).collect();
    batch::add(draft, Entity::MemoryLink, new).await?;
    let utility = utility_of(store, &users, None).await?;
    Ok(vec![("uses", Value::from(users.len() as u64)), ("utility", utility.map_or(Value::Null, Value::from))])
}

/// Sets uses and utility of one memory if they differ from its episodes.
async fn settle(draft: &mut Draft<'_>, memory: &LocatedRow<'_>, episode: &Row) -> Result<(), ChangeError> {
    let store = draft.store;
    let mut users: BTreeSet<String> = ends(draft, "memory_id", memory.row.id(), "episode_id").await?;
    users.insert(episode.id().to_owned());
    let utility = utility_of(store, &users, Some(episode)).await?;
    let mut shown = memory.row.clone();
    let mut values: Vec<(&str, GivenValue)> = Vec::new();
    let stored = memory.row.number("utility");
    if !score::is_same_or_unknown(stored, utility) && plain_column(memory.source, "utility").is_some() {
        values.push(("utility", GivenValue::Is(utility.map_or(Value::Null, Value::from))));
        let word = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
        let words = format!(
            "memory {}: its utility changes from {} to {}, the mean of the latest {} of {{#}} {{episode|episodes}} \
             that used it",
            memory.row.id(),
            word(stored),
            word(utility),
            users.len().min(utility::LATEST)
        );
        draft.effects.push(agreeing(users.len(), &words));
    }
    let uses = users.len() as i64;
    if memory.row.get("uses").as_i64() != Some(uses) && plain_column(memory.source, "uses").is_some() {
        values.push(("uses", GivenValue::from(uses)));
        let before = memory.row.get("uses").as_i64().map_or("unknown".to_owned(), |n| n.to_string());
        draft.effects.push(format!("memory {}: its uses change from {before} to {uses}", memory.row.id()));
    }
    for (column, value) in &values {
        if let GivenValue::Is(value) = value {
            shown.set(column, value.clone());
        }
    }
    if values.is_empty() {
        return Ok(());
    }
    draft.sets(memory, &values, &shown).await
}
