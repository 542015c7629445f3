//! The time zone in which times are shown, as plain data: its offsets from UTC over time.

use chrono::{DateTime, FixedOffset, Offset as _, Utc};

use crate::memory::time;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownZone {
    /// Moments in seconds since 1970, in order, each with the offset in seconds from then on. Empty for UTC.
    changes: Vec<(i64, i32)>,
}

impl ShownZone {
    /// A zone by its changes, in order.
    pub fn new(changes: Vec<(i64, i32)>) -> Self {
        ShownZone { changes }
    }

    /// Returns the offset from UTC at a moment, given in seconds since 1970.
    pub fn offset(&self, at: i64) -> FixedOffset {
        let after = self.changes.partition_point(|(from, _)| *from <= at);
        // Before the first change, its offset applies.
        let change = self.changes.get(after.saturating_sub(1));
        change.and_then(|(_, seconds)| FixedOffset::east_opt(*seconds)).unwrap_or(Utc.fix())
    }

    /// Adds the zone to a time written by this zone's clock. A text with a zone, an age, or no time is unchanged. In an
    /// hour that occurs twice, the first one is meant.
    pub fn spelled(&self, text: &str) -> String {
        let text = text.trim();
        let is_day = text.len() == 10 && time::canonical(text).is_some();
        let is_local = is_day || time::canonical(&format!("{text}Z")).is_some();
        let by_clock = time::epoch_micros(text).filter(|_| is_local);
        let moment = by_clock.and_then(|micros| {
            let at = |offset: FixedOffset| micros - i64::from(offset.local_minus_utc()) * 1_000_000;
            let seconds = micros.div_euclid(1_000_000);
            let near = [self.offset(seconds - DAY), self.offset(seconds + DAY)];
            let fits = near.into_iter().find(|offset| self.offset(at(*offset).div_euclid(1_000_000)) == *offset);
            time::from_epoch(at(fits.unwrap_or(near[0])), time::EpochUnit::Microseconds)
        });
        moment.unwrap_or_else(|| text.to_owned())
    }

    /// A canonical time by this zone's clock, to the minute or second, if [`Self::spelled`] turns it back into the
    /// same; else unchanged.
    pub fn written(&self, canonical: &str) -> String {
        let at = time::epoch_micros(canonical).and_then(DateTime::from_timestamp_micros);
        let local = at.map(|at| at.with_timezone(&self.offset(at.timestamp())));
        let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];
        let mut spellings = local.iter().flat_map(|local| formats.map(|format| local.format(format).to_string()));
        spellings.find(|text| self.spelled(text) == canonical).unwrap_or_else(|| canonical.to_owned())
    }

    /// Returns the name of the zone at a moment: `UTC`, `UTC+02:00`.
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

    #[test]
    fn a_time_that_names_no_zone_is_meant_by_the_clock() {
        // Berlin around the last Sunday of March 2026.
        let zone = ShownZone::new(vec![(0, 3_600), (1_774_746_000, 7_200)]);
        for (written, meant) in [
            ("2026-03-01 10:00", "2026-03-01T09:00:00.000000Z"),
            ("2026-04-01", "2026-03-31T22:00:00.000000Z"),
            ("2026-03-29T01:59:59", "2026-03-29T00:59:59.000000Z"),
            ("2026-03-29 03:00", "2026-03-29T01:00:00.000000Z"),
            ("2026-03-01 10:00Z", "2026-03-01 10:00Z"),
            ("2026-03-01T10:00:00+02:00", "2026-03-01T10:00:00+02:00"),
            ("30d", "30d"),
            ("soon", "soon"),
        ] {
            assert_eq!(zone.spelled(written), meant, "{written}");
        }
        assert_eq!(ShownZone::default().spelled("2026-04-01"), "2026-04-01T00:00:00.000000Z");
    }

    #[test]
    fn what_is_written_is_read_as_the_same_time() {
        // Berlin around the last Sunday of October 2026.
        let zone = ShownZone::new(vec![(0, 7_200), (1_792_890_000, 3_600)]);
        for (canonical, written) in [
            ("2026-03-01T09:00:00.000000Z", "2026-03-01T11:00"),
            ("2026-03-01T09:00:07.000000Z", "2026-03-01T11:00:07"),
            ("2026-03-01T09:00:07.000001Z", "2026-03-01T09:00:07.000001Z"),
            // The second of the hours that occur twice.
            ("2026-10-25T01:30:00.000000Z", "2026-10-25T01:30:00.000000Z"),
        ] {
            assert_eq!(zone.written(canonical), written);
            assert_eq!(zone.spelled(written), canonical);
        }
    }
}
