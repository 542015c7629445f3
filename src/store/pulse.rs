//! Whether anybody wrote to the database since it was asked last, at next to no cost: SQLite counts commits of others,
//! PostgreSQL the transactions that write.

use super::fetched::text;
use super::session::Opener;
use super::sqlite_reader::{SqliteFile, SqliteReader};
use super::{Store, StoreError};

/// Transactions that write: those that were under way, and the first that had not begun.
const SNAPSHOT: &str = "SELECT pg_current_snapshot()::text";

/// Asks again and again whether something was written. No transaction is open between two questions.
#[derive(Debug)]
pub struct DatabasePulse<'s> {
    store: &'s Store,
    /// A connection for each file: what a connection is told counts from its own last question.
    links: Vec<SqliteReader>,
}

impl DatabasePulse<'_> {
    /// A mark that is another one once something was written; none when the engine tells no such thing.
    ///
    /// # Errors
    /// The engine's, while the database cannot be read.
    pub async fn beat(&mut self) -> Result<Option<String>, StoreError> {
        match self.store.sessions.opener() {
            Opener::Sqlite(file) => self.count_commits(file.clone()).await.map(Some),
            Opener::Postgres(_) => {
                // A server that speaks like PostgreSQL need not have it.
                let found = self.store.fetch_text(SNAPSHOT).await.ok();
                Ok(found.and_then(|rows| rows.first().map(|row| text(row, 0))))
            }
        }
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
    /// A pulse of the database.
    #[must_use]
    pub fn pulse(&self) -> DatabasePulse<'_> {
        DatabasePulse { store: self, links: Vec::new() }
    }
}
