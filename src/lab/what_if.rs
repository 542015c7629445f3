//! What-if: real situations of the agents and banks that a change touches, ranked before and after it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::training::versions;
use super::{LabError, equal, silent};
use crate::memory::query::Query;
use crate::memory::{Entity, Row};
use crate::recall::bench::Bench;
use crate::recall::policy::Policy;
use crate::recall::rank::Ranking;
use crate::recall::what_if::{Edit, WhatIf};
use crate::store::Store;

/// Time within which a confirmation has its answer.
pub const BUDGET: Duration = Duration::from_millis(300);
/// Agents and banks that are looked at.
const OWNERS: usize = 4;
/// Rows of an owner that are ranked; of more the newest, and the changed ones.
const ROWS: usize = 1_000;
/// Changed rows of a large change that are looked up to see whose they are.
const LOOKED_UP: usize = 200;
/// Moves that are told.
const TOLD: usize = 200;

/// Is told after each situation how many there were.
pub type Counted<'a> = &'a (dyn Fn(usize) + Send + Sync);

/// Ranks real situations before and after edits, as long as `budget` lasts: what was found until then is the answer, and
/// says that it is not all.
///
/// # Errors
/// The engine's refusal.
pub async fn what_if(
    store: &Store,
    edits: &[Edit],
    at: &str,
    budget: Duration,
    told: Counted<'_>,
) -> Result<WhatIf, LabError> {
    let start = Instant::now();
    let mut look = Look { store, edits, at, end: start + budget, told, found: WhatIf::default() };
    let ended = tokio::time::timeout(budget, look.all()).await;
    let mut found = look.found;
    found.complete = match ended {
        Ok(ended) => ended?,
        Err(_) => false,
    };
    found.stopped = !found.complete;
    if found.stopped {
        found.notes.push(format!("stopped after {} situations: {} ms were over", found.situations, budget.as_millis()));
    }
    found.took = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(found)
}

/// A look under way.
struct Look<'a> {
    store: &'a Store,
    edits: &'a [Edit],
    at: &'a str,
    end: Instant,
    told: Counted<'a>,
    found: WhatIf,
}

/// An agent or a bank, none for rows that name none; with its changed rows.
type Owners = Vec<(Option<String>, Vec<Row>)>;

