//! `recall`: what would be remembered in a situation, in order, each score taken apart.

use std::collections::HashMap;
use std::time::Instant;

use super::banked::BankedCases;
use super::situation::ResolvedQuestion;
use super::{LabError, equal, owner};
use crate::memory::filter::Filter;
use crate::memory::findings::is_poison;
use crate::memory::vector::{ComparedBy, VectorTally, cosine_of};
use crate::memory::{Entity, Row};
use crate::recall::among::{self, RankingInput};
use crate::recall::answer::{RecallAnswer, RecallRequest, RecalledItem, StageTimes, UsedPolicy, WordsBy};
use crate::recall::features::{features, overlap, words};
use crate::recall::keyword;
use crate::recall::rank::{self, LATEST_USES, LeftOut, ProvenQuery, RankedRow, Ranking};
use crate::store::Store;
use crate::store::vector::ComparedVectors;

/// Rows below the chosen ones that are listed.
const BEYOND: usize = 3;
/// Nearest rows that are asked for at most: more than any owner has.
const MOST: usize = 1 << 31;

/// Rows in order with what was found out on the way.
struct RankedFind {
    rows: Vec<RankedRow>,
    left_out: Vec<LeftOut>,
    compared: Option<(VectorTally, ComparedBy)>,
    candidates: usize,
    k: usize,
    policy: Option<UsedPolicy>,
}

/// A situation ranked: the rows in order as far as rankings look at them, without what hangs on them.
pub struct RankedSituation {
    /// The rows in order.
    pub rows: Vec<RankedRow>,
    /// The policy that ranked them.
    pub policy: Option<UsedPolicy>,
    found: RecallAnswer,
}

/// Recalls. The same request on the same data gives the same answer.
///
/// # Errors
/// A row or policy that is not there, weights that are none, an entity that the database does not hold, or the engine's
/// refusal.
pub async fn recall(store: &Store, request: &RecallRequest) -> Result<RecallAnswer, LabError> {
    timed(store, request).await.map(|(answer, _)| answer)
}

/// Recalls, and says how long each part took.
///
/// # Errors
/// As [`recall`].
pub async fn timed(store: &Store, request: &RecallRequest) -> Result<(RecallAnswer, StageTimes), LabError> {
    let (ranks, stages) = ranked(store, request).await?;
    let begun = Instant::now();
    let rows = enriched(store, ranks.rows).await?;
    Ok((RecallAnswer { rows, ..ranks.found }, StageTimes { context: millis_since(begun), ..stages }))
}

/// Ranks a situation, as [`recall`] does before it fetches what hangs on the rows.
///
/// # Errors
/// As [`recall`].
pub async fn ranked(store: &Store, request: &RecallRequest) -> Result<(RankedSituation, StageTimes), LabError> {
    let kind = kind_of(store, request.ranking);
    if request.ranking != Ranking::Proven {
        store.sources_of(kind)?;
    }
    let begun = Instant::now();
    let mut asked = ResolvedQuestion::of(store, request, kind).await?;
    let situation = millis_since(begun);
    let begun = Instant::now();
    let known = asked.notes.len();
    let mut found = find(store, request, &mut asked).await?;
    if let Some(why) =
        found.compared.and_then(|(tally, _)| nothing_compared(&tally)).filter(|_| !asked.words.is_empty())
    {
        asked.notes.truncate(known);
        let dimensions = asked.vector.take().map_or(0, |vector| vector.len());
        asked.notes.push(format!("compared by keywords: the query's vector of {dimensions} dimensions {why}"));
        found = find(store, request, &mut asked).await?;
    }
    let used = match (&asked.vector, asked.words.is_empty()) {
        _ if request.ranking == Ranking::Proven => "none",
        (Some(_), _) => "vector",
        (None, false) => "keyword",
        (None, true) => "none",
    };
    let ranking = millis_since(begun);
    // Boosted recall and policies rank every row: only the others leave rows without a word out.
    let narrowed = matches!(request.ranking, Ranking::Cases | Ranking::Similar) && found.policy.is_none();
    let by_index = narrowed && store.has_word_index(kind);
    let words_by = (used == "keyword").then_some(if by_index { WordsBy::Index } else { WordsBy::Read });
    let answer = RecallAnswer {
        rows: Vec::new(),
        left_out: found.left_out,
        used,
        policy: found.policy.clone(),
        k: found.k,
        compared: found.compared,
        words_by,
        candidates: found.candidates,
        notes: asked.notes,
        like: asked.row,
        request: request.clone(),
    };
    let ranks = RankedSituation { rows: found.rows, policy: found.policy, found: answer };
    Ok((ranks, StageTimes { embedding: 0.0, situation, ranking, context: 0.0 }))
}

