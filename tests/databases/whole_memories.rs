//! Memories of the native layout with their person, agent, session, tags and the rest: old databases get the columns by a
//! migration, rows of other programs keep theirs when they are copied, and whoever they are about can be erased. On both
//! engines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mnemoscope::change::migrate;
use mnemoscope::memory::Entity;
use mnemoscope::store::{Store, Target};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};

use crate::support::block_on;
use crate::support::postgres::Database;
use crate::support::world::{address_of as address, author, open, run as cli};

const OLD_SQLITE: &str = include_str!("../../assets/migrations/mnemoscope/sqlite/0001_native.sql");
const OLD_POSTGRES: &str = include_str!("../../assets/migrations/mnemoscope/postgres/0001_native.sql");
const OLD_ROWS: &str = "INSERT INTO memories (id, kind, text, metadata, created_at, uses) \
    VALUES ('m-old', 'fact', 'kept as it was', '{\"user_id\": \"ada\"}', '2026-02-01T00:00:00.000000Z', 2)";

async fn run(target: &Target, sql: &str) {
    let script = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    match target {
        Target::File(path) => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
            let mut link = SqliteConnection::connect_with(&options).await.expect("the file");
            script.execute(&mut link).await.expect(sql);
            link.close().await.expect("closed");
        }
        Target::Postgres(url) => {
            let mut link = PgConnection::connect(url).await.expect("the server");
            script.execute(&mut link).await.expect(sql);
        }
    }
}

/// Tables with their columns and types, and indexes, as the engine tells them.
async fn schema(target: &Target) -> BTreeSet<String> {
    match target {
        Target::File(path) => {
            let mut link = SqliteConnection::connect(&path.display().to_string()).await.expect("the file");
            let sql = "SELECT m.name || ' ' || c.cid || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\" || ' ' || c.pk \
                FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' \
                UNION ALL SELECT name || ' ' || sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL";
            sqlx::query(sql).fetch_all(&mut link).await.expect("a schema").iter().map(|row| row.get(0)).collect()
        }
        Target::Postgres(url) => {
            let mut link = PgConnection::connect(url).await.expect("the server");
            let sql = "SELECT concat_ws(' ', table_name, ordinal_position, column_name, data_type, udt_name, is_nullable, \
                collation_name, column_default) FROM information_schema.columns WHERE table_schema = 'public' \
                UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'";
            sqlx::query(sql).fetch_all(&mut link).await.expect("a schema").iter().map(|row| row.get(0)).collect()
        }
    }
}

/// Places for two databases of an engine: an old one with a row, and an empty one.
fn pairs(folder: &Path, databases: &[Database]) -> Vec<(Target, Target, &'static str)> {
    let file = |name: &str| Target::File(folder.join(name));
    let mut pairs = vec![(file("old.db"), file("new.db"), OLD_SQLITE)];
    if let [old, new] = databases {
        let server = |database: &Database| Target::Postgres(database.url().to_owned());
        pairs.push((server(old), server(new), OLD_POSTGRES));
    }
    pairs
}

#[test]
fn an_old_database_opens_and_comes_to_the_schema_of_a_new_one() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let databases: Vec<Database> = (0..2).filter_map(|_| Database::fresh()).collect();
        for (old, new, schema_of_old) in pairs(folder.path(), &databases) {
            run(&old, schema_of_old).await;
            run(&old, OLD_ROWS).await;
            if let Target::File(path) = &new {
                std::fs::write(path, "").expect("an empty file");
            }
            let store = open(&old).await;
            let row = store.row(Entity::Memory, "m-old").await.expect("an answer").expect("the row");
            assert_eq!((row.text("text"), row.get("user_id")), (Some("kept as it was"), &Value::Null));
            let pending = migrate::state(&store).await.expect("a state").pending;
            assert!(pending.iter().any(|m| m.name == "mnemoscope/0003_whole_memories"), "{pending:?}");
            for target in [&old, &new] {
                migrate::apply(&open(target).await, &author(), None).await.expect("applied");
                assert!(migrate::state(&open(target).await).await.expect("a state").pending.is_empty());
            }
            assert_eq!(schema(&old).await, schema(&new).await);
            let row = open(&old).await.row(Entity::Memory, "m-old").await.expect("an answer").expect("the row");
            assert_eq!((row.text("text"), row.get("uses")), (Some("kept as it was"), &json!(2)));
        }
    });
}

