//! The native layout distributed by owner: hash-partitioned as docs/scale.md says, it gives the answers that it gives as it
//! is, and a list of one person's rows touches one partition, as the server counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use mnemoscope::memory::Entity;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use crate::support::fixtures::{Chain, Context, Fixture};
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

fn most_frequent_person(url: &str, table: &str) -> String {
    block_on(async {
        let mut link = PgConnection::connect(url).await.expect("the server");
        let first = format!("SELECT user_id FROM {table} GROUP BY user_id ORDER BY count(*) DESC, user_id LIMIT 1");
        sqlx::query_scalar(AssertSqlSafe(first)).fetch_one(&mut link).await.expect("a person")
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

/// Reads with SQL what the distributed tables hold: ids, and contexts of some episodes, with their chains but for cycles.
pub async fn stated(url: &str) -> Fixture {
    let mut link = PgConnection::connect(url).await.expect("the server");
    let mut fixture = Fixture::default();
    for (entity, table) in [
        ("episode", "episodes"),
        ("canvas_event", "canvas_audit"),
        ("feedback", "agent_feedback"),
        ("memory", "memories"),
        ("profile", "agent_memory_profiles"),
        ("case", "agent_memory_cases"),
        ("access", "memory_access"),
    ] {
        fixture.rows.insert(entity, ids(&mut link, &format!("SELECT id FROM {table}"), "").await.into_iter().collect());
    }
    let some = "SELECT id FROM episodes WHERE canvas_ids <> '[]' OR feedback_ids <> '[]' OR parent_id IS NOT NULL ORDER BY id LIMIT 40";
    for id in ids(&mut link, some, "").await {
        let mut named = async |sql: &str| -> Vec<&'static str> {
            ids(&mut link, sql, &id).await.into_iter().map(|id| &*id.leak()).collect()
        };
        let canvas = named(&linked("canvas_audit", "canvas_ids")).await;
        let feedback = named(&linked("agent_feedback", "feedback_ids")).await;
        let mut dangling = named(&absent("canvas_audit", "canvas_ids")).await;
        dangling.extend(named(&absent("agent_feedback", "feedback_ids")).await);
        let up = "WITH RECURSIVE up AS (SELECT id, parent_id, 0 AS n FROM episodes WHERE id = $1 UNION ALL \
             SELECT p.id, p.parent_id, n + 1 FROM up JOIN episodes p ON p.id = up.parent_id WHERE n < 50)";
        let chain = named(&format!("{up} SELECT id FROM up ORDER BY n DESC")).await;
        let children = named("SELECT id FROM episodes WHERE parent_id = $1").await;
        let above =
            named(&format!("{up} SELECT parent_id FROM up WHERE parent_id IS NOT NULL ORDER BY n DESC LIMIT 1")).await;
        let episode: &'static str = id.leak();
        fixture.contexts.push(Context { episode, canvas, feedback, dangling });
        if chain.len() < 50 {
            let missing_parent = above.first().filter(|id| !chain.contains(id)).copied();
            fixture.chains.push(Chain { episode, ids: chain, children, cycle: false, missing_parent });
        }
    }
    fixture
}

/// The rows of a table that an episode names in a list, or that name it.
fn linked(table: &str, list: &str) -> String {
    format!(
        "SELECT r.id FROM {table} r, episodes e WHERE e.id = $1 AND (r.episode_id = e.id OR e.{list} ? r.id) \
         ORDER BY r.created_at, r.id"
    )
}

/// The ids of a list of an episode that no row of a table has.
fn absent(table: &str, list: &str) -> String {
    format!(
        "SELECT n FROM episodes e, jsonb_array_elements_text(CASE jsonb_typeof(e.{list}) WHEN 'array' THEN e.{list} END) n \
         WHERE e.id = $1 AND NOT EXISTS (SELECT 1 FROM {table} r WHERE r.id = n)"
    )
}

async fn ids(link: &mut PgConnection, sql: &str, of: &str) -> Vec<String> {
    let mut query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
    if !of.is_empty() {
        query = query.bind(of.to_owned());
    }
    query.fetch_all(link).await.expect("the ids")
}

/// The demo in a database as it is, and in a copy that is distributed by owner. Rows of nobody are left out of both.
pub fn both(folder: &Path, episodes: &str) -> Option<(Database, Database)> {
    let whole = Database::fresh()?;
    let demo = folder.join("demo.db").display().to_string();
    assert!(run(folder, &["demo", &demo, "--no-console", "--episodes", episodes]).status.success());
    done(folder, &["-d", whole.url(), "--layout", "mnemoscope", "migrate", "--apply"]);
    // A few of its awkward rows hold what PostgreSQL refuses.
    assert_eq!(run(folder, &["copy", "--from", &demo, "--to", whole.url(), "--apply"]).status.code(), Some(6));
    for change in [
        "INSERT INTO memory_access (id, user_id, created_at) SELECT 'access-1', min(user_id), '2026-01-01Z' FROM episodes",
        "UPDATE episodes SET feedback_ids = feedback_ids || '[\"gone\"]' WHERE id = (SELECT min(id) FROM episodes)",
        "UPDATE episodes e SET parent_id = above FROM (SELECT id, coalesce(lag(id) OVER (ORDER BY id), 'gone') AS above \
         FROM episodes ORDER BY id LIMIT 3) c WHERE e.id = c.id",
    ] {
        statements(whole.url(), change);
    }
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
    let Some((whole, distributed)) = both(folder.path(), "120") else { return };
    let entities = Entity::ALL.iter().filter(|entity| **entity != Entity::AuditEntry);
    let lists = entities.map(|entity| format!("list {} --limit 1000", entity.name()));
    let others =
        ["recall invoice --ranking boosted", "recall invoice --ranking cases", "replay billing", "find refund"];
    for asked in lists.chain(others.map(str::to_owned)) {
        let words = |url| [&["-d", url][..], &asked.split(' ').collect::<Vec<_>>()].concat();
        let told = |url| {
            let output = run(folder.path(), &words(url));
            assert!(output.status.success(), "{asked}: {}", String::from_utf8_lossy(&output.stderr));
            // Scores of a recall are of the moment.
            let told = String::from_utf8(output.stdout).expect("text");
            let is_told = |line: &&str| asked.starts_with("list") || line.contains("\"id\"");
            told.lines().filter(is_told).collect::<Vec<_>>().join("\n")
        };
        let (as_it_is, by_owner) = (told(whole.url()), told(distributed.url()));
        assert!(as_it_is.contains("\"id\"") || as_it_is.contains("\"episode_id\""), "{asked}: {as_it_is}");
        assert!(as_it_is == by_owner, "{asked}");
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
fn what_is_asked_about_one_person_touches_one_partition() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((whole, distributed)) = both(folder.path(), "120") else { return };
    let url = distributed.url();
    for (table, words) in [
        ("episodes", "list episode --where user_id=PERSON"),
        ("episodes", "list episode --where user_id=PERSON --where decay_score>=0 --order utility"),
        ("canvas_audit", "list canvas_event --where user_id=PERSON"),
        ("agent_feedback", "list feedback --where user_id=PERSON"),
        ("memories", "list memory --where user_id=PERSON"),
        ("agent_memory_cases", "list case --where user_id=PERSON"),
        ("memory_access", "list access --where user_id=PERSON"),
        ("episodes", "recall invoice --ranking boosted --user PERSON"),
        ("episodes", "context invoice --ranking boosted --user PERSON"),
        ("agent_memory_cases", "recall September --ranking cases --user PERSON"),
        ("episodes", "recall invoice --ranking proven --user PERSON"),
        ("memories", "context invoice --ranking proven --user PERSON"),
    ] {
        // What was of use to others counts.
        let expected = if words.contains("proven") { PARTITIONS } else { 1 };
        // Where a person has no rows, other people's are looked at, to suggest a name.
        let person = most_frequent_person(whole.url(), table);
        let words: Vec<String> = words.split(' ').map(|word| word.replace("PERSON", &person)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
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
            if touched.len() >= expected || began.elapsed() > Duration::from_secs(20) {
                assert_eq!(now.keys().filter(|name| of_table(name)).count(), PARTITIONS);
                break touched;
            }
        };
        assert_eq!(touched.len(), expected, "{words:?} touched {touched:?}");
    }
}
