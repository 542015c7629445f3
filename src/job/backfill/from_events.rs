//! Makes episodes out of workflow runs that have none: as rows where episodes are kept, as an `episode_created` event at the
//! end of the run's log where episodes are derived from it.

use std::collections::{HashMap, HashSet};

use futures::future::BoxFuture;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::sources::{ERASED, SourcePlace, spare, writable};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft, now};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::layout::BoundSource;
use crate::memory::workflow::{self, DerivedEpisode, WorkflowEvent, WorkflowRun};
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::encode::{GivenValue, plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::TableName;

/// Columns of an episode that a run gives.
const EPISODE: [&str; 18] = [
    "id",
    "agent_id",
    "user_id",
    "execution_ids",
    "title",
    "workflow_name",
    "status",
    "outcome",
    "started_at",
    "ended_at",
    "duration_seconds",
    "observation",
    "thoughts",
    "actions",
    "result",
    "success",
    "insight",
    "parent_id",
];

struct FromEvents;

/// The backfill, where there are workflow events and a place for episodes.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    events(store)?;
    target(store)?;
    Ok(Box::new(FromEvents))
}

fn events(store: &Store) -> Result<&BoundSource, ChangeError> {
    let sources = store.sources_of(Entity::WorkflowEvent)?;
    let plain = |s: &&BoundSource| plain_column(s, "run_id").is_some() && plain_column(s, "kind").is_some();
    sources
        .into_iter()
        .find(plain)
        .ok_or_else(|| ChangeError::Refused("the events here name their run in no column of their own".to_owned()))
}

/// Destination of an episode.
enum EpisodeTarget<'s> {
    /// A row among the episodes.
    Row(&'s BoundSource),
    /// An event at the end of the log.
    Log(&'s BoundSource),
}

fn target(store: &Store) -> Result<EpisodeTarget<'_>, ChangeError> {
    let derived = store.sources_of(Entity::Episode)?.into_iter().any(|s| s.derive.is_some());
    if derived {
        let needs = ["id", "run_id", "sequence", "kind", "data", "created_at"];
        return Ok(EpisodeTarget::Log(writable(store, Entity::WorkflowEvent, &needs)?[0]));
    }
    Ok(EpisodeTarget::Row(writable(store, Entity::Episode, &["execution_ids", "workflow_name", "observation"])?[0]))
}

impl Job for FromEvents {
    fn name(&self) -> &'static str {
        "episodes-from-events"
    }

    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName> {
        let of_target = target(store).map(|t| match t {
            EpisodeTarget::Row(source) | EpisodeTarget::Log(source) => table_of(source),
        });
        let mut tables: Vec<TableName> = events(store).map(table_of).into_iter().chain(of_target).collect();
        tables.dedup();
        tables
    }

    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>> {
        Box::pin(async move { Ok(Some(store.walks().value_count(events(store)?, "run_id").await?)) })
    }

    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>> {
        Box::pin(batch(ask))
    }

    fn effects(&self) -> Vec<String> {
        vec![
            "one episode for each run that has come to its end and has none: observation from its start arguments, thoughts, \
             actions and result from its log; why it worked is never invented"
                .to_owned(),
        ]
    }
}

async fn batch(ask: BatchAsk<'_>) -> Result<JobBatch, ChangeError> {
    let store = ask.store;
    let source = events(store)?;
    let place = SourcePlace::read(ask.place);
    let mut draft = Draft::batch(store, ask.own, "backfill.episodes-from-events", ChangeDanger::Guarded);
    let runs = store.walks().values(source, "run_id", place.after.as_ref(), ask.size).await?;
    let last = runs.last().map(|run| FetchedValue::Text(run.clone()));
    let next = place.behind(last.as_ref(), runs.len() == ask.size, 1);
    let mut logs: HashMap<String, Vec<Row>> = HashMap::new();
    for event in store.related(Entity::WorkflowEvent, "run_id", &runs).await? {
        if let Some(run) = event.text("run_id") {
            logs.entry(run.to_owned()).or_default().push(event);
        }
    }
    let seen = runs.len();
    let erased = Erased::of(store).await?;
    let spared = match target(store)? {
        EpisodeTarget::Log(source) => to_log(&mut draft, source, &runs, &mut logs, erased.as_ref()).await?,
        EpisodeTarget::Row(source) => to_rows(&mut draft, source, runs, &mut logs, erased.as_ref()).await?,
    };
    spare(&mut draft, ERASED, spared);
    Ok(JobBatch { plan: draft.seal_batch(String::new()), next, seen, bad: Vec::new() })
}

fn sorted(logs: &mut HashMap<String, Vec<Row>>, run: &str) -> Vec<Row> {
    let mut log = logs.remove(run).unwrap_or_default();
    log.sort_by_key(|event| event.get("sequence").as_i64());
    log
}

fn is(event: &Row, kind: &str) -> bool {
    event.text("kind").is_some_and(|k| k.replace('.', "_") == kind)
}

