//! The rows of one agent or bank as they are and as a change would leave them, ranked for the same situations.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::features::{Situation, features, overlap, tags, words};
use super::keyword;
use super::policy::Policy;
use super::rank::{self, Ranked, Ranking, Sought};
use super::what_if::{Edit, Move, applied, moves};
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row};

/// Situations that are asked of one agent or bank.
pub const SITUATIONS: usize = 8;
/// Of these, those in which a changed row is most likely recalled, where there are changed rows.
const ALIKE: usize = 4;

/// A row before and after.
#[derive(Debug)]
struct Slot {
    before: Row,
    after: Option<Row>,
    edited: bool,
    vector: Option<Vec<f32>>,
    told: Told,
    told_after: Told,
}

/// The words of a row, as far as they are compared.
#[derive(Debug, Default, PartialEq)]
struct Told {
    all: BTreeSet<String>,
    outcome: BTreeSet<String>,
}

impl Told {
    fn of(row: &Row) -> Told {
        let is_episode = row.entity == Entity::Episode;
        let outcome = if is_episode { words(&keyword::situation_and_outcome(row)) } else { BTreeSet::new() };
        Told { all: words(&keyword::text_of(row)), outcome }
    }

    fn by(&self, ranking: Ranking) -> &BTreeSet<String> {
        if ranking == Ranking::Similar { &self.outcome } else { &self.all }
    }
}

/// The rows of one agent or bank.
#[derive(Debug)]
pub struct Bench {
    slots: Vec<Slot>,
    places: HashMap<String, usize>,
    /// The policy in use before and after; without one the likeness decides.
    policies: (Option<Policy>, Option<Policy>),
    situations: Vec<usize>,
}

/// As rows are, or as the change would leave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

impl Slot {
    /// The row and its words on that side; none where it is gone.
    fn on(&self, side: Side) -> Option<(&Row, &Told)> {
        match side {
            Side::After if self.edited => Some((self.after.as_ref()?, &self.told_after)),
            Side::Before | Side::After => Some((&self.before, &self.told)),
        }
    }
}

impl Bench {
    /// Lays out rows, the newest first, with their vectors by id and the policies in use before and after.
    ///
    /// Words are parted only where a situation has no vector.
    #[must_use]
    pub fn new(
        rows: Vec<Row>,
        edits: &[Edit],
        mut vectors: HashMap<String, Vec<f32>>,
        policies: (Option<Policy>, Option<Policy>),
    ) -> Bench {
        let touched: HashSet<&str> = edits
            .iter()
            .filter(|e| rows.first().is_some_and(|r| r.entity == e.entity))
            .map(|e| e.id.as_str())
            .collect();
        let mut after: HashMap<String, Row> =
            applied(&rows, edits).into_iter().map(|row| (row.id().to_owned(), row)).collect();
        let slots: Vec<Slot> = rows
            .into_iter()
            .map(|before| Slot {
                after: after.remove(before.id()),
                edited: touched.contains(before.id()),
                vector: vectors.remove(before.id()),
                told: Told::default(),
                told_after: Told::default(),
                before,
            })
            .collect();
        let places = slots.iter().enumerate().map(|(place, slot)| (slot.before.id().to_owned(), place)).collect();
        let mut bench = Bench { slots, places, policies, situations: Vec::new() };
        bench.part_words();
        bench.situations = bench.chosen();
        bench
    }

    /// Positions of the situations that are asked: those most like the changed rows, then the newest; never one whose row
    /// goes.
    #[must_use]
    pub fn situations(&self) -> &[usize] {
        &self.situations
    }

    /// The row at a position.
    #[must_use]
    pub fn row(&self, place: usize) -> Option<&Row> {
        self.slots.get(place).map(|slot| &slot.before)
    }

    /// The row of an id.
    #[must_use]
    pub fn row_of(&self, id: &str) -> Option<&Row> {
        self.row(*self.places.get(id)?)
    }

    /// The rows that another answer has in the situation at that position: those that come, go or move, and those that
    /// keep their place with another score.
    #[must_use]
    pub fn compared(&self, rankings: &[Ranking], situation: usize, at: &str) -> (Vec<Move>, Vec<Move>) {
        let (mut moved, mut rescored) = (Vec::new(), Vec::new());
        let Some(asked) = self.slots.get(situation) else { return (moved, rescored) };
        let cosines = self.cosines(asked);
        for ranking in rankings {
            let first = |side: Side| {
                let policy = if side == Side::Before { &self.policies.0 } else { &self.policies.1 };
                let rule = Rule::new(*ranking, asked, policy.as_ref(), at);
                self.first(*ranking, self.ranked(&rule, situation, cosines.as_deref(), side))
            };
            let (moves, scores) = moves(*ranking, asked.before.id(), &first(Side::Before), &first(Side::After));
            moved.extend(moves);
            rescored.extend(scores);
        }
        (moved, rescored)
    }

    /// How the vectors of all rows are like that of the situation; none where it has no vector.
    fn cosines(&self, asked: &Slot) -> Option<Vec<Option<f64>>> {
        let vector = asked.vector.as_ref()?;
        Some(self.slots.iter().map(|slot| cosine_of(vector, slot.vector.as_ref()?)).collect())
    }

