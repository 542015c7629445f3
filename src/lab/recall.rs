//! `recall`: the rows remembered in a situation, in order, with each score broken down.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::OnceLock;
use std::time::Instant;
use std::vec;

use serde_json::Value;

use super::banked::BankedCases;
use super::candidates::{CandidateRows, Measure, without_long_texts};
use super::kept_rows::{self, KeptFind, PackingRows};
use super::memory_uses::{EpisodeWorth, MemoryUses};
use super::situation::ResolvedQuestion;
use super::{LabError, equal, owner};
use crate::memory::feedback::{ScoreSum, score};
use crate::memory::filter::Filter;
use crate::memory::findings::is_poison;
use crate::memory::vector::{ComparedBy, VectorTally, cosine_of, has_direction};
use crate::memory::{Entity, Row};
use crate::recall::among::{self, Eligibility, HeldRows, RankingInput};
use crate::recall::answer::{NO_POLICY, RecallAnswer, RecallRequest, RecalledItem, StageTimes, UsedPolicy, WordsBy};
use crate::recall::context::{Budget, TOKENS, ToldCollector, ToldRows};
use crate::recall::features::{SoughtName, features, overlap, words};
use crate::recall::keyword::{self, ComparedText};
use crate::recall::rank::{self, LeftOut, MOST_ROWS, ProvenQuery, RankedRow, Ranking};
use crate::recall::shortlist::{FirstRows, FoundLikeness, Placing, Shortlist, ShortlistEnd};
use crate::store::Store;
use crate::store::context::RecalledContext;
use crate::store::hanging::HangingRows;
use crate::store::vector::ComparedVectors;

/// Rows listed below the chosen ones.
const BEYOND: usize = 3;
/// Most nearest rows requested: more than any owner has.
const MOST: usize = 1 << 31;

/// Ranked rows with facts found on the way.
struct RankedFind {
    rows: Vec<RankedRow>,
    left_out: Vec<LeftOut>,
    /// Notes on rows that are left out and not listed.
    notes: Vec<String>,
    compared: Option<(VectorTally, ComparedBy)>,
    candidates: usize,
    k: usize,
    policy: Option<UsedPolicy>,
}

/// A ranked situation: the rows in order with the columns that rankings use, without dependent rows.
pub struct RankedSituation {
    /// The rows in order.
    pub rows: Vec<RankedRow>,
    /// The policy that ranked them.
    pub policy: Option<UsedPolicy>,
    /// The answer, still without its rows.
    pub answer: RecallAnswer,
}

/// Recalls. The same request on the same data gives the same answer.
///
/// # Errors
/// A missing row or policy, invalid weights, an entity that the database does not hold, or an error of the engine.
pub async fn recall(store: &Store, request: &RecallRequest) -> Result<RecallAnswer, LabError> {
    timed(store, request).await.map(|(answer, _)| answer)
}

/// Recalls, and reports the time of each stage.
///
/// # Errors
/// As [`recall`].
pub async fn timed(store: &Store, request: &RecallRequest) -> Result<(RecallAnswer, StageTimes), LabError> {
    let (ranks, stages) = ranked(store, request).await?;
    let begun = Instant::now();
    let rows = enriched(store, ranks.rows, request).await?;
    Ok((RecallAnswer { rows, ..ranks.answer }, StageTimes { context: millis_since(begun), ..stages }))
}

/// Ranks a situation, as [`recall`] does before it reads dependent rows.
///
/// # Errors
/// As [`recall`].
pub async fn ranked(store: &Store, request: &RecallRequest) -> Result<(RankedSituation, StageTimes), LabError> {
    let kind = kind_of(store, request.inquiry.ranking);
    if request.inquiry.ranking != Ranking::Proven {
        store.sources_of(kind)?;
    }
    let begun = Instant::now();
    let mut asked = ResolvedQuestion::of(store, request, kind).await?;
    asked.notes.extend(request.inquiry.limited());
    asked.notes.extend(idle(request));
    asked.notes.extend(everybodys(store, kind, request));
    asked.notes.extend(unranked(store, request.inquiry.ranking));
    let situation = millis_since(begun);
    let begun = Instant::now();
    let known = asked.notes.len();
    let mut found = find(store, request, &mut asked).await?;
    let vector = asked.vector.as_deref().unwrap_or_default();
    let why = found.compared.and_then(|(tally, _)| nothing_compared(vector, &tally));
    if let Some(why) = why.filter(|_| !asked.words.is_empty()) {
        let dimensions = vector.len();
        asked.notes.truncate(known);
        asked.forget_vectors();
        asked.notes.push(format!("compared by keywords: the query's vector of {dimensions} dimensions {why}"));
        found = find(store, request, &mut asked).await?;
    }
    asked.notes.append(&mut found.notes);
    let used = match (&asked.vector, asked.words.is_empty()) {
        _ if request.inquiry.ranking == Ranking::Proven => "none",
        (Some(_), _) => "vector",
        (None, false) => "keyword",
        (None, true) => "none",
    };
    if used == "keyword" && without_words(&found.rows) {
        asked.notes.push("no word of the question occurs in these rows: only the other terms rank them".to_owned());
    }
    let ranking = millis_since(begun);
    // Boosted recall and policies rank every row: only the others omit rows without a matching word.
    let narrowed = matches!(request.inquiry.ranking, Ranking::Cases | Ranking::Similar) && found.policy.is_none();
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
    let ranks = RankedSituation { rows: found.rows, policy: found.policy, answer };
    Ok((ranks, StageTimes { embedding: 0.0, situation, ranking, context: 0.0 }))
}

