//! Failures on the way: whatever fails at whatever statement, whoever is killed where, whether or not a COMMIT was heard,
//! the database is as before or as after, and the trail is sound. Every operation, on both engines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::block_on;
use crate::support::fixtures::{Layout, build_postgres, build_sqlite};
use crate::support::postgres::Database;
use crate::support::world::*;
use mnemoscope::change::import;
use mnemoscope::change::operation::{FeedbackFields, ImportFormat};
use mnemoscope::change::{
    self, ChangeError, Plan, audit, chain, feedback, migrate, profile, record, reward, signal, undo,
};
use mnemoscope::layout::Engine;
use mnemoscope::memory::Entity;
use mnemoscope::memory::utility::Signal;
use mnemoscope::store::{Store, Target};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// Every operation that changes a memory, by the words of its command.
const OPERATIONS: &[&str] = &[
    "feedback add", "feedback edit", "feedback remove", "signal", "signal retract", "link", "unlink", "reward",
    "profile set", "record episode", "record case", "import", "undo",
];

async fn first(world: &World, entity: Entity) -> String {
    ids(world, entity).await.into_iter().next().unwrap_or_else(|| panic!("no {entity}"))
}

/// Two episodes that are no chain.
async fn strangers(world: &World) -> (String, String) {
    let all = ids(world, Entity::Episode).await;
    for child in &all {
        for parent in &all {
            if chain::link(&world.store, child, parent).await.is_ok_and(|plan| !plan.is_empty()) {
                return (child.clone(), parent.clone());
            }
        }
    }
    panic!("no two episodes can be linked")
}

/// An episode whose utility a signal moves and that used memories.
async fn with_memories(world: &World) -> String {
    for id in ids(world, Entity::Episode).await {
        let plan = signal::add(&world.store, &id, Signal::Rejected, by("me", None)).await;
        if plan.is_ok_and(|plan| plan.counts.contains_key("memories")) {
            return id;
        }
    }
    panic!("no signal moves a memory")
}

fn trajectory() -> String {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}});
    json!({"task_id": 0, "trial": 0, "reward": 1.0, "info": {"task": {"user_id": "ann", "instruction": "Book it."}},
        "traj": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": null, "tool_calls": [call]},
                 {"role": "tool", "tool_call_id": "c1", "content": "found"}]})
    .to_string()
}

/// Rows that the operations are about, chosen before anything fails.
struct Chosen {
    episode: String,
    user: String,
    feedback: String,
    moving: String,
    signal: String,
    child: String,
    strangers: (String, String),
    case: String,
    profile: String,
    undone: i64,
}

async fn chosen(world: &World) -> Chosen {
    let episode = some_episode(world).await;
    let signal = first(world, Entity::UtilityEvent).await;
    let feedback = first(world, Entity::Feedback).await;
    let (child, parent) = strangers(world).await;
    done(world, chain::link(&world.store, &child, &parent).await).await;
    let receipt = done(world, feedback::add(&world.store, &episode, &said("rating", Some(5), None)).await).await;
    Chosen {
        user: "user-1".to_owned(),
        feedback,
        moving: with_memories(world).await,
        signal,
        child,
        strangers: strangers(world).await,
        case: first(world, Entity::Case).await,
        profile: first(world, Entity::Profile).await,
        undone: receipt.audit_seq.expect("an entry"),
        episode,
    }
}

async fn plan(store: &Store, operation: &str, on: &Chosen) -> Result<Plan, ChangeError> {
    match operation {
        "feedback add" => feedback::add(store, &on.episode, &said("rating", Some(2), Some("shorter"))).await,
        "feedback edit" => feedback::edit(store, &on.feedback, &said("rating", Some(4), Some("longer")), None).await,
        "feedback remove" => feedback::remove(store, &on.feedback).await,
        "signal" => signal::add(store, &on.moving, Signal::Rejected, by("me", Some("why"))).await,
        "signal retract" => signal::retract(store, &on.signal).await,
        "link" => chain::link(store, &on.strangers.0, &on.strangers.1).await,
        "unlink" => chain::unlink(store, &on.child).await,
        "reward" => reward::set(store, &on.case, 0.25, Some("failure")).await,
        "profile set" => profile::set_window(store, &on.profile, Some(7)).await,
        "record episode" => {
            let row =
                json!({"title": "T", "started_at": "2026-03-01T10:00:00Z", "agent_id": "agent-1", "user_id": on.user});
            record::episode(store, &row.to_string()).await
        }
        "record case" => {
            let row =
                json!({"prompt": {"message": "new"}, "user_id": on.user, "agent_id": "agent-9", "outcome": "partial"});
            record::case(store, &row.to_string()).await
        }
        "import" => import::plan(store, ImportFormat::TauBench, "f.json", &trajectory(), false).await,
        "undo" => undo::undo(store, on.undone).await,
        other => panic!("{other}"),
    }
}

