//! Rows whose keys or texts the engine takes in a way of its own: another case, NULL, a domain, any bytes. Each change
//! takes what refers to the rows that go, nothing of anybody else, and an undo brings it back.

use std::process::Output;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::support::postgres::Database;
use crate::support::world::{World, address, dump, meddle, native_on_postgres, open, small, texts, world};
use crate::support::{alone_in, block_on};
use mnemoscope::store::Target;

/// Episodes of two people.
const EPISODES: &str = "INSERT INTO episodes (id, user_id, title, started_at) VALUES \
     ('zo-1', 'zoe-1234', 'a', '2024-01-01T00:00:00Z'), ('zo-2', 'zoe-1234', 'b', '2024-01-02T00:00:00Z'), \
     ('ya-1', 'yan-1234', 'c', '2024-01-01T00:00:00Z')";

/// Notes of episodes under names that are compared without their case, and rows that refer to them in another case.
const NOTES: &str = "CREATE TABLE notes (name $type PRIMARY KEY, episode TEXT REFERENCES episodes (id) ON DELETE CASCADE); \
     CREATE TABLE remarks (id INTEGER PRIMARY KEY, note $plain REFERENCES notes (name) ON DELETE CASCADE); \
     CREATE TABLE marks (id INTEGER PRIMARY KEY, note $plain REFERENCES notes (name) ON DELETE SET NULL); \
     CREATE TABLE locks (id INTEGER PRIMARY KEY, note $plain REFERENCES notes (name)); \
     INSERT INTO notes SELECT 'Note of ' || id, id FROM episodes WHERE user_id IN ('zoe-1234', 'yan-1234'); \
     INSERT INTO remarks SELECT row_number() OVER (ORDER BY id), 'NOTE OF ' || id FROM episodes WHERE user_id IN ('zoe-1234', 'yan-1234'); \
     INSERT INTO marks SELECT id, note FROM remarks; INSERT INTO locks SELECT id, note FROM remarks";

/// The other way round: names that differ in their case alone are different notes, and what refers to them says nothing
/// of case.
const APART: &str = "CREATE TABLE notes (name TEXT PRIMARY KEY, episode TEXT REFERENCES episodes (id) ON DELETE CASCADE); \
     CREATE TABLE remarks (id INTEGER PRIMARY KEY, note $type REFERENCES notes (name) ON DELETE CASCADE); \
     INSERT INTO notes VALUES ('tea', 'zo-1'), ('cup', 'zo-2'), ('TEA', 'ya-1'); \
     INSERT INTO remarks VALUES (1, 'tea'), (2, 'cup'), (3, 'TEA')";

/// A world with the episodes; none where the server lacks what the script needs.
async fn with(world: Option<World>, needs: &str, script: &str) -> Option<World> {
    let mut world = world?;
    if let Target::Postgres(url) = &world.target
        && !needs.is_empty()
    {
        let mut server = PgConnection::connect(url).await.expect("the server");
        if let Err(error) = sqlx::raw_sql(AssertSqlSafe(needs.to_owned())).execute(&mut server).await {
            eprintln!("SKIPPED: this PostgreSQL cannot do `{needs}`: {error}");
            return None;
        }
    }
    meddle(&world, EPISODES).await;
    meddle(&world, script).await;
    // What is compared are all tables, new ones too.
    world.store = open(&world.target).await;
    Some(world)
}

const CITEXT: &str = "CREATE EXTENSION citext";
const FOLDED: &str = "CREATE COLLATION folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)";

/// A script on SQLite and PostgreSQL, with the types of a column that is compared without case and of one that refers to it.
async fn in_any_case(script: &str) -> Vec<World> {
    let of = |kind: &str, plain: &str| script.replace("$type", kind).replace("$plain", plain);
    let worlds = [
        with(Some(small().await), "", &of("TEXT COLLATE NOCASE", "TEXT")).await,
        with(native_on_postgres().await, CITEXT, &of("citext", "citext")).await,
        with(native_on_postgres().await, FOLDED, &of("TEXT COLLATE folded", "TEXT")).await,
    ];
    worlds.into_iter().flatten().collect()
}

/// Runs a command and gives what it printed.
fn told(world: &World, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(world, arguments)).expect("JSON")
}

