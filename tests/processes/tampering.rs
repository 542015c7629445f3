//! Tampering with the audit trail from outside, and the name under which the database is then opened: through the
//! program itself, on both engines, with anchors in a state folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::support::fixtures::Layout;
use crate::support::world::*;
use crate::support::{block_on, words};
use mnemoscope::change::{self, undo};
use mnemoscope::memory::Entity;
use mnemoscope::store::Target;
use serde_json::{Value, json};

/// A database with a state folder.
struct Scene {
    world: World,
    state: tempfile::TempDir,
    episode: String,
}

const DROPPED: &str = "DROP TABLE memory_audit_private; DROP TABLE memory_audit_head; DROP TABLE memory_audit; \
    DROP TABLE memory_job_quarantine; DROP TABLE memory_jobs; DROP TABLE memory_holds; DROP TABLE memory_suppressions; \
    DROP TABLE memory_purges; DROP TABLE memory_migrations";

const CUT: &str = "DELETE FROM memory_audit_private WHERE seq > 2; DELETE FROM memory_audit WHERE seq > 2; \
    UPDATE memory_audit_head SET seq = 2, hash = (SELECT hash FROM memory_audit WHERE seq = 2)";

fn scenes() -> Vec<Scene> {
    let worlds = block_on(async { [Some(small().await), native_on_postgres().await] });
    let scene = |world: World| {
        let episode = block_on(some_episode(&world));
        Scene { world, state: tempfile::tempdir().expect("a folder"), episode }
    };
    worlds.into_iter().flatten().map(scene).collect()
}

impl Scene {
    fn name(&self) -> String {
        address(&self.world)
    }

    fn on(&self, database: &str, arguments: &[&str]) -> Output {
        run(self.state.path(), &[&["-d", database, "--format", "json"], arguments].concat())
    }

    fn code(&self, arguments: &[&str]) -> Option<i32> {
        self.on(&self.name(), arguments).status.code()
    }

    fn verified(&self, database: &str) -> (Option<i32>, Vec<String>) {
        let output = self.on(database, &["audit", "verify"]);
        let verdict = json_of(&output);
        let kinds = verdict["faults"].as_array().into_iter().flatten().filter_map(|f| f["kind"].as_str());
        (output.status.code(), kinds.map(str::to_owned).collect())
    }

    /// Tampers, and leaves nothing of it in a `-wal` file, which is another one under another name.
    fn meddle(&self, sql: &str) {
        block_on(meddle(&self.world, sql));
        self.settle();
    }

    fn settle(&self) {
        if let Target::File(_) = self.world.target {
            block_on(meddle(&self.world, "PRAGMA wal_checkpoint(TRUNCATE)"));
        }
    }

    fn signal(&self, database: &str) -> Value {
        let output = self.on(database, &["signal", &self.episode, "ignored", "--apply"]);
        assert!(output.status.success(), "{}", words(&output));
        json_of(&output)
    }
}

