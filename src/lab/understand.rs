//! Insights, graduation, forgetting and usefulness, read from the whole memory.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::memory_uses::TimedUses;
use super::{LabError, Told, each, of_agent, silent};
use crate::layout::{EpisodeLink, LinkBy};
use crate::memory::digest::{Digest, digest};
use crate::memory::json::{self, JsonPart};
use crate::memory::mask::Mask;
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::records::Record;
use crate::memory::query::Query;
use crate::memory::{Entity, Row, agreeing, feedback, time, utility};
use crate::recall::understand::canvas::{self, CanvasStudy, CanvasSummary, CanvasUse};
use crate::recall::understand::forgetting::{AgeTally, AgedEpisode};
use crate::recall::understand::graduation;
use crate::recall::understand::quality::{self, ProposalDecision, WorkTally, WorkedEpisode};
use crate::recall::understand::report::{CanvasPattern, Graduation, InsightRule, Insights};
use crate::recall::understand::usefulness::{JudgedMemories, MemoryJudge};
use crate::store::scratch::{scratch, sorter};
use crate::store::{Store, StoreError, named_ids};

/// Memories shown that mislead, and that help.
const SHOWN: usize = 10;

/// Episodes with the columns for canvases and figures.
#[derive(Default)]
struct Episodes {
    /// Only for the readiness of an agent.
    worked: WorkTally,
    aged: AgeTally,
    facts: IdTable<4>,
    /// Canvas events with the episode that names them, if some do not name theirs.
    named: IdTable<2>,
    count: usize,
    /// Whether any episode has a utility.
    rated: bool,
    there: bool,
}

/// Known facts about an episode.
#[derive(Clone, Copy)]
struct EpisodeFacts {
    /// Feedback aggregate; NaN if unknown.
    feedback: f64,
    /// Utility; NaN if unknown.
    utility: f64,
    /// Start of the episode, in microseconds since 1970; the least value when unknown.
    at: i64,
}

impl EpisodeFacts {
    fn record(self, id: Digest) -> Record<4> {
        [id, self.feedback.to_bits(), self.utility.to_bits(), self.at as u64]
    }

    fn of([_, feedback, utility, at]: Record<4>) -> Self {
        EpisodeFacts { feedback: f64::from_bits(feedback), utility: f64::from_bits(utility), at: at as i64 }
    }

    fn feedback(self) -> Option<f64> {
        Some(self.feedback).filter(|value| !value.is_nan())
    }
}

/// Counts and scores of the feedback that was read.
#[derive(Default)]
struct FeedbackCounts {
    rows: usize,
    thumbs_up: usize,
    thumbs_down: usize,
    corrections: usize,
    /// The sum of the scores of an episode, and their number.
    scores: IdTable<3>,
    there: bool,
}

impl FeedbackCounts {
    /// The mean of the scores of an episode.
    fn mean(&self, episode: &str) -> Option<f64> {
        self.scores.get(episode).map(|[_, sum, n]| f64::from_bits(sum) / n as f64)
    }
}

async fn read_feedback(store: &Store, agent: Option<&str>, told: Told<'_>) -> Result<FeedbackCounts, LabError> {
    let (mut said, mut scores) = (FeedbackCounts::default(), sorter());
    let columns = ["kind", "rating", "correction", "episode_id", "score", "counts"];
    said.there = each(store, &of_agent(Entity::Feedback, &columns, agent), told, |row| {
        said.rows += 1;
        let kind = row.text("kind").unwrap_or_default();
        said.thumbs_up += usize::from(kind == feedback::THUMBS_UP);
        said.thumbs_down += usize::from(kind == feedback::THUMBS_DOWN);
        said.corrections += usize::from(kind == "correction" || feedback::correction(&row).is_some());
        if let (Some(episode), Some(score), Some(true)) =
            (row.text("episode_id"), row.number("score"), row.get("counts").as_bool())
        {
            scores.add([digest(episode), score.to_bits(), 1]);
        }
    })
    .await?;
    said.scores = IdTable::of(scores, |[_, sum, n], [_, score, more]| {
        *sum = (f64::from_bits(*sum) + f64::from_bits(*score)).to_bits();
        *n += more;
    })?;
    Ok(said)
}

