//! Everyday life in a terminal: a shell's job control, the mouse, pastes, exports, colours and letters, and what is said
//! when there is nothing to open.

use std::process::Command;

use vt100::MouseProtocolMode;

use super::terminal::{Home, PROGRAM, Start, episodes, quit};

#[test]
fn a_shell_stops_it_and_brings_it_back() {
    let home = Home::new();
    home.demo();
    let mut terminal = Start::new(&home, &["-i"]).with("PS1", "ready> ").program("/bin/sh").run();
    let prompts = |screen: &vt100::Screen| screen.contents().trim_end().ends_with("ready>");
    terminal.screen_is("the shell", prompts);
    terminal.press(&format!("{PROGRAM} demo.db\r"));
    terminal.shows("newest episodes");
    terminal.press("\x1a");
    terminal.screen_is("the shell again", prompts);
    terminal.press("echo a$((40 + 2))\r");
    terminal.shows("a42");
    terminal.press("fg\r");
    terminal.shows("newest episodes");
    terminal.press("q");
    terminal.screen_is("the shell at the end", prompts);
    terminal.press("exit 7\r");
    assert_eq!(terminal.ended_and_read(), 7);
}

#[test]
fn a_window_without_a_size_is_waited_for() {
    let home = Home::new();
    home.demo();
    let terminal = Start::new(&home, &["demo.db"]).sized(0, 0).run();
    terminal.screen_is("the console's screen", vt100::Screen::alternate_screen);
    terminal.resize(120, 40);
    terminal.shows("newest episodes");
    quit(terminal);
}

#[test]
fn a_paste_gives_no_commands_and_a_click_selects() {
    let home = Home::new();
    home.demo();
    let terminal = episodes(Start::new(&home, &["demo.db"]));
    terminal.press("\x1b[200~q\x1b[201~");
    terminal.press("\x1b[<0;10;8M\x1b[<0;10;8m");
    terminal.shows("row 4 of 250");
    quit(terminal);
}

#[test]
fn the_mouse_can_be_left_to_the_terminal() {
    let home = Home::new();
    home.demo();
    let terminal = episodes(Start::new(&home, &["console", "demo.db", "--no-mouse"]));
    terminal.with_screen(|screen| assert_eq!(screen.mouse_protocol_mode(), MouseProtocolMode::None));
    terminal.press("\x1bm");
    terminal.screen_is("the mouse taken", |screen| screen.mouse_protocol_mode() != MouseProtocolMode::None);
    quit(terminal);
}

#[test]
fn an_export_is_there_as_a_whole_and_takes_no_others_place() {
    let home = Home::new();
    home.demo();
    let terminal = episodes(Start::new(&home, &["demo.db"]));
    let export = |name: &str| {
        terminal.press("e");
        terminal.shows("Export to");
        terminal.press(&format!("\x15{name}\r"));
    };
    let files = || std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
    export("rows.jsonl");
    terminal.shows("250 rows written to");
    let text = std::fs::read_to_string(home.path().join("rows.jsonl")).unwrap();
    assert!(text.lines().count() == 250 && text.ends_with('\n'));
    for (name, told) in [("rows.jsonl", "that does not exist yet"), ("nowhere/rows.jsonl", "in a folder that exists")] {
        export(name);
        terminal.shows(told);
        terminal.press("\x1b");
        terminal.screen_is("no card", |screen| !screen.contents().contains(told));
    }
    assert_eq!(std::fs::read_to_string(home.path().join("rows.jsonl")).unwrap(), text);
    assert!(files().all(|file| file.extension().is_none_or(|ending| ending != "part")));
    quit(terminal);
}

#[test]
fn an_editor_that_is_not_there_is_told_on_a_card() {
    let home = Home::new();
    home.demo();
    let terminal = episodes(Start::new(&home, &["demo.db"]).with("EDITOR", "/nowhere/editor"));
    terminal.press("o");
    terminal.shows("The editor was not opened");
    terminal.press("\x1b");
    terminal.screen_is("no card", |screen| !screen.contents().contains("was not opened"));
    quit(terminal);
}

#[test]
fn without_colours_there_are_none() {
    let home = Home::new();
    home.demo();
    let colours = |start: Start| {
        let terminal = episodes(start);
        let mut found = false;
        terminal.with_screen(|screen| {
            let cells = (0..40).flat_map(|row| (0..120).filter_map(move |column| screen.cell(row, column)));
            found = cells
                .into_iter()
                .any(|cell| [cell.fgcolor(), cell.bgcolor()].iter().any(|colour| *colour != vt100::Color::Default));
        });
        quit(terminal);
        found
    };
    assert!(colours(Start::new(&home, &["demo.db"]).with("NO_COLOR", "")));
    assert!(!colours(Start::new(&home, &["demo.db"]).with("NO_COLOR", "1")));
    assert!(!colours(Start::new(&home, &["demo.db", "--color", "never"])));
}

