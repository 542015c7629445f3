//! The layouts of agent frameworks' stores through the command, on small databases of their shapes: recognised without
//! being asked for, every row with its text and person, changed and erased. And the worked example of the language.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use sqlx::Connection as _;
use tempfile::TempDir;

use crate::support::fixtures::Layout;
use crate::support::world::{address, meddle, on_postgres, on_sqlite, ours};
use crate::support::{block_on, program};

/// A store with rows of two people, Ada and Bo.
pub struct StoreCase {
    pub layout: &'static str,
    pub statements: &'static str,
    /// Listing of Ada's words: an entity, the column that shows them, and its number of rows.
    entity: &'static str,
    column: &'static str,
    rows: usize,
    /// Beginning of the column in one row, and the user of that row; `None` when the entity says nothing about
    /// people.
    told: &'static str,
    user: Option<&'static str>,
    /// The person that is erased, and how many rows are left.
    person: &'static str,
    left: usize,
}

pub const STORES: &[StoreCase] = &[
    StoreCase {
        layout: "langgraph-store",
        statements: "CREATE TABLE store_migrations (v INTEGER PRIMARY KEY);
            CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value text NOT NULL, created_at TIMESTAMP,
              updated_at TIMESTAMP, expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key));
            CREATE TABLE store_vectors (prefix text, key text, field_name text, embedding BLOB,
              PRIMARY KEY (prefix, key, field_name));
            INSERT INTO store VALUES ('memories.ada-1.s1', 'k1', CAST('{\"text\":\"Ada likes tea\",\"topics\":[\"food\"]}' AS BLOB),
              '2026-11-22 02:30:14', '2026-11-22 02:30:14', NULL, NULL);
            INSERT INTO store VALUES ('ada-1.profile', 'k2', CAST('{\"kind\":\"Memory\",\"content\":{\"content\":\"Ada rows\"}}' AS BLOB),
              '2026-11-22 02:30:15', '2026-11-22 02:30:15', NULL, NULL);
            INSERT INTO store VALUES ('memories.ada-11', 'k1', CAST('{\"text\":\"Bo likes coffee\"}' AS BLOB),
              '2026-11-22 02:30:16', '2026-11-22 02:30:16', NULL, NULL);
            INSERT INTO store_vectors VALUES ('memories.ada-1.s1', 'k1', 'text', x'0000803F00000000'),
              ('memories.ada-11', 'k1', 'text', x'000000000000803F');",
        entity: "memory",
        column: "text",
        rows: 3,
        told: "Ada likes tea",
        user: Some("ada-1"),
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "langgraph-checkpoints",
        statements: "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '',
              checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
              PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
            CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
              task_id TEXT NOT NULL, task_path TEXT, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
              PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
            -- {'ts': '2026-11-22T02:30:16+00:00', 'channel_values': {'messages': [{'content': 'Ada asks for tea'}]}}
            INSERT INTO checkpoints VALUES ('ada-1:0', '', 'c1', NULL, 'msgpack', x'82a27473b9323032362d31312d32325430323a33303a31362b30303a3030ae6368616e6e656c5f76616c75657381a86d657373616765739181a7636f6e74656e74b04164612061736b7320666f7220746561',
              CAST('{\"step\": 1, \"user_id\": \"ada-1\"}' AS BLOB));
            INSERT INTO checkpoints VALUES ('t9', '', 'c2', NULL, 'msgpack', x'81a27473b9323032362d31312d32325430323a33303a31372b30303a3030',
              CAST('{\"step\": 1, \"user_id\": \"bo\"}' AS BLOB));
            INSERT INTO writes VALUES ('ada-1:0', '', 'c1', 'x', '', 0, 'messages', 'msgpack', x'91a94164612061736b6564'),
              ('t9', '', 'c2', 'x', '', 0, 'gate', 'null', x'');",
        entity: "episode",
        column: "detail",
        rows: 2,
        told: "Ada asks for tea",
        user: Some("ada-1"),
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "agno",
        statements: "CREATE TABLE agno_memories (memory_id VARCHAR PRIMARY KEY, memory JSON NOT NULL, input VARCHAR, agent_id VARCHAR,
              team_id VARCHAR, user_id VARCHAR, topics JSON, feedback VARCHAR, created_at BIGINT NOT NULL, updated_at BIGINT);
            INSERT INTO agno_memories VALUES ('m1', '\"Ada likes gr\\u00fcnen Tee\"', NULL, 'desk', NULL, 'ada-1', '[\"food\"]',
              'positive', 1772461855, 1772461855);
            INSERT INTO agno_memories VALUES ('m2', '\"Bo likes coffee\"', NULL, 'desk', NULL, 'bo-22', 'null', NULL, 1772461856, NULL);",
        entity: "memory",
        column: "text",
        rows: 2,
        told: "Ada likes grünen Tee",
        user: Some("ada-1"),
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "google-adk",
        statements: "CREATE TABLE sessions (app_name TEXT NOT NULL, user_id TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL,
              create_time REAL NOT NULL, update_time REAL NOT NULL, PRIMARY KEY (app_name, user_id, id));
            CREATE TABLE app_states (app_name TEXT PRIMARY KEY, state TEXT NOT NULL, update_time REAL NOT NULL);
            CREATE TABLE user_states (app_name TEXT NOT NULL, user_id TEXT NOT NULL, state TEXT NOT NULL,
              update_time REAL NOT NULL, PRIMARY KEY (app_name, user_id));
            CREATE TABLE events (id TEXT NOT NULL, app_name TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL,
              invocation_id TEXT NOT NULL, timestamp REAL NOT NULL, event_data TEXT NOT NULL,
              PRIMARY KEY (app_name, user_id, session_id, id));
            INSERT INTO sessions VALUES ('desk', 'ada-1', 's0', '{}', 1772461855.5, 1772461855.5),
              ('desk', 'bo-22', 's0', '{}', 1772461856.0, 1772461856.0);
            INSERT INTO events VALUES ('e1', 'desk', 'ada-1', 's0', 'i1', 1772461855.5,
                '{\"content\":{\"parts\":[{\"text\":\"Ada asks\"},{\"text\":\"for tea\"}]},\"author\":\"user\"}'),
              ('e1', 'desk', 'bo-22', 's0', 'i2', 1772461856.0, '{\"content\":{\"parts\":[{\"text\":\"Bo asks\"}]},\"author\":\"user\"}');",
        entity: "segment",
        column: "content",
        rows: 2,
        told: "Ada asks\nfor tea",
        user: None,
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "google-adk-memory",
        statements: "CREATE TABLE memory_events (id INTEGER PRIMARY KEY AUTOINCREMENT, app_name TEXT NOT NULL, user_id TEXT NOT NULL,
              session_id TEXT NOT NULL, event_id TEXT NOT NULL, author TEXT NOT NULL, timestamp REAL NOT NULL,
              content_json TEXT NOT NULL, search_text TEXT NOT NULL);
            CREATE VIRTUAL TABLE memory_events_fts
            USING fts5(search_text, content='memory_events', content_rowid='id');
            CREATE TRIGGER ai AFTER INSERT ON memory_events BEGIN
              INSERT INTO memory_events_fts(rowid, search_text) VALUES (new.id, new.search_text); END;
            CREATE TRIGGER ad AFTER DELETE ON memory_events BEGIN
              INSERT INTO memory_events_fts(memory_events_fts, rowid, search_text) VALUES('delete', old.id, old.search_text); END;
            CREATE TRIGGER au AFTER UPDATE ON memory_events BEGIN
              INSERT INTO memory_events_fts(memory_events_fts, rowid, search_text) VALUES('delete', old.id, old.search_text);
              INSERT INTO memory_events_fts(rowid, search_text) VALUES (new.id, new.search_text); END;
            INSERT INTO memory_events VALUES (1, 'desk', 'ada-1', 's0', 'e1', 'user', 1772461855.5,
                '{\"parts\":[{\"text\":\"Ada asks for tea\"}]}', 'ada asks for tea'),
              (2, 'desk', 'bo-22', 's0', 'e1', 'user', 1772461856.0, '{\"parts\":[{\"text\":\"Bo asks\"}]}', 'bo asks');",
        entity: "memory",
        column: "text",
        rows: 2,
        told: "Ada asks for tea",
        user: Some("ada-1"),
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "openai-agents",
        statements: "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);
            CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, message_data TEXT NOT NULL,
              created_at TIMESTAMP, FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE);
            INSERT INTO agent_sessions VALUES ('chat:ada-1:1', '2026-11-22 02:30:31', '2026-11-22 02:30:31'),
              ('chat:ada-11:1', '2026-11-22 02:30:32', '2026-11-22 02:30:32');
            INSERT INTO agent_messages VALUES (1, 'chat:ada-1:1', '{\"role\": \"user\", \"content\": \"Ada asks for tea\"}', '2026-11-22 02:30:31'),
              (2, 'chat:ada-11:1', '{\"role\": \"assistant\", \"content\": [{\"type\": \"output_text\", \"text\": \"Noted.\"}]}', '2026-11-22 02:30:32');",
        entity: "segment",
        column: "content",
        rows: 2,
        told: "Ada asks for tea",
        user: None,
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "mem0-history",
        statements: "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
              created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);
            CREATE TABLE messages (id TEXT PRIMARY KEY, session_scope TEXT, role TEXT, content TEXT, name TEXT, created_at DATETIME);
            INSERT INTO history VALUES ('h1', 'm1', NULL, 'likes tea', 'ADD', '2026-11-22T02:30:37.071335+00:00', NULL, 0, NULL, 'user');
            INSERT INTO messages VALUES ('t1', 'agent_id=desk&user_id=ada-1', 'user', 'Ada asks for tea', NULL, '2026-11-22T02:30:37.071335+00:00'),
              ('t2', 'user_id=bo-22', 'user', 'Bo asks', NULL, '2026-11-22T02:30:38.071335+00:00');",
        entity: "segment",
        column: "content",
        rows: 2,
        told: "Ada asks for tea",
        user: None,
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "mcp-memory-service",
        statements: "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE NOT NULL, content TEXT NOT NULL,
              tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL, updated_at REAL, created_at_iso TEXT,
              updated_at_iso TEXT, deleted_at REAL DEFAULT NULL, superseded_by TEXT);
            CREATE VIRTUAL TABLE memory_content_fts USING fts5(content, content='memories', content_rowid='id', tokenize='trigram');
            CREATE TRIGGER fi AFTER INSERT ON memories BEGIN
              INSERT INTO memory_content_fts(rowid, content) VALUES (new.id, new.content); END;
            CREATE TRIGGER fd AFTER DELETE ON memories BEGIN
              INSERT INTO memory_content_fts(memory_content_fts, rowid, content) VALUES('delete', old.id, old.content); END;
            CREATE TRIGGER fu AFTER UPDATE ON memories BEGIN
              INSERT INTO memory_content_fts(memory_content_fts, rowid, content) VALUES('delete', old.id, old.content);
              INSERT INTO memory_content_fts(rowid, content) VALUES (new.id, new.content); END;
            INSERT INTO memories VALUES (1, 'a', 'Ada likes tea', 'food,user:ada-1', 'note', '{}', 1772461855.0, 1772461855.0, '', '', NULL, NULL),
              (2, 'b', 'Bo likes coffee', 'food', 'note', '{\"user_id\": \"bo-22\"}', 1772461856.0, 1772461856.0, '', '', 1772461857.0, NULL);",
        entity: "memory",
        column: "text",
        rows: 2,
        told: "Ada likes tea",
        user: Some("ada-1"),
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "claude-mem",
        statements: "CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT UNIQUE, memory_session_id TEXT UNIQUE,
              project TEXT NOT NULL, user_prompt TEXT, started_at TEXT, started_at_epoch INTEGER, completed_at TEXT, status TEXT);
            CREATE TABLE observations (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
              text TEXT, type TEXT NOT NULL, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
              files_modified TEXT, prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
            CREATE TABLE session_summaries (id INTEGER PRIMARY KEY AUTOINCREMENT, memory_session_id TEXT NOT NULL, project TEXT NOT NULL,
              request TEXT, investigated TEXT, learned TEXT, completed TEXT, next_steps TEXT, files_read TEXT, files_edited TEXT,
              notes TEXT, prompt_number INTEGER, created_at TEXT NOT NULL, created_at_epoch INTEGER NOT NULL);
            CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, content_session_id TEXT, prompt_number INTEGER, prompt_text TEXT, created_at TEXT, created_at_epoch INTEGER);
            CREATE VIRTUAL TABLE observations_fts USING fts5(title, narrative, content='observations', content_rowid='id');
            CREATE TRIGGER oi AFTER INSERT ON observations BEGIN
              INSERT INTO observations_fts(rowid, title, narrative) VALUES (new.id, new.title, new.narrative); END;
            CREATE TRIGGER od AFTER DELETE ON observations BEGIN
              INSERT INTO observations_fts(observations_fts, rowid, title, narrative) VALUES('delete', old.id, old.title, old.narrative); END;
            CREATE TRIGGER ou AFTER UPDATE ON observations BEGIN
              INSERT INTO observations_fts(observations_fts, rowid, title, narrative) VALUES('delete', old.id, old.title, old.narrative);
              INSERT INTO observations_fts(rowid, title, narrative) VALUES (new.id, new.title, new.narrative); END;
            INSERT INTO sdk_sessions VALUES (1, 'c1', 's1', 'ada-stall', 'Ada asks', '2026-03-02T14:30:55.000Z', 1772461855000, NULL, 'active'),
              (2, 'c2', 's2', 'bo-garden', 'Bo asks', '2026-03-02T14:30:56.000Z', 1772461856000, NULL, 'active');
            INSERT INTO observations VALUES (1, 's1', 'ada-stall', NULL, 'discovery', 'tea', NULL, '[]', 'Ada likes tea', '[]', '[]', '[]', 1,
              '2026-03-02T14:30:55.000Z', 1772461855000),
              (2, 's2', 'bo-garden', NULL, 'discovery', 'coffee', NULL, '[]', 'Bo likes coffee', '[]', '[]', '[]', 1, '2026-03-02T14:30:56.000Z', 1772461856000);
            INSERT INTO session_summaries VALUES (1, 's2', 'bo-garden', 'coffee?', NULL, 'Bo rows', NULL, NULL, '[]', '[]', NULL, 1, '2026-03-02T14:30:56.000Z', 1772461856000);",
        entity: "memory",
        column: "text",
        rows: 3,
        told: "Ada likes tea",
        user: None,
        person: "ada-stall",
        left: 2,
    },
    StoreCase {
        layout: "open-webui",
        statements: "CREATE TABLE user (id VARCHAR PRIMARY KEY, name VARCHAR, email VARCHAR, last_active_at BIGINT);
            CREATE TABLE memory (id VARCHAR PRIMARY KEY, user_id VARCHAR, content TEXT, created_at BIGINT, updated_at BIGINT);
            CREATE TABLE chat (id VARCHAR PRIMARY KEY, user_id VARCHAR, title TEXT, chat JSON, created_at BIGINT, updated_at BIGINT, archived BOOLEAN, meta JSON);
            INSERT INTO user VALUES ('ada-1', 'Ada', 'ada@example.org', 1772461855), ('bo-22', 'Bo', 'bo@example.org', 1772461856);
            INSERT INTO memory VALUES ('m1', 'ada-1', 'Ada likes tea', 1772461855, 1772461855), ('m2', 'bo-22', 'Bo likes coffee', 1772461856, 1772461856);
            INSERT INTO chat VALUES ('c1', 'ada-1', 'tea', '{\"messages\":[{\"content\":\"Ada asks for tea\"}]}', 1772461855, 1772461855, 0, '{}');",
        entity: "memory",
        column: "text",
        rows: 2,
        told: "Ada likes tea",
        user: Some("ada-1"),
        person: "ada-1",
        left: 1,
    },
    StoreCase {
        layout: "memori",
        statements: "CREATE TABLE memori_entity (id INTEGER PRIMARY KEY, uuid TEXT, external_id TEXT UNIQUE, date_created TEXT, date_updated TEXT);
            CREATE TABLE memori_process (id INTEGER PRIMARY KEY, uuid TEXT, external_id TEXT UNIQUE, date_created TEXT, date_updated TEXT);
            CREATE TABLE memori_session (id INTEGER PRIMARY KEY, uuid TEXT, entity_id INTEGER, process_id INTEGER, date_created TEXT);
            CREATE TABLE memori_conversation (id INTEGER PRIMARY KEY, uuid TEXT, session_id INTEGER, summary TEXT, date_created TEXT, date_updated TEXT);
            CREATE TABLE memori_conversation_message (id INTEGER PRIMARY KEY, uuid TEXT, conversation_id INTEGER, role TEXT, type TEXT, content TEXT, date_created TEXT);
            CREATE TABLE memori_entity_fact (id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, entity_id INTEGER, content TEXT NOT NULL, content_embedding BLOB NOT NULL,
              num_times INTEGER NOT NULL, date_last_time TEXT NOT NULL, uniq TEXT NOT NULL, date_created TEXT, date_updated TEXT);
            INSERT INTO memori_entity VALUES (1, 'e1', 'ada-1', '2026-11-22 02:31:01', NULL), (2, 'e2', 'bo-22', '2026-11-22 02:31:01', NULL);
            INSERT INTO memori_entity_fact VALUES (1, 'f1', 1, 'Ada likes tea', x'0000803F', 1, '2026-11-22 02:31:01', 'u1', '2026-11-22 02:31:01', NULL),
              (2, 'f2', 2, 'Bo likes coffee', x'0000803F', 1, '2026-11-22 02:31:01', 'u2', '2026-11-22 02:31:01', NULL);",
        entity: "memory",
        column: "text",
        rows: 2,
        told: "Ada likes tea",
        user: Some("ada-1"),
        person: "ada-1",
        left: 1,
    },
];

