//! Duration of looking, in process: pages, an episode with its context, filters. On a demo database of 50,000
//! episodes that is made first, or on the database that `MNEMOSCOPE_BENCH_DATABASE` names.

use divan::Bencher;
use mnemoscope::demo;
use mnemoscope::memory::Entity;
use mnemoscope::memory::query::{PageStart, Query};
use mnemoscope::store::{OpenOptions, Store, Target};
use tokio::runtime::Runtime;

struct Bench {
    runtime: Runtime,
    store: Store,
    ids: Vec<String>,
    _folder: tempfile::TempDir,
}

fn opened() -> Bench {
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let named = std::env::var("MNEMOSCOPE_BENCH_DATABASE").ok();
    let (store, ids) = runtime.block_on(async {
        let target = if let Some(text) = named {
            Target::parse(&text)
        } else {
            let path = folder.path().join("demo.db");
            let options = demo::DemoOptions { episodes: 50_000, ..demo::DemoOptions::default() };
            demo::build(&path, &options, |_| {}).await.expect("the demo");
            Target::File(path)
        };
        let store = Store::open(&target, &OpenOptions { connections: 3, ..OpenOptions::default() })
            .await
            .expect("the database");
        let query = Query { limit: 200, ..Query::new(Entity::Episode) };
        let page = store.page(&query).await.expect("a page");
        let ids = page.rows.iter().map(|row| row.id().to_owned()).collect();
        (store, ids)
    });
    Bench { runtime, store, ids, _folder: folder }
}

/// `show episode`: the budget is 2 ms on SQLite, 5 ms on PostgreSQL.
#[divan::bench]
fn episode_with_context(bencher: Bencher) {
    let bench = opened();
    let mut turn = bench.ids.iter().cycle();
    bencher.bench_local(|| {
        let id = turn.next().expect("an id");
        bench.runtime.block_on(bench.store.contexts().episode(id)).expect("an episode")
    });
}

#[divan::bench(args = [PageStart::First, PageStart::Last])]
fn page_of_50(bencher: Bencher, start: &PageStart) {
    let bench = opened();
    let query = Query { start: start.clone(), ..Query::new(Entity::Episode) };
    bencher.bench_local(|| bench.runtime.block_on(bench.store.page(&query)).expect("a page"));
}

#[divan::bench]
fn page_of_100_as_the_console_asks(bencher: Bencher) {
    let bench = opened();
    let columns = Some(vec!["started_at", "agent_id", "title", "status", "outcome", "feedback_score", "utility"]);
    let query = Query { limit: 100, columns, preview: Some(200), ..Query::new(Entity::Episode) };
    bencher.bench_local(|| bench.runtime.block_on(bench.store.page(&query)).expect("a page"));
}

fn main() {
    divan::main();
}
