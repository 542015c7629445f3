//! Rows copied into a native database: all of them, those that meet a condition with what belongs to them, and what the
//! comparison tells. On both engines.

use std::collections::BTreeSet;

use mnemoscope::memory::query::Query;
use mnemoscope::memory::{Entity, Row};
use mnemoscope::store::Target;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use crate::asking::assert_fits;
use crate::support::block_on;
use crate::support::fixtures::Layout;
use crate::support::world::*;

#[test]
fn every_kind_of_row_is_copied_into_a_new_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| run(folder.path(), arguments);
    assert_eq!(run(&["demo", "demo.db", "--no-console", "--episodes", "20"]).0, Some(0));
    assert_eq!(run(&["-d", "new.db", "migrate", "--apply"]).0, Some(3), "nobody says of which layout");
    assert_eq!(run(&["-d", "new.db", "--layout", "mnemoscope", "migrate"]).0, Some(3), "a plan makes no file");
    assert!(!folder.path().join("new.db").exists());
    assert_eq!(run(&["-d", "none/new.db", "--layout", "mnemoscope", "migrate", "--apply"]).0, Some(1));
    let (code, _, words) = run(&["-d", "new.db", "--layout", "mnemoscope", "migrate", "--apply"]);
    assert_eq!(code, Some(0), "{words}");
    let (code, copied, words) = run(&["copy", "--from", "demo.db", "--to", "new.db", "--apply"]);
    assert_eq!(code, Some(0), "{words} {copied:#}");
    let rows = |database: &str| -> Vec<(String, i64)> {
        let (_, status, words) = run(&["-d", database, "status"]);
        let tables = status["tables"].as_array().unwrap_or_else(|| panic!("{words}"));
        let row = |table: &Value| {
            (table["name"].as_str().expect("a name").to_owned(), table["rows"].as_i64().expect("a number"))
        };
        tables.iter().map(row).filter(|(name, _)| !name.contains("memory_audit")).collect()
    };
    let there = rows("new.db");
    let lacking: Vec<_> = rows("demo.db").into_iter().filter(|table| !there.contains(table)).collect();
    assert!(lacking.is_empty(), "{lacking:?} {there:?}");
}

#[test]
fn rows_of_another_layout_are_copied_into_a_native_database_and_compared() {
    block_on(async {
        let source = on_sqlite(Layout::Atom).await;
        for target in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            let folder = tempfile::tempdir().expect("a folder");
            let (from, to) = (address(&source), address(&target));
            let before = ids(&target, Entity::Episode).await.len();
            let (code, plan, words) = run(folder.path(), &["copy", "--from", &from, "--to", &to]);
            assert_eq!((code, &plan["status"]), (Some(0), &json!("planned")), "{words}");
            assert_fits("copy", &plan);
            // What cannot be read in the source is told before anything is written.
            let told = plan["disclosures"].to_string();
            assert!(told.contains("episode `canvas_ids` value") && told.contains("cannot be read"), "{told}");
            assert_eq!(ids(&target, Entity::Episode).await.len(), before, "a plan writes nothing");
            let (code, shown, words) = run(folder.path(), &["copy", "--from", &from, "--to", &to, "--apply"]);
            // PostgreSQL's texts hold no NUL: the one episode with one stays behind, and that is said.
            let left: Vec<String> = match &target.target {
                Target::File(_) => Vec::new(),
                Target::Postgres(_) => vec!["ep-nul".to_owned()],
            };
            assert_eq!(code, Some(if left.is_empty() { 0 } else { 6 }), "{words} {shown:#}");
            assert_eq!(shown["counts"], plan["counts"]);
            assert_fits("copy", &shown);
            let episodes = ids(&source, Entity::Episode).await;
            let there = ids(&target, Entity::Episode).await;
            assert!(episodes.iter().all(|id| there.contains(id) != left.contains(id)));
            assert_eq!(shown["compared"]["episode"]["source"], json!(episodes.len()));
            assert_eq!(shown["compared"]["episode"]["missing"], json!(left.len()));
            assert_eq!(shown["compared"]["episode"]["examples"], json!(left));
            let differing: Vec<&Value> = shown["compared"].as_object().into_iter().flat_map(|c| c.values()).collect();
            assert!(differing.iter().all(|c| c["different"] == json!(0)), "{:#}", shown["compared"]);
            let scores = &shown["compared"]["feedback"]["left_out"]["score"];
            assert!(
                scores.as_u64() > Some(0),
                "scores that no thumb and no rating tells: {:#}",
                shown["compared"]["feedback"]
            );
            let canvas_types = |rows: Vec<Row>| rows.iter().filter(|row| !row.get("canvas_type").is_null()).count();
            let all = Query { limit: 500, ..Query::new(Entity::CanvasEvent) };
            let (here, there) = (source.store.page(&all).await, target.store.page(&all).await);
            assert!(canvas_types(there.expect("rows").rows) >= canvas_types(here.expect("rows").rows));
            let (_, again, words) = run(folder.path(), &["copy", "--from", &from, "--to", &to, "--apply"]);
            assert_eq!(again["status"], json!("nothing to do"), "{words} {again:#}");
            let (code, ..) = run(folder.path(), &["copy", "--from", &to, "--to", &from]);
            assert_eq!(code, Some(5), "the target is not native");
        }
    });
}