pub fn made(folder: &TempDir, name: &str, statements: &str) -> PathBuf {
    let path = folder.path().join(format!("{name}.db"));
    block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut link = sqlx::SqliteConnection::connect_with(&options).await.expect("a database");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statements.to_owned())).execute(&mut link).await.expect("statements");
        link.close().await.expect("closed");
    });
    path
}

pub fn run(database: &Path, statements: &str) {
    block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database);
        let mut link = sqlx::SqliteConnection::connect_with(&options).await.expect("the file");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statements.to_owned())).execute(&mut link).await.expect("statements");
        link.close().await.expect("closed");
    });
}

/// Runs a command and returns its output as JSON.
pub fn told(database: &Path, arguments: &[&str]) -> Value {
    told_in(database.parent().expect("a folder"), database, arguments)
}

/// The same, with the folder that is the home.
pub fn told_in(home: &Path, database: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(program());
    command.env("HOME", home).env_remove("MNEMOSCOPE_DATABASE");
    let done = command.arg("-d").arg(database).args(arguments).args(["--format", "json"]).output().expect("it runs");
    let words = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{} {arguments:?}: {words}", database.display());
    serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {words}"))
}

pub fn listed(database: &Path, entity: &str, more: &[&str]) -> Vec<Value> {
    let listed = told(database, &[&["list", entity, "--limit", "100"], more].concat());
    listed["rows"].as_array().expect("rows").clone()
}

/// Every stored value of the tables that are not ours.
fn stored(database: &Path) -> BTreeMap<String, String> {
    block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(database).read_only(true);
        let mut link = sqlx::SqliteConnection::connect_with(&options).await.expect("the file");
        let mut all = BTreeMap::new();
        let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'";
        for name in sqlx::query_scalar::<_, String>(names).fetch_all(&mut link).await.expect("tables") {
            let columns = sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(format!(
                "SELECT name FROM pragma_table_info('{name}')"
            )));
            let columns = columns.fetch_all(&mut link).await.expect("columns");
            let quoted: Vec<String> = columns.iter().map(|c| format!("quote(\"{c}\")")).collect();
            let sql = format!("SELECT {} FROM \"{name}\" ORDER BY 1", quoted.join(" || ',' || "));
            let values = sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(sql)).fetch_all(&mut link).await;
            let text = values.expect("values").join("|");
            // The index is made of what the rows say.
            if !ours(&name) && !name.contains("_fts_") {
                all.insert(name, text);
            }
        }
        all
    })
}

/// A memory with other words: no old copy is left, it is recalled by the new ones, and an undo brings back every value.
fn edited_and_undone(database: &Path, store: &StoreCase, id: &str) {
    let before = stored(database);
    let receipt = told(database, &["edit", "memory", id, "text=Ada collects blue kites", "--apply"]);
    let after = stored(database);
    let old = |all: &BTreeMap<String, String>| {
        all.values()
            .filter(|text| {
                text.to_lowercase().contains("ada likes tea") || text.to_lowercase().contains("ada asks for tea")
            })
            .count()
    };
    let others = usize::from(store.layout == "open-webui");
    assert_eq!(old(&after), others, "{}: {after:#?}", store.layout);
    let found = told(database, &["recall", "blue kites", "--ranking", "similar"]);
    assert_eq!(found["rows"][0]["id"], json!(id), "{}: {found:#}", store.layout);
    told(database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
    assert_eq!(stored(database), before, "{}", store.layout);
}

#[test]
fn every_store_is_recognised_listed_masked_and_erased() {
    let folder = tempfile::tempdir().expect("a folder");
    for store in STORES {
        let database = made(&folder, store.layout, store.statements);
        let status = told(&database, &["status"]);
        assert_eq!(status["layouts"][0]["name"], store.layout, "{status:#}");
        let found = listed(&database, store.entity, &[]);
        assert_eq!(found.len(), store.rows, "{}: {found:#?}", store.layout);
        assert!(found.iter().all(|row| row["problems"].is_null()), "{}: {found:#?}", store.layout);
        let row = found.iter().find(|row| row[store.column] == store.told);
        let row = row.unwrap_or_else(|| panic!("{}: {found:#?}", store.layout));
        if let Some(user) = store.user {
            assert_eq!(row["user_id"], user, "{}", store.layout);
            assert_eq!(
                listed(&database, store.entity, &["--where", &format!("user_id={user}")]).len(),
                store.rows - store.left
            );
        }
        let id = row["id"].as_str().expect("an id");
        assert_eq!(
            listed(&database, store.entity, &["--where", &format!("id={id}")]).len(),
            1,
            "{}: {id}",
            store.layout
        );
        let masked = told(&database, &["list", store.entity, "--mask"]).to_string();
        assert!(!masked.contains(store.told) && (store.user.is_none() || !masked.contains(store.person)), "{masked}");

        told(&database, &["migrate", "--apply"]);
        if store.entity == "memory" {
            // Memori's rows go by a cascade that the plan does not follow row by row: what the trail kept of one stays.
            let copy = folder.path().join(format!("{}-edited.db", store.layout));
            std::fs::copy(&database, &copy).expect("a copy");
            edited_and_undone(if store.layout == "memori" { &copy } else { &database }, store, id);
        }
        told(&database, &["purge", store.person, "--mentions", "redact", "--apply"]);
        assert_eq!(listed(&database, store.entity, &[]).len(), store.left, "{}", store.layout);
        let bytes = std::fs::read(&database).expect("the file");
        let gone = |needle: &str| memchr::memmem::find(&bytes, needle.as_bytes()).is_none();
        assert!(gone("Ada likes") && gone("Ada asks"), "{}", store.layout);
    }
}

/// The exit code of a command, and what it says.
pub fn refused(database: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let home = database.parent().expect("a folder");
    let mut command = Command::new(program());
    command.env("HOME", home).env_remove("MNEMOSCOPE_DATABASE");
    let done = command.arg("-d").arg(database).args(arguments).output().expect("it runs");
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

fn store_of(folder: &TempDir, layout: &str) -> PathBuf {
    let case = STORES.iter().find(|store| store.layout == layout).expect("a store");
    let database = made(folder, layout, case.statements);
    told(&database, &["migrate", "--apply"]);
    database
}

#[test]
fn an_episode_that_the_layout_makes_of_many_rows_says_so_when_it_is_to_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "mem0-history");
    run(
        &database,
        "INSERT INTO messages SELECT 't' || (10 + rowid), session_scope, role, content, name, created_at FROM messages",
    );
    let episodes = listed(&database, "episode", &[]);
    assert!(!episodes.is_empty());
    for episode in episodes {
        let id = episode["id"].as_str().expect("an id");
        for asked in [&["edit", "episode", id, "title=x"][..], &["remove", "episode", id]] {
            let (code, words) = refused(&database, asked);
            assert!(code == Some(5) && words.contains("several rows of messages"), "{asked:?}: {words}");
            assert!(!words.contains("--layout"), "{words}");
        }
    }
}

#[test]
fn what_others_name_a_row_by_is_not_edited() {
    let folder = tempfile::tempdir().expect("a folder");
    let item = "[\"memories.ada-1.s1\",\"k1\"]";
    let state = "INSERT INTO user_states VALUES ('desk', 'ada-1', '{\"likes\":\"tea\"}', 1772461855.5)";
    let message = "INSERT INTO memori_conversation_message VALUES (1, 'u', 1, 'user', NULL, 'Ada asks', NULL)";
    for (layout, more, entity, id, column) in [
        ("langgraph-store", "", "memory", item, "collection=memories.bo"),
        ("langgraph-store", "", "memory", item, "user_id=bo"),
        ("google-adk", state, "memory", "[\"desk\",\"ada-1\"]", "user_id=bo"),
        ("memori", message, "segment", "1", "sequence=9"),
    ] {
        let database = store_of(&folder, layout);
        run(&database, more);
        let before = stored(&database);
        let (code, words) = refused(&database, &["edit", entity, id, column, "--apply"]);
        assert_eq!(code, Some(5), "{layout} {column}: {words}");
        assert_eq!(stored(&database), before, "{layout}");
        std::fs::remove_file(&database).expect("gone");
    }
}

#[test]
fn an_export_brings_back_what_is_missing_under_its_number_and_leaves_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = "INSERT INTO user_states VALUES ('desk', 'ada-1', '{\"likes\": \"tea\"}', 1772461855.5)";
    for (layout, more, entity, table) in [
        ("google-adk", state, "memory", "user_states"),
        ("google-adk-memory", "", "memory", "memory_events"),
        ("openai-agents", "", "segment", "agent_messages"),
        ("mcp-memory-service", "", "memory", "memories"),
        ("claude-mem", "", "memory", "observations"),
        ("memori", "", "memory", "memori_entity_fact"),
    ] {
        let database = store_of(&folder, layout);
        run(&database, more);
        let before = stored(&database);
        let file = folder.path().join("own.jsonl").display().to_string();
        let mut command = Command::new(program());
        command.env("HOME", folder.path()).env_remove("MNEMOSCOPE_DATABASE");
        let exported = command.arg("-d").arg(&database).args(["export", entity]).output().expect("it runs");
        std::fs::write(&file, exported.stdout).expect("a file");
        let import = ["import", "jsonl", &file, "--apply"];
        let receipt = told(&database, &import);
        assert_eq!(receipt["counts"], json!({}), "{layout}: {receipt:#}");
        run(&database, &format!("DELETE FROM {table}"));
        let without = stored(&database);
        let receipt = told(&database, &import);
        assert_eq!(stored(&database), before, "{layout}: {receipt:#}");
        told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
        assert_eq!(stored(&database), without, "{layout}");
    }
}

#[test]
fn a_time_of_change_that_is_given_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "open-webui");
    told(&database, &["edit", "memory", "m1", "updated_at=2026-03-03T03:03:03Z", "--apply"]);
    assert_eq!(told(&database, &["show", "memory", "m1"])["updated_at"], "2026-03-03T03:03:03.000000Z");
}