fn printed(world: &World, arguments: &[&str]) -> String {
    let output = ended(world, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn ended(world: &World, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let output = alone_in(folder.path()).args(["-d", &address(world), "--format", "json"]).args(arguments).output();
    output.expect("the program")
}

fn assert_erased(receipt: &Value) {
    assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
}

#[test]
fn what_refers_to_a_row_in_another_case_goes_or_lets_go() {
    block_on(async {
        for world in in_any_case(NOTES).await {
            let before = dump(&world).await;
            let receipt = told(&world, &["remove", "episode", "zo-1", "zo-2", "--apply"]);
            for left in ["notes", "remarks"] {
                assert_eq!(receipt["counts"][left], json!({"delete": 2}), "{receipt:#}");
            }
            told(&world, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
            assert_eq!(dump(&world).await, before);

            assert_erased(&told(&world, &["purge", "zoe-1234", "--apply"]));
            assert_eq!(texts(&world, "SELECT note || '' FROM remarks").await, ["NOTE OF ya-1"]);
            for table in ["marks", "locks"] {
                let rows = texts(&world, &format!("SELECT coalesce(note, '-') || '' FROM {table} ORDER BY id")).await;
                assert_eq!(rows, ["NOTE OF ya-1", "-", "-"], "{table}");
            }
        }
    });
}

#[test]
fn what_refers_to_another_row_whose_key_differs_in_its_case_alone_stays() {
    block_on(async {
        let of = |kind: &str| APART.replace("$type", kind);
        // PostgreSQL itself goes by a collation of the column that refers, but not by its type.
        let worlds = [
            with(Some(small().await), "", &of("TEXT COLLATE NOCASE")).await,
            with(native_on_postgres().await, CITEXT, &of("citext")).await,
        ];
        for world in worlds.into_iter().flatten() {
            assert_erased(&told(&world, &["purge", "zoe-1234", "--apply"]));
            assert_eq!(texts(&world, "SELECT note || '' FROM remarks").await, ["TEA"]);
        }
    });
}

#[test]
fn rows_with_null_in_their_key_are_told_apart() {
    block_on(async {
        let script = "CREATE TABLE notes (name TEXT PRIMARY KEY, episode TEXT REFERENCES episodes (id) ON DELETE CASCADE, said TEXT); \
             CREATE TABLE pairs (a TEXT, b TEXT, episode TEXT REFERENCES episodes (id) ON DELETE SET NULL, PRIMARY KEY (a, b)); \
             INSERT INTO notes VALUES (NULL, 'zo-1', 'x'), (NULL, 'ya-1', 'x'), (NULL, 'zo-2', 'x'), ('n', 'zo-2', 'x'); \
             INSERT INTO pairs VALUES ('p', NULL, 'zo-1'), ('p', NULL, 'ya-1'), (NULL, NULL, 'zo-2'), ('p', 'q', 'zo-2'); \
             PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = replace(sql, 'id TEXT NOT NULL PRIMARY KEY', 'id TEXT PRIMARY KEY') WHERE name = 'episodes'; \
             PRAGMA writable_schema = RESET; \
             INSERT INTO episodes (id, user_id, title) VALUES (NULL, 'zoe-1234', 'd'), (NULL, 'yan-1234', 'e'), (NULL, 'yan-1234', 'ask zoe-1234')";
        let world = with(Some(small().await), "", script).await.expect("a database");
        let before = dump(&world).await;
        let receipt = told(&world, &["remove", "episode", "zo-1", "zo-2", "--apply"]);
        assert_eq!(receipt["counts"]["notes"], json!({"delete": 3}), "{receipt:#}");
        assert_eq!(receipt["counts"]["pairs"], json!({"update": 3}), "{receipt:#}");
        told(&world, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
        assert_eq!(dump(&world).await, before);

        let receipt = told(&world, &["purge", "zoe-1234", "--mentions", "delete", "--apply"]);
        assert_erased(&receipt);
        let notes = texts(&world, "SELECT coalesce(name, '-') || episode FROM notes").await;
        assert_eq!(notes, ["-ya-1"], "{receipt:#}");
        let pairs = texts(
            &world,
            "SELECT coalesce(a, '-') || coalesce(b, '-') || coalesce(episode, '-') FROM pairs ORDER BY rowid",
        )
        .await;
        assert_eq!(pairs, ["p--", "p-ya-1", "---", "pq-"]);
        let left = texts(&world, "SELECT title FROM episodes WHERE id IS NULL").await;
        assert_eq!(left, ["e"], "also a row goes that only mentions the person");
    });
}

#[test]
fn a_column_with_a_name_of_the_row_number_is_no_row_number() {
    block_on(async {
        let of = "episode TEXT REFERENCES episodes (id) ON DELETE";
        // Tables of one row of zoe and one of yan, which only their hidden numbers distinguish.
        let script = format!(
            "CREATE TABLE falling (id INTEGER PRIMARY KEY DESC, {of} SET NULL); \
             CREATE TABLE named (name TEXT PRIMARY KEY, _rowid_ TEXT, {of} CASCADE); \
             CREATE TABLE bare (_ROWID_ INTEGER, {of} CASCADE); \
             CREATE TABLE twice (name TEXT PRIMARY KEY, rowid TEXT, _rowid_ TEXT, {of} SET NULL); \
             CREATE TABLE made (name TEXT PRIMARY KEY, rowid TEXT GENERATED ALWAYS AS ('x') VIRTUAL, {of} CASCADE); \
             CREATE TABLE keyed (_rowid_ TEXT PRIMARY KEY, {of} SET NULL); \
             CREATE TABLE whole (_rowid_ INTEGER PRIMARY KEY, {of} CASCADE); \
             INSERT INTO falling (id, episode) VALUES (NULL, 'zo-1'), (NULL, 'ya-1'); \
             INSERT INTO named (name, _rowid_, episode) VALUES (NULL, 'x', 'zo-1'), (NULL, 'x', 'ya-1'); \
             INSERT INTO bare VALUES (7, 'zo-1'), (7, 'ya-1'); \
             INSERT INTO twice (name, rowid, _rowid_, episode) VALUES (NULL, 'x', 'x', 'zo-1'), (NULL, 'x', 'x', 'ya-1'); \
             INSERT INTO made (name, episode) VALUES (NULL, 'zo-1'), (NULL, 'ya-1'); \
             INSERT INTO keyed VALUES (NULL, 'zo-1'), ('k', 'zo-2'), (NULL, 'ya-1'); \
             INSERT INTO whole VALUES (5, 'zo-1'), (6, 'ya-1')"
        );
        let world = with(Some(small().await), "", &script).await.expect("a database");
        let before = dump(&world).await;
        let receipt = told(&world, &["remove", "episode", "zo-1", "zo-2", "--apply"]);
        for (table, rows) in [("falling", 1), ("twice", 1), ("keyed", 2)] {
            assert_eq!(receipt["counts"][table], json!({"update": rows}), "{table}: {receipt:#}");
        }
        for table in ["named", "bare", "made", "whole"] {
            assert_eq!(receipt["counts"][table], json!({"delete": 1}), "{table}: {receipt:#}");
        }
        told(&world, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
        assert_eq!(dump(&world).await, before);

        let exported = printed(&world, &["export", "subject", "zoe-1234"]);
        assert!(exported.contains("\"_ROWID_\":7"), "a column of its own is exported: {exported}");
        assert_erased(&told(&world, &["purge", "zoe-1234", "--apply"]));
        for (table, left) in [
            ("falling", vec!["-", "ya-1"]),
            ("named", vec!["ya-1"]),
            ("bare", vec!["ya-1"]),
            ("twice", vec!["-", "ya-1"]),
            ("made", vec!["ya-1"]),
            ("keyed", vec!["-", "-", "ya-1"]),
            ("whole", vec!["ya-1"]),
        ] {
            let rows = texts(&world, &format!("SELECT coalesce(episode, '-') FROM {table} ORDER BY 1")).await;
            assert_eq!(rows, left, "{table}");
        }
    });
}

#[test]
fn ids_that_a_domain_would_refuse_are_in_no_column_of_it() {
    block_on(async {
        let script = "CREATE DOMAIN person AS TEXT CHECK (value LIKE 'user-%'); CREATE DOMAIN note_id AS uuid; \
             ALTER TABLE agent_feedback ALTER user_id TYPE person; \
             CREATE TABLE notes (id note_id PRIMARY KEY DEFAULT gen_random_uuid(), episode TEXT NOT NULL REFERENCES episodes (id)); \
             CREATE TABLE remarks (id INTEGER PRIMARY KEY, note note_id NOT NULL REFERENCES notes (id)); \
             INSERT INTO notes (episode) VALUES ('zo-1'), ('ya-1'); \
             INSERT INTO remarks SELECT row_number() OVER (ORDER BY episode), id FROM notes";
        let Some(world) = with(native_on_postgres().await, "", script).await else { return };
        assert_erased(&told(&world, &["purge", "zoe-1234", "--apply"]));
        assert_eq!(texts(&world, "SELECT id::text FROM remarks").await, ["1"]);
    });
}

#[test]
fn texts_of_a_server_that_are_no_utf_8_are_shown_with_their_problem_and_come_back() {
    let Some(database) = Database::encoded("ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'") else { return };
    let (home, url) = (tempfile::tempdir().expect("a folder"), database.url().to_owned());
    let made = alone_in(home.path()).args(["-d", &url, "--layout", "mnemoscope", "migrate", "--apply"]).output();
    assert!(made.expect("the program").status.success());
    block_on(async {
        let world = world(Target::Postgres(url), home, Some(database)).await;
        let rows = "INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES \
             ('e-1', 'a', 'jose-nunez77', 'José', now()), ('e-2', 'a', 'mary-major88', E'met Jos\\xe9 N\\xfa\\xf1ez', now())";
        meddle(&world, rows).await;
        let listed = told(&world, &["list", "episode", "--order", "id"]);
        let row = |at: usize| listed["rows"][at].clone();
        assert_eq!((&row(0)["title"], &row(0)["problems"]), (&json!("José"), &Value::Null), "{listed:#}");
        assert!(row(1)["problems"].to_string().contains("not valid UTF-8"), "{listed:#}");
        let stored = "SELECT encode(convert_to(title, 'SQL_ASCII'), 'hex') FROM episodes WHERE id = 'e-2'";
        let before = texts(&world, stored).await;
        let edited = told(&world, &["edit", "episode", "e-2", "title=José", "--apply"]);
        assert_eq!(texts(&world, stored).await, [hex::encode("José")]);
        told(&world, &["undo", &edited["audit_seq"].to_string(), "--apply"]);
        assert_eq!(texts(&world, stored).await, before);
        for asked in [&["find", "José"][..], &["recall", "José", "--ranking", "boosted"], &["findings"]] {
            told(&world, asked);
        }
        assert_erased(&told(&world, &["purge", "jose-nunez77", "--apply"]));
        assert_eq!(texts(&world, "SELECT id FROM episodes").await, ["e-2"]);
    });
}

#[test]
fn an_odd_id_is_refused_for_what_is_odd_about_it() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES (' ', 'a', 'u', 'blank', '2024-01-01T00:00:00Z')",
            )
            .await;
            let add = |id: &str| ended(&world, &["feedback", "add", id, "--kind", "thumbs_up", "--apply"]);
            let added = add(" ");
            assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
            let refused = |id: &str, code: i32, words: &str| {
                let output = add(id);
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.code() == Some(code) && told.contains(words), "{id:?}: {told}");
            };
            refused("  ", 2, "the id of the episode is blank");
            refused("", 2, "the id of the episode is empty");
            refused("\u{fffd}A", 3, "bytes that are no text");
            if matches!(world.target, Target::File(_)) {
                meddle(
                    &world,
                    "INSERT INTO episodes (id, title, started_at) VALUES (x'626c6f62', 'b', '2024-01-01T00:00:00Z')",
                )
                .await;
                refused("blob", 5, "its stored id is not a text");
            }
        }
    });
}

