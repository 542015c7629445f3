//! Curated memories: each layout stores them in its own way, whole or not at all, and their parents are found by vectors.

use crate::support::block_on;
use crate::support::fixtures::Layout;
use crate::support::world::*;
use mnemoscope::change::{self, ChangeError, Plan, chain, record, undo};
use mnemoscope::memory::{Entity, Row};
use mnemoscope::store::context::Relatives;
use serde_json::{Value, json};

async fn recorded(world: &World, entity: Entity, value: &Value) -> Result<Plan, ChangeError> {
    match entity {
        Entity::Case => record::case(&world.store, &value.to_string()).await,
        _ => record::episode(&world.store, &value.to_string()).await,
    }
}

/// Records it, compares what is stored with what was given, and takes it back.
async fn there_and_back(world: &World, given: &Value) {
    let before = dump(world).await;
    let receipt = done(world, recorded(world, Entity::Episode, given).await).await;
    let row = world.store.row(Entity::Episode, given["id"].as_str().unwrap()).await.unwrap().expect("the episode");
    assert!(row.problems.is_empty(), "{row:?}");
    for (column, value) in given.as_object().unwrap().iter().filter(|(name, _)| *name != "embedding") {
        assert_eq!(row.get(column), value, "{column}");
    }
    let twice = recorded(world, Entity::Episode, given).await;
    assert!(matches!(&twice, Err(ChangeError::Refused(words)) if words.contains("already")), "{twice:?}");
    let mut twin = given.clone();
    twin["id"] = json!("22222222-2222-4222-8222-222222222222");
    let twin = recorded(world, Entity::Episode, &twin).await;
    assert!(matches!(&twin, Err(ChangeError::Refused(words)) if words.contains("already")), "{twin:?}");
    done(world, undo::undo(&world.store, receipt.audit_seq.unwrap()).await).await;
    assert_eq!(dump(world).await, before);
    assert_sound(world).await;
}

async fn refused(world: &World, given: &Value, word: &str) {
    let plan = recorded(world, Entity::Episode, given).await;
    assert!(matches!(&plan, Err(ChangeError::Refused(words)) if words.contains(word)), "{word}: {plan:?}");
}

/// An agent whose other episodes say what a new one needs.
async fn an_agent(world: &World) -> String {
    let mut rows: Vec<Row> = Vec::new();
    for id in ids(world, Entity::Episode).await {
        rows.extend(world.store.row(Entity::Episode, &id).await.unwrap());
    }
    rows.iter().find_map(|row| row.text("agent_id")).expect("an agent").to_owned()
}

#[test]
fn each_layout_stores_an_episode_in_its_own_way_and_nothing_is_dropped() {
    block_on(async {
        let id = "11111111-1111-4111-8111-111111111111";
        let times = json!({"started_at": "2026-03-01T10:00:00.000000Z", "ended_at": "2026-03-01T10:01:00.000000Z"});
        let given = |agent: &str, more: Value| {
            let mut given =
                json!({"id": id, "agent_id": agent, "title": "T \"x\"", "status": "closed", "tags": ["a", "b \"c\""]});
            for part in [&times, &more] {
                given.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            }
            given
        };
        for world in [Some(on_sqlite(Layout::Atom).await), on_postgres(Layout::Atom).await].into_iter().flatten() {
            let agent = an_agent(&world).await;
            there_and_back(&world, &given(&agent, json!({"outcome": "success", "topic": "a"}))).await;
            refused(&world, &given(&agent, json!({"outcome": "success", "summary": "S"})), "`summary`").await;
            refused(&world, &given(&agent, json!({"outcome": "success", "user_id": "u"})), "session").await;
            refused(&world, &given(&agent, json!({"outcome": "success", "topic": "z"})), "`topic`").await;
        }
        for world in
            [Some(on_sqlite(Layout::Atom2026).await), on_postgres(Layout::Atom2026).await].into_iter().flatten()
        {
            with_user(&world).await;
            let agent = an_agent(&world).await;
            there_and_back(&world, &given(&agent, json!({"summary": "S", "detail": "D", "user_id": "u-1"}))).await;
            refused(&world, &given(&agent, json!({"outcome": "success"})), "`outcome`").await;
        }
        for layout in [Layout::NousPlanned, Layout::NousHead] {
            let Some(world) = on_postgres(layout).await else { return };
            let agent = an_agent(&world).await;
            let more = json!({"summary": "S", "outcome": "success", "user_id": "u", "participants": ["{x}", "a,b"]});
            there_and_back(&world, &given(&agent, more)).await;
            refused(&world, &given(&agent, json!({"summary": "S", "canvas_ids": ["c"]})), "`canvas_ids`").await;
            let plan = recorded(&world, Entity::Episode, &given(&agent, json!({}))).await;
            assert!(plan.is_err_and(|e| e.to_string().contains("`summary`")), "it says what is lacking");
        }
    });
}

