//! Erasing a person from the console: the way out of each step, who can be named, holds, what is unfinished; and pictures.

use std::fmt::Write as _;

use mnemoscope::change::operation::Operation;
use mnemoscope::change::plan::erasure::{Branch, ErasureCheck, ErasureOutcome, Preview, UnfinishedErasure};
use mnemoscope::console::core::{Effect, Reply, Request, RequestFailure, Ticket};
use mnemoscope::console::screens::erase::EraseScreen;
use mnemoscope::console::screens::home::HomeScreen;
use mnemoscope::memory::Entity;
use mnemoscope::ui::{Glyphs, Look, Theme};

use super::changes::{planned, unlocked};
use super::erase::{asked, opened, outcome, preview, runs};
use super::fake::{Console, world};
use super::looks::{SIZES, picture};

/// Steps on from the first to the last question, which is asked there.
fn to_the_question(console: &mut Console) {
    console.press("l*5 enter");
    console.wait();
}

/// The person's id is typed: the request that erases.
fn confirmed(console: &mut Console, id: &str) -> Ticket {
    to_the_question(console);
    console.press(&format!("'{id}' enter"));
    runs(console).expect("it is asked for").0
}

#[test]
fn every_step_can_be_gone_back_from_and_left() {
    for step in 0..6 {
        let (mut console, _) = opened(unlocked(140, 45));
        console.press(&"l ".repeat(step));
        assert_eq!(console.model.at::<EraseScreen>().expect("we are there").step, step);
        console.press("h");
        assert_eq!(console.model.at::<EraseScreen>().expect("we are there").step, step.saturating_sub(1));
        console.press("esc");
        assert!(console.model.at::<EraseScreen>().is_none(), "step {step}");
        console.press("]");
        assert_eq!(console.model.at::<EraseScreen>().expect("we are back").step, step.saturating_sub(1));
        assert!(runs(&mut console).is_none());
    }
}

#[test]
fn the_last_question_is_left_without_anything_done() {
    let (mut console, id) = opened(unlocked(140, 45));
    to_the_question(&mut console);
    console.press(&format!("'{id}' esc"));
    assert!(runs(&mut console).is_none());
    assert!(console.model.at::<EraseScreen>().is_some());
}

#[test]
fn anybody_can_be_named() {
    let mut console = unlocked(140, 45);
    console.press("c p enter");
    assert!(asked_for_nobody(&console), "an empty name means nobody");
    console.press("'ann@made-up.example' enter");
    let (ticket, given, _) = asked(&mut console);
    assert_eq!(given, "ann@made-up.example");
    let unknown = RequestFailure::new("The erasure was not planned", "nobody is known so; near: user-x", "name an id");
    console.reply(ticket, Reply::ErasurePlanned(Err(unknown)));
    console.shows("near: user-x");
    console.press("/ 'user-x' enter");
    assert_eq!(asked(&mut console).1, "user-x");
}

fn asked_for_nobody(console: &Console) -> bool {
    !console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::PlanErasure(..))))
}

#[test]
fn how_far_the_look_is_is_told() {
    let mut console = unlocked(140, 45);
    console.press("8 c p");
    let (ticket, ..) = asked(&mut console);
    console.reply(ticket, Reply::Erasing("episode_segments".into(), 20_480));
    console.shows("episode_segments: 20,480 values read so far");
}

#[test]
fn a_hold_is_put_up_with_its_reason_and_taken_away() {
    let (mut console, id) = opened(unlocked(140, 45));
    console.press("c h 'case 12' enter");
    let (_, operation) = planned(&mut console);
    assert_eq!(operation, Operation::Hold { person: id.clone(), reason: Some("case 12".into()) });
    let mut console = unlocked(140, 45);
    console.press("8 c H");
    let (_, operation) = planned(&mut console);
    assert_eq!(operation, Operation::Unhold { person: id });
}

