//! A campaign of random histories next to other processes: agents that write, checkpoint, vacuum and switch the journal
//! mode, our commands, our console in a terminal, and kills at any point of any of them, on both engines. After each
//! history nothing that was acknowledged may be lost and nothing else be there.
//!
//! A history follows from its seed (how long each process takes does not). A sample runs with every test: the seeds that
//! once found a fault (`seeds.txt`), then others in order until the time is up. By hand:
//! `MNEMOSCOPE_FIRE_SEED=1000 MNEMOSCOPE_FIRE_HISTORIES=500 cargo test --test processes fire -- --nocapture`; one that failed again:
//! `MNEMOSCOPE_FIRE_SEED=1234 cargo test --test processes fire::on_sqlite`. `MNEMOSCOPE_FIRE_SECONDS` sets another time.

mod agent;
mod checks;
mod console;
mod history;
mod model;
mod place;
mod program;
mod run;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use checks::{References, Start, check};
use history::{Engine, History};
use place::Bases;
use run::Run;

/// Duration of a sample, in seconds, and the minimum number of histories in it, however slow the machine.
const SECONDS: u64 = 12;
const LEAST: u64 = 6;

/// Seeds that found a fault once, an engine and a seed a line.
const FOUND: &str = include_str!("fire/seeds.txt");

/// Results of a campaign.
#[derive(Default)]
struct Tally {
    histories: u32,
    acknowledged: u32,
    kills: u32,
    refused: BTreeMap<String, u32>,
    /// Failed histories, by seed.
    failed: Vec<(u64, Vec<String>)>,
}

#[test]
fn on_sqlite_nothing_acknowledged_is_lost_and_nothing_else_is_there() {
    campaign(Engine::Sqlite);
}

#[test]
fn on_postgres_nothing_acknowledged_is_lost_and_nothing_else_is_there() {
    campaign(Engine::Postgres);
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The seeds to play, and after what time no further one begins.
fn seeds(engine: Engine) -> (Box<dyn Iterator<Item = (u64, bool)>>, Duration) {
    let asked = setting("MNEMOSCOPE_FIRE_SEED");
    let count = setting("MNEMOSCOPE_FIRE_HISTORIES");
    let seconds = setting("MNEMOSCOPE_FIRE_SECONDS");
    if let (None, None) = (asked, count) {
        let found = FOUND.lines().filter_map(move |line| {
            let (name, seed) = line.split('#').next()?.trim().split_once(' ')?;
            let here = name == format!("{engine:?}").to_lowercase();
            here.then(|| (seed.trim().parse().expect("a seed"), true))
        });
        let others = (1..).map(|seed| (seed, seed <= LEAST));
        return (Box::new(found.chain(others)), Duration::from_secs(seconds.unwrap_or(SECONDS)));
    }
    let first = asked.unwrap_or(1);
    let count = count.unwrap_or(1);
    let long = seconds.map_or(Duration::MAX, Duration::from_secs);
    (Box::new((first..first + count).map(|seed| (seed, false))), long)
}

fn campaign(engine: Engine) {
    let Some(bases) = Bases::new(engine) else { return };
    let (seeds, longest) = seeds(engine);
    let began = Instant::now();
    let mut references = References::new();
    let mut tally = Tally::default();
    for (seed, always) in seeds {
        if began.elapsed() > longest && !always {
            break;
        }
        let history = History::of(engine, seed);
        let played = catch_unwind(AssertUnwindSafe(|| play(&bases, &mut references, &history, &mut tally)));
        let wrong = played.unwrap_or_else(|panic| vec![words_of(&*panic)]);
        tally.histories += 1;
        if !wrong.is_empty() {
            tally.failed.push((seed, wrong));
        }
    }
    let Tally { histories, acknowledged, kills, refused, failed } = tally;
    // Not `eprintln!`: the harness would swallow what a campaign came to.
    let _ = writeln!(
        std::io::stderr(),
        "fire on {engine:?}: {histories} histories in {:.0} s, {acknowledged} acknowledged changes, {kills} kills, \
         refused {refused:?}, failed {:?}",
        began.elapsed().as_secs_f64(),
        failed.iter().map(|(seed, _)| seed).collect::<Vec<_>>()
    );
    let engine = format!("{engine:?}").to_lowercase();
    let again = |seed: &u64| format!("MNEMOSCOPE_FIRE_SEED={seed} cargo test --test processes fire::on_{engine}");
    let told = failed.iter().map(|(seed, wrong)| format!("seed {seed} ({}):\n{}\n", again(seed), wrong.join("\n")));
    assert!(failed.is_empty(), "{}", told.collect::<String>());
}

/// Plays one history and gives what is wrong after it, with what happened.
fn play(bases: &Bases, references: &mut References, history: &History, tally: &mut Tally) -> Vec<String> {
    let place = bases.place(history.migrated, history.journal);
    let start = Start::of(&place);
    let mut run = Run::new(&place, history, &start.dump);
    let mut wrong = match catch_unwind(AssertUnwindSafe(|| run.play(history))) {
        Ok(()) => check(bases, references, history, &place, &start, &run),
        // What stopped it may have its reason in the database.
        Err(panic) => {
            run.abandon();
            [vec![words_of(&*panic)], check(bases, references, history, &place, &start, &run)].concat()
        }
    };
    wrong.append(&mut run.faults);
    tally.acknowledged += run.model.acknowledged;
    tally.kills += run.kills;
    for (what, times) in &run.refused {
        *tally.refused.entry(what.clone()).or_default() += times;
    }
    if !wrong.is_empty() {
        wrong.push(format!("{:?}, journal {:?}, migrated {}:", history.kind, history.journal, history.migrated));
        wrong.append(&mut run.story);
    }
    wrong
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
