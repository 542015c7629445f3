//! Durations of the four stages of recall, and its cost in tokens, from the trail of accesses.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use crate::memory::packed::records::{RecordSorter, RecordStream};
use crate::memory::packed::space::MakeSpace;
use crate::recall::understand::canvas::OTHERS;
use crate::recall::understand::quality::MeanSum;

/// The four stages, in their order.
pub const STAGES: [&str; 4] = ["retrieve", "reuse", "evaluate", "retain"];

/// An access, reduced to what these statistics need.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TimedAccess<'a> {
    /// Kind as stored.
    pub kind: &'a str,
    /// Milliseconds.
    pub latency_ms: Option<f64>,
    /// Tokens that were added to the context.
    pub tokens: Option<i64>,
    /// Number of rows returned; `None` if not recorded.
    pub rows: Option<usize>,
    /// Version of the policy that ranked them.
    pub policy_version: Option<i64>,
}

/// Times of a stage or a kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyTimes {
    /// The stage, or the kind as stored.
    pub name: String,
    /// Accesses.
    pub n: usize,
    /// Accesses among these with a recorded time.
    pub timed: usize,
    /// Mean in milliseconds; `None` if no time is recorded.
    pub mean_ms: Option<f64>,
    /// Half are faster.
    pub p50_ms: Option<f64>,
    /// 19 of 20 are faster.
    pub p95_ms: Option<f64>,
}

/// Statistics from the trail of accesses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccessTrail {
    /// Accesses.
    pub n: usize,
    /// The four stages; n is 0 for one without records.
    pub stages: Vec<LatencyTimes>,
    /// By stored kind; kinds after the first 1,000, and very long ones, are combined as [`OTHERS`].
    pub kinds: Vec<LatencyTimes>,
    /// Mean tokens of a recall; `None` if not recorded.
    pub tokens: Option<f64>,
    /// Number of recalls in the mean.
    pub tokens_n: usize,
    /// Mean number of rows of the recalls that list them; `None` if no recall lists a row, so that the trail does not
    /// record them.
    pub rows: Option<f64>,
    /// Share of these recalls without rows; `None` as above.
    pub empty_share: Option<f64>,
    /// Recalls by policy version; those without one are under `none`.
    pub policy_versions: BTreeMap<String, usize>,
}

/// The stage of an access by its kind: `reuse`, `evaluate` or `retain` if the word says so, otherwise retrieval.
pub fn stage(kind: &str) -> &'static str {
    let kind = kind.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if says(&["reuse", "inject"]) {
        "reuse"
    } else if says(&["evaluat", "judge"]) {
        "evaluate"
    } else if says(&["retain", "insert", "store"]) {
        "retain"
    } else {
        "retrieve"
    }
}

/// Most distinct kinds.
const KINDS: usize = 1_000;
/// Most bytes of a kind's name.
const KIND_BYTES: usize = 1 << 10;

/// Accesses of a stage or a kind.
#[derive(Debug, Default)]
struct AccessCount {
    n: usize,
    timed: usize,
}

/// Summarizes accesses, in any number: times that do not fit in memory go to scratch space.
#[derive(Debug)]
pub struct AccessTally {
    stages: [AccessCount; STAGES.len()],
    /// The number of each kind, and its accesses.
    kinds: BTreeMap<String, (u64, AccessCount)>,
    /// Times by the number of their stage or kind; stages come first.
    times: RecordSorter<2>,
    tokens: MeanSum,
    rows: MeanSum,
    empty: usize,
    policy_versions: BTreeMap<Option<i64>, usize>,
}

