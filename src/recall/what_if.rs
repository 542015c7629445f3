//! What a change would do to recalls: the same situations ranked before and after it.

use std::borrow::Borrow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::rank::{Ranked, Ranking};
use crate::memory::{Entity, Row};

/// Difference of two scores below which they are the same.
const SAME_SCORE: f64 = 1e-9;

/// What would change in recalls.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct WhatIf {
    /// Situations that were ranked before and after.
    pub situations: usize,
    /// Of these, with another answer after.
    pub changed: usize,
    /// Whether all that should be looked at was looked at.
    pub complete: bool,
    /// Whether the time was over before that.
    pub stopped: bool,
    /// The rows that come, go or have another place, by situation and ranking.
    pub moves: Vec<Move>,
    /// The rows that keep their place with another score.
    pub rescored: Vec<Move>,
    /// What was left out of it, and why.
    pub notes: Vec<String>,
    /// Situations and moved rows, as far as people need to know them by.
    #[serde(skip)]
    pub rows: Vec<Row>,
    /// How long it took, in milliseconds.
    #[serde(skip)]
    pub took: u64,
}

impl WhatIf {
    /// The row that is meant by an id in [`WhatIf::moves`].
    #[must_use]
    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.id() == id)
    }
}

/// A row as a change would leave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// What it is.
    pub entity: Entity,
    /// Its id.
    pub id: String,
    /// Canonical columns that change, with their new values; none when the row goes.
    pub after: Option<Value>,
}

/// A row that has another place after the change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Move {
    /// The ranking.
    pub ranking: Ranking,
    /// The row whose situation was asked.
    pub situation: String,
    /// The row that moves.
    pub id: String,
    /// Its place before, from 1; none when it was not recalled.
    pub before: Option<usize>,
    /// Its place after.
    pub after: Option<usize>,
    /// Its score before.
    pub score_before: Option<f64>,
    /// Its score after.
    pub score_after: Option<f64>,
}

/// The rows as they would be: edited ones changed, deleted ones gone. Rows that would be new are not among them.
#[must_use]
pub fn applied(rows: &[Row], edits: &[Edit]) -> Vec<Row> {
    let mut left = Vec::with_capacity(rows.len());
    let mut by_row: HashMap<(Entity, &str), Vec<&Edit>> = HashMap::new();
    for edit in edits {
        by_row.entry((edit.entity, &edit.id)).or_default().push(edit);
    }
    for row in rows {
        let mut edited = row.clone();
        let mut gone = false;
        for edit in by_row.get(&(row.entity, row.id())).into_iter().flatten() {
            match &edit.after {
                None => gone = true,
                Some(Value::Object(columns)) => {
                    columns.iter().for_each(|(name, value)| edited.set(name, value.clone()));
                }
                Some(_) => {}
            }
        }
        if !gone {
            left.push(edited);
        }
    }
    left
}

/// The rows that have another place, or are recalled only before or only after, in order of their place after; and those
/// that keep their place with another score.
#[must_use]
pub fn moves<R: Borrow<Row>>(
    ranking: Ranking,
    situation: &str,
    before: &[Ranked<R>],
    after: &[Ranked<R>],
) -> (Vec<Move>, Vec<Move>) {
    let place = |rows: &[Ranked<R>], id: &str| {
        let at = rows.iter().position(|r| r.row.borrow().id() == id);
        (at.map(|at| at + 1), at.and_then(|at| rows.get(at)).map(|r| r.score.total))
    };
    let gone = before.iter().filter(|r| place(after, r.row.borrow().id()).0.is_none());
    let (mut moved, mut rescored) = (Vec::new(), Vec::new());
    for row in after.iter().chain(gone) {
        let id = row.row.borrow().id();
        let ((was, score_before), (is, score_after)) = (place(before, id), place(after, id));
        let same_score = score_before.zip(score_after).is_some_and(|(was, is)| (was - is).abs() < SAME_SCORE);
        if was == is && same_score {
            continue;
        }
        let (situation, id) = (situation.to_owned(), id.to_owned());
        let found = Move { ranking, situation, id, before: was, after: is, score_before, score_after };
        if was == is { rescored.push(found) } else { moved.push(found) }
    }
    (moved, rescored)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::recall::rank::by_likeness;

    fn row(id: &str) -> Row {
        let mut row = Row::empty(Entity::Case);
        row.set("id", json!(id));
        row
    }

    #[test]
    fn edits_change_and_remove_rows() {
        let edit = |id: &str, after| Edit { entity: Entity::Case, id: id.to_owned(), after };
        let left =
            applied(&[row("a"), row("b"), row("c")], &[edit("a", None), edit("b", Some(json!({"reward": 0.5})))]);
        assert_eq!(
            left.iter().map(|r| (r.id(), r.number("reward"))).collect::<Vec<_>>(),
            [("b", Some(0.5)), ("c", None)]
        );
    }

    #[test]
    fn who_moves_comes_and_goes_is_told() {
        let ranked = |ids: &[&str]| ids.iter().map(|id| by_likeness(row(id), 1.0, "similarity")).collect::<Vec<_>>();
        let (found, rescored) = moves(Ranking::Cases, "q", &ranked(&["a", "b", "c"]), &ranked(&["a", "c", "d"]));
        let told: Vec<_> = found.iter().map(|m| (m.id.as_str(), m.before, m.after)).collect();
        assert_eq!(told, [("c", Some(3), Some(2)), ("d", None, Some(3)), ("b", Some(2), None)]);
        assert!(rescored.is_empty(), "their scores are the same");
    }

    #[test]
    fn another_score_in_the_same_place_is_told_apart() {
        let ranked = |score| vec![by_likeness(row("a"), score, "similarity")];
        let (moved, rescored) = moves(Ranking::Cases, "q", &ranked(0.9), &ranked(0.8));
        assert!(moved.is_empty());
        assert_eq!(rescored.iter().map(|m| (m.before, m.score_after)).collect::<Vec<_>>(), [(Some(1), Some(0.8))]);
    }
}
