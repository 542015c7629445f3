//! The databases of histories on either engine: how they are made, and how they are looked at by SQL of our own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use mnemoscope::demo;
use mnemoscope::memory::Entity;
use mnemoscope::store::Target;
use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};

use super::history::Engine;
use super::model::{MARKED, Spot, marks};
use crate::pty::terminal::{Home, PROGRAM};
use crate::support::block_on;
use crate::support::postgres::Database;
pub use crate::support::world::address_of as address;

/// Removes what backfills can find again, so that each has something to do. On both engines.
const DAMAGE: &str = "UPDATE episodes SET canvas_ids = '[]', canvas_action_count = 0 WHERE id > 'ep_aqckd'; \
     UPDATE episodes SET feedback_ids = '[]', feedback_score = 0.125, utility = 0.25; \
     UPDATE episodes SET participants = '[]', tools_used = '[]', tags = '[]', parent_id = NULL; \
     UPDATE agent_feedback SET episode_id = NULL WHERE execution_id IS NOT NULL; \
     UPDATE canvas_audit SET episode_id = NULL WHERE session_id IS NOT NULL; \
     UPDATE agent_memory_cases SET message_hash = NULL, reward = NULL;";

/// Rows whose secrets a backfill removes.
const SECRETS: &str = "INSERT INTO memories (id, kind, text, created_at) VALUES \
     ('me-secret-1', 'drawer', 'key AKIAIOSFODNN7EXAMPLE of nobody', '2026-02-02T00:00:00.000000Z'), \
     ('me-secret-2', 'drawer', 'ghp_0123456789abcdefghijABCDEFGHIJ012345 it is', '2026-02-02T00:00:00.000000Z');";

/// One history's database, with the folder of its state.
pub struct Place {
    pub home: Home,
    pub target: Target,
    database: Option<Database>,
}

/// The databases from which those of histories are copied.
pub struct Bases {
    engine: Engine,
    plain: Place,
    migrated: Place,
}

/// Every row, by table and key: each column with its stored value as text.
pub type Dump = BTreeMap<String, BTreeMap<String, Vec<(String, Vec<u8>)>>>;

impl Bases {
    /// None when tests without PostgreSQL were asked for.
    pub fn new(engine: Engine) -> Option<Self> {
        let plain = Place::base(engine)?;
        let migrated = plain.copy("WAL");
        migrated.succeeds(&["migrate", "--apply"]);
        migrated.close();
        Some(Bases { engine, plain, migrated })
    }

    pub fn place(&self, migrated: bool, journal: &str) -> Place {
        let journal = if self.engine == Engine::Sqlite { journal } else { "" };
        if migrated { self.migrated.copy(journal) } else { self.plain.copy(journal) }
    }
}

impl Place {
    fn base(engine: Engine) -> Option<Place> {
        let home = Home::new();
        let path = home.path().join("memory.db");
        let options = demo::DemoOptions { episodes: 24, ..demo::DemoOptions::default() };
        block_on(demo::build(&path, &options, |_| {})).expect("the demo");
        let file = Place { home, target: Target::File(path), database: None };
        if engine == Engine::Sqlite {
            file.sql(DAMAGE);
            file.sql(SECRETS);
            file.close();
            return Some(file);
        }
        let database = Database::fresh()?;
        let target = Target::Postgres(database.url().to_owned());
        let place = Place { home: Home::new(), target, database: Some(database) };
        place.sql(include_str!("../../../assets/migrations/mnemoscope/postgres/0001_native.sql"));
        place.succeeds(&["migrate", "--apply"]);
        let rows: Vec<u8> = Entity::ALL
            .iter()
            .filter(|entity| **entity != Entity::AuditEntry)
            .flat_map(|entity| file.succeeds(&["export", entity.name()]).stdout)
            .collect();
        let exported = place.home.path().join("all.jsonl");
        std::fs::write(&exported, rows).expect("the rows");
        place.succeeds(&["import", "jsonl", &exported.display().to_string(), "--apply"]);
        let ours = place.tables().into_iter().filter(|table| is_ours(table));
        let drop: Vec<String> = ours.map(|table| format!("DROP TABLE {table} CASCADE;")).collect();
        for sql in [drop.join(" ").as_str(), DAMAGE, SECRETS] {
            place.sql(sql);
        }
        Some(place)
    }

