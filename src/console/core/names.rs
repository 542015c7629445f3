//! Readable names for foreign keys: an episode's title, a person's name, a memory's first words. Read once per page.

use std::collections::{BTreeMap, BTreeSet};

use super::columns::{row_name, row_title};
use super::message::Ticket;
use crate::change::plan::Change;
use crate::memory::{Entity, Row};
use crate::ui::SafeText;

/// Most names kept; beyond that all are dropped and read again.
const KEPT: usize = 20_000;

/// The entity that a column refers to, by an id or a list of ids; `None` if the column is not a foreign key.
pub fn named_entity(column: &str) -> Option<Entity> {
    match column {
        "episode_id" | "parent_id" | "consolidated_into" | "ids" => Some(Entity::Episode),
        "user_id" | "actor" => Some(Entity::Subject),
        // Memories are filed under their agent if an application has a collection for each agent.
        "agent_id" | "collection" => Some(Entity::Agent),
        "memory_id" => Some(Entity::Memory),
        "profile_id" => Some(Entity::Profile),
        "reference_case_ids" => Some(Entity::Case),
        _ => None,
    }
}

/// Returns the columns read to name a row.
pub fn name_columns(entity: Entity) -> &'static [&'static str] {
    match entity {
        Entity::Agent | Entity::Subject => &["id", "name"],
        Entity::Episode => &["id", "title", "summary", "topic"],
        Entity::Memory => &["id", "title", "text"],
        Entity::Case => &["id", "prompt"],
        Entity::Profile => &["id", "user_id", "agent_id"],
        _ => &["id"],
    }
}

/// Entities whose rows have names.
pub const NAMED: [Entity; 6] =
    [Entity::Episode, Entity::Memory, Entity::Case, Entity::Agent, Entity::Subject, Entity::Profile];

/// Replaces the rest of an id.
const CUT: char = '…';

/// The rows that a changed row belongs to, regardless of its own name.
pub fn owners(change: &Change) -> impl Iterator<Item = (Entity, &str)> {
    const COLUMNS: [&str; 4] = ["episode_id", "memory_id", "profile_id", "user_id"];
    COLUMNS.into_iter().filter_map(|column| {
        let id = change.after[column].as_str().or(change.before[column].as_str())?;
        Some((named_entity(column)?, id))
    })
}

/// The rows that the columns of a changed row name, before and after.
pub fn referred(change: &Change) -> impl Iterator<Item = (Entity, &str)> {
    let columns = [&change.before, &change.after].into_iter().filter_map(|side| side.as_object()).flatten();
    columns
        .filter_map(|(column, value)| Some((named_entity(column)?, value.as_str()?)))
        .filter(|(_, id)| !id.is_empty())
}

/// Whether an id is 32 hexadecimal digits in five parts.
fn is_uuid(id: &str) -> bool {
    id.len() == 36
        && id.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && id.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
}

/// Names of referenced rows, and the people under a legal hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NameBook {
    names: BTreeMap<(Entity, String), String>,
    /// Banks, which are named by their owner and the name they have.
    banks: BTreeMap<String, Row>,
    /// Rows whose names were already requested, with or without result.
    asked: BTreeSet<(Entity, String)>,
    /// People under a legal hold; `None` until known.
    held: Option<BTreeSet<String>>,
    /// Incremented with every reply, so that drawings made with the names can be cached.
    version: u64,
    /// The latest request for names, until it is answered.
    pub waiting: Option<Ticket>,
}

impl NameBook {
    /// The name of a row, if known.
    pub fn of(&self, entity: Entity, id: &str) -> Option<&str> {
        self.names.get(&(entity, id.to_owned())).map(String::as_str)
    }

    /// The name of the row that a column refers to, if known.
    pub fn named_by(&self, row: &Row, column: &str) -> Option<&str> {
        self.of(named_entity(column)?, row.text(column)?)
    }

    /// Returns the name of a changed row, else that of the row that it belongs to.
    pub fn of_change(&self, change: &Change) -> Option<String> {
        let entity = Entity::parse(&change.entity)?;
        let named = |(entity, id)| self.of(entity, id).map(str::to_owned);
        named((entity, &change.id)).or_else(|| owners(change).find_map(named))
    }

    /// The name of a row for people: a bank is named by its person and its agent, a policy by its bank.
    pub fn of_row(&self, row: &Row) -> String {
        let name = || row_name(row);
        match row.entity {
            Entity::Profile => self.bank(row).unwrap_or_else(name),
            Entity::Policy => self.in_title(&name()),
            _ => name(),
        }
    }

