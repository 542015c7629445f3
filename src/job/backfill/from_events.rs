//! Creates episodes from workflow runs without one: as rows if episodes are stored, as an `episode_created` event at
//! the end of the run's log if episodes are derived from it.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use futures::future::BoxFuture;
use serde::Serializer as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::naming::{NamingEpisodes, ReadOnce};
use super::sources::{ERASED, SourcePlace, spare, writable};
use crate::change::suppress::Erased;
use crate::change::{ChangeDanger, ChangeError, Draft, now};
use crate::job::{BatchAsk, Job, JobBatch};
use crate::layout::BoundSource;
use crate::memory::json::{JsonPart, is_kept_as_text};
use crate::memory::query::PART;
use crate::memory::workflow::{RunLog, WorkflowRun};
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::derive::{LogReader, SizedLog};
use crate::store::encode::{GivenValue, plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::{Mutation, TableName};

/// Columns of an episode that come from a run.
const EPISODE: [&str; 18] = [
    "id", "agent_id", "user_id", "execution_ids", "title", "workflow_name", "status", "outcome", "started_at",
    "ended_at", "duration_seconds", "observation", "thoughts", "actions", "result", "success", "insight", "parent_id",
];

/// Columns of an event that stores an episode back.
const EVENT: [&str; 6] = ["id", "run_id", "sequence", "kind", "data", "created_at"];

/// Columns of a derived episode that are stored back, and its owner.
const STORED_BACK: [&str; 13] = [
    "id", "user_id", "workflow_name", "status", "started_at", "ended_at", "duration_seconds", "observation",
    "thoughts", "result", "success", "insight", "parent_id",
];

#[derive(Default)]
struct FromEvents {
    /// The episodes that named each run when the job began.
    naming: ReadOnce<NamingEpisodes>,
}

/// The backfill, if there are workflow events and a place for episodes.
pub fn make(store: &Store) -> Result<Box<dyn Job>, ChangeError> {
    events(store)?;
    target(store)?;
    Ok(Box::new(FromEvents::default()))
}

fn events(store: &Store) -> Result<&BoundSource, ChangeError> {
    let sources = store.sources_of(Entity::WorkflowEvent)?;
    let plain = |s: &&BoundSource| plain_column(s, "run_id").is_some() && plain_column(s, "kind").is_some();
    sources
        .into_iter()
        .find(plain)
        .ok_or_else(|| ChangeError::Refused("the events here have no separate column for their run".to_owned()))
}

/// Destination of an episode.
#[derive(Clone, Copy)]
enum EpisodeTarget<'s> {
    /// A row among the episodes.
    Row(&'s BoundSource),
    /// An event at the end of the log.
    Log(&'s BoundSource),
}

fn target(store: &Store) -> Result<EpisodeTarget<'_>, ChangeError> {
    let derived = store.sources_of(Entity::Episode)?.into_iter().any(|s| s.derive.is_some());
    if derived {
        return Ok(EpisodeTarget::Log(writable(store, Entity::WorkflowEvent, &EVENT)?[0]));
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
        Box::pin(batch(ask, &self.naming))
    }

    fn effects(&self) -> Vec<String> {
        vec![
            "one episode for each finished run that has none: observation from its start arguments, thoughts, actions \
             and result from its log; why it worked is never invented"
                .to_owned(),
            "a run that ends after this began is left to the next time".to_owned(),
        ]
    }
}

async fn batch(ask: BatchAsk<'_>, naming: &ReadOnce<NamingEpisodes>) -> Result<JobBatch, ChangeError> {
    let store = ask.store;
    let source = events(store)?;
    let place = SourcePlace::read(ask.place);
    naming.begin(ask.place);
    let mut draft = Draft::batch(store, ask.own, "backfill.episodes-from-events", ChangeDanger::Guarded);
    let runs = store.walks().values(source, "run_id", place.after.as_ref(), ask.size).await?;
    let erased = Erased::of(store).await?;
    let target = target(store)?;
    let of_episodes = store.sources_of(Entity::Episode)?;
    let episodes = NamingEpisodes::read(store, &of_episodes, "execution_ids");
    let named = match target {
        EpisodeTarget::Log(_) => None,
        EpisodeTarget::Row(_) => Some(naming.get(episodes).await?),
    };
    let open = match &named {
        None => runs.clone(),
        Some(named) => without_episode(store, named, &runs).await?,
    };
    let columns: Option<&[&str]> = match target {
        EpisodeTarget::Log(_) => Some(&["actions"]),
        EpisodeTarget::Row(_) => None,
    };
    let mut reader = LogReader::new(store, columns);
    let mut made = MadeRows::default();
    let mut done = 0;
    while done < open.len() && made.size < PART {
        let logs = reader.first(&open[done..]).await?;
        let some = &open[done..][..logs.len()];
        match (target, &named) {
            (EpisodeTarget::Row(source), Some(named)) => {
                to_rows(&mut draft, (source, named), some, logs, erased.as_ref(), &mut made).await?;
            }
            (EpisodeTarget::Row(source) | EpisodeTarget::Log(source), _) => {
                to_log(&mut draft, source, some, logs, erased.as_ref(), &mut made).await?;
            }
        }
        done += some.len();
    }
    made.insertion.into_iter().for_each(|insertion| draft.push(insertion));
    spare(&mut draft, ERASED, made.spared);
    let is_cut = done < open.len();
    let seen = if is_cut { runs.iter().take_while(|run| **run != open[done]).count() } else { runs.len() };
    let last = runs[..seen].last().map(|run| FetchedValue::Text(run.clone()));
    let next = place.behind(last.as_ref(), is_cut || runs.len() == ask.size, 1);
    Ok(JobBatch { plan: draft.seal_batch(), next, seen, bad: Vec::new() })
}

/// Rows that a batch adds.
#[derive(Default)]
struct MadeRows {
    insertion: Option<Mutation>,
    /// Size of their events in bytes.
    size: usize,
    /// Rows left out because of the person they are about.
    spared: usize,
}

impl MadeRows {
    /// Adds a row and records it, with its values as stored.
    async fn add(
        &mut self,
        draft: &mut Draft<'_>,
        source: &BoundSource,
        columns: &[&str],
        mut row: Row,
    ) -> Result<(), ChangeError> {
        let is_event = row.entity == Entity::WorkflowEvent;
        let given = |column: &&str| match *column {
            "created_at" if is_event => GivenValue::Now,
            column => GivenValue::take(&mut row, column),
        };
        let values = [columns.iter().map(given).collect()];
        let insertion = draft.store.encoder().insertions(source, columns, &values, None).await?;
        if draft.wants_more() {
            for (column, value) in columns.iter().zip(values.into_iter().flatten()) {
                value.put(&mut row, column);
            }
            let id = row.id().to_owned();
            draft.note(row.entity, &id, Value::Null, row);
        } else {
            draft.count(1);
        }
        match (&mut self.insertion, insertion) {
            (Some(Mutation::Insert { rows, .. }), Mutation::Insert { rows: more, .. }) => rows.extend(more),
            (known, insertion) => *known = Some(insertion),
        }
        Ok(())
    }
}

/// The columns of an episode that a source stores.
fn episode_columns(source: &BoundSource) -> Vec<&'static str> {
    EPISODE.into_iter().filter(|column| plain_column(source, column).is_some()).collect()
}

