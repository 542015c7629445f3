//! The rows that an evaluation ranks, read once: reduced rows with their words, vectors and outcomes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;

use serde_json::Value;

use super::super::banked::{PoliciesInUse, UnusablePolicy, named, policies_in_use};
use super::super::memory_uses::{EpisodeWorth, MemoryUses};
use super::super::recall::never_recalled;
use super::super::situation::ResolvedQuestion;
use super::super::{LabError, RecallRequest, Told, each, kind_of};
use super::EvaluationRequest;
use crate::memory::query::Query;
use crate::memory::vector::has_direction;
use crate::memory::{Entity, Row, reward, time};
use crate::recall::among::Eligibility;
use crate::recall::answer::{PolicyChoice, choice};
use crate::recall::features::{case_text, tags, words};
use crate::recall::inquiry::Inquiry;
use crate::recall::judge::file::{JudgedQuery, JudgedQuestion};
use crate::recall::keyword::ComparedText;
use crate::recall::policy::Policy;
use crate::recall::rank::Ranking;
use crate::recall::understand::quality::completion;
use crate::store::Store;

/// Most of an owner's newest rows that are searched.
pub const POOL: usize = 2_000;
/// Most rows held across all owners; an item takes about 8 KB.
pub const HELD: usize = 10_000;
/// Rows read beyond [`HELD`] before the oldest are dropped.
const SLACK: usize = 2_000;

/// Columns that are read for their words and then dropped.
const TEXTS: [&str; 7] = ["prompt", "title", "summary", "detail", "observation", "result", "text"];

/// A row that can be recalled.
pub struct BankItem {
    /// Columns of the row that rankings use; its texts are dropped.
    pub row: Row,
    /// Owner of the item: an agent or a bank; `None` for a memory that belongs to everybody.
    pub owner: Option<String>,
    /// The words by which it is found.
    pub words: BTreeSet<String>,
    /// The words of a case's question alone, as policies see them.
    pub told: BTreeSet<String>,
    /// Tags and topic in lower case.
    pub topics: BTreeSet<String>,
    /// Outcome of the item, in 0..1; `None` if unknown.
    pub went: Option<f64>,
    /// Whether its outcome is bad; `None` if unknown.
    pub bad: Option<bool>,
    /// Microseconds of its time.
    pub at: Option<i64>,
    /// Vector of the item; empty if it has none.
    pub vector: Vec<f32>,
}

impl BankItem {
    fn of(mut row: Row, ranking: Ranking) -> Self {
        let text = |column: &str| row.text(column).map(str::to_owned);
        let owner = match row.entity {
            Entity::Case => Some(text("profile_id").unwrap_or_default()),
            Entity::Memory => text("agent_id"),
            _ => Some(text("agent_id").unwrap_or_default()),
        };
        let mut topics = tags(&row);
        let (went, bad) = if row.entity == Entity::Case {
            let went = row.number("reward");
            (went, went.map(|r| !reward::label(r)))
        } else {
            topics.extend(row.text("topic").map(str::to_lowercase));
            let went = row.text("outcome").filter(|o| !matches!(*o, "unknown" | "ongoing")).map(completion);
            (went, row.number("feedback_score").map(|score| score < 0.0))
        };
        let said = ComparedText::of_ranking(ranking, row.entity).of(&row);
        let told = if row.entity == Entity::Case { words(&case_text(&row)) } else { BTreeSet::new() };
        let at = row.text(row.entity.time_column()).and_then(time::epoch_micros);
        TEXTS.iter().for_each(|column| row.set(column, Value::Null));
        BankItem { row, owner, words: words(&said), told, topics, went, bad, at, vector: Vec::new() }
    }

    /// Whether it is known to have gone well.
    pub fn went_well(&self) -> bool {
        self.went.is_some_and(reward::label)
    }

    /// Returns the id of the item.
    pub fn id(&self) -> &str {
        self.row.id()
    }

    /// Returns the unique key of the item: its entity and its id.
    pub fn key(&self) -> (Entity, &str) {
        (self.row.entity, self.row.id())
    }
}

