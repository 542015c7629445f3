//! Aggregates of rows that stay, recomputed from the remaining rows.

use std::collections::HashMap;

use serde_json::Value;

use super::effects::{KeptRows, NewValue};
use super::graph::Graph;
use super::id_set::IdSet;
use super::scan_findings::ScanFindings;
use super::taken::ranges;
use crate::change::ChangeError;
use crate::change::uses::{WORTH, each_use};
use crate::layout::erase::{EraseAction, Recompute};
use crate::memory::packed::digest_set::DigestSet;
use crate::memory::utility::LatestUses;
use crate::memory::{Entity, Row, feedback, score};
use crate::store::encode::{GivenValue, LocatedRow, encode, plain_column, table_of};
use crate::store::fetched::{FetchedValue, RawRow, as_text};
use crate::store::row_list::row_digest;
use crate::store::snapshot::Snapshot;
use crate::store::stored::{Cell, TableName};

/// Rows per read.
const AT_ONCE: usize = 400;
/// Memories recomputed together.
const MEMORIES: usize = 50;

/// Finds the aggregates that change, and their new values. Returns whether all could be computed: not if a table they
/// depend on may not be read.
///
/// # Errors
/// The engine's refusal.
pub async fn all(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    found: &ScanFindings,
    updates: &mut KeptRows,
) -> Result<bool, ChangeError> {
    match each(snapshot, graph, found, updates).await {
        Err(ChangeError::Store(error)) if error.is_denied() => Ok(false),
        done => done.map(|()| true),
    }
}

async fn each(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    found: &ScanFindings,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let rules = |what: Recompute| graph.rules.iter().filter(move |r| r.recompute == Some(what));
    if rules(Recompute::Feedback).next().is_some() {
        feedback_scores(snapshot, graph, found, updates).await?;
    }
    canvas_counts(snapshot, graph, found, updates).await?;
    let linked: Vec<_> = rules(Recompute::Memory).filter(|r| r.action == EraseAction::Delete).cloned().collect();
    for rule in linked {
        memories(snapshot, graph, &TableName::of(&rule.table), updates).await?;
    }
    Ok(())
}

/// Episodes that list deleted feedback, or that such feedback names.
async fn feedback_scores(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    found: &ScanFindings,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let store = snapshot.store;
    let mut episodes = IdSet::new(graph.pages());
    let listed = found.recompute.iter().filter(|(what, ..)| *what == Recompute::Feedback);
    listed.filter_map(|(_, _, key)| as_text(key.first()?)).for_each(|id| episodes.insert(&id));
    // By source number.
    let mut gone: HashMap<u16, IdSet> = HashMap::new();
    let Ok(sources) = store.sources_of(Entity::Feedback) else { return Ok(()) };
    // Most episodes with deleted feedback are deleted too, and need no recomputation.
    let tables: Vec<TableName> =
        store.sources_of(Entity::Episode).unwrap_or_default().into_iter().map(table_of).collect();
    let goes = |id: &FetchedValue| matches!(&tables[..], [table] if graph.has(table, std::slice::from_ref(id)));
    for (number, source) in sources.into_iter().enumerate() {
        let Some(taken) = graph.taken(&table_of(source)) else { continue };
        let own = gone.entry(number as u16).or_insert_with(|| IdSet::new(graph.pages()));
        let first = |row: RawRow| as_text(row.first()?);
        taken.rows(0..taken.len()).filter_map(first).for_each(|id| own.insert(&id));
        if let (Some((back, _)), Some(by)) = (plain_column(source, "episode_id"), taken.key.first()) {
            let columns = [back.to_owned()];
            let table = table_of(source);
            let wanted =
                crate::store::snapshot::WantedRows { table: &table, columns: &columns, when: None, subject: &[] };
            for range in ranges(0..taken.len()) {
                let keys: Vec<Vec<FetchedValue>> =
                    taken.keys(range).map(|key| key.into_iter().take(1).collect()).collect();
                let named = |row: RawRow| {
                    row.first()
                        .filter(|id| !goes(id))
                        .and_then(as_text)
                        .into_iter()
                        .for_each(|id| episodes.insert(&id));
                };
                snapshot.each_of_keys(wanted, std::slice::from_ref(by), &keys, named).await?;
            }
        }
    }
    graph.check()?;
    for some in episodes.parts(AT_ONCE) {
        let mut located: Vec<LocatedRow<'_>> =
            store.encoder().locate_all(Entity::Episode, &some).await?.into_values().collect();
        located.retain(|episode| stays(graph, episode));
        located.sort_unstable_by(|a, b| (&a.source.label, a.row.id()).cmp(&(&b.source.label, b.row.id())));
        for of_source in located.chunk_by(|a, b| a.source.label == b.source.label) {
            let rows: Vec<&Row> = of_source.iter().map(|episode| &episode.row).collect();
            let links = &of_source[0].source.links;
            let reactions = store.contexts().linked(&rows, links, Entity::Feedback, Some(feedback::SCORED)).await?;
            for (episode, rows) in of_source.iter().zip(reactions) {
                let left = rows.scores().filter_map(|(id, source, score)| {
                    score.filter(|_| !gone.get(&source).is_some_and(|gone| gone.contains(&id)))
                });
                let mean = feedback::aggregate(left).map_or(Value::Null, Value::from);
                set(snapshot, graph, episode, "feedback_score", mean, updates).await?;
            }
        }
    }
    Ok(())
}

