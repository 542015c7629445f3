//! Reward and outcome of a case, with the row that the memory's own audit trail expects.

use serde_json::Value;

use super::draft::Draft;
use super::feedback::writable;
use super::plan::{ChangeDanger, Plan};
use super::{ChangeError, edit, new_id};
use crate::memory::nearest::unknown;
use crate::memory::{Entity, Row, score};
use crate::store::encode::{GivenValue, plain_column};
use crate::store::stored::Mutation;
use crate::store::{Store, StoreError};

/// Outcomes that a case can be given.
const OUTCOMES: [&str; 4] = ["success", "partial", "failure", "aborted"];

/// Plans a new reward, in 0..1, and an outcome if given.
///
/// # Errors
/// [`ChangeError::Usage`], [`ChangeError::NotFound`], or [`ChangeError::Refused`] if it cannot be stored exactly.
pub async fn set(store: &Store, case: &str, reward: f64, outcome: Option<&str>) -> Result<Plan, ChangeError> {
    if !(0.0..=1.0).contains(&reward) {
        return Err(ChangeError::Usage(format!("a reward is a number from 0 to 1, not {reward}")));
    }
    if let Some(word) = outcome.filter(|o| !OUTCOMES.contains(o)) {
        return Err(ChangeError::Usage(unknown("outcome of a case", word, OUTCOMES)));
    }
    let mut draft = Draft::new(store, "reward", ChangeDanger::Guarded).await?;
    let found = draft.locate(Entity::Case, case).await?;
    writable(found.source)?;
    let mut row = found.row.clone();
    if !score::is_same_or_unknown(found.row.number("reward"), Some(reward)) {
        row.set("reward", Value::from(reward));
    }
    if let Some(outcome) = outcome {
        row.set("outcome", Value::from(outcome));
    }
    edit::set_to(&mut draft, &found, &row, None).await?;
    Ok(draft.seal())
}

/// The row for the memory's own audit trail, if it has one that knows the action.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn trail(
    store: &Store,
    operation: &str,
    case: &Row,
    payload: &Value,
) -> Result<Vec<Mutation>, StoreError> {
    let Ok(sources) = store.sources_of(Entity::AuditEntry) else { return Ok(Vec::new()) };
    let mut rows = Vec::new();
    for source in sources {
        let Some(write) = &source.write else { continue };
        let Some((_, action)) = write.actions.iter().find(|(ours, _)| ours == operation) else { continue };
        let values: Vec<(&str, GivenValue)> = [
            ("id", GivenValue::from(new_id())),
            ("actor", GivenValue::Is(case.get("user_id").clone())),
            ("agent_id", GivenValue::Is(case.get("agent_id").clone())),
            ("action", GivenValue::from(action.clone())),
            ("payload", GivenValue::Is(payload.clone())),
            ("created_at", GivenValue::Now),
        ]
        .into_iter()
        .filter(|(column, _)| plain_column(source, column).is_some())
        .collect();
        rows.push(store.encoder().insertion(source, &values, None).await?);
    }
    Ok(rows)
}