    /// The same database again, with a state folder of its own.
    pub fn copy(&self, journal: &str) -> Place {
        let home = Home::new();
        match (&self.target, &self.database) {
            (Target::File(path), _) => {
                let copy = home.path().join("memory.db");
                std::fs::copy(path, &copy).expect("a copy");
                let place = Place { home, target: Target::File(copy), database: None };
                place.sql(&format!("PRAGMA journal_mode = {journal}"));
                place
            }
            (Target::Postgres(_), Some(database)) => {
                let database = database.copy();
                let target = Target::Postgres(database.url().to_owned());
                Place { home, target, database: Some(database) }
            }
            (Target::Postgres(_), None) => unreachable!("each place on PostgreSQL keeps its database"),
        }
    }

    pub fn address(&self) -> String {
        address(&self.target)
    }

    /// Puts everything into the one file, so that it can be copied.
    fn close(&self) {
        if let Target::File(_) = self.target {
            self.sql("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE");
        }
    }

    /// One of our commands on this database, ready to be started.
    pub fn command<S: AsRef<str>>(&self, words: &[S]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.env_clear().envs(self.home.surroundings()).current_dir(self.home.path());
        command.args(["-d", &self.address()]).args(words.iter().map(AsRef::as_ref));
        command.env("MNEMOSCOPE_ACTOR", "operator").stdin(Stdio::null());
        command
    }

    pub fn run<S: AsRef<str>>(&self, words: &[S]) -> Output {
        self.command(words).output().expect("the program")
    }

