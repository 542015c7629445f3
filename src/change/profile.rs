//! The window of a bank: the number of its newest cases that are kept.

use std::ops::ControlFlow;

use serde_json::Value;

use super::draft::Draft;
use super::feedback::writable;
use super::plan::{ChangeDanger, Plan};
use super::{ChangeError, edit};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::prune::banks::JudgedCase;
use crate::memory::query::Query;
use crate::memory::{Entity, Row, agreeing, thousands};
use crate::store::Store;

/// Refuses a window that keeps nothing; null keeps all cases.
///
/// # Errors
/// [`ChangeError::Usage`].
pub(super) fn check_window(window: &Value) -> Result<(), ChangeError> {
    if window.is_null() || window.as_i64().is_some_and(|cases| (1..=i64::from(i32::MAX)).contains(&cases)) {
        return Ok(());
    }
    Err(ChangeError::Usage(format!(
        "a window of {window} is a mistake: give 1 or more, or `all` (null) to keep every case"
    )))
}

/// Plans another window; `None` keeps all cases.
///
/// # Errors
/// [`ChangeError::Usage`] for a window that keeps nothing, [`ChangeError::NotFound`], [`ChangeError::Refused`].
pub async fn set_window(store: &Store, profile: &str, window: Option<i64>) -> Result<Plan, ChangeError> {
    let window = window.map_or(Value::Null, Value::from);
    check_window(&window)?;
    let mut draft = Draft::new(store, "profile.set", ChangeDanger::Guarded).await?;
    let found = draft.locate(Entity::Profile, profile).await?;
    writable(found.source)?;
    let mut row = found.row.clone();
    row.set("window_size", window);
    edit::set_to(&mut draft, &found, &row, None).await?;
    Ok(draft.seal())
}

/// Adds to a draft which cases of a bank are outside its window.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn report_cases_outside(draft: &mut Draft<'_>, profile: &Row) -> Result<(), ChangeError> {
    if let Some(size) = profile.get("window_size").as_i64() {
        let (cases, counted) = cases_of(draft.store, profile.id()).await?;
        if counted > size {
            draft.effects.push(agreeing(
                counted - size,
                &format!(
                    "{{#}} of its {} {{cases lies|cases lie}} outside the window: `{}` {{removes it|removes them}}",
                    thousands(cases),
                    draft.store.invocation().line(["prune", "--apply"])
                ),
            ));
        }
    }
    Ok(())
}

/// Counts the cases of a bank, and those that count for a window: with a creation time, and not quarantined.
async fn cases_of(store: &Store, profile: &str) -> Result<(i64, i64), ChangeError> {
    let (mut cases, mut counted) = (0, 0);
    if store.sources_of(Entity::Case).is_ok() {
        let of_it = Filter::new("profile_id", Operator::Equal, Operand::Text(profile.to_owned()));
        let query = Query {
            filters: vec![of_it],
            columns: Some(vec!["id", "profile_id", "created_at", "quarantined"]),
            ..Query::new(Entity::Case)
        };
        let case = |row: Row| {
            cases += 1;
            let case = JudgedCase::of(&row);
            counted += i64::from(case.at.is_some() && !case.quarantined);
            ControlFlow::Continue(())
        };
        store.walks().each_row(&query, case).await?;
    }
    Ok((cases, counted))
}
