//! Stored state of erasures: holds, suppressed handles, sessions; and the setup of a transaction that erases.

use std::collections::{BTreeMap, HashSet};

use super::ability::ServerAbility;
use super::fetched::{FetchedValue, Param, RawRow, number, text};
use super::shape::qualified;
use super::stored::TableName;
use super::write::{WriteError, WriteTransaction};
use super::{RecordReader, StoreError, withhold};
use crate::layout::{CatalogTable, Engine};

/// Kind of a handle that is short, or that other people have too: an erasure is found by it, but it does not signal the
/// person's return.
pub const SHARED: &str = "shared";

/// Kind of the entry that records the key of an erasure's list: the HMAC of the session under that key.
pub const UNDER: &str = "key";

/// An erasure, as recorded in the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurgeSession {
    /// Id of the session.
    pub id: String,
    /// Plan that it began with.
    pub plan_id: String,
    /// `running`, `incomplete`, `verified` or `verified with disclosures`.
    pub status: String,
    /// Number of finished batches.
    pub position: i64,
    /// Rows changed so far, as JSON text.
    pub counts: String,
    /// Time of the session's last batch. It changes with each batch, so that only one of two runs can make the next.
    pub updated_at: String,
    /// SHA-256 of its receipt; empty until there is one.
    pub receipt_hash: String,
}

impl PurgeSession {
    /// Whether rows of a table, by its title, were removed.
    pub fn took_from(&self, table: &str) -> bool {
        let counts: serde_json::Value = serde_json::from_str(&self.counts).unwrap_or_default();
        counts[table]["delete"].as_u64().is_some_and(|rows| rows > 0)
    }

    /// Whether it has not ended verified.
    pub fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "running" | "incomplete")
    }
}

