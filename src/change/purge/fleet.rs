//! One person erased from several databases: each by itself, with its own status, and one receipt over all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::decide::{self, NewDecisions};
use super::desk::{Desk, Progress};
use super::plan::{PurgeOptions, PurgePlan};
use super::planning;
use super::receipt::{FileHits, PurgeReceipt, PurgeRecheck};
use super::search::KeptSearch;
use super::verdict::PurgeStatus;
use super::{Sink, bundle, check_hold, recheck, run};
use crate::change::plan::Counts;
use crate::change::{ChangeError, anchor, new_id, now};
use crate::store::Store;

/// Operation name in a receipt over several databases.
const OPERATION: &str = "purge fleet";
/// Kinds of handles by which a person may be found in another database: one person has each of them.
const TELLING: [&str; 3] = ["id", "e-mail", "phone"];

/// A database of the fleet as far as it was reached.
#[derive(Debug)]
pub struct OpenedMember {
    /// Name of the database, for users.
    pub label: String,
    /// Location of the database, without a password.
    pub location: String,
    /// The database, or why it could not be opened.
    pub store: Result<Store, String>,
}

impl OpenedMember {
    fn entry(&self, status: &str) -> FleetEntry {
        let (label, location) = (self.label.clone(), Some(self.location.clone()));
        FleetEntry { label, location, status: status.to_owned(), ..FleetEntry::default() }
    }

    fn failed(&self, status: &str, words: impl Into<String>) -> FleetEntry {
        FleetEntry { error: Some(words.into()), ..self.entry(status) }
    }

    fn refused(&self, error: &ChangeError) -> FleetEntry {
        self.failed(status_of(error), error.to_string())
    }
}

/// Result for one database.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct FleetEntry {
    /// Name of the database, for users.
    pub label: String,
    /// Location of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// The word of its receipt or answer, else `not found`, `unreachable`, `refused`, `conflict` or `failed`.
    pub status: String,
    /// Reason why nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Receipt of the erasure in this database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<PurgeReceipt>,
    /// Findings of a later check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<PurgeRecheck>,
}

impl FleetEntry {
    /// Explains why the database did not reach the intended status; `None` when it did.
    fn problem(&self) -> Option<String> {
        let fine = ["verified", "verified with disclosures", NOT_FOUND];
        if fine.contains(&self.status.as_str()) {
            return None;
        }
        let why = match &self.receipt {
            Some(receipt) => receipt.incomplete.join("; "),
            None => self.error.clone().unwrap_or_default(),
        };
        Some(format!("{} is {}: {why}", self.label, self.status))
    }
}

/// The status of a database in which nobody is known by the handle.
const NOT_FOUND: &str = "not found";

fn status_of(error: &ChangeError) -> &'static str {
    match error {
        ChangeError::Refused(_) | ChangeError::Usage(_) => "refused",
        ChangeError::Conflict { .. } => "conflict",
        _ => "failed",
    }
}

/// Answer of a database about the person.
pub enum FleetPlan {
    /// The plan of the erasure, and the handle by which the person was found there.
    Found {
        /// The plan.
        plan: Box<PurgePlan>,
        /// The handle.
        by: String,
    },
    /// Nobody is known by it there.
    Absent,
    /// A word for the status, and why.
    Failed(&'static str, String),
}

impl FleetPlan {
    fn plan(&self) -> Option<&PurgePlan> {
        match self {
            FleetPlan::Found { plan, .. } => Some(plan),
            _ => None,
        }
    }
}

/// Request to erase a person from a fleet, with its options.
pub struct FleetErasure<'a> {
    /// The person as given.
    pub given: &'a str,
    /// Options of the erasure.
    pub options: &'a PurgeOptions,
    /// Folder for the person's data of each database, which is written first.
    pub export: Option<&'a Path>,
    /// The fleet file, for people.
    pub file: &'a Path,
    /// A name for what is kept between runs, which does not say who it is about.
    pub name: String,
}

