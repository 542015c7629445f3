//! One profile with a standby for looking and the primary for changes, on two real servers of the test's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use mnemoscope::memory::Entity;
use mnemoscope::memory::query::Query;
use mnemoscope::store::{OpenOptions, Store, Target};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::support::pooler::skipped;
use crate::support::postgres::Database;
use crate::support::{block_on, program};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/postgres");

/// A server of the test's own. It stops when this value is dropped.
struct OwnServer {
    folder: PathBuf,
    url: String,
}

impl OwnServer {
    fn start(words: &[&str], folder: PathBuf, followed: Option<&OwnServer>) -> OwnServer {
        let mut command = Command::new(SCRIPT);
        command.args(words).arg(&folder).args(followed.map(|server| &server.folder));
        let output = command.output().expect("the script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let url = String::from_utf8(output.stdout).expect("a URL").trim().to_owned();
        OwnServer { folder, url }
    }

    fn run(&self, sql: &str) {
        block_on(async {
            let mut link = PgConnection::connect(&self.url).await.expect("the server");
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut link).await.expect(sql);
        });
    }

    fn says(&self, sql: &str) -> String {
        block_on(async {
            let mut link = PgConnection::connect(&self.url).await.expect("the server");
            sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(&mut link).await.expect(sql)
        })
    }

    /// Waits until this standby has what another server wrote until now.
    fn follow(&self, primary: &OwnServer) {
        let written = primary.says("SELECT pg_current_wal_insert_lsn()::text");
        let followed = format!("SELECT (pg_last_wal_replay_lsn() >= '{written}')::text");
        let began = Instant::now();
        while self.says(&followed) != "true" {
            assert!(began.elapsed() < Duration::from_secs(30), "the standby does not follow");
            std::thread::yield_now();
        }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = Command::new(SCRIPT).arg("stop").arg(&self.folder).output();
    }
}

/// A primary with two episodes, a standby that follows it, and a profile `memory` with both.
struct Pair {
    standby: OwnServer,
    primary: OwnServer,
    folder: tempfile::TempDir,
}

impl Pair {
    fn new() -> Option<Pair> {
        if std::env::var("MNEMOSCOPE_SKIP_POSTGRES").is_ok_and(|asked| asked == "1") {
            skipped("MNEMOSCOPE_SKIP_POSTGRES=1");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("mnemoscope-two-").tempdir_in("/tmp").expect("a folder");
        let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        std::fs::set_permissions(folder.path(), mode).expect("its mode");
        let primary = OwnServer::start(&["start"], folder.path().join("a"), None);
        let at_primary =
            |words: &[&str]| run(folder.path(), &[&["-d", &primary.url, "--layout", "mnemoscope"], words].concat());
        done(&at_primary(&["migrate", "--apply"]));
        primary.run(
            "INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES \
             ('e-1', 'a', 'ann', 'first', '2026-01-01Z'), ('e-2', 'a', 'bob', 'second', '2026-01-02Z')",
        );
        let standby = OwnServer::start(&["standby"], folder.path().join("b"), Some(&primary));
        let profile = format!("[profile.memory]\nwrite = \"{}\"\nread = \"{}\"\n", primary.url, standby.url);
        std::fs::write(folder.path().join("config.toml"), profile).expect("the settings");
        standby.follow(&primary);
        Some(Pair { standby, primary, folder })
    }

    fn run(&self, words: &[&str]) -> Output {
        run(self.folder.path(), words)
    }

    /// Titles of episodes, oldest first.
    fn titles(&self, database: &str) -> Vec<Value> {
        let listed = done(&self.run(&["-d", database, "list", "episode", "--order", "started_at"]));
        listed["rows"].as_array().expect("rows").iter().map(|row| row["title"].clone()).collect()
    }
}

fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.env_remove("DATABASE_URL").env_remove("MNEMOSCOPE_DATABASE");
    command.env("MNEMOSCOPE_CONFIG", folder.join("config.toml")).env("MNEMOSCOPE_STATE", folder.join("state"));
    command.args(words).output().expect("the program runs")
}

