//! Columns with values that the engine keeps unique: those of unique indexes, including keys.

use std::collections::HashSet;

use super::StoreError;
use super::fetched::text;
use super::snapshot::Snapshot;
use super::stored::TableName;
use crate::layout::Engine;

const SQLITE: &str = "SELECT l.schema, l.name, i.name FROM pragma_table_list l JOIN pragma_index_list(l.name, l.schema) x \
     JOIN pragma_index_info(x.name, l.schema) i WHERE l.type = 'table' AND x.\"unique\" = 1 AND i.name IS NOT NULL";

const POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, a.attname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid \
     JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey::int2[]) \
     WHERE i.indisunique AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";

impl Snapshot<'_> {
    /// Every column of a unique index, alone or with others.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn unique_columns(&mut self) -> Result<HashSet<(TableName, String)>, StoreError> {
        let sql = match self.store.engine() {
            Engine::Sqlite => SQLITE,
            Engine::Postgres => POSTGRES,
        };
        let rows = self.fetch(sql, &[]).await?;
        Ok(rows.iter().map(|row| (TableName::new(text(row, 0), text(row, 1)), text(row, 2))).collect())
    }
}
