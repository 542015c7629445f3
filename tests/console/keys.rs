//! Key scripts: what keys do to what is shown and asked for.

use mnemoscope::console::core::key_map::KeyBinding;
use mnemoscope::console::core::request::Export;
use mnemoscope::console::core::{
    ClickTarget, Effect, KeyMap, Message, Reply, Request, RequestFailure, RowKey, Ticket, ToastTone,
};
use mnemoscope::console::screens::browse::ListScreen;
use mnemoscope::console::screens::find::FindScreen;
use mnemoscope::memory::Entity;
use mnemoscope::memory::query::Page;

use super::fake::{Console, many, now, world};

#[test]
fn the_first_screen_tells_what_is_here_and_what_is_not() {
    let mut console = Console::new(world(), 160, 50);
    console.shows("memory/made-up.db");
    console.shows("episodes 2");
    console.shows("made-up has no policy");
    console.shows("use another layout");
    console.shows("Reconcile the October invoices");
}

#[test]
fn an_entry_of_the_first_screen_opens_and_esc_comes_back() {
    let mut console = Console::new(world(), 160, 50);
    console.click("Reconcile the October invoices");
    console.press("enter");
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-1".to_owned())));
    console.shows("home › episode Reconcile the October invoices");
    console.press("esc");
    console.shows("this database");
}

#[test]
fn esc_and_a_key_that_arrive_together_are_both_taken() {
    let mut console = Console::new(world(), 160, 50);
    console.click("Reconcile the October invoices");
    console.press("enter");
    // A terminal sends both as it sends alt and that key.
    console.press("alt-3");
    console.shows("› memories");
    console.press("esc");
    console.shows("this database");
    // What alt and a key mean stays.
    console.press("2 alt-left");
    console.shows("this database");
    // Where text is written, alt is not esc.
    console.press("2 / 'abc' alt-3");
    console.shows("abc");
    console.hides("› memories");
    // A terminal that tells of releases tells alt too.
    console.press("esc 2");
    console.tell(Message::Releases);
    console.press("alt-3");
    console.hides("› memories");
}

#[test]
fn rows_are_walked_from_end_to_end() {
    let mut console = Console::new(many(1_000), 160, 50);
    console.press("2");
    assert_eq!(console.id(), "ep-000999");
    console.press("j*5 k");
    assert_eq!(console.id(), "ep-000995");
    console.press("pgdn*3");
    let row = 5 + 3 * (console.model.context.measures.list_rows - 1);
    console.shows(&format!("row {row} of 1,000"));
    console.press("G");
    assert_eq!(console.id(), "ep-000000");
    console.press("k*3 g");
    assert_eq!(console.id(), "ep-000999");
}

#[test]
fn a_long_walk_holds_few_rows() {
    let mut console = Console::new(many(5_000), 160, 50);
    console.press("2 pgdn*110");
    let window = &console.model.at::<ListScreen>().expect("a list").window;
    assert!(window.len() <= 500, "{}", window.len());
    assert!(window.number().expect("counted from the beginning") > 4_000);
}

#[test]
fn the_details_follow_the_selected_row() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 j");
    console.shows("Two invoices were missing");
    console.shows("Tuesday");
    console.shows("no calls before ten");
    console.shows("stored as completed");
    console.press("k");
    console.hides("Two invoices were missing");
    console.shows("from the time it started");
    console.shows("no canvas context");
}

#[test]
fn every_tab_of_an_episode_shows_its_part() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 j");
    for part in [
        "one column is",
        "Book the missing",
        "where are the two invoices?",
        "sheets / ledger",
        "not scored",
        "replayed 0.60",
        "Old invoices are kept",
        "No event log",
        "No recall",
        "\"Reconcile the October invoices\"",
    ] {
        console.press("l");
        console.shows(part);
    }
    console.press("l");
    console.shows("lifecycle");
    console.press("h h");
    console.shows("No recall");
}