#[test]
fn rows_of_two_people_with_the_same_ids_are_not_mixed() {
    block_on(async {
        let source = small().await;
        let of = |user: &str, day: u32| {
            format!(
                "INSERT INTO episodes (id, user_id, agent_id, started_at) VALUES ('ep_1', '{user}', 'a', '2026-01-0{day}T10:00:00Z'); \
                 INSERT INTO episode_segments (id, episode_id, sequence, kind, content) VALUES ('s-{user}', 'ep_1', 1, 'message', 'x')"
            )
        };
        meddle(&source, &of("ann", 1)).await;
        for target in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(&target, &of("bob", 2)).await;
            let folder = tempfile::tempdir().expect("a folder");
            let (from, to) = (address(&source), address(&target));
            let words = ["copy", "--from", &from, "--to", &to, "--where", "user_id = ann", "--apply"];
            let (code, shown, words) = run(folder.path(), &words);
            assert_eq!(code, Some(6), "{words}");
            let told = shown["disclosures"].to_string();
            assert!(told.contains("1 row has the id of another row in the database"), "{told}");
            let segments = "SELECT id FROM episode_segments WHERE episode_id = 'ep_1'";
            assert_eq!(texts(&target, segments).await, ["s-bob"]);
        }
    });
}

/// Everything of one person in the demo, by raw SQL: what a copy with `user_id = ?1` takes of each kind.
const OF_ONE: [(Entity, &str); 12] = [
    (Entity::Subject, "SELECT id FROM subjects WHERE id = ?1"),
    (Entity::Episode, "SELECT id FROM episodes WHERE user_id = ?1"),
    (
        Entity::Segment,
        "SELECT id FROM episode_segments WHERE episode_id IN (SELECT id FROM episodes WHERE user_id = ?1)",
    ),
    (
        Entity::UtilityEvent,
        "SELECT id FROM utility_events WHERE episode_id IN (SELECT id FROM episodes WHERE user_id = ?1)",
    ),
    (Entity::Memory, "SELECT id FROM memories WHERE user_id = ?1"),
    (
        Entity::MemoryLink,
        "SELECT episode_id || ' ' || memory_id FROM episode_memories WHERE episode_id IN (SELECT id FROM episodes WHERE \
         user_id = ?1) AND memory_id IN (SELECT id FROM memories WHERE user_id = ?1 UNION SELECT id FROM agent_memory_cases \
         WHERE user_id = ?1)",
    ),
    (Entity::Profile, "SELECT id FROM agent_memory_profiles WHERE user_id = ?1"),
    (Entity::Case, "SELECT id FROM agent_memory_cases WHERE user_id = ?1"),
    (
        Entity::Policy,
        "SELECT id FROM agent_memory_policies WHERE profile_id IN (SELECT id FROM agent_memory_profiles WHERE user_id = ?1)",
    ),
    (
        Entity::WorkflowEvent,
        "SELECT id FROM workflow_events WHERE run_id IN (SELECT r.value FROM episodes e, json_each(e.execution_ids) r \
         WHERE e.user_id = ?1)",
    ),
    (
        Entity::Agent,
        "SELECT id FROM agents WHERE id IN (SELECT agent_id FROM episodes WHERE user_id = ?1 UNION SELECT agent_id FROM \
         agent_memory_profiles WHERE user_id = ?1)",
    ),
    (Entity::Access, "SELECT id FROM memory_access WHERE user_id = ?1"),
];

async fn selected(file: &std::path::Path, sql: &str, value: &str) -> BTreeSet<String> {
    let mut link = sqlite(file).await;
    let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).bind(value.to_owned());
    query.fetch_all(&mut link).await.expect(sql).into_iter().collect()
}

