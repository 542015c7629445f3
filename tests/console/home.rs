//! The first screen: what happened since someone looked last, what waits, the newest by name, and every line leads
//! somewhere.

use mnemoscope::change::plan::past::AsOf;
use mnemoscope::console::core::zone::ShownZone;
use mnemoscope::console::core::{Destination, Reply, Request, ScreenKind};
use mnemoscope::console::screens::browse::ListScreen;
use mnemoscope::console::screens::home::HomeScreen;
use mnemoscope::console::screens::home::messages::{WaitingFeedback, WaitingWork};
use mnemoscope::job::plan::{JobProgress, JobState};
use mnemoscope::memory::{Entity, Problem, Row};
use serde_json::json;

use super::fake::{Console, Database, asked, many, now, row, world};
use super::jobs::progress;

/// A first screen where something waits.
fn waiting(width: u16, height: u16) -> Console {
    let mut console = Console::new(world(), width, height);
    let oldest = (now() - chrono::Duration::days(3)).format("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    console.work = WaitingWork {
        feedback: Some(WaitingFeedback { count: 12, more: false, oldest: Some(oldest) }),
        jobs: vec![JobProgress { name: "links".to_owned(), ..progress(JobState::Paused, 80) }],
        holds: 2,
        trail: Some((42, "2026-02-03T12:00:00.000000Z".to_owned())),
    };
    console.press("r");
    console
}

#[test]
fn what_waits_says_how_much_how_old_and_leads_there() {
    let mut console = waiting(100, 30);
    console.shows("feedback to judge");
    console.shows("the oldest 3d ago");
    console.shows("links paused");
    console.shows("people on hold");
    console.shows("changes made here");
    console.press("enter");
    assert_eq!(console.model.crumbs().last().map(String::as_str), Some("inbox"));
}

#[test]
fn every_line_is_a_target_and_tab_reaches_every_part() {
    let mut console = waiting(80, 24);
    let parts = console.model.at::<HomeScreen>().expect("the first screen").parts(&console.model.context);
    let mut starts: Vec<usize> =
        (0..parts.len()).filter(|at| !parts[*at].is_empty()).map(|at| parts[..at].iter().map(Vec::len).sum()).collect();
    // The screens come last.
    starts.push(parts.iter().map(Vec::len).sum());
    assert!(starts.len() >= 3, "{parts:?}");
    for start in starts.iter().skip(1).chain([&0]) {
        console.press("tab");
        assert_eq!(console.model.at::<HomeScreen>().expect("the first screen").selected, *start);
    }
    // Each count of the inventory leads to its list.
    console.click("episodes 2");
    console.press("enter");
    assert_eq!(console.model.at::<ListScreen>().map(|list| list.entity), Some(Entity::Episode));
}

#[test]
fn the_first_lines_fit_a_small_terminal() {
    let mut console = waiting(80, 24);
    for text in ["your first visit", "needs you", "feedback to judge", "holds", "newest episodes"] {
        console.shows(text);
    }
}

#[test]
fn since_somebody_looked_is_told_beside_as_long_before() {
    let mut console = Console::new(many(60), 120, 40);
    // Episode 59 began at minute 59: ten rows since minute 50, ten in as long before.
    let looked = "2026-01-01T00:50:00.000000Z";
    console.model.context.opened.looked = Some(looked.to_owned());
    console.model.context.now = chrono::DateTime::from_timestamp(1_767_229_200, 0).expect("a time");
    console.press("r");
    let since =
        console.model.at::<HomeScreen>().and_then(|home| home.since(&console.model.context)).expect("it was read");
    let failed = (50..60).filter(|number| number % 7 == 0).count();
    let before = (40..50).filter(|number| number % 7 == 0).count();
    assert_eq!((since.count, since.failed), (10, failed));
    assert_eq!(since.before.map(|(failed, _)| failed), Some(before));
    console.shows("since you looked, 2026-01-01 00:50");
    console.shows("+10 episodes started");
}

#[test]
fn the_newest_are_told_by_age_and_by_name() {
    let mut console = Console::new(world(), 160, 50);
    let line = console.lines().into_iter().find(|line| line.contains("2h") && line.contains("Book the missing"));
    assert!(line.is_some_and(|line| line.contains("Ada Lovelace")), "{}", console.text());
    // The age moves with the clock.
    console.tell(mnemoscope::console::core::Message::Tick(now() + chrono::Duration::hours(2)));
    console.shows("4h");
}

#[test]
fn the_selected_line_stays_when_others_come_before_it() {
    let mut console = Console::new(world(), 100, 40);
    console.press("tab j");
    let at = |console: &Console| {
        let home = console.model.at::<HomeScreen>().expect("the first screen");
        home.entries(&console.model.context)[home.selected].clone()
    };
    let selected = at(&console);
    console.work.holds = 3;
    console.press("r");
    assert_eq!(at(&console), selected);
    assert!(matches!(selected, Destination::List(..) | Destination::Row(..)));
}

