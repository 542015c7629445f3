//! Retrieval policies: a new version is trained and stored for review, and one version is put to use. Older versions
//! stay.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::batch::{self, NewRow};
use super::draft::Draft;
use super::feedback::writable;
use super::operation::PairsFile;
use super::plan::{ChangeDanger, Plan};
use super::reward::trail;
use super::{ChangeError, new_id, number_after};
use crate::lab::silent;
use crate::lab::training::{self, BankVersions, TrainingPairs};
use crate::memory::agreeing;
use crate::memory::{Entity, Row};
use crate::recall::learn::assess::{TrainedPolicy, train_and_hold_out};
use crate::recall::policy::Policy;
use crate::store::Store;
use crate::store::encode::{GivenValue, LocatedRow, plain_column};
use crate::store::fetched::FetchedValue;
use crate::store::stored::{Cell, Mutation, StoredRows};

/// Profiles whose versions are counted in one query.
const TOGETHER: usize = 100;

/// Reports how many policy versions of some profiles were trained before the change; `whose` names these for people.
pub(super) async fn report_trained(draft: &mut Draft<'_>, profiles: &[&str], whose: &str) -> Result<(), ChangeError> {
    let mut policies = 0;
    for profiles in profiles.chunks(TOGETHER) {
        let columns = ["id", "profile_id", Entity::Policy.time_column()];
        let count = |_, _| {
            policies += 1;
            ControlFlow::Continue(())
        };
        draft.store.each_related(Entity::Policy, "profile_id", profiles, &columns, count).await?;
    }
    if policies > 0 {
        let words = "{was trained|were trained} before this change";
        draft.effects.push(agreeing(policies, &format!("{{#}} policy {{version|versions}} of {whose} {words}")));
    }
    Ok(())
}

/// The versions of a bank, all of them watched: a version added meanwhile is a conflict.
async fn watched_versions(draft: &mut Draft<'_>, profile: &str) -> Result<BankVersions, ChangeError> {
    let store = draft.store;
    for source in store.sources_of(Entity::Policy)? {
        writable(source)?;
        if let Some((name, way)) = plain_column(source, "profile_id")
            && store.encoder().can_be(way, profile)
        {
            let table = crate::store::encode::table_of(source);
            draft.watch(StoredRows::with(&table, name, FetchedValue::Text(profile.to_owned()))).await?;
        }
    }
    Ok(BankVersions::read(store, profile).await?)
}

/// Plans a new version of a bank's policy, trained on a file of pairs, otherwise on the recalls of the bank's own
/// cases.
///
/// # Errors
/// As [`train`]; [`ChangeError::Usage`] with the line of the file that is not a pair.
pub async fn train_on(store: &Store, profile: &str, file: Option<&PairsFile>, seed: u64) -> Result<Plan, ChangeError> {
    let pairs = match file {
        Some(file) => training::from_file(&file.name, &file.text)?,
        None => training::from_bank(store, Some(profile), &silent).await?,
    };
    train(store, profile, &pairs, seed).await
}