/// What a ranking is over: cases, or episodes; memories where a database keeps no episodes, or all layouts that keep some say
/// that memories are what is recalled.
fn kind_of(store: &Store, ranking: Ranking) -> Entity {
    let episodes = store.sources_of(Entity::Episode).unwrap_or_default();
    let by_memories = |layout: &String| {
        store.recognised().layouts.iter().any(|l| l.name == *layout && l.recalled == Some(Entity::Memory))
    };
    let recalls_memories =
        store.sources_of(Entity::Memory).is_ok() && episodes.iter().all(|source| by_memories(&source.layout));
    match ranking {
        Ranking::Cases => Entity::Case,
        _ if recalls_memories => Entity::Memory,
        _ => Entity::Episode,
    }
}

/// What asks for one agent's and one person's rows, as far as the database says whose they are.
fn owned(store: &Store, kind: Entity, request: &RecallRequest) -> Vec<Filter> {
    let mut filters = owner(request.agent.as_deref(), request.user.as_deref());
    if kind == Entity::Memory {
        let sources = store.sources_of(kind).unwrap_or_default();
        filters.retain(|f| sources.iter().any(|source| !source.column(f.column).is_empty()));
    }
    filters
}

/// Columns of a memory that rankings look at.
const OF_MEMORY: &[&str] =
    &["title", "text", "collection", "tags", "status", "metadata", "created_at", "utility", "user_id", "agent_id"];

/// The rows of the ranking that is asked for.
async fn find(store: &Store, request: &RecallRequest, asked: &mut ResolvedQuestion) -> Result<RankedFind, LabError> {
    match request.ranking {
        Ranking::Boosted => boosted(store, request, asked).await,
        Ranking::Proven => proven(store, request, asked).await,
        Ranking::Cases => cases(store, request, asked).await,
        Ranking::Similar => similar(store, request, asked).await,
    }
}

/// Why not one of the stored vectors could be compared, where there are some.
fn nothing_compared(tally: &VectorTally) -> Option<&'static str> {
    match tally {
        VectorTally { compared: 0, other_dimensions: 1.., .. } => {
            Some("fits no stored one: is it of the model that made them?")
        }
        VectorTally { compared: 0, no_direction: 1.., .. } => Some("or the stored ones have no length"),
        _ => None,
    }
}

fn millis_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1_000.0
}

/// Fetches the whole rows with canvas and feedback context of every episode.
async fn enriched(store: &Store, rows: Vec<RankedRow>) -> Result<Vec<RecalledItem>, LabError> {
    let mut whole: HashMap<(Entity, String), Row> = HashMap::new();
    for kind in [Entity::Episode, Entity::Case, Entity::Memory] {
        let ids: Vec<String> = rows.iter().filter(|r| r.row.entity == kind).map(|r| r.row.id().to_owned()).collect();
        for row in store.related(kind, "id", &ids).await? {
            whole.insert((kind, row.id().to_owned()), row);
        }
    }
    let mut items: Vec<RecalledItem> = Vec::with_capacity(rows.len());
    for mut ranked in rows {
        if let Some(row) = whole.remove(&(ranked.row.entity, ranked.row.id().to_owned())) {
            ranked.row = row;
        }
        items.push(RecalledItem { ranked, canvas: Vec::new(), feedback: Vec::new(), findings: Vec::new() });
    }
    let episodes: Vec<Row> =
        items.iter().map(|i| &i.ranked.row).filter(|r| r.entity == Entity::Episode).cloned().collect();
    let mut contexts = store.contexts().recalled(episodes).await?.into_iter();
    for item in items.iter_mut().filter(|i| i.ranked.row.entity == Entity::Episode) {
        if let Some(context) = contexts.next() {
            (item.canvas, item.feedback, item.findings) = (context.canvas, context.feedback, context.findings);
        }
    }
    Ok(items)
}

