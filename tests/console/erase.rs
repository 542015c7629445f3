//! Erasing a person from the console: step by step, never without the id typed, to be stopped and resumed.

use std::collections::BTreeMap;

use mnemoscope::change::plan::erasure::{
    Branch, ErasureCheck, ErasureChoice, ErasureHandle, ErasureOutcome, MentionWords, Mentions, Preview, ShownMention,
};
use mnemoscope::console::core::{Effect, Reply, Request, RequestFailure, Ticket};
use mnemoscope::console::overlays::Overlay;
use mnemoscope::console::screens::erase::EraseScreen;

use super::changes::{unlock, unlocked};
use super::fake::{Console, world};

pub fn mention(id: &str, text: &str) -> ShownMention {
    let (before, after) = text.split_once("[…]").expect("the name is somewhere");
    ShownMention {
        id: id.into(),
        place: "episodes.summary".into(),
        key: "ep-1".into(),
        doubt: None,
        title: "Late parcel to Lyon".into(),
        owner: "user-9".into(),
        words: MentionWords { before: before.into(), name: "Ann Lee".into(), after: after.into() },
        options: Mentions::ALL.to_vec(),
        refused: None,
    }
}

pub fn preview(id: &str) -> Preview {
    let known = |kind: &str, value: &str| ErasureHandle { kind: kind.into(), value: value.into(), unsearched: None };
    let branch = |depth, table: &str, rows| Branch { depth, table: table.into(), rows };
    let deleted = |rows| BTreeMap::from([("delete".to_owned(), rows)]);
    Preview {
        plan_id: "p".into(),
        id: id.into(),
        known: vec![known("id", id), known("e-mail", "ann@made-up.example")],
        near: vec![("user-x".into(), "Ann Other".into())],
        tree: vec![branch(0, "episodes", 4), branch(1, "episode_segments", 17)],
        counts: BTreeMap::from([("episodes".into(), deleted(4)), ("episode_segments".into(), deleted(17))]),
        gone_for_mentions: 0,
        mentions: vec![("episodes.summary".into(), 3)],
        named: vec![mention("m_0000000001", "ask […] again")],
        effects: vec!["episodes: its feedback score is made again".into()],
        disclosures: vec!["backups keep the data until they expire".into()],
        refused: None,
        held: false,
        locks: false,
        unfinished: false,
        began: None,
    }
}

pub fn outcome(status: &str) -> ErasureOutcome {
    ErasureOutcome {
        status: status.into(),
        counts: BTreeMap::new(),
        verification: vec![ErasureCheck { name: "values".into(), found: "0 hits".into(), good: Some(true) }],
        incomplete: if status == "incomplete" { vec!["a reader keeps old pages".into()] } else { Vec::new() },
        disclosures: Vec::new(),
        kept_in: "receipts/r.json".into(),
        exported_to: None,
        audit_seq: 9,
    }
}

#[track_caller]
pub fn asked(console: &mut Console) -> (Ticket, String, ErasureChoice) {
    let at = console.asked.iter().position(|effect| matches!(effect, Effect::Ask(_, Request::PlanErasure(..))));
    match at.map(|at| console.asked.remove(at)) {
        Some(Effect::Ask(ticket, Request::PlanErasure(given, choice))) => (ticket, given, choice),
        _ => panic!("nothing is to be found out: {:?}", console.asked),
    }
}

pub fn runs(console: &mut Console) -> Option<(Ticket, String, ErasureChoice, bool)> {
    let at = console.asked.iter().position(|effect| matches!(effect, Effect::Ask(_, Request::Erase { .. })))?;
    match console.asked.remove(at) {
        Effect::Ask(ticket, Request::Erase { given, choice, resume, .. }) => Some((ticket, given, choice, resume)),
        _ => None,
    }
}

/// A console that shows what erasing the first person would do.
pub fn opened(mut console: Console) -> (Console, String) {
    console.press("8 c p");
    let (ticket, given, choice) = asked(&mut console);
    assert_eq!(choice, ErasureChoice::default());
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(preview(&given)))));
    (console, given)
}

