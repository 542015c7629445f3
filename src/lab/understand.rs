//! Insights, graduation, forgetting and usefulness, read from the whole memory.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::{KeyedMeans, LabError, Told, each, of_agent, silent};
use crate::layout::LinkBy;
use crate::memory::mask::Mask;
use crate::memory::query::Query;
use crate::memory::{Entity, Row, feedback, time};
use crate::recall::understand::canvas::{self, CanvasSummary, CanvasUse};
use crate::recall::understand::forgetting::{self, AgedEpisode};
use crate::recall::understand::graduation;
use crate::recall::understand::quality::{self, ProposalDecision, WorkedEpisode};
use crate::recall::understand::report::{CanvasPattern, Graduation, InsightRule, Insights};
use crate::recall::understand::usefulness::{self, JudgedMemories, MemoryUse};
use crate::store::{Store, StoreError, named_ids};

/// Memories shown that mislead, and that help.
const SHOWN: usize = 10;

/// Episodes with what canvases and figures need of them.
#[derive(Default)]
struct Episodes {
    worked: Vec<WorkedEpisode>,
    aged: Vec<AgedEpisode>,
    /// Known feedback aggregates, by episode.
    feedback: HashMap<String, f64>,
    /// Utility and start, by episode.
    utility: HashMap<String, (f64, Option<String>)>,
    there: bool,
}

/// What feedback says.
#[derive(Default)]
struct FeedbackCounts {
    rows: usize,
    thumbs_up: usize,
    thumbs_down: usize,
    corrections: usize,
    scores: KeyedMeans,
    there: bool,
}

async fn read_feedback(store: &Store, agent: Option<&str>, told: Told<'_>) -> Result<FeedbackCounts, StoreError> {
    let mut said = FeedbackCounts::default();
    let columns = ["kind", "rating", "correction", "episode_id", "score", "counts"];
    said.there = each(store, &of_agent(Entity::Feedback, &columns, agent), told, |row| {
        said.rows += 1;
        let kind = row.text("kind").unwrap_or_default();
        said.thumbs_up += usize::from(kind == feedback::THUMBS_UP);
        said.thumbs_down += usize::from(kind == feedback::THUMBS_DOWN);
        let corrects = row.text("correction").is_some_and(|text| !text.trim().is_empty());
        said.corrections += usize::from(corrects || kind == "correction");
        if let (Some(episode), Some(score), Some(true)) =
            (row.text("episode_id"), row.number("score"), row.get("counts").as_bool())
        {
            said.scores.add(episode, score);
        }
    })
    .await?;
    Ok(said)
}

/// Reads episodes. Canvas events that point back to none get the one that names them.
async fn read_episodes(
    store: &Store,
    agent: Option<&str>,
    (said, events): (&FeedbackCounts, &mut [CanvasUse]),
    now: &str,
    coded: bool,
    told: Told<'_>,
) -> Result<Episodes, StoreError> {
    let mut loose: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, event) in events.iter().enumerate().filter(|(_, event)| event.episode.is_none()) {
        loose.entry(event.id.clone()).or_default().push(at);
    }
    let supervised = match agent.filter(|_| coded) {
        Some(agent) => decisions(store, agent).await?,
        None => HashMap::new(),
    };
    let links = store.contexts().episode_links();
    let mut columns = vec![
        "id",
        "outcome",
        "started_at",
        "feedback_score",
        "intervention_count",
        "utility",
        "decay_score",
        "access_count",
        "archived_at",
        "consolidated_into",
        "status",
    ];
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
    let today = time::epoch_micros(now);
    let mut found = Episodes::default();
    found.there = each(store, &of_agent(Entity::Episode, &columns, agent), told, |row| {
        let id = row.id().to_owned();
        let started = row.text("started_at").map(str::to_owned);
        let aggregate = row.number("feedback_score").or_else(|| said.scores.get(&id));
        let put_away = !row.get("archived_at").is_null()
            || !row.get("consolidated_into").is_null()
            || matches!(row.text("status"), Some("archived" | "summarized"));
        if let (Some(today), Some(at)) = (today, started.as_deref().and_then(time::epoch_micros)) {
            found.aged.push(AgedEpisode {
                days: (today - at) as f64 / 86_400e6,
                decay: row.number("decay_score"),
                accesses: row.get("access_count").as_i64(),
                put_away,
            });
        }
        for event in named_ids(&row, &links, Entity::CanvasEvent) {
            for at in loose.remove(&*event).into_iter().flatten() {
                events[at].episode = Some(id.clone());
            }
        }
        if let Some(utility) = row.number("utility") {
            found.utility.insert(id.clone(), (utility, started.clone()));
        }
        found.worked.push(WorkedEpisode {
            outcome: row.text("outcome").map(str::to_owned),
            started_at: started,
            feedback: aggregate,
            interventions: row.get("intervention_count").as_i64(),
            constitutional: row.number("constitutional_score"),
            confidence: row.number("confidence"),
            success: row.get("success").as_bool(),
            supervised: supervised.get(&id).copied(),
            skill: skill(row.get("metadata")),
            teaching: teaching(row.get("metadata")),
        });
        if let Some(aggregate) = aggregate {
            found.feedback.insert(id, aggregate);
        }
    })
    .await?;
    Ok(found)
}

