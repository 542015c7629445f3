//! Numbers of rows that this process has read, and that it expects to read, for progress reports.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static READ: AtomicU64 = AtomicU64::new(0);
static EXPECTED: AtomicU64 = AtomicU64::new(0);
/// True when someone says how far it is: only then are rows counted before they are read.
static IS_TOLD: AtomicBool = AtomicBool::new(false);
/// All that is to be read is in [`EXPECTED`].
static IS_WHOLE: AtomicBool = AtomicBool::new(false);

/// Notes that someone says how far it is from now on.
pub fn begin() {
    IS_TOLD.store(true, Ordering::Relaxed);
}

/// Whether someone says how far it is.
pub(super) fn is_told() -> bool {
    IS_TOLD.load(Ordering::Relaxed)
}

/// Adds rows that were read.
pub(super) fn read(rows: usize) {
    READ.fetch_add(rows as u64, Ordering::Relaxed);
}

/// Adds rows that a read that begins now is about to give, unless all were told before.
pub(super) fn expect(rows: u64) {
    if !IS_WHOLE.load(Ordering::Relaxed) {
        EXPECTED.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Tells how many rows there are to read from now on, together.
pub(super) fn expect_whole(rows: u64) {
    EXPECTED.store(READ.load(Ordering::Relaxed) + rows, Ordering::Relaxed);
    IS_WHOLE.store(true, Ordering::Relaxed);
}

/// Rows that were read, and rows that the reads which have begun are about to give together, as far as that is known.
#[must_use]
pub fn rows() -> (u64, u64) {
    (READ.load(Ordering::Relaxed), EXPECTED.load(Ordering::Relaxed))
}
