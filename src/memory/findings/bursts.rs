//! Bursts: rows of one owner that were written within a moment.

use std::io;

use super::tally::FindingTally;
use crate::memory::packed::records::{RecordSorter, unordered};

/// Rows of one owner within [`BURST_MICROS`] that make a burst.
const BURST: usize = 5;
const BURST_MICROS: i64 = 60_000_000;

/// Bursts among rows given by two numbers for their owner, their time, and what stands for them; those of whoever began
/// first are told first.
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
    let mut found = FirstBursts { most, ..FirstBursts::default() };
    let (mut last, mut first) = (None, 0);
    let mut near: Vec<(i64, u64)> = Vec::new();
    while let Some([a, b, at, key]) = stream.next()? {
        let (of, at) = (Some((a, b)), unordered(at));
        if last != of {
            found.add(first, &near);
            near.clear();
            (last, first) = (of, at);
        } else if near.last().is_some_and(|(before, _)| at.saturating_sub(*before) > BURST_MICROS) {
            found.add(first, &near);
            near.clear();
        }
        near.push((at, key));
    }
    found.add(first, &near);
    let mut tally = FindingTally::default();
    for keys in found.close() {
        tally.group(keys.iter().filter_map(|key| id(*key)).collect(), most);
    }
    tally.count = found.count;
    Ok(tally)
}

/// The first bursts, and how many there are.
#[derive(Default)]
struct FirstBursts {
    /// Bursts that are wanted.
    most: usize,
    count: u64,
    /// Time at which whoever wrote them began to write, number of the burst, and hashes of the ids of its rows.
    held: Vec<(i64, u64, Vec<u64>)>,
}

impl FirstBursts {
    /// Takes rows of one person and session that are near each other in time; `first` is the time of the first row of all.
    fn add(&mut self, first: i64, near: &[(i64, u64)]) {
        if near.len() < BURST {
            return;
        }
        for burst in runs(near) {
            self.count += 1;
            self.held.push((first, self.count, burst));
        }
        if self.held.len() > self.most.saturating_mul(2).saturating_add(64) {
            self.keep_first();
        }
    }

    fn keep_first(&mut self) {
        self.held.sort_unstable_by_key(|(first, number, _)| (*first, *number));
        self.held.truncate(self.most.max(1));
    }

    fn close(&mut self) -> impl Iterator<Item = &[u64]> {
        self.keep_first();
        self.held.iter().map(|(.., keys)| keys.as_slice())
    }
}

/// The bursts among moments: runs in which each [`BURST`] moments in a row lie within a minute.
fn runs(times: &[(i64, u64)]) -> Vec<Vec<u64>> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let mut found: Vec<Vec<u64>> = Vec::new();
    let (mut end, mut until) = (0, 0);
    for start in 0..sorted.len() {
        while sorted.get(end).is_some_and(|(at, _)| at - sorted[start].0 <= BURST_MICROS) {
            end += 1;
        }
        if end - start < BURST {
            continue;
        }
        let more = sorted[until.max(start)..end].iter().map(|(_, key)| *key);
        match found.last_mut().filter(|_| start < until) {
            Some(burst) => burst.extend(more),
            None => found.push(more.collect()),
        }
        until = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_five_within_a_minute_and_is_counted_once() {
        let second = 1_000_000;
        let at = |seconds: &[i64]| seconds.iter().map(|s| (s * second, *s as u64)).collect::<Vec<_>>();
        assert!(runs(&at(&[0, 10, 20, 30])).is_empty());
        assert_eq!(runs(&at(&[0, 10, 20, 30, 40, 50])), [vec![0, 10, 20, 30, 40, 50]]);
        assert_eq!(runs(&at(&[0, 20, 40, 60, 80])), Vec::<Vec<u64>>::new());
        assert_eq!(runs(&at(&[0, 1, 2, 3, 4, 500, 501, 502, 503, 504])).len(), 2);
    }
}
