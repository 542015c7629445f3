//! Erasures that are stopped: killed at any statement and resumed, started twice at once, taken over; and what is kept of
//! them on the disk. With real processes, on both engines.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::fixtures::Layout;
use crate::support::world::{World, address, author, meddle, on_postgres, on_sqlite, open, texts};
use crate::support::{block_on, told, words};
use mnemoscope::change::purge::{self, Desk, PurgeOptions};
use mnemoscope::change::{ChangeError, audit};
use mnemoscope::layout::CatalogTable;
use mnemoscope::store::own::TABLES as OWN_TABLES;
use mnemoscope::store::{OpenOptions, Store, Target};
use serde_json::Value;

const PERSON: &str = "user-ana";
const CHOICES: [&str; 6] = ["--account", "erase", "--mentions", "redact", "--batch", "20"];

/// Canvases that the person made and others used: each stays and gets a pseudonym, which needs an account.
const SHARED: i64 = 50;

async fn shared_canvases(world: World) -> World {
    let numbers: Vec<String> = (0..SHARED).map(|n| format!("{n:03}")).collect();
    let values = |row: &dyn Fn(&String) -> String| numbers.iter().map(row).collect::<Vec<_>>().join(", ");
    let canvases = values(&|n| format!("('canvas-of-ana-{n}', 'tenant', 'user-ana', 'Shared {n}')"));
    let uses = values(&|n| format!("('use-by-ben-{n}', 'canvas-of-ana-{n}', 'tenant', 'present', 'user-ben', 'x')"));
    let sql = format!(
        "INSERT INTO canvases (id, tenant_id, created_by, name) VALUES {canvases}; \
         INSERT INTO canvas_audit (id, canvas_id, tenant_id, action_type, user_id, canvas_type) VALUES {uses}"
    );
    meddle(&world, &sql).await;
    world
}

/// Atom's tables on both engines, as far as there is a server.
fn worlds() -> [fn() -> Option<World>; 2] {
    [
        || Some(block_on(async { shared_canvases(on_sqlite(Layout::Atom).await).await })),
        || block_on(async { Some(shared_canvases(on_postgres(Layout::Atom).await?).await) }),
    ]
}

fn command(world: &World, state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    command.args(["-d", &address(world), "--format", "json"]).args(arguments);
    command.env("MNEMOSCOPE_STATE", state).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn purge<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["purge", PERSON][..], more].concat()
}

fn finished(world: &World, state: &Path, arguments: &[&str]) -> Output {
    command(world, state, arguments).output().expect("the program")
}

/// A run that waits at its n-th writing statement; none when it ended before.
fn standing_at(world: &World, state: &Path, statement: usize) -> Option<Child> {
    let arguments = purge(&[&CHOICES[..], &["--apply"]].concat());
    let mut child = command(world, state, &arguments)
        .env("MNEMOSCOPE_STOP_AT_WRITE", statement.to_string())
        .spawn()
        .expect("the program");
    let mut lines = BufReader::new(child.stderr.take().expect("its words")).lines().map_while(Result::ok);
    if lines.any(|line| line.starts_with("stopped at statement")) {
        return Some(child);
    }
    assert!(child.wait().expect("its end").success(), "it ended otherwise");
    None
}

fn kill(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("gone");
}

/// The rows of the memory but for the times at which the fixture was made, with one word for the pseudonym, which is
/// another one in each run.
async fn rows(world: &World) -> BTreeMap<String, Vec<String>> {
    let (pseudonym, store) = (pseudonym(world).await, open(&world.target).await);
    let of_table = |table: &CatalogTable| {
        let columns = table.columns.iter().map(|c| &c.name).filter(|name| !name.ends_with("_at"));
        let texts_of: Vec<String> = columns
            .map(|name| match world.target {
                Target::File(_) => format!("quote(\"{name}\")"),
                Target::Postgres(_) => format!("coalesce(\"{name}\"::text, 'NULL')"),
            })
            .collect();
        format!("SELECT '{0} ' || {1} FROM {0}", table.title(), texts_of.join(" || ', ' || "))
    };
    let tables = store.catalog().tables.iter().filter(|table| !OWN_TABLES.contains(&table.name.as_str()));
    let sql = tables.map(of_table).collect::<Vec<_>>().join(" UNION ALL ");
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in texts(world, &sql).await {
        let row = if pseudonym.is_empty() { row } else { row.replace(&pseudonym, "someone") };
        let (table, row) = row.split_once(' ').expect("a table and its row");
        rows.entry(table.to_owned()).or_default().push(row.to_owned());
    }
    rows.values_mut().for_each(|rows| rows.sort());
    rows
}

