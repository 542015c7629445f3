//! Looking at a database through the store and the command: pages, layouts, masks and names, on small databases that
//! hold what real ones hold.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mnemoscope::layout::parse;
use mnemoscope::memory::filter::{Filter, Operand, Operator};
use mnemoscope::memory::query::{Order, PageStart, Query};
use mnemoscope::memory::{Entity, Row};
use mnemoscope::store::context::Relatives;
use mnemoscope::store::{OpenOptions, Store, Target};
use sqlx::Connection as _;
use tempfile::TempDir;

use crate::support::block_on;
use crate::support::fixtures::Layout;
use crate::support::world;

const ATOM: &str =
    "CREATE TABLE agent_episodes (id VARCHAR NOT NULL PRIMARY KEY, agent_id VARCHAR, task_description TEXT,
    session_id VARCHAR, started_at DATETIME, canvas_ids JSON, canvas_action_count INTEGER, feedback_ids JSON,
    aggregate_feedback_score FLOAT, metadata_json JSON)";

async fn sqlite(folder: &TempDir, statements: &[&str]) -> PathBuf {
    let path = folder.path().join("memory.db");
    let url = format!("sqlite:{}?mode=rwc", path.display());
    let mut link = sqlx::SqliteConnection::connect(&url).await.unwrap();
    for statement in statements {
        sqlx::query(sqlx::AssertSqlSafe((*statement).to_owned())).execute(&mut link).await.unwrap();
    }
    link.close().await.unwrap();
    path
}

async fn open(path: &Path, layout: Option<&Path>) -> Store {
    let options =
        OpenOptions { layouts: layout.iter().map(|l| l.display().to_string()).collect(), ..OpenOptions::default() };
    Store::open(&Target::File(path.to_owned()), &options).await.unwrap()
}

fn query(entity: Entity, order: &str, limit: usize) -> Query {
    let order = (!order.is_empty()).then(|| Order::parse(entity, order).unwrap());
    Query { order, limit, ..Query::new(entity) }
}

fn ids(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(Row::id).collect()
}

/// All rows, read in one page, in pages of two onwards, and in pages of two back from the end: the same in each way.
async fn paged(store: &Store, entity: Entity, order: &str) -> Vec<Row> {
    let whole = store.page(&query(entity, order, 1_000)).await.unwrap().rows;
    let mut page = query(entity, order, 2);
    let mut onwards = Vec::new();
    loop {
        let found = store.page(&page).await.unwrap();
        onwards.extend(found.rows);
        match found.next {
            Some(next) => page.start = PageStart::After(next),
            None => break,
        }
        assert!(onwards.len() <= whole.len(), "{order}: a row was repeated: {:?}", ids(&onwards));
    }
    assert_eq!(ids(&onwards), ids(&whole), "{order}");
    page.start = PageStart::Last;
    let mut back = Vec::new();
    loop {
        let found = store.page(&page).await.unwrap();
        back.splice(0..0, found.rows);
        match found.previous {
            Some(previous) => page.start = PageStart::Before(previous),
            None => break,
        }
        assert!(back.len() <= whole.len(), "{order}: a row was repeated: {:?}", ids(&back));
    }
    assert_eq!(ids(&back), ids(&whole), "{order}, back from the end");
    whole
}

#[tokio::test]
async fn nothing_hides_behind_a_nul_in_lists() {
    let folder = TempDir::new().unwrap();
    let row = "INSERT INTO agent_episodes (id, task_description) VALUES ('e-1', 'before' || char(0) || 'behind')";
    let path = sqlite(&folder, &[ATOM, row]).await;
    for arguments in [["list", "episode"], ["table", "agent_episodes"]] {
        let output = mnemoscope(&folder, &[&["-d", &path.display().to_string()], &arguments[..]].concat());
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("behind") && !printed.contains('\0'), "{printed}");
    }
}

