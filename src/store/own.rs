//! Our own tables beside any layout: the migrations that create them, and reading the audit trail.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::ability::ServerAbility;
use super::dialect;
use super::fetched::{Param, RawRow, number, text};
use super::migration::{self, Migration};
use super::stored::TableName;
use super::withhold::DeniedTable;
use super::write::{WriteError, WriteTransaction};
use super::{RecordReader, StoreError, with_search_path};
use crate::layout::{CatalogTable, Engine};
use crate::memory::agreeing;
use crate::memory::query::Capability;

/// The names of our tables.
pub const TABLES: &[&str] = &[
    "memory_audit", "memory_audit_private", "memory_audit_head", "memory_migrations", "memory_jobs",
    "memory_job_quarantine", "memory_holds", "memory_suppressions", "memory_purges",
];

/// The tables without which there is no trail.
pub const TRAIL: &[&str] = &["memory_migrations", "memory_audit", "memory_audit_private", "memory_audit_head"];

/// Whether a table of that name, with or without its schema, belongs to the trail; see
/// [`crate::memory::Entity::is_of_trail`].
pub fn is_of_trail(table: &str) -> bool {
    let name = table.rsplit_once('.').map_or(table, |(_, name)| name);
    TRAIL.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Tables whose rows prevent actions: a hidden row must not permit one.
const GUARDS: [&str; 3] = ["memory_holds", "memory_suppressions", "memory_purges"];

/// The list of our migrations: if it exists, the other tables are ours.
const LIST: &str = "memory_migrations";

/// Entries read at a time.
pub const STRIDE: usize = 1_000;

/// All our migrations for an engine, in order.
pub fn migrations(engine: Engine) -> Vec<Migration> {
    migration::of(migration::OWN, engine)
}

/// A migration that has been applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedMigration {
    /// Number.
    pub version: i64,
    /// Name.
    pub name: String,
    /// Checksum of the executed statements.
    pub checksum: String,
    /// Time when it finished; `None` if it was begun and has not finished: its steps are running, or the process was
    /// stopped.
    pub applied_at: Option<String>,
}

/// Our tables in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTables {
    /// Identity of the database, created with the first migration: prevents mixing up plans and chains.
    pub database_id: String,
    /// Schema that contains them.
    pub schema: String,
    /// Migrations that have been applied, in order.
    pub applied: Vec<AppliedMigration>,
    /// Reason and remedy if our role may not read these tables, so that nothing here is known.
    pub unread: Option<(String, String)>,
}

impl OwnTables {
    /// One of our tables.
    pub fn table(&self, name: &str) -> TableName {
        TableName::new(self.schema.clone(), name)
    }

    /// Returns the tables if our role may read them.
    ///
    /// # Errors
    /// [`StoreError::Denied`] with what would help.
    pub fn read(self) -> Result<OwnTables, StoreError> {
        match self.unread {
            Some((reason, remedy)) => Err(StoreError::Denied { reason, remedy }),
            None => Ok(self),
        }
    }

    /// Migrations not yet applied.
    pub fn pending(own: Option<&OwnTables>, engine: Engine) -> Vec<Migration> {
        let applied =
            |m: &Migration| own.is_some_and(|o| o.unread.is_some() || o.applied.iter().any(|a| a.version == m.version));
        migrations(engine).into_iter().filter(|m| !applied(m)).collect()
    }

    /// Applied migrations whose statements differ from those of this version, or that this version does not know.
    pub fn drift(&self, engine: Engine) -> Vec<&AppliedMigration> {
        let known = migration::all(engine);
        let same = |m: &Migration, a: &AppliedMigration| m.checksum == a.checksum || m.earlier.contains(&a.checksum);
        let differs = |a: &&AppliedMigration| known.iter().find(|m| m.name == a.name).is_none_or(|m| !same(m, a));
        self.applied.iter().filter(differs).collect()
    }
}