#[test]
fn rows_taken_away_together_go_as_their_layout_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "agno");
    run(&database, "UPDATE agno_memories SET feedback = 'negative' WHERE memory_id = 'm2'");
    let before = stored(&database);
    let receipt = told(&database, &["remove", "feedback", "m1", "m2", "--apply"]);
    assert_eq!(receipt["counts"], json!({"agno_memories": {"update": 2}}), "{receipt:#}");
    assert_eq!((listed(&database, "memory", &[]).len(), listed(&database, "feedback", &[]).len()), (2, 0));
    told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
    assert_eq!(stored(&database), before);

    let database = store_of(&folder, "mcp-memory-service");
    let before = stored(&database);
    let receipt = told(&database, &["remove", "memory", "1", "2", "--apply"]);
    assert_eq!(receipt["counts"], json!({"memories": {"update": 1}}), "the other is marked already: {receipt:#}");
    let states: Vec<Value> = listed(&database, "memory", &[]).iter().map(|row| row["status"].clone()).collect();
    assert_eq!(states, ["deleted", "deleted"]);
    told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
    assert_eq!(stored(&database), before);

    let rules = folder.path().join("retention.toml");
    std::fs::write(&rules, "share = 1.0\n[[rule]]\nentity = \"memory\"\nolder_than = \"1d\"\n").expect("rules");
    let rules = rules.display().to_string();
    let receipt = told(&database, &["retain", &rules, "--apply"]);
    assert_eq!(receipt["counts"], json!({"memories": {"update": 1}}), "{receipt:#}");
    assert_eq!(told(&database, &["retain", &rules, "--apply"])["counts"], json!({}), "the second time does nothing");
}

#[test]
fn a_service_that_does_not_know_one_mark_yet_has_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "mcp-memory-service");
    run(&database, "ALTER TABLE memories DROP COLUMN superseded_by");
    let states = || listed(&database, "memory", &["--order", "id"]).iter().map(|row| row["status"].clone()).collect();
    let before: Vec<Value> = states();
    assert_eq!(before, ["active", "deleted"]);
    run(&database, "ALTER TABLE memories DROP COLUMN deleted_at");
    let (code, words) = refused(&database, &["remove", "memory", "1", "--apply"]);
    assert_eq!(code, Some(5), "{words}");
    assert!(words.contains("memories has no column `deleted_at` that marks a row as removed"), "{words}");
    let left: Vec<Value> = states();
    assert_eq!(left, [Value::Null, Value::Null]);
}

#[test]
fn a_fact_of_memori_keeps_its_digest_in_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "memori");
    told(&database, &["edit", "memory", "f1", "text=Likes TEA, é 2!", "--apply"]);
    // sha256 of `likestea2`.
    let digest = "101f18d132443d518769ca0249d64cd79103a42383168fbf61682a2067613d47";
    assert!(stored(&database)["memori_entity_fact"].contains(digest), "{:#?}", stored(&database));
}

#[test]
fn a_hash_and_the_second_spelling_of_a_time_follow_an_edit() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "mcp-memory-service");
    let before = stored(&database);
    let (text, created, updated) =
        ("text= Likes TÉA ", "created_at=2026-03-03T03:03:03Z", "updated_at=2026-03-04T04:04:04Z");
    let receipt = told(&database, &["edit", "memory", "1", text, created, updated, "--apply"]);
    // sha256 of `likes téa`.
    let digest = "c1edae55e8c0f770b6944500b854ad64a4f0410e7a0c63c072b6705dc742a0ee";
    let times = "1772506983.0,1772597044.0,'2026-03-03T03:03:03Z','2026-03-04T04:04:04Z'";
    let memories = stored(&database)["memories"].clone();
    assert!(memories.contains(digest) && memories.contains(times), "{memories}");
    told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
    assert_eq!(stored(&database), before);
    told(&database, &["edit", "memory", "1", text, "--apply"]);
    let shown = told(&database, &["show", "memory", "1"]);
    let changed = format!("'{}Z'", &shown["updated_at"].as_str().expect("a time")[..19]);
    assert!(stored(&database)["memories"].contains(&changed), "{changed}: {shown:#}");

    let database = store_of(&folder, "claude-mem");
    run(&database, "ALTER TABLE observations ADD COLUMN content_hash TEXT");
    // sha256 of session, title and narrative with NUL between them.
    for (column, digest) in [("text=Ada flies kites", "fb87bd6d1f408655"), ("title=kites", "1d7554dcd198b3ca")] {
        told(&database, &["edit", "memory", "1", column, "--apply"]);
        assert!(stored(&database)["observations"].contains(&format!("'{digest}'")), "{:#?}", stored(&database));
    }
    told(&database, &["edit", "memory", "1", created, "--apply"]);
    let times = "'2026-03-03T03:03:03.000Z',1772506983000,";
    assert!(stored(&database)["observations"].contains(times), "{:#?}", stored(&database));
}

#[test]
fn secrets_are_taken_out_as_an_edit_does_and_hashes_follow() {
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let folder = tempfile::tempdir().expect("a folder");
    let memory = format!("UPDATE agno_memories SET memory = '\"key {secret}\"' WHERE memory_id = 'm1'");
    let hashed = format!("UPDATE memories SET content = 'key {secret}', content_hash = 'of the secret' WHERE id = 1");
    // sha256 of `key [secret removed]`.
    let digest = "f190ba3fd21aa22a1b288fc340058f84af2b13b10b8bbe9c853ee2425f815dd6";
    for (layout, table, more, made) in [
        ("agno", "agno_memories", memory, "\"key [secret removed]\""),
        ("mcp-memory-service", "memories", hashed, digest),
    ] {
        let database = store_of(&folder, layout);
        run(&database, &more);
        let receipt = told(&database, &["backfill", "secrets", "--apply"]);
        assert_eq!(receipt["counts"], json!({table: {"update": 1}}), "{receipt:#}");
        let rows = stored(&database)[table].clone();
        assert!(!rows.contains(secret) && !rows.contains("of the secret") && rows.contains(made), "{rows}");
    }
}

#[test]
fn a_time_in_seconds_keeps_its_fraction_where_the_column_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let time = "created_at=1969-12-31T23:59:59.5Z";
    let database = store_of(&folder, "mcp-memory-service");
    told(&database, &["edit", "memory", "1", time, "--apply"]);
    let rows = stored(&database)["memories"].clone();
    assert!(rows.contains(",-0.5,"), "{rows}");
    let (code, words) = refused(&store_of(&folder, "agno"), &["edit", "memory", "m1", time, "--apply"]);
    assert!(code == Some(5) && words.contains("keeps 0 decimals of a second"), "{words}");
}

#[test]
fn documents_within_documents_are_the_same_in_a_copy() {
    let folder = tempfile::tempdir().expect("a folder");
    let world_run = |arguments: &[&str]| crate::support::world::run(folder.path(), arguments);
    let (claude, agents) = (store_of(&folder, "claude-mem"), store_of(&folder, "openai-agents"));
    run(
        &claude,
        "CREATE TABLE tool_uses (id INTEGER PRIMARY KEY, content_session_id TEXT, session_db_id INTEGER, project TEXT, \
         tool_name TEXT, tool_input TEXT, tool_response TEXT, created_at_epoch INTEGER); \
         INSERT INTO tool_uses VALUES (901, 'c1', 1, 'ada-stall', 'Bash', '{\"command\": \"ls\"}', 'no {json}', 1772461855000)",
    );
    run(
        &agents,
        "CREATE TABLE message_structure (id INTEGER PRIMARY KEY, session_id TEXT, message_id INTEGER, branch_id TEXT, \
         message_type TEXT, sequence_number INTEGER, user_turn_number INTEGER, branch_turn_number INTEGER, tool_name TEXT, \
         created_at TEXT); \
         INSERT INTO message_structure SELECT 902, session_id, 1, 'main', 'user', 1, '[\"b\"]', 1, NULL, created_at \
         FROM agent_sessions LIMIT 1",
    );
    for (store, id, path, expected) in
        [(&claude, "901", "/input/command", json!("ls")), (&agents, "902", "/user_turn", json!("[\"b\"]"))]
    {
        let (from, native) =
            (store.display().to_string(), folder.path().join(format!("{id}.db")).display().to_string());
        assert_eq!(world_run(&["-d", &native, "--layout", "mnemoscope", "migrate", "--apply"]).0, Some(0));
        let (code, shown, words) = world_run(&["copy", "--from", &from, "--to", &native, "--apply"]);
        assert_eq!(code, Some(0), "{words} {shown:#}");
        let native = Path::new(&native);
        let both = [told(store, &["show", "workflow_event", id]), told(native, &["show", "workflow_event", id])];
        assert_eq!(both[0]["data"], both[1]["data"]);
        assert_eq!(both[0]["data"].pointer(path), Some(&expected), "{both:#?}");
    }
}

#[test]
fn events_of_a_copied_thread_are_the_persons() {
    let folder = tempfile::tempdir().expect("a folder");
    let copied = |name: &str| {
        let from = made(&folder, &format!("{name}-source"), STORES[1].statements);
        let native = folder.path().join(format!("{name}.db"));
        let (from, to) = (from.display().to_string(), native.display().to_string());
        for words in [
            &["-d", &to, "--layout", "mnemoscope", "migrate", "--apply"][..],
            &["copy", "--from", &from, "--to", &to, "--apply"],
        ] {
            let (code, shown, words) = crate::support::world::run(folder.path(), words);
            assert_eq!(code, Some(0), "{words} {shown:#}");
        }
        native
    };
    let of_events = |native: &Path| -> Vec<String> {
        let rows = listed(native, "workflow_event", &[]);
        rows.iter().map(|row| row["run_id"].as_str().unwrap_or_default().to_owned()).collect()
    };
    for asked in
        [&["purge", "ada-1", "--mentions", "redact", "--apply"][..], &["remove", "episode", "ada-1:0", "--apply"]]
    {
        let native = copied(asked[0]);
        assert_eq!(of_events(&native).iter().filter(|run| *run == "ada-1:0").count(), 2);
        let bundle = folder.path().join(format!("{}-bundle", asked[0]));
        told(&native, &["export", "subject", "ada-1", "--out", &bundle.display().to_string()]);
        let events = std::fs::read_to_string(bundle.join("workflow_events.jsonl")).expect("the person's events");
        assert_eq!(events.lines().count(), 2, "{events}");
        told(&native, asked);
        assert_eq!(of_events(&native), ["t9", "t9"]);
    }
    let native = copied("hold");
    told(&native, &["hold", "ada-1", "--apply"]);
    let event = listed(&native, "workflow_event", &["--where", "run_id = ada-1:0"])[0]["id"].clone();
    let (code, words) = refused(&native, &["remove", "workflow_event", event.as_str().expect("an id"), "--apply"]);
    assert_eq!(code, Some(5), "{words}");
}

#[test]
fn no_place_of_a_row_names_the_owner_that_it_had_before_an_edit() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "mcp-memory-service");
    let row = |id, tags, user| {
        format!(
            "({id}, 'h{id}', 'rows', '{tags}', 'note', '{{\"user_id\": {user}}}', 1772461855.0, 1772461855.0, '', '', NULL, NULL)"
        )
    };
    let rows = [
        row(3, "user:ada-1,food", "\"ada-1\""),
        row(4, "user:bo-22", "\"ada-1\""),
        row(5, "food,user:ada-1,sea", "null"),
    ];
    run(&database, &format!("INSERT INTO memories VALUES {}", rows.join(", ")));
    let before = stored(&database);
    let receipt = told(&database, &["edit", "memory", "3", "user_id=cleo-3", "--apply"]);
    let memories = || stored(&database)["memories"].clone();
    let both = "'user:cleo-3,food','note','{\"user_id\": \"cleo-3\"}'";
    assert!(memories().contains(both), "{}", memories());
    told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
    assert_eq!(stored(&database), before);
    for (id, owner) in [("3", "user_id=cleo-3"), ("4", "user_id=cleo-3"), ("5", "user_id=null")] {
        told(&database, &["edit", "memory", id, owner, "--apply"]);
    }
    let others = ["'user:bo-22','note','{\"user_id\": \"cleo-3\"}'", "'food,sea','note','{\"user_id\": null}'", both];
    assert!(others.iter().all(|row| memories().contains(row)), "another owner stays: {}", memories());
    told(&database, &["purge", "ada-1", "--mentions", "redact", "--apply"]);
    let left = listed(&database, "memory", &["--order", "id"]);
    assert_eq!(left.iter().map(|row| row["id"].clone()).collect::<Vec<_>>(), ["2", "3", "4", "5"]);
    assert!(others.iter().all(|row| memories().contains(row)), "{}", memories());

    let database = store_of(&folder, "agno");
    let learning = |id, user| {
        format!(
            "('{id}', 'user_profile', 'ada-1', '{{\"learning\": \"rows\", \"user_id\": \"{user}\"}}', 1772461855, NULL)"
        )
    };
    let table = "CREATE TABLE agno_learnings (learning_id VARCHAR PRIMARY KEY, learning_type VARCHAR, user_id VARCHAR, \
                 content JSON NOT NULL, created_at BIGINT, updated_at BIGINT)";
    run(
        &database,
        &format!("{table}; INSERT INTO agno_learnings VALUES {}, {}", learning("l1", "ada-1"), learning("l2", "bo-22")),
    );
    for id in ["l1", "l2"] {
        told(&database, &["edit", "memory", id, "user_id=cleo-3", "text=sails", "--apply"]);
    }
    let learnings = stored(&database)["agno_learnings"].clone();
    for user in ["cleo-3", "bo-22"] {
        let content = format!("'cleo-3','{{\"learning\": \"sails\", \"user_id\": \"{user}\"}}'");
        assert!(learnings.contains(&content), "{learnings}");
    }
}

#[test]
fn a_text_of_several_places_is_edited_where_it_differs_and_words_replace_no_object() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "agno");
    let table = "CREATE TABLE agno_learnings (learning_id VARCHAR PRIMARY KEY, learning_type VARCHAR, user_id VARCHAR, \
                 content JSON NOT NULL, created_at BIGINT, updated_at BIGINT)";
    let facts = "{\"facts\": [{\"content\": \"likes tea\"}, {\"content\": \"rows\"}]}";
    run(
        &database,
        &format!("{table}; INSERT INTO agno_learnings VALUES ('l1', 'entity', 'ada-1', '{facts}', 1772461855, NULL)"),
    );
    let before = stored(&database);
    let (code, words) = refused(&database, &["edit", "memory", "l1", "text=likes tea", "--apply"]);
    assert_eq!((code, words.contains("give 2 lines")), (Some(5), true), "{words}");
    assert_eq!(stored(&database), before);
    told(&database, &["edit", "memory", "l1", "text=likes tea\nrows\nand sails", "--apply"]);
    let kept = "{\"facts\": [{\"content\": \"likes tea\"}, {\"content\": \"rows\\nand sails\"}]}";
    assert!(stored(&database)["agno_learnings"].contains(kept), "{:#?}", stored(&database));

    let more = "INSERT INTO store VALUES ('memories.bo', 'e', '{\"text\": \"\", \"content\": \"old\"}', NULL, NULL, NULL, NULL), \
                ('memories.bo', 'o', '{\"memory\": {\"a\": 1}}', NULL, NULL, NULL, NULL);";
    let database = made(&folder, "store", &format!("{}{more}", STORES[0].statements));
    told(&database, &["migrate", "--apply"]);
    let (empty, object) = ("[\"memories.bo\",\"e\"]", "[\"memories.bo\",\"o\"]");
    told(&database, &["edit", "memory", empty, "text=new", "--apply"]);
    assert!(stored(&database)["store"].contains("{\"text\": \"\", \"content\": \"new\"}"), "{:#?}", stored(&database));
    let (code, words) = refused(&database, &["edit", "memory", object, "text=new", "--apply"]);
    assert_eq!((code, words.contains("give JSON, not words")), (Some(5), true), "{words}");
    told(&database, &["edit", "memory", object, "text={\"a\": 2}", "--apply"]);
    let stored = stored(&database)["store"].replace(' ', "");
    assert!(stored.contains("{\"memory\":{\"a\":2}}"), "{stored}");
}

