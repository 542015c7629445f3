//! Reward of a case: the value of its outcome, adjusted by user feedback.

use super::vocabulary;

/// Change of a reward by entirely good or bad feedback.
pub const FEEDBACK_WEIGHT: f64 = 0.25;

/// Reward from which a case is positive in training.
pub const POSITIVE: f64 = 0.5;

/// Reward of an outcome alone, in any of its spellings: success 1, partial 0.5, failure 0, aborted 0.2; `None` for
/// other words.
#[must_use]
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
#[must_use]
pub fn reward(outcome: &str, feedback: Option<f64>) -> Option<f64> {
    Some(moved(of_outcome(outcome)?, feedback))
}

/// A reward, in 0..1, moved by feedback, which is clamped to its range.
#[must_use]
pub fn moved(reward: f64, feedback: Option<f64>) -> f64 {
    let by = feedback.filter(|f| f.is_finite()).unwrap_or(0.0).clamp(-1.0, 1.0) * FEEDBACK_WEIGHT;
    (reward + by).clamp(0.0, 1.0)
}

/// The binary label that training uses: reward >= [`POSITIVE`].
#[must_use]
pub fn label(reward: f64) -> bool {
    reward >= POSITIVE
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
