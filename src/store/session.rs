//! Connections to a database and the one way to run a read on them: text in, raw values out.
//!
//! A read that nobody waits for any more is stopped on the server too: dropping a future alone would leave SQLite's
//! worker busy and PostgreSQL's backend running.

use std::collections::HashMap;
use std::future::ready;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::{FutureExt as _, Stream, StreamExt as _};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection as _, Decode, Row as _, TypeInfo as _, ValueRef as _};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::engine_error::{is_late, lost};
use super::fetched::{FetchedValue, Param, RawRow, row_size};
use super::file_state::OpenedFile;
use super::server::{Server, ServerLink};
use crate::layout::Engine;

/// Means of opening another connection.
#[derive(Debug, Clone)]
pub enum Opener {
    /// SQLite: options of the main file, and files to attach with their schema names.
    Sqlite(Box<SqliteConnectOptions>, Vec<(String, String)>),
    /// PostgreSQL.
    Postgres(Arc<Server>),
}

impl Opener {
    /// The database files, without what SQLite keeps beside them; none for a server.
    pub(super) fn databases(&self) -> Vec<PathBuf> {
        let Opener::Sqlite(options, attached) = self else { return Vec::new() };
        let path = |(uri, _): &(String, String)| {
            let inner = uri.strip_prefix("file:").unwrap_or(uri);
            let inner = inner.split('?').next().unwrap_or(inner);
            PathBuf::from(inner.replace("%3f", "?").replace("%23", "#").replace("%25", "%"))
        };
        std::iter::once(options.get_filename().to_path_buf()).chain(attached.iter().map(path)).collect()
    }
}

/// Number of rows that SQLite's thread reads ahead of whoever takes them, all of which are held. A server's are held by the
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadAhead {
    /// Many, so that neither waits for the other.
    Far,
    /// A few, since each may be long.
    Near,
}

impl ReadAhead {
    fn rows(self) -> usize {
        match self {
            ReadAhead::Far => 128,
            ReadAhead::Near => 4,
        }
    }
}

enum Connection {
    Sqlite { link: SqliteConnection, stop: Arc<AtomicBool>, ahead: ReadAhead },
    Postgres(ServerLink),
}

/// A bounded set of connections that reads share.
pub struct Sessions {
    opener: Opener,
    /// The files behind the connections; none for a server.
    files: Vec<OpenedFile>,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
    /// Distance of reading ahead in each table, by schema and name, as far as anybody asked.
    ahead: Mutex<HashMap<(String, String), ReadAhead>>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").field("engine", &self.engine()).finish_non_exhaustive()
    }
}

impl Sessions {
    /// A set of at most `size` connections; the first one is made now, so that errors show at once.
    ///
    /// # Errors
    /// Whatever the engine says when it is not opened.
    pub async fn open(opener: Opener, size: usize) -> Result<Self, sqlx::Error> {
        let files = opener.databases().into_iter().map(OpenedFile::at).collect();
        let first = Connection::open(&opener, ReadAhead::Far).await?;
        let (idle, permits) = (Mutex::new(vec![first]), Semaphore::new(size));
        Ok(Sessions { opener, files, idle, permits, ahead: Mutex::default() })
    }

    /// Engine behind the connections.
    #[must_use]
    pub fn engine(&self) -> Engine {
        match self.opener {
            Opener::Sqlite(..) => Engine::Sqlite,
            Opener::Postgres(_) => Engine::Postgres,
        }
    }

    /// Explains why the open files are no longer the database at its path; `None` while they are. A write would go
    /// into a file that nobody finds again.
    #[must_use]
    pub fn displaced(&self) -> Option<String> {
        self.files.iter().find_map(OpenedFile::displaced)
    }

    /// Returns the means of opening further connections.
    pub(super) fn opener(&self) -> &Opener {
        &self.opener
    }

