//! Hit rate, precision, nDCG and reciprocal rank of ranked rows against relevant ones, with intervals.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::recall::learn::metrics::{DRAWS, percentiles};
use crate::recall::learn::split::Random;

/// Default number of recalled rows.
pub const K: usize = 4;
/// Values of K to compare.
pub const SWEEP: [usize; 7] = [1, 2, 3, 4, 5, 8, 10];
/// Most ranks considered.
pub const DEPTH: usize = 10;

/// One judged query: the grades of the ranked rows, best rank first, and of all relevant rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GradedRanking {
    /// Grade of each ranked row, 0 if it is not relevant.
    pub ranked: Vec<f64>,
    /// Grades of all relevant rows, in any order; all above 0.
    pub relevant: Vec<f64>,
}

impl GradedRanking {
    /// Grades a ranking of rows by the grades of relevant ones.
    pub fn of<K: Ord>(ranking: &[K], relevant: &BTreeMap<K, f64>) -> Self {
        let ranked = ranking.iter().map(|row| relevant.get(row).copied().unwrap_or(0.0).max(0.0)).collect();
        GradedRanking { ranked, relevant: relevant.values().copied().filter(|grade| *grade > 0.0).collect() }
    }

    fn first(&self, k: usize) -> &[f64] {
        self.ranked.get(..k.min(self.ranked.len())).unwrap_or_default()
    }

    /// 1 if one of the first k is relevant, otherwise 0.
    pub fn hit(&self, k: usize) -> f64 {
        if self.first(k).iter().any(|g| *g > 0.0) { 1.0 } else { 0.0 }
    }

    /// Relevant ones among the first k / k: places that stay empty count as misses.
    pub fn precision(&self, k: usize) -> f64 {
        self.first(k).iter().filter(|g| **g > 0.0).count() as f64 / k.max(1) as f64
    }

    /// Discounted gain of the first k (grade / log2(rank + 1)) relative to the best possible order.
    pub fn ndcg(&self, k: usize) -> f64 {
        let gain = |grades: &[f64]| -> f64 {
            grades.iter().take(k).enumerate().map(|(i, g)| g / (i as f64 + 2.0).log2()).sum()
        };
        let mut best = self.relevant.clone();
        best.sort_by(|a, b| b.total_cmp(a));
        let (found, most) = (gain(self.first(k)), gain(&best));
        // Avoids -0 in output.
        if found > 0.0 && most > 0.0 { found / most } else { 0.0 }
    }

    /// 1 / rank of the first relevant one; 0 if there is none within the first [`DEPTH`].
    pub fn reciprocal_rank(&self) -> f64 {
        self.first(DEPTH).iter().position(|g| *g > 0.0).map_or(0.0, |i| 1.0 / (i + 1) as f64)
    }
}

/// A mean over queries with its 95 % interval, by resampling queries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanEstimate {
    /// The mean; `None` without queries.
    pub value: Option<f64>,
    /// Queries.
    pub n: usize,
    /// The interval.
    pub interval: Option<[f64; 2]>,
}

/// Mean and interval of one number per query.
pub fn estimate(values: &[f64], seed: u64) -> MeanEstimate {
    let n = values.len();
    if n == 0 {
        return MeanEstimate { value: None, n, interval: None };
    }
    let mut random = Random::new(seed);
    let drawn = (0..DRAWS).map(|_| {
        let sum: f64 = (0..n).filter_map(|_| values.get(random.below(n))).sum();
        sum / n as f64
    });
    let interval = percentiles(drawn.collect());
    MeanEstimate { value: Some(values.iter().sum::<f64>() / n as f64), n, interval }
}

/// Quality of rankings on judged queries.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankingQuality {
    /// Judged queries with at least one relevant row.
    pub n: usize,
    /// Queries left out because no row is relevant.
    pub without_relevant: usize,
    /// Rows that count.
    pub k: usize,
    /// Share of queries with a relevant row among the first k.
    pub hit_rate: MeanEstimate,
    /// Share of relevant rows among the first k.
    pub precision_at_k: MeanEstimate,
    /// Discounted gain of the first k, as a share of the best order's.
    pub ndcg_at_k: MeanEstimate,
    /// Mean reciprocal rank of the first relevant row, within the first ten.
    pub mrr: MeanEstimate,
    /// The same for other k, without intervals.
    pub sweep: Vec<RankSweep>,
}

impl RankingQuality {
    /// Returns the four numbers, with their names for users.
    pub fn named(&self) -> [(String, &MeanEstimate); 4] {
        let k = self.k;
        [
            ("hit rate".to_owned(), &self.hit_rate),
            (format!("precision@{k}"), &self.precision_at_k),
            (format!("nDCG@{k}"), &self.ndcg_at_k),
            ("MRR".to_owned(), &self.mrr),
        ]
    }
}

/// The means at one k.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankSweep {
    /// Rows that count.
    pub k: usize,
    /// Share of queries with a relevant row.
    pub hit_rate: f64,
    /// Share of relevant rows.
    pub precision: f64,
    /// Discounted gain.
    pub ndcg: f64,
}

