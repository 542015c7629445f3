//! Databases to change, with our tables in them, and how to look at every byte of their rows.

use super::fixtures::{Layout, build_postgres, build_sqlite};
use super::postgres::Database;
use super::{keep_made, made_before};
use mnemoscope::change::operation::FeedbackFields;
use mnemoscope::change::signal::SignalNote;
use mnemoscope::change::{self, Author, ChangeError, Plan, Receipt, audit, feedback, migrate};
use mnemoscope::demo;
use mnemoscope::layout::CatalogTable;
use mnemoscope::memory::Entity;
use mnemoscope::memory::query::Query;
use mnemoscope::store::{Store, Target};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row, SqliteConnection};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// A database to change, with our tables in it.
pub struct World {
    pub store: Store,
    pub target: Target,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

pub fn author() -> Author {
    Author { actor: "tester".to_owned(), reason: Some("because".to_owned()), ticket: Some("T-1".to_owned()) }
}

/// An author who gives neither reason nor ticket.
pub fn tester() -> Author {
    Author { actor: "tester".to_owned(), ..Author::default() }
}

pub async fn open(target: &Target) -> Store {
    Store::open(target, &super::options()).await.unwrap_or_else(|error| panic!("{error}"))
}

pub async fn world(target: Target, folder: tempfile::TempDir, database: Option<Database>) -> World {
    let store = open(&target).await;
    migrate::apply(&store, &author(), None).await.expect("our tables");
    let store = open(&target).await;
    World { store, target, _folder: folder, _database: database }
}

pub async fn native() -> World {
    native_of(60).await
}

async fn native_of(episodes: u64) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("native.db");
    native_in(episodes, &path).await;
    let target = Target::File(path);
    World { store: open(&target).await, target, _folder: folder, _database: None }
}

/// Writes a native database of some episodes, with our tables in it.
pub async fn native_in(episodes: u64, path: &Path) {
    let options = demo::DemoOptions { episodes, ..demo::DemoOptions::default() };
    let build = async |path: &Path| drop(demo::build(path, &options, |_| {}).await.expect("the demo"));
    made_in_file(&format!("a native database of {episodes}"), path, build).await;
}

/// Writes a database of a layout, with our tables in it.
pub async fn layout_in(layout: Layout, path: &Path) {
    made_in_file(&format!("{layout:?}"), path, async |path| drop(build_sqlite(layout, path).await)).await;
}

/// Writes a database with our tables, made the first time that someone asks for what it holds, and copied after that.
pub async fn made_in_file(what: &str, path: &Path, build: impl AsyncFnOnce(&Path)) {
    if made_before(what, path) {
        return;
    }
    build(path).await;
    migrate::apply(&open(&Target::File(path.to_owned())).await, &author(), None).await.expect("our tables");
    let mut link = sqlite(path).await;
    sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut link).await.expect("a whole file");
    link.close().await.expect("the file");
    keep_made(what, path);
}

/// As [`native`], with few episodes: quick to look at.
pub async fn small() -> World {
    native_of(24).await
}

pub async fn on_sqlite(layout: Layout) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory.db");
    layout_in(layout, &path).await;
    let target = Target::File(path);
    World { store: open(&target).await, target, _folder: folder, _database: None }
}

pub async fn on_postgres(layout: Layout) -> Option<World> {
    Some(served(layout_on_postgres(layout).await?).await)
}

async fn served(database: Database) -> World {
    let target = Target::Postgres(database.url().to_owned());
    let store = open(&target).await;
    World { store, target, _folder: tempfile::tempdir().expect("a folder"), _database: Some(database) }
}

/// A database of a layout on PostgreSQL, with our tables in it; none without a server, or without pgvector where that is
/// needed.
pub async fn layout_on_postgres(layout: Layout) -> Option<Database> {
    made_on_postgres(&format!("{layout:?}"), async || bare_on_postgres(layout).await).await
}

