//! Ranks rows that are already read. Recall and its evaluation share this code, so that metrics measure what agents
//! get.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::Term;
use super::policy::Policy;
use super::rank::{self, LeftOut, ProvenQuery, RankedRow, Ranking};
use crate::memory::{Entity, Row, time};

/// Basis on which rows are ranked, with the inputs that each ranking needs.
pub enum RankingInput<'a, R> {
    /// Base, canvas and feedback.
    Boosted {
        /// Whether anything is asked; otherwise time alone makes the base.
        asked: bool,
        /// Name of the similarity measure: `similarity` or `keywords`.
        name: &'static str,
        /// Moment of the recall, canonical.
        at: &'a str,
    },
    /// Domain, topic, utility and age.
    Proven {
        /// Requested domain and topic.
        sought: &'a ProvenQuery,
        /// Name of the likeness that replaces domain and topic: `similarity` or `keywords`; `None` if it does not
        /// replace them.
        like: Option<&'static str>,
        /// Utility of a row, if known.
        utility: &'a (dyn Fn(&R) -> Option<f64> + Sync),
        /// Moment of the recall, canonical.
        at: &'a str,
    },
    /// Likeness alone. A row without one, or without any asked word, is not a candidate.
    Likeness {
        /// Name of the similarity measure: `similarity` or `keywords`.
        name: &'static str,
    },
    /// A learned policy.
    Policy {
        /// Weights of the policy.
        policy: &'a Policy,
        /// Features of a row with a known likeness.
        features: &'a (dyn Fn(&R, Option<f64>) -> [f64; 6] + Sync),
        /// Name of the similarity measure: `similarity` or `keywords`.
        name: &'static str,
    },
}

/// The name of likeness by vectors, or by words.
pub fn likeness_name(by_vector: bool) -> &'static str {
    if by_vector { "similarity" } else { "keywords" }
}

/// A row with its score by a ranking; `None` for a row that is not a candidate. `likeness` is that to the question, if
/// there is one.
pub fn placed<R: Borrow<Row>>(row: R, likeness: Option<f64>, way: &RankingInput<'_, R>) -> Option<RankedRow<R>> {
    match way {
        RankingInput::Boosted { asked, name, at } => {
            Some(rank::boosted(row, asked.then(|| likeness.unwrap_or(0.0)), name, at))
        }
        RankingInput::Proven { sought, like, utility, at } => {
            let utility = utility(&row);
            let mut ranked = rank::proven(row, sought, utility, at);
            if let Some(name) = like {
                ranked.add(Term::new(name, likeness.unwrap_or(0.0).clamp(0.0, 1.0), rank::LIKENESS_FOR_PLACE));
            }
            Some(ranked)
        }
        RankingInput::Likeness { name } => {
            let by_words = *name == likeness_name(false);
            let likeness = likeness.filter(|l| !by_words || *l > 0.0)?;
            Some(rank::by_likeness(row, likeness, name))
        }
        RankingInput::Policy { policy, features, name } => {
            let found = features(&row, likeness);
            let by_words = *name == likeness_name(false);
            let likeness = likeness.filter(|l| !by_words || *l > 0.0);
            Some(RankedRow { likeness, ..rank::by_policy(row, found, policy) })
        }
    }
}

/// Rows in order, each with its likeness to the question if there is one.
pub fn ranked<R: Borrow<Row>>(
    rows: impl IntoIterator<Item = (R, Option<f64>)>,
    way: &RankingInput<'_, R>,
) -> Vec<RankedRow<R>> {
    let mut ranked: Vec<RankedRow<R>> =
        rows.into_iter().filter_map(|(row, likeness)| placed(row, likeness, way)).collect();
    rank::sort(&mut ranked);
    if let RankingInput::Policy { .. } = way {
        rank::softmax(&mut ranked);
    }
    ranked
}

/// Candidates of a policy, for `k` places: the first 2 x `k` by the policy and the 2 x `k` most similar to the question
/// come before all others, marked accordingly. Within both, the policy's order applies.
pub fn merged<R>(mut ranked: Vec<RankedRow<R>>, k: usize, name: &'static str) -> Vec<RankedRow<R>> {
    let each = k.saturating_mul(2);
    let mut like: Vec<(usize, f64)> = ranked.iter().enumerate().filter_map(|(at, r)| Some((at, r.likeness?))).collect();
    like.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for (at, _) in like.into_iter().take(each) {
        ranked[at].found_by.push(name);
    }
    ranked.iter_mut().take(each).for_each(|row| row.found_by.push("policy"));
    let (mut first, rest): (Vec<_>, Vec<_>) = ranked.into_iter().partition(|row| !row.found_by.is_empty());
    first.extend(rest);
    first
}