#[test]
fn an_undo_that_a_foreign_key_would_refuse_says_so_before() {
    block_on(async {
        let Some(world) = on_postgres(Layout::NousPlanned).await else { return };
        let mut lost = None;
        for id in ids(&world, Entity::Episode).await {
            let row = world.store.row(Entity::Episode, &id).await.unwrap().unwrap();
            let Some(parent) = row.text("parent_id").map(str::to_owned) else { continue };
            if world.store.row(Entity::Episode, &parent).await.unwrap().is_none() {
                lost = Some((id, parent));
            }
        }
        let (child, parent) = lost.expect("an episode whose parent is gone");
        let receipt = done(&world, chain::unlink(&world.store, &child).await).await;
        let seq = receipt.audit_seq.unwrap();
        let refused = undo::undo(&world.store, seq).await;
        assert!(
            matches!(&refused, Err(ChangeError::Conflict { rows, .. })
                if rows.iter().any(|row| row.contains("parent_episode_id") && row.contains("foreign key"))),
            "{refused:?}"
        );
        let agent = an_agent(&world).await;
        let given = json!({"id": parent, "agent_id": agent, "title": "T", "summary": "S",
            "started_at": "2026-03-01T10:00:00Z"});
        let recorded = done(&world, recorded(&world, Entity::Episode, &given).await).await;
        done(&world, undo::undo(&world.store, seq).await).await;
        let leaned_on = undo::undo(&world.store, recorded.audit_seq.unwrap()).await;
        assert!(
            matches!(&leaned_on, Err(ChangeError::Conflict { rows, .. }) if rows.iter().any(|row| row.contains("refer"))),
            "{leaned_on:?}"
        );
        done(&world, chain::unlink(&world.store, &child).await).await;
        done(&world, undo::undo(&world.store, recorded.audit_seq.unwrap()).await).await;
        assert!(world.store.row(Entity::Episode, &parent).await.unwrap().is_none());
    });
}