impl<'a> RecordReader<'a> {
    /// The key outside the database for the HMACs of erased people's handles.
    pub fn secret(self) -> Option<&'a [u8; 32]> {
        self.store.secret.as_ref()
    }

    /// Whether the tables for erasing exist.
    pub fn can_erase(self) -> bool {
        self.table("memory_purges").is_some()
    }

    /// HMACs of handles that signal an erased person's return; empty before the tables exist.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn suppressions(self) -> Result<HashSet<String>, StoreError> {
        if !self.can_erase() {
            return Ok(HashSet::new());
        }
        let sql = "SELECT hmac FROM memory_suppressions WHERE kind NOT IN ($1, $2)";
        let rows = self.fetch_own(sql, &[SHARED, UNDER].map(|kind| FetchedValue::Text(kind.to_owned()))).await?;
        Ok(rows.iter().map(|row| text(row, 0)).collect())
    }

    /// Erasures with entries in the list.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn listed_sessions(self) -> Result<HashSet<String>, StoreError> {
        if !self.can_erase() {
            return Ok(HashSet::new());
        }
        let rows = self.fetch_own("SELECT DISTINCT session FROM memory_suppressions", &[]).await?;
        Ok(rows.iter().map(|row| text(row, 0)).collect())
    }

    /// Number of recorded erasures without entries in the list.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn unlisted_purges(self) -> Result<usize, StoreError> {
        if !self.can_erase() {
            return Ok(0);
        }
        let sql = "SELECT count(*) FROM memory_purges p WHERE NOT EXISTS \
             (SELECT 1 FROM memory_suppressions s WHERE s.session = p.id)";
        Ok(self.fetch_own(sql, &[]).await?.first().map_or(0, |row| number(row, 0) as usize))
    }

    /// Erasures that record the key of their list: session, and its HMAC under that key.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn keyed_purges(self) -> Result<Vec<(String, String)>, StoreError> {
        if !self.can_erase() {
            return Ok(Vec::new());
        }
        let sql = "SELECT session, hmac FROM memory_suppressions WHERE kind = $1";
        let rows = self.fetch_own(sql, &[FetchedValue::Text(UNDER.to_owned())]).await?;
        Ok(rows.iter().map(|row| (text(row, 0), text(row, 1))).collect())
    }

    /// Checks that our role may write what an erasure writes: the given rows by table and verb, and our own tables. On
    /// a server that does not report privileges, only trying tells.
    ///
    /// # Errors
    /// [`StoreError::Denied`] with the first table that it may not write, and the GRANT that helps; otherwise the
    /// engine's refusal.
    pub async fn check_rights(self, counts: &BTreeMap<String, BTreeMap<String, usize>>) -> Result<(), StoreError> {
        let store = self.store;
        if store.engine() == Engine::Sqlite {
            return Ok(());
        }
        let own: Vec<_> = WRITTEN.iter().filter_map(|(name, verb)| Some((self.table(name)?, *verb))).collect();
        if let Some(denied) = self.denied(&own, counts).await? {
            return Err(denied);
        }
        // A server that does not know the query has no publications.
        let unidentified = store.sessions.fetch(UNIDENTIFIED, &[]).await.unwrap_or_default();
        for row in unidentified {
            let table = TableName::new(text(&row, 0), text(&row, 1));
            let title = table.title();
            let mut verbs = counts.get(&title).into_iter().flat_map(BTreeMap::keys);
            let is_published = |verb: &String| match verb.as_str() {
                "delete" => number(&row, 2) == 1,
                "update" => number(&row, 3) == 1,
                _ => false,
            };
            if verbs.any(is_published) {
                let reason = format!(
                    "{title} is in a publication and has no replica identity, so the server refuses to change its rows"
                );
                let remedy = format!("ALTER TABLE {} REPLICA IDENTITY FULL", qualified(&table));
                return Err(StoreError::Denied { reason, remedy });
            }
        }
        Ok(())
    }

    /// The refusal that writing these rows, by table and verb, would meet: for the first table that our role may not
    /// write. `None` if it may write all of them, or the server does not say.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn refused(
        self,
        counts: &BTreeMap<String, BTreeMap<String, usize>>,
    ) -> Result<Option<StoreError>, StoreError> {
        let asks = self.store.engine() == Engine::Postgres && !counts.is_empty();
        if asks { self.denied(&[], counts).await } else { Ok(None) }
    }

    async fn denied(
        self,
        own: &[(&CatalogTable, &str)],
        counts: &BTreeMap<String, BTreeMap<String, usize>>,
    ) -> Result<Option<StoreError>, StoreError> {
        let store = self.store;
        let Some(rights) = store.refusals.ask(&store.sessions, ServerAbility::Rights, RIGHTS).await? else {
            return Ok(None);
        };
        let is_denied = |table: &CatalogTable, verb: &str| {
            let at = match verb {
                "delete" => 2,
                "insert" => 3,
                _ => 4,
            };
            let is_it = |row: &&RawRow| text(row, 0) == table.schema && text(row, 1) == table.name;
            rights.iter().find(is_it).is_some_and(|row| row.get(at) == Some(&FetchedValue::Integer(0)))
        };
        let title = |table: &CatalogTable| TableName::new(&*table.schema, &*table.name).title();
        let of_theirs = store.catalog.tables.iter().filter_map(|table| Some((table, counts.get(&title(table))?)));
        let theirs = of_theirs.flat_map(|(table, verbs)| verbs.keys().map(move |verb| (table, verb.as_str())));
        let denied = own.iter().copied().chain(theirs).find(|(table, verb)| is_denied(table, verb));
        Ok(denied.map(|(table, _)| withhold::unwritable(table, &store.catalog.role)))
    }

    /// People under a legal hold: id and reason.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn holds(self) -> Result<Vec<(String, String)>, StoreError> {
        if !self.can_erase() {
            return Ok(Vec::new());
        }
        let rows = self.fetch_own(HOLDS, &[]).await?;
        Ok(rows.iter().map(|row| (text(row, 0), text(row, 1))).collect())
    }

    /// Ids of people under a legal hold.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn held(self) -> Result<HashSet<String>, StoreError> {
        Ok(self.holds().await?.into_iter().map(|(id, _)| id).collect())
    }

    /// The latest erasure for a handle's HMAC.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn purge_of(self, hmac: &str) -> Result<Option<PurgeSession>, StoreError> {
        let sql = format!(
            "SELECT {PURGE} FROM memory_purges p JOIN memory_suppressions s ON s.session = p.id WHERE s.hmac = $1 \
             ORDER BY p.created_at DESC LIMIT 1"
        );
        let rows = self.fetch_own(&sql, &[FetchedValue::Text(hmac.to_owned())]).await?;
        Ok(rows.first().map(purge))
    }

    /// Erasures that have not ended verified, oldest first.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn open_purges(self) -> Result<Vec<PurgeSession>, StoreError> {
        if !self.can_erase() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT {PURGE} FROM memory_purges p WHERE p.status IN ('running', 'incomplete') ORDER BY p.created_at, p.id"
        );
        Ok(self.fetch_own(&sql, &[]).await?.iter().map(purge).collect())
    }

    /// The erasure with that id; `None` if it has written nothing yet.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn purge_session(self, id: &str) -> Result<Option<PurgeSession>, StoreError> {
        let sql = format!("SELECT {PURGE} FROM memory_purges p WHERE p.id = $1");
        let rows = self.fetch_own(&sql, &[FetchedValue::Text(id.to_owned())]).await?;
        Ok(rows.first().map(purge))
    }
}