#[tokio::test]
async fn no_stored_value_makes_paging_lose_a_row() {
    let folder = TempDir::new().unwrap();
    let path = sqlite(
        &folder,
        &[
            ATOM,
            "INSERT INTO agent_episodes (id, started_at, canvas_action_count, aggregate_feedback_score) VALUES
                ('a', '2026-08-20 10:00:00', 3, 0.1), ('b', '2026-08-20T09:00:00.5+00:00', 'two', 1e300),
                ('c', '2026-08-20T10:00:00.000001Z', 10, 'n/a'), ('d', NULL, NULL, -1),
                ('e', '2026-08-20 13:00:00+02:00', 9, 0.30000000000000004), ('f', 'yesterday', x'00', NULL),
                ('g', '2026-02-30 10:00:00', 2, 0.3)",
        ],
    )
    .await;
    let store = open(&path, None).await;
    assert_eq!(ids(&paged(&store, Entity::Episode, "").await), ["e", "c", "a", "b", "g", "f", "d"]);
    assert_eq!(ids(&paged(&store, Entity::Episode, "started_at").await), ["b", "a", "c", "e", "d", "f", "g"]);
    let counts = paged(&store, Entity::Episode, "canvas_action_count:desc").await;
    assert_eq!(ids(&counts), ["c", "e", "a", "g", "f", "d", "b"]);
    let scores = paged(&store, Entity::Episode, "feedback_score").await;
    assert_eq!(ids(&scores), ["d", "a", "g", "e", "b", "c", "f"]);
}

#[tokio::test]
async fn ids_that_are_numbers_page_as_numbers() {
    let folder = TempDir::new().unwrap();
    let path = sqlite(
        &folder,
        &[
            "CREATE TABLE log (id INTEGER PRIMARY KEY, actor INTEGER, body JSON)",
            "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
            "INSERT INTO people VALUES (1, 'ada'), (2, 'bo')",
            "WITH RECURSIVE n(i) AS (SELECT 8 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
                INSERT INTO log SELECT i, CASE WHEN i % 2 THEN 1 + i % 4 / 2 END, '{\"x\": 0.1}' FROM n",
        ],
    )
    .await;
    let layout = folder.path().join("log.toml");
    let text = r#"
        name = "log"
        title = "A log with its people"
        requires = ["log/actor"]
        [[audit_entry]]
        from = "log t LEFT JOIN people p ON p.id = t.actor"
        tables = { t = "log", p = "people" }
        [audit_entry.columns]
        id = "t.id"
        actor = "p.name"
        payload = "t.body"
        source = { value = "log" }
        action = [{ column = "t.verb", optional = true }, { value = "said", forbids = ["log/verb"] }]
        agent_id = { value = "nobody", forbids = ["people"] }
    "#;
    std::fs::write(&layout, text).unwrap();
    let store = open(&path, Some(&layout)).await;
    let rows = paged(&store, Entity::AuditEntry, "id").await;
    assert_eq!(ids(&rows), ["8", "9", "10", "11", "12"]);
    assert_eq!((rows[0].text("action"), rows[0].text("agent_id")), (Some("said"), None));
    // The join gives no name to every other row, whatever `people` says of its own column.
    assert_eq!(ids(&paged(&store, Entity::AuditEntry, "actor").await), ["9", "11", "8", "10", "12"]);
    for order in ["payload", "source:desc", "action", "created_at"] {
        assert_eq!(paged(&store, Entity::AuditEntry, order).await.len(), 5, "{order}");
    }
}

#[tokio::test]
async fn a_page_may_be_asked_to_be_as_long_as_can_be() {
    let folder = TempDir::new().unwrap();
    let path = sqlite(&folder, &[ATOM, "INSERT INTO agent_episodes (id) VALUES ('a'), ('b')"]).await;
    let store = open(&path, None).await;
    for order in ["", "title", "metadata"] {
        let page = store.page(&query(Entity::Episode, order, usize::MAX)).await.unwrap();
        assert_eq!((page.rows.len(), page.next), (2, None), "{order}");
    }
}

#[tokio::test]
async fn an_episode_is_shown_though_the_tables_around_it_are_absent() {
    let folder = TempDir::new().unwrap();
    let users = "CREATE TABLE users (id VARCHAR, first_name VARCHAR, last_name VARCHAR, email VARCHAR)";
    let rows = "INSERT INTO agent_episodes (id, session_id, canvas_ids) VALUES ('a', 's', '[\"gone\"]')";
    let path = sqlite(&folder, &[ATOM, users, "INSERT INTO users VALUES ('u', 'Ada', 'L', 'a@b.example')", rows]).await;
    let store = open(&path, None).await;
    let context = store.contexts().episode("a").await.unwrap().unwrap();
    assert_eq!(context.episode.list("canvas_ids"), ["gone"]);
    assert_eq!(context.episode.text("user_id"), None);
    assert_eq!(ids(&paged(&store, Entity::Subject, "").await), ["u"]);
    let error = store.page(&Query::new(Entity::Feedback)).await.unwrap_err().to_string();
    assert!(error.contains("table `agent_feedback` does not exist"), "{error}");
}

