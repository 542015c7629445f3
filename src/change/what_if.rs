//! Effect of a plan on recall: the affected situations, and the plan's changes for a preview of the database.

use std::collections::BTreeSet;
use std::time::Duration;

use super::plan::Plan;
use super::purge::PurgePlan;
use super::{ChangeError, now};
use crate::lab::what_if::{self, Counted, PlannedChange};
use crate::layout::BoundSource;
use crate::memory::{Entity, thousands};
use crate::recall::what_if::WhatIf;
use crate::store::Store;
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::as_text;
use crate::store::stored::{Cell, Mutation, StoredRows};

pub use crate::lab::what_if::{BUDGET, KeptQuestion};

/// Time limit for an explicitly requested answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Entities that affect recall.
const RANKED: [Entity; 4] = [Entity::Episode, Entity::Case, Entity::Memory, Entity::Policy];

/// Placeholder for the pseudonym before a run: a text that is also a UUID.
const PSEUDONYM: &str = "00000000-0000-0000-0000-000000000000";

/// Finds the recalls that a plan would change, within `budget`; `told` receives the number of situations done so far.
/// `kept` are further questions to ask.
///
/// # Errors
/// The engine's refusal.
pub async fn of_plan(
    store: &Store,
    plan: &Plan,
    kept: &[KeptQuestion],
    budget: Duration,
    told: Counted<'_>,
) -> Result<WhatIf, ChangeError> {
    let mut touched = touched(store, &plan.mutations);
    for change in &plan.changes {
        if let Some(entity) = Entity::parse(&change.entity).filter(|entity| RANKED.contains(entity)) {
            touched.insert((entity, change.id.clone()));
        }
        // The owners of feedback, signals and links are found through their rows.
        for (column, entity) in [("episode_id", Entity::Episode), ("memory_id", Entity::Memory)] {
            let named = [&change.before, &change.after].into_iter().filter_map(|row| row[column].as_str());
            touched.extend(named.map(|id| (entity, id.to_owned())));
        }
    }
    look(store, &plan.mutations, &touched, kept, budget, told).await
}

/// Most rows of an erasure whose effect on recall is computed.
const MOST: usize = 50_000;

/// Finds the recalls that the erasure of a person would change, as far as `budget` lasts.
///
/// # Errors
/// [`ChangeError::Refused`] if more rows are deleted or changed than the limit; the engine's refusal.
pub async fn of_purge(
    store: &Store,
    plan: &PurgePlan,
    kept: &[KeptQuestion],
    budget: Duration,
    told: Counted<'_>,
) -> Result<WhatIf, ChangeError> {
    let rows = plan.deletes.iter().fold(plan.updates.len(), |sum, rows| sum + rows.len());
    if rows > MOST {
        return Err(ChangeError::Refused(format!(
            "{} rows are deleted or changed, and the effect on recall can be shown for at most {}: plan the purge \
             without it",
            thousands(rows),
            thousands(MOST)
        )));
    }
    let mut mutations: Vec<Mutation> =
        plan.deletes.iter().map(|rows| Mutation::Delete(rows.stored(0..rows.len()))).collect();
    for altered in &plan.updates {
        let mut set = Vec::new();
        for update in &altered.update.set {
            set.push((update.column.to_string(), Cell::Is(update.new.value(PSEUDONYM)?)));
        }
        mutations.push(Mutation::Update { table: altered.table.clone(), key: altered.key.clone(), set });
    }
    look(store, &mutations, &touched(store, &mutations), kept, budget, told).await
}

async fn look(
    store: &Store,
    mutations: &[Mutation],
    touched: &BTreeSet<(Entity, String)>,
    kept: &[KeptQuestion],
    budget: Duration,
    told: Counted<'_>,
) -> Result<WhatIf, ChangeError> {
    let ahead = PlannedChange { mutations, touched, kept, at: &now(), budget };
    Ok(what_if::what_if(store, &ahead, told).await?)
}

/// The ranked rows that changes name by their ids.
fn touched(store: &Store, mutations: &[Mutation]) -> BTreeSet<(Entity, String)> {
    let sources: Vec<(Entity, &BoundSource)> = RANKED
        .into_iter()
        .flat_map(|entity| store.sources_of(entity).unwrap_or_default().into_iter().map(move |s| (entity, s)))
        .collect();
    let mut touched = BTreeSet::new();
    for rows in mutations.iter().filter_map(Mutation::rows) {
        for (entity, source) in sources.iter().filter(|(_, source)| table_of(source) == rows.table) {
            touched.extend(ids(source, &rows).into_iter().map(|id| (*entity, id)));
        }
    }
    touched
}

/// The ids of given rows.
fn ids(source: &BoundSource, rows: &StoredRows) -> Vec<String> {
    let place = plain_column(source, "id").and_then(|(id, _)| rows.by.iter().position(|by| by == id));
    let Some(place) = place else { return Vec::new() };
    rows.keys.iter().filter_map(|key| as_text(key.get(place)?)).collect()
}
