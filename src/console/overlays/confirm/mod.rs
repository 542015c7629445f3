//! A plan that waits for a yes: what it would do, what else comes of it, and how it is confirmed.

pub(in crate::console) mod draw;

use crate::change::plan::Plan;
use crate::console::core::context::{ConfirmedPlan, Context, LayerOpening, ScreenAction, ToastTone};
use crate::console::core::gate::{ConfirmGate, GatePassage};
use crate::console::core::key::{Code, Key};
use crate::console::core::layer::{Layer, LayerStep, scroll_key, scrolled};
use crate::console::core::menu::Purpose;
use crate::console::core::message::{Effect, Ticket};
use crate::console::core::proposal::Proposal;
use crate::console::core::request::Reply;
use crate::console::core::twin::change_line;
use crate::console::core::what_if::RecallAhead;
use crate::console::view::Canvas;
use crate::console::view::what_if::LONGER;

/// A plan that waits for a yes.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmation {
    /// Proposed change.
    pub proposal: Proposal,
    /// Plan of the change, with personal values masked when masking is on. The plan that is applied is kept outside,
    /// under [`Confirmation::ticket`].
    pub plan: Plan,
    /// Number of the request that made the plan.
    pub ticket: Ticket,
    /// Gate that confirms the change.
    pub gate: ConfirmGate,
    /// First line shown.
    pub scroll: usize,
    /// Reason for the change, for the audit trail.
    pub reason: String,
    /// `y` was pressed: `c` copies.
    pub copying: bool,
    /// Expected changes of recall; `None` when recall cannot change.
    pub ahead: Option<RecallAhead>,
}

impl Confirmation {
    fn look_longer(&mut self, cx: &mut Context) {
        if let Some(ahead) = &mut self.ahead {
            ahead.look_longer(cx);
        }
    }

    /// Nobody waits for the look at recall any more.
    fn stop_looking(&mut self, cx: &mut Context) {
        cx.cancel(self.ahead.as_mut().and_then(|ahead| ahead.waiting.take()));
    }

    fn confirmed(&mut self, cx: &mut Context) {
        self.stop_looking(cx);
        let reason = Some(self.reason.trim().to_owned()).filter(|reason| !reason.is_empty());
        let (proposal, changes) = (self.proposal.clone(), std::mem::take(&mut self.plan.changes));
        cx.act(ScreenAction::Apply(Box::new(ConfirmedPlan { proposal, planned: self.ticket, changes, reason })));
    }

    /// Handles a key that neither opens nor closes the gate.
    fn other_key(&mut self, key: Key, cx: &mut Context) {
        match key.code {
            Code::Char('y') => self.copying = true,
            Code::Char('r') if !key.ctrl => {
                cx.show(LayerOpening::Prompt(Purpose::Reason, String::new(), self.reason.clone()));
            }
            _ => self.scroll_by(scroll_key(key, cx).unwrap_or_default(), cx),
        }
    }
}

impl Layer for Confirmation {
    fn opened(&mut self, cx: &mut Context) {
        if self.proposal.touches_recall() {
            self.ahead = Some(RecallAhead::begin(self.ticket, false, cx));
        }
    }

    fn key(&mut self, key: Key, cx: &mut Context) -> LayerStep {
        let copies = std::mem::take(&mut self.copying) && key.code == Code::Char('c');
        let control = |letter| key.ctrl && key.code == Code::Char(letter);
        if copies || control('y') {
            let line = change_line(cx, &self.proposal, Some(self.reason.as_str()));
            cx.perform(Effect::Copy("command".to_owned(), line));
            return LayerStep::Stays;
        }
        if key.code == Code::Char(LONGER) && !self.gate.expects(LONGER) {
            self.look_longer(cx);
            return LayerStep::Stays;
        }
        match self.gate.press_in_time(key, cx) {
            GatePassage::Open => self.confirmed(cx),
            GatePassage::Closed => {
                self.stop_looking(cx);
                cx.act(ScreenAction::Abandon(self.ticket));
                cx.say(ToastTone::Info, "nothing was changed");
            }
            GatePassage::Taken => return LayerStep::Stays,
            GatePassage::Other => {
                self.other_key(key, cx);
                return LayerStep::Stays;
            }
        }
        LayerStep::Closes
    }

    fn scroll_by(&mut self, by: isize, cx: &Context) {
        self.scroll = scrolled(self.scroll, by, cx);
    }

    fn gate(&self) -> Option<&ConfirmGate> {
        Some(&self.gate)
    }

    fn gate_mut(&mut self) -> Option<&mut ConfirmGate> {
        Some(&mut self.gate)
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        if let Some(ahead) = &mut self.ahead {
            ahead.take(ticket, reply, cx);
        }
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