#[tokio::test]
async fn rows_that_an_index_leads_to_are_read_whole_where_writers_wait() {
    let folder = TempDir::new().unwrap();
    let rows = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 3500) INSERT INTO agent_episodes \
        (id, agent_id) SELECT 'e' || n, CASE WHEN n % 7 = 0 THEN 'few' ELSE 'many' END FROM n";
    let index = "CREATE INDEX of_agent ON agent_episodes (agent_id)";
    let path = sqlite(&folder, &["PRAGMA journal_mode = DELETE", ATOM, index, rows]).await;
    let store = open(&path, None).await;
    for (agent, expected) in [(Some("few"), 500), (Some("many"), 3_000), (Some("nobody"), 0), (None, 3_500)] {
        let equal = |agent: &str| Filter::new("agent_id", Operator::Equal, Operand::Text(agent.to_owned()));
        let query = Query { filters: agent.iter().map(|agent| equal(agent)).collect(), ..Query::new(Entity::Episode) };
        let mut found = std::collections::BTreeSet::new();
        let take = |row: Row| {
            assert!(found.insert(row.id().to_owned()), "{agent:?}: {} comes twice", row.id());
            std::ops::ControlFlow::Continue(())
        };
        store.walks().each_row(&query, take).await.unwrap();
        assert_eq!(found.len(), expected, "{agent:?}");
    }
}

#[test]
fn every_error_of_a_layout_file_is_told_at_once() {
    let text = "name = \"x\"\n[[episode]]\ntabel = \"e\"\n[episode.columns]\nid = \"id\"\ntitel = \"t\"\n";
    let errors = parse("x.toml", text).unwrap_err();
    let told: Vec<(usize, &str)> = errors.iter().map(|e| (e.line, e.key.as_str())).collect();
    assert!(told.contains(&(1, "title")) && told.contains(&(1, "requires")), "{told:?}");
    assert!(told.contains(&(3, "episode[0].tabel")) && told.contains(&(6, "episode[0].columns.titel")), "{told:?}");
}

#[test]
fn a_url_may_name_the_folder_of_a_socket_instead_of_a_host() {
    for plain in [
        "postgres://ada@host/db",
        "postgres:///db?host=/run/postgresql",
        "postgres://ada@/db?host=/run/postgresql",
        "host=/run/postgresql user=ada dbname=db",
    ] {
        assert_eq!(Target::parse(plain), Target::Postgres(plain.to_owned()));
    }
    assert!(matches!(Target::parse("/data/host=a.db"), Target::File(_)));
}

fn mnemoscope(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    for name in ["MNEMOSCOPE_DATABASE", "DATABASE_URL"] {
        command.env_remove(name);
    }
    let settings = folder.path().join("config.toml");
    command.env("MNEMOSCOPE_CONFIG", settings).env("MNEMOSCOPE_STATE", folder.path()).args(arguments);
    command.output().unwrap()
}

#[tokio::test]
async fn a_profile_masks_however_it_was_chosen() {
    let folder = TempDir::new().unwrap();
    let rows = "INSERT INTO agent_episodes (id, task_description) VALUES ('a', 'Call Maria')";
    let path = sqlite(&folder, &[ATOM, rows]).await;
    let settings = format!("default = \"home\"\n[profile.home]\ndatabase = {path:?}\nmask = true\n");
    std::fs::write(folder.path().join("config.toml"), settings).unwrap();
    for named in [&[][..], &["-d", "home"], &["--profile", "home"]] {
        let output = mnemoscope(&folder, &[named, &["list", "episode"]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("\"id\": \"a\"") && !text.contains("Maria"), "{named:?}: {text}");
    }
    let plain = mnemoscope(&folder, &["-d", path.to_str().unwrap(), "list", "episode"]);
    assert!(String::from_utf8(plain.stdout).unwrap().contains("Call Maria"));
}

#[test]
fn an_export_has_no_other_format_than_its_own() {
    let folder = TempDir::new().unwrap();
    for format in ["csv", "table"] {
        for words in [&["export", "episode"][..], &["export", "subject", "someone"]] {
            let output = mnemoscope(&folder, &[&["-d", "memory.db", "--format", format], words].concat());
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), said.contains("JSON lines")), (Some(2), true), "{format}: {said}");
        }
    }
}

