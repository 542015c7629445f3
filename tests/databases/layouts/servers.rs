//! The layouts of agent frameworks' stores on PostgreSQL, through the command: recognised without being asked for, every
//! row with its text and person, edited and brought back, and one person erased.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::stores::{
    BEHIND_A_WORD, CHATS, ESCAPED, IN_CONSTRUCTORS, chats_are_read, erased_behind_a_word, escapes_are_letters, told_in,
};
use crate::support::fixtures::Layout;
use crate::support::postgres::Database;
use crate::support::world::{address, author, done, meddle, on_postgres, texts};
use crate::support::{block_on, program};
use mnemoscope::change::{self, Operation, undo};
use mnemoscope::memory::Entity;

/// A store with rows of two people, Ada (`ada-1`) and Bo (`bo-22`).
struct ServerStore {
    layout: &'static str,
    statements: &'static str,
    /// Tables that hold people's words.
    tables: &'static [&'static str],
    entity: &'static str,
    column: &'static str,
    rows: usize,
    /// Rows of Bo, which are left.
    left: usize,
}

const STORES: &[ServerStore] = &[
    ServerStore {
        layout: "mem0",
        statements: r#"CREATE EXTENSION vector; CREATE TABLE mem0 (id uuid PRIMARY KEY, vector vector(2), payload jsonb);
            CREATE TABLE "My notes" (id uuid PRIMARY KEY, vector vector(2), payload jsonb);
            CREATE TABLE mem0_entities (id uuid PRIMARY KEY, vector vector(2), payload jsonb);
            INSERT INTO mem0 VALUES ('00000000-0000-0000-0000-000000000001', '[1,0]', '{"data":"Ada likes tea","user_id":"ada-1",
                "hash":"x","text_lemmatized":"Ada like tea","created_at":"2026-01-01T00:00:00.5+00:00","updated_at":null}'),
              ('00000000-0000-0000-0000-000000000002', NULL, '{"data":"Bo likes coffee","user_id":"bo-22"}');
            INSERT INTO "My notes" VALUES ('00000000-0000-0000-0000-000000000003', '[0,1]', '{"data":"Ada rows","user_id":"ada-1"}'),
              ('00000000-0000-0000-0000-000000000004', NULL, NULL);
            INSERT INTO mem0_entities VALUES ('00000000-0000-0000-0000-000000000005', '[1,0]', '{"data":"Ada likes","user_id":"ada-1"}');"#,
        tables: &["mem0", "\"My notes\"", "mem0_entities"],
        entity: "memory",
        column: "text",
        rows: 4,
        left: 2,
    },
    ServerStore {
        layout: "langgraph-store",
        statements: r#"CREATE EXTENSION vector; CREATE TABLE store_migrations (v int PRIMARY KEY);
            CREATE TABLE store (prefix text NOT NULL, key text NOT NULL, value jsonb NOT NULL, created_at timestamptz DEFAULT now(),
              updated_at timestamptz DEFAULT now(), expires_at timestamptz, ttl_minutes int, PRIMARY KEY (prefix, key));
            CREATE TABLE store_vectors (prefix text NOT NULL, key text NOT NULL, field_name text NOT NULL, embedding vector(2),
              PRIMARY KEY (prefix, key, field_name), FOREIGN KEY (prefix, key) REFERENCES store (prefix, key) ON DELETE CASCADE);
            INSERT INTO store VALUES ('memories.ada-1.s1', 'k''1', '{"text":"Ada likes tea","topics":["food"]}', now(), now(), NULL, NULL),
              ('ada-1.profile', 'k/2', '{"kind":"Memory","content":{"content":"Ada rows"}}', now(), NULL, NULL, NULL),
              ('memories.ada-11', 'k1', '{"text":"Bo likes coffee"}', now(), now(), '2020-01-01', 5);
            INSERT INTO store_vectors VALUES ('memories.ada-1.s1', 'k''1', '$', '[1,0]'), ('memories.ada-11', 'k1', '$', '[0,1]');"#,
        tables: &["store", "store_vectors"],
        entity: "memory",
        column: "text",
        rows: 3,
        left: 1,
    },
    ServerStore {
        layout: "langgraph-checkpoints",
        statements: r#"CREATE TABLE checkpoints (thread_id text NOT NULL, checkpoint_ns text NOT NULL DEFAULT '', checkpoint_id text NOT NULL,
              parent_checkpoint_id text, type text, checkpoint jsonb NOT NULL, metadata jsonb NOT NULL DEFAULT '{}',
              PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
            CREATE TABLE checkpoint_blobs (thread_id text, checkpoint_ns text DEFAULT '', channel text, version text, type text, blob bytea,
              PRIMARY KEY (thread_id, checkpoint_ns, channel, version));
            CREATE TABLE checkpoint_writes (thread_id text, checkpoint_ns text DEFAULT '', checkpoint_id text, task_id text, idx int,
              channel text, type text, blob bytea, task_path text DEFAULT '', PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
            INSERT INTO checkpoints VALUES ('t1', '', '1', NULL, NULL, '{"ts":"2026-01-01T00:00:00+00:00"}', '{"user_id":"ada-1","step":0}'),
              ('t1', '', '2', '1', NULL, '{"ts":"2026-01-01T00:00:01+00:00"}', '{"step":null}'),
              ('ada-1:x', '', '1', NULL, NULL, '{"ts":"2026-01-01T00:00:00+00:00"}', '{}'),
              ('t2', 'sub|x', '1', NULL, NULL, '{"ts":"2026-01-01T00:00:00+00:00"}', '{"user_id":"bo-22"}');
            INSERT INTO checkpoint_blobs VALUES ('t1', '', 'messages', '1', 'msgpack', '\x9181a7636f6e74656e74ad416461206c696b657320746561'),
              ('t1', '', 'other', '1', 'empty', NULL),
              ('t2', '', 'messages', '1', 'msgpack', '\x9181a7636f6e74656e74af426f206c696b657320636f66666565');
            INSERT INTO checkpoint_writes VALUES ('t1', '', '1', 't', -1, 'messages', 'json', '\x22416461206c696b657322', ''),
              ('t2', 'sub|x', '1', 't', 0, 'messages', 'bytes', '\xff00', '');"#,
        tables: &["checkpoints", "checkpoint_blobs", "checkpoint_writes"],
        entity: "episode",
        column: "detail",
        rows: 3,
        left: 1,
    },
    ServerStore {
        layout: "langgraph-shallow",
        statements: r#"CREATE TABLE checkpoints (thread_id text NOT NULL, checkpoint_ns text NOT NULL DEFAULT '', type text,
              checkpoint jsonb NOT NULL, metadata jsonb NOT NULL DEFAULT '{}', PRIMARY KEY (thread_id, checkpoint_ns));
            CREATE TABLE checkpoint_blobs (thread_id text, checkpoint_ns text DEFAULT '', channel text, type text NOT NULL, blob bytea,
              PRIMARY KEY (thread_id, checkpoint_ns, channel));
            CREATE TABLE checkpoint_writes (thread_id text, checkpoint_ns text DEFAULT '', checkpoint_id text, task_id text, idx int,
              channel text, type text, blob bytea NOT NULL, task_path text NOT NULL DEFAULT '',
              PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
            INSERT INTO checkpoints VALUES ('t1', '', NULL, '{"id":"1","ts":"2026-01-01T00:00:00+00:00"}', '{"user_id":"ada-1","step":3}'),
              ('t1', 'sub|x', NULL, '{"id":"2","ts":"2026-01-01T00:00:01+00:00"}', '{"step":null}'),
              ('ada-1:x', '', NULL, '{"id":"3","ts":"2026-01-01T00:00:00+00:00"}', '{}'),
              ('t2', '', NULL, '{"id":"4","ts":"2026-01-01T00:00:00+00:00"}', '{"user_id":"bo-22"}');
            INSERT INTO checkpoint_blobs VALUES ('t1', '', 'messages', 'msgpack', '\x9181a7636f6e74656e74ad416461206c696b657320746561'),
              ('t1', 'sub|x', 'other', 'empty', NULL),
              ('t2', '', 'messages', 'msgpack', '\x9181a7636f6e74656e74af426f206c696b657320636f66666565');
            INSERT INTO checkpoint_writes VALUES ('t1', '', '1', 't', -1, 'messages', 'json', '\x22416461206c696b657322', ''),
              ('t2', '', '4', 't', 0, 'messages', 'bytes', '\xff00', '');"#,
        tables: &["checkpoints", "checkpoint_blobs", "checkpoint_writes"],
        entity: "episode",
        column: "detail",
        rows: 3,
        left: 1,
    },
    ServerStore {
        layout: "hindsight",
        statements: r#"CREATE TABLE banks (bank_id text PRIMARY KEY, name text, updated_at timestamptz);
            CREATE TABLE documents (id text, bank_id text, original_text text, tags text[], retain_params jsonb, created_at timestamptz,
              updated_at timestamptz, PRIMARY KEY (id, bank_id));
            CREATE TABLE chunks (chunk_id text PRIMARY KEY, document_id text, bank_id text, chunk_index int, chunk_text text, created_at timestamptz);
            CREATE TABLE memory_units (id uuid PRIMARY KEY, bank_id text NOT NULL, document_id text, text text NOT NULL, context text,
              fact_type text NOT NULL, metadata jsonb NOT NULL, tags character varying(40)[] NOT NULL, created_at timestamptz NOT NULL DEFAULT now(),
              updated_at timestamptz NOT NULL DEFAULT now(), embedding float4[], search_vector tsvector);
            INSERT INTO banks VALUES ('ada-1', 'Ada', now()), ('bo-22', 'Bo', now());
            INSERT INTO documents VALUES ('d1', 'ada-1', 'Ada likes tea. Ada rows.', '{x}', NULL, now(), now());
            INSERT INTO chunks VALUES ('c1', 'd1', 'ada-1', 0, 'Ada likes tea.', now());
            INSERT INTO memory_units VALUES ('00000000-0000-0000-0000-000000000001', 'ada-1', 'd1', 'Ada likes tea', NULL, 'world', '{"a":null}', '{x,"y z"}'),
              ('00000000-0000-0000-0000-000000000002', 'ada-1', 'd1', 'Ada rows', 'sport', 'world', '{}', '{}'),
              ('00000000-0000-0000-0000-000000000003', 'bo-22', NULL, 'Bo likes coffee', NULL, 'opinion', '{}', '{}');"#,
        tables: &["banks", "documents", "chunks", "memory_units"],
        entity: "memory",
        column: "text",
        rows: 3,
        left: 1,
    },
    ServerStore {
        layout: "letta",
        statements: r#"CREATE TABLE identities (id text PRIMARY KEY, identifier_key text, name text, updated_at timestamptz);
            CREATE TABLE agents (id text PRIMARY KEY, name text, description text, metadata_ json, created_at timestamptz, updated_at timestamptz);
            CREATE TABLE identities_agents (identity_id text REFERENCES identities (id) ON DELETE CASCADE, agent_id text, PRIMARY KEY (identity_id, agent_id));
            CREATE TABLE archives (id text PRIMARY KEY, name text);
            CREATE TABLE archives_agents (agent_id text, archive_id text, PRIMARY KEY (agent_id, archive_id));
            CREATE TABLE archival_passages (id text PRIMARY KEY, text text, embedding float4[], tags json, is_deleted bool NOT NULL DEFAULT false,
              archive_id text, metadata_ json, created_at timestamptz, updated_at timestamptz);
            CREATE TABLE passage_tags (id text PRIMARY KEY, tag text, passage_id text);
            CREATE TABLE block (id text PRIMARY KEY, label text, value text, is_deleted bool NOT NULL DEFAULT false, metadata_ json,
              created_at timestamptz, updated_at timestamptz);
            CREATE TABLE blocks_agents (agent_id text, block_id text, PRIMARY KEY (agent_id, block_id));
            CREATE TABLE identities_blocks (identity_id text, block_id text, PRIMARY KEY (identity_id, block_id));
            CREATE TABLE groups (id text PRIMARY KEY, manager_type text, manager_agent_id text);
            CREATE TABLE groups_agents (group_id text, agent_id text, PRIMARY KEY (group_id, agent_id));
            CREATE TABLE messages (id text PRIMARY KEY, agent_id text, role text, text text, content json, tool_calls json, sequence_id bigint,
              conversation_id text, created_at timestamptz, sender_id text);
            CREATE TABLE provider_traces (id text PRIMARY KEY, agent_id text, request_json json);
            INSERT INTO provider_traces VALUES ('t1', 'a1', '{"prompt": "Ada likes tea"}');
            INSERT INTO identities VALUES ('i1', 'ada-1', 'Ada'), ('i2', 'bo-22', 'Bo');
            INSERT INTO agents VALUES ('a1', 'helper'), ('a2', 'helper'), ('a3', 'shared');
            INSERT INTO identities_agents VALUES ('i1', 'a1'), ('i2', 'a2'), ('i1', 'a3'), ('i2', 'a3');
            INSERT INTO archives VALUES ('v1', 'x'), ('v2', 'y'), ('v3', 'both');
            INSERT INTO archives_agents VALUES ('a1', 'v1'), ('a2', 'v2'), ('a3', 'v3');
            INSERT INTO archival_passages VALUES ('p1', 'Ada likes tea', NULL, '["x"]', false, 'v1', '{}', now(), now()),
              ('p2', 'Bo likes coffee', NULL, 'null', false, 'v2', NULL, now(), NULL), ('p3', 'All share this', NULL, NULL, true, 'v3', NULL, now(), NULL);
            INSERT INTO passage_tags VALUES ('g1', 'x', 'p1');
            INSERT INTO block VALUES ('b1', 'human', 'Ada rows', false, '{}', now(), now()), ('b2', 'human', 'Bo rows', false, '{}', now(), now()),
              ('b3', 'human', 'Ada sews', false, '{}', now(), now());
            INSERT INTO blocks_agents VALUES ('a1', 'b1'), ('a2', 'b2');
            INSERT INTO identities_blocks VALUES ('i1', 'b3'), ('i1', 'b2');
            INSERT INTO messages VALUES ('m1', 'a1', 'user', NULL, '[{"type":"text","text":"Ada likes tea"}]', NULL, 1, NULL, now(), 'i1'),
              ('m2', 'a3', 'user', NULL, '[{"type":"text","text":"Ada speaks to all"}]', NULL, 2, NULL, now(), 'i1');"#,
        tables: &[
            "identities", "identities_agents", "archives", "archival_passages", "passage_tags", "block", "messages",
            "provider_traces",
        ],
        entity: "memory",
        column: "text",
        rows: 6,
        left: 3,
    },
    ServerStore {
        layout: "agno",
        statements: r#"CREATE TABLE agno_memories (memory_id varchar PRIMARY KEY, memory jsonb NOT NULL, input varchar, agent_id varchar,
              team_id varchar, user_id varchar, topics jsonb, feedback varchar, created_at bigint NOT NULL, updated_at bigint);
            INSERT INTO agno_memories VALUES ('m/1', '"Ada likes tea"', NULL, NULL, NULL, 'ada-1', '["x"]', 'positive', 1772461855, NULL),
              ('m''2', '{"memory":"Ada rows"}', 'Ada asks', NULL, NULL, 'ada-1', 'null', NULL, 1772461855, 1772461856),
              ('m3', '"Bo likes coffee"', NULL, 'a', NULL, 'bo-22', NULL, NULL, 1772461855, NULL);"#,
        tables: &["agno_memories"],
        entity: "memory",
        column: "text",
        rows: 3,
        left: 1,
    },
];

