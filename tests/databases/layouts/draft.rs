//! `layouts draft` and `layouts columns` through the command: on small databases of the shapes that agents' memories
//! have, and on real ones where those are at hand.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use sqlx::Connection as _;
use tempfile::TempDir;

use crate::support::fixtures::{Layout, build_sqlite};

/// A database, and what a draft must find in it.
struct Kind {
    name: &'static str,
    statements: &'static [&'static str],
    entity: &'static str,
    /// Words that the first listed row's text must hold.
    text: &'static str,
    /// The time that it must show.
    time: &'static str,
    /// Lines of the draft that name the person.
    person: &'static str,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "plain rows, seconds",
        statements: &[
            "CREATE TABLE remembered_facts (fact_id VARCHAR PRIMARY KEY, body TEXT, user_id VARCHAR, created_at BIGINT, \
             updated_at BIGINT, kind VARCHAR, shelf_mark VARCHAR)",
            "INSERT INTO remembered_facts VALUES ('f1', 'Ada wants a window seat in the morning', 'ada', 1772461855, \
             1772461999, 'preference', 'x-7')",
        ],
        entity: "memory",
        text: "window seat",
        time: "2026-03-02T14:30:55.000000Z",
        person: "table = \"remembered_facts\"\ncolumn = \"user_id\"",
    },
    Kind {
        name: "a JSON string with its quotes",
        statements: &[
            "CREATE TABLE x_memories (memory_id TEXT PRIMARY KEY, memory JSON NOT NULL, owner TEXT, created_at BIGINT)",
            "INSERT INTO x_memories VALUES ('m1', '\"Ada cooks without onions\"', 'ada', 1772461855)",
        ],
        entity: "memory",
        text: "Ada cooks without onions",
        time: "2026-03-02T14:30:55.000000Z",
        person: "column = \"owner\"",
    },
    Kind {
        name: "JSON events, a composite key, real seconds",
        statements: &[
            "CREATE TABLE talks (app TEXT, user_id TEXT, id TEXT, state TEXT NOT NULL, create_time REAL, \
             PRIMARY KEY (app, user_id, id))",
            "CREATE TABLE turns (id TEXT, app TEXT, user_id TEXT, talk_id TEXT, timestamp REAL, event_data TEXT, \
             PRIMARY KEY (id, app, user_id, talk_id), FOREIGN KEY (app, user_id, talk_id) REFERENCES talks (app, user_id, id))",
            "INSERT INTO talks VALUES ('desk', 'ada', 's0', '{}', 1772490445.0)",
            "INSERT INTO turns VALUES ('e1', 'desk', 'ada', 's0', 1772490445.5, \
             '{\"content\":{\"parts\":[{\"text\":\"How much is left for the bike?\"}],\"role\":\"user\"},\"author\":\"user\"}')",
        ],
        entity: "segment",
        text: "How much is left for the bike?",
        time: "2026-03-02T22:27:25.500000Z",
        person: "table = \"turns\"\ncolumn = \"user_id\"",
    },
    Kind {
        name: "a store of JSON blobs under a composite key",
        statements: &[
            "CREATE TABLE store (space TEXT, name TEXT, value TEXT, created_at TIMESTAMP, PRIMARY KEY (space, name))",
            "INSERT INTO store VALUES ('memories.ada', 'k1', CAST('{\"text\":\"Ada met Bo at the market\",\"by\":{\"user_id\":\"ada\"}}' \
             AS BLOB), '2026-11-22 02:30:14')",
        ],
        entity: "memory",
        text: "Ada met Bo at the market",
        time: "2026-11-22T02:30:14.000000Z",
        person: "column = \"value\"\npath = \"by.user_id\"",
    },
    Kind {
        name: "everything in one JSON column",
        statements: &[
            "CREATE TABLE vault (id TEXT PRIMARY KEY, embedding TEXT, payload JSON)",
            "INSERT INTO vault VALUES ('v1', '[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8]', '{\"data\":\"Ada pays half of the rent\",\
             \"customer_id\":\"ada\",\"created_at\":\"2026-11-22T02:30:37+00:00\",\"hash\":\"6f599cdede1dd758\"}')",
        ],
        entity: "memory",
        text: "Ada pays half of the rent",
        time: "2026-11-22T02:30:37.000000Z",
        person: "column = \"payload\"\npath = \"customer_id\"",
    },
    Kind {
        name: "no time but in the key",
        statements: &[
            "CREATE TABLE checkpoints (thread TEXT, checkpoint_id TEXT, checkpoint BLOB, summary TEXT, metadata BLOB, \
             PRIMARY KEY (thread, checkpoint_id))",
            "INSERT INTO checkpoints VALUES ('t1', '1f1e61ca-7136-67f9-bfff-247d82c8ff97', X'87A17604A27473D9', \
             'Ada asked for the train times', CAST('{\"user_id\":\"ada\",\"step\":1}' AS BLOB))",
        ],
        entity: "segment",
        text: "Ada asked for the train times",
        time: "2026-11-22T02:30:16.",
        person: "column = \"metadata\"\npath = \"user_id\"",
    },
    Kind {
        name: "a person by an outside id, milliseconds",
        statements: &[
            "CREATE TABLE beings (id INTEGER PRIMARY KEY, external_id TEXT UNIQUE)",
            "CREATE TABLE being_facts (id INTEGER PRIMARY KEY, being_id INTEGER REFERENCES beings (id), content TEXT, \
             num_times INTEGER, date_created INTEGER, content_embedding BLOB)",
            "INSERT INTO beings VALUES (1, 'ada@example.org')",
            "INSERT INTO being_facts VALUES (7, 1, 'Ada works nights in the first week', 3, 1795314834528, NULL)",
        ],
        entity: "memory",
        text: "Ada works nights in the first week",
        time: "2026-11-22T02:33:54.528000Z",
        person: "table = \"beings\"\ncolumn = \"external_id\"",
    },
    Kind {
        name: "a chat with a list of people",
        statements: &[
            "CREATE TABLE user (id TEXT PRIMARY KEY, name TEXT, email TEXT)",
            "CREATE TABLE chat (id TEXT PRIMARY KEY, user_id TEXT, title TEXT, created_at BIGINT)",
            "CREATE TABLE chat_message (id TEXT PRIMARY KEY, chat_id TEXT, user_id TEXT, role TEXT, content JSON, created_at BIGINT)",
            "CREATE TABLE migratehistory (id INTEGER PRIMARY KEY, name TEXT)",
            "INSERT INTO user VALUES ('u1', 'Ada', 'ada@example.org')",
            "INSERT INTO chat VALUES ('c1', 'u1', 'Trains', 1772447698)",
            "INSERT INTO chat_message VALUES ('m1', 'c1', 'u1', 'user', '\"What did I cook last week?\"', 1772447698)",
        ],
        entity: "segment",
        text: "What did I cook last week?",
        time: "2026-03-02T10:34:58.000000Z",
        person: "table = \"user\"\ncolumn = \"id\"\naccount = true",
    },
    Kind {
        name: "questions and answers in a table of chats",
        statements: &[
            "CREATE TABLE users (id INTEGER PRIMARY KEY, username TEXT)",
            "CREATE TABLE workspace_threads (id INTEGER PRIMARY KEY, name TEXT, user_id INTEGER REFERENCES users (id), createdAt DATETIME)",
            "CREATE TABLE workspace_chats (id INTEGER PRIMARY KEY, workspaceId INTEGER, prompt TEXT NOT NULL, response TEXT NOT NULL, \
             user_id INTEGER REFERENCES users (id), thread_id INTEGER, createdAt DATETIME)",
            "INSERT INTO users VALUES (1, 'ada')",
            "INSERT INTO workspace_threads VALUES (7, 'Trains', 1, 1772461855000)",
            "INSERT INTO workspace_chats VALUES (1, 2, 'When does the last train leave?', '{\"text\":\"At ten.\",\"type\":\"chat\"}', 1, 7, \
             1772461855000)",
        ],
        entity: "segment",
        text: "When does the last train leave?",
        time: "2026-03-02T14:30:55.000000Z",
        person: "table = \"workspace_chats\"\ncolumn = \"user_id\"",
    },
    Kind {
        name: "short words",
        statements: &[
            "CREATE TABLE usr (uid INTEGER PRIMARY KEY, nm TEXT, eml TEXT)",
            "CREATE TABLE conv (cid INTEGER PRIMARY KEY, uid INTEGER REFERENCES usr (uid), ttl TEXT, cts INTEGER)",
            "CREATE TABLE msg (mid INTEGER PRIMARY KEY, cid INTEGER REFERENCES conv (cid), rl TEXT, txt TEXT, ts INTEGER)",
            "INSERT INTO usr VALUES (1, 'Ada', 'ada@example.org')",
            "INSERT INTO conv VALUES (7, 1, 'Trains', 1772461855)",
            "INSERT INTO msg VALUES (1, 7, 'u', 'When does the last train leave?', 1772461855)",
        ],
        entity: "segment",
        text: "When does the last train leave?",
        time: "2026-03-02T14:30:55.000000Z",
        person: "table = \"conv\"\ncolumn = \"uid\"",
    },
    Kind {
        name: "an item of memory under a short word's person",
        statements: &[
            "CREATE TABLE mem_items (pk INTEGER PRIMARY KEY, usr_id TEXT, cntnt TEXT, crt_dt TEXT, mtdt TEXT)",
            "INSERT INTO mem_items VALUES (1, 'ada', 'Ada keeps bees on the roof', '2026-03-02 14:30:55', '{}')",
        ],
        entity: "memory",
        text: "Ada keeps bees on the roof",
        time: "2026-03-02T14:30:55.000000Z",
        person: "table = \"mem_items\"\ncolumn = \"usr_id\"",
    },
    Kind {
        name: "a person behind a word in a path",
        statements: &[
            "CREATE TABLE agent_memory (namespace TEXT, item_key TEXT, val TEXT, saved_on INTEGER, \
             PRIMARY KEY (namespace, item_key))",
            "INSERT INTO agent_memory VALUES ('users/ada/facts', 'k1', 'Ada plays the cello on Mondays', 1772461855)",
        ],
        entity: "memory",
        text: "Ada plays the cello on Mondays",
        time: "2026-03-02T14:30:55.000000Z",
        person: "column = \"namespace\"\nby = \"/\"\npart = 1",
    },
    Kind {
        name: "facts of subject, predicate, and object",
        statements: &[
            "CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT UNIQUE, name TEXT)",
            "CREATE TABLE facts (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users (id), subject TEXT, predicate TEXT, \
             object TEXT, valid_from TEXT, embedding TEXT, created_at TEXT)",
            "INSERT INTO users VALUES (101, 'ada@example.org', 'Ada')",
            "INSERT INTO facts VALUES (1, 101, 'Ada', 'likes', 'green tea', '2026-01-01', '[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8]', \
             '2026-03-02 14:30:55')",
        ],
        entity: "memory",
        text: "Ada likes green tea",
        time: "2026-03-02T14:30:55.000000Z",
        person: "table = \"facts\"\ncolumn = \"user_id\"",
    },
    Kind {
        name: "events of runs that name whom they are for",
        statements: &[
            "CREATE TABLE agent_runs (run TEXT PRIMARY KEY, agent TEXT, principal TEXT, started DATETIME)",
            "CREATE TABLE agent_events (seq INTEGER PRIMARY KEY, run TEXT, data JSON, at DATETIME)",
            "INSERT INTO agent_runs VALUES ('r1', 'helper', 'ada', '2026-03-02 14:30:50')",
            "INSERT INTO agent_events VALUES (1, 'r1', '{\"parts\":[{\"text\":\"Ada asks for\"},{\"text\":\"the next train\"}]}', \
             '2026-03-02 14:30:55')",
        ],
        entity: "segment",
        text: "Ada asks for\nthe next train",
        time: "2026-03-02T14:30:55.000000Z",
        person: "table = \"agent_runs\"\ncolumn = \"principal\"",
    },
];

