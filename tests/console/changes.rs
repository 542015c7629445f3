//! Changes: unlocking, the way from an intention to a receipt, and what must not get through.

use mnemoscope::change::operation::Operation;
use mnemoscope::change::plan::migration::PendingMigration;
use mnemoscope::change::plan::trail::{EntryFacts, ListedEntry};
use mnemoscope::change::plan::{ChangeDanger, Plan, Receipt};
use mnemoscope::console::core::{
    AppliedPlan, EditorEnd, Effect, Key, Message, Proposal, Refusal, Reply, Request, RequestFailure, Ticket,
};
use mnemoscope::console::overlays::Overlay;
use mnemoscope::console::overlays::unlock::WriteState;
use mnemoscope::console::screens::browse::ListScreen;
use mnemoscope::memory::Entity;
use mnemoscope::memory::utility::Signal;
use serde_json::{Value, json};

use super::fake::{Console, asked, world};

/// A plan as it is shown.
pub fn plan(operation: &str, danger: ChangeDanger, changes: &Value) -> Plan {
    let plan = json!({
        "plan_id": "p", "operation": operation, "danger": danger, "counts": {"agent_feedback": {"delete": 1}},
        "changes": changes, "changes_total": 1, "effects": ["the score goes from 0.25 to -0.50"],
        "disclosures": [], "created_at": "2026-02-04T10:00:00.000000Z", "database_id": "d", "facts": {},
        "undo_reason": null, "reason": null, "ticket": null, "watches": [],
        "mutations": [{"delete": {"table": {"schema": "main", "name": "agent_feedback"}, "by": ["id"], "keys": []}}],
        "trail": [], "undo_trail": [],
    });
    serde_json::from_value(plan).expect("a plan")
}

/// A removed feedback row.
pub fn removal() -> Value {
    json!([{"entity": "feedback", "id": "fb-1", "before": {"id": "fb-1", "kind": "rating", "rating": 2}, "after": null}])
}

pub fn receipt(operation: &str, seq: i64) -> Receipt {
    let receipt = json!({
        "receipt_id": "r", "plan_id": "p", "operation": operation, "status": "applied", "counts": {}, "changes": [],
        "changes_total": 0, "effects": [], "disclosures": [], "applied_at": "2026-02-04T10:00:00.000000Z",
        "audit_seq": seq, "undo": format!("mnemoscope undo {seq} --apply"),
    });
    serde_json::from_value(receipt).expect("a receipt")
}

/// An unlocked console.
pub fn unlocked(width: u16, height: u16) -> Console {
    let mut console = Console::new(world(), width, height);
    unlock(&mut console);
    console
}

pub fn unlock(console: &mut Console) {
    console.press("U");
    let Some(Effect::Ask(ticket, Request::CheckWritable)) = console.asked.pop() else { panic!("{:?}", console.asked) };
    console.reply(ticket, Reply::Writable(Ok(WriteState { audited: true, ..WriteState::default() })));
    console.wait();
    console.press("A");
    console.wait();
    assert!(console.model.context.changing.unlocked);
    console.asked.clear();
}

/// The operation that is to be planned, with the number of the request.
#[track_caller]
pub fn proposed(console: &mut Console) -> (Ticket, Proposal) {
    let at = console.asked.iter().position(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..))));
    match at.map(|at| console.asked.remove(at)) {
        Some(Effect::Ask(ticket, Request::Plan(proposal))) => (ticket, *proposal),
        _ => panic!("nothing is to be planned: {:?}", console.asked),
    }
}

/// The single change that is to be planned.
#[track_caller]
pub fn planned(console: &mut Console) -> (Ticket, Operation) {
    let (ticket, proposal) = proposed(console);
    let single = proposal.single().cloned();
    (ticket, single.unwrap_or_else(|| panic!("not one change: {proposal:?}")))
}

/// The plan that is to be applied: number of the request, number of the plan, reason.
#[track_caller]
pub fn applied(console: &mut Console) -> (Ticket, Ticket, Option<String>) {
    let at = console.asked.iter().position(|effect| matches!(effect, Effect::Ask(_, Request::Apply { .. })));
    match at.map(|at| console.asked.remove(at)) {
        Some(Effect::Ask(ticket, Request::Apply { planned, reason })) => (ticket, planned, reason),
        _ => panic!("nothing is to be applied: {:?}", console.asked),
    }
}

fn applies(console: &Console) -> bool {
    console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Apply { .. })))
}

