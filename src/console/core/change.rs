//! Whether anything may be changed, what is under way, what was done: plain data of this session.

use serde_json::Value;

use super::columns::plural;
use super::command::CommandId;
use super::proposal::Proposal;
use super::ticket::{RequestFailure, Ticket};
use crate::change::operation::Operation;
use crate::change::plan::erasure::UnfinishedErasure;
use crate::change::plan::{Change, Counts, Receipt};
use crate::memory::{Entity, Row, agreeing};

/// Whether the session may change anything, what is under way, and what was done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changing {
    /// Changes may be made. Not so at the beginning.
    pub unlocked: bool,
    /// The command that could not be given because nothing may be changed, and the row that was selected: as long as it
    /// is, unlocking goes on with the command.
    pub then: Option<(CommandId, Option<(Entity, String)>)>,
    /// Whether the database can be written is being asked.
    pub asking: Option<Ticket>,
    /// Migrations are under way that stood in the way of unlocking.
    pub unlocks: bool,
    /// The operation that is being planned or applied.
    pub pending: Option<PendingOperation>,
    /// Changes made in this session, newest last.
    pub done: Vec<DoneChange>,
    /// Counts the changes: places that were read before the last one are read again.
    pub epoch: u64,
    /// Erasures that have not ended verified, once that was asked.
    pub unfinished: Option<Vec<UnfinishedErasure>>,
    /// Pending request for unfinished erasures.
    pub unfinished_asked: Option<Ticket>,
    /// The terminal tells when a key is released: a held key is known as such.
    pub releases: bool,
    /// The command that was given last, while its key may still be repeating.
    pub recent: Option<(CommandId, Ticket)>,
}

impl Changing {
    /// Erasures that have not ended verified, as far as that is known.
    #[must_use]
    pub fn begun(&self) -> &[UnfinishedErasure] {
        self.unfinished.as_deref().unwrap_or_default()
    }
}

/// An operation that somebody outside is busy with.
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
    /// Operation that was requested.
    pub operation: Operation,
    /// The reason that was given.
    pub reason: Option<String>,
    /// Receipt that the database gave for the change.
    pub receipt: Receipt,
    /// True when the change has since been undone.
    pub undone: bool,
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
    /// The rows are not what the plan read.
    Conflict {
        /// Description of what changed since the plan was made.
        message: String,
        /// The rows, for people.
        rows: Vec<String>,
        /// The changed rows as they are now, in the order of the plan's changes; none when one is not there.
        now: Vec<Option<Row>>,
    },
    /// Anything else.
    Failed(RequestFailure),
}

/// Words for a change of several rows of the kind that it is about: `112 cases`; `cases` where their number is not known.
/// None when it is about one row; `total` is how many changes there are, of which the first were kept, and `counts` the rows
/// that were written.
#[must_use]
pub fn many(changes: &[Change], total: Option<usize>, counts: &Counts) -> Option<String> {
    let kind = &changes.first()?.entity;
    let like = changes.iter().filter(|change| change.entity == *kind).count();
    let rows = plural(Entity::parse(kind)?);
    // Changes that were not kept may be of another kind, unless some table has as many.
    let is_of_table = |all: &usize| counts.values().any(|verbs| verbs.values().any(|rows| rows == all));
    let number = match total {
        Some(all) if all == changes.len() => Some(like),
        all => all.filter(|all| like == changes.len() && is_of_table(all)),
    };
    let number = number.map(|number| agreeing(number as u64, &format!("{{#}} {rows}")));
    (like > 1).then(|| number.unwrap_or_else(|| rows.to_owned()))
}

/// Words for the number of rows written; none when none was.
#[must_use]
pub fn rows_written(counts: &Counts) -> Option<String> {
    let rows: usize = counts.values().flat_map(|verbs| verbs.values()).sum();
    (rows > 0).then(|| agreeing(rows as u64, "{#} {row|rows}"))
}

/// The columns of a change, each with what it was and what it becomes; null when there is nothing.
#[must_use]
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