fn run(state: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    command.args(arguments).env("MNEMOSCOPE_STATE", state).stdin(Stdio::null());
    command.output().expect("the program")
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

#[test]
fn a_trail_that_was_dropped_or_begun_again_is_missed_at_its_place_until_that_is_accepted() {
    for scene in scenes() {
        scene.signal(&scene.name());
        assert_eq!(scene.verified(&scene.name()).0, Some(0));
        scene.meddle(DROPPED);
        assert_eq!(scene.verified(&scene.name()), (Some(7), vec!["missing_trail".to_owned()]));
        assert_eq!(scene.code(&["migrate", "--apply"]), Some(0));
        assert_eq!(scene.verified(&scene.name()), (Some(7), vec!["foreign_chain".to_owned()]));
        // Further anchors of the new trail hide nothing.
        scene.signal(&scene.name());
        assert_eq!(scene.verified(&scene.name()).0, Some(7));
        assert_eq!(scene.code(&["audit", "accept"]), Some(2), "there is no reason");
        assert_eq!(scene.code(&["audit", "accept", "--reason", " "]), Some(2), "there is no reason");
        let accepted = scene.on(&scene.name(), &["audit", "accept", "--reason", "moved to a new database"]);
        assert!(accepted.status.success(), "{}", words(&accepted));
        assert_eq!(json_of(&accepted)["status"], "accepted");
        assert_eq!(scene.verified(&scene.name()), (Some(0), Vec::new()));
        let again = scene.on(&scene.name(), &["audit", "accept", "--reason", "once more"]);
        assert_eq!(json_of(&again)["status"], "nothing to do");
        let kept = std::fs::read_to_string(scene.state.path().join("anchors/accepted.jsonl")).expect("the record");
        assert!(kept.contains("moved to a new database") && kept.contains("\"hash\""), "{kept}");
        let listed = json_of(&scene.on(&scene.name(), &["audit", "list", "--limit", "1"]));
        assert_eq!(listed["rows"][0]["action"], "audit.accept");
    }
}

#[test]
fn tables_of_the_trail_that_are_gone_break_it() {
    for scene in scenes() {
        scene.signal(&scene.name());
        scene.meddle("DROP TABLE memory_audit_private");
        assert_eq!(scene.verified(&scene.name()), (Some(7), vec!["missing_table".to_owned()]));
        for arguments in [&["audit", "list"][..], &["audit", "anchor", "/dev/null"], &["undo", "2"]] {
            assert_eq!(scene.code(arguments), Some(7), "{arguments:?}");
        }
        assert_eq!(scene.code(&["signal", &scene.episode, "ignored", "--apply"]), Some(7));
    }
}

/// Other names of the same database.
fn other_names(scene: &Scene) -> Vec<String> {
    match &scene.world.target {
        Target::File(path) => {
            let (linked, hard) = (scene.state.path().join("linked.db"), scene.state.path().join("hard.db"));
            std::os::unix::fs::symlink(path, &linked).expect("a link");
            let roundabout = path
                .parent()
                .expect("a folder")
                .join("..")
                .join(path.parent().and_then(Path::file_name).map(PathBuf::from).expect("a name"));
            let mut names = vec![linked.display().to_string(), roundabout.join("native.db").display().to_string()];
            if std::fs::hard_link(path, &hard).is_ok() {
                names.push(hard.display().to_string());
            }
            names
        }
        Target::Postgres(url) => ["localhost", "127.0.0.1", "[::1]"]
            .iter()
            .filter(|_| url.contains("localhost") || url.contains("127.0.0.1"))
            .map(|host| url.replace("127.0.0.1", host).replace("localhost", host))
            .filter(|other| other != url && run(scene.state.path(), &["-d", other, "status"]).status.success())
            .collect(),
    }
}

#[test]
fn a_cut_tail_is_seen_under_every_name_of_the_database() {
    for scene in scenes() {
        let names = other_names(&scene);
        assert!(!names.is_empty() || matches!(scene.world.target, Target::Postgres(_)));
        scene.signal(&scene.name());
        scene.signal(&scene.name());
        scene.settle();
        for name in &names {
            assert_eq!(scene.verified(name), (Some(0), Vec::new()), "{name}");
        }
        scene.meddle(CUT);
        for name in names.iter().chain([&scene.name()]) {
            assert_eq!(scene.verified(name), (Some(7), vec!["truncated".to_owned()]), "{name}");
        }
        // A trail that is begun again is seen under another name too.
        scene.meddle(DROPPED);
        for name in &names {
            assert_eq!(scene.verified(name), (Some(7), vec!["missing_trail".to_owned()]), "{name}");
        }
    }
}

/// A copy of what is committed, in one file.
fn copied(from: &str, to: &Path) {
    let script = sqlx::AssertSqlSafe(format!("VACUUM INTO '{}'", to.display()));
    block_on(async { sqlx::raw_sql(script).execute(&mut sqlite(Path::new(from)).await).await.map(drop) })
        .expect("a copy");
}

/// Removes what SQLite keeps next to a file.
fn without_journals(path: &str) {
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{path}{end}"));
    }
}