/// Rows by owner, newest first, with the data for ranking them.
pub struct OwnerBank {
    /// Ranking of the items.
    pub ranking: Ranking,
    /// The named policy, and the bank who owns it.
    pub named: Option<(Policy, Option<String>)>,
    /// The policies that the banks' readers use, by bank.
    pub in_use: HashMap<String, Policy>,
    /// The policies in use that cannot rank.
    pub unusable: Vec<UnusablePolicy>,
    /// The newest rows, the newest first, and those that judged queries name.
    pub items: Vec<BankItem>,
    /// Number of rows that were read, by kind.
    pub read: BTreeMap<Entity, usize>,
    /// Number of rows among these, of all kinds, that the ranking may return: see [`Eligibility`].
    pub candidates: usize,
    /// Entities that are ranked, the main one first.
    pub kinds: Vec<Entity>,
    /// Owner columns that memories lack.
    ownerless: Vec<&'static str>,
    /// Position of each row by its id; if an episode and a memory have the same id, that of the ranking's main entity.
    pub by_id: HashMap<String, usize>,
    of_owner: BTreeMap<Option<String>, Vec<usize>>,
    /// Rows of other kinds that judged queries are asked with, by their ids.
    asked_with: HashMap<String, BankItem>,
    uses: MemoryUses,
    never: Vec<String>,
}

impl OwnerBank {
    /// Reads the rows that a ranking ranks.
    pub async fn read(
        store: &Store,
        ask: &EvaluationRequest,
        ranking: Ranking,
        told: Told<'_>,
    ) -> Result<Self, LabError> {
        let mut policies = PoliciesInUse::default();
        let named = match choice(ask.policy.as_deref()) {
            PolicyChoice::Named(id) => Some(named(store, id).await.map(|(_, policy, profile)| (policy, profile))?),
            PolicyChoice::InUse if ranking == Ranking::Cases => {
                policies = policies_in_use(store, told).await?;
                None
            }
            PolicyChoice::InUse | PolicyChoice::Likeness => None,
        };
        let counts_uses = ranking == Ranking::Proven && store.sources_of(Entity::MemoryLink).is_ok();
        let mut worth = EpisodeWorth::default();
        let never = never_recalled(store);
        let rule = eligibility(ranking, &never);
        let mut newest = NewestItems::of(ask.judged.as_deref());
        let kinds = kinds(store, ranking);
        let memories = store.sources_of(Entity::Memory).unwrap_or_default();
        let mut ownerless = vec!["agent_id", "user_id"];
        ownerless.retain(|column| memories.iter().all(|source| source.column(column).is_empty()));
        for kind in &kinds {
            let mut query = Query::new(*kind);
            query.columns = Some(columns(*kind).to_vec());
            each(store, &query, told, |row| {
                if counts_uses && row.entity == Entity::Episode {
                    worth.add(&row);
                }
                newest.add(row, &rule);
            })
            .await?;
        }
        let uses = if counts_uses { MemoryUses::read(store, worth).await? } else { MemoryUses::default() };
        newest.let_go();
        let NewestItems { items, read, candidates, .. } = newest;
        let mut of_owner: BTreeMap<Option<String>, Vec<usize>> = BTreeMap::new();
        for (i, item) in items.iter().enumerate() {
            of_owner.entry(item.owner.clone()).or_default().push(i);
        }
        let mut by_id = HashMap::new();
        for kind in &kinds {
            for (i, item) in items.iter().enumerate().filter(|(_, item)| item.row.entity == *kind) {
                by_id.entry(item.id().to_owned()).or_insert(i);
            }
        }
        let (PoliciesInUse { by_bank: in_use, unusable }, asked_with) = (policies, HashMap::new());
        let bank = OwnerBank {
            ranking,
            named,
            in_use,
            unusable,
            items,
            read,
            candidates,
            kinds,
            ownerless,
            by_id,
            of_owner,
            asked_with,
            uses,
            never,
        };
        Ok(bank)
    }

    /// Returns the main entity of the ranking.
    pub fn kind(&self) -> Entity {
        self.kinds.first().copied().unwrap_or(Entity::Episode)
    }

    /// Whether a row without an owner is recalled for everybody: a memory beside episodes, or if no memory has an
    /// owner.
    pub fn is_everybodys(&self, item: &BankItem, column: &'static str) -> bool {
        item.row.entity == Entity::Memory && (self.kinds.len() > 1 || self.ownerless.contains(&column))
    }

    /// Reads the vectors of the searched rows: the newest of each owner.
    pub async fn take_vectors(&mut self, store: &Store, kind: Entity) -> Result<(), LabError> {
        let searched = self.searched();
        let of_kind = searched.iter().filter_map(|i| self.item(*i)).filter(|item| item.row.entity == kind);
        let ids: Vec<String> = of_kind.map(|item| item.id().to_owned()).collect();
        for (id, vector) in store.embeddings().vectors(kind, &ids).await? {
            if let Some(item) =
                self.by_id.get(&id).and_then(|i| self.items.get_mut(*i)).filter(|item| item.row.entity == kind)
            {
                item.vector = vector;
            }
        }
        Ok(())
    }

