//! Mentions of a person: certain ones are removed, possible ones are shown and stay until they are decided, and nothing
//! else is touched. In any script, on both engines, read back with plain SQL.

use std::collections::BTreeMap;

use mnemoscope::change::operation::FeedbackFields;
use mnemoscope::change::purge::{self, Mentions, PurgeOptions};
use mnemoscope::change::{self, ChangeError, edit, feedback, hold};
use mnemoscope::memory::Entity;
use mnemoscope::store::Target;
use serde_json::{Map, Value, json};

use super::owners::{held, released};
use super::{World, author, everything, native, on_postgres, on_sqlite};
use crate::support::block_on;
use crate::support::fixtures::Layout;

/// An id that is a usual word, a text of someone else's row, and that text after the erasure.
const USUAL: &[(&str, &str, &str)] = &[
    ("user", r#"{"author": "user", "role": "user"}"#, r#"{"author": "user", "role": "user"}"#),
    ("user", r#"{"author": "x", "user_id": "user"}"#, r#"{"author": "x", "user_id": "****"}"#),
    ("7", r#"{"user_turn_number": 7, "customer": 7}"#, r#"{"user_turn_number": 7, "customer": null}"#),
    ("main", "main", "main"),
    ("null", r#"[null, "null"]"#, r#"[null, "null"]"#),
];

/// Texts in other people's rows, each with its form once Ana Ruiz (`user-ana`, ana.ruiz@initech.example) is removed.
const CERTAIN: &[(&str, &str)] = &[
    ("“ana.ruiz@initech.example”", "“[erased]”"),
    ("«Ana Ruiz»", "«[erased]»"),
    ("\u{a0}ana.ruiz@initech.example\u{a0}", "\u{a0}[erased]\u{a0}"),
    ("\u{feff}user-ana", "\u{feff}[erased]"),
    ("😀user-ana👍", "😀[erased]👍"),
    ("请联系ana.ruiz@initech.example谢谢", "请联系[erased]谢谢"),
    ("ติดต่อuser-anaขอบคุณ", "ติดต่อ[erased]ขอบคุณ"),
    ("user-ana에게", "[erased]에게"),
    ("Ana\nRuiz and Ana  Ruiz", "[erased] and [erased]"),
    ("Ana\u{a0}Ruiz", "[erased]"),
    ("Ruiz, Ana", "[erased]"),
    ("An\u{ad}a Ru\u{200b}iz", "[erased]"),
    ("Ａｎａ　Ｒｕｉｚ", "[erased]"),
    ("prefs:user-ana", "prefs:[erased]"),
    (r#"{"a":"Ana\nRuiz"}"#, r#"{"a":"[erased]"}"#),
];

/// Texts that may mean her.
const POSSIBLE: &[&str] = &[
    "user_user-ana", "user-ana_backup.json", "user-ana2", "xuser-ana", "joana.ruiz@initech.example",
    "ana.ruiz@initech.example.org", "A. Ruiz", "Ana R.", "Ruiz Ana", "Ana Maria Ruiz", "ana_ruiz.pdf",
    "jo.ana.ruiz@initech.example", r"C:\home\tuser-ana",
];

/// Texts that do not mean her.
const OTHERS: &[&str] = &["Ana and Ruiz", "Joana Ruizo", "2026-02-17T12:42:20"];

async fn worlds() -> Vec<World> {
    [Some(on_sqlite(Layout::Atom2026).await), on_postgres(Layout::Atom2026).await].into_iter().flatten().collect()
}

async fn plant(world: &World, id: &str, text: &str) {
    let text = text.replace('\'', "''");
    world
        .run(&format!(
            "INSERT INTO episodes (id, title, summary, agent_id, user_id, workspace_id, status, maturity_at_time, \
             human_intervention_count, access_count) VALUES ('{id}', '{text}', 'nobody', 'agent-ledger', 'user-ben', 'w', \
             'completed', 'student', 0, 0)"
        ))
        .await;
}

async fn title(world: &World, id: &str) -> String {
    world.texts(&format!("SELECT title FROM episodes WHERE id = '{id}'")).await.remove(0)
}

/// The statement that adds an episode.
fn episode(id: &str, title: &str, user: &str) -> String {
    format!(
        "INSERT INTO episodes (id, title, summary, agent_id, user_id, workspace_id, status, maturity_at_time, \
         human_intervention_count, access_count) VALUES ('{id}', '{title}', '', 'agent-ledger', '{user}', 'w', 'completed', \
         'student', 0, 0)"
    )
}

/// Between the plan and the first batch an agent takes the person out of one row and says something else of them in another.
#[test]
fn a_row_that_was_to_go_for_what_it_says_stays_once_it_says_so_no_more() {
    block_on(async {
        for world in worlds().await {
            for id in ["plant-0", "plant-1"] {
                plant(&world, id, "ask ana.ruiz@initech.example").await;
            }
            world
                .run(
                    "INSERT INTO episode_segments (id, episode_id, segment_type, sequence_order, content, source_type) \
                     VALUES ('hangs', 'plant-0', 'x', 1, 'nothing', 'x')",
                )
                .await;
            let says = "UPDATE episodes SET title = CASE id WHEN 'plant-0' THEN 'ask nobody' \
                 ELSE replace(title, 'ask', 'tell') END WHERE id IN ('plant-0', 'plant-1')";
            let (begins, ends) = match world.target {
                Target::File(_) => (
                    format!("CREATE TRIGGER says AFTER INSERT ON memory_purges BEGIN {says}; END"),
                    "DROP TRIGGER says",
                ),
                Target::Postgres(_) => (
                    format!(
                        "CREATE FUNCTION says() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {says}; RETURN NULL; END $$; \
                         CREATE TRIGGER says AFTER INSERT ON memory_purges FOR EACH ROW EXECUTE FUNCTION says()"
                    ),
                    "DROP FUNCTION says CASCADE",
                ),
            };
            world.run(&begins).await;
            let options = PurgeOptions { mentions: Mentions::Delete, ..everything() };
            let told = world.carry_out("user-ana", &options, false).await.expect_err("it is paused").to_string();
            assert!(told.contains("episodes: 1 row to be deleted no longer names the person"), "{told}");
            assert_eq!(world.count("episodes WHERE id LIKE 'plant-%'").await, 2);
            world.run(ends).await;
            let receipt = world.carry_out("user-ana", &options, true).await.expect("a receipt");
            assert_ne!(receipt["status"], "incomplete", "{receipt:#}");
            assert_eq!(world.texts("SELECT title FROM episodes WHERE id LIKE 'plant-%'").await, ["ask nobody"]);
            assert_eq!(world.count("episode_segments WHERE id = 'hangs'").await, 1);
            let disclosures = receipt["disclosures"].to_string();
            assert!(
                disclosures.contains("episodes: 1 row that was to be deleted because of what others wrote stays"),
                "{disclosures}"
            );
        }
    });
}

#[test]
fn what_hangs_on_a_row_that_stays_at_the_last_moment_stays_however_small_batches_are() {
    block_on(async {
        let world = native(24).await;
        world
            .run(
                "INSERT INTO subjects (id, name, handles) VALUES ('leaver-x', 'Lea Verhoeven', '[\"lea@leaver.example\"]'); \
                 UPDATE memories SET user_id = 'keeper-a', text = 'write to lea@leaver.example' \
                   WHERE id = (SELECT min(memory_id) FROM memory_embeddings); \
                 CREATE TRIGGER says AFTER INSERT ON memory_purges BEGIN \
                   UPDATE memories SET text = 'write to nobody' WHERE text LIKE 'write to lea%'; END",
            )
            .await;
        let vectors = "memory_embeddings WHERE memory_id IN (SELECT id FROM memories WHERE text = 'write to nobody')";
        let options = PurgeOptions { mentions: Mentions::Delete, batch: 1, account: true, ..PurgeOptions::default() };
        let told = world.carry_out("leaver-x", &options, false).await.expect_err("it is paused").to_string();
        assert!(told.contains("memories: 1 row to be deleted no longer names the person"), "{told}");
        assert_eq!(world.count(vectors).await, 1);
        let receipt = world.carry_out("leaver-x", &options, true).await.expect("a receipt");
        assert_ne!(receipt["status"], "incomplete", "{receipt:#}");
        assert_eq!(world.count(vectors).await, 1);
        assert!(!receipt["disclosures"].to_string().contains("may have been deleted before"), "{receipt:#}");
    });
}

/// The canvas is the person's, but for a use of it by someone else that names the person.
#[test]
fn what_only_rows_that_go_for_what_they_say_kept_from_going_goes_too() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            world
                .run(
                    "INSERT INTO canvases (id, tenant_id, created_by, name) VALUES ('canvas-x', 'tenant', 'user-ana', 'Plans'); \
                     INSERT INTO canvas_audit (id, canvas_id, tenant_id, action_type, user_id, details_json) VALUES \
                       ('use-x', 'canvas-x', 'tenant', 'present', 'user-ben', '{\"note\": \"ask user-ana\"}')",
                )
                .await;
            let each = BTreeMap::from([("canvas_audit.details_json".to_owned(), Mentions::Delete)]);
            let options = PurgeOptions { each, ..everything() };
            let (plan, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
            assert_eq!(world.count("canvases WHERE id = 'canvas-x'").await, 0, "{receipt:#}");
            assert_eq!(plan["counts"], receipt["counts"], "{receipt:#}");
            assert_eq!(receipt["status"], world.best(), "{receipt:#}");
        }
    });
}

#[test]
fn possible_mentions_that_are_left_by_choice_are_a_disclosure_whatever_becomes_of_certain_ones() {
    block_on(async {
        for mentions in [Mentions::Leave, Mentions::Redact, Mentions::Delete] {
            for world in worlds().await {
                let known = "INSERT INTO users (id, email, first_name, last_name, role, status) VALUES ('zoe.quill', \
                     'x@y.example', 'Zoe', 'Quill', 'r', 's')";
                world.run(known).await;
                world.run(&episode("own-1", "own", "zoe.quill")).await;
                world.run(&episode("plant-1", "to zoe.quill@northwind.example", "user-ben")).await;
                let options = PurgeOptions { mentions, account: true, ..PurgeOptions::default() };
                let (plan, receipt) = world.purge("zoe.quill", &options).await.expect("a receipt");
                assert_eq!(plan["mentions"][0]["certainty"], "possible", "{plan:#}");
                assert_eq!(receipt["status"], "verified with disclosures", "{mentions:?}: {receipt:#}");
                let told = receipt["disclosures"].to_string();
                assert!(told.contains("episodes.title: 1 value names the person and is left"), "{told}");
                assert!(!told.contains("in a spelling"), "{told}");
                assert_eq!(title(&world, "plant-1").await, "to zoe.quill@northwind.example");
            }
        }
    });
}

#[test]
fn an_id_that_is_a_usual_word_means_the_person_only_where_ids_of_people_stand() {
    block_on(async {
        for (person, before, after) in USUAL {
            for world in [Some(on_sqlite(Layout::Atom2026).await), on_postgres(Layout::Atom2026).await] {
                let Some(world) = world else { continue };
                let known = format!(
                    "INSERT INTO users (id, email, first_name, last_name, role, status) VALUES ('{person}', 'x@y.example', \
                     'Xaver', 'Ypsilon', 'r', 's')"
                );
                world.run(&known).await;
                world.run(&episode("own-1", "own", person)).await;
                world.run(&episode("plant-1", before, "user-ben")).await;
                let (_, receipt) = world.purge(person, &everything()).await.expect("a receipt");
                assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
                assert_eq!(world.texts("SELECT title FROM episodes WHERE id = 'plant-1'").await, [*after]);
                assert_eq!(world.count("episodes WHERE id = 'own-1'").await, 0);
            }
        }
    });
}

#[test]
fn what_a_rule_leaves_of_a_value_is_a_mention_where_it_names_the_person() {
    let rows = r#"INSERT INTO workflow_runs (run_id, workflow_name, status, created_at, updated_at, input_kwargs) VALUES
          ('run-q', 'wf', 'completed', '2026-05-01 10:00:00', '2026-05-01 10:00:00', '{"user_id": "quirin-7"}'),
          ('run-b', 'wf', 'completed', '2026-05-01 10:00:00', '2026-05-01 10:00:00', '{"user_id": "bo-22"}');
        INSERT INTO events (event_id, run_id, sequence, type, timestamp, data) VALUES ('ev-b', 'run-b', 1, 'hook.received',
          '2026-05-01 10:00:05', '{"payload": "{\"by\": \"quirin-7\", \"comment\": \"Quentin Queue says no\"}"}')"#;
    let decided = [(Mentions::Leave, "Quentin Queue says no"), (Mentions::Redact, "[erased] says no")];
    block_on(async {
        for (mentions, comment) in decided {
            for world in [Some(on_sqlite(Layout::Pyworkflow).await), on_postgres(Layout::Pyworkflow).await] {
                let Some(world) = world else { continue };
                world.run(rows).await;
                let aliases = vec!["Quentin Queue".to_owned()];
                let options = PurgeOptions { aliases, mentions, ..PurgeOptions::default() };
                let (plan, receipt) = world.purge("quirin-7", &options).await.expect("a receipt");
                assert_eq!(plan["mentions"].as_array().map(Vec::len), Some(1), "{plan:#}");
                assert_ne!(receipt["status"], "incomplete", "{receipt:#}");
                let data = world.texts("SELECT data FROM events WHERE event_id = 'ev-b'").await.remove(0);
                assert!(data.contains(comment) && !data.contains("quirin-7"), "{data}");
            }
        }
    });
}

#[test]
fn what_an_object_keeps_under_the_id_of_a_row_goes_with_the_row() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom2026).await), on_postgres(Layout::Atom2026).await] {
            let Some(world) = world else { continue };
            let own = "episode-0000-0001";
            world.run(&episode(own, "own", "user-ana")).await;
            let title = format!(r#"{{"{own}": {{"n": 1}}, "kept": 2, "at": "{own}"}}"#);
            world.run(&episode("plant-1", &title, "user-ben")).await;
            world.purge("user-ana", &everything()).await.expect("a receipt");
            let left = world.texts("SELECT title FROM episodes WHERE id = 'plant-1'").await;
            assert_eq!(left, [r#"{ "kept": 2, "at": null}"#]);
        }
    });
}

