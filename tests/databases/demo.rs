//! The demo database: whole or not there, the same for a seed, coherent where it is ordinary and awkward where it says so.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use mnemoscope::demo::{DemoOptions, DemoProgress, Summary, awkward_names, build};
use mnemoscope::memory::feedback::{aggregate, score};
use mnemoscope::memory::time::canonical;
use mnemoscope::memory::utility::{START, replay};
use mnemoscope::store::bulk::{BulkBatch, BulkError, BulkTable, BulkValue, ExistingTarget, Loader, NATIVE_SCHEMA};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Connection, Row};
use tempfile::TempDir;

async fn made(folder: &TempDir, options: &DemoOptions) -> (SqliteConnection, Summary) {
    let path = folder.path().join("demo.db");
    let summary = build(&path, options, |_| ()).await.unwrap();
    (open(&path).await, summary)
}

async fn open(path: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(path).foreign_keys(false);
    SqliteConnection::connect_with(&options).await.unwrap()
}

async fn rows(database: &mut SqliteConnection, sql: &str) -> Vec<SqliteRow> {
    sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(database).await.unwrap()
}

async fn text(database: &mut SqliteConnection, sql: &str) -> Option<String> {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(database).await.unwrap()
}

async fn number(database: &mut SqliteConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(database).await.unwrap()
}

/// Reads an SQL expression from the awkward episode of that name, as text.
async fn odd(database: &mut SqliteConnection, name: &str, expression: &str) -> Option<String> {
    let tag = format!("%\"awkward:{name}\"%");
    let sql = format!("SELECT CAST({expression} AS TEXT) FROM episodes e WHERE e.tags LIKE ?");
    sqlx::query_scalar(AssertSqlSafe(sql)).bind(tag).fetch_one(database).await.unwrap()
}

/// Every row of every table as one text.
async fn dump(database: &mut SqliteConnection) -> BTreeMap<String, String> {
    let mut dump = BTreeMap::new();
    for table in rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'").await {
        let name: String = table.get(0);
        let columns = rows(database, &format!("SELECT name FROM pragma_table_info('{name}')")).await;
        let columns: Vec<String> = columns.iter().map(|c| format!("quote(\"{}\")", c.get::<String, _>(0))).collect();
        let sql = format!("SELECT hex(group_concat({}, '|')) FROM \"{name}\"", columns.join(" || ',' || "));
        dump.insert(name.clone(), text(database, &sql).await.unwrap_or_default());
    }
    dump
}

#[tokio::test]
async fn a_seed_tells_one_story() {
    let options = DemoOptions { episodes: 250, seed: 7, ..DemoOptions::default() };
    let mut dumps = Vec::new();
    for seed in [7, 7, 8] {
        let folder = TempDir::new().unwrap();
        let (mut database, _) = made(&folder, &DemoOptions { seed, ..options }).await;
        dumps.push(dump(&mut database).await);
    }
    assert_eq!(dumps[0], dumps[1]);
    for (table, rows) in &dumps[0] {
        assert_ne!(dumps[2][table], *rows, "{table} does not depend on the seed");
    }
}

#[tokio::test]
async fn the_newest_episodes_have_the_vectors_that_are_asked_for() {
    let folder = TempDir::new().unwrap();
    let (mut database, _) = made(&folder, &DemoOptions { episodes: 60, vectors: 25, ..DemoOptions::default() }).await;
    let with = "SELECT count(*) FROM episode_embeddings";
    assert_eq!(number(&mut database, with).await, 25);
    let older = "SELECT count(*) FROM episodes e WHERE e.rowid <= (SELECT max(rowid) - 25 FROM episodes) \
                 AND e.id IN (SELECT episode_id FROM episode_embeddings)";
    assert_eq!(number(&mut database, older).await, 0);
}

