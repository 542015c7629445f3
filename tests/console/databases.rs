//! Several databases open at once: what is shown of the others, going to them, how many there may be, and closing one.

use mnemoscope::console::core::request::{KnownDatabase, TriedDatabase};
use mnemoscope::console::core::{Effect, Message, OpenBeside, Reply, Request, RequestFailure, SwitchStep};
use mnemoscope::memory::Entity;
use serde_json::json;

use super::fake::{Console, asked, many, row, world};
use super::jobs::started;

fn known() -> Vec<KnownDatabase> {
    let of = |name: &str, production| KnownDatabase {
        name: name.to_owned(),
        note: String::new(),
        looked: None,
        production,
        open: name.to_owned(),
    };
    vec![of("/srv/agents/memory.db", false), of("prod", true)]
}

fn beside(id: u64, name: &str) -> OpenBeside {
    OpenBeside { id, shown: id, name: name.to_owned(), location: format!("/srv/{name}"), ..OpenBeside::default() }
}

fn told(console: &mut Console, open: Vec<OpenBeside>) {
    console.tell(Message::Beside(open));
}

fn steps(console: &Console) -> Vec<SwitchStep> {
    let step = |effect: &Effect| if let Effect::Switch(step) = effect { Some(*step) } else { None };
    console.asked.iter().filter_map(step).collect()
}

/// Chooses to open a database and has that go well at a location.
fn opens(console: &mut Console, location: &str) {
    opens_so(console, location, false);
}

/// As [`opens`]; whether that database replaces the one that is shown.
fn opens_so(console: &mut Console, location: &str, replaces: bool) {
    console.press("ctrl-o");
    let (ticket, _) = asked(console, |request| *request == Request::LoadDatabases);
    console.reply(ticket, Reply::Databases(known()));
    console.press("'address' enter 'x.db' enter");
    let (ticket, _) = asked(console, |request| matches!(request, Request::TryDatabase(_)));
    console.reply(ticket, Reply::Tried(Ok(TriedDatabase { location: location.to_owned(), replaces })));
}

#[test]
fn another_database_is_tried_before_it_is_shown() {
    let mut console = Console::new(world(), 120, 30);
    console.press("ctrl-o");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadDatabases);
    console.reply(ticket, Reply::Databases(known()));
    console.shows("/srv/agents/memory.db");
    console.shows("PRODUCTION");
    console.press("enter");
    let (ticket, request) = asked(&mut console, |request| matches!(request, Request::TryDatabase(_)));
    assert_eq!(request, Request::TryDatabase("/srv/agents/memory.db".to_owned()));
    let failure = RequestFailure::new("it was not opened", "no such file", "check the path");
    console.reply(ticket, Reply::Tried(Err(failure)));
    console.shows("no such file");
    assert_eq!(steps(&console), []);
    console.press("enter");
    opens(&mut console, "/srv/x.db");
    assert_eq!(steps(&console), [SwitchStep::Opened]);
}

#[test]
fn the_others_stand_in_the_first_line_with_what_is_new_there() {
    let mut console = Console::new(world(), 150, 30);
    console.press("ctrl-n");
    console.shows("Next database: no other database is open");
    let prod = OpenBeside { news: 3, production: true, ..beside(4, "prod") };
    told(&mut console, vec![prod.clone(), beside(1, "laptop.db")]);
    assert!(console.lines()[0].contains(" + laptop.db   ! + prod 3 new "), "{}", console.lines()[0]);
    console.press("ctrl-n");
    assert_eq!(steps(&console), [SwitchStep::To(4)]);
    console.tell(Message::Resize(60, 20));
    assert!(console.lines()[0].contains("! 2 more open 3 new"), "{}", console.lines()[0]);
    console.tell(Message::Resize(120, 30));
    console.press("ctrl-o");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadDatabases);
    let profile = KnownDatabase { note: "/srv/prod".to_owned(), ..known().remove(1) };
    console.reply(ticket, Reply::Databases(vec![known().remove(0), profile]));
    console.shows("open, 3 new");
    assert_eq!(console.text().matches("PRODUCTION").count(), 1, "an open database is not offered twice");
    console.press("'prod' enter");
    assert_eq!(steps(&console), [SwitchStep::To(4), SwitchStep::To(4)]);
}

