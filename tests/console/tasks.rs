//! The tasks that an operator has every day, each in the fewest keys: counted from the named row or screen with the session
//! unlocked, typed words with their Enter apart.

use mnemoscope::change::operation::Operation;
use mnemoscope::change::plan::ChangeDanger;
use mnemoscope::change::plan::migration::PendingMigration;
use mnemoscope::change::plan::past::Moment;
use mnemoscope::change::plan::trail::{EntryFacts, ListedEntry};
use mnemoscope::console::core::request::{KnownDatabase, TriedDatabase};
use mnemoscope::console::core::{AppliedPlan, Effect, Proposal, Reply, Request, Ticket};
use mnemoscope::console::screens::browse::ListScreen;
use mnemoscope::console::screens::migrations::{MigrationItem, MigrationList, MigrationStanding};
use mnemoscope::console::screens::recall::RecallScreen;
use mnemoscope::job::plan::{JobBeat, JobState, JobWish};
use mnemoscope::memory::Entity;
use mnemoscope::memory::utility::Signal;
use serde_json::json;

use super::changes::{applied, plan, planned, proposed, receipt, removal, unlocked};
use super::erase;
use super::fake::{Console, asked};
use super::jobs::{offers, progress};
use super::prune::to_prune;

/// A task in progress, with the keys that it took.
struct Task {
    console: Console,
    keys: usize,
}

impl Task {
    fn begin() -> Self {
        Task { console: unlocked(160, 50), keys: 0 }
    }

    /// Goes to where a task begins.
    fn at(keys: &str) -> Self {
        let mut task = Task::begin();
        task.console.press(keys);
        task
    }

    /// Presses keys; a text with the Enter after it counts nothing.
    fn press(&mut self, keys: &str) {
        let mut typed = false;
        for (part, text) in keys.split('\'').enumerate() {
            if part % 2 == 1 {
                typed = true;
                continue;
            }
            for key in text.split_whitespace() {
                self.keys += usize::from(!(typed && key == "enter"));
                typed = false;
            }
        }
        self.console.press(keys);
        self.console.wait();
    }

    fn asked(&mut self, wanted: impl Fn(&Request) -> bool) -> (Ticket, Request) {
        asked(&mut self.console, wanted)
    }

    fn tell(&mut self, ticket: Ticket, reply: Reply) {
        self.console.reply(ticket, reply);
        self.console.wait();
    }

    /// The plan of what was asked for comes back; confirmed, it is applied as that entry of the trail.
    fn plan_comes(&mut self) -> Operation {
        let (ticket, operation) = planned(&mut self.console);
        self.tell(ticket, Reply::Planned(Ok(Box::new(plan("change", ChangeDanger::Guarded, &removal())))));
        operation
    }

    fn is_applied(&mut self, seq: i64) {
        let (request, _, reason) = applied(&mut self.console);
        let done = AppliedPlan { receipts: vec![(0, receipt("change", seq))], refusal: None };
        self.tell(request, Reply::Applied(reason, done));
    }

    #[track_caller]
    fn took(&self, most: usize) {
        assert!(self.keys <= most, "{} keys, {most} are the most", self.keys);
    }
}

#[test]
fn why_it_ranked_first() {
    let mut task = Task::at("2 j");
    task.press("W");
    task.console.shows("1");
    assert_eq!(
        task.console.model.at::<RecallScreen>().map(|recall| recall.inquiry.like.as_deref()),
        Some(Some("ep-1"))
    );
    task.took(3);
}

#[test]
fn a_wrong_thumbs_down_is_corrected() {
    let mut task = Task::begin();
    task.console.database.rows.insert(Entity::UtilityEvent, Vec::new());
    for row in task.console.database.rows.get_mut(&Entity::Feedback).expect("feedback") {
        row.set("kind", json!("thumbs_down"));
    }
    task.press("I x");
    let operation = task.plan_comes();
    assert!(matches!(operation, Operation::Edit { set, .. } if set["kind"] == "thumbs_up"));
    task.press("A");
    task.is_applied(5);
    task.console.shows("1 of 3 looked at");
    task.took(5);
}

