//! Excludes a case from recall without deleting it, and returns it to recall.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ChangeError;
use super::draft::Draft;
use super::plan::{ChangeDanger, Plan};
use super::prune::case_source;
use super::remove::MOST;
use crate::memory::Entity;
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::encode::{GivenValue, plain_column, table_of};

/// Plans that cases are held back from recall, or no longer are.
///
/// # Errors
/// [`ChangeError::NotFound`], or [`ChangeError::Refused`] if the layout cannot exclude cases.
pub async fn hold(store: &Store, cases: &[String], held: bool) -> Result<Plan, ChangeError> {
    let operation = if held { "quarantine" } else { "release" };
    let mut draft = Draft::new(store, operation, ChangeDanger::Guarded).await?;
    let source = case_source(store)?;
    if plain_column(source, "quarantined").is_none() {
        return Err(ChangeError::Refused(format!(
            "{} of the layout {} has no column that hides a case from recall: agents would still read it; use `prune` \
             or `reward CASE 0`",
            table_of(source).title(),
            source.layout
        )));
    }
    let ids: Vec<String> = cases.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    if ids.len() > MOST {
        return Err(ChangeError::Usage(format!("{} cases are named; the maximum is {MOST}", ids.len())));
    }
    let mut changed = 0;
    for found in draft.locate_all(Entity::Case, &ids).await? {
        if found.row.get("quarantined").as_bool().unwrap_or(false) == held {
            continue;
        }
        let mut shown = found.row.clone();
        shown.set("quarantined", Value::from(held));
        draft.sets(&found, &[("quarantined", GivenValue::from(held))], &shown).await?;
        changed += 1;
    }
    if changed > 0 {
        let word = if held { "no longer recalled" } else { "recalled again" };
        draft.effects.push(agreeing(
            changed,
            &format!("{{#}} {{case is|cases are}} {word} by agents that respect the column `quarantined`"),
        ));
    }
    Ok(draft.seal())
}
