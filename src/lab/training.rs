//! Pairs to learn and to measure by: from a file, or from what the cases of a bank say of the cases they recalled.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{LabError, Told, each, equal};
use crate::memory::agreeing;
use crate::memory::query::Query;
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row, reward};
use crate::recall::features::{Situation, features};
use crate::recall::learn::TrainingExample;
use crate::recall::learn::pairs;
use crate::recall::learn::version::{PurgedCases, Version};
use crate::recall::policy::{Policy, WeightSpelling};
use crate::store::{Store, StoreError};

/// Vectors that are held at most.
const VECTORS: usize = 20_000;

/// Pairs with where they come from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainingPairs {
    /// The pairs as numbers.
    pub examples: Vec<TrainingExample>,
    /// The bank of each pair; empty for those of a file.
    pub banks: Vec<String>,
    /// Origin of the pairs, for users.
    pub source: String,
    /// A name for exactly these pairs: SHA-256 of the file's text, none for a bank's own.
    pub fingerprint: Option<String>,
    /// Cases that occur in them; empty for those of a file.
    pub cases: Vec<String>,
    /// Remarks about the pairs that users should see.
    pub notes: Vec<String>,
}

/// Pairs of a file's text.
///
/// # Errors
/// [`LabError::Usage`] with the line that is no pair.
pub fn from_file(name: &str, text: &str) -> Result<TrainingPairs, LabError> {
    let read = pairs::parse(text).map_err(|why| LabError::Usage(format!("{name}: {why}")))?;
    let mut queries: HashMap<usize, Situation> = HashMap::new();
    let mut examples = Vec::with_capacity(read.len());
    for pair in &read {
        let situation = queries.entry(pair.query).or_insert_with(|| Situation::of_text(&pair.text, ""));
        let mut case = Row::empty(Entity::Case);
        case.set("prompt", Value::from(pair.case.as_str()));
        case.set("reward", pair.reward.map_or(Value::Null, Value::from));
        let word = |well: bool| Value::from(if well { "success" } else { "failure" });
        case.set("outcome", pair.case_went_well.map_or(Value::Null, word));
        examples.push(TrainingExample {
            query: pair.query,
            features: features(situation, &case, None),
            label: pair.label,
        });
    }
    Ok(TrainingPairs {
        examples,
        source: format!("the pairs of {name}"),
        fingerprint: Some(hex::encode(Sha256::digest(text.as_bytes()))),
        notes: vec!["the file holds no vectors, tags or times: similarity, tag_overlap and recency are 0".to_owned()],
        ..TrainingPairs::default()
    })
}

/// Pairs of a bank, or of all banks: each case is a query, the cases that it names were recalled for it, and its own
/// reward, at least 0.5 or not, is the label. Cases that are gone, quarantined ones and queries without a reward are
/// left out and counted in the notes.
///
/// # Errors
/// A database without cases, or the engine's refusal.
pub async fn from_bank(store: &Store, profile: Option<&str>, told: Told<'_>) -> Result<TrainingPairs, LabError> {
    store.sources_of(Entity::Case)?;
    let mut cases: BTreeMap<String, TrainingCase> = BTreeMap::new();
    let mut query = Query::new(Entity::Case);
    query.columns = Some(vec![
        "profile_id",
        "prompt",
        "outcome",
        "reward",
        "tags",
        "reference_case_ids",
        "created_at",
        "quarantined",
    ]);
    query.filters.extend(profile.map(|id| equal("profile_id", id)));
    each(store, &query, told, |row| {
        if row.get("quarantined").as_bool() != Some(true) {
            cases.insert(row.id().to_owned(), TrainingCase::of(row));
        }
    })
    .await?;
    let mut found = TrainingPairs {
        source: profile.map_or("what the cases of all banks recalled".to_owned(), |id| {
            format!("what the cases of the bank {id} recalled")
        }),
        ..TrainingPairs::default()
    };
    let named: BTreeSet<&String> = cases.values().flat_map(|case| &case.references).collect();
    let asking = cases.iter().filter(|(_, case)| !case.references.is_empty()).map(|(id, _)| id);
    let compared: BTreeSet<&String> = asking.chain(named.into_iter().filter(|id| cases.contains_key(*id))).collect();
    let compared: Vec<String> = compared.into_iter().take(VECTORS).cloned().collect();
    let vectors = store.embeddings().vectors(Entity::Case, &compared).await?;
    if vectors.is_empty() && !compared.is_empty() {
        found.notes.push("no case has a vector that can be read: similarity is 0".to_owned());
    }
    let cosine = |a: &str, b: &str| cosine_of(vectors.get(a)?, vectors.get(b)?);
    let (mut gone, mut unrewarded) = (0, 0);
    let mut used: HashSet<&str> = HashSet::new();
    for (number, (id, case)) in cases.iter().enumerate() {
        if case.references.is_empty() {
            continue;
        }
        let Some(label) = case.row.number("reward").map(reward::label) else {
            unrewarded += 1;
            continue;
        };
        let situation = Situation::of_case(&case.row, case.row.text("created_at").unwrap_or_default());
        for reference in &case.references {
            let Some((known, recalled)) = cases.get_key_value(reference).filter(|(_, c)| c.profile == case.profile)
            else {
                gone += 1;
                continue;
            };
            used.extend([id.as_str(), known.as_str()]);
            let features = features(&situation, &recalled.row, cosine(id, known));
            found.examples.push(TrainingExample { query: number, features, label });
            found.banks.push(case.profile.clone());
        }
    }
    found.cases = used.into_iter().map(str::to_owned).collect();
    found.cases.sort_unstable();
    if gone > 0 {
        found.notes.push(agreeing(gone, "{#} {reference leads to a case that is|references lead to cases that are} gone, quarantined or of another bank"));
    }
    if unrewarded > 0 {
        found.notes.push(agreeing(unrewarded, "{#} {case has|cases have} no reward to take a label from"));
    }
    Ok(found)
}

