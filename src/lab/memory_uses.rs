//! Results of the episodes that used a memory: its utility by use.

use std::collections::HashMap;

use super::LabError;
use super::candidates::CandidateRows;
use super::id_table::IdTable;
use crate::memory::{Entity, Row, time};
use crate::recall::rank::{self, LATEST_USES};
use crate::store::Store;

/// Start and utility of episodes, by id.
#[derive(Default)]
pub(super) struct EpisodeWorth(IdTable<(i64, f64)>);

impl EpisodeWorth {
    /// Takes an episode.
    pub fn add(&mut self, episode: &Row) {
        let started = episode.text("started_at").and_then(time::epoch_micros).unwrap_or(i64::MIN);
        self.0.add(episode.id(), (started, episode.number("utility").unwrap_or(rank::UTILITY_START)));
    }
}

/// For each memory the start and utility of the latest episodes that used it.
#[derive(Default)]
pub(super) struct MemoryUses(HashMap<String, Vec<(i64, f64)>>);

impl MemoryUses {
    /// Reads the links of memories to these episodes.
    pub async fn read(store: &Store, episodes: EpisodeWorth) -> Result<Self, LabError> {
        let episodes = episodes.0.sorted(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        let mut used_by: HashMap<String, Vec<(i64, f64)>> = HashMap::new();
        let latest = |uses: &mut Vec<(i64, f64)>| {
            uses.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
            uses.truncate(LATEST_USES);
        };
        let columns = &["episode_id", "memory_id"];
        let links = CandidateRows { kind: Entity::MemoryLink, filters: &[], columns, words: &[] };
        links
            .each(store, |link| {
                let Some(worth) = link.text("episode_id").and_then(|id| episodes.get(id)) else { return };
                let Some(memory) = link.text("memory_id") else { return };
                let uses = match used_by.get_mut(memory) {
                    Some(uses) => uses,
                    None => used_by.entry(memory.to_owned()).or_default(),
                };
                uses.push(worth);
                if uses.len() >= 2 * LATEST_USES {
                    latest(uses);
                }
            })
            .await?;
        used_by.values_mut().for_each(latest);
        Ok(MemoryUses(used_by))
    }

    /// Utility of a row: of a memory the mean of the latest 20 episodes that used it, else its own.
    pub fn utility(&self, row: &Row) -> Option<f64> {
        let by_use = self.0.get(row.id()).filter(|_| row.entity == Entity::Memory);
        let mean = |uses: &Vec<(i64, f64)>| uses.iter().map(|(_, u)| u).sum::<f64>() / uses.len().max(1) as f64;
        by_use.map(mean).or(row.number("utility"))
    }
}
