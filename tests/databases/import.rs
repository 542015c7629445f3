//! Imports: trajectories, case banks, our own export, single curated memories. Importing twice changes nothing, bad
//! lines are named, secrets stay out, and all of it can be undone.

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_postgres};
use crate::support::postgres::Database;
use crate::support::world::{World, address, address_of, native_in, open, tester as author, world};
use mnemoscope::change::import::{self, ImportPart, ImportProgress};
use mnemoscope::change::operation::ImportFormat;
use mnemoscope::change::{self, ChangeError, Plan, Receipt, audit, edit, migrate, record, undo};
use mnemoscope::memory::assign::read_value;
use mnemoscope::memory::entity::Column;
use mnemoscope::memory::query::{PageStart, Query};
use mnemoscope::memory::{Entity, Row, ValueKind};
use mnemoscope::store::{Store, Target};
use serde_json::{Map, Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::process::{Command, Stdio};

async fn native(episodes: u64) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("native.db");
    native_in(episodes, &path).await;
    world(Target::File(path), folder, None).await
}

async fn native_on_postgres() -> Option<World> {
    let database = Database::fresh()?;
    let mut server = PgConnection::connect(database.url()).await.expect("the server");
    let schema = include_str!("../../assets/migrations/mnemoscope/postgres/0001_native.sql");
    sqlx::raw_sql(AssertSqlSafe(schema)).execute(&mut server).await.expect("the native schema");
    let target = Target::Postgres(database.url().to_owned());
    Some(world(target, tempfile::tempdir().expect("a folder"), Some(database)).await)
}

async fn done(world: &World, plan: Result<Plan, ChangeError>) -> Receipt {
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let receipt = change::apply(&world.store, &plan, &author()).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(receipt.counts, plan.counts);
    receipt
}

async fn all(store: &Store, entity: Entity) -> Vec<Row> {
    let mut query = Query { limit: 500, ..Query::new(entity) };
    let mut rows = Vec::new();
    loop {
        let page = store.page(&query).await.expect("a page");
        rows.extend(page.rows);
        match page.next {
            Some(next) => query.start = PageStart::After(next),
            None => return rows,
        }
    }
}

/// The trajectories of a list, one a line.
fn lines_of(list: &str) -> Result<String, String> {
    let mut lines = Vec::new();
    import::trajectory_lines(list.as_bytes(), 1 << 20, &mut lines).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(lines).expect("text"))
}

fn trajectories() -> String {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{\"q\": 1}"}});
    let bad_call = json!({"id": "c2", "type": "function", "function": {"name": "book", "arguments": "{}"}});
    let good = json!({"task_id": 0, "trial": 0, "reward": 1.0, "info": {"task": {"user_id": "ann", "instruction": "Book it."}},
    "traj": [
        {"role": "system", "content": "Policy"},
        {"role": "user", "content": "Hello, my password: Secret99x please"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "found"},
        {"role": "assistant", "content": "Booking", "tool_calls": [bad_call]},
        {"role": "tool", "tool_call_id": "c2", "name": "book", "content": "Error: full"},
    ]});
    let mut other = good.clone();
    other["task_id"] = json!(1);
    other["reward"] = json!(0.0);
    lines_of(&format!("{:#}", json!([good, other]))).expect("lines")
}

async fn worlds() -> Vec<World> {
    [Some(native(40).await), native_on_postgres().await].into_iter().flatten().collect()
}

#[test]
fn an_answer_is_that_of_its_own_call_where_ids_of_calls_come_again() {
    let call = |name: &str| json!({"id": "c1", "function": {"name": name, "arguments": "{}"}});
    let asks = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
    let answer = |text: &str| json!({"role": "tool", "tool_call_id": "c1", "content": text});
    let trajectory = json!([{"task_id": 7, "trial": 0, "reward": 1.0, "info": {"task": {"user_id": "ann"}}, "traj": [
        {"role": "user", "content": "Hello"}, asks(json!([call("first")])), answer("one"), asks(json!([call("second")])),
        answer("Error: two"), asks(json!([call("third"), call("fourth")])), answer("three"), answer("four"),
    ]}]);
    let lines = lines_of(&trajectory.to_string()).expect("lines");
    block_on(async {
        for world in worlds().await {
            let plan = import::plan(&world.store, ImportFormat::TauBench, "again.json", &lines, false).await;
            done(&world, plan).await;
            let episodes = all(&world.store, Entity::Episode).await;
            let episode = episodes.iter().find(|e| e.text("workflow_name") == Some("tau-bench")).expect("the episode");
            let told = |name: &Value, result: &Value, error: &Value| json!([name, result, error]);
            let expected = json!([
                ["first", "one", null],
                ["second", null, "Error: two"],
                ["third", "three", null],
                ["fourth", "four", null]
            ]);
            let actions = episode.get("actions").as_array().expect("actions");
            let actions: Vec<Value> =
                actions.iter().map(|a| told(&a["step_name"], &a["result"], &a["error"])).collect();
            assert_eq!(json!(actions), expected);
            let events = all(&world.store, Entity::WorkflowEvent).await;
            let mut steps: Vec<&Row> = events.iter().filter(|e| e.id().starts_with("tau-run-")).collect();
            steps.sort_by_key(|event| event.get("sequence").as_i64());
            let ended = |e: &&&Row| matches!(e.text("kind"), Some("step.completed" | "step.failed"));
            let data = steps.iter().filter(ended).map(|event| event.get("data"));
            let steps: Vec<Value> = data.map(|d| told(&d["step_name"], &d["result"], &d["error"])).collect();
            assert_eq!(json!(steps), expected);
        }
    });
}

#[test]
fn trajectories_become_episodes_with_segments_events_and_cases() {
    block_on(async {
        for world in worlds().await {
            let store = &world.store;
            let before = all(store, Entity::Episode).await;
            let plan = import::plan(store, ImportFormat::TauBench, "runs/airline.json", &trajectories(), false).await;
            let receipt = done(&world, plan).await;
            assert!(receipt.disclosures.iter().any(|d| d.contains("password")), "{:?}", receipt.disclosures);
            let again = import::plan(store, ImportFormat::TauBench, "elsewhere.json", &trajectories(), false)
                .await
                .expect("a plan");
            let new = again.counts.get("episodes");
            assert_eq!(new, None, "the same trajectories are known under any file name");
            let episodes = all(store, Entity::Episode).await;
            let new: Vec<&Row> = episodes.iter().filter(|e| e.text("workflow_name") == Some("tau-bench")).collect();
            assert_eq!((new.len(), episodes.len()), (2, before.len() + 2));
            let good = new.iter().find(|e| e.get("success") == &json!(true)).expect("the good one");
            assert_eq!((good.text("agent_id"), good.text("user_id")), (Some("airline"), Some("ann")));
            assert_eq!(good.text("title"), Some("Hello, my password: [secret removed] please"));
            assert_eq!(good.get("actions")[0]["status"], "completed");
            assert_eq!(good.get("actions")[1]["error"], "Error: full");
            let context = Box::pin(store.contexts().episode(good.id())).await.unwrap().expect("the episode");
            let segments: Vec<_> = context.segments.iter().map(|s| (s.text("kind"), s.text("source_type"))).collect();
            let (message, execution) = (Some("message"), Some("execution"));
            assert_eq!(
                segments,
                [
                    (message, Some("system")),
                    (message, Some("user")),
                    (execution, Some("tool_call")),
                    (execution, Some("tool")),
                    (message, Some("assistant")),
                    (execution, Some("tool_call")),
                    (execution, Some("tool")),
                ]
            );
            let kinds: Vec<_> = context.events.iter().filter_map(|e| e.text("kind")).collect();
            assert_eq!(kinds.first().zip(kinds.last()), Some((&"workflow.started", &"workflow.completed")));
            assert!(kinds.contains(&"step.completed") && kinds.contains(&"step.failed"), "{kinds:?}");
            let cases = all(store, Entity::Case).await;
            let rewards: Vec<_> =
                cases.iter().filter(|c| c.id().starts_with("tau-")).map(|c| c.number("reward")).collect();
            assert!(rewards.len() == 2 && rewards.contains(&Some(1.0)) && rewards.contains(&Some(0.0)), "{rewards:?}");
            done(&world, undo::undo(store, receipt.audit_seq.unwrap()).await).await;
            assert_eq!(all(store, Entity::Episode).await.len(), before.len());
            assert!(audit::verify(store, &[]).await.unwrap().ok);
        }
    });
}

