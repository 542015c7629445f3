//! What holds tables together: primary keys, foreign keys with what they do on deletion, and which tables hold rows.

use std::collections::{HashMap, HashSet};

use super::StoreError;
use super::proof::tables::{self, Holds, Kind, Table, Unread, number, text};
use super::session::RawRow;
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

/// A foreign key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKey {
    /// Table that refers.
    pub from: TableName,
    /// Its columns, in order.
    pub columns: Vec<String>,
    /// Table that is referred to.
    pub to: TableName,
    /// Its columns, one for each that refers.
    pub to_columns: Vec<String>,
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
    /// Tables with rows that can be read, in order: partitions under the name of the whole, views only where they keep
    /// copies.
    pub tables: Vec<TableName>,
    /// Of these, views that keep copies of other tables' rows.
    pub copies: HashSet<TableName>,
    /// What each column of PostgreSQL can hold, where that is not words.
    pub holds: HashMap<(TableName, String), Holds>,
    /// Columns that cannot be empty.
    pub required: HashSet<(TableName, String)>,
    /// Tables whose rows we have no right to see, or of which policies may hide some.
    pub unread: Vec<(TableName, &'static str)>,
    /// Tables whose rows are elsewhere: in another database, or in a session of somebody else.
    pub elsewhere: Vec<(TableName, &'static str)>,
}

impl Relations {
    /// Whether a column can hold words, such as a handle.
    #[must_use]
    pub fn holds_words(&self, table: &TableName, column: &str) -> bool {
        !self.holds.contains_key(&(table.clone(), column.to_owned()))
    }
}

const FOREIGN_SQLITE: &str = "SELECT l.schema, l.name, f.\"from\", l.schema, \
     coalesce((SELECT o.name FROM pragma_table_list o WHERE lower(o.name) = lower(f.\"table\") AND o.schema = l.schema), f.\"table\"), \
     coalesce(f.\"to\", (SELECT p.name FROM pragma_table_info(f.\"table\", l.schema) p WHERE p.pk = f.seq + 1)), lower(f.on_delete), f.seq \
     FROM pragma_table_list l JOIN pragma_foreign_key_list(l.name, l.schema) f WHERE l.type = 'table' \
     ORDER BY l.schema, l.name, f.id, f.seq";

/// Those of a partition are those of the whole.
const FOREIGN_POSTGRES: &str = "SELECT n.nspname::text, c.relname::text, a.attname::text, s.nspname::text, t.relname::text, \
     b.attname::text, CASE k.confdeltype WHEN 'c' THEN 'cascade' WHEN 'n' THEN 'set null' ELSE 'no action' END, u.at - 1 \
     FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS u (own, other, at) \
     JOIN pg_class p ON p.oid = k.conrelid \
     JOIN pg_class c ON c.oid = CASE WHEN p.relispartition THEN pg_partition_root(p.oid) ELSE p.oid END \
     JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_class q ON q.oid = k.confrelid \
     JOIN pg_class t ON t.oid = CASE WHEN q.relispartition THEN pg_partition_root(q.oid) ELSE q.oid END \
     JOIN pg_namespace s ON s.oid = t.relnamespace \
     JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.own \
     JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = u.other \
     WHERE k.contype = 'f' AND k.conparentid = 0 ORDER BY k.oid, u.at";

/// Temporary tables of other sessions: nobody else sees their rows.
const TEMPORARY: &str = "SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind = 'r' AND c.relpersistence = 't' AND pg_is_other_temp_schema(n.oid) ORDER BY 1, 2";

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
        let mut relations = Relations::default();
        for table in tables::read(self.store).await? {
            relations.add(table);
        }
        let postgres = self.store.engine() == Engine::Postgres;
        let foreign = if postgres { FOREIGN_POSTGRES } else { FOREIGN_SQLITE };
        for row in self.fetch(foreign, &[]).await? {
            relations.add_foreign(&row);
        }
        if postgres {
            for row in self.fetch(TEMPORARY, &[]).await? {
                let table = TableName::new(text(&row, 0), text(&row, 1));
                relations.elsewhere.push((table, "a temporary table of another session"));
            }
        }
        Ok(relations)
    }
}

impl Relations {
    fn add(&mut self, table: Table) {
        let name = table.name;
        // A virtual table of a module that is not here cannot be read; its shadows can.
        if table.partition || name.name.starts_with("sqlite_") {
            return;
        }
        match table.kind {
            Kind::Stored | Kind::Index | Kind::Parent => {}
            Kind::Copies => drop(self.copies.insert(name.clone())),
            Kind::Unread(Unread::Denied) => {
                self.keys.insert(name.clone(), table.key);
                return self.unread.push((name, Unread::Denied.words()));
            }
            Kind::Unread(Unread::Foreign) => return self.elsewhere.push((name, Unread::Foreign.words())),
            Kind::Unread(Unread::Virtual | Unread::Empty) => return,
        }
        if table.hidden {
            self.unread.push((name.clone(), "row-level security may hide rows of it from us"));
        }
        for column in table.columns {
            let place = (name.clone(), column.name);
            if column.required {
                self.required.insert(place.clone());
            }
            if column.holds != Holds::Words {
                self.holds.insert(place, column.holds);
            }
        }
        let numbered = table.key.is_empty() && table.row_number.is_some();
        self.keys.insert(name.clone(), if numbered { vec![ROW_NUMBER.to_owned()] } else { table.key });
        self.tables.push(name);
    }

    /// Adds a column of a foreign key; its later ones follow its first.
    fn add_foreign(&mut self, row: &RawRow) {
        let first = number(row, 7) == 0;
        match self.foreign.last_mut().filter(|_| !first) {
            Some(key) => {
                key.columns.push(text(row, 2));
                key.to_columns.push(text(row, 5));
            }
            None => self.foreign.push(ForeignKey {
                from: TableName::new(text(row, 0), text(row, 1)),
                columns: vec![text(row, 2)],
                to: TableName::new(text(row, 3), text(row, 4)),
                to_columns: vec![text(row, 5)],
                on_delete: match text(row, 6).as_str() {
                    "cascade" => OnDelete::Cascade,
                    "set null" => OnDelete::SetNull,
                    _ => OnDelete::Refuse,
                },
            }),
        }
    }
}
