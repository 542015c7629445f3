//! A plan under construction: records every stored row read for it, so that applying can detect changes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::audit::{NO_TRAIL, without};
use super::plan::{Change, ChangeDanger, Plan, SHOWN};
use super::{ChangeError, ChangeSide, now};
use crate::layout::BoundSource;
use crate::memory::digest::{Digest, digest};
use crate::memory::{Entity, Row};
use crate::store::encode::{GivenValue, LocatedRow, leads_back, plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::hanging::HangingRows;
use crate::store::own::{OwnTables, TRAIL};
use crate::store::stored::{Image, Mutation, ROW, ReadState, RowWatch, StoredRows};
use crate::store::{Store, StoreError, named_ids};

/// Most changes that a plan stores in full.
pub(super) const KEPT: usize = 4 * SHOWN;

/// The same for one batch of a job.
const KEPT_OF_A_BATCH: usize = 10;

/// Bytes of stored values from which a plan of many rows is full. It takes several times as much memory.
pub(super) const FULL: usize = 24 << 20;

/// The same for a plan of one row.
const FULL_OF_ONE: usize = 4 * FULL;

/// Rows per read by id.
const AT_ONCE: usize = 400;

/// Bytes of deleted rows up to which a plan for several rows stores undo data.
const UNDO_SIZE: usize = 16 << 20;

/// A plan in the making.
#[derive(Debug)]
pub struct Draft<'s> {
    /// The database.
    pub store: &'s Store,
    /// Our tables; `None` if the plan is only viewed.
    own: Option<OwnTables>,
    operation: &'static str,
    kept: usize,
    danger: ChangeDanger,
    changes: Vec<Change>,
    changes_total: usize,
    watches: Vec<RowWatch>,
    /// Indexes of watches by digest of their rows: there may be one for each of very many rows.
    watched: HashMap<Digest, Vec<usize>>,
    mutations: Vec<Mutation>,
    /// Size of the watches and changes in bytes.
    size: usize,
    /// Bytes from which it is full, if limited: the caller then starts again with fewer rows, or refuses.
    most: Option<usize>,
    /// Size of deleted rows that an undo restores.
    undo_size: usize,
    /// Further effects of the change.
    pub effects: Vec<String>,
    /// Facts to know before the change is made.
    pub disclosures: Vec<String>,
    /// Public facts for the audit entry.
    pub facts: Map<String, Value>,
    /// Rows for the memory's own trail.
    pub trail: Vec<Mutation>,
    /// Rows for that trail should the change be undone.
    pub undo_trail: Vec<Mutation>,
    /// Reason why the change cannot be undone.
    pub undo_reason: Option<String>,
}

impl<'s> Draft<'s> {
    /// Begins a plan.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if nothing can be written, with the command that would help.
    pub async fn new(store: &'s Store, operation: &'static str, danger: ChangeDanger) -> Result<Self, ChangeError> {
        let own = writable(store).await?;
        Ok(Draft::begin(store, Some(own), operation, danger, KEPT))
    }

