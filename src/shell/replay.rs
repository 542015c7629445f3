//! Reads what a topic, or the surroundings of an episode, were: for the time line.

use std::collections::BTreeSet;

use crate::console::core::RequestFailure;
use crate::console::screens::replay::{ReplayStep, ReplaySubject, ReplayedTopic};
use crate::lab::{LabError, parents, replay};
use crate::memory::{Entity, Row};
use crate::store::Store;
use crate::store::context::{EpisodeChain, Relatives};

/// Parents that are suggested for an episode at most.
const PARENTS: usize = 2;

/// The episodes in order of time, with the parents that some of them probably have.
pub async fn told(store: &Store, about: &ReplaySubject, limit: usize) -> Result<Box<ReplayedTopic>, RequestFailure> {
    let told = match about {
        ReplaySubject::Topic(topic) => of_topic(store, topic, None, limit).await,
        ReplaySubject::Episode(id) => around(store, id, limit).await,
    };
    told.map(Box::new).map_err(|error| match error {
        LabError::Store(error) => super::load::failure("It was not replayed", &error),
        error => RequestFailure::new("It was not replayed", error.to_string(), "name another topic with /"),
    })
}

async fn of_topic(store: &Store, topic: &str, agent: Option<&str>, limit: usize) -> Result<ReplayedTopic, LabError> {
    store.sources_of(Entity::Episode)?;
    let found = replay::replay(store, topic, None, agent, limit).await?;
    let mut steps = Vec::new();
    for ranked in found.rows {
        steps.push(step(store, ranked.row, Some(ranked.score.total)).await?);
    }
    Ok(ReplayedTopic { topic: topic.to_owned(), steps, used: found.used.to_owned(), candidates: found.candidates })
}

/// The chain of an episode with its children, and what else its agent did of the same topic.
async fn around(store: &Store, id: &str, limit: usize) -> Result<ReplayedTopic, LabError> {
    let missing = || LabError::NotFound(format!("there is no episode `{id}` in {}", store.location()));
    let episode = store.row(Entity::Episode, id).await?.ok_or_else(missing)?;
    let topic = episode.text("topic").or(episode.text("title")).unwrap_or_default().to_owned();
    let agent = episode.text("agent_id").map(str::to_owned);
    let mut told = of_topic(store, &topic, agent.as_deref(), limit).await?;
    let known: BTreeSet<String> = told.steps.iter().map(|step| step.row.id().to_owned()).collect();
    let mut others = vec![id.to_owned()];
    if let Some(EpisodeChain { chain, .. }) = store.contexts().chain(id, Relatives::Ids).await? {
        others.extend(chain.ids.into_iter().chain(chain.children));
    }
    others.sort_unstable();
    others.dedup();
    others.retain(|other| !known.contains(other));
    for row in store.related(Entity::Episode, "id", &others).await? {
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
