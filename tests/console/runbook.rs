//! The work of a session: `Z` takes it back, and `y r` copies it as a script that another database can run.

use mnemoscope::change::operation::Operation;
use mnemoscope::change::plan::ChangeDanger;
use mnemoscope::change::plan::migration::PendingMigration;
use mnemoscope::console::core::{AppliedPlan, Effect, Proposal, Reply, Request, Ticket};
use mnemoscope::console::overlays::unlock::WriteState;
use mnemoscope::job::plan::{JobReceipt, JobState};
use mnemoscope::memory::utility::Signal;

use super::changes::{entry, plan, proposed, receipt, removal, unlocked};
use super::fake::{Console, asked, world};
use super::jobs::{progress, receipt as job_receipt, started};
use super::kept::copied;
use super::triage::carried_out;
use super::{changes, erase};

/// The lines of the script that `y r` copies, without its head.
#[track_caller]
fn script(console: &mut Console) -> Vec<String> {
    console.asked.retain(|effect| !matches!(effect, Effect::Copy(..)));
    console.press("y r");
    let (_, text) = copied(console);
    let lines = text.strip_prefix("#!/bin/sh\nset -eu\n").expect("a script");
    lines.lines().map(|line| line.replace("mnemoscope -d memory/made-up.db ", "")).collect()
}

#[test]
fn a_change_that_was_undone_is_in_no_script_and_neither_is_its_undo() {
    let mut console = unlocked(160, 50);
    console.press("2 t c");
    let signal = carried_out(&mut console, ChangeDanger::Safe, 4);
    assert!(matches!(signal, Operation::Signal { signal: Signal::Confirmed, .. }));
    console.press("Z");
    assert_eq!(carried_out(&mut console, ChangeDanger::Guarded, 5), Operation::Undo { seq: 4 });
    console.press("y r");
    console.shows("no change of this session is left");
    console.press("5 j c d");
    carried_out(&mut console, ChangeDanger::Guarded, 6);
    assert_eq!(script(&mut console), ["feedback remove fb-1 --apply"]);
    // The undo is undone: the signal is current again.
    console.press("R");
    let (ticket, _) = asked(&mut console, |request| matches!(request, Request::LoadTrail(None)));
    let entries = vec![
        entry(6, "feedback.remove", None),
        entry(5, "undo", Some(4)),
        entry(4, "signal", None),
        entry(2, "signal", None),
    ];
    console.reply(ticket, Reply::Trail(Ok(entries)));
    console.press("j u");
    assert_eq!(carried_out(&mut console, ChangeDanger::Guarded, 7), Operation::Undo { seq: 5 });
    let lines = script(&mut console);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("signal ") && lines[1] == "feedback remove fb-1 --apply", "{lines:?}");
    console.press("Z");
    let (ticket, proposal) = proposed(&mut console);
    assert_eq!(proposal, Proposal::from(Operation::Undo { seq: 6 }));
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("undo", ChangeDanger::Guarded, &removal())))));
    console.wait();
    console.press("esc");
}

#[test]
fn the_undo_of_an_earlier_change_is_only_told_of_in_a_script() {
    let mut console = unlocked(160, 50);
    console.press("2 t c");
    carried_out(&mut console, ChangeDanger::Safe, 4);
    console.press("R");
    let (ticket, _) = asked(&mut console, |request| matches!(request, Request::LoadTrail(None)));
    let entries = vec![entry(4, "signal", None), entry(2, "signal", None)];
    console.reply(ticket, Reply::Trail(Ok(entries)));
    console.press("j u");
    assert_eq!(carried_out(&mut console, ChangeDanger::Guarded, 5), Operation::Undo { seq: 2 });
    let lines = script(&mut console);
    assert!(lines[0].starts_with("signal "), "{lines:?}");
    assert!(lines[1..].iter().all(|line| line.starts_with("# ")), "{lines:?}");
    assert!(lines[1..].iter().any(|line| line.contains("undo 2 --apply")), "{lines:?}");
}

