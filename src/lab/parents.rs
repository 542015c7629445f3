//! Parent suggestions for a stored episode, or for one about to be recorded.

use super::LabError;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row, time};
use crate::recall::parents::{self, Suggestion};
use crate::store::Store;

/// The parents that an episode may have, most alike first: see [`parents::suggest`]. `vector` is the episode's own; the
/// row's stored one is read where none is given.
///
/// # Errors
/// The engine's refusal.
pub async fn suggest(store: &Store, episode: &Row, vector: Option<&[f32]>) -> Result<Vec<Suggestion>, LabError> {
    let stored;
    let vector = match vector {
        Some(vector) => vector,
        None => {
            match store.embeddings().vectors(Entity::Episode, &[episode.id().to_owned()]).await?.remove(episode.id()) {
                Some(found) => {
                    stored = found;
                    &stored
                }
                None => return Ok(Vec::new()),
            }
        }
    };
    let Some(started) = episode.text("started_at") else { return Ok(Vec::new()) };
    let mut filters =
        vec![Filter { column: "ended_at", op: Operator::LessOrEqual, value: Operand::Time(started.to_owned()) }];
    if let Some(agent) = episode.text("agent_id") {
        filters.push(super::equal("agent_id", agent));
    }
    if let Some(earliest) = hours_before(started, parents::WITHIN_HOURS) {
        filters.push(Filter { column: "ended_at", op: Operator::GreaterOrEqual, value: Operand::Time(earliest) });
    }
    let columns = ["agent_id", "status", "started_at", "ended_at", "title"];
    let rows = store.candidates(Entity::Episode, &filters, &columns, &[]).await?;
    let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
    let vectors = store.embeddings().vectors(Entity::Episode, &ids).await?;
    let candidates: Vec<(Row, Option<f64>)> = rows
        .into_iter()
        .map(|row| {
            let cosine = vectors.get(row.id()).and_then(|other| cosine_of(vector, other));
            (row, cosine)
        })
        .collect();
    Ok(parents::suggest(episode, &candidates))
}

fn hours_before(moment: &str, hours: f64) -> Option<String> {
    time::from_epoch(time::epoch_micros(moment)? - (hours * 3.6e9) as i64, time::EpochUnit::Microseconds)
}