async fn keys(target: &Target, entity: Entity) -> BTreeSet<String> {
    let all = Query { limit: 100_000, ..Query::new(entity) };
    let rows = open(target).await.page(&all).await.expect("rows").rows;
    let key = |row: &Row| match row.text("memory_id") {
        Some(memory) => format!("{} {memory}", row.text("episode_id").unwrap_or_default()),
        None => row.id().to_owned(),
    };
    rows.iter().map(key).collect()
}

/// New native databases: a file, and one on the server where there is one.
fn natives(folder: &std::path::Path) -> (Vec<Target>, Option<crate::support::postgres::Database>) {
    let database = crate::support::postgres::Database::fresh();
    let server = database.as_ref().map(|database| Target::Postgres(database.url().to_owned()));
    let targets: Vec<Target> = std::iter::once(Target::File(folder.join("native.db"))).chain(server).collect();
    for target in &targets {
        let words = ["-d", &address_of(target), "--layout", "mnemoscope", "migrate", "--apply"];
        assert_eq!(run(folder, &words).0, Some(0));
    }
    (targets, database)
}

fn told(shown: &Value) -> String {
    shown["disclosures"].to_string()
}

#[test]
fn a_copy_of_one_person_takes_nothing_of_others() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(run(folder.path(), &["demo", "demo.db", "--no-console", "--episodes", "400"]).0, Some(0));
        let demo = folder.path().join("demo.db");
        // Weights that someone's choices taught, next to those of others.
        let busiest = "SELECT e.user_id FROM episodes e JOIN agent_memory_profiles p ON p.user_id = e.user_id JOIN memories m \
            ON m.user_id = e.user_id WHERE e.user_id <> ?1 GROUP BY 1 ORDER BY count(DISTINCT e.id) DESC LIMIT 1";
        let person = selected(&demo, busiest, "").await.pop_first().expect("someone");
        let taught = "INSERT INTO agent_memory_policies (id, profile_id, version, weights, status, trained_at) \
            SELECT 'taught-' || id, id, 1, '{}', 'active', '2026-06-01T00:00:00.000000Z' FROM agent_memory_profiles";
        Agent::of(&Target::File(demo.clone())).await.run(taught).await;
        let (targets, _database) = natives(folder.path());
        for target in &targets {
            let condition = format!("user_id = {person}");
            let words = ["copy", "--from", "demo.db", "--to", &address_of(target), "--where", &condition];
            let (code, plan, told_of) = run(folder.path(), &words);
            assert_eq!(code, Some(0), "{told_of}");
            let (code, shown, told_of) = run(folder.path(), &[&words[..], &["--apply"]].concat());
            assert_eq!(code, Some(0), "{told_of} {shown:#}");
            assert_eq!((&shown["counts"], &shown["disclosures"]), (&plan["counts"], &plan["disclosures"]));
            for (entity, sql) in OF_ONE {
                let expected = selected(&demo, sql, &person).await;
                assert!(!expected.is_empty(), "{entity}: the demo has none of {person}");
                assert_eq!(keys(target, entity).await, expected, "{entity}");
                assert_eq!(shown["rows"][entity.name()], json!(expected.len()), "{entity}");
                assert_eq!(shown["compared"][entity.name()]["equal"], json!(expected.len()), "{entity}");
            }
            // What stays behind is told with its number.
            for (entity, table) in [("segment", "episode_segments"), ("policy", "agent_memory_policies")] {
                let all = selected(&demo, &format!("SELECT id FROM {table} WHERE ?1 = ?1"), "").await.len();
                let left = all as u64 - shown["rows"][entity].as_u64().expect("a number");
                let sentence = format!("\"{} {entity} rows are left out: ", mnemoscope::memory::thousands(left));
                assert!(told(&shown).contains(&sentence), "{sentence} {:#}", shown["disclosures"]);
            }
        }
    });
}

