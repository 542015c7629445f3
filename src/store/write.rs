//! The only SQL that writes: one connection, opened when first needed, with one transaction at a time.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _};
use tokio::sync::MutexGuard;

use super::batch::BatchTaker;
use super::dialect::quote;
use super::encode::{plain_column, table_of};
use super::engine_error::{EngineFault, explain, is_disk, is_late, lost, primary_code};
use super::fetched::{FetchedValue, Param, RawRow, integer, text};
use super::revise;
use super::server::ServerLink;
use super::server::raised::is_raised_on_purpose;
use super::session::Opener;
use super::shape::{self, TableShape};
use super::stored::{Cell, Image, Mutation, ReadState, StateReading, StoredRows, TableName};
use super::{Store, StoreError, companion, withhold};
use super::{sqlite_reader, sqlite_writer};
use crate::layout::{BoundSource, Engine};
use crate::memory::agreeing;

/// One row with its new values.
#[derive(Debug, Clone, PartialEq)]
pub struct RowUpdate {
    /// Table.
    pub table: TableName,
    /// Columns and values that identify the row.
    pub key: Vec<(String, FetchedValue)>,
    /// Columns and their new values.
    pub set: Vec<(String, Cell)>,
}

/// Values in one INSERT.
const VALUES: usize = 4_000;

/// Bytes of values per INSERT of several rows; they exist four times in memory until it is done.
const BYTES: usize = 1 << 20;

/// Longest wait of a writer for others.
const PATIENCE: Duration = Duration::from_secs(5);

/// Message with the number of rows that a change hit, and the expected number.
fn missed(table: &str, hit: u64, expected: usize) -> String {
    let hit = agreeing(hit, &format!("{table}: {{#}} {{row was|rows were}} hit"));
    agreeing(expected, &format!("{hit}, {{#}} {{was|were}} meant"))
}

/// Reason for a failed write. Except for [`WriteError::Unknown`], nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Conflict with another user of the database: a retry from the start may succeed.
    #[error("another process is reading or writing: {}", explain(.0))]
    Busy(sqlx::Error),
    /// The database is not writable here.
    #[error("the database cannot be written: {0}")]
    ReadOnly(String),
    /// The database does not accept a value.
    #[error("the database does not accept this: {0}")]
    Rejected(String),
    /// The opened file is no longer the one at its path.
    #[error("nothing was written: {0}")]
    Displaced(String),
    /// A change hit more or fewer rows than expected.
    #[error("{}", missed(.table, *.hit, *.expected))]
    Missed {
        /// Table.
        table: String,
        /// Expected number of rows.
        expected: usize,
        /// Number of rows hit.
        hit: u64,
    },
    /// The connection was lost, or the disk failed, during the commit: the change may or may not have been written.
    #[error("{} at the end: {}", if is_disk(.0) { "the disk failed" } else { "the connection was lost" }, explain(.0))]
    Unknown(sqlx::Error),
    /// Reading failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WriteError {
    /// Whether the disk failed during the commit.
    pub fn is_of_disk(&self) -> bool {
        matches!(self, WriteError::Unknown(error) if is_disk(error))
    }

    /// Whether deleted rows could not be returned because a rule of the database rewrites the statement.
    pub fn is_of_a_rule(&self) -> bool {
        matches!(self, WriteError::Rejected(words) if words.contains("RETURNING"))
    }
}

impl From<sqlx::Error> for WriteError {
    fn from(error: sqlx::Error) -> Self {
        let sqlx::Error::Database(about) = &error else { return WriteError::Store(error.into()) };
        let code = about.code().unwrap_or_default();
        match (primary_code(&error), code.as_ref()) {
            // Class 42 means that the server lacks something, whoever raises it.
            (_, code) if is_raised_on_purpose(&error) && !code.starts_with("42") => {
                let remedy = EngineFault::Raised.lasting_remedy().unwrap_or_default();
                WriteError::Rejected(format!("{}; {remedy}", explain(&error)))
            }
            (Some(5 | 6), _) | (_, "40001" | "40P01" | "55P03") => WriteError::Busy(error),
            (Some(8), _) | (_, "25006" | "42501") => WriteError::ReadOnly(explain(&error)),
            (sqlite, code) if is_refusal(sqlite, code, about.message()) => WriteError::Rejected(explain(&error)),
            _ => WriteError::Store(error.into()),
        }
    }
}

