//! Abilities that not every server has. Each is tried once, and not again after a refusal. A refusal becomes a missing
//! capability with the server's message as its reason; it never prevents opening or reading a database.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::engine_error::explain;
use super::fetched::{Param, RawRow};
use super::session::Sessions;
use super::snapshot::Snapshot;
use super::write::{WriteError, WriteTransaction};
use super::{Store, StoreError};
use crate::memory::query::Capability;

/// Ability of PostgreSQL that compatible servers may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerAbility {
    /// Sizes of tables, in bytes: `pg_total_relation_size`.
    Sizes,
    /// Read privileges of our role: `has_table_privilege` and the like.
    Rights,
    /// Whether policies apply to our role: `row_security_active`.
    RowSecurity,
    /// Leading columns of indexes: `pg_index`.
    Indexes,
    /// Tables that are part of others: `pg_inherits`.
    Parts,
    /// Whether the server is a standby: `pg_is_in_recovery`.
    Standby,
    /// Installed and available extensions: `pg_extension`, `pg_available_extensions`.
    Extensions,
    /// Policies of tables: `pg_policies`.
    Policies,
    /// Whether other sessions wait: `pg_stat_activity`, `pg_stat_replication`.
    Activity,
    /// Lock that serializes migrations: `pg_advisory_xact_lock`.
    MigrationLock,
    /// Index builds without blocking writes: `CREATE INDEX CONCURRENTLY`.
    ConcurrentIndexes,
    /// Objects outside tables: `pg_largeobject_metadata`.
    LargeObjects,
}

impl ServerAbility {
    /// Capability name, and the consequence of its absence.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            ServerAbility::Sizes => ("table_sizes", "sizes of tables are not shown"),
            ServerAbility::Rights => {
                ("rights", "what your role may read is found by trying, and a refused read ends the command")
            }
            ServerAbility::RowSecurity => (
                "row_security",
                "every table with row-level security is reported as hiding rows, whether or not it \
                 does",
            ),
            ServerAbility::Indexes => {
                ("index_columns", "pages are ordered without knowing which columns have an index")
            }
            ServerAbility::Parts => ("table_parts", "partitions and inherited tables are treated as separate tables"),
            ServerAbility::Standby => ("standby", "whether the server accepts writes is known only after trying one"),
            ServerAbility::Extensions => ("extensions", "migration steps that need an extension are skipped"),
            ServerAbility::Policies => ("policies", "whether row-level security is set up is not known"),
            ServerAbility::Activity => ("activity", "jobs do not slow down when other sessions wait"),
            ServerAbility::MigrationLock => {
                ("migration_lock", "only the keys of their tables separate two concurrent migrations")
            }
            ServerAbility::ConcurrentIndexes => ("concurrent_indexes", "indexes are built while writers are blocked"),
            ServerAbility::LargeObjects => ("large_objects", "objects outside of tables are not searched"),
        }
    }
}

/// Abilities that a server has refused so far, each with its message.
#[derive(Debug, Default)]
pub struct RefusedAbilities(Mutex<BTreeMap<ServerAbility, String>>);

impl RefusedAbilities {
    /// Whether the server has refused an ability before; it is then not tried again.
    pub fn has(&self, ability: ServerAbility) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&ability)
    }

    /// Records a refusal. Returns the error if it says nothing about the server's abilities.
    ///
    /// # Errors
    /// The connection was lost, or the server was busy; a retry may succeed.
    pub fn note(&self, ability: ServerAbility, error: sqlx::Error) -> Result<(), sqlx::Error> {
        if !is_refusal(&error) {
            return Err(error);
        }
        self.keep(ability, explain(&error));
        Ok(())
    }

    pub(super) fn keep(&self, ability: ServerAbility, words: String) {
        tracing::info!(?ability, %words, "the server lacks this");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(ability, words);
    }

    /// Returns the answer of a server that may not know the question; `None` if it refuses.
    ///
    /// # Errors
    /// As [`RefusedAbilities::note`].
    pub async fn ask(
        &self,
        sessions: &Sessions,
        ability: ServerAbility,
        sql: &str,
    ) -> Result<Option<Vec<RawRow>>, sqlx::Error> {
        if self.has(ability) {
            return Ok(None);
        }
        match sessions.fetch(sql, &[]).await {
            Ok(rows) => Ok(Some(rows)),
            Err(error) => self.note(ability, error).map(|()| None),
        }
    }

    /// The refused abilities as missing capabilities.
    pub fn capabilities(&self) -> Vec<Capability> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |(ability, reason): (&ServerAbility, &String)| {
            let (name, without) = ability.words();
            Capability {
                name: name.to_owned(),
                available: false,
                reason: Some(format!("the server refused the query ({reason}): {without}")),
                remedy: None,
            }
        };
        refused.iter().map(missing).collect()
    }
}