/// The removal of feedback.
pub fn remove_feedback(id: &str) -> Operation {
    Operation::Remove { entity: Entity::Feedback, ids: vec![id.to_owned()] }
}

/// A console that shows the plan of a removal.
fn asked_to_remove(mut console: Console) -> (Console, Ticket) {
    console.press("5 j c d");
    let (ticket, operation) = planned(&mut console);
    assert_eq!(operation, remove_feedback("fb-1"));
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("feedback.remove", ChangeDanger::Guarded, &removal())))));
    console.draw();
    (console, ticket)
}

#[test]
fn nothing_changes_before_it_is_unlocked() {
    let mut console = Console::new(world(), 160, 50);
    console.shows("■ read-only");
    console.press("5 c d t c Z");
    assert!(
        !console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..) | Request::Apply { .. })))
    );
    console.shows("U unlocks");
    unlock(&mut console);
    console.shows("✎ unlocked");
    console.press("U");
    console.shows("■ read-only");
}

#[test]
fn a_production_database_is_named_to_unlock_it() {
    let mut console = Console::new(world(), 160, 50);
    console.model.context.opened.production = true;
    console.model.context.opened.profile = Some("books".to_owned());
    console.press("U");
    console.shows("PRODUCTION");
    let Some(Effect::Ask(ticket, Request::CheckWritable)) = console.asked.pop() else { panic!() };
    console.reply(ticket, Reply::Writable(Ok(WriteState { audited: true, ..WriteState::default() })));
    console.wait();
    console.press("A enter");
    assert!(!console.model.context.changing.unlocked);
    console.press("backspace 'books' enter");
    assert!(console.model.context.changing.unlocked);
}

#[test]
fn a_database_without_a_trail_is_offered_one() {
    let mut console = Console::new(world(), 160, 50);
    console.press("U");
    let Some(Effect::Ask(ticket, Request::CheckWritable)) = console.asked.pop() else { panic!() };
    let pending = PendingMigration {
        name: "0001_audit".to_owned(),
        sql: "CREATE TABLE memory_audit (seq INTEGER)".to_owned(),
        lock_risk: "none".to_owned(),
        effect: "changes can be made".to_owned(),
        ..PendingMigration::default()
    };
    let writable = WriteState { pending: vec![pending], ..WriteState::default() };
    console.reply(ticket, Reply::Writable(Ok(writable)));
    console.shows("CREATE TABLE memory_audit");
    console.press("y c");
    assert!(
        console.asked.contains(&Effect::Copy(
            "command".to_owned(),
            "mnemoscope -d memory/made-up.db migrate --apply".to_owned()
        ))
    );
    console.wait();
    console.press("A");
    let Some(Effect::Ask(ticket, Request::Migrate(_))) = console.asked.pop() else { panic!("{:?}", console.asked) };
    let opened = Box::new(console.model.context.opened.clone());
    console.reply(ticket, Reply::Migrated(Ok((vec!["0001_audit".to_owned()], opened))));
    assert!(console.model.context.changing.unlocked, "the dialog said so");
    console.shows("applied: 0001_audit; unlocked");
}

#[test]
fn what_cannot_be_written_says_why() {
    let mut console = Console::new(world(), 160, 50);
    console.press("U");
    let Some(Effect::Ask(ticket, Request::CheckWritable)) = console.asked.pop() else { panic!() };
    let writable = WriteState { blocked: Some("it is a standby".to_owned()), ..WriteState::default() };
    console.reply(ticket, Reply::Writable(Ok(writable)));
    console.shows("it is a standby");
}

#[test]
fn a_guarded_change_shows_its_plan_and_is_confirmed_by_its_own_key_only() {
    for keys in ["enter", "esc", "q"] {
        let (mut console, _) = asked_to_remove(unlocked(160, 50));
        console.wait();
        console.shows("Remove feedback fb-1");
        console.shows("1 row removed");
        console.shows("the score goes from 0.25 to -0.50");
        console.press(keys);
        assert!(!applies(&console), "{keys}");
        assert!(console.model.overlays.is_empty());
    }
    let (mut console, ticket) = asked_to_remove(unlocked(160, 50));
    console.wait();
    console.press("r 'told so' enter A");
    let (request, plan, reason) = applied(&mut console);
    assert_eq!((plan, reason.as_deref()), (ticket, Some("told so")));
    let done = AppliedPlan { receipts: vec![(0, receipt("feedback.remove", 7))], refusal: None };
    console.reply(request, Reply::Applied(reason, done));
    console.shows("Remove feedback fb-1: done");
    console.shows("Z undo");
    console.press("Z");
    assert_eq!(planned(&mut console).1, Operation::Undo { seq: 7 });
}