#[tokio::test]
async fn every_table_has_rows_and_the_file_is_sound() {
    let folder = TempDir::new().unwrap();
    let options = DemoOptions { episodes: 1_500, ..DemoOptions::default() };
    let mut indexed = (0, 0);
    let path = folder.path().join("demo.db");
    let summary = build(&path, &options, |progress| {
        if let DemoProgress::Indexes { done, of } = progress {
            indexed = (done, of);
        }
    })
    .await
    .unwrap();
    assert!(indexed.0 == indexed.1 && indexed.1 > 20, "{indexed:?}");
    assert_eq!(summary.bytes, std::fs::metadata(&path).unwrap().len());

    let mut database = open(&path).await;
    for (table, count) in &summary.rows {
        assert_eq!(number(&mut database, &format!("SELECT count(*) FROM {table}")).await as u64, *count, "{table}");
    }
    for table in rows(&mut database, "SELECT name FROM sqlite_master WHERE type = 'table'").await {
        let name: String = table.get(0);
        assert!(number(&mut database, &format!("SELECT count(*) FROM {name}")).await > 0, "{name} is empty");
    }
    assert_eq!(text(&mut database, "PRAGMA integrity_check").await.as_deref(), Some("ok"));
    assert_eq!(text(&mut database, "PRAGMA journal_mode").await.as_deref(), Some("wal"));
    assert!(rows(&mut database, "PRAGMA foreign_key_check").await.is_empty());
    let built = number(&mut database, "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND sql NOT NULL").await;
    assert_eq!(built as usize, indexed.1);
}

#[tokio::test]
async fn there_are_as_many_episodes_as_were_asked_for() {
    for episodes in [0, 1, 60, 333] {
        let folder = TempDir::new().unwrap();
        let (mut database, summary) = made(&folder, &DemoOptions { episodes, ..DemoOptions::default() }).await;
        assert_eq!(number(&mut database, "SELECT count(*) FROM episodes").await as u64, episodes);
        assert!(summary.rows.contains(&("episodes", episodes)));
    }
}

#[tokio::test]
async fn what_hangs_on_episodes_grows_with_them() {
    let mut shares = Vec::new();
    for episodes in [600, 2_400] {
        let folder = TempDir::new().unwrap();
        let (_, summary) = made(&folder, &DemoOptions { episodes, ..DemoOptions::default() }).await;
        let counts: HashMap<&str, u64> = summary.rows.into_iter().collect();
        let per_episode = |table: &str| counts[table] as f64 / episodes as f64;
        shares.push(["episode_segments", "canvas_audit", "agent_feedback", "utility_events"].map(per_episode));
    }
    for (few, many) in shares[0].iter().zip(shares[1]) {
        assert!((0.6..1.6).contains(&(few / many)) && many > 0.3, "{shares:?}");
    }
}