/// The rows, without the memory's own trail, to which an undo adds.
fn without_trail(mut dump: BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    dump.retain(|table, _| table != "agent_memory_audit");
    dump
}

#[test]
fn every_operation_that_fails_at_any_statement_leaves_nothing_and_is_undone_and_done_again() {
    block_on(async {
        for world in natives().await {
            let on = chosen(&world).await;
            let store = &world.store;
            // A server is told of each statement by the same code.
            let every: u32 = if store.engine() == Engine::Sqlite { 1 } else { 3 };
            for (number, operation) in (0..).zip(OPERATIONS) {
                let before = dump(&world).await;
                let entries = store.records().trail_head().await.unwrap();
                let mut statements = number % every;
                let receipt = loop {
                    let planned = plan(store, operation, &on).await.unwrap_or_else(|e| panic!("{operation}: {e}"));
                    assert!(!planned.is_empty(), "{operation} does nothing");
                    store.fail_after(Some(statements));
                    let applied = change::apply(store, &planned, &author()).await;
                    store.fail_after(None);
                    if let Ok(receipt) = applied {
                        break receipt;
                    }
                    assert_eq!(dump(&world).await, before, "{operation} after {statements} statements");
                    assert_eq!(
                        store.records().trail_head().await.unwrap(),
                        entries,
                        "{operation} after {statements} statements"
                    );
                    statements += every;
                };
                // The row and what was read of it, the entry with its values, the head, COMMIT.
                assert!(statements >= 7, "{operation}: it is done after {statements} statements");
                assert_sound(&world).await;
                let after = dump(&world).await;
                assert_ne!(after, before, "{operation}");
                let mut seq = receipt.audit_seq.expect("an entry");
                for (turn, wanted) in [&before, &after, &before].into_iter().enumerate() {
                    seq = done(&world, undo::undo(store, seq).await).await.audit_seq.expect("an entry");
                    let (found, wanted) = (without_trail(dump(&world).await), without_trail(wanted.clone()));
                    assert_eq!(found, wanted, "{operation}: undo number {turn}");
                }
                assert_sound(&world).await;
            }
        }
    });
}

#[test]
fn a_migration_that_fails_at_any_statement_leaves_nothing_or_goes_on_there() {
    block_on(async {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("memory.db");
        build_sqlite(Layout::Atom, &path).await;
        let mut targets = vec![Target::File(path)];
        let database = Database::fresh();
        if let Some(database) = &database {
            build_postgres(Layout::Atom, database.url()).await;
            targets.push(Target::Postgres(database.url().to_owned()));
        }
        for target in targets {
            let mut statements = 0;
            loop {
                let store = open(&target).await;
                store.fail_after(Some(statements));
                let applied = migrate::apply(&store, &author(), None).await;
                store.fail_after(None);
                let store = open(&target).await;
                let tables = store.catalog().tables.iter().filter(|t| t.name.starts_with("memory_")).count();
                if applied.is_ok() {
                    assert!(audit::verify(&store, &[]).await.expect("a trail").ok);
                    break;
                }
                // Our own tables come whole; what comes after them stays, and goes on at its next step.
                if store.records().own().await.unwrap().is_none() {
                    assert_eq!(tables, 0, "after {statements} statements");
                } else {
                    let state = migrate::state(&store).await.expect("a state");
                    assert!(state.drift.is_empty() && !state.pending.is_empty(), "{state:?}");
                    assert!(audit::verify(&store, &[]).await.expect("a trail").ok);
                }
                statements += 1;
            }
            assert!(statements >= 6, "only {statements} statements were tried");
        }
    });
}

