//! The native layout distributed by owner: hash-partitioned as docs/scale.md says, it gives the answers that it gives as it
//! is, and a question about one person touches one partition, as the server counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use crate::support::postgres::Database;
use crate::support::{block_on, program};

const BOOK: &str = include_str!("../../docs/scale.md");
/// Partitions of each table, as the book makes them.
const PARTITIONS: usize = 8;
/// Scans of each partition so far.
const SCANS: &str = "SELECT relname::text, (seq_scan + coalesce(idx_scan, 0))::bigint FROM pg_stat_user_tables \
     WHERE relname ~ '_[0-7]$'";

fn statements(url: &str, sql: &str) {
    block_on(async {
        let mut link = PgConnection::connect(url).await.expect("the server");
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut link).await.expect("the statements");
    });
}

fn scans(url: &str) -> BTreeMap<String, i64> {
    block_on(async {
        let mut link = PgConnection::connect(url).await.expect("the server");
        let rows = sqlx::query(SCANS).fetch_all(&mut link).await.expect("the counts");
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    })
}

fn run(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.env("MNEMOSCOPE_STATE", folder.join("state")).env("MNEMOSCOPE_CONFIG", folder.join("none.toml"));
    command.args(words).output().expect("the program runs")
}

fn done(folder: &Path, words: &[&str]) -> Value {
    let output = run(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The demo in a database as it is, and in a copy that is distributed by owner. Rows of nobody are left out of both.
fn both(folder: &Path) -> Option<(Database, Database)> {
    let whole = Database::fresh()?;
    let demo = folder.join("demo.db").display().to_string();
    assert!(run(folder, &["demo", &demo, "--no-console", "--episodes", "120"]).status.success());
    done(folder, &["-d", whole.url(), "--layout", "mnemoscope", "migrate", "--apply"]);
    done(folder, &["copy", "--from", &demo, "--to", whole.url(), "--apply"]);
    let (_, rest) = BOOK.split_once("```sql\nDO $$").expect("the book says how");
    let script = format!("DO $${}", rest.split_once("```").expect("its end").0);
    let owned =
        ["episodes", "canvas_audit", "agent_feedback", "memories", "agent_memory_profiles", "agent_memory_cases"];
    for table in owned.iter().chain(&["memory_access"]) {
        assert!(script.contains(&format!("'{table}'")), "{table}");
        statements(whole.url(), &format!("DELETE FROM {table} WHERE user_id IS NULL"));
    }
    let distributed = whole.copy();
    statements(distributed.url(), &script);
    Some((whole, distributed))
}

#[test]
fn distributed_by_owner_it_answers_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((whole, distributed)) = both(folder.path()) else { return };
    let entities = [
        "agent",
        "subject",
        "episode",
        "segment",
        "canvas_event",
        "feedback",
        "utility_event",
        "memory",
        "memory_link",
        "profile",
        "case",
        "policy",
        "workflow_event",
        "access",
    ];
    let lists = entities.iter().map(|entity| format!("list {entity} --limit 1000"));
    let others = [
        "insights",
        "recall invoice --ranking boosted",
        "recall invoice --ranking cases",
        "replay billing",
        "find refund",
    ];
    for asked in lists.chain(others.map(str::to_owned)) {
        let words = |url| [&["-d", url][..], &asked.split(' ').collect::<Vec<_>>()].concat();
        let rows = |url| done(folder.path(), &words(url))["rows"].clone();
        assert_eq!(rows(whole.url()), rows(distributed.url()), "{asked}");
    }
    // A change names the row by its whole key, and its undo brings it back.
    let url = distributed.url();
    let episodes = done(folder.path(), &["-d", url, "list", "episode", "--limit", "1"]);
    let id = episodes["rows"][0]["id"].as_str().expect("an id");
    let receipt = done(folder.path(), &["-d", url, "edit", "episode", id, "title=changed", "--apply"]);
    assert_eq!(done(folder.path(), &["-d", url, "show", "episode", id])["episode"]["title"], "changed");
    done(folder.path(), &["-d", url, "undo", &receipt["audit_seq"].to_string(), "--apply"]);
    assert_eq!(done(folder.path(), &["-d", url, "show", "episode", id])["episode"], episodes["rows"][0]);
}

#[test]
fn a_question_about_one_person_touches_one_partition() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((_, distributed)) = both(folder.path()) else { return };
    let url = distributed.url();
    let listed = done(folder.path(), &["-d", url, "list", "episode", "--limit", "1"]);
    let person = listed["rows"][0]["user_id"].as_str().expect("a person");
    let of_person = format!("user_id={person}");
    for (table, words) in [
        ("episodes", vec!["list", "episode", "--where", &of_person]),
        (
            "episodes",
            vec!["list", "episode", "--where", &of_person, "--where", "outcome=failure", "--order", "utility"],
        ),
        ("canvas_audit", vec!["list", "canvas_event", "--where", &of_person]),
        ("agent_feedback", vec!["list", "feedback", "--where", &of_person]),
        ("memories", vec!["list", "memory", "--where", &of_person]),
        ("agent_memory_cases", vec!["list", "case", "--where", &of_person]),
        ("memory_access", vec!["list", "access", "--where", &of_person]),
        ("episodes", vec!["recall", "invoice", "--ranking", "boosted", "--user", person]),
        ("episodes", vec!["recall", "invoice", "--ranking", "similar", "--user", person]),
        ("agent_memory_cases", vec!["recall", "invoice", "--ranking", "cases", "--user", person]),
        ("episodes", vec!["export", "episode", "--where", &of_person]),
    ] {
        let before = scans(url);
        let output = run(folder.path(), &[&["-d", url], &words[..]].concat());
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        // A server counts when the connection ends.
        let began = Instant::now();
        let touched = loop {
            let now = scans(url);
            let of_table = |name: &str| name.strip_prefix(table).is_some_and(|rest| rest.len() == 2);
            let more = |name: &String| of_table(name) && now[name] > before[name];
            let touched: BTreeSet<String> = now.keys().filter(|name| more(name)).cloned().collect();
            if !touched.is_empty() || began.elapsed() > Duration::from_secs(20) {
                assert_eq!(now.keys().filter(|name| of_table(name)).count(), PARTITIONS);
                break touched;
            }
        };
        assert_eq!(touched.len(), 1, "{words:?} touched {touched:?}");
    }
}
