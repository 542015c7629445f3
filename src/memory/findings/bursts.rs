//! Bursts: rows of one owner that were written within a moment.

use std::collections::VecDeque;
use std::io;

use super::tally::{FindingTally, GROUPED};
use crate::memory::first_of::FirstOf;
use crate::memory::packed::records::{RecordSorter, unordered};

/// Rows of one owner within [`BURST_MICROS`] that make a burst.
const BURST: usize = 5;
const BURST_MICROS: i64 = 60_000_000;

/// Bursts among rows given by two numbers for their owner, their time, and what stands for them: runs in which each
/// [`BURST`] rows in a row lie within a minute. Those of whoever began first are told first.
///
/// # Errors
/// What did not fit in memory could not be kept in a file.
pub(super) fn bursts(
    rows: RecordSorter<4>,
    most: usize,
    id: impl Fn(u64) -> Option<String>,
) -> io::Result<FindingTally> {
    let sorted = rows.sorted()?;
    let mut stream = sorted.stream()?;
    let mut found = FirstBursts(FirstOf::new(most.max(1)));
    let mut course = OwnerCourse::default();
    let mut last = None;
    while let Some([a, b, at, key]) = stream.next()? {
        if last.replace((a, b)) != Some((a, b)) {
            found.add(std::mem::replace(&mut course, OwnerCourse { first: unordered(at), ..OwnerCourse::default() }));
        }
        course.take(unordered(at), key, &mut found);
    }
    found.add(course);
    let mut tally = FindingTally::default();
    let count = found.0.count();
    for (.., keys) in found.0.in_order() {
        tally.group(keys.into_iter().filter_map(&id).collect(), false, most);
    }
    tally.count = count;
    Ok(tally)
}

/// The rows of one owner as they come, by time.
#[derive(Default)]
struct OwnerCourse {
    /// Time of the first row of all.
    first: i64,
    /// The latest rows, [`BURST`] at most: time, and what stands for them.
    latest: VecDeque<(i64, u64)>,
    /// The first rows of the burst that continues, or that was the last one.
    burst: Vec<u64>,
    /// Rows after the last one that belongs to it.
    beyond: usize,
}

impl OwnerCourse {
    fn take(&mut self, at: i64, key: u64, found: &mut FirstBursts) {
        self.latest.push_back((at, key));
        if self.latest.len() > BURST {
            self.latest.pop_front();
        }
        self.beyond += 1;
        let since = self.latest.front().map_or(at, |(since, _)| *since);
        if self.latest.len() < BURST || at.saturating_sub(since) > BURST_MICROS {
            return;
        }
        if self.beyond >= BURST {
            found.add_burst(self.first, std::mem::take(&mut self.burst));
        }
        let more = self.latest.iter().skip(BURST.saturating_sub(self.beyond)).map(|(_, key)| *key);
        self.burst.extend(more.take(GROUPED.saturating_sub(self.burst.len())));
        self.beyond = 0;
    }
}

/// Bursts: the time at which whoever wrote them began to write, number of the burst, and what stands for its first rows.
struct FirstBursts(FirstOf<(i64, u64, Vec<u64>)>);

impl FirstBursts {
    /// Takes the last burst of an owner.
    fn add(&mut self, course: OwnerCourse) {
        self.add_burst(course.first, course.burst);
    }

    fn add_burst(&mut self, first: i64, burst: Vec<u64>) {
        if !burst.is_empty() {
            self.0.add((first, self.0.count(), burst));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::packed::records::ordered;
    use crate::memory::packed::space::tests::space;

    fn told(seconds: &[i64]) -> (u64, Vec<String>) {
        let mut rows = RecordSorter::new(space);
        seconds.iter().for_each(|s| rows.add([1, 2, ordered(s * 1_000_000), *s as u64]));
        let found = bursts(rows, 9, |key| Some(key.to_string())).unwrap();
        (found.count, found.examples)
    }

    #[test]
    fn a_burst_is_five_within_a_minute_and_is_counted_once() {
        assert_eq!(told(&[0, 10, 20, 30]), (0, Vec::new()));
        assert_eq!(told(&[0, 20, 40, 60, 80]).0, 0);
        let one = |all: &[i64]| (1, all.iter().map(i64::to_string).collect::<Vec<_>>());
        assert_eq!(told(&[0, 10, 20, 30, 40, 50]), one(&[0, 10, 20, 30, 40, 50]));
        // Neighbours that share a row are one.
        assert_eq!(told(&[0, 1, 2, 3, 4, 61, 62, 63, 64]), one(&[0, 1, 2, 3, 4, 61, 62, 63, 64]));
        assert_eq!(told(&[0, 1, 2, 3, 4, 500, 501, 502, 503, 504]).0, 2);
        assert_eq!(told(&[0, 1, 2, 3, 4, 200, 500, 501, 502, 503, 504]).1.len(), 10);
    }

    #[test]
    fn of_a_long_burst_the_first_rows_are_told() {
        let mut rows = RecordSorter::new(space).within(100);
        (0..5_000).for_each(|key| rows.add([1, 2, ordered(7), key]));
        let found = bursts(rows, 9, |key| Some(key.to_string())).unwrap();
        assert_eq!((found.count, found.examples.len(), found.together.len()), (1, GROUPED, GROUPED));
        assert_eq!((found.examples[0].as_str(), found.examples[999].as_str()), ("0", "999"));
    }
}