/// Returns the entity of a ranking: cases, or episodes; memories if a database has no episodes, or if all layouts with
/// such a setting recall memories.
pub fn kind_of(store: &Store, ranking: Ranking) -> Entity {
    let mut episodes = store.sources_of(Entity::Episode).unwrap_or_default().into_iter();
    let recalls_memories =
        store.sources_of(Entity::Memory).is_ok() && episodes.all(|source| names_memories(store, &source.layout));
    match ranking {
        Ranking::Cases => Entity::Case,
        _ if recalls_memories => Entity::Memory,
        _ => Entity::Episode,
    }
}

/// Whether a layout names memories as the rows to recall.
fn names_memories(store: &Store, layout: &str) -> bool {
    store.recognised().layouts.iter().any(|l| l.name == layout && l.recalled == Some(Entity::Memory))
}

/// The statuses of episodes that agents never get here.
pub(super) fn never_recalled(store: &Store) -> Vec<String> {
    store.recognised().layouts.iter().flat_map(|layout| layout.never_recalled.clone()).collect()
}

/// Reports memories that a ranking ignores because another layout has episodes.
fn unranked(store: &Store, ranking: Ranking) -> Option<String> {
    if ranking == Ranking::Proven || kind_of(store, ranking) != Entity::Episode {
        return None;
    }
    let episodes = store.sources_of(Entity::Episode).unwrap_or_default();
    let alone = |name: &str| names_memories(store, name) || episodes.iter().all(|source| source.layout != name);
    let memories = store.sources_of(Entity::Memory).unwrap_or_default();
    let layout = &memories.into_iter().find(|source| alone(&source.layout))?.layout;
    Some(format!(
        "episodes are ranked, and the memories of the layout {layout} are not: `--layout {layout}` ranks those, and \
         `--ranking proven` ranks both"
    ))
}

/// The agent and the person whose rows are requested.
type Owners<'a> = (Option<&'a str>, Option<&'a str>);

/// Builds the filters for one agent's and one person's rows, as far as the database records the owners.
fn owned(store: &Store, kind: Entity, request: &RecallRequest) -> Vec<Filter> {
    of_owners(store, kind, (request.inquiry.agent.as_deref(), request.inquiry.user.as_deref()))
}

fn of_owners(store: &Store, kind: Entity, (agent, user): Owners<'_>) -> Vec<Filter> {
    let mut filters = owner(agent, user);
    if kind == Entity::Memory {
        let sources = store.sources_of(kind).unwrap_or_default();
        filters.retain(|f| sources.iter().any(|source| !source.column(f.column).is_empty()));
    }
    filters
}

/// Columns of a memory that rankings use.
const OF_MEMORY: &[&str] = &[
    "title", "text", "collection", "tags", "status", "metadata", "created_at", "expires_at", "utility", "user_id",
    "agent_id",
];

/// The rows of the requested ranking.
async fn find(store: &Store, request: &RecallRequest, asked: &mut ResolvedQuestion) -> Result<RankedFind, LabError> {
    match request.inquiry.ranking {
        Ranking::Boosted => boosted(store, request, asked).await,
        Ranking::Proven => proven(store, request, asked).await,
        Ranking::Cases => cases(store, request, asked).await,
        Ranking::Similar => similar(store, request, asked).await,
    }
}

/// Explains why none of the stored vectors could be compared with a query's; `None` when some could, or there are none.
fn nothing_compared(vector: &[f32], tally: &VectorTally) -> Option<&'static str> {
    match tally {
        VectorTally { compared: 1.., .. } | VectorTally { other_dimensions: 0, no_direction: 0, .. } => None,
        _ if !has_direction(vector) => Some("has no direction: it is all zeros, or holds NaN or infinity"),
        VectorTally { other_dimensions: 1.., .. } => {
            Some("matches no stored one: is it from the model that made them?")
        }
        _ => Some("meets only stored ones that have no direction"),
    }
}