#[tokio::test]
async fn ordinary_episodes_are_coherent() {
    let folder = TempDir::new().unwrap();
    let options = DemoOptions { episodes: 1_200, seed: 3, ..DemoOptions::default() };
    let (mut database, _) = made(&folder, &options).await;
    let ordinary = "FROM episodes WHERE tags NOT LIKE '%awkward%'";

    let mut linked: [HashMap<String, Vec<String>>; 2] = Default::default();
    for (links, table) in linked.iter_mut().zip(["canvas_audit", "agent_feedback"]) {
        for row in rows(&mut database, &format!("SELECT episode_id, id FROM {table} ORDER BY created_at, id")).await {
            let episode: Option<String> = row.get(0);
            links.entry(episode.unwrap_or_default()).or_default().push(row.get(1));
        }
    }
    let mut said: HashMap<String, Vec<f64>> = HashMap::new();
    for row in rows(&mut database, "SELECT episode_id, kind, rating FROM agent_feedback ORDER BY created_at, id").await
    {
        let episode: Option<String> = row.get(0);
        said.entry(episode.unwrap_or_default()).or_default().extend(score(&row.get::<String, _>(1), row.get(2)));
    }
    let mut heard: HashMap<String, Vec<String>> = HashMap::new();
    for row in rows(&mut database, "SELECT episode_id, signal FROM utility_events ORDER BY created_at, id").await {
        heard.entry(row.get(0)).or_default().push(row.get(1));
    }
    let episodes = rows(
        &mut database,
        &format!("SELECT id, canvas_ids, feedback_ids, canvas_action_count, feedback_score, utility {ordinary}"),
    )
    .await;
    assert!(episodes.len() > 1_000);
    for row in &episodes {
        let id: String = row.get(0);
        for (links, column) in linked.iter().zip([1, 2]) {
            let listed: Vec<String> = serde_json::from_str(row.get(column)).unwrap();
            assert_eq!(listed, links.get(&id).cloned().unwrap_or_default(), "{id}");
        }
        assert_eq!(row.get::<i64, _>(3) as usize, linked[0].get(&id).map_or(0, Vec::len), "{id}");
        assert_eq!(row.get::<Option<f64>, _>(4), aggregate(said.get(&id).cloned().unwrap_or_default()), "{id}");
        let words = heard.get(&id).map(Vec::as_slice).unwrap_or_default();
        let replayed = replay(START, words.iter().map(String::as_str)).utility();
        assert!((row.get::<f64, _>(5) - replayed).abs() < 1e-12, "{id}");
    }
    // The awkward rows do the same to someone: the shared canvas is another episode's.
    let feedback_span = "SELECT count(*) FROM agent_feedback f JOIN episodes e ON e.id = f.episode_id
        WHERE f.created_at < e.started_at AND e.tags NOT LIKE '%awkward%'";
    assert_eq!(number(&mut database, feedback_span).await, 0);
}

#[tokio::test]
async fn chains_run_over_days_and_branch() {
    let folder = TempDir::new().unwrap();
    let (mut database, _) = made(&folder, &DemoOptions::default()).await;
    let wrong = "SELECT count(*) FROM episodes c JOIN episodes p ON p.id = c.parent_id
        WHERE c.tags NOT LIKE '%awkward%' AND (p.agent_id <> c.agent_id OR p.topic <> c.topic OR p.user_id <> c.user_id
            OR p.ended_at > c.started_at)";
    assert_eq!(number(&mut database, wrong).await, 0);
    let branching = "SELECT count(*) FROM (SELECT parent_id FROM episodes WHERE tags NOT LIKE '%awkward%'
        GROUP BY parent_id HAVING parent_id IS NOT NULL AND count(*) > 1)";
    assert!(number(&mut database, branching).await > 5);
    let longest = "WITH RECURSIVE chain(id, depth) AS (
            SELECT id, 1 FROM episodes WHERE parent_id IS NULL
            UNION ALL SELECT e.id, depth + 1 FROM episodes e JOIN chain ON e.parent_id = chain.id)
        SELECT max(depth) FROM chain";
    assert!(number(&mut database, longest).await >= 20);
    let leak = "WITH RECURSIVE chain(id, depth, began) AS (
            SELECT id, 1, started_at FROM episodes WHERE parent_id IS NULL AND topic = 'debugging memory leak'
            UNION ALL SELECT e.id, depth + 1, began FROM episodes e JOIN chain ON e.parent_id = chain.id)
        SELECT count(*) FROM chain JOIN episodes USING (id)
        WHERE depth >= 4 AND julianday(started_at) - julianday(began) BETWEEN 1 AND 6";
    assert!(number(&mut database, leak).await > 0, "no leak is hunted for days");
}