const STORE: &str = "CREATE TABLE store_migrations (v INTEGER PRIMARY KEY);
    CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value text NOT NULL, created_at TIMESTAMP,
      updated_at TIMESTAMP, expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key));
    CREATE TABLE store_vectors (prefix text, key text, field_name text, embedding BLOB, PRIMARY KEY (prefix, key, field_name));
    INSERT INTO store VALUES ('memories.ada-1.s1', 'k1', CAST('{\"text\":\"Ada likes tea\",\"topics\":[\"food\",\"drink\"]}' AS BLOB),
      '2026-11-22 02:30:14', '2026-11-22 02:31:14', '2027-01-01 00:00:00', NULL),
      ('memories.bo', 'k1', CAST('{\"text\":\"Bo likes coffee\"}' AS BLOB), '2026-11-22 02:30:16', '2026-11-22 02:30:16', NULL, NULL);
    INSERT INTO store_vectors VALUES ('memories.ada-1.s1', 'k1', 'text', x'0000803F00000000'), ('memories.bo', 'k1', 'text', x'000000000000803F');";

fn told(folder: &Path, arguments: &[&str]) -> (Option<i32>, Value, String) {
    cli(folder, &[arguments, &["--format", "json"]].concat())
}

async fn made(folder: &Path, name: &str, sql: &str) -> PathBuf {
    let path = folder.join(name);
    run(&Target::File(path.clone()), sql).await;
    path
}

#[test]
fn a_memory_of_another_program_keeps_its_person_tags_times_and_vector_and_can_be_erased() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let source = made(folder.path(), "store.db", STORE).await.display().to_string();
        let database = Database::fresh();
        let file = Target::File(folder.path().join("native.db"));
        std::fs::write(folder.path().join("native.db"), "").expect("an empty file");
        for target in std::iter::once(file).chain(database.iter().map(|d| Target::Postgres(d.url().to_owned()))) {
            migrate::apply(&open(&target).await, &author(), None).await.expect("applied");
            let native = address(&target);
            let on = |words: &[&str]| told(folder.path(), &[&["-d", &native], words].concat());
            let (code, shown, words) = told(folder.path(), &["copy", "--from", &source, "--to", &native, "--apply"]);
            assert_eq!(code, Some(0), "{words} {shown:#}");
            let compared = &shown["compared"]["memory"];
            assert_eq!((&compared["equal"], &compared["different"]), (&json!(2), &json!(0)), "{shown:#}");
            assert_eq!(compared["vectors"], json!({"source": 2, "equal": 2, "different": 0, "left_out": 0}));

            let id = "[\"memories.ada-1.s1\",\"k1\"]";
            let (_, memory, _) = on(&["show", "memory", id]);
            assert_eq!(
                (&memory["user_id"], &memory["tags"]),
                (&json!("ada-1"), &json!(["food", "drink"])),
                "{memory:#}"
            );
            assert_eq!(memory["updated_at"], "2026-11-22T02:31:14.000000Z");
            assert_eq!(memory["expires_at"], "2027-01-01T00:00:00.000000Z");
            let (_, like, words) = on(&["recall", "--like", id, "--ranking", "similar"]);
            assert_eq!(like["query"]["used"], "vector", "{words} {like:#}");
            let (_, subjects, _) = on(&["list", "subject"]);
            let people: Vec<&Value> = subjects["rows"].as_array().expect("rows").iter().map(|row| &row["id"]).collect();
            assert!(people.contains(&&json!("ada-1")) && people.contains(&&json!("bo")), "{people:?}");

            let (code, receipt, words) = on(&["edit", "memory", id, "tags=[\"tea\"]", "importance=0.5", "--apply"]);
            assert_eq!(code, Some(0), "{words}");
            let (_, edited, _) = on(&["show", "memory", id]);
            assert_eq!((&edited["tags"], &edited["importance"]), (&json!(["tea"]), &json!(0.5)));
            assert_ne!(edited["updated_at"], memory["updated_at"], "an edit is a change");
            let (code, _, words) = on(&["undo", &receipt["audit_seq"].to_string(), "--apply"]);
            assert_eq!((code, on(&["show", "memory", id]).1), (Some(0), memory), "{words}");

            let (code, receipt, words) = on(&["purge", "ada-1", "--apply"]);
            assert_eq!(code, Some(0), "{words} {receipt:#}");
            let (_, left, _) = on(&["list", "memory"]);
            assert_eq!(left["rows"].as_array().map(Vec::len), Some(1), "{left:#}");
            assert_eq!(left["rows"][0]["user_id"], "bo");
            let vectors = Store::open(&target, &crate::support::options()).await.expect("open");
            let ids = vec![id.to_owned(), "[\"memories.bo\",\"k1\"]".to_owned()];
            let kept = vectors.embeddings().vectors(Entity::Memory, &ids).await.expect("vectors");
            assert_eq!(kept.into_keys().collect::<Vec<_>>(), ids[1..]);
        }
    });
}

