//! The inbox, the form, the picker, conflicts, and changes of marked rows.

use mnemoscope::change::operation::{FeedbackFields, Operation, SeenFeedback};
use mnemoscope::change::plan::ChangeDanger;
use mnemoscope::console::core::{AppliedPlan, Effect, Message, Proposal, Refusal, Reply, Request};
use mnemoscope::console::overlays::Overlay;
use mnemoscope::memory::Entity;
use mnemoscope::memory::utility::Signal;
use serde_json::{Map, Value, json};

use super::changes::{applied, plan, planned, proposed, receipt, removal, remove_feedback, unlock, unlocked};
use super::fake::{Console, world};

/// An edit of feedback, in place of what was seen.
fn edit(id: &str, set: &Value, seen: &Value) -> Operation {
    let values = |of: &Value| of.as_object().expect("an object").clone();
    Operation::Edit { entity: Entity::Feedback, id: id.to_owned(), set: values(set), instead_of: values(seen) }
}

/// Plans, confirms and applies what was asked for, as change number `seq`.
pub fn carried_out(console: &mut Console, danger: ChangeDanger, seq: i64) -> Operation {
    let (ticket, operation) = planned(console);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("feedback.edit", danger, &removal())))));
    if danger > ChangeDanger::Safe {
        console.wait();
        console.press("A");
    }
    let (request, _, reason) = applied(console);
    let done = AppliedPlan { receipts: vec![(0, receipt("feedback.edit", seq))], refusal: None };
    console.reply(request, Reply::Applied(reason, done));
    console.draw();
    console.wait();
    operation
}

/// The signal that follows from the newest feedback, as it is shown.
fn corrected() -> Operation {
    let values = json!({"kind": "comment", "rating": null}).as_object().expect("values").clone();
    let seen = SeenFeedback { id: "fb-2".to_owned(), values };
    Operation::Signal { episode: "ep-1".to_owned(), signal: Signal::Corrected, reason: None, feedback: Some(seen) }
}

/// The inbox: without the signals that came after the feedback, which count as looked at.
fn inbox(width: u16, height: u16) -> Console {
    let mut console = unlocked(width, height);
    console.database.rows.insert(Entity::UtilityEvent, Vec::new());
    console.press("I");
    console
}

#[test]
fn feedback_is_judged_key_by_key_until_none_is_left() {
    let mut console = inbox(160, 50);
    console.shows("0 of 2 looked at");
    console.shows("Please sort them by date");
    console.shows("Reconcile the October invoices");
    console.press("a");
    let expected = corrected();
    assert_eq!(carried_out(&mut console, ChangeDanger::Safe, 5), expected);
    console.shows("1 of 2 looked at");
    console.press("c n 'as the ticket says' enter c 4");
    let expected = edit("fb-1", &json!({"kind": "rating", "rating": 4}), &json!({"kind": "rating", "rating": 2}));
    assert_eq!(carried_out(&mut console, ChangeDanger::Guarded, 6), expected);
    assert_eq!(
        console.model.context.changing.done.last().and_then(|d| d.reason.as_deref()),
        Some("as the ticket says")
    );
    console.shows("Nothing waits for a look");
    console.shows("2 looked at: 1 right, 1 rated.");
    // Undone, it waits again; another inbox knows the verdicts of this one.
    console.press("Z");
    assert_eq!(carried_out(&mut console, ChangeDanger::Guarded, 7), Operation::Undo { seq: 6 });
    console.shows("1 of 2 looked at");
    console.press("6 I");
    console.shows("1 of 2 looked at");
}

#[test]
fn later_and_other_verdicts() {
    let mut console = inbox(160, 50);
    console.press("x");
    console.shows("only thumbs can be flipped");
    console.press("i");
    console.shows("1 of 2 looked at");
    console.wait();
    console.press("d");
    assert_eq!(planned(&mut console).1, remove_feedback("fb-1"));
}