#[test]
fn importing_twice_changes_nothing_and_bad_lines_are_named() {
    block_on(async {
        for world in worlds().await {
            let store = &world.store;
            let lines = "{\"case\": \"What?\", \"plan\": \"{\\\"plan\\\": []}\", \"case_label\": \"positive\"}\n\n\
                {\"case\": \"When?\", \"plan\": \"\", \"case_label\": \"negative\"}\n";
            done(&world, import::plan(store, ImportFormat::Memento, "bank.jsonl", lines, false).await).await;
            let twice = import::plan(store, ImportFormat::Memento, "bank.jsonl", lines, false).await.expect("a plan");
            assert!(twice.is_empty() && twice.counts.is_empty());
            let cases = all(store, Entity::Case).await;
            let found: Vec<_> = cases.iter().filter(|c| c.text("user_id") == Some("memento")).collect();
            assert_eq!(found.len(), 2);
            let rewards: Vec<_> = found.iter().map(|c| c.number("reward")).collect();
            assert!(rewards.contains(&Some(1.0)) && rewards.contains(&Some(0.0)), "{rewards:?}");
            let bad = format!("{lines}{{\"case\": \"Who?\", \"case_label\": \"maybe\"}}\nno json\n");
            let refused = import::plan(store, ImportFormat::Memento, "bank.jsonl", &bad, false).await;
            assert!(
                matches!(&refused, Err(ChangeError::Usage(w)) if w.contains("line 4") && w.contains("maybe")),
                "{refused:?}"
            );
            let skipped = import::plan(store, ImportFormat::Memento, "bank.jsonl", &bad, true).await.expect("a plan");
            assert!(
                skipped.is_empty() && skipped.disclosures.iter().any(|d| d.contains("4, 5")),
                "{:?}",
                skipped.disclosures
            );
            let twice = [("the same", 1), ("another", 1), ("the same", 1), ("the last", 2)].map(|(title, n)| {
                format!("{{\"entity\": \"episode\", \"id\": \"twice-{n}\", \"title\": \"{title}\"}}\n")
            });
            let plan = import::plan(store, ImportFormat::Jsonl, "x", &twice.concat(), false).await.expect("a plan");
            let told = "1 episode row has the id of an earlier one and says something else: the first one is used";
            assert!(plan.disclosures.iter().any(|d| d == told), "{:?}", plan.disclosures);
            assert_eq!(plan.counts.values().next().map(|c| c["insert"]), Some(2), "{:?}", plan.counts);
            for text in ["", "{}", "[1", "[1] 2", "[1,]"] {
                assert!(lines_of(text).unwrap_err().contains("not a JSON list of trajectories"), "{text}");
            }
            for text in ["[1]", "[{\"traj\": []}]", "[{\"traj\": [{\"role\": \"user\"}], \"reward\": 7}]"] {
                let lines = lines_of(text).expect("lines");
                let plan = import::plan(store, ImportFormat::TauBench, "x", &lines, false).await;
                assert!(matches!(plan, Err(ChangeError::Usage(_))), "{text}: {plan:?}");
            }
        }
    });
}

/// Lines of one person's rows; two people have some of the same ids.
fn of_person(user: &str, day: u32, rows: &[Value]) -> String {
    let at = format!("2026-01-{day:02}T10:00:00.000000Z");
    let owned = [
        json!({"entity": "episode", "id": "ep_1", "user_id": user, "agent_id": user, "started_at": at, "utility": 0.5}),
        json!({"entity": "memory", "id": "m1", "user_id": user, "kind": "fact", "text": user, "created_at": at}),
        json!({"entity": "profile", "id": "bank1", "user_id": user, "agent_id": user, "created_at": at}),
        json!({"entity": "segment", "id": format!("s-{user}"), "episode_id": "ep_1", "kind": "message", "content": user}),
    ];
    let lines: Vec<String> = owned.iter().chain(rows).map(ToString::to_string).collect();
    lines.join("\n") + "\n"
}

#[test]
fn nothing_hangs_on_the_rows_of_someone_else_that_have_the_same_ids() {
    block_on(async {
        let case = json!({"entity": "case", "id": "c-ann", "profile_id": "bank1", "user_id": "ann", "agent_id": "ann"});
        let ann = of_person(
            "ann",
            2,
            &[
                json!({"entity": "feedback", "id": "f-ann", "episode_id": "ep_1", "user_id": "ann", "kind": "thumbs_down"}),
                json!({"entity": "utility_event", "id": "u-ann", "episode_id": "ep_1", "signal": "rejected"}),
                json!({"entity": "memory_link", "episode_id": "ep_1", "memory_id": "m1"}),
                json!({"entity": "memory_link", "episode_id": "ep_2", "memory_id": "m1"}),
                json!({"entity": "episode", "id": "ep_2", "user_id": "ann", "agent_id": "ann", "parent_id": "ep_1",
                    "feedback_ids": ["f-ann", "f-2"], "started_at": "2026-01-03T10:00:00.000000Z"}),
                json!({"entity": "feedback", "id": "f-2", "episode_id": "ep_2", "user_id": "ann", "kind": "thumbs_up"}),
                case.clone(),
            ],
        );
        let bob = of_person("bob", 1, &[]);
        let read = async |world: &World, text: &str, skip_bad| {
            import::plan(&world.store, ImportFormat::Jsonl, "x.jsonl", text, skip_bad).await
        };
        for world in worlds().await {
            done(&world, read(&world, &bob, false).await).await;
            let refused = read(&world, &ann, false).await;
            let told = |words: &str| {
                words
                    .contains("line 1: episode ep_1 has the id of another row in the database, whose `user_id` differs")
                    && words.contains("(9 bad in all;")
            };
            assert!(matches!(&refused, Err(ChangeError::Usage(words)) if told(words)), "{refused:?}");
            let receipt = done(&world, read(&world, &ann, true).await).await;
            let said = receipt.disclosures.join("; ");
            assert!(said.contains("3 rows have ids of another row in the database"), "{said}");
            assert!(said.contains("1 row refers to rows that are left out"), "{said}");
            let counts = json!(receipt.counts);
            assert_eq!(counts, json!({"agent_feedback": {"insert": 1}, "episodes": {"insert": 1}}));
            let followed = world.store.row(Entity::Episode, "ep_2").await.unwrap().expect("it");
            assert!(followed.get("parent_id").is_null() && followed.list("feedback_ids") == ["f-2"], "{followed:?}");
            let context = Box::pin(world.store.contexts().episode("ep_1")).await.unwrap().expect("it");
            assert_eq!(context.segments.iter().map(Row::id).collect::<Vec<_>>(), ["s-bob"]);
            assert!(context.feedback.is_empty() && context.memories.is_empty());
            // A case without its bank's line; what was changed since is still the same row.
            let refused = read(&world, &case.to_string(), false).await;
            assert!(
                matches!(&refused, Err(ChangeError::Usage(words)) if words.contains("than its bank")),
                "{refused:?}"
            );
            let set = json!({"title": "changed since"});
            let changed =
                edit::edit(&world.store, Entity::Episode, "ep_1", set.as_object().unwrap(), &Map::new()).await;
            done(&world, changed).await;
            assert!(read(&world, &bob, false).await.expect("a plan").is_empty());
            assert!(read(&world, &ann, true).await.expect("a plan").is_empty());
        }
    });
}