#[test]
fn what_was_done_is_told_by_its_name_and_number_of_rows() {
    let mut console = unlocked(160, 50);
    console.press("2 j t c");
    let (ticket, _) = planned(&mut console);
    let change = json!([{"entity": "episode", "id": "ep-1", "before": {"utility": 0.6}, "after": {"utility": 0.7}}]);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("signal", ChangeDanger::Safe, &change)))));
    let (request, ..) = applied(&mut console);
    let mut told = receipt("signal", 8);
    told.changes = serde_json::from_value(change).expect("changes");
    told.counts =
        serde_json::from_value(json!({"episodes": {"update": 1}, "utility_events": {"insert": 1}})).expect("counts");
    let done = AppliedPlan { receipts: vec![(0, told)], refusal: None };
    console.reply(request, Reply::Applied(None, done));
    console.shows("Signal confirmed for episode Reconcile the October invoices: done (2 rows)");
}

#[test]
fn a_change_of_many_rows_is_told_by_their_number_and_kind() {
    let gone =
        |id: u32| json!({"entity": "case", "id": format!("case-{id}"), "before": {"reward": 0.1}, "after": null});
    let cases: serde_json::Value = (0..5).map(gone).collect();
    let counts = json!({"agent_memory_cases": {"delete": 112}, "agent_memory_embeddings": {"delete": 193}});
    let mut console = unlocked(160, 50);
    let tables = [(Entity::Case, "agent_memory_cases"), (Entity::Segment, "agent_memory_embeddings")];
    console.model.context.opened.tables = tables.map(|(entity, table)| (entity, table.to_owned())).into();
    console.press("2 j t c");
    let (ticket, _) = planned(&mut console);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("signal", ChangeDanger::Safe, &cases)))));
    let (request, ..) = applied(&mut console);
    let mut told = receipt("prune", 8);
    told.changes = serde_json::from_value(cases.clone()).expect("changes");
    // Some of the changes are of rows that depend on the cases, as many as another table lost.
    told.changes_total = 193;
    told.counts = serde_json::from_value(counts.clone()).expect("counts");
    let done = AppliedPlan { receipts: vec![(0, told)], refusal: None };
    console.reply(request, Reply::Applied(None, done));
    console.shows("done (112 cases, 305 rows)");
    console.press("R");
    let (ticket, _) = asked(&mut console, |request| matches!(request, Request::LoadTrail(None)));
    let of = |seq, changes_total| ListedEntry {
        changes: serde_json::from_value(cases.clone()).expect("changes"),
        facts: EntryFacts {
            counts: serde_json::from_value(counts.clone()).expect("counts"),
            changes_total,
            ..EntryFacts::default()
        },
        ..entry(seq, "prune", None)
    };
    console.reply(ticket, Reply::Trail(Ok(vec![of(3, Some(193)), of(2, None), of(1, Some(5))])));
    console.shows("prune  112 cases, 305 rows");
    console.shows("prune  5 cases, 305 rows");
    console.hides("193 cases");
}

#[test]
fn a_signal_is_chosen_by_its_time_and_by_whom() {
    let mut console = unlocked(160, 50);
    let signals = console.database.rows.get_mut(&Entity::UtilityEvent).expect("signals");
    let mut second = signals.first().expect("one").clone();
    second.set("id", json!("ue-9"));
    signals.first_mut().expect("one").set("episode_id", json!("ep-1"));
    for (column, value) in [
        ("episode_id", json!("ep-1")),
        ("signal", json!("rejected")),
        ("delta", json!(-0.1)),
        ("actor", json!("ada")),
        ("created_at", json!("2026-02-03T11:00:00.000000Z")),
    ] {
        second.set(column, value);
    }
    signals.push(second);
    console.press("r 2 j t x");
    for part in ["2026-02-03 11:00", "rejected", "-0.10", "by ada"] {
        console.shows(part);
    }
}

