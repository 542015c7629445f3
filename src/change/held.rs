//! Rows that legal holds keep: those of held people, and those that depend on them. A hold keeps what would be lost for ever:
//! rows that go, and words that no undo brings back.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::ops::ControlFlow;

use uuid::Uuid;

use super::ChangeError;
use super::plan::{Change, Plan};
use super::purge::owners;
use crate::layout::Engine;
use crate::memory::digest::{Digest, wide_digest};
use crate::memory::packed::digest_set::DigestSet;
use crate::memory::packed::ids::IdList;
use crate::memory::packed::pages::PageStore;
use crate::memory::{Entity, Row};
use crate::store::encode::{own_column, plain_column, table_of};
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::scratch::scratch;
use crate::store::stored::{Image, Mutation, Revision, StoredRows, TableName};
use crate::store::{Store, StoreError};

/// Columns by which a row has the owner of another row.
const LINKS: [(&str, Entity); 3] = [EPISODES, ("memory_id", Entity::Memory), ("profile_id", Entity::Profile)];

const EPISODES: (&str, Entity) = ("episode_id", Entity::Episode);

/// Column by which an event has the owner of the episode of its run.
const RUN: &str = "run_id";

/// Columns that lead to the owner of a row.
const OWNERS: [&str; LINKS.len() + 2] = ["user_id", LINKS[0].0, LINKS[1].0, LINKS[2].0, RUN];

/// Name for the id of a memory that an episode of a held person used: its link is a row of theirs.
const USED: &str = "used";

/// Bytes of ids in memory, and half of those of hashes; the rest is in a scratch file.
const IN_MEMORY: usize = 8 << 20;

/// Ids taken from the scratch file at once.
const AT_ONCE: usize = 2_000;

/// People under a hold, and their rows on which others depend.
#[derive(Debug)]
pub struct HeldRows {
    people: HashSet<String>,
    /// Their rows as hashes of the referring column and the id.
    parents: DigestSet,
    /// Whether all runs of their episodes are among these.
    has_runs: bool,
    pages: PageStore,
}

/// Nobody is held.
impl Default for HeldRows {
    fn default() -> Self {
        let pages = PageStore::new(IN_MEMORY, scratch);
        HeldRows { people: HashSet::new(), parents: DigestSet::new(&pages), has_runs: false, pages }
    }
}

impl HeldRows {
    /// Reads the holds, and no rows yet: [`HeldRows::learn`] asks about some.
    ///
    /// # Errors
    /// [`StoreError::Denied`] if our role may not see all rows that determine owners; or the engine's refusal.
    pub async fn new(store: &Store) -> Result<Self, StoreError> {
        let mut people = store.records().held().await?;
        if !people.is_empty() {
            sees_owners(store)?;
        }
        if store.engine() == Engine::Postgres {
            // A column of UUIDs has them in lower case.
            let uuids = people.iter().filter_map(|id| Uuid::try_parse(id).ok());
            let spelled: Vec<String> = uuids.map(|id| id.hyphenated().to_string()).collect();
            people.extend(spelled);
        }
        Ok(HeldRows { people, ..HeldRows::default() })
    }

    /// Reads the holds and, if there are any, finds all rows of those people.
    ///
    /// # Errors
    /// As [`HeldRows::new`], or there is no room for what does not fit in memory.
    pub async fn of(store: &Store) -> Result<Self, StoreError> {
        let mut held = HeldRows::new(store).await?;
        let episodes = held.find_all(store, &LINKS).await?;
        for some in parts(&episodes) {
            let used = |link: Row, _| {
                if let Some(memory) = link.text("memory_id") {
                    held.parents.insert(digest(USED, memory));
                }
                ControlFlow::Continue(())
            };
            let columns = ["memory_id", "episode_id"];
            store.each_related(Entity::MemoryLink, "episode_id", &some, &columns, used).await?;
        }
        held.check()?;
        Ok(held)
    }

