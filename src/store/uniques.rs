//! Columns with values that the engine keeps unique: those of unique indexes, including keys, and those that such an
//! index computes its values from.

use std::collections::HashSet;

use super::StoreError;
use super::fetched::text;
use super::proof::made::{generated_parts, terms};
use super::snapshot::Snapshot;
use super::stored::TableName;
use crate::layout::Engine;
use crate::memory::name_words::is_word_in;

const SQLITE: &str = "SELECT l.schema, l.name, i.name FROM pragma_table_list l JOIN pragma_index_list(l.name, l.schema) x \
     JOIN pragma_index_info(x.name, l.schema) i WHERE l.type = 'table' AND x.\"unique\" = 1 AND i.name IS NOT NULL";

/// Unique indexes with expressions, and the statements that made them.
const EXPRESSIONS_SQLITE: &str = "SELECT 'main', m.tbl_name, m.sql FROM main.sqlite_schema m JOIN pragma_index_list(m.tbl_name, 'main') x \
     ON x.name = m.name WHERE m.type = 'index' AND m.sql IS NOT NULL AND x.\"unique\" = 1 \
     AND EXISTS (SELECT 1 FROM pragma_index_xinfo(m.name, 'main') k WHERE k.cid = -2)";

/// Generated columns, and the statements that made their tables.
const GENERATED_SQLITE: &str = "SELECT 'main', m.name, m.sql, p.name FROM main.sqlite_schema m JOIN pragma_table_xinfo(m.name, 'main') p \
     WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND p.hidden IN (2, 3)";

const POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, a.attname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid \
     JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey::int2[]) \
     WHERE (i.indisunique OR i.indisexclusion) AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";

const EXPRESSIONS_POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, pg_get_expr(i.indexprs, i.indrelid) FROM pg_index i \
     JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE (i.indisunique OR i.indisexclusion) AND i.indexprs IS NOT NULL AND n.nspname !~ '^pg_' \
     AND n.nspname <> 'information_schema'";

const GENERATED_POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, pg_get_expr(d.adbin, d.adrelid), a.attname::text \
     FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum JOIN pg_class c ON c.oid = d.adrelid \
     JOIN pg_namespace n ON n.oid = c.relnamespace WHERE a.attgenerated <> ''";

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

    /// The columns `found` of unique indexes, and every column that such an index computes its values from: all that an
    /// expression, or a generated column, mentions.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn columns_kept_apart(
        &mut self,
        mut found: HashSet<(TableName, String)>,
    ) -> Result<HashSet<(TableName, String)>, StoreError> {
        let is_sqlite = self.store.engine() == Engine::Sqlite;
        let [expressions, generated] =
            if is_sqlite { [EXPRESSIONS_SQLITE, GENERATED_SQLITE] } else { [EXPRESSIONS_POSTGRES, GENERATED_POSTGRES] };
        for row in self.fetch(expressions, &[]).await? {
            let expression = if is_sqlite { terms(&text(&row, 2)).0.join(" ") } else { text(&row, 2) };
            found.extend(self.mentioned(&TableName::new(text(&row, 0), text(&row, 1)), &expression));
        }
        let generated = self.fetch(generated, &[]).await?;
        loop {
            let before = found.len();
            for row in &generated {
                let place = (TableName::new(text(row, 0), text(row, 1)), text(row, 3));
                if found.contains(&place) {
                    let expression = if is_sqlite { generated_parts(&text(row, 2)) } else { text(row, 2) };
                    found.extend(self.mentioned(&place.0, &expression));
                }
            }
            if found.len() == before {
                return Ok(found);
            }
        }
    }

    /// The columns of a table whose names are words of an expression.
    fn mentioned(&self, table: &TableName, expression: &str) -> Vec<(TableName, String)> {
        let small = expression.to_lowercase();
        let columns = self.store.catalog().exactly(&table.schema, &table.name).into_iter().flat_map(|t| &t.columns);
        let is_of_names = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let named = columns.filter(|column| is_word_in(&small, &column.name.to_lowercase(), is_of_names));
        named.map(|column| (table.clone(), column.name.clone())).collect()
    }
}
