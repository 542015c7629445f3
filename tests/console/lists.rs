//! Lists that read: columns as wide as their values, names in the place of ids, panes that can be resized; and lists that
//! tell what others write meanwhile.

use std::collections::VecDeque;

use mnemoscope::console::core::zone::ShownZone;
use mnemoscope::console::core::{Effect, Message, Request, RequestFailure};
use mnemoscope::console::screens::browse::ListScreen;
use mnemoscope::memory::Entity;
use serde_json::json;

use super::fake::{Console, learned, many, now, row, world};

/// The line of the list that shows a text.
fn line_of(console: &mut Console, text: &str) -> String {
    let found = console.lines().into_iter().find(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("no {text:?} in\n{}", console.text()))
}

#[test]
fn a_foreign_key_is_read_as_what_it_names() {
    let mut console = Console::new(world(), 200, 50);
    console.press("5");
    let line = line_of(&mut console, "thumbs_up");
    assert!(line.contains("Reconcile the October invoices") && !line.contains("ep-1"), "{line}");
    console.press("tab");
    // The id itself is on focus.
    assert!(line_of(&mut console, "episode id").contains("Reconcile the October invoices  ep-1"));
}

#[test]
fn a_column_to_sort_by_is_found_by_its_name_and_as_it_is_shown() {
    for typed in ["'duration_seconds'", "'duration seconds'"] {
        let mut console = Console::new(world(), 120, 40);
        console.press("2 s");
        console.press(typed);
        console.shows("1 of 1");
        console.press("enter");
        let order = console.model.at::<ListScreen>().expect("a list").order.clone();
        assert_eq!(order.map(|order| order.column), Some("duration_seconds"), "{typed}");
    }
}

#[test]
fn names_are_read_once_for_a_page() {
    let mut database = many(300);
    let scribe = row(Entity::Agent, &[("id", json!("agent-1")), ("name", json!("Scribe"))]);
    database.rows.insert(Entity::Agent, vec![scribe]);
    let mut console = Console::new(database, 120, 40);
    // The first screen read what its rows refer to.
    console.holding = true;
    console.press("2 j*5 k*5");
    console.holding = false;
    let asked = console.held.iter().filter(|effect| matches!(effect, Effect::Ask(_, Request::LoadNames(_)))).count();
    assert_eq!(asked, 0, "what is known is not asked for again");
    console.answer();
    console.draw();
    let line = line_of(&mut console, "Task number 298");
    assert!(line.contains("Scribe") && !line.contains("agent-1"), "{line}");
}

#[test]
fn while_values_are_masked_ids_stay_ids() {
    let mut console = Console::masked(world(), 200, 50);
    console.press("5");
    assert!(line_of(&mut console, "thumbs_up").contains("ep-1"));
    console.hides("Reconcile");
    console.press("M");
    console.shows("Reconcile the October invoices");
    console.press("M");
    console.hides("Reconcile");
}

#[test]
fn no_value_is_cut_beside_empty_space() {
    for (width, height) in [(200, 50), (160, 40), (100, 30), (80, 24), (60, 20)] {
        let mut console = Console::new(world(), width, height);
        console.press("5");
        let text = console.text();
        assert!(text.contains("thumbs_up"), "{width}x{height}\n{text}");
        // A row of the list ends where its pane does: six blanks before that are the scrollbar's and no more.
        let list = |line: &str| line.split("││").next().unwrap_or_default().trim_end_matches('│').to_owned();
        let cut = text.lines().skip(3).map(list).find(|line| line.contains('…') && line.ends_with("       "));
        assert!(
            cut.is_none(),
            "{width}x{height}: {cut:?}
{text}"
        );
    }
}

#[test]
fn panes_are_resized_and_stay_so() {
    let mut console = Console::new(many(300), 100, 40);
    console.press("2");
    let rows = console.model.context.measures.list_rows;
    console.press("+ +");
    let more = console.model.context.measures.list_rows;
    assert!(more > rows, "{more} rows, {rows} before");
    console.press("1 2");
    assert_eq!(console.model.context.measures.list_rows, more);
    console.press("-*4");
    assert!(console.model.context.measures.list_rows < rows);
}

#[test]
fn few_details_leave_their_room_to_the_list() {
    let mut console = Console::new(many(300), 100, 50);
    console.press("9 2");
    let (rows, lines) = (console.model.context.measures.list_rows, console.model.context.measures.detail_lines);
    assert!(rows + lines + 12 > 50, "{rows} rows of the list and {lines} lines of details on 50 lines");
}

