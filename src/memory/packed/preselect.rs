//! Selects, among very many rows, those that may rank first, by bounds of their scores: few enough to compute the
//! scores.

/// Rows collected at least before hopeless ones are dropped.
const KEPT: usize = 4_096;

/// A range that contains a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    /// The number is at least this.
    pub low: f64,
    /// The number is at most this.
    pub high: f64,
}

impl Bounds {
    /// Whether they contain a number.
    pub fn hold(self, number: f64) -> bool {
        (self.low..=self.high).contains(&number)
    }

    /// Whether they determine the number.
    pub fn are_exact(self) -> bool {
        self.low >= self.high
    }
}

/// The rows that may be among the first `room` by a score, greatest first.
///
/// The score of each row is within its bounds. If `room` rows have a lower bound of at least `floor`, a row with an
/// upper bound below it scores less than all of them, and is not among the first `room` whatever the order of equal
/// scores. All others stay.
#[derive(Debug)]
pub(crate) struct Preselection {
    room: usize,
    /// The greatest lower bounds, ascending, at most `room`.
    lows: Vec<f64>,
    kept: Vec<(usize, f64)>,
    full: usize,
}

impl Preselection {
    /// Room for `room` rows.
    pub fn new(room: usize) -> Self {
        Preselection { room, lows: Vec::new(), kept: Vec::new(), full: KEPT }
    }

    fn floor(&self) -> f64 {
        if self.lows.len() < self.room {
            f64::NEG_INFINITY
        } else {
            self.lows.first().copied().unwrap_or(f64::INFINITY)
        }
    }

    /// Offers a row by its index.
    pub fn offer(&mut self, at: usize, bounds: Bounds) {
        let floor = self.floor();
        if bounds.high < floor {
            return;
        }
        self.kept.push((at, bounds.high));
        if bounds.low > floor {
            let place = self.lows.partition_point(|low| *low < bounds.low);
            self.lows.insert(place, bounds.low);
            if self.lows.len() > self.room {
                self.lows.remove(0);
            }
        }
        if self.kept.len() > self.full {
            self.drop_others();
            self.full = KEPT.max(2 * self.kept.len());
        }
    }

    fn drop_others(&mut self) {
        let floor = self.floor();
        self.kept.retain(|(_, high)| *high >= floor);
    }

    /// The indexes of the rows that may be among the first.
    pub fn close(mut self) -> Vec<usize> {
        self.drop_others();
        self.kept.into_iter().map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_rows_stay_whatever_their_scores_are(
            rows in prop::collection::vec((-5i32..5, 0u8..4, 0u8..4, 0u8..9), 0..6_000), room in 0usize..9
        ) {
            let part = |n: u8| f64::from(n) / 3.0;
            let scores: Vec<f64> = rows.iter().map(|(score, ..)| f64::from(*score) / 4.0).collect();
            let mut selection = Preselection::new(room);
            for (at, (_, below, above, _)) in rows.iter().enumerate() {
                selection.offer(at, Bounds { low: scores[at] - part(*below), high: scores[at] + part(*above) });
            }
            let kept = selection.close();
            let mut order: Vec<usize> = (0..rows.len()).collect();
            // Equal scores in an arbitrary order.
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(rows[*a].3.cmp(&rows[*b].3)).then(b.cmp(a)));
            for first in order.iter().take(room) {
                prop_assert!(kept.binary_search(first).is_ok(), "{first}");
            }
        }
    }
}
