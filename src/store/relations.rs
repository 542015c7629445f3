//! Relations between tables: primary keys, foreign keys with their actions on deletion, and which tables hold rows.

use std::collections::{HashMap, HashSet};

use super::StoreError;
use super::dialect::quote;
use super::fetched::{RawRow, number, text};
use super::foreign_keys::{self, ForeignKey, OnDelete};
pub use super::proof::tables::ColumnContent;
use super::proof::tables::{self, SearchedKind, SearchedTable, UnsearchedReason};
use super::row_number::hidden;
use super::shape::{Comparison, table_number};
use super::snapshot::Snapshot;
use super::stored::TableName;
use crate::layout::Engine;

/// Relations between the tables of a database.
#[derive(Debug, Clone, Default)]
pub struct Relations {
    /// Columns that identify a table's rows; empty if none do. If these contain NULL in some row, the hidden row number
    /// is added last.
    pub keys: HashMap<TableName, Vec<String>>,
    /// Foreign keys.
    pub foreign: Vec<ForeignKey>,
    /// Tables with readable rows, in order: partitions under the partitioned table's name, views only if materialized.
    pub tables: Vec<TableName>,
    /// Materialized views among `tables`.
    pub copies: HashSet<TableName>,
    /// Contents that each column of PostgreSQL can have, if not words.
    pub holds: HashMap<(TableName, String), ColumnContent>,
    /// Inheriting tables, each with the one through which its rows are also visible.
    pub inside: HashMap<TableName, TableName>,
    /// Tables from which others inherit: a row of the latter may repeat one of their keys.
    pub heired: HashSet<TableName>,
    /// Columns that are NOT NULL.
    pub required: HashSet<(TableName, String)>,
    /// Columns with a comparison of their own: on SQLite those of unique indexes.
    compared: HashMap<(TableName, String), Comparison>,
    /// Tables whose rows we may not see, or in which policies may hide some.
    pub unread: Vec<(TableName, &'static str)>,
    /// Tables whose rows are elsewhere: in another database, or in someone else's session.
    pub elsewhere: Vec<(TableName, &'static str)>,
}

impl Relations {
    /// The foreign keys by which the engine deletes rows without a key by cascade.
    pub fn carrying(&self) -> impl Iterator<Item = &ForeignKey> {
        let is_keyless = move |key: &&ForeignKey| self.keys.get(&key.from).is_none_or(Vec::is_empty);
        self.foreign.iter().filter(|key| key.on_delete == OnDelete::Cascade).filter(is_keyless)
    }

    /// The foreign keys that a column belongs to.
    pub fn ties(&self, table: &TableName, column: &str) -> impl Iterator<Item = &ForeignKey> {
        self.foreign.iter().filter(move |key| key.from == *table && key.columns.iter().any(|own| own == column))
    }

    /// Whether a column belongs to a foreign key.
    pub fn is_tied(&self, table: &TableName, column: &str) -> bool {
        self.ties(table, column).next().is_some()
    }

    /// The condition for rows of a table, aliased `t`, to which one of its foreign keys applies: excludes inheriting
    /// tables that have a foreign key of their own for it, with another action.
    pub fn applies(&self, key: &ForeignKey) -> Option<String> {
        let is_in_its_place = |own: &ForeignKey| {
            (&own.to, &own.columns, &own.to_columns) == (&key.to, &key.columns, &key.to_columns)
                && own.on_delete != key.on_delete
                && self.inside.get(&own.from) == Some(&key.from)
        };
        let elsewhere = self.foreign.iter().filter(|own| is_in_its_place(own));
        let apart: Vec<String> = elsewhere.map(|own| format!("t.tableoid <> {}", table_number(&own.from))).collect();
        (!apart.is_empty()).then(|| apart.join(" AND "))
    }

    /// Whether a column treats differently spelled texts as equal.
    pub fn is_compared_apart(&self, table: &TableName, column: &str) -> bool {
        self.compared.contains_key(&(table.clone(), column.to_owned()))
    }

    /// A normal form of texts that a column treats as equal, as far as it can be computed without the engine.
    pub fn folded(&self, table: &TableName, column: &str, text: &str) -> String {
        match self.compared.get(&(table.clone(), column.to_owned())) {
            Some(Comparison { kind: None, collation: Some(name) }) if name.eq_ignore_ascii_case("\"nocase\"") => {
                text.to_ascii_lowercase()
            }
            Some(Comparison { kind: Some(_), collation: None }) => text.to_lowercase(),
            _ => text.to_owned(),
        }
    }

    /// Whether a column can contain words, such as a handle.
    pub fn holds_words(&self, table: &TableName, column: &str) -> bool {
        self.content(table, column) == ColumnContent::Words
    }

    /// The content that a column can have.
    pub fn content(&self, table: &TableName, column: &str) -> ColumnContent {
        self.holds.get(&(table.clone(), column.to_owned())).copied().unwrap_or(ColumnContent::Words)
    }

    /// The comparison between a referencing column and its target: the target's. `None` if the column's own is the
    /// same.
    pub fn comparison(&self, from: (&TableName, &str), to: (&TableName, &str)) -> Option<Comparison> {
        let way = |(table, column): (&TableName, &str)| self.compared.get(&(table.clone(), column.to_owned()));
        let other = way(to).cloned();
        if way(from) == other.as_ref() {
            return None;
        }
        // PostgreSQL uses the collation of the referencing column, but not its type if the target has another.
        let of_texts = || way(from).filter(|own| own.collation.is_none() && self.refers(from, to));
        other.or_else(|| of_texts().map(|_| Comparison::of_texts()))
    }

    fn refers(&self, from: (&TableName, &str), to: (&TableName, &str)) -> bool {
        let pair = |key: &ForeignKey| {
            key.columns.iter().zip(&key.to_columns).any(|(own, other)| (&**own, &**other) == (from.1, to.1))
        };
        self.foreign.iter().any(|key| key.from == *from.0 && key.to == *to.0 && pair(key))
    }

    /// The comparison between a column that names people and their ids, if it refers to them.
    pub fn comparison_of_owner(&self, table: &TableName, column: &str) -> Option<Comparison> {
        let key = self.foreign.iter().find(|key| key.from == *table && key.columns == [column])?;
        self.comparison((table, column), (&key.to, key.to_columns.first()?))
    }
}

/// Collations of the columns in SQLite's unique indexes; of several, the primary key's comes last.
const COMPARED_SQLITE: &str = "SELECT l.schema, l.name, k.name, '\"' || replace(k.coll, '\"', '\"\"') || '\"', NULL \
     FROM pragma_table_list l JOIN pragma_index_list(l.name, l.schema) i JOIN pragma_index_xinfo(i.name, l.schema) k \
     WHERE l.type = 'table' AND i.\"unique\" = 1 AND i.partial = 0 AND k.key = 1 AND k.name IS NOT NULL \
     ORDER BY i.origin = 'pk', i.origin = 'u', i.seq";

/// Columns of tables whose definition mentions a collation, for whichever column.
const FOLDING_SQLITE: &str = "SELECT l.schema, l.name, c.name FROM sqlite_schema s \
     JOIN pragma_table_list l ON l.name = s.name AND l.schema = 'main' JOIN pragma_table_xinfo(l.name, l.schema) c \
     WHERE s.type = 'table' AND l.type = 'table' AND s.sql LIKE '%collate%'";

/// Columns in which two different texts may be equal: by their type, or by a nondeterministic collation.
const COMPARED_POSTGRES: &str = "WITH RECURSIVE made_of (relation, name, rule, type) AS ( \
       SELECT a.attrelid, a.attname, a.attcollation, a.atttypid FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attcollation <> 0 AND c.relkind IN ('r', 'p', 'm', 'f') \
       UNION ALL SELECT m.relation, m.name, m.rule, t.typbasetype FROM made_of m JOIN pg_type t ON t.oid = m.type \
         WHERE t.typtype = 'd') \
     SELECT n.nspname::text, c.relname::text, m.name::text, CASE WHEN NOT l.collisdeterministic THEN quote_ident(o.nspname) || '.' || quote_ident(l.collname) END, \
       CASE t.typname WHEN 'citext' THEN format_type(t.oid, NULL) ELSE 'text' END \
     FROM made_of m JOIN pg_class c ON c.oid = m.relation JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_type t ON t.oid = m.type JOIN pg_collation l ON l.oid = m.rule \
     JOIN pg_namespace o ON o.oid = l.collnamespace \
     WHERE t.typname = 'citext' OR t.typtype <> 'd' AND NOT l.collisdeterministic";

/// Temporary tables of other sessions, whose rows nobody else sees.
const TEMPORARY: &str = "SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind = 'r' AND c.relpersistence = 't' AND pg_is_other_temp_schema(n.oid) ORDER BY 1, 2";

/// One row for each object of the database: its kind, its name, and the words of its definition.
const DEFINITIONS_POSTGRES: &str = "WITH mine AS (SELECT n.oid, n.nspname FROM pg_namespace n \
       WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'), \
     rel AS (SELECT c.*, m.nspname FROM pg_class c JOIN mine m ON m.oid = c.relnamespace) \
     SELECT 'schema', nspname::text, '' FROM mine \
     UNION ALL SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'view' WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' \
       WHEN 'S' THEN 'sequence' ELSE 'table' END, nspname || '.' || relname, \
       concat_ws(' ', array_to_string(reloptions, ' '), pg_get_expr(relpartbound, oid), \
       CASE WHEN relkind IN ('v', 'm') THEN pg_get_viewdef(oid) WHEN relkind IN ('i', 'I') THEN pg_get_indexdef(oid) \
         WHEN relkind = 'p' THEN pg_get_partkeydef(oid) END, \
       (SELECT string_agg(concat_ws(' ', a.attname, array_to_string(a.attoptions, ' '), array_to_string(a.attfdwoptions, ' '), \
         a.attmissingval::text), ' ') FROM pg_attribute a WHERE a.attrelid = rel.oid AND a.attnum > 0 AND NOT a.attisdropped), \
       (SELECT string_agg(pg_get_expr(d.adbin, d.adrelid), ' ') FROM pg_attrdef d WHERE d.adrelid = rel.oid), \
       (SELECT array_to_string(f.ftoptions, ' ') FROM pg_foreign_table f WHERE f.ftrelid = rel.oid)) FROM rel \
     UNION ALL SELECT 'constraint', k.conname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN mine ON mine.oid = k.connamespace \
     UNION ALL SELECT 'trigger', t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN rel ON rel.oid = t.tgrelid \
       WHERE NOT t.tgisinternal \
     UNION ALL SELECT 'rule', r.rulename, pg_get_ruledef(r.oid) FROM pg_rewrite r JOIN rel ON rel.oid = r.ev_class \
       WHERE r.rulename <> '_RETURN' \
     UNION ALL SELECT 'policy', p.polname, concat_ws(' ', pg_get_expr(p.polqual, p.polrelid), \
       pg_get_expr(p.polwithcheck, p.polrelid)) FROM pg_policy p JOIN rel ON rel.oid = p.polrelid \
     UNION ALL SELECT 'function', p.proname, concat_ws(' ', array_to_string(p.proargnames, ' '), \
       array_to_string(p.proconfig, ' '), CASE WHEN p.prokind <> 'a' THEN pg_get_functiondef(p.oid) END, \
       (SELECT concat_ws(' ', g.agginitval, g.aggminitval) FROM pg_aggregate g WHERE g.aggfnoid = p.oid)) \
       FROM pg_proc p JOIN mine ON mine.oid = p.pronamespace WHERE NOT EXISTS (SELECT 1 FROM pg_depend d \
         WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e') \
     UNION ALL SELECT 'type', t.typname, concat_ws(' ', t.typdefault, \
       (SELECT string_agg(e.enumlabel, ' ') FROM pg_enum e WHERE e.enumtypid = t.oid)) \
       FROM pg_type t JOIN mine ON mine.oid = t.typnamespace WHERE t.typtype IN ('d', 'e', 'c', 'r') \
     UNION ALL SELECT 'statistics', s.stxname, pg_get_statisticsobjdef(s.oid) FROM pg_statistic_ext s \
       JOIN mine ON mine.oid = s.stxnamespace \
     UNION ALL SELECT CASE WHEN r.oid IS NULL THEN 'settings of the database' ELSE 'settings of a role' END, \
       coalesce(r.rolname, current_database()), array_to_string(s.setconfig, ' ') FROM pg_db_role_setting s \
       LEFT JOIN pg_roles r ON r.oid = s.setrole \
       WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) \
     UNION ALL SELECT 'role', rolname, '' FROM pg_roles \
     UNION ALL SELECT 'database', current_database(), '' \
     UNION ALL SELECT 'tablespace', spcname, array_to_string(spcoptions, ' ') FROM pg_tablespace \
     UNION ALL SELECT 'foreign-data wrapper', fdwname, array_to_string(fdwoptions, ' ') FROM pg_foreign_data_wrapper \
     UNION ALL SELECT 'foreign server', srvname, concat_ws(' ', srvtype, srvversion, array_to_string(srvoptions, ' ')) \
       FROM pg_foreign_server \
     UNION ALL SELECT 'user mapping', srvname, concat_ws(' ', usename, array_to_string(umoptions, ' ')) FROM pg_user_mappings \
     UNION ALL SELECT 'publication', p.pubname, (SELECT string_agg(to_jsonb(t) ->> 'rowfilter', ' ') \
       FROM pg_publication_tables t WHERE t.pubname = p.pubname) FROM pg_publication p \
     UNION ALL SELECT 'event trigger', evtname, array_to_string(evttags, ' ') FROM pg_event_trigger \
     UNION ALL SELECT 'dictionary', dictname, dictinitoption FROM pg_ts_dict JOIN mine ON mine.oid = dictnamespace \
     UNION ALL SELECT 'text search', cfgname, '' FROM pg_ts_config JOIN mine ON mine.oid = cfgnamespace \
     UNION ALL SELECT 'collation', collname, '' FROM pg_collation JOIN mine ON mine.oid = collnamespace \
     UNION ALL SELECT 'comment', pg_describe_object(classoid, objoid, objsubid), description FROM pg_description \
       WHERE objoid >= 16384 OR classoid IN ('pg_namespace'::regclass, 'pg_largeobject'::regclass) \
     UNION ALL SELECT 'comment', pg_describe_object(classoid, objoid, 0), description FROM pg_shdescription \
       WHERE classoid <> 'pg_database'::regclass OR objoid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     UNION ALL SELECT 'label', pg_describe_object(classoid, objoid, objsubid), label FROM pg_seclabel \
     UNION ALL SELECT 'prepared transaction', gid, '' FROM pg_prepared_xacts WHERE database = current_database() \
     UNION ALL SELECT 'replication slot', slot_name, '' FROM pg_replication_slots \
       WHERE database IS NULL OR database = current_database() ORDER BY 1, 2";

/// Subscriptions. Only some roles may read their connection strings.
const SUBSCRIPTIONS: &str = "SELECT 'subscription', subname, concat_ws(' ', subslotname, array_to_string(subpublications, ' ')) \
     FROM pg_subscription ORDER BY 2";

const SUBSCRIPTIONS_IN_FULL: &str = "SELECT 'subscription', subname, concat_ws(' ', subslotname, \
     array_to_string(subpublications, ' '), subconninfo) FROM pg_subscription ORDER BY 2";

const READS_CONNECTIONS: &str = "SELECT has_column_privilege('pg_subscription', 'subconninfo', 'SELECT')::int";

/// Triggers, and rules other than those of views: table, name, whether they fire on deletion and on update, and their
/// action.
const TRIGGERS_POSTGRES: &str = "SELECT n.nspname, c.relname, 'trigger ' || t.tgname, ((t.tgtype & 8) <> 0)::int, ((t.tgtype & 16) <> 0)::int, p.prosrc \
     FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgparentid = 0 \
     UNION ALL SELECT n.nspname, c.relname, 'rule ' || r.rulename, (r.ev_type = '4')::int, (r.ev_type = '2')::int, pg_get_ruledef(r.oid) \
     FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE r.rulename <> '_RETURN' AND r.ev_enabled <> 'D' AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2, 3";

/// The same for SQLite, whose statement names the event before the table.
const TRIGGERS_SQLITE: &str = "SELECT 'main', tbl_name, 'trigger ' || name, \
     upper(substr(sql, 1, instr(upper(sql), ' ON '))) LIKE '%DELETE%', \
     upper(substr(sql, 1, instr(upper(sql), ' ON '))) LIKE '%UPDATE%', sql \
     FROM sqlite_schema WHERE type = 'trigger' ORDER BY 2, 3";

/// An automatic action of the database when rows of a table are deleted or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableTrigger {
    /// The table.
    pub table: TableName,
    /// `trigger` or `rule`, and its name.
    pub name: String,
    /// Whether it fires on deletion.
    pub on_delete: bool,
    /// Whether it fires on update.
    pub on_update: bool,
    /// The action, in SQL or the language of its function.
    pub text: String,
}

/// An object of the database whose definition contains words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Kind of the object: a table, a trigger, a comment.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// The words of its definition: names, conditions, defaults, options, with SQL quoting.
    pub text: String,
}

