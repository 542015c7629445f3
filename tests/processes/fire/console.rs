//! Consoles in terminals: opened, unlocked, used for edits, and left in every way.

use std::time::{Duration, Instant};

use super::place::Place;
use crate::pty::terminal::{Start, Terminal};

/// A console that is open.
pub struct Console(Terminal);

impl Console {
    /// Opens and unlocks it, which adds our tables where they are not there.
    pub fn open(place: &Place) -> Console {
        let terminal = Start::new(&place.home, &[&place.address()]).with("MNEMOSCOPE_ACTOR", "operator").run();
        terminal.shows("newest episodes");
        terminal.press("U");
        let asks = |screen: &vt100::Screen| {
            let text = screen.contents();
            text.contains("A unlock") || text.contains("A apply") && text.contains("CREATE TABLE")
        };
        terminal.screen_is("a question about unlocking", asks);
        terminal.press("A");
        terminal.shows("✎ unlocked");
        terminal.press("5");
        terminal.shows("row 1 of");
        Console(terminal)
    }

    /// Begins to edit the row under the cursor, and gives its id.
    pub fn edit(&self) -> String {
        let terminal = &self.0;
        // While the row is being read again, the console says so instead of opening the form.
        for _ in 0..8 {
            terminal.settle();
            if !terminal.contents().contains("› feedback") {
                terminal.press("5");
                terminal.shows("row 1 of");
            }
            terminal.press("ce");
            let asked = Instant::now();
            while asked.elapsed() < Duration::from_secs(4) {
                let mut id = None;
                terminal.with_screen(|screen| id = edited(screen));
                if let Some(id) = id {
                    return id;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        panic!("no form opens; on the screen is\n{}", terminal.contents());
    }

    /// Leaves the form as it was.
    pub fn forget(&self) {
        self.0.press("\x1b");
        // Only then: the next key would otherwise be taken for one of an escape sequence.
        self.0.screen_is("no form", |screen| edited(screen).is_none());
        self.0.settle();
    }

    /// Adds a word to the row's correction and confirms; `heard`: waits until it is told what became of it.
    pub fn confirm(&self, mark: &str, heard: bool) -> Option<bool> {
        let terminal = &self.0;
        terminal.press("\t\t");
        terminal.press(&format!(" {mark}\x13"));
        terminal.screen_is("the plan, and no word of an earlier one", |screen| {
            screen.contents().contains("A apply") && !is_done(screen) || is_refused(screen) || is_gone(screen)
        });
        if self.is_gone() {
            self.read_again();
            return Some(false);
        }
        if self.is_refused() {
            self.take_theirs();
            return Some(false);
        }
        terminal.press("A");
        if !heard {
            return None;
        }
        terminal
            .screen_is("what became of the edit", |screen| is_done(screen) || is_refused(screen) || is_gone(screen));
        if self.is_gone() {
            self.read_again();
            return Some(false);
        }
        if self.is_refused() {
            self.take_theirs();
            return Some(false);
        }
        Some(true)
    }

    fn is_refused(&self) -> bool {
        let mut refused = false;
        self.0.with_screen(|screen| refused = is_refused(screen));
        refused
    }

    fn is_gone(&self) -> bool {
        let mut gone = false;
        self.0.with_screen(|screen| gone = is_gone(screen));
        gone
    }

    /// Answers that the row no longer exists: closes what says so, then the form, and reads all again.
    fn read_again(&self) {
        self.0.press("\r");
        self.0.screen_is("the form", |screen| !is_gone(screen));
        self.forget();
        self.0.press("r");
        self.0.settle();
    }

    /// Answers a conflict: theirs stays, and all is read again.
    fn take_theirs(&self) {
        self.0.press("t");
        self.0.screen_is("theirs", |screen| !is_refused(screen) && edited(screen).is_none());
        self.0.settle();
    }

    /// Ends it, by a key or a signal.
    pub fn leave(mut self, how: &str) {
        if how == "q" {
            self.0.press("q");
        } else {
            self.0.signal(how);
        }
        self.0.gone();
    }
}

/// The id in the form's title. The menu has the words without an id, and what was done before has a colon after it.
fn edited(screen: &vt100::Screen) -> Option<String> {
    let text = screen.contents();
    let mut ids = text.split("Edit feedback ").skip(1).filter_map(|rest| rest.split_whitespace().next());
    ids.find(|id| id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))).map(str::to_owned)
}

fn is_done(screen: &vt100::Screen) -> bool {
    screen.contents().contains(": done")
}

fn is_refused(screen: &vt100::Screen) -> bool {
    screen.contents().contains("t take theirs")
}

fn is_gone(screen: &vt100::Screen) -> bool {
    screen.contents().contains("there is no feedback `")
}
