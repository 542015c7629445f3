//! Sets of hashes, in twelve bytes each and a few more for the latest; those that do not fit in memory are in scratch
//! space.

use std::collections::HashSet;

use super::pages::PageStore;
use crate::memory::digest::Digest;

/// The stored bytes of two hashes: no two values of a database share them.
type KeptDigest = [u8; 12];

/// Latest hashes, kept in a separate table: as many as one of 16,384 entries holds.
const RECENT: usize = 7 << 11;
/// Hashes of a part.
const PART: usize = 1 << 12;
/// Approximate number of hashes between two known positions.
const STRIDE: usize = 32;
/// Least factor by which a run is longer than all later ones together.
const LONGER: usize = 4;

/// Set of hashes. Sets with the same page store share its memory limit.
#[derive(Debug)]
pub(crate) struct DigestSet {
    pages: PageStore,
    /// The latest hashes.
    recent: HashSet<KeptDigest>,
    /// The others, longest run first.
    runs: Vec<DigestRun>,
    /// The sums of all hashes, which identify the set regardless of order.
    sums: [u64; 2],
}

/// Sorted hashes.
#[derive(Debug)]
struct DigestRun {
    parts: Vec<DigestPart>,
    len: usize,
    /// Start of each group of hashes with the same leading bits, and the end; groups have about [`STRIDE`] hashes.
    begins: Vec<u32>,
}

#[derive(Debug)]
struct DigestPart {
    pages: PageStore,
    bytes: PartBytes,
}

#[derive(Debug)]
enum PartBytes {
    Held(Box<[KeptDigest]>),
    /// Their offset in the scratch space, and their number.
    Written(usize, usize),
}

impl DigestSet {
    /// An empty set.
    pub fn new(pages: &PageStore) -> Self {
        DigestSet { pages: pages.clone(), recent: HashSet::new(), runs: Vec::new(), sums: [0; 2] }
    }

    /// Adds a pair of hashes. Returns whether it was new.
    pub fn insert(&mut self, hashes: [Digest; 2]) -> bool {
        if self.contains(hashes) {
            return false;
        }
        if self.recent.len() == RECENT {
            self.close();
        }
        self.recent.insert(kept(hashes));
        self.sums.iter_mut().zip(hashes).for_each(|(sum, hash)| *sum = sum.wrapping_add(hash));
        true
    }

    /// Whether the set contains a pair of hashes. False if it cannot be read, which the pages report.
    pub fn contains(&self, hashes: [Digest; 2]) -> bool {
        let digest = kept(hashes);
        self.recent.contains(&digest) || self.runs.iter().any(|run| run.contains(&digest))
    }

    /// Sums of all hashes.
    pub fn sums(&self) -> [u64; 2] {
        self.sums
    }

    /// Sorts the latest hashes into a run, merged with runs that are not much longer.
    fn close(&mut self) {
        let mut last: Vec<KeptDigest> = self.recent.drain().collect();
        last.sort_unstable();
        let mut count = last.len();
        let mut sources = vec![RunReader { parts: Vec::new().into_iter(), digests: last.into_iter() }.peekable()];
        while let Some(run) = self.runs.pop_if(|run| run.len < LONGER * count) {
            count += run.len;
            sources.push(RunReader { parts: run.parts.into_iter(), digests: Vec::new().into_iter() }.peekable());
        }
        let merged = std::iter::from_fn(|| {
            let least = sources.iter_mut().filter_map(|source| Some((*source.peek()?, source)));
            least.min_by_key(|(digest, _)| *digest).and_then(|(_, source)| source.next())
        });
        self.runs.push(DigestRun::of(merged, count, &self.pages));
    }
}

/// The leading bytes of both hashes.
fn kept(hashes: [Digest; 2]) -> KeptDigest {
    let mut kept = [0; size_of::<KeptDigest>()];
    let bytes = hashes.map(Digest::to_be_bytes);
    kept.iter_mut().zip(bytes.as_flattened()).for_each(|(to, byte)| *to = *byte);
    kept
}

/// The leading bits of a hash, for a power of two of groups.
fn begin(digest: &KeptDigest, count: usize) -> usize {
    let first = digest.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    first.checked_shr(u64::BITS - count.ilog2()).unwrap_or(0) as usize
}

