//! Memories that say the same as others of the same person, by vector or by words, and facts that contradict one another.

use std::ops::ControlFlow;

use super::{ChangeError, FindingNews, Survey};
use crate::layout::BoundSource;
use crate::memory::Entity;
use crate::memory::findings::{FindingTally, StandingMemories, StandingMemory, copies};
use crate::memory::prune::NEAR;
use crate::memory::query::Query;
use crate::memory::vector::{dot, unit};
use crate::store::Store;
use crate::store::encode::plain_column;

/// Memories that say the same.
pub(super) const COPIES: &str = "near_duplicate_memory";
/// The kinds of finding.
pub(super) const PAIRED: &[&str] = &[COPIES, "contradicting_facts"];

/// Columns of a memory that are read.
const COLUMNS: &[&str] = &["id", "user_id", "collection", "text", "status", "metadata", "created_at"];

impl Survey<'_> {
    pub(super) async fn memories(&mut self) -> Result<(), ChangeError> {
        if !self.wants(PAIRED) {
            return Ok(());
        }
        if let Some(reason) = self.lacks(Entity::Memory) {
            self.not_applicable(PAIRED, &reason);
            return Ok(());
        }
        if self.spent {
            self.left.extend(PAIRED);
            return Ok(());
        }
        let mut standing = StandingMemories::default();
        let (mut read, brief, begun) = (0_u64, self.wanted.brief, self.begun);
        let mut spent = false;
        let query = Query { columns: Some(COLUMNS.to_vec()), ..Query::new(Entity::Memory) };
        let row = |row| {
            standing.add(&row);
            read += 1;
            spent = brief
                .is_some_and(|b| read >= b.rows || read.is_multiple_of(super::PROGRESS) && begun.elapsed() >= b.time);
            if spent { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.store.walks().each_row(&query, row).await?;
        self.spent |= spent;
        let (memory, most) = (Some(Entity::Memory), self.most());
        self.found("contradicting_facts", memory, standing.contradictions(most));
        let mut tally = FindingTally::default();
        for group in standing.groups() {
            let vectors = unit_vectors(self.store, group).await?;
            let near = |a: usize, b: usize| {
                let (a, b) = vectors.get(a)?.as_ref().zip(vectors.get(b)?.as_ref())?;
                Some(a.len() == b.len() && dot(a, b) > NEAR)
            };
            copies(group, near, most, &mut tally);
            self.tell(FindingNews::Read(self.read, "memory"));
            if self.stopped {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
        self.found(COPIES, memory, tally);
        Ok(())
    }

    /// Whether memories can be made one.
    pub(super) fn merges(&self) -> bool {
        let sources = self.store.sources_of(Entity::Memory).unwrap_or_default();
        sources.iter().all(|source| source.is_writable()) && self.store.why_not_writable().is_none()
    }

    /// Whether a memory can be marked as superseded by another one.
    pub(super) fn supersedes(&self) -> bool {
        let sources = self.store.sources_of(Entity::Memory).unwrap_or_default();
        let stored = |source: &BoundSource, column| plain_column(source, column).is_some();
        let marks = |source: &&BoundSource| {
            source.is_writable()
                && (stored(source, "metadata") || stored(source, "status") && stored(source, "source_ids"))
        };
        sources.iter().all(marks) && self.store.why_not_writable().is_none()
    }
}

/// The vectors of some memories, each of length 1.
async fn unit_vectors(store: &Store, group: &[StandingMemory]) -> Result<Vec<Option<Vec<f32>>>, ChangeError> {
    if !store.embeddings().has_vectors(Entity::Memory) {
        return Ok(Vec::new());
    }
    let ids: Vec<String> = group.iter().map(|memory| memory.id.clone()).collect();
    let mut vectors = store.embeddings().vectors(Entity::Memory, &ids).await?;
    Ok(ids.iter().map(|id| vectors.remove(id).and_then(unit)).collect())
}