#[test]
fn a_hold_is_seen_before_an_erasure_is_begun() {
    for masked in [false, true] {
        let mut console = if masked { Console::masked(world(), 100, 30) } else { Console::new(world(), 100, 30) };
        console.press("8");
        console.hides("held");
        console.press("enter");
        console.shows("legal hold");
        console.hides("held");
        // Others put up a hold meanwhile.
        let person = console.database.rows[&Entity::Subject][0].id().to_owned();
        console.legal_holds = vec![person.clone()];
        console.press("r esc");
        let lines = console.lines();
        let marked: Vec<&String> = lines.iter().filter(|line| line.contains("! held  ")).collect();
        assert_eq!(marked.len(), 1, "{}", console.text());
        assert_eq!(marked[0].contains(&person), !masked, "{}", console.text());
        console.press("enter");
        console.shows("an erasure is refused until the hold ends");
        // What could not be read is not taken for nothing.
        console.failure = Some(RequestFailure::new("Not read", "denied", "ask"));
        console.press("r");
        console.hides("held");
    }
}

#[test]
fn what_is_unfinished_stands_on_the_first_screen_and_leads_there() {
    let mut console = Console::new(world(), 140, 45);
    console.unfinished =
        vec![UnfinishedErasure { given: "u-7".into(), started_at: "2026-02-04T09:00:00.000000Z".into() }];
    console.press("r");
    console.shows("the erasure of u-7 is unfinished");
    let entry = console
        .model
        .at::<HomeScreen>()
        .expect("the first screen")
        .entries(&console.model.context)
        .iter()
        .position(|to| format!("{to:?}").contains("u-7"))
        .expect("it leads");
    console.press(&format!("g j*{entry} enter"));
    assert_eq!(asked(&mut console).1, "u-7");
}

#[test]
fn leaving_a_run_says_so_and_coming_back_goes_on_with_it() {
    let (mut console, id) = opened(unlocked(140, 45));
    confirmed(&mut console, &id);
    // Neither reading again nor quitting stops it.
    console.press("r q");
    assert!(console.model.at::<EraseScreen>().is_some_and(|erasure| erasure.running.is_some()));
    assert!(!console.asked.contains(&Effect::Quit));
    console.press("esc");
    console.shows("the erasure was stopped; c p resumes it");
    console.press("]");
    let (ticket, given, _) = asked(&mut console);
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(Preview { unfinished: true, ..preview(&given) }))));
    console.press("enter");
    console.wait();
    console.press(&format!("'{id}' enter"));
    assert!(runs(&mut console).expect("it is asked for").3, "it is resumed");
}

#[test]
fn what_is_incomplete_is_gone_on_with_from_its_result() {
    let (mut console, id) = opened(unlocked(140, 45));
    let ticket = confirmed(&mut console, &id);
    console.reply(ticket, Reply::Erased(Ok(Box::new(outcome("incomplete")))));
    console.shows("a reader keeps old pages");
    console.press("enter");
    console.wait();
    console.press(&format!("'{id}' enter"));
    assert!(runs(&mut console).expect("it is asked for").3, "it is resumed");
}

/// Opens the tab that says where the first person is; the request for it.
fn where_tab(console: &mut Console) -> (Ticket, String) {
    console.press("8 enter l");
    let at = console.asked.iter().position(|effect| matches!(effect, Effect::Ask(_, Request::LoadWhereabouts(..))));
    match at.map(|at| console.asked.remove(at)) {
        Some(Effect::Ask(ticket, Request::LoadWhereabouts(id))) => (ticket, id),
        _ => panic!("it is not looked for: {:?}", console.asked),
    }
}

#[test]
fn where_a_person_is_is_looked_for_only_where_somebody_looks() {
    let mut console = Console::new(world(), 140, 45);
    console.press("8 enter");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::LoadWhereabouts(..)))));
    let (ticket, id) = where_tab(&mut console);
    console.shows("looking everywhere");
    console.reply(ticket, Reply::Erasing("episodes".into(), 4_096));
    console.shows("episodes: 4,096 values read");
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(preview(&id)))));
    console.shows("─ episode_segments");
    console.shows("episodes.summary");
    // Another tab forgets nothing; an answer that comes too late changes nothing.
    console.press("l h");
    console.shows("─ episode_segments");
}

