//! Proof that values are gone: every encoding to look for, a search of all bytes and of all stored values, the pass
//! that makes the engine release old pages, and what its search indexes still return.
//!
//! Nothing here knows whose values they are or what happens to them: it looks, and says what it found.

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
    /// Tables that belong to a search index: what they hold is made from other tables.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn index_tables(self) -> Result<HashSet<TableName>, StoreError> {
        let all = tables::read(self.store).await?.into_iter();
        Ok(all.filter(|table| table.kind == tables::SearchedKind::Index).map(|table| table.name).collect())
    }
}
