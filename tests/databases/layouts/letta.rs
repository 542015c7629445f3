//! Letta's server: what several people share, and what hangs on an agent, a request or a file.

use std::path::Path;

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::servers::fill;
use super::stores::told_in;
use crate::support::block_on;
use crate::support::postgres::Database;

/// Ada's agent a1 with its helper s1, Bo's a2, and a3, which both use: each in a conversation of their own, and Ada in a
/// request outside of any.
const ROWS: &str = r#"
    CREATE TABLE identities (id text PRIMARY KEY, identifier_key text, name text, properties json, updated_at timestamptz);
    CREATE TABLE agents (id text PRIMARY KEY, name text, description text, message_ids json, metadata_ json, created_at timestamptz,
      updated_at timestamptz);
    CREATE TABLE identities_agents (identity_id text REFERENCES identities (id) ON DELETE CASCADE, agent_id text, PRIMARY KEY (identity_id, agent_id));
    CREATE TABLE identities_blocks (identity_id text, block_id text, PRIMARY KEY (identity_id, block_id));
    CREATE TABLE archives (id text PRIMARY KEY, name text);
    CREATE TABLE archives_agents (agent_id text, archive_id text, PRIMARY KEY (agent_id, archive_id));
    CREATE TABLE archival_passages (id text PRIMARY KEY, text text, embedding float4[], tags json, is_deleted bool NOT NULL DEFAULT false,
      archive_id text, metadata_ json, created_at timestamptz, updated_at timestamptz);
    CREATE TABLE block (id text PRIMARY KEY, label text, value text, is_deleted bool NOT NULL DEFAULT false, metadata_ json,
      created_at timestamptz, updated_at timestamptz);
    CREATE TABLE blocks_agents (agent_id text, block_id text, PRIMARY KEY (agent_id, block_id));
    CREATE TABLE groups (id text PRIMARY KEY, manager_type text, manager_agent_id text REFERENCES agents (id) ON DELETE RESTRICT, agent_ids json);
    CREATE TABLE groups_agents (group_id text, agent_id text, PRIMARY KEY (group_id, agent_id));
    CREATE TABLE conversations (id text PRIMARY KEY, agent_id text REFERENCES agents (id) ON DELETE CASCADE, summary text);
    CREATE TABLE blocks_conversations (conversation_id text, block_id text, PRIMARY KEY (conversation_id, block_id));
    CREATE TABLE runs (id text PRIMARY KEY, agent_id text NOT NULL REFERENCES agents (id), conversation_id text, request_config json);
    CREATE TABLE steps (id text PRIMARY KEY, run_id text REFERENCES runs (id) ON DELETE SET NULL, agent_id text);
    CREATE TABLE provider_traces (id text PRIMARY KEY, agent_id text, step_id text, run_id text, request_json json);
    CREATE TABLE messages (id text PRIMARY KEY, agent_id text, role text, text text, content json, tool_calls json, tool_returns json,
      sequence_id bigint, conversation_id text REFERENCES conversations (id) ON DELETE SET NULL, run_id text REFERENCES runs (id) ON DELETE SET NULL,
      step_id text REFERENCES steps (id) ON DELETE SET NULL, group_id text, sender_id text, created_at timestamptz);
    CREATE TABLE sources (id text PRIMARY KEY, name text);
    CREATE TABLE sources_agents (agent_id text, source_id text, PRIMARY KEY (agent_id, source_id));
    CREATE TABLE files (id text PRIMARY KEY, source_id text, file_name text);
    CREATE TABLE file_contents (id text PRIMARY KEY, file_id text, text text);
    CREATE TABLE source_passages (id text PRIMARY KEY, source_id text, text text);
    INSERT INTO identities VALUES ('i1', 'ada-1', 'Ada', '[{"key": "email", "value": "ada@home.example"}, {"key": "phone", "value": "+44 20 7946 0991"},
        {"key": "plan", "value": "gold"}]'), ('i2', 'bo-22', 'Bo', 'null');
    INSERT INTO agents VALUES ('a1', 'helper', NULL, '[]'), ('s1', 'helper-sleeptime', NULL, '[]'), ('a2', 'helper', NULL, '[]'),
      ('a3', 'shared', NULL, '["m2", "m4", "m6"]');
    INSERT INTO identities_agents VALUES ('i1', 'a1'), ('i2', 'a2'), ('i1', 'a3'), ('i2', 'a3');
    INSERT INTO groups VALUES ('g1', 'sleeptime', 'a1', '["s1"]');
    INSERT INTO groups_agents VALUES ('g1', 's1');
    INSERT INTO block VALUES ('b1', 'human', 'ada sews'), ('b2', 'human', 'bo rows'), ('b3', 'human', 'ada has nut allergy'), ('b4', 'policy', 'be kind');
    INSERT INTO blocks_agents VALUES ('a1', 'b1'), ('s1', 'b1'), ('a2', 'b2'), ('a1', 'b4'), ('a2', 'b4');
    INSERT INTO conversations VALUES ('c1', 'a3', 'ada asks'), ('c2', 'a3', 'bo asks');
    INSERT INTO blocks_conversations VALUES ('c1', 'b3');
    INSERT INTO runs VALUES ('r1', 'a3', 'c1', '{"said": "ada earns"}'), ('r2', 'a3', 'c2', '{"said": "bo earns"}'), ('r3', 'a3', NULL, '{"said": "ada pays"}');
    INSERT INTO steps VALUES ('p1', 'r1', 'a3'), ('p2', 'r2', 'a3'), ('p3', 'r3', 'a3');
    INSERT INTO provider_traces VALUES ('t1', 'a3', 'p1', NULL, '{"said": "ada earns"}'), ('t2', 'a3', 'p2', NULL, '{"said": "bo earns"}'),
      ('t3', 'a3', 'p3', 'r3', '{"said": "ada pays"}');
    INSERT INTO messages VALUES
      ('m1', 'a1', 'user', NULL, '[{"type": "text", "text": "ada sews"}]', '[]', '[]', 1, NULL, NULL, NULL, NULL, 'i1', now()),
      ('m2', 'a3', 'user', NULL, '[{"type": "text", "text": "ada earns"}]', '[]', '[]', 2, 'c1', 'r1', 'p1', NULL, 'i1', now()),
      ('m3', 'a3', 'assistant', NULL, '[{"type": "text", "text": "noted: ada earns"}]', '[]', '[]', 3, 'c1', 'r1', 'p1', NULL, NULL, now()),
      ('m4', 'a3', 'user', NULL, '[{"type": "text", "text": "bo earns"}]', '[]', '[]', 4, 'c2', 'r2', 'p2', NULL, 'i2', now()),
      ('m5', 'a3', 'assistant', NULL, '[{"type": "text", "text": "noted: bo earns"}]', '[]', '[]', 5, 'c2', 'r2', 'p2', NULL, NULL, now()),
      ('m6', 'a3', 'user', NULL, '[{"type": "text", "text": "ada pays"}]', '[]', '[]', 6, NULL, 'r3', 'p3', NULL, 'i1', now()),
      ('m7', 'a3', 'assistant', NULL, '[]', '[{"id": "x", "function": {"name": "note", "arguments": "ada pays"}}]', '[]', 7, NULL, 'r3', 'p3', NULL, NULL, now()),
      ('m8', 'a3', 'tool', NULL, NULL, '[]', '[{"func_response": "ada has paid"}]', 8, NULL, 'r3', 'p3', NULL, NULL, now()),
      ('m9', 's1', 'user', NULL, '[{"type": "text", "text": "user: ada sews"}]', '[]', '[]', 9, NULL, NULL, NULL, 'g1', NULL, now()),
      ('n1', 'a2', 'user', NULL, '[{"type": "text", "text": "write to ada@home.example or +44 20 7946 0991, gold"}]', '[]', '[]', 10, NULL, NULL, NULL, NULL, 'i2', now());
    INSERT INTO sources VALUES ('o1', 'ada lease'), ('o2', 'rules');
    INSERT INTO sources_agents VALUES ('a1', 'o1'), ('a1', 'o2'), ('a2', 'o2');
    INSERT INTO files VALUES ('f1', 'o1', 'ada.pdf'), ('f2', 'o2', 'rules.pdf');
    INSERT INTO file_contents VALUES ('x1', 'f1', 'ada rents'), ('x2', 'f2', 'all rents');
    INSERT INTO source_passages VALUES ('y1', 'o1', 'ada rents'), ('y2', 'o2', 'all rents');"#;