#[test]
fn a_change_that_is_safe_is_made_at_once_and_can_be_undone() {
    let mut console = unlocked(160, 50);
    console.press("2 j t c");
    let (ticket, operation) = planned(&mut console);
    assert_eq!(
        operation,
        Operation::Signal { episode: "ep-1".to_owned(), signal: Signal::Confirmed, reason: None, feedback: None }
    );
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("signal", ChangeDanger::Safe, &json!([]))))));
    let (request, plan, _) = applied(&mut console);
    assert_eq!(plan, ticket);
    let done = AppliedPlan { receipts: vec![(0, receipt("signal", 8))], refusal: None };
    console.reply(request, Reply::Applied(None, done));
    console.shows("Z undo");
}

#[test]
fn production_raises_every_step() {
    let mut console = unlocked(160, 50);
    console.model.context.opened.production = true;
    console.press("2 j t c");
    let (ticket, _) = planned(&mut console);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("signal", ChangeDanger::Safe, &json!([]))))));
    assert!(!applies(&console), "what is safe elsewhere is guarded here");
    console.press("esc");
    let (mut console, _) = asked_to_remove(console);
    console.wait();
    console.press("A enter");
    assert!(!applies(&console), "what is guarded elsewhere is grave here");
    console.shows("type fb-1");
    console.press("backspace 'fb-1' enter");
    assert!(applies(&console));
}

#[test]
fn keys_that_come_too_early_confirm_nothing() {
    let (mut console, _) = asked_to_remove(unlocked(160, 50));
    console.press("d*5 A");
    assert!(!applies(&console));
    // Each key that came too early has begun the time again: what was begun first arms nothing.
    let timers: Vec<Ticket> = console.timers();
    for timer in &timers[..timers.len() - 1] {
        console.tell(Message::Elapsed(*timer));
    }
    console.press("A");
    assert!(!applies(&console));
    console.wait();
    console.press("A");
    assert!(applies(&console));
}

#[test]
fn a_plan_whose_row_is_gone_cannot_be_applied_any_more() {
    let (mut console, _) = asked_to_remove(unlocked(160, 50));
    console.wait();
    console.beat();
    console.shows("A apply");
    console.database.rows.get_mut(&Entity::Feedback).expect("feedback").retain(|row| row.id() != "fb-1");
    console.beat();
    console.shows("feedback fb-1 is gone: this cannot be applied any more");
    console.hides("A apply");
    console.press("A");
    assert!(!applies(&console));
    console.press("enter");
    console.shows("nothing was changed");
}

#[test]
fn what_to_do_after_a_failure_is_said_once() {
    let (mut console, _) = asked_to_remove(unlocked(160, 50));
    console.wait();
    console.press("A");
    let (request, ..) = applied(&mut console);
    let message = "another process is writing; gave up after 12 s. Try again when it has finished".to_owned();
    let failure = RequestFailure { remedy: None, ..RequestFailure::new("Not done: Remove feedback fb-1", message, "") };
    let refused = AppliedPlan { receipts: Vec::new(), refusal: Some(Refusal::Failed(failure)) };
    console.reply(request, Reply::Applied(None, refused));
    console.shows("gave up after 12 s");
    assert_eq!(console.text().to_lowercase().matches("try again").count(), 1);
}

#[test]
fn held_keys_and_pastes_change_nothing() {
    let key = |text: &str| Key::parse(text).expect("a key");
    let (mut console, _) = asked_to_remove(unlocked(160, 50));
    console.wait();
    console.tell(Message::Held(key("A")));
    console.tell(Message::Paste("A\nfb-1\n".to_owned()));
    assert!(!applies(&console));
    console.press("esc");
    console.asked.clear();
    console.press("t");
    console.tell(Message::Held(key("c")));
    console.tell(Message::Paste("tc".to_owned()));
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..)))));
    console.press("esc j");
    console.tell(Message::Held(key("k")));
    assert_eq!(console.id(), "fb-1", "a held key moves");
}

#[test]
fn where_releases_are_told_a_plan_can_be_confirmed_at_once() {
    let mut console = unlocked(160, 50);
    console.tell(Message::Releases);
    let (mut console, _) = asked_to_remove(console);
    console.press("A");
    assert!(applies(&console));
}

#[test]
fn a_plan_copies_the_command_that_does_it() {
    let (mut console, _) = asked_to_remove(unlocked(160, 50));
    console.press("r 'as told' enter y c");
    let line = "mnemoscope -d memory/made-up.db feedback remove fb-1 --reason 'as told' --apply";
    assert!(console.asked.contains(&Effect::Copy("command".to_owned(), line.to_owned())), "{:?}", console.asked);
}

