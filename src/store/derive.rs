//! Completes rows where the stored columns are not enough: episodes out of the event log of their workflow run.

use std::collections::HashMap;

use serde_json::Value;

use super::{ContextReader, StoreError};
use crate::layout::Derivation;
use crate::memory::workflow::{self, WorkflowEvent, WorkflowRun};
use crate::memory::{Entity, Row};

impl ContextReader<'_> {
    /// Completes episodes that are workflow runs from their events. What a layout maps stands where the log says
    /// nothing.
    pub(super) async fn derive_from_events(self, rows: Vec<&mut Row>) -> Result<(), StoreError> {
        let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
        let mut logs: HashMap<String, Vec<Row>> = HashMap::new();
        for event in self.store.related(Entity::WorkflowEvent, "run_id", &ids).await? {
            if let Some(run) = event.text("run_id") {
                logs.entry(run.to_owned()).or_default().push(event);
            }
        }
        for row in rows {
            let mut log = logs.remove(row.id()).unwrap_or_default();
            log.sort_by_key(|event| event.get("sequence").as_i64());
            complete(row, &log);
        }
        Ok(())
    }
}

fn complete(row: &mut Row, log: &[Row]) {
    let events: Vec<WorkflowEvent> = log.iter().map(WorkflowEvent::of).collect();
    // The log holds the result as it was returned; the run keeps a wrapped copy, which serves where the log is cut.
    let logged =
        log.iter().any(|e| e.text("kind") == Some("workflow.completed") && e.get("data").get("result").is_some());
    let text = |column: &str| row.text(column).map(str::to_owned);
    let raw_status = row.get("metadata").get("raw_status").and_then(Value::as_str).map(str::to_owned);
    let run = WorkflowRun {
        status: raw_status.or_else(|| text("status")).unwrap_or_default(),
        created_at: text("started_at"),
        started_at: None,
        completed_at: text("ended_at"),
        input_args: Value::Null,
        input_kwargs: Value::Null,
        result: if logged { Value::Null } else { row.get("result").clone() },
        parent_run_id: text("parent_id"),
    };
    let stored = row.clone();
    workflow::derive(&run, &events).fill(row);
    for column in Derivation::WorkflowEvents.fills() {
        if row.get(column).is_null() {
            row.set(column, stored.get(column).clone());
        }
    }
}
