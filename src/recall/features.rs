//! Features of a (query, case) pair for a learned policy, and the word matching shared by all rankings.

use std::collections::BTreeSet;

use serde_json::Value;
use serde_json::value::RawValue;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::memory::json::{self, JsonPart, JsonText};
use crate::memory::{Row, reward, time};

/// The features, in the order of every feature vector and of a policy's weights.
pub const NAMES: [&str; 6] = ["similarity", "reward", "outcome", "recency", "text_overlap", "tag_overlap"];

/// Days after which a case's recency halves (ours: no source gives one).
pub const RECENCY_HALF_LIFE_DAYS: f64 = 30.0;

/// Value of an unknown reward or outcome: neither good nor bad.
const UNKNOWN: f64 = 0.5;

/// Keys of prompts that contain the question, most specific first.
const ASKED: [&str; 9] = ["message", "query", "question", "task", "input", "instruction", "prompt", "text", "content"];

/// Situation for which a case bank is queried.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Situation {
    /// Distinct words of its text.
    pub words: BTreeSet<String>,
    /// Tags of the situation in lower case. Without tags, a text is matched by its words.
    pub tags: BTreeSet<String>,
    /// Moment of the question, canonical, for computing ages.
    pub at: String,
}

impl Situation {
    /// A situation given as text.
    pub fn of_text(text: &str, at: &str) -> Self {
        Situation { words: words(text), tags: BTreeSet::new(), at: at.to_owned() }
    }

    /// The situation that a stored case was in.
    pub fn of_case(case: &Row, at: &str) -> Self {
        Situation { words: words(&case_text(case)), tags: tags(case), at: at.to_owned() }
    }
}

/// The features of a pair, each in 0..1, in the order of [`NAMES`].
///
/// `similarity` is the cosine of the vectors (-1..1, negative or missing counts as 0); `reward` is the case's,
/// otherwise its outcome's, otherwise 0.5; `outcome` is success 1, partial 0.5, aborted 0.2, failure 0, otherwise 0.5;
/// `recency` halves every [`RECENCY_HALF_LIFE_DAYS`] (0 without a time); `text_overlap` and `tag_overlap` are shared /
/// all distinct words and tags. If the situation has no tags, `tag_overlap` is the share of the case's tags among its
/// words.
pub fn features(situation: &Situation, case: &Row, cosine: Option<f64>) -> [f64; 6] {
    features_told(situation, case, &words(&case_text(case)), cosine)
}

/// The [`features`] of a pair, given the distinct words of the case.
pub fn features_told(situation: &Situation, case: &Row, told: &BTreeSet<String>, cosine: Option<f64>) -> [f64; 6] {
    let of_outcome = case.text("outcome").and_then(reward::of_outcome);
    let reward = case.number("reward").or(of_outcome).unwrap_or(UNKNOWN).clamp(0.0, 1.0);
    [
        cosine.unwrap_or(0.0).clamp(0.0, 1.0),
        reward,
        of_outcome.unwrap_or(UNKNOWN),
        recency(case.text("created_at"), &situation.at),
        overlap(&situation.words, told),
        tag_overlap(situation, &tags(case)),
    ]
}

fn tag_overlap(situation: &Situation, tags: &BTreeSet<String>) -> f64 {
    if !situation.tags.is_empty() || tags.is_empty() {
        return overlap(&situation.tags, tags);
    }
    let named = tags.iter().filter(|tag| {
        let parts = words(tag);
        !parts.is_empty() && parts.is_subset(&situation.words)
    });
    named.count() as f64 / tags.len() as f64
}

/// Computes the recency at `now`, in 0..1: 1 if new or in the future, halved every [`RECENCY_HALF_LIFE_DAYS`], 0
/// without a time.
pub fn recency(created_at: Option<&str>, now: &str) -> f64 {
    age_days(created_at, now).map_or(0.0, |days| 0.5_f64.powf(days.max(0.0) / RECENCY_HALF_LIFE_DAYS))
}

/// Age at `now` in days, negative in the future; `None` without a time, or with one that stands for "none" or "never".
pub fn age_days(created_at: Option<&str>, now: &str) -> Option<f64> {
    time::seconds_between(time::known(created_at?)?, now).map(|seconds| seconds / 86_400.0)
}

/// The distinct words of a text in lower case, by Unicode word boundaries (each ideograph is a word); names such as
/// `process_order` and `order.paid` are split too.
pub fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    // Not collected first: that would hold every repeat of a word in a long text.
    words.extend(word_parts(text).map(str::to_lowercase));
    words
}

/// The words of a text as written, in order: see [`words`].
pub fn word_parts(text: &str) -> impl Iterator<Item = &str> {
    text.unicode_words().flat_map(|word| word.split(['_', '.', ':'])).filter(|part| !part.is_empty())
}

