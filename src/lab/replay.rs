//! `replay TOPIC`: the history of a topic in the order in which it happened.

use super::{LabError, owner};
use crate::memory::{Entity, Row};
use crate::recall::features::{name_match, words};
use crate::recall::keyword;
use crate::recall::rank::{self, RankedRow};
use crate::recall::sequence::sequence;
use crate::store::Store;

/// Episodes that are shown unless told otherwise.
pub const LIMIT: usize = 10;

/// The history of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicReplay {
    /// The episodes by start time, each with its relevance in 0..1.
    pub rows: Vec<RankedRow>,
    /// `vector` or `keyword`.
    pub used: &'static str,
    /// Episodes that were looked at.
    pub candidates: usize,
}

/// Replays a topic: of the 2 x `limit` most relevant episodes those above 0.5, the best `limit`, by start time.
///
/// Relevance is the cosine where the topic has a vector, else the share of its words that the episode holds, rare words
/// counting more; an episode of just that topic has 1.
///
/// # Errors
/// A database without episodes, or the engine's refusal.
pub async fn replay(
    store: &Store,
    topic: &str,
    vector: Option<&[f32]>,
    agent: Option<&str>,
    limit: usize,
) -> Result<TopicReplay, LabError> {
    let filters = owner(agent, None);
    let columns =
        ["started_at", "title", "summary", "detail", "observation", "topic", "domain", "tags", "workflow_name"];
    let rows = store.candidates(Entity::Episode, &filters, &columns, &[]).await?;
    let candidates = rows.len();
    let vector = vector.filter(|_| store.embeddings().has_vectors(Entity::Episode));
    let mut ranked: Vec<RankedRow> = if let Some(vector) = vector {
        let near = store.embeddings().nearest(Entity::Episode, &filters, vector, usize::MAX).await?.near;
        let cosines: std::collections::HashMap<String, f64> = near.into_iter().map(|n| (n.id, n.cosine)).collect();
        rows.into_iter()
            .filter_map(|row| {
                let cosine = *cosines.get(row.id())?;
                Some(rank::by_likeness(row, cosine, "similarity"))
            })
            .collect()
    } else {
        let texts: Vec<String> = rows.iter().map(keyword::text_of).collect();
        let shares = keyword::shares(&words(topic), &texts);
        let relevance = |row: &Row, share: f64| name_match(Some(topic), row.text("topic")).max(share);
        rows.into_iter()
            .zip(shares)
            .map(|(row, share)| {
                let relevance = relevance(&row, share);
                rank::by_likeness(row, relevance, "keywords")
            })
            .collect()
    };
    rank::sort(&mut ranked);
    let mut rows = sequence(ranked, limit);
    let ids: Vec<String> = rows.iter().map(|r| r.row.id().to_owned()).collect();
    for whole in store.related(Entity::Episode, "id", &ids).await? {
        if let Some(shown) = rows.iter_mut().find(|r| r.row.id() == whole.id()) {
            shown.row = whole;
        }
    }
    Ok(TopicReplay { rows, used: if vector.is_some() { "vector" } else { "keyword" }, candidates })
}
