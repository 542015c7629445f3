//! Judged queries from a file: the question, and the rows that should be recalled.

use std::collections::BTreeMap;

use serde_json::Value;

/// Question of a judged query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum JudgedQuestion {
    /// A text.
    Text(String),
    /// An episode or case by its id.
    Like(String),
}

/// A judged query.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedQuery {
    /// Question that was judged.
    pub asked: JudgedQuestion,
    /// Relevant rows with their grades, above 0.
    pub relevant: BTreeMap<String, f64>,
    /// Agent to recall for, if given.
    pub agent: Option<String>,
    /// User to recall for, if given.
    pub user: Option<String>,
}

/// The shape, for people.
pub const SHAPE: &str = "JSON lines, one query each: {\"query\": TEXT or \"like\": ID, \"relevant\": [ID, …]}, with \"agent_id\" \
and \"user_id\" where the query is of one agent or person. Also taken: `relevant` as {ID: GRADE} or [{\"id\": ID, \"grade\": N}], \
the names `relevant_ids`, `expected` and `positives`, a JSON list of such objects, and one judgement a line: {\"query\" or \
\"like\", \"id\": ID, \"relevant\": true or false}.";

const TEXT: [&str; 3] = ["query", "text", "situation"];
const LIKE: [&str; 4] = ["like", "like_id", "episode_id", "case_id"];
const RELEVANT: [&str; 5] = ["relevant", "relevant_ids", "expected", "positives", "ids"];
const JUDGED: [&str; 3] = ["id", "memory_id", "row_id"];
const VERDICT: [&str; 4] = ["relevant", "label", "truth_label", "grade"];

/// Parses judged queries; lines of the same query are combined.
///
/// # Errors
/// The first invalid line, with the error.
pub fn parse(text: &str) -> Result<Vec<JudgedQuery>, String> {
    let mut queries: Vec<JudgedQuery> = Vec::new();
    let mut take = |place: String, value: &Value| -> Result<(), String> {
        let query = query(value).map_err(|why| format!("{place}: {why}"))?;
        let same = |q: &&mut JudgedQuery| (&q.asked, &q.agent, &q.user) == (&query.asked, &query.agent, &query.user);
        match queries.iter_mut().find(same) {
            Some(known) => known.relevant.extend(query.relevant),
            None => queries.push(query),
        }
        Ok(())
    };
    if text.trim_start().starts_with('[') {
        let all: Vec<Value> = serde_json::from_str(text).map_err(|e| format!("this is not JSON: {e}"))?;
        all.iter().enumerate().try_for_each(|(i, value)| take(format!("entry {}", i + 1), value))?;
        return Ok(queries);
    }
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = format!("line {}", i + 1);
        let value = serde_json::from_str(line).map_err(|e| format!("{place}: this is not JSON: {e}"))?;
        take(place, &value)?;
    }
    Ok(queries)
}

fn query(value: &Value) -> Result<JudgedQuery, String> {
    let object = value.as_object().ok_or("a JSON object is expected")?;
    let first = |names: &[&str]| names.iter().find_map(|name| object.get(*name)).filter(|v| !v.is_null());
    let text = |names: &[&str]| first(names).and_then(Value::as_str).map(str::to_owned);
    let asked = match (text(&TEXT), text(&LIKE)) {
        (Some(words), _) if !words.trim().is_empty() => JudgedQuestion::Text(words),
        (_, Some(id)) => JudgedQuestion::Like(id),
        _ => return Err("`query` or `like` is missing".to_owned()),
    };
    let relevant = match (text(&JUDGED), first(&VERDICT)) {
        (Some(id), Some(verdict)) if !verdict.is_array() && !verdict.is_object() => one(id, verdict)?,
        _ => grades(first(&RELEVANT).ok_or("`relevant` is missing: the ids that should be recalled")?)?,
    };
    let (agent, user) = (text(&["agent_id", "agent"]), text(&["user_id", "user"]));
    Ok(JudgedQuery { asked, relevant, agent, user })
}

fn grade(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        other => other.as_f64().filter(|g| g.is_finite() && *g >= 0.0),
    }
}

fn one(id: String, verdict: &Value) -> Result<BTreeMap<String, f64>, String> {
    let grade =
        grade(verdict).ok_or_else(|| format!("{verdict} is not a grade: give true, false or a number from 0"))?;
    Ok(if grade > 0.0 { BTreeMap::from([(id, grade)]) } else { BTreeMap::new() })
}

fn grades(value: &Value) -> Result<BTreeMap<String, f64>, String> {
    let wrong = || format!("`relevant` is a list of ids, not {value}");
    let mut found = BTreeMap::new();
    match value {
        Value::String(id) => found.extend([(id.clone(), 1.0)]),
        Value::Object(object) => {
            for (id, value) in object {
                found.extend([(id.clone(), grade(value).ok_or_else(wrong)?)]);
            }
        }
        Value::Array(items) => {
            for item in items {
                let id = item.as_str().or_else(|| JUDGED.iter().find_map(|name| item.get(name)?.as_str()));
                let value = VERDICT.iter().find_map(|name| item.get(name));
                found.extend([(id.ok_or_else(wrong)?.to_owned(), value.map_or(Some(1.0), grade).ok_or_else(wrong)?)]);
            }
        }
        _ => return Err(wrong()),
    }
    found.retain(|_, grade| *grade > 0.0);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_obvious_shapes_are_taken() {
        let lines = r#"{"query":"refunds","relevant":["a","b"],"agent_id":"x"}
            {"like":"ep-1","relevant":{"a":2,"b":0}}
            {"like":"ep-2","expected":[{"id":"c","grade":3},{"id":"d"}]}
            {"query":"one","id":"e","relevant":true}
            {"query":"one","id":"f","relevant":false}
            {"query":"one","id":"g","label":1}"#;
        let found = parse(lines).unwrap();
        let shown: Vec<(String, Vec<(&str, f64)>)> = found
            .iter()
            .map(|q| (format!("{:?}", q.asked), q.relevant.iter().map(|(id, g)| (id.as_str(), *g)).collect()))
            .collect();
        assert_eq!(shown[0], ("Text(\"refunds\")".to_owned(), vec![("a", 1.0), ("b", 1.0)]));
        assert_eq!(shown[1], ("Like(\"ep-1\")".to_owned(), vec![("a", 2.0)]));
        assert_eq!(shown[2].1, [("c", 3.0), ("d", 1.0)]);
        assert_eq!(shown[3].1, [("e", 1.0), ("g", 1.0)]);
        assert_eq!((found.len(), found[0].agent.as_deref()), (4, Some("x")));
    }

    #[test]
    fn what_is_no_judged_query_is_named_by_its_line() {
        for (text, words) in [
            ("{\"relevant\":[\"a\"]}", "line 1: `query` or `like` is missing"),
            ("{\"query\":\"q\"}", "`relevant` is missing"),
            ("{\"query\":\"q\",\"relevant\":3}", "a list of ids"),
            ("{\"query\":\"q\",\"relevant\":[{\"grade\":1}]}", "a list of ids"),
            ("\n7", "line 2: a JSON object"),
            ("[1]", "entry 1"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
        assert!(parse("").unwrap().is_empty());
    }
}
