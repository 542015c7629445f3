//! The four rankings: the score of a candidate, the order, and which row gives way to which.

use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::features::{self, SoughtName, age_days};
use super::policy::Policy;
use super::{Score, Term};
use crate::memory::json::{self, JsonPart, LONG};
use crate::memory::{Entity, Row, utility};

/// Cosine to a chosen row above which a candidate gives way.
pub const NEAR_DUPLICATE: f64 = 0.95;
/// Most rows that a recall or a replay returns: their ranking data is held until the last candidate is read.
pub const MOST_ROWS: usize = 5_000;
/// Rows that agents get from a case bank.
pub const CASES: usize = 4;
/// Rows that agents get of similar episodes.
pub const SIMILAR: usize = 3;
/// Utility without any signal.
pub const UTILITY_START: f64 = utility::START;

/// Share of likeness in the base of boosted recall; the rest is time (ours: the source says "time and similarity").
pub(super) const LIKENESS_IN_BASE: f64 = 0.7;
/// Weight of likeness if it replaces domain and topic in proven relevance: the sum of theirs.
pub const LIKENESS_FOR_PLACE: f64 = 0.6;
/// Boost of an episode with canvas interactions.
const CANVAS_BOOST: f64 = 0.1;
/// Boost of an episode with a positive aggregate.
pub const LIKED_BOOST: f64 = 0.2;
/// Malus of an episode with a negative aggregate.
pub const DISLIKED_BOOST: f64 = -0.3;

/// A way of ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ranking {
    /// Episodes by time and likeness, boosted by canvas and feedback.
    #[default]
    Boosted,
    /// Memories and episodes by domain, topic, utility and age.
    Proven,
    /// Cases by cosine, or by a learned policy.
    Cases,
    /// Episodes of like situation and outcome.
    Similar,
}

impl Ranking {
    /// All rankings, in display order.
    pub const ALL: [Ranking; 4] = [Ranking::Boosted, Ranking::Proven, Ranking::Cases, Ranking::Similar];

    /// Returns the name of the ranking on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Ranking::Boosted => "boosted",
            Ranking::Proven => "proven",
            Ranking::Cases => "cases",
            Ranking::Similar => "similar",
        }
    }

    /// Default number of rows.
    pub fn default_k(self) -> usize {
        if self == Ranking::Similar { SIMILAR } else { CASES }
    }

    /// The formula, for people.
    pub fn formula(self) -> &'static str {
        match self {
            Ranking::Boosted => {
                "base (0.7 x likeness + 0.3 x recency) + 0.1 with canvas interactions + 0.2 if feedback > 0, -0.3 if < \
                 0"
            }
            Ranking::Proven => {
                "0.3 x domain + 0.3 x topic + 0.2 x utility + 0.1 if younger than 7 days + 0.1 if younger than 24 hours"
            }
            Ranking::Cases => {
                "cosine; with a policy its bias + weight x feature, over the most similar and the policy's first cases"
            }
            Ranking::Similar => "cosine over situation and outcome",
        }
    }
}

/// A ranked row; `R` is the row, or a type that contains it.
#[derive(Debug, Clone, PartialEq)]
pub struct RankedRow<R = Row> {
    /// The row.
    pub row: R,
    /// Score of the row, with its terms.
    pub score: Score,
    /// Parts of the term `base`; empty without such a term.
    pub base: Vec<Term>,
    /// Share of this row among the candidates, by softmax over Q; `None` without a policy.
    pub probability: Option<f64>,
    /// Likeness of the row to the question; `None` if it is not compared.
    pub likeness: Option<f64>,
    /// Sources of a policy's candidate: the most like rows (`similarity` or `keywords`), the first rows of the
    /// `policy`, or both. Empty without a policy.
    pub found_by: Vec<&'static str>,
}

impl<R> RankedRow<R> {
    fn new(row: R, terms: Vec<Term>) -> Self {
        let score = Score::of(terms);
        RankedRow { row, score, base: Vec::new(), probability: None, likeness: None, found_by: Vec::new() }
    }

    /// Adds a further term of its score.
    pub(super) fn add(&mut self, term: Term) {
        self.score.terms.push(term);
        self.score = Score::of(std::mem::take(&mut self.score.terms));
    }
}

/// Candidate that was left out, with the reason.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeftOut {
    /// Id of the candidate.
    pub id: String,
    /// Short stable identifier: `query_itself`, `near_duplicate`, `below_k`, or that of [`super::among::HeldBack`].
    pub reason: &'static str,
    /// The reason for people.
    pub words: String,
    /// Score of the candidate, if it has one.
    pub score: Option<f64>,
    /// The chosen row that it gave way to.
    pub instead: Option<String>,
}

