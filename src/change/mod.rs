//! The only way to write, for console and commands alike: an operation becomes a [`Plan`], a plan is applied in one
//! transaction with its audit entry, and the [`Receipt`] states what was done and how to undo it.
//!
//! Each operation is a file: it reads rows through a [`Draft`], which records what was read, and determines the stored
//! rows to change. No transaction is open while a person reads a plan.

pub mod anchor;
pub mod apply;
pub mod as_of;
pub mod audit;
pub mod batch;
pub mod chain;
mod draft;
pub mod edit;
pub mod feedback;
pub mod findings;
mod given;
pub mod held;
pub mod hold;
pub mod import;
mod lineage;
pub mod merge;
pub mod migrate;
pub mod operation;
pub mod plan;
pub mod policy;
pub mod profile;
pub mod prune;
pub mod purge;
pub mod quarantine;
mod read_back;
pub mod record;
mod referred;
pub mod remove;
mod restored;
pub mod retain;
pub mod reward;
pub mod side;
pub mod signal;
pub mod suppress;
pub mod undo;
pub mod uses;
pub mod waiting;
pub mod what_if;

use std::future::Future;
use std::io;

use crate::lab::LabError;
use crate::store::write::WriteError;
use crate::store::{Store, StoreError};
use signal::SignalNote;
use waiting::WaitingTries;

pub use apply::{Author, apply};
pub use draft::{Draft, not_yet, not_yet_for, obstacle};
pub use operation::Operation;
pub use plan::{Change, ChangeDanger, Plan, Receipt, ShownPlan};
pub use side::ChangeSide;

/// Reason why a change was not made. Unless the variant says otherwise, nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A request that makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A named thing that does not exist.
    #[error("{0}")]
    NotFound(String),
    /// Rows have changed since the plan read them.
    #[error("{message}; nothing was written{}", listed(.rows))]
    Conflict {
        /// Description of what changed since the plan was made.
        message: String,
        /// The rows, for people.
        rows: Vec<String>,
    },
    /// The database cannot do that, or must not.
    #[error("{0}")]
    Refused(String),
    /// The audit trail is damaged.
    #[error("{0}")]
    Broken(String),
    /// An erasure cannot continue as planned, or a job was taken over; its earlier batches stay applied.
    #[error("{0}")]
    Paused(String),
    /// A failure of any other kind.
    #[error("{0}")]
    Failed(String),
    /// It is unknown whether it was written.
    #[error("{0}")]
    Uncertain(String),
    /// Reading failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reason why a transaction was not finished.
#[derive(Debug, thiserror::Error)]
pub enum FailedTransaction {
    /// The engine refused.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The change cannot be made.
    #[error(transparent)]
    Change(#[from] ChangeError),
}

impl From<FailedTransaction> for ChangeError {
    fn from(failed: FailedTransaction) -> Self {
        match failed {
            FailedTransaction::Write(error) => error.into(),
            FailedTransaction::Change(error) => error,
        }
    }
}

/// The number after the highest one in a column.
///
/// # Errors
/// [`ChangeError::Refused`] if there is none.
pub(crate) fn number_after(highest: i64, column: &str) -> Result<i64, ChangeError> {
    let refused = || {
        ChangeError::Refused(format!(
            "the stored {column} {highest} is the highest number possible: correct it \
         first"
        ))
    };
    highest.checked_add(1).ok_or_else(refused)
}

fn listed(rows: &[String]) -> String {
    let advice = if rows.is_empty() { "" } else { ". Plan again and check what has changed:" };
    [advice].into_iter().chain(rows.iter().flat_map(|row| ["\n  ", row])).collect()
}

impl From<LabError> for ChangeError {
    fn from(error: LabError) -> Self {
        match error {
            LabError::NotFound(words) => ChangeError::NotFound(words),
            LabError::Refused(words) => ChangeError::Refused(words),
            LabError::Scratch(_) => ChangeError::Failed(error.to_string()),
            LabError::Usage(words) => ChangeError::Usage(words),
            LabError::Store(error) => ChangeError::Store(error),
        }
    }
}

/// Only errors of scratch files are converted without a message of their own.
impl From<io::Error> for ChangeError {
    fn from(error: io::Error) -> Self {
        LabError::from(error).into()
    }
}

impl From<WriteError> for ChangeError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Store(error) if error.is_lost() => ChangeError::Failed(format!(
                "the connection was lost before the change was final, so nothing was written: {error}; run it again \
                 once the server answers"
            )),
            WriteError::Store(error) => ChangeError::Store(error),
            WriteError::ReadOnly(_) | WriteError::Rejected(_) | WriteError::Displaced(_) => {
                ChangeError::Refused(error.to_string())
            }
            WriteError::Busy(_) => {
                ChangeError::Failed(format!("{error}; nothing was written. Try again when it has finished"))
            }
            WriteError::Missed { .. } => {
                let why = "most likely a trigger, a rule, or a policy (row-level security) of the table ignored the \
                           write; then planning again does not help; or someone else changed the rows just now";
                ChangeError::Conflict { message: format!("{error}: {why}"), rows: Vec::new() }
            }
            WriteError::Unknown(_) => ChangeError::Uncertain(error.to_string()),
        }
    }
}

