//! Failure of a command: its exit code, its message, and its remedy.

use std::io::Write as _;

use serde_json::{Value, json};

use super::{output, progress};
use crate::change::ChangeError;
use crate::ground::location;
use crate::lab::LabError;
use crate::shell;
use crate::store::{EngineFault, OpenError, StoreError};
use crate::ui::text::SafeText;

/// Reason why a command failed, with its exit code.
#[derive(Debug)]
pub struct CommandFailure {
    /// Exit code of the contract.
    pub code: u8,
    /// Description of the failure: what failed, where, and the remedy.
    pub message: String,
    /// Remedy, if the message does not contain it.
    pub remedy: Option<String>,
    /// Whether it is because a page of an SQLite database is damaged.
    pub is_damage: bool,
}

impl CommandFailure {
    /// A failure with an exit code of the contract.
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        CommandFailure { code, message: message.into(), remedy: None, is_damage: false }
    }

    /// Makes a general failure (code 1).
    pub fn failed(message: impl Into<String>) -> Self {
        CommandFailure::new(1, message)
    }

    /// The command was used wrongly.
    pub fn usage(message: impl Into<String>) -> Self {
        CommandFailure::new(2, message)
    }

    /// Makes the failure for something named that does not exist (code 3).
    pub fn not_found(message: impl Into<String>) -> Self {
        CommandFailure::new(3, message)
    }

    /// The database cannot do that.
    pub fn refused(message: impl Into<String>) -> Self {
        CommandFailure::new(5, message)
    }

    /// Creates the failure for work that is only partly done, or for unwanted findings (code 6).
    pub fn incomplete(message: impl Into<String>) -> Self {
        CommandFailure::new(6, message)
    }

    /// The same, because a page of an SQLite database is damaged.
    pub fn with_damage(self) -> Self {
        let remedy = EngineFault::Damaged.lasting_remedy().map(str::to_owned);
        CommandFailure { remedy, is_damage: true, ..self }
    }

    /// The exit code as a stable word.
    pub fn word(&self) -> &'static str {
        match self.code {
            2 => "usage",
            3 => "not_found",
            4 => "conflict",
            5 => "refused",
            6 => "incomplete",
            7 => "broken",
            _ => "failed",
        }
    }

    /// Creates the failure for an invalid command line, from the parser's message (see [`parser_words`]).
    pub fn of_parser(words: &str) -> Self {
        let paragraphs: Vec<&str> = words.split("\n\n").map(str::trim).collect();
        let message = paragraphs.first().map_or("", |first| first.strip_prefix("error: ").unwrap_or(first));
        let tips = paragraphs.iter().flat_map(|part| part.lines()).filter_map(|line| line.trim().strip_prefix("tip: "));
        let usage = paragraphs.iter().find(|part| part.starts_with("Usage: ")).map(|part| (*part).to_owned());
        let tips: Vec<&str> = tips.collect();
        let remedy = if tips.is_empty() { usage } else { Some(tips.join("; ")) };
        CommandFailure { remedy, ..CommandFailure::usage(message) }
    }

    /// `{"error":{"code","message","remedy"}}`. The remedy is the suggested command if there is one, else null.
    /// Messages beside the failure are in `notes`.
    pub fn to_json(&self, notes: &[String]) -> Value {
        let command = || advised(&self.message).map(str::to_owned);
        let remedy = self.remedy.clone().or_else(command).map(|words| harmless(&words));
        let mut said =
            json!({ "error": { "code": self.word(), "message": harmless(&self.message), "remedy": remedy } });
        if !notes.is_empty() {
            said["notes"] = json!(notes.iter().map(|words| harmless(words)).collect::<Vec<_>>());
        }
        said
    }

    /// Prints it to standard error: as JSON on one line, or in words.
    pub fn tell(&self, as_json: bool) {
        if self.message.is_empty() {
            return;
        }
        if as_json {
            // Not `eprintln!`, which panics if standard error is closed.
            let _ = writeln!(
                std::io::stderr().lock(),
                "{}",
                crate::ui::escaped(&self.to_json(&output::held()).to_string())
            );
            return;
        }
        let remedy = self.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
        say("mnemoscope: ", &format!("{}{remedy}", self.message));
    }
}

/// The parser's message about a command line. Its advice for a value that begins with `-` applies to arguments: an
/// option takes such a value after `=`.
pub fn parser_words(wrong: &clap::Error, program: &clap::Command, typed: &[String]) -> String {
    let rewritten = |line: &str| {
        let (value, _) = line.trim_start().strip_prefix("tip: to pass '")?.split_once('\'')?;
        let at = typed.iter().position(|word| word.starts_with(value))?;
        let option = typed.get(at.checked_sub(1)?).filter(|word| takes_value(program, word))?;
        Some(format!("  tip: to pass '{value}' to '{option}', use '{option}={value}'"))
    };
    let words = wrong.render().to_string();
    words.split('\n').map(|line| rewritten(line).unwrap_or_else(|| line.to_owned())).collect::<Vec<_>>().join("\n")
}