#[test]
fn a_reply_that_nobody_waits_for_changes_nothing() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2");
    console.holding = true;
    console.press("r");
    let first = console.held_page().expect("a page is asked for");
    console.press("r");
    let before = console.model.clone();
    console.reply(first, Reply::Page(Ok(Page::default())));
    assert_eq!(console.model, before);
    assert!(console.held.contains(&Effect::Cancel(first)), "the superseded query is stopped");
    console.holding = false;
    console.answer();
    assert_eq!(console.id(), "ep-000299");
}

#[test]
fn leaving_stops_what_is_loading_and_coming_back_loads_it() {
    let mut console = Console::new(many(300), 160, 50);
    console.holding = true;
    console.press("2");
    let asked = console.held_page().expect("a page is asked for");
    console.press("1");
    assert!(console.held.contains(&Effect::Cancel(asked)));
    console.held.clear();
    console.holding = false;
    console.press("[");
    assert_eq!(console.id(), "ep-000299");
}

#[test]
fn fast_steps_read_the_details_of_the_row_rested_on_only() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2");
    console.holding = true;
    console.press("j*20");
    let details = console.held.iter().filter(|e| matches!(e, Effect::Ask(_, Request::LoadDetail(..)))).count();
    assert_eq!(details, 1, "only the first step reads at once");
    let rest = console.held.iter().rev().find_map(|e| match e {
        Effect::After(ticket, _) => Some(*ticket),
        _ => None,
    });
    console.tell(Message::Elapsed(rest.expect("a moment is waited for")));
    assert!(
        matches!(console.held.back(), Some(Effect::Ask(_, Request::LoadDetail(_, key))) if key.id() == "ep-000279")
    );
}

/// The details that are asked for and not yet told.
fn held_details(console: &mut Console) -> Ticket {
    let rest = console.held.iter().rev().find_map(|effect| match effect {
        Effect::After(ticket, _) => Some(*ticket),
        _ => None,
    });
    rest.into_iter().for_each(|ticket| console.tell(Message::Elapsed(ticket)));
    let asked = console.held.iter().rev().find_map(|effect| match effect {
        Effect::Ask(ticket, Request::LoadDetail(..)) => Some(*ticket),
        _ => None,
    });
    asked.expect("details are asked for")
}

#[test]
fn a_row_that_is_not_read_whole_is_not_copied() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2");
    console.holding = true;
    console.press("j y j");
    console.shows("not all values of this row are read");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Copy(..))), "{:?}", console.asked);
    console.press("o");
    assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::View(..))), "{:?}", console.asked);
}

#[test]
fn details_that_cannot_be_read_do_not_leave_those_of_another_row() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2 r");
    let before = console.id();
    console.holding = true;
    console.press("j");
    let asked = held_details(&mut console);
    let failure = RequestFailure::new("The episode was not read", "no such table: episode_segments", "look at 0");
    console.reply(asked, Reply::Detail(Err(failure)));
    assert_ne!(console.id(), before);
    console.shows("no such table: episode_segments");
}

#[test]
fn a_refresh_keeps_the_selected_row() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2 j*70");
    let id = console.id();
    let newer = many(310).rows.remove(&Entity::Episode).expect("episodes");
    console.database.rows.insert(Entity::Episode, newer);
    console.press("r");
    assert_eq!(console.id(), id);
    console.shows("row 81 of");
}

#[test]
fn a_row_that_vanished_is_told() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2 j*3");
    let id = console.id();
    console.database.rows.get_mut(&Entity::Episode).expect("episodes").retain(|row| row.id() != id);
    console.press("r");
    console.shows("no longer in the list");
}

#[test]
fn a_filter_narrows_and_its_mistakes_are_told_while_it_is_written() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2 / 'outcom = failure'");
    console.shows("did you mean `outcome`?");
    console.press("enter");
    console.shows("did you mean");
    console.press("ctrl-u 'outcome = failure and utility > 0.5' enter");
    console.shows("episodes where outcome = 'failure' and utility > 0.5");
    let rows = &console.model.at::<ListScreen>().expect("a list").window;
    assert!(!rows.is_empty() && rows.rows().all(|row| row.text("outcome") == Some("failure")));
    console.press("\\");
    console.shows("row 1 of 300");
}

