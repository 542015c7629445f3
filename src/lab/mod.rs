//! The recall lab: reads from the store what the pure rankings of [`crate::recall`] need, for console and commands alike.

pub mod embed;
pub mod parents;
pub mod recall;
pub mod replay;
mod situation;

use crate::memory::filter::{Filter, Operand, Operator};
use crate::store::StoreError;

pub use recall::{Answer, Item, Request, recall};

/// Why the lab has no answer.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// What was named is not there.
    #[error("{0}")]
    NotFound(String),
    /// Reading failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The filter `column = value`.
fn equal(column: &'static str, value: &str) -> Filter {
    Filter { column, op: Operator::Equal, value: Operand::Text(value.to_owned()) }
}

/// The filters of an owner.
fn owner(agent: Option<&str>, user: Option<&str>) -> Vec<Filter> {
    let agent = agent.map(|agent| equal("agent_id", agent));
    agent.into_iter().chain(user.map(|user| equal("user_id", user))).collect()
}
