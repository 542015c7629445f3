//! Pruning banks: what goes by the rules and nothing else, what depends on it and names it, taken back to the byte, on
//! both engines; and cases held back from recall.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;

use crate::support::block_on;
use crate::support::postgres::Database;
use crate::support::world::{made_in_file, made_on_postgres, open, tester as author};
use mnemoscope::change::findings::{self, FindingNews, FindingRequest};
use mnemoscope::change::operation::{Operation, Pruning};
use mnemoscope::change::prune;
use mnemoscope::change::{self, ChangeError, Plan, edit, migrate, profile, quarantine, record, undo};
use mnemoscope::memory::prune::PruneWindow;
use mnemoscope::memory::query::Query;
use mnemoscope::memory::{Entity, agreeing};
use mnemoscope::store::{OpenOptions, Store, Target};
use serde_json::{Map, json};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

/// A store with our tables in it, and what must live as long.
struct World {
    store: Store,
    target: Target,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

async fn world(target: Target, folder: tempfile::TempDir, database: Option<Database>) -> World {
    let options = OpenOptions { connections: 2, ..crate::support::options() };
    let store = Store::open(&target, &options).await.unwrap_or_else(|error| panic!("{error}"));
    World { store, target, _folder: folder, _database: database }
}

/// Two banks of one agent: the first with a window of 3 and 8 cases, of which `a-6` has no time, so that it stays whatever the window, and two have the same;
/// the second without a window names cases of the first in its list and plan.
const NATIVE: &str = "INSERT INTO agent_memory_profiles (id, user_id, agent_id, window_size) VALUES ('pa', 'ann', 'bot', 3), \
       ('pb', 'bob', 'bot', NULL), ('pc', 'cat', 'bot', 0); \
     INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, message_hash, reward, created_at, \"plan\", reference_case_ids) VALUES \
       ('a-0', 'pa', 'ann', 'bot', 'h0', 0.9, '2026-02-09T00:00:00.000000Z', NULL, '[]'), \
       ('a-1', 'pa', 'ann', 'bot', 'h1', 0.1, '2026-02-08T00:00:00.000000Z', NULL, '[\"a-4\"]'), \
       ('a-2', 'pa', 'ann', 'bot', 'h0', 0.9, '2026-02-07T00:00:00.000000Z', NULL, NULL), \
       ('a-4', 'pa', 'ann', 'bot', 'h4', 0.9, '2026-02-07T00:00:00.000000Z', NULL, NULL), \
       ('a-3', 'pa', 'ann', 'bot', 'h3', NULL, '2026-02-06T00:00:00.000000Z', NULL, '[\"gone-before\"]'), \
       ('a-6', 'pa', 'ann', 'bot', 'h6', 0.9, NULL, NULL, NULL), \
       ('b-0', 'pb', 'bob', 'bot', 'h0', 0.2, '2026-02-01T00:00:00.000000Z', '{\"steps\":[{\"n\":1.5,\"referenceCaseIds\":[\"a-3\",\"a-0\"]}]}', '[\"a-2\",\"x\",\"a-0\"]'), \
       ('b-1', 'pb', 'bob', 'bot', 'h0', 0.9, '2026-01-01T00:00:00.000000Z', '{\"steps\":[]}', '[\"x\"]'), \
       ('c-0', 'pc', 'cat', 'bot', 'h0', 0.9, '2026-01-01T00:00:00.000000Z', NULL, NULL); \
     INSERT INTO episode_memories (episode_id, memory_id, kind) VALUES ('e-1', 'a-3', 'case'), ('e-1', 'a-0', 'case'), ('e-2', 'a-3', 'case'); \
     UPDATE agent_memory_cases SET prompt = '\"about the lamp\"' WHERE id = 'a-2'";

fn vectors(blob: impl Fn(&[f32]) -> String) -> String {
    let rows =
        [("a-0", [1.0, 0.0]), ("a-1", [1.0, 0.01]), ("a-2", [0.0, 1.0]), ("a-4", [1.0, 0.02]), ("a-3", [-1.0, 0.0])];
    let values: Vec<String> = rows.iter().map(|(id, vector)| format!("('{id}', {})", blob(vector))).collect();
    format!("INSERT INTO agent_memory_embeddings (case_id, embedding) VALUES {}", values.join(", "))
}

fn bytes(vector: &[f32]) -> String {
    hex::encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

async fn on_sqlite() -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("native.db");
    let build = async |path: &Path| {
        let options = SqliteConnectOptions::new().filename(path).create_if_missing(true).foreign_keys(false);
        let mut link = SqliteConnection::connect_with(&options).await.expect("a file");
        let vectors = vectors(|vector| format!("x'{}'", bytes(vector)));
        for sql in [include_str!("../../assets/migrations/mnemoscope/sqlite/0001_native.sql"), NATIVE, &vectors] {
            sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut link).await.expect("the native schema");
        }
        link.close().await.expect("closed");
    };
    made_in_file("banks to prune", &path, build).await;
    world(Target::File(path), folder, None).await
}

async fn on_postgres() -> Option<World> {
    let build = async || {
        let database = Database::fresh()?;
        write_postgres(&database).await;
        Some(database)
    };
    let database = made_on_postgres("banks to prune", build).await?;
    let target = Target::Postgres(database.url().to_owned());
    Some(world(target, tempfile::tempdir().expect("a folder"), Some(database)).await)
}