#[test]
fn certain_mentions_go_possible_ones_stay_until_decided_and_others_are_not_touched() {
    block_on(async {
        for world in worlds().await {
            let all =
                CERTAIN.iter().map(|(text, _)| *text).chain(POSSIBLE.iter().copied()).chain(OTHERS.iter().copied());
            for (i, text) in all.enumerate() {
                plant(&world, &format!("plant-{i:02}"), text).await;
            }
            let (plan, receipt) = world.purge("user-ana", &everything()).await.expect("a receipt");
            assert_eq!(plan["counts"], receipt["counts"]);
            assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
            let mentions = plan["mentions"].as_array().expect("mentions");
            let of = |key: &str| mentions.iter().find(|m| m["column"] == "title" && m["key"] == key);
            for (i, (text, expected)) in CERTAIN.iter().enumerate() {
                let key = format!("plant-{i:02}");
                assert_eq!(title(&world, &key).await, *expected, "{text}");
                assert_eq!(of(&key).expect("a mention")["certainty"], "certain", "{text}");
            }
            for (i, text) in POSSIBLE.iter().enumerate() {
                let key = format!("plant-{:02}", i + CERTAIN.len());
                assert_eq!(title(&world, &key).await, *text);
                let mention = of(&key).unwrap_or_else(|| panic!("{text} is not shown"));
                assert_eq!(mention["certainty"], "possible", "{text}");
                assert!(mention["reason"].as_str().is_some_and(|why| !why.is_empty()), "{text}");
            }
            for (i, text) in OTHERS.iter().enumerate() {
                let key = format!("plant-{:02}", i + CERTAIN.len() + POSSIBLE.len());
                assert_eq!(title(&world, &key).await, *text);
                assert!(of(&key).is_none_or(|mention| mention["certainty"] == "possible"), "{text}");
            }
        }
    });
}

