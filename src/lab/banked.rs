//! Owner and settings of a ranking of cases: the bank, the policy that its readers use, and the configured number of
//! rows.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::situation::ResolvedQuestion;
use super::{LabError, Told, each, equal, owner, silent};
use crate::memory::filter::Filter;
use crate::memory::query::Query;
use crate::memory::{Entity, Row};
use crate::recall::answer::{PolicyChoice, RecallRequest, UsedPolicy};
use crate::recall::policy::Policy;
use crate::store::Store;

/// Columns read of a policy.
const USED: &[&str] = &["id", "profile_id", "version", "weights", "trained_at"];

/// Cases, policy and number of rows that a request for cases resolves to.
pub(super) struct BankedCases {
    /// Filters of the ranked cases.
    pub filters: Vec<Filter>,
    /// The ranking policy; `None` for similarity.
    pub policy: Option<(UsedPolicy, Policy)>,
    /// Rows that the bank is set to.
    pub k: Option<usize>,
}

impl BankedCases {
    /// Finds the bank: that of the named policy, that of the given case, or the only one of the named user and agent.
    /// Several banks have no common policy.
    pub async fn of(
        store: &Store,
        request: &RecallRequest,
        asked: &mut ResolvedQuestion,
    ) -> Result<BankedCases, LabError> {
        let mut filters = owner(request.inquiry.agent.as_deref(), request.inquiry.user.as_deref());
        let named = match request.inquiry.choice() {
            PolicyChoice::Named(id) => Some(named(store, id).await?),
            PolicyChoice::InUse | PolicyChoice::Likeness => None,
        };
        let of_policy = named.as_ref().and_then(|(_, _, profile)| profile.clone());
        let of_case = asked.row.as_ref().filter(|r| r.entity == Entity::Case).and_then(|r| r.text("profile_id"));
        let mut bank = of_policy.or_else(|| of_case.map(str::to_owned));
        match &bank {
            Some(profile) if filters.is_empty() => {
                asked
                    .notes
                    .push(format!("the cases of one bank are ranked, {profile}: --user and --agent name another"));
                filters.push(equal("profile_id", profile));
            }
            _ => bank = only(store, &filters).await?,
        }
        if bank.is_none() && filters.is_empty() {
            asked.notes.push(
                "no user and agent are named: the cases of all profiles are ranked, but an agent sees only one"
                    .to_owned(),
            );
        }
        let policy = match (named, request.inquiry.choice(), &bank) {
            (Some((used, policy, _)), ..) => Some((used, policy)),
            (None, PolicyChoice::InUse, Some(bank)) => in_use(store, bank, asked).await?,
            _ => None,
        };
        Ok(BankedCases { filters, policy, k: rows_of(store, bank.as_deref()).await? })
    }

    /// Whether a case is ranked.
    pub fn holds(&self, case: &Row) -> bool {
        self.filters.iter().all(|filter| filter.matches(case))
    }
}

/// The only bank of an owner; `None` if there are several, or none.
async fn only(store: &Store, filters: &[Filter]) -> Result<Option<String>, LabError> {
    if store.sources_of(Entity::Profile).is_err() {
        return Ok(None);
    }
    let columns = Some(vec!["user_id", "agent_id"]);
    let query = Query { limit: 2, filters: filters.to_vec(), columns, ..Query::new(Entity::Profile) };
    let rows = store.page(&query).await?.rows;
    Ok(if let [row] = &rows[..] { Some(row.id().to_owned()) } else { None })
}

/// The number of rows that a bank is set to.
async fn rows_of(store: &Store, bank: Option<&str>) -> Result<Option<usize>, LabError> {
    let keeps = |store: &Store| {
        let sources = store.sources_of(Entity::Profile).unwrap_or_default();
        sources.iter().any(|source| !source.column("k").is_empty())
    };
    let Some(bank) = bank.filter(|_| keeps(store)) else { return Ok(None) };
    let row = store.row(Entity::Profile, bank).await?;
    let k = row.and_then(|row| row.get("k").as_u64()).and_then(|k| usize::try_from(k).ok());
    Ok(k.filter(|k| *k > 0))
}

