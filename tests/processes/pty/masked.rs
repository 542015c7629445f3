//! A masked console, looked at screen by screen: what people are called, and what they wrote, is nowhere to be seen, in
//! rows, messages, cards of errors and steps of an erasure alike.

use mnemoscope::console::core::command::{COMMANDS, CommandId};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};

use super::terminal::{Home, Start, Terminal};

/// A word that is in everything that was asked, said and kept.
const SAID: &str = "zqprompt";
/// Columns that hold such words.
const WORDS: &[(&str, &[&str])] = &[
    ("episodes", &["title", "summary", "detail", "observation", "thoughts", "insight"]),
    ("episode_segments", &["content"]),
    ("agent_feedback", &["correction"]),
    ("memories", &["title", "text"]),
    ("agent_memory_cases", &["prompt"]),
    ("memory_access", &["query"]),
];

/// The demo with such words in it; gives what must not be seen, and one person's id and name.
fn demo(home: &Home) -> (Vec<String>, (String, String)) {
    let path = home.demo();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let mut link = SqliteConnection::connect_with(&options).await.unwrap();
        for (table, columns) in WORDS {
            for column in *columns {
                let sql = format!("UPDATE {table} SET {column} = {column} || ' {SAID}' WHERE {column} > '' AND {column} NOT GLOB '[[{{]*'");
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut link).await.unwrap();
            }
        }
        let subjects = "SELECT id, name FROM subjects UNION ALL \
             SELECT NULL, h.value FROM subjects s, json_each(s.handles) h WHERE length(h.value) > 3";
        let found: Vec<(Option<String>, Option<String>)> =
            sqlx::query_as(subjects).fetch_all(&mut link).await.unwrap();
        let person = found.iter().find_map(|(id, name)| Some((id.clone()?, name.clone()?))).unwrap();
        let reject = format!(
            "CREATE TRIGGER guard BEFORE DELETE ON agent_feedback BEGIN \
             SELECT RAISE(ABORT, 'kept for {} ({}) only'); END",
            person.0, person.1
        );
        sqlx::raw_sql(AssertSqlSafe(reject)).execute(&mut link).await.unwrap();
        link.close().await.unwrap();
        let mut hidden: Vec<String> = found.into_iter().flat_map(|(id, name)| [id, name]).flatten().collect();
        hidden.retain(|handle| handle.chars().count() > 3);
        hidden.push(SAID.to_owned());
        (hidden, person)
    })
}

/// A masked console whose every screen is looked at.
struct Watched {
    terminal: Terminal,
    hidden: Vec<String>,
    screens: std::cell::Cell<usize>,
}

impl Watched {
    fn press(&self, keys: &str) {
        self.terminal.press(keys);
        self.terminal.settle();
        self.look(keys);
    }

    /// Types a line and enters it. The line stands on the screen until it is answered.
    fn enter(&self, line: &str) {
        self.terminal.press(line);
        self.terminal.settle();
        self.terminal.screen_is("an answer", |screen| self.seen_in(&screen.contents()).is_empty());
        self.look(line);
    }

    fn seen_in(&self, screen: &str) -> Vec<&String> {
        // A handle may run over the end of a line.
        let joined: String = screen.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        self.hidden.iter().filter(|word| joined.contains(&word.to_lowercase())).collect()
    }

    fn look(&self, keys: &str) {
        let screen = self.terminal.contents();
        let seen = self.seen_in(&screen);
        assert!(seen.is_empty(), "{seen:?} after {keys:?}:\n{screen}");
        self.screens.set(self.screens.get() + 1);
    }

    fn shows(&self, text: &str) {
        self.terminal.shows(text);
        self.look(text);
    }
}

#[test]
fn a_masked_console_shows_nobody_on_any_screen() {
    let home = Home::new();
    let (hidden, (id, name)) = demo(&home);
    assert!(hidden.len() > 60, "{hidden:?}");
    let terminal = Start::new(&home, &["demo.db", "--mask"]).sized(150, 50).run();
    let at = Watched { terminal, hidden, screens: std::cell::Cell::new(0) };
    at.shows("this database");
    at.press("U");
    at.shows("A apply and unlock");
    at.press("A");
    at.shows("✎ unlocked");
    for command in COMMANDS.iter().filter(|c| matches!(c.id, CommandId::List(_))) {
        at.press(&format!(":{}\r", command.title.replace(' ', "")));
        at.shows(&format!("› {}", command.title.to_lowercase()));
        for keys in ["j", "l", "l", "l", "l", "l", "l", "l", "f", "\x1b", "s", "\x1b", "\r", "z", "G", "\x1b", "\x1b"] {
            at.press(keys);
        }
        at.press("y");
        at.press("t");
    }
    for panel in ["W", "O", "L", "E", "I", "J", "P", "V", "R", "D", "F"] {
        at.press("2");
        at.press(panel);
        for keys in ["j", "j", "l", "l", "\r", "\x1b", "?", "\x1b", "\x1b"] {
            at.press(keys);
        }
    }
    // What is typed names someone: missing rows, conditions, people who are not known.
    for typed in [format!(":episode {id}\r"), format!(":{id}\r"), format!(":subject {name}\r")] {
        at.enter(&typed);
        at.press("\x1b");
        at.press("\x1b");
    }
    at.press("2");
    for filter in [format!("/user_id={id}\r"), format!("/usr={id}\r"), format!("/{name}\r")] {
        at.enter(&filter);
        at.press("\x1b");
        at.press("\\");
    }
    // Erasures: of someone like the person, of several, of the person, step by step.
    for given in [&id[..id.len() - 1], &name, &id] {
        at.press("1");
        at.press("cp");
        at.shows("Erase whom");
        at.press(given);
        at.press("\r");
        for _ in 0..6 {
            at.press("l");
        }
        at.press("\x1b");
        at.press("\x1b");
    }
    // What the database says of a change that it refuses.
    at.press("5");
    at.shows("row 1 of");
    at.press("cd");
    at.shows("Remove feedback");
    at.shows("A apply");
    at.press("A");
    at.shows("kept for person-");
    at.press("\x1b");
    // Shown for a while, and hidden again.
    at.press("1");
    at.terminal.press("M");
    at.terminal.shows("personal values are shown");
    at.terminal.press("M");
    at.terminal.shows("personal values are masked");
    at.enter(&format!(":episode {id}\r"));
    at.press("\x1b");
    at.press("q");
    assert!(at.screens.get() > 300, "{}", at.screens.get());
}
