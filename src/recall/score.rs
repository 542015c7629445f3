//! The breakdown of a score: named terms that sum to it.

use serde::Serialize;

/// One term of a score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// Name of the term, as in `--format json`.
    pub name: &'static str,
    /// Value that was found, most often in 0..1.
    pub value: f64,
    /// Factor by which the formula multiplies the value.
    pub weight: f64,
    /// Contribution to the score: value x weight.
    pub contribution: f64,
}

impl Term {
    /// A term that adds value x weight. A value that is not finite counts as 0, so that no score is lost.
    pub fn new(name: &'static str, value: f64, weight: f64) -> Self {
        let value = if value.is_finite() { value + 0.0 } else { 0.0 };
        // Avoids -0.
        Term { name, value, weight, contribution: value * weight + 0.0 }
    }
}

/// A score and its terms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Score {
    /// The sum of the contributions, in the order of the terms; not clamped.
    pub total: f64,
    /// The terms, in the order of the formula.
    pub terms: Vec<Term>,
}

impl Score {
    /// The score that these terms sum to.
    pub fn of(terms: Vec<Term>) -> Self {
        Score { total: terms.iter().map(|t| t.contribution).sum(), terms }
    }

    /// The term with this name.
    pub fn term(&self, name: &str) -> Option<&Term> {
        self.terms.iter().find(|t| t.name == name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn terms_sum_to_the_score(parts in prop::collection::vec((prop::num::f64::ANY, -9.0..9.0f64), 0..9)) {
            let bounded = |x: f64| if x.abs() > 1e6 { 1.0 } else { x };
            let score = Score::of(parts.iter().map(|(v, w)| Term::new("t", bounded(*v), *w)).collect());
            prop_assert!(score.total.is_finite());
            let sum: f64 = score.terms.iter().rev().map(|t| t.value * t.weight).sum();
            // In another order large terms are rounded elsewhere.
            let size: f64 = score.terms.iter().map(|t| t.contribution.abs()).sum();
            prop_assert!((sum - score.total).abs() <= 1e-14 * size);
        }
    }

    #[test]
    fn a_value_that_is_no_number_counts_for_nothing() {
        let score = Score::of(vec![Term::new("a", f64::NAN, 0.3), Term::new("b", 1.0, 0.2)]);
        assert_eq!((score.total, score.term("a").map(|t| t.value)), (0.2, Some(0.0)));
        assert_eq!(score.term("c"), None);
    }
}
