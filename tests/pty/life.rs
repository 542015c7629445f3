//! How the console lives in a terminal: it starts, follows the window, stops and goes on, and gives the terminal back
//! whatever ends it.

use std::path::Path;
use std::process::Command;

use super::bytes::{Piece, pieces};
use super::terminal::Launch;
use super::{Place, at_episodes, has_ended};

#[test]
fn it_shows_rows_and_leaves_nothing_behind() {
    let place = Place::new();
    let mut session = place.opened();
    assert!(session.seen().screen().alternate_screen());
    assert!(session.seen().title().contains("episodes"), "{}", session.seen().title());
    session.send("j");
    session.shows("row 2 of 60");
    session.send("q");
    let raw = has_ended(&mut session, 0);
    assert!(!raw.windows(4).any(|part| part == b"\x1b[6n"), "the terminal is not asked for its cursor");
}

#[test]
fn it_follows_the_window() {
    let place = Place::new();
    let mut session = place.opened();
    session.resize(60, 20);
    session.hides("situation");
    session.shows("row 1 of 60");
    session.resize(20, 5);
    session.shows("Too small");
    session.send("jj");
    for step in 0..200 {
        session.resize(40 + step, 10 + step / 4);
    }
    session.resize(120, 40);
    session.shows("row 3 of 60");
    session.shows("situation");
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn a_window_without_a_size_is_no_end() {
    let place = Place::new();
    let mut session = place.launch().size(0, 0).start();
    session.wait("a frame", |seen| seen.raw.ends_with(b"\x1b[?2026l").then_some(()));
    session.resize(120, 40);
    session.shows("newest episodes");
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn it_stops_and_goes_on() {
    let place = Place::new();
    let mut session = place.opened();
    for stop in ["key", "signal"] {
        match stop {
            "key" => session.send("\x1a"),
            _ => session.signal("TSTP"),
        }
        session.stopped();
        session.wait("the terminal given back", |seen| (!seen.screen().alternate_screen()).then_some(()));
        session.is_given_back();
        session.resize(100, 30);
        session.signal("CONT");
        session.shows("row 1 of 60");
        assert!(session.seen().screen().alternate_screen());
        session.resize(120, 40);
        session.shows("situation");
    }
    session.send("j");
    session.shows("row 2 of 60");
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn what_stopped_it_unasked_leaves_no_trace() {
    let place = Place::new();
    let mut session = place.opened();
    session.signal("STOP");
    session.stopped();
    let before = session.seen().raw.len();
    session.signal("CONT");
    session.wait("the screen taken back", |seen| {
        let since = &seen.raw[before..];
        let entered = since.windows(8).any(|part| part == b"\x1b[?1049h");
        (entered && since.ends_with(b"\x1b[?2026l") && seen.text().contains("row 1 of 60")).then_some(())
    });
    assert!(session.seen().title().contains("episodes"), "{}", session.seen().title());
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn a_shell_stops_it_and_brings_it_back() {
    let place = Place::new();
    let shell = Path::new("/bin/sh");
    let mut session = Launch::program(shell, place.folder(), &["-i"]).start();
    session.shows("ready>");
    let program = env!("CARGO_BIN_EXE_mnemoscope");
    session.send(&format!("{program} console demo.db --theme dark\r"));
    at_episodes(&session);
    session.send("\x1a");
    session.wait("the shell", |seen| seen.text().trim_end().ends_with("ready>").then_some(()));
    session.send("echo a$((40 + 2))\r");
    session.shows("a42");
    session.send("fg\r");
    session.shows("row 1 of 60");
    session.send("q");
    session.wait("the shell", |seen| seen.text().trim_end().ends_with("ready>").then_some(()));
    session.send("exit 7\r");
    assert_eq!(session.end().0, 7);
}

#[test]
fn signals_end_it_in_order() {
    for (name, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let place = Place::new();
        let mut session = place.opened();
        session.signal(name);
        has_ended(&mut session, code);
    }
}

#[test]
fn a_signal_at_the_very_beginning_ends_it_too() {
    let place = Place::new();
    // No theme is named: the terminal is asked for its colours, in raw mode.
    let mut session = Launch::mnemoscope(place.folder(), &["demo.db"]).start();
    session.wait("a first sign", |seen| (!seen.raw.is_empty()).then_some(()));
    session.signal("TERM");
    has_ended(&mut session, 143);
}

#[test]
#[cfg(debug_assertions)]
fn a_panic_in_any_thread_is_told_on_a_terminal_that_is_given_back() {
    for thread in ["here", "task"] {
        let place = Place::new();
        let mut session = place.launch().with("MNEMOSCOPE_TEST_PANIC", thread).start();
        at_episodes(&session);
        session.send("\x0c");
        let raw = has_ended(&mut session, 101);
        let text = session.seen().text();
        assert!(text.contains("mnemoscope: a bug, at src/") && text.contains("provoked by"), "{thread}: {text}");
        let left = raw.windows(8).rposition(|part| part == b"\x1b[?1049l").unwrap();
        let told = raw.windows(11).position(|part| part == b"provoked by").unwrap();
        assert!(left < told, "{thread}: told after the terminal is given back");
        assert!(session.seen().copied().is_empty(), "{thread}: its words do not act on the terminal");
        assert!(!String::from_utf8(raw).unwrap().contains('\u{202e}'), "{thread}");
    }
}

#[test]
fn an_editor_has_the_terminal_for_itself() {
    let place = Place::new();
    let script = place.folder().join("editor");
    let words = "#!/bin/sh\ntrap '' INT\nls -l \"$1\"\necho EDITING\nread line\n";
    std::fs::write(&script, words).unwrap();
    let editor = format!("/bin/sh {}", script.display());
    let leftovers = || {
        let names = std::fs::read_dir(place.folder()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("mnemoscope-")).count()
    };
    let mut session = place.launch().with("EDITOR", &editor).start();
    at_episodes(&session);
    session.send("o");
    session.shows("EDITING");
    session.shows("-rw-------");
    session.is_given_back();
    // Meant for the editor.
    session.send("\x03\n");
    session.wait("the console", |seen| seen.screen().alternate_screen().then_some(()));
    session.shows("row 1 of 60");
    assert_eq!(leftovers(), 0);
    session.send("o");
    session.shows("EDITING");
    session.signal("TERM");
    has_ended(&mut session, 143);
    assert_eq!(leftovers(), 0);
}

#[test]
fn an_editor_that_is_not_there_is_a_card() {
    let place = Place::new();
    let mut session = place.launch().with("EDITOR", "/nowhere/editor").start();
    at_episodes(&session);
    session.send("o");
    session.shows("The editor was not opened");
    session.send("\x1b");
    session.hides("was not opened");
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn copies_go_through_the_terminal() {
    use base64::Engine as _;
    let place = Place::new();
    let mut session = place.opened();
    session.send("Y");
    session.shows("JSON copied");
    let copied = session.seen().copied().to_vec();
    let text = base64::engine::general_purpose::STANDARD.decode(&copied[0]).unwrap();
    let row: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert!(row["id"].is_string(), "{row}");
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn an_export_is_there_as_a_whole_and_takes_no_place() {
    let place = Place::new();
    let mut session = place.opened();
    let export = |name: &str| {
        session.send("e");
        session.shows("Export to");
        session.send(&format!("\x15{name}\r"));
    };
    export("rows.jsonl");
    session.shows("60 rows written to");
    let text = std::fs::read_to_string(place.folder().join("rows.jsonl")).unwrap();
    assert_eq!(text.lines().count(), 60);
    export("rows.jsonl");
    session.shows("name a file that does not exist yet");
    session.send("\x1b");
    session.hides("does not exist yet");
    export("nowhere/rows.jsonl");
    session.shows("in a folder that exists");
    session.send("\x1b");
    session.hides("in a folder that exists");
    session.send("q");
    has_ended(&mut session, 0);
    let mut files = std::fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path());
    assert!(files.all(|file| file.extension().is_none_or(|ending| ending != "part")));
}

#[test]
fn a_paste_gives_no_commands_and_a_click_selects() {
    let place = Place::new();
    let mut session = place.opened();
    session.send("\x1b[200~q\x1b[201~");
    // The fourth row of the list, by the mouse.
    session.send("\x1b[<0;10;8M\x1b[<0;10;8m");
    session.shows("row 4 of 60");
    session.send("\x1b[<65;10;8M");
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn the_mouse_can_be_left_to_the_terminal() {
    let place = Place::new();
    let mut session = Launch::mnemoscope(place.folder(), &["console", "demo.db", "--no-mouse"]).start();
    at_episodes(&session);
    assert_eq!(session.seen().screen().mouse_protocol_mode(), vt100::MouseProtocolMode::None);
    session.send("m");
    session.wait("the mouse", |seen| {
        (seen.screen().mouse_protocol_mode() != vt100::MouseProtocolMode::None).then_some(())
    });
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn without_colours_there_are_none() {
    let place = Place::new();
    let coloured = |raw: &[u8]| {
        let text = String::from_utf8(raw.to_vec()).unwrap();
        pieces(&text).iter().any(|piece| match piece {
            Piece::Csi(codes, 'm') => {
                codes.split(';').any(|code| matches!(code.parse(), Ok(30..=38 | 40..=48 | 90..=107)))
            }
            _ => false,
        })
    };
    for (name, value, expected) in [("NO_COLOR", "1", false), ("NO_COLOR", "", true)] {
        let mut session = Launch::mnemoscope(place.folder(), &["demo.db"]).with(name, value).start();
        at_episodes(&session);
        session.send("q");
        assert_eq!(coloured(&has_ended(&mut session, 0)), expected, "{name}={value}");
    }
}

#[test]
fn a_locale_without_unicode_gets_ascii() {
    let place = Place::new();
    let mut session = place.launch().with("LANG", "C").start();
    at_episodes(&session);
    // Ours; a stored name may hold other letters.
    let drawn = |c: char| matches!(c, '\u{2010}'..='\u{2bff}');
    assert!(!session.seen().text().contains(drawn), "{}", session.seen().text());
    session.send("q");
    has_ended(&mut session, 0);
}

#[test]
fn what_cannot_be_opened_is_told_without_taking_the_screen() {
    let place = Place::new();
    for (arguments, words, code) in [
        (&["missing.db"][..], "there is no such file", 3),
        (&["console", "demo.db", "--theme", "purple"], "known are dark", 2),
    ] {
        let mut session = Launch::mnemoscope(place.folder(), arguments).start();
        let raw = has_ended(&mut session, code);
        assert!(session.seen().text().contains(words), "{}", session.seen().text());
        assert!(!raw.windows(8).any(|part| part == b"\x1b[?1049h"));
    }
}

#[test]
fn a_script_is_told_that_a_terminal_is_needed() {
    let place = Place::new();
    let out = Command::new(env!("CARGO_BIN_EXE_mnemoscope"))
        .arg(place.database())
        .env("MNEMOSCOPE_CONFIG", place.folder().join("config.toml"))
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(out.stdout.is_empty());
    assert!(String::from_utf8_lossy(&out.stderr).contains("needs a terminal"));
}

#[test]
fn without_a_database_it_offers_the_demo() {
    let place = Place::new();
    let mut session = Launch::mnemoscope(place.folder(), &[]).start();
    session.shows("Make a demo database");
    session.send("n\n");
    has_ended(&mut session, 2);
    let mut session = Launch::mnemoscope(place.folder(), &[]).start();
    session.shows("Make a demo database");
    session.send("\n");
    session.shows("newest episodes");
    session.send("q");
    has_ended(&mut session, 0);
}
