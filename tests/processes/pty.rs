//! The program as people meet it: in a terminal, with keys, signals, resizes, panics, and with hostile text stored.

mod beside;
mod bytes;
mod changing;
mod erasing;
mod everyday;
mod hardship;
mod hostile;
mod masked;
mod picture;
pub mod terminal;

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Allowed, COMMAND, CONSOLE, is_harmful, read};
use mnemoscope::console::core::command::{COMMANDS, CommandId};
use mnemoscope::memory::Entity;

use terminal::{Background, Home, PROGRAM, Start, Terminal};

const WHITE: Background = Background::Light("", "\x1b\\");

#[test]
fn keys_typed_before_the_screen_is_up_are_not_lost() {
    let home = Home::new();
    home.demo();
    let answers = [("2", Background::Silent), ("2", WHITE), ("", Background::Light("2", "\x07"))];
    for (typed, background) in answers {
        let mut terminal = Start::new(&home, &["demo.db"]).typed(typed).on(background).run();
        terminal.shows("of 250");
        terminal.press("q");
        assert_eq!(terminal.ended_and_read(), 0, "{background:?}");
        terminal.is_given_back();
    }
}

/// The console on a demo database, with its first screen.
fn console(home: &Home) -> Terminal {
    home.demo();
    let terminal = Start::new(home, &["demo.db"]).run();
    terminal.shows("newest episodes");
    terminal
}

#[test]
fn keys_and_themes_of_ones_own_stand_beside_the_settings() {
    let home = Home::new();
    home.demo();
    std::fs::create_dir(home.path().join("themes")).unwrap();
    let theme = "[roles]\nheading = { fg = \"#010203\" }\ntext = { fg = \"#010203\" }\n";
    std::fs::write(home.path().join("themes/night.toml"), theme).unwrap();
    let settings = |keys: &str| {
        let text = format!("theme = \"night\"\n[keys.everywhere]\n{keys}\n");
        std::fs::write(home.path().join("config.toml"), text).unwrap();
    };
    settings("home = [\"f9\", \"1\"]\n'list of episodes' = []");
    let mut refused = Start::new(&home, &["demo.db"]).run();
    assert_eq!(refused.ended_and_read(), 2);
    assert!(refused.contents().contains("config.toml:4"), "{}", refused.contents());
    settings("episodes = \"f9\"");
    let terminal = Start::new(&home, &["demo.db"]).run();
    terminal.shows("newest episodes");
    terminal.press("\x1b[20~");
    terminal.shows("started at");
    assert!(String::from_utf8_lossy(&terminal.raw()).contains("38;2;1;2;3"));
}

#[test]
fn plain_changes_are_told_in_lines_without_sequences() {
    let home = Home::new();
    home.demo();
    let mut terminal = Start::new(&home, &["console", "demo.db", "--plain"]).run();
    terminal.shows("newest episodes");
    terminal.press("2");
    terminal.shows("selected: ");
    terminal.press("j");
    terminal.press("c");
    terminal.shows("d, Remove");
    terminal.press("\x1b?");
    terminal.shows("/ search, esc close");
    terminal.press("\x1bq");
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    let raw = terminal.raw();
    assert!(!raw.contains(&0x1b), "{}", String::from_utf8_lossy(&raw));
    let told = String::from_utf8_lossy(&raw);
    assert!(!told.contains('│'));
    assert!(told.lines().all(|line| !line.contains(", d, Remove")), "{told}");
}

#[test]
fn the_theme_fits_the_terminals_background() {
    let home = Home::new();
    home.demo();
    // Of the name of the database, which is in every frame.
    let colours = |screen: &vt100::Screen| {
        let name = (1..8).filter_map(|column| screen.cell(0, column));
        name.map(|cell| (cell.contents().to_owned(), cell.fgcolor())).collect::<Vec<_>>()
    };
    let of_theme = |theme: &str| {
        let terminal = Start::new(&home, &["console", "demo.db", "--theme", theme]).run();
        terminal.shows("newest episodes");
        let mut found = Vec::new();
        terminal.with_screen(|screen| found = colours(screen));
        found
    };
    let (light, dark) = (of_theme("light"), of_theme("dark"));
    assert_ne!(light, dark);
    // The terminal may answer when a screen is already there.
    let asking = Start::new(&home, &["demo.db"]).on(WHITE).run();
    asking.screen_is("the light theme", |screen| colours(screen) == light);
    Start::new(&home, &["demo.db"]).run().screen_is("the dark theme", |screen| colours(screen) == dark);
    // Who has chosen is not asked.
    let chosen = Start::new(&home, &["console", "demo.db", "--theme", "dark"]).on(WHITE).run();
    chosen.shows("newest episodes");
    assert!(!String::from_utf8_lossy(&chosen.raw()).contains("\x1b]11;?"));
}

