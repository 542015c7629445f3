//! Repair of rows that stay and name a case that goes, in the same transaction: reference lists, plan steps and
//! memory links.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::each;
use crate::change::ChangeError;
use crate::change::draft::Draft;
use crate::change::purge::scrub::lists_without;
use crate::layout::BoundSource;
use crate::memory::Entity;
use crate::memory::agreeing;
use crate::store::container::{self, Change, Leaf, Limits, Rewritten, Visitor};
use crate::store::encode::{GivenValue, encode, plain_column, table_of, touch};
use crate::store::fetched::FetchedValue;
use crate::store::shape::TableShape;
use crate::store::stored::{Cell, Image, Mutation, StoredRows};

/// Cases whose stored rows are read at a time.
const CHUNK: usize = 1_000;
/// Ids that a sentence names.
const NAMED: usize = 5;

/// A case that stays and names some that go.
struct Naming {
    id: String,
    /// Reference list without the cases that go; `None` when the list names none of them.
    list: Option<Vec<String>>,
    /// True when the plan of the case names one that goes.
    plan: bool,
}

/// Takes the ids of cases that go out of the reference lists and plan steps of those that stay.
pub async fn references(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    doomed: &HashSet<&str>,
) -> Result<(), ChangeError> {
    let store = draft.store;
    let mut naming: Vec<Naming> = Vec::new();
    each(store, Entity::Case, vec!["id", "reference_case_ids", "plan"], |row| {
        if doomed.contains(row.id()) {
            return;
        }
        let list = row.list("reference_case_ids");
        let stays: Vec<String> = list.iter().filter(|id| !doomed.contains(**id)).map(ToString::to_string).collect();
        let list = (stays.len() < list.len()).then_some(stays);
        let plan = names(row.get("plan"), doomed);
        if list.is_some() || plan {
            naming.push(Naming { id: row.id().to_owned(), list, plan });
        }
    })
    .await?;
    let Some((id, _)) = plain_column(source, "id") else { return Ok(()) };
    let shape = store.shapes().shape(&table_of(source)).await?;
    for chunk in naming.chunks(CHUNK) {
        let keys = chunk.iter().map(|n| vec![FetchedValue::Text(n.id.clone())]).collect();
        let images =
            store.shapes().images(&StoredRows { table: table_of(source), by: vec![id.to_owned()], keys }).await?;
        let named = |image| match Image::get(image, id) {
            Some(FetchedValue::Text(id)) => Some((id.as_str(), image)),
            _ => None,
        };
        let images: HashMap<&str, &Image> = images.iter().filter_map(named).collect();
        for naming in chunk {
            match images.get(naming.id.as_str()) {
                Some(image) => loosen(draft, source, &shape, (id, image), naming, doomed)?,
                None => {
                    return Err(ChangeError::Conflict {
                        message: format!("the case {} is not what it was", naming.id),
                        rows: Vec::new(),
                    });
                }
            }
        }
    }
    if !naming.is_empty() {
        let ids: Vec<&str> = naming.iter().take(NAMED).map(|n| n.id.as_str()).collect();
        let more = if naming.len() > NAMED { ", …" } else { "" };
        draft.effects.push(agreeing(naming.len(), &format!("{{#}} {{case that stays names|cases that stay name}} some that go; these references are taken out: {}{more}", ids.join(", "))));
    }
    Ok(())
}

fn loosen(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    shape: &TableShape,
    (id, image): (&str, &Image),
    naming: &Naming,
    doomed: &HashSet<&str>,
) -> Result<(), ChangeError> {
    let mut set: Vec<(String, Cell)> = Vec::new();
    if let Some(list) = &naming.list {
        let given = GivenValue::Is(Value::from(list.clone()));
        let cells = encode(draft.store.engine(), source, shape, "reference_case_ids", &given);
        set.extend(cells.map_err(ChangeError::Refused)?);
    }
    if naming.plan {
        let stored = plain_column(source, "plan").and_then(|(name, _)| Some((name, image.get(name)?)));
        match stored.and_then(|(name, raw)| Some((name, without(raw, doomed)?))) {
            Some((name, raw)) => set.push((name.to_owned(), Cell::Is(raw))),
            None => draft.disclosures.push(format!(
                "the plan of case {} names a case that goes and cannot be rewritten as it is stored",
                naming.id
            )),
        }
    }
    if set.is_empty() {
        return Ok(());
    }
    touch(source, shape, &mut set);
    let key = vec![(id.to_owned(), FetchedValue::Text(naming.id.clone()))];
    let (by, values) = key.iter().cloned().unzip();
    draft.watched(StoredRows { table: table_of(source), by, keys: vec![values] }, image);
    draft.push(Mutation::Update { table: table_of(source), key, set });
    Ok(())
}

/// Whether a list anywhere in a value names a case that goes.
fn names(value: &Value, doomed: &HashSet<&str>) -> bool {
    match value {
        Value::Array(items) => {
            items.iter().any(|item| item.as_str().is_some_and(|id| doomed.contains(id)) || names(item, doomed))
        }
        Value::Object(object) => object.values().any(|inner| names(inner, doomed)),
        _ => false,
    }
}

/// Takes ids out of whole documents.
struct Loosened<'a>(&'a HashSet<&'a str>);

impl Visitor for Loosened<'_> {
    fn leaf(&mut self, _: &Leaf<'_>) -> Vec<Change> {
        Vec::new()
    }

    fn document(&mut self, text: &str) -> Option<String> {
        lists_without(text, &|id| self.0.contains(id))
    }
}

/// A stored plan without the ids, in the form that it is stored in; none when that cannot be kept.
fn without(raw: &FetchedValue, doomed: &HashSet<&str>) -> Option<FetchedValue> {
    match container::rewrite(raw, Limits::default(), &mut Loosened(doomed)).0 {
        Rewritten::New(new) => Some(new),
        _ => None,
    }
}

/// Takes away the links of episodes to cases that go.
pub async fn links(draft: &mut Draft<'_>, doomed: &HashSet<&str>) -> Result<(), ChangeError> {
    let store = draft.store;
    let Ok(sources) = store.sources_of(Entity::MemoryLink) else { return Ok(()) };
    let mut gone = 0;
    for source in sources.into_iter().filter(|source| source.write.is_some()) {
        let columns = ["episode_id", "memory_id"].map(|column| plain_column(source, column).map(|(name, _)| name));
        let [Some(episode), Some(memory)] = columns else { continue };
        let mut keys = Vec::new();
        let ids: Vec<String> = doomed.iter().map(ToString::to_string).collect();
        for row in store.related(Entity::MemoryLink, "memory_id", &ids).await? {
            if let (Some(episode), Some(memory)) = (row.text("episode_id"), row.text("memory_id")) {
                keys.push(vec![FetchedValue::Text(episode.to_owned()), FetchedValue::Text(memory.to_owned())]);
            }
        }
        if keys.is_empty() {
            continue;
        }
        gone += keys.len();
        let rows = StoredRows { table: table_of(source), by: vec![episode.to_owned(), memory.to_owned()], keys };
        draft.watch(rows.clone()).await?;
        draft.push(Mutation::Delete(rows));
    }
    if gone > 0 {
        draft.effects.push(agreeing(
            gone,
            "{#} {link of an episode to a case that goes is|links of episodes to cases that go are} taken away",
        ));
    }
    Ok(())
}
