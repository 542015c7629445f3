//! Finds the episode that each one without a parent continues: by agent, time and similarity of their vectors.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::rows::{self, RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::ChangeError;
use crate::job::Job;
use crate::lab::parents::{self, EarliestStarts};
use crate::memory::{Entity, Row};
use crate::recall::parents::{Suggestion, comes_before};
use crate::store::Store;
use crate::store::walk::{NarrowCondition, WalkedRow};

const SPEC: RowBackfill = RowBackfill {
    name: "parents",
    operation: "backfill.parents",
    parts: &[RowPart {
        entity: Entity::Episode,
        reads: &["agent_id", "parent_id", "started_at", "ended_at", "title"],
        writes: &["parent_id"],
        needs: &["parent_id"],
        narrow: &[NarrowCondition::Absent("parent_id"), NarrowCondition::Present("started_at")],
    }],
    judge: |bench| Box::pin(judge(bench)),
    rules: &[
        "the parent is of the same agent, was not abandoned, ended within the 48 hours before, and its vector has a \
         cosine above 0.85; of several the most similar",
        "an existing parent stays; each new parent and all its ancestors started before the episode, so no cycle is \
         created",
    ],
    disclosures: &["an episode without a stored vector or an agent gets no parent"],
    undo_reason: None,
    takes_away: None,
};

/// The backfill, if episodes have vectors and parents.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    let job = rows::make(store, &SPEC)?;
    if store.embeddings().has_vectors(Entity::Episode) {
        return Ok(job);
    }
    Err(ChangeError::Refused("no vectors of episodes are stored here to compare them by".to_owned()))
}

async fn judge(bench: RowBench<'_>) -> Result<Vec<RowVerdict>, ChangeError> {
    let names_agent = |row: &Row| row.text("agent_id").is_some_and(|agent| !agent.trim().is_empty());
    let open = |found: &&WalkedRow| {
        let has_none = bench.revising.is_absent(&found.stored, "parent_id") && found.row.get("parent_id").is_null();
        has_none && names_agent(&found.row)
    };
    let ids: Vec<String> = bench.found.iter().filter(open).map(|f| f.row.id().to_owned()).collect();
    let store = bench.store;
    let vectors = store.embeddings().vectors(Entity::Episode, &ids).await?;
    let vector = |found: &'_ WalkedRow| vectors.get(found.row.id()).filter(|_| open(&found)).map(Vec::as_slice);
    let asking: Vec<(&Row, &[f32])> =
        bench.found.iter().filter_map(|found| Some((&found.row, vector(found)?))).collect();
    if asking.is_empty() {
        return Ok(bench.found.iter().map(|_| RowVerdict::Keep).collect());
    }
    let starts = bench.starts.get_or_try_init(|| EarliestStarts::read(store)).await?;
    let suggested = parents::suggest_all(store, &asking, starts).await?;
    let mut searches: Vec<ParentSearch<'_>> = asking
        .iter()
        .zip(suggested)
        .map(|((episode, _), suggestions)| ParentSearch::of(episode, suggestions))
        .collect();
    climb(store, &mut searches).await?;
    let mut parents = searches.into_iter().map(|search| search.current.map(|line| line.parent));
    let verdict = |found: &WalkedRow| match vector(found).and_then(|_| parents.next()).flatten() {
        Some(id) => RowVerdict::Set(vec![("parent_id", Value::from(id))]),
        None => RowVerdict::Keep,
    };
    Ok(bench.found.iter().map(verdict).collect())
}

/// Ancestors cached at a time.
const KNOWN: usize = 50_000;

/// Most generations followed: a longer line is refused, as is a cycle.
const GENERATIONS: usize = 10_000;

/// An ancestor of episodes.
struct Ancestor {
    started_at: Option<String>,
    parent_id: Option<String>,
}

impl Ancestor {
    fn of(row: &Row) -> Self {
        let text = |column: &str| row.text(column).map(str::to_owned);
        Ancestor { started_at: text("started_at"), parent_id: text("parent_id") }
    }
}

/// The ancestors of a suggested parent, as far as followed.
struct ParentLine {
    parent: String,
    /// The next episode to read; `None` at the end of the line.
    next: Option<String>,
    generations: usize,
}

/// Searches for the best parent whose stored ancestors all come before the episode. Links made here lead back in time,
/// so a cycle would need a stored link that leads past the episode. Only stored links are considered, so the result
/// does not depend on the order or size of batches.
struct ParentSearch<'e> {
    episode: &'e Row,
    /// The suggestions after the current one, best first.
    others: std::vec::IntoIter<Suggestion>,
    /// The current candidate line; `None` if no suggestion is left.
    current: Option<ParentLine>,
}

impl<'e> ParentSearch<'e> {
    fn of(episode: &'e Row, suggestions: Vec<Suggestion>) -> Self {
        let mut search = ParentSearch { episode, others: suggestions.into_iter(), current: None };
        search.try_next();
        search
    }

    fn try_next(&mut self) {
        let line = |s: Suggestion| ParentLine { next: Some(s.id.clone()), parent: s.id, generations: 0 };
        self.current = self.others.next().map(line);
    }

    /// Follows lines as far as their ancestors are known.
    fn follow(&mut self, known: &HashMap<String, Option<Ancestor>>) {
        while let Some(line) = &mut self.current
            && let Some(id) = &line.next
            && let Some(ancestor) = known.get(id)
        {
            match ancestor {
                Some(ancestor)
                    if line.generations < GENERATIONS
                        && comes_before(ancestor.started_at.as_deref(), id, self.episode) =>
                {
                    line.generations += 1;
                    line.next.clone_from(&ancestor.parent_id);
                }
                // Its last ancestor names a missing one.
                None if line.generations > 0 => line.next = None,
                _ => self.try_next(),
            }
        }
    }

    /// The next episode to look up; `None` at the end of the search.
    fn wanted(&self) -> Option<&String> {
        self.current.as_ref()?.next.as_ref()
    }
}

/// Runs searches together: a generation of all of them is read at once, and each ancestor once.
async fn climb(store: &Store, searches: &mut [ParentSearch<'_>]) -> Result<(), ChangeError> {
    let mut known: HashMap<String, Option<Ancestor>> = HashMap::new();
    loop {
        searches.iter_mut().for_each(|search| search.follow(&known));
        let wanted: BTreeSet<&String> = searches.iter().filter_map(ParentSearch::wanted).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let ids: Vec<String> = wanted.into_iter().cloned().collect();
        if known.len() > KNOWN {
            known.clear();
        }
        for row in linking(store, &ids).await? {
            known.entry(row.id().to_owned()).or_insert_with(|| Some(Ancestor::of(&row)));
        }
        for id in ids.into_iter().filter(|id| !known.contains_key(id)).collect::<Vec<_>>() {
            // Id comparison may find one with another spelling.
            let row = linking(store, std::slice::from_ref(&id)).await?.into_iter().next();
            known.insert(id, row.as_ref().map(Ancestor::of));
        }
    }
}

async fn linking(store: &Store, ids: &[String]) -> Result<Vec<Row>, ChangeError> {
    let columns = ["id", "agent_id", "parent_id", "started_at"];
    Ok(store.related_columns(Entity::Episode, "id", ids, Some(&columns)).await?)
}
