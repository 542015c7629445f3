//! Rows that legal holds keep: those of held people, and those that hang on them.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::ControlFlow;

use super::ChangeError;
use crate::memory::{Entity, Row};
use crate::store::{Store, StoreError};

/// Columns by which a row belongs to whom another row belongs to.
const LINKS: [(&str, Entity); 3] =
    [("episode_id", Entity::Episode), ("memory_id", Entity::Memory), ("profile_id", Entity::Profile)];

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
    /// The engine's refusal.
    pub async fn of(store: &Store) -> Result<Self, StoreError> {
        let people = store.records().holds().await?.into_iter().map(|(id, _)| id).collect();
        let mut held = HeldRows { people, parents: HashSet::new() };
        let linked = LINKS.into_iter().filter(|(_, entity)| store.sources_of(*entity).is_ok());
        for (link, entity) in linked {
            let people: Vec<&String> = held.people.iter().collect();
            let parents = &mut held.parents;
            let take = |row: Row, _| {
                parents.insert(digest(link, row.id()));
                ControlFlow::Continue(())
            };
            store.each_related(entity, "user_id", &people, &["id", "user_id"], take).await?;
        }
        Ok(held)
    }

    /// Whether a person is under a hold.
    #[must_use]
    pub fn holds(&self, person: &str) -> bool {
        self.people.contains(person)
    }

    /// Whether a column says to whom a row belongs.
    #[must_use]
    pub fn is_owner(column: &str) -> bool {
        column == "user_id" || LINKS.iter().any(|(link, _)| *link == column)
    }

    /// Columns that tell whether a row of an entity is kept; none where nobody is held.
    pub fn columns(&self, entity: Entity) -> impl Iterator<Item = &'static str> {
        let known = entity.columns().iter().map(|column| column.name);
        known.filter(|name| !self.people.is_empty() && HeldRows::is_owner(name))
    }

    /// Whether a hold keeps a row: it belongs to a held person, or hangs on a row that does.
    #[must_use]
    pub fn keeps(&self, row: &Row) -> bool {
        let own = || row.text("user_id").is_some_and(|user| self.holds(user));
        let hangs =
            |(link, _): &(&str, Entity)| row.text(link).is_some_and(|id| self.parents.contains(&digest(link, id)));
        !self.people.is_empty() && (own() || LINKS.iter().any(hangs))
    }

    /// Refuses a row that a hold keeps.
    ///
    /// # Errors
    /// [`ChangeError::Refused`].
    pub fn refuse(&self, row: &Row) -> Result<(), ChangeError> {
        if !self.keeps(row) {
            return Ok(());
        }
        Err(ChangeError::Refused(format!(
            "{} {} belongs to a person under a legal hold: `unhold` ends that",
            row.entity.title(),
            row.id()
        )))
    }
}

fn digest(link: &str, id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (link, id).hash(&mut hasher);
    hasher.finish()
}
