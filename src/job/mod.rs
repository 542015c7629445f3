//! Long changes, done in batches that each leave a checkpoint and an audit entry in their own transaction: cancelled,
//! killed or quit, the checkpoint is the truth.
//!
//! A [`Job`] says what a batch is; [`run()`] does the rest: who may run it, how large batches are, when to wait, what is
//! set aside, how it is verified. Each backfill is a file of its own under [`backfill`].

pub mod backfill;
pub mod drift;
mod engine;
mod first_changes;
mod look;
mod outcome;
mod pace;
pub mod plan;
pub mod record;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::change::{ChangeError, Plan};
use crate::store::Store;
use crate::store::own::OwnTables;
use crate::store::stored::TableName;

pub use engine::run;
pub use look::look;
pub use outcome::JobOutcome;
use plan::{BadRow, JobCheck};
pub use record::{JobEntry, ask};

/// Request for one batch.
#[derive(Debug, Clone, Copy)]
pub struct BatchAsk<'a> {
    /// The database.
    pub store: &'a Store,
    /// Our tables; none when the job is only looked at.
    pub own: Option<&'a OwnTables>,
    /// Start of the batch, as given by [`Job::begin`] or the batch before.
    pub place: &'a Value,
    /// Rows to look at, at most.
    pub size: usize,
    /// The batch is only looked at and never applied: nothing is done for it that costs money or leaves this machine.
    pub dry: bool,
}

/// One batch: what changes, and where the next one begins.
#[derive(Debug, Clone)]
pub struct JobBatch {
    /// Changes of the batch, sealed by [`crate::change::Draft::seal_batch`]; may be empty.
    pub plan: Plan,
    /// Start of the next batch; `None` when this was the last.
    pub next: Option<Value>,
    /// Rows that were looked at.
    pub seen: usize,
    /// Rows that cannot be handled: written down, and skipped.
    pub bad: Vec<BadRow>,
}

/// A long change.
///
/// A batch is planned outside of any transaction and applied in one together with the checkpoint. It must be about rows
/// that *still need it*: planned again after it was applied, it is empty.
pub trait Job: Send + Sync {
    /// Name, unique in a database while a run of it is unfinished.
    fn name(&self) -> &str;

    /// Returns the arguments that the job was given, kept with the run.
    fn told(&self) -> Value {
        Value::Null
    }

    /// The tables it reads and writes: a checkpoint is not gone on from when their columns have changed.
    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName>;

    /// Rows to process, where that can be counted quickly.
    fn total<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Option<u64>, ChangeError>>;

    /// Returns the start of the first batch.
    fn begin(&self) -> Value {
        Value::Null
    }

    /// Plans one batch.
    fn batch<'a>(&'a self, ask: BatchAsk<'a>) -> BoxFuture<'a, Result<JobBatch, ChangeError>>;

    /// Lists effects of the job besides the changed rows, for users; shown with the plan and the receipt.
    fn effects(&self) -> Vec<String> {
        Vec::new()
    }

    /// Lists facts that users should know before the job is done.
    fn disclosures(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the reason why the job's entries cannot be undone; `None` when each of them can.
    fn undo_reason(&self) -> Option<String> {
        None
    }

    /// Sums up the results in numbers, for users: `sums` are the facts of its batches, added up.
    fn summed(&self, sums: &Map<String, Value>) -> Vec<String> {
        backfill::left_out(sums)
    }

    /// Looks at the result when everything is done. Rows that still need the job are found by planning it again; this is
    /// for what else must hold.
    fn verify<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Vec<JobCheck>, ChangeError>> {
        let _ = store;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Whether a batch may be planned while the one before is being written: it comes out the same whether that one stands
    /// or not. Every row is compared with what it was when it is written, in any case.
    fn plans_ahead(&self) -> bool {
        false
    }

    /// Whether planning it again must find nothing: not so where planning would cost money.
    fn is_planned_again(&self) -> bool {
        true
    }
}