impl AccessTally {
    /// Creates an empty tally. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        AccessTally {
            stages: Default::default(),
            kinds: BTreeMap::new(),
            times: RecordSorter::new(space),
            tokens: MeanSum::default(),
            rows: MeanSum::default(),
            empty: 0,
            policy_versions: BTreeMap::new(),
        }
    }

    /// Adds an access. Rows and tokens only count for retrievals.
    pub fn add(&mut self, access: &TimedAccess<'_>) {
        let stage = stage(access.kind);
        let is_told =
            self.kinds.contains_key(access.kind) || self.kinds.len() < KINDS && access.kind.len() <= KIND_BYTES;
        let kind = if is_told { access.kind } else { OTHERS };
        if !self.kinds.contains_key(kind) {
            let number = (STAGES.len() + self.kinds.len()) as u64;
            self.kinds.insert(kind.to_owned(), (number, AccessCount::default()));
        }
        let time = access.latency_ms.filter(|ms| ms.is_finite()).map(in_order);
        let own = self.kinds.get_mut(kind).map(|(number, count)| (*number, count));
        let whole = (0_u64..).zip(&mut self.stages).zip(STAGES).filter(|(_, name)| *name == stage).map(|(of, _)| of);
        for (number, count) in own.into_iter().chain(whole) {
            count.n += 1;
            if let Some(time) = time {
                count.timed += 1;
                self.times.add([number, time]);
            }
        }
        if stage == "retrieve" {
            access.tokens.into_iter().for_each(|tokens| self.tokens.add(tokens as f64));
            access.rows.into_iter().for_each(|rows| self.rows.add(rows as f64));
            self.empty += usize::from(access.rows == Some(0));
            *self.policy_versions.entry(access.policy_version).or_default() += 1;
        }
    }

    /// The sums.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written or read.
    pub fn close(self) -> io::Result<AccessTrail> {
        let sorted = self.times.sorted()?;
        let mut stream = sorted.stream()?;
        let mut stages = Vec::new();
        for ((number, name), count) in (0..).zip(STAGES).zip(&self.stages) {
            stages.push(times(name, count, number, &mut stream)?);
        }
        // Times are ordered by number, kinds by name.
        let mut kinds: Vec<(&String, &(u64, AccessCount))> = self.kinds.iter().collect();
        kinds.sort_unstable_by_key(|(_, (number, _))| *number);
        let mut kinds = kinds
            .into_iter()
            .map(|(name, (number, count))| times(name, count, *number, &mut stream))
            .collect::<io::Result<Vec<_>>>()?;
        kinds.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let version = |version: Option<i64>| version.map_or("none".to_owned(), |version| version.to_string());
        let are_rows_recorded = self.empty < self.rows.n;
        Ok(AccessTrail {
            n: self.stages.iter().map(|stage| stage.n).sum(),
            stages,
            kinds,
            tokens_n: self.tokens.n,
            tokens: self.tokens.mean(),
            rows: self.rows.mean().filter(|_| are_rows_recorded),
            empty_share: are_rows_recorded.then(|| self.empty as f64 / self.rows.n as f64),
            policy_versions: self.policy_versions.into_iter().map(|(of, n)| (version(of), n)).collect(),
        })
    }
}

