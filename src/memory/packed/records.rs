//! Sorts records of a few numbers, in any quantity: those that do not fit in memory are in scratch space.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::space::{MakeSpace, ScratchSpace};

/// A record: its numbers, compared in order.
pub(crate) type Record<const N: usize> = [u64; N];

/// Maps a signed number to an unsigned one with the same order.
pub(crate) fn ordered(number: i64) -> u64 {
    number as u64 ^ 1 << 63
}

/// The inverse of [`ordered`].
pub(crate) fn unordered(number: u64) -> i64 {
    (number ^ 1 << 63) as i64
}

/// Numbers with the order of an id: of a long one its first 16 bytes count, and its last 8.
pub(crate) fn in_order(id: &str) -> [u64; 3] {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(word)
    };
    let (first, rest) = id.as_bytes().split_at(id.len().min(16));
    let rest = &rest[rest.len().saturating_sub(8)..];
    [word(first), word(first.get(8..).unwrap_or_default()), word(rest)]
}

/// Bytes of records in memory while more are added.
const HELD: usize = 8 << 20;

/// Bytes per read or write.
const BLOCK: usize = 64 << 10;

/// Collects records in any order.
#[derive(Debug)]
pub(crate) struct RecordSorter<const N: usize> {
    held: Vec<Record<N>>,
    /// Most records in memory.
    most: usize,
    runs: RecordRuns<N>,
    fault: Option<io::Error>,
}

impl<const N: usize> RecordSorter<N> {
    /// Creates a sorter that spills to `space` if records do not fit in memory.
    pub fn new(space: MakeSpace) -> Self {
        let runs = RecordRuns { make: space, space: None, ends: Vec::new() };
        RecordSorter { held: Vec::new(), most: 0, runs, fault: None }.within(HELD)
    }

    /// Sets the memory limit in bytes.
    pub fn within(self, bytes: usize) -> Self {
        RecordSorter { most: (bytes / size_of::<Record<N>>()).max(1), ..self }
    }

    /// Takes the sorter, leaving an empty one.
    pub fn take(&mut self) -> Self {
        let empty = RecordSorter { most: self.most, ..RecordSorter::new(self.runs.make) };
        std::mem::replace(self, empty)
    }

    /// Adds a record. Write errors are reported by [`RecordSorter::sorted`].
    pub fn add(&mut self, record: Record<N>) {
        if self.held.len() == self.most && self.fault.is_none() {
            self.held.sort_unstable();
            self.fault = self.runs.write(self.held.drain(..).map(Ok)).err();
        }
        if self.fault.is_none() {
            self.held.push(record);
        }
    }

    /// Sorts the records.
    ///
    /// # Errors
    /// Records that did not fit in memory could not be written.
    pub fn sorted(mut self) -> io::Result<SortedRecords<N>> {
        self.fault.map_or(Ok(()), Err)?;
        self.held.sort_unstable();
        Ok(SortedRecords { held: self.held, runs: self.runs })
    }
}

/// Sorted records.
#[derive(Debug)]
pub(crate) struct SortedRecords<const N: usize> {
    held: Vec<Record<N>>,
    runs: RecordRuns<N>,
}

impl<const N: usize> SortedRecords<N> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.runs.is_empty()
    }

    /// Reads the records in order.
    ///
    /// # Errors
    /// The space cannot be read.
    pub fn stream(&self) -> io::Result<RecordStream<'_, N>> {
        let mut sources: Vec<RecordSource<'_, N>> = self.runs.sources();
        sources.push(RecordSource::Held(self.held.iter()));
        let mut next = BinaryHeap::with_capacity(sources.len());
        for (at, source) in sources.iter_mut().enumerate() {
            next.extend(source.next()?.map(|record| Reverse((record, at))));
        }
        Ok(RecordStream { sources, next })
    }

    /// Merges records with the same first number: `fold` adds a further one to the first.
    ///
    /// # Errors
    /// The space cannot be read or written.
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
        let mut run = RecordRuns { make: self.runs.make, space: None, ends: Vec::new() };
        run.write(folded)?;
        Ok(FoldedRecords::Written(run))
    }
}

/// Sorted records with distinct first numbers.
pub(crate) enum FoldedRecords<const N: usize> {
    /// They fit in memory.
    Held(Vec<Record<N>>),
    /// They are one run.
    Written(RecordRuns<N>),
}

/// Merges the records of several runs in order.
pub(crate) struct RecordStream<'r, const N: usize> {
    sources: Vec<RecordSource<'r, N>>,
    /// The next record of each source.
    next: BinaryHeap<Reverse<(Record<N>, usize)>>,
}

impl<const N: usize> RecordStream<'_, N> {
    /// The next record, without advancing.
    pub fn peek(&self) -> Option<&Record<N>> {
        self.next.peek().map(|Reverse((record, _))| record)
    }

    /// The first number of the next record.
    pub fn group(&self) -> Option<u64> {
        self.peek().map(|record| record[0])
    }

    /// The next record, if it has this first number.
    ///
    /// # Errors
    /// The space cannot be read.
    pub fn next_of(&mut self, group: u64) -> io::Result<Option<Record<N>>> {
        if self.group() == Some(group) { self.next() } else { Ok(None) }
    }

    /// The next record.
    ///
    /// # Errors
    /// The space cannot be read.
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

/// Sorted runs of records in scratch space.
#[derive(Debug)]
pub(crate) struct RecordRuns<const N: usize> {
    make: MakeSpace,
    space: Option<Box<dyn ScratchSpace>>,
    /// For each run, the number of records up to its end.
    ends: Vec<usize>,
}

impl<const N: usize> RecordRuns<N> {
    const BYTES: usize = size_of::<Record<N>>();
    /// Records per read or write.
    const BLOCK: usize = BLOCK / Self::BYTES;

    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Writes sorted records as a further run.
    fn write(&mut self, records: impl Iterator<Item = io::Result<Record<N>>>) -> io::Result<()> {
        let mut end = self.len();
        let space = match self.space.take() {
            Some(space) => space,
            None => (self.make)()?,
        };
        let mut bytes = Vec::with_capacity(BLOCK);
        let mut write = |bytes: &mut Vec<u8>| {
            space.write(bytes, (end * Self::BYTES) as u64)?;
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
        self.space = Some(space);
        self.ends.push(end);
        Ok(())
    }

    /// Reads a range of records.
    ///
    /// # Errors
    /// The space cannot be read.
    pub fn read(&self, from: usize, to: usize) -> io::Result<Vec<Record<N>>> {
        let mut bytes = vec![0; to.saturating_sub(from) * Self::BYTES];
        if let Some(space) = &self.space {
            space.read(&mut bytes, (from * Self::BYTES) as u64)?;
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

    use super::super::space::tests::{no_space, space};
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
                let mut sorter = RecordSorter::new(space).within(held);
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

    #[test]
    fn where_there_is_no_space_it_is_said_in_the_end() {
        let mut sorter = RecordSorter::new(no_space).within(16);
        (0..100).for_each(|number| sorter.add([number]));
        assert_eq!(sorter.sorted().map(|_| ()).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
