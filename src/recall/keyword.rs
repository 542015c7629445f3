//! Keyword likeness, for queries without a vector: which share of what was asked a text holds, rare words counting more.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::features::{all_text, asked_text, words};
use crate::memory::{Entity, Row};

/// The words by which a row is found.
#[must_use]
pub fn text_of(row: &Row) -> String {
    let columns: &[&str] = match row.entity {
        Entity::Case => return format!("{}\n{}", asked_text(row.get("prompt")), row.list("tags").join("\n")),
        Entity::Memory => &["title", "text", "collection", "tags"],
        _ => &["title", "summary", "detail", "observation", "topic", "domain", "tags", "workflow_name"],
    };
    let parts: Vec<String> = columns.iter().map(|c| all_text(row.get(c))).filter(|t| !t.is_empty()).collect();
    parts.join("\n")
}

/// Situation and outcome of an episode, as `similar` compares them.
#[must_use]
pub fn situation_and_outcome(episode: &Row) -> String {
    let told = |column: &str| all_text(episode.get(column));
    let situation = match told("observation") {
        text if text.is_empty() => format!("{}\n{}", told("title"), told("summary")),
        text => text,
    };
    let outcome = match episode.get("result") {
        Value::Null => told("summary"),
        Value::Number(number) => number.to_string(),
        other => all_text(other),
    };
    format!("{situation}\n{outcome}\n{}", told("workflow_name"))
}

/// For each text the share of the asked words that it holds, in 0..1. A word counts by its rarity among the texts:
/// ln(1 + texts / texts with it). 0 for all where nothing is asked.
#[must_use]
pub fn shares(asked: &BTreeSet<String>, texts: &[String]) -> Vec<f64> {
    let told: Vec<BTreeSet<String>> = texts.iter().map(|text| words(text)).collect();
    shares_told(asked, &told.iter().collect::<Vec<_>>())
}

/// The [`shares`] of texts whose distinct words are known.
#[must_use]
pub fn shares_told(asked: &BTreeSet<String>, told: &[&BTreeSet<String>]) -> Vec<f64> {
    let held: Vec<Vec<&str>> =
        told.iter().map(|words| asked.iter().filter(|w| words.contains(*w)).map(String::as_str).collect()).collect();
    let mut counts: BTreeMap<&str, usize> = asked.iter().map(|w| (w.as_str(), 0)).collect();
    for word in held.iter().flatten() {
        if let Some(count) = counts.get_mut(word) {
            *count += 1;
        }
    }
    let rarity = |word: &str| match counts.get(word) {
        Some(0) | None => (1.0 + told.len() as f64).ln(),
        Some(count) => (1.0 + told.len() as f64 / *count as f64).ln(),
    };
    let all: f64 = asked.iter().map(|w| rarity(w)).sum();
    held.iter()
        .map(|found| if all > 0.0 { (found.iter().map(|w| rarity(w)).sum::<f64>() / all).min(1.0) } else { 0.0 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_count_more_and_nonsense_counts_nothing() {
        let texts = ["tax form for spring", "the form", "the form again"].map(str::to_owned);
        let found = shares(&words("Tax form"), &texts);
        assert!((found[0] - 1.0).abs() < 1e-12 && found[1] < 0.5 && (found[1] - found[2]).abs() < 1e-12);
        assert_eq!(shares(&words("qwxyz"), &texts), [0.0; 3]);
        assert_eq!(shares(&words(""), &texts), [0.0; 3]);
    }
}
