//! Stored records of jobs, and signs that the database is under load.

use std::sync::Arc;

use super::ability::ServerAbility;
use super::fetched::{FetchedValue, Param, RawRow, text};
use super::own::OwnTables;
use super::shape::qualified;
use super::stored::{Image, StoredRows, TableName};
use super::write::{WriteError, WriteTransaction};
use super::{RecordReader, StoreError};
use crate::layout::Engine;

/// Our migration that creates the tables of jobs.
pub const MIGRATION: i64 = 2;

/// Columns of a job, in the order they are read.
const COLUMNS: &str = "id, name, state, token, owner, heartbeat_at, settings, relies_on, place, total, seen, changed, \
     quarantined, batches, counts, throttle, first_seq, last_seq, verification, problem, actor, ticket, created_at, \
     updated_at, ended_at";

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobRow {
    /// Identity of the run.
    pub id: String,
    /// Name of the job.
    pub name: String,
    /// State of the run.
    pub state: String,
    /// Fencing token of its runner.
    pub token: i64,
    /// Current runner; `None` while nobody works on the job.
    pub owner: Option<String>,
    /// Time of the runner's last sign of life.
    pub heartbeat_at: Option<String>,
    /// JSON: how it was started.
    pub settings: String,
    /// JSON: the columns it relies on.
    pub relies_on: String,
    /// JSON: where the next batch begins.
    pub place: String,
    /// Rows to process.
    pub total: Option<i64>,
    /// Rows processed so far.
    pub seen: i64,
    /// Rows that were changed.
    pub changed: i64,
    /// Rows that could not be handled.
    pub quarantined: i64,
    /// Finished batches.
    pub batches: i64,
    /// JSON: changed rows by table.
    pub counts: String,
    /// Reason why the job is slowed down.
    pub throttle: Option<String>,
    /// Number of its first audit entry.
    pub first_seq: Option<i64>,
    /// Number of its last one.
    pub last_seq: Option<i64>,
    /// JSON: result of the verification.
    pub verification: Option<String>,
    /// Error that made the job fail.
    pub problem: Option<String>,
    /// Name of whoever started or resumed the job.
    pub actor: String,
    /// Ticket that requested it.
    pub ticket: Option<String>,
    /// Time when the job was started.
    pub created_at: String,
    /// Time of the last write to the row.
    pub updated_at: String,
    /// Time when the job ended.
    pub ended_at: Option<String>,
}

impl JobRow {
    fn of(image: &Image) -> Self {
        let text = |name: &str| match image.get(name) {
            Some(FetchedValue::Text(text)) => Some(text.clone()),
            Some(FetchedValue::Integer(i)) => Some(i.to_string()),
            _ => None,
        };
        let number = |name: &str| text(name).and_then(|t| t.parse::<i64>().ok());
        JobRow {
            id: text("id").unwrap_or_default(),
            name: text("name").unwrap_or_default(),
            state: text("state").unwrap_or_default(),
            token: number("token").unwrap_or_default(),
            owner: text("owner"),
            heartbeat_at: text("heartbeat_at"),
            settings: text("settings").unwrap_or_default(),
            relies_on: text("relies_on").unwrap_or_default(),
            place: text("place").unwrap_or_default(),
            total: number("total"),
            seen: number("seen").unwrap_or_default(),
            changed: number("changed").unwrap_or_default(),
            quarantined: number("quarantined").unwrap_or_default(),
            batches: number("batches").unwrap_or_default(),
            counts: text("counts").unwrap_or_default(),
            throttle: text("throttle"),
            first_seq: number("first_seq"),
            last_seq: number("last_seq"),
            verification: text("verification"),
            problem: text("problem"),
            actor: text("actor").unwrap_or_default(),
            ticket: text("ticket"),
            created_at: text("created_at").unwrap_or_default(),
            updated_at: text("updated_at").unwrap_or_default(),
            ended_at: text("ended_at"),
        }
    }
}

/// Signs that other sessions are affected by the load.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Strain {
    /// Lag of the slowest replica, in seconds; `None` if there is none, or nothing is known.
    pub replica_lag: Option<f64>,
    /// Sessions of this database that wait for a lock.
    pub waiting: i64,
}

const STRAIN: &str = "SELECT (SELECT max(extract(epoch FROM replay_lag))::float8 FROM pg_stat_replication), \
     (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')";

/// The table of jobs.
pub fn table(own: &OwnTables) -> TableName {
    own.table("memory_jobs")
}

/// The table of rows that jobs could not handle.
pub fn quarantine(own: &OwnTables) -> TableName {
    own.table("memory_job_quarantine")
}

impl OwnTables {
    /// Whether the tables of jobs exist.
    pub fn has_jobs(&self) -> bool {
        self.applied.iter().any(|a| a.version == MIGRATION)
    }
}

