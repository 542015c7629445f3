//! The prune screen: rules that are set one by one, what they come to, and nothing done before it is confirmed; cases held
//! back from recall.

use mnemoscope::change::operation::{Operation, Pruning};
use mnemoscope::change::plan::{ChangeDanger, Plan};
use mnemoscope::console::core::{Effect, Reply, Request, RequestFailure, Ticket};
use mnemoscope::memory::prune::PruneWindow;
use serde_json::json;

use super::changes::{plan, planned, unlocked};
use super::fake::{Console, world};

/// Builds the plan of some pruning rules.
pub fn preview() -> Plan {
    let gone = |id: &str, day: u32, reward: f64, why: &str| {
        let at = format!("2026-01-{day:02}T10:00:00.000000Z");
        json!({"entity": "case", "id": id, "after": null, "before": {"created_at": at, "reward": reward, "why": why}})
    };
    let changes = json!([gone("case-7", 3, 0.1, "low reward"), gone("case-3", 2, 0.9, "outside the window")]);
    let mut plan = plan("prune", ChangeDanger::Guarded, &changes);
    plan.changes_total = 2;
    plan.counts = serde_json::from_value(json!({"agent_memory_cases": {"delete": 2, "update": 1}})).expect("counts");
    plan.effects =
        vec!["bank profile-1 (bot): 2 of 7 cases go, 5 stay (1 outside the window, 1 low reward)".to_owned()];
    plan.disclosures = vec!["1 bank has no window and every case is kept there".to_owned()];
    plan
}

/// The rules that are to be counted.
#[track_caller]
fn asked(console: &mut Console) -> (Ticket, Pruning) {
    let at = console.asked.iter().rposition(|effect| matches!(effect, Effect::Ask(_, Request::Preview(..))));
    match at.map(|at| console.asked.remove(at)) {
        Some(Effect::Ask(ticket, Request::Preview(operation))) => match *operation {
            Operation::Prune(rules) => (ticket, rules),
            other => panic!("{other:?}"),
        },
        _ => panic!("nothing is to be counted: {:?}", console.asked),
    }
}

/// Opens the screen and counts.
pub fn to_prune(console: &mut Console) {
    console.press("P");
    let (ticket, _) = asked(console);
    console.reply(ticket, Reply::Previewed(Ok(Box::new(preview()))));
}

fn at_prune(mut console: Console) -> Console {
    to_prune(&mut console);
    console
}

#[test]
fn each_step_of_a_rule_is_counted_anew_and_only_the_last_counts() {
    let mut console = at_prune(unlocked(160, 50));
    console.shows("2 cases go");
    console.shows("bank profile-1 (bot): 2 of 7 cases go");
    console.shows("case-7");
    console.press("l");
    let (first, rules) = asked(&mut console);
    assert_eq!(rules.window, PruneWindow::Own);
    console.shows("counting");
    console.holding = true;
    console.press("j space");
    assert!(console.held.contains(&Effect::Cancel(first)), "{:?}", console.held);
    console.holding = false;
    console.answer();
    let (second, rules) = asked(&mut console);
    assert_eq!((rules.window, rules.keep_diverse), (PruneWindow::Own, true));
    let mut empty = preview();
    (empty.changes, empty.changes_total) = (Vec::new(), 0);
    console.reply(first, Reply::Previewed(Ok(Box::new(empty.clone()))));
    console.shows("counting");
    console.reply(second, Reply::Previewed(Ok(Box::new(empty))));
    console.shows("These rules remove no case");
    console.press("h");
    let (_, rules) = asked(&mut console);
    assert!(!rules.keep_diverse);
    console.press("h");
    assert!(
        !console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Preview(..)))),
        "nothing changed"
    );
}

#[test]
fn what_would_go_is_scrolled_to_its_end_and_back() {
    let mut console = at_prune(Console::new(world(), 60, 20));
    assert!(!console.lines().join("\n").contains("case-3"));
    console.press("pgdn*9");
    console.shows("case-3");
    console.press("pgup*9");
    console.shows("2 cases go");
}

#[test]
fn the_rules_are_proposed_as_they_stand_and_their_command_is_copied() {
    let mut console = at_prune(unlocked(160, 50));
    console.press("l*3 j*2 l j l j space y c");
    let words = "mnemoscope -d memory/made-up.db prune --window 200 --older-than 365d --below-reward 0.1 --duplicates";
    assert!(console.asked.contains(&Effect::Copy("command".to_owned(), words.to_owned())), "{:?}", console.asked);
    console.press("a");
    let (ticket, operation) = planned(&mut console);
    let rules = Pruning {
        window: PruneWindow::Newest(200),
        older_than: Some("365d".to_owned()),
        below_reward: Some(0.1),
        duplicates: true,
        ..Pruning::default()
    };
    assert_eq!(operation, Operation::Prune(rules));
    console.reply(ticket, Reply::Planned(Ok(Box::new(preview()))));
    console.shows("Prune banks");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Apply { .. }))));
}

#[test]
fn nothing_is_pruned_while_it_is_locked_and_a_failure_is_told() {
    let mut console = at_prune(Console::new(world(), 160, 50));
    console.press("a enter");
    assert!(
        !console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..)))),
        "{:?}",
        console.asked
    );
    console.shows("U unlocks");
    console.press("l");
    let (ticket, _) = asked(&mut console);
    let failure = RequestFailure::new("Not done: Prune banks", "it is view-only", "migrate it");
    console.reply(ticket, Reply::Previewed(Err(failure)));
    console.shows("it is view-only");
    console.press("r");
    asked(&mut console);
}

#[test]
fn cases_are_held_back_and_let_go_by_two_keys() {
    let mut console = unlocked(160, 50);
    console.press("4 c q");
    let (ticket, operation) = planned(&mut console);
    let Operation::Quarantine { cases } = operation else { panic!("{operation:?}") };
    assert_eq!(cases.len(), 1);
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("quarantine", ChangeDanger::Guarded, &json!([]))))));
    console.press("esc v j v c Q");
    let (_, operation) = planned(&mut console);
    let Operation::Release { cases } = operation else { panic!("{operation:?}") };
    assert_eq!(cases.len(), 2);
}

#[test]
fn the_rules_are_narrowed_to_whom_the_selected_row_belongs_to() {
    let mut console = unlocked(160, 50);
    console.press("8 P");
    let (ticket, rules) = asked(&mut console);
    assert_eq!(rules, Pruning::default());
    console.reply(ticket, Reply::Previewed(Ok(Box::new(preview()))));
    console.shows("only this person");
    console.shows("none is selected");
    console.press("j j j j j l");
    let (_, rules) = asked(&mut console);
    assert!(rules.user.is_some_and(|user| !user.is_empty()));
    console.press("space");
    let (_, rules) = asked(&mut console);
    assert_eq!(rules, Pruning::default());
}

#[test]
fn no_rule_is_set_that_nobody_set() {
    for from in ["9 P", ": 'profiles' enter P"] {
        let mut console = unlocked(160, 50);
        console.press(from);
        let (_, rules) = asked(&mut console);
        assert_eq!(rules, Pruning::default(), "{from}");
    }
}
