//! The way back from the tasks of a database to the model of its console.

use tokio::sync::mpsc::UnboundedSender;

use crate::console::core::Message;

/// Sender of the replies of one database's tasks.
#[derive(Clone)]
pub struct ReplySender {
    pub database: u64,
    /// Messages of all databases, each with the number of its own.
    pub all: UnboundedSender<(u64, Message)>,
}

impl ReplySender {
    pub fn send(&self, message: Message) {
        // The receiver is gone only after the console has ended.
        let _ = self.all.send((self.database, message));
    }
}
