//! Rows that legal holds keep: those of held people, and those that depend on them. A hold keeps what would be lost for ever:
//! rows that go, and words that no undo brings back.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::ControlFlow;

use super::ChangeError;
use super::plan::{Change, Plan};
use super::purge::owners;
use crate::memory::{Entity, Row};
use crate::store::encode::{own_column, plain_column, table_of};
use crate::store::fetched::{FetchedValue, as_text};
use crate::store::stored::{Mutation, Revision, StoredRows, TableName};
use crate::store::{Store, StoreError};

/// Columns by which a row has the owner of another row.
const LINKS: [(&str, Entity); 3] =
    [("episode_id", Entity::Episode), ("memory_id", Entity::Memory), ("profile_id", Entity::Profile)];

/// Key for a memory that an episode of a held person used: its link is a row of theirs.
const USED: &str = "used";

/// People under a hold, and their rows on which others depend.
#[derive(Debug, Default)]
pub struct HeldRows {
    people: HashSet<String>,
    /// Their rows as hashes of the referring column and the id: eight bytes each. A collision protects one row too
    /// many.
    parents: HashSet<u64>,
}

impl HeldRows {
    /// Reads the holds and, if there are any, the ids of those people's rows.
    ///
    /// # Errors
    /// [`StoreError::Denied`] if our role may not see all rows that determine owners; or the engine's refusal.
    pub async fn of(store: &Store) -> Result<Self, StoreError> {
        let mut held = HeldRows { people: store.records().held().await?, parents: HashSet::new() };
        if !held.people.is_empty() {
            sees_owners(store)?;
        }
        let linked = LINKS.into_iter().filter(|(_, entity)| store.sources_of(*entity).is_ok());
        let mut episodes = Vec::new();
        for (link, entity) in linked {
            let people: Vec<&String> = held.people.iter().collect();
            let parents = &mut held.parents;
            let take = |row: Row, _| {
                parents.insert(digest(link, row.id()));
                if entity == Entity::Episode {
                    let runs = row.list("execution_ids").into_iter().chain([row.id()]);
                    parents.extend(runs.map(|run| digest("run_id", run)));
                    episodes.push(row.id().to_owned());
                }
                ControlFlow::Continue(())
            };
            let more = (entity == Entity::Episode).then_some("execution_ids");
            let columns: Vec<&str> = ["id", "user_id"].into_iter().chain(more).collect();
            store.each_related(entity, "user_id", &people, &columns, take).await?;
        }
        let used = |row: Row, _| {
            held.parents.extend(row.text("memory_id").map(|id| digest(USED, id)));
            ControlFlow::Continue(())
        };
        store.each_related(Entity::MemoryLink, "episode_id", &episodes, &["memory_id", "episode_id"], used).await?;
        Ok(held)
    }

    /// Whether a person is under a hold.
    #[must_use]
    pub fn holds(&self, person: &str) -> bool {
        self.people.contains(person)
    }

    /// Columns that determine whether a row of an entity is protected; empty if nobody is held.
    pub fn columns(&self, entity: Entity) -> impl Iterator<Item = &'static str> {
        let known = entity.columns().iter().map(|column| column.name);
        known.filter(|name| !self.people.is_empty() && HeldRows::owners().contains(name))
    }

    /// Whether a hold protects a row: it belongs to a held person, or depends on a row that does.
    #[must_use]
    pub fn keeps(&self, row: &Row) -> bool {
        let owners = HeldRows::owners();
        !self.people.is_empty()
            && (row.entity == Entity::Memory && self.has(USED, row.id())
                || owners.into_iter().any(|column| row.text(column).is_some_and(|id| self.has(column, id))))
    }

    fn owners() -> [&'static str; LINKS.len() + 2] {
        let [a, b, c] = LINKS.map(|(link, _)| link);
        ["user_id", a, b, c, "run_id"]
    }

    /// Whether a value of an owner column leads to a held person.
    fn has(&self, column: &str, value: &str) -> bool {
        if column == "user_id" { self.holds(value) } else { self.parents.contains(&digest(column, value)) }
    }
}

/// The first row that a plan removes, or takes words from for ever, or away from whom it belongs to, though a hold keeps it, in
/// words. What depends on such rows goes with them unless someone else is named in it who is held.
///
/// # Errors
/// The engine's refusal.
pub async fn taken_from(store: &Store, plan: &Plan) -> Result<Option<String>, StoreError> {
    let owned = |change: &&Change| HeldRows::owners().iter().any(|column| change.before[column].is_string());
    let losing: Vec<Cow<'_, StoredRows>> = plan.mutations.iter().filter_map(|it| losing(store, plan, it)).collect();
    if !plan.changes.iter().any(|change| owned(&change)) && losing.is_empty() {
        return Ok(None);
    }
    let held = HeldRows::of(store).await?;
    if held.people.is_empty() {
        return Ok(None);
    }
    let is_held = |change: &&Change| {
        let leads = |column: &&str| change.before[column].as_str().is_some_and(|id| held.has(column, id));
        let goes = change.after.is_null();
        HeldRows::owners().iter().any(leads)
            || goes && change.entity == Entity::Memory.name() && held.has(USED, &change.id)
    };
    if let Some(Change { entity, id, .. }) = plan.changes.iter().find(is_held) {
        return Ok(Some(format!("{entity} {id} belongs")));
    }
    // A plan tells only the first rows.
    for rows in &losing {
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
            let told = HeldRows::owners().into_iter().filter(|column| is_named || *column == "user_id");
            let columns: Vec<(&str, &str)> =
                told.filter_map(|column| Some((column, plain_column(source, column)?.0))).collect();
            if columns.is_empty() {
                continue;
            }
            let stored: Vec<String> = columns.iter().map(|(_, stored)| (*stored).to_owned()).collect();
            for image in store.shapes().images_of(rows, &stored).await? {
                let leads = |(column, stored): &(&str, &str)| {
                    image.get(stored).and_then(as_text).is_some_and(|id| held.has(column, &id))
                };
                if columns.iter().any(leads) {
                    return Ok(Some(format!("a row of {} belongs", rows.table.title())));
                }
            }
        }
    }
    Ok(None)
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

fn digest(link: &str, id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (link, id).hash(&mut hasher);
    hasher.finish()
}
