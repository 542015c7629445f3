//! Look ahead at how recall would change by what waits for a yes: requested in the background, never waited for.

use super::context::Context;
use super::message::{RequestFailure, Ticket};
use super::request::{Reply, Request};
use crate::recall::what_if::WhatIf;

/// A look ahead at recall.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallAhead {
    /// Number under which the change was planned.
    planned: Ticket,
    /// Pending request of the look ahead.
    pub waiting: Option<Ticket>,
    /// Situations that were asked so far.
    pub so_far: usize,
    /// True when the look may take its time, because the user asked for that.
    pub patient: bool,
    /// Result of the look.
    pub found: Option<Box<WhatIf>>,
    /// Reason why there is no result.
    pub failure: Option<RequestFailure>,
}

impl RecallAhead {
    /// Whether a longer look could tell more.
    #[must_use]
    pub fn could_tell_more(&self) -> bool {
        let stopped = self.found.as_ref().is_some_and(|found| found.stopped);
        self.waiting.is_none() && (self.failure.is_some() || stopped && !self.patient || self.found.is_none())
    }

    /// Looks ahead, for what was planned under that number.
    pub fn begin(planned: Ticket, patient: bool, cx: &mut Context) -> RecallAhead {
        let waiting = Some(cx.ask(Request::WhatIf { planned, patient }));
        RecallAhead { planned, waiting, so_far: 0, patient, found: None, failure: None }
    }

    /// Looks longer, where that could tell more.
    pub fn look_longer(&mut self, cx: &mut Context) {
        if self.could_tell_more() {
            *self = RecallAhead::begin(self.planned, true, cx);
        }
    }

    /// Takes a reply, if it is the one that is waited for. A first look that could tell nothing becomes a longer one.
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
