//! Calendar of the demo: more happens in office hours than at night, and on working days than on Sundays.

use chrono::{DateTime, Datelike, SecondsFormat, Timelike, Utc};

use super::phrase::DAYS;

/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds of a minute.
pub const MINUTE: i64 = 60 * SECOND;
/// Microseconds of an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Microseconds of a day.
pub const DAY: i64 = 24 * HOUR;
/// Length of the story, in days.
pub const LENGTH: i64 = 120;

/// The anchor that defines office hours: Monday, 2026-06-15, 16:00.
pub const REFERENCE: i64 = 1_781_539_200 * SECOND;
/// Least time between the start of the last episode and the anchor.
const LATEST: i64 = 9 * MINUTE;

/// Relative activity in each hour of the day.
const HOURS: [f64; 24] = [
    0.3, 0.15, 0.1, 0.1, 0.1, 0.2, 0.6, 2.0, 5.0, 7.5, 8.0, 7.5, 5.0, 6.0, 7.5, 7.0, 6.0, 4.0, 2.0, 1.2, 1.0, 0.9, 0.7,
    0.5,
];

/// Relative activity on each day of the week, Monday first.
const WEEKDAYS: [f64; 7] = [1.1, 1.2, 1.15, 1.1, 0.9, 0.22, 0.18];

/// Distributes the story over its days. Times are microseconds since 1970, in UTC.
#[derive(Debug)]
pub struct Calendar {
    start: i64,
    /// Share of the story that is over at the end of each hour.
    over: Vec<f64>,
}

impl Calendar {
    /// The days up to `anchor`. Busy hours are placed relative to the anchor: the same seed tells the same story, at
    /// the same age.
    pub fn new(anchor: i64) -> Calendar {
        let start = anchor - LENGTH * DAY;
        let weight = |hour: i64| {
            let moment = at(REFERENCE - LENGTH * DAY + hour * HOUR);
            HOURS[moment.hour() as usize % 24] * WEEKDAYS[moment.weekday().num_days_from_monday() as usize % 7]
        };
        let mut sum = 0.0;
        let mut over: Vec<f64> = (0..LENGTH * 24)
            .map(|hour| {
                sum += weight(hour);
                sum
            })
            .collect();
        for share in &mut over {
            *share /= sum;
        }
        Calendar { start, over }
    }

    /// Returns the start of the story.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// Returns the start of the last episode, a few minutes before the anchor.
    pub fn last(&self) -> i64 {
        self.start + LENGTH * DAY - LATEST
    }

    /// The moment at which `share` (0.0..1.0) of the story is over.
    pub fn moment(&self, share: f64) -> i64 {
        let hour = self.over.partition_point(|&over| over <= share).min(self.over.len() - 1);
        let before = if hour == 0 { 0.0 } else { self.over[hour - 1] };
        let within = ((share - before) / (self.over[hour] - before)).clamp(0.0, 1.0);
        self.start + hour as i64 * HOUR + (within * HOUR as f64) as i64
    }
}

fn at(moment: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(moment).unwrap_or_default()
}

/// The moment in the one spelling of stored times.
pub fn stamp(moment: i64) -> String {
    at(moment).to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// The moment without a zone, as some writers spell it: with a space, to the second.
pub fn naive(moment: i64) -> String {
    at(moment).format("%Y-%m-%d %H:%M:%S").to_string()
}

/// The moment in a zone two hours ahead.
pub fn zoned(moment: i64) -> String {
    at(moment + 2 * HOUR).format("%Y-%m-%dT%H:%M:%S+02:00").to_string()
}

pub fn weekday(moment: i64) -> &'static str {
    DAYS[at(moment).weekday().num_days_from_monday() as usize % 7]
}

pub fn month(moment: i64) -> String {
    at(moment).format("%B").to_string()
}

pub fn part_of_day(moment: i64) -> &'static str {
    match at(moment).hour() {
        5..=11 => "morning",
        12..=16 => "afternoon",
        17..=21 => "evening",
        _ => "night",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_rise_from_start_to_anchor() {
        let anchor = 1_781_539_200 * SECOND;
        let calendar = Calendar::new(anchor);
        let moments: Vec<i64> = (0..1_000).map(|i| calendar.moment(f64::from(i) / 1_000.0)).collect();
        assert!(moments.is_sorted_by(|a, b| a < b));
        assert!(moments[0] >= calendar.start() && moments[999] < anchor);
    }
}