/// Shared words divided by all distinct words of both, in 0..1; 0 if either has none.
pub fn overlap(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let shared = a.intersection(b).count();
    let all = a.len() + b.len() - shared;
    if all == 0 { 0.0 } else { shared as f64 / all as f64 }
}

/// Greatest factor by which a text can shrink in lower case, in bytes: a Kelvin sign becomes an ASCII letter.
const SMALLER: usize = 3;

/// A name to search rows by, such as a topic; prepared once, compared with every row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SoughtName {
    lower: String,
    words: BTreeSet<String>,
}

impl<T: AsRef<str>> From<T> for SoughtName {
    fn from(name: T) -> Self {
        let lower = name.as_ref().trim().to_lowercase();
        SoughtName { words: words(name.as_ref()), lower }
    }
}

impl SoughtName {
    /// Whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.lower.is_empty()
    }

    /// Computes how well a stored name matches: 1 if equal ignoring case, otherwise the [`overlap`] of their words; 0
    /// if nothing is requested or stored.
    pub fn likeness(&self, stored: Option<&str>) -> f64 {
        let stored = stored.map_or("", str::trim);
        if self.is_empty() || stored.is_empty() {
            0.0
        } else if stored.len() <= SMALLER * self.lower.len() && stored.to_lowercase() == self.lower {
            1.0
        } else if word_parts(stored).any(|word| self.words.contains(&word.to_lowercase())) {
            overlap(&self.words, &words(stored))
        } else {
            0.0
        }
    }
}

/// A case's tags in lower case.
pub fn tags(case: &Row) -> BTreeSet<String> {
    case.list("tags").into_iter().map(|tag| tag.trim().to_lowercase()).filter(|tag| !tag.is_empty()).collect()
}

/// Returns the question of a case: the message within its prompt, otherwise all of the prompt's text.
pub fn case_text(case: &Row) -> String {
    asked_text(case.json("prompt"))
}

/// The message within a stored prompt: the text itself, the value of a key such as `message` or `query`, the last user
/// turn in a list of messages, otherwise all texts joined.
pub fn asked_text(prompt: JsonPart<'_>) -> String {
    let found = match prompt {
        JsonPart::Value(value) => asked_value(value),
        JsonPart::Document(text) => asked_document(text),
    };
    found.unwrap_or_else(|| all_text(prompt))
}

/// The message within a value; `None` if that is all of its texts.
fn asked_value(prompt: &Value) -> Option<String> {
    let asked = |value: &Value| asked_text(value.into());
    match prompt {
        Value::String(text) => Some(text.clone()),
        Value::Object(object) => {
            let told = ASKED.iter().find_map(|key| object.get(*key)).map(asked);
            told.filter(|text| !text.is_empty())
        }
        Value::Array(turns) => {
            let user = turns.iter().rev().find(|turn| turn.get("role").and_then(Value::as_str) == Some("user"));
            user.map(asked)
        }
        _ => None,
    }
}

/// As [`asked_value`], in the text of an object or a list.
fn asked_document(text: &str) -> Option<String> {
    let asked = |raw: &RawValue| match raw.get() {
        text if json::is_kept_as_text(text) => asked_text(JsonPart::Document(text)),
        text => asked_text((&json::read(text).value).into()),
    };
    if let Some(members) = json::members(text) {
        let last = |key: &&str| members.iter().rfind(|(name, _)| name == key);
        let told = ASKED.iter().find_map(last).map(|(_, value)| asked(value));
        return told.filter(|text| !text.is_empty());
    }
    let turns: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let is_user = |turn: &&&RawValue| {
        turn.get().starts_with('{')
            && json::path_in(turn.get(), "role").0.as_ref().and_then(Value::as_str) == Some("user")
    };
    turns.iter().rev().find(is_user).map(|turn| asked(turn))
}

/// All texts within a JSON value, in order, one a line.
pub fn all_text(part: JsonPart<'_>) -> String {
    let mut found = String::new();
    let mut first = true;
    each_text(part, &mut |text| {
        if !std::mem::take(&mut first) {
            found.push('\n');
        }
        found.push_str(text);
    });
    found
}