#[test]
fn every_size_is_drawn_right() {
    let home = Home::new();
    let terminal = console(&home);
    terminal.press("2");
    // Each of these is read on its own and comes when it is there: only with all of them the screen stays as it is.
    let parts = [
        "row 1 of 250", "outcomes of the newest 100", "segments 3", "findings 1", "Finance clerk", "Jonas Lindqvist",
        "lifecycle",
    ];
    let is_whole = |screen: &vt100::Screen| parts.iter().all(|part| screen.contents().contains(part));
    terminal.screen_is("every part of the screen", is_whole);
    terminal.settle();
    let before = terminal.contents();
    terminal.resize(60, 20);
    terminal.screen_is("a list in 60 columns", |screen| {
        let contents = screen.contents();
        contents.contains("of 250") && contents.lines().all(|line| line.chars().count() <= 60)
    });
    terminal.resize(20, 5);
    terminal.shows("Too small");
    terminal.resize(120, 40);
    terminal.screen_is("the first screen again", |screen| screen.contents() == before);
    terminal.settle();
    // A storm ends with the last size.
    for columns in (30..120).rev().chain(30..=120) {
        terminal.resize(columns, 10 + columns / 4);
    }
    terminal.screen_is("the first screen again", |screen| screen.contents() == before);
}

#[test]
fn stopped_it_gives_the_terminal_back_and_continued_it_draws_again() {
    let home = Home::new();
    let mut terminal = console(&home);
    assert!(terminal.is_raw());
    for stop in ["key", "TSTP"] {
        if stop == "key" {
            terminal.press("\x1a");
        } else {
            terminal.signal(stop);
        }
        terminal.is_stopped();
        terminal.is_given_back();
        terminal.signal("CONT");
        terminal.shows("newest episodes");
        terminal.screen_is("the console's screen", |screen| {
            screen.alternate_screen() && screen.hide_cursor() && screen.bracketed_paste()
        });
        assert!(terminal.is_raw());
    }
    // Stopped without being asked, it cannot give back; continued, it draws all the same, whatever was drawn meanwhile.
    terminal.signal("STOP");
    terminal.is_stopped();
    terminal.spoil();
    terminal.signal("CONT");
    terminal.shows("newest episodes");
    terminal.press("2");
    terminal.shows("of 250");
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    terminal.is_given_back();
}

#[test]
fn however_it_ends_the_terminal_is_given_back_and_the_exit_code_says_why() {
    let home = Home::new();
    home.demo();
    for (end, code) in [("q", 0), ("\x03", 0), ("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let mut terminal = Start::new(&home, &["demo.db"]).run();
        terminal.shows("newest episodes");
        assert!(terminal.is_raw());
        if code == 0 {
            terminal.press(end);
        } else {
            terminal.signal(end);
        }
        assert_eq!(terminal.ended_and_read(), code, "{end:?}");
        terminal.is_given_back();
        assert_eq!(terminal.contents().trim(), "", "{end:?} leaves no words");
    }
}

#[test]
fn it_ends_when_its_terminal_is_gone() {
    let home = Home::new();
    let mut terminal = console(&home);
    terminal.vanish("?");
    // By its signal or by the failure to write: whichever is noticed first.
    let code = terminal.ended();
    assert!(matches!(code, 129 | 1), "{code}");
}

#[test]
fn a_panic_in_any_thread_gives_the_terminal_back_and_is_told_without_power() {
    let home = Home::new();
    home.demo();
    for place in ["draw", "worker"] {
        let start = Start::new(&home, &["demo.db"]);
        let mut terminal =
            start.with("MNEMOSCOPE_PANIC", format!("{place} went wrong \x1b[5;31m\x1b]0;title\x07")).run();
        assert_eq!(terminal.ended_and_read(), 101, "{place}");
        terminal.is_given_back();
        let told = terminal.contents();
        assert!(told.contains("went wrong ␛[5;31m␛]0;title␇"), "{told}");
        assert!(told.contains("src/shell/"), "{told}");
    }
}

/// An editor that does what a script says; `$PPID` is the console.
fn editor(home: &Home, script: &str) -> String {
    let path = home.path().join("editor");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path.display().to_string()
}

#[test]
fn an_editor_has_the_terminal_to_itself() {
    let home = Home::new();
    home.demo();
    // Keys for signals reach every program on the terminal: an interrupt in the editor must not end the console.
    let script = "stty -a | grep -q ' icanon' && echo EDITOR IS HERE\nhead -c 1 \"$1\"; kill -INT $PPID; read answer; \
        echo \"heard $answer\"; read answer";
    let mut terminal = Start::new(&home, &["demo.db"]).with("EDITOR", editor(&home, script)).run();
    terminal.shows("newest episodes");
    terminal.press("2");
    terminal.shows("of 250");
    terminal.settle();
    terminal.press("o");
    terminal.shows("EDITOR IS HERE");
    terminal.shows("{");
    terminal.is_given_back();
    terminal.press("word\r");
    terminal.shows("heard word");
    terminal.press("\r");
    terminal.shows("of 250");
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("mnemoscope-")), "{left:?}");
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    terminal.is_given_back();
}