#[test]
fn a_possible_mention_goes_when_it_is_decided_by_itself() {
    block_on(async {
        for world in worlds().await {
            plant(&world, "plant-1", "of user_user-ana and user-ana").await;
            plant(&world, "plant-2", "of user_user-ana and user-ana").await;
            let plan = purge::plan(&world.open().await, "user-ana", &everything(), &|_, _| {}).await.expect("a plan");
            let plan = json!(plan.printed());
            let mentions = plan["mentions"].as_array().expect("mentions");
            let one = mentions.iter().find(|m| m["key"] == "plant-1").expect("a mention");
            assert_eq!((&one["hits"], &one["possible"]), (&Value::from(2), &Value::from(1)));
            let each = BTreeMap::from([(one["id"].as_str().expect("an id").to_owned(), Mentions::Redact)]);
            world.purge("user-ana", &PurgeOptions { each, ..everything() }).await.expect("a receipt");
            assert_eq!(title(&world, "plant-1").await, "of user_[erased] and [erased]");
            assert_eq!(title(&world, "plant-2").await, "of user_user-ana and [erased]");
        }
    });
}

#[test]
fn ids_that_are_words_or_numbers_leave_everything_else_as_it_is() {
    block_on(async {
        for id in ["42", "1", "x1", "-1", "2026", "success", "null", "true", "completed", "thumbs_up", "in-progress"] {
            let world = native(20).await;
            world
                .run(&format!(
                    "INSERT INTO subjects (id, name) VALUES ('{id}', 'Ana Ruiz Prieto'); \
                     INSERT INTO episodes (id, user_id, title, status) VALUES ('own', '{id}', 'hers', 'success'); \
                     INSERT INTO episodes (id, user_id, title, metadata, status) VALUES \
                     ('at', 'keeper-a', 'at 2026-02-17T12:42:20, {id} done', \
                      '{{\"n\": 42, \"m\": [1, 2026, null, true], \"kind\": \"success\", \"user_id\": \"{id}\"}}', 'success'), \
                     ('b1', 'keeper-a', 'x', NULL, 'thumbs_up'), ('b2', 'keeper-a', 'x', NULL, 'thumbs_up'), \
                     ('b3', 'keeper-a', 'x', NULL, 'thumbs_up'), ('c1', 'keeper-a', 'x', NULL, 'in-progress'), \
                     ('c2', 'keeper-a', 'x', NULL, 'in-progress'), ('c3', 'keeper-a', 'x', NULL, 'in-progress')"
                ))
                .await;
            let before = world.dump().await;
            let named = if id.len() < 3 || id.parse::<u32>().is_ok() { id } else { "Ana Ruiz Prieto" };
            let (plan, receipt) = world.purge(named, &everything()).await.expect("a receipt");
            assert_eq!(plan["counts"], receipt["counts"]);
            let changed = world.texts("SELECT title || metadata FROM episodes WHERE id = 'at'").await;
            let nobody = format!(
                "at 2026-02-17T12:42:20, {id} done{{\"n\": 42, \"m\": [1, 2026, null, true], \"kind\": \"success\", \
                 \"user_id\": \"{}\"}}",
                if id.len() < 8 { "*".repeat(id.len()) } else { "[erased]".to_owned() }
            );
            assert_eq!(changed, [nobody], "{id}");
            // Next to her own rows and that one, nothing has changed.
            let after = world.dump().await;
            for (table, rows) in &before {
                let gone: Vec<&String> = rows.iter().filter(|row| !after[table].contains(row)).collect();
                let allowed = match table.as_str() {
                    "episodes" => 2,
                    "subjects" => 1,
                    _ => 0,
                };
                assert!(gone.len() <= allowed, "{id}: rows of {table} are not what they were: {gone:?}");
            }
        }
    });
}

