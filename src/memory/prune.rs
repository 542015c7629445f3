//! Rules that choose which cases of a bank to delete, one bank at a time. A case goes when any rule says so; what one
//! rule keeps can still go by another.

use std::cmp::Ordering;
use std::collections::HashSet;

/// Cosine above which two cases say the same.
pub const NEAR: f32 = 0.95;
/// Window that is suggested where none is set.
pub const SUGGESTED_WINDOW: i64 = 200;

/// Facts about a case that the rules look at.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candidate {
    /// Id of the case.
    pub id: String,
    /// Creation time, in the canonical spelling; `None` counts as oldest.
    pub created_at: Option<String>,
    /// Reward of the case, in 0..1.
    pub reward: Option<f64>,
    /// Hash of its message.
    pub hash: Option<String>,
    /// Vector of the case, when diversity counts and it has one.
    pub vector: Option<Vec<f32>>,
}

/// Window that applies to a bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PruneWindow {
    /// Each bank's own where no other rule is named, none beside one.
    #[default]
    Unsaid,
    /// Each bank's own, whatever else is named.
    Own,
    /// Fixed number of the newest cases, the same in every bank.
    Newest(i64),
}

impl PruneWindow {
    /// The number of newest cases that a bank keeps, given its own window; none keeps all.
    #[must_use]
    pub fn of(self, own: Option<i64>, rules: &Rules) -> Option<i64> {
        match self {
            PruneWindow::Newest(window) => Some(window),
            PruneWindow::Unsaid if rules.names_one() => None,
            PruneWindow::Unsaid | PruneWindow::Own => own,
        }
    }
}

/// Rules that select the cases to delete.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rules {
    /// Cases made before that time, in the canonical spelling.
    pub older_than: Option<String>,
    /// Cases with a reward below that; a case without one stays.
    pub below_reward: Option<f64>,
    /// Cases whose message a newer case of the bank has too.
    pub duplicates: bool,
    /// A window is filled with cases that differ first: one that says what a newer one says gives way to an older one
    /// that does not.
    pub keep_diverse: bool,
}

impl Rules {
    /// Whether a rule is named that applies alone: age, reward or duplicates. Diversity only fills a window.
    #[must_use]
    pub fn names_one(&self) -> bool {
        self.older_than.is_some() || self.below_reward.is_some() || self.duplicates
    }
}

/// Reason why a case goes: the first rule that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PruneReason {
    /// The case is not among the newest that the window keeps.
    Window,
    /// The window keeps a newer one that says the same.
    Alike,
    /// The case is too old.
    Age,
    /// The reward of the case is too low.
    Reward,
    /// A newer case has the same message.
    Duplicate,
}

impl PruneReason {
    /// The reason in a word or two.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            PruneReason::Window => "outside the window",
            PruneReason::Alike => "like a newer one",
            PruneReason::Age => "too old",
            PruneReason::Reward => "low reward",
            PruneReason::Duplicate => "duplicate",
        }
    }
}

/// Newest first by time, then by id.
#[must_use]
pub fn newest_first(a: &Candidate, b: &Candidate) -> Ordering {
    (&b.created_at, &b.id).cmp(&(&a.created_at, &a.id))
}

/// Decides which cases of a bank go, and why, in the given order, which must be newest first. A window of `None`
/// keeps all.
#[must_use]
pub fn judge(bank: &[Candidate], window: Option<usize>, rules: &Rules) -> Vec<Option<PruneReason>> {
    let mut verdicts = within_window(bank, window, rules.keep_diverse);
    let mut seen: HashSet<&str> = HashSet::new();
    for (case, verdict) in bank.iter().zip(&mut verdicts) {
        let old = rules.older_than.as_ref().is_some_and(|limit| case.created_at.as_ref().is_some_and(|at| at < limit));
        let low = rules.below_reward.is_some_and(|limit| case.reward.is_some_and(|reward| reward < limit));
        let twice = rules.duplicates && case.hash.as_deref().is_some_and(|hash| !seen.insert(hash));
        let why = [(old, PruneReason::Age), (low, PruneReason::Reward), (twice, PruneReason::Duplicate)]
            .into_iter()
            .find(|(holds, _)| *holds);
        *verdict = verdict.or(why.map(|(_, why)| why));
    }
    verdicts
}

