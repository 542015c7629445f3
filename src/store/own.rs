//! Our own tables beside any layout: the migrations that make them, and what is read of the audit trail.

use std::ops::ControlFlow;

use super::ability::ServerAbility;
use super::fetched::{Param, RawRow, number, text};
use super::migration::{self, Migration};
use super::stored::TableName;
use super::withhold::DeniedTable;
use super::write::{WriteError, WriteTransaction};
use super::{RecordReader, StoreError};
use crate::layout::{CatalogTable, Engine};
use crate::memory::query::Capability;

/// The names of our tables.
pub const TABLES: &[&str] = &[
    "memory_audit",
    "memory_audit_private",
    "memory_audit_head",
    "memory_migrations",
    "memory_jobs",
    "memory_job_quarantine",
    "memory_holds",
    "memory_suppressions",
    "memory_purges",
];

/// The tables without which there is no trail.
pub const TRAIL: &[&str] = &["memory_migrations", "memory_audit", "memory_audit_private", "memory_audit_head"];

/// Entries read at a time.
pub const STRIDE: usize = 1_000;

/// All migrations of ours for an engine, in order.
#[must_use]
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
    /// Checksum of the statements that were run.
    pub checksum: String,
    /// Time when it ended; `None` when it was begun and has not ended: its steps are being run, or whoever ran them
    /// was stopped.
    pub applied_at: Option<String>,
}

/// Our tables in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnTables {
    /// Identity of the database, made with the first migration: keeps plans and chains from being swapped.
    pub database_id: String,
    /// Schema they are in.
    pub schema: String,
    /// Migrations that have been applied, in order.
    pub applied: Vec<AppliedMigration>,
    /// Reason and remedy when our role may not read these tables and nothing of this is known.
    pub unread: Option<(String, String)>,
}

impl OwnTables {
    /// One of our tables.
    #[must_use]
    pub fn table(&self, name: &str) -> TableName {
        TableName::new(self.schema.clone(), name)
    }

    /// The same, where our role may read it.
    ///
    /// # Errors
    /// [`StoreError::Denied`] with what would help.
    pub fn read(self) -> Result<OwnTables, StoreError> {
        match self.unread {
            Some((reason, remedy)) => Err(StoreError::Denied { reason, remedy }),
            None => Ok(self),
        }
    }

    /// Migrations that are still to be applied.
    #[must_use]
    pub fn pending(own: Option<&OwnTables>, engine: Engine) -> Vec<Migration> {
        let applied =
            |m: &Migration| own.is_some_and(|o| o.unread.is_some() || o.applied.iter().any(|a| a.version == m.version));
        migrations(engine).into_iter().filter(|m| !applied(m)).collect()
    }

    /// Applied migrations whose statements are not those of this version of the product, or that it does not know.
    #[must_use]
    pub fn drift(&self, engine: Engine) -> Vec<&AppliedMigration> {
        let known = migration::all(engine);
        let same = |m: &Migration, a: &AppliedMigration| m.checksum == a.checksum || m.earlier.contains(&a.checksum);
        let differs = |a: &&AppliedMigration| known.iter().find(|m| m.name == a.name).is_none_or(|m| !same(m, a));
        self.applied.iter().filter(differs).collect()
    }
}

/// An entry of the audit trail as it is stored.
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
    /// Action that was done, one word or two with a dot.
    pub action: String,
    /// Facts that are not personal, as JSON text.
    pub public: String,
    /// Field to commitment, as JSON text.
    pub commitments: String,
    /// Hash of the entry before, in hexadecimal digits.
    pub prev_hash: String,
    /// Hash of this one.
    pub hash: String,
}

/// A value behind a commitment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateValue {
    /// Entry it belongs to.
    pub seq: i64,
    /// Field of the entry.
    pub field: String,
    /// Salt of the commitment, 32 bytes in hexadecimal digits.
    pub salt: String,
    /// The value as JSON text.
    pub value: String,
}

// In the file itself, or in the companion that is attached to it.
const EXISTS_SQLITE: &str = "SELECT schema FROM pragma_table_list WHERE type = 'table' AND name = 'memory_migrations'";
const EXISTS_POSTGRES: &str = "SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.oid = to_regclass('memory_migrations')";
const APPLIED: &str = "SELECT version, name, checksum, database_id, applied_at FROM memory_migrations ORDER BY version";
const MIGRATED: &str = "SELECT public FROM memory_audit WHERE action = 'migrate' ORDER BY seq";
const MAY_APPEND: &str = "SELECT has_table_privilege('memory_audit', 'INSERT') \
     AND has_table_privilege('memory_audit_private', 'INSERT') AND has_table_privilege('memory_audit_head', 'UPDATE')";
