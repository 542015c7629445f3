//! Verdicts of the rules on the cases of one bank, given one by one.

use std::io;

use super::banks::JudgedCase;
use super::copies::{CaseCopies, CaseCopy};
use super::{NEAR, PruneReason, Rules};
use crate::memory::packed::space::MakeSpace;
use crate::memory::vector::cosine_of;
use crate::memory::{score, time};

/// Bytes of vectors held for comparison.
const VECTORS: usize = 32 << 20;

/// Judges a bank. A verdict takes two bytes; vectors for comparison are held.
#[derive(Debug)]
pub struct BankVerdicts<'r> {
    rules: &'r Rules,
    older_than: Option<i64>,
    /// Window, if it does not keep all.
    window: Option<usize>,
    by_window: Vec<Option<PruneReason>>,
    by_rule: Vec<Option<PruneReason>>,
    /// Vectors of the cases that a diverse window keeps.
    kept: Vec<Vec<f32>>,
    /// Remaining bytes for vectors.
    room: usize,
    /// Remaining places of a diverse window.
    free: usize,
    /// Cases to be checked for copies.
    copies: CaseCopies,
    /// Number of cases with a creation time: they come first.
    dated: usize,
    /// Number of those that may take a place in a window.
    placed: usize,
    /// Number of cases that stay because they are hidden from recall: they do not count for a window or as copies.
    quarantined: usize,
    /// Cases that should be compared but have no usable vector.
    pub without_vector: usize,
    /// Cases that stay and that no other was compared with, because their vectors would not fit in memory.
    pub uncompared: usize,
}

impl<'r> BankVerdicts<'r> {
    /// Begins a bank with that many cases. A window of `None` keeps all.
    pub fn new(cases: usize, window: Option<usize>, rules: &'r Rules, space: MakeSpace) -> Self {
        let window = window.filter(|window| *window < cases);
        BankVerdicts {
            rules,
            older_than: rules.older_than.as_deref().and_then(time::epoch_micros),
            window,
            by_window: Vec::with_capacity(cases),
            by_rule: Vec::with_capacity(cases),
            kept: Vec::new(),
            room: VECTORS,
            free: window.unwrap_or_default(),
            copies: CaseCopies::new(space),
            dated: 0,
            placed: 0,
            quarantined: 0,
            without_vector: 0,
            uncompared: 0,
        }
    }

    /// Whether the vector of the next case is needed.
    pub fn asks_vectors(&self) -> bool {
        self.rules.keep_diverse && self.window.is_some() && self.free > 0
    }

    /// Adds the next case, newest first.
    pub fn take(&mut self, case: &JudgedCase, vector: Option<Vec<f32>>) {
        let number = self.by_rule.len();
        let old = self.older_than.is_some_and(|limit| case.at.is_some_and(|at| at < limit));
        let low = self
            .rules
            .below_reward
            .is_some_and(|limit| case.reward.is_some_and(|reward| score::is_below(reward, limit)));
        let why = [(old, PruneReason::Age), (low, PruneReason::Reward)].into_iter().find(|(holds, _)| *holds);
        let (is_dated, is_recalled) = (case.at.is_some(), !case.quarantined);
        if let Some(message) = case.message.filter(|_| self.rules.duplicates && is_recalled) {
            self.copies.add(0, message, [number as u64, 0, 0, 0], number as u64);
        }
        let is_passed_over = !is_recalled && (self.rules.duplicates || self.window.is_some());
        self.quarantined += usize::from(is_passed_over && why.is_none());
        let place = self.placed;
        self.dated += usize::from(is_dated);
        self.placed += usize::from(is_dated && is_recalled);
        let by_window = match self.window.filter(|_| is_dated && is_recalled) {
            None => None,
            Some(_) if self.rules.keep_diverse => self.by_likeness(vector),
            Some(window) => (place >= window).then_some(PruneReason::Window),
        };
        self.by_window.push(by_window);
        self.by_rule.push(why.map(|(_, why)| why));
    }

    fn by_likeness(&mut self, vector: Option<Vec<f32>>) -> Option<PruneReason> {
        if self.free == 0 {
            return Some(PruneReason::Window);
        }
        self.without_vector += usize::from(vector.is_none());
        if vector.as_ref().is_some_and(|vector| self.kept.iter().any(|other| are_alike(vector, other))) {
            return Some(PruneReason::Alike);
        }
        if let Some(vector) = vector {
            match self.room.checked_sub(size_of_val(vector.as_slice())) {
                Some(room) => {
                    self.room = room;
                    self.kept.push(vector);
                }
                None => self.uncompared += 1,
            }
        }
        self.free -= 1;
        None
    }

