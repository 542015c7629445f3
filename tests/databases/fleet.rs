//! One person erased from several databases by one command: found in each by what another knows, each with its own status,
//! and one that cannot be reached makes the whole incomplete until it can.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_sqlite};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection};

struct Fleet {
    folder: tempfile::TempDir,
}

impl Fleet {
    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, Value, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        command.args(["--format", "json"]).args(arguments).stdin(Stdio::null());
        let done = command.env("MNEMOSCOPE_STATE", self.path("state")).output().expect("the program");
        let words = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), serde_json::from_slice(&done.stdout).unwrap_or_default(), words)
    }

    /// A database with our tables in it, in which the person has another id.
    async fn add(&self, name: &str, layout: Layout, id: &str) {
        let path = self.path(name);
        build_sqlite(layout, Path::new(&path)).await;
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).foreign_keys(false);
        let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
        let columns =
            "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'";
        for row in sqlx::query(columns).fetch_all(&mut link).await.expect("columns") {
            let (table, column): (String, String) = (row.get(0), row.get(1));
            let sql = format!("UPDATE \"{table}\" SET \"{column}\" = '{id}' WHERE \"{column}\" = 'user-ana'");
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("another id");
        }
        link.close().await.expect("closed");
        assert_eq!(self.run(&["-d", &path, "migrate", "--apply"]).0, Some(0));
    }
}

fn statuses(answer: &Value) -> Vec<(&str, &str)> {
    let entries = answer["databases"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry["label"].as_str()?, entry["status"].as_str()?))).collect()
}

#[test]
fn a_person_is_erased_from_every_database_by_one_command() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    block_on(async {
        fleet.add("a.db", Layout::Atom, "user-ana").await;
        fleet.add("b.db", Layout::Atom2026, "person-77").await;
        fleet.add("d.db", Layout::Pyworkflow, "nobody-here").await;
    });
    let file = fleet.path("fleet.toml");
    let text = "[[database]]\nurl = \"a.db\"\nlabel = \"a\"\n[[database]]\nurl = \"b.db\"\nlabel = \"b\"\n\
        [[database]]\nurl = \"c.db\"\nlabel = \"c\"\n[[database]]\nurl = \"d.db\"\nlabel = \"d\"\n";
    std::fs::write(&file, text).expect("the file");
    let asked = ["user-ana", "--fleet", &file, "--account", "erase", "--mentions", "redact"];
    let purge = |more: &[&str]| fleet.run(&[&["purge"][..], &asked, more].concat());

    let (code, plan, words) = purge(&[]);
    assert_eq!(statuses(&plan), [("a", "planned"), ("b", "planned"), ("c", "unreachable"), ("d", "not found")]);
    assert_eq!((code, plan["status"].as_str()), (Some(6), Some("incomplete")), "{words}");
    assert!(words.contains("c is unreachable") && words.contains("c.db"), "{words}");
    assert!(plan["counts"].as_object().is_some_and(|counts| counts.keys().any(|key| key.starts_with("b/"))));

    // A hold in one database holds in all of them.
    let b = fleet.path("b.db");
    assert_eq!(fleet.run(&["-d", &b, "hold", "person-77", "--apply"]).0, Some(0));
    let (code, _, words) = purge(&["--apply"]);
    assert!(code == Some(5) && words.contains("nothing was erased anywhere"), "{code:?} {words}");
    assert_eq!(fleet.run(&["-d", &b, "unhold", "person-77", "--apply"]).0, Some(0));

    let (code, receipt, words) = purge(&["--apply"]);
    assert_eq!(statuses(&receipt), [("a", "verified"), ("b", "verified"), ("c", "unreachable"), ("d", "not found")]);
    assert_eq!((code, receipt["status"].as_str()), (Some(6), Some("incomplete")), "{words}");
    for (table, count) in plan["counts"].as_object().expect("counts") {
        assert_eq!(&receipt["counts"][table], count, "{table}");
    }
    let text = receipt.to_string();
    assert!(!text.contains("user-ana") && !text.contains("person-77") && !text.contains("ana.ruiz"), "{text}");
    assert_eq!(receipt["verification"]["bytes"]["hits"], 0);

    // The one that was missing comes back.
    block_on(fleet.add("c.db", Layout::Atom, "user-ana"));
    let (code, receipt, words) = purge(&["--resume"]);
    assert_eq!(statuses(&receipt), [("a", "not found"), ("b", "not found"), ("c", "verified"), ("d", "not found")]);
    assert_eq!((code, receipt["status"].as_str()), (Some(0), Some("verified")), "{words}");
    let id = receipt["receipt_id"].as_str().expect("an id");
    let (code, answer, words) = fleet.run(&["purge", "verify", id, "--fleet", &file]);
    assert_eq!((code, answer["status"].as_str()), (Some(0), Some("verified")), "{words}");
    let (code, _, words) = purge(&[]);
    assert_eq!(code, Some(3), "{words}");
}

#[test]
fn a_file_that_names_no_fleet_is_refused_with_its_line() {
    let fleet = Fleet { folder: tempfile::tempdir().expect("a folder") };
    let file = fleet.path("fleet.toml");
    let purge = || fleet.run(&["purge", "somebody", "--fleet", &file]);
    assert_eq!(purge().0, Some(3), "there is no such file");
    std::fs::write(&file, "[[database]]\nlabel = \"x\"\n").expect("the file");
    let (code, _, words) = purge();
    assert!(code == Some(2) && words.contains("fleet.toml:1") && words.contains("url"), "{code:?} {words}");
}
