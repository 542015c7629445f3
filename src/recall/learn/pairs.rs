//! Pairs of a query and a case with a label, read from JSON lines.

use std::collections::HashMap;

use serde_json::Value;

use crate::memory::vocabulary;

/// A pair in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledPair {
    /// Number of the query among the file's queries.
    pub query: usize,
    /// Text of the query.
    pub text: String,
    /// Text of the case's question.
    pub case: String,
    /// Plan of the case; empty when not given.
    pub plan: String,
    /// Outcome of the case itself, as stored ones are spelled; `None` if not given.
    pub outcome: Option<&'static str>,
    /// Reward of the case, clamped to 0..1; `None` if not given.
    pub reward: Option<f64>,
    /// Whether the outcome or the reward cannot be read.
    pub is_unread: bool,
    /// Whether recalling the case for the query went well.
    pub label: bool,
}

/// Possible names of the label.
const LABELS: [&str; 3] = ["truth_label", "label", "relevant"];
/// Possible names of the case's label.
const CASE_LABELS: [&str; 3] = ["case_label", "outcome", "case_outcome"];

/// Parses pairs: JSON lines with `query`, `case`, `truth_label` (or `label`), and optional `case_label`, `plan`,
/// `reward`. Blank lines are skipped; a JSON list of such objects is accepted too.
///
/// # Errors
/// The number of invalid lines, and the errors of the first few.
pub fn parse(text: &str) -> Result<Vec<LabelledPair>, String> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut pairs = Vec::new();
    let (mut wrong, mut lines) = (Vec::new(), 0_usize);
    let mut take = |place: String, value: Result<Value, String>| match value.and_then(|value| pair(&value)) {
        Ok((query, pair)) => {
            let next = numbers.len();
            let number = *numbers.entry(query).or_insert(next);
            pairs.push(LabelledPair { query: number, ..pair });
        }
        Err(why) => wrong.push(format!("{place}: {why}")),
    };
    if text.trim_start().starts_with('[') {
        let all: Vec<Value> = serde_json::from_str(text).map_err(|e| format!("this is not JSON: {e}"))?;
        lines = all.len();
        all.into_iter().enumerate().for_each(|(i, value)| take(format!("entry {}", i + 1), Ok(value)));
    } else {
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            lines += 1;
            let value = serde_json::from_str(line).map_err(|e| format!("this is not JSON: {e}"));
            take(format!("line {}", i + 1), value);
        }
    }
    match wrong.len() {
        0 => Ok(pairs),
        1 => Err(wrong.concat()),
        n => Err(format!("{n} of {lines} are not pairs; {}", wrong.get(..SHOWN.min(n)).unwrap_or_default().join("; "))),
    }
}

/// Most invalid lines whose errors are reported.
const SHOWN: usize = 3;

fn pair(value: &Value) -> Result<(String, LabelledPair), String> {
    let object = value.as_object().ok_or("a JSON object is expected")?;
    let text = |name: &str| match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Null) | None => Err(format!("`{name}` is missing")),
        Some(other) => Ok(other.to_string()),
    };
    let query = text("query")?;
    let label = LABELS.iter().find_map(|name| object.get(*name)).ok_or("`truth_label` is missing")?;
    let told = || label.to_string().chars().take(60).collect::<String>();
    let label = truth(label).ok_or_else(|| format!("`truth_label` is true or false, not {}", told()))?;
    let given = |name: &&str| object.get(*name).filter(|value| !value.is_null());
    let (case_label, reward) = (CASE_LABELS.iter().find_map(given), given(&"reward"));
    let (outcome, rewarded) = (case_label.and_then(outcome), reward.and_then(number));
    let pair = LabelledPair {
        query: 0,
        text: query.clone(),
        case: text("case")?,
        plan: text("plan").unwrap_or_default(),
        outcome,
        reward: rewarded.map(|reward| reward.clamp(0.0, 1.0)),
        is_unread: case_label.is_some() && outcome.is_none() || reward.is_some() && rewarded.is_none(),
        label,
    };
    Ok((query, pair))
}

/// The outcome of a case: a label, or any spelling of an outcome.
fn outcome(value: &Value) -> Option<&'static str> {
    let stored = value.as_str().and_then(vocabulary::outcome);
    stored.or_else(|| truth(value).map(|well| if well { "success" } else { "failure" }))
}

/// A finite number, also one in a text.
fn number(value: &Value) -> Option<f64> {
    let told = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    told.filter(|number| number.is_finite())
}

/// A label as files spell it.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(b) => Some(*b),
        Value::Number(n) => n.as_f64().map(|x| x >= 0.5),
        Value::String(word) => match word.to_ascii_lowercase().as_str() {
            "true" | "positive" | "success" | "yes" | "1" => Some(true),
            "false" | "negative" | "failure" | "no" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_in_several_spellings() {
        let lines = r#"{"query":"q","case":"c","case_label":"positive","plan":"p","truth_label":false}

            {"query":"r","case":"c","label":1,"reward":0.25}
            {"query":"q","case":{"a":1},"truth_label":"true"}"#;
        let found = parse(lines).unwrap();
        assert_eq!(found.iter().map(|p| (p.query, p.label)).collect::<Vec<_>>(), [(0, false), (1, true), (0, true)]);
        assert_eq!(
            (found[0].outcome, found[1].reward, found[2].case.as_str()),
            (Some("success"), Some(0.25), "{\"a\":1}")
        );
        assert_eq!(parse(&format!("[{}]", lines.lines().next().unwrap())).unwrap().len(), 1);
        assert!(parse(" \n").unwrap().is_empty());
    }

    #[test]
    fn outcomes_and_rewards_mean_what_stored_ones_do() {
        for (told, expected) in [
            (r#""outcome":"partial""#, (Some("partial"), None, false)),
            (r#""outcome":"aborted","reward":null"#, (Some("aborted"), None, false)),
            (r#""case_label":false,"reward":"0.2""#, (Some("failure"), Some(0.2), false)),
            (r#""reward":5"#, (None, Some(1.0), false)),
            (r#""reward":-1"#, (None, Some(0.0), false)),
            (r#""outcome":"who knows""#, (None, None, true)),
            (r#""reward":"high""#, (None, None, true)),
        ] {
            let found = parse(&format!(r#"{{"query":"q","case":"c","label":1,{told}}}"#)).unwrap();
            assert_eq!((found[0].outcome, found[0].reward, found[0].is_unread), expected, "{told}");
        }
    }

    #[test]
    fn what_is_no_pair_is_named_by_its_line() {
        for (text, words) in [
            ("{\"query\":\"q\"}", "line 1: `truth_label` is missing"),
            ("\n{\"query\":\"q\",\"truth_label\":true}", "line 2: `case` is missing"),
            ("{\"case\":\"q\",\"truth_label\":true}", "`query` is missing"),
            ("{\"query\":\"q\",\"case\":\"c\",\"truth_label\":\"maybe\"}", "true or false"),
            ("nonsense", "not JSON"),
            ("3", "a JSON object"),
            (
                "3\n\n{}\n{\"query\":1,\"case\":2,\"label\":1}\n[]\n4",
                "4 of 5 are not pairs; line 1: a JSON object is expected; line 3",
            ),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
