//! Reads of an SQLite file: a thread steps through a statement and sends its rows in batches of bounded size.
//!
//! Every read goes through here; writes use a connection of sqlx. Both use the same linked SQLite, so neither drops the
//! other's locks.

use std::borrow::Cow;
use std::ffi::c_int;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Statement};
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use super::batch::BatchTaker;
use super::dialect::{quote, unnumbered};
use super::fetched::{FetchedValue, Param, RawRow, number, row_size};

/// Longest wait of a read for a lock.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// SQLite's virtual machine steps between two checks for cancellation: about 20 microseconds.
const STEPS: c_int = 2_000;
/// Most rows of a batch.
const ROWS: usize = 128;
/// Bytes of a batch after which no row is added.
const BYTES: usize = 1 << 20;
/// Batches read ahead.
const AHEAD: usize = 4;

/// A database file, with its attached files.
#[derive(Debug, Clone)]
pub struct SqliteFile {
    path: PathBuf,
    is_immutable: bool,
    /// Attached files, as URIs, with their schema names.
    attached: Vec<(String, String)>,
}

impl SqliteFile {
    /// A single file, which others may write.
    pub fn at(path: &Path) -> Self {
        SqliteFile { path: path.to_owned(), is_immutable: false, attached: Vec::new() }
    }

    /// The same file with attached ones. An immutable file may not be written by anybody.
    pub fn with(self, attached: Vec<(String, String)>, is_immutable: bool) -> Self {
        SqliteFile { is_immutable, attached, ..self }
    }

    /// Path of the main file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All files, the main one first, without SQLite's files next to them.
    pub fn databases(&self) -> Vec<PathBuf> {
        std::iter::once(self.path.clone()).chain(self.attached.iter().map(|(uri, _)| path_of(uri))).collect()
    }

    /// The attached files, as URIs, with their schema names.
    pub fn attached(&self) -> &[(String, String)] {
        &self.attached
    }

    /// Another file, opened with the same options and without attached files.
    pub fn beside(&self, path: &Path) -> Self {
        SqliteFile { path: path.to_owned(), attached: Vec::new(), ..self.clone() }
    }

    /// Options for writing the main file. Foreign keys keep SQLite's default, not enforced. The journal mode is not
    /// changed.
    pub fn writing(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new().filename(&self.path).immutable(self.is_immutable).foreign_keys(false)
    }

    /// Opens the files for reading.
    ///
    /// # Errors
    /// SQLite's refusal.
    pub async fn reader(&self) -> Result<SqliteReader, sqlx::Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let (file, seen) = (self.clone(), Arc::clone(&stop));
        let link = aside(move || file.connect(seen)).await?;
        Ok(SqliteReader { link: Mutex::new(Some(link)), stop })
    }

    fn connect(&self, stop: Arc<AtomicBool>) -> Result<Connection, sqlx::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let path = if self.is_immutable { uri(&self.path, "immutable=1").into() } else { self.path.clone() };
        let link = Connection::open_with_flags(path, flags).map_err(refused)?;
        link.busy_timeout(PATIENCE).map_err(refused)?;
        for (uri, schema) in &self.attached {
            link.execute(&format!("ATTACH $1 AS {}", quote(schema)), [uri]).map_err(refused)?;
        }
        link.progress_handler(STEPS, Some(move || stop.load(Ordering::Relaxed))).map_err(refused)?;
        Ok(link)
    }
}

/// A file as an SQLite URI, with parameters such as `mode=ro`.
pub fn uri(path: &Path, parameters: &str) -> String {
    let escaped = path.display().to_string().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{escaped}?{parameters}")
}

/// The path in a file's URI.
fn path_of(uri: &str) -> PathBuf {
    let inner = uri.strip_prefix("file:").unwrap_or(uri);
    let inner = inner.split('?').next().unwrap_or(inner);
    PathBuf::from(inner.replace("%3f", "?").replace("%23", "#").replace("%25", "%"))
}

/// A connection for reading. Dropping a read interrupts it, and closes the connection.
pub struct SqliteReader {
    /// Empty while a thread reads. The lock is never contended; it makes the reader shareable between threads.
    link: Mutex<Option<Connection>>,
    stop: Arc<AtomicBool>,
}

