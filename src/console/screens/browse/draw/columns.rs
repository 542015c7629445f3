//! Widths of the columns of a list: the width their values need, and the columns dropped first.

use std::collections::BTreeMap;

use crate::console::core::columns::{ListColumn, ValueStyle};
use crate::console::core::context::Context;
use crate::console::core::window::PageWindow;
use crate::console::view::cell;
use crate::memory::Entity;

/// Blank columns between two columns, and those at the sides.
const GAP: u16 = 2;
const SIDES: u16 = 4;
/// Columns below which a name is useless.
const NAME: u16 = 12;
/// Columns that a free text gets before others grow.
const ENOUGH: u16 = 40;
/// Rows that tell enough about the rows to come.
const TELLING: usize = 10;
/// Columns up to this priority number come before a free text has enough room.
const IMPORTANT: u8 = 3;

/// Widths of the values in a list, by column. They grow until some rows and their names were measured; then they stay,
/// and longer values are cut, so that columns neither move nor come and go while rows change.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MeasuredColumns {
    widest: BTreeMap<&'static str, u16>,
    /// Pages and names that were measured; `None` if the next rows are measured anew.
    of: Option<(u64, u64)>,
    /// Layout that they were measured for.
    layout: Option<ListLayout>,
    /// Whether they stay as they are.
    settled: bool,
}

