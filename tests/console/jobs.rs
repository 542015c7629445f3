//! Jobs in the console: proposed, started after a yes, told to stop, shown on every screen, and not left behind.

use mnemoscope::change::plan::{ChangeDanger, Counts, Receipt};
use mnemoscope::console::core::{Effect, Message, Proposal, Reply, Request, RequestFailure, Ticket};
use mnemoscope::job::plan::{JobBeat, JobCheck, JobOffer, JobProgress, JobReceipt, JobState, JobWish};
use serde_json::json;

use super::changes::{plan, proposed, removal, unlock};
use super::fake::{Console, world};

pub fn progress(state: JobState, seen: u64) -> JobProgress {
    JobProgress {
        id: "j-1".to_owned(),
        name: "canvas-links".to_owned(),
        state,
        total: Some(1_000),
        seen,
        changed: seen / 2,
        quarantined: 0,
        batches: seen / 100,
        batch: 100,
        rate: (seen >= 300).then_some(250.0),
        eta_seconds: (seen >= 300).then(|| (1_000 - seen) as f64 / 250.0),
        throttle: None,
        owner: Some("process 7 on desk".to_owned()),
        alive: true,
        problem: None,
        updated_at: "2026-02-04T10:00:00.000000Z".to_owned(),
    }
}

pub fn receipt(status: &str) -> Box<JobReceipt> {
    let receipt = Receipt {
        receipt_id: "r-1".to_owned(),
        plan_id: "j-1".to_owned(),
        operation: "backfill.canvas-links".to_owned(),
        status: status.to_owned(),
        counts: Counts::new(),
        changes: Vec::new(),
        changes_total: 0,
        effects: Vec::new(),
        disclosures: Vec::new(),
        applied_at: "2026-02-04T10:00:00.000000Z".to_owned(),
        audit_seq: None,
        undo: None,
        undo_reason: None,
    };
    Box::new(JobReceipt {
        receipt,
        job: progress(JobState::Succeeded, 1_000),
        verification: Vec::new(),
        quarantine: Vec::new(),
        audit_entries: None,
        anchor_problem: None,
        written: Vec::new(),
    })
}

pub fn offers(run: Option<JobProgress>) -> Vec<JobOffer> {
    let offer = |name: &str, reason: Option<&str>, run| JobOffer {
        name: name.to_owned(),
        does: format!("does what {name} do"),
        available: reason.is_none(),
        reason: reason.map(str::to_owned),
        looks_at: reason.is_none().then_some(1_000),
        run,
    };
    vec![offer("canvas-links", None, run), offer("rewards", Some("there are no cases here"), None)]
}

/// A console on the screen of jobs.
fn at_jobs(run: Option<JobProgress>) -> Console {
    let mut console = Console::new(world(), 150, 40);
    unlock(&mut console);
    console.press("J");
    told(&mut console, run);
    console
}

fn told(console: &mut Console, run: Option<JobProgress>) {
    let at = console.asked.iter().position(|e| matches!(e, Effect::Ask(_, Request::LoadJobs))).expect("jobs are read");
    let Effect::Ask(ticket, Request::LoadJobs) = console.asked.remove(at) else { panic!() };
    console.reply(ticket, Reply::Jobs(Ok(offers(run))));
    console.draw();
}

#[test]
fn no_column_of_the_list_gives_way_to_the_details() {
    for width in (80..=200).step_by(5) {
        let mut console = Console::new(world(), width, 40);
        console.press("J");
        told(&mut console, None);
        console.shows("looks at");
    }
}

/// A job that runs.
pub fn started() -> (Console, Ticket) {
    let mut console = at_jobs(None);
    console.press("a");
    let (ticket, operation) = proposed(&mut console);
    assert_eq!(operation, Proposal::Backfill { name: "canvas-links".to_owned(), resume: false });
    console
        .reply(ticket, Reply::Planned(Ok(Box::new(plan("backfill.canvas-links", ChangeDanger::Guarded, &removal())))));
    console.shows("Run canvas-links");
    console.wait();
    console.press("A");
    let run = console.asked.iter().find_map(|effect| match effect {
        Effect::Ask(ticket, Request::RunJob { resume: false, .. }) => Some(*ticket),
        _ => None,
    });
    (console, run.expect("it is started"))
}

#[test]
fn a_job_is_started_after_its_plan_was_confirmed_and_shows_how_it_goes() {
    let (mut console, ticket) = started();
    console.reply(ticket, Reply::JobBeat(JobBeat::Progress(Box::new(progress(JobState::Running, 200)))));
    console.shows("20%");
    console.hides("left");
    console.reply(ticket, Reply::JobBeat(JobBeat::Progress(Box::new(progress(JobState::Running, 500)))));
    console.shows("50%");
    console.shows("250/s");
    console.shows("2s left");
    console.press("2");
    console.shows("canvas-links 50% running");
    let check = JobCheck { what: "rows that still need it".to_owned(), ok: true, found: "none".to_owned() };
    let undo = Some("mnemoscope undo 7 --apply".to_owned());
    let mut receipt = receipt("applied");
    (receipt.verification, receipt.receipt.undo) = (vec![check], undo);
    console.reply(ticket, Reply::JobEnded(Ok(receipt)));
    console.shows("canvas-links: applied");
    console.press("J");
    told(&mut console, Some(progress(JobState::Succeeded, 1_000)));
    console.shows("rows that still need it: none");
    console.shows("undo 7");
}