#[test]
fn an_unknown_command_is_wrong_usage() {
    let folder = TempDir::new().unwrap();
    let output = mnemoscope(&folder, &["-d", "memory.db", "lst"]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("no command `lst`; did you mean `list`?"), "{words}");
}

#[tokio::test]
async fn stored_words_of_any_spelling_are_canonical_ones_and_found_as_such() {
    let folder = TempDir::new().unwrap();
    let words = [
        ("success", "completed", "success", "closed"),
        ("Success", "Completed", "success", "closed"),
        ("FAILED", "FAILED", "failure", "closed"),
        ("error", "active", "failure", "active"),
        ("cancelled", "cancelled", "aborted", "abandoned"),
        ("a draw", "archived", "unknown", "archived"),
        ("", "consolidated", "", "summarized"),
    ];
    let mut statements = vec![
        "CREATE TABLE agent_episodes (id VARCHAR NOT NULL PRIMARY KEY, agent_id VARCHAR, task_description TEXT, \
         session_id VARCHAR, started_at DATETIME, canvas_ids JSON, canvas_action_count INTEGER, feedback_ids JSON, \
         aggregate_feedback_score FLOAT, metadata_json JSON, outcome VARCHAR, status VARCHAR)"
            .to_owned(),
    ];
    statements.extend(words.iter().enumerate().map(|(at, (outcome, status, ..))| {
        format!(
            "INSERT INTO agent_episodes (id, agent_id, outcome, status) VALUES ('e{at}', 'a', '{outcome}', '{status}')"
        )
    }));
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let path = sqlite(&folder, &statements).await;
    let store = open(&path, None).await;
    let rows = paged(&store, Entity::Episode, "id").await;
    assert_eq!(rows.len(), words.len());
    for (row, (stored, status, outcome, stands)) in rows.iter().zip(words) {
        assert_eq!((row.text("outcome").unwrap_or_default(), row.text("status")), (outcome, Some(stands)), "{stored}");
        let raw = |key| row.get("metadata").get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
        assert_eq!(raw("raw_outcome"), if stored == outcome { "" } else { stored });
        assert_eq!(raw("raw_status"), if status == stands { "" } else { status });
    }
    for (filter, found) in [
        ("outcome = success", &["e0", "e1"][..]),
        ("outcome = success or outcome = aborted", &["e0", "e1", "e4"]),
        ("metadata ~ FAILED or id = e5 or status = abandoned", &["e2", "e4", "e5"]),
        ("outcome = failure", &["e2", "e3"]),
        ("outcome = aborted", &["e4"]),
        ("outcome = unknown", &["e5"]),
        ("outcome ~ fail", &["e2", "e3"]),
        ("outcome != success", &["e2", "e3", "e4", "e5", "e6"]),
        ("status = closed", &["e0", "e1", "e2"]),
        ("status = abandoned", &["e4"]),
        ("metadata ~ FAILED", &["e2"]),
        ("metadata ~ draw", &["e5"]),
    ] {
        let mut query = query(Entity::Episode, "id", 50);
        query.filters =
            vec![mnemoscope::memory::filter::Filter::parse(Entity::Episode, filter, chrono::Utc::now()).unwrap()];
        assert_eq!(ids(&store.page(&query).await.unwrap().rows), found, "{filter}");
    }
}

/// Many rows of each kind that depend on one episode, the segments in reverse.
const MANY: [&str; 6] = [
    "INSERT INTO episodes (id, agent_id, started_at) VALUES ('hub', 'a', '2026-02-04 10:00:00')",
    "INSERT INTO canvas_audit (id, episode_id, action, created_at) SELECT 'canvas-' || n, 'hub', 'present', \
     '2026-02-04 10:00:00' FROM numbers",
    "INSERT INTO episode_segments (id, episode_id, sequence, content) SELECT 'segment-' || n, 'hub', 20000 - n, 'said' \
     FROM numbers",
    "INSERT INTO memories (id, text) SELECT 'memory-' || n, 'known' FROM numbers",
    "INSERT INTO episode_memories (episode_id, memory_id, rank) SELECT 'hub', 'memory-' || n, n FROM numbers WHERE n > 10001 \
     UNION ALL SELECT 'hub', 'gone', 1 FROM numbers WHERE n = 10001",
    "INSERT INTO episodes (id, agent_id, parent_id, started_at) SELECT 'child-' || n, 'a', 'hub', '2026-02-05 10:00:00' \
     FROM numbers",
];