#[test]
fn a_process_killed_at_any_statement_leaves_the_database_as_before_or_as_after() {
    block_on(async {
        for world in natives().await {
            let on = chosen(&world).await;
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("f.json").display().to_string();
            std::fs::write(&file, format!("[{}]", trajectory())).expect("the file");
            let commands: [&[&str]; 5] = [
                &["undo", &on.undone.to_string()],
                &["feedback", "edit", &on.feedback, "--kind", "rating", "--rating", "4", "--correction", "said again"],
                &["signal", &on.moving, "rejected"],
                &["import", "tau-bench", &file],
                &["feedback", "add", &on.moving, "--kind", "rating", "--rating", "2"],
            ];
            for arguments in commands {
                let before = dump(&world).await;
                let head = world.store.records().trail_head().await.unwrap();
                let (mut statement, mut committed) = (1, false);
                while !committed {
                    let stopped = killed_at(&world.target, statement, arguments);
                    let now = world.store.records().trail_head().await.unwrap();
                    committed = now != head;
                    assert_eq!(dump(&world).await == before, !committed, "{arguments:?} killed at {statement}");
                    assert!(stopped || committed, "{arguments:?} ended without having done anything");
                    assert_sound(&world).await;
                    // A server is told of each statement by the same code, and all commands write by the same code.
                    let each = world.store.engine() == Engine::Sqlite && ["undo", "import"].contains(&arguments[0]);
                    statement += if each { 1 } else { 3 };
                }
                assert!(statement >= 8, "{arguments:?}: killed at {statement} statements only");
            }
        }
    });
}

/// Moment at which the connection is cut, once.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    /// COMMIT never reaches the server.
    Before,
    /// The server commits, and its answer never comes back.
    After,
}

/// Starts a proxy between us and the server that loses the connection at the first COMMIT of a transaction that
/// writes.
async fn cutting_proxy(url: &str, cut: Cut) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let mut between = url::Url::parse(url).expect("a URL");
    let socket = between.host_str().filter(|h| h.starts_with("%2F")).map(|h| {
        let folder = h.replace("%2F", "/").replace("%2f", "/");
        format!("{folder}/.s.PGSQL.{}", between.port().unwrap_or(5432))
    });
    let server = (between.host_str().unwrap_or("127.0.0.1").to_owned(), between.port().unwrap_or(5432));
    between.set_host(Some("127.0.0.1")).expect("a host");
    between.set_port(Some(port)).expect("a port");
    between.query_pairs_mut().append_pair("sslmode", "disable");
    let done = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&done);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (socket, server, done) = (socket.clone(), server.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                if let Some(path) = socket {
                    relay(client, UnixStream::connect(path).await.expect("the server"), cut, &done).await;
                } else {
                    relay(client, TcpStream::connect(server).await.expect("the server"), cut, &done).await;
                }
            });
        }
    });
    (between.to_string(), told)
}

async fn relay<S: AsyncRead + AsyncWrite + Unpin>(client: TcpStream, server: S, cut: Cut, done: &AtomicBool) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut asked, mut answered) = (vec![0_u8; 65_536], vec![0_u8; 65_536]);
    let mut only_reads = false;
    loop {
        tokio::select! {
            read = from_client.read(&mut asked) => {
                let Ok(count @ 1..) = read else { return };
                let says = |words: &[u8]| asked[..count].windows(words.len()).any(|part| part == words);
                if says(b"BEGIN") {
                    only_reads = says(b"READ ONLY");
                }
                if says(b"COMMIT\0") && !only_reads && !done.swap(true, Ordering::Relaxed) {
                    if cut == Cut::After {
                        to_server.write_all(&asked[..count]).await.expect("sent");
                        let _ = from_server.read(&mut answered).await;
                    }
                    return;
                }
                if to_server.write_all(&asked[..count]).await.is_err() { return }
            }
            read = from_server.read(&mut answered) => {
                let Ok(count @ 1..) = read else { return };
                if to_client.write_all(&answered[..count]).await.is_err() { return }
            }
        }
    }
}

