//! Reads what the lists of episodes name once in a run: without an index on what is in a list, each batch would read all
//! episodes.

use std::borrow::Cow;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::change::ChangeError;
use crate::layout::BoundSource;
use crate::memory::digest::digest;
use crate::memory::packed::column::PagedColumn;
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::{Entity, time};
use crate::store::Store;
use crate::store::scratch::{scratch, sorter};
use crate::store::walk::{NarrowCondition, RowWalk, WalkedRow};

/// Bytes of ids and positions in memory; the rest is in a scratch file.
const HELD: usize = 16 << 20;

/// Texts per query.
const ASKED: usize = 20_000;

/// Passes on the rows whose column is one of some texts. A list may have a million, so they are queried in parts.
///
/// # Errors
/// The engine's refusal.
pub async fn walk_named(
    store: &Store,
    (source, columns): (&BoundSource, &[&str]),
    column: &str,
    texts: &[impl AsRef<str> + Sync],
    mut each: impl FnMut(WalkedRow) + Send,
) -> Result<(), ChangeError> {
    for part in texts.chunks(ASKED) {
        let part: Vec<String> = part.iter().map(|text| text.as_ref().to_owned()).collect();
        let narrow = vec![NarrowCondition::OneOf(column, &part)];
        store.walks().walk_each(&RowWalk { source, columns, stored: &[], narrow }, &mut each).await?;
    }
    Ok(())
}

/// Data that is read once in a run and used by all its batches.
pub struct ReadOnce<T>(Mutex<Option<Arc<T>>>);

impl<T> Default for ReadOnce<T> {
    fn default() -> Self {
        ReadOnce(Mutex::default())
    }
}

impl<T> ReadOnce<T> {
    /// Forgets it if a batch is the first of a run.
    pub fn begin(&self, place: &Value) {
        if place.is_null() {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Returns it, and reads it before that if this run has not.
    ///
    /// # Errors
    /// Those of `read`.
    pub async fn get(&self, read: impl Future<Output = Result<T, ChangeError>>) -> Result<Arc<T>, ChangeError> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let read = Arc::new(read.await?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&read));
        Ok(read)
    }
}

/// The ids of the episodes that name something in a list, by the hash of what they name.
pub struct NamingEpisodes {
    ids: IdList,
    /// Positions in `ids`, grouped by what is named.
    places: PagedColumn<i64>,
    /// Start and length of each group.
    groups: IdTable<3>,
    pages: PageStore,
    read_at: DateTime<Utc>,
}

impl NamingEpisodes {
    /// Reads one list of the episodes of some sources.
    ///
    /// # Errors
    /// The database cannot be read, or the scratch file cannot be written.
    pub async fn read(store: &Store, sources: &[&BoundSource], list: &str) -> Result<NamingEpisodes, ChangeError> {
        let read_at = Utc::now();
        let pages = PageStore::new(HELD, scratch);
        let (mut ids, mut places) = (IdList::paged(&pages), PagedColumn::new(&pages));
        let mut named = sorter::<2>();
        for source in sources.iter().filter(|s| !s.column(list).is_empty()) {
            let narrow = vec![NarrowCondition::Present(list)];
            let walk = RowWalk { source, columns: &["id", list], stored: &[], narrow };
            let add = |found: WalkedRow| {
                found.row.list(list).into_iter().for_each(|name| named.add([digest(name), ids.len() as u64]));
                ids.push(found.row.id());
            };
            store.walks().walk_each(&walk, add).await?;
        }
        let mut groups = sorter();
        let named = named.sorted()?;
        let mut named = named.stream()?;
        while let Some(name) = named.group() {
            let from = places.len();
            while let Some([_, place]) = named.next_of(name)? {
                places.push(place as i64);
            }
            groups.add([name, from as u64, (places.len() - from) as u64]);
        }
        let groups = IdTable::of(groups, |_, _| {})?;
        pages.check()?;
        Ok(NamingEpisodes { ids, places, groups, pages, read_at })
    }

    /// Reads the lists of canvas events of all episodes.
    ///
    /// # Errors
    /// As [`NamingEpisodes::read`].
    pub async fn of_events(store: &Store) -> Result<NamingEpisodes, ChangeError> {
        Self::read(store, &store.sources_of(Entity::Episode)?, "canvas_ids").await
    }

    /// Whether something happened since the lists were read: what names it may not be known yet. A time in the future is
    /// wrong, and says nothing.
    pub fn is_older_than(&self, time: &str) -> bool {
        let happened = time::epoch_micros(time).and_then(DateTime::from_timestamp_micros);
        happened.is_some_and(|happened| self.read_at < happened && happened <= Utc::now())
    }

    /// Whether any list has a text. Read errors are reported by [`NamingEpisodes::check`].
    pub fn has(&self, name: &str) -> bool {
        self.groups.get(name).is_some()
    }

    /// The ids of the episodes whose list may have one of some texts; a few may not.
    ///
    /// # Errors
    /// The scratch file cannot be read.
    pub fn of<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Result<Vec<String>, ChangeError> {
        let mut places: Vec<usize> = Vec::new();
        for [_, from, len] in names.into_iter().filter_map(|name| self.groups.get(name)) {
            let group = from as usize..(from + len) as usize;
            places.extend(group.filter_map(|at| self.places.get(at)).map(|place| place as usize));
        }
        places.sort_unstable();
        places.dedup();
        let ids = places.into_iter().filter_map(|place| self.ids.get(place)).map(Cow::into_owned).collect();
        self.check()?;
        Ok(ids)
    }

    /// Checks whether everything could be read.
    ///
    /// # Errors
    /// The scratch file cannot be read.
    pub fn check(&self) -> Result<(), ChangeError> {
        self.groups.check()?;
        Ok(self.pages.check()?)
    }
}
