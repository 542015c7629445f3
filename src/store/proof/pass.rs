//! The physical pass as plain data: what was done to make the engine release deleted values, how long it took, and what
//! could not be done.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::layout::Engine;
use crate::store::ProofReader;
use crate::store::stored::TableName;
use crate::store::write::WriteError;

/// Outcome of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassOutcome {
    /// Step was done.
    Done,
    /// We may not do it here: disclosed.
    NotAllowed,
    /// Step was not done: the pass is incomplete.
    Failed,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassStep {
    /// Subject of the step, such as `vacuum` or `rebuild notes_fts`.
    pub name: String,
    /// Outcome of the step.
    pub outcome: PassOutcome,
    /// More, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Milliseconds that it took.
    pub ms: u64,
}

/// Order for a cleaning pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassRequest {
    /// Tables from which rows went, or that named the person; PostgreSQL cleans these, and those with dead rows.
    pub touched: Vec<TableName>,
    /// Tables of PostgreSQL whose statistics are to be made again.
    pub learned: Vec<TableName>,
    /// PostgreSQL: whole tables may be written again, which locks each for that time.
    pub full: bool,
    /// The date that disclosures carry.
    pub at: String,
    /// Time to wait for others at each step before it fails.
    pub patience: Duration,
}

/// Report of a cleaning pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PassReport {
    /// The steps in order.
    pub steps: Vec<PassStep>,
    /// Reasons why the pass is incomplete; empty when it is complete. It may be run again.
    pub incomplete: Vec<String>,
    /// Limits of what could be done or reached here, with the date.
    pub disclosures: Vec<String>,
    /// Measured facts, such as `freelist_count` or `wal_lsn`.
    pub figures: Map<String, Value>,
    /// Milliseconds that it took.
    pub ms: u64,
}

impl PassReport {
    /// Whether every step that was needed and allowed was done.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.incomplete.is_empty()
    }

    pub(super) fn step(&mut self, name: impl Into<String>, outcome: PassOutcome, note: Option<String>, began: Instant) {
        let ms = began.elapsed().as_millis() as u64;
        self.steps.push(PassStep { name: name.into(), outcome, note, ms });
    }

    pub(super) fn done(&mut self, name: impl Into<String>, began: Instant) {
        self.step(name, PassOutcome::Done, None, began);
    }

    /// A step that failed: the pass is incomplete for that reason.
    pub(super) fn failed(&mut self, name: impl Into<String>, reason: String, began: Instant) {
        self.step(name, PassOutcome::Failed, Some(reason.clone()), began);
        self.incomplete.push(reason);
    }

    /// A step that we may not do: disclosed.
    pub(super) fn not_allowed(&mut self, name: impl Into<String>, what: String, began: Instant) {
        self.step(name, PassOutcome::NotAllowed, Some(what.clone()), began);
        self.disclose(what);
    }

    /// Discloses a limit; the whole pass gives all of them its date.
    pub(super) fn disclose(&mut self, what: impl Into<String>) {
        self.disclosures.push(what.into());
    }

    pub(super) fn figure(&mut self, name: &str, value: impl Into<Value>) {
        self.figures.insert(name.to_owned(), value.into());
    }
}

impl ProofReader<'_> {
    /// Makes the engine let go of what was deleted, as far as it can be made to. Nothing here changes a row. Locks of
    /// others are waited for only as long as was said.
    ///
    /// # Errors
    /// The engine's refusal to connect or answer at all, or [`WriteError::ReadOnly`] where nothing can be written. What
    /// single steps met is told in the [`PassReport`].
    pub async fn physical_pass(self, wanted: &PassRequest) -> Result<PassReport, WriteError> {
        if let Some(reason) = &self.store.blocked {
            return Err(WriteError::ReadOnly(reason.clone()));
        }
        let began = Instant::now();
        let mut pass = match self.store.engine() {
            Engine::Sqlite => super::sqlite::pass(self.store, wanted).await?,
            Engine::Postgres => super::postgres::pass(self.store, wanted).await?,
        };
        pass.disclosures.iter_mut().for_each(|words| words.push_str(&format!(" (as of {})", wanted.at)));
        pass.ms = began.elapsed().as_millis() as u64;
        Ok(pass)
    }
}
