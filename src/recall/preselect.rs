//! Bounds of a row's score from its compact form: they leave few of very many rows to rank.

use super::features::RECENCY_HALF_LIFE_DAYS;
use super::rank::LIKENESS_IN_BASE;
use crate::memory::packed::preselect::Bounds;

/// More than twice the difference between two ways to compute a score.
const SLACK: f64 = 1e-9;

/// Bounds of a score that equals the likeness.
pub(crate) fn of_likeness(likeness: Bounds) -> Bounds {
    Bounds { low: likeness.low - SLACK, high: likeness.high + SLACK }
}

/// Bounds of a score of boosted recall. `recency` is in 0..1; `others` is the score of the same row without likeness
/// and recency.
pub(crate) fn of_boosted(likeness: Bounds, recency: f64, others: f64) -> Bounds {
    let score =
        |likeness: f64| LIKENESS_IN_BASE * likeness.clamp(0.0, 1.0) + (1.0 - LIKENESS_IN_BASE) * recency + others;
    Bounds { low: score(likeness.low) - SLACK, high: score(likeness.high) + SLACK }
}

/// As [`super::features::recency`], of moments in microseconds since 1970, to 12 digits.
pub(crate) fn recency(micros: i64, now: i64) -> f64 {
    let days = now.saturating_sub(micros) as f64 / 86_400e6;
    (-days.max(0.0) / RECENCY_HALF_LIFE_DAYS).exp2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::memory::{Entity, Row, time};
    use crate::recall::{features, rank};

    const NOW: &str = "2026-02-04T10:00:00.000000Z";

    proptest! {
        #[test]
        fn the_bounds_of_boosted_recall_hold_its_score(
            low in -1.5f64..1.5, wide in 0.0f64..0.2, part in 0.0f64..=1.0, age in -9i64..900, canvas in 0u8..3, felt in -2i8..3
        ) {
            let now = time::epoch_micros(NOW).unwrap();
            let micros = now - age * 86_400_000_000 / 2 - 12_345;
            let mut row = Row::empty(Entity::Episode);
            row.set("canvas_action_count", json!(canvas));
            row.set("feedback_score", json!(felt));
            let others = rank::boosted(&row, Some(0.0), "similarity", NOW).score.total;
            let likeness = low + part * wide;
            row.set("started_at", json!(time::from_epoch(micros, time::EpochUnit::Microseconds)));
            let score = rank::boosted(&row, Some(likeness), "similarity", NOW).score.total;
            let exact = features::recency(row.text("started_at"), NOW);
            prop_assert!((recency(micros, now) - exact).abs() < 1e-12);
            let bounds = of_boosted(Bounds { low, high: low + wide }, recency(micros, now), others);
            prop_assert!(bounds.hold(score), "{bounds:?} {score}");
            let bounds = of_likeness(Bounds { low, high: low + wide });
            prop_assert!(bounds.hold(likeness), "{bounds:?} {likeness}");
        }
    }
}