    /// Begins a plan that can be viewed without write access: without our tables it cannot be applied.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn look(store: &'s Store, operation: &'static str, danger: ChangeDanger) -> Result<Self, ChangeError> {
        let own = store.records().own().await?.filter(|own| own.unread.is_none());
        let mut draft = Draft::begin(store, own, operation, danger, KEPT);
        draft.disclosures.extend(not_yet(writable(store).await)?);
        Ok(draft)
    }

    /// Whether the plan can only be viewed.
    pub fn only_looks(&self) -> bool {
        self.own.is_none()
    }

    /// Begins the plan of one batch of a job, which stores few of its changes in full. Without our tables it can only
    /// be viewed.
    pub fn batch(store: &'s Store, own: Option<&OwnTables>, operation: &'static str, danger: ChangeDanger) -> Self {
        Draft::begin(store, own.cloned(), operation, danger, KEPT_OF_A_BATCH)
    }

    fn begin(
        store: &'s Store,
        own: Option<OwnTables>,
        operation: &'static str,
        danger: ChangeDanger,
        kept: usize,
    ) -> Self {
        Draft {
            store,
            own,
            operation,
            danger,
            kept,
            changes: Vec::new(),
            changes_total: 0,
            watches: Vec::new(),
            watched: HashMap::new(),
            mutations: Vec::new(),
            size: 0,
            most: None,
            undo_size: 0,
            effects: Vec::new(),
            disclosures: Vec::new(),
            facts: Map::new(),
            trail: Vec::new(),
            undo_trail: Vec::new(),
            undo_reason: None,
        }
    }

    /// Watches the state of stored rows without holding them; returns their number. Read canonical rows after this,
    /// never before, so that a change in between is detected when the plan is applied.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn watch(&mut self, rows: StoredRows) -> Result<usize, StoreError> {
        check_told_apart(&rows)?;
        let state = self.store.shapes().state_of(&rows, Vec::new()).await?;
        let count = state.count;
        self.rely(RowWatch { rows, state });
        Ok(count)
    }

    /// As [`Draft::watch`], with the rows.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn watch_images(&mut self, rows: StoredRows) -> Result<Vec<Image>, StoreError> {
        check_told_apart(&rows)?;
        let images = self.store.shapes().images(&rows).await?;
        self.remember(rows, &images, Vec::new());
        Ok(images)
    }

    /// As [`Draft::watch_images`], but reads and keeps only some columns: for very many rows that cannot be restored.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn watch_columns(&mut self, rows: StoredRows, columns: Vec<String>) -> Result<Vec<Image>, StoreError> {
        check_told_apart(&rows)?;
        let images = self.store.shapes().images_of(&rows, &columns).await?;
        self.remember(rows, &images, columns);
        Ok(images)
    }

    /// Watches a row read together with others: some of its columns, or all if none is named.
    pub fn watched(&mut self, rows: StoredRows, image: &Image, columns: Vec<String>) {
        self.remember(rows, std::slice::from_ref(image), columns);
    }

    fn remember(&mut self, rows: StoredRows, images: &[Image], columns: Vec<String>) {
        self.rely(RowWatch { state: ReadState::of(images, columns), rows });
    }

    /// Adds a watch made elsewhere. A watch of contents replaces one of the number.
    pub fn rely(&mut self, watch: RowWatch) {
        match self.place_of(&watch.rows) {
            Some(place) if self.watches[place].is_of_number() => self.watches[place] = watch,
            Some(_) => {}
            None => {
                self.watched.entry(key_of(&watch.rows)).or_default().push(self.watches.len());
                self.size += watch.rows.size();
                self.watches.push(watch);
            }
        }
    }

    /// Requires that no stored row has the values of these columns, if the source stores them in its table.
    pub fn relies_on_none(&mut self, source: &BoundSource, row: &Row, columns: &[&str]) {
        let stored = columns.iter().map(|column| Some(plain_column(source, column)?.0.to_owned()));
        let key = columns.iter().map(|column| Some(FetchedValue::Text(row.text(column)?.to_owned())));
        if let (Some(by), Some(key)) = (stored.collect(), key.collect()) {
            self.rely(RowWatch::of_number(StoredRows { table: table_of(source), by, keys: vec![key] }, 0));
        }
    }

    /// Requires that no further row appears with the texts of a new row, in those of these columns that the source
    /// stores, except long texts.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn relies_on_no_more(
        &mut self,
        source: &BoundSource,
        row: &Row,
        columns: &[&str],
    ) -> Result<(), ChangeError> {
        const LONGEST: usize = 4 << 10;
        let held = columns.iter().filter_map(|column| {
            let (stored, way) = plain_column(source, column)?;
            let words = row.text(column).filter(|words| words.len() <= LONGEST)?;
            self.store.encoder().can_be(way, words).then_some(())?;
            Some((stored.to_owned(), FetchedValue::Text(words.to_owned())))
        });
        let (by, key): (Vec<String>, Vec<FetchedValue>) = held.unzip();
        if by.is_empty() {
            return Ok(());
        }
        let rows = StoredRows { table: table_of(source), by, keys: vec![key] };
        let count = self.store.shapes().state_of(&rows, rows.by.clone()).await?.count;
        self.rely(RowWatch::of_number(rows, count));
        Ok(())
    }

    /// Place of the watch of just these rows.
    fn place_of(&self, rows: &StoredRows) -> Option<usize> {
        let mut alike = self.watched.get(&key_of(rows)).into_iter().flatten().copied();
        alike.find(|place| self.watches.get(*place).is_some_and(|watch| watch.rows == *rows))
    }

    /// Whether the contents of exactly these rows are watched.
    fn watches_rows(&self, rows: &StoredRows) -> bool {
        self.place_of(rows).is_some_and(|place| !self.watches[place].is_of_number())
    }

    /// The row of an id, remembered.
    ///
    /// # Errors
    /// [`ChangeError::NotFound`] if it does not exist, [`ChangeError::Refused`] if it is computed from stored rows that
    /// its id does not identify.
    pub async fn locate(&mut self, entity: Entity, id: &str) -> Result<LocatedRow<'s>, ChangeError> {
        let store = self.store;
        check_stored_id(entity, id)?;
        match self.seek(entity, id).await? {
            Some(located) => Ok(located),
            None if id.trim().is_empty() => Err(blank(entity)),
            None if store.row(entity, id).await?.is_some() => {
                let stored = store.sources_of(entity)?.into_iter().all(leads_back);
                let why =
                    if stored { "its stored id is not a text" } else { "the layout builds its id from other values" };
                Err(ChangeError::Refused(format!("{} `{id}` is read-only: {why}", entity.title())))
            }
            None => Err(ChangeError::NotFound(store.none_found(entity, id))),
        }
    }

    /// As [`Draft::locate`]; `None` if it does not exist. Rows name others by any text: what is no id leads nowhere.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn seek(&mut self, entity: Entity, id: &str) -> Result<Option<LocatedRow<'s>>, ChangeError> {
        if check_stored_id(entity, id).is_err() {
            return Ok(None);
        }
        let located = self.store.encoder().locate(entity, id).await?;
        if let Some(located) = &located {
            self.remember(located.rows(), std::slice::from_ref(&located.image), Vec::new());
        }
        Ok(located)
    }

    /// As [`Draft::locate`], for many ids, read in parts.
    ///
    /// # Errors
    /// As [`Draft::locate`].
    pub async fn locate_all(&mut self, entity: Entity, ids: &[String]) -> Result<Vec<LocatedRow<'s>>, ChangeError> {
        ids.iter().try_for_each(|id| check_stored_id(entity, id))?;
        let mut all = Vec::with_capacity(ids.len());
        for some in ids.chunks(AT_ONCE) {
            let mut located = self.store.encoder().locate_all(entity, some).await?;
            for id in some {
                let row = match located.remove(id) {
                    Some(row) => row,
                    None => self.locate(entity, id).await?,
                };
                self.remember(row.rows(), std::slice::from_ref(&row.image), Vec::new());
                all.push(row);
            }
        }
        Ok(all)
    }

    /// As [`Draft::seek`], among the rows of one source.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn seek_in(&mut self, source: &'s BoundSource, id: &str) -> Result<Option<LocatedRow<'s>>, ChangeError> {
        let store = self.store;
        let located = store.encoder().locate_in(source, id).await?;
        if let Some(located) = &located {
            self.remember(located.rows(), std::slice::from_ref(&located.image), Vec::new());
        }
        Ok(located)
    }

    /// Notes a row that changes: the columns that differ.
    pub fn alters(&mut self, before: &Row, after: &Row) {
        let entity = before.entity;
        let differs = |column: &&str| !before.json(column).is_same(after.json(column));
        let columns: Vec<&str> = entity.columns().iter().map(|c| c.name).filter(differs).collect();
        let side = |row: &Row| ChangeSide::of(row, columns.iter().copied());
        self.note(entity, before.id(), side(before), side(after));
    }

    /// Sets columns of a row, which then reads as `shown`.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] for a value that cannot be stored; otherwise the engine's refusal.
    pub async fn sets(
        &mut self,
        found: &LocatedRow<'_>,
        values: &[(&str, GivenValue)],
        shown: &Row,
    ) -> Result<(), ChangeError> {
        let shape = self.store.shapes().shape(&found.table()).await?;
        self.push(found.update(&shape, values).map_err(ChangeError::Refused)?);
        self.alters(&found.row, shown);
        Ok(())
    }

    /// Notes a new row.
    pub fn adds(&mut self, row: &Row) {
        self.note(row.entity, row.id(), Value::Null, row);
    }

    /// Records a deleted row.
    pub fn removes(&mut self, row: &Row) {
        self.note(row.entity, row.id(), row, Value::Null);
    }

    /// Whether a further change would be stored in full; otherwise [`Draft::count`] suffices.
    pub fn wants_more(&self) -> bool {
        self.changes.len() < self.kept
    }

    /// Notes that this many rows change that need not be shown.
    pub fn count(&mut self, rows: usize) {
        self.changes_total += rows;
    }

    /// Records a change with its own description.
    pub fn note(&mut self, entity: Entity, id: &str, before: impl Into<ChangeSide>, after: impl Into<ChangeSide>) {
        self.changes_total += 1;
        if self.wants_more() {
            let (before, after) = (before.into(), after.into());
            self.changes.push(Change { entity: entity.name().to_owned(), id: id.to_owned(), before, after });
        }
    }

    /// Adds a change of stored rows, except an update that sets nothing.
    pub fn push(&mut self, mutation: Mutation) {
        if !matches!(&mutation, Mutation::Update { set, .. } if set.is_empty()) {
            self.size += mutation.size();
            self.mutations.push(mutation);
        }
    }

    /// Drops the undo data of several rows if it is too large.
    fn limit_undo(&mut self) {
        let rows: usize = self.mutations.iter().map(|mutation| mutation.count().1).sum();
        if self.undo_size > UNDO_SIZE && rows > 1 && self.undo_reason.is_none() {
            let size = UNDO_SIZE >> 20;
            self.undo_reason = Some(format!("its rows take more than {size} MB: too much to keep for an undo"));
        }
    }

    /// Watches rows and deletes them. If their undo data is too large, only the `narrow` columns are watched, if any
    /// are named.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn take_away(&mut self, rows: &StoredRows, narrow: &[String]) -> Result<(), StoreError> {
        if self.undo_reason.is_some() && !narrow.is_empty() && !rows.keys.is_empty() {
            self.watch_columns(rows.clone(), narrow.to_vec()).await?;
        } else {
            for part in rows.parts() {
                if self.is_full() {
                    return Ok(());
                }
                let images = self.watch_images(part).await?;
                self.undo_size += images.iter().map(Image::size).sum::<usize>();
            }
        }
        if !rows.keys.is_empty() {
            self.push(Mutation::Delete(rows.clone()));
            self.limit_undo();
        }
        Ok(())
    }

    /// Limits the plan's size. When it is full, the caller may stop: it starts again with fewer rows, or refuses.
    pub fn limited(self) -> Self {
        Draft { most: Some(self.store.plan_room(FULL)), ..self }
    }

    /// The same for one row, which cannot be split: the remaining rows that name it may be large.
    pub fn limited_for_one(self) -> Self {
        Draft { most: Some(FULL_OF_ONE), ..self }
    }

    /// Whether it may be full.
    pub fn is_bounded(&self) -> bool {
        self.most.is_some()
    }

    /// Whether it is full.
    pub fn is_full(&self) -> bool {
        self.most.is_some_and(|most| self.size > most)
    }

    /// Whether it is full, or would be with these rows watched and changed.
    pub fn fills_with(&mut self, rows: &StoredRows) -> bool {
        let size = 2 * rows.size();
        if size > self.store.plan_room(FULL) || self.most.is_some_and(|most| self.size + size > most) {
            self.overfill();
        }
        self.is_full()
    }

    /// Number of rows at which it is full.
    pub fn most_rows(&self) -> usize {
        if self.is_bounded() { FULL / 2 / ROW } else { usize::MAX }
    }

    /// Marks that there is more than it can take.
    pub fn overfill(&mut self) {
        self.size = self.size.max(FULL_OF_ONE + 1);
    }

    /// The changes so far, to be completed.
    pub fn mutations_mut(&mut self) -> impl Iterator<Item = &mut Mutation> {
        self.mutations.iter_mut()
    }

    /// The changes so far.
    pub fn mutations(&self) -> &[Mutation] {
        &self.mutations
    }

    /// The rows deleted so far.
    pub fn deletions(&self) -> Vec<StoredRows> {
        let gone = self.mutations.iter().filter_map(|m| match m {
            Mutation::Delete(rows) => Some(rows.clone()),
            _ => None,
        });
        gone.collect()
    }

    /// Reports that an episode's aggregates are computed from the visible rows only, if our role may not see all of
    /// them.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if the episode names an invisible one: the stored number would then cover only a part.
    pub fn counts_seen(&mut self, episode: &LocatedRow<'_>, seen: &HangingRows) -> Result<(), ChangeError> {
        let entity = seen.entity();
        let Some(reason) = self.store.report().unseen(entity) else { return Ok(()) };
        let ids: HashSet<Cow<'_, str>> = seen.ids().map(|(id, _)| id).collect();
        let named = named_ids(&episode.row, &episode.source.links, entity);
        if let Some(id) = named.iter().find(|id| !ids.contains(*id)) {
            return Err(ChangeError::Refused(format!(
                "episode {} names {} {id}, which your role cannot see, and the stored value is computed from all of \
                 them: {reason}. Change it with a role that sees every row",
                episode.row.id(),
                entity.title()
            )));
        }
        let told = format!(
            "what episodes store about each {} is computed from the visible ones only: {reason}",
            entity.title()
        );
        if !self.disclosures.contains(&told) {
            self.disclosures.push(told);
        }
        Ok(())
    }

    /// Finishes the plan. Every changed row is watched, new ones as absent.
    pub fn seal(self) -> Plan {
        let mut plan = self.seal_batch();
        plan.plan_id = plan.digest();
        plan
    }

    /// Finishes the plan of a batch, which is applied at once and has no digest: its id is the job's.
    pub fn seal_batch(mut self) -> Plan {
        let changed = self.mutations.iter().filter(|m| !m.watches_itself()).filter_map(Mutation::rows);
        let unwatched = |rows: &StoredRows| !rows.parts().all(|part| self.watches_rows(&part));
        for rows in changed.filter(unwatched).collect::<Vec<_>>() {
            self.remember(rows, &[], Vec::new());
        }
        // The same order for all writers prevents deadlocks.
        self.watches.sort_by_cached_key(|w| (w.rows.table.clone(), json!(w.rows).to_string()));
        if self.mutations.is_empty() {
            self.trail.clear();
            self.undo_trail.clear();
        }
        Plan {
            plan_id: String::new(),
            operation: self.operation.to_owned(),
            danger: self.danger,
            counts: Plan::count(self.mutations.iter().chain(&self.trail)),
            changes: self.changes,
            changes_total: self.changes_total,
            effects: self.effects,
            disclosures: self.disclosures,
            created_at: now(),
            database_id: self.own.map(|own| own.database_id).unwrap_or_default(),
            facts: Value::Object(self.facts),
            undo_reason: self.undo_reason,
            reason: None,
            ticket: None,
            watches: self.watches,
            mutations: self.mutations,
            trail: self.trail,
            undo_trail: self.undo_trail,
            rules: None,
        }
    }
}