/// Weight of the term that lowers the score of a case that looks like poison.
const POISON: f64 = -1.0;

/// The row with a term that lowers its score by `POISON` if it looks like poison.
pub fn weighed_down<R>(mut row: RankedRow<R>, is_poison: bool) -> RankedRow<R> {
    row.add(Term::new("poison", f64::from(u8::from(is_poison)), POISON));
    row
}

/// Statuses of a memory that agents no longer get, each with the reason for people.
const GONE: [(&str, &str); 3] =
    [("deleted", "it is deleted"), ("forgotten", "it is forgotten"), ("superseded", "another memory supersedes it")];

/// Reason why agents never get a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldBack {
    /// Short stable identifier: `quarantined`, `deleted`, `forgotten`, `superseded`, `expired` or `not_live`.
    pub reason: &'static str,
    /// The reason for people.
    pub words: &'static str,
}

/// Decides which rows a recall may return at all.
#[derive(Debug, Clone, Copy)]
pub struct Eligibility<'a> {
    /// Ranking of the recall.
    pub ranking: Ranking,
    /// Whether `similar` considers more than successes.
    pub all_outcomes: bool,
    /// Moment of the recall, canonical; empty if memories do not expire for it.
    pub at: &'a str,
    /// Statuses of the episodes that agents never get here.
    pub never: &'a [String],
}

impl Eligibility<'_> {
    /// Whether a row may be recalled.
    pub fn takes(&self, row: &Row) -> bool {
        self.counts(row) && self.held_back(row).is_none()
    }

    /// Whether the ranking considers a row: `similar` only considers successes by default.
    pub fn counts(&self, row: &Row) -> bool {
        row.entity == Entity::Memory
            || self.ranking != Ranking::Similar
            || self.all_outcomes
            || match row.get("success") {
                Value::Bool(success) => *success,
                _ => row.text("outcome") == Some("success"),
            }
    }

    /// Tells why agents never get a row: a quarantined case, an episode that is not live, and a memory that is expired, deleted,
    /// forgotten or superseded; `None` for any other.
    pub fn held_back(&self, row: &Row) -> Option<HeldBack> {
        let status = row.text("status");
        let (reason, words) = match row.entity {
            Entity::Memory => {
                let expires = row.text("expires_at").and_then(time::known);
                let is_over = expires.is_some_and(|expires| expires <= self.at);
                let gone = GONE.into_iter().find(|(gone, _)| status == Some(gone));
                gone.or(is_over.then_some(("expired", "it has expired")))?
            }
            Entity::Case if row.get("quarantined") == &Value::Bool(true) => ("quarantined", "it is quarantined"),
            Entity::Episode if status.is_some_and(|status| self.never.iter().any(|never| never == status)) => {
                ("not_live", "its status is one that agents never get here")
            }
            _ => return None,
        };
        Some(HeldBack { reason, words })
    }
}

/// Rows listed of those that agents never get; quarantined cases are all listed.
const LISTED: usize = 20;

/// Rows that agents never get: the first of them, and the number of each reason.
#[derive(Debug, Default)]
pub struct HeldRows {
    /// The first rows.
    pub first: Vec<LeftOut>,
    counts: BTreeMap<&'static str, usize>,
}

