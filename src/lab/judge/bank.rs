//! The rows that an evaluation ranks, read once: light rows with their words, vectors and what became of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::super::banked::{highest_active, named};
use super::super::memory_uses::{EpisodeWorth, MemoryUses};
use super::super::{LabError, Told, each};
use super::EvaluationRequest;
use crate::memory::query::Query;
use crate::memory::{Entity, Row, reward, time};
use crate::recall::answer::{PolicyChoice, choice};
use crate::recall::features::{case_text, tags, words};
use crate::recall::keyword::ComparedText;
use crate::recall::policy::Policy;
use crate::recall::rank::Ranking;
use crate::recall::understand::quality::completion;
use crate::store::Store;

/// Newest rows of an owner that are searched at most.
pub const POOL: usize = 2_000;
/// Vectors that are held at most.
const VECTORS: usize = 10_000;

/// Columns that are read for their words and then let go.
const TEXTS: [&str; 7] = ["prompt", "title", "summary", "detail", "observation", "result", "text"];

/// A row that can be recalled.
pub struct BankItem {
    /// What rankings look at of it; its texts are let go.
    pub row: Row,
    /// Whose it is; none for a memory, which is everybody's.
    pub owner: Option<String>,
    /// The words by which it is found.
    pub words: BTreeSet<String>,
    /// The words of a case's question alone, as policies see them.
    pub told: BTreeSet<String>,
    /// Tags and topic in lower case.
    pub topics: BTreeSet<String>,
    /// How it went, in 0..1, where that is known.
    pub went: Option<f64>,
    /// Whether what is known of it is bad.
    pub bad: Option<bool>,
    /// Microseconds of its time.
    pub at: Option<i64>,
    /// Its vector; empty where it has none.
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

    /// Its id.
    pub fn id(&self) -> &str {
        self.row.id()
    }
}

/// Rows by owner, the newest first, with what their ranking needs.
pub struct OwnerBank {
    /// How they are ranked.
    pub ranking: Ranking,
    /// The named policy, and the bank whose it is.
    pub named: Option<(Policy, Option<String>)>,
    /// The policies that the banks' readers use, by bank.
    pub in_use: HashMap<String, Policy>,
    /// The rows, the newest first.
    pub items: Vec<BankItem>,
    /// Place of each row by its id.
    pub by_id: HashMap<String, usize>,
    of_owner: BTreeMap<Option<String>, Vec<usize>>,
    uses: MemoryUses,
}