impl fmt::Debug for SqliteReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteReader").finish_non_exhaustive()
    }
}

/// A read running on a thread. It is interrupted when dropped.
struct RunningRead {
    given: mpsc::Receiver<Vec<RawRow>>,
    thread: JoinHandle<(Connection, Result<(), sqlx::Error>)>,
    stop: StopReading,
}

/// Interrupts a read when dropped.
struct StopReading(Arc<AtomicBool>);

impl Drop for StopReading {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl SqliteReader {
    /// Returns the slot of the connection, which is empty while a thread reads.
    fn place(&mut self) -> &mut Option<Connection> {
        self.link.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection itself; `None` while a thread reads.
    pub(super) fn link(&mut self) -> Option<&mut Connection> {
        self.place().as_mut()
    }

    /// Runs statements without results.
    ///
    /// # Errors
    /// SQLite's refusal.
    pub async fn run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let (link, sql) = (self.place().take().ok_or(sqlx::Error::WorkerCrashed)?, sql.to_owned());
        let (link, done) = aside(move || {
            let done = link.execute_batch(&sql).map_err(refused);
            Ok((link, done))
        })
        .await?;
        *self.place() = Some(link);
        done
    }

    /// All rows of a statement.
    ///
    /// # Errors
    /// SQLite's refusal.
    pub async fn fetch(&mut self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, sqlx::Error> {
        let mut all = Vec::new();
        let mut each = |row| {
            all.push(row);
            ControlFlow::Continue(())
        };
        let _ = self.batches(sql, params, &mut BatchTaker::rows(&mut each)).await?;
        Ok(all)
    }

    /// A number that changes when someone else writes to the main file.
    ///
    /// # Errors
    /// SQLite's refusal.
    pub async fn data_version(&mut self) -> Result<i64, sqlx::Error> {
        let rows = self.fetch("PRAGMA data_version", &[]).await?;
        Ok(rows.first().map_or(0, |row| number(row, 0)))
    }

    /// Passes the rows of a statement on in batches, until `taker` breaks. At most seven batches are in memory, each of
    /// 128 rows or 1 MB, or of one longer row.
    ///
    /// # Errors
    /// SQLite's refusal.
    pub async fn batches(
        &mut self,
        sql: &str,
        params: &[Param],
        taker: &mut BatchTaker<'_>,
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        let mut read = self.begin(sql, params)?;
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some(rows) = read.given.recv().await
        {
            flow = taker.take(rows).await;
        }
        let done = self.end(read).await?;
        if flow.is_break() { Ok(flow) } else { done.map(|()| flow) }
    }

    /// Starts a read on a thread.
    fn begin(&mut self, sql: &str, params: &[Param]) -> Result<RunningRead, sqlx::Error> {
        let link = self.place().take().ok_or(sqlx::Error::WorkerCrashed)?;
        let (give, given) = mpsc::channel(AHEAD);
        let (sql, params) = unnumbered(sql, params.to_vec());
        let stop = StopReading(Arc::clone(&self.stop));
        let thread = spawn_blocking(move || {
            let done = hand_on(&link, &sql, &params, &give);
            (link, done.map_err(refused))
        });
        Ok(RunningRead { given, thread, stop })
    }

    /// Interrupts a read that is still running, and takes the connection back. Returns the result of a read that was
    /// not interrupted.
    async fn end(&mut self, read: RunningRead) -> Result<Result<(), sqlx::Error>, sqlx::Error> {
        let RunningRead { given, thread, stop } = read;
        drop((given, stop));
        let (link, done) = thread.await.map_err(|_| sqlx::Error::WorkerCrashed)?;
        self.stop.store(false, Ordering::Relaxed);
        *self.place() = Some(link);
        Ok(done)
    }
}

/// Runs blocking work on a blocking thread.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, sqlx::Error> + Send + 'static,
) -> Result<T, sqlx::Error> {
    spawn_blocking(work).await.map_err(|_| sqlx::Error::WorkerCrashed)?
}

fn hand_on(
    link: &Connection,
    sql: &str,
    params: &[Param],
    give: &mpsc::Sender<Vec<RawRow>>,
) -> Result<(), rusqlite::Error> {
    let mut statement = link.prepare_cached(sql)?;
    bind(&mut statement, params)?;
    let width = statement.column_count();
    let mut rows = statement.raw_query();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let done = loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        let row = (0..width).map(|at| row.get_ref(at).map(fetched)).collect::<Result<RawRow, _>>()?;
        bytes += row_size(&row);
        batch.push(row);
        if batch.len() == ROWS || bytes >= BYTES {
            bytes = 0;
            if give.blocking_send(std::mem::take(&mut batch)).is_err() {
                return Ok(());
            }
        }
    };
    // Rows read before an error are still valid.
    if !batch.is_empty() && give.blocking_send(batch).is_err() {
        return Ok(());
    }
    done
}

