//! Preview of how a planned change would affect recall, computed in the background.

use super::context::Context;
use super::message::{RequestFailure, Ticket};
use super::request::{Reply, Request};
use crate::recall::what_if::WhatIf;

/// A preview of recall.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallAhead {
    /// Number of the plan.
    planned: Ticket,
    /// Pending request of the preview.
    pub waiting: Option<Ticket>,
    /// Number of situations computed so far.
    pub so_far: usize,
    /// Whether it may take its time, at the user's request.
    pub patient: bool,
    /// Result of the preview.
    pub found: Option<Box<WhatIf>>,
    /// Reason why there is no result.
    pub failure: Option<RequestFailure>,
}

impl RecallAhead {
    /// Whether a longer computation could tell more.
    pub fn could_tell_more(&self) -> bool {
        let stopped = self.found.as_ref().is_some_and(|found| found.stopped);
        self.waiting.is_none() && (self.failure.is_some() || stopped && !self.patient || self.found.is_none())
    }

    /// Begins the preview for the plan of this number.
    pub fn begin(planned: Ticket, patient: bool, cx: &mut Context) -> RecallAhead {
        let waiting = Some(cx.ask(Request::WhatIf { planned, patient }));
        RecallAhead { planned, waiting, so_far: 0, patient, found: None, failure: None }
    }

    /// Computes longer, if that could tell more.
    pub fn look_longer(&mut self, cx: &mut Context) {
        if self.could_tell_more() {
            *self = RecallAhead::begin(self.planned, true, cx);
        }
    }

    /// Takes a reply, if it is the awaited one. If the first preview found nothing out, a longer one follows.
    pub fn take(&mut self, ticket: Ticket, reply: Reply, cx: &mut Context) {
        match reply {
            _ if self.waiting != Some(ticket) => {}
            Reply::LookingAhead(situations) => self.so_far = situations,
            Reply::LookedAhead(result) => {
                self.waiting = None;
                match result {
                    Ok(found) if found.situations == 0 && found.stopped && !self.patient => {
                        *self = RecallAhead::begin(self.planned, true, cx);
                    }
                    Ok(found) => self.found = Some(found),
                    Err(failure) => self.failure = Some(failure),
                }
            }
            _ => {}
        }
    }
}
