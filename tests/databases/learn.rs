//! Knowledge about agents in the memory, and lessons from it: canvases, readiness, policies. Each on both engines,
//! which must agree.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_postgres, build_sqlite};
use crate::support::postgres::Database;
use crate::support::world::{layout_on_postgres, made_in_file, made_on_postgres, tester as author};
use mnemoscope::change::findings::{FindingNews, FindingRequest, look};
use mnemoscope::change::{self, ChangeError, policy, undo};
use mnemoscope::lab::training::{self, TrainingPairs};
use mnemoscope::lab::{self, LabError, assess, judge, silent, understand};
use mnemoscope::memory::Entity;
use mnemoscope::recall::features::{Situation, features};
use mnemoscope::recall::inquiry::Inquiry;
use mnemoscope::recall::judge::file;
use mnemoscope::recall::learn::version::Version;
use mnemoscope::recall::rank::Ranking;
use mnemoscope::recall::understand::report::insights_json;
use mnemoscope::store::{Store, Target};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

const NOW: &str = "2026-06-01T00:00:00.000000Z";

struct World {
    store: Store,
    path: Option<std::path::PathBuf>,
    _folder: tempfile::TempDir,
    database: Option<Database>,
}

impl World {
    /// Runs SQL as another program does.
    async fn write(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        match (&self.path, &self.database) {
            (Some(path), _) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut link = SqliteConnection::connect_with(&options).await.expect("a file");
                sqlx::raw_sql(sql).execute(&mut link).await.expect("the rows");
                link.close().await.expect("it closes");
            }
            (None, Some(database)) => {
                let mut link = PgConnection::connect(database.url()).await.expect("the server");
                sqlx::raw_sql(sql).execute(&mut link).await.expect("the rows");
            }
            (None, None) => panic!("a world without a database"),
        }
    }
}

async fn world(target: Target, folder: tempfile::TempDir, database: Option<Database>) -> World {
    let open = async || Store::open(&target, &crate::support::options()).await.expect("it opens");
    let path = match &target {
        Target::File(path) => Some(path.clone()),
        Target::Postgres(_) => None,
    };
    World { store: open().await, path, _folder: folder, database }
}

/// Rows of the native layout that both engines take as they stand.
fn rows() -> String {
    let mut sql = String::from(
        "INSERT INTO agents (id, name, status) VALUES ('ag-1', 'Desk', 'active'), ('ag-2', 'Other', 'active');
         INSERT INTO agent_memory_profiles (id, user_id, agent_id) VALUES ('pr-1', 'u-1', 'ag-1'), ('pr-2', 'u-2', 'ag-1');
         INSERT INTO memories (id, kind, title) VALUES ('m-bad', 'drawer', 'An old price list'), ('m-good', 'drawer', 'The price list');",
    );
    let episodes = [
        ("e1", "success", "2026-05-30T10:00:00.000000Z", "1.0", "0.9", 0),
        ("e2", "failure", "2026-05-20T10:00:00.000000Z", "-0.5", "0.1", 2),
        ("e3", "partial", "2026-02-01T10:00:00.000000Z", "NULL", "0.2", 1),
        ("e4", "success", "2025-10-01T10:00:00.000000Z", "NULL", "0.3", 0),
    ];
    for (id, outcome, at, score, utility, interventions) in episodes {
        sql += &format!(
            "INSERT INTO episodes (id, agent_id, user_id, title, outcome, started_at, feedback_score, utility,
             intervention_count, canvas_ids) VALUES ('{id}', 'ag-1', 'u-1', 'Episode {id}', '{outcome}', '{at}', {score},
             {utility}, {interventions}, '{}');",
            if id == "e3" { "[\"v7\"]" } else { "[]" }
        );
    }
    let events = [
        ("v1", Some("e1"), "c1", "sheets", "table", "present", "{}", "2026-05-30T10:00:00.000000Z"),
        ("v2", Some("e1"), "c1", "sheets", "table", "close", "{\"open_seconds\": 2.5}", "2026-05-30T10:00:40.000000Z"),
        ("v3", Some("e2"), "c2", "forms", "form", "present", "{}", "2026-05-20T10:00:00.000000Z"),
        ("v4", Some("e2"), "c2", "forms", "form", "update", "{\"by\": \"user\"}", "2026-05-20T10:00:10.000000Z"),
        ("v5", Some("e2"), "c2", "forms", "form", "submit", "{}", "2026-05-20T10:00:20.000000Z"),
        ("v6", Some("e2"), "c2", "forms", "form", "close", "{}", "2026-05-20T10:00:30.000000Z"),
        ("v7", None, "c3", "sheets", "pivot", "present", "{}", "2026-04-25T10:00:00.000000Z"),
    ];
    for (id, episode, canvas, kind, component, action, metadata, at) in events {
        let episode = episode.map_or("NULL".to_owned(), |e| format!("'{e}'"));
        sql += &format!(
            "INSERT INTO canvas_audit (id, episode_id, agent_id, canvas_id, canvas_type, component_type, action, metadata,
             created_at) VALUES ('{id}', {episode}, 'ag-1', '{canvas}', '{kind}', '{component}', '{action}', '{metadata}', '{at}');"
        );
    }
    for (id, episode, kind, correction) in [
        ("f1", "e1", "thumbs_up", "NULL"),
        ("f2", "e2", "rating", "'use the newer list'"),
        ("f3", "e2", "thumbs_down", "NULL"),
    ] {
        sql += &format!(
            "INSERT INTO agent_feedback (id, episode_id, agent_id, kind, rating, correction, created_at) VALUES
             ('{id}', '{episode}', 'ag-1', '{kind}', 3, {correction}, '2026-05-30T11:00:00.000000Z');"
        );
    }
    for (episode, memory) in [("e2", "m-bad"), ("e3", "m-bad"), ("e4", "m-bad"), ("e1", "m-good"), ("e4", "m-good")] {
        sql += &format!("INSERT INTO episode_memories (episode_id, memory_id) VALUES ('{episode}', '{memory}');");
    }
    sql + &cases()
}

