//! Router of replies: each goes only to its asker.

use std::collections::BTreeMap;

use super::ticket::Ticket;

/// Sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asker {
    /// The core itself.
    #[default]
    Core,
    /// The screen at the place with this number.
    Screen(u64),
    /// The layer of this number.
    Layer(u64),
}

/// The pending requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Router {
    waiting: BTreeMap<Ticket, Asker>,
}

impl Router {
    /// Registers who waits for a reply; the first asker of a ticket keeps it.
    pub fn expect(&mut self, ticket: Ticket, asker: Asker) {
        self.waiting.entry(ticket).or_insert(asker);
    }

    /// Drops a pending request.
    pub fn forget(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
    }

    /// Finds the asker of a reply, and drops it after the last reply.
    pub fn asker(&mut self, ticket: Ticket, is_last: bool) -> Option<Asker> {
        if is_last { self.waiting.remove(&ticket) } else { self.waiting.get(&ticket).copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_goes_to_whoever_asked_until_the_last_one() {
        let mut router = Router::default();
        router.expect(Ticket(1), Asker::Screen(7));
        router.expect(Ticket(1), Asker::Core);
        assert_eq!(router.asker(Ticket(1), false), Some(Asker::Screen(7)));
        assert_eq!(router.asker(Ticket(1), true), Some(Asker::Screen(7)));
        assert_eq!(router.asker(Ticket(1), true), None, "nobody waits for more");
        router.expect(Ticket(2), Asker::Core);
        router.forget(Ticket(2));
        assert_eq!(router.asker(Ticket(2), true), None);
    }
}