/// Checks that a change hit the expected number of rows of a table.
fn all_hit(table: &TableName, expected: usize, hit: u64) -> Result<(), WriteError> {
    if hit == expected as u64 { Ok(()) } else { Err(WriteError::Missed { table: table.title(), expected, hit }) }
}

/// Converts an error of a statement on some tables, if known. If our role lacks privileges, it names the GRANT that
/// helps.
fn refused(store: &Store, tables: &[&TableName], error: sqlx::Error) -> WriteError {
    let about = error.as_database_error().filter(|about| about.code().is_some_and(|code| code == "42501"));
    let said = about.map_or("", |about| about.message());
    let named = said.strip_prefix("permission denied for table ");
    let schema = said.strip_prefix("permission denied for schema ");
    // A trigger may have been refused access to another table.
    let is_it = |table: &&&TableName| named == Some(&table.name) || schema == Some(&table.schema);
    let known = match tables.iter().find(is_it) {
        Some(table) => store.catalog.exactly(&table.schema, &table.name),
        None => named.and_then(|name| store.catalog.table(name)),
    };
    match known {
        Some(known) => WriteError::Store(withhold::unwritable(known, &store.catalog.role)),
        None => match schema.filter(|_| tables.is_empty()) {
            Some(schema) => WriteError::Store(withhold::closed_to_new(schema, &store.catalog.role)),
            None => error.into(),
        },
    }
}

/// Whether the database rejects the values, by SQLite's error numbers or PostgreSQL's codes.
fn is_refusal(sqlite: Option<i32>, code: &str, message: &str) -> bool {
    match sqlite {
        // Too big, a constraint, or not an integer for a row number.
        Some(18..=20) => true,
        // A view: SQLite has no separate number for that.
        Some(1) => message.starts_with("cannot modify"),
        Some(_) => false,
        // Values too large for an index, statements that a view does not support, data, and constraints.
        None => matches!(code, "54000" | "0A000" | "55000") || code.starts_with("23") || code.starts_with("22"),
    }
}

/// Advances a sequence to a number, if we may and it is lower. A rollback does not undo it.
const NUMBER_PAST: &str = "SELECT setval(s.id, $3::bigint) FROM (SELECT pg_get_serial_sequence($1, $2)::regclass AS id) s \
     JOIN pg_sequence q ON q.seqrelid = s.id WHERE q.seqincrement > 0 AND q.seqmax >= $3::bigint \
     AND has_sequence_privilege(s.id, 'UPDATE') AND has_sequence_privilege(s.id, 'USAGE, SELECT') \
     AND coalesce(pg_sequence_last_value(s.id), 0) < $3::bigint";

/// A connection that may write.
#[derive(Debug)]
pub enum WriteConnection {
    /// SQLite.
    Sqlite(SqliteConnection),
    /// PostgreSQL.
    Postgres(ServerLink),
}

impl WriteConnection {
    async fn open(store: &Store) -> Result<WriteConnection, sqlx::Error> {
        if let Some(companion) = &store.companion {
            let options = SqliteConnectOptions::new().in_memory(true).foreign_keys(false).busy_timeout(PATIENCE);
            let mut link = SqliteConnection::connect_with(&options).await?;
            // Under the schema name that reads use; anything else attached there cannot be written by mistake.
            let attach = format!("ATTACH $1 AS {}", quote(companion::SCHEMA));
            let file = sqlite_reader::uri(&companion.path, "mode=rw");
            sqlx::query(AssertSqlSafe(attach)).bind(file).execute(&mut link).await?;
            return Ok(WriteConnection::Sqlite(link));
        }
        match store.sessions.opener() {
            // Foreign keys are not enforced: a cascade would change rows that no plan lists.
            Opener::Sqlite(file) => {
                let options = file.writing().busy_timeout(PATIENCE);
                Ok(WriteConnection::Sqlite(SqliteConnection::connect_with(&options).await?))
            }
            Opener::Postgres(server) => Ok(WriteConnection::Postgres(store.link(server).await?)),
        }
    }

