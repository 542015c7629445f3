//! Size of the next batch, speed of a job and time left: pure arithmetic on durations.

use std::collections::VecDeque;
use std::time::Duration;

/// Desired duration of a batch: its end is how soon a job stops.
pub const TARGET: Duration = Duration::from_millis(80);

/// Rows of the first batch.
const FIRST: usize = 500;
/// Default minimum of rows per batch.
const FEWEST: usize = 20;
/// Default maximum of rows per batch.
const MOST: usize = 20_000;

/// Batches that the moving average covers.
const WINDOW: usize = 12;
/// Batches before a rate is reported.
const SURE: usize = 3;

/// Chooses the batch size: towards `TARGET`, at most doubling, halving after conflicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizing {
    size: usize,
    most: usize,
    fixed: bool,
}

impl Sizing {
    /// Uses the operator's settings: a fixed size, or at most a number of rows per second.
    pub fn new(batch: Option<usize>, rate: Option<f64>) -> Self {
        // At most half a second's rows, so that a rate holds within a second rather than within a minute.
        let most = rate.map_or(MOST, |r| ((r / 2.0).ceil() as usize).clamp(1, MOST));
        match batch {
            Some(size) => Sizing { size: size.max(1).min(most), most, fixed: true },
            None => Sizing { size: FIRST.min(most), most, fixed: false },
        }
    }

    /// Rows of the next batch.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Adjusts the size after a batch of this many rows and its duration.
    pub fn took(&mut self, rows: usize, elapsed: Duration) {
        // The last batch is often short and says nothing about the size.
        if self.fixed || rows * 2 < self.size {
            return;
        }
        let wanted = rows as f64 * TARGET.as_secs_f64() / elapsed.as_secs_f64().max(0.001);
        let (low, high) = (self.size / 2, self.size * 2);
        self.size = (wanted as usize).clamp(low.max(1), high).max(FEWEST).min(self.most).max(1);
    }

    /// Halves the batch size after a conflict: smaller batches cause fewer.
    pub fn in_the_way(&mut self) {
        self.size = (self.size / 2).max(1);
    }
}

/// Speed of a job: a moving average over its latest batches, including pauses between them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pace {
    batches: VecDeque<(usize, Duration)>,
}

impl Pace {
    /// Adjusts the rate after a batch of this many rows and its duration, including the waiting before it.
    pub fn took(&mut self, rows: usize, elapsed: Duration) {
        self.batches.push_back((rows, elapsed));
        if self.batches.len() > WINDOW {
            self.batches.pop_front();
        }
    }

    /// Rows per second; `None` before three batches.
    pub fn rate(&self) -> Option<f64> {
        if self.batches.len() < SURE {
            return None;
        }
        let rows: usize = self.batches.iter().map(|(rows, _)| rows).sum();
        let time: f64 = self.batches.iter().map(|(_, elapsed)| elapsed.as_secs_f64()).sum();
        (time > 0.0).then(|| rows as f64 / time)
    }

    /// Seconds for the remaining rows; `None` before three batches, or if nothing moves.
    pub fn eta(&self, left: u64) -> Option<f64> {
        self.rate().filter(|rate| *rate > 0.0).map(|rate| left as f64 / rate)
    }
}

/// Computes the pause after a batch that keeps a rate (rows per second).
pub fn rest(rows: usize, rate: Option<f64>, elapsed: Duration) -> Duration {
    let Some(rate) = rate.filter(|r| *r > 0.0) else { return Duration::ZERO };
    Duration::from_secs_f64((rows as f64 / rate).min(3_600.0)).saturating_sub(elapsed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn batches_grow_towards_the_target_and_shrink_back() {
        let mut sizing = Sizing::new(None, None);
        for _ in 0..10 {
            // 4 microseconds per row: 20,000 rows take the target.
            sizing.took(sizing.size(), Duration::from_micros(4) * sizing.size() as u32);
        }
        assert_eq!(sizing.size(), 20_000);
        for _ in 0..12 {
            sizing.took(sizing.size(), Duration::from_millis(1) * sizing.size() as u32);
        }
        assert_eq!(sizing.size(), 80);
    }

    #[test]
    fn a_fixed_size_stays_and_a_rate_bounds_it() {
        let mut sizing = Sizing::new(Some(7), None);
        sizing.took(7, Duration::from_secs(9));
        assert_eq!(sizing.size(), 7);
        assert_eq!(Sizing::new(Some(1_000), Some(100.0)).size(), 50);
        assert_eq!(Sizing::new(None, Some(0.5)).size(), 1);
        assert_eq!(rest(50, Some(100.0), Duration::from_millis(100)), Duration::from_millis(400));
        assert_eq!(rest(50, None, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn no_time_is_told_before_three_batches() {
        let mut pace = Pace::default();
        for done in 0..5 {
            assert_eq!(pace.eta(100).is_some(), done >= 3, "after {done} batches");
            pace.took(10, Duration::from_secs(1));
        }
        assert_eq!(pace.rate(), Some(10.0));
        assert_eq!(pace.eta(100), Some(10.0));
    }

    proptest! {
        #[test]
        fn a_batch_never_is_empty_nor_beyond_what_was_asked(
            batch in prop::option::of(0_usize..50_000),
            rate in prop::option::of(0.1_f64..1e6),
            took in prop::collection::vec((0_u64..5_000_000, any::<bool>()), 0..30),
        ) {
            let mut sizing = Sizing::new(batch, rate);
            for (micros, in_the_way) in took {
                if in_the_way { sizing.in_the_way() } else { sizing.took(sizing.size(), Duration::from_micros(micros)) }
                prop_assert!(sizing.size() >= 1 && sizing.size() <= MOST.max(batch.unwrap_or(0)));
                if let Some(rate) = rate {
                    prop_assert!(sizing.size() as f64 <= (rate / 2.0).ceil().max(1.0));
                }
            }
        }
    }
}
