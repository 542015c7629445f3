//! Two rows compared, the database as it was, and words found everywhere.

use mnemoscope::change::plan::past::{AsOf, Moment};
use mnemoscope::console::core::{Effect, Reply, Request, RequestFailure, Ticket};
use mnemoscope::console::screens::find::messages::FoundRows;
use mnemoscope::memory::Entity;
use mnemoscope::memory::search::Search;
use mnemoscope::ui::{Glyphs, Look, Theme};
use serde_json::json;

use super::fake::{Console, oldest_asked, world};
use super::looks::picture;

fn copied(console: &mut Console) -> String {
    console.press("y c");
    let command = console.asked.iter().rev().find_map(|effect| match effect {
        Effect::Copy(_, text) => Some(text.clone()),
        _ => None,
    });
    command.expect("a command")
}

#[test]
fn two_marked_rows_are_compared_word_by_word() {
    for (width, height) in [(200, 50), (100, 30), (60, 20)] {
        let mut console = Console::new(world(), width, height);
        console.press("2 v v =");
        console.shows("differ");
        // The earlier one comes first, whatever was marked first.
        console.shows("Reconcile Book");
        console.hides("[-");
        let mono = picture(&console.draw_with(&Look::new(Theme::mono(), Glyphs::unicode())));
        assert!(mono.contains("[-Reconcile-]") && mono.contains("{+missing+}"), "{mono}");
        assert_eq!(copied(&mut console), "mnemoscope -d memory/made-up.db compare episode ep-1 ep-2");
        console.press("~");
        let ascii = picture(&console.draw_with(&Look::new(Theme::dark(), Glyphs::ascii())));
        assert!(ascii.contains("{+Reconcile+}"), "{ascii}");
        console.press("G");
        console.shows("the same");
        console.press("esc");
        console.shows("marked");
    }
}

#[test]
fn an_episode_is_compared_with_the_one_that_it_follows_and_chains_are_shown() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 =");
    console.shows("what depends on them");
    console.shows("segments");
    console.shows("chains");
    console.press("esc j =");
    console.shows("mark two rows with v");
    console.press("v k =");
    console.shows("what depends on them");
    console.press("enter enter");
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-1".to_owned())));
}

#[test]
fn a_row_that_is_gone_is_told() {
    let mut console = Console::new(world(), 100, 30);
    console.press("2 v v");
    console.database.rows.get_mut(&Entity::Episode).expect("episodes").remove(0);
    console.press("=");
    console.shows("There is no episode ep-1");
}

fn past(console: &mut Console) -> Ticket {
    let (ticket, request) = oldest_asked(console, |request| matches!(request, Request::LookBack(_)));
    let at = "2026-01-28T11:00:00.000000Z".to_owned();
    assert_eq!(request, Request::LookBack(Some(Moment::Time(at.clone()))));
    let as_of =
        AsOf { at, seq: Some(3), taken_back: 2, unknown: vec!["what agents changed leaves no trace".to_owned()] };
    console.reply(ticket, Reply::LookedBack(Ok(Some(Box::new(as_of)))));
    ticket
}

#[test]
fn the_past_is_looked_at_and_cannot_be_changed() {
    let mut console = super::changes::unlocked(100, 30);
    console.press("2 @ '7d'");
    console.shows("as of 2026-01-28");
    console.press("enter");
    past(&mut console);
    console.shows("2 changes that were made here are reverted");
    console.shows("what agents changed leaves no trace");
    console.press("enter");
    console.shows("as of 2026-01-28 11:00");
    console.press("c d");
    console.shows("the past cannot be changed");
    console.press("y c");
    let line = "mnemoscope -d memory/made-up.db list episode --as-of 2026-01-28T11:00:00.000000Z";
    assert!(console.asked.contains(&Effect::Copy("command".to_owned(), line.to_owned())), "{:?}", console.asked);
    // What shows the present says so.
    console.press("J");
    console.shows("now, not as of");
    console.press("@ enter");
    let (ticket, request) = oldest_asked(&mut console, |request| matches!(request, Request::LookBack(_)));
    assert_eq!(request, Request::LookBack(None));
    console.reply(ticket, Reply::LookedBack(Ok(None)));
    console.hides("as of 2026");
}

