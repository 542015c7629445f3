//! Values by row id, for any number of rows: an id takes 8 bytes, whatever its length, and data that does not fit in
//! memory is in scratch space.

use std::io;
use std::sync::{Mutex, PoisonError};

use super::records::{FoldedRecords, Record, RecordRuns, RecordSorter};
use crate::memory::digest::{Digest, digest};

/// Bytes of scratch space read to find an id.
const PAGE: usize = 1_024;

/// Records by id, their first number.
#[derive(Debug)]
pub(crate) struct IdTable<const N: usize>(PlacedRecords<N>);

#[derive(Debug)]
enum PlacedRecords<const N: usize> {
    Held {
        records: Vec<Record<N>>,
        /// Start of each run of ids with the same leading bits, and the end of the last: about one record per two runs,
        /// so that a look-up needs no search.
        runs: Vec<u32>,
    },
    Written {
        records: RecordRuns<N>,
        /// The first id of each page.
        firsts: Vec<Digest>,
        page: Mutex<LastPage<N>>,
    },
}

/// The page read last: look-ups in order hit it.
#[derive(Debug, Default)]
struct LastPage<const N: usize> {
    number: Option<usize>,
    records: Vec<Record<N>>,
    fault: Option<io::Error>,
}

impl<const N: usize> Default for IdTable<N> {
    fn default() -> Self {
        IdTable(PlacedRecords::Held { records: Vec::new(), runs: vec![0, 0] })
    }
}

impl<const N: usize> IdTable<N> {
    const PAGE: usize = PAGE / size_of::<Record<N>>();

    /// Builds a table of records. `fold` merges records with the same id.
    ///
    /// # Errors
    /// Data that did not fit in memory could not be written.
    pub fn of(records: RecordSorter<N>, fold: impl Fn(&mut Record<N>, &Record<N>)) -> io::Result<Self> {
        Ok(IdTable(match records.sorted()?.folded(fold)? {
            FoldedRecords::Held(records) => PlacedRecords::Held { runs: runs(&records), records },
            FoldedRecords::Written(records) => {
                let first = |at| Ok(records.read(at, at + 1)?.first().map_or(Digest::MAX, |record| record[0]));
                let firsts = (0..records.len()).step_by(Self::PAGE).map(first).collect::<io::Result<_>>()?;
                PlacedRecords::Written { records, firsts, page: Mutex::default() }
            }
        }))
    }

    /// The record of an id.
    pub fn get(&self, id: &str) -> Option<Record<N>> {
        self.find(digest(id))
    }

    /// The same by the hash of the id. Read errors are reported by [`IdTable::check`].
    pub fn find(&self, id: Digest) -> Option<Record<N>> {
        match &self.0 {
            PlacedRecords::Held { records, runs } => {
                let run = run(id, runs.len() - 1);
                let some = records.get(runs[run] as usize..runs[run + 1] as usize)?;
                found(some, id)
            }
            PlacedRecords::Written { records, firsts, page } => {
                let number = firsts.partition_point(|first| *first <= id).checked_sub(1)?;
                let mut page = page.lock().unwrap_or_else(PoisonError::into_inner);
                if page.number != Some(number) {
                    let from = number * Self::PAGE;
                    match records.read(from, records.len().min(from + Self::PAGE)) {
                        Ok(records) => (page.number, page.records) = (Some(number), records),
                        Err(error) => {
                            page.fault.get_or_insert(error);
                            return None;
                        }
                    }
                }
                found(&page.records, id)
            }
        }
    }

    /// Passes on each record whose first number is in this table, with the record found there. They are looked up in
    /// order, which is fast in scratch space too.
    ///
    /// # Errors
    /// A space cannot be written or read.
    pub fn join<const M: usize>(
        &self,
        asked: RecordSorter<M>,
        mut each: impl FnMut(Record<M>, Record<N>),
    ) -> io::Result<()> {
        let sorted = asked.sorted()?;
        let mut stream = sorted.stream()?;
        while let Some(record) = stream.next()? {
            self.find(record[0]).into_iter().for_each(|found| each(record, found));
        }
        self.check()
    }

    /// Checks whether all look-ups could be read.
    ///
    /// # Errors
    /// The space could not be read.
    pub fn check(&self) -> io::Result<()> {
        let PlacedRecords::Written { page, .. } = &self.0 else { return Ok(()) };
        let fault = page.lock().unwrap_or_else(PoisonError::into_inner).fault.take();
        fault.map_or(Ok(()), Err)
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        match &self.0 {
            PlacedRecords::Held { records, .. } => records.len(),
            PlacedRecords::Written { records, .. } => records.len(),
        }
    }
}

fn found<const N: usize>(records: &[Record<N>], id: Digest) -> Option<Record<N>> {
    records.binary_search_by_key(&id, |record| record[0]).ok().and_then(|at| records.get(at)).copied()
}

/// The positions at which runs of ids begin.
fn runs<const N: usize>(records: &[Record<N>]) -> Vec<u32> {
    let count = records.len().next_power_of_two();
    let mut runs = Vec::with_capacity(count + 1);
    for (at, record) in records.iter().enumerate() {
        runs.resize(runs.len().max(run(record[0], count) + 1), at as u32);
    }
    runs.resize(count + 1, records.len() as u32);
    runs
}

/// The run of a digest, for a power of two of runs.
fn run(id: Digest, count: usize) -> usize {
    id.checked_shr(u64::BITS - count.ilog2()).unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::super::space::tests::space;
    use super::*;

    proptest! {
        #[test]
        fn a_table_knows_what_a_map_knows(
            ids in prop::collection::vec(("[ab]{0,20}", 0u64..9), 0..300), held in 1usize..8_000
        ) {
            let (mut sorter, mut map) = (RecordSorter::new(space).within(held), HashMap::<&str, u64>::new());
            for (id, value) in &ids {
                sorter.add([digest(id), *value, 0, 0, 0, 0, 0, 0]);
                let most = map.entry(id).or_insert(*value);
                *most = (*most).max(*value);
            }
            let table = IdTable::of(sorter, |first, next| first[1] = first[1].max(next[1])).unwrap();
            prop_assert_eq!(table.len(), map.len());
            for (id, value) in &map {
                prop_assert_eq!(table.get(id).map(|record| record[1]), Some(*value));
            }
            prop_assert_eq!(table.get("none of these, and rather long"), None);
            table.check().unwrap();
            let mut asked = RecordSorter::new(space).within(held);
            (0u64..).zip(&ids).for_each(|(at, (id, _))| asked.add([digest(id), at]));
            asked.add([digest("none of these, and rather long"), 0]);
            let mut joined = vec![None; ids.len()];
            table.join(asked, |[_, at], record| joined[at as usize] = Some(record[1])).unwrap();
            let known: Vec<_> = ids.iter().map(|(id, _)| map.get(id.as_str()).copied()).collect();
            prop_assert_eq!(joined, known);
        }
    }
}
