//! Utility of an episode: a score in 0..1 that signals move, always computed by replaying its whole history.

use std::cmp::Ordering;
use std::fmt;

use super::row::Row;

/// Utility before any signal, unless the data says otherwise.
pub const START: f64 = 0.5;

/// Number of the latest episodes using a memory that decide its utility.
pub const LATEST: usize = 20;

/// Utility that an episode gives to the memories it used, in 0..1: its own, or [`START`] if it is not stored.
pub fn of_use(stored: Option<f64>) -> f64 {
    stored.filter(|utility| utility.is_finite()).map_or(START, |utility| utility.clamp(0.0, 1.0))
}

/// Utility of a memory, in 0..1: the mean over the latest [`LATEST`] episodes that used it (see [`of_use`]), given
/// newest first. Of episodes with the same time, the one with the higher utility is the newer. `None` without episodes.
pub fn of_memory(newest_first: impl IntoIterator<Item = f64>) -> Option<f64> {
    let latest: Vec<f64> = newest_first.into_iter().take(LATEST).collect();
    // Summed oldest first, in the order in which an incremental sum would be built.
    (!latest.is_empty()).then(|| latest.iter().rev().sum::<f64>() / latest.len() as f64)
}

/// The latest [`LATEST`] of the episodes that used a memory, newest first.
#[derive(Debug, Clone, Default)]
pub struct LatestUses(Vec<DatedUse>);

#[derive(Debug, Clone)]
struct DatedUse {
    started: Box<str>,
    utility: f64,
    id: Box<str>,
}

impl LatestUses {
    /// Adds an episode that used the memory. It counts once; of several rows with the same id the latest counts.
    pub fn add(&mut self, episode: &Row) {
        let started = episode.text("started_at").unwrap_or_default();
        let utility = of_use(episode.number("utility"));
        let is_newer = |known: &DatedUse| started.cmp(&known.started).then(utility.total_cmp(&known.utility)).is_gt();
        if let Some(at) = self.0.iter().position(|known| *known.id == *episode.id()) {
            if !is_newer(&self.0[at]) {
                return;
            }
            self.0.remove(at);
        }
        let at = self.0.iter().position(is_newer).unwrap_or(self.0.len());
        if at < LATEST {
            self.0.insert(at, DatedUse { started: started.into(), utility, id: episode.id().into() });
            self.0.truncate(LATEST);
        }
    }

    /// Utility of the memory (see [`of_memory`]).
    pub fn utility(&self) -> Option<f64> {
        of_memory(self.0.iter().map(|known| known.utility))
    }
}

/// Signal about an episode, from the outcome of its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Signal {
    /// The user confirmed what was done.
    Confirmed,
    /// The user corrected it.
    Corrected,
    /// The user rejected it.
    Rejected,
    /// The action was undone.
    Undone,
    /// Nobody reacted.
    Ignored,
}

impl Signal {
    /// Every signal, from the best to the least significant.
    pub const ALL: &'static [Signal] =
        &[Signal::Confirmed, Signal::Corrected, Signal::Rejected, Signal::Undone, Signal::Ignored];

    /// The word used in storage and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Signal::Confirmed => "confirmed",
            Signal::Corrected => "corrected",
            Signal::Rejected => "rejected",
            Signal::Undone => "undone",
            Signal::Ignored => "ignored",
        }
    }

    /// Change of the utility, before clamping.
    pub fn delta(self) -> f64 {
        match self {
            Signal::Confirmed => 0.2,
            Signal::Corrected => -0.1,
            Signal::Rejected => -0.3,
            Signal::Undone => -0.4,
            Signal::Ignored => -0.05,
        }
    }

    /// Parses the exact word of a signal.
    pub fn parse(word: &str) -> Option<Signal> {
        Signal::ALL.iter().copied().find(|signal| signal.word() == word)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Effect of one signal in a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UtilityStep {
    /// The signal; `None` for an unknown word, which leaves the utility unchanged.
    pub signal: Option<Signal>,
    /// Utility before it, in 0..1.
    pub before: f64,
    /// Utility after it, in 0..1. Clamping may make `after - before` smaller than the signal's delta.
    pub after: f64,
}

/// A history of signals, replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct UtilityReplay {
    /// Utility before the first signal.
    pub start: f64,
    /// One step per signal, in order.
    pub steps: Vec<UtilityStep>,
}

