//! Support for several test files: databases to try things on.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod agent;
pub mod fixtures;
pub mod pooler;
pub mod postgres;
pub mod world;

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use mnemoscope::store::OpenOptions;

/// The program under test.
pub fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_mnemoscope"))
}

/// Sends a signal by its name, such as `INT`, to a process. Whether it was there. Every shell has `kill`, and not every system
/// a program of that name.
pub fn signal(process: u32, name: &str) -> bool {
    let told = Command::new("sh").args(["-c", &format!("kill -{name} {process}")]).stderr(Stdio::null()).status();
    told.expect("a shell").success()
}

/// The program with nothing in its surroundings but a folder, which it keeps all in, and someone who works there.
pub fn alone_in(folder: &Path) -> Command {
    let mut command = Command::new(program());
    command
        .env_clear()
        .env("HOME", folder)
        .env("MNEMOSCOPE_STATE", folder.join("state"))
        .env("MNEMOSCOPE_ACTOR", "tester")
        .stdin(Stdio::null());
    command
}

/// Files that were made once, by what they hold, with their rights.
static MADE: Mutex<BTreeMap<String, (Vec<u8>, Permissions)>> = Mutex::new(BTreeMap::new());

/// Writes a copy of a file that was made before. Whether there is one.
pub fn made_before(what: &str, path: &Path) -> bool {
    let made = MADE.lock().expect("nobody panics here");
    let Some((bytes, rights)) = made.get(what) else { return false };
    std::fs::write(path, bytes).expect("a file");
    std::fs::set_permissions(path, rights.clone()).expect("its rights");
    true
}

/// Keeps a closed database for those that want the same.
pub fn keep_made(what: &str, path: &Path) {
    let bytes = std::fs::read(path).expect("a file");
    let rights = std::fs::metadata(path).expect("a file").permissions();
    MADE.lock().expect("nobody panics here").insert(what.to_owned(), (bytes, rights));
}

/// Makes a demo database in a folder, which ends at the same moment at any time.
pub fn demo_in(folder: &Path, episodes: u32) -> PathBuf {
    let database = folder.join("demo.db");
    let count = episodes.to_string();
    let what = format!("a demo of {count}");
    if made_before(&what, &database) {
        return database;
    }
    let words = ["--episodes", &count, "--no-console", "--at", "2026-06-15T16:00:00Z"];
    let output = alone_in(folder).arg("demo").arg(&database).args(words).output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    keep_made(&what, &database);
    database
}

/// The same with an audit trail, so that it can be changed.
pub fn changeable_demo_in(folder: &Path, episodes: u32) -> PathBuf {
    let database = demo_in(folder, episodes);
    let output = alone_in(folder).arg("-d").arg(&database).args(["migrate", "--apply"]).output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    database
}

/// Returns the options with which tests open a database: raw bytes are read by the program, which the test itself is
/// not.
pub fn options() -> OpenOptions {
    OpenOptions { program: Some(program()), ..OpenOptions::default() }
}

/// Runs a future to its end on this thread: it is not asked to be `Send`, which would take the compiler a minute to prove of
/// all tests.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// The words of a command next to what it printed.
pub fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Everything that a command said, on both channels.
pub fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), words(output))
}

/// Runs SQL in a file, which is closed then.
pub fn statement(path: &Path, sql: &str) {
    use sqlx::Connection as _;
    block_on(async {
        let mut link = sqlx::SqliteConnection::connect(&path.display().to_string()).await.expect("the file");
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut link).await.expect(sql);
        link.close().await.expect("closed");
    });
}

/// The same from within a future, on a thread of its own.
pub fn block_on_aside<F>(future: F) -> F::Output
where
    F: Future + Send,
    F::Output: Send,
{
    std::thread::scope(|scope| scope.spawn(|| block_on(future)).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
