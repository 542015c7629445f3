//! Vectors cached between repeated recalls, with the rows that they rank: bounded, and soon dropped.

use std::collections::HashSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::VectorReader;
use crate::memory::Entity;
use crate::memory::filter::Filter;
use crate::memory::packed::rows::PackedRows;
use crate::memory::packed::vectors::PackedVectors;
use crate::memory::vector::VectorTally;

/// Time after which vectors are read again, since others may have written.
const FRESH: Duration = Duration::from_secs(30);

/// Estimated bytes of a cached row in addition to its vector.
const ROW: usize = 32;

/// One owner's vectors.
#[derive(Debug, Default)]
pub(crate) struct KeptVectors {
    packed: PackedVectors,
    missing: usize,
    unreadable: usize,
}

impl KeptVectors {
    /// Adds the vector of a row; returns whether it can be stored with the others.
    pub fn push(&mut self, id: &str, vector: &[f32]) -> bool {
        self.packed.push(id, vector)
    }

    /// Sets how many rows have no vector, and how many no readable one.
    pub fn set_others(&mut self, missing: usize, unreadable: usize) {
        (self.missing, self.unreadable) = (missing, unreadable);
    }

    /// Whether they need at most `limit` bytes. They are rounded if they need more than three quarters of it unrounded,
    /// which leaves the rest for rows.
    pub fn fit(&mut self, limit: usize) -> bool {
        if self.packed.bytes() > limit / 4 * 3 {
            self.packed.round();
        }
        self.packed.bytes() <= limit
    }

    /// The vectors.
    pub fn packed(&self) -> &PackedVectors {
        &self.packed
    }

    /// Counts the rows by their outcome in a comparison with a query.
    pub fn tally(&self, query: &[f32]) -> VectorTally {
        let tally = self.packed.tally(query);
        let (missing, unreadable) = (self.missing, self.unreadable);
        VectorTally { rows: tally.rows + missing + unreadable, missing, unreadable, ..tally }
    }

    /// Passes the id and cosine of each row to `each`. Returns the counts of all rows, or `None` if the vectors cannot
    /// tell.
    pub fn compare(&self, query: &[f32], mut each: impl FnMut(&str, f64)) -> Option<VectorTally> {
        let compared = self.packed.compared(query).filter(|_| !self.packed.is_rounded())?;
        for at in 0..compared.len() {
            each(&compared.id(at)?, compared.cosine(at)?.low);
        }
        Some(self.tally(query))
    }
}

/// Cached vectors and rows of one owner.
#[derive(Debug)]
struct KeptBank {
    key: String,
    since: Instant,
    vectors: Arc<KeptVectors>,
    rows: Option<Arc<PackedRows>>,
    /// Whether its rows need more than may be cached.
    refuses_rows: bool,
}

impl KeptBank {
    fn bytes(&self) -> usize {
        self.vectors.packed.bytes() + self.rows.as_ref().map_or(0, |rows| rows.bytes())
    }
}

/// Banks by key, the most recently used last.
#[derive(Debug, Default)]
pub struct Cache {
    limit: usize,
    banks: Vec<KeptBank>,
    /// Keys of requests that need more than may be cached.
    refused: HashSet<String>,
}

impl Cache {
    /// Whether the vectors of a request may be cached.
    pub fn may_keep(&self, key: &str) -> bool {
        self.limit > 0 && !self.refused.contains(key)
    }

    /// Records that there are too many.
    pub fn refuse(&mut self, key: &str) {
        self.forget(key);
        self.refused.insert(key.to_owned());
    }

    /// Drops everything.
    fn clear(&mut self) {
        self.banks.clear();
        self.refused.clear();
    }

    /// Drops the vectors and rows of a request.
    pub fn forget(&mut self, key: &str) {
        self.banks.retain(|bank| bank.key != key);
    }

    /// Most bytes to cache.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a fresh bank is cached.
    pub fn knows(&self, key: &str) -> bool {
        self.banks.iter().any(|bank| bank.key == key && bank.since.elapsed() < FRESH)
    }

