//! A PostgreSQL server: its address, the choice among several, and the only connection code.

mod certificate;
mod link;
mod passfile;
pub(super) mod raised;
mod settings;

use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

use crate::ground::password_command::password_again;

pub use certificate::complaint;
pub use link::{Isolation, ServerLink};

/// A server, or several to choose from. All connections go to the first one found to fit.
#[derive(Debug)]
pub struct Server {
    hosts: Vec<Host>,
    role: ServerRole,
    /// Longest time for connecting to a host, or for a pooler to provide a connection; `None` means no limit.
    connect_timeout: Option<Duration>,
    /// Time after which the server cancels a read for a screen; `None` means never.
    statement_timeout: Option<Duration>,
    /// Notes for the user about how the server was named.
    pub notes: Vec<String>,
    /// Note that network traffic is not encrypted.
    pub plain: Option<String>,
    /// Command that prints the current password.
    pub password_command: Option<String>,
    /// The last password that it printed.
    renewed: Mutex<Option<String>>,
    /// Index of the host that fits, once known.
    chosen: OnceLock<usize>,
}

#[derive(Debug)]
struct Host {
    /// Host and port, for people.
    name: String,
    options: PgConnectOptions,
}

impl Host {
    fn with_password(&self, password: Option<&str>) -> Host {
        let options = self.options.clone();
        let options = password.into_iter().fold(options, PgConnectOptions::password);
        Host { name: self.name.clone(), options }
    }
}

/// Role of the wanted server among several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerRole {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl ServerRole {
    fn parse(text: &str) -> Option<ServerRole> {
        Some(match text {
            "any" => ServerRole::Any,
            "read-write" => ServerRole::ReadWrite,
            "read-only" => ServerRole::ReadOnly,
            "primary" => ServerRole::Primary,
            "standby" => ServerRole::Standby,
            "prefer-standby" => ServerRole::PreferStandby,
            _ => return None,
        })
    }

    /// Returns the roles to accept, best first.
    fn rounds(self) -> &'static [ServerRole] {
        match self {
            ServerRole::Any => &[ServerRole::Any],
            ServerRole::ReadWrite => &[ServerRole::ReadWrite],
            ServerRole::ReadOnly => &[ServerRole::ReadOnly],
            ServerRole::Primary => &[ServerRole::Primary],
            ServerRole::Standby => &[ServerRole::Standby],
            ServerRole::PreferStandby => &[ServerRole::Standby, ServerRole::Any],
        }
    }

    /// Returns the reason why a server does not fit the role; `None` if it fits.
    fn misfit(self, standby: bool, read_only: bool) -> Option<&'static str> {
        match self {
            ServerRole::Primary | ServerRole::ReadWrite if standby => Some("is a standby"),
            ServerRole::ReadWrite if read_only => Some("is read-only"),
            ServerRole::ReadOnly if !standby && !read_only => Some("takes writes"),
            ServerRole::Standby | ServerRole::PreferStandby if !standby => Some("is no standby"),
            _ => None,
        }
    }
}

impl Server {
    /// Parses a URL or connection keywords, with a profile's own connection time limit; zero means none.
    ///
    /// # Errors
    /// The error in them, without repeating text that may be secret.
    pub fn named(
        words: &str,
        connect_timeout: Option<Duration>,
        statement_timeout: Option<Duration>,
    ) -> Result<Server, String> {
        Ok(Server { statement_timeout, ..settings::server(words, connect_timeout)? })
    }

    /// Returns an address that is the same for all spellings.
    pub fn place(&self) -> String {
        let hosts: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        let name = self.hosts.first().and_then(|host| host.options.get_database()).unwrap_or_default();
        format!("postgres://{}/{name}", hosts.join(","))
    }

    /// Returns the chosen one of several hosts; `None` if there is only one, or none was found yet.
    pub fn choice(&self) -> Option<&str> {
        let host = self.hosts.get(*self.chosen.get()?)?;
        (self.hosts.len() > 1).then_some(host.name.as_str())
    }

