//! The list of a screen of its own kind: as many rows as fit, down to the selected one, each to be clicked.

use ratatui::{buffer::Buffer, layout::Rect};

use crate::console::core::ClickTarget;
use crate::console::view::Drawn;
use crate::ui::{Card, Extent, Look, TableBody, TableColumn, TableRow, TableView, Total};

pub(in crate::console) struct PanelList<'a> {
    pub columns: &'a [TableColumn],
    /// Number of rows to show.
    pub count: usize,
    /// Further ones are not read yet.
    pub more: bool,
    /// Total number of rows, if known.
    pub total: Total,
    pub selected: usize,
    pub focused: bool,
    /// Card shown instead of rows, if any.
    pub card: Option<Card>,
}

impl<'a> PanelList<'a> {
    /// A list of `count` rows, all of them read, that has the focus.
    pub fn of(columns: &'a [TableColumn], count: usize, selected: usize, card: Option<Card>) -> Self {
        PanelList { columns, count, more: false, total: Total::Exact(count as u64), selected, focused: true, card }
    }

    /// Draws it; `row` gives the one at a position.
    pub fn draw(
        self,
        row: impl FnMut(usize) -> Option<TableRow>,
        look: &Look,
        area: Rect,
        buf: &mut Buffer,
        drawn: &mut Drawn,
    ) {
        let lines = TableView::capacity(area);
        drawn.measures.list_rows = lines;
        let top = (self.selected + 1).saturating_sub(lines.max(1));
        let rows: Vec<TableRow> = (top..self.count).take(lines).filter_map(row).collect();
        let table = TableView {
            columns: self.columns,
            body: self.card.as_ref().map_or(TableBody::Rows(&rows), TableBody::Card),
            selected: self.selected.checked_sub(top).filter(|at| *at < rows.len()),
            focused: self.focused,
            marks: false,
            extent: Extent {
                first: Some(top as u64),
                total: self.total,
                above: top > 0,
                below: self.more || top + rows.len() < self.count,
            },
        };
        table.render(area, buf, look);
        for y in area.top()..area.bottom() {
            if let Some(at) = table.row_at(area, area.x, y) {
                drawn.hits.add(Rect { y, height: 1, ..area }, ClickTarget::PanelRow(top + at));
            }
        }
    }
}
