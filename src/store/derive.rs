//! Completes rows whose stored columns are incomplete: episodes, from the event log of their workflow run.

use std::collections::HashMap;
use std::ops::ControlFlow;

use serde_json::Value;

use super::{ContextReader, Store, StoreError};
use crate::memory::entity::ValueKind;
use crate::memory::query::PART;
use crate::memory::workflow::{RunLog, WorkflowRun};
use crate::memory::{Entity, Row};

/// Runs whose logs one statement reads: at first, and at most.
const RUNS: (usize, usize) = (4, 64);

/// Columns of an event to read.
const EVENT: &[&str] = &["id", "run_id", "sequence", "kind", "data", "created_at"];

/// The part of derived episodes to compute.
#[derive(Debug, Clone, Copy)]
pub struct DerivedPart<'a> {
    /// Canonical columns; `None` means all.
    pub columns: Option<&'a [&'a str]>,
    /// Characters of each text; `None` means whole values.
    pub preview: Option<usize>,
    /// Bytes of events after which it stops.
    pub bytes: usize,
}

/// A log with the size of its kept events.
#[derive(Debug, Default)]
pub struct SizedLog {
    /// The log.
    pub log: RunLog,
    /// Size in bytes, as stored.
    pub size: usize,
}

/// Reads the logs of runs, a number of runs at a time that keeps memory low.
#[derive(Debug)]
pub struct LogReader<'a> {
    store: &'a Store,
    /// Canonical columns of the episodes to derive; `None` means all.
    columns: Option<&'a [&'a str]>,
    /// Runs in the next read.
    runs: usize,
}

impl<'a> LogReader<'a> {
    /// Creates a reader for these columns of derived episodes; `None` means all.
    pub fn new(store: &'a Store, columns: Option<&'a [&'a str]>) -> LogReader<'a> {
        LogReader { store, columns, runs: RUNS.0 }
    }

    /// Reads the logs of the first runs: at least one, and as many as keep memory low.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn first(&mut self, runs: &[String]) -> Result<HashMap<String, SizedLog>, StoreError> {
        loop {
            let some = &runs[..runs.len().min(self.runs)];
            let (logs, held) = self.read(some).await?;
            if held > PART && some.len() > 1 {
                self.runs = some.len().div_ceil(4);
                continue;
            }
            if held < PART / 4 {
                self.runs = (self.runs * 2).min(RUNS.1);
            }
            return Ok(logs);
        }
    }

    /// The logs of some runs and the size of their kept events; cut off if several runs are large.
    async fn read(&self, runs: &[String]) -> Result<(HashMap<String, SizedLog>, usize), StoreError> {
        let empty = || SizedLog { log: RunLog::for_columns(self.columns), size: 0 };
        let mut logs: HashMap<String, SizedLog> = runs.iter().map(|run| (run.clone(), empty())).collect();
        let mut held = 0;
        let take = |event: Row, size: usize| {
            let of_run = event.text("run_id").and_then(|run| logs.get_mut(run));
            if let Some(of_run) = of_run
                && of_run.log.take(event)
            {
                of_run.size += size;
                held += size;
            }
            if held > PART && runs.len() > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.store.each_related(Entity::WorkflowEvent, "run_id", runs, EVENT, take).await?;
        Ok((logs, held))
    }
}

impl ContextReader<'_> {
    /// Completes episodes that are workflow runs from their events, up to a number of bytes. Returns the bytes of each
    /// completed one. Mapped columns are used where the log says nothing.
    pub(super) async fn derive_from_events(
        self,
        mut rows: Vec<&mut Row>,
        part: DerivedPart<'_>,
    ) -> Result<Vec<usize>, StoreError> {
        let ids: Vec<String> = rows.iter().map(|row| row.id().to_owned()).collect();
        let mut reader = LogReader::new(self.store, part.columns);
        let (mut sizes, mut held): (Vec<usize>, usize) = (Vec::new(), 0);
        while sizes.len() < rows.len() && (sizes.is_empty() || held < part.bytes) {
            let done = sizes.len();
            let mut logs = reader.first(&ids[done..]).await?;
            for (row, id) in rows[done..].iter_mut().zip(&ids[done..]) {
                let Some(SizedLog { log, size }) = logs.remove(id) else { break };
                complete(row, log, part);
                sizes.push(size);
                held = held.saturating_add(size);
            }
        }
        Ok(sizes)
    }
}

fn complete(row: &mut Row, log: RunLog, part: DerivedPart<'_>) {
    let text = |column: &str| row.text(column).map(str::to_owned);
    let raw_status = row.get("metadata").get("raw_status").and_then(Value::as_str).map(str::to_owned);
    let run = WorkflowRun {
        status: raw_status.or_else(|| text("status")).unwrap_or_default(),
        created_at: text("started_at"),
        started_at: None,
        completed_at: text("ended_at"),
        input_args: Value::Null,
        input_kwargs: Value::Null,
        // The log has the result as it was returned; the run has a wrapped copy, used if the log is cut.
        result: if log.is_result_logged() { Value::Null } else { row.get("result").clone() },
        parent_run_id: text("parent_id"),
    };
    let is_wanted = |column| part.columns.is_none_or(|columns| columns.contains(&column));
    log.derive(&run).fill(row, |column, value| is_wanted(column).then(|| shortened(column, value, part.preview)));
}

/// A text cut to the requested characters.
fn shortened(column: &str, value: Value, preview: Option<usize>) -> Value {
    let is_text = Entity::Episode.column(column).is_some_and(|column| column.kind == ValueKind::Text);
    match (value, preview.filter(|_| is_text)) {
        (Value::String(text), Some(most)) => Value::from(text.chars().take(most).collect::<String>()),
        (value, _) => value,
    }
}
