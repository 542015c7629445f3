//! Spread of recall over a memory: rows never recalled, rows recalled all the time, and the similarity, age and quality
//! of recalled ones.

use std::collections::HashMap;

use serde::Serialize;

use crate::memory::Entity;
use crate::recall::understand::mean;

/// Similarity above which two recalled rows say the same.
pub const ALIKE: f64 = 0.95;
/// Age in days from which a recalled row is stale.
pub const STALE_DAYS: f64 = 90.0;

/// One recalled row.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledRow {
    /// Kind and id of the row: rows of two kinds may share an id.
    pub key: (Entity, String),
    /// Age of the row at the recall, in days; `None` if unknown.
    pub age_days: Option<f64>,
    /// Whether it is known as bad: negative feedback, a reward below 0.5; `None` if unknown.
    pub bad: Option<bool>,
}

/// Rows recalled for one query, with the known similarities of their pairs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QueryRecall {
    /// The rows, best first.
    pub rows: Vec<RecalledRow>,
    /// Similarity of each comparable pair.
    pub alike: Vec<f64>,
}

/// Spread of recall over a memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecallSpread {
    /// Queries.
    pub queries: usize,
    /// Places filled, over all queries.
    pub places: usize,
    /// Number of recallable rows.
    pub candidates: usize,
    /// Distinct rows that were recalled.
    pub recalled: usize,
    /// Recalled / candidates.
    pub coverage: Option<f64>,
    /// Share of all places taken by the most recalled 1 % of the candidates (at least one): swamping.
    pub top_1_percent_share: Option<f64>,
    /// Value of that share if all candidates were recalled equally often.
    pub top_1_percent_even: Option<f64>,
    /// The most recalled row, and its number of queries.
    pub most_recalled: Option<(String, usize)>,
    /// Share of pairs within one recall that say the same (similarity above 0.95).
    pub redundancy: Option<f64>,
    /// Pairs compared.
    pub pairs: usize,
    /// Mean age of recalled rows, in days.
    pub age_days: Option<f64>,
    /// Share of recalled rows older than 90 days.
    pub stale_share: Option<f64>,
    /// Share of recalled rows of known quality that are bad.
    pub bad_share: Option<f64>,
    /// Number of places in that share.
    pub bad_n: usize,
}

/// Computes the spread of recalls over a number of candidates.
pub fn spread(recalls: &[QueryRecall], candidates: usize) -> RecallSpread {
    let rows = || recalls.iter().flat_map(|r| &r.rows);
    let places = rows().count();
    let mut times: HashMap<&(Entity, String), usize> = HashMap::new();
    rows().for_each(|row| *times.entry(&row.key).or_default() += 1);
    let mut counts: Vec<(&(Entity, String), usize)> = times.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.1.cmp(&b.0.1)).then_with(|| a.0.0.cmp(&b.0.0)));
    let top = candidates.div_ceil(100).max(1);
    let share = |n: usize, of: usize| (of > 0).then(|| n as f64 / of as f64);
    let taken: usize = counts.iter().take(top).map(|(_, n)| n).sum();
    let pairs: Vec<f64> = recalls.iter().flat_map(|r| r.alike.iter().copied()).collect();
    let ages: Vec<f64> = rows().filter_map(|r| r.age_days).collect();
    let known: Vec<bool> = rows().filter_map(|r| r.bad).collect();
    RecallSpread {
        queries: recalls.len(),
        places,
        candidates,
        recalled: counts.len(),
        coverage: share(counts.len(), candidates),
        top_1_percent_share: share(taken, places),
        top_1_percent_even: share(top.min(candidates), candidates),
        most_recalled: counts.first().map(|((_, id), n)| (id.clone(), *n)),
        redundancy: share(pairs.iter().filter(|s| **s > ALIKE).count(), pairs.len()),
        pairs: pairs.len(),
        stale_share: share(ages.iter().filter(|a| **a > STALE_DAYS).count(), ages.len()),
        age_days: mean(ages),
        bad_share: share(known.iter().filter(|b| **b).count(), known.len()),
        bad_n: known.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, age: f64, bad: Option<bool>) -> RecalledRow {
        RecalledRow { key: (Entity::Case, id.to_owned()), age_days: Some(age), bad }
    }

    #[test]
    fn one_case_in_every_recall_swamps() {
        let recalls: Vec<QueryRecall> = (0..10)
            .map(|i| QueryRecall {
                rows: vec![row("poison", 1.0, Some(true)), row(&format!("c{i}"), 100.0, None)],
                alike: vec![if i == 0 { 0.99 } else { 0.2 }],
            })
            .collect();
        let found = spread(&recalls, 100);
        assert_eq!((found.recalled, found.coverage, found.places), (11, Some(0.11), 20));
        assert_eq!((found.top_1_percent_share, found.top_1_percent_even), (Some(0.5), Some(0.01)));
        assert_eq!(found.most_recalled, Some(("poison".to_owned(), 10)));
        assert_eq!((found.redundancy, found.pairs), (Some(0.1), 10));
        assert_eq!((found.age_days, found.stale_share), (Some(50.5), Some(0.5)));
        assert_eq!((found.bad_share, found.bad_n), (Some(1.0), 10));
    }

    #[test]
    fn nothing_recalled_is_unknown() {
        let found = spread(&[], 0);
        assert_eq!(
            (found.coverage, found.top_1_percent_share, found.redundancy, found.bad_share),
            (None, None, None, None)
        );
    }
}