/// Judges rankings at k; queries without relevant rows are counted and left out.
pub fn quality(queries: &[GradedRanking], k: usize, seed: u64) -> RankingQuality {
    let judged: Vec<&GradedRanking> = queries.iter().filter(|q| !q.relevant.is_empty()).collect();
    let each = |number: &dyn Fn(&GradedRanking) -> f64| -> Vec<f64> { judged.iter().map(|q| number(q)).collect() };
    let mean = |values: Vec<f64>| match values.len() {
        0 => 0.0,
        n => values.iter().sum::<f64>() / n as f64,
    };
    let at = |k: usize| RankSweep {
        k,
        hit_rate: mean(each(&|q| q.hit(k))),
        precision: mean(each(&|q| q.precision(k))),
        ndcg: mean(each(&|q| q.ndcg(k))),
    };
    RankingQuality {
        n: judged.len(),
        without_relevant: queries.len() - judged.len(),
        k,
        hit_rate: estimate(&each(&|q| q.hit(k)), seed),
        precision_at_k: estimate(&each(&|q| q.precision(k)), seed),
        ndcg_at_k: estimate(&each(&|q| q.ndcg(k)), seed),
        mrr: estimate(&each(&GradedRanking::reciprocal_rank), seed),
        sweep: if judged.is_empty() { Vec::new() } else { SWEEP.map(at).to_vec() },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(ranked: &[f64], relevant: &[f64]) -> GradedRanking {
        GradedRanking { ranked: ranked.to_vec(), relevant: relevant.to_vec() }
    }

    #[test]
    fn numbers_by_hand() {
        // Relevant at ranks 2 and 4, three relevant in all.
        let q = judged(&[0.0, 1.0, 0.0, 1.0, 1.0], &[1.0, 1.0, 1.0]);
        let gain = 1.0 / 3.0_f64.log2() + 1.0 / 5.0_f64.log2();
        let best = 1.0 + 1.0 / 3.0_f64.log2() + 0.5;
        assert_eq!((q.hit(1), q.hit(4), q.precision(4), q.reciprocal_rank()), (0.0, 1.0, 0.5, 0.5));
        assert!((q.ndcg(4) - gain / best).abs() < 1e-12);
        let nothing = judged(&[0.0], &[1.0]);
        assert_eq!((nothing.ndcg(4), nothing.reciprocal_rank(), nothing.precision(4)), (0.0, 0.0, 0.0));
        let [tenth, eleventh] = [9, 10].map(|before| judged(&[vec![0.0; before], vec![1.0]].concat(), &[1.0]));
        assert_eq!((tenth.reciprocal_rank(), eleventh.reciprocal_rank(), eleventh.hit(11)), (0.1, 0.0, 1.0));
        let found = quality(&[q, nothing, judged(&[1.0], &[])], 4, 1);
        assert_eq!((found.n, found.without_relevant, found.hit_rate.value), (2, 1, Some(0.5)));
        assert_eq!(found.precision_at_k.value, Some(0.25));
        assert_eq!((found.sweep[0].k, found.sweep[0].hit_rate), (1, 0.0));
    }

    #[test]
    fn grades_and_short_rankings_count() {
        let relevant = BTreeMap::from([("a".to_owned(), 2.0), ("b".to_owned(), 1.0), ("c".to_owned(), 0.0)]);
        let q = GradedRanking::of(&["b".to_owned(), "a".to_owned()], &relevant);
        assert_eq!((q.ranked.as_slice(), q.relevant.len(), q.precision(4)), (&[1.0, 2.0][..], 2, 0.5));
        let second = 1.0 / 3.0_f64.log2();
        assert!((q.ndcg(4) - (1.0 + 2.0 * second) / (2.0 + second)).abs() < 1e-12);
    }

    #[test]
    fn nothing_judged_is_unknown() {
        let found = quality(&[], 4, 1);
        assert_eq!((found.hit_rate.value, found.hit_rate.interval, found.sweep.len()), (None, None, 0));
    }

    proptest! {
        #[test]
        fn numbers_stay_in_range_and_the_best_order_is_perfect(
            ranked in prop::collection::vec(0..3u8, 0..12), k in 1..10usize
        ) {
            let mut grades: Vec<f64> = ranked.iter().map(|g| f64::from(*g)).collect();
            let relevant: Vec<f64> = grades.iter().copied().filter(|g| *g > 0.0).collect();
            let q = judged(&grades, &relevant);
            for value in [q.hit(k), q.precision(k), q.ndcg(k), q.reciprocal_rank()] {
                prop_assert!((0.0..=1.0 + 1e-12).contains(&value));
            }
            grades.sort_by(|a, b| b.total_cmp(a));
            let best = judged(&grades, &relevant);
            prop_assert!(best.ndcg(k) >= q.ndcg(k) - 1e-12);
            prop_assert!(relevant.is_empty() || (best.ndcg(k) - 1.0).abs() < 1e-12);
        }
    }
}
