//! Pairs for training and measuring: from a file, or from the recalls recorded in the cases of a bank.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::vec;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::banked::{is_active, standing};
use super::{LabError, Told, each, equal, silent};
use crate::memory::digest::digest;
use crate::memory::first_of::FirstOf;
use crate::memory::packed::id_table::IdTable;
use crate::memory::query::Query;
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row, agreeing, counted, reward};
use crate::recall::features::{Situation, features};
use crate::recall::learn::TrainingExample;
use crate::recall::learn::pairs;
use crate::recall::learn::version::{PurgedCases, Version};
use crate::recall::policy::{Policy, WeightSpelling};
use crate::store::scratch::sorter;
use crate::store::{Store, StoreError};

/// Most pairs used: a policy has seven numbers, so more would not improve it.
const PAIRS: usize = 100_000;

/// Pairs whose cases are read together.
const TOGETHER: usize = 400;

/// Most versions listed across all banks, and the number read together: each may hold thousands of marks.
const VERSIONS: usize = 1_000;
const READ: usize = 20;

/// Columns from which a pair's features are computed.
const COMPARED: &[&str] = &["id", "profile_id", "prompt", "outcome", "reward", "tags", "created_at", "quarantined"];

/// Pairs with their origin.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainingPairs {
    /// The pairs as numbers.
    pub examples: Vec<TrainingExample>,
    /// The bank of each pair; empty for those of a file.
    pub banks: Vec<String>,
    /// Origin of the pairs, for users.
    pub source: String,
    /// A name for exactly these pairs: SHA-256 of the file's text, or of a bank's ids and labels.
    pub fingerprint: String,
    /// Cases that occur in them; empty for those of a file.
    pub cases: Vec<String>,
    /// Remarks about the pairs that users should see.
    pub notes: Vec<String>,
}

/// Pairs of a file's text.
///
/// # Errors
/// [`LabError::Usage`] with the line that is not a valid pair.
pub fn from_file(name: &str, text: &str) -> Result<TrainingPairs, LabError> {
    let read = pairs::parse(text).map_err(|why| LabError::Usage(format!("{name}: {why}")))?;
    let mut queries: HashMap<usize, Situation> = HashMap::new();
    let mut examples = Vec::with_capacity(read.len());
    for pair in &read {
        let situation = queries.entry(pair.query).or_insert_with(|| Situation::of_text(&pair.text, ""));
        let mut case = Row::empty(Entity::Case);
        case.set("prompt", Value::from(pair.case.as_str()));
        case.set("reward", pair.reward.map_or(Value::Null, Value::from));
        case.set("outcome", pair.outcome.map_or(Value::Null, Value::from));
        examples.push(TrainingExample {
            query: pair.query,
            features: features(situation, &case, None),
            label: pair.label,
        });
    }
    let mut notes =
        vec!["the file holds no vectors, tags or times: similarity, tag_overlap and recency are 0".to_owned()];
    let unread = read.iter().filter(|pair| pair.is_unread).count();
    if unread > 0 {
        let words =
            "{#} {pair has|pairs have} an outcome or a reward that cannot be read: {it counts|they count} as unknown";
        notes.push(agreeing(unread, words));
    }
    Ok(TrainingPairs {
        examples,
        source: format!("the pairs of {name}"),
        fingerprint: hex::encode(Sha256::digest(text.as_bytes())),
        notes,
        ..TrainingPairs::default()
    })
}

/// Pairs of a bank, or of all banks: each case is a query, the cases it names were recalled for it, and its own reward,
/// at least 0.5 or not, is the label. Missing and quarantined cases, and queries without a reward, are left out and
/// counted in the notes. Of more than 100,000 pairs, those of the latest queries are taken.
///
/// # Errors
/// A database without cases, or the engine's refusal.
pub async fn from_bank(store: &Store, profile: Option<&str>, told: Told<'_>) -> Result<TrainingPairs, LabError> {
    from_banks(store, profile, &|_| true, told).await
}