/// Adds an episode that began this many seconds after now.
fn written(console: &mut Console, id: &str, seconds: i64) {
    let at = now() + chrono::Duration::seconds(seconds);
    let row = row(
        Entity::Episode,
        &[
            ("id", json!(id)),
            ("title", json!(format!("Written meanwhile {id}"))),
            ("outcome", json!("success")),
            ("started_at", json!(at.format("%Y-%m-%dT%H:%M:%S.000000Z").to_string())),
        ],
    );
    console.database.rows.entry(Entity::Episode).or_default().push(row);
}

#[test]
fn what_others_write_is_counted_and_the_list_does_not_move() {
    let mut console = Console::new(many(300), 120, 40);
    console.press("2 j*3");
    let before = (console.id(), console.lines());
    console.beat();
    assert_eq!(before, (console.id(), console.lines()), "nothing was written");
    for number in 0..3 {
        written(&mut console, &format!("new-{number}"), number);
    }
    console.beat();
    console.shows("3 new");
    console.hides("Written meanwhile");
    console.shows("row 4 of 300");
    assert_eq!(console.id(), before.0);
    let moved = console.lines().into_iter().zip(&before.1).filter(|(now, then)| now != *then);
    let moved: Vec<String> = moved.map(|(now, _)| now).collect();
    assert!(!moved.iter().any(|line| line.starts_with("│  0")), "only counts changed: {moved:?}");
    // Reading again shows them, and the same row stays selected.
    console.press("r");
    console.hides("3 new");
    assert_eq!(console.id(), before.0);
}

#[test]
fn one_key_follows_what_is_written_and_pauses_it() {
    let mut console = Console::new(many(300), 120, 40);
    console.press("2 j*3 space");
    console.shows("live");
    assert_eq!(console.id(), "ep-000299");
    written(&mut console, "new-1", 1);
    console.beat();
    assert_eq!(console.id(), "new-1");
    console.hides("row 1 of 300");
    console.press("space");
    written(&mut console, "new-2", 2);
    console.beat();
    console.shows("1 new");
    assert_eq!(console.id(), "new-1");
    // Moving away pauses too.
    console.press("space");
    assert_eq!(console.id(), "new-2");
    console.press("j");
    written(&mut console, "new-3", 3);
    console.beat();
    console.shows("1 new");
}

/// The line within the list that contains a text.
fn listed(console: &mut Console, text: &str) -> String {
    let within = |line: &String| line.starts_with('│') && line.contains(text);
    let line = console.lines().into_iter().find(within).unwrap_or_else(|| panic!("{}", console.text()));
    line.split("││").next().unwrap_or_default().to_owned()
}

#[test]
fn columns_stay_where_they_are_until_the_list_is_read_again() {
    for size in [(160, 40), (100, 40), (80, 24)] {
        let mut console = Console::new(many(300), size.0, size.1);
        console.press("2 space");
        let before = listed(&mut console, "outcome  ");
        assert!(!before.contains("fb"), "no episode has feedback: {before}");
        written(&mut console, "new-1", 1);
        let rows = console.database.rows.get_mut(&Entity::Episode).expect("episodes");
        rows.last_mut().expect("it").set("feedback_score", json!(-0.5));
        console.beat();
        assert_eq!(console.id(), "new-1");
        assert_eq!(listed(&mut console, "outcome  "), before);
        assert!(listed(&mut console, "Written").contains('…'), "a longer title is cut\n{}", console.text());
        console.press("G g");
        assert_eq!(listed(&mut console, "outcome  "), before);
        console.press("r");
        let after = listed(&mut console, "outcome  ");
        assert!(after.contains("fb"), "{after}");
        console.shows("Written meanwhile new-1");
    }
}

#[test]
fn columns_are_settled_again_in_another_window() {
    let mut console = Console::new(many(300), 160, 40);
    console.press("2 space");
    written(&mut console, "new-1", 1);
    console.beat();
    assert!(!listed(&mut console, "Written").contains("Written meanwhile new-1"));
    console.tell(Message::Resize(150, 40));
    console.draw();
    assert!(listed(&mut console, "Written").contains("Written meanwhile new-1"));
}

