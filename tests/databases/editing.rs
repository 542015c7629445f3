//! Any row edited, removed, recorded, superseded: what follows from it is right, and an undo brings every byte back. On both
//! engines.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;

use mnemoscope::change::operation::Pruning;
use mnemoscope::change::{self, ChangeError, Operation, Plan, Receipt, feedback, undo};
use mnemoscope::memory::prune::PruneWindow;
use mnemoscope::memory::query::Query;
use mnemoscope::memory::retention::RetentionRules;
use mnemoscope::memory::{Entity, Row};
use mnemoscope::store::{Store, StoreError, Target};
use serde_json::{Map, Value, json};

use crate::support::fixtures::Layout;
use crate::support::world::*;

/// Runs a test on one thread: what it looks at need not leave it.
fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

async fn planned(world: &World, operation: &Operation) -> Result<Plan, ChangeError> {
    change::plan(&world.store, operation, &author()).await
}

fn edit(entity: Entity, id: &str, set: Value) -> Operation {
    let Value::Object(set) = set else { panic!("not an object: {set}") };
    Operation::Edit { entity, id: id.to_owned(), set, instead_of: Map::new() }
}

fn remove(entity: Entity, ids: &[String]) -> Operation {
    Operation::Remove { entity, ids: ids.to_vec() }
}

async fn row(world: &World, entity: Entity, id: &str) -> Option<Row> {
    world.store.row(entity, id).await.expect("an answer")
}

/// Every row but those of the application's own trail, which stay when a change is undone.
async fn rows_of(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut rows = dump(world).await;
    rows.remove("agent_memory_audit");
    rows
}

/// Applies, looks, undoes: the database is to the byte what it was.
async fn there_and_back(world: &World, operation: &Operation, look: impl Future<Output = ()>) {
    let before = rows_of(world).await;
    let plan = planned(world, operation).await;
    let receipt = done(world, plan).await;
    assert_ne!(rows_of(world).await, before, "{operation:?}");
    look.await;
    if receipt.undo.is_some() {
        done(world, undo::undo(&world.store, receipt.audit_seq.expect("a number")).await).await;
        assert_eq!(rows_of(world).await, before, "{operation:?}");
    }
    assert_sound(world).await;
}

/// A new value for a column of a row, where there is an ordinary one.
fn another(column: &str, row: &Row) -> Option<Value> {
    Some(match (column, row.get(column)) {
        ("title" | "text" | "content" | "summary" | "name" | "component_name", Value::String(old)) => {
            json!(format!("{old} (edited)"))
        }
        ("text" | "title" | "name", Value::Null) => json!("new words"),
        ("prompt", Value::Object(old)) if old.contains_key("message") => json!({"message": "quite another question"}),
        ("window_size", _) => json!(77),
        _ => return None,
    })
}

#[test]
fn rows_of_every_kind_are_edited_and_undone_to_the_byte() {
    block_on(async {
        for world in worlds().await {
            let mut tried = Vec::new();
            for entity in Entity::ALL {
                let Ok(page) = world.store.page(&Query { limit: 40, ..Query::new(*entity) }).await else { continue };
                for row_before in page.rows.iter().filter(|row| row.problems.is_empty() && !row.id().is_empty()) {
                    let mut columns = entity.columns().iter().map(|column| column.name);
                    let set = columns.find_map(|c| Some((c, another(c, row_before)?)));
                    let Some((column, value)) = set else { continue };
                    let (seen, id) = (row(&world, *entity, row_before.id()).await, row_before.id().to_owned());
                    let seen = seen.map(|row| row.to_json()).and_then(|row| row.as_object().cloned());
                    let set = json!({ column: value }).as_object().expect("an object").clone();
                    let instead_of = seen.unwrap_or_default();
                    let operation = Operation::Edit { entity: *entity, id, set, instead_of };
                    match planned(&world, &operation).await {
                        // A person may be known by other people's rows only.
                        Err(ChangeError::Refused(_) | ChangeError::Store(_) | ChangeError::NotFound(_)) => continue,
                        Err(error) => panic!("{operation:?}: {error}"),
                        Ok(_) => {}
                    }
                    there_and_back(&world, &operation, async {
                        let now = row(&world, *entity, row_before.id()).await.expect("the row");
                        assert_eq!(*now.get(column), value, "{operation:?}");
                        let again = planned(&world, &operation).await;
                        assert!(matches!(again, Err(ChangeError::Conflict { .. })), "it was changed since: {again:?}");
                    })
                    .await;
                    tried.push(*entity);
                    break;
                }
            }
            assert!(tried.contains(&Entity::Episode) && tried.len() >= 2, "{tried:?}");
        }
    });
}

#[test]
fn ids_by_which_a_row_names_others_are_edited() {
    block_on(async {
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let id = ids(&world, Entity::Episode).await.remove(0);
            let plan = planned(&world, &edit(Entity::Episode, &id, json!({"execution_ids": ["x1"]}))).await;
            assert!(plan.is_ok(), "{plan:?}");
        }
    });
}

#[test]
fn values_that_name_nobody_are_told_by_the_plan_and_words_that_are_none_are_refused() {
    block_on(async {
        for world in worlds().await {
            let id = ids(&world, Entity::Episode).await.remove(0);
            let known = row(&world, Entity::Episode, &id).await.expect("the row");
            let told = |set: Value| edit(Entity::Episode, &id, set);
            let plan = planned(&world, &told(json!({"agent_id": "agent-nobody"}))).await;
            let disclosures = plan.expect("a plan").disclosures.join("; ");
            assert!(disclosures.contains("`agent_id` refers to a missing agent: agent-nobody"), "{disclosures}");
            for (column, known) in
                [("outcome", "known are success, failure"), ("status", "known are active, summarized")]
            {
                let plan = planned(&world, &told(json!({ column: "banana" }))).await;
                assert!(
                    matches!(&plan, Err(ChangeError::Usage(words)) if words.contains("`banana`") && words.contains(known)),
                    "{plan:?}"
                );
            }
            let plan = planned(&world, &told(json!({ "outcome": null }))).await;
            assert!(!matches!(plan, Err(ChangeError::Usage(_))), "{plan:?}");
            let other = if known.text("outcome") == Some("success") { "partial" } else { "success" };
            let plan = planned(&world, &told(json!({ "outcome": other }))).await.expect("a plan");
            assert!(!plan.disclosures.iter().any(|words| words.contains("outcome")), "{:?}", plan.disclosures);
        }
    });
}

#[test]
fn rows_of_every_kind_are_removed_with_what_hangs_on_them_and_undone_to_the_byte() {
    block_on(async {
        for world in worlds().await {
            let mut tried = Vec::new();
            for entity in Entity::ALL {
                let Ok(page) = world.store.page(&Query { limit: 12, ..Query::new(*entity) }).await else { continue };
                let ids: Vec<String> =
                    page.rows.iter().map(|row| row.id().to_owned()).filter(|id| !id.is_empty()).collect();
                // Three, or one where there are fewer or three do not go together.
                for count in [3, 1] {
                    let Some(ids) = ids.get(..count) else { continue };
                    let operation = remove(*entity, ids);
                    match planned(&world, &operation).await {
                        Err(ChangeError::Refused(_) | ChangeError::Store(_) | ChangeError::NotFound(_)) => continue,
                        Err(error) => panic!("{operation:?}: {error}"),
                        Ok(_) => {}
                    }
                    there_and_back(&world, &operation, async {
                        for id in ids {
                            assert_eq!(row(&world, *entity, id).await, None, "{operation:?}");
                        }
                    })
                    .await;
                    tried.push(*entity);
                    break;
                }
            }
            assert!(tried.contains(&Entity::Episode) && tried.contains(&Entity::Feedback), "{tried:?}");
        }
    });
}

#[test]
fn rows_that_refer_to_each_other_go_at_once_and_come_back() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            // A chain of 60 in which each begins before its parent, so that no order of ids is an order of parents.
            let rows: Vec<String> = (0..60)
                .map(|n| {
                    let parent = if n < 59 { format!("'link-{}'", (n + 23) % 60) } else { "NULL".to_owned() };
                    format!("('link-{n}', 'ann', {parent})")
                })
                .collect();
            meddle(&world, &format!("INSERT INTO episodes (id, user_id, parent_id) VALUES {}", rows.join(", "))).await;
            if !matches!(world.target, Target::File(_)) {
                meddle(&world, "UPDATE episodes SET parent_id = NULL WHERE id NOT LIKE 'link-%'").await;
                meddle(&world, "ALTER TABLE episodes ADD FOREIGN KEY (parent_id) REFERENCES episodes (id)").await;
            }
            let ids: Vec<String> = (0..60).map(|n| format!("link-{n}")).collect();
            there_and_back(&world, &remove(Entity::Episode, &ids), async {
                assert_eq!(row(&world, Entity::Episode, "link-30").await, None);
            })
            .await;
        }
    });
}

#[test]
fn no_layout_asks_the_engine_what_it_cannot_answer_when_rows_are_to_go() {
    block_on(async {
        let mut all = Vec::new();
        // A palace is never written.
        for layout in Layout::ON_SQLITE.iter().filter(|layout| **layout != Layout::Mempalace) {
            all.push(on_sqlite(*layout).await);
        }
        for layout in Layout::ON_POSTGRES.iter().filter(|layout| !layout.needs_vector()) {
            all.extend(on_postgres(*layout).await);
        }
        let mut planned_for = 0;
        for world in all {
            for entity in Entity::ALL {
                let Ok(page) = world.store.page(&Query { limit: 3, ..Query::new(*entity) }).await else { continue };
                for row in page.rows.iter().filter(|row| !row.id().is_empty()) {
                    match planned(&world, &remove(*entity, &[row.id().to_owned()])).await {
                        Err(ChangeError::Store(StoreError::Engine(error))) => panic!("{entity} {}: {error}", row.id()),
                        outcome => planned_for += usize::from(outcome.is_ok()),
                    }
                }
            }
        }
        assert!(planned_for > 20, "{planned_for}");
    });
}

#[test]
fn nothing_dangles_when_an_episode_or_feedback_goes() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO episodes (id, agent_id, user_id, title, parent_id, started_at) VALUES \
                 ('gone', 'a', 'u', 'x', NULL, '2026-03-01T10:00:00.000000Z'), \
                 ('child', 'a', 'u', 'y', 'gone', '2026-03-02T10:00:00.000000Z'); \
                 INSERT INTO episode_segments (id, episode_id, sequence, kind, content) VALUES ('s', 'gone', 1, 'message', 'x'); \
                 INSERT INTO memories (id, kind, text, uses, utility) VALUES ('used', 'drawer', 'x', 2, 0.5); \
                 INSERT INTO episode_memories (episode_id, memory_id) VALUES ('gone', 'used'), ('child', 'used'); \
                 INSERT INTO agent_feedback (id, episode_id, user_id, kind) VALUES ('f-1', 'child', 'u', 'thumbs_up'), \
                 ('f-2', 'child', 'u', 'thumbs_down'), ('f-3', 'child', 'u', 'thumbs_down'); \
                 UPDATE episodes SET feedback_ids = '[\"f-1\", \"f-2\", \"f-3\"]', feedback_score = -0.3333333333333333 \
                 WHERE id = 'child'",
            )
            .await;
            let store = &world.store;
            there_and_back(&world, &remove(Entity::Episode, &["gone".to_owned()]), async {
                assert_eq!(store.related(Entity::Segment, "episode_id", &["gone".to_owned()]).await.unwrap(), []);
                let child = row(&world, Entity::Episode, "child").await.expect("the child");
                assert!(child.get("parent_id").is_null());
                let memory = row(&world, Entity::Memory, "used").await.expect("the memory");
                assert_eq!(memory.get("uses"), &json!(1));
            })
            .await;
            let two = ["f-2".to_owned(), "f-3".to_owned()];
            there_and_back(&world, &remove(Entity::Feedback, &two), async {
                let child = row(&world, Entity::Episode, "child").await.expect("the child");
                assert_eq!((child.list("feedback_ids"), child.number("feedback_score")), (vec!["f-1"], Some(1.0)));
            })
            .await;
        }
    });
}

