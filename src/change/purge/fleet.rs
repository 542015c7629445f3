//! Erases one person from several databases: each on its own, with its own status, and one receipt for all.

mod receipt;
mod recheck;
mod session;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub use receipt::{FleetReceipt, add_counts};
pub use recheck::{FleetRecheck, recheck_fleet};
pub use session::FleetSession;

use self::session::FleetPlace;
use super::decide::{self, NewDecisions};
use super::desk::{Desk, Progress};
use super::graph::CarriedIds;
use super::mention::{Mentions, Met};
use super::plan::{PurgeOptions, PurgePlan};
use super::planning::{self, LookedFor, NamedInTexts};
use super::receipt::{PurgeReceipt, PurgeRecheck, RecheckFound};
use super::run::{begun, check_held, ready_for, resume_first, run, unfinished};
use super::search::KeptSearch;
use super::subject::{self, PersonHandle};
use super::taken::{GoingRows, room};
use super::verdict::PurgeStatus;
use super::{Sink, bundle, traces};
use crate::change::plan::Counts;
use crate::change::suppress::hmac;
use crate::change::{ChangeError, anchor, not_yet_for, obstacle};
use crate::layout::builtin;
use crate::memory::agreeing;
use crate::memory::packed::pages::PageStore;
use crate::store::fetched::as_text;
use crate::store::proof::bytes::UncheckedBytes;
use crate::store::row_list::RowList;
use crate::store::{OpenError, OpenOptions, Store, StoreError, Target};

/// Kinds of handles that may identify the person in another database. Short words and numbers do not count: there they
/// may be other people's ids.
const TELLING: [&str; 3] = ["id", "e-mail", "phone"];

/// Databases that may hold one person. They are opened one at a time.
#[derive(Debug)]
pub struct Fleet {
    /// The databases.
    pub members: Vec<FleetMember>,
    /// Options for opening each database, apart from those of its member.
    pub options: OpenOptions,
}

impl Fleet {
    /// Opens a database, or returns the reason why it cannot be opened.
    async fn open(&self, member: &FleetMember) -> Result<Store, String> {
        let (layouts, companion) = (member.layout.iter().cloned().collect(), member.companion.clone());
        let options = OpenOptions { layouts, companion, ..self.options.clone() };
        Store::open(&member.target, &options).await.map_err(|error| match error {
            OpenError::NoFile(path) => format!("{path}: there is no such file; check its url in the fleet file"),
            other => other.to_string(),
        })
    }
}

/// A database of a fleet.
#[derive(Debug)]
pub struct FleetMember {
    /// Name of the database, for users.
    pub label: String,
    /// Location of the database, without a password.
    pub location: String,
    /// The database.
    pub target: Target,
    /// Layout name or file, instead of recognition.
    pub layout: Option<String>,
    /// A companion database to attach next to a palace.
    pub companion: Option<PathBuf>,
}

impl FleetMember {
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
    /// Status of its receipt or answer; otherwise `not found`, `unreachable`, `refused`, `conflict` or `failed`;
    /// `incomplete` if the person is unknown but texts or bytes contain the handle; in a later check also `not
    /// verified`.
    pub status: String,
    /// Reason why nothing was done, or why a finding has no receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Reason why bytes were not searched in a database that does not know the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchecked: Option<String>,
    /// Receipt of the erasure in this database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<PurgeReceipt>,
    /// Findings of a later check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<PurgeRecheck>,
    /// Findings of a later check, if the database has no receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<RecheckFound>,
}

impl FleetEntry {
    /// A database that is no longer in the fleet file.
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

    /// The same entry with the receipt of an earlier run.
    fn ended(self, receipt: PurgeReceipt) -> Self {
        FleetEntry { status: receipt.status.word().to_owned(), error: None, receipt: Some(receipt), ..self }
    }

    /// Whether the outcome in this database must be disclosed.
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

/// The status of a database that does not know the person.
const NOT_FOUND: &str = "not found";
/// The status of a database that could not be opened.
const UNREACHABLE: &str = "unreachable";
/// The status of a database in whose current state nothing can be erased.
const REFUSED: &str = "refused";
/// Reason why a resumed purge begins nothing in a database.
const UNDECIDED: &str = "the person is there, no purge was started there, and the choices of the purge are not stored \
                         here: repeat them with --resume";

fn status_of(error: &ChangeError) -> &'static str {
    match error {
        ChangeError::Refused(_) | ChangeError::Usage(_) | ChangeError::Store(StoreError::Denied { .. }) => REFUSED,
        ChangeError::Conflict { .. } | ChangeError::Paused(_) => "conflict",
        _ => "failed",
    }
}

