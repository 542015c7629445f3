//! Queries put to the ranking that agents get, over rows that are already read.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::banked::BankedCases;
use super::bank::{BankItem, OwnerBank};
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row, time};
use crate::memory::{agreeing, counted};
use crate::recall::among::{self, RankingInput, likeness_name};
use crate::recall::features::{Situation, features_told, overlap, tags, words};
use crate::recall::judge::file::{JudgedQuery, JudgedQuestion};
use crate::recall::judge::ranked::{DEPTH, GradedRanking};
use crate::recall::judge::report::{NonsenseControl, SelfReturn};
use crate::recall::judge::spread::{QueryRecall, RecalledRow};
use crate::recall::keyword;
use crate::recall::learn::split::Random;
use crate::recall::policy::Policy;
use crate::recall::rank::{self, ProvenQuery, Ranking};

/// Most stored rows used as queries.
pub const QUERIES: usize = 200;
/// Nonsense queries.
const CONTROLS: usize = 50;
/// Cosine above which a match for nonsense is a failure, as for topics.
const THRESHOLD: f64 = 0.5;
/// Words of a nonsense query.
const NONSENSE_WORDS: usize = 6;

/// A row of the bank, as input of rankings.
#[derive(Clone, Copy)]
pub struct PickedRow<'b>(&'b BankItem);

impl Borrow<Row> for PickedRow<'_> {
    fn borrow(&self) -> &Row {
        &self.0.row
    }
}

/// A query: words, and a vector if there is one.
struct TrialQuery<'a> {
    words: &'a BTreeSet<String>,
    vector: &'a [f32],
    /// The row used as the query.
    like: Option<&'a BankItem>,
    /// Time of the query.
    at: String,
}

impl<'a> TrialQuery<'a> {
    fn like(item: &'a BankItem, at: Option<i64>) -> Self {
        TrialQuery { words: &item.words, vector: &item.vector, like: Some(item), at: spell(at) }
    }

    fn words(words: &'a BTreeSet<String>, at: Option<i64>) -> Self {
        TrialQuery { words, vector: &[], like: None, at: spell(at) }
    }

    fn situation(&self) -> Situation {
        let case = self.like.filter(|item| item.row.entity == Entity::Case);
        Situation {
            words: case.map_or(self.words, |case| &case.told).clone(),
            tags: self.like.map(|item| tags(&item.row)).unwrap_or_default(),
            at: self.at.clone(),
        }
    }
}

fn spell(at: Option<i64>) -> String {
    at.and_then(|at| time::from_epoch(at, time::EpochUnit::Microseconds)).unwrap_or_default()
}

/// Ranks rows as recall does: the first `most`, without near-duplicates if the ranking omits them.
fn ranked<'b>(
    bank: &'b OwnerBank,
    probe: &TrialQuery<'_>,
    pool: &[usize],
    policy: Option<&Policy>,
    most: usize,
) -> Vec<&'b BankItem> {
    let rows: Vec<PickedRow<'b>> =
        pool.iter().filter_map(|i| bank.item(*i)).filter(|item| bank.gives(item)).map(PickedRow).collect();
    let sought = probe.like.map(|item| ProvenQuery::default().or_that_of(&item.row)).unwrap_or_default();
    let by_text = bank.ranking == Ranking::Proven && bank.kind() == Entity::Memory && sought.is_nowhere();
    let likeness =
        if bank.ranking == Ranking::Proven && !by_text { vec![None; rows.len()] } else { likeness(probe, &rows) };
    let name = likeness_name(!probe.vector.is_empty());
    let utility = |picked: &PickedRow<'_>| bank.utility(&picked.0.row);
    let situation = probe.situation();
    let seen = |picked: &PickedRow<'_>, likeness: Option<f64>| {
        let cosine = likeness.filter(|_| !probe.vector.is_empty());
        features_told(&situation, &picked.0.row, &picked.0.told, cosine)
    };
    let way = match (bank.ranking, policy) {
        (Ranking::Boosted, _) => RankingInput::Boosted { asked: true, name, at: &probe.at },
        (Ranking::Proven, _) => {
            RankingInput::Proven { sought: &sought, like: by_text.then_some(name), utility: &utility, at: &probe.at }
        }
        (Ranking::Cases, Some(policy)) => RankingInput::Policy { policy, features: &seen, name },
        (Ranking::Cases | Ranking::Similar, _) => RankingInput::Likeness { name },
    };
    let mut ranked = among::ranked(rows.into_iter().zip(likeness), &way);
    if let RankingInput::Policy { .. } = way {
        ranked = among::merged(ranked, most, name);
    }
    let same =
        |a: &PickedRow<'_>, b: &PickedRow<'_>| if bank.ranking == Ranking::Cases { alike(a.0, b.0) } else { None };
    let mut chosen = rank::choose(ranked, most, 0, same).0;
    rank::sort(&mut chosen);
    chosen.into_iter().map(|r| r.row.0).collect()
}