    /// All candidates on one side with their scores, in no order. How rare a word is, is taken from the candidates.
    fn ranked(
        &self,
        rule: &Rule<'_>,
        situation: usize,
        cosines: Option<&[Option<f64>]>,
        side: Side,
    ) -> Vec<Ranked<&Row>> {
        let others = self.slots.iter().enumerate().filter(|(place, _)| *place != situation);
        let candidates: Vec<(usize, &Row, &Told)> = others
            .filter_map(|(place, slot)| {
                let (row, told) = slot.on(side)?;
                rule.admits(row).then_some((place, row, told))
            })
            .collect();
        let likeness: Vec<Option<f64>> = match cosines {
            _ if rule.ranking == Ranking::Proven => vec![None; candidates.len()],
            Some(cosines) => candidates.iter().map(|(place, ..)| cosines.get(*place).copied().flatten()).collect(),
            None => {
                let told: Vec<_> = candidates.iter().map(|(_, _, told)| told.by(rule.ranking)).collect();
                let asked = self.slots.get(situation).map(|slot| slot.told.by(rule.ranking));
                let shares = asked.map(|asked| keyword::shares_told(asked, &told)).unwrap_or_default();
                shares.into_iter().map(|share| (share > 0.0).then_some(share)).collect()
            }
        };
        let pairs = candidates.into_iter().zip(likeness);
        pairs.filter_map(|((_, row, _), like)| rule.ranked(row, like)).collect()
    }

    fn part_words(&mut self) {
        let mut asked = self.slots.iter().filter(|slot| slot.edited).chain(self.slots.iter().take(2 * SITUATIONS));
        if asked.all(|slot| slot.vector.is_some()) {
            return;
        }
        for slot in &mut self.slots {
            slot.told = Told::of(&slot.before);
            if let Some(row) = slot.after.as_ref().filter(|_| slot.edited) {
                slot.told_after = Told::of(row);
            }
        }
    }

    fn chosen(&self) -> Vec<usize> {
        let edited: Vec<&Slot> = self.slots.iter().filter(|slot| slot.edited).take(ALIKE).collect();
        let each = ALIKE / edited.len().max(1);
        let mut chosen = Vec::new();
        for slot in edited {
            let like = self.cosines(slot).unwrap_or_else(|| {
                let told: Vec<_> = self.slots.iter().map(|other| &other.told.all).collect();
                keyword::shares_told(&slot.told.all, &told).into_iter().map(Some).collect()
            });
            let mut near: Vec<(f64, usize)> = like
                .iter()
                .enumerate()
                .filter_map(|(place, like)| Some((like.filter(|l| *l > 0.0)?, place)))
                .filter(|(_, place)| self.slots.get(*place).is_some_and(|other| !other.edited && other.after.is_some()))
                .collect();
            near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let new = near.into_iter().map(|(_, place)| place).filter(|place| !chosen.contains(place)).take(each);
            let new: Vec<usize> = new.collect();
            chosen.extend(new);
        }
        let newest = (0..self.slots.len()).filter(|place| self.slots.get(*place).is_some_and(|s| s.after.is_some()));
        let newest: Vec<usize> = newest.take(2 * SITUATIONS).filter(|place| !chosen.contains(place)).collect();
        chosen.extend(newest);
        chosen.truncate(SITUATIONS);
        chosen
    }

    /// The rows that are recalled, in order.
    fn first<'s>(&'s self, ranking: Ranking, mut ranked: Vec<Ranked<&'s Row>>) -> Vec<Ranked<&'s Row>> {
        rank::sort(&mut ranked);
        let slot = |row: &Row| self.places.get(row.id()).and_then(|place| self.slots.get(*place));
        let alike = |a: &&Row, b: &&Row| {
            let (a, b) = (slot(a)?, slot(b)?);
            match (ranking, &a.vector, &b.vector) {
                (Ranking::Cases, Some(a), Some(b)) => cosine_of(a, b),
                (Ranking::Cases, ..) => Some(overlap(&a.told.all, &b.told.all)),
                _ => None,
            }
        };
        rank::choose(ranked, ranking.default_k(), 0, alike).0
    }
}

/// How a row is ranked for one situation.
struct Rule<'b> {
    ranking: Ranking,
    at: &'b str,
    sought: Sought,
    by_vector: bool,
    policy: Option<(&'b Policy, Situation)>,
}

impl<'b> Rule<'b> {
    fn new(ranking: Ranking, asked: &'b Slot, policy: Option<&'b Policy>, at: &'b str) -> Self {
        let (domain, topic) = rank::place_of(&asked.before);
        let situation = || Situation {
            words: words(&keyword::text_of(&asked.before)),
            tags: tags(&asked.before),
            at: at.to_owned(),
        };
        let policy = policy.filter(|_| ranking == Ranking::Cases).map(|policy| (policy, situation()));
        Rule { ranking, at, sought: Sought { domain, topic }, by_vector: asked.vector.is_some(), policy }
    }

