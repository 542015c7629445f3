//! No byte of stored text reaches the terminal as it is: every screen of the console and every output of the commands is
//! looked at on a database that means harm.

use std::path::PathBuf;
use std::process::Command;

use mnemoscope::app::detail::tabs;
use mnemoscope::memory::Entity;

use super::bytes::{Piece, assert_only, console_may, deceives};
use super::hostile::{HARMS, spoil};
use super::terminal::{Launch, Session};
use super::{Place, has_ended};

/// Wide and high, so that much is drawn.
const SIZE: (u16, u16) = (300, 90);

/// A folder and a file that mean harm by their very names.
const FOLDER: &str = "f\u{1b}]0;pwned\u{7}";
const FILE: &str = "evil\u{1b}[31m\u{202e}\u{9b}2J.db";

fn spoiled() -> (Place, PathBuf) {
    let place = Place::new();
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
    session.shows("Jump to a screen");
    session.send(&format!("{}\r", command.title));
    session.hides("Jump to a screen");
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

#[test]
fn no_screen_of_the_console_lets_stored_text_act() {
    let (place, database) = spoiled();
    let database = database.to_str().unwrap();
    let arguments = ["console", database, "--theme", "dark"];
    let mut session = Launch::mnemoscope(place.folder(), &arguments).size(SIZE.0, SIZE.1).start();
    session.shows("newest episodes");
    for entity in Entity::ALL {
        println!("{entity}");
        walk(&session, *entity);
    }
    session.send("q");
    let raw = has_ended(&mut session, 0);
    assert_only("the console", &raw, console_may);
}