fn plans(console: &Console) -> bool {
    console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(..) | Request::RunJob { .. })))
}

#[test]
fn nothing_is_started_while_it_is_locked_or_cannot_be_done() {
    let mut console = Console::new(world(), 150, 40);
    console.press("J");
    told(&mut console, None);
    console.press("a");
    assert!(!plans(&console), "{:?}", console.asked);
    console.shows("U unlocks");
    let mut console = at_jobs(None);
    console.press("j a");
    assert!(!plans(&console), "{:?}", console.asked);
    console.shows("there are no cases here");
}

#[test]
fn a_running_job_pauses_and_a_paused_one_is_gone_on_with() {
    let (mut console, ticket) = started();
    console.press("p");
    assert!(console.asked.contains(&Effect::WishJob(ticket, JobWish::Pause)));
    let mut console = at_jobs(Some(progress(JobState::Paused, 400)));
    console.shows("paused 40%");
    console.press("a");
    let (_, operation) = proposed(&mut console);
    assert_eq!(operation, Proposal::Backfill { name: "canvas-links".to_owned(), resume: true });
}

#[test]
fn a_job_ends_only_after_a_question() {
    let (mut console, ticket) = started();
    let ends = Effect::WishJob(ticket, JobWish::Cancel);
    console.press("d enter");
    assert!(!console.asked.contains(&ends), "the first entry keeps it");
    console.wait();
    console.press("d");
    console.shows("End canvas-links?");
    console.press("down enter");
    assert!(console.asked.contains(&ends), "{:?}", console.asked);
}

#[test]
fn a_run_with_nothing_left_to_write_is_resumed_to_its_end() {
    let mut console = at_jobs(Some(progress(JobState::Paused, 1_000)));
    console.press("a");
    let (ticket, _) = proposed(&mut console);
    let mut empty = plan("backfill.canvas-links", ChangeDanger::Guarded, &removal());
    (empty.changes_total, empty.counts) = (0, Counts::default());
    (empty.changes, empty.mutations) = (Vec::new(), Vec::new());
    console.reply(ticket, Reply::Planned(Ok(Box::new(empty))));
    let resumes = |effect: &Effect| matches!(effect, Effect::Ask(_, Request::RunJob { resume: true, .. }));
    assert!(console.asked.iter().any(resumes), "{:?}", console.asked);
}

#[test]
fn a_job_of_another_process_is_asked_through_the_database() {
    let mut console = at_jobs(Some(progress(JobState::Running, 400)));
    console.press("a");
    console.shows("already running, started by process 7 on desk");
    console.press("p");
    let Some(Effect::Ask(ticket, Request::AskJob(name, _))) = console.asked.last().cloned() else { panic!() };
    assert_eq!(name, "canvas-links");
    let failure = RequestFailure::new("Not done: canvas-links", "someone else is writing", "try again");
    console.reply(ticket, Reply::JobAsked(Err(failure)));
    console.shows("someone else is writing");
}

#[test]
fn quitting_asks_while_a_job_runs() {
    for (choice, leaves) in [("enter", false), ("down enter", true), ("down down enter", true)] {
        let (mut console, ticket) = started();
        console.asked.clear();
        console.press("q");
        assert!(!console.asked.contains(&Effect::Quit));
        console.shows("canvas-links is running");
        console.shows("backfill resume canvas-links");
        console.press(choice);
        assert_eq!(console.asked.contains(&Effect::WishJob(ticket, JobWish::Pause)), leaves, "{choice}");
        console.reply(ticket, Reply::JobEnded(Ok(receipt("paused"))));
        assert_eq!(console.asked.contains(&Effect::Quit), leaves, "{choice}");
        let told =
            console.asked.iter().any(|e| matches!(e, Effect::Tell(lines) if lines[0].ends_with("resume canvas-links")));
        assert_eq!(told, choice == "down down enter");
    }
    let (mut console, _) = started();
    console.press("ctrl-c ctrl-c");
    assert!(console.asked.contains(&Effect::Quit), "who insists is let out");
}

#[test]
fn pictures() {
    let (mut console, ticket) = started();
    let mut run = progress(JobState::Running, 500);
    run.throttle = Some("a replica lags 12 s behind".to_owned());
    console.reply(ticket, Reply::JobBeat(JobBeat::Progress(Box::new(run))));
    for (width, height) in [(150, 30), (80, 24)] {
        console.tell(Message::Resize(width, height));
        let text = console.text();
        insta::assert_snapshot!(format!("jobs-{width}x{height}"), text);
    }
}

#[test]
fn a_plan_names_the_parents_that_it_sets() {
    let mut console = at_jobs(None);
    console.press("a");
    let (ticket, _) = proposed(&mut console);
    let change =
        json!([{"entity": "episode", "id": "ep-2", "before": {"parent_id": null}, "after": {"parent_id": "ep-1"}}]);
    let told = plan("backfill.parents", ChangeDanger::Guarded, &change);
    console.reply(ticket, Reply::Planned(Ok(Box::new(told))));
    console.shows("Reconcile the October invoices  ep-1");
}
