//! A person is erased in a terminal while someone else reads, and that is resumed in another console.

use sqlx::{Connection as _, SqliteConnection};

use super::changing::unlocked;
use super::terminal::{Home, Start, Terminal};

const PERSON: &str = "lucia.moreau";

/// From the first step over the last question to the end.
fn erase(terminal: &Terminal) {
    terminal.press("lllll");
    terminal.shows("is it allowed");
    terminal.press("\r");
    terminal.shows(&format!("type {PERSON}"));
    terminal.press(PERSON);
    terminal.press("\r");
    terminal.shows("looked for afterwards");
}

#[test]
fn an_erasure_that_a_reader_keeps_from_its_end_is_gone_on_with_in_another_console() {
    let home = Home::new();
    let mut terminal = unlocked(&home);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let file = sqlx::sqlite::SqliteConnectOptions::new().filename(home.path().join("demo.db"));
    let mut reader = runtime.block_on(SqliteConnection::connect_with(&file)).unwrap();
    let reads = "BEGIN; SELECT count(*) FROM episodes";
    runtime.block_on(sqlx::raw_sql(reads).execute(&mut reader)).unwrap();
    terminal.press("1");
    terminal.shows("newest episodes");
    terminal.press("cp");
    terminal.shows("Erase whom");
    terminal.press(PERSON);
    terminal.press("\r");
    terminal.shows("known as");
    erase(&terminal);
    terminal.shows("why it is incomplete");
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    runtime.block_on(reader.close()).unwrap();

    let mut terminal = Start::new(&home, &["demo.db"]).run();
    terminal.shows(&format!("the erasure of {PERSON}"));
    terminal.press("\r");
    terminal.shows("an earlier run is unfinished");
    terminal.press("U");
    terminal.shows("A unlock");
    terminal.press("A");
    terminal.shows("✎ unlocked");
    erase(&terminal);
    terminal.shows("verified");
    terminal.press("1");
    terminal.shows("newest episodes");
    assert!(!terminal.contents().contains("the erasure of"), "{}", terminal.contents());
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
}