#[test]
fn a_few_tags_that_name_the_person_do_not_make_the_name_a_usual_word() {
    block_on(async {
        for (tags, all) in [(0, 160), (3, 40), (6, 160)] {
            let world = native(20).await;
            let others = (0..all).map(|n| {
                let tag = if n < tags { "joao-silva" } else { "stall" };
                format!("('o{n}', 'keeper-a', 'a note', '[\"{tag}\"]')")
            });
            world
                .run(&format!(
                    "INSERT INTO subjects (id, name) VALUES ('joao-silva', NULL); \
                     INSERT INTO episodes (id, user_id, title) VALUES ('own', 'joao-silva', 'hers'); \
                     INSERT INTO episodes (id, user_id, title) VALUES ('at', 'keeper-a', 'Amara met joao-silva'); \
                     INSERT INTO episodes (id, user_id, title, tags) VALUES {}",
                    others.collect::<Vec<_>>().join(", ")
                ))
                .await;
            let options = PurgeOptions { mentions: Mentions::Redact, ..PurgeOptions::default() };
            let (_, receipt) = world.purge("joao-silva", &options).await.expect("a receipt");
            let changed = world.texts("SELECT title FROM episodes WHERE id = 'at'").await;
            assert_eq!(changed, ["Amara met [erased]"], "{tags}: {receipt:#}");
        }
    });
}

