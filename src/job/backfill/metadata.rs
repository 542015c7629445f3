//! Fills the empty metadata of episodes from their own columns and tool segments. Guesses nothing from free text.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::rows::{RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::ChangeError;
use crate::memory::Entity;
use crate::store::Store;
use crate::store::walk::{NarrowCondition, RowWalk, WalkedRow};

/// Columns that the metadata repeats if they are not empty.
const TAKEN: [&str; 5] = ["participants", "tools_used", "entities", "key_decisions", "tags"];
/// Outcomes that mean that an episode ended.
const ENDED: [&str; 4] = ["success", "partial", "failure", "aborted"];

/// The backfill, if episodes have metadata of their own.
pub const SPEC: RowBackfill = RowBackfill {
    name: "metadata",
    operation: "backfill.metadata",
    parts: &[RowPart {
        entity: Entity::Episode,
        reads: &["outcome", "metadata", "participants", "tools_used", "entities", "key_decisions", "tags"],
        writes: &["metadata", "tools_used", "outcome"],
        needs: &["metadata"],
        narrow: &[],
    }],
    judge: |bench| Box::pin(judge(bench)),
    rules: &[
        "participants, tools, entities, key decisions, tags and outcome are taken from the columns that hold them, and from \
         a stored structured summary",
        "tools that no column lists are the sources of the episode's segments of kind tool",
        "nothing is guessed from free text: guesses were right less often than an empty field",
    ],
    disclosures: &[
        "only episodes whose metadata is empty are filled; a column that holds anything stays as it is",
        "an episode whose columns contain nothing gets {}; no text leaves this machine",
    ],
    undo_reason: None,
    takes_away: None,
};

async fn judge(bench: RowBench<'_>) -> Result<Vec<RowVerdict>, ChangeError> {
    // An empty object is how new columns begin.
    let open = |found: &&WalkedRow| {
        let begun = bench.revising.stored_text(&found.stored, "metadata").is_some_and(|text| text.trim() == "{}");
        begun || bench.revising.is_absent(&found.stored, "metadata")
    };
    let without_tools = |found: &&WalkedRow| open(found) && found.row.list("tools_used").is_empty();
    let ids: Vec<String> = bench.found.iter().filter(without_tools).map(|f| f.row.id().to_owned()).collect();
    let mut tools = tools(bench.store, &ids).await?;
    let verdict = |found: &WalkedRow| {
        if !open(&found) {
            return RowVerdict::Keep;
        }
        RowVerdict::Set(values(bench, found, &tools.remove(found.row.id()).unwrap_or_default()))
    };
    Ok(bench.found.iter().map(verdict).collect())
}

/// Place of a segment in its episode: by number, then by time, those without one last, then by id.
type SegmentPlace = (bool, Option<i64>, bool, String, String);

/// The distinct sources of the tool segments of some episodes, in order, by episode. An episode may have very many
/// segments: only the first of each tool is kept.
async fn tools(store: &Store, episodes: &[String]) -> Result<HashMap<String, Vec<String>>, ChangeError> {
    let mut first: HashMap<String, HashMap<String, SegmentPlace>> = HashMap::new();
    let mut take = |found: WalkedRow| {
        let segment = found.row;
        let text = |column: &str| segment.text(column).unwrap_or_default().to_owned();
        let is_tool = text("kind").to_ascii_lowercase().contains("tool");
        let source = segment.text("source_id").map(str::trim).filter(|source| is_tool && is_name(source));
        if let (Some(episode), Some(source)) = (segment.text("episode_id"), source) {
            let (number, is_undated) = (segment.get("sequence").as_i64(), segment.get("created_at").is_null());
            let place = (number.is_none(), number, is_undated, text("created_at"), text("id"));
            let tools = first.entry(episode.to_owned()).or_default();
            if tools.get(source).is_none_or(|known| place < *known) {
                tools.insert(source.to_owned(), place);
            }
        }
    };
    let columns = ["id", "episode_id", "created_at", "sequence", "kind", "source_id"];
    // All episodes are asked for at once: where no index leads from them to their segments, each query reads all of these.
    for source in store.sources_of(Entity::Segment).unwrap_or_default() {
        let narrow = vec![NarrowCondition::OneOf("episode_id", episodes)];
        store.walks().walk_each(&RowWalk { source, columns: &columns, stored: &[], narrow }, &mut take).await?;
    }
    Ok(first.into_iter().map(|(episode, tools)| (episode, in_order(tools))).collect())
}

fn in_order(tools: HashMap<String, SegmentPlace>) -> Vec<String> {
    let mut tools: Vec<(String, SegmentPlace)> = tools.into_iter().collect();
    tools.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
    tools.into_iter().map(|(tool, _)| tool).collect()
}

/// Whether a source is a tool's name, and not the id of a call.
fn is_name(word: &str) -> bool {
    (2..=60).contains(&word.len())
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '-' | '.'))
}

fn values(bench: RowBench<'_>, found: &WalkedRow, tools: &[String]) -> Vec<(&'static str, Value)> {
    let row = &found.row;
    let mut metadata = Map::new();
    for column in TAKEN {
        let value = row.get(column);
        if value.as_array().is_some_and(|list| !list.is_empty()) {
            metadata.insert(column.to_owned(), value.clone());
        }
    }
    let mut values = Vec::new();
    if !tools.is_empty() {
        metadata.insert("tools_used".to_owned(), json!(tools));
        if bench.revising.writes("tools_used") && row.is_readable("tools_used") {
            values.push(("tools_used", json!(tools)));
        }
    }
    if let Some(outcome) = row.text("outcome").filter(|outcome| ENDED.contains(outcome)) {
        // The row's own stored word: another word for the same would look like a contradiction.
        let stored = row.get("metadata").get("raw_outcome").and_then(Value::as_str).unwrap_or(outcome);
        metadata.insert("outcome".to_owned(), Value::from(stored));
        if bench.revising.writes("outcome") && bench.revising.is_absent(&found.stored, "outcome") {
            values.push(("outcome", Value::from(outcome)));
        }
    }
    values.push(("metadata", Value::Object(metadata)));
    values
}
