//! Changes that would move a recalled row: each one that affects its score, with the resulting place of the row.

use super::answer::{RecallAnswer, RecalledItem};
use super::rank::{DISLIKED_BOOST, LIKED_BOOST, LeftOut, Ranking};
use crate::memory::Entity;
use crate::memory::feedback::{ScoreSum, THUMBS_DOWN, THUMBS_UP, score};
use crate::memory::utility::{Signal, replay};

/// A change of a recalled row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeverAct {
    /// One more thumb, up or down.
    Thumb(bool),
    /// One more signal.
    Signal(Signal),
    /// A case is held back.
    Quarantine,
    /// The row is removed.
    Remove,
}

/// A change, and its effect on the answer, all else unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallLever {
    /// The change.
    pub act: LeverAct,
    /// The row's resulting score; `None` if it is no longer ranked.
    pub score: Option<f64>,
    /// The row's resulting place, from 0; `None` if it is no longer among the first K.
    pub place: Option<usize>,
    /// Id of the row that replaces it, if known.
    pub enters: Option<String>,
}

/// Lists the changes that would move the row at `at` of an answer, without those that leave its score unchanged. Places
/// count the rows of the answer and those it left out: further rows are unknown here.
pub fn levers(answer: &RecallAnswer, at: usize) -> Vec<RecallLever> {
    let Some(item) = answer.rows.get(at) else { return Vec::new() };
    let lever = |(act, score)| {
        let after = order(answer, at, score);
        let is_new = |id: &&str| answer.rows.iter().all(|other| other.ranked.row.id() != *id);
        RecallLever {
            act,
            score,
            place: after.iter().position(|id| *id == item.ranked.row.id()),
            enters: after.iter().copied().find(is_new).map(str::to_owned),
        }
    };
    let total = item.ranked.score.total;
    let moves = |(_, score): &(LeverAct, Option<f64>)| score.is_none_or(|score| (score - total).abs() > 1e-9);
    acts(answer.request.inquiry.ranking, item).into_iter().filter(moves).map(lever).collect()
}

/// The possible changes of a row, each with the resulting score.
fn acts(ranking: Ranking, item: &RecalledItem) -> Vec<(LeverAct, Option<f64>)> {
    let mut acts = Vec::new();
    let (row, old) = (&item.ranked.row, &item.ranked.score);
    let with = |term: &str, contribution: f64| {
        Some(old.total - old.term(term).map_or(0.0, |term| term.contribution) + contribution)
    };
    match (ranking, row.entity) {
        (Ranking::Boosted, Entity::Episode) => {
            for up in [true, false] {
                let boost = match thumbed(item, up) {
                    felt if felt > 0.0 => LIKED_BOOST,
                    felt if felt < 0.0 => DISLIKED_BOOST,
                    _ => 0.0,
                };
                acts.push((LeverAct::Thumb(up), with("feedback", boost)));
            }
        }
        (Ranking::Proven, Entity::Episode) => {
            if let Some(term) = old.term("utility") {
                let signalled = |signal: Signal| replay(term.value, [signal.word()]).utility();
                let signals = Signal::ALL.iter();
                acts.extend(signals.map(|s| (LeverAct::Signal(*s), with("utility", signalled(*s) * term.weight))));
            }
        }
        _ => {}
    }
    if row.entity == Entity::Case {
        acts.push((LeverAct::Quarantine, None));
    }
    acts.push((LeverAct::Remove, None));
    acts
}

/// The aggregate of an episode's feedback with one more thumb.
fn thumbed(item: &RecalledItem, up: bool) -> f64 {
    let more = score(if up { THUMBS_UP } else { THUMBS_DOWN }, None);
    more.into_iter().fold(item.scores, ScoreSum::with).mean().unwrap_or_default()
}