#[test]
fn a_row_in_the_editor_is_a_copy_and_a_draft_is_kept() {
    let home = Home::new();
    home.demo();
    let script = "chmod u+w \"$1\"; echo '# mine' >> \"$1\"";
    let mut terminal = Start::new(&home, &["demo.db"]).with("EDITOR", editor(&home, script)).run();
    terminal.press("2");
    terminal.shows("of 250");
    terminal.settle();
    terminal.press("o");
    terminal.shows("you saved a copy");
    let left = || {
        let names = std::fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("mnemoscope-")).collect::<Vec<_>>()
    };
    assert!(left().is_empty(), "{:?}", left());
    terminal.press("B");
    terminal.shows("this row");
    terminal.press("o");
    terminal.shows("The draft is kept");
    let kept = left();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(std::fs::read_to_string(&kept[0]).unwrap().ends_with("# mine\n"));
    terminal.press("\x1b");
    terminal.screen_is("no note", |screen| !screen.contents().contains("The draft is kept"));
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    assert!(terminal.contents().contains("The draft is in "));
}

#[test]
fn an_editor_that_is_stopped_stops_the_console_with_it() {
    let home = Home::new();
    home.demo();
    let script = "echo EDITOR IS HERE\nkill -TSTP $PPID; read answer";
    let mut terminal = Start::new(&home, &["demo.db"]).with("VISUAL", editor(&home, script)).run();
    terminal.press("2");
    terminal.shows("of 250");
    terminal.settle();
    terminal.press("o");
    terminal.shows("EDITOR IS HERE");
    terminal.is_stopped();
    terminal.signal("CONT");
    terminal.press("\r");
    terminal.shows("of 250");
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    terminal.is_given_back();
}

#[test]
fn without_a_terminal_the_console_says_so_and_writes_no_sequence() {
    let home = Home::new();
    home.demo();
    let mut command = Command::new(PROGRAM);
    command.arg("demo.db").current_dir(home.path()).env_clear().envs(home.surroundings()).stdin(Stdio::null());
    let out = command.output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(out.stdout.is_empty());
    let told = String::from_utf8(out.stderr).unwrap();
    assert!(told.contains("needs a terminal") && told.contains("status") && !told.contains('\x1b'), "{told}");
    // With a terminal for the output alone it is the same.
    let line = format!("'{PROGRAM}' demo.db < /dev/null; echo code $?");
    let mut terminal = Start::new(&home, &["-c", &line]).program("/bin/sh").run();
    assert_eq!(terminal.ended_and_read(), 0);
    assert!(terminal.contents().contains("code 2"), "{}", terminal.contents());
    assert!(!terminal.raw().contains(&0x1b));
}

