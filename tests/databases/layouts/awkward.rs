//! Stores of agent frameworks that hold what their makers did not foresee, through the command: a bad row never hides the
//! others.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use super::stores::{STORES, listed, made, refused, run, told};
use crate::support::block_on;

/// Entities that a database has, with all of their rows by their ids.
fn everything(database: &Path) -> BTreeMap<String, BTreeMap<String, Value>> {
    let status = told(database, &["status"]);
    let entities = status["layouts"].as_array().expect("layouts").iter().filter_map(|l| l["entities"].as_object());
    let names: Vec<String> = entities.flat_map(|e| e.keys().cloned()).collect();
    let of = |entity: String| {
        let rows = listed(database, &entity, &[]).into_iter().map(|row| (row["id"].to_string(), row)).collect();
        (entity, rows)
    };
    names.into_iter().map(of).collect()
}

/// Adds to each table a row with bytes that are not text in every column that takes any.
fn with_a_row_of_blobs(database: &Path) {
    block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database).foreign_keys(false);
        let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
        let triggers = "SELECT 'DROP TRIGGER \"' || name || '\"' FROM sqlite_master WHERE type = 'trigger'";
        for statement in sqlx::query_scalar::<_, String>(triggers).fetch_all(&mut link).await.expect("triggers") {
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut link).await.expect("dropped");
        }
        let inserts = "SELECT 'INSERT INTO \"' || m.name || '\" VALUES (' || group_concat(
                CASE WHEN c.pk > 0 AND c.type LIKE 'INTEGER' THEN '9999' WHEN c.pk > 0 THEN '''odd''' ELSE 'x''ff00''' END
            ) || ')' FROM sqlite_master m JOIN pragma_table_info(m.name) c
            WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND m.name NOT LIKE '%\\_fts\\_%' ESCAPE '\\'
              AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'memory_embeddings%' GROUP BY m.name";
        for statement in sqlx::query_scalar::<_, String>(inserts).fetch_all(&mut link).await.expect("tables") {
            sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(&mut link).await.expect(&statement);
        }
        link.close().await.expect("closed");
    });
}

#[test]
fn a_row_of_bytes_that_are_no_text_hides_no_other_row() {
    for store in STORES {
        let folder = tempfile::tempdir().expect("a folder");
        let database = made(&folder, store.layout, store.statements);
        let before = everything(&database);
        with_a_row_of_blobs(&database);
        let after = everything(&database);
        for (entity, rows) in &before {
            for (id, row) in rows {
                assert_eq!(after[entity].get(id), Some(row), "{} {entity}", store.layout);
            }
        }
        assert_ne!(before, after, "{}: the row is shown", store.layout);
        told(&database, &["findings"]);
    }
}

#[test]
fn bytes_within_an_object_of_columns_are_its_rows_problem() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "mem0-history").expect("the store");
    let database = made(&folder, "history", store.statements);
    let rows = listed(&database, "audit_entry", &[]);
    run(&database, "UPDATE history SET old_memory = CAST('tea' AS BLOB), role = x'ff00'");
    let spoiled = listed(&database, "audit_entry", &[]);
    assert_eq!(spoiled.len(), rows.len());
    assert!(spoiled.iter().all(|row| row["problems"][0]["column"] == "payload"), "{spoiled:#?}");
    run(&database, "UPDATE history SET role = NULL");
    let row = &listed(&database, "audit_entry", &[])[0];
    assert_eq!((&row["payload"]["old_memory"], &row["problems"]), (&json!("tea"), &Value::Null), "{row:#}");
}

/// Stores of another version: a table without one of its columns, and what is said of it.
const OLDER: &[(&str, &str, &str)] = &[
    ("mem0-history", "history", "role"),
    ("mem0-history", "history", "is_deleted"),
    ("mem0-history", "history", "id"),
    ("mem0-history", "messages", "created_at"),
    ("agno", "agno_memories", "team_id"),
    ("claude-mem", "session_summaries", "notes"),
    ("claude-mem", "user_prompts", "content_session_id"),
    ("langgraph-checkpoints", "checkpoints", "type"),
    ("memori", "memori_conversation", "session_id"),
    ("memori", "memori_entity", "id"),
    ("open-webui", "chat", "archived"),
    ("mcp-memory-service", "memories", "deleted_at"),
];

