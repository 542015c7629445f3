//! Whether the audit trail is whole: its chain is walked from the start and compared with the stored anchors, as `audit
//! verify` does. The screen is green, or shows the broken link.

mod draw;

use crate::change::plan::trail::AuditVerdict;
use crate::console::core::twin::words;
use crate::console::core::{
    CommandId, Context, Fetched, ListCursor, Reply, Request, Screen, ScreenFace, ScreenKind, Ticket,
};
use crate::console::view::Canvas;

/// The screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrailScreen {
    /// Verdict on the trail.
    pub verdict: Fetched<Box<AuditVerdict>>,
    /// The selected fault.
    pub cursor: ListCursor,
    /// Entries that were read so far.
    pub walked: u64,
}

impl Screen for TrailScreen {
    fn face(&self) -> ScreenFace {
        ScreenFace::shared("audit trail", CommandId::Panel(ScreenKind::Trail))
    }

    fn hints(&self) -> Vec<CommandId> {
        vec![CommandId::Refresh, CommandId::CopyCommand, CommandId::Close, CommandId::Palette]
    }

    fn twin(&self, _cx: &Context) -> Vec<String> {
        words(["audit", "verify"])
    }

    fn settle(&mut self, cx: &mut Context) {
        if self.verdict.is_wanted() {
            self.walked = 0;
            self.verdict.pending = Some(cx.ask(Request::VerifyTrail));
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, _cx: &mut Context) {
        match reply {
            Reply::WalkingTrail(walked) => self.walked = walked,
            Reply::TrailVerified(result) => {
                self.verdict.take(result);
                self.select(self.cursor.selected);
            }
            _ => {}
        }
    }

    fn cursor(&mut self) -> Option<(&mut ListCursor, usize)> {
        let entries = self.verdict.value.as_ref().map_or(0, |verdict| verdict.faults.len());
        Some((&mut self.cursor, entries))
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.verdict.release()
    }

    fn forget(&mut self) {
        self.verdict.forget();
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
