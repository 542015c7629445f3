//! Utilities that contradict their history.

use std::io;

use crate::memory::packed::column::PagedColumn;
use crate::memory::packed::pages::PageStore;
use crate::memory::packed::records::{RecordSorter, in_order, ordered};
use crate::memory::packed::space::MakeSpace;
use crate::memory::utility::{self, Signal};
use crate::memory::{Row, score, time};

/// Bytes of utilities, and of signals, in memory.
const HELD: usize = 4 << 20;

/// Stored utilities of episodes, with the signals that moved them.
#[derive(Debug)]
pub struct UtilityHistories {
    /// By the index of the episode; NaN if none is stored.
    stored: PagedColumn<f64>,
    pages: PageStore,
    /// Index of the episode, time and id of the signal, the utility before it, and its number; see [`Signal::ALL`].
    signals: RecordSorter<7>,
}

impl UtilityHistories {
    /// Creates an empty collection. Data that does not fit in memory goes to `space`.
    pub fn new(space: MakeSpace) -> Self {
        let pages = PageStore::new(HELD, space);
        UtilityHistories { stored: PagedColumn::new(&pages), pages, signals: RecordSorter::new(space).within(HELD) }
    }

    /// Adds an episode.
    pub fn episode(&mut self, row: &Row) {
        self.stored.push(row.number("utility").unwrap_or(f64::NAN));
    }

    /// Adds a signal of the episode with an index. One without a time comes last.
    pub fn signal(&mut self, row: &Row, place: usize) {
        let at = row.text("created_at").and_then(time::epoch_micros).unwrap_or(i64::MAX);
        let [first, rest, end] = in_order(row.id());
        let signal = row.text("signal").and_then(Signal::parse);
        let number = Signal::ALL.iter().position(|known| Some(*known) == signal).unwrap_or(Signal::ALL.len());
        let before = row.number("before").unwrap_or(f64::NAN).to_bits();
        self.signals.add([place as u64, ordered(at), first, rest, end, before, number as u64]);
    }

    /// Indexes of the episodes whose stored utility is outside 0..1, or differs from a replay of their signals. A
    /// history with an unknown signal word is not judged.
    ///
    /// # Errors
    /// Data that does not fit in memory cannot be written or read.
    pub fn differing(self) -> io::Result<Vec<usize>> {
        let sorted = self.signals.sorted()?;
        let mut stream = sorted.stream()?;
        let is_outside = |utility: f64| !utility.is_nan() && !(0.0..=1.0).contains(&utility);
        let outside = |place: &usize| self.stored.get(*place).is_some_and(is_outside);
        let mut differing: Vec<usize> = (0..self.stored.len()).filter(outside).collect();
        while let Some(place) = stream.group() {
            let (mut replayed, mut is_known) = (None, true);
            while let Some([_, _, _, _, _, before, number]) = stream.next_of(place)? {
                let utility = replayed.unwrap_or_else(|| utility::begun(f64::from_bits(before)));
                let signal = Signal::ALL.get(number as usize).copied();
                is_known &= signal.is_some();
                replayed = Some(utility::moved(utility, signal));
            }
            let replayed = replayed.unwrap_or(utility::START);
            let stored = self.stored.get(place as usize).unwrap_or(f64::NAN);
            if is_known && !score::is_same(stored, replayed) {
                differing.push(place as usize);
            }
        }
        self.pages.check()?;
        differing.sort_unstable();
        differing.dedup();
        Ok(differing)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::row;
    use super::*;
    use crate::memory::Entity;
    use crate::memory::packed::space::tests::space;

    #[test]
    fn a_stored_utility_is_held_against_its_history() {
        let mut histories = UtilityHistories::new(space);
        histories.signals = histories.signals.within(1);
        let episodes = [
            ("right", json!(0.4)),
            ("wrong", json!(0.99)),
            ("beyond", json!(1.7)),
            ("silent", json!(0.3)),
            ("none", Value::Null),
        ];
        for (id, utility) in episodes.clone() {
            histories.episode(&row(Entity::Episode, &[("id", json!(id)), ("utility", utility)]));
        }
        // Given newest first: the time order decides.
        for (id, episode, signal, at) in [
            ("u2", "right", "rejected", "2026-02-02T00:00:00.000000Z"),
            ("u1", "right", "confirmed", "2026-02-01T00:00:00.000000Z"),
            ("u3", "wrong", "undone", "2026-02-01T00:00:00.000000Z"),
            ("u4", "none", "ignored", "2026-02-01T00:00:00.000000Z"),
        ] {
            let values = [("id", id), ("episode_id", episode), ("signal", signal), ("created_at", at)];
            let place = episodes.iter().position(|(id, _)| *id == episode).unwrap();
            let signal = row(Entity::UtilityEvent, &values.map(|(column, value)| (column, json!(value))));
            histories.signal(&signal, place);
        }
        assert_eq!(histories.differing().unwrap(), [1, 2, 4]);
    }

    #[test]
    fn time_then_id_order_signals_and_the_first_says_where_they_start() {
        let mut histories = UtilityHistories::new(space);
        histories.signals = histories.signals.within(1);
        let (early, late) = (Some("2026-02-01T00:00:00.000000Z"), Some("2026-02-02T00:00:00.000000Z"));
        // From 0.9 a confirmation leads to 1 and the rejection to 0.7; in the other order, to 0.8.
        for (place, stored, later) in [(0, 0.7, late), (1, 0.7, early), (2, 0.8, late), (3, 0.7, None)] {
            histories.episode(&row(Entity::Episode, &[("utility", json!(stored))]));
            for (id, signal, at, before) in [("u2", "rejected", later, 0.2), ("u1", "confirmed", early, 0.9)] {
                let (id, signal, at, before) = (json!(id), json!(signal), json!(at), json!(before));
                let values = [("id", id), ("signal", signal), ("created_at", at), ("before", before)];
                histories.signal(&row(Entity::UtilityEvent, &values), place);
            }
        }
        // A history with an unknown word is not judged.
        histories.episode(&row(Entity::Episode, &[("utility", json!(0.1))]));
        for (id, signal) in [("u1", "confirmed"), ("u2", "Confirmed")] {
            let values = [("id", json!(id)), ("signal", json!(signal)), ("created_at", json!(early))];
            histories.signal(&row(Entity::UtilityEvent, &values), 4);
        }
        assert_eq!(histories.differing().unwrap(), [2]);
    }
}
