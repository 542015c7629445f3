//! The parent of a curated episode, found by its vector: what the same agent had just ended, and is very much alike.

use super::episode::equal;
use crate::change::ChangeError;
use crate::change::draft::Draft;
use crate::layout::BoundSource;
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::{PageStart, Query};
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row, time};
use crate::store::encode::{plain_column, table_of};

/// Hours before an episode's start within which its parent ended.
const HOURS: i64 = 48;

/// Cosine that a parent must exceed: the raw one of the two vectors, strictly.
const ALIKE: f64 = 0.85;

/// Episodes that are read together, with their vectors.
const TOGETHER: usize = 500;

/// Finds the parent of an episode without one, and says what was found, or why nothing can be.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn detect(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    episode: &Row,
    vector: Option<&[f32]>,
) -> Result<Option<String>, ChangeError> {
    if plain_column(source, "parent_id").is_none() {
        let table = table_of(source).title();
        draft.disclosures.push(format!("no parent is looked for: {table} stores none"));
        return Ok(None);
    }
    let impossible = |why: &str| format!("no parent is given, and detecting one was not possible: {why}");
    let why = match (vector, episode.text("agent_id")) {
        (None, _) => Some("the episode comes without a vector (`embedding`)"),
        _ if !draft.store.embeddings().has_vectors(Entity::Episode) => {
            Some("this database holds no vectors of episodes")
        }
        (_, None) => Some("the episode names no agent"),
        _ => None,
    };
    let (Some(vector), Some(agent), Some(started), None) =
        (vector, episode.text("agent_id"), episode.text("started_at"), why)
    else {
        draft.disclosures.push(impossible(why.unwrap_or("the episode has no start")));
        return Ok(None);
    };
    let found = alike(draft, agent, started, vector).await?;
    if found.ended > 0 && found.compared == 0 {
        let why =
            format!("none of the {} episodes that ended in the {HOURS} hours before it has a vector", found.ended);
        draft.disclosures.push(impossible(&why));
        return Ok(None);
    }
    let Some((cosine, ended_at, id)) = found.best else {
        draft.effects.push(format!(
            "no parent is found: of {} episodes of {agent} that ended in the {HOURS} hours before it, {} have a vector, \
             and none is above {ALIKE}",
            found.ended, found.compared
        ));
        return Ok(None);
    };
    let hours = ended_at.and_then(|end| time::seconds_between(&end, started)).unwrap_or_default() / 3_600.0;
    draft.effects.push(format!(
        "its parent is {id}, found by vectors: cosine {:.3}, it ended {hours:.1} hours before",
        f64::from_bits(cosine)
    ));
    Ok(Some(id))
}

/// The agent's episodes that ended within the hours before a time, compared with one.
#[derive(Default)]
struct ComparedEpisodes {
    ended: usize,
    /// Number of those that have a vector.
    compared: usize,
    /// Cosine as its bits, which are in the order of positive numbers, end, and id: of those as much alike the one that
    /// ended last.
    best: Option<(u64, Option<String>, String)>,
}

/// Reads the agent's episodes with their vectors, some after the other.
async fn alike(draft: &Draft<'_>, agent: &str, started: &str, vector: &[f32]) -> Result<ComparedEpisodes, ChangeError> {
    let mut found = ComparedEpisodes::default();
    let earliest = time::epoch_micros(started)
        .and_then(|micros| time::from_epoch(micros - HOURS * 3_600_000_000, time::EpochUnit::Microseconds));
    let Some(earliest) = earliest else { return Ok(found) };
    let columns = Some(vec!["id", "agent_id", "started_at", "ended_at"]);
    let mut query = Query { columns, limit: TOGETHER, ..Query::new(Entity::Episode) };
    query.filters.extend(equal("agent_id", Operand::Text(agent.to_owned())));
    for (op, bound) in [(Operator::GreaterOrEqual, earliest), (Operator::LessOrEqual, started.to_owned())] {
        query.filters.push(Filter::new("ended_at", op, Operand::Time(bound)));
    }
    loop {
        let page = draft.store.page(&query).await?;
        let ids: Vec<String> = page.rows.iter().map(|row| row.id().to_owned()).collect();
        let vectors = draft.store.embeddings().vectors(Entity::Episode, &ids).await?;
        (found.ended, found.compared) = (found.ended + ids.len(), found.compared + vectors.len());
        for row in &page.rows {
            let cosine = vectors.get(row.id()).and_then(|other| cosine_of(vector, other));
            if let Some(cosine) = cosine.filter(|cosine| *cosine > ALIKE) {
                let ended = row.text("ended_at").map(str::to_owned);
                found.best = found.best.max(Some((cosine.to_bits(), ended, row.id().to_owned())));
            }
        }
        match page.next {
            Some(next) => query.start = PageStart::After(next),
            None => return Ok(found),
        }
    }
}