#[test]
fn words_search_the_title_and_an_empty_result_says_so() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2 / '\"number 42\"' enter");
    console.shows("row 1 of 1");
    console.press("/ ctrl-u 'nothing like this' enter");
    console.shows("No episodes match");
    console.press("/ up up");
    console.shows("number 42");
}

#[test]
fn columns_are_completed() {
    let mut console = Console::new(many(30), 160, 50);
    console.press("2 / 'utili' tab '> 0.9' enter");
    console.shows("where utility > 0.9");
}

#[test]
fn the_list_is_put_in_order_by_menu_keys_and_headings() {
    let mut console = Console::new(many(30), 160, 50);
    console.press("2 s 'outc' enter");
    console.shows("outcome ▲");
    console.press("S");
    console.shows("outcome ▼");
    console.press("<");
    console.hides("outcome ▼");
    console.click("title");
    console.shows("title ▼");
    assert_eq!(console.model.at::<ListScreen>().and_then(|b| b.order.clone()).map(|o| o.column), Some("title"));
}

#[test]
fn the_palette_finds_screens_commands_and_rows() {
    let mut console = Console::new(world(), 160, 50);
    console.press(": 'cases' enter");
    console.shows("Find invoice 0");
    console.press(": 'episode ep-1' enter");
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-1".to_owned())));
    console.press(": 'polic' enter");
    console.shows("made-up has no policy");
    console.shows("use another layout");
    console.press("esc");
    console.hides("use another layout");
}

#[test]
fn what_is_not_here_explains_itself() {
    let mut console = Console::new(many(3), 160, 50);
    console.press("4");
    console.shows("Cases cannot be shown");
    console.shows("made-up has no case");
    console.press("esc");
    console.shows("this database");
}

#[test]
fn a_relation_is_followed_and_the_way_back_is_kept() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 f 'parent' enter");
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-1".to_owned())));
    console.shows("episodes › episode Reconcile the October invoices");
    console.press("f 'confirmed' enter");
    console.press("esc");
    console.press("f 'ada' enter");
    assert_eq!(console.selected(), Some((Entity::Subject, "ada@example.org".to_owned())));
    console.press("[ [");
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-2".to_owned())));
    console.press("] ]");
    assert_eq!(console.selected(), Some((Entity::Subject, "ada@example.org".to_owned())));
}

#[test]
fn references_of_a_case_are_shown_both_ways_and_dangling_ones_told() {
    let mut console = Console::new(world(), 160, 50);
    console.press("4 j l");
    assert_eq!(console.id(), "ca-0");
    console.shows("refers to");
    console.shows("ca-gone");
    console.shows("which is missing");
    console.press("k");
    console.shows("referred to by");
    console.shows("Find invoice 0");
}

#[test]
fn a_row_that_is_gone_says_so() {
    let mut console = Console::new(world(), 160, 50);
    console.follow(Entity::Memory, "dr-9");
    console.shows("There is no such memory");
    console.shows("dr-9");
}