/// Whether none of some rows, compared by keywords, contains a word of the question.
fn without_words(rows: &[RankedRow]) -> bool {
    let lacks = |row: &RankedRow| {
        row.base.iter().chain(&row.score.terms).any(|term| term.name == "keywords" && term.value == 0.0)
    };
    !rows.is_empty() && rows.iter().all(lacks)
}

fn millis_since(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1_000.0
}

/// Rows read together: both the ranked and the whole rows are held meanwhile.
const TOGETHER: usize = 8;

/// Reads the remaining columns of each ranked row. A deleted row stays as ranked.
async fn fetch_whole(store: &Store, rows: &mut [RankedRow], owners: Owners<'_>) -> Result<(), LabError> {
    for some in rows.chunks_mut(TOGETHER) {
        for kind in [Entity::Episode, Entity::Case, Entity::Memory] {
            let ids: Vec<String> =
                some.iter().filter(|r| r.row.entity == kind).map(|r| r.row.id().to_owned()).collect();
            // Beside episodes, a memory without an owner belongs to everybody.
            let shared = kind == Entity::Memory && store.sources_of(Entity::Episode).is_ok();
            let filters = if shared { Vec::new() } else { of_owners(store, kind, owners) };
            let mut found = store.related_among(kind, "id", &ids, &filters, None).await?;
            for ranked in some.iter_mut().filter(|ranked| ranked.row.entity == kind) {
                if let Some(whole) = take_whole(&mut found, &ranked.row) {
                    ranked.row = whole;
                }
            }
        }
    }
    Ok(())
}

/// Takes the ranked row out of whole ones: of several with its id, the one with the values ranked.
fn take_whole(found: &mut Vec<Row>, ranked: &Row) -> Option<Row> {
    let of_id: Vec<usize> = (0..found.len()).filter(|at| found[*at].id() == ranked.id()).collect();
    let same = |(looked_at, stored): (&Value, &Value)| looked_at.is_null() || looked_at == stored;
    let holds = |at: &usize| ranked.values.iter().zip(&found[*at].values).all(same);
    let at = match of_id[..] {
        [only] => only,
        _ => of_id.iter().copied().find(holds)?,
    };
    Some(found.swap_remove(at))
}

/// A whole row of an answer; for an episode, with its dependent rows.
pub struct RowInContext {
    /// The row in its place.
    pub ranked: RankedRow,
    /// Rows that depend on it.
    pub around: Option<RecalledContext>,
}

/// The whole rows of an answer with their dependent rows, read one after the other.
pub struct RowsInContext<'a> {
    store: &'a Store,
    owners: (Option<String>, Option<String>),
    ranked: vec::IntoIter<RankedRow>,
    read: VecDeque<RowInContext>,
}

impl<'a> RowsInContext<'a> {
    /// Creates it from ranked rows, with their agent and person if these were named.
    pub fn new(store: &'a Store, rows: Vec<RankedRow>, (agent, user): Owners<'_>) -> Self {
        let owners = (agent.map(str::to_owned), user.map(str::to_owned));
        RowsInContext { store, owners, ranked: rows.into_iter(), read: VecDeque::new() }
    }

    /// Reads the next row; `None` at the end.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn next(&mut self) -> Result<Option<RowInContext>, LabError> {
        if self.read.is_empty() {
            let mut some: Vec<RankedRow> = self.ranked.by_ref().take(TOGETHER).collect();
            fetch_whole(self.store, &mut some, (self.owners.0.as_deref(), self.owners.1.as_deref())).await?;
            let is_episode = |ranked: &RankedRow| ranked.row.entity == Entity::Episode;
            let episodes: Vec<&Row> = some.iter().filter(|r| is_episode(r)).map(|ranked| &ranked.row).collect();
            let mut around = self.store.contexts().recalled(&episodes).await?.into_iter();
            let in_context = |ranked: RankedRow| RowInContext {
                around: if is_episode(&ranked) { around.next() } else { None },
                ranked,
            };
            self.read.extend(some.into_iter().map(in_context));
        }
        Ok(self.read.pop_front())
    }
}

/// Reads the whole rows, and the parts shown of the canvas and feedback context of every episode.
async fn enriched(store: &Store, rows: Vec<RankedRow>, request: &RecallRequest) -> Result<Vec<RecalledItem>, LabError> {
    let room = Budget { tokens: TOKENS, per_row: None }.room();
    let mut rows = RowsInContext::new(store, rows, (request.inquiry.agent.as_deref(), request.inquiry.user.as_deref()));
    let mut items = Vec::new();
    while let Some(RowInContext { ranked, around }) = rows.next().await? {
        let mut item = RecalledItem::new(ranked);
        if let Some(RecalledContext { canvas, feedback, findings }) = around {
            let mut scores = ScoreSum::default();
            item.canvas = told(store, canvas, room, |_| ()).await?;
            item.feedback = told(store, feedback, room, |row| {
                let score = row.text("kind").and_then(|kind| score(kind, row.get("rating").as_i64()));
                scores = score.into_iter().fold(scores, ScoreSum::with);
            })
            .await?;
            (item.scores, item.findings) = (scores, findings);
        }
        items.push(item);
    }
    Ok(items)
}

