//! Gives cases without a reward one by the rule: from the outcome, else from how its tool calls went, moved by feedback.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::rows::{RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::ChangeError;
use crate::memory::{Entity, Row, reward};
use crate::store::Store;
use crate::store::walk::NarrowCondition;

/// The backfill, where cases are kept.
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
        "outcome: success 1, partial 0.5, aborted 0.2, failure 0; where it is unknown, the share of tool calls that \
         succeeded",
        "moved by the mean feedback of the episodes that recalled the case, kept within 0..1, rounded to two decimals",
        "a case without outcome and tool calls keeps none; a stored reward is never replaced",
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
        let of_outcome = row.text("outcome").and_then(|outcome| reward::reward(outcome, said));
        let moved = |share: f64| reward::moved(share, said);
        match of_outcome.or_else(|| tool_success(row.get("traces")).map(moved)) {
            Some(reward) => RowVerdict::Set(vec![("reward", json!((reward * 100.0).round() / 100.0))]),
            None => RowVerdict::Keep,
        }
    };
    Ok(bench.found.iter().map(|f| verdict(&f.row)).collect())
}

/// Mean feedback score of the episodes that recalled each case.
async fn feedback_of(store: &Store, cases: &[String]) -> Result<HashMap<String, f64>, ChangeError> {
    let mut users: HashMap<String, Vec<String>> = HashMap::new();
    for link in store.related(Entity::MemoryLink, "memory_id", cases).await? {
        if let (Some(case), Some(episode)) = (link.text("memory_id"), link.text("episode_id")) {
            users.entry(episode.to_owned()).or_default().push(case.to_owned());
        }
    }
    let episodes: Vec<String> = users.keys().cloned().collect();
    let mut scores: HashMap<String, Vec<f64>> = HashMap::new();
    let columns = ["id", "started_at", "feedback_score"];
    for episode in store.related_columns(Entity::Episode, "id", &episodes, Some(&columns)).await? {
        let Some(score) = episode.number("feedback_score") else { continue };
        for case in users.get(episode.id()).into_iter().flatten() {
            scores.entry(case.clone()).or_default().push(score);
        }
    }
    Ok(scores.into_iter().map(|(case, all)| (case, all.iter().sum::<f64>() / all.len() as f64)).collect())
}

/// Share of the tool calls in traces that say how they went and went well; none when none says so.
fn tool_success(traces: &Value) -> Option<f64> {
    let calls =
        traces.as_array().or_else(|| traces.get("calls")?.as_array()).or_else(|| traces.get("tools")?.as_array())?;
    let went: Vec<bool> = calls.iter().filter_map(went_well).collect();
    (!went.is_empty()).then(|| went.iter().filter(|ok| **ok).count() as f64 / went.len() as f64)
}

fn went_well(call: &Value) -> Option<bool> {
    let flag = ["success", "ok", "succeeded"].iter().find_map(|key| call.get(key)?.as_bool());
    let status = || {
        call.get("status").and_then(Value::as_str).and_then(|word| match word {
            "success" | "ok" | "completed" | "succeeded" => Some(true),
            "error" | "failed" | "failure" | "timeout" => Some(false),
            _ => None,
        })
    };
    let error = || call.get("error").map(|error| error.is_null() || error.as_str() == Some(""));
    flag.or_else(status).or_else(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_calls_say_how_they_went_in_several_ways() {
        for (traces, share) in [
            (json!([{ "success": true }, { "status": "error" }]), Some(0.5)),
            (
                json!({ "calls": [{ "error": null }, { "ok": true }, { "error": "no" }, { "name": "x" }] }),
                Some(2.0 / 3.0),
            ),
            (json!([{ "name": "x" }]), None),
            (json!("text"), None),
            (Value::Null, None),
        ] {
            assert_eq!(tool_success(&traces), share, "{traces}");
        }
    }
}
