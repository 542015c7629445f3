//! Ranks rows that are already read. Recall and its evaluation both go through here, so that figures judge what agents
//! get.

use std::borrow::Borrow;

use serde_json::Value;

use super::policy::Policy;
use super::rank::{self, Ranked, Ranking, Sought};
use crate::memory::Row;

/// What rows are ranked by, with what each ranking needs to know.
pub enum Way<'a, R> {
    /// Base, canvas and feedback.
    Boosted {
        /// Whether anything is asked; else time alone makes the base.
        asked: bool,
        /// What the likeness is: `similarity` or `keywords`.
        name: &'static str,
        /// Moment of the recall, canonical.
        at: &'a str,
    },
    /// Domain, topic, utility and age.
    Proven {
        /// What is asked for.
        sought: &'a Sought,
        /// Utility of a row, where one is known.
        utility: &'a (dyn Fn(&R) -> Option<f64> + Sync),
        /// Moment of the recall, canonical.
        at: &'a str,
    },
    /// Likeness alone. What has none, or holds no word of what is asked, is no candidate.
    Likeness {
        /// What the likeness is: `similarity` or `keywords`.
        name: &'static str,
    },
    /// A learned policy.
    Policy {
        /// Its weights.
        policy: &'a Policy,
        /// Features of a row whose likeness is known.
        features: &'a (dyn Fn(&R, Option<f64>) -> [f64; 6] + Sync),
    },
}

/// The name of likeness by vectors, or by words.
#[must_use]
pub fn likeness_name(by_vector: bool) -> &'static str {
    if by_vector { "similarity" } else { "keywords" }
}

/// Rows in order, each with its likeness to what is asked where there is one.
pub fn ranked<R: Borrow<Row>>(rows: impl IntoIterator<Item = (R, Option<f64>)>, way: &Way<'_, R>) -> Vec<Ranked<R>> {
    let place = |(row, likeness): (R, Option<f64>)| match way {
        Way::Boosted { asked, name, at } => Some(rank::boosted(row, asked.then(|| likeness.unwrap_or(0.0)), name, at)),
        Way::Proven { sought, utility, at } => {
            let utility = utility(&row);
            Some(rank::proven(row, sought, utility, at))
        }
        Way::Likeness { name } => {
            let by_words = *name == likeness_name(false);
            let likeness = likeness.filter(|l| !by_words || *l > 0.0)?;
            Some(rank::by_likeness(row, likeness, name))
        }
        Way::Policy { policy, features } => {
            let found = features(&row, likeness);
            Some(rank::by_policy(row, found, policy))
        }
    };
    let mut ranked: Vec<Ranked<R>> = rows.into_iter().filter_map(place).collect();
    rank::sort(&mut ranked);
    if let Way::Policy { .. } = way {
        rank::softmax(&mut ranked);
    }
    ranked
}

/// Whether a row may be recalled at all: a quarantined case may not, and `similar` looks at successes unless told.
#[must_use]
pub fn eligible(row: &Row, ranking: Ranking, all_outcomes: bool) -> bool {
    match ranking {
        Ranking::Cases => row.get("quarantined") != &Value::Bool(true),
        Ranking::Similar => {
            all_outcomes
                || match row.get("success") {
                    Value::Bool(success) => *success,
                    _ => row.text("outcome") == Some("success"),
                }
        }
        Ranking::Boosted | Ranking::Proven => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::Entity;

    #[test]
    fn words_leave_out_what_holds_none_and_vectors_do_not() {
        let row = |id: &str| {
            let mut row = Row::empty(Entity::Case);
            row.set("id", json!(id));
            row
        };
        let rows = || [(row("a"), Some(0.0)), (row("b"), None), (row("c"), Some(0.5))];
        let ids = |name: &'static str| {
            let found = ranked(rows(), &Way::Likeness { name });
            found.iter().map(|r| r.row.id().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((ids("keywords"), ids("similarity")), (vec!["c".to_owned()], vec!["c".to_owned(), "a".to_owned()]));
    }
}