#[test]
fn a_key_that_closes_a_note_does_what_it_does_without_it() {
    let mut console = Console::new(world(), 100, 30);
    console.press("2 @ '7d' enter");
    past(&mut console);
    console.shows("reverted");
    console.press("@");
    console.hides("reverted");
    console.shows("empty is now");
}

#[test]
fn a_moment_that_is_none_stays_in_the_line_and_a_refusal_is_told() {
    let mut console = Console::new(world(), 100, 30);
    console.press("2 @ 'soon' enter");
    console.shows("the number of a change");
    console.press("ctrl-u '4' enter");
    let (ticket, request) = oldest_asked(&mut console, |request| matches!(request, Request::LookBack(_)));
    assert_eq!(request, Request::LookBack(Some(Moment::Entry(4))));
    let failure = RequestFailure::new("The past could not be read", "the trail has no entry 4", "look at R");
    console.reply(ticket, Reply::LookedBack(Err(failure)));
    console.shows("the trail has no entry 4");
    console.press("enter");
    console.hides("as of");
}

#[test]
fn recall_is_asked_as_of_the_past() {
    let mut console = Console::new(world(), 120, 30);
    console.press("2 @ '7d' enter");
    past(&mut console);
    console.press("enter W");
    console.shows("as of 2026-01-28");
    let at = console.model.context.moment();
    assert_eq!(at, "2026-01-28T11:00:00.000000Z");
}

/// Answers every search that is asked for, as the store would.
fn search(console: &mut Console) {
    while console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Find(..)))) {
        let (ticket, request) = oldest_asked(console, |request| matches!(request, Request::Find(..)));
        let Request::Find(search, entity, after) = request else { panic!() };
        assert_eq!(after, None);
        let rows = console.database.rows.get(&entity).cloned().unwrap_or_default();
        let rows = rows.into_iter().filter_map(|row| Some((search.hit(&row)?, row))).map(|(hit, row)| (row, hit));
        let found = FoundRows { rows: rows.collect(), next: None };
        console.reply(ticket, Reply::Found(Ok(found)));
    }
    console.draw();
}

#[test]
fn words_are_found_in_every_kind_of_row() {
    for (width, height) in [(160, 50), (100, 30), (60, 20)] {
        let mut console = Console::new(world(), width, height);
        console.press("/ 'INVOICES archive' enter");
        console.shows("looking in episodes");
        search(&mut console);
        console.shows("3 found");
        console.shows("episode");
        console.shows("segment");
        console.shows("memory");
        assert_eq!(copied(&mut console), "mnemoscope -d memory/made-up.db find 'INVOICES archive'");
        console.press("G enter");
        assert_eq!(console.selected(), Some((Entity::Memory, "dr-1".to_owned())));
        console.press("[");
        console.shows("3 found");
    }
}

#[test]
fn a_kind_that_cannot_be_searched_is_told_and_the_others_are() {
    let mut console = Console::new(world(), 120, 40);
    console.press(": 'find' enter 'invoice' enter");
    let (ticket, _) = oldest_asked(&mut console, |request| matches!(request, Request::Find(..)));
    let failure = RequestFailure::new("episodes could not be searched", "that took too long", "name fewer words");
    console.reply(ticket, Reply::Found(Err(failure)));
    search(&mut console);
    console.shows("episodes were not searched: that took too long");
    console.shows("Find invoice 0");
    console.press("/ ctrl-u 'zzz' enter");
    search(&mut console);
    console.shows("Nothing was found");
}

#[test]
fn found_texts_are_masked_like_all_others() {
    let mut console = Console::masked(world(), 120, 40);
    console.press("/ 'archive' enter");
    search(&mut console);
    console.hides("in the archive");
    let row = console.database.rows[&Entity::Memory][0].clone();
    assert_eq!(row.get("text"), &json!("Old invoices are kept in the archive."));
    assert!(Search::parse("archive").expect("words").hit(&row).is_some());
}
