//! Insights into agents and into the memory itself: canvases, quality, readiness, forgetting, memories that help or
//! mislead.

pub mod canvas;
pub mod forgetting;
pub mod graduation;
pub mod quality;
pub mod report;
pub mod usefulness;

use serde::Serialize;

/// One term of a weighted mean, with its basis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightedTerm {
    /// Name of the term.
    pub name: &'static str,
    /// Value in 0..1; `None` without data.
    pub value: Option<f64>,
    /// Number of rows behind the value.
    pub n: usize,
    /// Weight by the formula.
    pub weight: f64,
    /// Weight after those of missing terms are distributed in proportion; 0 for a missing term.
    pub weight_used: f64,
    /// Weight used x value; the contributions sum to the score.
    pub contribution: f64,
    /// Reason why there is no value.
    pub missing: Option<String>,
}

impl WeightedTerm {
    /// A term with a value, or with the reason why it has none.
    pub fn new(name: &'static str, weight: f64, n: usize, value: Result<f64, String>) -> Self {
        let (value, missing) = match value {
            Ok(value) => (Some(value), None),
            Err(why) => (None, Some(why)),
        };
        WeightedTerm { name, value, n, weight, weight_used: 0.0, contribution: 0.0, missing }
    }
}

/// A weighted mean, in 0..1, with its terms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightedMean {
    /// Sum of the contributions; `None` if every term is missing.
    pub score: Option<f64>,
    /// Terms of the mean, in the order of the formula.
    pub terms: Vec<WeightedTerm>,
    /// Treatment of missing terms, for users.
    pub note: Option<String>,
}

impl WeightedMean {
    /// Combines terms; the weight of a missing one is distributed to the others.
    pub fn of(mut terms: Vec<WeightedTerm>) -> Self {
        let there: f64 = terms.iter().filter(|t| t.value.is_some()).map(|t| t.weight).sum();
        for term in &mut terms {
            if let Some(value) = term.value.filter(|_| there > 0.0) {
                term.weight_used = term.weight / there;
                term.contribution = term.weight_used * value;
            }
        }
        let missing: Vec<&str> = terms.iter().filter(|t| t.value.is_none()).map(|t| t.name).collect();
        let note = match missing.len() {
            0 => None,
            n if n == terms.len() => Some("no term can be computed".to_owned()),
            _ => Some(format!("{} is unknown: its weight goes to the other terms", missing.join(", "))),
        };
        let score = (there > 0.0).then(|| terms.iter().map(|t| t.contribution).sum());
        WeightedMean { score, terms, note }
    }
}

/// Mean of some numbers; `None` for no numbers.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.into_iter().fold((0.0, 0_usize), |(sum, n), value| (sum + value, n + 1));
    (n > 0).then(|| sum / n as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_missing_term_leaves_its_weight_to_the_others() {
        let terms = vec![
            WeightedTerm::new("a", 0.4, 3, Ok(1.0)),
            WeightedTerm::new("b", 0.3, 0, Err("there is no b".to_owned())),
            WeightedTerm::new("c", 0.2, 2, Ok(0.5)),
        ];
        let mean = WeightedMean::of(terms);
        assert!((mean.score.unwrap() - (0.4 + 0.1) / 0.6).abs() < 1e-12);
        assert!(mean.note.unwrap().contains("b is unknown: its weight goes"));
        assert_eq!(WeightedMean::of(vec![WeightedTerm::new("a", 1.0, 0, Err(String::new()))]).score, None);
    }

    proptest! {
        #[test]
        fn contributions_sum_to_the_score_and_stay_in_range(
            values in prop::collection::vec((0.01..1.0f64, prop::option::of(0.0..=1.0f64)), 1..7)
        ) {
            let terms = values.iter().map(|(w, v)| WeightedTerm::new("t", *w, 1, v.ok_or(String::new()))).collect();
            let mean = WeightedMean::of(terms);
            prop_assert_eq!(mean.score.is_some(), values.iter().any(|(_, v)| v.is_some()));
            if let Some(score) = mean.score {
                let sum: f64 = mean.terms.iter().map(|t| t.contribution).sum();
                prop_assert!((score - sum).abs() < 1e-9);
                prop_assert!((-1e-12..=1.0 + 1e-12).contains(&score));
            }
        }
    }
}