/// Creates an `episode_created` event for each ended run without one.
async fn to_log(
    draft: &mut Draft<'_>,
    source: &BoundSource,
    runs: &[String],
    mut logs: HashMap<String, SizedLog>,
    erased: Option<&Erased<'_>>,
    made: &mut MadeRows,
) -> Result<(), ChangeError> {
    let episodes = draft.store.related_columns(Entity::Episode, "id", runs, Some(&STORED_BACK)).await?;
    for episode in episodes.iter().filter(|e| !e.get("ended_at").is_null()) {
        let Some(SizedLog { log, size }) = logs.remove(episode.id()).filter(|l| !l.log.is_stored_back()) else {
            continue;
        };
        let mut event = Row::empty(Entity::WorkflowEvent);
        event.set("id", Value::from(format!("evt_{}", digest(episode.id()))));
        event.set("run_id", episode.get("id").clone());
        event.set("sequence", Value::from(log.last_sequence().map_or(0, |n| n.saturating_add(1))));
        event.set("kind", Value::from("episode_created"));
        match stored_back(episode, log) {
            (text, true) => event.set_text("data", text),
            (data, false) => event.set("data", data),
        }
        if erased.is_some_and(|erased| erased.owns(episode) || erased.is_within(event.json("data"))) {
            made.spared += 1;
            continue;
        }
        made.size += size;
        made.add(draft, source, &EVENT, event).await?;
    }
    Ok(())
}

/// Usual bytes of a member of an event.
const MEMBER: usize = 64;