/// Every value of the database's tables that are not ours, one row a line.
async fn all_rows(url: &str) -> Vec<String> {
    let mut link = PgConnection::connect(url).await.expect("a connection");
    let names =
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE 'memory%' ORDER BY 1";
    let mut all = Vec::new();
    for name in sqlx::query_scalar::<_, String>(names).fetch_all(&mut link).await.expect("tables") {
        let sql = AssertSqlSafe(format!("SELECT t::text FROM {name} t ORDER BY 1"));
        let rows = sqlx::query_scalar::<_, String>(sql).fetch_all(&mut link).await.expect("rows");
        all.extend(rows.into_iter().map(|row| format!("{name} {row}")));
    }
    link.close().await.expect("closed");
    all
}

#[test]
fn what_only_one_person_said_and_has_goes_from_what_several_share() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), ROWS));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    let before = block_on(all_rows(database.url()));
    told(&["purge", "ada-1", "--mentions", "redact", "--apply"]);
    let after = block_on(all_rows(database.url()));
    let of_ada: Vec<&String> = after.iter().filter(|row| row.to_lowercase().contains("ada")).collect();
    assert!(of_ada.is_empty(), "{of_ada:#?}");
    let gone = ["agents (a1,", "agents (s1,", "groups (", "conversations (c1,", "sources (o1,"];
    assert!(gone.iter().all(|row| !after.iter().any(|left| left.starts_with(row))), "{after:#?}");
    let said = after.iter().find(|row| row.starts_with("messages (n1,")).expect("Bo's message");
    assert!(said.contains("gold") && !said.contains("7946"), "{said}");
    let is_others = |row: &&String| row.contains("bo ") || row.contains("rules") || row.contains("be kind");
    for row in before.iter().filter(is_others) {
        assert!(after.contains(row), "{row}\n{after:#?}");
    }
    assert!(after.iter().any(|row| row.starts_with("agents (a3,") && row.contains("m4") && !row.contains("m2")));
}