#[test]
fn words_replace_no_json_that_a_document_keeps_as_a_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "openai-agents");
    run(
        &database,
        "INSERT INTO agent_messages VALUES (3, 'chat:ada-1:1', \
           '{\"type\": \"function_call\", \"arguments\": \"{\\\"who\\\": 1}\"}', NULL), \
         (4, 'chat:ada-1:1', '{\"type\": \"function_call_output\", \"output\": \"[1]\"}', NULL), \
         (5, 'chat:ada-1:1', '{\"content\": [{\"text\": \"[1]\"}, {\"text\": \"tea\"}]}', NULL), \
         (6, 'chat:ada-1:1', '{\"type\": \"function_call_output\", \"output\": \"[1 of 2]\"}', NULL)",
    );
    let before = stored(&database);
    for (id, text, advice) in [
        ("3", "content=look", "give JSON, not words"),
        ("3", "content={who: 1}", "give JSON, not words"),
        ("4", "content=none", "give JSON, not words"),
        ("5", "content=[1]\ncoffee", "change the whole document"),
    ] {
        let (code, words) = refused(&database, &["edit", "segment", id, text, "--apply"]);
        assert_eq!((code, words.contains(advice)), (Some(5), true), "{id}: {words}");
    }
    assert_eq!(stored(&database), before);
    for (id, text) in [("3", "{\"who\": 2}"), ("4", "{\"rows\": []}"), ("6", "none")] {
        told(&database, &["edit", "segment", id, &format!("content={text}"), "--apply"]);
        assert_eq!(told(&database, &["show", "segment", id])["content"], text);
    }
    let messages = stored(&database)["agent_messages"].clone();
    assert!(messages.contains("\"{\\\"who\\\": 2}\""), "a text of JSON stays one: {messages}");
}

#[test]
fn a_hash_by_which_other_rows_name_a_memory_does_not_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "mcp-memory-service");
    run(
        &database,
        "CREATE TABLE memory_graph (source_hash TEXT, target_hash TEXT, PRIMARY KEY (source_hash, target_hash)); \
         CREATE TABLE beliefs (id INTEGER PRIMARY KEY, derived_from TEXT, contradicted_by TEXT); \
         UPDATE memories SET content_hash = 'c1edae55e8c0f770b6944500b854ad64a4f0410e7a0c63c072b6705dc742a0ee' WHERE id = 1; \
         INSERT INTO memory_graph SELECT content_hash, 'x' FROM memories WHERE id = 1; \
         INSERT INTO beliefs VALUES (1, '[\"b\"]', NULL)",
    );
    for (id, column, text) in [
        ("1", "memory_graph refer to this row by it (`source_hash`)", "tea"),
        ("2", "beliefs refer to this row", "coffee"),
    ] {
        let before = stored(&database);
        let (code, words) = refused(&database, &["edit", "memory", id, &format!("text=no {text}"), "--apply"]);
        assert_eq!(code, Some(5), "{words}");
        assert!(words.contains("memories.content_hash") && words.contains(column), "{words}");
        assert_eq!(stored(&database), before);
        told(&database, &["edit", "memory", id, "kind=fact", "--apply"]);
    }
    told(&database, &["edit", "memory", "1", "text=likes TÉA", "--apply"]);
    run(&database, "DELETE FROM memory_graph");
    told(&database, &["edit", "memory", "1", "text=no tea", "--apply"]);
}

#[test]
fn a_memory_of_a_second_table_is_followed_in_that_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "agno");
    run(
        &database,
        "CREATE TABLE agno_learnings (learning_id VARCHAR PRIMARY KEY, learning_type VARCHAR, namespace VARCHAR, user_id VARCHAR, \
          agent_id VARCHAR, team_id VARCHAR, session_id VARCHAR, entity_id VARCHAR, content JSON NOT NULL, created_at BIGINT, updated_at BIGINT); \
         INSERT INTO agno_learnings VALUES ('l1', 'entity', NULL, 'ada-1', NULL, NULL, NULL, NULL, '{\"learning\": \"lives in Ulm\"}', 1772461855, NULL)",
    );
    let before = stored(&database);
    let receipt = told(&database, &["supersede", "l1", "--by", "lives in Kiel", "--apply"]);
    assert_eq!(receipt["counts"], json!({"agno_learnings": {"insert": 1, "update": 1}}), "{receipt:#}");
    told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
    assert_eq!(stored(&database), before);
}

/// A learning whose JSON is kept as Python writes it, on either engine.
pub const ESCAPED: &str = "CREATE TABLE agno_learnings (learning_id VARCHAR PRIMARY KEY, learning_type VARCHAR, namespace VARCHAR, \
      user_id VARCHAR, agent_id VARCHAR, team_id VARCHAR, session_id VARCHAR, entity_id VARCHAR, content JSON NOT NULL, \
      created_at BIGINT, updated_at BIGINT); \
     INSERT INTO agno_learnings VALUES ('l1', 'user_profile', NULL, 'ada-1', NULL, NULL, NULL, NULL, \
      '{\"name\": \"Jo\\u00e3o Silva\", \"at\": \"\\u0055lm\"}', 1772461855, NULL)";

/// Text of a document is found as it reads, whatever escapes are in it.
pub fn escapes_are_letters(told: &dyn Fn(&[&str]) -> Value) {
    let shown = told(&["show", "memory", "l1"]);
    assert_eq!(shown["text"], "{\"name\": \"João Silva\", \"at\": \"Ulm\"}");
    for filter in ["text ~ João", "text ~ 'o Silva'", "text ~ ulm"] {
        let list = told(&["list", "memory", "--where", filter]);
        let ids: Vec<&Value> = list["rows"].as_array().expect("rows").iter().map(|row| &row["id"]).collect();
        assert_eq!(ids, ["l1"], "{filter}");
    }
    for asked in [&["find", "João"][..], &["find", "Ulm"], &["recall", "João", "--ranking", "boosted"]] {
        let answer = told(asked);
        assert!(answer["rows"].to_string().contains("\"l1\""), "{asked:?}: {answer:#}");
    }
    let ordered = told(&["list", "memory", "--order", "text"]);
    assert_eq!(ordered["rows"].as_array().map(Vec::len), Some(3), "{ordered:#}");
}

#[test]
fn letters_that_json_keeps_as_escapes_are_shown_and_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "agno");
    run(&database, ESCAPED);
    escapes_are_letters(&|arguments: &[&str]| told(&database, arguments));
}

#[test]
fn a_number_that_counts_conversations_is_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "openai-agents");
    let before = stored(&database);
    assert_eq!(refused(&database, &["purge", "1", "--apply"]).0, Some(3));
    assert_eq!(stored(&database), before);
}

#[test]
fn a_thread_whose_metadata_names_nobody_is_the_persons_in_its_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "langgraph-checkpoints");
    let uuid = "69e21b0a-cba2-0aad-d3a7-d615f56b5176";
    let threads = [
        ("cleo-3:7", "cleo-3"),
        ("users/cleo-3/8", "cleo-3"),
        (uuid, ""),
        ("4711", ""),
        ("t9", "bo"),
        ("ada-1:0", "ada-1"),
    ];
    for (thread, _) in &threads[..4] {
        run(
            &database,
            &format!(
                "INSERT INTO checkpoints VALUES ('{thread}', '', 'c', NULL, 'msgpack', x'80', CAST('{{}}' AS BLOB))"
            ),
        );
    }
    run(&database, "INSERT INTO checkpoints VALUES ('t9', '', 'c3', 'c2', 'msgpack', x'80', CAST('{}' AS BLOB))");
    let found = listed(&database, "episode", &[]);
    let owners: BTreeMap<&str, &str> = found
        .iter()
        .filter_map(|row| Some((row["id"].as_str()?, row["user_id"].as_str().unwrap_or_default())))
        .collect();
    assert_eq!(owners, BTreeMap::from(threads));
    assert_eq!(listed(&database, "episode", &["--where", "user_id = cleo-3"]).len(), 2);
    let masked = told(&database, &["list", "episode", "--mask"]).to_string();
    assert!(!masked.contains("cleo-3") && masked.contains(uuid), "{masked}");
    told(&database, &["purge", "cleo-3", "--mentions", "redact", "--apply"]);
    assert_eq!(listed(&database, "episode", &[]).len(), 4);
}

#[test]
fn segments_of_a_full_text_index_are_no_rows_that_vectors_are_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "mcp-memory-service");
    // Until they are merged, each write is a segment of the index, and its number looks like that of a row.
    for (id, user) in [(3, "ada-1"), (4, "bo-22"), (5, "cy-333")] {
        let row = format!("({id}, 'h{id}', 'rows', 'user:{user}', 'note', NULL, 1.0, 1.0, '', '', NULL, NULL)");
        run(&database, &format!("INSERT INTO memories VALUES {row}"));
    }
    run(
        &database,
        "CREATE TABLE memory_embeddings_rowids (rowid INTEGER PRIMARY KEY AUTOINCREMENT, id, chunk_id INTEGER, chunk_offset INTEGER); \
         INSERT INTO memory_embeddings_rowids (rowid, chunk_id, chunk_offset) SELECT id, 1, id FROM memories WHERE id < 5; \
         PRAGMA writable_schema = ON; \
         INSERT INTO sqlite_schema (type, name, tbl_name, rootpage, sql) VALUES ('table', 'memory_embeddings', 'memory_embeddings', 0, \
           'CREATE VIRTUAL TABLE memory_embeddings USING vec0(content_embedding FLOAT[4])'); \
         PRAGMA writable_schema = OFF",
    );
    let receipt = told(&database, &["purge", "ada-1", "--apply"]);
    assert_eq!(receipt["incomplete"], json!([]), "{receipt:#}");
    let left: Vec<String> = stored(&database)["memory_embeddings_rowids"].split('|').map(str::to_owned).collect();
    assert_eq!(left, ["2,NULL,1,2", "4,NULL,1,4"], "{receipt:#}");
}

#[test]
fn what_somebody_said_in_a_talk_of_mem0_goes_with_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "mem0-history");
    run(
        &database,
        "INSERT INTO messages VALUES ('t3', 'user_id=bo-22', 'user', 'I brew coffee', 'Mei-Ling', '2026-11-22T02:30:39.071335+00:00'); \
         INSERT INTO history VALUES ('h2', 'm2', NULL, 'brews coffee', 'ADD', '2026-11-22T02:30:39.071335+00:00', NULL, 0, 'Mei-Ling', 'user')",
    );
    let said = listed(&database, "segment", &["--where", "source_id=Mei-Ling"]);
    assert_eq!((said.len(), &said[0]["id"]), (1, &json!("t3")));
    let receipt = told(&database, &["purge", "Mei-Ling", "--apply"]);
    let expected = json!({"history": {"delete": 1}, "messages": {"delete": 1}});
    assert_eq!(receipt["counts"], expected, "{receipt:#}");
    assert_eq!(listed(&database, "segment", &[]).len(), 2);
}

#[test]
fn copies_that_wait_to_be_sent_go_with_their_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "claude-mem");
    run(
        &database,
        "CREATE TABLE sync_content_outbox (id INTEGER PRIMARY KEY, kind TEXT, origin_local_id TEXT, body TEXT); \
         CREATE TABLE sync_dead_letter (id INTEGER PRIMARY KEY, kind TEXT, origin_local_id TEXT, raw_body TEXT); \
         INSERT INTO sync_content_outbox VALUES (1, 'observation', '1', '{\"narrative\": \"tea\"}'), \
           (2, 'observation', '2', '{\"narrative\": \"coffee\"}'), (3, 'summary', '1', '{\"request\": \"coffee\"}'); \
         INSERT INTO sync_dead_letter SELECT * FROM sync_content_outbox",
    );
    told(&database, &["purge", "ada-stall", "--apply"]);
    let left = stored(&database);
    for table in ["sync_content_outbox", "sync_dead_letter"] {
        assert_eq!((left[table].matches("tea").count(), left[table].matches("coffee").count()), (0, 2), "{left:#?}");
    }
}

/// Tables with the rows that are left of them.
type LeftRows = &'static [(&'static str, &'static str)];