#[test]
fn a_restored_copy_is_told_from_the_trail_that_was_there_until_it_is_accepted() {
    let state = tempfile::tempdir().expect("a folder");
    let (path, backup) = (state.path().join("memory.db"), state.path().join("backup.db"));
    let database = path.display().to_string();
    let on = |arguments: &[&str]| run(state.path(), &[&["-d", &database, "--format", "json"], arguments].concat());
    let code = |arguments: &[&str]| on(arguments).status.code();
    let signal = || {
        let episode = json_of(&on(&["list", "episode", "--limit", "1"]))["rows"][0]["id"].as_str().map(str::to_owned);
        assert_eq!(code(&["signal", &episode.expect("an episode"), "ignored", "--apply"]), Some(0));
    };
    assert!(
        run(state.path(), &["demo", &database, "--episodes", "24", "--no-console", "--at", "2026-06-15T16:00:00Z"])
            .status
            .success()
    );
    assert_eq!(code(&["migrate", "--apply"]), Some(0));
    signal();
    copied(&database, &backup);
    signal();
    for restored in ["copied over it", "put in its place"] {
        let fresh = state.path().join("fresh.db");
        std::fs::copy(&backup, &fresh).expect("a copy");
        if restored == "copied over it" {
            std::fs::copy(&fresh, &path).map(drop).expect("restored");
        } else {
            signal();
            std::fs::rename(&fresh, &path).expect("restored");
        }
        without_journals(&database);
        assert_eq!(code(&["audit", "verify"]), Some(7), "{restored}");
        // While another writes for long, nothing is accepted without an entry.
        let other = rusqlite::Connection::open(&path).expect("the database");
        other.execute_batch("BEGIN IMMEDIATE").expect("a lock");
        assert_eq!(code(&["audit", "accept", "--reason", "restored from a backup"]), Some(1), "{restored}");
        assert_eq!(code(&["audit", "verify"]), Some(7), "{restored}");
        drop(other);
        let accepted = json_of(&on(&["audit", "accept", "--reason", "restored from a backup"]));
        assert!(accepted["audit_seq"].is_number(), "{accepted}");
        assert_eq!(code(&["audit", "verify"]), Some(0), "{restored}");
    }
    // What is cut after that is seen again.
    signal();
    std::fs::copy(&backup, &path).expect("restored");
    without_journals(&database);
    assert_eq!(code(&["audit", "verify"]), Some(7));
}

#[test]
fn a_copy_that_goes_its_own_way_is_a_fault_on_both_sides_until_one_is_accepted() {
    let state = tempfile::tempdir().expect("a folder");
    let [first, second] = ["first.db", "second.db"].map(|name| state.path().join(name).display().to_string());
    let on = |database: &str, arguments: &[&str]| {
        run(state.path(), &[&["-d", database, "--format", "json"], arguments].concat())
    };
    let verified = |database: &str| on(database, &["audit", "verify"]).status.code();
    let signal = |database: &str, word: &str| {
        let page = json_of(&on(database, &["list", "episode", "--limit", "1"]));
        let episode = page["rows"][0]["id"].as_str().expect("an episode").to_owned();
        assert_eq!(on(database, &["signal", &episode, word, "--apply"]).status.code(), Some(0));
    };
    assert!(
        run(state.path(), &["demo", &first, "--episodes", "24", "--no-console", "--at", "2026-06-15T16:00:00Z"])
            .status
            .success()
    );
    assert_eq!(on(&first, &["migrate", "--apply"]).status.code(), Some(0));
    copied(&first, Path::new(&second));
    assert_eq!((verified(&first), verified(&second)), (Some(0), Some(0)), "they are alike");
    signal(&first, "ignored");
    signal(&second, "confirmed");
    assert_eq!((verified(&first), verified(&second)), (Some(7), Some(7)));
    assert_eq!(on(&second, &["audit", "accept", "--reason", "a copy to try things on"]).status.code(), Some(0));
    for _ in 0..2 {
        assert_eq!((verified(&first), verified(&second)), (Some(0), Some(0)));
        signal(&first, "ignored");
        signal(&second, "confirmed");
    }
}

#[test]
fn a_demo_that_is_made_again_over_its_own_file_is_no_tampering() {
    let state = tempfile::tempdir().expect("a folder");
    let path = state.path().join("demo.db");
    let demo = path.display().to_string();
    let run = |arguments: &[&str]| run(state.path(), arguments).status.code();
    for turn in 0..2 {
        assert_eq!(run(&["demo", &demo, "--episodes", "24", "--no-console", "--at", "2026-06-15T16:00:00Z"]), Some(0));
        assert_eq!(run(&["-d", &demo, "migrate", "--apply"]), Some(0));
        assert_eq!(run(&["-d", &demo, "audit", "verify"]), Some(0), "turn {turn}");
        std::fs::remove_file(&path).expect("gone");
        without_journals(&demo);
    }
}

#[test]
fn an_anchor_that_cannot_be_kept_is_said_in_the_receipt() {
    for scene in scenes() {
        std::fs::write(scene.state.path().join("anchors"), "in the way").expect("a file");
        let receipt = scene.signal(&scene.name());
        let said = receipt["disclosures"].to_string();
        assert!(said.contains("its anchor could not be stored"), "{receipt:#}");
    }
    let world = block_on(on_sqlite(Layout::Atom));
    let state = tempfile::tempdir().expect("a folder");
    std::fs::write(state.path().join("anchors"), "in the way").expect("a file");
    let Target::File(path) = &world.target else { return };
    let database = path.display().to_string();
    let arguments =
        ["-d", &database, "--format", "json", "purge", "user-ana", "--account", "erase", "--mentions", "redact"];
    let purged = run(state.path(), &[&arguments[..], &["--apply"]].concat());
    let receipt = json_of(&purged);
    assert!(
        receipt["anchor_problem"].as_str().is_some_and(|w| w.contains("anchor could not be stored")),
        "{receipt:#}"
    );
    let printed = state.path().join("printed.json");
    std::fs::write(&printed, &purged.stdout).expect("kept");
    let looked = run(state.path(), &["-d", &database, "purge", "verify", &printed.display().to_string()]);
    assert!(looked.status.success(), "{}", words(&looked));
}

