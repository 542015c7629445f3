//! Ids inside keys: found, and left, deleted with what depends on them, or renamed with all that refers to them.

use mnemoscope::change::purge::{Mentions, NewDecisions, PurgeOptions, plan};
use mnemoscope::store::Target;
use serde_json::{Value, json};

use super::{World, native, planted};
use crate::support::block_on;

/// Another person's episode whose key holds the person's id, with rows that refer to it by a foreign key, and a key
/// of another person that only looks alike.
const PLANTS: &str = "\
    INSERT INTO episodes (id, title, agent_id, user_id, workspace_id, status, maturity_at_time, human_intervention_count, \
      access_count) VALUES ('ep:user-ana:7', 'a', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0), \
      ('ep:user-ana.b:8', 'b', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0), \
      ('ep:xuser-ana:9', 'c', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0); \
    INSERT INTO episode_segments (id, episode_id, segment_type, sequence_order, content, source_type) VALUES \
      ('seg:user-ana:1', 'ep:user-ana:7', 'message', 1, 'nothing', 'chat'), \
      ('seg-plain', 'ep:user-ana:7', 'message', 2, 'see \"ep:user-ana:7\", not user-ana', 'chat'), \
      ('seg:user-ana:2', 'ep:user-ana.b:8', 'message', 3, 'ask user-ana', 'chat'), \
      ('seg-other', 'ep:user-ana.b:8', 'message', 1, 'nothing', 'chat'); \
    UPDATE episodes SET consolidated_into = 'ep:user-ana:7' WHERE id = 'ep:user-ana.b:8'";

async fn purged(world: &World, mentions: Mentions) -> (Value, Value) {
    let options = PurgeOptions { mentions, account: true, ..PurgeOptions::default() };
    let (plan, receipt) = world.purge("user-ana", &options).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan["counts"], receipt["counts"]);
    (plan, receipt)
}

fn of<'p>(plan: &'p Value, column: &str, key: &str) -> Option<&'p Value> {
    plan["mentions"].as_array()?.iter().find(|m| m["column"] == column && m["key"] == key)
}

/// References that lead nowhere, on either engine.
async fn dangling(world: &World) -> i64 {
    world.count("episode_segments s WHERE NOT EXISTS (SELECT 1 FROM episodes e WHERE e.id = s.episode_id)").await
        + world
            .count(
                "episodes e WHERE consolidated_into IS NOT NULL AND NOT EXISTS (SELECT 1 FROM episodes p WHERE \
                 p.id = e.consolidated_into)",
            )
            .await
}

#[test]
fn a_key_is_found_and_what_refers_to_it_is_not_counted_twice() {
    block_on(async {
        for world in planted(PLANTS).await {
            let plan = plan(
                &world.open().await,
                "user-ana",
                &PurgeOptions { account: true, ..PurgeOptions::default() },
                &|_, _| {},
            )
            .await;
            let plan = json!(plan.unwrap_or_else(|error| panic!("{error}")).printed());
            let key = of(&plan, "id", "ep:user-ana:7").expect("the key of the episode");
            assert_eq!(
                (&key["certainty"], &key["options"]),
                (&json!("certain"), &json!(["leave", "redact", "delete"]))
            );
            assert_eq!(of(&plan, "id", "ep:user-ana.b:8").expect("perhaps")["certainty"], "possible");
            assert_eq!(of(&plan, "id", "ep:xuser-ana:9").expect("perhaps")["certainty"], "possible");
            assert!(of(&plan, "episode_id", "seg-plain").is_none(), "it follows the key");
            let (_, receipt) = purged(&world, Mentions::Leave).await;
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            assert!(receipt["disclosures"].to_string().contains("episodes.id"), "{receipt:#}");
            assert_eq!(world.count("episodes WHERE id = 'ep:user-ana:7'").await, 1);
        }
    });
}

