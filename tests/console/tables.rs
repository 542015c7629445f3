//! Tables as they stand, their rows, a drafted layout; and words sought within details.

use mnemoscope::console::core::{EditorEnd, Effect, Message, Reply, Request, RequestFailure};
use mnemoscope::console::screens::browse::ListScreen;
use mnemoscope::console::screens::tables::messages::{TableEntry, TablePage};
use mnemoscope::memory::Entity;
use mnemoscope::memory::growth::TableGrowth;
use serde_json::{Value, json};

use super::fake::{Console, asked, world};

fn entry(name: &str, rows: u64) -> TableEntry {
    TableEntry {
        name: name.to_owned(),
        kind: "table".to_owned(),
        rows: Some(rows),
        key: vec!["id".to_owned()],
        columns: vec![("id".to_owned(), "INTEGER".to_owned()), ("note".to_owned(), "TEXT".to_owned())],
        ..TableEntry::default()
    }
}

fn page(from: usize, next: Option<&str>) -> TablePage {
    let row = |at: usize| -> Vec<Value> { vec![json!(at), json!(format!("note {at}"))] };
    TablePage {
        columns: vec!["id".to_owned(), "note".to_owned()],
        rows: (from..from + 50).map(row).collect(),
        next: next.map(str::to_owned),
    }
}

/// The screen with its tables and the first rows of the first.
fn at_tables(mut console: Console) -> Console {
    console.press("B");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadTables);
    let closed = TableEntry { unread: Some("your role may not read it".to_owned()), ..entry("wages", 3) };
    console.reply(ticket, Reply::Tables(Ok(vec![entry("notes", 1_234), closed])));
    let (ticket, request) = asked(&mut console, |request| matches!(request, Request::LoadTableRows(..)));
    assert_eq!(request, Request::LoadTableRows("notes".to_owned(), None));
    console.reply(ticket, Reply::TableRows(Ok(page(0, Some("c1")))));
    console.draw();
    console
}

#[test]
fn tables_are_listed_with_their_rows_at_every_size() {
    for (width, height) in [(200, 50), (100, 30), (80, 24), (60, 20)] {
        let mut console = at_tables(Console::new(world(), width, height));
        console.shows("notes");
        console.shows("1,234");
        console.shows("note 0");
        console.shows("this row");
        console.press("j");
        console.shows("your role may not read it");
    }
}

#[test]
fn where_there_are_no_tables_no_rows_are_awaited() {
    let mut console = Console::new(world(), 100, 30);
    console.press("B");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadTables);
    console.reply(ticket, Reply::Tables(Ok(Vec::new())));
    console.shows("There are no tables here");
    console.shows("creates the memory tables");
    console.hides("draft a layout");
    console.hides("Reading");
    assert_eq!(console.text().matches('○').count(), 1, "one card");
}

#[test]
fn the_growth_of_a_table_stands_below_its_rows() {
    let mut console = at_tables(Console::new(world(), 100, 30));
    console.shows("being counted");
    let (ticket, request) = asked(&mut console, |request| matches!(request, Request::LoadGrowth(_)));
    assert_eq!(request, Request::LoadGrowth("notes".to_owned()));
    let mut growth = TableGrowth::new(Entity::Memory, "created_at");
    for (day, rows) in [("2026-01-05", 3), ("2026-01-09", 4), ("2026-02-03", 1_200)] {
        growth.add(Some(day), rows);
    }
    growth.add(None, 2);
    console.reply(ticket, Reply::Grown(Ok(Ok(growth))));
    console.shows("memories a week, 2026-01-05 to 2026-02-02: at most 1,200, 2 without a time");
    console.tell(Message::Resize(200, 50));
    console.shows("1.2k");
    let mut console = at_tables(Console::new(world(), 60, 20));
    let (ticket, _) = asked(&mut console, |request| matches!(request, Request::LoadGrowth(_)));
    console.reply(ticket, Reply::Grown(Ok(Err("subject has no time of creation".to_owned()))));
    console.shows("subject has no time of creation");
}

#[test]
fn rows_are_read_on_as_somebody_comes_near_their_end() {
    let mut console = at_tables(Console::new(world(), 140, 40));
    console.press("tab j*35");
    let (ticket, request) = asked(&mut console, |request| matches!(request, Request::LoadTableRows(..)));
    assert_eq!(request, Request::LoadTableRows("notes".to_owned(), Some("c1".to_owned())));
    console.reply(ticket, Reply::TableRows(Ok(page(50, None))));
    console.press("j*40");
    console.shows("note 75");
    console.press("l");
    console.press("esc y c");
    let command = console.asked.iter().rev().find_map(|effect| match effect {
        Effect::Copy(_, text) => Some(text.clone()),
        _ => None,
    });
    assert_eq!(command.as_deref(), Some("mnemoscope -d memory/made-up.db tables"));
}

#[test]
fn a_layout_is_drafted_and_opened_in_the_editor() {
    let mut console = at_tables(Console::new(world(), 100, 30));
    console.press("o");
    let (ticket, _) = asked(&mut console, |request| *request == Request::DraftLayout);
    console.press("o");
    console.shows("a draft is being made");
    console.reply(ticket, Reply::Drafted(Ok("[layout]".to_owned())));
    assert!(console.asked.contains(&Effect::Edit("toml", "[layout]".to_owned())), "{:?}", console.asked);
    console.tell(Message::Viewed(Ok(EditorEnd::Kept("/tmp/draft.toml".to_owned()))));
    console.shows("It is in /tmp/draft.toml");
    console.shows("mnemoscope -d memory/made-up.db layouts check");
    assert!(console.asked.contains(&Effect::Tell(vec!["The draft is in /tmp/draft.toml".to_owned()])));
    console.press("esc");
    console.press("o");
    let (ticket, _) = asked(&mut console, |request| *request == Request::DraftLayout);
    let failure = RequestFailure::new("No layout was drafted", "there are no tables", "write one by hand");
    console.reply(ticket, Reply::Drafted(Err(failure)));
    console.shows("there are no tables");
}

#[test]
fn values_of_unknown_columns_are_masked() {
    let mut console = at_tables(Console::masked(world(), 140, 40));
    console.hides("note 0");
}

#[test]
fn words_are_sought_within_details_and_gone_to() {
    let mut console = Console::new(world(), 100, 30);
    console.press("2 j tab / 'FEEDBACK' enter");
    console.shows("1 of ");
    let first = console.model.at::<ListScreen>().expect("a list").detail.scroll;
    console.press(",");
    console.shows("for \"FEEDBACK\"");
    let last = console.model.at::<ListScreen>().expect("a list").detail.scroll;
    assert!(last > first, "{first} {last}");
    console.press("; enter");
    assert_eq!(console.model.at::<ListScreen>().expect("a list").detail.scroll, first);
    console.press("esc");
    console.hides("for \"FEEDBACK\"");
    console.press("; 'nowhere' enter");
    console.shows("nowhere was not found here");
    // What is typed next is sought, and is not a command.
    console.press("; 'feedback' enter");
    console.shows("1 of ");
    console.press("; 'tuesday' enter");
    assert_eq!(console.model.at::<ListScreen>().expect("a list").detail.sought, "tuesday");
    assert!(console.asked.iter().all(|effect| !matches!(effect, Effect::Ask(_, Request::Plan(_)))));
    let mut narrow = Console::new(world(), 80, 24);
    narrow.press("2 j ; 'FEEDBACK' enter");
    narrow.shows("1 of ");
}
