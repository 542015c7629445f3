//! A value that is read as a whole and read again when it is out of date.

use super::ticket::{RequestFailure, Ticket};

/// A value once read, its pending request, and the reason why it could not be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched<T> {
    /// Value that was read last.
    pub value: Option<T>,
    /// Pending request for it.
    pub pending: Option<Ticket>,
    /// Reason why it could not be read.
    pub failure: Option<RequestFailure>,
    /// True when the value is out of date.
    pub stale: bool,
}

impl<T> Default for Fetched<T> {
    fn default() -> Self {
        Fetched { value: None, pending: None, failure: None, stale: false }
    }
}

impl<T> Fetched<T> {
    /// Whether it is read and up to date.
    pub fn is_known(&self) -> bool {
        self.value.is_some() && !self.stale
    }

    /// Whether it must be requested.
    pub fn is_wanted(&self) -> bool {
        !self.is_known() && self.pending.is_none() && self.failure.is_none()
    }

    /// Takes the reply. After a failure the old value is kept.
    pub fn take(&mut self, result: Result<T, RequestFailure>) {
        self.pending = None;
        match result {
            Ok(value) => (self.value, self.stale) = (Some(value), false),
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// Gives up the pending request and returns it.
    pub fn release(&mut self) -> Vec<Ticket> {
        self.pending.take().into_iter().collect()
    }

    /// Marks the value as out of date: it is kept until it has been read again.
    pub fn forget(&mut self) {
        (self.stale, self.failure) = (true, None);
    }
}