/// Rows of tables as text.
async fn dump(url: &str, tables: &[&str]) -> Vec<String> {
    let mut link = PgConnection::connect(url).await.expect("a connection");
    let mut all = Vec::new();
    for table in tables {
        let sql = AssertSqlSafe(format!("SELECT t::text FROM {table} t ORDER BY 1"));
        let rows = sqlx::query_scalar::<_, String>(sql).fetch_all(&mut link).await.expect("rows");
        all.extend(rows.into_iter().map(|row| format!("{table} {row}")));
    }
    link.close().await.expect("closed");
    all
}

pub async fn fill(url: &str, statements: &'static str) {
    let mut link = PgConnection::connect(url).await.expect("a connection");
    sqlx::raw_sql(statements).execute(&mut link).await.expect("statements");
    link.close().await.expect("closed");
}

/// Whether a stored row says something of Ada: in its text, or in bytes, which are there in hexadecimal digits.
fn names_ada(row: &str) -> bool {
    row.contains("Ada ")
        || row.contains("ada-1,")
        || row.contains("\"ada-1\"")
        || row.contains(&hex::encode("Ada likes"))
}

#[test]
fn every_store_on_a_server_is_recognised_listed_edited_and_erased() {
    for store in STORES {
        let Some(database) = Database::fresh() else { return };
        if store.statements.contains("EXTENSION vector") && !database.has_vector() {
            continue;
        }
        let home = tempfile::tempdir().expect("a folder");
        block_on(fill(database.url(), store.statements));
        let stored = || block_on(dump(database.url(), store.tables));
        let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
        let rows = |more: &[&str]| -> Vec<Value> {
            let listed = told(&[&["list", store.entity, "--limit", "100"], more].concat());
            listed["rows"].as_array().expect("rows").clone()
        };
        assert_eq!(told(&["status"])["layouts"][0]["name"], store.layout);
        let found = rows(&[]);
        assert_eq!(found.len(), store.rows, "{}: {found:#?}", store.layout);
        assert!(found.iter().all(|row| row["problems"].is_null()), "{}: {found:#?}", store.layout);
        let row = found.iter().find(|row| row[store.column] == "Ada likes tea");
        let row = row.unwrap_or_else(|| panic!("{}: {found:#?}", store.layout));
        assert!(rows(&["--mask"]).iter().all(|row| row[store.column] != "Ada likes tea"), "{}", store.layout);

        told(&["migrate", "--apply"]);
        if store.entity == "memory" {
            assert_eq!(
                rows(&["--where", "user_id=ada-1"]).len(),
                found.iter().filter(|r| r["user_id"] == "ada-1").count()
            );
            assert_eq!(row["user_id"], "ada-1", "{}", store.layout);
            let before = stored();
            let id = row["id"].as_str().expect("an id");
            let receipt = told(&["edit", "memory", id, "text=Ada collects \"blue\" kites", "--apply"]);
            let found = told(&["recall", "blue kites", "--ranking", "similar"]);
            assert_eq!(found["rows"][0]["id"], json!(id), "{}: {found:#}", store.layout);
            told(&["undo", &receipt["audit_seq"].to_string(), "--apply"]);
            assert_eq!(stored(), before, "{}", store.layout);
            let receipt = told(&["remove", "memory", id, "--apply"]);
            assert_ne!(stored(), before, "{}", store.layout);
            told(&["undo", &receipt["audit_seq"].to_string(), "--apply"]);
            assert_eq!(stored(), before, "{}", store.layout);
        }
        let before = stored();
        told(&["purge", "ada-1", "--mentions", "redact", "--apply"]);
        let after = stored();
        assert_eq!(rows(&[]).len(), store.left, "{}", store.layout);
        assert!(!after.iter().any(|row| names_ada(row)), "{}: {after:#?}", store.layout);
        for row in before.iter().filter(|row| row.contains("Bo ") || row.contains("bo-22")) {
            assert!(after.contains(row), "{}: {row}\n{after:#?}", store.layout);
        }
    }
}

