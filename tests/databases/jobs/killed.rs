//! A backfill killed at any point: resumed, it comes to exactly what an undisturbed run comes to.
//!
//! A sample runs with every test. The whole of it, 200 kills over 100,000 episodes, on both engines:
//! `MNEMOSCOPE_KILLS=200 MNEMOSCOPE_KILL_EPISODES=100000 cargo test --release --test databases jobs::killed`.

use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mnemoscope::change::audit;
use serde_json::Value;

use super::world::{World, on_postgres, on_sqlite};
use crate::support::block_on;
use crate::support::world::address_of;

fn setting(name: &str, usual: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn command(world: &World, words: &[&str], batch: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
    command.args(["-d", &address_of(&world.target), "backfill"]).args(words);
    if !batch.is_empty() {
        command.args(["--batch", batch]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Runs the backfill and kills it after random times, until it has been killed so often or has come to its end. Gives how
/// often it was killed.
fn run_and_kill(world: &World, kills: u32, longest: Duration, batch: &str) -> u32 {
    let mut killed = 0;
    let mut words: &[&str] = &["canvas-links", "--apply"];
    while killed < kills {
        let mut child = command(world, words, batch).spawn().expect("the binary");
        std::thread::sleep(longest.mul_f64(rand::random::<f64>()));
        if child.try_wait().expect("a child").is_some_and(|status| status.success()) {
            return killed;
        }
        child.kill().expect("killed");
        child.wait().expect("gone");
        killed += 1;
        let job = block_on(world.store.records().job("canvas-links")).expect("jobs");
        // Killed when everything was written and only the receipt was missing.
        if job.as_ref().is_some_and(|job| job.ended_at.is_some()) {
            return killed;
        }
        // Before its first transaction there is nothing to resume: then it is begun.
        words = if job.is_some() { &["resume", "canvas-links"] } else { &["canvas-links", "--apply"] };
    }
    let status = command(world, words, "").status().expect("the binary");
    assert!(status.success(), "the last resume comes to the end: {status}");
    killed
}

/// No row is written twice and none is without an entry.
async fn check_entries(world: &World, undisturbed: &World) {
    let changed = "SELECT value FROM memory_audit_private p JOIN memory_audit a ON a.seq = p.seq \
         WHERE p.field = 'undo' AND a.action = 'backfill.canvas-links' ORDER BY p.seq";
    let rows = |values: Vec<String>| {
        let mut all: Vec<String> = Vec::new();
        for value in values {
            let value: Value = serde_json::from_str(&value).expect("JSON");
            for inverse in value["inverses"].as_array().expect("a list") {
                let revise = &inverse["mutation"]["revise"];
                let rows = revise["rows"].as_array().expect("rows");
                all.extend(rows.iter().map(|r| format!("{} {}", revise["table"]["name"], r[0])));
            }
        }
        all
    };
    let (here, there) = (rows(world.texts(changed).await), rows(undisturbed.texts(changed).await));
    let unique: HashSet<&String> = here.iter().collect();
    assert_eq!(unique.len(), here.len(), "a row was written twice");
    assert_eq!(unique, there.iter().collect(), "a row was skipped");
}

fn kill_on(make: impl Fn(u32) -> Option<World>) {
    let (kills, episodes) = (setting("MNEMOSCOPE_KILLS", 6), setting("MNEMOSCOPE_KILL_EPISODES", 150));
    let batch = (episodes / 60).max(5).to_string();
    let Some(undisturbed) = make(episodes) else { return };
    let started = Instant::now();
    assert!(command(&undisturbed, &["canvas-links", "--apply"], &batch).status().expect("the binary").success());
    let longest = started.elapsed();
    let expected = block_on(undisturbed.links());
    let mut left = kills;
    while left > 0 {
        let world = make(episodes).expect("PostgreSQL is still there");
        left -= run_and_kill(&world, left, longest, &batch).min(left);
        block_on(async {
            assert!(world.links().await == expected, "the result differs from that of an undisturbed run");
            let verdict = audit::verify(&world.store, &[]).await.expect("a trail");
            assert!(verdict.ok, "{:?}", verdict.faults);
            check_entries(&world, &undisturbed).await;
        });
    }
}

#[test]
fn killed_anywhere_and_resumed_it_comes_to_the_same_on_sqlite() {
    kill_on(|episodes| Some(block_on(on_sqlite(episodes))));
}

#[test]
fn killed_anywhere_and_resumed_it_comes_to_the_same_on_postgres() {
    kill_on(|episodes| block_on(on_postgres(episodes)));
}

/// The state of the job, and the rows that it has looked at.
fn state(world: &World) -> (String, i64) {
    let job = block_on(world.store.records().job("canvas-links")).expect("jobs");
    job.map(|job| (job.state, job.seen)).unwrap_or_default()
}

/// Waits until the job has looked at more rows than so many.
fn wait_beyond(world: &World, seen: i64) {
    let began = Instant::now();
    while state(world).1 <= seen {
        assert!(began.elapsed() < Duration::from_mins(1), "the job does not continue: {:?}", state(world));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_a_signal_stops_in_a_timed_run_is_resumed_by_the_next() {
    let make: [fn() -> Option<World>; 2] = [|| Some(block_on(on_sqlite(150))), || block_on(on_postgres(150))];
    for make in make {
        let (Some(world), Some(undisturbed)) = (make(), make()) else { continue };
        assert!(command(&undisturbed, &["canvas-links", "--apply"], "").status().expect("the binary").success());
        let slowly = ["canvas-links", "--apply", "--rate", "60/s"];
        let mut child = command(&world, &slowly, "1").spawn().expect("the binary");
        wait_beyond(&world, 0);
        child.kill().expect("killed");
        child.wait().expect("gone");
        let place = command(&world, &[], "").get_args().nth(1).expect("a database").to_owned();
        let run = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_mnemoscope"));
            command.arg("-d").arg(&place).args(["--format", "json", "jobs", "run"]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            command.spawn().expect("the binary")
        };
        let timed = run();
        wait_beyond(&world, state(&world).1);
        assert!(crate::support::signal(timed.id(), "TERM"));
        let stopped = timed.wait_with_output().expect("it ends");
        let told: Value = serde_json::from_slice(&stopped.stdout).expect("an answer");
        assert_eq!((stopped.status.code(), state(&world).0.as_str()), (Some(6), "queued"), "{told}");
        assert!(told["problems"].to_string().contains("still due"), "{told}");
        let next = run().wait_with_output().expect("it ends");
        assert_eq!((next.status.code(), state(&world).0.as_str()), (Some(0), "succeeded"));
        assert!(block_on(world.links()) == block_on(undisturbed.links()), "the result differs");
    }
}