/// What supervisors decided, by episode.
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

/// Canvas events; none where the database keeps none.
async fn read_events(store: &Store, agent: Option<&str>, told: Told<'_>) -> Result<Option<Vec<CanvasUse>>, StoreError> {
    let columns = ["canvas_id", "canvas_type", "component_type", "action", "created_at", "episode_id", "metadata"];
    let mut events = Vec::new();
    let there = each(store, &of_agent(Entity::CanvasEvent, &columns, agent), told, |row| {
        let text = |column: &str| row.text(column).map(str::to_owned);
        let metadata = row.get("metadata");
        let open = ["open_seconds", "dwell_seconds", "open_duration_seconds"];
        let by = ["by", "actor", "updated_by"].iter().find_map(|key| metadata.get(key)?.as_str());
        events.push(CanvasUse {
            id: row.id().to_owned(),
            canvas: text("canvas_id"),
            canvas_type: text("canvas_type").unwrap_or_default(),
            component: text("component_type").unwrap_or_default(),
            action: text("action").unwrap_or_default(),
            at: row.text("created_at").and_then(time::epoch_micros),
            open_seconds: open.iter().find_map(|key| metadata.get(key)?.as_f64()),
            by_agent: matches!(by, Some("agent" | "assistant" | "system")),
            episode: text("episode_id"),
        });
    })
    .await?;
    Ok(there.then_some(events))
}

