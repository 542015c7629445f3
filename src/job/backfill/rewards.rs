//! Sets missing rewards of cases by the rule: from the outcome, otherwise from the results of tool calls, moved by
//! feedback.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::rows::{RowBackfill, RowBench, RowPart, RowVerdict};
use crate::change::ChangeError;
use crate::memory::{Entity, Row, reward, vocabulary};
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
        let rewarded = match row.text("outcome").filter(|outcome| says_something(outcome)) {
            Some(outcome) => reward::reward(outcome, said),
            None => tool_success(row.get("traces")).map(|share| reward::moved(share, said)),
        };
        match rewarded {
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

/// Whether a stored outcome means anything: `unknown` and blanks do not.
fn says_something(outcome: &str) -> bool {
    !outcome.trim().is_empty() && vocabulary::outcome(outcome) != Some("unknown")
}

/// Share of successful tool calls among those in traces with a known result; `None` if there are none. The calls are in
/// a list, or by their ids.
fn tool_success(traces: &Value) -> Option<f64> {
    let listed =
        traces.as_array().or_else(|| traces.get("calls")?.as_array()).or_else(|| traces.get("tools")?.as_array());
    let by_id = || traces.as_object().filter(|calls| calls.values().all(Value::is_object));
    let calls: Vec<&Value> = match listed {
        Some(calls) => calls.iter().collect(),
        None => by_id()?.values().collect(),
    };
    let went: Vec<bool> = calls.into_iter().filter_map(went_well).collect();
    (!went.is_empty()).then(|| went.iter().filter(|ok| **ok).count() as f64 / went.len() as f64)
}

/// Whether a call succeeded: nothing in it indicates failure, and something indicates success. The absence of an error
/// only counts if there is no status and no exit code, which might mean failure in an unknown way.
fn went_well(call: &Value) -> Option<bool> {
    let flags = ["success", "ok", "succeeded"].iter().filter_map(|key| call.get(key)).map(truth);
    let status = call.get("status").filter(|status| !status.is_null()).map(status_went_well);
    let exit = call.get("exit_code").filter(|code| !code.is_null()).map(|code| code.as_i64().map(|code| code == 0));
    let stated: Vec<Option<bool>> = flags.chain(status).chain(exit).collect();
    let error = call.get("error").map(|error| !is_error(error));
    if error == Some(false) || stated.contains(&Some(false)) {
        Some(false)
    } else if stated.contains(&Some(true)) {
        Some(true)
    } else {
        error.filter(|_| stated.is_empty())
    }
}

/// Meaning of a flag, which may be stored as a number or a text.
fn truth(flag: &Value) -> Option<bool> {
    match flag {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => number.as_i64().map(|number| number != 0),
        Value::String(word) if word.eq_ignore_ascii_case("true") => Some(true),
        Value::String(word) if word.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Meaning of a status: a word or an HTTP status.
fn status_went_well(status: &Value) -> Option<bool> {
    match status.as_i64() {
        Some(code) if (200..300).contains(&code) => Some(true),
        Some(code) if (400..600).contains(&code) => Some(false),
        _ => match vocabulary::outcome(status.as_str()?)? {
            "success" => Some(true),
            "failure" | "aborted" => Some(false),
            _ => None,
        },
    }
}

fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !["", "none", "null", "false"].contains(&text.trim().to_ascii_lowercase().as_str()),
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
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
            (json!({ "call_1": { "success": true }, "call_2": { "success": false } }), Some(0.5)),
            (json!([{ "status": "FAILED", "error": null }, { "ok": true, "error": "no" }]), Some(0.0)),
            (json!([{ "status": "exception", "error": "" }, { "exit_code": 1, "error": null }]), Some(0.0)),
            (json!([{ "error": false }, { "error": "None" }, { "success": "true" }, { "status": 200 }]), Some(1.0)),
            (json!([{ "status": "queued", "error": null }]), None),
            (json!([{ "name": "x" }]), None),
            (json!("text"), None),
            (Value::Null, None),
        ] {
            assert_eq!(tool_success(&traces), share, "{traces}");
        }
    }
}