#[test]
fn feedback_that_only_a_list_links_is_shown_with_its_own_episode_and_judged_without_signals() {
    let mut world = world();
    world.rows.remove(&Entity::UtilityEvent);
    for row in world.rows.get_mut(&Entity::Feedback).expect("feedback") {
        if row.id() == "fb-1" {
            row.set("episode_id", json!(null));
        }
    }
    for row in world.rows.get_mut(&Entity::Episode).expect("episodes") {
        if row.id() == "ep-2" {
            row.set("feedback_ids", json!(["fb-1"]));
        }
    }
    let mut console = Console::new(world, 160, 50);
    unlock(&mut console);
    console.press("I");
    console.shows("Reconcile the October invoices");
    console.press("j");
    console.shows("Book the missing invoices");
    console.shows("noted for this");
    console.press("a");
    console.shows("1 of 2 looked at");
    // One that no list holds has no episode, and never that of the row before.
    let rows = console.database.rows.get_mut(&Entity::Episode).expect("episodes");
    rows.iter_mut().for_each(|row| row.set("feedback_ids", json!(null)));
    let rows = console.database.rows.get_mut(&Entity::Feedback).expect("feedback");
    rows.iter_mut().for_each(|row| row.set("episode_id", json!(null)));
    console.press("r");
    console.hides("Reconcile");
    console.hides("Book the missing");
}

/// The look ahead that was asked for, and of what.
fn looked_ahead(console: &mut Console) -> (mnemoscope::console::core::Ticket, Operation) {
    let found = console.asked.iter().rposition(|effect| matches!(effect, Effect::Ask(_, Request::PlanAhead(_))));
    match console.asked.remove(found.expect("nothing is looked ahead at")) {
        Effect::Ask(ticket, Request::PlanAhead(operation)) => (ticket, *operation),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_inbox_shows_the_conversation_and_what_each_verdict_would_do() {
    let mut console = inbox(200, 50);
    console.shows("where are the two invoices?");
    console.shows("here the feedback was given");
    console.shows("signals \"corrected\" for");
    console.wait();
    let (ticket, operation) = looked_ahead(&mut console);
    assert_eq!(operation, corrected());
    let changes = json!([{"entity": "episode", "id": "ep-1", "before": {"utility": 0.6}, "after": {"utility": 0.55}}]);
    let told = plan("signal", ChangeDanger::Safe, &changes);
    console.reply(ticket, Reply::Planned(Ok(Box::new(told))));
    console.shows("0.55");
    let Some(Effect::Ask(ahead, Request::WhatIf { planned, .. })) = console.asked.pop() else { panic!() };
    assert_eq!(planned, ticket, "recall is looked at by the same plan");
    let found = mnemoscope::recall::what_if::WhatIf { situations: 8, changed: 0, complete: true, ..Default::default() };
    console.reply(ahead, Reply::LookedAhead(Ok(Box::new(found))));
    console.shows("Nothing in 8 sampled situations changes");
    // Another verdict is another plan, and nobody waits for the one before.
    console.press("l l");
    console.shows("Removes the feedback.");
    console.hides("0.55");
    console.wait();
    assert_eq!(looked_ahead(&mut console).1, remove_feedback("fb-2"));
    assert!(console.model.overlays.is_empty());
}

#[test]
fn who_runs_through_the_inbox_has_nothing_planned() {
    let mut console = inbox(160, 50);
    console.press("j k j");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::PlanAhead(_)))));
    console.wait();
    let planned = console.asked.iter().filter(|effect| matches!(effect, Effect::Ask(_, Request::PlanAhead(_))));
    assert_eq!(planned.count(), 1, "{:?}", console.asked);
}

#[test]
fn the_panes_of_the_inbox_scroll_by_themselves() {
    let mut console = inbox(80, 20);
    console.shows("what it is about");
    console.press("tab tab");
    console.shows("what a verdict would do");
    console.press("esc j");
    assert_eq!(console.id(), "fb-1");
}

