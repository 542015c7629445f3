//! Cases of a bank that say the same in other words: their vectors compared with one another, bank by bank.

use super::{ChangeError, FindingNews, Survey};
use crate::memory::Entity;
use crate::memory::findings::FindingTally;
use crate::memory::prune::NEAR;
use crate::memory::vector::{dot, unit};

/// Cases up to which the vectors of a bank are compared without being asked for: the work grows with their square.
const COMPARED: usize = 2_000;

/// The kind of finding, and the one that names banks which are too large.
pub(super) const NEAR_COPY: &str = "near_duplicate_case";
pub(super) const LEFT: &str = "vector_duplicates_left";

/// Comparisons between two words of progress, in cases.
const PROGRESS: usize = 500;

impl Survey<'_> {
    /// Compares the vectors of each bank; large banks only where this kind alone is asked for.
    pub(super) async fn near_copies(&mut self, banks: &[Vec<(Box<str>, u64)>]) -> Result<(), ChangeError> {
        if !self.wants(&[NEAR_COPY]) {
            return Ok(());
        }
        if !self.store.embeddings().has_vectors(Entity::Case) {
            self.not_applicable(&[NEAR_COPY, LEFT], "cases have no vectors here");
            return Ok(());
        }
        if self.spent {
            self.left.insert(NEAR_COPY);
            return Ok(());
        }
        let all = self.wanted.kind == Some(NEAR_COPY);
        let mut copies = FindingTally::default();
        for cases in banks.iter().filter(|cases| all || cases.len() <= COMPARED) {
            self.compare(cases, &mut copies).await?;
            if self.stopped {
                return Ok(());
            }
        }
        self.found(NEAR_COPY, Some(Entity::Case), copies);
        Ok(())
    }

    /// Counts the cases whose vector is nearly that of one before them and whose message is not: those are told as
    /// copies already.
    async fn compare(&mut self, cases: &[(Box<str>, u64)], copies: &mut FindingTally) -> Result<(), ChangeError> {
        let ids: Vec<String> = cases.iter().map(|(id, _)| id.to_string()).collect();
        let mut vectors = self.store.embeddings().vectors(Entity::Case, &ids).await?;
        let mut kept: Vec<(u64, Vec<f32>)> = Vec::new();
        let most = self.most();
        for (at, (id, message)) in cases.iter().enumerate() {
            let Some(vector) = vectors.remove(&**id).and_then(unit) else { continue };
            let near = |(other, before): &&(u64, Vec<f32>)| {
                other != message && before.len() == vector.len() && dot(before, &vector) > NEAR
            };
            if kept.iter().find(near).is_some() {
                copies.add(id, most);
            }
            kept.push((*message, vector));
            if at % PROGRESS == PROGRESS - 1 {
                self.tell(FindingNews::Read(self.read, "case"));
                if self.stopped {
                    return Ok(());
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
