//! Preview of recall in proposals that wait for a yes: it comes on its own, says nothing when nothing changes, and is
//! never waited for.

use mnemoscope::change::operation::Operation;
use mnemoscope::change::plan::ChangeDanger;
use mnemoscope::console::core::{Effect, Key, Message, Proposal, Reply, Request, RequestFailure, Ticket};
use mnemoscope::console::overlays::Overlay;
use mnemoscope::console::update;
use mnemoscope::memory::Entity;
use mnemoscope::recall::rank::Ranking;
use mnemoscope::recall::what_if::{PlaceMove, WhatIf};
use serde_json::json;

use super::changes::{applied, plan, planned, removal, unlocked};
use super::fake::{Console, row};
use super::looks::{SIZES, picture};

/// The look that is asked for: its number, the plan's, and whether it may take its time.
#[track_caller]
pub fn looked(console: &mut Console) -> (Ticket, Ticket, bool) {
    let at = console.asked.iter().position(|effect| matches!(effect, Effect::Ask(_, Request::WhatIf { .. })));
    match at.map(|at| console.asked.remove(at)) {
        Some(Effect::Ask(ticket, Request::WhatIf { planned, patient })) => (ticket, planned, patient),
        _ => panic!("nobody looks ahead: {:?}", console.asked),
    }
}

/// Builds the changes in recall found in eight situations.
pub fn found() -> WhatIf {
    let episode = |id: &str, title: &str| {
        row(Entity::Episode, &[("id", json!(id)), ("title", json!(title)), ("user_id", json!("ann"))])
    };
    let moved = |id: &str, before, after, scores: (Option<f64>, Option<f64>)| PlaceMove {
        ranking: Ranking::Boosted,
        situation: "ep-9".to_owned(),
        recall: vec!["--ranking".to_owned(), "boosted".to_owned(), "--like".to_owned(), "ep-9".to_owned()],
        policy: None,
        policy_before: None,
        id: id.to_owned(),
        before,
        after,
        score_before: scores.0,
        score_after: scores.1,
    };
    WhatIf {
        situations: 8,
        changed: 1,
        complete: true,
        moves: vec![
            moved("ep-2", Some(2), Some(1), (Some(0.71), Some(0.71))),
            moved("ep-3", None, Some(4), (None, Some(0.42))),
            moved("ep-1", Some(1), None, (Some(0.9), None)),
        ],
        rescored: vec![moved("ep-4", Some(3), Some(3), (Some(0.55), Some(0.35)))],
        rows: vec![episode("ep-9", "Plan the move"), episode("ep-2", "Book a van"), episode("ep-3", "Pack the books")],
        took: 41,
        ..WhatIf::default()
    }
}

/// A console that shows the plan of a removal.
pub fn asked_to_remove(mut console: Console) -> (Console, Ticket) {
    console.press("5 j c d");
    let (ticket, _) = planned(&mut console);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("feedback.remove", ChangeDanger::Guarded, &removal())))));
    (console, ticket)
}

#[test]
fn it_is_looked_at_with_the_plan_and_shown_in_it() {
    let (mut console, plan) = asked_to_remove(unlocked(120, 45));
    console.shows("Recall would change");
    console.shows("checking recent situations");
    let (ticket, of, patient) = looked(&mut console);
    assert_eq!((of, patient), (plan, false));
    console.reply(ticket, Reply::LookingAhead(3));
    console.shows("3 situations checked so far");
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(found()))));
    for shown in [
        "1 of 8 sampled situations is answered differently (41 ms)",
        "in Plan the move",
        "2 → 1",
        "Book a van",
        "new → 4",
    ] {
        console.shows(shown);
    }
    console.shows("1 → gone");
    // A row without a name is called by its id.
    console.shows("ep-1");
    console.shows("1 row keeps its place with another score");
    console.shows("0.550 → 0.350");
    console.hides("looks longer");
}

#[test]
fn nothing_is_said_plainly() {
    let (mut console, _) = asked_to_remove(unlocked(120, 45));
    let (ticket, ..) = looked(&mut console);
    let nothing = WhatIf { situations: 8, complete: true, ..WhatIf::default() };
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(nothing))));
    console.shows("Nothing in 8 sampled situations changes");
}

#[test]
fn a_look_that_could_tell_nothing_takes_its_time_by_itself() {
    let (mut console, plan) = asked_to_remove(unlocked(120, 45));
    let (ticket, ..) = looked(&mut console);
    let cut = WhatIf { stopped: true, ..WhatIf::default() };
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(cut.clone()))));
    let (ticket, of, patient) = looked(&mut console);
    assert_eq!((of, patient), (plan, true));
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(cut))));
    console.shows("No situation could be checked in the time");
    console.hides("looks longer");
}