/// Leaves the row out that the query itself is.
fn without_itself(rows: &mut Vec<Row>, asked: &ResolvedQuestion, left_out: &mut Vec<LeftOut>) {
    let Some(itself) = &asked.row else { return };
    let before = rows.len();
    rows.retain(|row| row.entity != itself.entity || row.id() != itself.id());
    if rows.len() < before {
        left_out.push(LeftOut {
            id: itself.id().to_owned(),
            reason: "query_itself",
            words: "it is the query itself".to_owned(),
            score: None,
            instead: None,
        });
    }
}

/// Leaves quarantined cases out.
fn without_quarantined(rows: &mut Vec<Row>, left_out: &mut Vec<LeftOut>) {
    rows.retain(|row| {
        let held_back = !among::eligible(row, Ranking::Cases, false);
        if held_back && !left_out.iter().any(|l| l.id == row.id()) {
            left_out.push(LeftOut {
                id: row.id().to_owned(),
                reason: "quarantined",
                words: "it is quarantined".to_owned(),
                score: None,
                instead: None,
            });
        }
        !held_back
    });
}

async fn boosted(store: &Store, request: &RecallRequest, asked: &ResolvedQuestion) -> Result<RankedFind, LabError> {
    let kind = kind_of(store, request.ranking);
    let filters = owned(store, kind, request);
    let columns: &[&'static str] = if kind == Entity::Memory {
        OF_MEMORY
    } else if asked.vector.is_none() && !asked.words.is_empty() {
        &[
            "started_at",
            "canvas_action_count",
            "feedback_score",
            "title",
            "summary",
            "detail",
            "observation",
            "topic",
            "domain",
            "tags",
            "workflow_name",
        ]
    } else {
        &["started_at", "canvas_action_count", "feedback_score"]
    };
    // Every row has a place in this ranking: words only move it.
    let mut rows = store.candidates(kind, &filters, columns, &[]).await?;
    rows.retain(|row| among::eligible(row, Ranking::Boosted, true));
    let mut left_out = Vec::new();
    without_itself(&mut rows, asked, &mut left_out);
    let candidates = rows.len();
    let (likeness, name, compared) = likeness(store, kind, &filters, asked, &rows, keyword::text_of).await?;
    let way = RankingInput::Boosted { asked: asked.is_something(), name, at: &request.at };
    let ranked = among::ranked(rows.into_iter().zip(likeness), &way);
    let (rows, more) = rank::choose(ranked, request.rows(), BEYOND, |_, _| None);
    left_out.extend(more);
    Ok(RankedFind { rows, left_out, compared, candidates, k: request.rows(), policy: None })
}