#[test]
fn a_verdict_that_is_not_confirmed_is_none() {
    let mut console = inbox(160, 50);
    console.press("d");
    let (ticket, _) = planned(&mut console);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("feedback.remove", ChangeDanger::Guarded, &removal())))));
    console.press("enter");
    console.shows("0 of 2 looked at");
    console.wait();
    console.press("j d");
    console.wait();
    assert_eq!(console.id(), "fb-1");
}

#[test]
fn a_key_that_repeats_gives_one_verdict() {
    let mut console = inbox(160, 50);
    console.press("i*5");
    console.shows("1 of 2 looked at");
    console.wait();
    console.press("i");
    console.shows("Nothing waits for a look");
}

#[test]
fn help_gives_a_key_one_meaning() {
    let mut console = inbox(100, 400);
    console.press("?");
    let lines = console.lines();
    let here: Vec<&String> = lines.iter().take_while(|line| !line.contains("Elsewhere:")).collect();
    let edits: Vec<&&String> = here.iter().filter(|line| line.contains("│ c e ")).collect();
    assert_eq!(edits.len(), 1, "{edits:?}");
    assert!(edits[0].contains("Opens the form"), "{edits:?}");
}

#[test]
fn what_was_told_already_needs_no_look() {
    for (width, height) in [(160, 50), (100, 30), (60, 20)] {
        let mut console = unlocked(width, height);
        console.press("I");
        console.shows("Nothing waits for a look");
        console.shows("No feedback complains");
        console.shows("esc");
    }
}

#[test]
fn feedback_is_edited_in_a_form_that_stays_until_it_is_done() {
    let mut console = unlocked(160, 50);
    console.press("5 c e");
    console.shows("Edit feedback fb-2");
    console.shows("nothing is changed yet");
    console.press("ctrl-s right*3 enter");
    console.shows("a rating needs a number from 1 to 5");
    console.press("4 tab");
    console.tell(Message::Paste(" key AKIAIOSFODNN7EXAMPLE".to_owned()));
    console.shows("AWS access key removed");
    console.press("ctrl-s");
    let (ticket, operation) = planned(&mut console);
    let correction = "Please sort them by date key AKIAIOSFODNN7EXAMPLE";
    let seen = json!({"correction": "Please sort them by date", "kind": "comment", "rating": null});
    let set = json!({"correction": correction, "kind": "rating", "rating": 4});
    assert_eq!(operation, edit("fb-2", &set, &seen));
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("feedback.edit", ChangeDanger::Guarded, &removal())))));
    console.press("enter");
    console.shows("Edit feedback fb-2");
    console.press("ctrl-s");
    carried_out(&mut console, ChangeDanger::Guarded, 5);
    assert!(console.model.overlays.is_empty());
}

#[test]
fn feedback_is_added_to_an_episode() {
    let mut console = unlocked(160, 50);
    console.press("2 j c a right ctrl-s");
    let fields = FeedbackFields { kind: Some("thumbs_down".to_owned()), ..FeedbackFields::default() };
    assert_eq!(planned(&mut console).1, Operation::AddFeedback { episode: "ep-1".to_owned(), fields });
}

#[test]
fn one_of_an_episodes_rows_is_chosen_and_edited() {
    let mut console = unlocked(160, 50);
    console.press("2 j c f 'Please' enter");
    console.shows("Edit feedback fb-2");
}

#[test]
fn any_row_is_edited_in_a_form_and_only_what_differs_is_set() {
    for (width, height) in [(160, 50), (60, 20)] {
        let mut console = unlocked(width, height);
        console.press("2 j c e");
        console.shows("Edit episode Reconcile");
        console.press("ctrl-s");
        assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..)))));
        // What follows from other columns is no field.
        assert!(!console.text().contains("feedback score"));
        while !console.lines().iter().any(|line| line.contains("▌topic")) {
            console.press("tab");
        }
        console.press("ctrl-u 'archive' ctrl-s");
        let set = json!({"topic": "archive"}).as_object().expect("an object").clone();
        let (ticket, operation) = planned(&mut console);
        let instead_of = json!({"topic": "invoices"}).as_object().expect("an object").clone();
        assert_eq!(operation, Operation::Edit { entity: Entity::Episode, id: "ep-1".to_owned(), set, instead_of });
        console.reply(ticket, Reply::Planned(Ok(Box::new(plan("edit", ChangeDanger::Guarded, &removal())))));
        console.press("esc");
        console.shows("Edit episode Reconcile");
        // What was written is not thrown away unasked, and any other key continues with it.
        for keys in ["esc", "x esc", "backspace ctrl-c"] {
            console.press(keys);
            console.shows("esc again discards");
            console.shows("Edit episode Reconcile");
        }
        console.press("esc");
        assert!(console.model.overlays.is_empty());
    }
}