#[test]
fn an_export_comes_back_row_for_row_on_the_other_engine() {
    block_on(async {
        let source = native(40).await;
        let Some(world) = native_on_postgres().await else { return };
        let entities = [
            Entity::Profile,
            Entity::Episode,
            Entity::Segment,
            Entity::Feedback,
            Entity::UtilityEvent,
            Entity::Memory,
            Entity::MemoryLink,
            Entity::Case,
        ];
        let mut lines = String::new();
        let mut sent = Vec::new();
        for entity in entities {
            // Rows with problems cannot come back as they were, and PostgreSQL stores no NUL.
            let sound = |row: &Row| row.problems.is_empty() && !row.to_json().to_string().contains("\\u0000");
            let rows: Vec<Row> = all(&source.store, entity).await.into_iter().filter(sound).collect();
            for row in &rows {
                let mut value = row.to_json();
                value["entity"] = Value::from(entity.name());
                lines += &format!("{value}\n");
            }
            sent.push(rows);
        }
        let banks: Vec<&str> = sent[0].iter().map(Row::id).collect();
        assert!(sent[7].iter().all(|c| c.text("profile_id").is_none_or(|id| banks.contains(&id))));
        done(&world, import::plan(&world.store, ImportFormat::Jsonl, "export.jsonl", &lines, false).await).await;
        for (entity, rows) in entities.into_iter().zip(&sent) {
            let mut found = all(&world.store, entity).await;
            let mut wanted = rows.clone();
            for row in found.iter_mut().chain(&mut wanted) {
                // A vector is not part of a row, and secrets stay out.
                row.set("has_vector", Value::Null);
            }
            let key = |row: &Row| (row.id().to_owned(), row.text("memory_id").map(str::to_owned));
            found.sort_by_key(key);
            wanted.sort_by_key(key);
            assert_eq!(found.len(), wanted.len(), "{entity}");
            let clean = |row: &Row| row.to_json().to_string().contains("[secret removed]");
            let differs = found.iter().zip(&wanted).find(|(a, b)| a.to_json() != b.to_json() && !clean(a));
            assert!(differs.is_none(), "{entity}: {differs:#?}");
        }
        let twice =
            import::plan(&world.store, ImportFormat::Jsonl, "export.jsonl", &lines, false).await.expect("a plan");
        assert!(twice.is_empty(), "{:?}", twice.effects);
        // As deep as a stored value can be, in a line that is a level more.
        let deep = format!("{}1{}", "[".repeat(128), "]".repeat(128));
        let line = format!("{{\"entity\": \"episode\", \"id\": \"deep\", \"metadata\": {deep}}}");
        done(&world, import::plan(&world.store, ImportFormat::Jsonl, "x", &line, false).await).await;
        let stored = world.store.row(Entity::Episode, "deep").await.unwrap().expect("the episode");
        assert_eq!(stored.get("metadata").to_string(), deep);
        for bad in [
            "{\"id\": 1}",
            "{\"entity\": \"unicorn\"}",
            "{\"entity\": \"episode\", \"titel\": \"x\", \"id\": \"1\"}",
            "{\"entity\": \"episode\", \"id\": 5}",
            "{\"entity\": \"episode\"}",
        ] {
            let plan = import::plan(&world.store, ImportFormat::Jsonl, "x", bad, false).await;
            assert!(matches!(&plan, Err(ChangeError::Usage(words)) if words.contains("line 1")), "{bad}: {plan:?}");
        }
    });
}

#[test]
fn rows_come_after_those_that_they_refer_to_and_without_those_that_are_not_there() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        let Target::Postgres(url) = &world.target else { panic!("a server") };
        let mut server = PgConnection::connect(url).await.expect("the server");
        let key = "ALTER TABLE episodes ADD FOREIGN KEY (parent_id) REFERENCES episodes (id) NOT VALID";
        sqlx::raw_sql(key).execute(&mut server).await.expect("a key");
        let episode = |id: &str, parent: &str| {
            json!({"entity": "episode", "id": id, "title": id, "parent_id": parent}).to_string()
        };
        let feedback = json!({"entity": "feedback", "id": "f", "kind": "thumbs_up", "episode_id": "grandchild"});
        let parts = [
            [feedback.to_string(), episode("grandchild", "child"), episode("lost", "nowhere")].join("\n"),
            [episode("child", "root"), episode("late", "grandchild")].join("\n"),
            [episode("one", "two"), episode("two", "one"), episode("root", "lost")].join("\n"),
        ];
        let progress = ImportProgress::default();
        let mut said = Vec::new();
        for (number, text) in parts.iter().enumerate() {
            let part = ImportPart { text, first_line: 1, progress: &progress, is_last: number == 2 };
            let plan = || import::plan_part(&world.store, ImportFormat::Jsonl, "x.jsonl", part, false);
            let (planned, _) = change::plan_and_apply(&world.store, &author(), plan).await.expect("a part");
            said.extend(planned.disclosures);
            progress.advance();
        }
        let parents = "SELECT id || ' ' || coalesce(parent_id, '-') FROM episodes ORDER BY id";
        let stored = ["child root", "grandchild child", "late grandchild", "lost -", "one two", "root lost", "two one"];
        let found: Vec<String> = sqlx::query_scalar(parents).fetch_all(&mut server).await.expect("episodes");
        assert_eq!(found, stored);
        let left_out = "1 value of episodes.parent_id is left out: it refers to a row of episodes that is";
        assert_eq!(said.iter().filter(|words| words.contains("left out")).count(), 1, "{said:?}");
        assert!(said.iter().any(|words| words.starts_with(left_out)), "{said:?}");
        // Where the column may not be empty, the row is bad.
        let strict = "DELETE FROM episodes; ALTER TABLE episodes ALTER parent_id SET NOT NULL";
        sqlx::raw_sql(strict).execute(&mut server).await.expect("a rule");
        let store = open(&world.target).await;
        let refused = import::plan(&store, ImportFormat::Jsonl, "x.jsonl", &episode("lost", "nowhere"), false).await;
        assert!(matches!(&refused, Err(ChangeError::Usage(words)) if words.contains("line 1")), "{refused:?}");
    });
}