#[test]
fn each_step_is_shown_and_nothing_goes_before_the_id_is_typed() {
    let (mut console, id) = opened(unlocked(140, 45));
    console.shows("ann@made-up.example");
    console.shows("Ann Other");
    console.press("enter");
    console.shows("─ episode_segments");
    console.press("enter");
    console.shows("ask Ann Lee again");
    console.press("l l l");
    console.shows("Enter asks for the person's id");
    console.press("h h");
    console.shows("backups keep the data");
    console.press("l l enter");
    console.wait();
    console.press("enter 'someone' enter");
    assert!(runs(&mut console).is_none());
    console.shows("nothing was done: type exactly");
    console.press("esc enter");
    console.wait();
    console.press(&format!("'{id}' enter"));
    let (ticket, given, _, resume) = runs(&mut console).expect("it is asked for");
    assert_eq!((given.as_str(), resume), (id.as_str(), false));
    console.reply(ticket, Reply::Erasing("deleting".into(), 1_234));
    console.shows("21 of 21 rows");
    console.reply(ticket, Reply::Erased(Ok(Box::new(outcome("verified")))));
    console.shows("receipts/r.json");
    console.shows("verified");
}

#[test]
fn the_last_step_says_that_nothing_may_be_changed_and_goes_on_once_it_may() {
    let (mut console, _) = opened(Console::new(world(), 140, 45));
    console.press("l*5");
    console.shows("! the console is read-only; U unlocks");
    console.press("enter");
    console.shows("U unlocks and continues with it");
    unlock(&mut console);
    assert!(matches!(console.model.overlays.last(), Some(Overlay::Erase(_))));
}

#[test]
fn a_page_is_a_screenful_also_after_the_mentions() {
    let (mut console, id) = opened(unlocked(100, 30));
    console.press("l*2");
    console.press("l*3 enter");
    console.wait();
    console.press(&format!("'{id}' enter"));
    let (ticket, ..) = runs(&mut console).expect("it is asked for");
    let many = (0..60).map(|n| format!("told number {n}")).collect();
    let long = ErasureOutcome { disclosures: many, ..outcome("verified") };
    console.reply(ticket, Reply::Erased(Ok(Box::new(long))));
    console.draw();
    console.press("pgdn*2");
    console.shows("told number 40");
    console.press("pgup*2");
    console.shows("receipts/r.json");
}

#[test]
fn the_result_says_where_the_export_went() {
    let (mut console, id) = opened(unlocked(140, 45));
    console.press("c x l*5 enter");
    console.wait();
    console.press(&format!("'{id}' enter"));
    let (ticket, _, choice, _) = runs(&mut console).expect("it is asked for");
    assert!(choice.export);
    let exported = ErasureOutcome { exported_to: Some("state/bundles/b-1".into()), ..outcome("verified") };
    console.reply(ticket, Reply::Erased(Ok(Box::new(exported))));
    console.shows("export       state/bundles/b-1");
}

#[test]
fn what_is_chosen_changes_the_plan() {
    let (mut console, _) = opened(unlocked(140, 45));
    console.press("c m");
    let (ticket, given, choice) = asked(&mut console);
    assert_eq!(choice.mentions, Mentions::Redact);
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(preview(&given)))));
    console.press("c a");
    let (_, _, choice) = asked(&mut console);
    assert!(choice.account);
    // Another choice while it is being found out: the earlier question is dropped.
    let earlier = ticket;
    console.press("c m");
    let (_, given, choice) = asked(&mut console);
    assert_eq!(choice.mentions, Mentions::Delete);
    console.reply(earlier, Reply::ErasurePlanned(Ok(Box::new(preview(&given)))));
    console.shows("Looking everywhere");
}

#[test]
fn a_hold_a_lock_and_a_failure_keep_it_from_being_done() {
    let (mut console, _) = opened(Console::new(world(), 140, 45));
    console.press("enter enter enter enter enter enter");
    console.shows("U unlocks");
    unlock(&mut console);
    let (mut console, _) = {
        console.press("esc 8 c p");
        let (ticket, given, _) = asked(&mut console);
        let held = Preview { refused: Some("under a legal hold".into()), ..preview(&given) };
        console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(held))));
        (console, given)
    };
    console.press("enter enter enter enter enter enter");
    console.shows("under a legal hold");
    assert!(runs(&mut console).is_none());
    console.press("r");
    let (ticket, _, _) = asked(&mut console);
    let failure = RequestFailure::new("The erasure was not planned", "the server is gone", "try again");
    console.reply(ticket, Reply::ErasurePlanned(Err(failure)));
    console.shows("the server is gone");
}