#[test]
fn search_words_of_others_stay_where_their_text_stays() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "hindsight").expect("a store");
    block_on(fill(database.url(), store.statements));
    block_on(fill(
        database.url(),
        "INSERT INTO memory_units (id, bank_id, text, fact_type, metadata, tags, search_vector) VALUES \
         ('00000000-0000-0000-0000-000000000004', 'bo-22', 'met joao-silva-71', 'world', '{}', '{}', \
          '''joao-silva-7'':2 ''joao-silva-71'':2 ''met'':1'), \
         ('00000000-0000-0000-0000-000000000005', 'bo-22', 'asked joao-silva-7 for tea', 'world', '{}', '{}', \
          '''ask'':1 ''joao-silva-7'':2 ''tea'':4'); \
         INSERT INTO banks VALUES ('joao-silva-7', 'Jo', now()); UPDATE documents SET bank_id = 'joao-silva-7'; \
         CREATE TABLE file_storage (storage_key text PRIMARY KEY, data bytea); \
         ALTER TABLE documents ADD COLUMN file_storage_key text; UPDATE documents SET file_storage_key = 'f1'; \
         INSERT INTO file_storage VALUES ('f1', 'a file'), ('f2', 'another')",
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    told(&["purge", "joao-silva-7", "--mentions", "redact", "--apply"]);
    let rows = block_on(dump(database.url(), &["memory_units", "file_storage"])).join("\n");
    assert!(rows.contains("'joao-silva-7':2 'joao-silva-71':2 'met':1"), "{rows}");
    assert!(rows.contains("'ask':1 'tea':4") && !rows.contains("asked joao"), "{rows}");
    assert!(rows.contains("(f2,") && !rows.contains("(f1,"), "{rows}");
}

#[test]
fn a_state_goes_with_one_of_its_channels_and_leaves_the_others_of_its_thread() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "langgraph-checkpoints").expect("a store");
    block_on(fill(database.url(), store.statements));
    block_on(fill(
        database.url(),
        r#"INSERT INTO checkpoints SELECT thread, '', id, NULL, NULL, jsonb_build_object('ts', '2026-01-01T00:00:00+00:00',
               'channel_versions', jsonb_build_object('messages', id, 'facts', '1')), metadata::jsonb
             FROM (VALUES ('ada-lopez-71:1', '1', '{}'), ('t8', '1', '{"user_id":"bo-22"}'), ('t8', '2', '{"user_id":"bo-22"}'),
               ('t9', '1', '{"user_id":"bo-22"}')) s (thread, id, metadata);
           INSERT INTO checkpoint_blobs SELECT thread, '', channel, version, 'json', convert_to(value, 'UTF8')
             FROM (VALUES ('t8', 'messages', '1', '"asks ada-lopez-71 for tea"'), ('t8', 'messages', '2', '"tea"'),
               ('t8', 'facts', '1', '"tea"'), ('t9', 'messages', '1', '"tea"')) s (thread, channel, version, value);
           INSERT INTO checkpoint_writes VALUES ('t8', '', '1', 't', 0, 'messages', 'empty', NULL, ''),
             ('t8', '', '2', 't', 0, 'messages', 'empty', NULL, '')"#,
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    let rows = |thread: &str| {
        let all = block_on(dump(database.url(), store.tables));
        all.into_iter().filter(|row| row.contains(&format!("({thread},"))).count()
    };
    assert_eq!((rows("t8"), rows("t9")), (7, 2));
    let receipt = told(&["purge", "ada-lopez-71", "--mentions", "delete", "--apply"]);
    assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
    // The state, the channel that names her, and the state's write.
    assert_eq!((rows("t8"), rows("t9")), (4, 2), "{receipt:#}");
}