#[test]
fn copies_are_effects() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 j y y y t Y");
    let copied: Vec<&str> = console
        .asked
        .iter()
        .filter_map(|effect| match effect {
            Effect::Copy(_, text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(copied[..2], ["ep-1", "Reconcile the October invoices"]);
    assert!(copied[2].contains("\"raw_status\": \"completed\""));
}

#[test]
fn every_place_knows_its_command_line() {
    let mut console = Console::new(world(), 160, 50);
    console.press("y c 2 / 'topic = invoices' enter S y c enter . c y c");
    let copied: Vec<&str> = console
        .asked
        .iter()
        .filter_map(|effect| match effect {
            Effect::Copy(what, text) if what == "command" => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        copied,
        [
            "mnemoscope -d memory/made-up.db status",
            "mnemoscope -d memory/made-up.db list episode --where 'topic = '\\''invoices'\\''' --order started_at:asc",
            "mnemoscope -d memory/made-up.db chain ep-1",
        ]
    );
}

#[test]
fn a_command_line_shows_the_marked_rows_and_none_is_copied_that_shows_nothing() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 v v y c");
    let (_, line) = super::kept::copied(&console);
    let marked = "list episode --where '(id = '\\''ep-1'\\'' or id = '\\''ep-2'\\'')'";
    assert_eq!(line, format!("mnemoscope -d memory/made-up.db {marked}"));
    for (keys, reason) in
        [("5 v y c", "no unique id"), ("9 W n 4 y c", "no situation yet"), ("1 V esc y c", "no topic")]
    {
        let mut console = Console::new(world(), 160, 50);
        console.press(keys);
        console.shows(reason);
        assert!(!console.asked.iter().any(|effect| matches!(effect, Effect::Copy(..))), "{keys}");
    }
}

#[test]
fn the_help_lists_keys_that_do_something_here() {
    for (keys, works) in [("2", true), ("I", false), ("W", false), ("1 / 'invoices' enter", false)] {
        let mut console = Console::new(world(), 160, 300);
        console.press(keys);
        console.press("?");
        let text = console.lines().join("\n");
        let (here, _) = text.split_once("Not here, or not for").expect("a section for them");
        for words in ["Finds words in the details", "Goes to something that the row is related to", "Wraps long texts"]
        {
            assert_eq!(here.contains(words), works, "{keys}: {words}\n{text}");
        }
    }
    // The preview of a verdict has tabs where there is room for it.
    for (size, works) in [((160, 300), true), ((60, 16), false)] {
        let mut console = Console::new(world(), size.0, size.1);
        console.database.rows.insert(Entity::UtilityEvent, Vec::new());
        console.press("I");
        console.hides("no tabs are shown here");
        console.press("l");
        assert_eq!(!console.text().contains("no tabs are shown here"), works, "{size:?}");
    }
}

#[test]
fn a_command_line_that_is_copied_from_a_screen_changes_nothing() {
    let mut console = Console::new(world(), 160, 50);
    for key in "1234567890FDRJPWIVLOBE".chars() {
        console.press(&format!("{key} y c esc"));
    }
    let mut copied = console.asked.iter().filter_map(|effect| match effect {
        Effect::Copy(what, text) if what == "command" => Some(text.as_str()),
        _ => None,
    });
    assert!(copied.clone().count() > 15);
    assert_eq!(copied.find(|line| line.contains("--apply")), None);
}

#[test]
fn keys_that_may_follow_are_shown_and_esc_forgets_them() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 y");
    console.shows("Copy command");
    console.press("esc");
    console.hides("Copy command");
    console.press("c");
    assert!(console.asked.is_empty());
    console.shows("Link");
    console.hides("Reward");
    console.press("esc 5 c");
    console.shows("Edit feedback");
    console.hides("Link");
}

fn exports(console: &Console) -> Vec<&Export> {
    console
        .asked
        .iter()
        .filter_map(|effect| match effect {
            Effect::Ask(_, Request::Export(export)) => Some(&**export),
            _ => None,
        })
        .collect()
}

#[test]
fn marked_rows_are_exported_and_the_file_is_told() {
    let mut console = Console::new(many(30), 160, 50);
    console.press("2 v v j v e");
    console.shows("3 marked rows");
    console.shows(&format!("episode-{}.jsonl", now().format("%Y%m%d-%H%M%S")));
    console.press("ctrl-u 'out.jsonl' enter");
    let export = exports(&console)[0].clone();
    assert_eq!(export.only.as_deref(), Some(&["ep-000026", "ep-000028", "ep-000029"].map(RowKey::of_id)[..]));
    let ticket = console.model.context.exporting.expect("an export under way").0;
    console.reply(ticket, Reply::Exported(Ok((3, "/somewhere/out.jsonl".to_owned()))));
    console.shows("3 rows written to /somewhere/out.jsonl");
}

#[test]
fn the_filtered_rows_are_exported_when_none_is_marked() {
    let mut console = Console::new(many(30), 160, 50);
    console.press("2 / 'outcome = failure' enter e enter");
    let export = exports(&console)[0];
    assert!(export.only.is_none() && !export.masked);
    assert_eq!(export.query.filters.len(), 1);
}

#[test]
fn a_failed_read_is_a_card_and_the_rows_stay() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2 j");
    let failure = RequestFailure {
        what: "The list could not be read".to_owned(),
        message: "canceling statement due to statement timeout".to_owned(),
        code: Some("57014".to_owned()),
        remedy: Some("narrow the filter".to_owned()),
        passes: false,
        is_damage: false,
    };
    console.failure = Some(failure);
    console.press("r");
    for part in ["could not be read", "57014", "statement timeout", "narrow the filter", "Task number 298"] {
        console.shows(part);
    }
    console.failure = None;
    console.press("r");
    console.hides("57014");
    assert_eq!(console.id(), "ep-000298");
}

