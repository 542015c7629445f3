//! Change state of a session: whether changes are allowed, the running operation, and the changes made.

use std::collections::BTreeSet;

use serde_json::Value;

use super::command::CommandId;
use super::proposal::Proposal;
use super::ticket::{RequestFailure, Ticket};
use crate::change::operation::Operation;
use crate::change::plan::erasure::UnfinishedErasure;
use crate::change::plan::{Change, Counts, Receipt};
use crate::memory::{Entity, Row, agreeing};

/// Change state of a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changing {
    /// Whether changes are allowed. False at the start.
    pub unlocked: bool,
    /// The command that was refused because the session is locked, with the selected row. Unlocking continues with it
    /// as long as that row stays selected.
    pub then: Option<(CommandId, Option<(Entity, String)>)>,
    /// Pending request that checks whether the database is writable.
    pub asking: Option<Ticket>,
    /// Optional migrations among the running ones, and whether they had prevented unlocking.
    pub migrating: (Vec<String>, bool),
    /// The operation that is being planned or applied.
    pub pending: Option<PendingOperation>,
    /// Changes made in this session, newest last. Operations that changed nothing are left out.
    pub done: Vec<DoneChange>,
    /// Number of changes. A place read before the last change is read again.
    pub epoch: u64,
    /// Erasures that have not ended verified; `None` until read.
    pub unfinished: Option<Vec<UnfinishedErasure>>,
    /// Pending request for unfinished erasures.
    pub unfinished_asked: Option<Ticket>,
    /// Whether the terminal reports key releases, so that a held key is recognized.
    pub releases: bool,
    /// The command that was given last, while its key may still be repeating.
    pub recent: Option<(CommandId, Ticket)>,
}

impl Changing {
    /// Known erasures that have not ended verified.
    pub fn begun(&self) -> &[UnfinishedErasure] {
        self.unfinished.as_deref().unwrap_or_default()
    }

    /// Adds a change. A continued job counts as one change, and an undo takes back the change it undoes.
    pub fn note(&mut self, mut done: DoneChange) {
        let run = done.work.run();
        let before = self.done.iter().position(|before| run.is_some() && before.work.run() == run);
        if let Some(at) = before {
            let before = self.done.remove(at);
            (done.entries, done.undone) = ([before.entries, done.entries].concat(), before.undone);
        }
        if let DoneWork::Change(Operation::Undo { seq }) = done.work {
            self.take_back(seq, true);
        }
        self.done.push(done);
    }

    /// Marks an entry as undone, or as current again. Undoing an undo makes the original change current again.
    fn take_back(&mut self, seq: i64, back: bool) {
        let Some(done) = self.done.iter_mut().find(|done| done.entries.contains(&seq)) else { return };
        done.undone.retain(|undone| *undone != seq);
        if back {
            done.undone.push(seq);
        }
        if let DoneWork::Change(Operation::Undo { seq: of }) = done.work
            && of < seq
        {
            self.take_back(of, !back);
        }
    }

    /// Whether an entry of the audit trail was made in this session.
    pub fn made(&self, seq: i64) -> bool {
        self.done.iter().any(|done| done.entries.contains(&seq))
    }

    /// The last change that is not undone. Undos and migrations do not count, as they cannot be undone.
    pub fn last_standing(&self) -> Option<&DoneChange> {
        let counts =
            |work: &DoneWork| !matches!(work, DoneWork::Change(Operation::Undo { .. }) | DoneWork::Migrations(_));
        self.done.iter().rev().find(|done| counts(&done.work) && !done.is_undone())
    }

    /// Entries not yet undone of a change and of those made with it, in order.
    pub fn standing_with(&self, change: &DoneChange) -> Vec<i64> {
        if change.batch.is_none() {
            return change.standing();
        }
        self.done.iter().filter(|done| done.batch == change.batch).flat_map(DoneChange::standing).collect()
    }
}

/// An operation that is being planned or applied outside the core.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingOperation {
    /// Number of the request.
    pub ticket: Ticket,
    /// Proposal that is being planned or applied.
    pub proposal: Proposal,
    /// True while the proposal is being applied; false while it is being planned.
    pub applying: bool,
    /// Rows before and after, as the plan had them.
    pub changes: Vec<Change>,
}

/// A change made in this session.
#[derive(Debug, Clone, PartialEq)]
pub struct DoneChange {
    /// Work that was done.
    pub work: DoneWork,
    /// The reason that was given.
    pub reason: Option<String>,
    /// Numbers of its audit entries that can be undone, in order.
    pub entries: Vec<i64>,
    /// Entries that have since been undone.
    pub undone: Vec<i64>,
    /// Number of the request, if it made several changes: they are undone together.
    pub batch: Option<Ticket>,
}