#[test]
fn the_words_of_a_thread_are_those_of_its_last_version_in_any_encoding() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "langgraph-checkpoints").expect("a store");
    block_on(fill(database.url(), store.statements));
    block_on(fill(
        database.url(),
        format!(
            r#"INSERT INTO checkpoints SELECT thread, '', '1', NULL, NULL, state::jsonb, '{{}}' FROM (VALUES
                 ('js-1', '{{"channel_versions":{{"messages":9}}}}'), ('js-2', '{{}}'), ('js-3', '{{}}')) s (thread, state);
               INSERT INTO checkpoint_blobs SELECT thread, '', 'messages', version, kind, convert_to(value, 'UTF8') FROM (VALUES
                 ('js-1', '9', 'json', '{IN_CONSTRUCTORS}'), ('js-1', '10', 'json', '[]'), ('js-2', '12', 'json', '{IN_CONSTRUCTORS}'),
                 ('js-2', '9', 'json', '[{{"content":"old"}}]'), ('js-2', 'next', 'json', '[]'), ('js-3', '1', 'dill', 'x')) s (thread, version, kind, value)"#
        )
        .leak(),
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    let detail = |thread: &str| told(&["show", "episode", thread])["episode"]["detail"].clone();
    for thread in ["js-1", "js-2"] {
        assert_eq!(detail(thread), "Ada asks for tea\nNoted", "{thread}");
    }
    assert_eq!(detail("js-3"), "not read: dill");
    let told = told(&["list", "workflow_event", "--where", "data ~ 'not read: dill'"]);
    assert_eq!(told["rows"].as_array().map(Vec::len), Some(1), "{told:#}");
}