struct TrainingCase {
    profile: String,
    row: Row,
    references: Vec<String>,
}

impl TrainingCase {
    fn of(row: Row) -> Self {
        let mut references: Vec<String> = row.list("reference_case_ids").into_iter().map(str::to_owned).collect();
        references.sort_unstable();
        references.dedup();
        references.retain(|id| id != row.id());
        TrainingCase { profile: row.text("profile_id").unwrap_or_default().to_owned(), row, references }
    }
}

/// All policy versions, of one bank or of all, by bank and version, the newest first.
///
/// # Errors
/// A database without policies, or the engine's refusal.
pub async fn versions(store: &Store, profile: Option<&str>, told: Told<'_>) -> Result<Vec<Version>, LabError> {
    let mut query = Query::new(Entity::Policy);
    query.filters.extend(profile.map(|id| equal("profile_id", id)));
    store.sources_of(Entity::Policy)?;
    let mut rows = Vec::new();
    each(store, &query, told, |row| rows.push(row)).await?;
    let place = |r: &Row| {
        (
            r.text("profile_id").is_none(),
            r.text("profile_id").map(str::to_owned),
            std::cmp::Reverse(r.get("version").as_i64()),
        )
    };
    rows.sort_by_cached_key(|r| (place(r), r.id().to_owned()));
    let there =
        if rows.iter().any(|r| !trained_on(r).is_empty()) { case_marks(store, told).await? } else { HashSet::new() };
    let mut taken: HashSet<Option<String>> = HashSet::new();
    let version = |row: Row| {
        let policy = Policy::parse(row.get("weights"));
        let active = row.text("status") == Some("active");
        let in_use = active && taken.insert(row.text("profile_id").map(str::to_owned));
        Version { purged: purged(&row, &there), policy, in_use, row }
    };
    Ok(rows.into_iter().map(version).collect())
}

/// The mark that stands for a case in a policy's metrics: enough to see that the case is gone, and no id.
#[must_use]
pub fn mark(case: &str) -> String {
    let digest = Sha256::digest(case.as_bytes());
    hex::encode(digest.iter().take(6).copied().collect::<Vec<u8>>())
}

async fn case_marks(store: &Store, told: Told<'_>) -> Result<HashSet<String>, StoreError> {
    let mut marks = HashSet::new();
    let mut query = Query::new(Entity::Case);
    query.columns = Some(vec!["id"]);
    each(store, &query, told, |row| {
        marks.insert(mark(row.id()));
    })
    .await?;
    Ok(marks)
}

fn trained_on(policy: &Row) -> Vec<&str> {
    let marks = policy.get("metrics").get("training_cases").and_then(|m| m.as_array());
    marks.map(|all| all.iter().filter_map(|m| m.as_str()).collect()).unwrap_or_default()
}

fn purged(policy: &Row, there: &HashSet<String>) -> PurgedCases {
    let marks = trained_on(policy);
    if marks.is_empty() {
        let from_file = policy.get("metrics").get("pairs_sha256").is_some_and(Value::is_string);
        let reason = if from_file {
            "it was trained on pairs of a file"
        } else {
            "which cases it was trained on is not recorded"
        };
        return PurgedCases { cases: None, gone: None, share: None, reason: Some(reason) };
    }
    let gone = marks.iter().filter(|m| !there.contains(**m)).count();
    let share = gone as f64 / marks.len() as f64;
    PurgedCases { cases: Some(marks.len()), gone: Some(gone), share: Some(share), reason: None }
}

/// The spelling in which the database's readers expect weights: that of the newest policy that can be read, else the
/// layout's own.
#[must_use]
pub fn spelling(store: &Store, versions: &[Version]) -> WeightSpelling {
    let newest = versions.iter().filter(|v| v.policy.is_ok()).max_by_key(|v| v.row.text("trained_at"));
    match newest.map(|v| &v.policy) {
        Some(Ok(policy)) => policy.spelling,
        _ if store.recognised().layouts.iter().any(|l| l.name == "ennube") => WeightSpelling::Camel,
        _ => WeightSpelling::Snake,
    }
}