fn mnemoscope(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mnemoscope"))
        .args(arguments)
        .env("MNEMOSCOPE_STATE", folder.join("state"))
        .env("MNEMOSCOPE_CONFIG", folder.join("config.toml"))
        .env_remove("MNEMOSCOPE_DATABASE")
        .env_remove("DATABASE_URL")
        .output()
        .expect("the program runs")
}

fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = mnemoscope(folder, arguments);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {words}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).expect("text")
}

async fn database(path: &Path, statements: &[&str]) {
    let url = format!("sqlite:{}?mode=rwc", path.display());
    let mut link = sqlx::SqliteConnection::connect(&url).await.expect("a new database");
    for statement in statements {
        sqlx::query(sqlx::AssertSqlSafe((*statement).to_owned())).execute(&mut link).await.expect(statement);
    }
    link.close().await.expect("closed");
}

/// Drafts a layout, checks it, and gives its text.
fn drafted(folder: &Path, database: &str) -> (String, String) {
    let file = folder.join("draft.toml").display().to_string();
    let _ = std::fs::remove_file(&file);
    done(folder, &["-d", database, "layouts", "draft", "--out", &file]);
    let checked = done(folder, &["-d", database, "layouts", "check", &file, "--format", "json"]);
    let checked: Value = serde_json::from_str(&checked).expect("JSON");
    assert_eq!(checked["ok"], true, "{checked}");
    (std::fs::read_to_string(&file).expect("the draft"), file)
}