#[test]
fn a_plan_to_erase_somebody_is_refused_when_anything_in_it_was_changed() {
    let world = block_on(on_sqlite(Layout::Atom));
    let state = tempfile::tempdir().expect("a folder");
    let Target::File(path) = &world.target else { return };
    let (database, file) = (path.display().to_string(), state.path().join("plan.json"));
    let file = file.display().to_string();
    let planned = run(state.path(), &["-d", &database, "purge", "user-ana", "--plan-out", &file]);
    assert!(planned.status.success(), "{}", words(&planned));
    let plan: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("the plan")).expect("json");
    let future = "2999-01-01T00:00:00.000000Z";
    for (key, value, code) in [
        ("database_id", Value::Null, 5),
        ("database_id", json!("another"), 5),
        ("created_at", json!(future), 5),
        ("created_at", json!("soon"), 5),
        ("created_at", json!(change::now()), 2),
        ("operation", json!("feedback.add"), 5),
        ("given", json!("user-ben"), 2),
        ("sha256", Value::from(""), 2),
    ] {
        let mut forged = plan.clone();
        forged[key] = value.clone();
        std::fs::write(&file, forged.to_string()).expect("written");
        let outcome = run(state.path(), &["-d", &database, "apply", &file]);
        assert_eq!(outcome.status.code(), Some(code), "{key} {value}: {}", words(&outcome));
    }
    std::fs::write(&file, plan.to_string()).expect("written");
    let outcome = run(state.path(), &["-d", &database, "apply", &file]);
    assert!(outcome.status.success(), "{}", words(&outcome));
}

#[test]
fn an_undo_adds_to_the_systems_own_trail_and_takes_nothing_from_it() {
    block_on(async {
        for world in [Some(native().await), on_postgres(Layout::EnnubeZlib).await].into_iter().flatten() {
            let store = open(&world.target).await;
            let cases = ids(&world, Entity::Case).await;
            let own = async || ids(&world, Entity::AuditEntry).await.len();
            let before = own().await;
            let plan = change::reward::set(&store, &cases[0], 0.25, None).await.expect("a plan");
            let receipt = change::apply(&store, &plan, &author()).await.expect("applied");
            let after = own().await;
            let undone = undo::undo(&store, receipt.audit_seq.expect("an entry")).await.expect("a plan");
            assert!(undone.mutations.iter().all(|m| !m.table().title().ends_with("agent_memory_audit")));
            change::apply(&store, &undone, &author()).await.expect("undone");
            assert_eq!((after - before, own().await - after), (2, 2), "an entry of ours and one of the system's each");
        }
        let world = native().await;
        let state = tempfile::tempdir().expect("a folder");
        let Target::File(path) = &world.target else { return };
        let database = path.display().to_string();
        let line = |n: usize| {
            let (good, word) = (n.is_multiple_of(2), if n.is_multiple_of(2) { "refund" } else { "weather" });
            json!({"query": format!("refund {n}"), "case": format!("{word} {n}"), "plan": word, "truth_label": good,
                "reward": if good { 0.9 } else { 0.1 }})
        };
        let pairs = state.path().join("pairs.jsonl");
        let lines: Vec<String> = (0..80).map(|n| line(n).to_string()).collect();
        std::fs::write(&pairs, lines.join("\n")).expect("pairs");
        let pairs = pairs.display().to_string();
        let own = async || ids(&world, Entity::AuditEntry).await.len();
        for bank in ids(&world, Entity::Profile).await {
            let train = ["policy", "train", &bank, "--pairs", &pairs, "--apply"];
            let trained = run(state.path(), &[&["-d", &database, "--format", "json"][..], &train].concat());
            let Some(seq) = json_of(&trained)["audit_seq"].as_i64() else { continue };
            let after = own().await;
            let undone = run(state.path(), &["-d", &database, "undo", &seq.to_string(), "--apply"]);
            assert!(undone.status.success(), "{}", words(&undone));
            assert_eq!(own().await - after, 2);
            return;
        }
        panic!("no bank can be learned from");
    });
}
