//! Whether the audit trail is whole: its chain is walked from the beginning and compared with the anchors that are kept,
//! as `audit verify` does. It is green, or the broken link is shown.

mod draw;
pub mod messages;

pub use messages::{TrailFault, TrailVerdict};

use crate::console::core::command::CommandId;
use crate::console::core::context::Context;
use crate::console::core::message::{RequestFailure, Ticket};
use crate::console::core::request::{Reply, Request};
use crate::console::core::screen::{Screen, ScreenFace, ScreenKind};
use crate::console::core::twin::words;
use crate::console::view::Canvas;

/// The screen.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrailScreen {
    /// Result of the last verification.
    pub verdict: Option<Box<TrailVerdict>>,
    /// Position of the selected fault.
    pub selected: usize,
    /// The trail is being walked.
    pub pending: Option<Ticket>,
    /// Entries that were read so far.
    pub walked: u64,
    /// Reason why the trail could not be walked.
    pub failure: Option<RequestFailure>,
    /// True when the verdict is out of date.
    stale: bool,
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
        let known = self.verdict.is_some() && !self.stale;
        if self.pending.is_none() && self.failure.is_none() && !known {
            self.walked = 0;
            self.pending = Some(cx.ask(Request::VerifyTrail));
        }
    }

    fn reply(&mut self, _ticket: Ticket, reply: Reply, _cx: &mut Context) {
        match reply {
            Reply::WalkingTrail(walked) => self.walked = walked,
            Reply::TrailVerified(result) => {
                (self.pending, self.stale) = (None, false);
                match result {
                    Ok(verdict) => self.verdict = Some(verdict),
                    Err(failure) => self.failure = Some(failure),
                }
                self.select(self.selected);
            }
            _ => {}
        }
    }

    fn move_by(&mut self, by: isize, _cx: &mut Context) {
        self.select(self.selected.saturating_add_signed(by));
    }

    fn select(&mut self, position: usize) {
        let faults = self.verdict.as_ref().map_or(0, |verdict| verdict.faults.len());
        self.selected = position.min(faults.saturating_sub(1));
    }

    fn release(&mut self) -> Vec<Ticket> {
        self.pending.take().into_iter().collect()
    }

    fn forget(&mut self) {
        (self.stale, self.failure) = (true, None);
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
