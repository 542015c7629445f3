//! Whether someone wrote to the database since the last check, at almost no cost: SQLite counts other connections'
//! commits, PostgreSQL counts writing transactions.

use super::fetched::text;
use super::session::Opener;
use super::sqlite_reader::{SqliteFile, SqliteReader};
use super::{Store, StoreError};

/// Writing transactions in any database of the server: those in progress, and the first that has not begun.
const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";

/// Rows written in this database, as far as sessions have reported; NULL if they are not counted.
const ROWS: &str = "SELECT CASE WHEN NOT pg_is_in_recovery() AND current_setting('track_counts') = 'on' \
     THEN sum(pg_stat_get_tuples_inserted(oid) + pg_stat_get_tuples_updated(oid) + pg_stat_get_tuples_deleted(oid))::text \
     END FROM pg_class WHERE relkind = 'r' AND oid >= 16384";

/// Marks that change when something is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PulseBeat {
    /// Changes after every write, possibly in another database of the server.
    pub mark: String,
    /// Changes after every write in this database, on PostgreSQL some seconds later; `None` if the engine does not
    /// report it.
    pub own: Option<String>,
}

/// Polls for writes. No transaction is open between two polls.
#[derive(Debug)]
pub struct DatabasePulse<'s> {
    store: &'s Store,
    /// A connection per file: its change counter is relative to the connection.
    links: Vec<SqliteReader>,
}

impl DatabasePulse<'_> {
    /// Reads the current marks; `None` if the engine does not report them.
    ///
    /// # Errors
    /// The engine's error, if the database cannot be read.
    pub async fn beat(&mut self) -> Result<Option<PulseBeat>, StoreError> {
        match self.store.sessions.opener() {
            Opener::Sqlite(file) => {
                let mark = self.count_commits(file.clone()).await?;
                Ok(Some(PulseBeat { own: Some(mark.clone()), mark }))
            }
            Opener::Postgres(_) => Ok(match self.told(SNAPSHOT).await {
                Some(mark) => Some(PulseBeat { mark, own: self.told(ROWS).await }),
                None => None,
            }),
        }
    }

    /// The text that a statement returns; a PostgreSQL-compatible server may not support it.
    async fn told(&self, sql: &str) -> Option<String> {
        let rows = self.store.fetch_text(sql).await.ok()?;
        rows.first().map(|row| text(row, 0)).filter(|text| !text.is_empty())
    }

    async fn count_commits(&mut self, file: SqliteFile) -> Result<String, StoreError> {
        if self.links.is_empty() {
            for path in file.databases() {
                self.links.push(file.beside(&path).reader().await?);
            }
        }
        let mut marks = Vec::new();
        for link in &mut self.links {
            marks.push(link.data_version().await?.to_string());
        }
        Ok(marks.join(" "))
    }
}

impl Store {
    /// Starts to poll the database.
    pub fn pulse(&self) -> DatabasePulse<'_> {
        DatabasePulse { store: self, links: Vec::new() }
    }
}