/// A bank in which recalling well rewarded cases went well: 40 queries of 3 recalled cases each.
fn cases() -> String {
    let mut sql = String::new();
    let mut case = |id: String, reward: f64, references: Vec<String>, hour: usize| {
        let outcome = if reward >= 0.5 { "success" } else { "failure" };
        sql += &format!(
            "INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, message_hash, prompt, outcome, reward, tags,
             reference_case_ids, created_at) VALUES ('{id}', 'pr-1', 'u-1', 'ag-1', 'h-{id}', '{{\"message\": \"price of part {hour}\"}}',
             '{outcome}', {reward}, '[\"prices\"]', '{}', '2026-03-{:02}T{:02}:00:00.000000Z');",
            json!(references),
            1 + hour / 24,
            hour % 24
        );
    };
    for i in 0..8 {
        case(format!("src-{i}"), if i % 2 == 0 { 1.0 } else { 0.0 }, Vec::new(), i);
    }
    for i in 0..40_usize {
        // Nine in ten follow what they recalled.
        let good = i % 2 == 0;
        let reward = if i % 10 == 3 {
            1.0
        } else if i % 10 == 4 {
            0.0
        } else if good {
            1.0
        } else {
            0.0
        };
        let references = (0..3).map(|k| format!("src-{}", (i * 3 + k * 2) % 8 / 2 * 2 + usize::from(!good))).collect();
        case(format!("query-{i:02}"), reward, references, 8 + i);
    }
    sql
}

async fn native_sqlite() -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("native.db");
    let build = async |path: &Path| {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let mut link = SqliteConnection::connect_with(&options).await.expect("a file");
        let schema = include_str!("../../assets/migrations/mnemoscope/sqlite/0001_native.sql");
        sqlx::raw_sql(AssertSqlSafe(format!("{schema}{}", rows()))).execute(&mut link).await.expect("the rows");
        link.close().await.expect("it closes");
    };
    made_in_file("lessons", &path, build).await;
    world(Target::File(path), folder, None).await
}

async fn native_postgres() -> Option<World> {
    let build = async || {
        let database = Database::fresh()?;
        let mut link = PgConnection::connect(database.url()).await.expect("the server");
        let schema = include_str!("../../assets/migrations/mnemoscope/postgres/0001_native.sql");
        sqlx::raw_sql(AssertSqlSafe(format!("{schema}{}", rows()))).execute(&mut link).await.expect("the rows");
        link.close().await.expect("it closes");
        Some(database)
    };
    let database = made_on_postgres("lessons", build).await?;
    let target = Target::Postgres(database.url().to_owned());
    Some(world(target, tempfile::tempdir().expect("a folder"), Some(database)).await)
}

async fn both() -> Vec<World> {
    let mut worlds = vec![native_sqlite().await];
    worlds.extend(native_postgres().await);
    worlds
}

#[test]
fn insights_are_the_same_on_both_engines_and_right_by_hand() {
    block_on(async {
        let mut said = Vec::new();
        for world in both().await {
            let found = understand::insights(&world.store, Some("ag-1"), NOW, None, &silent).await.expect("insights");
            said.push(insights_json(&found));
        }
        let first = &said[0];
        assert!(said.iter().all(|s| s == first), "{said:#?}");
        let sheets = first["types"].as_array().unwrap().iter().find(|t| t["canvas_type"] == "sheets").unwrap();
        assert_eq!(sheets["verdicts"], json!(["closes_quickly"]));
        assert_eq!((&sheets["presented"], &sheets["closed_quickly"]), (&json!(2), &json!(1)));
        assert_eq!((&sheets["dwell_seconds"], &sheets["dwell_recorded"]), (&json!(2.5), &json!(1)));
        // v7 depends on e3 by the episode's list alone; e3 has no known feedback.
        assert_eq!(
            (&sheets["episodes"], &sheets["feedback"], &sheets["feedback_n"]),
            (&json!(2), &json!(1.0), &json!(1))
        );
        let forms = first["types"].as_array().unwrap().iter().find(|t| t["canvas_type"] == "forms").unwrap();
        assert_eq!(forms["verdicts"], json!(["engages", "submits"]));
        assert_eq!((&forms["dwell_seconds"], &forms["corrected"]), (&json!(30.0), &json!(1)));
        assert!((forms["reward"].as_f64().unwrap() - 0.6).abs() < 1e-9);
        assert_eq!(first["user_interaction_patterns"]["submits"], json!(["forms"]));
        assert_eq!(first["components"].as_array().unwrap().len(), 3);
        let observed = |name: &str| {
            first["observations"].as_array().unwrap().iter().find(|o| o["observation"] == name).unwrap()["n"].clone()
        };
        assert_eq!((observed("thumbs_up_feedback"), observed("thumbs_down_feedback")), (json!(1), json!(1)));
        assert_eq!((&first["forgetting"]["stale"], &first["forgetting"]["overdue"]), (&json!(2), &json!(1)));
        let misleads = first["memories"]["mislead"].as_array().unwrap().iter().find(|m| m["id"] == "m-bad").unwrap();
        assert_eq!(
            (&misleads["id"], &misleads["n"], &misleads["title"]),
            (&json!("m-bad"), &json!(3), &json!("An old price list"))
        );
        assert!((misleads["utility"].as_f64().unwrap() - 0.2).abs() < 1e-9);
    });
}

