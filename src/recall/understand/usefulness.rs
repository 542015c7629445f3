//! Memories that consistently mislead and those that help: what became of the episodes that used them.

use std::collections::HashMap;

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

/// Uses of memories, by episodes or cases whose utility (or reward) is known. Of each memory only the latest are kept.
#[derive(Debug, Clone, Default)]
pub struct MemoryUses(HashMap<Box<str>, Vec<TimedUse>>);

/// A use: when, in microseconds since 1970, [`NEVER`] where that is unknown, and the utility of what used the memory, in
/// 0..1.
type TimedUse = (i64, f64);

/// Before all times.
const NEVER: i64 = i64::MIN;

impl MemoryUses {
    /// Takes a use of a memory.
    pub fn add(&mut self, memory: &str, at: Option<i64>, utility: f64) {
        let uses = match self.0.get_mut(memory) {
            Some(uses) => uses,
            None => self.0.entry(memory.into()).or_default(),
        };
        // Most have few uses, and there may be very many memories.
        if uses.len() == uses.capacity() {
            uses.reserve_exact(uses.len() / 2 + 2);
        }
        uses.push((at.unwrap_or(NEVER), utility));
        if uses.len() >= 2 * LATEST {
            latest(uses);
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Keeps the latest uses, the latest first; those of one time stay in the order in which they came.
fn latest(uses: &mut Vec<TimedUse>) {
    uses.sort_by_key(|used| std::cmp::Reverse(used.0));
    uses.truncate(LATEST);
}

/// A memory with what became of its uses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Usefulness {
    /// The memory.
    pub id: String,
    /// Title of the memory; filled in by the caller that knows it.
    pub title: Option<String>,
    /// Mean utility of its latest uses.
    pub utility: f64,
    /// Uses behind the mean.
    pub n: usize,
    /// Uses among these with a utility below 0.5.
    pub low: usize,
    /// Uses among these with a utility above 0.5.
    pub high: usize,
}

/// Memories that mislead, and memories that help.
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
pub fn judge(uses: MemoryUses, shown: usize) -> JudgedMemories {
    let used = uses.0.len();
    let mut all: Vec<Usefulness> = uses.0.into_iter().filter_map(|(memory, uses)| of_one(memory, uses)).collect();
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

/// A memory by its uses.
fn of_one(id: Box<str>, mut uses: Vec<TimedUse>) -> Option<Usefulness> {
    latest(&mut uses);
    let n = uses.len();
    let utility = mean(uses.iter().map(|(_, utility)| *utility)).filter(|_| n >= LEAST)?;
    let low = uses.iter().filter(|(_, utility)| *utility < 0.5).count();
    let high = uses.iter().filter(|(_, utility)| *utility > 0.5).count();
    Some(Usefulness { id: id.into(), title: None, utility, n, low, high })
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the same numbers come out to the bit")]
mod tests {
    use super::*;

    fn uses(of: &[(&str, &[f64])]) -> MemoryUses {
        let mut uses = MemoryUses::default();
        for (memory, utilities) in of {
            utilities.iter().enumerate().for_each(|(at, utility)| uses.add(memory, Some(at as i64), *utility));
        }
        uses
    }

    #[test]
    fn consistent_memories_are_told_from_mixed_and_rare_ones() {
        let all = uses(&[
            ("bad", &[0.1, 0.2, 0.45]),
            ("good", &[0.9, 0.8, 0.7, 0.5]),
            ("mixed", &[0.0, 1.0, 0.0, 1.0]),
            ("rare", &[0.0, 0.0]),
        ]);
        let found = judge(all, 10);
        assert_eq!((found.used, found.judged, found.mislead_total, found.help_total), (4, 3, 1, 1));
        assert_eq!((found.mislead[0].id.as_str(), found.mislead[0].n), ("bad", 3));
        assert_eq!((found.help[0].id.as_str(), found.help[0].high), ("good", 3));
    }

    #[test]
    fn only_the_latest_uses_count() {
        let mut history = vec![0.0; 30];
        history.extend([1.0; 20]);
        assert_eq!(judge(uses(&[("m", &history)]), 1).help[0].utility, 1.0);
    }
}