async fn write_postgres(database: &Database) {
    let mut link = PgConnection::connect(database.url()).await.expect("the server");
    let schema = include_str!("../../assets/migrations/mnemoscope/postgres/0001_native.sql");
    sqlx::raw_sql(schema).execute(&mut link).await.expect("the native schema");
    let sql = "SELECT format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'agent_memory_embeddings'::regclass \
        AND attname = 'embedding'";
    let kind: String = sqlx::query(sql).fetch_one(&mut link).await.expect("its type").get(0);
    let vectors = match kind.as_str() {
        "bytea" => vectors(|vector| format!("'\\x{}'", bytes(vector))),
        "vector" => vectors(|vector| format!("'{vector:?}'")),
        _ => vectors(|vector| format!("ARRAY{vector:?}::real[]")),
    };
    for sql in [NATIVE, &vectors] {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut link).await.expect("rows");
    }
    link.close().await.expect("closed");
}

/// Runs a test's body on the native layout on both engines.
fn on_both<F: AsyncFn(World)>(body: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(Box::pin(async {
        body(on_sqlite().await).await;
        if let Some(world) = on_postgres().await {
            body(world).await;
        }
    }));
}

async fn ids(store: &Store, entity: Entity) -> BTreeSet<String> {
    let query = Query { limit: 10_000, ..Query::new(entity) };
    store.page(&query).await.expect("rows").rows.iter().map(|row| row.id().to_owned()).collect()
}

/// Every stored row that prune may touch, as text.
async fn dump(world: &World) -> Vec<String> {
    let tables = ["agent_memory_cases", "agent_memory_embeddings", "episode_memories", "agent_memory_profiles"];
    let mut rows = Vec::new();
    for table in tables {
        match &world.target {
            Target::File(path) => {
                let mut link = SqliteConnection::connect(&path.display().to_string()).await.expect("the file");
                let names: Vec<String> =
                    sqlx::query(AssertSqlSafe(format!("SELECT name FROM pragma_table_info('{table}')")))
                        .fetch_all(&mut link)
                        .await
                        .expect("columns")
                        .iter()
                        .map(|row| format!("quote(\"{}\")", row.get::<String, _>(0)))
                        .collect();
                let sql = format!("SELECT {} FROM {table} ORDER BY 1", names.join("||','||"));
                let found = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut link).await.expect("rows");
                rows.extend(found.iter().map(|row| row.get::<String, _>(0)));
            }
            Target::Postgres(url) => {
                let mut link = PgConnection::connect(url).await.expect("the server");
                let sql = format!("SELECT t::text FROM {table} t ORDER BY 1");
                let found = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut link).await.expect("rows");
                rows.extend(found.iter().map(|row| row.get::<String, _>(0)));
            }
        }
    }
    rows
}

fn gone(plan: &Plan) -> BTreeSet<&str> {
    plan.changes.iter().filter(|c| c.entity == "case").map(|c| c.id.as_str()).collect()
}

fn ask(window: i64, rules: Pruning) -> Pruning {
    Pruning { window: PruneWindow::Newest(window), ..rules }
}

#[test]
fn each_banks_own_window_keeps_its_newest_by_time_and_id() {
    on_both(async |world| {
        let store = &world.store;
        let before = dump(&world).await;
        let plan = prune::plan(store, &Pruning::default()).await.expect("a plan");
        // Of the two with the same time the greater id is newer.
        assert_eq!(gone(&plan), BTreeSet::from(["a-2", "a-3"]));
        assert!(plan.disclosures.iter().any(|d| d.starts_with("1 case has no time")), "{:?}", plan.disclosures);
        assert_eq!(dump(&world).await, before, "a plan writes nothing");
        assert!(
            plan.disclosures.iter().any(|d| d.contains("window of 0") && d.contains("pc")),
            "{:?}",
            plan.disclosures
        );
        assert!(plan.disclosures.iter().any(|d| d.contains("1 bank has no window")), "{:?}", plan.disclosures);
        let receipt = change::apply(store, &plan, &author()).await.expect("applied");
        assert_eq!(receipt.counts, plan.counts);
        assert_eq!(receipt.counts["agent_memory_cases"]["delete"], 2);
        assert_eq!(receipt.counts["agent_memory_cases"]["update"], 1);
        assert_eq!(receipt.counts["agent_memory_embeddings"]["delete"], 2);
        assert_eq!(receipt.counts["episode_memories"]["delete"], 2);
        let left = ["a-0", "a-1", "a-4", "a-6", "b-0", "b-1", "c-0"].map(str::to_owned);
        assert_eq!(ids(store, Entity::Case).await, BTreeSet::from(left));
        let b = store.row(Entity::Case, "b-0").await.expect("a read").expect("a row");
        assert_eq!(b.list("reference_case_ids"), ["x", "a-0"]);
        assert_eq!(*b.get("plan"), serde_json::json!({"steps": [{"n": 1.5, "referenceCaseIds": ["a-0"]}]}));
        let trail = store.page(&Query::new(Entity::AuditEntry)).await.expect("the trail").rows;
        let own = trail.iter().filter(|row| row.text("action") == Some("prune_case")).count();
        assert_eq!(own, 1, "a row in the memory's own trail");
        assert!(prune::plan(store, &Pruning::default()).await.expect("a plan").is_empty(), "nothing is left to do");
        let back = undo::undo(store, receipt.audit_seq.expect("an entry")).await.expect("an undo");
        change::apply(store, &back, &author()).await.expect("undone");
        let after: BTreeSet<String> = dump(&world).await.into_iter().collect();
        assert_eq!(after, before.into_iter().collect());
    });
}

