//! Preview of a verdict: its plan and its effect on recall, computed while the cursor rests on a row. Nothing is
//! written, so this works in a locked session too.

use super::InboxVerdict;
use crate::change::operation::Operation;
use crate::change::plan::{Plan, SHOWN};
use crate::console::core::{Context, RecallAhead, Refusal, Reply, Request, Ticket};

/// Milliseconds that the cursor rests before a verdict is previewed, so that scrolling plans nothing.
const REST: u64 = 150;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct VerdictAhead {
    /// The row and the verdict on it.
    about: Option<(String, InboxVerdict)>,
    /// Operation of the verdict; `None` if it changes nothing in the database.
    operation: Option<Operation>,
    /// Pending timer until the cursor has rested.
    resting: Option<Ticket>,
    /// Number of the request for the plan, which is kept outside under it.
    planned: Option<Ticket>,
    /// Plan of the verdict, or the reason why there is none, with a remedy.
    pub plan: Option<Result<Box<Plan>, Vec<String>>>,
    /// Change that the verdict would make to recall.
    pub recall: Option<RecallAhead>,
}

impl VerdictAhead {
    /// Previews a verdict on a row, unless done. `operation` is its operation.
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

    /// Handles that the cursor has rested: the verdict is planned.
    pub(super) fn rested(&mut self, ticket: Ticket, cx: &mut Context) {
        if self.resting.take_if(|resting| *resting == ticket).is_some()
            && let Some(operation) = self.operation.clone()
        {
            self.planned = Some(cx.ask(Request::PlanAhead(Box::new(operation))));
        }
    }

    /// Takes a reply, if it is an awaited one.
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

    /// Marks the preview as out of date, so that it is computed again.
    pub(super) fn doubt(&mut self) {
        self.about = None;
    }

    /// Previews recall for longer, if that could tell more.
    pub(super) fn look_longer(&mut self, cx: &mut Context) {
        if let Some(recall) = &mut self.recall {
            recall.look_longer(cx);
        }
    }

    /// Whether something is still being found out.
    pub(in crate::console) fn is_waiting(&self) -> bool {
        self.resting.is_some() || (self.planned.is_some() && self.plan.is_none())
    }

    /// Returns all pending requests and the plan, and drops the result.
    pub(super) fn release(&mut self) -> Vec<Ticket> {
        let old = std::mem::take(self);
        let recall = old.recall.and_then(|recall| recall.waiting);
        [old.resting, old.planned, recall].into_iter().flatten().collect()
    }
}
