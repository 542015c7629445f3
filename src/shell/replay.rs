//! Reads a topic, or the surroundings of an episode, for the time line.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use serde_json::Value;

use crate::console::core::RequestFailure;
use crate::console::screens::replay::{ReplayStep, ReplaySubject, ReplayedTopic};
use crate::lab::replay::{self, TopicReplay};
use crate::lab::{LabError, parents};
use crate::memory::{Entity, Row};
use crate::store::context::{EpisodeChain, Relatives};
use crate::store::{Store, StoreError};

/// Most parents suggested for an episode.
const PARENTS: usize = 2;

/// Most characters of a text in the timeline.
const TEXT: usize = 2_000;

/// Columns of an episode that are shown or copied.
const COLUMNS: &[&str] = &[
    "id", "agent_id", "user_id", "session_id", "parent_id", "title", "summary", "observation", "topic", "domain",
    "status", "outcome", "started_at", "ended_at", "duration_seconds", "canvas_action_count", "feedback_score",
    "utility", "workflow_name",
];

/// The episodes in order of time, with probable parents.
pub async fn told(store: &Store, about: &ReplaySubject, limit: usize) -> Result<Box<ReplayedTopic>, RequestFailure> {
    let told = match about {
        ReplaySubject::Topic(topic) => of_topic(store, topic, None, limit).await,
        ReplaySubject::Episode(id) => around(store, id, limit).await,
    };
    told.map(Box::new).map_err(|error| match error {
        LabError::Store(error) => super::load::failure("The topic was not replayed", &error),
        error => RequestFailure::new("The topic was not replayed", error.to_string(), "name another topic with /"),
    })
}

async fn of_topic(store: &Store, topic: &str, agent: Option<&str>, limit: usize) -> Result<ReplayedTopic, LabError> {
    store.sources_of(Entity::Episode)?;
    let TopicReplay { rows, used, candidates } = replay::replay(store, topic, None, agent, limit).await?;
    let ids: Vec<String> = rows.iter().map(|ranked| ranked.row.id().to_owned()).collect();
    let mut whole: HashMap<String, Row> = HashMap::new();
    whole.extend(shown(store, &ids).await?.into_iter().map(|row| (row.id().to_owned(), row)));
    let mut steps = Vec::new();
    for ranked in rows {
        let row = whole.remove(ranked.row.id()).unwrap_or(ranked.row);
        steps.push(step(store, row, Some(ranked.score.total)).await?);
    }
    Ok(ReplayedTopic { topic: topic.to_owned(), steps, used: used.to_owned(), candidates, more: 0 })
}

/// Reads episodes as the time line shows them: of long texts the beginning.
async fn shown(store: &Store, ids: &[String]) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    let take = |mut row: Row, _| {
        for column in ["title", "summary", "observation", "topic"] {
            if let Some(text) = row.text(column).map(|text| text.chars().take(TEXT).collect::<String>()) {
                row.set(column, Value::from(text));
            }
        }
        rows.push(row);
        ControlFlow::Continue(())
    };
    store.each_related(Entity::Episode, "id", ids, COLUMNS, take).await?;
    Ok(rows)
}

/// The chain of an episode with its children, each limited like the episodes of a topic, and other episodes of its
/// agent on the same topic.
async fn around(store: &Store, id: &str, limit: usize) -> Result<ReplayedTopic, LabError> {
    let missing = || LabError::NotFound(format!("there is no episode `{id}` in {}", store.location()));
    let episode = store.row(Entity::Episode, id).await?.ok_or_else(missing)?;
    let topic = episode.text("topic").or(episode.text("title")).unwrap_or_default().to_owned();
    let agent = episode.text("agent_id").map(str::to_owned);
    let mut told = of_topic(store, &topic, agent.as_deref(), limit).await?;
    let known: BTreeSet<String> = told.steps.iter().map(|step| step.row.id().to_owned()).collect();
    let mut others = vec![id.to_owned()];
    if let Some(EpisodeChain { chain, .. }) = store.contexts().chain(id, Relatives::Ids).await? {
        let all = chain.ids.len() + chain.children.len();
        let nearest = chain.ids.into_iter().rev().take(limit);
        others = nearest.chain(chain.children.into_iter().take(limit)).collect();
        told.more = all - others.len();
    }
    others.sort_unstable();
    others.dedup();
    others.retain(|other| !known.contains(other));
    for row in shown(store, &others).await? {
        told.steps.push(step(store, row, None).await?);
    }
    told.steps.sort_by(|a, b| (a.row.text("started_at"), a.row.id()).cmp(&(b.row.text("started_at"), b.row.id())));
    Ok(told)
}

async fn step(store: &Store, row: Row, relevance: Option<f64>) -> Result<ReplayStep, LabError> {
    let mut suggested = Vec::new();
    if row.text("parent_id").is_none() {
        suggested = parents::suggest(store, &row, None, None).await?;
        suggested.truncate(PARENTS);
    }
    Ok(ReplayStep { row, relevance, parents: suggested })
}
