//! Vectors from an endpoint: what is sent, what is stored where, and what happens to an endpoint that fails.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mnemoscope::change::{ChangeError, undo};
use mnemoscope::job::backfill::{BackfillArguments, BackfillKind};
use mnemoscope::job::plan::{JobSettings, JobState, JobWish};
use mnemoscope::job::{self, Job, JobEntry, JobOutcome, look};
use mnemoscope::lab::embed::Endpoint;
use mnemoscope::store::Target;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::world::{World, author, on_both, on_sqlite, open};
use crate::support::block_on;
use crate::support::fixtures::{self, Layout};
use crate::support::postgres::Database;

/// A server that gives each text a vector, and remembers what was asked.
struct Server {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
    /// Requests that it still answers; the others it refuses as someone who is overloaded.
    willing: Arc<Mutex<usize>>,
}

fn server(size: usize) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1/embeddings?tenant=hidden-tenant", listener.local_addr().unwrap());
    let (heard, willing) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(usize::MAX)));
    let serving = (Arc::clone(&heard), Arc::clone(&willing));
    std::thread::spawn(move || {
        for link in listener.incoming() {
            let mut link = link.expect("a connection");
            let request = request(&mut link);
            let body: Value = serde_json::from_str(request.split("\r\n\r\n").nth(1).unwrap_or_default()).unwrap();
            let texts = match &body["input"] {
                Value::String(text) => vec![text.clone()],
                many => serde_json::from_value(many.clone()).unwrap(),
            };
            let vector = |text: &String| -> Vec<f32> { (0..size).map(|i| (text.len() + i) as f32 / 8.0).collect() };
            // In another order than asked, as servers may.
            let data: Vec<Value> =
                texts.iter().enumerate().rev().map(|(i, t)| json!({"index": i, "embedding": vector(t)})).collect();
            let is_willing = {
                let mut willing = serving.1.lock().unwrap();
                let is = *willing > 0;
                *willing = willing.saturating_sub(1);
                is
            };
            let (status, answer) = if is_willing {
                ("200 OK", json!({ "data": data }))
            } else {
                ("503 Service Unavailable", json!({"error": {"message": "overloaded, key sk-test-1234567890abcdef"}}))
            };
            serving.0.lock().unwrap().push(request);
            let answer = answer.to_string();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            let _ = link.write_all(format!("{head}{answer}").as_bytes());
        }
    });
    Server { url, heard, willing }
}

fn request(link: &mut impl std::io::Read) -> String {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        let read = link.read(&mut buffer).expect("a request");
        bytes.extend_from_slice(&buffer[..read]);
    }
}

impl Server {
    fn heard(&self) -> usize {
        self.heard.lock().unwrap().len()
    }

    fn given(&self, model: &str) -> BackfillArguments {
        let endpoint = Endpoint {
            url: self.url.clone(),
            model: model.to_owned(),
            key: Some("sk-test-1234567890abcdef".to_owned()),
            timeout: Duration::from_secs(5),
            retries: 0,
        };
        BackfillArguments { endpoint: Ok(endpoint), ..BackfillArguments::default() }
    }
}

fn job(world: &World, given: &BackfillArguments) -> Box<dyn Job> {
    BackfillKind::named("embeddings").unwrap().job_as(&world.store, given).expect("it can be done here")
}

async fn run(world: &World, given: &BackfillArguments, entry: JobEntry) -> Result<JobOutcome, ChangeError> {
    let (_wish, heard) = watch::channel(JobWish::GoOn);
    let settings = JobSettings { batch: Some(8), ..JobSettings::default() };
    job::run(&world.store, &*job(world, given), &author(), &settings, entry, heard, &mut |_| ()).await
}