#[test]
fn memories_that_very_many_episodes_used_have_the_utility_of_the_latest_that_stay() {
    block_on(async {
        for world in natives().await {
            let episode = |n: u32| {
                let (day, utility) = (n * 5 % 28 + 1, f64::from(n * 37 % 101) / 100.0);
                format!("('used-{n}', 'a', 'u', 'x', '2026-03-{day:02}T10:00:00.000000Z', {utility})")
            };
            let episodes: Vec<String> = (0..5_000).map(episode).collect();
            meddle(
                &world,
                &format!(
                    "INSERT INTO episodes (id, agent_id, user_id, title, started_at, utility) VALUES {}; \
                     INSERT INTO memories (id, kind, text, uses, utility) VALUES ('core-0', 'drawer', 'x', 1, 0.5), \
                     ('core-1', 'drawer', 'y', 1, 0.5); \
                     INSERT INTO episode_memories (episode_id, memory_id) SELECT e.id, m.id FROM episodes e, memories m \
                     WHERE e.id LIKE 'used-%' AND (m.id = 'core-0' OR m.id = 'core-1' AND e.utility < 0.5)",
                    episodes.join(", ")
                ),
            )
            .await;
            let latest = |below: &str| {
                format!(
                    "SELECT id FROM episodes WHERE id LIKE 'used-%' AND utility < {below} \
                     ORDER BY started_at DESC, utility DESC LIMIT 2"
                )
            };
            let mut gone = texts(&world, &latest("2")).await;
            gone.extend(texts(&world, &latest("0.5")).await);
            done(&world, planned(&world, &remove(Entity::Episode, &gone)).await).await;
            let uses = "SELECT CAST(uses AS TEXT) FROM memories WHERE id LIKE 'core-%' ORDER BY id";
            let linked = "SELECT CAST(count(*) AS TEXT) FROM episode_memories WHERE memory_id LIKE 'core-%' \
                 GROUP BY memory_id ORDER BY memory_id";
            assert_eq!(texts(&world, uses).await, texts(&world, linked).await);
            let right = "SELECT m.id FROM memories m WHERE m.id LIKE 'core-%' AND abs(m.utility - \
                 (SELECT avg(latest.utility) FROM (SELECT e.utility FROM episode_memories l \
                 JOIN episodes e ON e.id = l.episode_id WHERE l.memory_id = m.id \
                 ORDER BY e.started_at DESC, e.utility DESC LIMIT 20) latest)) < 0.000001 ORDER BY m.id";
            assert_eq!(texts(&world, right).await, ["core-0", "core-1"]);
        }
    });
}

#[test]
fn what_follows_from_other_columns_is_made_again_or_refused() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO episodes (id, agent_id, user_id, title, started_at, ended_at, duration_seconds) VALUES \
                 ('timed', 'a', 'u', 'x', '2026-03-01T10:00:00.000000Z', '2026-03-01T10:01:00.000000Z', 60); \
                 INSERT INTO agent_memory_cases (id, user_id, agent_id, message_hash, prompt, reward) VALUES \
                 ('case', 'u', 'a', 'old', '{\"message\": \"one\"}', 0.5)",
            )
            .await;
            let later = json!({"ended_at": "2026-03-01T10:02:00Z"});
            there_and_back(&world, &edit(Entity::Episode, "timed", later), async {
                let episode = row(&world, Entity::Episode, "timed").await.expect("the episode");
                assert_eq!(episode.number("duration_seconds"), Some(120.0));
            })
            .await;
            let before = row(&world, Entity::Case, "case").await.expect("the case");
            let prompt = json!({"prompt": {"message": "two"}});
            there_and_back(&world, &edit(Entity::Case, "case", prompt), async {
                let case = row(&world, Entity::Case, "case").await.expect("the case");
                assert_ne!(case.get("message_hash"), before.get("message_hash"));
            })
            .await;
            let refused = |operation: Operation| {
                let world = &world;
                async move { matches!(planned(world, &operation).await, Err(ChangeError::Refused(_))) }
            };
            assert!(refused(edit(Entity::Episode, "timed", json!({"utility": 0.9}))).await);
            assert!(refused(edit(Entity::Episode, "timed", json!({"id": "other"}))).await);
            assert!(refused(edit(Entity::Case, "case", json!({"message_hash": "x"}))).await);
            assert!(refused(remove(Entity::Subject, &["u".to_owned()])).await);
            let missing = planned(&world, &edit(Entity::Episode, "nobody", json!({"title": "x"}))).await;
            assert!(matches!(missing, Err(ChangeError::NotFound(_))), "{missing:?}");
            let backwards =
                planned(&world, &edit(Entity::Episode, "timed", json!({"ended_at": "2026-02-01T00:00:00Z"}))).await;
            assert!(matches!(backwards, Err(ChangeError::Usage(_))), "{backwards:?}");
        }
    });
}

async fn has_vector(store: &Store, entity: Entity, id: &String) -> bool {
    !store.embeddings().vectors(entity, std::slice::from_ref(id)).await.expect("vectors").is_empty()
}

#[test]
fn a_vector_that_no_longer_fits_its_text_goes() {
    block_on(async {
        let world = small().await;
        let store = &world.store;
        let ids = ids(&world, Entity::Episode).await;
        let with = store.embeddings().vectors(Entity::Episode, &ids).await.expect("vectors");
        let id = ids.iter().find(|id| with.contains_key(*id)).expect("an episode with a vector").clone();
        there_and_back(&world, &edit(Entity::Episode, &id, json!({"summary": "about something else"})), async {
            assert!(!has_vector(store, Entity::Episode, &id).await);
        })
        .await;
        there_and_back(&world, &edit(Entity::Episode, &id, json!({"confidence": 0.123})), async {
            assert!(has_vector(store, Entity::Episode, &id).await);
        })
        .await;
        // A case that goes takes its vector along, and references to it.
        let cases = self::ids(&world, Entity::Case).await;
        let with = store.embeddings().vectors(Entity::Case, &cases).await.expect("vectors");
        let case = cases.iter().find(|id| with.contains_key(*id)).expect("a case with a vector").clone();
        there_and_back(&world, &remove(Entity::Case, std::slice::from_ref(&case)), async {
            assert!(!has_vector(store, Entity::Case, &case).await);
            let naming =
                store.related(Entity::Case, "reference_case_ids", std::slice::from_ref(&case)).await.expect("cases");
            assert_eq!(naming, []);
        })
        .await;
    });
}

#[test]
fn a_superseded_memory_stays_marked_and_linked() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let fact = "INSERT INTO memories (id, kind, text, metadata) VALUES ('fact', 'fact', 'lives in Kiel', \
                        '{\"n\": 12345678901234567890.5}')";
            meddle(&world, fact).await;
            let operation = Operation::Supersede { memory: "fact".to_owned(), text: "lives in Bonn".to_owned() };
            there_and_back(&world, &operation, async {
                let old = row(&world, Entity::Memory, "fact").await.expect("the old one");
                assert_eq!(old.text("text"), Some("lives in Kiel"));
                let next = old.get("metadata")["superseded_by"].as_str().expect("a link").to_owned();
                let new = row(&world, Entity::Memory, &next).await.expect("the new one");
                assert_eq!((new.text("text"), new.text("kind")), (Some("lives in Bonn"), Some("fact")));
                assert_eq!(new.get("metadata")["supersedes"], "fact");
                let exact =
                    |row: &String| ["12345678901234567890.5", "3839302E35"].iter().any(|part| row.contains(part));
                let rows = rows_of(&world).await.into_values().flatten();
                assert_eq!(rows.filter(exact).count(), 2, "{old:?} {new:?}");
                let again = planned(&world, &operation).await;
                assert!(matches!(again, Err(ChangeError::Refused(_))), "{again:?}");
                let by = |text: &str| Operation::Supersede { memory: next.clone(), text: text.to_owned() };
                let circle = planned(&world, &by("fact")).await;
                assert!(matches!(circle, Err(ChangeError::Refused(_))), "{circle:?}");
                let itself = planned(&world, &by(&next)).await;
                assert!(matches!(itself, Err(ChangeError::Usage(_))), "{itself:?}");
            })
            .await;
        }
    });
}

#[test]
fn what_superseded_a_memory_hands_its_place_on_when_it_goes() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let pinned =
                "INSERT INTO memories (id, kind, text, status) VALUES ('fact', 'fact', 'lives in Kiel', 'pinned')";
            meddle(&world, pinned).await;
            let mut ids = vec!["fact".to_owned()];
            for text in ["lives in Bonn", "lives in Trier"] {
                let memory = ids.last().expect("one").clone();
                let next =
                    planned(&world, &Operation::Supersede { memory: memory.clone(), text: text.to_owned() }).await;
                done(&world, next).await;
                let old = row(&world, Entity::Memory, &memory).await.expect("the old one");
                ids.push(old.get("metadata")["superseded_by"].as_str().expect("a link").to_owned());
            }
            let unnoted = "UPDATE memories SET metadata = '{\"superseded_by\": \"NEXT\"}' WHERE id = 'fact'";
            for (before, by, status) in
                [("", Some(&ids[2]), "superseded"), ("", None, "pinned"), (unnoted, None, "active")]
            {
                meddle(
                    &world,
                    &format!(
                        "UPDATE memories SET status = 'archived' WHERE id = '{}'; {}",
                        ids[2],
                        before.replace("NEXT", &ids[1])
                    ),
                )
                .await;
                let gone = if by.is_some() { &ids[1..2] } else { &ids[1..] };
                there_and_back(&world, &remove(Entity::Memory, gone), async {
                    let first = row(&world, Entity::Memory, "fact").await.expect("the first one");
                    let metadata = first.get("metadata");
                    assert_eq!(metadata["superseded_by"].as_str(), by.map(String::as_str), "{first:?}");
                    assert_eq!(first.text("status"), Some(status), "{first:?}");
                    assert_eq!(metadata.get("status_before").is_some(), by.is_some(), "{first:?}");
                })
                .await;
            }
        }
    });
}

#[test]
fn a_reference_that_is_no_id_keeps_no_row_from_being_changed() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let folder = tempfile::TempDir::new().expect("a folder");
            let odd = "x".repeat(1_200);
            meddle(
                &world,
                &format!(
                    "INSERT INTO agent_feedback (id, episode_id, kind, rating, created_at) VALUES \
                         ('f-blank', '', 'rating', 3, '2001-01-01T00:00:00.000000Z'), \
                         ('f-odd', '{odd}', 'rating', 3, '2001-01-01T00:00:00.000000Z'); \
                     INSERT INTO canvas_audit (id, episode_id, created_at) VALUES \
                         ('e-blank', ' ', '2001-01-01T00:00:00.000000Z'); \
                     INSERT INTO utility_events (id, episode_id, signal, created_at) VALUES \
                         ('s-blank', '', 'used', '2001-01-01T00:00:00.000000Z')"
                ),
            )
            .await;
            let database = address(&world);
            for words in [
                &["feedback", "remove", "f-blank"][..],
                &["signal", "retract", "s-blank"],
                &["remove", "feedback", "f-odd"],
            ] {
                let (code, _, said) = run(folder.path(), &[&["-d", &database], words, &["--apply"]].concat());
                assert_eq!(code, Some(0), "{words:?}: {said}");
            }
            let rules = folder.path().join("rules.toml");
            let rule = "share = 1.0\n[[rule]]\nentity = \"canvas_event\"\nolder_than = \"9000d\"\n";
            std::fs::write(&rules, rule).expect("rules");
            let arguments = ["-d", &database, "retain", rules.to_str().expect("a path"), "--apply"];
            let (code, _, said) = run(folder.path(), &arguments);
            assert_eq!(code, Some(0), "{said}");
            assert!(row(&world, Entity::CanvasEvent, "e-blank").await.is_none());
        }
    });
}

