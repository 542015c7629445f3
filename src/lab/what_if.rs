//! Comparison of recall before and after a change (what-if): real situations of the affected agents and banks, the
//! rooms of affected memories, and saved questions, recalled from the current database and from the changed one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::recall::{RankedSituation, ranked};
use super::{LabError, equal};
use crate::memory::query::Query;
use crate::memory::vector::CONSOLE_BYTES;
use crate::memory::{Entity, Row, agreeing};
use crate::recall::answer::{NO_POLICY, RecallRequest};
use crate::recall::inquiry::Inquiry;
use crate::recall::rank::{Ranking, place_of};
use crate::recall::what_if::{OrderedAnswer, PlaceMove, QuestionOutcome, WhatIf, WhatIfQuestion, moves};
use crate::store::Store;
use crate::store::stored::Mutation;

/// Time limit of the answer for a confirmation.
pub const BUDGET: Duration = Duration::from_millis(300);
/// Most agents and banks considered.
const OWNERS: usize = 4;
/// Situations of an agent or a bank.
const SITUATIONS: usize = 8;
/// Number of these situations that are chosen because a changed row is most likely recalled in them.
const ALIKE: usize = 4;
/// Most rooms considered.
const ROOMS: usize = 8;
/// Newest rows of an owner among which situations are chosen.
const NEWEST: usize = 64;
/// Most rows of a large change whose owners are looked up.
const LOOKED_UP: usize = 200;
/// Most moves reported.
const TOLD: usize = 200;

/// Callback after each situation, with their number so far.
pub type Counted<'a> = &'a (dyn Fn(usize) + Send + Sync);

/// A saved question, with its request, which already has the vector of its text.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptQuestion {
    /// Name of the question.
    pub name: String,
    /// The question, ready to be asked.
    pub request: RecallRequest,
}

/// A change to compare.
#[derive(Debug, Clone)]
pub struct PlannedChange<'a> {
    /// Changes that the plan makes to stored rows.
    pub mutations: &'a [Mutation],
    /// The episodes, memories, cases and policies that it touches.
    pub touched: &'a BTreeSet<(Entity, String)>,
    /// Saved questions of this database.
    pub kept: &'a [KeptQuestion],
    /// The moment of all recalls, canonical.
    pub at: &'a str,
    /// Maximum time for the comparison.
    pub budget: Duration,
}

/// Recalls real situations before and after a change within the budget. A partial answer is marked as such.
///
/// # Errors
/// The engine's refusal.
pub async fn what_if(store: &Store, ahead: &PlannedChange<'_>, told: Counted<'_>) -> Result<WhatIf, LabError> {
    let start = Instant::now();
    let mut found = WhatIf::default();
    let ended = tokio::time::timeout(ahead.budget, look(store, ahead, told, &mut found)).await;
    found.complete = match ended {
        Ok(ended) => ended?,
        Err(_) => false,
    };
    found.stopped = ended_early(&found, start, ahead.budget);
    if found.stopped {
        let budget = ahead.budget.as_millis();
        let words = "stopped after {#} {situation|situations}";
        found.notes.push(format!("{}: {budget} ms were used up", agreeing(found.situations, words)));
    }
    found.took = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(found)
}

fn ended_early(found: &WhatIf, start: Instant, budget: Duration) -> bool {
    !found.complete && start.elapsed() >= budget
}

/// Runs the whole comparison. False if it was cut short.
async fn look(
    store: &Store,
    ahead: &PlannedChange<'_>,
    told: Counted<'_>,
    found: &mut WhatIf,
) -> Result<bool, LabError> {
    let (before, _) = store.ahead().foreseeing(&[], ahead.at).await?;
    let (after, unseen) = store.ahead().foreseeing(ahead.mutations, ahead.at).await?;
    for view in [&before, &after] {
        view.embeddings().keep_vectors(CONSOLE_BYTES);
    }
    let mut look = WhatIfLook { before, after, ahead, told, found };
    if unseen > 0 {
        look.note(format!("{unseen} changed rows are too many to check"));
    }
    for kept in ahead.kept {
        let question =
            WhatIfQuestion { situation: kept.name.clone(), inquiry: kept.request.inquiry.clone(), is_kept: true };
        look.ask_kept(&question, &kept.request).await?;
    }
    look.rooms().await?;
    look.banks().await?;
    look.agents().await?;
    Ok(unseen == 0)
}