const HEAD: &str = "SELECT seq, hash FROM memory_audit_head WHERE id = 1";

fn exists(engine: Engine) -> &'static str {
    match engine {
        Engine::Sqlite => EXISTS_SQLITE,
        Engine::Postgres => EXISTS_POSTGRES,
    }
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

impl RecordReader<'_> {
    /// Our tables; none when no migration has been applied yet.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn own(self) -> Result<Option<OwnTables>, StoreError> {
        let there = self.store.fetch_text(exists(self.store.engine())).await?;
        let Some(schema) = there.first().map(|row| text(row, 0)) else { return Ok(None) };
        match self.fetch_own("memory_migrations", APPLIED, &[]).await {
            Err(StoreError::Denied { reason, remedy }) => {
                let (database_id, applied) = (String::new(), Vec::new());
                Ok(Some(OwnTables { database_id, schema, applied, unread: Some((reason, remedy)) }))
            }
            rows => Ok(read_own(schema, &rows?)),
        }
    }

    /// Reads one of our own tables: the one place that knows what it means when our role may not.
    ///
    /// # Errors
    /// [`StoreError::Denied`] with what would help, or the engine's refusal.
    pub(super) async fn fetch_own(self, name: &str, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, StoreError> {
        let denied = |table: &CatalogTable| {
            let (denied, role) = (DeniedTable::whole(table), &self.store.catalog.role);
            StoreError::Denied { reason: denied.reason(role), remedy: denied.remedy(role) }
        };
        let known = self.store.catalog.table(name);
        if let Some(table) = known.filter(|table| table.denied) {
            return Err(denied(table));
        }
        match self.store.sessions.fetch(sql, params).await.map_err(StoreError::from) {
            // Made, or taken from us, since the database was opened.
            Err(error) if error.is_denied() => {
                let named = CatalogTable { name: name.to_owned(), visible: true, ..CatalogTable::default() };
                Err(denied(known.unwrap_or(&named)))
            }
            rows => rows,
        }
    }

    /// Our own tables that our role may not read.
    pub(super) fn own_denied(self) -> Vec<Capability> {
        let unread = TABLES.iter().filter_map(|name| self.store.catalog.table(name).and_then(DeniedTable::of));
        unread.map(|denied| denied.capability(&self.store.catalog.role)).collect()
    }

    /// Lists the tables of the trail, and of the list of migrations, that exist now.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail_tables(self) -> Result<Vec<&'static str>, StoreError> {
        let names: Vec<String> = TRAIL.iter().map(|name| format!("'{name}'")).collect();
        let names = names.join(", ");
        let sql = match self.store.engine() {
            Engine::Sqlite => format!("SELECT name FROM pragma_table_list WHERE type = 'table' AND name IN ({names})"),
            Engine::Postgres => format!("SELECT n FROM unnest(ARRAY[{names}]) n WHERE to_regclass(n) IS NOT NULL"),
        };
        let there: Vec<String> = self.store.fetch_text(&sql).await?.iter().map(|row| text(row, 0)).collect();
        Ok(TRAIL.iter().copied().filter(|name| there.iter().any(|other| other == name)).collect())
    }

    /// The public facts of the entries that migrations left, as JSON texts, oldest first.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn migration_entries(self) -> Result<Vec<String>, StoreError> {
        Ok(self.fetch_own("memory_audit", MIGRATED, &[]).await?.iter().map(|row| text(row, 0)).collect())
    }

    /// Whether whoever is logged in may append to the trail, which is there.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn may_append(self) -> Result<bool, StoreError> {
        let sql = match self.store.engine() {
            Engine::Sqlite => return Ok(true),
            Engine::Postgres => MAY_APPEND,
        };
        // A server that does not tell is found out by trying.
        let rows = self.store.refusals.ask(&self.store.sessions, ServerAbility::Rights, sql).await?;
        Ok(rows.is_none_or(|rows| rows.first().is_some_and(|row| number(row, 0) == 1)))
    }

    /// Number and hash of the last entry of the trail; none when the head is gone.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail_head(self) -> Result<Option<(i64, String)>, StoreError> {
        Ok(self.fetch_own("memory_audit_head", HEAD, &[]).await?.first().map(|row| (number(row, 0), text(row, 1))))
    }

    /// Entries after a number, in order, at most `limit`.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail(self, after: i64, limit: usize) -> Result<Vec<TrailEntry>, StoreError> {
        self.entries(&format!("seq > {after} ORDER BY seq LIMIT {limit}")).await
    }

    /// As [`RecordReader::trail`], of one action.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn trail_of(self, action: &'static str, after: i64, limit: usize) -> Result<Vec<TrailEntry>, StoreError> {
        self.entries(&format!("action = '{action}' AND seq > {after} ORDER BY seq LIMIT {limit}")).await
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
        Ok(self.fetch_own("memory_audit", &sql, &[]).await?.iter().map(entry).collect())
    }

    /// Number of the entry with a receipt's SHA-256, among the latest ones.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn receipt_entry(self, sha256: &str) -> Result<Option<i64>, StoreError> {
        let Some((head, _)) = self.trail_head().await? else { return Ok(None) };
        let entries = self.trail(head.saturating_sub(STRIDE as i64), STRIDE).await?;
        Ok(entries.iter().rev().find(|entry| entry.public.contains(sha256)).map(|entry| entry.seq))
    }

    /// The private values of entries from one number to another, both included: those of some fields, or all.
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
        let of = if named.is_empty() { String::new() } else { format!(" AND field IN ({})", named.join(", ")) };
        let sql = format!(
            "SELECT seq, field, salt, value FROM memory_audit_private WHERE seq BETWEEN {from} AND {to}{of} \
             ORDER BY seq, field"
        );
        Ok(self.fetch_own("memory_audit_private", &sql, &[]).await?.iter().map(private_value).collect())
    }

    /// Entries after one number up to another that keep an undo, the latest first, with the bytes of each.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn undo_sizes(self, after: i64, to: i64) -> Result<Vec<(i64, i64)>, StoreError> {
        let sql = format!(
            "SELECT seq, octet_length(value) FROM memory_audit_private WHERE seq > {after} AND seq <= {to} \
             AND field = 'undo' ORDER BY seq DESC"
        );
        let rows = self.fetch_own("memory_audit_private", &sql, &[]).await?;
        Ok(rows.iter().map(|row| (number(row, 0), number(row, 1))).collect())
    }

    /// Hands on the private values of entries after one number up to another, one at a time.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn each_private(self, after: i64, to: i64, mut each: impl FnMut(PrivateValue)) -> Result<(), StoreError> {
        // Says who may not read it, as for our other tables.
        self.fetch_own("memory_audit_private", "SELECT seq FROM memory_audit_private LIMIT 0", &[]).await?;
        let sql = format!(
            "SELECT seq, field, salt, value FROM memory_audit_private WHERE seq > {after} AND seq <= {to} \
             ORDER BY seq, field"
        );
        let take = |row: RawRow| {
            each(private_value(&row));
            ControlFlow::Continue(())
        };
        Ok(self.store.sessions.scan(&sql, &[], take).await?)
    }
}

fn private_value(row: &RawRow) -> PrivateValue {
    PrivateValue { seq: number(row, 0), field: text(row, 1), salt: text(row, 2), value: text(row, 3) }
}

impl WriteTransaction<'_> {
    /// Our tables as the transaction sees them. Keeps others from migrating until it ends.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn own_for_migration(&mut self, engine: Engine) -> Result<Option<OwnTables>, WriteError> {
        if engine == Engine::Postgres {
            let lock = "SELECT pg_advisory_xact_lock(hashtext('mnemoscope migrations'))::text";
            self.ask(ServerAbility::MigrationLock, lock).await?;
        }
        let there = self.fetch(exists(engine), &NONE).await?;
        let Some(schema) = there.first().map(|row| text(row, 0)) else { return Ok(None) };
        Ok(read_own(schema, &self.fetch(APPLIED, &NONE).await?))
    }

    /// The schema of our tables, which are there.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn own_schema(&mut self, engine: Engine) -> Result<String, WriteError> {
        Ok(self.fetch(exists(engine), &NONE).await?.first().map(|row| text(row, 0)).unwrap_or_default())
    }
}

const NONE: [Param; 0] = [];

#[cfg(test)]
mod tests {
    use super::*;

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
