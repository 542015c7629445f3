//! Behind pgbouncer in transaction mode, with its defaults: every command works, with two connections to the server and
//! no more; nothing stays on them for the next client; a read cannot write; a wait ends.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_postgres};
use crate::support::pooler::Pooler;
use crate::support::postgres::Database;
use mnemoscope::store::{OpenError, OpenOptions, Store, Target};
use sqlx::{Connection, PgConnection, Row};

/// Query for the leftovers in a session: prepared statements, settings, temporary tables, channels, locks, cursors.
const KEPT: &str = "SELECT 'statement ' || name FROM pg_prepared_statements \
     UNION ALL SELECT 'setting ' || name || ' = ' || setting FROM pg_settings WHERE source = 'session' \
       AND name NOT IN ('application_name', 'client_encoding', 'DateStyle', 'TimeZone', 'standard_conforming_strings') \
     UNION ALL SELECT 'table ' || relname FROM pg_class WHERE relpersistence = 't' \
     UNION ALL SELECT 'channel ' || pg_listening_channels() \
     UNION ALL SELECT 'cursor ' || name FROM pg_cursors WHERE name <> '' \
     UNION ALL SELECT 'lock ' || objid FROM pg_locks WHERE locktype = 'advisory' \
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

struct Desk {
    folder: tempfile::TempDir,
    url: String,
}

impl Desk {
    fn at(url: &str) -> Desk {
        Desk { folder: tempfile::tempdir().expect("a folder"), url: url.to_owned() }
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(crate::support::program());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        let settings = self.folder.path().join("none.toml");
        command.env("MNEMOSCOPE_CONFIG", settings).env("MNEMOSCOPE_STATE", self.folder.path());
        command.env("HOME", self.folder.path()).args(["-d", &self.url]).args(words);
        command.output().expect("the program runs")
    }

