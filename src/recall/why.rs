//! Explanation of a score's term in words: the facts in the row, and how the formula uses them.

use serde_json::Value;

use super::answer::RecallRequest;
use super::features::age_days;
use super::rank::{RankedRow, place_of};
use super::{Score, Term};
use crate::memory::{Row, agreeing};

/// Letters that identify the terms of scores: the first letter of the name that no earlier term uses.
pub fn letters(score: &Score) -> Vec<char> {
    let mut taken: Vec<char> = Vec::new();
    for term in &score.terms {
        let free = |letter: &char| letter.is_ascii_uppercase() && !taken.contains(letter);
        let own = term.name.chars().map(|letter| letter.to_ascii_uppercase()).find(free);
        let letter = own.or_else(|| ('A'..='Z').find(free)).unwrap_or('?');
        taken.push(letter);
    }
    taken
}

/// Explains the value of a term of a ranked row; `like` is the stored row used as situation.
pub fn why(term: &Term, ranked: &RankedRow, request: &RecallRequest, like: Option<&Row>) -> String {
    let row = &ranked.row;
    let sought = like.map(place_of).unwrap_or_default();
    match term.name {
        "base" => {
            let parts = ranked.base.iter().map(|part| {
                let told = if part.name == "recency" { age(row, request) } else { likeness(part.name).to_owned() };
                format!("{:.1} x {} {:.3} ({told})", part.weight, part.name, part.value)
            });
            parts.collect::<Vec<_>>().join(" + ")
        }
        "canvas" => match row.get("canvas_action_count").as_i64() {
            Some(count) if count > 0 => agreeing(count, "{#} canvas {interaction is|interactions are} stored: + 0.1"),
            Some(_) => "no canvas interactions are stored".to_owned(),
            None => "the number of canvas interactions is not stored".to_owned(),
        },
        "feedback" => match row.number("feedback_score") {
            Some(score) if score > 0.0 => format!("the stored aggregate {score:+.2} is above 0: + 0.2"),
            Some(score) if score < 0.0 => format!("the stored aggregate {score:+.2} is below 0: - 0.3"),
            Some(_) => "the stored aggregate is 0".to_owned(),
            None => "no aggregate of feedback is stored".to_owned(),
        },
        "domain" => matched(place_of(row).0.as_deref(), request.inquiry.domain.as_deref().or(sought.0.as_deref())),
        "topic" => matched(place_of(row).1.as_deref(), request.inquiry.topic.as_deref().or(sought.1.as_deref())),
        "utility" => "its own, or the mean of the latest 20 episodes that used it; 0.5 if nothing moved it".to_owned(),
        "week" => format!("1 if younger than 7 days; {}", age(row, request)),
        "day" => format!("1 if younger than 24 hours; {}", age(row, request)),
        "bias" => "what the policy gives to every case".to_owned(),
        "reward" => told(row.get("reward"), "no reward is stored: by its outcome, else 0.5"),
        "outcome" => told(row.get("outcome"), "no outcome is stored: 0.5"),
        "recency" => format!("halved every 30 days; {}", age(row, request)),
        "text_overlap" => "share of common words".to_owned(),
        "poison" => "1 if its reward is low and it is recalled often: - 1".to_owned(),
        "tag_overlap" => "share of common tags".to_owned(),
        name => likeness(name).to_owned(),
    }
}

fn likeness(name: &str) -> &'static str {
    match name {
        "keywords" => "share of the query words, rare ones counting more",
        _ => "cosine of the vectors",
    }
}

fn age(row: &Row, request: &RecallRequest) -> String {
    match age_days(row.text(row.entity.time_column()), &request.at) {
        Some(days) if days < 0.0 => "it is in the future".to_owned(),
        Some(days) if days < 1.0 => format!("{:.1} hours old", days * 24.0),
        Some(days) => format!("{days:.1} days old"),
        None => "its age is unknown".to_owned(),
    }
}

fn matched(has: Option<&str>, asked: Option<&str>) -> String {
    match (has, asked) {
        (Some(has), Some(asked)) if has.eq_ignore_ascii_case(asked) => format!("{has}, as asked"),
        (Some(has), Some(asked)) => format!("{has}, asked for {asked}: words that both have"),
        (Some(has), None) => format!("{has}; the question names none"),
        (None, _) => "it names none".to_owned(),
    }
}

fn told(value: &Value, missing: &str) -> String {
    match value {
        Value::Null => missing.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::Entity;
    use crate::recall::inquiry::Inquiry;
    use crate::recall::rank::{ProvenQuery, Ranking, boosted, proven};

    const NOW: &str = "2026-02-04T10:00:00.000000Z";

    fn episode() -> Row {
        let mut row = Row::empty(Entity::Episode);
        row.set("started_at", json!("2026-02-04T04:00:00.000000Z"));
        row.set("domain", json!("work"));
        row.set("feedback_score", json!(-0.5));
        row.set("canvas_action_count", json!(3));
        row
    }

    #[test]
    fn every_term_has_a_letter_of_its_own() {
        let found = proven(episode(), &ProvenQuery::default(), None, NOW);
        assert_eq!(letters(&found.score), ['D', 'T', 'U', 'W', 'A']);
        let twice = Score::of(vec![Term::new("aa", 1.0, 1.0), Term::new("aa", 1.0, 1.0)]);
        assert_eq!(letters(&twice), ['A', 'B']);
    }

    #[test]
    fn a_reason_says_what_the_row_says() {
        let found = boosted(episode(), Some(0.5), "similarity", NOW);
        let request = Inquiry::new(Ranking::Boosted).request(NOW);
        let told: Vec<String> = found.score.terms.iter().map(|term| why(term, &found, &request, None)).collect();
        assert!(told[0].starts_with("0.7 x similarity 0.500 (cosine") && told[0].contains("6.0 hours old"), "{told:?}");
        assert_eq!(told[1], "3 canvas interactions are stored: + 0.1");
        assert_eq!(told[2], "the stored aggregate -0.50 is below 0: - 0.3");
    }
}
