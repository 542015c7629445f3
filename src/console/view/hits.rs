//! Click targets by their areas on the screen.

use ratatui::layout::{Position, Rect};

use crate::console::core::ClickTarget;

/// Areas with their click targets; the one drawn last is on top.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hits(Vec<(Rect, ClickTarget)>);

impl Hits {
    /// Adds a click target.
    pub fn add(&mut self, area: Rect, target: ClickTarget) {
        self.0.push((area, target));
    }

    /// Finds the click target at a position.
    pub fn at(&self, x: u16, y: u16) -> Option<&ClickTarget> {
        self.0.iter().rev().find(|(area, _)| area.contains(Position { x, y })).map(|(_, target)| target)
    }
}