impl OwnerBank {
    /// Reads the rows that a ranking ranks.
    pub async fn read(
        store: &Store,
        ask: &EvaluationRequest,
        ranking: Ranking,
        told: Told<'_>,
    ) -> Result<Self, LabError> {
        let mut bank_policies = HashMap::new();
        let named = match choice(ask.policy.as_deref()) {
            PolicyChoice::Named(id) => Some(named(store, id).await.map(|(_, policy, profile)| (policy, profile))?),
            PolicyChoice::InUse if ranking == Ranking::Cases => {
                bank_policies = policies_in_use(store, told).await?;
                None
            }
            PolicyChoice::InUse | PolicyChoice::Likeness => None,
        };
        let mut items = Vec::new();
        for kind in kinds(ranking) {
            let mut query = Query::new(*kind);
            query.columns = Some(columns(*kind).to_vec());
            each(store, &query, told, |row| items.push(BankItem::of(row, ranking))).await?;
        }
        let uses = if ranking == Ranking::Proven && store.sources_of(Entity::MemoryLink).is_ok() {
            let episodes: Vec<Row> =
                items.iter().map(|i| &i.row).filter(|r| r.entity == Entity::Episode).cloned().collect();
            let mut worth = EpisodeWorth::default();
            episodes.iter().for_each(|episode| worth.add(episode));
            MemoryUses::read(store, worth).await?
        } else {
            MemoryUses::default()
        };
        items.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.id().cmp(b.id())));
        let mut of_owner: BTreeMap<Option<String>, Vec<usize>> = BTreeMap::new();
        for (i, item) in items.iter().enumerate() {
            of_owner.entry(item.owner.clone()).or_default().push(i);
        }
        let by_id = items.iter().enumerate().map(|(i, item)| (item.id().to_owned(), i)).collect();
        Ok(OwnerBank { ranking, named, in_use: bank_policies, items, by_id, of_owner, uses })
    }

    /// Reads the vectors of the rows that are searched: of each owner's newest, and not more than [`VECTORS`] in all.
    pub async fn take_vectors(&mut self, store: &Store, kind: Entity, notes: &mut Vec<String>) -> Result<(), LabError> {
        let mut wanted = self.searched();
        if wanted.len() > VECTORS {
            wanted.truncate(VECTORS);
            notes.push(format!("the vectors of the newest {VECTORS} rows are compared"));
        }
        let ids: Vec<String> = wanted.iter().filter_map(|i| self.item(*i)).map(|item| item.id().to_owned()).collect();
        for (id, vector) in store.embeddings().vectors(kind, &ids).await? {
            if let Some(item) = self.by_id.get(&id).and_then(|i| self.items.get_mut(*i)) {
                item.vector = vector;
            }
        }
        Ok(())
    }

    /// A row by its place.
    pub fn item(&self, i: usize) -> Option<&BankItem> {
        self.items.get(i)
    }

    /// A row by its id.
    pub fn named(&self, id: &str) -> Option<&BankItem> {
        self.by_id.get(id).and_then(|i| self.item(*i))
    }

    /// The owners; a memory may have none.
    pub fn owners(&self) -> Vec<&str> {
        self.of_owner.keys().flatten().map(String::as_str).collect()
    }

    /// Rows of the owner who has most.
    pub fn largest(&self) -> usize {
        self.of_owner.values().map(Vec::len).max().unwrap_or_default()
    }

    /// The rows that an owner's recall ranks: the owner's newest, and what is everybody's; the newest first.
    pub fn pool(&self, owner: &str) -> Vec<usize> {
        let newest = |owner: Option<&str>| {
            let all = self.of_owner.get(&owner.map(str::to_owned)).map(Vec::as_slice).unwrap_or_default();
            all.get(..POOL.min(all.len())).unwrap_or_default()
        };
        let mut pool = [newest(Some(owner)), newest(None)].concat();
        pool.sort_unstable();
        pool
    }

    /// The rows with an owner that are searched at all, the newest first.
    pub fn searched(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.owners().into_iter().flat_map(|owner| self.pool(owner)).collect();
        all.sort_unstable();
        all.dedup();
        all.retain(|i| self.item(*i).is_some_and(|item| item.owner.is_some()));
        all
    }

    /// Time of the newest row.
    pub fn newest(&self) -> Option<i64> {
        self.items.first().and_then(|item| item.at)
    }

    /// The policy that ranks some cases: the named one, else that of their bank where they are of one bank.
    pub fn policy_of<'i>(&self, mut items: impl Iterator<Item = &'i BankItem>) -> Option<&Policy> {
        if let Some((policy, _)) = &self.named {
            return Some(policy);
        }
        let bank = items.next()?.owner.as_deref()?;
        items.all(|item| item.owner.as_deref() == Some(bank)).then(|| self.in_use.get(bank)).flatten()
    }

    /// Utility of a row, as proven relevance takes it.
    pub fn utility(&self, row: &Row) -> Option<f64> {
        self.uses.utility(row)
    }
}

/// The policies in use, by bank; none where policies are not kept.
async fn policies_in_use(store: &Store, told: Told<'_>) -> Result<HashMap<String, Policy>, LabError> {
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    each(store, &Query::new(Entity::Policy), told, |row| {
        if let Some(bank) = row.text("profile_id").map(str::to_owned) {
            rows.entry(bank).or_default().push(row);
        }
    })
    .await?;
    let usable = |rows: &[Row]| Policy::parse(highest_active(rows)?.get("weights")).ok();
    Ok(rows.into_iter().filter_map(|(bank, rows)| Some((bank, usable(&rows)?))).collect())
}

/// What a ranking ranks.
fn kinds(ranking: Ranking) -> &'static [Entity] {
    match ranking {
        Ranking::Cases => &[Entity::Case],
        Ranking::Proven => &[Entity::Episode, Entity::Memory],
        Ranking::Boosted | Ranking::Similar => &[Entity::Episode],
    }
}

fn columns(kind: Entity) -> &'static [&'static str] {
    match kind {
        Entity::Case => {
            &["profile_id", "agent_id", "user_id", "prompt", "outcome", "reward", "tags", "created_at", "quarantined"]
        }
        Entity::Memory => &["title", "collection", "metadata", "created_at", "utility", "agent_id", "user_id"],
        _ => &[
            "agent_id",
            "user_id",
            "title",
            "summary",
            "detail",
            "observation",
            "result",
            "success",
            "tags",
            "topic",
            "domain",
            "workflow_name",
            "outcome",
            "utility",
            "canvas_action_count",
            "feedback_score",
            "started_at",
        ],
    }
}
