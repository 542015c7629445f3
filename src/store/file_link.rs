//! A connection to SQLite files that only reads: a thread steps through the rows and hands over many at a time, so that
//! reading and what comes of it share two processors.

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags};
use sqlx::ConnectOptions as _;
use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::sqlite::SqliteConnectOptions;
use tokio::sync::mpsc::{self, Sender};

use super::companion;
use super::dialect::quote;
use super::fetched::{FetchedValue, Param, RawRow};

/// How long to wait for a writer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Rows that are handed over together at most.
const BATCH: usize = 256;
/// Batches that are read before somebody looks at them.
const AHEAD: usize = 4;
/// After so long a row is handed over without waiting for others.
const SOON: Duration = Duration::from_millis(2);
/// Statements that are kept prepared.
const STATEMENTS: usize = 100;
/// Steps of SQLite's machine between two looks whether somebody still waits: about 20 microseconds.
const STEPS: i32 = 2_000;

/// Tells the rows that are worth being handed over, on the thread that reads them.
pub type RowSieve = Arc<dyn Fn(&RawRow) -> bool + Send + Sync>;

/// An open connection. Dropped while it reads, it stops.
pub struct FileLink {
    /// None while a thread has it.
    link: Mutex<Option<Connection>>,
    stop: Arc<AtomicBool>,
}

impl FileLink {
    /// Opens files for reading, further ones under their schema names.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub async fn open(options: &SqliteConnectOptions, attached: &[(String, String)]) -> Result<Self, sqlx::Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let immutable = options.to_url_lossy().query_pairs().any(|(name, _)| name == "immutable");
        let path = options.get_filename().to_path_buf();
        let name = if immutable { PathBuf::from(companion::uri(&path, "immutable=1")) } else { path };
        let attached = attached.to_vec();
        let open = move || {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_URI
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE;
            let link = Connection::open_with_flags(&name, flags)?;
            link.busy_timeout(PATIENCE)?;
            link.set_prepared_statement_cache_capacity(STATEMENTS);
            for (file, schema) in &attached {
                link.execute(&format!("ATTACH $1 AS {}", quote(schema)), [file])?;
            }
            link.execute_batch("PRAGMA query_only = 1")?;
            link.progress_handler(STEPS, Some(move || seen.load(Ordering::Relaxed)))?;
            Ok(link)
        };
        let link = on_thread(open).await?.map_err(|error| told(&error))?;
        Ok(FileLink { link: Mutex::new(Some(link)), stop })
    }

    /// Begins a transaction, which lasts as long as the connection.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub async fn begin(&mut self) -> Result<(), sqlx::Error> {
        self.batches("BEGIN", &[], None, &mut |_| std::future::ready(ControlFlow::Continue(()))).await.map(drop)
    }

    /// Hands the rows of a statement to `take`, some at a time, until it breaks off; with a sieve those that it lets
    /// through.
    ///
    /// # Errors
    /// Whatever SQLite says.
    pub async fn batches<T: Future<Output = ControlFlow<()>>>(
        &mut self,
        sql: &str,
        params: &[Param],
        sieve: Option<RowSieve>,
        take: &mut impl FnMut(Vec<RawRow>) -> T,
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        let Some(link) = self.link.get_mut().unwrap_or_else(PoisonError::into_inner).take() else {
            return Err(sqlx::Error::WorkerCrashed);
        };
        let (give, mut given) = mpsc::channel(AHEAD);
        let (sql, params) = (sql.to_owned(), params.to_vec());
        let reading = tokio::task::spawn_blocking(move || {
            let outcome = step(&link, &sql, &params, sieve.as_ref(), &give);
            (link, outcome)
        });
        let mut flow = ControlFlow::Continue(());
        while let Some(rows) = given.recv().await {
            flow = take(rows).await;
            if flow.is_break() {
                self.stop.store(true, Ordering::Relaxed);
                break;
            }
        }
        drop(given);
        let (link, outcome) = reading.await.map_err(|_| sqlx::Error::WorkerCrashed)?;
        self.stop.store(false, Ordering::Relaxed);
        *self.link.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(link);
        match outcome {
            Err(error) if flow.is_continue() => Err(told(&error)),
            _ => Ok(flow),
        }
    }
}

