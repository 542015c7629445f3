//! Every command of the README and of the book works: each page is followed as a person would, in a terminal, from its first
//! block to its last, in a folder of its own.
//!
//! Blocks of `sh` are run by bash, which stops at the first command that fails, also in a pipe. A block whose first line is
//! `# NAME.toml` is a file that the commands use. What a page takes from its reader is in `surroundings` and `PLACES`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use tempfile::TempDir;

use crate::pty::terminal::{Home, PROGRAM, Start};
use crate::support::fixtures::{Layout, build_sqlite};
use crate::support::postgres::Database;
use crate::support::{alone_in, block_on, demo_in};

/// Programs that build, measure, or change the machine. Their lines are left out.
const ELSEWHERE: &[&str] = &["cargo", "python3", "systemctl", "systemd-sysusers"];

/// Texts of the pages, and what stands for them here.
const PLACES: &[(&str, &str)] =
    &[("/var/lib/node_exporter/", ""), ("/tmp/", ""), ("--episodes 100000", "--episodes 300"), (SERVER, "$SERVER")];
const SERVER: &str = "postgres://reader@db.example/memory";
/// Bytes of what was said last that a failure shows.
const TOLD: usize = 1500;
/// The profile of the pages, of a database on a server.
const PROFILE: &str = "support";

const BOT: &str = "CREATE TABLE ticket_memory (ticket_id TEXT PRIMARY KEY, ticket_text TEXT, bot TEXT, customer TEXT, \
     opened TEXT, state TEXT); \
     INSERT INTO ticket_memory VALUES ('t1', 'Late load of Alder', 'desk', 'ann', '2026-02-04T10:00:00Z', 'solved'), \
     ('t2', 'Wrong invoice for May', 'desk', 'bo', '2026-02-05T10:00:00Z', 'dropped')";
const TRAJECTORIES: &str = r#"[{"task_id": 0, "trial": 0, "reward": 1.0, "traj": [{"role": "user", "content": "Book a flight."}],
    "info": {"task": {"user_id": "ann", "instruction": "Book it."}}}]"#;

/// The fenced blocks of a page in a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

/// The script of a page, and the files that it names.
fn script<'a>(page: &'a str) -> (String, Vec<(&'a str, &'a str)>) {
    let mut script = blocks(page, "sh").join("\n");
    for (said, here) in PLACES {
        script = script.replace(said, here);
    }
    let named = |block: &'a str| {
        let name = block.strip_prefix("# ")?.lines().next()?;
        Path::new(name).extension().is_some_and(|extension| extension == "toml").then_some((name, block))
    };
    let files = blocks(page, "toml").into_iter().filter_map(named);
    (script, files.collect())
}

/// Makes what a page takes from its reader: databases, files, programs.
fn surroundings(home: &Home, script: &str, demo: &Path) {
    let folder = home.path();
    if !script.contains("demo demo.db") {
        fs::copy(demo, folder.join("demo.db")).expect("a copy");
    }
    block_on(build_sqlite(Layout::Atom, &folder.join("agent.db")));
    Connection::open(folder.join("bot.db")).and_then(|bot| bot.execute_batch(BOT)).expect("a database");
    fs::write(folder.join("trajectories.json"), TRAJECTORIES).expect("a file");
    let programs = folder.join("bin");
    fs::create_dir(&programs).expect("a folder");
    symlink(PROGRAM, programs.join("mnemoscope")).expect("a link");
    for program in ELSEWHERE {
        let program = programs.join(program);
        fs::write(&program, "#!/bin/sh\n").expect("a file");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
    }
}

/// Makes the database on a server, and its profile. None where tests do without a server.
fn server(folder: &Path) -> Option<Database> {
    let database = Database::fresh()?;
    let made = alone_in(folder).args(["-d", database.url(), "--layout", "mnemoscope", "migrate", "--apply"]).output();
    assert!(made.is_ok_and(|made| made.status.success()), "the tables of the server");
    let profile = format!("[profile.{PROFILE}]\ndatabase = \"{}\"\n", database.url());
    fs::write(folder.join("config.toml"), profile).expect("a file");
    Some(database)
}

/// Runs the commands of a page, where it takes the demo from; what was said when one of them fails.
fn follow(page: &str, demo: &Path) -> Result<(), String> {
    let (script, files) = script(page);
    if script.is_empty() {
        return Ok(());
    }
    let home = Home::new();
    surroundings(&home, &script, demo);
    let asks_a_server = script.contains("$SERVER") || script.contains(&format!(" {PROFILE} "));
    let database = if asks_a_server { server(home.path()) } else { None };
    if asks_a_server && database.is_none() {
        return Ok(());
    }
    for (name, text) in files {
        fs::write(home.path().join(name), text).expect("a file");
    }
    fs::write(home.path().join("page.sh"), script).expect("a file");
    let path = format!("{}:{}", home.path().join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let shell = Start::new(&home, &["-eux", "-o", "pipefail", "page.sh"]).program("bash").with("PATH", path);
    let server = database.as_ref().map_or("", |database| database.url());
    let mut terminal = shell.with("SERVER", server).run();
    match terminal.ended_without_consoles() {
        0 => Ok(()),
        code => {
            let told = terminal.raw();
            Err(format!(
                "exit code {code}, after\n{}",
                String::from_utf8_lossy(&told[told.len().saturating_sub(TOLD)..])
            ))
        }
    }
}

#[test]
fn every_command_of_the_book_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let book = fs::read_dir(root.join("docs")).expect("the book").map(|page| page.expect("a page").path());
    let pages = book.filter(|page| page.extension().is_some_and(|e| e == "md")).chain([root.join("README.md")]);
    let folder = TempDir::new().expect("a folder");
    let demo = demo_in(folder.path(), 250);
    let failed = std::thread::scope(|scope| {
        let follow = |page: &Path| follow(&fs::read_to_string(page).expect("a page"), &demo);
        let run = |page: PathBuf| {
            // What is skipped is identified by the name of its thread.
            let named = std::thread::Builder::new().name(page.display().to_string());
            named.spawn_scoped(scope, move || (follow(&page), page)).expect("a thread")
        };
        let running: Vec<_> = pages.map(run).collect();
        let ended = running.into_iter().map(|page| page.join().expect("a page's end"));
        ended.filter_map(|(end, page)| Some(format!("{}: {}", page.display(), end.err()?))).collect::<Vec<_>>()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