    /// Finds all rows of these people, and the runs of their episodes. Returns their episodes.
    async fn find_all(&mut self, store: &Store, links: &[(&'static str, Entity)]) -> Result<IdList, StoreError> {
        let people: Vec<&String> = self.people.iter().collect();
        let mut episodes = IdList::paged(&self.pages);
        for &(link, entity) in links {
            let parents = &mut self.parents;
            let take = |row: Row, _| {
                parents.insert(digest(link, row.id()));
                if entity == Entity::Episode {
                    let runs = row.list("execution_ids").into_iter().chain([row.id()]);
                    runs.for_each(|run| _ = parents.insert(digest(RUN, run)));
                    episodes.push(row.id());
                }
                ControlFlow::Continue(())
            };
            let more = (entity == Entity::Episode).then_some("execution_ids");
            let columns: Vec<&str> = ["id", "user_id"].into_iter().chain(more).collect();
            store.each_related(entity, "user_id", &people, &columns, take).await?;
        }
        self.has_runs = true;
        Ok(episodes)
    }

    /// Finds out whether a hold protects some rows, with the columns that [`HeldRows::columns`] names.
    ///
    /// # Errors
    /// The engine's refusal, or there is no room for what does not fit in memory.
    pub async fn learn<'r>(
        &mut self,
        store: &Store,
        rows: impl IntoIterator<Item = &'r Row>,
    ) -> Result<(), StoreError> {
        let asked = Leads::of(rows.into_iter().flat_map(leads));
        self.ask(store, asked).await
    }

    /// Finds out whether some values lead to held people.
    async fn ask(&mut self, store: &Store, asked: Leads) -> Result<(), StoreError> {
        if self.people.is_empty() {
            return Ok(());
        }
        for link in LINKS {
            self.find(store, link, &asked.of_column(link.0)).await?;
        }
        // No index leads from a run to the lists of episodes that name it.
        if !self.has_runs && !asked.of_column(RUN).is_empty() {
            self.find_all(store, &[EPISODES]).await?;
        }
        self.find_used(store, &asked.of_column(USED)).await?;
        Ok(self.check()?)
    }

    /// Finds rows of these people among those with some ids.
    async fn find(
        &mut self,
        store: &Store,
        (link, entity): (&str, Entity),
        ids: &[impl AsRef<str> + Sync],
    ) -> Result<(), StoreError> {
        let HeldRows { people, parents, .. } = self;
        let take = |row: Row, _| {
            if row.text("user_id").is_some_and(|user| people.contains(user)) {
                parents.insert(digest(link, row.id()));
            }
            ControlFlow::Continue(())
        };
        store.each_related(entity, "id", ids, &["id", "user_id"], take).await
    }

    /// Finds the memories that episodes of these people used, among some.
    async fn find_used(&mut self, store: &Store, memories: &[&String]) -> Result<(), StoreError> {
        let [mut episodes, mut used] = [(); 2].map(|()| IdList::paged(&self.pages));
        let take = |link: Row, _| {
            if let (Some(episode), Some(memory)) = (link.text("episode_id"), link.text("memory_id")) {
                episodes.push(episode);
                used.push(memory);
            }
            ControlFlow::Continue(())
        };
        let columns = ["memory_id", "episode_id"];
        store.each_related(Entity::MemoryLink, "memory_id", memories, &columns, take).await?;
        for (episodes, used) in parts(&episodes).zip(parts(&used)) {
            let ids: BTreeSet<&str> = episodes.iter().map(AsRef::as_ref).collect();
            self.find(store, EPISODES, &Vec::from_iter(ids)).await?;
            for (episode, memory) in episodes.iter().zip(used) {
                if self.has(EPISODES.0, episode) {
                    self.parents.insert(digest(USED, &memory));
                }
            }
        }
        Ok(())
    }

    /// Whether a person is under a hold.
    pub fn holds(&self, person: &str) -> bool {
        self.people.contains(person)
    }

    /// Columns that determine whether a row of an entity is protected; empty if nobody is held.
    pub fn columns(&self, entity: Entity) -> impl Iterator<Item = &'static str> {
        let known = entity.columns().iter().map(|column| column.name);
        known.filter(|name| !self.people.is_empty() && OWNERS.contains(name))
    }

    /// Whether a hold protects a row: it belongs to a held person, or depends on a row that does. False if that cannot be
    /// read, which [`HeldRows::check`] reports.
    pub fn keeps(&self, row: &Row) -> bool {
        !self.people.is_empty() && leads(row).any(|(column, value)| self.has(column, value))
    }