#[test]
fn a_key_that_a_document_has_twice_is_told_with_the_raw_text() {
    block_on(async {
        let stored = r#"{"a":1,"b":{"a":2},"a":3}"#;
        let plain =
            "INSERT INTO memories (id, text, metadata) VALUES ('twice', 'm', '$stored')".replace("$stored", stored);
        // jsonb keeps one of the values.
        let on_postgres = format!("ALTER TABLE memories ALTER metadata TYPE json USING metadata::json; {plain}");
        for (world, script) in [(Some(small().await), &plain), (native_on_postgres().await, &on_postgres)] {
            let Some(world) = with(world, "", script).await else { continue };
            let shown = told(&world, &["list", "memory", "--where", "id = twice"])["rows"][0].clone();
            assert_eq!(shown["metadata"], json!({"a": 3, "b": {"a": 2}}), "{shown:#}");
            let problem = &shown["problems"][0];
            assert_eq!((&problem["column"], &problem["raw"]), (&json!("metadata"), &json!(stored)), "{shown:#}");
            assert!(problem["problem"].as_str().is_some_and(|words| words.ends_with("at byte 19")), "{shown:#}");
            // It is strict JSON all the same: it is written as ever.
            told(&world, &["edit", "memory", "twice", "text=n", "--apply"]);
        }
    });
}