#[test]
fn an_episode_of_a_workflow_is_one_event_of_its_run() {
    const KEYS: [&str; 11] = [
        "episode_id", "observation", "thoughts", "actions", "result", "success", "workflow_name", "why_it_worked",
        "embedding", "timestamp", "duration_seconds",
    ];
    block_on(async {
        let sqlite = Some(on_sqlite(Layout::Pyworkflow).await);
        for world in [sqlite, on_postgres(Layout::Pyworkflow).await].into_iter().flatten() {
            let before = dump(&world).await;
            let run = ids(&world, Entity::Episode).await[0].clone();
            let log = world.store.related(Entity::WorkflowEvent, "run_id", std::slice::from_ref(&run)).await.unwrap();
            let given = json!({"id": run, "insight": "It asked first", "embedding": [0.5, 1]});
            let receipt = done(&world, recorded(&world, Entity::Episode, &given).await).await;
            let after = world.store.related(Entity::WorkflowEvent, "run_id", std::slice::from_ref(&run)).await.unwrap();
            assert_eq!(after.len(), log.len() + 1);
            let event = after.iter().find(|e| e.text("kind") == Some("episode_created")).expect("the event");
            let last = log.iter().filter_map(|e| e.get("sequence").as_i64()).max();
            assert_eq!(event.get("sequence").as_i64(), last.map(|n| n + 1).or(Some(0)));
            let keys: Vec<&str> = event.get("data").as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(keys, KEYS);
            assert_eq!(event.get("data")["embedding"], json!([0.5, 1.0]));
            let episode = world.store.row(Entity::Episode, &run).await.unwrap().unwrap();
            assert_eq!(episode.text("insight"), Some("It asked first"));
            let twice = recorded(&world, Entity::Episode, &given).await;
            assert!(matches!(&twice, Err(ChangeError::Refused(words)) if words.contains("already")), "{twice:?}");
            let nowhere = recorded(&world, Entity::Episode, &json!({"id": "nowhere"})).await;
            assert!(matches!(nowhere, Err(ChangeError::NotFound(_))), "{nowhere:?}");
            let elsewhere = recorded(&world, Entity::Episode, &json!({"id": run, "title": "x"})).await;
            assert!(
                matches!(&elsewhere, Err(ChangeError::Refused(words)) if words.contains("`title`")),
                "{elsewhere:?}"
            );
            done(&world, undo::undo(&world.store, receipt.audit_seq.unwrap()).await).await;
            assert_eq!(dump(&world).await, before);
        }
    });
}

/// A vector whose cosine to [20, 0, 0, 0, 0] is 17/20, to the last bit.
const AT_THE_EDGE: [f64; 5] = [17.0, 10.0, 3.0, 1.0, 1.0];
const ASKED: [f64; 5] = [20.0, 0.0, 0.0, 0.0, 0.0];
const ALIKE: [f64; 5] = [18.0, 8.0, 3.0, 1.0, 1.0];
const MORE_ALIKE: [f64; 5] = [19.0, 6.0, 1.0, 1.0, 1.0];