    /// The verdicts on all cases.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written to a file.
    pub fn end(mut self) -> io::Result<JudgedBank> {
        let is_aged = self.window.is_some() || self.older_than.is_some();
        let (mut undated, mut unclear) = (vec![is_aged; self.by_rule.len() - self.dated], 0);
        self.copies.each(|copy, _, number| {
            let number = number as usize;
            match (copy, number.checked_sub(self.dated)) {
                (CaseCopy::Unclear, _) => unclear += 1,
                (CaseCopy::Repeats, None) => {
                    self.by_rule[number] = self.by_rule[number].or(Some(PruneReason::Duplicate));
                }
                (CaseCopy::Repeats, Some(at)) => undated[at] = true,
            }
        })?;
        // Remaining places go to the newest of the similar cases.
        let alike = self.by_window.iter_mut().filter(|verdict| **verdict == Some(PruneReason::Alike));
        alike.take(self.free).for_each(|verdict| *verdict = None);
        let verdicts: Vec<Option<PruneReason>> =
            self.by_window.into_iter().zip(self.by_rule).map(|(window, rule)| window.or(rule)).collect();
        let stays =
            verdicts[self.dated..].iter().zip(undated).filter(|(verdict, undated)| verdict.is_none() && *undated);
        Ok(JudgedBank { undated: stays.count(), unclear, quarantined: self.quarantined, verdicts })
    }
}

/// The verdicts on a bank.
#[derive(Debug)]
pub struct JudgedBank {
    /// Verdict on each case, in order: the first rule that selects it; `None` if it stays.
    pub verdicts: Vec<Option<PruneReason>>,
    /// Cases that stay because their age is unknown.
    pub undated: usize,
    /// Cases that stay because others with their message hash have another prompt.
    pub unclear: usize,
    /// Cases that stay because they are hidden from recall: they do not count for a window or as copies.
    pub quarantined: usize,
}

