//! Utilities that their history contradicts.

use std::collections::HashMap;

use super::{FindingTally, short};
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
    stored: Vec<(Box<str>, Option<f64>)>,
    moves: HashMap<u64, Vec<UtilityMove>>,
}

impl UtilityHistories {
    /// Takes an episode.
    pub fn episode(&mut self, row: &Row) {
        self.stored.push((row.id().into(), row.number("utility")));
    }

    /// Takes a signal.
    pub fn signal(&mut self, row: &Row) {
        let Some(episode) = row.text("episode_id") else { return };
        self.moves.entry(short(episode)).or_default().push(UtilityMove {
            at: row.text("created_at").and_then(time::epoch_micros),
            id: row.id().into(),
            signal: row.text("signal").unwrap_or_default().into(),
            before: row.number("before"),
        });
    }

    /// Episodes whose stored utility lies outside of 0..1, or is not what a replay of their signals comes to.
    #[must_use]
    pub fn differing(mut self, most: usize) -> FindingTally {
        let mut tally = FindingTally::default();
        for (id, stored) in &self.stored {
            let replayed = self.moves.get_mut(&short(id)).map(|moves| replayed(moves));
            let outside = stored.is_some_and(|utility| !(0.0..=1.0).contains(&utility));
            let differs = replayed.is_some_and(|new| stored.is_none_or(|utility| (utility - new).abs() >= TOLERANCE));
            if outside || differs {
                tally.add(id, most);
            }
        }
        tally
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
            histories.signal(&row(Entity::UtilityEvent, &values.map(|(column, value)| (column, json!(value)))));
        }
        assert_eq!(histories.differing(9).examples, ["wrong", "beyond", "none"]);
    }
}
