//! Commands that are interrupted, as by Ctrl-C: they end at once, by the signal, and nothing is left half done.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use memchr::memmem;
use mnemoscope::memory::thousands;
use serde_json::Value;
use sqlx::{Connection as _, Row as _, SqliteConnection};
use tempfile::TempDir;

use crate::support::{agent, alone_in, block_on, changeable_demo_in, signal};

/// Time within which a command is to end.
const AT_ONCE: Duration = Duration::from_millis(100);
const SIGINT: i32 = 2;
/// Time between two looks at a command that is waited for.
const MOMENT: Duration = Duration::from_millis(2);
/// Other work may keep the machine from ending a process in time, but not each time.
const TRIES: usize = 12;

struct Desk {
    folder: TempDir,
    database: PathBuf,
}

impl Desk {
    fn new() -> Desk {
        Desk::of(2000)
    }

    fn of(episodes: u32) -> Desk {
        let folder = TempDir::new().unwrap();
        let database = changeable_demo_in(folder.path(), episodes);
        Desk { folder, database }
    }

    fn silent(&self) -> Command {
        let mut command = alone_in(self.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn begun(&self, words: &[&str]) -> Child {
        self.silent().args(words).spawn().unwrap()
    }

    /// A command on the database that is under way, with a folder of its own for scratch files.
    fn begun_with(&self, scratch: &Path, words: &[&str]) -> Child {
        self.silent().env("TMPDIR", scratch).args(self.on(words)).spawn().unwrap()
    }

    fn on(&self, words: &[&str]) -> Vec<String> {
        ["-d", self.database.to_str().unwrap()].iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    fn json(&self, words: &[&str]) -> Value {
        let words = self.on(&[words, &["--format", "json"]].concat());
        let output = alone_in(self.folder.path()).args(&words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Interrupts a command once it is under way; how it ended and how soon. None when it was done before that.
    fn interrupted(&self, words: &[&str], is_under_way: impl Fn(u32) -> bool) -> Option<(ExitStatus, Duration)> {
        let mut child = self.begun(words);
        while !is_under_way(child.id()) {
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            sleep(MOMENT);
        }
        let told = Instant::now();
        // It may be done already.
        let _ = signal(child.id(), "INT");
        let status = child.wait().unwrap();
        (!status.success()).then(|| (status, told.elapsed()))
    }

    /// Interrupts a command until it ends at once.
    fn ends_at_once(&self, words: &[&str], is_under_way: impl Fn(u32) -> bool) {
        let ends = (0..TRIES).filter_map(|_| self.interrupted(words, &is_under_way));
        let mut slowest = Vec::new();
        for (status, took) in ends {
            assert_eq!(status.signal(), Some(SIGINT), "{words:?}: {status:?}");
            if took < AT_ONCE {
                return;
            }
            slowest.push(took);
        }
        panic!("{words:?} took {slowest:?}");
    }

    /// Names that begin with a point, as those of files in the making do.
    fn remains(&self) -> Vec<String> {
        let names = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with('.')).collect()
    }
}

/// Whether a process has a file open.
fn has_open(process: u32, path: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    open.filter_map(|link| fs::read_link(link.path()).ok()).any(|file| file == path)
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_ends_at_once() {
    let desk = Desk::new();
    for words in [&["findings"][..], &["insights"], &["export", "episode", "segment"], &["purge", "ruth.fraser"]] {
        let words = desk.on(words);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        desk.ends_at_once(&words, |process| has_open(process, &desk.database));
    }
    assert_eq!(desk.json(&["audit", "verify"])["ok"], true);
}

#[cfg(target_os = "linux")]
#[test]
fn half_a_file_is_not_left_behind() {
    let desk = Desk::new();
    let demo = desk.folder.path().join("second.db");
    let words = ["demo", demo.to_str().unwrap(), "--episodes", "50000", "--no-console"];
    desk.ends_at_once(&words, |_| !desk.remains().is_empty());
    assert_eq!(desk.remains(), Vec::<String>::new());
    assert!(!demo.exists());
    // A terminal that is closed says so by another signal.
    let mut child = desk.begun(&words);
    while desk.remains().is_empty() && child.try_wait().unwrap().is_none() {
        sleep(MOMENT);
    }
    let _ = signal(child.id(), "HUP");
    child.wait().unwrap();
    assert_eq!(desk.remains(), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn a_change_is_done_or_not_begun() {
    let desk = Desk::new();
    let cases = || {
        let status = desk.json(&["status", "--sizes"]);
        let tables = status["tables"].as_array().unwrap().clone();
        tables.iter().find(|table| table["name"] == "agent_memory_cases").unwrap()["rows"].as_u64().unwrap()
    };
    let counts = desk.json(&["prune", "--window", "1"])["counts"].clone();
    let goes = counts["agent_memory_cases"]["delete"].as_u64().unwrap();
    let (before, words) = (cases(), desk.on(&["prune", "--window", "1", "--apply"]));
    assert!(goes > 0, "{counts}");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for wait in 0..6 {
        let begun = Instant::now();
        let under_way =
            |process| has_open(process, &desk.database) && begun.elapsed() >= Duration::from_millis(wait * 60);
        let ended = desk.interrupted(&words, under_way);
        let left = cases();
        assert!(left == before || left == before - goes, "{left} of {before} cases are left, {goes} were to go");
        assert_eq!(desk.json(&["audit", "verify"])["ok"], true);
        if ended.is_none() || left < before {
            break;
        }
    }
}

/// The scratch files that a process has open.
fn scratch_files(process: u32) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten().map(|link| link.path());
    let is_scratch = |link: &PathBuf| fs::read_link(link).is_ok_and(|file| file.to_string_lossy().contains(".scratch"));
    open.filter(is_scratch).collect()
}

/// A number that a statement gives.
fn number(database: &Path, sql: &'static str) -> i64 {
    block_on(async {
        let mut link = SqliteConnection::connect(&database.display().to_string()).await.expect("the file");
        sqlx::query(sql).fetch_one(&mut link).await.expect("a row").get(0)
    })
}

#[cfg(target_os = "linux")]
#[test]
fn cases_sorted_in_a_file_are_gone_with_a_killed_process_and_nobody_waits_for_them() {
    let desk = Desk::of(100);
    // More than fit in memory. Returned so that the statement is known to have been run.
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000) \
                INSERT INTO agent_memory_cases (id, profile_id, user_id, agent_id, created_at) \
                SELECT 'many-' || i, p.id, p.user_id, p.agent_id, '2025-01-01T00:00:00.000000Z' \
                FROM n, (SELECT * FROM agent_memory_profiles LIMIT 1) p RETURNING 1";
    assert_eq!(number(&desk.database, many), 1);
    let scratch = TempDir::new().unwrap();
    let mut pruning = desk.begun_with(scratch.path(), &["prune", "--window", "1", "--apply"]);
    while scratch_files(pruning.id()).is_empty() {
        assert!(pruning.try_wait().unwrap().is_none(), "it ended and had no scratch file");
        sleep(MOMENT);
    }
    let rewarded = desk.json(&["reward", "many-7", "0.9", "--apply"]);
    assert_eq!(rewarded["status"], "applied", "a second process writes meanwhile");
    pruning.kill().unwrap();
    pruning.wait().unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left in the folder");
    let cases = "SELECT count(*) FROM agent_memory_cases";
    let goes = "SELECT sum(n - 1) FROM (SELECT count(*) n FROM agent_memory_cases \
                GROUP BY coalesce(profile_id, user_id || char(0) || agent_id))";
    let (before, all) = (number(&desk.database, cases), number(&desk.database, goes));
    assert!(before > 120_000);
    let pruned = desk.json(&["prune", "--window", "1", "--apply"]);
    let gone = pruned["counts"]["agent_memory_cases"]["delete"].as_i64().unwrap();
    assert_eq!(number(&desk.database, cases), before - gone);
    let left = format!("{} more cases go by these rules", thousands(all - gone));
    assert!(pruned["disclosures"].to_string().contains(&left), "{left}: {}", pruned["disclosures"]);
    assert_eq!(desk.json(&["audit", "verify"])["ok"], true);
}

#[cfg(target_os = "linux")]
#[test]
fn what_an_erasure_keeps_in_a_file_cannot_be_read_and_a_killed_one_is_resumed() {
    let desk = Desk::of(100);
    // Keys that do not fit in memory.
    let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 16000) \
                INSERT INTO episodes (id, agent_id, user_id, started_at) \
                SELECT 'many-' || i || replace(hex(zeroblob(200)), '0', 'x'), 'agent', 'many-person', \
                '2025-01-01T00:00:00.000000Z' FROM n RETURNING 1";
    assert_eq!(number(&desk.database, many), 1);
    let scratch = TempDir::new().unwrap();
    let mut erasing = desk.begun_with(scratch.path(), &["purge", "many-person", "--apply"]);
    let kept = loop {
        let files = scratch_files(erasing.id());
        let kept = files.iter().filter_map(|file| fs::read(file).ok()).find(|bytes| !bytes.is_empty());
        if let Some(kept) = kept {
            break kept;
        }
        assert!(erasing.try_wait().unwrap().is_none(), "it ended and had no scratch file");
        sleep(MOMENT);
    };
    for readable in ["xxxxxxxx", "many-"] {
        assert_eq!(memmem::find(&kept, readable.as_bytes()), None, "it can be read");
    }
    agent::leaves_rows(&desk.database, 3);
    erasing.kill().unwrap();
    erasing.wait().unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing is left in the folder");
    let erased = desk.json(&["purge", "many-person", "--resume", "--apply"]);
    assert!(erased["status"].as_str().unwrap().starts_with("verified"), "{erased}");
    assert_eq!(number(&desk.database, "SELECT count(*) FROM episodes WHERE id LIKE 'many-%'"), 0);
    assert_eq!(agent::rows(&desk.database), 3);
    assert_eq!(desk.json(&["audit", "verify"])["ok"], true);
}
