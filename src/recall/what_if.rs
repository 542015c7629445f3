//! What a change would do to recalls: the same situations ranked before and after it.

use serde::Serialize;
use serde_json::Value;

use super::rank::{Ranked, Ranking};
use crate::memory::{Entity, Row};

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
    for row in rows {
        let mut edited = row.clone();
        let mut gone = false;
        for edit in edits.iter().filter(|e| e.entity == row.entity && e.id == row.id()) {
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

/// The rows that have another place, or are recalled only before or only after, in order of their place after.
#[must_use]
pub fn moves(ranking: Ranking, situation: &str, before: &[Ranked], after: &[Ranked]) -> Vec<Move> {
    let place = |rows: &[Ranked], id: &str| {
        let at = rows.iter().position(|r| r.row.id() == id);
        (at.map(|at| at + 1), at.and_then(|at| rows.get(at)).map(|r| r.score.total))
    };
    let gone = before.iter().filter(|r| place(after, r.row.id()).0.is_none());
    let mut found = Vec::new();
    for row in after.iter().chain(gone) {
        let id = row.row.id();
        let ((was, score_before), (is, score_after)) = (place(before, id), place(after, id));
        if was != is {
            let (situation, id) = (situation.to_owned(), id.to_owned());
            found.push(Move { ranking, situation, id, before: was, after: is, score_before, score_after });
        }
    }
    found
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
        let found = moves(Ranking::Cases, "q", &ranked(&["a", "b", "c"]), &ranked(&["a", "c", "d"]));
        let told: Vec<_> = found.iter().map(|m| (m.id.as_str(), m.before, m.after)).collect();
        assert_eq!(told, [("c", Some(3), Some(2)), ("d", None, Some(3)), ("b", Some(2), None)]);
    }
}