#[test]
fn the_rules_add_up_and_users_and_agents_narrow_them() {
    on_both(async |world| {
        let store = &world.store;
        let rules = |f: &dyn Fn(&mut Pruning)| {
            let mut rules = Pruning::default();
            f(&mut rules);
            rules
        };
        for (ask, expected) in [
            (rules(&|r| r.duplicates = true), vec!["a-2", "b-1"]),
            (rules(&|r| r.below_reward = Some(0.5)), vec!["a-1", "b-0"]),
            (rules(&|r| r.older_than = Some("2026-02-02T00:00:00.000000Z".to_owned())), vec!["b-0", "b-1", "c-0"]),
            // A named rule applies alone; `own` adds each bank's own window.
            (Pruning { window: PruneWindow::Own, ..rules(&|r| r.duplicates = true) }, vec!["a-2", "a-3", "b-1"]),
            (ask(1, Pruning::default()), vec!["a-1", "a-2", "a-3", "a-4", "b-1"]),
            (ask(2, Pruning { keep_diverse: true, ..Pruning::default() }), vec!["a-1", "a-2", "a-3", "a-4"]),
            (Pruning { user: Some("bob".to_owned()), ..ask(1, Pruning::default()) }, vec!["b-1"]),
        ] {
            let plan = prune::plan(store, &ask).await.expect("a plan");
            let lamp = plan.changes.iter().find(|change| change.id == "a-2");
            assert!(lamp.is_none_or(|change| change.before["prompt"] == "about the lamp"), "{lamp:?}");
            let mut expected: BTreeSet<&str> = expected.into_iter().collect();
            if ask.keep_diverse {
                // a-1 and a-4 say what a-0 says: the place goes to a-2.
                expected.remove("a-2");
                expected.insert("a-1");
            }
            assert_eq!(gone(&plan), expected, "{ask:?}");
        }
        let mistake = prune::plan(store, &ask(0, Pruning::default())).await;
        assert!(matches!(mistake, Err(ChangeError::Usage(_))), "{mistake:?}");
        let nobody = Pruning { agent: Some("nobody".to_owned()), ..Pruning::default() };
        assert!(matches!(prune::plan(store, &nobody).await, Err(ChangeError::NotFound(_))));
    });
}

#[test]
fn a_hash_that_says_nothing_makes_no_duplicates() {
    const DIGEST: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    on_both(async |world| {
        let store = &world.store;
        run(&world, "DELETE FROM agent_memory_cases").await;
        for (hash, first, prompts) in [
            // Every case has a prompt of its own.
            ("", 0, ["1", "2", "3"]),
            ("  ", 3, ["1", "2", "3"]),
            (OF_NOTHING, 6, ["1", "2", "3"]),
            // Two say the same, but for blanks and capitals.
            ("unknown", 9, ["Same", "same ", "other"]),
            // What a digest says holds.
            (DIGEST, 12, ["1", "2", "3"]),
            // One prompt is not stored.
            ("word", 15, ["same", "", "same"]),
        ] {
            for (n, prompt) in (first..).zip(prompts) {
                let prompt =
                    if prompt.is_empty() { "NULL".to_owned() } else { format!("'{{\"message\": \"{prompt}\"}}'") };
                let sql = format!(
                    "INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, message_hash, prompt, created_at) \
                     VALUES ('d-{n:02}', 'pb', 'bob', 'bot', '{hash}', {prompt}, '2026-02-{:02}T00:00:00.000000Z')",
                    28 - n
                );
                run(&world, &sql).await;
            }
        }
        let found = async |kind: &'static str| {
            let mut count = 0;
            let wanted = FindingRequest { kind: Some(kind), examples: 9, ..FindingRequest::default() };
            let mut told = |told| {
                if let FindingNews::Found(finding) = told {
                    count += finding.count;
                }
                ControlFlow::Continue(())
            };
            findings::look(store, &wanted, &mut told).await.expect("a look");
            count
        };
        let rules = Pruning { duplicates: true, ..Pruning::default() };
        assert_eq!((found("duplicate_case").await, found("unclear_hash").await), (5, 2));
        let plan = prune::plan(store, &rules).await.expect("a plan");
        assert_eq!(gone(&plan), BTreeSet::from(["d-10", "d-13", "d-14", "d-16", "d-17"]));
        assert!(plan.disclosures.iter().any(|d| d.starts_with("2 cases stay: their message hashes")), "{plan:?}");
        // A prompt that came meanwhile would have spoken against it.
        run(&world, "UPDATE agent_memory_cases SET prompt = '\"yet another\"' WHERE id = 'd-16'").await;
        let moved = change::apply(store, &plan, &author()).await;
        assert!(matches!(moved, Err(ChangeError::Conflict { .. })), "{moved:?}");
        let plan = prune::plan(store, &rules).await.expect("a plan");
        change::apply(store, &plan, &author()).await.expect("applied");
        assert_eq!((found("duplicate_case").await, found("unclear_hash").await), (0, 4));
        let case = |hash: &str, message: &str| {
            json!({"profile_id": "pb", "message_hash": hash, "prompt": {"message": message}, "reward": 1.0}).to_string()
        };
        for (hash, message, is_new) in [
            ("", "new", true),
            (OF_NOTHING, "newer", true),
            ("unknown", "newest", true),
            ("unknown", "same", false),
            (DIGEST, "new", false),
        ] {
            let plan = record::case(store, &case(hash, message)).await;
            assert_eq!(plan.is_ok(), is_new, "{hash} {message}: {plan:?}");
        }
    });
}

