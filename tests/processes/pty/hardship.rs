//! Hardships of a terminal and of a connection: pastes of a megabyte, a server that goes away and comes back, tmux, terminals
//! with sixteen colours or none.

use std::io::Write as _;
use std::process::Command;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use url::Url;

use super::terminal::{Home, PROGRAM, Start, episodes, quit};
use crate::support::block_on;
use crate::support::fixtures::{Layout, build_postgres};
use crate::support::postgres::Database;

#[test]
fn a_megabyte_that_is_pasted_gives_no_commands_and_is_said_to_be_too_long() {
    let home = Home::new();
    home.demo();
    let terminal = episodes(Start::new(&home, &["demo.db"]));
    let paste = format!("\x1b[200~{}\x1b[201~", "q1d ".repeat(1 << 18));
    terminal.press(&paste);
    terminal.press("j");
    terminal.shows("row 2 of 250");
    terminal.press("/");
    terminal.shows("Filter");
    terminal.press(&paste);
    terminal.shows("what was pasted is too long: 1048576 bytes");
    terminal.press("outcome = failure\r");
    terminal.shows("episodes where outcome = 'failure'");
    quit(terminal);
}

/// Lets others connect to a database, or not; whoever is connected is thrown out.
fn admits(database: &Database, admits: bool) {
    let mut url = Url::parse(database.url()).expect("an address");
    let name = url.path().trim_start_matches('/').to_owned();
    url.set_path("postgres");
    block_on(async {
        let mut link = PgConnection::connect(url.as_str()).await.expect("the server");
        for sql in [
            format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS {admits}"),
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"),
        ] {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.expect("done");
        }
        link.close().await.expect("closed");
    });
}

#[test]
fn a_server_that_goes_away_is_told_of_and_the_list_is_there_again_when_it_comes_back() {
    let Some(database) = Database::fresh() else { return };
    let rows = block_on(build_postgres(Layout::Atom, database.url())).rows;
    let count = rows["episode"].len();
    let home = Home::new();
    let terminal = Start::new(&home, &[database.url()]).run();
    terminal.shows("newest episodes");
    terminal.press("2");
    terminal.shows(&format!("row 1 of {count}"));
    terminal.press("j");
    terminal.shows(&format!("row 2 of {count}"));
    admits(&database, false);
    terminal.press("r");
    // What is read next to the list may be told first.
    terminal.shows("could not be read");
    admits(&database, true);
    // The first one closes what was told and asks again, the second one reads the list.
    terminal.press("r");
    terminal.press("r");
    terminal.screen_is("the list again", |screen| {
        let contents = screen.contents();
        contents.contains(&format!("row 2 of {count}")) && !contents.contains("could not be read")
    });
    quit(terminal);
}

#[test]
fn a_lock_and_tables_that_others_change_are_told_with_what_helps() {
    let home = Home::new();
    let file = home.demo();
    let other = rusqlite::Connection::open(&file).expect("the database");
    other.execute_batch("PRAGMA journal_mode = DELETE").expect("one file");
    let terminal = episodes(Start::new(&home, &["demo.db"]));
    other.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
    terminal.press("r");
    terminal.shows("another process holds it locked");
    other.execute_batch("COMMIT").expect("no lock");
    terminal.screen_is("the list again on its own", |screen| {
        screen.contents().contains("row 1 of 250") && !screen.contents().contains("locked")
    });
    other
        .execute_batch("BEGIN EXCLUSIVE; ALTER TABLE episodes RENAME COLUMN title TO heading; COMMIT")
        .expect("changed");
    terminal.press("r");
    terminal.press("r");
    terminal.shows("its tables were changed since it was opened");
}

#[test]
fn tmux_shows_it_resizes_it_and_ends_with_it() {
    if Command::new("tmux").arg("-V").output().is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no tmux here");
        return;
    }
    let home = Home::new();
    home.demo();
    let arguments = ["-L", "console", "-f", "/dev/null", "new-session", PROGRAM, "demo.db"];
    let mut terminal =
        Start::new(&home, &arguments).program("tmux").with("TMUX_TMPDIR", home.path().display().to_string()).run();
    terminal.shows("newest episodes");
    terminal.press("2");
    terminal.shows("row 1 of 250");
    terminal.resize(80, 24);
    terminal.screen_is("the list in 80 columns", |screen| {
        let contents = screen.contents();
        contents.contains("of 250") && contents.lines().all(|line| line.chars().count() <= 80)
    });
    terminal.press("\x1b[B");
    terminal.shows("row 2 of 250");
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    assert!(String::from_utf8_lossy(&terminal.raw()).contains("[exited]"));
}

#[test]
fn a_terminal_of_sixteen_colours_gets_no_others() {
    let home = Home::new();
    home.demo();
    let start = Start::new(&home, &["demo.db"]).with("COLORTERM", "").with("TERM", "xterm");
    let terminal = episodes(start);
    let raw = terminal.raw();
    let raw = String::from_utf8_lossy(&raw);
    assert!(!raw.contains("38;2;") && !raw.contains("48;2;"), "true colours");
    let indexed = raw.split("38;5;").skip(1).filter_map(|rest| rest.split(['m', ';']).next()?.parse::<u16>().ok());
    let highest = indexed.max();
    assert!(highest.is_some_and(|highest| highest < 16), "{highest:?}");
    quit(terminal);
}

#[test]
fn a_dumb_terminal_gets_lines_without_sequences() {
    let home = Home::new();
    home.demo();
    let mut terminal = Start::new(&home, &["demo.db"]).with("COLORTERM", "").with("TERM", "dumb").run();
    terminal.shows("newest episodes");
    terminal.press("2");
    terminal.shows("selected: ");
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    let raw = terminal.raw();
    assert!(!raw.contains(&0x1b), "{}", String::from_utf8_lossy(&raw));
}
