//! Quality of a policy on held-out pairs, and whether to use it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::logistic::train;
use super::metrics::{self, CalibrationBin, Interval, LabelledPrediction, Metrics};
use super::split::{PARTS, parts};
use super::{LearnError, TrainingExample, check};
use crate::memory::agreeing;
use crate::recall::policy::{FEATURES, Policy, WeightSpelling};

/// Fewest queries for a meaningful interval: resampling few gives the same few again.
const ENOUGH: usize = 10;

/// Quality of predictions, with all displayed facts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// The four numbers.
    pub metrics: Metrics,
    /// Number of predictions.
    pub n: usize,
    /// Number of positive labels.
    pub positives: usize,
    /// Number of queries, which are resampled for the intervals.
    pub queries: usize,
    /// Queries with pairs of both labels: only these separate a query's good cases from its bad ones.
    pub mixed_queries: usize,
    /// 95 % intervals by resampling queries.
    pub interval: Interval,
    /// Share of predictions that came true, by bins of predicted probability.
    pub calibration: Vec<CalibrationBin>,
    /// Each feature on its own.
    pub features: Vec<SingleFeature>,
    /// `better than chance`, `no better than chance`, `worse than chance` or `unknown`.
    pub verdict: &'static str,
    /// Advice on how to proceed, for users.
    pub advice: String,
}

/// A feature on its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SingleFeature {
    /// Name of the feature.
    pub name: &'static str,
    /// AUC of the feature; `None` if it is the same in all pairs.
    pub auc: Option<f64>,
    /// 95 % interval.
    pub interval: Option<[f64; 2]>,
    /// Weight of the feature in the policy; `None` with several policies.
    pub weight: Option<f64>,
}

/// Assesses predictions for examples, one each. `policy` is the one that made them, if there is only one.
pub fn assess(examples: &[TrainingExample], scores: &[f64], policy: Option<&Policy>, seed: u64) -> Assessment {
    let parts: Vec<(u64, f64)> = scores.iter().map(|score| (0, *score)).collect();
    assess_parts(examples, &parts, policy, seed)
}

/// The same for predictions of several policies, each with its policy's number and score. Scores of different policies
/// are not compared.
pub fn assess_parts(
    examples: &[TrainingExample],
    scores: &[(u64, f64)],
    policy: Option<&Policy>,
    seed: u64,
) -> Assessment {
    let one = |(e, (part, score)): (&TrainingExample, &(u64, f64))| LabelledPrediction {
        query: e.query,
        part: *part,
        score: *score,
        label: e.label,
    };
    let predicted: Vec<LabelledPrediction> = examples.iter().zip(scores).map(one).collect();
    let metrics = metrics::metrics(&predicted);
    let interval = metrics::intervals(&predicted, seed);
    let mut labels: BTreeMap<usize, [bool; 2]> = BTreeMap::new();
    for example in examples {
        labels.entry(example.query).or_default()[usize::from(example.label)] = true;
    }
    let mixed_queries = labels.values().filter(|both| **both == [true, true]).count();
    let queries = labels.len();
    let (verdict, mut advice) = verdict(interval.auc, queries);
    if mixed_queries == 0 && queries > 1 {
        advice += &format!(
            ". All pairs of a query carry one label in all {queries} queries: this measures which queries went well, \
             not which of a query's cases helped"
        );
    }
    Assessment {
        metrics,
        n: examples.len(),
        positives: examples.iter().filter(|e| e.label).count(),
        queries,
        mixed_queries,
        interval,
        calibration: metrics::calibration(&predicted),
        features: (0..FEATURES.len()).map(|i| single(examples, i, policy, seed)).collect(),
        verdict,
        advice,
    }
}

fn single(examples: &[TrainingExample], i: usize, policy: Option<&Policy>, seed: u64) -> SingleFeature {
    let value = |e: &TrainingExample| e.features.get(i).copied().unwrap_or_default();
    let first = examples.first().map(value);
    let varies = examples.iter().any(|e| Some(value(e)) != first);
    let all: Vec<LabelledPrediction> = examples
        .iter()
        .map(|e| LabelledPrediction { query: e.query, part: 0, score: value(e), label: e.label })
        .collect();
    SingleFeature {
        name: FEATURES.get(i).copied().unwrap_or_default(),
        auc: metrics::metrics(&all).auc.filter(|_| varies),
        interval: if varies { metrics::intervals(&all, seed).auc } else { None },
        weight: policy.and_then(|p| p.weights.get(i).copied()),
    }
}