#[test]
fn a_case_whose_time_is_unknown_is_not_the_oldest() {
    on_both(async |world| {
        let store = &world.store;
        // Times of an agent that writes seconds now; a server's column has times alone.
        let unread = if matches!(world.target, Target::File(_)) { "'1770800000'" } else { "NULL" };
        run(&world, &format!("UPDATE agent_memory_cases SET created_at = {unread} WHERE id IN ('a-0', 'a-2')")).await;
        for (ask, expected, undated) in [
            (Pruning::default(), vec![], 3),
            (ask(2, Pruning::default()), vec!["a-3"], 3),
            (ask(1, Pruning { keep_diverse: true, ..Pruning::default() }), vec!["a-3", "a-4"], 3),
            (Pruning { older_than: Some("2026-02-07".to_owned()), ..Pruning::default() }, vec!["a-3"], 3),
            // Which of the two of one message is newer is unknown.
            (Pruning { duplicates: true, ..Pruning::default() }, vec![], 1),
        ] {
            let ask = Pruning { user: Some("ann".to_owned()), ..ask };
            let plan = prune::plan(store, &ask).await.expect("a plan");
            assert_eq!(gone(&plan), BTreeSet::from_iter(expected), "{ask:?}");
            let told = agreeing(undated, "{#} {case has|cases have} no time that can be read");
            assert!(plan.disclosures.iter().any(|d| d.starts_with(&told)), "{:?}", plan.disclosures);
        }
        run(&world, "UPDATE agent_memory_profiles SET window_size = 4 WHERE id = 'pa'").await;
        let mut found = Vec::new();
        let wanted = FindingRequest { kind: Some("over_window"), examples: 9, ..FindingRequest::default() };
        let mut told = |told| {
            found.push(told);
            ControlFlow::Continue(())
        };
        findings::look(store, &wanted, &mut told).await.expect("a look");
        assert!(!found.iter().any(|told| matches!(told, FindingNews::Found(_))), "{found:?}");
    });
}

#[test]
fn a_quarantined_case_displaces_none_that_is_recalled() {
    on_both(async |world| {
        let store = &world.store;
        // `a-0` is newer than `a-2` and says the same.
        run(&world, "UPDATE agent_memory_cases SET quarantined = TRUE WHERE id IN ('a-0', 'a-1')").await;
        let user = Pruning { user: Some("ann".to_owned()), ..Pruning::default() };
        for (ask, expected) in [
            (Pruning { duplicates: true, ..user.clone() }, vec![]),
            (ask(3, user.clone()), vec![]),
            (ask(2, user.clone()), vec!["a-3"]),
            (Pruning { below_reward: Some(0.5), ..user }, vec!["a-1"]),
        ] {
            let plan = prune::plan(store, &ask).await.expect("a plan");
            assert_eq!(gone(&plan), BTreeSet::from_iter(expected), "{ask:?}");
            let told = plan.disclosures.iter().any(|told| told.starts_with("2 quarantined cases stay"));
            assert_eq!(told, ask.below_reward.is_none(), "{:?}", plan.disclosures);
        }
        // The newer one was recalled when the plan was made.
        run(&world, "UPDATE agent_memory_cases SET quarantined = FALSE").await;
        let ask = Operation::Prune(Pruning { duplicates: true, ..Pruning::default() });
        let plan = change::plan(store, &ask, &author()).await.expect("a plan");
        assert!(gone(&plan).contains("a-2"));
        let plan = Plan::from_file(&plan.to_file()).expect("as it was kept");
        run(&world, "UPDATE agent_memory_cases SET quarantined = TRUE WHERE id = 'a-0'").await;
        let moved = change::apply(store, &plan, &author()).await;
        assert!(matches!(moved, Err(ChangeError::Conflict { .. })), "{moved:?}");
    });
}

#[test]
fn cases_belong_to_the_bank_that_they_name_though_it_has_no_row() {
    on_both(async |world| {
        let store = &world.store;
        let unlinked = match world.target {
            Target::File(_) => "PRAGMA foreign_keys = OFF",
            Target::Postgres(_) => {
                "ALTER TABLE agent_memory_cases DROP CONSTRAINT IF EXISTS agent_memory_cases_profile_id_fkey"
            }
        };
        run(&world, &format!("{unlinked}; DELETE FROM agent_memory_cases")).await;
        for bank in 1..=3 {
            for case in 1..=2 {
                let sql = format!(
                    "{unlinked}; INSERT INTO agent_memory_cases (id, profile_id, message_hash, created_at) \
                     VALUES ('x{bank}-{case}', 'x{bank}', 'h{case}', '2026-0{bank}-0{case}T00:00:00.000000Z')"
                );
                run(&world, &sql).await;
            }
        }
        let duplicates = Pruning { duplicates: true, ..Pruning::default() };
        assert!(prune::plan(store, &duplicates).await.expect("a plan").is_empty());
        let plan = prune::plan(store, &ask(1, Pruning::default())).await.expect("a plan");
        assert_eq!(gone(&plan), BTreeSet::from(["x1-1", "x2-1", "x3-1"]));
        assert!(plan.effects.iter().any(|told| told.starts_with("bank x1, which has no row")), "{:?}", plan.effects);
        change::apply(store, &plan, &author()).await.expect("applied");
    });
}