#[test]
fn the_newest_follow_what_is_written_with_one_key() {
    let mut console = Console::new(world(), 120, 40);
    console.beat();
    let at = now().format("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    let fresh =
        row(Entity::Episode, &[("id", json!("new")), ("title", json!("Written meanwhile")), ("started_at", json!(at))]);
    console.database.rows.entry(Entity::Episode).or_default().push(fresh);
    console.beat();
    console.shows("1 new");
    console.hides("Written meanwhile");
    console.press("space");
    console.shows("Written meanwhile");
    console.shows("live");
}

#[test]
fn where_nothing_waits_it_says_so() {
    let mut console = Console::new(world(), 100, 30);
    console.shows("nothing waits");
    let needs = console.model.at::<HomeScreen>().expect("the first screen").needs(&console.model.context);
    assert!(needs.iter().all(|need| need.to != Destination::Panel(ScreenKind::Inbox)));
}

#[test]
fn outcomes_are_counted_week_by_week_from_monday() {
    let mut database = many(4);
    let episodes = database.rows.get_mut(&Entity::Episode).expect("episodes");
    // A Sunday and the Monday after it; Friday of the week after.
    let begun = ["2026-01-04T23:59:00.000000Z", "2026-01-05T00:00:00.000000Z", "2026-01-05T09:00:00.000000Z"];
    for (row, at) in episodes.iter_mut().zip(begun.into_iter().chain(["2026-01-16T09:00:00.000000Z"])) {
        row.set("started_at", at.into());
    }
    let mut console = Console::new(database, 200, 50);
    let weeks = console.model.at::<HomeScreen>().expect("the first screen").weeks();
    let wanted = [("01-12", [1, 0, 0, 0]), ("01-05", [2, 0, 0, 0]), ("12-29", [0, 0, 1, 0])];
    assert_eq!(weeks, wanted.map(|(week, counts)| (week.to_owned(), counts)));
    console.shows("from 01-05");
}

#[test]
fn a_count_is_never_cut_and_says_where_there_are_more() {
    for (width, height) in [(200, 50), (100, 30), (60, 20), (44, 14)] {
        let mut console = waiting(width, height);
        console.work.feedback = Some(WaitingFeedback { count: 981_182, more: true, oldest: None });
        console.press("r");
        console.shows("981,182+");
    }
}

#[test]
fn nothing_of_now_stands_beside_rows_of_the_past() {
    for (width, height) in [(200, 50), (100, 30)] {
        let mut console = waiting(width, height);
        console.model.context.opened.looked = Some("2026-01-01T00:50:00.000000Z".to_owned());
        console.press("@ '7d' enter");
        let (ticket, _) = asked(&mut console, |request| matches!(request, Request::LookBack(_)));
        let at = "2026-01-28T11:00:00.000000Z".to_owned();
        let as_of = AsOf { at, seq: None, taken_back: 0, unknown: Vec::new() };
        console.reply(ticket, Reply::LookedBack(Ok(Some(Box::new(as_of)))));
        console.press("enter");
        console.shows("as of 2026-01-28");
        for text in
            ["needs you", "feedback to judge", "since you looked", "episodes 2", "episodes \u{2013}", "nothing waits"]
        {
            console.hides(text);
        }
        console.shows("Book the missing");
    }
}

#[test]
fn every_outcome_is_counted() {
    let words = ["success", "partial", "failure", "aborted", "ongoing", "deferred", "skipped", "skipped"];
    let mut database = many(words.len());
    for (row, word) in database.rows.get_mut(&Entity::Episode).expect("episodes").iter_mut().zip(words) {
        row.set("outcome", word.into());
    }
    let mut console = Console::new(database, 200, 50);
    console.shows("and 2 more outcomes, of 2 rows");
}

#[test]
fn what_stands_out_agrees_with_its_number() {
    let mut database = world();
    let episodes = database.rows.get_mut(&Entity::Episode).expect("episodes");
    let problem =
        |column: &str| Problem { column: column.to_owned(), problem: "no time".to_owned(), raw: "?".to_owned() };
    episodes[0].problems.push(problem("ended_at"));
    let mut console = Console::new(database.clone(), 140, 40);
    console.shows("1 episode holds a value that cannot be read");
    database.rows.get_mut(&Entity::Episode).expect("episodes")[1].problems.push(problem("ended_at"));
    let mut console_of_two = Console::new(database, 140, 40);
    console_of_two.shows("2 episodes hold a value that cannot be read");
}

#[test]
fn times_are_of_the_zone_that_the_first_line_names() {
    for (width, height) in [(160, 50), (100, 30), (60, 20)] {
        let mut console = Console::new(many(60), width, height);
        console.model.context.settings.zone = ShownZone::new(vec![(0, -18_000)]);
        console.model.context.opened.looked = Some("2026-01-01T00:50:00.000000Z".to_owned());
        console.press("r");
        console.shows("UTC-05:00");
        console.shows("since you looked, 2025-12-31 19:50");
        console.hides("19:50 UTC");
    }
}

#[test]
fn a_visit_begins_with_what_the_one_before_read() {
    let mut console = waiting(100, 40);
    console.press("2");
    console.holding = true;
    console.press("1");
    let line = |console: &mut Console| console.lines().iter().position(|line| line.contains("feedback to judge"));
    let before = line(&mut console);
    assert!(before.is_some(), "{}", console.text());
    console.shows("Book the missing");
    let home = console.model.at::<HomeScreen>().expect("the first screen");
    assert!(home.aged && home.work_aged, "it is read again");
    console.holding = false;
    console.answer();
    let home = console.model.at::<HomeScreen>().expect("the first screen");
    assert!(!home.aged && !home.work_aged);
    assert_eq!(line(&mut console), before, "nothing moved");
}

/// The entries of what stands out, each with how many rows its list holds.
fn standouts(database: &Database) -> Vec<(usize, usize)> {
    let console = Console::new(database.clone(), 140, 40);
    let home = console.model.at::<HomeScreen>().expect("the first screen");
    let listed = |to: &Destination| match to {
        Destination::List(entity, conditions) => {
            let holds = |row: &&Row| conditions.filters.iter().all(|filter| filter.matches(row));
            database.rows[entity].iter().filter(holds).count()
        }
        other => panic!("{other:?}"),
    };
    home.standouts().iter().map(|standout| (standout.count, listed(&standout.to))).collect()
}

#[test]
fn a_count_of_the_newest_leads_to_as_many_rows() {
    let database = many(1_000);
    let found = standouts(&database);
    assert!(found.len() >= 2 && found.iter().all(|(count, listed)| count == listed), "{found:?}");
    // Some of the rows that are not read are as old as the oldest that is.
    let mut coarse = database;
    for (number, row) in coarse.rows.get_mut(&Entity::Episode).expect("episodes").iter_mut().enumerate() {
        row.set("started_at", json!(format!("2026-01-{:02}T00:00:00.000000Z", number / 90 + 1)));
    }
    let found = standouts(&coarse);
    assert!(found.len() >= 2 && found.iter().all(|(count, listed)| count == listed), "{found:?}");
    Console::new(coarse, 140, 40).shows("of the newest 370 episodes");
}

#[test]
fn pending_migrations_say_which_of_them_touch_the_memory() {
    let mut console = Console::new(world(), 100, 40);
    let mut shows = |pending: &[&str], text: &str| {
        let status = console.model.context.status.as_mut().expect("it was read");
        status.migrations.pending = pending.iter().map(|name| (*name).to_owned()).collect();
        console.shows(text);
    };
    shows(&["0001_audit", "0002_jobs"], "2  migrations pending  add tables beside the memory");
    shows(&["atom/0001_index"], "1  migration pending  atom/0001_index touches the memory's tables");
    shows(
        &["0001_audit", "atom/0001_index"],
        "2  migrations pending  atom/0001_index touches the memory's tables; the",
    );
}

#[test]
fn a_week_of_which_rows_were_not_read_is_no_bar_and_its_days_are_no_empty_days() {
    let mut database = many(900);
    for (number, row) in database.rows.get_mut(&Entity::Episode).expect("episodes").iter_mut().enumerate() {
        // Thirty a day from Thursday, 1 January on; the newest 400 begin within Saturday, 17 January.
        row.set("started_at", json!(format!("2026-01-{:02}T{:02}:00:{:02}.000000Z", number / 30 + 1, 9, number % 30)));
    }
    let mut console = Console::new(database, 200, 50);
    let weeks = console.model.at::<HomeScreen>().expect("the first screen").weeks();
    let sums: Vec<(&str, usize)> = weeks.iter().map(|(week, counts)| (week.as_str(), counts.iter().sum())).collect();
    assert_eq!(sums, [("01-26", 150), ("01-19", 210)]);
    // Saturday is cut, and all before it is not known.
    let days: Vec<String> = console.lines().into_iter().filter(|line| line.contains(" Wed ")).collect();
    assert!(!days.is_empty() && days.iter().all(|line| !line.contains("Wed ·")), "{days:?}");
}

#[test]
fn the_screens_are_a_part_that_opens_them() {
    for (width, height) in [(80, 24), (200, 50)] {
        let mut console = waiting(width, height);
        let is_there = |console: &Console| {
            let home = console.model.at::<HomeScreen>().expect("the first screen");
            home.selected >= home.entries(&console.model.context).len()
        };
        (0..5).for_each(|_| {
            if !is_there(&console) {
                console.press("tab");
            }
        });
        assert!(is_there(&console));
        // More that waits comes before the selected one.
        console.work.holds = 0;
        console.work.trail = None;
        console.press("r enter");
        assert_eq!(console.model.crumbs().last().map(String::as_str), Some("findings"));
    }
}