#[test]
fn the_help_sets_apart_what_does_not_fit_the_row() {
    let mut console = Console::new(world(), 160, 200);
    console.press("5 ?");
    let text = console.lines().join("\n");
    let (here, apart) = text.split_once("Not here, or not for").expect("a section for them");
    let words = "Goes forward again";
    assert!(!here.contains(words) && apart.contains(words), "{text}");
}

#[test]
fn one_cause_is_one_card() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2");
    // A server that goes away fails the list, its row and what leads from it.
    for what in ["The list could not be read", "Related rows could not be read"] {
        console.tell(Message::Failed(RequestFailure::new(what, "the server is not there", "start it")));
    }
    console.shows("the server is not there");
    console.press("esc");
    console.hides("the server is not there");
}

#[test]
fn esc_steps_out_one_at_a_time() {
    let mut console = Console::new(world(), 160, 50);
    console.press("2 enter z");
    assert!(console.model.at::<ListScreen>().expect("a list").zoomed);
    console.press("esc");
    assert!(!console.model.at::<ListScreen>().expect("a list").zoomed);
    console.press("esc j esc");
    console.shows("this database");
}

#[test]
fn esc_stops_what_is_loading() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2");
    console.holding = true;
    console.press("r");
    let asked = console.held_page().expect("a page is asked for");
    console.press("esc");
    assert!(console.held.contains(&Effect::Cancel(asked)));
    console.shows("stopped");
    console.hides("this database");
}

#[test]
fn a_paste_reaches_fields_only() {
    let mut console = Console::new(many(30), 160, 50);
    console.press("2");
    let before = console.model.clone();
    console.tell(Message::Paste("q\nG".to_owned()));
    assert_eq!(console.model, before);
    console.press("/");
    console.tell(Message::Paste("outcome = \u{1b}failure\n".to_owned()));
    console.press("enter");
    console.shows("where outcome = 'failure'");
}

#[test]
fn masking_hides_persons_and_still_follows_them() {
    let mut console = Console::masked(world(), 160, 50);
    console.press("2 j");
    console.hides("ada@example.org");
    console.hides("Reconcile");
    console.shows("person-");
    console.press("f 'person-' enter");
    assert!(console.selected().is_some_and(|(entity, id)| entity == Entity::Subject && id.starts_with("person-")));
    console.hides("There is no such");
    console.hides("Lovelace");
    console.press("l l");
    console.shows("episodes 2");
    console.press("M");
    console.shows("personal values are shown");
}

#[test]
fn masking_keeps_the_place_in_a_list() {
    for list in ["2", "4"] {
        let mut console = Console::new(world(), 160, 50);
        console.press(&format!("{list} j"));
        let row = console.selected();
        console.press("M");
        console.shows("row 2 of");
        console.press("M");
        console.shows("row 2 of");
        assert_eq!(console.selected(), row);
    }
}

#[test]
fn masked_rows_are_what_is_copied_and_exported() {
    let mut console = Console::masked(world(), 160, 50);
    console.press("2 j Y e enter");
    let Some(Effect::Copy(_, text)) = console.asked.first() else { panic!("nothing copied") };
    assert!(!text.contains("ada@") && !text.contains("Reconcile"));
    assert!(exports(&console)[0].masked);
}

#[test]
fn a_filter_on_a_person_is_shown_masked_and_asked_for_by_name() {
    let mut console = Console::masked(world(), 160, 50);
    console.press("2");
    let person = console
        .model
        .at::<ListScreen>()
        .and_then(|b| b.window.current())
        .and_then(|r| r.text("user_id"))
        .map(str::to_owned);
    let person = person.expect("a person");
    console.press(&format!("/ 'user_id = {person}' enter"));
    console.hides("ada@");
    assert_eq!(console.model.at::<ListScreen>().map(|b| b.window.len()), Some(2));
}