#[test]
fn what_a_foreign_key_compares_in_any_case_is_not_left_out() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        let Target::Postgres(url) = &world.target else { panic!("a server") };
        let mut server = PgConnection::connect(url).await.expect("the server");
        if sqlx::raw_sql("CREATE EXTENSION citext").execute(&mut server).await.is_err() {
            eprintln!("SKIPPED: this PostgreSQL has no extension citext");
            return;
        }
        let key = "ALTER TABLE episode_embeddings DROP CONSTRAINT episode_embeddings_episode_id_fkey; \
             ALTER TABLE episodes ALTER id TYPE citext, ALTER parent_id TYPE citext; \
             INSERT INTO episodes (id, title) VALUES ('Stored', 'there'); \
             ALTER TABLE episodes ADD FOREIGN KEY (parent_id) REFERENCES episodes (id)";
        sqlx::raw_sql(key).execute(&mut server).await.expect("a key");
        let episode = |id: &str, parent: &str| {
            json!({"entity": "episode", "id": id, "title": id, "parent_id": parent}).to_string()
        };
        let text = [episode("leaf", "BRANCH"), episode("Branch", "sTORED"), episode("lost", "nowhere")].join("\n");
        let store = open(&world.target).await;
        let plan = import::plan(&store, ImportFormat::Jsonl, "x.jsonl", &text, false).await;
        let receipt = done(&world, plan).await;
        let said = receipt.disclosures.join("; ");
        assert!(said.contains("1 value of episodes.parent_id is left out"), "{said}");
        let parents = "SELECT id || ' ' || coalesce(parent_id, '-') FROM episodes WHERE id <> 'stored' ORDER BY id";
        let found: Vec<String> = sqlx::query_scalar(parents).fetch_all(&mut server).await.expect("episodes");
        assert_eq!(found, ["Branch sTORED", "leaf BRANCH", "lost -"]);
    });
}

#[test]
fn a_circle_comes_back_although_its_rows_are_spelled_in_different_ways() {
    block_on(async {
        let (Some(from), Some(to)) = (native_on_postgres().await, native_on_postgres().await) else { return };
        let rows = "INSERT INTO episodes (id, title, parent_id, tags) VALUES ('one', 'a', 'two', '\"odd\"'), \
             ('two', 'b', 'one', '[]'), ('three', 'c', 'two', NULL); \
             INSERT INTO episodes (id, title) SELECT 'many-' || n, 'x' FROM generate_series(1, 400) n; \
             UPDATE episodes SET parent_id = 'many-1' WHERE id = 'many-400'; \
             UPDATE episodes SET parent_id = 'many-400' WHERE id = 'many-1'";
        let mut found = Vec::new();
        for (world, rows) in [(&from, rows), (&to, "")] {
            let Target::Postgres(url) = &world.target else { panic!("a server") };
            let mut server = PgConnection::connect(url).await.expect("the server");
            let script = format!("ALTER TABLE episodes ADD FOREIGN KEY (parent_id) REFERENCES episodes (id); {rows}");
            sqlx::raw_sql(AssertSqlSafe(script)).execute(&mut server).await.expect("episodes");
            if rows.is_empty() {
                sent(&from.target, &to.target, &[Entity::Episode]);
            }
            let all = "SELECT to_jsonb(e)::text FROM episodes e ORDER BY id";
            found.push(sqlx::query_scalar::<_, String>(all).fetch_all(&mut server).await.expect("episodes"));
        }
        assert_eq!(found[0].len(), 403);
        assert_eq!(found[0], found[1]);
    });
}

#[test]
fn a_column_that_the_other_layout_lacks_takes_the_default_of_its_table() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        build_postgres(Layout::EnnubeJson, database.url()).await;
        let from = Target::Postgres(database.url().to_owned());
        let lines = printed(&from, &["export", "profile", "case"]);
        let cases = lines.lines().filter(|line| line.contains("\"entity\":\"case\"")).count();
        assert!(cases > 0, "{lines}");
        let file = native(1).await;
        for world in [Some(file), native_on_postgres().await].into_iter().flatten() {
            done(&world, import::plan(&world.store, ImportFormat::Jsonl, "x.jsonl", &lines, false).await).await;
            let known = all(&world.store, Entity::Case).await;
            let came = known.iter().filter(|row| lines.contains(row.id())).collect::<Vec<_>>();
            assert_eq!(came.len(), cases);
            assert!(came.iter().all(|row| row.get("quarantined") == &json!(false)));
        }
    });
}

#[test]
fn a_number_that_cannot_be_kept_is_refused_wherever_json_is_given() {
    block_on(async {
        let world = native(3).await;
        let store = &world.store;
        let wide = "12345678901234567890123";
        let episode = format!("{{\"id\":\"wide\",\"agent_id\":\"a\",\"title\":\"t\",\"metadata\":{{\"n\":{wide}}}}}");
        let refused = record::episode(store, &episode).await;
        assert!(matches!(&refused, Err(ChangeError::Usage(words)) if words.contains("64 bits")), "{refused:?}");
        let memory = format!("{{\"id\":\"wide\",\"text\":\"t\",\"metadata\":[{wide}]}}");
        let refused = record::plan(store, Entity::Memory, &memory).await;
        assert!(matches!(&refused, Err(ChangeError::Usage(words)) if words.contains("64 bits")), "{refused:?}");
        let column = Entity::Episode.column("metadata").expect("a column");
        let read = |text: &str| read_value(column, text, chrono::Utc::now());
        assert!(read(&format!("{{\"n\":{wide}}}")).is_err());
        assert_eq!(read("{\"n\":18446744073709551615}"), Ok(json!({"n": u64::MAX})));
        let memento = format!("{{\"case\":\"What?\",\"plan\":{{\"n\":{wide}}},\"case_label\":\"positive\"}}");
        let trajectory = format!(
            "[{{\"task_id\":9,\"trial\":0,\"reward\":1.0,\"info\":{{\"task\":{{\"user_id\":\"eve\",\"n\":{wide}}}}},\
             \"traj\":[{{\"role\":\"user\",\"content\":\"x\"}}]}}]"
        );
        let trajectory = lines_of(&trajectory).expect("lines");
        for (format, text) in [(ImportFormat::Memento, memento), (ImportFormat::TauBench, trajectory)] {
            let refused = import::plan(store, format, "x", &text, false).await;
            assert!(matches!(&refused, Err(ChangeError::Usage(words)) if words.contains("64 bits")), "{refused:?}");
        }
    });
}