#[tokio::test]
async fn a_draft_finds_texts_times_and_people_in_shapes_that_no_layout_knows() {
    for kind in KINDS {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("store.db");
        database(&path, kind.statements).await;
        let path = path.display().to_string();
        let (text, file) = drafted(folder.path(), &path);
        assert!(text.contains(kind.person), "{}: {} is not in\n{text}", kind.name, kind.person);
        let rows = done(folder.path(), &["-d", &path, "--layout", &file, "list", kind.entity, "--format", "jsonl"]);
        let row: Value = serde_json::from_str(rows.lines().next().expect("a row")).expect("JSON");
        let shown = row["text"].as_str().or(row["content"].as_str()).unwrap_or_default();
        assert!(shown.contains(kind.text), "{}: {row}\n{text}", kind.name);
        let time = row["created_at"].as_str().unwrap_or_default();
        assert!(time.starts_with(kind.time), "{}: {row}\n{text}", kind.name);
        assert!(row.get("problems").is_none(), "{}: {row}", kind.name);
        assert_eq!(text.contains("recall = \"memory\""), text.contains("[[memory]]"), "{text}");
    }
}

#[tokio::test]
async fn a_draft_tells_rows_of_two_tables_apart_and_a_person_from_what_is_none() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    let statements = [
        "CREATE TABLE tenants (id TEXT PRIMARY KEY, name TEXT)",
        "CREATE TABLE users (id TEXT PRIMARY KEY, tenant_id TEXT REFERENCES tenants (id), email TEXT)",
        "CREATE TABLE observations (id INTEGER PRIMARY KEY, narrative TEXT, tags TEXT, created_at TEXT, metadata TEXT)",
        "CREATE TABLE summaries (id INTEGER PRIMARY KEY, summary TEXT, created_at TEXT, tenant_id TEXT REFERENCES tenants (id), \
         continued_from_run_id TEXT)",
        "INSERT INTO tenants VALUES ('acme', 'Acme')",
        "INSERT INTO users VALUES ('ada', 'acme', 'ada@example.org'), ('bo', 'acme', 'bo@example.org')",
        "INSERT INTO observations VALUES (1, 'Ada wants a window seat', 'ada@example.org', '2026-03-02 14:30:55', '{\"user_id\":\"ada\"}'), \
         (2, 'Bo drinks green tea', 'tea', '2026-03-02 14:31:55', '{\"user_id\":\"bo\"}')",
        "INSERT INTO summaries VALUES (1, 'They talked of trains', '2026-03-02 14:30:55', 'acme', 'run-1'), \
         (2, 'They talked of tea', '2026-03-02 14:31:55', 'acme', 'run-1')",
    ];
    database(&path, &statements).await;
    let path = path.display().to_string();
    let (text, file) = drafted(folder.path(), &path);
    done(folder.path(), &["-d", &path, "layouts", "test", &file]);
    for words in [
        "table = \"users\"\ncolumn = \"id\"\naccount = true",
        "table = \"observations\"\ncolumn = \"metadata\"\npath = \"user_id\"",
        "# column = \"tenant_id\"",
        "json_array('",
    ] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
    for words in ["[[subject]]\ntable = \"tenants\"", "column = \"continued_from_run_id\"", "user_id = \"tenant_id\""] {
        assert!(!text.contains(words), "{words} is in\n{text}");
    }
}