/// The same for the wanted banks only.
pub(super) async fn from_banks(
    store: &Store,
    profile: Option<&str>,
    wanted: &(dyn Fn(&str) -> bool + Send + Sync),
    told: Told<'_>,
) -> Result<TrainingPairs, LabError> {
    store.sources_of(Entity::Case)?;
    let mut found = TrainingPairs {
        source: profile.map_or("what the cases of all banks recalled".to_owned(), |id| {
            format!("what the cases of the bank {id} recalled")
        }),
        ..TrainingPairs::default()
    };
    let queries = latest_queries(store, profile, wanted, told, &mut found.notes).await?;
    let pairs: Vec<(usize, &str)> = queries
        .iter()
        .enumerate()
        .flat_map(|(number, query)| query.references.iter().map(move |reference| (number, reference.as_str())))
        .collect();
    let (mut gone, mut with_vector) = (0, false);
    let mut used: BTreeSet<&str> = BTreeSet::new();
    let mut print = Sha256::new();
    // Only queries with pairs are numbered: the split must not depend on other cases.
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    for pairs in pairs.chunks(TOGETHER) {
        let mut ids: Vec<String> = pairs.iter().map(|(_, id)| (*id).to_owned()).collect();
        ids.extend(pairs.iter().filter_map(|(number, _)| Some(queries.get(*number)?.id.clone())));
        ids.sort_unstable();
        ids.dedup();
        let rows = store.related_columns(Entity::Case, "id", &ids, Some(COMPARED)).await?;
        let there = rows.iter().filter(|row| !quarantined(row));
        let cases: HashMap<(&str, &str), &Row> =
            there.map(|row| ((row.id(), row.text("profile_id").unwrap_or_default()), row)).collect();
        let vectors = store.embeddings().vectors(Entity::Case, &ids).await?;
        with_vector |= !vectors.is_empty();
        let mut situations: HashMap<usize, Situation> = HashMap::new();
        for (number, reference) in pairs {
            let Some(query) = queries.get(*number) else { continue };
            let case = |id| cases.get(&(id, query.profile.as_str())).copied();
            // A query deleted meanwhile has no pairs.
            let Some(asking) = case(query.id.as_str()) else { continue };
            let Some(recalled) = case(*reference) else {
                gone += 1;
                continue;
            };
            let situation = situations
                .entry(*number)
                .or_insert_with(|| Situation::of_case(asking, asking.text("created_at").unwrap_or_default()));
            let cosine = vectors.get(&query.id).zip(vectors.get(*reference)).and_then(|(a, b)| cosine_of(a, b));
            let next = numbers.len();
            found.examples.push(TrainingExample {
                query: *numbers.entry(*number).or_insert(next),
                features: features(situation, recalled, cosine),
                label: query.label,
            });
            found.banks.push(query.profile.clone());
            used.extend([query.id.as_str(), reference]);
            print.update(json!([query.id, reference, query.label]).to_string());
        }
    }
    if !with_vector && !found.examples.is_empty() {
        found.notes.push("no case has a vector that can be read: similarity is 0".to_owned());
    }
    found.notes.extend(counted(gone, "{#} {reference leads to a case that is|references lead to cases that are} gone, quarantined or of another bank"));
    found.cases = used.into_iter().map(str::to_owned).collect();
    found.fingerprint = hex::encode(print.finalize());
    Ok(found)
}

/// A case that recalled others, with its outcome.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RecallingCase {
    at: Option<String>,
    id: String,
    profile: String,
    references: Vec<String>,
    label: bool,
}

fn quarantined(case: &Row) -> bool {
    case.get("quarantined").as_bool() == Some(true)
}