#[test]
fn a_commit_that_was_not_heard_is_looked_up_and_never_repeated_blindly() {
    block_on(async {
        for cut in [Cut::Before, Cut::After] {
            let Some(world) = native_on_postgres().await else { return };
            let Target::Postgres(url) = &world.target else { return };
            let (between, was_cut) = cutting_proxy(url, cut).await;
            let store = open(&Target::Postgres(between)).await;
            let count = ids(&world, Entity::Feedback).await.len();
            let plan = feedback::add(&store, "ep-2", &said("thumbs_up", None, None)).await.expect("a plan");
            let receipt = change::apply(&store, &plan, &author()).await.unwrap_or_else(|e| panic!("{cut:?}: {e}"));
            assert!(was_cut.load(Ordering::Relaxed), "nothing was cut");
            assert_eq!(ids(&world, Entity::Feedback).await.len(), count + 1, "{cut:?}");
            assert_eq!(receipt.audit_seq, Some(2), "{cut:?}");
            assert_eq!(audit::list(&world.store, 0, 10).await.unwrap().len(), 2, "{cut:?}");
            assert_sound(&world).await;
        }
    });
}

#[test]
fn an_agent_that_writes_meanwhile_makes_a_conflict_of_a_plan_and_another_plan_of_an_order() {
    block_on(async {
        for world in natives().await {
            let on = chosen(&world).await;
            let said = FeedbackFields { correction: Some("ours".to_owned()), ..FeedbackFields::default() };
            let kept = feedback::edit(&world.store, &on.feedback, &said, None).await.expect("a plan");
            let theirs = format!("UPDATE agent_feedback SET correction = 'theirs' WHERE id = '{}'", on.feedback);
            // The agent holds the row, or the whole file, when we come.
            let mut agent = Agent::of(&world.target).await;
            agent.run("BEGIN").await;
            agent.run(&theirs).await;
            let us = author();
            let edit = change::apply(&world.store, &kept, &us);
            let (edited, ()) = futures::future::join(edit, agent.run("COMMIT")).await;
            assert!(matches!(edited, Err(ChangeError::Conflict { .. })), "{edited:?}");
            let stored = world.store.row(Entity::Feedback, &on.feedback).await.unwrap().unwrap();
            assert_eq!(stored.text("correction"), Some("theirs"), "never a lost update");
            // Where nobody has read a plan, it is made again from what the agent wrote.
            let order = || feedback::edit(&world.store, &on.feedback, &said, None);
            let (planned, _) = change::plan_and_apply(&world.store, &author(), order).await.expect("done");
            assert_eq!(planned.changes[0].before["correction"], "theirs");
            assert_sound(&world).await;
        }
    });
}

#[test]
fn serialisation_failures_are_tried_again_from_the_start_and_not_for_ever() {
    block_on(async {
        for (when, of_many) in [("AFTER INSERT", 3), ("AFTER INSERT", 1_000), ("DEFERRED", 3)] {
            let Some(world) = native_on_postgres().await else { return };
            let trigger = match when {
                "DEFERRED" => {
                    "CREATE CONSTRAINT TRIGGER often AFTER INSERT ON agent_feedback DEFERRABLE INITIALLY DEFERRED"
                }
                _ => "CREATE TRIGGER often AFTER INSERT ON agent_feedback",
            };
            let fails = format!(
                "CREATE SEQUENCE tries; CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                 IF nextval('tries') <= {of_many} THEN RAISE EXCEPTION 'not now' USING ERRCODE = '40001'; END IF; \
                 RETURN NEW; END $$; {trigger} FOR EACH ROW EXECUTE FUNCTION fails()"
            );
            meddle(&world, &fails).await;
            let before = dump(&world).await;
            let plan = feedback::add(&world.store, "ep-2", &said("thumbs_up", None, None)).await.expect("a plan");
            let applied = change::apply(&world.store, &plan, &author()).await;
            if of_many == 3 {
                assert_eq!(applied.expect("applied").audit_seq, Some(2));
                assert_eq!(ids(&world, Entity::Feedback).await.len(), 3);
            } else {
                assert!(
                    matches!(&applied, Err(ChangeError::Failed(words)) if words.contains("not now")),
                    "{applied:?}"
                );
                assert_eq!(dump(&world).await, before);
            }
            assert_sound(&world).await;
        }
    });
}