fn fetched(value: ValueRef<'_>) -> FetchedValue {
    match value {
        ValueRef::Null => FetchedValue::Null,
        ValueRef::Integer(i) => FetchedValue::Integer(i),
        ValueRef::Real(x) => FetchedValue::Real(x),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => FetchedValue::Text(text.to_owned()),
            Err(_) => FetchedValue::BadText(bytes.to_vec()),
        },
        ValueRef::Blob(bytes) => FetchedValue::Bytes(bytes.to_vec()),
    }
}

/// Most bytes of a text or blob whose memory is reused for the next row.
const KEPT: usize = 256 << 10;

/// Replaces a value, reusing its memory if possible.
pub(super) fn refill(slot: &mut FetchedValue, value: ValueRef<'_>) {
    match (&mut *slot, value) {
        (FetchedValue::Text(kept), ValueRef::Text(bytes)) if kept.capacity() <= KEPT => {
            if let Ok(text) = std::str::from_utf8(bytes) {
                kept.clear();
                kept.push_str(text);
                return;
            }
        }
        (FetchedValue::Bytes(kept), ValueRef::Blob(bytes)) if kept.capacity() <= KEPT => {
            kept.clear();
            kept.extend_from_slice(bytes);
            return;
        }
        _ => {}
    }
    // Frees a long value before the next one is read.
    *slot = FetchedValue::Null;
    *slot = fetched(value);
}

/// Binds values to `$1` and so on. SQLite numbers placeholders in order of appearance.
pub(super) fn bind(statement: &mut Statement<'_>, params: &[Param]) -> Result<(), rusqlite::Error> {
    for at in 1..=statement.parameter_count() {
        let number = statement.parameter_name(at).and_then(|name| name[1..].parse::<usize>().ok());
        match number.unwrap_or(at).checked_sub(1).and_then(|place| params.get(place)) {
            None | Some(FetchedValue::Null) => statement.raw_bind_parameter(at, None::<i64>)?,
            Some(FetchedValue::Text(text)) => statement.raw_bind_parameter(at, text)?,
            Some(FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes)) => {
                statement.raw_bind_parameter(at, bytes)?;
            }
            Some(FetchedValue::Integer(i)) => statement.raw_bind_parameter(at, i)?,
            Some(FetchedValue::Real(x)) => statement.raw_bind_parameter(at, x)?,
        }
    }
    Ok(())
}

/// SQLite's error for a read.
#[derive(Debug, thiserror::Error)]
#[error("(code: {code}) {message}")]
struct SqliteRefusal {
    /// SQLite's extended result code.
    code: c_int,
    message: String,
}

impl DatabaseError for SqliteRefusal {
    fn message(&self) -> &str {
        &self.message
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.code.to_string().into())
    }

    fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

/// Converts an error of a read to the error type of both engines.
pub(super) fn refused(error: rusqlite::Error) -> sqlx::Error {
    let (code, message) = match error {
        rusqlite::Error::SqliteFailure(error, message) => {
            (error.extended_code, message.unwrap_or_else(|| error.to_string()))
        }
        // SQLite's code for misuse.
        other => (21, other.to_string()),
    };
    sqlx::Error::Database(Box::new(SqliteRefusal { code, message }))
}