#[test]
fn a_locale_without_unicode_is_drawn_with_ascii() {
    let home = Home::new();
    home.demo();
    let terminal = episodes(Start::new(&home, &["demo.db"]).with("LANG", "C"));
    // Frames, arrows, marks: what is ours. A stored name may hold letters of its own.
    let ours = |c: char| matches!(c, '\u{2010}'..='\u{2bff}');
    let contents = terminal.contents();
    assert!(!contents.contains(ours), "{contents}");
    quit(terminal);
}

#[test]
fn what_cannot_be_opened_is_told_without_taking_the_screen() {
    let home = Home::new();
    home.demo();
    for (arguments, told, code) in [
        (&["missing.db"][..], "there is no such file", 3),
        (&["console", "demo.db", "--theme", "purple"], "known are dark", 2),
    ] {
        let mut terminal = Start::new(&home, arguments).run();
        assert_eq!(terminal.ended_and_read(), code);
        assert!(terminal.contents().contains(told), "{}", terminal.contents());
        assert!(!terminal.raw().contains(&0x1b));
    }
}

#[test]
fn where_nothing_is_named_the_demo_is_offered() {
    let home = Home::new();
    let mut terminal = Start::new(&home, &[]).run();
    terminal.shows("No database is named");
    terminal.press("n\r");
    assert_eq!(terminal.ended_and_read(), 2);
    assert!(!home.path().join("state").exists());
    let terminal = Start::new(&home, &[]).run();
    terminal.shows("No database is named");
    terminal.press("\r");
    terminal.shows("newest episodes");
    quit(terminal);
}

#[test]
fn the_past_is_looked_at_and_words_are_found_in_it() {
    let home = Home::new();
    home.demo();
    let terminal = episodes(Start::new(&home, &["demo.db"]).sized(120, 40));
    terminal.press("@");
    terminal.shows("As of");
    terminal.press("30d\r");
    terminal.shows("Nothing can be changed meanwhile");
    terminal.press("\r");
    terminal.shows("as of 20");
    // What came later is not there, wherever one looks.
    terminal.press(":");
    terminal.press("find\r");
    terminal.shows("Find");
    terminal.press("a\r");
    terminal.shows(" found");
    terminal.press("@");
    terminal.shows("As of");
    terminal.press("\r");
    terminal.shows("rows are shown as they are now");
    quit(terminal);
}

#[test]
fn another_database_is_gone_to_and_what_was_kept_is_there_at_the_next_start() {
    let home = Home::new();
    home.demo();
    std::fs::copy(home.path().join("demo.db"), home.path().join("other.db")).expect("a second database");
    let terminal = episodes(Start::new(&home, &["demo.db"]).sized(120, 40));
    terminal.press("/");
    terminal.shows("Filter");
    terminal.press("outcome = failure\r");
    terminal.shows("episodes where outcome");
    terminal.press("bk");
    terminal.shows("Save this place as");
    terminal.press("\r");
    terminal.shows("saved as");
    terminal.press("\x0f");
    terminal.shows("Open another database");
    terminal.press("address\r");
    terminal.shows("a path, a folder, an address");
    terminal.press("missing.db\r");
    terminal.shows("was not opened");
    terminal.press("\r\x0f");
    terminal.shows("Open another database");
    terminal.press("address\r");
    terminal.shows("a path, a folder");
    terminal.press("other.db\r");
    terminal.shows(" other.db › home");
    terminal.shows("newest episodes");
    terminal.press("\x0e");
    terminal.shows("episodes where outcome");
    quit(terminal);
    let terminal = Start::new(&home, &["demo.db"]).sized(120, 40).run();
    terminal.shows("newest episodes");
    terminal.press("bb");
    terminal.shows("where I was last");
    terminal.press("\r");
    terminal.shows("episodes where outcome");
    quit(terminal);
}