fn verdict(auc: Option<[f64; 2]>, queries: usize) -> (&'static str, String) {
    match auc {
        Some(_) if queries < ENOUGH => (
            "unknown",
            agreeing(
                queries,
                &format!(
                    "{{#}} {{query is|queries are}} too few to distinguish it from chance ({ENOUGH} are needed): do \
                     not activate it on this basis"
                ),
            ),
        ),
        None => ("unknown", "measuring needs pairs of both kinds: do not activate it on this basis".to_owned()),
        Some([low, high]) if low > 0.5 => (
            "better than chance",
            format!("the AUC's interval {low:.3} to {high:.3} lies above 0.5: it orders cases better than chance"),
        ),
        Some([low, high]) if high < 0.5 => (
            "worse than chance",
            format!("the AUC's interval {low:.3} to {high:.3} lies below 0.5: do not activate it"),
        ),
        Some([low, high]) => (
            "no better than chance",
            format!(
                "the AUC's interval {low:.3} to {high:.3} includes 0.5: it is no better than chance on these pairs, \
                 do not activate it"
            ),
        ),
    }
}

/// A trained policy with its quality on the held-out pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainedPolicy {
    /// The policy.
    pub policy: Policy,
    /// On held-out pairs.
    pub held_out: Assessment,
    /// On the pairs it was trained on.
    pub trained_on: Metrics,
    /// Pairs that it was trained on.
    pub n: usize,
    /// Share of held-out pairs classified correctly at 0.5; `None` without any.
    pub accuracy: Option<f64>,
}

/// Whether each query has negative and positive pairs.
fn labels(examples: &[TrainingExample]) -> Vec<[bool; 2]> {
    let queries = examples.iter().map(|e| e.query + 1).max().unwrap_or_default();
    let mut labels = vec![[false; 2]; queries];
    for example in examples {
        labels[example.query][usize::from(example.label)] = true;
    }
    labels
}

/// Reason why there is no AUC: both sides of a split need pairs of both labels. `None` if there is one.
fn why_no_auc(examples: &[TrainingExample]) -> Option<String> {
    let labels = labels(examples);
    let [negative, positive] = [0, 1].map(|kind| labels.iter().filter(|has| has[kind]).count());
    (negative < 2 || positive < 2).then(|| {
        agreeing(
            positive,
            &format!(
                "no AUC is given: {{#}} {{query has|queries have}} positive pairs and {negative} \
             negative ones, and two of each are needed to train on one and hold out the other; do not activate it on \
             this basis"
            ),
        )
    })
}

/// The pairs of a share of the queries, and the others: (trained on, held out).
pub fn hold_out(examples: &[TrainingExample], part: u64, seed: u64) -> (Vec<TrainingExample>, Vec<TrainingExample>) {
    let parts = parts(&labels(examples), seed);
    examples.iter().partition(|e| parts.get(e.query) != Some(&part))
}

/// Trains on four fifths of the queries and measures on the fifth that was held out.
///
/// # Errors
/// [`LearnError`] if there is nothing to learn from.
pub fn train_and_hold_out(
    examples: &[TrainingExample],
    spelling: WeightSpelling,
    seed: u64,
) -> Result<TrainedPolicy, LearnError> {
    check(examples)?;
    let first = examples.first().map(|e| e.query);
    if examples.iter().all(|e| Some(e.query) == first) {
        return Err(LearnError::OneQuery(examples.len()));
    }
    let (mut seen, mut held) = hold_out(examples, 0, seed);
    if check(&seen).is_err() {
        // The only pairs of a kind are needed to learn from.
        seen.append(&mut held);
    }
    let policy = train(&seen, spelling)?;
    let score = |all: &[TrainingExample]| -> Vec<f64> { all.iter().map(|e| policy.score(&e.features)).collect() };
    let one =
        |(e, score): (&TrainingExample, f64)| LabelledPrediction { query: e.query, part: 0, score, label: e.label };
    let predicted: Vec<LabelledPrediction> = seen.iter().zip(score(&seen)).map(one).collect();
    let right = held.iter().filter(|e| (policy.score(&e.features) >= 0.0) == e.label).count();
    let accuracy = (!held.is_empty()).then(|| right as f64 / held.len() as f64);
    let mut held_out = assess(&held, &score(&held), Some(&policy), seed);
    if let Some(reason) = why_no_auc(examples).filter(|_| held_out.metrics.auc.is_none()) {
        held_out.advice = reason;
    }
    Ok(TrainedPolicy { held_out, accuracy, trained_on: metrics::metrics(&predicted), n: seen.len(), policy })
}

