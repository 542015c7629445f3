//! The physical pass, which makes the engine release deleted values, as data: the request, and what could not be done.

use std::time::Duration;

use crate::layout::Engine;
use crate::store::ProofReader;
use crate::store::stored::TableName;
use crate::store::write::WriteError;

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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PassReport {
    /// Reasons why the pass is incomplete; empty if it is complete. It may be repeated.
    pub incomplete: Vec<String>,
    /// Steps that we may not do here, and why, with the date.
    pub refused: Vec<String>,
    /// Limits of what anybody could do from here, with the date.
    pub disclosures: Vec<String>,
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
        let mut pass = match self.store.engine() {
            Engine::Sqlite => super::sqlite::pass(self.store, wanted).await?,
            Engine::Postgres => super::postgres::pass(self.store, wanted).await?,
        };
        let told = pass.refused.iter_mut().chain(&mut pass.disclosures);
        told.for_each(|words| words.push_str(&format!(" (as of {})", wanted.at)));
        Ok(pass)
    }
}