fn done(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn rows_are_looked_at_on_the_standby_and_changed_on_the_primary() {
    let Some(pair) = Pair::new() else { return };
    pair.standby.run("SELECT pg_wal_replay_pause()");
    done(&pair.run(&["-d", "memory", "edit", "episode", "e-1", "title=third", "--apply"]));
    assert_eq!(pair.titles(&pair.primary.url), ["third", "second"]);
    assert_eq!(pair.titles("memory"), ["first", "second"], "the standby stands still");
    let seqs = |database: &str| done(&pair.run(&["-d", database, "list", "audit_entry"]))["rows"].clone();
    assert_eq!(seqs("memory"), seqs(&pair.primary.url), "the trail is that of the primary");
    let exported = |database: &str| pair.run(&["-d", database, "export", "audit_entry"]).stdout;
    assert_eq!(exported("memory"), exported(&pair.primary.url));
    let table = |database: &str| done(&pair.run(&["-d", database, "table", "memory_audit"]))["rows"].clone();
    assert_eq!(table("memory"), table(&pair.primary.url));
    let status = done(&pair.run(&["-d", "memory", "status"]));
    assert!(status["database"]["notes"].to_string().contains("rows are read from postgres://"), "{status:#}");
    // What is planned next sees the change, and the trail is whole: both are read from the primary.
    let plan = done(&pair.run(&["-d", "memory", "edit", "episode", "e-1", "title=fourth"]));
    assert_eq!(plan["changes"][0]["before"]["title"], "third");
    done(&pair.run(&["-d", "memory", "audit", "verify"]));
    pair.standby.run("SELECT pg_wal_replay_resume()");
    pair.standby.follow(&pair.primary);
    assert_eq!(pair.titles("memory"), ["third", "second"]);
    let stopped = Command::new(SCRIPT).arg("stop").arg(&pair.standby.folder).output().expect("the script runs");
    assert!(stopped.status.success());
    let notes = done(&pair.run(&["-d", "memory", "status"]))["database"]["notes"].to_string();
    assert!(notes.contains("rows cannot be looked at") && !notes.contains("may lag behind"), "{notes}");
}

#[test]
fn a_standby_of_another_database_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |write: &str, read: &str| {
        let profile = format!("[profile.memory]\nwrite = \"{write}\"\nread = \"{read}\"\n");
        std::fs::write(folder.path().join("config.toml"), profile).expect("the settings");
        let told = run(folder.path(), &["-d", "memory", "list", "episode"]);
        let words = String::from_utf8_lossy(&told.stderr).into_owned();
        assert_eq!((told.status.code(), words.contains("check `read`")), (Some(1), true), "{words}");
        let notes = done(&run(folder.path(), &["-d", "memory", "status"]))["database"]["notes"].to_string();
        assert!(notes.contains("rows cannot be looked at") && notes.contains("check `read`"), "{notes}");
        assert!(!notes.contains("may lag behind"), "{notes}");
    };
    let demos = ["a.db", "b.db"].map(|name| folder.path().join(name).display().to_string());
    for demo in &demos {
        assert!(run(folder.path(), &["demo", demo, "--episodes", "20", "--no-console"]).status.success());
    }
    refused(&demos[0], &demos[1]);
    let (Some(one), Some(other)) = (Database::fresh(), Database::fresh()) else { return };
    refused(one.url(), other.url());
    refused(&demos[0], other.url());
}

#[test]
fn a_console_waits_for_what_it_changed_and_without_the_primary_nothing_is_changed() {
    let Some(pair) = Pair::new() else { return };
    let opened = |standby: &str| {
        let options = OpenOptions { replica: Some(Target::parse(standby)), ..OpenOptions::default() };
        block_on(Store::open(&Target::parse(&pair.primary.url), &options)).map(std::sync::Arc::new)
    };
    let store = opened(&pair.standby.url).expect("both servers");
    pair.primary.run("UPDATE episodes SET title = 'third' WHERE id = 'e-1'");
    let rows = block_on(async {
        store.wait_for_standby().await;
        store.looking().page(&Query::new(Entity::Episode)).await.expect("a page").rows
    });
    assert!(rows.iter().any(|row| row.text("title") == Some("third")), "{rows:?}");
    // What the console lists of the trail is that of the primary, however far behind the standby is.
    pair.standby.run("SELECT pg_wal_replay_pause()");
    done(&pair.run(&["-d", "memory", "edit", "episode", "e-1", "title=fourth", "--apply"]));
    let entries = |store: &std::sync::Arc<Store>| {
        block_on(store.page(&Query::new(Entity::AuditEntry))).expect("a page").rows.len()
    };
    assert_eq!(entries(&store.looking_at(Entity::AuditEntry)), entries(&store));
    assert!(entries(&store.looking()) < entries(&store), "the standby stands still");
    for (table, is_primary) in [("public.memory_audit", true), ("memory_audit_head", true), ("episodes", false)] {
        assert_eq!(std::sync::Arc::ptr_eq(&store.looking_into(table), &store), is_primary, "{table}");
    }
    pair.standby.run("SELECT pg_wal_replay_resume()");
    // Another server is no standby of this one.
    let Some(other) = Database::fresh() else { return };
    let refused = opened(other.url()).expect_err("another server").to_string();
    assert!(refused.contains("does not follow"), "{refused}");
    drop(store);
    pair.standby.follow(&pair.primary);
    let stopped = Command::new(SCRIPT).arg("stop").arg(&pair.primary.folder).output().expect("the script runs");
    assert!(stopped.status.success());
    assert_eq!(pair.titles("memory"), ["fourth", "second"]);
    let refused = pair.run(&["-d", "memory", "edit", "episode", "e-1", "title=fifth", "--apply"]);
    assert_eq!(refused.status.code(), Some(1), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn tables_that_a_standby_cannot_read_are_left_out_and_named() {
    let Some(pair) = Pair::new() else { return };
    pair.primary.run(
        "INSERT INTO agent_feedback (id, episode_id, user_id, kind) VALUES ('f-1', 'e-1', 'cat', 'thumbs_up'); \
         ALTER TABLE agent_feedback SET UNLOGGED; CREATE VIEW said AS SELECT * FROM agent_feedback",
    );
    pair.standby.follow(&pair.primary);
    let ask = |words: &[&str]| pair.run(&[&["-d", &pair.standby.url, "--format", "json"], words].concat());
    let listed = ask(&["list", "subject", "--order", "id"]);
    let ids: Vec<Value> = done(&listed)["rows"].as_array().expect("rows").iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["ann", "bob"]);
    assert!(String::from_utf8_lossy(&listed.stderr).contains("left out: agent_feedback"), "{listed:?}");
    let status = done(&ask(&["status"])).to_string();
    assert!(status.contains("a standby cannot read agent_feedback") && status.contains("open the primary"), "{status}");
    for words in
        [&["show", "episode", "e-1"][..], &["find", "first"], &["findings"], &["tables"], &["export", "episode"]]
    {
        let answer = ask(words);
        assert!(answer.status.success(), "{words:?}: {}", String::from_utf8_lossy(&answer.stderr));
    }
    for words in [&["list", "feedback"][..], &["table", "agent_feedback"], &["table", "said"]] {
        let refused = ask(words);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(5) && said.contains("unlogged"), "{words:?}: {said}");
    }
}