/// Base of boosted recall from likeness and recency; without a question, recency alone. In 0..1.
fn base(likeness: Option<f64>, name: &'static str, recency: f64) -> Vec<Term> {
    match likeness {
        Some(likeness) => vec![
            Term::new(name, likeness.clamp(0.0, 1.0), LIKENESS_IN_BASE),
            Term::new("recency", recency, 1.0 - LIKENESS_IN_BASE),
        ],
        None => vec![Term::new("recency", recency, 1.0)],
    }
}

/// Boosted recall of an episode or a memory: base + 0.1 with canvas interactions + 0.2 if the stored aggregate is above
/// 0, - 0.3 if below; not clamped. Uses the stored count and aggregate, which agents see.
///
/// `name` is the kind of likeness: `similarity` or `keywords`; `None` if nothing was asked.
pub fn boosted<R: Borrow<Row>>(episode: R, likeness: Option<f64>, name: &'static str, now: &str) -> RankedRow<R> {
    let row: &Row = episode.borrow();
    let parts = base(likeness, name, features::recency(time_of(row), now));
    let canvas = row.get("canvas_action_count").as_i64().is_some_and(|count| count > 0);
    let feedback = row.number("feedback_score").unwrap_or(0.0);
    let (felt, weight) = match feedback.partial_cmp(&0.0) {
        Some(Ordering::Greater) => (1.0, LIKED_BOOST),
        Some(Ordering::Less) => (1.0, DISLIKED_BOOST),
        _ => (0.0, LIKED_BOOST),
    };
    let terms = vec![
        Term::new("base", parts.iter().map(|t| t.contribution).sum(), 1.0),
        Term::new("canvas", f64::from(u8::from(canvas)), CANVAS_BOOST),
        Term::new("feedback", felt, weight),
    ];
    RankedRow { base: parts, ..RankedRow::new(episode, terms) }
}

/// Domain and topic requested from proven relevance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvenQuery {
    /// Domain; a memory's wing.
    pub domain: Option<SoughtName>,
    /// Topic; for a memory, its room.
    pub topic: Option<SoughtName>,
}

impl ProvenQuery {
    /// Whether neither domain nor topic is requested.
    pub fn is_nowhere(&self) -> bool {
        [&self.domain, &self.topic].into_iter().flatten().all(SoughtName::is_empty)
    }

    /// Uses the domain and topic of a row if none is requested.
    pub fn or_that_of(self, row: &Row) -> Self {
        let (domain, topic) = place_of(row);
        ProvenQuery {
            domain: self.domain.or_else(|| domain.as_deref().map(SoughtName::from)),
            topic: self.topic.or_else(|| topic.as_deref().map(SoughtName::from)),
        }
    }
}

/// Proven relevance of a memory or an episode: 0.3 domain + 0.3 topic + 0.2 utility + 0.1 if younger than 7 days + 0.1
/// if younger than 24 hours. `utility` is in 0..1, [`UTILITY_START`] by default.
pub fn proven<R: Borrow<Row>>(row: R, sought: &ProvenQuery, utility: Option<f64>, now: &str) -> RankedRow<R> {
    let stored: &Row = row.borrow();
    let (domain, topic) = place_of(stored);
    let age = age_days(stored.text(stored.entity.time_column()), now);
    let likeness = |sought: &Option<SoughtName>, stored| sought.as_ref().map_or(0.0, |sought| sought.likeness(stored));
    let younger = |days: f64| f64::from(u8::from(age.is_some_and(|age| age < days)));
    let terms = vec![
        Term::new("domain", likeness(&sought.domain, domain.as_deref()), 0.3),
        Term::new("topic", likeness(&sought.topic, topic.as_deref()), 0.3),
        Term::new("utility", utility.unwrap_or(UTILITY_START).clamp(0.0, 1.0), 0.2),
        Term::new("week", younger(7.0), 0.1),
        Term::new("day", younger(1.0), 0.1),
    ];
    RankedRow::new(row, terms)
}

/// Domain and topic of an episode; wing and room of a memory, whose collection replaces a missing wing.
pub fn place_of(row: &Row) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    let text = |column| row.text(column).map(Cow::Borrowed);
    if row.entity != Entity::Memory {
        return (text("domain"), text("topic"));
    }
    // A long document is not parsed for two names.
    let document = match row.json("metadata") {
        JsonPart::Document(document) if document.len() >= LONG => Some(json::members(document).unwrap_or_default()),
        _ => None,
    };
    let named = |keys: [&str; 2]| match &document {
        Some(members) => json::member_text(members, &keys).map(Cow::Owned),
        None => keys.iter().find_map(|key| row.get("metadata").get(*key)?.as_str().map(Cow::Borrowed)),
    };
    (named(["wing", "domain"]).or_else(|| text("collection")), named(["room", "topic"]))
}