/// Assesses training on such pairs: every pair is predicted by a policy trained without its query.
///
/// # Errors
/// As [`train_and_hold_out`].
pub fn cross_validate(examples: &[TrainingExample], seed: u64) -> Result<Assessment, LearnError> {
    check(examples)?;
    let (mut all, mut scores) = (Vec::new(), Vec::new());
    for part in 0..PARTS {
        let (seen, held) = hold_out(examples, part, seed);
        if held.is_empty() {
            continue;
        }
        let policy = train(&seen, WeightSpelling::Snake)?;
        // Each part has its own bias, which is lower the more of its own queries went well: comparing scores between
        // parts would make any policy look worse than it is.
        scores.extend(held.iter().map(|e| (part, policy.score(&e.features))));
        all.extend(held);
    }
    Ok(assess_parts(&all, &scores, None, seed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recall::learn::split::Random;
    use crate::recall::policy::probability;

    fn pairs(n: usize, strength: f64) -> Vec<TrainingExample> {
        let mut random = Random::new(11);
        let one = |i: usize| {
            let features = std::array::from_fn(|k| if k == 1 { 0.4 } else { random.unit() });
            TrainingExample {
                query: i / 5,
                features,
                label: random.unit() < probability(strength * (features[0] - 0.5)),
            }
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn a_policy_that_learned_something_is_told_from_one_that_did_not() {
        let found = train_and_hold_out(&pairs(2_000, 6.0), WeightSpelling::Snake, 1).unwrap();
        assert_eq!(found.held_out.verdict, "better than chance");
        assert_eq!(found.held_out.n + found.n, 2_000);
        assert!(found.held_out.features[0].auc.unwrap() > 0.7 && found.held_out.features[1].auc.is_none());
        let nothing = train_and_hold_out(&pairs(2_000, 0.0), WeightSpelling::Snake, 1).unwrap();
        assert_eq!(nothing.held_out.verdict, "no better than chance");
        assert!(nothing.held_out.advice.contains("do not activate"));
    }

    #[test]
    fn both_kinds_are_held_out_wherever_there_are_two_of_each() {
        let features = std::array::from_fn(|_| 0.5);
        let pair = |query, label| TrainingExample { query, features, label };
        for seed in 0..50 {
            let mixed = [pair(0, true), pair(0, false), pair(1, true), pair(1, false)];
            let pure = [pair(0, true), pair(1, false), pair(2, false), pair(3, true), pair(4, false)];
            let half = [pair(0, true), pair(0, false), pair(1, false), pair(2, true), pair(3, false)];
            for examples in [&mixed[..], &pure, &half] {
                let found = train_and_hold_out(examples, WeightSpelling::Snake, seed).unwrap();
                assert!(found.held_out.metrics.auc.is_some(), "seed {seed}: {examples:?}");
            }
            let lone = [pair(0, true), pair(1, false), pair(2, false)];
            let found = train_and_hold_out(&lone, WeightSpelling::Snake, seed).unwrap();
            assert!(found.held_out.metrics.auc.is_none() && found.held_out.advice.contains("1 query has positive"));
        }
    }

    #[test]
    fn no_query_stands_on_both_sides() {
        let all = pairs(500, 1.0);
        let (seen, held) = hold_out(&all, 0, 3);
        assert_eq!(seen.len() + held.len(), 500);
        assert!(held.iter().all(|h| seen.iter().all(|s| s.query != h.query)));
    }

    #[test]
    fn cross_validation_predicts_every_pair() {
        let found = cross_validate(&pairs(600, 6.0), 1).unwrap();
        assert_eq!((found.n, found.queries), (600, 120));
        assert!(found.mixed_queries > 60 && !found.advice.contains("one label"));
        let whole: Vec<TrainingExample> =
            pairs(600, 6.0).into_iter().map(|e| TrainingExample { label: e.query % 3 == 0, ..e }).collect();
        let found = cross_validate(&whole, 1).unwrap();
        assert!(found.mixed_queries == 0 && found.advice.contains("all 120 queries"), "{}", found.advice);
        assert_eq!(
            train_and_hold_out(&[pairs(5, 0.0), pairs(5, 9.0)].concat()[..5], WeightSpelling::Snake, 1)
                .err()
                .map(|e| { matches!(e, LearnError::OneQuery(5) | LearnError::OneClass { .. }) }),
            Some(true)
        );
    }
}
