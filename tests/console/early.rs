//! Keys and rows keep their order: a command never means a row that was not there when it was begun.

use mnemoscope::change::operation::Operation;
use mnemoscope::console::core::{Effect, Message, Reply, Request, RequestFailure};
use mnemoscope::console::overlays::unlock::WriteState;
use mnemoscope::memory::{Entity, UnreadRows};

use super::changes::{planned, unlock};
use super::fake::{Console, asked, many};

/// An unlocked console that is about to list 300 episodes.
fn unlocked() -> Console {
    let mut database = many(300);
    database.rows.insert(Entity::UtilityEvent, Vec::new());
    let mut console = Console::new(database, 160, 50);
    unlock(&mut console);
    console
}

/// Adds episodes as another writer does, until there are so many.
fn others_write(console: &mut Console, total: usize) {
    let rows = many(total).rows.remove(&Entity::Episode).expect("episodes");
    console.database.rows.insert(Entity::Episode, rows);
}

#[track_caller]
fn signalled(console: &mut Console) -> String {
    match planned(console).1 {
        Operation::Signal { episode, .. } => episode,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys_wait_for_the_rows_that_they_mean() {
    let mut console = unlocked();
    console.holding = true;
    console.press("2 j*3 t c");
    console.shows("reading; then j j j t c");
    console.holding = false;
    console.answer();
    assert_eq!(signalled(&mut console), "ep-000296");
    console.hides("reading; then");
}

#[test]
fn keys_wait_for_a_jump_to_the_other_end() {
    let mut console = unlocked();
    console.press("2");
    console.holding = true;
    console.press("G k t c");
    console.holding = false;
    console.answer();
    assert_eq!(signalled(&mut console), "ep-000001");
}

#[test]
fn keys_that_wait_do_not_come_along_to_another_place() {
    let mut console = unlocked();
    console.holding = true;
    console.press("2 j*3 t c 1");
    console.holding = false;
    console.answer();
    console.press("2");
    assert_eq!(console.id(), "ep-000299");
    assert!(console.asked.iter().all(|effect| !format!("{effect:?}").contains("Signal")), "{:?}", console.asked);
}

#[test]
fn what_others_write_waits_while_a_command_is_chosen() {
    for keys in ["t", ": 'confirmed'"] {
        let mut console = unlocked();
        console.press("2 space");
        console.press(keys);
        others_write(&mut console, 310);
        console.beat();
        console.press(if keys == "t" { "c" } else { "enter" });
        assert_eq!(signalled(&mut console), "ep-000299", "{keys}");
        assert_eq!(console.id(), "ep-000309", "then the list follows");
    }
}

#[test]
fn a_move_away_from_the_newest_row_is_not_taken_back() {
    let mut console = unlocked();
    console.press("2 space");
    others_write(&mut console, 310);
    console.holding = true;
    console.beat();
    console.press("j");
    console.holding = false;
    console.answer();
    assert_eq!(console.id(), "ep-000298");
}

#[test]
fn unlocking_goes_on_with_a_command_for_the_same_row_only() {
    let mut database = many(300);
    database.rows.insert(Entity::UtilityEvent, Vec::new());
    let mut console = Console::new(database, 160, 50);
    console.press("2 space t c");
    console.shows("continues with it");
    others_write(&mut console, 310);
    console.beat();
    assert_eq!(console.id(), "ep-000309");
    console.press("U");
    let (ticket, _) = asked(&mut console, |request| matches!(request, Request::CheckWritable));
    let writable = WriteState { audited: true, ..WriteState::default() };
    console.reply(ticket, Reply::Writable(Ok(writable)));
    console.wait();
    console.press("A");
    assert!(console.model.context.changing.unlocked);
    let plans = |effect: &Effect| matches!(effect, Effect::Ask(_, Request::Plan(_)));
    assert!(!console.asked.iter().any(plans), "{:?}", console.asked);
}

#[test]
fn a_database_that_cannot_be_read_is_not_called_live() {
    for keys in ["2 space", "space"] {
        let mut console = Console::new(many(300), 160, 50);
        console.press(keys);
        console.shows("● live");
        let watched = console.watched.last().expect("the list is watched").0;
        console.reply(watched, Reply::Unread("made-up.db no longer exists".to_owned()));
        console.hides("● live");
        console.shows("cannot be read: r");
        console.beat();
        console.shows("● live");
        console.hides("cannot be read");
    }
}

#[test]
fn a_card_is_taken_away_when_the_database_is_back() {
    for keys in ["2", "I", "R", "1"] {
        let mut console = Console::new(many(300), 160, 50);
        console.failure =
            Some(RequestFailure::new("It could not be read", "made-up.db no longer exists", "put it back"));
        console.press(keys);
        let watched = console.watched.last().expect("the place is watched").0;
        console.reply(watched, Reply::Unread("made-up.db no longer exists".to_owned()));
        console.failure = None;
        console.beat();
        console.hides("no longer exists");
    }
}

#[test]
fn the_last_row_is_selected_once_the_lock_that_hid_it_ends() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2");
    let locked = RequestFailure::new("The list could not be read", "database is locked", "wait");
    console.failure = Some(RequestFailure { passes: true, ..locked });
    console.press("G");
    console.failure = None;
    console.beat();
    assert_eq!(console.id(), "ep-000000");
}

#[test]
fn what_can_be_read_of_a_damaged_database_is_shown_and_cannot_be_changed() {
    let mut console = unlocked();
    console.press("2");
    console.tell(Message::Damaged(None));
    console.shows("is being copied");
    let mut opened = console.model.context.opened.clone();
    let lost = |table: &str, rows| UnreadRows { table: table.to_owned(), rows };
    opened.unread = Some(vec![lost("episodes", Some(37))]);
    opened.blocked = Some("read from a copy".to_owned());
    console.database.rows.get_mut(&Entity::Episode).expect("episodes").retain(|row| row.id() != "ep-000298");
    console.tell(Message::Damaged(Some(Box::new(opened))));
    console.draw();
    console.shows("37 rows of episodes cannot be read");
    console.shows("damaged: private copy");
    console.shows("read-only");
    console.hides("Task number 298");
    console.wait();
    console.press("1");
    console.shows("37 rows of episodes cannot be read");
    // Of many tables the first screen names a few, so that it shows what else waits.
    let mut opened = console.model.context.opened.clone();
    opened.unread = Some((0..18).map(|table| lost(&format!("table_{table}"), Some(100 - table))).collect());
    console.tell(Message::Damaged(Some(Box::new(opened))));
    console.draw();
    console.shows("100 rows of table_0 cannot be read");
    console.shows("98 rows of table_2 cannot be read");
    console.hides("table_3");
    console.shows("15  more damaged tables");
    console.shows("`status` lists all");
}
