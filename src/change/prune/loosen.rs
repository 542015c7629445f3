//! Updates remaining rows that name a deleted case, in the same transaction: reference lists, plan steps and memory
//! links.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use serde_json::Value;

use super::{ASKED, each, rely_on_number};
use crate::change::ChangeError;
use crate::change::draft::Draft;
use crate::change::purge::scrub::lists_without;
use crate::layout::BoundSource;
use crate::memory::{Entity, Row};
use crate::memory::{agreeing, counted};
use crate::store::Store;
use crate::store::container::{self, Change, Leaf, Limits, Rewritten, Visitor};
use crate::store::encode::{GivenValue, encode, keep_others, plain_column, spelling_of_ids, table_of, touch};
use crate::store::fetched::FetchedValue;
use crate::store::shape::TableShape;
use crate::store::stored::{Cell, Image, Mutation, StoredRows, TableName};

/// Cases whose stored rows are read at a time.
const CHUNK: usize = 100;
/// Ids that a sentence names.
const NAMED: usize = 5;
/// Most cases collected before their rows are read, if not all must be.
const NOTED: usize = 200_000;

/// The lists of cases that name others, with the ids of the cases to delete.
pub fn lists(store: &Store, going: &[StoredRows]) -> Vec<(TableName, String, Vec<String>)> {
    let sources = store.sources_of(Entity::Case).unwrap_or_default().into_iter();
    let list = |source: &BoundSource| {
        let (id, list) = (plain_column(source, "id")?.0, plain_column(source, "reference_case_ids")?.0);
        let rows = going.iter().filter(|rows| rows.table == table_of(source) && rows.by == [id]);
        let text = |value: &FetchedValue| match value {
            FetchedValue::Text(id) => Some(id.clone()),
            _ => None,
        };
        let ids = rows.flat_map(|rows| rows.keys.iter().flatten()).filter_map(text).collect();
        Some((table_of(source), list.to_owned(), ids))
    };
    sources.filter_map(list).collect()
}

/// Removes the ids of deleted cases from the reference lists and plan steps of remaining ones, until the plan is full.
pub async fn references(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    doomed: &HashSet<&str>,
) -> Result<(), ChangeError> {
    let store = draft.store;
    let mut naming: Vec<String> = Vec::new();
    let most = if draft.is_bounded() { NOTED } else { usize::MAX };
    let mut more = false;
    each(store, Entity::Case, vec!["id", "reference_case_ids", "plan"], |row| {
        if row.id().is_empty() || doomed.contains(row.id()) {
            return;
        }
        if row.list("reference_case_ids").iter().any(|id| doomed.contains(*id)) || names(row.get("plan"), false, doomed)
        {
            more |= naming.len() == most;
            naming.extend((naming.len() < most).then(|| row.id().to_owned()));
        }
    })
    .await?;
    let Some((id, _)) = plain_column(source, "id") else { return Ok(()) };
    let shape = store.shapes().shape(&table_of(source)).await?;
    if more {
        draft.overfill();
    }
    for chunk in naming.chunks(CHUNK) {
        if draft.is_full() {
            return Ok(());
        }
        let keys = chunk.iter().map(|id| vec![FetchedValue::Text(id.clone())]).collect();
        let images =
            store.shapes().images(&StoredRows { table: table_of(source), by: vec![id.to_owned()], keys }).await?;
        let named = |image| match Image::get(image, id) {
            Some(FetchedValue::Text(id)) => Some((id.as_str(), image)),
            _ => None,
        };
        let images: HashMap<&str, &Image> = images.iter().filter_map(named).collect();
        // Read after the rows are watched: a concurrent change is detected when the plan is applied.
        let columns = ["id", "created_at", "reference_case_ids", "plan"];
        let rows = store.related_columns(Entity::Case, "id", chunk, Some(&columns)).await?;
        let rows: HashMap<&str, &Row> = rows.iter().map(|row| (row.id(), row)).collect();
        for case in chunk {
            match (images.get(case.as_str()), rows.get(case.as_str())) {
                (Some(image), Some(row)) => loosen(draft, source, &shape, (id, image), row, doomed)?,
                _ => {
                    return Err(ChangeError::Conflict {
                        message: format!("the case {case} has changed"),
                        rows: Vec::new(),
                    });
                }
            }
        }
    }
    if !naming.is_empty() {
        let ids: Vec<&str> = naming.iter().take(NAMED).map(String::as_str).collect();
        let more = if naming.len() > NAMED { ", …" } else { "" };
        draft.effects.push(agreeing(
            naming.len(),
            &format!(
                "{{#}} {{case that stays refers|cases that stay refer}} to \
         cases that are removed; these references are removed: {}{more}",
                ids.join(", ")
            ),
        ));
    }
    Ok(())
}