    /// Runs a command that must succeed. Gives what it printed.
    fn must(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// Lists the leftovers on all servers of a pool of that size: simultaneous transactions get one server each.
async fn kept(url: &str, servers: usize) -> Vec<String> {
    let mut links = Vec::new();
    for _ in 0..servers {
        let options: sqlx::postgres::PgConnectOptions = url.parse().expect("a URL");
        let mut link = PgConnection::connect_with(&options.extra_float_digits(None)).await.expect("the pooler");
        sqlx::raw_sql("BEGIN").execute(&mut link).await.expect("a transaction");
        links.push(link);
    }
    let mut found = Vec::new();
    for link in &mut links {
        let rows = sqlx::raw_sql(KEPT).fetch_all(link).await.expect("what is kept");
        found.extend(rows.iter().map(|row| row.get::<String, _>(0)));
    }
    found
}

#[test]
fn every_command_works_with_two_connections_and_leaves_nothing_behind() {
    for layout in [Layout::Atom, Layout::NousPlanned] {
        let Some(database) = Database::fresh() else { return };
        block_on(build_postgres(layout, database.url()));
        let Some(pooler) = Pooler::over(database.url(), 2, "") else { return };
        let desk = Desk::at(pooler.url());
        let began = Instant::now();
        for words in [
            &["status"][..],
            &["list", "episode"],
            &["list", "memory", "--format", "json"],
            &["recall", "report", "--ranking", "proven"],
            &["findings"],
            &["insights"],
            &["export", "episode"],
            &["migrate"],
            &["migrate", "--apply"],
            &["status"],
            &["audit", "verify"],
            &["backfill", "utility", "--apply"],
        ] {
            let output = desk.run(words);
            let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
            // What a layout lacks or a finding is worth is no fault of the way there.
            assert!(!said.contains("prepared statement") && !said.contains("[08"), "{words:?}: {said}");
            assert!(matches!(output.status.code(), Some(0 | 5 | 6)), "{layout:?} {words:?}: {said}");
        }
        let left = block_on(kept(pooler.url(), 2));
        assert!(left.is_empty(), "{layout:?}: {left:?}");
        assert!(began.elapsed() < Duration::from_mins(2), "{:?}", began.elapsed());
    }
}

#[test]
fn a_person_is_erased_with_two_connections_and_with_one_it_is_said_what_is_needed() {
    let Some(database) = Database::fresh() else { return };
    block_on(build_postgres(Layout::Atom, database.url()));
    let Some(pooler) = Pooler::over(database.url(), 2, "") else { return };
    let desk = Desk::at(pooler.url());
    desk.must(&["migrate", "--apply"]);
    let one = Pooler::over(database.url(), 1, "").expect("a pooler");
    let narrow = Desk::at(&format!("{}?connect_timeout=2", one.url()));
    let began = Instant::now();
    let output = narrow.run(&["purge", "user-ana"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("needs two at a time"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let plan = desk.must(&["purge", "user-ana", "--format", "json"]);
    let receipt = desk.run(&["purge", "user-ana", "--account", "erase", "--mentions", "redact", "--apply"]);
    let said = String::from_utf8_lossy(&receipt.stderr).into_owned() + &String::from_utf8_lossy(&receipt.stdout);
    assert!(said.contains("verified with disclosures"), "{plan}\n{said}");
    let left = block_on(kept(pooler.url(), 2));
    assert!(left.is_empty(), "{left:?}");
    let rows: i64 = block_on(async {
        let mut link = PgConnection::connect(database.url()).await.expect("the server");
        sqlx::query("SELECT count(*) FROM users WHERE id = 'user-ana'")
            .fetch_one(&mut link)
            .await
            .expect("a count")
            .get(0)
    });
    assert_eq!(rows, 0);
}

/// A function that writes, called where a layout may have it called: in a read.
#[test]
fn a_read_cannot_write_behind_a_pooler_and_the_next_client_is_not_read_only() {
    let Some(database) = Database::fresh() else { return };
    block_on(async {
        let mut server = PgConnection::connect(database.url()).await.expect("the server");
        let make = "CREATE TABLE agent_episodes (id text PRIMARY KEY, task_description text, n int DEFAULT 0); \
             INSERT INTO agent_episodes VALUES ('a', 'x', 0); \
             CREATE FUNCTION sly() RETURNS text LANGUAGE plpgsql AS $$ BEGIN UPDATE agent_episodes SET n = n + 1; \
               RETURN 'done'; END $$";
        sqlx::raw_sql(make).execute(&mut server).await.expect("a sly function");
        for (settings, servers) in [("", 1), ("ignore_startup_parameters = options,extra_float_digits", 1)] {
            let Some(pooler) = Pooler::over(database.url(), servers, settings) else { return };
            let folder = tempfile::tempdir().expect("a folder");
            let layout = folder.path().join("sly.toml");
            let text = "name = \"sly\"\ntitle = \"Sly\"\nrequires = [\"agent_episodes/n\"]\n[[episode]]\n\
                 table = \"agent_episodes\"\n[episode.columns]\nid = \"id\"\ntitle = { sql = \"sly()\" }\n";
            std::fs::write(&layout, text).expect("a layout");
            let desk = Desk { url: pooler.url().to_owned(), folder };
            let output = desk.run(&["--layout", &layout.display().to_string(), "list", "episode"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("read-only transaction"), "{said}");
            let options: sqlx::postgres::PgConnectOptions = pooler.url().parse().expect("a URL");
            let mut next = PgConnection::connect_with(&options.extra_float_digits(None)).await.expect("the pooler");
            sqlx::raw_sql("UPDATE agent_episodes SET n = n + 10").execute(&mut next).await.expect("the next writes");
            let limit = sqlx::raw_sql("SHOW statement_timeout").fetch_one(&mut next).await.expect("its limit");
            assert_eq!(limit.get::<String, _>(0), "0");
        }
        let n: i32 = sqlx::query("SELECT n FROM agent_episodes").fetch_one(&mut server).await.expect("n").get(0);
        assert_eq!(n, 20);
    });
}

#[test]
fn a_parameter_that_the_pooler_does_not_take_is_named_with_what_helps() {
    let Some(database) = Database::fresh() else { return };
    let Some(pooler) = Pooler::over(database.url(), 2, "") else { return };
    let url = format!("{}?options=-c%20search_path%3Dpublic", pooler.url());
    let error = block_on(Store::open(&Target::Postgres(url), &OpenOptions::default())).map(drop).unwrap_err();
    let words = error.to_string();
    assert!(words.contains("options") && words.contains("ignore_startup_parameters"), "{words}");
    assert!(matches!(error, OpenError::Other { .. }), "{error:?}");
}

/// Pages of one list, each in a transaction of its own on whatever server is free, while others use the pooler too.
#[test]
fn two_programs_share_a_pool_of_two() {
    let Some(database) = Database::fresh() else { return };
    block_on(build_postgres(Layout::NousPlanned, database.url()));
    let Some(pooler) = Pooler::over(database.url(), 2, "") else { return };
    let url = pooler.url().to_owned();
    let many: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            std::thread::spawn(move || {
                let desk = Desk::at(&url);
                (0..3).map(|_| desk.must(&["list", "episode", "--format", "json"])).collect::<Vec<_>>()
            })
        })
        .collect();
    let answers: Vec<String> = many.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]) && answers[0].contains("\"id\""), "{}", answers[0]);
}