/// The latest cases that recalled others, by id, with [`PAIRS`] references at most.
async fn latest_queries(
    store: &Store,
    profile: Option<&str>,
    wanted: &(dyn Fn(&str) -> bool + Send + Sync),
    told: Told<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<RecallingCase>, StoreError> {
    let mut query = Query::new(Entity::Case);
    query.columns = Some(vec!["profile_id", "reward", "reference_case_ids", "created_at", "quarantined"]);
    query.filters.extend(profile.map(|id| equal("profile_id", id)));
    let mut latest = LatestQueries::new(PAIRS);
    let mut unrewarded = 0;
    each(store, &query, told, |row| {
        let mut references: Vec<String> = row.list("reference_case_ids").into_iter().map(str::to_owned).collect();
        references.sort_unstable();
        references.dedup();
        references.retain(|id| id != row.id());
        let profile = row.text("profile_id").unwrap_or_default();
        if references.is_empty() || quarantined(&row) || !wanted(profile) {
            return;
        }
        let Some(label) = row.number("reward").map(reward::label) else {
            unrewarded += 1;
            return;
        };
        latest.add(RecallingCase {
            at: row.text("created_at").map(str::to_owned),
            id: row.id().to_owned(),
            profile: profile.to_owned(),
            references,
            label,
        });
    })
    .await?;
    notes.extend(counted(unrewarded, "{#} {case has|cases have} no reward to take a label from"));
    notes.extend(counted(
        latest.older,
        "at most the latest 100,000 pairs are used: {#} older {case that recalled others is|cases that recalled \
             others are} left out",
    ));
    Ok(latest.by_id())
}

/// Collector of the latest cases that recalled others.
struct LatestQueries {
    /// Most pairs kept.
    most: usize,
    pairs: usize,
    kept: BinaryHeap<Reverse<RecallingCase>>,
    /// Time and id of the latest case that was left out: no earlier one is kept, whatever the order.
    floor: Option<(Option<String>, String)>,
    /// Cases that were left out.
    older: usize,
}

impl LatestQueries {
    fn new(most: usize) -> Self {
        LatestQueries { most, pairs: 0, kept: BinaryHeap::new(), floor: None, older: 0 }
    }

    fn add(&mut self, mut query: RecallingCase) {
        if self.floor.as_ref().is_some_and(|(at, id)| (&query.at, &query.id) <= (at, id)) {
            self.older += 1;
            return;
        }
        query.references.truncate(self.most);
        self.pairs += query.references.len();
        self.kept.push(Reverse(query));
        while self.pairs > self.most
            && let Some(Reverse(oldest)) = self.kept.pop()
        {
            self.pairs -= oldest.references.len();
            self.floor = Some((oldest.at, oldest.id));
            self.older += 1;
        }
    }

    /// The cases kept, each once.
    fn by_id(self) -> Vec<RecallingCase> {
        let mut queries: Vec<RecallingCase> = self.kept.into_iter().map(|Reverse(query)| query).collect();
        queries.sort_unstable_by(|a, b| a.id.cmp(&b.id).then_with(|| a.profile.cmp(&b.profile)).then_with(|| b.cmp(a)));
        queries.dedup_by(|a, b| a.id == b.id && a.profile == b.profile);
        queries
    }
}

/// Versions of policies, and the number of those not read.
#[derive(Debug)]
pub struct Versions {
    /// The first versions, by bank and version, newest first, without the marks of their training cases.
    pub list: Vec<Version>,
    /// Number of the others.
    pub left: u64,
}

/// Policy versions by bank and version, newest first: all of one bank, or the first 1,000 of any.
///
/// # Errors
/// A database without policies, or the engine's refusal.
pub async fn versions(store: &Store, bank: Option<&str>, told: Told<'_>) -> Result<Versions, LabError> {
    let mut reader = VersionReader::open(store, bank, told).await?;
    let mut list = Vec::new();
    while let Some(some) = reader.next().await? {
        list.extend(some);
    }
    Ok(Versions { list, left: reader.left })
}

/// Reads policy versions by bank and version, newest first, in batches: a bank may have very many.
pub struct VersionReader<'a> {
    store: &'a Store,
    told: Told<'a>,
    ids: vec::IntoIter<String>,
    there: Option<IdTable<1>>,
    /// Banks whose version in use was read.
    taken: HashSet<Option<String>>,
    /// Number of versions that are not read.
    pub left: u64,
}

impl<'a> VersionReader<'a> {
    /// All versions of one bank, or the first 1,000 of any.
    ///
    /// # Errors
    /// A database without policies, or the engine's refusal.
    pub async fn open(store: &'a Store, bank: Option<&str>, told: Told<'a>) -> Result<Self, LabError> {
        let mut query = Query::new(Entity::Policy);
        query.columns = Some(vec!["profile_id", "version"]);
        query.filters.extend(bank.map(|id| equal("profile_id", id)));
        store.sources_of(Entity::Policy)?;
        let mut first = FirstOf::new(if bank.is_some() { usize::MAX } else { VERSIONS });
        each(store, &query, told, |row| {
            let bank = row.text("profile_id").map(str::to_owned);
            first.add((bank.is_none(), bank, Reverse(row.get("version").as_i64()), row.id().to_owned()));
        })
        .await?;
        let all = first.count();
        let ids: Vec<String> = first.in_order().into_iter().map(|(.., id)| id).collect();
        let left = all - ids.len() as u64;
        Ok(VersionReader { store, told, ids: ids.into_iter(), there: None, taken: HashSet::new(), left })
    }

