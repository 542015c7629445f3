//! Features of a pair of a query and a case, each in 0..1, for policies: what training saw is what recall computes.

use std::collections::BTreeSet;

use super::policy::FEATURES;
use crate::memory::{Row, time};

/// Days after which recency is half.
const HALF_LIFE_DAYS: f64 = 30.0;

/// A query or a case as far as features look at it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Facets {
    /// Words of its text, lower case.
    pub words: BTreeSet<String>,
    /// Its tags, lower case.
    pub tags: BTreeSet<String>,
    /// When, in microseconds since 1970.
    pub at: Option<i64>,
    /// Reward, in 0..1.
    pub reward: Option<f64>,
    /// Outcome word.
    pub outcome: Option<String>,
    /// Its vector; empty when it has none.
    pub vector: Vec<f32>,
}

impl Facets {
    /// Facets of a text alone.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Facets { words: words(text), ..Facets::default() }
    }

    /// Facets of a case; its vector is added by whoever has it.
    #[must_use]
    pub fn of_case(case: &Row) -> Self {
        Facets {
            words: words(&case_text(case)),
            tags: case.list("tags").into_iter().map(str::to_lowercase).collect(),
            at: case.text("created_at").and_then(time::epoch_micros),
            reward: case.number("reward"),
            outcome: case.text("outcome").map(str::to_owned),
            vector: Vec::new(),
        }
    }
}

/// What a case was asked: the first of `query`, `message` and `text` of its prompt, else the prompt as it is.
#[must_use]
pub fn case_text(case: &Row) -> String {
    let prompt = case.get("prompt");
    let asked = ["query", "message", "text"].iter().find_map(|key| prompt.get(key)?.as_str());
    match asked.or(prompt.as_str()) {
        Some(text) => text.to_owned(),
        None if prompt.is_null() => String::new(),
        None => prompt.to_string(),
    }
}

/// The words of a text: runs of letters and digits, lower case.
#[must_use]
pub fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}

/// Share of what two sets have in common: 0..1, 0 when both are empty.
#[must_use]
pub fn overlap(a: &BTreeSet<String>, b: &BTreeSet<String>) -> f64 {
    let common = a.intersection(b).count();
    let all = a.len() + b.len() - common;
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}

/// Cosine of two vectors, in -1..1; none for vectors of different lengths, empty ones, zero and what is not finite.
#[must_use]
pub fn cosine(a: &[f32], b: &[f32]) -> Option<f64> {
    if a.len() != b.len() || a.is_empty() {
        return None;
    }
    let (mut dot, mut aa, mut bb) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (f64::from(*x), f64::from(*y));
        dot += x * y;
        aa += x * x;
        bb += y * y;
    }
    Some(dot / (aa.sqrt() * bb.sqrt())).filter(|c| c.is_finite())
}

/// The features in the order of [`FEATURES`]: similarity (cosine, below 0 counts as 0), the case's reward, its outcome
/// (success 1, partial 0.5, else 0), recency (half in 30 days before the query), overlap of words and of tags (shared /
/// all). What is not known counts as 0.
#[must_use]
pub fn features(query: &Facets, case: &Facets) -> [f64; FEATURES.len()] {
    let outcome = match case.outcome.as_deref() {
        Some("success") => 1.0,
        Some("partial") => 0.5,
        _ => 0.0,
    };
    let days = query.at.zip(case.at).map(|(now, then)| (now - then).max(0) as f64 / 86_400e6);
    [
        cosine(&query.vector, &case.vector).unwrap_or(0.0).max(0.0),
        case.reward.unwrap_or(0.0).clamp(0.0, 1.0),
        outcome,
        days.map_or(0.0, |days| 0.5_f64.powf(days / HALF_LIFE_DAYS)),
        overlap(&query.words, &case.words),
        overlap(&query.tags, &case.tags),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_by_hand() {
        let query = Facets {
            words: words("Who directed Bang?"),
            tags: words("film"),
            at: Some(30 * 86_400_000_000),
            vector: vec![1.0, 0.0],
            ..Facets::default()
        };
        let case = Facets {
            words: words("who DIRECTED jinpa"),
            tags: words("film people"),
            at: Some(0),
            reward: Some(0.75),
            outcome: Some("partial".to_owned()),
            vector: vec![1.0, 1.0],
        };
        let found = features(&query, &case);
        let expected = [0.5_f64.sqrt(), 0.75, 0.5, 0.5, 0.5, 0.5];
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9), "{found:?}");
        assert_eq!(features(&Facets::default(), &Facets::default()), [0.0; 6]);
    }

    #[test]
    fn vectors_that_do_not_fit_have_no_cosine() {
        assert_eq!(cosine(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(cosine(&[0.0, 0.0], &[1.0, 2.0]), None);
        assert_eq!(cosine(&[], &[]), None);
        assert_eq!(cosine(&[f32::NAN], &[1.0]), None);
        assert_eq!(cosine(&[1.0, 2.0], &[-1.0, -2.0]).map(|c| (c * 1e9).round() / 1e9), Some(-1.0));
    }
}