/// Appends an `episode_created` event to each run that has ended and has none. Gives how many were left out because of
/// whom they are about.
async fn to_log(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    runs: &[String],
    logs: &mut HashMap<String, Vec<Row>>,
    erased: Option<&Erased<'_>>,
) -> Result<usize, ChangeError> {
    let episodes = draft.store.related(Entity::Episode, "id", runs).await?;
    let columns = ["id", "run_id", "sequence", "kind", "data", "created_at"];
    let mut rows = Vec::new();
    let mut spared = 0;
    for episode in episodes.iter().filter(|e| !e.get("ended_at").is_null()) {
        let log = sorted(logs, episode.id());
        if log.iter().any(|event| is(event, "episode_created")) {
            continue;
        }
        let mut event = Row::empty(Entity::WorkflowEvent);
        let last = log.iter().filter_map(|e| e.get("sequence").as_i64()).max();
        event.set("id", Value::from(format!("evt_{}", digest(episode.id()))));
        event.set("run_id", episode.get("id").clone());
        event.set("sequence", Value::from(last.map_or(0, |n| n.saturating_add(1))));
        event.set("kind", Value::from("episode_created"));
        event.set("data", stored_back(episode, &log));
        if erased.is_some_and(|erased| erased.owns(episode) || erased.is_within(event.get("data"))) {
            spared += 1;
            continue;
        }
        rows.push(
            columns
                .map(|c| if c == "created_at" { GivenValue::Now } else { GivenValue::Is(event.get(c).clone()) })
                .to_vec(),
        );
        draft.adds(&event);
    }
    if !rows.is_empty() {
        let insertion = draft.store.encoder().insertions(source, &columns, &rows, None).await?;
        draft.push(insertion);
    }
    Ok(spared)
}

/// The data of an `episode_created` event, as pyworkflow's plan of episodic memory has it: an episode is its run, of the
/// time when that began.
fn stored_back(episode: &Row, log: &[Row]) -> Value {
    let events: Vec<WorkflowEvent> = log.iter().map(WorkflowEvent::of).collect();
    json!({
        "episode_id": episode.get("id"),
        "observation": episode.get("observation"),
        "thoughts": episode.get("thoughts"),
        "actions": workflow::actions_to_store(&events),
        "result": episode.get("result"),
        "success": episode.get("success"),
        "workflow_name": episode.get("workflow_name"),
        "why_it_worked": episode.get("insight"),
        "embedding": null,
        "timestamp": episode.text("started_at").map_or_else(now, str::to_owned),
        "duration_seconds": episode.get("duration_seconds"),
    })
}

/// The same run always gives the same id: an episode cannot be stored twice.
fn digest(run: &str) -> String {
    hex::encode(Sha256::digest(format!("mnemoscope episode of {run}").as_bytes()))[..16].to_owned()
}

/// Adds an episode for each run that has ended and that none names. Gives how many were left out, as [`to_log`].
async fn to_rows(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    runs: Vec<String>,
    logs: &mut HashMap<String, Vec<Row>>,
    erased: Option<&Erased<'_>>,
) -> Result<usize, ChangeError> {
    let store = draft.store;
    let ids: Vec<String> = runs.iter().map(|run| id_of(run)).collect();
    let mut known: HashSet<String> = HashSet::new();
    for column in ["id", "execution_ids"] {
        let asked: Vec<String> = if column == "id" { [&runs[..], &ids[..]].concat() } else { runs.clone() };
        for episode in store.related(Entity::Episode, column, &asked).await? {
            known.insert(episode.id().to_owned());
            known.extend(episode.list("execution_ids").into_iter().map(str::to_owned));
        }
    }
    let columns: Vec<&str> = EPISODE.into_iter().filter(|c| plain_column(source, c).is_some()).collect();
    let mut rows = Vec::new();
    let mut spared = 0;
    for run in runs.iter().filter(|run| !known.contains(*run) && !known.contains(&id_of(run))) {
        let Some(episode) = episode_of(run, &sorted(logs, run)) else { continue };
        if erased.is_some_and(|erased| erased.is_within(&episode.to_json())) {
            spared += 1;
            continue;
        }
        rows.push(columns.iter().map(|c| GivenValue::Is(episode.get(c).clone())).collect());
        draft.adds(&episode);
    }
    if !rows.is_empty() {
        let insertion = store.encoder().insertions(source, &columns, &rows, None).await?;
        draft.push(insertion);
    }
    Ok(spared)
}

fn id_of(run: &str) -> String {
    format!("ep-{}", digest(run))
}

/// The episode of a run's log; none while it has not come to its end.
fn episode_of(run: &str, log: &[Row]) -> Option<Row> {
    let end = log.iter().rev().find_map(|event| match event.text("kind")?.replace('.', "_").as_str() {
        "workflow_completed" => Some("completed"),
        "workflow_failed" => Some("failed"),
        "workflow_cancelled" => Some("cancelled"),
        _ => None,
    })?;
    let started = log.iter().find(|event| is(event, "workflow_started"));
    let events: Vec<WorkflowEvent> = log.iter().map(WorkflowEvent::of).collect();
    let begun = log.first().and_then(|event| event.text("created_at"));
    let facts = WorkflowRun { status: end.to_owned(), created_at: begun.map(str::to_owned), ..WorkflowRun::default() };
    let derived: DerivedEpisode = workflow::derive(&facts, &events);
    let data = started.map_or(&Value::Null, |event| event.get("data"));
    let mut row = Row::empty(Entity::Episode);
    derived.fill(&mut row);
    let name = data.get("workflow_name").cloned().unwrap_or_default();
    row.set("id", Value::from(id_of(run)));
    row.set("execution_ids", json!([run]));
    row.set("title", name.clone());
    row.set("workflow_name", name);
    row.set("agent_id", data.get("agent_id").cloned().unwrap_or_default());
    row.set("user_id", data.get("user_id").cloned().unwrap_or_default());
    row.set("status", Value::from("closed"));
    row.set(
        "outcome",
        Value::from(match end {
            "completed" => "success",
            "failed" => "failure",
            _ => "aborted",
        }),
    );
    row.set("started_at", json!(begun));
    Some(row)
}