fn stays(graph: &Graph, row: &LocatedRow<'_>) -> bool {
    !graph.has(&row.table(), &graph.key_of(row))
}

async fn set(
    snapshot: &Snapshot<'_>,
    graph: &Graph,
    row: &LocatedRow<'_>,
    column: &str,
    value: Value,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let store = snapshot.store;
    let same = match (row.row.number(column), value.as_f64()) {
        (Some(old), Some(new)) => score::is_same(old, new),
        _ => *row.row.get(column) == value,
    };
    if plain_column(row.source, column).is_none() || same {
        return Ok(());
    }
    let shape = store.shapes().shape(&row.table()).await?;
    let cells = encode(row.source, &shape, column, &GivenValue::Is(value)).map_err(ChangeError::Refused)?;
    let key = graph.key_of(row);
    let why = format!("{}: {} is recalculated from the rows that stay", row.table().title(), column.replace('_', " "));
    for (name, cell) in cells {
        if let Cell::Is(new) = cell {
            let old = row.image.get(&name).cloned().unwrap_or(FetchedValue::Null);
            updates.set(&row.table(), &key, &name, &old, NewValue::Is(new), &why);
        }
    }
    Ok(())
}

/// Lowers the number of canvas actions with the list.
async fn canvas_counts(
    snapshot: &Snapshot<'_>,
    graph: &Graph,
    found: &ScanFindings,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    for (_, table, key) in found.recompute.iter().filter(|(what, ..)| *what == Recompute::Canvas) {
        let Some(id) = key.first().and_then(as_text) else { continue };
        let Some(episode) = snapshot.store.encoder().locate(Entity::Episode, &id).await? else { continue };
        let removed = found.removed.get(&serde_json::to_string(key).unwrap_or_default()).copied().unwrap_or_default();
        let Some(count) = episode.row.get("canvas_action_count").as_i64() else { continue };
        if episode.table() == *table && removed > 0 {
            let left = count.saturating_sub(removed as i64).max(0);
            set(snapshot, graph, &episode, "canvas_action_count", Value::from(left), updates).await?;
        }
    }
    Ok(())
}

/// Uses and utility of memories that deleted episodes used.
async fn memories(
    snapshot: &mut Snapshot<'_>,
    graph: &Graph,
    links: &TableName,
    updates: &mut KeptRows,
) -> Result<(), ChangeError> {
    let store = snapshot.store;
    let Ok(sources) = store.sources_of(Entity::MemoryLink) else { return Ok(()) };
    let Some(source) = sources.into_iter().find(|s| table_of(s) == *links) else { return Ok(()) };
    let (Some((memory, _)), Some((episode, _)), Some(taken)) =
        (plain_column(source, "memory_id"), plain_column(source, "episode_id"), graph.taken(links))
    else {
        return Ok(());
    };
    let (Some(at), Some(by)) = (taken.place(memory), taken.place(episode)) else {
        return Ok(());
    };
    let (mut touched, mut leaving) = (IdSet::new(graph.pages()), DigestSet::new(graph.pages()));
    for row in taken.rows(0..taken.len()) {
        let text = |at: usize| row.get(at).and_then(as_text);
        let Some(memory) = text(at) else { continue };
        touched.insert(&memory);
        if let Some(episode) = text(by) {
            leaving.insert(pair(&memory, &episode));
        }
    }
    graph.check()?;
    for some in touched.parts(MEMORIES) {
        let mut located = store.encoder().locate_all(Entity::Memory, &some).await?;
        located.retain(|_, row| stays(graph, row) && !row.row.get("uses").is_null());
        let ids: Vec<String> = located.keys().cloned().collect();
        let (mut left, mut latest): (HashMap<String, usize>, HashMap<String, LatestUses>) = Default::default();
        let counts = |memory: &str, episode: &str| {
            let is_left = !leaving.contains(pair(memory, episode));
            if is_left {
                *left.entry(memory.to_owned()).or_default() += 1;
            }
            is_left
        };
        let used = |memory: &str, episode: &Row| latest.entry(memory.to_owned()).or_default().add(episode);
        each_use(store, &ids, &WORTH, counts, used).await?;
        graph.check()?;
        for (id, row) in &located {
            let left = left.get(id).copied().unwrap_or_default();
            set(snapshot, graph, row, "uses", Value::from(left), updates).await?;
            let utility = latest.get(id).and_then(LatestUses::utility).map_or(Value::Null, Value::from);
            set(snapshot, graph, row, "utility", utility, updates).await?;
        }
    }
    Ok(())
}

/// The two hashes that identify a link.
fn pair(memory: &str, episode: &str) -> [u64; 2] {
    row_digest(&[memory, episode].map(|id| FetchedValue::Text(id.to_owned())))
}
