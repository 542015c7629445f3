//! Judges recall on a memory: on judged queries of a file or on stored outcomes, and what it does to the memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{LabError, Told, each};
use crate::memory::query::Query;
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row, reward, time};
use crate::recall::features::{case_text, overlap, tags, words};
use crate::recall::judge::file::{self, Asked};
use crate::recall::judge::latency::{Access, trail};
use crate::recall::judge::ranked::{DEPTH, Judged, estimate, quality};
use crate::recall::judge::report::{Control, Evaluation, Returned, Stored};
use crate::recall::judge::spread::{ALIKE, Recall, Recalled, spread};
use crate::recall::learn::split::Random;
use crate::recall::understand::quality::completion;
use crate::store::{Store, StoreError};

/// Newest rows of an owner that are searched at most.
const POOL: usize = 2_000;
/// Vectors that are held at most.
const VECTORS: usize = 10_000;
/// Stored rows that are asked as queries at most.
const QUERIES: usize = 200;
/// Nonsense queries.
const CONTROLS: usize = 50;
/// Cosine above which an answer to nonsense is a failure, as for topics.
const THRESHOLD: f64 = 0.5;
/// Words of a nonsense query.
const NONSENSE_WORDS: usize = 6;

/// What is asked of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Cases or episodes; found out when none is said.
    pub kind: Option<Entity>,
    /// Rows that count.
    pub k: usize,
    /// Seed of samples, controls and intervals.
    pub seed: u64,
    /// Judged queries; stored outcomes when none are given.
    pub judged: Option<Vec<file::Query>>,
}

/// A row that can be recalled.
struct Item {
    id: String,
    owner: String,
    agent: Option<String>,
    user: Option<String>,
    words: BTreeSet<String>,
    topics: BTreeSet<String>,
    went: Option<f64>,
    bad: Option<bool>,
    at: Option<i64>,
    vector: Vec<f32>,
}

impl Item {
    fn of(row: &Row) -> Self {
        let text = |column: &str| row.text(column).map(str::to_owned);
        let (agent, user) = (text("agent_id"), text("user_id"));
        let owner = match row.entity {
            Entity::Case => text("profile_id"),
            _ => agent.clone(),
        };
        let mut topics = tags(row);
        let (said, went, bad) = if row.entity == Entity::Case {
            let went = row.number("reward");
            (case_text(row), went, went.map(|r| !reward::label(r)))
        } else {
            topics.extend(row.text("topic").map(str::to_lowercase));
            let told = ["title", "summary", "detail", "observation"].iter().filter_map(|c| row.text(c));
            let went = row.text("outcome").filter(|o| !matches!(*o, "unknown" | "ongoing")).map(completion);
            (told.collect::<Vec<_>>().join("\n"), went, row.number("feedback_score").map(|score| score < 0.0))
        };
        Item {
            id: row.id().to_owned(),
            owner: owner.unwrap_or_default(),
            agent,
            user,
            words: words(&said),
            topics,
            went,
            bad,
            at: row.text(row.entity.time_column()).and_then(time::epoch_micros),
            vector: Vec::new(),
        }
    }

    fn went_well(&self) -> bool {
        self.went.is_some_and(reward::label)
    }
}

/// Rows by owner, the newest first.
struct Memory {
    items: Vec<Item>,
    of_owner: BTreeMap<String, Vec<usize>>,
    by_id: HashMap<String, usize>,
}

