//! Set of the ids of deleted rows, to compare texts, lists and documents with.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use crate::memory::digest::wide_digest;
use crate::memory::packed::digest_set::DigestSet;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;

/// Ids, compared by their exact spelling: in another case, an id may be another row's. An id takes 12 bytes, and its text.
#[derive(Debug)]
pub struct IdSet {
    ids: IdList,
    pages: PageStore,
    /// Hashes of the ids.
    known: DigestSet,
}

impl IdSet {
    /// Creates an empty set that shares storage with others.
    pub(crate) fn new(pages: &PageStore) -> Self {
        IdSet { ids: IdList::paged(pages), pages: pages.clone(), known: DigestSet::new(pages) }
    }

    /// Adds an id.
    pub fn insert(&mut self, id: &str) {
        if self.known.insert(wide_digest(id)) {
            self.ids.push(id);
        }
    }

    /// Whether an id is one of them.
    pub fn contains(&self, id: &str) -> bool {
        self.known.contains(wide_digest(id))
    }

    /// Checks whether all ids could be written and read: an unreadable id would not match.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.pages.check()
    }

    /// Number of ids.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids, in order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        (0..self.ids.len()).filter_map(|place| self.ids.get(place))
    }

    /// The ids in chunks of `size`.
    pub fn parts(&self, size: usize) -> impl Iterator<Item = Vec<String>> {
        let get = |place| self.ids.get(place).map(Cow::into_owned);
        (0..self.ids.len()).step_by(size).map(move |from| (from..self.len().min(from + size)).filter_map(get).collect())
    }

    /// Sums of all hashes, which identify the set regardless of order.
    pub fn sums(&self) -> [u64; 2] {
        self.known.sums()
    }
}

/// Ids that one place may lose: those recognizable in any text, and some of its own.
#[derive(Debug, Clone)]
pub struct LostIds {
    told: Arc<IdSet>,
    own: Arc<IdSet>,
}

impl LostIds {
    /// Combines ids recognizable in any text with others.
    pub fn new(told: &Arc<IdSet>, own: IdSet) -> Self {
        LostIds { told: told.clone(), own: Arc::new(own) }
    }

    /// Whether an id is one of them.
    pub fn contains(&self, id: &str) -> bool {
        self.own.contains(id) || self.told.contains(id)
    }

    /// The ids recognizable in any text.
    pub fn told(&self) -> &IdSet {
        &self.told
    }

    /// The ids for this place only.
    pub fn own(&self) -> &IdSet {
        &self.own
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::packed::space::tests::space;

    #[test]
    fn ids_are_found_in_their_own_case_only() {
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
                assert!(set.contains(&id(n)), "{n}");
                assert_eq!(set.contains(&upper), upper == id(n));
            }
            assert!(!set.contains(&id(count)) && !set.contains(""));
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
