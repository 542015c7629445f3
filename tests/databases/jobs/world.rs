//! Databases full of episodes whose canvas events are not linked yet, and what is in them afterwards.

use std::path::Path;

use mnemoscope::change::{Author, migrate, suppress};
use mnemoscope::job::plan::{JobBeat, JobSettings, JobWish};
use mnemoscope::job::{self, JobEntry, JobOutcome, backfill};
use mnemoscope::store::{OpenOptions, Store, Target};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use tokio::sync::watch;

use crate::support::postgres::Database;
pub use crate::support::world::open;
use crate::support::world::{made_in_file, made_on_postgres};

pub struct World {
    pub store: Store,
    pub target: Target,
    _folder: Option<tempfile::TempDir>,
    _database: Option<Database>,
}

pub fn author() -> Author {
    Author { actor: "tester".to_owned(), reason: None, ticket: Some("T-9".to_owned()) }
}

/// Episodes in sessions, nine in ten sessions with one and the others with two; each third is linked already; four kinds
/// of empty lists; none to three canvas events a session; one in seven names its episode already.
const EPISODES: &str = "INSERT INTO episodes (id, agent_id, user_id, session_id, title, started_at, ended_at, canvas_ids, \
     canvas_action_count) SELECT 'ep-' || substr('0000000' || n, length('0000000' || n) - 6), 'agent-1', 'user-1', \
     'se-' || (n - CASE WHEN n % 10 = 9 THEN 1 ELSE 0 END), 'Episode ' || n, {time(0)}, {time(20)}, \
     CASE WHEN n % 3 = 0 THEN {json('[\"kept-' || n || '\"]')} WHEN n % 3 = 1 THEN NULL WHEN n % 6 = 2 THEN {json('[]')} \
     ELSE {json('null')} END, CASE WHEN n % 3 = 0 THEN 1 ELSE 0 END FROM {numbers}";
const EVENTS: &str = "INSERT INTO canvas_audit (id, episode_id, session_id, canvas_id, canvas_type, action, created_at) \
     SELECT 'ca-' || n || '-' || k, CASE WHEN n % 7 = 0 THEN 'ep-' || substr('0000000' || n, length('0000000' || n) - 6) \
     ELSE NULL END, 'se-' || (n - CASE WHEN n % 10 = 9 THEN 1 ELSE 0 END), 'canvas-' || n, 'form', 'present', \
     {time(5 + k)} FROM {numbers}, {three} WHERE k <= n % 4";

fn sql(template: &str, postgres: bool, episodes: u32) -> String {
    let numbers = if postgres {
        format!("generate_series(1, {episodes}) n")
    } else {
        format!(
            "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {episodes}) SELECT n FROM c)"
        )
    };
    let mut text = template.replace("{numbers}", &numbers);
    for (minutes, key) in [("0", "{time(0)}"), ("20", "{time(20)}"), ("(5 + k)", "{time(5 + k)}")] {
        let time = if postgres {
            format!("timestamptz '2026-01-01' + n * interval '30 minutes' + {minutes} * interval '1 minute'")
        } else {
            format!("strftime('%Y-%m-%dT%H:%M:%S.000000Z', '2026-01-01', '+' || (n * 30 + {minutes}) || ' minutes')")
        };
        text = text.replace(key, &time);
    }
    for list in ["'[\"kept-' || n || '\"]'", "'[]'", "'null'"] {
        let cast = if postgres { format!("({list})::jsonb") } else { list.to_owned() };
        text = text.replace(&format!("{{json({list})}}"), &cast);
    }
    let three = if postgres { "generate_series(1, 3) k" } else { "(SELECT 1 AS k UNION SELECT 2 UNION SELECT 3)" };
    text.replace("{three}", three)
}

/// Makes a native database file with this many episodes, our tables in it.
pub async fn build_sqlite(path: &Path, episodes: u32) {
    made_in_file(&format!("jobs of {episodes}"), path, async |path| write_sqlite(path, episodes, "WAL").await).await;
}

/// The same with another journal.
pub async fn build_sqlite_with(path: &Path, episodes: u32, journal: &str) {
    write_sqlite(path, episodes, journal).await;
    let store = open(&Target::File(path.to_owned())).await;
    migrate::apply(&store, &author(), None).await.expect("our tables");
}

async fn write_sqlite(path: &Path, episodes: u32, journal: &str) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut link = SqliteConnection::connect_with(&options).await.expect("a file");
    let schema = include_str!("../../../assets/migrations/mnemoscope/sqlite/0001_native.sql").to_owned();
    let journal = format!("PRAGMA journal_mode = {journal}");
    for text in [journal, schema, sql(EPISODES, false, episodes), sql(EVENTS, false, episodes)] {
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut link).await.expect("the native schema");
    }
    link.close().await.expect("closed");
}