/// The part of an erasure's plan that is stored while other databases are examined.
pub struct FoundPlan {
    /// Rows by table and verb.
    pub counts: Counts,
    /// JSON of the plan for printing; `None` if it is not printed.
    pub printed: Option<String>,
    /// Ids and handles of the person there.
    ids: Vec<String>,
    handles: Vec<PersonHandle>,
    /// Addresses and telephone numbers that only other databases know, and with which the plan was made.
    also: Vec<String>,
    /// Decisions about mentions that exist there.
    met: Met,
    /// Nothing is deleted and nothing changes.
    is_empty: bool,
    /// Reason why it cannot be applied; `None` if it can.
    pub obstacle: Option<String>,
    /// Layouts of the database.
    layouts: Vec<String>,
    /// Keys of the rows to delete, of tables whose key is one column.
    going: RowList,
}

impl FoundPlan {
    fn of(plan: PurgePlan, store: &Store, print: PrintPlan<'_>, pages: &PageStore) -> Result<Self, ChangeError> {
        let mut going = RowList::new(pages);
        let tables = plan.deletes.iter().filter(|rows| rows.by.len() == 1);
        tables.flat_map(GoingRows::all_keys).for_each(|key| going.push(&key));
        Ok(FoundPlan {
            going,
            layouts: store.recognised().layouts.iter().map(|layout| layout.name.clone()).collect(),
            counts: plan.counts.clone(),
            ids: plan.subject.ids.clone(),
            handles: plan.subject.handles.clone(),
            also: Vec::new(),
            met: plan.met.clone(),
            is_empty: plan.is_empty() && plan.redacts.is_empty(),
            obstacle: plan.is_unowned.then(|| planning::UNOWNED.to_owned()),
            printed: print(plan).map_err(|error| ChangeError::Failed(error.to_string()))?,
        })
    }

    /// Ids of the rows to delete.
    fn ids_to_delete(&self) -> Result<Vec<String>, ChangeError> {
        let ids = self.going.iter().filter_map(|key| as_text(key.first()?)).collect();
        self.going.check()?;
        Ok(ids)
    }

    /// Addresses and telephone numbers among the handles that this database does not list for the person.
    fn unknown(&self, handles: &BTreeSet<String>, aliases: &[String]) -> Vec<String> {
        let own: HashSet<String> =
            self.handles.iter().map(|h| &h.value).chain(aliases).map(|value| value.to_lowercase()).collect();
        handles
            .iter()
            .filter(|handle| reaches(handle))
            .filter(|handle| !own.contains(&handle.to_lowercase()))
            .cloned()
            .collect()
    }
}

/// Whether a handle is recognizably an address or a telephone number: a bare number may be an id.
fn reaches(handle: &str) -> bool {
    handle.contains('@') || handle.starts_with('+')
}

fn with_aliases(options: &PurgeOptions, further: &[String]) -> PurgeOptions {
    let aliases = options.aliases.iter().chain(further).cloned().collect();
    PurgeOptions { aliases, ..options.clone() }
}

/// Layouts of other databases whose rows a database names; those that any shipped layout names if it cannot be opened,
/// because a later run may reach it when these rows are gone.
fn far_layouts(store: Option<&Store>) -> BTreeSet<String> {
    let Some(store) = store else {
        let layouts = builtin::all().unwrap_or_default();
        return layouts.into_iter().flat_map(|layout| layout.rules).filter_map(|rule| rule.of_layout).collect();
    };
    store.recognised().erasure.far.iter().map(|far| far.layout.clone()).collect()
}

/// Converts a plan to the JSON to print, if any.
pub type PrintPlan<'a> = &'a (dyn Fn(PurgePlan) -> io::Result<Option<String>> + Sync);