fn likeness(probe: &TrialQuery<'_>, rows: &[PickedRow<'_>]) -> Vec<Option<f64>> {
    if !probe.vector.is_empty() {
        return rows.iter().map(|picked| cosine_of(probe.vector, &picked.0.vector)).collect();
    }
    let told: Vec<&BTreeSet<String>> = rows.iter().map(|picked| &picked.0.words).collect();
    keyword::shares_told(probe.words, &told).into_iter().map(Some).collect()
}

/// Cosine of two rows; word overlap if one of them has no vector.
fn alike(a: &BankItem, b: &BankItem) -> Option<f64> {
    if a.vector.is_empty() || b.vector.is_empty() {
        return Some(overlap(&a.words, &b.words));
    }
    cosine_of(&a.vector, &b.vector)
}

/// Result of a ranking with its judgements.
pub struct Trial {
    /// Grades of the recalled rows.
    pub judged: GradedRanking,
    /// The recall of the query: the rows found.
    pub recall: QueryRecall,
}

impl Trial {
    fn of(ranked: &[&BankItem], relevant: &BTreeMap<(Entity, &str), f64>, k: usize, at: Option<i64>) -> Self {
        let keys: Vec<(Entity, &str)> = ranked.iter().map(|item| item.key()).collect();
        let top = ranked.get(..k.min(ranked.len())).unwrap_or_default();
        let rows = top.iter().map(|item| recalled(item, at)).collect();
        Trial { judged: GradedRanking::of(&keys, relevant), recall: QueryRecall { rows, alike: pairs(top) } }
    }
}

/// A recalled row in its state at a moment.
pub fn recalled(item: &BankItem, at: Option<i64>) -> RecalledRow {
    let then = item.at.filter(|_| item.row.text(item.row.entity.time_column()).and_then(time::known).is_some());
    let age_days = at.zip(then).map(|(now, then)| (now - then) as f64 / 86_400e6);
    RecalledRow { key: (item.row.entity, item.id().to_owned()), age_days, bad: item.bad }
}

/// Similarity of each pair of rows, if both can be compared.
pub fn pairs(items: &[&BankItem]) -> Vec<f64> {
    items.iter().enumerate().flat_map(|(i, a)| items.iter().skip(i + 1).filter_map(move |b| alike(a, b))).collect()
}

/// Sample of the searched rows to use as queries: up to [`QUERIES`], determined by the seed.
fn sample(bank: &OwnerBank, seed: u64) -> Vec<&BankItem> {
    let kind = bank.kind();
    let mut all: Vec<usize> = bank.searched();
    all.retain(|i| bank.item(*i).is_some_and(|item| item.row.entity == kind));
    if let Some((_, Some(profile))) = &bank.named {
        all.retain(|i| bank.item(*i).is_some_and(|item| item.owner.as_ref() == Some(profile)));
    }
    let mut random = Random::new(seed);
    let wanted = QUERIES.min(all.len());
    for i in 0..wanted {
        let other = i + random.below(all.len() - i);
        all.swap(i, other);
    }
    all.truncate(wanted);
    all.into_iter().filter_map(|i| bank.item(i)).collect()
}