#[test]
fn a_key_is_renamed_with_everything_that_refers_to_it() {
    block_on(async {
        for world in planted(PLANTS).await {
            let (before, broken) = (world.count("episodes WHERE user_id = 'user-ben'").await, dangling(&world).await);
            let (_, receipt) = purged(&world, Mentions::Redact).await;
            assert_eq!(receipt["status"], "verified with disclosures", "one is possible: {receipt:#}");
            assert_eq!(world.count("episodes WHERE user_id = 'user-ben'").await, before);
            assert_eq!(world.count("episodes WHERE id LIKE '%:user-ana:%'").await, 0);
            assert_eq!(world.count("episode_segments WHERE id LIKE '%user-ana%'").await, 0);
            assert_eq!(dangling(&world).await, broken);
            let key = world.texts("SELECT id FROM episodes WHERE title = 'a'").await.remove(0);
            assert!(key.starts_with("ep:") && key.ends_with(":7"), "{key}");
            assert_eq!(
                world.texts("SELECT consolidated_into FROM episodes WHERE title = 'b'").await,
                std::slice::from_ref(&key)
            );
            let content = world.texts("SELECT content FROM episode_segments WHERE id = 'seg-plain'").await.remove(0);
            assert_eq!(content, format!("see \"{key}\", not [erased]"));
            assert_eq!(world.count("episodes WHERE id IN ('ep:user-ana.b:8', 'ep:xuser-ana:9')").await, 2);
        }
    });
}

#[test]
fn what_refers_to_a_key_follows_it_where_rules_of_a_layout_are_about_some_rows_each() {
    block_on(async {
        for key in ["call:user-ana:1", "user-ana"] {
            let world = native(20).await;
            let at = "2026-02-04T10:00:00.000000Z";
            world
                .run(&format!(
                    "INSERT INTO subjects VALUES ('user-ana', 'Ana Ruiz', '[]', '{at}'), ('user-ben', 'Ben', '[]', '{at}'); \
                     INSERT INTO episodes (id, agent_id, user_id, title, status, outcome, started_at) VALUES \
                     ('own', 'ag', 'user-ana', 'a', 'closed', 'success', '{at}'), ('{key}', 'ag', 'user-ben', 'b', 'closed', 'success', '{at}'); \
                     INSERT INTO agent_feedback (id, episode_id, agent_id, user_id, kind, created_at) VALUES \
                     ('said', '{key}', 'ag', 'user-ben', 'thumbs_up', '{at}'); \
                     INSERT INTO canvas_audit (id, episode_id, agent_id, user_id, canvas_id, canvas_type, action, created_at) VALUES \
                     ('shown', '{key}', 'ag', 'user-ben', 'c', 'chart', 'present', '{at}')"
                ))
                .await;
            let options = PurgeOptions { mentions: Mentions::Redact, account: true, ..PurgeOptions::default() };
            let (plan, receipt) = world.purge("user-ana", &options).await.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(plan["counts"], receipt["counts"], "{key}");
            let new = world.texts("SELECT id FROM episodes WHERE title = 'b' AND user_id = 'user-ben'").await.remove(0);
            assert_ne!(new, key);
            let linked = "SELECT episode_id FROM agent_feedback WHERE id = 'said' UNION ALL \
                          SELECT episode_id FROM canvas_audit WHERE id = 'shown'";
            assert_eq!(world.texts(linked).await, [new.clone(), new], "{receipt:#}");
        }
    });
}

