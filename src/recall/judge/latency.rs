//! Durations of the four stages of recall, and its cost in tokens, from the trail of accesses.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::recall::understand::mean;

/// The four stages, in their order.
pub const STAGES: [&str; 4] = ["retrieve", "reuse", "evaluate", "retain"];

/// An access as far as these numbers look at it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimedAccess {
    /// Kind as stored.
    pub kind: String,
    /// Milliseconds.
    pub latency_ms: Option<f64>,
    /// Tokens that were added to the context.
    pub tokens: Option<i64>,
    /// Rows that it gave.
    pub rows: usize,
    /// Version of the policy that ranked them.
    pub policy_version: Option<i64>,
}

/// Times of a stage or a kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyTimes {
    /// The stage, or the kind as stored.
    pub name: String,
    /// Accesses.
    pub n: usize,
    /// Accesses among these with a recorded time.
    pub timed: usize,
    /// Mean, in milliseconds; none when no time is recorded.
    pub mean_ms: Option<f64>,
    /// Half are faster.
    pub p50_ms: Option<f64>,
    /// 19 of 20 are faster.
    pub p95_ms: Option<f64>,
}

/// Statistics from the trail of accesses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccessTrail {
    /// Accesses.
    pub n: usize,
    /// The four stages; one of which nothing is recorded has n 0.
    pub stages: Vec<LatencyTimes>,
    /// By kind as stored.
    pub kinds: Vec<LatencyTimes>,
    /// Mean tokens of a recall; none when none are recorded.
    pub tokens: Option<f64>,
    /// Recalls behind the mean.
    pub tokens_n: usize,
    /// Mean number of rows of a recall.
    pub rows: Option<f64>,
    /// Share of recalls that gave nothing.
    pub empty_share: Option<f64>,
    /// Recalls by policy version; those without one under `none`.
    pub policy_versions: BTreeMap<String, usize>,
}

/// The stage that an access belongs to, by its kind: `reuse`, `evaluate` and `retain` where the word says so, else it
/// retrieved something.
#[must_use]
pub fn stage(kind: &str) -> &'static str {
    let kind = kind.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    if says(&["reuse", "inject"]) {
        "reuse"
    } else if says(&["evaluat", "judge"]) {
        "evaluate"
    } else if says(&["retain", "insert", "store"]) {
        "retain"
    } else {
        "retrieve"
    }
}

fn times(name: &str, accesses: &[&TimedAccess]) -> LatencyTimes {
    let mut known: Vec<f64> = accesses.iter().filter_map(|a| a.latency_ms).filter(|ms| ms.is_finite()).collect();
    known.sort_by(f64::total_cmp);
    let at = |share: f64| known.get((share * known.len().saturating_sub(1) as f64).round() as usize).copied();
    LatencyTimes {
        name: name.to_owned(),
        n: accesses.len(),
        timed: known.len(),
        mean_ms: mean(known.iter().copied()),
        p50_ms: at(0.5),
        p95_ms: at(0.95),
    }
}

/// Sums up the trail. Rows and tokens are those of accesses that retrieved.
#[must_use]
pub fn trail(accesses: &[TimedAccess]) -> AccessTrail {
    let of_stage = |name: &'static str| {
        let own: Vec<&TimedAccess> = accesses.iter().filter(|a| stage(&a.kind) == name).collect();
        times(name, &own)
    };
    let mut by_kind: BTreeMap<&str, Vec<&TimedAccess>> = BTreeMap::new();
    accesses.iter().for_each(|a| by_kind.entry(&a.kind).or_default().push(a));
    let retrieved: Vec<&TimedAccess> = accesses.iter().filter(|a| stage(&a.kind) == "retrieve").collect();
    let tokens: Vec<f64> = retrieved.iter().filter_map(|a| a.tokens).map(|t| t as f64).collect();
    let mut policy_versions = BTreeMap::new();
    for access in &retrieved {
        let name = access.policy_version.map_or("none".to_owned(), |v| v.to_string());
        *policy_versions.entry(name).or_default() += 1;
    }
    let empty = retrieved.iter().filter(|a| a.rows == 0).count();
    AccessTrail {
        n: accesses.len(),
        stages: STAGES.map(of_stage).to_vec(),
        kinds: by_kind.into_iter().map(|(kind, own)| times(kind, &own)).collect(),
        tokens_n: tokens.len(),
        tokens: mean(tokens),
        rows: mean(retrieved.iter().map(|a| a.rows as f64)),
        empty_share: (!retrieved.is_empty()).then(|| empty as f64 / retrieved.len() as f64),
        policy_versions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_go_by_their_words() {
        let access = |kind: &str, ms: f64, rows| TimedAccess {
            kind: kind.to_owned(),
            latency_ms: Some(ms),
            tokens: Some(100),
            rows,
            policy_version: (rows > 0).then_some(2),
        };
        let all = [
            access("semantic", 10.0, 4),
            access("retrieve_cases", 30.0, 0),
            access("reuse", 5.0, 1),
            access("retain", f64::NAN, 1),
        ];
        let found = trail(&all);
        let (retrieve, retain) = (&found.stages[0], &found.stages[3]);
        assert_eq!((retrieve.n, retrieve.mean_ms, retrieve.p95_ms), (2, Some(20.0), Some(30.0)));
        assert_eq!((retain.n, retain.timed, retain.mean_ms, found.stages[2].n), (1, 0, None, 0));
        assert_eq!(
            (found.tokens, found.tokens_n, found.rows, found.empty_share),
            (Some(100.0), 2, Some(2.0), Some(0.5))
        );
        assert_eq!(found.policy_versions, BTreeMap::from([("2".to_owned(), 1), ("none".to_owned(), 1)]));
    }
}
