//! The console next to agents: what either side was told is done is there, however the console ends.
//!
//! A sample runs with every test. More by hand: `MNEMOSCOPE_SCENES=100 cargo test --test processes pty::beside`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::changing::unlocked_on;
use super::terminal::{Home, PROGRAM};
use crate::support::agent;

fn told(home: &Home, database: &Path, words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(PROGRAM);
    command.env_clear().envs(home.surroundings());
    let out = command.arg("-d").arg(database).args(words).output().unwrap();
    (out.status.code(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

/// Ways in which a console ends.
const ENDS: [&str; 3] = ["quit", "HUP", "KILL"];

fn scene(seed: u64) {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut pause = |most: u64| std::thread::sleep(Duration::from_millis(chance.random_range(0..=most)));
    let end = ENDS[(seed % 3) as usize];
    let home = Home::new();
    let episodes = std::env::var("MNEMOSCOPE_SCENE_EPISODES").ok().and_then(|text| text.parse().ok()).unwrap_or(250);
    let database = home.demo_of(episodes);
    let (_, listed) = told(&home, &database, &["list", "feedback", "--limit", "2"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let ids = [0, 1].map(|row| listed["rows"][row]["id"].as_str().unwrap().to_owned());
    // From here on nobody but the agents comes: whoever closes the database last takes the log away.
    let mut terminal = unlocked_on(&home);
    let mut rows = 0;
    let mut visit = |n: u32| {
        agent::leaves_rows(&database, n);
        rows += i64::from(n);
    };
    for (row, word) in ["Indeed.", "Twice."].into_iter().enumerate() {
        if row > 0 {
            terminal.press("j");
            terminal.shows("row 2 of");
        }
        // A person looks before editing; by then the first reads are over, and only locks that stay hold the log.
        terminal.settle();
        terminal.press("ce");
        terminal.shows(&format!("Edit feedback {}", ids[row]));
        terminal.press(&format!("\t\t {word}"));
        terminal.press("\x13");
        terminal.shows("A apply");
        terminal.press("A");
        terminal.shows(&format!("{}: done", ids[row]));
        pause(80);
        visit(5);
        pause(80);
    }
    visit(20);
    pause(40);
    match end {
        "quit" => {
            terminal.press("q");
            assert_eq!(terminal.ended_and_read(), 0, "scene {seed}");
        }
        signal => {
            terminal.signal(signal);
            terminal.gone();
        }
    }
    visit(1);
    let (code, verdict) = told(&home, &database, &["audit", "verify"]);
    assert_eq!(code, Some(0), "scene {seed}, ended by {end}: {verdict}");
    let (_, listed) = told(&home, &database, &["list", "feedback", "--format", "jsonl"]);
    for word in ["Indeed.", "Twice."] {
        assert!(listed.contains(word), "scene {seed}, ended by {end}: the edit {word:?} is lost");
    }
    assert_eq!(agent::rows(&database), rows, "scene {seed}, ended by {end}: rows of agents are lost");
    assert_eq!(agent::integrity(&database), "ok", "scene {seed}, ended by {end}");
}

#[test]
fn nothing_is_lost_beside_agents_however_the_console_ends() {
    let scenes = std::env::var("MNEMOSCOPE_SCENES").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let first = std::env::var("MNEMOSCOPE_SCENE").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for seed in first..first + scenes {
        scene(seed);
    }
}