#[test]
fn rows_that_can_only_be_read_keep_no_place_in_a_plan_of_retention() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let folder = tempfile::TempDir::new().expect("a folder");
            let notes: Vec<String> =
                (0..2_600).map(|n| format!("('a{n:05}', 'a note', '2001-01-01T00:00:00.000000Z')")).collect();
            meddle(
                &world,
                &format!(
                    "CREATE TABLE old_notes (id TEXT PRIMARY KEY, body TEXT, made TEXT); \
                     INSERT INTO old_notes VALUES {}; \
                     INSERT INTO memories (id, kind, title, created_at) VALUES \
                         ('zz-old', 'fact', 'a', '2001-01-01T00:00:00.000000Z')",
                    notes.join(", ")
                ),
            )
            .await;
            let layout = folder.path().join("notes.toml");
            let columns = "[memory.columns]\nid = \"id\"\ntext = \"body\"\ncreated_at = \"made\"\n";
            let source = format!("requires = [\"old_notes\"]\n[[memory]]\ntable = \"old_notes\"\n{columns}");
            std::fs::write(&layout, format!("name = \"notes\"\ntitle = \"Notes\"\n{source}")).expect("a layout");
            let rules = folder.path().join("rules.toml");
            let rule = "share = 1.0\n[[rule]]\nentity = \"memory\"\nolder_than = \"9000d\"\n";
            std::fs::write(&rules, rule).expect("rules");
            let (database, layout) = (address(&world), layout.display().to_string());
            let layouts = ["-d", &database, "--layout", &layout, "--layout", "mnemoscope"];
            let arguments = [&layouts[..], &["retain", rules.to_str().expect("a path"), "--apply"]].concat();
            let (code, receipt, said) = run(folder.path(), &arguments);
            assert_eq!(code, Some(0), "{said}");
            assert!(row(&world, Entity::Memory, "zz-old").await.is_none(), "{receipt:#}");
            let words = receipt["disclosures"].to_string();
            assert!(words.contains("2,600 overdue rows of memory stay: the layout can only read them"), "{words}");
        }
    });
}

#[test]
fn a_line_of_memories_that_goes_leaves_those_at_its_ends_linked() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let member = |id: &str, by: Option<&str>, of: Option<&str>| {
                let links = json!({"superseded_by": by, "supersedes": of});
                let status = if by.is_some() { "superseded" } else { "active" };
                format!("('{id}', 'fact', '{id}', '{status}', '{links}')")
            };
            // Two lines, and a circle.
            let rows = [
                member("a-1", Some("a-2"), None),
                member("a-2", Some("a-3"), Some("a-1")),
                member("a-3", Some("a-4"), Some("a-2")),
                member("a-4", None, Some("a-3")),
                member("b-1", Some("b-2"), None),
                member("b-2", Some("b-3"), Some("b-1")),
                member("b-3", None, Some("b-2")),
                member("c-1", Some("c-2"), Some("c-2")),
                member("c-2", Some("c-1"), Some("c-1")),
            ];
            let all = format!("INSERT INTO memories (id, kind, text, status, metadata) VALUES {}", rows.join(", "));
            meddle(&world, &all).await;
            let gone = ["a-2", "a-3", "b-1", "b-2", "c-1", "c-2"].map(str::to_owned);
            there_and_back(&world, &remove(Entity::Memory, &gone), async {
                for (id, by, of) in [("a-1", Some("a-4"), None), ("a-4", None, Some("a-1")), ("b-3", None, None)] {
                    let memory = row(&world, Entity::Memory, id).await.expect("a memory that stays");
                    let link = |name: &str| memory.get("metadata")[name].as_str();
                    assert_eq!((link("superseded_by"), link("supersedes")), (by, of), "{id}");
                }
            })
            .await;
        }
    });
}

#[test]
fn a_memory_that_a_held_person_used_stays_among_however_many() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            // More than a plan tells.
            let ids: Vec<String> = (0..300).map(|n| format!("many-{n:03}")).collect();
            let rows: Vec<String> = ids.iter().map(|id| format!("('{id}', 'fact', 'a')")).collect();
            let sql = format!(
                "INSERT INTO memories (id, kind, text) VALUES {}; \
                 INSERT INTO episodes (id, user_id, title) VALUES ('h-ep', 'held', 'x'); \
                 INSERT INTO episode_memories (episode_id, memory_id) VALUES ('h-ep', 'many-290')",
                rows.join(", ")
            );
            meddle(&world, &sql).await;
            let kept = planned(&world, &remove(Entity::Memory, &ids)).await.expect("a plan");
            done(&world, planned(&world, &Operation::Hold { person: "held".to_owned(), reason: None }).await).await;
            let plan = planned(&world, &remove(Entity::Memory, &ids)).await;
            assert!(matches!(&plan, Err(ChangeError::Refused(words)) if words.contains("legal hold")), "{plan:?}");
            let applied = change::apply(&world.store, &kept, &author()).await;
            assert!(
                matches!(&applied, Err(ChangeError::Conflict { message, .. }) if message.contains("legal hold")),
                "{applied:?}"
            );
            done(&world, planned(&world, &remove(Entity::Memory, &ids[..290])).await).await;
        }
    });
}

#[test]
fn a_plan_is_refused_where_a_row_that_goes_was_named_since() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let rows = "INSERT INTO episodes (id, title) VALUES ('e-goes', 'a'); \
                 INSERT INTO memory_access (id, ids) VALUES ('a-known', '[\"e-goes\"]')";
            meddle(&world, rows).await;
            let plan = planned(&world, &remove(Entity::Episode, &["e-goes".to_owned()])).await.expect("a plan");
            meddle(&world, "INSERT INTO memory_access (id, ids) VALUES ('a-late', '[\"e-goes\"]')").await;
            let refused = change::apply(&world.store, &plan, &author()).await;
            assert!(
                matches!(&refused, Err(ChangeError::Conflict { rows, .. }) if rows[0].contains("a-late")),
                "{refused:?}"
            );
            let again = planned(&world, &remove(Entity::Episode, &["e-goes".to_owned()])).await;
            done(&world, again).await;
            let named = texts(&world, "SELECT CAST(ids AS TEXT) FROM memory_access WHERE id LIKE 'a-%'").await;
            assert_eq!(named, ["[]", "[]"]);
            let memories = "INSERT INTO memories (id, kind, text, created_at) VALUES \
                 ('m-stays', 'fact', 'a', '2025-01-01T00:00:00.000000Z'), ('m-goes', 'fact', 'a', '2001-01-01T00:00:00.000000Z')";
            meddle(&world, memories).await;
            let merge = Operation::Merge { memory: "m-stays".to_owned(), copies: vec!["m-goes".to_owned()] };
            let retain = rules("share = 1.0\n[[rule]]\nentity = \"memory\"\nolder_than = \"9000d\"");
            for operation in [merge, retain] {
                let plan = planned(&world, &operation).await.expect("a plan");
                for late in [
                    "memory_access (id, ids) VALUES ('z', '[\"m-goes\"]')",
                    "episode_memories (episode_id, memory_id) VALUES ('z', 'm-goes')",
                ] {
                    meddle(&world, &format!("INSERT INTO {late}")).await;
                    let refused = change::apply(&world.store, &plan, &author()).await;
                    assert!(matches!(refused, Err(ChangeError::Conflict { .. })), "{operation:?} {late}: {refused:?}");
                    meddle(
                        &world,
                        "DELETE FROM memory_access WHERE id = 'z'; DELETE FROM episode_memories WHERE episode_id = 'z'",
                    )
                    .await;
                }
            }
        }
    });
}

#[test]
fn rows_of_other_kinds_are_recorded_once() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let episode = some_episode(&world).await;
            let events = world.store.contexts().episode(&episode).await.unwrap().unwrap().canvas.len();
            for (entity, given) in [
                (Entity::Memory, json!({"kind": "fact", "text": "a new fact", "id": "me-new"})),
                (Entity::Segment, json!({"episode_id": episode, "sequence": 9, "kind": "message", "content": "hello"})),
                (
                    Entity::CanvasEvent,
                    json!({"id": "cv-new", "episode_id": episode, "canvas_type": "sheets", "action": "present"}),
                ),
                (Entity::Agent, json!({"id": "agent-new", "name": "Nora"})),
                (
                    Entity::MemoryLink,
                    json!({"episode_id": episode, "memory_id": ids(&world, Entity::Memory).await[0], "rank": 9}),
                ),
                (Entity::Feedback, json!({"episode_id": episode, "kind": "rating", "rating": 5, "user_id": "u-9"})),
            ] {
                let operation = Operation::Record { entity, text: given.to_string() };
                if entity == Entity::MemoryLink && planned(&world, &operation).await.is_err() {
                    continue;
                }
                there_and_back(&world, &operation, async {
                    if entity == Entity::CanvasEvent {
                        let context = world.store.contexts().episode(&episode).await.unwrap().unwrap();
                        assert_eq!(context.canvas.len(), events + 1);
                        assert_eq!(context.episode.get("canvas_action_count"), &json!(events + 1));
                        assert!(context.episode.list("canvas_ids").contains(&"cv-new"));
                    }
                    if entity == Entity::Feedback {
                        assert_mean(&world, &episode).await;
                    }
                    if given["id"].is_string() || entity == Entity::Memory {
                        let again = planned(&world, &operation).await;
                        assert!(matches!(again, Err(ChangeError::Refused(_))), "{again:?}");
                    }
                })
                .await;
            }
            for (entity, given) in [
                (Entity::UtilityEvent, json!({})),
                (Entity::Policy, json!({})),
                (Entity::Segment, json!({"colour": 1})),
            ] {
                let refused = planned(&world, &Operation::Record { entity, text: given.to_string() }).await;
                assert!(matches!(refused, Err(ChangeError::Refused(_) | ChangeError::Usage(_))), "{refused:?}");
            }
        }
    });
}

#[test]
fn what_no_other_command_takes_is_not_recorded() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('p-one', 'u-one', 'a-one'), \
                 ('p-two', 'u-two', 'a-one')",
            )
            .await;
            let before = rows_of(&world).await;
            let at = "2026-05-01T00:00:00Z";
            let bank = json!({"user_id": "u-one", "agent_id": "a-one"});
            for (entity, given, by_hand, words) in [
                (Entity::Episode, json!({"title": "t", "started_at": at, "utility": 3}), false, "must be from 0 to 1"),
                (
                    Entity::Episode,
                    json!({"title": "t", "started_at": at, "outcome": "weird"}),
                    false,
                    "known are success",
                ),
                (
                    Entity::Episode,
                    json!({"title": "t", "started_at": at, "status": "weird"}),
                    false,
                    "known are active",
                ),
                (Entity::Case, json!({"prompt": "hi", "profile_id": "p-one", "outcome": "weird"}), false, "known are"),
                (Entity::Memory, json!({"text": "t", "utility": -0.9}), false, "must be from 0 to 1"),
                (Entity::Memory, json!({}), false, "needs one of `text`, `title`, `metadata`"),
                (Entity::Segment, json!({}), false, "needs `episode_id`"),
                (Entity::CanvasEvent, json!({}), false, "a canvas event needs one of `canvas_id`"),
                (Entity::WorkflowEvent, json!({"run_id": "r"}), false, "a workflow event needs `kind`"),
                (Entity::Access, json!({}), false, "an access needs one of `query`, `ids`"),
                (Entity::MemoryLink, json!({"memory_id": "m"}), false, "needs `episode_id`"),
                (Entity::Agent, json!({}), false, "an agent needs one of `id`, `name`"),
                (Entity::Profile, json!({"user_id": "u-one"}), false, "a profile needs `agent_id`"),
                (Entity::Profile, bank, true, "already exists: `p-one`"),
            ] {
                let refused = planned(&world, &Operation::Record { entity, text: given.to_string() }).await;
                let told = match &refused {
                    Err(ChangeError::Refused(told)) if by_hand => told,
                    Err(ChangeError::Usage(told)) if !by_hand => told,
                    _ => panic!("{entity} {given}: {refused:?}"),
                };
                assert!(told.contains(words), "{entity} {given}: {told}");
            }
            let moved = planned(&world, &edit(Entity::Profile, "p-two", json!({"user_id": "u-one"}))).await;
            assert!(matches!(&moved, Err(ChangeError::Refused(told)) if told.contains("`p-one`")), "{moved:?}");
            assert_eq!(rows_of(&world).await, before);
            let record = |id: &str| {
                let text = json!({"id": id, "user_id": "u-one", "agent_id": "a-two"}).to_string();
                Operation::Record { entity: Entity::Profile, text }
            };
            let late = planned(&world, &record("p-four")).await.expect("a plan");
            there_and_back(&world, &record("p-three"), async {
                let applied = change::apply(&world.store, &late, &author()).await;
                assert!(matches!(applied, Err(ChangeError::Conflict { .. })), "the bank was made since: {applied:?}");
            })
            .await;
        }
    });
}