#[test]
fn graduation_takes_quality_apart_and_counts_interventions_by_source() {
    block_on(async {
        let mut said = Vec::new();
        for world in both().await {
            said.push(json!(understand::graduation(&world.store, "ag-1", NOW, &silent).await.expect("graduation")));
            let nobody = understand::graduation(&world.store, "nobody", NOW, &silent).await;
            assert!(matches!(nobody, Err(LabError::NotFound(_))), "{nobody:?}");
            let other =
                understand::graduation(&world.store, "ag-2", NOW, &silent).await.expect("an agent without episodes");
            assert_eq!((other.quality.score, other.interventions.rate), (None, None));
        }
        let first = &said[0];
        assert!(said.iter().all(|s| s == first), "{said:#?}");
        let value = |i: usize| first["quality"]["terms"][i]["value"].as_f64().unwrap();
        // success, failure, partial, success; canvases 0 (closed quickly), 1 (submitted), 0.5; aggregates 1 and -0.5.
        assert_eq!((value(0), value(1), value(2)), (0.625, 0.5, 0.625));
        let deviation = ((2.0 * 0.375_f64.powi(2) + 0.625_f64.powi(2) + 0.125_f64.powi(2)) / 4.0).sqrt();
        assert!((value(3) - (1.0 - 2.0 * deviation)).abs() < 1e-12);
        let sum: f64 =
            first["quality"]["terms"].as_array().unwrap().iter().map(|t| t["contribution"].as_f64().unwrap()).sum();
        assert!((sum - first["quality"]["score"].as_f64().unwrap()).abs() < 1e-9);
        let by = &first["interventions"];
        assert_eq!(
            (&by["chat"], &by["canvas"], &by["workflow"], &by["rate"]),
            (&json!(1), &json!(1), &json!(3), &json!(1.25))
        );
        assert_eq!(
            (&first["canvas_periods"]["last"], &first["canvas_periods"]["previous"]),
            (&json!(0.5), &json!(0.5))
        );
        assert_eq!(first["coded"], Value::Null);
    });
}

#[test]
fn of_episodes_of_one_start_the_ids_decide_which_are_the_latest() {
    block_on(async {
        for world in both().await {
            let mut rows: Vec<String> = (0..40)
                .map(|n| {
                    let outcome = if n < 20 && n % 2 == 0 { "failure" } else { "success" };
                    format!("('o-{n:02}', 'ag-2', 'u-2', 'x', '{outcome}', '2026-05-01T10:00:00.000000Z')")
                })
                .collect();
            for _ in 0..2 {
                world
                    .write(&format!(
                        "DELETE FROM episodes WHERE agent_id = 'ag-2';
                         INSERT INTO episodes (id, agent_id, user_id, title, outcome, started_at) VALUES {}",
                        rows.join(", ")
                    ))
                    .await;
                let found = understand::graduation(&world.store, "ag-2", NOW, &silent).await.expect("graduation");
                // Of the first 20 ids every second one failed.
                let consistency = &found.quality.terms[3];
                assert_eq!((consistency.name, consistency.n, consistency.value), ("consistency", 20, Some(0.0)));
                rows.reverse();
            }
        }
    });
}

#[test]
fn atom_shows_the_coded_formula_beside_the_documented_one() {
    block_on(async {
        let mut said: Vec<Value> = Vec::new();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("atom.db");
        crate::support::fixtures::build_sqlite_as_postgres(Layout::Atom, &path).await;
        let mut stores = vec![Store::open(&Target::File(path), &crate::support::options()).await.expect("it opens")];
        let database = Database::fresh();
        if let Some(database) = &database {
            build_postgres(Layout::Atom, database.url()).await;
            let target = Target::Postgres(database.url().to_owned());
            stores.push(Store::open(&target, &crate::support::options()).await.expect("it opens"));
        }
        for store in &stores {
            let agents = understand::agents(store).await.expect("agents");
            let mut all = Vec::new();
            for agent in &agents {
                let found = understand::graduation(store, agent, NOW, &silent).await.expect("graduation");
                let coded = found.coded.as_ref().expect("the coded formula");
                assert_eq!(coded.readiness.terms.len(), 7);
                assert!(coded.readiness.terms.iter().all(|t| t.value.is_some()));
                all.push(json!(found));
            }
            let insights = understand::insights(store, None, NOW, None, &silent).await.expect("insights");
            assert!(insights.rules.iter().any(|r| r.name.contains("as coded")));
            all.push(insights_json(&insights));
            said.push(Value::from(all));
        }
        assert!(said.iter().all(|s| *s == said[0]));
    });
}

#[test]
fn every_layout_answers_or_says_what_is_missing() {
    block_on(async {
        for layout in Layout::ON_SQLITE {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("memory.db");
            build_sqlite(*layout, &path).await;
            let store = Store::open(&Target::parse(&path.display().to_string()), &crate::support::options())
                .await
                .expect("it opens");
            let found = understand::insights(&store, None, NOW, None, &silent)
                .await
                .unwrap_or_else(|e| panic!("{layout:?}: {e}"));
            assert!(found.canvas_events > 0 || found.notes.iter().any(|n| n.contains("canvas")), "{layout:?}");
            for agent in understand::agents(&store).await.expect("agents") {
                let graduated = understand::graduation(&store, &agent, NOW, &silent).await;
                assert!(graduated.is_ok() || matches!(graduated, Err(LabError::Store(_))), "{layout:?}: {graduated:?}");
            }
        }
    });
}

#[test]
fn a_policy_learns_from_what_a_bank_recalled_and_is_stored_for_review() {
    block_on(async {
        let mut weights = Vec::new();
        for world in both().await {
            let store = &world.store;
            let pairs = training::from_bank(store, Some("pr-1"), &silent).await.expect("pairs");
            assert_eq!(pairs.examples.len(), 120);
            let plan = policy::train(store, "pr-1", &pairs, 1).await.expect("a plan");
            let again = policy::train(store, "pr-1", &pairs, 1).await.expect("a plan");
            assert_eq!(plan.changes[0].after["weights"], again.changes[0].after["weights"]);
            assert!(training::versions(store, None, &silent).await.expect("versions").list.is_empty());
            let receipt = change::apply(store, &plan, &author()).await.expect("a receipt");
            assert_eq!(
                (receipt.counts["agent_memory_policies"]["insert"], receipt.counts["agent_memory_audit"]["insert"]),
                (1, 1)
            );
            let versions = training::versions(store, None, &silent).await.expect("versions").list;
            let [version] = &versions[..] else { panic!("{versions:?}") };
            assert_eq!((version.row.text("status"), version.in_use), (Some("training"), false));
            assert_eq!((version.purged.cases, version.purged.gone), (Some(48), Some(0)));
            let learned = version.policy.clone().expect("weights");
            assert!(learned.weights[1] + learned.weights[2] > 2.0, "{learned:?}");
            weights.push(version.row.get("weights").clone());

            let measured = assess::measure(store, Some(version.row.id()), None, 1, &silent).await.expect("numbers");
            assert_eq!(measured.assessment.verdict, "unknown");
            assert!(measured.assessment.n < 120 && measured.all_pairs.is_some());
            // A stale plan does not make a second version 1.
            let stale = change::apply(store, &again, &author()).await;
            assert!(matches!(stale, Err(ChangeError::Conflict { .. })), "{stale:?}");
            let plan = undo::undo(store, receipt.audit_seq.unwrap()).await.expect("an undo");
            change::apply(store, &plan, &author()).await.expect("it is undone");
            assert!(training::versions(store, None, &silent).await.expect("versions").list.is_empty());
        }
        assert!(weights.iter().all(|w| *w == weights[0]), "{weights:?}");
    });
}

