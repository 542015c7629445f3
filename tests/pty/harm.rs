//! No byte of stored text reaches the terminal as it is: every screen of the console and every output of the commands is
//! looked at on a database that means harm.

use std::path::PathBuf;
use std::process::Command;

use mnemoscope::app::detail::tabs;
use mnemoscope::memory::Entity;

use super::bytes::{Piece, assert_only, console_may, deceives};
use super::hostile::spoil;
use super::terminal::{Launch, Session};
use super::{Place, has_ended};

/// Wide and high, so that much is drawn.
const SIZE: (u16, u16) = (300, 90);

/// A folder and a file that mean harm by their very names.
const FOLDER: &str = "f\u{1b}]0;pwned\u{7}";
const FILE: &str = "evil\u{1b}[31m\u{202e}\u{9b}2J.db";

fn spoiled() -> (Place, PathBuf) {
    let place = Place::of(150);
    let folder = place.folder().join(FOLDER);
    std::fs::create_dir(&folder).unwrap();
    let database = folder.join(FILE);
    std::fs::rename(place.database(), &database).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(spoil(&database));
    (place, database)
}

/// The right half, where the details are, without the edges.
fn details(screen: &vt100::Screen) -> String {
    let (rows, columns) = screen.size();
    let (left, width) = (columns.get() * 11 / 20, columns.get() * 9 / 20);
    screen.rows(left, width).skip(3).take(usize::from(rows.get()) - 5).collect::<Vec<_>>().join("\n")
}

/// Where a tab's title stands, and in which colour.
fn tab_colour(screen: &vt100::Screen, title: &str) -> Option<vt100::Color> {
    const LINE: u16 = 3;
    let (_, columns) = screen.size();
    let left = columns.get() * 11 / 20;
    let line: Vec<&str> =
        (left..columns.get()).map(|x| screen.cell(LINE, x).map_or(" ", vt100::Cell::contents)).collect();
    let letters: Vec<String> = title.chars().map(String::from).collect();
    let at = line.windows(letters.len()).position(|cells| cells == letters.as_slice())?;
    Some(screen.cell(LINE, left + at as u16)?.fgcolor())
}

/// Walks through the tabs of the selected row, each drawn before the next; begins and ends at the last one.
fn walk_tabs(session: &Session, entity: Entity, active: vt100::Color) {
    for tab in tabs(entity) {
        session.send("l");
        session.wait(tab.title(), |seen| (tab_colour(seen.screen(), tab.title()) == Some(active)).then_some(()));
    }
}

fn walk(session: &Session, entity: Entity) {
    const ROWS: usize = 6;
    let command = mnemoscope::app::command::command(mnemoscope::app::CommandId::List(entity)).unwrap();
    session.send(":");
    session.shows("Lists the episodes.");
    // Without blanks: an entity with a word after it would be a row.
    session.send(&format!("{}\r", command.title.replace(' ', "")));
    session.hides("Lists the episodes.");
    session.shows(&format!("─ {} ─", mnemoscope::app::columns::plural(entity)));
    session.shows("row 1 of");
    let active = session.wait("the tabs", |seen| tab_colour(seen.screen(), "overview"));
    session.send("h");
    session.wait("the row as JSON", |seen| details(seen.screen()).contains("▾ {").then_some(()));
    walk_tabs(session, entity, active);
    for row in 2..=ROWS {
        let before = details(session.seen().screen());
        session.send("j");
        let there = session.wait("another row, or the end", |seen| {
            let text = seen.text();
            if text.contains(&format!("of {} ─", row - 1)) {
                return Some(false);
            }
            (text.contains(&format!("row {row} of")) && details(seen.screen()) != before).then_some(true)
        });
        if !there {
            break;
        }
        walk_tabs(session, entity, active);
    }
}