    /// All rows of a statement.
    ///
    /// # Errors
    /// The engine's; a connection that was lost while idle is made again once.
    pub async fn fetch(&self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, sqlx::Error> {
        Ok(self.fetch_within(sql, params, usize::MAX, ReadAhead::Far).await?.0)
    }

    /// The rows of a statement, broken off with the first one that takes their values beyond `bytes`; and whether they
    /// were.
    ///
    /// # Errors
    /// As [`Sessions::fetch`].
    pub async fn fetch_within(
        &self,
        sql: &str,
        params: &[Param],
        bytes: usize,
        ahead: ReadAhead,
    ) -> Result<(Vec<RawRow>, bool), sqlx::Error> {
        let (mut rows, mut left, mut is_full) = (Vec::new(), bytes, false);
        let take = |row: RawRow| {
            let size = row_size(&row);
            rows.push(row);
            is_full = size > left;
            left = left.saturating_sub(size);
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.scan(sql, params, ahead, take).await?;
        Ok((rows, is_full))
    }

    /// Hands each row of a statement to `each` as it comes, until it breaks off.
    ///
    /// # Errors
    /// As [`Sessions::fetch`].
    pub async fn scan(
        &self,
        sql: &str,
        params: &[Param],
        ahead: ReadAhead,
        mut each: impl FnMut(RawRow) -> ControlFlow<()>,
    ) -> Result<(), sqlx::Error> {
        self.batches(sql, params, ahead, |rows| ready(rows.into_iter().try_for_each(&mut each))).await
    }

    /// As [`Sessions::scan`], for very many rows: a task of its own fetches them ahead and turns them into what `read`
    /// makes of them, so that this and what `each` does share two processors.
    ///
    /// # Errors
    /// As [`Sessions::fetch`].
    pub async fn scan_ahead<R: Send + 'static>(
        self: &Arc<Self>,
        sql: &str,
        params: &[Param],
        ahead: ReadAhead,
        read: impl Fn(RawRow) -> R + Send + 'static,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), sqlx::Error> {
        let (give, mut given) = mpsc::channel(BATCHES_AHEAD);
        let (sessions, sql, params) = (Arc::clone(self), sql.to_owned(), params.to_vec());
        // Dropped, the set stops the task.
        let mut reader = JoinSet::new();
        reader.spawn(async move {
            let send = move |rows: Vec<RawRow>| {
                let (give, rows) = (give.clone(), rows.into_iter().map(&read).collect::<Vec<R>>());
                async move { give.send(rows).await.map_or(ControlFlow::Break(()), ControlFlow::Continue) }
            };
            sessions.batches(&sql, &params, ahead, send).await
        });
        while let Some(rows) = given.recv().await {
            if rows.into_iter().try_for_each(&mut each).is_break() {
                return Ok(());
            }
        }
        reader.join_next().await.map_or(Ok(()), |ended| ended.map_err(|_| sqlx::Error::WorkerCrashed)?)
    }

    async fn batches<T: Future<Output = ControlFlow<()>>>(
        &self,
        sql: &str,
        params: &[Param],
        ahead: ReadAhead,
        mut take: impl FnMut(Vec<RawRow>) -> T,
    ) -> Result<(), sqlx::Error> {
        let mut started = false;
        let mut counted = |rows| {
            started = true;
            take(rows)
        };
        match self.try_batches(sql, params, ahead, &mut counted).await {
            Err(error) if lost(&error) && !is_late(&error) && !started => {
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.try_batches(sql, params, ahead, &mut take).await
            }
            outcome => outcome,
        }
    }

    /// Checks that the open files are the database at its path: otherwise nobody else sees what is read and written
    /// here.
    ///
    /// # Errors
    /// It is not: with the path, and what to do.
    pub(super) fn check_place(&self) -> Result<(), sqlx::Error> {
        self.displaced().map_or(Ok(()), |words| Err(sqlx::Error::InvalidArgument(words)))
    }

    async fn try_batches<T: Future<Output = ControlFlow<()>>>(
        &self,
        sql: &str,
        params: &[Param],
        ahead: ReadAhead,
        take: &mut impl FnMut(Vec<RawRow>) -> T,
    ) -> Result<(), sqlx::Error> {
        self.check_place()?;
        let _permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let connection = match self.idle_here(ahead) {
            Some(connection) => connection,
            None => Connection::open(&self.opener, ahead).await?,
        };
        let mut lease = Lease(Some(connection));
        let outcome = match &mut lease.0 {
            Some(Connection::Sqlite { link, .. }) => sqlite_batches(link, sql, params, take).await,
            // On the heap: whatever reads holds room for it otherwise.
            Some(Connection::Postgres(link)) => Box::pin(link.read_batches(sql, params, take)).await,
            None => Ok(ControlFlow::Continue(())),
        };
        match outcome {
            Ok(ControlFlow::Continue(())) => self.give_back(&mut lease),
            Ok(ControlFlow::Break(())) => {}
            Err(error) => {
                if !lost(&error) {
                    self.give_back(&mut lease);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// A connection that nobody uses. Those of a runtime that is gone go too.
    fn idle_here(&self, wanted: ReadAhead) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !matches!(connection, Connection::Postgres(link) if !link.is_at_home()));
        let fits = |connection: &Connection| match connection {
            Connection::Sqlite { ahead, .. } => *ahead == wanted,
            Connection::Postgres(_) => true,
        };
        idle.iter().rposition(fits).map(|at| idle.swap_remove(at))
    }

    /// Returns how far is read ahead in a table, by schema and name; none where nobody asked yet.
    pub(super) fn ahead_known(&self, table: &(String, String)) -> Option<ReadAhead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).get(table).copied()
    }

    /// Keeps how far is read ahead in a table.
    pub(super) fn know_ahead(&self, table: (String, String), ahead: ReadAhead) {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).insert(table, ahead);
    }