#[test]
fn a_thread_that_gets_another_name_keeps_its_channels() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "langgraph-checkpoints").expect("a store");
    block_on(fill(database.url(), store.statements));
    block_on(fill(
        database.url(),
        r#"INSERT INTO checkpoints SELECT thread, '', '1', NULL, NULL, '{"ts":"2026-01-01T00:00:00+00:00"}', metadata::jsonb
             FROM (VALUES ('user/ada-lopez-71/1', '{}'), ('user/bo-22/ada-lopez-71', '{"user_id":"bo-22"}')) s (thread, metadata);
           INSERT INTO checkpoint_blobs VALUES ('user/bo-22/ada-lopez-71', '', 'messages', '1', 'json', '"tea"')"#,
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    told(&["purge", "ada-lopez-71", "--mentions", "redact", "--apply"]);
    let thread = |table: &str| {
        let rows = block_on(dump(database.url(), &[table]));
        let named = rows.iter().find_map(|row| Some(row.split_once("(user/bo-22/")?.1.split(',').next()?.to_owned()));
        named.unwrap_or_else(|| panic!("{rows:#?}"))
    };
    assert_ne!(thread("checkpoints"), "ada-lopez-71");
    assert_eq!(thread("checkpoints"), thread("checkpoint_blobs"));
}

#[test]
fn a_person_stands_after_a_word_in_a_namespace_on_a_server() {
    let Some(database) = Database::fresh().filter(Database::has_vector) else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "langgraph-store").expect("a store");
    block_on(fill(database.url(), store.statements));
    block_on(fill(database.url(), BEHIND_A_WORD));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    let rows = |keys: &[&str]| -> Vec<String> {
        let all = block_on(dump(database.url(), &["store"]));
        all.into_iter().filter(|row| keys.iter().any(|key| row.contains(&format!(",{key},")))).collect()
    };
    erased_behind_a_word(&told, &rows);
}

#[test]
fn letters_that_json_keeps_as_escapes_are_shown_and_found_on_a_server() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let memories = "CREATE TABLE agno_memories (memory_id VARCHAR PRIMARY KEY, memory JSON NOT NULL, input VARCHAR, \
          agent_id VARCHAR, team_id VARCHAR, user_id VARCHAR, topics JSON, feedback VARCHAR, created_at BIGINT, updated_at BIGINT); \
        INSERT INTO agno_memories VALUES ('m1', '\"Ada likes tea\"', NULL, NULL, NULL, 'ada-1', NULL, NULL, 1, 1), \
          ('m2', '\"Bo likes coffee\"', NULL, NULL, NULL, 'bo-22', NULL, NULL, 1, 1)";
    block_on(fill(database.url(), memories));
    block_on(fill(database.url(), ESCAPED));
    escapes_are_letters(&|arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments));
}

#[test]
fn bytes_of_attachments_go_with_them() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "hindsight").expect("a store");
    block_on(fill(database.url(), store.statements));
    block_on(fill(
        database.url(),
        "CREATE TABLE file_storage (storage_key text PRIMARY KEY, data bytea); \
         CREATE TABLE attachments (bank_id text, attachment_hash text, storage_key text, PRIMARY KEY (bank_id, attachment_hash)); \
         INSERT INTO file_storage VALUES ('a1', '\\x01'), ('a2', '\\x02'), ('both', '\\x03'); \
         INSERT INTO attachments VALUES ('ada-1', 'x', 'a1'), ('bo-22', 'y', 'a2'), ('ada-1', 'z', 'both'), ('bo-22', 'z', 'both')",
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    told(&["purge", "ada-1", "--apply"]);
    let rows = block_on(dump(database.url(), &["file_storage"])).join("\n");
    assert!(!rows.contains("(a1,") && rows.contains("(a2,") && rows.contains("(both,"), "{rows}");
}

const IN_SCHEMA: &str = r#"CREATE SCHEMA ai; CREATE TABLE ai.agno_memories (memory_id text PRIMARY KEY, memory jsonb NOT NULL, input text,
      agent_id text, team_id text, user_id text, topics jsonb, feedback text, created_at bigint, updated_at bigint);
    INSERT INTO ai.agno_memories VALUES ('m1', '"Ada rows"', NULL, NULL, NULL, 'ada-1', NULL, NULL, 1, 1);"#;

