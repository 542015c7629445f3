//! Compares scores (utilities, rewards, feedback scores), whatever numeric type a column stores them in.

/// Difference up to which two scores are equal. A 32-bit column (`real`) stores a score within 3e-8; a sum or mean of
/// such scores is off by a little more. The smallest signal moves a utility by 0.05.
const TOLERANCE: f64 = 1e-6;

/// Whether two scores are equal; false if one is NaN.
pub fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() < TOLERANCE
}

/// Whether two optional scores are equal: both unknown, or both known and equal.
pub fn is_same_or_unknown(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => is_same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Whether a score is at most a limit.
pub fn is_at_most(score: f64, limit: f64) -> bool {
    score <= limit || is_same(score, limit)
}

/// Whether a score is below a limit, and not equal to it.
pub fn is_below(score: f64, limit: f64) -> bool {
    score < limit && !is_same(score, limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_the_same_in_a_column_of_32_bits() {
        for hundredths in 0_u8..=100 {
            let score = f64::from(hundredths) / 100.0;
            let kept = f64::from(score as f32);
            assert!(is_same(score, kept) && is_at_most(kept, score) && !is_below(kept, score), "{score}");
            assert!(!is_same(score, score + 0.01) && is_below(kept, score + 0.01), "{score}");
            assert!(!is_at_most(score + 0.01, kept), "{score}");
        }
        assert!(is_same_or_unknown(None, None) && is_same_or_unknown(Some(0.7), Some(f64::from(0.7_f32))));
        assert!(!is_same_or_unknown(Some(0.0), None) && !is_same(f64::NAN, f64::NAN));
    }
}
