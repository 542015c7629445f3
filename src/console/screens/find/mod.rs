//! Full-text search over all entities: matches are listed as they are found, entity by entity, with the words
//! highlighted in context.

pub(in crate::console) mod draw;
pub mod messages;

use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Context, Destination, ListCursor, Purpose, Reply, Request, RequestFailure, RowKey, Screen,
    ScreenFace, Ticket,
};
use crate::console::view::Canvas;
use crate::memory::search::{SEARCHED, Search, SearchHit};
use crate::memory::{Entity, Row};
use messages::FoundRows;

/// Rows before the end of the list at which more are searched for.
const NEAR: usize = 20;
/// Most rows kept.
const MOST: usize = 2_000;

/// Progress of the search in one kind of row.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchedKind {
    /// The kind.
    pub entity: Entity,
    /// True when the first page was read.
    pub begun: bool,
    /// Cursor of the next page.
    next: Option<String>,
    /// Reason why this kind could not be searched.
    pub failure: Option<RequestFailure>,
}

impl SearchedKind {
    fn new(entity: Entity) -> Self {
        SearchedKind { entity, begun: false, next: None, failure: None }
    }

    /// Whether it has further pages.
    pub fn has_more(&self) -> bool {
        self.failure.is_none() && (!self.begun || self.next.is_some())
    }
}

/// The screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FindScreen {
    /// Text of the search, as typed.
    pub text: String,
    /// The same, parsed.
    pub search: Option<Search>,
    /// Rows found with their hits, in order of arrival.
    pub found: Vec<(Row, SearchHit)>,
    /// Progress of the search in each kind of row.
    pub kinds: Vec<SearchedKind>,
    /// The selected row.
    pub cursor: ListCursor,
    /// The entity being searched.
    pub pending: Option<(Ticket, Entity)>,
    /// The row that was selected before the search was repeated.
    again: Option<RowKey>,
}

impl FindScreen {
    /// Creates a search.
    pub fn of(text: &str) -> Self {
        FindScreen { text: text.to_owned(), search: Search::parse(text).ok(), ..FindScreen::default() }
    }

    /// Returns the selected row with its hit.
    pub fn current(&self) -> Option<&(Row, SearchHit)> {
        self.found.get(self.cursor.selected)
    }

    /// Whether every kind was searched to its end.
    pub fn is_done(&self) -> bool {
        !self.kinds.is_empty() && !self.kinds.iter().any(SearchedKind::has_more)
    }

    /// Whether there are more rows than those listed.
    pub fn has_more(&self) -> bool {
        self.kinds.iter().any(SearchedKind::has_more)
    }

    /// The entity to search next: the first page of each, then further pages as far as someone scrolls.
    fn next_kind(&self) -> Option<&SearchedKind> {
        let fresh = self.kinds.iter().find(|kind| !kind.begun && kind.failure.is_none());
        let near_end = self.cursor.selected + NEAR >= self.found.len() && self.found.len() < MOST;
        fresh.or_else(|| self.kinds.iter().find(|kind| near_end && kind.has_more()))
    }

    fn take(&mut self, entity: Entity, result: Result<FoundRows, RequestFailure>) {
        let Some(kind) = self.kinds.iter_mut().find(|kind| kind.entity == entity) else { return };
        kind.begun = true;
        match result {
            Ok(page) => {
                kind.next = page.next;
                self.found.extend(page.rows);
                let is_it = |(row, _): &(Row, SearchHit)| Some(RowKey::of(row)) == self.again;
                if let Some(at) = self.found.iter().position(is_it) {
                    (self.cursor.selected, self.again) = (at, None);
                }
            }
            Err(failure) => kind.failure = Some(failure),
        }
    }
}

impl Screen for FindScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace { title: "find", leads_here: CommandId::Find, scope: CommandScope::Find }
    }

    fn title(&self, _cx: &Context) -> String {
        format!("find {}", self.text)
    }

    fn hints(&self) -> Vec<CommandId> {
        vec![CommandId::Open, CommandId::FindHere, CommandId::Close, CommandId::Palette, CommandId::CopyCommand]
    }

    /// Texts are cut here.
    fn whole_row(&self) -> Option<&Row> {
        None
    }

    fn row(&self) -> Option<&Row> {
        self.current().map(|(row, _)| row)
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        words(["find", &self.text])
    }

    fn settle(&mut self, cx: &mut Context) {
        if self.kinds.is_empty() {
            self.kinds = SEARCHED.iter().filter(|e| cx.holds(**e).is_ok()).map(|e| SearchedKind::new(*e)).collect();
        }
        if let (None, Some(search), Some(kind)) = (self.pending, &self.search, self.next_kind()) {
            let request = Request::Find(Box::new(search.clone()), kind.entity, kind.next.clone());
            self.pending = Some((cx.ask(request), kind.entity));
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, _cx: &mut Context) {
        if let (Reply::Found(result), Some((_, entity))) = (reply, self.pending.take()) {
            self.take(entity, result);
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        if id == CommandId::FindHere {
            cx.prompt(Purpose::Find, &self.text);
        }
    }

    fn open(&mut self, cx: &mut Context) {
        if let Some((row, _)) = self.current() {
            cx.follow(Destination::Row(row.entity, row.id().to_owned()));
        }
    }

    fn cursor(&mut self) -> Option<(&mut ListCursor, usize)> {
        Some((&mut self.cursor, self.found.len()))
    }

    fn select(&mut self, position: usize) {
        self.cursor.select(position, self.found.len());
        self.again = None;
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.pending.take().map(|(ticket, _)| ticket).into_iter().collect()
    }

    fn forget(&mut self) {
        self.again = self.current().map(|(row, _)| RowKey::of(row)).or(self.again.take());
        self.found.clear();
        self.kinds.clear();
    }

    fn shows_past(&self) -> bool {
        true
    }

    fn awaits_jump(&self) -> bool {
        self.pending.is_some() && self.row().is_none()
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas);
    }
}