#[test]
fn the_chain_is_followed_to_its_root() {
    let mut task = Task::at("2");
    task.press(". c");
    task.console.shows("Reconcile the October invoices");
    task.took(2);
}

#[test]
fn one_key_leads_to_the_root_of_a_chain() {
    let mut task = Task::at("2");
    task.press("^");
    task.console.shows("episode Reconcile the October invoices");
    task.took(1);
}

#[test]
fn the_parent_is_gone_to_and_the_chain_stays_in_sight() {
    let mut task = Task::at("2 enter . t");
    task.press("{");
    task.console.shows("chain");
    task.console.shows("Book the missing");
    task.console.shows("where are the two invoices?");
    task.took(1);
}

#[test]
fn the_failures_of_an_agent_that_used_a_sheet() {
    let mut task = Task::at("2");
    task.press("/ 'outcome = failure and agent_id = agent-books and started_at > 30d and canvas sheets' enter");
    let list = task.console.model.at::<ListScreen>().expect("a list");
    assert_eq!((list.conditions.filters.len(), list.conditions.canvas.is_some()), (3, true));
    task.took(1);
}

#[test]
fn the_largest_signal_of_an_episode() {
    let mut task = Task::at("2 j");
    task.press(". u");
    task.console.shows("largest");
    task.console.shows("confirmed");
    task.took(2);
}

#[test]
fn a_backfill_is_run_paused_and_resumed() {
    let mut task = Task::at("J");
    let (ticket, _) = task.asked(|request| *request == Request::LoadJobs);
    task.tell(ticket, Reply::Jobs(Ok(offers(None))));
    task.press("a");
    let (ticket, _) = proposed(&mut task.console);
    task.tell(ticket, Reply::Planned(Ok(Box::new(plan("backfill", ChangeDanger::Guarded, &removal())))));
    task.press("A");
    let (run, _) = task.asked(|request| matches!(request, Request::RunJob { resume: false, .. }));
    let running = JobBeat::Progress(Box::new(progress(JobState::Running, 500)));
    task.tell(run, Reply::JobBeat(running));
    task.press("p");
    assert!(task.console.asked.iter().any(|effect| matches!(effect, Effect::WishJob(_, JobWish::Pause))));
    let paused = progress(JobState::Paused, 500);
    task.tell(run, Reply::JobEnded(Ok(super::jobs::receipt("paused"))));
    let (ticket, _) = task.asked(|request| *request == Request::LoadJobs);
    task.tell(ticket, Reply::Jobs(Ok(offers(Some(paused)))));
    task.press("a");
    let (ticket, proposal) = proposed(&mut task.console);
    assert!(matches!(proposal, Proposal::Backfill { resume: true, .. }), "{proposal:?}");
    task.tell(ticket, Reply::Planned(Ok(Box::new(plan("backfill", ChangeDanger::Guarded, &removal())))));
    task.press("A");
    task.asked(|request| matches!(request, Request::RunJob { resume: true, .. }));
    task.took(6);
}

#[test]
fn migrations_are_applied() {
    let mut task = Task::begin();
    task.press("D");
    let (ticket, _) = task.asked(|request| *request == Request::LoadMigrations);
    let item = MigrationItem {
        migration: PendingMigration {
            name: "atom/0001_index".to_owned(),
            sql: "CREATE INDEX ix".to_owned(),
            ..PendingMigration::default()
        },
        standing: MigrationStanding::Pending,
        note: None,
        diff: String::new(),
        option: None,
    };
    task.tell(ticket, Reply::Migrations(Ok(Box::new(MigrationList { items: vec![item], ..MigrationList::default() }))));
    task.press("a");
    task.press("A");
    task.asked(|request| matches!(request, Request::Migrate(_)));
    task.took(3);
}

#[test]
fn a_bank_is_pruned_after_its_preview() {
    let mut task = Task::begin();
    to_prune(&mut task.console);
    task.keys += 1;
    task.console.shows("2 cases go");
    task.press("a");
    assert!(matches!(task.plan_comes(), Operation::Prune(_)));
    task.press("A");
    task.is_applied(5);
    task.took(6);
}