impl Drop for FileLink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, sqlx::Error> {
    tokio::task::spawn_blocking(work).await.map_err(|_| sqlx::Error::WorkerCrashed)
}

/// Steps through the rows of a statement, as long as somebody takes them.
fn step(
    link: &Connection,
    sql: &str,
    params: &[Param],
    sieve: Option<&RowSieve>,
    give: &Sender<Vec<RawRow>>,
) -> rusqlite::Result<()> {
    let mut statement = link.prepare_cached(sql)?;
    for at in 1..=statement.parameter_count() {
        // `$2` is a name to SQLite, which numbers names as it meets them.
        let number = statement.parameter_name(at).and_then(|name| name.get(1..)?.parse().ok()).unwrap_or(at);
        if let Some(param) = number.checked_sub(1).and_then(|n| params.get(n)) {
            statement.raw_bind_parameter(at, bound(param))?;
        }
    }
    let mut rows = statement.raw_query();
    let mut batch = Vec::new();
    let mut given = Instant::now();
    // A row that the sieve holds back leaves its room to the next one.
    let mut room = RawRow::new();
    while let Some(row) = rows.next()? {
        read(row, &mut room)?;
        if sieve.is_some_and(|sieve| !sieve(&room)) {
            continue;
        }
        batch.push(std::mem::take(&mut room));
        if batch.len() >= BATCH || given.elapsed() >= SOON {
            if give.blocking_send(std::mem::take(&mut batch)).is_err() {
                return Ok(());
            }
            given = Instant::now();
        }
    }
    if !batch.is_empty() {
        // Nobody waits for them any more.
        let _ = give.blocking_send(batch);
    }
    Ok(())
}

/// A value in its own storage class.
fn bound(param: &Param) -> Value {
    match param {
        FetchedValue::Null => Value::Null,
        FetchedValue::Text(text) => Value::Text(text.clone()),
        FetchedValue::BadText(bytes) | FetchedValue::Bytes(bytes) => Value::Blob(bytes.clone()),
        FetchedValue::Integer(number) => Value::Integer(*number),
        FetchedValue::Real(number) => Value::Real(*number),
    }
}

/// Reads a row into the room of another one.
fn read(row: &rusqlite::Row<'_>, into: &mut RawRow) -> rusqlite::Result<()> {
    let columns = row.as_ref().column_count();
    into.resize(columns, FetchedValue::Null);
    for (i, slot) in into.iter_mut().enumerate() {
        match (row.get_ref(i)?, &mut *slot) {
            (ValueRef::Text(bytes), FetchedValue::Text(old)) if let Ok(text) = std::str::from_utf8(bytes) => {
                old.clear();
                old.push_str(text);
            }
            (ValueRef::Null, _) => *slot = FetchedValue::Null,
            (ValueRef::Integer(number), _) => *slot = FetchedValue::Integer(number),
            (ValueRef::Real(number), _) => *slot = FetchedValue::Real(number),
            (ValueRef::Text(bytes), _) => {
                *slot = match std::str::from_utf8(bytes) {
                    Ok(text) => FetchedValue::Text(text.to_owned()),
                    Err(_) => FetchedValue::BadText(bytes.to_vec()),
                }
            }
            (ValueRef::Blob(bytes), _) => *slot = FetchedValue::Bytes(bytes.to_vec()),
        }
    }
    Ok(())
}

/// What SQLite says, as other connections to it say it.
#[derive(Debug, thiserror::Error)]
#[error("(code: {code}) {words}")]
struct FileFault {
    code: i32,
    words: String,
}

