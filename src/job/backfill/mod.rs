//! The backfills: what each does, and how it is made for a database. A file each.

mod aggregates;
mod canvas_links;
mod feedback_links;
mod from_events;
mod hashes;
mod metadata;
mod parents;
mod rewards;
mod rows;
mod secrets;
mod sources;
mod utility;

use super::plan::Offer;
use super::{Job, record};
use crate::change::ChangeError;
use crate::store::{Store, StoreError};

/// A backfill that can be named.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Name on the command line.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub help: &'static str,
    make: fn(&Store) -> Result<Box<dyn Job>, ChangeError>,
}

/// Every backfill, in the order in which they are best run.
pub const ALL: &[Kind] = &[
    Kind {
        name: "canvas-links",
        help: "links episodes to the canvas events of their session: list, count and back-link",
        make: canvas_links::make,
    },
    Kind {
        name: "feedback-links",
        help: "links episodes to the feedback on their executions: list, aggregate and back-link",
        make: feedback_links::make,
    },
    Kind {
        name: "aggregates",
        help: "computes stored counts and feedback scores anew from the linked rows",
        make: aggregates::make,
    },
    Kind { name: "utility", help: "computes utilities anew by replaying the signals", make: utility::make },
    Kind {
        name: "parents",
        help: "finds the episode that each one without a parent continues: agent, time, likeness",
        make: parents::make,
    },
    Kind {
        name: "episodes-from-events",
        help: "makes episodes out of workflow runs that have none",
        make: from_events::make,
    },
    Kind {
        name: "metadata",
        help: "fills participants, tools, entities, tags and outcome from an episode's own texts, by rules",
        make: metadata::make,
    },
    Kind {
        name: "rewards",
        help: "gives cases without a reward one, from outcome, tool calls and feedback",
        make: rewards::make,
    },
    Kind {
        name: "hashes",
        help: "gives cases without a message hash one, by which duplicates are found",
        make: hashes::make,
    },
    Kind { name: "secrets", help: "takes tokens, keys and passwords out of stored text", make: secrets::make },
];

impl Kind {
    /// The backfill of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Kind> {
        ALL.iter().find(|kind| kind.name == name)
    }

    /// The backfill for a database.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] where the database has no place for its result, with the reason.
    pub fn job(&self, store: &Store) -> Result<Box<dyn Job>, ChangeError> {
        (self.make)(store)
    }
}

/// Every backfill as it stands here: what it would look at, or why it cannot be done, and its latest run.
///
/// # Errors
/// The engine's refusal.
pub async fn offers(store: &Store) -> Result<Vec<Offer>, ChangeError> {
    let runs = store.jobs().await?;
    let mut offers = Vec::new();
    for kind in ALL {
        let (reason, looks_at) = match kind.job(store) {
            Ok(job) => (None, job.total(store).await?),
            Err(ChangeError::Refused(reason) | ChangeError::Store(StoreError::Missing { reason, .. })) => {
                (Some(reason), None)
            }
            Err(error) => return Err(error),
        };
        offers.push(Offer {
            name: kind.name.to_owned(),
            does: kind.help.to_owned(),
            available: reason.is_none(),
            reason,
            looks_at,
            run: runs.iter().find(|run| run.name == kind.name).map(record::progress),
        });
    }
    Ok(offers)
}