    async fn fetch(&mut self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, sqlx::Error> {
        let mut rows = Vec::new();
        self.scan(sql, params, |row| rows.push(row)).await?;
        Ok(rows)
    }

    /// Passes on each row of a statement as it comes.
    async fn scan(
        &mut self,
        sql: &str,
        params: &[Param],
        mut each: impl FnMut(RawRow) + Send,
    ) -> Result<(), sqlx::Error> {
        tracing::debug!(%sql, "fetch for writing");
        match self {
            WriteConnection::Sqlite(link) => sqlite_writer::scan(link, sql, params, each).await,
            WriteConnection::Postgres(link) => {
                let mut each = |row| {
                    each(row);
                    ControlFlow::Continue(())
                };
                link.batches(sql, params, &mut BatchTaker::rows(&mut each)).await.map(drop)
            }
        }
    }

    async fn execute(&mut self, sql: &str, params: Vec<Param>) -> Result<u64, sqlx::Error> {
        tracing::debug!(%sql, "write");
        match self {
            WriteConnection::Sqlite(link) => {
                sqlite_writer::bound(sql, params).execute(link).await.map(|done| done.rows_affected())
            }
            WriteConnection::Postgres(link) => link.execute(sql, &params).await,
        }
    }

    /// Runs statements without parameters, separated by semicolons.
    pub(super) async fn script(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        match self {
            WriteConnection::Sqlite(link) => sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(link).await.map(drop),
            WriteConnection::Postgres(link) => link.script(sql).await,
        }
    }

    /// Begins a transaction. `pragmas` are SQLite settings for it.
    async fn begin(&mut self, patience: Duration, pragmas: &str) -> Result<(), sqlx::Error> {
        match self {
            // BEGIN IMMEDIATE: a transaction that reads first and writes later fails at once if another one has written
            // meanwhile.
            WriteConnection::Sqlite(_) => {
                let wait = patience.as_millis();
                self.script(&format!("PRAGMA busy_timeout = {wait}; {pragmas}BEGIN IMMEDIATE")).await
            }
            WriteConnection::Postgres(link) => link.begin_writing(patience).await,
        }
    }
}

/// Checkpoints the `-wal` file after writes, so that a copy of the database file alone has every reported change. Waits
/// for nobody: frames that others still read stay in the log.
impl Drop for Store {
    fn drop(&mut self) {
        let Some(writer) = Arc::get_mut(&mut self.writer) else { return };
        if let Some(WriteConnection::Sqlite(mut link)) = writer.get_mut().take() {
            // The connection's own thread does this, so no runtime is needed.
            let closed = futures::executor::block_on(async {
                sqlx::raw_sql("PRAGMA wal_checkpoint(PASSIVE)").execute(&mut link).await?;
                link.close().await
            });
            // A database that cannot be written contains no change of ours.
            if let Err(error) = closed
                && primary_code(&error) != Some(8)
            {
                tracing::warn!(%error, "the log stays next to the database");
            }
        }
    }
}

/// An open transaction that may write. Dropped without [`WriteTransaction::commit`], it is rolled back.
#[derive(Debug)]
pub struct WriteTransaction<'a> {
    pub(super) store: &'a Store,
    /// The connection, while the transaction is usable.
    link: Option<WriteConnection>,
    /// Deadline for waiting for others.
    until: Instant,
    home: MutexGuard<'a, Option<WriteConnection>>,
    now: String,
}