/// What is reached from a list: another sort, menus, copies, the place that a relation leads to, the mask.
fn look_around(session: &Session) {
    session.send("5");
    session.shows("─ feedback ─");
    session.shows("row 1 of");
    for (keys, told) in [("Y", "JSON copied"), ("yt", "text copied"), ("yc", "command copied"), ("yy", "id copied")] {
        session.send(keys);
        session.shows(told);
    }
    session.send("e");
    session.shows("Export to");
    session.send("\x15../../nowhere/\u{202e}x\r");
    session.shows("were not written");
    session.send("\x1b");
    session.hides("were not written");
    session.send("f");
    session.shows("enter choose");
    session.send("\r");
    session.hides("enter choose");
    session.wait("where it leads", |seen| (!seen.title().starts_with("feedback")).then_some(()));
    session.send("[");
    session.wait("the way back", |seen| seen.title().starts_with("feedback").then_some(()));
    session.send("/");
    session.send("correction ~ \u{9b}31m\r");
    session.shows("where");
    session.send("M");
    session.shows("masked");
    session.send("1");
    session.shows("newest episodes");
}

/// Marks that stand for harm; when they are seen, harm was drawn.
const MARKS: &[&str] = &["␛", "⟨9B⟩", "⟨202E⟩", "⟨200B⟩", "⟨tag:", "␡", "␇", "␍", "⟨2028⟩", "⟨E000⟩"];

#[test]
fn no_screen_of_the_console_lets_stored_text_act() {
    let (place, database) = spoiled();
    let database = database.to_str().unwrap();
    let arguments = ["console", database, "--theme", "dark"];
    let mut session = Launch::mnemoscope(place.folder(), &arguments).size(SIZE.0, SIZE.1).start();
    session.shows("newest episodes");
    for entity in Entity::ALL {
        walk(&session, *entity);
    }
    look_around(&session);
    session.send("q");
    let raw = has_ended(&mut session, 0);
    assert_only("the console", &raw, console_may);
    let text = String::from_utf8(raw).unwrap();
    for mark in MARKS {
        assert!(text.contains(mark), "{mark} was never drawn: the test does not see what it is for");
    }
}

/// What a command may write to a terminal: lines of text.
fn command_may(piece: Piece<'_>) -> bool {
    match piece {
        Piece::Text(c) => !deceives(c),
        Piece::Control(c) => matches!(c, '\r' | '\n'),
        _ => false,
    }
}

/// Ids of some rows: the first, and the first that means harm.
fn ids(place: &Place, database: &str, entity: Entity) -> Vec<String> {
    let out = Command::new(env!("CARGO_BIN_EXE_mnemoscope"))
        .args(["-d", database, "list", entity.name(), "--limit", "300", "--format", "json"])
        .env("MNEMOSCOPE_CONFIG", place.folder().join("config.toml"))
        .output()
        .unwrap();
    let page: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = page["rows"].as_array().unwrap().iter();
    let ids: Vec<&str> = rows.filter_map(|row| row["id"].as_str()).collect();
    let harmful = ids.iter().find(|id| id.chars().any(deceives));
    ids.first().into_iter().chain(harmful).map(|id| (*id).to_owned()).collect()
}

#[test]
fn no_command_lets_stored_text_act_on_a_terminal() {
    let (place, database) = spoiled();
    let database = database.to_str().unwrap();
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| commands.push(words.iter().map(|word| (*word).to_owned()).collect());
    add(&["status"]);
    add(&["status", "--format", "json"]);
    add(&["list", "episode", "--where", "title ~ \u{9b}31m"]);
    add(&["show", "episode", "\u{1b}]0;pwned\u{7}\u{202e}"]);
    add(&["list", "\u{1b}]0;pwned\u{7}\u{202e}"]);
    add(&["--layout", "\u{1b}]0;pwned\u{7}\u{202e}", "status"]);
    add(&["--profile", "\u{1b}]0;pwned\u{7}\u{202e}", "status"]);
    for entity in Entity::ALL {
        add(&["export", entity.name()]);
        for format in ["table", "json", "jsonl", "csv"] {
            add(&["list", entity.name(), "--limit", "60", "--format", format]);
        }
        for id in ids(&place, database, *entity) {
            for format in ["table", "json", "jsonl"] {
                add(&["show", entity.name(), &id, "--format", format]);
                if *entity == Entity::Episode {
                    add(&["chain", &id, "--format", format]);
                }
            }
        }
    }
    for command in commands {
        let words: Vec<&str> = ["-d", database, "-v"].into_iter().chain(command.iter().map(String::as_str)).collect();
        let mut session = Launch::mnemoscope(place.folder(), &words).start();
        let (_, raw) = session.end();
        assert!(!raw.is_empty(), "{command:?}");
        assert_only(&format!("{command:?}"), &raw, command_may);
    }
}