/// Passes each text within a JSON value to `each`, in order.
pub fn each_text(part: JsonPart<'_>, each: &mut dyn FnMut(&str)) {
    match part {
        JsonPart::Value(Value::String(text)) => each(text),
        JsonPart::Value(Value::Array(items)) => items.iter().for_each(|item| each_text(item.into(), each)),
        JsonPart::Value(Value::Object(object)) => object.values().for_each(|item| each_text(item.into(), each)),
        JsonPart::Value(_) => {}
        JsonPart::Document(text) => {
            // A document is strict JSON.
            _ = json::each_text(text, &mut |found| match found {
                JsonText::Key(_) => {}
                JsonText::Member(_, text) | JsonText::Item(text) => each(text),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::memory::Entity;

    const NOW: &str = "2026-02-04T10:00:00.000000Z";

    fn case(prompt: Value, outcome: &str, reward: Option<f64>, tags: &[&str], at: Option<&str>) -> Row {
        let mut row = Row::empty(Entity::Case);
        row.set("prompt", prompt);
        row.set("outcome", json!(outcome));
        row.set("reward", json!(reward));
        row.set("tags", json!(tags));
        row.set("created_at", json!(at));
        row
    }

    #[test]
    fn each_feature_says_its_part() {
        let situation = Situation {
            words: words("Clean the phone numbers"),
            tags: BTreeSet::from(["cleanup".to_owned(), "phones".to_owned()]),
            at: NOW.to_owned(),
        };
        let old = case(
            json!({"query": "clean phone books"}),
            "partial",
            Some(0.25),
            &["Cleanup"],
            Some("2026-01-05T10:00:00.000000Z"),
        );
        let [similarity, reward, outcome, recency, text, tag] = features(&situation, &old, Some(0.75));
        assert_eq!((similarity, reward, outcome, recency), (0.75, 0.25, 0.5, 0.5));
        assert!((text - 2.0 / 5.0).abs() < 1e-12 && (tag - 0.5).abs() < 1e-12);
        let unknown = case(json!(null), "ongoing", None, &[], None);
        let found = features(&situation, &unknown, Some(-0.5)).map(|f| (f * 2.0) as i32);
        assert_eq!(found, [0, 1, 1, 0, 0, 0]);
    }

    #[test]
    fn a_text_meets_tags_by_its_words() {
        let situation = Situation::of_text("sales dashboard for spring", NOW);
        let found = case(json!("x"), "success", None, &["Sales Dashboard", "travel"], None);
        assert!((features(&situation, &found, None)[5] - 0.5).abs() < 1e-12);
    }

    #[test]
    fn what_was_asked_is_found_in_any_prompt() {
        for (prompt, asked) in [
            (json!("plain"), "plain"),
            (json!({"systemPrompt": "be good", "query": "find it"}), "find it"),
            (json!({"message": "", "a": "b", "c": ["d", 1]}), "b\nd"),
            (json!([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]), "u"),
            (json!({"messages": [{"x": "y"}]}), "y"),
            (json!(null), ""),
        ] {
            assert_eq!(asked_text((&prompt).into()).trim(), asked, "{prompt}");
        }
    }

    #[test]
    fn names_are_parted_into_words() {
        let expected = ["process", "order", "paid", "don't", "1", "5"].map(str::to_owned);
        assert_eq!(words("Process_Order order.paid don't 1.5"), BTreeSet::from(expected));
    }

    #[test]
    fn names_match_by_case_or_by_words() {
        for (asked, stored, expected) in [
            (Some("Travel"), Some("travel "), 1.0),
            (Some("sales data"), Some("data export"), 1.0 / 3.0),
            (Some("x"), Some("y"), 0.0),
            (Some(""), Some(""), 0.0),
            (None, Some("a"), 0.0),
            (Some("a"), None, 0.0),
        ] {
            assert!(
                (SoughtName::from(asked.unwrap_or_default()).likeness(stored) - expected).abs() < 1e-12,
                "{asked:?} {stored:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn features_lie_in_range(text in ".{0,40}", other in ".{0,40}", cosine in -1.0..1.0f64,
                                 reward in -2.0..3.0f64, days in -400i64..4000) {
            let at = chrono::DateTime::parse_from_rfc3339(NOW).unwrap() - chrono::Duration::days(days);
            let at = crate::memory::time::canonical(&at.to_rfc3339()).unwrap();
            let row = case(json!(other), "success", Some(reward), &[text.as_str()], Some(&at));
            let found = features(&Situation::of_text(&text, NOW), &row, Some(cosine));
            prop_assert!(found.iter().all(|f| (0.0..=1.0).contains(f)), "{found:?}");
        }

        #[test]
        fn overlap_is_mutual_and_whole_with_itself(a in ".{0,40}", b in ".{0,40}") {
            let (a, b) = (words(&a), words(&b));
            prop_assert!((overlap(&a, &b) - overlap(&b, &a)).abs() < 1e-12);
            let whole = if a.is_empty() { 0.0 } else { 1.0 };
            prop_assert!((overlap(&a, &a) - whole).abs() < 1e-12);
        }
    }
}