#[test]
fn a_store_outside_of_the_search_path_is_told_by_status_and_by_each_plan() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), IN_SCHEMA));
    let commands = [(0, &["migrate"][..]), (5, &["migrate", "--apply"]), (5, &["purge", "ada-1", "--apply"])];
    for (code, arguments) in commands {
        let mut command = Command::new(program());
        command.env("HOME", home.path()).env_remove("MNEMOSCOPE_DATABASE");
        let done = command.arg("-d").arg(database.url()).args(arguments).output().expect("it runs");
        let words = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(code) && words.contains("search_path]=ai"), "{arguments:?}: {words}");
    }
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    let plan = told(&["purge", "ada-1"]);
    assert!(plan["disclosures"].to_string().contains("search_path]=ai"), "{plan:#}");
    // A store that is read does not hide the other one.
    let checkpoints = STORES.iter().find(|store| store.layout == "langgraph-checkpoints").expect("a store");
    block_on(fill(database.url(), checkpoints.statements));
    let status = told(&["status"]);
    let capabilities = status["capabilities"].as_array().expect("capabilities");
    let other = capabilities.iter().find(|capability| capability["name"] == "every_store").expect("the other store");
    let reason = other["reason"].as_str().expect("a reason");
    assert!(reason.contains("the layout agno") && reason.contains("schema `ai`"), "{reason}");
    told(&["migrate", "--apply"]);
    let receipt = told(&["purge", "ada-1", "--mentions", "redact", "--apply"]);
    assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
    assert!(receipt["disclosures"].to_string().contains(reason), "{receipt:#}");
}

/// Tables of Open WebUI before it had one of messages.
const OPEN_WEBUI: &str = r#"
    CREATE TABLE "user" (id VARCHAR PRIMARY KEY, name VARCHAR, email VARCHAR, last_active_at BIGINT);
    CREATE TABLE memory (id VARCHAR PRIMARY KEY, user_id VARCHAR, content TEXT, created_at BIGINT, updated_at BIGINT);
    CREATE TABLE chat (id VARCHAR PRIMARY KEY, user_id VARCHAR, title TEXT, chat JSON, created_at BIGINT, updated_at BIGINT, archived BOOLEAN, meta JSON);
    CREATE TABLE file (id VARCHAR PRIMARY KEY, user_id VARCHAR, filename TEXT);
    INSERT INTO "user" VALUES ('ada-1', 'Ada', 'ada@example.org', 1), ('bo-22', 'Bo', 'bo@example.org', 1);
    INSERT INTO memory VALUES ('m1', 'ada-1', 'Ada likes tea', 1, 1), ('m2', 'bo-22', 'Bo likes coffee', 1, 1);
    INSERT INTO file VALUES ('f1', 'ada-1', 'a.pdf'), ('f2', 'bo-22', 'b.pdf');
    INSERT INTO chat VALUES ('c1', 'ada-1', 'tea', '{"messages":[{"content":"Ada asks for tea"}]}', 1, 1, false, '{}');"#;

#[test]
fn older_chats_on_a_server_are_read() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), OPEN_WEBUI));
    block_on(fill(database.url(), CHATS));
    chats_are_read(&|arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments));
}

#[test]
fn chunks_of_memories_and_files_go_with_their_person() {
    let Some(database) = Database::fresh() else { return };
    if !database.has_vector() {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), OPEN_WEBUI));
    block_on(fill(
        database.url(),
        r#"CREATE EXTENSION vector;
           CREATE TABLE document_chunk (id text PRIMARY KEY, vector vector(2), collection_name text NOT NULL, text text, vmetadata jsonb);
           INSERT INTO document_chunk VALUES ('m1', '[1,0]', 'user-memory-ada-1', 'Ada likes tea', '{}'),
             ('m2', '[0,1]', 'user-memory-bo-22', 'Bo likes coffee', '{}'), ('m9', '[1,0]', 'user-memory-ada-1', 'tea', NULL),
             ('k1', '[1,0]', 'file-f1', 'a', '{}'), ('k2', '[1,0]', 'knowledge', 'a', '{"file_id": "f1"}'),
             ('k3', '[1,0]', 'web', 'a', '{"created_by": "ada-1"}'), ('k4', '[0,1]', 'file-f2', 'b', '{"created_by": "bo-22"}')"#,
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    let chunks = || block_on(dump(database.url(), &["document_chunk"])).join("\n");
    let before = chunks();
    let receipt = told(&["edit", "memory", "m1", "text=Ada likes rain", "--apply"]);
    assert!(!chunks().contains("Ada likes tea"), "the chunk of the earlier text");
    told(&["undo", &receipt["audit_seq"].to_string(), "--apply"]);
    assert_eq!(chunks(), before);
    let receipt = told(&["purge", "ada-1", "--apply"]);
    assert_eq!(receipt["counts"]["document_chunk"], json!({"delete": 5}), "{receipt:#}");
    assert!(chunks().contains("(m2,") && chunks().contains("(k4,"), "{}", chunks());
}

#[test]
fn links_without_a_key_are_counted_by_their_bank() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "hindsight").expect("a store");
    block_on(fill(database.url(), store.statements));
    block_on(fill(
        database.url(),
        "CREATE TABLE memory_links (bank_id text NOT NULL, link_type text, \
           from_unit_id uuid NOT NULL REFERENCES memory_units ON DELETE CASCADE, \
           to_unit_id uuid NOT NULL REFERENCES memory_units ON DELETE CASCADE); \
         INSERT INTO memory_links SELECT u.bank_id, 'semantic', u.id, u.id FROM memory_units u, generate_series(1, 2)",
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    let plan = told(&["purge", "ada-1"]);
    assert_eq!(plan["counts"]["memory_links"], json!({"delete": 4}), "{plan:#}");
    let counts = plan["counts"]
        .as_object()
        .expect("counts")
        .values()
        .flat_map(|verbs| verbs.as_object().expect("verbs").values());
    assert_eq!(plan["changes_total"].as_u64(), Some(counts.filter_map(Value::as_u64).sum()), "{plan:#}");
    let words = json!([plan["effects"], plan["disclosures"]]).to_string();
    assert!(!words.contains("memory_links"), "{words}");
    let receipt = told(&["purge", "ada-1", "--apply"]);
    assert_eq!(receipt["counts"], plan["counts"], "{receipt:#}");
    let left = block_on(dump(database.url(), &["memory_links"]));
    assert!(left.len() == 2 && left.iter().all(|row| row.contains("bo-22")), "{left:?}");
}

/// Notes of people, and what depends on them in tables whose keys hold ids, or that have none.
const HANGING_ON_NOTES: &str = r#"
    name = "notes"
    title = "Notes"
    requires = ["notes/owner"]

    [[memory]]
    table = "notes"
    [memory.columns]
    id = "id"
    text = "body"
    user_id = "owner"

    [[erase]]
    table = "notes"
    column = "owner"

    [[erase]]
    table = "likes"
    column = "liker"

    [[erase]]
    table = "links"
    column = "owner"

    [[erase]]
    table = "links"
    column = "other"
"#;

#[test]
fn rows_whose_own_key_refers_to_a_key_that_gets_another_name_go_first() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let layout = home.path().join("notes.toml");
    std::fs::write(&layout, HANGING_ON_NOTES).expect("a layout");
    block_on(fill(
        database.url(),
        "CREATE TABLE notes (id text PRIMARY KEY, owner text, body text); \
         CREATE TABLE likes (note text REFERENCES notes, liker text, PRIMARY KEY (note, liker)); \
         CREATE TABLE links (note text NOT NULL REFERENCES notes ON DELETE CASCADE, owner text, other text); \
         INSERT INTO notes VALUES ('talk.ada-4711.x', 'bo-22', 'tea'), ('n-of-ada', 'ada-4711', 'milk'); \
         INSERT INTO likes VALUES ('talk.ada-4711.x', 'ada-4711'), ('talk.ada-4711.x', 'bo-22'); \
         INSERT INTO links VALUES ('n-of-ada', 'ada-4711', 'bo-22'), ('n-of-ada', 'bo-22', 'cy-33')",
    ));
    let told = |arguments: &[&str]| {
        let words = [&["--layout", layout.to_str().expect("a path")], arguments].concat();
        told_in(home.path(), Path::new(database.url()), &words)
    };
    told(&["migrate", "--apply"]);
    let receipt = told(&["purge", "ada-4711", "--mentions", "redact", "--apply"]);
    assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
    // Links have two people each and no key: what takes them along is the engine, and no count has them.
    assert_eq!(receipt["counts"], json!({"likes": {"delete": 1, "update": 1}, "notes": {"delete": 1, "update": 1}}));
    let likes = block_on(dump(database.url(), &["likes"]));
    assert!(likes.len() == 1 && likes[0].contains("bo-22") && !likes[0].contains("ada-4711"), "{likes:?}");
    assert_eq!(block_on(dump(database.url(), &["links"])), Vec::<String>::new());
}