#[test]
fn what_was_read_before_a_change_is_read_again_and_the_row_stays_selected() {
    let (mut console, _) = asked_to_remove(unlocked(160, 50));
    console.wait();
    console.press("A");
    let (request, ..) = applied(&mut console);
    let rows = console.database.rows.get_mut(&mnemoscope::memory::Entity::Feedback).expect("feedback");
    rows.iter_mut().find(|row| row.id() == "fb-1").expect("it").set("rating", json!(5));
    let done = AppliedPlan { receipts: vec![(0, receipt("feedback.edit", 7))], refusal: None };
    console.reply(request, Reply::Applied(None, done));
    assert_eq!(console.id(), "fb-1");
    let row = console.model.history.here().row().expect("a row");
    assert_eq!(row.get("rating"), &json!(5));
}

#[test]
fn a_refusal_is_told_and_nothing_waits_any_more() {
    let mut console = unlocked(160, 50);
    console.press("5 j c d");
    planned(&mut console);
    console.press("esc");
    assert!(console.model.context.changing.pending.is_none());
    console.press("c d");
    let (ticket, _) = planned(&mut console);
    let failure = RequestFailure::new("It was not planned", "the row is gone", "look again");
    console.reply(ticket, Reply::Planned(Err(Refusal::Failed(failure))));
    console.shows("the row is gone");
    assert!(console.model.context.changing.pending.is_none());
}

/// An entry of the trail.
pub fn entry(seq: i64, action: &str, undo_of: Option<i64>) -> ListedEntry {
    let migrates = action == "migrate";
    ListedEntry {
        seq,
        at: "2026-02-04T10:00:00.000000Z".to_owned(),
        actor: "ada".to_owned(),
        action: action.to_owned(),
        reason: Some("told in the chat".to_owned()),
        changes: serde_json::from_value(removal()).expect("changes"),
        facts: EntryFacts {
            counts: serde_json::from_value(json!({"agent_feedback": {"update": 1}})).expect("counts"),
            undo_reason: migrates.then(|| "a migration cannot be undone".to_owned()),
            undo_of,
            migrations: migrates.then(|| "0001_audit".to_owned()).into_iter().collect(),
            ..EntryFacts::default()
        },
        ..ListedEntry::default()
    }
}

#[test]
fn earlier_changes_are_listed_and_taken_back() {
    let mut console = unlocked(160, 50);
    console.press("R");
    let Some(Effect::Ask(ticket, Request::LoadTrail(None))) = console.asked.pop() else {
        panic!("{:?}", console.asked)
    };
    let entries = vec![
        entry(4, "undo", Some(3)),
        entry(3, "feedback.edit", None),
        entry(2, "signal", None),
        entry(1, "migrate", None),
    ];
    console.reply(ticket, Reply::Trail(Ok(entries)));
    console.shows("undo of 3");
    console.shows("signal  feedback fb-1");
    console.shows("by 4");
    console.press("j u");
    console.shows("it was undone by 4");
    console.wait();
    console.press("j u");
    assert_eq!(planned(&mut console).1, Operation::Undo { seq: 2 });
    console.press("y c");
    // It only shows what the screen shows.
    let line = "mnemoscope -d memory/made-up.db audit list";
    assert!(console.asked.contains(&Effect::Copy("command".to_owned(), line.to_owned())));
    assert!(!console.model.overlays.iter().any(|overlay| matches!(overlay, Overlay::Confirm(_))));
}

#[test]
fn a_paste_that_is_too_long_is_told_in_every_field() {
    for (keys, bytes) in
        [("2 c a tab tab", 100_001), ("2 c e", 1_000_001), (":", 5_000), ("2 /", 5_000), ("2 c l", 5_000)]
    {
        let mut console = unlocked(140, 40);
        console.press(keys);
        console.tell(Message::Paste("x".repeat(bytes)));
        console.shows("what was pasted is too long");
    }
}