#[test]
fn themes_change_while_it_runs() {
    let mut console = Console::new(world(), 160, 50);
    console.press("T 'contr' enter");
    assert_eq!(console.model.context.settings.theme, "contrast");
}

#[test]
fn keys_of_ones_own_are_pressed_and_shown() {
    let mut console = Console::new(world(), 160, 50);
    let binding =
        KeyBinding { line: 1, part: "lists".to_owned(), command: "filter".to_owned(), keys: vec!["f".to_owned()] };
    console.model.context.settings.keys = KeyMap::with(&[binding]).expect("a binding that can be");
    console.press("2 f 'outcome = failure' enter");
    console.shows("outcome = 'failure'");
    console.shows("f filter");
    console.hides("f follow");
    console.press("? / 'narrows the list'");
    console.shows("f                       Narrows the list");
}

#[test]
fn a_tour_shows_the_screens_and_ends() {
    let mut console = Console::new(world(), 160, 50);
    console.press(": 'tour' enter");
    console.shows("tour 1 of 10");
    let mut titles = Vec::new();
    while console.lines().iter().any(|line| line.contains("tour ")) && titles.len() < 20 {
        titles.push(console.lines()[0].clone());
        console.press("enter");
    }
    assert_eq!(titles.len(), 10, "{titles:#?}");
    for screen in ["home", "episodes", "recall", "findings", "inbox", "feedback", "subjects", "jobs", "audit trail"] {
        assert!(titles.iter().any(|title| title.contains(screen)), "no {screen} in {titles:#?}");
    }
    console.press(": 'tour' enter enter backspace");
    console.shows("tour 1 of 10");
    console.press("esc");
    console.hides("tour 1 of 10");
}

#[test]
fn the_mouse_selects_opens_scrolls_and_changes_tabs() {
    let mut console = Console::new(many(300), 160, 50);
    console.press("2");
    console.click("Task number 290");
    assert_eq!(console.id(), "ep-000290");
    console.tell(Message::Wheel(ClickTarget::List, false));
    assert_eq!(console.model.at::<ListScreen>().map(|b| b.window.top()), Some(3));
    console.click("chain");
    console.shows("no parent and no children");
    console.click("1 home");
    console.shows("this database");
}

#[test]
fn narrow_screens_show_one_pane_at_a_time() {
    let mut console = Console::new(world(), 60, 20);
    console.press("2 j");
    console.hides("situation");
    console.press("enter");
    console.shows("Two invoices were missing");
    console.press("tab");
    console.hides("Two invoices were missing");
}

#[test]
fn a_tiny_screen_says_what_it_needs_and_takes_no_keys() {
    let mut console = Console::new(world(), 30, 8);
    console.shows("Too small");
    console.shows("needs 40 columns");
    console.press("2");
    console.tell(Message::Resize(160, 50));
    console.shows("newest episodes");
    console.press("2");
    assert_eq!(console.selected(), Some((Entity::Episode, "ep-2".to_owned())));
}

#[test]
fn no_byte_of_stored_text_acts_on_the_screen() {
    let mut console = Console::new(world(), 160, 50);
    for keys in ["2", "l", "l*8", "?", "esc f", "esc 1"] {
        console.press(keys);
        let buffer = console.draw();
        let dangerous = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{200b}'..='\u{200f}');
        assert!(buffer.content.iter().all(|cell| !cell.symbol().chars().any(dangerous)), "after {keys}");
    }
}

#[test]
fn what_a_list_asks_for_is_what_it_shows() {
    let mut console = Console::new(many(300), 160, 50);
    console.holding = true;
    console.press("2");
    let query = console.held.iter().find_map(|effect| match effect {
        Effect::Ask(_, Request::LoadPage(query)) if query.entity == Entity::Episode => Some(query),
        _ => None,
    });
    let query = query.expect("a page is asked for");
    let columns = query.columns.as_ref().expect("named columns");
    assert!(columns.contains(&"id") && !columns.contains(&"metadata") && query.preview.is_some());
}