    /// Reads the rows of other kinds that judged queries are asked with, as recall does. Vectors have to be read before.
    pub async fn take_asked(&mut self, store: &Store, queries: &[JudgedQuery]) -> Result<(), LabError> {
        for query in queries {
            let JudgedQuestion::Like(id) = &query.asked else { continue };
            if self.asked_with(id).is_some() {
                continue;
            }
            let inquiry = Inquiry { like: Some(id.clone()), ..Inquiry::new(self.ranking) };
            let request = RecallRequest { inquiry, ..RecallRequest::default() };
            let asked = match ResolvedQuestion::of(store, &request, self.kind()).await {
                Err(LabError::NotFound(_)) => continue,
                asked => asked?,
            };
            let Some(row) = asked.row else { continue };
            // Words are compared where a vector cannot be.
            let fits = |vector: &Vec<f32>| {
                has_direction(vector) && self.items.iter().any(|item| item.vector.len() == vector.len())
            };
            let vector = asked.vector.filter(fits).unwrap_or_default();
            self.asked_with.insert(id.clone(), BankItem { vector, ..BankItem::of(row, self.ranking) });
        }
        Ok(())
    }

    /// A row that a judged query is asked with.
    pub fn asked_with(&self, id: &str) -> Option<&BankItem> {
        self.named(id).or_else(|| self.asked_with.get(id))
    }

    /// Number of rows that were read, of all kinds.
    pub fn len(&self) -> usize {
        self.read.values().sum()
    }

    /// Whether the ranking may return a row: recall holds some back.
    pub fn gives(&self, item: &BankItem) -> bool {
        eligibility(self.ranking, &self.never).takes(&item.row)
    }

    /// A row by its place.
    pub fn item(&self, i: usize) -> Option<&BankItem> {
        self.items.get(i)
    }

    /// A row by its id.
    pub fn named(&self, id: &str) -> Option<&BankItem> {
        self.by_id.get(id).and_then(|i| self.item(*i))
    }

    /// The entity and the id that a bare id refers to, even if there is no such row.
    pub fn meant<'i>(&self, id: &'i str) -> (Entity, &'i str) {
        let kind = self.named(id).map_or_else(|| self.kind(), |item| item.row.entity);
        (kind, id)
    }

    /// The owners. If memories are ranked, those without an owner count as an owner without a name.
    pub fn owners(&self) -> Vec<&str> {
        let nameless = self.kind() == Entity::Memory;
        let owners = self.of_owner.keys().filter(|owner| nameless || owner.is_some());
        owners.map(|owner| owner.as_deref().unwrap_or_default()).collect()
    }

    /// The rows ranked for an owner: the owner's newest, and those of everybody, newest first.
    pub fn pool(&self, owner: &str) -> Vec<usize> {
        let newest = |owner: Option<&str>| {
            let all = self.of_owner.get(&owner.map(str::to_owned)).map(Vec::as_slice).unwrap_or_default();
            all.get(..POOL.min(all.len())).unwrap_or_default()
        };
        let nobodys = if self.kinds.len() > 1 || owner.is_empty() { newest(None) } else { &[] };
        let mut pool = [newest(Some(owner)), nobodys].concat();
        pool.sort_unstable();
        pool
    }

    /// All searched rows, newest first: those with an owner, and ranked memories.
    pub fn searched(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.owners().into_iter().flat_map(|owner| self.pool(owner)).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|i| self.item(*i).is_some_and(|item| item.owner.is_some() || item.row.entity == self.kind()));
        all
    }

    /// Time of the newest row.
    pub fn newest(&self) -> Option<i64> {
        self.items.first().and_then(|item| item.at)
    }

    /// The policy that ranks an owner's cases: the named one, else that of the bank.
    pub fn policy_of(&self, owner: &str) -> Option<&Policy> {
        self.named.as_ref().map(|(policy, _)| policy).or_else(|| self.in_use.get(owner))
    }

    /// Fails if the utility of a row could not be read.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn check(&self) -> io::Result<()> {
        self.uses.check()
    }

    /// Utility of a row, for proven relevance.
    pub fn utility(&self, row: &Row) -> Option<f64> {
        self.uses.utility(row)
    }
}

/// Collects the newest items from rows in any order.
struct NewestItems {
    /// Ids in judged queries: these items are kept, however old.
    named: HashSet<String>,
    /// Most items of an owner.
    of_owner: usize,
    items: Vec<BankItem>,
    /// Time before which no more items are accepted.
    floor: Option<i64>,
    read: BTreeMap<Entity, usize>,
    candidates: usize,
}