    /// Connects to the host, which the first call chooses; that call returns the connection made for the choice.
    async fn connect(&self) -> Result<link::BareConnection, sqlx::Error> {
        if let Some(host) = self.chosen.get().and_then(|at| self.hosts.get(*at)) {
            return self.open_again(host).await;
        }
        let mut refusals: Vec<String> = Vec::new();
        for round in self.role.rounds() {
            for (at, host) in self.hosts.iter().enumerate() {
                match self.try_host(host, *round).await {
                    Ok(Ok(link)) => {
                        let _ = self.chosen.set(at);
                        return Ok(link);
                    }
                    Ok(Err(misfit)) => refusals.push(format!("{} {misfit}", host.name)),
                    Err(error) if self.hosts.len() == 1 || !is_passed_over(&error) => return Err(error),
                    Err(error) => refusals.push(format!("{}: {}", host.name, super::engine_error::explain(&error))),
                }
            }
        }
        refusals.sort_unstable();
        refusals.dedup();
        Err(io::Error::other(format!("no host matches: {}", refusals.join("; "))).into())
    }

    /// A connection error with its address, which the system's message does not contain.
    fn unreached(&self, error: sqlx::Error) -> sqlx::Error {
        if complaint(&error).is_some() {
            return error;
        }
        let sqlx::Error::Io(cause) = error else { return error };
        let hosts: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
        let place = self.choice().map_or_else(|| hosts.join(", "), str::to_owned);
        io::Error::new(cause.kind(), NoConnection { place, cause }).into()
    }

    /// Connects to a host that accepted us before. A password such as a token may have expired since: the command is
    /// then run again.
    async fn open_again(&self, host: &Host) -> Result<link::BareConnection, sqlx::Error> {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let opened = link::BareConnection::open(&host.with_password(renewed.as_deref()), self.connect_timeout).await;
        let (Err(error), Some(command)) = (&opened, &self.password_command) else { return opened };
        if !is_refused_login(error) {
            return opened;
        }
        let Some(password) = password_again(command).await else { return opened };
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = Some(password.clone());
        link::BareConnection::open(&host.with_password(Some(&password)), self.connect_timeout).await
    }

    async fn try_host(
        &self,
        host: &Host,
        role: ServerRole,
    ) -> Result<Result<link::BareConnection, &'static str>, sqlx::Error> {
        let mut link = link::BareConnection::open(host, self.connect_timeout).await?;
        if role == ServerRole::Any {
            return Ok(Ok(link));
        }
        let (standby, read_only) = link.state().await?;
        Ok(role.misfit(standby, read_only).map_or(Ok(link), Err))
    }
}

/// A failure to connect to a server, or to find a fitting one.
#[derive(Debug, thiserror::Error)]
#[error("no connection to {place} ({cause})")]
struct NoConnection {
    /// The host and port, or all those tried.
    place: String,
    cause: io::Error,
}

/// The system's message for a failure to connect, without the address; other errors in full.
pub fn cause_of(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<NoConnection>());
    inner.map_or(error, |failed| &failed.cause).to_string()
}

/// Whether the next host is tried after this error: the host is unreachable, or accepts nobody now.
fn is_passed_over(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => complaint(error).is_none(),
        sqlx::Error::Database(about) => matches!(about.code().as_deref(), Some("57P03" | "53300")),
        _ => false,
    }
}

/// Whether the server rejected the login.
fn is_refused_login(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code.starts_with("28"))
}

/// A timeout error.
fn too_late(words: String) -> sqlx::Error {
    io::Error::new(io::ErrorKind::TimedOut, words).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_fits_as_libpq_says() {
        let (primary, locked, standby) = ((false, false), (false, true), (true, true));
        for (role, expected) in [
            ("any", [true, true, true]),
            ("read-write", [true, false, false]),
            ("read-only", [false, true, true]),
            ("primary", [true, true, false]),
            ("standby", [false, false, true]),
        ] {
            let fits = |(standby, read_only)| ServerRole::parse(role).unwrap().misfit(standby, read_only).is_none();
            assert_eq!([primary, locked, standby].map(fits), expected, "{role}");
        }
        assert_eq!(ServerRole::parse("prefer-standby").unwrap().rounds(), [ServerRole::Standby, ServerRole::Any]);
    }
}
