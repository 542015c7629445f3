//! Reward of a case: the value of its outcome, otherwise of its tool calls, adjusted by user feedback.

use serde_json::Value;

use super::vocabulary;

/// Change of a reward by entirely good or bad feedback.
pub const FEEDBACK_WEIGHT: f64 = 0.25;

/// Reward from which a case is positive in training.
pub const POSITIVE: f64 = 0.5;

/// Reward of an outcome alone, in any of its spellings: success 1, partial 0.5, failure 0, aborted 0.2; `None` for
/// other words.
pub fn of_outcome(outcome: &str) -> Option<f64> {
    match vocabulary::outcome(outcome)? {
        "success" => Some(1.0),
        "partial" => Some(0.5),
        "failure" => Some(0.0),
        "aborted" => Some(0.2),
        _ => None,
    }
}

/// Reward in 0..1: the outcome's plus [`FEEDBACK_WEIGHT`] x the feedback aggregate (-1..1, `None`: unknown), clamped.
/// The weight is chosen so that feedback moves a partial outcome either way but never turns a failure into a success.
pub fn reward(outcome: &str, feedback: Option<f64>) -> Option<f64> {
    Some(moved(of_outcome(outcome)?, feedback))
}

/// A reward, in 0..1, moved by feedback, which is clamped to its range.
pub fn moved(reward: f64, feedback: Option<f64>) -> f64 {
    let by = feedback.filter(|f| f.is_finite()).unwrap_or(0.0).clamp(-1.0, 1.0) * FEEDBACK_WEIGHT;
    (reward + by).clamp(0.0, 1.0)
}

/// Reward of a case for which none is stored, in 0..1, rounded to two decimals: that of its outcome, without an outcome the
/// share of tool calls that succeeded, moved by feedback. `None` for any other outcome, and without outcome and tool calls.
pub fn by_rule(outcome: Option<&str>, traces: &Value, feedback: Option<f64>) -> Option<f64> {
    let reward = match outcome.filter(|outcome| says_something(outcome)) {
        Some(outcome) => reward(outcome, feedback),
        None => tool_success(traces).map(|share| moved(share, feedback)),
    };
    reward.map(|reward| (reward * 100.0).round() / 100.0)
}

/// Whether a stored outcome means anything: `unknown` and blanks do not.
pub fn says_something(outcome: &str) -> bool {
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

/// The binary label that training uses: reward >= [`POSITIVE`].
pub fn label(reward: f64) -> bool {
    reward >= POSITIVE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

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

    #[test]
    fn the_rule_takes_the_outcome_before_tool_calls() {
        let traces = json!([{ "ok": true }, { "ok": true }, { "ok": false }]);
        for (outcome, expected) in
            [(Some("failure"), Some(0.0)), (None, Some(0.67)), (Some(" "), Some(0.67)), (Some("odd"), None)]
        {
            assert_eq!(by_rule(outcome, &traces, None), expected, "{outcome:?}");
        }
        assert_eq!(by_rule(None, &traces, Some(1.0)), Some(0.92));
    }

    #[test]
    fn outcome_and_feedback_make_the_reward() {
        for (outcome, feedback, expected) in [
            ("success", None, Some(1.0)),
            ("success", Some(1.0), Some(1.0)),
            ("success", Some(-1.0), Some(0.75)),
            ("partial", None, Some(0.5)),
            ("partial", Some(-0.5), Some(0.375)),
            ("failure", Some(1.0), Some(0.25)),
            ("failure", Some(-1.0), Some(0.0)),
            ("aborted", None, Some(0.2)),
            ("partial", Some(f64::NAN), Some(0.5)),
            ("ongoing", Some(1.0), None),
            ("FAILED", Some(1.0), Some(0.25)),
            (" timeout ", None, Some(0.0)),
            ("Cancelled", None, Some(0.2)),
            ("", None, None),
        ] {
            assert_eq!(reward(outcome, feedback), expected, "{outcome} {feedback:?}");
        }
        for (feedback, reward) in [(-7.0, 0.25), (7.0, 0.75)] {
            assert!((moved(0.5, Some(feedback)) - reward).abs() < 1e-12);
        }
    }

    #[test]
    fn half_is_positive() {
        assert!(label(0.5) && !label(0.499));
    }

    proptest! {
            #[test]
            fn better_feedback_never_lowers_a_reward_in_range(a in -2.0..2.0, b in -2.0..2.0,
                                                              outcome in prop::sample::select(vec!["success", "partial", "failure", "aborted"])) {
                let (low, high) = if a <= b { (a, b) } else { (b, a) };
                let (low, high) = (reward(outcome, Some(low)).unwrap(), reward(outcome, Some(high)).unwrap());
                prop_assert!(0.0 <= low && low <= high && high <= 1.0);
    prop_assert!(!label(high) || !matches!(outcome, "failure" | "aborted"));
            }
        }
}
