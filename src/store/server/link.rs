//! The only way to talk to PostgreSQL. It works through any pooler, including one that uses another server for each
//! transaction: no statement is named, nothing is set for longer than a transaction, and a statement with parameters
//! runs inside one.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{FutureExt as _, Stream, StreamExt as _};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgConnection, PgRow, PgTypeInfo, Postgres};
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Connection as _, Encode, Row as _, TypeInfo as _, ValueRef as _};

use super::{Host, Server, too_late};
use crate::store::batch::BatchTaker;
use crate::store::engine_error::{is_crowded, is_untranslatable};
use crate::store::fetched::{FetchedValue, Param, RawRow, row_size};

/// Longest wait of a read for a lock.
const READ_LOCK: Duration = Duration::from_millis(500);

/// Sets the formats that values depend on, which a role or a pooler may have changed.
const FORMATS: &str = "SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, MDY'; SET LOCAL extra_float_digits = 1; \
     SET LOCAL standard_conforming_strings = on; SET LOCAL quote_all_identifiers = off; \
     SELECT set_config(s.name, s.value, true) FROM (VALUES ('IntervalStyle', 'postgres'), ('array_nulls', 'on'), \
       ('bytea_output', 'hex'), ('xmloption', 'content')) s (name, value) WHERE current_setting(s.name, true) <> s.value";

/// A database with the encoding `SQL_ASCII` stores any bytes, and would fail on invalid UTF-8: this makes it send and
/// accept bytes unchanged.
const ANY_BYTES: &str = "SELECT set_config('client_encoding', 'SQL_ASCII', true) \
     WHERE current_setting('server_encoding') = 'SQL_ASCII'";

/// Further attempts to connect to a server without free connections.
const TRIES: usize = 10;
/// Pause before each attempt.
const PAUSE: Duration = Duration::from_millis(200);

const SILENT: &str = "the server stopped answering: it sent nothing within $time";

/// Makes the server cancel a statement soon after its client is gone: PostgreSQL 14 and later, on systems that support
/// it.
const STOP_ALONE: &str = "SELECT set_config('client_connection_check_interval', '500', true) \
     WHERE current_setting('client_connection_check_interval', true) IS NOT NULL \
     AND version() ~* 'linux|darwin|apple|bsd'";

/// A server may be configured to report a commit before it is on disk; this prevents that for us.
const ON_DISK: &str = "SELECT set_config('synchronous_commit', 'on', true) \
     WHERE current_setting('synchronous_commit', true) = 'off'";

const STATE: &str = "SELECT pg_is_in_recovery()::text, current_setting('default_transaction_read_only')";

/// Sessions that wait for a lock, by the mark in their statement.
const WAITING: &str =
    "SELECT pid::text FROM pg_stat_activity WHERE starts_with(query, $1) AND wait_event_type = 'Lock'";

const CANCEL: &str = "SELECT pg_cancel_backend(pid)::text FROM pg_stat_activity WHERE starts_with(query, $1)";

/// Rows taken at a time, if that many are waiting.
const TAKEN: usize = 128;
/// Bytes of their values after which no row is added.
const BYTES: usize = 1 << 20;

/// Visibility of other transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Each statement sees the state at its own beginning.
    Statement,
    /// All statements see the state at the beginning of the first one.
    Snapshot,
}

/// A connection whose server's state is still unknown.
pub(super) struct BareConnection(PgConnection);

impl BareConnection {
    pub(super) async fn open(host: &Host, patience: Option<Duration>) -> Result<BareConnection, sqlx::Error> {
        let connecting = PgConnection::connect_with(&host.options);
        within(patience, connecting, "no answer within $time (connect_timeout)").await.map(BareConnection)
    }

    /// Whether the server is a standby, and whether transactions are read-only by default.
    pub(super) async fn state(&mut self) -> Result<(bool, bool), sqlx::Error> {
        let row = sqlx::raw_sql(STATE).fetch_one(&mut self.0).await?;
        let standby = row.try_get_unchecked::<String, _>(0)? == "true";
        Ok((standby, standby || row.try_get_unchecked::<String, _>(1)? == "on"))
    }
}

/// Waits with a time limit: `words` is the error, with the time in place of `$time`.
async fn within<T>(
    patience: Option<Duration>,
    waited_for: impl Future<Output = Result<T, sqlx::Error>>,
    words: &str,
) -> Result<T, sqlx::Error> {
    let Some(patience) = patience else { return waited_for.await };
    let late = |_| too_late(words.replace("$time", &format!("{} s", patience.as_secs_f64())));
    tokio::time::timeout(patience, waited_for).await.map_err(late)?
}