/// Whether an error means that the server cannot do something, rather than that it is busy, full, cancelled or gone.
fn is_refusal(error: &sqlx::Error) -> bool {
    const PASSING: [&str; 6] = ["08", "25", "40", "53", "55", "57"];
    match error {
        sqlx::Error::Database(e) => e.code().is_some_and(|code| !PASSING.iter().any(|class| code.starts_with(class))),
        _ => false,
    }
}

impl StoreError {
    /// The message of a PostgreSQL server for a value that does not fit its column's type; `None` for other errors.
    pub fn unfit_value(&self) -> Option<String> {
        match self {
            StoreError::Engine(error @ sqlx::Error::Database(e)) => {
                // The last code means that a domain forbids it.
                let unfit = |code: &str| {
                    matches!(code, "22P02" | "22003" | "22007" | "22008" | "22009" | "22015" | "22023" | "23514")
                };
                e.code().is_some_and(|code| unfit(&code)).then(|| explain(error))
            }
            _ => None,
        }
    }

    /// The message of a PostgreSQL server that does not know or does not allow a statement; `None` for other errors.
    pub fn refusal(&self) -> Option<String> {
        match self {
            StoreError::Engine(error @ sqlx::Error::Database(e)) => {
                let known = |code: &str| code.starts_with("42") || code.starts_with("0A");
                e.code().is_some_and(|code| known(&code)).then(|| explain(error))
            }
            _ => None,
        }
    }
}

impl Store {
    /// The answer of a server that may not know the question; empty if it refuses.
    ///
    /// # Errors
    /// As [`RefusedAbilities::note`].
    pub(super) async fn ask(&self, ability: ServerAbility, sql: &str) -> Result<Vec<RawRow>, StoreError> {
        Ok(self.refusals.ask(&self.sessions, ability, sql).await?.unwrap_or_default())
    }
}

impl Snapshot<'_> {
    /// As [`Store::ask`], within the transaction, which stays usable after a refusal.
    ///
    /// # Errors
    /// As [`RefusedAbilities::note`].
    pub(super) async fn ask(&mut self, ability: ServerAbility, sql: &str) -> Result<Option<Vec<RawRow>>, StoreError> {
        if self.store.refusals.has(ability) {
            return Ok(None);
        }
        self.fetch("SAVEPOINT asked", &[]).await?;
        match self.fetch(sql, &[]).await {
            Ok(rows) => {
                self.fetch("RELEASE SAVEPOINT asked", &[]).await?;
                Ok(Some(rows))
            }
            Err(StoreError::Engine(error)) => {
                self.store.refusals.note(ability, error)?;
                self.fetch("ROLLBACK TO SAVEPOINT asked", &[]).await?;
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }
}

impl WriteTransaction<'_> {
    /// Runs a statement that a server may not know, within the transaction, which stays usable after a refusal.
    ///
    /// # Errors
    /// As [`RefusedAbilities::note`].
    pub(super) async fn ask(&mut self, ability: ServerAbility, sql: &str) -> Result<(), WriteError> {
        const NONE: [Param; 0] = [];
        if self.store.refusals.has(ability) {
            return Ok(());
        }
        self.script("SAVEPOINT asked").await?;
        match self.fetch(sql, &NONE).await {
            Ok(_) => self.script("RELEASE SAVEPOINT asked").await,
            Err(WriteError::Store(StoreError::Engine(error))) => {
                self.store.refusals.note(ability, error).map_err(StoreError::Engine)?;
                self.script("ROLLBACK TO SAVEPOINT asked").await
            }
            Err(WriteError::ReadOnly(words) | WriteError::Rejected(words)) => {
                self.store.refusals.keep(ability, words);
                self.script("ROLLBACK TO SAVEPOINT asked").await
            }
            Err(other) => Err(other),
        }
    }
}