impl Memory {
    fn new(mut items: Vec<Item>) -> Self {
        items.sort_by(|a, b| b.at.cmp(&a.at).then_with(|| a.id.cmp(&b.id)));
        let mut of_owner: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, item) in items.iter().enumerate() {
            of_owner.entry(item.owner.clone()).or_default().push(i);
        }
        let by_id = items.iter().enumerate().map(|(i, item)| (item.id.clone(), i)).collect();
        Memory { items, of_owner, by_id }
    }

    /// Reads the vectors of the rows that are searched: of each owner's newest, and not more than [`VECTORS`] in all.
    async fn take_vectors(&mut self, store: &Store, kind: Entity, notes: &mut Vec<String>) -> Result<(), StoreError> {
        let mut wanted = self.searched();
        if wanted.len() > VECTORS {
            wanted.truncate(VECTORS);
            notes.push(format!("the vectors of the newest {VECTORS} rows are compared"));
        }
        let ids: Vec<String> = wanted.iter().filter_map(|i| self.item(*i)).map(|item| item.id.clone()).collect();
        for (id, vector) in store.vectors(kind, &ids).await? {
            if let Some(item) = self.by_id.get(&id).and_then(|i| self.items.get_mut(*i)) {
                item.vector = vector;
            }
        }
        Ok(())
    }

    /// The rows that are searched at all, the newest first.
    fn searched(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.of_owner.keys().flat_map(|owner| self.owned(owner).to_vec()).collect();
        all.sort_unstable();
        all
    }

    fn owned(&self, owner: &str) -> &[usize] {
        let all = self.of_owner.get(owner).map(Vec::as_slice).unwrap_or_default();
        all.get(..POOL.min(all.len())).unwrap_or_default()
    }

    fn item(&self, i: usize) -> Option<&Item> {
        self.items.get(i)
    }
}

/// A query: words, and a vector where there is one.
struct Probe<'a> {
    words: &'a BTreeSet<String>,
    vector: &'a [f32],
}

fn similarity(probe: &Probe<'_>, item: &Item) -> Option<f64> {
    if probe.vector.is_empty() {
        Some(overlap(probe.words, &item.words)).filter(|o| *o > 0.0)
    } else {
        cosine_of(probe.vector, &item.vector)
    }
}

/// Ranks a pool: best first, ties newer first; what says the same as a chosen row gives way.
fn rank<'m>(memory: &'m Memory, probe: &Probe<'_>, pool: impl Iterator<Item = usize>, most: usize) -> Vec<&'m Item> {
    let mut scored: Vec<(f64, usize)> = pool.filter_map(|i| Some((similarity(probe, memory.item(i)?)?, i))).collect();
    // Rows stand newest first, so that the number decides ties.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut chosen: Vec<&Item> = Vec::new();
    for (_, i) in scored {
        let Some(item) = memory.item(i) else { continue };
        if chosen.iter().all(|c| cosine_of(&c.vector, &item.vector).is_none_or(|s| s <= ALIKE)) {
            chosen.push(item);
        }
        if chosen.len() == most {
            break;
        }
    }
    chosen
}

async fn read(store: &Store, kind: Entity, told: Told<'_>) -> Result<Vec<Item>, StoreError> {
    let mut query = Query::new(kind);
    query.columns = Some(match kind {
        Entity::Case => {
            vec!["profile_id", "agent_id", "user_id", "prompt", "reward", "tags", "created_at", "quarantined"]
        }
        _ => vec![
            "agent_id",
            "user_id",
            "title",
            "summary",
            "detail",
            "observation",
            "tags",
            "topic",
            "outcome",
            "feedback_score",
            "started_at",
        ],
    });
    let mut items = Vec::new();
    each(store, &query, told, |row| {
        if row.get("quarantined").as_bool() != Some(true) {
            items.push(Item::of(&row));
        }
    })
    .await?;
    Ok(items)
}

/// The kind that judgements speak of: that of the first relevant id that is there; else cases where there are any.
async fn find_kind(store: &Store, ask: &Ask) -> Result<Entity, LabError> {
    let kinds = [Entity::Case, Entity::Episode].map(|kind| (kind, store.sources_of(kind).is_ok()));
    if let Some(kind) = ask.kind {
        store.sources_of(kind)?;
        return Ok(kind);
    }
    let there: Vec<Entity> = kinds.iter().filter(|(_, there)| *there).map(|(kind, _)| *kind).collect();
    let named = ask.judged.iter().flatten().flat_map(|q| q.relevant.keys()).take(20);
    for id in named {
        for kind in &there {
            if store.row(*kind, id).await?.is_some() {
                return Ok(*kind);
            }
        }
    }
    for kind in &there {
        let mut query = Query::new(*kind);
        (query.limit, query.columns) = (1, Some(vec!["id"]));
        if !store.page(&query).await?.rows.is_empty() {
            return Ok(*kind);
        }
    }
    Err(LabError::Refused("there are neither cases nor episodes to judge recall by".to_owned()))
}

