//! Growth of tables: the engine counts the rows of each day, whichever way times are stored, and a table without a time of
//! creation says so.

use mnemoscope::memory::Entity;
use mnemoscope::memory::growth::TableGrowth;
use mnemoscope::store::{OpenOptions, Store, Target};
use sqlx::Connection as _;

use crate::support::postgres::Database;
use crate::support::{block_on, options};

const LAYOUT: &str = r#"
name = "kept"
title = "Times stored in each way"
requires = ["talks", "notes"]

[[episode]]
table = "talks"
[episode.columns]
id = "id"
started_at = { column = "started", stored = "epoch" }

[[memory]]
table = "notes"
[memory.columns]
id = "id"
created_at = { column = "made", stored = "epoch-millis" }

[[feedback]]
table = "said"
keep = "t.id <> 'bookkeeping'"
[feedback.columns]
id = "id"
created_at = "at"

[[subject]]
table = "people"
[subject.columns]
id = "id"
"#;

/// 2026-02-04T23:59:59Z, the second before the day ends.
const LATE: i64 = 1_770_249_599;

fn statements() -> Vec<String> {
    vec![
        "CREATE TABLE talks (id TEXT PRIMARY KEY, started DOUBLE PRECISION)".to_owned(),
        "CREATE TABLE notes (id TEXT PRIMARY KEY, made BIGINT)".to_owned(),
        "CREATE TABLE said (id TEXT PRIMARY KEY, at TEXT)".to_owned(),
        "CREATE TABLE people (id TEXT PRIMARY KEY)".to_owned(),
        "CREATE TABLE bare (word TEXT)".to_owned(),
        format!("INSERT INTO talks VALUES ('a', {LATE}.9), ('b', {LATE}), ('c', {}), ('d', NULL), ('e', 1e18)", LATE + 1),
        format!("INSERT INTO notes VALUES ('a', {LATE}999), ('b', {}000), ('c', 9223372036854775807)", LATE + 1),
        "INSERT INTO said VALUES ('a', '2026-02-04T10:00:00.000000Z'), ('b', '2026-02-04 11:00:00'), ('c', '2026-02-03'), \
         ('d', 'yesterday'), ('e', NULL), ('bookkeeping', '2026-02-04')"
            .to_owned(),
        "INSERT INTO people VALUES ('ann')".to_owned(),
    ]
}

async fn open(target: Target, folder: &tempfile::TempDir) -> Store {
    let file = folder.path().join("kept.toml");
    std::fs::write(&file, LAYOUT).expect("a layout file");
    let options = OpenOptions { layouts: vec![file.display().to_string()], ..options() };
    Store::open(&target, &options).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn growth(store: &Store, table: &str) -> Result<TableGrowth, String> {
    let table = store.raw().raw_table(table).await.expect("a table");
    store.raw().growth(&table).await.expect("counted")
}

async fn holds(store: &Store) {
    for (table, entity, days, untimed) in [
        ("talks", Entity::Episode, vec![("2026-02-04", 2), ("2026-02-05", 1)], 2),
        ("notes", Entity::Memory, vec![("2026-02-04", 1), ("2026-02-05", 1)], 1),
        ("said", Entity::Feedback, vec![("2026-02-03", 1), ("2026-02-04", 2)], 2),
    ] {
        let grown = growth(store, table).await.unwrap_or_else(|why| panic!("{table}: {why}"));
        let found: Vec<(String, u64)> = grown.days.iter().map(|(day, rows)| (day.to_string(), *rows)).collect();
        let wanted: Vec<(String, u64)> = days.into_iter().map(|(day, rows)| (day.to_owned(), rows)).collect();
        assert_eq!((grown.entity, found, grown.untimed), (entity, wanted, untimed), "{table}");
    }
    assert_eq!(growth(store, "people").await, Err("subject has no time of creation".to_owned()));
    let why = growth(store, "bare").await.expect_err("no time");
    assert!(why.starts_with("no layout says"), "{why}");
}

#[test]
fn rows_of_a_day_are_counted_on_sqlite() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kept.db");
        let url = format!("sqlite:{}?mode=rwc", path.display());
        let mut link = sqlx::SqliteConnection::connect(&url).await.expect("a database");
        for statement in statements() {
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut link).await.expect("done");
        }
        link.close().await.expect("closed");
        holds(&open(Target::File(path), &folder).await).await;
    });
}

#[test]
fn rows_of_a_day_are_counted_on_postgresql() {
    let Some(database) = Database::fresh() else { return };
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let mut link = sqlx::PgConnection::connect(database.url()).await.expect("a database");
        for statement in statements() {
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut link).await.expect("done");
        }
        link.close().await.expect("closed");
        holds(&open(Target::Postgres(database.url().to_owned()), &folder).await).await;
    });
}