#[test]
fn an_edit_does_not_empty_what_a_new_row_needs() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('p-full', 'u-one', 'a-one'), \
                 ('p-bare', 'u-two', NULL); \
                 INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, prompt, created_at) VALUES \
                 ('c-full', 'p-full', 'u-one', 'a-one', '{\"message\": \"hi\"}', '2026-01-01T00:00:00.000000Z'); \
                 INSERT INTO memories (id, kind, title, text) VALUES ('m-full', 'fact', 't', 'x'), ('m-bare', 'fact', NULL, NULL); \
                 INSERT INTO episodes (id, agent_id, title, started_at) VALUES ('e-full', 'a-one', 't', '2026-01-01T00:00:00.000000Z')",
            )
            .await;
            let before = rows_of(&world).await;
            for (entity, id, set, words) in [
                (Entity::Profile, "p-full", json!({"agent_id": null}), "a profile needs `agent_id`"),
                (Entity::Profile, "p-full", json!({"user_id": " "}), "a profile needs `user_id`"),
                (Entity::Memory, "m-full", json!({"text": null, "title": ""}), "a memory needs one of `text`, `title`"),
                (Entity::Case, "c-full", json!({"prompt": null}), "a case needs `prompt`"),
                (Entity::Episode, "e-full", json!({"title": ""}), "an episode needs one of `title`"),
                (Entity::Episode, "e-full", json!({"started_at": null}), "an episode needs `started_at`"),
            ] {
                let refused = planned(&world, &edit(entity, id, set.clone())).await;
                assert!(
                    matches!(&refused, Err(ChangeError::Usage(told)) if told.contains(words)),
                    "{set}: {refused:?}"
                );
            }
            assert_eq!(rows_of(&world).await, before);
            for (entity, id, set) in [
                (Entity::Memory, "m-full", json!({"title": null})),
                (Entity::Memory, "m-bare", json!({"kind": "note"})),
                (Entity::Profile, "p-bare", json!({"window_size": 7})),
            ] {
                there_and_back(&world, &edit(entity, id, set), async {}).await;
            }
        }
    });
}

#[test]
fn what_belongs_to_a_person_under_a_hold_stays() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES ('h-ep', 'a', 'held', 'x', '2026-01-01T00:00:00.000000Z'), \
                 ('f-ep', 'a', 'free', 'x', '2026-01-01T00:00:00.000000Z'); \
                 INSERT INTO episode_segments (id, episode_id, content, created_at) VALUES ('h-seg', 'h-ep', 'x', '2001-01-01T00:00:00.000000Z'), \
                 ('f-seg', NULL, 'x', '2001-01-01T00:00:00.000000Z'); \
                 INSERT INTO agent_feedback (id, episode_id, user_id, kind) VALUES ('h-fb', 'h-ep', 'another', 'thumbs_up'); \
                 INSERT INTO utility_events (id, episode_id, signal, delta, \"before\", \"after\") VALUES ('h-sig', 'h-ep', 'approved', 0.1, 0.5, 0.6); \
                 INSERT INTO memories (id, kind, text, user_id) VALUES ('h-m', 'fact', 'a', 'held'), ('h-used', 'fact', 'a', NULL); \
                 INSERT INTO episode_memories (episode_id, memory_id) VALUES ('h-ep', 'h-used'); \
                 UPDATE episodes SET execution_ids = '[\"h-run\"]' WHERE id = 'h-ep'; \
                 INSERT INTO workflow_events (id, run_id, sequence, kind, created_at) VALUES \
                 ('h-ev', 'h-run', 1, 'x', '2001-01-01T00:00:00.000000Z'), ('f-ev', 'f-run', 1, 'x', '2001-01-01T00:00:00.000000Z'); \
                 INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('h-b', 'held', 'a'), ('f-b', 'free', 'a'); \
                 INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES \
                 ('h-c1', 'h-b', 'held', 'a', '2026-01-01T00:00:00.000000Z'), ('h-c2', 'h-b', 'held', 'a', '2026-01-02T00:00:00.000000Z'), \
                 ('f-c1', 'f-b', 'free', 'a', '2026-01-01T00:00:00.000000Z'), ('f-c2', 'f-b', 'free', 'a', '2026-01-02T00:00:00.000000Z')",
            )
            .await;
            done(&world, planned(&world, &Operation::Hold { person: "held".to_owned(), reason: None }).await).await;
            let one = |entity, id: &str| remove(entity, &[id.to_owned()]);
            let of_held =
                Pruning { user: Some("held".to_owned()), window: PruneWindow::Newest(1), ..Pruning::default() };
            for refused in [
                one(Entity::Episode, "h-ep"),
                one(Entity::Segment, "h-seg"),
                one(Entity::Feedback, "h-fb"),
                one(Entity::UtilityEvent, "h-sig"),
                one(Entity::Memory, "h-m"),
                one(Entity::Memory, "h-used"),
                one(Entity::WorkflowEvent, "h-ev"),
                one(Entity::Case, "h-c1"),
                Operation::Retract { id: "h-sig".to_owned() },
                edit(Entity::Memory, "h-m", json!({"user_id": "another"})),
                edit(Entity::Segment, "h-seg", json!({"episode_id": "f-ep"})),
                Operation::Prune(of_held),
            ] {
                let plan = planned(&world, &refused).await;
                assert!(
                    matches!(&plan, Err(ChangeError::Refused(words)) if words.contains("legal hold")),
                    "{refused:?} {plan:?}"
                );
            }
            planned(&world, &edit(Entity::Memory, "h-m", json!({"text": "b"}))).await.expect("it may be corrected");
            let all = Pruning { window: PruneWindow::Newest(1), ..Pruning::default() };
            let receipt = done(&world, planned(&world, &Operation::Prune(all)).await).await;
            assert!(
                receipt.disclosures.iter().any(|words| words.contains("2 cases stay")),
                "{:?}",
                receipt.disclosures
            );
            let trail = Query { limit: 500, ..Query::new(Entity::AuditEntry) };
            let trail = world.store.page(&trail).await.expect("the agents' trail").rows;
            let windows: Vec<&Value> = trail.iter().map(|row| &row.get("payload")["windowSize"]).collect();
            assert!(windows.contains(&&json!(1)), "the window that was applied: {windows:?}");
            let old = rules("share = 1.0\n[[rule]]\nentity = \"segment\"\nolder_than = \"9000d\"");
            done(&world, planned(&world, &old).await).await;
            let old = rules("share = 1.0\n[[rule]]\nentity = \"workflow_event\"\nolder_than = \"9000d\"");
            done(&world, planned(&world, &old).await).await;
            for (entity, id, stays) in [
                (Entity::Case, "h-c1", true),
                (Entity::Case, "f-c1", false),
                (Entity::Segment, "h-seg", true),
                (Entity::Segment, "f-seg", false),
                (Entity::WorkflowEvent, "h-ev", true),
                (Entity::WorkflowEvent, "f-ev", false),
            ] {
                assert_eq!(row(&world, entity, id).await.is_some(), stays, "{id}");
            }
        }
    });
}

#[test]
fn a_hold_stops_what_was_planned_before_it() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES ('h-ep', 'a', 'held', 'x', '2026-01-01T00:00:00.000000Z'); \
                 INSERT INTO episode_segments (id, episode_id, content, created_at) VALUES ('h-seg', 'h-ep', 'x', '2001-01-01T00:00:00.000000Z'); \
                 INSERT INTO agent_feedback (id, episode_id, user_id, kind) VALUES ('h-fb', 'h-ep', 'another', 'thumbs_up'); \
                 INSERT INTO utility_events (id, episode_id, signal, delta, \"before\", \"after\") VALUES ('h-sig', 'h-ep', 'approved', 0.1, 0.5, 0.6); \
                 INSERT INTO memories (id, kind, text, user_id) VALUES ('h-m', 'fact', 'a', 'held'), ('h-n', 'fact', 'a', 'held'), \
                 ('h-used', 'fact', 'a', NULL); INSERT INTO episode_memories (episode_id, memory_id) VALUES ('h-ep', 'h-used'); \
                 UPDATE episodes SET execution_ids = '[\"h-run\"]' WHERE id = 'h-ep'; \
                 INSERT INTO workflow_events (id, run_id, sequence, kind) VALUES ('h-ev', 'h-run', 1, 'x'); \
                 INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('h-b', 'held', 'a'), ('f-b', 'free', 'b'); \
                 INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES \
                 ('h-c3', 'f-b', 'held', 'b', '2026-01-01T00:00:00.000000Z'), \
                 ('h-c1', 'h-b', 'held', 'a', '2026-01-01T00:00:00.000000Z'), ('h-c2', 'h-b', 'held', 'a', '2026-01-02T00:00:00.000000Z')",
            )
            .await;
            let case = json!({"prompt": "how", "outcome": "success", "user_id": "held", "agent_id": "a"}).to_string();
            let record = Operation::Record { entity: Entity::Case, text: case };
            let recorded = done(&world, planned(&world, &record).await).await;
            let rated = Operation::AddFeedback { episode: "h-ep".to_owned(), fields: said("thumbs_up", None, None) };
            let rated = done(&world, planned(&world, &rated).await).await;
            let undo = |receipt: &Receipt| Operation::Undo { seq: receipt.audit_seq.expect("an entry") };
            let one = |entity, id: &str| remove(entity, &[id.to_owned()]);
            let oldest =
                Pruning { window: PruneWindow::Newest(1), user: Some("held".to_owned()), ..Pruning::default() };
            let operations = [
                one(Entity::Episode, "h-ep"),
                // What depends on it is the held person's.
                one(Entity::Profile, "f-b"),
                one(Entity::Segment, "h-seg"),
                one(Entity::Memory, "h-m"),
                one(Entity::Memory, "h-used"),
                one(Entity::WorkflowEvent, "h-ev"),
                one(Entity::Case, "h-c1"),
                Operation::Retract { id: "h-sig".to_owned() },
                Operation::Merge { memory: "h-m".to_owned(), copies: vec!["h-n".to_owned()] },
                edit(Entity::Memory, "h-m", json!({"user_id": "another"})),
                Operation::Prune(oldest),
                rules("share = 1.0\n[[rule]]\nentity = \"segment\"\nolder_than = \"9000d\""),
                undo(&recorded),
                undo(&rated),
            ];
            let mut kept = Vec::new();
            for operation in &operations {
                kept.push(planned(&world, operation).await.unwrap_or_else(|error| panic!("{operation:?}: {error}")));
            }
            done(&world, planned(&world, &Operation::Hold { person: "held".to_owned(), reason: None }).await).await;
            let before = rows_of(&world).await;
            for (plan, operation) in kept.iter().zip(&operations) {
                let applied = change::apply(&world.store, plan, &author()).await;
                assert!(
                    matches!(&applied, Err(ChangeError::Conflict { message, .. }) if message.contains("legal hold")),
                    "{operation:?} {applied:?}"
                );
                let again = planned(&world, operation).await;
                let stays = matches!(operation, Operation::Retain { .. }) && again.as_ref().is_ok_and(Plan::is_empty);
                assert!(
                    stays || matches!(&again, Err(ChangeError::Refused(words)) if words.contains("legal hold")),
                    "{operation:?} {again:?}"
                );
            }
            assert_eq!(rows_of(&world).await, before);
            done(&world, planned(&world, &Operation::Unhold { person: "held".to_owned() }).await).await;
            done(&world, Ok(kept.remove(0))).await;
            assert!(row(&world, Entity::Episode, "h-ep").await.is_none());
        }
    });
}

