//! Sets missing rewards of cases by the rule: from the outcome, otherwise from the results of tool calls, moved by
//! feedback.

use std::collections::HashMap;

use serde_json::json;

use super::rows::{RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::ChangeError;
use crate::change::uses::each_use;
use crate::memory::{Entity, Row, reward};
use crate::store::Store;
use crate::store::walk::NarrowCondition;

/// The backfill, if cases are stored.
pub const SPEC: RowBackfill = RowBackfill {
    name: "rewards",
    operation: "backfill.rewards",
    parts: &[RowPart {
        entity: Entity::Case,
        reads: &["outcome", "reward", "traces"],
        writes: &["reward"],
        needs: &["reward"],
        narrow: &[NarrowCondition::Absent("reward")],
    }],
    judge: |bench| Box::pin(judge(bench)),
    rules: &[
        "outcome: success 1, partial 0.5, aborted 0.2, failure 0; without an outcome, the share of tool calls that succeeded",
        "moved by the mean feedback of the episodes that recalled the case, kept within 0..1, rounded to two decimals",
        "a case with any other outcome, or without outcome and tool calls, keeps none; a stored reward is never replaced",
    ],
    disclosures: &[],
    undo_reason: None,
    takes_away: None,
};

async fn judge(bench: RowBench<'_>) -> Result<Vec<RowVerdict>, ChangeError> {
    let ids: Vec<String> = bench.found.iter().map(|f| f.row.id().to_owned()).collect();
    let feedback = feedback_of(bench.store, &ids).await?;
    let verdict = |row: &Row| {
        if !row.get("reward").is_null() || !row.is_readable("reward") {
            return RowVerdict::Keep;
        }
        let said = feedback.get(row.id()).copied();
        match reward::by_rule(row.text("outcome"), row.get("traces"), said) {
            Some(reward) => RowVerdict::Set(vec![("reward", json!(reward))]),
            None => RowVerdict::Keep,
        }
    };
    Ok(bench.found.iter().map(|f| verdict(&f.row)).collect())
}

/// Mean feedback score of the episodes that recalled each case.
async fn feedback_of(store: &Store, cases: &[String]) -> Result<HashMap<String, f64>, ChangeError> {
    let mut scores: HashMap<String, (f64, usize)> = HashMap::new();
    let take = |case: &str, episode: &Row| {
        if let Some(score) = episode.number("feedback_score") {
            let (sum, count) = scores.entry(case.to_owned()).or_default();
            (*sum, *count) = (*sum + score, *count + 1);
        }
    };
    each_use(store, cases, &["id", "started_at", "feedback_score"], |_, _| true, take).await?;
    Ok(scores.into_iter().map(|(case, (sum, count))| (case, sum / count as f64)).collect())
}