/// A connection. When dropped it is closed, which stops the running statement.
pub struct ServerLink {
    link: PgConnection,
    server: Arc<Server>,
    /// The runtime that polls its socket: in another one it only works while it need not wait.
    runtime: tokio::runtime::Id,
}

impl std::fmt::Debug for ServerLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerLink").finish_non_exhaustive()
    }
}

impl ServerLink {
    /// Connects. Retries for a moment if the server has no free connection: it counts a connection slightly longer than
    /// it lasts.
    ///
    /// # Errors
    /// A timeout, or the server's refusal.
    pub async fn open(server: &Arc<Server>) -> Result<ServerLink, sqlx::Error> {
        let mut tries = 0;
        loop {
            match ServerLink::open_at_once(server).await {
                Err(error) if is_crowded(&error) && tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE).await;
                }
                opened => return opened,
            }
        }
    }

    /// Connects without retries.
    ///
    /// # Errors
    /// As [`ServerLink::open`].
    pub async fn open_at_once(server: &Arc<Server>) -> Result<ServerLink, sqlx::Error> {
        // On the heap, because the connecting future is large and would be part of every caller's.
        let link = Box::pin(server.connect()).await.map_err(|error| server.unreached(error))?.0;
        Ok(ServerLink { link, server: Arc::clone(server), runtime: tokio::runtime::Handle::current().id() })
    }

    /// Whether it belongs to the current runtime.
    pub fn is_at_home(&self) -> bool {
        self.runtime == tokio::runtime::Handle::current().id()
    }

    /// Begins a read-only transaction.
    ///
    /// # Errors
    /// The server's refusal, or a pooler without a free connection in time.
    pub async fn begin_reading(&mut self, isolation: Isolation) -> Result<(), sqlx::Error> {
        // Reading everything takes longer than reading a page.
        let (level, limit) = match isolation {
            Isolation::Statement => ("READ COMMITTED", self.server.statement_timeout),
            Isolation::Snapshot => ("REPEATABLE READ", None),
        };
        self.begin(&format!("{level} READ ONLY"), limit, READ_LOCK, STOP_ALONE).await
    }

    /// Begins a transaction that may write, with a limit for waiting for locks.
    ///
    /// # Errors
    /// As [`ServerLink::begin_reading`].
    pub async fn begin_writing(&mut self, patience: Duration) -> Result<(), sqlx::Error> {
        let more = format!("{STOP_ALONE}; {ON_DISK}");
        self.begin("READ COMMITTED", self.server.statement_timeout, patience, &more).await
    }

    async fn begin(
        &mut self,
        how: &str,
        limit: Option<Duration>,
        locks: Duration,
        more: &str,
    ) -> Result<(), sqlx::Error> {
        let limit = limit.map_or(0, |limit| limit.as_millis());
        let locks = locks.as_millis();
        let begin = format!(
            "BEGIN ISOLATION LEVEL {how}; SET LOCAL statement_timeout = {limit}; SET LOCAL lock_timeout = {locks}; \
             {FORMATS}; {ANY_BYTES}; {more}"
        );
        let words = "all connections of the pooler are in use (this program needs two at a time), or the server is \
             overloaded: no transaction began within $time (connect_timeout)";
        let patience = self.server.connect_timeout;
        within(patience, Box::pin(self.script(&begin)), words).await
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn commit(&mut self) -> Result<(), sqlx::Error> {
        self.script("COMMIT").await
    }

    /// Rolls the transaction back.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn rollback(&mut self) -> Result<(), sqlx::Error> {
        self.script("ROLLBACK").await
    }

    /// Runs statements without parameters, separated by semicolons: several form one transaction, or contain its
    /// beginning and end.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn script(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut self.link).await.map(drop)
    }

    /// Runs a statement inside the transaction. Returns the number of rows hit.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn execute(&mut self, sql: &str, params: &[Param]) -> Result<u64, sqlx::Error> {
        Ok(bound(sql, params).execute(&mut self.link).await?.rows_affected())
    }

    /// Passes the rows of a statement inside the transaction to `taker` in batches, until it breaks.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn batches(
        &mut self,
        sql: &str,
        params: &[Param],
        taker: &mut BatchTaker<'_>,
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        self.batches_within(None, sql, params, taker).await
    }

    /// All rows of a statement.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn fetch(&mut self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, sqlx::Error> {
        let mut all = Vec::new();
        let mut each = |row| {
            all.push(row);
            ControlFlow::Continue(())
        };
        let _ended = self.batches(sql, params, &mut BatchTaker::rows(&mut each)).await?;
        Ok(all)
    }

    async fn batches_within(
        &mut self,
        patience: Option<Duration>,
        sql: &str,
        params: &[Param],
        taker: &mut BatchTaker<'_>,
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        let mut rows = bound(sql, params).fetch(&mut self.link).fuse();
        loop {
            let batch = within(patience, waiting(&mut rows), SILENT).await?;
            if batch.is_empty() {
                return Ok(ControlFlow::Continue(()));
            }
            if taker.take(batch).await.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// As [`ServerLink::batches`], in a separate read-only transaction. If it breaks, the connection is no longer
    /// usable. A text that the database's encoding cannot represent is bound as NULL, since it cannot be stored.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn read_batches(
        &mut self,
        sql: &str,
        params: &[Param],
        taker: &mut BatchTaker<'_>,
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        match self.try_read_batches(sql, params, taker).await {
            Err(error) if is_untranslatable(&error) && !taker.has_taken() => {
                let known = self.translatable(params).await?;
                if known == params {
                    return Err(error);
                }
                self.try_read_batches(sql, &known, taker).await
            }
            outcome => outcome,
        }
    }

    /// The values, with NULL instead of texts that the database's encoding cannot represent.
    async fn translatable(&mut self, params: &[Param]) -> Result<Vec<Param>, sqlx::Error> {
        let mut known = params.to_vec();
        for param in known.iter_mut().filter(|param| matches!(param, FetchedValue::Text(text) if !text.is_ascii())) {
            let mut skip = |_: RawRow| ControlFlow::Continue(());
            let (sql, asked) = ("SELECT 1 WHERE $1::text IS NULL", [param.clone()]);
            let tried = self.try_read_batches(sql, &asked, &mut BatchTaker::rows(&mut skip)).await;
            match tried {
                Err(error) if is_untranslatable(&error) => *param = FetchedValue::Null,
                tried => {
                    let _ended = tried?;
                }
            }
        }
        Ok(known)
    }

    async fn try_read_batches(
        &mut self,
        sql: &str,
        params: &[Param],
        taker: &mut BatchTaker<'_>,
    ) -> Result<ControlFlow<()>, sqlx::Error> {
        self.begin_reading(Isolation::Statement).await?;
        // A server that still exists reports something after its own limit.
        let connecting = self.server.connect_timeout;
        let patience = self.server.statement_timeout.map(|limit| limit + connecting.unwrap_or(limit));
        match self.batches_within(patience, sql, params, taker).await {
            Ok(ControlFlow::Continue(())) => {
                within(connecting, self.commit(), SILENT).await.map(|()| ControlFlow::Continue(()))
            }
            Ok(broken_off) => Ok(broken_off),
            Err(error) => {
                if matches!(&error, sqlx::Error::Database(_)) {
                    // If even this fails, the next statement reports it.
                    let _ = self.rollback().await;
                }
                Err(error)
            }
        }
    }

    /// Returns all rows of a statement, in a separate read-only transaction.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn read(&mut self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, sqlx::Error> {
        let mut rows = Vec::new();
        let mut each = |row| {
            rows.push(row);
            ControlFlow::Continue(())
        };
        let _ended = self.read_batches(sql, params, &mut BatchTaker::rows(&mut each)).await?;
        Ok(rows)
    }

    /// Runs a statement that no transaction may contain, and cancels it if it waits too long for a lock, since later
    /// sessions queue behind it. Returns whether it was done.
    ///
    /// # Errors
    /// The server's refusal.
    pub async fn alone(&mut self, sql: &str, patience: Duration) -> Result<bool, sqlx::Error> {
        // A pooler has no session in which to set a limit: the statement is found by its mark, and cancelled.
        let mark = format!("/* mnemoscope {:016x} */", rand::random::<u64>());
        let server = Arc::clone(&self.server);
        let marked = format!("{mark} {sql}");
        let stopped = AtomicBool::new(false);
        let mut run = Box::pin(self.script(&marked));
        let done = tokio::select! {
            done = &mut run => done,
            () = Box::pin(stop_waiting(&server, &mark, patience, &stopped)) => run.await,
        };
        match done {
            Err(sqlx::Error::Database(about))
                if about.code().as_deref() == Some("57014") && stopped.load(Ordering::Relaxed) =>
            {
                Ok(false)
            }
            done => done.map(|()| true),
        }
    }

    /// Closes the connection properly.
    pub async fn close(self) {
        // It is closed either way.
        let _ = self.link.close().await;
    }
}

