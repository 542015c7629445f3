//! Finds the parent of a curated episode by its vector: a very similar episode that the same agent had just ended.

use crate::change::ChangeError;
use crate::change::draft::Draft;
use crate::lab::parents::suggest;
use crate::layout::BoundSource;
use crate::memory::{Entity, Row};
use crate::recall::parents::{ALIKE, WITHIN_HOURS};
use crate::store::encode::{plain_column, table_of};

/// Finds the parent of an episode without one, and reports it, or the reason why none can be found.
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
        draft.disclosures.push(format!("no parent is searched for: {table} stores none"));
        return Ok(None);
    }
    let impossible = |why: &str| format!("no parent is given, and detecting one was not possible: {why}");
    let why = match (vector, episode.text("agent_id")) {
        (None, _) => Some("the episode has no vector (`embedding`)"),
        _ if !draft.store.embeddings().has_vectors(Entity::Episode) => {
            Some("this database holds no vectors of episodes")
        }
        (_, None) => Some("the episode names no agent"),
        _ => None,
    };
    let (Some(vector), Some(agent), None) = (vector, episode.text("agent_id"), why) else {
        draft.disclosures.push(impossible(why.unwrap_or_default()));
        return Ok(None);
    };
    let Some(found) = suggest(draft.store, episode, Some(vector), None).await?.into_iter().next() else {
        draft.effects.push(format!(
            "no parent was found: of the episodes of {agent} that ended within {WITHIN_HOURS} hours before it, none is \
             above {ALIKE}"
        ));
        return Ok(None);
    };
    draft.effects.push(format!(
        "its parent is {}, found by vectors: cosine {:.3}, it ended {:.1} hours before",
        found.id, found.cosine, found.hours_before
    ));
    Ok(Some(found.id))
}
