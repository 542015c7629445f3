//! Utilities that their history contradicts.

use std::collections::HashMap;

use crate::memory::packed::column::ValueColumn;
use crate::memory::{Row, time, utility};

/// Maximum difference between a stored utility and the replayed one.
const TOLERANCE: f64 = 1e-9;

#[derive(Debug)]
struct UtilityMove {
    at: Option<i64>,
    id: Box<str>,
    signal: Box<str>,
    before: Option<f64>,
}

/// Stored utilities of episodes beside the signals that moved them.
#[derive(Debug, Default)]
pub struct UtilityHistories {
    /// By the place of the episode; not a number where none is stored.
    stored: ValueColumn,
    /// Signals of the episode that comes now, or of all, by its place.
    moves: HashMap<usize, Vec<UtilityMove>>,
    /// Places of those whose signals come to something else.
    differing: Vec<usize>,
}

impl UtilityHistories {
    /// Takes an episode.
    pub fn episode(&mut self, row: &Row) {
        self.stored.push(row.number("utility").unwrap_or(f64::NAN));
    }

    /// Takes a signal of the episode at a place. Where those of one episode come `together`, only they are kept.
    pub fn signal(&mut self, row: &Row, place: usize, together: bool) {
        if together && !self.moves.contains_key(&place) {
            self.replay();
        }
        self.moves.entry(place).or_default().push(UtilityMove {
            at: row.text("created_at").and_then(time::epoch_micros),
            id: row.id().into(),
            signal: row.text("signal").unwrap_or_default().into(),
            before: row.number("before"),
        });
    }

    fn replay(&mut self) {
        for (place, mut moves) in self.moves.drain() {
            let stored = self.stored.get(place).unwrap_or(f64::NAN);
            if stored.is_nan() || (stored - replayed(&mut moves)).abs() >= TOLERANCE {
                self.differing.push(place);
            }
        }
    }

    /// Places of the episodes whose stored utility lies outside of 0..1, or is not what a replay of their signals comes
    /// to.
    #[must_use]
    pub fn differing(mut self) -> Vec<usize> {
        self.replay();
        let is_outside = |utility: f64| !utility.is_nan() && !(0.0..=1.0).contains(&utility);
        let outside = |place: &usize| self.stored.get(*place).is_some_and(is_outside);
        self.differing.extend((0..self.stored.len()).filter(outside));
        self.differing.sort_unstable();
        self.differing.dedup();
        self.differing
    }
}

fn replayed(moves: &mut [UtilityMove]) -> f64 {
    moves.sort_by(|a, b| (a.at, &a.id).cmp(&(b.at, &b.id)));
    let start = moves.first().and_then(|first| first.before).unwrap_or(utility::START);
    utility::replay(start, moves.iter().map(|m| &*m.signal)).utility()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::row;
    use super::*;
    use crate::memory::Entity;

    #[test]
    fn a_stored_utility_is_held_against_its_history() {
        let mut histories = UtilityHistories::default();
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
        // Given newest first: the order of time decides.
        for (id, episode, signal, at) in [
            ("u2", "right", "rejected", "2026-02-02T00:00:00.000000Z"),
            ("u1", "right", "confirmed", "2026-02-01T00:00:00.000000Z"),
            ("u3", "wrong", "undone", "2026-02-01T00:00:00.000000Z"),
            ("u4", "none", "ignored", "2026-02-01T00:00:00.000000Z"),
        ] {
            let values = [("id", id), ("episode_id", episode), ("signal", signal), ("created_at", at)];
            let place = episodes.iter().position(|(id, _)| *id == episode).unwrap();
            let signal = row(Entity::UtilityEvent, &values.map(|(column, value)| (column, json!(value))));
            histories.signal(&signal, place, false);
        }
        assert_eq!(histories.differing(), [1, 2, 4]);
    }
}