/// Lists the rows of either end that the other one lacks, by table.
fn differences(one: &BTreeMap<String, Vec<String>>, other: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let lacking = |a: &BTreeMap<String, Vec<String>>, b: &BTreeMap<String, Vec<String>>, sign: &str| {
        let all = a.iter().flat_map(|(table, rows)| rows.iter().map(move |row| (table, row)));
        let missing = all.filter(|(table, row)| !b.get(*table).is_some_and(|rows| rows.contains(row)));
        missing.map(|(table, row)| format!("{sign} {table}: {row}")).collect::<Vec<_>>()
    };
    [lacking(one, other, "-"), lacking(other, one, "+")].concat()
}

async fn pseudonym(world: &World) -> String {
    texts(world, "SELECT id FROM users WHERE email LIKE '%@erased.invalid'").await.join("")
}

fn receipt(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", words(output)))
}

/// Every file of a folder, and of those in it.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Words about the person in what is kept next to the database.
fn named(state: &Path) -> Vec<String> {
    let about = ["user-ana", "ana.ruiz", "Ana Ruiz", "ep-both", "ses-1"];
    let holds = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        about.iter().any(|word| text.contains(word) || path.to_string_lossy().contains(word))
    };
    files(state).into_iter().filter(holds).map(|path| path.display().to_string()).collect()
}

/// Statements from one kill to the next: those of a sample, or the number in `MNEMOSCOPE_KILL_STEP`.
fn kill_step() -> usize {
    std::env::var("MNEMOSCOPE_KILL_STEP").ok().and_then(|n| n.parse().ok()).unwrap_or(32).max(1)
}

/// Kills runs at statements from the first to the last, resumes each, and compares with a run that was let be.
fn killed_at_any_statement(world: fn() -> Option<World>) {
    let Some(whole) = world() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let done = finished(&whole, state.path(), &purge(&[&CHOICES[..], &["--apply"]].concat()));
    assert!(done.status.success(), "{}", words(&done));
    let (expected, whole_receipt) = (block_on(rows(&whole)), receipt(&done));
    assert!(!block_on(pseudonym(&whole)).is_empty(), "there is an account for pseudonyms");
    // Whether a run comes to a statement; one that does is killed there and resumed.
    let comes_to = |statement: usize| {
        let (world, state) = (world().expect("a database"), tempfile::tempdir().expect("a folder"));
        let Some(child) = standing_at(&world, state.path(), statement) else { return false };
        kill(child);
        assert_eq!(named(state.path()), Vec::<String>::new(), "killed at {statement}");
        // None of the choices is said again.
        let resumed = finished(&world, state.path(), &purge(&["--resume"]));
        assert!(resumed.status.success(), "killed at {statement}: {}", words(&resumed));
        let resumed = receipt(&resumed);
        let differs = differences(&expected, &block_on(rows(&world)));
        assert!(differs.is_empty(), "killed at {statement}: {differs:#?}");
        for key in ["counts", "status", "mentions", "account", "rows_erased"] {
            assert_eq!(resumed[key], whole_receipt[key], "{key}, killed at {statement}");
        }
        let left: Vec<_> = files(&state.path().join("purges"));
        assert!(left.is_empty(), "killed at {statement}: {left:?}");
        assert_eq!(named(state.path()), Vec::<String>::new());
        let verdict = block_on(async { audit::verify(&open(&world.target).await, &[]).await.expect("a verdict") });
        assert!(verdict.ok, "{verdict:?}");
        let id = resumed["receipt_id"].as_str().expect("an id");
        let looked = finished(&world, state.path(), &["purge", "verify", id]);
        assert!(looked.status.success(), "killed at {statement}: {}", words(&looked));
        true
    };
    let (mut reached, mut beyond) = (0, 1);
    while comes_to(beyond) {
        (reached, beyond) = (beyond, beyond + kill_step());
    }
    assert!(reached > 0, "it writes");
    // The last one is found by halving.
    while beyond - reached > 1 {
        let middle = usize::midpoint(reached, beyond);
        if comes_to(middle) {
            reached = middle;
        } else {
            beyond = middle;
        }
    }
}

#[test]
fn a_run_on_sqlite_killed_at_any_statement_is_resumed_to_the_same_end_with_the_same_choices() {
    killed_at_any_statement(worlds()[0]);
}