#[test]
fn queries_held_out_are_known_again_until_the_pairs_change() {
    block_on(async {
        for world in both().await {
            let store = &world.store;
            let pairs = training::from_bank(store, Some("pr-1"), &silent).await.expect("pairs");
            let plan = policy::train(store, "pr-1", &pairs, 1).await.expect("a plan");
            change::apply(store, &plan, &author()).await.expect("a receipt");
            let id = training::versions(store, None, &silent).await.expect("versions").list[0].row.id().to_owned();
            let before = assess::measure(store, Some(&id), None, 1, &silent).await.expect("numbers");
            assert!(before.all_pairs.is_some());
            assert_eq!(before.assessment.metrics.auc, plan.changes[0].after["metrics"]["auc"].as_f64());

            // A case that recalled nothing is in no pair.
            world
                .write(
                    "INSERT INTO agent_memory_cases (id, profile_id, message_hash, reward, created_at) VALUES
                     ('a-lone-case', 'pr-1', 'h-a', 1.0, '2026-05-01T00:00:00.000000Z')",
                )
                .await;
            let after = assess::measure(store, Some(&id), None, 1, &silent).await.expect("numbers");
            assert_eq!(before, after);

            world.write("UPDATE agent_memory_cases SET reward = 0.0 WHERE id = 'query-00'").await;
            let changed = assess::measure(store, Some(&id), None, 1, &silent).await.expect("numbers");
            assert!(changed.all_pairs.is_none() && changed.assessment.n == 120);
            assert!(changed.notes.iter().any(|note| note.contains("may flatter it")), "{:?}", changed.notes);
        }
    });
}

#[test]
fn scores_of_different_banks_policies_are_not_compared() {
    block_on(async {
        for world in both().await {
            let store = &world.store;
            let pairs = training::from_bank(store, Some("pr-1"), &silent).await.expect("pairs");
            let plan = policy::train(store, "pr-1", &pairs, 1).await.expect("a plan");
            change::apply(store, &plan, &author()).await.expect("a receipt");
            world.write("UPDATE agent_memory_policies SET status = 'active'").await;
            let alone = assess::measure(store, None, None, 1, &silent).await.expect("numbers");
            // A bank in which everything went well: it cannot tell one case from another.
            let case = |id: &str, references: &str| {
                format!(
                    "INSERT INTO agent_memory_cases (id, profile_id, message_hash, prompt, outcome, reward,
                     reference_case_ids, created_at) VALUES ('{id}', 'pr-2', '{id}', '{{\"message\": \"freight {id}\"}}',
                     'success', 1.0, '{references}', '2026-04-01T00:00:00.000000Z')"
                )
            };
            world.write(&case("z-source", "[]")).await;
            for n in 0..30 {
                world.write(&case(&format!("z-query-{n}"), "[\"z-source\"]")).await;
            }
            world
                .write(
                    "INSERT INTO agent_memory_policies (id, profile_id, version, weights, status)
                     SELECT 'pol-2', 'pr-2', 1, weights, 'active' FROM agent_memory_policies",
                )
                .await;
            let both = assess::measure(store, None, None, 1, &silent).await.expect("numbers");
            assert_eq!(
                (both.what.as_str(), both.assessment.n),
                ("the versions in use, of 2 banks", alone.assessment.n + 30)
            );
            assert_eq!(both.assessment.metrics.auc, alone.assessment.metrics.auc);
        }
    });
}

#[test]
fn a_policy_in_use_that_cannot_be_read_is_told_wherever_it_counts() {
    block_on(async {
        for world in both().await {
            let json = if world.database.is_some() { "::jsonb" } else { "" };
            let policy = |id: &str, bank: &str, weights: &str| {
                format!(
                    "INSERT INTO agent_memory_policies (id, profile_id, version, weights, status) VALUES \
                     ('{id}', '{bank}', 1, '{weights}'{json}, 'active');"
                )
            };
            world.write(&policy("broken", "pr-1", "{}")).await;
            let refused = assess::measure(&world.store, None, None, 0, &silent).await;
            assert!(matches!(&refused, Err(LabError::Refused(words)) if words.contains("broken")), "{refused:?}");
            let mut kinds = Vec::new();
            let mut told = |news: FindingNews| {
                if let FindingNews::Found(finding) = news {
                    kinds.push((finding.kind, finding.examples));
                }
                ControlFlow::Continue(())
            };
            let wanted = FindingRequest { examples: 5, ..FindingRequest::default() };
            look(&world.store, &wanted, &mut told).await.expect("a look");
            assert!(kinds.contains(&("unusable_policy", vec!["broken".to_owned()])), "{kinds:?}");
            let ask = judge::EvaluationRequest { kind: Some(Entity::Case), ..judge::EvaluationRequest::stored(4, 0) };
            let judged = judge::evaluate(&world.store, &ask, &silent).await.expect("an evaluation");
            assert!(judged.notes.iter().any(|note| note.contains("the active policy broken cannot be used")));
        }
    });
}