#[test]
fn what_no_prune_can_do_does_not_keep_the_rest_from_being_done() {
    on_both(async |world| {
        // Two rows have one id, as in a table without a key.
        let twice = match world.target {
            Target::File(_) => {
                "PRAGMA foreign_keys = OFF; DROP TABLE agent_memory_embeddings; \
                CREATE TABLE plain AS SELECT * FROM agent_memory_cases; DROP TABLE agent_memory_cases; \
                ALTER TABLE plain RENAME TO agent_memory_cases; "
            }
            Target::Postgres(_) => "ALTER TABLE agent_memory_cases DROP CONSTRAINT agent_memory_cases_pkey CASCADE; ",
        };
        let twice = format!("{twice}UPDATE agent_memory_cases SET id = 'a-3' WHERE id = 'a-2'");
        run(&world, &twice).await;
        let plain = open(&world.target).await;
        let plan = prune::plan(&plain, &ask(1, Pruning::default())).await.expect("a plan");
        assert_eq!(gone(&plan), BTreeSet::from(["a-1", "a-4", "b-1"]));
        assert!(plan.disclosures.iter().any(|told| told.starts_with("1 case id is on several rows, such as a-3")));
        change::apply(&plain, &plan, &author()).await.expect("applied");
        assert!(ids(&plain, Entity::Case).await.contains("a-3"));
    });
}

#[test]
fn only_reference_lists_lose_a_case_whose_id_is_a_word() {
    on_both(async |world| {
        let stored = r#"{"steps":["search","book"],"tools":{"allowed":["search"]},"caseIds":["search","a-0"]}"#;
        let cast = if matches!(world.target, Target::Postgres(_)) { "::jsonb" } else { "" };
        let change = format!(
            "INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES \
               ('search', 'pa', 'ann', 'bot', '2026-01-01T00:00:00.000000Z'); \
             UPDATE agent_memory_cases SET \"plan\" = '{stored}'{cast} WHERE id = 'b-0'"
        );
        run(&world, &change).await;
        let plan = prune::plan(&world.store, &Pruning::default()).await.expect("a plan");
        assert!(gone(&plan).contains("search"));
        change::apply(&world.store, &plan, &author()).await.expect("applied");
        let row = world.store.row(Entity::Case, "b-0").await.expect("a read").expect("a row");
        let mut left: serde_json::Value = serde_json::from_str(stored).expect("a plan");
        left["caseIds"] = serde_json::json!(["a-0"]);
        assert_eq!(*row.get("plan"), left);
    });
}

#[test]
fn a_case_of_a_held_person_stays_in_the_bank_of_another_one() {
    on_both(async |world| {
        let store = &world.store;
        run(&world, "UPDATE agent_memory_cases SET user_id = 'held' WHERE id = 'a-3'").await;
        let hold = Operation::Hold { person: "held".to_owned(), reason: None };
        let plan = change::plan(store, &hold, &author()).await.expect("a hold");
        change::apply(store, &plan, &author()).await.expect("held");
        let of_ann = Pruning { user: Some("ann".to_owned()), ..Pruning::default() };
        let rules = Operation::Prune(ask(2, of_ann));
        let plan = change::plan(store, &rules, &author()).await.expect("a plan");
        assert_eq!(gone(&plan), BTreeSet::from(["a-2", "a-4"]));
        assert!(plan.disclosures.iter().any(|told| told.starts_with("1 case stays: its person")), "{plan:?}");
    });
}

#[test]
fn a_time_that_stands_for_none_is_no_age_and_an_age_of_nothing_a_mistake() {
    on_both(async |world| {
        let store = &world.store;
        for (case, at) in
            [("b-0", "0001-01-01T00:00:00Z"), ("b-1", "1970-01-01T00:00:00Z"), ("c-0", "9999-12-31T23:59:59Z")]
        {
            run(&world, &format!("UPDATE agent_memory_cases SET created_at = '{at}' WHERE id = '{case}'")).await;
        }
        let old = |age: &str| Pruning { older_than: Some(age.to_owned()), ..Pruning::default() };
        let plan = prune::plan(store, &old("2026-02-07")).await.expect("a plan");
        assert_eq!(gone(&plan), BTreeSet::from(["a-3"]));
        assert!(plan.disclosures.iter().any(|told| told.starts_with("4 cases have no time")), "{:?}", plan.disclosures);
        for age in ["0d", "0s", "2999-01-01"] {
            let refused = prune::plan(store, &old(age)).await;
            assert!(matches!(&refused, Err(ChangeError::Usage(why)) if why.contains("mistake")), "{age}: {refused:?}");
        }
    });
}

#[test]
fn the_lowest_window_is_a_mistake_and_no_conflict() {
    on_both(async |world| {
        let store = &world.store;
        run(&world, "UPDATE agent_memory_profiles SET window_size = NULL WHERE id = 'pc'").await;
        run(&world, "UPDATE agent_memory_profiles SET window_size = -9223372036854775808 WHERE id = 'pa'").await;
        let mistaken = |plan: &Plan| plan.disclosures.iter().any(|d| d.contains("-9223372036854775808"));
        let rules = Pruning { below_reward: Some(0.3), ..Pruning::default() };
        assert_eq!(gone(&prune::plan(store, &rules).await.expect("a plan")), BTreeSet::from(["a-1", "b-0"]));
        let plan = prune::plan(store, &ask(2, Pruning::default())).await.expect("a plan");
        assert_eq!(gone(&plan), BTreeSet::from(["a-2", "a-3", "a-4"]));
        let plan = prune::plan(store, &Pruning::default()).await.expect("a plan");
        assert!(plan.is_empty() && mistaken(&plan), "{:?}", plan.disclosures);
        let plan = prune::plan(store, &rules).await.expect("a plan");
        change::apply(store, &plan, &author()).await.expect("applied");
    });
}