/// State of a comparison.
struct WhatIfLook<'a> {
    before: Store,
    after: Store,
    ahead: &'a PlannedChange<'a>,
    told: Counted<'a>,
    found: &'a mut WhatIf,
}

/// Agents or banks, each with its changed rows; `None` for rows without an owner.
type Owners = Vec<(Option<String>, Vec<Row>)>;

/// Domain and topic.
type Room = (Option<String>, Option<String>);

impl WhatIfLook<'_> {
    fn note(&mut self, words: String) {
        if !self.found.notes.contains(&words) {
            self.found.notes.push(words);
        }
    }

    /// The changed rows of an entity in their current state; new rows in their future state. Of many rows a sample,
    /// spread evenly, so that a few changes of a second bank are not lost.
    async fn touched(&self, kind: Entity) -> Result<Vec<Row>, LabError> {
        let ids: Vec<&String> = self.ahead.touched.iter().filter(|(entity, _)| *entity == kind).map(|t| &t.1).collect();
        let step = ids.len().div_ceil(LOOKED_UP).max(1);
        self.rows(kind, ids.into_iter().step_by(step).cloned().collect()).await
    }

    /// Rows in their current state, else in their future state.
    async fn rows(&self, kind: Entity, mut ids: Vec<String>) -> Result<Vec<Row>, LabError> {
        let columns = Some(columns_of(kind));
        let mut rows = self.before.related_columns(kind, "id", &ids, columns).await?;
        ids.retain(|id| !rows.iter().any(|row| row.id() == id));
        rows.extend(self.after.related_columns(kind, "id", &ids, columns).await?);
        Ok(rows)
    }

    /// A saved question may refer to deleted rows.
    async fn ask_kept(&mut self, question: &WhatIfQuestion, request: &RecallRequest) -> Result<(), LabError> {
        match self.ask(question, request).await {
            Err(LabError::Store(error)) => Err(LabError::Store(error)),
            Err(why) => {
                self.note(format!("the saved question {} cannot be asked: {why}", question.situation));
                Ok(())
            }
            Ok(changed) => {
                self.counted(changed).await;
                Ok(())
            }
        }
    }

    /// Asks before and after. True if the answers differ.
    async fn ask(&mut self, question: &WhatIfQuestion, request: &RecallRequest) -> Result<bool, LabError> {
        let (before, _) = ranked(&self.before, request).await?;
        let (after, _) = ranked(&self.after, request).await?;
        let (moved, rescored) = moves(question, ordered(&before), ordered(&after));
        let changed = !moved.is_empty();
        let recall = question.repeated(after.policy.as_ref());
        self.found.asked.push(QuestionOutcome { situation: question.situation.clone(), recall });
        let ids = |of: &[PlaceMove]| of.iter().map(|m| m.id.clone()).collect::<BTreeSet<_>>();
        let named = &ids(&moved) | &ids(&rescored);
        let room = TOLD.saturating_sub(self.found.moves.len());
        self.found.moves.extend(moved.into_iter().take(room));
        let room = TOLD.saturating_sub(self.found.rescored.len());
        self.found.rescored.extend(rescored.into_iter().take(room));
        let rows = [&before, &after].into_iter().flat_map(|ranks| ranks.rows.iter().map(|ranked| &ranked.row));
        let kinds: BTreeSet<(Entity, String)> =
            rows.filter(|row| named.contains(row.id())).map(|row| (row.entity, row.id().to_owned())).collect();
        self.name(kinds).await?;
        Ok(changed)
    }

    /// Handles that a situation was compared.
    async fn counted(&mut self, changed: bool) {
        self.found.situations += 1;
        self.found.changed += usize::from(changed);
        (self.told)(self.found.situations);
        // Lets other tasks run; the time may be over.
        tokio::task::yield_now().await;
    }

    /// Keeps the naming columns of moved rows.
    async fn name(&mut self, rows: BTreeSet<(Entity, String)>) -> Result<(), LabError> {
        let known = |found: &WhatIf, (entity, id): &(Entity, String)| {
            found.rows.iter().any(|row| row.entity == *entity && row.id() == id)
        };
        let mut by_kind: BTreeMap<Entity, Vec<String>> = BTreeMap::new();
        for row in rows.into_iter().filter(|row| !known(self.found, row)) {
            by_kind.entry(row.0).or_default().push(row.1);
        }
        for (kind, ids) in by_kind {
            let rows = self.rows(kind, ids).await?;
            self.found.rows.extend(rows);
        }
        Ok(())
    }

    /// The rooms of touched memories and episodes, and of memories that touched episodes used.
    async fn rooms(&mut self) -> Result<(), LabError> {
        let episodes = self.touched(Entity::Episode).await?;
        let memories = self.touched(Entity::Memory).await?;
        let ids: Vec<&str> = episodes.iter().map(Row::id).collect();
        let mut used: BTreeSet<String> = BTreeSet::new();
        for view in [&self.before, &self.after] {
            let take = |link: Row, _| {
                used.extend(link.text("memory_id").map(str::to_owned));
                ControlFlow::Continue(())
            };
            view.each_related(Entity::MemoryLink, "episode_id", &ids, &["episode_id", "memory_id"], take).await?;
        }
        for row in &memories {
            used.remove(row.id());
        }
        let mut rooms = Vec::new();
        add_rooms(&mut rooms, &memories);
        let used: Vec<String> = used.into_iter().collect();
        for some in used.chunks(LOOKED_UP) {
            add_rooms(&mut rooms, &self.rows(Entity::Memory, some.to_vec()).await?);
        }
        add_rooms(&mut rooms, &episodes);
        if rooms.len() > ROOMS {
            self.note(format!("{} topics are affected: {ROOMS} were checked", rooms.len()));
        }
        for (domain, topic) in rooms.into_iter().take(ROOMS) {
            let situation = [&domain, &topic].into_iter().flatten().cloned().collect::<Vec<_>>().join(" / ");
            let inquiry = Inquiry { domain, topic, ..Inquiry::new(Ranking::Proven) };
            let request = inquiry.request(self.ahead.at);
            let changed = self.ask(&WhatIfQuestion { situation, inquiry, is_kept: false }, &request).await?;
            self.counted(changed).await;
        }
        Ok(())
    }

    /// Situations of the agents with changed episodes.
    async fn agents(&mut self) -> Result<(), LabError> {
        if self.before.sources_of(Entity::Episode).is_err() {
            return Ok(());
        }
        for (agent, changed) in self.owners(Entity::Episode).await? {
            let likeness = Inquiry { agent, all_outcomes: true, ..Inquiry::new(Ranking::Similar) };
            let rankings = [Ranking::Boosted, Ranking::Proven, Ranking::Similar];
            self.situations(Entity::Episode, &likeness, &changed, &rankings).await?;
        }
        Ok(())
    }

    /// Situations of the banks with changed cases or policies.
    async fn banks(&mut self) -> Result<(), LabError> {
        if self.before.sources_of(Entity::Case).is_err() {
            return Ok(());
        }
        let mut banks = self.owners(Entity::Case).await?;
        for policy in self.touched(Entity::Policy).await? {
            let bank = policy.text("profile_id").map(str::to_owned);
            if bank.is_some() && !banks.iter().any(|(owner, _)| *owner == bank) {
                banks.push((bank, Vec::new()));
            }
        }
        for (bank, changed) in banks {
            let likeness = Inquiry { policy: Some(NO_POLICY.to_owned()), ..Inquiry::new(Ranking::Cases) };
            let newest = self.newest(Entity::Case, bank.as_deref()).await?;
            self.ask_all(Entity::Case, &likeness, &changed, newest, &[Ranking::Cases]).await?;
        }
        Ok(())
    }

    async fn situations(
        &mut self,
        kind: Entity,
        likeness: &Inquiry,
        changed: &[Row],
        rankings: &[Ranking],
    ) -> Result<(), LabError> {
        let newest = self.newest(kind, likeness.agent.as_deref()).await?;
        self.ask_all(kind, likeness, changed, newest, rankings).await
    }

    /// Asks the situations of one owner: those most similar to the changed rows, then the newest; never one whose row
    /// is deleted.
    async fn ask_all(
        &mut self,
        kind: Entity,
        likeness: &Inquiry,
        changed: &[Row],
        newest: Vec<Row>,
        rankings: &[Ranking],
    ) -> Result<(), LabError> {
        let mut chosen: Vec<Row> = Vec::new();
        let each = ALIKE / changed.len().clamp(1, ALIKE);
        for row in changed.iter().take(ALIKE) {
            let inquiry = Inquiry { like: Some(row.id().to_owned()), k: Some(2 * ALIKE), ..likeness.clone() };
            let request = inquiry.request(self.ahead.at);
            let there = !self
                .before
                .related_columns(kind, "id", &[row.id().to_owned()], Some(&["id", kind.time_column()]))
                .await?
                .is_empty();
            let (near, _) = ranked(if there { &self.before } else { &self.after }, &request).await?;
            let fresh = |row: &Row| !changed.iter().chain(&chosen).any(|known| known.id() == row.id());
            let near: Vec<Row> = near.rows.into_iter().map(|r| r.row).filter(fresh).take(each).collect();
            chosen.extend(near);
        }
        let newest: Vec<Row> =
            newest.into_iter().filter(|row| !chosen.iter().any(|known| known.id() == row.id())).collect();
        chosen.extend(newest);
        let ids: Vec<String> = chosen.iter().map(|row| row.id().to_owned()).collect();
        let columns = ["id", kind.time_column()];
        let (was, stays) = tokio::try_join!(
            self.before.related_columns(kind, "id", &ids, Some(&columns)),
            self.after.related_columns(kind, "id", &ids, Some(&columns)),
        )?;
        chosen.retain(|row| [&was, &stays].iter().all(|rows| rows.iter().any(|known| known.id() == row.id())));
        if chosen.is_empty() {
            let whose = if kind == Entity::Case { "a bank" } else { "an agent" };
            self.note(format!("every row of {whose} is removed: nothing is left to recall"));
        }
        for row in chosen.into_iter().take(SITUATIONS) {
            let id = row.id().to_owned();
            let mut changed = false;
            for ranking in rankings {
                let agent = likeness.agent.clone();
                let inquiry = Inquiry { like: Some(id.clone()), agent, ..Inquiry::new(*ranking) };
                let request = inquiry.request(self.ahead.at);
                changed |=
                    self.ask(&WhatIfQuestion { situation: id.clone(), inquiry, is_kept: false }, &request).await?;
            }
            if changed {
                self.name(BTreeSet::from([(kind, id)])).await?;
            }
            self.counted(changed).await;
        }
        Ok(())
    }

    /// The newest rows of an owner, as they are.
    async fn newest(&self, kind: Entity, owner: Option<&str>) -> Result<Vec<Row>, LabError> {
        let mut query = Query { limit: NEWEST, columns: Some(vec!["id", owner_column(kind)]), ..Query::new(kind) };
        query.filters.extend(owner.map(|owner| equal(owner_column(kind), owner)));
        Ok(self.before.page(&query).await?.rows)
    }

    /// Groups the changed rows by owner, the owner with the most rows first.
    async fn owners(&mut self, kind: Entity) -> Result<Owners, LabError> {
        let mut owners: BTreeMap<Option<String>, Vec<Row>> = BTreeMap::new();
        for row in self.touched(kind).await? {
            owners.entry(row.text(owner_column(kind)).map(str::to_owned)).or_default().push(row);
        }
        let mut owners: Owners = owners.into_iter().collect();
        owners.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
        let what = if kind == Entity::Case { "banks" } else { "agents" };
        if owners.len() > OWNERS {
            self.note(format!("{} {what} are affected: the {OWNERS} with the most changes were checked", owners.len()));
            owners.truncate(OWNERS);
        }
        Ok(owners)
    }
}

