//! Quality of a policy on pairs: of one version, of the versions in use, or of a policy that training would produce.

use std::collections::HashMap;

use serde_json::Value;

use super::banked::{PoliciesInUse, UnusablePolicy, policies_in_use};
use super::training::{self, TrainingPairs};
use super::{LabError, Told};
use crate::memory::{Entity, Row, agreeing};
use crate::recall::learn::assess::{self, Assessment, cross_validate, hold_out};
use crate::recall::learn::measured::MeasuredAssessment;
use crate::recall::learn::{LearnError, TrainingExample, check};
use crate::recall::policy::Policy;
use crate::store::Store;

/// Measures a version. Without an id, measures the versions in use on the banks' own pairs; on given pairs, the policy
/// that training on them would give (each pair is predicted by a policy that did not see its query).
///
/// # Errors
/// [`LabError::NotFound`] for a missing version, [`LabError::Refused`] for unusable weights, also of all versions in use,
/// and for pairs that allow no measurement.
pub async fn measure(
    store: &Store,
    id: Option<&str>,
    given: Option<TrainingPairs>,
    seed: u64,
    told: Told<'_>,
) -> Result<MeasuredAssessment, LabError> {
    match (id, given) {
        (Some(id), given) => one(store, id, given, seed, told).await,
        (None, Some(pairs)) => training_on(&pairs, seed),
        (None, None) => in_use(store, seed, told).await,
    }
}

/// Pairs with a single label have no AUC, but a loss and a calibration.
fn some(pairs: &TrainingPairs) -> Result<(), LabError> {
    if pairs.examples.is_empty() { Err(refused(pairs)(LearnError::Empty)) } else { Ok(()) }
}

fn refused(pairs: &TrainingPairs) -> impl Fn(LearnError) -> LabError + '_ {
    |why| LabError::Refused(format!("nothing can be measured by {}: {why}", pairs.source))
}

async fn one(
    store: &Store,
    id: &str,
    given: Option<TrainingPairs>,
    seed: u64,
    told: Told<'_>,
) -> Result<MeasuredAssessment, LabError> {
    let stored = store.row(Entity::Policy, id).await?;
    let row = stored.ok_or_else(|| {
        let list = store.invocation().line(["policy", "list"]);
        LabError::NotFound(format!("there is no policy `{id}` in {}; `{list}` shows them", store.location()))
    })?;
    let profile = row.text("profile_id").map(str::to_owned);
    let policy = Policy::parse(row.get("weights"))
        .map_err(|why| LabError::Refused(format!("the policy {id} cannot be used: {why}")))?;
    let pairs = match given {
        Some(pairs) => pairs,
        None => training::from_bank(store, profile.as_deref(), told).await?,
    };
    some(&pairs)?;
    let mut notes = pairs.notes.clone();
    if !policy.unknown.is_empty() {
        notes.push(format!("weights that count for nothing here: {}", policy.unknown.join(", ")));
    }
    let (examples, all_pairs) = if let Some(held) = held_out(&row, &pairs) {
        notes.push("it was trained on these pairs: the numbers are of the queries that were held out then".to_owned());
        (held, Some(score_all(&pairs.examples, &policy, seed).metrics))
    } else {
        if training::knows_some(&row, &pairs.cases) {
            notes.push("it was trained on some of these cases: the numbers may flatter it".to_owned());
        }
        (pairs.examples.clone(), None)
    };
    Ok(MeasuredAssessment {
        policy: Some(id.to_owned()),
        version: row.get("version").as_i64(),
        what: "this version".to_owned(),
        pairs: pairs.source,
        assessment: score_all(&examples, &policy, seed),
        all_pairs,
        purged: Some(training::purged_cases(store, &row, told).await?),
        profile_id: profile,
        notes,
    })
}

fn score_all(examples: &[TrainingExample], policy: &Policy, seed: u64) -> Assessment {
    let scores: Vec<f64> = examples.iter().map(|e| policy.score(&e.features)).collect();
    assess::assess(examples, &scores, Some(policy), seed)
}

/// The pairs that were held out when the policy was trained on exactly these pairs; `None` if it was not.
fn held_out(policy: &Row, pairs: &TrainingPairs) -> Option<Vec<TrainingExample>> {
    let metrics = policy.get("metrics");
    let seed = metrics.get("seed")?.as_u64()?;
    let same = metrics.get("pairs_sha256").and_then(Value::as_str) == Some(&pairs.fingerprint);
    let held = hold_out(&pairs.examples, 0, seed).1;
    (same && check(&held).is_ok()).then_some(held)
}

fn training_on(pairs: &TrainingPairs, seed: u64) -> Result<MeasuredAssessment, LabError> {
    let assessment = cross_validate(&pairs.examples, seed).map_err(refused(pairs))?;
    Ok(MeasuredAssessment {
        policy: None,
        version: None,
        profile_id: None,
        what: "quality of a policy trained on these pairs: each pair is predicted by one that did not see its query"
            .to_owned(),
        pairs: pairs.source.clone(),
        assessment,
        all_pairs: None,
        purged: None,
        notes: pairs.notes.clone(),
    })
}

async fn in_use(store: &Store, seed: u64, told: Told<'_>) -> Result<MeasuredAssessment, LabError> {
    let PoliciesInUse { by_bank: used, unusable } = policies_in_use(store, told).await?;
    if let Some(first) = unusable.first().filter(|_| used.is_empty()) {
        let why = agreeing(unusable.len(), "{the policy|none of the {#} policies} in use can be measured");
        return Err(LabError::Refused(format!("{why}: {}", first.note())));
    }
    if used.is_empty() {
        let pairs = training::from_bank(store, None, told).await?;
        let mut measured = training_on(&pairs, seed)?;
        measured.notes.insert(0, "no policy is in use".to_owned());
        return Ok(measured);
    }
    let mut pairs = training::from_banks(store, None, &|bank| used.contains_key(bank), told).await?;
    let (mut examples, mut scores, mut numbers) = (Vec::new(), Vec::new(), HashMap::new());
    for (example, bank) in pairs.examples.iter().zip(&pairs.banks) {
        if let Some(policy) = used.get(bank) {
            let part = numbers.len() as u64;
            examples.push(*example);
            scores.push((*numbers.entry(bank).or_insert(part), policy.score(&example.features)));
        }
    }
    pairs.examples = examples;
    some(&pairs)?;
    let mut notes = pairs.notes.clone();
    notes.extend(unusable.iter().map(UnusablePolicy::note));
    notes.push("the versions may have been trained on some of these pairs: the numbers may flatter them".to_owned());
    Ok(MeasuredAssessment {
        policy: None,
        version: None,
        profile_id: None,
        what: agreeing(used.len(), "the {version|versions} in use, of {#} {bank|banks}"),
        assessment: assess::assess_parts(&pairs.examples, &scores, None, seed),
        pairs: pairs.source,
        all_pairs: None,
        purged: None,
        notes,
    })
}