#[test]
fn mental_models_of_two_banks_with_one_id_are_told_apart() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "hindsight").expect("a store");
    block_on(fill(database.url(), store.statements));
    block_on(fill(
        database.url(),
        "CREATE TABLE mental_models (id text, bank_id text, name text, content text, created_at timestamptz DEFAULT now(), \
           PRIMARY KEY (bank_id, id)); \
         INSERT INTO mental_models VALUES ('mm', 'ada-1', 'tea', 'Ada likes tea'), ('mm', 'bo-22', 'coffee', 'Bo likes coffee')",
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    for (id, text) in [(r#"["ada-1","mm"]"#, "Ada likes tea"), (r#"["bo-22","mm"]"#, "Bo likes coffee")] {
        let shown = told(&["show", "memory", id]);
        assert_eq!((&shown["id"], &shown["text"]), (&json!(id), &json!(text)), "{shown:#}");
        assert!(shown["problems"].is_null(), "{shown:#}");
    }
    told(&["migrate", "--apply"]);
    told(&["purge", "ada-1", "--apply"]);
    let listed = told(&["list", "memory", "--limit", "100"]);
    let ids: Vec<&str> = listed["rows"].as_array().expect("rows").iter().filter_map(|row| row["id"].as_str()).collect();
    assert!(ids.contains(&r#"["bo-22","mm"]"#) && ids.len() == 2, "{ids:?}");
}

const TIMES: &str = "CREATE TABLE agent_sessions (session_id text PRIMARY KEY, created_at timestamp, updated_at timestamp);
    CREATE TABLE agent_messages (id serial PRIMARY KEY, session_id text, message_data text, created_at timestamptz);
    CREATE TABLE message_structure (id int, session_id text, message_id int, branch_id text, message_type text, sequence_number int,
      user_turn_number int, branch_turn_number int, tool_name text, created_at timestamp);
    INSERT INTO agent_sessions VALUES ('s', '2026-01-01', '2026-01-01');
    INSERT INTO agent_messages (session_id, message_data, created_at) SELECT 's', '{\"role\":\"user\",\"content\":\"hi\"}', at::timestamptz
      FROM unnest(ARRAY['0044-03-15 BC', '0044-03-15 BC', '0044-03-15', 'infinity', '-infinity', '-infinity', '12026-01-01', '12026-01-01',
        '2026-01-01', NULL, NULL]) AS at;
    INSERT INTO message_structure SELECT n, 's', n, 'main', 'user', n, n, n, 'tea', '0044-03-15 BC' FROM unnest(ARRAY[1, 1, 2, NULL, NULL]) AS n;";

#[test]
fn pages_end_whatever_the_times_and_ids_on_a_server() {
    let Some(database) = Database::fresh() else { return };
    block_on(fill(database.url(), TIMES));
    let home = tempfile::tempdir().expect("a folder");
    let url = Path::new(database.url());
    for (entity, count) in [("segment", 11), ("workflow_event", 5)] {
        for order in ["created_at:desc", "created_at:asc", "id:asc"] {
            for limit in ["1", "2", "100"] {
                let (mut rows, mut cursor) = (Vec::new(), None::<String>);
                loop {
                    let mut arguments = vec!["list", entity, "--order", order, "--limit", limit];
                    arguments.extend(cursor.iter().flat_map(|cursor| ["--after", cursor.as_str()]));
                    let page = told_in(home.path(), url, &arguments);
                    rows.extend(page["rows"].as_array().expect("rows").iter().cloned());
                    cursor = page["next"].as_str().map(str::to_owned);
                    if cursor.is_none() || rows.len() > count {
                        break;
                    }
                }
                assert_eq!(rows.len(), count, "{entity} {order} {limit}: {rows:#?}");
            }
        }
    }
    let events = told_in(home.path(), url, &["list", "workflow_event"]);
    assert!(
        events["rows"].as_array().is_some_and(|rows| rows.iter().all(|row| row["data"]["tool"] == "tea")),
        "{events:#}"
    );
    assert!(events["rows"][0]["problems"][0]["raw"].as_str().is_some_and(|raw| raw.ends_with("BC")), "{events:#}");
}

/// Letta keeps the rows of what was deleted, and marks them.
#[test]
fn a_deleted_agent_of_letta_is_told() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    let store = STORES.iter().find(|store| store.layout == "letta").expect("a store");
    block_on(fill(database.url(), store.statements));
    let statuses = || -> Vec<Value> {
        let listed = told_in(home.path(), Path::new(database.url()), &["list", "agent", "--limit", "100"]);
        let mut rows = listed["rows"].as_array().expect("rows").clone();
        rows.sort_by_key(|row| row["id"].to_string());
        rows.iter().map(|row| row["status"].clone()).collect()
    };
    // A database without the mark is read as before.
    assert_eq!(statuses(), [Value::Null, Value::Null, Value::Null]);
    block_on(fill(
        database.url(),
        "ALTER TABLE agents ADD COLUMN is_deleted bool NOT NULL DEFAULT false;
         UPDATE agents SET is_deleted = true WHERE id = 'a2';",
    ));
    assert_eq!(statuses(), ["active", "deleted", "active"]);
}

#[test]
fn collections_of_mem0_are_known_with_half_vectors_more_columns_and_any_name() {
    let Some(database) = Database::fresh().filter(Database::has_vector) else { return };
    let statements = r#"CREATE EXTENSION vector;
        CREATE TABLE company_entities (id uuid PRIMARY KEY, vector halfvec(2), payload jsonb, text_search tsvector);
        CREATE TABLE company_entities_entities (id uuid PRIMARY KEY, vector halfvec(2), payload jsonb);
        INSERT INTO company_entities VALUES
          ('00000000-0000-0000-0000-000000000001', '[1,0]', '{"data":"Ada likes tea","user_id":"ada-1"}', NULL),
          ('00000000-0000-0000-0000-000000000002', '[0,1]', '{"data":"Bo likes coffee","user_id":"bo-22"}', NULL);
        INSERT INTO company_entities_entities VALUES ('00000000-0000-0000-0000-000000000005', '[1,0]', '{"data":"Ada"}');"#;
    block_on(fill(database.url(), statements));
    let home = tempfile::tempdir().expect("a folder");
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    let rows = |entity: &str| told(&["list", entity])["rows"].as_array().map(Vec::len);
    assert_eq!((rows("memory"), rows("segment")), (Some(2), Some(1)));
    let like = ["recall", "--like", "00000000-0000-0000-0000-000000000001", "--ranking", "similar"];
    assert_eq!(told(&like)["query"]["used"], "vector");
}

#[test]
fn facts_and_logs_of_nous_outlive_episodes_that_are_removed() {
    block_on(async {
        let Some(world) = on_postgres(Layout::NousHead).await else { return };
        let episode = "eeeeeeee-0000-4000-8000-000000000003";
        meddle(
            &world,
            &format!(
                "INSERT INTO heart.facts (agent_id, content, source_episode_id) VALUES ('nous-default', 'learned', '{episode}'); \
                 INSERT INTO nous_system.events (agent_id, event_type, data) \
                   VALUES ('nous-default', 'said', '{{\"episode_id\": \"{episode}\"}}')"
            ),
        )
        .await;
        let counts = async || {
            let mut counts = Vec::new();
            for table in ["heart.facts", "nous_system.events", "nous_system.retrieval_log"] {
                counts.extend(texts(&world, &format!("SELECT count(*)::text FROM {table}")).await);
            }
            counts
        };
        let before = counts().await;
        let remove = Operation::Remove { entity: Entity::Episode, ids: vec![episode.to_owned()] };
        let plan = change::plan(&world.store, &remove, &author()).await;
        assert_eq!(plan.as_ref().expect("a plan").counts["heart.facts"].get("delete"), None, "{plan:?}");
        let receipt = done(&world, plan).await;
        assert_eq!(counts().await, before);
        let learned = "SELECT (source_episode_id IS NULL)::text FROM heart.facts WHERE content = 'learned'";
        assert_eq!(texts(&world, learned).await, ["true"]);
        done(&world, undo::undo(&world.store, receipt.audit_seq.expect("an entry")).await).await;
        let learned = "SELECT source_episode_id::text FROM heart.facts WHERE content = 'learned'";
        assert_eq!(texts(&world, learned).await, [episode]);
    });
}

#[test]
fn people_of_nous_are_listed_also_where_they_have_no_names() {
    let Some(world) = block_on(on_postgres(Layout::NousHead)) else { return };
    block_on(meddle(&world, "ALTER TABLE heart.episodes DROP COLUMN user_display_name"));
    let home = tempfile::tempdir().expect("a folder");
    let listed = told_in(home.path(), Path::new(&address(&world)), &["list", "subject"]);
    assert_eq!(listed["rows"][0]["id"], "user-ana", "{listed:#}");
}

#[test]
fn settings_of_a_database_change_no_answer() {
    let changed = "DO $$ BEGIN \
         EXECUTE format('ALTER DATABASE %I SET standard_conforming_strings = off', current_database()); \
         EXECUTE format('ALTER DATABASE %I SET quote_all_identifiers = on', current_database()); END $$";
    for layout in [Layout::Pyworkflow, Layout::NousHead] {
        let Some(world) = block_on(on_postgres(layout)) else { continue };
        let home = tempfile::tempdir().expect("a folder");
        let address = address(&world);
        let told = |arguments: &[&str]| told_in(home.path(), Path::new(&address), arguments)["rows"].clone();
        let all = || [told(&["list", "subject"]), told(&["list", "episode"]), told(&["find", "the"])];
        let before = all();
        assert!(before[0].as_array().is_some_and(|people| !people.is_empty()), "{before:?}");
        block_on(meddle(&world, changed));
        assert_eq!(all(), before);
    }
}
