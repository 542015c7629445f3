//! How recall would change by a plan: its rows as edits of what is recalled, and these ranked before and after.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::plan::Plan;
use super::purge::{New, PurgePlan};
use super::{ChangeError, now};
use crate::lab::what_if::{Counted, what_if};
use crate::layout::BoundSource;
use crate::memory::Entity;
use crate::recall::what_if::{Edit, WhatIf};
use crate::store::Store;
use crate::store::encode::{plain_column, table_of};
use crate::store::session::Raw;
use crate::store::stored::{Mutation, Rows, TableName};

pub use crate::lab::what_if::BUDGET;

/// Time for an answer that somebody asked for by name.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Entities whose rows decide what is recalled.
const RANKED: [Entity; 3] = [Entity::Episode, Entity::Case, Entity::Policy];

/// Numbers of a row that rankings look at.
const NUMBERS: [&str; 4] = ["feedback_score", "utility", "canvas_action_count", "reward"];

/// What a change does to the rows that are recalled, and what of it cannot be told.
#[derive(Debug, Default)]
struct Edits {
    /// By kind and id, so that no row is named twice.
    by_row: BTreeMap<(Entity, String), Option<Value>>,
    notes: Vec<String>,
}

/// Which recalls a plan would change, as far as `budget` lasts; `told` hears after how many situations it is.
///
/// # Errors
/// The engine's refusal.
pub async fn of_plan(store: &Store, plan: &Plan, budget: Duration, told: Counted<'_>) -> Result<WhatIf, ChangeError> {
    let mut edits = Edits::default();
    let mut back = 0;
    for change in &plan.changes {
        let Some(entity) = Entity::parse(&change.entity).filter(|entity| RANKED.contains(entity)) else { continue };
        if change.before.is_null() && entity != Entity::Policy {
            back += 1;
            continue;
        }
        let after = (!change.after.is_null()).then(|| change.after.clone());
        edits.by_row.insert((entity, change.id.clone()), after);
    }
    let deletions = plan.mutations.iter().filter_map(|mutation| match mutation {
        Mutation::Delete(rows) => Some(rows),
        _ => None,
    });
    edits.removes(store, deletions);
    if back > 0 {
        edits.notes.push(format!("{back} new rows are not ranked: their vectors are known only when they are there"));
    }
    if plan.changes_total > plan.changes.len() && edits.by_row.len() <= plan.changes.len() {
        let told = plan.changes.len();
        edits.notes.push(format!("of {} changed rows the first {told} were looked at", plan.changes_total));
    }
    edits.ranked(store, budget, told).await
}

/// Which recalls the erasure of a person would change, as far as `budget` lasts.
///
/// # Errors
/// The engine's refusal.
pub async fn of_purge(
    store: &Store,
    plan: &PurgePlan,
    budget: Duration,
    told: Counted<'_>,
) -> Result<WhatIf, ChangeError> {
    let mut edits = Edits::default();
    for altered in &plan.updates {
        let numbers = |source: &BoundSource| {
            let columns = NUMBERS.iter().filter_map(|name| {
                let (stored, _) = plain_column(source, name)?;
                Some(((*name).to_owned(), number(altered.update.set.get(stored)?)?))
            });
            columns.collect::<Map<String, Value>>()
        };
        let keys = vec![altered.key.iter().map(|(_, value)| value.clone()).collect()];
        let by = altered.key.iter().map(|(column, _)| column.clone()).collect();
        let rows = Rows { table: altered.table.clone(), by, keys };
        for (entity, source) in sources(store, &rows.table) {
            let after = numbers(source);
            if !after.is_empty() {
                let ids = ids(source, &rows).into_iter().map(|id| ((entity, id), Some(Value::Object(after.clone()))));
                edits.by_row.extend(ids);
            }
        }
    }
    edits.removes(store, plan.deletes.iter());
    edits.ranked(store, budget, told).await
}

impl Edits {
    /// Rows of memories that go.
    fn removes<'r>(&mut self, store: &Store, deletions: impl Iterator<Item = &'r Rows>) {
        for rows in deletions {
            for (entity, source) in sources(store, &rows.table) {
                self.by_row.extend(ids(source, rows).into_iter().map(|id| ((entity, id), None)));
            }
        }
    }

    async fn ranked(self, store: &Store, budget: Duration, told: Counted<'_>) -> Result<WhatIf, ChangeError> {
        let edits = self.by_row.into_iter().map(|((entity, id), after)| Edit { entity, id, after });
        let edits: Vec<Edit> = edits.collect();
        let mut found = what_if(store, &edits, &now(), budget, told).await?;
        found.complete &= self.notes.is_empty();
        found.notes.extend(self.notes);
        Ok(found)
    }
}

/// The ranked entities that stand in a table.
fn sources<'s>(store: &'s Store, table: &TableName) -> Vec<(Entity, &'s BoundSource)> {
    let of = |entity: Entity| store.sources_of(entity).unwrap_or_default().into_iter().map(move |s| (entity, s));
    RANKED.into_iter().flat_map(of).filter(|(_, source)| table_of(source) == *table).collect()
}

/// The ids of rows that are named by them.
fn ids(source: &BoundSource, rows: &Rows) -> Vec<String> {
    let place = plain_column(source, "id").and_then(|(id, _)| rows.by.iter().position(|by| by == id));
    let text = |raw: &Raw| match raw {
        Raw::Text(text) => Some(text.clone()),
        Raw::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    let Some(place) = place else { return Vec::new() };
    rows.keys.iter().filter_map(|key| text(key.get(place)?)).collect()
}

/// The value as a number, null where it is emptied; none for anything else.
fn number(new: &New) -> Option<Value> {
    match new {
        New::Is(Raw::Null) => Some(Value::Null),
        New::Is(Raw::Integer(number)) => Some(json!(number)),
        New::Is(Raw::Real(number)) => Some(json!(number)),
        New::Is(Raw::Text(text)) => text.parse::<f64>().ok().map(|number| json!(number)),
        _ => None,
    }
}