/// A row whose score is its likeness, as a single term.
pub fn by_likeness<R>(row: R, likeness: f64, name: &'static str) -> RankedRow<R> {
    RankedRow::new(row, vec![Term::new(name, likeness, 1.0)])
}

/// A case by a policy: the score is the logit of Q, its terms are the bias and weight x feature. `found` are the
/// [`features`] of the case in the situation.
pub fn by_policy<R>(case: R, found: [f64; 6], policy: &Policy) -> RankedRow<R> {
    let weighed = features::NAMES.iter().zip(found).zip(policy.weights);
    let terms = std::iter::once(Term::new("bias", 1.0, policy.bias))
        .chain(weighed.map(|((name, value), weight)| Term::new(name, value, weight)));
    RankedRow::new(case, terms.collect())
}

/// Difference of two scores that adding up their terms may make: rows that are no further apart are tied.
pub const TIE: f64 = 1e-9;

/// Puts rows in order: greatest score first, ties newer first, then by id.
pub fn sort<R: Borrow<Row>>(rows: &mut [RankedRow<R>]) {
    // Adding 0 leaves no -0, which is another number in this order.
    let steps = |ranked: &RankedRow<R>| (ranked.score.total / TIE).round() + 0.0;
    rows.sort_by(|a, b| {
        let (one, other): (&Row, &Row) = (a.row.borrow(), b.row.borrow());
        steps(b)
            .total_cmp(&steps(a))
            .then_with(|| time_of(other).cmp(&time_of(one)))
            .then_with(|| one.id().cmp(other.id()))
    });
}

/// Note that no more rows are ranked.
pub fn limited() -> String {
    format!("only the first {MOST_ROWS} rows are ranked: `list` and `export` give all")
}

fn time_of(row: &Row) -> Option<&str> {
    row.text(row.entity.time_column())
}

/// Sets each row's share by softmax over the scores.
pub fn softmax<R>(rows: &mut [RankedRow<R>]) {
    let totals: Vec<f64> = rows.iter().map(|r| r.score.total).collect();
    softmax_of(rows, &totals);
}

/// Sets each row's share by softmax over the scores of all rows, of which these are some.
pub fn softmax_of<R>(rows: &mut [RankedRow<R>], totals: &[f64]) {
    let top = totals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = totals.iter().map(|total| (total - top).exp()).sum();
    for row in rows {
        row.probability = Some((row.score.total - top).exp() / sum);
    }
}

