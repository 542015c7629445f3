//! The physical pass as data: the steps that made the engine release deleted values, their duration, and what could not
//! be done.

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
    /// The step was done.
    Done,
    /// We may not do the step here; this is disclosed.
    NotAllowed,
    /// The step was not done; the pass is incomplete.
    Failed,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassStep {
    /// Subject of the step, such as `vacuum` or `rebuild notes_fts`.
    pub name: String,
    /// Outcome of the step.
    pub outcome: PassOutcome,
    /// Further details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Duration in milliseconds.
    pub ms: u64,
}

/// Request for a physical pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassRequest {
    /// Tables that lost rows or named the person; on PostgreSQL these are vacuumed, and those with dead rows.
    pub touched: Vec<TableName>,
    /// PostgreSQL tables whose statistics must be recomputed.
    pub learned: Vec<TableName>,
    /// PostgreSQL: whether whole tables may be rewritten, which locks each meanwhile.
    pub full: bool,
    /// Date of the disclosures.
    pub at: String,
    /// Longest wait for locks at each step.
    pub patience: Duration,
}

/// Report of a physical pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PassReport {
    /// The steps in order.
    pub steps: Vec<PassStep>,
    /// Reasons why the pass is incomplete; empty if it is complete. It may be repeated.
    pub incomplete: Vec<String>,
    /// Limits of what could be done here, with the date.
    pub disclosures: Vec<String>,
    /// Measured facts, such as `freelist_count` or `wal_lsn`.
    pub figures: Map<String, Value>,
    /// Duration in milliseconds.
    pub ms: u64,
}

impl PassReport {
    /// Whether every necessary and permitted step was done.
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

    /// Records a failed step, which makes the pass incomplete.
    pub(super) fn failed(&mut self, name: impl Into<String>, reason: String, began: Instant) {
        self.step(name, PassOutcome::Failed, Some(reason.clone()), began);
        self.incomplete.push(reason);
    }

    /// Records a step that we may not do, which is disclosed.
    pub(super) fn not_allowed(&mut self, name: impl Into<String>, what: String, began: Instant) {
        self.step(name, PassOutcome::NotAllowed, Some(what.clone()), began);
        self.disclose(what);
    }

    /// Discloses a limit; the date is added to all of them at the end.
    pub(super) fn disclose(&mut self, what: impl Into<String>) {
        self.disclosures.push(what.into());
    }

    pub(super) fn figure(&mut self, name: &str, value: impl Into<Value>) {
        self.figures.insert(name.to_owned(), value.into());
    }
}

impl ProofReader<'_> {
    /// Makes the engine release deleted data, as far as possible. Changes no row. Waits for locks only within the
    /// requested patience.
    ///
    /// # Errors
    /// The engine's refusal to connect or answer at all, or [`WriteError::ReadOnly`] if nothing can be written.
    /// Problems of single steps are in the [`PassReport`].
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
