//! The raw tables of the database, with or without a layout: their columns and rows. A draft of a layout can be made
//! from here.

pub(in crate::console) mod draw;
pub mod messages;

use crate::console::core::command::hinted;
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Context, Effect, Fetched, Lack, Reply, Request, RequestFailure, Screen, ScreenFace,
    ScreenKind, Ticket,
};
use crate::console::view::Canvas;
use crate::memory::growth::TableGrowth;
use messages::{TableEntry, TablePage};

/// Rows before the end of those read at which more are read.
const NEAR: usize = 20;
/// Most rows kept.
const MOST: usize = 2_000;

/// The rows of a table, as far as they were read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TableRows {
    /// The table.
    pub table: String,
    /// Rows that were read.
    pub page: TablePage,
    /// They were read.
    pub filled: bool,
    /// They are being read.
    pub pending: Option<Ticket>,
    /// Reason why the rows could not be read.
    pub failure: Option<RequestFailure>,
    /// Growth of the table, or the reason why it is unknown; `None` until counted.
    pub growth: Option<Result<TableGrowth, String>>,
    /// The growth is being counted.
    pub counting: Option<Ticket>,
}

/// The screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TablesScreen {
    /// The tables.
    pub tables: Fetched<Vec<TableEntry>>,
    /// Position of the selected one.
    pub selected: usize,
    /// Whether the rows have the focus.
    pub in_rows: bool,
    /// Position of the selected row.
    pub row: usize,
    /// First column shown.
    pub first_column: usize,
    /// The rows of the selected table.
    pub rows: TableRows,
    /// A layout is being drafted.
    pub drafting: Option<Ticket>,
}

impl TablesScreen {
    /// The selected table.
    pub fn current(&self) -> Option<&TableEntry> {
        self.tables.value.as_ref()?.get(self.selected)
    }

    /// Reads the rows of the selected table, and more of them near their end.
    fn read_rows(&mut self, cx: &mut Context) {
        let Some(table) = self.current().filter(|table| table.unread.is_none()).map(|table| table.name.clone()) else {
            return;
        };
        if self.rows.table != table {
            cx.cancel(self.rows.pending.take());
            cx.cancel(self.rows.counting.take());
            (self.row, self.first_column) = (0, 0);
            self.rows = TableRows { table, ..TableRows::default() };
        }
        if self.rows.pending.is_some() || self.rows.failure.is_some() {
            return;
        }
        // The growth comes after the rows: counting may take a while.
        if self.rows.filled && self.rows.growth.is_none() && self.rows.counting.is_none() {
            self.rows.counting = Some(cx.ask(Request::LoadGrowth(self.rows.table.clone())));
        }
        let near_end = self.row + NEAR >= self.rows.page.rows.len() && self.rows.page.rows.len() < MOST;
        if !self.rows.filled || near_end && self.rows.page.next.is_some() {
            let request = Request::LoadTableRows(self.rows.table.clone(), self.rows.page.next.clone());
            self.rows.pending = Some(cx.ask(request));
        }
    }

    fn take_rows(&mut self, result: Result<TablePage, RequestFailure>) {
        self.rows.pending = None;
        match result {
            Ok(page) => {
                self.rows.filled = true;
                self.rows.page.columns = page.columns;
                self.rows.page.rows.extend(page.rows);
                self.rows.page.next = page.next;
            }
            Err(failure) => self.rows.failure = Some(failure),
        }
    }
}

impl Screen for TablesScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("tables", ScreenKind::Tables, CommandScope::Tables)
    }

    fn hints(&self) -> Vec<CommandId> {
        use CommandId::{Close, Focus, Open, Palette, Refresh};
        let open = (!self.in_rows).then_some(Open);
        open.into_iter().chain(hinted(CommandScope::Tables)).chain([Focus, Close, Palette, Refresh]).collect()
    }

    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        (id == CommandId::Open).then_some("rows")
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        match self.current().filter(|_| self.in_rows) {
            Some(table) => words(["table", &table.name]),
            None => words(["tables"]),
        }
    }

    fn settle(&mut self, cx: &mut Context) {
        if self.tables.is_wanted() {
            self.tables.pending = Some(cx.ask(Request::LoadTables));
        }
        self.read_rows(cx);
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Tables(result) => {
                if let Ok(tables) = &result {
                    let again = tables.iter().position(|table| table.name == self.rows.table);
                    self.selected = again.unwrap_or(self.selected);
                }
                self.tables.take(result);
            }
            Reply::TableRows(result) => self.take_rows(result),
            Reply::Grown(result) => {
                self.rows.counting = None;
                self.rows.growth = Some(result.unwrap_or_else(|failure| Err(failure.message)));
            }
            Reply::Drafted(result) => {
                self.drafting = None;
                match result {
                    Ok(text) => cx.perform(Effect::Edit("toml", text)),
                    Err(failure) => cx.fail(failure),
                }
            }
            _ => {}
        }
    }

    fn can(&self, id: CommandId, _cx: &Context) -> Result<(), Lack> {
        match id {
            CommandId::DraftLayout if self.drafting.is_some() => Err(("a draft is being made".to_owned(), None)),
            CommandId::DraftLayout | CommandId::Open | CommandId::ShiftColumns(_) if self.current().is_none() => {
                Err(("there is no table".to_owned(), None))
            }
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        let columns = self.rows.page.columns.len();
        match id {
            CommandId::DraftLayout => self.drafting = Some(cx.ask(Request::DraftLayout)),
            CommandId::ShiftColumns(right) => {
                let by = if right { 1 } else { -1 };
                self.first_column = self.first_column.saturating_add_signed(by).min(columns.saturating_sub(1));
            }
            _ => {}
        }
    }

    fn open(&mut self, _cx: &mut Context) {
        self.in_rows = self.current().is_some();
    }

    fn close(&mut self, _cx: &mut Context) -> bool {
        std::mem::take(&mut self.in_rows)
    }

    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        if self.in_rows {
            self.row = self.row.saturating_add_signed(by).min(self.rows.page.rows.len().saturating_sub(1));
        } else {
            self.select(self.selected.saturating_add_signed(by));
        }
    }

    fn select(&mut self, position: usize) {
        let count = self.tables.value.as_ref().map_or(0, Vec::len);
        self.selected = position.min(count.saturating_sub(1));
    }

    fn has_panes(&self) -> bool {
        true
    }

    fn focus(&mut self, detail: bool) {
        self.in_rows = detail;
    }

    fn other_pane(&mut self, _cx: &Context) {
        self.in_rows = !self.in_rows;
    }

    fn release(&mut self) -> Vec<Ticket> {
        let waited = [&mut self.tables.pending, &mut self.rows.pending, &mut self.rows.counting, &mut self.drafting];
        waited.into_iter().filter_map(Option::take).collect()
    }

    fn forget(&mut self) {
        (self.tables.value, self.tables.failure) = (None, None);
        self.rows = TableRows { table: std::mem::take(&mut self.rows.table), ..TableRows::default() };
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas);
    }
}