    /// A title with names in place of ids; of a long id without a name, its beginning.
    pub fn in_title(&self, title: &str) -> String {
        const LONGEST: usize = 60;
        let word = |word: &str| {
            let start = word.len() - word.trim_start_matches('(').len();
            let id = word[start..].trim_end_matches([':', ',', ')']);
            let name = NAMED.iter().find_map(|entity| self.of(*entity, id));
            let short = || Some(format!("{}{CUT}", id.get(..8)?)).filter(|_| is_uuid(id));
            let name = name.map(|name| SafeText::limited(name, LONGEST).to_string()).or_else(short);
            name.map_or_else(|| word.to_owned(), |name| [&word[..start], &name, &word[start + id.len()..]].concat())
        };
        title.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    /// Whether a person is under a legal hold; `None` until known.
    pub fn is_held(&self, person: &str) -> Option<bool> {
        self.held.as_ref().map(|held| held.contains(person))
    }

    /// Whether it is known who is under a legal hold.
    pub fn knows_held(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the people under a legal hold; `None` if they could not be read.
    pub fn take_held(&mut self, people: Option<Vec<String>>) {
        let held = people.map(BTreeSet::from_iter);
        if self.held != held {
            (self.held, self.version) = (held, self.version + 1);
        }
    }

    /// Counts the answers.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Referenced ids whose names were not requested yet; they count as requested from now on.
    pub fn unknown<'r>(&mut self, rows: impl IntoIterator<Item = &'r Row>) -> Vec<(Entity, Vec<String>)> {
        if self.names.len() > KEPT {
            *self = NameBook { version: self.version + 1, held: self.held.take(), ..NameBook::default() };
        }
        let mut wanted: BTreeMap<Entity, Vec<String>> = BTreeMap::new();
        for row in rows {
            for column in row.entity.columns() {
                let Some(entity) = named_entity(column.name).filter(|entity| *entity != row.entity) else { continue };
                for id in row.text(column.name).into_iter().chain(row.list(column.name)).filter(|id| !id.is_empty()) {
                    if self.asked.insert((entity, id.to_owned())) {
                        wanted.entry(entity).or_default().push(id.to_owned());
                    }
                }
            }
        }
        wanted.into_iter().collect()
    }

    /// Returns those of the ids whose names were not requested yet; they count as requested from now on.
    pub fn unknown_of<'i>(&mut self, entity: Entity, ids: impl IntoIterator<Item = &'i str>) -> Vec<String> {
        ids.into_iter().filter(|id| self.asked.insert((entity, (*id).to_owned()))).map(str::to_owned).collect()
    }

    /// Takes names from rows that were read for another purpose.
    pub fn learn(&mut self, rows: &[&Row]) {
        // The name of a bank comes from other rows.
        let own = |row: &&&Row| NAMED.contains(&row.entity) && row.entity != Entity::Profile && !row.id().is_empty();
        for row in rows.iter().filter(own) {
            let key = (row.entity, row.id().to_owned());
            let is_news = |name: &String| *name != key.1 && self.names.get(&key) != Some(name);
            if let Some(name) = row_title(row).filter(is_news) {
                self.names.insert(key, name);
                self.version += 1;
            }
        }
    }

    /// Takes rows that have names of their own.
    pub fn take(&mut self, rows: &[Row]) {
        self.version += 1;
        for row in rows {
            if row.entity == Entity::Profile {
                self.banks.insert(row.id().to_owned(), row.clone());
            } else if let Some(name) = row_title(row).filter(|name| name != row.id()) {
                self.names.insert((row.entity, row.id().to_owned()), name);
            }
        }
        let banks: Vec<(String, String)> =
            self.banks.iter().filter_map(|(id, row)| Some((id.clone(), self.bank(row)?))).collect();
        self.names.extend(banks.into_iter().map(|(id, name)| ((Entity::Profile, id), name)));
    }

    /// A bank is named by its person and its agent.
    fn bank(&self, row: &Row) -> Option<String> {
        let name = |column: &str| self.named_by(row, column).or_else(|| row.text(column)).map(str::to_owned);
        let names: Vec<String> = [name("user_id"), name("agent_id")].into_iter().flatten().collect();
        (!names.is_empty()).then(|| names.join(" with "))
    }

    /// Marks the names as possibly out of date: each is kept until it has been requested again.
    pub fn doubt(&mut self) {
        self.asked.clear();
    }

    /// Forgets all names.
    pub fn clear(&mut self) {
        *self = NameBook { version: self.version + 1, ..NameBook::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::naming_columns;
    use super::*;
    use serde_json::json;

    fn feedback(episode: &str) -> Row {
        Row::with(Entity::Feedback, [("id", json!("fb-1")), ("episode_id", json!(episode))])
    }

    #[test]
    fn an_id_is_asked_for_once_and_named_by_its_title() {
        let mut names = NameBook::default();
        let rows = [feedback("ep-1"), feedback("ep-1"), feedback("ep-2")];
        let wanted = names.unknown(&rows);
        assert_eq!(wanted, [(Entity::Episode, vec!["ep-1".to_owned(), "ep-2".to_owned()])]);
        assert!(names.unknown(&rows).is_empty());
        let episode = Row::with(Entity::Episode, [("id", json!("ep-1")), ("title", json!("Reconcile August"))]);
        names.take(&[episode]);
        assert_eq!(names.named_by(&rows[0], "episode_id"), Some("Reconcile August"));
        assert_eq!(names.named_by(&rows[2], "episode_id"), None);
    }

    #[test]
    fn every_name_is_made_of_columns_that_exist() {
        for entity in Entity::ALL {
            assert!(
                name_columns(*entity).iter().all(|name| entity.column(name).is_some() || *name == "id"),
                "{entity}"
            );
            let all = naming_columns(*entity).iter().all(|name| name_columns(*entity).contains(name));
            assert!(all || name_columns(*entity) == ["id"] || *entity == Entity::Profile, "{entity}");
        }
    }
}