fn loosen(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    shape: &TableShape,
    (id, image): (&str, &Image),
    row: &Row,
    doomed: &HashSet<&str>,
) -> Result<(), ChangeError> {
    let mut set: Vec<(String, Cell)> = Vec::new();
    let list = row.list("reference_case_ids");
    let stays: Vec<&str> = list.iter().copied().filter(|id| !doomed.contains(id)).collect();
    if stays.len() < list.len() {
        let stays = Value::from(stays);
        let given = GivenValue::Is(stays.clone());
        let cells = encode(source, shape, "reference_case_ids", &given);
        let mut cells = cells.map_err(ChangeError::Refused)?;
        keep_others(image, &stays, &mut cells, spelling_of_ids(source, "reference_case_ids"));
        set.extend(cells);
    }
    if names(row.get("plan"), false, doomed) {
        let stored = plain_column(source, "plan").and_then(|(name, _)| Some((name, image.get(name)?)));
        match stored.and_then(|(name, raw)| Some((name, without(raw, doomed)?))) {
            Some((name, raw)) => set.push((name.to_owned(), Cell::Is(raw))),
            None => draft.disclosures.push(format!(
                "the plan of case {} names a case to be removed, and cannot be rewritten in its stored form",
                row.id()
            )),
        }
    }
    if set.is_empty() {
        return Ok(());
    }
    touch(source, shape, &mut set);
    let key = vec![(id.to_owned(), FetchedValue::Text(row.id().to_owned()))];
    let (by, values) = key.iter().cloned().unzip();
    draft.watched(StoredRows { table: table_of(source), by, keys: vec![values] }, image, Vec::new());
    draft.push(Mutation::Update { table: table_of(source), key, set });
    Ok(())
}

/// Whether a reference list within a value names a case that goes.
fn names(value: &Value, is_listed: bool, doomed: &HashSet<&str>) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| {
            is_listed && item.as_str().is_some_and(|id| doomed.contains(id)) || names(item, is_listed, doomed)
        }),
        Value::Object(object) => object.iter().any(|(key, inner)| names(inner, lists_references(key), doomed)),
        _ => false,
    }
}

/// Whether a key of a plan says that its list refers to cases, as `referenceCaseIds` does. The id of a case may be a word, such
/// as `search`, and be the name of a step or a tool in other lists.
fn lists_references(key: &str) -> bool {
    let ends_in = |word: &str| {
        let before = key.strip_suffix(word);
        before.is_some_and(|before| before.is_empty() || before.ends_with(['_', '-']) || word.starts_with('I'))
    };
    key == "cases" || key.to_lowercase().contains("referenc") || ["ids", "Ids", "IDs"].into_iter().any(ends_in)
}

/// Takes ids out of whole documents.
struct Loosened<'a>(&'a HashSet<&'a str>);

impl Visitor for Loosened<'_> {
    fn leaf(&mut self, _: &Leaf<'_>) -> Vec<Change> {
        Vec::new()
    }

    fn document(&mut self, text: &str) -> Option<String> {
        lists_without(text, &lists_references, &|id| self.0.contains(id))
    }
}

/// A stored plan without the ids, in its stored form; `None` if that form cannot be kept.
fn without(raw: &FetchedValue, doomed: &HashSet<&str>) -> Option<FetchedValue> {
    match container::rewrite(raw, Limits::default(), &mut Loosened(doomed)).0 {
        Rewritten::New(new) => Some(new),
        _ => None,
    }
}

/// Removes the links of episodes to deleted cases.
pub async fn links(draft: &mut Draft<'_>, doomed: &HashSet<&str>) -> Result<(), ChangeError> {
    let store = draft.store;
    let Ok(sources) = store.sources_of(Entity::MemoryLink) else { return Ok(()) };
    let mut gone = 0;
    for source in sources.into_iter().filter(|source| source.write.is_some()) {
        let columns = ["episode_id", "memory_id"].map(|column| plain_column(source, column).map(|(name, _)| name));
        let [Some(episode), Some(memory)] = columns else { continue };
        let ids: Vec<&str> = doomed.iter().copied().collect();
        let keys = ids.iter().map(|id| vec![FetchedValue::Text((*id).to_owned())]).collect();
        rely_on_number(draft, &StoredRows { table: table_of(source), by: vec![memory.to_owned()], keys }).await?;
        let mut rows =
            StoredRows { table: table_of(source), by: vec![episode.to_owned(), memory.to_owned()], keys: Vec::new() };
        let most = draft.most_rows();
        for ids in ids.chunks(ASKED) {
            let take = |row: Row, _| {
                if let (Some(episode), Some(memory)) = (row.text("episode_id"), row.text("memory_id")) {
                    rows.keys.push([episode, memory].map(|id| FetchedValue::Text(id.to_owned())).into());
                }
                if rows.keys.len() > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            store.each_related(Entity::MemoryLink, "memory_id", ids, &["episode_id", "memory_id"], take).await?;
            if draft.fills_with(&rows) {
                return Ok(());
            }
        }
        if rows.keys.is_empty() {
            continue;
        }
        gone += rows.keys.len();
        draft.take_away(&rows, &[]).await?;
    }
    draft.effects.extend(counted(
        gone,
        "{#} {link of an episode to a removed case is|links of episodes to removed cases are} removed",
    ));
    Ok(())
}
