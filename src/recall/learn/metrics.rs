//! Quality of predictions: AUC, Brier score, calibration and loss, with intervals from resampling queries.

use serde::Serialize;

use super::split::Random;
use crate::recall::policy::probability;

/// Bins of the calibration, of equal width over 0..1.
pub const BINS: usize = 10;
/// Number of resamplings for an interval.
pub const DRAWS: usize = 1_000;

/// A prediction with its actual label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelledPrediction {
    /// Number of the query, which is resampled as a whole.
    pub query: usize,
    /// Number of the policy that predicted it, if there are several: scores of different policies are not compared.
    pub part: u64,
    /// Score on the logit scale.
    pub score: f64,
    /// Actual outcome.
    pub label: bool,
}

/// The four metrics. AUC is `None` without both labels, all are `None` without predictions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Metrics {
    /// Chance that a positive is scored above a negative, ties counting half: 0..1, 0.5 is chance.
    pub auc: Option<f64>,
    /// Mean squared difference of probability and outcome, in 0..1.
    pub brier: Option<f64>,
    /// Expected calibration error: mean distance of predicted and observed share over the bins, weighted by size.
    pub ece: Option<f64>,
    /// Mean binary cross-entropy, in nats.
    pub loss: Option<f64>,
}

/// One bin of the calibration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalibrationBin {
    /// Lower edge of the predicted probability.
    pub from: f64,
    /// Upper edge.
    pub to: f64,
    /// Predictions in it.
    pub n: usize,
    /// Mean predicted probability; `None` for an empty bin.
    pub predicted: Option<f64>,
    /// The share that came true; `None` for an empty bin.
    pub observed: Option<f64>,
}

/// The 2.5th and 97.5th percentile of each metric over the samples; `None` if it could not be computed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Interval of the AUC.
    pub auc: Option<[f64; 2]>,
    /// Interval of the Brier score.
    pub brier: Option<[f64; 2]>,
    /// Interval of the calibration error.
    pub ece: Option<[f64; 2]>,
    /// Interval of the loss.
    pub loss: Option<[f64; 2]>,
}

/// AUC of scores with labels; `None` without both labels.
pub fn auc(scored: impl IntoIterator<Item = (f64, bool)>) -> Option<f64> {
    let mut scored: Vec<(f64, bool, f64)> = scored.into_iter().map(|(score, label)| (score, label, 1.0)).collect();
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (wins, pairs) = won(&scored);
    (pairs > 0.0).then(|| wins / pairs)
}

/// Weighted pairs of a positive and a negative in sorted scores: how many the positive wins, with ties counting half,
/// and their number.
fn won(sorted: &[(f64, bool, f64)]) -> (f64, f64) {
    let (mut below, mut wins, mut positives) = (0.0, 0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let of = |kind: bool| tied.iter().filter(|t| t.1 == kind).map(|t| t.2).sum::<f64>();
        let (up, down) = (of(true), of(false));
        wins += up * (below + down / 2.0);
        positives += up;
        below += down;
    }
    (wins, positives * below)
}

/// Cross-entropy of one prediction on the logit scale, without overflow.
fn cross_entropy(score: f64, label: bool) -> f64 {
    score.max(0.0) + (-score.abs()).exp().ln_1p() - if label { score } else { 0.0 }
}

fn bin_of(probability: f64) -> usize {
    ((probability * BINS as f64) as usize).min(BINS - 1)
}

/// Calibration: how often predictions came true.
pub fn calibration(predicted: &[LabelledPrediction]) -> Vec<CalibrationBin> {
    let mut sums = [(0_usize, 0.0, 0_usize); BINS];
    for one in predicted {
        let p = probability(one.score);
        if let Some(sum) = sums.get_mut(bin_of(p)) {
            *sum = (sum.0 + 1, sum.1 + p, sum.2 + usize::from(one.label));
        }
    }
    let bin = |(i, (n, p, hits)): (usize, (usize, f64, usize))| CalibrationBin {
        from: i as f64 / BINS as f64,
        to: (i + 1) as f64 / BINS as f64,
        n,
        predicted: (n > 0).then(|| p / n as f64),
        observed: (n > 0).then(|| hits as f64 / n as f64),
    };
    sums.into_iter().enumerate().map(bin).collect()
}