#[test]
fn a_form_says_that_it_takes_nothing_while_it_is_applied() {
    let mut console = unlocked(100, 30);
    console.press("2 c a tab tab 'abc' ctrl-s");
    console.shows("being planned");
    let (ticket, _) = planned(&mut console);
    console.press("x");
    console.shows("ignored");
    let safe = plan("feedback.add", ChangeDanger::Safe, &removal());
    console.reply(ticket, Reply::Planned(Ok(Box::new(safe))));
    console.wait();
    console.shows("being applied: keys are ignored");
    console.shows("applying: Add feedback to episode");
    console.press("x");
    console.shows("ignored: the previous request is still running");
    console.press("esc");
    let (ticket, ..) = applied(&mut console);
    let refusal = Refusal::Failed(RequestFailure::new("Add feedback", "the disk is full", "free space"));
    let failed = AppliedPlan { receipts: Vec::new(), refusal: Some(refusal) };
    console.reply(ticket, Reply::Applied(None, failed));
    console.press("esc");
    console.shows("abc");
    console.hides("abcx");
    console.hides("being applied");
}

#[test]
fn esc_stops_what_a_form_has_planned() {
    let mut console = unlocked(100, 30);
    console.press("2 c a tab tab 'abc' ctrl-s esc");
    console.shows("stopped; nothing was changed");
    console.shows("abc");
}

#[test]
fn a_click_on_cancel_leaves_everything_as_it_is() {
    let (mut console, _) = asked_to_remove(unlocked(100, 30));
    console.wait();
    console.click("Cancel");
    console.hides("Cancel");
    assert!(!applies(&console));
}

#[test]
fn a_row_in_the_editor_is_a_copy() {
    let mut console = unlocked(160, 50);
    console.press("2 o");
    assert!(console.asked.iter().any(|effect| matches!(effect, Effect::View("json", _))), "{:?}", console.asked);
    console.tell(Message::Viewed(Ok(EditorEnd::Read)));
    console.hides("you saved a copy");
    console.tell(Message::Viewed(Ok(EditorEnd::Changed)));
    console.shows("you saved a copy, which is discarded: the row is unchanged");
}

/// Marks rows of a list, gives a command, has that applied, and says how many are marked then.
fn marked_after(list: &str, command: &str, operation: &str) -> usize {
    let mut console = unlocked(160, 50);
    console.press(&format!("{list} v v"));
    console.shows("2 marked");
    console.press(command);
    let (ticket, proposal) = proposed(&mut console);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan(operation, ChangeDanger::Guarded, &json!([]))))));
    console.wait();
    console.press("A");
    let (request, ..) = applied(&mut console);
    let receipts = (0..proposal.changes().len()).map(|at| (at, receipt(operation, at as i64 + 1))).collect();
    console.reply(request, Reply::Applied(None, AppliedPlan { receipts, refusal: None }));
    console.model.at::<ListScreen>().expect("a list").marks.len()
}

#[test]
fn what_was_done_to_the_marked_rows_unmarks_them() {
    assert_eq!(marked_after("2", "t r", "signal"), 0);
    assert_eq!(marked_after("4", "c q", "quarantine"), 0);
    assert_eq!(marked_after("5", "c d", "feedback.remove"), 0);
    assert_eq!(marked_after("2", "c d", "remove"), 0);
    // This is about the selected row alone.
    assert_eq!(marked_after("2", "k c u", "unlink"), 2);
}

#[test]
fn a_change_from_the_details_is_about_their_row_and_not_about_marked_ones() {
    let mut console = unlocked(160, 50);
    console.press("2 v enter");
    let open = console.id();
    console.press("t r");
    let (_, operation) = planned(&mut console);
    assert!(matches!(&operation, Operation::Signal { episode, .. } if *episode == open), "{operation:?}");
    // With the keys in the list the marked row is meant.
    let mut console = unlocked(160, 50);
    console.press("2");
    let marked = console.id();
    console.press("v t r");
    let (_, operation) = planned(&mut console);
    assert!(matches!(&operation, Operation::Signal { episode, .. } if *episode == marked), "{operation:?}");
}

#[test]
fn what_one_confirmation_did_is_taken_back_at_once() {
    let mut console = unlocked(160, 50);
    console.press("5 v v c d");
    let (ticket, _) = proposed(&mut console);
    let made = plan("feedback.remove", ChangeDanger::Guarded, &removal());
    console.reply(ticket, Reply::Planned(Ok(Box::new(made))));
    console.wait();
    console.press("A");
    let (request, ..) = applied(&mut console);
    let receipts = vec![(0, receipt("feedback.remove", 7)), (1, receipt("feedback.remove", 8))];
    console.reply(request, Reply::Applied(None, AppliedPlan { receipts, refusal: None }));
    console.press("Z");
    let (_, proposal) = proposed(&mut console);
    assert_eq!(proposal.changes(), [Operation::Undo { seq: 8 }, Operation::Undo { seq: 7 }]);
}