#[tokio::test]
async fn a_draft_says_why_and_how_sure_and_lists_what_it_leaves_out() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    database(&path, KINDS[0].statements).await;
    let (text, _) = drafted(folder.path(), &path.display().to_string());
    assert!(text.contains("writable = false"), "{text}");
    for words in ["# high: the table's key", "# high: seconds since 1970", "#   shelf_mark ("] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_draft_of_a_palace_folder_opens_the_folder() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("palace");
    build_sqlite(Layout::Mempalace, &path).await;
    let path = path.display().to_string();
    let (_, file) = drafted(folder.path(), &path);
    done(folder.path(), &["-d", &path, "--layout", &file, "status"]);
    // The folder that it is not is called so all the same.
    let bare = folder.path().join("bare");
    std::fs::create_dir(&bare).expect("a folder");
    let output = mnemoscope(folder.path(), &["-d", &bare.display().to_string(), "layouts", "check", &file]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a memory database"), "{output:?}");
}

#[tokio::test]
async fn nothing_is_changed_or_erased_through_a_draft() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    database(&path, KINDS[0].statements).await;
    let (before, path) = (std::fs::read(&path).expect("bytes"), path.display().to_string());
    let (text, file) = drafted(folder.path(), &path);
    for command in [&["purge", "ada"][..], &["purge", "ada", "--apply"], &["hold", "ada"], &["migrate", "--apply"]] {
        let output = mnemoscope(folder.path(), &[&["-d", &path, "--layout", &file], command].concat());
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(5), "{command:?}: {words}");
        assert!(words.contains("writable = false"), "{command:?}: {words}");
    }
    assert_eq!(std::fs::read(&path).expect("bytes"), before, "the file is as it was");
    // Opened by its author, the same file lets a purge be planned.
    std::fs::write(&file, text.replace("writable = false", "writable = true")).expect("written");
    done(folder.path(), &["-d", &path, "--layout", &file, "purge", "ada"]);
}

