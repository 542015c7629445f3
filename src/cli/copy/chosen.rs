//! The rows that a copy takes: those that meet its conditions, and those that belong to one of them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::super::failure::CommandFailure;
use crate::change::import::ORDER;
use crate::memory::filter::{Filter, alternatives};
use crate::memory::packed::id_table::IdTable;
use crate::memory::packed::records::RecordSorter;
use crate::memory::query::Query;
use crate::memory::{Entity, Row, digest};
use crate::store::scratch;

/// Most bytes of hashes of one entity's ids in memory; more are in a scratch file.
const HELD: usize = 2 << 20;

/// Kinds of rows that belong to no other.
const ALONE: [Entity; 3] = [Entity::Episode, Entity::Memory, Entity::Access];

/// The entities that come last if there are conditions, in order: they are taken with the rows that they refer to, or
/// that refer to them.
const LAST: [Entity; 3] = [Entity::MemoryLink, Entity::Agent, Entity::Subject];

pub(super) struct Chosen<'a> {
    conditions: &'a [String],
    /// The moment for computing ages.
    now: DateTime<Utc>,
    /// Entities that have the columns of all conditions.
    meeting: BTreeSet<Entity>,
    /// Ids of each entity: of rows taken, and of rows they refer to.
    ids: BTreeMap<Entity, ChosenIds>,
}

/// Ids as hashes: none are added once they are queried.
enum ChosenIds {
    Open(RecordSorter<1>),
    Closed(IdTable<1>),
}

impl Default for ChosenIds {
    fn default() -> Self {
        ChosenIds::Open(scratch::sorter().within(HELD))
    }
}

impl<'a> Chosen<'a> {
    /// Chooses by some conditions; without one, every row.
    ///
    /// # Errors
    /// Code 2 if one of them is invalid.
    pub fn new(conditions: &'a [String]) -> Result<Self, CommandFailure> {
        let now = Utc::now();
        for text in conditions {
            if Entity::ALL.iter().any(|entity| alternatives(*entity, text).len() > 1) {
                // Entities lack columns: an `or` between two conditions would silently lose one.
                return Err(CommandFailure::usage(format!(
                    "--where: `{text}`: copy does not support `or`; copy once for each"
                )));
            }
            if !Entity::ALL.iter().any(|entity| condition(*entity, text).is_some()) {
                filter(Entity::Episode, text, now)?;
            }
        }
        let meets = |entity: &Entity| conditions.iter().all(|text| condition(*entity, text).is_some());
        let meeting = ORDER.into_iter().filter(meets).collect();
        Ok(Chosen { conditions, now, meeting, ids: BTreeMap::new() })
    }