/// A ranking with what it was judged by.
struct Trial {
    judged: Judged,
    recall: Recall,
}

fn trial(memory: &Memory, ranked: &[&Item], relevant: &BTreeMap<String, f64>, k: usize, at: Option<i64>) -> Trial {
    let ids: Vec<String> = ranked.iter().map(|i| i.id.clone()).collect();
    let top = ranked.get(..k.min(ranked.len())).unwrap_or_default();
    let newest = memory.items.first().and_then(|i| i.at);
    let rows = top.iter().map(|i| recalled(i, at.or(newest))).collect();
    Trial { judged: Judged::of(&ids, relevant), recall: Recall { rows, alike: pairs(top) } }
}

fn recalled(item: &Item, at: Option<i64>) -> Recalled {
    let age_days = at.zip(item.at).map(|(now, then)| (now - then) as f64 / 86_400e6);
    Recalled { id: item.id.clone(), age_days, bad: item.bad }
}

fn pairs(items: &[&Item]) -> Vec<f64> {
    let one = |a: &Item, b: &Item| cosine_of(&a.vector, &b.vector).unwrap_or_else(|| overlap(&a.words, &b.words));
    items.iter().enumerate().flat_map(|(i, a)| items.iter().skip(i + 1).map(move |b| one(a, b))).collect()
}

/// Stored rows as queries: of each owner's rows those that were there before.
fn stored_trials(memory: &Memory, k: usize, seed: u64) -> Vec<Trial> {
    let asked = sample(memory, seed);
    asked
        .iter()
        .filter_map(|i| memory.item(*i))
        .map(|query| {
            let before = || {
                memory
                    .owned(&query.owner)
                    .iter()
                    .copied()
                    .filter(|i| memory.item(*i).is_some_and(|other| other.at < query.at && other.id != query.id))
            };
            let fits = |other: &&Item| {
                let shared = query.topics.is_empty() || !query.topics.is_disjoint(&other.topics);
                other.went_well() && shared
            };
            let relevant: BTreeMap<String, f64> =
                before().filter_map(|i| memory.item(i)).filter(fits).map(|i| (i.id.clone(), 1.0)).collect();
            let probe = Probe { words: &query.words, vector: &query.vector };
            let ranked = rank(memory, &probe, before(), DEPTH.max(k));
            trial(memory, &ranked, &relevant, k, query.at)
        })
        .collect()
}

/// Rows to ask with, among those that are searched: up to [`QUERIES`], the same for the same seed.
fn sample(memory: &Memory, seed: u64) -> Vec<usize> {
    let mut all = memory.searched();
    let mut random = Random::new(seed);
    let wanted = QUERIES.min(all.len());
    for i in 0..wanted {
        let other = i + random.below(all.len() - i);
        all.swap(i, other);
    }
    all.truncate(wanted);
    all
}

fn judged_trials(memory: &Memory, queries: &[file::Query], k: usize, notes: &mut Vec<String>) -> Vec<Trial> {
    let (mut unknown, mut gone) = (0, BTreeSet::new());
    let mut trials = Vec::new();
    for query in queries {
        gone.extend(query.relevant.keys().filter(|id| !memory.by_id.contains_key(*id)));
        let text_words;
        let (probe, like) = match &query.asked {
            Asked::Text(text) => {
                text_words = words(text);
                (Probe { words: &text_words, vector: &[] }, None)
            }
            Asked::Like(id) => {
                let Some(item) = memory.by_id.get(id).and_then(|i| memory.item(*i)) else {
                    unknown += 1;
                    continue;
                };
                (Probe { words: &item.words, vector: &item.vector }, Some(item))
            }
        };
        let fits = |item: &Item| {
            let named = |asked: &Option<String>, own: &Option<String>| asked.is_none() || asked == own;
            named(&query.agent, &item.agent) && named(&query.user, &item.user)
        };
        let everything = query.agent.is_some() || query.user.is_some() || like.is_none();
        let pool = (0..memory.items.len()).filter(|i| {
            memory.item(*i).is_some_and(|item| {
                let own = everything || like.is_none_or(|l| l.owner == item.owner);
                own && fits(item) && like.is_none_or(|l| l.id != item.id)
            })
        });
        let ranked = rank(memory, &probe, pool, DEPTH.max(k));
        trials.push(trial(memory, &ranked, &query.relevant, k, None));
    }
    if unknown > 0 {
        notes.push(format!("{unknown} queries name a row that is not there: they are left out"));
    }
    if !gone.is_empty() {
        notes.push(format!("{} relevant rows are not there: they count as missed", gone.len()));
    }
    trials
}