/// The policy that readers of a bank use: its highest active version.
async fn in_use(
    store: &Store,
    bank: &str,
    asked: &mut ResolvedQuestion,
) -> Result<Option<(UsedPolicy, Policy)>, LabError> {
    let Some(id) = highest_active(store, bank).await? else { return Ok(None) };
    let rows = store.related_columns(Entity::Policy, "id", &[id], Some(USED)).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    match Policy::parse(row.get("weights")) {
        Ok(policy) => Ok(Some((UsedPolicy::of(row, "in use"), policy))),
        Err(why) => {
            asked.notes.push(UnusablePolicy { id: row.id().to_owned(), why }.note());
            Ok(None)
        }
    }
}

/// Finds, among the versions of one bank, the id of the one that its readers use.
async fn highest_active(store: &Store, bank: &str) -> Result<Option<String>, LabError> {
    let mut query = Query::new(Entity::Policy);
    query.columns = Some(vec!["profile_id", "version", "status"]);
    query.filters.push(equal("profile_id", bank));
    let mut highest = None;
    each(store, &query, &silent, |row| {
        if is_active(&row) {
            highest = highest.take().max(Some(standing(&row)));
        }
    })
    .await?;
    Ok(highest.map(|(_, Reverse(id))| id))
}

/// Whether readers may use a version.
pub(super) fn is_active(policy: &Row) -> bool {
    policy.text("status") == Some("active")
}

/// The standing of a version: readers use the active one of their bank with the highest.
pub(super) fn standing(policy: &Row) -> (Option<i64>, Reverse<String>) {
    (policy.get("version").as_i64(), Reverse(policy.id().to_owned()))
}

/// A policy in use that cannot rank: its bank is ranked without it.
#[derive(Debug, Clone, PartialEq)]
pub struct UnusablePolicy {
    /// Id of the version.
    pub id: String,
    /// Fault of its weights.
    pub why: String,
}

impl UnusablePolicy {
    /// Tells it to people.
    pub fn note(&self) -> String {
        let UnusablePolicy { id, why } = self;
        format!("the active policy {id} cannot be used: {why}; ranked without it")
    }
}

/// The policies that the banks' readers use.
#[derive(Debug, Default)]
pub struct PoliciesInUse {
    /// Those that can rank, by bank.
    pub by_bank: HashMap<String, Policy>,
    /// The others, by id.
    pub unusable: Vec<UnusablePolicy>,
}

/// The highest active version of each bank so far.
#[derive(Default)]
pub struct ActiveVersions(HashMap<String, ActiveVersion>);

/// The standing of a version, and its weights or why they cannot be read.
type ActiveVersion = ((Option<i64>, Reverse<String>), Result<Policy, String>);

impl ActiveVersions {
    /// Adds a version.
    pub fn add(&mut self, row: &Row) {
        let Some(bank) = row.text("profile_id").filter(|_| is_active(row)) else { return };
        let version = (standing(row), Policy::parse(row.get("weights")));
        match self.0.get_mut(bank) {
            Some((known, _)) if *known > version.0 => {}
            Some(known) => *known = version,
            None => drop(self.0.insert(bank.to_owned(), version)),
        }
    }

    /// The policies that the banks' readers use; all versions have been added.
    pub fn in_use(self) -> PoliciesInUse {
        let mut found = PoliciesInUse::default();
        for (bank, ((_, Reverse(id)), policy)) in self.0 {
            match policy {
                Ok(policy) => {
                    found.by_bank.insert(bank, policy);
                }
                Err(why) => found.unusable.push(UnusablePolicy { id, why }),
            }
        }
        found.unusable.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        found
    }
}

/// The policies in use; none if the database has no policies.
///
/// # Errors
/// The engine's refusal.
pub async fn policies_in_use(store: &Store, told: Told<'_>) -> Result<PoliciesInUse, LabError> {
    let mut versions = ActiveVersions::default();
    let mut query = Query::new(Entity::Policy);
    query.columns = Some(vec!["profile_id", "version", "status", "weights"]);
    each(store, &query, told, |row| versions.add(&row)).await?;
    Ok(versions.in_use())
}

/// A policy by its id, with the profile it belongs to.
pub(super) async fn named(store: &Store, id: &str) -> Result<(UsedPolicy, Policy, Option<String>), LabError> {
    let missing = || LabError::NotFound(format!("there is no policy `{id}` in {}", store.location()));
    let row = store.row(Entity::Policy, id).await?.ok_or_else(missing)?;
    let policy = Policy::parse(row.get("weights"))
        .map_err(|why| LabError::Usage(format!("the policy {id} cannot be used: {why}")))?;
    let profile = row.text("profile_id").map(str::to_owned);
    Ok((UsedPolicy::of(&row, "named"), policy, profile))
}