#[test]
fn a_run_on_postgres_killed_at_any_statement_is_resumed_to_the_same_end_with_the_same_choices() {
    killed_at_any_statement(worlds()[1]);
}

#[test]
fn whoever_comes_while_a_run_is_alive_is_refused_and_may_resume_it_when_it_is_gone() {
    for world in worlds() {
        let (Some(world), state) = (world(), tempfile::tempdir().expect("a folder")) else { continue };
        // It has begun, and is within a batch. A lock of its transaction would only be met by a writer.
        let Some(first) = standing_at(&world, state.path(), 40) else { panic!("it came so far") };
        for second in [purge(&["--resume"]), purge(&["--apply"]), vec!["purge", "ana.ruiz@initech.example", "--apply"]]
        {
            let refused = finished(&world, state.path(), &second);
            assert_eq!(refused.status.code(), Some(5), "{second:?}: {}", words(&refused));
        }
        kill(first);
        let resumed = finished(&world, state.path(), &purge(&["--resume"]));
        assert!(resumed.status.success(), "{}", words(&resumed));
        assert_eq!(block_on(texts(&world, "SELECT status FROM memory_purges")).len(), 1);
    }
}

/// Looks everywhere for an erasure that has not ended, and gives the examples of the finding and its remedy.
fn told_unfinished(world: &World, state: &Path) -> (Value, String) {
    let json = |arguments: &[&str]| -> Value {
        let output = finished(world, state, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", words(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    for (arguments, key) in [(vec!["purge", PERSON], "disclosures"), (vec!["show", "subject", PERSON], "notes")] {
        let output = finished(world, state, &arguments);
        let said = match output.status.code() {
            Some(0) => receipt(&output)[key][0].clone(),
            Some(3) => {
                let error: Value = serde_json::from_slice(&output.stderr).expect("an error");
                assert!(error["error"]["message"].to_string().contains("has not ended verified"), "{error}");
                error["error"]["remedy"].clone()
            }
            _ => panic!("{arguments:?}: {}", words(&output)),
        };
        assert!(said.to_string().contains(&format!("purge {PERSON} --resume")), "{arguments:?}: {said}");
    }
    let status = json(&["status"])["database"]["notes"].to_string();
    assert!(status.contains("1 erasure has not ended verified") && status.contains("--resume"), "{status}");
    let failing = finished(world, state, &["findings", "--kind", "unfinished_erasure", "--fail-on", "high"]);
    assert_eq!(failing.status.code(), Some(6), "{}", words(&failing));
    let found = json(&["findings"]);
    let found = found["findings"].as_array().expect("findings");
    let found: Vec<&Value> = found.iter().filter(|finding| finding["kind"] == "unfinished_erasure").collect();
    let [found] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&found["count"], &found["severity"]), (&Value::from(1), &Value::from("high")));
    (found["examples"].clone(), found["remedy"].as_str().expect("a remedy").to_owned())
}

/// A run that is killed at its last statement but a few, once its rows are gone and before it has ended.
fn killed_late(world: fn() -> Option<World>) -> Option<(World, tempfile::TempDir)> {
    let killed_at = |statement: usize| {
        let (world, state) = (world()?, tempfile::tempdir().expect("a folder"));
        standing_at(&world, state.path(), statement).map(kill)?;
        Some((world, state))
    };
    let (mut reached, mut beyond) = (30, 300);
    killed_at(reached)?;
    while beyond - reached > 1 {
        let middle = usize::midpoint(reached, beyond);
        *(if killed_at(middle).is_some() { &mut reached } else { &mut beyond }) = middle;
    }
    let is_late = |(world, _): &(World, tempfile::TempDir)| {
        let left = "SELECT id FROM users WHERE id = 'user-ana'";
        let open = "SELECT id FROM memory_purges WHERE status = 'running'";
        block_on(texts(world, left)).is_empty() && block_on(texts(world, open)).len() == 1
    };
    let late = (30..=reached).rev().filter_map(killed_at).find(is_late);
    Some(late.expect("it ends after its rows are gone"))
}