/// The same without our tables.
pub async fn bare_on_postgres(layout: Layout) -> Option<Database> {
    let what = format!("{layout:?} alone");
    if let Some(database) = Database::copy_of(&what) {
        return Some(database);
    }
    let database = Database::fresh().filter(|database| !layout.needs_vector() || database.has_vector())?;
    build_postgres(layout, database.url()).await;
    Some(database.keep_as(&what))
}

/// A database with our tables on PostgreSQL, made the first time that someone asks for what it holds, and copied after
/// that.
pub async fn made_on_postgres(what: &str, build: impl AsyncFnOnce() -> Option<Database>) -> Option<Database> {
    if let Some(database) = Database::copy_of(what) {
        return Some(database);
    }
    let database = build().await?;
    let store = open(&Target::Postgres(database.url().to_owned())).await;
    migrate::apply(&store, &author(), None).await.expect("our tables");
    drop(store);
    Some(database.keep_as(what))
}

/// A small native database on PostgreSQL.
pub async fn native_on_postgres() -> Option<World> {
    let build = async || {
        let database = Database::fresh()?;
        build_native(database.url()).await;
        Some(database)
    };
    Some(served(made_on_postgres("native", build).await?).await)
}

/// Small native databases on both engines.
pub async fn natives() -> Vec<World> {
    [Some(small().await), native_on_postgres().await].into_iter().flatten().collect()
}

/// Those and Atom's.
pub async fn worlds() -> Vec<World> {
    let atoms = [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await];
    natives().await.into_iter().chain(atoms.into_iter().flatten()).collect()
}

async fn build_native(url: &str) {
    let mut server = PgConnection::connect(url).await.expect("the server");
    let schema = include_str!("../../assets/migrations/mnemoscope/postgres/0001_native.sql");
    // Not within the transaction that several statements at once are.
    let whole = include_str!("../../assets/migrations/mnemoscope/postgres/0003_whole_memories.sql");
    let whole = &whole.replace("CONCURRENTLY ", "");
    let rows = "INSERT INTO episodes (id, agent_id, user_id, execution_ids, title, started_at, feedback_ids, metadata) \
        SELECT 'ep-' || n, 'agent-1', 'user-' || n % 3, jsonb_build_array('run-' || n), 'Episode ' || n, \
        timestamptz '2026-02-01' + n * interval '1 hour', CASE n % 3 WHEN 0 THEN NULL WHEN 1 THEN '[]'::jsonb ELSE 'null' END, \
        '{\"b\": 1.10, \"a\": \"\\u00e9\"}' FROM generate_series(1, 12) n; \
        INSERT INTO agent_feedback (id, episode_id, user_id, kind, created_at) VALUES \
        ('fb-1', 'ep-1', 'user-1', 'thumbs_up', '2026-02-02'), ('fb-2', 'ep-1', 'user-1', 'thumbs_down', '2026-02-03'); \
        UPDATE episodes SET feedback_ids = '[\"fb-1\", \"fb-2\"]', feedback_score = 0 WHERE id = 'ep-1'; \
        UPDATE episodes SET parent_id = 'ep-6', utility = 0.7 WHERE id = 'ep-7'; \
        INSERT INTO utility_events (id, episode_id, signal, delta, before, after, created_at) VALUES \
        ('ut-1', 'ep-7', 'confirmed', 0.2, 0.5, 0.7, '2026-02-02'); \
        INSERT INTO memories (id, kind, text, uses, utility) VALUES ('me-1', 'drawer', 'x', 2, 0.6); \
        INSERT INTO episode_memories (episode_id, memory_id) VALUES ('ep-7', 'me-1'), ('ep-8', 'me-1'); \
        INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('pr-1', 'user-1', 'agent-1'); \
        INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, message_hash, outcome, reward, created_at) \
        VALUES ('ca-1', 'pr-1', 'user-1', 'agent-1', 'h', 'partial', 0.5, '2026-02-02')";
    for sql in [schema, whole, rows] {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut server).await.expect("the native schema");
    }
    server.close().await.expect("the server");
}