impl Store {
    /// Begins a transaction that may write; only one at a time, others wait. `now` is the time for [`Cell::Now`], in
    /// the canonical spelling.
    ///
    /// # Errors
    /// [`WriteError::ReadOnly`] if nothing can be written, [`WriteError::Busy`] if another writer holds the database
    /// for too long.
    pub async fn write(&self, now: &str) -> Result<WriteTransaction<'_>, WriteError> {
        self.write_within(now, PATIENCE).await
    }

    /// As [`Store::write`], with a limit for waiting for others.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub async fn write_within(&self, now: &str, patience: Duration) -> Result<WriteTransaction<'_>, WriteError> {
        if let Some(reason) = &self.blocked {
            return Err(WriteError::ReadOnly(reason.clone()));
        }
        let mut home = self.writer.lock().await;
        let kept = home.take();
        let fresh = kept.is_none();
        let mut link = match kept {
            Some(link) => link,
            None => WriteConnection::open(self).await?,
        };
        let pragmas = format!("{}{MANNERS}", lasting(self.companion.is_some()));
        let until = Instant::now() + patience;
        match link.begin(patience, &pragmas).await {
            Err(error) if lost(&error) && !is_late(&error) && !fresh => {
                link = WriteConnection::open(self).await?;
                link.begin(patience, &pragmas).await?;
            }
            outcome => outcome?,
        }
        let writer = WriteTransaction { store: self, link: Some(link), until, home, now: now.to_owned() };
        match self.displaced() {
            None => Ok(writer),
            Some(words) => {
                writer.rollback().await;
                Err(WriteError::Displaced(words))
            }
        }
    }

    /// Returns the reason, with a remedy, why the open files are no longer the database at its path; `None` while they
    /// are.
    pub fn displaced(&self) -> Option<String> {
        self.sessions.displaced()
    }

    /// Returns the number of commits tried since the database was opened: while it is unchanged, nothing was written.
    pub fn commits_begun(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// Closes the idle connections; new ones are opened when needed.
    pub fn close_idle(&self) {
        self.sessions.close_idle();
    }

    /// Whether another file has replaced the path of the database since it was opened.
    pub fn is_replaced(&self) -> bool {
        self.sessions.is_replaced()
    }

    /// Returns the reason why nothing can be written in this database, whatever the operator does; `None` if it can be
    /// written.
    pub fn why_not_writable(&self) -> Option<&str> {
        self.blocked.as_deref()
    }
}

/// Connection settings for row effects; the file does not store them, so they are set before each transaction.
const MANNERS: &str = "PRAGMA foreign_keys = OFF; PRAGMA recursive_triggers = OFF; ";

/// Builds the settings that put a committed change on disk, even through a power loss: EXTRA equals FULL in WAL mode,
/// and in the others also syncs the deletion of the journal. `fullfsync` only matters on macOS, where a plain sync may
/// stay in the disk's cache.
fn lasting(in_companion: bool) -> String {
    let schema = if in_companion { companion::SCHEMA } else { "main" };
    format!("PRAGMA {schema}.synchronous = EXTRA; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON; ")
}

/// Splits new rows into parts, one per INSERT.
fn parts(rows: &[Vec<Cell>]) -> impl Iterator<Item = &[Vec<Cell>]> {
    let (mut values, mut bytes) = (0, 0);
    rows.chunk_by(move |row, next| {
        values += row.len();
        bytes += row.iter().map(Cell::size).sum::<usize>();
        let fits = values + next.len() <= VALUES && bytes < BYTES;
        if !fits {
            (values, bytes) = (0, 0);
        }
        fits
    })
}

/// Splits keys of rows into parts, one per DELETE: a list of values may be long, but conditions on several columns
/// nest.
fn delete_parts(rows: &StoredRows) -> std::slice::Chunks<'_, Vec<FetchedValue>> {
    rows.keys.chunks(if rows.by.len() == 1 { 10_000 } else { 400 })
}

