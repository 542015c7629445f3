//! Values computed from texts that an erasure redacts: hashes are made again and vectors go, as an edit does, and what
//! stays is told.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{World, everything, native, on_postgres};
use crate::support::block_on;
use crate::support::fixtures::Layout;

fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn strings(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

async fn with_quirin() -> World {
    let world = native(20).await;
    world.run("INSERT INTO subjects (id, name) VALUES ('quirin-7', 'Quirin Zahradnik')").await;
    world
}

#[test]
fn hashes_are_made_again_and_vectors_go_with_the_words_of_a_text() {
    block_on(async {
        let world = with_quirin().await;
        let old = hash("ask Quirin Zahradnik");
        world
            .run(&format!(
                "INSERT INTO memories (id, kind, text) VALUES ('me-q', 'fact', 'Quirin Zahradnik has an allergy'), \
                   ('me-n', 'fact', 'nobody has one'); \
                 INSERT INTO memory_embeddings (memory_id, embedding) VALUES ('me-q', x'0000803F'), ('me-n', x'0000803F'); \
                 INSERT INTO episodes (id, user_id, title, summary, confidence) VALUES \
                   ('ep-q', 'keeper-a', 'a talk', 'Quirin Zahradnik cried', 0.5); \
                 INSERT INTO episode_embeddings (episode_id, embedding) VALUES ('ep-q', x'0000803F'); \
                 INSERT INTO agent_memory_cases (id, user_id, agent_id, message_hash, prompt, reward) VALUES \
                   ('ca-q', 'keeper-a', 'a', '{old}', '{{\"message\": \"ask Quirin Zahradnik\"}}', 0.5), \
                   ('ca-n', 'keeper-a', 'a', 'theirs', '{{\"message\": \"ask\"}}', 0.5); \
                 INSERT INTO agent_memory_embeddings (case_id, embedding) VALUES ('ca-q', x'0000803F'), ('ca-n', x'0000803F')"
            ))
            .await;
        let (plan, receipt) = world.purge("quirin-7", &everything()).await.expect("a receipt");
        assert_eq!((&receipt["status"], &plan["counts"]), (&json!("verified"), &receipt["counts"]), "{receipt:#}");
        for (table, key, verbs) in [
            ("memories", "", json!({"update": 1})),
            ("episodes", "", json!({"update": 1})),
            ("agent_memory_cases", "", json!({"update": 1})),
            ("memory_embeddings", "memory_id IN ('me-q', 'me-n')", json!({"delete": 1})),
            ("episode_embeddings", "episode_id = 'ep-q'", json!({"delete": 1})),
            ("agent_memory_embeddings", "case_id IN ('ca-q', 'ca-n')", json!({"delete": 1})),
        ] {
            assert_eq!(receipt["counts"][table], verbs, "{table}: {receipt:#}");
            if !key.is_empty() {
                let left = i64::from(table != "episode_embeddings");
                assert_eq!(world.count(&format!("{table} WHERE {key}")).await, left, "{table}");
            }
        }
        let hashes = "SELECT message_hash FROM agent_memory_cases WHERE id IN ('ca-q', 'ca-n') ORDER BY id";
        assert_eq!(world.texts(hashes).await, ["theirs".to_owned(), hash("ask [erased]")]);
        let effects = strings(&receipt["effects"]).join("\n");
        for told in
            ["memory_embeddings: the vector of a text that changes is removed", "message_hash is computed again"]
        {
            assert!(effects.contains(told), "{effects}");
        }
    });
}

#[test]
fn a_hash_that_a_key_is_made_of_or_that_another_rule_made_stays_and_is_told() {
    block_on(async {
        let unique = "UPDATE agent_memory_cases SET message_hash = message_hash || id WHERE id <> 'ca-q'; \
             CREATE UNIQUE INDEX ux_hash ON agent_memory_cases (profile_id, message_hash)";
        for (hash, index) in
            [(hash("ask Quirin Zahradnik"), unique), ("d41d8cd98f00b204e9800998ecf8427e".to_owned(), "")]
        {
            let world = with_quirin().await;
            world
                .run(&format!(
                    "INSERT INTO agent_memory_cases (id, user_id, agent_id, message_hash, prompt, reward) VALUES \
                       ('ca-q', 'keeper-a', 'a', '{hash}', '{{\"message\": \"ask Quirin Zahradnik\"}}', 0.5); {index}"
                ))
                .await;
            let (_, receipt) = world.purge("quirin-7", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            let told = strings(&receipt["disclosures"]);
            assert!(
                told.iter().any(|words| words.starts_with("agent_memory_cases.message_hash: 1 hash of a text")),
                "{told:#?}"
            );
            assert_eq!(world.texts("SELECT message_hash FROM agent_memory_cases WHERE id = 'ca-q'").await, [hash]);
        }
    });
}

#[test]
fn a_vector_to_which_a_row_refers_stays_and_is_told() {
    block_on(async {
        let world = with_quirin().await;
        world
            .run(
                "INSERT INTO memories (id, kind, text) VALUES ('me-q', 'fact', 'Quirin Zahradnik has an allergy'); \
                 INSERT INTO memory_embeddings (memory_id, embedding) VALUES ('me-q', x'0000803F'); \
                 CREATE TABLE neighbours (id integer PRIMARY KEY, \
                   memory_id text NOT NULL REFERENCES memory_embeddings (memory_id) ON DELETE CASCADE); \
                 INSERT INTO neighbours VALUES (1, 'me-q')",
            )
            .await;
        let (_, receipt) = world.purge("quirin-7", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        let told = "memory_embeddings: 1 vector of a text that is redacted stays: a row of neighbours refers to it";
        assert!(strings(&receipt["disclosures"]).contains(&told), "{receipt:#}");
        assert_eq!((world.count("neighbours").await, world.broken_keys().await), (1, 0));
    });
}

#[test]
fn a_case_of_a_server_loses_its_vector_with_its_words() {
    block_on(async {
        let Some(world) = on_postgres(Layout::EnnubeVectors).await else { return };
        let bens = "(SELECT min(c.id::text)::uuid FROM agent_memory_cases c JOIN agent_memory_profiles p ON p.id = c.profile_id \
             JOIN agent_memory_embeddings e ON e.case_id = c.id WHERE p.user_sub = 'auth0|ben')";
        let case = world.texts(&format!("SELECT {bens}::text")).await.remove(0);
        world
            .run(&format!(
                "UPDATE agent_memory_cases SET prompt_snapshot = '{{\"message\": \"ask auth0|ana\"}}', message_hash = '{}' \
                 WHERE id = '{case}'",
                hash("ask auth0|ana")
            ))
            .await;
        let (plan, receipt) = world.purge("auth0|ana", &everything()).await.expect("a receipt");
        assert_eq!(plan["counts"], receipt["counts"]);
        let kept = format!("SELECT message_hash FROM agent_memory_cases WHERE id = '{case}'");
        assert_eq!(world.texts(&kept).await, [hash("ask [erased]")], "{receipt:#}");
        assert_eq!(world.count(&format!("agent_memory_embeddings WHERE case_id = '{case}'")).await, 0);
    });
}

#[test]
fn an_index_that_puts_a_name_together_is_told() {
    block_on(async {
        for (condition, status) in [("", "verified with disclosures"), (" WHERE a = 'nobody'", "verified")] {
            let world = with_quirin().await;
            world
                .run(&format!(
                    "CREATE TABLE g (a, b); CREATE INDEX gi ON g (a || ' ' || b){condition}; \
                     INSERT INTO g VALUES ('Quirin', 'Zahradnik')"
                ))
                .await;
            let (_, receipt) = world.purge("quirin-7", &everything()).await.expect("a receipt");
            assert_eq!(receipt["status"], status, "{receipt:#}");
            let told = strings(&receipt["disclosures"]);
            let is_told = told.iter().any(|words| words.starts_with("an expression index of g contains a handle"));
            assert_eq!(is_told, condition.is_empty(), "{told:#?}");
        }
    });
}

/// As Memori keeps names that everybody shares: a hash over the letters of two columns, in a column of which the layout says
/// nothing.
#[test]
fn a_hash_of_a_name_beside_another_word_is_told_wherever_it_stands() {
    block_on(async {
        let world = with_quirin().await;
        world
            .run(&format!(
                "ALTER TABLE memories ADD COLUMN uniq TEXT; ALTER TABLE memories ADD COLUMN etag TEXT; \
                 INSERT INTO memories (id, kind, text, uniq, etag) VALUES \
                   ('me-q', 'person', 'Quirin Zahradnik', '{}', '{}'), ('me-n', 'person', 'Nobody', '{}', NULL)",
                hash("quirinzahradnikperson"),
                hash("something else"),
                hash("nobodyperson"),
            ))
            .await;
        let (_, receipt) = world.purge("quirin-7", &everything()).await.expect("a receipt");
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        let told: Vec<&str> =
            strings(&receipt["disclosures"]).into_iter().filter(|words| words.contains("hash")).collect();
        assert!(matches!(&told[..], [only] if only.starts_with("memories.uniq: 1 hash of a text")), "{told:#?}");
    });
}