    fn give_back(&self, lease: &mut Lease) {
        if let Some(connection) = lease.0.take() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

impl Connection {
    async fn open(opener: &Opener, ahead: ReadAhead) -> Result<Self, sqlx::Error> {
        match opener {
            Opener::Sqlite(options, attached) => {
                let options = options.clone().row_buffer_size(ahead.rows());
                let mut link = SqliteConnection::connect_with(&options).await?;
                for (file, schema) in attached {
                    let sql = format!("ATTACH $1 AS {}", super::dialect::quote(schema));
                    sqlx::query(AssertSqlSafe(sql)).bind(file).execute(&mut link).await?;
                }
                sqlx::query("PRAGMA query_only = 1").execute(&mut link).await?;
                let stop = Arc::new(AtomicBool::new(false));
                let seen = Arc::clone(&stop);
                // Every 2,000 steps of SQLite's machine: about 20 microseconds apart, without a measurable cost.
                link.lock_handle().await?.set_progress_handler(2_000, move || !seen.load(Ordering::Relaxed));
                Ok(Connection::Sqlite { link, stop, ahead })
            }
            Opener::Postgres(server) => Ok(Connection::Postgres(ServerLink::open(server).await?)),
        }
    }
}

/// A connection in use. Dropped before the read has ended, it stops the read and is not used again: a server stops by
/// itself when it finds the connection gone.
struct Lease(Option<Connection>);

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(Connection::Sqlite { stop, .. }) = &self.0 {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// A statement of SQLite with its values, each in its own storage class.
pub(super) fn bound_sqlite(sql: &str, params: &[Param]) -> Query<'static, Sqlite, SqliteArguments> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
    params.iter().fold(query, |query, param| match param {
        FetchedValue::Null => query.bind(None::<String>),
        FetchedValue::Text(text) => query.bind(text.clone()),
        FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => query.bind(bytes.clone()),
        FetchedValue::Integer(i) => query.bind(*i),
        FetchedValue::Real(x) => query.bind(*x),
    })
}

pub(super) async fn scan_sqlite(
    link: &mut SqliteConnection,
    sql: &str,
    params: &[Param],
    each: &mut impl FnMut(RawRow) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, sqlx::Error> {
    sqlite_batches(link, sql, params, &mut |rows| ready(rows.into_iter().try_for_each(&mut *each))).await
}

async fn sqlite_batches<T: Future<Output = ControlFlow<()>>>(
    link: &mut SqliteConnection,
    sql: &str,
    params: &[Param],
    take: &mut impl FnMut(Vec<RawRow>) -> T,
) -> Result<ControlFlow<()>, sqlx::Error> {
    let mut rows = bound_sqlite(sql, params).fetch(link).fuse();
    loop {
        let batch = waiting(&mut rows, read_sqlite).await?;
        if batch.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if take(batch).await.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}

/// Rows taken at a time, where this many wait.
const TAKEN: usize = 128;
/// Bytes of their values, from which no further row joins them.
const BYTES: usize = 1 << 20;

/// Batches of rows that are read before somebody looks at them.
const BATCHES_AHEAD: usize = 4;

/// Waits for a row, and takes those that wait behind it: taken one by one, each would wake the thread that reads them. Empty
/// at the end.
pub(super) async fn waiting<R>(
    rows: &mut (impl Stream<Item = Result<R, sqlx::Error>> + Unpin),
    read: impl Fn(&R) -> Result<RawRow, sqlx::Error>,
) -> Result<Vec<RawRow>, sqlx::Error> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let mut next = rows.next().await;
    while let Some(row) = next {
        let row = read(&row?)?;
        bytes += row_size(&row);
        batch.push(row);
        let full = batch.len() == TAKEN || bytes >= BYTES;
        next = if full { None } else { rows.next().now_or_never().flatten() };
    }
    Ok(batch)
}

fn read_sqlite(row: &SqliteRow) -> Result<RawRow, sqlx::Error> {
    let mut values = Vec::with_capacity(row.len());
    for i in 0..row.len() {
        let value = row.try_get_raw(i)?;
        if value.is_null() {
            values.push(FetchedValue::Null);
            continue;
        }
        let class = value.type_info().into_owned();
        let read = match class.name() {
            "INTEGER" => <i64 as Decode<Sqlite>>::decode(value).map(FetchedValue::Integer),
            "REAL" => <f64 as Decode<Sqlite>>::decode(value).map(FetchedValue::Real),
            "TEXT" => <Vec<u8> as Decode<Sqlite>>::decode(value).map(|bytes| match String::from_utf8(bytes) {
                Ok(text) => FetchedValue::Text(text),
                Err(bad) => FetchedValue::BadText(bad.into_bytes()),
            }),
            _ => <Vec<u8> as Decode<Sqlite>>::decode(value).map(FetchedValue::Bytes),
        };
        values.push(read.map_err(sqlx::Error::Decode)?);
    }
    Ok(values)
}

pub(super) async fn scan_postgres(
    link: &mut ServerLink,
    sql: &str,
    params: &[Param],
    each: &mut impl FnMut(RawRow) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, sqlx::Error> {
    link.batches(sql, params, &mut |rows| ready(rows.into_iter().try_for_each(&mut *each))).await
}