    /// Whether the ranking looks at the row at all.
    fn admits(&self, row: &Row) -> bool {
        match self.ranking {
            Ranking::Similar => row.get("success").as_bool().unwrap_or_else(|| row.text("outcome") == Some("success")),
            Ranking::Cases => row.get("quarantined").as_bool() != Some(true),
            Ranking::Boosted | Ranking::Proven => true,
        }
    }

    /// The row with its score; none where it is not like the situation at all.
    fn ranked<'r>(&self, row: &'r Row, like: Option<f64>) -> Option<Ranked<&'r Row>> {
        let name = if self.by_vector { "similarity" } else { "keywords" };
        match (self.ranking, &self.policy) {
            (Ranking::Boosted, _) => Some(rank::boosted(row, like.or(Some(0.0)), name, self.at)),
            (Ranking::Proven, _) => Some(rank::proven(row, &self.sought, row.number("utility"), self.at)),
            (Ranking::Cases, Some((policy, situation))) => {
                let cosine = like.filter(|_| self.by_vector);
                Some(rank::by_policy(row, features(situation, row, cosine), policy))
            }
            (Ranking::Cases | Ranking::Similar, _) => like.map(|like| rank::by_likeness(row, like, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-02-04T10:00:00.000000Z";

    fn case(id: &str, day: usize, reward: f64) -> Row {
        let mut row = Row::empty(Entity::Case);
        row.set("id", json!(id));
        row.set("prompt", json!({"message": format!("the invoice {id}")}));
        row.set("reward", json!(reward));
        row.set("created_at", json!(format!("2026-01-{day:02}T10:00:00.000000Z")));
        row
    }

    fn edit(id: &str, after: Option<Value>) -> Edit {
        Edit { entity: Entity::Case, id: id.to_owned(), after }
    }

    fn bench(edits: &[Edit], policies: (Option<Policy>, Option<Policy>)) -> Bench {
        let rows: Vec<Row> = (0..9).map(|n| case(&format!("c{n}"), 20 - n, n as f64 / 10.0)).collect();
        let turned = |n: usize| (n as f32 * 0.4).sin_cos();
        let vectors = (0..9).map(|n| (format!("c{n}"), vec![turned(n).1, turned(n).0]));
        Bench::new(rows, edits, vectors.collect(), policies)
    }

    fn moved(bench: &Bench) -> Vec<(String, Option<usize>, Option<usize>)> {
        let first = bench.situations()[0];
        let (moved, _) = bench.compared(&[Ranking::Cases], first, NOW);
        moved.into_iter().map(|m| (m.id, m.before, m.after)).collect()
    }

    #[test]
    fn a_row_that_goes_makes_room_for_the_next_and_is_no_situation() {
        let bench = bench(&[edit("c4", None)], (None, None));
        assert!(!bench.situations().contains(&4));
        // The situation most like it is asked first.
        assert!(matches!(bench.situations()[0], 3 | 5), "{:?}", bench.situations());
        assert!(moved(&bench).iter().any(|(id, _, after)| id == "c4" && after.is_none()), "{:?}", moved(&bench));
        assert!(moved(&bench).iter().any(|(_, before, _)| before.is_none()), "somebody takes its place");
    }

    #[test]
    fn what_is_held_back_goes_and_what_changes_nothing_moves_nothing() {
        let held = bench(&[edit("c4", Some(json!({"quarantined": true})))], (None, None));
        assert!(moved(&held).iter().any(|(id, _, after)| id == "c4" && after.is_none()));
        let rewarded = bench(&[edit("c4", Some(json!({"reward": 1.0})))], (None, None));
        assert_eq!(moved(&rewarded), [], "cosine does not look at rewards");
    }

    #[test]
    fn under_a_policy_rewards_count_and_another_policy_gives_another_order() {
        let policy = |reward| Policy {
            bias: 0.0,
            weights: [0.0, reward, 0.0, 0.0, 0.0, 0.0],
            spelling: super::super::policy::Spelling::Snake,
            unknown: Vec::new(),
        };
        let with = (Some(policy(1.0)), Some(policy(1.0)));
        let rewarded = bench(&[edit("c0", Some(json!({"reward": 1.0})))], with);
        assert!(moved(&rewarded).contains(&("c0".to_owned(), None, Some(1))), "{:?}", moved(&rewarded));
        let turned = bench(&[], (Some(policy(1.0)), Some(policy(-1.0))));
        assert!(moved(&turned).len() > 4, "{:?}", moved(&turned));
        assert_eq!(moved(&bench(&[], (Some(policy(1.0)), Some(policy(1.0))))), []);
    }

    #[test]
    fn without_vectors_words_decide() {
        let rows: Vec<Row> = (0..5).map(|n| case(&format!("c{n}"), 20 - n, 0.5)).collect();
        let bench = Bench::new(rows, &[edit("c2", None)], HashMap::new(), (None, None));
        let (moved, _) = bench.compared(&[Ranking::Cases], 0, NOW);
        assert!(moved.iter().any(|m| m.id == "c2" && m.after.is_none()), "{moved:?}");
    }
}
