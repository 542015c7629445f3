//! Bursts: rows of one owner written within a short time.

use std::collections::VecDeque;
use std::io;

use super::marks::LINKED;
use super::tally::{FindingTally, GROUPED};
use crate::memory::first_of::FirstOf;
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::records::{RecordSorter, unordered};
use crate::memory::packed::space::MakeSpace;

/// Rows of one owner within [`BURST_MICROS`] that make a burst.
const BURST: usize = 5;
const BURST_MICROS: i64 = 60_000_000;

/// Bursts among rows given by two numbers for their owner, their time, and what stands for them: runs in which each
/// [`BURST`] rows in a row lie within a minute. Those of whoever began first are told first. The same rows may be given by
/// another kind of owner next: those that are in a burst already are left out.
///
/// # Errors
/// Data that did not fit in memory could not be written to a file.
pub(super) fn bursts(
    owners: impl IntoIterator<Item = RecordSorter<4>>,
    space: MakeSpace,
    most: usize,
    id: impl Fn(u64) -> Option<String>,
) -> io::Result<FindingTally> {
    let mut found = FirstBursts(FirstOf::new(most.max(1)));
    let mut bursting = RecordSorter::new(space).within(LINKED);
    for rows in owners {
        let told = IdTable::of(bursting.take(), |_, _| {})?;
        let sorted = rows.sorted()?;
        let mut stream = sorted.stream()?;
        let mut course = OwnerCourse::default();
        let mut last = None;
        while let Some([a, b, at, key]) = stream.next()? {
            if told.find(key).is_some() {
                continue;
            }
            if last.replace((a, b)) != Some((a, b)) {
                let begun = OwnerCourse { first: unordered(at), ..OwnerCourse::default() };
                found.add(std::mem::replace(&mut course, begun));
            }
            course.take(unordered(at), key, &mut found).into_iter().for_each(|key| bursting.add([key]));
        }
        found.add(course);
        told.check()?;
    }
    let mut tally = FindingTally::default();
    let count = found.0.count();
    for (.., keys) in found.0.in_order() {
        tally.group(keys.into_iter().filter_map(&id).collect(), false, most);
    }
    tally.count = count;
    Ok(tally)
}

/// The rows of one owner in time order.
#[derive(Default)]
struct OwnerCourse {
    /// Time of the owner's first row.
    first: i64,
    /// The latest rows, at most [`BURST`]: time and number.
    latest: VecDeque<(i64, u64)>,
    /// The first rows of the current or last burst.
    burst: Vec<u64>,
    /// Rows after the last one of the burst.
    beyond: usize,
}

impl OwnerCourse {
    /// Takes the next row, and gives those that turn out to be in a burst.
    fn take(&mut self, at: i64, key: u64, found: &mut FirstBursts) -> Vec<u64> {
        self.latest.push_back((at, key));
        if self.latest.len() > BURST {
            self.latest.pop_front();
        }
        self.beyond += 1;
        let since = self.latest.front().map_or(at, |(since, _)| *since);
        if self.latest.len() < BURST || at.saturating_sub(since) > BURST_MICROS {
            return Vec::new();
        }
        if self.beyond >= BURST {
            found.add_burst(self.first, std::mem::take(&mut self.burst));
        }
        let more = self.latest.iter().skip(BURST.saturating_sub(self.beyond)).map(|(_, key)| *key);
        let more: Vec<u64> = more.collect();
        self.burst.extend(more.iter().take(GROUPED.saturating_sub(self.burst.len())));
        self.beyond = 0;
        more
    }
}

/// Bursts: time of their owner's first row, number of the burst, and its first rows.
struct FirstBursts(FirstOf<(i64, u64, Vec<u64>)>);

impl FirstBursts {
    /// Adds the last burst of an owner.
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
        let found = bursts([rows], space, 9, |key| Some(key.to_string())).unwrap();
        (found.count, found.examples)
    }

    #[test]
    fn a_burst_is_five_within_a_minute_and_is_counted_once() {
        assert_eq!(told(&[0, 10, 20, 30]), (0, Vec::new()));
        assert_eq!(told(&[0, 20, 40, 60, 80]).0, 0);
        let one = |all: &[i64]| (1, all.iter().map(i64::to_string).collect::<Vec<_>>());
        assert_eq!(told(&[0, 10, 20, 30, 40, 50]), one(&[0, 10, 20, 30, 40, 50]));
        // Neighbouring bursts that share a row are one.
        assert_eq!(told(&[0, 1, 2, 3, 4, 61, 62, 63, 64]), one(&[0, 1, 2, 3, 4, 61, 62, 63, 64]));
        assert_eq!(told(&[0, 1, 2, 3, 4, 500, 501, 502, 503, 504]).0, 2);
        assert_eq!(told(&[0, 1, 2, 3, 4, 200, 500, 501, 502, 503, 504]).1.len(), 10);
    }

    #[test]
    fn rows_in_a_burst_of_one_owner_are_in_no_further_one() {
        let of = |rows: &[(u64, u64)]| {
            let mut sorter = RecordSorter::new(space);
            rows.iter().for_each(|(owner, key)| sorter.add([1, *owner, ordered(0), *key]));
            sorter
        };
        // Rows 1 to 6 are of one agent; 4 to 10 are in one session.
        let agents = of(&[(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 7), (3, 8), (4, 9), (5, 10)]);
        let sessions = of(&[(6, 4), (6, 5), (6, 6), (6, 7), (6, 8), (6, 9), (6, 10)]);
        assert_eq!(bursts([agents, sessions], space, 9, |key| Some(key.to_string())).unwrap().count, 1);
        let agents = of(&[(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6)]);
        let sessions = of(&[(6, 1), (6, 2), (6, 3), (6, 4), (6, 5), (6, 6)]);
        assert_eq!(bursts([agents, sessions], space, 9, |key| Some(key.to_string())).unwrap().examples.len(), 6);
    }

    #[test]
    fn of_a_long_burst_the_first_rows_are_told() {
        let mut rows = RecordSorter::new(space).within(100);
        (0..5_000).for_each(|key| rows.add([1, 2, ordered(7), key]));
        let found = bursts([rows], space, 9, |key| Some(key.to_string())).unwrap();
        assert_eq!((found.count, found.examples.len(), found.together.len()), (1, GROUPED, GROUPED));
        assert_eq!((found.examples[0].as_str(), found.examples[999].as_str()), ("0", "999"));
    }
}