const FACTS: &str = "INSERT INTO memories (id, kind, text, user_id, metadata, created_at) VALUES \
    ('m-bonn', 'fact', '', 'ada-1', '{\"subject\":\"Ada\",\"predicate\":\"lives in\",\"object\":\"Bonn\"}', '2026-02-01T00:00:00.000000Z'), \
    ('m-kiel', 'fact', '', 'ada-1', '{\"subject\":\"ada\",\"predicate\":\"lives in\",\"object\":\"Kiel\"}', '2026-02-02T00:00:00.000000Z'), \
    ('m-ulm', 'fact', '', 'bo', '{\"subject\":\"Ada\",\"predicate\":\"lives in\",\"object\":\"Ulm\"}', '2026-02-02T00:00:00.000000Z'), \
    ('m-tea', 'note', 'Ada likes green tea in the morning.', 'ada-1', NULL, '2026-02-03T00:00:00.000000Z'), \
    ('m-tea-again', 'note', 'ada likes: green tea in the morning', 'ada-1', NULL, '2026-02-04T00:00:00.000000Z'), \
    ('m-tea-bo', 'note', 'Ada likes green tea in the morning', 'bo', NULL, '2026-02-04T00:00:00.000000Z'); \
    INSERT INTO memories (id, kind, text, user_id, agent_id, created_at) VALUES \
    ('m-tea-desk', 'note', 'Ada likes green tea in the morning', 'ada-1', 'desk', '2026-02-04T00:00:00.000000Z')";

/// New native databases that hold these rows: a file in the folder, and on the server where there is one.
async fn natives(folder: &Path, database: Option<&Database>, rows: &str) -> Vec<Target> {
    let file = folder.join("native.db");
    std::fs::write(&file, "").expect("an empty file");
    let server = database.map(|database| Target::Postgres(database.url().to_owned()));
    let targets: Vec<Target> = std::iter::once(Target::File(file)).chain(server).collect();
    for target in &targets {
        migrate::apply(&open(target).await, &author(), None).await.expect("applied");
        run(target, rows).await;
    }
    targets
}