/// Most attempts to plan a change again because rows changed between planning and applying.
const PLANNED_AT_MOST: u32 = 6;

/// Plans and applies in one go, if no person reads the plan in between: if rows change meanwhile, it plans again from
/// the start with the rows locked, a limited number of times.
///
/// # Errors
/// As planning and [`apply()`].
pub async fn plan_and_apply<F, P>(store: &Store, author: &Author, mut plan: F) -> Result<(Plan, Receipt), ChangeError>
where
    F: FnMut() -> P,
    P: Future<Output = Result<Plan, ChangeError>>,
{
    let planned = plan().await?;
    let mut waiting = WaitingTries::begin();
    match apply::apply_within(store, &planned, author, &mut waiting).await {
        Err(ChangeError::Conflict { .. }) => {}
        outcome => return outcome.map(|receipt| (planned, receipt)),
    }
    let (mut tries, mut is_final) = (1, false);
    loop {
        tries += 1;
        match apply::plan_under_lock(store, author, &planned, &mut plan, &mut waiting, &mut is_final).await {
            Err(conflict @ ChangeError::Conflict { .. }) => {
                if is_final || tries >= PLANNED_AT_MOST || !waiting.again().await {
                    return Err(conflict);
                }
            }
            outcome => return outcome,
        }
    }
}

/// Plans an operation on behalf of `author`; writes nothing.
///
/// # Errors
/// As planning that operation.
pub async fn plan(store: &Store, operation: &Operation, author: &Author) -> Result<Plan, ChangeError> {
    let plan = match operation {
        Operation::AddFeedback { episode, fields } => feedback::add(store, episode, fields).await,
        Operation::Signal { episode, signal, reason, feedback } => {
            let note = SignalNote { actor: &author.actor, reason: reason.as_deref(), feedback: feedback.as_ref() };
            signal::add(store, episode, *signal, note).await
        }
        Operation::Retract { id } => signal::retract(store, id).await,
        Operation::Link { child, parent } => chain::link(store, child, parent).await,
        Operation::Unlink { child } => chain::unlink(store, child).await,
        Operation::Reward { case, reward, outcome } => reward::set(store, case, *reward, outcome.as_deref()).await,
        Operation::Window { profile, window } => profile::set_window(store, profile, *window).await,
        Operation::ActivatePolicy { id } => policy::activate(store, id).await,
        Operation::TrainPolicy { bank, pairs, seed } => policy::train_on(store, bank, pairs.as_ref(), *seed).await,
        Operation::Prune(rules) => prune::plan(store, rules).await,
        Operation::Quarantine { cases } => quarantine::hold(store, cases, true).await,
        Operation::Release { cases } => quarantine::hold(store, cases, false).await,
        Operation::Hold { person, reason } => hold::hold(store, person, reason.as_deref(), &author.actor).await,
        Operation::Unhold { person } => hold::unhold(store, person).await,
        Operation::Record { entity, text } => record::plan(store, *entity, text).await,
        Operation::Import { format, name, text, skip_bad } => import::plan(store, *format, name, text, *skip_bad).await,
        Operation::Edit { entity, id, set, instead_of } => edit::edit(store, *entity, id, set, instead_of).await,
        Operation::Remove { entity, ids } => remove::plan(store, *entity, ids).await,
        Operation::Supersede { memory, text } => edit::supersede(store, memory, text).await,
        Operation::Merge { memory, copies } => merge::plan(store, memory, copies).await,
        Operation::Retain { rules, .. } => retain::plan(store, rules).await,
        Operation::Undo { seq } => undo::undo(store, *seq).await,
    };
    let plan = apply::report_unseen(store, held::refuse(store, plan?).await?).await?;
    let plan = apply::report_refused(store, plan).await?;
    let mut plan = apply::report_inheriting_rows(store, plan).await?;
    if matches!(operation, Operation::Prune(_) | Operation::Retain { .. }) {
        plan.rules = Some(operation.clone());
        plan.plan_id = plan.digest();
    }
    Ok(plan)
}

/// A new id: a random UUID (version 4).
pub fn new_id() -> String {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid().to_string()
}

/// The current time, in the canonical spelling.
pub fn now() -> String {
    crate::memory::time::spell_utc(chrono::Utc::now()).unwrap_or_default()
}
