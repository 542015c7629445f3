//! Look ahead at how recall would change by what waits for a yes: requested in the background, never waited for.

use super::context::Context;
use super::message::{RequestFailure, Ticket};
use super::request::{Reply, Request};
use crate::recall::what_if::WhatIf;

/// A look ahead at recall.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecallAhead {
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
        RecallAhead { waiting, patient, ..RecallAhead::default() }
    }

    /// Looks longer, where that could tell more.
    pub fn look_longer(&mut self, planned: Ticket, cx: &mut Context) {
        if self.could_tell_more() {
            *self = RecallAhead::begin(planned, true, cx);
        }
    }

    /// Takes a reply, if it is the one that is waited for.
    pub fn take(&mut self, ticket: Ticket, reply: Reply) {
        match reply {
            _ if self.waiting != Some(ticket) => {}
            Reply::LookingAhead(situations) => self.so_far = situations,
            Reply::LookedAhead(result) => {
                self.waiting = None;
                match result {
                    Ok(found) => self.found = Some(found),
                    Err(failure) => self.failure = Some(failure),
                }
            }
            _ => {}
        }
    }
}