    fn succeeds(&self, words: &[&str]) -> Output {
        let output = self.run(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn sql(&self, sql: &str) {
        block_on(async {
            let mut link = Link::open(&self.target).await.expect("the database");
            link.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
            link.close().await;
        });
    }

    pub fn rows(&self, sql: &str) -> Result<Vec<Vec<Vec<u8>>>, sqlx::Error> {
        block_on(async {
            let mut link = Link::open(&self.target).await?;
            let rows = link.rows(sql).await;
            link.close().await;
            rows
        })
    }

    pub fn texts(&self, sql: &str) -> Result<Vec<String>, sqlx::Error> {
        let text = |mut row: Vec<Vec<u8>>| String::from_utf8_lossy(&row.swap_remove(0)).into_owned();
        Ok(self.rows(sql)?.into_iter().map(text).collect())
    }

    fn tables(&self) -> Vec<String> {
        let sql = match self.target {
            Target::File(_) => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            Target::Postgres(_) => "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'",
        };
        self.texts(sql).expect("the tables")
    }

    /// Waits until nobody else is connected: the server hears late that a process was killed.
    pub fn quiet(&self) {
        let others = "SELECT count(*)::text FROM pg_stat_activity \
                      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        let began = Instant::now();
        while matches!(self.target, Target::Postgres(_)) && self.texts(others).expect("the server") != ["0"] {
            assert!(began.elapsed() < Duration::from_secs(30), "a connection of a process that is gone stays");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lists the problems that the engine itself finds, foreign keys included.
    pub fn problems(&self) -> BTreeSet<String> {
        match self.target {
            Target::File(_) => {
                let mut all = BTreeSet::new();
                let keys =
                    "SELECT \"table\" || ' ' || coalesce(rowid, '') || ' ' || parent FROM pragma_foreign_key_check";
                for sql in ["SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'", keys] {
                    match self.texts(sql) {
                        Ok(found) => all.extend(found),
                        Err(error) => drop(all.insert(error.to_string())),
                    }
                }
                all
            }
            Target::Postgres(_) => {
                let keys = "SELECT id FROM agent_memory_cases c WHERE profile_id IS NOT NULL \
                            AND NOT EXISTS (SELECT FROM agent_memory_profiles p WHERE p.id = c.profile_id)";
                self.texts(keys).map_or_else(|error| BTreeSet::from([error.to_string()]), BTreeSet::from_iter)
            }
        }
    }

    /// Every row that is not ours.
    pub fn dump(&self) -> Dump {
        let tables = self.tables().into_iter().filter(|table| !is_ours(table));
        if let Target::File(_) = self.target {
            return tables.map(|table| (table.clone(), self.dump_table(&table))).collect();
        }
        // With one connection for all: each costs a server much.
        let of_table = |table: &String| format!("SELECT '{table}', row_to_json(t)::text FROM {table} t");
        let mut dump: Dump = tables.map(|table| (table, BTreeMap::new())).collect();
        let sql = dump.keys().map(of_table).collect::<Vec<_>>().join(" UNION ALL ");
        for row in self.rows(&sql).expect("rows") {
            let [table, row] = &row[..] else { panic!("a table and its row") };
            let table = String::from_utf8_lossy(table).into_owned();
            let row: Vec<(String, Vec<u8>)> = match serde_json::from_slice(row).expect("JSON") {
                Value::Object(row) => row.into_iter().map(|(c, v)| (c, v.to_string().into_bytes())).collect(),
                other => panic!("{other} is no row"),
            };
            let key = key_of(&table, &row);
            dump.entry(table).or_default().insert(key, row);
        }
        dump
    }

    fn dump_table(&self, table: &str) -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
        let columns = self.texts(&format!("SELECT name FROM pragma_table_info('{table}')")).expect("columns");
        let quoted: Vec<String> = columns.iter().map(|c| format!("CAST(quote(\"{c}\") AS BLOB)")).collect();
        let rows = self.rows(&format!("SELECT {} FROM \"{table}\"", quoted.join(", "))).expect("rows");
        let rows = rows.into_iter().map(|row| columns.iter().cloned().zip(row).collect::<Vec<_>>());
        rows.map(|row| (key_of(table, &row), row)).collect()
    }

    /// Every mark that is somewhere.
    pub fn marks(&self) -> Result<BTreeMap<Spot, String>, sqlx::Error> {
        let of_column = |(table, column): &(&str, &str)| {
            format!(
                "SELECT '{table}', '{column}', CAST(id AS TEXT), CAST({column} AS TEXT) FROM {table} WHERE {column} LIKE '%fire%'"
            )
        };
        let sql = MARKED.iter().map(of_column).collect::<Vec<_>>().join(" UNION ALL ");
        let mut found = BTreeMap::new();
        for row in self.rows(&sql)? {
            let [table, column, id, text] = &row[..] else { continue };
            let [table, column, id, text] =
                [table, column, id, text].map(|cell| String::from_utf8_lossy(cell).into_owned());
            let marks = marks(&text);
            if !marks.is_empty() {
                found.insert((table, column, id), marks);
            }
        }
        Ok(found)
    }
}

/// The key of a row: its id, or all of it where it has none.
fn key_of(table: &str, row: &[(String, Vec<u8>)]) -> String {
    let is_id = |column: &str| column == "id" || table.ends_with("_embeddings") && column != "embedding";
    let has_id = row.iter().any(|(column, _)| is_id(column));
    let parts = row.iter().filter(|(column, _)| !has_id || is_id(column));
    parts.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>().join(" ")
}

pub fn is_ours(table: &str) -> bool {
    mnemoscope::store::own::TABLES.contains(&table)
}

/// A connection that is not one of the program's.
pub enum Link {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Link {
    pub async fn open(target: &Target) -> Result<Link, sqlx::Error> {
        Ok(match target {
            Target::File(path) => Link::Sqlite(Self::file(path).await?),
            Target::Postgres(url) => Link::Postgres(PgConnection::connect(url).await?),
        })
    }

    async fn file(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(Duration::from_secs(20));
        SqliteConnection::connect_with(&options).await
    }

    pub async fn execute(&mut self, sql: &str) -> Result<u64, sqlx::Error> {
        let script = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Link::Sqlite(link) => script.execute(link).await.map(|done| done.rows_affected()),
            Link::Postgres(link) => script.execute(link).await.map(|done| done.rows_affected()),
        }
    }

    /// Rows with their values as bytes of text; NULL as none.
    async fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Vec<u8>>>, sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Link::Sqlite(link) => {
                let rows = sql.fetch_all(link).await?;
                let values = |row: &sqlx::sqlite::SqliteRow| {
                    (0..row.len()).map(|at| row.get_unchecked::<Option<Vec<u8>>, _>(at).unwrap_or_default()).collect()
                };
                Ok(rows.iter().map(values).collect())
            }
            Link::Postgres(link) => {
                let rows = sql.fetch_all(link).await?;
                let values = |row: &sqlx::postgres::PgRow| {
                    let text = |at| row.get::<Option<String>, _>(at).unwrap_or_default().into_bytes();
                    (0..row.len()).map(text).collect()
                };
                Ok(rows.iter().map(values).collect())
            }
        }
    }

    pub async fn close(self) {
        let _ = match self {
            Link::Sqlite(link) => link.close().await,
            Link::Postgres(link) => link.close().await,
        };
    }
}