impl HeldRows {
    /// Adds a row; `id` is called if it is listed.
    pub fn add(&mut self, held: HeldBack, id: impl FnOnce() -> Option<String>) {
        let count = self.counts.entry(held.reason).or_default();
        *count += 1;
        if (*count <= LISTED || held.reason == "quarantined")
            && let Some(id) = id()
        {
            let words = held.words.to_owned();
            self.first.push(LeftOut { id, reason: held.reason, words, score: None, instead: None });
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.counts.values().sum()
    }

    /// Whether there is no such row.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Tells the number of rows that are not all listed, for people.
    pub fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let long = self.counts.iter().filter(|(reason, count)| **count > LISTED && **reason != "quarantined");
        long.map(|(reason, count)| {
            format!("{count} rows are left out as `{reason}`; the first {LISTED} of them are listed")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_leave_out_what_holds_none_and_vectors_do_not() {
        let row = |id: &str| Row::with(Entity::Case, [("id", json!(id))]);
        let rows = || [(row("a"), Some(0.0)), (row("b"), None), (row("c"), Some(0.5))];
        let ids = |name: &'static str| {
            let found = ranked(rows(), &RankingInput::Likeness { name });
            found.iter().map(|r| r.row.id().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((ids("keywords"), ids("similarity")), (vec!["c".to_owned()], vec!["c".to_owned(), "a".to_owned()]));
    }

    /// Cases of falling reward and rising likeness, ranked by their reward alone.
    fn by_reward() -> Vec<RankedRow> {
        let policy = Policy::parse(&json!({"bias": 0.0, "reward": 1.0})).unwrap();
        let rows = (0..12).map(|n| {
            let mut row = Row::empty(Entity::Case);
            row.set("id", json!(format!("c{n:02}")));
            row.set("reward", json!(1.0 - f64::from(n) / 20.0));
            (row, Some(f64::from(n) / 20.0))
        });
        let seen =
            |row: &Row, likeness: Option<f64>| [likeness.unwrap_or(0.0), row.number("reward").unwrap(), 0., 0., 0., 0.];
        ranked(rows, &RankingInput::Policy { policy: &policy, features: &seen, name: "similarity" })
    }

    #[test]
    fn the_most_like_and_the_policys_first_are_candidates_before_all_others() {
        let found = merged(by_reward(), 2, "similarity");
        let told: Vec<(&str, &[&str])> = found.iter().map(|r| (r.row.id(), &r.found_by[..])).collect();
        assert_eq!(&told[..4].iter().map(|(id, _)| *id).collect::<Vec<_>>(), &["c00", "c01", "c02", "c03"]);
        assert!(told[..4].iter().all(|(_, by)| *by == ["policy"]), "{told:?}");
        assert_eq!(&told[4..8].iter().map(|(id, _)| *id).collect::<Vec<_>>(), &["c08", "c09", "c10", "c11"]);
        assert!(told[4..8].iter().all(|(_, by)| *by == ["similarity"]), "{told:?}");
        assert!(told[8..].iter().all(|(_, by)| by.is_empty()) && told.len() == 12, "{told:?}");
    }

    #[test]
    fn what_agents_never_get_is_held_back_with_a_reason() {
        let never = ["abandoned".to_owned()];
        let at = "2026-02-01T00:00:00.000000Z";
        let of = |ranking| Eligibility { ranking, all_outcomes: false, at, never: &never };
        let memory = |column: &'static str, value: &str| Row::with(Entity::Memory, [(column, json!(value))]);
        let episode =
            |status: &str| Row::with(Entity::Episode, [("status", json!(status)), ("outcome", json!("success"))]);
        let told = [
            memory("status", "superseded"),
            memory("expires_at", at),
            memory("expires_at", "2026-02-01T00:00:00.000001Z"),
            memory("expires_at", "0001-01-01T00:00:00.000000Z"),
            memory("status", "active"),
            episode("abandoned"),
            episode("closed"),
        ]
        .map(|row| of(Ranking::Proven).held_back(&row).map_or("-", |held| held.reason));
        assert_eq!(told, ["superseded", "expired", "-", "-", "-", "not_live", "-"]);
        let failed = Row::with(Entity::Episode, [("success", json!(false))]);
        assert!(of(Ranking::Boosted).takes(&failed) && !of(Ranking::Similar).takes(&failed));
        let mut held = HeldRows::default();
        let why = HeldBack { reason: "expired", words: "it has expired" };
        (0..25).for_each(|n| held.add(why, || Some(n.to_string())));
        assert_eq!((held.len(), held.first.len(), held.notes().count()), (25, LISTED, 1));
    }

    #[test]
    fn poison_loses_a_term() {
        for row in by_reward() {
            let (before, is_poison) = (row.score.total, row.row.id() == "c00");
            let row = weighed_down(row, is_poison);
            let sum: f64 = row.score.terms.iter().map(|t| t.contribution).sum();
            let lost = if is_poison { -1.0 } else { 0.0 };
            assert!((row.score.total - sum).abs() < 1e-12 && (row.score.total - before - lost).abs() < 1e-12);
        }
    }
}
