//! Proof that values are gone: all encodings to search for, a search of all bytes and of all stored values, the pass
//! that makes the engine release old pages, and queries of its search indexes.
//!
//! This module does not know whose values they are or what happens to them; it only reports findings.

pub mod bytes;
pub mod holders;
pub mod index;
pub mod made;
pub mod needles;
pub mod pages;
pub mod pass;
mod postgres;
mod segments;
pub mod spelling;
mod sqlite;
pub(super) mod tables;
pub mod values;
pub mod words;

use std::collections::HashSet;

use super::stored::TableName;
use super::{ProofReader, StoreError};

impl ProofReader<'_> {
    /// Tables that belong to a search index, and so contain data from other tables.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn index_tables(self) -> Result<HashSet<TableName>, StoreError> {
        let all = tables::read(self.store).await?.into_iter();
        Ok(all.filter(|table| table.kind == tables::SearchedKind::Index).map(|table| table.name).collect())
    }
}
