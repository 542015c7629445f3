//! Two rows of an entity side by side: their differences, their texts word by word, their dependent rows, and their
//! chains.

pub(in crate::console) mod draw;

use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Content, Context, Destination, LayerOpening, Menu, MenuChoice, MenuItem, Reply, Request,
    RequestFailure, RowKey, Screen, ScreenFace, Ticket, row_name,
};
use crate::console::view::Canvas;
use crate::memory::compare::{FieldPair, compare};
use crate::memory::{Entity, Row};

/// One of the two rows.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedRow {
    /// Id of the row.
    pub id: String,
    /// Row with everything attached to it; `None` until read.
    pub content: Option<Content>,
    /// Pending request for the row.
    pending: Option<Ticket>,
    /// Whether the row does not exist.
    pub gone: bool,
}

impl ComparedRow {
    fn new(id: &str) -> Self {
        ComparedRow { id: id.to_owned(), content: None, pending: None, gone: false }
    }

    /// The row; `None` until read.
    pub fn row(&self) -> Option<&Row> {
        self.content.as_ref().map(Content::row)
    }
}

/// The screen.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareScreen {
    /// Entity of both rows.
    pub entity: Entity,
    /// The two, the earlier one first until they are exchanged.
    pub rows: [ComparedRow; 2],
    /// True when the user chose the order.
    exchanged: bool,
    /// Columns with the difference of both sides; empty until both are read.
    pub fields: Vec<FieldPair>,
    /// Lines that lie above.
    pub scroll: usize,
    /// Reason why the rows could not be read.
    pub failure: Option<RequestFailure>,
}

impl CompareScreen {
    /// Creates a comparison of two rows.
    pub fn of(entity: Entity, ids: &[String; 2]) -> Self {
        CompareScreen {
            entity,
            rows: ids.each_ref().map(|id| ComparedRow::new(id)),
            exchanged: false,
            fields: Vec::new(),
            scroll: 0,
            failure: None,
        }
    }

    /// Both rows; `None` until both are read.
    pub fn both(&self) -> Option<[&Content; 2]> {
        let [first, second] = &self.rows;
        Some([first.content.as_ref()?, second.content.as_ref()?])
    }

    fn compare(&mut self) {
        let time = self.entity.time_column();
        let at = |row: &ComparedRow| row.row().and_then(|row| row.text(time)).map(str::to_owned);
        let (first, second) = (at(&self.rows[0]), at(&self.rows[1]));
        if !self.exchanged && first.is_some() && second.is_some() && first > second {
            self.rows.swap(0, 1);
        }
        if let [Some(first), Some(second)] = self.rows.each_ref().map(ComparedRow::row) {
            self.fields = compare(first, second);
        }
    }
}

impl Screen for CompareScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace { title: "compare", leads_here: CommandId::Compare, scope: CommandScope::Compare }
    }

    fn title(&self, _cx: &Context) -> String {
        format!("two {} compared", self.entity.plural())
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        words(["compare", self.entity.name(), &self.rows[0].id, &self.rows[1].id])
    }

    fn settle(&mut self, cx: &mut Context) {
        if self.failure.is_some() {
            return;
        }
        for row in self.rows.iter_mut().filter(|row| row.content.is_none() && row.pending.is_none() && !row.gone) {
            row.pending = Some(cx.ask(Request::LoadDetail(self.entity, RowKey::of_id(&row.id))));
        }
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        let (Reply::Detail(result), Some(row)) = (reply, self.rows.iter_mut().find(|row| row.pending == Some(ticket)))
        else {
            return;
        };
        row.pending = None;
        match result {
            Ok(Some(content)) => row.content = Some(content),
            Ok(None) => row.gone = true,
            Err(failure) => self.failure = Some(failure),
        }
        cx.read_names(self.rows.iter().filter_map(ComparedRow::row));
        self.compare();
    }

    fn command(&mut self, id: CommandId, _cx: &mut Context) {
        if id == CommandId::Exchange {
            self.rows.swap(0, 1);
            self.exchanged = true;
            self.compare();
        }
    }

    /// Offers both rows.
    fn open(&mut self, cx: &mut Context) {
        let item = |row: &ComparedRow| MenuItem {
            label: row.row().map_or_else(|| row.id.clone(), row_name),
            note: row.id.clone(),
            keys: String::new(),
            choice: MenuChoice::Go(Destination::Row(self.entity, row.id.clone())),
            unavailable: None,
        };
        cx.show(LayerOpening::Menu(Menu::new("Open", self.rows.iter().map(item).collect())));
    }

    fn move_by(&mut self, by: isize, cx: &mut Context) {
        self.scroll = self.scroll.saturating_add_signed(by).min(cx.last_line());
    }

    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        self.move_by(by, cx);
    }

    fn page(&self, cx: &Context) -> usize {
        cx.measures.detail_rows
    }

    fn drawn(&mut self, cx: &Context) {
        self.scroll = self.scroll.min(cx.last_line());
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.rows.iter_mut().filter_map(|row| row.pending.take()).collect()
    }

    fn forget(&mut self) {
        for row in &mut self.rows {
            (row.content, row.gone) = (None, false);
        }
        self.failure = None;
    }

    fn shows_past(&self) -> bool {
        true
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(self, cx, canvas);
    }
}