#[test]
fn a_parent_is_what_the_same_agent_had_just_ended_and_is_very_much_alike() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let before = dump(&world).await;
            let mut seqs = Vec::new();
            let episode = |id: &str, agent: &str, start: &str, end: Option<&str>, vector: Option<[f64; 5]>| {
                json!({"id": id, "agent_id": agent, "user_id": "u", "title": id, "started_at": start, "ended_at": end,
                    "embedding": vector.map(|v| v.to_vec())})
            };
            let others = [
                episode("edge", "a", "2026-03-08T09:00:00Z", Some("2026-03-08T10:00:00Z"), Some(AT_THE_EDGE)),
                episode("other agent", "b", "2026-03-09T09:00:00Z", Some("2026-03-09T10:00:00Z"), Some(ASKED)),
                episode("long ago", "a", "2026-03-01T09:00:00Z", Some("2026-03-08T09:59:59Z"), Some(ASKED)),
                episode("open", "a", "2026-03-10T08:00:00Z", None, Some(ASKED)),
                episode("later", "a", "2026-03-10T08:00:00Z", Some("2026-03-10T10:00:01Z"), Some(ASKED)),
                episode("no vector", "a", "2026-03-10T08:00:00Z", Some("2026-03-10T09:00:00Z"), None),
            ];
            for other in &others {
                let mut placed = other.clone();
                placed["parent_id"] = if other["id"] == "edge" { Value::Null } else { json!("edge") };
                seqs.extend(done(&world, recorded(&world, Entity::Episode, &placed).await).await.audit_seq);
            }
            let child = episode("child", "a", "2026-03-10T10:00:00Z", None, Some(ASKED));
            let plan = recorded(&world, Entity::Episode, &child).await.expect("a plan");
            assert_eq!(plan.changes[0].after["parent_id"], Value::Null, "{:?}", plan.effects);
            assert!(plan.effects.iter().any(|e| e.contains("none is above 0.85")), "{:?}", plan.effects);
            for (id, end, vector) in
                [("alike", "2026-03-10T09:59:00Z", ALIKE), ("more alike", "2026-03-08T10:01:00Z", MORE_ALIKE)]
            {
                let mut row = episode(id, "a", "2026-03-08T09:30:00Z", Some(end), Some(vector));
                row["parent_id"] = json!("edge");
                seqs.extend(done(&world, recorded(&world, Entity::Episode, &row).await).await.audit_seq);
                let plan = recorded(&world, Entity::Episode, &child).await.expect("a plan");
                assert_eq!(plan.changes[0].after["parent_id"], id, "{:?}", plan.effects);
                assert!(plan.effects.iter().any(|e| e.contains("found by vectors")), "{:?}", plan.effects);
            }
            let mut explicit = child.clone();
            explicit["parent_id"] = json!("edge");
            let plan = recorded(&world, Entity::Episode, &explicit).await.expect("a plan");
            assert_eq!(plan.changes[0].after["parent_id"], "edge");
            let mut blind = child.clone();
            blind["embedding"] = Value::Null;
            let plan = recorded(&world, Entity::Episode, &blind).await.expect("a plan");
            assert!(plan.disclosures.iter().any(|d| d.contains("not possible")), "{:?}", plan.disclosures);
            seqs.extend(done(&world, recorded(&world, Entity::Episode, &child).await).await.audit_seq);
            let chain = world.store.contexts().chain("child", Relatives::Named).await.unwrap().expect("a chain").chain;
            assert!(format!("{chain:?}").contains("more alike"), "{chain:?}");
            for (odd, words) in [(json!([1, 0]), "2 numbers"), (json!([0, 0, 0, 0, 1e-50]), "no direction")] {
                let mut given = child.clone();
                (given["id"], given["title"], given["embedding"]) = (json!("odd"), json!("odd"), odd);
                let plan = recorded(&world, Entity::Episode, &given).await.expect("a plan");
                assert!(plan.disclosures.iter().any(|d| d.contains(words)), "{words}: {:?}", plan.disclosures);
            }
            for bad in [json!([]), json!(["x"]), json!("x"), json!([1e300])] {
                let mut wrong = child.clone();
                wrong["embedding"] = bad;
                assert!(matches!(recorded(&world, Entity::Episode, &wrong).await, Err(ChangeError::Usage(_))));
            }
            for seq in seqs.into_iter().rev() {
                done(&world, undo::undo(&world.store, seq).await).await;
            }
            assert_eq!(dump(&world).await, before);
            assert_sound(&world).await;
        }
    });
}

#[test]
fn a_recorded_case_gets_the_reward_that_the_backfill_would_give() {
    block_on(async {
        for world in natives().await {
            let traces = json!([{"tool": "a", "status": "ok"}, {"tool": "b", "status": "error"}]);
            let case =
                json!({"id": "traced", "user_id": "u", "agent_id": "a", "prompt": {"message": "m"}, "traces": traces});
            let plan = recorded(&world, Entity::Case, &case).await.expect("a plan");
            assert!(
                plan.effects.iter().any(|e| e.contains("0.5 by the rule for its tool calls")),
                "{:?}",
                plan.effects
            );
            done(&world, Ok(plan)).await;
            let row = world.store.row(Entity::Case, "traced").await.unwrap().expect("the case");
            assert_eq!(row.number("reward"), Some(0.5));
        }
    });
}