/// Runs the program on a database; gives what it prints.
fn printed(target: &Target, arguments: &[&str]) -> String {
    let state = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    command.env("MNEMOSCOPE_STATE", state.path()).env("MNEMOSCOPE_ACTOR", "tester");
    let output = command.args([&["-d", &*address_of(target)], arguments].concat()).output().expect("the program");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Puts what one database exports into another one that has the same structure and no rows; gives the plan.
fn sent(from: &Target, to: &Target, entities: &[Entity]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("all.jsonl");
    let names: Vec<&str> = entities.iter().map(|entity| entity.name()).collect();
    std::fs::write(&file, printed(from, &[&["export"], &names[..]].concat())).expect("a file");
    let import = ["import", "jsonl", file.to_str().expect("a path")];
    let plan = serde_json::from_str(&printed(to, &import)).expect("a plan");
    printed(to, &[&import[..], &["--apply"]].concat());
    plan
}

#[test]
fn every_table_holds_after_an_import_what_it_held_before_the_export() {
    block_on(async {
        let world = native(60).await;
        let Target::File(path) = &world.target else { panic!("a file") };
        let copy = path.with_file_name("copy.db");
        let mut link = sqlx::SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.expect("it");
        // The demo's one row with secrets: an import takes these out, and says so.
        let secret = "UPDATE memories SET text = 'none', title = 'none', metadata = NULL WHERE text LIKE '%AKIA%'";
        sqlx::raw_sql(secret).execute(&mut link).await.expect("no secret");
        let into = format!("VACUUM INTO '{}'", copy.display());
        sqlx::raw_sql(AssertSqlSafe(into)).execute(&mut link).await.expect("a copy");
        let tables = ["profiles", "cases", "embeddings", "policies"].map(|name| format!("agent_memory_{name}"));
        let others = ["agents", "subjects", "memory_embeddings", "memories", "memory_access", "memory_access_items"]
            .map(str::to_owned);
        let mut other = sqlx::SqliteConnection::connect(&format!("sqlite:{}", copy.display())).await.expect("it");
        sqlx::raw_sql("PRAGMA foreign_keys = OFF").execute(&mut other).await.expect("off");
        for table in tables.iter().chain(&others) {
            let empty = format!("DELETE FROM {table}");
            sqlx::raw_sql(AssertSqlSafe(empty)).execute(&mut other).await.expect("empty");
        }
        other.close().await.expect("closed");
        let entities = [
            Entity::Agent,
            Entity::Subject,
            Entity::Profile,
            Entity::Case,
            Entity::Policy,
            Entity::Memory,
            Entity::Access,
        ];
        sent(&world.target, &Target::File(copy.clone()), &entities);
        sqlx::raw_sql(AssertSqlSafe(format!("ATTACH '{}' AS copy", copy.display())))
            .execute(&mut link)
            .await
            .expect("both");
        for table in tables.iter().chain(&others) {
            let lost = format!(
                "SELECT count(*) FROM (SELECT * FROM main.{table} EXCEPT SELECT * FROM copy.{table} \
                 UNION ALL SELECT * FROM (SELECT * FROM copy.{table} EXCEPT SELECT * FROM main.{table}))"
            );
            let lost: i64 = sqlx::query_scalar(AssertSqlSafe(lost)).fetch_one(&mut link).await.expect("a count");
            let secrets = match table.as_str() {
                "agent_memory_cases" | "memory_access" => 2,
                // The vector of a text that held a secret is left out.
                "agent_memory_embeddings" => 1,
                _ => 0,
            };
            assert!(lost <= secrets, "{table}: {lost} rows differ");
        }
    });
}

#[test]
fn vectors_of_rows_that_are_read_from_several_tables_come_back_too() {
    block_on(async {
        let Some(database) = Database::fresh().filter(Database::has_vector) else { return };
        build_postgres(Layout::EnnubeVectors, database.url()).await;
        let source = Target::Postgres(database.url().to_owned());
        migrate::apply(&open(&source).await, &author(), None).await.expect("our tables");
        let copy = database.copy();
        let target = Target::Postgres(copy.url().to_owned());
        let mut link = PgConnection::connect(copy.url()).await.expect("the server");
        sqlx::raw_sql("TRUNCATE agent_memory_profiles CASCADE").execute(&mut link).await.expect("empty");
        let plan = sent(&source, &target, &[Entity::Profile, Entity::Case, Entity::Policy, Entity::AuditEntry]);
        assert!(plan["disclosures"].to_string().contains("audit_entry rows are left out"), "{plan:#}");
        let mut first = PgConnection::connect(database.url()).await.expect("the server");
        for name in ["profiles", "cases", "embeddings", "policies"] {
            let rows = format!("SELECT t::text FROM agent_memory_{name} t ORDER BY 1");
            let wanted: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(rows.clone())).fetch_all(&mut first).await.expect("rows");
            let found: Vec<String> = sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut link).await.expect("rows");
            assert!(!wanted.is_empty(), "{name}");
            assert_eq!(found, wanted, "{name}");
        }
        // A file without the vectors says what is lost.
        sqlx::raw_sql("TRUNCATE agent_memory_profiles CASCADE").execute(&mut link).await.expect("empty");
        let bare: String = ["profile", "case"]
            .iter()
            .flat_map(|entity| {
                let rows = printed(&source, &["list", entity, "--limit", "1000", "--format", "jsonl"]);
                rows.lines().map(|line| format!("{{\"entity\":\"{entity}\",{}\n", &line[1..])).collect::<Vec<_>>()
            })
            .collect();
        let plan = import::plan(&open(&target).await, ImportFormat::Jsonl, "bare.jsonl", &bare, false).await;
        let said = plan.expect("a plan").disclosures.join("; ");
        assert!(said.contains("had a vector that the file does not contain"), "{said}");
        link.close().await.expect("closed");
        first.close().await.expect("closed");
    });
}

#[test]
fn rows_that_a_layout_keeps_in_its_own_words_are_left_out_and_named() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        build_postgres(Layout::NousPlanned, database.url()).await;
        let target = Target::Postgres(database.url().to_owned());
        migrate::apply(&open(&target).await, &author(), None).await.expect("our tables");
        let lines = printed(&target, &["export", "feedback", "episode"]);
        let plan = import::plan(&open(&target).await, ImportFormat::Jsonl, "x.jsonl", &lines, false).await;
        let said = plan.expect("a plan").disclosures.join("; ");
        assert!(said.contains("feedback row is left out: Nous keeps outcome signals in its own words"), "{said}");
    });
}