#[test]
fn a_real_number_is_shown_as_people_write_it_and_kept_as_it_is() {
    let mut database = world();
    for case in database.rows.get_mut(&Entity::Case).expect("cases") {
        case.set("reward", json!(0.700_000_000_000_000_1));
        case.set("traces", json!({"gain": 0.300_000_000_000_000_04, "loss": 0.0004}));
    }
    let mut console = Console::new(database, 160, 50);
    unlock(&mut console);
    console.press("4 enter");
    console.shows("gain  0.3");
    console.shows("loss  0.0004");
    console.hides("0000000");
    // JSON is what is stored.
    console.press(". j");
    console.shows("0.7000000000000001");
    console.press(". o c e");
    console.hides("0.7000000000000001");
    while !console.lines().iter().any(|line| line.contains("▌reward")) {
        console.press("tab");
    }
    console.press("backspace '7' ctrl-s");
    console.shows("nothing is changed yet");
}

#[test]
fn a_value_that_is_none_of_its_kind_is_told_and_not_planned() {
    let mut console = unlocked(100, 34);
    console.press("4 c e");
    while !console.lines().iter().any(|line| line.contains("▌reward")) {
        console.press("tab");
    }
    console.press("ctrl-u 'much'");
    console.shows("reward takes a number");
    console.press("ctrl-s");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..)))));
}

#[test]
fn marked_rows_are_edited_and_removed_as_one_plan() {
    let mut console = unlocked(160, 50);
    console.press("2 v v c e");
    console.shows("Edit 2 marked episodes");
    while !console.lines().iter().any(|line| line.contains("▌topic")) {
        console.press("tab");
    }
    console.press("'archive' ctrl-s");
    let set = json!({"topic": "archive"}).as_object().expect("an object").clone();
    let edit = |id: &str| Operation::Edit {
        entity: Entity::Episode,
        id: id.to_owned(),
        set: set.clone(),
        instead_of: Map::new(),
    };
    let (_, proposal) = proposed(&mut console);
    assert_eq!(proposal, Proposal::Changes(vec![edit("ep-1"), edit("ep-2")]));
    let mut console = unlocked(160, 50);
    console.press("4 v v c d");
    let ids = vec!["ca-0".to_owned(), "ca-1".to_owned()];
    assert_eq!(planned(&mut console).1, Operation::Remove { entity: Entity::Case, ids });
}

#[test]
fn what_is_masked_is_not_written_back() {
    let mut console = unlocked(100, 34);
    console.press("M 2 j c e");
    console.shows("Edit episode");
    console.hides("▌title");
    console.hides(" summary ");
    console.shows("values that name people are masked and left out");
}

#[test]
fn histories_and_trails_are_not_edited() {
    let mut console = unlocked(100, 30);
    console.press("7 c e");
    console.shows("signals are a history");
}

#[test]
fn a_parent_is_searched_for_and_chosen() {
    let mut console = unlocked(160, 50);
    console.press("2 c l");
    console.shows("Parent of Book the missing invoices");
    console.press("'ep-9'");
    console.wait();
    console.shows("no other episode matches");
    console.press("ctrl-u 'recon'");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..)))));
    console.wait();
    console.press("enter");
    let (ticket, operation) = planned(&mut console);
    assert_eq!(operation, Operation::Link { child: "ep-2".to_owned(), parent: "ep-1".to_owned() });
    let failure =
        mnemoscope::console::core::RequestFailure::new("Link", "this would create a cycle: ep-2 -> ep-1 -> ep-2", "");
    console.reply(ticket, Reply::Planned(Err(Refusal::Failed(failure))));
    console.shows("ep-2 -> ep-1 -> ep-2");
    console.press("enter");
    console.shows("Parent of Book the missing invoices");
}

