//! Processes rows in parallel, on all cores, and passes them on in their original order.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use super::fetched::{RawRow, row_size};

/// Most rows processed together: the number that the engine reads ahead meanwhile.
const ROWS: usize = 512;
/// Bytes of their values after which no row is added.
const BYTES: usize = 1 << 20;
/// Bytes below which a second core is not worth its cost.
const FEW: usize = 16 << 10;
/// Most cores used.
const CORES: usize = 8;

/// Rows waiting to be processed. The result for a row must not depend on other rows.
pub struct RowBatch<L> {
    look: L,
    rows: Vec<RawRow>,
    bytes: usize,
}

impl<T: Send, L: Fn(&RawRow) -> T + Sync> RowBatch<L> {
    /// Begins with no rows.
    pub fn new(look: L) -> Self {
        RowBatch { look, rows: Vec::new(), bytes: 0 }
    }

    /// Adds a row. Once there are enough, all are processed and passed on with their results.
    pub fn add(&mut self, row: RawRow, take: impl FnMut(RawRow, T) -> ControlFlow<()>) -> ControlFlow<()> {
        self.bytes += row_size(&row);
        self.rows.push(row);
        if self.rows.len() < ROWS && self.bytes < BYTES {
            return ControlFlow::Continue(());
        }
        self.hand_on(take)
    }

    /// Processes the waiting rows and passes them on.
    pub fn hand_on(&mut self, mut take: impl FnMut(RawRow, T) -> ControlFlow<()>) -> ControlFlow<()> {
        let rows = std::mem::take(&mut self.rows);
        let lanes = if std::mem::take(&mut self.bytes) < FEW { 1 } else { cores().min(rows.len().max(1)) };
        let mut looked = looks(&rows, &self.look, lanes);
        for (at, row) in rows.into_iter().enumerate() {
            let Some(look) = looked[at % lanes].next() else { break };
            take(row, look)?;
        }
        ControlFlow::Continue(())
    }
}

/// Processes every row: lane `n` of the result holds rows `n`, `n + lanes` and so on.
fn looks<T: Send>(rows: &[RawRow], look: &(impl Fn(&RawRow) -> T + Sync), lanes: usize) -> Vec<std::vec::IntoIter<T>> {
    let lane = |n: usize| rows.iter().skip(n).step_by(lanes).map(look).collect::<Vec<T>>().into_iter();
    on_lanes(lanes, lane)
}

/// Runs the work of each lane, from 0, in parallel; returns the results.
pub(super) fn on_lanes<T: Send>(lanes: usize, lane: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let lane = &lane;
    thread::scope(|scope| {
        let others: Vec<_> =
            (1..lanes).map(|n| (n, thread::Builder::new().spawn_scoped(scope, move || lane(n)))).collect();
        let mut all = vec![lane(0)];
        for (n, other) in others {
            // If no further thread can be started, this one does its work too.
            let done = match other.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(done)) => done,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(_) => lane(n),
            };
            all.push(done);
        }
        all
    })
}

/// Processes each item in parallel; returns the results in order.
pub(super) fn on_each<L: Send, T: Send>(all: &mut [L], work: impl Fn(&mut L) -> T + Sync) -> Vec<T> {
    let each: Vec<Mutex<&mut L>> = all.iter_mut().map(Mutex::new).collect();
    on_lanes(each.len(), |lane| work(&mut each[lane].lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Number of cores to use.
pub(super) fn cores() -> usize {
    static KNOWN: OnceLock<usize> = OnceLock::new();
    *KNOWN.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get).min(CORES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fetched::FetchedValue;

    #[test]
    fn rows_are_handed_on_in_their_order_each_with_its_own_look() {
        for length in [0, 40, 5_000] {
            let mut seen = Vec::new();
            let mut batch = RowBatch::new(|row: &RawRow| row.first().cloned());
            let mut take = |row: RawRow, look: Option<FetchedValue>| {
                assert_eq!(row.first().cloned(), look);
                seen.extend(row.into_iter().next());
                ControlFlow::Continue(())
            };
            for n in 0..3_001 {
                let row = vec![FetchedValue::Integer(n), FetchedValue::Text("x".repeat(length))];
                assert!(batch.add(row, &mut take).is_continue());
            }
            assert!(batch.hand_on(&mut take).is_continue());
            assert_eq!(seen, (0..3_001).map(FetchedValue::Integer).collect::<Vec<_>>(), "{length}");
        }
    }

    #[test]
    fn who_takes_the_rows_may_break_off() {
        let mut batch = RowBatch::new(|_: &RawRow| ());
        let mut taken = 0;
        let mut take = |_: RawRow, ()| {
            taken += 1;
            if taken == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let all = (0..2_000).try_for_each(|n| batch.add(vec![FetchedValue::Integer(n)], &mut take));
        assert!(all.is_break());
        assert_eq!(taken, 3);
    }
}
