//! Vectors kept in memory between recalls, for whoever recalls again and again: bounded, and soon forgotten.

use std::collections::HashSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::VectorReader;
use super::vector::VectorTally;
use crate::memory::vector::VectorProbe;

/// After this time vectors are read again: others may have written.
const FRESH: Duration = Duration::from_secs(30);

/// One owner's vectors.
#[derive(Debug, Default)]
pub struct CachedBank {
    ids: Vec<(String, usize)>,
    numbers: Vec<f32>,
    missing: usize,
    unreadable: usize,
}

impl CachedBank {
    /// Takes a row.
    pub fn push(&mut self, id: String, numbers: &[f32]) {
        self.ids.push((id, numbers.len()));
        self.numbers.extend_from_slice(numbers);
    }

    /// Says how many rows have no vector and how many no readable one.
    pub fn set_others(&mut self, missing: usize, unreadable: usize) {
        (self.missing, self.unreadable) = (missing, unreadable);
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.numbers.len() * size_of::<f32>() + self.ids.len() * 64
    }

    /// Hands the id and cosine of each row to `each`; what became of all rows.
    pub fn compare(&self, query: &[f32], mut each: impl FnMut(&str, f64)) -> VectorTally {
        let (missing, unreadable) = (self.missing, self.unreadable);
        let rows = self.ids.len() + missing + unreadable;
        let mut tally = VectorTally { rows, missing, unreadable, ..VectorTally::default() };
        let probe = VectorProbe::new(query);
        let mut rest = self.numbers.as_slice();
        for (id, dimensions) in &self.ids {
            let Some((numbers, others)) = rest.split_at_checked(*dimensions) else { break };
            rest = others;
            tally.count(probe.compare(numbers), |cosine| each(id, cosine));
        }
        tally
    }
}

/// Banks by what was asked for, the latest last.
#[derive(Debug, Default)]
pub struct Cache {
    limit: usize,
    banks: Vec<(String, Instant, Arc<CachedBank>)>,
    /// Keys of requests that turned out to need more than may be kept.
    refused: HashSet<String>,
}

impl Cache {
    /// Whether the vectors of what is asked for may be kept.
    pub fn may_keep(&self, key: &str) -> bool {
        self.limit > 0 && !self.refused.contains(key)
    }

    /// Remembers that there are too many.
    pub fn refuse(&mut self, key: String) {
        self.refused.insert(key);
    }

    /// Forgets everything.
    fn clear(&mut self) {
        self.banks.clear();
        self.refused.clear();
    }

    /// Bytes that are kept at most.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a fresh bank is kept.
    pub fn knows(&self, key: &str) -> bool {
        self.banks.iter().any(|(known, since, _)| known == key && since.elapsed() < FRESH)
    }

    /// A bank that was kept and is fresh.
    pub fn get(&mut self, key: &str) -> Option<Arc<CachedBank>> {
        self.banks.retain(|(_, since, _)| since.elapsed() < FRESH);
        let at = self.banks.iter().position(|(known, ..)| known == key)?;
        let found = self.banks.remove(at);
        let bank = Arc::clone(&found.2);
        self.banks.push(found);
        Some(bank)
    }

    /// Keeps a bank; the ones not asked for longest give way.
    pub fn put(&mut self, key: String, bank: CachedBank) {
        self.banks.retain(|(known, ..)| *known != key);
        self.banks.push((key, Instant::now(), Arc::new(bank)));
        while self.banks.len() > 1 && self.banks.iter().map(|(.., b)| b.bytes()).sum::<usize>() > self.limit {
            self.banks.remove(0);
        }
    }
}

impl<'a> VectorReader<'a> {
    /// Keeps vectors in memory from now on, `bytes` at most (0: none).
    pub fn keep_vectors(self, bytes: usize) {
        let mut cache = self.cache();
        cache.limit = bytes;
        cache.clear();
    }

    /// Forgets kept vectors: something was written.
    pub fn forget_vectors(self) {
        self.cache().clear();
    }

    pub(super) fn cache(self) -> MutexGuard<'a, Cache> {
        self.store.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
