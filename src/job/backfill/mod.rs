//! The backfills: what each does, and how it is made for a database. A file each.

mod aggregates;
mod canvas_links;
mod embeddings;
mod feedback_links;
mod from_events;
mod hashes;
mod hidden;
mod links;
mod metadata;
mod parents;
mod rewards;
mod rows;
mod secrets;
mod sources;
mod texts;
mod utility;

use serde_json::{Map, Value};

use super::plan::{JobOffer, JobSettings};
use super::{Job, record};
use crate::change::ChangeError;
use crate::lab::embed::Endpoint;
use crate::memory::{Entity, agreeing};
use crate::store::{Store, StoreError};

/// Arguments of a backfill, besides its speed.
#[derive(Debug, Clone)]
pub struct BackfillArguments {
    /// Endpoint that makes vectors of texts, or the reason why there is none.
    pub endpoint: Result<Endpoint, String>,
    /// Signals are derived from feedback for episodes that have none.
    pub from_feedback: bool,
}

impl Default for BackfillArguments {
    fn default() -> Self {
        let why = "no profile with an embedding endpoint is chosen: in the settings file, `embedding = { url = \"…\", model \
             = \"…\" }` of a profile names one";
        BackfillArguments { endpoint: Err(why.to_owned()), from_feedback: false }
    }
}

impl BackfillArguments {
    /// With the endpoint that a profile names, if it does.
    #[must_use]
    pub fn with(endpoint: Option<Result<Endpoint, String>>) -> BackfillArguments {
        let usual = BackfillArguments::default();
        BackfillArguments { endpoint: endpoint.unwrap_or(usual.endpoint), ..usual }
    }

    /// The same as an unfinished run was told when it was started.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn as_begun(mut self, store: &Store, name: &str) -> Result<BackfillArguments, ChangeError> {
        let open = store.records().job(name).await?.filter(|run| run.ended_at.is_none());
        let settings: JobSettings = open.and_then(|run| serde_json::from_str(&run.settings).ok()).unwrap_or_default();
        self.from_feedback |= settings.told["from_feedback"] == true;
        Ok(self)
    }
}

type Made = Result<Box<dyn Job>, ChangeError>;

/// Makes a backfill for a database.
#[derive(Debug, Clone, Copy)]
enum Make {
    /// Made from the database alone.
    Plain(fn(&Store) -> Made),
    /// Made from the database and the arguments.
    Told(fn(&Store, &BackfillArguments) -> Made),
}

/// A backfill that can be named.
#[derive(Debug, Clone, Copy)]
pub struct BackfillKind {
    /// Name on the command line.
    pub name: &'static str,
    /// Description of the backfill, in a sentence.
    pub help: &'static str,
    /// Entities of which it concludes something from what is not there: every row of them must be seen.
    rests_on: &'static [Entity],
    make: Make,
}

