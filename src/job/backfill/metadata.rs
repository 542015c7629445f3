//! Fills what episodes say about themselves, participants, tools, entities, tags and outcome, from their own texts by
//! plain rules.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::rows::{self, Bench, Part, Spec, Verdict};
use crate::change::ChangeError;
use crate::job::Job;
use crate::memory::extract::{Extract, Piece, RULES, extract};
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::walk::Found;

const SPEC: Spec = Spec {
    name: "metadata",
    operation: "backfill.metadata",
    parts: &[Part {
        entity: Entity::Episode,
        reads: &[
            "id",
            "title",
            "summary",
            "detail",
            "observation",
            "result",
            "outcome",
            "metadata",
            "participants",
            "tools_used",
            "entities",
            "tags",
            "execution_ids",
        ],
        writes: &["metadata", "participants", "tools_used", "entities", "tags", "outcome"],
        needs: &["metadata"],
        narrow: &[],
    }],
    judge: |bench| Box::pin(judge(bench)),
    rules: RULES,
    disclosures: &[
        "only episodes whose metadata is empty are filled; a column that holds anything stays as it is",
        "nothing to read gives {}; no text leaves this machine",
    ],
    undo_reason: None,
    takes_away: false,
};

/// The backfill, where episodes have metadata of their own.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    rows::make(store, &SPEC)
}

async fn judge(bench: Bench<'_>) -> Result<Vec<Verdict>, ChangeError> {
    // An empty object is how new columns begin.
    let open = |found: &&Found| {
        let begun = bench.revising.stored_text(&found.stored, "metadata").is_some_and(|text| text.trim() == "{}");
        begun || bench.revising.is_absent(&found.stored, "metadata")
    };
    let ids: Vec<String> = bench.found.iter().filter(open).map(|f| f.row.id().to_owned()).collect();
    let mut segments = by(bench.store.related(Entity::Segment, "episode_id", &ids).await?, "episode_id");
    let mut events = by(bench.store.related(Entity::WorkflowEvent, "run_id", &ids).await?, "run_id");
    let verdict = |found: &Found| {
        if !open(&found) {
            return Verdict::Keep;
        }
        let mut pieces = segments.remove(found.row.id()).unwrap_or_default();
        pieces.sort_by_key(|row| row.get("sequence").as_i64());
        let mut log = events.remove(found.row.id()).unwrap_or_default();
        log.sort_by_key(|row| row.get("sequence").as_i64());
        Verdict::Set(values(bench, found, &read(&found.row, &pieces, &log)))
    };
    Ok(bench.found.iter().map(verdict).collect())
}

fn by(rows: Vec<Row>, column: &str) -> HashMap<String, Vec<Row>> {
    let mut all: HashMap<String, Vec<Row>> = HashMap::new();
    for row in rows {
        if let Some(key) = row.text(column) {
            all.entry(key.to_owned()).or_default().push(row);
        }
    }
    all
}

fn read(episode: &Row, segments: &[Row], log: &[Row]) -> Extract {
    let of_events: Vec<(String, String)> =
        log.iter().map(|event| (event.text("kind").unwrap_or_default().to_owned(), words(event.get("data")))).collect();
    let plain = |text| Piece { kind: None, source: None, text };
    let own = ["title", "observation", "detail"].into_iter().filter_map(|c| episode.text(c)).map(plain);
    let told = segments.iter().filter_map(|row| {
        let text = row.text("content")?;
        Some(Piece { kind: row.text("kind"), source: row.text("source_id"), text })
    });
    let logged = of_events.iter().map(|(kind, text)| Piece { kind: Some(kind), source: None, text });
    // The summary comes last: what it says of the outcome counts.
    let summary = episode.text("summary").map(plain);
    extract(&own.chain(told).chain(logged).chain(summary).collect::<Vec<_>>())
}

/// The texts within a JSON value, a line each.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join("\n"),
        Value::Object(object) => object.values().map(words).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn values(bench: Bench<'_>, found: &Found, extract: &Extract) -> Vec<(&'static str, Value)> {
    let row = &found.row;
    let mut values = vec![("metadata", extract.to_json())];
    let lists: [(&'static str, &Vec<String>); 4] = [
        ("participants", &extract.participants),
        ("tools_used", &extract.tools),
        ("entities", &extract.entities),
        ("tags", &extract.tags),
    ];
    for (column, list) in lists {
        let empty = row.list(column).is_empty() && row.is_readable(column);
        if bench.revising.writes(column) && empty && !list.is_empty() {
            values.push((column, json!(list)));
        }
    }
    let unknown = bench.revising.is_absent(&found.stored, "outcome") || row.text("outcome") == Some("unknown");
    if let Some(outcome) = extract.outcome.filter(|_| unknown && bench.revising.writes("outcome")) {
        values.push(("outcome", Value::from(outcome)));
    }
    values
}