/// Stored rows as queries, over the owner's earlier rows that the ranking may return.
pub fn stored(bank: &OwnerBank, k: usize, seed: u64) -> Vec<Trial> {
    sample(bank, seed)
        .into_iter()
        .map(|query| {
            let owner = query.owner.as_deref().unwrap_or_default();
            let mut before = bank.pool(owner);
            before.retain(|i| bank.item(*i).is_some_and(|other| other.at < query.at && other.key() != query.key()));
            let fits = |other: &&BankItem| {
                let shared = query.topics.is_empty() || !query.topics.is_disjoint(&other.topics);
                other.went_well() && shared && bank.gives(other)
            };
            let known = before.iter().filter_map(|i| bank.item(*i)).filter(fits);
            let relevant: BTreeMap<(Entity, &str), f64> = known.map(|item| (item.key(), 1.0)).collect();
            let found = ranked(bank, &TrialQuery::like(query, query.at), &before, bank.policy_of(owner), DEPTH.max(k));
            Trial::of(&found, &relevant, k, query.at)
        })
        .collect()
}

/// The agent and the person that a judged query names, and the bank of the case that it points at.
pub type QueryOwners<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>);

/// Owners of the rows that a judged query searches.
pub fn owners_of<'a>(bank: &'a OwnerBank, query: &'a JudgedQuery) -> QueryOwners<'a> {
    let case = match &query.asked {
        JudgedQuestion::Like(id) => bank.named(id).filter(|item| item.row.entity == Entity::Case),
        JudgedQuestion::Text(_) => None,
    };
    (query.agent.as_deref(), query.user.as_deref(), case.and_then(|case| case.row.text("profile_id")))
}

/// Judged queries of a file. `banked` holds the cases and the policy for each query over cases.
pub fn judged(
    bank: &OwnerBank,
    queries: &[JudgedQuery],
    banked: &HashMap<QueryOwners<'_>, BankedCases>,
    k: usize,
    notes: &mut Vec<String>,
) -> Vec<Trial> {
    let (mut unknown, mut itself, mut gone, mut held_back) = (0, 0, BTreeSet::new(), BTreeSet::new());
    let mut trials = Vec::new();
    let now = bank.newest();
    for query in queries {
        gone.extend(query.relevant.keys().filter(|id| !bank.by_id.contains_key(*id)));
        let text_words;
        let probe = match &query.asked {
            JudgedQuestion::Text(text) => {
                text_words = words(text);
                TrialQuery::words(&text_words, now)
            }
            JudgedQuestion::Like(id) => {
                let Some(item) = bank.asked_with(id) else {
                    unknown += 1;
                    continue;
                };
                TrialQuery::like(item, now)
            }
        };
        let banked = banked.get(&owners_of(bank, query));
        let fits = |item: &BankItem| {
            let named = |asked: &Option<String>, column: &'static str| {
                let held = item.row.text(column);
                let everybodys = held.is_none() && bank.is_everybodys(item, column);
                asked.is_none() || everybodys || asked.as_deref() == held
            };
            let other = probe.like.is_none_or(|l| l.key() != item.key());
            other
                && match banked {
                    Some(banked) => banked.holds(&item.row),
                    None => named(&query.agent, "agent_id") && named(&query.user, "user_id"),
                }
        };
        let pool: Vec<usize> = (0..bank.items.len()).filter(|i| bank.item(*i).is_some_and(fits)).collect();
        let policy = banked.and_then(|banked| banked.policy.as_ref()).map(|(_, policy)| policy);
        let found = ranked(bank, &probe, &pool, policy, DEPTH.max(k));
        let mut relevant = BTreeMap::new();
        for (id, grade) in &query.relevant {
            if probe.like.is_some_and(|like| like.key() == bank.meant(id)) {
                itself += 1;
            } else if bank.named(id).is_none_or(|item| bank.gives(item)) {
                relevant.insert(bank.meant(id), *grade);
            } else {
                held_back.insert(id);
            }
        }
        trials.push(Trial::of(&found, &relevant, k, now));
    }
    notes.extend(counted(unknown, "{#} {query names|queries name} a missing row: {it is left|they are left} out"));
    notes.extend(counted(
        itself,
        "{#} {row is|rows are} named as relevant to {itself|themselves}: recall leaves out the row of the query, \
             so {it does|they do} not count",
    ));
    if !gone.is_empty() {
        notes.push(agreeing(gone.len(), "{#} relevant {row is|rows are} missing: {it counts|they count} as missed"));
    }
    if !held_back.is_empty() {
        notes.push(agreeing(
            held_back.len(),
            "{#} relevant {row is|rows are} not recalled by this ranking: {it does|they do} not count",
        ));
    }
    trials
}