    /// Whether every row is taken.
    pub fn takes_all(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The entities, in the order in which their rows are chosen.
    pub fn order(&self) -> Vec<Entity> {
        let mut order = ORDER.to_vec();
        if !self.takes_all() {
            order.sort_by_key(|entity| LAST.iter().position(|last| last == entity));
        }
        order
    }

    /// The query for an entity's rows: the conditions whose column it has. For rows that none of them can choose, only
    /// the ids are read, to count them.
    ///
    /// # Errors
    /// Code 2 if one of them cannot be parsed.
    pub fn query(&self, entity: Entity) -> Result<Query, CommandFailure> {
        let mut query = Query::new(entity).in_parts();
        for text in self.conditions.iter().filter_map(|text| condition(entity, text)) {
            query.filters.push(filter(entity, &text, self.now)?);
        }
        query.columns = (ALONE.contains(&entity) && !self.meets(entity)).then(|| vec!["id"]);
        Ok(query)
    }

    /// The query for the cases that alone decide which banks are taken, if so.
    ///
    /// # Errors
    /// Code 2 if a condition cannot be parsed.
    pub fn banked(&self) -> Result<Option<Query>, CommandFailure> {
        if self.takes_all() || self.meets(Entity::Profile) || !self.meets(Entity::Case) {
            return Ok(None);
        }
        Ok(Some(Query { columns: Some(vec!["profile_id"]), ..self.query(Entity::Case)? }))
    }

    fn meets(&self, entity: Entity) -> bool {
        self.meeting.contains(&entity)
    }

    /// Keeps the rows of a page that are taken, and records the ids they refer to.
    ///
    /// # Errors
    /// Ids that did not fit in memory could not be written or read.
    pub fn keep(&mut self, entity: Entity, rows: &mut Vec<Row>) -> Result<(), CommandFailure> {
        if self.takes_all() {
            return Ok(());
        }
        self.close_parents(entity)?;
        rows.retain(|row| self.takes(entity, row));
        for ids in self.ids.values() {
            if let ChosenIds::Closed(table) = ids {
                table.check().map_err(|e| CommandFailure::failed(e.to_string()))?;
            }
        }
        rows.iter().for_each(|row| self.note(row));
        Ok(())
    }

    /// Records the banks of cases, if these alone decide which banks are taken.
    pub fn note_banks(&mut self, cases: &[Row]) {
        cases.iter().filter_map(|case| case.text("profile_id")).for_each(|id| self.add(Entity::Profile, id));
    }

    fn takes(&self, entity: Entity, row: &Row) -> bool {
        let meets = self.meets(entity);
        match entity {
            _ if ALONE.contains(&entity) => meets,
            // A person known only by an id is taken with the rows that refer to them.
            Entity::Subject => self.has(entity, row.id()) || meets && row.is_known_person(),
            Entity::Agent | Entity::Profile => self.has(entity, row.id()) || meets,
            Entity::Case => meets || self.belongs(entity, row),
            Entity::MemoryLink => parents(entity).iter().all(|(column, of)| self.names(row, column, *of)),
            _ => self.belongs(entity, row) || meets && self.is_free(entity, row),
        }
    }

    /// Whether a row refers to one that is taken, or is referred to by it.
    fn belongs(&self, entity: Entity, row: &Row) -> bool {
        let named = parents(entity).iter().find(|(column, _)| row.text(column).is_some());
        named.is_some_and(|(column, of)| self.names(row, column, *of)) || self.has(entity, row.id())
    }

    /// Whether a row that meets the conditions is taken by itself: it belongs to no row, or to one of an entity that no
    /// condition can choose.
    fn is_free(&self, entity: Entity, row: &Row) -> bool {
        let of = if entity == Entity::Policy { Entity::Profile } else { Entity::Episode };
        !self.meets(of) || parents(entity).first().is_none_or(|(column, _)| row.text(column).is_none())
    }

    fn names(&self, row: &Row, column: &str, of: Entity) -> bool {
        row.text(column).is_some_and(|id| self.has(of, id))
    }

    /// Records the ids that a taken row refers to.
    fn note(&mut self, row: &Row) {
        match row.entity {
            Entity::Episode | Entity::Memory | Entity::Profile => self.add(row.entity, row.id()),
            // An id recalled by an episode may be that of a case.
            Entity::Case => self.add(Entity::Memory, row.id()),
            _ => {}
        }
        for (column, of) in [("agent_id", Entity::Agent), ("user_id", Entity::Subject)] {
            row.text(column).into_iter().for_each(|id| self.add(of, id));
        }
        if row.entity == Entity::Episode {
            self.add(Entity::WorkflowEvent, row.id());
            for (column, of) in LISTS {
                let ids = row.get(column).as_array().into_iter().flatten();
                ids.filter_map(|id| id.as_str()).for_each(|id| self.add(of, id));
            }
        }
    }

    fn add(&mut self, of: Entity, id: &str) {
        if let ChosenIds::Open(sorter) = self.ids.entry(of).or_default() {
            sorter.add([digest::digest(id)]);
        }
    }

    fn has(&self, of: Entity, id: &str) -> bool {
        matches!(self.ids.get(&of), Some(ChosenIds::Closed(table)) if table.get(id).is_some())
    }

    /// Closes the ids that decide about a kind of rows.
    fn close_parents(&mut self, entity: Entity) -> Result<(), CommandFailure> {
        // A bank that meets the conditions itself is recorded when it is read.
        let itself = Some(entity).filter(|_| entity != Entity::Profile || !self.meets(entity));
        let own = itself.filter(|entity| !ALONE.contains(entity));
        for of in parents(entity).iter().map(|(_, of)| *of).chain(own) {
            if let ChosenIds::Open(sorter) = self.ids.entry(of).or_default() {
                let table = IdTable::of(sorter.take(), |_, _| ()).map_err(|e| CommandFailure::failed(e.to_string()))?;
                self.ids.insert(of, ChosenIds::Closed(table));
            }
        }
        Ok(())
    }
}

/// Lists of an episode, and the entities that they refer to: runs stand for their events.
const LISTS: [(&str, Entity); 3] =
    [("execution_ids", Entity::WorkflowEvent), ("canvas_ids", Entity::CanvasEvent), ("feedback_ids", Entity::Feedback)];

/// The columns by which a row belongs to others, with the entities they refer to; the first one with a value counts.
fn parents(entity: Entity) -> &'static [(&'static str, Entity)] {
    match entity {
        Entity::Segment | Entity::CanvasEvent | Entity::UtilityEvent => &[("episode_id", Entity::Episode)],
        Entity::Feedback => &[("episode_id", Entity::Episode), ("execution_id", Entity::WorkflowEvent)],
        Entity::MemoryLink => &[("episode_id", Entity::Episode), ("memory_id", Entity::Memory)],
        Entity::WorkflowEvent => &[("run_id", Entity::WorkflowEvent)],
        Entity::Case | Entity::Policy => &[("profile_id", Entity::Profile)],
        _ => &[],
    }
}

/// The name that a condition begins with.
fn column_of(text: &str) -> &str {
    text.trim_start_matches([' ', '(']).split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

fn filter(entity: Entity, text: &str, now: DateTime<Utc>) -> Result<Filter, CommandFailure> {
    Filter::parse(entity, text, now).map_err(|e| CommandFailure::usage(format!("--where: {e}")))
}

/// A condition as it applies to an entity: one on `user_id` applies to the id of people.
fn condition(entity: Entity, text: &str) -> Option<String> {
    let name = column_of(text);
    let itself = match name {
        "agent_id" => Some(Entity::Agent),
        "user_id" => Some(Entity::Subject),
        "episode_id" => Some(Entity::Episode),
        "memory_id" => Some(Entity::Memory),
        "profile_id" => Some(Entity::Profile),
        _ => None,
    };
    if itself == Some(entity) {
        return Some(text.replacen(name, "id", 1));
    }
    entity.column(name).map(|_| text.to_owned())
}