#[test]
fn the_grammar_lets_nothing_hostile_through() {
    for piece in hostile::PIECES.iter().filter(|piece| !piece.starts_with(b"pile")) {
        for allowed in [CONSOLE, COMMAND] {
            let all = [b"before ", *piece, b" after"].concat();
            assert!(read(&all, allowed).is_err(), "{}", String::from_utf8_lossy(piece));
        }
    }
    let ours = b"\x1b[?2026h\x1b[3;1H\x1b[38;2;1;2;3;48;5;7mtext\x1b[0m\x1b]0;demo.db\x07\x1b[?2026l";
    assert_eq!(read(ours, CONSOLE).unwrap().text, "text");
}

#[test]
fn nothing_stored_reaches_the_terminal_with_power_from_any_screen_of_the_console() {
    let home = Home::new();
    hostile::build(&home.path().join("hostile.db"));
    let mut terminal = Start::new(&home, &["hostile.db"]).sized(150, 50).run();
    terminal.shows("this database");
    terminal.settle();
    for command in COMMANDS.iter().filter(|c| matches!(c.id, CommandId::List(_))) {
        // Without blanks: an entity's name with a word after it would be taken for a row to open.
        terminal.press(&format!(":{}\r", command.title.replace(' ', "")));
        terminal.shows(&format!("› {}", command.title.to_lowercase()));
        terminal.screen_is("rows with marks", |screen| {
            let contents = screen.contents();
            contents.contains("row 1 of") && contents.contains('␛')
        });
        for selected in 0..3 {
            terminal.press(if selected % 2 == 0 { "j" } else { "jjj" });
            terminal.settle();
            for _ in 0..if command.id == CommandId::List(Entity::Episode) { 10 } else { 3 } {
                terminal.press("l");
                terminal.settle();
            }
        }
        // What leads elsewhere, the order, the help, the row on the whole screen and its end, and a copy of its command.
        for keys in ["f", "\x1b", "s", "\x1b", "?", "\x1b", "\r", "z", "G", "\x1b", "\x1b"] {
            terminal.press(keys);
            terminal.settle();
        }
        // A filter that is as hostile as what it is to find; it ends up in the title too.
        let pasted = "\x1b]0;pwned\x07\u{9b}5m\u{202e}\u{200b}\u{e0041}\x1b[2J";
        terminal.press(&format!("/\x1b[200~{pasted}\x1b[201~"));
        terminal.settle();
        terminal.press("\r");
        terminal.settle();
        terminal.press("\x1b\x1b");
        terminal.settle();
    }
    terminal.press("\x03");
    assert_eq!(terminal.ended_and_read(), 0);
    let found = read(&terminal.raw(), CONSOLE).unwrap();
    for mark in ["␛", "⟨9B⟩", "⟨202E⟩", "⟨200B⟩", "⟨tag:", "␀", "⟨F0000⟩", "\u{fffd}"] {
        assert!(found.text.contains(mark), "{mark} was nowhere to be seen");
    }
    assert!(found.titles.iter().any(|title| title.contains("⟨202E⟩")), "{:?}", found.titles);
}

#[test]
fn only_a_copy_that_was_asked_for_reaches_the_clipboard_and_it_does_nothing() {
    let home = Home::new();
    hostile::build(&home.path().join("hostile.db"));
    let mut terminal = Start::new(&home, &["hostile.db"]).run();
    terminal.shows("this database");
    terminal.press("2");
    terminal.shows("row 1 of");
    terminal.settle();
    let copies = ["yy", "yj", "yt", "yc"];
    for keys in copies {
        terminal.press(keys);
        terminal.shows("clipboard");
        terminal.settle();
    }
    terminal.press("\x03");
    assert_eq!(terminal.ended_and_read(), 0);
    let found = read(&terminal.raw(), Allowed { copies: copies.len(), ..CONSOLE }).unwrap();
    for copied in found.copied {
        let text = String::from_utf8(STANDARD.decode(&copied).unwrap()).unwrap();
        assert!(!text.is_empty() && text.chars().all(|c| c == '\n' || !is_harmful(c)), "{text:?}");
    }
}