/// An entry of the audit trail in stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrailEntry {
    /// Number, from 1, without gaps.
    pub seq: i64,
    /// Time of the entry, in the canonical spelling.
    pub at: String,
    /// Database that it is about.
    pub database_id: String,
    /// Name of the actor.
    pub actor: String,
    /// Action: one word, or two with a dot.
    pub action: String,
    /// Non-personal facts, as JSON text.
    pub public: String,
    /// Commitments by field, as JSON text.
    pub commitments: String,
    /// Hash of the previous entry, in hexadecimal.
    pub prev_hash: String,
    /// Hash of this entry.
    pub hash: String,
}

/// A value behind a commitment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateValue {
    /// Entry it belongs to.
    pub seq: i64,
    /// Field of the entry.
    pub field: String,
    /// Salt of the commitment, 32 bytes in hexadecimal.
    pub salt: String,
    /// The value as JSON text.
    pub value: String,
}

/// Whether a text contains a table's name as a whole word, and not as the beginning of another name.
fn is_named(text: &str, table: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == table)
}

const APPLIED: &str = "SELECT version, name, checksum, database_id, applied_at FROM memory_migrations ORDER BY version";
const MIGRATED: &str = "SELECT public FROM memory_audit WHERE CAST(action AS TEXT) = 'migrate' ORDER BY seq";
const MAY_APPEND: &str = "SELECT has_table_privilege('memory_audit', 'INSERT') \
     AND has_table_privilege('memory_audit_private', 'INSERT') AND has_table_privilege('memory_audit_head', 'UPDATE') \
     AND has_table_privilege('memory_audit_head', 'SELECT')";
const HEAD: &str = "SELECT seq, hash FROM memory_audit_head WHERE id = 1";

/// Finds the existing ones of our tables, each with its schema, by the columns that our migrations create. On SQLite
/// they are in the file itself, or in the attached companion.
fn there(engine: Engine, names: &[&str]) -> String {
    let (head, named, columns) = match engine {
        Engine::Sqlite => (
            "SELECT t.schema, t.name FROM pragma_table_list t WHERE t.type = 'table'",
            "t.name = ",
            "SELECT count(*) FROM pragma_table_info(t.name, t.schema) c WHERE c.name",
        ),
        Engine::Postgres => (
            "SELECT n.nspname::text, t.relname::text FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace WHERE true",
            "t.oid = to_regclass",
            "SELECT count(*) FROM pg_attribute c WHERE c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped \
             AND c.attname",
        ),
    };
    let shape = |name: &&str| {
        let own = migration::own_columns(engine, name);
        format!("{named}('{name}') AND ({columns} IN ({})) = {}", listed(own), own.len())
    };
    format!("{head} AND ({})", names.iter().map(shape).collect::<Vec<_>>().join(" OR "))
}

/// Finds objects with the same names as tables or indexes to be created.
fn taken(engine: Engine, names: &[String]) -> String {
    let names = listed(names);
    match engine {
        Engine::Sqlite => {
            format!("SELECT m.name FROM main.sqlite_schema m WHERE lower(m.name) IN ({names}) ORDER BY 1")
        }
        Engine::Postgres => format!(
            "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE n.nspname = current_schema() AND c.relname IN ({names}) ORDER BY 1"
        ),
    }
}

/// Finds other PostgreSQL schemas that contain our tables for the memory we see. This can only be decided if no other
/// schema has tables next to ours, since that would be another application's or tenant's memory. The visible schemas
/// are given as a JSON list.
fn kept_elsewhere() -> String {
    let own = migration::own_columns(Engine::Postgres, LIST);
    format!(
        "SELECT n.nspname::text FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace \
         WHERE t.relname = '{LIST}' AND t.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' \
         AND t.oid IS DISTINCT FROM to_regclass('{LIST}')::oid \
         AND (SELECT count(*) FROM pg_attribute c WHERE c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped \
           AND c.attname IN ({})) = {} \
         AND EXISTS (SELECT 1 FROM pg_class h WHERE h.relnamespace = n.oid AND h.relname = 'memory_holds') \
         AND NOT EXISTS (SELECT 1 FROM pg_class m JOIN pg_namespace o ON o.oid = m.relnamespace \
           WHERE m.relkind IN ('r', 'p', 'v', 'm', 'f') AND o.nspname !~ '^pg_' AND o.nspname <> 'information_schema' \
           AND m.relname NOT IN ({}) AND o.nspname NOT IN (SELECT json_array_elements_text($1::json))) ORDER BY 1",
        listed(own),
        own.len(),
        listed(&[TABLES, &["memory_embeddings"]].concat())
    )
}