#[tokio::test]
async fn times_have_one_spelling_and_end_at_the_anchor() {
    let folder = TempDir::new().unwrap();
    let (mut database, _) = made(&folder, &DemoOptions { episodes: 900, ..DemoOptions::default() }).await;
    let last = canonical(&DemoOptions::default().anchor.to_rfc3339()).unwrap();
    for (table, column) in [
        ("episodes", "started_at"),
        ("episodes", "archived_at"),
        ("episode_segments", "created_at"),
        ("canvas_audit", "created_at"),
        ("agent_feedback", "created_at"),
        ("utility_events", "created_at"),
        ("memories", "created_at"),
        ("agent_memory_cases", "created_at"),
        ("agent_memory_profiles", "updated_at"),
        ("agent_memory_policies", "trained_at"),
        ("agent_memory_audit", "created_at"),
        ("workflow_events", "created_at"),
        ("memory_access", "created_at"),
        ("agents", "last_seen"),
    ] {
        let sql = format!("SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL");
        let times: Vec<String> = rows(&mut database, &sql).await.iter().map(|row| row.get(0)).collect();
        let odd = times.iter().filter(|time| canonical(time).as_ref() != Some(time)).count();
        assert!(odd <= 3, "{table}.{column} has {odd} times in another spelling");
        let usual = times.iter().filter(|time| canonical(time).as_ref() == Some(time));
        assert!(usual.max().is_some_and(|time| *time <= last), "{table}.{column} has times after the anchor");
    }
}

#[tokio::test]
async fn every_awkward_row_is_there_once() {
    let folder = TempDir::new().unwrap();
    let (mut database, _) = made(&folder, &DemoOptions::default()).await;
    let tagged = rows(&mut database, "SELECT tags FROM episodes WHERE tags LIKE '%awkward%'").await;
    let tagged: Vec<String> = tagged.iter().map(|row| row.get::<String, _>(0)).collect();
    let names: HashSet<&str> = awkward_names().collect();
    assert_eq!(names.len(), awkward_names().count());
    assert_eq!(tagged.len(), names.len());
    for name in names {
        assert!(tagged.contains(&format!("[\"awkward\",\"awkward:{name}\"]")), "{name}");
    }
}

#[tokio::test]
async fn awkward_rows_are_what_they_say() {
    let folder = TempDir::new().unwrap();
    let (mut database, _) = made(&folder, &DemoOptions::default()).await;
    let database = &mut database;
    for (name, expression, expected) in [
        ("ansi_sgr", "instr(title, char(27, 91)) > 0", "1"),
        ("nul_byte", "instr(CAST(title AS BLOB), x'00') > 0", "1"),
        ("invalid_utf8", "typeof(title) || substr(hex(CAST(title AS BLOB)), 7, 6)", "textE920FF"),
        ("text_200_kb", "length(detail)", "200000"),
        ("text_2_mb", "length(detail)", "2000000"),
        ("nan_json", "json_valid(metadata)", "0"),
        ("list_blob", "typeof(canvas_ids)", "blob"),
        ("list_sql_null", "canvas_ids IS NULL AND feedback_ids IS NULL", "1"),
        ("list_json_null", "canvas_ids", "null"),
        ("list_python", "substr(canvas_ids, 1, 2)", "['"),
        ("text_in_real", "typeof(importance)", "text"),
        ("null_started", "started_at IS NULL", "1"),
        ("time_naive", "substr(ended_at, 11, 1) || length(ended_at)", " 19"),
        ("self_parent", "parent_id = id", "1"),
        ("missing_parent", "NOT EXISTS (SELECT 1 FROM episodes p WHERE p.id = e.parent_id)", "1"),
        ("younger_parent", "(SELECT p.started_at > e.started_at FROM episodes p WHERE p.id = e.parent_id)", "1"),
        ("other_agents_parent", "(SELECT p.agent_id <> e.agent_id FROM episodes p WHERE p.id = e.parent_id)", "1"),
        (
            "cycle_first",
            "(SELECT p.parent_id = e.id AND p.tags LIKE '%cycle_second%' FROM episodes p WHERE p.id = e.parent_id)",
            "1",
        ),
        ("missing_agent", "NOT EXISTS (SELECT 1 FROM agents a WHERE a.id = e.agent_id)", "1"),
        ("listed_only", "(SELECT count(*) FROM canvas_audit c WHERE c.episode_id = e.id)", "0"),
        ("back_link_only", "(SELECT count(*) > 0 FROM canvas_audit c WHERE c.episode_id = e.id)", "1"),
        ("rating_out_of_range", "(SELECT max(f.rating) FROM agent_feedback f WHERE f.episode_id = e.id)", "9"),
        ("many_segments", "(SELECT count(*) > 250 FROM episode_segments s WHERE s.episode_id = e.id)", "1"),
        (
            "shared_canvas",
            "(SELECT count(*) FROM json_each(e.canvas_ids) j JOIN canvas_audit c ON c.id = j.value
              WHERE c.episode_id <> e.id)",
            "1",
        ),
    ] {
        assert_eq!(odd(database, name, expression).await.as_deref(), Some(expected), "{name}");
    }
}

