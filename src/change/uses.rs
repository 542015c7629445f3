//! Statistics of the memories that episodes used: number of uses, and mean utility of the episodes, if the layout
//! stores them with the memory.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use serde_json::Value;

use super::batch::NewRow;
use super::draft::Draft;
use super::feedback::writable;
use super::remove::CHANGING;
use super::{ChangeError, batch};
use crate::layout::BoundSource;
use crate::memory::packed::pages::PageStore;
use crate::memory::utility::{self, LatestUses};
use crate::memory::{Entity, Row, agreeing, score, thousands};
use crate::store::Store;
use crate::store::encode::{GivenValue, LocatedRow, plain_column, table_of};
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::row_list::RowList;
use crate::store::scratch::scratch;
use crate::store::stored::StoredRows;

/// Episodes per query by id.
const ASKED: usize = 500;
/// Links whose episodes are read together.
const LINKS: usize = 2_048;
/// Bytes of links in memory.
const ROOM: usize = 4 << 20;
/// Columns of an episode that decide the utility of the memories it used.
pub const WORTH: [&str; 3] = ["id", "started_at", "utility"];

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
    let mut latest = LatestUses::default();
    changed.into_iter().for_each(|row| latest.add(row));
    for others in others.chunks(ASKED) {
        let take = |row: Row, _| {
            latest.add(&row);
            ControlFlow::Continue(())
        };
        store.each_related(Entity::Episode, "id", others, &WORTH, take).await?;
    }
    Ok(latest.utility())
}

/// Passes the memory and these columns of the episode to `each`, for each link to one of some memories that `counts`
/// accepts by its memory and episode. The links may be very many, and are not held in memory.
///
/// # Errors
/// The engine's refusal, or a scratch file failed.
pub async fn each_use(
    store: &Store,
    memories: &[String],
    columns: &[&str],
    mut counts: impl FnMut(&str, &str) -> bool + Send,
    mut each: impl FnMut(&str, &Row) + Send,
) -> Result<(), ChangeError> {
    let mut links = RowList::new(&PageStore::new(ROOM, scratch));
    let take = |link: Row, _| {
        if let (Some(memory), Some(episode)) = (link.text("memory_id"), link.text("episode_id"))
            && counts(memory, episode)
        {
            links.push(&[memory, episode].map(|id| FetchedValue::Text(id.to_owned())));
        }
        ControlFlow::Continue(())
    };
    store.each_related(Entity::MemoryLink, "memory_id", memories, &["memory_id", "episode_id"], take).await?;
    for from in (0..links.len()).step_by(LINKS) {
        let mut users: HashMap<String, Vec<String>> = HashMap::new();
        for link in links.rows(from..from + LINKS) {
            let mut ends = link.iter().filter_map(as_text);
            if let (Some(memory), Some(episode)) = (ends.next(), ends.next()) {
                users.entry(episode).or_default().push(memory);
            }
        }
        let ids: Vec<&String> = users.keys().collect();
        for episode in store.related_columns(Entity::Episode, "id", &ids, Some(columns)).await? {
            users.get(episode.id()).into_iter().flatten().for_each(|memory| each(memory, &episode));
        }
    }
    Ok(links.check()?)
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