/// Whether a word is an option with a value of a command or its subcommands.
fn takes_value(command: &clap::Command, word: &str) -> bool {
    let is_named = |arg: &clap::Arg| {
        arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long))
            || arg.get_short().is_some_and(|short| word.strip_prefix('-').is_some_and(|name| name.chars().eq([short])))
    };
    command.get_arguments().any(|arg| is_named(arg) && arg.get_action().takes_values())
        || command.get_subcommands().any(|inner| takes_value(inner, word))
}

/// The first command that a message suggests: text in backticks that begins with our name.
fn advised(message: &str) -> Option<&str> {
    message.split('`').skip(1).step_by(2).find(|words| words.starts_with("mnemoscope "))
}

/// Makes a message safe: removes passwords that it quotes from the command line, and masked handles.
pub fn harmless(words: &str) -> String {
    let typed: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    output::veiled(&location::without_passwords(words, typed.iter().map(String::as_str)))
}

/// Prints words to standard error, with `before` at the start of each line. They may quote user input: passwords are
/// removed, and control characters are replaced by marks.
pub fn say(before: &str, words: &str) {
    progress::end();
    let mut out = std::io::stderr().lock();
    for line in harmless(words).lines() {
        let _ = writeln!(out, "{before}{}", SafeText::new(line));
    }
}

impl From<OpenError> for CommandFailure {
    fn from(error: OpenError) -> Self {
        let code = match error {
            OpenError::NoFile(_) | OpenError::UnknownLayout(..) => 3,
            OpenError::Url(_) | OpenError::Unclear(_) | OpenError::Layout(_) | OpenError::LayoutFile(..) => 2,
            OpenError::LayoutDoesNotFit(..) => 5,
            _ => 1,
        };
        let failure = CommandFailure::new(code, error.to_string());
        if matches!(error, OpenError::Damaged(..)) { failure.with_damage() } else { failure }
    }
}

impl From<StoreError> for CommandFailure {
    fn from(error: StoreError) -> Self {
        let code = match error {
            StoreError::Missing { .. }
            | StoreError::Denied { .. }
            | StoreError::Ambiguous(..)
            | StoreError::CannotHold(_) => 5,
            StoreError::Engine(_) if error.is_denied() => 5,
            StoreError::Cursor => 2,
            StoreError::NoTable(_) => 3,
            StoreError::Unordered(_) | StoreError::Scratch(_) | StoreError::Engine(_) => 1,
        };
        let remedy = match &error {
            StoreError::Missing { remedy, .. } => remedy.clone(),
            StoreError::Denied { remedy, .. } => Some(remedy.clone()),
            error if error.is_denied() && error.fault() != Some(EngineFault::Raised) => {
                Some("`status` names what your role may not read, and the GRANT that it needs".to_owned())
            }
            error if error.is_lost() => {
                Some("the connection was lost: run it again once the server answers".to_owned())
            }
            error => error.fault().and_then(|fault| {
                let words = match fault {
                    EngineFault::Full => "free space on the disk that holds the database, then run it again",
                    EngineFault::Locked => "another process holds a lock: run it again when the lock is released",
                    EngineFault::Changed => {
                        "run it again if someone is changing the tables; otherwise a layout names something that does not exist, \
                         and `layouts check FILE` shows it"
                    }
                    EngineFault::Stopped => "it took too long: narrow it, or raise statement_timeout",
                    EngineFault::Damaged | EngineFault::DamagedOnServer | EngineFault::Raised => {
                        fault.lasting_remedy()?
                    }
                };
                Some(words.to_owned())
            }),
        };
        let is_damage = error.fault() == Some(EngineFault::Damaged);
        CommandFailure { remedy, is_damage, ..CommandFailure::new(code, error.to_string()) }
    }
}

impl From<shell::ConsoleError> for CommandFailure {
    fn from(error: shell::ConsoleError) -> Self {
        match error {
            shell::ConsoleError::Open(error) => error.into(),
            shell::ConsoleError::NoTerminal => CommandFailure::usage(error.to_string()),
            shell::ConsoleError::Terminal(_) => CommandFailure::failed(error.to_string()),
        }
    }
}

impl From<ChangeError> for CommandFailure {
    fn from(error: ChangeError) -> Self {
        let code = match error {
            ChangeError::Store(error) => return error.into(),
            ChangeError::Failed(_) | ChangeError::Uncertain(_) => 1,
            ChangeError::Usage(_) => 2,
            ChangeError::NotFound(_) => 3,
            ChangeError::Conflict { .. } | ChangeError::Paused(_) => 4,
            ChangeError::Refused(_) => 5,
            ChangeError::Broken(_) => 7,
        };
        CommandFailure::new(code, error.to_string())
    }
}

impl From<LabError> for CommandFailure {
    fn from(error: LabError) -> Self {
        let code = match error {
            LabError::Store(error) => return error.into(),
            LabError::Usage(_) => 2,
            LabError::NotFound(_) => 3,
            LabError::Refused(_) => 5,
            LabError::Scratch(_) => 1,
        };
        CommandFailure::new(code, error.to_string())
    }
}

impl From<anyhow::Error> for CommandFailure {
    fn from(error: anyhow::Error) -> Self {
        CommandFailure::failed(format!("{error:#}"))
    }
}

impl From<std::io::Error> for CommandFailure {
    fn from(error: std::io::Error) -> Self {
        CommandFailure::failed(error.to_string())
    }
}