impl DatabaseError for FileFault {
    fn message(&self) -> &str {
        &self.words
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

fn told(error: &rusqlite::Error) -> sqlx::Error {
    let Some(fault) = error.sqlite_error() else { return sqlx::Error::Protocol(error.to_string()) };
    let words = match error {
        rusqlite::Error::SqliteFailure(_, Some(words)) => words.clone(),
        other => other.to_string(),
    };
    sqlx::Error::Database(Box::new(FileFault { code: fault.extended_code, words }))
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    async fn link(folder: &std::path::Path) -> FileLink {
        let path = folder.join("a?b%.db");
        let made = Connection::open(&path).unwrap();
        made.execute_batch(
            "CREATE TABLE t (n INTEGER, v); WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r LIMIT 1000) \
             INSERT INTO t SELECT n, 'v' || n FROM r; \
             INSERT INTO t VALUES (1001, NULL), (1002, x'00ff'), (1003, CAST(x'ff41' AS TEXT)), (1004, 2.5), (1005, '')",
        )
        .unwrap();
        FileLink::open(&SqliteConnectOptions::new().filename(&path).read_only(true), &[]).await.unwrap()
    }

    async fn rows(link: &mut FileLink, sql: &str, params: &[Param], sieve: Option<RowSieve>) -> Vec<RawRow> {
        let mut all = Vec::new();
        let mut take = |rows: Vec<RawRow>| {
            all.extend(rows);
            ready(ControlFlow::Continue(()))
        };
        assert!(link.batches(sql, params, sieve, &mut take).await.unwrap().is_continue());
        all
    }

    #[tokio::test]
    async fn values_come_in_their_storage_class_and_parameters_by_their_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut link = link(folder.path()).await;
        let sql = "SELECT v FROM t WHERE n < $2 AND n > $1 ORDER BY n";
        let all = rows(&mut link, sql, &[FetchedValue::Integer(999), FetchedValue::Integer(2_000)], None).await;
        let expected = [
            FetchedValue::Text("v1000".to_owned()),
            FetchedValue::Null,
            FetchedValue::Bytes(vec![0, 0xff]),
            FetchedValue::BadText(vec![0xff, b'A']),
            FetchedValue::Real(2.5),
            FetchedValue::Text(String::new()),
        ];
        assert_eq!(all, expected.map(|value| vec![value]));
    }

    #[tokio::test]
    async fn a_sieve_lets_rows_through_in_order_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut link = link(folder.path()).await;
        let odd: RowSieve = Arc::new(|row| !matches!(row[0], FetchedValue::Integer(n) if n % 3 == 0));
        let sieved = rows(&mut link, "SELECT n, v FROM t ORDER BY n", &[], Some(odd)).await;
        let told = rows(&mut link, "SELECT n, v FROM t WHERE n % 3 ORDER BY n", &[], None).await;
        assert_eq!(sieved, told);
        assert_eq!(sieved.len(), 670);
    }

    #[tokio::test]
    async fn a_read_that_breaks_off_leaves_the_connection_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let mut link = link(folder.path()).await;
        let endless = "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r";
        let flow = link.batches(endless, &[], None, &mut |_| ready(ControlFlow::Break(()))).await.unwrap();
        assert!(flow.is_break());
        assert_eq!(rows(&mut link, "SELECT count(*) FROM t", &[], None).await, [[FetchedValue::Integer(1005)]]);
    }

    #[tokio::test]
    async fn what_is_refused_has_the_code_of_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let mut link = link(folder.path()).await;
        for (sql, code) in [("SELECT nothing FROM t", "1"), ("DELETE FROM t", "8")] {
            let refused = link.batches(sql, &[], None, &mut |_| ready(ControlFlow::Continue(()))).await.unwrap_err();
            assert_eq!(refused.as_database_error().unwrap().code().unwrap(), code);
        }
    }
}
