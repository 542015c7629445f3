//! The memories that a recorded episode retrieved: each must exist, and becomes a link.

use serde_json::{Map, Value, json};

use crate::change::ChangeError;
use crate::change::batch::{self, NewRow};
use crate::change::draft::Draft;
use crate::memory::Entity;

/// Memories that one episode may name.
const MOST: usize = 1_000;

/// A link as given.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GivenLink {
    memory: String,
    kind: Option<String>,
    rank: i64,
}

/// Takes `memories` out of an episode's JSON: ids in rank order, or objects with `memory_id`, `kind` and `rank`.
///
/// # Errors
/// [`ChangeError::Usage`] for other values, for a memory named twice, and for more than a thousand.
pub(super) fn take(object: &mut Map<String, Value>) -> Result<Vec<GivenLink>, ChangeError> {
    let wrong = || ChangeError::Usage("`memories` must be a list of ids, or of {memory_id, kind, rank}".to_owned());
    let given = match object.remove("memories") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(given)) => given,
        Some(_) => return Err(wrong()),
    };
    if given.len() > MOST {
        return Err(ChangeError::Usage(format!("`memories` names {} memories; the maximum is {MOST}", given.len())));
    }
    let mut links: Vec<GivenLink> = Vec::new();
    for (i, value) in given.into_iter().enumerate() {
        let rank = i as i64 + 1;
        let link = match value {
            Value::String(memory) => GivenLink { memory, kind: None, rank },
            Value::Object(link) if link.keys().all(|key| matches!(key.as_str(), "memory_id" | "kind" | "rank")) => {
                GivenLink {
                    memory: link.get("memory_id").and_then(Value::as_str).ok_or_else(wrong)?.to_owned(),
                    kind: link.get("kind").and_then(Value::as_str).map(str::to_owned),
                    rank: link.get("rank").map_or(Some(rank), Value::as_i64).ok_or_else(wrong)?,
                }
            }
            _ => return Err(wrong()),
        };
        links.push(link);
    }
    let mut ids: Vec<&str> = links.iter().map(|link| link.memory.as_str()).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ChangeError::Usage(format!("`memories` names `{}` twice", pair[0]))),
        None => Ok(links),
    }
}

/// Refuses links if episodes are events of a log.
///
/// # Errors
/// [`ChangeError::Refused`].
pub(super) fn refuse(links: &[GivenLink]) -> Result<(), ChangeError> {
    if links.is_empty() {
        return Ok(());
    }
    Err(ChangeError::Refused("episodes are events of a log here, which has no place for `memories`".to_owned()))
}

/// Adds the links to a plan. Returns their memories.
///
/// # Errors
/// [`ChangeError::NotFound`] for a missing memory, [`ChangeError::Refused`] if links are not stored.
pub(super) async fn link(
    draft: &mut Draft<'_>,
    episode: &str,
    links: Vec<GivenLink>,
) -> Result<Vec<String>, ChangeError> {
    let ids: Vec<String> = links.iter().map(|link| link.memory.clone()).collect();
    if ids.is_empty() {
        return Ok(ids);
    }
    let there = draft.store.contexts().memories(&ids).await?;
    if let Some(missing) = ids.iter().find(|id| !there.iter().any(|memory| memory.id() == *id)) {
        let place = draft.store.location();
        return Err(ChangeError::NotFound(format!("there is no memory `{missing}` in {place}")));
    }
    let rows: Vec<NewRow> = links
        .into_iter()
        .map(|link| {
            let kind = link
                .kind
                .or_else(|| there.iter().find(|memory| memory.id() == link.memory)?.text("kind").map(str::to_owned));
            NewRow::new(
                Entity::MemoryLink,
                [
                    ("episode_id", Value::from(episode)),
                    ("memory_id", Value::from(link.memory)),
                    ("kind", json!(kind)),
                    ("rank", Value::from(link.rank)),
                ],
            )
        })
        .collect();
    batch::add(draft, Entity::MemoryLink, rows).await?;
    Ok(ids)
}
