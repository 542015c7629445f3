//! Memories that consistently mislead and those that help: what became of the episodes that used them.

use std::sync::Arc;

use serde::Serialize;

use super::mean;

/// Episodes from which a memory is judged; fewer say little.
pub const LEAST: usize = 3;
/// Latest uses that count.
pub const LATEST: usize = 20;
/// Mean utility at or below which a memory misleads; at or above 1 - this it helps.
const LOW: f64 = 0.4;

/// The rule, for people.
pub const RULE: &str = "of at least 3 uses, the latest 20: mean utility 0.4 or less and two thirds of them below 0.5 \
                        misleads; 0.6 or more and two thirds of them above 0.5 helps";

/// One use of a memory: by an episode or case whose utility (or reward) is known.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryUse {
    /// The memory.
    pub memory: String,
    /// Utility of what used it, in 0..1.
    pub utility: f64,
    /// When, in the canonical spelling; a case may use a million memories at one time.
    pub at: Option<Arc<str>>,
}

/// A memory with what became of its uses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Usefulness {
    /// The memory.
    pub id: String,
    /// What it is called; filled in by whoever knows.
    pub title: Option<String>,
    /// Mean utility of its latest uses.
    pub utility: f64,
    /// Uses behind the mean.
    pub n: usize,
    /// Of these, below 0.5.
    pub low: usize,
    /// Of these, above 0.5.
    pub high: usize,
}

/// Who misleads and who helps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedMemories {
    /// The rule.
    pub rule: &'static str,
    /// Memories with at least one use of known utility.
    pub used: usize,
    /// Memories with enough uses to be judged.
    pub judged: usize,
    /// Memories that consistently mislead, in all.
    pub mislead_total: usize,
    /// Memories that consistently help, in all.
    pub help_total: usize,
    /// The worst first.
    pub mislead: Vec<Usefulness>,
    /// The best first.
    pub help: Vec<Usefulness>,
}

/// Judges memories by their uses and keeps the first `shown` of either kind.
#[must_use]
pub fn judge(mut uses: Vec<MemoryUse>, shown: usize) -> JudgedMemories {
    uses.sort_by(|a, b| a.memory.cmp(&b.memory).then_with(|| b.at.cmp(&a.at)));
    let used = uses.chunk_by(|a, b| a.memory == b.memory).count();
    let mut all: Vec<Usefulness> = uses.chunk_by(|a, b| a.memory == b.memory).filter_map(of_one).collect();
    let judged = all.len();
    all.sort_by(|a, b| a.utility.total_cmp(&b.utility).then(b.n.cmp(&a.n)).then_with(|| a.id.cmp(&b.id)));
    let misleads = |u: &&Usefulness| u.utility <= LOW && u.low * 3 >= u.n * 2;
    let helps = |u: &&Usefulness| u.utility >= 1.0 - LOW && u.high * 3 >= u.n * 2;
    JudgedMemories {
        rule: RULE,
        used,
        judged,
        mislead_total: all.iter().filter(misleads).count(),
        help_total: all.iter().filter(helps).count(),
        mislead: all.iter().filter(misleads).take(shown).cloned().collect(),
        help: all.iter().rev().filter(helps).take(shown).cloned().collect(),
    }
}

/// A memory by its uses, the latest first.
fn of_one(uses: &[MemoryUse]) -> Option<Usefulness> {
    let uses = &uses[..uses.len().min(LATEST)];
    let n = uses.len();
    let utility = mean(uses.iter().map(|u| u.utility)).filter(|_| n >= LEAST)?;
    let low = uses.iter().filter(|u| u.utility < 0.5).count();
    let high = uses.iter().filter(|u| u.utility > 0.5).count();
    Some(Usefulness { id: uses.first()?.memory.clone(), title: None, utility, n, low, high })
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the same numbers come out to the bit")]
mod tests {
    use super::*;

    fn uses(memory: &str, utilities: &[f64]) -> Vec<MemoryUse> {
        let one = |(i, u): (usize, &f64)| MemoryUse {
            memory: memory.to_owned(),
            utility: *u,
            at: Some(format!("{i:03}").into()),
        };
        utilities.iter().enumerate().map(one).collect()
    }

    #[test]
    fn consistent_memories_are_told_from_mixed_and_rare_ones() {
        let mut all = uses("bad", &[0.1, 0.2, 0.45]);
        all.extend(uses("good", &[0.9, 0.8, 0.7, 0.5]));
        all.extend(uses("mixed", &[0.0, 1.0, 0.0, 1.0]));
        all.extend(uses("rare", &[0.0, 0.0]));
        let found = judge(all, 10);
        assert_eq!((found.used, found.judged, found.mislead_total, found.help_total), (4, 3, 1, 1));
        assert_eq!((found.mislead[0].id.as_str(), found.mislead[0].n), ("bad", 3));
        assert_eq!((found.help[0].id.as_str(), found.help[0].high), ("good", 3));
    }

    #[test]
    fn only_the_latest_uses_count() {
        let mut history = vec![0.0; 30];
        history.extend([1.0; 20]);
        assert_eq!(judge(uses("m", &history), 1).help[0].utility, 1.0);
    }
}