#[tokio::test]
async fn many_rows_of_one_episode_are_read_in_parts_and_in_order() {
    let worlds = [Some(Box::pin(world::native()).await), Box::pin(world::native_on_postgres()).await];
    for world in worlds.into_iter().flatten() {
        for sql in MANY {
            let (insert, rows) = sql.split_once(" SELECT ").map_or((sql, None), |(insert, rows)| (insert, Some(rows)));
            let numbers = "(WITH RECURSIVE c(n) AS (SELECT 10001 UNION ALL SELECT n + 1 FROM c WHERE n < 12500) SELECT n FROM c) c";
            let rows = rows.map(|rows| format!(" SELECT {}", rows.replace("numbers", numbers))).unwrap_or_default();
            world::meddle(&world, &format!("{insert}{rows}")).await;
        }
        let contexts = world.store.contexts();
        let outline = contexts.outline("hub", Relatives::Ids).await.expect("an answer").expect("the episode");
        let gone = outline.findings.iter().find(|finding| finding.kind == "missing_memory").expect("a finding");
        assert_eq!(gone.ids, ["gone"]);
        let named = |what: &str| (10_001..=12_500).map(|n| format!("{what}-{n}")).collect::<Vec<String>>();
        let mut memories = named("memory");
        memories[0] = "gone".to_owned();
        let wanted = [named("canvas"), named("segment").into_iter().rev().collect(), memories, named("child")];
        let parts = [outline.canvas, outline.segments, outline.links, outline.chain.children];
        for (rows, wanted) in parts.into_iter().zip(wanted) {
            let column = if rows.entity() == Entity::MemoryLink { "memory_id" } else { "id" };
            let (mut read, mut parts, mut found) = (contexts.parts(rows), 0, Vec::new());
            loop {
                let rows = read.next().await.expect("rows");
                if rows.is_empty() {
                    break;
                }
                parts += 1;
                found.extend(rows.iter().map(|row| row.text(column).unwrap_or_default().to_owned()));
            }
            assert!(parts > 5, "{parts}");
            assert_eq!(found, wanted);
        }
        let context = contexts.episode("hub").await.expect("an answer").expect("the episode");
        for (entity, here) in [(Entity::CanvasEvent, &context.canvas), (Entity::MemoryLink, &context.links)] {
            assert!((200..1_000).contains(&here.len()), "{}", here.len());
            assert_eq!(context.more.get(&entity), Some(&(2_500 - here.len())));
            assert_eq!(context.total(entity), 2_500);
        }
        assert_eq!((context.children().count(), context.chain.children.len()), (200, 2_500));
        assert!(context.findings.iter().any(|finding| finding.kind == "missing_memory"));
    }
}

#[tokio::test]
async fn feedback_that_its_execution_alone_links_is_told_beside_other_feedback() {
    let worlds =
        [Some(Box::pin(world::on_sqlite(Layout::Atom)).await), Box::pin(world::on_postgres(Layout::Atom)).await];
    for world in worlds.into_iter().flatten() {
        for sql in [
            "UPDATE agent_episodes SET execution_id = NULL",
            "UPDATE agent_episodes SET execution_id = (SELECT min(id) FROM agent_executions) WHERE id = 'ep-list'",
            "INSERT INTO agent_feedback (id, agent_id, agent_execution_id, user_id, original_output, user_correction) \
             SELECT 'fb-run', agent_id, execution_id, 'user-ana', '', '' FROM agent_episodes WHERE id = 'ep-list'",
        ] {
            world::meddle(&world, sql).await;
        }
        let context = world.store.contexts().episode("ep-list").await.expect("an answer").expect("the episode");
        let ids = ids(&context.feedback);
        assert!(ids.contains(&"fb-up") && ids.contains(&"fb-run"), "{ids:?}");
        let told = context.findings.iter().find(|finding| finding.kind == "not_linked").expect("a finding");
        assert!(told.message.starts_with("shown because of its execution only: 1 feedback row"), "{}", told.message);
        assert_eq!(told.ids, ["fb-run"]);
    }
}

