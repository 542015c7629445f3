//! Records of a few numbers put in order, however many: those that do not fit in memory are in a scratch file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::ground::scratch_file::scratch_file;

/// A record: its numbers, by which it is put in order.
pub(super) type Record<const N: usize> = [u64; N];

/// Bytes of records that are held in memory while more come.
const HELD: usize = 8 << 20;

/// Bytes that are read or written together.
const BLOCK: usize = 64 << 10;

/// Takes records in any order.
pub(super) struct RecordSorter<const N: usize> {
    held: Vec<Record<N>>,
    /// Records up to which they are held.
    most: usize,
    runs: RecordRuns<N>,
    fault: Option<io::Error>,
}

impl<const N: usize> Default for RecordSorter<N> {
    fn default() -> Self {
        RecordSorter::within(HELD)
    }
}

impl<const N: usize> RecordSorter<N> {
    /// A sorter that holds so many bytes in memory.
    pub fn within(bytes: usize) -> Self {
        let most = (bytes / size_of::<Record<N>>()).max(1);
        RecordSorter { held: Vec::new(), most, runs: RecordRuns::default(), fault: None }
    }

    /// Takes a record. What cannot be written is told by [`RecordSorter::sorted`].
    pub fn add(&mut self, record: Record<N>) {
        if self.held.len() == self.most && self.fault.is_none() {
            self.held.sort_unstable();
            self.fault = self.runs.write(self.held.drain(..).map(Ok)).err();
        }
        if self.fault.is_none() {
            self.held.push(record);
        }
    }

    /// The records in order.
    ///
    /// # Errors
    /// Those that did not fit in memory could not be written.
    pub fn sorted(mut self) -> io::Result<SortedRecords<N>> {
        self.fault.map_or(Ok(()), Err)?;
        self.held.sort_unstable();
        Ok(SortedRecords { held: self.held, runs: self.runs })
    }
}

/// Records in order.
pub(super) struct SortedRecords<const N: usize> {
    held: Vec<Record<N>>,
    runs: RecordRuns<N>,
}

impl<const N: usize> SortedRecords<N> {
    /// Reads the records in order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn stream(&self) -> io::Result<RecordStream<'_, N>> {
        let mut sources: Vec<RecordSource<'_, N>> = self.runs.sources();
        sources.push(RecordSource::Held(self.held.iter()));
        let mut next = BinaryHeap::with_capacity(sources.len());
        for (at, source) in sources.iter_mut().enumerate() {
            next.extend(source.next()?.map(|record| Reverse((record, at))));
        }
        Ok(RecordStream { sources, next })
    }

    /// One record for each first number: `fold` takes a further one into that which is there.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn folded(mut self, fold: impl Fn(&mut Record<N>, &Record<N>)) -> io::Result<FoldedRecords<N>> {
        if self.runs.is_empty() {
            self.held.dedup_by(|next, first| {
                let same = next[0] == first[0];
                if same {
                    fold(first, next);
                }
                same
            });
            return Ok(FoldedRecords::Held(self.held));
        }
        let mut stream = self.stream()?;
        let mut waiting = stream.next()?;
        let folded = std::iter::from_fn(|| {
            let mut first = waiting.take()?;
            loop {
                match stream.next() {
                    Ok(Some(next)) if next[0] == first[0] => fold(&mut first, &next),
                    Ok(next) => {
                        waiting = next;
                        return Some(Ok(first));
                    }
                    Err(error) => return Some(Err(error)),
                }
            }
        });
        let mut run = RecordRuns::default();
        run.write(folded)?;
        Ok(FoldedRecords::Written(run))
    }
}

/// Records of which no two have the same first number, in order.
pub(super) enum FoldedRecords<const N: usize> {
    /// They fit in memory.
    Held(Vec<Record<N>>),
    /// They are one run.
    Written(RecordRuns<N>),
}

/// Records in order of several runs.
pub(super) struct RecordStream<'r, const N: usize> {
    sources: Vec<RecordSource<'r, N>>,
    /// The next record of each source.
    next: BinaryHeap<Reverse<(Record<N>, usize)>>,
}

