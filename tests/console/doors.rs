//! The two doors of the core: a reply goes to whoever asked and to nobody else, and nobody's name comes in unmasked.

use mnemoscope::change::plan::Plan;
use mnemoscope::console::core::{Effect, Message, Reply, Request, RequestFailure, Ticket};
use mnemoscope::console::screens::erase::EraseScreen;
use serde_json::json;

use super::changes::{plan, unlocked};
use super::fake::{Console, oldest_asked, world};
use mnemoscope::change::plan::ChangeDanger;

fn asked(console: &mut Console, wanted: impl Fn(&Request) -> bool) -> Ticket {
    oldest_asked(console, wanted).0
}

#[test]
fn a_reply_to_a_place_that_was_left_changes_nothing() {
    let mut console = Console::new(world(), 120, 30);
    console.press("R");
    let ticket = asked(&mut console, |request| matches!(request, Request::LoadTrail(None)));
    console.press("[");
    let before = console.model.clone();
    console.reply(ticket, Reply::Trail(Ok(Vec::new())));
    assert_eq!(console.model, before);
    console.press("]");
    let again = asked(&mut console, |request| matches!(request, Request::LoadTrail(None)));
    assert_ne!(again, ticket, "it is asked again");
    console.reply(again, Reply::Trail(Ok(Vec::new())));
    console.shows("Nothing was changed here yet");
    let before = console.model.clone();
    console.reply(again, Reply::Trail(Err(RequestFailure::new("a", "b", "c"))));
    assert_eq!(console.model, before, "a request is answered once");
}

#[test]
fn a_plan_that_nobody_waits_for_is_forgotten_outside_too() {
    let mut console = unlocked(120, 30);
    let before = console.model.clone();
    console.holding = true;
    let stray: Plan = plan("signal", ChangeDanger::Safe, &json!([]));
    console.reply(Ticket(9_999), Reply::Planned(Ok(Box::new(stray))));
    assert!(console.held.contains(&Effect::Cancel(Ticket(9_999))), "{:?}", console.held);
    assert_eq!(console.model, before);
}

#[test]
fn an_error_about_a_person_names_nobody_while_values_are_masked() {
    let mut console = Console::masked(world(), 160, 50);
    let people = ["ada@example.org", "Ada Lovelace", "u-4711", "Grace Hopper"];
    console.tell(Message::People(people.map(str::to_owned).to_vec()));
    console.press("c p 'someone' enter");
    let ticket = asked(&mut console, |request| matches!(request, Request::PlanErasure(..)));
    let words = "no person in memory is known as `someone`; near are ada@example.org, Ada Lovelace, u-4711, Grace \
     Hopper";
    let failure = RequestFailure::new("Nobody is known so", words, "name Grace Hopper in another way");
    console.reply(ticket, Reply::ErasurePlanned(Err(failure)));
    let kept = format!("{:?}", console.model.at::<EraseScreen>().and_then(|erasure| erasure.failure.clone()));
    for name in people {
        assert!(!kept.contains(name), "{name} came in: {kept}");
        console.hides(name);
    }
    assert!(kept.contains("near are"), "the rest of the sentence stays: {kept}");
}