/// Uses of memories: by episodes with a utility, and by cases that name other cases, whose reward stands for it.
async fn read_uses(
    store: &Store,
    agent: Option<&str>,
    episodes: &Episodes,
    told: Told<'_>,
) -> Result<Option<Vec<MemoryUse>>, StoreError> {
    let mut uses = Vec::new();
    let mut links = Query::new(Entity::MemoryLink);
    links.columns = Some(vec!["episode_id", "memory_id"]);
    let linked = !episodes.utility.is_empty()
        && each(store, &links, told, |row| {
            let known = row.text("episode_id").and_then(|id| episodes.utility.get(id));
            if let (Some(memory), Some((utility, at))) = (row.text("memory_id"), known) {
                uses.push(MemoryUse { memory: memory.to_owned(), utility: *utility, at: at.as_deref().map(Arc::from) });
            }
        })
        .await?;
    let cases = of_agent(Entity::Case, &["reward", "reference_case_ids", "created_at"], agent);
    let referred = each(store, &cases, told, |row| {
        let Some(reward) = row.number("reward") else { return };
        let at: Option<Arc<str>> = row.text("created_at").map(Arc::from);
        uses.extend(row.list("reference_case_ids").into_iter().map(|memory| MemoryUse {
            memory: memory.to_owned(),
            utility: reward,
            at: at.clone(),
        }));
    })
    .await?;
    Ok((linked || referred).then_some(uses))
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

/// Insights of one agent, or of all. `now` is the moment that ages are counted to.
///
/// # Errors
/// [`LabError::NotFound`] for an agent of whom there is nothing, or the engine's refusal.
pub async fn insights(
    store: &Store,
    agent: Option<&str>,
    now: &str,
    mask: Option<&Mask>,
    told: Told<'_>,
) -> Result<Insights, LabError> {
    let said = read_feedback(store, agent, told).await?;
    let mut events = read_events(store, agent, told).await?;
    let named = (&said, events.as_deref_mut().unwrap_or_default());
    let episodes = read_episodes(store, agent, named, now, false, told).await?;
    let canvases = events.map(|events| canvas::understand(events, &episodes.feedback));
    let uses = read_uses(store, agent, &episodes, told).await?;
    if let Some(agent) = agent {
        let nothing = episodes.worked.is_empty() && said.rows == 0 && canvases.as_ref().is_none_or(|c| c.events == 0);
        if nothing && uses.as_ref().is_none_or(Vec::is_empty) && find_agent(store, agent).await?.is_none() {
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
        notes.push(format!("{untimed} closes have no time to tell by: they count neither as quick nor as slow"));
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
    let mut memories = uses.map(|uses| usefulness::judge(uses, SHOWN));
    match &mut memories {
        Some(judged) => name_memories(store, judged, mask).await?,
        None => notes.push("nothing says which memory was used where, so none can be judged".to_owned()),
    }
    Ok(Insights {
        agent: agent.map(str::to_owned),
        rules,
        user_interaction_patterns: ["closes_quickly", "engages", "submits"].map(pattern).to_vec(),
        observations: canvases.observations(said.thumbs_up, said.thumbs_down),
        canvas_events: canvases.events,
        feedback_rows: said.rows,
        forgetting: (!episodes.aged.is_empty()).then(|| forgetting::curve(&episodes.aged)),
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
    let mut events = read_events(store, Some(agent), told).await?;
    let named = (&said, events.as_deref_mut().unwrap_or_default());
    let episodes = read_episodes(store, Some(agent), named, now, coded, told).await?;
    if known.is_none() && episodes.worked.is_empty() {
        return Err(no_agent(store, agent));
    }
    let canvases = events.map(|events| canvas::understand(events, &episodes.feedback));
    let outcomes = canvases.as_ref().map(|c| c.outcomes.clone()).unwrap_or_default();
    let quality = quality::quality(&episodes.worked, &outcomes);
    let canvas_periods = quality::periods(&outcomes);
    let chat = said.there.then_some(said.corrections);
    let on_canvas = canvases.as_ref().map(CanvasSummary::corrections);
    let interventions = quality::interventions(&episodes.worked, chat, on_canvas);
    let text = |column: &str| known.as_ref().and_then(|a| a.text(column)).map(str::to_owned);
    let status = text("status");
    let mut by_outcome = std::collections::BTreeMap::new();
    for episode in &episodes.worked {
        *by_outcome.entry(episode.outcome.clone().unwrap_or_default()).or_default() += 1;
    }
    Ok(Graduation {
        agent: agent.to_owned(),
        name: text("name"),
        episodes: episodes.worked.len(),
        outcomes: by_outcome,
        documented: graduation::documented(&quality, &canvas_periods, &interventions),
        coded: coded.then(|| graduation::coded(&episodes.worked, status.as_deref())),
        coded_reason: no_code(store),
        status,
        quality,
        canvas_periods,
        interventions,
    })
}

/// Whether the database is of the system whose code has a formula of its own.
fn has_code(store: &Store) -> bool {
    no_code(store).is_none()
}

/// Why there is no readiness as coded; none where there is.
fn no_code(store: &Store) -> Option<&'static str> {
    let named = |name: &str| store.recognised().layouts.iter().any(|l| l.name == name);
    if named("atom") {
        return None;
    }
    Some(if named("atom-2026-02") {
        "the formula in Atom's code reads agent_episodes; this database has no confidence, supervision and skills"
    } else {
        "only Atom has a formula for readiness in its code"
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

/// The ids of all agents, by the entity and, where there is none, by the episodes.
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