#[test]
fn kinds_without_the_column_of_a_condition_go_with_rows_that_are_copied_or_are_told_of() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(run(folder.path(), &["demo", "demo.db", "--no-console", "--episodes", "120"]).0, Some(0));
        let demo = folder.path().join("demo.db");
        let (targets, _database) = natives(folder.path());
        for target in &targets {
            let words =
                ["copy", "--from", "demo.db", "--to", &address_of(target), "--where", "domain = finance", "--apply"];
            let (code, shown, told_of) = run(folder.path(), &words);
            assert_eq!(code, Some(0), "{told_of} {shown:#}");
            for (entity, sql) in [
                (Entity::Episode, "SELECT id FROM episodes WHERE domain = ?1"),
                (Entity::Feedback, "SELECT id FROM said"),
                (
                    Entity::Agent,
                    "SELECT id FROM agents WHERE id IN (SELECT agent_id FROM episodes WHERE domain = ?1 UNION \
                    SELECT agent_id FROM said)",
                ),
                (
                    Entity::Subject,
                    "SELECT user_id FROM (SELECT user_id FROM episodes WHERE domain = ?1 UNION \
                    SELECT user_id FROM said) WHERE user_id IS NOT NULL",
                ),
            ] {
                // Feedback of these episodes: it names one, or its run, or one lists it.
                let said = "WITH said AS (SELECT DISTINCT f.* FROM agent_feedback f, episodes e WHERE e.domain = ?1 AND \
                    (f.episode_id = e.id OR f.episode_id IS NULL AND f.execution_id IN (SELECT value FROM \
                    json_each(e.execution_ids)) OR f.id IN (SELECT value FROM json_each(e.feedback_ids))))";
                let expected = selected(&demo, &format!("{said} {sql}"), "finance").await;
                assert!(!expected.is_empty(), "{entity}: the demo has none");
                assert_eq!(keys(target, entity).await, expected, "{entity}");
            }
            for (entity, table) in [("memory", "memories"), ("case", "agent_memory_cases"), ("access", "memory_access")]
            {
                let all = selected(&demo, &format!("SELECT id FROM {table} WHERE ?1 = ?1"), "").await.len();
                assert_eq!(shown["rows"][entity], json!(0), "{entity}");
                assert!(
                    told(&shown).contains(&format!("\"{all} {entity} rows are left out: ")),
                    "{all} {entity} {shown:#}"
                );
            }
        }
    });
}

#[test]
fn an_id_that_a_condition_names_is_that_of_the_row_itself_too() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(run(folder.path(), &["demo", "demo.db", "--no-console", "--episodes", "60"]).0, Some(0));
        let demo = folder.path().join("demo.db");
        for (column, entity, table) in [
            ("episode_id", Entity::Episode, "episodes"),
            ("agent_id", Entity::Agent, "agents"),
            ("profile_id", Entity::Profile, "agent_memory_profiles"),
        ] {
            let (targets, _database) = natives(folder.path());
            let id = selected(&demo, &format!("SELECT min(id) FROM {table} WHERE ?1 = ?1"), "")
                .await
                .pop_first()
                .expect("one");
            for target in &targets {
                let condition = format!("{column} = {id}");
                let words = ["copy", "--from", "demo.db", "--to", &address_of(target), "--where", &condition];
                assert_eq!(run(folder.path(), &[&words[..], &["--apply"]].concat()).0, Some(0), "{condition}");
                assert_eq!(keys(target, entity).await, BTreeSet::from([id.clone()]), "{condition}");
            }
            std::fs::remove_file(folder.path().join("native.db")).expect("removed");
        }
        let words = ["copy", "--from", "demo.db", "--to", "native.db", "--where", "usr_id = ann"];
        assert_eq!(run(folder.path(), &words).0, Some(3), "no such target yet");
    });
}

#[test]
fn values_that_the_target_fills_are_no_difference_and_rows_that_differ_are_named() {
    block_on(async {
        let Some(source) = on_postgres(Layout::EnnubeJson).await else { return };
        let folder = tempfile::tempdir().expect("a folder");
        let (targets, _database) = natives(folder.path());
        for target in &targets {
            let copy = ["copy", "--from", &address(&source), "--to", &address_of(target), "--apply"];
            let (code, shown, words) = run(folder.path(), &copy);
            assert_eq!(code, Some(0), "{words} {shown:#}");
            let cases = &shown["compared"]["case"];
            assert!(cases["source"].as_u64() > Some(0));
            assert_eq!((&cases["equal"], &cases["filled"]["quarantined"]), (&cases["source"], &cases["source"]));
            let own = ids(&source, Entity::AuditEntry).await.len();
            assert!(
                own > 0 && told(&shown).contains(&format!("\"{own} audit entry row")),
                "{:#}",
                shown["disclosures"]
            );
            let case = ids(&source, Entity::Case).await.remove(0);
            let edit = ["-d", &address_of(target), "edit", "case", &case, "outcome=partial", "--apply"];
            assert_eq!(run(folder.path(), &edit).0, Some(0));
            let (code, shown, words) = run(folder.path(), &copy);
            assert_eq!(code, Some(6), "{words}");
            assert_eq!(shown["compared"]["case"]["examples"], json!([case]), "{:#}", shown["compared"]["case"]);
        }
    });
}

