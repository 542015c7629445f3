//! Deliberate failures: a transaction that fails at its n-th statement, a process that stops there to be killed, plans
//! with small limits. For tests of the state left behind.

use std::io::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use super::{Store, StoreError};

/// Names the statement at which the process stops, counted from 1 over all its transactions. Not in a release build.
const STOP_AT: &str = "MNEMOSCOPE_STOP_AT_WRITE";

/// Statements that may still be run before one fails; below 0 none fails.
#[derive(Debug)]
pub struct FaultCounter(AtomicI64);

impl Default for FaultCounter {
    fn default() -> Self {
        FaultCounter(AtomicI64::new(-1))
    }
}

impl FaultCounter {
    /// Counts a statement that is about to be run.
    ///
    /// # Errors
    /// It is the one that is to fail.
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

/// Bytes that a plan may take at most, whatever it could hold.
#[derive(Debug)]
pub struct PlanRoom(AtomicUsize);

impl Default for PlanRoom {
    fn default() -> Self {
        PlanRoom(AtomicUsize::new(usize::MAX))
    }
}

impl Store {
    /// Lets plans be full from that many bytes on. It is there for tests of what goes in several plans.
    pub fn plans_within(&self, bytes: usize) {
        self.plan_room.0.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes from which a plan is full, at most those that it could hold.
    pub(crate) fn plan_room(&self, most: usize) -> usize {
        most.min(self.plan_room.0.load(Ordering::Relaxed))
    }

    /// Lets every statement of a writing transaction fail that comes after that many further ones; none takes that back.
    /// COMMIT counts as a statement. It is there for tests: whatever fails, the database must be as before or as after.
    pub fn fail_after(&self, statements: Option<u32>) {
        self.fault.0.store(statements.map_or(-1, i64::from), Ordering::Relaxed);
    }
}

/// Stops the process for good at the statement that the environment names, and says so, so that it can be killed there.
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
