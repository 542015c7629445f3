//! Deliberate failures, for tests of the state left behind: a transaction that fails at its n-th statement, a process
//! that stops there to be killed, plans with small limits.

use std::io::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use super::{Store, StoreError};

/// Variable with the number of the statement at which the process stops, counted from 1 over all transactions. Not in a
/// release build.
const STOP_AT: &str = "MNEMOSCOPE_STOP_AT_WRITE";

/// Statements that may still run before one fails; negative if none fails.
#[derive(Debug)]
pub struct FaultCounter(AtomicI64);

impl Default for FaultCounter {
    fn default() -> Self {
        FaultCounter(AtomicI64::new(-1))
    }
}

impl FaultCounter {
    /// Counts a statement before it runs.
    ///
    /// # Errors
    /// This statement is the one to fail.
    pub(super) fn step(&self) -> Result<(), StoreError> {
        stop_if_asked();
        let left = self.0.load(Ordering::Relaxed);
        if left < 0 {
            return Ok(());
        }
        if left == 0 {
            let words = "this statement fails because a test asked for it".to_owned();
            return Err(sqlx::Error::InvalidArgument(words).into());
        }
        self.0.store(left - 1, Ordering::Relaxed);
        Ok(())
    }
}

/// Most bytes of a plan, below its normal limit.
#[derive(Debug)]
pub struct PlanRoom(AtomicUsize);

impl Default for PlanRoom {
    fn default() -> Self {
        PlanRoom(AtomicUsize::new(usize::MAX))
    }
}

impl Store {
    /// Limits plans to that many bytes. For tests of work that takes several plans.
    pub fn plans_within(&self, bytes: usize) {
        self.plan_room.0.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes from which a plan is full, at most `most`.
    pub(crate) fn plan_room(&self, most: usize) -> usize {
        most.min(self.plan_room.0.load(Ordering::Relaxed))
    }

    /// Makes every statement of a writing transaction fail after that many further ones; `None` resets it. COMMIT
    /// counts as a statement. For tests that the database is left either as before or as after.
    pub fn fail_after(&self, statements: Option<u32>) {
        self.fault.0.store(statements.map_or(-1, i64::from), Ordering::Relaxed);
    }
}

/// Stops the process at the statement that the environment names, and prints that, so that it can be killed there.
pub(super) fn stop_if_asked() {
    static DONE: AtomicU64 = AtomicU64::new(0);
    if !cfg!(development) {
        return;
    }
    let Some(stop) = std::env::var(STOP_AT).ok().and_then(|n| n.parse::<u64>().ok()) else { return };
    let number = DONE.fetch_add(1, Ordering::Relaxed) + 1;
    if number == stop {
        let mut out = std::io::stderr().lock();
        let _ = writeln!(out, "stopped at statement {number}");
        let _ = out.flush();
        loop {
            std::thread::park();
        }
    }
}