#[test]
fn quitting_is_one_key_and_nothing_is_asked() {
    let mut console = Console::new(world(), 160, 50);
    console.press("q");
    assert_eq!(console.asked, [Effect::Quit]);
}

#[test]
fn home_leads_to_what_stands_out() {
    let mut console = Console::new(many(30), 160, 50);
    console.click("failed");
    console.press("enter");
    let here = console.model.history.here();
    assert!(here.selected().is_some());
    console.shows("where outcome = 'failure'");
}

#[test]
fn help_begins_with_the_keys_of_the_screen_and_explains_its_words() {
    for (keys, title, word) in
        [("5", "Keys here: feedback", "feedback"), ("P", "Keys here: prune", "window"), ("", "Words here", "episode")]
    {
        let mut console = Console::new(world(), 100, 72);
        console.press(keys);
        console.press("?");
        let lines = console.lines();
        let at = |text: &str| {
            lines
                .iter()
                .position(|line| line.contains(text))
                .unwrap_or_else(|| panic!("no {text}\n{}", lines.join("\n")))
        };
        let (own, words) = (at(title), at("Words here"));
        assert!(own <= words, "{}", lines.join("\n"));
        assert!(lines[words + 1..words + 10].iter().any(|line| line.contains(word)), "{}", lines.join("\n"));
        let first = lines.iter().position(|line| line.contains("Everywhere")).unwrap_or(usize::MAX);
        assert!(words < first, "what is explained here is before what is the same everywhere");
    }
}

#[test]
fn help_is_searched() {
    let mut console = Console::new(world(), 100, 30);
    console.press("2 ? / 'quarantine'");
    console.shows("Excludes the case, or the marked ones, from recall.");
    console.hides("Goes one up");
    console.press("enter esc");
    console.shows("Keys here: episodes");
    console.press("esc");
    console.hides("Keys here");
}

#[test]
fn the_palette_finds_by_sense() {
    let found = |typed: &str| {
        let mut console = Console::new(world(), 100, 40);
        console.press(&format!(": '{typed}'"));
        console.text()
    };
    let auto = found("auto");
    assert!(auto.contains("Jobs") && auto.contains("Prune"), "{auto}");
    assert!(!found("switch").contains("Erase a person"));
    assert!(found("purge").contains("Erase a person"));
    assert!(found("undo").contains("Undo the last change"));
}

#[test]
fn help_works_out_the_numbers_of_the_selected_row() {
    let mut console = Console::new(world(), 120, 40);
    console.press("2 enter ?");
    console.shows("Numbers here");
    console.shows("0.90 is stored; no signals");
}

#[test]
fn what_was_said_goes_with_the_place_it_was_said_at_and_hides_no_keys() {
    let mut console = Console::new(world(), 60, 20);
    let long = "a sentence that is much longer than half of a small line, and is read to its very last word";
    console.model.context.say(ToastTone::Info, long);
    console.shows("very last word");
    console.shows("? help");
    console.press(": 'tour' enter");
    console.hides("very last word");
    console.model.context.say(ToastTone::Info, long);
    let lines = console.lines();
    assert!(lines[..4].concat().contains("very last word"), "{lines:#?}");
    console.press("esc");
    console.model.context.say(ToastTone::Info, "short");
    console.shows("short");
    console.press("3");
    console.hides("short");
}

#[test]
fn a_key_that_nothing_may_follow_says_so_in_full() {
    for (width, height) in [(100, 30), (60, 20)] {
        let mut console = Console::new(world(), width, height);
        console.press("t");
        console.shows("nothing for what is selected");
    }
}

#[test]
fn what_the_database_lacks_is_not_offered() {
    let mut database = world();
    database.rows.remove(&Entity::UtilityEvent);
    let mut console = Console::new(database, 160, 50);
    console.press("2 t");
    console.hides("Confirmed");
    console.shows("made-up has no utility event");
    console.press("c");
    console.shows("Confirmed: made-up has no utility event");
    console.hides("continues with it");
    console.model.context.opened.fixed.insert((Entity::Episode, "parent_id"));
    console.press("c");
    console.hides("Link");
    console.shows("Add feedback");
}