/// A prediction prepared for repeated counting.
struct Ready {
    query: usize,
    part: u64,
    score: f64,
    label: bool,
    brier: f64,
    loss: f64,
    bin: usize,
    probability: f64,
}

fn ready(predicted: &[LabelledPrediction]) -> Vec<Ready> {
    let one = |p: &LabelledPrediction| {
        let probability = probability(p.score);
        let miss = probability - f64::from(u8::from(p.label));
        Ready {
            query: p.query,
            part: p.part,
            score: p.score,
            label: p.label,
            brier: miss * miss,
            loss: cross_entropy(p.score, p.label),
            bin: bin_of(probability),
            probability,
        }
    };
    let mut ready: Vec<Ready> = predicted.iter().map(one).collect();
    ready.sort_by(|a, b| a.part.cmp(&b.part).then_with(|| a.score.total_cmp(&b.score)));
    ready
}

/// The metrics of sorted predictions, each weighted by `times` of its query.
fn counted(ready: &[Ready], times: impl Fn(usize) -> f64) -> Metrics {
    let (mut n, mut brier, mut loss) = (0.0, 0.0, 0.0);
    let mut gaps = [0.0; BINS];
    let (mut wins, mut pairs) = (0.0, 0.0);
    let mut scored = Vec::with_capacity(ready.len());
    for part in ready.chunk_by(|a, b| a.part == b.part) {
        scored.clear();
        for one in part {
            let weight = times(one.query);
            if weight == 0.0 {
                continue;
            }
            n += weight;
            brier += weight * one.brier;
            loss += weight * one.loss;
            gaps[one.bin] += weight * (one.probability - f64::from(u8::from(one.label)));
            scored.push((one.score, one.label, weight));
        }
        let (more, of) = won(&scored);
        (wins, pairs) = (wins + more, pairs + of);
    }
    let some = |value: f64| (n > 0.0).then(|| value / n);
    Metrics {
        auc: (pairs > 0.0).then(|| wins / pairs),
        brier: some(brier),
        ece: some(gaps.iter().map(|gap| gap.abs()).sum()),
        loss: some(loss),
    }
}

/// The metrics of predictions.
pub fn metrics(predicted: &[LabelledPrediction]) -> Metrics {
    counted(&ready(predicted), |_| 1.0)
}

/// Intervals of the metrics: resamples queries, with all their predictions, [`DRAWS`] times.
pub fn intervals(predicted: &[LabelledPrediction], seed: u64) -> Interval {
    let queries = predicted.iter().map(|p| p.query + 1).max().unwrap_or_default();
    let ready = ready(predicted);
    let there: Vec<usize> = {
        let mut there: Vec<usize> = predicted.iter().map(|p| p.query).collect();
        there.sort_unstable();
        there.dedup();
        there
    };
    let mut random = Random::new(seed);
    let drawn: Vec<Metrics> = (0..DRAWS)
        .map(|_| {
            let mut times = vec![0.0; queries];
            for _ in 0..there.len() {
                if let Some(query) = there.get(random.below(there.len()))
                    && let Some(times) = times.get_mut(*query)
                {
                    *times += 1.0;
                }
            }
            counted(&ready, |query| times.get(query).copied().unwrap_or(0.0))
        })
        .collect();
    let of = |pick: fn(&Metrics) -> Option<f64>| percentiles(drawn.iter().filter_map(pick).collect());
    Interval { auc: of(|m| m.auc), brier: of(|m| m.brier), ece: of(|m| m.ece), loss: of(|m| m.loss) }
}