#[test]
fn the_answer_is_not_waited_for() {
    let (mut console, _) = asked_to_remove(unlocked(120, 45));
    let (ticket, ..) = looked(&mut console);
    console.wait();
    console.press("A");
    let _ = applied(&mut console);
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(found()))));
    console.hides("Recall would change");
}

#[test]
fn closing_stops_it() {
    let (mut console, plan) = asked_to_remove(unlocked(120, 45));
    let (ticket, ..) = looked(&mut console);
    let effects = update(&mut console.model, Message::Key(Key::parse("enter").expect("a key")));
    assert!(effects.contains(&Effect::Cancel(ticket)) && effects.contains(&Effect::Cancel(plan)), "{effects:?}");
}

#[test]
fn what_was_cut_short_is_looked_at_longer_on_request() {
    let (mut console, plan) = asked_to_remove(unlocked(120, 45));
    let (ticket, ..) = looked(&mut console);
    console.press("+");
    assert!(
        !console.asked.iter().any(|e| matches!(e, Effect::Ask(_, Request::WhatIf { .. }))),
        "it is still being looked at"
    );
    let cut = WhatIf { situations: 2, stopped: true, notes: vec!["stopped after 2 situations".into()], ..found() };
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(cut))));
    console.shows("+ looks longer");
    console.press("+");
    let (again, of, patient) = looked(&mut console);
    assert_eq!((of, patient), (plan, true));
    // An answer to the first question changes nothing any more.
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(found()))));
    console.shows("checking recent situations");
    let failure = RequestFailure::new("Recall was not checked", "the server is gone", "try again");
    console.reply(again, Reply::LookedAhead(Err(failure)));
    console.shows("not known: the server is gone");
    assert!(matches!(console.model.overlays.last(), Some(Overlay::Confirm(_))), "the plan still waits");
}

#[test]
fn where_a_word_is_typed_letters_do_not_look_longer() {
    let mut console = unlocked(120, 45);
    console.model.context.opened.production = true;
    let (mut console, _) = asked_to_remove(console);
    let (ticket, ..) = looked(&mut console);
    let cut = WhatIf { stopped: true, ..found() };
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(cut))));
    console.shows("+ looks longer");
    console.wait();
    console.press("w");
    assert!(!console.asked.iter().any(|e| matches!(e, Effect::Ask(_, Request::WhatIf { .. }))));
    console.press("+");
    assert!(looked(&mut console).2);
}

#[test]
fn masked_nobody_is_named() {
    let mut console = unlocked(120, 45);
    console.press("M");
    let (mut console, _) = asked_to_remove(console);
    let (ticket, ..) = looked(&mut console);
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(found()))));
    console.shows("in ");
    let Some(Overlay::Confirm(confirmation)) = console.model.overlays.last() else { panic!() };
    let found = confirmation.ahead.as_ref().and_then(|ahead| ahead.found.as_ref()).expect("an answer");
    assert!(found.rows.iter().all(|row| row.text("user_id") != Some("ann")));
}

#[test]
fn what_cannot_change_recall_is_not_looked_at() {
    let window = Operation::Window { profile: "p".to_owned(), window: Some(5) };
    let unlink = Operation::Unlink { child: "ep-1".to_owned() };
    assert!(!window.touches_recall() && unlink.touches_recall());
    assert!(!Proposal::Changes(vec![window.clone(), window.clone()]).touches_recall());
    assert!(Proposal::Changes(vec![window, unlink]).touches_recall());
}

#[test]
fn pictures() {
    for (width, height) in SIZES {
        let (mut console, _) = asked_to_remove(unlocked(width, height));
        let (ticket, ..) = looked(&mut console);
        console.reply(ticket, Reply::LookedAhead(Ok(Box::new(found()))));
        if height == 20 {
            console.draw();
            console.press("pgdn");
        }
        let text = picture(&console.draw());
        insta::assert_snapshot!(format!("what-if-{width}x{height}"), text);
    }
}

#[test]
fn what_is_the_same_in_two_situations_is_said_once() {
    let (mut console, _) = asked_to_remove(unlocked(120, 45));
    let (ticket, ..) = looked(&mut console);
    console.reply(ticket, Reply::LookingAhead(1));
    console.shows("1 situation checked so far");
    let once = found().rescored.remove(0);
    let again = PlaceMove { situation: "ep-8".to_owned(), ..once.clone() };
    let stopped = "stopped after 15 situations: 300 ms were used up".to_owned();
    let all = WhatIf {
        stopped: true,
        rescored: vec![once, again],
        moves: Vec::new(),
        changed: 0,
        notes: vec![stopped],
        ..found()
    };
    console.reply(ticket, Reply::LookedAhead(Ok(Box::new(all))));
    console.shows("1 row keeps its place with another score");
    console.shows("Nothing in 8 sampled situations changes");
    assert_eq!(console.text().matches("stopped after").count(), 1, "{}", console.text());
}