#[test]
fn an_erasure_that_was_killed_is_told_wherever_one_looks() {
    for world in worlds() {
        let early = || {
            let (world, state) = (world()?, tempfile::tempdir().expect("a folder"));
            kill(standing_at(&world, state.path(), 30).expect("it came so far"));
            Some((world, state))
        };
        for (killed, rows_left) in [(early(), true), (killed_late(world), false)] {
            let Some((world, state)) = killed else { continue };
            let planned = finished(&world, state.path(), &purge(&[])).status.code();
            assert_eq!(planned, Some(if rows_left { 0 } else { 3 }));
            let (examples, remedy) = told_unfinished(&world, state.path());
            assert_eq!(examples, serde_json::json!([PERSON]));
            assert!(remedy.ends_with(&format!("purge {PERSON} --resume")), "{remedy}");
            let (purges, aside) = (state.path().join("purges"), state.path().join("aside"));
            std::fs::rename(&purges, &aside).expect("moved");
            let (examples, remedy) = told_unfinished(&world, state.path());
            let sessions = block_on(texts(&world, "SELECT id FROM memory_purges"));
            assert_eq!(examples, serde_json::json!(sessions), "nothing else says whom it is about");
            assert!(remedy.ends_with("purge SUBJECT --resume"), "{remedy}");
            std::fs::remove_dir_all(&purges).ok();
            std::fs::rename(&aside, &purges).expect("moved back");
            let resumed = finished(&world, state.path(), &purge(&["--resume"]));
            assert!(resumed.status.success(), "{}", words(&resumed));
            let after = [&["status"][..], &["findings"]].map(|asked| told(&finished(&world, state.path(), asked)));
            let tells = |said: &String| said.contains("ended verified") || said.contains("unfinished_erasure");
            assert!(!after.iter().any(tells), "{after:?}");
        }
    }
}

