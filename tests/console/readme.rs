//! The table of keys in the documents is that of the console. `REFRESH_README=1 cargo test --test console readme` puts
//! it there. It says what a letter means on every screen, and each command keeps to that.

use std::fs;

use mnemoscope::console::core::key_map::slug;
use mnemoscope::console::core::{COMMANDS, CommandId, CommandScope, ConsoleCommand};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/keys.md");
const BEGIN: &str = "<!-- keys:begin -->";
const END: &str = "<!-- keys:end -->";

/// Meaning of a letter wherever it has one; only what it acts on differs between screens.
const SENSES: &[(&str, &str)] = &[
    ("/", "names what is shown: a filter, a situation, a topic, a person; in the help, what is sought"),
    ("a", "does what is shown or agreed to"),
    ("d", "removes it, or ends it"),
    ("h", "to the left: the tab, step or example before"),
    ("i", "leaves it as it is"),
    ("l", "to the right: the next tab, step or example"),
    ("m", "mutes it, or ends that"),
    ("o", "opens it in your editor"),
    ("p", "pauses"),
    ("s", "chooses the order"),
    ("space", "on or off"),
    ("u", "takes back"),
    ("x", "puts it right"),
    ("+", "more, or larger"),
    ("-", "fewer, or smaller"),
    ("=", "compares"),
    ("~", "exchanges the two sides"),
];

#[test]
fn the_documents_have_the_keys_of_the_console() {
    let page = fs::read_to_string(PAGE).expect("the page of keys");
    let (before, rest) = page.split_once(BEGIN).expect("where the keys begin");
    let (keys, after) = rest.split_once(END).expect("where the keys end");
    let wanted = key_table();
    if std::env::var_os("REFRESH_README").is_some() {
        fs::write(PAGE, format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", wanted.trim())).expect("a new page");
        return;
    }
    assert_eq!(keys.trim(), wanted.trim(), "REFRESH_README=1 cargo test --test console readme refreshes it");
}

#[test]
fn a_key_means_the_same_on_every_screen() {
    let alone = |command: &'static ConsoleCommand| command.keys.iter().filter(|keys| keys.chars().count() == 1);
    let has_sense = |key: &str| SENSES.iter().any(|(known, _)| *known == key);
    let own = COMMANDS.iter().filter(|command| !command.scope.is_shared());
    for (command, key) in own.flat_map(|command| alone(command).map(move |key| (command, *key))) {
        assert!(has_sense(key), "{key} of {} has no sense that every screen shares", command.title);
        assert!(!key.chars().all(|c| c.is_ascii_digit()), "digits lead to screens: {}", command.title);
        let elsewhere = COMMANDS.iter().filter(|other| other.scope.is_shared());
        for other in elsewhere.filter(|other| alone(other).any(|other| *other == key)) {
            assert!(!matches!(other.id, CommandId::Panel(_)), "{key} leads to {} elsewhere", other.title);
        }
    }
}

/// The table of docs/keys.md, in Markdown.
fn key_table() -> String {
    let mut out = "A key means the same everywhere. Digits and capitals lead to screens; `c` changes, `t` signals, `y` copies, \
                   `n` narrows, `b` keeps places and questions, `.` leads to tabs, `*` does it to the whole column. Alone:\n\n| key | means |\n|---|---|\n"
        .to_owned();
    for (key, means) in SENSES {
        out += &format!("| `{key}` | {means} |\n");
    }
    out.push('\n');
    for &scope in CommandScope::ALL.iter().rev() {
        let mut commands = COMMANDS.iter().filter(|c| c.scope == scope).peekable();
        if commands.peek().is_none() {
            continue;
        }
        out += &format!("**{}** (`{}`)\n\n| keys | name | does |\n|---|---|---|\n", scope.title(), slug(scope.title()));
        for command in commands {
            let keys: Vec<String> = command.keys.iter().map(|k| format!("`{}`", k.replace('|', "\\|"))).collect();
            out += &format!("| {} | `{}` | {} |\n", keys.join(" "), slug(command.title), command.help);
        }
        out.push('\n');
    }
    out
}