fn within_window(bank: &[Candidate], window: Option<usize>, diverse: bool) -> Vec<Option<PruneReason>> {
    let Some(window) = window.filter(|window| *window < bank.len()) else { return vec![None; bank.len()] };
    if !diverse {
        return (0..bank.len()).map(|i| (i >= window).then_some(PruneReason::Window)).collect();
    }
    let mut verdicts = vec![Some(PruneReason::Window); bank.len()];
    let mut kept: Vec<&[f32]> = Vec::new();
    let mut free = window;
    for (case, verdict) in bank.iter().zip(&mut verdicts) {
        if free == 0 {
            break;
        }
        let vector = case.vector.as_deref();
        if vector.is_some_and(|vector| kept.iter().any(|other| cosine(vector, other) > NEAR)) {
            *verdict = Some(PruneReason::Alike);
            continue;
        }
        kept.extend(vector);
        *verdict = None;
        free -= 1;
    }
    // Places that nothing different is there for go to the newest of the others.
    for verdict in verdicts.iter_mut().filter(|verdict| **verdict == Some(PruneReason::Alike)).take(free) {
        *verdict = None;
    }
    verdicts
}

/// Cosine of two vectors in -1..1; 0 when one has no length or they differ in dimension.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    if a.len() != b.len() {
        return 0.0;
    }
    let (mut dot, mut left, mut right) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        dot += x * y;
        left += x * x;
        right += y * y;
    }
    if left > 0.0 && right > 0.0 { dot / (left * right).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn case(n: usize, reward: Option<f64>, hash: &str, vector: Option<Vec<f32>>) -> Candidate {
        let at = format!("2026-02-{:02}T00:00:00.000000Z", 28 - n);
        Candidate { id: format!("c{n:02}"), created_at: Some(at), reward, hash: Some(hash.to_owned()), vector }
    }

    fn kept(verdicts: &[Option<PruneReason>]) -> Vec<usize> {
        verdicts.iter().enumerate().filter(|(_, v)| v.is_none()).map(|(i, _)| i).collect()
    }

    #[test]
    fn a_case_goes_when_any_rule_says_so_for_the_first_reason() {
        let bank = [
            case(0, Some(0.9), "a", None),
            case(1, Some(0.1), "b", None),
            case(2, None, "a", None),
            case(3, Some(0.9), "c", None),
            case(4, Some(0.0), "c", None),
        ];
        let rules = Rules {
            below_reward: Some(0.5),
            duplicates: true,
            older_than: Some("2026-02-25T00:00:00.000000Z".to_owned()),
            keep_diverse: false,
        };
        let verdicts = judge(&bank, Some(4), &rules);
        assert_eq!(
            verdicts,
            [None, Some(PruneReason::Reward), Some(PruneReason::Duplicate), None, Some(PruneReason::Window)]
        );
        assert_eq!(kept(&judge(&bank, None, &Rules::default())), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_window_that_keeps_diversity_fills_its_places_with_what_differs_first() {
        let vector = |x: f32, y: f32| Some(vec![x, y]);
        let bank = [
            case(0, None, "a", vector(1.0, 0.0)),
            case(1, None, "b", vector(1.0, 0.01)),
            case(2, None, "c", vector(0.0, 1.0)),
            case(3, None, "d", None),
            case(4, None, "e", vector(1.0, 1.0)),
        ];
        let diverse = Rules { keep_diverse: true, ..Rules::default() };
        let verdicts = judge(&bank, Some(3), &diverse);
        assert_eq!(verdicts, [None, Some(PruneReason::Alike), None, None, Some(PruneReason::Window)]);
        assert_eq!(kept(&judge(&bank[..3], Some(2), &diverse)), [0, 2]);
        let alike = [bank[0].clone(), bank[1].clone(), bank[1].clone()];
        assert_eq!(kept(&judge(&alike, Some(2), &diverse)), [0, 1]);
    }

    proptest! {
        #[test]
        fn a_window_keeps_exactly_the_newest(
            ages in prop::collection::vec((0_usize..5, 0_usize..1000), 0..40), window in 1_usize..20, diverse: bool,
        ) {
            let mut bank: Vec<Candidate> = ages
                .iter()
                .map(|(day, id)| Candidate { id: format!("{id:04}"), ..case(*day, None, "x", None) })
                .collect();
            bank.sort_by(newest_first);
            let verdicts = judge(&bank, Some(window), &Rules { keep_diverse: diverse, ..Rules::default() });
            prop_assert_eq!(kept(&verdicts), (0..window.min(bank.len())).collect::<Vec<_>>());
        }
    }
}
