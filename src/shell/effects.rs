//! Effects that take time run as tasks, one for each ticket; dropping a task's future stops its query on the server.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use super::{export, load};
use crate::app::{Effect, Message, Ticket};
use crate::memory::mask::Mask;
use crate::store::Store;

/// Tasks under way.
pub struct Tasks {
    store: Arc<Store>,
    mask: Mask,
    replies: UnboundedSender<Message>,
    running: HashMap<Ticket, JoinHandle<()>>,
}

impl Tasks {
    /// No tasks yet; what they find goes to `replies`.
    pub fn new(store: Arc<Store>, mask: Mask, replies: UnboundedSender<Message>) -> Self {
        Tasks { store, mask, replies, running: HashMap::new() }
    }

    /// Sends a message to the core.
    pub fn reply(&self, message: Message) {
        // Nobody listens only when the console has ended.
        let _ = self.replies.send(message);
    }

    /// Starts several.
    pub fn start_all(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.start(effect);
        }
    }

    /// Starts what an effect asks for; those that concern the terminal are not for here.
    pub fn start(&mut self, effect: Effect) {
        let store = Arc::clone(&self.store);
        match effect {
            Effect::Cancel(ticket) => {
                if let Some(task) = self.running.remove(&ticket) {
                    task.abort();
                }
            }
            Effect::After(ticket, millis) => self.spawn(ticket, async move {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Message::Elapsed(ticket)
            }),
            Effect::LoadStatus(ticket) => {
                self.spawn(ticket, async move { Message::Status(ticket, load::status(&store).await) });
            }
            Effect::LoadPage(ticket, query) => {
                self.spawn(ticket, async move { Message::Page(ticket, load::page(&store, &query).await) });
            }
            Effect::LoadDetail(ticket, entity, id, key) => self
                .spawn(ticket, async move { Message::Detail(ticket, load::detail(&store, entity, &id, &key).await) }),
            Effect::LoadRelated(ticket, relations) => {
                self.spawn(ticket, async move { Message::Related(ticket, load::related(&store, relations).await) });
            }
            Effect::Export(ticket, export) => {
                let (mask, replies) = (export.masked.then(|| self.mask.clone()), self.replies.clone());
                self.spawn(ticket, async move {
                    let told = |rows| {
                        let _ = replies.send(Message::Exporting(ticket, rows));
                    };
                    Message::Exported(ticket, export::write(&store, &export, mask.as_ref(), told).await)
                });
            }
            Effect::Copy(..)
            | Effect::View(..)
            | Effect::SetTitle(_)
            | Effect::Mouse(_)
            | Effect::Redraw
            | Effect::Suspend
            | Effect::Quit => {}
        }
    }

    fn spawn(&mut self, ticket: Ticket, work: impl Future<Output = Message> + Send + 'static) {
        self.running.retain(|_, task| !task.is_finished());
        let replies = self.replies.clone();
        let task = tokio::spawn(async move {
            super::terminal::panic_if_asked("worker");
            let _ = replies.send(work.await);
        });
        self.running.insert(ticket, task);
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.running.values().for_each(JoinHandle::abort);
    }
}
