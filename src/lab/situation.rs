//! The question of a recall: a text with its vector, or a stored row with its own.

use std::collections::BTreeSet;

use super::LabError;
use super::RecallRequest;
use crate::memory::{Entity, Row};
use crate::recall::features::{Situation, tags, words};
use crate::recall::keyword::ComparedText;
use crate::recall::rank::Ranking;
use crate::store::Store;

/// A question after its lookup in the database.
#[derive(Debug, Clone, Default)]
pub(super) struct ResolvedQuestion {
    /// The stored row that was pointed at.
    pub row: Option<Row>,
    /// Distinct words; empty if there is no question.
    pub words: BTreeSet<String>,
    /// Tags of the row.
    pub tags: BTreeSet<String>,
    /// Vector; `None` for keywords.
    pub vector: Option<Vec<f32>>,
    /// Further vectors of the row: similarity to any of them counts.
    pub more_vectors: Vec<Vec<f32>>,
    /// Remarks about the question that users should see.
    pub notes: Vec<String>,
}

impl ResolvedQuestion {
    /// Whether there is a question at all.
    pub fn is_something(&self) -> bool {
        self.vector.is_some() || !self.words.is_empty()
    }

    /// Drops the vectors, so that only words are compared.
    pub fn forget_vectors(&mut self) {
        (self.vector, self.more_vectors) = (None, Vec::new());
    }

    /// The situation as features see it: for a case only its question, as in training.
    pub fn situation(&self, text: Option<&str>, at: &str) -> Situation {
        match self.row.as_ref().filter(|row| row.entity == Entity::Case) {
            Some(case) => {
                let mut situation = Situation::of_case(case, at);
                situation.words.extend(words(text.unwrap_or_default()));
                situation
            }
            None => Situation { words: self.words.clone(), tags: self.tags.clone(), at: at.to_owned() },
        }
    }

    /// Resolves the question of a request.
    pub async fn of(store: &Store, request: &RecallRequest, compared: Entity) -> Result<ResolvedQuestion, LabError> {
        let mut asked = ResolvedQuestion::default();
        if let Some(text) = &request.inquiry.text {
            asked.words = words(text);
            asked.vector.clone_from(&request.vector);
            asked.notes.extend(request.vector_note.clone());
        }
        if let Some(id) = &request.inquiry.like {
            let row = pointed_at(store, id, compared, &mut asked.notes).await?;
            let text = ComparedText::of_ranking(request.inquiry.ranking, row.entity).of(&row);
            asked.words.extend(words(&text));
            asked.tags = tags(&row);
            if asked.vector.is_none() {
                let mut vectors = store.embeddings().all_of(row.entity, id).await?.into_iter();
                (asked.vector, asked.more_vectors) = (vectors.next(), vectors.collect());
            }
            if asked.vector.is_none() && request.inquiry.ranking != Ranking::Proven {
                asked.notes.push(format!("compared by keywords: the {} {id} has no vector", row.entity.title()));
            }
            let memories = [row.entity, compared].contains(&Entity::Memory);
            if row.entity != compared && memories && request.inquiry.ranking != Ranking::Proven {
                let (title, ranked) = (row.entity.title(), compared.title());
                let article = if row.entity == Entity::Episode { "an" } else { "a" };
                asked.notes.push(format!(
                    "`{id}` is {article} {title} and only used for comparison: this ranking is over \
                     {ranked} rows"
                ));
            }
            asked.row = Some(row);
        }
        if asked.vector.is_some() && !store.embeddings().has_vectors(compared) {
            asked.forget_vectors();
            asked.notes.push(format!("compared by keywords: this database keeps no {} vectors", compared.title()));
        }
        Ok(asked)
    }
}

/// The row of this id: an episode, a case or a memory, preferably of the ranked entity. Reports other entities with the
/// same id.
async fn pointed_at(store: &Store, id: &str, ranked: Entity, notes: &mut Vec<String>) -> Result<Row, LabError> {
    let mut kinds = [Entity::Episode, Entity::Case, Entity::Memory];
    kinds.sort_by_key(|kind| *kind != ranked);
    let mut found: Option<Row> = None;
    for kind in kinds.into_iter().filter(|kind| store.sources_of(*kind).is_ok()) {
        let Some(row) = store.row(kind, id).await? else { continue };
        match &found {
            None => found = Some(row),
            Some(first) => {
                let article = if kind == Entity::Episode { "an" } else { "a" };
                let (other, asked) = (kind.title(), first.entity.title());
                notes.push(format!("`{id}` is also the id of {article} {other}: the {asked} is used"));
            }
        }
    }
    found.ok_or_else(|| {
        LabError::NotFound(format!("there is no episode, case or memory `{id}` in {}", store.location()))
    })
}