impl UtilityReplay {
    /// Utility after the last signal, in 0..1.
    pub fn utility(&self) -> f64 {
        self.steps.last().map_or(self.start, |step| step.after)
    }

    /// Positions of the signals whose word is unknown.
    pub fn unknown(&self) -> Vec<usize> {
        let unknown = |(position, step): (usize, &UtilityStep)| step.signal.is_none().then_some(position);
        self.steps.iter().enumerate().filter_map(unknown).collect()
    }
}

/// Utility before the first signal, in 0..1, from the stored one: [`START`] if that is not a number.
pub fn begun(stored: f64) -> f64 {
    if stored.is_nan() { START } else { stored.clamp(0.0, 1.0) }
}

/// Utility after a signal, in 0..1; `None` leaves it unchanged.
pub fn moved(utility: f64, signal: Option<Signal>) -> f64 {
    signal.map_or(utility, |signal| (utility + signal.delta()).clamp(0.0, 1.0))
}

/// A stored signal, reduced for a replay, ordered by time with untimed ones last. An episode may have very many.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub struct StoredSignal {
    is_undated: bool,
    at: Box<str>,
    /// Id.
    pub id: Box<str>,
    /// The signal; `None` for an unknown word.
    pub signal: Option<Signal>,
    /// Stored utility before it.
    pub before: Option<f64>,
    /// Stored utility after it.
    pub after: Option<f64>,
}

impl StoredSignal {
    /// The signal of a utility event.
    pub fn of(event: &Row) -> Self {
        StoredSignal {
            is_undated: event.text("created_at").is_none(),
            at: event.text("created_at").unwrap_or_default().into(),
            id: event.id().into(),
            signal: event.text("signal").and_then(Signal::parse),
            before: event.number("before"),
            after: event.number("after"),
        }
    }

    /// Time of it, in the canonical spelling.
    pub fn at(&self) -> Option<&str> {
        (!self.is_undated).then_some(&*self.at)
    }
}

/// Sorts signals by time.
pub fn put_in_order(signals: &mut [StoredSignal]) {
    signals.sort_unstable_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
}

/// Replays signal words, oldest first, as [`replay_signals`] does.
pub fn replay<'a>(start: f64, words: impl IntoIterator<Item = &'a str>) -> UtilityReplay {
    replay_signals(start, words.into_iter().map(Signal::parse))
}

