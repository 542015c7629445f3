//! Jobs for the core: lists, runs, and stops them.

use std::sync::Arc;

use tokio::sync::watch;

use super::change::{failure, failure_of};
use super::replies::ReplySender;
use crate::change::{Author, ChangeError, Plan, anchor};
use crate::console::core::{Message, Reply, RequestFailure, Ticket};
use crate::console::screens::jobs::JobAsk;
use crate::job::backfill::{self, BackfillArguments, BackfillKind};
use crate::job::plan::{JobBeat, JobMove, JobOffer, JobProgress, JobReceipt, JobSettings, JobWish};
use crate::job::{self, JobEntry, record};
use crate::store::Store;

pub async fn offers(store: &Store, given: &BackfillArguments) -> Result<Vec<JobOffer>, RequestFailure> {
    backfill::offers(store, given).await.map_err(|e| failure_of("The list of jobs could not be read", &e))
}

fn named(name: &str) -> Result<&'static BackfillKind, ChangeError> {
    BackfillKind::named(name).ok_or_else(|| ChangeError::NotFound(format!("there is no backfill {name}")))
}

/// Plans a backfill, without running it.
pub async fn plan(store: &Store, name: &str, given: &BackfillArguments) -> Result<Plan, ChangeError> {
    record::ready(store).await?;
    let given = given.clone().as_begun(store, name).await?;
    let job = named(name)?.job_as(store, &given)?;
    job::look(store, &*job).await
}

pub struct ShellRun {
    pub ticket: Ticket,
    pub name: String,
    /// An unfinished run is resumed.
    pub resume: bool,
    pub given: BackfillArguments,
    /// Person who starts the run, and the reason.
    pub author: Author,
}

/// Runs a backfill with progress reports, and returns its receipt.
pub async fn run(
    store: Arc<Store>,
    run: ShellRun,
    wish: watch::Receiver<JobWish>,
    replies: ReplySender,
) -> Result<Box<JobReceipt>, RequestFailure> {
    let ShellRun { ticket, name, resume, given, author } = run;
    // Batches before the failure stay.
    let failed = |e: ChangeError| failure_of(&format!("Not finished: {name}"), &e);
    let given = given.as_begun(&store, &name).await.map_err(failed)?;
    let job = named(&name).and_then(|kind| kind.job_as(&store, &given)).map_err(failed)?;
    let entry = if resume { JobEntry::Resume } else { JobEntry::Begin };
    let mut each = |beat: JobBeat| replies.send(Message::Reply(ticket, Reply::JobBeat(beat)));
    let outcome = job::run(&store, &*job, &author, &JobSettings::default(), entry, wish, &mut each).await;
    let mut receipt = outcome.map_err(failed)?.receipt();
    receipt.receipt.disclosures.extend(anchor::missed(&store).await);
    Ok(Box::new(receipt))
}

/// Asks a run of another process to stop.
pub async fn ask(store: &Store, name: &str, ask: JobAsk) -> Result<JobProgress, RequestFailure> {
    let by = if ask == JobAsk::Cancel { JobMove::AskCancel } else { JobMove::AskPause };
    job::ask(store, name, by).await.map(|row| record::progress(&row)).map_err(|e| failure(name, &e))
}