#[test]
fn more_than_are_counted_is_said() {
    let mut console = Console::new(many(300), 120, 40);
    console.press("2");
    console.beat();
    for number in 0..250 {
        written(&mut console, &format!("new-{number:03}"), number);
    }
    console.beat();
    console.shows("over 100 new");
}

/// Deletes an episode, as someone else would.
fn deleted(console: &mut Console, id: &str) {
    console.database.rows.get_mut(&Entity::Episode).expect("episodes").retain(|row| row.id() != id);
}

#[test]
fn rows_that_others_change_and_delete_are_shown_as_they_are() {
    let mut console = Console::new(many(300), 120, 40);
    console.press("2 j*8");
    console.shows("row 9 of 300");
    let rows = console.database.rows.get_mut(&Entity::Episode).expect("episodes");
    for id in ["ep-000295", "ep-000291"] {
        rows.iter_mut().find(|row| row.id() == id).expect("it").set("title", json!(id.replace("ep-", "Renamed ")));
    }
    deleted(&mut console, "ep-000294");
    written(&mut console, "new-1", 1);
    console.beat();
    console.shows("Renamed 000295");
    assert_eq!(console.model.history.here().row().expect("a row").text("title"), Some("Renamed 000291"));
    console.hides("Task number 294");
    assert_eq!(console.id(), "ep-000291");
    console.shows("row 8 of ");
    // What is new is counted, and shown when that is wanted.
    console.shows("1 new");
    console.hides("Written meanwhile");
}

#[test]
fn totals_follow_what_others_delete() {
    for keys in ["1", "2"] {
        let mut console = Console::new(many(300), 120, 40);
        console.press(keys);
        console.beat();
        console.shows("300");
        deleted(&mut console, "ep-000290");
        console.beat();
        console.shows("299");
    }
}

#[test]
fn a_row_that_is_gone_leaves_the_list_and_its_details_say_so() {
    let mut console = Console::new(many(300), 120, 40);
    console.press("2 j*3");
    deleted(&mut console, "ep-000296");
    console.beat();
    assert_eq!(console.id(), "ep-000295");
    console.shows("episode ep-000296 is no longer in the list");
    // Whoever reads the details continues with them.
    console.press("enter");
    deleted(&mut console, "ep-000295");
    console.beat();
    console.shows("This episode is gone");
    console.shows("ep-000295");
    assert_eq!(console.id(), "ep-000295", "a change is about what is shown");
    console.press("esc");
    assert_eq!(console.id(), "ep-000294");
    console.hides("This episode is gone");
    let mut card = Console::new(many(30), 120, 40);
    card.follow(Entity::Episode, "ep-000003");
    deleted(&mut card, "ep-000003");
    card.beat();
    card.shows("This episode is gone");
}

#[test]
fn marks_of_rows_that_are_gone_are_dropped_and_that_is_said() {
    let mut console = Console::new(many(300), 120, 40);
    console.press("2 v v v");
    console.shows("3 marked");
    deleted(&mut console, "ep-000298");
    console.beat();
    console.shows("1 marked row is gone");
    console.shows("2 marked");
}

#[test]
fn a_list_that_could_not_be_read_is_read_again_by_itself() {
    let mut console = Console::new(many(300), 120, 40);
    console.press("2");
    let failure = RequestFailure::new("The list could not be read", "database is locked", "wait");
    let failure = RequestFailure { passes: true, ..failure };
    console.failure = Some(failure.clone());
    console.press("r");
    console.shows("database is locked");
    console.failure = None;
    console.beat();
    console.hides("database is locked");
    console.shows("Task number 299");
    let mut first = Console::new(many(300), 120, 40);
    first.failure = Some(failure);
    first.press("2");
    first.shows("database is locked");
    first.failure = None;
    first.beat();
    first.shows("Task number 299");
    // What someone stopped stays so.
    first.holding = true;
    first.press("G esc");
    (first.holding, first.held) = (false, VecDeque::new());
    first.beat();
    assert!(first.model.at::<ListScreen>().expect("a list").failure.is_some(), "reading was stopped");
}

#[test]
fn a_list_that_was_left_is_watched_no_more() {
    let mut console = Console::new(many(30), 120, 40);
    console.press("2");
    assert_eq!(console.watched.len(), 1);
    console.press("/ 'outcome = failure' enter");
    assert_eq!(console.watched.len(), 1, "the rows of the filter are watched");
    assert!(!console.watched[0].1.filters.is_empty());
    console.press("J");
    assert!(console.watched.iter().all(|(_, query)| query.entity != Entity::Episode));
}