/// Plans in every database.
///
/// # Errors
/// [`ChangeError::NotFound`] where nobody is known in any; [`ChangeError::Usage`] for a decision about a mention that none
/// has; [`ChangeError::Refused`] for one that cannot be done.
pub async fn plan_fleet(
    fleet: &[OpenedMember],
    erasure: &FleetErasure<'_>,
    told: Progress<'_>,
) -> Result<Vec<FleetPlan>, ChangeError> {
    let (given, options) = (erasure.given, erasure.options);
    let mut plans = Vec::new();
    for member in fleet {
        plans.push(plan_one(member, given, options, told).await);
    }
    // Ids differ from database to database: what one knows of the person finds the person in the next.
    let known: BTreeSet<String> = plans
        .iter()
        .filter_map(FleetPlan::plan)
        .flat_map(|plan| &plan.subject.handles)
        .filter(|handle| TELLING.contains(&&*handle.kind))
        .map(|handle| handle.value.clone())
        .chain(options.aliases.iter().cloned())
        .collect();
    for (member, planned) in fleet.iter().zip(&mut plans) {
        for handle in &known {
            if !matches!(planned, FleetPlan::Absent) {
                break;
            }
            let other = plan_one(member, handle, options, told).await;
            if other.plan().is_some() {
                *planned = other;
            }
        }
    }
    if plans.iter().all(|plan| matches!(plan, FleetPlan::Absent)) {
        let words = format!("nobody in any of {} databases is known as `{given}`", fleet.len());
        return Err(ChangeError::NotFound(words));
    }
    check_decisions(options, &plans)?;
    Ok(plans)
}

async fn plan_one(member: &OpenedMember, given: &str, options: &PurgeOptions, told: Progress<'_>) -> FleetPlan {
    let store = match &member.store {
        Ok(store) => store,
        Err(words) => return FleetPlan::Failed("unreachable", words.clone()),
    };
    let say = |table: &str, values: u64| told(&format!("{}: {table}", member.label), values);
    match planning::plan_any(store, given, options, &mut KeptSearch::default(), &say).await {
        Ok(plan) => FleetPlan::Found { plan: Box::new(plan), by: given.to_owned() },
        Err(ChangeError::NotFound(_)) => FleetPlan::Absent,
        Err(error) => FleetPlan::Failed(status_of(&error), error.to_string()),
    }
}

/// Refuses decisions about mentions that no database has, and those that cannot be done where the mention is.
fn check_decisions(options: &PurgeOptions, plans: &[FleetPlan]) -> Result<(), ChangeError> {
    let found = || plans.iter().filter_map(FleetPlan::plan);
    let known = |name: &String| found().any(|plan| plan.met.names.contains(name));
    if let Some(name) = options.each.keys().find(|name| !known(name)) {
        return Err(ChangeError::Usage(format!(
            "no mention in any of the databases has the id `{name}`: the plan of each shows them"
        )));
    }
    found().try_for_each(decide::check_possible)
}

/// The decisions that are about mentions of one database.
fn of_one(options: &PurgeOptions, plan: &PurgePlan) -> PurgeOptions {
    let each = options.each.iter().filter(|(name, _)| plan.met.names.contains(*name));
    PurgeOptions { each: each.map(|(name, decision)| (name.clone(), *decision)).collect(), ..options.clone() }
}

/// Refuses a person who is under a legal hold in any of the databases: a hold in one holds everywhere, so that nothing is
/// half erased.
///
/// # Errors
/// [`ChangeError::Refused`].
pub async fn check_holds(fleet: &[OpenedMember], plans: &[FleetPlan]) -> Result<(), ChangeError> {
    for (member, planned) in fleet.iter().zip(plans) {
        if let (Ok(store), Some(plan)) = (&member.store, planned.plan()) {
            check_hold(store, &plan.subject).await.map_err(|error| {
                ChangeError::Refused(format!("{}: {error}; nothing was erased anywhere", member.label))
            })?;
        }
    }
    Ok(())
}

/// Erases as it was planned, one database after the other.
///
/// # Errors
/// [`ChangeError::NotFound`] when nothing is left to do; [`ChangeError::Failed`] when the receipt cannot be kept.
pub async fn run_fleet(
    fleet: &[OpenedMember],
    erasure: &FleetErasure<'_>,
    plans: &[FleetPlan],
    desk: &Desk<'_>,
) -> Result<FleetReceipt, ChangeError> {
    let known = fleet.iter().zip(plans).filter_map(|(member, planned)| match planned {
        FleetPlan::Found { by, .. } => Some((member.label.clone(), by.clone())),
        _ => None,
    });
    desk.keep_fleet(&erasure.name, &known.collect())?;
    let mut entries = Vec::new();
    for (member, planned) in fleet.iter().zip(plans) {
        entries.push(match planned {
            FleetPlan::Found { plan, by } => {
                erase(member, erasure, &of_one(erasure.options, plan), None, desk, by).await
            }
            FleetPlan::Absent => member.entry(NOT_FOUND),
            FleetPlan::Failed(status, words) => member.failed(status, words),
        });
    }
    finish(erasure, entries, desk)
}

