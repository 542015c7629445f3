//! Finds the episode that each one without a parent continues: by agent, time and likeness of their vectors.

use serde_json::Value;

use super::rows::{self, RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::ChangeError;
use crate::job::Job;
use crate::lab::LabError;
use crate::lab::parents::{self, EarliestStarts};
use crate::memory::{Entity, Row};
use crate::recall::parents::{Suggestion, precedes};
use crate::store::Store;
use crate::store::context::{EpisodeChain, Relatives};
use crate::store::walk::{NarrowCondition, WalkedRow};

const SPEC: RowBackfill = RowBackfill {
    name: "parents",
    operation: "backfill.parents",
    parts: &[RowPart {
        entity: Entity::Episode,
        reads: &["agent_id", "parent_id", "started_at", "ended_at", "title"],
        writes: &["parent_id"],
        needs: &["parent_id"],
        narrow: &[NarrowCondition::Absent("parent_id"), NarrowCondition::Present("started_at")],
    }],
    judge: |bench| Box::pin(judge(bench)),
    rules: &[
        "the parent is of the same agent, was not abandoned, ended within the 48 hours before, and its vector has a cosine \
         above 0.85; of several the most alike",
        "a parent that is there stays; each new parent and all its ancestors started before the episode, so no circle is \
         made",
    ],
    disclosures: &["an episode without a stored vector keeps no parent"],
    undo_reason: None,
    verify: None,
    takes_away: false,
};

/// The backfill, where episodes have vectors and parents.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    let job = rows::make(store, &SPEC)?;
    if store.embeddings().has_vectors(Entity::Episode) {
        return Ok(job);
    }
    Err(ChangeError::Refused("no vectors of episodes are kept here, by which they could be compared".to_owned()))
}

async fn judge(bench: RowBench<'_>) -> Result<Vec<RowVerdict>, ChangeError> {
    let open = |found: &&WalkedRow| bench.revising.is_absent(&found.stored, "parent_id");
    let ids: Vec<String> = bench.found.iter().filter(open).map(|f| f.row.id().to_owned()).collect();
    let store = bench.store;
    let vectors = store.embeddings().vectors(Entity::Episode, &ids).await?;
    let vector = |found: &'_ WalkedRow| vectors.get(found.row.id()).filter(|_| open(&found)).map(Vec::as_slice);
    let asking: Vec<(&Row, &[f32])> =
        bench.found.iter().filter_map(|found| Some((&found.row, vector(found)?))).collect();
    if asking.is_empty() {
        return Ok(bench.found.iter().map(|_| RowVerdict::Keep).collect());
    }
    let starts = bench.starts.get_or_try_init(|| EarliestStarts::read(store)).await.map_err(failed)?;
    let mut suggested = parents::suggest_all(store, &asking, starts).await.map_err(failed)?.into_iter();
    let mut verdicts = Vec::with_capacity(bench.found.len());
    for found in bench.found {
        let parent = match vector(found).and_then(|_| suggested.next()) {
            Some(suggestions) => parent(store, found, suggestions).await?,
            None => None,
        };
        verdicts.push(parent.map_or(RowVerdict::Keep, |id| RowVerdict::Set(vec![("parent_id", Value::from(id))])));
    }
    Ok(verdicts)
}

/// The best parent whose stored ancestors all come before the episode. Links made here lead back in time, so a circle
/// would need a stored link that leads forward past the episode; this looks at stored links only, and the answer is the
/// same whatever this job links before or after, in batches of any size.
async fn parent(store: &Store, found: &WalkedRow, suggestions: Vec<Suggestion>) -> Result<Option<String>, ChangeError> {
    for suggestion in suggestions {
        let Some(known) = store.contexts().chain(&suggestion.id, Relatives::Named).await? else { continue };
        let EpisodeChain { chain, relatives: rows, .. } = known;
        let up: Vec<&Row> = chain.ids.iter().filter_map(|id| rows.get(id)).collect();
        let to_the_root = up.first().is_some_and(|root| root.text("parent_id") == chain.missing_parent.as_deref());
        if !chain.cycle && to_the_root && up.iter().all(|row| precedes(row, &found.row)) {
            return Ok(Some(suggestion.id));
        }
    }
    Ok(None)
}

fn failed(error: LabError) -> ChangeError {
    match error {
        LabError::Store(error) => error.into(),
        other => ChangeError::Failed(other.to_string()),
    }
}