/// Adds the rooms of rows that are not known yet, in any case of their letters.
fn add_rooms(rooms: &mut Vec<Room>, rows: &[Row]) {
    let lower = |room: &Room| [&room.0, &room.1].map(|name| name.as_deref().map(str::to_lowercase));
    for row in rows {
        let (domain, topic) = place_of(row);
        let room = (domain.map(Cow::into_owned), topic.map(Cow::into_owned));
        if room != (None, None) && !rooms.iter().any(|known| lower(known) == lower(&room)) {
            rooms.push(room);
        }
    }
}

fn ordered(ranks: &RankedSituation) -> OrderedAnswer<'_> {
    OrderedAnswer { rows: &ranks.rows, policy: ranks.policy.as_ref() }
}

/// The column with the owner of a row.
fn owner_column(kind: Entity) -> &'static str {
    if kind == Entity::Case { "profile_id" } else { "agent_id" }
}

/// The columns that name a row, and those with its owner and place.
fn columns_of(kind: Entity) -> &'static [&'static str] {
    match kind {
        Entity::Case => &["id", "profile_id", "user_id", "prompt", "created_at"],
        Entity::Memory => &["id", "user_id", "title", "text", "collection", "metadata", "created_at"],
        Entity::Policy => &["id", "profile_id", "version", "trained_at"],
        _ => &["id", "agent_id", "user_id", "title", "summary", "observation", "domain", "topic", "started_at"],
    }
}