/// Names of ours, as an SQL list of texts.
fn listed(names: &[impl std::fmt::Display]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Whether a table is one of ours: it has the name, and the columns that our migrations create. Other objects with the
/// name are someone else's.
pub fn is_ours(table: &CatalogTable, engine: Engine) -> bool {
    TABLES.iter().any(|name| name.eq_ignore_ascii_case(&table.name))
        && migration::own_columns(engine, &table.name.to_ascii_lowercase()).iter().all(|c| table.column(c).is_some())
}

/// Reason why our tables cannot be added, and the remedy: their names are taken, or they exist outside the search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenNames {
    /// The reason, for users.
    pub reason: String,
    /// Remedy.
    pub remedy: String,
}

impl TakenNames {
    fn of(engine: Engine, rows: &[RawRow]) -> Option<Self> {
        let names: Vec<String> = rows.iter().map(|row| text(row, 0)).collect();
        let reason = agreeing(
            names.len(),
            &format!(
                "{} already {{exists|exist}}, and no migration recorded here created {{it|them}}: the tables for \
                 changes cannot be added",
                names.join(", ")
            ),
        );
        let rename = agreeing(names.len(), "rename {it|them}, and run `migrate` again");
        let remedy = match engine {
            Engine::Sqlite => rename,
            Engine::Postgres => format!(
                "{rename}; or create a schema for the tables for changes and put it first: \
                 `?options[search_path]=SCHEMA,public` at the end of the URL"
            ),
        };
        (!names.is_empty()).then_some(TakenNames { reason, remedy })
    }
}

impl TakenNames {
    fn kept_in(schema: &str, seen: &BTreeSet<&str>) -> Self {
        let of_all = (!seen.contains("public")).then_some("public");
        let path: Vec<&str> = std::iter::once(schema)
            .chain(seen.iter().copied().filter(|other| *other != schema))
            .chain(of_all)
            .collect();
        TakenNames {
            reason: format!(
                "tables for changes of this memory, with its holds and its audit trail, are in the schema {}, which \
                 your search path omits or lists too late",
                dialect::quote(schema)
            ),
            remedy: format!(
                "put it first: {}; change tables in two schemas do not see each other's holds: keep only one of them",
                with_search_path(&path)
            ),
        }
    }
}

impl std::fmt::Display for TakenNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

/// Names of objects that migrations create.
fn made(pending: &[Migration]) -> Vec<String> {
    pending.iter().flat_map(Migration::names).collect()
}

fn read_own(schema: String, rows: &[RawRow]) -> Option<OwnTables> {
    let applied = rows
        .iter()
        .map(|row| AppliedMigration {
            version: number(row, 0),
            name: text(row, 1),
            checksum: text(row, 2),
            applied_at: Some(text(row, 4)).filter(|at| !at.is_empty()),
        })
        .collect();
    Some(OwnTables { database_id: text(rows.first()?, 3), schema, applied, unread: None })
}

