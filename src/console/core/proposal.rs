//! Proposals that the console plans, confirms and applies: changes, or a backfill.

use std::slice;

use crate::change::operation::Operation;
use crate::change::plan::Change;
use crate::memory::Entity;

/// A proposal to plan, confirm and then apply.
#[derive(Debug, Clone, PartialEq)]
pub enum Proposal {
    /// Changes, one after the other, each with a plan and an audit entry of its own.
    Changes(Vec<Operation>),
    /// A backfill is run, in batches.
    Backfill {
        /// Name of the backfill.
        name: String,
        /// An unfinished run is resumed.
        resume: bool,
    },
}

/// The rows that an operation changes, if it is one that can be applied to marked rows.
fn changed_rows(change: &Operation) -> Option<(Entity, &[String])> {
    use Operation::{Edit, Quarantine, Release, Remove, Retract, Signal};
    Some(match change {
        Signal { episode, .. } => (Entity::Episode, slice::from_ref(episode)),
        Retract { id } => (Entity::UtilityEvent, slice::from_ref(id)),
        Edit { entity, id, .. } => (*entity, slice::from_ref(id)),
        Remove { entity, ids } => (*entity, &ids[..]),
        Quarantine { cases } | Release { cases } => (Entity::Case, &cases[..]),
        _ => return None,
    })
}

impl From<Operation> for Proposal {
    fn from(operation: Operation) -> Self {
        Proposal::Changes(vec![operation])
    }
}

impl Proposal {
    /// The changes that it consists of.
    pub fn changes(&self) -> &[Operation] {
        match self {
            Proposal::Changes(changes) => changes,
            Proposal::Backfill { .. } => &[],
        }
    }

    /// Ids of the changed rows of an entity, if the operation can be applied to marked rows.
    pub fn rows_of(&self, entity: Entity) -> Vec<&str> {
        let rows = self.changes().iter().filter_map(changed_rows).filter(|(of, _)| *of == entity);
        rows.flat_map(|(_, ids)| ids).map(String::as_str).collect()
    }

    /// Leaves out the changes at these positions.
    pub fn leave_out(&mut self, positions: &[usize]) {
        if let Proposal::Changes(changes) = self {
            let mut position = 0..;
            changes.retain(|_| position.next().is_none_or(|position| !positions.contains(&position)));
        }
    }

    /// The single operation; `None` for several, or for a backfill.
    pub fn single(&self) -> Option<&Operation> {
        match self.changes() {
            [single] => Some(single),
            _ => None,
        }
    }

    /// The values that the editing user saw and wants, if they replace no others.
    pub fn wished(&self) -> Vec<Change> {
        self.changes().iter().filter_map(Operation::wished).collect()
    }

    /// Returns a short title that says what the proposal does.
    pub fn title(&self) -> String {
        match self {
            Proposal::Backfill { name, resume: false } => format!("Run {name}"),
            Proposal::Backfill { name, resume: true } => format!("Resume {name}"),
            Proposal::Changes(changes) => match &changes[..] {
                [] => "Nothing".to_owned(),
                [single] => single.title(),
                [first, more @ ..] => format!("{} and {} more", first.title(), more.len()),
            },
        }
    }

    /// The id to type if the change is grave; `None` if the number of rows is typed instead.
    pub fn subject(&self) -> Option<&str> {
        self.single()?.subject()
    }

    /// The reason, if it is part of the operation.
    pub fn reason(&self) -> Option<&str> {
        self.single()?.reason()
    }

    /// The equivalent commands as words, each with the reason that is part of it.
    pub fn commands(&self) -> Vec<(Vec<String>, Option<&str>)> {
        match self {
            Proposal::Backfill { name, resume: false } => vec![(vec!["backfill".to_owned(), name.clone()], None)],
            Proposal::Backfill { name, resume: true } => {
                vec![(vec!["backfill".to_owned(), "resume".to_owned(), name.clone()], None)]
            }
            Proposal::Changes(changes) => changes.iter().map(|change| (change.words(), change.reason())).collect(),
        }
    }

    /// Whether it can affect recall.
    pub fn touches_recall(&self) -> bool {
        match self {
            Proposal::Backfill { .. } => true,
            Proposal::Changes(changes) => changes.iter().any(Operation::touches_recall),
        }
    }

    /// Names of persons in it, to be replaced by pseudonyms or back.
    pub fn persons_mut(&mut self) -> Vec<&mut String> {
        match self {
            Proposal::Backfill { .. } => Vec::new(),
            Proposal::Changes(changes) => changes.iter_mut().flat_map(Operation::persons_mut).collect(),
        }
    }
}
