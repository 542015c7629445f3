//! The recall lab's hands: reads by the store what the rules of [`crate::recall`] look at, and hands it to them. Only
//! reads; the same for commands and console.

pub mod assess;
pub mod judge;
pub mod training;
pub mod understand;

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::memory::filter::{Filter, Operand, Operator};
use crate::memory::query::Query;
use crate::memory::{Entity, Row};
use crate::store::{Store, StoreError};

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// What was named is not there.
    #[error("{0}")]
    NotFound(String),
    /// There is not enough to work on, or the database cannot do that.
    #[error("{0}")]
    Refused(String),
    /// What was given cannot be read.
    #[error("{0}")]
    Usage(String),
    /// Reading failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A question for some columns of an entity, of one agent where one is named.
fn of_agent(entity: Entity, columns: &[&'static str], agent: Option<&str>) -> Query {
    let mut query = Query::new(entity);
    query.columns = Some(columns.to_vec());
    let filter =
        |agent: &str| Filter { column: "agent_id", op: Operator::Equal, value: Operand::Text(agent.to_owned()) };
    query.filters.extend(agent.map(filter));
    query
}

/// Is told what is being read and how many rows of it were, now and then.
pub type Told<'a> = &'a (dyn Fn(Entity, usize) + Send + Sync);

/// Nobody is told.
pub fn silent(_: Entity, _: usize) {}

/// Rows after which it is told how many there were.
const TOLD_EVERY: usize = 2_000;

/// All rows of a query, in no order; none where the database does not hold the entity.
async fn each(store: &Store, query: &Query, told: Told<'_>, mut row: impl FnMut(Row)) -> Result<bool, StoreError> {
    if store.sources_of(query.entity).is_err() {
        return Ok(false);
    }
    let mut rows = 0;
    told(query.entity, rows);
    store
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

/// Means by key, as they come.
#[derive(Debug, Default)]
struct Means(HashMap<String, (f64, usize)>);

impl Means {
    fn add(&mut self, key: &str, value: f64) {
        let entry = self.0.entry(key.to_owned()).or_default();
        entry.0 += value;
        entry.1 += 1;
    }

    fn get(&self, key: &str) -> Option<f64> {
        self.0.get(key).map(|(sum, n)| sum / *n as f64)
    }
}