/// Reads episodes. If the readiness of an agent is requested, `graded` is the number of latest episodes it uses.
async fn read_episodes(
    store: &Store,
    agent: Option<&str>,
    said: &FeedbackCounts,
    now: &str,
    (graded, coded): (Option<usize>, bool),
    told: Told<'_>,
) -> Result<Episodes, LabError> {
    let links = store.contexts().episode_links();
    let some_loose = has_loose_events(store, &links).await?;
    let (mut facts, mut named) = (sorter(), sorter());
    let mut found = Episodes { worked: WorkTally::new(graded.unwrap_or_default()), ..Episodes::default() };
    let supervised = match agent.filter(|_| coded) {
        Some(agent) => decisions(store, agent).await?,
        None => HashMap::new(),
    };
    let columns = columns_of_episodes(coded, &links);
    let today = time::epoch_micros(now);
    found.there = each(store, &of_agent(Entity::Episode, &columns, agent), told, |row| {
        let id = row.id().to_owned();
        let started = row.text("started_at").map(str::to_owned);
        let aggregate = row.number("feedback_score").or_else(|| said.mean(&id));
        let at = started.as_deref().and_then(time::epoch_micros);
        if let (Some(today), Some(at)) = (today, at) {
            found.aged.add(&aged(&row, today - at));
        }
        if some_loose {
            let events = named_ids(&row, &links, Entity::CanvasEvent);
            events.iter().for_each(|event| named.add([digest(event), digest(&id)]));
        }
        found.count += 1;
        let utility = row.number("utility");
        found.rated |= utility.is_some();
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        let known = EpisodeFacts { feedback: number(aggregate), utility: number(utility), at: at.unwrap_or(i64::MIN) };
        facts.add(known.record(digest(&id)));
        if graded.is_some() {
            found.worked.add(WorkedEpisode {
                outcome: row.text("outcome").map(str::to_owned),
                started_at: started,
                feedback: aggregate,
                interventions: row.get("intervention_count").as_i64(),
                constitutional: row.number("constitutional_score"),
                confidence: row.number("confidence"),
                success: row.get("success").as_bool(),
                supervised: supervised.get(&id).copied(),
                id,
                skill: skill(row.get("metadata")),
                teaching: teaching(row.get("metadata")),
            });
        }
    })
    .await?;
    said.scores.check()?;
    found.facts = IdTable::of(facts, |_, _| {})?;
    found.named = IdTable::of(named, |_, _| {})?;
    Ok(found)
}

/// The columns that [`read_episodes`] reads: more if an agent's answers were judged.
fn columns_of_episodes(coded: bool, links: &[EpisodeLink]) -> Vec<&'static str> {
    let mut columns = vec!["id", "outcome", "started_at", "feedback_score", "intervention_count", "utility"];
    columns.extend(["decay_score", "access_count", "archived_at", "consolidated_into", "status"]);
    if coded {
        columns.extend(["constitutional_score", "confidence", "success", "metadata"]);
    }
    for link in links.iter().filter(|l| l.to == Entity::CanvasEvent) {
        match &link.by {
            LinkBy::List(column) | LinkBy::Path(column, _) => {
                columns.extend(Entity::Episode.column(column).map(|c| c.name));
            }
            LinkBy::Back => {}
        }
    }
    columns
}

/// Returns the aging facts of an episode that began this many microseconds ago.
fn aged(row: &Row, micros: i64) -> AgedEpisode {
    let put_away = !row.get("archived_at").is_null()
        || !row.get("consolidated_into").is_null()
        || matches!(row.text("status"), Some("archived" | "summarized"));
    AgedEpisode {
        days: micros as f64 / 86_400e6,
        decay: row.number("decay_score"),
        accesses: row.get("access_count").as_i64(),
        put_away,
    }
}

/// Whether canvas events name no episode while episodes name theirs.
async fn has_loose_events(store: &Store, links: &[EpisodeLink]) -> Result<bool, StoreError> {
    let mut loose = false;
    let names = |link: &EpisodeLink| link.to == Entity::CanvasEvent && !matches!(link.by, LinkBy::Back);
    if links.iter().any(names) {
        let mut query = Query::new(Entity::CanvasEvent);
        query.columns = Some(vec!["episode_id"]);
        query.absent = Some("episode_id");
        each(store, &query, &silent, |row| loose |= row.text("episode_id").is_none()).await?;
    }
    Ok(loose)
}

/// Reads the decisions of supervisors, by episode.
async fn decisions(store: &Store, agent: &str) -> Result<HashMap<String, ProposalDecision>, StoreError> {
    let supervised = store.contexts().supervised(agent).await?.unwrap_or_default();
    Ok(supervised
        .into_iter()
        .map(|s| (s.episode, ProposalDecision { approved: s.approved, followed: s.followed }))
        .collect())
}