#[test]
fn a_case_repeats_any_with_the_same_hash_and_prompt_in_its_bank() {
    block_on(async {
        for world in natives().await {
            let rows = "INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('re-1', 're-u', 're-a'), \
                 ('re-2', 're-v', 're-a'); \
                 INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, message_hash, prompt, created_at) VALUES \
                 ('first', 're-1', 're-u', 're-a', 'unsaid', '\"one\"', '2026-02-01T00:00:00.000000Z'), \
                 ('second', 're-1', 're-u', 're-a', 'unsaid', '\"two\"', '2026-02-02T00:00:00.000000Z'), \
                 ('other', 're-2', 're-v', 're-a', 'unsaid', '\"three\"', '2026-02-03T00:00:00.000000Z')";
            meddle(&world, rows).await;
            let of = async |prompt: &str| {
                let case =
                    json!({"profile_id": "re-1", "message_hash": "unsaid", "prompt": prompt, "outcome": "success"});
                recorded(&world, Entity::Case, &case).await
            };
            let repeated = of("two").await;
            assert!(
                matches!(&repeated, Err(ChangeError::Refused(words)) if words.contains("`second`")),
                "{repeated:?}"
            );
            of("three").await.expect("no case of this bank says that");
        }
    });
}

#[test]
fn a_database_without_vectors_says_that_no_parent_can_be_found() {
    block_on(async {
        let world = on_sqlite(Layout::Atom2026).await;
        let agent = an_agent(&world).await;
        let given = json!({"agent_id": agent, "title": "T", "started_at": "2026-03-01T10:00:00Z", "embedding": [1, 0]});
        let plan = recorded(&world, Entity::Episode, &given).await.expect("a plan");
        assert!(plan.disclosures.iter().any(|d| d.contains("no parent is searched for")), "{:?}", plan.disclosures);
        assert!(plan.disclosures.iter().any(|d| d.contains("the vector is not stored")), "{:?}", plan.disclosures);
        let receipt = change::apply(&world.store, &plan, &author()).await.expect("applied");
        done(&world, undo::undo(&world.store, receipt.audit_seq.unwrap()).await).await;
    });
}

#[test]
fn memories_that_an_episode_was_said_to_use_hear_of_it_when_it_is_recorded() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let rows = "INSERT INTO memories (id, kind, text, uses, utility) VALUES ('me-new', 'drawer', 'x', 0, NULL); \
                INSERT INTO episode_memories (episode_id, memory_id) VALUES ('ep-new', 'me-new')";
            meddle(&world, rows).await;
            let before = dump(&world).await;
            let given = json!({"id": "ep-new", "agent_id": "a", "title": "T", "started_at": "2026-03-01T10:00:00Z",
                "utility": 0.75});
            let receipt = done(&world, recorded(&world, Entity::Episode, &given).await).await;
            assert!(receipt.effects.iter().any(|e| e.contains("me-new")), "{:?}", receipt.effects);
            let memory = world.store.row(Entity::Memory, "me-new").await.unwrap().expect("the memory");
            assert_eq!((memory.get("uses"), memory.number("utility")), (&json!(1), Some(0.75)));
            done(&world, undo::undo(&world.store, receipt.audit_seq.unwrap()).await).await;
            assert_eq!(dump(&world).await, before);
        }
    });
}

#[test]
fn an_episode_is_recorded_with_the_memories_that_it_retrieved_and_undo_unlinks_them() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let rows = "INSERT INTO memories (id, kind, text, uses, utility) VALUES ('me-901', 'drawer', 'x', 0, NULL), \
                ('me-902', 'closet', 'y', 0, NULL)";
            meddle(&world, rows).await;
            let before = dump(&world).await;
            let given = |memories: Value| {
                json!({"id": "ep-new", "agent_id": "a", "title": "T", "started_at": "2026-03-01T10:00:00Z",
                    "utility": 0.75, "memories": memories})
            };
            let missing = recorded(&world, Entity::Episode, &given(json!(["me-901", "me-999"]))).await;
            assert!(matches!(&missing, Err(ChangeError::NotFound(words)) if words.contains("me-999")), "{missing:?}");
            for wrong in [json!("me-901"), json!([7]), json!(["me-901", "me-901"]), json!([{"id": "me-901"}])] {
                let plan = recorded(&world, Entity::Episode, &given(wrong.clone())).await;
                assert!(matches!(plan, Err(ChangeError::Usage(_))), "{wrong}: {plan:?}");
            }
            let links = json!(["me-902", {"memory_id": "me-901", "kind": "cited", "rank": 7}]);
            let receipt = done(&world, recorded(&world, Entity::Episode, &given(links)).await).await;
            let ids = ["ep-new".to_owned()];
            let mut stored = world.store.related(Entity::MemoryLink, "episode_id", &ids).await.expect("links");
            stored.sort_by_key(|link| link.get("rank").as_i64());
            let told: Vec<(&str, &str, i64)> = stored
                .iter()
                .map(|l| (l.text("memory_id").unwrap(), l.text("kind").unwrap(), l.get("rank").as_i64().unwrap()))
                .collect();
            assert_eq!(told, [("me-902", "closet", 1), ("me-901", "cited", 7)]);
            let memory = world.store.row(Entity::Memory, "me-901").await.unwrap().expect("the memory");
            assert_eq!((memory.get("uses"), memory.number("utility")), (&json!(1), Some(0.75)));
            done(&world, undo::undo(&world.store, receipt.audit_seq.unwrap()).await).await;
            assert_eq!(dump(&world).await, before);
        }
    });
}