/// Collects the texts shown of the rows that depend on an episode, up to a number of characters; `look` sees each row,
/// and may change it.
///
/// # Errors
/// The engine's refusal.
pub async fn told(
    store: &Store,
    rows: HangingRows,
    room: usize,
    mut look: impl FnMut(&mut Row),
) -> Result<ToldRows, LabError> {
    let (mut told, mut parts) = (ToldCollector::new(room), store.contexts().parts(rows));
    loop {
        let rows = parts.next().await?;
        if rows.is_empty() {
            return Ok(told.close());
        }
        for mut row in rows {
            look(&mut row);
            told.add(&row);
        }
    }
}

/// Decides which rows are candidates, and which are left out.
struct CandidateSieve<'a> {
    asked: &'a ResolvedQuestion,
    request: &'a RecallRequest,
    never: Vec<String>,
    left_out: Vec<LeftOut>,
    held: HeldRows,
    candidates: usize,
}

impl<'a> CandidateSieve<'a> {
    fn new(store: &Store, asked: &'a ResolvedQuestion, request: &'a RecallRequest) -> Self {
        let never = never_recalled(store);
        CandidateSieve { asked, request, never, left_out: Vec::new(), held: HeldRows::default(), candidates: 0 }
    }

    /// Starts over: the rows come again from the beginning.
    fn begin(&mut self) {
        self.left_out.clear();
        self.held = HeldRows::default();
        self.candidates = 0;
    }

    /// Whether a row may be recalled: not the one that the query itself is, nor one that agents never get.
    fn takes(&mut self, row: &Row) -> bool {
        let eligibility = eligibility(self.request, &self.never);
        if !eligibility.counts(row) {
            return false;
        }
        let held = eligibility.held_back(row);
        let itself = self.asked.row.as_ref().is_some_and(|own| own.entity == row.entity && own.id() == row.id());
        if itself && (held.is_none() || row.entity == Entity::Case) {
            self.leave_out_itself(row);
        } else if let Some(held) = held {
            self.held.add(held, || Some(row.id().to_owned()));
        } else {
            self.candidates += 1;
            return true;
        }
        false
    }

    /// The query is one of the rows.
    fn leave_out_itself(&mut self, row: &Row) {
        if self.left_out.first().is_none_or(|first| first.reason != "query_itself") {
            self.left_out.insert(0, without(row, "query_itself", "it is the query itself"));
        }
    }

    /// Builds the result: `rows` are chosen, `more` gave way to them.
    fn find(self, chosen: (Vec<RankedRow>, Vec<LeftOut>), k: usize) -> RankedFind {
        let (rows, more) = chosen;
        let (mut left_out, notes) = (self.left_out, self.held.notes().collect());
        left_out.extend(self.held.first);
        left_out.extend(more);
        RankedFind { rows, left_out, notes, compared: None, candidates: self.candidates, k, policy: None }
    }
}

/// Decides which rows a request may return.
pub(super) fn eligibility<'a>(request: &'a RecallRequest, never: &'a [String]) -> Eligibility<'a> {
    let inquiry = &request.inquiry;
    Eligibility { ranking: inquiry.ranking, all_outcomes: inquiry.all_outcomes, at: &request.at, never }
}

fn without(row: &Row, reason: &'static str, words: &str) -> LeftOut {
    LeftOut { id: row.id().to_owned(), reason, words: words.to_owned(), score: None, instead: None }
}

/// The best rows of a ranking in which no row displaces another.
fn first_of(found: FirstRows, request: &RecallRequest) -> (Vec<RankedRow>, Vec<LeftOut>) {
    rank::choose(found.rows, request.inquiry.rows(), BEYOND, |_, _| None)
}

/// Columns of an episode that ranking by time, canvas and feedback needs.
const OF_EPISODE: &[&str] = &["started_at", "status", "canvas_action_count", "feedback_score"];
/// The same, with the searched texts.
const TOLD_OF_EPISODE: &[&str] = &[
    "started_at", "status", "canvas_action_count", "feedback_score", "title", "summary", "detail", "observation",
    "topic", "domain", "tags", "workflow_name",
];

