//! A moment of the past, and what a look at it is of: plain data.

use serde::Serialize;

use crate::memory::time;

/// A moment of the past, as someone names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// A time, canonical.
    Time(String),
    /// Just after an entry of the trail; 0 is before the first.
    Entry(i64),
}

impl Moment {
    /// Reads a time, an age, or the number of an entry.
    #[must_use]
    pub fn parse(text: &str, now: chrono::DateTime<chrono::Utc>) -> Option<Moment> {
        let number = text.trim().parse::<i64>().ok().filter(|seq| *seq >= 0).map(Moment::Entry);
        number.or_else(|| time::parse_moment(text, now).map(Moment::Time))
    }
}

/// Moment of a view of the past, and what the view cannot show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AsOf {
    /// The moment, canonical.
    pub at: String,
    /// The last entry of the trail that is not taken back; none without a trail.
    pub seq: Option<i64>,
    /// Entries that are taken back.
    pub taken_back: usize,
    /// Facts that are not known, for users.
    pub unknown: Vec<String>,
}
