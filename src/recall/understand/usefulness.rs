//! Memories that consistently mislead or help, judged by the outcomes of the episodes that used them.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Serialize;

use crate::memory::score;
use crate::memory::utility::of_memory;

/// Fewest uses from which a memory is judged.
pub const LEAST: usize = 3;
/// Fewest memories of either kind held until all are judged.
const HELD: usize = 1_000;
/// Mean utility at or below which a memory misleads; at or above 1 - this it helps.
const LOW: f64 = 0.4;

/// The rule, for people.
pub const RULE: &str = "of at least 3 uses, the latest 20: mean utility 0.4 or less and two thirds of them below 0.5 \
                        misleads; 0.6 or more and two thirds of them above 0.5 helps";

/// A memory with the results of its uses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Usefulness {
    /// The memory.
    pub id: String,
    /// Title of the memory; filled in by the caller that knows it.
    pub title: Option<String>,
    /// Mean utility of its latest uses.
    pub utility: f64,
    /// Number of uses in the mean.
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
    /// Memories with at least one use.
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

/// Judges memories one by one; few are held, whatever their number.
#[derive(Debug, Clone, Default)]
pub struct MemoryJudge {
    used: usize,
    judged: usize,
    mislead_total: usize,
    help_total: usize,
    mislead: Vec<JudgedUses>,
    help: Vec<JudgedUses>,
}

/// The latest uses of a memory, identified by a hash of its id.
#[derive(Debug, Clone, Copy)]
struct JudgedUses {
    memory: u64,
    utility: f64,
    n: usize,
    low: usize,
    high: usize,
}

impl MemoryJudge {
    /// Adds a memory, by a hash of its id, with the utility of what used it: the latest
    /// [`LATEST`](crate::memory::utility::LATEST) uses, latest first.
    pub fn add(&mut self, memory: u64, latest: &[f64]) {
        self.used += 1;
        let n = latest.len();
        let Some(utility) = of_memory(latest.iter().copied()).filter(|_| n >= LEAST) else { return };
        self.judged += 1;
        let low = latest.iter().filter(|utility| **utility < 0.5).count();
        let high = latest.iter().filter(|utility| **utility > 0.5).count();
        let uses = JudgedUses { memory, utility, n, low, high };
        if score::is_at_most(utility, LOW) && low * 3 >= n * 2 {
            self.mislead_total += 1;
            hold(&mut self.mislead, uses, |a, b| firmer(a.utility, b.utility, (a.n, b.n)));
        } else if score::is_at_most(1.0 - LOW, utility) && high * 3 >= n * 2 {
            self.help_total += 1;
            hold(&mut self.help, uses, |a, b| firmer(b.utility, a.utility, (a.n, b.n)));
        }
    }

    /// Whether no memory was used.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The hashes of the memories whose ids are needed.
    pub fn wanted(&self) -> impl Iterator<Item = u64> {
        self.mislead.iter().chain(&self.help).map(|uses| uses.memory)
    }

    /// The first `shown` of either kind, with known ids. Memories with equal utility and uses are ordered by id; beyond
    /// 1,000 of these, by hash.
    pub fn close(self, ids: &HashMap<u64, String>, shown: usize) -> JudgedMemories {
        let named = |uses: Vec<JudgedUses>, order: fn(&Usefulness, &Usefulness) -> Ordering| {
            let mut named: Vec<Usefulness> = uses.iter().filter_map(|uses| uses.named(ids)).collect();
            named.sort_by(order);
            named.truncate(shown);
            named
        };
        JudgedMemories {
            rule: RULE,
            used: self.used,
            judged: self.judged,
            mislead_total: self.mislead_total,
            help_total: self.help_total,
            mislead: named(self.mislead, |a, b| firmer(a.utility, b.utility, (a.n, b.n)).then_with(|| a.id.cmp(&b.id))),
            help: named(self.help, |a, b| firmer(b.utility, a.utility, (a.n, b.n)).then_with(|| a.id.cmp(&b.id))),
        }
    }
}

impl JudgedUses {
    fn named(&self, ids: &HashMap<u64, String>) -> Option<Usefulness> {
        let id = ids.get(&self.memory)?.clone();
        Some(Usefulness { id, title: None, utility: self.utility, n: self.n, low: self.low, high: self.high })
    }
}

/// Orders memories by utility, in the given direction; among equals, more uses come first.
fn firmer(utility: f64, other: f64, (n, of_other): (usize, usize)) -> Ordering {
    utility.total_cmp(&other).then(of_other.cmp(&n))
}

/// Holds a memory; at twice the needed number, the last ones are dropped.
fn hold(held: &mut Vec<JudgedUses>, uses: JudgedUses, order: impl Fn(&JudgedUses, &JudgedUses) -> Ordering) {
    held.push(uses);
    if held.len() >= 2 * HELD {
        held.sort_by(order);
        held.truncate(HELD);
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the same numbers come out to the bit")]
mod tests {
    use super::*;

    fn judged(of: &[(&str, &[f64])], shown: usize) -> JudgedMemories {
        let (mut judge, mut ids) = (MemoryJudge::default(), HashMap::new());
        for (at, (memory, latest)) in of.iter().enumerate() {
            judge.add(at as u64, latest);
            ids.insert(at as u64, (*memory).to_owned());
        }
        judge.close(&ids, shown)
    }

    #[test]
    fn consistent_memories_are_told_from_mixed_and_rare_ones() {
        let all: [(&str, &[f64]); 4] = [
            ("bad", &[0.1, 0.2, 0.45]),
            ("good", &[0.9, 0.8, 0.7, 0.5]),
            ("mixed", &[0.0, 1.0, 0.0, 1.0]),
            ("rare", &[0.0, 0.0]),
        ];
        let found = judged(&all, 10);
        assert_eq!((found.used, found.judged, found.mislead_total, found.help_total), (4, 3, 1, 1));
        assert_eq!((found.mislead[0].id.as_str(), found.mislead[0].n), ("bad", 3));
        assert_eq!((found.help[0].id.as_str(), found.help[0].high), ("good", 3));
    }

    #[test]
    fn of_very_many_the_first_are_shown_whatever_their_order() {
        let names: Vec<String> = (0..5_000).map(|n| format!("m-{n:04}")).collect();
        let uses: Vec<[f64; 4]> = (0..5_000).map(|n| [f64::from(n * 7 % 5_000) / 20_000.0; 4]).collect();
        let all: Vec<(&str, &[f64])> =
            names.iter().zip(&uses).map(|(name, uses)| (name.as_str(), uses.as_slice())).collect();
        let found = judged(&all, 3);
        let first: Vec<f64> = found.mislead.iter().map(|uses| uses.utility).collect();
        assert_eq!((found.mislead_total, first), (5_000, vec![0.0, 1.0 / 20_000.0, 2.0 / 20_000.0]));
    }

    #[test]
    fn among_equals_the_ids_decide() {
        let found = judged(&[("c", &[0.0; 3]), ("a", &[0.0; 3]), ("b", &[0.0; 4])], 9);
        let ids: Vec<&str> = found.mislead.iter().map(|uses| uses.id.as_str()).collect();
        assert_eq!(ids, ["b", "a", "c"]);
        let found = judged(&[("c", &[1.0; 3]), ("a", &[1.0; 3]), ("b", &[1.0; 4])], 9);
        let ids: Vec<&str> = found.help.iter().map(|uses| uses.id.as_str()).collect();
        assert_eq!(ids, ["b", "a", "c"]);
    }
}