/// Waits for a row, and takes those already waiting. Empty at the end.
async fn waiting(
    rows: &mut (impl Stream<Item = Result<PgRow, sqlx::Error>> + Unpin),
) -> Result<Vec<RawRow>, sqlx::Error> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let mut next = rows.next().await;
    while let Some(row) = next {
        let row = values(&row?)?;
        bytes += row_size(&row);
        batch.push(row);
        let full = batch.len() == TAKEN || bytes >= BYTES;
        next = if full { None } else { rows.next().now_or_never().flatten() };
    }
    Ok(batch)
}

/// Ends when a statement was cancelled because it waited for a lock all the time; `stopped` is set before that.
async fn stop_waiting(server: &Arc<Server>, mark: &str, patience: Duration, stopped: &AtomicBool) {
    let mark = [FetchedValue::Text(mark.to_owned())];
    let mut watch: Option<ServerLink> = None;
    let mut waited = false;
    loop {
        tokio::time::sleep(patience).await;
        if watch.is_none() {
            watch = ServerLink::open(server).await.ok();
        }
        let Some(link) = &mut watch else { continue };
        match link.read(WAITING, &mark).await {
            Ok(rows) if rows.is_empty() => waited = false,
            Ok(_) if waited => {
                stopped.store(true, Ordering::Relaxed);
                if link.read(CANCEL, &mark).await.is_ok() {
                    return;
                }
            }
            Ok(_) => waited = true,
            Err(_) => watch = None,
        }
    }
}