#[test]
fn a_store_that_lacks_a_column_is_read_without_it_or_says_why_not() {
    for (layout, table, column) in OLDER {
        let folder = tempfile::tempdir().expect("a folder");
        let store = STORES.iter().find(|store| store.layout == *layout).expect("the store");
        let database = made(&folder, layout, store.statements);
        let before = everything(&database);
        without_column(&database, table, column);
        let status = told(&database, &["status"]);
        for (entity, rows) in &before {
            let said = status["capabilities"].as_array().expect("capabilities");
            let said = said.iter().find(|c| c["name"] == entity.as_str()).expect("it is told of");
            if said["reason"].is_null() {
                let after = listed(&database, entity, &[]);
                assert_eq!(after.len(), rows.len(), "{layout} without {table}.{column}: {entity}");
            } else {
                let reason = said["reason"].as_str().unwrap_or_default();
                assert!(reason.contains(column) && said["remedy"].is_string(), "{table}.{column}: {entity}: {said}");
            }
        }
    }
}

#[test]
fn what_an_older_store_has_is_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = |layout| STORES.iter().find(|store| store.layout == layout).expect("the store").statements;
    let history = made(&folder, "history", store("mem0-history"));
    without_column(&history, "history", "role");
    let payload = &listed(&history, "audit_entry", &[])[0]["payload"];
    assert!(payload["new_memory"].is_string() && payload["role"].is_null(), "{payload:#}");
    let coding = made(&folder, "coding", store("claude-mem"));
    let texts = |database: &Path| -> Vec<Value> {
        listed(database, "memory", &["--where", "kind = summary"]).into_iter().map(|row| row["text"].clone()).collect()
    };
    let before = texts(&coding);
    without_column(&coding, "session_summaries", "notes");
    assert!(!before.is_empty() && texts(&coding).iter().all(Value::is_string), "{before:#?}");
}

/// Makes a table again as it was, without one of its columns.
fn without_column(database: &Path, table: &str, column: &str) {
    block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database).foreign_keys(false);
        let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
        let kept = format!(
            "SELECT group_concat('\"' || name || '\"') FROM pragma_table_info('{table}') WHERE name <> '{column}'"
        );
        let kept: String = sqlx::query_scalar(AssertSqlSafe(kept)).fetch_one(&mut link).await.expect("columns");
        let again = format!(
            "PRAGMA legacy_alter_table = ON; CREATE TABLE kept AS SELECT {kept} FROM \"{table}\"; DROP TABLE \"{table}\"; ALTER TABLE kept RENAME TO \"{table}\""
        );
        sqlx::raw_sql(AssertSqlSafe(again)).execute(&mut link).await.expect("a table");
        link.close().await.expect("closed");
    });
}

/// Ids of all rows, page by page, forward.
fn paged(database: &Path, entity: &str, limit: &str, more: &[&str]) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut arguments = vec!["list", entity, "--limit", limit];
        arguments.extend(more);
        arguments.extend(cursor.iter().flat_map(|cursor| ["--after", cursor.as_str()]));
        let page = told(database, &arguments);
        rows.extend(page["rows"].as_array().expect("rows").iter().cloned());
        assert!(rows.len() < 1000, "pages end");
        cursor = page["next"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return rows;
        }
    }
}

/// Rows without an id, with the same id, and with one in bytes that reads the same; all at the same time.
const TWINS: &str = "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
      created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);
    CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT, created_at TEXT);
    INSERT INTO messages VALUES (NULL, 'user_id=ada', 'user', 'one', NULL, '2026-01-01'), (NULL, 'user_id=ada', 'user', 'two', NULL, '2026-01-01'),
      (NULL, 'user_id=ada', 'user', 'three', NULL, NULL), (NULL, 'user_id=ada', 'user', 'four', NULL, NULL),
      ('a', 'user_id=ada', 'user', 'five', NULL, '2026-01-01'), (CAST('a' AS BLOB), 'user_id=ada', 'user', 'six', NULL, '2026-01-01'),
      ('b', 'user_id=ada', 'user', 'seven', NULL, '2026-01-01T00:00:00+02:00'), ('', 'user_id=ada', 'user', 'eight', NULL, '2026-01-01');";

#[test]
fn rows_without_an_id_or_with_the_same_are_all_on_some_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let mixed = made(&folder, "mixed", TWINS);
    let uniform = made(&folder, "uniform", &format!("{TWINS} DELETE FROM messages WHERE id = 'b';"));
    for (database, count) in [(&mixed, 8), (&uniform, 7)] {
        for order in [&[][..], &["--order", "created_at:asc"], &["--order", "id:desc"], &["--order", "id"]] {
            let whole = paged(database, "segment", "100", order);
            assert_eq!(whole.len(), count);
            for limit in ["1", "2", "3"] {
                assert_eq!(paged(database, "segment", limit, order), whole, "{limit} {order:?}");
            }
        }
    }
}