#[test]
fn a_window_tells_what_lies_outside_it_however_it_is_set() {
    on_both(async |world| {
        let told = profile::set_window(&world.store, "pa", Some(1)).await.expect("a plan");
        assert!(told.effects[0].starts_with("4 of its 6 cases lie outside the window"), "{:?}", told.effects);
        let set = Map::from_iter([("window_size".to_owned(), json!(1))]);
        let edited = edit::edit(&world.store, Entity::Profile, "pa", &set, &Map::new()).await.expect("a plan");
        assert_eq!((edited.effects, edited.changes), (told.effects, told.changes));
        assert_eq!((&*edited.operation, &*told.operation), ("edit", "profile.set"));
    });
}

#[test]
fn a_window_or_case_that_moved_is_a_conflict() {
    on_both(async |world| {
        let store = &world.store;
        for sql in [
            "UPDATE agent_memory_profiles SET window_size = 4 WHERE id = 'pa'",
            "UPDATE agent_memory_cases SET reward = 1 WHERE id = 'a-3'",
            // It was to stay, and without it another one does.
            "DELETE FROM agent_memory_cases WHERE id = 'a-1'",
        ] {
            let rules = Operation::Prune(Pruning { user: Some("ann".to_owned()), ..Pruning::default() });
            let plan = change::plan(store, &rules, &author()).await.expect("a plan");
            run(&world, sql).await;
            let outcome = change::apply(store, &plan, &author()).await;
            assert!(matches!(outcome, Err(ChangeError::Conflict { .. })), "{sql}: {outcome:?}");
        }
        assert_eq!(ids(store, Entity::Case).await.len(), 8);
    });
}

#[test]
fn a_row_that_comes_to_a_case_that_goes_is_a_conflict() {
    on_both(async |world| {
        let store = &world.store;
        let plan = prune::plan(store, &ask(3, Pruning { user: Some("ann".to_owned()), ..Pruning::default() })).await;
        let plan = plan.expect("a plan");
        assert!(gone(&plan).contains("a-3"));
        for (late, gone) in [
            (
                "INSERT INTO episode_memories (episode_id, memory_id) VALUES ('late', 'a-3')",
                "episode_memories WHERE episode_id = 'late'",
            ),
            (
                "INSERT INTO agent_memory_cases (id, message_hash, reference_case_ids) VALUES ('late', 'h', '[\"a-3\"]')",
                "agent_memory_cases WHERE id = 'late'",
            ),
        ] {
            run(&world, late).await;
            let refused = change::apply(store, &plan, &author()).await;
            assert!(matches!(refused, Err(ChangeError::Conflict { .. })), "{late}: {refused:?}");
            run(&world, &format!("DELETE FROM {gone}")).await;
        }
        change::apply(store, &plan, &author()).await.expect("a receipt");
    });
}

async fn run(world: &World, sql: &str) {
    let sql = AssertSqlSafe(sql.to_owned());
    match &world.target {
        Target::File(path) => {
            let mut link = SqliteConnection::connect(&path.display().to_string()).await.expect("the file");
            sqlx::raw_sql(sql).execute(&mut link).await.expect("done");
        }
        Target::Postgres(url) => {
            let mut link = PgConnection::connect(url).await.expect("the server");
            sqlx::raw_sql(sql).execute(&mut link).await.expect("done");
        }
    }
}

#[test]
fn very_many_cases_go_at_once_without_an_undo() {
    on_both(async |world| {
        let store = &world.store;
        let many = match &world.target {
            Target::File(_) => {
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) \
                 INSERT INTO agent_memory_cases (id, profile_id, message_hash, created_at) \
                 SELECT 'm-' || i, 'pa', 'x' || i, '2025-01-01T00:00:00.000000Z' FROM n"
            }
            Target::Postgres(_) => {
                "INSERT INTO agent_memory_cases (id, profile_id, message_hash, created_at) \
                 SELECT 'm-' || i, 'pa', 'x' || i, '2025-01-01T00:00:00.000000Z' FROM generate_series(1, 6000) i"
            }
        };
        run(&world, many).await;
        let plan = prune::plan(store, &Pruning::default()).await.expect("a plan");
        assert_eq!(plan.changes_total, 6002);
        assert!(plan.undo_reason.as_ref().is_some_and(|why| why.contains("2000")), "{:?}", plan.undo_reason);
        // What the rules went by is still minded.
        run(&world, "UPDATE agent_memory_cases SET created_at = '2027-01-01T00:00:00.000000Z' WHERE id = 'm-7'").await;
        let moved = change::apply(store, &plan, &author()).await;
        assert!(matches!(moved, Err(ChangeError::Conflict { .. })), "{moved:?}");
        let plan = prune::plan(store, &Pruning::default()).await.expect("a plan");
        let receipt = change::apply(store, &plan, &author()).await.expect("applied");
        assert_eq!(receipt.counts["agent_memory_cases"]["delete"], 6002);
        assert!(ids(store, Entity::Case).await.contains("m-7"));
        assert!(undo::undo(store, receipt.audit_seq.expect("an entry")).await.is_err());
    });
}