#[test]
fn a_value_outside_the_layout_that_a_column_would_change_is_left_out_and_named() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(run(folder.path(), &["demo", "demo.db", "--no-console", "--episodes", "20"]).0, Some(0));
        let demo = Target::File(folder.path().join("demo.db"));
        let script = "UPDATE agents SET created_at = 'now' WHERE id = (SELECT min(id) FROM agents); \
             UPDATE subjects SET created_at = x'ff' WHERE id = (SELECT min(id) FROM subjects)";
        let mut link = sqlite(&folder.path().join("demo.db")).await;
        sqlx::raw_sql(AssertSqlSafe(script.to_owned())).execute(&mut link).await.expect("odd times");
        link.close().await.expect("closed");
        let (targets, _database) = natives(folder.path());
        for target in &targets {
            let copy = ["copy", "--from", &address_of(&demo), "--to", &address_of(target), "--apply"];
            let (_, shown, words) = run(folder.path(), &copy);
            let agents = &shown["compared"]["agent"];
            assert_eq!((&agents["equal"], &agents["missing"]), (&agents["source"], &json!(0)), "{words} {shown:#}");
            let Target::Postgres(url) = target else { continue };
            let mut server = PgConnection::connect(url).await.expect("the server");
            let empty = "SELECT (SELECT count(*) FROM agents WHERE created_at IS NULL) \
                 + (SELECT count(*) FROM subjects WHERE created_at IS NULL)";
            let empty: i64 = sqlx::query_scalar(empty).fetch_one(&mut server).await.expect("a number");
            assert_eq!(empty, 2);
            for column in ["agents.created_at", "subjects.created_at"] {
                assert!(told(&shown).contains(&format!("no place for 1 value of `{column}`")), "{shown:#}");
            }
        }
    });
}

#[test]
fn people_that_only_episodes_name_keep_their_names_and_handles() {
    block_on(async {
        for layout in [Layout::NousHead, Layout::NousPlanned] {
            let Some(source) = on_postgres(layout).await else { return };
            let folder = tempfile::tempdir().expect("a folder");
            let (targets, _database) = natives(folder.path());
            for target in &targets {
                let words = ["copy", "--from", &address(&source), "--to", &address_of(target), "--apply"];
                let (code, shown, words) = run(folder.path(), &words);
                assert_eq!(code, Some(0), "{words} {shown:#}");
                for id in ids(&source, Entity::Subject).await {
                    let person = |row: Option<Row>| {
                        let row = row.expect("the person");
                        (row.get("name").clone(), row.get("handles").clone())
                    };
                    let there = open(target).await.row(Entity::Subject, &id).await.expect("an answer");
                    let here = person(source.store.row(Entity::Subject, &id).await.expect("an answer"));
                    assert!(here.0.is_string(), "{id}");
                    assert_eq!(person(there), here, "{id}");
                }
            }
        }
    });
}

#[test]
fn values_that_cannot_be_read_and_secrets_are_told_by_their_columns() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(run(folder.path(), &["demo", "demo.db", "--no-console", "--episodes", "60"]).0, Some(0));
        let demo = folder.path().join("demo.db");
        let ids =
            selected(&demo, "SELECT id FROM episodes WHERE started_at IS NOT NULL AND ?1 = ?1 ORDER BY id", "").await;
        let id = ids.first().expect("an episode");
        let secret = "Use AKIAIOSFODNN7EXAMPLE";
        let change = format!("UPDATE episodes SET importance = 'very high', title = '{secret}' WHERE id = '{id}'");
        let mut link = SqliteConnection::connect(demo.to_str().expect("a path")).await.expect("the demo");
        sqlx::query(AssertSqlSafe(change)).execute(&mut link).await.expect("a change");
        let (targets, _database) = natives(folder.path());
        for target in &targets {
            let condition = format!("id = {id}");
            let words = ["copy", "--from", "demo.db", "--to", &address_of(target), "--where", &condition, "--apply"];
            let (code, shown, told_of) = run(folder.path(), &words);
            assert_eq!(code, Some(0), "{told_of} {shown:#}");
            let compared = &shown["compared"]["episode"];
            assert_eq!((&compared["equal"], &compared["cleaned"]["title"]), (&json!(1), &json!(1)), "{compared:#}");
            // SQLite keeps what is there, whatever the type of its column.
            let left_out = matches!(target, Target::Postgres(_)).then_some(1);
            assert_eq!(compared["left_out"]["importance"], json!(left_out), "{compared:#}");
            let lost = shown["disclosures"].to_string().contains("1 episode `importance` value cannot be read");
            assert_eq!(lost, left_out.is_some(), "{shown:#}");
        }
    });
}