#[test]
fn what_is_nested_deeply_is_kept_in_a_plan_and_undone() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            for depth in [127, 128, 400] {
                let id = format!("deep-{depth}");
                let nested = format!("{}\"end\"{}", "{\"a\":[".repeat(depth / 2), "]}".repeat(depth / 2));
                meddle(
                    &world,
                    &format!(
                        "INSERT INTO memories (id, kind, text, metadata) VALUES ('{id}', 'fact', 'a', '{nested}')"
                    ),
                )
                .await;
                let plan = planned(&world, &remove(Entity::Memory, std::slice::from_ref(&id))).await.expect("a plan");
                let kept = Plan::from_file(&serde_json::to_string(&plan).expect("JSON")).expect("as it was kept");
                assert_eq!(kept, plan);
                let receipt = done(&world, Ok(kept)).await;
                let undo = undo::undo(&world.store, receipt.audit_seq.expect("an entry")).await.expect("a plan");
                assert_eq!((undo.changes.len(), &undo.changes[0].after), (1, &plan.changes[0].before));
                done(&world, Ok(undo)).await;
                assert!(row(&world, Entity::Memory, &id).await.is_some());
            }
        }
    });
}

#[test]
fn a_receipt_says_what_a_trigger_made_of_what_was_written() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let triggers = match world.target {
                Target::File(_) => {
                    "CREATE TRIGGER bends AFTER UPDATE ON memories WHEN new.text = 'asked' BEGIN \
                       UPDATE memories SET text = 'bent' WHERE id = new.id; END; \
                     CREATE TRIGGER swallows AFTER INSERT ON agent_feedback WHEN new.correction = 'gone' BEGIN \
                       DELETE FROM agent_feedback WHERE id = new.id; END; \
                     CREATE TRIGGER returns AFTER DELETE ON memories WHEN old.id = 'm-2' BEGIN \
                       INSERT INTO memories (id, kind, text) VALUES (old.id, 'fact', 'b'); END"
                }
                Target::Postgres(_) => {
                    "CREATE FUNCTION bend() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF new.text = 'asked' THEN \
                       new.text = 'bent'; END IF; RETURN new; END $$; \
                     CREATE TRIGGER bends BEFORE UPDATE ON memories FOR EACH ROW EXECUTE FUNCTION bend(); \
                     CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                       DELETE FROM agent_feedback WHERE id = new.id AND new.correction = 'gone'; RETURN NULL; END $$; \
                     CREATE TRIGGER swallows AFTER INSERT ON agent_feedback FOR EACH ROW EXECUTE FUNCTION swallow(); \
                     CREATE FUNCTION bring() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF old.id = 'm-2' THEN \
                       INSERT INTO memories (id, kind, text) VALUES (old.id, 'fact', 'b'); END IF; RETURN NULL; END $$; \
                     CREATE TRIGGER returns AFTER DELETE ON memories FOR EACH ROW EXECUTE FUNCTION bring()"
                }
            };
            meddle(&world, &format!("INSERT INTO memories (id, kind, text) VALUES ('m-1', 'fact', 'a'), ('m-2', 'fact', 'b'); {triggers}"))
                .await;
            let other = |words: &str| edit(Entity::Memory, "m-1", json!({"text": words}));
            let receipt = done(&world, planned(&world, &other("kept")).await).await;
            assert!(receipt.disclosures.is_empty(), "{:?}", receipt.disclosures);
            let applied = async |plan: Result<Plan, ChangeError>| {
                change::apply(&world.store, &plan.expect("a plan"), &author()).await.expect("applied")
            };
            let receipt = applied(planned(&world, &other("asked")).await).await;
            assert_eq!(row(&world, Entity::Memory, "m-1").await.expect("it").text("text"), Some("bent"));
            let told = |receipt: &Receipt, words: &str| {
                assert!(receipt.disclosures.iter().any(|said| said.starts_with(words)), "{:?}", receipt.disclosures);
            };
            told(&receipt, "1 value of memories.text is not what was written");
            meddle(&world, "UPDATE memories SET importance = 0.5, metadata = '{}' WHERE id = 'm-1'").await;
            let keeps = match world.target {
                Target::File(_) => {
                    "CREATE TRIGGER keeps AFTER UPDATE ON memories WHEN old.importance = 0.5 BEGIN \
                       UPDATE memories SET importance = 0.5, metadata = '{}' WHERE id = new.id; END"
                }
                Target::Postgres(_) => {
                    "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.importance = old.importance; \
                       new.metadata = old.metadata; RETURN new; END $$; \
                     CREATE TRIGGER keeps BEFORE UPDATE ON memories FOR EACH ROW EXECUTE FUNCTION keep()"
                }
            };
            meddle(&world, keeps).await;
            let number = edit(Entity::Memory, "m-1", json!({"importance": 0.3, "metadata": {"a": 1}}));
            let receipt = applied(planned(&world, &number).await).await;
            told(&receipt, "1 value of memories.importance is not what was written");
            told(&receipt, "1 value of memories.metadata is not what was written");
            let episode = some_episode(&world).await;
            let gone = feedback::add(&world.store, &episode, &said("thumbs_up", None, Some("gone"))).await;
            told(&applied(gone).await, "1 row of agent_feedback was written and deleted again");
            let back = planned(&world, &remove(Entity::Memory, &["m-2".to_owned()])).await;
            told(&applied(back).await, "1 row of memories was deleted and restored");
            if matches!(world.target, Target::Postgres(_)) {
                let deferred = "INSERT INTO memories (id, kind, text) VALUES ('m-3', 'fact', 'c'); \
                     CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                       INSERT INTO memories SELECT old.*; RETURN NULL; END $$; \
                     CREATE CONSTRAINT TRIGGER again AFTER DELETE ON memories DEFERRABLE INITIALLY DEFERRED \
                       FOR EACH ROW EXECUTE FUNCTION again()";
                meddle(&world, deferred).await;
                let back = planned(&world, &remove(Entity::Memory, &["m-3".to_owned()])).await;
                told(&applied(back).await, "1 row of memories was deleted and restored");
            }
        }
    });
}

#[test]
fn an_undo_says_which_times_a_trigger_set_again() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let (time, trigger) = match world.target {
                Target::File(_) => (
                    "TEXT",
                    "CREATE TRIGGER marks AFTER UPDATE ON memories BEGIN UPDATE memories SET \
                       changed_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = new.id; END; \
                     CREATE TRIGGER kindly AFTER UPDATE OF text ON memories WHEN new.seen_at IS old.seen_at BEGIN \
                       UPDATE memories SET seen_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = new.id; END",
                ),
                Target::Postgres(_) => (
                    "timestamptz",
                    "CREATE FUNCTION mark() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN new.changed_at = now(); \
                       IF new.seen_at = old.seen_at THEN new.seen_at = now(); END IF; RETURN new; END $$; \
                     CREATE TRIGGER marks BEFORE UPDATE ON memories FOR EACH ROW EXECUTE FUNCTION mark()",
                ),
            };
            let table = format!(
                "ALTER TABLE memories ADD COLUMN changed_at {time}; ALTER TABLE memories ADD COLUMN seen_at {time}; \
                 INSERT INTO memories (id, kind, text, changed_at, seen_at) VALUES \
                   ('m-1', 'fact', 'a', '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z'); {trigger}"
            );
            meddle(&world, &table).await;
            let store = open(&world.target).await;
            let change = edit(Entity::Memory, "m-1", json!({"text": "b"}));
            let plan = change::plan(&store, &change, &author()).await.expect("a plan");
            let receipt = change::apply(&store, &plan, &author()).await.expect("applied");
            let back = undo::undo(&store, receipt.audit_seq.expect("an entry")).await.expect("an undo");
            let receipt = change::apply(&store, &back, &author()).await.expect("undone");
            let told = "1 value of memories.changed_at is not what was written: changed by a trigger or a rule of the database";
            assert_eq!(receipt.disclosures, [told]);
            let restored = "SELECT text || ' ' || substr(CAST(seen_at AS TEXT), 1, 10) FROM memories WHERE id = 'm-1'";
            assert_eq!(texts(&world, restored).await, ["a 2026-01-01"], "what the trigger lets be comes back");
        }
    });
}

/// Rows that a search index finds by a word, which must hold what its table holds.
async fn found_by(world: &World, word: &str) -> i64 {
    meddle(world, "INSERT INTO words (words, rank) VALUES ('integrity-check', 1)").await;
    let Target::File(path) = &world.target else { panic!("a search index of SQLite") };
    let query = sqlx::query_scalar("SELECT count(*) FROM words WHERE words MATCH $1").bind(word.to_owned());
    query.fetch_one(&mut sqlite(path).await).await.expect("a number")
}

