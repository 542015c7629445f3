//! One person erased from several databases: each by itself, with its own status, and one receipt over all.

mod receipt;
mod recheck;
mod session;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use receipt::{FleetReceipt, add_counts};
pub use recheck::{FleetRecheck, recheck_fleet};
pub use session::FleetSession;

use self::session::FleetPlace;
use super::decide::{self, NewDecisions};
use super::desk::{Desk, Progress};
use super::mention::Mentions;
use super::plan::{PurgeOptions, PurgePlan};
use super::planning::{self, LookedFor, NamedInTexts};
use super::receipt::{PurgeReceipt, PurgeRecheck, RecheckFound};
use super::run::{begun, check_held, run};
use super::search::KeptSearch;
use super::subject;
use super::verdict::PurgeStatus;
use super::{Sink, bundle, traces};
use crate::change::suppress::hmac;
use crate::change::{ChangeError, anchor};
use crate::memory::agreeing;
use crate::store::Store;
use crate::store::proof::bytes::UncheckedBytes;

/// Kinds of handles by which a person may be found in another database: one person has each of them, but for short words
/// and numbers, which are other people's ids there.
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

    fn ended(&self, receipt: PurgeReceipt) -> FleetEntry {
        self.entry("").ended(receipt)
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
    /// The word of its receipt or answer, else `not found`, `unreachable`, `refused`, `conflict`, `failed`, or `incomplete`
    /// where nobody is known so and texts or bytes name the person all the same; of a later check also `not verified`.
    pub status: String,
    /// Reason why nothing was done, or was found without a receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Reason why bytes were not searched where nobody is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// Receipt of the erasure in this database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<PurgeReceipt>,
    /// Findings of a later check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<PurgeRecheck>,
    /// Findings of a later check where no receipt is of this database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<RecheckFound>,
}

impl FleetEntry {
    /// A database that the fleet file does not name any more.
    fn unnamed(place: &FleetPlace) -> Self {
        let error = "the fleet file does not name it, and it was part of the purge";
        let (label, location) = (place.label.clone(), place.location.clone());
        FleetEntry {
            label,
            location,
            status: UNREACHABLE.to_owned(),
            error: Some(error.to_owned()),
            ..FleetEntry::default()
        }
    }

    /// The same with the receipt of what was done there.
    fn ended(self, receipt: PurgeReceipt) -> Self {
        FleetEntry { status: receipt.status.word().to_owned(), error: None, receipt: Some(receipt), ..self }
    }

    /// Whether something of the person is left there that is named.
    fn discloses(&self) -> bool {
        let is_left = self.error.is_some() || self.unchecked.is_some();
        self.status == PurgeStatus::Disclosed.word() || self.status == NOT_FOUND && is_left
    }

    /// Explains why the database did not reach the intended status; `None` when it did.
    fn problem(&self) -> Option<String> {
        let fine = ["verified", "verified with disclosures", NOT_FOUND];
        if fine.contains(&self.status.as_str()) {
            return None;
        }
        let why = match (&self.receipt, &self.answer) {
            (Some(receipt), _) => receipt.incomplete.join("; "),
            (None, Some(answer)) => answer.incomplete.join("; "),
            (None, None) => self.error.clone().unwrap_or_default(),
        };
        Some(format!("{} is {}: {why}", self.label, self.status))
    }
}

/// The status of a database in which nobody is known by the handle.
const NOT_FOUND: &str = "not found";
/// The status of a database that could not be opened.
const UNREACHABLE: &str = "unreachable";
/// Says why nothing begins in a database when a purge is resumed.
const UNDECIDED: &str = "the person is there, nothing was begun there, and the choices of the purge are not kept here: \
                         repeat them with --resume";

