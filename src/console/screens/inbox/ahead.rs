//! Preview of a verdict: its plan and how recall would change, computed while the cursor rests on a row. Nothing is
//! written, and a locked session may look too.

use super::InboxVerdict;
use crate::change::operation::Operation;
use crate::change::plan::{Plan, SHOWN};
use crate::console::core::change::Refusal;
use crate::console::core::context::Context;
use crate::console::core::message::Ticket;
use crate::console::core::request::{Reply, Request};
use crate::console::core::what_if::RecallAhead;

/// Milliseconds that the cursor rests before a verdict is looked at: who runs through the list has nothing planned.
const REST: u64 = 150;

/// Preview of one verdict on one row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VerdictAhead {
    /// The row and the verdict on it.
    about: Option<(String, InboxVerdict)>,
    /// Operation of the verdict; `None` when it changes nothing in the database.
    operation: Option<Operation>,
    /// The cursor has not rested long enough.
    resting: Option<Ticket>,
    /// Number of the request for the plan, which is kept outside under it.
    planned: Option<Ticket>,
    /// Plan of the verdict, or why there is none and what would help.
    pub plan: Option<Result<Box<Plan>, Vec<String>>>,
    /// Change that the verdict would make to recall.
    pub recall: Option<RecallAhead>,
}

impl VerdictAhead {
    /// Looks at a verdict on a row, unless that was done. `operation` is what it does.
    pub(super) fn look_at(
        &mut self,
        row: &str,
        verdict: InboxVerdict,
        operation: impl FnOnce() -> Option<Operation>,
        cx: &mut Context,
    ) {
        if self.about.as_ref().is_some_and(|(known, of)| known == row && *of == verdict) {
            return;
        }
        let waited = self.release();
        cx.cancel(waited);
        let operation = operation();
        let resting = operation.is_some().then(|| cx.wait(REST));
        *self = VerdictAhead { about: Some((row.to_owned(), verdict)), operation, resting, ..VerdictAhead::default() };
    }

    /// The cursor has rested: the verdict is planned.
    pub(super) fn rested(&mut self, ticket: Ticket, cx: &mut Context) {
        if self.resting.take_if(|resting| *resting == ticket).is_some()
            && let Some(operation) = self.operation.clone()
        {
            self.planned = Some(cx.ask(Request::PlanAhead(Box::new(operation))));
        }
    }

    /// Takes a reply, if it is one that is waited for.
    pub(super) fn take(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            Reply::Planned(result) if self.planned == Some(ticket) => {
                if let Ok(plan) = &result {
                    cx.read_names_of_changes(plan.changes.iter().take(SHOWN));
                    self.recall = Some(RecallAhead::begin(ticket, false, cx));
                }
                self.plan = Some(result.map_err(|refusal| match refusal {
                    Refusal::Failed(failure) => [Some(failure.message), failure.remedy].into_iter().flatten().collect(),
                    Refusal::Conflict { message, .. } => vec![message],
                }));
            }
            reply => {
                if let Some(recall) = &mut self.recall {
                    recall.take(ticket, reply, cx);
                }
            }
        }
    }

    /// Distrusts the preview after a change, so that it is computed again.
    pub(super) fn doubt(&mut self) {
        self.about = None;
    }

    /// Looks longer at recall, where that could tell more.
    pub(super) fn look_longer(&mut self, cx: &mut Context) {
        if let Some(recall) = &mut self.recall {
            recall.look_longer(cx);
        }
    }

    /// Whether something is still being found out.
    pub(in crate::console) fn is_waiting(&self) -> bool {
        self.resting.is_some() || (self.planned.is_some() && self.plan.is_none())
    }

    /// Every request that is waited for, and the plan that is kept. What was found is forgotten.
    pub(super) fn release(&mut self) -> Vec<Ticket> {
        let old = std::mem::take(self);
        let recall = old.recall.and_then(|recall| recall.waiting);
        [old.resting, old.planned, recall].into_iter().flatten().collect()
    }
}