#[test]
fn cases_that_very_large_rows_name_go_in_several_plans() {
    // On one engine: what is held is counted before an engine gets it.
    block_on(async {
        let world = on_sqlite().await;
        let store = &world.store;
        // Thirteen cases of a bank that keeps all, whose plans of 80 KB name one case that goes.
        let text = "x".repeat(80 << 10);
        store.plans_within(960 << 10);
        for n in 0..13 {
            let sql = format!(
                "INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at, \"plan\") \
                 VALUES ('l-{n}', 'pb', 'bob', 'bot', '2026-01-01T00:00:00.000000Z', \
                 '{{\"text\":\"{text}\",\"ids\":[\"a-3\",\"b-1\"]}}')"
            );
            run(&world, &sql).await;
        }
        // What goes by its reward is among the newest: were it to go first, an older case would come into the window.
        let ask = Pruning { window: PruneWindow::Own, below_reward: Some(0.5), ..Pruning::default() };
        let (mut steps, mut all) = (0, BTreeSet::new());
        loop {
            let plan = prune::plan(store, &ask).await.expect("a plan");
            if plan.is_empty() {
                break;
            }
            all.extend(gone(&plan).into_iter().map(str::to_owned));
            let more = plan.disclosures.iter().any(|words| words.contains("run it again"));
            steps += 1;
            assert!(more || all.len() == 4, "{:?}", plan.disclosures);
            change::apply(store, &plan, &author()).await.expect("applied");
        }
        assert!(steps > 1, "it does not fit in one");
        assert_eq!(all, ["a-1", "a-2", "a-3", "b-0"].map(str::to_owned).into());
        for n in 0..13 {
            let row = store.row(Entity::Case, &format!("l-{n}")).await.expect("a read").expect("a row");
            assert_eq!(row.get("plan")["ids"], serde_json::json!(["b-1"]));
        }
    });
}

