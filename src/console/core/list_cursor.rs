//! The place in a list that is held as a whole, with details next to it.

/// Selected entry of a list, and how far its details are scrolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListCursor {
    /// Position of the selected entry.
    pub selected: usize,
    /// Lines of its details that lie above.
    pub scroll: usize,
}

impl ListCursor {
    /// Selects the entry at a position among so many, or the last one; its details begin at the top.
    pub fn select(&mut self, position: usize, entries: usize) {
        *self = ListCursor { selected: position.min(entries.saturating_sub(1)), scroll: 0 };
    }

    /// Stays at the entry that is at that position now, one of so many; where it is gone, at its place.
    pub fn stay(&mut self, position: Option<usize>, entries: usize) {
        self.selected = position.unwrap_or(self.selected).min(entries.saturating_sub(1));
    }
}