/// Ends a job that wrote these entries.
fn job_ends(console: &mut Console, ticket: Ticket, state: JobState, written: Vec<i64>) {
    let mut done: JobReceipt = *job_receipt(if state == JobState::Succeeded { "applied" } else { state.word() });
    done.receipt.undo = Some("mnemoscope undo 8 --apply".to_owned());
    (done.job, done.written) = (progress(state, 1_000), written);
    console.reply(ticket, Reply::JobEnded(Ok(Box::new(done))));
    console.wait();
}

#[test]
fn a_job_is_undone_as_the_last_change_and_is_a_line_of_the_script() {
    let (mut console, ticket) = started();
    job_ends(&mut console, ticket, JobState::Succeeded, vec![7, 9]);
    assert_eq!(script(&mut console), ["backfill canvas-links --apply"]);
    console.press("Z");
    let (ticket, proposal) = proposed(&mut console);
    assert_eq!(proposal, Proposal::Changes(vec![Operation::Undo { seq: 9 }, Operation::Undo { seq: 7 }]));
    console.reply(ticket, Reply::Planned(Ok(Box::new(plan("undo", ChangeDanger::Guarded, &removal())))));
    console.wait();
    console.press("A");
    let (request, _, reason) = changes::applied(&mut console);
    let receipts = vec![(0, receipt("undo", 10)), (1, receipt("undo", 11))];
    console.reply(request, Reply::Applied(reason, AppliedPlan { receipts, refusal: None }));
    console.hides("Z undo");
    console.press("y r");
    console.shows("no change of this session is left");
    console.press("Z");
    console.shows("nothing that was done in this session can be undone");
}

#[test]
fn a_job_that_is_not_finished_is_only_told_of_in_a_script() {
    let (mut console, ticket) = started();
    job_ends(&mut console, ticket, JobState::Paused, vec![7]);
    console.press("y r");
    console.shows("no change of this session is left");
    console.press("2 t c");
    carried_out(&mut console, ChangeDanger::Safe, 8);
    let lines = script(&mut console);
    assert_eq!(
        lines[..2],
        ["# canvas-links was not finished; this would run all of it:", "# backfill canvas-links --apply"]
    );
    assert!(lines[2].starts_with("signal "), "{lines:?}");
}

#[test]
fn migrations_are_in_the_script() {
    let mut console = Console::new(world(), 160, 50);
    console.press("U");
    let (ticket, _) = asked(&mut console, |request| *request == Request::CheckWritable);
    let pending = PendingMigration {
        name: "0001_audit".to_owned(),
        sql: "CREATE TABLE memory_audit (seq INTEGER)".to_owned(),
        lock_risk: "none".to_owned(),
        effect: "changes can be made".to_owned(),
        ..PendingMigration::default()
    };
    let writable = WriteState { pending: vec![pending], ..WriteState::default() };
    console.reply(ticket, Reply::Writable(Ok(writable)));
    console.wait();
    console.press("A");
    let (ticket, _) = asked(&mut console, |request| matches!(request, Request::Migrate(_)));
    let opened = Box::new(console.model.context.opened.clone());
    console.reply(ticket, Reply::Migrated(Ok((vec!["0001_audit".to_owned()], opened))));
    assert_eq!(script(&mut console), ["migrate --apply"]);
    console.press("Z");
    console.shows("nothing that was done in this session can be undone");
}

#[test]
fn an_erasure_is_told_to_be_left_out_of_the_script_and_is_not_undone() {
    let (mut console, id) = erase::opened(unlocked(140, 45));
    console.press("l l l l l enter");
    console.wait();
    console.press(&format!("'{id}' enter"));
    let (ticket, ..) = erase::runs(&mut console).expect("it is asked for");
    console.reply(ticket, Reply::Erased(Ok(Box::new(erase::outcome("verified")))));
    console.wait();
    console.press("y r");
    console.shows("this session only erased a person");
    console.press("Z");
    console.shows("Erase a person, the last change, cannot be undone");
    console.press("2 t c");
    carried_out(&mut console, ChangeDanger::Safe, 10);
    let lines = script(&mut console);
    assert!(lines[0].starts_with("# A person was erased") && !lines[0].contains(&id), "{lines:?}");
    assert!(lines[1].starts_with("signal "), "{lines:?}");
}
