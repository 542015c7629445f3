//! Findings about case banks: windows, repeats, bursts, references, overused cases.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::FindingTally;
use crate::memory::digest::digest;
use crate::memory::{Row, time};

/// Rows of one owner within [`BURST_MICROS`] that make a burst.
pub(super) const BURST: usize = 5;
pub(super) const BURST_MICROS: i64 = 60_000_000;

/// A reward or utility up to this is little.
const LITTLE: f64 = 0.3;

/// Recalls from which something is recalled often.
const OFTEN: u32 = 10;

/// Share of its bank's recalls from which a case swamps them.
const SWAMP: f64 = 0.6;

/// Cases up to which vectors of a bank are compared at once; above, a job does it.
const COMPARED: u64 = 2_000;

/// Questions that are distinguished for a case.
const QUESTIONS: usize = 8;

#[derive(Debug, Default)]
struct BankProfile {
    id: String,
    window: Option<i64>,
    cases: u64,
    newest: HashSet<u64>,
    recalls: u32,
}

#[derive(Debug)]
struct BankCase {
    id: String,
    profile: u64,
    reward: Option<f64>,
    references: Vec<u64>,
    recalls: u32,
    questions: HashSet<u64>,
    /// Stands for its message, or for itself where that has no hash.
    message: u64,
}

/// Profiles, cases, policies and accesses, as far as findings need them.
#[derive(Debug, Default)]
pub struct CaseBank {
    profiles: HashMap<u64, BankProfile>,
    /// Profile by user and agent.
    owners: HashMap<u64, u64>,
    cases: HashMap<u64, BankCase>,
    order: Vec<u64>,
    times: HashMap<u64, Vec<(i64, u64)>>,
    policies: Vec<(String, u64)>,
    most: usize,
}

/// Whether a case looks like poison: it has little reward and is recalled often.
#[must_use]
pub fn is_poison(reward: Option<f64>, recalls: u32) -> bool {
    recalls >= OFTEN && reward.is_some_and(|reward| reward <= LITTLE)
}

fn owner(row: &Row) -> u64 {
    digest(&format!("{}\n{}", row.text("user_id").unwrap_or_default(), row.text("agent_id").unwrap_or_default()))
}

impl CaseBank {
    /// An empty bank whose findings name at most `most` examples.
    #[must_use]
    pub fn new(most: usize) -> Self {
        CaseBank { most, ..CaseBank::default() }
    }

    /// Takes a profile.
    pub fn profile(&mut self, row: &Row) {
        let key = digest(row.id());
        self.owners.insert(owner(row), key);
        let profile = self.profiles.entry(key).or_default();
        row.id().clone_into(&mut profile.id);
        profile.window = row.get("window_size").as_i64();
    }

    /// Takes a case; those of all profiles come after them.
    pub fn case(&mut self, row: &Row) {
        let (key, profile) = (digest(row.id()), row.text("profile_id").map_or(0, digest));
        if let Some(at) = row.text("created_at").and_then(time::epoch_micros) {
            self.times.entry(profile).or_default().push((at, key));
        }
        let bank = self.profiles.entry(profile).or_default();
        bank.cases += 1;
        if let Some(hash) = row.text("message_hash") {
            bank.newest.insert(digest(hash));
        }
        self.order.push(key);
        let references = row.list("reference_case_ids").into_iter().map(digest).collect();
        let case = BankCase {
            id: row.id().to_owned(),
            profile,
            reward: row.number("reward"),
            references,
            recalls: 0,
            questions: HashSet::new(),
            message: row.text("message_hash").map_or(key, digest),
        };
        self.cases.insert(key, case);
    }

    /// Whether a case repeats one that was taken before; to be asked before [`CaseBank::case`].
    #[must_use]
    pub fn repeats(&self, row: &Row) -> bool {
        let (Some(profile), Some(hash)) = (row.text("profile_id"), row.text("message_hash")) else { return false };
        self.profiles.get(&digest(profile)).is_some_and(|p| p.newest.contains(&digest(hash)))
    }

    /// Takes a policy.
    pub fn policy(&mut self, row: &Row) {
        self.policies.push((row.id().to_owned(), row.text("profile_id").map_or(0, digest)));
    }

    /// Takes a recall.
    pub fn access(&mut self, row: &Row) {
        if let Some(profile) = self.owners.get(&owner(row)).and_then(|key| self.profiles.get_mut(key)) {
            profile.recalls += 1;
        }
        let question = row.text("query").map(digest);
        for id in row.list("ids") {
            let Some(case) = self.cases.get_mut(&digest(id)) else { continue };
            case.recalls += 1;
            if let Some(question) = question
                && case.questions.len() < QUESTIONS
            {
                case.questions.insert(question);
            }
        }
    }

    /// Profiles with more cases than their window.
    #[must_use]
    pub fn over_window(&self) -> FindingTally {
        let over = |p: &&BankProfile| p.window.is_some_and(|w| w > 0 && p.cases as i64 > w);
        self.listed(self.profiles.values().filter(over).map(|p| p.id.as_str()))
    }