    /// The next versions; `None` at the end.
    ///
    /// # Errors
    /// The engine's refusal, or a file that cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Version>>, LabError> {
        let ids: Vec<String> = self.ids.by_ref().take(READ).collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let found = self.store.related(Entity::Policy, "id", &ids).await?;
        let mut rows: HashMap<String, Row> = found.into_iter().map(|row| (row.id().to_owned(), row)).collect();
        let mut some = Vec::new();
        for row in ids.iter().filter_map(|id| rows.remove(id)) {
            if self.there.is_none() && !trained_on(&row).is_empty() {
                self.there = Some(case_marks(self.store, self.told).await?);
            }
            let mut version = read(row, self.there.as_ref());
            let bank = version.row.text("profile_id").map(str::to_owned);
            version.in_use = is_active(&version.row) && self.taken.insert(bank);
            some.push(version);
        }
        self.there.as_ref().map_or(Ok(()), IdTable::check)?;
        Ok(Some(some))
    }
}

/// A version of a row, without the marks of the cases it was trained on; `there` are those of all cases.
fn read(mut row: Row, there: Option<&IdTable<1>>) -> Version {
    let purged = purged(&row, there);
    let mut metrics = row.get("metrics").clone();
    if metrics.as_object_mut().is_some_and(|metrics| metrics.remove(MARKS).is_some()) {
        row.set("metrics", metrics);
    }
    Version { purged, policy: Policy::parse(row.get("weights")), in_use: false, row }
}

/// Counts the training cases of a policy that no longer exist.
///
/// # Errors
/// The engine's refusal.
pub(super) async fn purged_cases(store: &Store, policy: &Row, told: Told<'_>) -> Result<PurgedCases, LabError> {
    let there = if trained_on(policy).is_empty() { IdTable::default() } else { case_marks(store, told).await? };
    let purged = purged(policy, Some(&there));
    there.check()?;
    Ok(purged)
}

/// Name of the list of marks in a policy's metrics.
const MARKS: &str = "training_cases";

/// The mark of a case in a policy's metrics: it shows whether the case still exists, and is not an id.
pub fn mark(case: &str) -> String {
    let digest = Sha256::digest(case.as_bytes());
    hex::encode(digest.iter().take(6).copied().collect::<Vec<u8>>())
}

/// The marks of all cases.
async fn case_marks(store: &Store, told: Told<'_>) -> Result<IdTable<1>, LabError> {
    let mut marks = sorter();
    let mut query = Query::new(Entity::Case);
    query.columns = Some(vec!["id"]);
    each(store, &query, told, |row| marks.add([digest(&mark(row.id()))])).await?;
    Ok(IdTable::of(marks, |_, _| {})?)
}

fn trained_on(policy: &Row) -> Vec<&str> {
    let marks = policy.get("metrics").get(MARKS).and_then(|m| m.as_array());
    marks.map(|all| all.iter().filter_map(|m| m.as_str()).collect()).unwrap_or_default()
}

/// Whether a policy was trained on any of these cases.
pub(super) fn knows_some(policy: &Row, cases: &[String]) -> bool {
    let marks: HashSet<&str> = trained_on(policy).into_iter().collect();
    !marks.is_empty() && cases.iter().any(|case| marks.contains(mark(case).as_str()))
}

fn purged(policy: &Row, there: Option<&IdTable<1>>) -> PurgedCases {
    let marks = trained_on(policy);
    let Some(there) = there.filter(|_| !marks.is_empty()) else {
        let from_file = policy.get("metrics").get("pairs_sha256").is_some_and(Value::is_string);
        let reason = if from_file {
            "it was trained on pairs of a file"
        } else {
            "which cases it was trained on is not recorded"
        };
        return PurgedCases { cases: None, gone: None, share: None, reason: Some(reason) };
    };
    let gone = marks.iter().filter(|mark| there.get(mark).is_none()).count();
    let share = gone as f64 / marks.len() as f64;
    PurgedCases { cases: Some(marks.len()), gone: Some(gone), share: Some(share), reason: None }
}

