//! The manual page: one page with the options of every command.

use std::io::{self, Write};

use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

/// Names and meanings, by section, that are in no command's help.
const MORE: [(&str, &[(&str, &str)]); 3] = [
    (
        "EXIT STATUS",
        &[
            ("0", "Done."),
            ("1", "Failed."),
            ("2", "Wrong usage."),
            ("3", "Not found."),
            ("4", "Conflict: the database changed meanwhile."),
            ("5", "Refused: read-only, under a hold, or not supported by the database."),
            ("6", "Incomplete, or findings --fail-on found something."),
            ("7", "Integrity broken."),
            ("130, 143", "Interrupted by Ctrl-C, ended by SIGTERM."),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            ("MNEMOSCOPE_DATABASE, DATABASE_URL", "Database to open when none is named."),
            ("MNEMOSCOPE_CONFIG", "Settings file."),
            ("MNEMOSCOPE_STATE", "Folder for the program's own state."),
            ("MNEMOSCOPE_ACTOR", "Name for the audit trail."),
            ("PGPASSWORD, PGPASSFILE", "Password of the server, and the file with passwords."),
            ("TMPDIR, SQLITE_TMPDIR", "Folder for scratch files."),
            ("NO_COLOR, CLICOLOR_FORCE", "No colours; colours in a pipe too."),
            ("COLUMNS", "Width of tables."),
        ],
    ),
    (
        "FILES",
        &[
            (
                "~/.config/mnemoscope/config.toml",
                "Settings: profiles, theme, keys. layouts/ and themes/ are next to it.",
            ),
            (
                "~/.local/state/mnemoscope/",
                "Anchors of audit trails, receipts and open sessions of erasures, and keys: keep a copy of it.",
            ),
        ],
    ),
];

/// Writes the page of the program.
///
/// # Errors
/// The writer's.
pub fn render(program: &Command, out: &mut dyn Write) -> io::Result<()> {
    // Not by the library: it drops an empty date, and the version would be in its place.
    let (quote, version) = ('"', env!("CARGO_PKG_VERSION"));
    writeln!(out, ".TH mnemoscope 1 {quote}{quote} {quote}mnemoscope {version}{quote} {quote}User Commands{quote}")?;
    let man = Man::new(program.clone());
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    let mut page = Roff::new();
    page.control("SH", ["COMMANDS"]);
    program.get_subcommands().for_each(|command| add(&mut page, command.get_name(), command));
    for (section, items) in MORE {
        page.control("SH", [section]);
        items.iter().for_each(|(name, meaning)| item(&mut page, vec![bold(*name)], meaning));
    }
    page.to_writer(out)
}

/// Adds a command with its own options, then those below it.
fn add(page: &mut Roff, name: &str, command: &Command) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    page.control("SS", [name]);
    page.text([roman(command.get_about().map(ToString::to_string).unwrap_or_default())]);
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_global_set()) {
        item(page, spelled(arg), &meaning(arg));
    }
    command.get_subcommands().for_each(|below| add(page, &format!("{name} {}", below.get_name()), below));
}

fn item(page: &mut Roff, name: Vec<Inline>, meaning: &str) {
    page.control("TP", []);
    page.text(name);
    page.text([roman(meaning)]);
}

/// Describes an option or an argument, with its possible values and its default.
pub fn meaning(arg: &Arg) -> String {
    let mut words = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if !arg.get_action().takes_values() {
        return words;
    }
    let defaults = arg.get_default_values().iter().map(|value| value.to_string_lossy());
    let defaults: Vec<_> = defaults.filter(|_| !arg.is_hide_default_value_set()).collect();
    let possible = arg.get_possible_values();
    let possible: Vec<&str> =
        possible.iter().filter(|value| !value.is_hide_set()).map(clap::builder::PossibleValue::get_name).collect();
    for (name, values) in [("default", defaults.join(", ")), ("possible values", possible.join(", "))] {
        if !values.is_empty() {
            words.push_str(&format!(" [{name}: {values}]"));
        }
    }
    words
}

/// An option or an argument as typed.
fn spelled(arg: &Arg) -> Vec<Inline> {
    let mut words = Vec::new();
    words.extend(arg.get_short().map(|short| bold(format!("-{short} "))));
    words.extend(arg.get_long().map(|long| bold(format!("--{long} "))));
    if arg.get_action().takes_values() {
        let name = arg.get_id().as_str().to_uppercase();
        let names = arg.get_value_names().map(|names| names.join(" "));
        words.push(italic(names.unwrap_or(name)));
    }
    words
}