    /// Whether a value of an owner column leads to a held person.
    fn has(&self, column: &str, value: &str) -> bool {
        if column == "user_id" { self.holds(value) } else { self.parents.contains(digest(column, value)) }
    }

    /// Checks whether everything could be written and read so far.
    ///
    /// # Errors
    /// There is no room, or it cannot be read.
    pub fn check(&self) -> io::Result<()> {
        self.pages.check()
    }
}

/// Values that may lead to held people, by column.
struct Leads(BTreeMap<&'static str, BTreeSet<String>>);

impl Leads {
    fn of(leads: impl IntoIterator<Item = (&'static str, impl Into<String>)>) -> Self {
        let mut all: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for (column, value) in leads {
            all.entry(column).or_default().insert(value.into());
        }
        Leads(all)
    }

    fn of_column(&self, column: &str) -> Vec<&String> {
        self.0.get(column).into_iter().flatten().collect()
    }
}

/// The values of a row that may lead to a held person.
fn leads(row: &Row) -> impl Iterator<Item = (&'static str, &str)> {
    let used = (row.entity == Entity::Memory).then(|| (USED, row.id()));
    OWNERS.into_iter().filter_map(|column| Some((column, row.text(column)?))).chain(used)
}

/// The same of a change, before it.
fn leads_of(change: &Change) -> impl Iterator<Item = (&'static str, &str)> {
    let goes = change.after.is_null() && change.entity == Entity::Memory.name();
    let used = goes.then_some((USED, change.id.as_str()));
    OWNERS.into_iter().filter_map(|column| Some((column, change.before[column].as_str()?))).chain(used)
}

/// Parts of a list of ids.
fn parts(ids: &IdList) -> impl Iterator<Item = Vec<Cow<'_, str>>> {
    let begins = (0..ids.len()).step_by(AT_ONCE);
    begins.map(|from| (from..ids.len().min(from + AT_ONCE)).filter_map(|at| ids.get(at)).collect())
}

/// The first row that a plan removes, or takes words from for ever, or away from whom it belongs to, though a hold keeps it, in
/// words. What depends on such rows goes with them unless someone else is named in it who is held.
///
/// # Errors
/// The engine's refusal.
pub async fn taken_from(store: &Store, plan: &Plan) -> Result<Option<String>, StoreError> {
    let losing: Vec<(Cow<'_, StoredRows>, bool)> =
        plan.mutations.iter().filter_map(|it| Some((losing(store, plan, it)?, is_delete(it)))).collect();
    let told = Leads::of(plan.changes.iter().flat_map(leads_of));
    if told.0.is_empty() && losing.is_empty() {
        return Ok(None);
    }
    let mut held = HeldRows::new(store).await?;
    if held.people.is_empty() {
        return Ok(None);
    }
    held.ask(store, told).await?;
    let is_held = |change: &&Change| leads_of(change).any(|(column, value)| held.has(column, value));
    if let Some(Change { entity, id, .. }) = plan.changes.iter().find(is_held) {
        return Ok(Some(format!("{entity} {id} belongs")));
    }
    // A plan tells only the first rows.
    for (rows, goes) in &losing {
        let called = owners::called_after_people(store, &rows.table);
        if !called.is_empty() {
            let images = store.shapes().images_of(rows, &called).await?;
            let mut values = images.iter().flat_map(|image| called.iter().filter_map(|column| image.get(column)));
            if values.any(|raw| as_text(raw).is_some_and(|id| held.holds(&id))) {
                return Ok(Some(format!("a row of {} belongs", rows.table.title())));
            }
        }
        for source in store.recognised().sources.iter().filter(|source| table_of(source) == rows.table) {
            let is_named = plan.changes.iter().any(|change| change.entity == source.entity.name());
            let told = OWNERS.into_iter().filter(|column| is_named || *column == "user_id");
            let used = (is_named && *goes && source.entity == Entity::Memory).then_some((USED, "id"));
            let columns: Vec<(&'static str, &str)> = told
                .map(|column| (column, column))
                .chain(used)
                .filter_map(|(lead, column)| Some((lead, plain_column(source, column)?.0)))
                .collect();
            if columns.is_empty() {
                continue;
            }
            let stored: Vec<String> = columns.iter().map(|(_, stored)| (*stored).to_owned()).collect();
            let images = store.shapes().images_of(rows, &stored).await?;
            let (images, columns) = (&images, &columns);
            let leads = move || {
                let of_image = move |image: &'_ Image| {
                    let value =
                        |(lead, stored): &(&'static str, &str)| Some((*lead, image.get(stored).and_then(as_text)?));
                    columns.iter().filter_map(value).collect::<Vec<_>>()
                };
                images.iter().flat_map(of_image)
            };
            held.ask(store, Leads::of(leads())).await?;
            if leads().any(|(lead, value)| held.has(lead, &value)) {
                return Ok(Some(format!("a row of {} belongs", rows.table.title())));
            }
        }
    }
    held.check()?;
    Ok(None)
}

fn is_delete(mutation: &Mutation) -> bool {
    matches!(mutation, Mutation::Delete(_))
}

/// The rows that a change removes, or takes words from that no undo brings back.
fn losing<'m>(store: &Store, plan: &Plan, mutation: &'m Mutation) -> Option<Cow<'m, StoredRows>> {
    let is_final = plan.undo_reason.is_some();
    match mutation {
        Mutation::Delete(rows) => Some(Cow::Borrowed(rows)),
        Mutation::Update { table, set, .. }
            if is_final && set.iter().any(|(name, _)| holds_words(store, table, name)) =>
        {
            mutation.rows().map(Cow::Owned)
        }
        Mutation::Revise(revise) if is_final => {
            let words = |at: &usize| holds_words(store, &revise.table, &revise.columns[*at]);
            let words: Vec<usize> = (0..revise.columns.len()).filter(words).collect();
            let loses = |Revision(_, before, after): &&Revision| {
                words.iter().any(|at| !is_nothing(&before[*at]) && before[*at] != after[*at])
            };
            let keys: Vec<_> = revise.rows.iter().filter(loses).map(|row| row.0.clone()).collect();
            let rows = StoredRows { table: revise.table.clone(), by: revise.key.clone(), keys };
            (!rows.keys.is_empty()).then_some(Cow::Owned(rows))
        }
        Mutation::Insert { .. } | Mutation::Update { .. } | Mutation::Revise(_) => None,
    }
}

/// Whether words of a row are stored in a column.
fn holds_words(store: &Store, table: &TableName, name: &str) -> bool {
    let sources = store.recognised().sources.iter().filter(|source| table_of(source) == *table);
    let mut words = sources.flat_map(|source| {
        let columns = source.entity.columns().iter().filter(|column| column.holds_words());
        columns.flat_map(move |column| source.column(column.name)).filter_map(own_column)
    });
    words.any(|stored| stored == name)
}

/// Whether a stored value is an empty one.
fn is_nothing(raw: &FetchedValue) -> bool {
    match raw {
        FetchedValue::Null => true,
        FetchedValue::Text(text) => matches!(text.as_str(), "" | "[]" | "{}" | "null"),
        _ => false,
    }
}

/// Refuses a plan that takes rows of a held person. Where holds may not be read, whoever applies it is refused.
///
/// # Errors
/// [`ChangeError::Refused`].
pub async fn refuse(store: &Store, plan: Plan) -> Result<Plan, ChangeError> {
    match taken_from(store, &plan).await {
        Ok(None) | Err(StoreError::Denied { .. }) => Ok(plan),
        Ok(Some(row)) => Err(ChangeError::Refused(format!("{row} to a person under a legal hold: `unhold` ends that"))),
        Err(error) => Err(error.into()),
    }
}

/// Checks that our role sees every row that determines owners.
fn sees_owners(store: &Store) -> Result<(), StoreError> {
    let telling = LINKS.iter().map(|(_, entity)| *entity).chain([Entity::MemoryLink]);
    match telling.into_iter().find_map(|entity| store.report().unseen(entity)) {
        None => Ok(()),
        Some(reason) => Err(StoreError::Denied {
            reason: format!("people are under a legal hold, and the owners of the rows are unknown: {reason}"),
            remedy: "use a role that sees every row".to_owned(),
        }),
    }
}

fn digest(link: &str, id: &str) -> [Digest; 2] {
    wide_digest(&[link, " ", id].concat())
}
