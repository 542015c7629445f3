//! Outcomes of a memory's uses: the latest ones in order, and the resulting utility.

use std::io;

use super::LabError;
use super::candidates::CandidateRows;
use crate::memory::digest::{Digest, digest};
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::records::{Record, RecordSorter, ordered};
use crate::memory::{Entity, Row, time, utility};
use crate::store::Store;
use crate::store::scratch::sorter;

/// Uses of memories with the utility of the user. Of uses at the same time, the one with the higher utility counts as
/// later.
pub(super) struct TimedUses(RecordSorter<4>);

impl Default for TimedUses {
    fn default() -> Self {
        TimedUses(sorter())
    }
}

impl TimedUses {
    /// Adds a use. `at` is its time in microseconds since 1970; the least value if unknown.
    pub fn add(&mut self, memory: Digest, at: i64, utility: f64) {
        let worth = descending(worth_of(utility.to_bits()));
        self.0.add([memory, descending(at), worth, utility.to_bits()]);
    }

    /// Adds the uses given by links, pairs of an episode and a memory: an episode counts once for a memory, even if
    /// linked repeatedly. `read` gives the time and the utility of an episode.
    ///
    /// # Errors
    /// A scratch file failed.
    pub fn add_links<const N: usize>(
        &mut self,
        links: RecordSorter<2>,
        episodes: &IdTable<N>,
        read: impl Fn(Record<N>) -> (i64, f64),
    ) -> io::Result<()> {
        let mut last = None;
        episodes.join(links, |link, episode| {
            if last.replace(link) != Some(link) {
                let (at, utility) = read(episode);
                self.add(link[1], at, utility);
            }
        })
    }

    /// Calls `memory` with each memory and the utility of its latest [`utility::LATEST`] uses, latest first.
    ///
    /// # Errors
    /// A scratch file failed.
    pub fn each(self, mut memory: impl FnMut(Digest, &[f64])) -> Result<(), LabError> {
        let sorted = self.0.sorted()?;
        let mut stream = sorted.stream()?;
        let mut latest = Vec::new();
        while let Some(id) = stream.group() {
            latest.clear();
            while let Some([_, _, _, utility]) = stream.next_of(id)? {
                if latest.len() < utility::LATEST {
                    latest.push(f64::from_bits(utility));
                }
            }
            memory(id, &latest);
        }
        Ok(())
    }
}

/// Maps a signed number to one with the reverse order, for a record.
fn descending(number: i64) -> u64 {
    !ordered(number)
}

/// Maps the bits of a utility to a number with the order of [`f64::total_cmp`].
fn worth_of(bits: u64) -> i64 {
    let bits = bits as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// Start and utility of episodes, by id.
pub(super) struct EpisodeWorth(RecordSorter<3>);

impl Default for EpisodeWorth {
    fn default() -> Self {
        EpisodeWorth(sorter())
    }
}

impl EpisodeWorth {
    /// Adds an episode.
    pub fn add(&mut self, episode: &Row) {
        let started = episode.text("started_at").and_then(time::epoch_micros).unwrap_or(i64::MIN);
        let utility = utility::of_use(episode.number("utility"));
        self.0.add([digest(episode.id()), started as u64, utility.to_bits()]);
    }
}

/// For each memory the mean utility of the latest episodes that used it.
#[derive(Default)]
pub(super) struct MemoryUses(IdTable<2>);

impl MemoryUses {
    /// Reads the links of memories to these episodes.
    pub async fn read(store: &Store, episodes: EpisodeWorth) -> Result<Self, LabError> {
        // Of several rows with the same id the latest counts; of those at the same time, the one with the highest
        // utility.
        let order = |[_, started, utility]: &[u64; 3]| (*started as i64, worth_of(*utility));
        let later = |first: &mut [u64; 3], next: &[u64; 3]| *first = std::cmp::max_by_key(*first, *next, order);
        let episodes = IdTable::of(episodes.0, later)?;
        let (mut linked, mut uses) = (sorter(), TimedUses::default());
        let columns = &["episode_id", "memory_id"];
        let links = CandidateRows { kind: Entity::MemoryLink, filters: &[], columns, words: &[] };
        links
            .each(store, |link| {
                if let (Some(episode), Some(memory)) = (link.text("episode_id"), link.text("memory_id")) {
                    linked.add([digest(episode), digest(memory)]);
                }
            })
            .await?;
        uses.add_links(linked, &episodes, |[_, started, utility]| (started as i64, f64::from_bits(utility)))?;
        let mut means = sorter();
        uses.each(|memory, latest| {
            let mean = utility::of_memory(latest.iter().copied());
            mean.into_iter().for_each(|mean| means.add([memory, mean.to_bits()]));
        })?;
        Ok(MemoryUses(IdTable::of(means, |_, _| {})?))
    }

    /// Utility of a row: for a memory the mean of the latest 20 episodes that used it, else its own.
    pub fn utility(&self, row: &Row) -> Option<f64> {
        let by_use = Some(row).filter(|row| row.entity == Entity::Memory).and_then(|row| self.0.get(row.id()));
        by_use.map(|[_, mean]| f64::from_bits(mean)).or(row.number("utility"))
    }

    /// Fails if a lookup failed.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn check(&self) -> io::Result<()> {
        self.0.check()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn latest(uses: TimedUses) -> HashMap<Digest, Vec<f64>> {
        let mut found = HashMap::new();
        uses.each(|memory, latest| assert!(found.insert(memory, latest.to_vec()).is_none())).unwrap();
        found
    }

    #[test]
    fn only_the_latest_uses_count() {
        let mut uses = TimedUses::default();
        // Newest and oldest by turns; 20 of 50 are the latest.
        for n in 0..25 {
            for at in [n, 49 - n] {
                uses.add(7, at, if at < 30 { 0.0 } else { 1.0 });
            }
        }
        uses.add(8, -5, 0.25);
        uses.add(8, i64::MIN, 0.5);
        uses.add(8, 5, 0.75);
        let found = latest(uses);
        assert_eq!(found, HashMap::from([(7, vec![1.0; 20]), (8, vec![0.75, 0.25, 0.5])]));
    }

    #[test]
    fn of_one_time_the_higher_utility_is_the_later_and_a_link_said_twice_is_one_use() {
        let mut uses = TimedUses::default();
        [0.2, 0.9, -0.5].into_iter().for_each(|utility| uses.add(2, 5, utility));
        let (mut episodes, mut links) = (sorter(), sorter());
        [[1, 0.25_f64.to_bits()], [2, 0.75_f64.to_bits()]].into_iter().for_each(|episode| episodes.add(episode));
        [[1, 3], [2, 3], [1, 3], [7, 3]].into_iter().for_each(|link| links.add(link));
        let episodes = IdTable::of(episodes, |_, _| {}).unwrap();
        uses.add_links(links, &episodes, |[id, utility]| (id as i64, f64::from_bits(utility))).unwrap();
        assert_eq!(latest(uses), HashMap::from([(2, vec![0.9, 0.2, -0.5]), (3, vec![0.75, 0.25])]));
    }
}