async fn write_postgres(url: &str, episodes: u32) {
    let mut link = PgConnection::connect(url).await.expect("the server");
    let schema = include_str!("../../../assets/migrations/mnemoscope/postgres/0001_native.sql").to_owned();
    for text in [schema, sql(EPISODES, true, episodes), sql(EVENTS, true, episodes)] {
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut link).await.expect("the native schema");
    }
    link.close().await.expect("closed");
}

pub async fn on_sqlite(episodes: u32) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory.db");
    build_sqlite(&path, episodes).await;
    let target = Target::File(path);
    World { store: open(&target).await, target, _folder: Some(folder), _database: None }
}

pub async fn on_postgres(episodes: u32) -> Option<World> {
    let build = async || {
        let database = Database::fresh()?;
        write_postgres(database.url(), episodes).await;
        Some(database)
    };
    let database = made_on_postgres(&format!("jobs of {episodes}"), build).await?;
    let target = Target::Postgres(database.url().to_owned());
    Some(World { store: open(&target).await, target, _folder: None, _database: Some(database) })
}

/// The worlds on both engines; PostgreSQL is left out only where it was asked for, which is said then.
pub async fn on_both(episodes: u32) -> Vec<World> {
    [Some(on_sqlite(episodes).await), on_postgres(episodes).await].into_iter().flatten().collect()
}

impl World {
    /// One value a row, of any statement.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.target {
            Target::File(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
                let rows = sqlx::query(sql).fetch_all(&mut link).await.expect("rows");
                rows.iter().map(|r| r.get::<Option<String>, _>(0).unwrap_or_default()).collect()
            }
            Target::Postgres(url) => {
                let mut link = PgConnection::connect(url).await.expect("the server");
                let rows = sqlx::query(sql).fetch_all(&mut link).await.expect("rows");
                rows.iter().map(|r| r.get::<Option<String>, _>(0).unwrap_or_default()).collect()
            }
        }
    }

    pub async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        match &self.target {
            Target::File(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
                sqlx::raw_sql(sql).execute(&mut link).await.expect("done");
            }
            Target::Postgres(url) => {
                let mut link = PgConnection::connect(url).await.expect("the server");
                sqlx::raw_sql(sql).execute(&mut link).await.expect("done");
            }
        }
    }

    /// Every episode with its list and count, every event with its back-link.
    pub async fn links(&self) -> Vec<String> {
        let mut all = self
            .texts(
                "SELECT id || ' ' || coalesce(CAST(canvas_ids AS TEXT), '-') || ' ' || \
                 coalesce(CAST(canvas_action_count AS TEXT), '-') FROM episodes ORDER BY id",
            )
            .await;
        all.extend(self.texts("SELECT id || ' ' || coalesce(episode_id, '-') FROM canvas_audit ORDER BY id").await);
        all
    }

    /// Runs a backfill to its end, with batches of that many rows.
    pub async fn backfill(&self, name: &str, batch: usize) -> JobOutcome {
        let (_wish, heard) = watch::channel(JobWish::GoOn);
        self.backfill_while(name, batch, heard, &mut |_| ()).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The same database, opened by someone who holds the key of the list of erased people, with one of them listed.
    pub async fn erased(&self, handle: &str) -> World {
        let key = [7; 32];
        let hmac = suppress::hmac(&key, handle);
        let listed = "INSERT INTO memory_suppressions (hmac, session, kind, created_at) VALUES";
        self.execute(&format!("{listed} ('{hmac}', 's', 'id', '2026-01-01T00:00:00.000000Z')")).await;
        let options = OpenOptions { secret: Some(key), ..crate::support::options() };
        let store = Store::open(&self.target, &options).await.expect("it opens");
        World { store, target: self.target.clone(), _folder: None, _database: None }
    }

    pub async fn backfill_while(
        &self,
        name: &str,
        batch: usize,
        heard: watch::Receiver<JobWish>,
        each: &mut (dyn FnMut(JobBeat) + Send),
    ) -> Result<JobOutcome, mnemoscope::change::ChangeError> {
        let job =
            backfill::BackfillKind::named(name).expect("a backfill").job(&self.store).expect("it can be done here");
        let settings = JobSettings { batch: Some(batch), ..JobSettings::default() };
        job::run(&self.store, &*job, &author(), &settings, JobEntry::Begin, heard, each).await
    }
}

impl World {
    /// Another look at a database that a world keeps.
    pub async fn view(target: &Target) -> World {
        World { store: open(target).await, target: target.clone(), _folder: None, _database: None }
    }
}