/// Takes the first `k` of sorted rows; a near duplicate of a chosen row gives way. Returns the chosen rows and those
/// skipped, with up to `beyond` of them after the last chosen one.
///
/// `likeness` of two ids is a cosine, or the word overlap without vectors.
pub fn choose<R: Borrow<Row>>(
    rows: Vec<RankedRow<R>>,
    k: usize,
    beyond: usize,
    likeness: impl Fn(&R, &R) -> Option<f64>,
) -> (Vec<RankedRow<R>>, Vec<LeftOut>) {
    let id = |ranked: &RankedRow<R>| Borrow::<Row>::borrow(&ranked.row).id().to_owned();
    let mut chosen: Vec<RankedRow<R>> = Vec::new();
    let mut left = Vec::new();
    let mut below = 0;
    for row in rows {
        if chosen.len() >= k {
            if below >= beyond {
                break;
            }
            below += 1;
            left.push(LeftOut {
                id: id(&row),
                reason: "below_k",
                words: format!("ranked below the first {k}"),
                score: Some(row.score.total),
                instead: None,
            });
            continue;
        }
        let twin = chosen.iter().find_map(|c| Some((c, likeness(&c.row, &row.row).filter(|l| *l > NEAR_DUPLICATE)?)));
        match twin {
            Some((other, alike)) => left.push(LeftOut {
                id: id(&row),
                reason: "near_duplicate",
                words: format!("nearly the same as {} (likeness {alike:.3} > {NEAR_DUPLICATE})", id(other)),
                score: Some(row.score.total),
                instead: Some(id(other)),
            }),
            None => chosen.push(row),
        }
    }
    (chosen, left)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::recall::features::Situation;

    const NOW: &str = "2026-02-04T10:00:00.000000Z";

    fn row(entity: Entity, columns: &[(&str, Value)]) -> Row {
        Row::with(entity, columns.iter().cloned())
    }

    #[test]
    fn boosts_are_the_documented_ones() {
        for (count, feedback, expected) in [
            (json!(0), json!(null), 0.0),
            (json!(3), json!(null), 0.1),
            (json!(0), json!(0.75), 0.2),
            (json!(2), json!(1.0), 0.3),
            (json!(1), json!(-0.5), -0.2),
            (json!(0), json!(-1), -0.3),
            (json!(null), json!(0.0), 0.0),
        ] {
            let episode = row(Entity::Episode, &[("canvas_action_count", count.clone()), ("feedback_score", feedback)]);
            let found = boosted(episode, Some(0.5), "similarity", NOW);
            let base = found.score.term("base").unwrap().contribution;
            assert!((found.score.total - base - expected).abs() < 1e-12, "{count}");
            assert!((base - 0.35).abs() < 1e-12);
        }
        let example = row(
            Entity::Episode,
            &[("canvas_action_count", json!(1)), ("feedback_score", json!(1)), ("started_at", json!(NOW))],
        );
        let total = boosted(example, Some(0.95 / 0.7 - 0.3 / 0.7), "similarity", NOW).score.total;
        assert!((total - 1.25).abs() < 1e-9, "no clamp: {total}");
    }

    #[test]
    fn one_of_the_last_day_has_both_bonuses() {
        let sought = ProvenQuery { domain: Some("Travel".into()), topic: Some("visa rules".into()) };
        let episode = row(
            Entity::Episode,
            &[
                ("domain", json!("travel")),
                ("topic", json!("visa")),
                ("started_at", json!("2026-02-03T10:00:00.000001Z")),
            ],
        );
        let found = proven(episode, &sought, Some(1.0), NOW).score.total;
        assert!((found - (0.3 + 0.15 + 0.2 + 0.2)).abs() < 1e-12, "{found}");
        let drawer = row(
            Entity::Memory,
            &[
                ("metadata", json!({"wing": "TRAVEL", "room": "food"})),
                ("created_at", json!("2026-01-28T10:00:00.000000Z")),
            ],
        );
        let found = proven(drawer, &sought, None, NOW).score.total;
        assert!((found - (0.3 + 0.1)).abs() < 1e-12, "seven days are not younger than seven days: {found}");
    }

    #[test]
    fn a_near_duplicate_gives_way_and_says_to_whom() {
        let rows: Vec<RankedRow> = [("a", 0.9), ("b", 0.8), ("c", 0.7), ("d", 0.6), ("e", 0.5)]
            .map(|(id, score)| by_likeness(row(Entity::Case, &[("id", json!(id))]), score, "similarity"))
            .to_vec();
        let alike = |a: &Row, b: &Row| Some(if (a.id(), b.id()) == ("a", "b") { 0.96 } else { 0.95 });
        let (chosen, left) = choose(rows, 2, 1, alike);
        assert_eq!(chosen.iter().map(|r| r.row.id()).collect::<Vec<_>>(), ["a", "c"]);
        let told: Vec<_> = left.iter().map(|l| (l.id.as_str(), l.reason, l.instead.as_deref())).collect();
        assert_eq!(told, [("b", "near_duplicate", Some("a")), ("d", "below_k", None)]);
    }

    proptest! {
        #[test]
        fn the_order_does_not_depend_on_how_rows_came(parts in prop::collection::vec((0u8..4, 0u8..3), 1..20), turn in 0usize..20) {
            let mut rows: Vec<RankedRow> = parts.iter().enumerate().map(|(i, (score, day))| {
                let at = (*day > 0).then(|| format!("2026-01-0{day}T00:00:00.000000Z"));
                let row = row(Entity::Case, &[("id", json!(format!("{i:02}"))), ("created_at", json!(at))]);
                by_likeness(row, f64::from(*score), "similarity")
            }).collect();
            let mut turned = rows.clone();
            turned.rotate_left(turn % parts.len());
            sort(&mut rows);
            sort(&mut turned);
            prop_assert_eq!(&rows, &turned);
            softmax(&mut rows);
            let sum: f64 = rows.iter().filter_map(|r| r.probability).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
            for pair in rows.windows(2) {
                let (a, b) = (&pair[0], &pair[1]);
                let key = |r: &RankedRow| (r.score.total, r.row.text("created_at").map(str::to_owned));
                prop_assert!(key(a) > key(b) || key(a) == key(b) && a.row.id() < b.row.id());
            }
        }

        #[test]
        fn a_policys_terms_sum_to_its_score(bias in -3.0..3.0f64, weights in prop::array::uniform6(-3.0..3.0f64), cosine in -1.0..1.0f64) {
            let policy = Policy { bias, weights, ..Policy::parse(&json!({"bias": 0, "similarity": 1})).unwrap() };
            let case = row(Entity::Case, &[("prompt", json!("tax form")), ("outcome", json!("success")), ("tags", json!(["tax"]))]);
            let situation = Situation::of_text("a tax question", NOW);
            let seen = features::features(&situation, &case, Some(cosine));
            let expected = policy.score(&seen);
            let found = by_policy(case, seen, &policy);
            prop_assert!((found.score.total - expected).abs() < 1e-9);
        }
    }
}
