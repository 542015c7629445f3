//! Reading past a damaged page: once a read meets one, everything is read from a private copy of what can be read.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::Opener;
use super::replies::ReplySender;
use crate::console::core::Message;
use crate::store::Store;

/// Place of the database that all tasks read.
type StorePlace = Arc<Mutex<Arc<Store>>>;
/// Place of the database of the past.
pub type PastPlace = Arc<Mutex<Option<Arc<Store>>>>;

/// Remains of a database with a damaged page.
#[derive(Clone)]
pub struct Salvage {
    /// Opens a copy of what can be read.
    open: Opener,
    /// The copy, once it was needed; `None` if nothing could be read.
    copy: Arc<OnceCell<Option<Arc<Store>>>>,
    store: StorePlace,
    /// The copy shows nothing of the past.
    past: PastPlace,
    /// Name of the profile, and whether it is production.
    profile: (Option<String>, bool),
    vector_bytes: usize,
    replies: ReplySender,
}

impl Salvage {
    /// Creates one that has copied nothing yet.
    pub fn new(
        open: Opener,
        (store, past): (StorePlace, PastPlace),
        profile: (Option<String>, bool),
        vector_bytes: usize,
        replies: ReplySender,
    ) -> Self {
        Salvage { open, copy: Arc::default(), store, past, profile, vector_bytes, replies }
    }

    /// Returns the copy to read instead of a damaged database; all later tasks read it too. `None` if that is the copy.
    pub async fn instead(&self, of: &Store) -> Option<Arc<Store>> {
        match of.unread() {
            Some(_) => None,
            None => self.copy.get_or_init(|| self.made()).await.clone(),
        }
    }

    /// Whether the copy is read now.
    pub fn is_read(&self) -> bool {
        self.copy.get().is_some_and(Option::is_some)
    }

    async fn made(&self) -> Option<Arc<Store>> {
        self.replies.send(Message::Damaged(None));
        let copy = Arc::new((self.open)().await.ok()?);
        copy.looking().embeddings().keep_vectors(self.vector_bytes);
        let (profile, production) = &self.profile;
        let opened = Box::new(super::opened(&copy, profile.as_ref(), *production));
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&copy);
        *self.past.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.replies.send(Message::Damaged(Some(opened)));
        Some(copy)
    }
}