/// More rows for a store, and what is left of some tables when its person is erased.
const HANGING: &[(&str, &str, LeftRows)] = &[
    (
        "mcp-memory-service",
        "ALTER TABLE memories ADD COLUMN parent_id TEXT; \
         UPDATE memories SET superseded_by = 'a', parent_id = 'a' WHERE id = 2; \
         INSERT INTO memories (id, content_hash, content, tags, metadata, created_at) VALUES (3, 'z', 'x', '', '{}', 1), \
           (4, 'y', 'x', '', '{}', 1); \
         UPDATE memories SET superseded_by = 'z' WHERE id = 1; UPDATE memories SET parent_id = 'z' WHERE id = 4; \
         CREATE TABLE beliefs (id INTEGER PRIMARY KEY, derived_from TEXT, contradicted_by TEXT); \
         INSERT INTO beliefs VALUES (1, '[\"a\",\"b\"]', '[\"a\"]'), (2, '[\"a\"]', '[]'), (3, '[\"b\"]', '[\"a\"]'), (4, '[]', '[]'); \
         CREATE TABLE sync_events (seq INTEGER PRIMARY KEY, content_hash TEXT, payload TEXT); \
         INSERT INTO sync_events VALUES (1, 'gone', '{\"metadata\":{\"user_id\":\"ada-1\"}}'), \
           (2, 'gone', '{\"metadata\":{\"user_id\":\"bo-22\"}}'), (3, 'gone', '{\"tags\":[\"x\",\"user:ada-1\"]}')",
        &[
            (
                "memories",
                "2,'b','Bo likes coffee','food','note','{\"user_id\": \"bo-22\"}',1772461856.0,1772461856.0,'','',1772461857.0,'z',NULL\
                 |3,'z','x','',NULL,'{}',1.0,NULL,NULL,NULL,NULL,NULL,NULL|4,'y','x','',NULL,'{}',1.0,NULL,NULL,NULL,NULL,NULL,'z'",
            ),
            ("beliefs", "1,'[\"b\"]','[]'|3,'[\"b\"]','[]'|4,'[]','[]'"),
            ("sync_events", "2,'gone','{\"metadata\":{\"user_id\":\"bo-22\"}}'"),
        ],
    ),
    (
        "claude-mem",
        "CREATE TABLE tool_uses (id INTEGER PRIMARY KEY, content_session_id TEXT, session_db_id INTEGER, project TEXT, tool_input TEXT); \
         INSERT INTO tool_uses VALUES (1, 'c1', 1, '', 'x'), (2, 'c1', NULL, 'branch', 'x'), (3, 'c2', 2, 'branch', 'x'); \
         ALTER TABLE observations ADD COLUMN merged_into_project TEXT; ALTER TABLE session_summaries ADD COLUMN merged_into_project TEXT; \
         UPDATE observations SET merged_into_project = 'ada-stall' WHERE id = 2; \
         UPDATE session_summaries SET merged_into_project = 'ada-stall'",
        &[("tool_uses", "3,'c2',2,'branch','x'"), ("observations", ""), ("session_summaries", "")],
    ),
    (
        "open-webui",
        "CREATE TABLE access_grant (id TEXT, resource_type TEXT, resource_id TEXT, principal_type TEXT, principal_id TEXT); \
         INSERT INTO access_grant VALUES ('1', 'tool', 't', 'user', 'ada-1'), ('2', 'chat', 'c1', 'user', 'bo-22'), \
           ('3', 'note', 'c1', 'user', 'bo-22'); \
         CREATE TABLE message (id TEXT PRIMARY KEY, user_id TEXT, parent_id TEXT, reply_to_id TEXT); \
         INSERT INTO message VALUES ('m1', 'ada-1', NULL, NULL), ('m2', 'bo-22', 'm1', 'm1'), ('m3', 'bo-22', 'm2', NULL); \
         CREATE TABLE message_reaction (id TEXT, user_id TEXT, message_id TEXT); \
         INSERT INTO message_reaction VALUES ('1', 'bo-22', 'm1'), ('2', 'bo-22', 'm2'); \
         ALTER TABLE chat ADD COLUMN share_id TEXT; UPDATE chat SET share_id = 'c3' WHERE id = 'c1'; \
         INSERT INTO chat SELECT 'c' || n, 'shared-c' || o, 'tea', '{}', 1, 1, 0, '{}', NULL \
           FROM (SELECT 3 AS n, 1 AS o UNION SELECT 4, 1 UNION SELECT 5, 9); \
         CREATE TABLE feedback (id TEXT PRIMARY KEY, user_id TEXT, type TEXT, data JSON, meta JSON, snapshot JSON, created_at BIGINT); \
         INSERT INTO feedback VALUES ('1', 'ada-1', 'rating', '{}', '{}', '{}', 1), ('2', 'bo-22', 'rating', '{}', '{\"chat_id\":\"c1\"}', '{}', 1), \
           ('3', 'bo-22', 'rating', '{}', '{\"chat_id\":\"c2\"}', '{}', 1); \
         CREATE TABLE automation_run (id TEXT, automation_id TEXT, chat_id TEXT, error TEXT); \
         INSERT INTO automation_run VALUES ('1', 'a', 'c1', 'x'), ('2', 'a', 'c2', 'x')",
        &[
            ("chat", "'c5','shared-c9','tea','{}',1,1,0,'{}',NULL"),
            ("feedback", "'3','bo-22','rating','{}','{\"chat_id\":\"c2\"}','{}',1"),
            ("access_grant", "'3','note','c1','user','bo-22'"),
            ("message", "'m2','bo-22',NULL,NULL|'m3','bo-22','m2',NULL"),
            ("message_reaction", "'2','bo-22','m2'"),
            ("automation_run", "'2','a','c2','x'"),
        ],
    ),
];

#[test]
fn what_hangs_on_rows_of_a_person_in_a_store_goes_or_leads_to_them_no_more() {
    let folder = tempfile::tempdir().expect("a folder");
    for (layout, more, left) in HANGING {
        let store = STORES.iter().find(|store| store.layout == *layout).expect("a store");
        let database = made(&folder, layout, &format!("{}{more}", store.statements));
        told(&database, &["migrate", "--apply"]);
        told(&database, &["purge", store.person, "--apply"]);
        let now = stored(&database);
        for (table, rows) in *left {
            assert_eq!(now[*table], *rows, "{layout}");
        }
    }
}

#[test]
fn a_conclusion_from_memories_of_two_people_stays_and_lowers_the_word() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, from, word) in [("two", "[\"a\",\"b\"]", "verified with disclosures"), ("one", "[\"a\"]", "verified")] {
        let store = STORES.iter().find(|store| store.layout == "mcp-memory-service").expect("a store");
        let beliefs = format!(
            "CREATE TABLE beliefs (id INTEGER PRIMARY KEY, said TEXT, derived_from TEXT, contradicted_by TEXT); \
             INSERT INTO beliefs VALUES (1, 'both drink', '{from}', '[]')"
        );
        let database = made(&folder, name, &format!("{}{beliefs}", store.statements));
        told(&database, &["migrate", "--apply"]);
        let receipt = told(&database, &["purge", "ada-1", "--mentions", "redact", "--apply"]);
        assert_eq!(receipt["status"], word, "{receipt:#}");
        let is_told =
            receipt["disclosures"].to_string().contains("1 row of beliefs leads to the person and to other people");
        assert_eq!(is_told, name == "two", "{receipt:#}");
    }
}

#[test]
fn a_copy_tells_what_it_shows_in_another_form_from_what_it_leaves_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "claude-mem");
    run(
        &database,
        "ALTER TABLE observations ADD COLUMN spare TEXT; UPDATE observations SET spare = 'x', subtitle = 'y'",
    );
    let target = folder.path().join("native.db");
    told(&target, &["--layout", "mnemoscope", "migrate", "--apply"]);
    let mut command = Command::new(program());
    command.env("HOME", folder.path()).env_remove("MNEMOSCOPE_DATABASE");
    command.args(["copy", "--format", "json", "--from"]).arg(&database).arg("--to").arg(&target);
    let plan: Value = serde_json::from_slice(&command.output().expect("it runs").stdout).expect("a plan");
    let said = |column: &str| {
        let mut all = plan["disclosures"].as_array().expect("disclosures").iter().filter_map(Value::as_str);
        all.find(|sentence| sentence.contains(&format!("`observations.{column}`"))).unwrap_or_default().to_owned()
    };
    assert!(said("spare").ends_with("left out"), "{plan:#}");
    assert!(said("subtitle").ends_with("what is shown of them is copied"), "{plan:#}");
}

#[test]
fn every_tag_that_names_a_person_says_whose_a_memory_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "mcp-memory-service");
    run(
        &database,
        "INSERT INTO memories (id, content_hash, content, tags, metadata, created_at) VALUES (11, 'k', 'x', 'work, user:mia', '{}', 1), \
           (12, 'l', 'x', 'user:mia ,z', '{}', 1), (13, 'm', 'x', 'user:ravi,user:mia', '{}', 1), (14, 'n', 'x', 'user:mia-2,z', '{}', 1)",
    );
    let of = |id: &str| listed(&database, "memory", &["--where", &format!("id={id}")])[0].clone();
    assert_eq!((&of("11")["user_id"], &of("11")["tags"]), (&json!("mia"), &json!(["work", "user:mia"])));
    assert_eq!((&of("12")["user_id"], &of("13")["user_id"]), (&json!("mia"), &json!("ravi")));
    told(&database, &["migrate", "--apply"]);
    let receipt = told(&database, &["purge", "mia", "--apply"]);
    assert_eq!(receipt["counts"]["memories"], json!({"delete": 3}), "{receipt:#}");
    assert_eq!(of("14")["user_id"], "mia-2");
}

/// Chats of Open WebUI before it had a table of messages, and what was said of one.
pub const CHATS: &str = r#"
    INSERT INTO chat VALUES ('c2', 'bo-22', 'two', '{"models":["gpt"],"messages":[{"content":"one"},{"content":"three"}],
      "history":{"messages":{"aa":{"id":"aa","role":"user","content":"one"},"b":{"id":"b","parentId":"aa","content":"two"},
      "c":{"id":"c","parentId":"aa","content":[{"type":"text","text":"three"}]}}}}', 2, 2, false, '{}'),
      ('c3', 'shared-c2', 'two', '{"history":{"messages":{"aa":{"content":"one"}}}}', 2, 2, false, '{}'),
      ('c4', 'bo-22', '', '{"history":{}}', 2, 2, false, '{}');
    CREATE TABLE feedback (id TEXT PRIMARY KEY, user_id TEXT, type TEXT, data JSON, meta JSON, snapshot JSON, created_at BIGINT);
    INSERT INTO feedback VALUES ('f1', 'bo-22', 'rating', '{"rating":-1,"comment":"too long","model_id":"gpt"}', '{"chat_id":"c2"}', '{}', 1772461855),
      ('f2', 'bo-22', 'rating', '{"rating":1}', '{"chat_id":"c2"}', '{}', 1772461856), ('f3', 'bo-22', 'rating', 'null', NULL, NULL, 1772461857);"#;

/// Every message of [`CHATS`], their owner and their feedback.
pub fn chats_are_read(told: &dyn Fn(&[&str]) -> Value) {
    let rows = |entity: &str, more: &[&str]| {
        told(&[&["list", entity], more].concat())["rows"].as_array().expect("rows").clone()
    };
    let said = |chat: &str| {
        let rows = rows("segment", &["--where", &format!("episode_id={chat}"), "--order", "sequence"]);
        rows.iter().map(|row| row["content"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(said("c2"), ["one", "two", "three"]);
    assert_eq!((said("c1"), said("c4")), (vec!["Ada asks for tea".to_owned()], Vec::new()));
    assert_eq!(rows("episode", &["--where", "user_id=bo-22"]).len(), 3);
    let feedback = rows("feedback", &["--order", "created_at"]);
    let kinds: Vec<&Value> = feedback.iter().map(|row| &row["kind"]).collect();
    assert_eq!(kinds, ["thumbs_down", "thumbs_up", "rating"], "{feedback:#?}");
    assert_eq!((&feedback[0]["correction"], &feedback[0]["episode_id"]), (&json!("too long"), &json!("c2")));
}

#[test]
fn messages_feedback_and_shared_copies_of_older_chats_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "open-webui");
    run(&database, CHATS);
    chats_are_read(&|arguments: &[&str]| told(&database, arguments));
}

#[test]
fn a_bundle_has_the_words_of_numbers_that_a_row_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "memori");
    run(
        &database,
        "CREATE TABLE memori_subject (id INTEGER PRIMARY KEY, name TEXT); CREATE TABLE memori_predicate (id INTEGER PRIMARY KEY, content TEXT); \
         CREATE TABLE memori_object (id INTEGER PRIMARY KEY, name TEXT); \
         CREATE TABLE memori_knowledge_graph (id INTEGER PRIMARY KEY, uuid TEXT UNIQUE, entity_id INTEGER, subject_id INTEGER, \
           predicate_id INTEGER, object_id INTEGER, num_times INTEGER, date_last_time TEXT, date_created TEXT, date_updated TEXT); \
         INSERT INTO memori_subject VALUES (1, 'Ada'), (2, 'Bo'); INSERT INTO memori_predicate VALUES (1, 'lives in'); \
         INSERT INTO memori_object VALUES (1, 'Leeds'); \
         INSERT INTO memori_knowledge_graph VALUES (1, 'k1', 1, 1, 1, 1, 1, NULL, '2026-11-22 02:31:01', NULL), \
           (2, 'k2', 2, 2, 1, 1, 1, NULL, '2026-11-22 02:31:01', NULL)",
    );
    let bundle = folder.path().join("bundle");
    told(&database, &["export", "subject", "ada-1", "--out", bundle.to_str().expect("a path")]);
    let rows = std::fs::read_to_string(bundle.join("memori_knowledge_graph.jsonl")).expect("a file");
    let row: Value = serde_json::from_str(rows.trim()).expect("one row");
    assert_eq!((&row["shown"]["text"], &row["object_id"]), (&json!("Ada lives in Leeds"), &json!(1)), "{row:#}");
}

#[test]
fn who_pinned_archived_or_invited_is_named_by_a_pseudonym() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "open-webui");
    run(
        &database,
        "CREATE TABLE channel (id TEXT PRIMARY KEY, user_id TEXT, updated_by TEXT, archived_by TEXT, deleted_by TEXT); \
         INSERT INTO channel VALUES ('h1', 'bo-22', 'ada-1', 'ada-1', 'ada-1'); \
         CREATE TABLE channel_member (id TEXT PRIMARY KEY, user_id TEXT, invited_by TEXT); \
         INSERT INTO channel_member VALUES ('1', 'bo-22', 'ada-1'); \
         CREATE TABLE message (id TEXT PRIMARY KEY, user_id TEXT, pinned_by TEXT); \
         INSERT INTO message VALUES ('m1', 'bo-22', 'ada-1')",
    );
    told(&database, &["migrate", "--apply"]);
    let receipt = told(&database, &["purge", "ada-1", "--account", "erase", "--apply"]);
    assert_eq!(receipt["status"], "verified", "{receipt:#}");
    let now = stored(&database);
    for table in ["channel", "channel_member", "message"] {
        assert!(now[table].contains("bo-22") && !now[table].contains("ada-1"), "{table}: {}", now[table]);
    }
}