/// Plans a new version of a bank's policy, trained on pairs, stored with the status `training`. It is never put to use
/// on its own.
///
/// # Errors
/// [`ChangeError::NotFound`] for a missing bank; [`ChangeError::Refused`] for pairs without information (none, or all
/// of one kind), and if policies cannot be stored.
pub async fn train(store: &Store, profile: &str, pairs: &TrainingPairs, seed: u64) -> Result<Plan, ChangeError> {
    store.sources_of(Entity::Policy)?;
    let mut draft = Draft::new(store, "policy.train", ChangeDanger::Safe).await?;
    let bank = draft.locate(Entity::Profile, profile).await?.row;
    let versions = watched_versions(&mut draft, profile).await?;
    let trained = train_and_hold_out(&pairs.examples, versions.spelling, seed)
        .map_err(|why| ChangeError::Refused(format!("nothing can be trained from {}: {why}", pairs.source)))?;
    let version = number_after(versions.highest, "version")?;
    let id = new_id();
    let row = NewRow::new(
        Entity::Policy,
        [
            ("id", Value::from(id.clone())),
            ("profile_id", Value::from(profile)),
            ("version", Value::from(version)),
            ("weights", trained.policy.to_json()),
            ("metrics", stored_metrics(&trained, pairs, seed)),
            ("status", Value::from("training")),
        ],
    )
    .at_once("trained_at");
    say(&mut draft, &trained, pairs);
    draft.effects.push(format!(
        "version {version} is stored for review and not used: `{}` activates it, `{}` measures it",
        store.invocation().line(["policy", "activate", &id, "--apply"]),
        store.invocation().line(["policy", "evaluate", &id])
    ));
    for (name, value) in [("profile", json!(profile)), ("version", json!(version)), ("pairs", json!(trained.n))] {
        draft.facts.insert(name.to_owned(), value);
    }
    let payload = json!({"profileId": profile, "policyId": id, "newVersion": version, "status": "training",
        "examplesCount": trained.n, "newLoss": trained.held_out.metrics.loss});
    let undone =
        json!({"profileId": profile, "policyId": id, "newVersion": version, "status": "removed", "cause": "undo"});
    draft.trail = trail(store, "policy.train", &bank, &payload).await?;
    draft.undo_trail = trail(store, "policy.train", &bank, &undone).await?;
    batch::add(&mut draft, Entity::Policy, vec![row]).await?;
    Ok(draft.seal())
}

/// Returns the facts of a training stored with the weights: metrics on held-out pairs, and the inputs needed to repeat
/// the measurement.
fn stored_metrics(trained: &TrainedPolicy, pairs: &TrainingPairs, seed: u64) -> Value {
    let held = &trained.held_out;
    let numbers = &held.metrics;
    let marks: Vec<String> = pairs.cases.iter().map(|id| training::mark(id)).collect();
    json!({
        "loss": numbers.loss, "accuracy": trained.accuracy, "auc": numbers.auc, "brier": numbers.brier, "ece": numbers.ece,
        "n": held.n, "positives": held.positives, "queries": held.queries, "interval": held.interval,
        "measured_on": "held-out queries", "verdict": held.verdict,
        "trained_on": {"n": trained.n, "loss": trained.trained_on.loss, "auc": trained.trained_on.auc},
        "seed": seed, "pairs": pairs.source, "pairs_sha256": pairs.fingerprint, "training_cases": marks,
    })
}

fn say(draft: &mut Draft<'_>, trained: &TrainedPolicy, pairs: &TrainingPairs) {
    let held = &trained.held_out;
    let number = |x: Option<f64>| x.map_or("unknown".to_owned(), |x| format!("{x:.3}"));
    draft.effects.push(agreeing(trained.n, &format!("trained on {{#}} {{pair|pairs}}, from {}", pairs.source)));
    draft.effects.push(format!(
        "on {} of {}: AUC {}, Brier {}, calibration error {}, loss {}",
        agreeing(held.n, "{#} held-out {pair|pairs}"),
        agreeing(held.queries, "{#} {query|queries}"),
        number(held.metrics.auc),
        number(held.metrics.brier),
        number(held.metrics.ece),
        number(held.metrics.loss)
    ));
    for single in &held.features {
        if let Some(auc) = single.auc {
            draft.effects.push(format!("{} alone: AUC {auc:.3}", single.name));
        }
    }
    draft.disclosures.extend(pairs.notes.iter().cloned());
    draft.disclosures.push(held.advice.clone());
}

