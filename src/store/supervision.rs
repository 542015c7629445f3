//! Decisions of supervisors on an agent's episodes, if a system stores them in addition to its memory.

use super::fetched::FetchedValue;
use super::select::SelectStatement;
use super::{ContextReader, StoreError};

/// Table of supervised episodes, and the columns that hold the outcome of the supervision.
const TABLE: &str = "agent_episodes";
const COLUMNS: [&str; 3] = ["proposal_id", "supervision_decision", "execution_followed_proposal"];

/// Outcome of an episode proposed to a supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupervisedOutcome {
    /// Id of the episode.
    pub episode: String,
    /// Whether the proposal was approved.
    pub approved: bool,
    /// Whether it was carried out as proposed.
    pub followed: bool,
}

impl ContextReader<'_> {
    /// The supervised episodes of an agent; `None` if the database stores no decisions.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn supervised(self, agent: &str) -> Result<Option<Vec<SupervisedOutcome>>, StoreError> {
        let table = self.store.catalog().table(TABLE);
        let Some(table) = table.filter(|t| COLUMNS.iter().chain(&["id", "agent_id"]).all(|c| t.readable(c).is_some()))
        else {
            return Ok(None);
        };
        let declared = table.column("agent_id").map(|c| c.declared.clone()).unwrap_or_default();
        let mut statement = SelectStatement::new(self.store.engine(), String::new());
        let agent = statement.bind(FetchedValue::Text(agent.to_owned()), &declared);
        statement.sql = format!(
            "SELECT CAST(id AS text), CASE WHEN supervision_decision = 'approved' THEN 1 ELSE 0 END, \
             CASE WHEN execution_followed_proposal THEN 1 ELSE 0 END \
             FROM {TABLE} WHERE agent_id = {agent} AND proposal_id IS NOT NULL"
        );
        let rows = self.store.fetch(&statement).await?;
        let supervised = rows.iter().filter_map(|row| {
            let yes = |i: usize| matches!(row.get(i), Some(FetchedValue::Integer(1)));
            match row.first() {
                Some(FetchedValue::Text(id)) => {
                    Some(SupervisedOutcome { episode: id.clone(), approved: yes(1), followed: yes(2) })
                }
                _ => None,
            }
        });
        Ok(Some(supervised.collect()))
    }
}
