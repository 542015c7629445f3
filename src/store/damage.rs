//! Tables with pages that the engine cannot read.

use super::dialect::quote;
use super::fetched::FetchedValue;
use super::stored::TableName;
use super::{EngineFault, RawTables, StoreError};
use crate::layout::Engine;

/// Advice where a page of a database is damaged.
pub const DAMAGED: &str =
    "restore a backup, or copy what can be read into a new database: `sqlite3 FILE .recover`, `pg_dump --table`";

impl RawTables<'_> {
    /// The titles of those tables of which a page is damaged; of all when none is named. PostgreSQL does not say.
    ///
    /// # Errors
    /// The engine's refusal to describe the database.
    pub async fn damaged(self, named: &[TableName]) -> Result<Vec<String>, StoreError> {
        if self.store.engine() == Engine::Postgres {
            return Ok(Vec::new());
        }
        let mut damaged = Vec::new();
        for table in &self.store.catalog().tables {
            let name = TableName::new(&table.schema, &table.name);
            if named.is_empty() || named.contains(&name) {
                let sql = format!("PRAGMA {}.quick_check({})", quote(&table.schema), quote(&table.name));
                let is_damaged = match self.store.fetch_text(&sql).await {
                    Ok(found) => found.iter().flatten().any(|value| *value != FetchedValue::Text("ok".to_owned())),
                    // What is broken off, or is a view, says nothing.
                    Err(error) => error.fault() == Some(EngineFault::Damaged),
                };
                if is_damaged {
                    damaged.push(table.title());
                }
            }
        }
        Ok(damaged)
    }
}