/// Layout of a list: the size of the terminal, how far the list was resized, whether it is zoomed, and chosen columns.
type ListLayout = ((u16, u16), i16, bool, Option<Vec<&'static str>>);

impl MeasuredColumns {
    /// Measures the next rows anew.
    pub fn doubt(&mut self) {
        (self.of, self.settled) = (None, false);
    }

    /// Measures the loaded rows, unless the widths are settled for this layout.
    pub fn measure(&mut self, entity: Entity, window: &PageWindow, zoomed: bool, cx: &Context) {
        let layout = Some((cx.size, cx.pane_steps, zoomed, cx.columns.get(&entity).cloned()));
        if self.layout != layout {
            self.layout = layout;
            self.doubt();
        }
        if self.settled || window.is_empty() && !self.widest.is_empty() {
            return;
        }
        if self.of.is_none() {
            self.widest.clear();
        }
        let of = Some((window.received(), cx.names.version()));
        if self.of != of {
            self.of = of;
            self.grow(entity, window, cx);
        }
        let is_named = cx.names.waiting.is_none() && (entity != Entity::Subject || cx.names.knows_held());
        self.settled = is_named && window.len() >= TELLING;
    }

    fn grow(&mut self, entity: Entity, window: &PageWindow, cx: &Context) {
        for (at, spec) in cx.list_columns(entity).into_iter().enumerate() {
            let mark = |row| match (at, spec.max) {
                (0, _) => cell::hold_width(row, &cx.names),
                (_, 0) if cell::is_quarantined(row) => 2 + cell::QUARANTINED.len(),
                _ => 0,
            };
            let width = |row| mark(row) + cell::width(row, spec, &cx.names);
            let widest = window.rows().map(width).max().unwrap_or_default();
            let known = self.widest.entry(spec.column).or_default();
            *known = (*known).max(u16::try_from(widest).unwrap_or(u16::MAX));
        }
    }

    /// The widest value of a column; `None` if no row is loaded.
    fn of(&self, column: &str) -> Option<u16> {
        self.widest.get(column).copied()
    }
}

/// A column that fits, and its width.
pub struct FittedColumn {
    /// The column.
    pub spec: &'static ListColumn,
    /// Width of the column.
    pub width: u16,
    /// The width that it needs to show everything.
    most: u16,
}

impl FittedColumn {
    fn new(spec: &'static ListColumn, widths: &MeasuredColumns, sorted: bool) -> Self {
        let title = spec.title.chars().count() as u16 + if sorted { 2 } else { 0 };
        let most = widths.of(spec.column).unwrap_or(if spec.max == 0 { u16::MAX / 16 } else { spec.max }).max(title);
        let least = match spec.show {
            ValueStyle::Time => spec.min,
            ValueStyle::Id => spec.min.max(NAME).min(most),
            ValueStyle::Text | ValueStyle::Words | ValueStyle::Json => spec.min.min(most),
            // A cut number or state is useless.
            _ => most,
        };
        FittedColumn { spec, width: least, most: most.max(least) }
    }

    fn is_free(&self) -> bool {
        self.spec.max == 0
    }
}

fn used(fitted: &[FittedColumn]) -> u16 {
    let gaps = GAP * (fitted.len() as u16).saturating_sub(1);
    fitted.iter().map(|c| c.width).sum::<u16>() + gaps
}

/// Terminal columns that a list needs to show all its values.
pub fn wanted(specs: &[&'static ListColumn], widths: &MeasuredColumns, sorted: &str) -> u16 {
    let columns = candidates(specs, widths, sorted);
    columns.iter().fold(SIDES, |sum, column| sum.saturating_add(column.most).saturating_add(GAP))
}

/// The columns that have values, and those that are always shown.
fn candidates(specs: &[&'static ListColumn], widths: &MeasuredColumns, sorted: &str) -> Vec<FittedColumn> {
    let shows =
        |spec: &&&'static ListColumn| spec.priority == 0 || spec.column == sorted || widths.of(spec.column) != Some(0);
    specs.iter().filter(shows).map(|spec| FittedColumn::new(spec, widths, spec.column == sorted)).collect()
}

/// The columns that fit. The least important are dropped first; then each gets the width of its values, the free text
/// first, and the rest stays blank.
pub fn fitted(specs: &[&'static ListColumn], widths: &MeasuredColumns, sorted: &str, width: u16) -> Vec<FittedColumn> {
    let room = width.saturating_sub(SIDES);
    let enough = ENOUGH.min(width * 2 / 5);
    let mut fitted = candidates(specs, widths, sorted);
    let lacking = |fitted: &[FittedColumn]| {
        fitted.iter().filter(|c| c.is_free()).map(|c| enough.min(c.most).saturating_sub(c.width)).sum::<u16>()
    };
    while let Some((at, priority)) = least_important(&fitted) {
        if used(&fitted) + if priority > IMPORTANT { lacking(&fitted) } else { 0 } <= room {
            break;
        }
        fitted.remove(at);
    }
    let mut free: Vec<usize> = (0..fitted.len()).filter(|at| fitted[*at].is_free()).collect();
    free.sort_by_key(|at| std::cmp::Reverse(fitted[*at].most));
    let mut others: Vec<usize> = (0..fitted.len()).filter(|at| !fitted[*at].is_free()).collect();
    // A short date suffices: it grows last.
    others.sort_by_key(|at| (fitted[*at].spec.show == ValueStyle::Time, fitted[*at].spec.priority));
    for at in &free {
        grow(&mut fitted, *at, enough, room);
    }
    for at in others.iter().filter(|at| fitted[**at].spec.show != ValueStyle::Time).copied().collect::<Vec<_>>() {
        let most = fitted[at].spec.max;
        grow(&mut fitted, at, most, room);
    }
    for at in free.iter().chain(&others) {
        grow(&mut fitted, *at, u16::MAX, room);
    }
    fitted
}

/// Widens a column to the width it needs, up to `most`, as far as room is left.
fn grow(fitted: &mut [FittedColumn], at: usize, most: u16, room: u16) {
    let left = room.saturating_sub(used(fitted));
    let column = &mut fitted[at];
    let more = most.min(column.most).saturating_sub(column.width);
    // Half a date says no more than a short one.
    if column.spec.show != ValueStyle::Time || left >= more {
        column.width += left.min(more);
    }
}

/// The column to drop first, and its priority.
fn least_important(fitted: &[FittedColumn]) -> Option<(usize, u8)> {
    let dispensable = fitted.iter().enumerate().filter(|(_, c)| c.spec.priority > 0);
    dispensable.map(|(at, c)| (at, c.spec.priority)).max_by_key(|(_, priority)| *priority)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::core::columns::list_columns;

    fn widths(of: &[(&'static str, u16)]) -> MeasuredColumns {
        MeasuredColumns { widest: of.iter().copied().collect(), ..MeasuredColumns::default() }
    }

    fn width_of(column: &str, fitted: &[FittedColumn]) -> Option<u16> {
        fitted.iter().find(|c| c.spec.column == column).map(|c| c.width)
    }

    fn feedback() -> MeasuredColumns {
        let widths = [("created_at", 16), ("kind", 13), ("score", 5), ("rating", 1), ("correction", 90)];
        let more = [("user_id", 12), ("agent_id", 14), ("episode_id", 48), ("source", 0)];
        MeasuredColumns { widest: widths.into_iter().chain(more).collect(), ..MeasuredColumns::default() }
    }

    #[test]
    fn nothing_is_cut_beside_empty_space() {
        let specs: Vec<&ListColumn> = list_columns(Entity::Feedback).iter().collect();
        for width in [58, 78, 98, 118, 158, 198, 298] {
            let fitted = fitted(&specs, &feedback(), "created_at", width);
            let left = width.saturating_sub(SIDES).saturating_sub(used(&fitted));
            let cut: Vec<&str> = fitted
                .iter()
                .filter(|c| c.width < c.most && (c.spec.show != ValueStyle::Time || left >= 5))
                .map(|c| c.spec.column)
                .collect();
            assert!(left == 0 || cut.is_empty(), "{width}: {left} columns are empty next to {cut:?}");
            assert_eq!(width_of("kind", &fitted), Some(13), "{width}");
        }
    }

    #[test]
    fn a_column_without_values_takes_no_room() {
        let specs: Vec<&ListColumn> = list_columns(Entity::Feedback).iter().collect();
        assert_eq!(width_of("source", &fitted(&specs, &feedback(), "created_at", 200)), None);
        assert!(width_of("source", &fitted(&specs, &feedback(), "source", 200)).is_some(), "it orders the list");
        assert!(width_of("source", &fitted(&specs, &widths(&[]), "created_at", 200)).is_some(), "nothing is known yet");
    }

    #[test]
    fn the_free_text_takes_what_is_left() {
        let specs: Vec<&ListColumn> = list_columns(Entity::Feedback).iter().collect();
        assert_eq!(width_of("correction", &fitted(&specs, &feedback(), "created_at", 298)), Some(90));
    }
}