#[test]
fn a_search_index_over_another_table_stays_true_whatever_its_triggers_do() {
    block_on(async {
        let into = "INSERT INTO words (rowid, text) VALUES (new.rowid, new.text); END;";
        let inserted = format!("CREATE TRIGGER comes AFTER INSERT ON memories BEGIN {into}");
        let named = "INSERT INTO words (words, rowid, text) VALUES ('delete', old.rowid, old.text);";
        let late = "DELETE FROM words WHERE rowid = old.rowid;";
        let right = format!(
            "{inserted} CREATE TRIGGER goes AFTER DELETE ON memories BEGIN {named} END; \
             CREATE TRIGGER moves AFTER UPDATE OF text ON memories BEGIN {named} {into}"
        );
        // A deletion after the change reads the new words, and would leave the old ones.
        let wrong = format!(
            "{inserted} CREATE TRIGGER goes AFTER DELETE ON memories BEGIN {late} END; \
             CREATE TRIGGER moves AFTER UPDATE ON memories BEGIN {late} {into}"
        );
        let conditional = format!(
            "{inserted} CREATE TRIGGER goes AFTER DELETE ON memories WHEN old.kind <> 'fact' BEGIN {named} END; \
             CREATE TRIGGER moves AFTER UPDATE ON memories WHEN old.kind <> new.kind BEGIN {named} {into}"
        );
        let of_another = named.replace("words (words", "words_too (words_too");
        let another = format!(
            "CREATE VIRTUAL TABLE words_too USING fts5 (text, content = 'memories'); \
             INSERT INTO words_too (words_too) VALUES ('rebuild'); \
             {inserted} CREATE TRIGGER goes AFTER DELETE ON memories BEGIN {of_another} {late} END; \
             CREATE TRIGGER moves AFTER UPDATE ON memories BEGIN {of_another} {late} {into}"
        );
        let cases = [(String::new(), true), (wrong, true), (conditional, true), (another, true), (right, false)];
        for (triggers, is_rebuilt) in cases {
            let world = small().await;
            let table = "INSERT INTO memories (id, kind, text) VALUES ('m-1', 'fact', 'takes methadone'); \
                 CREATE VIRTUAL TABLE words USING fts5 (text, content = 'memories'); \
                 INSERT INTO words (words) VALUES ('rebuild');";
            meddle(&world, &format!("{table} {triggers}")).await;
            let told = |receipt: &Receipt| {
                let words = "the search index words was rebuilt";
                assert_eq!(receipt.disclosures.iter().any(|said| said.starts_with(words)), is_rebuilt, "{receipt:?}");
            };
            let undone = async |receipt: &Receipt| {
                let seq = receipt.audit_seq.expect("a number");
                done(&world, undo::undo(&world.store, seq).await).await
            };
            let edited = planned(&world, &edit(Entity::Memory, "m-1", json!({"text": "likes walks"}))).await;
            let edited = done(&world, edited).await;
            told(&edited);
            assert_eq!((found_by(&world, "methadone").await, found_by(&world, "walks").await), (0, 1));
            told(&undone(&edited).await);
            assert_eq!((found_by(&world, "methadone").await, found_by(&world, "walks").await), (1, 0));
            let removed = done(&world, planned(&world, &remove(Entity::Memory, &["m-1".to_owned()])).await).await;
            told(&removed);
            assert_eq!(found_by(&world, "methadone").await, 0);
            undone(&removed).await;
            assert_eq!(found_by(&world, "methadone").await, 1);
            // What the index does not hold is no reason to make it again.
            let another = planned(&world, &edit(Entity::Memory, "m-1", json!({"importance": 0.5}))).await;
            let another = done(&world, another).await;
            assert!(another.disclosures.is_empty(), "{:?}", another.disclosures);
            // An index that leaves rows out is not filled with them.
            if triggers.is_empty() {
                // As many are in it as the table has: one of them is gone. Another index reads a missing column.
                let kept_out = "INSERT INTO memories (id, kind, text) VALUES ('m-8', 'fact', 'gone'), ('m-9', 'fact', 'kept out'); \
                     INSERT INTO words (rowid, text) SELECT rowid, text FROM memories WHERE id = 'm-8'; \
                     DELETE FROM memories WHERE id = 'm-8'; \
                     CREATE VIRTUAL TABLE wide USING fts5 (text, more, content = 'memories'); \
                     INSERT INTO wide (rowid, text) SELECT rowid, text FROM memories";
                meddle(&world, kept_out).await;
                let edited = planned(&world, &edit(Entity::Memory, "m-1", json!({"text": "likes tea"}))).await;
                let edited = done(&world, edited).await;
                for index in ["words", "wide"] {
                    let words = format!("the search index {index} may still find the earlier words");
                    assert!(edited.disclosures.iter().any(|said| said.starts_with(&words)), "{:?}", edited.disclosures);
                }
                let Target::File(path) = &world.target else { panic!("a search index of SQLite") };
                let rows = "SELECT (SELECT count(*) FROM wide_docsize) = (SELECT count(*) FROM memories)";
                assert!(sqlx::query_scalar::<_, bool>(rows).fetch_one(&mut sqlite(path).await).await.unwrap());
            }
        }
    });
}

fn rules(text: &str) -> Operation {
    Operation::Retain { file: "retention.toml".to_owned(), rules: RetentionRules::parse(text).expect("rules") }
}

#[test]
fn what_an_episode_or_a_case_used_is_not_unused_and_what_nobody_can_know_is_refused() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let (old, late) = ("2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z");
            meddle(
                &world,
                &format!(
                    "INSERT INTO memories (id, kind, text, created_at) VALUES ('m-idle', 'fact', 'a', '{old}'), \
                     ('m-linked', 'fact', 'b', '{old}'); \
                     INSERT INTO agent_memory_cases (id, message_hash, reference_case_ids, created_at) VALUES \
                     ('c-idle', 'h1', '[]', '{old}'), ('c-linked', 'h2', '[]', '{old}'), ('c-named', 'h3', '[]', '{old}'), \
                     ('c-late', 'h4', '[\"c-named\"]', '{late}'); \
                     INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES ('e-late', 'a', 'u', 'x', '{late}'); \
                     INSERT INTO episode_memories (episode_id, memory_id) VALUES ('e-late', 'm-linked'), ('e-late', 'c-linked')"
                ),
            )
            .await;
            let unused =
                |entity: &str| rules(&format!("share = 1.0\n[[rule]]\nentity = \"{entity}\"\nunused_for = \"3000d\""));
            for (entity, idle, used) in
                [("memory", "m-idle", &["m-linked"][..]), ("case", "c-idle", &["c-linked", "c-named"][..])]
            {
                let plan = planned(&world, &unused(entity)).await.expect("a plan");
                let gone: Vec<&str> = plan.changes.iter().map(|change| change.id.as_str()).collect();
                assert!(gone.contains(&idle) && used.iter().all(|id| !gone.contains(id)), "{entity}: {gone:?}");
            }
            let refused = async |entity: &str, words: &str| {
                let refused = planned(&world, &unused(entity)).await;
                assert!(
                    matches!(&refused, Err(ChangeError::Refused(why)) if why.contains(words)),
                    "{entity}: {refused:?}"
                );
            };
            meddle(
                &world,
                &format!(
                    "DELETE FROM memory_access; \
                     INSERT INTO memory_access (id, kind, ids, created_at) VALUES ('ac-1', 'cases', '[]', '{late}')"
                ),
            )
            .await;
            refused("case", "not which rows they returned").await;
            meddle(&world, "DELETE FROM memory_access; DELETE FROM episode_memories").await;
            refused("memory", "nothing here records").await;
        }
    });
}

#[test]
fn a_row_whose_time_or_use_is_unknown_is_kept_and_told() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let unread = if matches!(world.target, Target::File(_)) { "'1770800000'" } else { "NULL" };
            let old = "2001-01-01T00:00:00.000000Z";
            meddle(
                &world,
                &format!(
                    "DELETE FROM memory_access; DELETE FROM memories; \
                     INSERT INTO memories (id, kind, text, agent_id, created_at) VALUES ('m-0', 'fact', 'a', 'bot', {unread}), \
                     ('m-1', 'fact', 'b', 'bot', '{old}'), ('m-2', 'fact', 'c', 'bot', '2002-01-01T00:00:00.000000Z'); \
                     INSERT INTO memory_access (id, kind, ids, created_at) VALUES ('ac-1', 'memories', '[\"m-1\"]', {unread}), \
                     ('ac-2', 'memories', '[\"m-9\"]', '{old}')"
                ),
            )
            .await;
            for (rule, expected, undated) in [
                ("keep = 1", vec!["m-1"], "1 row of memories stays"),
                ("keep = 2", vec![], "1 row of memories stays"),
                ("older_than = \"3000d\"", vec!["m-1", "m-2"], "1 row of memories stays"),
                // It may have been used yesterday.
                ("unused_for = \"3000d\"", vec!["m-2"], "2 rows of memories stay"),
            ] {
                let rule = format!("share = 1.0\n[[rule]]\nentity = \"memory\"\n{rule}");
                let plan = planned(&world, &rules(&rule)).await.expect("a plan");
                let memories = plan.changes.iter().filter(|change| change.entity == "memory");
                let gone: Vec<&str> = memories.map(|change| change.id.as_str()).collect();
                assert_eq!(gone, expected, "{rule}");
                let undated = undated.replace("memories", &Entity::Memory.title());
                assert!(
                    plan.disclosures.iter().any(|told| told.starts_with(&undated)),
                    "{rule}: {:?}",
                    plan.disclosures
                );
            }
        }
    });
}

#[test]
fn a_new_row_is_not_unused_and_neither_a_placeholder_an_age_nor_nobody_an_owner() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let (old, new) = ("2001-01-01T00:00:00.000000Z", change::now());
            let row = |id: &str, owner: &str, at: &str, expires: &str| {
                format!("('{id}', 'fact', 'x', {owner}, '{at}', {expires})")
            };
            let rows = [
                // Learned today from an old episode.
                row("m-new", "'bot'", &new, "'0001-01-01T00:00:00Z'"),
                row("m-old", "'bot'", old, "'2002-01-01T00:00:00Z'"),
                row("m-zero", "NULL", "1970-01-01T00:00:00Z", "'1970-01-01T00:00:00Z'"),
                row("m-mine", "NULL", old, "NULL"),
                row("m-yours", "NULL", "2002-01-01T00:00:00Z", "NULL"),
            ];
            meddle(
                &world,
                &format!(
                    "DELETE FROM memory_access; DELETE FROM memories; DELETE FROM episode_memories; \
                     INSERT INTO episodes (id, agent_id, user_id, title, started_at) VALUES ('e-old', 'a', 'u', 'x', '{old}'); \
                     INSERT INTO memories (id, kind, text, agent_id, created_at, expires_at) VALUES {}; \
                     INSERT INTO episode_memories (episode_id, memory_id) VALUES ('e-old', 'm-new'), ('e-old', 'm-old')",
                    rows.join(", ")
                ),
            )
            .await;
            for (rule, expected) in [
                ("unused_for = \"3000d\"", vec!["m-mine", "m-old", "m-yours"]),
                ("older_than = \"3000d\"", vec!["m-mine", "m-old", "m-yours"]),
                ("expired = true", vec!["m-old"]),
                ("keep = 1", vec!["m-old"]),
            ] {
                let rule = format!("share = 1.0\n[[rule]]\nentity = \"memory\"\n{rule}");
                let plan = planned(&world, &rules(&rule)).await.expect("a plan");
                let gone: BTreeSet<&str> = plan.changes.iter().map(|change| change.id.as_str()).collect();
                assert_eq!(gone, BTreeSet::from_iter(expected), "{rule}");
                let is_told = |words: &str| plan.disclosures.iter().any(|told| told.contains(words));
                assert_eq!(is_told("neither user nor agent"), rule.contains("keep"), "{:?}", plan.disclosures);
            }
            for age in ["older_than = \"0d\"", "unused_for = \"0s\""] {
                let refused = planned(&world, &rules(&format!("[[rule]]\nentity = \"memory\"\n{age}"))).await;
                assert!(matches!(&refused, Err(ChangeError::Usage(why)) if why.contains("mistake")), "{refused:?}");
            }
        }
    });
}

#[test]
fn a_bank_without_a_row_does_not_keep_the_others_from_being_pruned() {
    block_on(async {
        let Some(world) = on_postgres(Layout::EnnubeJson).await else { return };
        meddle(
            &world,
            "ALTER TABLE agent_memory_cases DROP CONSTRAINT agent_memory_cases_profile_id_fkey; \
             DELETE FROM agent_memory_profiles WHERE id = 'aaaaaaaa-0000-4000-8000-000000000002'",
        )
        .await;
        let store = open(&world.target).await;
        let rules = Pruning { window: PruneWindow::Newest(1), ..Pruning::default() };
        let plan = change::plan(&store, &Operation::Prune(rules), &author()).await.expect("a plan");
        let stays = "bank aaaaaaaa-0000-4000-8000-000000000002, which has no row of its own: 1 case stays";
        assert!(plan.disclosures.iter().any(|told| told.starts_with(stays)), "{:?}", plan.disclosures);
        let receipt = change::apply(&store, &plan, &author()).await.expect("applied");
        assert_eq!(receipt.counts["agent_memory_cases"]["delete"], 3);
    });
}

