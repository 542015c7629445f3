//! The position in a fully loaded list with details beside it.

/// Selected entry of a list, and how far its details are scrolled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListCursor {
    /// Position of the selected entry.
    pub selected: usize,
    /// Lines of its details that lie above.
    pub scroll: usize,
}

impl ListCursor {
    /// Selects the entry at a position, or the last of `entries`; its details begin at the top.
    pub fn select(&mut self, position: usize, entries: usize) {
        *self = ListCursor { selected: position.min(entries.saturating_sub(1)), scroll: 0 };
    }

    /// Follows the selected entry to its new position among `entries`; if it is gone, the position is kept.
    pub fn stay(&mut self, position: Option<usize>, entries: usize) {
        self.selected = position.unwrap_or(self.selected).min(entries.saturating_sub(1));
    }
}
