//! Utilities that their history contradicts.

use std::collections::HashMap;

use super::short;
use crate::memory::{Row, time, utility};

/// How far a stored utility may lie from the replayed one.
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
    /// By the place of the episode.
    stored: Vec<(u64, Option<f64>)>,
    /// Signals of the episode that comes now, or of all.
    moves: HashMap<u64, Vec<UtilityMove>>,
    /// What the signals of an episode come to.
    replayed: Vec<(u64, f64)>,
}

impl UtilityHistories {
    /// Takes an episode.
    pub fn episode(&mut self, row: &Row) {
        self.stored.push((short(row.id()), row.number("utility")));
    }

    /// Takes a signal. Where those of one episode come `together`, only they are kept.
    pub fn signal(&mut self, row: &Row, together: bool) {
        let Some(episode) = row.text("episode_id").map(short) else { return };
        if together && !self.moves.contains_key(&episode) {
            self.replay();
        }
        self.moves.entry(episode).or_default().push(UtilityMove {
            at: row.text("created_at").and_then(time::epoch_micros),
            id: row.id().into(),
            signal: row.text("signal").unwrap_or_default().into(),
            before: row.number("before"),
        });
    }

    fn replay(&mut self) {
        self.replayed.extend(self.moves.drain().map(|(episode, mut moves)| (episode, replayed(&mut moves))));
    }

    /// Places of the episodes whose stored utility lies outside of 0..1, or is not what a replay of their signals comes
    /// to.
    #[must_use]
    pub fn differing(mut self) -> Vec<usize> {
        self.replay();
        self.replayed.sort_unstable_by_key(|(episode, _)| *episode);
        let replayed = |episode: &u64| {
            let at = self.replayed.binary_search_by_key(episode, |(known, _)| *known).ok()?;
            self.replayed.get(at).map(|(_, utility)| *utility)
        };
        let differs = |(episode, stored): &(u64, Option<f64>)| {
            let outside = stored.is_some_and(|utility| !(0.0..=1.0).contains(&utility));
            let differs = |new: f64| stored.is_none_or(|utility| (utility - new).abs() >= TOLERANCE);
            outside || replayed(episode).is_some_and(differs)
        };
        let places = self.stored.iter().enumerate().filter(|(_, stored)| differs(stored));
        places.map(|(place, _)| place).collect()
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

    use super::*;
    use crate::memory::Entity;

    fn row(entity: Entity, values: &[(&str, Value)]) -> Row {
        let mut row = Row::empty(entity);
        values.iter().for_each(|(column, value)| row.set(column, value.clone()));
        row
    }

    #[test]
    fn a_stored_utility_is_held_against_its_history() {
        let mut histories = UtilityHistories::default();
        for (id, utility) in [
            ("right", json!(0.4)),
            ("wrong", json!(0.99)),
            ("beyond", json!(1.7)),
            ("silent", json!(0.3)),
            ("none", Value::Null),
        ] {
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
            histories.signal(&row(Entity::UtilityEvent, &values.map(|(column, value)| (column, json!(value)))), false);
        }
        assert_eq!(histories.differing(), [1, 2, 4]);
    }
}
