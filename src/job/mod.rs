//! Long changes, done in batches that each leave a checkpoint and an audit entry in their own transaction: cancelled,
//! killed or quit, the checkpoint is the truth.
//!
//! A [`Job`] defines a batch; [`run()`] does the rest: leases, batch sizes, waiting, quarantine, verification. Each
//! backfill is a file under [`backfill`].

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
    /// Our tables; `None` if the job is only previewed.
    pub own: Option<&'a OwnTables>,
    /// Start of the batch, as given by [`Job::begin`] or the batch before.
    pub place: &'a Value,
    /// Most rows to process.
    pub size: usize,
    /// Whether the batch is only previewed: nothing is done for it that costs money or sends data elsewhere.
    pub dry: bool,
}

/// One batch: its changes, and the position of the next one.
#[derive(Debug, Clone)]
pub struct JobBatch {
    /// Changes of the batch, sealed by [`crate::change::Draft::seal_batch`]; may be empty.
    pub plan: Plan,
    /// Position of the next batch; `None` if this was the last.
    pub next: Option<Value>,
    /// Number of rows processed.
    pub seen: usize,
    /// Rows that cannot be handled: written down, and skipped.
    pub bad: Vec<BadRow>,
}

/// A long change.
///
/// A batch is planned outside of any transaction and applied in one, together with the checkpoint. It must only cover
/// rows that *still need it*: planned again after it was applied, it is empty.
pub trait Job: Send + Sync {
    /// Name, unique in a database while a run of it is unfinished.
    fn name(&self) -> &str;

    /// Returns the arguments of the job, stored with the run.
    fn told(&self) -> Value {
        Value::Null
    }

    /// The tables it reads and writes: a run is not resumed if their columns have changed.
    fn relies_on<'a>(&'a self, store: &'a Store) -> Vec<TableName>;

    /// Number of rows to process, if it can be counted quickly.
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

    /// Returns the reason why the job's entries cannot be undone; `None` if each of them can.
    fn undo_reason(&self) -> Option<String> {
        None
    }

    /// Sums up the results in numbers, for users: `sums` are the facts of its batches, added up.
    fn summed(&self, sums: &Map<String, Value>) -> Vec<String> {
        backfill::left_out(sums)
    }

    /// Checks the result at the end. Rows that still need the job are found by planning again; this checks everything
    /// else.
    fn verify<'a>(&'a self, store: &'a Store) -> BoxFuture<'a, Result<Vec<JobCheck>, ChangeError>> {
        let _ = store;
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Whether a batch may be planned while the previous one is being written: the result must be the same whether that
    /// one is committed or not. Rows are compared with their old values on writing in any case.
    fn plans_ahead(&self) -> bool {
        false
    }

    /// Whether planning it again at the end must find nothing; false if planning costs money.
    fn is_planned_again(&self) -> bool {
        true
    }
}