#[tokio::test]
async fn hostile_text_is_in_every_kind_of_row_that_holds_text() {
    let folder = TempDir::new().unwrap();
    let (mut database, _) = made(&folder, &DemoOptions::default()).await;
    for (table, column) in [
        ("episodes", "title"),
        ("episodes", "user_id"),
        ("episode_segments", "content"),
        ("canvas_audit", "component_name"),
        ("agent_feedback", "correction"),
        ("utility_events", "reason"),
        ("memories", "text"),
        ("memory_access", "query"),
    ] {
        let sql = format!("SELECT count(*) FROM {table} WHERE instr({column}, char(27)) > 0");
        assert!(number(&mut database, &sql).await > 0, "{table}.{column}");
    }
    for (table, column) in
        [("agent_memory_cases", "prompt"), ("workflow_events", "data"), ("agent_memory_audit", "payload")]
    {
        let sql = format!("SELECT count(*) FROM {table} WHERE {column} LIKE '%\\u001b%'");
        assert!(number(&mut database, &sql).await > 0, "{table}.{column}");
    }
}

#[tokio::test]
async fn what_is_there_already_is_kept_unless_it_may_be_replaced() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("demo.db");
    let options = DemoOptions { episodes: 20, ..DemoOptions::default() };
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(build(&path, &options, |_| ()).await, Err(BulkError::Exists(found)) if found == path));
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");

    let journal = folder.path().join("demo.db-wal");
    std::fs::write(&journal, "pages of the old database").unwrap();
    build(&path, &DemoOptions { existing: ExistingTarget::Replace, ..options }, |_| ()).await.unwrap();
    assert!(!journal.exists());
    assert_eq!(number(&mut open(&path).await, "SELECT count(*) FROM episodes").await, 20);
}

#[tokio::test]
async fn an_empty_file_may_be_filled_but_not_beside_a_journal() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("demo.db");
    let options = DemoOptions { episodes: 20, ..DemoOptions::default() };
    std::fs::write(&path, "").unwrap();
    let journal = folder.path().join("demo.db-wal");
    std::fs::write(&journal, "pages of a database that is gone").unwrap();
    assert!(matches!(build(&path, &options, |_| ()).await, Err(BulkError::Exists(found)) if found == journal));

    std::fs::remove_file(&journal).unwrap();
    build(&path, &options, |_| ()).await.unwrap();
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["demo.db"]);
}

#[tokio::test]
async fn a_file_that_fails_or_is_given_up_leaves_nothing() {
    static AGENTS: BulkTable = BulkTable { name: "agents", columns: &["id"] };
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("demo.db");
    let left = || std::fs::read_dir(folder.path()).unwrap().count();

    let mut loader = Loader::create(&path, &NATIVE_SCHEMA, ExistingTarget::Refuse).await.unwrap();
    let twice = || BulkBatch { table: &AGENTS, values: vec![BulkValue::Text("a".into()), BulkValue::Text("a".into())] };
    assert!(matches!(loader.insert(twice()).await, Err(BulkError::Database(_))));
    assert!(left() > 0);
    drop(loader);
    assert_eq!(left(), 0);

    let nowhere = folder.path().join("missing").join("demo.db");
    assert!(matches!(build(&nowhere, &DemoOptions::default(), |_| ()).await, Err(BulkError::File { .. })));
    assert!(matches!(build(folder.path(), &DemoOptions::default(), |_| ()).await, Err(BulkError::NotAFile(_))));
    assert_eq!(left(), 0);
}