fn self_retrieval(memory: &Memory, k: usize, seed: u64) -> Vec<Returned> {
    let asked: Vec<&Item> = sample(memory, seed).into_iter().filter_map(|i| memory.item(i)).collect();
    let by = |by: &'static str, usable: &dyn Fn(&Item) -> bool, vector: bool| {
        let asked: Vec<&&Item> = asked.iter().filter(|i| usable(i)).collect();
        let back = |item: &&&&Item| {
            let probe = Probe { words: &item.words, vector: if vector { &item.vector } else { &[] } };
            let pool = memory.owned(&item.owner).iter().copied();
            // A row of the very same text or vector is as good an answer.
            let same = |found: &&Item| {
                found.id == item.id || if vector { found.vector == item.vector } else { found.words == item.words }
            };
            rank(memory, &probe, pool, k).iter().any(same)
        };
        let found = asked.iter().filter(back).count();
        Returned { by, n: asked.len(), found, share: (!asked.is_empty()).then(|| found as f64 / asked.len() as f64) }
    };
    vec![by("text", &|i| !i.words.is_empty(), false), by("vector", &|i| i.vector.iter().any(|x| *x != 0.0), true)]
}

fn negative_controls(memory: &Memory, seed: u64) -> Vec<Control> {
    let mut random = Random::new(seed);
    let owners: Vec<&String> = memory.of_owner.keys().collect();
    let dimensions = memory.items.iter().map(|i| i.vector.len()).max().unwrap_or_default();
    let run = |by: &'static str, threshold: f64, probes: Vec<(BTreeSet<String>, Vec<f32>)>| {
        let mut best: Vec<f64> = Vec::new();
        for (i, (words, vector)) in probes.iter().enumerate() {
            let pool = owners.get(i % owners.len().max(1)).map(|o| memory.owned(o)).unwrap_or_default();
            let probe = Probe { words, vector };
            let scores = pool.iter().filter_map(|i| similarity(&probe, memory.item(*i)?));
            best.push(scores.fold(0.0, f64::max));
        }
        let answered = best.iter().filter(|b| **b > threshold).count();
        Control { by, n: probes.len(), answered, threshold, highest: best.into_iter().reduce(f64::max) }
    };
    let mut word = || -> String { (0..9).map(|_| char::from(b'a' + random.below(26) as u8)).collect() };
    let nonsense = (0..CONTROLS).map(|_| ((0..NONSENSE_WORDS).map(|_| word()).collect(), Vec::new())).collect();
    let mut controls = vec![run("text", 0.0, nonsense)];
    if dimensions > 0 {
        // The sum of uniform numbers is near enough to a bell curve: any direction is as likely.
        let mut number = || (0..6).map(|_| random.unit() - 0.5).sum::<f64>() as f32;
        let vectors = (0..CONTROLS).map(|_| (BTreeSet::new(), (0..dimensions).map(|_| number()).collect())).collect();
        controls.push(run("vector", THRESHOLD, vectors));
    }
    controls
}