#[test]
fn rows_without_a_vector_get_one_and_the_plan_asks_nobody() {
    block_on(async {
        for world in on_both(20).await {
            let server = server(4);
            let given = server.given("m-1");
            let plan = look(&world.store, &*job(&world, &given)).await.expect("a plan");
            assert_eq!((server.heard(), plan.counts["episode_embeddings"]["insert"]), (0, 20), "a plan costs nothing");
            let said = format!("{:?}", plan.effects);
            let host = server.url.split('/').nth(2).unwrap();
            assert!(
                said.contains("20 texts of ") && said.contains("about 1 requests") && said.contains(host),
                "{said}"
            );
            assert!(!said.contains("hidden-tenant") && !said.contains("sk-test"), "{said}");
            let outcome = run(&world, &given, JobEntry::Begin).await.expect("done");
            assert!(outcome.is_complete(), "{:?}", outcome.checks);
            assert_eq!(outcome.counts, plan.counts);
            assert_eq!(server.heard(), 3, "20 rows in batches of 8");
            let first = server.heard.lock().unwrap()[0].clone();
            assert!(
                first.to_ascii_lowercase().contains("authorization: bearer sk-test") && first.contains("Episode 1")
            );
            let ids = ["ep-0000007".to_owned()];
            let stored = world.store.embeddings().vectors(mnemoscope::memory::Entity::Episode, &ids).await.unwrap();
            let text = "Episode 7".len() as f32;
            assert_eq!(stored["ep-0000007"], [text / 8.0, (text + 1.0) / 8.0, (text + 2.0) / 8.0, (text + 3.0) / 8.0]);
            let again = look(&world.store, &*job(&world, &given)).await.expect("a plan");
            assert!(again.counts.is_empty(), "{:?}", again.counts);
            let (first, last) = outcome.entries.expect("entries");
            for seq in (first..=last).rev() {
                let plan = undo::undo(&world.store, seq).await.expect("it can be undone");
                mnemoscope::change::apply(&world.store, &plan, &author()).await.expect("undone");
            }
            assert_eq!(world.texts("SELECT CAST(count(*) AS TEXT) FROM episode_embeddings").await, ["0"]);
        }
    });
}

#[test]
fn a_dead_endpoint_fails_the_job_keeps_what_is_done_and_resuming_does_the_rest() {
    block_on(async {
        for world in on_both(20).await {
            let server = server(4);
            let given = server.given("m-1");
            *server.willing.lock().unwrap() = 1;
            let failed = run(&world, &given, JobEntry::Begin).await.expect_err("it fails").to_string();
            assert!(failed.contains("503") && failed.contains("overloaded") && !failed.contains("sk-test"), "{failed}");
            let run_of = world.store.records().job("embeddings").await.unwrap().expect("a run");
            assert_eq!((run_of.state.as_str(), run_of.changed), (JobState::Failed.word(), 8));
            assert!(run_of.problem.as_ref().is_some_and(|p| p.contains("503") && !p.contains("sk-test")));
            *server.willing.lock().unwrap() = usize::MAX;
            let done = run(&world, &given, JobEntry::Resume).await.expect("resumed");
            assert!(done.is_complete(), "{:?}", done.checks);
            assert_eq!(done.counts["episode_embeddings"]["insert"], 20);
            // The two batches before, one refused, and the two that were left.
            assert_eq!(server.heard(), 4, "what was done is not asked for again");
            let secret = world.texts("SELECT value FROM memory_audit_private WHERE value LIKE '%sk-test%'").await;
            let public = world
                .texts("SELECT public FROM memory_audit WHERE public LIKE '%sk-test%' OR public LIKE '%hidden-tenant%'")
                .await;
            let kept = world.texts("SELECT settings FROM memory_jobs WHERE settings LIKE '%sk-test%' OR settings LIKE '%hidden-tenant%'").await;
            assert!(secret.is_empty() && public.is_empty() && kept.is_empty(), "the key is in the database");
        }
    });
}

#[test]
fn vectors_that_cannot_be_compared_with_those_that_are_there_are_refused() {
    block_on(async {
        for world in on_both(20).await {
            let (four, three) = (server(4), server(3));
            run(&world, &four.given("m-1"), JobEntry::Begin).await.expect("done");
            // Some are gone, one is of another size, and one is all zeros.
            world.execute("DELETE FROM episode_embeddings WHERE episode_id < 'ep-0000005'").await;
            let [odd, zeros] = if matches!(world.target, Target::File(_)) {
                ["x'0000803F'", "zeroblob(16)"]
            } else {
                ["'[1]'", "'[0,0,0,0]'"]
            };
            for (id, vector) in [("ep-0000009", odd), ("ep-0000010", zeros)] {
                world
                    .execute(&format!("UPDATE episode_embeddings SET embedding = {vector} WHERE episode_id = '{id}'"))
                    .await;
            }
            let other = run(&world, &three.given("m-2"), JobEntry::Begin).await.expect_err("another model").to_string();
            assert!(other.contains("m-1") && other.contains("m-2") && three.heard() == 0, "{other}");
            let refused =
                run(&world, &three.given("m-1"), JobEntry::Begin).await.expect_err("another size").to_string();
            assert!(refused.contains("3 numbers") && refused.contains("have 4"), "{refused}");
            let done = run(&world, &four.given("m-1"), JobEntry::Resume).await.expect("done");
            assert_eq!(json!(done.counts), json!({"episode_embeddings": {"insert": 4, "update": 2}}));
            assert!(done.is_complete(), "{:?}", done.checks);
        }
    });
}