/// Whether two vectors are alike, whatever their lengths; false if they cannot be compared.
fn are_alike(a: &[f32], b: &[f32]) -> bool {
    cosine_of(a, b).is_some_and(|cosine| cosine > f64::from(NEAR))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::banks::PruneBanks;
    use super::*;
    use crate::memory::packed::space::tests::space;
    use crate::memory::{Entity, Row};

    #[derive(Debug, Clone)]
    struct Case {
        id: String,
        profile: Option<&'static str>,
        day: usize,
        reward: Option<f64>,
        hash: String,
        vector: Option<Vec<f32>>,
        quarantined: bool,
    }

    fn case(n: usize, reward: Option<f64>, hash: &str, vector: Option<Vec<f32>>) -> Case {
        let (id, hash) = (format!("c{n:02}"), hash.to_owned());
        Case { id, profile: Some("p"), day: 28 - n, reward, hash, vector, quarantined: false }
    }

    fn row(case: &Case) -> Row {
        let mut row = Row::empty(Entity::Case);
        row.set("id", json!(case.id));
        row.set("profile_id", json!(case.profile));
        row.set("user_id", json!("ann"));
        row.set("created_at", json!(format!("2026-02-{:02}T00:00:00.000000Z", case.day)));
        row.set("reward", json!(case.reward));
        row.set("message_hash", json!(case.hash));
        row.set("quarantined", json!(case.quarantined));
        row
    }

    /// Each deleted case with the reason, bank by bank, newest first.
    fn judged(cases: &[Case], room: usize, window: Option<usize>, rules: &Rules) -> Vec<(String, PruneReason)> {
        let mut banks = PruneBanks::new(space).within(room);
        let profile = Row::with(Entity::Profile, [("id", json!("p"))]);
        banks.profile(&profile);
        banks.profiles_end().unwrap();
        cases.iter().for_each(|case| banks.case(&row(case)));
        let sorted = banks.sorted().unwrap();
        let mut gone = Vec::new();
        let (mut stream, mut again) = (sorted.stream().unwrap(), sorted.stream().unwrap());
        while let Some(bank) = stream.bank().unwrap() {
            let mut all = Vec::new();
            while let Some(case) = stream.next_of(&bank).unwrap() {
                all.push(case);
            }
            let mut verdicts = BankVerdicts::new(all.len(), window, rules, space);
            for judged in &all {
                let id = sorted.id(judged).unwrap();
                let case = cases.iter().find(|case| case.id == id).unwrap();
                assert!(judged.is_as(&JudgedCase::of(&row(case))) && bank.holds(&row(case)));
                verdicts.take(judged, case.vector.clone());
            }
            for verdict in verdicts.end().unwrap().verdicts {
                let case = again.next_of(&bank).unwrap().unwrap();
                gone.extend(verdict.map(|why| (sorted.id(&case).unwrap(), why)));
            }
        }
        gone
    }

    fn gone(cases: &[Case], window: Option<usize>, rules: &Rules) -> Vec<(String, PruneReason)> {
        let found = judged(cases, 1 << 20, window, rules);
        assert_eq!(judged(cases, 1, window, rules), found, "wherever the cases are");
        found
    }

    #[test]
    fn likeness_is_of_direction_whatever_the_length() {
        let diverse = Rules { keep_diverse: true, ..Rules::default() };
        for length in [1e-20, 1.0, 1e15] {
            let to = |x: f32, y: f32| Some(vec![x * length, y * length]);
            let unlike =
                [case(1, None, "a", to(1.0, 0.0)), case(2, None, "b", to(0.1, 1.0)), case(3, None, "c", to(-1.0, 0.0))];
            assert_eq!(gone(&unlike, Some(2), &diverse), [("c03".to_owned(), PruneReason::Window)], "{length}");
            let alike =
                [case(1, None, "a", to(1.0, 0.0)), case(2, None, "b", to(1.0, 0.0)), case(3, None, "c", to(-1.0, 0.0))];
            assert_eq!(gone(&alike, Some(2), &diverse), [("c02".to_owned(), PruneReason::Alike)], "{length}");
        }
    }

    #[test]
    fn a_case_goes_when_any_rule_says_so_for_the_first_reason() {
        let bank = [
            case(3, Some(0.9), "c", None),
            case(1, Some(0.1), "b", None),
            case(2, None, "a", None),
            case(0, Some(0.9), "a", None),
            case(4, Some(0.0), "c", None),
        ];
        let rules = Rules {
            below_reward: Some(0.5),
            duplicates: true,
            older_than: Some("2026-02-25T00:00:00.000000Z".to_owned()),
            keep_diverse: false,
        };
        let expected = [("c01", PruneReason::Reward), ("c02", PruneReason::Duplicate), ("c04", PruneReason::Window)];
        assert_eq!(gone(&bank, Some(4), &rules), expected.map(|(id, why)| (id.to_owned(), why)));
        let all = [("c01", PruneReason::Reward), ("c02", PruneReason::Duplicate), ("c04", PruneReason::Age)];
        assert_eq!(gone(&bank, None, &rules), all.map(|(id, why)| (id.to_owned(), why)));
        assert_eq!(gone(&bank, None, &Rules::default()), []);
    }

    #[test]
    fn a_case_that_is_hidden_from_recall_displaces_no_other() {
        let good = [case(2, None, "a", None), case(3, None, "b", None)];
        let hidden = |n, hash| Case { quarantined: true, ..case(n, Some(0.0), hash, None) };
        let mut bank = vec![hidden(0, "a"), hidden(1, "c")];
        bank.extend(good);
        let duplicates = Rules { duplicates: true, ..Rules::default() };
        assert_eq!(gone(&bank, Some(2), &duplicates), []);
        assert_eq!(gone(&bank, Some(1), &duplicates), [("c03".to_owned(), PruneReason::Window)]);
        let low = Rules { below_reward: Some(0.5), ..Rules::default() };
        assert_eq!(gone(&bank, None, &low).len(), 2, "a rule that names them takes them");
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
        let goes = |id: &str, why| (id.to_owned(), why);
        assert_eq!(gone(&bank, Some(3), &diverse), [goes("c01", PruneReason::Alike), goes("c04", PruneReason::Window)]);
        assert_eq!(gone(&bank[..3], Some(2), &diverse), [goes("c01", PruneReason::Alike)]);
        // The length of a vector does not matter.
        for length in [1e-20, 1e-13, 1e10, 1e15] {
            let mut bank = bank.clone();
            let longer = |vector: &mut Vec<f32>| vector.iter_mut().for_each(|number| *number *= length);
            bank.iter_mut().filter_map(|case| case.vector.as_mut()).for_each(longer);
            assert_eq!(gone(&bank[..3], Some(2), &diverse), [goes("c01", PruneReason::Alike)], "{length}");
            assert_eq!(
                gone(&[bank[0].clone(), bank[2].clone(), bank[4].clone()], Some(2), &diverse),
                [goes("c04", PruneReason::Window)]
            );
        }
        let alike = [bank[0].clone(), bank[1].clone(), Case { id: "c02".to_owned(), ..bank[1].clone() }];
        assert_eq!(gone(&alike, Some(2), &diverse).len(), 1);
        let mut verdicts = BankVerdicts::new(3, Some(1), &diverse, space);
        verdicts.take(&JudgedCase::of(&row(&bank[0])), None);
        assert!(!verdicts.asks_vectors() && verdicts.without_vector == 1 && verdicts.uncompared == 0);
    }

    proptest! {
        #[test]
        fn a_window_keeps_exactly_the_newest_of_each_bank(
            cases in prop::collection::vec((1_usize..6, 0_usize..1_000, any::<bool>()), 0..40),
            window in 1_usize..20,
            diverse: bool,
        ) {
            let mut all: Vec<Case> = cases
                .iter()
                .enumerate()
                .map(|(n, (day, id, banked))| Case {
                    id: format!("{id:04}{n:02}"),
                    profile: banked.then_some("p"),
                    day: *day,
                    ..case(0, None, "x", None)
                })
                .collect();
            let rules = Rules { keep_diverse: diverse, ..Rules::default() };
            let mut found: Vec<String> = gone(&all, Some(window), &rules).into_iter().map(|(id, _)| id).collect();
            all.sort_by(|a, b| (b.day, &b.id).cmp(&(a.day, &a.id)));
            let (banked, alone): (Vec<Case>, Vec<Case>) = all.into_iter().partition(|case| case.profile.is_some());
            let mut expected: Vec<String> =
                [banked, alone].iter().flat_map(|bank| bank.iter().skip(window)).map(|case| case.id.clone()).collect();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