#[test]
fn a_value_with_a_key_that_gets_another_name_loses_the_rest_in_the_same_pass() {
    block_on(async {
        for world in planted(PLANTS).await {
            let gone = "5f2a9c1e-77b0-4d1a-9c3e-0a1b2c3d4e5f";
            world
                .run(&format!(
                    "INSERT INTO episodes (id, title, summary, agent_id, user_id, workspace_id, status, maturity_at_time, \
                     human_intervention_count, access_count) VALUES ('{gone}', 'hers', '', 'agent-ledger', 'user-ana', 'w', \
                     'completed', 'student', 0, 0)"
                ))
                .await;
            // A row that goes, in a list, and `ask user-ana now` in base64, next to the key.
            let content = |key: &str, list: &str, word: &str| {
                format!("{{\"episode\": \"{key}\", \"episode_ids\": [{list}], \"note\": \"{word}\"}}")
            };
            let both = content("ep:user-ana:7", &format!("\"{gone}\", \"x\""), "YXNrIHVzZXItYW5hIG5vdw==");
            world
                .run(&format!(
                    "INSERT INTO episode_segments (id, episode_id, segment_type, sequence_order, content, source_type) VALUES \
                     ('seg-both', 'ep:user-ana.b:8', 'message', 5, '{both}', 'chat'), \
                     ('seg:user-ana:{gone}', 'ep:user-ana.b:8', 'message', 6, 'nothing', 'chat')"
                ))
                .await;
            let (plan, receipt) = purged(&world, Mentions::Redact).await;
            assert_eq!(receipt["status"], "verified with disclosures", "one is possible: {receipt:#}");
            let key = world.texts("SELECT id FROM episodes WHERE title = 'a'").await.remove(0);
            let left = world.texts("SELECT content FROM episode_segments WHERE id = 'seg-both'").await;
            assert_eq!(left, [content(&key, "\"x\"", "YXNrIFtlcmFzZWRdIG5vdw==")], "{plan:#}");
            // Others may refer to a key: what else is in it is disclosed.
            assert_eq!(world.count(&format!("episode_segments WHERE id LIKE 'seg:%:{gone}'")).await, 1);
            let left = "episode_segments.id: 1 value has the id of a deleted row within a longer id";
            assert!(receipt["disclosures"].to_string().contains(left), "{receipt:#}");
        }
    });
}

#[test]
fn what_comes_to_refer_to_a_key_that_gets_another_name_follows_it() {
    block_on(async {
        for world in planted(PLANTS).await {
            // Between the two is an episode of the person, which refers to the key until it goes.
            world
                .run(
                    "INSERT INTO episodes (id, title, agent_id, user_id, workspace_id, status, maturity_at_time, \
                     human_intervention_count, access_count, consolidated_into) VALUES \
                     ('plant-between', 'm', 'agent-ledger', 'user-ana', 'w', 'completed', 'student', 0, 0, 'ep:user-ana:7'), \
                     ('plant-below', 'd', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0, 'plant-between'); \
                     INSERT INTO episode_segments (id, episode_id, segment_type, sequence_order, content, source_type) VALUES \
                     ('seg-of-between', 'plant-between', 'message', 1, 'nothing', 'chat')",
                )
                .await;
            let broken = dangling(&world).await;
            let (_, receipt) = purged(&world, Mentions::Redact).await;
            assert_eq!(receipt["status"], "verified with disclosures", "one is possible: {receipt:#}");
            let key = world.texts("SELECT id FROM episodes WHERE title = 'a'").await;
            assert_eq!(world.texts("SELECT consolidated_into FROM episodes WHERE id = 'plant-below'").await, key);
            assert_eq!(world.count("episodes WHERE id = 'plant-between'").await, 0);
            assert_eq!(dangling(&world).await, broken);
        }
    });
}

#[test]
fn a_decision_holds_for_a_row_whose_key_gets_another_name() {
    block_on(async {
        for world in planted(PLANTS).await {
            let redact = PurgeOptions { mentions: Mentions::Redact, account: true, ..PurgeOptions::default() };
            let shown = plan(&world.open().await, "user-ana", &redact, &|_, _| {}).await.expect("a plan");
            let shown = json!(shown.printed());
            let content =
                of(&shown, "content", "seg:user-ana:2").expect("the text")["id"].as_str().expect("an id").to_owned();
            let options = PurgeOptions { each: [(content, Mentions::Leave)].into(), ..redact };
            let (_, receipt) = world.purge("user-ana", &options).await.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            let left = world.texts("SELECT id FROM episode_segments WHERE content = 'ask user-ana'").await;
            assert!(matches!(&left[..], [id] if id.starts_with("seg:") && !id.contains("user-ana")), "{left:?}");
        }
    });
}