#[test]
fn what_the_database_cannot_store_is_a_bad_line_like_any_other() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        let lines = "{\"entity\": \"episode\", \"id\": \"good\", \"agent_id\": \"a\", \"title\": \"fine\"}\n\
            {\"entity\": \"episode\", \"id\": \"nul\", \"agent_id\": \"a\", \"title\": \"a\\u0000b\"}\n\
            {\"entity\": \"episode\", \"id\": \"deep\", \"agent_id\": \"a\", \"metadata\": {\"k\": [\"a\\u0000b\"]}}\n";
        let refused = import::plan(&world.store, ImportFormat::Jsonl, "x.jsonl", lines, false).await;
        let named = |words: &str| words.contains("line 2") && words.contains("NUL") && words.contains("2 bad");
        assert!(matches!(&refused, Err(ChangeError::Usage(words)) if named(words)), "{refused:?}");
        let receipt = done(&world, import::plan(&world.store, ImportFormat::Jsonl, "x.jsonl", lines, true).await).await;
        assert_eq!(receipt.changes.iter().map(|c| c.id.as_str()).collect::<Vec<_>>(), ["good"]);
        assert!(
            receipt.disclosures.iter().any(|d| d.ends_with("at 2, 3 (episode nul, episode deep)")),
            "{:?}",
            receipt.disclosures
        );
        // Of a trajectory all or nothing goes in.
        let trajectory = |text: &str| {
            json!({"task_id": 9, "trial": 0, "reward": 1.0, "info": {"task": {"user_id": "eve", "instruction": "x"}},
                "traj": [{"role": "user", "content": text}, {"role": "assistant", "content": "yes"}]})
        };
        let lines = [trajectory("a\0b"), trajectory("well")].map(|one| one.to_string()).join("\n");
        let receipt =
            done(&world, import::plan(&world.store, ImportFormat::TauBench, "t.json", &lines, true).await).await;
        let episodes = receipt.changes.iter().filter(|c| c.entity == "episode").count();
        let segments = receipt.changes.iter().filter(|c| c.entity == "segment").count();
        assert_eq!((episodes, segments), (1, 2), "{:?}", receipt.changes);
        assert!(receipt.disclosures.iter().any(|d| d.contains("at 1")), "{:?}", receipt.disclosures);
    });
}

#[test]
fn a_bank_whose_ids_are_uuids_takes_no_foreign_file() {
    block_on(async {
        let Some(database) = Database::fresh() else { return };
        build_postgres(Layout::EnnubeJson, database.url()).await;
        let target = Target::Postgres(database.url().to_owned());
        migrate::apply(&open(&target).await, &author(), None).await.expect("our tables");
        let line = "{\"case\": \"What?\", \"plan\": \"\", \"case_label\": \"positive\"}";
        let plan = import::plan(&open(&target).await, ImportFormat::Memento, "bank.jsonl", line, false).await;
        assert!(matches!(&plan, Err(ChangeError::Refused(words)) if words.contains("native layout")), "{plan:?}");
    });
}

#[test]
fn a_prompt_has_one_hash_whoever_makes_it() {
    let hash = |prompt: Value| import::prompt_hash(&prompt);
    for prompt in
        [json!("How?"), json!({"id": 1, "message": "How?"}), json!({"query": "How?"}), json!({"text": "How?"})]
    {
        assert_eq!(hash(prompt), import::message_hash("How?"));
    }
    assert_eq!(hash(json!({"a": 1, "b": {"c": 2, "d": 3}})), hash(json!({"b": {"d": 3, "c": 2}, "a": 1})));
}

#[test]
fn a_recorded_case_follows_the_rules_of_its_bank() {
    block_on(async {
        for world in worlds().await {
            let store = &world.store;
            let case =
                json!({"user_id": "u-new", "agent_id": "a-new", "prompt": {"message": "How?"}, "outcome": "partial"});
            let receipt = done(&world, record::case(store, &case.to_string()).await).await;
            assert_eq!(receipt.counts["agent_memory_audit"]["insert"], 1);
            let row =
                all(store, Entity::Case).await.into_iter().find(|c| c.text("user_id") == Some("u-new")).expect("it");
            assert_eq!(row.number("reward"), Some(0.5));
            assert_eq!(row.text("message_hash"), Some(import::message_hash("How?").as_str()));
            let twice = record::case(store, &case.to_string()).await;
            assert!(matches!(&twice, Err(ChangeError::Refused(words)) if words.contains(row.id())), "{twice:?}");
            // Another case in the bank that the first one made: it cannot be removed under it.
            let second = json!({"user_id": "u-new", "agent_id": "a-new", "prompt": "Why?", "reward": 0.25});
            done(&world, record::case(store, &second.to_string()).await).await;
            let undone = undo::undo(store, receipt.audit_seq.unwrap()).await;
            assert!(
                matches!(&undone, Err(ChangeError::Conflict { rows, .. }) if rows.iter().any(|r| r.contains("refer"))),
                "{undone:?}"
            );
            for bad in [
                json!({"prompt": "x"}),
                json!({"user_id": "u", "agent_id": "a"}),
                json!({"user_id": "u", "agent_id": "a", "prompt": "x", "reward": 2}),
                json!({"user_id": "u", "agent_id": "a", "prompt": "x", "rewrd": 1}),
                json!([]),
            ] {
                assert!(matches!(record::case(store, &bad.to_string()).await, Err(ChangeError::Usage(_))), "{bad}");
            }
        }
    });
}

#[test]
fn a_recorded_episode_is_no_duplicate_and_knows_its_parent() {
    block_on(async {
        for world in worlds().await {
            let store = &world.store;
            let episode = json!({"id": "ep-own", "agent_id": "a", "user_id": "u", "title": "Sent the offer",
                "started_at": "2026-02-04T10:00:00Z", "ended_at": "2026-02-04T10:02:00Z", "outcome": "success",
                "detail": "token ghp_abcdefghijklmnopqrstuvwxyz0123456789"});
            let receipt = done(&world, record::episode(store, &episode.to_string()).await).await;
            let row = store.row(Entity::Episode, "ep-own").await.unwrap().expect("it");
            assert_eq!((row.text("status"), row.number("duration_seconds")), (Some("closed"), Some(120.0)));
            assert_eq!(row.text("detail"), Some("token [secret removed]"));
            let mut twin = episode.clone();
            twin["id"] = json!("ep-twin");
            assert!(matches!(record::episode(store, &twin.to_string()).await, Err(ChangeError::Refused(_))));
            assert!(matches!(record::episode(store, &episode.to_string()).await, Err(ChangeError::Refused(_))));
            twin["title"] = json!("Called back");
            twin["parent_id"] = json!("nowhere");
            assert!(matches!(record::episode(store, &twin.to_string()).await, Err(ChangeError::NotFound(_))));
            twin["parent_id"] = json!("ep-own");
            let child = done(&world, record::episode(store, &twin.to_string()).await).await;
            done(&world, undo::undo(store, child.audit_seq.unwrap()).await).await;
            done(&world, undo::undo(store, receipt.audit_seq.unwrap()).await).await;
            assert!(store.row(Entity::Episode, "ep-own").await.unwrap().is_none());
        }
    });
}

