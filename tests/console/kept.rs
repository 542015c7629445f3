//! Kept and copied things: places under names, the session's changes as a script, rows as tables.

use mnemoscope::change::plan::ChangeDanger;
use mnemoscope::console::core::{AppliedPlan, Effect, Reply, Request};
use mnemoscope::console::screens::browse::ListScreen;
use mnemoscope::memory::Entity;
use mnemoscope::memory::kept::KeptPlace;

use super::changes::{applied, plan, planned, receipt, removal, unlocked};
use super::fake::{Console, asked, many, world};

pub fn copied(console: &Console) -> (String, String) {
    let copy = console.asked.iter().rev().find_map(|effect| match effect {
        Effect::Copy(what, text) => Some((what.clone(), text.clone())),
        _ => None,
    });
    copy.expect("a copy")
}

#[test]
fn a_list_is_kept_with_its_filter_and_order_and_gone_to_again() {
    let mut console = Console::new(many(300), 120, 30);
    console.press("2 / 'outcome = failure' enter");
    console.wait();
    console.press("S b k 'bad ones' enter");
    let (ticket, request) = asked(&mut console, |request| matches!(request, Request::KeepPlace(_)));
    let Request::KeepPlace(place) = request else { panic!() };
    let expected = KeptPlace {
        name: "bad ones".to_owned(),
        entity: Some(Entity::Episode),
        filter: Some("outcome = 'failure'".to_owned()),
        order: Some("started_at:asc".to_owned()),
        ..KeptPlace::default()
    };
    assert_eq!(*place, expected);
    console.reply(ticket, Reply::Places(Ok(vec![expected.clone()])));
    console.shows("saved as bad ones");
    console.press("1 b b");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadPlaces);
    console.reply(ticket, Reply::Places(Ok(vec![expected.clone()])));
    console.shows("episodes where outcome = ");
    console.press("enter");
    let list = console.model.at::<ListScreen>().expect("a list");
    assert_eq!(list.conditions.line(), "outcome = 'failure'");
    assert!(list.order.as_ref().is_some_and(|order| !order.descending));
    console.press("b d");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadPlaces);
    console.reply(ticket, Reply::Places(Ok(vec![expected])));
    console.press("enter");
    let (_, request) = asked(&mut console, |request| matches!(request, Request::ForgetPlace(_)));
    assert_eq!(request, Request::ForgetPlace("bad ones".to_owned()));
}

#[test]
fn rows_and_screens_are_kept_too_but_nothing_that_is_masked() {
    let mut console = Console::new(world(), 120, 30);
    console.follow(Entity::Episode, "ep-1");
    console.press("b k enter");
    let (_, request) = asked(&mut console, |request| matches!(request, Request::KeepPlace(_)));
    assert!(matches!(request, Request::KeepPlace(place) if place.id.as_deref() == Some("ep-1")));
    console.press("F b k enter");
    let (_, request) = asked(&mut console, |request| matches!(request, Request::KeepPlace(_)));
    assert!(matches!(request, Request::KeepPlace(place) if place.screen.as_deref() == Some("Findings")));
    console.press("M b k");
    console.shows("first show personal values with M");
}

#[test]
fn without_kept_places_the_key_that_keeps_one_is_named() {
    let mut console = Console::new(world(), 120, 30);
    console.press("2 b b");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadPlaces);
    console.reply(ticket, Reply::Places(Ok(Vec::new())));
    console.shows("b k saves this one");
}

#[test]
fn marked_rows_are_copied_as_tables() {
    let mut console = Console::new(world(), 120, 30);
    console.press("2 v v y v");
    let (what, text) = copied(&console);
    assert_eq!(what, "2 rows as CSV");
    let mut lines = text.lines();
    assert!(lines.next().is_some_and(|head| head.starts_with("id,started_at,title")));
    assert_eq!(lines.count(), 2);
    console.press("| g y m");
    let (what, text) = copied(&console);
    assert_eq!(what, "1 row as Markdown");
    assert_eq!(text.lines().nth(1).map(|line| line.starts_with("| --- |")), Some(true));
    assert_eq!(text.lines().count(), 3);
}

#[test]
fn the_changes_of_a_session_are_copied_as_a_script() {
    let mut console = unlocked(120, 30);
    console.press("y r");
    console.shows("nothing was changed in this session yet");
    console.press("5 j c d");
    let (ticket, _) = planned(&mut console);
    let told = plan("feedback.remove", ChangeDanger::Guarded, &removal());
    console.reply(ticket, Reply::Planned(Ok(Box::new(told))));
    console.wait();
    console.press("A");
    let (request, ..) = applied(&mut console);
    let done = AppliedPlan { receipts: vec![(0, receipt("feedback.remove", 5))], refusal: None };
    console.reply(request, Reply::Applied(Some("asked for".to_owned()), done));
    console.press("y r");
    let (what, text) = copied(&console);
    assert_eq!(what, "a script of 1 change");
    let line = "mnemoscope -d memory/made-up.db feedback remove fb-1 --reason 'asked for' --apply";
    assert_eq!(text, format!("#!/bin/sh\nset -eu\n{line}\n"));
}

#[test]
fn tabs_have_keys_of_their_own() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 j . u");
    console.shows("largest");
    console.press(". c");
    console.shows("Book the missing invoices");
    console.press(". w");
    console.shows("has no tab \"where\"");
    console.press(". j");
    console.shows("topic  \"invoices\"");
}

#[test]
fn values_complete_a_filter_and_a_filter_is_tried_while_it_is_written() {
    let mut console = Console::new(many(300), 120, 30);
    console.press("2 / 'outcome = '");
    console.wait();
    let (ticket, request) = asked(&mut console, |request| matches!(request, Request::LoadValues(..)));
    assert_eq!(request, Request::LoadValues(Entity::Episode, "outcome"));
    console.reply(ticket, Reply::Values(Ok(vec!["success".to_owned(), "failure".to_owned()])));
    console.shows("success  failure");
    console.press("'fa' tab");
    console.wait();
    // The list shows it already, and the line says how many rows that leaves.
    console.shows("43 rows");
    console.press("esc");
    console.shows("row 1 of 300");
    assert!(console.model.filters.is_empty(), "what was only tried is not remembered");
}

#[test]
fn what_a_filter_leaves_of_a_long_list_is_counted_in_the_background() {
    let mut console = Console::new(many(2_000), 120, 30);
    console.press("2 / 'outcome = success' enter");
    let (ticket, request) = asked(&mut console, |request| matches!(request, Request::Count(_)));
    let Request::Count(query) = request else { panic!() };
    assert_eq!(query.filters.len(), 1);
    console.shows("more follow");
    let count = mnemoscope::console::core::request::RowCount { rows: 1_714, more: false };
    console.reply(ticket, Reply::Counted(Ok(count)));
    console.shows("row 1 of 1,714");
    console.press("\\");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Count(_)))));
}