#[test]
fn readers_take_the_highest_active_version_so_an_older_one_is_copied_as_the_newest() {
    block_on(async {
        for world in both().await {
            let store = &world.store;
            let pairs = training::from_bank(store, Some("pr-1"), &silent).await.expect("pairs");
            for seed in 1..=2 {
                let plan = policy::train(store, "pr-1", &pairs, seed).await.expect("a plan");
                change::apply(store, &plan, &author()).await.expect("a receipt");
            }
            let ids = |versions: &[Version]| -> Vec<(i64, bool, String)> {
                let one = |v: &Version| (v.row.get("version").as_i64().unwrap(), v.in_use, v.row.id().to_owned());
                versions.iter().map(one).collect()
            };
            let found = ids(&training::versions(store, Some("pr-1"), &silent).await.expect("versions").list);
            let (newer, older) = (found[0].2.clone(), found[1].2.clone());
            let plan = policy::activate(store, &newer).await.expect("a plan");
            assert_eq!(plan.counts["agent_memory_policies"]["update"], 1);
            assert!(plan.disclosures.iter().any(|d| d.contains("do not activate")), "{:?}", plan.disclosures);
            change::apply(store, &plan, &author()).await.expect("a receipt");
            assert!(policy::activate(store, &newer).await.expect("a plan").is_empty());
            // Numbers that no float holds, and a key that is twice: a copy is as it is stored.
            let odd = r#"{"reward": 9007199254740993, "reward": 9007199254740995, "bias": 0.10}"#;
            if let Some(path) = &world.path {
                let mut link =
                    SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.expect("the file");
                let update = format!("UPDATE agent_memory_policies SET weights = '{odd}' WHERE id = '{older}'");
                sqlx::raw_sql(AssertSqlSafe(update)).execute(&mut link).await.expect("an update");
            }
            let plan = policy::activate(store, &older).await.expect("a plan");
            assert_eq!(plan.counts["agent_memory_policies"]["insert"], 1);
            let text = serde_json::to_string(&plan.mutations).expect("a plan");
            assert!(world.path.is_none() || text.contains(&odd.replace('"', "\\\"")), "{text}");
            change::apply(store, &plan, &author()).await.expect("a receipt");
            let found = training::versions(store, Some("pr-1"), &silent).await.expect("versions").list;
            let used = found.iter().filter(|v| v.in_use).map(|v| v.row.clone()).collect::<Vec<_>>();
            assert_eq!(used[0].get("version"), &json!(3));
            let original = found.iter().find(|v| v.row.id() == older).unwrap();
            assert_eq!((used.len(), used[0].get("weights")), (1, original.row.get("weights")));
            assert_eq!(original.row.text("status"), Some("training"));
            assert!(matches!(policy::activate(store, "nothing").await, Err(ChangeError::NotFound(_))));
        }
    });
}

#[test]
fn ennube_gets_its_own_spelling_and_a_row_in_its_own_trail() {
    block_on(async {
        let Some(database) = layout_on_postgres(Layout::EnnubeJson).await else { return };
        let target = Target::Postgres(database.url().to_owned());
        let world = world(target, tempfile::tempdir().expect("a folder"), Some(database)).await;
        let store = &world.store;
        let before = training::versions(store, None, &silent).await.expect("versions").list;
        assert_eq!(
            before.iter().filter(|v| v.in_use).map(|v| v.row.get("version").clone()).collect::<Vec<_>>(),
            [json!(2)]
        );
        let profile = before[0].row.text("profile_id").unwrap().to_owned();
        let plan = policy::train(store, &profile, &made_up_pairs(), 1).await.expect("a plan");
        let receipt = change::apply(store, &plan, &author()).await.expect("a receipt");
        assert_eq!(receipt.counts["agent_memory_audit"]["insert"], 1);
        let versions = training::versions(store, Some(&profile), &silent).await.expect("versions").list;
        let newest = &versions[0].row;
        assert_eq!((newest.get("version"), newest.text("status")), (&json!(4), Some("training")));
        assert!(newest.get("weights").get("semanticWeight").is_some() && newest.get("metrics").get("loss").is_some());
        // Version 1 is active already and not the one in use: it is copied.
        let first = versions.last().unwrap().row.id().to_owned();
        let plan = policy::activate(store, &first).await.expect("a plan");
        change::apply(store, &plan, &author()).await.expect("a receipt");
        let used = training::versions(store, Some(&profile), &silent).await.expect("versions").list;
        assert_eq!(used.iter().find(|v| v.in_use).unwrap().row.get("version"), &json!(5));
    });
}

#[test]
fn evaluate_judges_recall_alike_on_both_engines() {
    block_on(async {
        let mut said = Vec::new();
        for world in both().await {
            let ask = judge::EvaluationRequest::stored(4, 1);
            said.push(json!(judge::evaluate(&world.store, &ask, &silent).await.expect("an evaluation")));
        }
        let first = &said[0];
        assert!(said.iter().all(|s| s == first), "{said:#?}");
        assert_eq!((&first["kind"], &first["rows"], &first["with_vector"]), (&json!("case"), &json!(48), &json!(0)));
        assert_eq!(first["quality"]["sweep"].as_array().unwrap().len(), 7);
        assert_eq!(first["self_retrieval"][0]["found"], first["self_retrieval"][0]["n"]);
        assert_eq!(
            (&first["negative_controls"][0]["n"], &first["negative_controls"][0]["answered"]),
            (&json!(50), &json!(0))
        );
        assert_eq!(first["stored"], Value::Null);
    });
}