/// Checks that rows can be identified: otherwise a change would affect others too.
fn check_told_apart(rows: &StoredRows) -> Result<(), StoreError> {
    if rows.by.is_empty() && !rows.keys.is_empty() {
        let words = format!("{} has no primary key that identifies its rows", rows.table.title());
        return Err(StoreError::CannotHold(words));
    }
    Ok(())
}

/// Digest of rows, to find equal ones among very many.
fn key_of(rows: &StoredRows) -> Digest {
    digest(&json!([rows.table, rows.by, rows.keys.len(), rows.keys.first()]).to_string())
}

/// Refuses an id that is not suitable for a row.
///
/// # Errors
/// [`ChangeError::Usage`].
pub fn check_id(entity: Entity, id: &str) -> Result<(), ChangeError> {
    if !id.is_empty() && id.trim().is_empty() {
        return Err(blank(entity));
    }
    check_stored_id(entity, id)
}

fn blank(entity: Entity) -> ChangeError {
    ChangeError::Usage(format!("the id of the {} is blank", entity.title()))
}

/// Refuses an id that no row can be named by.
fn check_stored_id(entity: Entity, id: &str) -> Result<(), ChangeError> {
    if id.is_empty() {
        return Err(ChangeError::Usage(format!("the id of the {} is empty", entity.title())));
    }
    if id.len() > 1_000 || id.contains('\0') {
        return Err(ChangeError::Usage(format!(
            "no {} can have this id: it is too long or contains NUL",
            entity.title()
        )));
    }
    Ok(())
}