#[test]
fn what_findings_advise_on_a_store_is_not_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let hidden = "UPDATE store SET value = CAST(replace(CAST(value AS TEXT), 'tea', 'te\u{200b}a') AS BLOB)";
    let alike = "INSERT INTO memory_events SELECT 10 + n, 'desk', 'ada-1', 's' || n, 'e1', 'user', 1772461900.5 + n, \
         '{\"parts\":[{\"text\":\"How much is left for the cargo bike?\"}]}', 'how much is left' \
         FROM (SELECT 7 AS n UNION SELECT 8)";
    for (layout, more, kind) in
        [("langgraph-store", hidden, "hidden_characters"), ("google-adk-memory", alike, "near_duplicate_memory")]
    {
        let database = store_of(&folder, layout);
        run(&database, more);
        let found = told(&database, &["findings"]);
        let found = found["findings"].as_array().expect("findings");
        assert!(found.iter().any(|f| f["kind"] == kind), "{layout}: {found:#?}");
        for finding in found {
            let words = shell_words::split(finding["remedy"].as_str().expect("a command")).expect("words");
            told(&database, &words[3..].iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_memory_within_a_document_or_under_a_key_of_several_columns_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let kite = "Ada flies \"kites\"";
    for (layout, id, more) in [
        ("langgraph-store", json!("[\"memories.ada-1.s1\",\"k9\"]"), json!({"tags": ["kites"], "user_id": "ada-1"})),
        ("agno", json!("m9"), json!({"user_id": "ada-1"})),
    ] {
        let database = store_of(&folder, layout);
        let before = stored(&database);
        let mut row = json!({"id": id, "text": kite});
        row.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let file = folder.path().join("row.json");
        std::fs::write(&file, row.to_string()).expect("a file");
        let receipt = told(&database, &["record", "memory", &file.display().to_string(), "--apply"]);
        let shown = told(&database, &["show", "memory", id.as_str().expect("a text")]);
        for (column, value) in row.as_object().expect("an object") {
            assert_eq!(&shown[column], value, "{layout}: {shown:#}");
        }
        assert!(shown["created_at"].is_string() && shown["problems"].is_null(), "{layout}: {shown:#}");
        let next = told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
        assert_eq!(stored(&database), before, "{layout}: {next:#}");
        if layout == "langgraph-store" {
            std::fs::write(&file, json!({"id": id, "text": kite, "user_id": "bo"}).to_string()).expect("a file");
            let (code, words) = refused(&database, &["record", "memory", &file.display().to_string(), "--apply"]);
            assert_eq!(code, Some(5), "the id says who owns it: {words}");
            let receipt = told(&database, &["supersede", "[\"memories.ada-1.s1\",\"k1\"]", "--by", kite, "--apply"]);
            let found = listed(&database, "memory", &["--where", &format!("text={kite}")]);
            assert_eq!((&found[0]["tags"], &found[0]["user_id"]), (&json!(["food"]), &json!("ada-1")), "{found:#?}");
            told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
            assert_eq!(stored(&database), before);
        }
    }
}

/// Rows of a `LangGraph` store that name their person after a word, and one that names none.
pub const BEHIND_A_WORD: &str = "INSERT INTO store (prefix, key, value) VALUES ('org.acme.users.ada-1.prefs', 'k3', '{\"text\":\"likes rye\"}'), \
     ('org.acme.users.bo.prefs', 'k4', '{\"text\":\"likes oats\"}'), ('org.acme.plans', 'k5', '{\"text\":\"a plan\"}'), \
     ('org.user.global', 'k6', '{\"text\":\"a rule\"}'), ('global.ada-1', 'k7', '{\"text\":\"a law\"}'), \
     ('agents.helper.ada-1', 'k8', '{\"text\":\"likes figs\"}'), ('agents.helper', 'k9', '{\"text\":\"a habit\"}'), \
     ('threads.t1.bo', 'k10', '{\"text\":\"likes nuts\"}')";

/// Erases Ada, whose rows are in all these places, and then an owner of plans; other people's rows stay, and those of
/// nobody, which `stored` gives by their keys.
pub fn erased_behind_a_word(told: &dyn Fn(&[&str]) -> Value, stored: &dyn Fn(&[&str]) -> Vec<String>) {
    let kept = stored(&["k4", "k6", "k7", "k9", "k10"]);
    assert_eq!(kept.len(), 5);
    let owned = |user: &str| told(&["list", "memory", "--where", &format!("user_id={user}")])["rows"].clone();
    let texts =
        |rows: Value| -> Vec<Value> { rows.as_array().expect("rows").iter().map(|row| row["text"].clone()).collect() };
    for text in ["likes rye", "likes figs"] {
        assert!(texts(owned("ada-1")).contains(&json!(text)), "{:#}", owned("ada-1"));
    }
    let mut of_bo = texts(owned("bo"));
    of_bo.sort_by_key(ToString::to_string);
    assert_eq!((of_bo, texts(owned("plans"))), (vec![json!("likes nuts"), json!("likes oats")], vec![json!("a plan")]));
    assert_eq!(told(&["list", "memory", "--where", "session_id=t1"])["rows"].as_array().map(Vec::len), Some(1));
    let all = told(&["list", "memory"])["rows"].clone();
    let nobodys = all.as_array().expect("rows").iter().filter(|row| row["user_id"].is_null()).count();
    assert_eq!(nobodys, 3, "{all:#}");
    let receipt = told(&["purge", "ada-1", "--apply"]);
    assert_eq!(receipt["counts"]["store"], json!({"delete": 4}), "{receipt:#}");
    assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
    let mut left = texts(told(&["list", "memory"])["rows"].clone());
    left.sort_by_key(ToString::to_string);
    assert_eq!(left, ["Bo likes coffee", "a habit", "a law", "a plan", "a rule", "likes nuts", "likes oats"]);
    let receipt = told(&["purge", "plans", "--apply"]);
    assert_eq!(receipt["counts"]["store"], json!({"delete": 1}), "{receipt:#}");
    assert_eq!(stored(&["k4", "k6", "k7", "k9", "k10"]), kept);
}

#[test]
fn a_person_stands_after_a_word_in_a_namespace() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "langgraph-store");
    run(&database, BEHIND_A_WORD);
    let rows = |keys: &[&str]| -> Vec<String> {
        let all = stored(&database)["store"].clone();
        all.split('|')
            .filter(|row| keys.iter().any(|key| row.contains(&format!("'{key}'"))))
            .map(str::to_owned)
            .collect()
    };
    erased_behind_a_word(&|arguments| told(&database, arguments), &rows);
}

#[test]
fn a_hash_of_a_text_that_is_redacted_is_made_again_or_told() {
    let met = "met ada-lovelace at the fair";
    let unique = "CREATE UNIQUE INDEX once ON memori_entity_fact (entity_id, uniq);";
    for (said, index, status) in [
        (met, unique, "verified with disclosures"),
        (met, "", "verified with disclosures"),
        ("met Cy at the fair", unique, "verified"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let database = store_of(&folder, "memori");
        run(
            &database,
            &format!(
                "{index} UPDATE memori_entity SET external_id = 'ada-lovelace' WHERE id = 1; \
                 UPDATE memori_entity_fact SET content = '{said}' WHERE uuid = 'f2'"
            ),
        );
        let receipt =
            told(&database, &["purge", "ada-lovelace", "--mentions", "redact", "--account", "erase", "--apply"]);
        assert_eq!(receipt["status"], status, "{receipt:#}");
        let disclosures = receipt["disclosures"].as_array().expect("a list").iter().filter_map(Value::as_str);
        let hashes: Vec<&str> = disclosures.filter(|words| words.contains("hash")).collect();
        let expected = "memori_entity_fact.uniq: 1 hash of a text that is redacted stays: it confirms the old text to \
         anyone who guesses it";
        assert_eq!(hashes, if said == met && index == unique { vec![expected] } else { vec![] });
        let is_old = stored(&database)["memori_entity_fact"].contains("'u2'");
        assert_eq!(is_old, said != met || index == unique, "{said} {index}");
        let vector =
            "memori_entity_fact.content_embedding: 1 vector of a text that is redacted stays: it cannot be empty";
        assert_eq!(receipt["disclosures"].to_string().contains(vector), said == met, "{receipt:#}");
    }
}

#[test]
fn times_without_an_index_order_rows_however_they_are_spelled() {
    let folder = tempfile::tempdir().expect("a folder");
    let base = "DELETE FROM store; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) \
        INSERT INTO store SELECT 'memories.ada-1', 'k' || i, '{\"text\":\"t\"}', \
          printf('2026-03-%02d 10:00:%02d', 1 + (i * 7) % 28, i), NULL, NULL, NULL FROM n;";
    let stray = [
        "",
        "UPDATE store SET created_at = replace(created_at, ' ', 'T') WHERE key IN ('k3', 'k17');",
        "UPDATE store SET created_at = '2026-03-05 10:00:00.5+00:00' WHERE key = 'k9';",
        "UPDATE store SET created_at = 'yesterday evening, ' WHERE key = 'k9';",
        "UPDATE store SET created_at = 1772461855 WHERE key = 'k9';",
        "UPDATE store SET created_at = CAST('2026-03-05 10:00:00' AS BLOB) WHERE key = 'k9';",
        "UPDATE store SET created_at = NULL WHERE key IN ('k4', 'k9');",
    ];
    for (number, stray) in stray.iter().enumerate() {
        let database = made(&folder, &format!("store{number}"), &format!("{}{base}{stray}", STORES[0].statements));
        // Each page by a program of its own.
        let (mut listed, mut after): (Vec<Value>, Option<String>) = (Vec::new(), None);
        loop {
            let page = match &after {
                Some(after) => told(&database, &["list", "memory", "--limit", "7", "--after", after]),
                None => told(&database, &["list", "memory", "--limit", "7"]),
            };
            listed.extend(page["rows"].as_array().expect("rows").iter().cloned());
            after = page["next"].as_str().map(str::to_owned);
            if after.is_none() || listed.len() > 60 {
                break;
            }
        }
        let mut ids: Vec<&str> = listed.iter().filter_map(|row| row["id"].as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((listed.len(), ids.len()), (40, 40), "{stray}");
        let times: Vec<&str> = listed.iter().map(|row| row["created_at"].as_str().unwrap_or_default()).collect();
        assert!(times.windows(2).all(|pair| pair[0] >= pair[1]), "{stray}: {times:#?}");
    }
}

#[test]
fn words_in_the_place_of_a_json_scalar_are_a_json_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = "INSERT INTO store VALUES ('memories.bo', 'n', CAST('12.5' AS BLOB), NULL, NULL, NULL, NULL), \
                ('memories.bo', 'w', 'plain words', NULL, NULL, NULL, NULL);";
    let database = made(&folder, "store", &format!("{}{more}", STORES[0].statements));
    told(&database, &["migrate", "--apply"]);
    let before = stored(&database);
    for (key, kept) in [("n", hex::encode("\"Bo \\\"rows\\\"\"").to_uppercase()), ("w", "'Bo \"rows\"'".to_owned())] {
        let id = format!("[\"memories.bo\",\"{key}\"]");
        let receipt = told(&database, &["edit", "memory", &id, "text=Bo \"rows\"", "--apply"]);
        assert!(stored(&database)["store"].contains(&kept), "{key}: {:#?}", stored(&database));
        told(&database, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
        assert_eq!(stored(&database), before);
    }
}

#[test]
fn checkpoints_of_every_encoding_have_their_time_and_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "langgraph-checkpoints").expect("the store");
    // {"ts": …} pickled by protocol 0, as JSON, and encrypted.
    let more = "DELETE FROM writes; DELETE FROM checkpoints;
        INSERT INTO checkpoints VALUES ('bo:1', '', '1', NULL, 'pickle', CAST('(dVts' || char(10) || 'V2026-01-01T00:00:00+00:00'
          || char(10) || 's.' AS BLOB), CAST('{}' AS BLOB)),
          ('bo:2', '', '1', NULL, 'json', CAST('{\"ts\":\"2026-01-01T00:00:00+00:00\"}' AS BLOB), CAST('{}' AS BLOB)),
          ('bo:3', '', '1', NULL, 'msgpack+aes', x'00112233', CAST('{}' AS BLOB)),
          ('bo:4', '', '1f0e6a4d-0c3c-6000-8000-000000000000', NULL, 'msgpack+aes', x'00112233', CAST('{}' AS BLOB)),
          ('bo:5', '', '1', NULL, 'Checkpoint', '{\"ts\":\"2026-01-01T00:00:00+00:00\"}', '{}'),
          ('bo:6', '', '1F0E6A4D-0C3C-6000-8000-000000000000', NULL, 'dill', x'00112233', CAST('{}' AS BLOB));
        INSERT INTO writes VALUES ('bo:4', '', '1f0e6a4d-0c3c-6000-8000-000000000000', 'x', '', 0, 'messages', 'msgpack+aes', x'00');";
    let database = made(&folder, "kinds", &format!("{}{more}", store.statements));
    for (entity, column, rows, timed) in [("episode", "started_at", 6, 5), ("workflow_event", "created_at", 7, 6)] {
        let found = listed(&database, entity, &[]);
        assert!(found.iter().all(|row| row["problems"].is_null()), "{found:#?}");
        let times = found.iter().filter(|row| row[column] == "2026-01-01T00:00:00.000000Z").count();
        assert_eq!((found.len(), times), (rows, timed), "{found:#?}");
        let since = listed(&database, entity, &["--where", &format!("{column} >= 2026-01-01"), "--order", column]);
        assert_eq!(since.len(), timed, "{since:#?}");
        let told = found.iter().flat_map(|row| [&row["detail"], &row["data"]]).filter_map(Value::as_str);
        let mut told: Vec<&str> = told.collect();
        told.sort_unstable();
        assert_eq!(
            told[told.len() - 3..],
            ["encrypted: msgpack+aes", "encrypted: msgpack+aes", "not read: dill"][3 - told.len().min(3)..]
        );
    }
}

/// A thread of `LangGraph.js`: JSON with constructors, and versions that are plain numbers.
pub const IN_CONSTRUCTORS: &str = r#"[{"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"],
    "kwargs":{"content":"Ada asks for tea","id":"1"}},{"lc":1,"type":"constructor","id":["langchain_core","messages","AIMessage"],
    "kwargs":{"content":"Noted","id":"2"}}]"#;

