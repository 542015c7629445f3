//! The forgetting curve: what is left of memories as they age, by the rule and as stored.

use serde::Serialize;

use super::mean;

/// Age from which a memory decays and counts as stale, in days.
pub const STALE_DAYS: f64 = 90.0;
/// Age after which it is archived, in days.
pub const ARCHIVE_DAYS: f64 = 180.0;
/// Days of one point of the curve.
const STEP: f64 = 30.0;
/// Points of the curve; the last one holds all that is older.
const POINTS: usize = 13;

/// What is left of a memory of that age in days: 1 until 90 days, then max(0, 1 - days / 180).
#[must_use]
pub fn left(days: f64) -> f64 {
    if days < STALE_DAYS { 1.0 } else { (1.0 - days / ARCHIVE_DAYS).max(0.0) }
}

/// An episode as far as forgetting looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AgedEpisode {
    /// Age in days.
    pub days: f64,
    /// Decay score as stored.
    pub decay: Option<f64>,
    /// How often it was recalled, as stored.
    pub accesses: Option<i64>,
    /// Whether it is archived, or taken into a digest.
    pub put_away: bool,
}

/// One point of the curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Age of the youngest, in days.
    pub from_days: f64,
    /// Age below which they are; none for the last point.
    pub to_days: Option<f64>,
    /// Episodes.
    pub episodes: usize,
    /// Of these, archived or taken into a digest.
    pub put_away: usize,
    /// What the rule leaves of them, mean in 0..1.
    pub by_rule: Option<f64>,
    /// Mean stored decay score; none where none is stored.
    pub stored: Option<f64>,
    /// Mean number of recalls, as stored.
    pub accesses: Option<f64>,
}

/// The curve, and what lies on its far side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The rule, for people.
    pub rule: &'static str,
    /// Episodes of 90 days and more that are still in place.
    pub stale: usize,
    /// Episodes of 180 days and more that the rule would have archived and that are still in place.
    pub overdue: usize,
    /// From young to old; empty without episodes.
    pub points: Vec<CurvePoint>,
}

/// The curve of episodes; times in the future count as new.
#[must_use]
pub fn curve(episodes: &[AgedEpisode]) -> Curve {
    let place = |e: &AgedEpisode| ((e.days.max(0.0) / STEP) as usize).min(POINTS - 1);
    let mut groups: Vec<Vec<&AgedEpisode>> = vec![Vec::new(); POINTS];
    for episode in episodes {
        if let Some(group) = groups.get_mut(place(episode)) {
            group.push(episode);
        }
    }
    let in_place = |from: f64| episodes.iter().filter(|e| !e.put_away && e.days >= from).count();
    let point = |(i, group): (usize, &Vec<&AgedEpisode>)| CurvePoint {
        from_days: i as f64 * STEP,
        to_days: (i + 1 < POINTS).then(|| (i + 1) as f64 * STEP),
        episodes: group.len(),
        put_away: group.iter().filter(|e| e.put_away).count(),
        by_rule: mean(group.iter().map(|e| left(e.days))),
        stored: mean(group.iter().filter_map(|e| e.decay)),
        accesses: mean(group.iter().filter_map(|e| e.accesses).map(|n| n as f64)),
    };
    let last = groups.iter().rposition(|g| !g.is_empty()).map_or(0, |i| i + 1);
    Curve {
        rule: "1 until 90 days, then max(0, 1 - days / 180); archived after 180 days",
        stale: in_place(STALE_DAYS),
        overdue: in_place(ARCHIVE_DAYS),
        points: groups.iter().take(last).enumerate().map(point).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_fade_from_ninety_days_on() {
        for (days, expected) in [(0.0, 1.0), (89.9, 1.0), (90.0, 0.5), (135.0, 0.25), (180.0, 0.0), (400.0, 0.0)] {
            assert!((left(days) - expected).abs() < 1e-12, "{days}");
        }
    }

    #[test]
    fn the_curve_counts_what_is_stale_and_still_in_place() {
        let aged = |days, put_away| AgedEpisode { days, put_away, decay: Some(0.5), accesses: Some(2) };
        let found = curve(&[aged(-1.0, false), aged(95.0, false), aged(200.0, true), aged(9_000.0, false)]);
        assert_eq!((found.stale, found.overdue, found.points.len()), (2, 1, 13));
        let (first, old) = (&found.points[0], &found.points[12]);
        assert_eq!((first.episodes, first.by_rule, old.to_days, old.by_rule), (1, Some(1.0), None, Some(0.0)));
        assert_eq!(found.points[1].stored, None);
        assert!(curve(&[]).points.is_empty());
    }
}