impl Look<'_> {
    /// Looks at everything; whether the time was enough.
    async fn all(&mut self) -> Result<bool, LabError> {
        let mut whole = true;
        for (owner, changed) in self.owners(Entity::Episode, "agent_id").await? {
            let rankings = [Ranking::Boosted, Ranking::Proven, Ranking::Similar];
            let bench = self.bench(Entity::Episode, "agent_id", owner.as_deref(), changed, (None, None)).await?;
            whole &= self.compare(&bench, &rankings).await;
        }
        let mut banks = self.owners(Entity::Case, "profile_id").await?;
        for bank in self.banks_of_policies().await? {
            if !banks.iter().any(|(owner, _)| owner.as_deref() == Some(&bank)) {
                banks.push((Some(bank), Vec::new()));
            }
        }
        for (owner, changed) in banks {
            let policies = self.policies(owner.as_deref()).await?;
            let bench = self.bench(Entity::Case, "profile_id", owner.as_deref(), changed, policies).await?;
            whole &= self.compare(&bench, &[Ranking::Cases]).await;
        }
        Ok(whole)
    }

    /// Whose the changed rows are, most of them first.
    async fn owners(&mut self, kind: Entity, column: &'static str) -> Result<Owners, LabError> {
        let ids: Vec<&String> = self.edits.iter().filter(|e| e.entity == kind).map(|e| &e.id).collect();
        if ids.is_empty() || self.store.sources_of(kind).is_err() {
            return Ok(Vec::new());
        }
        // Spread over all of them, so that few changes of a second bank are not lost among many of the first.
        let step = ids.len().div_ceil(LOOKED_UP);
        let sample: Vec<String> = ids.iter().step_by(step).map(|id| (*id).clone()).collect();
        let mut columns = columns_of(kind).to_vec();
        columns.extend(["id", column]);
        let rows = self.store.related_columns(kind, "id", &sample, Some(&columns)).await?;
        let mut owners: BTreeMap<Option<String>, Vec<Row>> = BTreeMap::new();
        for row in rows {
            owners.entry(row.text(column).map(str::to_owned)).or_default().push(row);
        }
        let mut owners: Owners = owners.into_iter().collect();
        owners.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
        let what = if kind == Entity::Case { "banks" } else { "agents" };
        if owners.len() > OWNERS {
            let note = format!("{} {what} are touched: the {OWNERS} with most changes were looked at", owners.len());
            self.found.notes.push(note);
            owners.truncate(OWNERS);
        }
        Ok(owners)
    }

    /// The newest rows of an owner, and the changed ones.
    async fn bench(
        &mut self,
        kind: Entity,
        column: &'static str,
        owner: Option<&str>,
        changed: Vec<Row>,
        policies: (Option<Policy>, Option<Policy>),
    ) -> Result<Bench, LabError> {
        let mut query = Query { limit: ROWS, columns: Some(columns_of(kind).to_vec()), ..Query::new(kind) };
        query.filters.extend(owner.map(|owner| equal(column, owner)));
        let page = self.store.page(&query).await?;
        if page.next.is_some() {
            let whose = if kind == Entity::Case { "a bank" } else { "an agent" };
            self.found.notes.push(format!("of {whose} the newest {ROWS} rows and the changed ones were ranked"));
            self.found.notes.dedup();
        }
        let mut rows = page.rows;
        let known: BTreeSet<String> = rows.iter().map(|row| row.id().to_owned()).collect();
        rows.extend(changed.into_iter().filter(|row| !known.contains(row.id())));
        let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
        let vectors = if self.store.has_vectors(kind) { self.store.vectors(kind, &ids).await? } else { HashMap::new() };
        Ok(Bench::new(rows, self.edits, vectors, policies))
    }

    /// Asks the bench its situations; whether the time was enough.
    async fn compare(&mut self, bench: &Bench, rankings: &[Ranking]) -> bool {
        if bench.situations().is_empty() {
            let whose = if rankings.contains(&Ranking::Cases) { "a bank" } else { "an agent" };
            self.found.notes.push(format!("every row of {whose} goes: nothing of it is left to be recalled"));
            self.found.notes.dedup();
        }
        for situation in bench.situations() {
            if Instant::now() >= self.end {
                return false;
            }
            let (moved, rescored) = bench.compared(rankings, *situation, self.at);
            let changed = !moved.is_empty();
            let room = TOLD.saturating_sub(self.found.moves.len());
            self.found.moves.extend(moved.into_iter().take(room));
            let room = TOLD.saturating_sub(self.found.rescored.len());
            self.found.rescored.extend(rescored.into_iter().take(room));
            self.found.situations += 1;
            self.found.changed += usize::from(changed);
            self.name(bench);
            (self.told)(self.found.situations);
            // Others have their turn, and the time may be over.
            tokio::task::yield_now().await;
        }
        true
    }

    /// Keeps the rows by which people know what moves where.
    fn name(&mut self, bench: &Bench) {
        let WhatIf { moves, rescored, rows, .. } = &mut self.found;
        for moved in moves.iter().chain(rescored.iter()) {
            for id in [&moved.situation, &moved.id] {
                if let Some(row) = bench.row_of(id).filter(|_| !rows.iter().any(|known| known.id() == id)) {
                    rows.push(row.clone());
                }
            }
        }
    }

    /// The banks whose policies change.
    async fn banks_of_policies(&self) -> Result<BTreeSet<String>, LabError> {
        let edits = self.edits.iter().filter(|e| e.entity == Entity::Policy);
        let (mut banks, mut ids) = (BTreeSet::new(), Vec::new());
        for edit in edits {
            match edit.after.as_ref().and_then(|after| after["profile_id"].as_str()) {
                Some(bank) => drop(banks.insert(bank.to_owned())),
                None => ids.push(edit.id.clone()),
            }
        }
        for row in self.store.related(Entity::Policy, "id", &ids).await? {
            banks.extend(row.text("profile_id").map(str::to_owned));
        }
        Ok(banks)
    }

    /// The policy that a bank's readers use before and after: the highest active version.
    async fn policies(&self, bank: Option<&str>) -> Result<(Option<Policy>, Option<Policy>), LabError> {
        let Some(bank) = bank.filter(|_| self.store.sources_of(Entity::Policy).is_ok()) else {
            return Ok((None, None));
        };
        let mut rows: Vec<Row> =
            versions(self.store, Some(bank), &silent).await?.into_iter().map(|version| version.row).collect();
        let before = in_use(&rows);
        let known: BTreeSet<String> = rows.iter().map(|row| row.id().to_owned()).collect();
        for edit in self.edits.iter().filter(|e| e.entity == Entity::Policy && !known.contains(&e.id)) {
            let mut new = Row::empty(Entity::Policy);
            if let Some(serde_json::Value::Object(columns)) = &edit.after {
                columns.iter().for_each(|(name, value)| new.set(name, value.clone()));
                rows.push(new);
            }
        }
        rows.retain(|row| row.text("profile_id") == Some(bank));
        Ok((before, in_use(&crate::recall::what_if::applied(&rows, self.edits))))
    }
}

/// The weights of the highest active version, where they are readable.
fn in_use(rows: &[Row]) -> Option<Policy> {
    let active = rows.iter().filter(|row| row.text("status") == Some("active"));
    let highest = active.max_by_key(|row| row.get("version").as_i64())?;
    Policy::parse(highest.get("weights")).ok()
}

/// The columns that rankings look at.
fn columns_of(kind: Entity) -> &'static [&'static str] {
    if kind == Entity::Case {
        &["prompt", "tags", "outcome", "reward", "created_at", "quarantined"]
    } else {
        &[
            "started_at",
            "title",
            "summary",
            "detail",
            "observation",
            "result",
            "success",
            "outcome",
            "domain",
            "topic",
            "tags",
            "workflow_name",
            "utility",
            "feedback_score",
            "canvas_action_count",
        ]
    }
}
