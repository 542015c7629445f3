//! The recall lab: reads from the store what the pure rules of [`crate::recall`] need, for both console and commands.

pub mod assess;
pub mod banked;
mod candidates;
pub mod embed;
pub mod judge;
mod kept_rows;
mod memory_uses;
pub mod parents;
pub mod people;
pub mod recall;
pub mod replay;
mod situation;
pub mod training;
pub mod understand;
pub mod what_if;

use std::ops::ControlFlow;

use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::Query;
use crate::memory::{Entity, Row};
use crate::store::{Store, StoreError};

pub use crate::recall::answer::{RecallAnswer, RecallRequest, RecalledItem};
pub use recall::{kind_of, recall, timed};

/// Reason why the lab has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The request or its input makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The named thing does not exist.
    #[error("{0}")]
    NotFound(String),
    /// There is not enough data, or the database does not support it.
    #[error("{0}")]
    Refused(String),
    /// Reading failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A scratch file could not be created, written or read.
    #[error("values that do not fit in memory could not be spilled to a file: {0}")]
    Scratch(#[from] std::io::Error),
}

/// The filter `column = value`.
fn equal(column: &'static str, value: &str) -> Filter {
    Filter::new(column, Operator::Equal, Operand::Text(value.to_owned()))
}

/// The filters of an owner.
fn owner(agent: Option<&str>, user: Option<&str>) -> Vec<Filter> {
    let agent = agent.map(|agent| equal("agent_id", agent));
    agent.into_iter().chain(user.map(|user| equal("user_id", user))).collect()
}

/// A query for some columns of an entity, optionally of one agent.
fn of_agent(entity: Entity, columns: &[&'static str], agent: Option<&str>) -> Query {
    let mut query = Query::new(entity);
    query.columns = Some(columns.to_vec());
    query.filters.extend(agent.map(|agent| equal("agent_id", agent)));
    query
}

/// Callback for progress: the entity being read, and the number of rows so far.
pub type Told<'a> = &'a (dyn Fn(Entity, usize) + Send + Sync);

/// Ignores progress.
pub fn silent(_: Entity, _: usize) {}

/// Rows between two progress reports.
const TOLD_EVERY: usize = 2_000;

/// Calls a function with all rows of a query, in no order. False if the database does not hold the entity.
///
/// # Errors
/// The engine's refusal.
pub(crate) async fn each(
    store: &Store,
    query: &Query,
    told: Told<'_>,
    mut row: impl FnMut(Row) + Send,
) -> Result<bool, StoreError> {
    if store.sources_of(query.entity).is_err() {
        return Ok(false);
    }
    let mut rows = 0;
    told(query.entity, rows);
    store
        .walks()
        .each_row(query, |found| {
            rows += 1;
            if rows % TOLD_EVERY == 0 {
                told(query.entity, rows);
            }
            row(found);
            ControlFlow::Continue(())
        })
        .await?;
    Ok(true)
}