impl<const N: usize> RecordStream<'_, N> {
    /// The next record.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&mut self) -> io::Result<Option<Record<N>>> {
        let Some(Reverse((record, at))) = self.next.pop() else { return Ok(None) };
        if let Some(source) = self.sources.get_mut(at) {
            self.next.extend(source.next()?.map(|record| Reverse((record, at))));
        }
        Ok(Some(record))
    }
}

/// Records one after the other.
enum RecordSource<'r, const N: usize> {
    Held(std::slice::Iter<'r, Record<N>>),
    Run { runs: &'r RecordRuns<N>, from: usize, to: usize, block: std::vec::IntoIter<Record<N>> },
}

impl<const N: usize> RecordSource<'_, N> {
    fn next(&mut self) -> io::Result<Option<Record<N>>> {
        match self {
            RecordSource::Held(records) => Ok(records.next().copied()),
            RecordSource::Run { runs, from, to, block } => {
                if block.as_slice().is_empty() {
                    let until = (*from + RecordRuns::<N>::BLOCK).min(*to);
                    *block = runs.read(*from, until)?.into_iter();
                    *from = until;
                }
                Ok(block.next())
            }
        }
    }
}

/// Runs of records in a scratch file, each in order.
#[derive(Debug, Default)]
pub(super) struct RecordRuns<const N: usize> {
    file: Option<File>,
    /// For each run the number of records up to its end.
    ends: Vec<usize>,
}

impl<const N: usize> RecordRuns<N> {
    const BYTES: usize = size_of::<Record<N>>();
    /// Records that are read or written together.
    const BLOCK: usize = BLOCK / Self::BYTES;

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Writes records that are in order as a further run.
    fn write(&mut self, records: impl Iterator<Item = io::Result<Record<N>>>) -> io::Result<()> {
        let mut end = self.len();
        let file = match self.file.take() {
            Some(file) => file,
            None => scratch_file()?,
        };
        let mut bytes = Vec::with_capacity(BLOCK);
        let mut write = |bytes: &mut Vec<u8>| {
            file.write_all_at(bytes, (end * Self::BYTES) as u64)?;
            end += bytes.len() / Self::BYTES;
            bytes.clear();
            io::Result::Ok(())
        };
        for record in records {
            record?.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
            if bytes.len() + Self::BYTES > BLOCK {
                write(&mut bytes)?;
            }
        }
        write(&mut bytes)?;
        self.file = Some(file);
        self.ends.push(end);
        Ok(())
    }

    /// Reads the records at some places.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self, from: usize, to: usize) -> io::Result<Vec<Record<N>>> {
        let mut bytes = vec![0; to.saturating_sub(from) * Self::BYTES];
        if let Some(file) = &self.file {
            file.read_exact_at(&mut bytes, (from * Self::BYTES) as u64)?;
        }
        let (numbers, _) = bytes.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|number| u64::from_le_bytes(*number));
        let record = |_| std::array::from_fn(|_| numbers.next().unwrap_or_default());
        Ok((from..to).map(record).collect())
    }

    fn sources(&self) -> Vec<RecordSource<'_, N>> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let source = |(from, to)| RecordSource::Run { runs: self, from, to, block: Vec::new().into_iter() };
        begins.zip(self.ends.iter().copied()).map(source).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn records<const N: usize>(sorted: &SortedRecords<N>) -> Vec<Record<N>> {
        let mut stream = sorted.stream().unwrap();
        std::iter::from_fn(|| stream.next().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn records_come_in_order_wherever_they_are(
            all in prop::collection::vec(prop::array::uniform2(0u64..9), 0..200), held in 1usize..2_000
        ) {
            let sorter = || {
                let mut sorter = RecordSorter::within(held);
                all.iter().for_each(|record| sorter.add(*record));
                sorter.sorted().unwrap()
            };
            let mut wanted = all.clone();
            wanted.sort_unstable();
            prop_assert_eq!(records(&sorter()), wanted.clone());
            let folded = match sorter().folded(|first, next| first[1] += next[1]).unwrap() {
                FoldedRecords::Held(records) => records,
                FoldedRecords::Written(run) => run.read(0, run.len()).unwrap(),
            };
            let sum = |group: &[Record<2>]| [group[0][0], group.iter().map(|record| record[1]).sum()];
            let sums: Vec<Record<2>> = wanted.chunk_by(|a, b| a[0] == b[0]).map(sum).collect();
            prop_assert_eq!(folded, sums);
        }
    }
}