/// The skill that an episode was an execution of.
fn skill(metadata: &Value) -> Option<String> {
    let named = metadata.get("skill_type")?.as_str() == Some("openclaw");
    metadata.get("skill_id").filter(|_| named)?.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}

/// Quality of the teaching that an episode is a record of.
fn teaching(metadata: &Value) -> Option<f64> {
    let proposal = metadata.get("episode_type")?.as_str() == Some("meta_agent_proposal");
    metadata.get("quality_score").filter(|_| proposal)?.as_f64().filter(|quality| *quality > 0.0)
}

/// Summarizes canvas events; `None` if the database has none.
async fn read_canvases(
    store: &Store,
    agent: Option<&str>,
    now: &str,
    episodes: &Episodes,
    told: Told<'_>,
) -> Result<Option<CanvasSummary>, LabError> {
    let columns = ["canvas_id", "canvas_type", "component_type", "action", "created_at", "episode_id", "metadata"];
    let query = Query { unparsed: true, ..of_agent(Entity::CanvasEvent, &columns, agent) };
    let mut study = CanvasStudy::new(scratch).as_of(time::epoch_micros(now));
    let there = each(store, &query, told, |row| study.add(&canvas_use(&row, episodes))).await?;
    episodes.named.check()?;
    let summary = study.close(|episode| episodes.facts.find(episode).and_then(|e| EpisodeFacts::of(e).feedback()))?;
    episodes.facts.check()?;
    Ok(there.then_some(summary))
}

/// Keys for the time that a canvas was open.
const OPEN: [&str; 3] = ["open_seconds", "dwell_seconds", "open_duration_seconds"];
/// Keys for whoever did something.
const BY: [&str; 3] = ["by", "actor", "updated_by"];