#[test]
fn a_person_is_erased_and_the_proof_read() {
    let mut task = Task::at("8");
    task.press("c p");
    let (ticket, given, _) = erase::asked(&mut task.console);
    task.tell(ticket, Reply::ErasurePlanned(Ok(Box::new(erase::preview(&given)))));
    task.press("l l l l l enter");
    task.press(&format!("'{given}' enter"));
    let (ticket, ..) = erase::runs(&mut task.console).expect("it is asked for");
    task.tell(ticket, Reply::Erased(Ok(Box::new(erase::outcome("verified")))));
    task.console.shows("verified");
    task.took(12);
}

#[test]
fn the_last_change_is_undone_and_seen() {
    let mut task = Task::at("5 j");
    task.console.press("c d");
    task.plan_comes();
    task.console.press("A");
    task.is_applied(5);
    task.press("Z");
    assert_eq!(task.plan_comes(), Operation::Undo { seq: 5 });
    task.press("A");
    task.is_applied(6);
    task.press("R");
    let (ticket, _) = task.asked(|request| matches!(request, Request::LoadTrail(_)));
    let entry = ListedEntry {
        seq: 6,
        at: "2026-02-04T10:00:00.000000Z".to_owned(),
        actor: "ann".to_owned(),
        action: "undo".to_owned(),
        facts: EntryFacts { undo_of: Some(5), ..EntryFacts::default() },
        ..ListedEntry::default()
    };
    task.tell(ticket, Reply::Trail(Ok(vec![entry])));
    task.console.shows("undo");
    task.took(3);
}

#[test]
fn the_trail_is_verified() {
    let mut task = Task::begin();
    task.press("C");
    task.asked(|request| *request == Request::VerifyTrail);
    task.took(2);
}

#[test]
fn what_a_filter_leaves_is_exported() {
    let mut task = Task::at("2 / 'outcome = success' enter");
    task.press("e enter");
    let (_, request) = task.asked(|request| matches!(request, Request::Export(_)));
    assert!(matches!(request, Request::Export(export) if export.query.filters.len() == 1));
    task.took(2);
}

#[test]
fn another_database_is_gone_to() {
    let mut task = Task::at("2");
    task.press("ctrl-o");
    let (ticket, _) = task.asked(|request| *request == Request::LoadDatabases);
    let known = KnownDatabase {
        name: "other.db".to_owned(),
        note: String::new(),
        looked: None,
        production: false,
        open: "other.db".to_owned(),
    };
    task.tell(ticket, Reply::Databases(vec![known]));
    task.press("enter");
    let (ticket, _) = task.asked(|request| matches!(request, Request::TryDatabase(_)));
    task.tell(ticket, Reply::Tried(Ok(TriedDatabase { location: "/srv/other.db".to_owned(), replaces: false })));
    assert!(task.console.asked.iter().any(|effect| matches!(effect, Effect::Switch(_))));
    task.took(2);
}

#[test]
fn two_rows_are_compared() {
    let mut task = Task::at("2");
    task.press("v v =");
    task.console.shows("differ");
    task.took(3);
}

#[test]
fn the_list_as_of_last_week() {
    let mut task = Task::begin();
    task.press("2 @ '7d' enter");
    let (_, request) = task.asked(|request| matches!(request, Request::LookBack(_)));
    assert!(matches!(request, Request::LookBack(Some(Moment::Time(_)))));
    task.took(3);
}

#[test]
fn the_newest_rows_are_followed() {
    let mut task = Task::at("2 j");
    task.press("space");
    assert!(task.console.model.at::<ListScreen>().expect("a list").live.follows);
    task.took(1);
}

#[test]
fn a_signal_is_given_to_the_marked_rows_as_one_plan() {
    let mut task = Task::at("2");
    task.press("v v t c");
    let (_, proposal) = proposed(&mut task.console);
    assert_eq!(proposal.changes().len(), 2);
    assert!(
        proposal.changes().iter().all(|change| matches!(change, Operation::Signal { signal: Signal::Confirmed, .. }))
    );
    task.took(4);
}
