//! A time in the past, and what a view of it covers, as plain data.

use serde::Serialize;

use crate::memory::time;

/// A time in the past, as requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// A time, canonical.
    Time(String),
    /// Just after an entry of the trail; 0 is before the first.
    Entry(i64),
}

impl Moment {
    /// Reads a time, an age, or the number of an entry.
    pub fn parse(text: &str, now: chrono::DateTime<chrono::Utc>) -> Option<Moment> {
        let number = text.trim().parse::<i64>().ok().filter(|seq| *seq >= 0).map(Moment::Entry);
        number.or_else(|| time::parse_moment(text, now).map(Moment::Time))
    }
}

/// Time of a view of the past, and what the view cannot show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AsOf {
    /// The moment, canonical.
    pub at: String,
    /// The last entry of the trail that is not reverted; `None` without a trail.
    pub seq: Option<i64>,
    /// Number of reverted entries.
    pub taken_back: usize,
    /// Unknown facts, for users.
    pub unknown: Vec<String>,
}