impl<'a> RecordReader<'a> {
    /// Our tables; `None` if no migration has been applied yet.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn own(self) -> Result<Option<OwnTables>, StoreError> {
        let there = self.store.fetch_text(&there(self.store.engine(), &[LIST])).await?;
        let Some(schema) = there.first().map(|row| text(row, 0)) else {
            // The server leaves out a schema that our role may not use.
            let is_ours = |table: &&CatalogTable| table.closed_schema && is_ours(table, self.store.engine());
            let closed = self.store.catalog.table(LIST).filter(is_ours);
            return Ok(closed.map(|table| {
                let (denied, role) = (DeniedTable::whole(table), &self.store.catalog.role);
                let unread = Some((denied.reason(role), denied.remedy(role)));
                OwnTables { database_id: String::new(), schema: table.schema.clone(), applied: Vec::new(), unread }
            }));
        };
        match self.fetch_own(APPLIED, &[]).await {
            Err(StoreError::Denied { reason, remedy }) => {
                let (database_id, applied) = (String::new(), Vec::new());
                Ok(Some(OwnTables { database_id, schema, applied, unread: Some((reason, remedy)) }))
            }
            rows => Ok(read_own(schema, &rows?)),
        }
    }

    /// Reads one of our own tables. Only this function handles missing privileges on them.
    ///
    /// # Errors
    /// [`StoreError::Denied`] with what would help, or the engine's refusal.
    pub(super) async fn fetch_own(self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, StoreError> {
        let denied = |table: &CatalogTable| {
            let (denied, role) = (DeniedTable::whole(table), &self.store.catalog.role);
            StoreError::Denied { reason: denied.reason(role), remedy: denied.remedy(role) }
        };
        let known = |name: &&str| self.store.catalog.table(name);
        let names: Vec<&str> = TABLES.iter().copied().filter(|name| is_named(sql, name)).collect();
        if let Some(table) = names.iter().filter_map(known).find(|table| table.denied) {
            return Err(denied(table));
        }
        let hides = |name: &&&str| !GUARDS.contains(name) && known(name).is_some_and(|table| table.hides_rows);
        if let Some(table) = names.iter().find(hides) {
            return Err(self.hidden(table, "hidden rows would be treated as missing"));
        }
        let guards: Vec<&str> = GUARDS.into_iter().filter(|guard| names.contains(guard)).collect();
        self.check_guards(&guards).await?;
        match self.store.sessions.fetch(sql, params).await.map_err(StoreError::from) {
            // Created, or privileges lost, since the database was opened.
            Err(error) if error.is_denied() => {
                let words = error.to_string();
                let Some(name) = names.iter().find(|name| is_named(&words, name)).or(names.first()) else {
                    return Err(error);
                };
                let named = CatalogTable { name: (*name).to_owned(), visible: true, ..CatalogTable::default() };
                Err(denied(known(name).unwrap_or(&named)))
            }
            rows => rows,
        }
    }

    /// Returns the reason if our tables for the memory we see are in another PostgreSQL schema.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn kept_elsewhere(self) -> Result<Option<TakenNames>, StoreError> {
        if self.store.engine() == Engine::Sqlite {
            return Ok(None);
        }
        let is_theirs = |(_, name): &&(String, String)| !TABLES.contains(&name.as_str());
        let tables = self.store.recognised().sources.iter().map(|source| &source.table).filter(is_theirs);
        let seen: BTreeSet<&str> = tables.map(|(schema, _)| schema.as_str()).collect();
        if seen.is_empty() {
            return Ok(None);
        }
        let given = Param::Text(serde_json::json!(seen).to_string());
        let schemas = self.store.sessions.fetch(&kept_elsewhere(), &[given]).await?;
        Ok(schemas.first().map(|row| TakenNames::kept_in(&text(row, 0), &seen)))
    }

    /// Checks that we see every row of our tables that prevent actions, and that no other tables do so too.
    ///
    /// # Errors
    /// [`StoreError::Denied`] if row-level security may hide some, or if there are other such tables; otherwise the
    /// engine's refusal.
    pub(super) async fn check_guards(self, tables: &[&str]) -> Result<(), StoreError> {
        if tables.is_empty() || self.store.engine() == Engine::Sqlite {
            return Ok(());
        }
        if let Some(TakenNames { reason, remedy }) = self.kept_elsewhere().await? {
            return Err(StoreError::Denied { reason, remedy });
        }
        for table in tables {
            self.check_unhidden(table).await?;
        }
        Ok(())
    }

    async fn check_unhidden(self, table: &str) -> Result<(), StoreError> {
        let sql = format!("SELECT 1 WHERE row_security_active(to_regclass('{table}')::oid)");
        let is_hidden = match self.store.refusals.ask(&self.store.sessions, ServerAbility::RowSecurity, &sql).await? {
            Some(rows) => !rows.is_empty(),
            None => self.store.catalog.table(table).is_some_and(|table| table.hides_rows),
        };
        if is_hidden { Err(self.hidden(table, "what the hidden rows forbid would be done")) } else { Ok(()) }
    }

    /// The error for a table of ours in which policies may hide rows.
    fn hidden(self, table: &str, danger: &str) -> StoreError {
        let role = Some(self.store.catalog.role.as_str()).filter(|role| !role.is_empty()).unwrap_or("your role");
        StoreError::Denied {
            reason: format!("row-level security may hide rows of {table} from {role}, and {danger}"),
            remedy: format!(
                "use a role that sees all rows of it: its owner, or one with BYPASSRLS; or ALTER TABLE {table} DISABLE ROW LEVEL SECURITY"
            ),
        }
    }

    /// One of our own tables, as of when the database was opened.
    pub fn table(self, name: &str) -> Option<&'a CatalogTable> {
        self.store.catalog.table(name).filter(|table| is_ours(table, self.store.engine()))
    }

    /// Returns the reason why our missing tables cannot be added; `None` if they can.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn taken(self, own: Option<&OwnTables>) -> Result<Option<TakenNames>, StoreError> {
        let engine = self.store.engine();
        let names = made(&OwnTables::pending(own, engine));
        // For a palace they go into a separate database.
        if names.is_empty() || self.store.companion().is_some() {
            return Ok(None);
        }
        if own.is_none()
            && let Some(elsewhere) = self.kept_elsewhere().await?
        {
            return Ok(Some(elsewhere));
        }
        Ok(TakenNames::of(engine, &self.store.fetch_text(&taken(engine, &names)).await?))
    }

    /// Our own tables that our role may not read.
    pub(super) fn own_denied(self) -> Vec<Capability> {
        let unread = TABLES.iter().filter_map(|name| self.table(name).and_then(DeniedTable::of));
        unread.map(|denied| denied.capability(&self.store.catalog.role)).collect()
    }

    /// Lists the tables of the trail, and of the list of migrations, that exist now.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail_tables(self) -> Result<Vec<&'static str>, StoreError> {
        let sql = there(self.store.engine(), TRAIL);
        let there: Vec<String> = self.store.fetch_text(&sql).await?.iter().map(|row| text(row, 1)).collect();
        Ok(TRAIL.iter().copied().filter(|name| there.iter().any(|other| other == name)).collect())
    }

    /// The public facts of the entries that migrations wrote, as JSON texts, oldest first.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn migration_entries(self) -> Result<Vec<String>, StoreError> {
        Ok(self.fetch_own(MIGRATED, &[]).await?.iter().map(|row| text(row, 0)).collect())
    }

    /// Whether our role may append to the existing trail.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn may_append(self) -> Result<bool, StoreError> {
        let sql = match self.store.engine() {
            Engine::Sqlite => return Ok(true),
            Engine::Postgres => MAY_APPEND,
        };
        // If a server does not report privileges, only trying tells.
        let rows = self.store.refusals.ask(&self.store.sessions, ServerAbility::Rights, sql).await?;
        Ok(rows.is_none_or(|rows| rows.first().is_some_and(|row| number(row, 0) == 1)))
    }

    /// Number and hash of the last entry of the trail; `None` if the head is missing.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail_head(self) -> Result<Option<(i64, String)>, StoreError> {
        Ok(self.fetch_own(HEAD, &[]).await?.first().map(|row| (number(row, 0), text(row, 1))))
    }

    /// The latest time of the entries up to a number; `None` if there is no such entry.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn latest_up_to(self, seq: i64) -> Result<Option<String>, StoreError> {
        let sql = format!("SELECT max(CAST(at AS TEXT)) FROM memory_audit WHERE seq <= {seq}");
        let rows = self.fetch_own(&sql, &[]).await?;
        Ok(rows.first().map(|row| text(row, 0)).filter(|at| !at.is_empty()))
    }

    /// Entries after a number, or from the very first, in order, at most `limit`.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail(self, after: impl Into<Option<i64>>, limit: usize) -> Result<Vec<TrailEntry>, StoreError> {
        self.entries(&format!("{} ORDER BY seq LIMIT {limit}", beyond(after.into()))).await
    }

    /// As [`RecordReader::trail`], for one action.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail_of(
        self,
        action: &'static str,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<TrailEntry>, StoreError> {
        // Bytes with the same letters are read, and hashed, as the same word.
        self.entries(&format!("CAST(action AS TEXT) = '{action}' AND {} ORDER BY seq LIMIT {limit}", beyond(after)))
            .await
    }

    /// Numbers of the entries from `first` to `last` with the action of `first`, in order. As a job has one runner at a
    /// time, these are the entries of a job that wrote `first` and `last`.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn entries_alike(self, first: i64, last: i64) -> Result<Vec<i64>, StoreError> {
        let sql = format!(
            "SELECT seq FROM memory_audit WHERE seq BETWEEN {first} AND {last} AND CAST(action AS TEXT) = \
             (SELECT CAST(action AS TEXT) FROM memory_audit WHERE seq = {first}) ORDER BY seq"
        );
        Ok(self.fetch_own(&sql, &[]).await?.iter().map(|row| number(row, 0)).collect())
    }

    async fn entries(self, which: &str) -> Result<Vec<TrailEntry>, StoreError> {
        let sql = format!(
            "SELECT seq, at, database_id, actor, action, public, commitments, prev_hash, hash FROM memory_audit \
             WHERE {which}"
        );
        let entry = |row: &RawRow| TrailEntry {
            seq: number(row, 0),
            at: text(row, 1),
            database_id: text(row, 2),
            actor: text(row, 3),
            action: text(row, 4),
            public: text(row, 5),
            commitments: text(row, 6),
            prev_hash: text(row, 7),
            hash: text(row, 8),
        };
        Ok(self.fetch_own(&sql, &[]).await?.iter().map(entry).collect())
    }

    /// Number of the entry with a receipt's SHA-256, among the latest entries.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn receipt_entry(self, sha256: &str) -> Result<Option<i64>, StoreError> {
        let Some((head, _)) = self.trail_head().await? else { return Ok(None) };
        let entries = self.trail(head.saturating_sub(STRIDE as i64), STRIDE).await?;
        Ok(entries.iter().rev().find(|entry| entry.public.contains(sha256)).map(|entry| entry.seq))
    }

    /// The private values of a range of entries, both ends included: those of some fields, or all.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail_private(
        self,
        from: i64,
        to: i64,
        fields: &[&'static str],
    ) -> Result<Vec<PrivateValue>, StoreError> {
        let named: Vec<String> = fields.iter().map(|field| format!("'{field}'")).collect();
        let of = if named.is_empty() {
            String::new()
        } else {
            format!(" AND CAST(field AS TEXT) IN ({})", named.join(", "))
        };
        let sql = format!(
            "SELECT seq, field, salt, value FROM memory_audit_private WHERE seq BETWEEN {from} AND {to}{of} \
             ORDER BY seq, field"
        );
        Ok(self.fetch_own(&sql, &[]).await?.iter().map(private_value).collect())
    }

    /// The private values of one field of all entries whose public facts contain a word, in one pass.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn private_about(self, word: &'static str, field: &'static str) -> Result<Vec<PrivateValue>, StoreError> {
        let sql = format!(
            "SELECT p.seq, p.field, p.salt, p.value FROM memory_audit a CROSS JOIN memory_audit_private p \
             WHERE p.seq = a.seq AND CAST(p.field AS TEXT) = '{field}' AND CAST(a.public AS TEXT) LIKE '%{word}%' \
             ORDER BY a.seq"
        );
        Ok(self.fetch_own(&sql, &[]).await?.iter().map(private_value).collect())
    }

    /// Entries in a range, the first excluded, that have an undo; latest first, with the size of each in bytes.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn undo_sizes(self, after: i64, to: i64) -> Result<Vec<(i64, i64)>, StoreError> {
        let sql = format!(
            "SELECT seq, octet_length(value) FROM memory_audit_private WHERE seq > {after} AND seq <= {to} \
             AND CAST(field AS TEXT) = 'undo' ORDER BY seq DESC"
        );
        let rows = self.fetch_own(&sql, &[]).await?;
        Ok(rows.iter().map(|row| (number(row, 0), number(row, 1))).collect())
    }

    /// Passes on the private values of the entries in a range, the first excluded, one at a time; without a number the
    /// range is open, including invalid numbers.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn each_private(
        self,
        after: Option<i64>,
        to: Option<i64>,
        mut each: impl FnMut(PrivateValue) + Send,
    ) -> Result<(), StoreError> {
        // Gives the usual error for our tables if reading is denied.
        self.fetch_own("SELECT seq FROM memory_audit_private LIMIT 0", &[]).await?;
        let up_to = to.map_or_else(String::new, |to| format!(" AND seq <= {to}"));
        let sql = format!(
            "SELECT seq, field, salt, value FROM memory_audit_private WHERE {}{up_to} ORDER BY seq, field",
            beyond(after)
        );
        let take = |row: RawRow| {
            each(private_value(&row));
            ControlFlow::Continue(())
        };
        Ok(self.store.sessions.scan(&sql, &[], take).await?)
    }
}