#[test]
fn people_are_listed_as_their_runs_name_them() {
    const GIVEN: [&str; 5] = [
        r#"{"user_id": "t\u00e1m\"sin"}"#,
        r#"{"user_id": 1e3}"#,
        r#"{"x": NaN, "user_id": "noor"}"#,
        r#"{"a": [{"user_id": "nobody"}], "b": "{\"user_id\": \"nobody\"}"}"#,
        r#"{"user_id": true}"#,
    ];
    block_on(async {
        let worlds = [Some(world::on_sqlite(Layout::Pyworkflow).await), world::on_postgres(Layout::Pyworkflow).await];
        for world in worlds.into_iter().flatten() {
            for (at, given) in GIVEN.iter().enumerate() {
                let run = format!("(SELECT run_id FROM workflow_runs ORDER BY run_id LIMIT 1 OFFSET {at})");
                let sql = format!("UPDATE workflow_runs SET input_kwargs = '{given}' WHERE run_id = {run}");
                world::meddle(&world, &sql).await;
            }
            let people = world.store.page(&query(Entity::Subject, "", 500)).await.unwrap().rows;
            let runs = world.store.page(&query(Entity::Episode, "", 500)).await.unwrap().rows;
            let people: BTreeSet<&str> = people.iter().map(Row::id).collect();
            let owners = runs.iter().filter_map(|run| run.text("user_id")).filter(|owner| *owner != "true");
            assert_eq!(people, owners.collect::<BTreeSet<&str>>());
            assert!(["t\u{e1}m\"sin", "1000", "noor"].iter().all(|one| people.contains(one)), "{people:?}");
        }
    });
}

#[test]
fn events_and_segments_whose_number_cannot_be_read_come_last_by_their_time() {
    let odd = |engine: &Target, place: &str| match engine {
        Target::File(_) => place.to_owned(),
        Target::Postgres(_) => "NULL".to_owned(),
    };
    block_on(async {
        let worlds = [Some(world::on_sqlite(Layout::Pyworkflow).await), world::on_postgres(Layout::Pyworkflow).await];
        for world in worlds.into_iter().flatten() {
            if matches!(world.target, Target::Postgres(_)) {
                world::meddle(&world, "ALTER TABLE events ALTER COLUMN sequence DROP NOT NULL").await;
            }
            let run = "run_waiting";
            let (later, sooner) = (odd(&world.target, "'x'"), odd(&world.target, "5.5"));
            let rows = [("odd-1", later, "2030-01-02", "second"), ("odd-2", sooner, "2030-01-01", "first")];
            for (id, sequence, day, step) in rows {
                let event = format!(
                    "INSERT INTO events (event_id, run_id, sequence, type, timestamp, data) VALUES ('{id}', '{run}', \
                     {sequence}, 'step.completed', '{day}T00:00:00.000000+00:00', '{{\"step_name\": \"{step}\", \"result\": \"1\"}}')"
                );
                world::meddle(&world, &event).await;
            }
            let context = world.store.contexts().episode(run).await.unwrap().expect("the run");
            let events: Vec<&str> = context.events.iter().map(Row::id).collect();
            assert!(events.len() > 2 && events.ends_with(&["odd-2", "odd-1"]), "{events:?}");
            let actions = context.episode.get("actions").as_array().cloned().unwrap_or_default();
            let steps: Vec<&str> = actions.iter().filter_map(|action| action["step_name"].as_str()).collect();
            assert!(steps.ends_with(&["first", "second"]), "{steps:?}");
        }
        for world in [Some(world::small().await), world::native_on_postgres().await].into_iter().flatten() {
            let rows = "DELETE FROM episode_segments; INSERT INTO episode_segments (id, episode_id, sequence, kind, content, created_at) \
                 SELECT 's-' || n.n, (SELECT min(id) FROM episodes), CASE n.n WHEN 1 THEN NULL ELSE n.n END, 'message', 'x', \
                 '2026-01-01T00:00:00.000000Z' FROM (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3) n";
            let rows = match world.target {
                Target::File(_) => rows.to_owned(),
                Target::Postgres(_) => rows.replace("'2026-01-01T00:00:00.000000Z'", "timestamptz '2026-01-01'"),
            };
            world::meddle(&world, &rows).await;
            let segments = world.store.page(&query(Entity::Segment, "", 1)).await.unwrap().rows;
            let episode = segments[0].text("episode_id").expect("an episode").to_owned();
            let context = world.store.contexts().episode(&episode).await.unwrap().expect("the episode");
            assert_eq!(ids(&context.segments), ["s-2", "s-3", "s-1"]);
        }
    });
}