impl Definition {
    /// The definition without SQL quoting: `O''Malley` becomes O'Malley.
    pub fn unquoted(&self) -> String {
        self.text.replace("''", "'").replace("\"\"", "\"").replace("\\\\", "\\")
    }
}

impl Snapshot<'_> {
    /// Every object of the database with the words of its definition: names, defaults, conditions, options, comments.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn definitions(&mut self) -> Result<Vec<Definition>, StoreError> {
        let mut rows = Vec::new();
        if self.store.engine() == Engine::Postgres {
            rows = self.fetch(DEFINITIONS_POSTGRES, &[]).await?;
            let in_full = self.fetch(READS_CONNECTIONS, &[]).await?.first().is_some_and(|row| number(row, 0) == 1);
            rows.extend(self.fetch(if in_full { SUBSCRIPTIONS_IN_FULL } else { SUBSCRIPTIONS }, &[]).await?);
        } else {
            for schema in self.fetch("SELECT name FROM pragma_database_list ORDER BY seq", &[]).await? {
                let schema = quote(&text(&schema, 0));
                let sql = format!("SELECT type, name, coalesce(sql, '') FROM {schema}.sqlite_schema ORDER BY 1, 2");
                rows.extend(self.fetch(&sql, &[]).await?);
            }
        }
        let read = |row: &RawRow| Definition { kind: text(row, 0), name: text(row, 1), text: text(row, 2) };
        Ok(rows.iter().map(read).collect())
    }

    /// Reads the triggers and rules of the database's tables.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn triggers(&mut self) -> Result<Vec<TableTrigger>, StoreError> {
        let postgres = self.store.engine() == Engine::Postgres;
        let rows = self.fetch(if postgres { TRIGGERS_POSTGRES } else { TRIGGERS_SQLITE }, &[]).await?;
        let read = |row: &RawRow| TableTrigger {
            table: TableName::new(text(row, 0), text(row, 1)),
            name: text(row, 2),
            on_delete: number(row, 3) == 1,
            on_update: number(row, 4) == 1,
            text: text(row, 5),
        };
        Ok(rows.iter().map(read).collect())
    }

    /// Columns that may treat differently spelled texts as equal.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn folding_columns(&mut self) -> Result<HashSet<(TableName, String)>, StoreError> {
        let sql = if self.store.engine() == Engine::Postgres { COMPARED_POSTGRES } else { FOLDING_SQLITE };
        let rows = self.fetch(sql, &[]).await?;
        Ok(rows.iter().map(|row| (TableName::new(text(row, 0), text(row, 1)), text(row, 2))).collect())
    }

    /// Reads the relations between the tables.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn relations(&mut self) -> Result<Relations, StoreError> {
        let mut relations = Relations::default();
        for mut table in tables::read(self.store).await? {
            // Any number of rows may have NULL in a unique column.
            if table.has_keys_of_null && self.holds_null(&table.name, &table.key).await? {
                match table.row_number {
                    Some(name) => table.key.push(hidden(name)),
                    None => table.key.clear(),
                }
            }
            relations.add(table);
        }
        relations.follow_inheritance();
        let postgres = self.store.engine() == Engine::Postgres;
        let foreign = foreign_keys::statement(self.store.engine(), "");
        relations.foreign = foreign_keys::keys(&self.fetch(&foreign, &[]).await?);
        let compared = if postgres { COMPARED_POSTGRES } else { COMPARED_SQLITE };
        for row in self.fetch(compared, &[]).await? {
            let place = (TableName::new(text(&row, 0), text(&row, 1)), text(&row, 2));
            let [kind, collation] = [4, 3].map(|at| Some(text(&row, at)).filter(|word| !word.is_empty()));
            relations.compared.insert(place, Comparison { kind, collation });
        }
        if postgres {
            for row in self.fetch(TEMPORARY, &[]).await? {
                let table = TableName::new(text(&row, 0), text(&row, 1));
                relations.elsewhere.push((table, "a temporary table of another session"));
            }
            let objects = self.large_objects().await?;
            if objects.is_none() {
                let table = TableName::new("pg_catalog", "pg_largeobject");
                relations.unread.push((table, "the server does not say which objects exist"));
            }
            let denied = objects.iter().flatten().filter(|(_, readable)| !readable).count();
            if denied > 0 {
                let table = TableName::new("pg_catalog", format!("pg_largeobject ({denied} objects)"));
                relations.unread.push((table, UnsearchedReason::Denied.words()));
            }
        }
        Ok(relations)
    }
}