#[test]
fn without_an_endpoint_it_is_refused_with_what_would_help() {
    block_on(async {
        let world = on_sqlite(3).await;
        let refused = BackfillKind::named("embeddings").unwrap().job(&world.store).err().expect("refused").to_string();
        assert!(refused.contains("embedding endpoint") && refused.contains("profile"), "{refused}");
    });
}

#[test]
fn a_column_of_the_row_itself_is_filled_and_nothing_else_of_it_changes() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("atom.db");
        fixtures::build_sqlite(Layout::Atom, &path).await;
        let mut targets = vec![Target::File(path)];
        let database = Database::fresh();
        if let Some(database) = &database {
            fixtures::build_postgres(Layout::Atom, database.url()).await;
            targets.push(Target::Postgres(database.url().to_owned()));
        }
        for target in targets {
            mnemoscope::change::migrate::apply(&open(&target).await, &author(), None).await.expect("our tables");
            let world = World::view(&target).await;
            let server = server(4);
            let given = server.given("m-1");
            let others = "SELECT id || status || coalesce(CAST(canvas_action_count AS TEXT), '-') FROM agent_episodes ORDER BY id";
            let before = world.texts(others).await;
            let plan = look(&world.store, &*job(&world, &given)).await.expect("a plan");
            assert!(plan.undo_reason.is_some_and(|r| r.contains("too large")));
            let outcome = run(&world, &given, JobEntry::Begin).await.expect("done");
            assert!(outcome.is_complete(), "{:?}", outcome.checks);
            assert_eq!(outcome.counts, plan.counts);
            assert!(outcome.counts["agent_episodes"]["update"] > 0);
            assert_eq!(world.texts(others).await, before);
            let kept =
                world.texts("SELECT CAST(length(value) AS TEXT) FROM memory_audit_private WHERE field = 'undo'").await;
            assert!(kept.is_empty(), "vectors are not kept twice");
            let again = look(&world.store, &*job(&world, &given)).await.expect("a plan");
            assert!(again.counts.is_empty(), "{:?}", again.counts);
        }
    });
}

#[test]
fn on_the_command_line_the_profile_names_the_endpoint_and_its_key_is_never_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory.db");
    block_on(super::world::build_sqlite(&path, 5));
    let server = server(4);
    let config = folder.path().join("config.toml");
    let text = format!(
        "[profile.lab]\ndatabase = {path:?}\nembedding = {{ url = {:?}, model = \"m-1\", key_env = \"LAB_KEY\" }}\n",
        server.url
    );
    std::fs::write(&config, text).unwrap();
    let ran = |words: &[&str], key: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        command.args(["--profile", "lab", "-v", "backfill"]).args(words);
        command.env("MNEMOSCOPE_CONFIG", &config).env("MNEMOSCOPE_STATE", folder.path()).env_remove("LAB_KEY");
        if key {
            command.env("LAB_KEY", "sk-test-1234567890abcdef");
        }
        let output = command.output().expect("the binary");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!format!("{out}{err}").contains("sk-test"), "{out}{err}");
        (output.status.code(), out.into_owned(), err.into_owned())
    };
    let (code, _, words) = ran(&["embeddings"], false);
    assert!(code == Some(5) && words.contains("$LAB_KEY"), "{words}");
    let (code, listed, _) = ran(&[], false);
    assert!(code == Some(0) && listed.contains("LAB_KEY"), "{listed}");
    let (code, plan, _) = ran(&["embeddings"], true);
    assert!(code == Some(0) && plan.contains("5 texts of") && server.heard() == 0, "{plan}");
    let (code, receipt, words) = ran(&["embeddings", "--apply"], true);
    let receipt: Value = serde_json::from_str(&receipt).expect("a receipt");
    assert!(code == Some(0) && receipt["counts"]["episode_embeddings"]["insert"] == 5, "{receipt} {words}");
    assert!(receipt["disclosures"][0].as_str().is_some_and(|d| d.contains("on this machine")), "{receipt}");
}
