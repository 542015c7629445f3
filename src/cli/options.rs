//! Options that every command takes, and what several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options for every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Layout by name or file, instead of the recognised one. May be repeated; all of them have to fit.
    #[arg(long, global = true, value_name = "NAME|FILE")]
    pub layout: Vec<String>,
    /// Profile from the settings file.
    #[arg(long, global = true)]
    pub profile: Option<String>,
    /// Output format; table on a terminal, json when piped.
    #[arg(long, global = true, value_enum)]
    pub format: Option<Format>,
    /// Show stable pseudonyms instead of personal values.
    #[arg(long, global = true)]
    pub mask: bool,
    /// Colours: auto uses them on a terminal, unless NO_COLOR is set, and elsewhere where CLICOLOR_FORCE is.
    #[arg(long, global = true, value_enum, default_value_t = When::Auto)]
    pub color: When,
    /// Show no progress on standard error.
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Log to standard error: -v actions, -vv each statement. RUST_LOG sets it for parts of the program.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Append the log to a file that only you can read.
    #[arg(long, global = true, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Print errors only.
    #[arg(short, long, global = true)]
    pub quiet: bool,
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// One JSON document a line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
}

impl Format {
    /// Whether it is JSON, in one document or several.
    pub fn is_json(self) -> bool {
        matches!(self, Format::Json | Format::Jsonl)
    }
}

/// Use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set; anywhere where CLICOLOR_FORCE is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Reads a number of rows: none would ask for nothing.
pub(super) fn at_least_one() -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(1..)
}