#[test]
fn an_id_of_two_rows_is_told_of_and_changes_neither() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = made(&folder, "twins", TWINS);
    told(&database, &["migrate", "--apply"]);
    let row = told(&database, &["show", "segment", "a"]);
    assert!(row["problems"][0]["problem"].as_str().is_some_and(|p| p.starts_with("2 rows have this id")), "{row:#}");
    assert!(told(&database, &["show", "segment", "b"])["problems"].is_null());
    for command in [&["edit", "segment", "a", "content=x", "--apply"][..], &["remove", "segment", "a", "b", "--apply"]]
    {
        let (code, words) = refused(&database, command);
        assert!(code == Some(5) && words.contains("several rows"), "{command:?}: {code:?} {words}");
    }
    assert_eq!(listed(&database, "segment", &[]).len(), 8);
}

/// Two tables of one entity with a row of the same id in both.
const TWO_TABLES: &str = "name = \"two\"\ntitle = \"Two tables\"\nrequires = [\"notes_a\", \"notes_b\"]\n
    [[memory]]\ntable = \"notes_a\"\nwrite = {}\ncolumns = { id = \"id\", text = \"words\", created_at = \"at\" }\n
    [[memory]]\ntable = \"notes_b\"\nwrite = {}\ncolumns = { id = \"id\", text = \"words\", created_at = \"at\" }\n";

#[test]
fn rows_of_two_tables_with_the_same_id_are_both_there_and_named_by_their_tables() {
    let folder = tempfile::tempdir().expect("a folder");
    let layout = folder.path().join("two.toml");
    std::fs::write(&layout, TWO_TABLES).expect("a file");
    let layout = layout.to_str().expect("a path");
    let tables = "CREATE TABLE notes_a (id TEXT NOT NULL PRIMARY KEY, words TEXT, at TEXT);
        CREATE TABLE notes_b (id TEXT NOT NULL PRIMARY KEY, words TEXT, at TEXT);
        INSERT INTO notes_a VALUES ('n1', 'tea', '2026-01-01'), ('n2', 'milk', '2026-01-02T00:00:00+01:00');
        INSERT INTO notes_b VALUES ('n1', 'coffee', '2026-01-01'), ('n3', 'water', '2026-01-03');";
    let database = made(&folder, "two", tables);
    let with = ["--layout", layout];
    for order in [&["--order", "created_at:desc"][..], &["--order", "created_at"], &["--order", "text"]] {
        let more = [&with[..], order].concat();
        let whole = paged(&database, "memory", "100", &more);
        assert_eq!((whole.len(), paged(&database, "memory", "1", &more)), (4, whole));
    }
    told(&database, &["--layout", layout, "migrate", "--apply"]);
    let names = "`notes_a:n1` or `notes_b:n1` selects the row of one table";
    let (code, words) = refused(&database, &["--layout", layout, "edit", "memory", "n1", "text=x", "--apply"]);
    assert!(code == Some(5) && words.contains("several rows") && words.contains(names), "{code:?} {words}");
    let row = told(&database, &["--layout", layout, "show", "memory", "n1"]);
    let said = |p: &str| p.starts_with("2 rows") && p.contains(names);
    assert!(row["problems"][0]["problem"].as_str().is_some_and(said), "{row:#}");
    let texts = |database: &Path| -> Vec<Value> {
        let mut texts: Vec<Value> = listed(database, "memory", &with).iter().map(|row| row["text"].clone()).collect();
        texts.sort_by_key(Value::to_string);
        texts
    };
    let row = told(&database, &["--layout", layout, "show", "memory", "notes_b:n1"]);
    assert_eq!((&row["id"], &row["text"], &row["problems"]), (&json!("n1"), &json!("coffee"), &Value::Null));
    told(&database, &["--layout", layout, "edit", "memory", "notes_b:n1", "text=juice", "--apply"]);
    assert_eq!(texts(&database), ["juice", "milk", "tea", "water"]);
    told(&database, &["--layout", layout, "remove", "memory", "notes_a:n1", "notes_b:n3", "--apply"]);
    assert_eq!(texts(&database), ["juice", "milk"]);
    assert_ne!(refused(&database, &["--layout", layout, "show", "memory", "notes_a:n1"]).0, Some(0));
    // Each layout alone has one of the rows, which can be named.
    let two = ["claude-mem", "google-adk-memory"]
        .map(|name| STORES.iter().find(|store| store.layout == name).expect("a store").statements);
    let database = made(&folder, "stores", &two.concat());
    told(&database, &["migrate", "--apply"]);
    assert_eq!(refused(&database, &["edit", "memory", "1", "text=x", "--apply"]).0, Some(5));
    told(&database, &["--layout", "google-adk-memory", "edit", "memory", "1", "text=Ada rows", "--apply"]);
    let row = told(&database, &["--layout", "google-adk-memory", "show", "memory", "1"]);
    assert_eq!((&row["text"], &row["problems"]), (&json!("Ada rows"), &Value::Null));
}