#[test]
fn an_unfinished_one_is_gone_on_with() {
    let mut console = unlocked(140, 45);
    console.press("8 c p");
    let (ticket, id, _) = asked(&mut console);
    let unfinished = Preview { unfinished: true, ..preview(&id) };
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(unfinished))));
    console.press("l l l l l");
    console.shows("unfinished");
    console.press("enter");
    console.wait();
    console.press(&format!("'{id}' enter"));
    let (ticket, _, _, resume) = runs(&mut console).expect("it is asked for");
    assert!(resume);
    console.reply(ticket, Reply::Erased(Ok(Box::new(outcome("incomplete")))));
    console.shows("a reader keeps old pages");
    // Leaving the screen waits for nothing.
    console.press("[");
}

#[test]
fn leaving_stops_a_run_that_can_be_gone_on_with() {
    let (mut console, id) = opened(unlocked(140, 45));
    console.press("l l l l l enter");
    console.wait();
    console.press(&format!("'{id}' enter"));
    let (ticket, ..) = runs(&mut console).expect("it is asked for");
    for keys in ["1", "2", "J", "[", "M", "c p", "q"] {
        console.press(keys);
        let runs_on = console.model.at::<EraseScreen>().is_some_and(|erasure| erasure.running.is_some());
        assert!(runs_on, "{keys} must not stop it");
        console.shows("a person is being erased: esc stops that");
    }
    console.press("esc");
    // What comes of it later finds nobody waiting.
    console.reply(ticket, Reply::Erased(Ok(Box::new(outcome("verified")))));
    console.press("]");
    console.hides("receipts/r.json");
}

#[test]
fn masked_it_shows_nobody_and_still_means_the_person() {
    let mut console = Console::masked(world(), 140, 45);
    console.press("8 c p");
    let (ticket, given, _) = asked(&mut console);
    console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(preview(&given)))));
    console.hides("ann@made-up.example");
    console.hides(&given);
}

#[test]
fn a_choice_is_seen_at_every_step_and_told_when_it_changes() {
    for (width, height) in [(100, 30), (60, 20)] {
        let (mut console, _) = opened(unlocked(width, height));
        console.shows("mentions leave · account keep · export no");
        console.press("c m");
        console.shows("mentions redact: the words are removed");
        let (ticket, given, _) = asked(&mut console);
        console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(preview(&given)))));
        console.wait();
        for _ in 0..5 {
            console.shows("mentions redact · account keep · export no");
            console.press("l");
        }
        console.press("c x");
        console.shows("export first yes");
        console.wait();
        console.shows("mentions redact · account keep · export yes");
    }
    // The footer says what a key would change.
    let (mut console, _) = opened(unlocked(160, 30));
    console.shows("c m redact mentions");
    console.shows("c a erase account");
}

#[test]
fn the_last_question_counts_the_rows_of_other_people() {
    let (mut console, id) = {
        let mut console = unlocked(140, 45);
        console.press("8 c p");
        let (ticket, id, _) = asked(&mut console);
        let deleting = Preview { gone_for_mentions: 3, ..preview(&id) };
        console.reply(ticket, Reply::ErasurePlanned(Ok(Box::new(deleting))));
        (console, id)
    };
    let words = "3 of the removed rows are other people's";
    console.press("l*5");
    console.shows(words);
    console.press("enter");
    console.shows(words);
    console.wait();
    console.press(&format!("'{id}' enter"));
    assert!(runs(&mut console).is_some());
}

#[test]
fn a_remedy_is_told_by_its_key() {
    let mut console = unlocked(140, 45);
    console.press("8 c p");
    let (ticket, ..) = asked(&mut console);
    let failure = RequestFailure::new("The person was not erased", "paused; --resume plans the rest again", "wait");
    console.reply(ticket, Reply::ErasurePlanned(Err(failure)));
    console.shows("paused; c p on the person plans the rest again");
    console.hides("--resume");
    // Someone else can be named, and there is nothing to scroll.
    console.shows("/ somebody else");
    console.hides("page down");
}