/// Work of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum DoneWork {
    /// An operation was applied.
    Change(Operation),
    /// A job ran.
    Job {
        /// Name of the job.
        name: String,
        /// Identity of its run.
        run: String,
        /// The run is done.
        complete: bool,
    },
    /// Migrations were applied, with these optional ones.
    Migrations(Vec<String>),
    /// A person was erased, or a part of the rows.
    Erasure,
}

impl DoneWork {
    /// Identity of a job's run.
    fn run(&self) -> Option<&str> {
        match self {
            DoneWork::Job { run, .. } => Some(run),
            _ => None,
        }
    }
}

impl DoneChange {
    /// Creates a change from its operation and receipt.
    pub fn of(operation: Operation, reason: Option<&str>, receipt: &Receipt) -> Self {
        let entries = receipt.audit_seq.filter(|_| receipt.undo.is_some()).into_iter().collect();
        DoneChange { reason: reason.map(str::to_owned), entries, ..DoneWork::Change(operation).into() }
    }

    /// Entries that are not undone, in order.
    pub fn standing(&self) -> Vec<i64> {
        self.entries.iter().copied().filter(|seq| !self.undone.contains(seq)).collect()
    }

    /// Whether all of it has been taken back.
    pub fn is_undone(&self) -> bool {
        !self.entries.is_empty() && self.standing().is_empty()
    }
}

impl From<DoneWork> for DoneChange {
    fn from(work: DoneWork) -> Self {
        DoneChange { work, reason: None, entries: Vec::new(), undone: Vec::new(), batch: None }
    }
}

/// Outcome of applying a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AppliedPlan {
    /// Receipts of the changes made, in order; each with the position of its operation in [`Proposal::changes`].
    pub receipts: Vec<(usize, Receipt)>,
    /// Reason why not everything was applied.
    pub refusal: Option<Refusal>,
}

/// Reason why something was not planned or applied.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The rows differ from those the plan read.
    Conflict {
        /// Description of what changed since the plan was made.
        message: String,
        /// The rows, for people.
        rows: Vec<String>,
        /// The current rows, in the order of the plan's changes; `None` for a row that no longer exists.
        now: Vec<Option<Row>>,
    },
    /// Any other failure.
    Failed(RequestFailure),
}

/// Count and kind of the changed rows, such as `112 cases`, or `cases` if their number is unknown. `None` if only one
/// row changes. `total` is the number of changes, of which only the first are in `changes`: others may be of rows that
/// depend on them. `counts` are the rows written by table, among them those in the entity's own `tables`.
pub fn many(
    changes: &[Change],
    total: Option<usize>,
    counts: &Counts,
    tables: &BTreeSet<(Entity, String)>,
) -> Option<String> {
    let first = changes.first()?;
    let entity = Entity::parse(&first.entity)?;
    let like = changes.iter().filter(|change| change.entity == first.entity).count();
    let verb = match (first.before.is_null(), first.after.is_null()) {
        (true, _) => "insert",
        (_, true) => "delete",
        _ => "update",
    };
    let own = || {
        let own = counts.iter().filter(|(table, _)| tables.contains(&(entity, (*table).clone())));
        own.filter_map(|(_, verbs)| verbs.get(verb)).sum()
    };
    let number = if total == Some(changes.len()) { like } else { own() };
    let words = if number < like { entity.plural().to_owned() } else { entity.counted(number) };
    (like > 1).then_some(words)
}

/// Words for the number of rows written; `None` if there are none.
pub fn rows_written(counts: &Counts) -> Option<String> {
    let rows: usize = counts.values().flat_map(|verbs| verbs.values()).sum();
    (rows > 0).then(|| agreeing(rows as u64, "{#} {row|rows}"))
}

/// The columns of a change, each with its old and new value; null for a missing one.
pub fn columns(change: &Change) -> Vec<(String, Value, Value)> {
    let empty = serde_json::Map::new();
    let fields = |value: &Value| value.as_object().cloned().unwrap_or_else(|| empty.clone());
    let (before, after) = (fields(&change.before), fields(&change.after));
    let order = Entity::parse(&change.entity).map_or(&[][..], Entity::columns);
    let mut names: Vec<&String> =
        before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))).collect();
    names.retain(|name| before.get(*name) != after.get(*name));
    names.sort_by_key(|name| order.iter().position(|column| column.name == name.as_str()).unwrap_or(usize::MAX));
    let value = |side: &serde_json::Map<String, Value>, name: &String| side.get(name).cloned().unwrap_or(Value::Null);
    names.into_iter().map(|name| (name.clone(), value(&before, name), value(&after, name))).collect()
}
