//! Records a curated episode where episodes are runs of a workflow engine: as one event in the run's log, at most one
//! per run.

use std::ops::ControlFlow;

use serde_json::{Map, Value, json};

use crate::change::batch::{self, NewRow};
use crate::change::draft::Draft;
use crate::change::{ChangeError, now, number_after};
use crate::memory::{Entity, Row};
use crate::store::encode::{plain_column, table_of};
use crate::store::fetched::FetchedValue;
use crate::store::stored::StoredRows;

/// Canonical columns that the event can hold.
const HELD: &[&str] = &[
    "id", "execution_ids", "observation", "thoughts", "actions", "result", "success", "workflow_name", "insight",
    "ended_at", "duration_seconds",
];

/// Adds the event to the plan. The run is the episode's first execution, otherwise the episode's own id; missing values
/// are taken from the run's log.
///
/// # Errors
/// [`ChangeError::NotFound`] without such a run, [`ChangeError::Refused`] if its log has such an event already.
pub(super) async fn append(
    draft: &mut Draft<'_>,
    kind: &str,
    given: &Row,
    embedding: Option<&[f32]>,
) -> Result<(), ChangeError> {
    let store = draft.store;
    let nothing = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let columns = Entity::Episode.columns().iter().map(|c| c.name);
    let lost: Vec<&str> = columns.filter(|c| !HELD.contains(c) && !nothing(given.get(c))).collect();
    if !lost.is_empty() {
        return Err(ChangeError::Refused(format!("an event `{kind}` has no place for `{}`", lost.join("`, `"))));
    }
    let run = given.list("execution_ids").first().map_or_else(|| given.id().to_owned(), |run| (*run).to_owned());
    let found = draft.locate(Entity::Episode, &run).await?;
    let log = batch::target(store, Entity::WorkflowEvent)?;
    if let Some((column, _)) = plain_column(log, "run_id") {
        draft.watch(StoredRows::with(&table_of(log), column, FetchedValue::Text(run.clone()))).await?;
    }
    let (mut known, mut last) = (None, None);
    let take = |event: Row, _| {
        last = last.max(event.get("sequence").as_i64());
        if event.text("kind") == Some(kind) {
            known = Some(event.id().to_owned());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let columns = ["id", "run_id", "sequence", "kind"];
    store.each_related(Entity::WorkflowEvent, "run_id", std::slice::from_ref(&run), &columns, take).await?;
    if let Some(known) = known {
        return Err(ChangeError::Refused(format!(
            "the log of run `{run}` already holds a stored episode, the event `{known}`: a run has at most one"
        )));
    }
    let sequence = last.map_or(Ok(0), |last| number_after(last, "sequence"))?;
    let value = |column: &str| match given.get(column) {
        Value::Null => found.row.get(column).clone(),
        said => said.clone(),
    };
    let mut data = Map::new();
    data.insert("episode_id".to_owned(), Value::from(given.id()));
    for column in ["observation", "thoughts", "actions", "result", "success", "workflow_name"] {
        data.insert(column.to_owned(), value(column));
    }
    // Stored or empty, never invented.
    data.insert(
        "why_it_worked".to_owned(),
        json!(given.text("insight").or(found.row.text("insight")).unwrap_or_default()),
    );
    data.insert("embedding".to_owned(), json!(embedding));
    let began = value("started_at");
    data.insert("timestamp".to_owned(), if began.is_null() { Value::from(now()) } else { began });
    data.insert("duration_seconds".to_owned(), value("duration_seconds"));
    let id = format!("evt_{}", hex::encode(rand::random::<[u8; 8]>()));
    let event = NewRow::new(
        Entity::WorkflowEvent,
        [
            ("id", Value::from(id)),
            ("run_id", Value::from(run.clone())),
            ("sequence", Value::from(sequence)),
            ("kind", Value::from(kind)),
            ("data", Value::Object(data)),
        ],
    );
    draft.effects.push(format!("the episode of run `{run}` is stored as event {sequence} of its log"));
    batch::add(draft, Entity::WorkflowEvent, vec![event.at_once("created_at")]).await?;
    Ok(())
}