#[test]
fn columns_are_chosen_put_in_order_and_hidden_and_stay_so() {
    let mut console = Console::new(world(), 160, 50);
    let head = |console: &mut Console| {
        let lines = console.lines();
        lines.iter().find(|line| line.contains("outcome") && line.contains('│')).cloned().unwrap_or_default()
    };
    console.press("2 n c");
    console.shows("started_at title outcome");
    console.press("ctrl-u 'outcome titel'");
    console.shows("title");
    console.press("enter");
    console.shows("Columns");
    console.press("esc n c ctrl-u 'outcome duration_seconds title' enter");
    let shown = head(&mut console);
    let at = |name: &str| shown.find(name).unwrap_or_else(|| panic!("no {name} in {shown}"));
    assert!(at("outcome") < at("duration") && at("duration") < at("title"), "{shown}");
    assert!(!shown.contains("started"), "{shown}");
    console.shows("5400.00");
    assert_eq!(
        console.model.context.columns.get(&Entity::Episode),
        Some(&vec!["outcome", "duration_seconds", "title"])
    );
    console.press("n c ctrl-u enter");
    assert!(head(&mut console).contains("started"));
    assert!(console.model.context.columns.is_empty());
}

#[test]
fn rows_without_a_title_are_told_apart_by_one_name_everywhere() {
    let mut database = many(3);
    let episodes = database.rows.get_mut(&Entity::Episode).expect("episodes");
    episodes.iter_mut().for_each(|row| row.set("title", json!(null)));
    episodes[1].set("summary", json!("Mei-Ling asked for three things"));
    episodes[2].set("title", json!(" "));
    for unfilled in [false, true] {
        let mut console = Console::new(database.clone(), 160, 40);
        if unfilled {
            console.model.context.opened.unfilled.insert((Entity::Episode, "title"));
        }
        let names = ["ep-000000", "Mei-Ling asked for three things", "ep-000002"];
        names.iter().for_each(|name| console.shows(name));
        console.press("2");
        names.iter().for_each(|name| console.shows(name));
        console.press("G k");
        let said = console.text().matches(names[1]).count();
        assert!(said >= 2, "the list and the details: {}", console.text());
    }
}

#[test]
fn a_long_title_says_that_it_is_cut() {
    let mut database = many(1);
    let long = "x".repeat(5_000);
    database.rows.get_mut(&Entity::Episode).expect("episodes")[0].set("title", json!(long));
    let mut console = Console::new(database, 200, 50);
    console.press("2");
    let heading = console.lines().into_iter().find(|line| line.contains("x…") && !line.contains("2026"));
    assert!(heading.is_some(), "{}", console.text());
}

#[test]
fn rows_are_named_by_what_they_name() {
    let mut database = world();
    let mut add = |entity, values: &[(&str, serde_json::Value)]| {
        database.rows.insert(entity, vec![row(entity, values)]);
    };
    let person = json!("ada@example.org");
    add(Entity::Profile, &[("id", json!("bank-1")), ("user_id", person), ("agent_id", json!("ledger-bot"))]);
    add(Entity::Access, &[("id", json!("ac-1")), ("query", json!("invoices")), ("ids", json!(["ep-1", "ep-9"]))]);
    add(Entity::WorkflowEvent, &[("id", json!("ev-1")), ("run_id", json!("run-1")), ("kind", json!("step"))]);
    let episodes = database.rows.get_mut(&Entity::Episode).expect("episodes");
    episodes.iter_mut().filter(|row| row.id() == "ep-1").for_each(|row| row.set("execution_ids", json!(["run-1"])));
    let mut console = Console::new(database, 120, 45);
    console.press(": 'profiles' enter");
    console.shows("profile Ada Lovelace with ledger-bot");
    console.press(": 'accesses' enter");
    console.shows("Reconcile the October invoices; ep-9");
    console.press(": 'workflow events' enter . r");
    console.shows("episodes of the run 1");
    console.shows("Reconcile the October invoic");
}