#[test]
fn the_log_of_a_run_that_has_not_ended_stays() {
    block_on(async {
        for world in
            [Some(on_sqlite(Layout::Pyworkflow).await), on_postgres(Layout::Pyworkflow).await].into_iter().flatten()
        {
            let events = async |id: &str| {
                let sql = format!("SELECT CAST(count(*) AS text) FROM events WHERE run_id = '{id}'");
                texts(&world, &sql).await.remove(0)
            };
            let event = |run: &str, n: u8| {
                format!("('{run}-{n}', '{run}', {}, 'step.completed', '2001-01-01T00:00:00+00:00', '{{}}')", 100 + n)
            };
            meddle(
                &world,
                &format!(
                    "INSERT INTO events (event_id, run_id, sequence, type, timestamp, data) VALUES {}, {}",
                    event("run_waiting", 1),
                    event("run_failed", 1)
                ),
            )
            .await;
            let (waiting, failed) = (events("run_waiting").await, events("run_failed").await);
            let rule = "share = 1.0\n[[rule]]\nentity = \"workflow_event\"\nolder_than = \"7000d\"";
            let plan = planned(&world, &rules(rule)).await.expect("a plan");
            assert!(plan.disclosures.iter().any(|told| told.contains("not ended")), "{:?}", plan.disclosures);
            done(&world, Ok(plan)).await;
            assert_eq!(events("run_waiting").await, waiting);
            assert_ne!(events("run_failed").await, failed);
        }
    });
}

#[test]
fn what_was_used_since_it_was_planned_does_not_go_as_unused() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let old = "2001-01-01T00:00:00.000000Z";
            meddle(
                &world,
                &format!(
                    "INSERT INTO memories (id, kind, text, created_at) VALUES ('m-idle', 'fact', 'a', '{old}'); \
                     INSERT INTO agent_memory_cases (id, message_hash, created_at) VALUES ('c-idle', 'h1', '{old}'); \
                     INSERT INTO memory_access (id, kind, ids, created_at) VALUES ('ac-old', 'cases', '[\"c-idle\", \"m-idle\"]', '{old}')"
                ),
            )
            .await;
            let rule = |entity: &str| format!("[[rule]]\nentity = \"{entity}\"\nunused_for = \"3000d\"\n");
            let plan = planned(&world, &rules(&format!("share = 1.0\n{}{}", rule("memory"), rule("case")))).await;
            let plan = Plan::from_file(&plan.expect("a plan").to_file()).expect("as it was kept");
            let now = change::now();
            let recalled = |id: &str| {
                let columns = "id, kind, ids, created_at";
                format!("INSERT INTO memory_access ({columns}) VALUES ('ac-{id}', 'cases', '[\"{id}\"]', '{now}')")
            };
            let named = format!(
                "INSERT INTO agent_memory_cases (id, message_hash, reference_case_ids, created_at) VALUES \
                 ('c-new', 'h2', '[\"c-idle\"]', '{now}')"
            );
            // Uses of others are no matter.
            meddle(&world, &recalled("m-another")).await;
            for (used, id, gone) in [
                (recalled("m-idle"), "m-idle", "memory_access WHERE id = 'ac-m-idle'"),
                (named, "c-idle", "agent_memory_cases WHERE id = 'c-new'"),
            ] {
                meddle(&world, &used).await;
                let before = rows_of(&world).await;
                let refused = change::apply(&world.store, &plan, &author()).await;
                assert!(
                    matches!(&refused, Err(ChangeError::Conflict { rows, .. }) if rows[0].contains(id)),
                    "{refused:?}"
                );
                assert_eq!(rows_of(&world).await, before);
                meddle(&world, &format!("DELETE FROM {gone}")).await;
            }
            done(&world, Ok(plan)).await;
            assert!(row(&world, Entity::Memory, "m-idle").await.is_none());
        }
    });
}

#[test]
fn a_write_that_a_trigger_ignores_is_told_with_its_cause() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let trigger = match world.target {
                Target::File(_) => "CREATE TRIGGER ignores BEFORE UPDATE ON memories BEGIN SELECT RAISE(IGNORE); END",
                Target::Postgres(_) => {
                    "CREATE FUNCTION ignored() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$; \
                     CREATE TRIGGER ignores BEFORE UPDATE ON memories FOR EACH ROW EXECUTE FUNCTION ignored()"
                }
            };
            meddle(&world, &format!("INSERT INTO memories (id, kind, text) VALUES ('m-1', 'fact', 'a'); {trigger}"))
                .await;
            let plan = planned(&world, &edit(Entity::Memory, "m-1", json!({"text": "b"}))).await.expect("a plan");
            let refused = change::apply(&world.store, &plan, &author()).await;
            assert!(
                matches!(&refused, Err(ChangeError::Conflict { message, .. }) if message.contains("a trigger, a rule")),
                "{refused:?}"
            );
        }
    });
}

#[test]
fn what_is_kept_long_enough_goes_once_and_comes_back_whole() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO memories (id, kind, text, created_at) VALUES ('m-1', 'fact', 'a', '2001-01-01T00:00:00.000000Z'), \
                 ('m-2', 'fact', 'b', '2001-01-02T00:00:00.000000Z'); \
                 INSERT INTO episodes (id, agent_id, user_id, title, started_at, outcome) VALUES \
                 ('e-1', 'a', 'held', 'x', '2001-01-01T00:00:00.000000Z', 'failure'), \
                 ('e-2', 'a', 'u', 'x', '2001-01-01T00:00:00.000000Z', 'success'), \
                 ('e-3', 'a', 'u', 'x', '2001-01-01T00:00:00.000000Z', 'failure'); \
                 INSERT INTO episode_memories (episode_id, memory_id) VALUES ('e-3', 'm-1')",
            )
            .await;
            let hold = Operation::Hold { person: "held".to_owned(), reason: None };
            done(&world, planned(&world, &hold).await).await;
            let all = rules(
                "share = 0.5\n[[rule]]\nentity = \"memory\"\nolder_than = \"9000d\"\n\
                 [[rule]]\nentity = \"episode\"\nolder_than = \"9000d\"\noutcome = [\"failure\"]",
            );
            there_and_back(&world, &all, async {
                let gone = [(Entity::Memory, "m-1"), (Entity::Memory, "m-2"), (Entity::Episode, "e-3")];
                for (entity, id) in gone {
                    assert_eq!(row(&world, entity, id).await, None, "{id}");
                }
                assert!(row(&world, Entity::Episode, "e-1").await.is_some(), "a hold stands on it");
                assert!(row(&world, Entity::Episode, "e-2").await.is_some());
                assert!(
                    planned(&world, &all).await.expect("a plan").is_empty(),
                    "the second time nothing is left to do"
                );
            })
            .await;
            let much = rules("share = 0.01\n[[rule]]\nentity = \"memory\"\nolder_than = \"1s\"");
            let refused = planned(&world, &much).await;
            assert!(matches!(refused, Err(ChangeError::Refused(_))), "{refused:?}");
        }
    });
}

/// A line of figures about a database, with further labels.
fn figure(world: &World, name: &str, labels: &str, value: &str) -> String {
    format!("mnemoscope_{name}{{database=\"{}\"{labels}}} {value}", world.store.place())
}

#[test]
fn figures_of_two_databases_are_series_of_their_own() {
    block_on(async {
        let worlds = [Some(small().await), Some(small().await), native_on_postgres().await, native_on_postgres().await];
        let folder = tempfile::tempdir().expect("a folder");
        let mut series = std::collections::HashSet::new();
        for world in worlds.into_iter().flatten() {
            let figures = folder.path().join("figures.prom");
            let database = address(&world);
            let arguments = ["-d", &database, "jobs", "run", "--metrics", figures.to_str().expect("a path")];
            let (code, _, words) = run(folder.path(), &arguments);
            assert_eq!(code, Some(0), "{words}");
            let text = std::fs::read_to_string(&figures).expect("figures");
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let (name, _) = line.rsplit_once(' ').expect("a name and a value");
                assert!(series.insert(name.to_owned()), "{name} is a figure of two databases");
            }
        }
        assert!(!series.is_empty());
    });
}

#[test]
fn work_that_is_left_undone_is_a_problem_of_the_run() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let folder = tempfile::tempdir().expect("a folder");
            let database = address(&world);
            meddle(&world, "UPDATE episodes SET canvas_action_count = 99").await;
            let (code, planned, words) = run(folder.path(), &["-d", &database, "backfill", "aggregates"]);
            assert_eq!(code, Some(0), "{words}");
            let due = planned["changes_total"].as_u64().expect("a number");
            assert!(due > 0);
            let refusing = if matches!(world.target, Target::File(_)) {
                "CREATE TRIGGER no BEFORE UPDATE ON episodes BEGIN SELECT raise(ABORT, 'no'); END"
            } else {
                "ALTER TABLE episodes ADD CONSTRAINT no CHECK (id IS NULL) NOT VALID"
            };
            meddle(&world, refusing).await;
            let (code, receipt, words) = run(folder.path(), &["-d", &database, "backfill", "aggregates", "--apply"]);
            assert_eq!((code, &receipt["status"]), (Some(6), &json!("incomplete")), "{words}");
            assert_eq!(receipt["verification"][0]["ok"], false, "{receipt:#}");
            meddle(&world, "UPDATE memory_jobs SET state = 'running', ended_at = NULL, owner = NULL").await;
            let figures = folder.path().join("figures.prom");
            let arguments = ["-d", &database, "jobs", "run", "--metrics", figures.to_str().expect("a path")];
            let (code, shown, words) = run(folder.path(), &arguments);
            assert_eq!((code, shown["problems"].as_array().map(Vec::len)), (Some(6), Some(1)), "{words}");
            let text = std::fs::read_to_string(&figures).expect("figures");
            assert!(text.contains(&figure(&world, "problems", "", "1\n")), "{text}");
            let failed = figure(&world, "job_checks_failed", ",job=\"aggregates\",state=\"succeeded\"", "1");
            assert!(text.contains(&failed), "{text}");
            // What is asked for is read before anything is done.
            let rules = folder.path().join("retention.toml");
            std::fs::write(&rules, "shares = 1.0").expect("rules");
            let wrong = [&arguments[..4], &["--retention", rules.to_str().expect("a path")]].concat();
            meddle(&world, "UPDATE memory_jobs SET state = 'running', ended_at = NULL, owner = NULL").await;
            let (code, _, words) = run(folder.path(), &wrong);
            assert_eq!(code, Some(2), "{words}");
            let (_, listed, _) = run(folder.path(), &["-d", &database, "backfill"]);
            let jobs = listed["backfills"].as_array().expect("jobs");
            let job = jobs.iter().find(|job| job["name"] == "aggregates").expect("the job");
            assert_eq!(job["run"]["state"], "running");
        }
    });
}

#[test]
fn a_row_that_an_episode_or_a_case_used_is_kept_by_a_rule_of_use() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let folder = tempfile::tempdir().expect("a folder");
            let (old, new) = ("2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z");
            meddle(
                &world,
                &format!(
                    "DELETE FROM memory_access; \
                     INSERT INTO memories (id, kind, title, created_at) VALUES ('m-used', 'fact', 'a', '{old}'), \
                         ('m-idle', 'fact', 'b', '{old}'); \
                     INSERT INTO episodes (id, agent_id, title, started_at) VALUES ('ep-new', 'a', 'T', '{new}'); \
                     INSERT INTO episode_memories (episode_id, memory_id) VALUES ('ep-new', 'm-used'); \
                     INSERT INTO agent_memory_cases (id, message_hash, created_at) VALUES ('c-used', 'h1', '{old}'), \
                         ('c-idle', 'h2', '{old}'); \
                     INSERT INTO agent_memory_cases (id, message_hash, reference_case_ids, created_at) VALUES \
                         ('c-new', 'h3', '[\"c-used\"]', '{new}')"
                ),
            )
            .await;
            let rules = folder.path().join("rules.toml");
            let rule = |entity: &str| format!("[[rule]]\nentity = \"{entity}\"\nunused_for = \"9000d\"\n");
            std::fs::write(&rules, format!("share = 1.0\n{}{}", rule("memory"), rule("case"))).expect("rules");
            let database = address(&world);
            let arguments = ["-d", &database, "retain", rules.to_str().expect("a path"), "--apply"];
            let (code, _, words) = run(folder.path(), &arguments);
            assert_eq!(code, Some(0), "{words}");
            for (entity, used, idle) in [(Entity::Memory, "m-used", "m-idle"), (Entity::Case, "c-used", "c-idle")] {
                assert!(row(&world, entity, used).await.is_some(), "{used}");
                assert!(row(&world, entity, idle).await.is_none(), "{idle}");
            }
            // Where nothing is recorded, nobody knows what was used.
            meddle(&world, "DELETE FROM episode_memories; UPDATE agent_memory_cases SET reference_case_ids = NULL")
                .await;
            let (code, _, words) = run(folder.path(), &arguments);
            assert_eq!(code, Some(5), "{words}");
            assert!(words.contains("is unknown"), "{words}");
        }
    });
}

