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
    let candidates = candidates(draft, agent, started).await?;
    let ids: Vec<String> = candidates.iter().map(|row| row.id().to_owned()).collect();
    let vectors = draft.store.embeddings().vectors(Entity::Episode, &ids).await?;
    if !ids.is_empty() && vectors.is_empty() {
        let why = format!("none of the {} episodes that ended in the {HOURS} hours before it has a vector", ids.len());
        draft.disclosures.push(impossible(&why));
        return Ok(None);
    }
    let alike = |row: &Row| cosine_of(vector, vectors.get(row.id())?).map(|cosine| (cosine, row.clone()));
    let found = candidates.iter().filter_map(alike).filter(|(cosine, _)| *cosine > ALIKE);
    // The most alike; of equals the one that ended last.
    let best = found.max_by(|(a, one), (b, other)| {
        a.total_cmp(b)
            .then_with(|| one.text("ended_at").cmp(&other.text("ended_at")))
            .then_with(|| one.id().cmp(other.id()))
    });
    let Some((cosine, parent)) = best else {
        draft.effects.push(format!(
            "no parent is found: of {} episodes of {agent} that ended in the {HOURS} hours before it, {} have a vector, \
             and none is above {ALIKE}",
            ids.len(),
            vectors.len()
        ));
        return Ok(None);
    };
    let hours =
        parent.text("ended_at").and_then(|end| time::seconds_between(end, started)).unwrap_or_default() / 3_600.0;
    draft.effects.push(format!(
        "its parent is {}, found by vectors: cosine {cosine:.3}, it ended {hours:.1} hours before",
        parent.id()
    ));
    Ok(Some(parent.id().to_owned()))
}

/// The agent's episodes that ended within the hours before a time.
async fn candidates(draft: &Draft<'_>, agent: &str, started: &str) -> Result<Vec<Row>, ChangeError> {
    let earliest = time::epoch_micros(started)
        .and_then(|micros| time::from_epoch(micros - HOURS * 3_600_000_000, time::EpochUnit::Microseconds));
    let Some(earliest) = earliest else { return Ok(Vec::new()) };
    let mut query = Query::new(Entity::Episode);
    query.columns = Some(vec!["id", "agent_id", "started_at", "ended_at"]);
    query.filters.extend(equal("agent_id", Operand::Text(agent.to_owned())));
    let ended = Entity::Episode.column("ended_at").map_or("ended_at", |c| c.name);
    for (op, bound) in [(Operator::GreaterOrEqual, earliest), (Operator::LessOrEqual, started.to_owned())] {
        query.filters.push(Filter::new(ended, op, Operand::Time(bound)));
    }
    let mut rows = Vec::new();
    loop {
        let page = draft.store.page(&query).await?;
        rows.extend(page.rows);
        match page.next {
            Some(next) => query.start = PageStart::After(next),
            None => return Ok(rows),
        }
    }
}