#[test]
fn plans_in_compressed_bytes_are_mended_as_they_are_stored() {
    let Some(database) = Database::fresh() else { return };
    block_on(async {
        let zlib = |text: &str| {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(text.as_bytes()).expect("memory");
            format!("'\\x{}'", hex::encode(encoder.finish().expect("memory")))
        };
        let id = |n: u32| format!("cccccccc-0000-4000-8000-00000000000{n}");
        let plan = format!(r#"{{"steps": [{{"referenceCaseIds": ["{}", "{}"]}}]}}"#, id(1), id(2));
        let schema = "CREATE TABLE agent_memory_profiles (id uuid PRIMARY KEY, user_sub text, agent_key text, window_size int, \
               created_at timestamptz DEFAULT now(), updated_at timestamptz); \
             CREATE TABLE agent_memory_cases (id uuid PRIMARY KEY, profile_id uuid NOT NULL REFERENCES agent_memory_profiles (id) ON DELETE CASCADE, \
               message_hash text, prompt_snapshot bytea, plan_summary bytea, tool_traces bytea, outcome text, reward_score numeric(3,2), \
               tags text[], created_at timestamptz, reference_case_ids uuid[]); \
             INSERT INTO agent_memory_profiles VALUES ('aaaaaaaa-0000-4000-8000-000000000001', 'ann', 'bot', 2)";
        let mut link = PgConnection::connect(database.url()).await.expect("the server");
        sqlx::raw_sql(schema).execute(&mut link).await.expect("a schema");
        for (n, plan) in [(1, zlib("{}")), (2, zlib(&plan)), (3, format!("convert_to('{plan}', 'UTF8')"))] {
            let sql = format!(
                "INSERT INTO agent_memory_cases (id, profile_id, message_hash, plan_summary, created_at, reference_case_ids) \
                 VALUES ('{}', 'aaaaaaaa-0000-4000-8000-000000000001', 'h{n}', {plan}, '2026-02-0{n}', ARRAY['{}', '{}']::uuid[])",
                id(n),
                id(1),
                id(9)
            );
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("a row");
        }
        let target = Target::Postgres(database.url().to_owned());
        migrate::apply(&open(&target).await, &author(), None).await.expect("our tables");
        let world = world(target, tempfile::tempdir().expect("a folder"), None).await;
        let plan = prune::plan(&world.store, &Pruning::default()).await.expect("a plan");
        change::apply(&world.store, &plan, &author()).await.expect("applied");
        for n in [2, 3] {
            let row = world.store.row(Entity::Case, &id(n)).await.expect("a read").expect("a row");
            assert_eq!(row.list("reference_case_ids"), [id(9)], "what dangled before is left alone");
            assert_eq!(row.get("plan")["steps"][0]["referenceCaseIds"], serde_json::json!([id(2)]));
        }
        let sql = "SELECT substr(encode(plan_summary, 'hex'), 1, 2) FROM agent_memory_cases ORDER BY id";
        let heads = sqlx::query(sql).fetch_all(&mut link).await.expect("rows");
        assert_eq!(heads.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>(), ["78", "7b"]);
        let held = quarantine::hold(&world.store, &[id(2)], true).await;
        assert!(matches!(&held, Err(ChangeError::Refused(why)) if why.contains("no column")), "{held:?}");
    });
}

#[test]
fn a_case_is_held_back_and_let_go_again() {
    on_both(async |world| {
        let store = &world.store;
        let cases = ["a-1", "a-0", "a-1"].map(str::to_owned);
        let held = async || {
            let row = store.row(Entity::Case, "a-1").await.expect("a read").expect("a row");
            row.get("quarantined").as_bool()
        };
        let plan = quarantine::hold(store, &cases, true).await.expect("a plan");
        assert_eq!(plan.counts["agent_memory_cases"]["update"], 2);
        change::apply(store, &plan, &author()).await.expect("applied");
        assert_eq!(held().await, Some(true));
        assert!(quarantine::hold(store, &cases, true).await.expect("a plan").is_empty());
        let plan = quarantine::hold(store, &cases, false).await.expect("a plan");
        change::apply(store, &plan, &author()).await.expect("applied");
        assert_eq!(held().await, Some(false));
        let unknown = quarantine::hold(store, &["nothing".to_owned()], true).await;
        assert!(matches!(unknown, Err(ChangeError::NotFound(_))), "{unknown:?}");
    });
}

#[test]
fn an_undo_describes_some_of_the_rows_that_have_changed_and_counts_the_others() {
    on_both(async |world| {
        let store = &world.store;
        let cases: Vec<String> = (0..30).map(|n| format!("many-{n}")).collect();
        let row = |id: &String| format!("('{id}', 'many', 'ann', 'bot', '2024-01-01T00:00:00Z')");
        let rows: Vec<String> = cases.iter().map(row).collect();
        run(
            &world,
            &format!(
                "INSERT INTO agent_memory_profiles (id, user_id, agent_id, window_size) VALUES ('many', 'ann', 'bot-2', 99); \
                 INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES {}",
                rows.join(", ")
            ),
        )
        .await;
        let mut entries = Vec::new();
        for held in [true, false] {
            let plan = quarantine::hold(store, &cases, held).await.expect("a plan");
            let receipt = change::apply(store, &plan, &author()).await.expect("applied");
            entries.push(receipt.audit_seq.expect("an entry"));
        }
        let refused = undo::undo(store, entries[0]).await;
        let Err(ChangeError::Conflict { rows, .. }) = refused else { panic!("{refused:?}") };
        let by = format!("; changed by entry {}", entries[1]);
        assert!(rows.len() == 21 && rows[..20].iter().all(|row| row.ends_with(&by)), "{rows:#?}");
        assert_eq!(rows[20], "10 more rows have changed since");
    });
}

/// Rows that depend on cases over two levels: what the second level does is said by its keys.
const LEVELS: &str = "CREATE TABLE votes (id INTEGER PRIMARY KEY, of TEXT NOT NULL REFERENCES agent_memory_cases (id)); \
     CREATE TABLE remarks (id INTEGER PRIMARY KEY, vote INTEGER NOT NULL REFERENCES votes (id)); \
     CREATE TABLE echoes (id INTEGER PRIMARY KEY, remark INTEGER REFERENCES remarks (id) ON DELETE CASCADE, of TEXT NOT NULL REFERENCES agent_memory_cases (id)); \
     CREATE TABLE marks (id INTEGER PRIMARY KEY, vote INTEGER REFERENCES votes (id) ON DELETE SET NULL); \
     CREATE TABLE asides (id INTEGER PRIMARY KEY, of TEXT REFERENCES agent_memory_cases (id) ON DELETE CASCADE); \
     INSERT INTO agent_memory_profiles (id, user_id, agent_id, window_size) VALUES ('zp', 'zoe-1234', 'zo-bot', 1); \
     INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) VALUES \
       ('zc-1', 'zp', 'zoe-1234', 'zo-bot', '2024-01-01T00:00:00Z'), ('zc-2', 'zp', 'zoe-1234', 'zo-bot', '2024-01-02T00:00:00Z'); \
     INSERT INTO votes VALUES (1, 'zc-1'), (2, 'zc-2'); INSERT INTO remarks VALUES (1, 1), (2, 2); \
     INSERT INTO echoes VALUES (1, 1, 'zc-1'), (2, 2, 'zc-2'), (3, 1, 'zc-2'); INSERT INTO marks VALUES (1, 1), (2, 2); \
     INSERT INTO asides VALUES (1, 'zc-1'), (2, 'zc-2')";

#[test]
fn rows_that_hang_on_what_hangs_on_a_case_go_too() {
    block_on(async {
        use crate::support::world::{dump, meddle, native_on_postgres, open, small};
        for mut world in [Some(small().await), native_on_postgres().await].into_iter().flatten() {
            meddle(&world, LEVELS).await;
            world.store = open(&world.target).await;
            let before = dump(&world).await;
            let ask = Pruning { agent: Some("zo-bot".to_owned()), ..Pruning::default() };
            let plan = prune::plan(&world.store, &ask).await.expect("a plan");
            let counts = serde_json::to_value(&plan.counts).expect("counts");
            for (table, verb, rows) in [
                ("votes", "delete", 1),
                ("remarks", "delete", 1),
                ("echoes", "delete", 2),
                ("marks", "update", 1),
                ("asides", "delete", 1),
            ] {
                assert_eq!(counts[table][verb], rows, "{table}: {counts:#}");
            }
            assert!(plan.effects.contains(&"1 row of asides is removed with them".to_owned()), "{:?}", plan.effects);
            let receipt = change::apply(&world.store, &plan, &author()).await.expect("a receipt");
            let after = dump(&world).await;
            for (table, rows) in [("votes", 1), ("remarks", 1), ("echoes", 1), ("marks", 2), ("asides", 1)] {
                assert_eq!(after[table].len(), rows, "{table}");
            }
            let seq = receipt.audit_seq.expect("an entry");
            let undo = undo::undo(&world.store, seq).await.expect("an undo");
            change::apply(&world.store, &undo, &author()).await.expect("undone");
            let restored = dump(&world).await;
            for table in ["votes", "remarks", "echoes", "marks", "asides", "agent_memory_cases"] {
                assert_eq!(restored[table], before[table], "{table}");
            }
        }
    });
}