/// Every backfill, in the order in which they are best run.
pub const ALL: &[BackfillKind] = &[
    BackfillKind {
        name: "canvas-links",
        help: "links episodes to the canvas events of their session: list, count and back-link",
        rests_on: &[Entity::Episode, Entity::CanvasEvent],
        make: Make::Plain(canvas_links::make),
    },
    BackfillKind {
        name: "feedback-links",
        help: "links episodes to the feedback on their executions: list, aggregate and back-link",
        rests_on: &[Entity::Episode, Entity::Feedback],
        make: Make::Plain(feedback_links::make),
    },
    BackfillKind {
        name: "links",
        help: "fixes links: takes out what is not there or repeated, and lets links lead both ways",
        rests_on: &[Entity::Episode, Entity::CanvasEvent, Entity::Feedback, Entity::Case],
        make: Make::Plain(links::make),
    },
    BackfillKind {
        name: "aggregates",
        help: "computes stored counts and feedback scores again from the linked rows",
        rests_on: &[Entity::CanvasEvent, Entity::Feedback],
        make: Make::Plain(aggregates::make),
    },
    BackfillKind {
        name: "utility",
        help: "computes utilities again by replaying the signals",
        rests_on: &[Entity::UtilityEvent, Entity::MemoryLink, Entity::Feedback],
        make: Make::Told(utility::make),
    },
    BackfillKind {
        name: "parents",
        help: "finds the episode that each one without a parent continues: agent, time, likeness",
        rests_on: &[Entity::Episode],
        make: Make::Plain(parents::make),
    },
    BackfillKind {
        name: "episodes-from-events",
        help: "makes episodes out of workflow runs that have none",
        rests_on: &[Entity::Episode, Entity::WorkflowEvent],
        make: Make::Plain(from_events::make),
    },
    BackfillKind {
        name: "metadata",
        help: "fills participants, tools, entities, tags and outcome from an episode's own texts, by rules",
        rests_on: &[],
        make: Make::Plain(metadata::make),
    },
    BackfillKind {
        name: "rewards",
        help: "gives cases without a reward one, from outcome, tool calls and feedback",
        rests_on: &[Entity::MemoryLink, Entity::Episode],
        make: Make::Plain(rewards::make),
    },
    BackfillKind {
        name: "hashes",
        help: "gives cases without a message hash one, by which duplicates are found",
        rests_on: &[],
        make: Make::Plain(hashes::make),
    },
    BackfillKind {
        name: "embeddings",
        help: "gives rows without a vector one, by the endpoint that the profile names",
        rests_on: &[],
        make: Make::Told(embeddings::make),
    },
    BackfillKind {
        name: "secrets",
        help: "takes tokens, keys and passwords out of stored text",
        rests_on: &[],
        make: Make::Plain(secrets::make),
    },
    BackfillKind {
        name: "hidden-characters",
        help: "takes characters out of stored text that nobody sees or that control a terminal",
        rests_on: &[],
        make: Make::Plain(hidden::make),
    },
];

impl BackfillKind {
    /// The backfill of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static BackfillKind> {
        ALL.iter().find(|kind| kind.name == name)
    }

    /// The backfill for a database, told nothing.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] where the database has no place for its result, with the reason.
    pub fn job(&self, store: &Store) -> Result<Box<dyn Job>, ChangeError> {
        self.job_as(store, &BackfillArguments::default())
    }

    /// The backfill for a database, as it is told.
    ///
    /// # Errors
    /// As [`BackfillKind::job`].
    pub fn job_as(&self, store: &Store, given: &BackfillArguments) -> Result<Box<dyn Job>, ChangeError> {
        if let Some(reason) = self.rests_on.iter().find_map(|entity| store.report().unseen(*entity)) {
            return Err(ChangeError::Refused(format!(
                "it concludes from rows that are not there, and {reason}. Run it as a role that sees every row"
            )));
        }
        match self.make {
            Make::Plain(make) => make(store),
            Make::Told(make) => make(store, given),
        }
    }
}

/// Facts of batches that count the rows that were left as they are.
pub const LEFT_OUT: &[&str] = &[sources::ERASED, sources::UNREAD];

/// Explains why rows were left as they are, one line for each reason.
#[must_use]
pub fn left_out(sums: &Map<String, Value>) -> Vec<String> {
    let reasons = [
        (sources::ERASED, "{it is|they are} of people who were erased here, or would name them"),
        (sources::UNREAD, "what would decide cannot be read"),
    ];
    let rows = |why: &str| sums.get(why).and_then(Value::as_u64).filter(|rows| *rows > 0);
    let line = |(why, words): (&str, &str)| {
        let rows = rows(why)?;
        Some(agreeing(rows, &format!("{{#}} {{row is left as it is|rows are left as they are}}: {words}")))
    };
    reasons.into_iter().filter_map(line).collect()
}

/// Every backfill as it stands here: what it would look at, or why it cannot be done, and its latest run.
///
/// # Errors
/// The engine's refusal.
pub async fn offers(store: &Store, given: &BackfillArguments) -> Result<Vec<JobOffer>, ChangeError> {
    let runs = store.records().jobs().await?;
    let mut offers = Vec::new();
    for kind in ALL {
        let (reason, looks_at) = match kind.job_as(store, given) {
            Ok(job) => (None, job.total(store).await?),
            Err(
                ChangeError::Refused(reason)
                | ChangeError::Store(StoreError::Missing { reason, .. } | StoreError::Denied { reason, .. }),
            ) => (Some(reason), None),
            Err(error) => return Err(error),
        };
        offers.push(JobOffer {
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