/// Resumes in every database what has not ended verified there.
///
/// # Errors
/// As [`run_fleet`].
pub async fn resume_fleet(
    fleet: &[OpenedMember],
    erasure: &FleetErasure<'_>,
    decisions: &NewDecisions,
    desk: &Desk<'_>,
) -> Result<FleetReceipt, ChangeError> {
    let known = desk.fleet(&erasure.name);
    let mut entries = Vec::new();
    for member in fleet {
        let given = known.get(&member.label).map_or(erasure.given, String::as_str);
        entries.push(erase(member, erasure, erasure.options, Some(decisions), desk, given).await);
    }
    finish(erasure, entries, desk)
}

async fn erase(
    member: &OpenedMember,
    erasure: &FleetErasure<'_>,
    options: &PurgeOptions,
    decisions: Option<&NewDecisions>,
    desk: &Desk<'_>,
    given: &str,
) -> FleetEntry {
    let store = match &member.store {
        Ok(store) => store,
        Err(words) => return member.failed("unreachable", words),
    };
    let exported = match erasure.export {
        Some(folder) => {
            let folder = folder_of(folder, &member.label);
            match bundle(store, given, &options.aliases, Sink::Folder(&folder)).await {
                Ok((_, hash)) => Some(hash),
                Err(error) => return member.refused(&error),
            }
        }
        None => None,
    };
    let say = |what: &str, count: u64| (desk.progress)(&format!("{}: {what}", member.label), count);
    let desk = Desk { folder: desk.folder.clone(), progress: &say, ..*desk };
    match run(store, given, options, decisions, &desk, exported).await {
        Ok(mut receipt) => {
            receipt.anchor_problem = anchor::missed(store).await;
            FleetEntry { receipt: Some(receipt.clone()), ..member.entry(receipt.status.word()) }
        }
        Err(ChangeError::NotFound(_)) => member.entry(NOT_FOUND),
        // A receipt does not say who it is about.
        Err(error) => {
            let words = error.to_string().replace(given, "the person").replace(erasure.given, "the person");
            let words = words.replacen("--resume", "this command with --resume", 1);
            member.failed(status_of(&error), words)
        }
    }
}

/// The folder for a database's bundle below the one for all.
fn folder_of(folder: &Path, label: &str) -> PathBuf {
    folder.join(label.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect::<String>())
}

/// Number of hits of one kind, before or after the erasure.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetHits {
    /// Number of hits.
    pub hits: u64,
}

/// Handles that were found before, over all databases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetControl {
    /// Number of handles that were found.
    pub found: usize,
    /// Number of handles that were searched for.
    pub of: usize,
}

/// Bytes of files that still hold something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetBytes {
    /// Hits in all files.
    pub hits: u64,
    /// The files.
    pub files: Vec<FileHits>,
}

/// Findings of the verification, summed over the databases.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FleetVerification {
    /// Handles that were found before the erasure.
    pub control: FleetControl,
    /// Hits in values.
    pub logical: FleetHits,
    /// Hits in search indexes.
    pub index: FleetHits,
    /// Hits in files.
    pub bytes: FleetBytes,
}

impl FleetVerification {
    fn add(&mut self, receipt: &PurgeReceipt) {
        let found = &receipt.verification;
        self.control.found += found.control.found;
        self.control.of += found.control.of;
        self.logical.hits += found.logical.hits as u64;
        self.index.hits += found.index.hits;
        self.bytes.hits += found.bytes.hits;
        self.bytes.files.extend(found.bytes.files.iter().cloned());
    }
}

/// One receipt over all databases.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetReceipt {
    /// Identity of the receipt.
    pub receipt_id: String,
    /// `purge fleet`.
    pub operation: &'static str,
    /// The worst word of all.
    pub status: PurgeStatus,
    /// The fleet file.
    pub fleet: String,
    /// Rows by database and table.
    pub counts: Counts,
    /// Findings of the verification.
    pub verification: FleetVerification,
    /// Databases that did not get where they should have.
    pub incomplete: Vec<String>,
    /// Each database.
    pub databases: Vec<FleetEntry>,
    /// Time when the erasure was carried out.
    pub applied_at: String,
    /// Person who carried out the erasure.
    pub actor: String,
    /// The ticket that asked for it.
    pub ticket: Option<String>,
    /// Reason why the erasure cannot be undone.
    pub undo_reason: &'static str,
    /// The file that it is kept in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_in: Option<String>,
}