/// Ids of the first K with another score of the row at `at`, or without it. A near duplicate of a chosen row gives way
/// to it, as far as the answer names those.
fn order(answer: &RecallAnswer, at: usize, changed: Option<f64>) -> Vec<&str> {
    let rows = answer.rows.iter().enumerate().filter_map(|(position, item)| {
        let score = if position == at { changed? } else { item.ranked.score.total };
        Some((item.ranked.row.id(), score, None))
    });
    let gave_way = |left: &&LeftOut| matches!(left.reason, "below_k" | "near_duplicate");
    let left = answer.left_out.iter().filter(gave_way);
    let mut all: Vec<(&str, f64, Option<&str>)> =
        rows.chain(left.filter_map(|left| Some((left.id.as_str(), left.score?, left.instead.as_deref())))).collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut chosen: Vec<&str> = Vec::new();
    for (id, _, instead) in all {
        if chosen.len() < answer.k && instead.is_none_or(|other| !chosen.contains(&other)) {
            chosen.push(id);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::memory::Row;
    use crate::recall::inquiry::Inquiry;
    use crate::recall::rank::{ProvenQuery, RankedRow, boosted, by_likeness, proven};

    const NOW: &str = "2026-02-04T10:00:00.000000Z";

    fn row(entity: Entity, id: &str) -> Row {
        Row::with(entity, [("id", json!(id))])
    }

    fn item(ranked: RankedRow, scores: &[f64]) -> RecalledItem {
        let scores = scores.iter().copied().fold(ScoreSum::default(), ScoreSum::with);
        RecalledItem { scores, ..RecalledItem::new(ranked) }
    }

    fn answer(ranking: Ranking, rows: Vec<RecalledItem>, left_out: Vec<LeftOut>) -> RecallAnswer {
        RecallAnswer {
            k: rows.len(),
            rows,
            left_out,
            used: "keyword",
            policy: None,
            compared: None,
            words_by: None,
            candidates: 9,
            notes: Vec::new(),
            like: None,
            request: Inquiry::new(ranking).request(NOW),
        }
    }

    fn left(id: &str, score: f64, reason: &'static str, instead: Option<&str>) -> LeftOut {
        let instead = instead.map(str::to_owned);
        LeftOut { id: id.to_owned(), reason, words: String::new(), score: Some(score), instead }
    }

    #[test]
    fn a_thumb_down_puts_an_episode_behind_what_it_beat() {
        let episode = |id: &str, likeness: f64| boosted(row(Entity::Episode, id), Some(likeness), "keywords", NOW);
        let rows = vec![item(episode("a", 0.9), &[]), item(episode("b", 0.8), &[])];
        let asked = answer(Ranking::Boosted, rows, vec![left("c", 0.5, "below_k", None)]);
        let found = levers(&asked, 0);
        let down = found.iter().find(|lever| lever.act == LeverAct::Thumb(false)).unwrap();
        assert!((down.score.unwrap() - (0.63 - 0.3)).abs() < 1e-9, "{down:?}");
        assert_eq!((down.place, down.enters.as_deref()), (None, Some("c")));
        let up = levers(&asked, 1).into_iter().find(|lever| lever.act == LeverAct::Thumb(true)).unwrap();
        assert_eq!((up.place, up.enters), (Some(0), None));
    }

    #[test]
    fn a_thumb_counts_with_what_was_said_before() {
        let mut liked = row(Entity::Episode, "a");
        liked.set("feedback_score", json!(1.0));
        let asked =
            answer(Ranking::Boosted, vec![item(boosted(liked, Some(0.5), "keywords", NOW), &[1.0])], Vec::new());
        let acts: Vec<(LeverAct, Option<f64>)> = levers(&asked, 0).into_iter().map(|l| (l.act, l.score)).collect();
        assert_eq!(acts.len(), 2, "another thumb up changes nothing: {acts:?}");
        assert!(acts[0].0 == LeverAct::Thumb(false) && (acts[0].1.unwrap() - 0.35).abs() < 1e-9, "up and down is 0");
    }

    #[test]
    fn a_signal_moves_the_utility_within_its_range() {
        let ranked = proven(row(Entity::Episode, "a"), &ProvenQuery::default(), Some(0.1), NOW);
        let found = levers(&answer(Ranking::Proven, vec![item(ranked, &[])], Vec::new()), 0);
        let score = |signal| found.iter().find(|lever| lever.act == LeverAct::Signal(signal)).unwrap().score.unwrap();
        assert!((score(Signal::Confirmed) - 0.06).abs() < 1e-9);
        assert!(score(Signal::Rejected).abs() < 1e-9, "clamped at 0");
    }

    #[test]
    fn without_a_case_its_near_duplicate_comes_in() {
        let rows = vec![item(by_likeness(row(Entity::Case, "a"), 0.9, "similarity"), &[])];
        let twin = left("b", 0.8, "near_duplicate", Some("a"));
        let found = levers(&answer(Ranking::Cases, rows, vec![twin, left("c", 0.7, "below_k", None)]), 0);
        let told: Vec<_> = found.iter().map(|lever| (lever.act, lever.place, lever.enters.as_deref())).collect();
        assert_eq!(told, [(LeverAct::Quarantine, None, Some("b")), (LeverAct::Remove, None, Some("b"))]);
    }
}