/// Answer of a database about the person.
pub enum FleetPlan {
    /// Plan of the erasure without its rows, and the handle by which the person was found there.
    Found {
        /// The plan.
        plan: Box<FoundPlan>,
        /// Handle by which the person was found.
        by: String,
    },
    /// An unfinished erasure of the person, by that handle.
    Begun(String),
    /// The database does not know the person, but texts may contain the handle.
    Absent(Option<NamedInTexts>),
    /// Status and reason.
    Failed(&'static str, String),
}

impl FleetPlan {
    fn plan(&self) -> Option<&FoundPlan> {
        match self {
            FleetPlan::Found { plan, .. } => Some(plan),
            _ => None,
        }
    }

    /// Handles that may identify the person in another database.
    fn telling(&self) -> impl Iterator<Item = String> + '_ {
        let handles = self.plan().into_iter().flat_map(|plan| &plan.handles);
        let telling = handles.filter(|handle| {
            let is_one_persons = handle.common.is_none() && subject::tells(&handle.value);
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
    /// Folder for the export of the person's data, by database, written before the erasure.
    pub export: Option<&'a Path>,
    /// The fleet file, as shown to people.
    pub file: &'a Path,
    /// Name of the state kept between runs. It does not reveal the person.
    pub name: String,
}

/// Plans in every database; `print` converts each plan for output.
///
/// # Errors
/// [`ChangeError::NotFound`] if no database knows the person; [`ChangeError::Usage`] for a decision about a mention
/// that no database has; [`ChangeError::Refused`] for a decision that cannot be carried out.
pub async fn plan_fleet(
    fleet: &Fleet,
    erasure: &FleetErasure<'_>,
    print: PrintPlan<'_>,
    told: Progress<'_>,
) -> Result<Vec<FleetPlan>, ChangeError> {
    let planner = FleetPlanner { options: erasure.options, print, told, pages: &room() };
    let (mut plans, mut far) = (Vec::new(), Vec::new());
    for member in &fleet.members {
        let store = fleet.open(member).await;
        far.push(far_layouts(store.as_ref().ok()));
        plans.push(match store {
            Ok(store) => planner.plan(member, &store, erasure.given).await,
            Err(words) => FleetPlan::Failed(UNREACHABLE, words),
        });
    }
    planner.find_further(fleet, &mut plans, BTreeSet::new()).await;
    planner.carry(fleet, &mut plans, &far, erasure.given).await?;
    check_anybody(fleet, &plans, erasure.given)?;
    check_decisions(&erasure.options.each, &plans)?;
    Ok(plans)
}

fn nobody(databases: usize, given: &str) -> String {
    format!("no person in any of {databases} databases is known as `{given}`")
}

/// Refuses a person whom none of the databases knows.
fn check_anybody(fleet: &Fleet, plans: &[FleetPlan], given: &str) -> Result<(), ChangeError> {
    if !plans.iter().all(|plan| matches!(plan, FleetPlan::Absent(_))) {
        return Ok(());
    }
    let named = fleet.members.iter().zip(plans).filter_map(|(member, planned)| match planned {
        FleetPlan::Absent(Some(named)) => Some(format!("; {}: {}", member.label, named.words)),
        _ => None,
    });
    Err(ChangeError::NotFound(nobody(fleet.members.len(), given) + &named.collect::<String>()))
}

/// Plans the erasure in each database in turn.
struct FleetPlanner<'a> {
    options: &'a PurgeOptions,
    print: PrintPlan<'a>,
    told: Progress<'a>,
    /// Storage for the keys of the rows to delete in all databases.
    pages: &'a PageStore,
}

impl FleetPlanner<'_> {
    /// Searches each database by the handles that the others know or knew, because ids differ between databases.
    /// Returns all known handles.
    async fn find_further(
        &self,
        fleet: &Fleet,
        plans: &mut [FleetPlan],
        mut known: BTreeSet<String>,
    ) -> BTreeSet<String> {
        known.extend(plans.iter().flat_map(FleetPlan::telling).chain(self.options.aliases.iter().cloned()));
        let absent = |planned: &FleetPlan| matches!(planned, FleetPlan::Absent(_)) && !known.is_empty();
        for (member, planned) in fleet.members.iter().zip(&mut *plans).filter(|(_, planned)| absent(planned)) {
            let store = match fleet.open(member).await {
                Ok(store) => store,
                Err(words) => {
                    *planned = FleetPlan::Failed(UNREACHABLE, words);
                    continue;
                }
            };
            let mut failed = None;
            for handle in &known {
                let FleetPlan::Absent(named) = planned else { break };
                match self.plan(member, &store, handle).await {
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
        for (member, planned) in fleet.members.iter().zip(&mut *plans) {
            let FleetPlan::Found { plan, by, .. } = &*planned else { continue };
            let also = plan.unknown(&known, &self.options.aliases);
            if also.is_empty() {
                continue;
            }
            let options = with_aliases(self.options, &also);
            let again = FleetPlanner { options: &options, ..*self };
            let Ok(store) = fleet.open(member).await else { continue };
            // A handle that leads to someone else there is not one of the person's.
            if let FleetPlan::Found { plan: mut further, by } = again.plan(member, &store, by).await
                && further.ids == plan.ids
            {
                further.also = also;
                *planned = FleetPlan::Found { plan: further, by };
            }
        }
        known
    }

    /// Plans again where rows name rows that are deleted in databases of another layout, which alone say whose they
    /// are; `far` are the layouts that each database names. Returns the ids of these, by layout, with those of earlier
    /// runs.
    async fn carry(
        &self,
        fleet: &Fleet,
        plans: &mut [FleetPlan],
        far: &[BTreeSet<String>],
        given: &str,
    ) -> Result<CarriedIds, ChangeError> {
        let mut carried = self.options.carried.clone();
        for plan in plans.iter().filter_map(FleetPlan::plan) {
            for layout in plan.layouts.iter().filter(|layout| far.iter().any(|named| named.contains(*layout))) {
                let ids = plan.ids_to_delete()?;
                if !ids.is_empty() {
                    carried.entry(layout.clone()).or_default().extend(ids);
                }
            }
        }
        for ((member, planned), far) in fleet.members.iter().zip(plans).zip(far) {
            let (by, also) = match &*planned {
                _ if !far.iter().any(|layout| carried.contains_key(layout)) => continue,
                FleetPlan::Found { plan, by } => (by.clone(), plan.also.clone()),
                FleetPlan::Absent(_) => (given.to_owned(), Vec::new()),
                FleetPlan::Begun(_) | FleetPlan::Failed(..) => continue,
            };
            let Ok(store) = fleet.open(member).await else { continue };
            let options = PurgeOptions { carried: carried.clone(), ..with_aliases(self.options, &also) };
            let again = FleetPlanner { options: &options, ..*self };
            if let FleetPlan::Found { plan: mut further, by } = again.plan(member, &store, &by).await {
                further.also = also;
                *planned = FleetPlan::Found { plan: further, by };
            }
        }
        Ok(carried)
    }

    async fn plan(&self, member: &FleetMember, store: &Store, given: &str) -> FleetPlan {
        let say = |table: &str, values: u64| (self.told)(&format!("{}: {table}", member.label), values);
        let looked = planning::look_for(store, given, self.options, &mut KeptSearch::default(), &say).await;
        self.answer(store, given, looked)
            .await
            .unwrap_or_else(|error| FleetPlan::Failed(status_of(&error), error.to_string()))
    }

    async fn answer(
        &self,
        store: &Store,
        given: &str,
        looked: Result<LookedFor, ChangeError>,
    ) -> Result<FleetPlan, ChangeError> {
        Ok(match looked? {
            LookedFor::Found(mut plan) => {
                let obstacle = obstacle(ready_for(store, &plan).await)?;
                plan.notes.extend(obstacle.as_deref().map(not_yet_for));
                let plan = FoundPlan::of(*plan, store, self.print, self.pages)?;
                let plan = FoundPlan { obstacle: obstacle.or(plan.obstacle), ..plan };
                FleetPlan::Found { plan: Box::new(plan), by: given.to_owned() }
            }
            LookedFor::Unknown { named, .. } => match planning::erased_as(store, given).await? {
                Some(session) if session.is_open() => FleetPlan::Begun(given.to_owned()),
                _ => FleetPlan::Absent(named),
            },
        })
    }

    /// Returns the unfinished erasure of a database, or else a plan.
    async fn begun_or_plan(
        &self,
        member: &FleetMember,
        store: &Store,
        given: &str,
        (known, desk): (&BTreeSet<String>, &Desk<'_>),
    ) -> FleetPlan {
        let known = std::iter::once(given).chain(known.iter().map(String::as_str));
        match begun(store, known, desk).await {
            Ok(Some(handle)) => FleetPlan::Begun(handle),
            Ok(None) => self.plan(member, store, given).await,
            Err(error) => FleetPlan::Failed(status_of(&error), error.to_string()),
        }
    }
}

/// Refuses decisions about mentions that no database has, and decisions that cannot be carried out in the database of
/// the mention.
fn check_decisions(each: &BTreeMap<String, Mentions>, plans: &[FleetPlan]) -> Result<(), ChangeError> {
    let found = || plans.iter().filter_map(FleetPlan::plan);
    // The mentions of an unfinished erasure are in a plan of its own.
    let is_known = |name: &String| {
        plans.iter().any(|planned| matches!(planned, FleetPlan::Begun(_)))
            || found().any(|plan| plan.met.names.contains(name))
    };
    if let Some(name) = each.keys().find(|name| !is_known(name)) {
        return Err(ChangeError::Usage(format!(
            "no mention in any of the databases has the id `{name}`: each plan lists its mentions"
        )));
    }
    found().try_for_each(|plan| decide::check_possible(&plan.met))
}

/// Options for one database: the decisions about its mentions, and the further handles to search for.
fn of_one(options: &PurgeOptions, plan: &FoundPlan) -> PurgeOptions {
    let each = options.each.iter().filter(|(name, _)| plan.met.names.contains(*name));
    let each = each.map(|(name, decision)| (name.clone(), *decision)).collect();
    PurgeOptions { each, ..with_aliases(options, &plan.also) }
}

/// The decisions without those about mentions of databases in which no erasure has begun.
fn of_begun(decisions: &NewDecisions, plans: &[FleetPlan]) -> NewDecisions {
    let is_elsewhere =
        |name: &String| plans.iter().filter_map(FleetPlan::plan).any(|plan| plan.met.names.contains(name));
    let mut decisions = decisions.clone();
    decisions.each.retain(|name, _| !is_elsewhere(name));
    decisions
}

/// Refuses a person under a legal hold in any of the databases: otherwise the person would be erased in part. If the
/// erasure `begins`, also refuses while one of the databases cannot be erased from, as far as that can be checked
/// without writing.
async fn check_all(
    fleet: &Fleet,
    plans: &[FleetPlan],
    known: &BTreeSet<String>,
    begins: Option<&Desk<'_>>,
) -> Result<(), ChangeError> {
    let mut obstacles = Vec::new();
    for (member, planned) in fleet.members.iter().zip(plans) {
        if let FleetPlan::Failed(status, words) = planned {
            obstacles.extend((*status == REFUSED).then(|| format!("{}: {words}", member.label)));
            continue;
        }
        // A database that can no longer be opened is not erased from either.
        let Ok(store) = fleet.open(member).await else { continue };
        let own = planned.plan().into_iter().flat_map(|plan| &plan.handles).map(|handle| handle.value.as_str());
        // If a database does not know the person, an id from another one may be someone else's there.
        let is_absent = matches!(planned, FleetPlan::Absent(_));
        let known = known.iter().map(String::as_str).filter(|handle| !is_absent || reaches(handle));
        check_held(&store, own.chain(known))
            .await
            .map_err(|error| ChangeError::Refused(format!("{}: {error}; {UNTOUCHED}", member.label)))?;
        if let Some(desk) = begins {
            let why = obstacle_of(&store, planned, desk).await?;
            obstacles.extend(why.map(|why| format!("{}: {why}", member.label)));
        }
    }
    if begins.is_none() || obstacles.is_empty() {
        return Ok(());
    }
    Err(ChangeError::Refused(format!("{}; {UNTOUCHED}", obstacles.join("; "))))
}

/// End of the message of a refusal for all databases.
const UNTOUCHED: &str = "nothing was erased anywhere";

/// Returns the reason why no erasure can begin in a database; `None` if one can.
async fn obstacle_of(store: &Store, planned: &FleetPlan, desk: &Desk<'_>) -> Result<Option<String>, ChangeError> {
    let by = match planned {
        FleetPlan::Found { plan, .. } if plan.obstacle.is_some() => return Ok(plan.obstacle.clone()),
        FleetPlan::Found { by, .. } | FleetPlan::Begun(by) => by,
        FleetPlan::Absent(_) | FleetPlan::Failed(..) => return Ok(None),
    };
    Ok(unfinished(store, by, desk).await?.map(|_| resume_first(by)))
}

/// Erases in each database in turn. Resuming finishes in each of them: unfinished erasures with their own options, the
/// others with the same choices.
///
/// # Errors
/// As [`plan_fleet`]; [`ChangeError::Refused`] for a person under a legal hold, or, unless resuming, if one of the
/// databases cannot be erased from; [`ChangeError::Usage`] if there is nothing to resume; [`ChangeError::Failed`] if
/// the receipt cannot be stored.
pub async fn erase_fleet(
    fleet: &Fleet,
    erasure: &FleetErasure<'_>,
    resume: Option<&NewDecisions>,
    desk: &Desk<'_>,
) -> Result<FleetReceipt, ChangeError> {
    let earlier = desk.fleet(&erasure.name);
    let mut session = FleetSession::new(erasure, resume, earlier.as_ref());
    let options = session.options.clone();
    let planner = FleetPlanner { options: &options, print: &|_| Ok(None), told: desk.progress, pages: &room() };
    let (mut places, mut plans, mut far) = (Vec::new(), Vec::new(), Vec::new());
    for member in &fleet.members {
        let store = fleet.open(member).await;
        far.push(far_layouts(store.as_ref().ok()));
        places.push(FleetPlace::of(member, store.as_ref().ok()).await);
        plans.push(match (store, resume) {
            (Err(words), _) => FleetPlan::Failed(UNREACHABLE, words),
            (Ok(store), Some(_)) => {
                planner.begun_or_plan(member, &store, erasure.given, (&session.handles, desk)).await
            }
            (Ok(store), None) => planner.plan(member, &store, erasure.given).await,
        });
    }
    session.databases = session::known(places, &session.databases, resume.is_some());
    let handles = std::mem::take(&mut session.handles);
    session.handles = planner.find_further(fleet, &mut plans, handles).await;
    session.options.carried = planner.carry(fleet, &mut plans, &far, erasure.given).await?;
    if earlier.is_none() {
        check_anybody(fleet, &plans, erasure.given)?;
    }
    check_decisions(&erasure.options.each, &plans)?;
    // Without choices from the operator, nothing new begins.
    let has_choices =
        resume.is_none_or(|decisions| earlier.is_some() || !decisions.is_empty() || erasure.options.are_chosen());
    if !has_choices && !plans.iter().any(|plan| matches!(plan, FleetPlan::Begun(_))) {
        return Err(ChangeError::Usage(format!(
            "there is no purge of `{}` from this fleet to resume: start one with --apply and your choices",
            erasure.given
        )));
    }
    check_all(fleet, &plans, &session.handles, resume.is_none().then_some(desk)).await?;
    if has_choices {
        desk.keep_fleet(&erasure.name, &session)?;
    }
    let decisions = resume.map(|decisions| of_begun(decisions, &plans));
    let known = std::iter::once(erasure.given).chain(session.handles.iter().map(String::as_str));
    let hmacs: HashSet<String> = known.map(|handle| hmac(&desk.key, handle)).collect();
    let receipts = earlier.map(|earlier| desk.verified_since(&hmacs, &earlier.started_at)).unwrap_or_default();
    let run = FleetRun { fleet, given: erasure.given, session, has_choices, decisions, receipts, desk };
    let mut databases = Vec::new();
    for ((member, planned), place) in fleet.members.iter().zip(&plans).zip(&run.session.databases) {
        databases.push(run.erase(member, place, planned).await);
    }
    for place in run.session.databases.iter().skip(fleet.members.len()) {
        let entry = FleetEntry::unnamed(place);
        databases.push(match run.ended(place, None).await {
            Some(receipt) => entry.ended(receipt),
            None => entry,
        });
    }
    finish(erasure, databases, desk)
}

/// Stores the receipt, and removes the session if all ended verified.
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
    receipt.kept_in = Some(desk.keep_receipt(&receipt.receipt_id, receipt.status, &receipt)?);
    if receipt.status != PurgeStatus::Incomplete {
        desk.forget_fleet(&erasure.name);
    }
    Ok(receipt)
}

/// An erasure that goes from one database to the next.
struct FleetRun<'a> {
    fleet: &'a Fleet,
    given: &'a str,
    session: FleetSession,
    /// Whether new erasures may begin.
    has_choices: bool,
    /// Decisions that replace earlier ones, if it is resumed.
    decisions: Option<NewDecisions>,
    /// Receipts that earlier runs ended verified.
    receipts: Vec<PurgeReceipt>,
    desk: &'a Desk<'a>,
}

impl FleetRun<'_> {
    async fn erase(&self, member: &FleetMember, place: &FleetPlace, planned: &FleetPlan) -> FleetEntry {
        let store = match planned {
            FleetPlan::Failed(UNREACHABLE, words) => Err(words.clone()),
            _ => self.fleet.open(member).await,
        };
        match (planned, store) {
            (_, Err(words)) => match self.ended(place, None).await {
                Some(receipt) => member.ended(receipt),
                None => member.failed(UNREACHABLE, self.nameless(&words)),
            },
            (FleetPlan::Begun(by), Ok(store)) => {
                self.run(member, &store, by, &self.session.options, self.decisions.as_ref()).await
            }
            (FleetPlan::Found { plan, by }, Ok(store)) => match self.ended(place, Some(&store)).await {
                Some(receipt) if plan.is_empty => member.ended(receipt),
                _ if self.has_choices => self.run(member, &store, by, &of_one(&self.session.options, plan), None).await,
                _ => member.failed(REFUSED, self.nameless(UNDECIDED)),
            },
            (FleetPlan::Absent(named), Ok(store)) => match self.ended(place, Some(&store)).await {
                Some(receipt) => member.ended(receipt),
                None => self.absent(member, &store, named.as_ref()).await,
            },
            (FleetPlan::Failed(status, words), Ok(_)) => member.failed(status, self.nameless(words)),
        }
    }

    /// Entry for a database that does not know the person: what its texts and bytes contain anyway.
    async fn absent(&self, member: &FleetMember, store: &Store, named: Option<&NamedInTexts>) -> FleetEntry {
        let handles: BTreeSet<String> = self.session.handles.iter().cloned().chain([self.given.to_owned()]).collect();
        let handles: Vec<String> = handles.into_iter().collect();
        let mut entry = member.entry(NOT_FOUND);
        let mut left = Vec::new();
        match traces::unaccounted(store, &handles).await {
            Ok(Ok(0)) => {}
            Ok(Ok(hits)) => left.push(agreeing(
                hits,
                "{#} {place|places} among the bytes of its files {belongs|belong} to rows that were deleted earlier: \
                 VACUUM it, and resume",
            )),
            Ok(Err(reason @ UncheckedBytes::Server)) => entry.unchecked = Some(reason.to_string()),
            Ok(Err(reason)) => left.push(format!("the bytes of its files were not checked: {reason}")),
            Err(error) => return member.failed(status_of(&error), self.nameless(&error.to_string())),
        }
        if !left.is_empty() || named.is_some_and(|named| named.asked) {
            PurgeStatus::Incomplete.word().clone_into(&mut entry.status);
        }
        left.extend(named.map(|named| named.words.clone()));
        let error = format!("no person is known by that name, but {}", left.join("; "));
        entry.error = (!left.is_empty()).then(|| self.nameless(&error));
        entry
    }

    /// The receipt of an earlier run in a database, if it ended verified and the database records it. A copy of a
    /// database has the same identity, but not the later changes.
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
        member: &FleetMember,
        store: &Store,
        given: &str,
        options: &PurgeOptions,
        decisions: Option<&NewDecisions>,
    ) -> FleetEntry {
        let exported = match &self.session.export {
            Some(folder) => {
                let folder = folder_of(folder, &member.label);
                match bundle(store, given, options, Sink::Folder(&folder)).await {
                    Ok((_, hash)) => Some(hash),
                    // After an unfinished erasure nothing may be left to export.
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

    /// Text without the person's name: a receipt does not reveal the person.
    fn nameless(&self, words: &str) -> String {
        let known = std::iter::once(self.given).chain(self.session.handles.iter().map(String::as_str));
        known.fold(words.to_owned(), |words, handle| words.replace(handle, "the person"))
    }
}

/// The subfolder for a database's bundle.
fn folder_of(folder: &Path, label: &str) -> PathBuf {
    folder.join(label.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect::<String>())
}
