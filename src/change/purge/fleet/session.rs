//! The record of a purge of several databases, stored until all of them are verified: what is needed to finish it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{FleetErasure, FleetMember};
use crate::change::now;
use crate::change::purge::decide::NewDecisions;
use crate::change::purge::plan::PurgeOptions;
use crate::store::Store;

/// Identifies a database of a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetPlace {
    /// Name of the database, for users.
    pub label: String,
    /// Location of the database, without a password.
    pub location: Option<String>,
    /// Identity of the database; `None` if it was not reached yet, or has none.
    pub database_id: Option<String>,
}

impl FleetPlace {
    /// Describes a member of the fleet, whether it is open or could not be opened.
    pub async fn of(member: &FleetMember, store: Option<&Store>) -> Self {
        let own = match store {
            Some(store) => store.records().own().await.ok().flatten(),
            None => None,
        };
        let database_id = own.map(|own| own.database_id).filter(|id| !id.is_empty());
        FleetPlace { label: member.label.clone(), location: Some(member.location.clone()), database_id }
    }

    /// Whether both are the same database: by identity, otherwise by label or location.
    pub fn is(&self, other: &FleetPlace) -> bool {
        match (&self.database_id, &other.database_id) {
            (Some(one), Some(other)) => one == other,
            _ => self.label == other.label || self.location.is_some() && self.location == other.location,
        }
    }
}

/// Options and scope of an erasure in several databases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetSession {
    /// Options of the erasure.
    pub options: PurgeOptions,
    /// Folder for the export of the person's data, by database, written before the erasure.
    pub export: Option<PathBuf>,
    /// Handles that may identify the person in any of them.
    pub handles: BTreeSet<String>,
    /// The databases.
    pub databases: Vec<FleetPlace>,
    /// Time when the erasure began.
    pub started_at: String,
}

impl FleetSession {
    /// Combines the current request with an earlier one: choices that are not repeated are kept, and so are the earlier
    /// databases.
    pub fn new(erasure: &FleetErasure<'_>, resume: Option<&NewDecisions>, earlier: Option<&FleetSession>) -> Self {
        let options = match (earlier, resume) {
            (Some(earlier), Some(decisions)) => earlier.options.resumed(erasure.options, decisions),
            _ => erasure.options.clone(),
        };
        let kept = |earlier: &FleetSession| resume.and_then(|_| earlier.export.clone());
        FleetSession {
            options,
            export: erasure.export.map(PathBuf::from).or_else(|| earlier.and_then(kept)),
            handles: earlier.map(|earlier| earlier.handles.clone()).unwrap_or_default(),
            databases: earlier.map(|earlier| earlier.databases.clone()).unwrap_or_default(),
            started_at: earlier.map_or_else(now, |earlier| earlier.started_at.clone()),
        }
    }
}

/// The databases named now, with what was known of them, followed by those no longer named.
pub fn known(mut places: Vec<FleetPlace>, earlier: &[FleetPlace], with_missing: bool) -> Vec<FleetPlace> {
    let mut missing = Vec::new();
    for old in earlier {
        match places.iter_mut().find(|place| place.is(old)) {
            Some(place) => place.database_id = place.database_id.take().or_else(|| old.database_id.clone()),
            None => missing.push(old.clone()),
        }
    }
    places.extend(missing.into_iter().filter(|_| with_missing));
    places
}
