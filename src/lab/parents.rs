//! Parent suggestions for a stored episode, or for one about to be recorded.

use super::{LabError, each, silent};
use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::Query;
use crate::memory::vector::cosine_of;
use crate::memory::{Entity, Row, time};
use crate::recall::parents::{self, Suggestion};
use crate::store::Store;

/// Episodes that took longer than a parent may lie back, or have no start, kept one by one. Of more long ones only the
/// longest time is known; with more that have no start, nothing is.
const LONG_ONES: usize = 100_000;

/// Earliest starts of possible parents: reading them once spares each of very many searches a look at all episodes of
/// an agent, since episodes are found by when they began.
#[derive(Debug, Default)]
pub struct EarliestStarts {
    /// End and start of episodes that took longer than [`parents::WITHIN_HOURS`], in microseconds since 1970.
    long: Vec<(i64, i64)>,
    /// The longest time that one took, in microseconds, where there are too many to keep.
    longest: Option<i64>,
    /// End and id of those that ended and never began.
    startless: Vec<(i64, String)>,
}

impl EarliestStarts {
    /// Reads when all episodes began and ended.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn read(store: &Store) -> Result<EarliestStarts, LabError> {
        let mut starts = EarliestStarts::default();
        let columns = Some(vec!["started_at", "ended_at"]);
        each(store, &Query { columns, ..Query::new(Entity::Episode) }, &silent, |row| {
            let micros = |column: &str| row.text(column).and_then(time::epoch_micros);
            let Some(ended) = micros("ended_at") else { return };
            match micros("started_at") {
                Some(started) if ended - started > micros_of(parents::WITHIN_HOURS) => starts.add(ended, started),
                None if starts.startless.len() <= LONG_ONES => starts.startless.push((ended, row.id().to_owned())),
                _ => {}
            }
        })
        .await?;
        Ok(starts)
    }

    fn add(&mut self, ended: i64, started: i64) {
        if self.longest.is_some() || self.long.len() == LONG_ONES {
            let took = |(ended, started): (i64, i64)| ended - started;
            let known = self.long.drain(..).map(took).max().max(self.longest);
            self.longest = known.max(Some(took((ended, started))));
        } else {
            self.long.push((ended, started));
        }
    }

    /// The earliest moment at which a parent of an episode that began at `moment` may have begun, and the ids of those that
    /// never began; none when these are too many.
    fn before(&self, moment: &str) -> Option<(String, Vec<String>)> {
        let at = time::epoch_micros(moment).filter(|_| self.startless.len() <= LONG_ONES)?;
        let window = at - micros_of(parents::WITHIN_HOURS)..=at;
        let startless = self.startless.iter().filter(|(ended, _)| window.contains(ended)).map(|(_, id)| id.clone());
        let long = self.long.iter().filter(|(ended, _)| window.contains(ended)).map(|(_, started)| *started).min();
        let usual = window.start() - self.longest.unwrap_or(micros_of(parents::WITHIN_HOURS));
        let earliest = time::from_epoch(long.map_or(usual, |long| long.min(usual)), time::EpochUnit::Microseconds)?;
        Some((earliest, startless.collect()))
    }
}

/// The parents that an episode may have, most alike first: see [`parents::suggest`]. `vector` is the episode's own; the
/// row's stored one is read where none is given. `starts` makes it quick where it is known.
///
/// # Errors
/// The engine's refusal.
pub async fn suggest(
    store: &Store,
    episode: &Row,
    vector: Option<&[f32]>,
    starts: Option<&EarliestStarts>,
) -> Result<Vec<Suggestion>, LabError> {
    let stored;
    let vector = match vector {
        Some(vector) => vector,
        None => {
            match store.embeddings().vectors(Entity::Episode, &[episode.id().to_owned()]).await?.remove(episode.id()) {
                Some(found) => {
                    stored = found;
                    &stored
                }
                None => return Ok(Vec::new()),
            }
        }
    };
    let Some(started) = episode.text("started_at") else { return Ok(Vec::new()) };
    let bound = |column: &'static str, op: Operator, at: String| Filter::new(column, op, Operand::Time(at));
    let mut filters = vec![bound("ended_at", Operator::LessOrEqual, started.to_owned())];
    if let Some(agent) = episode.text("agent_id") {
        filters.push(super::equal("agent_id", agent));
    }
    if let Some(earliest) = hours_before(started, parents::WITHIN_HOURS) {
        filters.push(bound("ended_at", Operator::GreaterOrEqual, earliest));
    }
    let columns = ["id", "agent_id", "status", "started_at", "ended_at", "title"];
    let mut rows = Vec::new();
    if let Some((earliest, startless)) = starts.and_then(|starts| starts.before(started)) {
        rows = store.related_columns(Entity::Episode, "id", &startless, Some(&columns)).await?;
        rows.retain(|row| row.text("started_at").is_none() && filters.iter().all(|filter| filter.matches(row)));
        filters.push(bound("started_at", Operator::GreaterOrEqual, earliest));
        filters.push(bound("started_at", Operator::LessOrEqual, started.to_owned()));
    }
    rows.extend(store.candidates(Entity::Episode, &filters, &columns, &[]).await?);
    let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
    let vectors = store.embeddings().vectors(Entity::Episode, &ids).await?;
    let candidates: Vec<(Row, Option<f64>)> = rows
        .into_iter()
        .map(|row| {
            let cosine = vectors.get(row.id()).and_then(|other| cosine_of(vector, other));
            (row, cosine)
        })
        .collect();
    Ok(parents::suggest(episode, &candidates))
}

fn hours_before(moment: &str, hours: f64) -> Option<String> {
    time::from_epoch(time::epoch_micros(moment)? - micros_of(hours), time::EpochUnit::Microseconds)
}

fn micros_of(hours: f64) -> i64 {
    (hours * 3.6e9) as i64
}
