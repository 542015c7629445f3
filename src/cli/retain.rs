//! `retain`: retention rules for every kind of row, in a file that can be kept with the code.

// Help texts are shown as they stand: backticks would be.
#![allow(clippy::doc_markdown)]

use std::path::{Path, PathBuf};

use clap::Args;

use super::doing::Doing;
use super::failure::CommandFailure;
use super::input::read_input;
use crate::change::Operation;
use crate::config;
use crate::memory::retention::RetentionRules;

/// Most bytes of a file of rules.
const RULES_BYTES: u64 = 1 << 20;
/// The file's usual name.
const NAME: &str = "retention.toml";

/// File of retention rules, and the share that they may remove.
#[derive(Debug, Clone, Args)]
pub struct RetainArgs {
    /// File of rules [default: retention.toml in this folder, or next to the settings file].
    pub file: Option<PathBuf>,
    /// Largest share of an entity's rows that may be deleted at once, 0 to 1; overrides the file's.
    #[arg(long, value_name = "SHARE")]
    pub share: Option<f64>,
    #[command(flatten)]
    pub doing: Doing,
}

impl RetainArgs {
    pub fn operation(&self) -> Result<(Operation, &Doing), CommandFailure> {
        let file = self.file.clone().or_else(usual).ok_or_else(|| {
            CommandFailure::not_found(format!(
                "there is no {NAME} here or next to the settings file: name the file of rules"
            ))
        })?;
        let mut rules = read(&file)?;
        if let Some(share) = self.share {
            if !(0.0..=1.0).contains(&share) {
                return Err(CommandFailure::usage(format!("--share is a number from 0 to 1, not {share}")));
            }
            rules.share = Some(share);
        }
        Ok((Operation::Retain { file: file.display().to_string(), rules }, &self.doing))
    }
}

/// The default file of rules.
pub fn usual() -> Option<PathBuf> {
    let beside = || config::path().and_then(|settings| Some(settings.parent()?.join(NAME)));
    [Some(PathBuf::from(NAME)), beside()].into_iter().flatten().find(|path| path.is_file())
}

/// Reads a file of rules.
///
/// # Errors
/// A file that cannot be read, or rules that make no sense.
pub fn read(file: &Path) -> Result<RetentionRules, CommandFailure> {
    let wrong = |why: String| CommandFailure::usage(format!("{}:{why}", file.display()));
    let rules = RetentionRules::parse(&read_input(file, RULES_BYTES)?).map_err(wrong)?;
    rules.read(chrono::Utc::now()).map_err(|why| CommandFailure::usage(format!("{}: {why}", file.display())))?;
    Ok(rules)
}