#[test]
fn a_console_keeps_what_it_changed_and_nothing_of_a_person_who_was_erased_meanwhile() {
    let home = Home::new();
    home.demo();
    let run = |words: &[&str]| {
        let surroundings = home.surroundings();
        let mut command = Command::new(PROGRAM);
        command.current_dir(home.path()).env_clear().envs(surroundings).args(["-d", "demo.db"]).args(words);
        let output = command.output().expect("the program");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let kept = |file: &str| std::fs::read_to_string(home.path().join("state").join(file)).unwrap_or_default();
    let filtered = |filter: &str| {
        let terminal = episodes(Start::new(&home, &["demo.db"]).sized(120, 40));
        terminal.press("/");
        terminal.shows("Filter");
        terminal.press(&format!("{filter}\r"));
        terminal.shows("episodes where");
        terminal
    };
    run(&["migrate", "--apply"]);
    let (first, second) = (filtered("outcome = failure"), filtered("outcome = success"));
    quit(first);
    quit(second);
    let filters = kept("filters.toml");
    assert!(filters.contains("outcome = failure") && filters.contains("outcome = success"), "{filters}");
    let open = filtered("user_id = mateus.thorne");
    run(&["purge", "mateus.thorne", "--account", "erase", "--mentions", "redact", "--apply"]);
    quit(open);
    let kept = [kept("filters.toml"), kept("places.toml")].concat();
    assert!(!kept.contains("mateus"), "{kept}");
}

#[test]
fn a_database_whose_file_was_replaced_is_opened_again_by_its_path() {
    let home = Home::new();
    let (database, copy) = (home.demo(), home.path().join("copy.db"));
    std::fs::copy(&database, &copy).expect("a second database");
    let other = rusqlite::Connection::open(&copy).expect("the second database");
    other.execute_batch("UPDATE episodes SET title = 'From the other file'").expect("changed");
    other.close().expect("closed");
    let terminal = episodes(Start::new(&home, &["demo.db"]).sized(120, 40));
    std::fs::rename(&copy, &database).expect("replaced");
    terminal.shows("cannot be read");
    terminal.press("\x0f");
    terminal.shows("Open another database");
    terminal.press("address\r");
    terminal.shows("a path, a folder");
    terminal.press("demo.db\r");
    terminal.shows("opened again");
    terminal.press("2");
    terminal.shows("From the other file");
    quit(terminal);
}

#[test]
fn rows_that_another_process_changes_and_deletes_are_shown_as_they_are() {
    let home = Home::new();
    let other = rusqlite::Connection::open(home.demo()).expect("the database");
    let terminal = episodes(Start::new(&home, &["demo.db"]).sized(160, 40));
    terminal.press("j");
    terminal.shows("row 2 of 250");
    other
        .execute_batch(
            "UPDATE episodes SET title = 'Renamed by someone else' WHERE id = (SELECT id FROM episodes ORDER BY \
         started_at DESC LIMIT 1 OFFSET 3)",
        )
        .expect("changed");
    terminal.shows("Renamed by someone else");
    other.execute_batch("DELETE FROM episodes WHERE title = 'Renamed by someone else'").expect("deleted");
    terminal.screen_is("the list without it", |screen| {
        screen.contents().contains("row 2 of 249") && !screen.contents().contains("Renamed")
    });
    quit(terminal);
}

#[test]
fn a_database_that_is_open_beside_the_one_shown_tells_what_is_new_and_is_let_go_of_when_closed() {
    let home = Home::new();
    let database = home.demo();
    let other = home.path().join("other.db");
    std::fs::copy(&database, &other).expect("a second database");
    let run = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        let out = command.env_clear().envs(home.surroundings()).arg("-d").arg(&database).args(words).output();
        let out = out.expect("another process");
        assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
        out.stdout
    };
    run(&["migrate", "--apply"]);
    let listed: serde_json::Value = serde_json::from_slice(&run(&["list", "episode", "--limit", "1"])).expect("JSON");
    let terminal = Start::new(&home, &["demo.db"]).sized(120, 40).run();
    terminal.shows("newest episodes");
    terminal.press("5");
    terminal.shows("row 1 of");
    terminal.press("\x0f");
    terminal.shows("Open another database");
    terminal.press("address\r");
    terminal.shows("a path, a folder");
    terminal.press("other.db\r");
    terminal.shows(" other.db › home");
    run(&["feedback", "add", listed["rows"][0]["id"].as_str().expect("an id"), "--kind", "thumbs_up", "--apply"]);
    terminal.shows(" demo.db 1 new ");
    assert!(terminal.holds(&other));
    terminal.press("\x17");
    terminal.shows("1 new, space shows them");
    terminal.screen_is("the one left alone", |screen| !screen.contents().contains("other.db"));
    terminal.lets_go_of(&other);
    quit(terminal);
}

#[test]
fn a_situation_is_ranked_kept_and_asked_again() {
    let home = Home::new();
    home.demo();
    let terminal = episodes(Start::new(&home, &["demo.db"]).sized(160, 90));
    terminal.press("W");
    terminal.shows("as in episode");
    terminal.shows("by vectors, read and compared here");
    terminal.press("+");
    terminal.shows("by vectors kept in memory");
    terminal.press("/");
    terminal.shows("Situation");
    terminal.press("visa for a trip\r");
    terminal.shows("no embedding endpoint is set");
    terminal.press("bk");
    terminal.shows("Keep as");
    terminal.press("trips\r");
    terminal.shows("saved as trips");
    terminal.press("bb");
    terminal.shows("Ask a saved question");
    terminal.press("\r");
    quit(terminal);
}

#[test]
fn a_database_is_known_by_its_own_path_wherever_it_was_opened_from() {
    let home = Home::new();
    let demo = home.demo().canonicalize().expect("a path");
    let terminal = Start::new(&home, &["demo.db"]).run();
    terminal.shows("your first visit");
    quit(terminal);
    // The same one in full: it was looked at, and it is offered by that path alone.
    let full = demo.display().to_string();
    let terminal = Start::new(&home, &[&full]).run();
    terminal.shows("since you looked");
    quit(terminal);
    let mut terminal = Start::new(&home, &[]).sized(200, 40).run();
    terminal.shows("No database is named");
    terminal.shows("demo.db");
    assert_eq!(terminal.contents().matches("demo.db").count(), 1, "{}", terminal.contents());
    terminal.press("n\r");
    assert_eq!(terminal.ended_and_read(), 2);
}