#[test]
fn columns_of_a_domain_are_read_by_what_it_is_made_of() {
    block_on(async {
        let script = "CREATE DOMAIN amount AS INTEGER CHECK (value >= 0); CREATE DOMAIN words AS TEXT[]; CREATE DOMAIN labels AS words; \
             ALTER TABLE memories ALTER uses DROP DEFAULT, ALTER uses TYPE amount; \
             ALTER TABLE memories ALTER tags DROP DEFAULT, ALTER tags TYPE labels USING ARRAY['t' || right(id, 1)]; \
             INSERT INTO memories (id, text, uses, tags) SELECT 'd-' || n, 'd', n, ARRAY['t' || n % 2] FROM generate_series(1, 12) n";
        let Some(world) = with(native_on_postgres().await, "", script).await else { return };
        let ids = |more: &[&str]| -> Vec<String> {
            let listed = told(&world, &[&["list", "memory", "--where", "text = d"], more].concat());
            let rows = listed["rows"].as_array().expect("rows");
            assert!(rows.iter().all(|row| row["problems"].is_null()), "{listed:#}");
            rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).collect()
        };
        assert_eq!(ids(&["--order", "uses:desc"])[..3], ["d-12", "d-11", "d-10"]);
        assert_eq!(ids(&["--where", "uses > 9"]).len(), 3);
        assert_eq!(ids(&["--where", "tags has t1"]).len(), 6);
        told(&world, &["edit", "memory", "d-7", "tags=[\"z\"]", "--apply"]);
        assert_eq!(texts(&world, "SELECT tags::text FROM memories WHERE id = 'd-7'").await, ["{z}"]);
        assert_eq!(ids(&["--where", "tags has z"]), ["d-7"]);
    });
}