/// Maps a finite time to a number with the same order.
fn in_order(ms: f64) -> u64 {
    let bits = ms.to_bits();
    if ms.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// The time that [`in_order`] was given.
fn out_of_order(number: u64) -> f64 {
    f64::from_bits(if number >> 63 == 0 { !number } else { number & !(1 << 63) })
}

/// Takes the next times with a number.
fn times(name: &str, count: &AccessCount, number: u64, stream: &mut RecordStream<'_, 2>) -> io::Result<LatencyTimes> {
    let place = |share: f64| (share * count.timed.saturating_sub(1) as f64).round() as usize;
    let (half, most) = (place(0.5), place(0.95));
    let (mut sum, mut p50_ms, mut p95_ms, mut at) = (MeanSum::default(), None, None, 0);
    while let Some([_, time]) = stream.next_of(number)? {
        let ms = out_of_order(time);
        sum.add(ms);
        p50_ms = if at == half { Some(ms) } else { p50_ms };
        p95_ms = if at == most { Some(ms) } else { p95_ms };
        at += 1;
    }
    Ok(LatencyTimes { name: name.to_owned(), n: count.n, timed: count.timed, mean_ms: sum.mean(), p50_ms, p95_ms })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::packed::space::tests::space;

    fn trail(accesses: &[TimedAccess<'_>]) -> AccessTrail {
        let told = |bytes| {
            let mut tally = AccessTally::new(space);
            tally.times = tally.times.within(bytes);
            accesses.iter().for_each(|access| tally.add(access));
            tally.close().unwrap()
        };
        let found = told(1 << 20);
        assert_eq!(found, told(0), "the same in a space");
        found
    }

    #[test]
    fn kinds_without_end_are_counted_together() {
        let names: Vec<String> = (0..KINDS + 50).map(|n| format!("kind {n:05}")).collect();
        let all: Vec<TimedAccess<'_>> =
            names.iter().map(|kind| TimedAccess { kind, ..TimedAccess::default() }).collect();
        let found = trail(&all);
        let others: Vec<usize> = found.kinds.iter().filter(|kind| kind.name == OTHERS).map(|kind| kind.n).collect();
        assert_eq!((found.n, found.kinds.len(), others), (KINDS + 50, KINDS + 1, vec![50]));
    }

    #[test]
    fn a_trail_that_names_no_row_does_not_say_that_recall_gave_nothing() {
        let access = |rows| TimedAccess { kind: "retrieve_cases", rows, ..TimedAccess::default() };
        let found = trail(&[access(Some(0)), access(Some(0))]);
        assert_eq!((found.n, found.rows, found.empty_share), (2, None, None));
        // An access without listed rows says nothing about their number.
        let found = trail(&[access(Some(0)), access(Some(3)), access(None)]);
        assert_eq!((found.n, found.rows, found.empty_share), (3, Some(1.5), Some(0.5)));
    }

    #[test]
    fn stages_go_by_their_words() {
        let access = |kind, ms, rows| TimedAccess {
            kind,
            latency_ms: Some(ms),
            tokens: Some(100),
            rows: Some(rows),
            policy_version: (rows > 0).then_some(2),
        };
        let all = [
            access("semantic", 10.0, 4),
            access("retrieve_cases", 30.0, 0),
            access("reuse", 5.0, 1),
            access("retain", f64::NAN, 1),
        ];
        let found = trail(&all);
        let (retrieve, retain) = (&found.stages[0], &found.stages[3]);
        assert_eq!((retrieve.n, retrieve.mean_ms, retrieve.p95_ms), (2, Some(20.0), Some(30.0)));
        assert_eq!((retain.n, retain.timed, retain.mean_ms, found.stages[2].n), (1, 0, None, 0));
        assert_eq!(
            (found.tokens, found.tokens_n, found.rows, found.empty_share),
            (Some(100.0), 2, Some(2.0), Some(0.5))
        );
        assert_eq!(found.policy_versions, BTreeMap::from([("2".to_owned(), 1), ("none".to_owned(), 1)]));
        let kinds: Vec<(&str, Option<f64>)> =
            found.kinds.iter().map(|kind| (kind.name.as_str(), kind.p50_ms)).collect();
        assert_eq!(
            kinds,
            [("retain", None), ("retrieve_cases", Some(30.0)), ("reuse", Some(5.0)), ("semantic", Some(10.0))]
        );
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_a_sorted_list(times in prop::collection::vec(-1e9..1e9f64, 1..60)) {
            let all: Vec<TimedAccess<'_>> = times
                .iter()
                .zip(["episodic", "semantic"].iter().cycle())
                .map(|(ms, kind)| TimedAccess { kind, latency_ms: Some(*ms), ..TimedAccess::default() })
                .collect();
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
            let found = trail(&all).stages.swap_remove(0);
            prop_assert_eq!((found.timed, found.p50_ms, found.p95_ms), (sorted.len(), Some(at(0.5)), Some(at(0.95))));
        }
    }
}