#[test]
fn an_agent_that_writes_memory_for_another_is_its_persons_and_a_call_is_shown() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), ROWS));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    let column = |arguments: &[&str], id: &str, column: &str| -> Value {
        let rows = told(arguments)["rows"].as_array().expect("rows").clone();
        rows.into_iter().find(|row| row["id"] == id).unwrap_or_else(|| panic!("{id}"))[column].clone()
    };
    assert_eq!(column(&["list", "memory"], "b1", "user_id"), json!("ada-1"));
    assert_eq!(column(&["list", "memory"], "b4", "user_id"), Value::Null);
    assert_eq!(column(&["list", "episode"], "s1", "user_id"), json!("ada-1"));
    assert_eq!(column(&["list", "episode"], "a3", "user_id"), Value::Null);
    let called = column(&["list", "segment"], "m7", "content");
    assert!(called.as_str().is_some_and(|text| text.contains("\"note\"")), "{called}");
    assert_eq!(column(&["list", "segment"], "m8", "content"), json!("ada has paid"));
    assert_eq!(told(&["find", "has paid"])["rows"][0]["id"], "m8");
}

#[test]
fn a_person_is_also_known_by_the_identity_which_tells_two_with_one_key_apart() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), ROWS));
    block_on(fill(
        database.url(),
        r#"INSERT INTO identities VALUES ('identity-3', 'bo-22', 'Bo of another organisation', '[]'), ('identity-4', 'cy-33', 'Cy', '[]');
           INSERT INTO agents VALUES ('a9', 'helper', NULL, '[]'); INSERT INTO identities_agents VALUES ('identity-3', 'a9');
           INSERT INTO messages (id, agent_id, role, content, sender_id) VALUES ('n9', 'a9', 'user', '[{"type": "text", "text": "bo skis"}]', 'identity-3');
           INSERT INTO block (id, label, value) VALUES ('b9', 'human', 'cy swims'); INSERT INTO identities_blocks VALUES ('identity-4', 'b9')"#,
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    let block = told(&["list", "memory", "--where", "id=b9"]);
    assert_eq!(block["rows"][0]["user_id"], "cy-33", "a block without an agent: {block:#}");
    let receipt = told(&["purge", "identity-4", "--mentions", "redact", "--apply"]);
    assert_eq!(receipt["counts"]["block"], json!({"delete": 1}), "{receipt:#}");
    let plan = told(&["purge", "bo-22"])["disclosures"].to_string();
    assert!(plan.contains("2 people of this database have the id `bo-22`") && plan.contains("identity-3"), "{plan}");
    let before = block_on(all_rows(database.url()));
    told(&["purge", "identity-3", "--mentions", "redact", "--apply"]);
    let after = block_on(all_rows(database.url()));
    let gone: Vec<&String> = before.iter().filter(|row| !after.contains(row)).collect();
    let is_of_second = |row: &String| row.contains("identity-3") || row.contains("a9");
    assert!(!gone.is_empty() && gone.iter().all(|row| is_of_second(row)), "{gone:#?}");
    assert!(!after.iter().any(is_of_second), "{after:#?}");
}

#[test]
fn a_tag_is_renamed_with_its_list_and_not_in_what_people_say() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), ROWS));
    block_on(fill(
        database.url(),
        r#"CREATE TABLE passage_tags (id text PRIMARY KEY, tag text NOT NULL, passage_id text, archive_id text, UNIQUE (passage_id, tag));
           INSERT INTO archives VALUES ('v2', 'of Bo'); INSERT INTO archives_agents VALUES ('a2', 'v2');
           INSERT INTO archival_passages (id, text, tags, archive_id)
             VALUES ('p1', 'I shall tell Ada Lopez-Quist of tea', '["Ada Lopez-Quist", "tea"]', 'v2');
           INSERT INTO passage_tags VALUES ('k1', 'Ada Lopez-Quist', 'p1', 'v2'), ('k2', 'tea', 'p1', 'v2')"#,
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    told(&["purge", "ada-1", "--alias", "Ada Lopez-Quist", "--mentions", "redact", "--apply"]);
    let (tag, passage): (String, (String, String)) = block_on(async {
        let mut link = PgConnection::connect(database.url()).await.expect("a connection");
        let tag = sqlx::query_scalar("SELECT tag FROM passage_tags WHERE id = 'k1'")
            .fetch_one(&mut link)
            .await
            .expect("a tag");
        let passage = sqlx::query_as("SELECT text, tags::text FROM archival_passages")
            .fetch_one(&mut link)
            .await
            .expect("a passage");
        link.close().await.expect("closed");
        (tag, passage)
    });
    assert!(!tag.contains("Lopez") && passage.1.contains(&tag), "{tag} in {passage:?}");
    assert!(!passage.0.contains("Lopez") && !passage.0.contains(&tag), "{tag} in {passage:?}");
}

#[test]
fn a_bundle_says_that_two_people_have_the_id() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), ROWS));
    let bundle = |name: &str| {
        let folder = home.path().join(name).display().to_string();
        told_in(home.path(), Path::new(database.url()), &["export", "subject", "bo-22", "--out", &folder])
    };
    assert_eq!(bundle("one")["manifest"]["namesakes"], Value::Null);
    block_on(fill(database.url(), "INSERT INTO identities VALUES ('i3', 'bo-22', 'Bo of another organisation', '[]')"));
    assert_eq!(bundle("two")["manifest"]["namesakes"], json!({ "bo-22": 2 }));
}