#[test]
fn leaving_the_tab_stops_the_look() {
    let mut console = Console::new(world(), 140, 45);
    let (ticket, id) = where_tab(&mut console);
    console.press("h");
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(preview(&id)))));
    console.press("l");
    console.hides("─ episode_segments");
    console.shows("looking everywhere");
}

/// A person of whom much is kept.
fn much(id: &str) -> Preview {
    let branch = |depth, table: &str, rows| Branch { depth, table: table.into(), rows };
    let plain = preview(id);
    let sessions = (1..=9).map(|n| mnemoscope::change::plan::erasure::ErasureHandle {
        kind: "session".into(),
        value: format!("session-{n:02}"),
        unsearched: None,
    });
    Preview {
        known: plain.known.iter().cloned().chain(sessions).collect(),
        tree: vec![
            branch(0, "agent_feedback", 12),
            branch(0, "sessions", 9),
            branch(1, "episodes", 40),
            branch(2, "episode_segments", 1_170),
            branch(2, "episode_memories", 3),
            branch(1, "messages", 88),
            branch(0, "users", 1),
        ],
        ..plain
    }
}

fn told(console: &mut Console, pages: &mut String, name: &str, look: &Look) {
    let text = picture(&console.draw_with(look));
    let _ = writeln!(pages, "== {name}\n{text}");
}

fn all_steps(width: u16, height: u16, look: &Look) -> String {
    let mut pages = String::new();
    let mut console = unlocked(width, height);
    console.press("8 c p");
    let (ticket, id, _) = asked(&mut console);
    console.wait();
    told(&mut console, &mut pages, "looking", look);
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(much(&id)))));
    for name in ["who", "where", "mentions", "effects", "recall", "decide"] {
        told(&mut console, &mut pages, name, look);
        console.press("l");
    }
    console.wait();
    told(&mut console, &mut pages, "the last question", look);
    console.press(&format!("'{id}' enter"));
    let (ticket, ..) = runs(&mut console).expect("it is asked for");
    console.reply(ticket, Reply::Erasing("deleting".into(), 9));
    told(&mut console, &mut pages, "under way", look);
    let check = |name: &str, found: &str, good| ErasureCheck { name: name.into(), found: found.into(), good };
    let verification = vec![
        check("found before", "11 of 11 handles: the search finds what it looks for", Some(true)),
        check("values", "3 hits, 3 of them left on purpose", Some(false)),
        check("bytes", "not checked: a server's files cannot be read from here", None),
    ];
    let came_to = ErasureOutcome { verification, ..outcome("incomplete") };
    console.reply(ticket, Reply::Erased(Ok(Box::new(came_to))));
    console.wait();
    told(&mut console, &mut pages, "incomplete", look);
    let failure = RequestFailure::new("The erasure was not planned", "the database is read-only", "open it elsewhere");
    console.press("r");
    console.press("8 c p");
    let (ticket, ..) = asked(&mut console);
    console.reply(ticket, Reply::ErasurePlanned(Err(failure)));
    told(&mut console, &mut pages, "not planned", look);
    let (ticket, id) = where_tab(&mut console);
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(much(&id)))));
    told(&mut console, &mut pages, "where", look);
    pages
}

#[test]
fn pictures_of_every_step() {
    let look = Look::new(Theme::dark(), Glyphs::unicode());
    for (width, height) in SIZES {
        insta::assert_snapshot!(format!("erasure-{width}x{height}"), all_steps(width, height, &look));
    }
}

#[test]
fn the_path_of_the_receipt_is_copied() {
    let (mut console, id) = opened(unlocked(140, 45));
    let ticket = confirmed(&mut console, &id);
    console.reply(ticket, Reply::Erased(Ok(Box::new(outcome("verified")))));
    console.press("y t");
    let copied = Effect::Copy("text".to_owned(), outcome("verified").kept_in);
    assert!(console.asked.contains(&copied), "{:?}", console.asked);
}