#[test]
fn a_database_that_is_open_is_shown_and_not_opened_again() {
    let mut console = Console::new(world(), 120, 30);
    told(&mut console, vec![beside(1, "laptop.db")]);
    opens(&mut console, "memory/made-up.db");
    console.shows("this is the database that is shown");
    opens(&mut console, "/srv/laptop.db");
    assert_eq!(steps(&console), [SwitchStep::To(1)]);
}

#[test]
fn a_database_whose_file_was_replaced_is_opened_again_in_its_place() {
    let mut console = Console::new(world(), 120, 30);
    opens_so(&mut console, "memory/made-up.db", true);
    assert_eq!(steps(&console), [SwitchStep::Replace]);
    assert_eq!(console.model.leave().said.as_deref(), Some("opened again"));
}

#[test]
fn of_six_the_one_shown_longest_ago_without_work_under_way_is_closed_for_a_seventh() {
    let mut console = Console::new(world(), 120, 30);
    let busy = OpenBeside { under_way: Some("links is running".to_owned()), ..beside(1, "a.db") };
    let four = || vec![busy.clone(), beside(2, "b.db"), beside(3, "c.db"), beside(4, "d.db")];
    told(&mut console, four());
    opens(&mut console, "/srv/x.db");
    assert_eq!(steps(&console), [SwitchStep::Opened], "a sixth");
    let mut five = four();
    five.push(OpenBeside { shown: 0, under_way: busy.under_way.clone(), ..beside(5, "e.db") });
    told(&mut console, five.clone());
    opens(&mut console, "/srv/x.db");
    assert_eq!(steps(&console)[1..], [SwitchStep::Close(2), SwitchStep::Opened]);
    assert_eq!(console.model.leave().said.as_deref(), Some("closed b.db: 6 databases are open at most"));
    five.iter_mut().for_each(|open| open.under_way.clone_from(&busy.under_way));
    told(&mut console, five);
    opens(&mut console, "/srv/x.db");
    console.shows("something is running in each of the");
    assert_eq!(steps(&console).len(), 3);
}

#[test]
fn what_closing_would_break_off_is_named_first() {
    let (mut console, _) = started();
    console.press("ctrl-w");
    console.shows("no other database is open");
    told(&mut console, vec![beside(1, "laptop.db")]);
    console.press("ctrl-w");
    console.shows("canvas-links is running");
    console.press("enter");
    assert_eq!(steps(&console), [], "it is left open unless that is chosen");
    console.press("ctrl-w down enter");
    assert_eq!(steps(&console), [SwitchStep::Leave]);
    let mut idle = Console::new(world(), 120, 30);
    told(&mut idle, vec![beside(1, "laptop.db")]);
    idle.press("ctrl-w");
    assert_eq!(steps(&idle), [SwitchStep::Leave], "nothing is asked where nothing is broken off");
}

#[test]
fn a_job_of_another_database_is_named_before_the_end() {
    let job = started().0.model.beside(1, 0);
    assert_eq!(job.resumes, ["mnemoscope -d memory/made-up.db backfill resume canvas-links"]);
    let mut console = Console::new(world(), 120, 30);
    told(&mut console, vec![job]);
    console.press("q");
    console.shows("made-up.db: canvas-links is running");
    console.press("'Leave' enter");
    let lines =
        console.asked.iter().find_map(|effect| if let Effect::Tell(lines) = effect { Some(lines) } else { None });
    assert_eq!(lines.map(Vec::len), Some(1));
    assert!(console.asked.contains(&Effect::Quit));
}

#[test]
fn what_was_chosen_in_one_database_holds_in_the_next_and_what_was_masked_stays_so() {
    let mut first = Console::masked(world(), 100, 30);
    first.press("w 2 +");
    let arrival = first.model.leave();
    let mut second = Console::new(world(), 160, 50);
    second.press("2");
    second.shows("ada@example.org");
    second.tell(Message::Arrived(Box::new(arrival)));
    assert_eq!(second.model.context.size, (100, 30));
    assert_eq!(second.model.context.settings, first.model.context.settings);
    assert_eq!(second.model.context.pane_steps, 1);
    assert_eq!(second.lines().len(), 30);
    second.hides("ada@example.org");
}

