//! Rows that legal holds keep: those of held people, and those that depend on them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::ControlFlow;

use super::ChangeError;
use super::plan::{Change, Plan};
use super::purge::owners;
use crate::memory::{Entity, Row};
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::as_text;
use crate::store::stored::Mutation;
use crate::store::{Store, StoreError};

/// Columns by which a row belongs to whom another row belongs to.
const LINKS: [(&str, Entity); 3] =
    [("episode_id", Entity::Episode), ("memory_id", Entity::Memory), ("profile_id", Entity::Profile)];

/// Stands for a memory that an episode of a held person used: its link is a row of theirs.
const USED: &str = "used";

/// People under a hold, and their rows on which others hang.
#[derive(Debug, Default)]
pub struct HeldRows {
    people: HashSet<String>,
    /// Their rows as hashes of the column that leads there and the id: eight bytes for each. Two that are alike keep a row too
    /// many.
    parents: HashSet<u64>,
}

impl HeldRows {
    /// Reads the holds, and where there are any, the ids of what belongs to those people.
    ///
    /// # Errors
    /// [`StoreError::Denied`] where our role may not see all rows that tell whose others are; or the engine's refusal.
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
                parents.extend(row.list("execution_ids").into_iter().map(|run| digest("run_id", run)));
                episodes.extend((entity == Entity::Episode).then(|| row.id().to_owned()));
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

    /// Columns that tell whether a row of an entity is kept; none where nobody is held.
    pub fn columns(&self, entity: Entity) -> impl Iterator<Item = &'static str> {
        let known = entity.columns().iter().map(|column| column.name);
        known.filter(|name| !self.people.is_empty() && HeldRows::owners().contains(name))
    }

    /// Whether a hold keeps a row: it belongs to a held person, or depends on a row that does.
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

    /// Whether a value of a column that says to whom a row belongs leads to a held person.
    fn has(&self, column: &str, value: &str) -> bool {
        if column == "user_id" { self.holds(value) } else { self.parents.contains(&digest(column, value)) }
    }
}

/// The first row that a plan removes, or away from whom it belongs to, though a hold keeps it, in words. What depends
/// on such rows goes with them unless someone else is named in it who is held.
///
/// # Errors
/// The engine's refusal.
pub async fn taken_from(store: &Store, plan: &Plan) -> Result<Option<String>, StoreError> {
    let owned = |change: &&Change| HeldRows::owners().iter().any(|column| change.before[column].is_string());
    let deleted = plan.mutations.iter().filter_map(|mutation| match mutation {
        Mutation::Delete(rows) => Some(rows),
        _ => None,
    });
    if !plan.changes.iter().any(|change| owned(&change)) && deleted.clone().next().is_none() {
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
    for rows in deleted {
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

/// Checks that our role sees every row that tells to whom others belong.
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