impl Relations {
    fn add(&mut self, table: SearchedTable) {
        let name = table.name;
        // A virtual table whose module is missing cannot be read; its shadow tables can.
        if table.partition || tables::is_engines_own(&name) {
            return;
        }
        if let Some(whole) = table.inherits {
            // All its columns are visible in the parent.
            if table.columns.iter().all(|column| column.inherited) {
                return;
            }
            self.inside.insert(name.clone(), whole);
        }
        match table.kind {
            SearchedKind::Stored | SearchedKind::Index | SearchedKind::Parent => {}
            SearchedKind::Copies => drop(self.copies.insert(name.clone())),
            SearchedKind::Unread(why @ (UnsearchedReason::Denied | UnsearchedReason::Unlogged)) => {
                self.keys.insert(name.clone(), table.key);
                return self.unread.push((name, why.words()));
            }
            SearchedKind::Unread(UnsearchedReason::Foreign) => {
                return self.elsewhere.push((name, UnsearchedReason::Foreign.words()));
            }
            SearchedKind::Unread(UnsearchedReason::Virtual | UnsearchedReason::Empty) => return,
        }
        if table.hidden {
            self.unread.push((name.clone(), "row-level security may hide rows of it from your role"));
        }
        for column in table.columns {
            let place = (name.clone(), column.name);
            if column.required {
                self.required.insert(place.clone());
            }
            // Columns visible through another table are not searched twice.
            let holds = if column.inherited { ColumnContent::Neither } else { column.holds };
            if holds != ColumnContent::Words {
                self.holds.insert(place, holds);
            }
        }
        if table.has_heirs {
            self.heired.insert(name.clone());
        }
        let number = table.row_number.filter(|_| table.key.is_empty());
        self.keys.insert(name.clone(), number.map_or(table.key, |number| vec![hidden(number)]));
        self.tables.push(name);
    }

    /// A row visible through another table is identified by that table's key.
    fn follow_inheritance(&mut self) {
        for name in self.inside.keys().cloned().collect::<Vec<_>>() {
            let mut whole = self.inside[&name].clone();
            while let Some(above) = self.inside.get(&whole) {
                whole = above.clone();
            }
            if let Some(key) = self.keys.get(&whole) {
                self.keys.insert(name.clone(), key.clone());
            }
            self.inside.insert(name, whole);
        }
    }
}
