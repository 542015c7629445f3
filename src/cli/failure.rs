//! Failure of a command: its exit code, its message, and its remedy.

use std::io::Write as _;

use serde_json::{Value, json};

use super::{output, progress};
use crate::change::ChangeError;
use crate::ground::location;
use crate::lab::LabError;
use crate::shell;
use crate::store::{DAMAGED, EngineFault, OpenError, StoreError};
use crate::ui::text::SafeText;

/// Reason why a command ended without having done what was asked, with its exit code.
#[derive(Debug)]
pub struct CommandFailure {
    /// Exit code of the contract.
    pub code: u8,
    /// Description of the failure: what failed, where, and what to do.
    pub message: String,
    /// Advice on what to do, when the message does not give it.
    pub remedy: Option<String>,
}

impl CommandFailure {
    /// A failure with an exit code of the contract.
    pub fn new(code: u8, message: impl Into<String>) -> Self {
        CommandFailure { code, message: message.into(), remedy: None }
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

    /// Makes the failure for work done only in part, or for findings that are not as they should be (code 6).
    pub fn incomplete(message: impl Into<String>) -> Self {
        CommandFailure::new(6, message)
    }

    /// The exit code as a word that stays the same from version to version.
    #[must_use]
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

    /// The failure of a command line that cannot be read, in the parser's words (see [`parser_words`]).
    #[must_use]
    pub fn of_parser(words: &str) -> Self {
        let paragraphs: Vec<&str> = words.split("\n\n").map(str::trim).collect();
        let message = paragraphs.first().map_or("", |first| first.strip_prefix("error: ").unwrap_or(first));
        let tips = paragraphs.iter().flat_map(|part| part.lines()).filter_map(|line| line.trim().strip_prefix("tip: "));
        let usage = paragraphs.iter().find(|part| part.starts_with("Usage: ")).map(|part| (*part).to_owned());
        let tips: Vec<&str> = tips.collect();
        let remedy = if tips.is_empty() { usage } else { Some(tips.join("; ")) };
        CommandFailure { code: 2, message: message.to_owned(), remedy }
    }

    /// `{"error":{"code","message","remedy"}}`. The remedy is the advised command where there is one, and null when
    /// nothing is advised. What was to be said next to it is in `notes`.
    #[must_use]
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

    /// Whether a page of the database is damaged.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        self.remedy.as_deref() == Some(DAMAGED)
    }

    /// Says it on standard error: as JSON on one line, or in words.
    pub fn tell(&self, as_json: bool) {
        if self.message.is_empty() {
            return;
        }
        if as_json {
            // Not by `eprintln!`: it panics where nobody hears it any more.
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

/// The parser's words about a command line. Its advice for a value that begins with `-` is right for arguments: an option
/// takes such a value after `=`.
#[must_use]
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

/// Whether a word is an option of a command, or of one below it, and takes a value.
fn takes_value(command: &clap::Command, word: &str) -> bool {
    let is_named = |arg: &clap::Arg| {
        arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long))
            || arg.get_short().is_some_and(|short| word.strip_prefix('-').is_some_and(|name| name.chars().eq([short])))
    };
    command.get_arguments().any(|arg| is_named(arg) && arg.get_action().takes_values())
        || command.get_subcommands().any(|inner| takes_value(inner, word))
}

/// The first command that a message advises: what is in backticks and begins with our name.
fn advised(message: &str) -> Option<&str> {
    message.split('`').skip(1).step_by(2).find(|words| words.starts_with("mnemoscope "))
}

/// Words as they may be said: without the passwords that they quote from the command line, and without the handles that
/// are masked.
#[must_use]
pub fn harmless(words: &str) -> String {
    let typed: Vec<String> = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    output::veiled(&location::without_passwords(words, typed.iter().map(String::as_str)))
}

/// Says words on standard error, `before` each line. They may quote what someone typed: a password is not repeated, and
/// what would act on a terminal is shown by marks.
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
            OpenError::Url(_) | OpenError::Layout(_) | OpenError::LayoutFile(..) => 2,
            OpenError::LayoutDoesNotFit(..) => 5,
            _ => 1,
        };
        CommandFailure::new(code, error.to_string())
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
                    EngineFault::Damaged | EngineFault::Raised => fault.lasting_remedy()?,
                };
                Some(words.to_owned())
            }),
        };
        CommandFailure { code, message: error.to_string(), remedy }
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