/// Every row of every table that is not ours, as text.
pub async fn dump(world: &World) -> BTreeMap<String, Vec<String>> {
    let tables: Vec<String> =
        world.store.catalog().tables.iter().filter(|t| !ours(&t.name)).map(CatalogTable::title).collect();
    match &world.target {
        Target::File(path) => {
            let mut link = sqlite(path).await;
            let sql =
                "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c ORDER BY m.name, c.cid";
            let mut columns: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for row in sqlx::query(sql).fetch_all(&mut link).await.expect("columns") {
                let (table, column): (String, String) = (row.get(0), row.get(1));
                columns.entry(table).or_default().push(format!(
                    "typeof(\"{column}\") || hex(\"{column}\") || coalesce(printf('%!.17g', \"{column}\"), '')"
                ));
            }
            let of_table = |table: &String| {
                // Each `||` copies what is before it.
                let row = columns[table].join(", ");
                format!("SELECT '{table}', group_concat(concat_ws(',', {row}), char(10)) FROM \"{table}\"")
            };
            let sql = tables.iter().map(of_table).collect::<Vec<_>>().join(" UNION ALL ");
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut link).await.expect("rows");
            let lines = |all: Option<String>| all.iter().flat_map(|all| all.split('\n')).map(str::to_owned).collect();
            rows.iter().map(|row| (row.get(0), lines(row.get(1)))).collect()
        }
        Target::Postgres(url) => {
            let mut link = PgConnection::connect(url).await.expect("the server");
            let of_table =
                |table: &String| format!("SELECT '{table}', array_agg(t::text ORDER BY t::text) FROM {table} t");
            let sql = tables.iter().map(of_table).collect::<Vec<_>>().join(" UNION ALL ");
            let rows = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut link).await.expect("rows");
            rows.iter().map(|row| (row.get(0), row.get::<Option<Vec<String>>, _>(1).unwrap_or_default())).collect()
        }
    }
}

pub fn ours(name: &str) -> bool {
    name.starts_with("memory_audit") || name.starts_with("memory_job") || name == "memory_migrations"
}

pub async fn sqlite(path: &Path) -> SqliteConnection {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).foreign_keys(false);
    SqliteConnection::connect_with(&options).await.expect("the file")
}

/// The origin of a signal that follows from no feedback.
pub fn by<'a>(actor: &'a str, reason: Option<&'a str>) -> SignalNote<'a> {
    SignalNote { actor, reason, feedback: None }
}

/// Another writer to the database.
pub enum Agent {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Agent {
    pub async fn of(target: &Target) -> Agent {
        match target {
            Target::File(path) => Agent::Sqlite(sqlite(path).await),
            Target::Postgres(url) => Agent::Postgres(PgConnection::connect(url).await.expect("the server")),
        }
    }