/// How like each row is to what is asked, the name of that, and what became of the vectors.
type Likenesses = (Vec<Option<f64>>, &'static str, Option<(VectorTally, ComparedBy)>);

async fn likeness(
    store: &Store,
    kind: Entity,
    filters: &[Filter],
    asked: &ResolvedQuestion,
    rows: &[Row],
    text: impl Fn(&Row) -> String,
) -> Result<Likenesses, LabError> {
    if let Some(vector) = &asked.vector {
        let ComparedVectors { near, tally, by } = store.embeddings().nearest(kind, filters, vector, usize::MAX).await?;
        // A row may have several vectors: the nearest of them counts.
        let cosines: HashMap<String, f64> = near.into_iter().rev().map(|n| (n.id, n.cosine)).collect();
        let found = rows.iter().map(|row| cosines.get(row.id()).copied()).collect();
        return Ok((found, "similarity", Some((tally, by))));
    }
    let texts: Vec<String> = rows.iter().map(text).collect();
    Ok((keyword::shares(&asked.words, &texts).into_iter().map(Some).collect(), "keywords", None))
}

async fn proven(store: &Store, request: &RecallRequest, asked: &mut ResolvedQuestion) -> Result<RankedFind, LabError> {
    let mut sought = ProvenQuery { domain: request.domain.clone(), topic: request.topic.clone() };
    if let Some(row) = &asked.row {
        sought = sought.or_that_of(row);
    }
    let nothing = |text: &Option<String>| text.as_deref().is_none_or(|t| t.trim().is_empty());
    let nowhere = nothing(&sought.domain) && nothing(&sought.topic);
    let by_text = nowhere && asked.is_something() && kind_of(store, Ranking::Proven) == Entity::Memory;
    if nowhere && !by_text {
        asked.notes.push("neither domain nor topic is asked for: both terms are 0 for every row".to_owned());
    }
    if request.text.is_some() && !by_text {
        asked.notes.push("the text plays no part in this ranking: name a domain and a topic".to_owned());
    }
    let (memories, episodes) = (store.sources_of(Entity::Memory).is_ok(), store.sources_of(Entity::Episode).is_ok());
    if !memories && !episodes {
        store.sources_of(Entity::Memory)?;
    }
    let mut rows = Vec::new();
    let mut used_by = MemoryUses::default();
    if episodes {
        let columns = ["started_at", "domain", "topic", "utility", "agent_id", "user_id"];
        rows = store.candidates(Entity::Episode, &[], &columns, &[]).await?;
        if memories && store.sources_of(Entity::MemoryLink).is_ok() {
            used_by = MemoryUses::read(store, &rows).await?;
        }
        let filters = owner(request.agent.as_deref(), request.user.as_deref());
        rows.retain(|row| filters.iter().all(|f| f.matches(row)));
    }
    if memories {
        let filters = owned(store, Entity::Memory, request);
        let found = store.candidates(Entity::Memory, &filters, OF_MEMORY, &[]).await?;
        rows.extend(found.into_iter().filter(|row| among::eligible(row, Ranking::Proven, true)));
    }
    let mut left_out = Vec::new();
    without_itself(&mut rows, asked, &mut left_out);
    let candidates = rows.len();
    let utility = |row: &Row| used_by.utility(row);
    let mut way = RankingInput::Proven { sought: &sought, like: None, utility: &utility, at: &request.at };
    let (mut found, mut compared) = (vec![None; rows.len()], None);
    if by_text {
        let filters = owned(store, Entity::Memory, request);
        let name;
        (found, name, compared) = likeness(store, Entity::Memory, &filters, asked, &rows, keyword::text_of).await?;
        way = RankingInput::Proven { sought: &sought, like: Some(name), utility: &utility, at: &request.at };
    }
    let ranked = among::ranked(rows.into_iter().zip(found), &way);
    let (rows, more) = rank::choose(ranked, request.rows(), BEYOND, |_, _| None);
    left_out.extend(more);
    Ok(RankedFind { rows, left_out, compared, candidates, k: request.rows(), policy: None })
}

/// For each memory the start and utility of the episodes that used it.
#[derive(Default)]
pub(super) struct MemoryUses(HashMap<String, Vec<(String, f64)>>);

impl MemoryUses {
    /// Reads the links of memories to these episodes.
    pub(super) async fn read(store: &Store, episodes: &[Row]) -> Result<Self, LabError> {
        let known: HashMap<&str, &Row> = episodes.iter().map(|e| (e.id(), e)).collect();
        let mut used_by: HashMap<String, Vec<(String, f64)>> = HashMap::new();
        for link in store.candidates(Entity::MemoryLink, &[], &["episode_id", "memory_id"], &[]).await? {
            let Some(episode) = link.text("episode_id").and_then(|id| known.get(id)) else { continue };
            let Some(memory) = link.text("memory_id") else { continue };
            let started = episode.text("started_at").unwrap_or_default().to_owned();
            let utility = episode.number("utility").unwrap_or(rank::UTILITY_START);
            used_by.entry(memory.to_owned()).or_default().push((started, utility));
        }
        for uses in used_by.values_mut() {
            uses.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
            uses.truncate(LATEST_USES);
        }
        Ok(MemoryUses(used_by))
    }

    /// Utility of a row: of a memory the mean of the latest 20 episodes that used it, else its own.
    pub(super) fn utility(&self, row: &Row) -> Option<f64> {
        let by_use = self.0.get(row.id()).filter(|_| row.entity == Entity::Memory);
        let mean = |uses: &Vec<(String, f64)>| uses.iter().map(|(_, u)| u).sum::<f64>() / uses.len().max(1) as f64;
        by_use.map(mean).or(row.number("utility"))
    }
}

async fn similar(store: &Store, request: &RecallRequest, asked: &ResolvedQuestion) -> Result<RankedFind, LabError> {
    let kind = kind_of(store, request.ranking);
    let mut filters = owned(store, kind, request);
    let mut columns = OF_MEMORY;
    if kind == Entity::Episode {
        filters.extend(request.workflow.as_deref().map(|w| equal("workflow_name", w)));
        columns = &["started_at", "title", "summary", "observation", "result", "success", "outcome", "workflow_name"];
    }
    let mut rows = store.candidates(kind, &filters, columns, &asking_words(asked)).await?;
    rows.retain(|row| among::eligible(row, Ranking::Similar, request.all_outcomes));
    let mut left_out = Vec::new();
    without_itself(&mut rows, asked, &mut left_out);
    let candidates = rows.len();
    let text = if kind == Entity::Memory { keyword::text_of } else { keyword::situation_and_outcome };
    let (likeness, name, compared) = likeness(store, kind, &filters, asked, &rows, text).await?;
    let ranked = among::ranked(rows.into_iter().zip(likeness), &RankingInput::Likeness { name });
    let (rows, more) = rank::choose(ranked, request.rows(), BEYOND, |_, _| None);
    left_out.extend(more);
    Ok(RankedFind { rows, left_out, compared, candidates, k: request.rows(), policy: None })
}

/// Words to look up in an index; none where vectors are compared.
fn asking_words(asked: &ResolvedQuestion) -> Vec<String> {
    if asked.vector.is_some() { Vec::new() } else { asked.words.iter().cloned().collect() }
}

async fn cases(store: &Store, request: &RecallRequest, asked: &mut ResolvedQuestion) -> Result<RankedFind, LabError> {
    let BankedCases { filters, policy, k } = BankedCases::of(store, request, asked).await?;
    let k = request.k.or(k).unwrap_or_else(|| request.rows());
    if let (None, false, Some(vector)) = (&policy, request.downweight, asked.vector.clone()) {
        return nearest_cases(store, k, asked, &filters, &vector).await;
    }
    let columns = ["prompt", "outcome", "reward", "tags", "created_at", "quarantined"];
    let words = if policy.is_some() { Vec::new() } else { asking_words(asked) };
    let mut rows = store.candidates(Entity::Case, &filters, &columns, &words).await?;
    let mut left_out = Vec::new();
    without_itself(&mut rows, asked, &mut left_out);
    without_quarantined(&mut rows, &mut left_out);
    let candidates = rows.len();
    let (likeness, name, compared) = likeness(store, Entity::Case, &filters, asked, &rows, keyword::text_of).await?;
    let situation = asked.situation(request.text.as_deref(), &request.at);
    let seen =
        |row: &Row, likeness: Option<f64>| features(&situation, row, likeness.filter(|_| asked.vector.is_some()));
    let way = match &policy {
        Some((_, policy)) => RankingInput::Policy { policy, features: &seen, name },
        None => RankingInput::Likeness { name },
    };
    let mut ranked = among::ranked(rows.into_iter().zip(likeness), &way);
    if request.downweight {
        let recalls = recalls(store, request, asked).await?;
        let is = |row: &Row| is_poison(row.number("reward"), recalls.get(row.id()).copied().unwrap_or_default());
        among::weigh_down(&mut ranked, is);
    }
    if policy.is_some() {
        ranked = among::merged(ranked, k, name);
    }
    let looked_at = k.saturating_mul(16).saturating_add(64);
    let first: Vec<String> = ranked.iter().take(looked_at).map(|r| r.row.id().to_owned()).collect();
    let vectors = store.embeddings().vectors(Entity::Case, &first).await?;
    let (mut rows, more) = rank::choose(ranked, k, BEYOND, |a, b| alike(&vectors, a, b));
    rank::sort(&mut rows);
    left_out.extend(more);
    Ok(RankedFind { rows, left_out, compared, candidates, k, policy: policy.map(|(used, _)| used) })
}

/// How often each case was recalled, as far as the memory records it.
async fn recalls(
    store: &Store,
    request: &RecallRequest,
    asked: &mut ResolvedQuestion,
) -> Result<HashMap<String, u32>, LabError> {
    let mut recalls = HashMap::new();
    if store.sources_of(Entity::Access).is_err() {
        asked.notes.push("nothing is weighed down: this database does not record what was recalled".to_owned());
        return Ok(recalls);
    }
    let filters = owner(request.agent.as_deref(), request.user.as_deref());
    for access in store.candidates(Entity::Access, &filters, &["ids"], &[]).await? {
        for id in access.list("ids") {
            *recalls.entry(id.to_owned()).or_default() += 1;
        }
    }
    Ok(recalls)
}

/// Cosine of two rows; word overlap where one of them has no vector.
fn alike(vectors: &HashMap<String, Vec<f32>>, a: &Row, b: &Row) -> Option<f64> {
    match (vectors.get(a.id()), vectors.get(b.id())) {
        (Some(a), Some(b)) => cosine_of(a, b),
        _ => Some(overlap(&words(&keyword::text_of(a)), &words(&keyword::text_of(b)))),
    }
}

/// The nearest cases of an owner, near-duplicates aside: looks at more and more of them until `k` are chosen.
async fn nearest_cases(
    store: &Store,
    k: usize,
    asked: &ResolvedQuestion,
    filters: &[Filter],
    vector: &[f32],
) -> Result<RankedFind, LabError> {
    let mut most = k.saturating_mul(4).saturating_add(16).min(MOST);
    loop {
        let ComparedVectors { near, tally, by } =
            store.embeddings().nearest(Entity::Case, filters, vector, most).await?;
        let ids: Vec<String> = near.iter().map(|n| n.id.clone()).collect();
        let vectors = store.embeddings().vectors(Entity::Case, &ids).await?;
        let mut rows = store.related(Entity::Case, "id", &ids).await?;
        rows.retain(|row| filters.iter().all(|f| f.matches(row)));
        let mut left_out = Vec::new();
        without_itself(&mut rows, asked, &mut left_out);
        without_quarantined(&mut rows, &mut left_out);
        // The exact cosine, the same whoever found the row.
        let exact = |row: &Row| vectors.get(row.id()).and_then(|v| cosine_of(vector, v));
        let likeness: Vec<Option<f64>> = rows.iter().map(exact).collect();
        let ranked = among::ranked(rows.into_iter().zip(likeness), &RankingInput::Likeness { name: "similarity" });
        let (chosen, more) = rank::choose(ranked, k, BEYOND, |a, b| alike(&vectors, a, b));
        // A row just beyond the edge may be as near as the last chosen one.
        let edge = near.last().map(|n| n.cosine + 1e-5);
        let settled = chosen.len() == k && chosen.last().map(|c| c.score.total) > edge;
        if near.len() < most || settled || most == MOST {
            left_out.extend(more);
            let (compared, candidates) = (Some((tally, by)), tally.compared);
            return Ok(RankedFind { rows: chosen, left_out, compared, candidates, k, policy: None });
        }
        most = most.saturating_mul(4).min(MOST);
    }
}