impl NewestItems {
    /// Judged queries search all items held; stored outcomes use each owner's newest.
    fn of(judged: Option<&[JudgedQuery]>) -> Self {
        let named = judged.unwrap_or_default().iter().flat_map(|query| {
            let like = match &query.asked {
                JudgedQuestion::Like(id) => Some(id),
                JudgedQuestion::Text(_) => None,
            };
            query.relevant.keys().chain(like).cloned()
        });
        NewestItems {
            named: named.collect(),
            of_owner: if judged.is_some() { HELD } else { POOL },
            items: Vec::new(),
            floor: None,
            read: BTreeMap::new(),
            candidates: 0,
        }
    }

    fn add(&mut self, row: Row, rule: &Eligibility<'_>) {
        *self.read.entry(row.entity).or_default() += 1;
        self.candidates += usize::from(rule.takes(&row));
        let at = row.text(row.entity.time_column()).and_then(time::epoch_micros);
        if at < self.floor && !self.named.contains(row.id()) {
            return;
        }
        self.items.push(BankItem::of(row, rule.ranking));
        if self.items.len() >= HELD + self.named.len() + SLACK {
            self.let_go();
        }
    }

    /// Sorts the items, newest first, and drops the oldest.
    fn let_go(&mut self) {
        self.items.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.id().cmp(b.id())));
        let mut held = 0;
        let mut of_owner: HashMap<Option<String>, usize> = HashMap::new();
        let mut floor = None;
        let (named, most) = (&self.named, self.of_owner);
        self.items.retain(|item| {
            let of_owner = of_owner.entry(item.owner.clone()).or_default();
            if held < HELD && *of_owner < most {
                (held, *of_owner) = (held + 1, *of_owner + 1);
                floor = item.at;
                return true;
            }
            named.contains(item.id())
        });
        self.floor = if held == HELD { floor } else { self.floor };
    }
}

/// Decides which rows are recalled in trials. These are asked at many moments: no memory has expired for them.
fn eligibility(ranking: Ranking, never: &[String]) -> Eligibility<'_> {
    Eligibility { ranking, all_outcomes: false, at: "", never }
}

/// Returns the entities that a ranking ranks, the main one first.
fn kinds(store: &Store, ranking: Ranking) -> Vec<Entity> {
    match (ranking, kind_of(store, ranking)) {
        (Ranking::Proven, Entity::Memory) => vec![Entity::Memory, Entity::Episode],
        (Ranking::Proven, _) => vec![Entity::Episode, Entity::Memory],
        (_, kind) => vec![kind],
    }
}

fn columns(kind: Entity) -> &'static [&'static str] {
    match kind {
        Entity::Case => {
            &["profile_id", "agent_id", "user_id", "prompt", "outcome", "reward", "tags", "created_at", "quarantined"]
        }
        Entity::Memory => &[
            "title", "text", "collection", "tags", "metadata", "status", "created_at", "utility", "agent_id", "user_id",
        ],
        _ => &[
            "agent_id", "user_id", "title", "summary", "detail", "observation", "result", "success", "tags", "topic",
            "domain", "workflow_name", "outcome", "status", "utility", "canvas_action_count", "feedback_score",
            "started_at",
        ],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_newest_rows_are_held_and_those_that_a_judged_query_names() {
        let judged = [JudgedQuery {
            asked: JudgedQuestion::Text("per diem".to_owned()),
            relevant: BTreeMap::from([("ep_0".to_owned(), 1.0)]),
            agent: None,
            user: None,
        }];
        let rows = 2 * (HELD + SLACK);
        for (judged, held) in [(Some(&judged[..]), HELD + 1), (None, POOL)] {
            let mut newest = NewestItems::of(judged);
            for n in 0..rows {
                let mut row = Row::empty(Entity::Episode);
                row.set("id", json!(format!("ep_{n}")));
                row.set("agent_id", json!("clerk"));
                row.set("started_at", json!(time::from_epoch(n as i64, time::EpochUnit::Seconds)));
                newest.add(row, &eligibility(Ranking::Boosted, &[]));
                assert!(newest.items.len() <= HELD + SLACK + 1, "{n}");
            }
            newest.let_go();
            assert_eq!((newest.items.len(), newest.read[&Entity::Episode]), (held, rows));
            assert_eq!(newest.items[0].id(), format!("ep_{}", rows - 1));
            assert_eq!(newest.items.iter().any(|item| item.id() == "ep_0"), judged.is_some());
        }
    }
}
