//! A plan that waits for confirmation: its changes, other effects, and the way to confirm it.

pub(in crate::console) mod draw;

use std::collections::{BTreeMap, BTreeSet};

use crate::change::plan::Plan;
use crate::console::core::context::ConfirmedPlan;
use crate::console::core::layer::{scroll_key, scrolled};
use crate::console::core::twin::change_line;
use crate::console::core::{
    Code, ConfirmGate, Context, Effect, GatePassage, Key, Layer, LayerOpening, LayerStep, Proposal, Purpose,
    RecallAhead, Related, Relation, Renewal, Reply, Request, RequestFailure, ScreenAction, Ticket, ToastTone,
};
use crate::console::view::Canvas;
use crate::console::view::what_if::LONGER;
use crate::memory::{Entity, agreeing};

/// Most rows of a plan that are checked for still existing.
const LOOKED_AT: usize = 500;

/// A plan that waits for a yes.
#[derive(Debug, Clone, PartialEq)]
pub struct Confirmation {
    /// Proposed change.
    pub proposal: Proposal,
    /// Plan of the change, masked if masking is on. The plan to apply is kept outside, under [`Confirmation::ticket`].
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
    /// Expected changes of recall; `None` if recall cannot change.
    pub ahead: Option<RecallAhead>,
    /// Check after writes by others whether the changed rows still exist.
    rows: Renewal,
}

impl Confirmation {
    /// A plan that waits at a gate, with the reason that was given so far.
    pub fn of(proposal: Proposal, plan: Plan, ticket: Ticket, gate: ConfirmGate, reason: String) -> Self {
        let (ahead, rows) = (None, Renewal::default());
        Confirmation { proposal, plan, ticket, gate, scroll: 0, reason, copying: false, ahead, rows }
    }

    /// The existing rows that the changes concern, by entity. A backfill finds its rows only when it runs.
    fn rows_found(&self) -> Vec<(String, Relation)> {
        let mut found: BTreeMap<Entity, BTreeSet<String>> = BTreeMap::new();
        let changes = if self.proposal.changes().is_empty() { &[][..] } else { &self.plan.changes };
        for change in changes.iter().filter(|change| !change.before.is_null()).take(LOOKED_AT) {
            if let Some(entity) = Entity::parse(&change.entity).filter(|entity| entity.column("id").is_some()) {
                found.entry(entity).or_default().insert(change.id.clone());
            }
        }
        let ids = |(entity, ids): (Entity, BTreeSet<String>)| Relation::Ids(entity, ids.into_iter().collect());
        found.into_iter().map(|found| (found.0.title(), ids(found))).collect()
    }

    /// Shuts the gate if rows to be changed are gone.
    fn take_rows(&mut self, found: Result<Vec<Related>, RequestFailure>, cx: &mut Context) {
        let groups = found.unwrap_or_default();
        let gone: Vec<(&str, &String)> =
            groups.iter().flat_map(|group| group.dangling.iter().map(|id| (group.title.as_str(), id))).collect();
        self.gate.shut = match &gone[..] {
            [] => None,
            [(title, id)] if !cx.masking.is_on() => {
                Some(format!("{title} {id} is gone: this cannot be applied any more"))
            }
            more => {
                let rows = agreeing(more.len() as u64, "{#} {row of this plan is|rows of this plan are} gone");
                Some(format!("{rows}: it cannot be applied any more"))
            }
        };
        if self.rows.is_due() {
            self.others_wrote(cx);
        }
    }

    fn look_longer(&mut self, cx: &mut Context) {
        if let Some(ahead) = &mut self.ahead {
            ahead.look_longer(cx);
        }
    }

    /// Cancels the preview of recall and the check of rows.
    fn stop_looking(&mut self, cx: &mut Context) {
        let ahead = self.ahead.as_mut().and_then(|ahead| ahead.waiting.take());
        cx.cancel(ahead.into_iter().chain(self.rows.release()));
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
            // With ctrl if a word is to be typed.
            Code::Char('r') => cx.show(LayerOpening::Prompt(Purpose::Reason, String::new(), self.reason.clone())),
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

    fn others_wrote(&mut self, cx: &mut Context) {
        let rows = self.rows_found();
        if !rows.is_empty() && self.rows.is_wanted() {
            let ticket = cx.renew(Request::LoadRelated(rows));
            self.rows.begin(ticket);
        }
    }

    fn reply(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match (reply, &mut self.ahead) {
            (Reply::Related(found), _) => {
                if self.rows.end(ticket) {
                    self.take_rows(found, cx);
                }
            }
            (reply, Some(ahead)) => ahead.take(ticket, reply, cx),
            (_, None) => {}
        }
    }

    fn draw(&self, cx: &Context, canvas: &mut Canvas<'_>) {
        draw::draw(cx, self, canvas.look, canvas.area, canvas.buf, canvas.drawn);
    }
}
