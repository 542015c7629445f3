//! `replay TOPIC`: the history of a topic in chronological order.

use super::candidates::{CandidateRows, Measure, without_long_texts};
use super::recall::never_recalled;
use super::situation::ResolvedQuestion;
use super::{LabError, owner};
use crate::memory::{Entity, Row};
use crate::recall::among::Eligibility;
use crate::recall::features::{SoughtName, words};
use crate::recall::keyword::ComparedText;
use crate::recall::rank::{self, RankedRow, Ranking};
use crate::recall::sequence::sequence;
use crate::recall::shortlist::{FoundLikeness, ShortlistEnd};
use crate::store::Store;

/// Default number of episodes.
pub const LIMIT: usize = 10;

/// Columns read of each episode.
const COLUMNS: &[&str] =
    &["started_at", "status", "title", "summary", "detail", "observation", "topic", "domain", "tags", "workflow_name"];

/// The history of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicReplay {
    /// The episodes by start time as far as they were ranked by, each with its relevance in 0..1.
    pub rows: Vec<RankedRow>,
    /// `vector` or `keyword`.
    pub used: &'static str,
    /// Number of episodes considered.
    pub candidates: usize,
}

/// Replays a topic: of the `limit` most relevant episodes, [`rank::MOST_ROWS`] at most, those above 0.5, by start time.
///
/// Relevance is the cosine if the topic has a vector, else the share of its words that the episode contains, weighted
/// by rarity; an episode of exactly that topic has 1. Episodes that agents never get are not replayed.
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
    let limit = limit.min(rank::MOST_ROWS);
    let filters = owner(agent, None);
    let vector = vector.filter(|_| store.embeddings().has_vectors(Entity::Episode));
    let asked =
        ResolvedQuestion { words: words(topic), vector: vector.map(<[f32]>::to_vec), ..ResolvedQuestion::default() };
    let (measure, name, _) = Measure::of(store, Entity::Episode, &filters, &asked, ComparedText::Whole).await?;
    let sought = SoughtName::from(topic);
    let about = |row: &Row| sought.likeness(row.text("topic"));
    let place = |row: Row, likeness: Option<f64>| {
        let relevance = match vector {
            Some(_) => likeness?,
            None => about(&row).max(likeness.unwrap_or(0.0)),
        };
        Some(rank::by_likeness(row, relevance, name))
    };
    let never = never_recalled(store);
    let eligibility = Eligibility { ranking: Ranking::Boosted, all_outcomes: true, at: "", never: &never };
    let rows = CandidateRows { kind: Entity::Episode, filters: &filters, columns: COLUMNS, words: &[] };
    let mut known = None;
    let mut candidates;
    let found = loop {
        let mut list = measure.shortlist(limit, &place).again(known);
        candidates = 0;
        rows.each(store, |row| {
            if eligibility.held_back(&row).is_some() {
                return;
            }
            candidates += 1;
            let likeness = match measure.likeness(&row) {
                FoundLikeness::Words { held, .. } => FoundLikeness::Words { held, apart: about(&row).to_bits() },
                cosine @ FoundLikeness::Cosine(_) => cosine,
            };
            list.offer(without_long_texts(row), likeness);
        })
        .await?;
        match list.close() {
            ShortlistEnd::Rows(found) => break found.rows,
            ShortlistEnd::Again(tally) => known = Some(tally),
        }
    };
    Ok(TopicReplay {
        rows: sequence(found, limit),
        used: if vector.is_some() { "vector" } else { "keyword" },
        candidates,
    })
}
