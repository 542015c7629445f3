//! The page of commands in the documents is the program's own help. `REFRESH_README=1 cargo test --test house commands_page`
//! writes it.

use std::fmt::Write as _;
use std::fs;

use clap::{Arg, Command, CommandFactory as _};
use mnemoscope::cli::doing::{AUTHOR_OPTIONS, PLAN_OPTIONS};
use mnemoscope::cli::{args::Cli, man};
use mnemoscope::memory::findings::KINDS;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/commands.md");

/// One line of help, safe in a table.
fn line(help: &str) -> String {
    help.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// An option or an argument as it is typed.
fn spelled(arg: &Arg) -> String {
    let values = arg.get_value_names().unwrap_or_default().iter().map(|name| format!("<{name}>")).collect::<Vec<_>>();
    let takes = arg.get_action().takes_values();
    let mut words: Vec<String> = arg.get_short().map(|short| format!("-{short},")).into_iter().collect();
    words.extend(arg.get_long().map(|long| format!("--{long}")));
    if takes {
        words.push(values.join(" "));
    }
    words.join(" ").replace('|', "\\|")
}

fn table<'a>(page: &mut String, args: impl Iterator<Item = &'a Arg>) {
    let shown: Vec<&Arg> =
        args.filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")).collect();
    if !shown.is_empty() {
        page.push_str("| option | meaning |\n|---|---|\n");
    }
    for arg in &shown {
        writeln!(page, "| `{}` | {} |", spelled(arg), line(&man::meaning(arg))).expect("a text");
    }
    if !shown.is_empty() {
        page.push('\n');
    }
}

/// A table of every kind of finding.
fn kinds(page: &mut String) {
    page.push_str("| kind | severity | meaning | remedy |\n|---|---|---|---|\n");
    for kind in KINDS {
        let (severity, meaning) = (kind.severity.word(), kind.meaning());
        writeln!(page, "| `{}` | {severity} | {meaning} | `{}` |", kind.name, kind.remedy).expect("a text");
    }
    page.push('\n');
}

/// Headings of options that many commands take, with the title under which the page tells them once.
const SHARED: [(&str, &str); 2] = [(PLAN_OPTIONS, "Options of a plan"), (AUTHOR_OPTIONS, "Author of a change")];

fn section(page: &mut String, name: &str, command: &Command) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    write!(page, "## {name}\n\n{}.\n\n", line(&about)).expect("a text");
    let is_shared = |arg: &&Arg| SHARED.iter().any(|(heading, _)| arg.get_help_heading() == Some(*heading));
    table(page, command.get_arguments().filter(|arg| !arg.is_global_set() && !is_shared(arg)));
    let takes = |(heading, title): &(&str, &str)| {
        let mut all = command.get_arguments();
        all.any(|arg| arg.get_help_heading() == Some(*heading))
            .then(|| format!("[{title}](#{})", title.to_lowercase().replace(' ', "-")))
    };
    let taken: Vec<String> = SHARED.iter().filter_map(takes).collect();
    if name == "findings" {
        kinds(page);
    }
    if !taken.is_empty() {
        write!(page, "Takes also: {}.\n\n", taken.join(", ")).expect("a text");
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        section(page, &format!("{name} {}", below.get_name()), below);
    }
}

#[test]
fn the_page_of_commands_is_the_help_of_the_program() {
    let program = Cli::command();
    let mut page = "# Commands\n\nMade from the program's own help; `mnemoscope help COMMAND` shows the same. `mnemoscope -d DATABASE \
                    COMMAND` runs one; [databases](databases.md) says how to name a database.\n\n## Options of every command\n\n"
        .to_owned();
    table(&mut page, program.get_arguments().filter(|arg| arg.is_global_set()));
    // `undo` takes them all.
    let undo = program.find_subcommand("undo").expect("a command");
    for (heading, title) in SHARED {
        write!(page, "## {title}\n\n").expect("a text");
        table(&mut page, undo.get_arguments().filter(|arg| arg.get_help_heading() == Some(heading)));
    }
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        section(&mut page, command.get_name(), command);
    }
    let page = format!("{}\n", page.trim_end());
    if std::env::var_os("REFRESH_README").is_some() {
        fs::write(PAGE, &page).expect("a new page");
        return;
    }
    let kept = fs::read_to_string(PAGE).unwrap_or_default();
    assert_eq!(kept, page, "REFRESH_README=1 cargo test --test house commands_page refreshes docs/commands.md");
}