fn job_rows(rows: Vec<RawRow>) -> Vec<JobRow> {
    let names: Vec<Arc<str>> = COLUMNS.split(", ").map(Arc::from).collect();
    rows.into_iter().map(|row| JobRow::of(&Image(names.iter().cloned().zip(row).collect()))).collect()
}

impl RecordReader<'_> {
    /// Runs of jobs, newest first: all unfinished ones, the latest of each job, and the latest 500 of all.
    ///
    /// # Errors
    /// The engine's refusal. Empty if the tables of jobs do not exist.
    pub async fn jobs(self) -> Result<Vec<JobRow>, StoreError> {
        let condition = "ended_at IS NULL \
             OR created_at IN (SELECT max(created_at) FROM memory_jobs GROUP BY name) \
             OR id IN (SELECT id FROM memory_jobs ORDER BY created_at DESC, id LIMIT 500)";
        self.jobs_where(condition, &[]).await
    }

    async fn jobs_where(self, condition: &str, params: &[Param]) -> Result<Vec<JobRow>, StoreError> {
        if !self.own().await?.is_some_and(|own| own.has_jobs()) {
            return Ok(Vec::new());
        }
        let sql = format!("SELECT {COLUMNS} FROM memory_jobs WHERE {condition} ORDER BY created_at DESC, id");
        match self.fetch_own(&sql, params).await {
            // The capabilities report that they cannot be read.
            Err(StoreError::Denied { .. }) => Ok(Vec::new()),
            rows => Ok(job_rows(rows?)),
        }
    }

    /// The latest run of a job; `None` if it never ran.
    ///
    /// # Errors
    /// As [`RecordReader::jobs`].
    pub async fn job(self, name: &str) -> Result<Option<JobRow>, StoreError> {
        let condition = "created_at IN (SELECT max(created_at) FROM memory_jobs WHERE name = $1) AND name = $1";
        Ok(self.jobs_where(condition, &[FetchedValue::Text(name.to_owned())]).await?.into_iter().next())
    }

    /// Lists the rows that a run could not process: entity, id and problem of each row, at most `limit`.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn job_quarantine(self, own: &OwnTables, id: &str, limit: usize) -> Result<Vec<[String; 3]>, StoreError> {
        let sql = format!(
            "SELECT entity, row_id, problem FROM {} WHERE job_id = $1 ORDER BY number LIMIT {limit}",
            qualified(&quarantine(own))
        );
        let rows = self.fetch_own(&sql, &[FetchedValue::Text(id.to_owned())]).await?;
        Ok(rows.iter().map(|row| std::array::from_fn(|at| text(row, at))).collect())
    }

    /// Reads the signs of load; nothing is known on SQLite, and little without privileges.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn strain(self) -> Result<Strain, StoreError> {
        if self.store.engine() == Engine::Sqlite {
            return Ok(Strain::default());
        }
        let rows = self.store.ask(ServerAbility::Activity, STRAIN).await?;
        let row = rows.first();
        let replica_lag = match row.and_then(|r| r.first()) {
            Some(FetchedValue::Real(seconds)) => Some(*seconds),
            _ => None,
        };
        let waiting = match row.and_then(|r| r.get(1)) {
            Some(FetchedValue::Integer(waiting)) => *waiting,
            _ => 0,
        };
        Ok(Strain { replica_lag, waiting })
    }
}

impl WriteTransaction<'_> {
    /// Makes the server end this transaction after ten idle seconds: a runner that was stopped within it must not block
    /// others for longer than its lease. SQLite has no such setting.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn ends_when_silent(&mut self) -> Result<(), WriteError> {
        match self.engine() {
            Engine::Sqlite => Ok(()),
            Engine::Postgres => self.script("SET LOCAL idle_in_transaction_session_timeout = '10s'").await,
        }
    }

    /// The unfinished run of a job, locked until the transaction ends.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn open_job(&mut self, own: &OwnTables, name: &str) -> Result<Option<JobRow>, WriteError> {
        let lock = if self.engine() == Engine::Postgres { " FOR UPDATE" } else { "" };
        let jobs = qualified(&table(own));
        let sql = format!("SELECT {COLUMNS} FROM {jobs} WHERE name = $1 AND ended_at IS NULL{lock}");
        Ok(job_rows(self.fetch(&sql, &[FetchedValue::Text(name.to_owned())]).await?).into_iter().next())
    }

    /// A run by its id, locked until the transaction ends.
    ///
    /// # Errors
    /// The engine's refusal.
    pub async fn job_by_id(&mut self, own: &OwnTables, id: &str) -> Result<Option<JobRow>, WriteError> {
        let rows = self.images(&StoredRows::with(&table(own), "id", FetchedValue::Text(id.to_owned()))).await?;
        Ok(rows.first().map(JobRow::of))
    }
}