#[test]
fn a_moment_is_spelled_alike_wherever_it_stands() {
    let mut console = Console::new(world(), 140, 30);
    console.model.context.settings.zone = ShownZone::new(vec![(0, -18_000)]);
    console.press("2 / 'started_at > 2026-01-01T01:00'");
    console.hides("000000Z");
    console.press("enter");
    let here = "episodes where started_at > 2026-01-01 01:00";
    assert_eq!(console.model.crumbs().last().map(String::as_str), Some(here));
    console.hides("000000Z");
    // The line that is written again is read as the same moment.
    console.press("/");
    console.shows("started_at > 2026-01-01T01:00");
    console.press("enter");
    assert_eq!(console.model.crumbs().last().map(String::as_str), Some(here));
    console.press("@ '2026-01-01 10:00'");
    console.shows("as of 2026-01-01 10:00");
    console.hides("000000Z");
}

#[test]
fn a_rating_is_told_where_its_column_gives_way() {
    let mut console = Console::new(world(), 60, 20);
    console.press("5");
    console.shows("○ rating 2");
}

#[test]
fn a_mistake_in_a_filter_is_told_in_sentences() {
    let mut console = Console::new(world(), 100, 30);
    for (line, words) in [
        ("outcom = failure", "did you mean `outcome`? Its columns are:"),
        ("age < 7d", "did you mean `started_at`?"),
        ("(outcome = failure or", "lacks its closing bracket"),
    ] {
        console.press(&format!("2 / ctrl-u '{line}'"));
        console.shows(words);
        console.press("esc");
    }
    // Narrow, the columns do not fit: the end says so.
    let mut console = Console::new(world(), 44, 20);
    console.press("2 / ctrl-u 'outcom = failure'");
    let told = console.text();
    assert!(told.lines().any(|line| line.trim_end_matches(['│', ' ']).ends_with('…')), "{told}");
}

#[test]
fn an_order_that_no_column_shows_is_in_the_title() {
    let mut console = Console::new(many(30), 60, 20);
    console.press("2");
    console.hides("descending");
    console.press("s 'duration' enter");
    console.shows("episodes by duration seconds, descending");
    console.press("S");
    console.shows("episodes by duration seconds, ascending");
    console.press("s 'started' enter");
    console.hides("episodes by");
}

#[test]
fn the_selected_row_stays_selected_in_another_order() {
    let mut console = Console::new(many(300), 120, 30);
    console.press("2 S");
    assert_eq!(console.id(), "ep-000000", "who has not moved sees the first row");
    console.press("j*2 s 'outcome' enter");
    console.hides("not among the first");
    assert_eq!(console.id(), "ep-000002");
    console.press("s 'started' enter");
    assert_eq!(console.id(), "ep-000299");
    console.shows("the selected row is not among the first 100 in this order");
}

#[test]
fn a_list_that_was_left_for_another_comes_back_with_its_marks_and_its_order() {
    let mut console = Console::new(many(30), 120, 30);
    console.press("2 S v v / 'outcome = failure' enter 1 2");
    let list = console.model.at::<ListScreen>().expect("a list");
    assert!(list.conditions.is_empty());
    assert!(list.order.as_ref().is_some_and(|order| !order.descending));
    console.shows("2 marked");
    console.press("9 2");
    console.shows("2 marked");
    console.press("| 9 2");
    console.hides("marked");
}

#[test]
fn a_quarantined_case_is_told_in_every_list() {
    let mut database = world();
    let cases = database.rows.get_mut(&Entity::Case).expect("cases");
    cases[0].set("quarantined", json!(true));
    for (width, height) in [(60, 20), (100, 30), (200, 50)] {
        let mut console = Console::new(database.clone(), width, height);
        console.press("4");
        let told = console.text();
        assert!(told.contains("quarantined"), "{width}\n{told}");
        assert!(!told.contains(" held "), "{told}");
    }
}

#[test]
fn banks_of_one_person_are_told_apart_where_their_names_are_cut() {
    let mut database = learned();
    let person = json!("ada@example.org");
    let bank = |id: &str, agent: &str| {
        row(Entity::Profile, &[("id", json!(id)), ("user_id", person.clone()), ("agent_id", json!(agent))])
    };
    database.rows.insert(Entity::Profile, vec![bank("bank-1", "ledger"), bank("bank-2", "parcels")]);
    let version = |id: &str, bank: &str| {
        row(Entity::Policy, &[("id", json!(id)), ("profile_id", json!(bank)), ("version", json!(1))])
    };
    database.rows.insert(Entity::Policy, vec![version("po-1", "bank-1"), version("po-2", "bank-2")]);
    let mut console = Console::new(database, 60, 20);
    console.press(": 'policies' enter");
    console.shows("ledger");
    console.shows("parcels");
}
