//! The time zone of the machine, in the form that the console uses.

use chrono::{DateTime, Local, Offset as _, TimeZone as _};

use crate::console::core::zone::ShownZone;

/// Range in which the zone's changes are determined, in seconds since 1970: 1970 to 2100.
const SPAN: (i64, i64) = (0, 4_102_444_800);
/// Seconds between two probes of the zone's offset; no zone changes twice within this time.
const STRIDE: i64 = 7 * 86_400;

/// The zone that `TZ` or the machine names.
pub fn local() -> ShownZone {
    let mut changes = vec![(SPAN.0, offset(SPAN.0))];
    let mut at = SPAN.0;
    while at < SPAN.1 {
        let next = (at + STRIDE).min(SPAN.1);
        let (before, after) = (offset(at), offset(next));
        if before != after {
            changes.push((change_between(at, next, before), after));
        }
        at = next;
    }
    ShownZone::new(changes)
}

/// The first second at which the offset differs from `before`.
fn change_between(mut low: i64, mut high: i64, before: i32) -> i64 {
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset(middle) == before { low = middle } else { high = middle }
    }
    high
}

fn offset(seconds: i64) -> i32 {
    let at = DateTime::from_timestamp(seconds, 0).unwrap_or_default().naive_utc();
    Local.offset_from_utc_datetime(&at).fix().local_minus_utc()
}