fn canvas_use<'r>(row: &'r Row, episodes: &Episodes) -> CanvasUse<'r> {
    let wanted = |key: &str| OPEN.contains(&key) || BY.contains(&key);
    let members: Vec<(String, Value)> = match row.entity.position("metadata").map(|at| row.part(at)) {
        Some(JsonPart::Document(text)) if OPEN.iter().chain(&BY).any(|key| text.contains(key)) => {
            let members = json::members(text).into_iter().flatten().filter(|(key, _)| wanted(key));
            members.map(|(key, value)| (key, json::read(value.get()).value)).collect()
        }
        Some(JsonPart::Value(Value::Object(object))) => {
            object.iter().filter(|(key, _)| wanted(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
        }
        _ => Vec::new(),
    };
    let said = |key: &str| members.iter().rfind(|(name, _)| name == key).map(|(_, value)| value);
    let by = BY.iter().find_map(|key| said(key)?.as_str());
    let named = || episodes.named.get(row.id()).map(|[_, episode]| episode);
    CanvasUse {
        id: row.id(),
        canvas: row.text("canvas_id"),
        canvas_type: row.text("canvas_type").unwrap_or_default(),
        component: row.text("component_type").unwrap_or_default(),
        action: row.text("action").unwrap_or_default(),
        at: row.text("created_at").and_then(time::known).and_then(time::epoch_micros),
        open_seconds: OPEN.iter().find_map(|key| said(key)?.as_f64()),
        by_agent: matches!(by, Some("agent" | "assistant" | "system")),
        episode: row.text("episode_id").map(digest).or_else(named),
    }
}

/// Judges memories by their uses: by episodes if any has a utility, and by cases that name other cases, with the reward
/// in place of the utility. `None` if no uses are recorded.
async fn judge_memories(
    store: &Store,
    agent: Option<&str>,
    episodes: &Episodes,
    told: Told<'_>,
) -> Result<Option<MemoryJudge>, LabError> {
    let mut uses = TimedUses::default();
    let mut linked = false;
    if episodes.rated {
        let mut links = sorter();
        linked = each(store, &links_of_memories(), told, |row| {
            if let (Some(episode), Some(memory)) = (row.text("episode_id"), row.text("memory_id")) {
                links.add([digest(episode), digest(memory)]);
            }
        })
        .await?;
        uses.add_links(links, &episodes.facts, |facts| {
            let facts = EpisodeFacts::of(facts);
            (facts.at, utility::of_use(Some(facts.utility)))
        })?;
    }
    let cases = of_agent(Entity::Case, &["reward", "reference_case_ids", "created_at"], agent);
    let referred = each(store, &cases, told, |row| {
        let Some(reward) = row.number("reward") else { return };
        let at = row.text("created_at").and_then(time::epoch_micros).unwrap_or(i64::MIN);
        // One use, however often the case names it.
        for memory in BTreeSet::from_iter(row.list("reference_case_ids")) {
            uses.add(digest(memory), at, reward.clamp(0.0, 1.0));
        }
    })
    .await?;
    let mut judge = MemoryJudge::default();
    uses.each(|memory, latest| judge.add(memory, latest))?;
    Ok((linked || referred).then_some(judge))
}

fn links_of_memories() -> Query {
    let mut links = Query::new(Entity::MemoryLink);
    links.columns = Some(vec!["episode_id", "memory_id"]);
    links
}

/// The ids of memories to show, read again.
async fn ids_of_memories(
    store: &Store,
    agent: Option<&str>,
    judge: &MemoryJudge,
) -> Result<HashMap<Digest, String>, StoreError> {
    let mut ids: HashMap<Digest, String> = judge.wanted().map(|memory| (memory, String::new())).collect();
    if ids.is_empty() {
        return Ok(ids);
    }
    let mut name = |memory: &str| {
        if let Some(id) = ids.get_mut(&digest(memory)).filter(|id| id.is_empty()) {
            memory.clone_into(id);
        }
    };
    each(store, &links_of_memories(), &silent, |row| row.text("memory_id").into_iter().for_each(&mut name)).await?;
    let cases = of_agent(Entity::Case, &["reference_case_ids"], agent);
    each(store, &cases, &silent, |row| row.list("reference_case_ids").into_iter().for_each(&mut name)).await?;
    // A memory that is not found any more is deleted.
    ids.retain(|_, id| !id.is_empty());
    Ok(ids)
}

async fn name_memories(store: &Store, judged: &mut JudgedMemories, mask: Option<&Mask>) -> Result<(), StoreError> {
    let ids: Vec<String> = judged.mislead.iter().chain(&judged.help).map(|m| m.id.clone()).collect();
    let mut rows = store.contexts().memories(&ids).await?;
    if let Some(mask) = mask {
        rows.iter_mut().for_each(|row| mask.row(row));
    }
    let title = |id: &str| {
        let row = rows.iter().find(|r| r.id() == id)?;
        row.text("title").or(row.text("text")).map(|t| t.chars().take(120).collect::<String>())
    };
    for memory in judged.mislead.iter_mut().chain(&mut judged.help) {
        memory.title = title(&memory.id);
    }
    Ok(())
}

/// Insights of one agent, or of all. `now` is the moment for computing ages.
///
/// # Errors
/// [`LabError::NotFound`] for an unknown agent, or an error of the engine.
pub async fn insights(
    store: &Store,
    agent: Option<&str>,
    now: &str,
    mask: Option<&Mask>,
    told: Told<'_>,
) -> Result<Insights, LabError> {
    let mut said = read_feedback(store, agent, told).await?;
    let episodes = read_episodes(store, agent, &said, now, (None, false), told).await?;
    said.scores = IdTable::default();
    let canvases = read_canvases(store, agent, now, &episodes, told).await?;
    let judge = judge_memories(store, agent, &episodes, told).await?;
    if let Some(agent) = agent {
        let nothing = episodes.count == 0 && said.rows == 0 && canvases.as_ref().is_none_or(|c| c.events == 0);
        if nothing && judge.as_ref().is_none_or(MemoryJudge::is_empty) && find_agent(store, agent).await?.is_none() {
            return Err(no_agent(store, agent));
        }
    }
    let mut notes = Vec::new();
    for (there, entity) in
        [(canvases.is_some(), Entity::CanvasEvent), (said.there, Entity::Feedback), (episodes.there, Entity::Episode)]
    {
        if !there {
            notes.push(format!("no {}: {}", entity.title(), store.why_missing(entity).0));
        }
    }
    let canvases = canvases.unwrap_or_default();
    if canvases.types.iter().any(|t| t.closed_untimed > 0) {
        let untimed: usize = canvases.types.iter().map(|t| t.closed_untimed).sum();
        let words = "{#} {close has no recorded time: it counts|closes have no recorded time: they count} neither as \
         quick nor as slow";
        notes.push(agreeing(untimed, words));
    }
    if canvases.has_others {
        let others = canvas::OTHERS;
        notes.push(format!(
            "there are more kinds of canvas or actions than are counted separately: the last ones count as `{others}`"
        ));
    }
    let mut rules: Vec<InsightRule> = canvas::RULES
        .iter()
        .map(|(name, rule)| InsightRule { name: (*name).to_owned(), rule: (*rule).to_owned() })
        .collect();
    if has_code(store) {
        let closed: Vec<&str> =
            canvases.types.iter().filter(|t| t.closed > 0).map(|t| t.canvas_type.as_str()).collect();
        let words = format!("in this system's code every close counts as closes_quickly: {}", closed.join(", "));
        rules.push(InsightRule { name: "closes_quickly as coded".to_owned(), rule: words });
    }
    let pattern = |word: &'static str| CanvasPattern {
        pattern: word,
        canvas_types: canvases.with(word).into_iter().map(str::to_owned).collect(),
    };
    let mut memories = None;
    if let Some(judge) = judge {
        let ids = ids_of_memories(store, agent, &judge).await?;
        let mut judged = judge.close(&ids, SHOWN);
        name_memories(store, &mut judged, mask).await?;
        memories = Some(judged);
    } else {
        notes.push("the use of memories is not recorded, so none can be judged".to_owned());
    }
    Ok(Insights {
        agent: agent.map(str::to_owned),
        rules,
        user_interaction_patterns: ["closes_quickly", "engages", "submits"].map(pattern).to_vec(),
        observations: canvases.observations(said.thumbs_up, said.thumbs_down),
        canvas_events: canvases.events,
        feedback_rows: said.rows,
        forgetting: episodes.aged.curve(),
        memories,
        notes,
        types: canvases.types,
        components: canvases.components,
    })
}

