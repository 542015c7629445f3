//! The forgetting curve: how much of a memory is left as it ages, by the rule and as stored.

use serde::Serialize;

/// Age from which a memory decays and counts as stale, in days.
pub const STALE_DAYS: f64 = 90.0;
/// Age after which it is archived, in days.
pub const ARCHIVE_DAYS: f64 = 180.0;
/// Days of one point of the curve.
const STEP: f64 = 30.0;
/// Number of points; the last one covers everything older.
const POINTS: usize = 13;

/// Computes the share of a memory left at an age in days: 1 until 90 days, then max(0, 1 - days / 180).
pub fn left(days: f64) -> f64 {
    if days < STALE_DAYS { 1.0 } else { (1.0 - days / ARCHIVE_DAYS).max(0.0) }
}

/// An episode, reduced to what forgetting needs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AgedEpisode {
    /// Age in days.
    pub days: f64,
    /// Decay score as stored.
    pub decay: Option<f64>,
    /// Number of times the episode was recalled, as stored.
    pub accesses: Option<i64>,
    /// Whether it is archived, or merged into a digest.
    pub put_away: bool,
}

/// One point of the curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Age of the youngest, in days.
    pub from_days: f64,
    /// Upper limit of the age; `None` for the last point.
    pub to_days: Option<f64>,
    /// Episodes.
    pub episodes: usize,
    /// Number of these episodes that are archived or merged into a digest.
    pub put_away: usize,
    /// Mean share left by the rule, in 0..1.
    pub by_rule: Option<f64>,
    /// Mean stored decay score; `None` if none is stored.
    pub stored: Option<f64>,
    /// Mean number of recalls, as stored.
    pub accesses: Option<f64>,
}

/// The curve, and the episodes beyond its limits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// The rule, for people.
    pub rule: &'static str,
    /// Episodes of 90 days and more that are not archived.
    pub stale: usize,
    /// Episodes of 180 days and more that the rule would have archived but that are not.
    pub overdue: usize,
    /// From young to old.
    pub points: Vec<CurvePoint>,
}

/// Summarizes episodes one by one.
#[derive(Debug, Clone, Default)]
pub struct AgeTally {
    points: [AgeSums; POINTS],
    stale: usize,
    overdue: usize,
}

/// Sums of one point of the curve.
#[derive(Debug, Clone, Copy, Default)]
struct AgeSums {
    episodes: usize,
    put_away: usize,
    by_rule: f64,
    stored: (f64, usize),
    accesses: (f64, usize),
}

impl AgeTally {
    /// Adds an episode; one from the future counts as new.
    pub fn add(&mut self, episode: &AgedEpisode) {
        let point = ((episode.days.max(0.0) / STEP) as usize).min(POINTS - 1);
        if let Some(sums) = self.points.get_mut(point) {
            sums.episodes += 1;
            sums.put_away += usize::from(episode.put_away);
            sums.by_rule += left(episode.days);
            for (sum, value) in
                [(&mut sums.stored, episode.decay), (&mut sums.accesses, episode.accesses.map(|n| n as f64))]
            {
                sum.0 += value.unwrap_or(0.0);
                sum.1 += usize::from(value.is_some());
            }
        }
        self.stale += usize::from(!episode.put_away && episode.days >= STALE_DAYS);
        self.overdue += usize::from(!episode.put_away && episode.days >= ARCHIVE_DAYS);
    }

    /// The curve; `None` without episodes.
    pub fn curve(&self) -> Option<Curve> {
        let last = self.points.iter().rposition(|point| point.episodes > 0)?;
        let mean = |(sum, n): (f64, usize)| (n > 0).then(|| sum / n as f64);
        let point = |(i, sums): (usize, &AgeSums)| CurvePoint {
            from_days: i as f64 * STEP,
            to_days: (i + 1 < POINTS).then(|| (i + 1) as f64 * STEP),
            episodes: sums.episodes,
            put_away: sums.put_away,
            by_rule: mean((sums.by_rule, sums.episodes)),
            stored: mean(sums.stored),
            accesses: mean(sums.accesses),
        };
        Some(Curve {
            rule: "1 until 90 days, then max(0, 1 - days / 180); archived after 180 days",
            stale: self.stale,
            overdue: self.overdue,
            points: self.points.iter().take(last + 1).enumerate().map(point).collect(),
        })
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
        let curve = |episodes: &[AgedEpisode]| {
            let mut tally = AgeTally::default();
            episodes.iter().for_each(|episode| tally.add(episode));
            tally.curve()
        };
        let found = curve(&[aged(-1.0, false), aged(95.0, false), aged(200.0, true), aged(9_000.0, false)]).unwrap();
        assert_eq!((found.stale, found.overdue, found.points.len()), (2, 1, 13));
        let (first, old) = (&found.points[0], &found.points[12]);
        assert_eq!((first.episodes, first.by_rule, old.to_days, old.by_rule), (1, Some(1.0), None, Some(0.0)));
        assert_eq!(found.points[1].stored, None);
        assert_eq!(curve(&[]), None);
    }
}
