//! Values by the id of their row, for very many rows: the id takes 8 bytes, however long it is.

use std::collections::HashMap;

use crate::memory::findings::short;

/// Hash that replaces an id. Two ids among ten million have the same one once in 400,000 databases.
pub(super) type Digest = u64;

/// Values by id. Taken first, looked up after [`IdTable::sorted`].
#[derive(Debug, Clone)]
pub(super) struct IdTable<V> {
    values: Vec<(Digest, V)>,
    /// For each run of digests with the same first bits the position of its first one, and the end of the last: about one
    /// value in two runs, so that one is found without a search through all.
    runs: Vec<u32>,
}

impl<V> Default for IdTable<V> {
    fn default() -> Self {
        IdTable { values: Vec::new(), runs: vec![0, 0] }
    }
}

impl<V: Copy> IdTable<V> {
    /// Takes a value.
    pub fn add(&mut self, id: &str, value: V) {
        self.values.push((digest(id), value));
    }

    /// The table, ready to be looked up. Of several values of an id the first by `order` stays.
    pub fn sorted(mut self, order: impl Fn(&V, &V) -> std::cmp::Ordering) -> Self {
        self.values.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| order(&a.1, &b.1)));
        self.values.dedup_by_key(|(id, _)| *id);
        let count = self.values.len().next_power_of_two();
        self.runs = Vec::with_capacity(count + 1);
        for (at, (id, _)) in self.values.iter().enumerate() {
            self.runs.resize(self.runs.len().max(run(*id, count) + 1), at as u32);
        }
        self.runs.resize(count + 1, self.values.len() as u32);
        self
    }

    /// Finds the position of an id.
    pub fn position(&self, id: Digest) -> Option<usize> {
        let run = run(id, self.runs.len() - 1);
        let (from, to) = (self.runs[run] as usize, self.runs[run + 1] as usize);
        self.values[from..to].binary_search_by_key(&id, |(known, _)| *known).ok().map(|at| from + at)
    }

    /// The value that is there.
    pub fn at(&self, position: usize) -> Option<V> {
        self.values.get(position).map(|(_, value)| *value)
    }

    /// The value of an id.
    pub fn get(&self, id: &str) -> Option<V> {
        self.position(digest(id)).and_then(|at| self.at(at))
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }
}

/// The run of a digest among as many as a power of two.
fn run(id: Digest, count: usize) -> usize {
    id.checked_shr(u64::BITS - count.ilog2()).unwrap_or(0) as usize
}

/// Means by id, as they come.
#[derive(Debug, Default)]
pub(super) struct MeansById(HashMap<Digest, (f64, u32)>);

impl MeansById {
    /// Takes a value.
    pub fn add(&mut self, id: &str, value: f64) {
        let (sum, n) = self.0.entry(digest(id)).or_default();
        *sum += value;
        *n += 1;
    }

    /// The mean of what came with an id.
    pub fn get(&self, id: &str) -> Option<f64> {
        self.0.get(&digest(id)).map(|(sum, n)| sum / f64::from(*n))
    }
}

/// Hashes an id.
pub(super) fn digest(id: &str) -> Digest {
    short(id)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_knows_what_a_map_knows(ids in prop::collection::vec(("[ab]{0,20}", 0u32..9), 0..60)) {
            let (mut table, mut map) = (IdTable::default(), HashMap::<&str, u32>::new());
            for (id, value) in &ids {
                table.add(id, *value);
                let most = map.entry(id).or_insert(*value);
                *most = (*most).max(*value);
            }
            let table = table.sorted(|a, b| b.cmp(a));
            prop_assert_eq!(table.len(), map.len());
            for (id, value) in &map {
                prop_assert_eq!(table.get(id), Some(*value));
            }
            prop_assert_eq!(table.get("none of these, and rather long"), None);
        }
    }
}
