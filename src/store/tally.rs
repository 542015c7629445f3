//! Number of rows that this process has read and expects to read, for progress reports.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

static READ: AtomicU64 = AtomicU64::new(0);
static EXPECTED: AtomicU64 = AtomicU64::new(0);
/// Whether progress is reported: only then are rows counted before they are read.
static IS_TOLD: AtomicBool = AtomicBool::new(false);
/// Whether [`EXPECTED`] covers everything to be read.
static IS_WHOLE: AtomicBool = AtomicBool::new(false);

/// Turns progress reports on.
pub fn begin() {
    IS_TOLD.store(true, Ordering::Relaxed);
}

/// Whether progress is reported.
pub(super) fn is_told() -> bool {
    IS_TOLD.load(Ordering::Relaxed)
}

/// Counts rows that were read.
pub(super) fn read(rows: usize) {
    READ.fetch_add(rows as u64, Ordering::Relaxed);
}

/// Adds the rows expected from a new read, unless the total has been announced.
pub(super) fn expect(rows: u64) {
    if !IS_WHOLE.load(Ordering::Relaxed) {
        EXPECTED.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Announces the total number of rows to read from now on.
pub(super) fn expect_whole(rows: u64) {
    EXPECTED.store(READ.load(Ordering::Relaxed) + rows, Ordering::Relaxed);
    IS_WHOLE.store(true, Ordering::Relaxed);
}

/// Rows read so far, and rows expected from all reads begun, as far as known.
pub fn rows() -> (u64, u64) {
    (READ.load(Ordering::Relaxed), EXPECTED.load(Ordering::Relaxed))
}
