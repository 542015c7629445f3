//! Parts of long lists: those that do not fit in memory are in scratch space, with a cache of some pages.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::space::{MakeSpace, ScratchSpace};

/// Bytes of a page, and the number of cached pages: 8 MB.
const PAGE: usize = 4_096;
const PAGES: usize = 2_048;

/// Parts of lists, by offset. Lists that share a store share its memory limit and its space.
#[derive(Debug, Clone)]
pub(crate) struct PageStore(Arc<Mutex<Pages>>);

#[derive(Debug)]
struct Pages {
    /// Bytes of parts, and of hashes, that may still be kept in memory.
    room: usize,
    hash_room: usize,
    make: MakeSpace,
    space: Option<Box<dyn ScratchSpace>>,
    /// Length of the space in bytes.
    end: usize,
    /// Cached pages by number, with their slots.
    places: HashMap<usize, usize>,
    held: Vec<(usize, Vec<u8>)>,
    /// Slot of the page to be replaced next.
    next: usize,
    fault: Option<io::Error>,
}

impl PageStore {
    /// Creates a store that keeps parts of that many bytes in memory, and twice as many bytes of hashes, which are read
    /// in random order.
    pub fn new(room: usize, make: MakeSpace) -> Self {
        let (places, held) = (HashMap::new(), Vec::new());
        let (space, hash_room) = (None, 2 * room);
        let pages = Pages { room, hash_room, make, space, end: 0, places, held, next: 0, fault: None };
        PageStore(Arc::new(Mutex::new(pages)))
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves memory for a part; returns whether there is room.
    pub fn takes(&self, bytes: usize) -> bool {
        let mut pages = self.pages();
        let rest = pages.room.checked_sub(bytes);
        pages.room = rest.unwrap_or(pages.room);
        rest.is_some()
    }

    /// Reserves memory for hashes; returns whether there is room.
    pub fn takes_hashes(&self, bytes: usize) -> bool {
        let mut pages = self.pages();
        let rest = pages.hash_room.checked_sub(bytes);
        pages.hash_room = rest.unwrap_or(pages.hash_room);
        rest.is_some()
    }

    /// Releases memory reserved for hashes.
    pub fn gives_hashes(&self, bytes: usize) {
        self.pages().hash_room += bytes;
    }

    /// Writes a part; returns its offset.
    pub fn write(&self, part: &[u8]) -> usize {
        let mut pages = self.pages();
        let at = pages.end;
        if let Err(error) = pages.write(part) {
            pages.fault.get_or_insert(error);
        }
        at
    }

    /// Reads at an offset of the space; zeros if that fails, which [`PageStore::check`] reports.
    pub fn read(&self, mut at: usize, mut into: &mut [u8]) {
        let mut pages = self.pages();
        while !into.is_empty() {
            let count = into.len().min(PAGE - at % PAGE);
            let (some, rest) = into.split_at_mut(count);
            match pages.page(at / PAGE) {
                Ok(page) => {
                    let held = page.get(at % PAGE..).unwrap_or_default();
                    let known = held.len().min(count);
                    some[..known].copy_from_slice(&held[..known]);
                }
                Err(error) => {
                    pages.fault.get_or_insert(error);
                }
            }
            (into, at) = (rest, at + count);
        }
    }

    /// Checks whether everything could be written and read so far.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        let again = |fault: &io::Error| Err(io::Error::new(fault.kind(), fault.to_string()));
        self.pages().fault.as_ref().map_or(Ok(()), again)
    }
}

impl Pages {
    fn write(&mut self, part: &[u8]) -> io::Result<()> {
        let space = match self.space.take() {
            Some(space) => space,
            None => (self.make)()?,
        };
        // The last page may be cached, and has grown.
        let last = self.end / PAGE;
        space.write(part, self.end as u64)?;
        (self.space, self.end) = (Some(space), self.end + part.len());
        if let Some(place) = self.places.remove(&last) {
            self.held[place].0 = usize::MAX;
        }
        Ok(())
    }

    fn page(&mut self, number: usize) -> io::Result<&[u8]> {
        if let Some(place) = self.places.get(&number) {
            return Ok(&self.held[*place].1);
        }
        if self.held.len() < PAGES {
            self.next = self.held.len();
            self.held.push((usize::MAX, vec![0; PAGE]));
        }
        let place = self.next;
        self.next = (place + 1) % PAGES;
        let (before, bytes) = &mut self.held[place];
        self.places.remove(before);
        *before = usize::MAX;
        let from = number * PAGE;
        bytes.resize(PAGE.min(self.end.saturating_sub(from)), 0);
        if let Some(space) = &self.space {
            space.read(bytes, from as u64)?;
        }
        *before = number;
        self.places.insert(number, place);
        Ok(&self.held[place].1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::space::tests::space;
    use super::*;

    proptest! {
        #[test]
        fn parts_are_read_as_they_were_written(parts in prop::collection::vec(0usize..9_000, 1..60)) {
            let pages = PageStore::new(0, space);
            prop_assert!(pages.takes(0) && !pages.takes(1));
            let part = |number: usize, bytes: usize| vec![number as u8 + 1; bytes];
            let mut written = Vec::new();
            for (number, bytes) in parts.iter().enumerate() {
                written.push((pages.write(&part(number, *bytes)), part(number, *bytes)));
                for (at, part) in &written {
                    let mut read = vec![0; part.len().min(3)];
                    pages.read(*at, &mut read);
                    prop_assert_eq!(&read, &part[..read.len()]);
                }
            }
            for (at, part) in &written {
                let mut read = vec![0; part.len()];
                pages.read(*at, &mut read);
                prop_assert_eq!(&read, part);
            }
            pages.check().unwrap();
        }
    }

    #[test]
    fn more_pages_than_are_held_are_read_again() {
        let pages = PageStore::new(0, space);
        let count = PAGES + 50;
        let part: Vec<u8> = (0..count * PAGE).map(|at| (at / PAGE) as u8).collect();
        pages.write(&part);
        for number in (0..count).chain((0..count).rev()) {
            let mut byte = [0];
            pages.read(number * PAGE + number % PAGE, &mut byte);
            assert_eq!(byte[0], number as u8);
        }
        pages.check().unwrap();
    }
}