#[test]
fn nothing_stored_reaches_the_terminal_with_power_from_any_command() {
    let home = Home::new();
    hostile::build(&home.path().join("hostile.db"));
    let on_terminal = |arguments: &[&str]| {
        // How far it is depends on how fast the machine is.
        let all = [&["-d", "hostile.db", "--no-progress"], arguments].concat();
        let mut terminal = Start::new(&home, &all).sized(200, 50).run();
        let code = terminal.ended_and_read();
        let found = read(&terminal.raw(), COMMAND).unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
        (code, found.text)
    };
    assert_eq!(on_terminal(&["status"]).0, 0);
    assert_eq!(on_terminal(&["-v", "layouts"]).0, 0);
    for (place, entity) in Entity::ALL.iter().enumerate() {
        for format in ["table", "json", "jsonl", "csv"] {
            let (code, text) = on_terminal(&["list", entity.name(), "--limit", "40", "--format", format]);
            assert_eq!(code, 0, "{text}");
            let escape = if format.starts_with("json") { "\\u001b" } else { "␛" };
            assert!(text.contains(escape), "{format}: {text}");
        }
        assert_eq!(on_terminal(&["export", entity.name()]).0, 0);
        assert_eq!(on_terminal(&["--mask", "list", entity.name()]).0, 0);
        if *entity == Entity::MemoryLink {
            // Its rows are named by what they link.
            continue;
        }
        let ids = ids(&home, *entity);
        assert!(ids.len() > 3, "{entity}: {ids:?}");
        for (number, id) in ids.iter().take(6).enumerate() {
            // Of the next entity the id in this place is shown in the other format.
            let format = if (place + number).is_multiple_of(2) { "json" } else { "table" };
            let (code, text) = on_terminal(&["show", entity.name(), id, "--format", format]);
            // An id that is not UTF-8 cannot be named; saying so must not obey it either.
            assert!(matches!(code, 0 | 3), "{entity} {id:?}: {code}: {text}");
            if *entity == Entity::Episode {
                assert!(matches!(on_terminal(&["chain", id]).0, 0 | 3));
            }
        }
    }
    for wrong in [["show", "episode", "\x1b[5;31mno\u{202e}"], ["list", "episode", "--where=\x1b[5;31mno\u{202e}=1"]] {
        assert_ne!(on_terminal(&wrong).0, 0);
    }
}

/// The ids of an entity's rows.
fn ids(home: &Home, entity: Entity) -> Vec<String> {
    let mut command = Command::new(PROGRAM);
    command.args(["-d", "hostile.db", "--format", "json", "list", entity.name()]);
    let out = command.current_dir(home.path()).env_clear().envs(home.surroundings()).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = listed["rows"].as_array().unwrap();
    rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)).filter(|id| !id.contains('\0')).collect()
}

#[test]
fn what_the_program_tells_of_its_work_waits_until_the_screen_is_given_back() {
    let home = Home::new();
    home.demo();
    let mut terminal = Start::new(&home, &["-vv", "demo.db"]).sized(120, 40).run();
    terminal.shows("newest episodes");
    terminal.settle();
    terminal.screen_is("without log lines", |screen| !screen.contents().contains("DEBUG"));
    terminal.press("q");
    assert_eq!(terminal.ended_and_read(), 0);
    terminal.is_given_back();
    let said = String::from_utf8_lossy(&terminal.raw()).into_owned();
    let (drawn, after) = said.split_at(said.rfind("\x1b[?1049l").unwrap());
    assert!(!drawn.contains("DEBUG") && after.contains("DEBUG"), "{after}");
}

#[test]
fn a_table_on_a_terminal_has_colours_and_keeps_its_cursor_to_itself() {
    let home = Home::new();
    home.demo();
    let shown = |arguments: &[&str], width: u16| {
        let all = [&["-d", "demo.db"], arguments].concat();
        let mut terminal = Start::new(&home, &all).sized(width, 60).run();
        assert_eq!(terminal.ended_and_read(), 0);
        String::from_utf8(terminal.raw()).unwrap()
    };
    for width in [80, 100, 200] {
        let text = shown(&["list", "episode", "--limit", "5"], width);
        assert!(text.contains("\x1b[1m") && text.contains("more rows follow"), "{text}");
        assert!(!text.contains("--after ey"), "{text}");
        let heading = text.lines().next().unwrap_or_default();
        assert_eq!(heading.contains("Agent"), width == 200, "{width}: {text}");
    }
    assert!(shown(&["-v", "list", "episode", "--limit", "5"], 80).contains("--after ey"));
    assert!(!shown(&["--color", "never", "list", "episode"], 80).contains('\x1b'));
}