#[tokio::test]
async fn a_draft_never_replaces_a_file_and_says_when_there_is_nothing_to_draft() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    database(&path, &["CREATE TABLE schema_version (version INTEGER)"]).await;
    let path = path.display().to_string();
    let nothing = mnemoscope(folder.path(), &["-d", &path, "layouts", "draft"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("none of the 1 tables"), "{nothing:?}");
    let other = folder.path().join("other.db");
    database(&other, KINDS[1].statements).await;
    let taken = folder.path().join("taken.toml");
    std::fs::write(&taken, "mine").expect("written");
    let (other, file) = (other.display().to_string(), taken.display().to_string());
    assert_eq!(mnemoscope(folder.path(), &["-d", &other, "layouts", "draft", "--out", &file]).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&taken).expect("text"), "mine");
    let file = folder.path().join("made.toml").display().to_string();
    let made = mnemoscope(folder.path(), &["-d", &other, "layouts", "draft", "--out", &file]);
    assert!(String::from_utf8_lossy(&made.stderr).contains(&format!("the draft is in {file}")), "{made:?}");
}

/// Real stores where they are at hand: the draft of each is sound and finds its texts.
#[test]
fn drafts_of_real_stores_are_sound() {
    let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/fixtures/stores");
    let Ok(entries) = std::fs::read_dir(&stores) else { return };
    let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    files.push(stores.join("mem0/history.db"));
    let mut with_person = 0;
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "db") && f.exists()) {
        let folder = TempDir::new().expect("a folder");
        let copy = folder.path().join("store.db");
        std::fs::copy(file, &copy).expect("a copy");
        let (text, _) = drafted(folder.path(), &copy.display().to_string());
        let has = |lines: &[&str]| lines.iter().any(|line| text.lines().any(|l| l.starts_with(line)));
        assert!(
            has(&["text = ", "content = "]) && has(&["created_at = ", "started_at = "]),
            "{}\n{text}",
            file.display()
        );
        with_person += usize::from(has(&["[[erase]]"]));
    }
    assert!(with_person >= 8, "a person in {with_person} only");
}

const WRONG: &str = r#"
name = "wrong"
title = "Wrong on purpose"
requires = ["remembered"]
[[memory]]
table = "remembered"
vector = "nowhere"
[memory.columns]
id = "who"
text = { column = "value", path = "txt" }
kind = "who"
"#;

