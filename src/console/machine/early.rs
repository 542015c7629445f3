//! Order of keys and rows. Keys typed before the rows they concern have arrived wait for them. Rows that arrive during
//! a key sequence or an open menu wait for its end. So a command never applies to a row that was not shown when it was
//! begun.

use std::collections::{BTreeMap, VecDeque};

use super::model::Model;
use crate::console::core::router::Asker;
use crate::console::core::{Code, CommandId, Key, KeyMeaning, Reply, ScreenKind, Ticket, ToastTone};
use crate::console::overlays::Overlay;

/// Most waiting keys.
const WAITING: usize = 500;

/// Keys that wait for rows, and replies that wait for keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct EarlyKeys {
    /// Each with whether it repeated itself because it was held down.
    keys: VecDeque<(Key, bool)>,
    /// The newest reply to each request.
    replies: BTreeMap<Ticket, Reply>,
}

impl EarlyKeys {
    pub fn clear(&mut self) {
        self.keys.clear();
    }

    /// The keys that wait, in their order.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.keys.iter().map(|(key, _)| *key)
    }
}

impl Model {
    /// Handles a key, or lets it wait.
    pub(super) fn typed(&mut self, key: Key, held: bool) {
        if self.is_unseen() && !self.only_leaves(key) {
            return;
        }
        if !self.is_early(key) {
            return self.press(key, held);
        }
        if self.early.keys.len() < WAITING {
            self.early.keys.push_back((key, held));
        } else {
            self.context.say(ToastTone::Warn, "rows are still being read: the key was ignored");
        }
    }

    fn press(&mut self, key: Key, held: bool) {
        if held { self.held_key(key) } else { self.key(key) }
    }

    /// Whether a key came before the rows it concerns. A key that leaves the place does not wait, and drops the waiting
    /// ones.
    fn is_early(&mut self, key: Key) -> bool {
        let is_open = !self.overlays.is_empty() || !self.pressed.is_empty();
        let is_settled = !self.screen().awaits_jump() && self.early.keys.is_empty();
        if is_open || is_settled {
            return false;
        }
        let meaning = self.meaning(&[key]);
        if self.early.keys.is_empty() && matches!(meaning, KeyMeaning::Command(id) if needs_no_row(id)) {
            return false;
        }
        let leaves = is_end(key) || matches!(meaning, KeyMeaning::Command(id) if is_exit(id));
        if leaves {
            self.early.clear();
        }
        !leaves
    }

    /// Whether a key closes an overlay, or ends the console.
    fn only_leaves(&self, key: Key) -> bool {
        if self.overlays.is_empty() {
            is_end(key) || self.meaning(&[key]) == KeyMeaning::Command(CommandId::Quit)
        } else {
            is_end(key) || key.code == Code::Esc
        }
    }

    /// Handles a reply, or lets it wait until no key sequence and no menu is open.
    pub(super) fn replied(&mut self, ticket: Ticket, reply: Reply) {
        let moves_rows = (reply.is_last() || matches!(reply, Reply::News(_)))
            && !matches!(reply, Reply::Detail(_) | Reply::Related(_));
        let is_for_screen = matches!(self.context.router.asker(ticket, false), Some(Asker::Screen(_)));
        if self.is_choosing() && moves_rows && is_for_screen {
            self.early.replies.insert(ticket, reply);
        } else {
            self.route(ticket, reply);
        }
    }

    /// Whether a command is being chosen for the selection.
    fn is_choosing(&self) -> bool {
        !self.pressed.is_empty() || self.overlays.iter().any(|overlay| matches!(overlay, Overlay::Menu(_)))
    }

    /// Handles the next reply or key that need not wait any more. False if there is none.
    pub(super) fn take_early(&mut self) -> bool {
        if !self.is_choosing()
            && let Some((ticket, reply)) = self.early.replies.pop_first()
        {
            self.route(ticket, reply);
            return true;
        }
        if matches!(self.overlays.last(), Some(Overlay::Failure(_))) {
            // They were about rows that cannot be read.
            self.early.clear();
        }
        if self.screen().awaits_jump() && self.overlays.is_empty() && self.pressed.is_empty() {
            return false;
        }
        let Some((key, held)) = self.early.keys.pop_front() else { return false };
        self.press(key, held);
        true
    }
}

/// Whether a key ends or stops the console everywhere.
fn is_end(key: Key) -> bool {
    key.ctrl && matches!(key.code, Code::Char('c' | 'z'))
}

/// Whether a command concerns no row, here or at its destination.
fn needs_no_row(id: CommandId) -> bool {
    use CommandId::{Find, Help, Lock, LookBack, Palette, Refresh};
    matches!(id, Find | Help | Lock | LookBack | Palette | Refresh)
}

/// Whether a command leaves the place without taking a row along, or stops reading there.
fn is_exit(id: CommandId) -> bool {
    use CommandId::{Back, Close, Forward, Home, List, Panel, Quit};
    use ScreenKind::{Erase, Prune, Recall, Replay};
    match id {
        Home | List(_) | Close | Back | Forward | Quit => true,
        Panel(kind) => !matches!(kind, Erase | Prune | Recall | Replay),
        _ => false,
    }
}