/// Facts about a bank's policy versions for adding another one. A bank may have very many versions: none is held.
#[derive(Debug)]
pub struct BankVersions {
    /// Greatest version number; 0 if there is none.
    pub highest: i64,
    /// Number and id of the version that readers use.
    pub in_use: Option<(Option<i64>, String)>,
    /// The spelling of weights that the database's readers expect: that of the newest readable version, else the
    /// layout's own.
    pub spelling: WeightSpelling,
}

impl BankVersions {
    /// Reads the versions of a bank.
    ///
    /// # Errors
    /// A database without policies, or the engine's refusal.
    pub async fn read(store: &Store, bank: &str) -> Result<Self, LabError> {
        store.sources_of(Entity::Policy)?;
        let mut query = Query::new(Entity::Policy);
        query.columns = Some(vec!["profile_id", "version", "status", "weights", "trained_at"]);
        query.filters.push(equal("profile_id", bank));
        let (mut highest, mut in_use, mut newest) = (None, None, None);
        each(store, &query, &silent, |row| {
            let (version, id) = standing(&row);
            highest = highest.max(version);
            if let Ok(policy) = Policy::parse(row.get("weights")) {
                // Of those at the same time, the last in a list of versions.
                let place = (row.text("trained_at").map(str::to_owned), Reverse(version), id.0.clone());
                if newest.as_ref().is_none_or(|(known, _)| place > *known) {
                    newest = Some((place, policy.spelling));
                }
            }
            if is_active(&row) {
                in_use = in_use.take().max(Some((version, id)));
            }
        })
        .await?;
        let is_camel = || store.recognised().layouts.iter().any(|layout| layout.name == "ennube");
        let usual = || if is_camel() { WeightSpelling::Camel } else { WeightSpelling::Snake };
        Ok(BankVersions {
            highest: highest.unwrap_or(0),
            in_use: in_use.map(|(version, Reverse(id))| (version, id)),
            spelling: newest.map_or_else(usual, |(_, spelling)| spelling),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_pairs_those_of_the_latest_queries_are_kept() {
        let query = |id: &str, day: u8, pairs: usize| RecallingCase {
            at: (day > 0).then(|| format!("2026-01-0{day}T00:00:00.000000Z")),
            id: id.to_owned(),
            profile: "a bank".to_owned(),
            references: (0..pairs).map(|n| n.to_string()).collect(),
            label: true,
        };
        let kept = |queries: &[(&str, u8, usize)]| {
            let mut latest = LatestQueries::new(10);
            queries.iter().for_each(|(id, day, pairs)| latest.add(query(id, *day, *pairs)));
            let older = latest.older;
            (latest.by_id().into_iter().map(|q| (q.id, q.references.len())).collect::<Vec<_>>(), older)
        };
        let told = |ids: &[(&str, usize)]| ids.iter().map(|(id, n)| ((*id).to_owned(), *n)).collect::<Vec<_>>();
        assert_eq!(kept(&[("c", 3, 4), ("a", 1, 4), ("b", 2, 2)]), (told(&[("a", 4), ("b", 2), ("c", 4)]), 0));
        assert_eq!(kept(&[("untimed", 0, 4), ("c", 3, 4), ("b", 2, 3)]), (told(&[("b", 3), ("c", 4)]), 1));
        // Everything before a case that was left out is left out too, whatever the order.
        for order in [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"], ["c", "b", "a"]] {
            let queries = order.map(|id| match id {
                "a" => (id, 1, 4),
                "b" => (id, 2, 6),
                _ => (id, 3, 6),
            });
            assert_eq!(kept(&queries), (told(&[("c", 6)]), 2), "{order:?}");
        }
        assert_eq!(kept(&[("long", 5, 99), ("b", 2, 3)]), (told(&[("long", 10)]), 1));
        assert_eq!(kept(&[("twice", 1, 2), ("twice", 1, 2)]), (told(&[("twice", 2)]), 0));
    }
}