#[test]
fn messages_in_constructors_are_the_words_of_a_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "langgraph-checkpoints");
    let state =
        format!("{{\"ts\":\"2026-01-01T00:00:00.000Z\",\"channel_values\":{{\"messages\":{IN_CONSTRUCTORS}}}}}");
    let add = |thread: &str, kind: &str, value: &str| {
        run(
            &database,
            &format!("INSERT INTO checkpoints VALUES ('{thread}', '', 'c', NULL, '{kind}', {value}, '{{}}')"),
        );
    };
    add("js-1", "json", &format!("CAST('{state}' AS BLOB)"));
    add("js-2", "Checkpoint", &format!("'{state}'"));
    for thread in ["js-1", "js-2"] {
        assert_eq!(told(&database, &["show", "episode", thread])["episode"]["detail"], "Ada asks for tea\nNoted");
    }
    assert!(told(&database, &["find", "Noted"])["rows"].to_string().contains("js-2"));
}

/// Threads whose ids begin with a channel, an application, or where it runs, with their owners.
const BEHIND_A_CHANNEL: [(&str, &str); 8] = [
    ("telegram:4471", "telegram:4471"),
    ("chat:telegram:4471:2", "telegram:4471"),
    ("telegram:9120", "telegram:9120"),
    ("slack:T024:U999", "slack:T024:U999"),
    ("slack/T024/U998", "slack/T024/U998"),
    ("prod:tamsin-1:3", "tamsin-1"),
    ("tenant:acme:user:tamsin-1", "tamsin-1"),
    ("email:tamsin-1", "tamsin-1"),
];

#[test]
fn a_channel_is_nobody_and_its_word_is_a_part_of_the_persons_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let row_of = |layout: &str, thread: &str| match layout {
        "openai-agents" => format!("INSERT INTO agent_sessions VALUES ('{thread}', NULL, NULL)"),
        _ => format!(
            "INSERT INTO checkpoints VALUES ('{thread}', '', 'c', NULL, 'msgpack', x'80', CAST('{{}}' AS BLOB))"
        ),
    };
    for layout in ["langgraph-checkpoints", "openai-agents"] {
        let database = store_of(&folder, layout);
        let threads = BEHIND_A_CHANNEL.iter().filter(|(thread, _)| layout != "openai-agents" || !thread.contains('/'));
        for (thread, owner) in threads {
            run(&database, &row_of(layout, thread));
            let row = &told(&database, &["show", "episode", thread])["episode"];
            assert_eq!(row["user_id"], *owner, "{layout} {thread}");
        }
        let before = stored(&database);
        for word in ["telegram", "slack", "tenant"] {
            assert_eq!(refused(&database, &["purge", word, "--apply"]).0, Some(3), "{layout} {word}");
        }
        assert_eq!(stored(&database), before);
        let left = || -> Vec<String> {
            let rows = listed(&database, "episode", &[]);
            rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
        };
        let all = left().len();
        told(&database, &["purge", "telegram:4471", "--apply"]);
        assert!(!left().iter().any(|id| id.contains("4471")), "{layout}: {:?}", left());
        told(&database, &["purge", "tamsin-1", "--apply"]);
        assert!(!left().iter().any(|id| id.contains("tamsin")), "{layout}: {:?}", left());
        assert_eq!(left().len(), all - 5, "{layout}: {:?}", left());
    }
}

#[test]
fn an_event_of_adk_has_its_own_time_and_not_the_servers() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "google-adk").expect("the store");
    let more = "DROP TABLE events; CREATE TABLE adk_internal_metadata (key TEXT);
        CREATE TABLE events (id VARCHAR NOT NULL, app_name VARCHAR NOT NULL, user_id VARCHAR NOT NULL, session_id VARCHAR NOT NULL,
          invocation_id VARCHAR NOT NULL, timestamp DATETIME NOT NULL, event_data TEXT, PRIMARY KEY (app_name, user_id, session_id, id));
        INSERT INTO events VALUES ('e1', 'desk', 'ada-1', 's0', 'i1', '2026-01-01 00:38:45.376205',
          '{\"timestamp\":1767245925.37621,\"author\":\"user\",\"content\":{\"parts\":[{\"text\":\"Ada asks\"}]}}'),
          ('e2', 'desk', 'ada-1', 's0', 'i2', '2026-01-01 00:38:46', '{}');";
    let database = made(&folder, "adk", &format!("{}{more}", store.statements));
    for entity in ["segment", "workflow_event"] {
        let rows = listed(&database, entity, &["--order", "created_at"]);
        let times: Vec<&Value> = rows.iter().map(|row| &row["created_at"]).collect();
        assert_eq!(times, ["2026-01-01T00:38:46.000000Z", "2026-01-01T05:38:45.376210Z"], "{rows:#?}");
    }
}

#[test]
fn what_is_spoken_summarised_or_went_wrong_is_what_an_event_of_adk_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "google-adk").expect("the store");
    let spoken = "INSERT INTO events VALUES
        ('v1', 'desk', 'ada-1', 's0', 'i3', 1772461857.0, '{\"author\":\"user\",\"input_transcription\":{\"text\":\"spoken by Ada\",\"finished\":true}}'),
        ('v2', 'desk', 'ada-1', 's0', 'i3', 1772461858.0, '{\"author\":\"desk\",\"output_transcription\":{\"text\":\"said to Ada\"}}'),
        ('v3', 'desk', 'ada-1', 's0', 'i4', 1772461859.0,
          '{\"author\":\"desk\",\"actions\":{\"compaction\":{\"compacted_content\":{\"parts\":[{\"text\":\"Ada wants tea\"}]}}}}'),
        ('v4', 'desk', 'ada-1', 's0', 'i5', 1772461860.0, '{\"author\":\"desk\",\"error_code\":\"x\",\"error_message\":\"no tea\"}');";
    let database = made(&folder, "adk", &format!("{}{spoken}", store.statements));
    let said = |database: &Path| -> Vec<Value> {
        let rows = listed(database, "segment", &["--order", "created_at"]).into_iter();
        rows.filter(|row| row["id"].to_string().contains("ada-1")).map(|row| row["content"].clone()).collect()
    };
    let words = ["spoken by Ada", "said to Ada", "Ada wants tea", "no tea"];
    assert_eq!(said(&database)[1..], words);
    assert_eq!(told(&database, &["find", "spoken by"])["rows"][0]["id"], "[\"desk\",\"ada-1\",\"s0\",\"v1\"]");
    // In the first generation these are columns, and a summary is in a pickle of {'compaction': …}.
    let columns = "DROP TABLE events; CREATE TABLE events (id TEXT, app_name TEXT, user_id TEXT, session_id TEXT, invocation_id TEXT, \
          author TEXT, actions BLOB, timestamp DATETIME, content TEXT, error_message TEXT, input_transcription TEXT, output_transcription TEXT,
          PRIMARY KEY (id, app_name, user_id, session_id));
        INSERT INTO events VALUES
          ('v1', 'desk', 'ada-1', 's0', 'i3', 'user', x'80057d942e', '2026-01-01 00:00:01', NULL, NULL, '{\"text\": \"spoken by Ada\"}', NULL),
          ('v2', 'desk', 'ada-1', 's0', 'i3', 'desk', x'80057d942e', '2026-01-01 00:00:02', 'null', NULL, NULL, '{\"text\": \"said to Ada\"}'),
          ('v3', 'desk', 'ada-1', 's0', 'i4', 'desk', CAST('(dVcompaction' || char(10) || '(dVcompacted_content' || char(10) || '(dVparts'
            || char(10) || '((dVtext' || char(10) || 'VAda wants tea' || char(10) || 'sl' || 'sss.' AS BLOB), '2026-01-01 00:00:03', NULL, NULL, NULL, NULL),
          ('v4', 'desk', 'ada-1', 's0', 'i5', 'desk', x'80057d942e', '2026-01-01 00:00:04', NULL, 'no tea', NULL, NULL);";
    let database = made(&folder, "adk_pickle", &format!("{}{columns}", store.statements));
    assert_eq!(said(&database), words);
}

#[test]
fn a_copy_of_a_table_under_another_name_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "langgraph-store");
    let others = || -> Vec<Value> {
        let status = told(&database, &["status"]);
        let all = status["capabilities"].as_array().expect("capabilities").clone();
        all.into_iter().filter(|capability| capability["name"] == "every_store").collect()
    };
    assert!(others().is_empty(), "{:#?}", others());
    run(&database, "CREATE TABLE store_of_spring AS SELECT * FROM store");
    let words = "the table store_of_spring has the columns of store";
    let told_words = others()[0]["reason"].to_string();
    assert!(told_words.contains(words), "{told_words}");
    told(&database, &["migrate", "--apply"]);
    let receipt = told(&database, &["purge", "ada-1", "--mentions", "redact", "--apply"]);
    assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
    assert!(receipt["disclosures"].to_string().contains(words), "{receipt:#}");
}

#[test]
fn a_shared_copy_of_a_chat_that_is_gone_may_be_anybodys() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "open-webui");
    run(&database, "INSERT INTO chat SELECT 'c8', 'shared-c1', title, chat, 1, 1, 0, meta FROM chat WHERE id = 'c1'");
    run(&database, "INSERT INTO chat SELECT 'c9', 'shared-gone', title, '{}', 1, 1, 0, meta FROM chat WHERE id = 'c1'");
    let owner = |id: &str| listed(&database, "episode", &["--where", &format!("id={id}")])[0]["user_id"].clone();
    assert_eq!((owner("c8"), owner("c9")), (json!("ada-1"), Value::Null));
    told(&database, &["migrate", "--apply"]);
    let receipt = told(&database, &["purge", "ada-1", "--mentions", "redact", "--account", "erase", "--apply"]);
    assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
    assert!(receipt["disclosures"].to_string().contains("1 row of chat leads to no owner"), "{receipt:#}");
    assert!(listed(&database, "episode", &["--where", "id=c8"]).is_empty());
}

#[test]
fn agno_is_known_by_any_of_its_tables_and_messages_of_any_kind_are_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let memories = "CREATE TABLE agno_memories (memory_id VARCHAR PRIMARY KEY, memory JSON NOT NULL, input VARCHAR, agent_id VARCHAR,
          team_id VARCHAR, user_id VARCHAR, topics JSON, updated_at BIGINT);
        INSERT INTO agno_memories VALUES ('m1', '\"Ada likes tea\"', NULL, NULL, NULL, 'ada', NULL, 1772461855);";
    let database = made(&folder, "memories", memories);
    let row = &listed(&database, "memory", &[])[0];
    assert_eq!((&row["text"], &row["created_at"]), (&json!("Ada likes tea"), &json!("2026-03-02T14:30:55.000000Z")));
    let runs = "CREATE TABLE agno_runs (run_id VARCHAR PRIMARY KEY, session_id VARCHAR, run_type VARCHAR, user_id VARCHAR, \
          run_index INTEGER, run_data JSON, created_at BIGINT, updated_at BIGINT);
        INSERT INTO agno_runs VALUES ('r1', 's1', 'agent', 'ada', 0, '{\"messages\":[\"bare\",null,{\"role\":\"user\",\"content\":\"hi\"},
          {\"role\":\"user\",\"content\":\"old\",\"from_history\":true}]}', 1772461855, NULL);";
    let database = made(&folder, "runs", runs);
    assert_eq!(listed(&database, "segment", &[]).len(), 3);
}

#[test]
fn a_table_under_another_name_is_read_where_its_columns_tell_it_and_else_missed() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = store_of(&folder, "agno");
    let missed = || told(&database, &["status"])["layouts"][0]["missing"].clone();
    run(
        &database,
        "CREATE TABLE agno_sessions (session_id VARCHAR PRIMARY KEY, agent_id VARCHAR, team_id VARCHAR, workflow_id VARCHAR, \
         user_id VARCHAR, session_data JSON, runs JSON, summary JSON, created_at BIGINT, updated_at BIGINT)",
    );
    let runs = "workflow_event.table: table `agno_runs` does not exist";
    assert_eq!(missed(), json!([runs]), "an entity with another table here misses none");
    run(&database, "ALTER TABLE agno_memories RENAME TO user_memories");
    assert_eq!((missed(), listed(&database, "memory", &[]).len()), (json!([runs]), 2));
    run(&database, "ALTER TABLE user_memories DROP COLUMN topics");
    let lines = [
        "feedback.table: table `agno_memories`",
        "memory.table: table `agno_memories`",
        "memory.table: table `agno_learnings`",
    ];
    let lines: Vec<String> =
        lines.iter().map(|line| format!("{line} does not exist")).chain([runs.to_owned()]).collect();
    assert_eq!(missed(), json!(lines));
    let database = store_of(&folder, "openai-agents");
    let before = (listed(&database, "episode", &[]), listed(&database, "segment", &[]));
    run(&database, "ALTER TABLE agent_sessions RENAME TO my_chats; ALTER TABLE agent_messages RENAME TO turns");
    assert_eq!((listed(&database, "episode", &[]), listed(&database, "segment", &[])), before);
    // A name may hold the usual one of the other table.
    run(&database, "ALTER TABLE my_chats RENAME TO agent_messages_sessions");
    assert_eq!((listed(&database, "episode", &[]), listed(&database, "segment", &[])), before);
}

#[test]
fn a_person_called_like_a_word_of_json_spoils_no_masked_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = "INSERT INTO store VALUES ('memories.NULL', 'n', '{\"text\":\"x\"}', NULL, NULL, NULL, NULL), \
                ('memories.Rows', 'n', '{\"text\":\"x\"}', NULL, NULL, NULL, NULL);";
    let database = made(&folder, "store", &format!("{}{more}", STORES[0].statements));
    assert_eq!(listed(&database, "memory", &["--mask"]).len(), 5);
}