/// The data of an `episode_created` event, by pyworkflow's design of episodic memory: an episode is its run, dated by
/// its start. A value, or the text of a long JSON document.
fn stored_back(episode: &Row, log: RunLog) -> (Value, bool) {
    let (actions, are_text) = log.actions_to_store().into_json();
    let actions = match &actions {
        Value::String(text) if are_text => JsonPart::Document(text),
        value => JsonPart::Value(value),
    };
    let began = Value::from(episode.text("started_at").map_or_else(now, str::to_owned));
    let members = [
        ("episode_id", episode.json("id")),
        ("observation", episode.json("observation")),
        ("thoughts", episode.json("thoughts")),
        ("actions", actions),
        ("result", episode.json("result")),
        ("success", episode.json("success")),
        ("workflow_name", episode.json("workflow_name")),
        ("why_it_worked", episode.json("insight")),
        ("embedding", JsonPart::Value(&Value::Null)),
        ("timestamp", JsonPart::Value(&began)),
        ("duration_seconds", episode.json("duration_seconds")),
    ];
    // Written directly, since each part may be long.
    let text_of = |part: &JsonPart<'_>| if let JsonPart::Document(text) = part { text.len() } else { MEMBER };
    let bytes = members.iter().map(|(_, part)| text_of(part)).sum();
    let mut text = Vec::with_capacity(bytes);
    let written = serde_json::Serializer::new(&mut text).collect_map(members);
    if let Some(text) = String::from_utf8(text).ok().filter(|text| written.is_ok() && is_kept_as_text(text)) {
        return (Value::from(text), true);
    }
    (Value::Object(members.iter().map(|(name, part)| ((*name).to_owned(), part.to_value())).collect()), false)
}

/// The same run always gives the same id, so an episode cannot be stored twice.
fn digest(run: &str) -> String {
    hex::encode(Sha256::digest(format!("mnemoscope episode of {run}").as_bytes()))[..16].to_owned()
}

/// Creates an episode for each ended run. Whoever ran one that ended since the job began may be about to store its episode.
async fn to_rows(
    draft: &mut Draft<'_>,
    (source, naming): (&BoundSource, &NamingEpisodes),
    runs: &[String],
    mut logs: HashMap<String, SizedLog>,
    erased: Option<&Erased<'_>>,
    made: &mut MadeRows,
) -> Result<(), ChangeError> {
    let columns = episode_columns(source);
    for run in runs {
        let Some(SizedLog { log, size }) = logs.remove(run) else { continue };
        let Some(episode) = episode_of(run, log) else { continue };
        if episode.text("ended_at").is_some_and(|ended| naming.is_older_than(ended)) {
            continue;
        }
        let names = |erased: &Erased<'_>| (0..episode.values.len()).any(|at| erased.is_within(episode.part(at)));
        if erased.is_some_and(names) {
            made.spared += 1;
            continue;
        }
        made.size += size;
        made.add(draft, source, &columns, episode).await?;
    }
    Ok(())
}

/// The runs that no stored episode names.
async fn without_episode(store: &Store, naming: &NamingEpisodes, runs: &[String]) -> Result<Vec<String>, ChangeError> {
    let asked: HashSet<&str> = runs.iter().map(String::as_str).collect();
    let own: HashMap<String, &str> = runs.iter().map(|run| (id_of(run), run.as_str())).collect();
    let ids = runs.iter().cloned().chain(own.keys().cloned()).chain(naming.of(asked.iter().copied())?);
    let ids: HashSet<String> = ids.collect();
    let mut known: HashSet<String> = HashSet::new();
    let take = |episode: Row, _| {
        let named =
            episode.list("execution_ids").into_iter().chain([episode.id()]).chain(own.get(episode.id()).copied());
        known.extend(named.filter(|name| asked.contains(name)).map(str::to_owned));
        ControlFlow::Continue(())
    };
    let ids: Vec<String> = ids.into_iter().collect();
    store.each_related(Entity::Episode, "id", &ids, &["id", "execution_ids"], take).await?;
    Ok(runs.iter().filter(|run| !known.contains(*run)).cloned().collect())
}

fn id_of(run: &str) -> String {
    format!("ep-{}", digest(run))
}

/// The episode of a run's log; `None` if the run has not ended.
fn episode_of(run: &str, log: RunLog) -> Option<Row> {
    let end = log.end()?;
    let begun = log.begun().map(str::to_owned);
    let of_start = |name: &str| log.start().get(name).cloned().unwrap_or_default();
    let [name, agent, user] = ["workflow_name", "agent_id", "user_id"].map(of_start);
    let facts = WorkflowRun { status: end.to_owned(), created_at: begun.clone(), ..WorkflowRun::default() };
    let mut row = Row::empty(Entity::Episode);
    log.derive(&facts).fill(&mut row, |_, value| Some(value));
    row.set("id", Value::from(id_of(run)));
    row.set("execution_ids", json!([run]));
    row.set("title", name.clone());
    row.set("workflow_name", name);
    row.set("agent_id", agent);
    row.set("user_id", user);
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