#[test]
fn judged_queries_are_ranked_and_counted_by_hand() {
    let world = block_on(native_sqlite());
    let path = world.path.clone().expect("a file");
    let folder = path.parent().expect("a folder").to_owned();
    let judged = folder.join("judged.jsonl");
    // `price of part 7` is asked in src-7 alone; query-00 asks for part 8; the third has nothing relevant.
    let lines = [
        json!({"query": "price of part 7", "relevant": ["src-7"]}),
        json!({"like": "query-00", "relevant": {"gone": 1}, "agent_id": "ag-1"}),
        json!({"query": "price", "relevant": []}),
        json!({"like": "nothing", "relevant": ["src-1"]}),
    ];
    std::fs::write(&judged, lines.map(|l| l.to_string()).join("\n")).expect("a file");
    let found = answer(&path, &["evaluate", "--judged", &judged.display().to_string()]);
    let quality = &found["quality"];
    assert_eq!((&quality["n"], &quality["without_relevant"], &quality["k"]), (&json!(2), &json!(1), &json!(4)));
    assert_eq!((&quality["hit_rate"]["value"], &quality["precision_at_k"]["value"]), (&json!(0.5), &json!(0.125)));
    assert_eq!((&quality["mrr"]["value"], &quality["ndcg_at_k"]["value"]), (&json!(0.5), &json!(0.5)));
    let notes = found["notes"].to_string();
    assert!(notes.contains("1 query names a missing row") && notes.contains("1 relevant row is missing"));
    std::fs::write(&judged, "").expect("a file");
    for (arguments, code) in [
        (vec!["evaluate", "--judged", judged.to_str().unwrap()], 5),
        (vec!["evaluate", "--judged", "nowhere"], 3),
        (vec!["evaluate", "-k", "0"], 2),
        (vec!["evaluate", "--of", "agent"], 2),
    ] {
        assert_eq!(run(&path, &arguments).status.code(), Some(code), "{arguments:?}");
    }
    assert!(!run(&path, &["--format", "table", "evaluate"]).stdout.is_empty());
}

#[test]
fn an_episode_and_a_memory_of_one_id_are_two_rows_in_an_evaluation() {
    block_on(async {
        for world in both().await {
            world.write("INSERT INTO memories (id, kind, title) VALUES ('e1', 'drawer', 'Episode e1')").await;
            let line = r#"{"query": "Episode e1", "relevant": ["e1"]}"#;
            let judged = file::parse(line).expect("a judged query");
            let ask = judge::EvaluationRequest {
                judged: Some(judged),
                ranking: Some(Ranking::Proven),
                ..judge::EvaluationRequest::stored(10, 1)
            };
            let found = judge::evaluate(&world.store, &ask, &silent).await.expect("an evaluation");
            let (quality, spread) = (&found.quality, &found.spread);
            // One row is relevant, and it is found once.
            assert_eq!(quality.precision_at_k.value, Some(0.1));
            assert!(quality.ndcg_at_k.value.is_some_and(|gain| gain <= 1.0), "{quality:?}");
            assert_eq!(spread.recalled, spread.places, "{spread:?}");
        }
    });
}