#[test]
fn memories_are_recalled_by_words_and_by_vectors() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = made(&folder, "store", STORES[0].statements);
    for ranking in ["boosted", "similar", "proven"] {
        let found = told(&database, &["recall", "coffee", "--ranking", ranking]);
        assert_eq!(
            (&found["rows"][0]["id"], &found["query"]["used"]),
            (&json!("[\"memories.ada-11\",\"k1\"]"), &json!("keyword"))
        );
        let terms = found["rows"][0]["terms"].as_array().expect("terms");
        let sum: f64 = terms.iter().filter_map(|term| term["contribution"].as_f64()).sum();
        assert!((sum - found["rows"][0]["score"].as_f64().expect("a score")).abs() < 1e-9, "{found:#}");
    }
    let like = told(&database, &["recall", "--like", "[\"memories.ada-1.s1\",\"k1\"]", "--ranking", "similar"]);
    assert_eq!(like["query"]["used"], "vector", "{like:#}");
}

#[test]
fn a_table_that_is_missing_takes_only_the_columns_that_are_read_from_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = made(&folder, "memori", STORES.iter().find(|s| s.layout == "memori").expect("a store").statements);
    let before = listed(&database, "memory", &[]);
    run(&database, "DROP TABLE memori_session");
    let after = listed(&database, "memory", &[]);
    let texts = |rows: &[Value]| rows.iter().map(|row| row["text"].clone()).collect::<Vec<_>>();
    assert_eq!((texts(&after), after.is_empty()), (texts(&before), false));
}

#[test]
fn conversations_beside_memories_do_not_take_their_place_in_a_recall() {
    for beside in ["langgraph-checkpoints", "openai-agents"] {
        let folder = tempfile::tempdir().expect("a folder");
        let database = made(&folder, "store", STORES[0].statements);
        run(&database, STORES.iter().find(|store| store.layout == beside).expect("a store").statements);
        let found = told(&database, &["recall", "coffee", "--ranking", "similar"]);
        assert_eq!(found["rows"][0]["id"], json!("[\"memories.ada-11\",\"k1\"]"), "{beside}: {found:#}");
    }
}

/// A table that a store lacks, and how many rows of an entity are there all the same, with the text of the first.
const WITHOUT: &[(&str, &str, &str, usize, &str)] = &[
    ("langgraph-store", "DROP TABLE store_migrations", "memory", 3, "Bo likes coffee"),
    ("open-webui", "ALTER TABLE chat ADD COLUMN more TEXT", "segment", 1, "Ada asks for tea"),
];

#[test]
fn a_store_without_a_side_table_is_known_and_its_words_are_read_from_where_they_are() {
    for (layout, statement, entity, rows, first) in WITHOUT {
        let folder = tempfile::tempdir().expect("a folder");
        let store = STORES.iter().find(|store| store.layout == *layout).expect("a store");
        let database = made(&folder, layout, store.statements);
        run(&database, statement);
        let found = listed(&database, entity, &[]);
        let text = if *entity == "memory" { "text" } else { "content" };
        assert_eq!((found.len(), &found[0][text]), (*rows, &json!(first)), "{layout}: {found:#?}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let history = "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, \
          created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT);
        INSERT INTO history VALUES ('h1', 'm1', NULL, 'Ada likes tea', 'ADD', '2026-01-01T00:00:00+00:00', NULL, 0, NULL, NULL);";
    let database = made(&folder, "history", history);
    assert_eq!(listed(&database, "audit_entry", &[])[0]["payload"]["new_memory"], "Ada likes tea");
}

#[test]
fn runs_of_agno_without_messages_and_words_of_feedback_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "agno").expect("a store");
    let more = "UPDATE agno_memories SET feedback = 'wrong: twice' WHERE memory_id = 'm2';
        CREATE TABLE agno_runs (run_id VARCHAR PRIMARY KEY, session_id VARCHAR, run_index INTEGER, run_data JSON, created_at BIGINT);
        INSERT INTO agno_runs VALUES ('r1', 's1', 0, '{\"input\":{\"input_content\":\"in\"},\"content\":\"out\",\"messages\":[],
          \"member_responses\":[{\"content\":\"member\"}]}', 1772461855), ('r2', 's1', 1, 'no JSON', 1772461855),
          ('r3', 's1', 2, '{\"input\":{\"input_content\":\"hi\"},\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}', 1772461855),
          ('r4', 's1', 3, '{\"input\":\"do it\",\"step_results\":[{\"content\":\"a step\"}]}', 1772461855);";
    let database = made(&folder, "agno", &format!("{}{more}", store.statements));
    let mut said: Vec<Value> = listed(&database, "segment", &[]).iter().map(|row| row["content"].clone()).collect();
    said.sort_by_key(Value::to_string);
    assert_eq!(said, ["a step", "do it", "hi", "in", "member", "out"]);
    let feedback = listed(&database, "feedback", &["--where", "id=m2"]);
    assert_eq!((&feedback[0]["kind"], &feedback[0]["correction"]), (&json!("comment"), &json!("wrong: twice")));
}

#[test]
fn a_checkpoint_without_a_type_is_read_or_says_once_why_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "langgraph-checkpoints").expect("the store");
    let more =
        "UPDATE checkpoints SET type = NULL; UPDATE checkpoints SET checkpoint = x'c1c1' WHERE checkpoint_id = 'c2';";
    let database = made(&folder, "types", &format!("{}{more}", store.statements));
    let episodes = listed(&database, "episode", &[]);
    let of = |id: &str| episodes.iter().find(|row| row["id"] == id).expect("an episode").clone();
    assert_eq!(of("ada-1:0")["detail"], "Ada asks for tea");
    let problems = of("t9")["problems"].as_array().expect("problems").clone();
    let mut columns: Vec<&str> = problems.iter().filter_map(|problem| problem["column"].as_str()).collect();
    columns.sort_unstable();
    assert_eq!(columns, ["detail", "ended_at", "started_at"], "{problems:#?}");
}

#[test]
fn memories_beside_other_layouts_episodes_are_named_in_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = made(&folder, "store", STORES[0].statements);
    let runs = "CREATE TABLE workflow_runs (run_id TEXT PRIMARY KEY, workflow_name TEXT, status TEXT, created_at TIMESTAMP,
          updated_at TIMESTAMP, started_at TIMESTAMP, completed_at TIMESTAMP, input_args TEXT, input_kwargs TEXT, result TEXT,
          error TEXT, metadata TEXT, parent_run_id TEXT, continued_from_run_id TEXT);
        CREATE TABLE events (event_id TEXT PRIMARY KEY, run_id TEXT, sequence INTEGER, type TEXT, timestamp TIMESTAMP, data TEXT);
        CREATE TABLE hooks (hook_id TEXT PRIMARY KEY, run_id TEXT, status TEXT, payload TEXT, created_at TIMESTAMP);";
    run(&database, runs);
    let id = "[\"memories.ada-11\",\"k1\"]";
    let found = told(&database, &["recall", "--like", id, "--ranking", "similar"]);
    let notes = found["query"]["notes"].to_string();
    assert!(
        notes.contains("is a memory and only used for comparison") && notes.contains("`--layout langgraph-store`"),
        "{notes}"
    );
    let found = told(&database, &["--layout", "langgraph-store", "recall", "coffee", "--ranking", "similar"]);
    assert_eq!(found["rows"][0]["id"], id);
    let found = told(&database, &["recall", "coffee", "--ranking", "proven"]);
    assert!(!found.to_string().contains("-0.0"), "{found:#}");
}

#[test]
fn memories_are_recalled_told_and_judged_as_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = made(&folder, "store", STORES[0].statements);
    let found = told(&database, &["recall", "coffee", "--ranking", "similar", "--agent", "nobody"]);
    let notes = found["query"]["notes"].to_string();
    assert!(notes.contains("--agent is not used") && found["rows"][0].is_object(), "{notes}");
    // Of several vectors of the row that is asked with, any is near enough.
    let nearer = "INSERT INTO store_vectors VALUES ('memories.ada-1.s1', 'k1', 'a', x'000000000000803F')";
    for statement in ["SELECT 1", nearer] {
        run(&database, statement);
        let found = told(&database, &["recall", "--like", "[\"memories.ada-1.s1\",\"k1\"]", "--ranking", "similar"]);
        let score = if statement == nearer { 1.0 } else { 0.0 };
        assert_eq!(found["rows"][0]["score"], json!(score), "{found:#}");
    }
    let store = |layout| STORES.iter().find(|store| store.layout == layout).expect("the store").statements;
    let database = made(&folder, "events", store("google-adk-memory"));
    let found = told(&database, &["recall", "tea", "--ranking", "similar"]);
    assert_eq!((&found["query"]["keywords_by"], &found["rows"][0]["id"]), (&json!("index"), &json!("1")));
    let context = told(&database, &["context", "tea", "--ranking", "similar"]);
    assert!(context["text"].as_str().is_some_and(|text| text.ends_with("   Text: Ada asks for tea")), "{context:#}");
    // Its sessions have the ids of its memories.
    let database = made(&folder, "coding", store("claude-mem"));
    let found = told(&database, &["recall", "--like", "1", "--ranking", "similar"]);
    let notes = found["query"]["notes"].to_string();
    assert!(notes.contains("`1` is also the id of an episode: the memory is used"), "{notes}");
    let judged = folder.path().join("judged.jsonl");
    std::fs::write(&judged, r#"{"query": "tea", "relevant": ["1"]}"#).expect("a file");
    let found = told(&database, &["evaluate", "--judged", judged.to_str().expect("a path")]);
    assert_eq!((&found["kind"], &found["quality"]["mrr"]["value"]), (&json!("memory"), &json!(1.0)), "{found:#}");
}

#[test]
fn feedback_finds_its_episode_beside_conversations_with_keys_of_several_columns() {
    block_on(async {
        let worlds = [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await];
        for world in worlds.into_iter().flatten() {
            let folder = tempfile::tempdir().expect("a folder");
            let database = PathBuf::from(address(&world));
            let asked = |arguments: &[&str]| told_in(folder.path(), &database, arguments)["rows"].clone();
            let (feedback, recall) = (["list", "feedback"], ["recall", "x", "--ranking", "boosted"]);
            let before = (asked(&feedback), asked(&recall).as_array().map(Vec::len));
            let conversations = STORES.iter().find(|store| store.layout == "google-adk").expect("a store");
            meddle(&world, conversations.statements).await;
            let (after, recalled) = (asked(&feedback), asked(&recall).as_array().map(Vec::len));
            assert_eq!((after, recalled > Some(0)), (before.0, before.1 > Some(0)));
        }
    });
}

#[test]
fn a_store_without_its_search_index_is_searched_row_by_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "mcp-memory-service").expect("the store");
    let older = "DROP TRIGGER fi; DROP TRIGGER fd; DROP TRIGGER fu; DROP TABLE memory_content_fts;";
    for (name, more) in [("newer", ""), ("older", older)] {
        let database = made(&folder, name, &format!("{}{more}", store.statements));
        let found = told(&database, &["find", "likes tea"]);
        assert_eq!(found["rows"][0]["id"], "1", "{name}: {found:#}");
        let found = told(&database, &["recall", "tea", "--ranking", "similar"]);
        assert_eq!(found["rows"][0]["id"], "1", "{name}: {found:#}");
    }
}

/// The part of the language's page between a heading and the next, by the language of its fenced blocks.
fn example(language: &str) -> String {
    let page = include_str!("../../../docs/layouts.md");
    let part =
        page.split("## A worked example").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the example");
    let block = part.split(&format!("```{language}\n")).nth(1).and_then(|rest| rest.split("```").next());
    block.expect("a block").to_owned()
}

#[test]
fn the_worked_example_of_the_language_works() {
    let folder = tempfile::tempdir().expect("a folder");
    // zlib of {"text":"Ada likes tea"} and of {"lines":["Bo","rows"]}.
    let rows_of_it = "INSERT INTO notes VALUES
          ('notes.ada-1', 'n1', x'789cab562a49ad2851b252724c4954c8c9cc4e2d5628494d54aa050064470818', 'food,drink', NULL),
          ('team.bo-22', 'n2', x'789cab56cac9cc4b2d56b28a5672ca57d2512aca2f2f568aad05005982077a', '', 1772461857);
        INSERT INTO note_vectors VALUES ('notes.ada-1', 'n1', x'0000803F'), ('team.bo-22', 'n2', x'0000803F');
        INSERT INTO talks_2026 VALUES ('t1', 'room=4&user=ada-1', '[{\"by\":\"ada\",\"said\":\"tea?\"},{\"by\":\"bot\",\"said\":\"yes\"}]', 1772461855),
          ('t2', 'user=bo-22', '[]', 1772461856);";
    let database = made(&folder, "notes", &format!("{}{rows_of_it}", example("sql")));
    let layout = folder.path().join("notes.toml");
    std::fs::write(&layout, example("toml")).expect("a file");
    let layout = layout.to_str().expect("a path");
    let with = |arguments: &[&str]| told(&database, &[&["--layout", layout], arguments].concat());
    assert_eq!(told(&database, &["layouts", "check", layout])["errors"], json!([]));
    let memories = with(&["list", "memory", "--order", "id"]);
    let one = &memories["rows"][0];
    assert_eq!(
        (&one["id"], &one["text"]),
        (&json!("[\"notes.ada-1\",\"n1\"]"), &json!("Ada likes tea")),
        "{memories:#}"
    );
    assert_eq!((&one["user_id"], &one["tags"]), (&json!("ada-1"), &json!(["food", "drink"])));
    let two = &memories["rows"][1];
    assert_eq!((&two["text"], &two["status"]), (&json!("Bo\nrows"), &json!("deleted")), "{memories:#}");
    let segments = with(&["list", "segment", "--order", "sequence"]);
    assert_eq!(segments["rows"].as_array().map(Vec::len), Some(2), "{segments:#}");
    assert_eq!((&segments["rows"][1]["id"], &segments["rows"][1]["content"]), (&json!("[\"t1\",1]"), &json!("yes")));
    assert_eq!(with(&["show", "segment", "[\"t1\",0]"])["content"], "tea?");
    let talks = with(&["list", "episode"]);
    assert_eq!(
        (&talks["rows"][1]["user_id"], &talks["rows"][1]["started_at"]),
        (&json!("ada-1"), &json!("2026-03-02T14:30:55.000000Z"))
    );
    with(&["migrate", "--apply"]);
    with(&["purge", "ada-1", "--apply"]);
    assert_eq!(with(&["list", "memory"])["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!(with(&["list", "episode"])["rows"].as_array().map(Vec::len), Some(1));
}
