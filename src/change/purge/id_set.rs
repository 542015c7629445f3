//! Ids of rows that go, each once: what a text, a list or a document is compared with.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::sync::Arc;

use crate::memory::digest::wide_digest;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;

/// Places of a set that may be taken, of each four.
const TAKEN: usize = 3;
/// Places of the first set that is not empty.
const FEWEST: usize = 16;
/// Bytes of an id that are hashed together.
const HASHED: usize = 64;

/// Ids that are found by their letters, also in the other case. An id takes 8 to 22 bytes, and its text where it fits.
#[derive(Debug)]
pub struct IdSet {
    ids: IdList,
    pages: PageStore,
    /// For each id the upper half of the hash of its small letters, and one more than its number; 0 where nothing is.
    places: Vec<(u32, u32)>,
    /// The sums of all hashes: they tell sets apart, whatever the order.
    sums: [u64; 2],
}

impl IdSet {
    /// An empty set that shares room with others.
    pub(crate) fn new(pages: &PageStore) -> Self {
        IdSet { ids: IdList::paged(pages), pages: pages.clone(), places: Vec::new(), sums: [0; 2] }
    }

    /// Adds an id.
    pub fn insert(&mut self, id: &str) {
        if self.contains(id) {
            return;
        }
        if (self.ids.len() + 1) * 4 > self.places.len() * TAKEN {
            self.grow();
        }
        let number = self.ids.len() as u32 + 1;
        self.ids.push(id);
        take_place(&mut self.places, tag(id), number);
        for (sum, hash) in self.sums.iter_mut().zip(wide_digest(id)) {
            *sum = sum.wrapping_add(hash);
        }
    }

    fn grow(&mut self) {
        let mut places = vec![(0, 0); (self.places.len() * 2).max(FEWEST)];
        self.places
            .iter()
            .filter(|(_, number)| *number > 0)
            .for_each(|(tag, number)| take_place(&mut places, *tag, *number));
        self.places = places;
    }

    /// Whether an id is one of them.
    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        self.is_like(id, |known| known == id)
    }

    /// Whether an id is one of them, in any case of ASCII letters.
    #[must_use]
    pub fn contains_in_any_case(&self, id: &str) -> bool {
        self.is_like(id, |known| known.eq_ignore_ascii_case(id))
    }

    fn is_like(&self, id: &str, is_same: impl Fn(&str) -> bool) -> bool {
        if self.places.is_empty() {
            return false;
        }
        let tag = tag(id);
        let mut at = tag as usize & (self.places.len() - 1);
        while let Some((known, number)) = self.places.get(at).filter(|(_, number)| *number > 0) {
            if *known == tag && self.ids.get(*number as usize - 1).is_some_and(|id| is_same(&id)) {
                return true;
            }
            at = (at + 1) & (self.places.len() - 1);
        }
        false
    }

    /// Whether all ids could be written and read: an unreadable one is taken for another.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.pages.check()
    }

    /// Number of ids.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        (0..self.ids.len()).filter_map(|place| self.ids.get(place))
    }

    /// The ids in parts of so many.
    pub fn parts(&self, size: usize) -> impl Iterator<Item = Vec<String>> {
        let get = |place| self.ids.get(place).map(Cow::into_owned);
        (0..self.ids.len()).step_by(size).map(move |from| (from..self.len().min(from + size)).filter_map(get).collect())
    }

    /// Sums of all hashes: they tell the set from others, whatever the order.
    #[must_use]
    pub fn sums(&self) -> [u64; 2] {
        self.sums
    }
}

/// Upper half of a hash of an id in small letters.
fn tag(id: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    for part in id.as_bytes().chunks(HASHED) {
        let mut small = [0; HASHED];
        small[..part.len()].copy_from_slice(part);
        small.make_ascii_lowercase();
        hasher.write(&small[..part.len()]);
    }
    (hasher.finish() >> 32) as u32
}

fn take_place(places: &mut [(u32, u32)], tag: u32, number: u32) {
    let mut at = tag as usize & (places.len() - 1);
    while places[at].1 > 0 {
        at = (at + 1) & (places.len() - 1);
    }
    places[at] = (tag, number);
}

/// Ids that one place may lose: those that are told anywhere, and some of its own.
#[derive(Debug, Clone)]
pub struct LostIds {
    told: Arc<IdSet>,
    own: Arc<IdSet>,
}

impl LostIds {
    /// Those that are told anywhere, and others.
    #[must_use]
    pub fn new(told: &Arc<IdSet>, own: IdSet) -> Self {
        LostIds { told: told.clone(), own: Arc::new(own) }
    }

    /// Whether an id is one of them.
    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        self.own.contains(id) || self.told.contains(id)
    }

    /// Those that are told anywhere.
    #[must_use]
    pub fn told(&self) -> &IdSet {
        &self.told
    }

    /// Those of the place's own.
    #[must_use]
    pub fn own(&self) -> &IdSet {
        &self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::packed::space::tests::space;

    #[test]
    fn ids_are_found_in_any_case_and_told_apart_by_theirs() {
        for room in [0, 1 << 30] {
            let mut set = IdSet::new(&PageStore::new(room, space));
            let id = |n: usize| match n % 3 {
                0 => format!("Ep_{n}"),
                1 => uuid::Uuid::from_u128(n as u128).to_string(),
                _ => format!("{n} {}", "é".repeat(n % 90)),
            };
            let count = 70_000;
            (0..count).chain(0..count).for_each(|n| set.insert(&id(n)));
            assert_eq!(set.len(), count);
            assert!(set.iter().enumerate().all(|(n, known)| known == id(n)));
            for n in [0, 1, 2, 65_535, 65_536, count - 1] {
                let upper = id(n).to_ascii_uppercase();
                assert!(set.contains(&id(n)) && set.contains_in_any_case(&upper), "{n}");
                assert_eq!(set.contains(&upper), upper == id(n));
            }
            assert!(!set.contains(&id(count)) && !set.contains_in_any_case(&id(count)) && !set.contains(""));
        }
    }

    #[test]
    fn sums_tell_sets_whatever_the_order() {
        let pages = PageStore::new(0, space);
        let of = |ids: &[&str]| {
            let mut set = IdSet::new(&pages);
            ids.iter().for_each(|id| set.insert(id));
            set.sums()
        };
        assert_eq!(of(&["a", "b", "a"]), of(&["b", "a"]));
        assert_ne!(of(&["a", "b"]), of(&["a", "c"]));
    }
}