#[test]
fn rows_that_a_ranking_never_gives_are_neither_relevant_nor_candidates() {
    block_on(async {
        for world in both().await {
            let evaluated = async |ranking: Ranking| {
                let ask = judge::EvaluationRequest { ranking: Some(ranking), ..judge::EvaluationRequest::stored(4, 1) };
                judge::evaluate(&world.store, &ask, &silent).await.expect("an evaluation")
            };
            let similar = evaluated(Ranking::Similar).await;
            let notes = similar.notes.join("; ");
            assert!(similar.rows == 4 && similar.spread.candidates == 2, "{similar:?}");
            assert!(notes.contains("2 rows are never recalled by this ranking (not a success)"), "{notes}");
            world.write("UPDATE memories SET status = 'deleted' WHERE id = 'm-bad'").await;
            let proven = evaluated(Ranking::Proven).await;
            assert_eq!(proven.spread.candidates, 5, "{:?}", proven.notes);
            world.write("UPDATE agent_memory_cases SET quarantined = (id LIKE 'src-%')").await;
            let held_back = evaluated(Ranking::Cases).await;
            let notes = held_back.notes.join("; ");
            assert!(notes.contains("8 rows are never recalled by this ranking (quarantined)"), "{notes}");
            assert_eq!((held_back.rows, held_back.spread.candidates), (48, 40));
            let judged = file::parse(r#"{"query": "price of part 7", "relevant": ["src-7"]}"#).expect("a judged query");
            let ask = judge::EvaluationRequest { judged: Some(judged), ..judge::EvaluationRequest::stored(4, 1) };
            let told = judge::evaluate(&world.store, &ask, &silent).await.expect("an evaluation");
            let notes = told.notes.join("; ");
            assert!(notes.contains("1 relevant row is not recalled by this ranking"), "{notes}");
            assert_eq!((told.quality.n, told.quality.without_relevant), (0, 1));
            // What is held back is judged as if it were gone.
            world.write("DELETE FROM agent_memory_cases WHERE id LIKE 'src-%'").await;
            let gone = evaluated(Ranking::Cases).await;
            assert_eq!((gone.rows, gone.spread.candidates), (40, 40));
            let [one, other] = [&held_back.quality, &gone.quality];
            assert_eq!(one.n, other.n);
            for ((name, one), (_, other)) in one.named().iter().zip(other.named()) {
                let (one, other) = (one.value.expect("queries"), other.value.expect("queries"));
                assert!((one - other).abs() < 1e-9, "{name}: {one} and {other}");
            }
        }
    });
}

#[test]
fn a_judged_query_searches_the_rows_that_recall_searches() {
    block_on(async {
        for world in both().await {
            // The same is asked in another bank.
            world
                .write(
                    "INSERT INTO agent_memory_cases (id, profile_id, message_hash, prompt, reward, created_at)
                     SELECT 'other', 'pr-2', 'h-other', prompt, 1.0, created_at FROM agent_memory_cases WHERE id = 'query-00'",
                )
                .await;
            let evaluated = async |query: Value| {
                let judged = file::parse(&query.to_string()).expect("a query");
                let ask = judge::EvaluationRequest {
                    ranking: Some(Ranking::Cases),
                    judged: Some(judged),
                    ..judge::EvaluationRequest::stored(4, 1)
                };
                judge::evaluate(&world.store, &ask, &silent).await.expect("an evaluation")
            };
            let itself = evaluated(json!({"like": "query-00", "relevant": ["other", "query-00"]})).await;
            let notes = itself.notes.join("; ");
            // Its own bank is searched, which has the other case not.
            assert_eq!((itself.quality.ndcg_at_k.n, itself.quality.ndcg_at_k.value), (1, Some(0.0)), "{notes}");
            assert!(notes.contains("1 row is named as relevant to itself"), "{notes}");
            let inquiry = Inquiry { like: Some("query-00".to_owned()), k: Some(4), ..Inquiry::new(Ranking::Cases) };
            for trained in [false, true] {
                if trained {
                    let weights = r#"{"bias": 0.0, "similarity": -1.0, "reward": 0.5}"#;
                    let policy = format!(
                        "INSERT INTO agent_memory_policies (id, profile_id, version, weights, status)
                         VALUES ('pol-1', 'pr-1', 1, '{weights}', 'active')"
                    );
                    world.write(&policy).await;
                }
                let given =
                    lab::recall(&world.store, &inquiry.request("2026-03-03T00:00:00.000000Z")).await.expect("rows");
                assert_eq!((given.rows.len(), given.policy.is_some()), (4, trained));
                let relevant: Vec<&str> = given.rows.iter().map(|item| item.ranked.row.id()).collect();
                let found = evaluated(json!({"like": "query-00", "relevant": relevant})).await;
                assert_eq!(found.quality.precision_at_k.value, Some(1.0), "{relevant:?}");
            }
            // An episode is asked with, too: it names no bank.
            world
                .write("INSERT INTO episodes (id, agent_id, title) VALUES ('asks', 'ag-1', 'What is the price of part 7?')")
                .await;
            for agent in [None, Some("ag-1".to_owned())] {
                let like = Inquiry { like: Some("asks".to_owned()), agent: agent.clone(), ..inquiry.clone() };
                let given =
                    lab::recall(&world.store, &like.request("2026-03-03T00:00:00.000000Z")).await.expect("rows");
                let relevant: Vec<&str> = given.rows.iter().map(|item| item.ranked.row.id()).collect();
                assert_eq!(relevant.len(), 4, "{:?}", given.notes);
                let query = json!({"like": "asks", "relevant": relevant, "agent_id": agent});
                let found = evaluated(query).await;
                assert_eq!(found.quality.precision_at_k.value, Some(1.0), "{relevant:?} {:?}", found.notes);
            }
        }
    });
}

#[test]
fn of_recorded_recalls_each_row_counts_once_and_those_that_are_gone_keep_their_places() {
    block_on(async {
        for world in both().await {
            world
                .write(
                    "INSERT INTO memory_access (id, kind, ids, created_at) VALUES
                     ('a-1', 'cases', '[\"src-0\", \"src-0\", \"src-0\", \"src-0\"]', '2026-05-01T10:00:00.000000Z'),
                     ('a-2', 'cases', '[\"g-1\", \"g-2\", \"g-3\", \"g-4\", \"src-0\"]', '2026-05-02T10:00:00.000000Z')",
                )
                .await;
            let ask = judge::EvaluationRequest::stored(4, 1);
            let found = judge::evaluate(&world.store, &ask, &silent).await.expect("an evaluation");
            let stored = found.stored.expect("recorded recalls");
            assert_eq!(stored.trail.rows, Some(3.0));
            assert_eq!((stored.precision_at_k.n, stored.spread.places, stored.spread.pairs), (1, 1, 0));
        }
    });
}

/// 60 queries with 5 cases each; cases that went well do well, mostly.
fn pairs_file() -> String {
    let line = |i: usize| {
        let (well, odd) = (i.is_multiple_of(2), i % 7 == 3);
        let label = if well { "positive" } else { "negative" };
        json!({"query": format!("what is {}", i / 5), "case": format!("where is {i}"), "case_label": label,
            "plan": "", "truth_label": well != odd})
        .to_string()
    };
    (0..300).map(line).collect::<Vec<_>>().join("\n")
}

fn made_up_pairs() -> TrainingPairs {
    training::from_file("pairs.jsonl", &pairs_file()).expect("pairs")
}

fn run(path: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    program.arg("-d").arg(path).args(arguments).env_remove("MNEMOSCOPE_DATABASE").output().expect("it runs")
}

fn answer(path: &Path, arguments: &[&str]) -> Value {
    let output = run(path, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{arguments:?}: {e}"))
}

#[test]
fn the_commands_train_evaluate_and_refuse() {
    let world = block_on(native_sqlite());
    let path = world.path.clone().expect("a file");
    let folder = path.parent().expect("a folder").to_owned();
    let file = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let pairs = file("pairs.jsonl", &pairs_file());
    let whole = answer(&path, &["policy", "evaluate", "--pairs", &pairs]);
    assert_eq!(
        (&whole["n"], &whole["queries"], &whole["verdict"]),
        (&json!(300), &json!(60), &json!("better than chance"))
    );
    let [low, high] = [0, 1].map(|i| whole["interval"]["auc"][i].as_f64().unwrap());
    let auc = whole["metrics"]["auc"].as_f64().unwrap();
    assert!(0.5 < low && low <= auc && auc <= high);
    assert!(["brier", "ece", "loss"].iter().all(|name| whole["metrics"][name].is_number()));
    assert_eq!(whole["features"].as_array().unwrap().len(), 6);

    let receipt = answer(&path, &["policy", "train", "pr-1", "--pairs", &pairs, "--apply"]);
    let id = receipt["changes"][0]["id"].as_str().unwrap();
    let measured = answer(&path, &["policy", "evaluate", id, "--pairs", &pairs]);
    assert_eq!((&measured["n"], &measured["policy"]), (&json!(60), &json!(id)));
    assert_eq!(measured["metrics"], {
        let stored = &receipt["changes"][0]["after"]["metrics"];
        json!({"auc": stored["auc"], "brier": stored["brier"], "ece": stored["ece"], "loss": stored["loss"]})
    });
    let listed = answer(&path, &["policy", "list"]);
    assert_eq!((&listed["rows"][0]["in_use"], &listed["rows"][0]["status"]), (&json!(false), &json!("training")));
    answer(&path, &["policy", "activate", id, "--apply"]);
    assert_eq!(answer(&path, &["policy", "list", "--bank", "pr-1"])["rows"][0]["in_use"], json!(true));

    let good = pairs_file().lines().filter(|l| l.contains("\"truth_label\":true")).collect::<Vec<_>>().join("\n");
    let one_kind = answer(&path, &["policy", "evaluate", id, "--pairs", &file("good.jsonl", &good)]);
    assert_eq!((&one_kind["metrics"]["auc"], &one_kind["verdict"]), (&Value::Null, &json!("unknown")));
    assert!(["brier", "ece", "loss"].iter().all(|name| one_kind["metrics"][name].is_number()), "{one_kind}");

    for (arguments, code, words) in [
        (vec!["policy", "train", "pr-1", "--pairs", &file("none.jsonl", "\n")], 5, "there are no pairs"),
        (vec!["policy", "train", "pr-1", "--pairs", &file("one.jsonl", &good)], 5, "are positive"),
        (vec!["policy", "evaluate", "--pairs", &file("one.jsonl", &good)], 5, "are positive"),
        (vec!["policy", "train", "pr-1", "--pairs", &file("bad.jsonl", "{\"query\": 1}")], 2, "line 1"),
        (vec!["policy", "train", "pr-1", "--pairs", "nowhere.jsonl"], 3, "no such file"),
        (vec!["policy", "train", "pr-2"], 5, "there are no pairs"),
        (vec!["policy", "train", "pr-9", "--pairs", &pairs], 3, "there is no profile"),
        (vec!["policy", "evaluate", "nothing"], 3, "there is no policy"),
        (vec!["graduation", "nobody"], 3, "there is no agent"),
        (vec!["insights", "--agent", "nobody"], 3, "there is no agent"),
    ] {
        let output = run(&path, &arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    for arguments in
        [vec!["insights"], vec!["graduation", "ag-1"], vec!["policy", "list"], vec!["policy", "evaluate", id]]
    {
        let output = run(&path, &[&["--format", "table"], &arguments[..]].concat());
        assert!(output.status.success() && !output.stdout.is_empty(), "{arguments:?}");
    }
}

/// Evaluation ranks as recall does: what recall gives first is found at rank 1 in every ranking.
#[test]
fn evaluation_judges_the_ranking_that_recall_gives() {
    block_on(async {
        for world in both().await {
            let store = &world.store;
            let at = "2026-05-30T10:00:00.000000Z";
            for (ranking, ids) in [
                (Ranking::Boosted, ["e1", "e2", "e3"]),
                (Ranking::Similar, ["e1", "e2", "e3"]),
                (Ranking::Proven, ["e1", "e3", "e4"]),
                (Ranking::Cases, ["query-07", "query-12", "src-3"]),
            ] {
                let mut judged = Vec::new();
                for id in ids {
                    let (like, agent) = (Some(id.to_owned()), Some("ag-1".to_owned()));
                    let inquiry = Inquiry { like, agent, ..Inquiry::new(ranking) };
                    let answer = lab::recall(store, &inquiry.request(at)).await.expect("an answer");
                    let first = answer.rows.first().expect("a row").ranked.row.id().to_owned();
                    judged.push(file::JudgedQuery {
                        asked: file::JudgedQuestion::Like(id.to_owned()),
                        relevant: [(first, 1.0)].into(),
                        agent: inquiry.agent,
                        user: None,
                    });
                }
                let kind = if ranking == Ranking::Cases { Entity::Case } else { Entity::Episode };
                let ask = judge::EvaluationRequest {
                    kind: Some(kind),
                    ranking: Some(ranking),
                    judged: Some(judged),
                    ..judge::EvaluationRequest::stored(4, 1)
                };
                let found = judge::evaluate(store, &ask, &silent).await.expect("an evaluation");
                assert_eq!(found.quality.mrr.value, Some(1.0), "{ranking:?}: {found:#?}");
                assert_eq!((found.ranking, found.tokens.n), (ranking.name(), 3));
            }
            let ask = judge::EvaluationRequest {
                ranking: Some(Ranking::Similar),
                kind: Some(Entity::Case),
                ..judge::EvaluationRequest::stored(4, 1)
            };
            assert!(matches!(judge::evaluate(store, &ask, &silent).await, Err(LabError::Usage(_))));
        }
    });
}

/// At recall a case's situation has the features that it had in training: what it was asked, without its tags.
#[test]
fn a_policy_sees_a_stored_case_at_recall_as_in_training() {
    block_on(async {
        let world = native_sqlite().await;
        let plan = policy::train(
            &world.store,
            "pr-1",
            &training::from_bank(&world.store, Some("pr-1"), &silent).await.expect("pairs"),
            1,
        )
        .await
        .expect("a plan");
        change::apply(&world.store, &plan, &author()).await.expect("a receipt");
        let versions = training::versions(&world.store, Some("pr-1"), &silent).await.expect("versions").list;
        let (like, policy) = (Some("query-07".to_owned()), Some(versions[0].row.id().to_owned()));
        let request = Inquiry { like, policy, ..Inquiry::new(Ranking::Cases) }.request("2026-04-01T00:00:00.000000Z");
        let answer = lab::recall(&world.store, &request).await.expect("an answer");
        let asked = world.store.row(Entity::Case, "query-07").await.expect("a row").expect("the case");
        let situation = Situation::of_case(&asked, &request.at);
        for item in &answer.rows {
            let seen = features(&situation, &item.ranked.row, None);
            let terms: Vec<f64> = item.ranked.score.terms.iter().skip(1).map(|t| t.value).collect();
            assert_eq!(terms, seen, "{}", item.ranked.row.id());
        }
        assert!(!answer.rows.is_empty());
    });
}
