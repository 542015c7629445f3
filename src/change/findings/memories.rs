//! Memories that say the same as others of the same person and agent, by vector or by words, and contradicting facts.

use std::collections::HashMap;

use super::{ChangeError, FindingNews, NO_DIRECTION, Survey};
use crate::change::edit::marks_superseded;
use crate::layout::BoundSource;
use crate::memory::Entity;
use crate::memory::findings::{FindingTally, MemoryGroups, StandingMemories, StandingMemory, copies};
use crate::memory::prune::NEAR;
use crate::memory::query::Query;
use crate::memory::vector::{dot, has_direction, unit};
use crate::store::Store;
use crate::store::scratch::scratch;

/// Memories that say the same.
pub(super) const COPIES: &str = "near_duplicate_memory";
/// The kinds of finding.
const PAIRED: &[&str] = &[COPIES, "contradicting_facts"];

/// Memories compared between two progress reports.
const PROGRESS: usize = 2_000;

/// Memories whose vectors are read at once, including the rest of their group.
const TOGETHER: usize = 400;

/// Columns of a memory that are read.
const COLUMNS: &[&str] =
    &["id", "user_id", "agent_id", "collection", "text", "status", "metadata", "created_at", "expires_at"];

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
            if self.store.embeddings().has_vectors(Entity::Memory) {
                self.left.insert(NO_DIRECTION);
            }
            return Ok(());
        }
        let mut standing = StandingMemories::new(scratch);
        let query = Query { columns: Some(COLUMNS.to_vec()), ..Query::new(Entity::Memory) };
        self.walk(&query, false, |row| standing.add(row)).await?;
        if self.stopped {
            return Ok(());
        }
        let (memory, most) = (Some(Entity::Memory), self.most());
        let contradictions = standing.contradictions(most)?;
        self.found("contradicting_facts", memory, contradictions);
        if self.wants(&[COPIES]) {
            let groups = standing.into_groups()?;
            let (copies, without_direction) = self.copies(&groups).await?;
            self.found(COPIES, memory, copies);
            self.found(NO_DIRECTION, memory, without_direction);
        }
        Ok(())
    }

    /// Compares the memories of each group by vectors, or by words; also reports those whose vectors cannot be
    /// compared. The vectors of several small groups are read at once.
    async fn copies(&mut self, groups: &MemoryGroups) -> Result<(FindingTally, FindingTally), ChangeError> {
        let (mut tally, mut without_direction) = (FindingTally::default(), FindingTally::default());
        let most = self.most();
        let mut stream = groups.stream()?;
        let mut compared = 0;
        loop {
            let some = stream.some(TOGETHER)?;
            if some.is_empty() || self.stopped {
                return Ok((tally, without_direction));
            }
            let mut undirected = Vec::new();
            let vectors = unit_vectors(self.store, &some, &mut undirected).await?;
            undirected.iter().for_each(|id| without_direction.add(id, most));
            for group in &some {
                let vectors: Vec<_> = group.iter().map(|memory| vectors.get(&memory.id)).collect();
                let near = |a: usize, b: usize| {
                    let (a, b) = vectors[a].zip(vectors[b])?;
                    Some(a.len() == b.len() && dot(a, b) > NEAR)
                };
                copies(group, near, most, &mut tally);
                compared += group.len();
            }
            if compared >= PROGRESS {
                compared = 0;
                self.tell(FindingNews::Read(self.read, "memory"));
                tokio::task::yield_now().await;
            }
        }
    }

    /// Whether memories can be merged.
    pub(super) fn merges(&self) -> bool {
        let sources = self.store.sources_of(Entity::Memory).unwrap_or_default();
        sources.iter().all(|source| source.is_writable()) && self.store.why_not_writable().is_none()
    }

    /// Whether a memory can be marked as superseded by another one.
    pub(super) fn supersedes(&self) -> bool {
        let sources = self.store.sources_of(Entity::Memory).unwrap_or_default();
        let marks = |source: &&BoundSource| source.is_writable() && marks_superseded(source);
        sources.iter().all(marks) && self.store.why_not_writable().is_none()
    }
}

/// The unit vectors of the memories of some groups, by id. Ids without a direction are added to `undirected`, in order.
async fn unit_vectors(
    store: &Store,
    groups: &[Vec<StandingMemory>],
    undirected: &mut Vec<String>,
) -> Result<HashMap<String, Vec<f32>>, ChangeError> {
    if !store.embeddings().has_vectors(Entity::Memory) {
        return Ok(HashMap::new());
    }
    let ids: Vec<String> = groups.iter().flatten().map(|memory| memory.id.clone()).collect();
    let vectors = store.embeddings().vectors(Entity::Memory, &ids).await?;
    undirected.extend(vectors.iter().filter(|(_, vector)| !has_direction(vector)).map(|(id, _)| id.clone()));
    undirected.sort_unstable();
    Ok(vectors.into_iter().filter_map(|(id, vector)| Some((id, unit(vector)?))).collect())
}