async fn boosted(store: &Store, request: &RecallRequest, asked: &ResolvedQuestion) -> Result<RankedFind, LabError> {
    let kind = kind_of(store, request.inquiry.ranking);
    let filters = owned(store, kind, request);
    let by_words = asked.vector.is_none() && !asked.words.is_empty();
    let columns = match kind {
        _ if asked.vector.is_some() => by_vector(kind),
        Entity::Memory => OF_MEMORY,
        _ if by_words => TOLD_OF_EPISODE,
        _ => OF_EPISODE,
    };
    let name = among::likeness_name(asked.vector.is_some());
    let way = RankingInput::Boosted { asked: asked.is_something(), name, at: &request.at };
    let place = |row: Row, likeness: Option<f64>| among::placed(row, likeness, &way);
    // Every row has a place in this ranking: words only change its position.
    let rows = CandidateRows { kind, filters: &filters, columns, words: &[] };
    by_score(store, &rows, (request, asked), ComparedText::Whole, &place).await
}

/// Columns that rankings by vectors use.
fn by_vector(kind: Entity) -> &'static [&'static str] {
    if kind == Entity::Memory { kept_rows::OF_MEMORY } else { kept_rows::OF_EPISODE }
}

/// The rows with the best scores, from cached rows if possible, else from all rows.
async fn by_score(
    store: &Store,
    rows: &CandidateRows<'_>,
    (request, asked): (&RecallRequest, &ResolvedQuestion),
    text: ComparedText,
    place: &Placing<'_>,
) -> Result<RankedFind, LabError> {
    let mut sieve = CandidateSieve::new(store, asked, request);
    let room = request.inquiry.rows().saturating_add(BEYOND);
    if let Some(found) = kept_rows::first_rows(store, rows, (request, asked), room, place).await? {
        let KeptFind { rows, tally, candidates, itself, held } = found;
        sieve.held = held;
        itself.iter().for_each(|row| sieve.leave_out_itself(row));
        sieve.candidates = candidates;
        let chosen = rank::choose(rows, request.inquiry.rows(), BEYOND, |_, _| None);
        let compared = Some((tally, ComparedBy::Memory));
        return Ok(RankedFind { compared, ..sieve.find(chosen, request.inquiry.rows()) });
    }
    let (measure, _, compared) = Measure::of(store, rows.kind, rows.filters, asked, text).await?;
    let found = sieve.first_rows(store, rows, &measure, || measure.shortlist(room, place)).await?;
    Ok(RankedFind { compared, ..sieve.find(first_of(found, request), request.inquiry.rows()) })
}

impl CandidateSieve<'_> {
    /// The best rows, as kept by a `list`.
    async fn first_rows<'l>(
        &mut self,
        store: &Store,
        rows: &CandidateRows<'_>,
        measure: &Measure,
        list: impl Fn() -> Shortlist<'l>,
    ) -> Result<FirstRows, LabError> {
        let mut known = None;
        let kept = measure.kept().filter(|_| self.request.inquiry.ranking != Ranking::Cases);
        let mut packing = kept.and_then(|kept| {
            let room = store.embeddings().room_for_rows(rows.kind, rows.filters, &kept.vectors)?;
            Some((PackingRows::new(rows.kind, room), kept))
        });
        loop {
            self.begin();
            let mut list = list().again(known);
            rows.each(store, |row| {
                if let Some((packing, kept)) = &mut packing {
                    packing.push(&row, kept.of_row(&row));
                }
                if self.takes(&row) {
                    let likeness = measure.likeness(&row);
                    list.offer(without_long_texts(row), likeness);
                }
            })
            .await?;
            measure.check()?;
            if let Some((packing, kept)) = packing.take() {
                store.embeddings().keep_rows(rows.kind, rows.filters, &kept.vectors, packing.close());
            }
            match list.close() {
                ShortlistEnd::Rows(found) => return Ok(found),
                ShortlistEnd::Again(tally) => known = Some(tally),
            }
        }
    }
}

/// Notes on parts of the question that its ranking ignores.
fn idle(request: &RecallRequest) -> impl Iterator<Item = String> {
    let policy = request.inquiry.policy.as_deref().is_some_and(|id| id != NO_POLICY);
    let parts = [
        ("domain", request.inquiry.domain.is_some(), Ranking::Proven),
        ("topic", request.inquiry.topic.is_some(), Ranking::Proven),
        ("workflow", request.inquiry.workflow.is_some(), Ranking::Similar),
        ("all-outcomes", request.inquiry.all_outcomes, Ranking::Similar),
        ("policy", policy, Ranking::Cases),
        ("downweight", request.inquiry.downweight, Ranking::Cases),
    ];
    let ranking = request.inquiry.ranking;
    parts.into_iter().filter(move |(_, asked, of)| *asked && *of != ranking).map(move |(option, _, of)| {
        format!("--{option} is not used by the ranking `{}`: it is for `{}`", ranking.name(), of.name())
    })
}