#[test]
fn a_conversation_that_is_named_like_somebody_else_leaves_theirs_alone() {
    block_on(async {
        for name in ["keeper-a", "Kim Keeper", "kim@keeper.example", "owner-b"] {
            let world = native(20).await;
            world
                .run(&format!(
                    "INSERT INTO subjects (id, name) VALUES ('ann-1', 'Ann Lee Prieto'); \
                     INSERT INTO subjects (id, name, handles) VALUES ('keeper-a', 'Kim Keeper', '[\"kim@keeper.example\"]'); \
                     INSERT INTO episodes (id, user_id, session_id, title, status) VALUES \
                     ('own', 'ann-1', '{name}', 'hers', 'success'), ('theirs', 'keeper-a', 's-9', '{name} called', 'success'), \
                     ('more', 'owner-b', 's-8', 'a note', 'success')"
                ))
                .await;
            let before = world.dump().await;
            let (_, receipt) = world.purge("ann-1", &everything()).await.expect("a receipt");
            assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
            let after = world.dump().await;
            for (table, rows) in before.iter().filter(|(table, _)| matches!(table.as_str(), "episodes" | "subjects")) {
                let gone: Vec<&String> = rows.iter().filter(|row| !after[table].contains(row)).collect();
                assert_eq!(gone.len(), 1, "{name}: rows of {table} are not what they were: {gone:?}");
            }
        }
    });
}

#[test]
fn the_encoded_form_of_a_short_handle_is_told() {
    block_on(async {
        for (word, told) in [("aWRhLnZvc3M5", true), ("/u/aWRhLnZvc3M5/in", true), ("aWRhLnZvc3M", false)] {
            let world = native(20).await;
            world
                .run(&format!(
                    "INSERT INTO subjects (id, name) VALUES ('ida.voss9', 'Ida Voss-Prieto'); \
                     INSERT INTO memories (id, user_id, text) VALUES ('own', 'ida.voss9', 'hers {word}'), \
                     ('theirs', 'keeper-a', 'a token: {word}')"
                ))
                .await;
            let (_, receipt) = world.purge("ida.voss9", &everything()).await.expect("a receipt");
            let words = "memories.text: 1 value was left unchanged: a short word is a handle";
            assert_eq!(receipt["disclosures"].to_string().contains(words), told, "{word}: {receipt:#}");
        }
    });
}

#[test]
fn the_encoded_form_of_a_short_handle_is_told_in_each_layer() {
    // `{"x": WORD}` in base64, `{"u": WORD}` in gzip, and the same in MessagePack.
    let values = [
        "'a token: eyJ4IjogImFXUmhMblp2YzNNNSJ9'",
        "x'1f8b0800000000000203ab562a55b252504a0c0fcaf0c98b2a4b36f63555aa0500c8655f6b15000000'",
        "x'81a175ac615752684c6e5a7663334d35'",
    ];
    block_on(async {
        for value in values {
            let world = native(20).await;
            world
                .run(&format!(
                    "INSERT INTO subjects (id, name) VALUES ('ida.voss9', 'Ida Voss-Prieto'); \
                     INSERT INTO memories (id, user_id, text) VALUES ('own', 'ida.voss9', 'hers'), ('theirs', 'keeper-a', {value})"
                ))
                .await;
            let before = world.texts("SELECT hex(text) FROM memories WHERE id = 'theirs'").await;
            let (_, receipt) = world.purge("ida.voss9", &everything()).await.expect("a receipt");
            let words = "memories.text: 1 value was left unchanged: a short word is a handle";
            assert!(receipt["disclosures"].to_string().contains(words), "{value}: {receipt:#}");
            assert_ne!(receipt["status"], "verified", "{value}");
            assert_eq!(world.texts("SELECT hex(text) FROM memories WHERE id = 'theirs'").await, before);
        }
    });
}

