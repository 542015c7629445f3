//! Whether anybody wrote to the database since it was asked last, at next to no cost: SQLite counts commits of others.

use super::Store;
use super::session::Opener;
use super::sqlite_reader::SqliteReader;

/// Asks again and again whether something was written. No transaction is open between two questions.
#[derive(Debug)]
pub struct DatabasePulse {
    /// A connection for each file: what a connection is told counts from its own last question.
    links: Vec<SqliteReader>,
}

impl DatabasePulse {
    /// A mark that is another one once something was written; none when the engine tells no such thing.
    pub async fn beat(&mut self) -> Option<Vec<i64>> {
        let mut marks = Vec::new();
        for link in &mut self.links {
            marks.push(link.data_version().await.ok()?);
        }
        (!marks.is_empty()).then_some(marks)
    }
}

impl Store {
    /// A pulse of the database; one that never tells anything for a server.
    pub async fn pulse(&self) -> DatabasePulse {
        let opener = self.sessions.opener();
        let mut links = Vec::new();
        if let Opener::Sqlite(file) = opener {
            for path in file.databases() {
                match file.beside(&path).reader().await {
                    Ok(link) => links.push(link),
                    Err(_) => return DatabasePulse { links: Vec::new() },
                }
            }
        }
        DatabasePulse { links }
    }
}
