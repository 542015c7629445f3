//! Changes made in a terminal, on a real database: a feedback row is edited and the edit taken back; pastes and held
//! keys change nothing.

use std::path::Path;
use std::process::Command;

use super::terminal::{Home, PROGRAM, Start, Terminal};

/// The first feedback of the list, as the command line tells it.
fn newest_feedback(home: &Home, database: &Path) -> serde_json::Value {
    newest(home, database, "feedback")
}

/// The first row of a list.
fn newest(home: &Home, database: &Path, entity: &str) -> serde_json::Value {
    let mut command = Command::new(PROGRAM);
    command.env_clear().envs(home.surroundings());
    let out = command.arg("-d").arg(database).args(["list", entity, "--limit", "1"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    listed["rows"][0].clone()
}

/// The console on a demo database at its list of feedback, unlocked; the audit trail was added on the way.
pub fn unlocked(home: &Home) -> Terminal {
    home.demo();
    unlocked_on(home)
}

/// As [`unlocked`], on the demo database that is there.
pub fn unlocked_on(home: &Home) -> Terminal {
    let terminal = Start::new(home, &["demo.db"]).run();
    terminal.shows("newest episodes");
    terminal.press("U");
    terminal.shows("CREATE TABLE");
    terminal.shows("A apply and unlock");
    terminal.press("A");
    terminal.shows("✎ unlocked");
    terminal.press("5");
    terminal.shows("row 1 of");
    terminal
}

#[test]
fn a_feedback_row_is_edited_and_the_edit_is_taken_back() {
    let home = Home::new();
    let terminal = unlocked(&home);
    let database = home.path().join("demo.db");
    let before = newest_feedback(&home, &database);
    let id = before["id"].as_str().unwrap();
    terminal.press("ce");
    terminal.shows(&format!("Edit feedback {id}"));
    terminal.press("\t\t");
    // The correction as it is, and a word more.
    terminal.press(" Indeed.");
    terminal.press("\x13");
    terminal.shows("A apply");
    terminal.press("A");
    // Not the word of the dialog: it can be undone.
    terminal.shows(": done");
    let edited = newest_feedback(&home, &database);
    let correction = edited["correction"].as_str().unwrap();
    assert!(correction.ends_with(" Indeed."), "{correction}");
    terminal.press("Z");
    terminal.shows("Undo change 2");
    terminal.shows("A apply");
    terminal.press("A");
    terminal.shows("Undo change 2: done");
    assert_eq!(newest_feedback(&home, &database), before);
    terminal.press("R");
    terminal.shows("undo of 2");
    terminal.press("q");
}

/// The console where the newest feedback is about to be removed, while another process writes.
fn removing(home: &Home) -> (Terminal, rusqlite::Connection) {
    let terminal = unlocked(home);
    terminal.press("cd");
    terminal.shows("A apply");
    let other = rusqlite::Connection::open(home.path().join("demo.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    terminal.press("A");
    terminal.shows("applying");
    (terminal, other)
}

#[test]
fn whoever_ends_the_console_during_a_change_is_told_what_became_of_it() {
    let home = Home::new();
    let (mut terminal, other) = removing(&home);
    terminal.press("\x03");
    terminal.settle();
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(terminal.ended_and_read(), 0);
    terminal.is_given_back();
    assert!(terminal.contents().contains(": done"), "{}", terminal.contents());

    let home = Home::new();
    let (mut terminal, _other) = removing(&home);
    terminal.signal("TERM");
    assert_eq!(terminal.ended_and_read(), 143);
    terminal.is_given_back();
    let told = String::from_utf8_lossy(&terminal.raw()).into_owned();
    assert!(told.contains(": not done: it was still under way when the console ended"), "{told}");
}

#[test]
fn of_marked_rows_those_that_are_already_so_are_not_counted() {
    let home = Home::new();
    let database = home.demo();
    let first = newest(&home, &database, "case")["id"].as_str().unwrap().to_owned();
    let other = rusqlite::Connection::open(&database).unwrap();
    let set = "UPDATE agent_memory_cases SET outcome = iif(id = $1, 'success', 'failure')";
    other.execute(set, [&first]).unwrap();
    drop(other);
    let terminal = unlocked_on(&home);
    terminal.press("4");
    terminal.shows("row 1 of");
    terminal.press("vvv");
    terminal.shows("3 marked");
    // The row under the cursor is read before it is edited.
    terminal.settle();
    terminal.press("ce");
    terminal.shows("Edit 3 marked cases");
    terminal.shows("▌profile id");
    for column in ["user id", "agent id", "prompt", "plan", "traces", "outcome"] {
        terminal.press("\t");
        terminal.shows(&format!("▌{column}"));
    }
    terminal.press("success\x13");
    terminal.shows("these are 2 changes");
    terminal.shows("1 more already has the value and stays unchanged");
    terminal.shows("A apply");
    terminal.press("A");
    terminal.shows("2 of 2 changes made");
    terminal.press("q");
}

#[test]
fn a_paste_and_a_key_too_early_confirm_nothing() {
    let home = Home::new();
    let terminal = unlocked(&home);
    let database = home.path().join("demo.db");
    let before = newest_feedback(&home, &database);
    // Typed in one go: the key that confirms comes with the one that opens, and again and again while that repeats.
    terminal.press("cdAAAA");
    terminal.shows("Remove feedback");
    terminal.shows("A apply");
    terminal.press("\x1b[200~AAAA\r\x1b[201~");
    terminal.shows("confirmations must be typed, not pasted");
    terminal.press("\r");
    terminal.shows("nothing was changed");
    terminal.press("\x1b[200~cdA\x1b[201~");
    // Enter, again and again, confirms nothing either.
    terminal.press("cd\r\r\r");
    terminal.shows("nothing was changed");
    assert_eq!(newest_feedback(&home, &database), before);
}

/// A terminal that says when keys are released: a key that comes again without that is held down.
#[test]
fn a_held_key_changes_nothing() {
    let home = Home::new();
    let terminal = unlocked(&home);
    let database = home.path().join("demo.db");
    let before = newest_feedback(&home, &database);
    // `j` is released once, which tells the program what the terminal can do.
    terminal.press("j\x1b[106;1:3u");
    terminal.shows("row 2 of");
    terminal.press("k\x1b[107;1:3u");
    terminal.shows("row 1 of");
    // There a plan can be confirmed at once, though not by a key that was held down before.
    terminal.press("c\x1b[99;1:3udd\x1b[100;1:3u");
    terminal.shows("A apply");
    terminal.press("\x1b[97;2:2u\x1b[97;2:2u");
    terminal.press("yc\x1b[99;1:3u");
    terminal.shows("command sent");
    terminal.shows("A apply");
    assert_eq!(newest_feedback(&home, &database), before);
    terminal.press("A\x1b[97;2:3u");
    terminal.shows("Z undo");
    assert_ne!(newest_feedback(&home, &database), before);
}