/// The condition for numbers after one; always true without one.
fn beyond(after: Option<i64>) -> String {
    after.map_or_else(|| "1 = 1".to_owned(), |after| format!("seq > {after}"))
}

fn private_value(row: &RawRow) -> PrivateValue {
    PrivateValue { seq: number(row, 0), field: text(row, 1), salt: text(row, 2), value: text(row, 3) }
}

impl WriteTransaction<'_> {
    /// Our tables as the transaction sees them. Blocks other migrations until it ends.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn own_for_migration(&mut self, engine: Engine) -> Result<Option<OwnTables>, WriteError> {
        if engine == Engine::Postgres {
            let lock = "SELECT pg_advisory_xact_lock(hashtext('mnemoscope migrations'))::text";
            self.ask(ServerAbility::MigrationLock, lock).await?;
        }
        let there = self.fetch(&there(engine, &[LIST]), &NONE).await?;
        let Some(schema) = there.first().map(|row| text(row, 0)) else { return Ok(None) };
        Ok(read_own(schema, &self.fetch(APPLIED, &NONE).await?))
    }

    /// As [`RecordReader::taken`], for migrations about to be applied.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn taken(&mut self, engine: Engine, pending: &[Migration]) -> Result<Option<TakenNames>, WriteError> {
        let is_first = pending.first().is_some_and(|migration| migration.version == 1);
        if is_first && let Some(elsewhere) = self.store.records().kept_elsewhere().await? {
            return Ok(Some(elsewhere));
        }
        Ok(TakenNames::of(engine, &self.fetch(&taken(engine, &made(pending)), &NONE).await?))
    }

    /// The schema of our existing tables.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn own_schema(&mut self, engine: Engine) -> Result<String, WriteError> {
        Ok(self.fetch(&there(engine, &[LIST]), &NONE).await?.first().map(|row| text(row, 0)).unwrap_or_default())
    }
}

const NONE: [Param; 0] = [];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_ours_is_known_by_its_columns() {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            for table in TABLES {
                assert!(migration::own_columns(engine, table).len() > 2, "{table}");
            }
            assert_eq!(migration::own_columns(engine, "memory_audit_head"), ["id", "seq", "hash"]);
            assert_eq!(migration::own_columns(engine, "episodes"), [""; 0]);
        }
    }

    #[test]
    fn each_engine_has_the_same_migrations_each_with_its_effect() {
        let (sqlite, postgres) = (migrations(Engine::Sqlite), migrations(Engine::Postgres));
        let names = |all: &[Migration]| all.iter().map(|m| (m.version, m.name.clone())).collect::<Vec<_>>();
        assert_eq!(names(&sqlite), names(&postgres));
        assert_eq!(sqlite.first().map(|m| m.version), Some(1));
        for migration in sqlite.iter().chain(&postgres) {
            assert!(!migration.sql.is_empty(), "{}", migration.name);
        }
    }
}
