//! Retention for every kind of row: what the rules no longer keep goes, with what hangs on it, in one plan.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use chrono::Utc;

use super::draft::Draft;
use super::feedback::writable;
use super::plan::{ChangeDanger, Plan};
use super::{ChangeError, remove};
use crate::memory::Entity;
use crate::memory::agreeing;
use crate::memory::query::Query;
use crate::memory::retention::{ReadRule, RetainedRow, RetentionRules};
use crate::store::Store;

/// Rows that one plan takes at most; the next one takes more.
const MOST: usize = 5_000;

/// Rows of an entity that are overdue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverdueRows {
    /// Entity of the rows.
    pub entity: Entity,
    /// Their ids.
    pub ids: BTreeSet<String>,
    /// Rows of that kind in all.
    pub of: usize,
}

/// The rows that the rules no longer keep, of people under a hold too.
///
/// # Errors
/// [`ChangeError::Usage`] for rules that make no sense, [`ChangeError::Refused`] where a rule cannot be told here; else the
/// engine's refusal.
pub async fn overdue(store: &Store, rules: &RetentionRules) -> Result<Vec<OverdueRows>, ChangeError> {
    let rules = rules.read(Utc::now()).map_err(ChangeError::Usage)?;
    let entities: BTreeSet<Entity> = rules.iter().map(|rule| rule.entity).collect();
    let mut found = Vec::new();
    for entity in entities {
        let own: Vec<&ReadRule> = rules.iter().filter(|rule| rule.entity == entity).collect();
        let used =
            if own.iter().any(|rule| rule.asks_use()) { last_uses(store, entity).await? } else { HashMap::new() };
        let mut columns: Vec<&'static str> = own.iter().flat_map(|rule| rule.columns()).collect();
        // What was taken away stays in some stores, marked: it is no row any more.
        let marked = store.sources_of(entity)?.iter().any(|source| source.marks_removed());
        columns.extend(Entity::column(entity, "status").filter(|_| marked).map(|column| column.name));
        columns.sort_unstable();
        columns.dedup();
        let mut seen: Vec<Vec<RetainedRow>> = vec![Vec::new(); own.len()];
        store
            .walks()
            .each_row(&Query { columns: Some(columns), ..Query::new(entity) }, |row| {
                if !marked || row.text("status") != Some("deleted") {
                    seen.iter_mut().zip(&own).for_each(|(rows, rule)| rows.push(rule.look(&row)));
                }
                ControlFlow::Continue(())
            })
            .await?;
        let of = seen.first().map_or(0, Vec::len);
        let ids = seen.iter().zip(&own).flat_map(|(rows, rule)| rule.doomed(rows, &used)).collect();
        found.push(OverdueRows { entity, ids, of });
    }
    Ok(found)
}

/// Returns the time of the last recall of each row, by row id.
async fn last_uses(store: &Store, entity: Entity) -> Result<HashMap<String, String>, ChangeError> {
    if let Err(missing) = store.sources_of(Entity::Access) {
        return Err(ChangeError::Refused(format!("`unused_for` of {} is unknown: {missing}", entity.title())));
    }
    let mut last: HashMap<String, String> = HashMap::new();
    let query = Query { columns: Some(vec!["ids", "created_at"]), ..Query::new(Entity::Access) };
    store
        .walks()
        .each_row(&query, |row| {
            let at = row.text("created_at").unwrap_or_default();
            for id in row.list("ids") {
                if last.get(id).is_none_or(|known| known.as_str() < at) {
                    last.insert(id.to_owned(), at.to_owned());
                }
            }
            ControlFlow::Continue(())
        })
        .await?;
    Ok(last)
}

/// Plans what the rules take away. Rows of people under a hold stay.
///
/// # Errors
/// As [`overdue`]; [`ChangeError::Refused`] where more than the stated share of an entity's rows would go.
pub async fn plan(store: &Store, rules: &RetentionRules) -> Result<Plan, ChangeError> {
    let mut draft = Draft::new(store, "retain", ChangeDanger::Guarded).await?;
    let held: HashSet<String> = store.records().holds().await?.into_iter().map(|(id, _)| id).collect();
    let mut located = Vec::new();
    for OverdueRows { entity, ids, of } in overdue(store, rules).await? {
        let most = (rules.share() * of as f64).ceil() as usize;
        if ids.len() > most {
            return Err(ChangeError::Refused(format!(
                "{} of {of} rows of {} would go, more than the share of {}: look at the rules, or raise `share`",
                ids.len(),
                entity.title(),
                rules.share()
            )));
        }
        let (mut kept, mut taken) = (0, 0);
        for id in &ids {
            if located.len() >= MOST {
                draft.disclosures.push(agreeing(ids.len() - taken - kept, &format!("{{#}} more {{row of|rows of}} {} {{is overdue|are overdue}}: one plan takes {MOST}, run it again", entity.title())));
                break;
            }
            let Some(found) = draft.seek(entity, id).await? else { continue };
            writable(found.source)?;
            if found.row.text("user_id").is_some_and(|user| held.contains(user)) {
                kept += 1;
                continue;
            }
            taken += 1;
            located.push(found);
        }
        if kept > 0 {
            draft.disclosures.push(agreeing(
                kept,
                &format!(
                    "{{#}} {{row of|rows of}} {} {{stays: its person is|stay: their people are}} under a legal hold",
                    entity.title()
                ),
            ));
        }
        if taken > 0 {
            draft.effects.push(agreeing(taken, &format!("{{#}} of {of} rows of {} {{goes|go}}", entity.title())));
        }
    }
    if !located.is_empty() {
        remove::take(&mut draft, &located, None).await?;
    }
    Ok(draft.seal())
}