#[test]
fn due_work_is_done_without_a_console_and_figures_are_written() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let folder = tempfile::tempdir().expect("a folder");
            meddle(
                &world,
                "INSERT INTO memories (id, kind, text, created_at) VALUES ('m-1', 'fact', 'a', '2001-01-01T00:00:00.000000Z')",
            )
            .await;
            std::fs::write(
                folder.path().join("retention.toml"),
                "share = 1.0\n[[rule]]\nentity = \"memory\"\nolder_than = \"9000d\"\n",
            )
            .expect("rules");
            let database = address(&world);
            let (code, found, words) = run(folder.path(), &["-d", &database, "findings", "--kind", "overdue"]);
            assert_eq!((code, &found["findings"][0]["count"]), (Some(0), &json!(1)), "{words}");
            // What a hold keeps is not due.
            meddle(&world, "UPDATE memories SET user_id = 'u-kept' WHERE id = 'm-1'").await;
            for (hold, due) in [("hold", 0), ("unhold", 1)] {
                let (code, _, words) =
                    run(folder.path(), &["-d", &database, hold, "u-kept", "--reason", "a case in court", "--apply"]);
                assert_eq!(code, Some(0), "{words}");
                let (code, found, words) = run(folder.path(), &["-d", &database, "findings", "--kind", "overdue"]);
                assert_eq!((code, found["findings"].as_array().map(Vec::len)), (Some(0), Some(due)), "{words}");
            }
            let figures = folder.path().join("figures.prom");
            let arguments =
                ["-d", &database, "jobs", "run", "--until-idle", "--metrics", figures.to_str().expect("a path")];
            let (code, shown, words) = run(folder.path(), &arguments);
            assert_eq!((code, shown["retention"].as_array().map(Vec::len)), (Some(0), Some(1)), "{words}");
            assert_eq!(row(&world, Entity::Memory, "m-1").await, None);
            let text = std::fs::read_to_string(&figures).expect("figures");
            for line in [
                "# TYPE mnemoscope_findings gauge".to_owned(),
                figure(&world, "trail_ok", "", "1"),
                figure(&world, "findings", ",severity=\"high\"", ""),
                figure(&world, "problems", "", "0\n"),
            ] {
                assert!(text.contains(&line), "{line}: {text}");
            }
            let mode = std::fs::metadata(&figures).expect("figures").permissions().mode();
            assert_eq!(mode & 0o777, 0o644, "a collector of another account reads it");
            let is_figure = |line: &&str| {
                let (name, value) = line.rsplit_once(' ').expect("a name and a value");
                name.starts_with("mnemoscope_") && value.parse::<f64>().is_ok()
            };
            assert!(text.lines().filter(|line| !line.starts_with('#')).all(|line| is_figure(&line)), "{text}");
            let (code, judged, words) = run(folder.path(), &["-d", &database, "evaluate"]);
            assert_eq!(code, Some(0), "{words}");
            for (name, value) in [
                ("rows", &judged["rows"]),
                ("hit_rate", &judged["quality"]["hit_rate"]["value"]),
                ("self_text", &judged["self_retrieval"][0]["share"]),
            ] {
                let line = figure(&world, &format!("recall_{name}"), &format!(",kind={}", judged["kind"]), "");
                let figure = text.lines().find_map(|told| told.strip_prefix(&line)?.parse::<f64>().ok());
                assert_eq!(figure, value.as_f64(), "{name}: {text}");
            }
            let (code, shown, words) = run(folder.path(), &arguments);
            assert_eq!((code, shown["retention"].as_array().map(Vec::len)), (Some(0), Some(0)), "{words}");
            // A run of another machine, which fell silent 12 s ago: it is held for its runner for 3 s more.
            let (code, _, words) = run(folder.path(), &["-d", &database, "backfill", "links", "--apply"]);
            assert_eq!(code, Some(0), "{words}");
            let silent = chrono::Utc::now() - chrono::TimeDelta::seconds(12);
            let silent = mnemoscope::memory::time::spell_utc(silent).expect("a time");
            let owner = r#"{"host": "elsewhere", "process": 1, "began": "1"}"#;
            let left = format!(
                "UPDATE memory_jobs SET state = 'running', ended_at = NULL, owner = '{owner}', heartbeat_at = '{silent}'"
            );
            meddle(&world, &left).await;
            let (code, shown, words) = run(folder.path(), &arguments);
            assert_eq!((code, shown["jobs"].as_array().map(Vec::len)), (Some(0), Some(1)), "{words}");
            let nowhere = folder.path().join("no-folder/figures.prom");
            let (code, shown, words) =
                run(folder.path(), &[&arguments[..6], &[nowhere.to_str().expect("a path")]].concat());
            assert_eq!((code, &shown["retention"]), (Some(1), &json!(null)), "nothing is done before: {words}");
            meddle(&world, "DELETE FROM memory_audit WHERE seq = (SELECT max(seq) FROM memory_audit)").await;
            run(folder.path(), &arguments);
            let text = std::fs::read_to_string(&figures).expect("figures");
            assert!(text.contains(&figure(&world, "trail_ok", "", "0")), "{text}");
        }
    });
}

#[test]
fn a_job_that_cannot_be_made_keeps_no_other_work_from_being_done() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let folder = tempfile::tempdir().expect("a folder");
            let database = address(&world);
            let (code, _, words) = run(folder.path(), &["-d", &database, "backfill", "links", "--apply"]);
            assert_eq!(code, Some(0), "{words}");
            for sql in [
                "UPDATE memory_jobs SET name = 'embeddings', state = 'queued', ended_at = NULL, owner = NULL",
                "INSERT INTO memories (id, kind, text, created_at) VALUES \
                 ('m-old', 'fact', 'a', '2001-01-01T00:00:00.000000Z')",
            ] {
                meddle(&world, sql).await;
            }
            let rules = "share = 1.0\n[[rule]]\nentity = \"memory\"\nolder_than = \"9000d\"\n";
            std::fs::write(folder.path().join("retention.toml"), rules).expect("rules");
            let (code, shown, words) = run(folder.path(), &["-d", &database, "jobs", "run", "--until-idle"]);
            assert_eq!((code, shown["retention"].as_array().map(Vec::len)), (Some(6), Some(1)), "{words}");
            assert!(shown["problems"][0].as_str().is_some_and(|why| why.starts_with("job embeddings: ")), "{shown:#}");
            assert_eq!(row(&world, Entity::Memory, "m-old").await, None);
        }
    });
}

#[test]
fn an_undo_tells_which_rows_came_to_name_what_it_takes_away() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let recorded = json!({"id": "m-undone", "text": "hello", "user_id": "u-undone"});
            let recorded = Operation::Record { entity: Entity::Memory, text: recorded.to_string() };
            let receipt = done(&world, planned(&world, &recorded).await).await;
            let seq = receipt.audit_seq.expect("a number");
            let told = |plan: Result<Plan, ChangeError>| plan.expect("a plan").disclosures.join("; ");
            assert_eq!(told(undo::undo(&world.store, seq).await), "");
            let episode = ids(&world, Entity::Episode).await.remove(0);
            let mut other = Agent::of(&world.target).await;
            other
                .run(&format!(
                    "INSERT INTO episode_memories (episode_id, memory_id, kind, rank) VALUES ('{episode}', 'm-undone', 'k', 90)"
                ))
                .await;
            let disclosures = told(undo::undo(&world.store, seq).await);
            assert!(
                disclosures.contains("1 row of episode_memories refers to rows that would be removed"),
                "{disclosures}"
            );
        }
    });
}

#[test]
fn an_undo_brings_back_no_reference_to_a_row_that_was_removed_since() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(
                &world,
                "INSERT INTO episodes (id, agent_id, user_id, title, started_at, parent_id) VALUES \
                 ('above', 'a', 'u', 'x', '2026-03-01T10:00:00.000000Z', NULL), \
                 ('below', 'a', 'u', 'x', '2026-03-02T10:00:00.000000Z', 'above'), \
                 ('odd', 'a', 'u', 'x', '2026-03-03T10:00:00.000000Z', 'nobody')",
            )
            .await;
            let store = &world.store;
            let mut seqs = Vec::new();
            for child in ["below", "odd"] {
                let receipt = done(&world, planned(&world, &Operation::Unlink { child: child.to_owned() }).await).await;
                seqs.push(receipt.audit_seq.expect("a number"));
            }
            let told = |plan: Result<Plan, ChangeError>| plan.expect("a plan").disclosures.join("; ");
            assert_eq!(told(undo::undo(store, seqs[0]).await), "");
            let removed = done(&world, planned(&world, &remove(Entity::Episode, &["above".to_owned()])).await).await;
            let words = "1 value of episodes.parent_id would name a row of episodes that is missing";
            let refused = undo::undo(store, seqs[0]).await;
            let is_told = |message: &str, rows: &[String]| {
                message.contains("later changes depend on it") && rows.iter().any(|row| row.starts_with(words))
            };
            assert!(
                matches!(&refused, Err(ChangeError::Conflict { message, rows, .. }) if is_told(message, rows)),
                "{refused:?}"
            );
            // What led nowhere before does so again, with a word.
            assert_eq!(told(undo::undo(store, seqs[1]).await), words);
            done(&world, undo::undo(store, removed.audit_seq.expect("a number")).await).await;
            done(&world, undo::undo(store, seqs[0]).await).await;
            let below = row(&world, Entity::Episode, "below").await.expect("the child");
            assert_eq!(below.text("parent_id"), Some("above"));
        }
    });
}

#[test]
fn a_part_is_only_moved_to_a_whole_that_is_there_and_of_the_same_owner() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let refused = async |entity, id: &str, set: Value, words: &str| {
                let plan = planned(&world, &edit(entity, id, set)).await;
                assert!(matches!(&plan, Err(ChangeError::Refused(why)) if why.contains(words)), "{words}: {plan:?}");
            };
            let case = ids(&world, Entity::Case).await.remove(0);
            refused(Entity::Case, &case, json!({"profile_id": "p-nowhere"}), "refers to a missing profile").await;
            let mut other = Agent::of(&world.target).await;
            other
                .run(
                    "INSERT INTO agent_memory_profiles (id, user_id) VALUES ('p-other', 'someone else'); INSERT INTO \
                     episode_segments (id, content) VALUES ('s-loose', 'x'); INSERT INTO canvas_audit (id) VALUES \
                     ('cv-loose')",
                )
                .await;
            refused(Entity::Case, &case, json!({"profile_id": "p-other"}), "has another `user_id`").await;
            refused(Entity::Segment, "s-loose", json!({"episode_id": "e-nowhere"}), "refers to a missing episode")
                .await;
            refused(Entity::CanvasEvent, "cv-loose", json!({"episode_id": "e-nowhere"}), "not set by hand").await;
        }
    });
}