#[tokio::test]
async fn check_names_repeated_ids_missing_vectors_paths_and_the_column_whose_sql_fails() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    let rows = "INSERT INTO remembered VALUES ('a', '{\"text\":\"one\"}'), ('a', '{\"text\":\"two\"}'), ('b', '{}')";
    database(&path, &["CREATE TABLE remembered (who TEXT, value JSON)", rows]).await;
    let (path, file) = (path.display().to_string(), folder.path().join("wrong.toml"));
    let check = |text: &str| -> Vec<(String, u64, String)> {
        std::fs::write(&file, text).expect("written");
        let output = mnemoscope(
            folder.path(),
            &["-d", &path, "layouts", "check", &file.display().to_string(), "--format", "json"],
        );
        let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let of = |e: &Value| {
            (
                e["key"].as_str().unwrap_or_default().to_owned(),
                e["line"].as_u64().unwrap_or(0),
                e["message"].to_string(),
            )
        };
        said["errors"].as_array().expect("errors").iter().map(of).collect()
    };
    let found = check(WRONG);
    for (key, line, words) in [
        ("memory.vector", 5, "nowhere"),
        ("memory.columns.id", 9, "1 id occurs in several rows"),
        ("memory.columns.text", 10, "none of 3 rows has a value at `txt`"),
    ] {
        assert!(found.iter().any(|(k, l, m)| k == key && *l == line && m.contains(words)), "{key}: {found:?}");
    }
    let failing =
        WRONG.replace("vector = \"nowhere\"\n", "").replace("kind = \"who\"", "kind = { sql = \"nothere(t.who)\" }");
    let found = check(&failing);
    let [(key, line, words)] = &found[..] else { panic!("one error: {found:?}") };
    assert_eq!((key.as_str(), *line), ("memory.columns.kind", 10));
    assert!(words.contains("nothere"), "{words}");
    let sound = WRONG.replace("vector = \"nowhere\"\n", "").replace("\"txt\"", "\"text\"");
    let sound = sound.replace("id = \"who\"", "id = { sql = \"t.rowid\" }");
    assert_eq!(check(&sound), []);
}

#[tokio::test]
async fn a_layout_beside_the_settings_is_found_by_itself_and_by_its_name() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("store.db");
    database(&path, KINDS[0].statements).await;
    let path = path.display().to_string();
    let (text, _) = drafted(folder.path(), &path);
    std::fs::create_dir(folder.path().join("layouts")).expect("a folder");
    std::fs::write(folder.path().join("layouts/mine.toml"), text).expect("written");
    std::fs::write(folder.path().join("layouts/broken.toml"), "name = 3").expect("written");
    for layout in [&[][..], &["--layout", "store-draft"]] {
        let rows = done(folder.path(), &[&["-d", &path, "list", "memory", "--format", "jsonl"], layout].concat());
        assert!(rows.contains("window seat"), "{rows}");
    }
    let status = done(folder.path(), &["-d", &path, "status", "--format", "json"]);
    assert!(status.contains("broken.toml"), "{status}");
    // With the tables of our trail it is found as before.
    let file = folder.path().join("layouts/mine.toml");
    let text = std::fs::read_to_string(&file).expect("a layout");
    std::fs::write(&file, text.replace("writable = false", "writable = true")).expect("written");
    done(folder.path(), &["-d", &path, "migrate", "--apply"]);
    let rows = done(folder.path(), &["-d", &path, "list", "memory", "--format", "jsonl"]);
    assert!(rows.contains("window seat"), "{rows}");
    done(folder.path(), &["-d", &path, "list", "audit_entry"]);
}

#[test]
fn columns_of_an_entity_have_types_units_and_examples() {
    let folder = TempDir::new().expect("a folder");
    let printed = done(folder.path(), &["layouts", "columns", "memories", "--format", "json"]);
    let columns: Vec<Value> = serde_json::from_str(&printed).expect("JSON");
    let of = |name: &str| columns.iter().find(|c| c["column"] == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(of("created_at")["type"], "time (RFC 3339, UTC)");
    assert_eq!(of("utility")["unit"], "0 to 1");
    assert_eq!(of("metadata")["example"], serde_json::json!({ "source": "chat" }));
    let table = done(folder.path(), &["layouts", "columns", "episode", "--format", "table"]);
    assert!(table.contains("duration_seconds") && table.contains("seconds"), "{table}");
    assert_eq!(mnemoscope(folder.path(), &["layouts", "columns", "episod"]).status.code(), Some(2));
}