#[test]
fn a_list_that_is_not_shown_goes_on_counting_what_is_new() {
    let mut console = Console::new(many(50), 120, 30);
    console.press("2");
    console.beat();
    assert_eq!(console.model.beside(1, 0).news, 0);
    let fresh = row(Entity::Episode, &[("id", json!("new")), ("started_at", json!("2026-02-04T10:00:00.000000Z"))]);
    console.database.rows.entry(Entity::Episode).or_default().push(fresh);
    console.beat();
    assert_eq!(console.model.beside(1, 0).news, 1);
}

#[test]
fn a_path_that_is_typed_among_the_databases_is_opened() {
    let mut console = Console::new(world(), 100, 30);
    console.press("ctrl-o");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadDatabases);
    console.reply(ticket, Reply::Databases(known()));
    console.press("'/zz/qq.db'");
    console.shows("enter opens what you typed");
    console.press("enter");
    asked(&mut console, |request| *request == Request::TryDatabase("/zz/qq.db".to_owned()));
}

/// A console where a database is chosen among these.
fn choosing(known: &[&str]) -> Console {
    let mut console = Console::new(world(), 100, 30);
    console.files = vec!["/srv/prod.db".to_owned(), "prod.db".to_owned()];
    console.press("ctrl-o");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadDatabases);
    let of = |name: &&str| KnownDatabase {
        name: (*name).to_owned(),
        note: String::new(),
        looked: None,
        production: false,
        open: (*name).to_owned(),
    };
    console.reply(ticket, Reply::Databases(known.iter().map(of).collect()));
    console
}

#[test]
fn what_is_typed_among_the_databases_and_is_a_file_goes_before_what_its_letters_find() {
    for (typed, opened) in [
        ("/srv/prod.db", "/srv/prod.db"),
        ("prod.db", "prod.db"),
        // There is no such file: the letters count.
        ("srv prod", "/srv/prod-staging.db"),
        // The name of a profile is meant as it stands.
        ("prod", "prod"),
    ] {
        let mut console = choosing(&["/srv/prod-staging.db", "prod-eu", "prod"]);
        console.press(&format!("'{typed}'"));
        console.press("enter");
        let (_, request) = asked(&mut console, |request| matches!(request, Request::TryDatabase(_)));
        assert_eq!(request, Request::TryDatabase(opened.to_owned()), "{typed}");
    }
    let mut console = choosing(&["/srv/prod-staging.db"]);
    console.press("'/srv/prod.db'");
    console.shows("/srv/prod-staging.db");
    console.shows("opens what you typed");
    console.press("down enter");
    asked(&mut console, |request| *request == Request::TryDatabase("/srv/prod-staging.db".to_owned()));
}

#[test]
fn enter_waits_until_it_is_known_whether_what_is_typed_is_a_file() {
    for (file, opened) in [("/srv/prod.db", "/srv/prod.db"), ("/srv/other.db", "/srv/prod-staging.db")] {
        let mut console = choosing(&["/srv/prod-staging.db"]);
        console.files = vec![file.to_owned()];
        console.holding = true;
        console.tell(Message::Paste("/srv/prod.db".to_owned()));
        console.press("enter");
        let tries = |effect: &Effect| matches!(effect, Effect::Ask(_, Request::TryDatabase(_)));
        assert!(!console.held.iter().any(tries), "{:?}", console.held);
        console.holding = false;
        console.answer();
        asked(&mut console, |request| *request == Request::TryDatabase(opened.to_owned()));
    }
}

#[test]
fn a_database_is_the_same_however_it_was_named() {
    let mut console = Console::new(world(), 120, 30);
    console.model.context.opened.place = "/srv/agents/memory.db".to_owned();
    console.press("ctrl-o");
    let (ticket, _) = asked(&mut console, |request| *request == Request::LoadDatabases);
    console.reply(ticket, Reply::Databases(known()));
    console.shows("PRODUCTION");
    console.hides("/srv/agents/memory.db");
    console.press("esc");
    opens(&mut console, "/srv/agents/memory.db");
    console.shows("this is the database that is shown");
    assert_eq!(steps(&console), []);
}