/// A text that is not UTF-8, as a value of the type `text`.
struct TextBytes(Vec<u8>);

impl sqlx::Type<Postgres> for TextBytes {
    fn type_info() -> PgTypeInfo {
        <String as sqlx::Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for TextBytes {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        buffer.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }
}

/// A statement with its values as texts, which it casts. It is unnamed: a pooler may give the server to others, for
/// whom the name would be taken.
fn bound(sql: &str, params: &[Param]) -> Query<'static, Postgres, PgArguments> {
    let query = sqlx::query(AssertSqlSafe(sql.to_owned())).persistent(false);
    params.iter().fold(query, |query, param| match param {
        FetchedValue::Null => query.bind(None::<String>),
        FetchedValue::Text(text) => query.bind(text.clone()),
        FetchedValue::BadText(bytes) => query.bind(TextBytes(bytes.clone())),
        FetchedValue::Bytes(bytes) => query.bind(bytes.clone()),
        FetchedValue::Integer(i) => query.bind(i.to_string()),
        FetchedValue::Real(x) => query.bind(x.to_string()),
    })
}

fn values(row: &PgRow) -> Result<RawRow, sqlx::Error> {
    let mut values = Vec::with_capacity(row.len());
    for i in 0..row.len() {
        let value = row.try_get_raw(i)?;
        if value.is_null() {
            values.push(FetchedValue::Null);
            continue;
        }
        let class = value.type_info().into_owned();
        values.push(match class.name() {
            "BYTEA" => FetchedValue::Bytes(row.try_get_unchecked(i)?),
            "INT8" => FetchedValue::Integer(row.try_get_unchecked(i)?),
            "INT4" => FetchedValue::Integer(i64::from(row.try_get_unchecked::<i32, _>(i)?)),
            "INT2" => FetchedValue::Integer(i64::from(row.try_get_unchecked::<i16, _>(i)?)),
            "FLOAT8" => FetchedValue::Real(row.try_get_unchecked(i)?),
            "BOOL" => FetchedValue::Integer(i64::from(row.try_get_unchecked::<bool, _>(i)?)),
            _ => match String::from_utf8(row.try_get_unchecked::<Vec<u8>, _>(i)?) {
                Ok(text) => FetchedValue::Text(text),
                Err(bad) => FetchedValue::BadText(bad.into_bytes()),
            },
        });
    }
    Ok(values)
}