    pub async fn run(&mut self, sql: &str) {
        let script = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let outcome = match self {
            Agent::Sqlite(link) => script.execute(link).await.map(drop),
            Agent::Postgres(link) => script.execute(link).await.map(drop),
        };
        outcome.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// Runs the program with a state of its own; what it printed.
pub fn run(folder: &std::path::Path, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let mut command = Command::new(super::program());
    command.env("MNEMOSCOPE_STATE", folder.join("state")).env("MNEMOSCOPE_CONFIG", folder.join("config.toml"));
    let output = command.current_dir(folder).args(arguments).output().expect("the program");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), words)
}

/// The address by which a command names the database.
pub fn address(world: &World) -> String {
    address_of(&world.target)
}

/// The same of a database that nobody has open.
pub fn address_of(target: &Target) -> String {
    match target {
        Target::File(path) => path.display().to_string(),
        Target::Postgres(url) => url.clone(),
    }
}

/// Runs SQL as someone else would.
pub async fn meddle(world: &World, sql: &str) {
    meddle_with(&world.target, sql).await;
}

/// The same in a database that nobody has open.
pub async fn meddle_with(target: &Target, sql: &str) {
    Agent::of(target).await.run(sql).await;
}

/// The texts that a query gives, one a row.
pub async fn texts(world: &World, sql: &str) -> Vec<String> {
    texts_in(&world.target, sql).await
}

/// The same of a database that nobody has open.
pub async fn texts_in(target: &Target, sql: &str) -> Vec<String> {
    let sql = AssertSqlSafe(sql.to_owned());
    match target {
        Target::File(path) => sqlx::query_scalar(sql).fetch_all(&mut sqlite(path).await).await.expect("rows"),
        Target::Postgres(url) => {
            let mut server = PgConnection::connect(url).await.expect("the server");
            sqlx::query_scalar(sql).fetch_all(&mut server).await.expect("rows")
        }
    }
}

pub async fn done(world: &World, plan: Result<Plan, ChangeError>) -> Receipt {
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let receipt = change::apply(&world.store, &plan, &author()).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(receipt.counts, plan.counts);
    let altered = |words: &&String| words.contains("by a trigger or a rule");
    assert_eq!(receipt.disclosures.iter().find(altered), None, "the database stores what was written");
    receipt
}

pub fn said(kind: &str, rating: Option<i64>, correction: Option<&str>) -> FeedbackFields {
    FeedbackFields {
        kind: Some(kind.to_owned()),
        rating,
        correction: correction.map(str::to_owned),
        user: Some("u-1".to_owned()),
        again: true,
    }
}

pub async fn assert_sound(world: &World) {
    let verdict = audit::verify(&world.store, &[]).await.expect("a trail");
    assert!(verdict.ok, "{:?}", verdict.faults);
}

/// The stored aggregate is the mean of the rows that count.
pub async fn assert_mean(world: &World, episode: &str) {
    let context = world.store.contexts().episode(episode).await.expect("an answer").expect("the episode");
    let scores: Vec<f64> = context
        .feedback
        .iter()
        .filter(|row| row.get("counts") == &Value::Bool(true))
        .filter_map(|row| row.number("score"))
        .collect();
    let mean = (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64);
    assert_eq!(context.episode.number("feedback_score"), mean, "{episode}");
}

pub async fn ids(world: &World, entity: Entity) -> Vec<String> {
    ids_in(&world.store, entity).await
}

pub async fn ids_in(store: &Store, entity: Entity) -> Vec<String> {
    let page = store.page(&Query { limit: 500, ..Query::new(entity) }).await.expect("a page");
    page.rows.iter().map(|row| row.id().to_owned()).collect()
}

/// Makes a user that foreign keys may ask for.
pub async fn with_user(world: &World) {
    if world.store.catalog().table("users").is_some() {
        let sql = "INSERT INTO users (id, email, first_name, last_name, role, status) \
            VALUES ('u-1', 'u1@example.com', 'U', 'One', 'member', 'active')";
        meddle(world, sql).await;
    }
}

/// An episode that can get feedback.
pub async fn some_episode(world: &World) -> String {
    for id in ids(world, Entity::Episode).await {
        if feedback::add(&world.store, &id, &said("thumbs_up", None, None)).await.is_ok() {
            return id;
        }
    }
    panic!("no episode can get feedback");
}

/// Starts the program, which stops at its n-th writing statement, and kills it there; gives whether it came so far.
pub fn killed_at(target: &Target, statement: usize, arguments: &[&str]) -> bool {
    let state = tempfile::tempdir().expect("a folder");
    let mut child = Command::new(env!("CARGO_BIN_EXE_mnemoscope"))
        .args(["-d", &address_of(target)])
        .args(arguments)
        .args(["--apply", "--actor", "x"])
        .env("MNEMOSCOPE_STOP_AT_WRITE", statement.to_string())
        .env("MNEMOSCOPE_STATE", state.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    let words = BufReader::new(child.stderr.take().expect("its words"));
    let stopped = words.lines().map_while(Result::ok).any(|line| line.starts_with("stopped at statement"));
    if stopped {
        child.kill().expect("killed");
    }
    let status = child.wait().expect("its end");
    assert!(stopped || status.success(), "{arguments:?}: {status}");
    stopped
}
