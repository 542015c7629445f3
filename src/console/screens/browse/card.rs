//! One row on the whole screen.

use super::detail::{Detail, DetailTab, tabs};
use super::{draw, follow};
use crate::console::core::command::ChainStep;
use crate::console::core::{
    CommandId, Context, Lack, LiveTail, Purpose, Reply, Request, RowKey, Screen, ScreenFace, Ticket,
};
use crate::console::view::Canvas;
use crate::memory::kept::KeptPlace;
use crate::memory::query::Query;
use crate::memory::{Entity, Row};

/// One row with everything about it.
#[derive(Debug, Clone, PartialEq)]
pub struct CardScreen {
    /// Details of the row on the card.
    pub detail: Detail,
    /// Watch of the database while the card is shown.
    live: LiveTail,
}

impl CardScreen {
    /// Creates the card of a row by its id.
    pub fn of(entity: Entity, id: &str) -> Self {
        CardScreen { detail: Detail { key: Some(RowKey::of_id(id)), ..Detail::new(entity) }, live: LiveTail::default() }
    }
}

impl Screen for CardScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::shared("", CommandId::List(self.detail.entity))
    }

    fn title(&self, cx: &Context) -> String {
        let name = self.row().map_or_else(|| self.detail.id().to_owned(), |row| cx.names.of_row(row));
        format!("{} {name}", self.detail.entity.title())
    }

    fn hints(&self) -> Vec<CommandId> {
        use CommandId::{Close, CopyId, Follow, Open, Palette, Relative, TabRight};
        if self.detail.current_tab() == DetailTab::Story {
            return vec![
                Open,
                TabRight,
                Relative(ChainStep::Parent),
                Relative(ChainStep::Children),
                Follow,
                Close,
                Palette,
            ];
        }
        vec![TabRight, Follow, Close, Palette, CopyId]
    }

    fn row(&self) -> Option<&Row> {
        self.detail.row()
    }

    fn selected(&self) -> Option<(Entity, &str)> {
        Some((self.detail.entity, self.detail.id()))
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        self.detail.twin()
    }

    fn settle(&mut self, cx: &mut Context) {
        if self.is_reading() && self.detail.pending.is_none() {
            self.detail.ask(None, cx);
        }
        self.detail.settle_whereabouts(cx);
        if self.live.watching.is_none() {
            let query = LiveTail::query(Query { limit: 1, ..Query::new(self.detail.entity) });
            self.live.watching = Some(cx.ask(Request::Watch(Box::new(query))));
        }
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::News(_) => self.detail.renew(cx),
            other => {
                self.detail.take(ticket, other, cx);
                self.live.awaits(self.detail.failure.as_ref(), cx);
            }
        }
    }

    fn can(&self, id: CommandId, _cx: &Context) -> Result<(), Lack> {
        match id {
            CommandId::Relative(_) if self.detail.entity != Entity::Episode => {
                Err(("only where an episode is shown".to_owned(), None))
            }
            CommandId::Follow if self.detail.row().is_none() => Err(("no row is loaded".to_owned(), None)),
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        match id {
            CommandId::Follow => follow::offer(&self.detail, cx),
            CommandId::Seek(onward) => self.detail.seek(onward, cx),
            CommandId::Relative(step) => self.detail.relative(step, cx),
            _ => {}
        }
    }

    fn open(&mut self, cx: &mut Context) {
        self.detail.open(cx);
    }

    fn move_by(&mut self, by: isize, cx: &mut Context) {
        self.detail.move_by(by, cx);
    }

    fn scroll_by(&mut self, by: isize, cx: &mut Context) {
        self.detail.scroll_by(by, cx);
    }

    fn go_to_moment(&mut self, moment: usize) {
        self.detail.to(moment);
    }

    fn close(&mut self, _cx: &mut Context) -> bool {
        self.detail.end_seeking()
    }

    fn written(&mut self, purpose: Purpose, text: &str, cx: &mut Context) {
        if purpose == Purpose::Within {
            self.detail.seek_words(text, cx);
        }
    }

    fn page(&self, cx: &Context) -> usize {
        cx.measures.detail_rows
    }

    fn turn_tab(&mut self, by: isize) {
        self.detail.turn(by);
    }

    fn show_tab(&mut self, tab: usize) {
        self.detail.show_tab(tab);
    }

    fn has_details(&self) -> bool {
        true
    }

    fn has_tab(&self, title: &str) -> bool {
        tabs(self.detail.entity).iter().any(|tab| tab.title() == title)
    }

    fn show_named_tab(&mut self, title: &str) -> bool {
        self.detail.show_named_tab(title)
    }

    fn kept(&self) -> Option<KeptPlace> {
        let (entity, id) = (Some(self.detail.entity), Some(self.detail.id().to_owned()));
        Some(KeptPlace { entity, id, ..KeptPlace::default() })
    }

    fn whole_row(&self) -> Option<&Row> {
        self.detail.row()
    }

    fn context_rows(&self, entity: Entity) -> &[Row] {
        self.detail.context_rows(entity)
    }

    fn drawn(&mut self, cx: &Context) {
        self.detail.drawn(cx);
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.detail.release().chain(self.live.release()).collect()
    }

    fn forget(&mut self) {
        self.detail.forget();
    }

    /// Reads the row again; the old one is shown until then.
    fn refresh(&mut self, cx: &mut Context) {
        self.detail.ask(None, cx);
    }

    fn is_reading(&self) -> bool {
        self.detail.content.is_none() && !self.detail.gone && self.detail.failure.is_none()
    }

    fn shows_past(&self) -> bool {
        true
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::details::draw(&self.detail, true, false, cx, canvas);
    }
}