/// Replays signals, oldest first, from `start` (see [`begun`]).
///
/// Every step is clamped to 0..1, so order matters: a signal is undone or changed by replaying the history without it
/// or with the new one, never by adding the opposite delta.
pub fn replay_signals(start: f64, signals: impl IntoIterator<Item = Option<Signal>>) -> UtilityReplay {
    let start = begun(start);
    let mut utility = start;
    let steps = signals
        .into_iter()
        .map(|signal| {
            let before = utility;
            utility = moved(before, signal);
            UtilityStep { signal, before, after: utility }
        })
        .collect();
    UtilityReplay { start, steps }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::Entity;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn signals_move_the_utility() {
        for (word, expected) in [
            ("confirmed", 0.7),
            ("corrected", 0.4),
            ("rejected", 0.2),
            ("undone", 0.1),
            ("ignored", 0.45),
            ("odd", 0.5),
        ] {
            assert!(close(replay(START, [word]).utility(), expected), "{word}");
        }
    }

    #[test]
    fn a_memory_has_the_mean_of_the_latest_episodes_that_used_it() {
        assert_eq!(of_memory([]), None);
        assert_eq!(of_memory([1.0, 1.0, 1.0].map(Some).into_iter().chain([None]).map(of_use)), Some(0.875));
        assert!(
            close(of_use(Some(f64::NAN)), START) && close(of_use(Some(5.0)), 1.0) && close(of_use(Some(-1.0)), 0.0)
        );
        assert_eq!(of_memory([0.25, 0.75]), Some(0.5));
        let newest_first = std::iter::repeat_n(1.0, LATEST).chain([0.0, 0.0]);
        assert_eq!(of_memory(newest_first), Some(1.0));
    }

    #[test]
    fn the_latest_uses_are_those_of_all_whatever_the_order() {
        let episode = |n: usize, started: Option<usize>, utility: f64| {
            let started = started.map(|day| format!("2026-01-{day:02}"));
            let values = [("id", format!("e-{n}").into()), ("started_at", started.into()), ("utility", utility.into())];
            Row::with(Entity::Episode, values)
        };
        // Four of each of 28 days, the last two without one.
        let rows: Vec<Row> = (0..114)
            .map(|n| episode(n, Some(n / 4 + 1).filter(|day| *day <= 28), (n * 37 % 101) as f64 / 100.0))
            .collect();
        let mut sorted: Vec<(String, f64)> = rows
            .iter()
            .map(|row| (row.text("started_at").unwrap_or_default().to_owned(), row.number("utility").unwrap()))
            .collect();
        sorted.sort_by(|a, b| b.partial_cmp(a).unwrap());
        let expected = of_memory(sorted.into_iter().map(|(_, utility)| utility));
        for step in [1, 5, 113] {
            let mut latest = LatestUses::default();
            // Each twice.
            (0..2 * rows.len()).for_each(|n| latest.add(&rows[n * step % rows.len()]));
            assert_eq!(latest.utility(), expected, "{step}");
        }
        let mut latest = LatestUses::default();
        assert_eq!(latest.utility(), None);
        for (day, utility) in [(2, 0.25), (3, 0.75), (1, 0.0)] {
            latest.add(&episode(0, Some(day), utility));
        }
        assert_eq!(latest.utility(), Some(0.75));
    }

    #[test]
    fn each_step_tells_before_and_after() {
        let replay = replay(START, ["undone", "undone", "Confirmed", "confirmed"]);
        let ends: Vec<(f64, f64)> = replay.steps.iter().map(|s| (s.before, s.after)).collect();
        for ((before, after), expected) in ends.iter().zip([(0.5, 0.1), (0.1, 0.0), (0.0, 0.0), (0.0, 0.2)]) {
            assert!(close(*before, expected.0) && close(*after, expected.1), "{before} {after}");
        }
        assert_eq!(replay.unknown(), [2]);
        assert!(close(replay.utility(), 0.2));
    }

    #[test]
    fn taking_back_is_not_adding_the_opposite() {
        assert!(close(replay(START, ["undone", "undone", "confirmed"]).utility(), 0.2));
        assert!(close(replay(START, ["undone", "confirmed"]).utility(), 0.3));
    }

    #[test]
    fn a_strange_start_is_brought_into_range() {
        for (start, expected) in [(7.0, 1.0), (-1.0, 0.0), (f64::NAN, START), (f64::INFINITY, 1.0)] {
            assert!(close(replay(start, []).utility(), expected), "{start}");
        }
    }

    fn history() -> impl Strategy<Value = Vec<&'static str>> {
        let words = ["confirmed", "corrected", "rejected", "undone", "ignored", "shrugged"];
        prop::collection::vec(prop::sample::select(words.to_vec()), 0..60)
    }

    proptest! {
        #[test]
        fn a_replay_stays_in_range_and_is_continuous(start in -0.5..1.5, words in history()) {
            let replay = replay(start, words.iter().copied());
            prop_assert_eq!(replay.steps.len(), words.len());
            let mut last = replay.start;
            for step in &replay.steps {
                prop_assert!((0.0..=1.0).contains(&step.after));
                prop_assert!(close(step.before, last));
                last = step.after;
            }
            prop_assert!(close(replay.utility(), last));
        }

        #[test]
        fn a_better_start_never_ends_worse(a in 0.0..1.0, b in 0.0..1.0, words in history()) {
            let end = |start: f64| replay(start, words.iter().copied()).utility();
            prop_assert!(end(f64::min(a, b)) <= end(f64::max(a, b)));
        }
    }
}
