//! A value that a screen reads as a whole, shows, and reads again when it is out of date.

use super::ticket::{RequestFailure, Ticket};

/// A value as far as it was read, the request for it, and the reason why it could not be read.
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
    /// Whether it was read, and is not out of date.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.value.is_some() && !self.stale
    }

    /// Whether it has to be asked for.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        !self.is_known() && self.pending.is_none() && self.failure.is_none()
    }

    /// Takes the reply. The value stays where it cannot be read again.
    pub fn take(&mut self, result: Result<T, RequestFailure>) {
        self.pending = None;
        match result {
            Ok(value) => (self.value, self.stale) = (Some(value), false),
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// Gives the request up, and returns it.
    pub fn release(&mut self) -> Vec<Ticket> {
        self.pending.take().into_iter().collect()
    }

    /// Marks the value as out of date: it stays until it was read again.
    pub fn forget(&mut self) {
        (self.stale, self.failure) = (true, None);
    }
}