/// Our tables, to be read.
///
/// # Errors
/// [`ChangeError::Refused`] if there are none.
pub async fn trail(store: &Store) -> Result<OwnTables, ChangeError> {
    let own = store.records().own().await?.map(OwnTables::read).transpose()?;
    own.ok_or_else(|| ChangeError::Refused(format!("{} has no audit trail", store.location())))
}

/// Message why a plan cannot be applied yet; `None` if it can.
///
/// # Errors
/// Every error other than a refusal.
pub fn not_yet(ready: Result<OwnTables, ChangeError>) -> Result<Option<String>, ChangeError> {
    Ok(obstacle(ready)?.as_deref().map(not_yet_for))
}

/// Message that a plan cannot be applied yet, with the reason.
pub fn not_yet_for(why: &str) -> String {
    format!("this plan is a preview and cannot be applied yet: {why}")
}

/// Returns the reason why nothing can be changed yet; `None` if changes are possible.
///
/// # Errors
/// Every error other than a refusal.
pub fn obstacle(ready: Result<OwnTables, ChangeError>) -> Result<Option<String>, ChangeError> {
    match ready {
        Ok(_) => Ok(None),
        Err(ChangeError::Refused(why) | ChangeError::Broken(why)) => Ok(Some(why)),
        Err(ChangeError::Store(StoreError::Denied { reason, remedy })) => Ok(Some(format!("{reason}; {remedy}"))),
        Err(error) => Err(error),
    }
}

/// Our tables, if changes are possible.
///
/// # Errors
/// [`ChangeError::Refused`] with a remedy.
pub async fn writable(store: &Store) -> Result<OwnTables, ChangeError> {
    if let Some(reason) = store.why_not_writable() {
        return Err(ChangeError::Refused(format!("{} cannot be written: {reason}", store.location())));
    }
    if let Some(table) = TRAIL.iter().find(|name| store.records().table(name).is_none())
        && store.records().table("memory_migrations").is_some()
    {
        return Err(ChangeError::Broken(format!(
            "a table of the audit trail is missing: {table}; `{}` shows details",
            store.invocation().line(["audit", "verify"])
        )));
    }
    match store.records().own().await?.map(OwnTables::read).transpose()? {
        Some(own) => Ok(own),
        None => Err(without(store, None, &format!("is read-only: it {NO_TRAIL}")).await),
    }
}
