//! Findings that the pages of one list share while they are read in turn.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::episode_of::EpisodeIndex;
use super::order::{Edge, OrderedPart};

/// The reading of a list, page after page. Where no index has its order, the places of many rows are sorted together, so
/// that not every page sorts all rows.
#[derive(Debug, Default)]
pub struct ListReading {
    /// Episodes that the rows may belong to.
    pub(super) episodes: EpisodeIndex,
    /// By source; none before the first page has been read, which may be the only one.
    ahead: Mutex<Option<Vec<KeysAhead>>>,
}

impl ListReading {
    /// The places of the next rows of each source; none for the first page.
    pub(super) fn ahead(&self) -> Option<Vec<KeysAhead>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps them for the next page.
    pub(super) fn keep(&self, ahead: Vec<KeysAhead>) {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
    }
}

/// Places of the rows of one part of a source that follow an edge, in order.
#[derive(Debug, Default)]
pub(super) struct KeysAhead {
    part: Option<OrderedPart>,
    /// The edge, and the places after it.
    keys: VecDeque<Edge>,
    /// No others follow these.
    is_whole: bool,
    /// Whoever asks has chosen them: what else the part holds is not asked for.
    is_given: bool,
}

impl KeysAhead {
    /// Places that are read at a time at most.
    pub const MOST: usize = 65_536;
    /// Bytes that they may have.
    pub const BYTES: usize = 4 << 20;

    pub fn new(part: OrderedPart, edge: Edge, keys: impl Iterator<Item = Edge>, is_whole: bool) -> Self {
        let keys = std::iter::once(edge).chain(keys).collect();
        KeysAhead { part: Some(part), keys, is_whole, is_given: false }
    }

    /// Chosen places of a part, in its order.
    pub fn given(part: OrderedPart, keys: impl Iterator<Item = Edge>) -> Self {
        KeysAhead { is_given: true, ..KeysAhead::new(part, Edge::Begin, keys, true) }
    }

    pub fn is_given(&self) -> bool {
        self.is_given
    }

    /// Leaves out what lies before an edge; whether it is known what follows it.
    pub fn continues(&mut self, part: OrderedPart, edge: &Edge) -> bool {
        if self.part != Some(part) {
            return false;
        }
        while self.keys.front().is_some_and(|front| front != edge) {
            self.keys.pop_front();
        }
        self.keys.len() > 1 || self.is_whole && !self.keys.is_empty()
    }

    /// The next places, and whether they are the last ones.
    pub fn run(&self, most: usize) -> (Vec<Edge>, bool) {
        let run: Vec<Edge> = self.keys.iter().skip(1).take(most).cloned().collect();
        let is_last = self.is_whole && run.len() + 1 >= self.keys.len();
        (run, is_last)
    }
}