/// The word over all databases.
fn overall(entries: &[FleetEntry], missing: &[String]) -> PurgeStatus {
    let disclosed = entries.iter().any(|entry| entry.status == PurgeStatus::Disclosed.word());
    match (missing.is_empty(), disclosed) {
        (false, _) => PurgeStatus::Incomplete,
        (true, true) => PurgeStatus::Disclosed,
        (true, false) => PurgeStatus::Verified,
    }
}

/// Rows by database and table.
pub fn add_counts(counts: &mut Counts, label: &str, of_one: &Counts) {
    counts.extend(of_one.iter().map(|(table, count)| (format!("{label}/{table}"), count.clone())));
}

/// Keeps one receipt over all.
fn finish(erasure: &FleetErasure<'_>, entries: Vec<FleetEntry>, desk: &Desk<'_>) -> Result<FleetReceipt, ChangeError> {
    if entries.iter().all(|entry| entry.status == NOT_FOUND) {
        let (many, given) = (entries.len(), erasure.given);
        let words = format!("nothing is left to do in any of {many} databases about `{given}`");
        return Err(ChangeError::NotFound(words));
    }
    let incomplete: Vec<String> = entries.iter().filter_map(FleetEntry::problem).collect();
    let (mut counts, mut verification) = (BTreeMap::new(), FleetVerification::default());
    for entry in &entries {
        if let Some(receipt) = &entry.receipt {
            add_counts(&mut counts, &entry.label, &receipt.counts);
            verification.add(receipt);
        }
    }
    let mut receipt = FleetReceipt {
        receipt_id: new_id(),
        operation: OPERATION,
        status: overall(&entries, &incomplete),
        fleet: erasure.file.display().to_string(),
        counts,
        verification,
        incomplete,
        databases: entries,
        applied_at: now(),
        actor: desk.author.actor.clone(),
        ticket: desk.author.ticket.clone(),
        undo_reason: "an erasure is not undone",
        kept_in: None,
    };
    let kept = desk.keep_receipt(&receipt.receipt_id, &receipt)?;
    if receipt.status != PurgeStatus::Incomplete {
        desk.forget_fleet(&erasure.name);
    }
    receipt.kept_in = Some(kept.display().to_string());
    Ok(receipt)
}

/// The answer of a later look in every database that a receipt names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetRecheck {
    /// The receipt.
    pub receipt_id: String,
    /// `purge verify`.
    pub operation: &'static str,
    /// The worst word of all.
    pub status: PurgeStatus,
    /// Each database.
    pub databases: Vec<FleetEntry>,
    /// Time of the check.
    pub checked_at: String,
    /// Databases that are not as they should be.
    #[serde(skip)]
    pub incomplete: Vec<String>,
}

/// Fields of a receipt over several databases that a later check needs.
#[derive(Deserialize, Default)]
#[serde(default)]
struct KeptFleet {
    receipt_id: String,
    operation: String,
    databases: Vec<KeptEntry>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KeptEntry {
    label: String,
    receipt: Option<PurgeReceipt>,
}

/// Looks again in every database that a receipt names; `text` is the receipt's.
///
/// # Errors
/// [`ChangeError::Usage`] for what is no receipt over several databases.
pub async fn recheck_fleet(
    fleet: &[OpenedMember],
    named: &str,
    text: &str,
    desk: &Desk<'_>,
) -> Result<FleetRecheck, ChangeError> {
    let kept: KeptFleet =
        serde_json::from_str(text).map_err(|error| ChangeError::Usage(format!("{named} is no receipt: {error}")))?;
    if kept.operation != OPERATION {
        return Err(ChangeError::Usage(format!("{named} is no receipt of a purge with --fleet")));
    }
    let mut databases = Vec::new();
    for erased in kept.databases {
        let Some(receipt) = &erased.receipt else { continue };
        let Some(member) = fleet.iter().find(|member| erased.label == member.label) else {
            let error = Some("the fleet file does not name it".to_owned());
            let status = "unreachable".to_owned();
            databases.push(FleetEntry { label: erased.label, status, error, ..FleetEntry::default() });
            continue;
        };
        databases.push(match &member.store {
            Err(words) => member.failed("unreachable", words),
            Ok(store) => match recheck(store, &receipt.receipt_id, desk).await {
                Ok(answer) => FleetEntry { answer: Some(answer.clone()), ..member.entry(answer.status.word()) },
                Err(error) => member.refused(&error),
            },
        });
    }
    let incomplete: Vec<String> = databases.iter().filter_map(FleetEntry::problem).collect();
    let status = overall(&databases, &incomplete);
    let (operation, checked_at) = ("purge verify", now());
    Ok(FleetRecheck { receipt_id: kept.receipt_id, operation, status, databases, checked_at, incomplete })
}