#[test]
fn a_reward_is_written_with_its_outcome_and_checked_meanwhile() {
    let mut console = unlocked(160, 50);
    console.press("4 c r ctrl-u '7'");
    console.shows("a reward is a number from 0 to 1");
    console.press("enter ctrl-u '0.5 partial' enter");
    let (_, operation) = planned(&mut console);
    let expected = Operation::Reward { case: "ca-1".to_owned(), reward: 0.5, outcome: Some("partial".to_owned()) };
    assert_eq!(operation, expected);
}

#[test]
fn a_conflict_shows_three_sides_and_can_be_planned_again() {
    let mut console = unlocked(160, 50);
    console.press("5 j c d");
    let (ticket, _) = planned(&mut console);
    let changes = json!([{"entity": "feedback", "id": "fb-1",
        "before": {"kind": "rating", "rating": 2}, "after": {"kind": "rating", "rating": 4}}]);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("feedback.edit", ChangeDanger::Guarded, &changes)))));
    console.wait();
    console.press("A");
    let (request, ..) = applied(&mut console);
    let mut theirs = console.database.rows[&Entity::Feedback][1].clone();
    theirs.set("rating", json!(1));
    let message = "the rows are not what the plan read".to_owned();
    let refusal = Refusal::Conflict { message, rows: vec!["agent_feedback fb-1".to_owned()], now: vec![Some(theirs)] };
    console.reply(request, Reply::Applied(None, AppliedPlan { receipts: Vec::new(), refusal: Some(refusal) }));
    for word in ["before", "yours", "theirs", "rating", "2", "4", "1", "agent_feedback fb-1"] {
        console.shows(word);
    }
    console.press("p");
    assert_eq!(planned(&mut console).1, remove_feedback("fb-1"));
}

#[test]
fn of_marked_rows_those_with_nothing_to_do_are_left_out() {
    let mut console = unlocked(160, 50);
    console.press("5 v*2 c d");
    let (ticket, _) = proposed(&mut console);
    console.reply(ticket, Reply::NothingToDo(vec![0]));
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("feedback.remove", ChangeDanger::Guarded, &removal())))));
    console.wait();
    console.shows("A apply");
    console.hides("and 1 more");
    console.press("y c");
    let copied = console.asked.iter().find_map(|effect| match effect {
        Effect::Copy(_, text) => Some(text.clone()),
        _ => None,
    });
    assert!(copied.as_ref().is_some_and(|text| text.contains("fb-2") && text.lines().count() == 1), "{copied:?}");
}

#[test]
fn marked_rows_are_changed_with_one_confirmation() {
    let mut console = unlocked(160, 50);
    console.press("5 v*2 c d");
    let (ticket, proposal) = proposed(&mut console);
    assert_eq!(proposal, Proposal::Changes(vec![remove_feedback("fb-1"), remove_feedback("fb-2")]));
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("feedback.remove", ChangeDanger::Guarded, &removal())))));
    console.wait();
    console.shows("and 1 more");
    console.press("y c");
    let copied = console.asked.iter().find_map(|effect| match effect {
        Effect::Copy(_, text) => Some(text.lines().count()),
        _ => None,
    });
    assert_eq!(copied, Some(2));
    console.press("A");
    let (request, ..) = applied(&mut console);
    let failure =
        mnemoscope::console::core::RequestFailure::new("Remove feedback fb-2", "the row is gone", "look again");
    let receipts = vec![(0, receipt("feedback.remove", 5))];
    console.reply(request, Reply::Applied(None, AppliedPlan { receipts, refusal: Some(Refusal::Failed(failure)) }));
    console.shows("the row is gone");
    assert!(matches!(console.model.overlays.last(), Some(Overlay::Failure(_))));
    console.press("enter");
    console.shows("1 of 2 changes made");
}