#[test]
fn facts_that_contradict_and_near_copies_are_found_and_superseded() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::fresh();
        for target in natives(folder.path(), database.as_ref(), FACTS).await {
            let native = address(&target);
            let on = |words: &[&str]| told(folder.path(), &[&["-d", &native], words].concat());
            for (kind, older, newer, advice) in [
                ("contradicting_facts", "m-bonn", "m-kiel", "compare memory m-bonn m-kiel"),
                ("near_duplicate_memory", "m-tea", "m-tea-again", "supersede m-tea --by m-tea-again"),
            ] {
                let (_, shown, words) = on(&["findings", "--kind", kind]);
                let found = &shown["findings"][0];
                assert_eq!(
                    (&found["count"], &found["examples"]),
                    (&json!(1), &json!([older, newer])),
                    "{words} {shown:#}"
                );
                let remedy = found["remedy"].as_str().expect("a command");
                assert!(remedy.ends_with(advice), "{remedy}");
                let (code, receipt, words) = on(&["supersede", older, "--by", newer, "--apply"]);
                assert_eq!(code, Some(0), "{words}");
                let (_, memory, _) = on(&["show", "memory", older]);
                assert_eq!(
                    (&memory["status"], &memory["metadata"]["superseded_by"]),
                    (&json!("superseded"), &json!(newer))
                );
                let (_, memory, _) = on(&["show", "memory", newer]);
                assert_eq!(
                    (&memory["source_ids"], &memory["metadata"]["supersedes"]),
                    (&json!([older]), &json!(older))
                );
                assert_eq!(on(&["findings", "--kind", kind]).1["findings"], json!([]), "{kind} is settled");
                on(&["undo", &receipt["audit_seq"].to_string(), "--apply"]);
                assert_eq!(on(&["findings", "--kind", kind]).1["findings"][0]["count"], json!(1), "{kind} is back");
            }
            let (code, _, words) = on(&["merge", "m-tea", "m-tea-desk"]);
            assert!(code == Some(5) && words.contains("different agents"), "{words}");
            let (code, _, words) = on(&["supersede", "m-tea", "--by", "m-tea-bo", "--apply"]);
            assert_eq!(code, Some(5), "another person's: {words}");
        }
    });
}

/// A memory that states a fact, with what else its metadata says and when it expires.
fn fact([id, subject, predicate, object]: [&str; 4], rest: &str, expires: &str) -> String {
    let value = format!(r#"{{"subject":"{subject}","predicate":"{predicate}","object":"{object}"{rest}}}"#);
    format!(
        "INSERT INTO memories (id, kind, text, user_id, metadata, created_at, expires_at) \
         VALUES ('{id}', 'fact', '', 'ada', '{value}', '2026-02-0{}T00:00:00.000000Z', {expires}); ",
        id.len()
    )
}

#[test]
fn facts_that_may_hold_together_do_not_contradict() {
    let plain = |words: [&str; 4]| fact(words, "", "NULL");
    let mut rows = [
        // One number, spelled twice.
        plain(["n1", "Ada", "age", "40"]),
        plain(["n01", "Ada", "age", "40.0"]),
        // One ended before the other one was written.
        fact(["e1", "Ada", "lives in", "Kiel"], "", "'2026-02-02T12:00:00.000000Z'"),
        plain(["e01", "Ada", "lives in", "Bonn"]),
        // Nobody knows when it held.
        fact(["t1", "Ada", "works at", "X"], r#","valid_from":"last year","valid_to":"recently""#, "NULL"),
        plain(["t01", "Ada", "works at", "Y"]),
        // One subject with two values, of a predicate that has one.
        plain(["c1", "Ada", "born in", "Ulm"]),
        plain(["c01", "Ada", "born in", "Jena"]),
    ]
    .concat();
    for n in 0..6 {
        let (subject, one, other) = (format!("s{n}"), format!("{n}l"), format!("{n}le"));
        rows += &plain([&one, &subject, "speaks", "German"]);
        rows += &plain([&other, &subject, "speaks", "French"]);
        rows += &plain([&format!("{n}b"), &subject, "born in", "Ulm"]);
    }
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::fresh();
        for target in natives(folder.path(), database.as_ref(), &rows).await {
            let native = address(&target);
            let (_, shown, words) = told(folder.path(), &["-d", &native, "findings", "--kind", "contradicting_facts"]);
            assert_eq!(shown["findings"][0]["examples"], json!(["c1", "c01"]), "{words} {shown:#}");
            // Meanings may be near where words say the opposite.
            let opposite = "INSERT INTO memories (id, text, user_id, created_at) VALUES \
                ('w1', 'Ada wants window seats on all of the flights to Berlin and Rome', 'ada', '2026-02-01T00:00:00.000000Z'), \
                ('w2', 'Ada never wants window seats on all of the flights to Berlin and Rome', 'ada', '2026-02-02T00:00:00.000000Z')";
            run(&target, opposite).await;
            let (_, shown, _) = told(folder.path(), &["-d", &native, "findings", "--kind", "near_duplicate_memory"]);
            let remedy = shown["findings"][0]["remedy"].as_str().unwrap_or_default();
            assert!(remedy.ends_with("compare memory w1 w2"), "{shown:#}");
        }
    });
}

