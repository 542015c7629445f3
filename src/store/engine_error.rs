//! Meaning of engine errors, for users and for the connection.

use super::damage;
use super::server::raised::{hint_of, is_raised, place_of};

/// The message of an engine's error, with its code if there is one.
pub fn explain(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(e) if is_raised(error) => {
            let place = place_of(error).map_or_else(String::new, |place| format!(", said in {place}"));
            let hint = hint_of(error).map_or_else(String::new, |hint| format!("; {hint}"));
            format!("{} [{}]{place}{hint}", e.message(), e.code().unwrap_or_default())
        }
        sqlx::Error::Database(e) => match e.code() {
            Some(code) if is_crowded(error) => format!("{} [{code}]; {ROOM}", e.message()),
            Some(code) if code == "55000" => {
                let hint = hint_of(error).map_or_else(String::new, |hint| format!("; {hint}"));
                format!("{} [{code}]{hint}", e.message())
            }
            Some(code) => format!("{} [{code}]", e.message()),
            None => e.message().to_owned(),
        },
        sqlx::Error::Io(io) => io.to_string(),
        other => other.to_string(),
    }
}

const ROOM: &str = "this program needs two connections at a time: raise the limit of the role, the database or the \
     server (CONNECTION LIMIT, max_connections), or close other connections";

/// Whether the server has no room for another connection now.
pub(super) fn is_crowded(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code == "53300")
}

/// Whether the connection is lost, as opposed to a failed statement.
pub(super) fn lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        _ if is_raised(error) => false,
        // Poolers report class 08 if they lost the server, or have no server connection left.
        sqlx::Error::Database(e) => e.code().is_some_and(|c| c.starts_with("57P") || c.starts_with("08")),
        _ => false,
    }
}

/// Whether the database's encoding lacks a character of a text.
pub(super) fn is_untranslatable(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code == "22P05")
}

/// SQLite's primary error code, without the extended part; `None` for PostgreSQL, whose codes have five characters.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code().filter(|code| code.len() < 5)?;
    Some(code.parse::<i32>().ok()? & 0xff)
}

/// Whether a disk error occurred under SQLite. Data written to its log by then may be there when the database is opened
/// again.
pub(super) fn is_disk(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(10)
}

/// Kind of an engine's error that people can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineFault {
    /// Another process holds a lock.
    Locked,
    /// A table or a column is missing: someone has changed the structure.
    Changed,
    /// The statement was cancelled, mostly by a timeout.
    Stopped,
    /// The disk is full.
    Full,
    /// A page of an SQLite database is damaged.
    Damaged,
    /// A page of a server's database is damaged.
    DamagedOnServer,
    /// Raised by a function, trigger or policy of the database, or by a foreign server.
    Raised,
}

impl EngineFault {
    /// Advice for a fault that does not go away by waiting and retrying.
    pub fn lasting_remedy(self) -> Option<&'static str> {
        match self {
            EngineFault::Damaged => Some(damage::DAMAGED),
            EngineFault::DamagedOnServer => Some(damage::DAMAGED_ON_SERVER),
            EngineFault::Raised => Some(
                "a function, trigger or policy of the database raised this, or a server that it asks: correct it there, or ask \
                 who keeps it",
            ),
            EngineFault::Locked | EngineFault::Changed | EngineFault::Stopped | EngineFault::Full => None,
        }
    }
}

/// Kind of an error; `None` if its message says everything.
pub(super) fn fault(error: &sqlx::Error) -> Option<EngineFault> {
    if is_raised(error) {
        return Some(EngineFault::Raised);
    }
    let sqlx::Error::Database(error) = error else { return is_late(error).then_some(EngineFault::Stopped) };
    let code = error.code()?;
    match code.as_ref() {
        // SQLite reports missing objects by message only.
        "1" if ["no such column", "no such table"].iter().any(|words| error.message().contains(words)) => {
            Some(EngineFault::Changed)
        }
        "42P01" | "42703" => Some(EngineFault::Changed),
        "5" | "6" | "261" | "262" | "55P03" => Some(EngineFault::Locked),
        "9" | "57014" => Some(EngineFault::Stopped),
        // SQLite's last two: a write failed, or shared memory could not grow.
        "13" | "53100" | "778" | "4874" => Some(EngineFault::Full),
        // SQLite's code, and those for a virtual table, a sequence and an index.
        "11" | "267" | "523" | "779" => Some(EngineFault::Damaged),
        "XX001" | "XX002" => Some(EngineFault::DamagedOnServer),
        _ => None,
    }
}

/// Whether the error came after a long enough wait.
pub(super) fn is_late(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(io) if io.kind() == std::io::ErrorKind::TimedOut)
}