#[test]
fn masked_texts_are_not_written_back() {
    let mut console = unlocked(160, 50);
    console.press("M 5 c e");
    console.shows("personal texts are masked");
    console.press("right tab tab x ctrl-s");
    let expected = edit("fb-2", &json!({"kind": "thumbs_up"}), &json!({"kind": "comment"}));
    assert_eq!(planned(&mut console).1, expected);
}

#[test]
fn a_verdict_on_a_row_that_went_meanwhile_is_not_given_to_the_next_one() {
    let mut console = inbox(120, 40);
    let first = console.id();
    console.beat();
    let rows = console.database.rows.get_mut(&Entity::Feedback).expect("feedback");
    rows.retain(|row| row.id() != first);
    console.beat();
    console.shows("the row that you looked at is no longer here");
    console.press("a");
    console.shows("press it again for this one");
    assert!(console.model.context.changing.pending.is_none(), "nothing is planned");
    console.wait();
    console.press("a");
    planned(&mut console);
}

#[test]
fn the_inbox_and_the_changes_follow_what_others_write_and_other_screens_say_that_they_are_old() {
    let mut console = inbox(120, 40);
    console.press("j");
    let before = console.id();
    let mut row = console.database.rows[&Entity::Feedback][0].clone();
    row.set("id", json!("fb-of-others"));
    row.set("kind", json!("thumbs_down"));
    row.set("created_at", json!("2026-02-04T10:59:00.000000Z"));
    console.beat();
    console.shows("0 of 2 looked at");
    console.database.rows.entry(Entity::Feedback).or_default().push(row);
    console.beat();
    console.shows("0 of 3 looked at");
    assert_eq!(console.id(), before, "the same row is selected");
    // What is looked for or counted is not done again unasked.
    console.press("/ 'October' enter");
    console.hides("written since");
    console.beat();
    console.hides("written since");
    console.beat();
    console.shows("written since: r");
    let before = console.id();
    console.press("r");
    console.hides("written since");
    assert_eq!(console.id(), before, "the same row is selected");
    for keys in ["P", "C", "J", "D"] {
        console.press(keys);
        console.beat();
        console.hides("written since");
        console.beat();
        console.shows("written since: r");
    }
}

#[test]
fn a_form_says_whether_it_writes_at_once() {
    let mut console = unlocked(100, 30);
    console.press("2 j c a right");
    console.shows("ctrl-s adds it at once; Z undoes it");
    console.shows("Add feedback to Reconcile the October invoices");
    console.model.context.opened.production = true;
    console.press("left");
    console.shows("ctrl-s shows what would change before anything does");
}

#[test]
fn a_long_title_never_pushes_out_how_dangerous_a_change_is() {
    let mut console = unlocked(60, 20);
    for row in console.database.rows.get_mut(&Entity::Episode).expect("episodes") {
        row.set("title", json!("Reconcile the invoices of October, November and December with the archive"));
    }
    console.press("2 j c e tab 'x' ctrl-s");
    let (ticket, _) = planned(&mut console);
    let planned = plan("edit", ChangeDanger::Guarded, &removal());
    console.reply(ticket, Reply::Planned(Ok(Box::new(planned))));
    console.shows("Edit episode Reconcile");
    console.shows("guarded");
}

#[test]
fn a_key_that_does_nothing_here_is_not_offered() {
    let mut console = unlocked(118, 24);
    console.press("2");
    let foot = console.lines().pop().expect("a footer");
    assert!(foot.contains("enter open") && !foot.contains("tabs"), "{foot}");
    console.press("enter");
    let foot = console.lines().pop().expect("a footer");
    assert!(foot.contains("l tabs"), "{foot}");
    console.press(".");
    console.shows("Story");
    console.hides("Where");
}
