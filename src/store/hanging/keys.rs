//! Compact keys that sort very many rows and find them again; keys that do not fit in memory are in a scratch file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use super::{LinkFacts, RowRank};
use crate::memory::Row;
use crate::memory::packed::column::PagedColumn;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::packed::records::{RecordSorter, in_order, ordered};
use crate::store::scratch::{scratch, sorter};

/// Bytes of records in memory while one list is sorted.
const SORTED: usize = 2 << 20;

/// Bytes that the lists of one row keep in memory, besides their last parts.
const ROOM: usize = 8 << 20;

/// Storage for the keys of several lists.
pub(in crate::store) fn key_room() -> PageStore {
    PageStore::new(ROOM, scratch)
}

/// Keys of rows in order of insertion.
#[derive(Debug)]
pub(super) struct RowKeys {
    pages: PageStore,
    ids: IdList,
    /// The source and the facts of each row, as bits.
    facts: PagedColumn<u32>,
    /// NaN for no score.
    scores: PagedColumn<f64>,
    /// Rows that cannot be read again by a key.
    loose: HashMap<usize, Row>,
    order: RecordSorter<6>,
}

impl RowKeys {
    /// Creates an empty list.
    pub fn new(pages: &PageStore) -> Self {
        RowKeys {
            pages: pages.clone(),
            ids: IdList::paged(pages),
            facts: PagedColumn::new(pages),
            scores: PagedColumn::new(pages),
            loose: HashMap::new(),
            order: sorter().within(SORTED),
        }
    }

    /// Adds a row with its id and time, in microseconds since 1970.
    pub fn push(&mut self, source: u16, row: Row, id: &str, at: Option<i64>, rank: RowRank, facts: LinkFacts) {
        let place = self.facts.len();
        let (group, number) = rank;
        let group = (group as u64) << 1 | u64::from(number.is_none());
        let [first, second, _] = in_order(id);
        let at = at.map_or(u64::MAX, ordered);
        self.order.add([group, number.map_or(0, ordered), at, first, second, place as u64]);
        self.ids.push(id);
        let bits = |truth: Option<bool>| truth.map_or(0, |truth| 1 + u32::from(truth));
        self.facts.push(u32::from(source) << 4 | bits(facts.back) << 2 | bits(facts.counts));
        self.scores.push(facts.score.unwrap_or(f64::NAN));
        if id.is_empty() {
            self.loose.insert(place, row);
        }
    }

    /// Sorts the keys; `once` removes repeats of an id, or of an id and a source.
    pub fn sorted(mut self, once: Option<Once>) -> io::Result<SortedKeys> {
        let sorted = self.order.take().sorted()?;
        let mut keys = SortedKeys { places: PagedColumn::new(&self.pages), keys: self };
        let mut stream = sorted.stream()?;
        // Rows with the same time and the same beginning of their ids.
        let mut alike: Vec<usize> = Vec::new();
        let mut before: Option<[u64; 5]> = None;
        while let Some([group, number, at, first, second, place]) = stream.next()? {
            let key = [group, number, at, first, second];
            if before.replace(key) != Some(key) {
                keys.close(&mut alike, once);
            }
            alike.push(place as usize);
        }
        keys.close(&mut alike, once);
        drop(stream);
        keys.check()?;
        Ok(keys)
    }

    /// Whether two rows count as one.
    fn is_same(&self, a: usize, b: usize, once: Once) -> bool {
        let source = |at| self.facts.get(at).map(|facts| facts >> 4);
        once == Once::OfId || source(a) == source(b)
    }
}

/// Rule by which rows count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Once {
    /// Rows with the same id.
    OfId,
    /// Rows with the same id and source.
    OfSource,
}

/// Sorted keys of rows.
#[derive(Debug)]
pub(super) struct SortedKeys {
    keys: RowKeys,
    places: PagedColumn<u64>,
}

impl SortedKeys {
    /// Sorts rows whose ids begin alike by their whole ids, and then by order of insertion.
    fn close(&mut self, alike: &mut Vec<usize>, once: Option<Once>) {
        if alike.len() > 1 {
            alike.sort_by(|a, b| self.keys.ids.get(*a).cmp(&self.keys.ids.get(*b)));
        }
        let mut of_id: Vec<usize> = Vec::new();
        for place in alike.drain(..) {
            if of_id.first().is_none_or(|first| self.keys.ids.get(*first) != self.keys.ids.get(place)) {
                of_id.clear();
            }
            if once.is_some_and(|once| of_id.iter().any(|other| self.keys.is_same(*other, place, once))) {
                continue;
            }
            if once.is_some() {
                of_id.push(place);
            }
            self.places.push(place as u64);
        }
    }

    /// Checks whether everything could be written and read.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.keys.pages.check()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    fn place(&self, at: usize) -> Option<usize> {
        self.places.get(at).map(|place| place as usize)
    }

    /// The id of a row.
    pub fn id(&self, at: usize) -> Cow<'_, str> {
        self.place(at).and_then(|place| self.keys.ids.get(place)).unwrap_or_default()
    }

    /// The number of a row's source.
    pub fn source(&self, at: usize) -> u16 {
        (self.bits(at) >> 4) as u16
    }

    /// The facts of a row.
    pub fn facts(&self, at: usize) -> LinkFacts {
        let (bits, score) = (self.bits(at), self.place(at).and_then(|place| self.keys.scores.get(place)));
        let truth = |bits: u32| (bits & 3 > 0).then_some(bits & 3 == 2);
        LinkFacts { back: truth(bits >> 2), counts: truth(bits), score: score.filter(|score| !score.is_nan()) }
    }

    /// A row that cannot be read again by a key.
    pub fn loose(&self, at: usize) -> Option<&Row> {
        self.keys.loose.get(&self.place(at)?)
    }

    fn bits(&self, at: usize) -> u32 {
        self.place(at).and_then(|place| self.keys.facts.get(place)).unwrap_or_default()
    }
}