/// Notes on parts of the question that do not apply to memories, if these are ranked.
fn everybodys(store: &Store, kind: Entity, request: &RecallRequest) -> Vec<String> {
    if kind != Entity::Memory {
        return Vec::new();
    }
    let inquiry = &request.inquiry;
    let sources = store.sources_of(kind).unwrap_or_default();
    let kept = |column: &str| sources.iter().any(|source| !source.column(column).is_empty());
    let owners = [("agent", "agent_id", &inquiry.agent), ("user", "user_id", &inquiry.user)];
    let lacking = owners.into_iter().filter(|(_, column, asked)| asked.is_some() && !kept(column));
    let mut notes: Vec<String> = lacking
        .map(|(owner, ..)| {
            format!("--{owner} is not used: memories are not stored by {owner} here, so everyone's are ranked")
        })
        .collect();
    if inquiry.workflow.is_some() && inquiry.ranking == Ranking::Similar {
        notes.push("--workflow is not used: memories are ranked, and they belong to no workflow".to_owned());
    }
    notes
}

/// The domain and topic for proven usefulness, and whether they are replaced by words or vectors.
fn sought(store: &Store, request: &RecallRequest, asked: &mut ResolvedQuestion) -> (ProvenQuery, bool) {
    let mut sought = ProvenQuery {
        domain: request.inquiry.domain.as_ref().map(SoughtName::from),
        topic: request.inquiry.topic.as_ref().map(SoughtName::from),
    };
    if let Some(row) = &asked.row {
        sought = sought.or_that_of(row);
    }
    let nowhere = sought.is_nowhere();
    let by_text = nowhere && asked.is_something() && kind_of(store, Ranking::Proven) == Entity::Memory;
    if by_text {
        let words = "no domain or topic is given: 0.6 x the likeness of the text replaces them";
        asked.notes.push(words.to_owned());
    } else if nowhere {
        asked.notes.push("the question has no domain and no topic: both terms are 0 for every row".to_owned());
    }
    if request.inquiry.text.is_some() && !by_text {
        asked.notes.push("this ranking does not use the text: name a domain and a topic".to_owned());
    }
    (sought, by_text)
}

async fn proven(store: &Store, request: &RecallRequest, asked: &mut ResolvedQuestion) -> Result<RankedFind, LabError> {
    let (sought, by_text) = sought(store, request, asked);
    let (memories, episodes) = (store.sources_of(Entity::Memory).is_ok(), store.sources_of(Entity::Episode).is_ok());
    if !memories && !episodes {
        store.sources_of(Entity::Memory)?;
    }
    let filters = owned(store, Entity::Memory, request);
    let (measure, like, compared) = if by_text {
        let (measure, name, compared) =
            Measure::of(store, Entity::Memory, &filters, asked, ComparedText::Whole).await?;
        (measure, Some(name), compared)
    } else {
        (Measure::Nothing, None, None)
    };
    // Episodes come first: from then on the outcome of those that used a memory is known.
    let used_by: OnceLock<MemoryUses> = OnceLock::new();
    let utility = |row: &Row| match used_by.get() {
        Some(uses) => uses.utility(row),
        None => row.number("utility"),
    };
    let way = RankingInput::Proven { sought: &sought, like, utility: &utility, at: &request.at };
    let place = |row: Row, likeness: Option<f64>| among::placed(row, likeness, &way);
    let mut sieve = CandidateSieve::new(store, asked, request);
    let mut known = None;
    let found = loop {
        let mut list = measure.shortlist(request.inquiry.rows().saturating_add(BEYOND), &place).again(known);
        let mut take = |row: Row| {
            if sieve.takes(&row) {
                // The vectors are those of memories: an episode with the same id has none.
                let likeness = match row.entity {
                    Entity::Episode if asked.vector.is_some() => FoundLikeness::Cosine(None),
                    _ => measure.likeness(&row),
                };
                list.offer(without_long_texts(row), likeness);
            }
        };
        if episodes {
            let linked = memories && store.sources_of(Entity::MemoryLink).is_ok();
            let columns = &["started_at", "status", "domain", "topic", "utility", "agent_id", "user_id"];
            let rows = CandidateRows { kind: Entity::Episode, filters: &[], columns, words: &[] };
            let owner = owner(request.inquiry.agent.as_deref(), request.inquiry.user.as_deref());
            let mut worth = EpisodeWorth::default();
            rows.each(store, |row| {
                if linked && used_by.get().is_none() {
                    worth.add(&row);
                }
                if owner.iter().all(|f| f.matches(&row)) {
                    take(row);
                }
            })
            .await?;
            if linked && used_by.get().is_none() {
                let _ = used_by.set(MemoryUses::read(store, worth).await?);
            }
        }
        if memories {
            // Beside episodes, a memory without an owner belongs to everybody.
            let strict: &[Filter] = if episodes { &[] } else { &filters };
            let rows = CandidateRows { kind: Entity::Memory, filters: strict, columns: OF_MEMORY, words: &[] };
            rows.each(store, |row| {
                if filters.iter().all(|f| row.get(f.column).is_null() || f.matches(&row)) {
                    take(row);
                }
            })
            .await?;
        }
        measure.check()?;
        used_by.get().map_or(Ok(()), MemoryUses::check)?;
        match list.close() {
            ShortlistEnd::Rows(found) => break found,
            ShortlistEnd::Again(tally) => known = Some(tally),
        }
        sieve.begin();
    };
    Ok(RankedFind { compared, ..sieve.find(first_of(found, request), request.inquiry.rows()) })
}