#[test]
fn an_error_stands_in_no_key_s_way() {
    let mut console = Console::new(world(), 100, 30);
    console.press("2 @ '7d' enter");
    let (ticket, _) = super::fake::asked(&mut console, |request| matches!(request, Request::LookBack(_)));
    let failure = RequestFailure::new("The past could not be read", "the trail is broken", "look at R");
    console.reply(ticket, Reply::LookedBack(Err(failure)));
    console.shows("the trail is broken");
    console.press("5");
    assert_eq!(console.model.crumbs().last().map(String::as_str), Some("feedback"));
    console.hides("the trail is broken");
}

#[test]
fn ctrl_c_closes_what_is_open_over_the_screen_and_ends_the_console_on_a_bare_one() {
    for opens in ["/ 'outcome'", "?", "? / 'word'", "s", ":", "T", "@ '7d'", "1 /", "b k"] {
        let mut console = Console::new(world(), 100, 30);
        console.press(&format!("2 {opens}"));
        assert!(!console.model.overlays.is_empty(), "{opens}");
        // A search within the help is closed before the help.
        for _ in 0..2 {
            let is_open = !console.model.overlays.is_empty();
            console.press(if is_open { "ctrl-c" } else { "k" });
        }
        assert!(console.model.overlays.is_empty(), "{opens}");
        assert!(!console.asked.contains(&Effect::Quit), "{opens}");
        console.press("ctrl-c");
        assert!(console.asked.contains(&Effect::Quit), "{opens}");
    }
}

#[test]
fn the_palette_finds_names_as_the_settings_spell_them() {
    for (name, title) in [("audit-trails", "Audit trails"), ("canvas-events", "Canvas events")] {
        let mut console = Console::new(world(), 100, 30);
        console.press(&format!(": '{name}'"));
        console.shows(title);
        console.hides("nothing matches");
    }
}

#[test]
fn a_tab_that_is_named_comes_into_sight_where_the_details_are_not_shown() {
    let mut console = Console::new(world(), 80, 24);
    console.press("2 j");
    console.hides("overview");
    console.press(". t");
    console.shows("overview   story");
}

#[test]
fn the_palette_looks_for_words_that_are_no_command() {
    let mut console = Console::new(world(), 100, 30);
    console.press(": 'zanzibar invoice'");
    console.shows("nothing matches; enter looks for these words");
    console.press("enter");
    assert!(console.model.at::<FindScreen>().is_some());
    assert!(console.model.overlays.is_empty());
}

#[test]
fn a_key_that_may_not_follow_is_not_taken_for_itself() {
    let mut console = Console::new(world(), 100, 30);
    console.press("2 v y q");
    assert!(!console.asked.contains(&Effect::Quit));
    console.shows("y q means nothing here");
    console.shows("1 marked");
    console.press("n 3");
    console.shows("n 3 means nothing here");
    assert_eq!(console.model.screen().lists(), Some(Entity::Episode));
    console.press("3");
    assert_eq!(console.model.screen().lists(), Some(Entity::Memory));
}

#[test]
fn marked_rows_that_a_filter_hides_are_told() {
    let mut console = Console::new(many(30), 100, 30);
    console.press("2 v v v");
    console.shows("3 marked ");
    console.press("/ 'outcome = failure' enter");
    console.shows("3 marked, 2 not in this list");
    // What is not in sight is not changed.
    console.press("c d");
    console.shows("2 marked rows are not visible with this filter");
}

#[test]
fn a_command_that_writes_at_once_is_not_the_first_that_a_beginning_finds() {
    let mut console = super::changes::unlocked(100, 30);
    console.press("2 : 'undo' enter");
    assert!(console.asked.iter().all(|effect| !matches!(effect, Effect::Ask(_, Request::Plan(_)))));
    console.shows("nothing that was done in this session can be undone");
    console.press(": 'con' enter");
    assert!(console.asked.iter().all(|effect| !matches!(effect, Effect::Ask(_, Request::Plan(_)))));
    let mut console = super::changes::unlocked(100, 30);
    console.press("2 : 'confirmed' enter");
    assert!(console.asked.iter().any(|effect| matches!(effect, Effect::Ask(_, Request::Plan(_)))));
}