/// The 2.5th and 97.5th percentile; `None` for no values.
pub fn percentiles(mut values: Vec<f64>) -> Option<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values.get((share * (values.len().saturating_sub(1)) as f64).round() as usize).copied();
    Some([at(0.025)?, at(0.975)?])
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use proptest::prelude::*;

    use super::*;

    fn predicted(scores: &[(f64, bool)]) -> Vec<LabelledPrediction> {
        scores
            .iter()
            .enumerate()
            .map(|(query, (score, label))| LabelledPrediction { query, part: 0, score: *score, label: *label })
            .collect()
    }

    #[test]
    fn metrics_by_hand() {
        // Probabilities 0.5, 0.5, 0.75 with outcomes no, yes, yes.
        let all = predicted(&[(0.0, false), (0.0, true), (3.0_f64.ln(), true)]);
        let found = metrics(&all);
        assert_eq!(found.auc, Some(0.75));
        assert!((found.brier.unwrap() - (0.25 + 0.25 + 0.0625) / 3.0).abs() < 1e-12);
        let loss = (2.0 * 2.0_f64.ln() + (4.0_f64 / 3.0).ln()) / 3.0;
        assert!((found.loss.unwrap() - loss).abs() < 1e-12);
        // Bin 0.5: predicted 0.5, observed 0.5; bin 0.7: predicted 0.75, observed 1.
        assert!((found.ece.unwrap() - 0.25 / 3.0).abs() < 1e-12);
        let bins = calibration(&all);
        assert_eq!((bins[5].n, bins[5].observed, bins[7].observed, bins[0].predicted), (2, Some(0.5), Some(1.0), None));
    }

    #[test]
    fn scores_of_different_policies_are_not_compared() {
        let mut all = predicted(&[(0.0, false), (1.0, true), (8.0, false), (9.0, true)]);
        assert_eq!(metrics(&all).auc, Some(0.75));
        all.iter_mut().skip(2).for_each(|p| p.part = 1);
        assert_eq!(metrics(&all).auc, Some(1.0));
    }

    #[test]
    fn nothing_and_one_class_have_no_auc() {
        assert_eq!(auc([]), None);
        assert_eq!(metrics(&[]).brier, None);
        assert_eq!(auc([(1.0, true), (2.0, true)]), None);
        assert_eq!(intervals(&[], 1).auc, None);
    }

    #[test]
    fn an_interval_holds_the_value_and_is_the_same_each_time() {
        let all: Vec<LabelledPrediction> = (0..300)
            .map(|i| LabelledPrediction {
                query: i / 3,
                part: 0,
                score: f64::from((i * 7919 % 100) as u8),
                label: i * 31 % 7 < 3,
            })
            .collect();
        let (value, found) = (metrics(&all).auc.unwrap(), intervals(&all, 5));
        let [low, high] = found.auc.unwrap();
        assert!(low < value && value < high && low > 0.3 && high < 0.7, "{low} {value} {high}");
        assert_eq!(found, intervals(&all, 5));
    }

    proptest! {
        #[test]
        fn auc_does_not_mind_a_rising_change_of_scores_and_turns_with_the_labels(
            scored in prop::collection::vec((-50..50i32, any::<bool>()), 2..60)
        ) {
            let as_is = auc(scored.iter().map(|(s, l)| (f64::from(*s), *l)));
            let risen = auc(scored.iter().map(|(s, l)| ((f64::from(*s) / 9.0).exp(), *l)));
            let turned = auc(scored.iter().map(|(s, l)| (f64::from(*s), !*l)));
            let negated = auc(scored.iter().map(|(s, l)| (-f64::from(*s), *l)));
            prop_assert_eq!(as_is.is_some(), turned.is_some());
            if let (Some(a), Some(r), Some(t), Some(n)) = (as_is, risen, turned, negated) {
                prop_assert!((a - r).abs() < 1e-12);
                prop_assert!((a + t - 1.0).abs() < 1e-12);
                prop_assert!((a + n - 1.0).abs() < 1e-12);
                // The definition: over all pairs of a positive and a negative.
                let (mut wins, mut pairs) = (0.0, 0.0);
                for (s, _) in scored.iter().filter(|x| x.1) {
                    for (z, _) in scored.iter().filter(|x| !x.1) {
                        pairs += 1.0;
                        wins += match s.cmp(z) { Ordering::Greater => 1.0, Ordering::Equal => 0.5, Ordering::Less => 0.0 };
                    }
                }
                prop_assert!((a - wins / pairs).abs() < 1e-12);
            }
        }
    }
}
