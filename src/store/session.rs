//! Connections to a database, and the only way to run a read on them: SQL in, raw values out.
//!
//! A read whose future is dropped is cancelled in the engine too: otherwise SQLite's thread or PostgreSQL's backend
//! would stay busy.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::Store;
use super::batch::{BatchTaker, ReadRow, TakeEach};
use super::engine_error::{is_crowded, is_late, lost};
use super::fetched::{Param, RawRow, read_size};
use super::file_state::OpenedFile;
use super::server::{Server, ServerLink};
use super::sqlite_reader::{SqliteFile, SqliteReader};
use crate::layout::Engine;

/// Opens further connections.
#[derive(Debug, Clone)]
pub enum Opener {
    /// SQLite.
    Sqlite(SqliteFile),
    /// PostgreSQL.
    Postgres(Arc<Server>),
}

impl Opener {
    /// The database files, without SQLite's files next to them; empty for a server.
    pub(super) fn databases(&self) -> Vec<PathBuf> {
        match self {
            Opener::Sqlite(file) => file.databases(),
            Opener::Postgres(_) => Vec::new(),
        }
    }
}

enum Connection {
    Sqlite(SqliteReader),
    Postgres(ServerLink),
}

/// A bounded pool of connections for reads.
pub struct Sessions {
    opener: Opener,
    /// The files behind the connections; empty for a server.
    files: Vec<OpenedFile>,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").field("engine", &self.engine()).finish_non_exhaustive()
    }
}

impl Sessions {
    /// Creates a pool of at most `size` connections. The first one is opened now, so that errors appear at once.
    ///
    /// # Errors
    /// The engine's error on connecting.
    pub async fn open(opener: Opener, size: usize) -> Result<Self, sqlx::Error> {
        let files = opener.databases().into_iter().map(OpenedFile::at).collect();
        let first = Connection::open(&opener).await?;
        let (idle, permits) = (Mutex::new(vec![first]), Semaphore::new(size));
        Ok(Sessions { opener, files, idle, permits })
    }

    /// Engine behind the connections.
    pub fn engine(&self) -> Engine {
        match self.opener {
            Opener::Sqlite(..) => Engine::Sqlite,
            Opener::Postgres(_) => Engine::Postgres,
        }
    }

    /// Returns the reason why the open files are no longer the database at its path; `None` while they are. A write
    /// would go into a lost file.
    pub fn displaced(&self) -> Option<String> {
        self.files.iter().find_map(OpenedFile::displaced)
    }

    /// Whether another file has replaced one of the open ones.
    pub fn is_replaced(&self) -> bool {
        self.files.iter().any(OpenedFile::is_replaced)
    }

    /// Closes the idle connections.
    pub fn close_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the opener of further connections.
    pub(super) fn opener(&self) -> &Opener {
        &self.opener
    }

    /// All rows of a statement.
    ///
    /// # Errors
    /// The engine's error; a connection that was lost while idle is reopened once.
    pub async fn fetch(&self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, sqlx::Error> {
        Ok(self.fetch_within(sql, params, usize::MAX).await?.0)
    }

    /// The rows of a statement, ending with the first one at which their parsed size exceeds `bytes`; and whether it
    /// ended so.
    ///
    /// # Errors
    /// As [`Sessions::fetch`].
    pub async fn fetch_within(
        &self,
        sql: &str,
        params: &[Param],
        bytes: usize,
    ) -> Result<(Vec<RawRow>, bool), sqlx::Error> {
        let (mut rows, mut left, mut is_full) = (Vec::new(), bytes, false);
        let take = |row: RawRow| {
            let size = read_size(&row);
            rows.push(row);
            is_full = size > left;
            left = left.saturating_sub(size);
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.scan(sql, params, take).await?;
        Ok((rows, is_full))
    }

    /// Passes each row of a statement to `each` as it comes, until it breaks.
    ///
    /// # Errors
    /// As [`Sessions::fetch`].
    pub async fn scan(
        &self,
        sql: &str,
        params: &[Param],
        mut each: impl FnMut(RawRow) -> ControlFlow<()> + Send,
    ) -> Result<(), sqlx::Error> {
        self.batches(sql, params, BatchTaker::rows(&mut each)).await
    }

    /// As [`Sessions::scan`], for very many rows: separate tasks fetch them ahead and convert them with `read`, in
    /// parallel with `each`.
    ///
    /// # Errors
    /// As [`Sessions::fetch`].
    pub async fn scan_ahead<R: Send + 'static>(
        self: &Arc<Self>,
        sql: &str,
        params: &[Param],
        read: &ReadRow<R>,
        each: &mut TakeEach<'_, R>,
    ) -> Result<(), sqlx::Error> {
        let mut rows = self.rows_ahead(sql, params, read);
        while let Some(batch) = rows.given.recv().await {
            if batch.into_iter().try_for_each(&mut *each).is_break() {
                return Ok(());
            }
        }
        rows.end().await
    }

    /// Reads the rows of a statement ahead, in separate tasks, converted by `read`.
    fn rows_ahead<R: Send + 'static>(self: &Arc<Self>, sql: &str, params: &[Param], read: &ReadRow<R>) -> RowsAhead<R> {
        let mut tasks = JoinSet::new();
        let mut fetched = self.ahead(sql, params, &mut tasks);
        let (give, given) = mpsc::channel(BATCHES_AHEAD);
        let read = Arc::clone(read);
        tasks.spawn(async move {
            while let Some(rows) = fetched.recv().await {
                if give.send(rows.into_iter().map(&*read).collect()).await.is_err() {
                    break;
                }
            }
            Ok(())
        });
        RowsAhead { given, tasks }
    }