#[test]
fn a_large_file_goes_in_in_parts_and_once_only() {
    use std::io::Write as _;
    block_on(async {
        let folder = tempfile::TempDir::new().unwrap();
        let run = |arguments: &[&str]| {
            let mut program = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
            program
                .current_dir(folder.path())
                .env("MNEMOSCOPE_STATE", folder.path().join("state"))
                .stdin(Stdio::null());
            program.args(arguments).output().expect("the program")
        };
        let made = run(&["demo", "whole.db", "--no-console", "--episodes", "10"]);
        assert_eq!(made.status.code(), Some(0));
        assert_eq!(run(&["-d", "whole.db", "migrate", "--apply"]).status.code(), Some(0));
        let mut file = std::io::BufWriter::new(std::fs::File::create(folder.path().join("large.jsonl")).unwrap());
        // Blanks are read like anything else, and cost the rows nothing.
        let blanks = " ".repeat(35_000);
        for i in 0..600 {
            let row = json!({"entity": "episode", "id": format!("large-{i}"), "title": format!("Large {i}"),
                "started_at": "2026-02-04T10:00:00Z", "status": "closed"});
            writeln!(file, "{row}{blanks}").unwrap();
        }
        file.flush().unwrap();
        // A bad line in the last part: the parts before it stand.
        std::fs::copy(folder.path().join("whole.db"), folder.path().join("half.db")).unwrap();
        let lines = std::fs::read_to_string(folder.path().join("large.jsonl")).unwrap();
        std::fs::write(folder.path().join("bad.jsonl"), lines + "{\n").unwrap();
        let half = run(&["-d", "half.db", "import", "jsonl", "bad.jsonl", "--apply"]);
        let (printed, said) = (String::from_utf8_lossy(&half.stdout), String::from_utf8_lossy(&half.stderr));
        let printed: Value = serde_json::from_str(&printed).unwrap_or_else(|e| panic!("{e}: {said}"));
        assert_eq!((half.status.code(), &printed["status"]), (Some(6), &json!("incomplete")), "{said}");
        assert_eq!(printed["receipts"].as_array().map(Vec::len), Some(2), "{printed}");
        assert!(said.contains("2 earlier parts are imported and stay") && said.contains("line 601"), "{said}");
        let answer = |arguments: &[&str]| -> Value {
            let output = run(&[&["-d", "whole.db", "import", "jsonl", "large.jsonl"], arguments].concat());
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {words}"))
        };
        let plan = answer(&[]);
        assert_eq!((&plan["parts"], &plan["counts"]["episodes"]["insert"]), (&json!(3), &json!(600)), "{plan}");
        let receipt = answer(&["--apply"]);
        assert_eq!(receipt["counts"], plan["counts"]);
        let receipts = receipt["receipts"].as_array().unwrap();
        assert_eq!(receipts.len(), 3, "{receipt}");
        // A stream is put in as a file is.
        let mut streamed = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        streamed.current_dir(folder.path()).env("MNEMOSCOPE_STATE", folder.path().join("state"));
        streamed.stdin(std::fs::File::open(folder.path().join("large.jsonl")).unwrap());
        let output = streamed.args(["-d", "whole.db", "import", "jsonl", "-"]).output().expect("the program");
        let streamed: Value = serde_json::from_slice(&output.stdout).expect("a plan");
        assert_eq!((&streamed["parts"], &streamed["counts"]), (&json!(3), &json!({})), "{streamed}");
        let again = answer(&["--apply"]);
        assert_eq!((&again["status"], &again["counts"]), (&json!("nothing to do"), &json!({})), "{again}");
        let count = |world: &str| {
            let listed = run(&["-d", world, "--format", "jsonl", "list", "episode", "--where", "title ~ Large"]);
            String::from_utf8_lossy(&listed.stdout).lines().count()
        };
        assert_eq!(count("whole.db"), 600);
    });
}

#[test]
fn a_long_list_of_trajectories_goes_in_in_parts_and_once_only() {
    block_on(async {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("airline.json");
        // Blanks within a trajectory are read with it.
        let blanks = " ".repeat(350_000);
        let trajectory = |i: usize| {
            format!(
                "{{\"task_id\":{i},\"trial\":0,\"reward\":1.0,\"info\":{{\"task\":{{\"user_id\":\"ann\"}}}},{blanks}\n\
                 \"traj\":[{{\"role\":\"user\",\"content\":\"Book {i}\"}}]}}"
            )
        };
        let list: Vec<String> = (0..50).map(trajectory).collect();
        std::fs::write(&file, format!("[\n{}\n]", list.join(",\n"))).unwrap();
        for world in worlds().await {
            let words = ["import", "tau-bench", file.to_str().expect("a path")];
            let answer = |more: &[&str]| -> Value {
                serde_json::from_str(&printed(&world.target, &[&words, more].concat())).expect("JSON")
            };
            let expected = json!({
                "agents": {"insert": 1}, "agent_memory_profiles": {"insert": 1}, "agent_memory_cases": {"insert": 50},
                "episodes": {"insert": 50}, "episode_segments": {"insert": 50}, "workflow_events": {"insert": 150},
            });
            // The file is cut before an engine is asked.
            if let Target::File(_) = world.target {
                let plan = answer(&[]);
                assert_eq!((&plan["parts"], &plan["counts"]), (&json!(2), &expected), "{}", plan["disclosures"]);
            }
            let receipt = answer(&["--apply"]);
            assert_eq!((&receipt["status"], &receipt["counts"]), (&json!("applied"), &expected));
            assert_eq!(receipt["receipts"].as_array().map(Vec::len), Some(2));
            if let Target::File(_) = world.target {
                let again = answer(&["--apply"]);
                assert_eq!((&again["status"], &again["counts"]), (&json!("nothing to do"), &json!({})), "{again}");
            }
            let cases = all(&world.store, Entity::Case).await;
            let banks: std::collections::BTreeSet<_> =
                cases.iter().filter(|c| c.id().starts_with("tau-")).map(|c| c.text("profile_id")).collect();
            assert_eq!(banks.len(), 1, "{banks:?}");
        }
    });
}

#[test]
fn a_plan_in_parts_knows_what_earlier_parts_put_in() {
    block_on(async {
        let Some(world) = native_on_postgres().await else { return };
        let bank = json!({"entity": "profile", "id": "bank-new", "user_id": "ann", "agent_id": "bot"}).to_string();
        let case = json!({"entity": "case", "id": "case-new", "profile_id": "bank-new", "user_id": "ann",
            "agent_id": "bot", "prompt": {"message": "x"}})
        .to_string();
        let progress = ImportProgress::default();
        for (number, text) in [bank, case].iter().enumerate() {
            let part = ImportPart { text, first_line: 1, progress: &progress, is_last: number == 1 };
            let plan = import::plan_part(&world.store, ImportFormat::Jsonl, "x.jsonl", part, false).await;
            let plan = plan.unwrap_or_else(|error| panic!("{error}"));
            assert!(!plan.disclosures.iter().any(|words| words.contains("left out")), "{:?}", plan.disclosures);
            progress.advance();
        }
    });
}

