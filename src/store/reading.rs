//! State shared by the pages of one list while they are read in turn.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::episode_of::EpisodeIndex;
use super::order::{Edge, OrderedPart};

/// The reading of a list, page after page. If no index has its order, the positions of many rows are sorted at once, so
/// that not every page sorts all rows.
#[derive(Debug, Default)]
pub struct ListReading {
    /// Episodes that the rows may belong to.
    pub(super) episodes: EpisodeIndex,
    /// By source; `None` before the first page, which may be the only one.
    ahead: Mutex<Option<Vec<KeysAhead>>>,
}

impl ListReading {
    /// The positions of the next rows of each source; `None` for the first page.
    pub(super) fn ahead(&self) -> Option<Vec<KeysAhead>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Keeps the positions for the next page.
    pub(super) fn keep(&self, ahead: Vec<KeysAhead>) {
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
    }
}

/// Positions of the rows of one part of a source after an edge, in order.
#[derive(Debug, Default)]
pub(super) struct KeysAhead {
    part: Option<OrderedPart>,
    /// The edge, and the positions after it.
    keys: VecDeque<Edge>,
    /// Whether these are the last ones.
    is_whole: bool,
    /// Whether the caller chose them, so that the rest of the part is not needed.
    is_given: bool,
}

impl KeysAhead {
    /// Most positions read at a time.
    pub const MOST: usize = 65_536;
    /// Most bytes of them.
    pub const BYTES: usize = 4 << 20;

    pub fn new(part: OrderedPart, edge: Edge, keys: impl Iterator<Item = Edge>, is_whole: bool) -> Self {
        let keys = std::iter::once(edge).chain(keys).collect();
        KeysAhead { part: Some(part), keys, is_whole, is_given: false }
    }

    /// Given positions of a part, in its order.
    pub fn given(part: OrderedPart, keys: impl Iterator<Item = Edge>) -> Self {
        KeysAhead { is_given: true, ..KeysAhead::new(part, Edge::Begin, keys, true) }
    }

    pub fn is_given(&self) -> bool {
        self.is_given
    }

    /// Drops positions before an edge; returns whether the following ones are known.
    pub fn continues(&mut self, part: OrderedPart, edge: &Edge) -> bool {
        if self.part != Some(part) {
            return false;
        }
        while self.keys.front().is_some_and(|front| front != edge) {
            self.keys.pop_front();
        }
        self.keys.len() > 1 || self.is_whole && !self.keys.is_empty()
    }

    /// The next positions, and whether they are the last ones.
    pub fn run(&self, most: usize) -> (Vec<Edge>, bool) {
        let run: Vec<Edge> = self.keys.iter().skip(1).take(most).cloned().collect();
        let is_last = self.is_whole && run.len() + 1 >= self.keys.len();
        (run, is_last)
    }
}