impl DigestRun {
    /// Builds a run of `count` sorted hashes.
    fn of(digests: impl Iterator<Item = KeptDigest>, count: usize, pages: &PageStore) -> Self {
        let values = (count / STRIDE).next_power_of_two();
        let mut run = DigestRun { parts: Vec::new(), len: 0, begins: Vec::with_capacity(values + 1) };
        let mut part = Vec::new();
        for digest in digests {
            run.begins.resize(run.begins.len().max(begin(&digest, values) + 1), run.len as u32);
            run.len += 1;
            part.push(digest);
            if part.len() == PART {
                run.parts.push(DigestPart::of(std::mem::take(&mut part), pages));
            }
        }
        run.parts.push(DigestPart::of(part, pages));
        run.begins.resize(values + 1, run.len as u32);
        run
    }

    fn contains(&self, digest: &KeptDigest) -> bool {
        let begin = begin(digest, self.begins.len() - 1);
        let (mut from, to) = (self.begins[begin] as usize, self.begins[begin + 1] as usize);
        while from < to {
            let part = from / PART;
            let until = to.min((part + 1) * PART).min(from + STRIDE);
            if self.parts.get(part).is_some_and(|known| known.contains(digest, from - part * PART, until - from)) {
                return true;
            }
            from = until;
        }
        false
    }
}

impl DigestPart {
    fn of(digests: Vec<KeptDigest>, pages: &PageStore) -> Self {
        let bytes = if pages.takes_hashes(size_of_val(digests.as_slice())) {
            PartBytes::Held(digests.into())
        } else {
            PartBytes::Written(pages.write(digests.as_flattened()), digests.len())
        };
        DigestPart { pages: pages.clone(), bytes }
    }

    /// Whether a hash is among `count` from a position on, at most [`STRIDE`].
    fn contains(&self, digest: &KeptDigest, from: usize, count: usize) -> bool {
        match &self.bytes {
            PartBytes::Held(held) => {
                held.get(from..from + count).is_some_and(|some| some.binary_search(digest).is_ok())
            }
            PartBytes::Written(at, _) => {
                let mut room = [KeptDigest::default(); STRIDE];
                let some = &mut room[..count];
                self.pages.read(at + from * size_of::<KeptDigest>(), some.as_flattened_mut());
                some.contains(digest)
            }
        }
    }

    fn all(&self) -> Vec<KeptDigest> {
        match &self.bytes {
            PartBytes::Held(held) => held.to_vec(),
            PartBytes::Written(at, len) => {
                let mut all = vec![KeptDigest::default(); *len];
                self.pages.read(*at, all.as_flattened_mut());
                all
            }
        }
    }
}

impl Drop for DigestPart {
    fn drop(&mut self) {
        if let PartBytes::Held(held) = &self.bytes {
            self.pages.gives_hashes(size_of_val(&**held));
        }
    }
}

/// Reads a run part by part, freeing each part after use.
struct RunReader {
    parts: std::vec::IntoIter<DigestPart>,
    digests: std::vec::IntoIter<KeptDigest>,
}

impl Iterator for RunReader {
    type Item = KeptDigest;

    fn next(&mut self) -> Option<KeptDigest> {
        loop {
            if let Some(digest) = self.digests.next() {
                return Some(digest);
            }
            self.digests = self.parts.next()?.all().into_iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::space::tests::space;
    use super::*;
    use crate::memory::digest::wide_digest;

    #[test]
    fn a_set_knows_each_hash_once_wherever_it_is() {
        for room in [0, 300_000, 1 << 30] {
            let pages = PageStore::new(room, space);
            let (mut set, mut other) = (DigestSet::new(&pages), DigestSet::new(&pages));
            let hashes = |n: usize| wide_digest(&n.to_string());
            let count = 7 * RECENT + 5;
            assert!((0..count).all(|n| set.insert(hashes(n))));
            assert!((0..count).all(|n| set.contains(hashes(n)) && !set.contains(hashes(count + n))));
            assert!(!(0..count).any(|n| set.insert(hashes(n))));
            assert!((0..count).rev().all(|n| other.insert(hashes(n))));
            assert_eq!(set.sums(), other.sums());
            assert!(
                set.runs.len() < 4 && set.runs.iter().map(|run| run.len).sum::<usize>() + set.recent.len() == count
            );
            pages.check().unwrap();
            drop((set, other));
            assert!(pages.takes_hashes(2 * room) && !pages.takes_hashes(1), "all room is free again");
        }
    }
}