#[test]
fn a_child_follows_a_parent_that_is_named_in_another_case() {
    block_on(async {
        let script = "PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = replace(sql, 'id TEXT NOT NULL PRIMARY KEY', 'id TEXT NOT NULL PRIMARY KEY COLLATE NOCASE') \
               WHERE name = 'episodes'; PRAGMA writable_schema = RESET; REINDEX; \
             INSERT INTO episodes (id, user_id, title, parent_id) VALUES ('ya-2', 'yan-1234', 'f', 'ZO-2'); \
             UPDATE episodes SET parent_id = 'ZO-1' WHERE id = 'zo-2'; UPDATE episodes SET parent_id = 'YA-1' WHERE id = 'zo-1'";
        let world = with(Some(small().await), "", script).await.expect("a database");
        assert_erased(&told(&world, &["purge", "zoe-1234", "--apply"]));
        assert_eq!(texts(&world, "SELECT parent_id FROM episodes WHERE id = 'ya-2'").await, ["ya-1"]);
    });
}

#[test]
fn lists_of_rows_that_stay_keep_what_is_no_id() {
    block_on(async {
        let script = r#"INSERT INTO memories (id, text) VALUES ('k-1', 't');
             INSERT INTO memories (id, text, source_ids) VALUES ('q-1', 't', '[5, null,"k-1" , {"z":1.10},"other"]')"#;
        for world in [Some(small().await), native_on_postgres().await] {
            let Some(world) = with(world, "", script).await else { continue };
            let receipt = told(&world, &["remove", "memory", "k-1", "--apply"]);
            let left = texts(&world, "SELECT CAST(source_ids AS TEXT) FROM memories WHERE id = 'q-1'").await;
            let left: Value = serde_json::from_str(&left[0]).expect("a list");
            assert_eq!(left, json!([5, null, {"z": 1.1}, "other"]));
            told(&world, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
        }
    });
}

#[test]
fn a_row_that_changes_twice_is_counted_once() {
    block_on(async {
        let script = r#"INSERT INTO canvas_audit (id, episode_id, canvas_type, action) VALUES ('ca-1', 'zo-1', 'chart', 'present');
             UPDATE episodes SET canvas_ids = '["ca-1"]', canvas_action_count = 1 WHERE id = 'zo-1'"#;
        for world in [Some(small().await), native_on_postgres().await] {
            let Some(world) = with(world, "", script).await else { continue };
            let receipt = told(&world, &["remove", "canvas_event", "ca-1", "--apply"]);
            assert_eq!(receipt["counts"]["episodes"], json!({"update": 1}), "{receipt:#}");
            let left = texts(
                &world,
                "SELECT canvas_action_count || ' ' || CAST(canvas_ids AS TEXT) FROM episodes WHERE id = 'zo-1'",
            )
            .await;
            assert_eq!(left, ["0 []"]);
        }
    });
}

#[test]
fn rows_whose_key_refuses_are_not_removed_along() {
    block_on(async {
        let script = "CREATE TABLE invoices (id INTEGER PRIMARY KEY, episode TEXT NOT NULL REFERENCES episodes (id) ON DELETE RESTRICT); \
             INSERT INTO invoices VALUES (1, 'zo-1')";
        for world in [Some(small().await), native_on_postgres().await] {
            let Some(world) = with(world, "", script).await else { continue };
            let refused = ended(&world, &["remove", "episode", "zo-1", "--apply"]);
            let words = String::from_utf8_lossy(&refused.stderr);
            assert!(words.contains("rows of invoices refer to rows to be deleted"), "{words}");
            assert_eq!(refused.status.code(), Some(5));
            assert_eq!(texts(&world, "SELECT CAST(count(*) AS TEXT) FROM invoices").await, ["1"]);
            assert_erased(&told(&world, &["purge", "zoe-1234", "--apply"]));
            assert_eq!(texts(&world, "SELECT CAST(count(*) AS TEXT) FROM invoices").await, ["0"]);
        }
    });
}

#[test]
fn a_prune_takes_what_names_a_case_in_another_case_and_passes_over_cases_without_an_id() {
    block_on(async {
        let script = "PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = replace(sql, 'id TEXT NOT NULL PRIMARY KEY', 'id TEXT PRIMARY KEY COLLATE NOCASE') \
               WHERE name = 'agent_memory_cases'; PRAGMA writable_schema = RESET; REINDEX; \
             CREATE TABLE votes (id INTEGER PRIMARY KEY, of TEXT NOT NULL REFERENCES agent_memory_cases (id)); \
             INSERT INTO agent_memory_profiles (id, user_id, agent_id, window_size) VALUES ('zp', 'zoe-1234', 'zo-bot', 1); \
             INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES \
               ('zc-1', 'zp', 'zoe-1234', 'zo-bot', '2024-01-01T00:00:00Z'), ('zc-2', 'zp', 'zoe-1234', 'zo-bot', '2024-01-02T00:00:00Z'), \
               (NULL, 'zp', 'zoe-1234', 'zo-bot', '2023-01-01T00:00:00Z'); \
             INSERT INTO votes VALUES (1, 'ZC-1'), (2, 'ZC-2')";
        let world = with(Some(small().await), "", script).await.expect("a database");
        let receipt = told(&world, &["prune", "--agent", "zo-bot", "--apply"]);
        assert_eq!(receipt["counts"]["votes"], json!({"delete": 1}), "{receipt:#}");
        assert!(receipt["disclosures"].to_string().contains("1 case has no id"), "{receipt:#}");
        assert_eq!(texts(&world, "SELECT of FROM votes").await, ["ZC-2"]);
    });
}

#[test]
fn a_prune_changes_rows_that_have_no_key_or_null_in_it() {
    block_on(async {
        let of = "TEXT REFERENCES agent_memory_cases (id)";
        let script = format!(
            "CREATE TABLE bare (of {of}, said TEXT); CREATE TABLE named (id TEXT PRIMARY KEY, of {of}); \
             INSERT INTO agent_memory_profiles (id, user_id, agent_id, window_size) VALUES ('zp', 'zoe-1234', 'zo-bot', 1); \
             INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES \
               ('zc-1', 'zp', 'zoe-1234', 'zo-bot', '2024-01-01T00:00:00Z'), ('zc-2', 'zp', 'zoe-1234', 'zo-bot', '2024-01-02T00:00:00Z'); \
             INSERT INTO bare VALUES ('zc-1', 'a'), ('zc-2', 'b'); \
             INSERT INTO named VALUES ('n-1', 'zc-1'), (NULL, 'zc-1'), (NULL, 'zc-2'), (NULL, NULL)"
        );
        let world = with(Some(small().await), "", &script).await.expect("a database");
        let all = "SELECT coalesce(of, '-') FROM bare UNION ALL SELECT coalesce(of, '-') FROM named \
             UNION ALL SELECT * FROM (SELECT id FROM agent_memory_cases WHERE profile_id = 'zp' ORDER BY id)";
        let before = texts(&world, all).await;
        let receipt = told(&world, &["prune", "--agent", "zo-bot", "--apply"]);
        for (table, rows) in [("bare", 1), ("named", 2)] {
            assert_eq!(receipt["counts"][table], json!({"update": rows}), "{receipt:#}");
        }
        assert_eq!(texts(&world, all).await, ["-", "zc-2", "-", "-", "zc-2", "-", "zc-2"]);
        told(&world, &["undo", &receipt["audit_seq"].to_string(), "--apply"]);
        assert_eq!(texts(&world, all).await, before);
    });
}

#[test]
fn a_retention_passes_over_rows_that_no_id_leads_to() {
    block_on(async {
        // They come first in the order of their ids, and are more than one plan takes.
        let script = "CREATE TABLE shelf (a TEXT NOT NULL, b TEXT NOT NULL, said TEXT, at TEXT, PRIMARY KEY (a, b)); \
             CREATE TABLE slips (id TEXT PRIMARY KEY, said TEXT, at TEXT); \
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2600) \
               INSERT INTO shelf SELECT 'a', n, 'x', '2024-01-01T00:00:00Z' FROM n; \
             INSERT INTO slips VALUES ('b-1', 'y', '2024-01-01T00:00:00Z'), (NULL, 'y', '2024-01-01T00:00:00Z'), ('b-2', 'y', '2999-01-01T00:00:00Z')";
        let world = with(Some(small().await), "", script).await.expect("a database");
        let folder = tempfile::tempdir().expect("a folder");
        let (layout, rules) = (folder.path().join("shelf.toml"), folder.path().join("retention.toml"));
        let columns = "text = \"said\"\ncreated_at = \"at\"\n";
        let text = format!(
            "name = \"shelf\"\ntitle = \"Shelves\"\nrequires = [\"shelf/a\"]\n\
             [[memory]]\ntable = \"shelf\"\nwrite = {{}}\n[memory.columns]\nid = {{ sql = \"t.a || '-' || t.b\" }}\n{columns}\
             [[memory]]\ntable = \"slips\"\nwrite = {{}}\n[memory.columns]\nid = \"id\"\n{columns}"
        );
        std::fs::write(&layout, text).expect("a layout");
        std::fs::write(&rules, "share = 1.0\n[[rule]]\nentity = \"memory\"\nolder_than = \"1d\"\n").expect("rules");
        let [layout, rules] = [layout, rules].map(|path| path.display().to_string());
        let receipt = told(&world, &["--layout", &layout, "retain", &rules, "--apply"]);
        assert_eq!(receipt["counts"], json!({"slips": {"delete": 1}}), "{receipt:#}");
        assert!(receipt["disclosures"].to_string().contains("2,601 overdue rows"), "{receipt:#}");
        assert_eq!(texts(&world, "SELECT coalesce(id, '-') FROM slips ORDER BY id").await, ["-", "b-2"]);
    });
}

#[test]
fn a_text_that_the_encoding_of_a_database_cannot_hold_is_found_nowhere() {
    let Some(database) = Database::encoded("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'") else { return };
    let (home, url) = (tempfile::tempdir().expect("a folder"), database.url().to_owned());
    let made = alone_in(home.path()).args(["-d", &url, "--layout", "mnemoscope", "migrate", "--apply"]).output();
    assert!(made.expect("the program").status.success());
    block_on(async {
        let world = world(Target::Postgres(url), home, Some(database)).await;
        meddle(&world, "INSERT INTO episodes (id, agent_id, user_id, title) VALUES ('e-1', 'a', 'ann', 'José')").await;
        let rows = |words: &[&str]| told(&world, words)["rows"].as_array().expect("rows").len();
        for (filter, found) in [("title=日本", 0), ("title=José", 1), ("title=caf€", 0), ("title!=日本", 1)] {
            assert_eq!(rows(&["list", "episode", "--where", filter]), found, "{filter}");
            assert_eq!(rows(&["table", "episodes", "--where", filter]), found, "{filter}");
        }
        assert_eq!(rows(&["list", "episode", "--where", "title~日"]), 0);
        assert_eq!(rows(&["find", "日本"]), 0);
        for (words, code) in
            [(&["show", "episode", "日本"][..], 3), (&["remove", "episode", "日本"], 3), (&["chain", "日本"], 3)]
        {
            let output = ended(&world, words);
            assert_eq!(output.status.code(), Some(code), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
    });
}