async fn similar(store: &Store, request: &RecallRequest, asked: &ResolvedQuestion) -> Result<RankedFind, LabError> {
    let kind = kind_of(store, request.inquiry.ranking);
    let mut filters = owned(store, kind, request);
    let mut columns = OF_MEMORY;
    if kind == Entity::Episode {
        filters.extend(request.inquiry.workflow.as_deref().map(|w| equal("workflow_name", w)));
        columns = &[
            "started_at", "status", "title", "summary", "observation", "result", "success", "outcome", "workflow_name",
        ];
    }
    if asked.vector.is_some() {
        columns = by_vector(kind);
    }
    let text = ComparedText::of_ranking(Ranking::Similar, kind);
    let way = RankingInput::Likeness { name: among::likeness_name(asked.vector.is_some()) };
    let place = |row: Row, likeness: Option<f64>| among::placed(row, likeness, &way);
    let rows = CandidateRows { kind, filters: &filters, columns, words: &asking_words(asked) };
    by_score(store, &rows, (request, asked), text, &place).await
}

/// Words to look up in an index; none if vectors are compared.
fn asking_words(asked: &ResolvedQuestion) -> Vec<String> {
    if asked.vector.is_some() { Vec::new() } else { asked.words.iter().cloned().collect() }
}

async fn cases(store: &Store, request: &RecallRequest, asked: &mut ResolvedQuestion) -> Result<RankedFind, LabError> {
    let BankedCases { filters, policy, k } = BankedCases::of(store, request, asked).await?;
    let k = request.inquiry.k.or(k).unwrap_or_else(|| request.inquiry.rows()).min(MOST_ROWS);
    let weighed = request.inquiry.downweight || !asked.more_vectors.is_empty();
    if let (None, false, Some(vector)) = (&policy, weighed, asked.vector.clone()) {
        return nearest_cases(store, k, (request, asked), &filters, &vector).await;
    }
    let columns = &["prompt", "outcome", "reward", "tags", "created_at", "quarantined"];
    let words = if policy.is_some() { Vec::new() } else { asking_words(asked) };
    let recalls = if request.inquiry.downweight { Some(recalls(store, asked).await?) } else { None };
    let (measure, name, compared) = Measure::of(store, Entity::Case, &filters, asked, ComparedText::Whole).await?;
    let situation = asked.situation(request.inquiry.text.as_deref(), &request.at);
    let seen =
        |row: &Row, likeness: Option<f64>| features(&situation, row, likeness.filter(|_| asked.vector.is_some()));
    let way = match &policy {
        Some((_, policy)) => RankingInput::Policy { policy, features: &seen, name },
        None => RankingInput::Likeness { name },
    };
    let place = |row: Row, likeness: Option<f64>| {
        let ranked = among::placed(row, likeness, &way)?;
        let Some(recalls) = &recalls else { return Some(ranked) };
        let often = recalls.get(ranked.row.id()).copied().unwrap_or_default();
        let poison = is_poison(ranked.row.number("reward"), often);
        Some(among::weighed_down(ranked, poison))
    };
    let rows = CandidateRows { kind: Entity::Case, filters: &filters, columns, words: &words };
    let looked_at = k.saturating_mul(16).min(k + MOST_ROWS).saturating_add(64);
    let mut room = looked_at;
    let mut sieve = CandidateSieve::new(store, asked, request);
    loop {
        let list = || {
            let list = measure.shortlist(room, &place);
            if policy.is_some() { list.with_shares() } else { list }
        };
        let FirstRows { rows: mut ranked, alike: others, all } = sieve.first_rows(store, &rows, &measure, list).await?;
        if policy.is_some() {
            let first = ranked.len();
            ranked.extend(others);
            ranked = among::merged(ranked, k, name);
            // Of the rows below the best, only the similarity is known.
            let found = ranked.iter().filter(|row| !row.found_by.is_empty()).count();
            ranked.truncate(first.max(found));
        }
        let first: Vec<String> = ranked.iter().take(looked_at).map(|r| r.row.id().to_owned()).collect();
        let vectors = store.embeddings().vectors_among(Entity::Case, &first, &filters).await?;
        let (mut chosen, more) = rank::choose(ranked, k, BEYOND, |a, b| alike(&vectors, a, b));
        // If too many rows were displaced, the rows are read again with more room.
        let below = more.iter().filter(|left| left.reason == "below_k").count();
        if all || chosen.len() == k && below == BEYOND {
            rank::sort(&mut chosen);
            let policy = policy.map(|(used, _)| used);
            return Ok(RankedFind { compared, policy, ..sieve.find((chosen, more), k) });
        }
        room = room.saturating_mul(8);
    }
}