/// Quality, interventions and readiness of an agent.
///
/// # Errors
/// As [`insights`]; a database without episodes is [`StoreError::Missing`].
pub async fn graduation(store: &Store, agent: &str, now: &str, told: Told<'_>) -> Result<Graduation, LabError> {
    store.sources_of(Entity::Episode)?;
    let known = find_agent(store, agent).await?;
    let said = read_feedback(store, Some(agent), told).await?;
    let coded = has_code(store);
    let text = |column: &str| known.as_ref().and_then(|a| a.text(column)).map(str::to_owned);
    let status = text("status");
    let latest = graduation::window(status.as_deref());
    let episodes = read_episodes(store, Some(agent), &said, now, (Some(latest), coded), told).await?;
    if known.is_none() && episodes.worked.episodes == 0 {
        return Err(no_agent(store, agent));
    }
    let canvases = read_canvases(store, Some(agent), now, &episodes, told).await?;
    let success = canvases.as_ref().map(|c| c.success).unwrap_or_default();
    let quality = quality::quality(&episodes.worked, success.all);
    let canvas_periods = success.periods();
    let chat = said.there.then_some(said.corrections);
    let on_canvas = canvases.as_ref().map(CanvasSummary::corrections);
    let interventions = quality::interventions(&episodes.worked, chat, on_canvas);
    Ok(Graduation {
        agent: agent.to_owned(),
        name: text("name"),
        episodes: episodes.worked.episodes,
        outcomes: episodes.worked.outcomes.clone(),
        documented: graduation::documented(&quality, &canvas_periods, &interventions),
        coded: coded.then(|| graduation::coded(&episodes.worked, status.as_deref())),
        coded_reason: no_code(store),
        status,
        quality,
        canvas_periods,
        interventions,
    })
}

/// Whether the database belongs to the system whose code has its own formula.
fn has_code(store: &Store) -> bool {
    no_code(store).is_none()
}

/// Reason why there is no readiness by the code's formula; `None` if there is one.
fn no_code(store: &Store) -> Option<&'static str> {
    let named = |name: &str| store.recognised().layouts.iter().any(|l| l.name == name);
    if named("atom") {
        return None;
    }
    Some(if named("atom-2026-02") {
        "the formula in Atom's code reads agent_episodes; this database has no confidence, supervision and skills"
    } else {
        "only the application Atom has its own formula for readiness"
    })
}

async fn find_agent(store: &Store, agent: &str) -> Result<Option<Row>, StoreError> {
    match store.row(Entity::Agent, agent).await {
        Err(StoreError::Missing { .. }) => Ok(None),
        found => found,
    }
}

fn no_agent(store: &Store, agent: &str) -> LabError {
    let list = store.invocation().line(["list", "agent"]);
    LabError::NotFound(format!("there is no agent `{agent}` in {}; `{list}` shows them", store.location()))
}

/// The ids of all agents, from the entity or, without it, from the episodes.
///
/// # Errors
/// The engine's refusal.
pub async fn agents(store: &Store) -> Result<Vec<String>, StoreError> {
    let mut ids = Vec::new();
    let mut query = Query::new(Entity::Agent);
    query.columns = Some(vec!["id"]);
    each(store, &query, &silent, |row| ids.push(row.id().to_owned())).await?;
    ids.retain(|id| !id.is_empty());
    ids.sort_unstable();
    Ok(ids)
}
