//! Duration of recall: the nearest of 10,000 vectors of 1,536 dimensions, streamed and kept in memory, and the
//! context of a recalled episode.

use std::path::Path;

use divan::Bencher;
use mnemoscope::demo;
use mnemoscope::lab;
use mnemoscope::memory::Entity;
use mnemoscope::recall::inquiry::Inquiry;
use mnemoscope::recall::rank::Ranking;
use mnemoscope::store::vector::CONSOLE_BYTES;
use mnemoscope::store::{OpenOptions, Store, Target};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};
use tokio::runtime::Runtime;

const SCHEMA: &str = include_str!("../assets/migrations/mnemoscope/sqlite/0001_native.sql");
const CASES: usize = 10_000;
const DIMENSIONS: usize = 1_536;

fn main() {
    divan::main();
}

fn number(seed: usize) -> f32 {
    let mixed = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 40) as f32 / 8_388_608.0 - 1.0
}

fn vector(case: usize) -> Vec<f32> {
    (0..DIMENSIONS).map(|i| number(case * DIMENSIONS + i)).collect()
}

async fn bank(path: &Path) -> Store {
    let mut link = SqliteConnection::connect(&format!("sqlite:{}?mode=rwc", path.display())).await.expect("a file");
    sqlx::raw_sql(SCHEMA).execute(&mut link).await.expect("the schema");
    let mut all = link.begin().await.expect("a transaction");
    let profile =
        "INSERT INTO agent_memory_profiles (id, user_id, agent_id, created_at) VALUES ('p', 'u', 'a', '2026-01-01')";
    sqlx::query(profile).execute(&mut *all).await.expect("a profile");
    for case in 0..CASES {
        let row = format!(
            "INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, prompt, tags, created_at) \
             VALUES ('c{case}', 'p', 'u', 'a', '{{}}', '[]', '2026-02-01T00:00:00.000000Z')"
        );
        sqlx::query(AssertSqlSafe(row)).execute(&mut *all).await.expect("a case");
        let bytes: Vec<u8> = vector(case).iter().flat_map(|v| v.to_le_bytes()).collect();
        let row = "INSERT INTO agent_memory_embeddings (case_id, embedding) VALUES ($1, $2)";
        sqlx::query(row).bind(format!("c{case}")).bind(bytes).execute(&mut *all).await.expect("a vector");
    }
    all.commit().await.expect("a commit");
    Store::open(&Target::File(path.to_owned()), &OpenOptions::default()).await.expect("a store")
}

#[divan::bench(args = [0, CONSOLE_BYTES], sample_count = 12)]
fn nearest_of_ten_thousand(bencher: Bencher<'_, '_>, kept: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::new().expect("a runtime");
    let store = runtime.block_on(bank(&folder.path().join("bank.db")));
    store.embeddings().keep_vectors(kept);
    let query = vector(7);
    bencher.bench_local(|| {
        runtime.block_on(store.embeddings().nearest(Entity::Case, &[], &query, 32)).expect("an answer")
    });
}

/// A whole recall as the console asks it again and again: the case's vector looked up, all compared in memory, the rows
/// chosen and fetched.
#[divan::bench(sample_count = 20)]
fn recall_of_ten_thousand_kept(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = Runtime::new().expect("a runtime");
    let store = runtime.block_on(bank(&folder.path().join("bank.db")));
    store.embeddings().keep_vectors(CONSOLE_BYTES);
    let inquiry = Inquiry { like: Some("c7".to_owned()), ..Inquiry::new(Ranking::Cases) };
    let request = inquiry.request("2026-02-04T10:00:00.000000Z");
    bencher.bench_local(|| {
        let (answer, _) = runtime.block_on(lab::timed(&store, &request)).expect("an answer");
        assert_eq!(answer.rows.len(), 4);
    });
}

#[divan::bench]
fn context_of_a_recalled_episode(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("demo.db");
    let runtime = Runtime::new().expect("a runtime");
    let store = runtime.block_on(async {
        demo::build(&path, &demo::DemoOptions::default(), |_| {}).await.expect("the demo");
        Store::open(&Target::File(path), &OpenOptions::default()).await.expect("a store")
    });
    let id = ["ep_aqcnavth".to_owned()];
    bencher.bench_local(|| {
        runtime.block_on(async {
            let rows = store.related(Entity::Episode, "id", &id).await.expect("a row");
            assert_eq!(rows.len(), 1);
            store.contexts().recalled(&[&rows[0]]).await.expect("its context")
        })
    });
}