#[test]
fn a_possible_mention_that_two_handles_share_may_be_left() {
    block_on(async {
        let world = native(20).await;
        world
            .run(
                "INSERT INTO subjects (id, name, handles) VALUES ('ina.vale', 'Ina Vale', '[]'); \
                 INSERT INTO episodes (id, user_id, title, status) VALUES ('own', 'ina.vale', 'hers', 'success'); \
                 INSERT INTO memories (id, user_id, text, metadata) VALUES \
                 ('theirs', 'keeper-a', 'a note', '{\"to\": \"ina.vale@northwind.example\"}')",
            )
            .await;
        let (plan, receipt) = world.purge("ina.vale", &everything()).await.expect("a receipt");
        assert_eq!(plan["mentions"][0]["certainty"], "possible", "{plan:#}");
        assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
        let left = world.texts("SELECT metadata FROM memories WHERE id = 'theirs'").await;
        assert_eq!(left, [r#"{"to": "ina.vale@northwind.example"}"#]);
    });
}

/// An id that documents have as a field too, texts of other people, and those texts after the erasure where they are others.
const FIELDS: &[(&str, Option<&str>)] = &[
    (r#"{"created_at": 1, "tags": ["a"]}"#, None),
    (r#"{"created_at": 2, "user": {"created_at": 3}}"#, None),
    (r#"[{"created_at": 4}]"#, None),
    ("order by created_at", None),
    (r#"{"users": {"created_at": 5, "ben": 1}}"#, Some(r#"{"users": {"[erased]": 5, "ben": 1}}"#)),
    (r#"{"votes": 2, "by_user": {"created_at": 1}}"#, Some(r#"{"votes": 2, "by_user": {"[erased]": 1}}"#)),
];

#[test]
fn a_key_of_a_document_means_the_person_only_where_keys_are_people_and_no_row_goes_for_it() {
    block_on(async {
        for mentions in [Mentions::Redact, Mentions::Delete] {
            for world in worlds().await {
                world
                    .run(
                        "INSERT INTO users (id, email, first_name, last_name, role, status) VALUES ('created_at', 'x@y.example', \
                         'Xaver', 'Ypsilon', 'r', 's')",
                    )
                    .await;
                world.run(&episode("own-1", "own", "created_at")).await;
                for (i, (text, _)) in FIELDS.iter().enumerate() {
                    plant(&world, &format!("plant-{i}"), text).await;
                }
                let before = world.dump().await;
                let options = PurgeOptions { mentions, ..everything() };
                let (plan, receipt) = world.purge("created_at", &options).await.expect("a receipt");
                assert_eq!(plan["counts"], receipt["counts"]);
                assert_eq!(receipt["status"], "verified with disclosures", "{receipt:#}");
                assert_eq!(world.count("episodes WHERE id = 'own-1'").await, 0);
                for (i, (text, left)) in FIELDS.iter().enumerate() {
                    assert_eq!(title(&world, &format!("plant-{i}")).await, left.unwrap_or(text), "{mentions:?}");
                }
                let after = world.dump().await;
                let changed = FIELDS.iter().filter(|(_, left)| left.is_some()).count();
                let gone = before["episodes"].iter().filter(|row| !after["episodes"].contains(row)).count();
                assert_eq!(gone, changed + 1, "her own row, and the keys that are people");
            }
        }
    });
}

#[test]
fn a_conversation_that_is_called_as_a_word_or_a_day_leaves_texts_of_others_alone() {
    const TEXTS: [&str; 4] =
        ["Remember: tea at four", "on 2026-03-10 at noon", r#"{"day": "2026-03-10"}"#, "we Remember it"];
    block_on(async {
        for session in ["Remember", "2026-03-10"] {
            for world in worlds().await {
                world.run(&episode("own-1", "own", "user-ana")).await;
                world.run(&format!("UPDATE episodes SET session_id = '{session}' WHERE id = 'own-1'")).await;
                for (i, text) in TEXTS.iter().enumerate() {
                    plant(&world, &format!("plant-{i}"), text).await;
                }
                world.purge("user-ana", &everything()).await.expect("a receipt");
                for (i, text) in TEXTS.iter().enumerate() {
                    assert_eq!(title(&world, &format!("plant-{i}")).await, *text, "{session}");
                }
            }
        }
    });
}

#[test]
fn ids_of_rows_that_go_and_are_words_of_others_stay_in_their_texts() {
    const USED: [(&str, &str); 5] = [
        ("2026-03-10", "on {} she met"),
        ("2026-03-10T08:33:59Z", r#"{"at": "{}", "n": 1}"#),
        ("192.168.10.20", r#"["{}", "x"]"#),
        ("gpt-4o-mini", r#"{"model": "{}"}"#),
        ("v1.2.3-beta", "with {} of it"),
    ];
    block_on(async {
        for (id, text) in USED {
            for world in worlds().await {
                world.run(&episode(id, "own", "user-ana")).await;
                let text = text.replace("{}", id);
                for i in 0..40 {
                    plant(&world, &format!("plant-{i:02}"), &text).await;
                }
                // One that only a reference makes is removed.
                world.run(&episode("episode-0000-0001", "own", "user-ana")).await;
                plant(&world, "plant-99", "see episode-0000-0001 and nothing else").await;
                let before = world.texts("SELECT title FROM episodes WHERE id LIKE 'plant-%' ORDER BY id").await;
                let (plan, receipt) = world.purge("user-ana", &PurgeOptions::default()).await.expect("a receipt");
                assert_eq!(plan["counts"], receipt["counts"]);
                let mut after = world.texts("SELECT title FROM episodes WHERE id LIKE 'plant-%' ORDER BY id").await;
                assert_eq!(after.pop().as_deref(), Some("see [erased] and nothing else"), "{id}");
                assert_eq!(after, before[..40], "{id}");
            }
        }
    });
}

#[test]
fn an_id_without_digits_is_told_by_the_other_ids_of_its_table() {
    block_on(async {
        let world = native(60).await;
        let memory = world.texts("SELECT id FROM memories ORDER BY id LIMIT 1").await.remove(0);
        let metadata = r#"{"from":"ep_hpgxkvwq","of":["ep_hpgxkvwq","x"],"tag":"feedbacks"}"#;
        world
            .run(&format!(
                "INSERT INTO subjects (id, name) VALUES ('ana.made', 'Ana Made'); \
                 INSERT INTO episodes (id, user_id, title) VALUES ('ep_hpgxkvwq', 'ana.made', 'hers'), \
                 ('feedbacks', 'ana.made', 'hers too'); \
                 UPDATE memories SET user_id = 'keeper-a', metadata = '{metadata}' WHERE id = '{memory}'"
            ))
            .await;
        world.purge("ana.made", &everything()).await.expect("a receipt");
        let left = world.texts(&format!("SELECT metadata FROM memories WHERE id = '{memory}'")).await;
        assert_eq!(left, [r#"{"from":null,"of":["x"],"tag":"feedbacks"}"#]);
    });
}

#[test]
fn a_run_that_an_episode_of_somebody_else_names_too_is_told() {
    block_on(async {
        let world = native(20).await;
        world
            .run(
                "INSERT INTO subjects (id, name) VALUES ('ann-1', 'Ann Lee Prieto'); \
                 INSERT INTO episodes (id, user_id, title, status, execution_ids) VALUES \
                 ('own', 'ann-1', 'hers', 'success', '[\"run-ann-77\"]'), \
                 ('theirs', 'keeper-a', 'a note', 'success', '[\"run-0\", \"run-ann-77\"]'); \
                 INSERT INTO workflow_events (id, run_id, kind) VALUES ('we-1', 'run-ann-77', 'STEP_STARTED')",
            )
            .await;
        held(&world, "keeper-a").await;
        let refused = world.purge("ann-1", &everything()).await;
        assert!(matches!(&refused, Err(ChangeError::Refused(why)) if why.contains("legal hold")), "{refused:?}");
        released(&world, "keeper-a").await;
        let (plan, _) = world.purge("ann-1", &everything()).await.expect("a receipt");
        let told = "workflow_events: 1 row of episodes that stays also refers to rows to be deleted";
        assert!(plan["effects"].to_string().contains(told), "{plan:#}");
    });
}

#[test]
fn a_link_of_somebody_elses_episode_to_a_memory_that_goes_is_told() {
    block_on(async {
        let world = native(20).await;
        world
            .run(
                "INSERT INTO subjects (id, name) VALUES ('ann-1', 'Ann Lee Prieto'); \
                 INSERT INTO episodes (id, user_id, title, status) VALUES ('theirs', 'keeper-a', 'a note', 'success'); \
                 INSERT INTO memories (id, user_id, text) VALUES ('own', 'ann-1', 'hers'); \
                 INSERT INTO episode_memories (episode_id, memory_id) VALUES ('theirs', 'own')",
            )
            .await;
        let (plan, receipt) = world.purge("ann-1", &everything()).await.expect("a receipt");
        let told = "episode_memories: 1 row to be deleted also belongs to rows of episodes that stay";
        for told_in in [&plan, &receipt] {
            assert!(told_in["effects"].to_string().contains(told), "{told_in:#}");
        }
    });
}

#[test]
fn a_trigger_that_touches_its_own_row_lets_an_erasure_pass() {
    block_on(async {
        let world = native(20).await;
        world
            .run(
                "CREATE TRIGGER touched AFTER UPDATE ON memories BEGIN \
                 UPDATE memories SET updated_at = '2026-01-01T00:00:00Z' WHERE id = new.id; END; \
                 INSERT INTO subjects (id, name) VALUES ('ann-1', 'Ann Lee Prieto'); \
                 INSERT INTO memories (id, user_id, text) VALUES ('own', 'ann-1', 'hers'), ('m-9', 'keeper-a', 'ask Ann Lee Prieto')",
            )
            .await;
        let (_, receipt) = world.purge("ann-1", &everything()).await.expect("a receipt");
        assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
        assert_eq!(world.texts("SELECT text FROM memories WHERE id = 'm-9'").await, ["ask [erased]"]);
    });
}

#[test]
fn a_number_of_many_digits_is_found_whatever_type_holds_it() {
    block_on(async {
        for world in worlds().await {
            world
                .run(
                    "CREATE TABLE calls (id integer PRIMARY KEY, peer double precision, line bigint, note text); \
                     INSERT INTO calls (id, peer) VALUES (1, 442079460025), (2, 442079460026), (3, 0.25); \
                     INSERT INTO calls (id, line) VALUES (4, 442079460025), (5, 442079460026); \
                     INSERT INTO calls (id, note) VALUES (6, '{\"p\": 442079460025.0}'), (7, '{\"p\": 442079460025.5}')",
                )
                .await;
            let aliases = vec!["+44 20 7946 0025".to_owned()];
            let options = PurgeOptions { aliases, ..everything() };
            let (_, receipt) = world.purge("user-ana", &options).await.expect("a receipt");
            assert!(receipt["status"].as_str().is_some_and(|status| status.starts_with("verified")), "{receipt:#}");
            let told = receipt["disclosures"].to_string();
            for column in ["line", "note", "peer"] {
                let wanted = format!("calls.{column} is outside the layout: 1 value names the person");
                assert!(told.contains(&wanted), "{receipt:#}");
            }
        }
    });
}

#[test]
fn what_the_trail_kept_of_rows_with_short_ids_goes_with_them() {
    block_on(async {
        what_the_trail_kept_goes("id TEXT NOT NULL PRIMARY KEY").await;
        // The table's key need not be what rows are named by.
        what_the_trail_kept_goes("number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE").await;
    });
}

async fn what_the_trail_kept_goes(key: &str) {
    let world = native(20).await;
    let made = world.texts("SELECT sql FROM sqlite_master WHERE name = 'agent_feedback'").await.remove(0);
    let columns = made.replacen("id TEXT NOT NULL PRIMARY KEY", key, 1);
    assert!(columns.contains(key), "{made}");
    world.run(&format!("DROP TABLE agent_feedback; {columns}")).await;
    world
        .run(
            "INSERT INTO subjects (id, name) VALUES ('ana.short', 'Ana Short'); \
                 INSERT INTO agent_feedback (id, user_id, kind, correction) VALUES \
                 ('1', 'ana.short', 'thumbs_down', 'hers alone'), ('2', 'keeper-a', 'thumbs_down', 'of a keeper')",
        )
        .await;
    let words = FeedbackFields { correction: Some("another".to_owned()), ..FeedbackFields::default() };
    let store = world.open().await;
    for id in ["1", "2"] {
        change::plan_and_apply(&store, &author(), || feedback::edit(&store, id, &words, None)).await.expect("an edit");
    }
    let kept =
        |words: &str| format!("SELECT field FROM memory_audit_private WHERE value LIKE '%{words}%' ORDER BY field");
    assert_eq!(world.texts(&kept("hers alone")).await, ["changes", "undo"]);
    // A table has no order: what an entry keeps need not be together.
    world
            .run(
                "CREATE TABLE turned AS SELECT * FROM memory_audit_private ORDER BY field DESC, seq; \
                 DELETE FROM memory_audit_private; INSERT INTO memory_audit_private SELECT * FROM turned; DROP TABLE turned",
            )
            .await;
    let (_, receipt) = world.purge("ana.short", &everything()).await.expect("a receipt");
    assert_eq!(receipt["status"], "verified");
    assert!(world.texts(&kept("hers alone")).await.is_empty());
    assert_eq!(world.texts(&kept("of a keeper")).await, ["changes", "undo"], "others keep theirs");
}

#[test]
fn what_the_trail_kept_of_rows_of_a_person_with_a_short_id_goes_with_them() {
    block_on(async {
        for person in ["alice", "u_17", "1042"] {
            let world = native(20).await;
            let ids = world.texts("SELECT id FROM memories ORDER BY id LIMIT 2").await;
            world
                .run(&format!(
                    "INSERT INTO subjects (id) VALUES ('{person}'); \
                     UPDATE memories SET user_id = '{person}', text = 'hers alone' WHERE id = '{}'; \
                     UPDATE memories SET user_id = 'keeper-a', text = 'of a keeper' WHERE id = '{}'",
                    ids[0], ids[1]
                ))
                .await;
            let store = world.open().await;
            let (set, none) =
                (|column: &str, text: &str| Map::from_iter([(column.to_owned(), json!(text))]), Map::new());
            for (id, fields) in [
                (&ids[0], set("title", "noted")),
                (&ids[0], set("user_id", "keeper-b")),
                (&ids[1], set("text", "of a keeper too")),
            ] {
                let plan = || edit::edit(&store, Entity::Memory, id, &fields, &none);
                change::plan_and_apply(&store, &author(), plan).await.expect("an edit");
            }
            change::plan_and_apply(&store, &author(), || hold::hold(&store, person, None, "officer"))
                .await
                .expect("held");
            change::plan_and_apply(&store, &author(), || hold::unhold(&store, person)).await.expect("no longer held");
            world.purge(person, &everything()).await.expect("a receipt");
            let kept = |words: &str| format!("memory_audit_private WHERE value LIKE '%{words}%'");
            assert_eq!(world.count(&kept(&format!("\"{person}\""))).await, 0, "{person}");
            assert_eq!(world.count(&kept("of a keeper")).await, 2, "others keep theirs");
        }
    });
}

#[test]
fn a_person_of_many_handles_is_erased_and_a_handle_without_end_is_refused() {
    block_on(async {
        let world = native(20).await;
        let handles: Vec<String> = (0..600).map(|i| format!("ana.{i:03}@initech.example")).collect();
        let handles = serde_json::to_string(&handles).expect("a list");
        world
            .run(&format!(
                "INSERT INTO subjects (id, name, handles) VALUES ('ana.many', 'Ana Many', '{handles}'); \
                 INSERT INTO episodes (id, user_id, title) VALUES ('own', 'ana.many', 'hers'), \
                 ('other', 'keeper-a', 'write to ana.599@initech.example')"
            ))
            .await;
        world.purge("ana.many", &everything()).await.expect("a receipt");
        assert_eq!(world.texts("SELECT title FROM episodes WHERE id = 'other'").await, ["write to [erased]"]);
        let long = "a".repeat(10_000);
        world
            .run(&format!(
                "INSERT INTO subjects (id, name, handles) VALUES ('{long}', 'Bo Long', '[\"bo.long@initech.example\"]')"
            ))
            .await;
        let refused = world.purge("bo.long@initech.example", &everything()).await;
        assert!(matches!(refused, Err(ChangeError::Refused(_))), "{refused:?}");
    });
}

#[test]
fn mentions_in_a_long_table_are_found_to_its_last_row() {
    block_on(async {
        for world in worlds().await {
            let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 11000)";
            for (table, body) in
                [("plain", "'order ' || i || ' of bob'"), ("coded", r#"'{"a":"one\ntwo ' || i || '"}'"#)]
            {
                world.run(&format!("CREATE TABLE {table} (n INTEGER, body TEXT)")).await;
                world.run(&format!("INSERT INTO {table} {numbers} SELECT i, {body} FROM n")).await;
                for (row, text) in [
                    (1, "ask user-ana"),
                    (4_999, r#"{"a":"ask\nuser-ana"}"#),
                    (5_000, "ask ANA.RUIZ@initech.example"),
                    (5_001, "please ask Ana Ruiz… first"),
                    (11_000, "to YW5hLnJ1aXpAaW5pdGVjaC5leGFtcGxl"),
                ] {
                    world.run(&format!("UPDATE {table} SET body = '{text}' WHERE n = {row}")).await;
                }
            }
            let plan = purge::plan(&world.open().await, "user-ana", &PurgeOptions::default(), &|_, _| {}).await;
            let mentioned = plan.expect("a plan").mentioned;
            assert_eq!(
                (mentioned.get("plain.body"), mentioned.get("coded.body")),
                (Some(&5), Some(&5)),
                "{mentioned:?}"
            );
        }
    });
}
