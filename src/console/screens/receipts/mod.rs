//! The changes made here, newest first, from our own audit trail: their effects, and undoing them.

pub(in crate::console) mod draw;

use crate::change::operation::Operation;
use crate::change::plan::SHOWN;
use crate::change::plan::trail::ListedEntry;
use crate::console::core::command::hinted;
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, CommandScope, Context, Destination, Lack, ListCursor, Reply, Request, RequestFailure, Screen,
    ScreenFace, ScreenKind, Ticket,
};
use crate::console::view::Canvas;
use crate::memory::Entity;

/// Entries read at a time.
pub const ENTRIES: usize = 50;
/// Rows of an entry that name it.
const NAMED: usize = 3;

/// The list of changes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReceiptsScreen {
    /// Entries that were read, newest first.
    pub entries: Vec<ListedEntry>,
    /// The selected one.
    pub cursor: ListCursor,
    /// Whether there are older ones.
    pub more: bool,
    /// They were read.
    pub filled: bool,
    /// Whether others wrote, or it was left, since the newest entries were read.
    aged: bool,
    /// Pending request; true if its entries replace those held.
    pub pending: Option<(Ticket, bool)>,
    /// Reason why the entries could not be read.
    pub failure: Option<RequestFailure>,
}

impl ReceiptsScreen {
    /// The selected entry.
    pub fn current(&self) -> Option<&ListedEntry> {
        self.entries.get(self.cursor.selected)
    }

    /// The entry that took a change back, among those read.
    pub fn undone_by(&self, seq: i64) -> Option<i64> {
        self.entries.iter().find(|entry| entry.facts.undo_of == Some(seq)).map(|entry| entry.seq)
    }

    /// Checks that an entry can be undone.
    ///
    /// # Errors
    /// The reason.
    pub fn can_undo(&self, entry: &ListedEntry) -> Result<(), String> {
        match (&entry.facts.undo_reason, self.undone_by(entry.seq)) {
            (Some(reason), _) => Err(reason.clone()),
            (None, Some(by)) => Err(format!("it was undone by {by}")),
            (None, None) => Ok(()),
        }
    }

    fn fill(&mut self, entries: Vec<ListedEntry>, replaces: bool) {
        let selected = self.current().map(|entry| entry.seq);
        let more = entries.len() == ENTRIES && entries.last().is_some_and(|entry| entry.seq > 1);
        // Entries never change: older ones that were read before are still true.
        let older = match entries.last().filter(|_| replaces && self.filled && more) {
            Some(last) if self.entries.iter().any(|entry| entry.seq == last.seq) => {
                self.entries.iter().filter(|entry| entry.seq < last.seq).cloned().collect()
            }
            _ => Vec::new(),
        };
        if replaces {
            self.entries.clear();
        }
        if older.is_empty() {
            self.more = more;
        }
        self.entries.extend(entries.into_iter().chain(older));
        self.filled = true;
        let again = self.entries.iter().position(|entry| Some(entry.seq) == selected);
        self.cursor.stay(again, self.entries.len());
    }

    fn undo(&self, cx: &mut Context) {
        let Some(entry) = self.current() else { return };
        cx.propose(Operation::Undo { seq: entry.seq });
    }
}

/// The row that a change touched, the first of several.
fn touched(entry: &ListedEntry) -> Option<(Entity, String)> {
    entry
        .rows()
        .iter()
        .find_map(|change| Some((Entity::parse(&change.entity)?, change.id.clone())).filter(|(_, id)| !id.is_empty()))
}

impl Screen for ReceiptsScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::own("changes", ScreenKind::Receipts, CommandScope::Receipts)
    }

    fn hints(&self) -> Vec<CommandId> {
        use CommandId::{Close, Focus, Open, Palette, Refresh, ScrollDetail};
        let shared = [Focus, Close, Palette, ScrollDetail(true), Refresh];
        [Open].into_iter().chain(hinted(CommandScope::Receipts)).chain(shared).collect()
    }

    fn hint_word(&self, id: CommandId) -> Option<&'static str> {
        (id == CommandId::Open).then_some("its row")
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        words(["audit", "list"])
    }

    fn settle(&mut self, cx: &mut Context) {
        const NEAR: usize = 10;
        if let Some(entry) = self.current() {
            cx.read_names_of_changes(entry.rows().iter().take(SHOWN));
        }
        if self.pending.is_some() || self.failure.is_some() {
            return;
        }
        if !self.filled {
            self.pending = Some((cx.ask(Request::LoadTrail(None)), true));
            return;
        }
        if std::mem::take(&mut self.aged) {
            self.pending = Some((cx.renew(Request::LoadTrail(None)), true));
            return;
        }
        let near_end = self.cursor.selected + NEAR >= self.entries.len();
        let last = self.entries.last().map(|entry| entry.seq);
        if let Some(last) = last.filter(|_| self.more && near_end) {
            self.pending = Some((cx.ask(Request::LoadTrail(Some(last))), false));
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, cx: &mut Context) {
        let (Reply::Trail(result), Some((_, replaces))) = (reply, self.pending.take()) else { return };
        match result {
            Ok(entries) => {
                cx.read_names_of_changes(entries.iter().flat_map(|entry| entry.rows().iter().take(NAMED)));
                self.fill(entries, replaces);
            }
            // If rereading fails, the old entries are kept.
            Err(_) if self.filled && replaces => {}
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn others_wrote(&mut self, _cx: &mut Context) -> bool {
        self.aged = true;
        true
    }

    fn can(&self, id: CommandId, _cx: &Context) -> Result<(), Lack> {
        let entry = || self.current().ok_or_else(|| ("no change is selected".to_owned(), None));
        match id {
            CommandId::UndoEntry => self.can_undo(entry()?).map_err(|reason| (reason, None)),
            CommandId::Open if touched(entry()?).is_none() => Err(("it is not about one row".to_owned(), None)),
            _ => Ok(()),
        }
    }

    fn command(&mut self, id: CommandId, cx: &mut Context) {
        if id == CommandId::UndoEntry {
            self.undo(cx);
        }
    }

    /// Goes to the row of the selected change.
    fn open(&mut self, cx: &mut Context) {
        if let Some((entity, id)) = self.current().and_then(touched) {
            cx.follow(Destination::Row(entity, id));
        }
    }

    fn cursor(&mut self) -> Option<(&mut ListCursor, usize)> {
        Some((&mut self.cursor, self.entries.len()))
    }

    /// The past begins before the selected change.
    fn moment(&self) -> Option<String> {
        self.current().map(|entry| (entry.seq - 1).to_string())
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.pending.take().map(|(ticket, _)| ticket).into_iter().collect()
    }

    fn forget(&mut self) {
        (self.filled, self.aged) = (false, false);
        self.failure = None;
    }

    fn awaits_jump(&self) -> bool {
        self.pending.is_some() && self.current().is_none()
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