/// Counts how often each case was recalled by anybody, as the finding does, as far as that is recorded.
async fn recalls(store: &Store, asked: &mut ResolvedQuestion) -> Result<HashMap<String, u32>, LabError> {
    let mut recalls = HashMap::new();
    if store.sources_of(Entity::Access).is_err() {
        asked.notes.push("nothing is penalised: this database does not record what was recalled".to_owned());
        return Ok(recalls);
    }
    let count = |access: Row| {
        // One recall, however often it names a case.
        for id in BTreeSet::from_iter(access.list("ids")) {
            *recalls.entry(id.to_owned()).or_default() += 1;
        }
    };
    store.each_candidate(Entity::Access, &[], &["ids"], &[], count).await?;
    Ok(recalls)
}

/// Cosine of two rows; word overlap if one of them has no vector.
fn alike(vectors: &HashMap<String, Vec<f32>>, a: &Row, b: &Row) -> Option<f64> {
    match (vectors.get(a.id()), vectors.get(b.id())) {
        (Some(a), Some(b)) => cosine_of(a, b),
        _ => Some(overlap(&words(&keyword::text_of(a)), &words(&keyword::text_of(b)))),
    }
}

/// The nearest cases of an owner without near-duplicates: considers more and more of them until `k` are chosen.
async fn nearest_cases(
    store: &Store,
    k: usize,
    (request, asked): (&RecallRequest, &ResolvedQuestion),
    filters: &[Filter],
    vector: &[f32],
) -> Result<RankedFind, LabError> {
    let mut most = k.saturating_mul(4).saturating_add(16).min(MOST);
    loop {
        let ComparedVectors { near, tally, by } =
            store.embeddings().nearest(Entity::Case, filters, vector, most).await?;
        let ids: Vec<String> = near.iter().map(|n| n.id.clone()).collect();
        let vectors = store.embeddings().vectors_among(Entity::Case, &ids, filters).await?;
        let mut rows = store.related_among(Entity::Case, "id", &ids, filters, None).await?;
        rows.retain(|row| filters.iter().all(|f| f.matches(row)));
        let mut sieve = CandidateSieve::new(store, asked, request);
        rows.retain(|row| sieve.takes(row));
        // The exact cosine, independent of how the row was found.
        let exact = |row: &Row| vectors.get(row.id()).and_then(|v| cosine_of(vector, v));
        let likeness: Vec<Option<f64>> = rows.iter().map(exact).collect();
        let ranked = among::ranked(rows.into_iter().zip(likeness), &RankingInput::Likeness { name: "similarity" });
        let (chosen, more) = rank::choose(ranked, k, BEYOND, |a, b| alike(&vectors, a, b));
        // A row just beyond the edge may be as near as the last chosen one.
        let edge = near.last().map(|n| n.cosine + 1e-5);
        let settled = chosen.len() == k && chosen.last().map(|c| c.score.total) > edge;
        if near.len() < most || settled || most == MOST {
            let compared = Some((tally, by));
            // Whether the cases not considered are quarantined is unknown.
            let all = near.len() < most;
            let candidates = if all {
                sieve.candidates
            } else {
                tally.compared.saturating_sub(sieve.left_out.len() + sieve.held.len())
            };
            return Ok(RankedFind { compared, candidates, ..sieve.find((chosen, more), k) });
        }
        most = most.saturating_mul(4).min(MOST);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_rows_with_one_id_the_one_that_was_ranked_is_taken() {
        let row = |id: &str, at: &str, title: Value| {
            let mut row = Row::empty(Entity::Episode);
            row.set("id", json!(id));
            row.set("started_at", json!(at));
            row.set("title", title);
            row
        };
        let mut found = vec![row("e", "1", json!("first")), row("e", "2", json!("second")), row("f", "1", json!("f"))];
        let mut taken = |id: &str, at: &str| {
            take_whole(&mut found, &row(id, at, Value::Null)).and_then(|row| row.text("title").map(str::to_owned))
        };
        // A row changed meanwhile is taken as it is, if no other has its id.
        let titles = [("e", "2"), ("f", "3"), ("e", "1"), ("e", "1")].map(|(id, at)| taken(id, at));
        assert_eq!(titles.map(Option::unwrap_or_default), ["second", "f", "first", ""]);
    }
}
