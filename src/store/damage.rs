//! Tables with pages that the engine cannot read.

use super::dialect::quote;
use super::fetched::FetchedValue;
use super::stored::TableName;
use super::{EngineFault, RawTables, StoreError};
use crate::layout::Engine;

/// Advice for an SQLite database with a damaged page.
pub(super) const DAMAGED: &str =
    "restore a backup, or copy what can be read into a new database: `sqlite3 FILE .recover`";
/// The same for a server's database.
pub(super) const DAMAGED_ON_SERVER: &str =
    "restore a backup, or copy what can be read into a new database: `pg_dump --table`";

impl RawTables<'_> {
    /// Returns the titles of the tables with a damaged page, among those named or all. Always empty on PostgreSQL.
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
                    // A cancelled read, or a view, proves nothing.
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