fn status_of(error: &ChangeError) -> &'static str {
    match error {
        ChangeError::Refused(_) | ChangeError::Usage(_) => "refused",
        ChangeError::Conflict { .. } | ChangeError::Paused(_) => "conflict",
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
    /// An erasure of the person waits there to be resumed, by that handle.
    Begun(String),
    /// Nobody is known by it there; texts may hold it all the same.
    Absent(Option<NamedInTexts>),
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

    /// Handles by which the person may be found in another database.
    fn telling(&self) -> impl Iterator<Item = String> + '_ {
        let handles = self.plan().into_iter().flat_map(|plan| &plan.subject.handles);
        let telling = handles.filter(|handle| {
            let is_one_persons = handle.common.is_none() && subject::check(&handle.value).is_ok();
            is_one_persons && TELLING.contains(&&*handle.kind)
        });
        telling.map(|handle| handle.value.clone())
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
    let mut plans = Vec::new();
    for member in fleet {
        plans.push(plan_one(member, erasure.given, erasure.options, told).await);
    }
    find_further(fleet, &mut plans, erasure.options, BTreeSet::new(), told).await;
    check_anybody(fleet, &plans, erasure.given)?;
    check_decisions(&erasure.options.each, &plans)?;
    Ok(plans)
}

fn nobody(databases: usize, given: &str) -> String {
    format!("nobody in any of {databases} databases is known as `{given}`")
}

/// Refuses a person who is nobody in each of the databases.
fn check_anybody(fleet: &[OpenedMember], plans: &[FleetPlan], given: &str) -> Result<(), ChangeError> {
    if !plans.iter().all(|plan| matches!(plan, FleetPlan::Absent(_))) {
        return Ok(());
    }
    let named = fleet.iter().zip(plans).filter_map(|(member, planned)| match planned {
        FleetPlan::Absent(Some(named)) => Some(format!("; {}: {}", member.label, named.words)),
        _ => None,
    });
    Err(ChangeError::NotFound(nobody(fleet.len(), given) + &named.collect::<String>()))
}

/// Looks for the person by what other databases know, or knew: ids differ from one to the next. Gives all that is known.
async fn find_further(
    fleet: &[OpenedMember],
    plans: &mut [FleetPlan],
    options: &PurgeOptions,
    mut known: BTreeSet<String>,
    told: Progress<'_>,
) -> BTreeSet<String> {
    known.extend(plans.iter().flat_map(FleetPlan::telling).chain(options.aliases.iter().cloned()));
    for (member, planned) in fleet.iter().zip(&mut *plans) {
        let mut failed = None;
        for handle in &known {
            let FleetPlan::Absent(named) = planned else { break };
            match plan_one(member, handle, options, told).await {
                FleetPlan::Absent(also) => *named = named.take().or(also),
                failure @ FleetPlan::Failed(..) => failed = failed.or(Some(failure)),
                found => *planned = found,
            }
        }
        if let (FleetPlan::Absent(_), Some(failure)) = (&*planned, failed) {
            *planned = failure;
        }
    }
    known.extend(plans.iter().flat_map(FleetPlan::telling));
    known
}

async fn plan_one(member: &OpenedMember, given: &str, options: &PurgeOptions, told: Progress<'_>) -> FleetPlan {
    let store = match &member.store {
        Ok(store) => store,
        Err(words) => return FleetPlan::Failed(UNREACHABLE, words.clone()),
    };
    let say = |table: &str, values: u64| told(&format!("{}: {table}", member.label), values);
    match planning::look_for(store, given, options, &mut KeptSearch::default(), &say).await {
        Ok(LookedFor::Found(plan)) => FleetPlan::Found { plan, by: given.to_owned() },
        Ok(LookedFor::Unknown { named, .. }) => match planning::erased_as(store, given).await {
            Ok(Some(session)) if session.is_open() => FleetPlan::Begun(given.to_owned()),
            Ok(_) => FleetPlan::Absent(named),
            Err(error) => FleetPlan::Failed(status_of(&error), error.to_string()),
        },
        Err(error) => FleetPlan::Failed(status_of(&error), error.to_string()),
    }
}

