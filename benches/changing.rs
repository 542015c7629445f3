//! Cost of changes: a feedback edit planned and applied, on both engines; eight writers at once; an import.
//!
//! PostgreSQL is the server that `TEST_DATABASE_URL` names; without it those benches are left out and say so.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use divan::{Bencher, black_box};
use mnemoscope::change::import;
use mnemoscope::change::operation::{FeedbackFields, ImportFormat};
use mnemoscope::change::{self, Author, feedback, migrate};
use mnemoscope::demo;
use mnemoscope::memory::Entity;
use mnemoscope::memory::query::Query;
use mnemoscope::store::{OpenOptions, Store, Target};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::runtime::Runtime;

/// Writers at the same time.
const WRITERS: usize = 8;
/// Time for which they write.
const SPAN: Duration = Duration::from_secs(5);
/// Episodes of the database.
const EPISODES: i64 = 2_000;

fn main() {
    divan::main();
    writers_at_once();
}

fn author() -> Author {
    Author { actor: "bench".to_owned(), ..Author::default() }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

async fn open(target: &Target) -> Store {
    Store::open(target, &OpenOptions::default()).await.unwrap_or_else(|error| panic!("{error}"))
}

/// A fresh native database in a file.
fn sqlite(runtime: &Runtime) -> (Target, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("native.db");
    let options = demo::DemoOptions { episodes: EPISODES as u64, ..demo::DemoOptions::default() };
    runtime.block_on(demo::build(&path, &options, |_| {})).expect("the demo");
    let target = Target::File(path);
    runtime.block_on(async { migrate::apply(&open(&target).await, &author(), None).await }).expect("our tables");
    (target, folder)
}

/// A fresh native database on the server; none without one.
fn postgres(runtime: &Runtime) -> Option<Target> {
    let Ok(server) = std::env::var("TEST_DATABASE_URL") else {
        eprintln!("left out: TEST_DATABASE_URL names no server");
        return None;
    };
    let name = format!("mnemoscope_bench_{:08x}", rand::random::<u32>());
    let mut url = url::Url::parse(&server).expect("a URL");
    url.set_path(&name);
    runtime.block_on(async {
        let run = async |url: &str, sql: String| {
            let mut link = PgConnection::connect(url).await.expect("the server");
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("the statements");
        };
        run(&server, format!("CREATE DATABASE {name}")).await;
        run(url.as_str(), include_str!("../assets/migrations/mnemoscope/postgres/0001_native.sql").to_owned()).await;
        let rows = "INSERT INTO episodes (id, agent_id, user_id, title, started_at, feedback_ids, feedback_score) \
            SELECT 'ep-' || n, 'agent-1', 'user-1', 'Episode ' || n, now(), jsonb_build_array('fb-' || n), 1 \
            FROM generate_series(1, 2000) n; \
            INSERT INTO agent_feedback (id, episode_id, user_id, kind, created_at) \
            SELECT 'fb-' || n, 'ep-' || n, 'user-1', 'thumbs_up', now() FROM generate_series(1, 2000) n; ANALYZE";
        run(url.as_str(), rows.to_owned()).await;
        let target = Target::Postgres(url.to_string());
        migrate::apply(&open(&target).await, &author(), None).await.expect("our tables");
        Some(target)
    })
}

async fn feedback_ids(store: &Store) -> Vec<String> {
    let query = Query { limit: 500, columns: Some(vec!["id", "created_at"]), ..Query::new(Entity::Feedback) };
    store.page(&query).await.expect("feedback").rows.iter().map(|row| row.id().to_owned()).collect()
}

fn turned(turn: usize) -> FeedbackFields {
    let rating = Some((turn % 5 + 1) as i64);
    FeedbackFields { kind: Some("rating".to_owned()), rating, ..FeedbackFields::default() }
}

fn edits(bencher: Bencher, runtime: &Runtime, target: &Target, planned: bool) {
    let store = runtime.block_on(open(target));
    let ids = runtime.block_on(feedback_ids(&store));
    let turn = std::cell::Cell::new(0);
    let plan = || {
        let at = turn.get();
        turn.set(at + 1);
        runtime.block_on(feedback::edit(&store, &ids[at % ids.len()], &turned(at / ids.len()), None)).expect("a plan")
    };
    if planned {
        bencher.bench_local(|| black_box(plan()));
    } else {
        bencher
            .with_inputs(plan)
            .bench_local_refs(|plan| runtime.block_on(change::apply(&store, plan, &author())).expect("applied"));
    }
}

#[divan::bench(args = [true, false], sample_count = 200, sample_size = 1)]
fn feedback_edit_sqlite_plan_else_apply(bencher: Bencher, planned: bool) {
    let runtime = runtime();
    let (target, _folder) = sqlite(&runtime);
    edits(bencher, &runtime, &target, planned);
}

#[divan::bench(args = [true, false], sample_count = 200, sample_size = 1)]
fn feedback_edit_postgres_plan_else_apply(bencher: Bencher, planned: bool) {
    let runtime = runtime();
    let Some(target) = postgres(&runtime) else { return };
    edits(bencher, &runtime, &target, planned);
}

/// Trajectories of the size that such files have: thirty messages with a few calls each.
fn trajectories(count: usize) -> String {
    let policy = "rules ".repeat(1_000);
    let one = |n: usize| {
        let mut messages = vec![serde_json::json!({"role": "system", "content": policy})];
        for turn in 0..12 {
            let call = serde_json::json!([{"id": format!("call-{n}-{turn}"), "type": "function",
                "function": {"name": "look_up", "arguments": "{\"flight\": \"HAT001\"}"}}]);
            messages
                .push(serde_json::json!({"role": "user", "content": format!("question {turn} of {n}, in some words")}));
            messages.push(serde_json::json!({"role": "assistant", "content": null, "tool_calls": call}));
            let text = "an answer with some details in it. ".repeat(20);
            messages
                .push(serde_json::json!({"role": "tool", "tool_call_id": format!("call-{n}-{turn}"), "content": text}));
            messages
                .push(serde_json::json!({"role": "assistant", "content": "It is done as you asked, is there more?"}));
        }
        serde_json::json!({"task_id": n, "trial": 0, "reward": 1.0, "traj": messages,
            "info": {"task": {"user_id": format!("user-{}", n % 20), "instruction": "Book a flight"}}})
    };
    serde_json::Value::Array((0..count).map(one).collect()).to_string()
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn import_of_200_trajectories_sqlite(bencher: Bencher) {
    let (runtime, text) = (runtime(), trajectories(200));
    bencher.with_inputs(|| sqlite(&runtime)).bench_local_refs(|(target, _folder)| {
        runtime.block_on(async {
            let store = open(target).await;
            let plan = || import::plan(&store, ImportFormat::TauBench, "flights.json", &text, false);
            change::plan_and_apply(&store, &author(), plan).await.expect("imported")
        })
    });
}

/// Changes a second of several writers, each on rows of its own, planned and applied.
fn writers_at_once() {
    if std::env::args().any(|a| a == "--test" || a == "--list") {
        return;
    }
    let runtime = runtime();
    let Some(target) = postgres(&runtime) else { return };
    let done: usize = runtime.block_on(async {
        let writer = async |number: usize| {
            let store = open(&target).await;
            let ids = feedback_ids(&store).await;
            let own: Vec<&String> = ids.iter().skip(number).step_by(WRITERS).collect();
            let (end, mut turn) = (Instant::now() + SPAN, 0);
            while Instant::now() < end {
                let said = turned(turn / own.len());
                let plan = || feedback::edit(&store, own[turn % own.len()], &said, None);
                change::plan_and_apply(&store, &author(), plan).await.expect("applied");
                turn += 1;
            }
            turn
        };
        futures::future::join_all((0..WRITERS).map(writer)).await.into_iter().sum()
    });
    println!("{WRITERS} writers on PostgreSQL: {:.0} changes a second", done as f64 / SPAN.as_secs_f64());
}