/// Tests whether rows used as queries, by their own words or their own vector, return among the first k.
pub fn self_retrieval(bank: &OwnerBank, k: usize, seed: u64) -> Vec<SelfReturn> {
    if bank.ranking == Ranking::Proven {
        return Vec::new();
    }
    let asked: Vec<&BankItem> = sample(bank, seed).into_iter().filter(|item| bank.gives(item)).collect();
    let by = |by: &'static str, usable: &dyn Fn(&BankItem) -> bool, vector: bool| {
        let asked: Vec<&&BankItem> = asked.iter().filter(|i| usable(i)).collect();
        let back = |item: &&&&BankItem| {
            let probe =
                TrialQuery { vector: if vector { &item.vector } else { &[] }, ..TrialQuery::like(item, bank.newest()) };
            let owner = item.owner.as_deref().unwrap_or_default();
            let pool = bank.pool(owner);
            // An identical row is as good an answer: near-duplicates replace each other.
            let same = |found: &&BankItem| {
                found.key() == item.key()
                    || if vector { found.vector == item.vector } else { found.words == item.words }
                    || bank.ranking == Ranking::Cases && alike(found, item).is_some_and(|l| l > rank::NEAR_DUPLICATE)
            };
            ranked(bank, &probe, &pool, bank.policy_of(owner), k).iter().any(same)
        };
        let found = asked.iter().filter(back).count();
        SelfReturn { by, n: asked.len(), found, share: (!asked.is_empty()).then(|| found as f64 / asked.len() as f64) }
    };
    vec![by("text", &|i| !i.words.is_empty(), false), by("vector", &|i| i.vector.iter().any(|x| *x != 0.0), true)]
}

/// Measures nonsense probes: for each, the greatest similarity of any row that the ranking may return. Empty for a
/// ranking without similarity.
pub fn negative_controls(bank: &OwnerBank, seed: u64) -> Vec<NonsenseControl> {
    if bank.ranking == Ranking::Proven {
        return Vec::new();
    }
    let mut random = Random::new(seed);
    let owners = bank.owners();
    let dimensions = bank.items.iter().map(|i| i.vector.len()).max().unwrap_or_default();
    let run = |by: &'static str, threshold: f64, probes: Vec<(BTreeSet<String>, Vec<f32>)>| {
        let mut best: Vec<f64> = Vec::new();
        for (i, (words, vector)) in probes.iter().enumerate() {
            let pool = owners.get(i % owners.len().max(1)).map(|owner| bank.pool(owner)).unwrap_or_default();
            let given = pool.iter().filter_map(|i| bank.item(*i)).filter(|item| bank.gives(item));
            let rows: Vec<PickedRow<'_>> = given.map(PickedRow).collect();
            let probe = TrialQuery { words, vector, like: None, at: String::new() };
            best.push(likeness(&probe, &rows).into_iter().flatten().fold(0.0, f64::max));
        }
        let answered = best.iter().filter(|b| **b > threshold).count();
        NonsenseControl { by, n: probes.len(), answered, threshold, highest: best.into_iter().reduce(f64::max) }
    };
    let mut word = || -> String { (0..9).map(|_| char::from(b'a' + random.below(26) as u8)).collect() };
    let nonsense = (0..CONTROLS).map(|_| ((0..NONSENSE_WORDS).map(|_| word()).collect(), Vec::new())).collect();
    let mut controls = vec![run("text", 0.0, nonsense)];
    if dimensions > 0 {
        // The sum of uniform numbers is near enough to a bell curve: any direction is as likely.
        let mut number = || (0..6).map(|_| random.unit() - 0.5).sum::<f64>() as f32;
        let vectors = (0..CONTROLS).map(|_| (BTreeSet::new(), (0..dimensions).map(|_| number()).collect())).collect();
        controls.push(run("vector", THRESHOLD, vectors));
    }
    controls
}
