//! What holds tables together: primary keys, foreign keys with what they do on deletion, and which tables hold rows.

use std::collections::HashMap;

use super::StoreError;
use super::session::{Raw, RawRow};
use super::snapshot::Snapshot;
use super::stored::{ROW_NUMBER, TableName};
use crate::layout::Engine;

/// What a foreign key does when the row that it names goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDelete {
    /// The row goes too.
    Cascade,
    /// The column is emptied.
    SetNull,
    /// Nothing: the deletion is refused.
    Refuse,
}

/// A foreign key of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Table that refers.
    pub from: TableName,
    /// Its column.
    pub column: String,
    /// Table that is referred to.
    pub to: TableName,
    /// Its column.
    pub to_column: String,
    /// What happens on deletion.
    pub on_delete: OnDelete,
}

/// How the tables of a database hang together.
#[derive(Debug, Clone, Default)]
pub struct Relations {
    /// Columns that tell a table's rows apart; empty where nothing does.
    pub keys: HashMap<TableName, Vec<String>>,
    /// Foreign keys.
    pub foreign: Vec<ForeignKey>,
    /// Tables that hold rows of their own, in order; no views.
    pub tables: Vec<TableName>,
    /// Views that keep copies, for people.
    pub materialised: Vec<String>,
}

const TABLES_SQLITE: &str = "SELECT l.schema, l.name, coalesce((SELECT group_concat(c.name, char(31)) FROM \
       (SELECT p.name FROM pragma_table_info(l.name, l.schema) p WHERE p.pk > 0 ORDER BY p.pk) c), ''), \
     CASE WHEN l.wr THEN '' ELSE 'rowid' END, l.type \
     FROM pragma_table_list l WHERE l.type IN ('table', 'shadow') AND l.schema <> 'temp' AND l.name NOT LIKE 'sqlite_%' \
     ORDER BY 1, 2";

const TABLES_POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, coalesce((SELECT string_agg(a.attname::text, \
       chr(31) ORDER BY array_position(i.indkey::int2[], a.attnum)) FROM pg_index i JOIN pg_attribute a \
       ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[]) WHERE i.indrelid = c.oid AND i.indisprimary), ''), \
     '', CASE c.relkind WHEN 'm' THEN 'view' ELSE 'table' END FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'm') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1, 2";

const FOREIGN_SQLITE: &str = "SELECT l.schema, l.name, f.\"from\", l.schema, \
     coalesce((SELECT o.name FROM pragma_table_list o WHERE lower(o.name) = lower(f.\"table\") AND o.schema = l.schema), f.\"table\"), \
     coalesce(f.\"to\", (SELECT p.name FROM pragma_table_info(f.\"table\", l.schema) p WHERE p.pk = 1)), lower(f.on_delete) \
     FROM pragma_table_list l JOIN pragma_foreign_key_list(l.name, l.schema) f WHERE l.type = 'table' \
     AND (SELECT count(*) FROM pragma_foreign_key_list(l.name, l.schema) g WHERE g.id = f.id) = 1";

const FOREIGN_POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, a.attname::text, s.nspname::text, t.relname::text, \
     b.attname::text, CASE k.confdeltype WHEN 'c' THEN 'cascade' WHEN 'n' THEN 'set null' ELSE 'no action' END \
     FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_class t ON t.oid = k.confrelid JOIN pg_namespace s ON s.oid = t.relnamespace \
     JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1] \
     JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1] \
     WHERE k.contype = 'f' AND cardinality(k.conkey) = 1";

const DEFINITIONS_SQLITE: &str = "SELECT l.schema || '.' || s.name, coalesce(s.name, '') || ' ' || coalesce(s.sql, '') \
     FROM (SELECT 'main' AS schema) l, main.sqlite_schema s ORDER BY 1";

const DEFINITIONS_POSTGRES: &str = "SELECT n.nspname || '.' || c.relname, concat_ws(' ', n.nspname, c.relname, \
       (SELECT string_agg(a.attname::text, ' ') FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), \
       CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END, \
       (SELECT string_agg(pg_get_expr(d.adbin, d.adrelid), ' ') FROM pg_attrdef d WHERE d.adrelid = c.oid), \
       (SELECT string_agg(pg_get_constraintdef(k.oid), ' ') FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c'), \
       (SELECT string_agg(m.description, ' ') FROM pg_description m WHERE m.objoid = c.oid)) \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'm', 'i') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1";

impl Snapshot<'_> {
    /// Every table, view, index and trigger with the words of its definition: names, defaults, conditions, comments.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn definitions(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        let sql = match self.store.engine() {
            Engine::Sqlite => DEFINITIONS_SQLITE,
            Engine::Postgres => DEFINITIONS_POSTGRES,
        };
        Ok(self.fetch(sql, &[]).await?.iter().map(|row| (text(row, 0), text(row, 1))).collect())
    }

    /// Reads how the tables hang together.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn relations(&mut self) -> Result<Relations, StoreError> {
        let (tables, foreign) = match self.store.engine() {
            Engine::Sqlite => (TABLES_SQLITE, FOREIGN_SQLITE),
            Engine::Postgres => (TABLES_POSTGRES, FOREIGN_POSTGRES),
        };
        let mut relations = Relations::default();
        for row in self.fetch(tables, &[]).await? {
            let table = TableName::new(text(&row, 0), text(&row, 1));
            if text(&row, 4) == "view" {
                relations.materialised.push(table.title());
                continue;
            }
            // A virtual table of a module that is not here cannot be read; its shadows can.
            let mut key: Vec<String> =
                text(&row, 2).split('\u{1f}').filter(|c| !c.is_empty()).map(str::to_owned).collect();
            if key.is_empty() && text(&row, 3) == "rowid" {
                key.push(ROW_NUMBER.to_owned());
            }
            relations.keys.insert(table.clone(), key);
            relations.tables.push(table);
        }
        for row in self.fetch(foreign, &[]).await? {
            relations.foreign.push(ForeignKey {
                from: TableName::new(text(&row, 0), text(&row, 1)),
                column: text(&row, 2),
                to: TableName::new(text(&row, 3), text(&row, 4)),
                to_column: text(&row, 5),
                on_delete: match text(&row, 6).as_str() {
                    "cascade" => OnDelete::Cascade,
                    "set null" => OnDelete::SetNull,
                    _ => OnDelete::Refuse,
                },
            });
        }
        Ok(relations)
    }
}

fn text(row: &RawRow, at: usize) -> String {
    match row.get(at) {
        Some(Raw::Text(text)) => text.clone(),
        _ => String::new(),
    }
}