/// Plans to activate a version. Readers use the highest active version of a bank: a newer one is activated, an older
/// one is copied as the newest. The others stay unchanged and are no longer used.
///
/// # Errors
/// [`ChangeError::NotFound`]; [`ChangeError::Refused`] for unusable weights, and if policies cannot be stored.
pub async fn activate(store: &Store, id: &str) -> Result<Plan, ChangeError> {
    store.sources_of(Entity::Policy)?;
    let mut draft = Draft::new(store, "policy.activate", ChangeDanger::Guarded).await?;
    let located = draft.locate(Entity::Policy, id).await?;
    writable(located.source)?;
    let chosen = located.row.clone();
    let Some(profile) = chosen.text("profile_id").map(str::to_owned) else {
        return Err(ChangeError::Refused(format!("the policy {id} belongs to no bank: nothing would use it")));
    };
    let versions = watched_versions(&mut draft, &profile).await?;
    if let Err(why) = Policy::parse(chosen.get("weights")) {
        return Err(ChangeError::Refused(format!("the policy {id} cannot be used: {why}")));
    }
    let used = versions.in_use.map(|(version, id)| (id, version.unwrap_or_default()));
    if used.as_ref().is_some_and(|(used, _)| used == id) {
        draft.effects.push("it is already in use".to_owned());
        return Ok(draft.seal());
    }
    warn(&mut draft, &chosen);
    let number = chosen.get("version").as_i64().unwrap_or_default();
    draft.effects.push(match &used {
        Some((_, used)) => format!("version {used} is no longer used; it stays as it is"),
        None => "no version was in use before".to_owned(),
    });
    let bank = store.row(Entity::Profile, &profile).await?.unwrap_or_else(|| Row::empty(Entity::Profile));
    let version = if used.as_ref().is_none_or(|(_, used)| *used < number) {
        let shape = store.shapes().shape(&located.table()).await?;
        let values = [("status", GivenValue::from("active"))];
        draft.push(located.update(&shape, &values).map_err(ChangeError::Refused)?);
        let mut shown = chosen.clone();
        shown.set("status", Value::from("active"));
        draft.alters(&chosen, &shown);
        number
    } else {
        let newest = number_after(versions.highest, "version")?;
        draft.effects.push(format!(
            "version {number} is older than the one in use: it is copied as version {newest}, because readers take the highest \
             active version"
        ));
        copy(&mut draft, &located, newest);
        newest
    };
    for (name, value) in [("profile", json!(profile)), ("policy", json!(id)), ("version", json!(version))] {
        draft.facts.insert(name.to_owned(), value);
    }
    let payload = json!({"profileId": profile, "policyId": id, "newVersion": version, "status": "active"});
    let undone = json!({"profileId": profile, "policyId": used.as_ref().map(|(id, _)| id),
        "newVersion": used.as_ref().map(|(_, version)| version), "withdrawn": version, "status": "active", "cause": "undo"});
    draft.trail = trail(store, "policy.activate", &bank, &payload).await?;
    draft.undo_trail = trail(store, "policy.activate", &bank, &undone).await?;
    Ok(draft.seal())
}

/// Adds an exact copy of a stored policy as an active version with another number.
fn copy(draft: &mut Draft<'_>, stored: &LocatedRow<'_>, version: i64) {
    let id = new_id();
    let mut copy = stored.row.clone();
    copy.set("id", Value::from(id.clone()));
    copy.set("version", Value::from(version));
    copy.set("status", Value::from("active"));
    let mut columns = Vec::new();
    let mut cells = Vec::new();
    for column in Entity::Policy.columns() {
        let Some((name, _)) = plain_column(stored.source, column.name) else { continue };
        let raw = match column.name {
            "id" => FetchedValue::Text(id.clone()),
            "version" => FetchedValue::Integer(version),
            "status" => FetchedValue::Text("active".to_owned()),
            _ => stored.image.get(name).cloned().unwrap_or(FetchedValue::Null),
        };
        if !columns.iter().any(|known| known == name) {
            columns.push(name.to_owned());
            cells.push(Cell::Is(raw));
        }
    }
    let key = plain_column(stored.source, "id").map(|(name, _)| name.to_owned()).into_iter().collect();
    draft.adds(&copy);
    draft.push(Mutation::Insert { table: stored.table(), key, columns, rows: vec![cells] });
}

/// Reports training results that argue against the version.
fn warn(draft: &mut Draft<'_>, policy: &Row) {
    let metrics = policy.get("metrics");
    match metrics.get("verdict").and_then(Value::as_str) {
        Some("better than chance") => {}
        Some(verdict) => {
            draft
                .disclosures
                .push(format!("on pairs that it was not trained on, it was {verdict}: do not activate it"));
        }
        None => draft.disclosures.push(format!(
            "its quality on held-out pairs is not recorded; `{}` measures it",
            draft.store.invocation().about(&["policy", "evaluate"], &[policy.id()], &[])
        )),
    }
}