#[test]
fn of_two_plans_for_one_case_or_one_bank_the_second_finds_that_the_world_moved() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            // The first round makes the bank, the second finds it.
            for prompt in ["how do I steer", "how do I moor"] {
                let case = json!({"prompt": prompt, "outcome": "success", "user_id": "u-new", "agent_id": "a-new"});
                let (first, second) =
                    (recorded(&world, Entity::Case, &case).await, recorded(&world, Entity::Case, &case).await);
                done(&world, first).await;
                let again = change::apply(&world.store, &second.expect("a plan"), &author()).await;
                assert!(matches!(again, Err(ChangeError::Conflict { .. })), "{again:?}");
            }
            let banks = world.store.related(Entity::Profile, "user_id", &["u-new".to_owned()]).await.expect("banks");
            assert_eq!(banks.len(), 1);
        }
    });
}

#[test]
fn an_episode_and_a_memory_that_several_record_at_once_are_there_once() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let episode = json!({"title": "Moored twice", "agent_id": "a", "started_at": "2026-03-01T10:00:00Z"});
            let memory = json!({"kind": "fact", "title": "Moored twice", "text": "at both ends", "agent_id": "a"});
            for (entity, given) in [(Entity::Episode, episode), (Entity::Memory, memory)] {
                let text = given.to_string();
                let writer = async |_| {
                    let store = open(&world.target).await;
                    change::plan_and_apply(&store, &author(), || record::plan(&store, entity, &text)).await.map(|_| ())
                };
                let ends = futures::future::join_all((0..4).map(writer)).await;
                assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1, "{ends:?}");
                let others = ends.iter().filter_map(|end| end.as_ref().err());
                assert!(others.into_iter().all(|end| matches!(end, ChangeError::Refused(_))), "{ends:?}");
                let stored = world.store.related(entity, "title", &["Moored twice".to_owned()]).await.expect("rows");
                assert_eq!(stored.len(), 1, "{entity:?}");
            }
        }
    });
}

#[test]
fn a_case_that_several_record_at_once_is_there_once() {
    block_on(async {
        for world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            for round in 0..5 {
                let case = json!({"prompt": format!("how {round}"), "user_id": format!("u-{round}"), "agent_id": "a"});
                let text = case.to_string();
                let writer = async |_| {
                    let store = open(&world.target).await;
                    change::plan_and_apply(&store, &author(), || record::case(&store, &text)).await.map(|_| ())
                };
                let ends = futures::future::join_all((0..4).map(writer)).await;
                assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 1, "{ends:?}");
                let others = ends.iter().filter_map(|end| end.as_ref().err());
                assert!(others.into_iter().all(|end| matches!(end, ChangeError::Refused(_))), "{ends:?}");
                let user = [format!("u-{round}")];
                for entity in [Entity::Profile, Entity::Case] {
                    assert_eq!(world.store.related(entity, "user_id", &user).await.expect("rows").len(), 1);
                }
            }
        }
    });
}