/// Tables with schema and name, and whether our role may delete, insert, and update rows of each. A privilege on some
/// columns may be enough.
const RIGHTS: &str = "SELECT n.nspname::text, c.relname::text, has_table_privilege(c.oid, 'DELETE'), \
     has_any_column_privilege(c.oid, 'INSERT'), has_any_column_privilege(c.oid, 'UPDATE') \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname !~ '^pg_'";

/// Tables in publications without a replica identity, and whether their deletions and updates are published, which the
/// server would refuse.
const UNIDENTIFIED: &str = "SELECT n.nspname::text, w.relname::text, max(b.pubdelete::int)::bigint, max(b.pubupdate::int)::bigint \
     FROM pg_publication_tables p JOIN pg_publication b ON b.pubname = p.pubname \
     JOIN pg_namespace s ON s.nspname = p.schemaname JOIN pg_class c ON c.relnamespace = s.oid AND c.relname = p.tablename \
     JOIN pg_class w ON w.oid = CASE WHEN c.relispartition THEN pg_partition_root(c.oid) ELSE c.oid END \
     JOIN pg_namespace n ON n.oid = w.relnamespace \
     WHERE c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS \
       (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) GROUP BY 1, 2 ORDER BY 1, 2";

/// Rows that every erasure writes in our own tables, by table and verb.
const WRITTEN: [(&str, &str); 7] = [
    ("memory_audit", "insert"),
    ("memory_audit_private", "insert"),
    ("memory_audit_head", "update"),
    ("memory_purges", "insert"),
    ("memory_purges", "update"),
    ("memory_suppressions", "insert"),
    ("memory_suppressions", "update"),
];

const HOLDS: &str = "SELECT subject, reason FROM memory_holds ORDER BY subject";

const PURGE: &str = "p.id, p.plan_id, p.status, p.position, p.counts, p.updated_at, p.receipt_hash";

fn purge(row: &RawRow) -> PurgeSession {
    PurgeSession {
        id: text(row, 0),
        plan_id: text(row, 1),
        status: text(row, 2),
        position: match row.get(3) {
            Some(FetchedValue::Integer(i)) => *i,
            _ => 0,
        },
        counts: text(row, 4),
        updated_at: text(row, 5),
        receipt_hash: text(row, 6),
    }
}

const NONE: [Param; 0] = [];

impl WriteTransaction<'_> {
    /// Makes the transaction overwrite deleted data. Foreign keys are not enforced, since a cascade would delete rows
    /// that no plan lists; each one is checked afterwards.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn overwrite_deleted(&mut self, engine: Engine) -> Result<(), WriteError> {
        match engine {
            Engine::Sqlite => {
                self.fetch("PRAGMA secure_delete = ON", &NONE).await?;
            }
            // A batch may take longer than a screen waits.
            Engine::Postgres => self.script("SET LOCAL statement_timeout = 0").await?,
        }
        Ok(())
    }

    /// The erasure for a handle's HMAC that has not ended verified, as the transaction sees it.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn open_purge_of(&mut self, hmac: &str) -> Result<Option<String>, WriteError> {
        let sql = "SELECT p.id FROM memory_purges p JOIN memory_suppressions s ON s.session = p.id \
             WHERE s.hmac = $1 AND p.status IN ('running', 'incomplete') LIMIT 1";
        Ok(self.fetch(sql, &[FetchedValue::Text(hmac.to_owned())]).await?.first().map(|row| text(row, 0)))
    }

    /// People under a legal hold, as the transaction sees them: id and reason.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn holds(&mut self) -> Result<Vec<(String, String)>, WriteError> {
        self.store.records().check_guards(&["memory_holds"]).await?;
        let rows = self.fetch(HOLDS, &NONE).await?;
        Ok(rows.iter().map(|row| (text(row, 0), text(row, 1))).collect())
    }

    /// Lists a handle's HMAC. An ambiguous handle is listed as [`SHARED`], which a unique one replaces.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn suppress(&mut self, hmac: &str, session: &str, kind: &str, at: &str) -> Result<(), WriteError> {
        let params = [hmac, session, kind, at, SHARED].map(|t| FetchedValue::Text(t.to_owned()));
        let sql = "INSERT INTO memory_suppressions (hmac, session, kind, created_at) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (hmac) DO UPDATE SET session = excluded.session, kind = CASE WHEN excluded.kind = $5 \
             THEN memory_suppressions.kind ELSE excluded.kind END";
        self.fetch(sql, &params).await.map(drop)
    }
}
