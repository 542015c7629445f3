//! Vectors kept in memory between repeated recalls, with the rows that they rank: bounded, and soon dropped.

use std::collections::HashSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::VectorReader;
use crate::memory::Entity;
use crate::memory::filter::Filter;
use crate::memory::packed::rows::PackedRows;
use crate::memory::packed::vectors::PackedVectors;
use crate::memory::vector::VectorTally;

/// After this time vectors are read again: others may have written.
const FRESH: Duration = Duration::from_secs(30);

/// Estimated bytes of a kept row next to its vector.
const ROW: usize = 32;

/// One owner's vectors.
#[derive(Debug, Default)]
pub(crate) struct KeptVectors {
    packed: PackedVectors,
    missing: usize,
    unreadable: usize,
}

impl KeptVectors {
    /// Takes the vector of a row; whether it can be kept with the others.
    pub fn push(&mut self, id: &str, vector: &[f32]) -> bool {
        self.packed.push(id, vector)
    }

    /// Says how many rows have no vector and how many no readable one.
    pub fn set_others(&mut self, missing: usize, unreadable: usize) {
        (self.missing, self.unreadable) = (missing, unreadable);
    }

    /// Whether they take no more than `limit` bytes. They are rounded where they take three quarters of that as they are:
    /// the rest is for the rows.
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

    /// Counts of the rows by what becomes of them when they are compared with a query.
    pub fn tally(&self, query: &[f32]) -> VectorTally {
        let tally = self.packed.tally(query);
        let (missing, unreadable) = (self.missing, self.unreadable);
        VectorTally { rows: tally.rows + missing + unreadable, missing, unreadable, ..tally }
    }

    /// Hands the id and cosine of each row to `each`; what became of all rows. None where the vectors do not tell.
    pub fn compare(&self, query: &[f32], mut each: impl FnMut(&str, f64)) -> Option<VectorTally> {
        let compared = self.packed.compared(query).filter(|_| !self.packed.is_rounded())?;
        for at in 0..compared.len() {
            each(&compared.id(at)?, compared.cosine(at)?.low);
        }
        Some(self.tally(query))
    }
}

/// Vectors and rows that are kept of one owner.
#[derive(Debug)]
struct KeptBank {
    key: String,
    since: Instant,
    vectors: Arc<KeptVectors>,
    rows: Option<Arc<PackedRows>>,
    /// True when its rows turned out to need more than may be kept.
    refuses_rows: bool,
}

impl KeptBank {
    fn bytes(&self) -> usize {
        self.vectors.packed.bytes() + self.rows.as_ref().map_or(0, |rows| rows.bytes())
    }
}

/// Banks by what was asked for, the latest last.
#[derive(Debug, Default)]
pub struct Cache {
    limit: usize,
    banks: Vec<KeptBank>,
    /// Keys of requests that turned out to need more than may be kept.
    refused: HashSet<String>,
}

impl Cache {
    /// Whether the vectors of what is asked for may be kept.
    pub fn may_keep(&self, key: &str) -> bool {
        self.limit > 0 && !self.refused.contains(key)
    }

    /// Remembers that there are too many.
    pub fn refuse(&mut self, key: &str) {
        self.forget(key);
        self.refused.insert(key.to_owned());
    }

    /// Forgets everything.
    fn clear(&mut self) {
        self.banks.clear();
        self.refused.clear();
    }

    /// Forgets the vectors and rows of what is asked for.
    pub fn forget(&mut self, key: &str) {
        self.banks.retain(|bank| bank.key != key);
    }

    /// Bytes that are kept at most.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Whether a fresh bank is kept.
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

    /// Vectors that were kept and are fresh.
    pub fn get(&mut self, key: &str) -> Option<Arc<KeptVectors>> {
        self.bank(key).map(|bank| Arc::clone(&bank.vectors))
    }

    /// Forgets the banks not asked for longest until there is room for `bytes` of one that is being read. The bank of that
    /// key gives way last.
    pub fn make_room(&mut self, key: &str, bytes: usize) {
        while self.banks.iter().map(KeptBank::bytes).sum::<usize>() + bytes > self.limit {
            let Some(at) = self.banks.iter().position(|bank| bank.key != key) else { return };
            self.banks.remove(at);
        }
    }

    /// Keeps vectors.
    pub fn put(&mut self, key: &str, vectors: KeptVectors) -> Arc<KeptVectors> {
        self.forget(key);
        self.make_room(key, vectors.packed.bytes());
        let vectors = Arc::new(vectors);
        let (key, kept) = (key.to_owned(), Arc::clone(&vectors));
        self.banks.push(KeptBank { key, since: Instant::now(), vectors: kept, rows: None, refuses_rows: false });
        vectors
    }

    /// The bank of these vectors, where they are kept still.
    fn of(&mut self, key: &str, vectors: &Arc<KeptVectors>) -> Option<&mut KeptBank> {
        self.bank(key).filter(|bank| Arc::ptr_eq(&bank.vectors, vectors))
    }
}

/// Key under which the vectors and rows of an entity are kept.
pub(super) fn key(entity: Entity, filters: &[Filter]) -> String {
    format!("{entity} {filters:?}")
}

impl<'a> VectorReader<'a> {
    /// Keeps vectors in memory from now on, with rows that they rank, `bytes` at most (0: none).
    pub fn keep_vectors(self, bytes: usize) {
        let mut cache = self.cache();
        cache.limit = bytes;
        cache.clear();
    }

    /// Forgets kept vectors and rows: something was written.
    pub fn forget_vectors(self) {
        self.cache().clear();
    }

    pub(super) fn cache(self) -> MutexGuard<'a, Cache> {
        self.store.vectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what is kept of these rows: it is not what is stored.
    pub(crate) fn forget(self, entity: Entity, filters: &[Filter]) {
        self.cache().forget(&key(entity, filters));
    }

    /// Vectors that are kept together with their rows, and fresh.
    pub(crate) fn kept(self, entity: Entity, filters: &[Filter]) -> Option<(Arc<KeptVectors>, Arc<PackedRows>)> {
        let mut cache = self.cache();
        let bank = cache.bank(&key(entity, filters))?;
        Some((Arc::clone(&bank.vectors), Arc::clone(bank.rows.as_ref()?)))
    }

    /// Bytes that rows may take next to their vectors; none where they are not to be kept.
    pub(crate) fn room_for_rows(self, entity: Entity, filters: &[Filter], vectors: &Arc<KeptVectors>) -> Option<usize> {
        let (key, mut cache) = (key(entity, filters), self.cache());
        let limit = cache.limit;
        cache.of(&key, vectors).filter(|bank| bank.rows.is_none() && !bank.refuses_rows)?;
        let room = limit.saturating_sub(vectors.packed.bytes());
        cache.make_room(&key, room.min(ROW * vectors.tally(&[]).rows));
        Some(room)
    }

    /// Keeps rows together with their vectors, as long as these are kept; `None` where there are too many.
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