/// Refuses decisions about mentions that no database has, and those that cannot be done where the mention is.
fn check_decisions(each: &BTreeMap<String, Mentions>, plans: &[FleetPlan]) -> Result<(), ChangeError> {
    let found = || plans.iter().filter_map(FleetPlan::plan);
    // What was begun has its mentions in a plan of its own.
    let is_known = |name: &String| {
        plans.iter().any(|planned| matches!(planned, FleetPlan::Begun(_)))
            || found().any(|plan| plan.met.names.contains(name))
    };
    if let Some(name) = each.keys().find(|name| !is_known(name)) {
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

/// The decisions that are not about mentions of databases where nothing was begun.
fn of_begun(decisions: &NewDecisions, plans: &[FleetPlan]) -> NewDecisions {
    let is_elsewhere =
        |name: &String| plans.iter().filter_map(FleetPlan::plan).any(|plan| plan.met.names.contains(name));
    let mut decisions = decisions.clone();
    decisions.each.retain(|name, _| !is_elsewhere(name));
    decisions
}

/// Refuses a person who is under a legal hold in any of the databases: a hold in one holds everywhere, so that nothing is
/// half erased.
async fn check_holds(fleet: &[OpenedMember], plans: &[FleetPlan], known: &BTreeSet<String>) -> Result<(), ChangeError> {
    for (member, planned) in fleet.iter().zip(plans) {
        let (Ok(store), FleetPlan::Found { .. } | FleetPlan::Begun(_)) = (&member.store, planned) else { continue };
        let own = planned.plan().into_iter().flat_map(|plan| &plan.subject.handles).map(|handle| handle.value.as_str());
        check_held(store, own.chain(known.iter().map(String::as_str)))
            .await
            .map_err(|error| ChangeError::Refused(format!("{}: {error}; nothing was erased anywhere", member.label)))?;
    }
    Ok(())
}

/// Erases in one database after the other. To resume is to finish in each of them: what was begun there as it was asked
/// for, and elsewhere by the same choices.
///
/// # Errors
/// As [`plan_fleet`]; [`ChangeError::Refused`] for a person under a legal hold; [`ChangeError::Usage`] for resuming what
/// was not begun; [`ChangeError::Failed`] when the receipt cannot be kept.
pub async fn erase_fleet(
    fleet: &[OpenedMember],
    erasure: &FleetErasure<'_>,
    resume: Option<&NewDecisions>,
    desk: &Desk<'_>,
) -> Result<FleetReceipt, ChangeError> {
    let earlier = desk.fleet(&erasure.name);
    let mut places = Vec::new();
    for member in fleet {
        places.push(FleetPlace::of(member).await);
    }
    let mut session = FleetSession::new(erasure, resume, earlier.as_ref(), places);
    let mut plans = Vec::new();
    for member in fleet {
        plans.push(match resume {
            Some(_) => begun_or_planned(member, erasure.given, &session, desk).await,
            None => plan_one(member, erasure.given, &session.options, desk.progress).await,
        });
    }
    let handles = std::mem::take(&mut session.handles);
    session.handles = find_further(fleet, &mut plans, &session.options, handles, desk.progress).await;
    if earlier.is_none() {
        check_anybody(fleet, &plans, erasure.given)?;
    }
    check_decisions(&erasure.options.each, &plans)?;
    // Choices that nobody made are not made up.
    let has_choices =
        resume.is_none_or(|decisions| earlier.is_some() || !decisions.is_empty() || erasure.options.are_chosen());
    if !has_choices && !plans.iter().any(|plan| matches!(plan, FleetPlan::Begun(_))) {
        return Err(ChangeError::Usage(format!(
            "no purge of `{}` from this fleet waits to be resumed: begin one by --apply, with your choices",
            erasure.given
        )));
    }
    check_holds(fleet, &plans, &session.handles).await?;
    if has_choices {
        desk.keep_fleet(&erasure.name, &session)?;
    }
    let decisions = resume.map(|decisions| of_begun(decisions, &plans));
    let known = std::iter::once(erasure.given).chain(session.handles.iter().map(String::as_str));
    let hmacs: HashSet<String> = known.map(|handle| hmac(&desk.key, handle)).collect();
    let receipts = earlier.map(|earlier| desk.verified_since(&hmacs, &earlier.started_at)).unwrap_or_default();
    let run = FleetRun { given: erasure.given, session, has_choices, decisions, receipts, desk };
    let mut databases = Vec::new();
    for ((member, planned), place) in fleet.iter().zip(&plans).zip(&run.session.databases) {
        databases.push(run.erase(member, place, planned).await);
    }
    for place in run.session.databases.iter().skip(fleet.len()) {
        let entry = FleetEntry::unnamed(place);
        databases.push(match run.ended(place, None).await {
            Some(receipt) => entry.ended(receipt),
            None => entry,
        });
    }
    finish(erasure, databases, desk)
}

/// An erasure that waits in a database to be resumed, or else a plan.
async fn begun_or_planned(member: &OpenedMember, given: &str, session: &FleetSession, desk: &Desk<'_>) -> FleetPlan {
    let known = std::iter::once(given).chain(session.handles.iter().map(String::as_str));
    let waits = match &member.store {
        Ok(store) => begun(store, known, desk).await,
        Err(_) => Ok(None),
    };
    match waits {
        Ok(Some(handle)) => FleetPlan::Begun(handle),
        Ok(None) => plan_one(member, given, &session.options, desk.progress).await,
        Err(error) => FleetPlan::Failed(status_of(&error), error.to_string()),
    }
}

/// Keeps the receipt, and forgets the session if all ended verified.
fn finish(
    erasure: &FleetErasure<'_>,
    databases: Vec<FleetEntry>,
    desk: &Desk<'_>,
) -> Result<FleetReceipt, ChangeError> {
    let is_nobody = |entry: &FleetEntry| entry.status == NOT_FOUND && entry.error.is_none();
    if databases.iter().all(is_nobody) {
        desk.forget_fleet(&erasure.name);
        return Err(ChangeError::NotFound(nobody(databases.len(), erasure.given)));
    }
    let mut receipt = FleetReceipt::new(erasure, databases, desk.author);
    let kept = desk.keep_receipt(&receipt.receipt_id, &receipt)?;
    if receipt.status != PurgeStatus::Incomplete {
        desk.forget_fleet(&erasure.name);
    }
    receipt.kept_in = Some(kept.display().to_string());
    Ok(receipt)
}

/// An erasure that goes from one database to the next.
struct FleetRun<'a> {
    given: &'a str,
    session: FleetSession,
    /// Whether anything may begin.
    has_choices: bool,
    /// Decisions that replace earlier ones, when it is resumed.
    decisions: Option<NewDecisions>,
    /// Receipts of what ended verified in earlier runs.
    receipts: Vec<PurgeReceipt>,
    desk: &'a Desk<'a>,
}

impl FleetRun<'_> {
    async fn erase(&self, member: &OpenedMember, place: &FleetPlace, planned: &FleetPlan) -> FleetEntry {
        let (status, words) = match (planned, &member.store) {
            (_, Err(words)) => match self.ended(place, None).await {
                Some(receipt) => return member.ended(receipt),
                None => (UNREACHABLE, words.clone()),
            },
            (FleetPlan::Failed(status, words), _) => (*status, words.clone()),
            (FleetPlan::Begun(by), Ok(store)) => {
                return self.run(member, store, by, &self.session.options, self.decisions.as_ref()).await;
            }
            (FleetPlan::Found { plan, by }, Ok(store)) => match self.ended(place, Some(store)).await {
                Some(receipt) if plan.is_empty() && plan.redacts.is_empty() => {
                    return member.ended(receipt);
                }
                _ if self.has_choices => {
                    return self.run(member, store, by, &of_one(&self.session.options, plan), None).await;
                }
                _ => ("refused", UNDECIDED.to_owned()),
            },
            (FleetPlan::Absent(named), Ok(store)) => match self.ended(place, Some(store)).await {
                Some(receipt) => return member.ended(receipt),
                None => return self.absent(member, store, named.as_ref()).await,
            },
        };
        member.failed(status, self.nameless(&words))
    }

    /// A database in which nobody is known so: what texts and bytes hold all the same.
    async fn absent(&self, member: &OpenedMember, store: &Store, named: Option<&NamedInTexts>) -> FleetEntry {
        let handles: BTreeSet<String> = self.session.handles.iter().cloned().chain([self.given.to_owned()]).collect();
        let handles: Vec<String> = handles.into_iter().collect();
        let mut entry = member.entry(NOT_FOUND);
        let mut left = Vec::new();
        match traces::unaccounted(store, &handles).await {
            Ok(Ok(0)) => {}
            Ok(Ok(hits)) => left.push(agreeing(
                hits,
                "{#} {place|places} among the bytes of its files {is|are} of rows that were deleted before: VACUUM it, and resume",
            )),
            Ok(Err(reason @ UncheckedBytes::Server)) => entry.unchecked = Some(reason.to_string()),
            Ok(Err(reason)) => left.push(format!("the bytes of its files were not checked: {reason}")),
            Err(error) => return member.failed(status_of(&error), self.nameless(&error.to_string())),
        }
        if !left.is_empty() || named.is_some_and(|named| named.asked) {
            PurgeStatus::Incomplete.word().clone_into(&mut entry.status);
        }
        left.extend(named.map(|named| named.words.clone()));
        let error = format!("nobody is known so, but {}", left.join("; "));
        entry.error = (!left.is_empty()).then(|| self.nameless(&error));
        entry
    }

    /// The receipt of what this purge did earlier in a database, if that ended verified and the database knows it. A copy
    /// of a database has its identity, but not what was done since.
    async fn ended(&self, place: &FleetPlace, store: Option<&Store>) -> Option<PurgeReceipt> {
        let id = place.database_id.as_deref()?;
        let mut receipts = self.receipts.iter().rev().filter(|receipt| receipt.database_id == id);
        let Some(store) = store else {
            let alike = self.session.databases.iter().filter(|other| other.database_id == place.database_id);
            return receipts.next().filter(|_| alike.count() == 1).cloned();
        };
        for receipt in receipts {
            let entered = store.records().purge_session(&receipt.session).await.ok().flatten();
            if entered.is_some_and(|entered| Some(entered.receipt_hash) == receipt.receipt_sha256) {
                return Some(receipt.clone());
            }
        }
        None
    }

    async fn run(
        &self,
        member: &OpenedMember,
        store: &Store,
        given: &str,
        options: &PurgeOptions,
        decisions: Option<&NewDecisions>,
    ) -> FleetEntry {
        let exported = match &self.session.export {
            Some(folder) => {
                let folder = folder_of(folder, &member.label);
                match bundle(store, given, &options.aliases, Sink::Folder(&folder)).await {
                    Ok((_, hash)) => Some(hash),
                    // Of what was begun, nothing may be left to be exported.
                    Err(ChangeError::NotFound(_)) if decisions.is_some() => None,
                    Err(error) => return member.failed(status_of(&error), self.nameless(&error.to_string())),
                }
            }
            None => None,
        };
        let say = |what: &str, count: u64| (self.desk.progress)(&format!("{}: {what}", member.label), count);
        let desk = Desk { folder: self.desk.folder.clone(), progress: &say, ..*self.desk };
        match run(store, given, options, decisions, &desk, exported).await {
            Ok(mut receipt) => {
                receipt.anchor_problem = anchor::missed(store).await;
                member.ended(receipt)
            }
            Err(ChangeError::NotFound(_)) => member.entry(NOT_FOUND),
            Err(error) => {
                let words = error.to_string().replacen("--resume", "this command with --resume", 1);
                member.failed(status_of(&error), self.nameless(&words))
            }
        }
    }

    /// Words without the person: a receipt does not say who it is about.
    fn nameless(&self, words: &str) -> String {
        let known = std::iter::once(self.given).chain(self.session.handles.iter().map(String::as_str));
        known.fold(words.to_owned(), |words, handle| words.replace(handle, "the person"))
    }
}

/// The folder for a database's bundle below the one for all.
fn folder_of(folder: &Path, label: &str) -> PathBuf {
    folder.join(label.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect::<String>())
}
