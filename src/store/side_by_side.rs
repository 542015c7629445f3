//! Processes rows in parallel, on all cores, and passes them on in their original order.

use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use super::fetched::{RawRow, row_size};

/// Rows that are looked at together, at most: as many as the engine reads ahead meanwhile.
const ROWS: usize = 512;
/// Bytes of their values, from which no further row joins them.
const BYTES: usize = 1 << 20;
/// Bytes below which a second core costs more than it gives.
const FEW: usize = 16 << 10;
/// Cores that are used, at most.
const CORES: usize = 8;

/// Rows that wait to process. What a look gives must not depend on other rows.
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

    /// Adds a row. As soon as there are enough, each is looked at and handed on with what the look gave.
    pub fn add(&mut self, row: RawRow, take: impl FnMut(RawRow, T) -> ControlFlow<()>) -> ControlFlow<()> {
        self.bytes += row_size(&row);
        self.rows.push(row);
        if self.rows.len() < ROWS && self.bytes < BYTES {
            return ControlFlow::Continue(());
        }
        self.hand_on(take)
    }

    /// Hands on the rows that still wait.
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

/// Looks at every row: lane `n` of the answer is about rows `n`, `n + lanes` and so on.
fn looks<T: Send>(rows: &[RawRow], look: &(impl Fn(&RawRow) -> T + Sync), lanes: usize) -> Vec<std::vec::IntoIter<T>> {
    let lane = |n: usize| rows.iter().skip(n).step_by(lanes).map(look).collect::<Vec<T>>().into_iter();
    on_lanes(lanes, lane)
}

/// Does the work of each lane, from 0, at the same time; gives what each gave.
pub(super) fn on_lanes<T: Send>(lanes: usize, lane: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let lane = &lane;
    thread::scope(|scope| {
        let others: Vec<_> =
            (1..lanes).map(|n| (n, thread::Builder::new().spawn_scoped(scope, move || lane(n)))).collect();
        let mut all = vec![lane(0)];
        for (n, other) in others {
            // Where no further thread may begin, this one does its work too.
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

/// Does work with each of some things at the same time; gives what each gave, in their order.
pub(super) fn on_each<L: Send, T: Send>(all: &mut [L], work: impl Fn(&mut L) -> T + Sync) -> Vec<T> {
    let each: Vec<Mutex<&mut L>> = all.iter_mut().map(Mutex::new).collect();
    on_lanes(each.len(), |lane| work(&mut each[lane].lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Cores that are used.
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