    fn bank(&mut self, key: &str) -> Option<&mut KeptBank> {
        self.banks.retain(|bank| bank.since.elapsed() < FRESH);
        let at = self.banks.iter().position(|bank| bank.key == key)?;
        let found = self.banks.remove(at);
        self.banks.push(found);
        self.banks.last_mut()
    }

    /// Cached vectors that are fresh.
    pub fn get(&mut self, key: &str) -> Option<Arc<KeptVectors>> {
        self.bank(key).map(|bank| Arc::clone(&bank.vectors))
    }

    /// Drops the least recently used banks until there is room for `bytes` of one being read. The bank of that key is
    /// dropped last.
    pub fn make_room(&mut self, key: &str, bytes: usize) {
        while self.banks.iter().map(KeptBank::bytes).sum::<usize>() + bytes > self.limit {
            let Some(at) = self.banks.iter().position(|bank| bank.key != key) else { return };
            self.banks.remove(at);
        }
    }

    /// Caches vectors.
    pub fn put(&mut self, key: &str, vectors: KeptVectors) -> Arc<KeptVectors> {
        self.forget(key);
        self.make_room(key, vectors.packed.bytes());
        let vectors = Arc::new(vectors);
        let (key, kept) = (key.to_owned(), Arc::clone(&vectors));
        self.banks.push(KeptBank { key, since: Instant::now(), vectors: kept, rows: None, refuses_rows: false });
        vectors
    }

    /// The bank of these vectors, if still cached.
    fn of(&mut self, key: &str, vectors: &Arc<KeptVectors>) -> Option<&mut KeptBank> {
        self.bank(key).filter(|bank| Arc::ptr_eq(&bank.vectors, vectors))
    }
}

/// Cache key for the vectors and rows of an entity.
pub(super) fn key(entity: Entity, filters: &[Filter]) -> String {
    format!("{entity} {filters:?}")
}

impl<'a> VectorReader<'a> {
    /// Enables the cache of vectors and the rows they rank, with at most `bytes` (0: off).
    pub fn keep_vectors(self, bytes: usize) {
        let mut cache = self.cache();
        cache.limit = bytes;
        cache.clear();
    }

    /// Drops cached vectors and rows after a write.
    pub fn forget_vectors(self) {
        self.cache().clear();
    }

    pub(super) fn cache(self) -> MutexGuard<'a, Cache> {
        self.store.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the cached vectors of these rows, which are outdated.
    pub(crate) fn forget(self, entity: Entity, filters: &[Filter]) {
        self.cache().forget(&key(entity, filters));
    }

    /// Fresh cached vectors, with their rows.
    pub(crate) fn kept(self, entity: Entity, filters: &[Filter]) -> Option<(Arc<KeptVectors>, Arc<PackedRows>)> {
        let mut cache = self.cache();
        let bank = cache.bank(&key(entity, filters))?;
        Some((Arc::clone(&bank.vectors), Arc::clone(bank.rows.as_ref()?)))
    }

    /// Bytes that rows may use in addition to their vectors; `None` if they are not to be cached.
    pub(crate) fn room_for_rows(self, entity: Entity, filters: &[Filter], vectors: &Arc<KeptVectors>) -> Option<usize> {
        let (key, mut cache) = (key(entity, filters), self.cache());
        let limit = cache.limit;
        cache.of(&key, vectors).filter(|bank| bank.rows.is_none() && !bank.refuses_rows)?;
        let room = limit.saturating_sub(vectors.packed.bytes());
        cache.make_room(&key, room.min(ROW * vectors.tally(&[]).rows));
        Some(room)
    }

    /// Caches rows with their vectors, while these are cached; `None` if there are too many.
    pub(crate) fn keep_rows(
        self,
        entity: Entity,
        filters: &[Filter],
        vectors: &Arc<KeptVectors>,
        rows: Option<PackedRows>,
    ) {
        let (key, mut cache) = (key(entity, filters), self.cache());
        cache.make_room(&key, rows.as_ref().map_or(0, PackedRows::bytes));
        if let Some(bank) = cache.of(&key, vectors) {
            bank.refuses_rows = rows.is_none();
            bank.rows = rows.map(Arc::new);
        }
    }
}
