//! The time zone in which times are shown, as plain data: how far it is from UTC, and since when.

use chrono::{DateTime, FixedOffset, Offset as _, Utc};

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownZone {
    /// Moments in seconds since 1970, in order, each with the seconds to add to UTC from then on. None is UTC.
    changes: Vec<(i64, i32)>,
}

impl ShownZone {
    /// A zone by its changes, in order.
    #[must_use]
    pub fn new(changes: Vec<(i64, i32)>) -> Self {
        ShownZone { changes }
    }

    /// How far it is from UTC at a moment, in seconds since 1970.
    #[must_use]
    pub fn offset(&self, at: i64) -> FixedOffset {
        let after = self.changes.partition_point(|(from, _)| *from <= at);
        // Before the first change the zone was as it was at that.
        let change = self.changes.get(after.saturating_sub(1));
        change.and_then(|(_, seconds)| FixedOffset::east_opt(*seconds)).unwrap_or(Utc.fix())
    }

    /// Its name at a moment: `UTC`, `UTC+02:00`.
    #[must_use]
    pub fn name(&self, at: DateTime<Utc>) -> String {
        let offset = self.offset(at.timestamp());
        if offset.local_minus_utc() == 0 { "UTC".to_owned() } else { format!("UTC{offset}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_that_of_the_moment() {
        let zone = ShownZone::new(vec![(0, 3_600), (1_000, 7_200), (2_000, 3_600)]);
        let offset = |at| zone.offset(at).local_minus_utc();
        assert_eq!([-5, 0, 999, 1_000, 1_999, 2_000].map(offset), [3_600, 3_600, 3_600, 7_200, 7_200, 3_600]);
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap_or_default();
        assert_eq!(zone.name(at(1_500)), "UTC+02:00");
        assert_eq!(ShownZone::default().name(at(1_500)), "UTC");
    }
}
