//! Identity of a database, whatever name it is given: a file by its device and inode, a server's database by the
//! server's identifier and its own number.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::fetched::FetchedValue;
use super::session::Sessions;
use super::{Store, StoreError};
use crate::layout::Engine;

/// Identity of a database. Parts that the system or the server does not report are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Identity {
    /// Device and inode of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<(u64, u64)>,
    /// Creation time of the file, in nanoseconds since 1970: inodes are reused after a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<u64>,
    /// The server's system identifier, created with its data directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The database's number and name on that server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<(String, String)>,
}

impl Identity {
    /// Identity of a file, following links; empty if the file does not exist.
    pub fn of_file(path: &Path) -> Self {
        let Ok(about) = std::fs::metadata(path) else { return Identity::default() };
        let made = about.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Identity {
            file: Some((about.dev(), about.ino())),
            made: made.map(|at| at.as_nanos() as u64),
            ..Identity::default()
        }
    }

    /// Whether both are the same database, as far as known.
    pub fn is(&self, other: &Identity) -> bool {
        let same_file =
            self.file.is_some() && self.file == other.file && self.made.is_some() && self.made == other.made;
        let same_server = self.server.is_some() && self.server == other.server;
        let same_database = match (&self.database, &other.database) {
            (Some((number, name)), Some((other, called))) => number == other || name == called,
            _ => false,
        };
        same_file || (same_server && same_database)
    }

    /// Whether both are known and differ.
    pub fn differs(&self, other: &Identity) -> bool {
        let told = |identity: &Identity| identity.server.is_some() || identity.made.is_some();
        told(self) && told(other) && !self.is(other)
    }
}

/// Queries for a server's identity; the second leaves out parts that some servers do not report.
const SERVER: [&str; 2] = [
    "SELECT system_identifier::text, oid::text, datname::text FROM pg_control_system(), pg_database \
     WHERE datname = current_database()",
    "SELECT NULL::text, oid::text, datname::text FROM pg_database WHERE datname = current_database()",
];

/// Identity of the database that a session is connected to.
///
/// # Errors
/// The engine's refusal, except for parts that a server does not report to everybody.
pub(super) async fn of_server(sessions: &Sessions) -> Result<Identity, sqlx::Error> {
    let rows = match sessions.fetch(SERVER[0], &[]).await {
        Ok(rows) => rows,
        Err(_) => sessions.fetch(SERVER[1], &[]).await?,
    };
    let told = |at: usize| match rows.first().and_then(|row| row.get(at)) {
        Some(FetchedValue::Text(text)) => Some(text.clone()),
        _ => None,
    };
    Ok(Identity { server: told(0), database: told(1).zip(told(2)), ..Identity::default() })
}

impl Store {
    /// Reads the identity of the database, and returns a note about unknown parts. Opens no file.
    ///
    /// # Errors
    /// The engine's refusal, except for parts that a server does not report to everybody.
    pub async fn identity(&self) -> Result<(Identity, Option<String>), StoreError> {
        if self.engine() == Engine::Sqlite {
            let identity = Identity::of_file(Path::new(self.place()));
            let note = "the system does not record when the file was created: only its path and its trail identify it";
            let unknown = identity.file.is_none() || identity.made.is_none();
            return Ok((identity, unknown.then(|| note.to_owned())));
        }
        let identity = of_server(&self.sessions).await?;
        let note = "the server does not reveal its identifier (pg_control_system): only its address and its trail \
         identify it";
        let unknown = identity.server.is_none();
        Ok((identity, unknown.then(|| note.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(system: &str, number: &str, name: &str) -> Identity {
        Identity {
            server: Some(system.to_owned()),
            database: Some((number.to_owned(), name.to_owned())),
            ..Identity::default()
        }
    }

    #[test]
    fn a_file_is_known_by_its_inode_and_when_that_was_made() {
        let file = |inode, made| Identity { file: Some((1, inode)), made, ..Identity::default() };
        assert!(file(7, Some(3)).is(&file(7, Some(3))));
        assert!(!file(7, Some(3)).is(&file(7, Some(4))), "another file was given the number");
        assert!(!file(7, Some(3)).is(&file(8, Some(3))));
        assert!(!file(7, None).is(&file(7, None)), "nothing distinguishes them");
        assert!(!Identity::default().is(&Identity::default()));
        assert!(file(7, Some(3)).differs(&file(8, Some(3))) && file(7, Some(3)).differs(&server("s", "5", "app")));
        assert!(!file(7, Some(3)).differs(&file(7, Some(3))) && !file(7, None).differs(&file(8, Some(3))));
    }

    #[test]
    fn a_servers_database_is_known_by_its_number_or_its_name_there() {
        assert!(server("s", "5", "app").is(&server("s", "5", "renamed")));
        assert!(server("s", "5", "app").is(&server("s", "9", "app")), "dropped and created again");
        assert!(!server("s", "5", "app").is(&server("t", "5", "app")));
        assert!(!server("s", "5", "app").is(&server("s", "6", "other")));
    }
}