    /// Fetches the rows of a statement in a separate task.
    fn ahead(
        self: &Arc<Self>,
        sql: &str,
        params: &[Param],
        tasks: &mut JoinSet<Result<(), sqlx::Error>>,
    ) -> mpsc::Receiver<Vec<RawRow>> {
        let (give, given) = mpsc::channel(1);
        let (sessions, sql, params) = (Arc::clone(self), sql.to_owned(), params.to_vec());
        tasks.spawn(async move { sessions.batches(&sql, &params, BatchTaker::ahead(&give)).await });
        given
    }

    async fn batches(&self, sql: &str, params: &[Param], taker: BatchTaker<'_>) -> Result<(), sqlx::Error> {
        let mut taker = taker.tallied();
        match self.try_batches(sql, params, &mut taker).await {
            Err(error) if lost(&error) && !is_late(&error) && !taker.has_taken() => {
                self.close_idle();
                self.try_batches(sql, params, &mut taker).await
            }
            outcome => outcome,
        }
    }

    /// Checks that the open files are the database at its path, or were a moment ago: otherwise nobody else sees these
    /// reads and writes.
    ///
    /// # Errors
    /// They are not: with the path and a remedy.
    pub(super) fn check_place(&self) -> Result<(), sqlx::Error> {
        self.files
            .iter()
            .find_map(OpenedFile::displaced_lately)
            .map_or(Ok(()), |words| Err(sqlx::Error::InvalidArgument(words)))
    }

    async fn try_batches(&self, sql: &str, params: &[Param], taker: &mut BatchTaker<'_>) -> Result<(), sqlx::Error> {
        self.check_place()?;
        let _permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        // A connection dropped during a read is not reused; a server stops when it finds the connection closed.
        let mut connection = match self.idle_here() {
            Some(connection) => connection,
            None => Connection::open(&self.opener).await?,
        };
        let outcome = match &mut connection {
            Connection::Sqlite(reader) => reader.batches(sql, params, taker).await,
            // On the heap, since every reading future would otherwise reserve space for it.
            Connection::Postgres(link) => Box::pin(link.read_batches(sql, params, taker)).await,
        };
        match outcome {
            Ok(ControlFlow::Continue(())) => self.give_back(connection),
            Ok(ControlFlow::Break(())) => {}
            Err(error) => {
                if !lost(&error) {
                    self.give_back(connection);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// An idle connection. Those of a runtime that has ended are dropped.
    fn idle_here(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !matches!(connection, Connection::Postgres(link) if !link.is_at_home()));
        idle.pop()
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

impl Store {
    /// A separate connection. If the server refuses further ones, idle connections are closed first.
    pub(super) async fn link(&self, server: &Arc<Server>) -> Result<ServerLink, sqlx::Error> {
        match ServerLink::open_at_once(server).await {
            Err(error) if is_crowded(&error) => {
                self.sessions.close_idle();
                self.end_writer();
                ServerLink::open(server).await
            }
            opened => opened,
        }
    }

    /// Closes the connection for writing, unless a write is in progress.
    pub(super) fn end_writer(&self) {
        if let Ok(mut home) = self.writer.try_lock() {
            *home = None;
        }
    }
}

impl Connection {
    async fn open(opener: &Opener) -> Result<Self, sqlx::Error> {
        match opener {
            Opener::Sqlite(file) => {
                let mut reader = file.reader().await?;
                reader.run("PRAGMA query_only = 1").await?;
                Ok(Connection::Sqlite(reader))
            }
            Opener::Postgres(server) => Ok(Connection::Postgres(ServerLink::open(server).await?)),
        }
    }
}

/// Rows that tasks read ahead. The tasks stop when it is dropped.
struct RowsAhead<R> {
    given: mpsc::Receiver<Vec<R>>,
    tasks: JoinSet<Result<(), sqlx::Error>>,
}

impl<R> RowsAhead<R> {
    /// Waits for the tasks, and returns the first error.
    async fn end(mut self) -> Result<(), sqlx::Error> {
        while let Some(ended) = self.tasks.join_next().await {
            ended.map_err(|_| sqlx::Error::WorkerCrashed)??;
        }
        Ok(())
    }
}

/// Batches of rows read ahead.
const BATCHES_AHEAD: usize = 4;
