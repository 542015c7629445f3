//! The backfills, each in its own file, and their setup for a database.

mod aggregates;
mod canvas_links;
mod embeddings;
mod feedback_links;
mod from_events;
mod hashes;
mod hidden;
mod links;
mod metadata;
mod naming;
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
    /// Endpoint that computes vectors of texts, or the reason why there is none.
    pub endpoint: Result<Endpoint, String>,
    /// Whether signals are derived from feedback for episodes without any.
    pub from_feedback: bool,
}

impl Default for BackfillArguments {
    fn default() -> Self {
        let why = "no profile with an embedding endpoint is selected: in the settings file, `embedding = { url = \
             \"…\", model = \"…\" }` of a profile names one";
        BackfillArguments { endpoint: Err(why.to_owned()), from_feedback: false }
    }
}

impl BackfillArguments {
    /// With the endpoint that a profile names, if it does.
    pub fn with(endpoint: Option<Result<Endpoint, String>>) -> BackfillArguments {
        let usual = BackfillArguments::default();
        BackfillArguments { endpoint: endpoint.unwrap_or(usual.endpoint), ..usual }
    }

    /// Uses the arguments with which an unfinished run was started.
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

/// A backfill that can be named.
#[derive(Debug, Clone, Copy)]
pub struct BackfillKind {
    /// Name on the command line.
    pub name: &'static str,
    /// Description of the backfill, in a sentence.
    pub help: &'static str,
    /// Entities whose missing rows matter: every row of them must be visible.
    rests_on: &'static [Entity],
    make: fn(&Store, &BackfillArguments) -> Made,
}

macro_rules! backfills {
    ($($name:literal by $module:ident $([$way:ident])?, rests on ($($entity:ident)*): $help:literal;)*) => {
        /// Every backfill, in the recommended order.
        pub const ALL: &[BackfillKind] = &[$(BackfillKind {
            name: $name,
            help: $help,
            rests_on: &[$(Entity::$entity),*],
            make: backfills!(@ $module $($way)?),
        }),*];
    };
    (@ $module:ident) => { |store, _| $module::make(store) };
    (@ $module:ident told) => { $module::make };
    (@ $module:ident rows) => { |store, _| rows::make(store, &$module::SPEC) };
}

backfills! {
    "canvas-links" by canvas_links, rests on (Episode CanvasEvent):
        "links episodes to the canvas events of their session: list, count and back-link";
    "feedback-links" by feedback_links, rests on (Episode Feedback):
        "links episodes to the feedback on their executions: list, aggregate and back-link";
    "links" by links, rests on (Episode CanvasEvent Feedback Case):
        "fixes links: removes missing and repeated ids, and makes links lead both ways";
    "aggregates" by aggregates [rows], rests on (CanvasEvent Feedback):
        "recomputes stored counts and feedback scores from the linked rows";
    "utility" by utility [told], rests on (UtilityEvent MemoryLink Feedback):
        "recomputes utilities by replaying the signals";
    "parents" by parents, rests on (Episode):
        "finds the episode that each one without a parent continues: agent, time, likeness";
    "episodes-from-events" by from_events, rests on (Episode WorkflowEvent):
        "creates episodes from workflow runs that have none";
    "metadata" by metadata [rows], rests on ():
        "fills participants, tools, entities, tags and outcome from an episode's own texts, by rules";
    "rewards" by rewards [rows], rests on (MemoryLink Episode):
        "gives cases without a reward one, from outcome, tool calls and feedback";
    "hashes" by hashes [rows], rests on ():
        "gives cases without a message hash one, which finds duplicates";
    "embeddings" by embeddings [told], rests on ():
        "gives rows without a vector one, from the endpoint that the profile names";
    "secrets" by secrets [rows], rests on ():
        "removes tokens, keys and passwords from stored text";
    "hidden-characters" by hidden [rows], rests on ():
        "removes invisible characters and terminal controls from stored text";
}

impl BackfillKind {
    /// The backfill with this name.
    pub fn named(name: &str) -> Option<&'static BackfillKind> {
        ALL.iter().find(|kind| kind.name == name)
    }

    /// The backfill for a database, with default arguments.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if the database cannot store its result, with the reason.
    pub fn job(&self, store: &Store) -> Result<Box<dyn Job>, ChangeError> {
        self.job_as(store, &BackfillArguments::default())
    }

    /// The backfill for a database, with arguments.
    ///
    /// # Errors
    /// As [`BackfillKind::job`].
    pub fn job_as(&self, store: &Store, given: &BackfillArguments) -> Result<Box<dyn Job>, ChangeError> {
        if let Some(reason) = self.rests_on.iter().find_map(|entity| store.report().unseen(*entity)) {
            return Err(ChangeError::Refused(format!(
                "it draws conclusions from missing rows, and {reason}. Run it with a role that sees every row"
            )));
        }
        (self.make)(store, given)
    }
}

/// Facts of batches that count the rows that were left unchanged.
pub const LEFT_OUT: &[&str] = &[sources::ERASED, sources::HELD, sources::UNREAD, sources::CLAIMED];

/// Explains why rows were left unchanged, one line for each reason.
pub fn left_out(sums: &Map<String, Value>) -> Vec<String> {
    let reasons = [
        (sources::ERASED, "{it is|they are} of people who were erased here, or would name them"),
        (sources::HELD, "{it belongs|they belong} to people under a legal hold; `unhold` ends that"),
        (sources::UNREAD, "the deciding value cannot be read"),
        (sources::CLAIMED, "{it points|they point} back to an episode although another one lists {it|them}"),
    ];
    let rows = |why: &str| sums.get(why).and_then(Value::as_u64).filter(|rows| *rows > 0);
    let line = |(why, words): (&str, &str)| {
        let rows = rows(why)?;
        Some(agreeing(rows, &format!("{{#}} {{row is left unchanged|rows are left unchanged}}: {words}")))
    };
    reasons.into_iter().filter_map(line).collect()
}

/// Every backfill available here: its work, or the reason why it cannot run, and its latest run.
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