impl WriteTransaction<'_> {
    /// The connection, for one statement.
    pub(super) fn link(&mut self) -> Result<&mut WriteConnection, WriteError> {
        self.store.fault.step()?;
        self.link.as_mut().ok_or_else(|| WriteError::Store(sqlx::Error::PoolClosed.into()))
    }

    /// Engine that is written to.
    pub fn engine(&self) -> Engine {
        self.store.engine()
    }

    /// The database outside the transaction.
    pub fn store(&self) -> &Store {
        self.store
    }

    /// Makes PostgreSQL run deferred triggers now. Returns whether there are any.
    ///
    /// # Errors
    /// The error that one of them raises.
    pub async fn settle(&mut self) -> Result<bool, WriteError> {
        const DEFERRED: &str = "SELECT count(*) FROM pg_trigger \
             WHERE tginitdeferred AND NOT tgisinternal AND tgenabled <> 'D'";
        if self.engine() == Engine::Sqlite {
            return Ok(false);
        }
        let is_deferred =
            self.fetch(DEFERRED, &[]).await?.first().is_some_and(|row| super::fetched::number(row, 0) > 0);
        if is_deferred {
            self.script("SET CONSTRAINTS ALL IMMEDIATE").await?;
        }
        Ok(is_deferred)
    }

    /// An integer in the bound form of this engine.
    pub fn number(&self, number: i64) -> FetchedValue {
        match self.engine() {
            Engine::Sqlite => FetchedValue::Integer(number),
            Engine::Postgres => FetchedValue::Text(number.to_string()),
        }
    }

    /// The columns of a table.
    ///
    /// # Errors
    /// The engine's refusal, or the table does not exist.
    pub async fn shape(&mut self, table: &TableName) -> Result<Arc<TableShape>, WriteError> {
        if let Some(shape) = self.store.shapes.known(table) {
            return Ok(shape);
        }
        let (sql, params) = shape::question(self.engine(), table);
        let rows = self.fetch(&sql, &params).await?;
        let missing = || WriteError::Store(StoreError::NoTable(table.title()));
        self.store.shapes.keep(self.engine(), table, &rows).ok_or_else(missing)
    }

    /// Whether a table still has the columns by which its rows were read. Updates the cached shape.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn is_as_known(&mut self, table: &TableName) -> Result<bool, WriteError> {
        let Some(known) = self.store.shapes.known(table) else { return Ok(true) };
        let (sql, params) = shape::question(self.engine(), table);
        let rows = self.fetch(&sql, &params).await?;
        let now = self.store.shapes.keep(self.engine(), table, &rows);
        Ok(now.is_some_and(|now| now.has_columns_of(&known)))
    }

    /// Reads complete stored rows. On PostgreSQL they are locked until the end of the transaction; on SQLite the
    /// transaction itself is the lock.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn images(&mut self, rows: &StoredRows) -> Result<Vec<Image>, WriteError> {
        let shape = self.shape(&rows.table).await?;
        let mut answers = Vec::new();
        for (sql, params) in shape::image_statements(&shape, rows, true) {
            answers.extend(self.fetch_of(&[&rows.table], &sql, &params).await?);
        }
        Ok(shape::images(&shape, answers))
    }

    /// Whether stored rows are in a state, and their number. Reads them one by one, with locks as
    /// [`WriteTransaction::images`].
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn is_state(&mut self, rows: &StoredRows, state: &ReadState) -> Result<(bool, usize), WriteError> {
        let shape = self.shape(&rows.table).await?.narrowed(&state.columns, &rows.by);
        let mut reading = StateReading::like(state);
        for (sql, params) in shape::image_statements(&shape, rows, true) {
            self.scan_of(&rows.table, &sql, &params, shape::state_taker(&shape, &mut reading)).await?;
        }
        let now = reading.close();
        Ok((now == *state, now.count))
    }

    /// Counts the rows that exist now, as this transaction sees them, without locks.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn remaining(&mut self, rows: &StoredRows) -> Result<usize, WriteError> {
        let shape = self.shape(&rows.table).await?;
        let mut there = 0;
        for (sql, params) in shape::count_statements(&shape, rows) {
            let answer = self.fetch_of(&[&rows.table], &sql, &params).await?;
            there += answer.first().and_then(|row| integer(row, 0)).unwrap_or_default();
        }
        Ok(there as usize)
    }

    /// Applies one change.
    ///
    /// # Errors
    /// [`WriteError::Missed`] if it hits other rows than expected, [`WriteError::Rejected`] if the database does not
    /// accept a value.
    pub async fn run(&mut self, mutation: &Mutation) -> Result<(), WriteError> {
        let table = mutation.table().clone();
        let shape = self.shape(&table).await?;
        let mut hit = 0;
        match mutation {
            Mutation::Insert { columns, rows, .. } => {
                self.number_past(&table, columns, rows).await?;
                for rows in parts(rows) {
                    let (sql, params) = self.insert(&shape, &table, columns, rows);
                    hit += self.execute(&[&table], &sql, params).await?;
                }
            }
            Mutation::Update { key, set, .. } => {
                let mut params = Vec::new();
                let sql = self.update(&shape, &table, key, set, &mut params);
                hit += self.execute(&[&table], &sql, params).await?;
            }
            Mutation::Delete(rows) => hit += self.delete_parts(&shape, rows, &[], |_| ()).await?,
            Mutation::Revise(revise) => {
                if let Some(settings) = self.store.by_index(revise) {
                    self.script(settings).await?;
                }
                let now = self.now.clone();
                for (sql, params) in revise::statements(&shape, revise, &now) {
                    hit += self.execute(&[&table], &sql, params).await?;
                }
            }
        }
        all_hit(&table, mutation.count().1, hit)
    }

    /// Advances PostgreSQL's sequence past the numbers of new rows, so that nobody else gets these.
    async fn number_past(
        &mut self,
        table: &TableName,
        columns: &[String],
        rows: &[Vec<Cell>],
    ) -> Result<(), WriteError> {
        let is_numbered = |source: &&BoundSource| source.write.as_ref().is_some_and(|write| write.numbered);
        let mut sources = self.store.recognised().sources.iter().filter(is_numbered);
        let source = sources.find(|source| table_of(source) == *table).filter(|_| self.engine() == Engine::Postgres);
        let Some((column, _)) = source.and_then(|source| plain_column(source, "id")) else { return Ok(()) };
        let Some(at) = columns.iter().position(|name| name == column) else { return Ok(()) };
        let number = |row: &Vec<Cell>| match row.get(at)?.at(&self.now) {
            FetchedValue::Text(text) => text.parse::<i64>().ok(),
            FetchedValue::Integer(number) => Some(number),
            _ => None,
        };
        let Some(most) = rows.iter().filter_map(number).max() else { return Ok(()) };
        let params = [shape::qualified(table), column.to_owned(), most.to_string()].map(FetchedValue::Text);
        self.fetch_of(&[table], NUMBER_PAST, &params).await.map(drop)
    }

    /// Runs a statement that changes rows of some tables; returns the number of rows hit.
    async fn execute(&mut self, tables: &[&TableName], sql: &str, params: Vec<Param>) -> Result<u64, WriteError> {
        let store = self.store;
        self.link()?.execute(sql, params).await.map_err(|error| refused(store, tables, error))
    }

    /// Runs a statement that reads or changes rows of some tables; returns its result.
    async fn fetch_of(
        &mut self,
        tables: &[&TableName],
        sql: &str,
        params: &[Param],
    ) -> Result<Vec<RawRow>, WriteError> {
        let store = self.store;
        self.link()?.fetch(sql, params).await.map_err(|error| refused(store, tables, error))
    }

    async fn scan_of(
        &mut self,
        table: &TableName,
        sql: &str,
        params: &[Param],
        each: impl FnMut(RawRow) + Send,
    ) -> Result<(), WriteError> {
        let store = self.store;
        self.link()?.scan(sql, params, each).await.map_err(|error| refused(store, &[table], error))
    }

    fn insert(
        &self,
        shape: &TableShape,
        table: &TableName,
        columns: &[String],
        rows: &[Vec<Cell>],
    ) -> (String, Vec<Param>) {
        let names: Vec<String> = columns.iter().map(|c| quote(c)).collect();
        let mut params = Vec::new();
        let rows: Vec<String> =
            rows.iter().map(|row| format!("({})", self.marks(shape, columns, row, &mut params).join(", "))).collect();
        let numbered = |name: &String| shape.column(name).is_some_and(|column| column.numbered);
        let insists = if columns.iter().any(numbered) { " OVERRIDING SYSTEM VALUE" } else { "" };
        let table = shape::qualified(table);
        (format!("INSERT INTO {table} ({}){insists} VALUES {}", names.join(", "), rows.join(", ")), params)
    }

    fn marks(&self, shape: &TableShape, columns: &[String], row: &[Cell], params: &mut Vec<Param>) -> Vec<String> {
        let mut mark = |(name, cell): (&String, &Cell)| {
            let value = cell.at(&self.now);
            // A cast to a domain would truncate silently too.
            let declared = shape.column(name).map_or("", |c| c.compared.as_str());
            let text = shape::placeholder(self.engine(), params.len() + 1, &value, declared);
            params.push(value);
            text
        };
        columns.iter().zip(row).map(&mut mark).collect()
    }

    fn update(
        &self,
        shape: &TableShape,
        table: &TableName,
        key: &[(String, FetchedValue)],
        set: &[(String, Cell)],
        params: &mut Vec<Param>,
    ) -> String {
        let (columns, cells): (Vec<String>, Vec<Cell>) = set.iter().cloned().unzip();
        let marks = self.marks(shape, &columns, &cells, params);
        let sets: Vec<String> = columns.iter().zip(marks).map(|(c, m)| format!("{} = {m}", quote(c))).collect();
        let (by, values): (Vec<String>, Vec<FetchedValue>) = key.iter().cloned().unzip();
        let condition = shape::key_condition(shape, &by, &[values], params);
        format!("UPDATE {} SET {} WHERE {condition}", shape::qualified(table), sets.join(", "))
    }

    /// Updates rows that refer to each other in one statement: PostgreSQL checks foreign keys at its end, and none of
    /// the rows could be first. The caller has checked and locked the rows.
    ///
    /// # Errors
    /// As [`WriteTransaction::run`].
    pub async fn together(&mut self, rows: &[RowUpdate]) -> Result<(), WriteError> {
        let mut params = Vec::new();
        let mut parts = Vec::new();
        for (at, RowUpdate { table, key, set }) in rows.iter().enumerate() {
            let shape = self.shape(table).await?;
            parts.push(format!("u{at} AS ({})", self.update(&shape, table, key, set, &mut params)));
        }
        if !parts.is_empty() {
            let tables: Vec<&TableName> = rows.iter().map(|row| &row.table).collect();
            self.execute(&tables, &format!("WITH {} SELECT 1", parts.join(", ")), params).await?;
        }
        Ok(())
    }

    /// Deletes every row with some values, and checks their number.
    ///
    /// # Errors
    /// As [`WriteTransaction::run`].
    pub async fn delete_all(&mut self, rows: &StoredRows, expected: usize) -> Result<(), WriteError> {
        let shape = self.shape(&rows.table).await?;
        let hit = self.delete_parts(&shape, rows, &[], |_| ()).await?;
        all_hit(&rows.table, expected, hit)
    }

    /// Deletes rows by their keys, and passes on some columns of each in its state at deletion.
    ///
    /// # Errors
    /// As [`WriteTransaction::run`].
    pub async fn delete_seen(
        &mut self,
        rows: &StoredRows,
        columns: &[String],
        take: impl FnMut(RawRow) + Send,
    ) -> Result<(), WriteError> {
        let shape = self.shape(&rows.table).await?;
        let hit = self.delete_parts(&shape, rows, columns, take).await?;
        all_hit(&rows.table, rows.keys.len(), hit)
    }

    /// Deletes rows in parts, and passes on the requested columns of each. Returns their number.
    async fn delete_parts(
        &mut self,
        shape: &TableShape,
        rows: &StoredRows,
        columns: &[String],
        mut take: impl FnMut(RawRow) + Send,
    ) -> Result<u64, WriteError> {
        let (table, mut hit) = (&rows.table, 0);
        let seen = shape::projection(shape, columns);
        for keys in delete_parts(rows) {
            let mut params = Vec::new();
            let condition = shape::key_condition(shape, &rows.by, keys, &mut params);
            let sql = format!("DELETE FROM {} WHERE {condition}", shape::qualified(&rows.table));
            match self.engine() {
                _ if columns.is_empty() => hit += self.execute(&[table], &sql, params).await?,
                // Waits for rows that others hold; their state is known when they are deleted.
                Engine::Postgres => {
                    let take = |row| {
                        hit += 1;
                        take(row);
                    };
                    self.scan_of(table, &format!("{sql} RETURNING {seen}"), &params, take).await?;
                }
                // Nobody else writes during a transaction, and virtual tables do not support RETURNING.
                Engine::Sqlite => {
                    let read = sql.replacen("DELETE", &format!("SELECT {seen}"), 1);
                    self.scan_of(table, &read, &params, &mut take).await?;
                    hit += self.execute(&[table], &sql, params).await?;
                }
            }
        }
        Ok(hit)
    }

    /// Deletes rows of one or more tables in one statement. Passes on the table's index and its `columns` for each row,
    /// in its state at deletion. PostgreSQL checks foreign keys at the end of a statement, so rows that refer to each
    /// other cannot be deleted one by one.
    ///
    /// # Errors
    /// As [`WriteTransaction::run`].
    pub async fn delete_together(
        &mut self,
        all: &[StoredRows],
        columns: &[Vec<String>],
        mut take: impl FnMut(usize, RawRow) + Send,
    ) -> Result<(), WriteError> {
        let (mut parts, mut gone, mut params) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (rows, columns)) in all.iter().zip(columns).enumerate() {
            let shape = self.shape(&rows.table).await?;
            let condition = shape::listed_condition(&shape, rows, &mut params);
            let seen: Vec<String> = columns.iter().map(|column| format!("{}::text", quote(column))).collect();
            parts.push(format!(
                "d{at} AS (DELETE FROM {} WHERE {condition} RETURNING ARRAY[{}]::text[] seen)",
                shape::qualified(&rows.table),
                seen.join(", ")
            ));
            gone.push(format!("SELECT {at}::text, array_to_json(seen)::text FROM d{at}"));
        }
        let sql = format!("WITH {} {}", parts.join(", "), gone.join(" UNION ALL "));
        let tables: Vec<&TableName> = all.iter().map(|rows| &rows.table).collect();
        let mut hit = vec![0; all.len()];
        for row in self.fetch_of(&tables, &sql, &params).await? {
            let at: usize = text(&row, 0).parse().unwrap_or_default();
            let seen: Vec<Option<String>> = serde_json::from_str(&text(&row, 1)).unwrap_or_default();
            hit[at] += 1;
            take(at, seen.into_iter().map(|value| value.map_or(FetchedValue::Null, FetchedValue::Text)).collect());
        }
        for (rows, hit) in all.iter().zip(hit) {
            all_hit(&rows.table, rows.keys.len(), hit)?;
        }
        Ok(())
    }

    /// Runs a migration's script. On PostgreSQL a lock prevents concurrent migrations.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn script(&mut self, sql: &str) -> Result<(), WriteError> {
        let store = self.store;
        self.link()?.script(sql).await.map_err(|error| refused(store, &[], error))
    }

    /// Reads within the transaction.
    ///
    /// # Errors
    /// The engine's refusal.
    pub(super) async fn fetch(&mut self, sql: &str, params: &[Param]) -> Result<Vec<RawRow>, WriteError> {
        self.fetch_of(&[], sql, params).await
    }

    /// Commits the transaction.
    ///
    /// # Errors
    /// [`WriteError::Unknown`] if the connection was lost meanwhile; after any other error nothing was written.
    pub async fn commit(mut self) -> Result<(), WriteError> {
        if let Some(words) = self.store.displaced() {
            self.rollback().await;
            return Err(WriteError::Displaced(words));
        }
        // In rollback journal modes the commit waits for readers too.
        let left = self.until.saturating_duration_since(Instant::now()).as_millis();
        let commit = match self.engine() {
            Engine::Sqlite => format!("PRAGMA busy_timeout = {left}; COMMIT"),
            Engine::Postgres => "COMMIT".to_owned(),
        };
        self.store.commits.fetch_add(1, Ordering::SeqCst);
        match self.link()?.script(&commit).await {
            Ok(()) => {
                *self.home = self.link.take();
                super::fault::stop_if_asked();
                Ok(())
            }
            Err(error) => {
                let decided = matches!(&error, sqlx::Error::Database(_)) && !lost(&error) && !is_disk(&error);
                if decided {
                    let store = self.store;
                    self.rollback().await;
                    return Err(refused(store, &[], error));
                }
                Err(WriteError::Unknown(error))
            }
        }
    }

    /// Rolls back. A connection that cannot do even that is closed, which has the same effect.
    pub async fn rollback(mut self) {
        if let Some(mut link) = self.link.take()
            && link.script("ROLLBACK").await.is_ok()
        {
            *self.home = Some(link);
        }
    }
}