#[test]
fn words_lose_secrets_on_every_way_in_and_ids_stay() {
    const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
    let words = format!("Use {KEY}");
    let full = |entity: Entity, id: &str| {
        let mut row = json!({"entity": entity.name(), "id": id});
        for column in entity.columns().iter().filter(|column| column.holds_words()) {
            row[column.name] = match column.kind {
                ValueKind::List => json!([words]),
                ValueKind::Json => json!({"note": words}),
                _ => json!(words),
            };
        }
        row
    };
    let mut episode = full(Entity::Episode, "words-1");
    for (name, value) in [
        ("session_id", json!(KEY)),
        ("execution_ids", json!([KEY])),
        ("started_at", json!("2026-05-01T00:00:00.000000Z")),
    ] {
        episode[name] = value;
    }
    let mut given = episode.clone();
    for (name, value) in [("id", "words-2"), ("title", "Another one"), ("started_at", "2026-05-02T00:00:00.000000Z")] {
        given[name] = json!(value);
    }
    given.as_object_mut().expect("a row").remove("entity");
    let others = [Entity::Segment, Entity::CanvasEvent, Entity::Memory].map(|entity| {
        let mut row = full(entity, "words-3");
        if entity == Entity::Memory {
            row["kind"] = json!("drawer");
        } else {
            row["episode_id"] = json!("words-1");
        }
        row
    });
    let lines: Vec<String> = others.iter().chain([&episode]).map(ToString::to_string).collect();
    let lines = lines.join("\n");
    block_on(async {
        for world in worlds().await {
            let store = &world.store;
            let told = |receipt: &Receipt| {
                assert!(receipt.disclosures.iter().any(|words| words.contains("x AWS access key")), "{receipt:?}");
            };
            told(&done(&world, import::plan(store, ImportFormat::Jsonl, "x", &lines, false).await).await);
            told(&done(&world, record::plan(store, Entity::Episode, &given.to_string()).await).await);
            let set = Map::from_iter([("topic".to_owned(), json!(words)), ("tags".to_owned(), json!([words]))]);
            told(&done(&world, edit::edit(store, Entity::Episode, "words-2", &set, &Map::new()).await).await);
            for (entity, id) in [
                (Entity::Episode, "words-1"),
                (Entity::Episode, "words-2"),
                (Entity::Segment, "words-3"),
                (Entity::CanvasEvent, "words-3"),
                (Entity::Memory, "words-3"),
            ] {
                let row = store.row(entity, id).await.expect("an answer").expect("the row");
                // Not each database has a place for each of them.
                let filled = |(_, value): &(&Column, &Value)| !value.is_null();
                for (column, value) in entity.columns().iter().zip(&row.values).filter(filled) {
                    let keeps = ["session_id", "execution_ids"].contains(&column.name) && entity == Entity::Episode;
                    let place = format!("{entity} {id} {}: {value}", column.name);
                    assert_eq!(value.to_string().contains(KEY), keeps, "{place}");
                    assert_eq!(value.to_string().contains("[secret removed]"), is_filled(column, id), "{place}");
                }
            }
        }
    });
}

/// Whether a column held a secret before it came in: the title of the second row held none.
fn is_filled(column: &Column, id: &str) -> bool {
    column.holds_words() && !(column.name == "title" && id == "words-2")
}

#[test]
fn lines_that_are_not_utf8_are_named_and_skipped_when_told_to_and_a_byte_order_mark_is_passed_over() {
    let not_text = |text: &str| text.replace("BAD", "\u{1}").bytes().map(|b| if b == 1 { 0xff } else { b }).collect();
    let case = |case: &str| format!("{{\"case\": \"{case}\", \"plan\": \"\", \"case_label\": \"positive\"}}\n");
    let lines = trajectories();
    let (good, bad) = lines.trim_end().split_once('\n').expect("two");
    let (good, bad) = (good.replace("Booking", "Bücher"), bad.replace("Booking", "BAD"));
    let memory =
        |id: &str| format!("{{\"entity\": \"memory\", \"id\": \"{id}\", \"kind\": \"drawer\", \"text\": \"{id}\"}}\n");
    let files: [(&str, Vec<u8>); 3] = [
        ("memento", not_text(&format!("\u{feff}{}{}{}", case("é?"), case("BAD"), case("Who?")))),
        ("tau-bench", not_text(&format!("\u{feff}[{good},\n{bad}]"))),
        ("jsonl", not_text(&format!("\u{feff}{}{}", memory("mark-1"), memory("BAD")))),
    ];
    block_on(async {
        for world in worlds().await {
            let folder = tempfile::tempdir().expect("a folder");
            let database = address(&world);
            for (format, bytes) in &files {
                let format = *format;
                let file = folder.path().join(format);
                std::fs::write(&file, bytes).expect("a file");
                let import = ["import", format, file.to_str().expect("a path"), "--apply"];
                let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
                command.env("MNEMOSCOPE_STATE", folder.path().join("state")).env("MNEMOSCOPE_ACTOR", "tester");
                let refused = command.args([&["-d", database.as_str()], &import[..]].concat()).output().expect("it");
                let words = String::from_utf8_lossy(&refused.stderr);
                assert_eq!(refused.status.code(), Some(2), "{format}: {words}");
                assert!(words.contains(" 2: it is not UTF-8 text"), "{format}: {words}");
                let receipt = printed(&world.target, &[&import[..], &["--skip-bad"]].concat());
                assert!(receipt.contains("1 bad one is left out, at 2"), "{format}: {receipt}");
            }
            let store = &world.store;
            let cases = all(store, Entity::Case).await;
            let told: Vec<&str> = cases.iter().filter_map(|case| case.get("prompt")["message"].as_str()).collect();
            assert!(told.contains(&"é?") && told.contains(&"Who?"), "{told:?}");
            let segments = all(store, Entity::Segment).await;
            assert!(segments.iter().any(|segment| segment.text("content") == Some("Bücher")));
            assert!(store.row(Entity::Memory, "mark-1").await.expect("an answer").is_some());
        }
    });
}

#[test]
fn commands_keep_the_contract_of_exit_codes() {
    block_on(async {
        let world = native(40).await;
        let Target::File(path) = &world.target else { return };
        let folder = path.parent().expect("a folder");
        let code = |arguments: &[&str]| {
            let mut program = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
            program
                .current_dir(folder)
                .env("MNEMOSCOPE_STATE", folder.join("state"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            program.args(["-d", "native.db"]).args(arguments).status().expect("the program").code()
        };
        let episode = all(&world.store, Entity::Episode).await[0].id().to_owned();
        let add = ["feedback", "add", &episode, "--kind", "thumbs_up"];
        let with = |more: &[&'static str]| code(&[&add[..], more].concat());
        assert_eq!(with(&["--plan-out", "plan.json"]), Some(0));
        assert_eq!(code(&["apply", "plan.json"]), Some(0));
        assert_eq!(code(&["apply", "plan.json"]), Some(4), "the world moved: it was applied already");
        assert_eq!(code(&["apply", "none.json"]), Some(3));
        let edited = std::fs::read_to_string(folder.join("plan.json")).unwrap().replace("thumbs_up", "thumbs_down");
        std::fs::write(folder.join("edited.json"), edited).unwrap();
        assert_eq!(code(&["apply", "edited.json"]), Some(2));
        assert_eq!(code(&["feedback", "add", &episode, "--kind", "rating", "--rating", "9"]), Some(2));
        assert_eq!(code(&["feedback", "add", "nowhere", "--kind", "thumbs_up"]), Some(3));
        assert_eq!(code(&["link", &episode, &episode]), Some(5));
        assert_eq!(code(&["undo", "1", "--apply"]), Some(5));
        assert_eq!(code(&["audit", "anchor", "anchor.jsonl"]), Some(0));
        assert_eq!(code(&["audit", "verify", "--anchor", "anchor.jsonl"]), Some(0));
        let mut file = sqlx::SqliteConnection::connect(&path.display().to_string()).await.expect("the file");
        sqlx::query("UPDATE memory_audit SET actor = 'x' WHERE seq = 2").execute(&mut file).await.expect("an edit");
        assert_eq!(code(&["audit", "verify"]), Some(7));
        assert_eq!(code(&["undo", "2"]), Some(7));
    });
}