#[test]
fn a_key_is_deleted_with_what_hangs_on_it() {
    block_on(async {
        for world in planted(PLANTS).await {
            let broken = dangling(&world).await;
            let (_, receipt) = purged(&world, Mentions::Delete).await;
            assert!(receipt["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{receipt:#}");
            assert_eq!(world.count("episodes WHERE id = 'ep:user-ana:7'").await, 0);
            assert_eq!(world.count("episode_segments WHERE episode_id = 'ep:user-ana:7'").await, 0);
            assert_eq!(world.count("episodes WHERE id = 'ep:user-ana.b:8' AND consolidated_into IS NULL").await, 1);
            assert!(dangling(&world).await <= broken);
        }
    });
}

#[test]
fn keys_of_several_columns_and_unique_ones_keep_apart() {
    block_on(async {
        for world in planted(PLANTS).await {
            // Two handles of one person in keys of one pattern: they must not become one key.
            world
                .run(
                    "CREATE UNIQUE INDEX plant_title ON episodes (title) WHERE id LIKE 'mem:%'; \
                     INSERT INTO episodes (id, title, agent_id, user_id, workspace_id, status, maturity_at_time, \
                     human_intervention_count, access_count) VALUES \
                     ('mem:user-ana:7', 'prefs user-ana', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0), \
                     ('mem:User-Ana:7', 'prefs User-Ana', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0), \
                     ('mem:ana.ruiz@initech.example:7', 'prefs ana.ruiz@initech.example', 'agent-ledger', 'user-ben', 'w', \
                     'completed', 'student', 0, 0)",
                )
                .await;
            let (_, receipt) = purged(&world, Mentions::Redact).await;
            assert!(receipt["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{receipt:#}");
            assert_eq!(world.count("episodes WHERE id LIKE 'mem:%'").await, 3);
            assert_eq!(
                world.count("episodes WHERE lower(id) LIKE 'mem:%ana%' OR lower(title) LIKE 'prefs %ana%'").await,
                0
            );
        }
    });
}

#[test]
fn rows_of_others_whose_keys_hold_times_go_as_planned() {
    block_on(async {
        for world in planted(PLANTS).await {
            if matches!(world.target, Target::Postgres(_)) {
                let key =
                    "ALTER TABLE agent_feedback DROP CONSTRAINT agent_feedback_pkey, ADD PRIMARY KEY (id, created_at)";
                world.run(key).await;
            }
            let said = "UPDATE agent_feedback SET user_id = 'user-ben', original_output = 'ask user-ana'";
            world.run(said).await;
            let (_, receipt) = purged(&world, Mentions::Delete).await;
            assert!(receipt["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{receipt:#}");
            assert_eq!(world.count("agent_feedback").await, 0);
        }
    });
}

#[test]
fn a_key_outside_the_layout_is_found_and_named() {
    block_on(async {
        for world in planted(PLANTS).await {
            world
                .run(
                    "CREATE TABLE store (prefix TEXT NOT NULL, key TEXT NOT NULL, value TEXT, PRIMARY KEY (prefix, key)); \
                     INSERT INTO store VALUES ('memories.user-ana.s1', 'k1', 'nothing'), ('memories.user-anabel.s1', 'k1', 'x')",
                )
                .await;
            let (plan, receipt) = purged(&world, Mentions::Redact).await;
            let found = of(&plan, "prefix", "memories.user-ana.s1 k1").expect("the key");
            assert_eq!((&found["certainty"], &found["options"]), (&json!("certain"), &json!(["leave"])));
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            assert!(receipt["disclosures"].to_string().contains("store"), "{receipt:#}");
            assert_eq!(world.count("store WHERE prefix = 'memories.user-ana.s1'").await, 1);
        }
    });
}

#[test]
fn a_key_in_an_encoding_or_between_other_marks_is_found_and_named() {
    block_on(async {
        for world in planted(PLANTS).await {
            // `["users","user-ana"]`, a tuple of Python, a URL, and base64 of `user user-ana`.
            world
                .run(
                    "CREATE TABLE store (prefix TEXT NOT NULL PRIMARY KEY, value TEXT); \
                     INSERT INTO store VALUES ('[\"users\",\"user-ana\"]', 'x'), ('(''users'', ''user-ana'')', 'x'), \
                     ('u/ana.ruiz%40initech.example', 'x'), ('dXNlciB1c2VyLWFuYQ==', 'x'), ('note of user-ana', 'x'), \
                     ('user-ana2', 'x'), ('memories.user-ben.s1', 'x'); \
                     UPDATE episode_segments SET id = '[\"segment\",\"user-ana\"]' WHERE id = 'seg-other'",
                )
                .await;
            let (plan, receipt) = purged(&world, Mentions::Redact).await;
            let mentions = plan["mentions"].as_array().expect("mentions").iter();
            let keys: Vec<&str> =
                mentions.filter(|m| m["column"] == "prefix").filter_map(|m| m["key"].as_str()).collect();
            assert_eq!(keys.len(), 6, "{keys:?}");
            assert!(!keys.contains(&"memories.user-ben.s1"));
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            assert!(receipt["disclosures"].to_string().contains("store.prefix"), "{receipt:#}");
            assert_eq!(world.count("store").await, 7);
            assert_eq!(world.count("episode_segments WHERE id LIKE '%user-ana%'").await, 0);
            let renamed = world.texts("SELECT id FROM episode_segments WHERE id LIKE '[\"segment\",%'").await;
            assert!(
                serde_json::from_str::<Vec<String>>(&renamed[0]).is_ok_and(|parts| parts.len() == 2),
                "{renamed:?}"
            );
        }
    });
}

#[test]
fn what_is_the_same_as_a_key_that_stays_is_only_possible() {
    block_on(async {
        for world in planted(PLANTS).await {
            world
                .run(
                    "UPDATE episodes SET title = 'ep:user-ana.b:8' WHERE id = 'ep:xuser-ana:9'; \
                     UPDATE episode_segments SET source_id = 'ep:user-ana.b:8' WHERE id = 'seg-other'",
                )
                .await;
            let (plan, _) = purged(&world, Mentions::Redact).await;
            assert_eq!(of(&plan, "title", "ep:xuser-ana:9").expect("the title")["certainty"], "possible");
            assert_eq!(world.count("episodes WHERE title = 'ep:user-ana.b:8'").await, 1);
            assert_eq!(world.count("episode_segments WHERE source_id = 'ep:user-ana.b:8'").await, 1);
        }
    });
}

#[test]
fn an_id_with_a_blank_at_its_end_is_another_person() {
    block_on(async {
        for world in planted(PLANTS).await {
            world
                .run(
                    "INSERT INTO users (id, email, first_name, last_name, role, status) VALUES ('user-ana ', 'other@initech.example', \
                     'Other', 'Person', 'member', 'active'); \
                     INSERT INTO episodes (id, title, agent_id, user_id, workspace_id, status, maturity_at_time, human_intervention_count, access_count) VALUES ('ep-blank', 'mine', 'agent-ledger', 'user-ana ', 'w', \
                     'completed', 'student', 0, 0)",
                )
                .await;
            let of_ana = "episodes WHERE user_id = 'user-ana'";
            let before = world.count(of_ana).await;
            assert!(before > 0);
            let options = PurgeOptions { mentions: Mentions::Redact, account: true, ..PurgeOptions::default() };
            let (plan, _) = world.purge("user-ana ", &options).await.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                (&plan["subject"]["ids"], &plan["counts"]["episodes"]),
                (&json!(["user-ana "]), &json!({"delete": 1}))
            );
            assert_eq!(world.count("episodes WHERE id = 'ep-blank'").await, 0);
            assert_eq!(world.count(of_ana).await, before, "the other one's rows stay, under their name");
            // Where nobody has such an id, the blank was only typed.
            let (plan, _) = world.purge(" user-ana ", &options).await.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(plan["subject"]["ids"], json!(["user-ana"]));
        }
    });
}

/// Episodes of two people, given as ids, with a segment that says something of each.
fn two_episodes(ana: &str, ben: &str) -> String {
    format!(
        "INSERT INTO episodes (id, title, agent_id, user_id, workspace_id, status, maturity_at_time, human_intervention_count, \
           access_count, session_id, consolidated_into) VALUES \
           ('{ana}', 'hers', 'agent-ledger', 'user-ana', 'w', 'completed', 'student', 0, 0, NULL, NULL), \
           ('{ben}', 'his', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0, 'shared-{ana}', NULL), \
           ('his-next', 'his', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0, NULL, '{ben}'); \
         INSERT INTO episode_segments (id, episode_id, segment_type, sequence_order, content, source_type, source_id) VALUES \
           ('said-by-ben', '{ben}', 'message', 1, 'see {ben}; not \"{ana}\"', 'chat', '{ben}')"
    )
}

#[test]
fn an_id_in_another_case_is_another_rows() {
    block_on(async {
        for mentions in [Mentions::Leave, Mentions::Redact] {
            for world in planted(&two_episodes("Ab3kQ9xyZt", "aB3Kq9xyZt")).await {
                let broken = dangling(&world).await;
                let (_, receipt) = purged(&world, mentions).await;
                assert!(receipt["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{receipt:#}");
                let left = "SELECT concat_ws('|', episode_id, source_id, content) FROM episode_segments WHERE id = 'said-by-ben'";
                assert_eq!(world.texts(left).await, ["aB3Kq9xyZt|aB3Kq9xyZt|see aB3Kq9xyZt; not null"]);
                assert_eq!(world.count("episodes WHERE consolidated_into = 'aB3Kq9xyZt'").await, 1);
                assert_eq!(dangling(&world).await, broken);
            }
        }
    });
}

#[test]
fn an_id_within_someone_elses_is_left_and_named() {
    block_on(async {
        for mentions in [Mentions::Leave, Mentions::Redact] {
            for ben in ["team/plant-9f3a77c1", "user plant-9f3a77c1", "other::plant-9f3a77c1"] {
                for world in planted(&two_episodes("plant-9f3a77c1", ben)).await {
                    let broken = dangling(&world).await;
                    let (plan, receipt) = purged(&world, mentions).await;
                    assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
                    assert_eq!(world.count(&format!("episode_segments WHERE episode_id = '{ben}'")).await, 1);
                    assert_eq!(world.count(&format!("episodes WHERE consolidated_into = '{ben}'")).await, 1);
                    assert_eq!(world.count("episodes WHERE session_id = 'shared-plant-9f3a77c1'").await, 1);
                    assert_eq!(dangling(&world).await, broken);
                    for place in ["episodes.id", "episodes.session_id", "episode_segments.episode_id"] {
                        let planned = format!("{place}: 1 value has the id of a row to be deleted within a longer id");
                        let left = format!("{place}: 1 value has the id of a deleted row within a longer id");
                        assert!(plan["disclosures"].to_string().contains(&planned), "{plan:#}");
                        assert!(receipt["disclosures"].to_string().contains(&left), "{receipt:#}");
                    }
                }
            }
        }
    });
}

#[test]
fn a_foreign_key_to_a_row_that_stays_is_never_changed() {
    block_on(async {
        for world in planted(PLANTS).await {
            world
                .run(
                    "CREATE TABLE desks (id VARCHAR PRIMARY KEY); \
                     INSERT INTO desks VALUES ('desk:user-ana:1'); \
                     ALTER TABLE episode_segments ADD COLUMN desk VARCHAR REFERENCES desks (id); \
                     UPDATE episode_segments SET desk = 'desk:user-ana:1' WHERE id = 'seg-other'",
                )
                .await;
            let (_, receipt) = purged(&world, Mentions::Redact).await;
            assert_eq!(receipt["status"], "incomplete", "{receipt:#}");
            assert!(receipt["incomplete"].to_string().contains("a foreign key ties it to a row"), "{receipt:#}");
            let each = [("episode_segments.desk".to_owned(), Mentions::Leave)].into();
            let receipt = world.resume("user-ana", &NewDecisions { all: None, each }).await;
            let receipt = receipt.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            assert_eq!(world.count("episode_segments WHERE desk = 'desk:user-ana:1'").await, 1);
        }
    });
}

#[test]
fn names_that_an_index_computes_its_values_from_keep_apart() {
    block_on(async {
        for world in planted(PLANTS).await {
            let kind = if matches!(world.target, Target::Postgres(_)) { "STORED" } else { "VIRTUAL" };
            world
                .run(&format!(
                    "ALTER TABLE episodes ADD COLUMN small VARCHAR GENERATED ALWAYS AS (lower(summary)) {kind}; \
                     INSERT INTO episodes (id, title, summary, description, agent_id, user_id, workspace_id, status, maturity_at_time, \
                     human_intervention_count, access_count) VALUES \
                     ('plant-1', 'user-ana', 'ask user-ana', '{{\"who\": \"user-ana\"}}', 'agent-ledger', 'user-ben', 'w', 'completed', 'student', 0, 0), \
                     ('plant-2', 'ana.ruiz@initech.example', 'ask ana.ruiz@initech.example', '{{\"who\": \"ana.ruiz@initech.example\"}}', 'agent-ledger', 'user-ben', 'w', \
                     'completed', 'student', 0, 0); \
                     CREATE UNIQUE INDEX plant_title ON episodes (user_id, lower(title)) WHERE id LIKE 'plant-%'; \
                     CREATE UNIQUE INDEX plant_text ON episodes ((trim(description) || '.')) WHERE id LIKE 'plant-%'; \
                     CREATE UNIQUE INDEX plant_small ON episodes (small) WHERE id LIKE 'plant-%'",
                ))
                .await;
            let (_, receipt) = purged(&world, Mentions::Redact).await;
            assert!(receipt["status"].as_str().is_some_and(|s| s.starts_with("verified")), "{receipt:#}");
            assert_eq!(world.count("episodes WHERE id LIKE 'plant-%'").await, 2);
            let named = "episodes WHERE id LIKE 'plant-%' AND (title LIKE '%ana%' OR summary LIKE '%ana%' OR description LIKE '%ana%')";
            assert_eq!(world.count(named).await, 0);
            let documents = world.texts("SELECT description FROM episodes WHERE id LIKE 'plant-%'").await;
            assert!(documents.iter().all(|text| serde_json::from_str::<Value>(text).is_ok()), "{documents:?}");
        }
    });
}

#[test]
fn advice_about_mentions_is_what_the_decisions_have_not_done() {
    block_on(async {
        for world in planted(PLANTS).await {
            for (mentions, advised) in [(Mentions::Leave, true), (Mentions::Redact, false)] {
                let options = PurgeOptions { mentions, account: true, ..PurgeOptions::default() };
                let plan = plan(&world.open().await, "user-ana", &options, &|_, _| {}).await.expect("a plan");
                let told = json!(plan.printed())["disclosures"].to_string();
                assert_eq!(told.contains("--mentions redact removes the words"), advised, "{told}");
                assert!(told.contains("--mention ID=redact"), "{told}");
            }
        }
    });
}