    /// Profiles whose window is 0, which nobody means.
    #[must_use]
    pub fn nought(&self) -> FindingTally {
        self.listed(self.profiles.values().filter(|p| p.window.is_some_and(|w| w <= 0)).map(|p| p.id.as_str()))
    }

    /// Profiles that are too large to compare vectors at once.
    #[must_use]
    pub fn too_large(&self) -> FindingTally {
        self.listed(self.profiles.values().filter(|p| p.cases > COMPARED).map(|p| p.id.as_str()))
    }

    /// The cases of each bank, in the order in which they came: id, and what stands for the message.
    #[must_use]
    pub fn into_banks(mut self) -> Vec<Vec<(Box<str>, u64)>> {
        let mut banks: BTreeMap<&str, Vec<(Box<str>, u64)>> = BTreeMap::new();
        for case in self.order.iter().filter_map(|key| self.cases.remove(key)) {
            let profile = self.profiles.get(&case.profile).map_or("", |p| p.id.as_str());
            banks.entry(profile).or_default().push((case.id.into(), case.message));
        }
        banks.into_values().collect()
    }

    /// Policies whose bank has no case.
    #[must_use]
    pub fn idle_policies(&self) -> FindingTally {
        let idle = |(_, profile): &&(String, u64)| self.profiles.get(profile).is_none_or(|p| p.cases == 0);
        self.listed(self.policies.iter().filter(idle).map(|(id, _)| id.as_str()))
    }

    /// Bursts of writing; the examples are the rows of each, the first burst first.
    #[must_use]
    pub fn bursts(&self) -> FindingTally {
        let mut times: Vec<&Vec<(i64, u64)>> = self.times.values().collect();
        times.sort_by_key(|t| t.iter().map(|(at, _)| *at).min());
        let mut tally = FindingTally::default();
        for times in times {
            for burst in bursts(times) {
                tally.group(
                    burst.iter().filter_map(|key| self.cases.get(key)).map(|c| c.id.clone()).collect(),
                    self.most,
                );
            }
        }
        tally
    }

    /// Cases that refer to cases which are not there.
    #[must_use]
    pub fn dangling(&self) -> FindingTally {
        self.chosen(|case| case.references.iter().any(|key| !self.cases.contains_key(key)))
    }

    /// Cases of little reward that are recalled often.
    #[must_use]
    pub fn low_and_frequent(&self) -> FindingTally {
        self.chosen(|case| is_poison(case.reward, case.recalls))
    }

    /// Cases that come up in most recalls of a bank of some size, for many different questions.
    #[must_use]
    pub fn swamping(&self) -> FindingTally {
        self.chosen(|case| {
            self.profiles.get(&case.profile).is_some_and(|p| {
                let share = f64::from(case.recalls) / f64::from(p.recalls.max(1));
                p.cases >= 10 && p.recalls >= OFTEN && share >= SWAMP && case.questions.len() >= QUESTIONS
            })
        })
    }

    fn chosen(&self, holds: impl Fn(&BankCase) -> bool) -> FindingTally {
        let cases = self.order.iter().filter_map(|key| self.cases.get(key)).filter(|case| holds(case));
        FindingTally::of(cases.map(|case| case.id.as_str()), self.most)
    }

    fn listed<'a>(&self, ids: impl Iterator<Item = &'a str>) -> FindingTally {
        let mut ids: Vec<&str> = ids.collect();
        ids.sort_unstable();
        FindingTally::of(ids, self.most)
    }
}

/// The bursts among moments: runs in which each [`BURST`] moments in a row lie within a minute.
pub(super) fn bursts(times: &[(i64, u64)]) -> Vec<Vec<u64>> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let mut found: Vec<Vec<u64>> = Vec::new();
    let (mut end, mut until) = (0, 0);
    for start in 0..sorted.len() {
        while sorted.get(end).is_some_and(|(at, _)| at - sorted[start].0 <= BURST_MICROS) {
            end += 1;
        }
        if end - start < BURST {
            continue;
        }
        let more = sorted[until.max(start)..end].iter().map(|(_, key)| *key);
        match found.last_mut().filter(|_| start < until) {
            Some(burst) => burst.extend(more),
            None => found.push(more.collect()),
        }
        until = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_five_within_a_minute_and_is_counted_once() {
        let second = 1_000_000;
        let at = |seconds: &[i64]| seconds.iter().map(|s| (s * second, *s as u64)).collect::<Vec<_>>();
        assert!(bursts(&at(&[0, 10, 20, 30])).is_empty());
        assert_eq!(bursts(&at(&[0, 10, 20, 30, 40, 50])), [vec![0, 10, 20, 30, 40, 50]]);
        assert_eq!(bursts(&at(&[0, 20, 40, 60, 80])), Vec::<Vec<u64>>::new());
        assert_eq!(bursts(&at(&[0, 1, 2, 3, 4, 500, 501, 502, 503, 504])).len(), 2);
    }
}