#[test]
fn two_that_begin_at_once_do_not_share_a_session() {
    const KEY: [u8; 32] = [7; 32];
    for world in worlds() {
        let Some(world) = world() else { continue };
        let (one, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let run = async |state: &Path, given: &str| {
            let options = OpenOptions { secret: Some(KEY), ..crate::support::options() };
            let store = Store::open(&world.target, &options).await.unwrap_or_else(|error| panic!("{error}"));
            let by = author();
            let desk = Desk {
                folder: state.to_owned(),
                key: KEY,
                author: &by,
                progress: &|_, _| {},
                forget_kept: &|_, _| Ok(()),
            };
            let choices = PurgeOptions { account: true, mentions: purge::Mentions::Redact, ..PurgeOptions::default() };
            purge::run(&store, given, &choices, None, &desk, None).await
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (a, b) = runtime
            .block_on(async { tokio::join!(run(one.path(), PERSON), run(other.path(), "ana.ruiz@initech.example")) });
        // Where the first one rewrites the file, the other may not even read.
        let turned_away = |outcome: &Result<purge::PurgeReceipt, ChangeError>| match outcome {
            Err(ChangeError::Refused(_)) => true,
            Err(error) => matches!(world.target, Target::File(_)) && error.to_string().contains("locked"),
            Ok(_) => false,
        };
        assert!((turned_away(&a) && b.is_ok()) || (a.is_ok() && turned_away(&b)), "{a:?}\n{b:?}");
        assert_eq!(block_on(texts(&world, "SELECT status FROM memory_purges")).len(), 1);
        assert!(files(&one.path().join("purges")).is_empty() && files(&other.path().join("purges")).is_empty());
    }
}

#[test]
fn nothing_is_begun_by_a_resume_that_says_no_choices() {
    let world = block_on(on_sqlite(Layout::Atom));
    let state = tempfile::tempdir().expect("a folder");
    for resume in [&["--resume"][..], &["--resume", "--apply", "--batch", "50"]] {
        let resumed = finished(&world, state.path(), &purge(resume));
        assert_eq!(resumed.status.code(), Some(3), "{}", words(&resumed));
        assert!(words(&resumed).contains("nothing was written"));
    }
    assert_eq!(block_on(texts(&world, "SELECT id FROM users WHERE id = 'user-ana'")).len(), 1);
}

#[test]
fn a_purge_whose_session_is_lost_goes_on_where_its_choices_are_repeated() {
    for world in worlds() {
        for statement in [30, 70] {
            let (Some(world), state) = (world(), tempfile::tempdir().expect("a folder")) else { continue };
            kill(standing_at(&world, state.path(), statement).expect("it came so far"));
            std::fs::remove_dir_all(state.path().join("purges")).expect("lost");
            let bare = finished(&world, state.path(), &purge(&["--resume"]));
            assert_eq!(bare.status.code(), Some(5), "{}", words(&bare));
            assert!(words(&bare).contains("repeat its choices"), "{}", words(&bare));
            let done = finished(&world, state.path(), &purge(&[&CHOICES[..], &["--resume"]].concat()));
            assert!(done.status.success(), "killed at {statement}: {}", words(&done));
            let told = receipt(&done);
            assert_eq!(told["status"], "verified with disclosures");
            assert!(told["disclosures"].to_string().contains("the file of the first run was lost"), "{told:#}");
            assert_eq!(block_on(texts(&world, "SELECT id FROM canvas_audit WHERE user_id = 'user-ana'")), [""; 0]);
            let open = "SELECT id FROM memory_purges WHERE status NOT LIKE 'verified%'";
            assert_eq!(block_on(texts(&world, open)), [""; 0], "one session, and it has ended");
            let looked =
                finished(&world, state.path(), &["purge", "verify", told["receipt_id"].as_str().expect("an id")]);
            assert!(looked.status.success(), "{}", words(&looked));
            let again = finished(&world, state.path(), &purge(&[&CHOICES[..], &["--apply"]].concat()));
            assert_ne!(again.status.code(), Some(5), "nothing waits any more: {}", words(&again));
        }
    }
}

#[test]
fn the_reason_and_the_ticket_of_a_purge_are_kept_unless_they_name_the_person() {
    for world in worlds() {
        let (Some(world), state) = (world(), tempfile::tempdir().expect("a folder")) else { continue };
        let naming = finished(&world, state.path(), &purge(&["--apply", "--reason", "as User-Ana asked"]));
        assert_eq!(naming.status.code(), Some(2), "{}", words(&naming));
        let plan = state.path().join("plan.json").display().to_string();
        let said = ["--reason", "article 17", "--ticket", "T-2", "--plan-out", &plan];
        let planned = finished(&world, state.path(), &purge(&said));
        assert!(planned.status.success(), "{}", words(&planned));
        let done = finished(&world, state.path(), &["apply", &plan]);
        assert!(done.status.success(), "{}", words(&done));
        assert_eq!(receipt(&done)["ticket"], "T-2");
        let kept = block_on(texts(&world, "SELECT value FROM memory_audit_private WHERE field = 'reason'"));
        assert!(kept.iter().any(|reason| reason.contains("article 17")), "{kept:?}");
        let verdict = block_on(async { audit::verify(&open(&world.target).await, &[]).await.expect("a verdict") });
        assert!(verdict.ok, "{verdict:?}");
    }
}

#[test]
fn a_purge_in_a_copy_of_the_database_leaves_the_session_of_the_other_alone() {
    let (world, state) = (block_on(on_sqlite(Layout::Atom)), tempfile::tempdir().expect("a folder"));
    let Target::File(path) = &world.target else { panic!("a file") };
    // Both have the id that their trail was given.
    let copy = state.path().join("copy.db");
    block_on(meddle(&world, &format!("VACUUM INTO '{}'", copy.display())));
    kill(standing_at(&world, state.path(), 40).expect("it came so far"));
    let in_copy = |arguments: &[&str]| {
        let database = copy.display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
        command.args(["-d", &database, "--format", "json"]).args(arguments).env("MNEMOSCOPE_STATE", state.path());
        command.output().expect("the program")
    };
    let none = in_copy(&purge(&["--resume"]));
    assert_eq!(none.status.code(), Some(3), "{}", words(&none));
    let done = in_copy(&purge(&["--mentions", "redact", "--apply"]));
    assert!(done.status.success(), "{}", words(&done));
    let resumed = finished(&world, state.path(), &purge(&["--resume"]));
    assert!(resumed.status.success(), "{}: {}", path.display(), words(&resumed));
    assert!(files(&state.path().join("purges")).is_empty());
}

#[test]
fn a_session_that_was_being_written_when_its_run_was_killed_is_gone_with_the_erasure() {
    let (world, state) = (block_on(on_sqlite(Layout::Atom)), tempfile::tempdir().expect("a folder"));
    kill(standing_at(&world, state.path(), 40).expect("it came so far"));
    let folder = state.path().join("purges");
    let session = files(&folder).into_iter().find(|path| path.extension().is_some_and(|end| end == "session"));
    let part = folder.join(".mnemoscope-0123456789abcdef.part");
    std::fs::copy(session.expect("a session"), part).expect("a copy");
    let resumed = finished(&world, state.path(), &purge(&["--resume"]));
    assert!(resumed.status.success(), "{}", words(&resumed));
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}