const TRIPLE: &str = "INSERT INTO memories (id, kind, text, user_id, tags, importance, source_ids, created_at, uses) VALUES \
    ('m-1', 'note', 'Ada likes green tea in the morning', 'ada-1', '[\"food\"]', 0.2, '[]', '2026-02-01T00:00:00.000000Z', 2), \
    ('m-2', 'note', 'ada likes green tea, in the morning', 'ada-1', '[\"drink\"]', 0.8, '[\"m-9\"]', '2026-02-02T00:00:00.000000Z', 1), \
    ('m-3', 'note', 'Ada likes green tea in the morning!', 'ada-1', '[\"food\"]', NULL, '[\"m-1\"]', '2026-02-03T00:00:00.000000Z', 1), \
    ('m-sum', 'summary', 'what Ada likes', 'ada-1', NULL, NULL, '[\"m-1\",\"m-2\",\"m-7\"]', '2026-02-04T00:00:00.000000Z', 0), \
    ('m-bo', 'note', 'Ada likes green tea in the morning', 'bo', NULL, NULL, NULL, '2026-02-04T00:00:00.000000Z', 0); \
    INSERT INTO episode_memories (episode_id, memory_id, kind, rank) VALUES \
    ('e-1', 'm-1', 'recalled', 0), ('e-2', 'm-1', 'recalled', 1), ('e-2', 'm-3', 'recalled', 0), ('e-3', 'm-2', 'recalled', 0); \
    INSERT INTO memory_access (id, ids, kind, created_at) VALUES ('a-1', '[\"m-2\",\"m-sum\"]', 'memory', '2026-02-04T00:00:00.000000Z')";

#[test]
fn copies_of_a_memory_become_one_that_keeps_their_links() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let database = Database::fresh();
        for target in natives(folder.path(), database.as_ref(), TRIPLE).await {
            let native = address(&target);
            let on = |words: &[&str]| told(folder.path(), &[&["-d", &native], words].concat());
            let all = || ["memory", "memory_link", "access"].map(|entity| on(&["list", entity]).1["rows"].clone());
            let before = all();
            let (_, shown, words) = on(&["findings", "--kind", "near_duplicate_memory"]);
            let remedy = shown["findings"][0]["remedy"].as_str().unwrap_or_default();
            assert!(remedy.ends_with("merge m-3 m-1 m-2"), "{words} {shown:#}");
            assert_eq!(on(&["merge", "m-3", "m-bo"]).0, Some(5), "another person's");
            assert_eq!(on(&["merge", "m-3", "m-3"]).0, Some(2), "itself");

            let (_, plan, _) = on(&["merge", "m-3", "m-1", "m-2"]);
            let (code, receipt, words) = on(&["merge", "m-3", "m-1", "m-2", "--apply"]);
            assert_eq!((code, &receipt["counts"]), (Some(0), &plan["counts"]), "{words}");
            assert_eq!(on(&["show", "memory", "m-1"]).0, Some(3));
            let (_, kept, _) = on(&["show", "memory", "m-3"]);
            assert_eq!(kept["tags"], json!(["food", "drink"]));
            assert_eq!(
                (&kept["source_ids"], &kept["importance"], &kept["uses"]),
                (&json!(["m-9"]), &json!(0.8), &json!(3))
            );
            assert_eq!(on(&["show", "memory", "m-sum"]).1["source_ids"], json!(["m-3", "m-7"]));
            let [_, links, accesses] = all();
            let named: BTreeSet<(&str, &str)> = links
                .as_array()
                .expect("rows")
                .iter()
                .filter_map(|link| Some((link["episode_id"].as_str()?, link["memory_id"].as_str()?)))
                .collect();
            assert_eq!(named, BTreeSet::from([("e-1", "m-3"), ("e-2", "m-3"), ("e-3", "m-3")]));
            assert_eq!(accesses[0]["ids"], json!(["m-3", "m-sum"]));
            let (code, _, words) = on(&["undo", &receipt["audit_seq"].to_string(), "--apply"]);
            assert_eq!((code, all()), (Some(0), before), "{words}");
        }
    });
}