#[test]
fn what_stays_because_others_have_it_is_named() {
    let Some(database) = Database::fresh() else { return };
    let home = tempfile::tempdir().expect("a folder");
    block_on(fill(database.url(), ROWS));
    block_on(fill(
        database.url(),
        "INSERT INTO archives VALUES ('v1', 'notes'); INSERT INTO archives_agents VALUES ('a3', 'v1');
         INSERT INTO archival_passages (id, text, archive_id, created_at) VALUES ('q1', 'she is allergic to nuts', 'v1', now())",
    ));
    let told = |arguments: &[&str]| told_in(home.path(), Path::new(database.url()), arguments);
    told(&["migrate", "--apply"]);
    let bundle = home.path().join("bundle").display().to_string();
    let left = told(&["export", "subject", "ada-1", "--out", &bundle])["manifest"]["left_out"].clone();
    let plan = told(&["purge", "ada-1"]);
    let receipt = told(&["purge", "ada-1", "--mentions", "redact", "--apply"]);
    for table in ["agents", "archival_passages"] {
        let words =
            format!("1 row of {table} leads to the person and to other people, or hangs on such a row: it stays");
        assert!(plan["disclosures"].to_string().contains(&words), "{plan:#}");
        assert!(left.to_string().contains(&words), "{left:#}");
        let found = json!({ "kind": "shared", "what": words });
        assert!(receipt["findings"].as_array().is_some_and(|all| all.contains(&found)), "{receipt:#}");
    }
}