async fn read_trail(store: &Store, memory: &Memory, ask: &Ask, told: Told<'_>) -> Result<Option<Stored>, StoreError> {
    let (k, seed) = (ask.k, ask.seed);
    let mut query = Query::new(Entity::Access);
    query.columns = Some(vec!["ids", "kind", "latency_ms", "tokens", "policy_version", "created_at"]);
    let (mut accesses, mut recalls) = (Vec::new(), Vec::new());
    let (mut hits, mut precisions) = (Vec::new(), Vec::new());
    let there = each(store, &query, told, |row| {
        let ids = row.list("ids");
        accesses.push(Access {
            kind: row.text("kind").unwrap_or_default().to_owned(),
            latency_ms: row.number("latency_ms"),
            tokens: row.get("tokens").as_i64(),
            rows: ids.len(),
            policy_version: row.get("policy_version").as_i64(),
        });
        let known: Vec<&Item> =
            ids.iter().filter_map(|id| memory.by_id.get(*id)).filter_map(|i| memory.item(*i)).collect();
        if ids.is_empty() || known.is_empty() {
            return;
        }
        let top = known.get(..k.min(known.len())).unwrap_or_default();
        let well = top.iter().filter(|i| i.went_well()).count();
        if top.iter().any(|i| i.went.is_some()) {
            hits.push(if well > 0 { 1.0 } else { 0.0 });
            precisions.push(well as f64 / top.len() as f64);
        }
        let at = row.text("created_at").and_then(time::epoch_micros);
        recalls.push(Recall { rows: top.iter().map(|i| recalled(i, at)).collect(), alike: pairs(top) });
    })
    .await?;
    Ok((there && !accesses.is_empty()).then(|| Stored {
        trail: trail(&accesses),
        hit_rate: estimate(&hits, seed),
        precision_at_k: estimate(&precisions, seed),
        spread: spread(&recalls, memory.items.len()),
    }))
}

/// Judges recall.
///
/// # Errors
/// [`LabError::Refused`] where there is nothing to judge by, or the engine's refusal.
pub async fn evaluate(store: &Store, ask: &Ask, told: Told<'_>) -> Result<Evaluation, LabError> {
    let kind = find_kind(store, ask).await?;
    if ask.judged.as_ref().is_some_and(Vec::is_empty) {
        return Err(LabError::Refused("the file holds no judged queries".to_owned()));
    }
    let items = read(store, kind, told).await?;
    if items.is_empty() {
        return Err(LabError::Refused(format!("there is no {} to judge recall by", kind.title())));
    }
    let mut notes = Vec::new();
    let mut memory = Memory::new(items);
    memory.take_vectors(store, kind, &mut notes).await?;
    let with_vector = memory.items.iter().filter(|i| !i.vector.is_empty()).count();
    let (judged_by, trials) = match &ask.judged {
        Some(queries) => (
            format!("{} judged queries of the file", queries.len()),
            judged_trials(&memory, queries, ask.k, &mut notes),
        ),
        None => (
            format!(
                "stored outcomes: up to {QUERIES} {} rows are asked as queries; relevant are older rows of the same owner \
                 that went well and share a tag or topic",
                kind.title()
            ),
            stored_trials(&memory, ask.k, ask.seed),
        ),
    };
    let largest = memory.of_owner.values().map(Vec::len).max().unwrap_or_default();
    if largest > POOL && ask.judged.is_none() {
        notes.push(format!("of an owner with more than {POOL} rows the newest {POOL} are searched"));
    }
    let (judged, recalls): (Vec<Judged>, Vec<Recall>) = trials.into_iter().map(|t| (t.judged, t.recall)).unzip();
    let stored = read_trail(store, &memory, ask, told).await?;
    if stored.is_none() {
        notes.push(
            "no recalls are recorded, so nothing is known of latencies, tokens and what agents really recalled"
                .to_owned(),
        );
    }
    if with_vector == 0 {
        notes.push("no row has a vector that can be read: rows are ranked by the words they share".to_owned());
    }
    let ranking = if with_vector > 0 {
        "cosine of vectors within the owner's rows, near-duplicates (above 0.95) give way; texts by the words they share"
    } else {
        "share of common words within the owner's rows"
    };
    Ok(Evaluation {
        kind: kind.name(),
        rows: memory.items.len(),
        with_vector,
        ranking,
        judged_by,
        quality: quality(&judged, ask.k, ask.seed),
        self_retrieval: self_retrieval(&memory, ask.k, ask.seed),
        negative_controls: negative_controls(&memory, ask.seed),
        spread: spread(&recalls, memory.items.len()),
        stored,
        notes,
    })
}
