//! Effect of a change on recalls: the same situations ranked before and after it.

use serde::Serialize;

use super::answer::UsedPolicy;
use super::inquiry::Inquiry;
use super::rank::{RankedRow, Ranking};
use crate::memory::Row;

/// Difference below which two scores are equal.
const SAME_SCORE: f64 = 1e-9;

/// Differences that a change would make to recalls.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct WhatIf {
    /// Situations that were ranked before and after.
    pub situations: usize,
    /// Number of these situations whose answer changes.
    pub changed: usize,
    /// Whether all relevant situations were checked.
    pub complete: bool,
    /// Whether the time limit ended the check.
    pub stopped: bool,
    /// Questions asked before and after, in order.
    pub asked: Vec<QuestionOutcome>,
    /// The rows that enter, leave or change their place, by situation and ranking.
    pub moves: Vec<PlaceMove>,
    /// The rows that keep their place with another score.
    pub rescored: Vec<PlaceMove>,
    /// Parts of the comparison that were left out, and why.
    pub notes: Vec<String>,
    /// Situations and moved rows, as far as people need to know them by.
    #[serde(skip)]
    pub rows: Vec<Row>,
    /// Duration of the comparison, in milliseconds.
    #[serde(skip)]
    pub took: u64,
}

impl WhatIf {
    /// The row with an id in [`WhatIf::moves`].
    pub fn row(&self, id: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.id() == id)
    }
}

/// A question asked before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuestionOutcome {
    /// The row used as situation, the name of a saved question, or a room.
    pub situation: String,
    /// Arguments for `recall` to show the same, including the active policy after the change.
    pub recall: Vec<String>,
}

/// A question to ask before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIfQuestion {
    /// The row used as situation, the name of a saved question, or a room.
    pub situation: String,
    /// Question to ask.
    pub inquiry: Inquiry,
    /// Whether it is a saved question of that name.
    pub is_kept: bool,
}

/// A row whose place changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaceMove {
    /// The ranking.
    pub ranking: Ranking,
    /// The row used as situation, the name of a saved question, or a room.
    pub situation: String,
    /// Arguments for `recall` to show the same, including the active policy after the change.
    pub recall: Vec<String>,
    /// The policy that ranked after the change; `None` without one.
    pub policy: Option<String>,
    /// The policy that ranked before.
    pub policy_before: Option<String>,
    /// The row that moves.
    pub id: String,
    /// Place of the row before the change, from 1; `None` if it was not recalled.
    pub before: Option<usize>,
    /// Place of the row after the change, from 1; `None` if it is not recalled.
    pub after: Option<usize>,
    /// Score of the row before the change.
    pub score_before: Option<f64>,
    /// Score of the row after the change.
    pub score_after: Option<f64>,
}

/// An answer: the rows in order, and the policy that ranked them.
#[derive(Debug, Clone, Copy)]
pub struct OrderedAnswer<'a> {
    /// The rows.
    pub rows: &'a [RankedRow],
    /// The policy.
    pub policy: Option<&'a UsedPolicy>,
}

impl WhatIfQuestion {
    /// Builds the arguments for `recall` to show the answer after the change.
    pub fn repeated(&self, policy: Option<&UsedPolicy>) -> Vec<String> {
        let policy = policy.map(|used| used.id.clone());
        if self.is_kept {
            // Its text may be personal: the name is enough.
            let named = policy.iter().flat_map(|id| ["--policy".to_owned(), id.clone()]);
            return ["--saved".to_owned(), self.situation.clone()].into_iter().chain(named).collect();
        }
        Inquiry { policy: policy.or(self.inquiry.policy.clone()), ..self.inquiry.clone() }.words()
    }
}

/// The rows with another place, or recalled only before or only after, by their place after; and those that keep their
/// place with another score.
pub fn moves(
    question: &WhatIfQuestion,
    before: OrderedAnswer<'_>,
    after: OrderedAnswer<'_>,
) -> (Vec<PlaceMove>, Vec<PlaceMove>) {
    let place = |rows: &[RankedRow], row: &Row| {
        let at = rows.iter().position(|r| r.row.entity == row.entity && r.row.id() == row.id());
        (at.map(|at| at + 1), at.and_then(|at| rows.get(at)).map(|r| r.score.total))
    };
    let (policy, policy_before) = (after.policy.map(|p| p.id.clone()), before.policy.map(|p| p.id.clone()));
    let recall = question.repeated(after.policy);
    let gone = before.rows.iter().filter(|r| place(after.rows, &r.row).0.is_none());
    let (mut moved, mut rescored) = (Vec::new(), Vec::new());
    for RankedRow { row, .. } in after.rows.iter().chain(gone) {
        let ((was, score_before), (is, score_after)) = (place(before.rows, row), place(after.rows, row));
        let same_score = score_before.zip(score_after).is_some_and(|(was, is)| (was - is).abs() < SAME_SCORE);
        if was == is && same_score {
            continue;
        }
        let found = PlaceMove {
            ranking: question.inquiry.ranking,
            situation: question.situation.clone(),
            recall: recall.clone(),
            policy: policy.clone(),
            policy_before: policy_before.clone(),
            id: row.id().to_owned(),
            before: was,
            after: is,
            score_before,
            score_after,
        };
        if was == is { rescored.push(found) } else { moved.push(found) }
    }
    (moved, rescored)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::Entity;
    use crate::recall::rank::by_likeness;

    fn row(id: &str) -> Row {
        Row::with(Entity::Case, [("id", json!(id))])
    }

    fn question() -> WhatIfQuestion {
        let inquiry = Inquiry { like: Some("q".to_owned()), ..Inquiry::new(Ranking::Cases) };
        WhatIfQuestion { situation: "q".to_owned(), inquiry, is_kept: false }
    }

    #[test]
    fn who_moves_comes_and_goes_is_told_with_the_policy() {
        let ranked = |ids: &[&str]| ids.iter().map(|id| by_likeness(row(id), 1.0, "similarity")).collect::<Vec<_>>();
        let policy = UsedPolicy { id: "p".to_owned(), version: Some(2), because: "in use" };
        let (before, after) = (ranked(&["a", "b", "c"]), ranked(&["a", "c", "d"]));
        let (found, rescored) = moves(
            &question(),
            OrderedAnswer { rows: &before, policy: None },
            OrderedAnswer { rows: &after, policy: Some(&policy) },
        );
        let told: Vec<_> = found.iter().map(|m| (m.id.as_str(), m.before, m.after)).collect();
        assert_eq!(told, [("c", Some(3), Some(2)), ("d", None, Some(3)), ("b", Some(2), None)]);
        assert!(rescored.is_empty(), "their scores are the same");
        assert_eq!((found[0].policy.as_deref(), found[0].policy_before.as_deref()), (Some("p"), None));
        assert_eq!(found[0].recall.join(" "), "--ranking cases --like q --policy p");
    }

    #[test]
    fn another_score_in_the_same_place_is_told_apart() {
        let ranked = |score| vec![by_likeness(row("a"), score, "similarity")];
        let (before, after) = (ranked(0.9), ranked(0.8));
        let (moved, rescored) = moves(
            &question(),
            OrderedAnswer { rows: &before, policy: None },
            OrderedAnswer { rows: &after, policy: None },
        );
        assert!(moved.is_empty());
        assert_eq!(rescored.iter().map(|m| (m.before, m.score_after)).collect::<Vec<_>>(), [(Some(1), Some(0.8))]);
    }
}
